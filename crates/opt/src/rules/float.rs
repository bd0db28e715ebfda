//! Rules for floating-point arithmetic.
//!
//! Strict operations allow very little: x + 0.0 is not x for x = -0.0, and x * 1.0 is not x for a signalling NaN, which
//! arithmetic makes quiet. `_fast` operations may be treated as arithmetic on reals.

use super::fold::scalar_type;
use super::{Rewrite, Site};
use brolga_ir::Value;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::scalar::{Scalar, ScalarType};

use Intrinsic::{
    AbsFloat, AddFloat, AddFloatFast, CopysignFloat, DivFloat, DivFloatFast, MulFloat, MulFloatFast,
    NegFloat, NegFloatFast, SubFloat, SubFloatFast,
};

pub(super) fn simplify(site: &mut Site<'_>, op: Intrinsic) -> Option<Rewrite> {
    match *site.args() {
        [x] => unary(site, op, x),
        [x, y] => {
            let swapped = site.constant_last(op, x, y);
            swapped.or_else(|| signs(site, op, x, y)).or_else(|| with_constant(site, op, x, y))
        }
        _ => None,
    }
}

fn unary(site: &Site<'_>, op: Intrinsic, x: Value) -> Option<Rewrite> {
    match op {
        // -(-x)  →  x
        NegFloat | NegFloatFast => negated(site, x).map(Rewrite::Value),
        // |-x|  →  |x|      ||x||  →  |x|
        AbsFloat => match negated(site, x) {
            Some(inner) => Rewrite::unary(AbsFloat, inner),
            None => site.unary_of(x, AbsFloat).map(|_| Rewrite::Value(x)),
        },
        _ => None,
    }
}

/// y if the value is -y.
fn negated(site: &Site<'_>, value: Value) -> Option<Value> {
    site.unary_of(value, NegFloat).or_else(|| site.unary_of(value, NegFloatFast))
}

/// Signs that cancel. All of them are exact: a difference *is* the sum with the negated operand.
fn signs(site: &Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let difference = |sum| if sum == AddFloat { SubFloat } else { SubFloatFast };
    match op {
        // x + (-y)  →  x - y      (-x) + y  →  y - x
        AddFloat | AddFloatFast => match (negated(site, x), negated(site, y)) {
            (_, Some(y)) => Rewrite::binary(difference(op), x, y),
            (Some(x), _) => Rewrite::binary(difference(op), y, x),
            _ => None,
        },
        // x - (-y)  →  x + y
        SubFloat => Rewrite::binary(AddFloat, x, negated(site, y)?),
        SubFloatFast => Rewrite::binary(AddFloatFast, x, negated(site, y)?),
        // (-x) * (-y)  →  x * y      (-x) / (-y)  →  x / y
        MulFloat | MulFloatFast | DivFloat | DivFloatFast => {
            Rewrite::binary(op, negated(site, x)?, negated(site, y)?)
        }
        // copysign(±x, y), copysign(|x|, y)  →  copysign(x, y)
        CopysignFloat => {
            let inner = negated(site, x).or_else(|| site.unary_of(x, AbsFloat))?;
            Rewrite::binary(op, inner, y)
        }
        _ => None,
    }
}

fn with_constant(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let ty = scalar_type(site.types, site.ty)?;
    let c = Scalar::new(ty, site.bits(y)?);
    let value = c.to_f64()?;
    match op {
        // x + 0.0, x - 0.0, x * 1.0, x / 1.0  →  x      x * 0.0  →  0.0
        AddFloatFast | SubFloatFast if value == 0.0 => Some(Rewrite::Value(x)),
        MulFloatFast | DivFloatFast if value == 1.0 => Some(Rewrite::Value(x)),
        MulFloatFast if value == 0.0 => Some(Rewrite::Value(y)),
        // x / 2^n  →  x * 2^-n
        DivFloat => {
            let inverse = site.constant(site.ty, exact_inverse(ty, value)?);
            Rewrite::binary(MulFloat, x, inverse)
        }
        DivFloatFast => {
            let inverse = site.constant(site.ty, exact_inverse(ty, value)?);
            Rewrite::binary(MulFloatFast, x, inverse)
        }
        _ => None,
    }
}

/// The bits of 1 / value if value is ± a power of two whose inverse is a normal number of the type: both roundings are then
/// of the same real number.
fn exact_inverse(ty: ScalarType, value: f64) -> Option<u128> {
    let (digits, bias) = match ty {
        ScalarType::F16 => (10, 15),
        ScalarType::F32 => (23, 127),
        ScalarType::F64 => (52, 1023),
        ScalarType::Int { .. } => return None,
    };
    let wide = value.to_bits();
    let exponent = (wide >> 52 & 0x7ff) as i64 - 1023;
    let is_power = wide & ((1 << 52) - 1) == 0 && (-bias + 1..=bias).contains(&exponent);
    let biased = bias - exponent;
    // At most `bias` up: the inverse of the greatest power is subnormal, and the inverse of a subnormal overflows.
    if !is_power || !(1..2 * bias + 1).contains(&biased) {
        return None;
    }
    let sign = u128::from(wide >> 63) << (u32::from(ty.bits()) - 1);
    Some(sign | (biased as u128) << digits)
}
