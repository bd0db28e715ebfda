//! Threads that run compiled code.
//!
//! A [`Thread`] is the state of an operating-system thread that compiled code uses. The offsets of its first words are
//! constants in machine code (`codegen/src/thread.rs` has the same numbers; `jit` checks that they agree):
//!
//! ```text
//!   +0   handler      innermost handler record; null outside of compiled code
//!   +8   stack_limit  lowest stack pointer that a frame of compiled code may have
//!   +16  poll         not 0: call `brolga_safepoint` at the next opportunity; bit 0: an interrupt, bit 1: a collection,
//!                     bit 2: a report of the code with frames on the stack, bit 3: work of the thread itself,
//!                     bit 4: the end of a limited call (`limits.rs`), which stays set; bit 5: a pause (`guests.rs`)
//!   +20  fuel         units of fuel left before `brolga_refuel` is called (`fuel.rs`)
//!   +24  lazy         written by a stub of an uncompiled function: its record
//!   +32  inline_cache cache of dynamic calls (`objects/dispatch.rs`)
//!   +40  mutator      the heap's words, and where the stack belongs to compiled code (`heap/mutator.rs`, `frames.rs`)
//! ```
//!
//! Only its own operating-system thread finds and uses a `Thread` (`attached`), except for requests of other
//! threads (`asked`). Entries nest: a callback from compiled code that calls compiled code again uses the
//! same `Thread`.
//!
//! **Pinned.** An entry into compiled code pins the thread until the outermost one is left: code retired
//! meanwhile stays (`retired.rs`). A thread that retires code requests a report from the threads that it
//! waits for, at their next safepoint, of the code with frames on their stacks; so a thread that stays in a
//! loop keeps only the code that it runs.
//!
//! **Guards.** An entry consists of several guards on the stack, except on a thread at rest (`outermost`).
//! Their constructors and destructors are always inlined: returning a guard through memory and moving it
//! costs more than its work.
//!
//! **Stack limit.** [`STACK_RESERVE`] bytes are reserved below it: half for one frame without a check (a leaf
//! function), half for the routines and C functions that compiled code calls.
//!
//! **Orderings.** Only the poll word is shared. The other side is in `asked`.
//!
//! | row | operation              | order   | pairs with | without it                                                   |
//! |-----|------------------------|---------|------------|--------------------------------------------------------------|
//! | T2  | safepoint: clear bit 0 | Relaxed | T1         | as T1; one operation, so that one request interrupts once    |
//! | T3  | outermost entry: load, clear bit 0 | Relaxed | T1   | as T1: a request made before the entry is void               |
//! | T6  | leaving limits: clear bit 4 | Acquire | T7   | an outer call that ended meanwhile continues: its reason, written before the bit is set, is read after it |
//! | T8  | the runtime is gone: fence after the load of its count | Acquire | the decrements of `Arc` | the thread frees lists of its state as they were before a collector on another thread changed them |
//! | T5  | set bit 3; read bit 5 and clear it | Relaxed | T1, T2 | nothing: the thread does it for itself, and a request for a pause only needs to become visible |

mod asked;
mod attached;
mod end;
mod fuel;
mod outermost;

pub use asked::Interrupt;
pub use attached::{AttachError, with_attached};
pub(crate) use attached::{forget_gone, forget_thread_cells, with_attached_to, with_heap_scope};
use end::FramesAtEnd;
pub use outermost::{Entrant, Outermost, with_entrant};

use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Weak};

use brolga_instances::Pin;
use brolga_ir::Context;

use crate::carried::{Activation, Carried};
use crate::events::Event;
use crate::exception::Exception;
use crate::fence::fenced;
use crate::frames::{Frames, HandlerRecord};
use crate::heap::{
    GcFrame, Heap, MUTATOR, Mutator, MutatorLayout, Object, POLL_COLLECT, POLL_END, Paused, Persistent,
    with_scope,
};
use crate::instance::Runtime;
use crate::objects::{Dispatch, InWorld, InlineCache, IsaCache, MethodTable};
use crate::pending::{Detail, ExceptionKind, Pending};
use crate::retired::{Retired, free, may_hold};
use crate::span::Span;
use crate::stack;
use crate::trace::{MAX_FRAMES, TraceStack, Traces};
use crate::turn::Turn;
use crate::watch::{EndFrame, Ended};

