//! `Float16` against exact integers in units of 2^-24 and 2^-48; see `mod.rs`.

use super::*;

/// `Float16` as an integer multiple of 2^-24, straight from the definition of the format.
fn half_units(bits: u16) -> Option<i128> {
    let (exponent, fraction) = (i128::from(bits >> 10 & 31), i128::from(bits & 1023));
    let magnitude = match exponent {
        31 => return None,
        0 => fraction,
        _ => (1024 + fraction) << (exponent - 1),
    };
    Some(if bits >> 15 == 1 { -magnitude } else { magnitude })
}

/// The `Float16` nearest to a multiple of 2^-48, found among all of them. A zero has the sign of `zero`.
pub(super) fn nearest_half(exact: i128, zero: u16) -> u16 {
    let sign = if exact < 0 || (exact == 0 && zero >> 15 == 1) { 0x8000 } else { 0 };
    let magnitude = exact.abs();
    // The candidate beyond the largest finite value stands for infinity.
    let value = |bits: u16| half_units(bits).unwrap_or(1 << 40) << 24;
    let (mut low, mut high) = (0u16, 0x7c00u16);
    if magnitude >= value(high) {
        return sign | high;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if value(middle) <= magnitude { low = middle } else { high = middle }
    }
    let (below, above) = (magnitude - value(low), value(high) - magnitude);
    let up = above < below || (above == below && low & 1 == 1);
    sign | if up { high } else { low }
}

pub(super) fn half(bits: u16) -> Scalar {
    Scalar::f16(bits)
}

const HALVES: [u16; 22] = [
    0, 1, 2, 0x03fe, 0x03ff, 0x0400, 0x0401, 0x1400, 0x2e66, 0x3555, 0x37ff, 0x3800, 0x3bff, 0x3c00, 0x3c01,
    0x4000, 0x4248, 0x63ff, 0x6400, 0x6801, 0x7bfe, 0x7bff,
];

fn half_operands() -> Vec<u16> {
    let mut sequence = Sequence(1);
    let signed = HALVES.iter().flat_map(|&bits| [bits, bits | 0x8000]);
    signed.chain((0..80).map(|_| sequence.next() as u16)).filter(|&bits| half_units(bits).is_some()).collect()
}

#[test]
fn every_half_widens_to_its_definition_and_narrows_back() {
    for bits in 0..=u16::MAX {
        let wide = f16_to_f64(bits);
        match half_units(bits) {
            Some(units) => assert_eq!(wide, units as f64 / f64::from(1 << 24), "{bits:#06x}"),
            None => assert_eq!(wide.is_nan(), bits & 1023 != 0, "{bits:#06x}"),
        }
        assert_eq!(wide.is_sign_negative(), bits >> 15 == 1);
        let quiet = if wide.is_nan() { bits | 0x0200 } else { bits };
        assert_eq!(f64_to_f16(wide), quiet);
        let single = one(Intrinsic::Fpext, ScalarType::F32, &[half(bits)]);
        assert_eq!(one(Intrinsic::Fptrunc, ScalarType::F16, &[single]), half(quiet));
    }
}

#[test]
fn every_half_through_the_unary_operations() {
    for bits in 0..=u16::MAX {
        let wide = f16_to_f64(bits);
        let unary = |op| one(op, ScalarType::F16, &[half(bits)]);
        assert_eq!(unary(Intrinsic::NegFloat), half(bits ^ 0x8000));
        assert_eq!(unary(Intrinsic::AbsFloat), half(bits & 0x7fff));
        if wide.is_nan() {
            assert!(
                [Intrinsic::SqrtLlvm, Intrinsic::FloorLlvm]
                    .iter()
                    .all(|&op| unary(op) == half(bits | 0x0200))
            );
            continue;
        }
        let rounded = |op, value: f64| {
            // A rounding to an integer is representable, and keeps the sign of the operand.
            assert_eq!(unary(op).to_f64(), Some(value), "{op} {bits:#06x}");
            assert_eq!(unary(op).bits() >> 15, u128::from(bits >> 15), "{op} {bits:#06x}");
        };
        rounded(Intrinsic::FloorLlvm, wide.floor());
        rounded(Intrinsic::CeilLlvm, wide.ceil());
        rounded(Intrinsic::TruncLlvm, wide.trunc());
        rounded(Intrinsic::RintLlvm, wide.round_ties_even());
        let root = unary(Intrinsic::SqrtLlvm);
        match half_units(bits) {
            Some(units) if units < 0 => assert_eq!(root, half(0x7e00)),
            Some(0) => assert_eq!(root, half(bits)),
            // The root is between the midpoints to its neighbours: compare squares, in units of 2^-25.
            Some(units) => {
                let root = root.bits() as u16;
                let neighbour = |bits: u16| half_units(bits).unwrap_or(0);
                let below = neighbour(root) + neighbour(root - 1);
                let above = neighbour(root) + neighbour(root + 1);
                let square = units << 26;
                assert!(below * below <= square && square <= above * above, "{bits:#06x}");
            }
            None if bits == 0x7c00 => assert_eq!(root, half(bits)),
            None => assert_eq!(root, half(0x7e00)),
        }
    }
}

