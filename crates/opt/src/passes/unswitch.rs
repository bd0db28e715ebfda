//! Hoists branches with an invariant condition out of a loop.
//!
//! ```text
//! p: goto h                                p: goto a if c, else b
//! h: … goto x if c, else y          ==>    a: goto h'      h': … goto x' …      without the branch
//!                                          b: goto h       h:  … goto y …
//! ```
//!
//! The loop is copied; in each copy the branch is a jump. Branches out of the loop are decided together: if all of them stay inside, a copy without
//! them runs, otherwise the original loop, which is cold if each iteration tests. So tests in an iteration that its arrays are defined cost nothing,
//! and the code after them moves to the head. A conjunction with one invariant part leaves the other part in the copy: so
//! the test of both indices of a matrix becomes one of the variant index. A branch in an outer loop is taken once for many
//! iterations of the inner one, so loops with others inside are copied for branches in these that only throw: a field is
//! then tested to be defined once, before all of them. The loops inside a copied one are not visited. A loop is copied
//! once for each run of the pass: for the branches out of it, or for the first branch in reverse postorder, which decides
//! most.
//!
//! An innermost loop without such a branch is copied for a choice (`ifelse`) of an index by an invariant condition: a broadcast reads either the element of
//! each iteration or always the first. Loops that `unroll-full` will write out are left alone.
//!
//! The condition must be defined: it is where the program branches on it, but not necessarily before the loop.
//!
//! Cost: the copied instructions, at most [`MAX_COPIED`] for a loop, [`MAX_COPIED_FOR_EXITS`] for branches out of it, and [`MAX_GROWTH`] in a function.
//! Breaks the graph. Not done: disjunctions.

