//! Floats: arithmetic and comparisons. `Float16` is computed in `Float32` or `Float64` and rounded back.
//!
//! Rounding twice is harmless for one sum, difference, product, quotient or root: a `Float32` has more than twice the
//! digits of a `Float16` plus two (Figueroa 1995). For `fma` it is not: there the sum in `Float64` is rounded *to odd*
//! first, which keeps the information that the second rounding needs (Boldo and Melquiond 2008).
//!
//! A `Float16` value is the `i16` of its bits, here and at calls.

use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Inst, LowType};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use super::{Done, TranslateError, Translation};

const SIGN16: i64 = 0x8000;

impl Translation<'_> {
    pub(super) fn float(&mut self, inst: Inst, op: Intrinsic) -> Done {
        let low = self.low_type(inst, 0)?;
        let strict = op.strict();
        if !low.is_float() || !(1..self.func.args(inst).len()).all(|n| self.low_type(inst, n) == Ok(low)) {
            return self.bad(inst);
        }
        let value = match op.shape() {
            Shape::FloatCompare if op == Intrinsic::Fpiseq => self.is_equal_bits(inst, low)?,
            Shape::FloatCompare => self.float_compare(inst, op, false)?,
            _ if low == LowType::F16 => self.half(inst, strict)?,
            _ => {
                let args = self.args(inst)?;
                self.float_op(inst, strict, &args)?
            }
        };
        self.define(inst, &[value])
    }

    /// An operation of `Float32` or `Float64`.
    fn float_op(&mut self, inst: Inst, op: Intrinsic, args: &[Value]) -> Result<Value, TranslateError> {
        if let (Intrinsic::RemFloat, &[x, y]) = (op, args) {
            let name = match self.b.func.dfg.value_type(x) {
                types::F32 => "brolga_rem_f32",
                _ => "brolga_rem_f64",
            };
            return self.routine_value(inst, name, &[x, y]);
        }
        let ins = self.b.ins();
        Ok(match (op, args) {
            (Intrinsic::NegFloat, &[x]) => ins.fneg(x),
            (Intrinsic::AbsFloat, &[x]) => ins.fabs(x),
            (Intrinsic::SqrtLlvm, &[x]) => ins.sqrt(x),
            (Intrinsic::CeilLlvm, &[x]) => ins.ceil(x),
            (Intrinsic::FloorLlvm, &[x]) => ins.floor(x),
            (Intrinsic::TruncLlvm, &[x]) => ins.trunc(x),
            (Intrinsic::RintLlvm, &[x]) => ins.nearest(x),
            (Intrinsic::AddFloat, &[x, y]) => ins.fadd(x, y),
            (Intrinsic::SubFloat, &[x, y]) => ins.fsub(x, y),
            (Intrinsic::MulFloat, &[x, y]) => ins.fmul(x, y),
            (Intrinsic::DivFloat, &[x, y]) => ins.fdiv(x, y),
            (Intrinsic::MinFloat, &[x, y]) => ins.fmin(x, y),
            (Intrinsic::MaxFloat, &[x, y]) => ins.fmax(x, y),
            (Intrinsic::CopysignFloat, &[x, y]) => ins.fcopysign(x, y),
            (Intrinsic::FmaFloat, &[x, y, z]) => ins.fma(x, y, z),
            (Intrinsic::MuladdFloat, &[x, y, z]) => {
                let product = ins.fmul(x, y);
                self.b.ins().fadd(product, z)
            }
            _ => return self.bad(inst),
        })
    }

    fn half(&mut self, inst: Inst, op: Intrinsic) -> Result<Value, TranslateError> {
        let args = self.args(inst)?;
        match (op, &args[..]) {
            // Operations that only move the sign keep every other bit.
            (Intrinsic::NegFloat, &[x]) => Ok(self.b.ins().bxor_imm_u(x, SIGN16)),
            (Intrinsic::AbsFloat, &[x]) => Ok(self.b.ins().band_imm_u(x, SIGN16 - 1)),
            (Intrinsic::CopysignFloat, &[x, y]) => {
                let magnitude = self.b.ins().band_imm_u(x, SIGN16 - 1);
                let sign = self.b.ins().band_imm_u(y, SIGN16);
                Ok(self.b.ins().bor(magnitude, sign))
            }
            (Intrinsic::FmaFloat, &[x, y, z]) => self.half_fma(inst, x, y, z),
            (Intrinsic::MuladdFloat, &[x, y, z]) => {
                let product = self.half_op(inst, Intrinsic::MulFloat, &[x, y])?;
                self.half_op(inst, Intrinsic::AddFloat, &[product, z])
            }
            (_, args) => self.half_op(inst, op, args),
        }
    }

    fn half_op(&mut self, inst: Inst, op: Intrinsic, args: &[Value]) -> Result<Value, TranslateError> {
        let wide: Vec<Value> =
            args.iter().map(|&x| self.half_to_single(inst, x)).collect::<Result<_, _>>()?;
        let value = self.float_op(inst, op, &wide)?;
        self.single_to_half(inst, value)
    }

    /// The product of two `Float16` is exact in `Float64`; the sum is rounded to odd there.
    fn half_fma(&mut self, inst: Inst, x: Value, y: Value, z: Value) -> Result<Value, TranslateError> {
        let mut wide = [x, y, z];
        for value in &mut wide {
            let single = self.half_to_single(inst, *value)?;
            *value = self.b.ins().fpromote(types::F64, single);
        }
        let [x, y, z] = wide;
        let p = self.b.ins().fmul(x, y);
        let sum = self.b.ins().fadd(p, z);
        // The rounding error of the sum, exact (Knuth's TwoSum).
        let z_part = self.b.ins().fsub(sum, p);
        let p_part = self.b.ins().fsub(sum, z_part);
        let p_lost = self.b.ins().fsub(p, p_part);
        let z_lost = self.b.ins().fsub(z, z_part);
        let lost = self.b.ins().fadd(p_lost, z_lost);
        let zero = self.b.ins().f64const(0.0);
        // For infinite and NaN sums the error is NaN, which is unordered.
        let inexact = self.b.ins().fcmp(FloatCC::OrderedNotEqual, lost, zero);
        let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), sum);
        let odd = self.b.ins().band_imm_u(bits, 1);
        let even = self.b.ins().icmp_imm_u(IntCC::Equal, odd, 0);
        let adjust = self.b.ins().band(inexact, even);
        // One step up in magnitude if the error points away from zero, else one step down: both are odd.
        let lost_up = self.b.ins().fcmp(FloatCC::GreaterThan, lost, zero);
        let sum_up = self.b.ins().fcmp(FloatCC::GreaterThan, sum, zero);
        let same = self.b.ins().icmp(IntCC::Equal, lost_up, sum_up);
        let (up, down) = (self.b.ins().iadd_imm_s(bits, 1), self.b.ins().iadd_imm_s(bits, -1));
        let stepped = self.b.ins().select(same, up, down);
        let bits = self.b.ins().select(adjust, stepped, bits);
        let odd_sum = self.b.ins().bitcast(types::F64, MemFlagsData::new(), bits);
        self.double_to_half(inst, odd_sum)
    }

    pub(super) fn half_to_single(&mut self, inst: Inst, half: Value) -> Result<Value, TranslateError> {
        let bits = self.b.ins().uextend(types::I32, half);
        self.routine_value(inst, "brolga_f16_to_f32", &[bits])
    }

    pub(super) fn single_to_half(&mut self, inst: Inst, single: Value) -> Result<Value, TranslateError> {
        let bits = self.routine_value(inst, "brolga_f32_to_f16", &[single])?;
        Ok(self.b.ins().ireduce(types::I16, bits))
    }

    pub(super) fn double_to_half(&mut self, inst: Inst, double: Value) -> Result<Value, TranslateError> {
        let bits = self.routine_value(inst, "brolga_f64_to_f16", &[double])?;
        Ok(self.b.ins().ireduce(types::I16, bits))
    }

    /// Whether a comparison is one machine comparison, so that a branch may make it again.
    pub(super) fn is_plain_compare(&self, inst: Inst, op: Intrinsic) -> bool {
        op != Intrinsic::Fpiseq && matches!(self.low_type(inst, 0), Ok(LowType::F32 | LowType::F64))
    }

    /// The comparison `inst` makes, or its opposite.
    pub(super) fn float_compare(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        invert: bool,
    ) -> Result<Value, TranslateError> {
        let cc = match op.strict() {
            Intrinsic::EqFloat => FloatCC::Equal,
            Intrinsic::NeFloat => FloatCC::NotEqual,
            Intrinsic::LtFloat => FloatCC::LessThan,
            Intrinsic::LeFloat => FloatCC::LessThanOrEqual,
            _ => return self.bad(inst),
        };
        let (mut x, mut y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        if self.low_type(inst, 0)? == LowType::F16 {
            (x, y) = (self.half_to_single(inst, x)?, self.half_to_single(inst, y)?);
        }
        if !self.same_width(x, y) {
            return self.bad(inst);
        }
        Ok(self.b.ins().fcmp(if invert { cc.complement() } else { cc }, x, y))
    }

    /// `fpiseq`: the same bits, or both NaN.
    fn is_equal_bits(&mut self, inst: Inst, low: LowType) -> Result<Value, TranslateError> {
        let (x, y) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        let (same, both_nan);
        if low == LowType::F16 {
            same = self.b.ins().icmp(IntCC::Equal, x, y);
            // Apart from the sign, NaNs have greater bits than infinity.
            let is_nan = |t: &mut Self, v| {
                let magnitude = t.b.ins().band_imm_u(v, SIGN16 - 1);
                t.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, magnitude, 0x7c00)
            };
            let (a, b) = (is_nan(self, x), is_nan(self, y));
            both_nan = self.b.ins().band(a, b);
        } else {
            let int = if low == LowType::F32 { types::I32 } else { types::I64 };
            let a = self.b.ins().bitcast(int, MemFlagsData::new(), x);
            let b = self.b.ins().bitcast(int, MemFlagsData::new(), y);
            same = self.b.ins().icmp(IntCC::Equal, a, b);
            let a = self.b.ins().fcmp(FloatCC::Unordered, x, x);
            let b = self.b.ins().fcmp(FloatCC::Unordered, y, y);
            both_nan = self.b.ins().band(a, b);
        }
        Ok(self.b.ins().bor(same, both_nan))
    }
}
