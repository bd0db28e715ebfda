//! Operations on lanes as instructions on registers of 256 bits.
//!
//! AVX2 compares integers for equality and for greater, signed. The other comparisons are made of these: `a ≠ b` and `a ≤ b` are the opposites of `a = b` and `a > b`,
//! and unsigned ones compare after their highest bits are flipped.

use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::lanes::Lanes;

use super::find::Search;
use super::{Made, Wide, neighbour_of_power};
use crate::single_pass::asm::vex::Vex;

const OF: u8 = 1;
const OF38: u8 = 2;
const XOR: Vex = Vex::new(OF, 0xef);
/// The second operand without the bits of the first.
const AND_NOT: Vex = Vex::new(OF, 0xdf);

/// One of four numbers, by the width of integers.
fn by_width(lanes: Lanes, of: [u8; 4]) -> u8 {
    of[lanes.element().bytes().trailing_zeros() as usize & 3]
}

/// An instruction on floats of either width.
fn on_floats(lanes: Lanes, opcode: u8) -> Vex {
    let words = lanes == Lanes::F64x2;
    Vex::new(OF, opcode).prefix(u8::from(words)).words(words)
}

/// An instruction on integers.
fn on_ints(lanes: Lanes, map: u8, opcode: u8) -> Vex {
    Vex::new(map, opcode).words(lanes == Lanes::I64x2)
}

fn equal(lanes: Lanes) -> Vex {
    Vex::new(if lanes == Lanes::I64x2 { OF38 } else { OF }, by_width(lanes, [0x74, 0x75, 0x76, 0x29]))
}

fn greater(lanes: Lanes) -> Vex {
    Vex::new(if lanes == Lanes::I64x2 { OF38 } else { OF }, by_width(lanes, [0x64, 0x65, 0x66, 0x37]))
}

/// Integers of the same width that have their highest bit.
fn signs(lanes: Lanes) -> u128 {
    lanes.splat(1 << (lanes.element().bits() - 1))
}

