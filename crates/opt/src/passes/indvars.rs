//! Simplifies induction variables: one test on the next value, and values after the loop that do not need the counter.
//!
//! ```text
//! h: %i = φ (p => 1, l => %n)               p: %b = add_int(k, 1)
//!    …                                      h: %i = φ (p => 1, h => %n)
//!    %c = eq_int(%i, k)             ==>        …
//!    goto x if %c, else l                      %n = add_int(%i, 1)
//! l: %n = add_int(%i, 1)                       %d = ne_int(%n, %b)
//!    goto h                                    goto h if %d, else x
//! x: … uses of %i …                         x: … uses of k …
//! ```
//!
//! | step | condition |
//! |---|---|
//! | a latch that only computes joins the block with the test before it | its instructions may be executed without need |
//! | a test of the counter for equality, made before the step, tests the value after it | the step is made before the test |
//! | counters that differ by a constant in every iteration are one counter and sums | `indvars/shift.rs` |
//! | a test for order, made before the step, gets a counter that lags by one step; a test of unsigned numbers that are all from 0 to a length becomes signed | `indvars/shift.rs` |
//! | a test for equality of a counter that goes down tests another one, its opposite, which goes up | passes that split loops count upwards |
//! | a use after the loop gets the counter's last value from values before it | the test is the only exit |
//! | so does one of a sum over the counter, which then has a closed form | `indvars/sums.rs` |
//!
//! With the first two, the counter needs one register instead of two, and the loop one jump. The last value is known if the
//! number of iterations is; if the loop is left when the counter is equal to a bound; or if it counts by one up or down to a bound
//! that the start is known not to be beyond, because it then meets the bound exactly. With a bound at the end of the range of the type
//! the last two may never end, and then nothing after them is executed either.
//!
//! Cost: the φ of heads, the blocks of loops of at most [`MAX_BLOCKS`] blocks. Breaks the graph. Not done: widening of
//! counters; replacing a counter that only serves the test.

mod shift;
mod sums;

use crate::counted::{Counted, Relation, Shape, Signed, Test, Tested, recurrences, signed};
use crate::facts::Fact;
use crate::loop_copy::{ins, rename_pred, retarget};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Cfg, Loops, Use, Uses};
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};

pub(crate) const PASS: Pass = Pass::new("indvars", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// The exits of larger loops are not counted: in nested loops each block would be visited once per level.
const MAX_BLOCKS: usize = 64;
/// A longer latch is not executed needlessly when the loop is left.
const MAX_JOINED: usize = 8;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let undefined = MaybeUndefined::of(func, cfg, cx.facts.rpo());
    let (mut shapes, mut recounted) = (Vec::new(), false);
    for l in loops.iter() {
        let Some(mut shape) = Shape::of(cfg, loops, l) else { continue };
        if let Some(before) = joined_to(func, cx.types(), cfg, loops, &undefined, &shape) {
            if !cx.spend("joined latches") {
                break;
            }
            join(func, before, &mut shape);
        }
        for other in shift::equal_steps(func, loops, &shape, &undefined) {
            if !cx.spend("merged counters") {
                return cx.changed();
            }
            shift::merge(func, cx.types(), cx.context(), &shape, &other);
            recounted = true;
        }
        if let Some(found) = shift::find(func, loops, &shape, &undefined) {
            if !cx.spend("shifted counters") {
                return cx.changed();
            }
            shift::apply(func, cx.types(), cx.context(), &shape, &found);
            recounted = true;
        }
        shapes.push(shape);
    }
    let own = recounted.then(|| Uses::compute(func));
    let uses = own.as_ref().unwrap_or(uses);
    for shape in shapes {
        let l = shape.l;
        let Some(test) = Test::at(func, loops, &shape, shape.latch) else { continue };
        let counted = Counted { shape, test };
        if is_signed_anyway(func, cfg, loops, &counted) {
            if !cx.spend("signed tests") {
                break;
            }
            let swapped =
                func.def_inst(func.args(test.branch)[0]).is_some_and(|c| func.args(c)[0] == test.bound);
            retest(func, test.branch, test.counter.next, test.bound, swapped, true);
        }
        if tests_before_step(func, &counted) && !undefined.has(func, test.bound) {
            if !cx.spend("tests") {
                break;
            }
            test_after_step(func, cx.types(), &counted);
        }
        if loops.blocks(l).len() <= MAX_BLOCKS && loops.exits(cfg, l).count() == 1 {
            let (guarded, step) =
                (counted.is_guarded(func, cfg, loops), counted.test.counter.const_step(func));
            let last = LastValues { counted, guarded, step, loops, uses };
            if !last.replace(func, cx, &undefined) {
                break;
            }
            let sums = sums::Sums { counted, guarded, loops, uses, undefined: &undefined };
            if !sums.replace(func, cx) {
                break;
            }
        }
        if let Some(counted) = goes_down_to(func, loops, &shape, &undefined) {
            if !cx.spend("turned counters") {
                break;
            }
            turn(func, cx.types(), &counted);
        }
    }
    cx.changed()
}

