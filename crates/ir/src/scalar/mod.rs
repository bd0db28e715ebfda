//! The semantics of every pure intrinsic, bit for bit: the reference that interpreter, constant folding and
//! tests share.
//!
//! ```text
//! eval(op, result type, operands) -> One(scalar) | Pair(scalar, wrapped?)      or      DivideError | Misuse
//!
//! mod.rs      types, the type rule of each shape (`check`), dispatch
//! int.rs      integers of 1 to 128 bits         float.rs    IEEE arithmetic on 16, 32, 64 bits
//! convert.rs  between any two types             format.rs   the float formats and the one rounding routine
//! numbers.rs  numbers of Julia's types: promotion, operators, conversion
//! parse.rs    numbers in text
//! ```
//!
//! **Scalars** are a type and 128 bits, of which only the low ones of the type's width may be set. Signed and
//! unsigned integers are one type here: the operation says how it reads the bits. A `Ptr` is an integer of 64
//! bits, a `Char` one of 32.
//!
//! **Bool** is a byte that holds 0 or 1, written `Int { bits: 1 }`. An operation on it works on the byte, and
//! the result keeps its lowest bit: `not_int(true)` is `false`, `neg_int(true)` and `sext_int(Int8, true)`
//! are 1 (no sign), `ctlz_int(false)` is 8 and so `false`. `bitcast` to and from `Int { bits: 8 }` is
//! allowed. Comparisons return `Int { bits: 1 }` or the byte itself, `Int { bits: 8 }`.
//!
//! **Choices** where Julia leaves the value open; native code must make the same:
//!
//! | case | value |
//! |---|---|
//! | shift count ≥ width (counts are unsigned) | 0, or the sign everywhere for `ashr_int` (Julia defines this one) |
//! | divisor 0, checked or not, signed or not | `DivideError` |
//! | `sdiv_int`, `checked_sdiv_int` of typemin by -1 | `DivideError` |
//! | `srem_int`, `checked_srem_int` of typemin by -1 | 0 |
//! | `fptosi`, `fptoui` out of range | the nearest integer in range; NaN becomes 0 |
//! | `muladd_float` | product rounded, then sum rounded: never fused. A pass that fuses writes `fma_float` |
//! | a `_fast` operation | the value of its strict twin |
//! | arithmetic whose result is NaN | some quiet NaN, see below |
//!
//! **NaN.** `neg_float`, `abs_float`, `copysign_float` and `bitcast` move bits and keep every payload,
//! signalling or not. Any other operation with a NaN result returns *a* quiet NaN: processors differ in its
//! sign and payload, so nothing may depend on them, and results are compared with [`Scalar::agrees`]. The one
//! returned here is the first NaN operand made quiet (format conversions keep the sign and the upper payload
//! bits), or the positive NaN with an empty payload if no operand was NaN.
//!
//! Cost: a few dozen machine operations each, no allocation. Not done: intrinsics that have effects, access
//! memory, or depend on the processor (`have_fma`); they count as misuse here.

mod convert;
mod float;
mod format;
mod int;
mod numbers;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::intrinsic::{Convert, Intrinsic, Shape};
use format::Format;
pub use format::{f16_to_f64, f64_to_f16};
pub use numbers::{Converted, Number, Numbers};
pub use parse::parse_float;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScalarType {
    /// An integer, pointer or character of 1 (`Bool`) to 128 bits.
    Int {
        /// The width.
        bits: u16,
    },
    /// `Float16`
    F16,
    /// `Float32`
    F32,
    /// `Float64`
    F64,
}

impl ScalarType {
    /// The type of truth values.
    pub const BOOL: ScalarType = ScalarType::Int { bits: 1 };

    /// The number of bits that carry the value.
    pub fn bits(self) -> u16 {
        match self {
            ScalarType::Int { bits } => bits,
            ScalarType::F16 => 16,
            ScalarType::F32 => 32,
            ScalarType::F64 => 64,
        }
    }

    /// The number of bits that operations work on: `Bool` is a byte.
    fn storage_bits(self) -> u16 {
        if self == ScalarType::BOOL { 8 } else { self.bits() }
    }

    fn is_int(self) -> bool {
        matches!(self, ScalarType::Int { .. })
    }

    fn is_float(self) -> bool {
        !self.is_int()
    }

