//! Rules for instructions that only pass a value on: `ifelse`, φ, π, copies, and the test that a variable is defined.

use super::compare::negation;
use super::{Rewrite, Site};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Op, Type, Value};

pub(super) fn simplify(site: &mut Site<'_>) -> Option<Rewrite> {
    match site.func.op(site.inst) {
        Op::Copy => copy(site),
        Op::Pi => pi(site),
        Op::Phi => phi(site),
        Op::ThrowUndefIfNot(_) => (site.bits(site.arg(0)?) == Some(1)).then_some(Rewrite::Nothing),
        _ => ifelse(site),
    }
}

/// (x)  →  x
fn copy(site: &Site<'_>) -> Option<Rewrite> {
    site.func.result(site.inst)?;
    site.arg(0).map(Rewrite::Value)
}

/// π (x, T)  →  x   if x is a T anyway      π (π (x, S), T)  →  π (x, T)
fn pi(site: &Site<'_>) -> Option<Rewrite> {
    let x = site.arg(0)?;
    if site.types.is_subtype(site.func.ty(x), site.ty) {
        return Some(Rewrite::Value(x));
    }
    let inner = site.func.def_inst(x).filter(|&i| i != site.inst && site.func.op(i) == Op::Pi)?;
    // The wider of the two assertions adds nothing.
    let narrows = site.types.is_subtype(site.ty, site.func.ty(x));
    narrows.then(|| Rewrite::Op(Op::Pi, site.func.args(inner).to_vec()))
}

/// φ (a => x, b => x, c => itself)  →  x
///
/// If an edge is missing, x need not be defined on that edge; only a value that is defined everywhere may then replace the
/// φ.
fn phi(site: &Site<'_>) -> Option<Rewrite> {
    let own = site.func.result(site.inst)?;
    let mut others = site.args().iter().copied().filter(|&v| v != own);
    let first = others.next()?;
    if others.any(|v| v != first) {
        return None;
    }
    let complete = || {
        let block = site.func.inst_block(site.inst)?;
        let mut preds = site.cfg.preds(block).to_vec();
        preds.sort_unstable();
        preds.dedup();
        (site.args().len() == preds.len()).then_some(())
    };
    let everywhere = site.func.def_inst(first).is_none();
    (everywhere || complete().is_some()).then_some(Rewrite::Value(first))
}

fn ifelse(site: &mut Site<'_>) -> Option<Rewrite> {
    let &[cond, yes, no] = site.args() else { return None };
    // ifelse(c, x, x)  →  x, where c is known to be a truth value and cannot throw.
    let cond_type = site.func.ty(cond);
    if !matches!(cond_type, Type::BOOL | Type::I8) {
        return None;
    }
    if yes == no {
        return Some(Rewrite::Value(yes));
    }
    // ifelse(true, x, y)  →  x      ifelse(false, x, y)  →  y
    if let Some(bits) = site.bits(cond) {
        return Some(Rewrite::Value(if bits != 0 { yes } else { no }));
    }
    // ifelse(!c, x, y)  →  ifelse(c, y, x)
    if let Some(positive) = negated(site, cond) {
        return Some(Rewrite::Op(Op::Builtin(Builtin::Ifelse), vec![positive, no, yes]));
    }
    // ifelse(c, true, false)  →  c      ifelse(c, false, true)  →  !c
    if site.ty == cond_type {
        match (site.bits(yes), site.bits(no)) {
            (Some(1), Some(0)) => return Some(Rewrite::Value(cond)),
            (Some(0), Some(1)) => return negation(site, cond),
            _ => {}
        }
    }
    None
}

/// c if the value is !c.
fn negated(site: &Site<'_>, truth: Value) -> Option<Value> {
    match site.func.ty(truth) {
        Type::BOOL => site.unary_of(truth, Intrinsic::NotInt).filter(|&x| site.func.ty(x) == Type::BOOL),
        _ => {
            let (x, one) = site.binary_of(truth, Intrinsic::XorInt)?;
            (site.bits(one) == Some(1)).then_some(x)
        }
    }
}
