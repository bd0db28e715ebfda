//! The passes of each level, their order, and the reasons for it.
//!
//! ```text
//!            high stage                              low stage
//! high IR ────── steps of `HIGH` ────── lower ────── steps of `LOW` ────── low IR
//! ```
//!
//! A level of optimisation has the steps of its own level and all lower ones, so that all levels have one order. [`stage`]
//! returns it; [`ORDER`] has its constraints with their reasons, and a test checks one against the other. A pass that occurs
//! twice in a stage has two labels.

use crate::error::OptError;
use crate::heads::may_be_merged;
use crate::options::OptLevel::{self, O0, O1, O2, O3};
use crate::pass::Pass;
use crate::passes::{
    address_fold, alloc_opt, alloc_stack, bounds_fold, call_effects, cold_blocks, correlated, cpu_features,
    cse, dce, demote_float16, div_rem, dse, gvn, if_convert, indvars, infer, inline, inst_simplify, irce,
    jump_threading, licm, local_throw, loop_delete, loop_idiom, loop_simplify, memcpy_forward, muladd,
    narrow, polls, reassociate, rotate, sccp, simd_loop, simplify_cfg, sink, slp, sroa, strength_reduce,
    tail_recursion, unfold_recursion, union_split, unroll, unroll_full, unswitch, vectorize,
};
use crate::scope::{Step, Visit};
use brolga_ir::{Func, Level};
use cranelift_entity::EntitySet;

/// Every pass, in the order in which lists and reports name them.
pub static PASSES: &[&Pass] = &[
    &bounds_fold::PASS,
    &simplify_cfg::PASS,
    &union_split::PASS,
    &inline::PASS,
    &infer::PASS,
    &tail_recursion::PASS,
    &unfold_recursion::PASS,
    &call_effects::PASS,
    &local_throw::PASS,
    &sroa::PASS,
    &alloc_opt::PASS,
    &narrow::PASS,
    &inst_simplify::PASS,
    &cse::PASS,
    &gvn::PASS,
    &sccp::PASS,
    &correlated::PASS,
    &jump_threading::PASS,
    &memcpy_forward::PASS,
    &dse::PASS,
    &cpu_features::PASS,
    &dce::PASS,
    &demote_float16::PASS,
    &loop_simplify::PASS,
    &rotate::PASS,
    &reassociate::PASS,
    &licm::PASS,
    &indvars::PASS,
    &loop_delete::PASS,
    &loop_idiom::PASS,
    &unswitch::PASS,
    &if_convert::PASS,
    &irce::PASS,
    &unroll_full::PASS,
    &simd_loop::PASS,
    &vectorize::PASS,
    &slp::PASS,
    &unroll::PASS,
    &strength_reduce::PASS,
    &address_fold::PASS,
    &div_rem::PASS,
    &alloc_stack::PASS,
    &sink::PASS,
    &muladd::PASS,
    &polls::PASS,
    &cold_blocks::PASS,
];

/// A step, and the lowest level of optimisation that takes it.
#[derive(Clone, Copy, Debug)]
struct Row {
    from: OptLevel,
    step: Step,
}

const fn step(from: OptLevel, label: &'static str, pass: &'static Pass) -> Row {
    Row { from, step: Step { label, pass, visit: Visit::Always, is_extra: false } }
}

/// A step that a function without loops does not need.
const fn loops(from: OptLevel, label: &'static str, pass: &'static Pass) -> Row {
    Row { from, step: Step { label, pass, visit: Visit::Loops, is_extra: false } }
}

/// A step needed only by functions that satisfy a predicate.
const fn asks(from: OptLevel, label: &'static str, pass: &'static Pass, asks: fn(&Func) -> bool) -> Row {
    Row { from, step: Step { label, pass, visit: Visit::Asks(asks), is_extra: false } }
}

