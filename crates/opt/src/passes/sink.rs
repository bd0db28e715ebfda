//! Moves computations that only an error path needs into the error path.
//!
//! ```text
//! 1: %1 = load(p)                      1: goto 2 if c, else 3
//!    %2 = mul_int(%1, x)               2: (cold) %1 = load(p)
//!    goto 2 if c, else 3     ==>             %2 = mul_int(%1, x)
//! 2: (cold) throw(%2)                        throw(%2)
//! 3: …                                 3: …
//! ```
//!
//! Instructions before a branch are executed each time, and the parts of a message or of the arguments of a throw are rarely
//! needed. An instruction moves down if one successor of its block throws or is *cold*, has no other predecessor,
//! and dominates all uses. Loads move if nothing after them in the block may write their memory. Instructions are visited from the end of
//! the block, so that their operands follow.
//!
//! **Objects** move into the only successor that needs them, cold or not, with the stores that fill them: until it is passed on no other code sees an
//! object. They do not move over barriers of memory and handlers, nor into a block with a `write_barrier`, which a collection must not separate from its
//! store.
//!
//! ```text
//! 1: %1 = alloc(Failed)                1: goto 2 if c, else 3
//!    store(%1, x)               ==>    2: %1 = alloc(Failed)
//!    goto 2 if c, else 3                  store(%1, x)
//! 2: throw(%1)                            throw(%1)
//! ```
//!
//! Cost: one visit to the end of each block that ends in a branch, and the uses of its instructions. Breaks the uses. Not done: successors that
//! are rarely entered but not cold; several cold successors that need the same value. Code generation places sums that need no memory.

use crate::alias::Aliases;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::analysis::Use;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Op, Value};

pub(crate) const PASS: Pass = Pass::new("sink", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::DomTree, Fact::Uses])
    .breaks(&[Fact::Uses]);

/// Instructions that are examined before a branch: an error path's values are usually computed shortly before it.
const MAX_INSTS: usize = 32;

/// Whether there is an error path or an object, and a branch.
pub(crate) fn may_find(func: &Func) -> bool {
    let is_found = |inst| matches!(func.op(inst), Op::Unreachable | Op::Alloc(_) | Op::AllocStack(_));
    let in_block = |block| func.is_cold(block) || func.block_insts(block).any(is_found);
    func.blocks().nth(1).is_some() && func.blocks().any(in_block)
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo) = (cx.facts.cfg(), cx.facts.rpo());
    let mut aliases = None;
    for &block in rpo.blocks() {
        let targets = match func.terminator(block).map(|end| (func.op(end), func.inst_blocks(end))) {
            Some((Op::Branch, &[a, b])) if a != b => [a, b],
            _ => continue,
        };
        let is_error = |&target: &Block| {
            let throws = func.terminator(target).is_some_and(|end| func.op(end) == Op::Unreachable);
            (throws || func.is_cold(target)) && cfg.single_pred(target) == Some(block)
        };
        let mut errors = targets.into_iter().filter(is_error);
        if let (Some(target), None, false) = (errors.next(), errors.next(), func.is_cold(block)) {
            let aliases = aliases.get_or_insert_with(|| Aliases::of(func, cx.types(), rpo));
            if !sink(func, cx, aliases, block, target) {
                break;
            }
        }
        if !objects(func, cx, block, targets) {
            break;
        }
    }
    cx.changed()
}

/// False if there was no fuel left.
fn sink(func: &mut Func, cx: &mut PassCx<'_>, aliases: &Aliases, block: Block, target: Block) -> bool {
    let mut passed: Vec<Inst> = Vec::new();
    let mut at = func.terminator(block).and_then(|end| func.prev_inst(end));
    let mut seen = 0;
    // A moved instruction uses its operands in the target.
    let mut moved: Vec<Inst> = Vec::new();
    while let Some(inst) = at.filter(|_| seen < MAX_INSTS) {
        at = func.prev_inst(inst);
        seen += 1;
        if !is_free(func, cx, aliases, inst, &passed) || !only_in(func, cx, target, &moved, inst) {
            passed.push(inst);
            continue;
        }
        if !cx.spend("moved into error paths") {
            return false;
        }
        func.remove_inst(inst);
        Cursor::new(func).at_first_insertion_point(target).place_inst(inst);
        moved.push(inst);
    }
    true
}

