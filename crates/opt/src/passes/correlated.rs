//! Decides comparisons, checks and signs from dominating tests.
//!
//! ```text
//! 1: sle_int(1, n)   yes: 2                     every i that comes to 3 is at least 1 and at most n, so
//! 2: i = φ (1 => 1, 4 => i')           ==>        ult_int(i - 1, n)                       is true
//! 3: … ult_int(i - 1, n) …                         checked_sadd_int(i, 1) with i ≠ n      does not overflow
//! 4: eq_int(i, n) no: i' = i + 1                   sdiv_int(i, 8)                         is lshr_int(i, 3)
//! ```
//!
//! | at | if | becomes |
//! |---|---|---|
//! | a comparison of integers | it is always true, or always false | the constant |
//! | a branch on a condition, and `ifelse` | a dominating branch tested the same condition | the constant |
//! | a conjunction of comparisons | a dominating branch tested one of them | the other |
//! | `ifelse(c, x, y)` of integers | `x` equals `y` where `c` is false; where it is true | `x`; `y` |
//! | a checked operation | the operands keep it from wrapping | the unchecked one; the flag is false |
//! | a division by 2ⁿ, its remainder | the dividend is not negative | a shift; an `and` |
//! | a shift | the count is below the width | one by `and_int(count, width - 1)`, which needs no test in machine code |
//!
//! Proofs are in `correlated/prover.rs`, facts from branches in `correlated/tested.rs`, ranges in `crate::ranges`. Undecided conditions stay.
//!
//! Cost: a bounded number of goals for each query, and [`GOALS_PER_INST`] for each instruction of the function in all. Needs the
//! dominator tree; breaks the uses. Not done: replacing a value that was tested to be a constant by it; floats.

mod prover;
mod tested;

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ranges::{Range, constant, fitting, strict, width};
use crate::replace::Replacements;
use brolga_ir::analysis::Rpo;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Block, Func, Inst, Op, Type, Value};
use prover::Prover;
use smallvec::SmallVec;

pub(crate) const PASS: Pass =
    Pass::new("correlated", PassLevel::Low, run).needs(&[Fact::Cfg, Fact::DomTree]).breaks(&[Fact::Uses]);

/// Goals that the function may cost in all, for each of its instructions: a goal takes about as long as ten look-ups.
const GOALS_PER_INST: usize = 8;

/// Goals that any function may cost.
const GOALS: usize = 512;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let facts = cx.facts;
    let mut prover = Prover::new(func, facts.cfg(), facts.rpo(), facts.domtree());
    let limit = GOALS + GOALS_PER_INST * func.inst_count();
    let mut values = Replacements::default();
    'all: for &block in facts.rpo().blocks() {
        prover.enter_block();
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            prover.pass_by(func, inst);
            if prover.spent > limit {
                break 'all;
            }
            if func.op(inst) == Op::Phi {
                for (operand, truth) in known_operands(func, &mut prover, inst, facts.rpo()) {
                    if !cx.spend("known operands") {
                        break 'all;
                    }
                    let ty = func.ty(func.args(inst)[operand]);
                    func.args_mut(inst)[operand] = func.bits(cx.types(), ty, truth.into());
                }
                continue;
            }
            let Some(found) = decide(func, &mut prover, inst, block) else { continue };
            if !cx.spend(found.counter()) {
                break 'all;
            }
            apply(func, cx, &mut values, inst, found);
        }
    }
    values.apply(func, cx.context());
    cx.changed()
}

/// A finding about an instruction.
#[derive(Clone, Copy)]
enum Found {
    /// A comparison always has this outcome.
    Decided(bool),
    /// Operand 0, a condition, has this value.
    Known(bool),
    /// A choice or a conjunction always has this value.
    Chosen(Value),
    /// A checked operation does not wrap.
    Exact(Intrinsic),
    /// A signed division of a nonnegative number is this operation with that operand.
    Natural(Intrinsic, u128),
    /// A count of a shift is at most this, one less than the width.
    Near(u128),
}

