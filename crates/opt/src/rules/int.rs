//! Rules for integers, bits, shifts, division and addresses.
//!
//! `c`, `d` are constants; everything is modulo 2^width. A `Bool` computes in one bit here, as its operations do; rules
//! about shifts and signs leave it alone.

use super::fold::{ones, pair, width};
use super::{Rewrite, Site};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Type, Value};

use Intrinsic::{
    AddInt, AddPtr, AndInt, AshrInt, CheckedSaddInt, CheckedSdivInt, CheckedSmulInt, CheckedSremInt,
    CheckedSsubInt, CheckedUaddInt, CheckedUdivInt, CheckedUmulInt, CheckedUremInt, CheckedUsubInt,
    FlipsignInt, LshrInt, MulInt, NegInt, NotInt, OrInt, SdivInt, ShlInt, SremInt, SubInt, SubPtr, UdivInt,
    UremInt, XorInt, ZextInt,
};

pub(super) fn simplify(site: &mut Site<'_>, op: Intrinsic) -> Option<Rewrite> {
    match *site.args() {
        [x] => unary(site, op, x),
        [x, y] => site.constant_last(op, x, y).or_else(|| match op {
            ShlInt | LshrInt | AshrInt => shift(site, op, x, y),
            SdivInt | UdivInt | SremInt | UremInt | CheckedSdivInt | CheckedUdivInt | CheckedSremInt
            | CheckedUremInt => divide(site, op, x, y),
            CheckedSaddInt | CheckedUaddInt | CheckedSsubInt | CheckedUsubInt | CheckedSmulInt
            | CheckedUmulInt => checked(site, op, x, y),
            AddPtr | SubPtr => address(site, op, x, y),
            FlipsignInt => flipsign(site, x, y),
            _ => binary(site, op, x, y),
        }),
        _ => None,
    }
}

fn unary(site: &mut Site<'_>, op: Intrinsic, x: Value) -> Option<Rewrite> {
    match op {
        // -(-x)  →  x      ~~x  →  x
        NegInt | NotInt => match site.unary_of(x, op) {
            Some(inner) => Some(Rewrite::Value(inner)),
            None if op == NotInt => super::compare::inverse(site, x),
            None => negated_difference(site, x),
        },
        _ => None,
    }
}

/// -(x - y)  →  y - x
fn negated_difference(site: &mut Site<'_>, x: Value) -> Option<Rewrite> {
    let (a, b) = site.binary_of(x, SubInt)?;
    Rewrite::binary(SubInt, b, a)
}

fn binary(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let all = ones(width(site, site.ty)?);
    let c = site.bits(y);
    match (op, c) {
        // x + 0, x - 0, x | 0, x ⊻ 0, x * 1, x & ~0  →  x
        (AddInt | SubInt | OrInt | XorInt, Some(0)) | (MulInt, Some(1)) => return Some(Rewrite::Value(x)),
        (AndInt, Some(c)) if c == all => return Some(Rewrite::Value(x)),
        // b & 1  →  b, of a truth value
        (AndInt, Some(1)) if super::compare::is_truth(site, x) => return Some(Rewrite::Value(x)),
        // zext(b) & 1  →  zext(b), of a truth value
        (AndInt, Some(1)) if site.unary_of(x, ZextInt).is_some_and(|b| super::compare::is_truth(site, b)) => {
            return Some(Rewrite::Value(x));
        }
        // x * 0, x & 0  →  0      x | ~0  →  ~0
        (MulInt | AndInt, Some(0)) => return Some(Rewrite::Value(y)),
        (OrInt, Some(c)) if c == all => return Some(Rewrite::Value(y)),
        // x ⊻ ~0  →  ~x      x * -1  →  -x      x - c  →  x + (-c)
        (XorInt, Some(c)) if c == all => return Rewrite::unary(NotInt, x),
        (XorInt, Some(1)) => {
            if let Some(opposite) = super::compare::inverse_byte(site, x) {
                return Some(opposite);
            }
        }
        (MulInt, Some(c)) if c == all => return Rewrite::unary(NegInt, x),
        (SubInt, Some(c)) => {
            let negated = site.constant(site.ty, c.wrapping_neg());
            return Rewrite::binary(AddInt, x, negated);
        }
        // 0 - x  →  -x
        (SubInt, None) if site.bits(x) == Some(0) => return Rewrite::unary(NegInt, y),
        // x - x, x ⊻ x  →  0      x & x, x | x  →  x
        (SubInt | XorInt, None) if x == y => return site.constant_value(site.ty, 0),
        (AndInt | OrInt, None) if x == y => return Some(Rewrite::Value(x)),
        (AddInt, None) => {
            // x + (-y)  →  x - y      (-x) + y  →  y - x
            if let Some(negated) = site.unary_of(y, NegInt) {
                return Rewrite::binary(SubInt, x, negated);
            }
            if let Some(negated) = site.unary_of(x, NegInt) {
                return Rewrite::binary(SubInt, y, negated);
            }
        }
        // x - (-y)  →  x + y
        (SubInt, None) => {
            if let Some(negated) = site.unary_of(y, NegInt) {
                return Rewrite::binary(AddInt, x, negated);
            }
            return cancelled(site, x, y);
        }
        _ => {}
    }
    regrouped(site, op, x, c?)
}

/// (x + y) - y  →  x      (x + y) - x  →  y
fn cancelled(site: &Site<'_>, sum: Value, y: Value) -> Option<Rewrite> {
    let (a, b) = site.binary_of(sum, AddInt)?;
    if b == y {
        Some(Rewrite::Value(a))
    } else if a == y {
        Some(Rewrite::Value(b))
    } else {
        None
    }
}