#[test]
fn half_arithmetic_is_the_exact_result_rounded_once() {
    let operands = half_operands();
    let zero_sum = |a: u16, b: u16| a & b;
    for &a in &operands {
        for &b in &operands {
            let (Some(x), Some(y)) = (half_units(a), half_units(b)) else { continue };
            let binary = |op| one(op, ScalarType::F16, &[half(a), half(b)]);
            assert_eq!(
                binary(Intrinsic::AddFloat),
                half(nearest_half((x + y) << 24, zero_sum(a, b))),
                "{a:#x} + {b:#x}"
            );
            assert_eq!(
                binary(Intrinsic::SubFloat),
                half(nearest_half((x - y) << 24, zero_sum(a, b ^ 0x8000))),
                "{a:#x} - {b:#x}"
            );
            assert_eq!(binary(Intrinsic::MulFloat), half(nearest_half(x * y, a ^ b)), "{a:#x} * {b:#x}");
            if y != 0 {
                // 40 more bits and a sticky one decide every tie of an 11-bit quotient.
                let scaled = x.abs() << 72;
                let sticky = i128::from(scaled % y.abs() != 0);
                let quotient = (scaled / y.abs()) | sticky;
                let signed = if (a ^ b) >> 15 == 1 { -quotient } else { quotient };
                let exact = (signed >> 24) | i128::from(signed & 0xff_ffff != 0);
                assert_eq!(binary(Intrinsic::DivFloat), half(nearest_half(exact, a ^ b)), "{a:#x} / {b:#x}");
            }
            for &c in operands.iter().step_by(7) {
                let Some(z) = half_units(c) else { continue };
                let zero = if x * y == 0 { (a ^ b) & c } else { 0 };
                let fused = one(Intrinsic::FmaFloat, ScalarType::F16, &[half(a), half(b), half(c)]);
                assert_eq!(fused, half(nearest_half(x * y + (z << 24), zero)), "fma({a:#x}, {b:#x}, {c:#x})");
                let product = binary(Intrinsic::MulFloat);
                let unfused = one(Intrinsic::AddFloat, ScalarType::F16, &[product, half(c)]);
                let muladd = one(Intrinsic::MuladdFloat, ScalarType::F16, &[half(a), half(b), half(c)]);
                assert_eq!(muladd, unfused);
            }
        }
    }
}

#[test]
fn half_rounding_at_its_edges() {
    let table = [
        (65519.999, 0x7bff),
        (65520.0, 0x7c00),
        (-1.0e300, 0xfc00),
        (2f64.powi(-25), 0),
        (2f64.powi(-25) * 1.000001, 1),
        (-1.0e-300, 0x8000),
        (2049.0, 0x6800),
        (2051.0, 0x6802),
        (0.1, 0x2e66),
        (f64::INFINITY, 0x7c00),
        (f64::MIN_POSITIVE / 4.0, 0),
    ];
    for (value, bits) in table {
        assert_eq!(f64_to_f16(value), bits, "{value:e}");
    }
    // One rounding, not two: to Float32 first, this would be a tie and become 1.
    let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(f64_to_f16(value), 0x3c01);
}
