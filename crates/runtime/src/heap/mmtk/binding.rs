//! mmtk's view of the run time: its threads, roots, and weak references.
//!
//! mmtk calls these functions without an instance, so they find the heap through a static. It is set whenever
//! a collection can happen: only a thread can request one, and the first thread of the heap has set it.
//!
//! **Phases of weak references.** mmtk calls `process_weak_refs` after marking, and again until it returns
//! `false`:
//!
//! | call | does |
//! |---|---|
//! | 1 | clear weak references to unreachable objects; trace dead objects that a finalizer visits |
//! | 2 | update every root, handle and weak reference to the object's new address |
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | K1 | the heap is set or cleared | Release | K2 | a collector thread sees the heap's address but not its contents |
//! | K2 | a collector thread reads the heap's address | Acquire | K1 | as K1, from the other side |
//! | K3 | counts, times, numbers of threads | Relaxed | – | nothing: statistics, and each read-modify-write counts once |
//! | K4 | which caller is the first | Relaxed | – | nothing: a single operation, in which one caller sees the first value |
//! | K5 | which call about weak references this is | Relaxed | – | nothing: mmtk's own locks serialise these calls |

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use mmtk::scheduler::GCWorker;
use mmtk::util::alloc::AllocationError;
use mmtk::util::opaque_pointer::{OpaquePointer, VMMutatorThread, VMThread, VMWorkerThread};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::slot::{Slot, UnimplementedMemorySlice};
use mmtk::vm::{
    ActivePlan, Collection, GCThreadContext, ObjectTracer, ObjectTracerContext, ReferenceGlue,
    RootsWorkFactory, Scanning, SlotVisitor, VMBinding,
};
use mmtk::{Mutator as Bound, memory_manager};

use super::super::heap::Heap;
use super::super::layout::TAG_PERMANENT;
use super::super::mutator::Mutator;
use super::super::object::Object;
use super::objects::{self, Objects, Vm};
use super::{COLLECTIONS, EXTERNAL, HEAP, MMTK_HEAP, PAUSE_LAST, PAUSE_MAX, PAUSE_TOTAL, WORKERS};

/// The number of roots in a work packet.
const PACKET: usize = 4096;

/// The time of the request to stop the world.
static ASKED: Mutex<Option<Instant>> = Mutex::new(None);
/// Whether the next call about weak references is the second one.
static CLEARED: AtomicBool = AtomicBool::new(false);
/// Worker threads that were started.
static STARTED: AtomicUsize = AtomicUsize::new(0);

impl VMBinding for Vm {
    type VMObjectModel = Objects;
    type VMScanning = Vm;
    type VMCollection = Vm;
    type VMActivePlan = Vm;
    type VMReferenceGlue = Vm;
    type VMSlot = RootValue;
    type VMMemorySlice = UnimplementedMemorySlice<RootValue>;

    const ALIGNMENT_VALUE: u8 = 0;
    const MIN_ALIGNMENT: usize = 8;
    const MAX_ALIGNMENT: usize = 16;
}

/// A root, by value: the second phase of weak references updates it to its object's new address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct RootValue(ObjectReference);

impl Slot for RootValue {
    fn load(&self) -> Option<ObjectReference> {
        Some(self.0)
    }

    fn store(&self, _: ObjectReference) {}
}

/// Calls `body` with the heap.
fn with_heap<R>(body: impl FnOnce(&Heap) -> R) -> Option<R> {
    let heap = HEAP.load(Ordering::Acquire); // K2
    // SAFETY: set by a mutator of the heap, which does not move while it has one; cleared before the heap is
    // dropped.
    unsafe { heap.as_ref() }.map(body)
}

/// The mutator with this mmtk name.
///
/// # Safety
///
/// The name belongs to an attached mutator, and its thread runs this, or the world is stopped.
unsafe fn mutator_of<'a>(name: VMMutatorThread) -> &'a Mutator {
    // SAFETY: by the contract; `name_of` made the name of the mutator's address.
    unsafe { &*name.0.0.to_address().to_ptr::<Mutator>() }
}