/// Whether an instruction may move past later ones.
fn is_free(func: &Func, cx: &PassCx<'_>, aliases: &Aliases, inst: Inst, passed: &[Inst]) -> bool {
    let does = effects(func, cx.types(), inst);
    if !does.is_removable() || does.pinned || does.fence || does.may_safepoint || func.op(inst) == Op::Copy {
        return false;
    }
    // An object on the stack may reuse the memory of one that is read for the last time, even if that one never changes.
    let is_read = !does.reads.is_empty() || matches!(func.op(inst), Op::Load(_) | Op::TypeOf);
    if is_read && passed.iter().any(|&other| matches!(func.op(other), Op::AllocStack(_))) {
        return false;
    }
    if does.reads.is_empty() {
        return true;
    }
    let Some(read) = aliases.access(func, cx.types(), inst) else { return false };
    passed.iter().all(|&other| {
        let over = effects(func, cx.types(), other);
        !over.fence && !aliases.may_write(func, cx.types(), other, &over, &read)
    })
}

/// Whether the results have uses, all of them in the target or dominated by it.
fn only_in(func: &Func, cx: &PassCx<'_>, target: Block, moved: &[Inst], inst: Inst) -> bool {
    let uses = cx.facts.uses();
    let behind = |one: &Use| moved.contains(&one.inst) || is_behind(func, cx, target, *one);
    let results: Vec<Value> = func.results(inst).collect();
    results.iter().any(|&v| !uses.is_unused(v)) && results.iter().all(|&v| uses.of(v).iter().all(behind))
}

/// Whether a use is in the target or dominated by it.
fn is_behind(func: &Func, cx: &PassCx<'_>, target: Block, one: Use) -> bool {
    let tree = cx.facts.domtree();
    match func.op(one.inst) {
        // A φ uses its operands at the ends of the predecessors.
        Op::Phi => {
            func.inst_blocks(one.inst).get(one.index as usize).is_some_and(|&b| tree.dominates(target, b))
        }
        _ => func.inst_block(one.inst).is_some_and(|b| tree.dominates(target, b)),
    }
}

/// Moves the objects that only one of the successors needs. False if there was no fuel left.
fn objects(func: &mut Func, cx: &mut PassCx<'_>, block: Block, targets: [Block; 2]) -> bool {
    let mut end: Vec<Inst> = Vec::new();
    let mut at = func.terminator(block).and_then(|end| func.prev_inst(end));
    while let Some(inst) = at.filter(|_| end.len() < MAX_INSTS) {
        let does = effects(func, cx.types(), inst);
        if does.pinned || does.fence {
            break;
        }
        end.push(inst);
        at = func.prev_inst(inst);
    }
    let is_object = |inst: &Inst| matches!(func.op(*inst), Op::Alloc(_) | Op::AllocStack(_));
    let made: Vec<Inst> = end.iter().copied().filter(is_object).collect();
    // From the last one: an object that holds another moves first.
    for object in made {
        let found =
            targets.into_iter().find_map(|target| Some((target, filling(func, cx, block, target, object)?)));
        let Some((target, stores)) = found else { continue };
        if !cx.spend("objects moved to where they are needed") {
            return false;
        }
        // In reverse order, each to the top.
        let group = end.iter().filter(|&inst| *inst == object || stores.contains(inst));
        for &inst in group {
            func.remove_inst(inst);
            Cursor::new(func).at_first_insertion_point(target).place_inst(inst);
        }
    }
    true
}

/// The stores that fill an object, if only they and the target use it.
fn filling(func: &Func, cx: &PassCx<'_>, block: Block, target: Block, object: Inst) -> Option<Vec<Inst>> {
    let value = func.result(object)?;
    if cx.facts.cfg().single_pred(target) != Some(block) {
        return None;
    }
    let mut stores = Vec::new();
    let mut is_needed = false;
    for &one in cx.facts.uses().of(value) {
        let fills = one.index == 0 && matches!(func.op(one.inst), Op::Store(_));
        if is_behind(func, cx, target, one) {
            is_needed = true;
        } else if fills && func.inst_block(one.inst) == Some(block) {
            stores.push(one.inst);
        } else {
            return None;
        }
    }
    let has_barrier = func.block_insts(target).any(|inst| func.op(inst) == Op::WriteBarrier);
    (is_needed && !has_barrier).then_some(stores)
}
