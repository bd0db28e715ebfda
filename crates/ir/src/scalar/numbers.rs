//! Numbers of primitive types: intrinsics on them, Base operators reached by dispatch, and conversion.
//! The interpreter and the run time use this file.
//!
//! Numbers are promoted as in Julia: of two integers the wider one wins and of equally wide ones the unsigned; a float
//! wins over any integer, the wider of two floats over the other; `Bool` loses to all, and becomes
//! `Int64` under arithmetic with `Bool`. Comparisons are exact for all types: no promotion rounds their operands.
//!
//! Implemented: `+ - *` and `min max` (also of more than two), `/ ÷ div % rem`, `< <= > >= == !=`,
//! `! ~ & | ⊻ xor`, `abs`. `/` of integers converts to `Float64`. Everything else is left to the module's own
//! methods, and is otherwise a `MethodError`.

use super::{Outcome, Scalar, ScalarError, ScalarType, eval};
use crate::intrinsic::Intrinsic;
use crate::types::{LowType, PrimitiveRepr, Type, Types};
use std::cmp::Ordering;

/// A value of a primitive (or low) type, by its bits; bits above the width are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number {
    pub ty: Type,
    pub bits: u128,
}

impl Number {
    /// A `Bool`.
    pub fn bool(value: bool) -> Number {
        Number { ty: Type::BOOL, bits: value.into() }
    }
}

/// The result of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Converted {
    /// The number in the other type.
    To(Number),
    /// The other type has no such number.
    Inexact,
    /// One of the types is not a number type.
    NoMethod,
}

/// Numbers whose types belong to a table.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'t>(pub &'t Types);

