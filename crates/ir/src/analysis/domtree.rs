//! The dominator tree: which blocks every path to a block passes through.
//!
//! The Semi-NCA algorithm (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005): a depth-first
//! walk numbers the blocks; semidominators are found from the last number to the first with path compression; the
//! immediate dominator of a block is the nearest ancestor of its walk parent that is not above its semidominator.
//!
//! ```text
//! walk tree      tree      numbers (first, last) in a walk of the tree
//!   1             1          1: 0..5
//!  / \          / | \        2: 1..1   3: 2..2   4: 3..5
//! 2   3        2  3  4       5: 4..4   6: 5..5        a dominates b  ⇔  first(a) ≤ first(b) ≤ last(a)
//!  \ /              / \
//!   4              5   6
//! ```
//!
//! An unreachable block is dominated only by itself and dominates nothing else: the conservative answer for
//! code motion.
//!
//! Instructions of one block are compared by their position, which [`InstOrder`] numbers at the first query of a block.
//!
//! Not done: updates. A tree of 50,000 blocks takes a few milliseconds.

use super::cfg::Cfg;
use super::csr::Csr;
use crate::entity::{Block, Inst, Value};
use crate::func::Func;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};

const NONE: u32 = u32::MAX;

/// The dominator tree of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomTree {
    /// By block: its parent in the tree.
    idom: Vec<PackedOption<Block>>,
    /// By block: its number in a preorder walk of the tree, or `NONE`.
    first: Vec<u32>,
    /// By block: the largest preorder number in its subtree.
    last: Vec<u32>,
    /// By block: its distance from the entry in the tree.
    level: Vec<u32>,
    children: Csr<Block>,
    preorder: Vec<Block>,
}

impl DomTree {
    /// The tree of a graph.
    pub fn compute(cfg: &Cfg) -> DomTree {
        let count = cfg.block_count();
        let walk = Walk::of(cfg);
        let mut idom = vec![PackedOption::default(); count];
        let mut pairs = Vec::with_capacity(walk.blocks.len());
        for (n, dom) in walk.immediate_dominators(cfg).into_iter().enumerate().skip(1) {
            let (block, dom) = (walk.blocks[n], walk.blocks[dom as usize]);
            idom[block.index()] = dom.into();
            pairs.push((dom.as_u32(), block));
        }
        let children = Csr::from_pairs(count, &pairs);
        let mut tree = DomTree {
            idom,
            first: vec![NONE; count],
            last: vec![NONE; count],
            level: vec![0; count],
            children,
            preorder: Vec::with_capacity(walk.blocks.len()),
        };
        tree.number(cfg.entry());
        tree
    }

    fn number(&mut self, entry: Option<Block>) {
        let mut stack: Vec<(Block, usize)> = Vec::with_capacity(self.preorder.capacity());
        let mut enter = entry;
        loop {
            if let Some(block) = enter.take() {
                self.first[block.index()] = self.preorder.len() as u32;
                self.level[block.index()] = stack.len() as u32;
                self.preorder.push(block);
                stack.push((block, 0));
            }
            let Some((block, next)) = stack.last_mut() else { return };
            match self.children.list(block.index()).get(*next) {
                Some(&child) => {
                    *next += 1;
                    enter = Some(child);
                }
                None => {
                    self.last[block.index()] = self.preorder.len() as u32 - 1;
                    stack.pop();
                }
            }
        }
    }

