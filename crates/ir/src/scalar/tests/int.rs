//! Integers; see `mod.rs` for the oracles.

use super::*;

/// The result of a two-operand integer operation on signed values `x`, `y`, computed without overflow in 128
/// bits. `n` is the width, and the width is small enough for that.
fn plain(op: Intrinsic, n: u32, x: i128, y: i128) -> Result<Outcome, ScalarError> {
    let modulus = 1i128 << n;
    let unsigned = |v: i128| v.rem_euclid(modulus);
    let signed = |v: i128| if unsigned(v) >= modulus / 2 { unsigned(v) - modulus } else { unsigned(v) };
    let (a, b) = (unsigned(x), unsigned(y));
    let typed = |v: i128| Ok(Outcome::One(Scalar::int(n as u16, v)));
    let truth = |v: bool| Ok(Outcome::One(Scalar::bool(v)));
    let signed_pair = |v: i128| Ok(Outcome::Pair(Scalar::int(n as u16, v), signed(v) != v));
    let unsigned_pair = |v: i128| Ok(Outcome::Pair(Scalar::int(n as u16, v), unsigned(v) != v));
    let beyond = b >= i128::from(n);
    match op {
        Intrinsic::AndInt => typed(x & y),
        Intrinsic::OrInt => typed(x | y),
        Intrinsic::XorInt => typed(x ^ y),
        Intrinsic::AddInt | Intrinsic::AddPtr => typed(x + y),
        Intrinsic::SubInt | Intrinsic::SubPtr => typed(x - y),
        Intrinsic::MulInt => typed(x * y),
        Intrinsic::FlipsignInt => typed(if y < 0 { -x } else { x }),
        Intrinsic::ShlInt => typed(if beyond { 0 } else { x << b }),
        Intrinsic::LshrInt => typed(if beyond { 0 } else { a >> b }),
        Intrinsic::AshrInt => typed(x.div_euclid(1i128 << b.min(i128::from(n)))),
        Intrinsic::EqInt => truth(x == y),
        Intrinsic::NeInt => truth(x != y),
        Intrinsic::SltInt => truth(x < y),
        Intrinsic::SleInt => truth(x <= y),
        Intrinsic::UltInt => truth(a < b),
        Intrinsic::UleInt => truth(a <= b),
        Intrinsic::CheckedSaddInt => signed_pair(x + y),
        Intrinsic::CheckedSsubInt => signed_pair(x - y),
        Intrinsic::CheckedSmulInt => signed_pair(x * y),
        Intrinsic::CheckedUaddInt => unsigned_pair(a + b),
        Intrinsic::CheckedUsubInt => unsigned_pair(a - b),
        Intrinsic::CheckedUmulInt => unsigned_pair(a * b),
        _ if b == 0 => Err(ScalarError::DivideError),
        Intrinsic::UdivInt | Intrinsic::CheckedUdivInt => typed(a / b),
        Intrinsic::UremInt | Intrinsic::CheckedUremInt => typed(a % b),
        Intrinsic::SdivInt | Intrinsic::CheckedSdivInt if signed(x / y) != x / y => {
            Err(ScalarError::DivideError)
        }
        Intrinsic::SdivInt | Intrinsic::CheckedSdivInt => typed(x / y),
        Intrinsic::SremInt | Intrinsic::CheckedSremInt => typed(x % y),
        other => panic!("no plain form of {other}"),
    }
}

fn two_operand_integer_operations() -> impl Iterator<Item = Intrinsic> {
    let shapes = [
        Shape::IntBinary,
        Shape::IntDivide,
        Shape::Shift,
        Shape::IntCompare,
        Shape::CheckedPair,
        Shape::PtrOffset,
    ];
    Intrinsic::ALL.iter().copied().filter(move |op| shapes.contains(&op.shape()))
}

fn result_type(op: Intrinsic, operand: ScalarType) -> ScalarType {
    if op.shape() == Shape::IntCompare { ScalarType::BOOL } else { operand }
}

