//! Removes range checks from counted loops (inductive range check elimination).
//!
//! ```text
//! p: …                                    p: %m = min(n, len - a)     the iterations that every check lets pass
//! h: %i = φ (p => s, l => %n)             h': as h … l', without the checks, while %n < %m
//!    %x = add_int(%i, a)           ==>       then, if any iteration is left:
//!    goto t if not ult_int(%x, len)       h:  as before, with the checks
//!    …
//! l: goto h if slt_int(%n, n) …           t: the check fails
//! ```
//!
//! A check is a branch out of the loop by a comparison of the counter plus a constant with an invariant value.
//! Nothing is hoisted: a check that would fail fails in the same iteration as before, after the same effects, because the iterations from
//! the first one that might fail belong to the rest. The header of `loop_copy` explains why the order is kept.
//!
//! | check passes while | holds in the main loop because |
//! |---|---|
//! | `i + a <u len` | `-a <= s <= i`, and `i < len - a`; if `len` is so large that it is negative when read as signed, or `len - a` wraps, then either no iteration is less or the check holds anyway |
//! | `i + a <s len` | `i < len - a`, which is known not to have wrapped, nor has `s + a` |
//! | `i + t + a <u len`, `t` a sum of other values | `0 <= s + t + a < len` and `0 <= len` as signed, so the sum grows as `i` does and does not wrap before it reaches `len` |
//! | `k <=s i + a` | `k - a <= s <= i`, constants |
//!
//! Checks with one `len` and one `t` are tested together: the first iteration by the least and the greatest `a`, all others by the greatest.
//!
//! The value `s` is constant or is tested before the main loop. With `len` the bound itself and a known
//! start, checks hold in every iteration: then no copy is made and they are removed in place.
//!
//! A step that is not known is tested to be greater than zero before the main loop, whose limit is at most 2⁶³ less the step, so that no counter wraps.
//! A bound from which the counter has to differ (`for i in a:step:b`) ends the main loop before it is reached or where it would be jumped over.
//!
//! Cost: the branches of innermost loops; at most [`MAX_COPIED`] instructions are copied for a loop, [`COPIED_FOR_CHECK`] more for each check, at most
//! [`MAX_GROWTH`] in a function. Breaks the graph. Not done: counters that go down or are narrower than 64 bits; checks of `i·c + a`; invariant
//! checks (`unswitch`).

use crate::alias::linear;
use crate::counted::{Counted, Recurrence, Relation, Signed, Tested, is_invariant, related, signed, way_out};
use crate::facts::Fact;
use crate::loop_copy::{
    Enter, Escapes, drop_pred, end_in_range, ins, is_copyable, make_jump, smaller, split_at, splittable_step,
    unknown_step,
};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ranges::is_bounded_length;
use crate::ssa_repair::Repair;
use crate::undefined::{MaybeUndefined, WhenAsked};
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Op, Type, Types, Value};
use smallvec::SmallVec;

pub(crate) const PASS: Pass = Pass::new("irce", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// A longer loop spends little of its time in a check.
const MAX_COPIED: usize = 80;
/// The additional instructions allowed for each check but the first.
const COPIED_FOR_CHECK: usize = 12;
/// How many instructions all copies together may have.
const MAX_GROWTH: usize = 2000;
/// The most checks examined in a loop.
const MAX_CHECKS: usize = 32;
/// Checks that differ in more than a constant: each costs a minimum before the loop, and a loop that runs few iterations pays for it each time.
const MAX_KINDS: usize = 8;
/// The most additions and subtractions examined in an index.
const MAX_ADDED: usize = 8;
/// The most invariant values in an index beside the counter.
const MAX_TERMS: usize = 4;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let undefined = WhenAsked::new(cfg, cx.facts.rpo());
    let mut repair = Repair::default();
    let mut growth = 0;
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        if func.is_cold(loops.header(l)) {
            continue;
        }
        let Some(counted) = Counted::of(func, cfg, loops, l) else { continue };
        let known = [counted.test.bound, counted.test.counter.start, counted.test.counter.step];
        let undefined = undefined.get(func);
        if known.iter().any(|&v| undefined.has(func, v)) {
            continue;
        }
        let checks = checks(func, loops, &counted, undefined);
        let (always, others): (Vec<Check>, Vec<Check>) =
            checks.into_iter().partition(|check| check.always_holds(func, cfg, loops, &counted));
        for check in always {
            if !cx.spend("checks that always hold") {
                break;
            }
            check.remove(func, check.block, check.stays, check.fails);
        }
        let size = is_copyable(func, cx.types(), loops, l).unwrap_or(usize::MAX);
        if others.is_empty()
            || (splittable_step(func, &counted).is_none() && unknown_step(func, &counted).is_none())
            || size > MAX_COPIED + COPIED_FOR_CHECK * (others.len() - 1)
            || growth + size > MAX_GROWTH
        {
            continue;
        }
        if !cx.spend("split loops") {
            break;
        }
        growth += size;
        cx.count("checks in the rest only", others.len() as u64);
        let escapes = Escapes::of(func, loops, uses, l);
        let Limits { limit, enter } = limits(func, cx.types(), &counted, &others);
        let split = split_at(func, loops, &counted, limit, enter, 1);
        for check in &others {
            let main = &split.iterations[0];
            check.remove(func, main.block(check.block), main.block(check.stays), check.fails);
        }
        escapes.repair(&split.iterations, &mut repair);
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}

