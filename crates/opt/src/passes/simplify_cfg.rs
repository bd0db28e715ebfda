//! Makes the control-flow graph smaller.
//!
//! ```text
//! branch true, a, b       ==>  goto a                      fold a known branch
//! branch c, a, a          ==>  goto a                      both ways are one
//! branch not_int(c), a, b ==>  branch c, b, a              no negation before a branch
//! (no path leads here)    ==>                              drop what is unreachable
//! p: branch c, e, q            p: branch c, t, q
//! e: goto t               ==>                              forward through an empty block
//! b: …; goto s            ==>  b: …; (all of s)            merge a straight line
//! φ (b => x)              ==>  x                           if b is the only way in
//! ```
//!
//! Phases, repeated for as long as they make work for each other, at most `MAX_ROUNDS` times: branches, unreachable blocks, empty
//! blocks, lines. Cost: each is linear in blocks, edges and φ: edges that disappear are taken from φ in one sweep at the end
//! of a phase, never one by one.
//!
//! Invariants. The entry stays the entry. An edge of an `enter` is never moved, so a handler keeps its one way in, and
//! what stands between `enter` and `leave` stays between them. No edge is led past a block into the head of a loop: the
//! block in front of a loop and the block that closes it stay, and reducible graphs stay reducible.
//!
//! Breaks every fact. Not done: threading of jumps over known φ (`jump-threading`); turning branches into `ifelse` (`if-convert`); dropping an `enter`
//! whose body cannot throw.

use crate::facts::Fact;
use crate::heads::{head_phis, rename_phi_blocks};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::borrow::Cow;

pub(crate) const PASS: Pass = Pass {
    name: "simplify-cfg",
    level: PassLevel::Both,
    required: false,
    needs: &[Fact::Cfg],
    breaks: &[Fact::Cfg, Fact::Uses],
    run,
};

/// One round does nearly all: a phase rarely makes work for an earlier one. Chains of empty blocks that end in φ need one
/// round for each φ block on the way, and are not worth more than this.
const MAX_ROUNDS: usize = 4;

/// Forwarding through an empty block with n ways in gives every φ of its target n - 1 more edges. Beyond this many new
/// edges the block stays, so that a function cannot grow quadratically.
const MAX_NEW_EDGES: usize = 16;

/// The graph as it is when a phase starts: that which the pass was given, for as long as nothing has changed.
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

    /// Blocks that an edge from a later block of the order leads to: loop heads, and what else must not get new ways in.
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

/// Whether a phase may have made work for those in front of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Work,
}