#[test]
fn every_pair_of_bytes() {
    for op in two_operand_integer_operations() {
        for x in -128..128 {
            for y in -128..128 {
                let given = eval(op, result_type(op, int(8)), &[Scalar::int(8, x), Scalar::int(8, y)]);
                assert_eq!(given, plain(op, 8, x, y), "{op}({x}, {y})");
            }
        }
    }
}

#[test]
fn edges_of_other_widths() {
    for n in [2u16, 7, 16, 24, 32, 48, 62] {
        let top = 1i128 << (n - 1);
        let width = i128::from(n);
        let edges = [0, 1, -1, 2, -2, 3, top - 1, -top, top / 3, -top / 2, width - 1, width, width + 1];
        let edges = edges.map(|edge| Scalar::int(n, edge).signed());
        for op in two_operand_integer_operations() {
            for x in edges {
                for y in edges {
                    let given = eval(op, result_type(op, int(n)), &[Scalar::int(n, x), Scalar::int(n, y)]);
                    assert_eq!(given, plain(op, u32::from(n), x, y), "{op}({x}, {y}) at {n} bits");
                }
            }
        }
    }
}

/// The operations that Rust implements on its own integer types, on all pairs of edge values.
macro_rules! against_rust {
    ($test:ident, $signed:ty, $unsigned:ty) => {
        #[test]
        fn $test() {
            const N: u16 = <$signed>::BITS as u16;
            let edges =
                [0, 1, -1, 2, -2, 10, 63, 64, 127, <$signed>::MAX, <$signed>::MIN, <$signed>::MIN + 1];
            let scalar = |v: $signed| Scalar::int(N, v.into());
            let signed = |v: $signed| Ok(Outcome::One(scalar(v)));
            let unsigned = |v: $unsigned| signed(v.cast_signed());
            let pair = |(v, wrapped): ($signed, bool)| Ok(Outcome::Pair(scalar(v), wrapped));
            let unsigned_pair = |(v, wrapped): ($unsigned, bool)| pair((v.cast_signed(), wrapped));
            let divided = |v: Option<$signed>| v.map_or(Err(ScalarError::DivideError), signed);
            let udivided = |v: Option<$unsigned>| v.map_or(Err(ScalarError::DivideError), unsigned);
            let remainder = |x: $signed, y: $signed| if y == 0 { None } else { Some(x.wrapping_rem(y)) };
            for x in edges {
                for y in edges {
                    let (a, b) = (x.cast_unsigned(), y.cast_unsigned());
                    let count = u32::try_from(b).unwrap_or(u32::MAX);
                    let sign = if x < 0 { -1 } else { 0 };
                    let expected = [
                        (Intrinsic::AddInt, signed(x.wrapping_add(y))),
                        (Intrinsic::SubInt, signed(x.wrapping_sub(y))),
                        (Intrinsic::MulInt, signed(x.wrapping_mul(y))),
                        (Intrinsic::ShlInt, signed(x.checked_shl(count).unwrap_or(0))),
                        (Intrinsic::LshrInt, unsigned(a.checked_shr(count).unwrap_or(0))),
                        (Intrinsic::AshrInt, signed(x.checked_shr(count).unwrap_or(sign))),
                        (Intrinsic::FlipsignInt, signed(if y < 0 { x.wrapping_neg() } else { x })),
                        (Intrinsic::SdivInt, divided(x.checked_div(y))),
                        (Intrinsic::CheckedSdivInt, divided(x.checked_div(y))),
                        (Intrinsic::SremInt, divided(remainder(x, y))),
                        (Intrinsic::CheckedSremInt, divided(remainder(x, y))),
                        (Intrinsic::UdivInt, udivided(a.checked_div(b))),
                        (Intrinsic::CheckedUremInt, udivided(a.checked_rem(b))),
                        (Intrinsic::CheckedSaddInt, pair(x.overflowing_add(y))),
                        (Intrinsic::CheckedSsubInt, pair(x.overflowing_sub(y))),
                        (Intrinsic::CheckedSmulInt, pair(x.overflowing_mul(y))),
                        (Intrinsic::CheckedUaddInt, unsigned_pair(a.overflowing_add(b))),
                        (Intrinsic::CheckedUsubInt, unsigned_pair(a.overflowing_sub(b))),
                        (Intrinsic::CheckedUmulInt, unsigned_pair(a.overflowing_mul(b))),
                    ];
                    for (op, expected) in expected {
                        assert_eq!(eval(op, int(N), &[scalar(x), scalar(y)]), expected, "{op}({x}, {y})");
                    }
                }
                let expected = [
                    (Intrinsic::NegInt, x.wrapping_neg()),
                    (Intrinsic::NotInt, !x),
                    (Intrinsic::BswapInt, x.swap_bytes()),
                    (Intrinsic::BitreverseInt, x.reverse_bits()),
                    (Intrinsic::CtpopInt, x.count_ones() as $signed),
                    (Intrinsic::CtlzInt, x.leading_zeros() as $signed),
                    (Intrinsic::CttzInt, x.trailing_zeros() as $signed),
                ];
                for (op, expected) in expected {
                    assert_eq!(one(op, int(N), &[scalar(x)]), scalar(expected), "{op}({x})");
                }
            }
        }
    };
}

