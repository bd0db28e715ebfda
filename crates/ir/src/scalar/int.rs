//! Integers of any width up to 128 bits, each held in the low bits of a `u128`.
//!
//! One rule makes every width the same code: operands are read into 128 bits (with zeros, or with
//! [`signed`]), the operation is done there, and the caller truncates the result to the width. Overflow
//! is found by comparing the truncated value with the full one.
//!
//! Each function returns `None` for an intrinsic that is not of its shape. `width` is 1 to 128, bits above it
//! are zero.

use crate::intrinsic::Intrinsic;

/// The low `width` bits.
pub(super) fn mask(width: u32) -> u128 {
    match width {
        0 => 0,
        1..128 => (1 << width) - 1,
        _ => u128::MAX,
    }
}

/// The low `width` bits read as two's complement.
pub(super) fn signed(value: u128, width: u32) -> i128 {
    let unused = 128 - width.clamp(1, 128);
    (value << unused).cast_signed() >> unused
}

pub(super) fn unary(op: Intrinsic, width: u32, a: u128) -> Option<u128> {
    let unused = 128 - width.clamp(1, 128);
    Some(match op {
        Intrinsic::NegInt => a.wrapping_neg(),
        Intrinsic::NotInt => !a,
        Intrinsic::BswapInt => a.swap_bytes() >> unused,
        Intrinsic::BitreverseInt => a.reverse_bits() >> unused,
        Intrinsic::CtpopInt => u128::from(a.count_ones()),
        Intrinsic::CtlzInt => u128::from(a.leading_zeros() - unused),
        Intrinsic::CttzInt => u128::from(a.trailing_zeros().min(width)),
        _ => return None,
    })
}

pub(super) fn binary(op: Intrinsic, width: u32, a: u128, b: u128) -> Option<u128> {
    Some(match op {
        Intrinsic::AndInt => a & b,
        Intrinsic::OrInt => a | b,
        Intrinsic::XorInt => a ^ b,
        Intrinsic::AddInt | Intrinsic::AddPtr => a.wrapping_add(b),
        Intrinsic::SubInt | Intrinsic::SubPtr => a.wrapping_sub(b),
        Intrinsic::MulInt => a.wrapping_mul(b),
        Intrinsic::FlipsignInt if signed(b, width) < 0 => a.wrapping_neg(),
        Intrinsic::FlipsignInt => a,
        _ => return None,
    })
}

/// The quotient or remainder; `Some(None)` is a `DivideError`.
pub(super) fn divide(op: Intrinsic, width: u32, a: u128, b: u128) -> Option<Option<u128>> {
    let (x, y) = (signed(a, width), signed(b, width));
    let overflows = y == -1 && x == signed(1 << (width.clamp(1, 128) - 1), width);
    Some(match op {
        Intrinsic::UdivInt | Intrinsic::CheckedUdivInt => a.checked_div(b),
        Intrinsic::UremInt | Intrinsic::CheckedUremInt => a.checked_rem(b),
        Intrinsic::SdivInt | Intrinsic::CheckedSdivInt if overflows => None,
        Intrinsic::SdivInt | Intrinsic::CheckedSdivInt => x.checked_div(y).map(i128::cast_unsigned),
        Intrinsic::SremInt | Intrinsic::CheckedSremInt if overflows => Some(0),
        Intrinsic::SremInt | Intrinsic::CheckedSremInt => x.checked_rem(y).map(i128::cast_unsigned),
        _ => return None,
    })
}

pub(super) fn shift(op: Intrinsic, width: u32, a: u128, count: u128) -> Option<u128> {
    // A count beyond 127 shifts out every bit at any width; for it the checked shifts return `None`.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    Some(match op {
        Intrinsic::ShlInt => a.checked_shl(count).unwrap_or(0),
        Intrinsic::LshrInt => a.checked_shr(count).unwrap_or(0),
        Intrinsic::AshrInt => (signed(a, width) >> count.min(127)).cast_unsigned(),
        _ => return None,
    })
}

pub(super) fn compare(op: Intrinsic, width: u32, a: u128, b: u128) -> Option<bool> {
    let (x, y) = (signed(a, width), signed(b, width));
    Some(match op {
        Intrinsic::EqInt => a == b,
        Intrinsic::NeInt => a != b,
        Intrinsic::SltInt => x < y,
        Intrinsic::SleInt => x <= y,
        Intrinsic::UltInt => a < b,
        Intrinsic::UleInt => a <= b,
        _ => return None,
    })
}

/// The value before truncation, and whether truncation changes it.
pub(super) fn checked(op: Intrinsic, width: u32, a: u128, b: u128) -> Option<(u128, bool)> {
    let (x, y) = (signed(a, width), signed(b, width));
    let of_signed = |(value, overflow): (i128, bool)| {
        let value_bits = value.cast_unsigned();
        (value_bits, overflow || signed(value_bits, width) != value)
    };
    let of_unsigned = |(value, overflow): (u128, bool)| (value, overflow || value > mask(width));
    Some(match op {
        Intrinsic::CheckedSaddInt => of_signed(x.overflowing_add(y)),
        Intrinsic::CheckedSsubInt => of_signed(x.overflowing_sub(y)),
        Intrinsic::CheckedSmulInt => of_signed(x.overflowing_mul(y)),
        Intrinsic::CheckedUaddInt => of_unsigned(a.overflowing_add(b)),
        Intrinsic::CheckedUsubInt => of_unsigned(a.overflowing_sub(b)),
        Intrinsic::CheckedUmulInt => of_unsigned(a.overflowing_mul(b)),
        _ => return None,
    })
}
