//! Slots: where each root is stored, and in which word of the frame.
//!
//! A root that needs a slot becomes one or more *variables*: a single store that dominates the safepoints it
//! serves. As in SSA form, a variable is live from its store to the last of them; so the interference graph
//! is chordal, and assigning each variable the lowest free word in dominator-tree order uses no more words
//! than the maximum number of variables that are live at once (Hack, Grund, Goos: "Register Allocation for
//! Programs in SSA-Form", 2006).
//!
//! **Position of the store.** In the nearest block that dominates all safepoints of the variable, before the
//! first of them if the block has one, otherwise at its end; outside every loop in which the root is not
//! defined.
//!
//! ```text
//!   1 ─ %1 = alloc(…)             1 ─ %1 = alloc(…)
//!       goto #2                       store w0, %1          not in the loop
//!   2 ┄ invoke f()         ==>        goto #2
//!       goto #2 if … else #3      2 ┄ invoke f()
//! ```
//!
//! **Safepoints of a variable.** All safepoints of the root except in [doomed](crate::flow) blocks; for
//! doomed blocks, all safepoints below one highest doomed dominator. An error path then stores its own roots
//! and the normal path stores nothing for it.
//!
//! **Coarse.** A function whose live sets are too large for that (see [`needs`](crate::needs)) has a variable
//! for each root that is not always rooted, in its own word, stored at the root's definition. The frame is
//! linked at the entry, and a word keeps its object alive to the end. Where all objects are live to the end
//! of the function, that is optimal.
//!
//! Invariant: between a variable's store and its last safepoint, its word is not overwritten. Cost: the size
//! of the variables' live ranges. Not done: a root that only some returning paths need is stored before the
//! paths diverge.

use crate::bases::{Bases, Root};
use crate::flow::Flow;
use crate::needs::{Need, Needs};
use crate::ranges::{Ranges, Use};
use crate::refine::Refinements;
use brolga_ir::analysis::{DomTree, Loops};
use brolga_ir::cursor::first_insertion_point;
use brolga_ir::{Block, Func, Inst, Op};
use cranelift_entity::SecondaryMap;

/// A store of a root into a word of the frame, before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Store {
    pub(crate) root: Root,
    pub(crate) block: Block,
    pub(crate) before: Inst,
    pub(crate) word: u32,
}

/// All stores, and the number of words that they need.
#[derive(Debug)]
pub(crate) struct Slots {
    /// By variable.
    pub(crate) stores: Vec<Store>,
    pub(crate) words: u32,
    /// The live ranges of the variables.
    pub(crate) ranges: Ranges,
    /// By block: its events, in order.
    pub(crate) events: SecondaryMap<Block, Vec<(u32, Event)>>,
    /// Positions of instructions in their blocks.
    position: SecondaryMap<Inst, u32>,
}

/// The beginning of a variable's life before an instruction (`Begin`), or its end after an instruction
/// (`End`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    Begin(u32),
    End(u32),
}

impl Event {
    /// Whether it happens before the instruction.
    pub(crate) fn is_begin(self) -> bool {
        matches!(self, Event::Begin(_))
    }
}

impl Slots {
    fn new(func: &Func, flow: &Flow, reserved: u32) -> Slots {
        let mut slots = Slots {
            stores: Vec::new(),
            words: reserved,
            ranges: Ranges::new(flow),
            events: SecondaryMap::new(),
            position: SecondaryMap::new(),
        };
        for block in func.blocks() {
            for (n, inst) in func.block_insts(block).enumerate() {
                slots.position[inst] = n as u32;
            }
        }
        slots
    }

    /// A separate word for each root that may need one.
    pub(crate) fn coarse(
        func: &Func,
        bases: &Bases,
        refinements: &Refinements,
        flow: &Flow,
        reserved: u32,
    ) -> Slots {
        let mut slots = Slots::new(func, flow, reserved);
        for (root, &(value, block)) in (0..).zip(&bases.roots) {
            let made = func.def_inst(value).filter(|&inst| func.op(inst) != Op::Phi);
            let behind = match made {
                Some(inst) => func.next_inst(inst),
                None => first_insertion_point(func, block),
            };
            // An allocation is not a terminator, so an instruction follows it.
            if let (Some(before), false) = (behind, refinements.is_always_rooted(root)) {
                slots.stores.push(Store { root, block, before, word: slots.words });
                slots.words += 1;
            }
        }
        slots
    }

