//! The head of a block: its φ and φᶜ, and the copies that may stand between them.
//!
//! A pass that finds a φ to be one value may turn it into a copy in place. All φ of a head change together when the block is
//! entered, and the copies between them are read after that.

use brolga_ir::{Block, Func, Inst, Op};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The φ and φᶜ of a block.
pub(crate) fn head_phis(func: &Func, block: Block) -> impl Iterator<Item = Inst> + '_ {
    let head = func.block_insts(block).take_while(|&i| matches!(func.op(i), Op::Phi | Op::PhiC | Op::Copy));
    head.filter(|&i| func.op(i) != Op::Copy)
}

/// After the ends of blocks have moved: lets every φ that names a block of `ends` name the block that now ends as that did.
/// One sweep over the heads of all blocks.
pub(crate) fn rename_phi_blocks(func: &mut Func, ends: &SecondaryMap<Block, PackedOption<Block>>) {
    let mut at = func.entry();
    while let Some(block) = at {
        at = func.next_block(block);
        let phis: Vec<Inst> = head_phis(func, block).collect();
        for phi in phis {
            for pred in func.inst_blocks_mut(phi) {
                *pred = ends[*pred].expand().unwrap_or(*pred);
            }
        }
    }
}
