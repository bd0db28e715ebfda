//! How an operating-system thread finds its `Thread` of a runtime.
//!
//! ```text
//!   LAST      (runtime, thread)                 from the last call: one comparison
//!   ATTACHED  thread │ thread │ …               one for each runtime whose code it has run
//!   STANDING  thread │ thread │ …               the list after `ATTACHED` is destroyed: threads that `exit` may still run
//! ```
//!
//! The first call on an operating-system thread makes its [`Thread`], which is on the thread-local list until
//! the operating-system thread ends or the runtime is gone. A thread's registration with a heap ends on the
//! thread itself.
//!
//! **The end of a thread.** The system destroys `ATTACHED` in three situations, and each thread on the list
//! is in one of three states:
//!
//! | state | cause | effect |
//! |---|---|---|
//! | outside compiled code and scopes | the thread returns from its start routine | it leaves the heap's list |
//! | its frames still exist | compiled code or a C callee calls `exit`, or Rust does inside a scope | it stays forever, outside the heap, with its roots |
//! | its frames are abandoned | `pthread_exit` jumps over them | they are dropped, and it leaves the heap's list |
//!
//! Handlers of `atexit` run after thread-local values are destroyed, on the same thread, above frames that
//! still exist. They may be functions of a program, so a thread whose frames still exist is found through
//! `STANDING`, which has no destructor; and so are all threads of the main thread, which ends once, possibly
//! with the process.
//!
//! Cost: one comparison; a walk over the list when runtimes alternate. A runtime that is gone leaves the list
//! of the thread that dropped it immediately, and the lists of other threads when they attach to another
//! runtime. A thread takes 25 KiB for each runtime on its list. A thread that stays forever is leaked, at
//! most one list for each operating-system thread that calls `exit`.
//!
//! Not done: `pthread_exit` jumps over Rust frames without running destructors, so values of a host function
//! between C and compiled code are leaked; a `pthread_exit` in a region outside the heap (`brolga_gc_leave`)
//! leaves frames that a collection may read until the thread-local values are destroyed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::asked::{Interrupt, WeakThread};
use super::{EnterError, FramesAtEnd, Thread};
use crate::heap::{Scope, with_scope};
use crate::instance::Runtime;
use crate::stack;

/// Why a thread cannot run compiled code. The embedder's or the system's fault.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// The operating system does not report where the stack ends.
    #[error("the system does not tell where this thread's stack ends")]
    UnknownStack,
    /// The stack is too small to hold the reserve and frames above it.
    #[error("this thread's stack has {size} bytes; running compiled code takes at least {needed}")]
    StackTooSmall {
        /// The size of the stack.
        size: usize,
        /// The minimum size.
        needed: usize,
    },
    /// The running code is on a stack made by the program (`makecontext`, fibers), where the limit of the
    /// thread's own stack is meaningless.
    #[error(
        "compiled code runs on the stack that the system made for the thread, not on one that the program has made; call it from there, or from another thread"
    )]
    OtherStack,
    /// The operating-system thread is ending and has destroyed its thread-local values.
    #[error("this thread is ending")]
    Ending,
}

/// The `Thread`s of this operating-system thread, one for each runtime whose code it has run.
struct Attached {
    threads: RefCell<Vec<Arc<Thread>>>,
}

thread_local! {
    static ATTACHED: Attached = const { Attached { threads: RefCell::new(Vec::new()) } };
    /// The runtime of the last call and its thread, which is in `ATTACHED`.
    static LAST: Cell<(*const Runtime, *const Thread)> = const { Cell::new((std::ptr::null(), std::ptr::null())) };
    /// Threads that outlive `ATTACHED`. It has no destructor, so it can be read until the end.
    static STANDING: Cell<Option<&'static [Arc<Thread>]>> = const { Cell::new(None) };
}

impl Attached {
    fn get_or_attach(&self, runtime: &Arc<Runtime>) -> Result<Arc<Thread>, AttachError> {
        let mut threads = self.threads.borrow_mut();
        if let Some(thread) = threads.iter().find(|thread| thread.runtime.as_ptr() == Arc::as_ptr(runtime)) {
            return Ok(thread.clone());
        }
        // Before anything changes.
        let stack = Thread::stack_for_code()?;
        LAST.set((std::ptr::null(), std::ptr::null()));
        threads.retain(|thread| !thread.has_lost_runtime());
        // The RefCell guard is not held across user code.
        let thread = attach(runtime, stack);
        threads.push(thread.clone());
        Ok(thread)
    }
}