impl Collection<Vm> for Vm {
    fn stop_all_mutators<F: FnMut(&'static mut Bound<Vm>)>(_: VMWorkerThread, mut visit: F) {
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        with_heap(|heap| heap.world.stop_all());
        for bound in bound_mutators() {
            visit(bound);
        }
        with_heap(|heap| {
            // SAFETY: the world is stopped.
            unsafe { heap.world.each_stopped(&mut |mutator| mutator.retire()) };
        });
    }

    fn resume_mutators(_: VMWorkerThread) {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(asked) = asked {
            let pause = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
            PAUSE_LAST.store(pause, Ordering::Relaxed); // K3
            PAUSE_MAX.fetch_max(pause, Ordering::Relaxed); // K3
            PAUSE_TOTAL.fetch_add(pause, Ordering::Relaxed); // K3
            COLLECTIONS.fetch_add(1, Ordering::Relaxed); // K3
        }
        with_heap(|heap| heap.world.resume_all());
    }

    fn block_for_gc(thread: VMMutatorThread) {
        // SAFETY: this is the current thread, which is attached.
        let mutator = unsafe { mutator_of(thread) };
        with_heap(|heap| heap.world.wait_for_pause(mutator));
    }

    fn spawn_gc_thread(_: VMThread, context: GCThreadContext<Vm>) {
        let GCThreadContext::Worker(worker) = context;
        // An odd address is not a mutator's.
        let number = STARTED.fetch_add(1, Ordering::Relaxed); // K3
        // SAFETY: a number that is never dereferenced.
        let address = unsafe { Address::from_usize(2 * number + 1) };
        let name = VMWorkerThread(VMThread(OpaquePointer::from_address(address)));
        let run = move || {
            let Some(mmtk) = MMTK_HEAP.get() else { return };
            let work = || memory_manager::start_worker(mmtk, name, worker);
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the world is stopped, and no thread is left to restart it or to report"
                )]
                std::process::abort();
            }
        };
        let thread = std::thread::Builder::new().name(format!("collector {number}")).spawn(run);
        // The function that starts mmtk counts them.
        if let Ok(thread) = thread {
            WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
    }

    /// The allocation then returns null.
    fn out_of_memory(_: VMThread, _: AllocationError) {}

    fn vm_live_bytes() -> usize {
        EXTERNAL.load(Ordering::Relaxed) // K3
    }
}

/// The mmtk mutators of all threads.
fn bound_mutators() -> Vec<&'static mut Bound<Vm>> {
    let mut all = Vec::new();
    with_heap(|heap| {
        heap.world.each_member(&mut |mutator| {
            // SAFETY: made by `attach` and valid until `detach`, which run only inside the world. mmtk
            // requests them in a pause and assigns each to one worker at a time.
            all.extend(mutator.plan.get().map(|bound| unsafe { bound.cast().as_mut() }));
        });
    });
    all
}

impl ActivePlan<Vm> for Vm {
    fn is_mutator(thread: VMThread) -> bool {
        let address = thread.0.to_address().as_usize();
        address != 0 && address.is_multiple_of(2)
    }

    fn mutator(thread: VMMutatorThread) -> &'static mut Bound<Vm> {
        // SAFETY: mmtk asks for the running thread's or in a pause.
        let bound = unsafe { mutator_of(thread) }.plan.get();
        // SAFETY: as above.
        unsafe { bound.expect("only attached threads have a name").cast().as_mut() }
    }

    fn mutators<'a>() -> Box<dyn Iterator<Item = &'a mut Bound<Vm>> + 'a> {
        Box::new(bound_mutators().into_iter().map(|bound| -> &'a mut Bound<Vm> { bound }))
    }

    fn number_of_mutators() -> usize {
        bound_mutators().len()
    }
}

