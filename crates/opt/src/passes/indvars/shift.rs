//! Merges two counters into one, and moves tests of a counter before its step to after it.
//!
//! ```text
//! h: %i = φ (p => 2, h => %n)               h: %k = φ (p => 1, h => %m)
//!    …  uses of %i                             %m = add_int(%k, 1)
//!    %n = add_int(%i, 1)             ==>       …  uses of %m
//!    goto h if sle_int(%i, len)                goto h if sle_int(%m, len)
//! ```
//!
//! The new counter lags the old one by one step, so its next value is the old counter's value. All sums are modulo 2⁶⁴: the
//! tested numbers are the same, and nothing is assumed of ranges. If the test compares the counter plus a constant, the new
//! counter is ahead by the same constant.
//!
//! Counters of one step that start with constants differ by a constant in every iteration: one of them stays, the tested one if there is one, and
//! the others become sums. So does a φ that gets the value of a counter, or a sum of it, for the next iteration.
//!
//! An unsigned "less" becomes a signed one if the counter starts at a constant that is not negative, goes up by one, and is compared with a
//! length: the tested numbers are then from 0 to the length, which both orders agree on.

use super::{retest, signed_bound};
use crate::alias::linear;
use crate::counted::{
    Recurrence, Relation, Shape, Signed, Test, Tested, recurrences, related, signed, way_out,
};
use crate::heads::head_phis;
use crate::replace::Replacements;
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::Loops;
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, Inst, Op, Type, Types, Value};

/// A counter that is another one plus a constant.
pub(super) struct Equal {
    stays: Value,
    goes: Value,
    distance: i128,
}

/// The redundant counters of a loop.
pub(super) fn equal_steps(
    func: &Func,
    loops: &Loops,
    shape: &Shape,
    undefined: &MaybeUndefined,
) -> Vec<Equal> {
    let known = |r: &Recurrence| {
        let constant = Some((signed(func, r.start)?, r.const_step(func)?));
        constant.filter(|_| func.ty(r.value) == Type::I64 && !undefined.has(func, r.value))
    };
    let mut all: Vec<(Recurrence, (i128, i128))> =
        recurrences(func, loops, shape).filter_map(|r| Some((r, known(&r)?))).collect();
    let tested = Test::at(func, loops, shape, shape.latch).map(|test| test.counter.value);
    // Stable: the tested one first, the others in their order.
    all.sort_by_key(|(r, _)| Some(r.value) != tested);
    let mut found = Vec::new();
    for (n, &(other, (start, step))) in all.iter().enumerate() {
        let first = all[..n].iter().find(|(_, (_, by))| *by == step);
        if let Some((stays, (from, _))) = first {
            found.push(Equal { stays: stays.value, goes: other.value, distance: start - from });
        }
    }
    // `enumerate` counts from 1 and hands on a state that counts from 2: the next number is the state.
    for phi in head_phis(func, shape.header) {
        let stays = follows(func, shape, phi, &all);
        if let Some(equal) = stays.filter(|one| found.iter().all(|gone| gone.goes != one.stays)) {
            found.push(equal);
        }
    }
    found
}

/// Whether a φ that is not a counter gets a counter plus a constant from the latch, and differs from that counter by the same constant from the beginning.
fn follows(func: &Func, shape: &Shape, phi: Inst, counters: &[(Recurrence, (i128, i128))]) -> Option<Equal> {
    let goes = func.result(phi).filter(|&value| func.ty(value) == Type::I64)?;
    let (start, next) = shape.edges(func, phi)?;
    let (Some((of, 1)), added) = linear(func, next) else { return None };
    let &(_, (from, step)) =
        counters.iter().find(|(counter, _)| counter.value == of && counter.value != goes)?;
    let distance = i128::from(added.cast_signed()) - step;
    (signed(func, start)? == from + distance).then_some(Equal { stays: of, goes, distance })
}

