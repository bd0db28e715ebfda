//! Redirects an edge past a branch whose outcome is known on it.
//!
//! ```text
//! 1: branch c, 2, 3                                    1: branch c, 2, 5'
//! 2: %1 = slt_int(x, y); goto 3'                       2: %1 = slt_int(x, y); goto 3'
//! 3': %2 = φ (1 => false, 2 => %1)             ==>     3': branch %1, 4, 5
//!     branch %2, 4, 5                                  5': (a copy of 3', for the edge from 1); goto 5
//! ```
//!
//! The outcome is known on an edge if the condition is a constant there: a φ has a constant operand, or it is computed in
//! the block from constants and such φ; or if a branch on the path tested the same condition. The edges that lead to one
//! target share one copy of the block, which ends in a jump to it. The values of the block then have two definitions, and
//! `ssa_repair` repairs the uses.
//!
//! A block that has nothing but φ, one of which brings a constant to such a condition, is removed first: its edges lead to the test, and the next run threads them.
//!
//! Not threaded: through heads of loops to their bodies, where a path around the test is another loop (an edge that leaves the loop by its head may leave it at
//! once); through blocks with instructions that must not be
//! copied (calls, fences, operations on the task) or with too many; from `enter`. A block takes part in one rewrite of a run at most, but several may lead
//! to one target.
//!
//! Cost: one visit to each block with a branch and each of its edges; the copied code is bounded for a block and for the function.
//! Breaks every fact. Not done: conditions that follow from another one; loads with a known value.

use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::rules::evaluate;
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Cfg, Rpo, Uses};
use brolga_ir::constant::Const;
use brolga_ir::effects::effects;
use brolga_ir::scalar::Outcome;
use brolga_ir::{Block, Func, Inst, Op, Type, Value};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass::new("jump-threading", PassLevel::Both, run)
    .needs(&[Fact::Cfg, Fact::Loops])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// Instructions of a block besides φ that may be copied: the test itself and little more. A copy costs its size in code and
/// saves one branch.
const MAX_COPIED: usize = 6;

/// φ of a block: each becomes two. A loop over two iterators carries a state, a value and three flags for each.
const MAX_PHIS: usize = 16;

/// Incoming edges of a block that are examined.
const MAX_WAYS: usize = 16;

/// Operations between a condition and the constants that it is computed from.
const MAX_STEPS: u32 = 4;

/// Branches above an edge that may have tested the same condition.
const MAX_ABOVE: usize = 8;

/// The limit of copies: an eighth of the function, and this.
const MIN_GROWTH: usize = 64;

/// Whether a block branches on a flag that is a φ of its own and gets a constant, or on the negation of one: a quick look
/// for a second run.
pub(crate) fn may_find(func: &Func) -> bool {
    func.blocks().any(|block| {
        let may_be_known = |&value: &Value| {
            let passed_on = func.def_inst(value).filter(|&inst| func.op(inst) == Op::Phi);
            func.as_const(value).is_some() || passed_on.is_some_and(|phi| has_constant(func, phi))
        };
        flag_of(func, block).is_some_and(|phi| func.args(phi).iter().any(may_be_known))
    })
}

/// The φ of a block, a truth value, that its branch tests, perhaps its opposite. A φ of numbers with a constant would be the counter of a loop.
fn flag_of(func: &Func, block: Block) -> Option<Inst> {
    let end = func.terminator(block).filter(|&end| func.op(end) == Op::Branch)?;
    let own = |value: Value| func.def_inst(value).filter(|&inst| func.inst_block(inst) == Some(block));
    let cond = own(func.args(end)[0])?;
    let phi = match (func.op(cond), func.args(cond)) {
        (Op::Phi, _) => Some(cond),
        (Op::Intrinsic(_), &[first, ..]) => own(first).filter(|&inst| func.op(inst) == Op::Phi),
        _ => None,
    };
    phi.filter(|&phi| func.result(phi).is_some_and(|v| matches!(func.ty(v), Type::I8 | Type::BOOL)))
}

fn has_constant(func: &Func, phi: Inst) -> bool {
    func.args(phi).iter().any(|&v| func.as_const(v).is_some())
}

