//! Polls less often: loops that end soon need no safepoint, and counted loops poll once for many iterations.
//!
//! ```text
//! p: goto h                               p: goto o
//! h: … safepoint() …                      o: lim = min(end, i + K)      goto h
//! l: goto h if next < end, else x   ==>   h: …
//!                                         l: goto h if next < lim, else t
//!                                         t: goto s if next < end, else x
//!                                         s: safepoint()                goto o
//! ```
//!
//! A poll is a load, a test and a branch in every iteration: in the smallest loops, as much as everything else. It makes
//! a thread stop soon after a request.
//!
//! **The bound.** Between two polls a loop executes at most about [`MAX_WORK`] instructions of low IR, some microseconds, where a call
//! counts as [`CALL`] and has its own polls if it loops or recurs. Loops in sequence add up, so the time between two polls
//! of a function is at most the time of its text, with each loop at its bound. C functions have no bound.
//!
//! | loop | polls |
//! |---|---|
//! | few enough iterations, known, that all work is within the bound | none |
//! | innermost, calls nothing, its latch tests the next value of a counter in 64 bits that goes up, or may | once for K iterations, in `s` |
//! | each iteration calls this function itself, which polls where it starts | none |
//! | any other | unchanged |
//!
//! In the second case an iteration continues without entering `s` only if `next < lim`, and `lim <= end` always: then the loop's own test
//! holds as well, whichever of them wrapped. So the order and number of iterations stay. If the test is that the counter differs from a bound,
//! `end` is the bound, and with a counter that starts above it every iteration goes through `s`: slow, and correct. If K iterations would exceed
//! the range, `lim` is the least number and every iteration goes through `s`, so that a counter that wraps is polled. An unknown step is tested
//! before the loop: if it goes down, or so far up that K steps might leave the range, `lim` is the least number, and every iteration goes through `s`, too.
//!
//! Inner loops come first, so the work of a loop without polls counts as part of the loop around it. Remainder loops of a split (`irce`,
//! `unroll`) are recognised by their two entering edges, not counting edges from the head of the loop around them, and left
//! alone: they have few iterations.
//!
//! Cost: each loop's blocks, of at most [`MAX_BLOCKS`]. Breaks the graph. Not done: counters that go down; moving the poll of an
//! inner loop of few but unknown iterations into the outer one.

use crate::counted::{Counted, Recurrence, Tested, most_iterations};
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::loop_copy::{end_of, ins, jump_block, rename_pred, retarget, splittable_step, unknown_step};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::WhenAsked;
use brolga_ir::analysis::{Cfg, DomTree, Loop, Loops};
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::func::CalleeData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::PrimaryMap;

pub(crate) const PASS: Pass = Pass::new("polls", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::DomTree, Fact::Loops])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// How many instructions may be executed between two polls of a loop: a few microseconds.
const MAX_WORK: u64 = 16_384;
/// The weight of a call.
const CALL: u64 = 256;
/// Larger loops are not examined: in nested loops each block would be counted once per level.
const MAX_BLOCKS: usize = 64;
/// With fewer iterations per poll nothing is saved.
const MIN_ITERATIONS: u64 = 16;
/// Steps that are not known are at most this: multiplied by the iterations per poll they fit in 64 bits.
const MAX_STEP: u64 = 1 << 40;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, tree, loops) = (cx.facts.cfg(), cx.facts.domtree(), cx.facts.loops());
    // A cycle that is not a loop has any number of iterations.
    if loops.is_empty() || !loops.irreducible_edges().is_empty() {
        return Changed::No;
    }
    let undefined = WhenAsked::new(cfg, cx.facts.rpo());
    // The most that a loop without polls executes each time it is entered.
    let mut work: PrimaryMap<Loop, Option<u64>> = loops.iter().map(|_| None).collect();
    // A loop comes before those inside it.
    for l in loops.iter().rev().filter(|&l| loops.blocks(l).len() <= MAX_BLOCKS) {
        let iteration = Iteration::of(func, cx.types(), loops, &work, l);
        let iterations =
            if iteration.work.is_some() { most_iterations(func, cfg, tree, loops, l) } else { None };
        let all = iteration.work.zip(iterations).map(|(work, iterations)| work.saturating_mul(iterations));
        if let Some(all) = all.filter(|&all| all <= MAX_WORK) {
            if !iteration.polls.is_empty() {
                if !cx.spend("loops without polls") {
                    break;
                }
                iteration.polls.iter().for_each(|&poll| func.remove_inst(poll));
            }
            work[l] = Some(all);
            continue;
        }
        if !iteration.polls.is_empty() && recurs_each_iteration(func, cfg, tree, loops, l) {
            if !cx.spend("loops that recur") {
                break;
            }
            iteration.polls.iter().for_each(|&poll| func.remove_inst(poll));
            continue;
        }
        if func.is_cold(loops.header(l)) {
            continue;
        }
        let Some(counted) = strippable(func, cfg, loops, &undefined, l, &iteration) else { continue };
        let iterations = MAX_WORK / iteration.work.unwrap_or(MAX_WORK).max(1);
        if iterations >= MIN_ITERATIONS {
            if !cx.spend("loops that poll rarely") {
                break;
            }
            let is_guarded = counted.is_guarded(func, cfg, loops);
            strip(func, cx.types(), &counted, is_guarded, &iteration.polls, iterations);
        }
    }
    cx.changed()
}

