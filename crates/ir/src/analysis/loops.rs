//! Natural loops and their nesting.
//!
//! A *back edge* leads to a block that dominates its source: the *header* of a loop. The loop's *body* is the blocks that can reach the
//! source (a *latch*) without passing through the header. Two loops with different headers are disjoint or one contains the
//! other; back edges to one header form one loop.
//!
//! ```text
//!        0            loop0: header 1, blocks 1 2 3 4, latch 4, exit 4 → 5
//!        │              loop1: header 2, blocks 2 3, latch 3, exit 3 → 4
//!     ┌─>1
//!     │  │            Loops are numbered so that a loop comes before those inside it, and the loops inside loop l
//!     │ ┌2<┐          are the numbers after l: l contains m  ⇔  l ≤ m ≤ last(l). Blocks are listed loop by loop,
//!     │ 3──┘          header first, so that a loop's blocks, inner loops included, are contiguous.
//!     └─4
//!        │
//!        5
//! ```
//!
//! A *retreating* edge (backwards in reverse postorder) whose target does not dominate its source enters a
//! cycle that has several entries. Such a cycle is not a loop here; its edges are listed, for passes that
//! need every cycle.
//!
//! Cost: each block is visited once, each loop once more for its parent; finding the outermost loop so far uses
//! union-find. Exits and latches are computed on demand, in time linear in the loop: storing them would be
//! quadratic in the depth.

use super::cfg::Cfg;
use super::domtree::DomTree;
use super::rpo::Rpo;
use crate::entity::Block;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, entity_impl};

/// A natural loop of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

#[derive(Clone, Debug, PartialEq, Eq)]
struct LoopData {
    header: Block,
    parent: PackedOption<Loop>,
    depth: u32,
    /// The last loop inside this one, or the loop itself.
    last: Loop,
    /// Where its blocks begin in the list of blocks.
    start: u32,
}

/// The loops of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loops {
    loops: Vec<LoopData>,
    /// By block: the innermost loop.
    of: Vec<PackedOption<Loop>>,
    blocks: Vec<Block>,
    irreducible: Vec<(Block, Block)>,
}

impl Loops {
    /// The loops of a graph.
    pub fn compute(cfg: &Cfg, rpo: &Rpo, tree: &DomTree) -> Loops {
        let mut found = Found::new(cfg.block_count());
        for &header in rpo.blocks().iter().rev() {
            found.visit(header, cfg, tree);
        }
        let mut loops = found.finish(rpo);
        for (from, &block) in rpo.blocks().iter().enumerate() {
            for &target in cfg.succs(block) {
                let retreats = rpo.position(target).is_some_and(|to| to as usize <= from);
                if retreats && !tree.dominates(target, block) {
                    loops.irreducible.push((block, target));
                }
            }
        }
        loops
    }

    /// All loops, each before those inside it.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Loop> + ExactSizeIterator + use<> {
        (0..self.loops.len()).map(Loop::new)
    }

    /// Whether there are no loops.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    pub fn len(&self) -> usize {
        self.loops.len()
    }

    /// The innermost loop that the block belongs to.
    #[inline]
    pub fn loop_of(&self, block: Block) -> Option<Loop> {
        self.of.get(block.index())?.expand()
    }

    /// The number of loops that contain the block.
    #[inline]
    pub fn depth_of(&self, block: Block) -> u32 {
        self.loop_of(block).map_or(0, |l| self.depth(l))
    }

    /// The block that dominates the loop.
    #[inline]
    pub fn header(&self, l: Loop) -> Block {
        self.loops[l.index()].header
    }

    /// Whether the block is the header of a loop.
    #[inline]
    pub fn is_header(&self, block: Block) -> bool {
        self.loop_of(block).is_some_and(|l| self.header(l) == block)
    }

    /// The enclosing loop.
    #[inline]
    pub fn parent(&self, l: Loop) -> Option<Loop> {
        self.loops[l.index()].parent.expand()
    }

    /// The nesting depth of the loop; 1 for an outermost loop.
    #[inline]
    pub fn depth(&self, l: Loop) -> u32 {
        self.loops[l.index()].depth
    }

    /// Whether the loop contains no other loop.
    pub fn is_innermost(&self, l: Loop) -> bool {
        self.loops[l.index()].last == l
    }

    /// Whether the loop contains the block.
    #[inline]
    pub fn contains(&self, l: Loop, block: Block) -> bool {
        self.loop_of(block).is_some_and(|inner| self.contains_loop(l, inner))
    }

    /// Whether `inner` is `l` or inside it.
    #[inline]
    pub fn contains_loop(&self, l: Loop, inner: Loop) -> bool {
        l <= inner && inner <= self.loops[l.index()].last
    }

    /// The blocks of the loop, inner loops included, header first.
    pub fn blocks(&self, l: Loop) -> &[Block] {
        let data = &self.loops[l.index()];
        let end = self.loops.get(data.last.index() + 1).map_or(self.blocks.len(), |next| next.start as usize);
        &self.blocks[data.start as usize..end]
    }

    /// The blocks of the loop with an edge back to its header, once for each edge.
    pub fn latches<'a>(&'a self, cfg: &'a Cfg, l: Loop) -> impl Iterator<Item = Block> + 'a {
        cfg.preds(self.header(l)).iter().copied().filter(move |&p| self.contains(l, p))
    }

    /// The edges that leave the loop.
    pub fn exits<'a>(&'a self, cfg: &'a Cfg, l: Loop) -> impl Iterator<Item = (Block, Block)> + 'a {
        self.blocks(l).iter().flat_map(move |&from| {
            cfg.succs(from).iter().filter(move |&&to| !self.contains(l, to)).map(move |&to| (from, to))
        })
    }

    /// The only block outside from which the loop is entered, if it has no other successor.
    pub fn preheader(&self, cfg: &Cfg, l: Loop) -> Option<Block> {
        let header = self.header(l);
        let mut outside = cfg.preds(header).iter().copied().filter(|&p| !self.contains(l, p));
        let before = outside.next()?;
        (outside.next().is_none() && cfg.succs(before) == [header]).then_some(before)
    }

    /// The edges that enter a cycle other than through its header; if there are none, every cycle is a loop.
    pub fn irreducible_edges(&self) -> &[(Block, Block)] {
        &self.irreducible
    }
}