/// Makes the state of the running thread. Not inlined: its frame is large, and a small stack has to be
/// refused before.
#[cold]
#[inline(never)]
fn attach(runtime: &Arc<Runtime>, stack: (usize, usize)) -> Arc<Thread> {
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "shared with `Interrupt` and `Reporter`, which touch atomic words only"
    )]
    let thread = Arc::new(Thread::new(runtime, stack));
    runtime.add_reporter(Box::new(WeakThread { thread: Arc::downgrade(&thread) }));
    thread
}

/// Drops this operating-system thread's state for runtimes that are gone. Must be called when a runtime is
/// dropped.
pub(crate) fn forget_gone() {
    let gone = ATTACHED.try_with(|attached| {
        // If the list is borrowed, a thread is being attached; the next attachment does this instead.
        let mut threads = attached.threads.try_borrow_mut().ok()?;
        let is_gone = |thread: &mut Arc<Thread>| thread.has_lost_runtime();
        let gone: Vec<Arc<Thread>> = threads.extract_if(.., is_gone).collect();
        if gone.iter().any(|thread| Arc::as_ptr(thread) == LAST.get().1) {
            LAST.set((std::ptr::null(), std::ptr::null()));
        }
        Some(gone)
    });
    // The state of a thread is dropped without the lock of the list.
    drop(gone);
}

/// Drops this operating-system thread's values of thread-local variables, of all runtimes. No frame of compiled
/// code is on its stack.
pub(crate) fn forget_thread_cells() {
    let threads = ATTACHED.try_with(|attached| attached.threads.borrow().clone());
    for thread in threads.iter().flatten() {
        if let Some(runtime) = thread.runtime() {
            runtime.heap().forget_thread_cells(&thread.mutator);
        }
    }
}

/// Runs when the operating-system thread ends, or the process on this thread: see the file's header. The
/// thread's registration with its runtimes ends on the thread itself, which may wait for a collection;
/// handles of others (`Interrupt`, `Reporter`) may outlive it, and be dropped anywhere. thread itself, which
/// may wait for a collection; handles of others (`Interrupt`, `Reporter`) may outlive it, and be dropped
/// anywhere.
impl Drop for Attached {
    fn drop(&mut self) {
        LAST.set((std::ptr::null(), std::ptr::null()));
        let is_main = stack::is_main_thread();
        let mut standing = Vec::new();
        for thread in std::mem::take(self.threads.get_mut()) {
            // If a runtime is gone, so is its heap's list.
            let Some(runtime) = thread.runtime() else { continue };
            let frames = thread.frames_at_end();
            match frames {
                FramesAtEnd::Standing => thread.stand(&runtime),
                FramesAtEnd::Abandoned => thread.forget_frames(&runtime),
                FramesAtEnd::None => {}
            }
            if frames != FramesAtEnd::Standing {
                runtime.heap().unregister(&thread.mutator);
                runtime.free_retired();
            }
            if is_main || frames == FramesAtEnd::Standing {
                standing.push(thread);
            }
        }
        if !standing.is_empty() {
            STANDING.set(Some(Box::leak(standing.into_boxed_slice())));
        }
    }
}

/// Calls `body` with the `Thread` of the running operating-system thread, which is made on the first call.
#[inline]
pub fn with_attached<R>(runtime: &Arc<Runtime>, body: impl FnOnce(&Thread) -> R) -> Result<R, AttachError> {
    if LAST.get().0 != Arc::as_ptr(runtime) {
        become_last(runtime)?;
    }
    // SAFETY: `LAST` holds a thread of the list `ATTACHED`, which it leaves in two cases that clear `LAST` first: when its runtime is
    // gone (the caller holds it until `body` returns), and when the list is dropped at the end of the operating-system thread (which
    // runs `body`; if `body` calls `exit`, frames of compiled code keep the thread, and nothing returns here). The address identifies
    // this runtime: the thread's weak handle keeps it from being reused.
    let thread = unsafe { &*LAST.get().1 };
    if !thread.is_on_own_stack() {
        return Err(AttachError::OtherStack);
    }
    Ok(body(thread))
}

/// Like [`with_attached`], if it was the runtime of the last call on this thread.
#[inline(always)]
pub(super) fn with_last<R>(runtime: &Arc<Runtime>, body: impl FnOnce(&Thread) -> R) -> Option<R> {
    let (last, thread) = LAST.get();
    if last != Arc::as_ptr(runtime) {
        return None;
    }
    // SAFETY: as in `with_attached`.
    let thread = unsafe { &*thread };
    thread.is_on_own_stack().then(|| body(thread))
}