/// The block with the test that the latch can join.
fn joined_to(
    func: &Func,
    types: &Types,
    cfg: &Cfg,
    loops: &Loops,
    undefined: &MaybeUndefined,
    shape: &Shape,
) -> Option<Block> {
    let Shape { l, latch, header, .. } = *shape;
    let before = cfg.single_pred(latch).filter(|&b| loops.loop_of(b) == Some(l) && latch != header)?;
    let ends_in_test = |b: Block| func.terminator(b).is_some_and(|t| func.op(t) == Op::Branch);
    let targets = func.successors(before);
    let leaves = targets.iter().any(|&t| !loops.contains(l, t)) && targets.contains(&latch);
    let jumps = func.terminator(latch).is_some_and(|t| func.op(t) == Op::Goto);
    let computes = |inst| {
        let may_be_in_vain = effects(func, types, inst).may_be_hoisted()
            && func.op(inst) != Op::Phi
            && !func.args(inst).iter().any(|&v| undefined.has(func, v));
        may_be_in_vain || func.op(inst) == Op::Goto
    };
    let short = func.block_insts(latch).take(MAX_JOINED + 1).count() <= MAX_JOINED;
    (ends_in_test(before) && leaves && jumps && short && func.block_insts(latch).all(computes))
        .then_some(before)
}

fn join(func: &mut Func, before: Block, shape: &mut Shape) {
    let Some(end) = func.terminator(before) else { return };
    while let Some(inst) = func.first_inst(shape.latch).filter(|&i| func.op(i) != Op::Goto) {
        func.remove_inst(inst);
        func.insert_before(inst, end);
    }
    retarget(func, end, shape.latch, shape.header);
    rename_pred(func, shape.header, shape.latch, before);
    func.remove_block(shape.latch);
    shape.latch = before;
}

/// Whether the test is for equality and reads the counter before the step. The step goes into the φ from the latch, so it is
/// made before the latch's terminator.
fn tests_before_step(func: &Func, counted: &Counted) -> bool {
    let Test { counter, tested, relation, .. } = counted.test;
    tested == Tested::This && relation == Relation::Differs && func.ty(counter.value) != Type::PTR
}

fn test_after_step(func: &mut Func, types: &Types, counted: &Counted) {
    let Counted { shape, test } = *counted;
    let ty = func.ty(test.counter.value);
    let constants = signed(func, test.bound).zip(test.counter.const_step(func));
    let bound = match constants {
        // The number of iterations determines it.
        Some((bound, step)) => func.bits(types, ty, bound.wrapping_add(step) as u128),
        None => ins(func, shape.preheader, Intrinsic::AddInt, &[test.bound, test.counter.step], ty),
    };
    let differ = Op::Intrinsic(Intrinsic::NeInt);
    let goes_on =
        Cursor::new(func).before(test.branch).ins_value(differ, &[test.counter.next, bound], Type::I8);
    if func.inst_blocks(test.branch).first() == Some(&test.exit) {
        func.swap_branch(test.branch);
    }
    func.set_op(test.branch, Op::Branch, &[goes_on]);
    func.set_inst_blocks(test.branch, &[shape.header, test.exit]);
}

