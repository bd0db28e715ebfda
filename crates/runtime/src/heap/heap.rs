//! One heap: allocation, its slow paths, and what the collector needs.
//!
//! ```text
//!   allocate ── cell ── bump ─────────────────────────────────────────────► object
//!      │                  └─ run used up ─ next run of the block ─────────► object
//!      │                                      └─ block used up ─┐
//!      └─ too large for a cell ─────────────────────────────────┤
//!                                                               ▼
//!             budget spent, or no room? collect; then a block from the space; still none after a full one: OutOfMemory
//! ```
//!
//! **Locks**, in the order in which they may be taken: the world, the state (space, policy, figures), handles. No user code runs
//! under any of them.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | A1  | stress: load and store | Relaxed | – | nothing: a number that says how often to collect |

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_ir::Context;
use brolga_ir::types::{LayoutError, Type};

use super::class::{SizeClass, TAG_BYTES};
use super::desc::{TypeDesc, TypeRef};
use super::handles::{Handles, Persistent, RootCell, release};
use super::mutator::{Member, Mutator};
use super::object::{Object, TAG_PERMANENT};
use super::options::{HeapOptions, HeapStats, Stress};
use super::permanent::Permanent;
use super::policy::{Collection, Policy};
use super::space::{Shortage, Space};
use super::types::RuntimeTypes;
use super::world::World;
use crate::records::Records;

/// The heap's limit is reached, or the system has no memory, and a full collection did not help. Nothing that existed is lost,
/// and smaller requests may succeed.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("out of memory: {requested} bytes")]
pub struct OutOfMemory {
    /// What was asked for, in bytes.
    pub requested: usize,
}

/// A garbage-collected heap. A runtime has one, and heaps share nothing.
pub struct Heap {
    pub(super) options: HeapOptions,
    pub(super) world: World,
    pub(super) state: Mutex<State>,
    pub(super) handles: Handles,
    types: RuntimeTypes,
    symbols: Records,
    strings: Records,
    permanent: Permanent,
    /// 0: off; n: after every n slow allocations.
    stress: AtomicU32,
}

pub(super) struct State {
    pub(super) space: Space,
    pub(super) policy: Policy,
    pub(super) stats: HeapStats,
}

