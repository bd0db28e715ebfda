//! `Float32` against the processor, and what differs from plain arithmetic: fusion, NaN, signed zeros.

use super::*;

const SINGLES: [f32; 20] = [
    0.0,
    1.0,
    1.5,
    0.1,
    1.0 / 3.0,
    16_777_215.0,
    16_777_217.0,
    f32::EPSILON,
    f32::MIN_POSITIVE,
    1.0e-45,
    1.1754942e-38,
    5.9e-39,
    f32::MAX,
    1.7014118e38,
    2.5,
    0.5,
    0.49999997,
    8_388_607.5,
    f32::INFINITY,
    3.0e-20,
];

fn single_operands() -> Vec<f32> {
    let mut sequence = Sequence(2);
    let random = (0..150).map(|_| f32::from_bits(sequence.next() as u32)).filter(|x| !x.is_nan());
    SINGLES.iter().flat_map(|&x| [x, -x]).chain(random.collect::<Vec<_>>()).collect()
}

#[test]
fn single_arithmetic_is_that_of_the_processor() {
    let operands = single_operands();
    for &x in &operands {
        let unary = |op| one(op, ScalarType::F32, &[Scalar::f32(x)]);
        for (op, expected) in [
            (Intrinsic::SqrtLlvm, x.sqrt()),
            (Intrinsic::FloorLlvm, x.floor()),
            (Intrinsic::CeilLlvm, x.ceil()),
            (Intrinsic::TruncLlvm, x.trunc()),
            (Intrinsic::RintLlvm, x.round_ties_even()),
            (Intrinsic::NegFloat, -x),
            (Intrinsic::AbsFloat, x.abs()),
        ] {
            assert!(unary(op).agrees(Scalar::f32(expected)), "{op}({x:e})");
        }
        for &y in &operands {
            let pair = [Scalar::f32(x), Scalar::f32(y)];
            for (op, expected) in [
                (Intrinsic::AddFloat, x + y),
                (Intrinsic::SubFloat, x - y),
                (Intrinsic::MulFloat, x * y),
                (Intrinsic::DivFloat, x / y),
                (Intrinsic::CopysignFloat, x.copysign(y)),
            ] {
                assert!(one(op, ScalarType::F32, &pair).agrees(Scalar::f32(expected)), "{op}({x:e}, {y:e})");
            }
            for (op, expected) in [
                (Intrinsic::EqFloat, x == y),
                (Intrinsic::NeFloatFast, x != y),
                (Intrinsic::LtFloat, x < y),
                (Intrinsic::LeFloat, x <= y),
            ] {
                assert_eq!(one(op, ScalarType::BOOL, &pair), Scalar::bool(expected), "{op}({x:e}, {y:e})");
            }
            for &z in operands.iter().step_by(11) {
                let triple = [Scalar::f32(x), Scalar::f32(y), Scalar::f32(z)];
                let fused = one(Intrinsic::FmaFloat, ScalarType::F32, &triple);
                assert!(fused.agrees(Scalar::f32(x.mul_add(y, z))), "fma({x:e}, {y:e}, {z:e})");
                let muladd = one(Intrinsic::MuladdFloat, ScalarType::F32, &triple);
                assert!(muladd.agrees(Scalar::f32(x * y + z)), "muladd({x:e}, {y:e}, {z:e})");
            }
        }
    }
}

#[test]
fn fused_and_unfused_differ_where_they_must() {
    let x = Scalar::f64(1.0 + f64::EPSILON);
    let minus = Scalar::f64(-(1.0 + 2.0 * f64::EPSILON));
    let fused = one(Intrinsic::FmaFloat, ScalarType::F64, &[x, x, minus]);
    assert_eq!(fused, Scalar::f64(f64::EPSILON * f64::EPSILON));
    assert_eq!(one(Intrinsic::MuladdFloat, ScalarType::F64, &[x, x, minus]), Scalar::f64(0.0));
}