/// A loop whose counter goes down by a constant until it equals a bound, which is tested after the step.
fn goes_down_to(func: &Func, loops: &Loops, shape: &Shape, undefined: &MaybeUndefined) -> Option<Counted> {
    let test = Test::at(func, loops, shape, shape.latch)?;
    let down = test.counter.const_step(func).is_some_and(|step| step < 0 && step > i128::from(i64::MIN));
    let fits = test.tested == Tested::Next
        && test.relation == Relation::Differs
        && func.ty(test.counter.value) == Type::I64
        && ![test.bound, test.counter.start].iter().any(|&v| undefined.has(func, v));
    (down && fits).then_some(Counted { shape: *shape, test })
}

/// Tests the opposite of a counter: two numbers are equal if their opposites are.
fn turn(func: &mut Func, types: &Types, counted: &Counted) {
    let Counted { shape, test } = *counted;
    let ty = func.ty(test.counter.value);
    let Some(step) = test.counter.const_step(func) else { return };
    let [start, bound] = [test.counter.start, test.bound].map(|value| match signed(func, value) {
        Some(known) => func.bits(types, ty, known.wrapping_neg() as u128),
        None => ins(func, shape.preheader, Intrinsic::NegInt, &[value], ty),
    });
    let phi = func.make_inst(Op::Phi, &[start], &[shape.preheader], &[ty]);
    func.prepend_inst(phi, shape.header);
    func.set_place(phi, func.place(test.branch));
    let Some(opposite) = func.result(phi) else { return };
    let up = func.bits(types, ty, step.wrapping_neg() as u128);
    let mut at = Cursor::new(func);
    at.before(test.branch);
    let next = at.ins_value(Op::Intrinsic(Intrinsic::AddInt), &[opposite, up], ty);
    let goes_on = at.ins_value(Op::Intrinsic(Intrinsic::NeInt), &[next, bound], Type::I8);
    func.add_phi_edge(phi, shape.latch, next);
    if func.inst_blocks(test.branch).first() == Some(&test.exit) {
        func.swap_branch(test.branch);
    }
    func.set_op(test.branch, Op::Branch, &[goes_on]);
    func.set_inst_blocks(test.branch, &[shape.header, test.exit]);
}

/// Whether an unsigned "less" tests numbers from 0 to a length only, or to what was tested not to be negative, so that the
/// signed one is equivalent.
fn is_signed_anyway(func: &Func, cfg: &Cfg, loops: &Loops, counted: &Counted) -> bool {
    let Test { counter, tested, relation, bound, .. } = counted.test;
    let starts_natural =
        signed(func, counter.start).is_some_and(|start| (0..i128::from(i64::MAX)).contains(&start));
    relation == Relation::Less(Signed::No)
        && tested == Tested::Next
        && counter.const_step(func) == Some(1)
        && func.ty(counter.value) == Type::I64
        && starts_natural
        && (signed_bound(func, bound) || counted.is_natural_before(func, cfg, loops, bound))
}

/// Whether a 64-bit bound is a length, or a constant that is not negative.
fn signed_bound(func: &Func, bound: Value) -> bool {
    let is_length = |inst| matches!(func.op(inst), Op::Load(a) if matches!(a.region, Region::Length | Region::Size | Region::Header));
    signed(func, bound).map_or_else(|| func.def_inst(bound).is_some_and(is_length), |n| n >= 0)
}

