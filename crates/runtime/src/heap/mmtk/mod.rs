//! Memory managed by `mmtk`: the second [`Backend`], with plans that move objects.
//!
//! ```text
//!   mutator                                              worker of mmtk
//!   allocate ── run used up ── mmtk::alloc ── full? ───► stop_all_mutators ── World::stop_all
//!      │                          │                      roots by value ── trace, copy ── weak, finalizers
//!      │                          └ block_for_gc         every root, handle and field gets the new address
//!      │                            (World)    ◄──────── resume_mutators ── World::resume_all
//!      └ cursor and limit are mmtk's own bump pointer, cached in the mutator's run 0
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | options, the one heap of the process, allocation |
//! | `binding.rs` | mmtk's interface to the run time: threads, roots, weak references |
//! | `objects.rs` | mmtk's interface to objects: size, copying, fields |
//!
//! **One per process.** mmtk keeps its maps in statics, uses fixed addresses, and cannot be started twice,
//! not even after a shutdown. So the first [`Mmtk::start`] succeeds and every later one returns an error
//! ([`MmtkError::Taken`]), and the statics below are the only ones in this crate.
//!
//! **Interface to compiled code.** Separate [`HeapAbi`]s: one cursor for all classes (`run_bytes` 0), cells
//! of multiples of 16 bytes that begin 8 bytes before a multiple of 16, so that every object is aligned to
//! 16; and `moving` for plans that move. MarkSweep has no inlined path, so its table of cells is empty.
//!
//! **Pinned objects.** A `Memory` and a `String`, because addresses of their elements are everywhere
//! (`objects.rs`), and permanent objects. Immix pins them; SemiSpace has no pins, so there each has its own
//! pages. (In version 0.33, mmtk's non-moving space fails its own assertion in two of its three forms; the
//! third never frees.)
//!
//! **Roots** are passed by value and updated afterwards, while the old copies are still readable. So nothing
//! points into frames and handle tables from outside the pause.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | K1 | the heap is set or cleared | Release | K2 | a collector thread sees the heap's address but not its contents |
//! | K3 | counts, times, numbers of threads | Relaxed | – | nothing: statistics, and each read-modify-write counts once |
//! | K4 | which caller is the first | Relaxed | – | nothing: a single operation, in which one caller sees the first value |
//!
//! Not done: generational and concurrent plans (they need other barriers); growing (the heap has a fixed
//! size); poison and verification, which mmtk has itself; counts of live objects.

mod binding;
mod objects;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use brolga_ir::heap_abi::HeapAbi;
use mmtk::util::Address;
use mmtk::util::alloc::{AllocatorInfo, BumpPointer};
use mmtk::util::opaque_pointer::{OpaquePointer, VMMutatorThread, VMThread};
use mmtk::{AllocationSemantics, MMTK, MMTKBuilder, memory_manager};

use self::objects::Vm;
use super::abi::DEFAULT_ABI;
use super::heap::{Backend, Request};
use super::heap::{Heap, OutOfMemory};
use super::mutator::Mutator;
use super::object::{Object, desc_of_tag};
use super::options::HeapStats;
use super::policy::Collection;

/// How mmtk manages memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MmtkPlan {
    /// Never frees anything.
    NoGc,
    /// Free lists; objects never move; every allocation is a call.
    MarkSweep,
    /// Lines of memory; moves objects when memory is fragmented.
    #[default]
    Immix,
    /// Two halves; every collection moves every object.
    SemiSpace,
}

/// Options of mmtk's heap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MmtkOptions {
    /// The plan.
    pub plan: MmtkPlan,
    /// The size of the heap in bytes.
    pub bytes: usize,
    /// The number of collector threads.
    pub threads: usize,
    /// Whether a collection moves everything movable, not only what it should. For finding missing roots.
    pub move_all: bool,
}

impl Default for MmtkOptions {
    fn default() -> MmtkOptions {
        MmtkOptions { plan: MmtkPlan::default(), bytes: 256 << 20, threads: 1, move_all: false }
    }
}

