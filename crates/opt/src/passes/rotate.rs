//! Tests a loop's condition at the end of an iteration instead of at its beginning.
//!
//! ```text
//!     p                          p: h' ──────┐          h' is a copy of h, for the first iteration
//!     │                          │           │
//!     h <───┐                    q           │          q, the new preheader
//!    / \    │       ==>          │           │
//!   e   n   │                    n <───┐     │          n, the new head
//!       …   │                    …     │     │
//!       l ──┘                    l     │     │
//!                                h ────┘     │
//!                                └──> e <────┘
//! ```
//!
//! An iteration then takes one jump instead of two, and the instructions of `n` are executed whenever the preheader is, so that later
//! passes may move them there.
//!
//! A loop is rotated if it has a preheader, its head is one of its exits and no block that leads back is (then it has
//! been rotated, or ends in a test anyway; nor the block before it, if the exit of the head only throws). If the head does
//! not test a counter, its exit must not throw, and no test of a counter may precede the latch: passes compute
//! with counters, so the test of a counter ends the iteration, as in a search that leaves in the middle. The head has at
//! most [`MAX_COPIED`] instructions, none of them with a fixed place (a region of `gc_preserve_begin` ends once), and at
//! most [`MAX_HEIGHT`] levels of loops are inside. Values of the head have two definitions afterwards; `ssa_repair` rewrites
//! every use to the one that reaches it. A `safepoint` of the head is not copied; it moves to the new head, through which
//! every further iteration passes: between a body and its test it would keep Cranelift from combining values of the body
//! with their uses in the test.
//!
//! Before that, loads that an iteration makes for the next one move to the iteration that uses them (`rotate/carried_loads.rs`). The latch of such a
//! loop usually keeps only the step of a counter; then the loop is unchanged, and `indvars` puts the step before the test.
//!
//! All loops are rotated with one analysis of the graph. That is possible because nothing is copied twice: a block that ends in
//! a jump to a head is not a head that is rotated itself.
//!
//! Cost: the copied instructions, and the repair. Breaks the graph. Not done: heads without an exit; taking the better of
//! several exits.

mod carried_loads;

use crate::counted::{Shape, recurrences};
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::loop_copy::{jump_block, rename_pred, retarget};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Context, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass::new("rotate", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// A longer head is not copied. Heads of loops that people write have fewer than ten instructions; a call in one costs
/// more than the jump that would be saved.
const MAX_COPIED: usize = 16;

/// A latch with more instructions does not join the test before it.
const MAX_STEPS: usize = 8;

/// A loop with more levels of loops inside stays: the values of its head are used all over the body, and every block between
/// has to be visited for every such value. The saved jump is negligible compared with the inner iterations.
const MAX_HEIGHT: u32 = 8;

/// A loop that can be rotated.
struct Rotation {
    preheader: Block,
    header: Block,
    /// Where the next iteration continues.
    inside: Block,
    /// Where the loop is left.
    exit: Block,
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo, loops) = (cx.facts.cfg(), cx.facts.rpo(), cx.facts.loops());
    let reading = carried_loads::run(func, cx, cfg, rpo, loops);
    let mut repair = Repair::default();
    let mut rotated = Vec::new();
    let mut starts = Vec::new();
    let heights = heights(loops);
    for l in loops.iter().filter(|l| heights[l.index()] <= MAX_HEIGHT) {
        let Some(rotation) = candidate(func, cx.types(), cfg, loops, l) else { continue };
        if reading.contains(&rotation.header) && only_steps(func, cx.types(), rotation.inside) {
            continue;
        }
        if !cx.spend("rotated loops") {
            break;
        }
        starts.extend(rotate(func, cfg, &rotation, &mut repair));
        rotated.push(rotation.header);
    }
    if rotated.is_empty() {
        return cx.changed();
    }
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    repair.apply(func, cx.context(), &cfg, &rpo);
    drop_passed_on(func, cx.context(), &cfg, &rotated, &starts);
    Changed::Yes
}

/// By loop: how many levels of loops are inside.
fn heights(loops: &Loops) -> Vec<u32> {
    let mut heights = vec![0; loops.len()];
    for l in loops.iter().rev() {
        if let Some(parent) = loops.parent(l) {
            heights[parent.index()] = heights[parent.index()].max(heights[l.index()] + 1);
        }
    }
    heights
}