/// Whether each iteration calls the function itself, and so executes the poll at its start.
fn recurs_each_iteration(func: &Func, cfg: &Cfg, tree: &DomTree, loops: &Loops, l: Loop) -> bool {
    let polls = |block: Block| func.block_insts(block).any(|i| func.op(i) == Op::Safepoint);
    let recurs = |block: Block| {
        func.block_insts(block).any(|i| match func.op(i) {
            Op::CallSymbol(callee) => {
                matches!(func.callee(callee), CalleeData::Symbol { symbol, .. } if *symbol == func.name)
            }
            _ => false,
        })
    };
    let each_iteration = |&block: &Block| loops.latches(cfg, l).all(|latch| tree.dominates(block, latch));
    func.entry().is_some_and(polls)
        && loops.blocks(l).iter().filter(|b| each_iteration(b)).any(|&b| recurs(b))
}

/// One iteration of a loop.
struct Iteration {
    /// The polls of the loop itself.
    polls: Vec<Inst>,
    /// How many instructions are executed, if that is bounded without polls.
    work: Option<u64>,
    calls: bool,
}

impl Iteration {
    fn of(
        func: &Func,
        types: &Types,
        loops: &Loops,
        work: &PrimaryMap<Loop, Option<u64>>,
        l: Loop,
    ) -> Iteration {
        let mut iteration = Iteration { polls: Vec::new(), work: Some(0), calls: false };
        for &block in loops.blocks(l) {
            let inner = loops.loop_of(block).filter(|&inner| inner != l);
            if let Some(inner) = inner {
                let counts = loops.header(inner) == block && loops.parent(inner) == Some(l);
                let add = if counts { work[inner] } else { Some(0) };
                iteration.work = iteration.work.zip(add).map(|(sum, add)| sum.saturating_add(add));
                continue;
            }
            for inst in func.block_insts(block) {
                let is_poll = func.op(inst) == Op::Safepoint;
                if is_poll {
                    iteration.polls.push(inst);
                }
                let effects = effects(func, types, inst);
                let calls = !is_poll && (effects.may_safepoint || !effects.terminates);
                iteration.calls |= calls;
                iteration.work = iteration.work.map(|sum| sum.saturating_add(if calls { CALL } else { 1 }));
            }
        }
        iteration
    }
}

/// The loop as a counted one, if its polls can be made rare.
fn strippable(
    func: &Func,
    cfg: &Cfg,
    loops: &Loops,
    undefined: &WhenAsked<'_>,
    l: Loop,
    iteration: &Iteration,
) -> Option<Counted> {
    let counted = Counted::of(func, cfg, loops, l)?;
    let test = &counted.test;
    let simple = loops.is_innermost(l) && !iteration.calls && !iteration.polls.is_empty();
    let preheader = counted.shape.preheader;
    // The back edge of the loop around it is not a second entry.
    let starts_outer = loops.loop_of(preheader).is_some_and(|outer| loops.header(outer) == preheader);
    let entered_once = starts_outer || cfg.preds(preheader).len() <= 1;
    let counts = splittable_step(func, &counted).is_some() || unknown_step(func, &counted).is_some();
    let counts = counts && test.tested == Tested::Next;
    let Recurrence { start, step, .. } = test.counter;
    let defined = || [test.bound, start, step].into_iter().all(|value| !undefined.get(func).has(func, value));
    (simple && entered_once && counts && defined()).then_some(counted)
}

/// `first` plus the lesser of the distance and the rest up to `end`, computed at the end of a block. The test of the loop
/// holds for `first`, so the remaining iterations are the difference, as an unsigned integer.
fn nearer_end(func: &mut Func, block: Block, [first, distance, end]: [Value; 3]) -> Value {
    let left = ins(func, block, Intrinsic::SubInt, &[end, first], Type::I64);
    let few = ins(func, block, Intrinsic::UltInt, &[left, distance], Type::I8);
    let part = choose(func, block, [few, left, distance]);
    ins(func, block, Intrinsic::AddInt, &[first, part], Type::I64)
}

