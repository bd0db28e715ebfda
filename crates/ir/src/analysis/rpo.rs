//! Reverse postorder: an order of the reachable blocks in which a block precedes all blocks that it dominates.
//!
//! On a graph without retreating edges it is a topological order. The first target of a terminator is visited
//! last, so that it directly follows its predecessor where possible.

use super::cfg::Cfg;
use crate::entity::Block;
use cranelift_entity::EntityRef;

const UNREACHED: u32 = u32::MAX;

/// The reachable blocks in reverse postorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rpo {
    order: Vec<Block>,
    number: Vec<u32>,
}

impl Rpo {
    /// The order of a graph.
    pub fn compute(cfg: &Cfg) -> Rpo {
        let mut order = Vec::with_capacity(cfg.block_count());
        // While the walk continues, any number but `UNREACHED` means "seen".
        let mut number = vec![UNREACHED; cfg.block_count()];
        let mut stack: Vec<(Block, usize)> = Vec::with_capacity(cfg.block_count());
        if let Some(entry) = cfg.entry() {
            number[entry.index()] = 0;
            stack.push((entry, cfg.succs(entry).len()));
        }
        while let Some((block, left)) = stack.last_mut() {
            if *left == 0 {
                order.push(*block);
                stack.pop();
                continue;
            }
            *left -= 1;
            let next = cfg.succs(*block)[*left];
            if number[next.index()] == UNREACHED {
                number[next.index()] = 0;
                stack.push((next, cfg.succs(next).len()));
            }
        }
        order.reverse();
        for (n, block) in order.iter().enumerate() {
            number[block.index()] = n as u32;
        }
        Rpo { order, number }
    }

    /// The reachable blocks in order; the entry is first.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.order
    }

    /// The position of a block in the order; `None` if it is unreachable.
    #[inline]
    pub fn position(&self, block: Block) -> Option<u32> {
        self.number.get(block.index()).copied().filter(|&n| n != UNREACHED)
    }

    /// Whether some path leads from the entry to the block.
    #[inline]
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position(block).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::{func_of, large_graphs, random_graph};

    #[test]
    fn a_diamond_is_in_topological_order() {
        let cfg = Cfg::compute(&func_of(&[&[2, 1], &[3], &[3], &[], &[3]]));
        let rpo = Rpo::compute(&cfg);
        let order: Vec<usize> = rpo.blocks().iter().map(|b| b.index()).collect();
        assert_eq!(order, [0, 2, 1, 3]);
        assert!(!rpo.is_reachable(Block::new(4)));
    }

    #[test]
    fn reaches_what_a_plain_walk_reaches() {
        for seed in 1..100 {
            let func = random_graph(seed, 40);
            let cfg = Cfg::compute(&func);
            let rpo = Rpo::compute(&cfg);
            let mut seen = vec![false; cfg.block_count()];
            let mut work = vec![Block::new(0)];
            while let Some(b) = work.pop() {
                if !std::mem::replace(&mut seen[b.index()], true) {
                    work.extend(cfg.succs(b));
                }
            }
            for b in func.blocks() {
                assert_eq!(rpo.is_reachable(b), seen[b.index()]);
            }
            assert_eq!(rpo.blocks().len(), seen.iter().filter(|&&s| s).count());
        }
    }

    #[test]
    fn deep_graphs_need_no_deep_stack() {
        for (name, func) in large_graphs(50_000) {
            let rpo = Rpo::compute(&Cfg::compute(&func));
            assert!(rpo.blocks().len() >= 25_000, "{name}");
        }
    }
}