/// Whether a φ has a constant truth value on some edge: a quick test, wherever the branch is.
pub(crate) fn has_flags(func: &Func) -> bool {
    func.blocks().flat_map(|block| head_phis(func, block)).any(|phi| {
        let is_flag = func.result(phi).is_some_and(|v| matches!(func.ty(v), Type::I8 | Type::BOOL));
        is_flag && func.args(phi).len() > 1 && func.args(phi).iter().any(|&v| func.as_bits(v).is_some())
    })
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    // The graph is another one then: the next run threads.
    if open_joins(func, cx) {
        return Changed::Yes;
    }
    let (rpo, loops) = (cx.facts.rpo(), cx.facts.loops());
    let mut repair = Repair::default();
    // Blocks that were copied or whose jump has changed; blocks that got another way in.
    let (mut used, mut reached): (EntitySet<Block>, EntitySet<Block>) = (EntitySet::new(), EntitySet::new());
    let mut growth = MIN_GROWTH + func.inst_count() / 8;
    for &block in rpo.blocks() {
        let Some(size) = copied_size(func, cx, block) else { continue };
        if used.contains(block) || reached.contains(block) || func.entry() == Some(block) {
            continue;
        }
        let inside = loops.loop_of(block).filter(|_| loops.is_header(block));
        let may_lead_to = |target| inside.is_none_or(|l| !loops.contains(l, target));
        let threads = threads(func, cx, block);
        let mut copies = Vec::new();
        for (ways, target) in threads.into_iter().filter(|(ways, to)| !ways.is_empty() && may_lead_to(*to)) {
            let busy = used.contains(target) || ways.iter().any(|&b| used.contains(b) || reached.contains(b));
            if busy || target == block || size > growth || !cx.spend("threaded jumps") {
                continue;
            }
            growth -= size;
            used.insert(block);
            reached.insert(target);
            ways.iter().for_each(|&way| {
                used.insert(way);
            });
            copies.push(copy(func, block, &ways, target));
        }
        for value in func.block_insts(block).flat_map(|i| func.results(i)).collect::<Vec<_>>() {
            let made = copies.iter().map(|(b, values)| (*b, values.get(&value).copied().unwrap_or(value)));
            let defs: Vec<(Block, Value)> = made.chain([(block, value)]).collect();
            if defs.len() > 1 {
                repair.add(value, defs);
            }
        }
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        let rpo = Rpo::compute(&cfg);
        repair.apply(func, cx.context(), &cfg, &rpo);
    }
    cx.changed()
}

/// Removes blocks that only join edges before the test of a flag of which some bring a constant: the end of an iteration, where one side has found the end of a
/// range, leads to the head of the loop. Returns whether it did.
fn open_joins(func: &mut Func, cx: &mut PassCx<'_>) -> bool {
    let (cfg, rpo) = (cx.facts.cfg(), cx.facts.rpo());
    let mut uses = None;
    let mut changed: EntitySet<Block> = EntitySet::new();
    for &block in rpo.blocks() {
        let Some(flag) = flag_of(func, block).filter(|_| copied_size(func, cx, block).is_some()) else {
            continue;
        };
        for &join in cfg.preds(block).iter().take(MAX_WAYS).filter(|&&join| rpo.is_reachable(join)) {
            let sources = cfg.preds(join);
            let near = sources.iter().chain([&block, &join]).any(|&b| changed.contains(b));
            if near || !is_join(func, cfg, (join, block), flag) {
                continue;
            }
            let uses = uses.get_or_insert_with(|| Uses::compute(func));
            let only_there = |value: Value| {
                uses.of(value).iter().all(|one| {
                    func.op(one.inst) == Op::Phi
                        && func.inst_block(one.inst) == Some(block)
                        && func.phi_edges(one.inst).all(|(from, v)| v != value || from == join)
                })
            };
            if !head_phis(func, join).flat_map(|phi| func.result(phi)).all(only_there) {
                continue;
            }
            if !cx.spend("opened joins") {
                return !changed.is_empty();
            }
            for &b in sources.iter().chain([&block, &join]) {
                changed.insert(b);
            }
            open_join(func, sources, join, block);
        }
    }
    !changed.is_empty()
}

/// Whether a block has nothing but φ, one of which brings a constant to the flag of its successor, and both have no predecessor in common.
fn is_join(func: &Func, cfg: &Cfg, (join, block): (Block, Block), flag: Inst) -> bool {
    let sources = cfg.preds(join);
    let ends_in_jump = |&b: &Block| {
        func.terminator(b).is_some_and(|t| matches!(func.op(t), Op::Goto | Op::Branch))
            && sources.iter().filter(|&&other| other == b).count() == 1
            && !cfg.preds(block).contains(&b)
    };
    let brings = func.phi_edges(flag).find(|&(from, _)| from == join).and_then(|(_, v)| func.def_inst(v));
    let brings_constant = brings.is_some_and(|phi| {
        func.op(phi) == Op::Phi && func.inst_block(phi) == Some(join) && has_constant(func, phi)
    });
    brings_constant
        && join != block
        && func.entry() != Some(join)
        && func.block_insts(join).all(|inst| matches!(func.op(inst), Op::Phi | Op::Goto))
        && (2..=MAX_WAYS).contains(&sources.len())
        && sources.iter().all(ends_in_jump)
}