/// Whether a block leads to itself or to an earlier one, as in every loop.
fn goes_back(func: &Func) -> bool {
    let mut seen = EntitySet::new();
    func.blocks().any(|block| {
        seen.insert(block);
        func.successors(block).iter().any(|&next| seen.contains(next))
    })
}

/// Whether loops may count by comparisons.
fn has_bits_in_loops(func: &Func) -> bool {
    goes_back(func) && inst_simplify::may_find(func)
}

/// Whether the function calls any function.
fn calls(func: &Func) -> bool {
    func.callees().next().is_some()
}

/// The passes on high IR, before `lower`.
static HIGH: &[Row] = &[
    step(O1, "union-split", &union_split::PASS),
    asks(O2, "early infer", &infer::PASS, infer::may_find),
    asks(O2, "first inst-simplify", &inst_simplify::PASS, infer::may_find),
    asks(O2, "first simplify-cfg", &simplify_cfg::PASS, infer::may_find),
    step(O1, "inline", &inline::PASS),
    asks(O2, "infer", &infer::PASS, infer::may_find),
    step(O1, "call-effects", &call_effects::PASS),
    step(O0, "early bounds-fold", &bounds_fold::PASS),
    step(O1, "cpu-features", &cpu_features::PASS),
    step(O2, "local-throw", &local_throw::PASS),
    step(O1, "sroa", &sroa::PASS),
    step(O1, "early dce", &dce::PASS),
    step(O1, "alloc-opt", &alloc_opt::PASS),
    step(O1, "inst-simplify", &inst_simplify::PASS),
    step(O1, "late simplify-cfg", &simplify_cfg::PASS),
    step(O1, "narrow", &narrow::PASS),
    asks(O2, "tail-recursion", &tail_recursion::PASS, calls),
    asks(O2, "unfold-recursion", &unfold_recursion::PASS, calls),
    step(O2, "cse", &cse::PASS),
    asks(O2, "simd-loop", &simd_loop::PASS, simd_loop::may_find),
    step(O2, "late sroa", &sroa::PASS),
    step(O2, "late alloc-opt", &alloc_opt::PASS),
    step(O2, "late inst-simplify", &inst_simplify::PASS),
    step(O1, "late dce", &dce::PASS),
];