/// Stack below the limit of a thread: two of the largest frames that a compilation may produce (128 KiB
/// each).
pub const STACK_RESERVE: usize = 256 << 10;

/// Smaller stacks are refused.
const SMALLEST_STACK: usize = 2 * STACK_RESERVE;

/// The message of a rethrow while no exception is being handled.
const NOTHING_TO_RETHROW: &[u8] = b"rethrow() not allowed outside a catch block";

/// The state of one attached thread.
#[repr(C)]
pub struct Thread {
    handler: Cell<*mut HandlerRecord>,
    stack_limit: Cell<usize>,
    poll: AtomicU32,
    /// Units of fuel that compiled code may spend before it requests more (`fuel.rs`).
    fuel: Cell<i32>,
    lazy: Cell<usize>,
    /// Points into `dispatch`.
    inline_cache: *const InlineCache,
    mutator: Mutator,
    /// Which exceptions have traces.
    recorded: Traces,
    traces: TraceStack,
    isa: IsaCache,
    dispatch: Dispatch,
    carried: Carried,
    /// Held for C calls under way, so that a jump over their frames does not leak it.
    held: RefCell<Vec<Arc<Runtime>>>,
    /// Units of fuel in addition to `fuel`.
    reserve: Cell<u64>,
    runtime: Weak<Runtime>,
    /// Work for the next safepoint of the thread.
    work: RefCell<Vec<Work>>,
    /// The limited calls under way, innermost last.
    limits: RefCell<Vec<Arc<EndFrame>>>,
    /// The turn of the guest running on it.
    turn: RefCell<Option<Arc<Turn>>>,
    /// The lowest address of the thread's system stack, and its size.
    stack: (usize, usize),
}

/// Offsets in [`Thread`] that machine code contains.
pub struct ThreadLayout;

impl ThreadLayout {
    /// The innermost handler record.
    pub const HANDLER: usize = offset_of!(Thread, handler);
    /// The stack limit.
    pub const STACK_LIMIT: usize = offset_of!(Thread, stack_limit);
    /// The poll word, 32 bits.
    pub const POLL: usize = offset_of!(Thread, poll);
    /// The word in which a stub stores its record.
    pub const LAZY: usize = offset_of!(Thread, lazy);
    /// The world of calls, 64 bits.
    pub const WORLD: usize = offset_of!(Thread, dispatch) + Dispatch::WORLD;
    /// The address of the cache of dynamic calls, laid out by
    /// [`InlineCacheLayout`](crate::objects::InlineCacheLayout).
    pub const INLINE_CACHE: usize = offset_of!(Thread, inline_cache);
    /// The heap's words, at the offsets of [`MutatorLayout`](crate::heap::MutatorLayout) from here.
    pub const MUTATOR: usize = offset_of!(Thread, mutator);
    /// The frame pointer of the compiled code left last.
    pub const EXIT_FP: usize = Self::MUTATOR + MutatorLayout::EXIT_FP;
    /// The address at which it continues.
    pub const EXIT_PC: usize = Self::MUTATOR + MutatorLayout::EXIT_PC;
    /// The innermost entry record.
    pub const ENTRY: usize = Self::MUTATOR + MutatorLayout::ENTRY;
    /// The number of exceptions being handled or thrown.
    pub const EXCEPTIONS: usize = Self::MUTATOR + MutatorLayout::EXCEPTIONS;
}

const _: () = assert!(ThreadLayout::MUTATOR == MUTATOR, "the heap's machine code finds its words elsewhere");

/// Why a scope cannot be entered. The embedder's or the system's fault.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnterError {
    /// The thread cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A scope of this runtime is in use on this thread; its own methods lend it for calls (`call_out`,
    /// `blocking`).
    #[error("this thread is inside a scope of the same runtime already")]
    InScope,
    /// The thread belongs to another runtime.
    #[error("the thread belongs to another runtime")]
    OtherRuntime,
}

/// The bit of the poll word that requests an interrupt.
const POLL_INTERRUPT: u32 = 1;
/// The bit of the poll word that requests a report of the code with frames on the stack.
const POLL_REPORT: u32 = 4;
/// The bit of the poll word for pending [work for a safepoint](Thread::at_safepoint).
const POLL_WORK: u32 = 8;