impl Found {
    fn counter(self) -> &'static str {
        match self {
            Found::Decided(_) => "decided comparisons",
            Found::Known(_) => "known conditions",
            Found::Chosen(_) => "choices and conjunctions that are one operand",
            Found::Exact(_) => "checks that never fail",
            Found::Natural(..) => "divisions of natural numbers",
            Found::Near(_) => "shifts by less than the width",
        }
    }
}

fn decide(func: &Func, prover: &mut Prover<'_>, inst: Inst, block: Block) -> Option<Found> {
    match (func.op(inst), func.args(inst)) {
        (Op::Branch | Op::Builtin(Builtin::Ifelse), &[cond, ref choices @ ..]) => {
            if func.as_const(cond).is_some() {
                return None;
            }
            if let Some(truth) = prover.known(cond, block) {
                return Some(Found::Known(truth));
            }
            let &[yes, no] = choices else { return None };
            width(func.ty(yes))?;
            // One operand is always correct if both are equal whenever the other is chosen.
            let chosen = [(yes, false), (no, true)]
                .into_iter()
                .find(|&(_, truth)| prover.equal_when(func, yes, no, (cond, truth), block));
            chosen.map(|(value, _)| Found::Chosen(value))
        }
        // For truth values: where one part is known to be true, the condition equals the other.
        (Op::Intrinsic(Intrinsic::AndInt), &[x, y]) if is_compare(func, x) && is_compare(func, y) => {
            let true_part = |part| prover.known(part, block) == Some(true);
            [(x, y), (y, x)]
                .into_iter()
                .find(|&(part, _)| true_part(part))
                .map(|(_, rest)| Found::Chosen(rest))
        }
        (Op::Intrinsic(op), &[x, y]) => match op.shape() {
            Shape::IntCompare => compare(func, prover, op, x, y, block).map(Found::Decided),
            Shape::CheckedPair => {
                let exact = never_wraps(func, prover, op, x, y, block);
                exact.then(|| strict(op))?.map(Found::Exact)
            }
            Shape::IntDivide => divide(func, prover, op, x, y, block),
            Shape::Shift => shift(func, prover, x, y, block),
            _ => None,
        },
        _ => None,
    }
}

fn is_compare(func: &Func, value: Value) -> bool {
    let made = func.def_inst(value).map(|def| func.op(def));
    matches!(made, Some(Op::Intrinsic(op)) if op.shape() == Shape::IntCompare)
}

fn compare(
    func: &Func,
    prover: &mut Prover<'_>,
    op: Intrinsic,
    x: Value,
    y: Value,
    block: Block,
) -> Option<bool> {
    width(func.ty(x))?;
    let is_equality = matches!(op, Intrinsic::EqInt | Intrinsic::NeInt);
    if is_equality && (keeps_bits(func, prover, x, y) || keeps_bits(func, prover, y, x)) {
        return Some(op == Intrinsic::EqInt);
    }
    let mut below = |a, b, k| prover.at_most(func, a, b, k, block);
    match op {
        Intrinsic::SltInt | Intrinsic::SleInt => {
            let strict = i128::from(op == Intrinsic::SltInt);
            if below(x, y, -strict) {
                return Some(true);
            }
            below(y, x, strict - 1).then_some(false)
        }
        Intrinsic::EqInt | Intrinsic::NeInt => {
            let differ = below(x, y, -1) || below(y, x, -1);
            let equal = !differ && below(x, y, 0) && below(y, x, 0);
            (differ || equal).then_some(equal == (op == Intrinsic::EqInt))
        }
        Intrinsic::UltInt | Intrinsic::UleInt => {
            let strict = i128::from(op == Intrinsic::UltInt);
            // As unsigned integers, negative numbers are larger than nonnegative ones.
            if below(x, y, -strict) {
                return prover.at_least_number(func, x, 0, block).then_some(true);
            }
            let larger = below(y, x, strict - 1);
            (larger && prover.at_least_number(func, y, 0, block)).then_some(false)
        }
        _ => None,
    }
}