/// A branch out of the loop that compares the counter.
struct Check {
    block: Block,
    /// Where the loop continues.
    stays: Block,
    fails: Block,
    kind: Kind,
    /// The step of the counter.
    added: i128,
    /// Values that are added as well, or subtracted, if the check is `Below` and unsigned.
    terms: Terms,
}

/// Values in the order of their numbers, and whether each is subtracted.
type Terms = SmallVec<[(Value, bool); MAX_TERMS]>;

/// The condition under which a check passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The value is less than another.
    Below(Value, Signed),
    /// The value is not greater than another, as signed integers.
    UpTo(Value),
    /// The value is at least a constant, as signed integers.
    From(i128),
}

fn checks(func: &Func, loops: &Loops, counted: &Counted, undefined: &MaybeUndefined) -> Vec<Check> {
    let l = counted.shape.l;
    let others = loops.blocks(l).iter().filter(|&&b| b != counted.shape.latch);
    let found = others.filter_map(|&block| check_at(func, loops, l, &counted.test.counter, block, undefined));
    let mut kinds: Vec<(Kind, Terms)> = Vec::new();
    let mut checks: Vec<Check> = found.take(MAX_CHECKS).collect();
    checks.retain(|check| {
        let of = |known: &(Kind, Terms)| known.0 == check.kind && known.1 == check.terms;
        let is_known = kinds.iter().any(of);
        if !is_known && kinds.len() < MAX_KINDS {
            kinds.push((check.kind, check.terms.clone()));
            return true;
        }
        is_known
    });
    checks
}

fn check_at(
    func: &Func,
    loops: &Loops,
    l: Loop,
    counter: &Recurrence,
    block: Block,
    undefined: &MaybeUndefined,
) -> Option<Check> {
    let (branch, fails, taken) = way_out(func, loops, l, block)?;
    let stays = func.inst_blocks(branch)[taken];
    let (a, relation, b) = related(func, branch, taken)?;
    let (index, relation, other) =
        if is_invariant(func, loops, l, b) { (a, relation, b) } else { (b, relation.swapped(), a) };
    if !is_invariant(func, loops, l, other) || undefined.has(func, other) || func.ty(other) != Type::I64 {
        return None;
    }
    let fixed = |v: Value| is_invariant(func, loops, l, v) && !undefined.has(func, v);
    let (added, terms) = distance(func, counter.value, index, fixed)?;
    let kind = match relation {
        Relation::Less(signedness) => Kind::Below(other, signedness),
        Relation::AtMost(Signed::Yes) => Kind::UpTo(other),
        Relation::AtLeast(Signed::Yes) => Kind::From(signed(func, other)?),
        Relation::Greater(Signed::Yes) => Kind::From(signed(func, other)? + 1),
        _ => return None,
    };
    // A constant that no start can reach leaves nothing to gain.
    if !terms.is_empty() && !matches!(kind, Kind::Below(_, Signed::No)) {
        return None;
    }
    let in_reach = !matches!(kind, Kind::From(least) if least - added > i128::from(i64::MAX));
    in_reach.then_some(Check { block, stays, fails, kind, added, terms })
}

