//! Vectors: 128 bits divided into lanes, and lane-wise operations.
//!
//! Low IR has one vector type, `v128`. An operation on it determines the division into lanes, as in processors:
//!
//! ```text
//!   bit 127                                    0
//!      │ lane 1 (f64) │ lane 0 (f64) │              f64x2, i64x2
//!      │ 3 │ 2 │ 1 │ 0 │                            f32x4, i32x4         in memory lane 0 comes first
//!
//!   lanes(add_float, f64x2, %a, %b)     each lane of %a plus the same lane of %b
//!   lanes(lt_float, f64x2, %a, %b)      a mask: all bits of a lane are set where the comparison holds
//!   lane_select(%mask, %a, %b)          bits of %a where the mask has ones, else bits of %b
//! ```
//!
//! [`Lanes::allows`] tells which intrinsics exist in lanes: arithmetic and comparisons of one width, except
//! those that throw or that some processors can only do lane by lane. A shift takes one count, an `i64`, for
//! all lanes. Each lane gets the result of the scalar intrinsic (`scalar`).
//!
//! Conversions change to an adjacent width ([`Lanes::made_by`]). A widening conversion reads the low half of
//! the lanes; a narrowing one writes the low half, and the rest is 0.
//!
//! ```text
//!   lanes(sext_int, i16x8, %a)     lane n of the result, an i32x4, is lane n of %a         n < 4
//!   lanes(fptrunc, f64x2, %a)      an f32x4 of two floats and two zeros
//! ```
//!
//! Vectors pass between compiled functions in registers; no high type contains them. Not done: shuffles,
//! widths other than 128 bits.

use crate::intrinsic::Intrinsic;
use crate::scalar::{self, Outcome, Scalar, ScalarType};
use crate::types::LowType;

/// A division of 128 bits into lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Lanes {
    /// 16 integers of 8 bits.
    I8x16,
    /// 8 integers of 16 bits.
    I16x8,
    /// 4 integers of 32 bits.
    I32x4,
    /// 2 integers of 64 bits.
    I64x2,
    /// 4 floats of 32 bits.
    F32x4,
    /// 2 floats of 64 bits.
    F64x2,
}

impl Lanes {
    /// All divisions.
    pub const ALL: [Lanes; 6] =
        [Lanes::I8x16, Lanes::I16x8, Lanes::I32x4, Lanes::I64x2, Lanes::F32x4, Lanes::F64x2];