fn candidate(func: &Func, types: &Types, cfg: &Cfg, loops: &Loops, l: Loop) -> Option<Rotation> {
    let (preheader, header) = (loops.preheader(cfg, l)?, loops.header(l));
    let end = func.terminator(header).filter(|&t| func.op(t) == Op::Branch)?;
    let (inside, exit) = match *func.inst_blocks(end) {
        [a, b] if loops.contains(l, a) && !loops.contains(l, b) => (a, b),
        [a, b] if loops.contains(l, b) && !loops.contains(l, a) => (b, a),
        _ => return None,
    };
    let leaves = |block: Block| cfg.succs(block).iter().any(|&s| !loops.contains(l, s));
    // A check whose failure throws is better left where it is: the test that ends the loop precedes the latch already.
    let throws = func.terminator(exit).is_some_and(|t| func.op(t) == Op::Unreachable);
    let leaves_before = |latch: Block| cfg.single_pred(latch).filter(|&before| leaves(before));
    // A check that is not of a counter is better left where it is if it throws, or if the test that ends the loop precedes
    // the latch already.
    let ends_counting = |latch: Block| {
        let test = leaves_before(latch).and_then(|before| func.terminator(before));
        only_steps(func, types, latch) && test.is_some_and(|test| counts(func, cfg, loops, l, test))
    };
    if !counts(func, cfg, loops, l, end) && (throws || loops.latches(cfg, l).any(ends_counting)) {
        return None;
    }
    let is_rotated = |latch| leaves(latch) || throws && leaves_before(latch).is_some();
    if inside == header || loops.latches(cfg, l).any(is_rotated) {
        return None;
    }
    let copied = || func.block_insts(header).filter(|&i| is_copied(func, i)).take(MAX_COPIED + 1);
    let fixed = copied().any(|inst| effects(func, types, inst).pinned);
    (!fixed && copied().count() <= MAX_COPIED).then_some(Rotation { preheader, header, inside, exit })
}

/// Whether a condition compares a counter of the loop, or the sum of one and another value.
fn counts(func: &Func, cfg: &Cfg, loops: &Loops, l: Loop, branch: Inst) -> bool {
    let Some(shape) = Shape::of(cfg, loops, l) else { return false };
    let is_counter = |value: Value| recurrences(func, loops, &shape).any(|counter| counter.value == value);
    let is_sum = |value: Value| {
        func.def_inst(value).is_some_and(|def| {
            let adds = matches!(func.op(def), Op::Intrinsic(Intrinsic::AddInt | Intrinsic::SubInt));
            adds && func.args(def).iter().any(|&part| is_counter(part))
        })
    };
    let compared = func.args(branch).iter().filter_map(|&cond| func.def_inst(cond));
    let mut operands = compared.flat_map(|compare| func.args(compare));
    operands.any(|&value| is_counter(value) || is_sum(value))
}

/// Whether a block only computes a little and jumps.
fn only_steps(func: &Func, types: &Types, block: Block) -> bool {
    let steps = |inst| func.op(inst) == Op::Goto || effects(func, types, inst).may_be_hoisted();
    func.block_insts(block).take(MAX_STEPS + 1).count() <= MAX_STEPS && func.block_insts(block).all(steps)
}

/// Whether the first iteration needs its own copy of an instruction of the head.
fn is_copied(func: &Func, inst: Inst) -> bool {
    let op = func.op(inst);
    !op.is_terminator() && !matches!(op, Op::Phi | Op::Safepoint)
}

