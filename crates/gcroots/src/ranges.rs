//! Live ranges of numbered variables: roots from their definition to their uses, slots from their store to
//! the safepoints that need them.
//!
//! Like [`Liveness`](brolga_ir::analysis::Liveness) this walks from each use backwards to the definition, one
//! variable after the other in ascending order, so that a block's list is sorted and the test for membership
//! looks only at its last element. The cost is the size of the result. Bit sets would take blocks ×
//! variables: 312 MB for each direction in a function of 50,000 blocks with a root in each, of which a
//! handful are live at a time.
//!
//! Unlike `Liveness`, it follows exceptional edges (see [`flow`](crate::flow)), and its variables are not values.

use crate::flow::Flow;
use brolga_ir::Block;
use cranelift_entity::EntityRef;

/// A point where a variable is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Use {
    /// Somewhere in the block.
    In(Block),
    /// At the end of the block.
    Out(Block),
}

/// Live variables at block boundaries.
#[derive(Debug)]
pub(crate) struct Ranges {
    live_in: Vec<Vec<u32>>,
    live_out: Vec<Vec<u32>>,
    work: Vec<Block>,
    /// The size of the result.
    pub(crate) entries: usize,
}

impl Ranges {
    pub(crate) fn new(flow: &Flow) -> Ranges {
        let count = flow.cfg.block_count();
        let (live_in, live_out) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        Ranges { live_in, live_out, work: Vec::new(), entries: 0 }
    }

    /// Adds a variable that is defined in `home`, from which it reaches all its uses. Variables are added in
    /// ascending order.
    pub(crate) fn add(&mut self, flow: &Flow, variable: u32, home: Block, uses: impl Iterator<Item = Use>) {
        for needed in uses {
            match needed {
                Use::In(block) if block == home => {}
                Use::In(block) => self.work.push(block),
                Use::Out(block) => self.leaves(variable, block, home),
            }
            while let Some(block) = self.work.pop() {
                let list = &mut self.live_in[block.index()];
                if list.last() == Some(&variable) {
                    continue;
                }
                list.push(variable);
                self.entries += 1;
                for pred in flow.preds(block) {
                    self.leaves(variable, pred, home);
                }
            }
        }
    }

    fn leaves(&mut self, variable: u32, block: Block, home: Block) {
        let list = &mut self.live_out[block.index()];
        if list.last() != Some(&variable) {
            list.push(variable);
            self.entries += 1;
            if block != home {
                self.work.push(block);
            }
        }
    }

    /// The variables that are live at the head of the block and defined elsewhere, ascending.
    pub(crate) fn live_in(&self, block: Block) -> &[u32] {
        &self.live_in[block.index()]
    }

    /// The variables that are live at the end of the block, ascending.
    pub(crate) fn live_out(&self, block: Block) -> &[u32] {
        &self.live_out[block.index()]
    }
}