#[test]
fn minimum_and_maximum_order_zeros_and_propagate_nan() {
    let pairs =
        [(0.0, -0.0, -0.0, 0.0), (-0.0, 0.0, -0.0, 0.0), (1.0, 2.0, 1.0, 2.0), (3.0, -3.0, -3.0, 3.0)];
    for (x, y, least, greatest) in pairs {
        let pair = [Scalar::f64(x), Scalar::f64(y)];
        assert_eq!(one(Intrinsic::MinFloat, ScalarType::F64, &pair), Scalar::f64(least));
        assert_eq!(one(Intrinsic::MaxFloatFast, ScalarType::F64, &pair), Scalar::f64(greatest));
    }
    for op in [Intrinsic::MinFloat, Intrinsic::MaxFloat] {
        for pair in [[Scalar::f64(f64::NAN), Scalar::f64(1.0)], [Scalar::f64(1.0), Scalar::f64(f64::NAN)]] {
            assert!(one(op, ScalarType::F64, &pair).is_nan());
        }
    }
}

#[test]
fn fpiseq_is_equality_of_values_not_of_numbers() {
    let same = |x: f64, y: f64| {
        one(Intrinsic::Fpiseq, ScalarType::BOOL, &[Scalar::f64(x), Scalar::f64(y)]).bits() == 1
    };
    assert!(same(f64::NAN, -f64::NAN) && same(f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)));
    assert!(!same(0.0, -0.0) && same(-0.0, -0.0) && !same(1.0, f64::NAN));
}

#[test]
fn nan_bits() {
    let signalling = Scalar::new(ScalarType::F64, 0xfff0_0000_0000_0123);
    let other = Scalar::new(ScalarType::F64, 0x7ff8_0000_0000_0456);
    let f64_of = |op, operands: &[Scalar]| one(op, ScalarType::F64, operands).bits();
    assert_eq!(f64_of(Intrinsic::NegFloat, &[signalling]), 0x7ff0_0000_0000_0123);
    assert_eq!(f64_of(Intrinsic::CopysignFloat, &[signalling, other]), 0x7ff0_0000_0000_0123);
    assert_eq!(f64_of(Intrinsic::AddFloat, &[Scalar::f64(1.0), signalling]), 0xfff8_0000_0000_0123);
    assert_eq!(f64_of(Intrinsic::MulFloat, &[other, signalling]), 0x7ff8_0000_0000_0456);
    assert_eq!(f64_of(Intrinsic::SqrtLlvm, &[Scalar::f64(-1.0)]), 0x7ff8_0000_0000_0000);
    assert_eq!(f64_of(Intrinsic::SubFloat, &[Scalar::f64(f64::INFINITY); 2]), 0x7ff8_0000_0000_0000);
    assert_eq!(one(Intrinsic::Fptrunc, ScalarType::F32, &[signalling]).bits(), 0xffc0_0000);
    let single = Scalar::new(ScalarType::F32, 0x7f80_0001);
    assert_eq!(f64_of(Intrinsic::Fpext, &[single]), 0x7ff8_0000_2000_0000);
    assert_eq!(one(Intrinsic::Bitcast, int(32), &[single]).bits(), 0x7f80_0001);
    assert!(signalling.agrees(other) && signalling != other && !signalling.agrees(Scalar::f64(0.0)));
}

#[test]
fn doubles_round_to_single_as_rust_does() {
    let mut sequence = Sequence(3);
    for step in 0..20_000 {
        // Half of the samples are close to a tie, on either side or on it.
        let wide = if step % 2 == 0 {
            f64::from_bits(sequence.next())
        } else {
            let single = f32::from_bits(sequence.next() as u32);
            let tie = f64::from(single).to_bits() + (1 << 28);
            f64::from_bits(tie.wrapping_add(sequence.next() % 3).wrapping_sub(1))
        };
        let given = one(Intrinsic::Fptrunc, ScalarType::F32, &[Scalar::f64(wide)]);
        assert!(given.agrees(Scalar::f32(wide as f32)), "{wide:e}");
    }
}
