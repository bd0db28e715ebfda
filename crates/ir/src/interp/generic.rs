//! Operators of Base on numbers, where a call reaches them by dispatch on boxed values; and conversion between numbers.
//!
//! Numbers are promoted as in Julia: of two integers the wider one wins and of equally wide ones the unsigned; a float
//! wins over any integer, the wider of two floats over the other; `Bool` gives way to all, and `Bool` with `Bool` to
//! `Int64` under arithmetic. Comparisons are exact whatever the types: no promotion rounds their operands.
//!
//! Known: `+ - *` (also of more than two), `/ ÷ div % rem`, `< <= > >= == !=`, `! ~ & | ⊻ xor`, `abs min max`. `/` of
//! integers is of `Float64`s. Everything else is left to the module's own methods, and so a `MethodError`.

use super::Interp;
use super::error::{Eval, Fault};
use super::value::Val;
use crate::intrinsic::Intrinsic;
use crate::scalar::Scalar;
use crate::types::{PrimitiveRepr, Type};
use std::cmp::Ordering;

impl Interp<'_> {
    /// The value of an operator on numbers; `None` if there is no such method.
    pub(super) fn generic(&mut self, name: &str, args: &[Val]) -> Eval<Option<Val>> {
        match (name, args) {
            ("==", [a, b]) if self.number(a).is_none() || self.number(b).is_none() => {
                return self.egal(a, b).map(|same| Some(Val::bool(same)));
            }
            ("!=", [a, b]) if self.number(a).is_none() || self.number(b).is_none() => {
                return self.egal(a, b).map(|same| Some(Val::bool(!same)));
            }
            _ => {}
        }
        if args.is_empty() || args.iter().any(|a| self.number(a).is_none()) {
            return Ok(None);
        }
        match (name, args) {
            ("+" | "*", [x]) => Ok(Some(x.clone())),
            ("-", [x]) => self.unary(x, Intrinsic::NegInt, Intrinsic::NegFloat),
            ("!", [x @ Val::Bits { ty: Type::BOOL, .. }]) => self
                .scalar_op(Intrinsic::NotInt, Type::BOOL, std::slice::from_ref(x))
                .map(|(val, _)| Some(val)),
            ("~", [x @ Val::Bits { ty, .. }]) if self.is_integer(*ty) => {
                self.scalar_op(Intrinsic::NotInt, *ty, std::slice::from_ref(x)).map(|(val, _)| Some(val))
            }
            ("abs", [x]) => {
                // The sign of a float counts even when it is zero or no number.
                let is_float = self.number(x).is_some_and(|(_, repr)| repr == PrimitiveRepr::Float);
                if is_float || self.compare_numbers(x, &Val::int64(0)) == Some(Ordering::Less) {
                    self.unary(x, Intrinsic::NegInt, Intrinsic::AbsFloat)
                } else {
                    Ok(Some(x.clone()))
                }
            }
            ("+" | "*", [first, rest @ ..]) => {
                let mut sum = first.clone();
                for next in rest {
                    match self.binary(name, &sum, next)? {
                        Some(val) => sum = val,
                        None => return Ok(None),
                    }
                }
                Ok(Some(sum))
            }
            ("<" | "<=" | ">" | ">=" | "==" | "!=", [a, b]) => {
                let order = self.compare_numbers(a, b);
                Ok(Some(Val::bool(match name {
                    "<" => order == Some(Ordering::Less),
                    "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    ">" => order == Some(Ordering::Greater),
                    ">=" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                    "==" => order == Some(Ordering::Equal),
                    _ => order != Some(Ordering::Equal),
                })))
            }
            (_, [a, b]) => self.binary(name, a, b),
            _ => Ok(None),
        }
    }

    fn unary(&mut self, x: &Val, int: Intrinsic, float: Intrinsic) -> Eval<Option<Val>> {
        let Some((ty, repr)) = self.number(x) else { return Ok(None) };
        let (x, ty) = match repr {
            PrimitiveRepr::Bool => (self.converted(Type::INT64, x)?, Type::INT64),
            _ => (x.clone(), ty),
        };
        let op = if repr == PrimitiveRepr::Float { float } else { int };
        self.scalar_op(op, ty, &[x]).map(|(val, _)| Some(val))
    }

    fn binary(&mut self, name: &str, a: &Val, b: &Val) -> Eval<Option<Val>> {
        let (Some(x), Some(y)) = (self.number(a), self.number(b)) else { return Ok(None) };
        let is_bitwise = matches!(name, "&" | "|" | "⊻" | "xor");
        let mut ty = self.promoted(x, y);
        match name {
            "min" | "max" | "&" | "|" | "⊻" | "xor" => {}
            "/" if self.is_integer(ty) => ty = Type::FLOAT64,
            _ if ty == Type::BOOL => ty = Type::INT64,
            _ => {}
        }
        let Some((_, repr)) = self.types().primitive(ty) else { return Ok(None) };
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
        if is_bitwise && is_float {
            return Ok(None);
        }
        let args = [self.converted(ty, a)?, self.converted(ty, b)?];
        self.scalar_op(op, ty, &args).map(|(val, _)| Some(val))
    }

    /// The type and kind of a number of a builtin type.
    fn number(&self, val: &Val) -> Option<(Type, PrimitiveRepr)> {
        let Val::Bits { ty, .. } = *val else { return None };
        match self.types().primitive(ty)?.1 {
            PrimitiveRepr::Char | PrimitiveRepr::Bits => None,
            repr => Some((ty, repr)),
        }
    }

    fn is_integer(&self, ty: Type) -> bool {
        let repr = self.types().primitive(ty).map(|(_, repr)| repr);
        matches!(repr, Some(PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool))
    }

    fn promoted(&self, (a, x): (Type, PrimitiveRepr), (b, y): (Type, PrimitiveRepr)) -> Type {
        // Greater rank wins: Bool, then integers by width and unsignedness, then floats by width.
        let rank = |ty: Type, repr: PrimitiveRepr| {
            let bits = self.types().primitive(ty).map_or(0, |(bits, _)| bits);
            match repr {
                PrimitiveRepr::Bool => (0, 0, false),
                PrimitiveRepr::Float => (2, bits, false),
                repr => (1, bits, repr == PrimitiveRepr::Unsigned),
            }
        };
        if rank(a, x) >= rank(b, y) { a } else { b }
    }

    /// A number as one of another type, where promotion says that it may be.
    fn converted(&mut self, ty: Type, val: &Val) -> Eval<Val> {
        match self.convert_between(ty, val)? {
            Some(val) => Ok(val),
            None => Err(Fault::Unsupported(format!("conversion to `{}`", self.type_text(ty))).into()),
        }
    }

    /// A number as one of type `ty` by the plain conversion: integers wrap, floats round.
    fn convert_between(&mut self, ty: Type, val: &Val) -> Eval<Option<Val>> {
        let Some((from, repr)) = self.number(val) else { return Ok(None) };
        if from == ty {
            return Ok(Some(val.clone()));
        }
        let Some((to_bits, to)) = self.types().primitive(ty) else { return Ok(None) };
        let from_bits = self.types().primitive(from).map_or(0, |(bits, _)| bits);
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
            return Ok(Some(Val::bool(val.as_bits().is_some_and(|b| b & 1 == 1))));
        }
        if repr == PrimitiveRepr::Bool && to != PrimitiveRepr::Float {
            return Ok(Some(Val::Bits { ty, bits: val.as_bits().unwrap_or(0) }));
        }
        self.scalar_op(op, ty, std::slice::from_ref(val)).map(|(val, _)| Some(val))
    }

    /// `T(x)` on numbers: the conversion must be exact unless the target is a float. `None` if `x` is no number or `T`
    /// none that numbers convert to.
    pub(super) fn convert_number(&mut self, ty: Type, val: &Val) -> Eval<Option<Val>> {
        let Some(converted) = self.convert_between(ty, val)? else { return Ok(None) };
        let is_float = self.types().primitive(ty).is_some_and(|(_, repr)| repr == PrimitiveRepr::Float);
        if is_float || self.compare_numbers(&converted, val) == Some(Ordering::Equal) {
            return Ok(Some(converted));
        }
        let (name, args) = (self.types().display(ty).to_string(), vec![Val::Type(ty), val.clone()]);
        let args = self.new_tuple(args)?;
        Err(self.exception("InexactError", vec![Val::Symbol(self.name(&name)), args]))
    }

    /// How two numbers compare, exactly; `None` if one is NaN or no number.
    fn compare_numbers(&self, a: &Val, b: &Val) -> Option<Ordering> {
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

/// A float against an integer: whole parts as integers, then the fraction decides.
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
