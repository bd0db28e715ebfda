//! Marks the blocks that are hardly ever entered, so that code generation places them after all others.
//!
//! ```text
//! 1: goto #3 if not %1 weights 1:99           1, 3, …  in a row
//! 2: …                             ==>        2        after them, marked cold
//! ```
//!
//! `likely.rs` defines these blocks. Of two edges that are both taken, code generation makes the likelier one fall
//! through; it reads the branch weights by itself.
//!
//! It runs last: passes that look for cold blocks use the edges that lead there. A mark is a hint, and changes nothing
//! but the time.
//!
//! Cost: two walks over the blocks.

use crate::facts::Fact;
use crate::likely::ColdBlocks;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::{Block, Func};

pub(crate) const PASS: Pass = Pass::new("cold-blocks", PassLevel::Low, run).needs(&[Fact::Cfg]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let cold = ColdBlocks::of(func, cx.facts.cfg(), cx.facts.rpo());
    let new: Vec<Block> = func.blocks().filter(|&block| cold.has(block) && !func.is_cold(block)).collect();
    for block in new {
        if !cx.spend("cold blocks") {
            break;
        }
        func.set_cold(block);
    }
    cx.changed()
}
