//! Vector instructions with the prefixes VEX and EVEX, which have three operands and name registers of 128, 256 or 512 bits.
//!
//! ```text
//!   C5 [R vvvv L pp]                                  opcode  ModRM [SIB] [disp8 | disp32]  [imm8]       map 0F, W 0, no second high register
//!   C4 [R X B mmmmm] [W vvvv L pp]                    opcode  …
//!   62 [R X B 1 0mmm] [W vvvv 1 pp] [0 LL 0 1 000]    opcode  ModRM [SIB] [disp32]  [imm8]               512 bits, and what VEX does not have
//! ```
//!
//! Memory is a base register and a distance, perhaps with an index of one of four scales, or a label. Distances of EVEX have four bytes: in one byte they would
//! count operands. The 16 registers of VEX are used, and no masks.

use super::{Asm, Gpr, Label, Xmm};

/// A vector instruction: the parts that do not depend on the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vex {
    /// The map of opcodes: 1 is `0F`, 2 `0F 38`, 3 `0F 3A`.
    pub(crate) map: u8,
    /// The prefix that is a part of the opcode: 0 none, 1 `66`, 2 `F3`, 3 `F2`.
    pub(crate) prefix: u8,
    /// The bit W of VEX.
    pub(crate) wide: bool,
    /// Whether lanes have 64 bits, which is the bit W of EVEX.
    pub(crate) words: bool,
    /// Whether only the EVEX form exists.
    pub(crate) evex: bool,
    pub(crate) opcode: u8,
}

impl Vex {
    /// An instruction of a map, with the prefix `66` and without W, as most are.
    pub(crate) const fn new(map: u8, opcode: u8) -> Vex {
        Vex { map, prefix: 1, wide: false, words: false, evex: false, opcode }
    }

    /// The same with another prefix.
    pub(crate) const fn prefix(self, prefix: u8) -> Vex {
        Vex { prefix, ..self }
    }

    /// The same, on lanes of 64 bits if `words`.
    pub(crate) const fn words(self, words: bool) -> Vex {
        Vex { words, ..self }
    }

    /// The same, as EVEX only.
    pub(crate) const fn evex(self) -> Vex {
        Vex { evex: true, ..self }
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
    /// 256; the rest of the result is zero.
    All,
    /// 512.
    Double,
}

/// Whether an instruction gets the prefix EVEX.
fn is_evex(op: Vex, bits: Bits) -> bool {
    op.evex || bits == Bits::Double
}

impl Asm {
    /// The prefix. `reg`, `index` and `base` are what ModRM and SIB name, `first` is the operand beside them.
    fn vex(&mut self, op: Vex, bits: Bits, reg: u8, first: u8, index: u8, base: u8) {
        let high = |number: u8, bit: u8| if number < 8 { 1 << bit } else { 0 };
        if is_evex(op, bits) {
            self.byte(0x62);
            self.byte(high(reg, 7) | high(index, 6) | high(base, 5) | 0x10 | op.map);
            self.byte(u8::from(op.words) << 7 | (!first & 15) << 3 | 4 | op.prefix);
            self.byte((bits as u8) << 5 | 8);
            self.byte(op.opcode);
            return;
        }
        let last = (!first & 15) << 3 | u8::from(bits == Bits::All) << 2 | op.prefix;
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
                self.indexed(to.0, base, index, disp, !is_evex(op, bits));
            }
        }
    }

    /// A last byte: an immediate, or a fourth register.
    pub(crate) fn vex_last(&mut self, byte: u8) {
        self.byte(byte);
    }

    /// ModRM and what follows it. Without an index the base is neither `rsp` nor `r12`.
    fn indexed(&mut self, reg: u8, base: Gpr, index: Option<(Gpr, u8)>, disp: i32, may_be_short: bool) {
        let short = i8::try_from(disp);
        let mode = match short {
            Ok(0) if base.0 & 7 != 5 => 0x00,
            Ok(_) if may_be_short => 0x40,
            _ => 0x80,
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
        let op = Vex { wide: true, ..Vex::new(1, 0x6e) };
        self.vex(op, Bits::Half, to.0, 0, 0, from.0);
        self.registers(to.0, from.0);
    }

    /// Clears the upper halves of all vector registers, so that instructions without VEX do not wait for them.
    pub(crate) fn vzeroupper(&mut self) {
        for byte in [0xc5, 0xf8, 0x77] {
            self.byte(byte);
        }
    }

    /// Pads with no-ops to a multiple of `to`, a power of two.
    pub(crate) fn align(&mut self, to: u32) {
        while !self.offset().is_multiple_of(to) {
            self.byte(0x90);
        }
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }

    pub(crate) fn ret(&mut self) {
        self.byte(0xc3);
    }
}
