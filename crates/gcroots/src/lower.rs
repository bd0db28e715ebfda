//! Final lowering: the remaining operations on objects become loads, stores, branches and calls.
//!
//! | operation | becomes |
//! |---|---|
//! | `alloc(T)` | the next cell of T's size class, with the type in its tag; a cold call when the run is exhausted, or the object is too large for all classes |
//! | `type_of(x)` | the tag without the heap's bits |
//! | `write_barrier(x, …)` | a test of x's tag with a cold call, or [nothing](crate::barrier) |
//! | `gc_loaded(x, p)` | `p` |
//! | `call_args(f, a, b)` | stores into the argument words of the frame, and a call with their address and count |
//! | `slot_addr` of a reference | the address of its word in the frame |
//! | `gc_preserve_…` | nothing |
//!
//! ```text
//!   1 ─ c = [thread + cursor]                  n = c + cell
//!       goto slow if limit < n                 (limit is the word after the cursor)
//!   2 ─ [thread + cursor] = n; [c] = T         %1 = c + 8; zero what is not written next, unless memory is zeroed
//!   3 ─ %2 = brolga_gc_alloc(bytes, T)         cold
//!   4 ┄ %3 = φ (#2 => %1, #3 => %2)            the result of `alloc`
//! ```
//!
//! `pointer_from_objref` stays: no other cast can express it.
//!
//! **Alias facts.** Memory that never changes while its object is alive does change when the object dies, and
//! from here on roots do not keep a load from moving past the last of them. So accesses to `immutable` memory
//! become accesses to fields.
//!
//! Blocks are split from their ends upwards, so that each instruction moves at most once. Cost: linear.

use crate::Options;
use crate::barrier::Barriers;
use crate::flow::is_safepoint;
use crate::frame::{Frame, access, word_address};
use crate::fresh::{self, Zeros};
use crate::tracked::TrackedSlots;
use brolga_ir::constant::Address;
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Const, Context, Func, Inst, Op, RuntimeFn, Slot, Type, Value};
use cranelift_entity::packed_option::PackedOption;

/// A barrier looks for its store among this many instructions before it.
const FARTHEST_STORE: usize = 64;

/// An object with more words to zero is allocated by the run time.
const MOST_ZEROS: usize = 8;

struct Lowering<'a> {
    func: &'a mut Func,
    cx: &'a Context,
    options: &'a Options,
    barriers: &'a Barriers,
    tracked: &'a TrackedSlots,
    frame: Option<Frame>,
}

/// Lowers every operation on objects in the function.
pub(crate) fn lower(
    func: &mut Func,
    cx: &Context,
    options: &Options,
    barriers: &Barriers,
    tracked: &TrackedSlots,
    frame: Option<Frame>,
) {
    let blocks: Vec<Block> = func.blocks().collect();
    let mut lowering = Lowering { func, cx, options, barriers, tracked, frame };
    // The addresses of tracked slots are recognised by their `slot_addr`, so their accesses are lowered
    // first.
    for &block in &blocks {
        lowering.regions(block);
    }
    for block in blocks {
        lowering.block(block);
    }
}

