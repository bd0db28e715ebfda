//! Bytes between strings, vectors and memories, where the types are known.
//!
//! ```text
//! jl_string_to_array(s)          n = length(s); m = gc_memory(Memory{UInt8}, n); memcopy(m.data, s + 8, n); Vector over m
//! jl_array_to_string(a)          n = length(a); s = gc_string(n); memcopy(s + 8, a.data, n); array_del_end(a, n)
//!
//! s of jl_alloc_string(n), used once     no copy: both are zero
//! a that nothing sees afterwards         no array_del_end
//! ```
//!
//! Julia makes every string from parts by these calls: digits are written into a vector, which becomes a string. A call by name takes boxes and looks the
//! name up, which costs more than the copy.
//!
//! Invariant: addresses are taken after the allocation, and nothing between them and the copy is a safepoint.

use super::addr::Addr;
use super::array::LENGTH;
use super::call::STRING_BYTES;
use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Inst, LowType, Op, RuntimeFn, Type, Value};
use cranelift_entity::EntitySet;

impl Lowering<'_> {
    /// A function of Julia's run time that copies bytes, in place; `None` for other functions or types.
    pub(super) fn copied_bytes(&mut self, name: &str, args: &[Val]) -> Step<Option<Val>> {
        let (Ok(vector), Ok(memory)) = (self.types.vector(Type::UINT8), self.types.memory(Type::UINT8))
        else {
            return Ok(None);
        };
        Ok(match (name, args) {
            ("jl_string_to_genericmemory", [text]) if text.ty == Type::STRING => {
                let &[text] = &text.leaves[..] else { return Ok(None) };
                Some(Val::scalar(memory, self.memory_of_string(memory, text).0))
            }
            ("jl_string_to_array", [text]) if text.ty == Type::STRING => {
                let &[text] = &text.leaves[..] else { return Ok(None) };
                let (bytes, length) = match self.fresh_length()? {
                    Some(length) => (self.new_memory(memory, length), length),
                    None => self.memory_of_string(memory, text),
                };
                Some(Val::scalar(vector, self.vector_over(vector, Type::UINT8, bytes, length)?))
            }
            ("jl_array_to_string", [of]) if of.ty == vector => {
                let (&[array], &[length]) = (&of.leaves[..], &self.array_dims(of, Type::UINT8, 1)?[..])
                else {
                    return Ok(None);
                };
                let text = self.value(Op::CallRuntime(RuntimeFn::GcString), &[length], Type::TRACKED);
                let start = self.array_start(array, Type::UINT8)?;
                // This keeps the bytes while they are copied, even where nothing has the array any more.
                let (to, from) = (self.moved(text, STRING_BYTES), self.element_addr(&start).base);
                self.emit(Op::MemCopy, &[to, from, length], &[]);
                if !self.is_last_look() {
                    // The array is empty afterwards.
                    self.value(Op::CallRuntime(RuntimeFn::ArrayDelEnd), &[array, length], Type::TRACKED);
                }
                Some(Val::scalar(Type::STRING, text))
            }
            _ => None,
        })
    }

    /// A `Memory{UInt8}` with the bytes of a string, and its length.
    fn memory_of_string(&mut self, ty: Type, text: Value) -> (Value, Value) {
        let length = self.load_low(Addr::inside(text, 8, Region::Length), LENGTH, LowType::I64);
        let memory = self.new_memory(ty, length);
        let (to, from) = (self.memory_data(memory), self.moved(text, STRING_BYTES));
        self.emit(Op::MemCopy, &[to, from, length], &[]);
        (memory, length)
    }

    /// The length of the string that is the current call's operand, if it was made for this call alone.
    fn fresh_length(&mut self) -> Step<Option<Value>> {
        let src = self.src;
        let Some(&text) = src.args(self.at).first() else { return Ok(None) };
        let made = src.def_inst(text).filter(|&def| self.is_call_of(def, "jl_alloc_string"));
        let Some(&length) = made.and_then(|def| src.args(def).first()) else { return Ok(None) };
        if !self.is_used_once(text) {
            return Ok(None);
        }
        let length = self.val(length)?;
        let &[length] = &length.leaves[..] else { return Ok(None) };
        // No string is longer than `most`. Without the string, which has no use, the exception has to be the same: there is no memory.
        let (zero, most) = (self.word(0), self.word(i64::MAX));
        let too_long = self.binary(Intrinsic::SltInt, length, zero, LowType::I8);
        Ok(Some(self.value(Op::Builtin(Builtin::Ifelse), &[too_long, most, length], Type::I64)))
    }

    fn is_call_of(&self, inst: Inst, name: &str) -> bool {
        let Op::ForeignCall(foreign) = self.src.op(inst) else { return false };
        self.src.foreign(foreign).name.is_some_and(|called| self.cx.names.text(called) == name)
    }

    /// Whether nothing can see the vector of the current call any more: the function made it, hands it to nobody, and returns without another look at it.
    fn is_last_look(&mut self) -> bool {
        let src = self.src;
        let Some(&vector) = src.args(self.at).first() else { return false };
        let is_fresh = src.def_inst(vector).is_some_and(|def| {
            ["jl_string_to_array", "jl_alloc_array_1d"].iter().any(|name| self.is_call_of(def, name))
        });
        let next = src.next_inst(self.at);
        let returns =
            next.is_some_and(|next| src.op(next) == Op::Return && !src.args(next).contains(&vector));
        is_fresh && returns && !self.handed_on().contains(vector)
    }

    /// The values that some statement may hand to other code or rename; elements of vectors are read and written without.
    fn handed_on(&mut self) -> &EntitySet<Value> {
        let src = self.src;
        if self.handed_on.is_none() {
            let mut found = EntitySet::new();
            for inst in src.blocks().flat_map(|block| src.block_insts(block)) {
                let looks_at = match src.op(inst) {
                    Op::Builtin(Builtin::Arrayref | Builtin::Arraylen | Builtin::Arraysize)
                    | Op::GcPreserveBegin => continue,
                    Op::ForeignCall(_) if self.is_call_of(inst, "jl_array_to_string") => continue,
                    // Its result is the vector.
                    Op::Builtin(Builtin::Arrayset)
                        if src.result(inst).is_none_or(|result| self.weight_of_uses(result) == 0) =>
                    {
                        Some(1)
                    }
                    _ => None,
                };
                let others = src.args(inst).iter().enumerate().filter(|&(n, _)| Some(n) != looks_at);
                others.for_each(|(_, &value)| {
                    found.insert(value);
                });
            }
            self.handed_on = Some(found);
        }
        self.handed_on.get_or_insert_default()
    }
}