impl Numbers<'_> {
    /// The scalar form of a primitive (or low) type.
    pub fn scalar_type(&self, ty: Type) -> Option<ScalarType> {
        if let Some(low) = ty.as_low() {
            return Some(match low {
                LowType::F16 => ScalarType::F16,
                LowType::F32 => ScalarType::F32,
                LowType::F64 => ScalarType::F64,
                LowType::V128 => return None,
                int => ScalarType::Int { bits: int.bits() as u16 },
            });
        }
        Some(match self.0.primitive(ty)? {
            (_, PrimitiveRepr::Bool) => ScalarType::BOOL,
            (16, PrimitiveRepr::Float) => ScalarType::F16,
            (32, PrimitiveRepr::Float) => ScalarType::F32,
            (64, PrimitiveRepr::Float) => ScalarType::F64,
            (bits, _) => ScalarType::Int { bits },
        })
    }

    /// The scalar form of a number.
    pub fn scalar(&self, val: Number) -> Option<Scalar> {
        Some(Scalar::new(self.scalar_type(val.ty)?, val.bits))
    }

    /// Evaluates a pure intrinsic with a result of type `ty`; the flag is whether a checked operation
    /// wrapped. `None` if a type is not a number type.
    pub fn intrinsic(
        &self,
        op: Intrinsic,
        ty: Type,
        args: &[Number],
    ) -> Result<Option<(Number, Option<bool>)>, ScalarError> {
        let scalars: Option<Vec<Scalar>> = args.iter().map(|&arg| self.scalar(arg)).collect();
        let (Some(scalars), Some(form)) = (scalars, self.scalar_type(ty)) else { return Ok(None) };
        let number = |scalar: Scalar| Number { ty, bits: scalar.bits() };
        Ok(Some(match eval(op, form, &scalars)? {
            Outcome::One(scalar) => (number(scalar), None),
            Outcome::Pair(scalar, wrapped) => (number(scalar), Some(wrapped)),
        }))
    }

    fn apply(&self, op: Intrinsic, ty: Type, args: &[Number]) -> Result<Option<Number>, ScalarError> {
        Ok(self.intrinsic(op, ty, args)?.map(|(number, _)| number))
    }

    /// Whether all values are numbers of builtin types.
    pub fn are_numbers(&self, vals: &[Option<Number>]) -> bool {
        vals.iter().all(|val| val.is_some_and(|val| self.number(val).is_some()))
    }

    /// The functions of Base that [`Numbers::operator`] implements.
    pub const OPERATORS: [&'static str; 23] = [
        "!", "!=", "%", "&", "*", "+", "-", "/", "<", "<=", "==", ">", ">=", "abs", "div", "max", "min",
        "rem", "xor", "|", "~", "÷", "⊻",
    ];

    /// The value of an operator on numbers; `None` if there is no such method.
    pub fn operator(&self, name: &str, args: &[Number]) -> Result<Option<Number>, ScalarError> {
        if args.is_empty() || args.iter().any(|&a| self.number(a).is_none()) {
            return Ok(None);
        }
        match (name, args) {
            ("+" | "*", &[x]) => Ok(Some(x)),
            ("-", &[x]) => self.unary(x, Intrinsic::NegInt, Intrinsic::NegFloat),
            ("!", &[x]) if x.ty == Type::BOOL => self.apply(Intrinsic::NotInt, Type::BOOL, &[x]),
            ("~", &[x]) if self.is_integer(x.ty) => self.apply(Intrinsic::NotInt, x.ty, &[x]),
            ("abs", &[x]) => {
                // The sign of a float matters even for zero and NaN.
                let is_float = self.number(x).is_some_and(|(_, repr)| repr == PrimitiveRepr::Float);
                if is_float
                    || self.compare_numbers(x, Number { ty: Type::INT64, bits: 0 }) == Some(Ordering::Less)
                {
                    self.unary(x, Intrinsic::NegInt, Intrinsic::AbsFloat)
                } else {
                    Ok(Some(x))
                }
            }
            ("min" | "max", &[x]) => Ok(Some(x)),
            ("+" | "*" | "min" | "max", &[first, ref rest @ ..]) => {
                let mut sum = first;
                for &next in rest {
                    match self.binary(name, sum, next)? {
                        Some(val) => sum = val,
                        None => return Ok(None),
                    }
                }
                Ok(Some(sum))
            }
            ("<" | "<=" | ">" | ">=" | "==" | "!=", &[a, b]) => {
                let order = self.compare_numbers(a, b);
                Ok(Some(Number::bool(match name {
                    "<" => order == Some(Ordering::Less),
                    "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    ">" => order == Some(Ordering::Greater),
                    ">=" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                    "==" => order == Some(Ordering::Equal),
                    _ => order != Some(Ordering::Equal),
                })))
            }
            (_, &[a, b]) => self.binary(name, a, b),
            _ => Ok(None),
        }
    }

    fn unary(&self, x: Number, int: Intrinsic, float: Intrinsic) -> Result<Option<Number>, ScalarError> {
        let Some((ty, repr)) = self.number(x) else { return Ok(None) };
        let (x, ty) = match repr {
            PrimitiveRepr::Bool => (self.converted(Type::INT64, x)?, Type::INT64),
            _ => (x, ty),
        };
        let op = if repr == PrimitiveRepr::Float { float } else { int };
        self.apply(op, ty, &[x])
    }

    fn binary(&self, name: &str, a: Number, b: Number) -> Result<Option<Number>, ScalarError> {
        let (Some(x), Some(y)) = (self.number(a), self.number(b)) else { return Ok(None) };
        let mut ty = self.promoted(x, y);
        match name {
            "min" | "max" | "&" | "|" | "⊻" | "xor" => {}
            "/" if self.is_integer(ty) => ty = Type::FLOAT64,
            _ if ty == Type::BOOL => ty = Type::INT64,
            _ => {}
        }
        let Some((_, repr)) = self.0.primitive(ty) else { return Ok(None) };
        let is_float = repr == PrimitiveRepr::Float;
        let is_signed = repr == PrimitiveRepr::Signed;
        let op = match (name, is_float) {
            ("+", false) => Intrinsic::AddInt,
            ("+", true) => Intrinsic::AddFloat,
            ("-", false) => Intrinsic::SubInt,
            ("-", true) => Intrinsic::SubFloat,
            ("*", false) => Intrinsic::MulInt,
            ("*", true) => Intrinsic::MulFloat,
            ("/", true) => Intrinsic::DivFloat,
            ("÷" | "div", false) if is_signed => Intrinsic::CheckedSdivInt,
            ("÷" | "div", false) => Intrinsic::CheckedUdivInt,
            ("%" | "rem", true) => Intrinsic::RemFloat,
            ("%" | "rem", false) if is_signed => Intrinsic::CheckedSremInt,
            ("%" | "rem", false) => Intrinsic::CheckedUremInt,
            ("&", false) => Intrinsic::AndInt,
            ("|", false) => Intrinsic::OrInt,
            ("⊻" | "xor", false) => Intrinsic::XorInt,
            ("min", true) => Intrinsic::MinFloat,
            ("max", true) => Intrinsic::MaxFloat,
            ("min" | "max", false) => {
                let order = self.compare_numbers(a, b);
                let first = (order != Some(Ordering::Greater)) == (name == "min");
                return self.converted(ty, if first { a } else { b }).map(Some);
            }
            _ => return Ok(None),
        };
        let args = [self.converted(ty, a)?, self.converted(ty, b)?];
        self.apply(op, ty, &args)
    }

    /// The type and kind of a number of a builtin type.
    fn number(&self, val: Number) -> Option<(Type, PrimitiveRepr)> {
        let ty = val.ty;
        match self.0.primitive(ty)?.1 {
            PrimitiveRepr::Char | PrimitiveRepr::Bits => None,
            repr => Some((ty, repr)),
        }
    }

    fn is_integer(&self, ty: Type) -> bool {
        let repr = self.0.primitive(ty).map(|(_, repr)| repr);
        matches!(repr, Some(PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool))
    }

    fn promoted(&self, (a, x): (Type, PrimitiveRepr), (b, y): (Type, PrimitiveRepr)) -> Type {
        // Greater rank wins: Bool, then integers by width and unsignedness, then floats by width.
        let rank = |ty: Type, repr: PrimitiveRepr| {
            let bits = self.0.primitive(ty).map_or(0, |(bits, _)| bits);
            match repr {
                PrimitiveRepr::Bool => (0, 0, false),
                PrimitiveRepr::Float => (2, bits, false),
                repr => (1, bits, repr == PrimitiveRepr::Unsigned),
            }
        };
        if rank(a, x) >= rank(b, y) { a } else { b }
    }

    /// Converts a number to another type, as allowed by promotion.
    fn converted(&self, ty: Type, val: Number) -> Result<Number, ScalarError> {
        // Promotion yields only number types, to which every number converts.
        Ok(self.convert_between(ty, val)?.unwrap_or(val))
    }

    /// Converts a number to type `ty` by plain conversion: integers wrap, floats round.
    fn convert_between(&self, ty: Type, val: Number) -> Result<Option<Number>, ScalarError> {
        let Some((from, repr)) = self.number(val) else { return Ok(None) };
        if from == ty {
            return Ok(Some(val));
        }
        let Some((to_bits, to)) = self.0.primitive(ty) else { return Ok(None) };
        let from_bits = self.0.primitive(from).map_or(0, |(bits, _)| bits);
        let from_float = repr == PrimitiveRepr::Float;
        let op = match (from_float, to) {
            (_, PrimitiveRepr::Char | PrimitiveRepr::Bits) => return Ok(None),
            (true, PrimitiveRepr::Float) if to_bits > from_bits => Intrinsic::Fpext,
            (true, PrimitiveRepr::Float) => Intrinsic::Fptrunc,
            (true, PrimitiveRepr::Signed) => Intrinsic::Fptosi,
            (true, _) => Intrinsic::Fptoui,
            (false, PrimitiveRepr::Float) if repr == PrimitiveRepr::Signed => Intrinsic::Sitofp,
            (false, PrimitiveRepr::Float) => Intrinsic::Uitofp,
            (false, PrimitiveRepr::Bool) => Intrinsic::TruncInt,
            (false, _) if repr == PrimitiveRepr::Bool => Intrinsic::ZextInt,
            (false, _) if to_bits == from_bits => Intrinsic::Bitcast,
            (false, _) if to_bits < from_bits => Intrinsic::TruncInt,
            (false, _) if repr == PrimitiveRepr::Signed => Intrinsic::SextInt,
            (false, _) => Intrinsic::ZextInt,
        };
        // A byte of 0 or 1 as `Bool`, and the reverse.
        if ty == Type::BOOL && from_bits == 8 && !from_float {
            return Ok(Some(Number::bool(val.bits & 1 == 1)));
        }
        if repr == PrimitiveRepr::Bool && to != PrimitiveRepr::Float {
            return Ok(Some(Number { ty, bits: val.bits }));
        }
        self.apply(op, ty, &[val])
    }

    /// `T(x)` on numbers: the conversion must be exact unless the target is a float type.
    pub fn convert(&self, ty: Type, val: Number) -> Result<Converted, ScalarError> {
        if let (Type::CHAR, true) =
            (val.ty, ty != Type::CHAR && self.number(Number { ty, bits: 0 }).is_some())
        {
            // A malformed character has no number.
            let Some(code) = code_point(val.bits as u32) else { return Ok(Converted::Inexact) };
            return self.convert(ty, Number { ty: Type::UINT32, bits: code.into() });
        }
        let Some(converted) = self.convert_between(ty, val)? else { return Ok(Converted::NoMethod) };
        let is_float = self.0.primitive(ty).is_some_and(|(_, repr)| repr == PrimitiveRepr::Float);
        if is_float || self.compare_numbers(converted, val) == Some(Ordering::Equal) {
            return Ok(Converted::To(converted));
        }
        Ok(Converted::Inexact)
    }

    /// The exact order of two numbers; `None` if one is NaN or not a number.
    fn compare_numbers(&self, a: Number, b: Number) -> Option<Ordering> {
        let ((_, x), (_, y)) = (self.number(a)?, self.number(b)?);
        let (s, t) = (self.scalar(a)?, self.scalar(b)?);
        match (x == PrimitiveRepr::Float, y == PrimitiveRepr::Float) {
            (true, true) => s.to_f64()?.partial_cmp(&t.to_f64()?),
            (true, false) => compare_float(s.to_f64()?, whole(t, y)),
            (false, true) => compare_float(t.to_f64()?, whole(s, x)).map(Ordering::reverse),
            (false, false) => Some(whole(s, x).cmp(&whole(t, y))),
        }
    }
}

