//! Vector instructions with the VEX prefix, which have three operands and name registers of 128 or 256 bits.
//!
//! ```text
//!   C5 [R vvvv L pp]                      opcode  ModRM [SIB] [disp8 | disp32]  [imm8]       map 0F, W 0, no second high register
//!   C4 [R X B mmmmm] [W vvvv L pp]        opcode  …
//! ```
//!
//! Memory is a base register and a distance, perhaps with an index of one of four scales, or a label.

use super::{Asm, Gpr, Label, Xmm};

/// A vector instruction: what of it is the same for all operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vex {
    /// The map of opcodes: 1 is `0F`, 2 `0F 38`, 3 `0F 3A`.
    pub(crate) map: u8,
    /// The prefix that is a part of the opcode: 0 none, 1 `66`, 2 `F3`, 3 `F2`.
    pub(crate) prefix: u8,
    /// The bit W.
    pub(crate) wide: bool,
    /// The opcode.
    pub(crate) opcode: u8,
}

impl Vex {
    /// An instruction of a map, with the prefix `66` and without W, as most are.
    pub(crate) const fn new(map: u8, opcode: u8) -> Vex {
        Vex { map, prefix: 1, wide: false, opcode }
    }
}

/// Memory of a vector instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// A base, an index with the binary logarithm of its scale, and a distance.
    Base(Gpr, Option<(Gpr, u8)>, i32),
    /// A place in the code. No immediate may follow.
    Label(Label),
}

/// Bits of the registers that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bits {
    /// 128; the upper half of the result is zero.
    Half,
    /// 256.
    All,
}

impl Asm {
    /// The prefix. `reg`, `index` and `base` are what ModRM and SIB name, `first` is the operand beside them.
    fn vex(&mut self, op: Vex, bits: Bits, reg: u8, first: u8, index: u8, base: u8) {
        let last = (!first & 15) << 3 | u8::from(bits == Bits::All) << 2 | op.prefix;
        let high = |number: u8, bit: u8| if number < 8 { 1 << bit } else { 0 };
        if op.map == 1 && !op.wide && index < 8 && base < 8 {
            self.byte(0xc5);
            self.byte(high(reg, 7) | last);
        } else {
            self.byte(0xc4);
            self.byte(high(reg, 7) | high(index, 6) | high(base, 5) | op.map);
            self.byte(u8::from(op.wide) << 7 | last);
        }
        self.byte(op.opcode);
    }

    /// Of registers: the result, and two operands.
    pub(crate) fn vex_rr(&mut self, op: Vex, bits: Bits, to: Xmm, first: Xmm, second: Xmm) {
        self.vex(op, bits, to.0, first.0, 0, second.0);
        self.registers(to.0, second.0);
    }

    /// Of two registers and memory.
    pub(crate) fn vex_rm(&mut self, op: Vex, bits: Bits, to: Xmm, first: Xmm, second: At) {
        match second {
            At::Label(label) => {
                self.vex(op, bits, to.0, first.0, 0, 0);
                self.byte((to.0 & 7) << 3 | 5);
                self.distance_to(label);
            }
            At::Base(base, index, disp) => {
                self.vex(op, bits, to.0, first.0, index.map_or(0, |(index, _)| index.0), base.0);
                self.indexed(to.0, base, index, disp);
            }
        }
    }

    /// A last byte: an immediate, or a fourth register.
    pub(crate) fn vex_last(&mut self, byte: u8) {
        self.byte(byte);
    }

    /// ModRM and what follows it. Without an index the base is no `rsp` and no `r12`.
    fn indexed(&mut self, reg: u8, base: Gpr, index: Option<(Gpr, u8)>, disp: i32) {
        let short = i8::try_from(disp);
        let mode = match short {
            Ok(0) if base.0 & 7 != 5 => 0x00,
            Ok(_) => 0x40,
            Err(_) => 0x80,
        };
        let field = (reg & 7) << 3;
        match index {
            Some((index, scale)) => {
                self.byte(mode | field | 4);
                self.byte(scale << 6 | (index.0 & 7) << 3 | base.0 & 7);
            }
            None => self.byte(mode | field | base.0 & 7),
        }
        match (mode, short) {
            (0x00, _) => {}
            (0x40, Ok(disp)) => self.byte(disp as u8),
            _ => self.imm32(disp),
        }
    }

    /// Moves 64 bits of a general register into a vector register.
    pub(crate) fn vex_from_gpr(&mut self, to: Xmm, from: Gpr) {
        let op = Vex { map: 1, prefix: 1, wide: true, opcode: 0x6e };
        self.vex(op, Bits::Half, to.0, 0, 0, from.0);
        self.registers(to.0, from.0);
    }

    /// Clears the upper halves of all vector registers, so that instructions without VEX do not wait for them.
    pub(crate) fn vzeroupper(&mut self) {
        for byte in [0xc5, 0xf8, 0x77] {
            self.byte(byte);
        }
    }

    /// Fills up with instructions that do nothing to a multiple of a power of two.
    pub(crate) fn align(&mut self, to: u32) {
        while !self.offset().is_multiple_of(to) {
            self.byte(0x90);
        }
    }

    /// Puts bytes where they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }

    /// `ret`.
    pub(crate) fn ret(&mut self) {
        self.byte(0xc3);
    }
}
