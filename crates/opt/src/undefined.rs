//! Values that may be undefined when they are used.
//!
//! A φ that lacks an edge, or gets "undefined" over one, may be undefined, and so may other φ and copies that pass it on.
//! Such a value may be passed on but not computed with, so a computation with it may not be moved to a place where the program
//! does not execute it.
//!
//! Cost: the instructions once; the φ and copies as often as the longest chain of them is against the order of the blocks.

use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::{Block, Func, Inst, Op, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use std::cell::OnceCell;

/// [`MaybeUndefined`] on demand. It is computed at the first query, so until then only instructions that are neither
/// φ nor copies may have changed.
pub(crate) struct WhenAsked<'a> {
    cfg: &'a Cfg,
    rpo: &'a Rpo,
    known: OnceCell<MaybeUndefined>,
}

impl<'a> WhenAsked<'a> {
    pub(crate) fn new(cfg: &'a Cfg, rpo: &'a Rpo) -> WhenAsked<'a> {
        WhenAsked { cfg, rpo, known: OnceCell::new() }
    }

    pub(crate) fn get(&self, func: &Func) -> &MaybeUndefined {
        self.known.get_or_init(|| MaybeUndefined::of(func, self.cfg, self.rpo))
    }
}

/// φ and copies that may pass on "undefined".
pub(crate) struct MaybeUndefined(EntitySet<Value>);

impl MaybeUndefined {
    pub(crate) fn of(func: &Func, cfg: &Cfg, rpo: &Rpo) -> MaybeUndefined {
        let mut found = EntitySet::new();
        // φ and copies, in order.
        let mut passing: Vec<(Inst, Value)> = Vec::new();
        // By block: the last φ seen with an edge from it.
        let mut gives_to: SecondaryMap<Block, PackedOption<Inst>> = SecondaryMap::new();
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                let op = func.op(inst);
                let Some(result) = func.result(inst).filter(|_| matches!(op, Op::Phi | Op::Copy)) else {
                    continue;
                };
                passing.push((inst, result));
                if op == Op::Phi {
                    func.inst_blocks(inst).iter().for_each(|&from| gives_to[from] = inst.into());
                    let is_lacking = |&p: &Block| rpo.is_reachable(p) && gives_to[p] != inst.into();
                    if cfg.preds(block).iter().any(is_lacking) {
                        found.insert(result);
                    }
                }
            }
        }
        loop {
            let mut changed = false;
            for &(inst, result) in &passing {
                let is_undefined = |&v: &Value| found.contains(v) || is_undefined(func, v);
                if !found.contains(result) && func.args(inst).iter().any(is_undefined) {
                    changed = found.insert(result);
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