/// (x ∘ d) ∘ c  →  x ∘ (d ∘ c)   for +, *, &, |, ⊻
fn regrouped(site: &mut Site<'_>, op: Intrinsic, x: Value, c: u128) -> Option<Rewrite> {
    let (inner, d) = site.binary_of(x, op)?;
    let d = site.bits(d)?;
    let both = match op {
        AddInt => d.wrapping_add(c),
        MulInt => d.wrapping_mul(c),
        AndInt => d & c,
        OrInt => d | c,
        XorInt => d ^ c,
        _ => return None,
    };
    let both = site.constant(site.ty, both);
    Rewrite::binary(op, inner, both)
}

fn is_plain(site: &Site<'_>) -> bool {
    site.ty != Type::BOOL
}

fn shift(site: &mut Site<'_>, op: Intrinsic, x: Value, count: Value) -> Option<Rewrite> {
    let width = width(site, site.ty)?;
    // 0 << n  →  0
    if site.bits(x) == Some(0) {
        return Some(Rewrite::Value(x));
    }
    let n = site.bits(count)?;
    // x << 0  →  x
    if n == 0 {
        return Some(Rewrite::Value(x));
    }
    if !is_plain(site) {
        return None;
    }
    // Beyond the width: x << n, x >>> n  →  0      x >> n  →  x >> (width - 1)
    let last = u128::from(width) - 1;
    if n > last {
        if op != AshrInt {
            return site.constant_value(site.ty, 0);
        }
        let last = shift_count(site, count, last)?;
        return Rewrite::binary(op, x, last);
    }
    // (x << m) << n  →  x << (m + n)
    let (inner, m) = site.binary_of(x, op)?;
    let sum = site.bits(m).filter(|&m| m <= last)? + n;
    if sum > last && op != AshrInt {
        return site.constant_value(site.ty, 0);
    }
    let sum = shift_count(site, count, sum.min(last))?;
    Rewrite::binary(op, inner, sum)
}

/// A count of the same type as `like`, if that type can hold it.
fn shift_count(site: &mut Site<'_>, like: Value, n: u128) -> Option<Value> {
    let ty = site.func.ty(like);
    (n <= ones(width(site, ty)?)).then(|| site.constant(ty, n))
}

fn divide(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let all = ones(width(site, site.ty)?);
    let c = site.bits(y)?;
    let quotient = matches!(op, SdivInt | UdivInt | CheckedSdivInt | CheckedUdivInt);
    let unsigned = matches!(op, UdivInt | UremInt | CheckedUdivInt | CheckedUremInt);
    match c {
        // x ÷ 1  →  x      x % 1  →  0
        1 if quotient => Some(Rewrite::Value(x)),
        1 => site.constant_value(site.ty, 0),
        // x % -1  →  0
        c if c == all && !quotient && !unsigned => site.constant_value(site.ty, 0),
        // Unsigned by 2^n: x ÷ 2^n  →  x >>> n      x % 2^n  →  x & (2^n - 1)
        c if unsigned && c.is_power_of_two() && is_plain(site) => {
            if quotient {
                let n = site.constant(site.ty, u128::from(c.trailing_zeros()));
                Rewrite::binary(LshrInt, x, n)
            } else {
                let mask = site.constant(site.ty, c - 1);
                Rewrite::binary(AndInt, x, mask)
            }
        }
        _ => None,
    }
}

/// Checked operations that cannot wrap.
fn checked(site: &mut Site<'_>, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
    let value = match (op, site.bits(y)) {
        // x + 0, x - 0, x * 1  →  (x, false)
        (CheckedSaddInt | CheckedUaddInt | CheckedSsubInt | CheckedUsubInt, Some(0))
        | (CheckedSmulInt | CheckedUmulInt, Some(1)) => x,
        // x * 0  →  (0, false)
        (CheckedSmulInt | CheckedUmulInt, Some(0)) => y,
        // x - x  →  (0, false)
        (CheckedSsubInt | CheckedUsubInt, None) if x == y => {
            let ty = site.func.ty(x);
            site.constant(ty, 0)
        }
        _ => return None,
    };
    pair(site, value, false)
}

fn address(site: &mut Site<'_>, op: Intrinsic, base: Value, offset: Value) -> Option<Rewrite> {
    let c = site.bits(offset)?;
    // p + 0  →  p
    if c == 0 {
        return Some(Rewrite::Value(base));
    }
    let ty = site.func.ty(offset);
    // p - c  →  p + (-c)
    if op == SubPtr {
        let negated = site.constant(ty, c.wrapping_neg());
        return Rewrite::binary(AddPtr, base, negated);
    }
    // (p + d) + c  →  p + (d + c)
    let (inner, d) = site.binary_of(base, AddPtr)?;
    let d = site.bits(d)?;
    let sum = site.constant(ty, d.wrapping_add(c));
    Rewrite::binary(AddPtr, inner, sum)
}

/// flipsign(x, c)  →  x or -x
fn flipsign(site: &mut Site<'_>, x: Value, y: Value) -> Option<Rewrite> {
    let width = width(site, site.ty).filter(|_| is_plain(site))?;
    let negative = site.bits(y)? >> (width - 1) & 1 == 1;
    if negative { Rewrite::unary(NegInt, x) } else { Some(Rewrite::Value(x)) }
}