fn open_join(func: &mut Func, sources: &[Block], join: Block, block: Block) {
    for phi in head_phis(func, block).collect::<Vec<_>>() {
        let Some((_, value)) = func.phi_edges(phi).find(|&(from, _)| from == join) else { continue };
        let joined = func.def_inst(value).filter(|&made| func.inst_block(made) == Some(join));
        let brought: Vec<(Block, Value)> = match joined {
            Some(made) => func.phi_edges(made).collect(),
            None => sources.iter().map(|&source| (source, value)).collect(),
        };
        func.retain_phi_edges(phi, |from, _| from != join);
        brought.into_iter().for_each(|(source, value)| func.add_phi_edge(phi, source, value));
    }
    for &source in sources {
        let Some(jump) = func.terminator(source) else { continue };
        for to in func.inst_blocks_mut(jump).iter_mut().filter(|to| **to == join) {
            *to = block;
        }
    }
    while let Some(inst) = func.last_inst(join) {
        func.remove_inst(inst);
    }
    func.remove_block(join);
}

/// How much would be copied of a block that ends in a branch; `None` if it must not be or is too much.
fn copied_size(func: &Func, cx: &PassCx<'_>, block: Block) -> Option<usize> {
    let end = func.terminator(block).filter(|&t| func.op(t) == Op::Branch)?;
    let &[yes, no] = func.inst_blocks(end) else { return None };
    if yes == no || func.as_const(func.args(end)[0]).is_some() {
        return None;
    }
    let (mut size, mut phis) = (0, 0);
    for inst in func.block_insts(block).take_while(|&i| i != end) {
        if func.op(inst) == Op::Phi {
            phis += 1;
        } else if func.op(inst) == Op::Safepoint {
            // A poll in the head of a loop: each path still has one.
            size += 1;
        } else {
            let does = effects(func, cx.types(), inst);
            if does.pinned || does.fence || !does.terminates || does.may_safepoint || !does.notaskstate {
                return None;
            }
            size += 1;
        }
        if size > MAX_COPIED || phis > MAX_PHIS {
            return None;
        }
    }
    Some(size + phis)
}

/// The predecessors of a block from which its branch is known to take its first target, and its second.
fn threads(func: &mut Func, cx: &PassCx<'_>, block: Block) -> [(Vec<Block>, Block); 2] {
    let cfg = cx.facts.cfg();
    let end = func.terminator(block);
    let (cond, targets) = match end.map(|t| (func.args(t), func.inst_blocks(t))) {
        Some((&[cond], &[yes, no])) => (cond, [yes, no]),
        _ => return [(Vec::new(), block), (Vec::new(), block)],
    };
    let mut ways: [Vec<Block>; 2] = [Vec::new(), Vec::new()];
    let preds = cfg.preds(block);
    for &pred in preds.iter().take(MAX_WAYS).filter(|&&p| cx.facts.rpo().is_reachable(p)) {
        let jump = func.terminator(pred).filter(|&t| matches!(func.op(t), Op::Goto | Op::Branch));
        let once = preds.iter().filter(|&&p| p == pred).count() == 1;
        if jump.is_none() || !once || pred == block {
            continue;
        }
        if let Some(truth) = outcome(func, cx, cond, (pred, block)) {
            ways[usize::from(!truth)].push(pred);
        }
    }
    let [yes, no] = ways;
    [(yes, targets[0]), (no, targets[1])]
}

/// The value of a condition in a block that was entered over this edge.
fn outcome(func: &mut Func, cx: &PassCx<'_>, cond: Value, way: (Block, Block)) -> Option<bool> {
    let value = constant_on(func, cx, cond, way, MAX_STEPS)?;
    func.as_bits(value).map(|bits| bits != 0)
}