/// The loops found so far, numbered in the order in which they are found: inner ones first.
struct Found {
    header: Vec<Block>,
    parent: Vec<u32>,
    /// Union-find over loops: towards the outermost one so far.
    outer: Vec<u32>,
    of: Vec<u32>,
    work: Vec<Block>,
}

const NONE: u32 = u32::MAX;

impl Found {
    fn new(blocks: usize) -> Found {
        Found { header: vec![], parent: vec![], outer: vec![], of: vec![NONE; blocks], work: vec![] }
    }

    /// Finds the loop of a header, if it is one. Headers come in postorder, so inner loops are already known.
    fn visit(&mut self, header: Block, cfg: &Cfg, tree: &DomTree) {
        let latches =
            cfg.preds(header).iter().filter(|&&p| tree.is_reachable(p) && tree.dominates(header, p));
        self.work.extend(latches);
        if self.work.is_empty() {
            return;
        }
        let new = self.header.len() as u32;
        self.header.push(header);
        self.parent.push(NONE);
        self.outer.push(new);
        self.of[header.index()] = new;
        while let Some(block) = self.work.pop() {
            let entered_by = match self.of[block.index()] {
                NONE => {
                    self.of[block.index()] = new;
                    block
                }
                inner => {
                    let outermost = self.outermost(inner);
                    if outermost == new {
                        continue;
                    }
                    self.parent[outermost as usize] = new;
                    self.outer[outermost as usize] = new;
                    self.header[outermost as usize]
                }
            };
            self.work.extend(cfg.preds(entered_by).iter().filter(|&&p| tree.is_reachable(p)));
        }
    }

    fn outermost(&mut self, mut l: u32) -> u32 {
        while self.outer[l as usize] != l {
            let above = self.outer[l as usize];
            self.outer[l as usize] = self.outer[above as usize];
            l = above;
        }
        l
    }

