//! Integers: arithmetic, shifts, comparisons, checked pairs, division.
//!
//! Cranelift leaves these to the caller; they are completed here:
//!
//! - *Shift counts* at least as wide as the value yield zero or the sign; Cranelift takes them modulo the width. A count
//!   that is masked to less than the width needs no test, and a mask of `width - 1` is redundant in Cranelift.
//! - *Division* by zero, and the quotient of typemin by −1, throw `DivideError`; Cranelift would stop the process. A
//!   constant divisor other than 0 and −1 needs no check, and neither does a case that an earlier branch
//!   excludes: `lower` makes such branches, where passes can see them. `srem_int(typemin, -1)` is 0.
//! - *128-bit* division and checked multiplication have no instruction: routines and long multiplication.

use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Inst, LowType, Op};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

use super::{Done, TranslateError, Translation, abi_of};
use crate::wide::neighbour_of_power;

/// How many blocks above a division are searched for the branch that guards it. `lower` puts it at most two above.
const GUARD_DISTANCE: usize = 4;

/// The two values of a checked operation: the wrapped result, and whether it wrapped.
type Checked = (Value, Value);

impl Translation<'_> {
    pub(super) fn int(&mut self, inst: Inst, op: Intrinsic) -> Done {
        match op.shape() {
            Shape::IntUnary => self.int_unary(inst, op),
            Shape::Shift => self.shift(inst, op),
            Shape::IntDivide => self.divide(inst, op),
            Shape::CheckedPair => self.checked(inst, op),
            Shape::IntCompare => {
                let truth = self.int_compare(inst, op, false)?;
                self.define(inst, &[truth])
            }
            _ => self.int_binary(inst, op),
        }
    }

    fn int_unary(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let x = self.arg(inst, 0)?;
        let low = self.int_type(inst, 0)?;
        let ins = self.b.ins();
        let value = match op {
            Intrinsic::NegInt => ins.ineg(x),
            Intrinsic::NotInt => ins.bnot(x),
            Intrinsic::BswapInt if low == LowType::I8 => x,
            Intrinsic::BswapInt => ins.bswap(x),
            Intrinsic::BitreverseInt => ins.bitrev(x),
            Intrinsic::CtpopInt => ins.popcnt(x),
            Intrinsic::CtlzInt => ins.clz(x),
            Intrinsic::CttzInt => ins.ctz(x),
            _ => return self.bad(inst),
        };
        self.define(inst, &[value])
    }

    /// A product with a neighbour of a power of two as a shift and a sum or difference, where a product takes three cycles.
    fn shifted_sum(&mut self, inst: Inst, x: Value) -> Option<Value> {
        let factor = self.func.args(inst).get(1).and_then(|&v| self.func.as_bits(v))?;
        let ty = self.b.func.dfg.value_type(x);
        if ty != types::I32 && ty != types::I64 {
            return None;
        }
        let (shift, is_above) = neighbour_of_power(factor)?;
        let shifted = self.b.ins().ishl_imm_u(x, i64::from(shift));
        Some(if is_above { self.b.ins().iadd(x, shifted) } else { self.b.ins().isub(shifted, x) })
    }

    fn int_binary(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let (x, y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        if !self.same_width(x, y) {
            return self.bad(inst);
        }
        if op == Intrinsic::MulInt
            && let Some(sum) = self.shifted_sum(inst, x)
        {
            return self.define(inst, &[sum]);
        }
        let ins = self.b.ins();
        let value = match op {
            Intrinsic::AddInt | Intrinsic::AddPtr => ins.iadd(x, y),
            Intrinsic::SubInt | Intrinsic::SubPtr => ins.isub(x, y),
            Intrinsic::MulInt => ins.imul(x, y),
            Intrinsic::AndInt => ins.band(x, y),
            Intrinsic::OrInt => ins.bor(x, y),
            Intrinsic::XorInt => ins.bxor(x, y),
            Intrinsic::FlipsignInt => {
                let negated = self.b.ins().ineg(x);
                let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, y, 0);
                self.b.ins().select(negative, negated, x)
            }
            _ => return self.bad(inst),
        };
        self.define(inst, &[value])
    }

    fn shift(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let (x, count) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        let low = self.int_type(inst, 0)?;
        let count_low = self.int_type(inst, 1)?;
        let width = low.bits();
        let arithmetic = op == Intrinsic::AshrInt;
        let known = self.func.args(inst).get(1).and_then(|&v| self.func.as_bits(v));
        if let Some(bits) = known {
            let most = u128::from(width) - 1;
            let value = if bits <= most || arithmetic {
                let count = self.b.ins().iconst(types::I32, bits.min(most) as i64);
                self.shifted(inst, op, x, count)?
            } else {
                self.zero(low)
            };
            return self.define(inst, &[value]);
        }
        if let Some(count) = self.near_count(inst, width)? {
            let count = self.shift_count(count);
            let value = self.shifted(inst, op, x, count)?;
            return self.define(inst, &[value]);
        }
        // Every type of counts can hold the width: eight bits hold up to 255.
        let too_far = {
            let limit = self.bits(count_low, u128::from(width));
            self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, count, limit)
        };
        let value = if arithmetic {
            let most = self.bits(count_low, u128::from(width) - 1);
            let count = self.b.ins().select(too_far, most, count);
            let count = self.shift_count(count);
            self.shifted(inst, op, x, count)?
        } else {
            let count = self.shift_count(count);
            let shifted = self.shifted(inst, op, x, count)?;
            let zero = self.zero(low);
            self.b.ins().select(too_far, zero, shifted)
        };
        self.define(inst, &[value])
    }

    /// A value with the low bits of a shift's count, if the count is masked to at most `width - 1`.
    pub(super) fn near_count(&mut self, inst: Inst, width: u32) -> Result<Option<Value>, TranslateError> {
        let func = self.func;
        let Some(&count) = func.args(inst).get(1) else { return Ok(None) };
        let masked = func.def_inst(count).filter(|&def| func.op(def) == Op::Intrinsic(Intrinsic::AndInt));
        let Some(masked) = masked else { return Ok(None) };
        let most = u128::from(width) - 1;
        let mask = |n: usize| func.args(masked).get(n).and_then(|&part| func.as_bits(part));
        let known = [0, 1].into_iter().find_map(|n| Some((n, mask(n).filter(|&bits| bits <= most)?)));
        match known {
            // The width is a power of two.
            Some((n, bits)) if bits == most => self.arg(masked, 1 - n).map(Some),
            Some(_) => self.arg(inst, 1).map(Some),
            None => Ok(None),
        }
    }

    /// Cranelift reads only the low bits of a count, so a wide one can be cut.
    fn shift_count(&mut self, count: Value) -> Value {
        if self.b.func.dfg.value_type(count) == types::I128 {
            self.b.ins().ireduce(types::I64, count)
        } else {
            count
        }
    }

    fn shifted(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        x: Value,
        count: Value,
    ) -> Result<Value, TranslateError> {
        Ok(match op {
            Intrinsic::ShlInt => self.b.ins().ishl(x, count),
            Intrinsic::LshrInt => self.b.ins().ushr(x, count),
            Intrinsic::AshrInt => self.b.ins().sshr(x, count),
            _ => return self.bad(inst),
        })
    }

    /// The comparison `inst` makes, or its opposite.
    pub(super) fn int_compare(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        invert: bool,
    ) -> Result<Value, TranslateError> {
        let cc = match op {
            Intrinsic::EqInt => IntCC::Equal,
            Intrinsic::NeInt => IntCC::NotEqual,
            Intrinsic::SltInt => IntCC::SignedLessThan,
            Intrinsic::SleInt => IntCC::SignedLessThanOrEqual,
            Intrinsic::UltInt => IntCC::UnsignedLessThan,
            Intrinsic::UleInt => IntCC::UnsignedLessThanOrEqual,
            _ => return self.bad(inst),
        };
        let (x, y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        if !self.same_width(x, y) || !self.b.func.dfg.value_type(x).is_int() {
            return self.bad(inst);
        }
        let cc = if invert { cc.complement() } else { cc };
        Ok(self.b.ins().icmp(cc, x, y))
    }

    // ----- checked pairs -----

    fn checked(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let (x, y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        let low = self.int_type(inst, 0)?;
        if !self.same_width(x, y) {
            return self.bad(inst);
        }
        let (value, wrapped) = match low {
            LowType::I8 | LowType::I16 => self.checked_narrow(inst, op, low, x, y)?,
            LowType::I128 => self.checked_wide(inst, op, x, y)?,
            _ => {
                let ins = self.b.ins();
                match op {
                    Intrinsic::CheckedSaddInt => ins.sadd_overflow(x, y),
                    Intrinsic::CheckedUaddInt => ins.uadd_overflow(x, y),
                    Intrinsic::CheckedSsubInt => ins.ssub_overflow(x, y),
                    Intrinsic::CheckedUsubInt => ins.usub_overflow(x, y),
                    Intrinsic::CheckedSmulInt => ins.smul_overflow(x, y),
                    Intrinsic::CheckedUmulInt => ins.umul_overflow(x, y),
                    _ => return self.bad(inst),
                }
            }
        };
        self.define(inst, &[value, wrapped])
    }

    /// Eight and sixteen bits: computed exactly in 32 bits, which wrapped if narrowing changes it.
    fn checked_narrow(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        low: LowType,
        x: Value,
        y: Value,
    ) -> Result<Checked, TranslateError> {
        let signed =
            matches!(op, Intrinsic::CheckedSaddInt | Intrinsic::CheckedSsubInt | Intrinsic::CheckedSmulInt);
        let (x, y) = (self.extend(signed, types::I32, x), self.extend(signed, types::I32, y));
        let exact = match op {
            Intrinsic::CheckedSaddInt | Intrinsic::CheckedUaddInt => self.b.ins().iadd(x, y),
            Intrinsic::CheckedSsubInt | Intrinsic::CheckedUsubInt => self.b.ins().isub(x, y),
            Intrinsic::CheckedSmulInt | Intrinsic::CheckedUmulInt => self.b.ins().imul(x, y),
            _ => return self.bad(inst),
        };
        let value = self.b.ins().ireduce(abi_of(low).clif(), exact);
        let back = self.extend(signed, types::I32, value);
        let wrapped = self.b.ins().icmp(IntCC::NotEqual, back, exact);
        Ok((value, wrapped))
    }

    fn checked_wide(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        x: Value,
        y: Value,
    ) -> Result<Checked, TranslateError> {
        Ok(match op {
            Intrinsic::CheckedUaddInt => {
                let sum = self.b.ins().iadd(x, y);
                (sum, self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x))
            }
            Intrinsic::CheckedUsubInt => {
                let difference = self.b.ins().isub(x, y);
                (difference, self.b.ins().icmp(IntCC::UnsignedLessThan, x, y))
            }
            Intrinsic::CheckedSaddInt => {
                // It wrapped if both operands differ in sign from the sum.
                let sum = self.b.ins().iadd(x, y);
                let (a, b) = (self.b.ins().bxor(x, sum), self.b.ins().bxor(y, sum));
                let both = self.b.ins().band(a, b);
                (sum, self.is_negative(both))
            }
            Intrinsic::CheckedSsubInt => {
                // It wrapped if the operands differ in sign, and the first differs from the difference.
                let difference = self.b.ins().isub(x, y);
                let (a, b) = (self.b.ins().bxor(x, y), self.b.ins().bxor(x, difference));
                let both = self.b.ins().band(a, b);
                (difference, self.is_negative(both))
            }
            Intrinsic::CheckedUmulInt => self.checked_umul128(x, y),
            Intrinsic::CheckedSmulInt => self.checked_smul128(x, y),
            _ => return self.bad(inst),
        })
    }

    /// With halves `x = xh:xl` and `y = yh:yl`, the product is `xl·yl + (xh·yl + xl·yh)·2^64 + xh·yh·2^128`. It wraps if
    /// both high halves are there, if a cross product needs more than 64 bits, or if the sum carries out.
    fn checked_umul128(&mut self, x: Value, y: Value) -> Checked {
        let (xl, xh) = self.b.ins().isplit(x);
        let (yl, yh) = self.b.ins().isplit(y);
        let zero = self.b.ins().iconst(types::I64, 0);
        let not_zero = |t: &mut Self, v| t.b.ins().icmp(IntCC::NotEqual, v, zero);
        let (xh_there, yh_there) = (not_zero(self, xh), not_zero(self, yh));
        let mut wrapped = self.b.ins().band(xh_there, yh_there);
        for (high, low) in [(xh, yl), (yh, xl)] {
            let over = self.b.ins().umulhi(high, low);
            let over = not_zero(self, over);
            wrapped = self.b.ins().bor(wrapped, over);
        }
        let (a, b) = (self.b.ins().imul(xh, yl), self.b.ins().imul(xl, yh));
        // At most one of the two is not zero unless it wrapped already, so their sum carries nothing.
        let cross = self.b.ins().iadd(a, b);
        let carried = self.b.ins().umulhi(xl, yl);
        let high = self.b.ins().iadd(cross, carried);
        let carry = self.b.ins().icmp(IntCC::UnsignedLessThan, high, cross);
        wrapped = self.b.ins().bor(wrapped, carry);
        let low = self.b.ins().imul(xl, yl);
        (self.b.ins().iconcat(low, high), wrapped)
    }

    /// Magnitudes multiplied without sign; the least negative product has a magnitude one greater than the largest positive
    /// one.
    fn checked_smul128(&mut self, x: Value, y: Value) -> Checked {
        let (x_negative, y_negative) = (self.is_negative(x), self.is_negative(y));
        let magnitude = |t: &mut Self, v, negative| {
            let negated = t.b.ins().ineg(v);
            t.b.ins().select(negative, negated, v)
        };
        let (x, y) = (magnitude(self, x, x_negative), magnitude(self, y, y_negative));
        let (product, wrapped) = self.checked_umul128(x, y);
        let negative = self.b.ins().bxor(x_negative, y_negative);
        let negated = self.b.ins().ineg(product);
        let value = self.b.ins().select(negative, negated, product);
        // The sign bit of the result must be the sign, unless the product is zero.
        let sign = self.is_negative(value);
        let wrong = self.b.ins().bxor(sign, negative);
        let (low, high) = self.b.ins().isplit(product);
        let any = self.b.ins().bor(low, high);
        let there = self.b.ins().icmp_imm_u(IntCC::NotEqual, any, 0);
        let wrong = self.b.ins().band(wrong, there);
        (value, self.b.ins().bor(wrapped, wrong))
    }

    // ----- division -----

    fn divide(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let (x, y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        let low = self.int_type(inst, 0)?;
        if !self.same_width(x, y) {
            return self.bad(inst);
        }
        let (signed, remainder) = match op {
            Intrinsic::SdivInt | Intrinsic::CheckedSdivInt => (true, false),
            Intrinsic::UdivInt | Intrinsic::CheckedUdivInt => (false, false),
            Intrinsic::SremInt | Intrinsic::CheckedSremInt => (true, true),
            Intrinsic::UremInt | Intrinsic::CheckedUremInt => (false, true),
            _ => return self.bad(inst),
        };
        let known = self.func.args(inst).get(1).and_then(|&v| self.func.as_bits(v));
        let ones = if low == LowType::I128 { u128::MAX } else { (1 << low.bits()) - 1 };
        if known.is_none_or(|bits| bits == 0) && !self.is_led_away(inst, &[(1, 0)]) {
            let zero = self.zero(low);
            let bad = self.b.ins().icmp(IntCC::Equal, y, zero);
            self.throw_if(bad, Self::throw_divide);
        }
        let mut divisor = y;
        if signed && known.is_none_or(|bits| bits == ones) {
            let minus_one = self.bits(low, ones);
            let is_minus_one = self.b.ins().icmp(IntCC::Equal, y, minus_one);
            if remainder {
                // Every remainder by 1 is 0 too, and this one does not trap.
                let one = self.bits(low, 1);
                divisor = self.b.ins().select(is_minus_one, one, y);
            } else if !self.is_led_away(inst, &[(1, ones), (0, 1 << (low.bits() - 1))]) {
                let least = self.bits(low, 1 << (low.bits() - 1));
                let is_least = self.b.ins().icmp(IntCC::Equal, x, least);
                let bad = self.b.ins().band(is_minus_one, is_least);
                self.throw_if(bad, Self::throw_divide);
            }
        }
        let value = if low == LowType::I128 {
            let routine = match (signed, remainder) {
                (true, false) => "brolga_i128_div",
                (true, true) => "brolga_i128_rem",
                (false, false) => "brolga_u128_div",
                (false, true) => "brolga_u128_rem",
            };
            self.wide_routine(inst, routine, &[x, divisor])?
        } else {
            let ins = self.b.ins();
            match (signed, remainder) {
                (true, false) => ins.sdiv(x, divisor),
                (true, true) => ins.srem(x, divisor),
                (false, false) => ins.udiv(x, divisor),
                (false, true) => ins.urem(x, divisor),
            }
        };
        self.define(inst, &[value])
    }

    /// Whether control reaches the division only past a branch that leaves if its operands have these bits, given as
    /// operand numbers with bits.
    fn is_led_away(&self, inst: Inst, wanted: &[(usize, u128)]) -> bool {
        let func = self.func;
        let Some(mut block) = func.inst_block(inst) else { return false };
        for _ in 0..GUARD_DISTANCE {
            let Some(above) = self.cfg.single_pred(block) else { return false };
            if let Some(branch) = func.terminator(above)
                && func.op(branch) == Op::Branch
                && matches!(*func.inst_blocks(branch), [yes, no] if no == block && yes != block)
                && self.holds_if(func.args(branch)[0], inst, wanted)
            {
                return true;
            }
            block = above;
        }
        false
    }

    /// Whether `cond` is true whenever the operands have these bits: it compares one of them, or is the conjunction
    /// of such comparisons.
    fn holds_if(&self, cond: brolga_ir::Value, inst: Inst, wanted: &[(usize, u128)]) -> bool {
        let func = self.func;
        let Some(def) = func.def_inst(cond) else { return false };
        match (func.op(def), func.args(def)) {
            (Op::Intrinsic(Intrinsic::EqInt), &[a, b]) => wanted.iter().any(|&(n, bits)| {
                let operand = func.args(inst)[n];
                (a == operand && func.as_bits(b) == Some(bits))
                    || (b == operand && func.as_bits(a) == Some(bits))
            }),
            (Op::Intrinsic(Intrinsic::AndInt), &[a, b]) => {
                let compares = |v| {
                    func.def_inst(v).is_some_and(|i| func.op(i) == Op::Intrinsic(Intrinsic::EqInt))
                        && self.holds_if(v, inst, wanted)
                };
                compares(a) && compares(b)
            }
            _ => false,
        }
    }

    // ----- helpers -----

    /// The type of operand `n`, which must be an integer or a pointer.
    fn int_type(&self, inst: Inst, n: usize) -> Result<LowType, TranslateError> {
        match self.low_type(inst, n)? {
            low if low.is_float() => self.bad(inst),
            low => Ok(low),
        }
    }

    pub(super) fn same_width(&self, x: Value, y: Value) -> bool {
        self.b.func.dfg.value_type(x) == self.b.func.dfg.value_type(y)
    }

    pub(super) fn extend(&mut self, signed: bool, to: Type, value: Value) -> Value {
        if self.b.func.dfg.value_type(value) == to {
            value
        } else if signed {
            self.b.ins().sextend(to, value)
        } else {
            self.b.ins().uextend(to, value)
        }
    }

    fn is_negative(&mut self, wide: Value) -> Value {
        let (_, high) = self.b.ins().isplit(wide);
        self.b.ins().icmp_imm_s(IntCC::SignedLessThan, high, 0)
    }
}