/// `first` plus the distance or `end` if that is less; `beyond` if the sum wraps.
fn limit_in_range(func: &mut Func, block: Block, [first, distance, end, beyond]: [Value; 4]) -> Value {
    let far = ins(func, block, Intrinsic::AddInt, &[first, distance], Type::I64);
    let in_range = ins(func, block, Intrinsic::SltInt, &[first, far], Type::I8);
    let before_end = ins(func, block, Intrinsic::SltInt, &[far, end], Type::I8);
    // Two choices are two conditional moves; one on both conditions would first materialise each as a number.
    let nearer = choose(func, block, [before_end, far, end]);
    choose(func, block, [in_range, nearer, beyond])
}

fn choose(func: &mut Func, block: Block, choice: [Value; 3]) -> Value {
    let op = Op::Builtin(Builtin::Ifelse);
    Cursor::new(func).before_terminator(block).ins_value(op, &choice, Type::I64)
}

fn strip(
    func: &mut Func,
    types: &Types,
    counted: &Counted,
    is_guarded: bool,
    polls: &[Inst],
    iterations: u64,
) {
    let Counted { shape, test } = *counted;
    let end = end_of(func, types, counted);
    // The counter after these iterations. If that is out of range, the least number is the limit: the counter may wrap, and
    // stay below `end` for long.
    let beyond = func.bits(types, Type::I64, i64::MIN as u64 as u128);
    let distance = match splittable_step(func, counted) {
        Some(step) => func.bits(types, Type::I64, (i128::from(iterations) * step) as u128),
        None => {
            let (step, at) = (test.counter.step, shape.preheader);
            let [one, most, iterations, none] =
                [1, MAX_STEP, iterations, 0].map(|n| func.bits(types, Type::I64, n.into()));
            let before = ins(func, at, Intrinsic::SubInt, &[step, one], Type::I64);
            let is_fit = ins(func, at, Intrinsic::UltInt, &[before, most], Type::I8);
            let all = ins(func, at, Intrinsic::MulInt, &[step, iterations], Type::I64);
            choose(func, at, [is_fit, all, none])
        }
    };

    let outer = jump_block(func, shape.preheader, shape.header);
    if let Some(jump) = func.terminator(shape.preheader) {
        retarget(func, jump, shape.header, outer);
    }
    let after = func.make_block();
    func.insert_block_after(after, shape.latch);
    let again = jump_block(func, after, outer);

    // The values carried around the outer loop.
    let mut first = test.counter.start;
    for phi in head_phis(func, shape.header).collect::<Vec<_>>() {
        let Some(result) = func.result(phi) else { continue };
        let edge = |from| func.phi_edges(phi).find(|&(b, _)| b == from).map(|(_, v)| v);
        let edges = [(shape.preheader, edge(shape.preheader)), (again, edge(shape.latch))];
        let (from, values): (Vec<Block>, Vec<Value>) =
            edges.into_iter().filter_map(|(b, v)| Some((b, v?))).unzip();
        let carried = func.make_inst(Op::Phi, &values, &from, &[func.ty(result)]);
        func.set_place(carried, func.place(phi));
        func.prepend_inst(carried, outer);
        func.retain_phi_edges(phi, |b, _| b != shape.preheader);
        if let Some(value) = func.result(carried) {
            func.add_phi_edge(phi, outer, value);
            if result == test.counter.value {
                first = value;
            }
        }
    }

    // A longer step could go beyond the end and wrap, where the iterations to the limit are many.
    let limit = if is_guarded && splittable_step(func, counted) == Some(1) {
        nearer_end(func, outer, [first, distance, end])
    } else {
        limit_in_range(func, outer, [first, distance, end, beyond])
    };

    // The loop's own test, after the new one.
    let goes_on = ins(func, shape.latch, Intrinsic::SltInt, &[test.counter.next, limit], Type::I8);
    let branch = func.make_inst(Op::Branch, &[goes_on], &[shape.header, after], &[]);
    func.set_place(branch, func.place(test.branch));
    func.remove_inst(test.branch);
    func.append_inst(test.branch, after);
    func.append_inst(branch, shape.latch);
    retarget(func, test.branch, shape.header, again);
    rename_pred(func, test.exit, shape.latch, after);

    for (n, &poll) in polls.iter().enumerate() {
        func.remove_inst(poll);
        if let (0, Some(jump)) = (n, func.terminator(again)) {
            func.insert_before(poll, jump);
        }
    }
}
