//! φ that pass one value around a cycle.
//!
//! ```text
//! 2: %5 = φ (#1 => %3, #6 => %9)          %5 and %9 are %3, although neither φ alone shows it
//! 4: %9 = φ (#2 => %5, #3 => %3)
//! ```
//!
//! The analysis is optimistic: a φ is the common value of its operands that have one so far, or itself if they differ. The
//! facts at the fixpoint are true, and the value dominates the φ: the last edge by which it entered the web is on every path
//! to it.
//!
//! Cost: a few sweeps over the φ; nothing is found where they do not settle within [`MAX_SWEEPS`].

use crate::pass::PassCx;
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::{Func, Inst, Op, Value};
use rustc_hash::FxHashMap;

/// Webs reach through as many φ as loops are nested, and few more.
const MAX_SWEEPS: usize = 12;

/// Replaces the φ that can only have one value, by this value.
pub(super) fn fold(func: &mut Func, cx: &mut PassCx<'_>, cfg: &Cfg, rpo: &Rpo, values: &mut Replacements) {
    let mut phis: Vec<(Inst, Value)> = Vec::new();
    // By φ: its assumed value, if any.
    let mut is: FxHashMap<Value, Option<Value>> = FxHashMap::default();
    for &block in rpo.blocks() {
        let ways = cfg.preds(block).iter().filter(|&&p| rpo.is_reachable(p)).count();
        for phi in func.block_insts(block).take_while(|&inst| func.op(inst) == Op::Phi) {
            let Some(own) = func.result(phi) else { continue };
            // One with a missing edge may be undefined.
            let is_whole = func.phi_edges(phi).filter(|&(from, _)| rpo.is_reachable(from)).count() == ways;
            if is_whole && values.resolve(own) == own {
                phis.push((phi, own));
                is.insert(own, None);
            }
        }
    }
    for sweep in 0.. {
        if sweep == MAX_SWEEPS {
            return;
        }
        let mut changed = false;
        for &(phi, own) in &phis {
            let mut found = None;
            for (from, value) in func.phi_edges(phi) {
                if !rpo.is_reachable(from) {
                    continue;
                }
                let value = values.resolve(value);
                let known = is.get(&value).copied().unwrap_or(Some(value));
                found = match (found, known) {
                    (one, None) | (None, one) => one,
                    (Some(a), Some(b)) if a == b => found,
                    _ => Some(own),
                };
                if found == Some(own) {
                    break;
                }
            }
            if is.insert(own, found) != Some(found) {
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for (phi, own) in phis {
        let Some(&Some(value)) = is.get(&own) else { continue };
        if value == own || func.ty(value) != func.ty(own) {
            continue;
        }
        if !cx.spend("φ of one value") {
            return;
        }
        values.set(own, value);
        func.remove_inst(phi);
    }
}
