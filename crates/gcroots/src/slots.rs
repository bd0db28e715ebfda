//! Slots: the place of each root's store, and its word of the frame.
//!
//! A root that needs a slot becomes one or more *variables*: a single store that dominates the safepoints it serves.
//! A variable lives from its store to the last of them, in a program in SSA form; so the interference graph
//! is chordal, and giving each variable the lowest free word in the order of the dominator tree uses as few words as
//! the largest number of variables that live at once (Hack, Grund, Goos: "Register Allocation for Programs in SSA-Form", 2006).
//!
//! **Place of the store.** In the nearest block that dominates all safepoints of the variable, before the first of them
//! if one is there, otherwise at its end; out of every loop in which the root is not defined.
//!
//! ```text
//!   1 ─ %1 = alloc(…)             1 ─ %1 = alloc(…)
//!       goto #2                       store w0, %1          not in the loop
//!   2 ┄ invoke f()         ==>        goto #2
//!       goto #2 if … else #3      2 ┄ invoke f()
//! ```
//!
//! **Safepoints of a variable.** All of the root's except those in [doomed](crate::flow) blocks; among the doomed, all below one
//! highest doomed dominator. An error path then stores its own roots and the normal path stores nothing for it.
//!
//! **Coarse.** A function whose live sets are too large for that (see [`needs`](crate::needs)) has a variable for each root that is
//! not always rooted, in its own word, stored at the root's definition. The frame is linked at the entry, and a word keeps
//! its object to the end. Where all objects live to the end of the function, that is optimal.
//!
//! Invariant: between a variable's store and its last safepoint nothing else is stored into its word.
//! Cost: the size of the variables' live ranges. Not done: a root that only some returning paths need is stored where the paths
//! part.

use crate::bases::{Bases, Root};
use crate::flow::Flow;
use crate::needs::{Need, Needs};
use crate::ranges::{Ranges, Use};
use crate::refine::Refinements;
use brolga_ir::analysis::{DomTree, Loops};
use brolga_ir::cursor::first_insertion_point;
use brolga_ir::{Block, Func, Inst, Op};
use cranelift_entity::SecondaryMap;

/// A store of a root into a word of the frame, in front of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Store {
    pub(crate) root: Root,
    pub(crate) block: Block,
    pub(crate) before: Inst,
    pub(crate) word: u32,
}

/// All stores, and how many words they need.
#[derive(Debug)]
pub(crate) struct Slots {
    /// By variable.
    pub(crate) stores: Vec<Store>,
    pub(crate) words: u32,
    /// Where variables live.
    pub(crate) ranges: Ranges,
    /// By block: what happens in it, in order.
    pub(crate) events: SecondaryMap<Block, Vec<(u32, Event)>>,
    /// Positions of instructions in their blocks.
    position: SecondaryMap<Inst, u32>,
}

/// Something that happens to a variable in a block, in front of an instruction (`Begin`) or behind it (`End`, which is the end of
/// its life on this way).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    Begin(u32),
    End(u32),
}

impl Event {
    /// Whether it happens in front of the instruction.
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

    /// A word for each root that may need one.
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
            // An allocation is no terminator, so an instruction follows it.
            if let (Some(before), false) = (behind, refinements.is_always_rooted(root)) {
                slots.stores.push(Store { root, block, before, word: slots.words });
                slots.words += 1;
            }
        }
        slots
    }

    /// Chooses stores and words. Words below `reserved` are taken.
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
            // One variable for each doom, and one for what may return. The sort keeps the order of the tree.
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
                    // Variables come in ascending order.
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

/// Which words are taken. The lowest free one is found by two levels of bits: one for each word, one for each 64 words that are
/// all taken.
#[derive(Default)]
struct Words {
    taken: Vec<u64>,
    full: Vec<u64>,
    /// The words taken since the last clearing.
    touched: Vec<u32>,
    /// The first word behind all that were ever taken.
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

/// Where the store for these safepoints goes: a block, and the instruction in front of which.
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

/// The header of the outermost loop around this one in which `home` does not stand.
fn outermost(loops: &Loops, around: brolga_ir::analysis::Loop, home: Block) -> Block {
    let parents = std::iter::successors(Some(around), |&l| loops.parent(l));
    let last = parents.take_while(|&l| !loops.contains(l, home)).last();
    loops.header(last.unwrap_or(around))
}
