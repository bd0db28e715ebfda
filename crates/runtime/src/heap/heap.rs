//! One heap: what all backends share, and the boundary behind which its memory lies.
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
//! barrier is hit, and when a collection is due, so a virtual call costs nothing that counts.
//!
//! | duty of a backend | where it meets the others |
//! |---|---|
//! | objects look as `object.rs` says: tag, fields; new ones are zero | `HeapAbi`, `TypeDesc::scan` |
//! | a run between cursor and limit belongs to the mutator alone | `Mutator::runs` |
//! | collect only while the world is stopped | `World` |
//! | trace from all roots, and let them hold where the objects are afterwards | `Mutator`, `Handles` |
//! | clear weak references, then bring back what has a finalizer to visit it | `Handles` |
//!
//! **Locks**, in the order in which they may be taken: the world, the backend's own, handles. No user code runs under any of
//! them.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | A1  | stress, stress_work: load and store | Relaxed | – | nothing: numbers that say how often to collect |

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use brolga_instances::Fences;
use brolga_ir::Context;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::types::{LayoutError, Type};

use super::census::Census;
use super::class::SizeClass;
use super::desc::{TypeDesc, TypeRef};
use super::handles::{Handles, Persistent, RootCell};
use super::layout::TAG_PERMANENT;
use super::mutator::{Member, Mutator, Paused};
use super::object::Object;
use super::options::{HeapOptions, HeapStats, Stress};
use super::permanent::Permanent;
use super::policy::Collection;
use super::types::RuntimeTypes;
use super::world::World;
use crate::frames::FrameIndex;
use crate::membarrier::system_fences;
use crate::records::Records;

/// The heap's limit is reached, or the system has no memory, and a full collection did not help. Nothing that existed is lost,
/// and smaller requests may succeed.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("out of memory: {requested} bytes")]
pub struct OutOfMemory {
    /// The size of the request, in bytes.
    pub requested: usize,
}

/// Room for as many kinds of exceptions.
pub(crate) const EXCEPTION_KINDS: usize = 32;

/// A request for memory.
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
    /// The heap's layout, for compiled code.
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

    /// Statistics.
    fn stats(&self) -> HeapStats;

    /// How many objects and frames the last collection looked at; 0 if nobody counts them.
    fn last_work(&self) -> usize {
        0
    }

    /// A finalizer has thrown or panicked, or several.
    fn count_failed(&self, finalizers: u64);
}

/// A garbage-collected heap. A runtime has one, and heaps share nothing.
pub struct Heap {
    pub(super) options: HeapOptions,
    pub(super) world: World,
    pub(super) backend: Box<dyn Backend>,
    pub(super) handles: Handles,
    /// Where the roots of compiled code lie that does not link its frames.
    pub(super) frames: Arc<FrameIndex>,
    types: RuntimeTypes,
    symbols: Records,
    modules: Records,
    strings: Records,
    permanent: Permanent,
    /// Those of the kinds of exceptions that the run time raises.
    exception_types: [OnceLock<Type>; EXCEPTION_KINDS],
    /// 0: off; n: after every n slow allocations.
    stress: AtomicU32,
    /// Under stress: what a collection may look at without being rarer afterwards.
    stress_work: AtomicU32,
}

impl Heap {
    /// A heap with this memory.
    pub(super) fn with(options: HeapOptions, backend: Box<dyn Backend>) -> Heap {
        let types = RuntimeTypes::new();
        let heap = Heap {
            symbols: Records::new(types.symbol().tag() | TAG_PERMANENT),
            modules: Records::new(types.module().tag() | TAG_PERMANENT),
            strings: Records::new(types.string().tag() | TAG_PERMANENT),
            permanent: Permanent::default(),
            world: World::new(system_fences()),
            backend,
            handles: Handles::default(),
            frames: Arc::default(),
            types,
            exception_types: std::array::from_fn(|_| OnceLock::new()),
            stress: AtomicU32::new(0),
            stress_work: AtomicU32::new(u32::MAX),
            options,
        };
        heap.set_stress(heap.options.stress);
        heap
    }

