//! Intrinsics on registers: nearly all keep their opcode and lose their Julia types.
//!
//! | high | low |
//! |---|---|
//! | arithmetic, shifts, comparisons on integers, floats | the same intrinsic |
//! | the same on `Bool` | on the byte, then the lowest bit, where the byte may leave 0 and 1 |
//! | `not_int` of `Bool` | `xor 1` |
//! | integer operations on `Ptr` | on its bits |
//! | conversions between types with one register form | nothing |
//! | `checked_sadd_int` … | two results: the wrapped value, and whether it wrapped |
//! | division | a branch to a cold throw for a divisor of zero (signed: and for typemin ÷ -1), then the plain division |
//! | `have_fma` | whether the target has it; `fma_float` is exact everywhere |
//! | `muladd_float` | `fma_float` if the target has it |
//!
//! So a division in low IR never fails. The result of each operation is as in `brolga_ir::scalar`, which defines shifts
//! by too much, conversions out of range and `srem_int` by -1.

use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::{LowType, Op, RuntimeFn, Type, Value};

/// Whether an operation on bytes that are 0 or 1 yields 0 or 1.
fn keeps_truth(op: Intrinsic) -> bool {
    matches!(
        op,
        Intrinsic::AndInt
            | Intrinsic::OrInt
            | Intrinsic::XorInt
            | Intrinsic::MulInt
            | Intrinsic::LshrInt
            | Intrinsic::AshrInt
            | Intrinsic::CtpopInt
            | Intrinsic::FlipsignInt
    ) || matches!(op.shape(), Shape::IntDivide | Shape::IntCompare | Shape::FloatCompare)
}

