//! Ensures that every loop has one entering edge and one back edge.
//!
//! ```text
//!  a   b                 a   b
//!   \ /                   \ /
//!    h <─┐ <─┐     ==>     p          p, the preheader: leads to h and nowhere else
//!    ├─> c ──┘ │           h <─┐
//!    └─> d ────┘         c   d │
//!                         \ /  │
//!                          l ──┘      l, the latch: the only block that leads back to h
//! ```
//!
//! The preheader holds the values that later passes compute before a loop; values that change from one iteration to the next pass
//! through the latch. A new block takes over the edges of several blocks, and each φ of the head is divided: the new
//! block gets a φ of those edges, if they bring different values.
//!
//! Cost: the edges into loop heads and their φ. Breaks the graph. Not done: dedicated exit blocks; irreducible
//! cycles, which are not loops.

use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::{Block, Func, Inst, Op, Value};
use cranelift_entity::SecondaryMap;

pub(crate) const PASS: Pass = Pass::new("loop-simplify", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops])
    .breaks(&[Fact::Cfg, Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops) = (cx.facts.cfg(), cx.facts.loops());
    let mut moved = Moved::default();
    for l in loops.iter() {
        let header = loops.header(l);
        let (latches, outside): (Vec<Block>, Vec<Block>) =
            cfg.preds(header).iter().copied().partition(|&p| loops.contains(l, p));
        if loops.preheader(cfg, l).is_none() {
            if !cx.spend("preheaders") {
                break;
            }
            let before = func.prev_block(header);
            gather(func, header, &outside, before, &mut moved);
        }
        if !all_one(&latches) {
            if !cx.spend("latches") {
                break;
            }
            gather(func, header, &latches, latches.last().copied(), &mut moved);
        }
    }
    cx.changed()
}

fn all_one(blocks: &[Block]) -> bool {
    blocks.iter().all(|b| Some(b) == blocks.first())
}

/// The blocks whose edges are being moved.
#[derive(Default)]
struct Moved {
    /// By block: the number of its last move.
    last: SecondaryMap<Block, u32>,
    number: u32,
    /// How many blocks there are in this move.
    count: usize,
}

impl Moved {
    fn start(&mut self, blocks: &[Block]) {
        self.number += 1;
        self.count = 0;
        for &block in blocks {
            if std::mem::replace(&mut self.last[block], self.number) != self.number {
                self.count += 1;
            }
        }
    }

    fn has(&self, block: Block) -> bool {
        self.last[block] == self.number
    }
}

/// Redirects the edges from `preds` to `head` through a new block after `after`.
fn gather(func: &mut Func, head: Block, preds: &[Block], after: Option<Block>, moved: &mut Moved) {
    let new = func.make_block();
    match after {
        Some(after) => func.insert_block_after(new, after),
        None => func.append_block(new),
    }
    moved.start(preds);
    for &pred in preds {
        if let Some(end) = func.terminator(pred) {
            for target in func.inst_blocks_mut(end).iter_mut().filter(|t| **t == head) {
                *target = new;
            }
        }
    }
    let jump = func.make_inst(Op::Goto, &[], &[head], &[]);
    if let Some(first) = func.first_inst(head) {
        func.set_place(jump, func.place(first));
    }
    func.append_inst(jump, new);
    let phis: Vec<Inst> = head_phis(func, head).collect();
    for phi in phis {
        divide(func, phi, new, moved);
    }
}

/// Replaces the φ edges of the moved blocks by one from `new`.
fn divide(func: &mut Func, phi: Inst, new: Block, moved: &Moved) {
    let edges: Vec<(Block, Value)> = func.phi_edges(phi).filter(|&(b, _)| moved.has(b)).collect();
    let (Some(&(_, first)), Some(result)) = (edges.first(), func.result(phi)) else { return };
    // A φ without an edge from a block is undefined on it, so the φ of the new block lacks that edge as well.
    let same = edges.len() == moved.count && edges.iter().all(|&(_, v)| v == first);
    let value = if same {
        first
    } else {
        let (blocks, values): (Vec<Block>, Vec<Value>) = edges.into_iter().unzip();
        let part = func.make_inst(Op::Phi, &values, &blocks, &[func.ty(result)]);
        func.set_place(part, func.place(phi));
        func.prepend_inst(part, new);
        func.result(part).unwrap_or(first)
    };
    func.retain_phi_edges(phi, |block, _| !moved.has(block));
    func.add_phi_edge(phi, new, value);
}