    /// Those between threads that enter and whoever stops them or retires code.
    pub(crate) fn fences(&self) -> Fences {
        self.world.fences()
    }

    /// The type of the exceptions of a kind, which is found once.
    pub(crate) fn exception_type(&self, kind: usize, find: impl FnOnce() -> Option<Type>) -> Type {
        match self.exception_types.get(kind) {
            Some(known) => *known.get_or_init(|| find().unwrap_or(Type::ANY)),
            None => Type::ANY,
        }
    }

    pub(crate) fn types(&self) -> &RuntimeTypes {
        &self.types
    }

    /// The heap's layout, for compiled code.
    pub fn abi(&self) -> &'static HeapAbi {
        self.backend.abi()
    }

    /// The options.
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

    /// Where the roots of compiled code lie that does not link its frames.
    pub(crate) fn frames(&self) -> &Arc<FrameIndex> {
        &self.frames
    }

    /// The records of symbols.
    pub(crate) fn symbols(&self) -> &Records {
        &self.symbols
    }

    /// The records of modules.
    pub(crate) fn modules(&self) -> &Records {
        &self.modules
    }

    /// The records of string constants.
    pub(crate) fn strings(&self) -> &Records {
        &self.strings
    }

    /// Takes out the types of contexts that nobody uses, with their boxes. In a collection, after marking.
    pub(super) fn take_unused_types(&self, census: &Census) {
        self.types.take_unused(census, |tags| self.permanent.take(|tag| tags.contains(&tag)));
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

    /// Statistics.
    pub fn stats(&self) -> HeapStats {
        HeapStats { finalizers_ready: self.handles.ready(), ..self.backend.stats() }
    }

    /// Exceptions and panics of finalizers since the last call, the oldest first, as far as they are kept; how many there
    /// were in all is [`HeapStats::finalizers_failed`]. The program has gone on behind each. Who wants to be warned, as Julia
    /// warns, asks now and then and prints it.
    pub fn take_finalizer_failures(&self) -> Vec<String> {
        self.handles.take_failures()
    }

    /// Sets how often to collect beyond what memory asks for.
    pub fn set_stress(&self, stress: Stress) {
        let (every, work) = match stress {
            Stress::Off => (0, u32::MAX),
            Stress::EverySafepoint => (1, u32::MAX),
            Stress::Paced(work) => (1, work.max(1)),
            Stress::Every(count) => (count.max(1), u32::MAX),
        };
        self.stress.store(every, Ordering::Relaxed); // A1
        self.stress_work.store(work, Ordering::Relaxed); // A1
        self.world.set_always_poll(every == 1);
    }

    /// A root that is not bound to a scope.
    pub(crate) fn persistent(&self, object: Object) -> Persistent {
        self.handles.persistent(object)
    }

    /// The object of a root that is not bound to a scope, for a thread in the heap; `None` if it is another heap's.
    pub(crate) fn kept(&self, root: &Persistent) -> Option<Object> {
        self.handles.get_persistent(root)
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
    #[inline]
    pub(crate) unsafe fn enter(&self, mutator: &Mutator, poll: &AtomicU32) {
        if mutator.depth.replace(mutator.depth.get() + 1) == 0 {
            let is_new = !mutator.registered.get();
            if is_new {
                // SAFETY: by the contract.
                unsafe { self.register(mutator, poll) };
            }
            self.world.enter(mutator);
            if is_new {
                self.backend.attach(self, mutator);
            }
        }
    }

    #[inline]
    pub(crate) fn leave(&self, mutator: &Mutator) {
        let depth = mutator.depth.get() - 1;
        mutator.depth.set(depth);
        if depth == 0 {
            self.world.leave(mutator);
        }
    }

    /// Lets collections continue without this mutator, whose roots stay as they are. It is outside until [`Heap::go_on`], which takes the
    /// result; entries between the two are entries of their own.
    pub(crate) fn pause(&self, mutator: &Mutator) -> Paused {
        let depth = mutator.depth.replace(0);
        if depth > 0 {
            self.world.leave(mutator);
        }
        Paused { depth }
    }

    /// Ends a pause.
    pub(crate) fn go_on(&self, mutator: &Mutator, paused: Paused) {
        if paused.depth > 0 {
            self.world.enter(mutator);
        }
        mutator.depth.set(paused.depth);
    }

    /// The frames of a mutator's thread are gone: it has no roots of its own, and is outside.
    pub(crate) fn forget_frames(&self, mutator: &Mutator) {
        if !mutator.registered.get() {
            // No collection knows of it.
            return mutator.forget_frames();
        }
        // The words change inside, where no collection reads them.
        if mutator.depth.replace(0) == 0 {
            self.world.enter(mutator);
        }
        mutator.forget_frames();
        self.world.leave(mutator);
    }

    /// Takes a mutator that does not run off the list, for good. Its thread does not touch it any more.
    pub(crate) fn unregister(&self, mutator: &Mutator) {
        if !mutator.registered.replace(false) {
            return;
        }
        // Inside the world, so that no collection sees the mutator half given up.
        self.world.enter(mutator);
        self.backend.detach(self, mutator);
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
        let (align, tag) = (desc.align(), desc.tag());
        let bumped = SizeClass::of(bytes, align).and_then(|class| mutator.bump(class, tag));
        match bumped {
            Some(object) => Ok(object),
            None => self.allocate_slow(mutator, Request { bytes, align, tag }),
        }
    }

    /// An object for which there is no room in a run.
    #[cold]
    fn allocate_slow(&self, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory> {
        self.backend.allocate(self, mutator, request)
    }

    /// Announces bytes that an object owns outside of the heap. A safepoint.
    pub(crate) fn add_external(&self, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory> {
        self.backend.add_external(self, mutator, bytes)
    }

    /// Takes back external bytes that were announced.
    pub fn release_external(&self, bytes: usize) {
        self.backend.release_external(bytes);
    }

    /// Collects; `false` when another thread did meanwhile. `None`: what is due by the figures. A safepoint, after which
    /// finalizers have run.
    ///
    /// # Panics
    ///
    /// When verification is on and finds the heap broken.
    pub(crate) fn collect(&self, mutator: &Mutator, kind: impl Into<Option<Collection>>) -> bool {
        let collected = self.backend.collect(self, mutator, kind.into());
        if collected {
            self.run_finalizers(mutator);
        }
        collected
    }

    fn stress_now(&self) -> u32 {
        self.stress.load(Ordering::Relaxed) // A1
    }

    /// Under stress, counts down and collects; whether stress is on.
    pub(super) fn stress_point(&self, mutator: &Mutator) -> bool {
        let every = self.stress_now();
        if every == 0 {
            return false;
        }
        let left = mutator.until_stress.get();
        if left <= 1 {
            mutator.until_stress.set(every);
            self.collect(mutator, None);
            let rarer = self.backend.last_work() / self.stress_work.load(Ordering::Relaxed) as usize; // A1
            mutator.until_stress.set(every.max(u32::try_from(rarer).unwrap_or(u32::MAX)));
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
        if object.tag() & super::layout::TAG_OLD != 0 {
            self.remember(mutator, object);
        }
    }

    /// The barrier's slow path.
    #[cold]
    pub(crate) fn remember(&self, mutator: &Mutator, object: Object) {
        self.backend.remember(mutator, object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_come_and_go_cheaply() {
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let heap = Heap::new(HeapOptions::default());
            assert_eq!(heap.stats().mapped_bytes, 0, "nothing is mapped before the first object");
        }
    }
}
