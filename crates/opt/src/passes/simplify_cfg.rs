//! Simplifies the control-flow graph.
//!
//! ```text
//! branch true, a, b       ==>  goto a                      fold a known branch
//! branch c, a, a          ==>  goto a                      both targets are equal
//! branch not_int(c), a, b ==>  branch c, b, a              no negation before a branch
//! (no path leads here)    ==>                              remove unreachable blocks
//! p: branch c, e, q            p: branch c, t, q
//! e: goto t               ==>                              forward through an empty block
//! b: …; goto s            ==>  b: …; (all of s)            merge a block into its only predecessor
//! φ (b => x)              ==>  x                           if b is the only predecessor
//! ```
//!
//! Phases: branches, unreachable blocks, empty blocks, merging. They repeat while a later phase enables an earlier one, at
//! most `MAX_ITERATIONS` times. Cost: each is linear in blocks, edges and φ, because φ lose their stale edges in one sweep at
//! the end of a phase.
//!
//! Invariants. The entry stays the entry. An edge of an `enter` is never redirected, so a handler keeps its only
//! predecessor, and code between `enter` and `leave` stays between them. No edge is forwarded into a loop header:
//! preheaders and latches stay, and reducible graphs stay reducible.
//!
//! Breaks every fact. Not done: threading of jumps over known φ (`jump-threading`); turning branches into `ifelse`
//! (`if-convert`); removing an `enter` whose body cannot throw.

use crate::facts::Fact;
use crate::heads::{head_phis, rename_phi_blocks};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Block, Func, Inst, Op, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::borrow::Cow;

pub(crate) const PASS: Pass =
    Pass::new("simplify-cfg", PassLevel::Both, run).needs(&[Fact::Cfg]).breaks(&[Fact::Cfg, Fact::Uses]);

/// One iteration does nearly all: a phase rarely enables an earlier one. Chains of empty blocks that end in φ need an
/// iteration for each block with φ on the path; longer chains are rare.
const MAX_ITERATIONS: usize = 4;

/// Forwarding through an empty block with n predecessors adds n - 1 edges to every φ of its target. A block that would add
/// more edges stays, so that functions cannot grow quadratically.
const MAX_NEW_EDGES: usize = 16;
/// The most nested conjunctions that are examined for a truth value.
const MAX_PARTS: u32 = 4;

/// The graph at the start of a phase. Borrowed from the pass manager until the first change.
struct Graph<'a> {
    cfg: Cow<'a, Cfg>,
    rpo: Cow<'a, Rpo>,
}

impl Graph<'_> {
    fn of(func: &Func) -> Graph<'static> {
        let cfg = Cfg::compute(func);
        let rpo = Rpo::compute(&cfg);
        Graph { cfg: Cow::Owned(cfg), rpo: Cow::Owned(rpo) }
    }

    /// The targets of retreating edges: loop headers, and the entries of irreducible loops, which must not get new
    /// predecessors either.
    fn loop_heads(&self) -> SecondaryMap<Block, bool> {
        let Graph { cfg, rpo } = self;
        let mut heads = SecondaryMap::new();
        heads.resize(cfg.block_count());
        for &block in rpo.blocks() {
            let at = rpo.position(block);
            heads[block] = cfg.preds(block).iter().any(|&p| rpo.position(p).is_some_and(|p| Some(p) >= at));
        }
        heads
    }
}

/// Edits the function; returns whether an earlier phase may have work again.
type Phase = fn(&mut Func, &Graph<'_>, &mut PassCx<'_>) -> bool;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    const PHASES: [Phase; 3] = [drop_unreachable, forward_empty, merge_blocks];
    let mut graph = Graph { cfg: Cow::Borrowed(cx.facts.cfg()), rpo: Cow::Borrowed(cx.facts.rpo()) };
    // The number of rewrites when `graph` was computed.
    let mut seen = cx.rewrites();
    for _ in 0..MAX_ITERATIONS {
        simplify_branches(func, cx);
        let mut again = false;
        for phase in PHASES {
            if cx.rewrites() != seen {
                (graph, seen) = (Graph::of(func), cx.rewrites());
            }
            again |= phase(func, &graph, cx);
        }
        if !again {
            break;
        }
    }
    cx.changed()
}

