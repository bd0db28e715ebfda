//! The check before a function first runs: all its ids belong to it.
//!
//! The tables of a [`Func`] are indexed by id, so a foreign id would be out of range in the middle of a step.
//! The step itself checks everything that depends on values; the verifier checks typing and dominance.

use super::error::Fault;
use brolga_ir::func::Func;
use brolga_ir::op::Op;
use cranelift_entity::EntityRef;

/// Whether all ids of a function are in range.
pub(super) fn check(func: &Func) -> Result<(), Fault> {
    let (callees, foreigns) = (func.callees().count(), func.foreigns().count());
    let slots = func.slots().count();
    let foreign = |id: &dyn std::fmt::Display| Err(Fault::ForeignId(id.to_string()));
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            for &arg in func.args(inst) {
                if !func.has_value(arg) {
                    return foreign(&arg);
                }
            }
            let op = func.op(inst);
            for &target in func.inst_blocks(inst) {
                if !func.is_block(target) || (op.is_terminator() && !func.is_placed(target)) {
                    return foreign(&target);
                }
            }
            match op {
                Op::Invoke(id) | Op::CallSymbol(id) | Op::CFunction(id) if id.index() >= callees => {
                    return foreign(&id);
                }
                Op::ForeignCall(id) if id.index() >= foreigns => return foreign(&id),
                Op::SlotAddr(id) if id.index() >= slots => return foreign(&id),
                _ => {}
            }
        }
    }
    Ok(())
}
