//! Removes instructions whose results are not used.
//!
//! ```text
//! %2 = add_int(%1, 1)     no use              ==>
//! %3 = φ (#1 => 0, #2 => %4)
//! %4 = add_int(%3, 1)     used by %3 only     ==>
//! ```
//!
//! Everything is dead until proved needed. Instructions with effects are needed, and so are the operands of needed ones;
//! `effects(inst).is_removable()` decides. Cycles of φ that only feed themselves are therefore removed as well.
//!
//! A ϒ is needed when a φᶜ that names it is: it has no other effect.
//!
//! Instructions are removed one after the other, users first, each for one unit of fuel; only cycles remain, which are
//! removed together.
//!
//! Cost: one visit to each instruction and operand. Breaks the uses; blocks and edges stay. Not done: stores
//! (`dse`); branches that decide nothing.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::effects::effects;
use brolga_ir::{Func, Inst, Op};
use cranelift_entity::{EntitySet, SecondaryMap};

pub(crate) const PASS: Pass = Pass::new("dce", PassLevel::Both, run).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let Some(needed) = needed(func, cx) else { return Changed::No };
    let dead: Vec<Inst> =
        func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| !needed.contains(i)).collect();
    // By instruction: how many operands of dead instructions are its results.
    let mut users: SecondaryMap<Inst, u32> = SecondaryMap::new();
    for &inst in &dead {
        for &arg in func.args(inst) {
            if let Some(def) = func.def_inst(arg) {
                users[def] += 1;
            }
        }
    }
    let mut unused: Vec<Inst> = dead.iter().copied().filter(|&i| users[i] == 0).collect();
    let mut left = dead.len();
    while let Some(inst) = unused.pop() {
        if !cx.spend("removed") {
            return cx.changed();
        }
        left -= 1;
        for n in 0..func.args(inst).len() {
            let Some(def) = func.def_inst(func.args(inst)[n]) else { continue };
            users[def] -= 1;
            if users[def] == 0 && !needed.contains(def) {
                unused.push(def);
            }
        }
        func.remove_inst(inst);
    }
    // The rest use each other in cycles: some alone would leave uses of nothing.
    if left > 0 && cx.spend("removed cycles") {
        for inst in dead {
            if func.inst_block(inst).is_some() {
                func.remove_inst(inst);
            }
        }
    }
    cx.changed()
}

/// The instructions that are needed; nothing if all are.
fn needed(func: &Func, cx: &PassCx<'_>) -> Option<EntitySet<Inst>> {
    let types = cx.types();
    let mut needed = EntitySet::with_capacity(func.inst_count());
    let is_root = |inst: Inst| match func.op(inst) {
        Op::Upsilon | Op::Phi => false,
        op => op.is_terminator() || !effects(func, types, inst).is_removable(),
    };
    // Each comes here once at most.
    let mut work: Vec<Inst> = Vec::with_capacity(func.inst_count());
    let (mut all, mut found) = (0, 0);
    for inst in func.blocks().flat_map(|b| func.block_insts(b)) {
        all += 1;
        if is_root(inst) {
            needed.insert(inst);
            work.push(inst);
        }
    }
    while let Some(inst) = work.pop() {
        found += 1;
        for &arg in func.args(inst) {
            if let Some(def) = func.def_inst(arg)
                && needed.insert(def)
            {
                work.push(def);
            }
        }
    }
    (found < all).then_some(needed)
}