impl Heap {
    pub(crate) fn new(options: HeapOptions) -> Heap {
        let types = RuntimeTypes::new();
        let heap = Heap {
            symbols: Records::new(types.symbol().tag() | TAG_PERMANENT),
            strings: Records::new(types.string().tag() | TAG_PERMANENT),
            permanent: Permanent::default(),
            world: World::default(),
            state: Mutex::new(State {
                space: Space::new(options.limit),
                policy: Policy::new(&options),
                stats: HeapStats::default(),
            }),
            handles: Handles::default(),
            types,
            stress: AtomicU32::new(0),
            options,
        };
        heap.set_stress(heap.options.stress);
        heap
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this lock is a defect that verification found.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn types(&self) -> &RuntimeTypes {
        &self.types
    }

    /// What was chosen.
    pub fn options(&self) -> &HeapOptions {
        &self.options
    }

    /// An empty cell, which keeps what is stored into it.
    pub fn cell(&self) -> RootCell {
        self.handles.cell()
    }

    /// The run-time form of a concrete type: what an object's tag names.
    pub fn describe(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        self.types.describe(cx, ty)
    }

    /// The run-time form of any type of Julia, with objects or without.
    pub fn type_object(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        self.types.type_object(cx, ty)
    }

    /// The records of symbols.
    pub(crate) fn symbols(&self) -> &Records {
        &self.symbols
    }

    /// The records of string constants.
    pub(crate) fn strings(&self) -> &Records {
        &self.strings
    }

    /// The permanent box of a value of a primitive type.
    pub(crate) fn permanent_box(&self, ty: &TypeDesc, bits: u128) -> Object {
        let small = match ty.ty() {
            Some(Type::INT64) => self.types.small_int(bits as i64),
            Some(Type::BOOL) => self.types.boxed_bool(bits & 1 != 0),
            _ => None,
        };
        small.unwrap_or_else(|| self.permanent.boxed(ty, bits))
    }

    /// What the heap has done and holds.
    pub fn stats(&self) -> HeapStats {
        let state = self.lock();
        HeapStats {
            used_bytes: state.space.used(),
            mapped_bytes: state.space.mapped(),
            external_bytes: state.space.external,
            finalizers_ready: self.handles.ready(),
            ..state.stats
        }
    }

    /// Sets how often to collect beyond what memory asks for.
    pub fn set_stress(&self, stress: Stress) {
        let every = match stress {
            Stress::Off => 0,
            Stress::EverySafepoint => 1,
            Stress::Every(count) => count.max(1),
        };
        self.stress.store(every, Ordering::Relaxed); // A1
        self.world.set_always_poll(stress == Stress::EverySafepoint);
    }

    /// A root that is not bound to a scope.
    pub(crate) fn persistent(&self, object: Object) -> Persistent {
        self.handles.persistent(object)
    }

    /// Takes back external bytes that were announced.
    pub fn release_external(&self, bytes: usize) {
        let space = &mut self.lock().space;
        space.external = space.external.saturating_sub(bytes);
    }

    // ----- mutators -----

    /// Puts a mutator on the list.
    ///
    /// # Safety
    ///
    /// The mutator and its poll word stay where they are until [`Heap::unregister`] or the end of the heap.
    unsafe fn register(&self, mutator: &Mutator, poll: &AtomicU32) {
        // SAFETY: by the contract.
        self.world.add(unsafe { Member::new(mutator, poll) });
        mutator.registered.set(true);
    }

    /// Lets the mutator's thread touch the heap, until as many [`Heap::leave`]s.
    ///
    /// # Safety
    ///
    /// As [`Heap::register`]; the caller is the mutator's thread.
    pub(crate) unsafe fn enter(&self, mutator: &Mutator, poll: &AtomicU32) {
        if mutator.depth.replace(mutator.depth.get() + 1) == 0 {
            if !mutator.registered.get() {
                // SAFETY: by the contract.
                unsafe { self.register(mutator, poll) };
            }
            self.world.enter(mutator);
        }
    }

    pub(crate) fn leave(&self, mutator: &Mutator) {
        let depth = mutator.depth.get() - 1;
        mutator.depth.set(depth);
        if depth == 0 {
            self.world.leave(mutator);
        }
    }

    /// Lets collections go on without this mutator, whose roots stay as they are.
    pub(crate) fn pause(&self, mutator: &Mutator) {
        self.world.leave(mutator);
    }

    /// Ends a pause.
    pub(crate) fn go_on(&self, mutator: &Mutator) {
        self.world.enter(mutator);
    }

    /// Takes a mutator that does not run off the list, for good. Its thread does not touch it any more.
    pub(crate) fn unregister(&self, mutator: &Mutator) {
        if !mutator.registered.replace(false) {
            return;
        }
        // Inside the world, so that no collection sees the mutator half given up.
        self.world.enter(mutator);
        mutator.retire();
        // What it remembered has lost its `OLD` bit, so it must not be forgotten.
        self.handles.keep_remembered(mutator.remembered.take());
        self.world.leave(mutator);
        self.world.remove(mutator);
    }

    /// A safepoint: lets others collect, or collects under stress.
    pub(crate) fn safepoint(&self, mutator: &Mutator) {
        self.world.stand_aside(mutator);
        if self.stress_now() == 1 {
            self.stress_point(mutator);
        }
    }

    // ----- allocation -----

    /// A zeroed object of `bytes` bytes, the tag not counted. A safepoint.
    #[inline]
    pub(crate) fn allocate(
        &self,
        mutator: &Mutator,
        desc: &TypeDesc,
        bytes: usize,
    ) -> Result<Object, OutOfMemory> {
        match SizeClass::of(bytes, desc.align()) {
            Some(class) => match mutator.bump(class, desc.tag()) {
                Some(object) => Ok(object),
                None => self.allocate_slow(mutator, class, desc.tag()),
            },
            None => self.allocate_large(mutator, bytes, desc.tag()),
        }
    }

    /// A cell, when the current run is used up.
    #[cold]
    pub(crate) fn allocate_slow(
        &self,
        mutator: &Mutator,
        class: SizeClass,
        tag: u64,
    ) -> Result<Object, OutOfMemory> {
        let stressed = self.stress_point(mutator);
        loop {
            if mutator.next_run(class, stressed.then_some(1))
                && let Some(object) = mutator.bump(class, tag)
            {
                return Ok(object);
            }
            let supply =
                self.supply(mutator, class.cell_bytes() - TAG_BYTES, |space| space.take_cells(class))?;
            mutator.take(class, supply);
        }
    }

    /// An object that is too large for a cell.
    pub(crate) fn allocate_large(
        &self,
        mutator: &Mutator,
        bytes: usize,
        tag: u64,
    ) -> Result<Object, OutOfMemory> {
        self.stress_point(mutator);
        let object = self.supply(mutator, bytes, |space| space.take_large(bytes))?;
        object.set_tag(tag);
        Ok(object)
    }

    /// Announces bytes that an object owns outside of the heap. A safepoint.
    pub(crate) fn add_external(&self, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory> {
        self.supply(mutator, bytes, |space| {
            if !space.has_room(bytes) {
                return Err(Shortage::Limit);
            }
            space.external += bytes;
            space.allocated = space.allocated.saturating_add(bytes);
            Ok(())
        })
    }

    /// Takes something from the space, collecting when it is time or when there is none.
    fn supply<T>(
        &self,
        mutator: &Mutator,
        bytes: usize,
        mut take: impl FnMut(&mut Space) -> Result<T, Shortage>,
    ) -> Result<T, OutOfMemory> {
        let mut last = None;
        loop {
            let kind = {
                let state = &mut *self.lock();
                let due = state.space.allocated >= state.policy.budget();
                let next = state.policy.next_kind(&self.options);
                if due && last.is_none() {
                    next
                } else {
                    match (take(&mut state.space), last) {
                        (Ok(taken), _) => return Ok(taken),
                        (Err(_), None) => next,
                        (Err(_), Some(Collection::Minor)) => Collection::Full,
                        (Err(_), Some(Collection::Full)) => {
                            return Err(OutOfMemory { requested: bytes });
                        }
                    }
                }
            };
            // When another thread collected instead, it is looked again without counting that as an attempt.
            if self.collect(mutator, kind) {
                last = Some(kind);
            }
        }
    }

    fn stress_now(&self) -> u32 {
        self.stress.load(Ordering::Relaxed) // A1
    }

    /// Under stress, counts down and collects; whether stress is on.
    fn stress_point(&self, mutator: &Mutator) -> bool {
        let every = self.stress_now();
        if every == 0 {
            return false;
        }
        let left = mutator.until_stress.get();
        if left <= 1 {
            mutator.until_stress.set(every);
            let kind = self.lock().policy.next_kind(&self.options);
            self.collect(mutator, kind);
        } else {
            mutator.until_stress.set(left - 1);
        }
        true
    }

    /// A `WeakRef`. A safepoint: the caller keeps what it refers to.
    pub(crate) fn new_weak_ref(&self, mutator: &Mutator, to: Object) -> Result<Object, OutOfMemory> {
        let desc = self.types.weak();
        let object = self.allocate(mutator, desc, desc.size())?;
        object.set_pointer_at(0, Some(to));
        self.handles.add_weak_ref(object);
        Ok(object)
    }

    // ----- stores -----

    /// To be called after a pointer was stored into an object, or several: the store barrier.
    #[inline]
    pub(crate) fn after_store(&self, mutator: &Mutator, object: Object) {
        if object.tag() & super::object::TAG_OLD != 0 {
            self.remember(mutator, object);
        }
    }

    /// The barrier's slow path.
    #[cold]
    pub(crate) fn remember(&self, mutator: &Mutator, object: Object) {
        if object.tag() & TAG_PERMANENT == 0 && object.forget_old() {
            mutator.remembered.borrow_mut().push(object);
        }
    }

    /// Runs what waits for objects that have died.
    pub(super) fn run_finalizers(&self, mutator: &Mutator) {
        let failed = release(self.handles.take_released());
        let visited = super::scope::run_visits(self, mutator);
        if failed + visited > 0 {
            self.lock().stats.finalizers_failed += failed + visited;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_come_and_go_cheaply() {
        for _ in 0..100 {
            let heap = Heap::new(HeapOptions::default());
            assert_eq!(heap.stats().mapped_bytes, 0, "nothing is mapped before the first object");
        }
    }
}