/// Why there is no such heap. Either the embedder or the system is at fault.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum MmtkError {
    /// This process has or had an mmtk heap; only one is ever allowed.
    #[error("this process has had its one heap by mmtk already")]
    Taken,
    /// The system started fewer collector threads than requested.
    #[error("the system refuses the threads for collecting")]
    Threads,
    /// An option is out of mmtk's range.
    #[error("mmtk does not take {0}")]
    Option(&'static str),
}

/// Whether the process has already had its mmtk heap.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// mmtk, once it has started.
static MMTK_HEAP: OnceLock<&'static MMTK<Vm>> = OnceLock::new();
/// The heap that uses it, from the first mutator to the end of the heap.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(std::ptr::null_mut());
/// The collector threads.
static WORKERS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
/// Bytes that objects own outside the heap.
static EXTERNAL: AtomicUsize = AtomicUsize::new(0);
/// Statistics; times are in nanoseconds.
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static PAUSE_LAST: AtomicU64 = AtomicU64::new(0);
static PAUSE_MAX: AtomicU64 = AtomicU64::new(0);
static PAUSE_TOTAL: AtomicU64 = AtomicU64::new(0);

/// Cells of 16, 32, … 512 bytes.
const CELLS: [u32; 32] = {
    let mut cells = [0; 32];
    let mut index = 0;
    while index < cells.len() {
        cells[index] = 16 * (index as u32 + 1);
        index += 1;
    }
    cells
};

const STILL: HeapAbi = HeapAbi { cells: &CELLS, run_bytes: 0, zeroed: true, ..DEFAULT_ABI };
const MOVING: HeapAbi = HeapAbi { moving: true, ..STILL };
const CALLS: HeapAbi = HeapAbi { cells: &[], ..STILL };

/// The process's mmtk heap.
pub(crate) struct Mmtk {
    mmtk: &'static MMTK<Vm>,
    plan: MmtkPlan,
    /// The offset of a thread's bump pointer from the address of mmtk's mutator.
    bump: Option<usize>,
    /// The largest object that is not allocated as large, tag included.
    small: usize,
    failed: AtomicU64,
}

impl Mmtk {
    /// Starts mmtk.
    pub(crate) fn start(options: &MmtkOptions) -> Result<Mmtk, MmtkError> {
        if options.bytes < 1 << 20 {
            return Err(MmtkError::Option("a heap of less than a mebibyte"));
        }
        if options.threads == 0 {
            return Err(MmtkError::Option("no threads"));
        }
        let is_taken = TAKEN.swap(true, Ordering::Relaxed); // K4
        if is_taken {
            return Err(MmtkError::Taken);
        }
        let plan = match options.plan {
            MmtkPlan::NoGc => "NoGC",
            MmtkPlan::MarkSweep => "MarkSweep",
            MmtkPlan::Immix => "Immix",
            MmtkPlan::SemiSpace => "SemiSpace",
        };
        let mut builder = MMTKBuilder::new_no_env_vars();
        let mut set = |name, value: &str, what| {
            if builder.set_option(name, value) { Ok(()) } else { Err(MmtkError::Option(what)) }
        };
        set("plan", plan, "the plan")?;
        set("gc_trigger", &format!("FixedHeapSize:{}", options.bytes), "a heap of this size")?;
        set("threads", &options.threads.to_string(), "this number of threads")?;
        if options.move_all {
            set("immix_always_defrag", "true", "moving")?;
            set("immix_defrag_every_block", "true", "moving")?;
            set("immix_defrag_headroom_percent", "50", "moving")?;
        }
        let mmtk: &'static MMTK<Vm> = Box::leak(memory_manager::mmtk_init(&builder));
        // This is the only initialization in this process.
        let mmtk = *MMTK_HEAP.get_or_init(|| mmtk);
        memory_manager::initialize_collection(mmtk, VMThread::UNINITIALIZED);
        if WORKERS.lock().unwrap_or_else(PoisonError::into_inner).len() < options.threads {
            return Err(MmtkError::Threads);
        }
        let selector = memory_manager::get_allocator_mapping(mmtk, AllocationSemantics::Default);
        let bump = match AllocatorInfo::new::<Vm>(selector) {
            AllocatorInfo::BumpPointer { bump_pointer_offset } => Some(bump_pointer_offset),
            AllocatorInfo::Unimplemented | AllocatorInfo::None => None,
        };
        let small = mmtk.get_plan().constraints().max_non_los_default_alloc_bytes;
        Ok(Mmtk { mmtk, plan: options.plan, bump, small, failed: AtomicU64::new(0) })
    }