/// Makes a counter a sum of another.
pub(super) fn merge(func: &mut Func, types: &Types, context: &Context, shape: &Shape, equal: &Equal) {
    let Some(phi) = func.def_inst(equal.goes) else { return };
    let mut at = Cursor::new(func);
    at.at_first_insertion_point(shape.header);
    let value = match equal.distance {
        0 => equal.stays,
        distance => {
            let distance = at.int(types, Type::I64, distance);
            at.ins_value(Op::Intrinsic(Intrinsic::AddInt), &[equal.stays, distance], Type::I64)
        }
    };
    func.remove_inst(phi);
    let mut values = Replacements::default();
    values.set(equal.goes, value);
    values.apply(func, context);
}

/// A test of a counter plus a constant, before the counter's step.
pub(super) struct Shift {
    branch: Inst,
    counter: Recurrence,
    step: i128,
    added: i128,
    bound: Value,
    /// Whether the bound is the first operand of the comparison.
    swapped: bool,
    /// The signed comparison that may take the place of an unsigned one.
    signed: bool,
}

/// The test at the end of a loop's latch, if it is one before the step.
pub(super) fn find(func: &Func, loops: &Loops, shape: &Shape, undefined: &MaybeUndefined) -> Option<Shift> {
    if let Some(test) = Test::at(func, loops, shape, shape.latch)
        && (test.tested == Tested::Next || test.relation == Relation::Differs)
    {
        return None;
    }
    let (branch, _, taken) = way_out(func, loops, shape.l, shape.latch)?;
    let (a, relation, b) = related(func, branch, taken)?;
    for (tested, relation, bound, swapped) in [(a, relation, b, false), (b, relation.swapped(), a, true)] {
        let fixed = crate::counted::is_invariant(func, loops, shape.l, bound) && !undefined.has(func, bound);
        if !fixed || func.ty(tested) != Type::I64 || relation == Relation::Differs {
            continue;
        }
        let (Some((value, 1)), added) = linear(func, tested) else { continue };
        let Some(counter) = recurrences(func, loops, shape).find(|r| r.value == value) else { continue };
        let Some(step) = counter.const_step(func).filter(|&step| step != 0) else { continue };
        if undefined.has(func, counter.value) {
            continue;
        }
        let added = i128::from(added.cast_signed());
        let first = signed(func, counter.start).map(|start| start + added);
        let natural = first.is_some_and(|first| (1..i128::from(i64::MAX)).contains(&first)) && step == 1;
        let signed = natural && relation == Relation::Less(Signed::No) && signed_bound(func, bound);
        return Some(Shift { branch, counter, step, added, bound, swapped, signed });
    }
    None
}

/// Makes the new counter and the new test.
pub(super) fn apply(func: &mut Func, types: &Types, context: &Context, shape: &Shape, shift: &Shift) {
    let Shift { counter, step, added, bound, .. } = *shift;
    let behind = added - step;
    let add = Op::Intrinsic(Intrinsic::AddInt);
    let start = match signed(func, counter.start) {
        Some(start) => func.bits(types, Type::I64, (start + behind) as u64 as u128),
        None => {
            let mut at = Cursor::new(func);
            at.before_terminator(shape.preheader);
            let behind = at.int(types, Type::I64, behind);
            at.ins_value(add, &[counter.start, behind], Type::I64)
        }
    };
    let phi = func.make_inst(Op::Phi, &[start], &[shape.preheader], &[Type::I64]);
    let Some((before, old)) = func.result(phi).zip(func.def_inst(counter.value)) else { return };
    func.set_place(phi, func.place(old));
    func.prepend_inst(phi, shape.header);
    let mut at = Cursor::new(func);
    at.at_first_insertion_point(shape.header);
    let by = at.int(types, Type::I64, step);
    let next = at.ins_value(add, &[before, by], Type::I64);
    let value = if added == 0 {
        next
    } else {
        let back = at.int(types, Type::I64, -added);
        at.ins_value(add, &[next, back], Type::I64)
    };
    func.add_phi_edge(phi, shape.latch, next);
    retest(func, shift.branch, next, bound, shift.swapped, shift.signed);
    func.remove_inst(old);
    let mut values = Replacements::default();
    values.set(counter.value, value);
    values.apply(func, context);
}