impl Lowering<'_> {
    pub(super) fn intrinsic(&mut self, op: Intrinsic) -> Step<()> {
        match op.shape() {
            Shape::IntUnary
            | Shape::IntBinary
            | Shape::Shift
            | Shape::FloatUnary
            | Shape::FloatBinary
            | Shape::FloatTernary => self.arithmetic(op),
            Shape::IntCompare | Shape::FloatCompare => self.comparison(op),
            Shape::IntDivide => self.division(op),
            Shape::CheckedPair => self.checked_pair(op),
            Shape::Convert(kind) => self.conversion(op, kind),
            Shape::PtrOffset => self.pointer_offset(op),
            Shape::PtrLoad => self.pointerref(),
            Shape::PtrStore => self.pointerset(),
            Shape::AtomicFence => self.atomic_fence(op),
            Shape::AtomicLoad => self.atomic_load(op),
            Shape::AtomicStore => self.atomic_store(op),
            Shape::AtomicSwap => self.atomic_swap(op),
            Shape::AtomicModify => self.atomic_modify(op),
            Shape::AtomicReplace => self.atomic_replace(op),
            Shape::Query => {
                let of = self.src.args(self.at).first().and_then(|&v| self.src.as_const(v));
                let is_known = matches!(of, Some(Const::Type { of: Type::FLOAT32 | Type::FLOAT64, .. }));
                let has = self.truth(is_known && self.cpu.fma);
                self.define(Val::scalar(Type::BOOL, has))
            }
            Shape::Foreign => Err(self.report(super::error::Refusal::Refused {
                why: op.refusal().unwrap_or("it refers to something outside the IR"),
            })),
        }
    }

    /// The operands, each in one register; addresses as integers if the operation is one on integers.
    fn registers(&mut self, op: Intrinsic) -> Step<(Leaves, Type)> {
        let count = self.src.args(self.at).len();
        if !op.arity().allows(count) {
            return Err(self.bad_operands());
        }
        let floats = matches!(
            op.shape(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::FloatTernary | Shape::FloatCompare
        );
        let mut leaves = Leaves::new();
        let mut first = Type::NOTHING;
        for n in 0..count {
            let (leaf, ty) = self.scalar_operand(n)?;
            let leaf = match self.low(leaf) {
                LowType::Ptr(_) => self.bitcast(leaf, LowType::I64),
                _ => leaf,
            };
            if n == 0 {
                first = ty;
            }
            let same =
                op.shape() == Shape::Shift || leaves.first().is_none_or(|&v| self.low(v) == self.low(leaf));
            if self.low(leaf).is_float() != floats || !same {
                return Err(self.bad_operands());
            }
            leaves.push(leaf);
        }
        Ok((leaves, first))
    }

    /// The result of an operation as a value of type `ty`: an address or a truth value if `ty` is one.
    fn finish(&mut self, value: Value, op: Intrinsic, ty: Type) -> Step<()> {
        let form = self.form(ty)?;
        let Some(leaf) = form.leaves.first() else { return Err(self.bad_operands()) };
        let value = match (ty, leaf.low) {
            (Type::BOOL, _) if !keeps_truth(op) => self.lowest_bit(value),
            (_, low @ LowType::Ptr(_)) => self.bitcast(value, low),
            _ => value,
        };
        self.define(Val::scalar(ty, value))
    }

    fn arithmetic(&mut self, op: Intrinsic) -> Step<()> {
        let (args, ty) = self.registers(op)?;
        let low = self.low(args[0]);
        if op == Intrinsic::NotInt && ty == Type::BOOL {
            let not = self.not(args[0]);
            return self.define(Val::scalar(ty, not));
        }
        if op == Intrinsic::BswapInt && low == LowType::I8 {
            return self.define(Val::scalar(ty, args[0]));
        }
        let fuses = op == Intrinsic::MuladdFloat && low != LowType::F16 && self.cpu.fma;
        let op = if fuses { Intrinsic::FmaFloat } else { op };
        let value = self.value(Op::Intrinsic(op), &args, Type::low(low));
        self.finish(value, op, ty)
    }

    fn comparison(&mut self, op: Intrinsic) -> Step<()> {
        let (args, _) = self.registers(op)?;
        let value = self.value(Op::Intrinsic(op), &args, Type::I8);
        self.define(Val::scalar(Type::BOOL, value))
    }

    fn checked_pair(&mut self, op: Intrinsic) -> Step<()> {
        let (args, ty) = self.registers(op)?;
        let low = self.low(args[0]);
        let inst = self.emit(Op::Intrinsic(op), &args, &[Type::low(low), Type::I8]);
        let mut results: Leaves = self.out.results(inst).collect();
        if ty == Type::BOOL {
            results[0] = self.lowest_bit(results[0]);
        }
        if self.form(ty)?.low_types().next() == Some(Type::PTR) {
            return Err(self.bad_operands());
        }
        let pair = self.types.tuple(&[ty, Type::BOOL]).map_err(|_| self.bad_operands())?;
        self.define(Val { ty: pair, leaves: results })
    }

    fn division(&mut self, op: Intrinsic) -> Step<()> {
        let (args, ty) = self.registers(op)?;
        let low = self.low(args[0]);
        let plain = match op {
            Intrinsic::CheckedSdivInt => Intrinsic::SdivInt,
            Intrinsic::CheckedUdivInt => Intrinsic::UdivInt,
            Intrinsic::CheckedSremInt => Intrinsic::SremInt,
            Intrinsic::CheckedUremInt => Intrinsic::UremInt,
            other => other,
        };
        let zero = self.int(low, 0);
        match self.out.as_bits(args[1]) {
            Some(0) => {
                let always = self.truth(true);
                self.throw_if(always, RuntimeFn::ThrowDivide, &[]);
            }
            Some(_) => {}
            None => {
                let bad = self.equal(args[1], zero);
                self.throw_if(bad, RuntimeFn::ThrowDivide, &[]);
            }
        }
        let all_ones = if low.bits() == 128 { u128::MAX } else { (1 << low.bits()) - 1 };
        if plain == Intrinsic::SdivInt && self.out.as_bits(args[1]).is_none_or(|bits| bits == all_ones) {
            let minus_one = self.int(low, all_ones);
            let typemin = self.int(low, 1 << (low.bits() - 1));
            let least = self.equal(args[0], typemin);
            let by_minus_one = self.equal(args[1], minus_one);
            let bad = self.binary(Intrinsic::AndInt, least, by_minus_one, LowType::I8);
            self.throw_if(bad, RuntimeFn::ThrowDivide, &[]);
        }
        let value = self.binary(plain, args[0], args[1], low);
        self.finish(value, plain, ty)
    }

    fn pointer_offset(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, ty) = self.scalar_operand(0)?;
        let (offset, _) = self.scalar_operand(1)?;
        if self.low(offset) != LowType::I64 {
            return Err(self.bad_operands());
        }
        let op = match (self.low(pointer), op) {
            (LowType::Ptr(_), op) => op,
            (LowType::I64, Intrinsic::AddPtr) => Intrinsic::AddInt,
            (LowType::I64, _) => Intrinsic::SubInt,
            _ => return Err(self.bad_operands()),
        };
        let value = self.binary(op, pointer, offset, self.low(pointer));
        self.define(Val::scalar(ty, value))
    }

    fn conversion(&mut self, op: Intrinsic, kind: Convert) -> Step<()> {
        let (value, from) = self.scalar_operand(0)?;
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let to = self.src.ty(result);
        let form = self.form(to)?;
        let (old, Some(new)) = (self.low(value), form.leaves.first().map(|l| l.low)) else {
            return Err(self.bad_operands());
        };
        if form.leaves.len() != 1
            || form.is_memory()
            || form.is_object()
            || !self.conversion_fits(kind, (from, old), (to, new))
        {
            return Err(self.bad_operands());
        }
        let value = match kind {
            Convert::Bits => self.bitcast(value, new),
            _ if old == new => value,
            _ => {
                let int = |low| if matches!(low, LowType::Ptr(_)) { LowType::I64 } else { low };
                let value = self.bitcast(value, int(old));
                let value = self.value(Op::Intrinsic(op), &[value], Type::low(int(new)));
                self.bitcast(value, new)
            }
        };
        let value = if to == Type::BOOL && from != Type::BOOL { self.lowest_bit(value) } else { value };
        self.define(Val::scalar(to, value))
    }

    /// Whether a conversion exists between two types. `Bool` counts as narrower than the other types of a byte.
    fn conversion_fits(&self, kind: Convert, from: (Type, LowType), to: (Type, LowType)) -> bool {
        let width = |(ty, low): (Type, LowType)| if ty == Type::BOOL { 1 } else { low.bits() };
        let float = |(_, low): (Type, LowType)| low.is_float();
        match kind {
            Convert::Bits => from.1.bits() == to.1.bits(),
            Convert::SignExtend | Convert::ZeroExtend => {
                !float(from) && !float(to) && width(from) < width(to)
            }
            Convert::Truncate => !float(from) && !float(to) && width(from) > width(to),
            Convert::FloatToSigned | Convert::FloatToUnsigned => float(from) && !float(to),
            Convert::SignedToFloat | Convert::UnsignedToFloat => !float(from) && float(to),
            Convert::FloatTruncate => float(from) && float(to) && width(from) > width(to),
            Convert::FloatExtend => float(from) && float(to) && width(from) < width(to),
        }
    }
}
