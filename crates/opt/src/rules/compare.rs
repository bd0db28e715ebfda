//! Rules for comparisons, and for their negation.

use super::fold::{ones, scalar_type, width};
use super::{Rewrite, Site};
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Op, Type, Value};

use Intrinsic::{
    AddInt, EqFloat, EqInt, Fpiseq, LtFloat, NeFloat, NeInt, NotInt, SleInt, SltInt, SubInt, UleInt, UltInt,
    XorInt,
};

pub(super) fn simplify(site: &mut Site<'_>, op: Intrinsic) -> Option<Rewrite> {
    let (x, y) = site.pair()?;
    if let Some(swapped) = site.constant_last(op, x, y) {
        return Some(swapped);
    }
    if x == y {
        return with_itself(site, op);
    }
    match op {
        EqInt | NeInt => equality(site, op, x, y),
        SltInt | SleInt | UltInt | UleInt => at_the_limits(site, op, x, y),
        _ => None,
    }
}

/// x == x, x <= x  →  true      x != x, x < x  →  false
///
/// A NaN is not equal to itself, so of the float comparisons only those that are false or bitwise have an answer.
fn with_itself(site: &mut Site<'_>, op: Intrinsic) -> Option<Rewrite> {
    match op {
        EqInt | SleInt | UleInt | Fpiseq => site.truth(true),
        NeInt | SltInt | UltInt | LtFloat => site.truth(false),
        _ => None,
    }
}

fn equality(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let ty = site.func.ty(x);
    width(site, ty)?;
    let c = site.bits(y)?;
    // Of a truth value b:   b == true, b != false  →  b      b == false, b != true  →  !b
    if site.ty == ty && c <= 1 && is_truth(site, x) {
        return if (op == EqInt) == (c == 1) { Some(Rewrite::Value(x)) } else { negation(site, x) };
    }
    // x - y == 0, x ⊻ y == 0  →  x == y
    if c == 0
        && let Some((a, b)) = site.binary_of(x, SubInt).or_else(|| site.binary_of(x, XorInt))
    {
        return Rewrite::binary(op, a, b);
    }
    // x + d == c  →  x == c - d      x ⊻ d == c  →  x == c ⊻ d
    let (inner, d, back): (Value, Value, fn(u128, u128) -> u128) =
        match (site.binary_of(x, AddInt), site.binary_of(x, XorInt)) {
            (Some((inner, d)), _) => (inner, d, u128::wrapping_sub),
            (_, Some((inner, d))) => (inner, d, |c, d| c ^ d),
            _ => return None,
        };
    let d = site.bits(d)?;
    let moved = site.constant(ty, back(c, d));
    Rewrite::binary(op, inner, moved)
}

/// Comparisons with the least or greatest value of the type.
fn at_the_limits(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let ty = site.func.ty(x);
    let all = ones(width(site, ty).filter(|_| ty != Type::BOOL)?);
    let signed_max = all >> 1;
    let (least, greatest) = match op {
        SltInt | SleInt => (signed_max + 1, signed_max),
        _ => (0, all),
    };
    let strict = matches!(op, SltInt | UltInt);
    match (site.bits(x), site.bits(y)) {
        // x < least, greatest < x  →  false
        (_, Some(c)) if strict && c == least => site.truth(false),
        (Some(c), _) if strict && c == greatest => site.truth(false),
        // least <= x, x <= greatest  →  true
        (Some(c), _) if !strict && c == least => site.truth(true),
        (_, Some(c)) if !strict && c == greatest => site.truth(true),
        // Unsigned:  x < 1, x <= 0  →  x == 0      0 < x, 1 <= x  →  x != 0
        (_, Some(c)) if op == UltInt && c == 1 || op == UleInt && c == 0 => {
            let zero = site.constant(ty, 0);
            Rewrite::binary(EqInt, x, zero)
        }
        (Some(c), _) if op == UltInt && c == 0 || op == UleInt && c == 1 => {
            let zero = site.constant(ty, 0);
            Rewrite::binary(NeInt, y, zero)
        }
        _ => None,
    }
}

/// Whether a value is known to be 0 or 1 and to mean true or false.
pub(super) fn is_truth(site: &Site<'_>, value: Value) -> bool {
    site.func.ty(value) == Type::BOOL
        || site
            .made_by(value)
            .is_some_and(|(op, _)| matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare))
}

/// !b: `not_int` of a `Bool`, b ⊻ 1 of a byte.
pub(super) fn negation(site: &mut Site<'_>, truth: Value) -> Option<Rewrite> {
    match site.func.ty(truth) {
        Type::BOOL => Rewrite::unary(NotInt, truth),
        ty => {
            let one = site.constant(ty, 1);
            Rewrite::binary(XorInt, truth, one)
        }
    }
}

/// The comparison that is true when this one is false, with its operands in their new order.
///
/// `lt_float` and `le_float` have none: both they and their opposites are false for NaN.
fn opposite(op: Intrinsic) -> Option<(Intrinsic, bool)> {
    const SAME: bool = false;
    const EXCHANGED: bool = true;
    Some(match op {
        EqInt => (NeInt, SAME),
        NeInt => (EqInt, SAME),
        SltInt => (SleInt, EXCHANGED),
        SleInt => (SltInt, EXCHANGED),
        UltInt => (UleInt, EXCHANGED),
        UleInt => (UltInt, EXCHANGED),
        EqFloat => (NeFloat, SAME),
        NeFloat => (EqFloat, SAME),
        _ => return None,
    })
}

/// not(x < y)  →  y <= x   and so on, for the `not_int` of a `Bool` at the site.
pub(super) fn inverse(site: &mut Site<'_>, truth: Value) -> Option<Rewrite> {
    if site.ty != Type::BOOL {
        return None;
    }
    inverse_of(site, truth)
}

/// (x < y) ⊻ 1  →  y <= x   and so on, for a byte of low IR.
pub(super) fn inverse_byte(site: &mut Site<'_>, truth: Value) -> Option<Rewrite> {
    if site.ty != Type::I8 || !is_truth(site, truth) {
        return None;
    }
    inverse_of(site, truth)
}

fn inverse_of(site: &Site<'_>, truth: Value) -> Option<Rewrite> {
    let (op, args) = site.made_by(truth)?;
    let &[x, y] = args else { return None };
    scalar_type(site.types, site.func.ty(x))?;
    let (op, exchanged) = opposite(op)?;
    let args = if exchanged { vec![y, x] } else { vec![x, y] };
    Some(Rewrite::Op(Op::Intrinsic(op), args))
}
