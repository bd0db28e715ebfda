//! What a call of a function does, found out from its body.
//!
//! ```text
//! hypot(x, y) = sqrt(x*x + y*y)         summary: pure, returns             ──►  noted at every call of `hypot` (`call-effects`)
//! norm(v)     = loop over v, hypot …             reads elements, may throw
//! ```
//!
//! The summary is the sum of the [effects](brolga_ir::effects) of all instructions that can be reached; jumps add nothing, and a
//! cycle or a recursion adds that the function may not end. Callees come before callers, so a call adds what is known of its
//! callee. Functions that call each other in a circle start as pure and are computed in turn until nothing changes: a summary
//! only gets worse, and has few parts, so this ends; after `MAX_ROUNDS` the rest of the circle may do anything.
//!
//! Whether a call is a *safepoint* does not follow from what it does: `lower` adds polls and boxes. So every summary says that it
//! may be one. A stack that overflows is not counted as an exception, as in Julia.
//!
//! Functions with handlers may do anything. Cost: one visit to each instruction; circles some visits more. Not done: objects of
//! the function's own (the writes to them count); loops that surely end; what becomes of arguments.

use crate::callgraph::bottom_up;
use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::effects::{Effects, effects};
use brolga_ir::func::CalleeData;
use brolga_ir::{Callee, Func, FuncId, Level, Module, Op};
use rustc_hash::FxHashMap;

/// A circle of functions gets its summaries in two or three rounds: one to see the effects, one to see that nothing changes.
const MAX_ROUNDS: usize = 8;

/// Gives every high function of a module its summary.
pub fn summarise_module(module: &mut Module) {
    for component in bottom_up(module) {
        let recursive = is_circle(module, &component);
        let best = Effects { terminates: !recursive, may_safepoint: true, ..Effects::PURE };
        for &id in &component {
            module.func_mut(id).summary = Some(best);
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            let mut changed = false;
            for &id in &component {
                let found =
                    if rounds > MAX_ROUNDS { Effects::ANY } else { summarise(module, module.func(id)) };
                let found = Effects { terminates: found.terminates && !recursive, ..found };
                changed |= module.func(id).summary != Some(found);
                module.func_mut(id).summary = Some(found);
            }
            if !changed || !recursive {
                break;
            }
        }
    }
}

/// Whether the functions of a component may come back to where they were.
fn is_circle(module: &Module, component: &[FuncId]) -> bool {
    match component {
        &[only] => crate::callgraph::callees(module, module.func(only)).contains(&only),
        _ => true,
    }
}

/// What a call of a function does, given the summaries of what it calls.
pub fn summarise(module: &Module, func: &Func) -> Effects {
    // A function without a body is defined elsewhere.
    if func.level == Level::Low || func.sig.vararg || func.entry().is_none() {
        return Effects::ANY;
    }
    let mut known: FxHashMap<Callee, Effects> = FxHashMap::default();
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let mut all = Effects { may_safepoint: true, ..Effects::PURE };
    for inst in rpo.blocks().iter().flat_map(|&b| func.block_insts(b)) {
        let found = match func.op(inst) {
            Op::Enter => return Effects::ANY,
            Op::Goto | Op::Branch | Op::Return | Op::Unreachable | Op::Phi | Op::LoopInfo(_) => continue,
            Op::Invoke(callee) => {
                *known.entry(callee).or_insert_with(|| of_callee(module, func.callee(callee)))
            }
            _ => effects(func, &module.cx.types, inst),
        };
        if found == Effects::ANY {
            return Effects::ANY;
        }
        all = all.merge(found);
    }
    let loops = Loops::compute(&cfg, &rpo, &DomTree::compute(&cfg));
    let cyclic = !loops.is_empty() || !loops.irreducible_edges().is_empty();
    Effects { terminates: all.terminates && !cyclic, ..all }
}

/// What is known of a callee.
pub(crate) fn of_callee(module: &Module, callee: &CalleeData) -> Effects {
    let CalleeData::Method { function, args, .. } = callee else { return Effects::ANY };
    let found = module.find_method(*function, args);
    found.and_then(|id| module.func(id).summary).unwrap_or(Effects::ANY)
}