/// The constant that is added to `from` to make `to`, modulo 2⁶⁴, as a signed integer of few bits, and the invariant values
/// that are added or subtracted as well.
fn distance(func: &Func, from: Value, to: Value, fixed: impl Fn(Value) -> bool) -> Option<(i128, Terms)> {
    let mut sum: i128 = 0;
    let mut terms = Terms::new();
    let mut found = false;
    let mut parts: SmallVec<[(Value, bool); 8]> = SmallVec::from_slice(&[(to, false)]);
    let mut steps = 0;
    while let Some((part, minus)) = parts.pop() {
        if part == from {
            // The counter is added once.
            if found || minus {
                return None;
            }
            found = true;
        } else if let Some(n) = signed(func, part) {
            sum += if minus { -n } else { n };
        } else if fixed(part) {
            terms.push((part, minus));
        } else {
            steps += 1;
            let def = func.def_inst(part)?;
            match (func.op(def), func.args(def)) {
                (Op::Intrinsic(Intrinsic::AddInt), &[a, b]) => parts.extend([(a, minus), (b, minus)]),
                (Op::Intrinsic(Intrinsic::SubInt), &[a, b]) => parts.extend([(a, minus), (b, !minus)]),
                _ => return None,
            }
        }
        if steps > MAX_ADDED || terms.len() > MAX_TERMS {
            return None;
        }
    }
    terms.sort_unstable();
    (found && sum.abs() < 1 << 32).then_some((sum, terms))
}

impl Check {
    /// Whether the check holds in every iteration, for any length of the loop.
    fn always_holds(&self, func: &Func, cfg: &Cfg, loops: &Loops, counted: &Counted) -> bool {
        if !self.terms.is_empty() {
            return false;
        }
        let test = &counted.test;
        let starts_from =
            |least: i128| signed(func, test.counter.start).is_some_and(|s| s + self.added >= least);
        // Iterations have start <= i < bound: each followed one whose next value passed, the first is guarded, and a sequence by
        // one does not jump over the bound.
        let up = test.counter.const_step(func) == Some(1) && counted.is_guarded(func, cfg, loops);
        // The least distance of every iteration's counter below the bound. Every number is at most the largest integer, also
        // after the counter has wrapped.
        let below_bound = match test.relation {
            Relation::Less(Signed::Yes) => Some(1),
            Relation::AtMost(Signed::Yes) if is_bounded_length(func, test.bound) => Some(0),
            _ => None,
        };
        let Some(below) = below_bound.filter(|_| up && test.tested == Tested::Next) else { return false };
        match self.kind {
            Kind::Below(len, _) => len == test.bound && self.added < below && starts_from(0),
            Kind::UpTo(len) => len == test.bound && self.added <= below && starts_from(0),
            Kind::From(least) => self.added <= 0 && starts_from(least),
        }
    }

    /// Replaces a copy of the check, which ends a block, by a jump.
    fn remove(&self, func: &mut Func, block: Block, stays: Block, fails: Block) {
        if let Some(end) = func.terminator(block) {
            make_jump(func, end, stays);
            drop_pred(func, fails, block);
        }
    }
}

/// The limit of the main loop, and whether it is entered at all.
struct Limits {
    limit: Value,
    enter: Enter,
}

fn limits(func: &mut Func, types: &Types, counted: &Counted, checks: &[Check]) -> Limits {
    let pre = counted.shape.preheader;
    let start = counted.test.counter.start;
    let mut limits = Limits { limit: end_in_range(func, types, counted), enter: Enter::Below };
    if let Some(step) = unknown_step(func, counted) {
        limits.steps_up(func, types, pre, step);
    }
    let mut seen = Vec::new();
    // The start has to be at least this.
    let mut least_start = i128::from(i64::MIN);
    for check in checks {
        if let Kind::Below(len, _) = check.kind
            && !check.terms.is_empty()
        {
            if !seen.contains(&(check.kind, 0, check.terms.clone())) {
                seen.push((check.kind, 0, check.terms.clone()));
                let alike = checks.iter().filter(|c| c.kind == check.kind && c.terms == check.terms);
                limits.below_with(func, types, pre, [start, len], &check.terms, alike);
            }
            continue;
        }
        if seen.contains(&(check.kind, check.added, Terms::new())) {
            continue;
        }
        seen.push((check.kind, check.added, Terms::new()));
        let (least, below) = match check.kind {
            Kind::Below(len, Signed::No) => (Some(0), Some((len, check.added, false))),
            Kind::Below(len, Signed::Yes) => (None, Some((len, check.added, true))),
            Kind::UpTo(len) => (None, Some((len, check.added - 1, true))),
            Kind::From(least) => (Some(least), None),
        };
        if let Some((len, added, must_not_wrap)) = below {
            let minus = func.bits(types, Type::I64, -added as u128);
            let end = match signed(func, len) {
                _ if added == 0 => len,
                Some(n) => func.bits(types, Type::I64, (n - added) as u128),
                None => ins(func, pre, Intrinsic::AddInt, &[len, minus], Type::I64),
            };
            if must_not_wrap && added > 0 {
                let not_wrapped = ins(func, pre, Intrinsic::SltInt, &[end, len], Type::I8);
                limits.only_if(func, pre, not_wrapped);
            }
            limits.at_most(func, pre, end);
        }
        if let (Kind::From(_), 1..) = (check.kind, check.added) {
            let end = func.bits(types, Type::I64, (i128::from(i64::MAX) - check.added + 1) as u128);
            limits.at_most(func, pre, end);
        }
        // A signed comparison must not wrap below either.
        let least = least.unwrap_or(i128::from(i64::MIN)) - check.added;
        least_start = least_start.max(least);
    }
    let is_late = signed(func, start).is_some_and(|s| s >= least_start);
    if least_start > i128::from(i64::MIN) && !is_late {
        let from = func.bits(types, Type::I64, least_start as u128);
        let late = ins(func, pre, Intrinsic::SleInt, &[from, start], Type::I8);
        limits.only_if(func, pre, late);
    }
    limits
}