    pub fn name(self) -> &'static str {
        match self {
            Lanes::I8x16 => "i8x16",
            Lanes::I16x8 => "i16x8",
            Lanes::I32x4 => "i32x4",
            Lanes::I64x2 => "i64x2",
            Lanes::F32x4 => "f32x4",
            Lanes::F64x2 => "f64x2",
        }
    }

    /// The inverse of [`Lanes::name`].
    pub fn from_name(name: &str) -> Option<Lanes> {
        Lanes::ALL.into_iter().find(|l| l.name() == name)
    }

    /// The division into lanes of a scalar type.
    pub fn of(element: LowType) -> Option<Lanes> {
        Lanes::ALL.into_iter().find(|l| l.element() == element)
    }

    /// The type of a lane.
    pub fn element(self) -> LowType {
        match self {
            Lanes::I8x16 => LowType::I8,
            Lanes::I16x8 => LowType::I16,
            Lanes::I32x4 => LowType::I32,
            Lanes::I64x2 => LowType::I64,
            Lanes::F32x4 => LowType::F32,
            Lanes::F64x2 => LowType::F64,
        }
    }

    pub fn count(self) -> u32 {
        128 / self.element().bits()
    }

    /// Whether the lanes are floats.
    pub fn is_float(self) -> bool {
        self.element().is_float()
    }

    /// Integers of the same width.
    pub fn as_int(self) -> Lanes {
        match self {
            Lanes::F32x4 => Lanes::I32x4,
            Lanes::F64x2 => Lanes::I64x2,
            int => int,
        }
    }

    /// Whether an intrinsic exists lane by lane.
    pub fn allows(self, op: Intrinsic) -> bool {
        use Intrinsic::*;
        match op.strict() {
            AddInt | SubInt | NegInt | NotInt | AndInt | OrInt | XorInt | ShlInt | LshrInt | AshrInt
            | EqInt | NeInt | SltInt | SleInt | UltInt | UleInt => !self.is_float(),
            MulInt => !self.is_float() && self != Lanes::I8x16,
            CtpopInt | CttzInt | CtlzInt => self == Lanes::I64x2,
            NegFloat | AddFloat | SubFloat | MulFloat | DivFloat | MinFloat | MaxFloat | MuladdFloat
            | FmaFloat | AbsFloat | SqrtLlvm | EqFloat | NeFloat | LtFloat | LeFloat => self.is_float(),
            _ => self.made_by(op) != self,
        }
    }

    /// The lanes of an operation's result for operands with these lanes; they differ only for an existing
    /// conversion.
    pub fn made_by(self, op: Intrinsic) -> Lanes {
        use Intrinsic::*;
        match (op, self) {
            (SextInt | ZextInt, Lanes::I8x16) => Lanes::I16x8,
            (SextInt | ZextInt, Lanes::I16x8) => Lanes::I32x4,
            (SextInt | ZextInt, Lanes::I32x4) => Lanes::I64x2,
            (TruncInt, Lanes::I64x2) => Lanes::I32x4,
            (TruncInt, Lanes::I32x4) => Lanes::I16x8,
            (TruncInt, Lanes::I16x8) => Lanes::I8x16,
            (Fpext, Lanes::F32x4) | (Sitofp, Lanes::I32x4) => Lanes::F64x2,
            (Fptrunc, Lanes::F64x2) => Lanes::F32x4,
            _ => self,
        }
    }

    /// Whether an operation returns a mask.
    pub fn compares(op: Intrinsic) -> bool {
        use crate::intrinsic::Shape;
        matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare)
    }

    /// Whether an operation counts bits of its operand. Few processors have that in lanes.
    pub fn counts_bits(op: Intrinsic) -> bool {
        matches!(op, Intrinsic::CtpopInt | Intrinsic::CttzInt | Intrinsic::CtlzInt)
    }

    /// Whether the second operand is a single count for all lanes.
    pub fn shifts(op: Intrinsic) -> bool {
        op.shape() == crate::intrinsic::Shape::Shift
    }

    fn scalar(self) -> ScalarType {
        match self.element() {
            LowType::F32 => ScalarType::F32,
            LowType::F64 => ScalarType::F64,
            low => ScalarType::Int { bits: low.bits() as u16 },
        }
    }

    /// The bits of a lane; lanes beyond the last are 0.
    pub fn extract(self, vector: u128, lane: u32) -> u128 {
        let bits = self.element().bits();
        let mask = u128::MAX >> (128 - bits);
        vector.checked_shr(lane.saturating_mul(bits)).unwrap_or(0) & mask
    }

    /// The vector with one lane replaced; one beyond the last changes nothing.
    pub fn insert(self, vector: u128, lane: u32, value: u128) -> u128 {
        if lane >= self.count() {
            return vector;
        }
        let (bits, at) = (self.element().bits(), lane * self.element().bits());
        let mask = u128::MAX >> (128 - bits);
        vector & !(mask << at) | (value & mask) << at
    }

    /// The vector with this value in every lane.
    pub fn splat(self, value: u128) -> u128 {
        (0..self.count()).fold(0, |vector, lane| self.insert(vector, lane, value))
    }

    /// Evaluates an intrinsic lane by lane; `None` if it does not exist for these lanes or this number of
    /// operands.
    pub fn eval(self, op: Intrinsic, operands: &[u128]) -> Option<u128> {
        if !self.allows(op) {
            return None;
        }
        let (lane_type, mask) = (self.scalar(), u128::MAX >> (128 - self.element().bits()));
        let made = self.made_by(op);
        let result = if Lanes::compares(op) { ScalarType::BOOL } else { made.scalar() };
        let mut vector = 0;
        for lane in 0..self.count().min(made.count()) {
            let operand = |(n, &bits): (usize, &u128)| match (Lanes::shifts(op), n) {
                (true, 1) => Scalar::new(ScalarType::Int { bits: 64 }, bits),
                _ => Scalar::new(lane_type, self.extract(bits, lane)),
            };
            let operands: smallvec::SmallVec<[Scalar; 3]> =
                operands.iter().enumerate().map(operand).collect();
            let Ok(Outcome::One(value)) = scalar::eval(op, result, &operands) else { return None };
            let bits = if Lanes::compares(op) { value.bits() * mask } else { value.bits() };
            vector = made.insert(vector, lane, bits);
        }
        Some(vector)
    }
}