/// The bit of the poll word that requests a guest's pause.
const POLL_PAUSE: u32 = 32;

/// Work waiting for a safepoint.
type Work = Box<dyn FnOnce() + Send>;

/// The right to access the heap, until it is dropped. Entries nest. GC frames that compiled code linked
/// inside and did not unlink, because an exception left it, are dropped with the entry.
pub struct HeapEntry<'t> {
    thread: &'t Thread,
    heap: &'t Heap,
    gc_stack: *mut GcFrame,
    /// Whether the thread was inside before.
    inside: bool,
    /// How often outer compiled code has left the heap.
    left: usize,
}

impl Drop for HeapEntry<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let mutator = &self.thread.mutator;
        if mutator.left.borrow().len() > self.left {
            self.thread.come_back(self.heap, self.left);
        }
        mutator.restore_gc_stack(self.gc_stack);
        mutator.inside.set(self.inside);
        self.heap.leave(mutator);
    }
}

/// Until it is dropped, compiled code may run, and code that it may find stays. Entries nest.
pub struct Entered<'t> {
    thread: &'t Thread,
    /// The number of exceptions that outer activations are handling.
    depth: usize,
    activation: Activation<'t>,
    pin: Option<Pin<'t, Retired>>,
}

impl Entered<'_> {
    /// The number of exceptions being handled by outer activations.
    pub fn outer_exceptions(&self) -> usize {
        self.depth
    }

    /// Whether compiled code returned with an exception of a C callback that no caller has taken: it leaves
    /// here.
    #[inline]
    pub fn carries(&self) -> bool {
        self.activation.carries()
    }

    /// Must be called before compiled code is called: the exception that refuses the call, if an enclosing
    /// limited call has ended.
    #[inline]
    pub fn refused(&self) -> Option<Exception> {
        self.thread.is_ending().then(|| {
            self.thread.throw(ExceptionKind::InterruptException, Detail::None);
            self.take_exception()
        })
    }

    /// Must be called when an exception left the compiled code, or is left over: pops and returns it.
    pub fn take_exception(&self) -> Exception {
        self.thread.take_exception(self.depth)
    }
}

/// The pin is dropped first: then code that waited for this thread is free.
impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pin = None;
        if self.thread.mutator.participant.is_awaited() {
            free(self.thread.mutator.participant.collect_if_awaited());
        }
    }
}

/// Must be called when a runtime is found to be gone: collectors on other threads may have changed thread
/// states before that.
fn after_runtime() {
    fence(Ordering::Acquire); // T8
}

impl Thread {
    /// Re-enters the heap after an exception left compiled code that had left the heap beyond the `left`
    /// times of outer code.
    #[cold]
    fn come_back(&self, heap: &Heap, left: usize) {
        let paused = self.mutator.left.borrow().get(left).copied();
        if let Some(paused) = paused {
            self.mutator.left.borrow_mut().truncate(left);
            heap.resume(&self.mutator, paused);
        }
    }

    /// Whether the caller's frame is on the thread's system stack, and not on one made by the program. The
    /// limits of compiled code are valid only on the former.
    #[inline(always)]
    pub(crate) fn is_on_own_stack(&self) -> bool {
        let here = 0u8;
        (&raw const here).addr().wrapping_sub(self.stack.0) < self.stack.1
    }

    /// The lowest address of the running thread's stack and its size, if that is large enough. Checked before
    /// [`Thread::new`], whose own frame does not fit a small stack.
    #[inline(never)]
    fn stack_for_code() -> Result<(usize, usize), AttachError> {
        let (lowest, size) = stack::current_bounds().ok_or(AttachError::UnknownStack)?;
        if size < SMALLEST_STACK {
            return Err(AttachError::StackTooSmall { size, needed: SMALLEST_STACK });
        }
        Ok((lowest, size))
    }

