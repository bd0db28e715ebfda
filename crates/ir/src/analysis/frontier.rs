//! Placement of φ: the iterated dominance frontier of a set of blocks.
//!
//! If a variable is assigned in some blocks, paths from different assignments first meet in the blocks of the iterated
//! frontier, and these need a φ. It is found in one sweep over the dominator tree (Sreedhar and Gao, "A Linear Time
//! Algorithm for Placing φ-Nodes", 1995): subtrees are searched from the deepest assignment upwards for edges that leave to
//! a block that is no deeper than the subtree's root, and no subtree is searched twice.
//!
//! Cost: the blocks below the assignments and their edges; the scratch space is kept between calls, for
//! querying many variables of a function.

use super::cfg::Cfg;
use super::domtree::DomTree;
use crate::entity::Block;
use cranelift_entity::EntityRef;
use std::collections::BinaryHeap;

/// Scratch space for finding iterated dominance frontiers.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// By block: the number of the call that last met it.
    searched: Vec<u32>,
    found: Vec<u32>,
    defined: Vec<u32>,
    call: u32,
    queue: BinaryHeap<(u32, Block)>,
    work: Vec<Block>,
}

impl Frontier {
    /// Empty scratch space.
    pub fn new() -> Frontier {
        Frontier::default()
    }

    /// The iterated dominance frontier of `defs`, restricted to blocks where `live` holds: where the variable
    /// is not live it needs no φ. In ascending order.
    pub fn iterated(
        &mut self,
        cfg: &Cfg,
        tree: &DomTree,
        defs: &[Block],
        live: impl Fn(Block) -> bool,
    ) -> Vec<Block> {
        self.begin(cfg.block_count());
        let call = self.call;
        for &def in defs.iter().filter(|&&d| tree.is_reachable(d)) {
            if std::mem::replace(&mut self.defined[def.index()], call) != call {
                self.queue.push((tree.level(def), def));
            }
        }
        let mut frontier = Vec::new();
        while let Some((level, root)) = self.queue.pop() {
            if std::mem::replace(&mut self.searched[root.index()], call) != call {
                self.work.push(root);
            }
            while let Some(block) = self.work.pop() {
                for &target in cfg.succs(block) {
                    let known = self.found[target.index()] == call;
                    if known || tree.level(target) > level || !live(target) {
                        continue;
                    }
                    self.found[target.index()] = call;
                    frontier.push(target);
                    if self.defined[target.index()] != call {
                        self.queue.push((tree.level(target), target));
                    }
                }
                for &child in tree.children(block) {
                    if std::mem::replace(&mut self.searched[child.index()], call) != call {
                        self.work.push(child);
                    }
                }
            }
        }
        frontier.sort_unstable();
        frontier
    }

    fn begin(&mut self, blocks: usize) {
        let Frontier { searched, found, defined, call, queue, work } = self;
        queue.clear();
        work.clear();
        *call = call.wrapping_add(1);
        for marks in [searched, found, defined] {
            // After 2³² calls the counter wraps, and stale marks would look current.
            if *call == 0 || marks.len() != blocks {
                marks.clear();
                marks.resize(blocks, 0);
            }
        }
        *call = (*call).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::{Random, func_of, large_graphs, random_graph};

    /// By definition: `y` is in the frontier of `x` if `x` dominates a predecessor of `y` but does not
    /// strictly dominate `y`; iterated.
    fn naive(cfg: &Cfg, tree: &DomTree, blocks: &[Block], defs: &[Block]) -> Vec<Block> {
        let mut frontier: Vec<Block> = Vec::new();
        loop {
            let new = blocks.iter().copied().find(|&y| {
                !frontier.contains(&y)
                    && defs.iter().chain(&frontier).any(|&x| {
                        !tree.strictly_dominates(x, y)
                            && cfg.preds(y).iter().any(|&p| {
                                tree.is_reachable(p) && tree.is_reachable(x) && tree.dominates(x, p)
                            })
                    })
            });
            match new {
                Some(block) => frontier.push(block),
                None => break,
            }
        }
        frontier.sort();
        frontier
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut scratch = Frontier::new();
        for seed in 1..300 {
            let func = random_graph(seed, 20);
            let cfg = Cfg::compute(&func);
            let tree = DomTree::compute(&cfg);
            let blocks: Vec<Block> = func.blocks().collect();
            let mut random = Random(seed);
            for _ in 0..3 {
                let defs: Vec<Block> = blocks.iter().copied().filter(|_| random.below(4) == 0).collect();
                let found = scratch.iterated(&cfg, &tree, &defs, |_| true);
                assert_eq!(found, naive(&cfg, &tree, &blocks, &defs), "seed {seed} {defs:?}");
            }
        }
    }

    #[test]
    fn no_phi_where_the_variable_is_dead() {
        let func = func_of(&[&[1, 2], &[3], &[3], &[]]);
        let cfg = Cfg::compute(&func);
        let tree = DomTree::compute(&cfg);
        let defs = [Block::new(1), Block::new(2)];
        let mut scratch = Frontier::new();
        assert_eq!(scratch.iterated(&cfg, &tree, &defs, |_| true), [Block::new(3)]);
        assert_eq!(scratch.iterated(&cfg, &tree, &defs, |_| false), []);
    }

    #[test]
    fn large_graphs_are_done_at_once() {
        for (name, func) in large_graphs(50_000) {
            let cfg = Cfg::compute(&func);
            let tree = DomTree::compute(&cfg);
            let all: Vec<Block> = func.blocks().collect();
            let found = Frontier::new().iterated(&cfg, &tree, &all, |_| true);
            let joins = all.iter().filter(|&&b| cfg.preds(b).len() > 1).count();
            assert!(found.len() <= joins, "{name}");
        }
    }
}