    /// Calls `body` with mmtk's part of the running thread; `None` if it has none.
    fn with_bound<R>(mutator: &Mutator, body: impl FnOnce(&mut mmtk::Mutator<Vm>) -> R) -> Option<R> {
        // SAFETY: `attach` made it, and `detach` frees it, after which the thread does not allocate. The
        // running thread has exclusive access, except while it is stopped inside mmtk.
        mutator.plan.get().map(|bound| body(unsafe { bound.cast().as_mut() }))
    }

    /// The bump pointer of a thread.
    fn bump_pointer(&self, mutator: &Mutator) -> Option<*mut BumpPointer> {
        let bound = mutator.plan.get()?;
        self.bump.map(|offset| bound.as_ptr().cast::<u8>().wrapping_add(offset).cast())
    }

    /// Passes the cursor that compiled code has moved to mmtk.
    fn give_run(&self, mutator: &Mutator) {
        let Some(bump) = self.bump_pointer(mutator) else { return };
        let (cursor, limit) = mutator.shared_run();
        // SAFETY: the bump pointer is in the thread's bound mutator, which only the running thread accesses.
        unsafe {
            // After a collection the two are unrelated, and mmtk's is authoritative.
            if !limit.is_null() && (*bump).limit == Address::from_mut_ptr(limit) {
                (*bump).cursor = Address::from_mut_ptr(cursor);
            }
        }
    }

    /// Makes compiled code allocate from mmtk's bump range.
    fn take_run(&self, mutator: &Mutator) {
        let Some(bump) = self.bump_pointer(mutator) else { return };
        // SAFETY: as in `give_run`.
        let BumpPointer { cursor, limit } = unsafe { *bump };
        // mmtk's bump pointer must be where a cell of compiled code begins: every size is a multiple of 16.
        if cursor.as_usize() % 16 == 8 {
            mutator.set_shared_run(cursor.to_mut_ptr(), limit.to_mut_ptr());
        }
    }
}

/// A thread's name in mmtk.
fn name_of(mutator: &Mutator) -> VMMutatorThread {
    VMMutatorThread(VMThread(OpaquePointer::from_address(Address::from_ref(mutator))))
}

/// Bytes of a cell.
fn extent(bytes: usize) -> Option<usize> {
    bytes.checked_add(objects::TAG)?.max(16).checked_next_multiple_of(16)
}