/// The operands of a φ that are conditions whose outcome is known where they are handed over, by position.
fn known_operands(
    func: &Func,
    prover: &mut Prover<'_>,
    phi: Inst,
    rpo: &Rpo,
) -> SmallVec<[(usize, bool); 2]> {
    let is_flag = func.result(phi).is_some_and(|value| matches!(func.ty(value), Type::I8 | Type::BOOL));
    let operands = func.args(phi).iter().zip(func.inst_blocks(phi)).enumerate().filter(|_| is_flag);
    let known = operands.filter_map(|(n, (&value, &from))| {
        let made = func.def_inst(value).filter(|_| rpo.is_reachable(from) && is_compare(func, value))?;
        let (Op::Intrinsic(op), &[x, y]) = (func.op(made), func.args(made)) else { return None };
        let truth = prover.known(value, from).or_else(|| compare(func, prover, op, x, y, from))?;
        Some((n, truth))
    });
    known.collect()
}

/// Whether `y` is `x`, cut to fewer bits and widened again, and `x` fits into these.
fn keeps_bits(func: &Func, prover: &Prover<'_>, x: Value, y: Value) -> bool {
    let made = |value: Value| func.def_inst(value).map(|def| (func.op(def), func.args(def)));
    let Some((Op::Intrinsic(widening), &[cut])) = made(y) else { return false };
    let Some((Op::Intrinsic(Intrinsic::TruncInt), &[of])) = made(cut) else { return false };
    let (Some(bits), Some(range)) = (width(func.ty(cut)), prover.range(func, x)) else { return false };
    let fitting = match widening {
        Intrinsic::SextInt => Range::all(bits),
        Intrinsic::ZextInt if bits < 64 => Range { lo: 0, hi: (1 << bits) - 1 },
        _ => return false,
    };
    of == x && fitting.lo <= range.lo && range.hi <= fitting.hi
}

/// Whether the flag of a checked operation is always false.
fn never_wraps(
    func: &Func,
    prover: &mut Prover<'_>,
    op: Intrinsic,
    x: Value,
    y: Value,
    block: Block,
) -> bool {
    let Some(bits) = width(func.ty(x)) else { return false };
    let all = Range::all(bits);
    let (Some(a), Some(b)) = (prover.range(func, x), prover.range(func, y)) else { return false };
    let wide = i128::from;
    match op {
        Intrinsic::CheckedSaddInt => match constant(func, y) {
            Some(c) if c >= 0 => prover.at_most_number(func, x, wide(all.hi) - wide(c), block),
            Some(c) => prover.at_least_number(func, x, wide(all.lo) - wide(c), block),
            None => fitting(all, [wide(a.lo) + wide(b.lo), wide(a.hi) + wide(b.hi)]).is_some(),
        },
        Intrinsic::CheckedSsubInt => match constant(func, y) {
            Some(c) if c >= 0 => prover.at_least_number(func, x, wide(all.lo) + wide(c), block),
            Some(c) => prover.at_most_number(func, x, wide(all.hi) + wide(c), block),
            None => {
                let by_ranges = fitting(all, [wide(a.lo) - wide(b.hi), wide(a.hi) - wide(b.lo)]).is_some();
                // The difference of two natural numbers fits.
                by_ranges
                    || (prover.at_least_number(func, x, 0, block)
                        && prover.at_least_number(func, y, 0, block))
            }
        },
        Intrinsic::CheckedSmulInt => {
            let of = |p: i64, q: i64| wide(p) * wide(q);
            fitting(all, [of(a.lo, b.lo), of(a.lo, b.hi), of(a.hi, b.lo), of(a.hi, b.hi)]).is_some()
        }
        // The sum of two natural numbers is below 2 to the width.
        Intrinsic::CheckedUaddInt => {
            prover.at_least_number(func, x, 0, block) && prover.at_least_number(func, y, 0, block)
        }
        Intrinsic::CheckedUsubInt => {
            prover.at_most(func, y, x, 0, block) && prover.at_least_number(func, y, 0, block)
        }
        _ => false,
    }
}