/// Bits of `yes` where `mask` has ones, else bits of `no`.
pub fn select(mask: u128, yes: u128, no: u128) -> u128 {
    mask & yes | !mask & no
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_counted_from_the_low_end() {
        let v = Lanes::I32x4.insert(0, 1, 7);
        assert_eq!(v, 7 << 32);
        assert_eq!(Lanes::I32x4.extract(v, 1), 7);
        assert_eq!(Lanes::I32x4.extract(v, 4), 0);
        assert_eq!(Lanes::I32x4.insert(v, 4, 9), v);
        assert_eq!(Lanes::I64x2.splat(u128::from(u64::MAX)), u128::MAX);
    }

    #[test]
    fn no_carry_leaves_its_lane() {
        let ones = u128::MAX;
        assert_eq!(Lanes::I8x16.eval(Intrinsic::AddInt, &[ones, Lanes::I8x16.splat(1)]), Some(0));
        assert_eq!(Lanes::I64x2.eval(Intrinsic::ShlInt, &[ones, 64]), Some(0));
        assert_eq!(Lanes::I16x8.eval(Intrinsic::AshrInt, &[ones << 127, 99]), Some(0xffff << 112));
    }

    #[test]
    fn comparisons_give_masks_that_select() {
        let a = Lanes::F64x2.insert(u128::from(1.5f64.to_bits()), 1, u128::from(f64::NAN.to_bits()));
        let b = Lanes::F64x2.splat(u128::from(2.0f64.to_bits()));
        let mask = Lanes::F64x2.eval(Intrinsic::LtFloat, &[a, b]).unwrap();
        assert_eq!(mask, u128::from(u64::MAX));
        assert_eq!(select(mask, a, b), Lanes::F64x2.insert(b, 0, a));
    }

    #[test]
    fn conversions_read_or_write_the_low_half() {
        let v = (0..8).fold(0, |v, n| Lanes::I16x8.insert(v, n, 0xfff0 + u128::from(n)));
        let wide = Lanes::I16x8.eval(Intrinsic::SextInt, &[v]).unwrap();
        assert_eq!(wide, 0xffff_fff3_ffff_fff2_ffff_fff1_ffff_fff0);
        assert_eq!(
            Lanes::I16x8.eval(Intrinsic::ZextInt, &[v]).unwrap(),
            0xfff3_0000_fff2_0000_fff1_0000_fff0
        );
        assert_eq!(Lanes::I32x4.eval(Intrinsic::TruncInt, &[wide]).unwrap(), 0xfff3_fff2_fff1_fff0);
        let floats = Lanes::F64x2.splat(u128::from(1.5f64.to_bits()));
        let narrow = Lanes::F64x2.eval(Intrinsic::Fptrunc, &[floats]).unwrap();
        assert_eq!(narrow, u128::from(1.5f32.to_bits()) << 32 | u128::from(1.5f32.to_bits()));
        assert_eq!(Lanes::F32x4.eval(Intrinsic::Fpext, &[narrow]), Some(floats));
        let minus = Lanes::I32x4.splat(0xffff_fffe);
        let two = Lanes::F64x2.splat(u128::from((-2.0f64).to_bits()));
        assert_eq!(Lanes::I32x4.eval(Intrinsic::Sitofp, &[minus]), Some(two));
    }

    #[test]
    fn operations_that_throw_or_skip_a_width_have_no_lanes() {
        for op in [Intrinsic::SdivInt, Intrinsic::Uitofp, Intrinsic::CheckedSaddInt, Intrinsic::CtlzInt] {
            assert_eq!(Lanes::I32x4.eval(op, &[1, 1]), None, "{op}");
        }
        assert_eq!(Lanes::I64x2.eval(Intrinsic::CtpopInt, &[7 << 62]), Some(1 << 64 | 2));
        assert_eq!(Lanes::I64x2.eval(Intrinsic::CttzInt, &[8]), Some(64 << 64 | 3));
        assert_eq!(Lanes::I64x2.eval(Intrinsic::CtlzInt, &[8 << 64 | 1]), Some(60 << 64 | 63));
        assert_eq!(Lanes::I64x2.eval(Intrinsic::ZextInt, &[1]), None);
        assert_eq!(Lanes::F64x2.eval(Intrinsic::AddInt, &[1, 1]), None);
        assert_eq!(Lanes::F64x2.eval(Intrinsic::AddFloat, &[1]), None);
    }
}