    /// The parent in the tree; `None` for the entry and for unreachable blocks.
    #[inline]
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block.index()].expand()
    }

    /// The block's children in the tree.
    #[inline]
    pub fn children(&self, block: Block) -> &[Block] {
        self.children.list(block.index())
    }

    /// The distance from the entry in the tree.
    #[inline]
    pub fn level(&self, block: Block) -> u32 {
        self.level[block.index()]
    }

    /// All reachable blocks, each before its children.
    #[inline]
    pub fn preorder(&self) -> &[Block] {
        &self.preorder
    }

    /// Whether some path leads from the entry to the block.
    #[inline]
    pub fn is_reachable(&self, block: Block) -> bool {
        self.first.get(block.index()).is_some_and(|&n| n != NONE)
    }

    /// Whether every path from the entry to `b` passes through `a`. A block dominates itself.
    #[inline]
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        if a == b {
            return true;
        }
        let (Some(&first), Some(&last), Some(&at)) =
            (self.first.get(a.index()), self.last.get(a.index()), self.first.get(b.index()))
        else {
            return false;
        };
        // For an unreachable block `first` or `at` is larger than every real number.
        at != NONE && first <= at && at <= last
    }

    /// Whether `a` dominates `b` and is another block.
    #[inline]
    pub fn strictly_dominates(&self, a: Block, b: Block) -> bool {
        a != b && self.dominates(a, b)
    }

    /// The nearest block that dominates both. `None` if either is unreachable.
    pub fn common_dominator(&self, a: Block, b: Block) -> Option<Block> {
        if !self.is_reachable(a) || !self.is_reachable(b) {
            return None;
        }
        let mut at = a;
        while !self.dominates(at, b) {
            at = self.idom(at)?;
        }
        Some(at)
    }

    /// Whether instruction `a` is executed before `b` on every path to `b`; an instruction does not come before
    /// itself.
    pub fn inst_dominates(&self, func: &Func, order: &mut InstOrder, a: Inst, b: Inst) -> bool {
        match (func.inst_block(a), func.inst_block(b)) {
            (Some(x), Some(y)) if x == y => order.position(func, a) < order.position(func, b),
            (Some(x), Some(y)) => self.dominates(x, y),
            _ => false,
        }
    }

    /// Whether `value` is available when `inst` begins: arguments and constants always are.
    pub fn value_dominates(&self, func: &Func, order: &mut InstOrder, value: Value, inst: Inst) -> bool {
        func.def_inst(value).is_none_or(|def| self.inst_dominates(func, order, def, inst))
    }

    /// Whether `value` is available when control leaves `block`.
    pub fn value_dominates_end(&self, func: &Func, value: Value, block: Block) -> bool {
        func.def_inst(value)
            .is_none_or(|def| func.inst_block(def).is_some_and(|home| self.dominates(home, block)))
    }
}

/// The depth-first walk; numbers are positions in `blocks`.
struct Walk {
    blocks: Vec<Block>,
    number: Vec<u32>,
    parent: Vec<u32>,
}

impl Walk {
    fn of(cfg: &Cfg) -> Walk {
        let count = cfg.block_count();
        let mut walk = Walk {
            blocks: Vec::with_capacity(count),
            number: vec![NONE; count],
            parent: Vec::with_capacity(count),
        };
        let mut stack: Vec<(Block, u32)> = Vec::with_capacity(count);
        stack.extend(cfg.entry().map(|entry| (entry, 0)));
        while let Some((block, parent)) = stack.pop() {
            if walk.number[block.index()] != NONE {
                continue;
            }
            let number = walk.blocks.len() as u32;
            walk.number[block.index()] = number;
            walk.blocks.push(block);
            walk.parent.push(parent);
            let new = cfg.succs(block).iter().filter(|s| walk.number[s.index()] == NONE);
            stack.extend(new.map(|&s| (s, number)));
        }
        walk
    }

    /// By number: the number of the immediate dominator; the entry's is itself.
    fn immediate_dominators(&self, cfg: &Cfg) -> Vec<u32> {
        let count = self.blocks.len();
        let mut semi: Vec<u32> = (0..count as u32).collect();
        let mut forest = Forest { ancestor: self.parent.clone(), label: semi.clone(), path: Vec::new() };
        for w in (1..count).rev() {
            let mut best = self.parent[w];
            for pred in cfg.preds(self.blocks[w]) {
                let v = self.number[pred.index()];
                if v != NONE {
                    best = best.min(semi[forest.eval(v, w as u32 + 1, &semi) as usize]);
                }
            }
            semi[w] = best;
        }
        let mut idom = self.parent.clone();
        for w in 1..count {
            let mut dom = idom[w];
            while dom > semi[w] {
                dom = idom[dom as usize];
            }
            idom[w] = dom;
        }
        idom
    }
}