fn divide(
    func: &Func,
    prover: &mut Prover<'_>,
    op: Intrinsic,
    x: Value,
    y: Value,
    block: Block,
) -> Option<Found> {
    width(func.ty(x))?;
    let by = constant(func, y).filter(|&c| c > 1 && c.count_ones() == 1)?;
    let natural = match op {
        Intrinsic::SdivInt | Intrinsic::CheckedSdivInt => {
            Found::Natural(Intrinsic::LshrInt, u128::from(by.trailing_zeros()))
        }
        Intrinsic::SremInt | Intrinsic::CheckedSremInt => Found::Natural(Intrinsic::AndInt, (by - 1) as u128),
        _ => return None,
    };
    prover.at_least_number(func, x, 0, block).then_some(natural)
}

fn shift(func: &Func, prover: &mut Prover<'_>, x: Value, count: Value, block: Block) -> Option<Found> {
    let most = width(func.ty(x))? - 1;
    if constant(func, count).is_some() || is_masked(func, count, most) {
        return None;
    }
    width(func.ty(count))?;
    let near = prover.at_most_number(func, count, i128::from(most), block)
        && prover.at_least_number(func, count, 0, block);
    near.then_some(Found::Near(u128::from(most)))
}

/// Whether a value is a conjunction with a constant of at most `most`.
fn is_masked(func: &Func, value: Value, most: u32) -> bool {
    func.def_inst(value).is_some_and(|def| {
        let is_low = |&part: &Value| constant(func, part).is_some_and(|c| (0..=i64::from(most)).contains(&c));
        func.op(def) == Op::Intrinsic(Intrinsic::AndInt) && func.args(def).iter().any(is_low)
    })
}

fn apply(func: &mut Func, cx: &PassCx<'_>, values: &mut Replacements, inst: Inst, found: Found) {
    let types = cx.types();
    match found {
        Found::Decided(truth) => {
            let truth = func.bits(types, Type::I8, u128::from(truth));
            if let Some(result) = func.result(inst) {
                values.set(result, truth);
            }
            func.remove_inst(inst);
        }
        Found::Chosen(value) => {
            // Later rewrites see through the copy at once.
            func.set_op(inst, Op::Copy, &[value]);
            if let Some(result) = func.result(inst) {
                values.set(result, value);
            }
        }
        Found::Known(truth) => {
            func.args_mut(inst)[0] = func.bits(types, Type::I8, u128::from(truth));
        }
        Found::Exact(op) => {
            let &[x, y] = func.args(inst) else { return };
            let mut results = func.results(inst);
            let (Some(value), Some(flag)) = (results.next(), results.next()) else { return };
            let exact = func.make_inst(Op::Intrinsic(op), &[x, y], &[], &[func.ty(value)]);
            func.set_place(exact, func.place(inst));
            func.insert_before(exact, inst);
            let never = func.bits(types, func.ty(flag), 0);
            values.set(flag, never);
            if let Some(exact) = func.result(exact) {
                values.set(value, exact);
            }
            func.remove_inst(inst);
        }
        Found::Natural(op, operand) => {
            let x = func.args(inst)[0];
            let operand = func.bits(types, func.ty(x), operand);
            func.set_op(inst, Op::Intrinsic(op), &[x, operand]);
        }
        Found::Near(most) => {
            let count = func.args(inst)[1];
            let ty = func.ty(count);
            let most = func.bits(types, ty, most);
            let masked = func.make_inst(Op::Intrinsic(Intrinsic::AndInt), &[count, most], &[], &[ty]);
            func.set_place(masked, func.place(inst));
            func.insert_before(masked, inst);
            if let Some(masked) = func.result(masked) {
                func.args_mut(inst)[1] = masked;
            }
        }
    }
}
