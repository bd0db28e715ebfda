//! Loads, stores, atomics.
//!
//! Plain loads and stores of aligned words are atomic, so an atomic load is a load. An atomic store is an exchange, which is
//! also a fence. Other changes use a single instruction if there is one, otherwise a loop around a conditional exchange.

use cranelift_codegen::ir::{AtomicRmwOp, Inst, Opcode, Value};

use super::asm::{Alu, Cond, R11, RAX, Unary, Width};
use super::places::{Operand, is_float};
use super::{Emitter, Step, Unsupported, precision, width};

impl Emitter<'_> {
    pub(super) fn load(&mut self, inst: Inst, opcode: Opcode, address: Value, offset: i32) -> Step {
        let from = self.address(address, offset)?;
        let ty = self.ty(self.result(inst));
        if is_float(ty) {
            let to = self.places.temporary_float(self.asm)?;
            self.asm.load_float(precision(ty)?, to, from);
            self.define(inst, to);
            return Ok(());
        }
        let wide = width(ty)?;
        let (narrow, is_signed) = match opcode {
            Opcode::Load => (wide, false),
            Opcode::Uload8 => (Width::B8, false),
            Opcode::Sload8 => (Width::B8, true),
            Opcode::Uload16 => (Width::B16, false),
            Opcode::Sload16 => (Width::B16, true),
            Opcode::Uload32 => (Width::B32, false),
            Opcode::Sload32 => (Width::B32, true),
            _ => return Err(Unsupported),
        };
        let to = self.places.temporary(self.asm)?;
        self.asm.load_extended(to, from, narrow, wide, is_signed);
        self.define(inst, to);
        Ok(())
    }

    pub(super) fn store(&mut self, [value, address]: [Value; 2], offset: i32) -> Step {
        let to = self.address(address, offset)?;
        let ty = self.ty(value);
        if is_float(ty) {
            let from = self.xmm(value)?;
            self.asm.store_float(precision(ty)?, to, from);
            return Ok(());
        }
        let width = width(ty)?;
        match self.places.constant(self.func, value) {
            Some(imm) if width != Width::B64 => self.asm.store_imm(to, imm as i32, width),
            Some(imm) if i32::try_from(imm).is_ok() => self.asm.store_imm(to, imm as i32, width),
            _ => {
                let from = self.gpr(value)?;
                self.asm.store(to, from, width);
            }
        }
        Ok(())
    }

    pub(super) fn no_offset(&mut self, inst: Inst, opcode: Opcode, arg: Value) -> Step {
        match opcode {
            Opcode::AtomicLoad => self.load(inst, Opcode::Load, arg, 0),
            Opcode::Bitcast => self.bitcast(inst, arg),
            _ => Err(Unsupported),
        }
    }

    pub(super) fn atomic_store(&mut self, [value, address]: [Value; 2]) -> Step {
        let width = width(self.ty(value))?;
        let to = self.address(address, 0)?;
        let from = self.gpr(value)?;
        self.asm.mov(R11, from);
        self.asm.xchg_mem(width, R11, to);
        Ok(())
    }

    pub(super) fn atomic_rmw(&mut self, inst: Inst, op: AtomicRmwOp, [address, value]: [Value; 2]) -> Step {
        let width = width(self.ty(value))?;
        match op {
            AtomicRmwOp::Xchg | AtomicRmwOp::Add | AtomicRmwOp::Sub => {
                let place = self.address(address, 0)?;
                let old = self.left(value, &[address])?.gpr();
                match op {
                    AtomicRmwOp::Xchg => self.asm.xchg_mem(width, old, place),
                    AtomicRmwOp::Add => self.asm.lock_xadd(width, place, old),
                    _ => {
                        self.asm.unary(Unary::Neg, Width::B64, old);
                        self.asm.lock_xadd(width, place, old);
                    }
                }
                self.define(inst, old);
                Ok(())
            }
            _ => self.atomic_loop(inst, op, width, address, value),
        }
    }

    /// ```text
    ///   rax = [place]
    /// again: r11 = rax op value;  if [place] = rax then [place] = r11 else rax = [place], again
    /// ```
    fn atomic_loop(
        &mut self,
        inst: Inst,
        op: AtomicRmwOp,
        width: Width,
        address: Value,
        value: Value,
    ) -> Step {
        let (alu, kept) = match op {
            AtomicRmwOp::And | AtomicRmwOp::Nand => (Some(Alu::And), Cond::O),
            AtomicRmwOp::Or => (Some(Alu::Or), Cond::O),
            AtomicRmwOp::Xor => (Some(Alu::Xor), Cond::O),
            // A comparison of registers would include the undefined bits above narrow values.
            _ if width < Width::B32 => return Err(Unsupported),
            AtomicRmwOp::Smax => (None, Cond::Ge),
            AtomicRmwOp::Smin => (None, Cond::Le),
            AtomicRmwOp::Umax => (None, Cond::Ae),
            AtomicRmwOp::Umin => (None, Cond::Be),
            _ => return Err(Unsupported),
        };
        self.places.claim(self.asm, RAX)?;
        let place = self.address(address, 0)?;
        let by = self.gpr(value)?;
        self.asm.load_extended(RAX, place, width, width, false);
        let again = self.asm.label();
        self.asm.bind(again);
        match alu {
            Some(alu) => {
                self.asm.mov(R11, RAX);
                self.asm.alu(alu, Width::B64, R11, by);
                if op == AtomicRmwOp::Nand {
                    self.asm.unary(Unary::Not, Width::B64, R11);
                }
            }
            None => {
                self.asm.mov(R11, by);
                self.asm.alu(Alu::Cmp, width, RAX, by);
                self.asm.cmov(kept, R11, RAX);
            }
        }
        self.asm.lock_cmpxchg(width, place, R11);
        self.asm.jcc(Cond::Ne, again);
        self.define(inst, RAX);
        Ok(())
    }

    pub(super) fn atomic_cas(&mut self, inst: Inst, [address, expected, new]: [Value; 3]) -> Step {
        let width = width(self.ty(new))?;
        self.places.claim(self.asm, RAX)?;
        let place = self.address(address, 0)?;
        let new = self.gpr(new)?;
        self.places.fetch(self.asm, self.func, expected, RAX.into())?;
        self.asm.lock_cmpxchg(width, place, new);
        self.define(inst, RAX);
        Ok(())
    }

    /// The right operand of an instruction on integers of that width.
    pub(super) fn operand(&mut self, value: Value, width: Width) -> Step<Operand> {
        self.places.operand(self.asm, self.func, value, width)
    }
}
