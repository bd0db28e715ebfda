//! Executes several iterations of a small loop between two tests.
//!
//! ```text
//! h: … goto h if next < n        ==>     m: … … … …  goto m if next < n - 3     four iterations
//!                                        h: … goto h if next < n                the last ones, fewer than four
//! ```
//!
//! An iteration costs, beside its work, an addition, a comparison, a branch and the poll: as much as the work in many loops.
//! The rest is the original loop; `loop_copy` explains why the order stays.
//!
//! The pass unrolls innermost loops that count upwards, whose test is the only exit, and that call nothing. The factor
//! depends on the size of the body, so that the main loop has at most [`MAX_SIZE`] instructions: iterations follow each other and
//! reuse registers, but values that Cranelift shares between them live longer. A loop with another exit either has checks left, and is then
//! the rare remainder of `irce`, or leaves too early for the work before it to pay.
//!
//! Cost: the copied instructions, at most [`MAX_GROWTH`] in a function; the tests before the loop, for each time it is entered. Breaks the graph.
//!
//! The author of a loop may choose the factor, or forbid copies (`loop_note.rs`). A
//! rarely entered loop stays, and so does one whose test by its branch weights ends it within two trips.
//!
//! Not done: breaking up the chain of a reduction.

use crate::counted::{Counted, signed};
use crate::facts::Fact;
use crate::likely::ColdBlocks;
use crate::loop_copy::{Enter, Escapes, end_in_range, ins, is_copyable, split_at, splittable_step};
use crate::loop_note::{LoopNote, Unrolling};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ssa_repair::Repair;
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo};
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Op, Type, Types, Value};

pub(crate) const PASS: Pass = Pass::new("unroll", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// How many instructions the main loop may have.
const MAX_SIZE: usize = 64;
/// With more iterations the remaining overhead per iteration no longer matters.
const MAX_ITERATIONS: usize = 8;
/// How many instructions all copies together may have.
const MAX_GROWTH: usize = 2000;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let undefined = MaybeUndefined::of(func, cfg, cx.facts.rpo());
    let cold = ColdBlocks::of(func, cfg, cx.facts.rpo());
    let mut repair = Repair::default();
    let mut growth = 0;
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        if cold.has(loops.header(l)) {
            continue;
        }
        let Some((counted, iterations, size)) = candidate(func, cx.types(), cfg, loops, l) else { continue };
        let known = [counted.test.bound, counted.test.counter.start];
        if known.iter().any(|&v| undefined.has(func, v)) || growth + size * iterations > MAX_GROWTH {
            continue;
        }
        if !cx.spend("unrolled loops") {
            break;
        }
        growth += size * iterations;
        cx.count("iterations", iterations as u64);
        let escapes = Escapes::of(func, loops, uses, l);
        let (limit, enter) = trip_limit(func, cx.types(), &counted, iterations);
        let split = split_at(func, loops, &counted, limit, enter, iterations);
        func.set_loop_note(loops.header(l), None);
        escapes.repair(&split.iterations, &mut repair);
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}

/// A loop to be unrolled, how many iterations at a time, and its size.
fn candidate(
    func: &Func,
    types: &Types,
    cfg: &Cfg,
    loops: &Loops,
    l: Loop,
) -> Option<(Counted, usize, usize)> {
    let counted = Counted::of(func, cfg, loops, l)?;
    splittable_step(func, &counted)?;
    let size = is_copyable(func, types, loops, l)?;
    let iterations = match LoopNote::of(func, types, loops.header(l)).unroll {
        Unrolling::Never => return None,
        Unrolling::Iterations(wanted) => Some(wanted).filter(|n| n.saturating_mul(size) <= MAX_GROWTH)?,
        Unrolling::Any | Unrolling::Full => [MAX_ITERATIONS, 4, 2]
            .into_iter()
            .find(|n| n * size <= MAX_SIZE && !counted.is_short(func, 2 * *n))?,
    };
    let calls = |inst| {
        func.op(inst) != Op::Safepoint && {
            let effects = effects(func, types, inst);
            effects.may_safepoint || !effects.terminates
        }
    };
    let works = loops.blocks(l).iter().flat_map(|&b| func.block_insts(b)).all(|inst| !calls(inst));
    let few = counted.iterations(func).is_some_and(|n| n < 2 * iterations as u64);
    (works && !few && loops.exits(cfg, l).count() == 1).then_some((counted, iterations, size))
}

/// The limit for the start of a trip of `iterations` iterations, and whether the first trip may start: the limit may have
/// wrapped.
pub(super) fn trip_limit(
    func: &mut Func,
    types: &Types,
    counted: &Counted,
    iterations: usize,
) -> (Value, Enter) {
    let pre = counted.shape.preheader;
    let step = splittable_step(func, counted).unwrap_or(1);
    let further = step * (iterations as i128 - 1);
    let end = end_in_range(func, types, counted);
    let minus = func.bits(types, Type::I64, -further as u128);
    let limit = ins(func, pre, Intrinsic::AddInt, &[end, minus], Type::I64);
    let start = counted.test.counter.start;
    let last = signed(func, start).map(|s| s + further).filter(|&n| n <= i128::from(i64::MAX));
    let enter = match last {
        Some(last) => {
            let last = func.bits(types, Type::I64, last as u128);
            Enter::If(ins(func, pre, Intrinsic::SltInt, &[last, end], Type::I8))
        }
        None => Enter::BelowAnd(ins(func, pre, Intrinsic::SleInt, &[limit, end], Type::I8)),
    };
    (limit, enter)
}