    /// The state of the running thread, whose stack has this lowest address and size.
    fn new(runtime: &Arc<Runtime>, stack: (usize, usize)) -> Thread {
        let span = Arc::<Span>::default();
        let dispatch = Dispatch::new(runtime.methods().shared.clone(), span.clone());
        Thread {
            handler: Cell::new(std::ptr::null_mut()),
            stack_limit: Cell::new(stack.0 + STACK_RESERVE),
            poll: AtomicU32::new(0),
            fuel: Cell::new(i32::MAX),
            reserve: Cell::new(u64::MAX),
            lazy: Cell::new(0),
            inline_cache: dispatch.inline_cache(),
            mutator: Mutator::new(runtime.retire_list().participant(), span, runtime.heap().fences()),
            recorded: runtime.traces(),
            traces: TraceStack::default(),
            isa: IsaCache::new(runtime.heap().types().sweeps().clone()),
            dispatch,
            carried: Carried::nothing(),
            held: RefCell::default(),
            runtime: Arc::downgrade(runtime),
            work: RefCell::default(),
            limits: RefCell::default(),
            turn: RefCell::default(),
            stack,
        }
    }

    /// The runtime; `None` once it is gone, which cannot happen while compiled code runs.
    pub(crate) fn runtime(&self) -> Option<Arc<Runtime>> {
        let there = self.runtime.upgrade();
        if there.is_none() {
            after_runtime();
        }
        there
    }

    /// Whether the runtime is gone. If so, everything that collectors on other threads have done to this
    /// state happens before the return.
    pub(crate) fn has_lost_runtime(&self) -> bool {
        let is_gone = self.runtime.strong_count() == 0;
        if is_gone {
            after_runtime();
        }
        is_gone
    }

    /// Whether an interrupt is pending, or a limited call has ended.
    #[inline(always)]
    fn is_asked_to_stop(&self) -> bool {
        self.poll.load(Ordering::Relaxed) & (POLL_INTERRUPT | POLL_END) != 0 // T3
    }

