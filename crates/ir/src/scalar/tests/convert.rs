//! Conversions in both directions, for every integer width that Rust has and some that it does not.

use super::half::{half, nearest_half};
use super::*;

fn double_operands() -> Vec<f64> {
    let mut sequence = Sequence(4);
    let mut operands = vec![
        f64::NAN,
        f64::INFINITY,
        0.0,
        0.4,
        0.5,
        0.999,
        1.0,
        1.5,
        127.0,
        127.9,
        128.0,
        255.99,
        256.0,
        5e-324,
    ];
    operands.extend((0..140).map(|power| 2f64.powi(power)));
    operands.extend((0..140).map(|power| 2f64.powi(power) * (1.0 - f64::EPSILON)));
    operands.extend((0..200).map(|_| f64::from_bits(sequence.next())));
    operands.iter().flat_map(|&x| [x, -x]).collect()
}

/// Both directions between one integer type and the floats that Rust has, whose `as` saturates and rounds as
/// documented here.
macro_rules! conversions_against_rust {
    ($test:ident, $signed:ty, $unsigned:ty) => {
        #[test]
        fn $test() {
            const N: u16 = <$signed>::BITS as u16;
            for x in double_operands() {
                let to = |op, x| one(op, int(N), &[x]);
                let single = x as f32;
                assert_eq!(
                    to(Intrinsic::Fptosi, Scalar::f64(x)),
                    Scalar::int(N, (x as $signed).into()),
                    "{x:e}"
                );
                let unsigned = (x as $unsigned).cast_signed();
                assert_eq!(to(Intrinsic::Fptoui, Scalar::f64(x)), Scalar::int(N, unsigned.into()), "{x:e}");
                let of_single = (single as $signed).into();
                assert_eq!(to(Intrinsic::Fptosi, Scalar::f32(single)), Scalar::int(N, of_single), "{x:e}");
            }
            let mut sequence = Sequence(5);
            let mut integers = vec![0, 1, -1, <$signed>::MAX, <$signed>::MIN];
            for power in 0..N - 1 {
                // Powers of two, their neighbours, and values at or near a tie of the narrower formats.
                let value = 1i128 << power;
                let near =
                    [value, value - 1, value + 1, !value, value + (value >> 24), value + (value >> 53)];
                integers.extend(near.map(|x| x as $signed));
                let random = (i128::from(sequence.next()) << 64 | i128::from(sequence.next())) as $signed;
                integers.push(random >> power);
            }
            for x in integers {
                let from = |op, ty| one(op, ty, &[Scalar::int(N, x.into())]);
                let unsigned = x.cast_unsigned();
                assert_eq!(from(Intrinsic::Sitofp, ScalarType::F64), Scalar::f64(x as f64), "{x}");
                assert_eq!(from(Intrinsic::Sitofp, ScalarType::F32), Scalar::f32(x as f32), "{x}");
                assert_eq!(
                    from(Intrinsic::Uitofp, ScalarType::F64),
                    Scalar::f64(unsigned as f64),
                    "{unsigned}"
                );
                assert_eq!(
                    from(Intrinsic::Uitofp, ScalarType::F32),
                    Scalar::f32(unsigned as f32),
                    "{unsigned}"
                );
                let clamped = i128::from(x).clamp(-(1 << 20), 1 << 20);
                assert_eq!(
                    from(Intrinsic::Sitofp, ScalarType::F16),
                    half(nearest_half(clamped << 48, 0)),
                    "{x}"
                );
            }
        }
    };
}

conversions_against_rust!(bytes_and_floats, i8, u8);
conversions_against_rust!(sixteen_bits_and_floats, i16, u16);
conversions_against_rust!(thirty_two_bits_and_floats, i32, u32);
conversions_against_rust!(sixty_four_bits_and_floats, i64, u64);
conversions_against_rust!(full_width_and_floats, i128, u128);

#[test]
fn halves_to_integers() {
    for bits in 0..=u16::MAX {
        let wide = f16_to_f64(bits);
        for (n, least, greatest) in [(8, -128.0, 127.0), (24, -8388608.0, 8388607.0)] {
            let given = one(Intrinsic::Fptosi, int(n), &[half(bits)]).signed();
            let expected = if wide.is_nan() { 0.0 } else { wide.trunc().clamp(least, greatest) };
            assert_eq!(given as f64, expected, "{bits:#06x} to {n} bits");
        }
        let given = one(Intrinsic::Fptoui, int(128), &[half(bits)]).bits();
        let expected = if wide.is_nan() { 0 } else { wide as u128 };
        assert_eq!(given, expected, "{bits:#06x}");
    }
}

#[test]
fn integers_change_width() {
    for x in -128..128 {
        let byte = Scalar::int(8, x);
        for n in [9, 16, 64, 128] {
            let wide = one(Intrinsic::SextInt, int(n), &[byte]);
            assert_eq!(wide, Scalar::int(n, x));
            assert_eq!(one(Intrinsic::ZextInt, int(n), &[byte]).bits(), byte.bits());
            assert_eq!(one(Intrinsic::TruncInt, int(8), &[wide]), byte);
        }
    }
}