/// Makes a branch test another value, as signed integers if `as_signed`.
fn retest(func: &mut Func, branch: Inst, tested: Value, bound: Value, swapped: bool, as_signed: bool) {
    let Some(compare) = func.args(branch).first().and_then(|&cond| func.def_inst(cond)) else { return };
    let op = match func.op(compare) {
        Op::Intrinsic(Intrinsic::UltInt) if as_signed => Op::Intrinsic(Intrinsic::SltInt),
        Op::Intrinsic(Intrinsic::UleInt) if as_signed => Op::Intrinsic(Intrinsic::SleInt),
        op => op,
    };
    let args = if swapped { [bound, tested] } else { [tested, bound] };
    let cond = Cursor::new(func).before(branch).ins_value(op, &args, Type::I8);
    func.args_mut(branch)[0] = cond;
}

/// The recurrences of a loop at its only exit.
struct LastValues<'a> {
    counted: Counted,
    guarded: bool,
    /// The step of the tested counter, if it is constant.
    step: Option<i128>,
    loops: &'a Loops,
    uses: &'a Uses,
}

impl LastValues<'_> {
    /// Replaces the values that are used after the loop. False if there was no fuel left.
    fn replace(&self, func: &mut Func, cx: &mut PassCx<'_>, undefined: &MaybeUndefined) -> bool {
        let Counted { shape, test } = self.counted;
        let iterations = self.counted.iterations(func);
        let all: Vec<_> = recurrences(func, self.loops, &shape).collect();
        for recurrence in all {
            if undefined.has(func, recurrence.start) || undefined.has(func, test.bound) {
                continue;
            }
            for (value, steps_back) in [(recurrence.next, 0), (recurrence.value, 1)] {
                let outside = self.used_outside(func, value);
                if outside.is_empty() {
                    continue;
                }
                let step = recurrence.const_step(func);
                let (from, steps) = match (iterations, step, self.met()) {
                    (Some(iterations), Some(_), _) => (recurrence.start, i128::from(iterations) - steps_back),
                    (None, Some(_), Some(beyond)) if recurrence.value == test.counter.value => {
                        (test.bound, beyond - steps_back)
                    }
                    _ => continue,
                };
                let Some(distance) = step.and_then(|step| step.checked_mul(steps)) else { continue };
                if !cx.spend("last values") {
                    return false;
                }
                let last = self.offset(func, cx.types(), from, distance);
                for one in outside {
                    func.args_mut(one.inst)[one.index as usize] = last;
                }
            }
        }
        true
    }

    fn used_outside(&self, func: &Func, value: Value) -> Vec<Use> {
        let outside = |b: Block| !self.loops.contains(self.counted.shape.l, b);
        let is_used = |one: &&Use| {
            func.inst_block(one.inst).is_some_and(outside)
                && func.args(one.inst).get(one.index as usize) == Some(&value)
        };
        self.uses.of(value).iter().filter(is_used).copied().collect()
    }

    /// How many steps beyond the bound the next value is when the loop is left, if that is the same whenever it is left.
    fn met(&self) -> Option<i128> {
        let Test { tested, relation, .. } = self.counted.test;
        let behind = i128::from(tested == Tested::This);
        let unit = self.step.filter(|_| self.guarded);
        match (relation, unit) {
            (Relation::Differs, _) => Some(behind),
            (Relation::Less(_), Some(1)) | (Relation::Greater(_), Some(-1)) => Some(behind),
            (Relation::AtMost(_), Some(1)) | (Relation::AtLeast(_), Some(-1)) => Some(behind + 1),
            _ => None,
        }
    }

    fn offset(&self, func: &mut Func, types: &Types, from: Value, distance: i128) -> Value {
        if distance == 0 {
            return from;
        }
        let ty = func.ty(from);
        let (op, by) = if ty == Type::PTR { (Intrinsic::AddPtr, Type::I64) } else { (Intrinsic::AddInt, ty) };
        if let (Some(bits), true) = (func.as_bits(from), ty != Type::PTR) {
            return func.bits(types, ty, (bits as i128).wrapping_add(distance) as u128);
        }
        let distance = func.bits(types, by, distance as u128);
        Cursor::new(func).before_terminator(self.counted.shape.preheader).ins_value(
            Op::Intrinsic(op),
            &[from, distance],
            ty,
        )
    }
}
