//! Values that may be undefined when they are used.
//!
//! A φ that lacks an edge, or gets "undefined" over one, may be undefined, and so may be what passes it on: other φ and copies.
//! Such a value may be passed on but not computed with, so a computation with it may not be moved to where the program does
//! not do it.
//!
//! Cost: the φ and copies of the function, as often as the longest chain of them is against the order of the blocks.

use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::{Func, Op, Value};
use cranelift_entity::EntitySet;

/// φ and copies that may pass on "undefined".
pub(crate) struct MaybeUndefined(EntitySet<Value>);

impl MaybeUndefined {
    pub(crate) fn of(func: &Func, cfg: &Cfg, rpo: &Rpo) -> MaybeUndefined {
        let mut found = EntitySet::new();
        loop {
            let mut changed = false;
            for &block in rpo.blocks() {
                for inst in func.block_insts(block) {
                    let lacks_edge = match func.op(inst) {
                        Op::Phi => {
                            let edges = func.inst_blocks(inst);
                            cfg.preds(block).iter().any(|p| rpo.is_reachable(*p) && !edges.contains(p))
                        }
                        Op::Copy => false,
                        _ => continue,
                    };
                    let Some(result) = func.result(inst) else { continue };
                    let passes_on = |&v: &Value| found.contains(v) || is_undefined(func, v);
                    if !found.contains(result) && (lacks_edge || func.args(inst).iter().any(passes_on)) {
                        changed = found.insert(result);
                    }
                }
            }
            if !changed {
                return MaybeUndefined(found);
            }
        }
    }

    /// Whether a value may be undefined.
    pub(crate) fn has(&self, func: &Func, value: Value) -> bool {
        self.0.contains(value) || is_undefined(func, value)
    }
}

fn is_undefined(func: &Func, value: Value) -> bool {
    matches!(func.as_const(value), Some(Const::Undef(_)))
}
