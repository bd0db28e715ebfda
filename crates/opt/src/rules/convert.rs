//! Rules for conversions of conversions.
//!
//! `Bool` is a byte that holds 0 or 1 and is left alone where widths are compared. Between floats there is no rule: a
//! round trip through a wider format makes a signalling NaN quiet.

use super::fold::width;
use super::{Rewrite, Site};
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::{Type, Value};

use Intrinsic::{Bitcast, SextInt, TruncInt, ZextInt};

pub(super) fn simplify(site: &mut Site<'_>, kind: Convert) -> Option<Rewrite> {
    let x = site.arg(0)?;
    match kind {
        Convert::Bits => bitcast(site, x),
        Convert::SignExtend | Convert::ZeroExtend | Convert::Truncate => resize(site, kind, x),
        _ => None,
    }
}

fn bitcast(site: &Site<'_>, x: Value) -> Option<Rewrite> {
    // bitcast(T, x::T)  →  x
    if site.func.ty(x) == site.ty {
        return Some(Rewrite::Value(x));
    }
    // bitcast(A, bitcast(B, x))  →  bitcast(A, x)
    let inner = site.unary_of(x, Bitcast)?;
    // A cast may read a `Bool` as a byte, and only its lowest bit survives.
    let passes_bool = [site.func.ty(x), site.func.ty(inner), site.ty].contains(&Type::BOOL);
    // Between classes of pointers some casts are refused that are allowed in two steps.
    let pointers = [site.func.ty(x), site.func.ty(inner), site.ty]
        .iter()
        .any(|ty| ty.as_low().is_some() && width(site, *ty).is_none() && !is_low_float(*ty));
    if passes_bool || pointers { None } else { Rewrite::unary(Bitcast, inner) }
}

fn is_low_float(ty: Type) -> bool {
    ty.as_low().is_some_and(|low| low.is_float())
}

/// A bit that is compared with 0 or 1, as a number: itself, or its opposite.
fn bit_as_number(site: &mut Site<'_>, x: Value) -> Option<Rewrite> {
    let (op, args) = site.made_by(x)?;
    let &[bit, with] = args else { return None };
    let with = site.func.as_bits(with)?;
    let whole = site.func.ty(bit) == site.ty && used_bits(site, bit, MAX_STEPS)? <= 1;
    let is_itself = match (op, with) {
        (Intrinsic::NeInt, 0) | (Intrinsic::EqInt, 1) => true,
        (Intrinsic::EqInt, 0) | (Intrinsic::NeInt, 1) => false,
        _ => return None,
    };
    if !whole || site.ty == Type::BOOL {
        return None;
    }
    if is_itself {
        return Some(Rewrite::Value(bit));
    }
    let one = site.constant(site.ty, 1);
    Rewrite::binary(Intrinsic::XorInt, bit, one)
}

fn resize(site: &mut Site<'_>, kind: Convert, x: Value) -> Option<Rewrite> {
    if kind == Convert::ZeroExtend
        && let Some(number) = bit_as_number(site, x)
    {
        return Some(number);
    }
    let (inner_op, args) = site.made_by(x)?;
    let &[inner] = args else { return None };
    let Shape::Convert(inner_kind) = inner_op.shape() else { return None };
    let (from, to) = (site.func.ty(inner), site.ty);
    if [from, to, site.func.ty(x)].contains(&Type::BOOL) {
        return None;
    }
    let (narrow, result) = (width(site, from)?, width(site, to)?);
    match (kind, inner_kind) {
        // Widened twice the same way, or by zeros and then by a sign that is zero: once.
        (Convert::ZeroExtend, Convert::ZeroExtend) | (Convert::SignExtend, Convert::ZeroExtend) => {
            Rewrite::unary(ZextInt, inner)
        }
        (Convert::SignExtend, Convert::SignExtend) => Rewrite::unary(SextInt, inner),
        // Cut twice: once.
        (Convert::Truncate, Convert::Truncate) => Rewrite::unary(TruncInt, inner),
        // Widened and then cut: one of the two, or nothing.
        (Convert::Truncate, Convert::ZeroExtend | Convert::SignExtend) => {
            if result == narrow {
                if from == to { Some(Rewrite::Value(inner)) } else { Rewrite::unary(Bitcast, inner) }
            } else if result < narrow {
                Rewrite::unary(TruncInt, inner)
            } else {
                Rewrite::unary(inner_op, inner)
            }
        }
        // Cut and widened again: nothing, if the cut took away zeros only.
        (Convert::ZeroExtend, Convert::Truncate) if from == to => {
            let cut = width(site, site.func.ty(x))?;
            (used_bits(site, inner, MAX_STEPS)? <= cut).then_some(Rewrite::Value(inner))
        }
        _ => None,
    }
}

/// The most operations traversed by [`used_bits`].
const MAX_STEPS: u32 = 3;

/// How many of the low bits of an integer may be ones; the others are zeros.
fn used_bits(site: &Site<'_>, value: Value, steps: u32) -> Option<u32> {
    let whole = width(site, site.func.ty(value))?;
    if let Some(bits) = site.func.as_bits(value) {
        return Some(128 - bits.leading_zeros());
    }
    let (Some((op, args)), Some(steps)) = (site.made_by(value), steps.checked_sub(1)) else {
        return Some(whole);
    };
    let of = |n: usize| args.get(n).and_then(|&arg| used_bits(site, arg, steps)).unwrap_or(whole);
    Some(match op {
        Intrinsic::AndInt => of(0).min(of(1)),
        Intrinsic::OrInt | Intrinsic::XorInt => of(0).max(of(1)),
        ZextInt => of(0),
        Intrinsic::LshrInt => {
            let count = args.get(1).and_then(|&count| site.func.as_bits(count)).unwrap_or(0);
            whole.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX))
        }
        _ => whole,
    })
}
