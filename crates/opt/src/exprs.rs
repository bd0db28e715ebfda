//! A hash table of instructions by operation, operands and result types.
//!
//! Two instructions are equal if operation, operands and result types are, operands of commutative operations in either order,
//! for φ also the block and its incoming edges, for calls also the inlining hint: a call with `noinline` differs from one
//! with `inline`. The table is used on a walk down the dominator tree: leaving a block removes the entries since its start,
//! so every entry dominates the place.
//!
//! ```text
//! heads   3 ─> entry 7 ─> entry 2 ─> end          newest first; `truncate` takes entries off the end of the vector
//! ```

use brolga_ir::builtin::Builtin;
use brolga_ir::{Func, Inst, Op, Value};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The instructions that dominate the place where the walk is.
pub(crate) struct Exprs {
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

impl Exprs {
    /// A table for about `count` instructions.
    pub(crate) fn new(count: usize) -> Self {
        Exprs { heads: vec![END; count.next_power_of_two().max(16)], entries: Vec::with_capacity(count) }
    }

    /// How many instructions there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An equal instruction, or puts this one in.
    pub(crate) fn find_or_insert(&mut self, func: &Func, inst: Inst) -> Option<Inst> {
        let hash = hash_of(func, inst);
        // The upper bits of this hash are the better ones.
        let slot = (hash >> 32) as usize & (self.heads.len() - 1);
        let mut at = self.heads[slot];
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.hash == hash && are_equal(func, entry.inst, inst) {
                return Some(entry.inst);
            }
            at = entry.below;
        }
        self.entries.push(Entry { hash, inst, below: self.heads[slot] });
        self.heads[slot] = self.entries.len() as u32 - 1;
        None
    }

    /// Takes out all but the first `len` instructions.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.entries.len() > len {
            if let Some(entry) = self.entries.pop() {
                let slot = (entry.hash >> 32) as usize & (self.heads.len() - 1);
                self.heads[slot] = entry.below;
            }
        }
    }
}

/// Whether the first two operands may be exchanged.
fn commutes(op: Op) -> bool {
    match op {
        Op::Intrinsic(op) => op.is_commutative(),
        Op::Builtin(op) => op == Builtin::Egal,
        _ => false,
    }
}

/// The operands in a canonical order.
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
    let same = func.op(a) == func.op(b) && key(func, a) == key(func, b) && types(a).eq(types(b));
    let ways_in = |inst| (func.inst_block(inst), func.inst_blocks(inst));
    same && match func.op(a) {
        Op::Phi => ways_in(a) == ways_in(b),
        Op::Invoke(_) => func.call_inlining(a) == func.call_inlining(b),
        _ => true,
    }
}