// ----- branches -----

fn simplify_branches(func: &mut Func, cx: &mut PassCx<'_>) {
    let mut lost_edges = false;
    let mut at = func.entry();
    while let Some(block) = at {
        at = func.next_block(block);
        let Some(branch) = func.terminator(block).filter(|&t| func.op(t) == Op::Branch) else { continue };
        while let Some(positive) = negated(func, func.args(branch)[0]) {
            if !cx.spend("swapped branches") {
                return;
            }
            func.args_mut(branch)[0] = positive;
            func.swap_branch(branch);
        }
        let &[yes, no] = func.inst_blocks(branch) else { continue };
        let target = match func.as_bits(func.args(branch)[0]) {
            _ if yes == no => yes,
            Some(0) => no,
            Some(_) => yes,
            None => continue,
        };
        if !cx.spend("folded branches") {
            break;
        }
        func.set_op(branch, Op::Goto, &[]);
        func.set_inst_blocks(branch, &[target]);
        lost_edges |= yes != no;
    }
    if lost_edges {
        drop_stale_edges(func);
    }
}

/// `c` if the value is `not_int(c)` of a `Bool`, or in low IR `xor_int(c, 1)` of a value that is 0 or 1.
fn negated(func: &Func, cond: Value) -> Option<Value> {
    let inst = func.def_inst(cond)?;
    let of = match (func.op(inst), func.args(inst)) {
        (Op::Intrinsic(Intrinsic::NotInt), &[of]) if func.ty(of) == Type::BOOL => of,
        (Op::Intrinsic(Intrinsic::XorInt), &[of, one]) if is_truth(func, of, MAX_PARTS) => {
            (func.as_bits(one) == Some(1)).then_some(of)?
        }
        _ => return None,
    };
    // In unreachable code a value may be its own operand.
    (of != cond).then_some(of)
}

/// Whether a byte is 0 or 1: a comparison, or a conjunction or disjunction of such.
fn is_truth(func: &Func, value: Value, parts: u32) -> bool {
    let Some(inst) = func.def_inst(value).filter(|_| func.ty(value) == Type::I8 && parts > 0) else {
        return false;
    };
    match func.op(inst) {
        Op::Intrinsic(Intrinsic::AndInt | Intrinsic::OrInt) => {
            func.args(inst).iter().all(|&part| is_truth(func, part, parts - 1))
        }
        Op::Intrinsic(op) => matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare),
        _ => false,
    }
}

/// Removes φ edges that are not in the graph any more, and removed ϒ from φᶜ.
fn drop_stale_edges(func: &mut Func) {
    let cfg = Cfg::compute(func);
    // The last visited successor of each block: a predecessor test without clearing a set for every block.
    let mut leads_to: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut at = func.entry();
    while let Some(block) = at {
        at = func.next_block(block);
        for &pred in cfg.preds(block) {
            leads_to[pred] = block.into();
        }
        let phis: Vec<Inst> = head_phis(func, block).collect();
        for phi in phis {
            if func.op(phi) == Op::Phi {
                func.retain_phi_edges(phi, |pred, _| leads_to[pred] == block.into());
                continue;
            }
            let placed = |v: &Value| func.def_inst(*v).is_none_or(|def| func.inst_block(def).is_some());
            let args: Vec<Value> = func.args(phi).iter().copied().filter(placed).collect();
            if args.len() < func.args(phi).len() {
                func.set_op(phi, Op::PhiC, &args);
            }
        }
    }
}

// ----- unreachable blocks -----

