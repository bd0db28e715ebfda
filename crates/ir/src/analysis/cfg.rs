//! The control-flow graph: predecessors and successors of blocks.
//!
//! Edges keep their multiplicity: a branch with one block as both targets makes two edges, in `succs` and in `preds`. An
//! `enter` has an edge to its handler. Exceptions have no edges of their own: a handler gets values from inside the
//! protected blocks through ϒ and φᶜ.

use super::csr::Csr;
use crate::entity::Block;
use crate::func::Func;
use cranelift_entity::EntityRef;

/// Predecessors and successors of every block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cfg {
    entry: Option<Block>,
    succs: Csr<Block>,
    preds: Csr<Block>,
}

impl Cfg {
    /// The graph of the blocks laid out in `func`.
    pub fn compute(func: &Func) -> Cfg {
        let count = func.block_count();
        // Most blocks have one or two successors.
        let mut out = Vec::with_capacity(2 * count);
        let mut into = Vec::with_capacity(2 * count);
        for block in func.blocks() {
            for &target in func.successors(block) {
                if func.is_block(target) && func.is_placed(target) {
                    out.push((block.as_u32(), target));
                    into.push((target.as_u32(), block));
                }
            }
        }
        Cfg { entry: func.entry(), succs: Csr::from_pairs(count, &out), preds: Csr::from_pairs(count, &into) }
    }

    /// The first block.
    #[inline]
    pub fn entry(&self) -> Option<Block> {
        self.entry
    }

    /// The targets of a block's terminator, in order.
    #[inline]
    pub fn succs(&self, block: Block) -> &[Block] {
        self.succs.list(block.index())
    }

    /// The blocks whose terminators target this block, in layout order, once for each edge.
    #[inline]
    pub fn preds(&self, block: Block) -> &[Block] {
        self.preds.list(block.index())
    }

    /// The unique predecessor of `block`, if all its incoming edges come from one block.
    #[inline]
    pub fn single_pred(&self, block: Block) -> Option<Block> {
        match self.preds(block) {
            &[first, ref rest @ ..] if rest.iter().all(|&p| p == first) => Some(first),
            _ => None,
        }
    }

    /// Exclusive upper bound of the block ids.
    #[inline]
    pub fn block_count(&self) -> usize {
        self.succs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::{func_of, random_graph};

    #[test]
    fn edges_keep_their_multiplicity() {
        let func = func_of(&[&[1, 1], &[2], &[]]);
        let cfg = Cfg::compute(&func);
        let [a, b, c] = [0, 1, 2].map(Block::new);
        assert_eq!(cfg.succs(a), [b, b]);
        assert_eq!(cfg.preds(b), [a, a]);
        assert_eq!(cfg.single_pred(b), Some(a));
        assert_eq!(cfg.preds(c), [b]);
        assert_eq!(cfg.single_pred(a), None);
    }

    #[test]
    fn preds_are_succs_reversed() {
        for seed in 1..50 {
            let func = random_graph(seed, 30);
            let cfg = Cfg::compute(&func);
            let mut forward = Vec::new();
            let mut backward = Vec::new();
            for b in func.blocks() {
                forward.extend(cfg.succs(b).iter().map(|&s| (b, s)));
                backward.extend(cfg.preds(b).iter().map(|&p| (p, b)));
            }
            forward.sort();
            backward.sort();
            assert_eq!(forward, backward);
        }
    }

    #[test]
    fn edges_to_blocks_that_stand_nowhere_are_left_out() {
        let mut func = func_of(&[&[1, 2], &[2], &[]]);
        func.remove_block(Block::new(1));
        let cfg = Cfg::compute(&func);
        assert_eq!(cfg.succs(Block::new(0)), [Block::new(2)]);
        assert_eq!(cfg.preds(Block::new(2)), [Block::new(0)]);
    }
}
