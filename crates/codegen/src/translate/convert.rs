//! Conversions. The target is the type of the result.
//!
//! Float to integer saturates, and NaN yields 0. Cranelift converts to 32 and 64 bits only: narrower targets are clamped in
//! between, 128 bits go through routines. Every conversion of an integer to `Float16` may go through `Float64`: an integer
//! that `Float64` rounds is beyond the largest `Float16` anyway.

use brolga_ir::intrinsic::Convert;
use brolga_ir::{Inst, LowType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use super::{Done, TranslateError, Translation, abi_of};

impl Translation<'_> {
    pub(super) fn convert(&mut self, inst: Inst, kind: Convert) -> Done {
        if self.func.results(inst).next().is_some_and(|result| self.values[result].is_some()) {
            // The load of its operand has done it (`memory.rs`).
            return Ok(());
        }
        let (from, to) = (self.low_type(inst, 0)?, self.result_type(inst)?);
        let x = self.arg(inst, 0)?;
        let target = abi_of(to).clif();
        let ints = !from.is_float() && !to.is_float();
        let value = match kind {
            Convert::Bits => {
                if from.bits() != to.bits() {
                    return self.bad(inst);
                }
                if self.b.func.dfg.value_type(x) == target {
                    x
                } else {
                    self.b.ins().bitcast(target, MemFlagsData::new(), x)
                }
            }
            Convert::SignExtend | Convert::ZeroExtend if ints && from.bits() <= to.bits() => {
                self.extend(kind == Convert::SignExtend, target, x)
            }
            Convert::Truncate if ints && from.bits() == to.bits() => x,
            Convert::Truncate if ints && from.bits() > to.bits() => self.b.ins().ireduce(target, x),
            Convert::FloatToSigned | Convert::FloatToUnsigned if from.is_float() && !to.is_float() => {
                self.float_to_int(inst, kind == Convert::FloatToSigned, from, to, x)?
            }
            Convert::SignedToFloat | Convert::UnsignedToFloat if !from.is_float() && to.is_float() => {
                self.int_to_float(inst, kind == Convert::SignedToFloat, from, to, x)?
            }
            Convert::FloatTruncate | Convert::FloatExtend if from.is_float() && to.is_float() => {
                self.float_to_float(inst, from, to, x)?
            }
            _ => return self.bad(inst),
        };
        self.define(inst, &[value])
    }

    fn float_to_float(
        &mut self,
        inst: Inst,
        from: LowType,
        to: LowType,
        x: Value,
    ) -> Result<Value, TranslateError> {
        Ok(match (from, to) {
            (LowType::F16, LowType::F32) => self.half_to_single(inst, x)?,
            (LowType::F16, LowType::F64) => {
                let single = self.half_to_single(inst, x)?;
                self.b.ins().fpromote(types::F64, single)
            }
            (LowType::F32, LowType::F64) => self.b.ins().fpromote(types::F64, x),
            (LowType::F64, LowType::F32) => self.b.ins().fdemote(types::F32, x),
            (LowType::F32, LowType::F16) => self.single_to_half(inst, x)?,
            (LowType::F64, LowType::F16) => self.double_to_half(inst, x)?,
            _ if from == to => x,
            _ => return self.bad(inst),
        })
    }

    fn int_to_float(
        &mut self,
        inst: Inst,
        signed: bool,
        from: LowType,
        to: LowType,
        x: Value,
    ) -> Result<Value, TranslateError> {
        let via = if to == LowType::F32 { types::F32 } else { types::F64 };
        let value = if from == LowType::I128 {
            let routine = match (signed, via == types::F32) {
                (true, true) => "brolga_i128_to_f32",
                (true, false) => "brolga_i128_to_f64",
                (false, true) => "brolga_u128_to_f32",
                (false, false) => "brolga_u128_to_f64",
            };
            let (low, high) = self.b.ins().isplit(x);
            self.routine_value(inst, routine, &[low, high])?
        } else {
            let x = if from.bits() < 32 { self.extend(signed, types::I32, x) } else { x };
            if signed { self.b.ins().fcvt_from_sint(via, x) } else { self.b.ins().fcvt_from_uint(via, x) }
        };
        if to == LowType::F16 { self.double_to_half(inst, value) } else { Ok(value) }
    }

    fn float_to_int(
        &mut self,
        inst: Inst,
        signed: bool,
        from: LowType,
        to: LowType,
        x: Value,
    ) -> Result<Value, TranslateError> {
        let x = if from == LowType::F16 { self.half_to_single(inst, x)? } else { x };
        if to == LowType::I128 {
            let x = if from == LowType::F64 { x } else { self.b.ins().fpromote(types::F64, x) };
            let routine = if signed { "brolga_f64_to_i128" } else { "brolga_f64_to_u128" };
            return self.wide_routine(inst, routine, &[x]);
        }
        let via = if to.bits() < 32 { types::I32 } else { abi_of(to).clif() };
        let value = if signed {
            self.b.ins().fcvt_to_sint_sat(via, x)
        } else {
            self.b.ins().fcvt_to_uint_sat(via, x)
        };
        if to.bits() >= 32 {
            return Ok(value);
        }
        let (least, most) = match (signed, to.bits()) {
            (true, bits) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            (false, bits) => (0, (1i64 << bits) - 1),
        };
        let below = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let above = if signed { IntCC::SignedGreaterThan } else { IntCC::UnsignedGreaterThan };
        let (least, most) =
            (self.b.ins().iconst(types::I32, least & 0xffff_ffff), self.b.ins().iconst(types::I32, most));
        let too_low = self.b.ins().icmp(below, value, least);
        let value = self.b.ins().select(too_low, least, value);
        let too_high = self.b.ins().icmp(above, value, most);
        let value = self.b.ins().select(too_high, most, value);
        Ok(self.b.ins().ireduce(abi_of(to).clif(), value))
    }
}
