//! Removal of redundant write barriers.
//!
//! A barrier tests whether the parent is old. It is redundant if no child can be young and reachable only
//! through the parent, that is, if all are permanent, null or the parent itself; or if the parent was
//! allocated since the last safepoint, and so cannot be old:
//!
//! ```text
//!   %1 = alloc(Node)              no safepoint on any path from here …
//!   store(%1, %2)
//!   write_barrier(%1, %2)         … to here: removed
//!   invoke f()
//!   write_barrier(%1, %3)         stays
//! ```
//!
//! A child that a permanent object refers to is not considered permanent: the reference may be overwritten.
//!
//! Cost: linear, except for parents allocated in another block, for which at most [`MAX_BLOCKS`] are visited.

use crate::bases::{Base, Bases};
use crate::flow::{Flow, is_safepoint};
use crate::refine::Refinements;
use brolga_ir::{Block, Context, Func, Inst, Op, Value};
use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

/// Barriers whose parent is further away are kept.
const MAX_BLOCKS: usize = 32;

/// The barriers of a function, and which of them are removed.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    pub(crate) gone: EntitySet<Inst>,
    pub(crate) removed: usize,
    pub(crate) kept: usize,
}

impl Barriers {
    pub(crate) fn compute(
        func: &Func,
        cx: &Context,
        bases: &Bases,
        refinements: &Refinements,
        flow: &Flow,
    ) -> Barriers {
        let mut all = Barriers::default();
        let mut barriers: Vec<(Block, Inst)> = Vec::new();
        // The number of earlier safepoints in the block; and the number in the whole block.
        let mut before: SecondaryMap<Inst, u32> = SecondaryMap::new();
        let mut within: SecondaryMap<Block, u32> = SecondaryMap::new();
        for block in func.blocks() {
            let mut count = 0;
            for inst in func.block_insts(block) {
                before[inst] = count;
                count += u32::from(is_safepoint(func, cx, inst));
                if func.op(inst) == Op::WriteBarrier {
                    barriers.push((block, inst));
                }
            }
            within[block] = count;
        }
        let is_permanent = |value: Value| match bases.of(value) {
            Base::Permanent => true,
            Base::Root(root) => refinements.is_permanent(root),
            Base::None => false,
        };
        for (block, inst) in barriers {
            let (&parent, children) = match func.args(inst) {
                [parent, children @ ..] => (parent, children),
                [] => continue,
            };
            // A barrier without children stands for any child.
            let harmless = !children.is_empty()
                && children.iter().all(|&c| is_permanent(c) || bases.of(c) == bases.of(parent));
            if harmless || is_fresh(func, bases, flow, parent, block, inst, &before, &within) {
                all.gone.insert(inst);
                all.removed += 1;
            } else {
                all.kept += 1;
            }
        }
        all
    }
}

/// Whether the parent was allocated since the last safepoint before `at`.
fn is_fresh(
    func: &Func,
    bases: &Bases,
    flow: &Flow,
    parent: Value,
    block: Block,
    at: Inst,
    before: &SecondaryMap<Inst, u32>,
    within: &SecondaryMap<Block, u32>,
) -> bool {
    let Some(root) = bases.root(parent) else { return false };
    let (value, home) = bases.roots[root as usize];
    let Some(made) = func.def_inst(value).filter(|&i| matches!(func.op(i), Op::Alloc(_))) else {
        return false;
    };
    // The allocation itself is a safepoint.
    if home == block {
        return before[at] == before[made] + 1;
    }
    if before[at] > 0 || within[home] != before[made] + 1 {
        return false;
    }
    let mut seen: SmallVec<[Block; 8]> = SmallVec::new();
    let mut work: SmallVec<[Block; 8]> = flow.preds(block).collect();
    while let Some(block) = work.pop() {
        if block == home || seen.contains(&block) {
            continue;
        }
        if within[block] > 0 || seen.len() == MAX_BLOCKS {
            return false;
        }
        seen.push(block);
        work.extend(flow.preds(block));
    }
    true
}
