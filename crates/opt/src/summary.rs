//! Effects of calls of a function, derived from its body.
//!
//! ```text
//! hypot(x, y) = sqrt(x*x + y*y)         summary: pure, returns             ──►  noted at every call of `hypot` (`call-effects`)
//! norm(v)     = loop over v, hypot …             reads elements, may throw
//! bump!(r)    = r.x += 1                         writes fields; of its arguments only `r`, which is not captured
//! ```
//!
//! The summary is the union of the [effects](brolga_ir::effects) of all reachable instructions; jumps add nothing, and a
//! cycle or a recursion adds that the function may not end. Callees come before callers, so a call adds the summary of its
//! callee. Functions that call each other in a cycle start as pure and are computed in turn until nothing changes: a summary
//! only gets worse, and has few parts, so this ends; after `MAX_ITERATIONS` the rest of the cycle may do anything.
//!
//! A row with a narrower type than its operation's may throw, unless the asserted type is proven (`asserted`).
//!
//! Whether a call is a *safepoint* does not follow from its effects: `lower` adds polls and boxes. So every summary says that it
//! may be one. A stack overflow is not counted as an exception, as in Julia.
//!
//! `escape` decides the fates of arguments, and which objects do not escape: effects on such objects do not count.
//!
//! Functions with handlers may do anything. Cost: a few visits to each instruction; some visits more for cycles. Not done: loops that
//! provably end.

use crate::asserted::{Tests, may_fail};
use crate::callgraph::bottom_up;
use crate::escape::Flow;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::effects::{ArgFlow, Effects, Summary, effects};
use brolga_ir::func::CalleeData;
use brolga_ir::{Block, Callee, Func, FuncId, Inst, Level, Module, Op, Type};
use rustc_hash::FxHashMap;

/// A cycle of functions gets its summaries in two or three iterations: one to see the effects, one to see that nothing changes.
const MAX_ITERATIONS: usize = 8;

/// Computes the summary of every high function of a module.
pub fn summarise_module(module: &mut Module) {
    for component in bottom_up(module) {
        let recursive = is_cycle(module, &component);
        let effects = Effects { terminates: !recursive, may_safepoint: true, ..Effects::PURE };
        let best = Summary { effects, args: ArgFlow::NONE };
        for &id in &component {
            module[id].summary = Some(best);
        }
        let mut iterations = 0;
        loop {
            iterations += 1;
            let mut changed = false;
            for &id in &component {
                let mut found =
                    if iterations > MAX_ITERATIONS { Summary::ANY } else { summarise(module, &module[id]) };
                found.effects.terminates &= !recursive;
                changed |= module[id].summary != Some(found);
                module[id].summary = Some(found);
            }
            if !changed || !recursive {
                break;
            }
        }
    }
}

/// Whether the functions of a component may call each other in a cycle.
fn is_cycle(module: &Module, component: &[FuncId]) -> bool {
    match component {
        &[only] => crate::callgraph::callees(module, &module[only]).contains(&only),
        _ => true,
    }
}

/// The effects of a call of a function, given the summaries of its callees.
pub fn summarise(module: &Module, func: &Func) -> Summary {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    summarise_over(module, func, &cfg, &rpo)
}

/// The same where the graph of the function is known.
pub(crate) fn summarise_over(module: &Module, func: &Func, cfg: &Cfg, rpo: &Rpo) -> Summary {
    // A function without a body is defined elsewhere.
    if func.level == Level::Low || func.sig.vararg || func.entry().is_none() {
        return Summary::ANY;
    }
    let insts = || rpo.blocks().iter().flat_map(|&b| func.block_insts(b));
    if insts().any(|inst| matches!(func.op(inst), Op::Enter | Op::Call)) {
        return Summary::ANY;
    }
    let mut callees: FxHashMap<Callee, Summary> = FxHashMap::default();
    for inst in insts() {
        if let Op::Invoke(callee) = func.op(inst) {
            callees.entry(callee).or_insert_with(|| of_callee(module, func.callee(callee)));
        }
    }
    if callees.values().any(|summary| summary.effects == Effects::ANY) {
        return Summary::ANY;
    }
    let types = &module.cx.types;
    let flow = Flow::compute(func, types, rpo, &callees);
    let tests = Tests::compute(func, types, cfg);
    let mut all = Effects { may_safepoint: true, ..Effects::PURE };
    let mut args = ArgFlow::NONE;
    for inst in insts() {
        if matches!(func.op(inst), Op::Goto | Op::Branch | Op::Return | Op::Phi | Op::LoopInfo(_)) {
            continue;
        }
        if func.op(inst) == Op::Unreachable {
            // It throws if it is reached, and a row before it may throw or not.
            all.nothrow = false;
            continue;
        }
        let (found, written) = match (&flow, func.op(inst)) {
            (Some(flow), _) => flow.seen(inst),
            (None, Op::Invoke(callee)) => (callees[&callee].effects, ArgFlow::ANY),
            (None, _) => (effects(func, types, inst), ArgFlow::ANY),
        };
        if found == Effects::ANY {
            return Summary::ANY;
        }
        all = all.merge(found);
        all.nothrow &= !claims_too_much(module, func, &tests, inst);
        args.written |= written.written;
        args.elsewhere |= written.elsewhere;
    }
    // In this order every cycle has an edge that goes back, and every such edge closes a cycle.
    let goes_back = |&b: &Block| cfg.succs(b).iter().any(|&next| rpo.position(next) <= rpo.position(b));
    let cyclic = rpo.blocks().iter().any(goes_back);
    let effects = Effects { terminates: all.terminates && !cyclic, ..all };
    Summary { effects, args: flow.map_or(ArgFlow::ANY, |flow| flow.arguments(args)) }
}

/// Whether a row may throw because it asserts more of its result or, for an `invoke`, of its operands than is known.
fn claims_too_much(module: &Module, func: &Func, tests: &Tests, inst: Inst) -> bool {
    let types = &module.cx.types;
    let Op::Invoke(callee) = func.op(inst) else { return may_fail(func, types, tests, inst) };
    let CalleeData::Method { function, args, .. } = func.callee(callee) else { return true };
    let Some(sig) = module.find_method(*function, args).map(|id| &module[id].sig) else { return true };
    let asserted = func.result(inst).map_or(Type::ANY, |result| func.ty(result));
    let given = func.args(inst).iter().map(|&v| func.ty(v));
    let gives = sig.results.first().is_some_and(|&result| types.is_subtype(result, asserted));
    !gives || !given.zip(&sig.params).all(|(given, param)| types.is_subtype(given, param.ty))
}

/// Knowledge about a callee.
pub(crate) fn of_callee(module: &Module, callee: &CalleeData) -> Summary {
    let CalleeData::Method { function, args, .. } = callee else { return Summary::ANY };
    let found = module.find_method(*function, args);
    found.and_then(|id| module[id].summary).unwrap_or(Summary::ANY)
}
