//! IEEE 754 arithmetic in three formats through one path: widen to `Float64`, compute there, round back once.
//!
//! **Why one path is exact.** A result rounded to 53 bits and then to p bits is the exact result rounded to p
//! bits, for sum, difference, product, quotient and square root of operands of p bits, whenever 53 ≥ 2p + 2;
//! p is 11 and 24 here (for `Float64` nothing is rounded twice). The wide result never leaves the normal
//! range of `Float64`, so subnormal and overflowing narrow results are also rounded only once. Roundings to
//! an integer are exact in every format.
//!
//! **Fused multiply-add** is not covered by that rule. The product of two narrow floats is exact in
//! `Float64`; their sum with the addend is computed *to odd*: if it is inexact, the neighbour with an odd
//! significand is taken. An odd significand cannot be a tie in the narrower format, so rounding back sees
//! which side the exact sum is on. For `Float64` itself std's `mul_add` is the correctly rounded operation.
//!
//! A NaN operand decides the result before anything is computed; see the table in `mod.rs`. Each function
//! returns `None` for an intrinsic that is not of its shape.

use super::format::Format;
use crate::intrinsic::Intrinsic;

pub(super) fn unary(op: Intrinsic, format: &Format, a: u128) -> Option<u128> {
    let compute: fn(f64) -> f64 = match op {
        Intrinsic::NegFloat => return Some(a ^ format.sign()),
        Intrinsic::AbsFloat => return Some(a & !format.sign()),
        Intrinsic::SqrtLlvm => f64::sqrt,
        Intrinsic::CeilLlvm => f64::ceil,
        Intrinsic::FloorLlvm => f64::floor,
        Intrinsic::TruncLlvm => f64::trunc,
        Intrinsic::RintLlvm => f64::round_ties_even,
        _ => return None,
    };
    Some(first_nan(format, &[a]).unwrap_or_else(|| from_wide(format, compute(format.widen(a)))))
}

pub(super) fn binary(op: Intrinsic, format: &Format, a: u128, b: u128) -> Option<u128> {
    let compute: fn(f64, f64) -> f64 = match op {
        Intrinsic::CopysignFloat => return Some((a & !format.sign()) | (b & format.sign())),
        Intrinsic::AddFloat => |x, y| x + y,
        Intrinsic::SubFloat => |x, y| x - y,
        Intrinsic::MulFloat => |x, y| x * y,
        Intrinsic::DivFloat => |x, y| x / y,
        // Exact in every format, so there is nothing to round.
        Intrinsic::RemFloat => |x, y| x % y,
        Intrinsic::MinFloat => |x, y| if x < y || (x == y && x.is_sign_negative()) { x } else { y },
        Intrinsic::MaxFloat => |x, y| if x > y || (x == y && x.is_sign_positive()) { x } else { y },
        _ => return None,
    };
    let computed = || from_wide(format, compute(format.widen(a), format.widen(b)));
    Some(first_nan(format, &[a, b]).unwrap_or_else(computed))
}

pub(super) fn ternary(op: Intrinsic, format: &Format, a: u128, b: u128, c: u128) -> Option<u128> {
    if let Some(nan) = first_nan(format, &[a, b, c]) {
        return Some(nan);
    }
    let (x, y, z) = (format.widen(a), format.widen(b), format.widen(c));
    match op {
        Intrinsic::MuladdFloat => {
            let product = format.widen(from_wide(format, x * y));
            Some(from_wide(format, product + z))
        }
        Intrinsic::FmaFloat if *format == Format::F64 => Some(from_wide(format, x.mul_add(y, z))),
        Intrinsic::FmaFloat => Some(from_wide(format, sum_to_odd(x * y, z))),
        _ => None,
    }
}

pub(super) fn compare(op: Intrinsic, format: &Format, a: u128, b: u128) -> Option<bool> {
    let (x, y) = (format.widen(a), format.widen(b));
    Some(match op {
        Intrinsic::EqFloat => x == y,
        Intrinsic::NeFloat => x != y,
        Intrinsic::LtFloat => x < y,
        Intrinsic::LeFloat => x <= y,
        Intrinsic::Fpiseq => a == b || (x.is_nan() && y.is_nan()),
        _ => return None,
    })
}

/// The first NaN among the operands, made quiet.
fn first_nan(format: &Format, operands: &[u128]) -> Option<u128> {
    operands.iter().find(|&&bits| format.is_nan(bits)).map(|&nan| format.quieted(nan))
}

/// A computed result in the format of the operands. A NaN that comes from here had no NaN operand.
fn from_wide(format: &Format, value: f64) -> u128 {
    if value.is_nan() { format.default_nan() } else { format.narrow(value) }
}

/// `x + y` rounded to odd. Exact for infinities; the magnitudes of finite operands stay far below overflow.
fn sum_to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    // The error of the sum, exactly (Knuth's two-sum). It is NaN if the sum is not finite.
    let y_in_sum = sum - x;
    let error = (x - (sum - y_in_sum)) + (y - y_in_sum);
    let bits = sum.to_bits();
    if error.is_nan() || error == 0.0 || bits & 1 == 1 {
        return sum;
    }
    // The exact sum is between `sum` and its neighbour towards the error; the odd one is the neighbour.
    let away_from_zero = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away_from_zero { bits + 1 } else { bits - 1 })
}