/// The walk tree as far as its vertices have been visited, with compressed paths.
struct Forest {
    ancestor: Vec<u32>,
    /// A vertex of least semidominator on the path from here up to the ancestor.
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// The vertex of least semidominator among `v` and its ancestors that are at least `linked`.
    fn eval(&mut self, v: u32, linked: u32, semi: &[u32]) -> u32 {
        let mut at = v;
        while self.ancestor[at as usize] >= linked {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        let mut above = at;
        while let Some(v) = self.path.pop() {
            let (upper, own) = (self.label[above as usize], self.label[v as usize]);
            if semi[upper as usize] < semi[own as usize] {
                self.label[v as usize] = upper;
            }
            self.ancestor[v as usize] = self.ancestor[above as usize];
            above = v;
        }
        self.label[v as usize]
    }
}

/// Positions of instructions in their blocks, valid until the function changes; the caller must then call
/// [`forget`](InstOrder::forget).
#[derive(Clone, Debug, Default)]
pub struct InstOrder {
    numbers: SecondaryMap<Inst, u32>,
    numbered: EntitySet<Block>,
}

impl InstOrder {
    pub fn new() -> InstOrder {
        InstOrder::default()
    }

    /// The position of an instruction in its block, from 1; 0 if it is in no block.
    pub fn position(&mut self, func: &Func, inst: Inst) -> u32 {
        let Some(block) = func.inst_block(inst) else { return 0 };
        if self.numbered.insert(block) {
            for (n, inst) in func.block_insts(block).enumerate() {
                self.numbers[inst] = n as u32 + 1;
            }
        }
        self.numbers[inst]
    }

    /// Drops the positions of a block whose instructions have changed.
    pub fn forget(&mut self, block: Block) {
        self.numbered.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::{func_of, large_graphs, random_graph};

    /// `a` dominates `b` if `b` cannot be reached without `a`.
    fn naive(cfg: &Cfg, without: Option<Block>) -> Vec<bool> {
        let mut seen = vec![false; cfg.block_count()];
        let mut work: Vec<Block> = cfg.entry().into_iter().collect();
        while let Some(b) = work.pop() {
            if Some(b) != without && !std::mem::replace(&mut seen[b.index()], true) {
                work.extend(cfg.succs(b));
            }
        }
        seen
    }

    #[test]
    fn agrees_with_the_definition() {
        for seed in 1..300 {
            let func = random_graph(seed, 24);
            let cfg = Cfg::compute(&func);
            let tree = DomTree::compute(&cfg);
            let reached = naive(&cfg, None);
            for a in func.blocks() {
                let without = naive(&cfg, Some(a));
                for b in func.blocks() {
                    let expected =
                        a == b || (reached[a.index()] && reached[b.index()] && !without[b.index()]);
                    assert_eq!(tree.dominates(a, b), expected, "seed {seed}: {a} {b}");
                }
                let mut strict: Vec<Block> =
                    func.blocks().filter(|&d| tree.strictly_dominates(d, a)).collect();
                strict.sort_by_key(|&d| tree.level(d));
                assert_eq!(tree.idom(a), strict.last().copied());
            }
        }
    }

    #[test]
    fn common_dominators() {
        let func = func_of(&[&[1, 2], &[3, 4], &[5], &[5], &[5], &[], &[5]]);
        let tree = DomTree::compute(&Cfg::compute(&func));
        let b = |n| Block::new(n);
        assert_eq!(tree.common_dominator(b(3), b(4)), Some(b(1)));
        assert_eq!(tree.common_dominator(b(3), b(2)), Some(b(0)));
        assert_eq!(tree.common_dominator(b(3), b(6)), None);
        assert_eq!(tree.idom(b(5)), Some(b(0)));
    }

    #[test]
    fn instructions_of_one_block() {
        let func = func_of(&[&[1], &[]]);
        let tree = DomTree::compute(&Cfg::compute(&func));
        let mut order = InstOrder::new();
        let (goto, ret) = (Inst::new(0), Inst::new(1));
        assert!(tree.inst_dominates(&func, &mut order, goto, ret));
        assert!(!tree.inst_dominates(&func, &mut order, ret, goto));
        assert!(!tree.inst_dominates(&func, &mut order, goto, goto));
    }

    #[test]
    fn large_graphs_are_done_at_once() {
        for (name, func) in large_graphs(50_000) {
            let cfg = Cfg::compute(&func);
            let tree = DomTree::compute(&cfg);
            let entry = Block::new(0);
            assert!(tree.preorder().iter().all(|&b| tree.dominates(entry, b)), "{name}");
            for &b in &tree.preorder()[1..] {
                assert!(tree.idom(b).is_some_and(|d| tree.level(d) + 1 == tree.level(b)), "{name}");
            }
        }
    }
}