impl Search<'_> {
    /// An operation of two operands; `None` if it takes more than a few instructions.
    pub(super) fn binary(&mut self, op: Intrinsic, lanes: Lanes, a: Wide, b: Wide) -> Option<Wide> {
        use Intrinsic::{
            AddFloat, AddInt, AndInt, DivFloat, MulFloat, MulInt, OrInt, SubFloat, SubInt, XorInt,
        };
        let op = op.strict();
        if let (MulInt, Lanes::I64x2, Some((count, is_above))) = (op, lanes, self.power_beside(b)) {
            let shifted = self.shift(Intrinsic::ShlInt, lanes, a, count.into())?;
            return match is_above {
                true => self.binary(AddInt, lanes, a, shifted),
                false => self.binary(SubInt, lanes, shifted, a),
            };
        }
        let vex = match op {
            AddInt => on_ints(lanes, OF, by_width(lanes, [0xfc, 0xfd, 0xfe, 0xd4])),
            SubInt => on_ints(lanes, OF, by_width(lanes, [0xf8, 0xf9, 0xfa, 0xfb])),
            MulInt if lanes == Lanes::I16x8 => Vex::new(OF, 0xd5),
            MulInt if lanes == Lanes::I32x4 => Vex::new(OF38, 0x40),
            MulInt if lanes == Lanes::I64x2 && self.features().avx512 => {
                Vex::new(OF38, 0x40).words(true).evex()
            }
            MulInt if lanes == Lanes::I64x2 => return Some(self.product_of_words(a, b)),
            AndInt => Vex::new(OF, 0xdb),
            OrInt => Vex::new(OF, 0xeb),
            XorInt => XOR,
            AddFloat => on_floats(lanes, 0x58),
            MulFloat => on_floats(lanes, 0x59),
            SubFloat => on_floats(lanes, 0x5c),
            DivFloat => on_floats(lanes, 0x5e),
            // In 512 bits comparisons have their results in registers of their own.
            _ if Lanes::compares(op) && self.parts() > 2 => return None,
            _ if Lanes::compares(op) && lanes.is_float() => return self.compare_floats(op, lanes, a, b),
            _ if Lanes::compares(op) => return self.compare_ints(op, lanes, a, b),
            _ => return None,
        };
        let is_mask = matches!(op, AndInt | OrInt | XorInt) && self.is_mask(a) && self.is_mask(b);
        Some(self.make(Made::Binary(vex, None, a, b), is_mask))
    }

    /// A 64-bit product from 32-bit products: the product of the low halves plus the shifted sum of the mixed products.
    fn product_of_words(&mut self, a: Wide, b: Wide) -> Wide {
        const LOW_HALVES: Vex = Vex::new(OF, 0xf4);
        const SHIFT: Vex = Vex::new(OF, 0x73);
        const ADD: Vex = Vex::new(OF, 0xd4);
        let high = [a, b].map(|of| self.make(Made::Shift(SHIFT.words(true), 2, of, 32), false));
        let mut product = |x, y| self.make(Made::Binary(LOW_HALVES.words(true), None, x, y), false);
        let (low, one, other) = (product(a, b), product(high[0], b), product(a, high[1]));
        let mixed = self.make(Made::Binary(ADD.words(true), None, one, other), false);
        let mixed = self.make(Made::Shift(SHIFT.words(true), 6, mixed, 32), false);
        self.make(Made::Binary(ADD.words(true), None, low, mixed), false)
    }

    /// The power of two of which all words of a value are neighbours, as `neighbour_of_power` has it.
    fn power_beside(&self, of: Wide) -> Option<(u32, bool)> {
        let words = self.constant_parts(of)?;
        let word = Lanes::I64x2.extract(*words.first()?, 0);
        let is_same = words.iter().all(|&part| part == Lanes::I64x2.splat(word));
        neighbour_of_power(word).filter(|_| is_same)
    }

    fn compare_floats(&mut self, op: Intrinsic, lanes: Lanes, a: Wide, b: Wide) -> Option<Wide> {
        // Equal, less, less or equal: false where one is NaN. Not equal: true there.
        let predicate = match op {
            Intrinsic::EqFloat => 0,
            Intrinsic::LtFloat => 1,
            Intrinsic::LeFloat => 2,
            Intrinsic::NeFloat => 4,
            _ => return None,
        };
        Some(self.make(Made::Binary(on_floats(lanes, 0xc2), Some(predicate), a, b), true))
    }

    fn compare_ints(&mut self, op: Intrinsic, lanes: Lanes, a: Wide, b: Wide) -> Option<Wide> {
        use Intrinsic::{EqInt, NeInt, SleInt, SltInt, UleInt, UltInt};
        let (a, b) = match op {
            UltInt | UleInt => (self.flipped(a, signs(lanes)), self.flipped(b, signs(lanes))),
            _ => (a, b),
        };
        let made = match op {
            EqInt | NeInt => Made::Binary(equal(lanes), None, a, b),
            SltInt | UltInt => Made::Binary(greater(lanes), None, b, a),
            SleInt | UleInt => Made::Binary(greater(lanes), None, a, b),
            _ => return None,
        };
        let made = self.make(made, true);
        let is_opposite = matches!(op, NeInt | SleInt | UleInt);
        Some(if is_opposite { self.opposite(made) } else { made })
    }

    /// The lesser or greater of each two integers; `None` if it takes more than an instruction.
    pub(super) fn extreme(
        &mut self,
        is_less: bool,
        signed: bool,
        lanes: Lanes,
        a: Wide,
        b: Wide,
    ) -> Option<Wide> {
        let (map, opcode) = match (lanes, signed, is_less) {
            (Lanes::I8x16, true, true) => (OF38, 0x38),
            (Lanes::I8x16, true, false) => (OF38, 0x3c),
            (Lanes::I8x16, false, true) => (OF, 0xda),
            (Lanes::I8x16, false, false) => (OF, 0xde),
            (Lanes::I16x8, true, true) => (OF, 0xea),
            (Lanes::I16x8, true, false) => (OF, 0xee),
            (Lanes::I16x8, false, true) => (OF38, 0x3a),
            (Lanes::I16x8, false, false) => (OF38, 0x3e),
            (Lanes::I32x4 | Lanes::I64x2, true, true) => (OF38, 0x39),
            (Lanes::I32x4 | Lanes::I64x2, true, false) => (OF38, 0x3d),
            (Lanes::I32x4 | Lanes::I64x2, false, true) => (OF38, 0x3b),
            (Lanes::I32x4 | Lanes::I64x2, false, false) => (OF38, 0x3f),
            _ => return None,
        };
        let vex = on_ints(lanes, map, opcode);
        let vex = match lanes {
            Lanes::I64x2 if !self.features().avx512 => return None,
            Lanes::I64x2 => vex.evex(),
            _ => vex,
        };
        Some(self.make(Made::Binary(vex, None, a, b), false))
    }

    /// A value with some bits flipped.
    fn flipped(&mut self, of: Wide, bits: u128) -> Wide {
        let bits = self.constant_of(bits);
        self.make(Made::Binary(XOR, None, of, bits), false)
    }

    /// All bits flipped.
    fn opposite(&mut self, of: Wide) -> Wide {
        let (is_mask, ones) = (self.is_mask(of), self.constant_of(u128::MAX));
        self.make(Made::Binary(XOR, None, of, ones), is_mask)
    }

    /// Signed integers of 64 bits as floats.
    pub(super) fn floats_of(&mut self, of: Wide) -> Wide {
        self.make(Made::Unary(Vex::new(OF, 0xe6).prefix(2).words(true).evex(), of), false)
    }

    /// A count of bits of each word.
    fn counted(&mut self, opcode: u8, of: Wide) -> Wide {
        self.make(Made::Unary(Vex::new(OF38, opcode).words(true).evex(), of), false)
    }

    /// An operation of one operand.
    pub(super) fn unary(&mut self, op: Intrinsic, lanes: Lanes, of: Wide) -> Option<Wide> {
        match op.strict() {
            Intrinsic::NotInt => Some(self.opposite(of)),
            Intrinsic::NegInt => {
                let zero = self.constant_of(0);
                self.binary(Intrinsic::SubInt, lanes, zero, of)
            }
            Intrinsic::NegFloat => Some(self.flipped(of, signs(lanes.as_int()))),
            Intrinsic::AbsFloat => {
                let rest = self.constant_of(!signs(lanes.as_int()));
                self.binary(Intrinsic::AndInt, lanes.as_int(), of, rest)
            }
            Intrinsic::CtpopInt if self.features().avx512 => Some(self.counted(0x55, of)),
            Intrinsic::CtlzInt if self.features().avx512 => Some(self.counted(0x44, of)),
            // The zeros below the lowest one are the bits that a word less one has and the word has not.
            Intrinsic::CttzInt if self.features().avx512 => {
                let ones = self.constant_of(u128::MAX);
                let below = self.binary(Intrinsic::AddInt, lanes, of, ones)?;
                let zeros = self.make(Made::Binary(AND_NOT, None, of, below), false);
                Some(self.counted(0x55, zeros))
            }
            Intrinsic::SqrtLlvm => Some(self.make(Made::Unary(on_floats(lanes, 0x51), of), false)),
            _ => None,
        }
    }

    /// A product and a sum.
    pub(super) fn ternary(&mut self, op: Intrinsic, lanes: Lanes, [a, b, c]: [Wide; 3]) -> Option<Wide> {
        match op.strict() {
            Intrinsic::MuladdFloat => {
                let product = self.binary(Intrinsic::MulFloat, lanes, a, b)?;
                self.binary(Intrinsic::AddFloat, lanes, product, c)
            }
            Intrinsic::FmaFloat if self.features().fma => {
                let words = lanes == Lanes::F64x2;
                let vex = Vex { wide: words, words, ..Vex::new(OF38, 0xb8) };
                Some(self.make(Made::Fma(vex, a, b, c), false))
            }
            _ => None,
        }
    }

    /// A shift by a constant. Counts that are not below the width leave nothing, or the sign, as in low IR.
    pub(super) fn shift(&mut self, op: Intrinsic, lanes: Lanes, of: Wide, count: u128) -> Option<Wide> {
        let digit = match op {
            Intrinsic::ShlInt => 6,
            Intrinsic::LshrInt => 2,
            Intrinsic::AshrInt if lanes != Lanes::I64x2 || self.features().avx512 => 4,
            _ => return None,
        };
        let vex = match (lanes, op) {
            (Lanes::I8x16, _) => return None,
            (Lanes::I64x2, Intrinsic::AshrInt) => Vex::new(OF, 0x72).words(true).evex(),
            _ => on_ints(lanes, OF, by_width(lanes, [0, 0x71, 0x72, 0x73])),
        };
        let count = u8::try_from(count).unwrap_or(u8::MAX);
        Some(self.make(Made::Shift(vex, digit, of, count), false))
    }
}