/// The code point of a `Char`, whose bytes are at the top of its bits; `None` if it is malformed.
fn code_point(bits: u32) -> Option<u32> {
    let bytes = bits.to_be_bytes();
    let length = 4 - (bits.trailing_zeros() / 8).min(3) as usize;
    let mut chars = std::str::from_utf8(&bytes[..length]).ok()?.chars();
    let first = chars.next()?;
    chars.next().is_none().then_some(first.into())
}

/// An integer as its sign and magnitude, ordered by value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whole {
    /// Negative; the value itself.
    Below(i128),
    /// Zero or greater.
    Above(u128),
}

fn whole(scalar: Scalar, repr: PrimitiveRepr) -> Whole {
    match repr {
        PrimitiveRepr::Signed if scalar.signed() < 0 => Whole::Below(scalar.signed()),
        _ => Whole::Above(scalar.bits()),
    }
}

/// Compares a float with an integer: whole parts as integers, then the fraction decides.
fn compare_float(float: f64, int: Whole) -> Option<Ordering> {
    /// 2 to the power of 128 and of 127.
    const ABOVE_ALL: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
    const BELOW_ALL: f64 = -170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float.is_nan() {
        return None;
    }
    if float >= ABOVE_ALL {
        return Some(Ordering::Greater);
    }
    if float < BELOW_ALL {
        return Some(Ordering::Less);
    }
    let floor = float.floor();
    let below = if floor < 0.0 { Whole::Below(floor as i128) } else { Whole::Above(floor as u128) };
    let fraction = if float > floor { Ordering::Greater } else { Ordering::Equal };
    Some(below.cmp(&int).then(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn every_operator_takes_numbers() {
        let cx = Context::new();
        let numbers = Numbers(&cx.types);
        let operands = [Number { ty: Type::INT64, bits: 6 }, Number { ty: Type::INT64, bits: 3 }];
        let truth = [Number { ty: Type::BOOL, bits: 1 }];
        for name in Numbers::OPERATORS {
            let all: [&[Number]; 3] = [&operands, &operands[..1], &truth];
            let is_known = |args: &&[Number]| matches!(numbers.operator(name, args), Ok(Some(_)));
            assert!(all.iter().any(is_known), "{name}");
        }
        assert!(matches!(numbers.operator("gcd", &operands), Ok(None)));
    }

    #[test]
    fn floats_and_integers_compare_exactly() {
        let above = |n: u128| Whole::Above(n);
        assert_eq!(compare_float(2f64.powi(53), above((1 << 53) + 1)), Some(Ordering::Less));
        assert_eq!(compare_float(-0.5, above(0)), Some(Ordering::Less));
        assert_eq!(compare_float(-0.5, Whole::Below(-1)), Some(Ordering::Greater));
        assert_eq!(compare_float(0.5, above(0)), Some(Ordering::Greater));
        assert_eq!(compare_float(f64::INFINITY, above(u128::MAX)), Some(Ordering::Greater));
        assert_eq!(compare_float(f64::NEG_INFINITY, Whole::Below(i128::MIN)), Some(Ordering::Less));
        assert_eq!(compare_float(-2f64.powi(127), Whole::Below(i128::MIN)), Some(Ordering::Equal));
        assert_eq!(compare_float(f64::NAN, above(0)), None);
        assert!(Whole::Below(-1) < Whole::Above(0) && Whole::Below(-2) < Whole::Below(-1));
    }
}