/// The passes on low IR, after `lower`.
static LOW: &[Row] = &[
    step(O1, "inst-simplify", &inst_simplify::PASS),
    step(O2, "sccp", &sccp::PASS),
    step(O2, "early simplify-cfg", &simplify_cfg::PASS),
    step(O2, "demote-float16", &demote_float16::PASS),
    step(O2, "early gvn", &gvn::PASS),
    step(O2, "correlated", &correlated::PASS),
    step(O2, "jump-threading", &jump_threading::PASS),
    asks(O2, "late sccp", &sccp::PASS, sccp::may_find),
    asks(O2, "late jump-threading", &jump_threading::PASS, jump_threading::may_find),
    asks(O2, "last sccp", &sccp::PASS, sccp::may_find),
    asks(O2, "threaded simplify-cfg", &simplify_cfg::PASS, jump_threading::has_flags),
    asks(O2, "last jump-threading", &jump_threading::PASS, jump_threading::may_find),
    asks(O2, "final sccp", &sccp::PASS, sccp::may_find),
    step(O2, "late simplify-cfg", &simplify_cfg::PASS),
    asks(O2, "middle inst-simplify", &inst_simplify::PASS, goes_back),
    asks(O2, "middle gvn", &gvn::PASS, may_be_merged),
    asks(O2, "late correlated", &correlated::PASS, goes_back),
    asks(O2, "inner simplify-cfg", &simplify_cfg::PASS, goes_back),
    asks(O2, "inner jump-threading", &jump_threading::PASS, jump_threading::may_find),
    asks(O2, "inner sccp", &sccp::PASS, sccp::may_find),
    asks(O2, "flagless simplify-cfg", &simplify_cfg::PASS, jump_threading::has_flags),
    asks(O2, "innermost jump-threading", &jump_threading::PASS, jump_threading::may_find),
    asks(O2, "innermost sccp", &sccp::PASS, sccp::may_find),
    asks(O2, "innermost simplify-cfg", &simplify_cfg::PASS, jump_threading::has_flags),
    loops(O2, "loop-simplify", &loop_simplify::PASS),
    loops(O2, "rotate", &rotate::PASS),
    step(O2, "reassociate", &reassociate::PASS),
    loops(O2, "licm", &licm::PASS),
    step(O2, "memcpy-forward", &memcpy_forward::PASS),
    step(O2, "late gvn", &gvn::PASS),
    step(O2, "dse", &dse::PASS),
    loops(O2, "indvars", &indvars::PASS),
    loops(O2, "loop-delete", &loop_delete::PASS),
    loops(O2, "loop-idiom", &loop_idiom::PASS),
    loops(O2, "unswitch", &unswitch::PASS),
    loops(O2, "late licm", &licm::PASS),
    step(O2, "if-convert", &if_convert::PASS),
    loops(O2, "irce", &irce::PASS),
    loops(O2, "unroll-full", &unroll_full::PASS),
    asks(O2, "late unroll-full", &unroll_full::PASS, unroll_full::may_find),
    asks(O2, "middle simplify-cfg", &simplify_cfg::PASS, goes_back),
    asks(O2, "bit inst-simplify", &inst_simplify::PASS, has_bits_in_loops),
    asks(O2, "middle dce", &dce::PASS, goes_back),
    loops(O2, "vectorize", &vectorize::PASS),
    step(O3, "slp", &slp::PASS),
    loops(O2, "strength-reduce", &strength_reduce::PASS),
    loops(O3, "unroll", &unroll::PASS),
    step(O2, "address-fold", &address_fold::PASS),
    step(O2, "div-rem", &div_rem::PASS),
    step(O2, "late inst-simplify", &inst_simplify::PASS),
    loops(O3, "late strength-reduce", &strength_reduce::PASS),
    loops(O2, "polls", &polls::PASS),
    asks(O2, "alloc-stack", &alloc_stack::PASS, alloc_stack::may_find),
    asks(O2, "sink", &sink::PASS, sink::may_find),
    asks(O1, "muladd", &muladd::PASS, muladd::may_find),
    step(O2, "last simplify-cfg", &simplify_cfg::PASS),
    step(O1, "late dce", &dce::PASS),
    step(O2, "cold-blocks", &cold_blocks::PASS),
];

/// The steps of a level of optimisation for functions of one level of the IR, in order.
pub fn stage(level: OptLevel, ir: Level) -> Vec<Step> {
    let rows = match ir {
        Level::High => HIGH,
        Level::Low => LOW,
    };
    rows.iter().filter(|row| row.from <= level).map(|row| row.step).collect()
}

/// One thing that must be true of every stage with both steps.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The label of a step that runs somewhere before the other.
    pub first: &'static str,
    /// The label of the other.
    pub then: &'static str,
    /// The reason.
    pub because: &'static str,
}

const fn order(first: &'static str, then: &'static str, because: &'static str) -> Order {
    Order { first, then, because }
}