#[cold]
#[inline(never)]
fn become_last(runtime: &Arc<Runtime>) -> Result<(), AttachError> {
    let thread = current(runtime)?;
    LAST.set((Arc::as_ptr(runtime), Arc::as_ptr(&thread)));
    Ok(())
}

/// The `Thread` of the running operating-system thread, which is made if necessary.
pub(super) fn current(runtime: &Arc<Runtime>) -> Result<Arc<Thread>, AttachError> {
    ATTACHED.try_with(|attached| attached.get_or_attach(runtime)).map_err(|_| AttachError::Ending)?
}

impl Interrupt {
    /// The interrupt of the running thread.
    pub fn for_current(runtime: &Arc<Runtime>) -> Result<Interrupt, AttachError> {
        Ok(Interrupt { thread: current(runtime)? })
    }
}

/// Calls `body` with the `Thread` of the running operating-system thread for the runtime at an address, if it was attached.
///
/// `body` may never return, because a C function that it calls ends the thread; so it is passed nothing that
/// it would have to drop.
pub(crate) fn with_attached_to<R>(runtime: *const Runtime, body: impl FnOnce(&Thread) -> R) -> Option<R> {
    let (last, thread) = LAST.get();
    if last == runtime {
        // SAFETY: as in `with_attached`: code of the runtime runs, so it exists, and `LAST` is cleared before
        // its thread leaves the list.
        return Some(body(unsafe { &*thread }));
    }
    let find = |threads: &[Arc<Thread>]| {
        threads.iter().find(|thread| thread.runtime.as_ptr() == runtime).map(Arc::as_ptr)
    };
    // Threads that are being attached, and drop the remains of others, have run no code.
    let attached = ATTACHED.try_with(|attached| find(&attached.threads.try_borrow().ok()?));
    let thread = attached.unwrap_or_else(|_| find(STANDING.get()?))?;
    // SAFETY: the thread is on one of the two lists. It leaves `ATTACHED` when its runtime is gone, which is
    // impossible while code of the runtime runs, or when the list is destroyed, on this thread and not before
    // `body` returns, unless `body` is in a call of `exit`, which moves threads whose frames still exist to
    // `STANDING`; and `STANDING` keeps its threads forever.
    Some(body(unsafe { &*thread }))
}

/// Calls `body` with a scope of the runtime's heap; see [`Runtime::enter`].
pub(crate) fn with_heap_scope<R>(
    runtime: &Arc<Runtime>,
    body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> R,
) -> Result<R, EnterError> {
    with_attached(runtime, |thread| {
        let _entry = thread.enter_own_heap(runtime);
        with_scope(runtime.heap(), &thread.mutator, body).ok_or(EnterError::InScope)
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::RuntimeOptions;

    #[test]
    fn a_thread_is_found_again_and_each_runtime_has_its_own() {
        let (one, two) = (Runtime::new(RuntimeOptions::default()), Runtime::new(RuntimeOptions::default()));
        let address = |runtime| with_attached(runtime, |t| std::ptr::from_ref(t).addr()).unwrap();
        let first = address(&one);
        assert_ne!(address(&two), first);
        assert_eq!(address(&one), first);
        let elsewhere = std::thread::scope(|s| s.spawn(|| address(&one)).join().unwrap());
        assert_ne!(elsewhere, first);
    }

    #[test]
    fn threads_of_runtimes_that_are_gone_are_dropped() {
        for _ in 0..50 {
            let runtime = Runtime::new(RuntimeOptions::default());
            with_attached(&runtime, |_| ()).unwrap();
        }
        assert!(ATTACHED.with(|attached| attached.threads.borrow().len()) <= 2);
    }

    #[test]
    fn dropping_runtimes_leaves_nothing_on_the_list() {
        let runtimes: Vec<_> = (0..50).map(|_| Runtime::new(RuntimeOptions::default())).collect();
        runtimes.iter().for_each(|runtime| with_attached(runtime, |_| ()).unwrap());
        let listed = || ATTACHED.with(|attached| attached.threads.borrow().len());
        assert_eq!(listed(), 50);
        drop(runtimes);
        assert_eq!(listed(), 0);
    }

    #[test]
    fn a_small_stack_is_refused() {
        for kilobytes in [16, 20, 24, 32, 64, 128] {
            let runtime = Runtime::new(RuntimeOptions::default());
            let attach = || with_attached(&runtime, |_| ());
            let outcome = std::thread::scope(|scope| {
                let small = std::thread::Builder::new().stack_size(kilobytes << 10);
                small.spawn_scoped(scope, attach).unwrap().join().unwrap()
            });
            assert!(matches!(outcome, Err(AttachError::StackTooSmall { .. })), "{kilobytes}: {outcome:?}");
        }
    }
}
