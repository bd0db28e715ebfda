//! `Float16`: exact in `f64`, or in integers; rounded by looking for the nearest of all its values.
//!
//! Every finite `Float16` is a multiple of 2⁻²⁴, so sums and products of them are whole multiples of 2⁻⁴⁸ and fit an
//! `i128`. A quotient or root is computed in `f64` first, which has more than twice the digits and cannot mislead.

use super::Expected;

/// One more than the largest finite magnitude's bits: infinity.
const INFINITY: u128 = 0x7c00;
const SIGN: u128 = 0x8000;
/// 2⁴⁸
const UNIT: f64 = 281_474_976_710_656.0;

/// The value of a `Float16`.
pub(super) fn to_f64(bits: u128) -> f64 {
    let magnitude = bits & !SIGN;
    let fraction = (magnitude & 0x3ff) as f64;
    let value = match magnitude >> 10 {
        0 => fraction / 1024.0 / 16384.0,
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(exponent as i32 - 15),
    };
    if bits & SIGN == 0 { value } else { -value }
}

/// The nearest `Float16`; of two equally near ones, the even one. Infinity counts as the next magnitude after the last.
pub(super) fn nearest(value: f64) -> u128 {
    let sign = if value.is_sign_negative() { SIGN } else { 0 };
    let magnitude = value.abs();
    if magnitude >= 65536.0 {
        return sign | INFINITY;
    }
    let step = |bits: u128| if bits == INFINITY { 65536.0 } else { to_f64(bits) };
    // The greatest magnitude that is not above the value.
    let (mut low, mut high) = (0, INFINITY);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if step(middle) <= magnitude { low = middle } else { high = middle }
    }
    // Both differences are exact: the three numbers are within a factor of two or below 2⁻¹⁴.
    let (below, above) = (magnitude - step(low), step(high) - magnitude);
    sign | match below.total_cmp(&above) {
        std::cmp::Ordering::Less => low,
        std::cmp::Ordering::Greater => high,
        std::cmp::Ordering::Equal => low + (low & 1),
    }
}

/// As [`nearest`], of a multiple of 2⁻⁴⁸.
fn nearest_multiple(value: i128) -> u128 {
    let sign = if value < 0 { SIGN } else { 0 };
    let magnitude = value.unsigned_abs();
    let in_units =
        |bits: u128| if bits == INFINITY { 65536u128 << 48 } else { (to_f64(bits) * UNIT) as u128 };
    if magnitude >= in_units(INFINITY) {
        return sign | INFINITY;
    }
    let (mut low, mut high) = (0, INFINITY);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if in_units(middle) <= magnitude { low = middle } else { high = middle }
    }
    let (below, above) = (magnitude - in_units(low), in_units(high) - magnitude);
    sign | match below.cmp(&above) {
        std::cmp::Ordering::Less => low,
        std::cmp::Ordering::Greater => high,
        std::cmp::Ordering::Equal => low + (low & 1),
    }
}

/// `x * y + z` for finite operands, rounded once.
fn fused(x: f64, y: f64, z: f64) -> u128 {
    // The product of two halves has 22 digits, so it is exact, and so is the shift by 48 places.
    let exact = (x * y * UNIT) as i128 + (z * UNIT) as i128;
    match exact {
        // An exact zero has the sign that IEEE gives the sum.
        0 => {
            if (x * y + z).is_sign_negative() {
                SIGN
            } else {
                0
            }
        }
        _ => nearest_multiple(exact),
    }
}

pub(super) fn operation(name: &str, args: &[u128]) -> Option<Expected> {
    let bits = |index: usize| args.get(index).copied().unwrap_or(0);
    let (x, y, z) = (to_f64(bits(0)), to_f64(bits(1)), to_f64(bits(2)));
    let truth = |value: bool| Some(Expected::Bits(value.into()));
    let rounded = |value: f64| if value.is_nan() { Expected::Nan } else { Expected::Bits(nearest(value)) };
    let all_finite = x.is_finite() && y.is_finite() && z.is_finite();
    Some(match name {
        "neg_float" => Expected::Bits(bits(0) ^ SIGN),
        "abs_float" => Expected::Bits(bits(0) & !SIGN),
        "copysign_float" => Expected::Bits(bits(0) & !SIGN | bits(1) & SIGN),
        "eq_float" => return truth(x == y),
        "ne_float" => return truth(x != y),
        "lt_float" => return truth(x < y),
        "le_float" => return truth(x <= y),
        "fpiseq" => return truth(x.is_nan() && y.is_nan() || bits(0) == bits(1)),
        "add_float" => rounded(x + y),
        "sub_float" => rounded(x - y),
        "mul_float" => rounded(x * y),
        "div_float" => rounded(x / y),
        "rem_float" => rounded(x % y),
        "min_float" | "max_float" if x.is_nan() || y.is_nan() => Expected::Nan,
        "min_float" if x == y => Expected::Bits(bits(0) | bits(1)),
        "max_float" if x == y => Expected::Bits(bits(0) & bits(1)),
        "min_float" => rounded(if x < y { x } else { y }),
        "max_float" => rounded(if x < y { y } else { x }),
        "fma_float" if all_finite => Expected::Bits(fused(x, y, z)),
        "fma_float" => rounded(x * y + z),
        "muladd_float" if all_finite => {
            let product = to_f64(nearest(x * y));
            let twice = product + z;
            if twice.is_finite() { Expected::Either(fused(x, y, z), nearest(twice)) } else { Expected::Open }
        }
        "muladd_float" => {
            // A product that only rounding makes infinite may meet the other infinity.
            let product = x * y;
            let twice = if product.is_finite() { to_f64(nearest(product)) + z } else { product + z };
            if twice.is_nan() == (product + z).is_nan() { rounded(twice) } else { Expected::Open }
        }
        "sqrt_llvm" => rounded(x.sqrt()),
        "ceil_llvm" => rounded(x.ceil()),
        "floor_llvm" => rounded(x.floor()),
        "trunc_llvm" => rounded(x.trunc()),
        "rint_llvm" => rounded(x.round_ties_even()),
        _ => return None,
    })
}
