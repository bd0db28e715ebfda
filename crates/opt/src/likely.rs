//! Rarely entered blocks.
//!
//! A block is *cold* if
//!
//! | rule | because |
//! |---|---|
//! | it is marked ([`Func::set_cold`](brolga_ir::Func::set_cold)) | the front end says so |
//! | it ends in `unreachable` | an instruction before that throws |
//! | all its successors are cold | it prepares an error |
//! | every edge in is from a cold block, or rarely taken by its branch weights | it is not reached |
//!
//! Back edges of a loop count for neither, so a loop is as cold as the edges into it. An exit of a loop is not rare, however
//! many iterations precede it: it is taken as often as the loop is entered. A function that is cold from its
//! entry on has no warmer block to compare with: then only marks by the front end count.
//!
//! Cost: two walks over the blocks, and the loops if there are branch weights.

use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::{Block, Func, Op};
use cranelift_entity::EntitySet;

/// See the file's header.
pub(crate) struct ColdBlocks(EntitySet<Block>);

impl ColdBlocks {
    pub(crate) fn of(func: &Func, cfg: &Cfg, rpo: &Rpo) -> ColdBlocks {
        let mut cold: EntitySet<Block> = EntitySet::new();
        let is_back = |from: Block, to: Block| rpo.position(from) >= rpo.position(to);
        for &block in rpo.blocks().iter().rev() {
            let throws = func.terminator(block).is_some_and(|end| func.op(end) == Op::Unreachable);
            let mut on = cfg.succs(block).iter().filter(|&&to| !is_back(block, to)).peekable();
            let only_cold = on.peek().is_some() && on.all(|&to| cold.contains(to));
            let goes_back = cfg.succs(block).iter().any(|&to| is_back(block, to));
            if func.is_cold(block) || throws || (only_cold && !goes_back) {
                cold.insert(block);
            }
        }
        let Some(entry) = func.entry() else { return ColdBlocks(cold) };
        if cold.contains(entry) {
            let mut said = EntitySet::new();
            for block in func.blocks().filter(|&block| func.is_cold(block)) {
                said.insert(block);
            }
            return ColdBlocks(said);
        }
        let has_weights =
            |&block: &Block| func.terminator(block).is_some_and(|end| func.branch_weights(end).is_some());
        let loops = rpo.blocks().iter().any(has_weights);
        let loops = loops.then(|| Loops::compute(cfg, rpo, &DomTree::compute(cfg)));
        let leaves = |from: Block, to: Block| {
            loops.as_ref().is_some_and(|l| l.loop_of(from).is_some_and(|own| !l.contains(own, to)))
        };
        let is_rare = |from: Block, to: Block| !leaves(from, to) && is_rare(func, from, to);
        for &block in rpo.blocks() {
            let ways = cfg.preds(block).iter().copied();
            let mut ways = ways.filter(|&from| rpo.is_reachable(from) && !is_back(from, block)).peekable();
            let is_entered = ways.peek().is_some();
            if is_entered && ways.all(|from| cold.contains(from) || is_rare(from, block)) {
                cold.insert(block);
            }
        }
        ColdBlocks(cold)
    }

    /// The same by branch weights alone: empty for a function without any.
    pub(crate) fn by_weights(func: &Func, cfg: &Cfg, rpo: &Rpo) -> ColdBlocks {
        let mut ends = rpo.blocks().iter().filter_map(|&block| func.terminator(block));
        match ends.any(|end| func.branch_weights(end).is_some()) {
            true => ColdBlocks::of(func, cfg, rpo),
            false => ColdBlocks(EntitySet::new()),
        }
    }

    pub(crate) fn has(&self, block: Block) -> bool {
        self.0.contains(block)
    }
}

/// Whether a branch rarely takes this edge.
fn is_rare(func: &Func, from: Block, to: Block) -> bool {
    let Some(branch) = func.terminator(from) else { return false };
    match (func.branch_weights(branch), func.inst_blocks(branch)) {
        (Some(weights), &[yes, no]) if yes != no => weights.is_rare(to == yes),
        _ => false,
    }
}