    fn finish(self, rpo: &Rpo) -> Loops {
        let count = self.header.len();
        let mut size = vec![1u32; count];
        for l in 0..count {
            if self.parent[l] != NONE {
                size[self.parent[l] as usize] += size[l];
            }
        }
        // Outer loops were found later, so this direction meets parents before their children.
        let mut id = vec![0u32; count];
        let mut next_inside = vec![0u32; count];
        let mut next = 0;
        let mut depth = vec![1u32; count];
        for l in (0..count).rev() {
            let parent = self.parent[l];
            let slot = if parent == NONE { &mut next } else { &mut next_inside[parent as usize] };
            id[l] = *slot;
            *slot += size[l];
            next_inside[l] = id[l] + 1;
            if parent != NONE {
                depth[l] = depth[parent as usize] + 1;
            }
        }
        let mut found_as = vec![0; count];
        for l in 0..count {
            found_as[id[l] as usize] = l;
        }
        let of: Vec<PackedOption<Loop>> = self
            .of
            .iter()
            .map(|&l| if l == NONE { None.into() } else { Loop(id[l as usize]).into() })
            .collect();
        let mut starts = vec![0u32; count + 1];
        let inside = rpo.blocks().iter().filter_map(|&b| Some((b, of[b.index()].expand()?)));
        for (_, l) in inside.clone() {
            starts[l.index() + 1] += 1;
        }
        for l in 0..count {
            starts[l + 1] += starts[l];
        }
        let mut at = starts.clone();
        let mut blocks = vec![Block::new(0); starts[count] as usize];
        for (block, l) in inside {
            blocks[at[l.index()] as usize] = block;
            at[l.index()] += 1;
        }
        let loops = (0..count)
            .map(|n| {
                let l = found_as[n];
                let parent = self.parent[l];
                LoopData {
                    header: self.header[l],
                    parent: if parent == NONE { None.into() } else { Loop(id[parent as usize]).into() },
                    depth: depth[l],
                    last: Loop(id[l] + size[l] - 1),
                    start: starts[n],
                }
            })
            .collect();
        Loops { loops, of, blocks, irreducible: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::{func_of, large_graphs, random_graph};
    use std::collections::BTreeSet;

    fn loops_of(func: &crate::Func) -> (Cfg, DomTree, Loops) {
        let cfg = Cfg::compute(func);
        let tree = DomTree::compute(&cfg);
        let loops = Loops::compute(&cfg, &Rpo::compute(&cfg), &tree);
        (cfg, tree, loops)
    }

    #[test]
    fn the_picture_in_the_header() {
        let func = func_of(&[&[1], &[2], &[3], &[2, 4], &[1, 5], &[]]);
        let (cfg, _, loops) = loops_of(&func);
        let b = |n| Block::new(n);
        let [outer, inner] = [Loop(0), Loop(1)];
        assert_eq!(loops.len(), 2);
        assert_eq!(loops.blocks(outer), [b(1), b(4), b(2), b(3)]);
        assert_eq!(loops.blocks(inner), [b(2), b(3)]);
        assert_eq!(loops.latches(&cfg, outer).collect::<Vec<_>>(), [b(4)]);
        assert_eq!(loops.exits(&cfg, inner).collect::<Vec<_>>(), [(b(3), b(4))]);
        assert_eq!(loops.parent(inner), Some(outer));
        assert_eq!(loops.depth_of(b(3)), 2);
        assert_eq!(loops.preheader(&cfg, outer), Some(b(0)));
        assert!(loops.irreducible_edges().is_empty());
    }

    #[test]
    fn a_cycle_with_two_entrances_is_no_loop() {
        let func = func_of(&[&[1, 2], &[2], &[1, 3], &[]]);
        let (_, _, loops) = loops_of(&func);
        assert!(loops.is_empty());
        assert_eq!(loops.irreducible_edges().len(), 1);
    }

    #[test]
    fn agrees_with_the_definition() {
        for seed in 1..300 {
            let func = random_graph(seed, 24);
            let (cfg, tree, loops) = loops_of(&func);
            let mut bodies: Vec<(Block, BTreeSet<Block>)> = Vec::new();
            for header in func.blocks() {
                let mut body = BTreeSet::from([header]);
                let back = |&p: &Block| tree.is_reachable(p) && tree.dominates(header, p);
                let mut work: Vec<Block> = cfg.preds(header).iter().copied().filter(back).collect();
                if work.is_empty() {
                    continue;
                }
                while let Some(b) = work.pop() {
                    if body.insert(b) {
                        work.extend(cfg.preds(b).iter().filter(|&&p| tree.is_reachable(p)));
                    }
                }
                bodies.push((header, body));
            }
            assert_eq!(loops.len(), bodies.len(), "seed {seed}");
            for (header, body) in &bodies {
                let l = loops.iter().find(|&l| loops.header(l) == *header).unwrap();
                assert_eq!(loops.blocks(l)[0], *header);
                assert_eq!(&loops.blocks(l).iter().copied().collect::<BTreeSet<_>>(), body);
                assert_eq!(loops.blocks(l).len(), body.len());
                let around = bodies.iter().filter(|(_, outer)| outer.contains(header)).count();
                assert_eq!(loops.depth(l) as usize, around);
                for b in func.blocks() {
                    assert_eq!(loops.contains(l, b), body.contains(&b));
                }
            }
        }
    }

    #[test]
    fn large_graphs_are_done_at_once() {
        for (name, func) in large_graphs(50_000) {
            let (cfg, _, loops) = loops_of(&func);
            match name {
                "nest" => {
                    assert_eq!(loops.depth(Loop::new(loops.len() - 1)) as usize, loops.len());
                    assert_eq!(loops.latches(&cfg, Loop(0)).count(), 1);
                }
                "band" => assert!(!loops.irreducible_edges().is_empty()),
                _ => assert!(loops.is_empty(), "{name}"),
            }
        }
    }
}