/// The constraints on the order. They document and check the stages; they do not make them.
pub static ORDER: &[Order] = &[
    order("union-split", "inline", "a call of a method that is known may be inlined"),
    order("inline", "early bounds-fold", "inlined bodies bring checks of their own"),
    order("inline", "call-effects", "calls come in with inlined bodies"),
    order("call-effects", "early dce", "a call that only computes goes when its result is unused"),
    order("call-effects", "cse", "equal calls of what only computes are one"),
    order("inline", "local-throw", "what was thrown some calls down is thrown here"),
    order("local-throw", "sroa", "what was thrown is read where it was made"),
    order("local-throw", "late simplify-cfg", "the throw becomes a line of jumps"),
    order("inline", "sroa", "a tuple that a callee returned is taken apart where it was inlined"),
    order("inline", "late simplify-cfg", "an inlined body begins and ends with a jump"),
    order(
        "early bounds-fold",
        "inst-simplify",
        "whether bounds are checked decides what conditions are worth",
    ),
    order("sroa", "early dce", "a closure that was taken apart still holds its boxes"),
    order("early dce", "alloc-opt", "an object that is held by something unused does not get out"),
    order("alloc-opt", "inst-simplify", "what was read from an object is known to be what was written"),
    order("alloc-opt", "late sroa", "tuples that were kept in an object show up"),
    order("late simplify-cfg", "late alloc-opt", "an object does not get out on a way that is not taken"),
    order("sroa", "inst-simplify", "fields that are known make operands that are constants"),
    order("inst-simplify", "late simplify-cfg", "conditions become constants, and their branches jumps"),
    order(
        "union-split",
        "narrow",
        "methods that are known return numbers, and the call that is left an object",
    ),
    order("late simplify-cfg", "narrow", "an assertion is in the block of its φ once lines are merged"),
    order("narrow", "late dce", "the φ that was asserted may have lost its last use"),
    order(
        "late simplify-cfg",
        "tail-recursion",
        "the sum after a call is in its block once lines are merged",
    ),
    order("inline", "tail-recursion", "functions that call each other become one that calls itself"),
    order(
        "tail-recursion",
        "unfold-recursion",
        "a call that became a jump is not copied, and the copies jump as well",
    ),
    order("unfold-recursion", "cse", "levels compute the same things"),
    order("inst-simplify", "cse", "equal things look equal only in canonical form"),
    order("late simplify-cfg", "simd-loop", "a mark is in its loop once lines are merged"),
    order("late simplify-cfg", "cse", "fewer blocks make more places dominate each other"),
    order("cse", "late inst-simplify", "`x == y` is true once x and y are one value"),
    order("late simplify-cfg", "late sroa", "a φ of one edge hides the object that it stands for"),
    order("inst-simplify", "sccp", "fewer values have to be followed"),
    order("sccp", "early simplify-cfg", "branches on constants become jumps"),
    order("unswitch", "late licm", "what followed an invariant test is at the head of the loop"),
    order("late licm", "irce", "the length that a check compares with is the same in every iteration"),
    order("early simplify-cfg", "early gvn", "fewer blocks make more places dominate each other"),
    order("early gvn", "correlated", "what was tested is recognised by its value"),
    order("correlated", "jump-threading", "a branch that is decided everywhere needs no second way"),
    order("jump-threading", "late simplify-cfg", "it leaves lines of blocks and blocks without predecessors"),
    order(
        "correlated",
        "middle inst-simplify",
        "a condition of two parts one of which is known is the other",
    ),
    order("late sccp", "late correlated", "a flag between a loop's test and its body hides what was tested"),
    order("middle inst-simplify", "late correlated", "facts are taken from comparisons"),
    order("late correlated", "inner simplify-cfg", "checks that never fail are branches on constants"),
    order(
        "inner simplify-cfg",
        "inner jump-threading",
        "a flag of an inner iterator is in the block of its branch once lines are merged",
    ),
    order("inner jump-threading", "inner sccp", "a flag that differed on a threaded edge is one constant"),
    order("inner sccp", "flagless simplify-cfg", "branches on constants become jumps"),
    order(
        "flagless simplify-cfg",
        "innermost jump-threading",
        "a filter over a range has one flag for each, and a block takes part in one rewrite of a run",
    ),
    order(
        "innermost jump-threading",
        "innermost sccp",
        "a flag that differed on a threaded edge is one constant",
    ),
    order("innermost sccp", "innermost simplify-cfg", "branches on constants become jumps"),
    order(
        "innermost simplify-cfg",
        "loop-simplify",
        "it drops blocks that only lead on, and a latch may be one",
    ),
    order("inner simplify-cfg", "loop-simplify", "it drops blocks that only lead on, and a latch may be one"),
    order(
        "middle gvn",
        "late correlated",
        "a range's counter and its state are one value, and what is tested of the one holds for the other",
    ),
    order("middle gvn", "rotate", "loads of two iterations have one address that is the same value in both"),
    order("middle inst-simplify", "rotate", "what the test of a loop looks at shows in plain sight"),
    order(
        "jump-threading",
        "late jump-threading",
        "a block takes part in one rewrite of a run, and flags are in rows",
    ),
    order("late sccp", "late jump-threading", "a flag that is one constant by now needs no second way"),
    order(
        "late jump-threading",
        "last sccp",
        "a flag that differed on a way that is threaded is one constant",
    ),
    order(
        "last sccp",
        "last jump-threading",
        "a range of a filter has a flag for its own end and one for the loop around it",
    ),
    order(
        "threaded simplify-cfg",
        "last jump-threading",
        "a flag is in the block of its branch once lines are merged",
    ),
    order("last sccp", "threaded simplify-cfg", "branches on constants become jumps"),
    order(
        "last jump-threading",
        "final sccp",
        "a flag that differed on a way that is threaded is one constant",
    ),
    order("final sccp", "late simplify-cfg", "branches on constants become jumps"),
    order("last sccp", "late simplify-cfg", "branches on constants become jumps"),
    order("jump-threading", "late sccp", "a flag that differed on a way that is threaded is one constant"),
    order("late sccp", "late simplify-cfg", "branches on constants become jumps"),
    order("correlated", "late simplify-cfg", "checks that never fail are branches on constants"),
    order("late gvn", "dse", "a slot whose loads were forwarded is never read"),
    order("dse", "late dce", "what was stored may have lost its last use"),
    order("inst-simplify", "early gvn", "equal things look equal only in canonical form"),
    order("early gvn", "loop-simplify", "an edge that got a load may enter a loop"),
    order("early gvn", "licm", "what is computed once moves once"),
    order("rotate", "late gvn", "the copied head loads what the body loads again"),
    order("late gvn", "late dce", "operands of what was shared may have lost their last use"),
    order("late simplify-cfg", "loop-simplify", "it drops blocks that only lead on, and a latch may be one"),
    order("sccp", "demote-float16", "operations on constants are folded in 16 bits"),
    order("demote-float16", "early gvn", "a value that is used twice is widened once"),
    order("demote-float16", "licm", "what does not change in a loop is widened before it"),
    order("early gvn", "memcpy-forward", "addresses that are equal are one value then"),
    order("memcpy-forward", "late gvn", "what is loaded from the source may be known there"),
    order("memcpy-forward", "dse", "a slot whose copies were forwarded is never read"),
    order("early gvn", "reassociate", "a sum that is shared is not a part of another"),
    order("reassociate", "licm", "what is the same in every iteration is put together first"),
    order("reassociate", "late gvn", "sums in one order look equal"),
    order("reassociate", "vectorize", "what a sum carries from iteration to iteration is joined last"),
    order("loop-simplify", "rotate", "a loop is rotated from its preheader"),
    order("rotate", "licm", "the body of a rotated loop is executed whenever its preheader is"),
    order("rotate", "indvars", "a test at the end of an iteration tells the last value"),
    order("licm", "irce", "a length that is loaded in the loop bounds nothing"),
    order("late gvn", "irce", "a bound that is the length is the same value only then"),
    order("late gvn", "unroll", "what a body computes twice counts as its size"),
    order("indvars", "irce", "a loop is split at the test in its latch"),
    order("irce", "middle simplify-cfg", "a loop without its checks becomes one block"),
    order("middle simplify-cfg", "vectorize", "only loops of one block are executed in lanes"),
    order("middle dce", "vectorize", "what is not used need not exist in lanes"),
    order("vectorize", "unroll", "several iterations in a row are not an iteration in lanes"),
    order("indvars", "loop-delete", "a counter that is used after the loop keeps it"),
    order("indvars", "loop-idiom", "a counter that is used after the loop keeps it"),
    order("loop-idiom", "unroll", "a loop that is a routine needs no copies"),
    order("loop-idiom", "polls", "a fill is recognised while it is one loop"),
    order("licm", "unswitch", "a condition is computed before the loop first"),
    order("unswitch", "if-convert", "a choice that is the same in every iteration is none"),
    order("jump-threading", "if-convert", "a branch that is decided on some edges needs no choice there"),
    order("if-convert", "irce", "a loop whose body is one line is split like any other"),
    order("if-convert", "vectorize", "lanes have choices and no branches"),
    order("if-convert", "late inst-simplify", "a choice may be its condition, or one of its operands"),
    order("unswitch", "irce", "a loop without the branch is smaller, and twice"),
    order("vectorize", "slp", "whole iterations in lanes are more than neighbours in lanes"),
    order("slp", "strength-reduce", "neighbours are found by a base and an index"),
    order("slp", "unroll", "several iterations in a row would be taken for neighbours"),
    order("unroll-full", "slp", "iterations that are written out side by side are neighbours"),
    order(
        "reassociate",
        "bit inst-simplify",
        "the test of a remainder by two is one of a bit, which is a number",
    ),
    order("bit inst-simplify", "vectorize", "numbers need no masks"),
    order("vectorize", "strength-reduce", "lanes are found by a base and an index"),
    order("strength-reduce", "unroll", "each iteration steps from the address of the one before"),
    order(
        "late inst-simplify",
        "late strength-reduce",
        "a counter plus a sum of constants is a counter plus a constant",
    ),
    order(
        "strength-reduce",
        "polls",
        "counters are found in innermost loops, and these get loops around them",
    ),
    order("unroll", "polls", "a loop that polls rarely is two loops"),
    order("last simplify-cfg", "cold-blocks", "the mark is on the block, which may be merged"),
    order("polls", "last simplify-cfg", "blocks that lost their poll may be empty"),
    order("irce", "unroll", "a loop with checks has several exits"),
    order("unroll-full", "unroll", "a loop of few iterations is better written out"),
    order("unroll-full", "late inst-simplify", "counters are constants then"),
    order("inline", "cpu-features", "inlined bodies ask as well"),
    order("union-split", "early infer", "the results of operators on known types are known"),
    order(
        "early infer",
        "first inst-simplify",
        "a test of two values one of which is known is one of the other",
    ),
    order("first inst-simplify", "first simplify-cfg", "what is decided is a branch on a constant"),
    order("early infer", "first simplify-cfg", "what no path reaches is not copied into"),
    order("first simplify-cfg", "inline", "operands have their types, for which bodies are specialised"),
    order("inline", "infer", "the types of operands decide the tests of an inlined body"),
    order("infer", "sroa", "objects on paths that are never taken escape nowhere"),
    order("infer", "inst-simplify", "what is tested of a value is decided by its new type"),
    order("cpu-features", "inst-simplify", "an answer decides a branch"),
    order("strength-reduce", "address-fold", "what is left has no counter for an index"),
    order("slp", "address-fold", "neighbours are found by a base and an index"),
    order("address-fold", "late inst-simplify", "an index times one is the index"),
    order("address-fold", "late dce", "sums that moved into accesses may have lost their last use"),
    order("late gvn", "div-rem", "operands that are equal are one value then"),
    order("div-rem", "late inst-simplify", "products with constants have rules"),
    order("dse", "alloc-stack", "an object that is never read needs no place"),
    order("unroll", "alloc-stack", "copies of an iteration have objects of their own"),
    order("sink", "last simplify-cfg", "a block that nothing is left in may go"),
    order("vectorize", "muladd", "lanes have the product and the sum"),
    order("slp", "muladd", "lanes have the product and the sum"),
    order("muladd", "late dce", "the product may have lost its only use"),
    order("unroll", "late inst-simplify", "sums of sums of a counter are one sum"),
    order("irce", "last simplify-cfg", "blocks with checks end in jumps"),
    order("late inst-simplify", "last simplify-cfg", "conditions become constants, and their branches jumps"),
    order("last simplify-cfg", "late dce", "a branch that is folded needs its condition no more"),
    order("rotate", "late dce", "the copied head computes what only later iterations need"),
    order("late simplify-cfg", "late dce", "a branch that is folded needs its condition no more"),
    order("late inst-simplify", "late dce", "what a rule looked through may have lost its last use"),
    order("cse", "late dce", "operands of what was shared may have lost their last use"),
];

