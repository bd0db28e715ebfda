//! Conversions: which pairs of types each one accepts, and its result.
//!
//! | conversion | from → to | value |
//! |---|---|---|
//! | `bitcast` | any two types of one size | the same bits |
//! | `sext_int`, `zext_int` | integer → wider integer | widened by sign, by zeros |
//! | `trunc_int` | integer → narrower integer | the low bits |
//! | `fptosi`, `fptoui` | float → integer | towards zero, then to the nearest in range; NaN becomes 0 |
//! | `sitofp`, `uitofp` | integer → float | the nearest, ties to even; beyond the largest finite: infinity |
//! | `fptrunc`, `fpext` | float → narrower, wider float | the nearest, ties to even; exact |
//!
//! All of them work on exact integers: a finite float is `±magnitude × 2^exponent`, so no host conversion is
//! involved.

use super::format::{Finite, Format};
use super::{ScalarType, int};
use crate::intrinsic::Convert;

/// Whether a conversion exists between two types.
pub(super) fn allows(kind: Convert, from: ScalarType, to: ScalarType) -> bool {
    match kind {
        Convert::Bits => from.storage_bits() == to.storage_bits(),
        Convert::SignExtend | Convert::ZeroExtend => from.is_int() && to.is_int() && from.bits() < to.bits(),
        Convert::Truncate => from.is_int() && to.is_int() && from.bits() > to.bits(),
        Convert::FloatToSigned | Convert::FloatToUnsigned => from.is_float() && to.is_int(),
        Convert::SignedToFloat | Convert::UnsignedToFloat => from.is_int() && to.is_float(),
        Convert::FloatTruncate => from.is_float() && to.is_float() && from.bits() > to.bits(),
        Convert::FloatExtend => from.is_float() && to.is_float() && from.bits() < to.bits(),
    }
}

/// Converts between types that [`allows`] accepts; `None` for others.
pub(super) fn convert(kind: Convert, from: ScalarType, to: ScalarType, bits: u128) -> Option<u128> {
    let signed = || int::signed(bits, u32::from(from.storage_bits()));
    match kind {
        Convert::Bits | Convert::ZeroExtend | Convert::Truncate => Some(bits),
        Convert::SignExtend => Some(signed().cast_unsigned()),
        Convert::FloatToSigned => Some(to_signed(from.format()?, bits, u32::from(to.storage_bits()))),
        Convert::FloatToUnsigned => Some(to_unsigned(from.format()?, bits, u32::from(to.storage_bits()))),
        Convert::SignedToFloat => Some(nearest(to.format()?, signed() < 0, signed().unsigned_abs())),
        Convert::UnsignedToFloat => Some(nearest(to.format()?, false, bits)),
        Convert::FloatTruncate | Convert::FloatExtend => Some(from.format()?.to(to.format()?, bits)),
    }
}

fn nearest(format: &Format, negative: bool, magnitude: u128) -> u128 {
    format.round(Finite { negative, magnitude, exponent: 0 })
}

/// The magnitude of a float cut to an integer, at most the largest of 128 bits; 0 for NaN.
fn cut(format: &Format, bits: u128) -> u128 {
    match format.finite(bits) {
        None if format.is_nan(bits) => 0,
        None => u128::MAX,
        Some(Finite { magnitude: 0, .. }) => 0,
        Some(Finite { magnitude, exponent, .. }) => {
            let places = exponent.unsigned_abs();
            if exponent < 0 {
                magnitude.checked_shr(places).unwrap_or(0)
            } else if places <= magnitude.leading_zeros() {
                magnitude.checked_shl(places).unwrap_or(0)
            } else {
                u128::MAX
            }
        }
    }
}

fn to_signed(format: &Format, bits: u128, width: u32) -> u128 {
    let largest = int::mask(width - 1);
    let magnitude = cut(format, bits);
    if format.is_negative(bits) { magnitude.min(largest + 1).wrapping_neg() } else { magnitude.min(largest) }
}

fn to_unsigned(format: &Format, bits: u128, width: u32) -> u128 {
    if format.is_negative(bits) { 0 } else { cut(format, bits).min(int::mask(width)) }
}