    /// Must be called before compiled code is entered, and before reading any word that leads to it. Dropping
    /// the result leaves. Code that this thread itself retires meanwhile stays only if it has a frame on the
    /// stack: words that were read before must be read again.
    #[inline(always)]
    pub fn enter(&self) -> Entered<'_> {
        // A request that arrives after the load was made while the thread entered, and may interrupt.
        if self.is_asked_to_stop() && self.handler.get().is_null() {
            self.poll.fetch_and(!POLL_INTERRUPT, Ordering::Relaxed); // T3
        }
        let pin = Some(self.mutator.participant.pin());
        // Nothing unwinds from here on, so the guard is built where it is used.
        Entered { thread: self, depth: self.exception_depth(), pin, activation: self.begin() }
    }

    /// Must be called when an exception left a callee at `depth` (the number of exceptions of outer
    /// activations): pops the exception with all above it, and returns it.
    pub fn take_exception(&self, depth: usize) -> Exception {
        let runtime = self.runtime();
        let taken = runtime.as_ref().and_then(|runtime| {
            // Objects are read, so collections wait. The exception is a root until it is popped.
            let _entry = self.enter_own_heap(runtime);
            let pending = self.last_exception(depth, runtime.heap())?;
            let place = self.exception_depth() - 1;
            let mut room = [0; MAX_FRAMES];
            let trace = runtime.symbolizers().frames(self.traces.get(place, &mut room));
            Some(Exception::new(runtime.heap(), pending).with_trace(trace))
        });
        // Unwinding without an exception would be a defect of generated code; it is reported, not hidden.
        let exception = taken.unwrap_or_else(|| {
            let base = runtime.as_ref().map(|runtime| runtime.heap().types().base().clone());
            Exception::missing(base.unwrap_or_else(Context::new))
        });
        self.pop_exceptions(depth);
        if let Some(runtime) = runtime.filter(|runtime| runtime.heap().types().wants_census()) {
            runtime.free_unused_types();
        }
        exception
    }

    /// The record of the stub called last on this thread.
    pub fn lazy(&self) -> usize {
        self.lazy.get()
    }

    /// Calls `body`, which may call other stubs; restores the record afterwards.
    pub fn keeping_lazy<R>(&self, body: impl FnOnce() -> R) -> R {
        let before = self.lazy.get();
        let result = body();
        self.lazy.set(before);
        result
    }

    /// Whether collections consider this thread, because it has entered the heap before.
    #[inline]
    pub fn is_known_to_heap(&self) -> bool {
        self.mutator.registered.get()
    }

    /// Whether outer compiled code is running on this thread.
    pub(crate) fn is_inside(&self) -> bool {
        !self.handler.get().is_null()
    }

    /// Begins an activation in which no exception is pending for C.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Activation<'_> {
        self.carried.begin()
    }

    /// Makes the exception thrown last pending until C returns to the compiled code that called it.
    pub(crate) fn carry(&self, kept: Option<Persistent>) {
        self.carried.wait(self.handler.get(), self.exception_depth().saturating_sub(1), kept);
    }

    /// A root for the exception thrown last, if it is an object, for when the thread leaves the heap.
    pub(crate) fn keep_exception(&self, runtime: &Runtime) -> Option<Persistent> {
        match self.mutator.exceptions.last() {
            Some(Pending::Object(object)) => Some(runtime.heap().persistent(object)),
            _ => None,
        }
    }

    /// The last exception above `depth`. If a handle keeps it, it may have moved meanwhile.
    fn last_exception(&self, depth: usize, heap: &Heap) -> Option<Pending> {
        // Exceptions below belong to outer activations.
        let last = self.mutator.exceptions.last_above(depth)?;
        let kept = self.carried.look_at_kept(self.exception_depth() - 1, |kept| heap.kept(kept)).flatten();
        Some(kept.map_or(last, Pending::Object))
    }

    /// Whether an exception is pending for the C function that the innermost compiled code has called.
    pub(crate) fn is_carrying(&self) -> bool {
        self.is_inside() && self.carried.waits_for(self.handler.get())
    }

    /// Throws the exception that is pending for the C function that has just returned; returns whether there
    /// is one.
    pub(crate) fn stop_carrying(&self) -> bool {
        let waits = self.is_carrying();
        if waits {
            self.carried.stop();
        }
        waits
    }

    /// Calls `body`, which reads objects without a scope: no compiled code runs on this thread meanwhile.
    pub(crate) fn as_in_scope<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Mutator, bool);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.in_scope.set(self.1);
            }
        }
        let _back = Back(&self.mutator, self.mutator.in_scope.replace(true));
        body()
    }

    /// Bytes of stack that a routine may use in addition to the reserve.
    pub fn stack_left(&self) -> usize {
        let local = 0u8;
        (&raw const local).addr().saturating_sub(self.stack_limit.get())
    }

    /// Writes the program's output. Collections continue meanwhile: the embedder's writer may wait for a
    /// thread that allocates.
    pub(crate) fn print(&self, bytes: &[u8]) {
        let Some(runtime) = self.runtime() else { return };
        // Programs print often, and a stay takes a lock that all threads share.
        let done = self.paused(|| runtime.sink().write(bytes));
        debug_assert!(done.is_ok(), "compiled code prints where no scope is in use");
    }

    /// Calls `body` without blocking collections, which keep this thread's roots; code retired meanwhile does
    /// not wait for this thread unless it has a frame on the stack. `body` may enter the heap and run
    /// compiled code again. An error inside a scope, whose borrowed references no root keeps alive: use
    /// [`Scope::blocking`](crate::heap::Scope::blocking) there.
    pub fn blocking<R>(&self, body: impl FnOnce() -> R) -> Result<R, EnterError> {
        let _stay = self.mutator.stay();
        self.paused(body)
    }

    /// Like [`Thread::blocking`], but retired code waits for this thread.
    fn paused<R>(&self, body: impl FnOnce() -> R) -> Result<R, EnterError> {
        struct Back<'a>(&'a Thread, &'a Heap, Paused);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.1.resume(&self.0.mutator, self.2);
            }
        }
        if self.in_scope() {
            return Err(EnterError::InScope);
        }
        let Some(runtime) = self.runtime().filter(|_| self.mutator.depth.get() > 0) else {
            return Ok(body());
        };
        let heap = runtime.heap();
        let _back = Back(self, heap, heap.pause(&self.mutator));
        Ok(body())
    }

    /// Throws `CompileError(text)`. A safepoint. The code that called the running routine continues to
    /// `brolga_unwind`.
    pub fn throw_refusal(&self, text: &str) {
        let thrown = self.runtime().and_then(|runtime| {
            let _entry = self.enter_own_heap(&runtime);
            with_scope(runtime.heap(), &self.mutator, |scope| {
                let _pending = scope.raise_message(ExceptionKind::CompileError, text);
            })
        });
        if thrown.is_none() {
            // A scope is in use on this thread, whose references no root would keep alive while objects are
            // made.
            self.throw(ExceptionKind::CompileError, Detail::None);
        }
    }

    /// Like [`Thread::throw_refusal`], for a text that becomes a constant of the runtime: one per text,
    /// however often it is thrown. It needs no heap, and is not a safepoint.
    pub fn throw_constant_refusal(&self, text: &str) {
        let text = self.runtime().map(|runtime| Detail::Message(runtime.string(text.as_bytes())));
        self.throw(ExceptionKind::CompileError, text.unwrap_or(Detail::None));
    }

    pub(crate) fn throw(&self, kind: ExceptionKind, detail: Detail) {
        self.push(Pending::Kind(kind, detail));
    }

    /// Throws an object.
    pub(crate) fn throw_object(&self, object: Object) {
        self.push(Pending::Object(object));
    }

    fn wants_trace(&self) -> bool {
        match self.recorded {
            Traces::Off => false,
            Traces::Leaving => self.mutator.is_entry(self.handler.get()),
            Traces::All => true,
        }
    }

    /// Records the frames of an exception that Rust has raised, when it is returned to the compiled code that called the routine. An exception
    /// that left a nested entry has its frames already.
    #[cold]
    pub(crate) fn trace_raised(&self) {
        if !self.mutator.exceptions.take_untraced() {
            return;
        }
        let place = self.exception_depth() - 1;
        match self.wants_trace() {
            true => self.traces.take(place, self.frames()),
            false => self.traces.pop(place),
        }
    }

    fn push(&self, pending: Pending) {
        match self.wants_trace() {
            true => self.traces.take(self.exception_depth(), self.frames()),
            false => self.traces.pop(self.exception_depth()),
        }
        self.mutator.exceptions.push(pending);
    }

    /// Rethrows the exception being handled.
    pub(crate) fn rethrow(&self) {
        let again = self.mutator.exceptions.last();
        let place = self.exception_depth();
        self.push(again.unwrap_or_else(|| {
            let text = self.runtime().map(|runtime| runtime.heap().strings().string(NOTHING_TO_RETHROW));
            Pending::Kind(ExceptionKind::ErrorException, text.map_or(Detail::None, Detail::Message))
        }));
        if place > 0 {
            self.traces.again(place - 1, place);
        }
    }

    #[inline]
    pub(crate) fn exception_depth(&self) -> usize {
        self.mutator.exceptions.depth()
    }

    pub(crate) fn pop_exceptions(&self, depth: usize) {
        self.mutator.exceptions.truncate(depth);
        self.traces.pop(depth);
        self.carried.taken_off(depth);
    }

    /// Drops the exceptions above `depth` except the last; `false` if there is none.
    pub(crate) fn keep_last_exception(&self, depth: usize) -> bool {
        let count = self.exception_depth();
        if count <= depth {
            return false;
        }
        self.mutator.exceptions.keep_last(depth);
        self.traces.again(count - 1, depth);
        self.carried.taken_off(depth);
        true
    }

    /// Whether enough stack is left for compiled code.
    pub(crate) fn has_stack(&self) -> bool {
        let here = 0u8;
        (&raw const here).addr() >= self.stack_limit.get()
    }

    /// The world of calls; the newest one outside all worlds.
    pub fn world(&self) -> u64 {
        self.dispatch.world()
    }

    /// Enters the newest world of a program's methods, for the following call. A thread that runs code of the
    /// same program stays in its current world.
    #[inline(always)]
    pub fn enter_world(&self, methods: &MethodTable) -> InWorld<'_> {
        self.dispatch.enter(methods, self.handler.get().is_null())
    }

    /// Enters the newest world of the methods in use until the result is dropped, as `invokelatest` does for a call. The thread is pinned.
    pub fn enter_latest_world(&self) -> InWorld<'_> {
        self.dispatch.latest()
    }

    /// Enters a world of the methods in use until the result is dropped, as `invoke_in_world` does for a
    /// call; the newest one if it does not exist yet. The thread is pinned. Versions of functions that no
    /// thread has used for a while may have been freed: then the oldest existing one is used.
    pub fn enter_world_of(&self, world: u64) -> InWorld<'_> {
        self.dispatch.at(world)
    }

    /// Stays in the world of compiled code, or enters the newest one of a program's methods if none runs on
    /// this thread, or if the running code has no world because it makes no dynamic calls.
    pub(crate) fn stay_or_enter_world(&self, methods: &MethodTable) -> Option<InWorld<'_>> {
        let stays = self.is_inside() && self.dispatch.is_in_world();
        (!stays).then(|| self.enter_world(methods))
    }

    /// The thread's state for dynamic dispatch.
    pub(crate) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// This thread's cache of `isa` results.
    pub(crate) fn isa_cache(&self) -> &IsaCache {
        &self.isa
    }

    /// The body of `brolga_safepoint`: returns whether an exception is pending afterwards.
    pub(crate) fn safepoint(&self) -> bool {
        let asked = self.poll.load(Ordering::Relaxed); // T5
        if asked & POLL_PAUSE != 0 {
            // First: later requests are handled below.
            self.pause();
        }
        let answered = POLL_INTERRUPT | POLL_REPORT | POLL_WORK;
        let wanted = self.poll.fetch_and(!answered, Ordering::Relaxed); // T2
        if wanted & POLL_WORK != 0 {
            self.do_work();
        }
        if wanted & POLL_REPORT != 0 {
            self.report_frames();
        }
        if wanted & POLL_COLLECT != 0
            // Code without objects runs outside the heap, which does not wait for it.
            && self.mutator.depth.get() > 0
            && let Some(runtime) = self.runtime()
        {
            runtime.heap().safepoint(&self.mutator);
        }
        if wanted & POLL_END != 0 {
            self.throw(ExceptionKind::InterruptException, Detail::None);
            return true;
        }
        if wanted & POLL_INTERRUPT != 0 {
            if let Some(runtime) = self.runtime() {
                runtime.events().tell(Event::Interrupted);
            }
            self.throw(ExceptionKind::InterruptException, Detail::None);
        }
        wanted & POLL_INTERRUPT != 0
    }

    /// Runs `work` at the next safepoint of compiled code on this thread, outside the heap: for routines that
    /// are not safepoints themselves but have to call the embedder's code. Work that is left when the thread
    /// ends is dropped.
    pub fn at_safepoint(&self, work: impl FnOnce() + Send + 'static) {
        self.work.borrow_mut().push(Box::new(work));
        self.poll.fetch_or(POLL_WORK, Ordering::Relaxed); // T5
    }

    /// Makes compiled code on this thread pause at each request from now on, until its next turn.
    pub(crate) fn pause_by(&self, turn: Option<Arc<Turn>>) {
        self.poll.fetch_and(!POLL_PAUSE, Ordering::Relaxed); // T5
        let before = self.turn.replace(turn);
        drop(before);
    }

    #[cold]
    fn pause(&self) {
        // References of a scope would not be kept alive meanwhile: the next safepoint outside it pauses.
        if self.in_scope() {
            return;
        }
        self.poll.fetch_and(!POLL_PAUSE, Ordering::Relaxed); // T5
        let turn = self.turn.borrow().clone();
        if let Some(turn) = turn {
            let paused = self.blocking(|| turn.pause());
            debug_assert!(paused.is_ok(), "no scope is in use");
        }
    }

    /// Begins a limited call.
    pub(crate) fn enter_limits(&self, frame: Arc<EndFrame>) {
        self.limits.borrow_mut().push(frame);
    }

    /// Ends a limited call; it can no longer be interrupted by its limits.
    pub(crate) fn leave_limits(&self, frame: &Arc<EndFrame>) {
        let mut limits = self.limits.borrow_mut();
        limits.retain(|other| !Arc::ptr_eq(other, frame));
        self.poll.fetch_and(!POLL_END, Ordering::Acquire); // T6
        if limits.iter().any(|outer| outer.ended().is_some()) {
            self.poll.fetch_or(POLL_END, Ordering::Relaxed); // T6
        }
    }

    /// Passes the limited calls under way to `look`, outermost first.
    pub(crate) fn with_limits<R>(&self, look: impl FnOnce(&[Arc<EndFrame>]) -> R) -> R {
        look(&self.limits.borrow())
    }

    /// Ends the innermost limited call that satisfies `is_meant`, for this reason.
    fn end_limited(&self, why: Ended, is_meant: impl Fn(&EndFrame) -> bool) {
        let frame = self.limits.borrow().iter().rev().find(|frame| is_meant(frame)).cloned();
        if let Some(frame) = frame {
            frame.end(why);
        }
    }

    /// Whether compiled code will end at its next poll.
    pub(crate) fn is_ending(&self) -> bool {
        self.poll.load(Ordering::Relaxed) & POLL_END != 0 // T3
    }

    fn do_work(&self) {
        if self.in_scope() {
            // References of the scope would not be kept alive: the next safepoint outside it does the work.
            self.poll.fetch_or(POLL_WORK, Ordering::Relaxed); // T5
            return;
        }
        for work in self.work.take() {
            // A panic of the embedder's code affects only its own work.
            let _done = self.blocking(|| fenced(work));
        }
    }

    /// Releases retired code without frames on this thread's stack.
    fn report_frames(&self) {
        self.report();
        if let Some(runtime) = self.runtime() {
            runtime.collect_retired();
        }
    }

    fn report(&self) {
        let returns = self.frames().returns();
        let worlds = self.dispatch.worlds();
        self.mutator.participant.report(|code| may_hold(code, &returns, worlds));
    }

    /// Releases retired code without frames on this thread's stack, if `is_due` for the amount that waits and
    /// the amount that the last report held.
    pub(crate) fn report_if(&self, is_due: impl FnOnce(usize, usize) -> bool) {
        let (awaited, held) = self.mutator.participant.awaited();
        if is_due(awaited, held) {
            self.report();
        }
    }

    /// The frames of compiled code on the stack of this thread, which must be the running one, innermost
    /// first.
    pub fn frames(&self) -> Frames<'_> {
        // SAFETY: a `Thread` is used only by its own operating-system thread, which runs this and so no
        // compiled code. The thread outlives the callers' frames, and no callee keeps a reference to it.
        unsafe { self.mutator.frames() }
    }

    /// The heap's part of the thread.
    pub fn mutator(&self) -> &Mutator {
        &self.mutator
    }

    /// Whether a scope is in use on this thread and not lent for a call: objects that it does not keep alive
    /// may be in use.
    #[inline]
    pub fn in_scope(&self) -> bool {
        self.mutator.in_scope.get()
    }

    /// Enters the heap of the thread's runtime: from now on collections wait for this thread at safepoints.
    /// Compiled code that accesses objects runs inside such an entry.
    #[inline(always)]
    pub fn enter_heap<'t>(&'t self, runtime: &'t Arc<Runtime>) -> Result<HeapEntry<'t>, EnterError> {
        match std::ptr::eq(self.runtime.as_ptr(), Arc::as_ptr(runtime)) {
            true => Ok(self.enter_own_heap(runtime)),
            false => Err(EnterError::OtherRuntime),
        }
    }

    /// Like [`Thread::enter_heap`], when the runtime is known to be the thread's.
    #[inline(always)]
    pub(crate) fn enter_own_heap<'t>(&'t self, runtime: &'t Runtime) -> HeapEntry<'t> {
        debug_assert!(std::ptr::eq(self.runtime.as_ptr(), runtime));
        let heap = runtime.heap();
        // SAFETY: a thread of the list `ATTACHED` is in an `Arc`, so it does not move. It is on that list
        // until its runtime is gone, and the heap with it, or until its operating-system thread ends, which
        // unregisters it first.
        unsafe { heap.enter(&self.mutator, &self.poll) };
        let inside = self.mutator.inside.replace(true);
        let left = self.mutator.left.borrow().len();
        HeapEntry { thread: self, heap, gc_stack: self.mutator.gc_stack(), inside, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::RuntimeOptions;

    #[test]
    fn the_offsets_in_machine_code_hold() {
        assert_eq!((ThreadLayout::HANDLER, ThreadLayout::STACK_LIMIT, ThreadLayout::POLL), (0, 8, 16));
        assert_eq!((ThreadLayout::LAZY, ThreadLayout::INLINE_CACHE, ThreadLayout::MUTATOR), (24, 32, 40));
        assert_eq!(size_of::<HandlerRecord>(), 32);
    }

    #[test]
    fn exceptions_stack_up_and_leave_together() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let taken = with_attached(&runtime, |thread| {
            let entered = thread.enter();
            thread.throw(ExceptionKind::BoundsError, Detail::None);
            thread.throw(ExceptionKind::DivideError, Detail::None);
            (entered.take_exception().kind, thread.exception_depth())
        });
        assert_eq!(taken, Ok((ExceptionKind::DivideError, 0)));
    }
}
