//! How an operating-system thread finds what it is to a runtime.
//!
//! ```text
//!   LAST      (runtime, thread)                 the last call's: one comparison
//!   ATTACHED  thread │ thread │ …               one for each runtime that it has run code of
//! ```
//!
//! The first call on an operating-system thread makes its [`Thread`], which is on the thread-local list until the operating-system
//! thread ends or the runtime is gone. What a thread is to a heap ends on the thread itself.
//!
//! Cost: one comparison; a walk over the list where runtimes take turns. Runtimes that are gone leave the list when the next one comes.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::{EnterError, Reporter, Thread};
use crate::heap::{Scope, with_scope};
use crate::instance::Runtime;

/// Why a thread cannot run compiled code. The embedder's or the system's fault.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// The operating system does not say where the stack ends.
    #[error("the system does not tell where this thread's stack ends")]
    UnknownStack,
    /// The stack is too small to hold the reserve and frames above it.
    #[error("this thread's stack has {size} bytes; running compiled code takes at least {needed}")]
    StackTooSmall {
        /// What there is.
        size: usize,
        /// What it takes.
        needed: usize,
    },
    /// The operating-system thread is ending and has given up its thread-local values.
    #[error("this thread is ending")]
    Ending,
}

/// The threads of this operating-system thread, one for each runtime it has run code of.
struct Attached {
    threads: RefCell<Vec<Arc<Thread>>>,
}

thread_local! {
    static ATTACHED: Attached = const { Attached { threads: RefCell::new(Vec::new()) } };
    /// The runtime of the last call and its thread, which is in `ATTACHED`.
    static LAST: Cell<(*const Runtime, *const Thread)> = const { Cell::new((std::ptr::null(), std::ptr::null())) };
}

impl Attached {
    fn get_or_attach(&self, runtime: &Arc<Runtime>) -> Result<Arc<Thread>, AttachError> {
        let mut threads = self.threads.borrow_mut();
        if let Some(thread) = threads.iter().find(|thread| thread.runtime.as_ptr() == Arc::as_ptr(runtime)) {
            return Ok(thread.clone());
        }
        LAST.set((std::ptr::null(), std::ptr::null()));
        threads.retain(|thread| thread.runtime.strong_count() > 0);
        // Not pushed before it exists, so that an error changes nothing. The RefCell guard is not held across user code.
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "shared with `Interrupt` and `Reporter`, which touch atomic words only"
        )]
        let thread = Arc::new(Thread::new(runtime)?);
        runtime.add_reporter(Reporter { thread: Arc::downgrade(&thread) });
        threads.push(thread.clone());
        Ok(thread)
    }
}

/// The operating-system thread ends. What it is to its runtimes ends here, on the thread itself, which is outside of their heaps and
/// may wait for a collection; handles of others (`Interrupt`, `Reporter`) may outlive it, and be dropped anywhere.
impl Drop for Attached {
    fn drop(&mut self) {
        LAST.set((std::ptr::null(), std::ptr::null()));
        for thread in self.threads.get_mut() {
            // When a runtime is gone, so is its heap's list.
            if let Some(runtime) = thread.runtime() {
                runtime.heap().unregister(&thread.mutator);
                runtime.free_retired();
            }
        }
    }
}

/// Calls `body` with the `Thread` of the running operating-system thread, which is made at the first call.
pub fn with_attached<R>(runtime: &Arc<Runtime>, body: impl FnOnce(&Thread) -> R) -> Result<R, AttachError> {
    let (last, thread) = LAST.get();
    if last == Arc::as_ptr(runtime) {
        // SAFETY: `LAST` holds a thread that is in the list `ATTACHED`. It leaves that list in two ways only, and both clear
        // `LAST` first: when its runtime is gone (not now: the caller holds it, and until `body` returns), and when
        // the list itself is dropped as the operating-system thread ends (not inside `body`, which runs on it). The
        // runtime's address names this runtime: the thread's weak handle keeps the address from being used again.
        return Ok(body(unsafe { &*thread }));
    }
    let thread = current(runtime)?;
    LAST.set((Arc::as_ptr(runtime), Arc::as_ptr(&thread)));
    Ok(body(&thread))
}

/// The `Thread` of the running operating-system thread, which is made if there is none.
pub(super) fn current(runtime: &Arc<Runtime>) -> Result<Arc<Thread>, AttachError> {
    ATTACHED.try_with(|attached| attached.get_or_attach(runtime)).map_err(|_| AttachError::Ending)?
}

/// The `Thread` of the running operating-system thread for the runtime at an address, if it was attached.
pub(crate) fn attached_to(runtime: *const Runtime) -> Option<Arc<Thread>> {
    let find = |attached: &Attached| {
        // Those that are attached just now, and drop what is left of others, have run nothing.
        let threads = attached.threads.try_borrow().ok()?;
        threads.iter().find(|thread| thread.runtime.as_ptr() == runtime).cloned()
    };
    ATTACHED.try_with(find).ok().flatten()
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
    fn threads_of_runtimes_that_are_gone_are_given_up() {
        for _ in 0..50 {
            let runtime = Runtime::new(RuntimeOptions::default());
            with_attached(&runtime, |_| ()).unwrap();
        }
        assert!(ATTACHED.with(|attached| attached.threads.borrow().len()) <= 2);
    }

    #[test]
    fn a_small_stack_is_refused() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let attach = move || with_attached(&runtime, |_| ());
        let outcome =
            std::thread::Builder::new().stack_size(128 << 10).spawn(attach).unwrap().join().unwrap();
        assert!(matches!(outcome, Err(AttachError::StackTooSmall { .. })), "{outcome:?}");
    }
}
