//! Facts about values that follow from the edges of branches and from calls that return.
//!
//! ```text
//! goto #3 if not slt_int(a, b)             to 2: a ≤ b - 1      to 3: b ≤ a
//! brolga_gc_memory(type_addr(…), n)        after it: 0 ≤ n, because it throws otherwise
//! ```
//!
//! Conjunctions, disjunctions and negations of comparisons are taken apart.
//!
//! Cost: at most [`MAX_PARTS`] conditions for each edge.

use crate::ranges::{constant, width};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, RuntimeFn, Value};
use smallvec::{SmallVec, smallvec};

/// Conditions within one condition that are taken apart.
const MAX_PARTS: usize = 8;

/// The test of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Test {
    /// The first is at most the second plus the number.
    AtMost(Term, Term, i64),
    /// The first is not the second.
    Differ(Term, Term),
    /// The first is at most the second plus the number, as unsigned integers of one width.
    UnsignedAtMost(Term, Term, i64),
    /// The condition has this value.
    Known(Value, bool),
}

/// A value, or zero, plus a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Term {
    pub(super) value: Option<Value>,
    pub(super) plus: i64,
}

/// The number zero.
pub(super) const ZERO: Term = Term { value: None, plus: 0 };

/// A value as zero plus a number if it is a constant, without sign extensions around it.
pub(super) fn term(func: &Func, value: Value) -> Term {
    let mut value = value;
    for _ in 0..4 {
        if let Some(c) = constant(func, value) {
            return Term { value: None, plus: c };
        }
        match func.def_inst(value).map(|inst| (func.op(inst), func.args(inst))) {
            Some((Op::Intrinsic(Intrinsic::SextInt) | Op::Copy, &[x])) if width(func.ty(x)).is_some() => {
                value = x
            }
            _ => break,
        }
    }
    Term { value: Some(value), plus: 0 }
}

/// A fact about an operand of a call that holds after the call.
pub(super) fn call_test(func: &Func, inst: Inst) -> Option<Test> {
    let (Op::CallRuntime(RuntimeFn::GcMemory), &[_, length]) = (func.op(inst), func.args(inst)) else {
        return None;
    };
    Some(Test::AtMost(ZERO, term(func, length), 0))
}

/// Conditions with their values.
type Parts = SmallVec<[(Value, bool); 4]>;

/// The tests that hold on the edge from one block to another because of the branch that ends the first.
pub(super) fn way_tests(func: &Func, from: Block, to: Block, tests: &mut Vec<Test>) {
    let Some(end) = func.terminator(from).filter(|&t| func.op(t) == Op::Branch) else { return };
    let (&[cond], &[yes, no]) = (func.args(end), func.inst_blocks(end)) else { return };
    if yes != no {
        cond_tests(func, cond, to == yes, tests);
    }
}

/// The tests that hold where a condition has the given value.
pub(super) fn cond_tests(func: &Func, cond: Value, truth: bool, tests: &mut Vec<Test>) {
    let mut parts: Parts = smallvec![(cond, truth)];
    let mut next = 0;
    while let Some(&(cond, truth)) = parts.get(next).filter(|_| next < MAX_PARTS) {
        next += 1;
        tests.push(Test::Known(cond, truth));
        let Some(inst) = func.def_inst(cond) else { continue };
        let (Op::Intrinsic(op), &[x, y]) = (func.op(inst), func.args(inst)) else { continue };
        compared(func, op, x, y, truth, tests, &mut parts);
    }
}

fn compared(
    func: &Func,
    op: Intrinsic,
    x: Value,
    y: Value,
    truth: bool,
    tests: &mut Vec<Test>,
    parts: &mut Parts,
) {
    use Intrinsic as I;
    let is_truth = |v: Value| {
        let made = func.def_inst(v).map(|inst| func.op(inst));
        matches!(made, Some(Op::Intrinsic(op)) if matches!(op, I::EqInt | I::NeInt | I::SltInt | I::SleInt | I::UltInt | I::UleInt))
    };
    // For bytes that hold truth values.
    match op {
        I::AndInt if truth => parts.extend([x, y].into_iter().filter(|&v| is_truth(v)).map(|v| (v, true))),
        I::OrInt if !truth => parts.extend([(x, false), (y, false)]),
        I::XorInt if is_truth(x) && constant(func, y) == Some(1) => parts.push((x, !truth)),
        I::EqInt if is_truth(x) && constant(func, y) == Some(0) => parts.push((x, !truth)),
        I::NeInt if is_truth(x) && constant(func, y) == Some(0) => parts.push((x, truth)),
        _ => {}
    }
    if width(func.ty(x)).is_none() {
        return;
    }
    let (a, b) = (term(func, x), term(func, y));
    match (op, truth) {
        (I::SltInt, true) => tests.push(Test::AtMost(a, b, -1)),
        (I::SltInt, false) => tests.push(Test::AtMost(b, a, 0)),
        (I::SleInt, true) => tests.push(Test::AtMost(a, b, 0)),
        (I::SleInt, false) => tests.push(Test::AtMost(b, a, -1)),
        (I::UltInt, true) => tests.push(Test::UnsignedAtMost(a, b, -1)),
        (I::UltInt, false) => tests.push(Test::UnsignedAtMost(b, a, 0)),
        (I::UleInt, true) => tests.push(Test::UnsignedAtMost(a, b, 0)),
        (I::UleInt, false) => tests.push(Test::UnsignedAtMost(b, a, -1)),
        (I::EqInt, true) | (I::NeInt, false) => {
            tests.extend([Test::AtMost(a, b, 0), Test::AtMost(b, a, 0)]);
        }
        (I::EqInt, false) | (I::NeInt, true) => tests.push(Test::Differ(a, b)),
        _ => {}
    }
}