    fn format(self) -> Option<&'static Format> {
        match self {
            ScalarType::Int { .. } => None,
            ScalarType::F16 => Some(&Format::F16),
            ScalarType::F32 => Some(&Format::F32),
            ScalarType::F64 => Some(&Format::F64),
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarType::Int { bits: 1 } => f.write_str("Bool"),
            ScalarType::Int { bits } => write!(f, "Int{bits}"),
            ScalarType::F16 => f.write_str("Float16"),
            ScalarType::F32 => f.write_str("Float32"),
            ScalarType::F64 => f.write_str("Float64"),
        }
    }
}

/// A value of a scalar type. Bits above the type's width are zero, so that `==` is Julia's `===`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scalar {
    ty: ScalarType,
    bits: u128,
}

impl Scalar {
    /// The low bits of `bits` as a value of type `ty`.
    pub fn new(ty: ScalarType, bits: u128) -> Self {
        Scalar { ty, bits: bits & int::mask(u32::from(ty.bits())) }
    }

    /// An integer of a width; the value wraps.
    pub fn int(bits: u16, value: i128) -> Self {
        Scalar::new(ScalarType::Int { bits }, value.cast_unsigned())
    }

    /// A truth value.
    pub fn bool(value: bool) -> Self {
        Scalar { ty: ScalarType::BOOL, bits: u128::from(value) }
    }

    /// A `Float16` from its bits.
    pub fn f16(bits: u16) -> Self {
        Scalar { ty: ScalarType::F16, bits: u128::from(bits) }
    }

    /// A `Float32`.
    pub fn f32(value: f32) -> Self {
        Scalar { ty: ScalarType::F32, bits: u128::from(value.to_bits()) }
    }

    /// A `Float64`.
    pub fn f64(value: f64) -> Self {
        Scalar { ty: ScalarType::F64, bits: u128::from(value.to_bits()) }
    }

    pub fn ty(self) -> ScalarType {
        self.ty
    }

    /// The bits, which are also the value of an unsigned integer.
    pub fn bits(self) -> u128 {
        self.bits
    }

    /// The bits read as a signed integer of the type's width; `true` is 1.
    pub fn signed(self) -> i128 {
        int::signed(self.bits, u32::from(self.ty.storage_bits()))
    }

    /// The value of a float as a `Float64`, exactly; `None` for an integer.
    pub fn to_f64(self) -> Option<f64> {
        self.ty.format().map(|format| format.widen(self.bits))
    }

    /// Whether it is a float and not a number.
    pub fn is_nan(self) -> bool {
        self.ty.format().is_some_and(|format| format.is_nan(self.bits))
    }

    /// Whether two results of one operation agree: the same type and bits, or the same type and both NaN.
    pub fn agrees(self, other: Scalar) -> bool {
        self == other || (self.ty == other.ty && self.is_nan() && other.is_nan())
    }
}

/// The result of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// One value of the result type.
    One(Scalar),
    /// The wrapped value and whether it wrapped: `Tuple{T, Bool}`.
    Pair(Scalar, bool),
}

/// Why an operation has no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScalarError {
    /// The program throws Julia's `DivideError`.
    DivideError,
    /// The operation does not exist for these operands: the caller's mistake, not a behaviour of the program.
    Misuse(Misuse),
}

/// A broken type rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Misuse {
    /// The intrinsic accesses memory or queries the processor.
    NotScalar { op: Intrinsic },
    /// The number of operands is wrong.
    OperandCount { op: Intrinsic, given: usize },
    /// An operand has a type that the intrinsic does not accept there.
    Operand {
        op: Intrinsic,
        /// The operand's index, from 0.
        index: usize,
        given: ScalarType,
    },
    /// The intrinsic cannot return this type for these operands.
    Result {
        op: Intrinsic,
        /// The requested result type.
        given: ScalarType,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::NotScalar { op } => write!(f, "`{op}` is not a function of scalars alone"),
            Misuse::OperandCount { op, given } => {
                write!(f, "`{op}` takes {} operands, not {given}", op.arity())
            }
            Misuse::Operand { op, index, given } => {
                write!(f, "operand {} of `{op}` may not have the type {given}", index + 1)
            }
            Misuse::Result { op, given } => write!(f, "`{op}` of these operands cannot result in {given}"),
        }
    }
}

impl fmt::Display for ScalarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarError::DivideError => f.write_str("DivideError"),
            ScalarError::Misuse(misuse) => misuse.fmt(f),
        }
    }
}

impl std::error::Error for Misuse {}

impl std::error::Error for ScalarError {}

impl From<Misuse> for ScalarError {
    fn from(misuse: Misuse) -> Self {
        ScalarError::Misuse(misuse)
    }
}

