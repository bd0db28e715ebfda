//! Layout: the order of blocks in a function and of instructions in a block.
//!
//! Both orders are doubly linked lists over side tables, so insertion and removal take constant time
//! anywhere, and an unlinked instruction is simply in no block. The content of an instruction lives in
//! [`Func`](crate::Func).

use crate::entity::{Block, Inst};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The order of blocks and instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    blocks: SecondaryMap<Block, BlockNode>,
    insts: SecondaryMap<Inst, InstNode>,
    first: PackedOption<Block>,
    last: PackedOption<Block>,
}

#[derive(Clone, Debug, Default)]
struct BlockNode {
    prev: PackedOption<Block>,
    next: PackedOption<Block>,
    first: PackedOption<Inst>,
    last: PackedOption<Inst>,
    linked: bool,
}

#[derive(Clone, Debug, Default)]
struct InstNode {
    block: PackedOption<Block>,
    prev: PackedOption<Inst>,
    next: PackedOption<Inst>,
}

impl Order {
    /// An empty order with reserved capacity.
    pub(crate) fn with_capacity(blocks: usize, insts: usize) -> Order {
        let (blocks, insts) = (SecondaryMap::with_capacity(blocks), SecondaryMap::with_capacity(insts));
        Order { blocks, insts, ..Order::default() }
    }

    #[inline]
    pub(crate) fn first_block(&self) -> Option<Block> {
        self.first.expand()
    }

    #[inline]
    pub(crate) fn last_block(&self) -> Option<Block> {
        self.last.expand()
    }

    #[inline]
    pub(crate) fn next_block(&self, block: Block) -> Option<Block> {
        self.blocks[block].next.expand()
    }

    #[inline]
    pub(crate) fn prev_block(&self, block: Block) -> Option<Block> {
        self.blocks[block].prev.expand()
    }

    #[inline]
    pub(crate) fn has_block(&self, block: Block) -> bool {
        self.blocks[block].linked
    }

    #[inline]
    pub(crate) fn first_inst(&self, block: Block) -> Option<Inst> {
        self.blocks[block].first.expand()
    }

    #[inline]
    pub(crate) fn last_inst(&self, block: Block) -> Option<Inst> {
        self.blocks[block].last.expand()
    }

    #[inline]
    pub(crate) fn next_inst(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].next.expand()
    }

    #[inline]
    pub(crate) fn prev_inst(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].prev.expand()
    }

    #[inline]
    pub(crate) fn inst_block(&self, inst: Inst) -> Option<Block> {
        self.insts[inst].block.expand()
    }

    /// Links a block after `after`, or first. Does nothing if `after` is the block itself or is not linked.
    pub(crate) fn insert_block(&mut self, block: Block, after: Option<Block>) {
        if after.is_some_and(|after| after == block || !self.has_block(after)) {
            return;
        }
        if self.has_block(block) {
            self.remove_block(block);
        }
        let next = match after {
            Some(after) => self.blocks[after].next.expand(),
            None => self.first.expand(),
        };
        let node = &mut self.blocks[block];
        (node.prev, node.next, node.linked) = (after.into(), next.into(), true);
        match after {
            Some(after) => self.blocks[after].next = block.into(),
            None => self.first = block.into(),
        }
        match next {
            Some(next) => self.blocks[next].prev = block.into(),
            None => self.last = block.into(),
        }
    }

    /// Unlinks a block; its instructions stay linked inside it.
    pub(crate) fn remove_block(&mut self, block: Block) {
        if !self.has_block(block) {
            return;
        }
        let node = &mut self.blocks[block];
        let (prev, next) = (node.prev, node.next);
        (node.prev, node.next, node.linked) = (None.into(), None.into(), false);
        match prev.expand() {
            Some(prev) => self.blocks[prev].next = next,
            None => self.first = next,
        }
        match next.expand() {
            Some(next) => self.blocks[next].prev = prev,
            None => self.last = prev,
        }
    }

    /// Links an instruction into `block` after `after`, which must be in it, or first. An instruction already
    /// there stays.
    pub(crate) fn insert_inst(&mut self, inst: Inst, block: Block, after: Option<Inst>) {
        if after == Some(inst) {
            return;
        }
        if self.inst_block(inst).is_some() {
            self.remove_inst(inst);
        }
        let next = match after {
            Some(after) => self.insts[after].next.expand(),
            None => self.blocks[block].first.expand(),
        };
        self.insts[inst] = InstNode { block: block.into(), prev: after.into(), next: next.into() };
        match after {
            Some(after) => self.insts[after].next = inst.into(),
            None => self.blocks[block].first = inst.into(),
        }
        match next {
            Some(next) => self.insts[next].prev = inst.into(),
            None => self.blocks[block].last = inst.into(),
        }
    }

    /// Unlinks an instruction.
    pub(crate) fn remove_inst(&mut self, inst: Inst) {
        let Some(block) = self.inst_block(inst) else { return };
        let InstNode { prev, next, .. } = std::mem::take(&mut self.insts[inst]);
        match prev.expand() {
            Some(prev) => self.insts[prev].next = next,
            None => self.blocks[block].first = next,
        }
        match next.expand() {
            Some(next) => self.insts[next].prev = prev,
            None => self.blocks[block].last = prev,
        }
    }

    /// Moves `first` and everything after it to the end of another block.
    pub(crate) fn split(&mut self, first: Inst, to: Block) {
        if self.inst_block(first).is_none_or(|from| from == to) {
            return;
        }
        let mut at = Some(first);
        while let Some(inst) = at {
            at = self.next_inst(inst);
            self.remove_inst(inst);
            let last = self.last_inst(to);
            self.insert_inst(inst, to, last);
        }
    }
}