use crate::counted::{Shape, is_invariant};
use crate::facts::Fact;
use crate::loop_copy::{
    Escapes, Polls, copy_blocks, drop_pred, ins, is_copyable, jump_block, make_jump, rename_pred,
};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::passes::unroll_full::is_written_out;
use crate::ssa_repair::Repair;
use crate::undefined::WhenAsked;
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo, Use, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass::new("unswitch", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::DomTree, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// In longer loops a branch that is predicted costs little beside the rest.
const MAX_COPIED: usize = 60;
/// A loop without its invariant exits may be hoisted from and vectorised.
const MAX_COPIED_FOR_EXITS: usize = 160;
/// How many instructions all copies together may have.
const MAX_GROWTH: usize = 1000;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let tree = cx.facts.domtree();
    let undefined = WhenAsked::new(cfg, cx.facts.rpo());
    let mut repair = Repair::default();
    let mut growth = 0;
    let mut copied: Vec<Loop> = Vec::new();
    for l in loops.iter() {
        if func.is_cold(loops.header(l)) || copied.iter().any(|&around| loops.contains_loop(around, l)) {
            continue;
        }
        let Some(shape) = Shape::of(cfg, loops, l) else { continue };
        // Straight code has no invariant tests.
        if is_written_out(func, cx.types(), cfg, loops, l) {
            continue;
        }
        let innermost = loops.is_innermost(l);
        let choices = || loops.blocks(l).iter().filter_map(|&b| Choice::at(func, loops, &undefined, l, b));
        let leaves = |choice: &Choice| choice.stays(loops, l).is_some() && (innermost || choice.throws(func));
        let mut exits: Vec<Choice> = choices().filter(leaves).collect();
        if !innermost && exits.iter().all(|exit| loops.loop_of(exit.block) == Some(l)) {
            continue;
        }
        let select = || Choice::select(func, loops, uses, &undefined, l).filter(|_| innermost);
        let Some(first) = choices().next().or_else(select) else { continue };
        let limit = if exits.is_empty() { MAX_COPIED } else { MAX_COPIED_FOR_EXITS };
        // The outcome of a single one is known in both copies.
        let first = if let [Choice { rest: None, .. }] = exits[..] { exits.remove(0) } else { first };
        let Some(size) = is_copyable(func, cx.types(), loops, l).filter(|&size| size <= limit) else {
            continue;
        };
        if growth + size > MAX_GROWTH {
            continue;
        }
        if !cx.spend("unswitched loops") {
            break;
        }
        growth += size;
        copied.push(l);
        let escapes = Escapes::of(func, loops, uses, l);
        let blocks = loops.blocks(l);
        let copy = copy_blocks(func, blocks, shape.preheader, FxHashMap::default(), Polls::Copied);
        let yes = jump_block(func, shape.preheader, copy.block(shape.header));
        rename_pred(func, copy.block(shape.header), shape.preheader, yes);
        let before = func.prev_block(shape.header).unwrap_or(shape.preheader);
        let no = jump_block(func, before, shape.header);
        rename_pred(func, shape.header, shape.preheader, no);
        let condition = if exits.is_empty() {
            first.condition
        } else {
            all_stay(func, cx.types(), loops, l, shape.preheader, &exits)
        };
        if let Some(jump) = func.terminator(shape.preheader) {
            func.set_op(jump, Op::Branch, &[condition]);
            func.set_inst_blocks(jump, &[yes, no]);
            if let (true, Some(branch)) = (exits.is_empty(), func.terminator(first.block)) {
                func.copy_hint(branch, jump);
            }
        }
        // The original throws when it reaches one of the tests, or leaves in the first iteration.
        let asks_all = || exits.iter().all(|exit| tree.dominates(exit.block, shape.latch));
        let is_original_cold = match exits.is_empty() {
            true => first.stays(loops, l).is_some() && first.throws(func),
            false => !innermost || asks_all(),
        };
        if is_original_cold {
            func.set_cold(no);
            blocks.iter().for_each(|&block| func.set_cold(block));
        }
        for exit in &exits {
            let Choice { block, targets: [then, other], rest, .. } = *exit;
            if let (Some(rest), Some(branch)) = (rest, func.terminator(copy.block(block))) {
                func.set_op(branch, Op::Branch, &[copy.value(rest)]);
                continue;
            }
            let (stays, leaves) =
                if exit.stays(loops, l) == Some(true) { (then, other) } else { (other, then) };
            // Blocks outside were not copied.
            choose(func, copy.block(block), copy.block(stays), leaves);
        }
        if let Some(select) = first.select.filter(|_| exits.is_empty()) {
            let (chosen, twin) = (func.args(select).to_vec(), func.result(select));
            if let (&[_, yes, no], Some(value)) = (&chosen[..], twin) {
                let copied = blocks.iter().map(|&b| copy.block(b));
                use_instead(func, copied, copy.value(value), copy.value(yes));
                use_instead(func, blocks.iter().copied(), value, no);
            }
        } else if exits.is_empty() {
            let Choice { block, targets: [then, other], .. } = first;
            choose(func, copy.block(block), copy.block(then), copy.block(other));
            choose(func, block, other, then);
        }
        escapes.repair(&[copy], &mut repair);
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}

/// A branch on a value that does not change.
struct Choice {
    block: Block,
    condition: Value,
    targets: [Block; 2],
    /// The other part of the conjunction that the branch tests.
    rest: Option<Value>,
    /// The `ifelse` that chooses, if it is not a branch.
    select: Option<Inst>,
}

impl Choice {
    fn at(func: &Func, loops: &Loops, undefined: &WhenAsked<'_>, l: Loop, block: Block) -> Option<Choice> {
        let branch = func.terminator(block).filter(|&t| func.op(t) == Op::Branch)?;
        let (&[condition], &[a, b]) = (func.args(branch), func.inst_blocks(branch)) else { return None };
        if a == b {
            return None;
        }
        let fixed = |v: Value| {
            is_invariant(func, loops, l, v) && func.as_const(v).is_none() && !undefined.get(func).has(func, v)
        };
        let targets = [a, b];
        if fixed(condition) {
            return Some(Choice { block, condition, targets, rest: None, select: None });
        }
        let leaves_if_false = loops.contains(l, a) && !loops.contains(l, b);
        let and = func.def_inst(condition).filter(|_| leaves_if_false)?;
        let (Op::Intrinsic(Intrinsic::AndInt), &[x, y]) = (func.op(and), func.args(and)) else { return None };
        let (part, rest) = if fixed(x) { (x, y) } else { (y, x) };
        fixed(part).then_some(Choice { block, condition: part, targets, rest: Some(rest), select: None })
    }

    /// A choice between a value that changes and another, which nothing after the loop uses: the index of a broadcast, which stays where an array
    /// has one element.
    fn select(func: &Func, loops: &Loops, uses: &Uses, undefined: &WhenAsked<'_>, l: Loop) -> Option<Choice> {
        let insts =
            loops.blocks(l).iter().flat_map(|&block| func.block_insts(block).map(move |i| (block, i)));
        insts.filter(|&(_, inst)| func.op(inst) == Op::Builtin(Builtin::Ifelse)).find_map(|(block, inst)| {
            let (&[condition, yes, no], value) = (func.args(inst), func.result(inst)?) else { return None };
            let fixed = |v: Value| is_invariant(func, loops, l, v);
            let defined = |v: Value| !undefined.get(func).has(func, v);
            let inside = |one: &Use| func.inst_block(one.inst).is_some_and(|b| loops.contains(l, b));
            let decides = fixed(condition) && func.as_const(condition).is_none() && fixed(yes) != fixed(no);
            let usable = decides
                && func.ty(value) == Type::I64
                && [condition, yes, no].into_iter().all(defined)
                && uses.of(value).iter().all(inside);
            usable.then_some(Choice { block, condition, targets: [block; 2], rest: None, select: Some(inst) })
        })
    }
}

/// Replaces the uses of a value in some blocks.
fn use_instead(func: &mut Func, blocks: impl Iterator<Item = Block>, value: Value, by: Value) {
    for block in blocks {
        for inst in func.block_insts(block).collect::<Vec<_>>() {
            func.args_mut(inst).iter_mut().filter(|arg| **arg == value).for_each(|arg| *arg = by);
        }
    }
}

impl Choice {
    /// Whether the loop continues where the condition holds, if one target is outside.
    fn stays(&self, loops: &Loops, l: Loop) -> Option<bool> {
        match self.targets.map(|target| loops.contains(l, target)) {
            [true, false] => Some(true),
            [false, true] => Some(false),
            _ => None,
        }
    }

    /// Whether one target only throws.
    fn throws(&self, func: &Func) -> bool {
        self.targets
            .iter()
            .any(|&target| func.terminator(target).is_some_and(|end| func.op(end) == Op::Unreachable))
    }
}

/// Whether none of the branches leaves the loop, computed at the end of a block before it.
fn all_stay(func: &mut Func, types: &Types, loops: &Loops, l: Loop, block: Block, exits: &[Choice]) -> Value {
    let mut all: Option<Value> = None;
    for (n, exit) in exits.iter().enumerate() {
        if exits[..n]
            .iter()
            .any(|e| e.condition == exit.condition && e.stays(loops, l) == exit.stays(loops, l))
        {
            continue;
        }
        let stays = match exit.stays(loops, l) {
            Some(true) => exit.condition,
            _ => {
                let zero = func.bits(types, Type::I8, 0);
                ins(func, block, Intrinsic::EqInt, &[exit.condition, zero], Type::I8)
            }
        };
        all = Some(match all {
            None => stays,
            Some(all) => ins(func, block, Intrinsic::AndInt, &[all, stays], Type::I8),
        });
    }
    all.unwrap_or(exits[0].condition)
}

/// Lets a block always continue at one of its targets.
fn choose(func: &mut Func, block: Block, target: Block, other: Block) {
    if let Some(end) = func.terminator(block) {
        make_jump(func, end, target);
        drop_pred(func, other, block);
    }
}