/// Checks that `op` accepts operands of the given types and returns `result` (for a checked pair: the type of
/// its first half).
pub fn check(op: Intrinsic, result: ScalarType, operands: &[ScalarType]) -> Result<(), Misuse> {
    check_types(op, result, operands, |&ty| ty)
}

fn check_types<T>(
    op: Intrinsic,
    result: ScalarType,
    operands: &[T],
    type_of: impl Fn(&T) -> ScalarType,
) -> Result<(), Misuse> {
    if !op.is_pure() || op.shape() == Shape::Query {
        return Err(Misuse::NotScalar { op });
    }
    if !op.arity().allows(operands.len()) {
        return Err(Misuse::OperandCount { op, given: operands.len() });
    }
    let Some(first) = operands.first().map(&type_of) else {
        return Err(Misuse::OperandCount { op, given: 0 });
    };
    let result_fits = match op.shape() {
        Shape::IntCompare | Shape::FloatCompare => {
            matches!(result, ScalarType::Int { bits: 1 | 8 })
        }
        Shape::Convert(kind) => convert::allows(kind, first, result),
        _ => result == first,
    };
    let operand_fits = |index: usize, ty: ScalarType| {
        valid_width(ty)
            && match op.shape() {
                Shape::Shift => ty.is_int(),
                Shape::FloatUnary | Shape::FloatBinary | Shape::FloatTernary | Shape::FloatCompare => {
                    ty.is_float() && ty == first
                }
                Shape::Convert(Convert::Bits) => true,
                Shape::Convert(Convert::SignExtend | Convert::ZeroExtend | Convert::Truncate)
                | Shape::Convert(Convert::SignedToFloat | Convert::UnsignedToFloat) => ty.is_int(),
                Shape::Convert(_) => ty.is_float(),
                _ if op == Intrinsic::BswapInt => ty.is_int() && ty.storage_bits().is_multiple_of(8),
                _ => ty.is_int() && (index == 0 || ty == first),
            }
    };
    for (index, operand) in operands.iter().enumerate() {
        let given = type_of(operand);
        if !operand_fits(index, given) {
            return Err(Misuse::Operand { op, index, given });
        }
    }
    if result_fits && valid_width(result) { Ok(()) } else { Err(Misuse::Result { op, given: result }) }
}

fn valid_width(ty: ScalarType) -> bool {
    (1..=128).contains(&ty.bits())
}

/// Computes an intrinsic.
pub fn eval(op: Intrinsic, result: ScalarType, operands: &[Scalar]) -> Result<Outcome, ScalarError> {
    check_types(op, result, operands, |scalar| scalar.ty)?;
    let bits = |index: usize| operands.get(index).map_or(0, |scalar| scalar.bits);
    let (a, b, c) = (bits(0), bits(1), bits(2));
    let ty = operands.first().map_or(result, |scalar| scalar.ty);
    let width = u32::from(ty.storage_bits());
    let format = ty.format();
    let strict = op.strict();

    // `check_types` has matched operands and shape, so the `None`s below mean a row without an implementation here.
    let value = match op.shape() {
        Shape::IntUnary => int::unary(strict, width, a),
        Shape::IntBinary | Shape::PtrOffset => int::binary(strict, width, a, b),
        Shape::IntDivide => match int::divide(strict, width, a, b) {
            Some(Some(value)) => Some(value),
            Some(None) => return Err(ScalarError::DivideError),
            None => None,
        },
        Shape::Shift => int::shift(strict, width, a, b),
        Shape::IntCompare => int::compare(strict, width, a, b).map(u128::from),
        Shape::CheckedPair => match int::checked(strict, width, a, b) {
            Some((value, wrapped)) => return Ok(Outcome::Pair(Scalar::new(result, value), wrapped)),
            None => None,
        },
        Shape::FloatUnary => format.and_then(|format| float::unary(strict, format, a)),
        Shape::FloatBinary => format.and_then(|format| float::binary(strict, format, a, b)),
        Shape::FloatTernary => format.and_then(|format| float::ternary(strict, format, a, b, c)),
        Shape::FloatCompare => format.and_then(|format| float::compare(strict, format, a, b)).map(u128::from),
        Shape::Convert(kind) => convert::convert(kind, ty, result, a),
        _ => None,
    };
    match value {
        Some(value) => Ok(Outcome::One(Scalar::new(result, value))),
        None => Err(ScalarError::Misuse(Misuse::NotScalar { op })),
    }
}
