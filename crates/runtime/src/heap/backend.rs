//! The boundary between a heap and whoever uses it.
//!
//! ```text
//!   compiled code ── data: HeapAbi ──── bumps a cursor, tests a tag ──────────────────────────┐
//!        │                                                                                    │ no call
//!        └── symbols: brolga_gc_alloc, _memory, _write, brolga_safepoint, … ──┐               ▼
//!   Rust ── Scope, Root, handles ─────────────────────────────────────────► Heap ── Mutator (in Thread)
//!                                                                             │
//!                                    slow paths only ── dyn Backend ◄─────────┘
//!                                    ├─ Cells         size classes, marks that stay; does not move     cells.rs
//!                                    └─ Mmtk          feature `heap-mmtk`; may move                    mmtk/
//! ```
//!
//! [`Heap`] has what every collector needs and none may change: the world and how it is stopped, roots, handles and finalizers,
//! run-time types, permanent objects. A [`Backend`] has the memory. It is called when the inlined path has no room, when a
//! barrier is hit, and when it is time to collect, so a virtual call is no cost.
//!
//! | duty of a backend | where it meets the others |
//! |---|---|
//! | objects look as `object.rs` says: tag, fields; new ones are zero | `HeapAbi`, `TypeDesc::scan` |
//! | a run between cursor and limit belongs to the mutator alone | `Mutator::runs` |
//! | collect only while the world is stopped | `World` |
//! | trace from all roots, and let them hold where the objects are afterwards | `Mutator`, `Handles` |
//! | clear weak references, then bring back what has a finalizer to visit it | `Handles` |

use brolga_ir::heap_abi::HeapAbi;

use super::heap::{Heap, OutOfMemory};
use super::mutator::Mutator;
use super::object::Object;
use super::options::HeapStats;
use super::policy::Collection;

/// What is asked of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Bytes of the object, its tag not counted.
    pub(super) bytes: usize,
    /// 8 or 16.
    pub(super) align: usize,
    pub(super) tag: u64,
}

/// Where objects live. `heap` is always the one that has this backend.
pub(super) trait Backend: Send + Sync {
    /// What code for this heap knows of it.
    fn abi(&self) -> &'static HeapAbi;

    /// A thread comes, and runs for the first time.
    fn attach(&self, heap: &Heap, mutator: &Mutator);

    /// A thread goes, which runs for the last time.
    fn detach(&self, heap: &Heap, mutator: &Mutator);

    /// A zeroed object, when the inlined path has no room for it. A safepoint.
    fn allocate(&self, heap: &Heap, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory>;

    /// Collects, or `false` when another thread did meanwhile. `None`: what is due by the figures. A safepoint.
    fn collect(&self, heap: &Heap, mutator: &Mutator, kind: Option<Collection>) -> bool;

    /// The store barrier was hit: an object whose tag says that stores into it matter.
    fn remember(&self, mutator: &Mutator, object: Object);

    /// Announces bytes that objects own elsewhere. A safepoint.
    fn add_external(&self, heap: &Heap, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory>;

    /// Takes announced bytes back.
    fn release_external(&self, bytes: usize);

    /// What it has done and holds.
    fn stats(&self) -> HeapStats;

    /// How many objects and frames the last collection looked at; 0 if nobody counts them.
    fn last_work(&self) -> usize {
        0
    }

    /// A finalizer has thrown or panicked, or several.
    fn count_failed(&self, finalizers: u64);
}
