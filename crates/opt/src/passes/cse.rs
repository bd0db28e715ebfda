//! Computes equal values once.
//!
//! ```text
//! %1 = getfield(t, 1)                          blocks of the dominator tree, with the table
//! %2 = checked_sdiv_int(%1, y)                        1  {a, b}
//! …                                                  / \
//! %7 = checked_sdiv_int(%1, y)   ==>   %2      {+c} 2   3 {+d}     c is forgotten before 3
//! ```
//!
//! Two instructions are equal if operation, operands and result types are, operands of commutative operations in either
//! order. The second takes the results of the first if that dominates it and `effects(inst).may_be_shared()`: it depends on
//! nothing but operands and has no effect. It may throw: the first has then thrown already. So a dominating bounds check is not
//! repeated.
//!
//! The walk goes down the dominator tree with a hash table of the instructions that dominate the place; leaving a block removes its
//! entries. Operands are replaced on the way, so chains of equal instructions collapse in one pass.
//!
//! Cost: one look-up for each instruction. Needs the dominator tree; breaks the uses. Not done: memory that was not written
//! in between and φ (`gvn`); values that are equal for algebraic reasons.

use crate::exprs::Exprs;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Op};

pub(crate) const PASS: Pass =
    Pass::new("cse", PassLevel::Both, run).needs(&[Fact::Cfg, Fact::DomTree]).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let tree = cx.facts.domtree();
    let mut values = Replacements::default();
    let mut table = Exprs::new(func.inst_count());
    // For each open block: how long the table was before it, and which child comes next.
    let mut open: Vec<(Block, usize, usize)> = Vec::new();
    let mut enter = func.entry();
    'walk: loop {
        if let Some(block) = enter.take() {
            open.push((block, table.len(), 0));
            let mut next = func.first_inst(block);
            while let Some(inst) = next {
                next = func.next_inst(inst);
                if !share(func, cx, &mut table, &mut values, inst) {
                    break 'walk;
                }
            }
        }
        let Some((block, start, child)) = open.last_mut() else { break };
        match tree.children(*block).get(*child) {
            Some(&below) => {
                *child += 1;
                enter = Some(below);
            }
            None => {
                table.truncate(*start);
                open.pop();
            }
        }
    }
    values.apply(func, cx.context());
    cx.changed()
}

/// Replaces an instruction by an equal one, or remembers it. `false`: there is no fuel left.
fn share(
    func: &mut Func,
    cx: &mut PassCx<'_>,
    table: &mut Exprs,
    values: &mut Replacements,
    inst: Inst,
) -> bool {
    values.apply_to(func, cx.context(), inst);
    if func.results(inst).len() == 0 || !is_worth_sharing(func.op(inst)) {
        return true;
    }
    if !effects(func, cx.types(), inst).may_be_shared() {
        return true;
    }
    let Some(first) = table.find_or_insert(func, inst) else { return true };
    if !cx.spend("shared") {
        return false;
    }
    for (second, first) in func.results(inst).zip(func.results(first)) {
        values.set(second, first);
    }
    func.remove_inst(inst);
    true
}

/// Operations that pass a value on cost nothing, and keeping two of them lets each be simplified where it is.
pub(super) fn is_worth_sharing(op: Op) -> bool {
    !matches!(op, Op::Phi | Op::Copy | Op::BoundsCheck(_) | Op::SlotAddr(_))
}