impl Backend for Mmtk {
    fn abi(&self) -> &'static HeapAbi {
        match self.plan {
            MmtkPlan::NoGc => &STILL,
            MmtkPlan::MarkSweep => &CALLS,
            MmtkPlan::Immix | MmtkPlan::SemiSpace => &MOVING,
        }
    }

    fn attach(&self, heap: &Heap, mutator: &Mutator) {
        HEAP.store(std::ptr::from_ref(heap).cast_mut(), Ordering::Release); // K1
        let bound = memory_manager::bind_mutator(self.mmtk, name_of(mutator));
        mutator.plan.set(Some(std::ptr::NonNull::from(Box::leak(bound)).cast()));
    }

    fn detach(&self, _: &Heap, mutator: &Mutator) {
        self.give_run(mutator);
        mutator.retire();
        if let Some(bound) = mutator.plan.take() {
            // SAFETY: `attach` leaked it, and it is taken only here.
            let mut bound = unsafe { Box::from_raw(bound.cast::<mmtk::Mutator<Vm>>().as_ptr()) };
            memory_manager::destroy_mutator(&mut bound);
        }
    }

    fn allocate(&self, heap: &Heap, mutator: &Mutator, request: Request) -> Result<Object, OutOfMemory> {
        let none = OutOfMemory { requested: request.bytes };
        let stressed = heap.stress_point(mutator);
        let bytes = extent(request.bytes).filter(|&bytes| bytes < isize::MAX as usize).ok_or(none)?;
        // SAFETY: the tag of a type of this heap.
        let desc = unsafe { desc_of_tag(request.tag) };
        let stays = self.abi().moving && objects::stays(desc);
        let large = bytes > self.small || stays && self.plan == MmtkPlan::SemiSpace;
        let semantics = if large { AllocationSemantics::Los } else { AllocationSemantics::Default };
        self.give_run(mutator);
        let take = |bound: &mut _| memory_manager::alloc(bound, bytes, 16, objects::TAG, semantics);
        let start = Mmtk::with_bound(mutator, take).filter(|start| !start.is_zero()).ok_or(none)?;
        let object = objects::at(start + objects::TAG);
        object.set_tag(request.tag);
        if let Some(reference) = objects::reference(object) {
            let note = |bound: &mut _| memory_manager::post_alloc(bound, reference, bytes, semantics);
            Mmtk::with_bound(mutator, note);
            if stays && !large {
                memory_manager::pin_object(reference);
            }
        }
        if !stressed {
            self.take_run(mutator);
        }
        if heap.handles.ready() == 0 {
            return Ok(object);
        }
        // The collection has left finalizers to run, which may collect again.
        mutator.locals.borrow_mut().push(Some(object));
        heap.run_finalizers(mutator);
        let kept = mutator.locals.borrow_mut().pop().flatten();
        kept.ok_or(none)
    }

    fn collect(&self, _: &Heap, mutator: &Mutator, kind: Option<Collection>) -> bool {
        let exhaustive = kind == Some(Collection::Full);
        self.give_run(mutator);
        self.mmtk.handle_user_collection_request(name_of(mutator), true, exhaustive);
        true
    }

    fn remember(&self, _: &Mutator, object: Object) {
        // No plan offered here observes stores, so no tag requests it.
        debug_assert_eq!(object.tag() & super::layout::TAG_OLD, 0);
    }

    fn add_external(&self, heap: &Heap, mutator: &Mutator, bytes: usize) -> Result<(), OutOfMemory> {
        let fits = || {
            let used = memory_manager::used_bytes(self.mmtk).checked_add(EXTERNAL.load(Ordering::Relaxed)); // K3
            used.and_then(|used| used.checked_add(bytes))
                .is_some_and(|all| all <= memory_manager::total_bytes(self.mmtk))
        };
        if !fits() {
            heap.collect(mutator, Collection::Full);
            if !fits() {
                return Err(OutOfMemory { requested: bytes });
            }
        }
        EXTERNAL.fetch_add(bytes, Ordering::Relaxed); // K3
        Ok(())
    }

    fn release_external(&self, bytes: usize) {
        let less = |all: usize| Some(all.saturating_sub(bytes));
        // The closure never refuses.
        let _ = EXTERNAL.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less); // K3
    }

    fn stats(&self) -> HeapStats {
        let time = |of: &AtomicU64| Duration::from_nanos(of.load(Ordering::Relaxed)); // K3
        HeapStats {
            full_collections: COLLECTIONS.load(Ordering::Relaxed), // K3
            pause_total: time(&PAUSE_TOTAL),
            pause_max: time(&PAUSE_MAX),
            pause_last: time(&PAUSE_LAST),
            used_bytes: memory_manager::used_bytes(self.mmtk),
            mapped_bytes: memory_manager::total_bytes(self.mmtk),
            external_bytes: EXTERNAL.load(Ordering::Relaxed), // K3
            finalizers_failed: self.failed.load(Ordering::Relaxed), // K3
            ..HeapStats::default()
        }
    }

    fn count_failed(&self, finalizers: u64) {
        self.failed.fetch_add(finalizers, Ordering::Relaxed); // K3
    }
}

/// Ends the collector threads. Memory mapped by mmtk stays mapped.
impl Drop for Mmtk {
    fn drop(&mut self) {
        HEAP.store(std::ptr::null_mut(), Ordering::Release); // K1
        memory_manager::mmtk_shutdown(self.mmtk);
        let workers = std::mem::take(&mut *WORKERS.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            // A worker that panicked has reported it.
            let _ = worker.join();
        }
    }
}
