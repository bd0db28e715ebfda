//! Emitting low IR: instructions at the current position, constants, blocks and cold exits.

use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::SlotData;
use brolga_ir::heap_abi::THREAD_FUEL;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::scalar::{Outcome, Scalar, ScalarType, eval};
use brolga_ir::{Block, Const, Inst, LowType, Op, PtrClass, RuntimeFn, Slot, Type, Value};
use smallvec::SmallVec;

/// Edges into a join, each with its block and values.
pub(super) struct Join {
    block: Block,
    ways: Vec<(Block, Leaves)>,
}

impl Lowering<'_> {
    /// An instruction at the current position, with the source place of the statement being lowered.
    pub(super) fn emit(&mut self, op: Op, args: &[Value], results: &[Type]) -> Inst {
        let inst = self.out.make_inst(op, args, &[], results);
        self.out.set_place(inst, self.place);
        match self.before {
            Some(before) => self.out.insert_before(inst, before),
            None => self.out.append_inst(inst, self.cur),
        }
        inst
    }

    /// The result of an instruction at the current position.
    pub(super) fn value(&mut self, op: Op, args: &[Value], result: Type) -> Value {
        let inst = self.emit(op, args, &[result]);
        match self.out.result(inst) {
            Some(value) => value,
            // One result was requested above.
            None => self.out.constant(Const::Undef(result)),
        }
    }

    /// The result of a pure intrinsic. Constant integers are folded, so that the pieces of a constant need no instructions,
    /// which would bind it to a position.
    pub(super) fn pure(&mut self, op: Intrinsic, args: &[Value], result: LowType) -> Value {
        match self.folded(op, args, result) {
            Some(bits) => self.int(result, bits),
            None => self.value(Op::Intrinsic(op), args, Type::low(result)),
        }
    }

    fn folded(&self, op: Intrinsic, args: &[Value], result: LowType) -> Option<u128> {
        let is_ptr = |low| matches!(low, LowType::Ptr(_));
        let mut operands = SmallVec::<[Scalar; 2]>::new();
        for &arg in args {
            let (bits, low) = (self.out.as_bits(arg)?, self.low(arg));
            let plain = low.is_int() || (op == Intrinsic::Bitcast && !is_ptr(low));
            operands.push(Scalar::new(ScalarType::Int { bits: low.bits() as u16 }, bits));
            plain.then_some(())?;
        }
        // A float type is moved as bits, in an integer of its width.
        let plain = result.is_int() || (op == Intrinsic::Bitcast && !is_ptr(result));
        plain.then_some(())?;
        match eval(op, ScalarType::Int { bits: result.bits() as u16 }, &operands).ok()? {
            Outcome::One(value) => Some(value.bits()),
            Outcome::Pair(..) => None,
        }
    }

    /// The result of a pure intrinsic with two operands.
    pub(super) fn binary(&mut self, op: Intrinsic, a: Value, b: Value, result: LowType) -> Value {
        self.pure(op, &[a, b], result)
    }

    /// A comparison of equal bits.
    pub(super) fn equal(&mut self, a: Value, b: Value) -> Value {
        self.binary(Intrinsic::EqInt, a, b, LowType::I8)
    }

    /// The opposite of a truth value.
    pub(super) fn not(&mut self, truth: Value) -> Value {
        let one = self.truth(true);
        self.binary(Intrinsic::XorInt, truth, one, LowType::I8)
    }

    /// `a` if the truth value is 1, else `b`.
    pub(super) fn choose(&mut self, truth: Value, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        let ty = self.out.ty(a);
        self.value(Op::Builtin(Builtin::Ifelse), &[truth, a, b], ty)
    }

    /// An integer constant.
    pub(super) fn int(&mut self, low: LowType, bits: u128) -> Value {
        self.out.bits(self.types, Type::low(low), bits)
    }

    /// An `i64` constant.
    pub(super) fn word(&mut self, value: i64) -> Value {
        self.int(LowType::I64, u128::from(value.cast_unsigned()))
    }

    /// A truth value as a constant.
    pub(super) fn truth(&mut self, value: bool) -> Value {
        self.int(LowType::I8, u128::from(value))
    }

    /// The low type of a low value.
    pub(super) fn low(&self, value: Value) -> LowType {
        // Every value of the function being made has a low type.
        self.out.ty(value).as_low().unwrap_or(LowType::I64)
    }

    /// The same bits under another low type of the same size.
    pub(super) fn bitcast(&mut self, value: Value, to: LowType) -> Value {
        let from = self.low(value);
        if from == to {
            return value;
        }
        let is_ptr = |low| matches!(low, LowType::Ptr(_));
        // Between a pointer and a float there is an integer, so that the back end sees two cases only.
        let between = (is_ptr(from) && to.is_float()) || (from.is_float() && is_ptr(to));
        let value =
            if between { self.value(Op::Intrinsic(Intrinsic::Bitcast), &[value], Type::I64) } else { value };
        self.pure(Intrinsic::Bitcast, &[value], to)
    }

    /// The bits of a low value as an integer of its own width.
    pub(super) fn bits_of(&mut self, value: Value) -> Value {
        let low = self.low(value);
        match LowType::int(low.bits()) {
            Some(int) => self.bitcast(value, int),
            None => value,
        }
    }

    /// An integer widened by zeros or cut to another width.
    pub(super) fn resize(&mut self, value: Value, to: LowType) -> Value {
        let from = self.low(value);
        let op = match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Equal => return value,
            std::cmp::Ordering::Less => Intrinsic::ZextInt,
            std::cmp::Ordering::Greater => Intrinsic::TruncInt,
        };
        self.pure(op, &[value], to)
    }

    /// The lowest bit of a byte: the truth value that it represents.
    pub(super) fn lowest_bit(&mut self, byte: Value) -> Value {
        let one = self.truth(true);
        self.binary(Intrinsic::AndInt, byte, one, LowType::I8)
    }

    /// An address moved by a constant number of bytes.
    pub(super) fn moved(&mut self, base: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return base;
        }
        let bytes = self.word(bytes);
        self.moved_by(base, bytes)
    }

    /// An address moved by a number of bytes. An address inside an object stays known as one.
    pub(super) fn moved_by(&mut self, base: Value, bytes: Value) -> Value {
        let class = match self.low(base) {
            LowType::Ptr(PtrClass::Tracked | PtrClass::Derived) => Type::DERIVED,
            LowType::Ptr(PtrClass::Loaded) => Type::LOADED,
            _ => Type::PTR,
        };
        self.value(Op::Intrinsic(Intrinsic::AddPtr), &[base, bytes], class)
    }

    /// A fresh piece of stack memory.
    pub(super) fn slot(&mut self, size: u32, align: u32) -> Slot {
        self.out.add_slot(SlotData::bytes(size, align.max(1).ilog2() as u8))
    }

    /// The address of a piece of stack memory.
    pub(super) fn slot_addr(&mut self, slot: Slot) -> Value {
        self.value(Op::SlotAddr(slot), &[], Type::PTR)
    }

    /// Copies a constant number of bytes.
    pub(super) fn copy_bytes(&mut self, to: Value, from: Value, size: u32) {
        let size = self.word(i64::from(size));
        self.emit(Op::MemCopy, &[to, from, size], &[]);
    }

    // ----- blocks -----

    /// Ends the current block.
    pub(super) fn terminate(&mut self, op: Op, args: &[Value], targets: &[Block]) -> Inst {
        let inst = self.out.make_inst(op, args, targets, &[]);
        self.out.set_place(inst, self.place);
        self.out.append_inst(inst, self.cur);
        inst
    }

    /// A new block right after the current one.
    pub(super) fn next_block(&mut self) -> Block {
        let block = self.out.make_block();
        self.out.insert_block_after(block, self.cur);
        block
    }

    /// Throws if `bad` is 1, in a block at the end of the function; continues in a new block if not.
    pub(super) fn throw_if(&mut self, bad: Value, entry: RuntimeFn, args: &[Value]) {
        // Throwing itself cannot be refused.
        let _ = self.throw_if_with(bad, |lowering| {
            lowering.throw(entry, args);
            Ok(())
        });
    }

    /// Throws as `throw` says if `bad` is 1, in blocks at the end of the function; continues in a new block if not.
    pub(super) fn throw_if_with(
        &mut self,
        bad: Value,
        throw: impl FnOnce(&mut Self) -> Step<()>,
    ) -> Step<()> {
        if self.out.as_bits(bad) == Some(0) {
            return Ok(());
        }
        let go_on = self.next_block();
        let cold = self.out.make_block();
        self.out.append_block(cold);
        self.out.set_cold(cold);
        self.terminate(Op::Branch, &[bad], &[cold, go_on]);
        self.cur = cold;
        let thrown = throw(self);
        self.terminate(Op::Unreachable, &[], &[]);
        self.cur = go_on;
        thrown
    }

    /// Takes units of the thread's fuel; a block at the end of the function requests more.
    pub(super) fn spend(&mut self, units: u32) -> Step<()> {
        let counter = Access { offset: THREAD_FUEL, region: Region::Thread, align_log2: 2 };
        let thread = self.value(Op::ThreadAddr, &[], Type::PTR);
        let left = self.value(Op::Load(counter), &[thread], Type::I32);
        let units = self.int(LowType::I32, units.into());
        let left = self.value(Op::Intrinsic(Intrinsic::SubInt), &[left, units], Type::I32);
        self.emit(Op::Store(counter), &[thread, left], &[]);
        let none = self.int(LowType::I32, 0);
        let out = self.value(Op::Intrinsic(Intrinsic::SltInt), &[left, none], Type::I8);
        let go_on = self.next_block();
        let cold = self.out.make_block();
        self.out.append_block(cold);
        self.out.set_cold(cold);
        self.terminate(Op::Branch, &[out], &[cold, go_on]);
        self.cur = cold;
        self.value(Op::CallRuntime(RuntimeFn::Refuel), &[], Type::TRACKED);
        self.terminate(Op::Goto, &[], &[go_on]);
        self.cur = go_on;
        self.define(Val::ghost(Type::NOTHING))
    }

    /// Continues in a new block if `truth` is 1. Returns the block for 0, to be continued later.
    pub(super) fn split(&mut self, truth: Value) -> Block {
        let yes = self.next_block();
        let no = self.out.make_block();
        self.terminate(Op::Branch, &[truth], &[yes, no]);
        self.cur = yes;
        no
    }

    /// Continues in a block that has no place yet.
    pub(super) fn continue_in(&mut self, block: Block) {
        self.out.insert_block_after(block, self.cur);
        self.cur = block;
    }

    /// A block where several edges join.
    pub(super) fn join(&mut self) -> Join {
        Join { block: self.out.make_block(), ways: Vec::new() }
    }

    /// Ends the current block, which continues with these values at the join.
    pub(super) fn leave_to(&mut self, join: &mut Join, leaves: Leaves) {
        self.terminate(Op::Goto, &[], &[join.block]);
        join.ways.push((self.cur, leaves));
    }

    /// Continues at the join. Returns the values of the edge that was taken.
    pub(super) fn meet(&mut self, join: Join) -> Leaves {
        self.continue_in(join.block);
        let count = join.ways.first().map_or(0, |(_, leaves)| leaves.len());
        (0..count)
            .filter_map(|n| {
                let low = self.out.ty(join.ways.first()?.1[n]);
                let phi = self.emit(Op::Phi, &[], &[low]);
                for (block, leaves) in &join.ways {
                    self.out.add_phi_edge(phi, *block, *leaves.get(n)?);
                }
                self.out.result(phi)
            })
            .collect()
    }

    /// Throws here. The rest of the block must be `unreachable`.
    pub(super) fn throw(&mut self, entry: RuntimeFn, args: &[Value]) {
        self.emit(Op::CallRuntime(entry), args, &[]);
    }
}
