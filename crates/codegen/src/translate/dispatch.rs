//! Dynamic calls: compiled code looks the callee up before it calls the run time.
//!
//! ```text
//!        tags of the callee and the arguments ──► hash ──► line of the thread
//!        stamp of the thread + number = line's stamp, tags = line's tags?
//!   yes  call [line's address](args, n)              boxed entry, `tail` convention
//!   no   brolga_apply(thread, args, n)               cold; it searches, fills the line and calls
//! ```
//!
//! The run time's `objects/dispatch.rs` defines the contents of a line, and when it is valid. A call that reaches several methods has
//! several lines. The operands are in an array in the frame, which low IR has just filled: the loads are forwarded from the
//! stores.
//!
//! Calls with more than [`LINE_KEYS`](thread::LINE_KEYS) operands go to the run time directly.
//!
//! Cost: for two operands 18 instructions and an indirect call, 2 ns before the boxed entry begins.

use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Inst, Op, RuntimeFn};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use super::cells::Compiled;
use super::{Done, TranslateError, Translation};
use crate::entry::boxed_signature;
use crate::thread::{self, LINE_KEYS};

impl Translation<'_> {
    /// `brolga_apply` of an array of objects.
    pub(super) fn apply(&mut self, inst: Inst) -> Done {
        let count = self.func.args(inst).get(1).and_then(|&count| self.func.as_bits(count));
        let count = match count.and_then(|count| usize::try_from(count).ok()) {
            Some(count @ 1..=LINE_KEYS) => count,
            _ => return self.call_runtime(inst, RuntimeFn::Apply),
        };
        let tags = self.tags(inst, count)?;
        self.note_call(inst, &tags);
        // Emitted here, because the later blocks do not dominate each other.
        let given = self.args(inst)?;
        let thread = self.thread();
        let flags = MemFlagsData::trusted();
        let cache = self.b.ins().load(types::I64, flags, thread, thread::THREAD_INLINE_CACHE);
        let line = self.line(cache, &tags);
        let stamp = self.b.ins().load(types::I64, flags, cache, thread::INLINE_CACHE_STAMP);
        let stamp = self.b.ins().iadd_imm_s(stamp, count as i64);
        let known = self.b.ins().load(types::I64, flags, line, thread::INLINE_CACHE_FIRST);
        let mut differs = self.b.ins().bxor(known, stamp);
        for (n, &tag) in tags.iter().enumerate() {
            let offset = thread::INLINE_CACHE_FIRST + thread::LINE_TAGS + 8 * n as i32;
            let known = self.b.ins().load(types::I64, flags, line, offset);
            let other = self.b.ins().bxor(known, tag);
            differs = self.b.ins().bor(differs, other);
        }
        let (hit, miss, go_on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(miss);
        let result = self.b.append_block_param(go_on, types::I64);
        self.b.ins().brif(differs, miss, &[], hit, &[]);

        self.b.switch_to_block(hit);
        let address =
            self.b.ins().load(types::I64, flags, line, thread::INLINE_CACHE_FIRST + thread::LINE_ADDRESS);
        let signature = self.b.import_signature(boxed_signature().clif());
        let made = self.call_compiled(inst, Compiled::Loaded(signature, address), &given);
        let Some(&object) = made.first() else { return self.bad(inst) };
        self.b.ins().jump(go_on, &[object.into()]);

        self.b.switch_to_block(miss);
        let made = self.runtime_values(inst, RuntimeFn::Apply)?;
        let Some(&object) = made.first() else { return self.bad(inst) };
        self.b.ins().jump(go_on, &[object.into()]);
        self.b.switch_to_block(go_on);
        self.define(inst, &[result])
    }

    /// The tags of the objects in the array, without the heap's bits.
    fn tags(&mut self, inst: Inst, count: usize) -> Result<Vec<Value>, TranslateError> {
        let (array, offset) = self.array(inst)?;
        let (words, heads) = (self.region_flags(Region::Frame), self.region_flags(Region::Header));
        let tags = (0..count).map(|n| {
            let object = self.b.ins().load(types::I64, words, array, offset + 8 * n as i32);
            let tag = self.b.ins().load(types::I64, heads, object, -thread::TAG_BYTES);
            self.b.ins().band_imm_s(tag, !thread::TAG_BITS)
        });
        Ok(tags.collect())
    }

    /// The array as it was stored to: the start of the frame and an offset, so that Cranelift recognises the same place.
    fn array(&mut self, inst: Inst) -> Result<(Value, i32), TranslateError> {
        let func = self.func;
        let moved = func.args(inst).first().and_then(|&array| func.def_inst(array));
        if let Some(moved) = moved.filter(|&moved| func.op(moved) == Op::Intrinsic(Intrinsic::AddPtr))
            && let &[base, offset] = func.args(moved)
            && let Some(offset) = func.as_bits(offset).and_then(|offset| i32::try_from(offset).ok())
        {
            return Ok((self.value(inst, base)?, offset));
        }
        Ok((self.arg(inst, 0)?, 0))
    }

    /// The address of the line for these tags, minus the offset of the first line.
    fn line(&mut self, cache: Value, tags: &[Value]) -> Value {
        let mut hash = None;
        for &tag in tags {
            hash = Some(match hash {
                None => tag,
                Some(hash) => {
                    let turned = self.b.ins().rotl_imm_u(hash, i64::from(thread::LINE_ROTATE));
                    self.b.ins().bxor(turned, tag)
                }
            });
        }
        let hash = hash.unwrap_or(cache);
        let multiplier = self.b.ins().iconst(types::I64, thread::LINE_MULTIPLIER.cast_signed());
        let mixed = self.b.ins().imul(hash, multiplier);
        let high = self.b.ins().ushr_imm_u(mixed, i64::from(thread::LINE_SHIFT));
        let offset = self.b.ins().band_imm_s(high, thread::LINE_MASK.cast_signed());
        self.b.ins().iadd(cache, offset)
    }
}