impl Scanning<Vm> for Vm {
    fn support_slot_enqueuing(_: VMWorkerThread, _: ObjectReference) -> bool {
        // An object is scanned where its type is at hand, which is faster than a packet of slots for each.
        false
    }

    fn scan_object<S: SlotVisitor<RootValue>>(_: VMWorkerThread, _: ObjectReference, _: &mut S) {
        unreachable!("objects are scanned as a whole")
    }

    fn scan_object_and_trace_edges<T: ObjectTracer>(_: VMWorkerThread, of: ObjectReference, tracer: &mut T) {
        objects::scan(objects::object(of), tracer);
    }

    fn notify_initial_thread_scan_complete(_: bool, _: VMWorkerThread) {}

    fn scan_roots_in_mutator_thread(
        _: VMWorkerThread,
        bound: &'static mut Bound<Vm>,
        mut factory: impl RootsWorkFactory<RootValue>,
    ) {
        // SAFETY: the thread is attached, and the world is stopped.
        let mutator = unsafe { mutator_of(bound.mutator_tls) };
        let mut roots = Vec::new();
        let mut add = |object: Object| {
            roots.extend(objects::reference(object).map(RootValue));
            object
        };
        // SAFETY: as above.
        with_heap(|heap| unsafe { mutator.each_root(&heap.frames, &mut add) });
        hand_out(roots, &mut factory);
    }

    fn scan_vm_specific_roots(_: VMWorkerThread, mut factory: impl RootsWorkFactory<RootValue>) {
        let mut roots = Vec::new();
        with_heap(|heap| {
            heap.handles.each_root(|object| {
                roots.extend(objects::reference(object).map(RootValue));
                object
            });
        });
        hand_out(roots, &mut factory);
    }

    fn supports_return_barrier() -> bool {
        false
    }

    fn prepare_for_roots_re_scanning() {}

    fn process_weak_refs(worker: &mut GCWorker<Vm>, context: impl ObjectTracerContext<Vm>) -> bool {
        let again = with_heap(|heap| {
            let is_second = CLEARED.fetch_xor(true, Ordering::Relaxed); // K5
            if !is_second {
                heap.handles.clear_weak(now);
                let dead = heap.handles.find_dead(|object| now(object).is_some());
                let dead: Vec<ObjectReference> = dead.into_iter().filter_map(objects::reference).collect();
                context.with_tracer(worker, |tracer| {
                    for object in dead {
                        tracer.trace_object(object);
                    }
                });
                return true;
            }
            heap.handles.forget_weak_refs(now);
            let mut moved = |object: Object| now(object).unwrap_or(object);
            heap.handles.moved(&mut moved);
            heap.handles.each_root(&mut moved);
            // SAFETY: the world is stopped.
            unsafe {
                heap.world.each_stopped(&mut |mutator| {
                    mutator.each_root(&heap.frames, &mut moved);
                });
            }
            false
        });
        again.unwrap_or(false)
    }
}

fn hand_out(roots: Vec<RootValue>, factory: &mut impl RootsWorkFactory<RootValue>) {
    for packet in roots.chunks(PACKET) {
        factory.create_process_roots_work(packet.to_vec());
    }
}

/// The current address of a reachable object; `None` if it is unreachable. Only between marking and freeing.
fn now(object: Object) -> Option<Object> {
    if object.tag() & TAG_PERMANENT != 0 {
        return Some(object);
    }
    let reference = objects::reference(object)?;
    let moved = reference.get_forwarded_object();
    moved.or(reference.is_reachable().then_some(reference)).map(objects::object)
}

/// mmtk's own weak references and finalizers, which are not used.
impl ReferenceGlue<Vm> for Vm {
    type FinalizableType = ObjectReference;

    fn clear_referent(_: ObjectReference) {}

    fn get_referent(_: ObjectReference) -> Option<ObjectReference> {
        None
    }

    fn set_referent(_: ObjectReference, _: ObjectReference) {}

    fn enqueue_references(_: &[ObjectReference], _: VMWorkerThread) {}
}