/// The pass with this name.
pub fn pass_named(name: &str) -> Result<&'static Pass, OptError> {
    let unknown =
        || OptError::UnknownPass { name: name.to_owned(), valid: PASSES.iter().map(|p| p.name).collect() };
    PASSES.iter().copied().find(|p| p.name == name).ok_or_else(unknown)
}

/// Reads a list of names between commas: the value of `--passes=`.
pub fn parse_passes(list: &str) -> Result<Vec<&'static Pass>, OptError> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(pass_named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;

    fn stages() -> Vec<(OptLevel, Level, Vec<Step>)> {
        let both = |level| [Level::High, Level::Low].map(|ir| (level, ir, stage(level, ir)));
        OptLevel::ALL.into_iter().flat_map(both).collect()
    }

    #[test]
    fn order_holds() {
        for order in ORDER {
            let mut seen = false;
            for (level, stage, steps) in stages() {
                let at = |label| steps.iter().position(|s| s.label == label);
                if let (Some(first), Some(then)) = (at(order.first), at(order.then)) {
                    seen = true;
                    assert!(
                        first < then,
                        "{level:?} {stage:?}: `{}` must come before `{}`, because {}",
                        order.first,
                        order.then,
                        order.because
                    );
                }
            }
            assert!(seen, "no pipeline has both `{}` and `{}`", order.first, order.then);
        }
    }

    #[test]
    fn pipelines_are_well_formed() {
        for (level, stage, steps) in stages() {
            for (n, step) in steps.iter().enumerate() {
                assert!(step.pass.level.takes(stage), "{level:?}: `{}` is not for {stage:?} IR", step.label);
                assert!(
                    step.label.ends_with(step.pass.name),
                    "`{}` does not say that it is `{}`",
                    step.label,
                    step.pass.name
                );
                assert!(steps[..n].iter().all(|s| s.label != step.label), "`{}` stands twice", step.label);
                let needs_loops = step.pass.needs.contains(&Fact::Loops);
                assert!(
                    needs_loops || !matches!(step.visit, Visit::Loops),
                    "`{}` does not look at loops",
                    step.label
                );
            }
            for pass in PASSES.iter().filter(|p| p.required && p.level.takes(stage)) {
                let name = pass.name;
                assert!(steps.iter().any(|s| s.pass.name == name), "{level:?} lacks `{name}`");
            }
        }
    }

    #[test]
    fn every_pass_runs_in_some_pipeline() {
        for pass in PASSES {
            let used = stages().iter().any(|(.., steps)| steps.iter().any(|s| s.pass.name == pass.name));
            assert!(used, "`{}` is in no pipeline", pass.name);
        }
    }

    #[test]
    fn lists_are_read_and_unknown_names_answered() {
        let names = |list| parse_passes(list).map(|l| l.iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(names("dce, simplify-cfg,dce").unwrap(), ["dce", "simplify-cfg", "dce"]);
        assert!(names("").unwrap().is_empty());
        let error = names("dce,fold").unwrap_err().to_string();
        assert!(error.starts_with("there is no pass `fold`; the passes are `bounds-fold`"), "{error}");
    }
}
