//! Integers.
//!
//! The bits above a value's width in its register are undefined. Arithmetic ignores them; comparisons use the width's own form; divisions, shifts
//! to the right and conversions extend first.
//!
//! Shift counts are taken modulo the width, as the processor does for 32 and 64 bits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};

use super::asm::{Alu, Cond, Count, Gpr, R11, RAX, RCX, RDX, Shift, Unary, Width};
use super::places::{Operand, is_float};
use super::{Emitter, Step, Unsupported, width};

impl Emitter<'_> {
    pub(super) fn unary(&mut self, inst: Inst, opcode: Opcode, arg: Value) -> Step {
        match opcode {
            Opcode::Ineg => self.in_place(inst, arg, Unary::Neg),
            Opcode::Bnot => self.in_place(inst, arg, Unary::Not),
            Opcode::Uextend | Opcode::Sextend => {
                let (from, to) = (width(self.ty(arg))?, width(self.ty(self.result(inst)))?);
                let value = self.gpr(arg)?;
                let wide = self.places.temporary(self.asm)?;
                self.asm.extend(wide, value, from, to, opcode == Opcode::Sextend);
                self.define(inst, wide);
                Ok(())
            }
            Opcode::Ireduce => {
                let same = self.left(arg, &[])?;
                self.define(inst, same);
                Ok(())
            }
            Opcode::Popcnt | Opcode::Clz | Opcode::Ctz => self.count_bits(inst, opcode, arg),
            Opcode::Bswap => {
                let width = width(self.ty(arg))?;
                let reg = self.left(arg, &[])?.gpr();
                match width {
                    Width::B8 => {}
                    Width::B16 => {
                        self.asm.bswap(Width::B32, reg);
                        self.asm.shift_imm(Shift::Shr, Width::B32, reg, 16);
                    }
                    _ => self.asm.bswap(width, reg),
                }
                self.define(inst, reg);
                Ok(())
            }
            _ => self.float_unary(inst, opcode, arg),
        }
    }

    fn in_place(&mut self, inst: Inst, arg: Value, op: Unary) -> Step {
        let width = width(self.ty(arg))?.at_least_32();
        let reg = self.left(arg, &[])?.gpr();
        self.asm.unary(op, width, reg);
        self.define(inst, reg);
        Ok(())
    }

    fn count_bits(&mut self, inst: Inst, opcode: Opcode, arg: Value) -> Step {
        let own = width(self.ty(arg))?;
        let width = own.at_least_32();
        let (op, is_there) = match opcode {
            Opcode::Popcnt => (Count::Ones, self.features.has_popcnt),
            Opcode::Clz => (Count::LeadingZeros, self.features.has_lzcnt),
            _ => (Count::TrailingZeros, self.features.has_bmi1),
        };
        if !is_there {
            return Err(Unsupported);
        }
        let value = self.gpr(arg)?;
        let to = self.places.temporary(self.asm)?;
        if own == width {
            self.asm.count(op, width, to, value);
        } else {
            self.asm.extend(R11, value, own, width, false);
            if op == Count::TrailingZeros {
                // For zero the count is its width.
                self.asm.alu_imm(Alu::Or, width, R11, 1 << own.bits());
            }
            self.asm.count(op, width, to, R11);
            if op == Count::LeadingZeros {
                self.asm.alu_imm(Alu::Sub, width, to, (width.bits() - own.bits()) as i32);
            }
        }
        self.define(inst, to);
        Ok(())
    }

    pub(super) fn binary(&mut self, inst: Inst, opcode: Opcode, args: [Value; 2]) -> Step {
        let [x, y] = args;
        if is_float(self.ty(x)) {
            return self.float_binary(inst, opcode, args);
        }
        let own = width(self.ty(x))?;
        match opcode {
            Opcode::Iadd => self.alu(inst, Alu::Add, own, x, y),
            Opcode::Isub => self.alu(inst, Alu::Sub, own, x, y),
            Opcode::Band => self.alu(inst, Alu::And, own, x, y),
            Opcode::Bor => self.alu(inst, Alu::Or, own, x, y),
            Opcode::Bxor => self.alu(inst, Alu::Xor, own, x, y),
            Opcode::Imul => {
                let to = self.multiply(own.at_least_32(), x, y)?;
                self.define(inst, to);
                Ok(())
            }
            Opcode::Ishl => self.shift(inst, Shift::Shl, own, x, y),
            Opcode::Ushr => self.shift(inst, Shift::Shr, own, x, y),
            Opcode::Sshr => self.shift(inst, Shift::Sar, own, x, y),
            Opcode::Rotl if own >= Width::B32 => self.shift(inst, Shift::Rol, own, x, y),
            Opcode::Udiv => self.divide(inst, own, false, RAX, x, y),
            Opcode::Urem => self.divide(inst, own, false, RDX, x, y),
            Opcode::Sdiv => self.divide(inst, own, true, RAX, x, y),
            Opcode::Srem => self.divide(inst, own, true, RDX, x, y),
            Opcode::Umulhi if own >= Width::B32 => {
                self.multiply_wide(own, x, y)?;
                self.define(inst, RDX);
                Ok(())
            }
            Opcode::SaddOverflow => self.checked(inst, Alu::Add, Cond::O, own, x, y),
            Opcode::UaddOverflow => self.checked(inst, Alu::Add, Cond::B, own, x, y),
            Opcode::SsubOverflow => self.checked(inst, Alu::Sub, Cond::O, own, x, y),
            Opcode::UsubOverflow => self.checked(inst, Alu::Sub, Cond::B, own, x, y),
            Opcode::SmulOverflow if own >= Width::B32 => {
                let to = self.multiply(own, x, y)?;
                self.checked_results(inst, to, Cond::O)
            }
            Opcode::UmulOverflow if own >= Width::B32 => {
                self.multiply_wide(own, x, y)?;
                self.checked_results(inst, RAX, Cond::O)
            }
            _ => Err(Unsupported),
        }
    }

    /// Exchanges operands if the left one is a constant.
    fn ordered(&self, op: Alu, x: Value, y: Value) -> (Value, Value) {
        match op != Alu::Sub && self.places.constant(self.func, x).is_some() {
            true => (y, x),
            false => (x, y),
        }
    }

    fn alu(&mut self, inst: Inst, op: Alu, own: Width, x: Value, y: Value) -> Step {
        let to = self.alu_into(op, own.at_least_32(), x, y)?;
        self.define(inst, to);
        Ok(())
    }

    fn alu_into(&mut self, op: Alu, width: Width, x: Value, y: Value) -> Step<Gpr> {
        let (x, y) = self.ordered(op, x, y);
        let right = self.operand(y, width)?;
        let to = self.left(x, &[y])?.gpr();
        match right {
            Operand::Reg(right) => self.asm.alu(op, width, to, right),
            Operand::Imm(imm) => self.asm.alu_imm(op, width, to, imm),
            Operand::Mem(mem) => self.asm.alu_mem(op, width, to, mem),
        }
        Ok(to)
    }

    fn multiply(&mut self, width: Width, x: Value, y: Value) -> Step<Gpr> {
        let (x, y) = self.ordered(Alu::Add, x, y);
        match self.operand(y, width)? {
            Operand::Imm(imm) => {
                let to = self.left(x, &[y])?.gpr();
                self.asm.imul_imm(width, to, to, imm);
                Ok(to)
            }
            Operand::Reg(right) => {
                let to = self.left(x, &[y])?.gpr();
                self.asm.imul(width, to, right);
                Ok(to)
            }
            Operand::Mem(mem) => {
                let to = self.left(x, &[y])?.gpr();
                self.asm.imul_mem(width, to, mem);
                Ok(to)
            }
        }
    }

    /// The whole product in rdx and rax; the overflow flag shows whether rdx is significant.
    fn multiply_wide(&mut self, width: Width, x: Value, y: Value) -> Step {
        self.places.claim(self.asm, RAX)?;
        self.places.claim(self.asm, RDX)?;
        let by = self.gpr(y)?;
        self.places.fetch(self.asm, self.func, x, RAX.into())?;
        self.asm.unary(Unary::Mul, width, by);
        Ok(())
    }

    fn checked(&mut self, inst: Inst, op: Alu, wrapped: Cond, own: Width, x: Value, y: Value) -> Step {
        if own < Width::B32 {
            return Err(Unsupported);
        }
        let to = self.alu_into(op, own, x, y)?;
        self.checked_results(inst, to, wrapped)
    }

    fn checked_results(&mut self, inst: Inst, value: Gpr, wrapped: Cond) -> Step {
        let &[first, second] = self.func.dfg.inst_results(inst) else { return Err(Unsupported) };
        // Finding a register preserves the flags.
        self.places.lock(value);
        let truth = self.places.temporary(self.asm)?;
        self.asm.set(wrapped, truth);
        self.places.define(self.asm, first, value);
        self.places.define(self.asm, second, truth);
        Ok(())
    }

    fn divide(&mut self, inst: Inst, own: Width, is_signed: bool, wanted: Gpr, x: Value, y: Value) -> Step {
        let width = own.at_least_32();
        self.places.claim(self.asm, RAX)?;
        self.places.claim(self.asm, RDX)?;
        let mut by = self.gpr(y)?;
        if own != width {
            self.asm.extend(R11, by, own, width, is_signed);
            by = R11;
        }
        self.places.fetch(self.asm, self.func, x, RAX.into())?;
        if own != width {
            self.asm.extend(RAX, RAX, own, width, is_signed);
        }
        if is_signed {
            self.asm.sign_to_rdx(width);
            self.asm.unary(Unary::Idiv, width, by);
        } else {
            self.asm.clear_register(RDX);
            self.asm.unary(Unary::Div, width, by);
        }
        self.define(inst, wanted);
        Ok(())
    }

    fn shift(&mut self, inst: Inst, op: Shift, own: Width, x: Value, count: Value) -> Step {
        let width = own.at_least_32();
        let constant = self.places.constant(self.func, count);
        if constant.is_none() {
            self.places.claim(self.asm, RCX)?;
        }
        let to = self.left(x, &[count])?.gpr();
        if own != width && op != Shift::Shl {
            self.asm.extend(to, to, own, width, op == Shift::Sar);
        }
        if let Some(count) = constant {
            self.asm.shift_imm(op, width, to, (count as u32 & (own.bits() - 1)) as u8);
        } else {
            self.places.fetch(self.asm, self.func, count, RCX.into())?;
            if own != width {
                self.asm.alu_imm(Alu::And, Width::B32, RCX, own.bits() as i32 - 1);
            }
            self.asm.shift(op, width, to);
        }
        self.define(inst, to);
        Ok(())
    }

    // ----- comparisons -----

    /// A comparison whose result is a value.
    pub(super) fn compare(&mut self, inst: Inst) -> Step {
        let truth = self.flags(inst)?;
        let to = self.places.temporary(self.asm)?;
        self.set_truth(truth, to);
        self.define(inst, to);
        Ok(())
    }

    /// Emits a comparison of integers; returns the condition under which it holds.
    pub(super) fn int_flags(&mut self, inst: Inst) -> Step<Cond> {
        let InstructionData::IntCompare { args: [x, y], cond, .. } = self.func.dfg.insts[inst] else {
            return Err(Unsupported);
        };
        let width = width(self.ty(x))?;
        let left = self.gpr(x)?;
        match self.operand(y, width)? {
            Operand::Imm(0) => self.asm.test(width, left, left),
            Operand::Imm(imm) => self.asm.alu_imm(Alu::Cmp, width, left, imm),
            Operand::Reg(right) => self.asm.alu(Alu::Cmp, width, left, right),
            Operand::Mem(mem) => self.asm.alu_mem(Alu::Cmp, width, left, mem),
        }
        Ok(match cond {
            IntCC::Equal => Cond::E,
            IntCC::NotEqual => Cond::Ne,
            IntCC::SignedLessThan => Cond::L,
            IntCC::SignedGreaterThanOrEqual => Cond::Ge,
            IntCC::SignedGreaterThan => Cond::G,
            IntCC::SignedLessThanOrEqual => Cond::Le,
            IntCC::UnsignedLessThan => Cond::B,
            IntCC::UnsignedGreaterThanOrEqual => Cond::Ae,
            IntCC::UnsignedGreaterThan => Cond::A,
            IntCC::UnsignedLessThanOrEqual => Cond::Be,
        })
    }

    /// One of two values, by a condition that is a value.
    pub(super) fn select(&mut self, inst: Inst, [cond, yes, no]: [Value; 3]) -> Step {
        let width = width(self.ty(cond))?;
        let test = self.gpr(cond)?;
        if is_float(self.ty(yes)) {
            let given = self.xmm(yes)?;
            let to = self.left(no, &[cond, yes])?.xmm();
            let end = self.asm.label();
            self.asm.test(width, test, test);
            self.asm.jcc(Cond::E, end);
            self.asm.movaps(to, given);
            self.asm.bind(end);
            self.define(inst, to);
        } else {
            let given = self.gpr(yes)?;
            let to = self.left(no, &[cond, yes])?.gpr();
            self.asm.test(width, test, test);
            self.asm.cmov(Cond::Ne, to, given);
            self.define(inst, to);
        }
        Ok(())
    }
}
