//! Moves what only an error path needs into the error path.
//!
//! ```text
//! 1: %1 = load(p)                      1: goto 2 if c, else 3
//!    %2 = mul_int(%1, x)               2: (cold) %1 = load(p)
//!    goto 2 if c, else 3     ==>             %2 = mul_int(%1, x)
//! 2: (cold) throw(%2)                        throw(%2)
//! 3: …                                 3: …
//! ```
//!
//! What stands in front of a branch is computed each time, and what a message or the arguments of a throw are made of is needed in
//! none of them. An instruction moves down if one way out of its block throws or is *cold*, nothing else leads
//! there, and all its uses lie behind it. Loads move if nothing behind them in the block may write what they read. Instructions are visited from the end of
//! the block, so that what they are computed from follows.
//!
//! Cost: one look at each block that ends in such a branch, and the uses of its instructions. Breaks the uses. Not done: ways that
//! are seldom taken but not cold; allocations; several cold ways that need the same. Sums that need no memory are placed by code generation.

use crate::alias::Aliases;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Op, Value};

pub(crate) const PASS: Pass = Pass {
    name: "sink",
    level: PassLevel::Low,
    required: false,
    needs: &[Fact::Cfg, Fact::DomTree, Fact::Uses],
    breaks: &[Fact::Uses],
    run,
};

/// Instructions that are looked at in front of a branch: what an error path needs is made shortly before.
const MAX_INSTS: usize = 32;

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
        let (Some(target), None, false) = (errors.next(), errors.next(), func.is_cold(block)) else {
            continue;
        };
        let aliases = aliases.get_or_insert_with(|| Aliases::of(func, cx.types(), rpo));
        if !sink(func, cx, aliases, block, target) {
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
    // What moved uses its operands in the target.
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

/// Whether an instruction may move over those behind it.
fn is_free(func: &Func, cx: &PassCx<'_>, aliases: &Aliases, inst: Inst, passed: &[Inst]) -> bool {
    let does = effects(func, cx.types(), inst);
    if !does.is_removable() || does.pinned || does.fence || does.may_safepoint || func.op(inst) == Op::Copy {
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

/// Whether something uses the results, and all of it stands in the target or behind it.
fn only_in(func: &Func, cx: &PassCx<'_>, target: Block, moved: &[Inst], inst: Inst) -> bool {
    let (tree, uses) = (cx.facts.domtree(), cx.facts.uses());
    let behind = |user: Inst, index: u32| {
        moved.contains(&user)
            || match func.op(user) {
                // A φ uses what comes over an edge where the edge begins.
                Op::Phi => {
                    func.inst_blocks(user).get(index as usize).is_some_and(|&b| tree.dominates(target, b))
                }
                _ => func.inst_block(user).is_some_and(|b| tree.dominates(target, b)),
            }
    };
    let results: Vec<Value> = func.results(inst).collect();
    results.iter().any(|&v| !uses.is_unused(v))
        && results.iter().all(|&v| uses.of(v).iter().all(|one| behind(one.inst, one.index)))
}
