//! Requests from other operating-system threads to a thread: to stop, and to report which code has frames on
//! its stack.
//!
//! ```text
//!   Interrupt ── raise ──► bit 0 of the poll word ──► next safepoint: throws `InterruptException`
//!             ── ask_to_pause ► bit 5         ──► next safepoint: waits for its turn (`guests.rs`)
//!   Reporter  ── ask ────► bit 2                  ──► next safepoint: releases retired code without frames (`retired.rs`)
//! ```
//!
//! Both own the `Thread` or check whether it exists, and access only its atomic words. The runtime has a
//! `Reporter` for each of its threads; an embedder makes an [`Interrupt`] on the thread itself and passes it
//! on. Either may outlive the operating-system thread.
//!
//! **Orderings.** T2 and T3 are in `thread.rs`.
//!
//! | row | operation              | order   | pairs with | without it                                                   |
//! |-----|------------------------|---------|------------|--------------------------------------------------------------|
//! | T1  | interrupt: set bit 0; pause: set bit 5 | Relaxed | T2 | nothing: the word carries no other data, it only needs to become visible |
//! | T7  | end: set bit 4         | Release | T6         | as T6                                                        |
//! | T4  | request a report: set bit 2 | Relaxed | T2    | as T1; the subject of the report is read under a lock          |

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use brolga_instances::Participant;

use super::{POLL_INTERRUPT, POLL_PAUSE, POLL_REPORT, Thread, Work};
use crate::heap::{POLL_END, Persistent};
use crate::instance::Runtime;
use crate::objects::{Dispatch, IsaCache};
use crate::retired::{Reporter, Retired};
use crate::trace::{TraceStack, Traces};
use crate::turn::Turn;
use crate::watch::EndFrame;

/// Stops compiled code that runs on one thread, from any other: at its next safepoint it throws
/// `InterruptException`. A request that arrives while the thread runs no compiled code has no effect.
#[derive(Clone)]
pub struct Interrupt {
    pub(super) thread: Arc<Thread>,
}

// SAFETY: through an `Interrupt` only the atomic poll word is accessed. Dropping the last one drops the
// `Thread`. Its fields that own something (`carried`: a `Persistent`) are `Send`, as is checked
// below, except for the mutator, which has left the heap's list: the list `ATTACHED`, which held the `Thread`
// until then, ensured that. Its other fields are words and addresses, which are not dereferenced.
unsafe impl Send for Interrupt {}
const _: () = {
    const fn goes_on_any_thread<T: Send>() {}
    goes_on_any_thread::<Participant<Retired>>();
    goes_on_any_thread::<Dispatch>();
    goes_on_any_thread::<Persistent>();
    goes_on_any_thread::<Traces>();
    goes_on_any_thread::<TraceStack>();
    goes_on_any_thread::<IsaCache>();
    goes_on_any_thread::<Weak<Runtime>>();
    goes_on_any_thread::<Work>();
    goes_on_any_thread::<Arc<EndFrame>>();
    goes_on_any_thread::<Arc<Turn>>();
};
// SAFETY: as above; `raise`, `end` and `ask_to_pause` are the only operations on a shared `Interrupt`.
unsafe impl Sync for Interrupt {}

impl Interrupt {
    /// Requests that the thread stop.
    pub fn raise(&self) {
        self.thread.poll.fetch_or(POLL_INTERRUPT, Ordering::Relaxed); // T1
    }

    /// Ends compiled code on the thread up to its entry, as long as the bit is set.
    pub(crate) fn end(&self) {
        self.thread.poll.fetch_or(POLL_END, Ordering::Release); // T7
    }

    /// Requests a guest on the thread to pause.
    pub(crate) fn ask_to_pause(&self) {
        self.thread.poll.fetch_or(POLL_PAUSE, Ordering::Relaxed); // T1
    }
}

/// The runtime's handle of a thread.
pub(super) struct WeakThread {
    pub(super) thread: Weak<Thread>,
}

// SAFETY: as for an `Interrupt`: only the thread's poll word and the participant's flag are accessed, both
// atomic.
unsafe impl Send for WeakThread {}

impl Reporter for WeakThread {
    fn is_alive(&self) -> bool {
        self.thread.strong_count() > 0
    }

    fn ask(&self) -> bool {
        let Some(thread) = self.thread.upgrade() else { return false };
        if thread.mutator.participant.is_awaited() {
            thread.poll.fetch_or(POLL_REPORT, Ordering::Relaxed); // T4
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::instance::RuntimeOptions;
    use crate::retired::RetiredCode;
    use crate::thread::with_attached;

    struct Nothing;

    impl RetiredCode for Nothing {
        fn contains_any(&self, _: &[usize]) -> bool {
            false
        }
    }

    /// Retiring code examines other threads while it is inside the heap; it must not wait for a collection on
    /// their behalf.
    #[test]
    fn threads_end_while_others_retire_code_and_collect() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let running = AtomicU32::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let short = || {
                            let runtime = runtime.clone();
                            let body = move || {
                                with_attached(&runtime, |thread| {
                                    let _entered = thread.enter();
                                    let _entry = thread.enter_own_heap(&runtime);
                                    thread.safepoint();
                                })
                            };
                            std::thread::spawn(body).join()
                        };
                        assert!(matches!(short(), Ok(Ok(()))));
                    }
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
            scope.spawn(|| {
                while running.load(Ordering::Relaxed) > 0 {
                    runtime.enter(|scope| scope.collect()).unwrap();
                }
            });
            while running.load(Ordering::Relaxed) > 0 {
                with_attached(&runtime, |thread| {
                    let _entered = thread.enter();
                    let _entry = thread.enter_own_heap(&runtime);
                    runtime.retire([Box::new(Nothing) as Box<dyn RetiredCode>]);
                    thread.safepoint();
                })
                .unwrap();
            }
        });
        runtime.free_retired();
        assert_eq!(runtime.retired(), 0);
    }
}
