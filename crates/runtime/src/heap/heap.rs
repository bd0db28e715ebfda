//! The heap: the part shared by all backends, and the trait of backends, which manage the memory.
//!
//! ```text
//!   compiled code ── data: HeapAbi ──── bumps a cursor, tests a tag ──────────────────────────┐
//!        │                                                                                    │ no call
//!        └── symbols: brolga_gc_alloc, _memory, _write, brolga_safepoint, … ──┐               ▼
//!   Rust ── Scope, Root, handles ─────────────────────────────────────────► Heap ── Mutator (in Thread)
//!                                                                             │
//!                                    slow paths only ── dyn Backend ◄─────────┘
//!                                    ├─ Cells         size classes, sticky mark bits; non-moving       cells.rs
//!                                    └─ Mmtk          feature `heap-mmtk`; may move                    mmtk/
//! ```
//!
//! [`Heap`] has the parts that do not depend on the collector: stopping the world, roots, handles and
//! finalizers, run-time types, permanent objects. A [`Backend`] manages the memory. It is called only on slow
//! paths: when the inlined allocation has no room, when a barrier is hit, and when a collection is due. So
//! the cost of virtual calls does not matter.
//!
//! | duty of a backend | interface |
//! |---|---|
//! | objects have the layout of `object.rs`: tag, fields; new ones are zero | `HeapAbi`, `TypeDesc::scan` |
//! | a run between cursor and limit belongs to one mutator | `Mutator::runs` |
//! | collect only while the world is stopped | `World` |
//! | trace from all roots, and update them if objects move | `Mutator`, `Handles` |
//! | clear weak references, then resurrect objects with pending finalizers | `Handles` |
//!
//! **Locks**, in the order in which they may be taken: the world's, the backend's, the handles'. No user code
//! runs under any of them.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | A1  | stress, stress_work: load and store | Relaxed | – | nothing: they only affect how often to collect |
//! | A2  | charged: load, compare and exchange | Relaxed | – | nothing: the exchange decides which thread announces the difference |

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brolga_instances::Fences;
use brolga_ir::Context;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::types::{LayoutError, Type};

use super::census::Census;
use super::class::SizeClass;
use super::desc::{TypeDesc, TypeRef};
use super::handles::{CellWord, Handles, Persistent, RootCell};
use super::layout::TAG_PERMANENT;
use super::mutator::{Member, Mutator, Paused};
use super::object::Object;
use crate::events::{Event, Events, Stage};

use super::options::{HeapOptions, HeapStats, Stress};
use super::permanent::Permanent;
use super::policy::Collection;
use super::types::RuntimeTypes;
use super::world::World;
use crate::frames::FrameIndex;
use crate::membarrier::system_fences;
use crate::records::Records;

/// The heap's limit is reached, or the system is out of memory, and a full collection did not help. The heap
/// stays usable, and smaller requests may succeed.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("out of memory: {requested} bytes")]
pub struct OutOfMemory {
    /// The size of the request, in bytes.
    pub requested: usize,
}

/// The change in the size of names and types, in bytes, after which it is counted towards the heap's limit.
const GRANULE: usize = 64 << 10;

/// The maximum number of kinds of exceptions thrown by the run time.
pub(crate) const EXCEPTION_KINDS: usize = 32;

/// A request for memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Bytes of the object, without its tag.
    pub(super) bytes: usize,
    /// 8 or 16.
    pub(super) align: usize,
    pub(super) tag: u64,
    /// Whether a large object has to be cleared; a smaller one always is.
    pub(super) is_clear: bool,
}

/// The memory of a heap. The parameter `heap` is always the heap that owns this backend.
pub(super) trait Backend: Send + Sync {
    /// The heap's layout, for compiled code.
    fn abi(&self) -> &'static HeapAbi;

    /// Called when a mutator first enters the heap.
    fn attach(&self, heap: &Heap, mutator: &Mutator);

    /// Called before a mutator leaves the heap for good.
    fn detach(&self, heap: &Heap, mutator: &Mutator);

