//! Floats, and conversions between them and integers.
//!
//! A comparison of floats sets the flags as one of unsigned integers does, and all of them when the operands are unordered. So "greater" is
//! false for unordered operands, and "less" is made by swapping the operands. Equality also needs the parity flag.
//!
//! Conversions to integers yield the nearest integer of the type, and 0 for NaN. The instruction yields the least
//! integer for all values out of range.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};

use super::asm::{Alu, BitOp, Cond, FloatOp, Gpr, Precision, R11, Shift, Width, Xmm};
use super::places::{Reg, is_float};
use super::{Emitter, Step, Unsupported, precision, width};

/// When a comparison holds, by the flags.
#[derive(Clone, Copy, Debug)]
pub(super) enum Truth {
    One(Cond),
    Both(Cond, Cond),
    Either(Cond, Cond),
}

const SCRATCH: Xmm = Reg::SCRATCH_FLOAT.xmm();

impl Emitter<'_> {
    pub(super) fn float_unary(&mut self, inst: Inst, opcode: Opcode, arg: Value) -> Step {
        match opcode {
            Opcode::Sqrt => {
                let precision = precision(self.ty(arg))?;
                let from = self.xmm(arg)?;
                let to = self.places.temporary_float(self.asm)?;
                self.asm.float(FloatOp::Sqrt, precision, to, from);
                self.define(inst, to);
            }
            Opcode::Fneg | Opcode::Fabs => {
                let precision = precision(self.ty(arg))?;
                let to = self.left(arg, &[])?.xmm();
                let (op, mask) = match opcode {
                    Opcode::Fneg => (BitOp::Xor, sign(precision)),
                    _ => (BitOp::And, !sign(precision)),
                };
                self.mask(mask);
                self.asm.bits(op, to, SCRATCH);
                self.define(inst, to);
            }
            Opcode::Nearest => self.round(inst, arg, 0)?,
            Opcode::Floor => self.round(inst, arg, 1)?,
            Opcode::Ceil => self.round(inst, arg, 2)?,
            Opcode::Trunc => self.round(inst, arg, 3)?,
            Opcode::Fpromote | Opcode::Fdemote => {
                let from = precision(self.ty(arg))?;
                let value = self.xmm(arg)?;
                let to = self.places.temporary_float(self.asm)?;
                self.asm.convert_float(from, to, value);
                self.define(inst, to);
            }
            Opcode::FcvtFromSint => self.signed_to_float(inst, arg)?,
            Opcode::FcvtFromUint => self.unsigned_to_float(inst, arg)?,
            Opcode::FcvtToSintSat => self.float_to_signed(inst, arg)?,
            Opcode::FcvtToUintSat => self.float_to_unsigned(inst, arg)?,
            _ => return Err(Unsupported),
        }
        Ok(())
    }

    /// Loads bits into the scratch register.
    fn mask(&mut self, bits: u64) {
        self.asm.mov_imm(R11, bits.cast_signed());
        self.asm.bits_to_float(SCRATCH, R11);
    }

    fn round(&mut self, inst: Inst, arg: Value, mode: u8) -> Step {
        if !self.features.has_sse41 {
            return Err(Unsupported);
        }
        let precision = precision(self.ty(arg))?;
        let from = self.xmm(arg)?;
        let to = self.places.temporary_float(self.asm)?;
        self.asm.round(precision, to, from, mode);
        self.define(inst, to);
        Ok(())
    }

    pub(super) fn float_binary(&mut self, inst: Inst, opcode: Opcode, [x, y]: [Value; 2]) -> Step {
        let precision = precision(self.ty(x))?;
        let op = match opcode {
            Opcode::Fadd => FloatOp::Add,
            Opcode::Fsub => FloatOp::Sub,
            Opcode::Fmul => FloatOp::Mul,
            Opcode::Fdiv => FloatOp::Div,
            Opcode::Fcopysign => return self.copy_sign(inst, precision, x, y),
            _ => return Err(Unsupported),
        };
        let by = self.xmm(y)?;
        let to = self.left(x, &[y])?.xmm();
        self.asm.float(op, precision, to, by);
        self.define(inst, to);
        Ok(())
    }

    fn copy_sign(&mut self, inst: Inst, precision: Precision, x: Value, y: Value) -> Step {
        let from = self.xmm(y)?;
        let to = self.left(x, &[y])?.xmm();
        self.mask(!sign(precision));
        self.asm.bits(BitOp::And, to, SCRATCH);
        self.asm.bits(BitOp::AndNot, SCRATCH, from);
        self.asm.bits(BitOp::Or, to, SCRATCH);
        self.define(inst, to);
        Ok(())
    }

    /// The same bits as a value of another type.
    pub(super) fn bitcast(&mut self, inst: Inst, arg: Value) -> Step {
        let to = self.ty(self.result(inst));
        match (is_float(self.ty(arg)), is_float(to)) {
            (true, false) => {
                let value = self.xmm(arg)?;
                let to = self.places.temporary(self.asm)?;
                self.asm.bits_of_float(to, value);
                self.define(inst, to);
            }
            (false, true) => {
                let value = self.gpr(arg)?;
                let to = self.places.temporary_float(self.asm)?;
                self.asm.bits_to_float(to, value);
                self.define(inst, to);
            }
            _ => {
                let same = self.left(arg, &[])?;
                self.define(inst, same);
            }
        }
        Ok(())
    }

    // ----- comparisons -----

    /// Emits a comparison; returns the flags that show whether it holds.
    pub(super) fn flags(&mut self, inst: Inst) -> Step<Truth> {
        let InstructionData::FloatCompare { args: [x, y], cond, .. } = self.func.dfg.insts[inst] else {
            return Ok(Truth::One(self.int_flags(inst)?));
        };
        let precision = precision(self.ty(x))?;
        let (mut left, mut right) = (self.xmm(x)?, self.xmm(y)?);
        let is_swapped = matches!(
            cond,
            FloatCC::LessThan
                | FloatCC::LessThanOrEqual
                | FloatCC::UnorderedOrGreaterThan
                | FloatCC::UnorderedOrGreaterThanOrEqual
        );
        if is_swapped {
            (left, right) = (right, left);
        }
        self.asm.ucomis(precision, left, right);
        Ok(match cond {
            FloatCC::Ordered => Truth::One(Cond::Np),
            FloatCC::Unordered => Truth::One(Cond::P),
            FloatCC::Equal => Truth::Both(Cond::E, Cond::Np),
            FloatCC::NotEqual => Truth::Either(Cond::Ne, Cond::P),
            FloatCC::OrderedNotEqual => Truth::One(Cond::Ne),
            FloatCC::UnorderedOrEqual => Truth::One(Cond::E),
            FloatCC::GreaterThan | FloatCC::LessThan => Truth::One(Cond::A),
            FloatCC::GreaterThanOrEqual | FloatCC::LessThanOrEqual => Truth::One(Cond::Ae),
            FloatCC::UnorderedOrLessThan | FloatCC::UnorderedOrGreaterThan => Truth::One(Cond::B),
            FloatCC::UnorderedOrLessThanOrEqual | FloatCC::UnorderedOrGreaterThanOrEqual => {
                Truth::One(Cond::Be)
            }
        })
    }

    /// The flags as a value.
    pub(super) fn set_truth(&mut self, truth: Truth, to: Gpr) {
        match truth {
            Truth::One(cond) => self.asm.set(cond, to),
            Truth::Both(first, second) => {
                self.asm.set(first, to);
                self.asm.set(second, R11);
                self.asm.alu(Alu::And, Width::B32, to, R11);
            }
            Truth::Either(first, second) => {
                self.asm.set(first, to);
                self.asm.set(second, R11);
                self.asm.alu(Alu::Or, Width::B32, to, R11);
            }
        }
    }

    // ----- conversions -----

    fn signed_to_float(&mut self, inst: Inst, arg: Value) -> Step {
        let (from, to) = (width(self.ty(arg))?, precision(self.ty(self.result(inst)))?);
        let mut value = self.gpr(arg)?;
        if from < Width::B32 {
            self.asm.extend(R11, value, from, Width::B32, true);
            value = R11;
        }
        let made = self.places.temporary_float(self.asm)?;
        // The instruction leaves the rest of the register unchanged, and would wait for it.
        self.asm.bits(BitOp::Xor, made, made);
        self.asm.int_to_float(from.at_least_32(), to, made, value);
        self.define(inst, made);
        Ok(())
    }

    /// Narrower integers are converted as signed 64-bit numbers. If a wide one is too large, half of it is converted,
    /// rounded to odd, and doubled.
    fn unsigned_to_float(&mut self, inst: Inst, arg: Value) -> Step {
        let (from, to) = (width(self.ty(arg))?, precision(self.ty(self.result(inst)))?);
        let value = self.gpr(arg)?;
        let made = self.places.temporary_float(self.asm)?;
        self.asm.bits(BitOp::Xor, made, made);
        if from < Width::B64 {
            self.asm.extend(R11, value, from, Width::B64, false);
            self.asm.int_to_float(Width::B64, to, made, R11);
        } else {
            let half = self.places.temporary(self.asm)?;
            let (large, end) = (self.asm.label(), self.asm.label());
            self.asm.test(Width::B64, value, value);
            self.asm.jcc(Cond::S, large);
            self.asm.int_to_float(Width::B64, to, made, value);
            self.asm.jmp(end);
            self.asm.bind(large);
            self.asm.mov(half, value);
            self.asm.mov(R11, value);
            self.asm.shift_imm(Shift::Shr, Width::B64, half, 1);
            self.asm.alu_imm(Alu::And, Width::B32, R11, 1);
            self.asm.alu(Alu::Or, Width::B64, half, R11);
            self.asm.int_to_float(Width::B64, to, made, half);
            self.asm.float(FloatOp::Add, to, made, made);
            self.asm.bind(end);
        }
        self.define(inst, made);
        Ok(())
    }

    fn float_to_signed(&mut self, inst: Inst, arg: Value) -> Step {
        let (from, to) = (precision(self.ty(arg))?, width(self.ty(self.result(inst)))?);
        if to < Width::B32 {
            return Err(Unsupported);
        }
        let value = self.xmm(arg)?;
        let made = self.places.temporary(self.asm)?;
        let (is_number, end) = (self.asm.label(), self.asm.label());
        self.asm.float_to_int(to, from, made, value);
        // Only the least integer less one overflows.
        self.asm.alu_imm(Alu::Cmp, to, made, 1);
        self.asm.jcc(Cond::No, end);
        self.asm.ucomis(from, value, value);
        self.asm.jcc(Cond::Np, is_number);
        self.asm.clear_register(made);
        self.asm.jmp(end);
        self.asm.bind(is_number);
        self.asm.bits(BitOp::Xor, SCRATCH, SCRATCH);
        self.asm.ucomis(from, value, SCRATCH);
        self.asm.jcc(Cond::B, end);
        self.asm.mov_imm(made, if to == Width::B64 { i64::MAX } else { i64::from(i32::MAX) });
        self.asm.bind(end);
        self.define(inst, made);
        Ok(())
    }

    fn float_to_unsigned(&mut self, inst: Inst, arg: Value) -> Step {
        let (from, to) = (precision(self.ty(arg))?, width(self.ty(self.result(inst)))?);
        if to < Width::B32 {
            return Err(Unsupported);
        }
        let value = self.xmm(arg)?;
        let made = self.places.temporary(self.asm)?;
        let rest = self.places.temporary_float(self.asm)?;
        let (positive, large, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.bits(BitOp::Xor, SCRATCH, SCRATCH);
        self.asm.ucomis(from, value, SCRATCH);
        self.asm.jcc(Cond::A, positive);
        self.asm.clear_register(made);
        self.asm.jmp(end);
        self.asm.bind(positive);
        self.asm.float_to_int(Width::B64, from, made, value);
        self.asm.test(Width::B64, made, made);
        if to == Width::B32 {
            self.asm.jcc(Cond::S, large);
            self.asm.mov_imm(R11, i64::from(u32::MAX));
            self.asm.alu(Alu::Cmp, Width::B64, made, R11);
            self.asm.jcc(Cond::Be, end);
            self.asm.bind(large);
            self.asm.mov_imm(made, i64::from(u32::MAX));
        } else {
            self.asm.jcc(Cond::S, large);
            self.asm.jmp(end);
            self.asm.bind(large);
            // At least 2^63, less that: it fits, or the number was too large.
            self.mask(match from {
                Precision::F32 => u64::from(9_223_372_036_854_775_808f32.to_bits()),
                Precision::F64 => 9_223_372_036_854_775_808f64.to_bits(),
            });
            self.asm.movaps(rest, value);
            self.asm.float(FloatOp::Sub, from, rest, SCRATCH);
            self.asm.float_to_int(Width::B64, from, made, rest);
            self.asm.mov_imm(R11, i64::MIN);
            self.asm.alu(Alu::Xor, Width::B64, made, R11);
            self.asm.jcc(Cond::S, end);
            self.asm.mov_imm(made, -1);
        }
        self.asm.bind(end);
        self.define(inst, made);
        Ok(())
    }
}

/// The bit of the sign.
fn sign(precision: Precision) -> u64 {
    match precision {
        Precision::F32 => 1 << 31,
        Precision::F64 => 1 << 63,
    }
}