fn rotate(func: &mut Func, cfg: &Cfg, rotation: &Rotation, repair: &mut Repair) -> Vec<Inst> {
    let &Rotation { preheader, header, inside, exit } = rotation;
    let (Some(jump), Some(end)) = (func.terminator(preheader), func.terminator(header)) else {
        return Vec::new();
    };
    let (copies, starts) = copy_head(func, preheader, header, jump);
    let copied = |v: Value| copies.get(&v).copied().unwrap_or(v);

    // The new head must be a block of its own, entered from the copy and from the old head alone.
    let entered = if cfg.single_pred(inside) == Some(header) {
        inside
    } else {
        let between = jump_block(func, header, inside);
        retarget(func, end, inside, between);
        rename_pred(func, inside, header, between);
        between
    };
    let before = jump_block(func, preheader, entered);
    add_edges(func, entered, header, before, copied);
    add_edges(func, exit, header, preheader, copied);

    // The copy of the branch takes the place of the jump.
    let cond: Vec<Value> = func.args(end).iter().map(|&v| copied(v)).collect();
    let targets: Vec<Block> =
        func.inst_blocks(end).iter().map(|&t| if t == entered { before } else { t }).collect();
    func.set_op(jump, Op::Branch, &cond);
    func.set_inst_blocks(jump, &targets);
    func.copy_hint(end, jump);
    func.move_loop_note(header, entered);
    func.set_place(jump, func.place(end));

    let polls: Vec<Inst> = func.block_insts(header).filter(|&i| func.op(i) == Op::Safepoint).collect();
    for poll in polls {
        func.remove_inst(poll);
        Cursor::new(func).at_first_insertion_point(entered).place_inst(poll);
    }
    for phi in head_phis(func, header).collect::<Vec<_>>() {
        func.retain_phi_edges(phi, |block, _| block != preheader);
    }
    let made: Vec<Value> = func.block_insts(header).flat_map(|i| func.results(i)).collect();
    for value in made {
        repair.add(value, vec![(preheader, copied(value)), (header, value)]);
    }
    starts
}

/// Copies the head's computations to before `jump`, the end of the preheader. Also returns copies of the initial values of
/// the head's φ: these values may be variables of the repair themselves, and it only rewrites operands.
fn copy_head(
    func: &mut Func,
    preheader: Block,
    header: Block,
    jump: Inst,
) -> (FxHashMap<Value, Value>, Vec<Inst>) {
    let mut copies = FxHashMap::default();
    let mut starts = Vec::new();
    for phi in head_phis(func, header).collect::<Vec<_>>() {
        let Some(result) = func.result(phi) else { continue };
        let ty = func.ty(result);
        let start = func.phi_edges(phi).find(|&(block, _)| block == preheader).map(|(_, v)| v);
        // Without an edge the value is undefined in the first iteration.
        let start = start.unwrap_or_else(|| func.constant(Const::Undef(ty)));
        let copy = func.make_inst(Op::Copy, &[start], &[], &[ty]);
        func.set_place(copy, func.place(phi));
        func.insert_before(copy, jump);
        starts.push(copy);
        copies.extend(func.result(copy).map(|copy| (result, copy)));
    }
    let mut next = func.first_inst(header);
    while let Some(inst) = next {
        next = func.next_inst(inst);
        if !is_copied(func, inst) {
            continue;
        }
        let args: Vec<Value> = func.args(inst).iter().map(|v| copies.get(v).copied().unwrap_or(*v)).collect();
        let types: Vec<Type> = func.results(inst).map(|v| func.ty(v)).collect();
        let copy = func.make_inst(func.op(inst), &args, &[], &types);
        func.set_place(copy, func.place(inst));
        func.insert_before(copy, jump);
        copies.extend(func.results(inst).zip(func.results(copy)));
    }
    (copies, starts)
}

/// Adds an edge from `new` to the φ of a block, with the copy of the value from `old`.
fn add_edges(func: &mut Func, block: Block, old: Block, new: Block, copied: impl Fn(Value) -> Value) {
    for phi in head_phis(func, block).collect::<Vec<_>>() {
        let value = func.phi_edges(phi).find(|&(pred, _)| pred == old).map(|(_, v)| v);
        if let Some(value) = value {
            func.add_phi_edge(phi, new, copied(value));
        }
    }
}

/// Resolves the copies that `copy_head` made, and through the φ of heads that are now reached from one block alone.
fn drop_passed_on(func: &mut Func, cx: &Context, cfg: &Cfg, heads: &[Block], starts: &[Inst]) {
    let mut values = Replacements::default();
    let single = heads.iter().filter(|&&head| cfg.single_pred(head).is_some());
    let phis: Vec<Inst> = single.flat_map(|&head| head_phis(func, head)).collect();
    for &inst in phis.iter().chain(starts) {
        if let (&[value], Some(result)) = (func.args(inst), func.result(inst)) {
            values.set(result, value);
            func.remove_inst(inst);
        }
    }
    values.apply(func, cx);
}
