//! The head of a block: its φ and φᶜ, and the copies between them.
//!
//! A pass that reduces a φ to one value may turn it into a copy in place. All φ of a head change together when the block is
//! entered, before the copies between them are computed.

use brolga_ir::{Block, Func, Inst, Op, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// φ of one block that are compared with each other.
const MAX_PHIS: usize = 16;

/// The φ and φᶜ of a block.
pub(crate) fn head_phis(func: &Func, block: Block) -> impl Iterator<Item = Inst> + '_ {
    let head = func.block_insts(block).take_while(|&i| matches!(func.op(i), Op::Phi | Op::PhiC | Op::Copy));
    head.filter(|&i| func.op(i) != Op::Copy)
}

/// Moves a φ that is about to become another operation than a copy after the φ of its block. False if it has to stay, because a copy
/// between them reads it.
pub(crate) fn leave_head(func: &mut Func, phi: Inst) -> bool {
    let Some(block) = func.inst_block(phi) else { return true };
    let Some(last) = head_phis(func, block).last().filter(|&last| last != phi) else { return true };
    let result = func.result(phi);
    let reads =
        |inst: Inst| func.op(inst) == Op::Copy && func.args(inst).iter().any(|&arg| Some(arg) == result);
    let is_read = func.block_insts(block).take_while(|&inst| inst != last).any(reads);
    if is_read {
        return false;
    }
    func.remove_inst(phi);
    func.insert_after(phi, last);
    true
}

/// After the ends of blocks have moved: renames every φ edge from a block of `ends` to the block that now has its
/// terminator. One sweep over the heads of all blocks.
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

/// Whether two φ of a block have the same operands, or the operands of some φ are all loads.
pub(crate) fn may_be_merged(func: &Func) -> bool {
    let loaded = |&v: &Value| func.def_inst(v).is_some_and(|def| matches!(func.op(def), Op::Load(_)));
    func.blocks().any(|block| {
        let phis: SmallVec<[Inst; 8]> = head_phis(func, block).take(MAX_PHIS).collect();
        let loads = |phi| func.args(phi).len() > 1 && func.args(phi).iter().all(loaded);
        let alike =
            |a: Inst, b: Inst| func.args(a) == func.args(b) && func.inst_blocks(a) == func.inst_blocks(b);
        phis.iter().enumerate().any(|(n, &a)| loads(a) || phis[n + 1..].iter().any(|&b| alike(a, b)))
    })
}