impl Lowering<'_> {
    /// Drops alias facts that hold only while roots do, and redirects accesses of tracked slots to the frame.
    fn regions(&mut self, block: Block) {
        let insts: Vec<Inst> = self.func.block_insts(block).collect();
        for inst in insts {
            let (Op::Load(old) | Op::Store(old)) = self.func.op(inst) else { continue };
            let to_slot = |&v: &Value| {
                let def = self.func.def_inst(v).map(|i| self.func.op(i));
                matches!(def, Some(Op::SlotAddr(slot)) if self.tracked.word[slot].is_some())
            };
            let region = match old.region {
                _ if self.func.args(inst).first().is_some_and(to_slot) => Region::Frame,
                Region::Immutable | Region::Length => Region::Field,
                Region::Size => Region::Header,
                other => other,
            };
            let new = Access { region, ..old };
            let op = if matches!(self.func.op(inst), Op::Load(_)) { Op::Load(new) } else { Op::Store(new) };
            let args = self.func.args(inst).to_vec();
            self.func.set_op(inst, op, &args);
        }
    }

    fn block(&mut self, block: Block) {
        let insts: Vec<Inst> = self.func.block_insts(block).collect();
        let mut tail: PackedOption<Block> = PackedOption::default();
        for inst in insts.into_iter().rev() {
            let joined = match self.func.op(inst) {
                Op::Alloc(ty) => self.alloc(inst, ty),
                Op::WriteBarrier => self.barrier(inst),
                Op::TypeOf => {
                    self.type_of(inst);
                    None
                }
                Op::GcLoaded => {
                    let raw = self.func.args(inst)[1];
                    self.func.set_op(inst, Op::Intrinsic(Intrinsic::Bitcast), &[raw]);
                    None
                }
                Op::GcPreserveBegin | Op::GcPreserveEnd => {
                    self.func.remove_inst(inst);
                    None
                }
                Op::CallArgs(entry) => {
                    self.call_args(inst, entry);
                    None
                }
                Op::SlotAddr(slot) => {
                    self.tracked_slot(inst, slot);
                    None
                }
                _ => None,
            };
            // The lowest part keeps the terminator.
            if let (Some(joined), None) = (joined, tail.expand()) {
                tail = joined.into();
            }
        }
        let Some(tail) = tail.expand() else { return };
        for target in self.func.successors(tail).to_vec() {
            let phis: Vec<Inst> =
                self.func.block_insts(target).take_while(|&i| self.func.op(i) == Op::Phi).collect();
            for phi in phis {
                for from in self.func.inst_blocks_mut(phi).iter_mut().filter(|b| **b == block) {
                    *from = tail;
                }
            }
        }
    }

    /// Returns the block that contains the rest of the block now.
    fn alloc(&mut self, inst: Inst, ty: Type) -> Option<Block> {
        let types = &self.cx.types;
        let heap = &self.options.heap;
        let (size, align) = types.object_extent(ty).unwrap_or((0, 1));
        let tag = self.func.constant(Const::Address(Address::Type(ty)));
        let bytes = self.func.bits(types, Type::I64, size.into());
        let class = heap.class_of(size as usize, align as usize);
        let zeros = class.and_then(|_| match heap.zeroed {
            true => Some(Zeros::new()),
            false => fresh::unwritten(self.func, self.cx, inst, size, MOST_ZEROS),
        });
        let (Some((class, cell)), Some(zeros)) = (class, zeros) else {
            self.func.set_op(inst, Op::CallRuntime(RuntimeFn::GcAlloc), &[bytes, tag]);
            return None;
        };
        let cursor = access((heap.runs + heap.run_bytes * class) as i32, Region::Thread);
        let limit = Access { offset: cursor.offset + 8, ..cursor };
        let add = Op::Intrinsic(Intrinsic::AddPtr);
        let mut at = Cursor::new(self.func);
        let place = at.func.place(inst);
        let thread = at.before(inst).ins_value(Op::ThreadAddr, &[], Type::PTR);
        let cell_at = at.ins_value(Op::Load(cursor), &[thread], Type::PTR);
        let cell_bytes = at.int(types, Type::I64, cell.into());
        let next = at.ins_value(add, &[cell_at, cell_bytes], Type::PTR);
        let end = at.ins_value(Op::Load(limit), &[thread], Type::PTR);
        let full = at.ins_value(Op::Intrinsic(Intrinsic::UltInt), &[end, next], Type::I8);
        let join = at.split_block()?;
        let above = at.block()?;
        let (fast, slow) = (at.func.make_block(), at.func.make_block());
        at.func.insert_block_after(fast, above);
        at.func.insert_block_after(slow, fast);
        at.func.set_cold(slow);
        at.branch(full, slow, fast);
        at.at_bottom(fast).with_place(place);
        at.ins(Op::Store(cursor), &[thread, next], &[]);
        at.ins(Op::Store(access(0, Region::Header)), &[cell_at, tag], &[]);
        if !zeros.is_empty() {
            let zero = at.int(types, Type::I64, 0);
            for offset in zeros {
                let word = access(heap.tag_bytes as i32 + offset as i32, Region::Field);
                at.ins(Op::Store(word), &[cell_at, zero], &[]);
            }
        }
        let tag_bytes = at.int(types, Type::I64, heap.tag_bytes as i128);
        let object = at.ins_value(add, &[cell_at, tag_bytes], Type::PTR);
        let bumped = at.ins_value(Op::Intrinsic(Intrinsic::Bitcast), &[object], Type::TRACKED);
        at.goto(join);
        at.at_bottom(slow).with_place(place);
        let called = at.ins_value(Op::CallRuntime(RuntimeFn::GcAlloc), &[bytes, tag], Type::TRACKED);
        at.goto(join);
        // The safepoint is now in the call.
        if let (Some(map), Some(call)) = (self.func.take_root_map(inst), self.func.def_inst(called)) {
            self.func.set_root_map(call, map);
        }
        self.func.set_op(inst, Op::Phi, &[bumped, called]);
        self.func.set_inst_blocks(inst, &[fast, slow]);
        Some(join)
    }

    fn type_of(&mut self, inst: Inst) {
        let object = self.func.args(inst)[0];
        let bits = !self.options.heap.tag_bits;
        let read = self.tag();
        let mut at = Cursor::new(self.func);
        let tag = at.before(inst).ins_value(read, &[object], Type::I64);
        let mask = at.int(&self.cx.types, Type::I64, bits.into());
        let address = at.ins_value(Op::Intrinsic(Intrinsic::AndInt), &[tag, mask], Type::I64);
        self.func.set_op(inst, Op::Intrinsic(Intrinsic::Bitcast), &[address]);
    }

    fn barrier(&mut self, inst: Inst) -> Option<Block> {
        if self.barriers.gone.contains(inst) {
            self.func.remove_inst(inst);
            return None;
        }
        let parent = *self.func.args(inst).first()?;
        let stored = self.stored_element(inst);
        let types = &self.cx.types;
        let read = self.tag();
        let mut at = Cursor::new(self.func);
        let place = at.func.place(inst);
        let tag = at.before(inst).ins_value(read, &[parent], Type::I64);
        let old = at.int(types, Type::I64, self.options.heap.tag_old.into());
        let bits = at.ins_value(Op::Intrinsic(Intrinsic::AndInt), &[tag, old], Type::I64);
        let zero = at.int(types, Type::I64, 0);
        let hit = at.ins_value(Op::Intrinsic(Intrinsic::NeInt), &[bits, zero], Type::I8);
        let join = at.split_block()?;
        let above = at.block()?;
        let cold = at.func.make_block();
        at.func.insert_block_after(cold, above);
        at.func.set_cold(cold);
        at.branch(hit, cold, join);
        at.at_bottom(cold).with_place(place);
        match stored {
            Some((address, 0)) => {
                at.ins(Op::CallRuntime(RuntimeFn::GcWriteAt), &[parent, address], &[]);
            }
            Some((address, offset)) => {
                let offset = at.int(types, Type::I64, offset.into());
                let address = at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[address, offset], Type::PTR);
                at.ins(Op::CallRuntime(RuntimeFn::GcWriteAt), &[parent, address], &[]);
            }
            None => {
                at.ins(Op::CallRuntime(RuntimeFn::GcWrite), &[parent], &[]);
            }
        }
        at.goto(join);
        self.func.remove_inst(inst);
        Some(join)
    }

    /// Where a barrier's only child was stored as an element, if that is certain: the only store of this value since the last safepoint of the block.
    /// The heap then looks at this element instead of all.
    fn stored_element(&self, barrier: Inst) -> Option<(Value, i32)> {
        let &[_, child] = self.func.args(barrier) else { return None };
        let mut found = None;
        let mut at = barrier;
        for _ in 0..FARTHEST_STORE {
            let Some(before) = self.func.prev_inst(at) else { return found };
            at = before;
            if is_safepoint(self.func, self.cx, at) {
                return found;
            }
            let args = self.func.args(at);
            match (self.func.op(at), args) {
                (Op::Store(access), &[address, value]) if value == child => {
                    let is_element = access.region == Region::Element && self.func.ty(address) == Type::PTR;
                    if found.is_some() || !is_element {
                        return None;
                    }
                    found = Some((address, access.offset));
                }
                // It may be for a store that is not in this block.
                (Op::WriteBarrier, _) if args == self.func.args(barrier) => return None,
                _ => {}
            }
        }
        None
    }

    /// How the tag of an object is read.
    fn tag(&self) -> Op {
        Op::Load(access(-(self.options.heap.tag_bytes as i32), Region::Header))
    }

    fn call_args(&mut self, inst: Inst, entry: RuntimeFn) {
        let args = self.func.args(inst).to_vec();
        let types = &self.cx.types;
        let mut at = Cursor::new(self.func);
        at.before(inst);
        let words = match self.frame.filter(|_| !args.is_empty()) {
            Some(frame) => {
                let base = at.ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
                for (n, &arg) in args.iter().enumerate() {
                    let word = frame.access(n as u32);
                    at.ins(Op::Store(word), &[base, arg], &[]);
                }
                word_address(&mut at, self.cx, frame, 0)
            }
            None => at.int(types, Type::PTR, 0),
        };
        let count = at.int(types, Type::I64, args.len() as i128);
        let hint = self.func.hint(inst).cloned().unwrap_or_default();
        self.func.set_op(inst, Op::CallRuntime(entry), &[words, count]);
        self.func.set_hint(inst, hint);
    }

    fn tracked_slot(&mut self, inst: Inst, slot: Slot) {
        let (Some(word), Some(frame)) = (self.tracked.word[slot], self.frame) else { return };
        let mut at = Cursor::new(self.func);
        let base = at.before(inst).ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        let offset = at.int(&self.cx.types, Type::I64, frame.offset(word).into());
        self.func.set_op(inst, Op::Intrinsic(Intrinsic::AddPtr), &[base, offset]);
    }
}
