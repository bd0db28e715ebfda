//! Copies a recursive function into itself, some levels deep, so that several levels cost one call.
//!
//! ```text
//! f: … invoke f …      ==>      f: … (… (… invoke f …) …) …
//! ```
//!
//! The pass keeps the original body and replaces the recursive calls by it, level by level: all calls of
//! one level before the next, while the depth is at most [`InlineLimits::recursion_depth`] and the added code at most
//! [`InlineLimits::recursion_growth`]. A body with one call grows by one copy a level, one with two calls doubles, so the
//! second limit ends the latter. A function whose body costs more than
//! [`InlineLimits::recursion_threshold`] is unchanged: the call is then a small part of it.
//!
//! Functions that call each other become self-recursive once `inline` has put one into the other; it never puts a function
//! into itself. The pass refuses the functions that `inline` refuses (handlers above all), with `noinline` of a call or of the function. The hint `inline`
//! has no effect here: it concerns the next level, and the number of levels depends on size.
//!
//! The copies have no safepoint at their entries. A bounded number of levels is between two of them, and loops keep theirs.
//!
//! Cost: linear in the added code, which is bounded. Breaks every fact. Not done: weighing by branch weights.

use crate::callgraph::SelfCallees;
use crate::facts::Fact;
use crate::heads::rename_phi_blocks;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::passes::inline::copy::copy_body;
use crate::passes::inline::{asked, cost, takes};
use crate::replace::Replacements;
use brolga_ir::constant::Const;
use brolga_ir::hints::Inlining;
use brolga_ir::{Block, Func, Inst, Op, Type};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

pub(crate) const PASS: Pass =
    Pass::new("unfold-recursion", PassLevel::High, run).breaks(&[Fact::Cfg, Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let limits = cx.options.inline;
    let selves = SelfCallees::of(cx.module, func);
    if selves.is_empty() || func.sig.vararg {
        return Changed::No;
    }
    let Some((cost, size)) = cost::body_cost(func, cx.types(), &limits) else { return Changed::No };
    let &[declared] = func.sig.results.as_slice() else { return Changed::No };
    if cost > limits.recursion_threshold {
        return Changed::No;
    }
    let body = func.clone();
    let invokes = func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| is_invoke(func, i));
    let may_be_copied = |call| asked(func, call, func) != Some(Inlining::Never);
    let calls_self: Vec<bool> = invokes.map(|i| selves.has(func, i) && may_be_copied(i)).collect();
    let level = Level { body: &body, size, declared, calls_self };
    let invokes = func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| is_invoke(func, i));
    let mut calls = level.selves(invokes);
    let mut room = limits.recursion_growth;
    for _ in 0..limits.recursion_depth {
        calls = level.replace(func, cx, &calls, &mut room);
        if calls.is_empty() {
            break;
        }
    }
    cx.changed()
}

fn is_invoke(func: &Func, inst: Inst) -> bool {
    matches!(func.op(inst), Op::Invoke(_))
}

struct Level<'a> {
    body: &'a Func,
    /// For each `invoke` of the body in order: whether it calls the function itself.
    calls_self: Vec<bool>,
    /// Its number of instructions.
    size: usize,
    /// The declared result.
    declared: Type,
}

impl Level<'_> {
    /// The calls of the function itself among the `invoke`s of a copy of the body, the last first.
    fn selves(&self, invokes: impl IntoIterator<Item = Inst>) -> Vec<Inst> {
        let marked = invokes.into_iter().zip(&self.calls_self);
        let mut calls: Vec<Inst> = marked.filter(|&(_, &own)| own).map(|(inst, _)| inst).collect();
        calls.reverse();
        calls
    }

    /// Replaces calls (the last of each block first) while there is room, and returns the calls that were copied in.
    fn replace(&self, func: &mut Func, cx: &mut PassCx<'_>, calls: &[Inst], room: &mut usize) -> Vec<Inst> {
        let types = cx.types();
        let mut results = Replacements::default();
        let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
        let mut new_calls = Vec::new();
        for &call in calls {
            let args: Vec<_> = func.args(call).iter().map(|&v| results.resolve(v)).collect();
            let Some(result) = func.result(call) else { continue };
            let ty = func.ty(result);
            if !takes(cx, self.body, func, &args) || !types.is_subtype(self.declared, ty) {
                continue;
            }
            if self.size > *room || !cx.spend("copies") {
                break;
            }
            let home = func.inst_block(call);
            let Some(copied) = copy_body(func, self.body, cx.context(), call, &args, ty) else { continue };
            *room = room.saturating_sub(copied.insts);
            let value = copied.result.unwrap_or_else(|| func.constant(Const::Undef(ty)));
            results.set(result, value);
            // The first cut is after the last call, and only it moves the terminator.
            if let (Some(home), Some(tail)) = (home, copied.tail)
                && ends[home].is_none()
            {
                ends[home] = tail.into();
            }
            new_calls.extend(self.selves(copied.calls));
        }
        results.apply(func, cx.context());
        rename_phi_blocks(func, &ends);
        new_calls
    }
}