against_rust!(bytes_against_rust, i8, u8);
against_rust!(sixteen_bits_against_rust, i16, u16);
against_rust!(thirty_two_bits_against_rust, i32, u32);
against_rust!(sixty_four_bits_against_rust, i64, u64);
against_rust!(full_width_against_rust, i128, u128);

#[test]
fn shift_counts_have_a_type_of_their_own() {
    let x = Scalar::int(32, 1);
    assert_eq!(one(Intrinsic::ShlInt, int(32), &[x, Scalar::int(64, 31)]).signed(), i128::from(i32::MIN));
    assert_eq!(one(Intrinsic::ShlInt, int(32), &[x, Scalar::int(128, 1 << 100)]).bits(), 0);
    assert_eq!(one(Intrinsic::ShlInt, int(32), &[x, Scalar::bool(true)]).bits(), 2);
    // The count is unsigned: -1 of a byte is 255.
    assert_eq!(one(Intrinsic::AshrInt, int(32), &[Scalar::int(32, -8), Scalar::int(8, -1)]).signed(), -1);
}

#[test]
fn a_bool_is_a_byte_that_keeps_its_lowest_bit() {
    let (yes, no) = (Scalar::bool(true), Scalar::bool(false));
    let truth = |op, operands: &[Scalar]| one(op, ScalarType::BOOL, operands);
    assert_eq!(truth(Intrinsic::NotInt, &[yes]), no);
    assert_eq!(truth(Intrinsic::NotInt, &[no]), yes);
    assert_eq!(truth(Intrinsic::AddInt, &[yes, yes]), no);
    assert_eq!(truth(Intrinsic::NegInt, &[yes]), yes);
    assert_eq!(truth(Intrinsic::CtlzInt, &[no]), no);
    assert_eq!(truth(Intrinsic::SltInt, &[no, yes]), yes);
    assert_eq!(truth(Intrinsic::SltInt, &[yes, no]), no);
    assert_eq!(one(Intrinsic::SextInt, int(64), &[yes]).signed(), 1);
    assert_eq!(one(Intrinsic::ZextInt, int(64), &[yes]).signed(), 1);
    assert_eq!(one(Intrinsic::Sitofp, ScalarType::F64, &[yes]), Scalar::f64(1.0));
    assert_eq!(one(Intrinsic::TruncInt, ScalarType::BOOL, &[Scalar::int(64, 6)]), no);
    assert_eq!(one(Intrinsic::Bitcast, ScalarType::BOOL, &[Scalar::int(8, 3)]), yes);
    assert_eq!(one(Intrinsic::Bitcast, int(8), &[yes]), Scalar::int(8, 1));
    assert_eq!(one(Intrinsic::EqInt, int(8), &[no, no]), Scalar::int(8, 1));
}