/// The constant that a value is in a block that was entered over this edge.
fn constant_on(
    func: &mut Func,
    cx: &PassCx<'_>,
    value: Value,
    (pred, block): (Block, Block),
    steps: u32,
) -> Option<Value> {
    if func.as_const(value).is_some() {
        return (!is_undefined(func, value)).then_some(value);
    }
    let steps = steps.checked_sub(1)?;
    let Some(inst) = func.def_inst(value).filter(|&i| func.inst_block(i) == Some(block)) else {
        let truth = tested(func, cx, value, (pred, block))?;
        let ty = func.ty(value);
        return Some(func.bits(cx.types(), ty, u128::from(truth)));
    };
    match func.op(inst) {
        Op::Phi => {
            let value = func.phi_edges(inst).find(|&(b, _)| b == pred).map(|(_, v)| v)?;
            if func.as_const(value).is_some() {
                return (!is_undefined(func, value)).then_some(value);
            }
            let truth = tested(func, cx, value, (pred, block))?;
            let ty = func.ty(value);
            Some(func.bits(cx.types(), ty, u128::from(truth)))
        }
        Op::Intrinsic(op) if op.is_pure() && func.results(inst).len() == 1 => {
            let args: Vec<Value> = func.args(inst).to_vec();
            let mut constants = Vec::with_capacity(args.len());
            for arg in args {
                constants.push(constant_on(func, cx, arg, (pred, block), steps)?);
            }
            let Outcome::One(result) = evaluate(func, cx.types(), inst, &constants)? else { return None };
            let ty = func.ty(value);
            Some(func.bits(cx.types(), ty, result.bits()))
        }
        _ => None,
    }
}

fn is_undefined(func: &Func, value: Value) -> bool {
    matches!(func.as_const(value), Some(Const::Undef(_)))
}

/// The value of a condition as established by a branch above the edge.
fn tested(func: &Func, cx: &PassCx<'_>, cond: Value, (from, to): (Block, Block)) -> Option<bool> {
    // Only truth values are tested.
    if !matches!(func.ty(cond), Type::I8 | Type::BOOL) {
        return None;
    }
    let (mut from, mut to) = (from, to);
    for _ in 0..MAX_ABOVE {
        if let Some(end) = func.terminator(from)
            && let (Op::Branch, &[on], &[yes, no]) = (func.op(end), func.args(end), func.inst_blocks(end))
            && on == cond
            && yes != no
        {
            // An edge that this run has redirected is not among the targets any more: then nothing is known.
            return (to == yes || to == no).then_some(to == yes);
        }
        // A value of the block itself is not available before it.
        if func.def_inst(cond).and_then(|def| func.inst_block(def)) == Some(from) {
            return None;
        }
        (from, to) = (cx.facts.cfg().single_pred(from)?, from);
    }
    None
}

/// Copies a block for some of its incoming edges, with a jump to `target` at the end. Returns the copy and its values by the
/// block's values.
fn copy(func: &mut Func, block: Block, ways: &[Block], target: Block) -> (Block, FxHashMap<Value, Value>) {
    let twin = func.make_block();
    func.insert_block_after(twin, block);
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    let mapped = |values: &FxHashMap<Value, Value>, v: Value| values.get(&v).copied().unwrap_or(v);
    for &way in ways {
        let Some(jump) = func.terminator(way) else { continue };
        for to in func.inst_blocks_mut(jump).iter_mut().filter(|to| **to == block) {
            *to = twin;
        }
    }
    let insts: Vec<Inst> = func.block_insts(block).collect();
    for inst in insts {
        let types: Vec<Type> = func.results(inst).map(|v| func.ty(v)).collect();
        let made = match func.op(inst) {
            Op::Phi => {
                let edges: Vec<(Block, Value)> =
                    func.phi_edges(inst).filter(|(b, _)| ways.contains(b)).collect();
                let phi = func.make_inst(Op::Phi, &[], &[], &types);
                // All φ of a block read the values before any of them.
                edges.into_iter().for_each(|(way, value)| func.add_phi_edge(phi, way, value));
                func.retain_phi_edges(inst, |b, _| !ways.contains(&b));
                phi
            }
            op if op.is_terminator() => func.make_inst(Op::Goto, &[], &[target], &[]),
            op => {
                let args: Vec<Value> = func.args(inst).iter().map(|&v| mapped(&values, v)).collect();
                func.make_inst(op, &args, &[], &types)
            }
        };
        func.set_place(made, func.place(inst));
        func.append_inst(made, twin);
        values.extend(func.results(inst).zip(func.results(made)));
    }
    for phi in head_phis(func, target).collect::<Vec<_>>() {
        let value = func.phi_edges(phi).find(|&(b, _)| b == block).map(|(_, v)| v);
        if let Some(value) = value.filter(|_| func.op(phi) == Op::Phi) {
            func.add_phi_edge(phi, twin, mapped(&values, value));
        }
    }
    (twin, values)
}
