//! The default heap: non-moving cells in size classes.
//!
//! ```text
//!   allocate ── cell ── bump ─────────────────────────────────────────────► object
//!      │                  └─ run used up ─ next run of the block ─────────► object
//!      │                                      └─ block used up ─┐
//!      └─ too large for a cell ─────────────────────────────────┤
//!                                                               ▼
//!             budget spent, or no room? collect; then a block from the space; still none after a full one: OutOfMemory
//!             with short pauses: slices as they are due (`slices.rs`); no room? end the marking, then collect
//! ```
//!
//! If a full collection kept dead objects for finalizers that have run since, another one is tried before the
//! error.
//!
//! **Locks.** The state's lock is taken inside the world's, never the reverse, and only the handles' lock is
//! taken inside it. It is taken once for each block that a thread uses up.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brolga_ir::heap_abi::HeapAbi;

use super::abi::DEFAULT_ABI;
use super::canaries::Canaries;
use super::class::SizeClass;
use super::heap::{Backend, Request};
use super::heap::{Heap, OutOfMemory};
use super::layout::{TAG_BYTES, TAG_PERMANENT, TAG_SLOTS};
use super::mutator::Mutator;
use super::object::{Object, desc_of_tag};
use super::options::{HeapOptions, HeapStats};
use super::pauses::Density;
use super::phase::Phase;
use super::policy::{Collection, Policy};
use super::slots;
use super::space::{Shortage, Space};

/// A heap of cells.
pub(super) struct Cells {
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) space: Space,
    /// The collection in slices that is under way; always idle without them.
    pub(super) phase: Phase,
    /// Stores into large arrays that were recorded by threads that have ended or are stopped.
    pub(super) slots: Vec<(Object, usize)>,
    pub(super) density: Density,
    /// Determines the size of slices under stress.
    pub(super) turn: u64,
    pub(super) policy: Policy,
    pub(super) stats: HeapStats,
    /// Objects and frames visited by the last collection or its verification.
    pub(super) work: usize,
    /// Whether the last collection kept dead objects for their finalizers.
    pub(super) revived: bool,
    /// The objects with canaries, if there are any.
    pub(super) canaries: Canaries,
}