impl Left {
    fn work_if(any: bool) -> Left {
        if any { Left::Work } else { Left::Nothing }
    }
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    const PHASES: [fn(&mut Func, &Graph<'_>, &mut PassCx<'_>) -> Left; 3] =
        [drop_unreachable, forward_empty, merge_lines];
    let mut graph = Graph { cfg: Cow::Borrowed(cx.facts.cfg()), rpo: Cow::Borrowed(cx.facts.rpo()) };
    // How many rewrites had been made when the graph was as it is here.
    let mut seen = cx.rewrites();
    for _ in 0..MAX_ROUNDS {
        simplify_branches(func, cx);
        let mut left = Left::Nothing;
        for phase in PHASES {
            if cx.rewrites() != seen {
                (graph, seen) = (Graph::of(func), cx.rewrites());
            }
            if phase(func, &graph, cx) == Left::Work {
                left = Left::Work;
            }
        }
        if left == Left::Nothing {
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

/// `c` if the value is "not c". Only truth values of the high level are looked through: their complement is one operation.
fn negated(func: &Func, cond: Value) -> Option<Value> {
    let inst = func.def_inst(cond)?;
    let &[of] = func.args(inst) else { return None };
    let is_not = func.op(inst) == Op::Intrinsic(Intrinsic::NotInt) && func.ty(of) == Type::BOOL;
    // In code that is never reached a value may be its own negation.
    (is_not && of != cond).then_some(of)
}

/// Takes the edges out of φ that are no edges of the graph any more, and the ϒ out of φᶜ that are gone.
fn drop_stale_edges(func: &mut Func) {
    let cfg = Cfg::compute(func);
    // By block: the block whose φ were looked at last when this one was seen to lead there.
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

/// Branches do not change, and what has one way in now is seen by the phases to come.
fn drop_unreachable(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> Left {
    let dead: Vec<Block> = func.blocks().filter(|&b| !graph.rpo.is_reachable(b)).collect();
    // One unit for all: some of them alone would leave jumps to blocks that are gone.
    if dead.is_empty() || !cx.spend("sweeps of unreachable blocks") {
        return Left::Nothing;
    }
    cx.count("unreachable blocks", dead.len() as u64);
    for &block in &dead {
        // Out of the block as well, so that a ϒ in it is seen to be gone.
        while let Some(inst) = func.last_inst(block) {
            func.remove_inst(inst);
        }
        func.remove_block(block);
    }
    drop_stale_edges(func);
    Left::Nothing
}

// ----- empty blocks -----

/// Leads edges past empty blocks. Both ways of a branch may lead to one block then.
fn forward_empty(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> Left {
    if !graph.rpo.blocks().iter().any(|&block| empty_target(func, block).is_some()) {
        return Left::Nothing;
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
    Left::work_if(cx.rewrites() != before)
}

/// The target of a block that does nothing but continue.
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

/// Leads every edge (but those of `enter`) that goes to an empty block to the end of the chain of empty blocks that starts
/// there, as far as no φ hears of it.
fn forward_plain(func: &mut Func, graph: &Graph<'_>, heads: &SecondaryMap<Block, bool>, cx: &mut PassCx<'_>) {
    let rpo = &graph.rpo;
    let mut end: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    // Against the order a block's target comes first. A retreating edge leads into a loop head, where chains end.
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

/// Removes empty blocks that lead to a block with φ, if every way in can take over the value of the edge.
fn forward_into_phis(
    func: &mut Func,
    graph: &Graph<'_>,
    heads: &SecondaryMap<Block, bool>,
    cx: &mut PassCx<'_>,
) {
    let Graph { cfg, rpo } = graph;
    let mut leads_to: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    // By removed block: the block with φ that it led to.
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
            // Both targets of one branch cannot bring two values: each way in may come once only.
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

// ----- lines -----

/// Joins blocks of which the first always leads to the second, which nothing else leads to, and replaces φ of one edge, which may decide
/// branches.
fn merge_lines(func: &mut Func, graph: &Graph<'_>, cx: &mut PassCx<'_>) -> Left {
    let Graph { cfg, rpo } = graph;
    let mut values = Replacements::default();
    // By block that was taken in: the block that now ends as it did.
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut merged = false;
    // In this order a block is met before those that it takes in, so every instruction moves at most once.
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
    Left::work_if(values.any())
}

/// The jump that ends `block` and the block that it leads to, if that can be taken in.
fn only_successor(func: &Func, cfg: &Cfg, block: Block) -> Option<(Inst, Block)> {
    let jump = func.terminator(block).filter(|&t| func.op(t) == Op::Goto)?;
    let next = func.inst_blocks(jump).first().copied()?;
    let single = cfg.preds(next).len() == 1 && next != block && Some(next) != func.entry();
    single.then_some((jump, next))
}

/// Replaces the φ of a block with one way in by the value that comes that way.
fn replace_single_phis(func: &mut Func, cx: &mut PassCx<'_>, block: Block, values: &mut Replacements) {
    let phis: Vec<Inst> = head_phis(func, block).filter(|&i| func.op(i) == Op::Phi).collect();
    for phi in phis {
        let Some(result) = func.result(phi) else { return };
        if !cx.spend("φ of one edge") {
            return;
        }
        let value = match func.args(phi).first() {
            Some(&value) => value,
            // The value is undefined on the only way, so nothing looks at it.
            None => func.constant(Const::Undef(func.ty(result))),
        };
        values.set(result, value);
        func.remove_inst(phi);
    }
}
