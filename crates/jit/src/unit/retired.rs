//! How much of the code in memory is retired: it is unreachable, and it is freed when all threads that may run it have left.
//!
//! ```text
//!   cell ──► unit (functions, code)                 another target, or the end: the cell's handle waits for threads     `cell/record.rs`
//!                      │                             superseded: the version waits for threads in its worlds             `cell/superseded.rs`
//!                      └ no handle is left ───────► its methods wait for threads, and keep its code                       the run time's `methods.rs`
//! ```
//!
//! Others may hold a unit as well: the session, callers that are linked to it, Rust. So a unit counts only if all its
//! holders are waiting for threads.
//!
//! Cost: a walk over everything that waits. Retiring itself does no counting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Code, MethodKeeper, Unit};
use crate::cell::Superseded;
use crate::engine::Jit;
use crate::memory::reservation::CodeMemoryStats;

impl Jit {
    /// The state of the code memory. Cost: a visit to all retired code.
    pub fn stats(&self) -> CodeMemoryStats {
        // Code freed between the two figures is in their difference.
        let retired = self.retired_bytes();
        let stats = self.memory_stats();
        CodeMemoryStats { retired: retired.min(stats.in_use), ..stats }
    }

    /// The bytes of units that only retired code holds.
    fn retired_bytes(&self) -> usize {
        // The number of such holders of each unit. Without a unit, methods may still keep its code.
        let mut held: BTreeMap<usize, usize> = BTreeMap::new();
        let mut bytes = 0;
        let mut seen = BTreeSet::new();
        self.runtime().look_at_retired(|keeper| {
            let mut unit_waits = |unit: &Unit| {
                if !unit.jit().is(self) {
                    return;
                }
                let times = held.entry(Arc::as_ptr(&unit.inner).addr()).or_default();
                *times += 1;
                if *times == Arc::strong_count(&unit.inner) && unit.inner.code.is_held_by(1) {
                    bytes += unit.inner.code.bytes();
                }
            };
            if let Some(unit) = keeper.downcast_ref::<Unit>() {
                unit_waits(unit);
            } else if let Some(version) = keeper.downcast_ref::<Superseded>() {
                version.show_unit(unit_waits);
            } else if let Some((code, _)) = keeper.downcast_ref::<MethodKeeper>()
                && code.is_held_by(1)
                && seen.insert(Arc::as_ptr(code).addr())
            {
                bytes += code.bytes();
            }
        });
        bytes
    }
}

impl Code {
    fn bytes(&self) -> usize {
        self.loaded.code().addresses().len()
    }

    /// Whether it has at most `holders` holders, and no other code refers to it.
    fn is_held_by(self: &Arc<Code>, holders: usize) -> bool {
        Arc::strong_count(self) <= holders && Arc::strong_count(&self.loaded) == 1
    }
}
