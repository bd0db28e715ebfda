//! The reference semantics against independent arithmetic.
//!
//! | file | subject | oracle |
//! |---|---|---|
//! | `int.rs` | bytes, all pairs | integers that cannot overflow |
//! | | 2 to 62 bits, edges | the same |
//! | | 8 to 128 bits, edges | Rust's types of that width |
//! | `half.rs` | `Float16`: all values, chosen pairs and triples | exact integers, nearest found by search |
//! | `float.rs` | `Float32` | the processor |
//! | `convert.rs` | integers and floats | Rust's `as`, which saturates and rounds as documented here |
//!
//! This file: every intrinsic has a value wherever its type rule allows one, and misuse is named.

mod convert;
mod float;
mod half;
mod int;

use super::*;

fn one(op: Intrinsic, result: ScalarType, operands: &[Scalar]) -> Scalar {
    match eval(op, result, operands) {
        Ok(Outcome::One(value)) => value,
        other => panic!("{op} {operands:?}: {other:?}"),
    }
}

fn int(bits: u16) -> ScalarType {
    ScalarType::Int { bits }
}

/// A fixed sequence of well-spread 64-bit numbers.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }
}

#[test]
fn every_pure_intrinsic_has_a_value_wherever_its_type_rule_allows() {
    let types = [
        ScalarType::BOOL,
        int(7),
        int(8),
        int(16),
        int(32),
        int(64),
        int(128),
        ScalarType::F16,
        ScalarType::F32,
        ScalarType::F64,
    ];
    for &op in Intrinsic::ALL {
        let mut allowed = 0;
        for operand in types {
            for result in types {
                let count = op.arity().min.into();
                let operands = vec![Scalar::new(operand, 1); count];
                let operand_types = vec![operand; count];
                let given = eval(op, result, &operands);
                match check(op, result, &operand_types) {
                    Ok(()) => {
                        allowed += 1;
                        let (Ok(Outcome::One(value)) | Ok(Outcome::Pair(value, _))) = given else {
                            panic!("{op} {operand} -> {result}: {given:?}")
                        };
                        assert_eq!(value.ty(), result);
                    }
                    Err(misuse) => assert_eq!(given, Err(ScalarError::Misuse(misuse))),
                }
            }
        }
        assert_eq!(allowed > 0, op.is_pure() && op.shape() != Shape::Query, "{op}");
    }
}

#[test]
fn misuse_says_what_is_wrong() {
    let (byte, word) = (Scalar::int(8, 1), Scalar::int(64, 1));
    let fails = |op, result, operands: &[Scalar]| match eval(op, result, operands) {
        Err(ScalarError::Misuse(misuse)) => misuse.to_string(),
        other => panic!("{op}: {other:?}"),
    };
    assert_eq!(fails(Intrinsic::AddInt, int(8), &[byte]), "`add_int` takes 2 operands, not 1");
    assert_eq!(
        fails(Intrinsic::AddInt, int(8), &[byte, word]),
        "operand 2 of `add_int` may not have the type Int64"
    );
    assert_eq!(
        fails(Intrinsic::AddInt, int(64), &[byte, byte]),
        "`add_int` of these operands cannot result in Int64"
    );
    assert_eq!(
        fails(Intrinsic::AddFloat, int(8), &[byte, byte]),
        "operand 1 of `add_float` may not have the type Int8"
    );
    assert_eq!(
        fails(Intrinsic::Pointerref, int(8), &[word; 3]),
        "`pointerref` is not a function of scalars alone"
    );
    assert_eq!(
        fails(Intrinsic::TruncInt, int(64), &[byte]),
        "`trunc_int` of these operands cannot result in Int64"
    );
    let odd = Scalar::int(12, 1);
    assert_eq!(
        fails(Intrinsic::BswapInt, int(12), &[odd]),
        "operand 1 of `bswap_int` may not have the type Int12"
    );
    for bits in [0, 129, u16::MAX] {
        let broken = Scalar::int(bits, -1);
        assert!(eval(Intrinsic::NegInt, int(bits), &[broken]).is_err());
        assert!(eval(Intrinsic::Fptosi, int(bits), &[Scalar::f64(1.0)]).is_err());
        assert!(eval(Intrinsic::Bitcast, int(bits), &[broken]).is_err());
    }
}