impl Limits {
    /// For `i + terms + a <u len` with the `a` of all these checks, for unknown terms. The least `a` passes in the first
    /// iteration, the greatest in all: the others pass then, too, because their sums are between two that did not wrap.
    fn below_with<'c>(
        &mut self,
        func: &mut Func,
        types: &Types,
        pre: Block,
        [start, len]: [Value; 2],
        terms: &[(Value, bool)],
        alike: impl Iterator<Item = &'c Check>,
    ) {
        let (least, most) = alike.fold((i128::MAX, i128::MIN), |(least, most), check| {
            (least.min(check.added), most.max(check.added))
        });
        let zero = func.bits(types, Type::I64, 0);
        let mut sum = zero;
        for &(term, minus) in terms {
            sum = match minus {
                false if sum == zero => term,
                false => ins(func, pre, Intrinsic::AddInt, &[sum, term], Type::I64),
                true => ins(func, pre, Intrinsic::SubInt, &[sum, term], Type::I64),
            };
        }
        let first_passes = |limits: &mut Self, func: &mut Func, added: i128| {
            let added = func.bits(types, Type::I64, added as u128);
            let further = ins(func, pre, Intrinsic::AddInt, &[sum, added], Type::I64);
            let first = ins(func, pre, Intrinsic::AddInt, &[start, further], Type::I64);
            let passes = ins(func, pre, Intrinsic::UltInt, &[first, len], Type::I8);
            limits.only_if(func, pre, passes);
            further
        };
        if least < most {
            first_passes(self, func, least);
        }
        let further = first_passes(self, func, most);
        let not_huge = ins(func, pre, Intrinsic::SleInt, &[zero, len], Type::I8);
        self.only_if(func, pre, not_huge);
        let end = ins(func, pre, Intrinsic::SubInt, &[len, further], Type::I64);
        self.at_most(func, pre, end);
    }

    /// For a step that is not known: only if it goes up, and as far as no step from before the limit wraps.
    fn steps_up(&mut self, func: &mut Func, types: &Types, pre: Block, step: Value) {
        let zero = func.bits(types, Type::I64, 0);
        let up = ins(func, pre, Intrinsic::SltInt, &[zero, step], Type::I8);
        self.only_if(func, pre, up);
        let beyond = func.bits(types, Type::I64, i64::MIN as u64 as u128);
        let end = ins(func, pre, Intrinsic::SubInt, &[beyond, step], Type::I64);
        self.at_most(func, pre, end);
    }

    fn at_most(&mut self, func: &mut Func, pre: Block, other: Value) {
        self.limit = match smaller_of_one_length(func, other, self.limit) {
            Some(known) => known,
            None => smaller(func, pre, other, self.limit),
        };
    }

    fn only_if(&mut self, func: &mut Func, pre: Block, condition: Value) {
        self.enter = Enter::BelowAnd(match self.enter {
            Enter::BelowAnd(known) | Enter::If(known) => {
                ins(func, pre, Intrinsic::AndInt, &[known, condition], Type::I8)
            }
            Enter::Below => condition,
        });
    }
}

/// The smaller of two values that are one length each, with constants added which cannot make it wrap.
fn smaller_of_one_length(func: &Func, a: Value, b: Value) -> Option<Value> {
    const FAR: u64 = 1 << 32;
    let [(a_of, a_added), (b_of, b_added)] = [linear(func, a), linear(func, b)];
    let (length, 1) = a_of? else { return None };
    let near = |added: u64| added.cast_signed().unsigned_abs() < FAR;
    let alike = a_of == b_of && is_bounded_length(func, length) && near(a_added) && near(b_added);
    alike.then_some(if a_added.cast_signed() <= b_added.cast_signed() { a } else { b })
}
