//! Computes equal things once.
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
//! nothing but operands and has no effect. It may throw: the first has then thrown already. So a bounds check that was made on the
//! way is not made again.
//!
//! The walk goes down the dominator tree with a hash table of what dominates the place; leaving a block takes out what it put
//! in. Operands are replaced on the way, so chains of equal instructions collapse in one pass.
//!
//! Cost: one look-up for each instruction. Needs the dominator tree; breaks the uses. Not done: memory that was not written
//! in between; φ; values that are equal for algebraic reasons.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::builtin::Builtin;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Op, Value};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

pub(crate) const PASS: Pass = Pass {
    name: "cse",
    level: PassLevel::Both,
    required: false,
    needs: &[Fact::Cfg, Fact::DomTree],
    breaks: &[Fact::Uses],
    run,
};

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let tree = cx.facts.domtree();
    let mut values = Replacements::default();
    let mut table = Table::new(func.inst_count());
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
    values.apply(func, cx.types());
    cx.changed()
}

/// Replaces an instruction by an equal one, or remembers it. `false`: there is no fuel left.
fn share(
    func: &mut Func,
    cx: &mut PassCx<'_>,
    table: &mut Table,
    values: &mut Replacements,
    inst: Inst,
) -> bool {
    values.apply_to(func, cx.types(), inst);
    if func.results(inst).len() == 0 || !is_worth_sharing(func.op(inst)) {
        return true;
    }
    if !effects(func, cx.types(), inst).may_be_shared() {
        return true;
    }
    let hash = hash_of(func, inst);
    let Some(first) = table.find(func, hash, inst) else {
        table.insert(hash, inst);
        return true;
    };
    if !cx.spend("shared") {
        return false;
    }
    for (second, first) in func.results(inst).zip(func.results(first)) {
        values.set(second, first);
    }
    func.remove_inst(inst);
    true
}

/// What passes a value on costs nothing, and keeping two of them lets each be simplified where it is.
fn is_worth_sharing(op: Op) -> bool {
    !matches!(op, Op::Phi | Op::Copy | Op::BoundsCheck(_) | Op::SlotAddr(_))
}

/// Whether the first two operands may stand in either order.
fn commutes(op: Op) -> bool {
    match op {
        Op::Intrinsic(op) => op.is_commutative(),
        Op::Builtin(op) => op == Builtin::Egal,
        _ => false,
    }
}

/// The operands in an order that does not depend on how they stand.
fn key(func: &Func, inst: Inst) -> (Option<(Value, Value)>, &[Value]) {
    match func.args(inst) {
        &[x, y, ref rest @ ..] if commutes(func.op(inst)) => (Some((x.min(y), x.max(y))), rest),
        args => (None, args),
    }
}

fn hash_of(func: &Func, inst: Inst) -> u64 {
    let mut hasher = FxHasher::default();
    func.op(inst).hash(&mut hasher);
    key(func, inst).hash(&mut hasher);
    hasher.finish()
}

fn are_equal(func: &Func, a: Inst, b: Inst) -> bool {
    let types = |inst| func.results(inst).map(|v| func.ty(v));
    func.op(a) == func.op(b) && key(func, a) == key(func, b) && types(a).eq(types(b))
}

/// A hash table that forgets what was put in last: chains through one vector, newest first.
struct Table {
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

struct Entry {
    hash: u64,
    inst: Inst,
    /// The entry that was the head of this chain before.
    below: u32,
}

const END: u32 = u32::MAX;

impl Table {
    /// A table for about `count` instructions.
    fn new(count: usize) -> Self {
        Table { heads: vec![END; count.next_power_of_two().max(16)], entries: Vec::new() }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn slot(&self, hash: u64) -> usize {
        // The upper bits of this hash are the better ones.
        (hash >> 32) as usize & (self.heads.len() - 1)
    }

    fn find(&self, func: &Func, hash: u64, inst: Inst) -> Option<Inst> {
        let mut at = self.heads[self.slot(hash)];
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.hash == hash && are_equal(func, entry.inst, inst) {
                return Some(entry.inst);
            }
            at = entry.below;
        }
        None
    }

    fn insert(&mut self, hash: u64, inst: Inst) {
        let slot = self.slot(hash);
        self.entries.push(Entry { hash, inst, below: self.heads[slot] });
        self.heads[slot] = self.entries.len() as u32 - 1;
    }

    fn truncate(&mut self, len: usize) {
        while self.entries.len() > len {
            if let Some(entry) = self.entries.pop() {
                let slot = self.slot(entry.hash);
                self.heads[slot] = entry.below;
            }
        }
    }
}