    /// Allocates a zeroed object that does not fit the inlined path's run. A safepoint.
    fn allocate(&self, heap: &Heap, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory>;

    /// Collects; `false` if another thread has collected instead. With `None` the policy chooses the kind. A safepoint.
    fn collect(&self, heap: &Heap, mutator: &Mutator, kind: Option<Collection>) -> bool;

    /// The slow path of the write barrier: a reference was stored into an object whose tag has the bit for old objects.
    fn remember(&self, mutator: &Mutator, object: Object);

    /// The same for a store whose offset in the object is known.
    fn remember_at(&self, mutator: &Mutator, object: Object, _offset: usize) {
        self.remember(mutator, object);
    }

    /// Does parts of collections for some time; returns whether something is left to do. A safepoint.
    fn step(&self, _heap: &Heap, _mutator: &Mutator, _time: Duration) -> bool {
        false
    }

    /// Counts bytes that objects own outside the heap. A safepoint.
    fn add_external(&self, heap: &Heap, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory>;

    /// Subtracts bytes that were counted as external.
    fn release_external(&self, bytes: usize);

    /// Counts bytes of the host that objects keep towards the next collection, but not towards the limit.
    fn count_borrowed(&self, _bytes: usize) {}

    /// Statistics.
    fn stats(&self) -> HeapStats;

    /// The number of objects and frames that the last collection visited; 0 if the backend does not count them.
    fn last_work(&self) -> usize {
        0
    }

    /// Counts finalizers that threw or panicked.
    fn count_failed(&self, finalizers: u64);
}

/// A garbage-collected heap. A runtime has one, and heaps share nothing.
pub struct Heap {
    pub(super) options: HeapOptions,
    pub(super) world: World,
    pub(super) backend: Box<dyn Backend>,
    pub(super) handles: Handles,
    /// The frame maps of compiled code that does not link its frames.
    pub(super) frames: Arc<FrameIndex>,
    events: Events,
    types: RuntimeTypes,
    symbols: Records,
    modules: Records,
    strings: Records,
    permanent: Permanent,
    /// The bytes of the [meter](RuntimeTypes::meter) that are counted towards the limit.
    charged: AtomicUsize,
    /// The types of the exceptions that the run time throws, by kind.
    exception_types: [OnceLock<Type>; EXCEPTION_KINDS],
    /// 0: off; n: a collection after every n slow allocations.
    stress: AtomicU32,
    /// Under stress: the work per collection above which collections become less frequent.
    stress_work: AtomicU32,
}

impl Heap {
    /// A heap with this backend.
    pub(super) fn with(options: HeapOptions, backend: Box<dyn Backend>) -> Heap {
        let types = RuntimeTypes::new();
        let heap = Heap {
            symbols: Records::new(types.symbol().tag() | TAG_PERMANENT, types.meter()),
            modules: Records::new(types.module().tag() | TAG_PERMANENT, types.meter()),
            strings: Records::new(types.string().tag() | TAG_PERMANENT, types.meter()),
            permanent: Permanent::new(types.meter()),
            charged: AtomicUsize::new(0),
            world: World::new(system_fences()),
            backend,
            handles: Handles::default(),
            frames: Arc::default(),
            events: Events::default(),
            types,
            exception_types: std::array::from_fn(|_| OnceLock::new()),
            stress: AtomicU32::new(0),
            stress_work: AtomicU32::new(u32::MAX),
            options,
        };
        heap.set_stress(heap.options.stress);
        heap
    }

    /// The fences between threads that enter the heap and threads that stop the world or retire code.
    pub(crate) fn fences(&self) -> Fences {
        self.world.fences()
    }

    /// The type of the exceptions of a kind. `find` runs on the first use.
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

    /// An empty cell, which keeps its object alive.
    pub fn cell(&self) -> RootCell {
        self.handles.cell()
    }

    /// An empty cell of a thread-local variable: every thread has a value of its own.
    pub fn thread_cell(&self) -> RootCell {
        self.handles.thread_cell()
    }

    /// The address of the running thread's cell of a variable.
    pub(crate) fn cell_of_thread(&self, mutator: &Mutator, word: &CellWord) -> usize {
        self.handles.cell_of_thread(&mutator.cells, word)
    }

    /// Drops the values of thread-local variables of a thread that has no frames of compiled code. On the
    /// thread.
    pub(crate) fn forget_thread_cells(&self, mutator: &Mutator) {
        self.handles.threads().forget(&mutator.cells);
    }

    #[cfg(test)]
    pub(super) fn thread_cells(&self) -> &super::thread_cells::ThreadCells<Arc<CellWord>> {
        self.handles.threads()
    }

    /// The description of a concrete type, to which the tags of its objects refer.
    pub fn describe(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        self.types.describe(cx, ty)
    }

    /// The description of any type, whether or not it has instances.
    pub fn type_object(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        self.types.type_object(cx, ty)
    }

    /// The description of any type, for code that holds its address while the context is in use.
    pub(crate) fn type_in_code(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        self.types.in_code(cx, ty)
    }

    /// The frame maps of compiled code that does not link its frames.
    pub(crate) fn frames(&self) -> &Arc<FrameIndex> {
        &self.frames
    }

    /// The number of full collections, if there is a listener, whose event has the kind of the collection.
    pub(super) fn full_before(&self) -> Option<u64> {
        self.events.is_on().then(|| self.backend.stats().full_collections)
    }

    /// The listener to events of the heap and the layers above.
    pub(crate) fn events(&self) -> &Events {
        &self.events
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

    /// Removes the types of contexts without users, and their boxes. Called in a collection, after marking.
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

    /// The size limit of the heap in bytes, if any.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.options.limit
    }

    /// Statistics.
    pub fn stats(&self) -> HeapStats {
        HeapStats { finalizers_ready: self.handles.ready(), ..self.backend.stats() }
    }

    /// Exceptions and panics of finalizers since the last call, oldest first, as far as they were kept. The
    /// total number is [`HeapStats::finalizers_failed`]. They do not stop the program; poll this to print
    /// warnings as Julia does.
    pub fn take_finalizer_failures(&self) -> Vec<String> {
        self.handles.take_failures()
    }

    /// Sets how often to collect in addition to due collections.
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

    /// The object of a root that is not bound to a scope, for a thread in the heap; `None` if it belongs to another heap.
    pub(crate) fn kept(&self, root: &Persistent) -> Option<Object> {
        self.handles.get_persistent(root)
    }

    // ----- mutators -----

    /// Adds a mutator to the world.
    ///
    /// # Safety
    ///
    /// The mutator and its poll word stay at their addresses until [`Heap::unregister`] or the end of the
    /// heap.
    unsafe fn register(&self, mutator: &Mutator, poll: &AtomicU32) {
        // SAFETY: by the contract.
        self.world.add(unsafe { Member::new(mutator, poll) });
        mutator.registered.set(true);
    }

    /// Grants the mutator's thread access to the heap, until the matching [`Heap::leave`].
    ///
    /// # Safety
    ///
    /// As for [`Heap::register`]; the caller is the mutator's thread.
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

    /// Like [`Heap::enter`], for a mutator that is registered and outside; returns `false` if a collection is
    /// pending. The caller then uses [`Heap::enter`], which may wait for the collector.
    #[inline(always)]
    pub(crate) fn enter_outermost(&self, mutator: &Mutator) -> bool {
        debug_assert!(mutator.registered.get() && mutator.depth.get() == 0);
        let has_entered = self.world.try_enter(mutator);
        if has_entered {
            mutator.depth.set(1);
        }
        has_entered
    }

    /// Ends the access that [`Heap::enter_outermost`] began.
    #[inline(always)]
    pub(crate) fn leave_outermost(&self, mutator: &Mutator) {
        debug_assert_eq!(mutator.depth.get(), 1);
        mutator.depth.set(0);
        self.world.leave(mutator);
    }

    #[inline]
    pub(crate) fn leave(&self, mutator: &Mutator) {
        let depth = mutator.depth.get() - 1;
        mutator.depth.set(depth);
        if depth == 0 {
            self.world.leave(mutator);
        }
    }

    /// Allows collections to run without waiting for this mutator, whose roots stay. It is outside until
    /// [`Heap::resume`], which takes the result; entries between the two are counted separately.
    pub(crate) fn pause(&self, mutator: &Mutator) -> Paused {
        let depth = mutator.depth.replace(0);
        if depth > 0 {
            self.world.leave(mutator);
        }
        Paused { depth }
    }

    /// Ends a pause.
    pub(crate) fn resume(&self, mutator: &Mutator, paused: Paused) {
        if paused.depth > 0 {
            self.world.enter(mutator);
        }
        mutator.depth.set(paused.depth);
    }

    /// Drops the roots of a mutator whose frames are gone, and leaves it outside.
    pub(crate) fn forget_frames(&self, mutator: &Mutator) {
        if !mutator.registered.get() {
            // Collections do not see unregistered mutators.
            return mutator.forget_frames();
        }
        // The mutator must be inside during the change, when no collection reads its words.
        if mutator.depth.replace(0) == 0 {
            self.world.enter(mutator);
        }
        mutator.forget_frames();
        self.world.leave(mutator);
    }

    /// Removes a mutator that is not running. Its thread must no longer use it.
    pub(crate) fn unregister(&self, mutator: &Mutator) {
        if !mutator.registered.replace(false) {
            return;
        }
        self.forget_thread_cells(mutator);
        // Inside the world, so that no collection sees a partially removed mutator.
        self.world.enter(mutator);
        self.backend.detach(self, mutator);
        self.world.leave(mutator);
        self.world.remove(mutator);
    }

    /// A safepoint: allows other threads to collect. Under stress it collects at every safepoint;
    /// [`Stress::Every`] with a larger number counts only allocations.
    pub(crate) fn safepoint(&self, mutator: &Mutator) {
        self.world.stand_aside(mutator);
        if self.stress_now() == 1 {
            self.stress_point(mutator);
        }
    }

    // ----- allocation -----

    /// A zeroed object of `bytes` bytes, without the tag. A safepoint.
    #[inline]
    pub(crate) fn allocate(
        &self,
        mutator: &Mutator,
        desc: &TypeDesc,
        bytes: usize,
    ) -> Result<Object, OutOfMemory> {
        match allocate_at_hand(mutator, desc, bytes) {
            Some(object) => Ok(object),
            None => {
                let (align, tag) = (desc.align(), desc.tag());
                self.allocate_slow(mutator, Request { bytes, align, tag, is_clear: true })
            }
        }
    }

    /// As [`Heap::allocate`], of an object without references whose bytes the caller writes before anything reads them: a large one is
    /// not cleared before. A safepoint.
    pub(super) fn allocate_to_fill(
        &self,
        mutator: &Mutator,
        desc: &TypeDesc,
        bytes: usize,
    ) -> Result<Object, OutOfMemory> {
        debug_assert!(desc.is_bits());
        let made = allocate_at_hand(mutator, desc, bytes).map(Ok);
        made.unwrap_or_else(|| {
            let (align, tag) = (desc.align(), desc.tag());
            self.allocate_slow(mutator, Request { bytes, align, tag, is_clear: false })
        })
    }

    /// An object that does not fit the mutator's runs.
    #[cold]
    fn allocate_slow(&self, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory> {
        self.backend.allocate(self, mutator, request)
    }

    /// Counts bytes that an object owns outside the heap. A safepoint.
    pub(crate) fn add_external(&self, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory> {
        self.backend.add_external(self, mutator, bytes)
    }

    /// Subtracts bytes that were counted as external.
    pub fn release_external(&self, bytes: usize) {
        self.backend.release_external(bytes);
    }

    /// Counts names, types and permanent objects towards the limit, as external bytes. They may take half of
    /// it, so that the heap stays usable; beyond that the call fails, and unused types are freed afterwards
    /// (`Runtime::free_unused_types`). Must be called before a program makes more; as the bytes are announced
    /// afterwards, in [`GRANULE`]s, the limit is exceeded by at most one. A safepoint.
    pub(crate) fn count_tables(&self, mutator: &Mutator) -> Result<(), OutOfMemory> {
        let charged = self.charged.load(Ordering::Relaxed); // A2
        let bytes = self.types.meter().bytes();
        if self.limit().is_some_and(|limit| bytes > limit / 2) {
            self.types.want_sweep();
            return Err(OutOfMemory { requested: GRANULE });
        }
        if bytes.abs_diff(charged) < GRANULE {
            return Ok(());
        }
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed); // A2
        if self.charged.compare_exchange(charged, bytes, success, failure).is_err() {
            // Another thread has just announced it.
            return Ok(());
        }
        if bytes <= charged {
            self.release_external(charged - bytes);
            return Ok(());
        }
        self.add_external(mutator, bytes - charged).inspect_err(|_| {
            self.charged.fetch_sub(bytes - charged, Ordering::Relaxed); // A2
        })
    }

    /// Collects and runs finalizers; `false` if another thread collected instead. With `None` the policy
    /// chooses the kind. A safepoint.
    ///
    /// # Panics
    ///
    /// If verification is enabled and finds an error in the heap.
    pub(crate) fn collect(&self, mutator: &Mutator, kind: impl Into<Option<Collection>>) -> bool {
        let before = self.full_before();
        let span = self.events.span(Stage::Collect, || "");
        let collected = self.backend.collect(self, mutator, kind.into());
        drop(span);
        if collected {
            self.tell_collected(mutator, before);
        }
        collected
    }

    /// Ends a collection: sends the event, if the number of full collections before it is given, and finalizers.
    pub(super) fn tell_collected(&self, mutator: &Mutator, before: Option<u64>) {
        if let Some(before) = before {
            let stats = self.backend.stats();
            let is_full = stats.full_collections > before;
            let (pause, used) = (stats.pause_last, stats.used_bytes);
            self.events.tell(Event::Collected { is_full, pause, used });
        }
        let _span = self.events.span(Stage::Finalize, || "");
        self.run_finalizers(mutator);
    }

    fn stress_now(&self) -> u32 {
        self.stress.load(Ordering::Relaxed) // A1
    }

    /// Under stress, counts down to the next collection and collects when it is due. Returns whether stress is on.
    pub(super) fn stress_point(&self, mutator: &Mutator) -> bool {
        let every = self.stress_now();
        if every == 0 {
            return false;
        }
        let left = mutator.until_stress.get();
        if left <= 1 {
            mutator.until_stress.set(every);
            self.collect(mutator, None);
            let paced = self.backend.last_work() / self.stress_work.load(Ordering::Relaxed) as usize; // A1
            mutator.until_stress.set(every.max(u32::try_from(paced).unwrap_or(u32::MAX)));
        } else {
            mutator.until_stress.set(left - 1);
        }
        true
    }

    /// A `WeakRef` to `to`. A safepoint: the caller keeps `to` alive.
    pub(crate) fn new_weak_ref(&self, mutator: &Mutator, to: Object) -> Result<Object, OutOfMemory> {
        let desc = self.types.weak();
        let object = self.allocate(mutator, desc, desc.size())?;
        object.set_pointer_at(0, Some(to));
        self.handles.add_weak_ref(object);
        Ok(object)
    }

    // ----- stores -----

    /// The write barrier. Must be called after storing one or more references into an object.
    #[inline]
    pub(crate) fn after_store(&self, mutator: &Mutator, object: Object) {
        if object.tag() & super::layout::TAG_OLD != 0 {
            self.remember(mutator, object);
        }
    }

    /// The same after storing one reference, at this offset.
    #[inline]
    pub(crate) fn after_store_at(&self, mutator: &Mutator, object: Object, offset: usize) {
        if object.tag() & super::layout::TAG_OLD != 0 {
            self.remember_at(mutator, object, offset);
        }
    }

    /// The barrier's slow path for a store at this offset.
    #[cold]
    pub(crate) fn remember_at(&self, mutator: &Mutator, object: Object, offset: usize) {
        self.backend.remember_at(mutator, object, offset);
    }

    /// The barrier's slow path.
    #[cold]
    pub(crate) fn remember(&self, mutator: &Mutator, object: Object) {
        self.backend.remember(mutator, object);
    }
}

/// A zeroed object of `bytes` bytes, without the tag, if the mutator has a free cell of that size at hand. No safepoint, and nothing of the heap is looked at.
#[inline]
pub(crate) fn allocate_at_hand(mutator: &Mutator, desc: &TypeDesc, bytes: usize) -> Option<Object> {
    SizeClass::of(bytes, desc.align()).and_then(|class| mutator.bump(class, desc.tag()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_heap_maps_no_memory() {
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let heap = Heap::new(HeapOptions::default());
            assert_eq!(heap.stats().mapped_bytes, 0, "nothing is mapped before the first object");
        }
    }
}