/// Removes unreachable blocks. Never enables an earlier phase: no branch changes, and blocks that are left with one
/// predecessor concern later phases.
fn drop_unreachable(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> bool {
    let dead: Vec<Block> = func.blocks().filter(|&b| !graph.rpo.is_reachable(b)).collect();
    // One unit of fuel for all: removing only some would leave jumps to removed blocks.
    if dead.is_empty() || !cx.spend("sweeps of unreachable blocks") {
        return false;
    }
    cx.count("unreachable blocks", dead.len() as u64);
    for &block in &dead {
        // `drop_stale_edges` recognises a removed ϒ by its having no block.
        while let Some(inst) = func.last_inst(block) {
            func.remove_inst(inst);
        }
        func.remove_block(block);
    }
    drop_stale_edges(func);
    false
}

// ----- empty blocks -----

/// Redirects edges past empty blocks. Enables branch folding: both targets of a branch may become equal.
fn forward_empty(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> bool {
    if !graph.rpo.blocks().iter().any(|&block| empty_target(func, block).is_some()) {
        return false;
    }
    let heads = graph.loop_heads();
    let before = cx.rewrites();
    forward_plain(func, graph, &heads, cx);
    if cx.rewrites() == before {
        forward_into_phis(func, graph, &heads, cx);
    } else {
        let graph = Graph::of(func);
        forward_into_phis(func, &graph, &graph.loop_heads(), cx);
    }
    cx.rewrites() != before
}

/// The target of a block that consists of a `goto`.
fn empty_target(func: &Func, block: Block) -> Option<Block> {
    let inst = func.first_inst(block)?;
    if func.op(inst) != Op::Goto || func.entry() == Some(block) {
        return None;
    }
    func.inst_blocks(inst).first().copied().filter(|&target| target != block)
}

fn has_phi(func: &Func, block: Block) -> bool {
    head_phis(func, block).next().is_some()
}

/// Redirects every edge to an empty block, except edges of `enter`, to the end of the chain of empty blocks that starts
/// there. Chains end before blocks with φ.
fn forward_plain(func: &mut Func, graph: &Graph<'_>, heads: &SecondaryMap<Block, bool>, cx: &mut PassCx<'_>) {
    let rpo = &graph.rpo;
    let mut end: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    // In post-order the target of a block comes before it. Retreating edges lead to loop headers, where chains end.
    for &block in rpo.blocks().iter().rev() {
        let next = empty_target(func, block).filter(|&t| !heads[t] && !has_phi(func, t));
        end[block] = next.map(|t| end[t].expand().unwrap_or(t)).into();
    }
    for &block in rpo.blocks() {
        let Some(term) = func.terminator(block).filter(|&t| func.op(t) != Op::Enter) else { continue };
        for n in 0..func.inst_blocks(term).len() {
            if let Some(target) = end[func.inst_blocks(term)[n]].expand() {
                if !cx.spend("forwarded jumps") {
                    return;
                }
                let empty = std::mem::replace(&mut func.inst_blocks_mut(term)[n], target);
                func.move_loop_note(empty, target);
            }
        }
    }
}

/// Removes empty blocks before a block with φ, if every predecessor can take over the φ edge.
fn forward_into_phis(
    func: &mut Func,
    graph: &Graph<'_>,
    heads: &SecondaryMap<Block, bool>,
    cx: &mut PassCx<'_>,
) {
    let Graph { cfg, rpo } = graph;
    let mut leads_to: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    // The targets of removed blocks.
    let mut removed: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &target in rpo.blocks() {
        if heads[target] || !has_phi(func, target) {
            continue;
        }
        let preds = cfg.preds(target);
        for &pred in preds {
            leads_to[pred] = target.into();
        }
        let phis = head_phis(func, target).count();
        let mut any = false;
        for &empty in preds {
            if empty_target(func, empty) != Some(target) {
                continue;
            }
            let ways = cfg.preds(empty);
            let new_edges = ways.len().saturating_sub(1) * phis;
            let takes_over = |&way: &Block| {
                func.terminator(way).is_some_and(|t| func.op(t) != Op::Enter)
                    && leads_to[way] != target.into()
                    && rpo.is_reachable(way)
            };
            let fits = !ways.is_empty() && new_edges <= MAX_NEW_EDGES && ways.iter().all(takes_over);
            // A φ has one edge for each predecessor, so no predecessor may get a second edge to the target.
            let once = fits
                && ways
                    .iter()
                    .all(|&way| std::mem::replace(&mut leads_to[way], target.into()) != target.into());
            if !once || !cx.spend("forwarded empty blocks") {
                continue;
            }
            removed[empty] = target.into();
            any = true;
            for &way in ways {
                let term = func.terminator(way);
                for block in term.map(|t| func.inst_blocks_mut(t)).into_iter().flatten() {
                    if *block == empty {
                        *block = target;
                    }
                }
            }
            func.remove_block(empty);
        }
        if any {
            spread_edges(func, target, cfg, &removed);
        }
    }
}

/// Replaces each φ edge from a removed block by edges from all blocks that led to it.
fn spread_edges(
    func: &mut Func,
    target: Block,
    cfg: &Cfg,
    removed: &SecondaryMap<Block, PackedOption<Block>>,
) {
    let phis: Vec<Inst> = head_phis(func, target).collect();
    for phi in phis {
        let gone: Vec<(Block, Value)> =
            func.phi_edges(phi).filter(|&(b, _)| removed[b] == target.into()).collect();
        func.retain_phi_edges(phi, |b, _| removed[b] != target.into());
        for (empty, value) in gone {
            for &way in cfg.preds(empty) {
                func.add_phi_edge(phi, way, value);
            }
        }
    }
}

// ----- merging -----

/// Merges a block into its only predecessor, if that has no other successor. Replaces φ with one edge, which enables branch
/// folding.
fn merge_blocks(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> bool {
    let Graph { cfg, rpo } = graph;
    let mut values = Replacements::default();
    // By merged block: the block that has its terminator now.
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut merged = false;
    // In reverse post-order a block comes before the blocks merged into it, so an instruction moves at most once.
    for &block in rpo.blocks() {
        if !func.is_placed(block) {
            continue;
        }
        if let [_] = cfg.preds(block) {
            replace_single_phis(func, cx, block, &mut values);
        }
        while let Some((jump, next)) = only_successor(func, cfg, block) {
            replace_single_phis(func, cx, next, &mut values);
            if has_phi(func, next) || !cx.spend("merged blocks") {
                break;
            }
            func.remove_inst(jump);
            if let Some(first) = func.first_inst(next) {
                func.split_block(first, block);
            }
            func.remove_block(next);
            ends[next] = block.into();
            merged = true;
        }
    }
    values.apply(func, cx.context());
    if merged {
        rename_phi_blocks(func, &ends);
    }
    values.any()
}

/// The jump that ends `block` and its target, if the target can be merged into `block`.
fn only_successor(func: &Func, cfg: &Cfg, block: Block) -> Option<(Inst, Block)> {
    let jump = func.terminator(block).filter(|&t| func.op(t) == Op::Goto)?;
    let next = func.inst_blocks(jump).first().copied()?;
    let single = cfg.preds(next).len() == 1 && next != block && Some(next) != func.entry();
    single.then_some((jump, next))
}

/// Replaces the φ of a block with one predecessor by their operands.
fn replace_single_phis(func: &mut Func, cx: &mut PassCx<'_>, block: Block, values: &mut Replacements) {
    let phis: Vec<Inst> = head_phis(func, block).filter(|&i| func.op(i) == Op::Phi).collect();
    for phi in phis {
        let Some(result) = func.result(phi) else { return };
        if !cx.spend("φ of one edge") {
            return;
        }
        let value = match func.args(phi).first() {
            Some(&value) => value,
            // The value is undefined on the only edge, so it is not used.
            None => func.constant(Const::Undef(func.ty(result))),
        };
        values.set(result, value);
        func.remove_inst(phi);
    }
}