impl Cells {
    pub(super) fn new(options: &HeapOptions) -> Cells {
        let state = State {
            space: Space::new(options.limit),
            phase: Phase::Idle,
            slots: Vec::new(),
            density: Density::default(),
            turn: 1,
            policy: Policy::new(options),
            stats: HeapStats::default(),
            work: 0,
            revived: false,
            canaries: Canaries::default(),
        };
        Cells { state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this lock means that verification found a defect.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell, after the current run was used up.
    fn allocate_cell(
        &self,
        heap: &Heap,
        mutator: &Mutator,
        class: SizeClass,
        tag: u64,
    ) -> Result<Object, OutOfMemory> {
        // A run of one cell is used up immediately, so the next allocation comes here as well.
        let one_by_one = heap.stress_point(mutator) || heap.options.canaries;
        loop {
            if mutator.next_run(class, one_by_one.then_some(1))
                && let Some(object) = mutator.bump(class, tag)
            {
                return Ok(object);
            }
            let bytes = class.cell_bytes() - TAG_BYTES;
            let block =
                self.supply(heap, mutator, bytes, |space| Ok((space.take_cells(class)?, space.side())))?;
            mutator.take(class, block);
        }
    }

    /// An object of exactly the size of the request.
    fn allocate_bare(&self, heap: &Heap, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory> {
        let Request { bytes, align, tag, is_clear } = request;
        if let Some(class) = SizeClass::of(bytes, align) {
            return self.allocate_cell(heap, mutator, class, tag);
        }
        heap.stress_point(mutator);
        // SAFETY: tags belong to types of the heap (`heap.rs`).
        let records = heap.options.pause.is_some()
            && !heap.options.canaries
            && unsafe { slots::has_bits(desc_of_tag(tag)) };
        let whole = if records { slots::with_bits(bytes) } else { bytes };
        let object = self.supply(heap, mutator, whole, |space| space.take_large(whole, is_clear))?;
        object.set_tag(tag | if records { TAG_SLOTS } else { 0 });
        Ok(object)
    }

    /// Takes something from the space, collecting when a collection is due or nothing is left.
    fn supply<T>(
        &self,
        heap: &Heap,
        mutator: &Mutator,
        bytes: usize,
        mut take: impl FnMut(&mut Space) -> Result<T, Shortage>,
    ) -> Result<T, OutOfMemory> {
        let mut last = None;
        let mut may_repeat = true;
        let pause = heap.options.pause;
        if let Some(pause) = pause {
            self.pay(heap, mutator, pause, bytes);
        }
        loop {
            let kind = {
                let state = &mut *self.lock();
                let due = pause.is_none() && state.space.allocated >= state.policy.budget();
                let next = state.policy.next_kind(heap.options());
                if due && last.is_none() {
                    next
                } else {
                    match (take(&mut state.space), last) {
                        (Ok(taken), _) => return Ok(taken),
                        (Err(_), None) => next,
                        (Err(_), Some(Collection::Minor)) => Collection::Full,
                        (Err(_), Some(Collection::Full)) if state.revived && may_repeat => {
                            may_repeat = false;
                            Collection::Full
                        }
                        (Err(_), Some(Collection::Full)) => {
                            return Err(OutOfMemory { requested: bytes });
                        }
                    }
                }
            };
            if pause.is_some() && last.is_none() && self.end_marking(heap, mutator) {
                continue;
            }
            // If another thread collected instead, the retry does not count as an attempt.
            if heap.collect(mutator, kind) {
                last = Some(kind);
            }
        }
    }
}

impl Backend for Cells {
    fn abi(&self) -> &'static HeapAbi {
        &DEFAULT_ABI
    }

    fn attach(&self, _: &Heap, _: &Mutator) {}

    fn detach(&self, heap: &Heap, mutator: &Mutator) {
        mutator.retire();
        // A remembered object has lost its `OLD` bit, so it must not be forgotten.
        heap.handles.keep_remembered(mutator.remembered.take());
        self.lock().slots.append(&mut mutator.slots.borrow_mut());
    }

    fn allocate(&self, heap: &Heap, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory> {
        if heap.options.canaries {
            let bytes = request.bytes.saturating_add(Canaries::BYTES);
            let object = self.allocate_bare(heap, mutator, Request { bytes, ..request })?;
            self.lock().canaries.add(object, request.bytes);
            return Ok(object);
        }
        self.allocate_bare(heap, mutator, request)
    }

    fn collect(&self, heap: &Heap, mutator: &Mutator, kind: Option<Collection>) -> bool {
        if kind.is_none() && heap.options.pause.is_some() {
            return self.stress_slice(heap, mutator);
        }
        let kind = kind.unwrap_or_else(|| self.lock().policy.next_kind(heap.options()));
        self.stop_and_collect(heap, mutator, kind)
    }

    fn remember(&self, mutator: &Mutator, object: Object) {
        if object.tag() & TAG_PERMANENT == 0 && object.forget_old() {
            mutator.remembered.borrow_mut().push(object);
        }
    }

    fn remember_at(&self, mutator: &Mutator, object: Object, offset: usize) {
        if !slots::record(object, offset, &mut mutator.slots.borrow_mut()) {
            self.remember(mutator, object);
        }
    }

    fn step(&self, heap: &Heap, mutator: &Mutator, time: Duration) -> bool {
        self.steps(heap, mutator, time)
    }

    fn add_external(&self, heap: &Heap, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory> {
        self.supply(heap, mutator, bytes, |space| {
            while !space.has_room(bytes) {
                if !space.sweep_next() {
                    return Err(Shortage::Limit);
                }
            }
            space.external += bytes;
            space.allocated = space.allocated.saturating_add(bytes);
            Ok(())
        })
    }

    fn release_external(&self, bytes: usize) {
        let space = &mut self.lock().space;
        space.external = space.external.saturating_sub(bytes);
    }

    fn count_borrowed(&self, bytes: usize) {
        let space = &mut self.lock().space;
        space.allocated = space.allocated.saturating_add(bytes);
    }

    fn stats(&self) -> HeapStats {
        let state = self.lock();
        HeapStats {
            used_bytes: state.space.used(),
            mapped_bytes: state.space.mapped(),
            external_bytes: state.space.external,
            ..state.stats
        }
    }

    fn last_work(&self) -> usize {
        self.lock().work
    }

    fn count_failed(&self, finalizers: u64) {
        self.lock().stats.finalizers_failed += finalizers;
    }
}
