//! Operators on the most frequent types of numbers, without a lookup.
//!
//! ```text
//! x + y by dispatch, no method takes it     cached: `+`, by the callee             Int64, Float64: computed directly
//!                                                                                  other numbers: by their semantics, without looking up the name
//!                                                                                  others: like any call of an operator
//! ```
//!
//! The semantics of the operators are defined by [`brolga_ir::scalar`]; a test compares both for all pairs of
//! types here.
//!
//! Cost: constant.

use brolga_ir::scalar::{Number, Numbers};
use brolga_ir::types::Type;

use crate::heap::Object;

use super::place::At;

/// An operator implemented here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Differs,
}

/// A number of one of the two types.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Int(i64),
    Float(f64),
}

impl Operator {
    const ALL: [(&str, Operator); 10] = [
        ("+", Operator::Add),
        ("-", Operator::Sub),
        ("*", Operator::Mul),
        ("/", Operator::Div),
        ("<", Operator::Less),
        ("<=", Operator::AtMost),
        (">", Operator::Greater),
        (">=", Operator::AtLeast),
        ("==", Operator::Equal),
        ("!=", Operator::Differs),
    ];

    /// The operator with this name.
    pub(crate) fn from_name(name: &str) -> Option<Operator> {
        Operator::ALL.iter().find(|(known, _)| *known == name).map(|&(_, operator)| operator)
    }

    /// The type and the bits of the result; `None` for operands not handled here.
    pub(crate) fn value(self, a: Object, b: Object) -> Option<(Type, u64)> {
        self.of(Operand::of(a)?, Operand::of(b)?)
    }

    /// The type and the bits of the result for numbers of any types; `None` if one is not a number, or there
    /// is no such operator on them.
    pub(crate) fn of_numbers(self, a: Object, b: Object) -> Option<(Type, u128)> {
        let (name, _) = Operator::ALL.iter().find(|&&(_, known)| known == self)?;
        // Number types are the same in every context, and only they are accepted.
        let number =
            |object: Object| Some(Number { ty: object.desc().ty()?, bits: At::boxed(object)?.bits()? });
        let cx = a.desc().context();
        let value = Numbers(&cx.types).operator(name, &[number(a)?, number(b)?]).ok()??;
        Some((value.ty, value.bits))
    }

    fn of(self, a: Operand, b: Operand) -> Option<(Type, u64)> {
        let int = |n: i64| Some((Type::INT64, n.cast_unsigned()));
        let float = |x: f64| Some((Type::FLOAT64, x.to_bits()));
        let (x, y) = match (a, b) {
            (Operand::Int(x), Operand::Int(y)) => {
                return match self {
                    Operator::Add => int(x.wrapping_add(y)),
                    Operator::Sub => int(x.wrapping_sub(y)),
                    Operator::Mul => int(x.wrapping_mul(y)),
                    Operator::Div => float(x as f64 / y as f64),
                    _ => self.compare(x, y),
                };
            }
            (Operand::Float(x), Operand::Float(y)) => (x, y),
            (Operand::Int(x), Operand::Float(y)) if self.computes() => (x as f64, y),
            (Operand::Float(x), Operand::Int(y)) if self.computes() => (x, y as f64),
            _ => return None,
        };
        match self {
            Operator::Add => float(x + y),
            Operator::Sub => float(x - y),
            Operator::Mul => float(x * y),
            Operator::Div => float(x / y),
            _ => self.compare(x, y),
        }
    }

    fn compare<T: PartialOrd>(self, x: T, y: T) -> Option<(Type, u64)> {
        let holds = match self {
            Operator::Add | Operator::Sub | Operator::Mul | Operator::Div => return None,
            Operator::Less => x < y,
            Operator::AtMost => x <= y,
            Operator::Greater => x > y,
            Operator::AtLeast => x >= y,
            Operator::Equal => x == y,
            Operator::Differs => x != y,
        };
        Some((Type::BOOL, holds.into()))
    }

    fn computes(self) -> bool {
        matches!(self, Operator::Add | Operator::Sub | Operator::Mul | Operator::Div)
    }
}

impl Operand {
    fn of(object: Object) -> Option<Operand> {
        match object.desc().ty()? {
            Type::INT64 => Some(Operand::Int(object.word_at(0).cast_signed())),
            Type::FLOAT64 => Some(Operand::Float(f64::from_bits(object.word_at(0)))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Context;
    use brolga_ir::scalar::{Number, Numbers};

    #[test]
    fn the_values_are_those_of_the_operators() {
        let cx = Context::new();
        let ints = [0, 1, -1, 7, i64::MAX, i64::MIN, 9_007_199_254_740_993].map(Operand::Int);
        let floats = [0.0, -0.0, 1.5, -7.25, f64::INFINITY, f64::NAN, 9.0e18].map(Operand::Float);
        let operands: Vec<Operand> = ints.into_iter().chain(floats).collect();
        let number = |operand: Operand| match operand {
            Operand::Int(n) => Number { ty: Type::INT64, bits: u128::from(n.cast_unsigned()) },
            Operand::Float(x) => Number { ty: Type::FLOAT64, bits: u128::from(x.to_bits()) },
        };
        for (name, operator) in Operator::ALL {
            for &a in &operands {
                for &b in &operands {
                    let Some((ty, bits)) = operator.of(a, b) else {
                        assert!(!operator.computes(), "{name}");
                        continue;
                    };
                    let expected = Numbers(&cx.types).operator(name, &[number(a), number(b)]);
                    let Ok(Some(expected)) = expected else { panic!("{a:?} {name} {b:?}") };
                    assert_eq!(ty, expected.ty, "{a:?} {name} {b:?}");
                    let both_nan = ty == Type::FLOAT64
                        && f64::from_bits(bits).is_nan()
                        && f64::from_bits(expected.bits as u64).is_nan();
                    assert!(both_nan || u128::from(bits) == expected.bits, "{a:?} {name} {b:?}");
                }
            }
        }
    }
}