    /// Chooses stores and words. Words below `reserved` are already assigned.
    pub(crate) fn compute(
        func: &Func,
        bases: &Bases,
        needs: &mut Needs,
        flow: &Flow,
        tree: &DomTree,
        loops: &Loops,
        reserved: u32,
    ) -> Slots {
        let mut slots = Slots::new(func, flow, reserved);
        for root in 0..needs.of.len() {
            let list = &mut needs.of[root];
            // One variable for each doomed region, and one for the blocks that may return. The sort keeps the
            // order of the tree.
            list.sort_by_key(|need| flow.doom(need.block));
            let home = bases.roots[root].1;
            for served in list.chunk_by(|a, b| flow.doom(a.block) == flow.doom(b.block)) {
                let Some((block, before)) = store_point(func, served, home, tree, loops) else { continue };
                let variable = slots.stores.len() as u32;
                slots.stores.push(Store { root: root as Root, block, before, word: 0 });
                let position = slots.position[before];
                slots.events[block].push((position, Event::Begin(variable)));
                slots.ranges.add(flow, variable, block, served.iter().map(|need| Use::In(need.block)));
                for need in served {
                    // Variables are numbered in ascending order.
                    if slots.ranges.live_out(need.block).last() != Some(&variable) {
                        let last = slots.position[need.last];
                        slots.events[need.block].push((last, Event::End(variable)));
                    }
                }
            }
        }
        slots.colour(tree, reserved);
        slots
    }

    fn colour(&mut self, tree: &DomTree, reserved: u32) {
        let mut busy = Words::default();
        for &block in tree.preorder() {
            let here = &mut self.events[block];
            if here.is_empty() {
                continue;
            }
            here.sort_unstable();
            busy.clear();
            for &variable in self.ranges.live_in(block) {
                busy.take(self.stores[variable as usize].word - reserved);
            }
            for &(_, event) in &*here {
                match event {
                    Event::Begin(variable) => {
                        let free = busy.lowest_free();
                        busy.take(free);
                        self.stores[variable as usize].word = reserved + free;
                    }
                    Event::End(variable) => {
                        busy.free(self.stores[variable as usize].word - reserved);
                    }
                }
            }
        }
        self.words = reserved + busy.count;
    }

    /// The position of an instruction in its block.
    pub(crate) fn position(&self, inst: Inst) -> u32 {
        self.position[inst]
    }
}

/// The words in use. The lowest free one is found through two levels of bits: one bit for each word, and one
/// for each group of 64 words that are all in use.
#[derive(Default)]
struct Words {
    taken: Vec<u64>,
    full: Vec<u64>,
    /// The words used since the last clearing.
    touched: Vec<u32>,
    /// The first word after all that were ever used.
    count: u32,
}

impl Words {
    fn clear(&mut self) {
        while let Some(word) = self.touched.pop() {
            self.free(word);
        }
    }

    fn lowest_free(&self) -> u32 {
        let not_full = |bits: &[u64]| bits.iter().position(|&b| b != u64::MAX);
        let row = not_full(&self.full)
            .map_or(64 * self.full.len(), |at| 64 * at + self.full[at].trailing_ones() as usize);
        let bits = self.taken.get(row).copied().unwrap_or(0);
        64 * row as u32 + bits.trailing_ones()
    }

    fn take(&mut self, word: u32) {
        let row = word as usize / 64;
        if self.taken.len() <= row {
            self.taken.resize(row + 1, 0);
            self.full.resize(row / 64 + 1, 0);
        }
        self.taken[row] |= 1 << (word % 64);
        if self.taken[row] == u64::MAX {
            self.full[row / 64] |= 1 << (row % 64);
        }
        self.touched.push(word);
        self.count = self.count.max(word + 1);
    }

    fn free(&mut self, word: u32) {
        let row = word as usize / 64;
        self.taken[row] &= !(1 << (word % 64));
        self.full[row / 64] &= !(1 << (row % 64));
    }
}

/// The position of the store for these safepoints: a block, and the instruction that it precedes.
fn store_point(
    func: &Func,
    served: &[Need],
    home: Block,
    tree: &DomTree,
    loops: &Loops,
) -> Option<(Block, Inst)> {
    let mut block = served.first()?.block;
    for need in served {
        block = tree.common_dominator(block, need.block)?;
    }
    let lowest = block;
    while let Some(around) = loops.loop_of(block).filter(|&l| !loops.contains(l, home)) {
        block = tree.idom(outermost(loops, around, home))?;
    }
    let here = served.iter().find(|need| need.block == block && block == lowest);
    let before = here.map(|need| need.first).or_else(|| func.terminator(block))?;
    Some((block, before))
}

/// The header of the outermost loop around this one that does not contain `home`.
fn outermost(loops: &Loops, around: brolga_ir::analysis::Loop, home: Block) -> Block {
    let parents = std::iter::successors(Some(around), |&l| loops.parent(l));
    let last = parents.take_while(|&l| !loops.contains(l, home)).last();
    loops.header(last.unwrap_or(around))
}
