//! The outermost entry of a thread: into the heap, into compiled code, and into the newest world, at once.
//!
//! Entries nest, so each restores what it found: [`Thread::enter_heap`], [`Thread::enter`] and [`Thread::enter_world`] are guards that remember it. Most calls
//! from Rust begin on a thread *at rest*, which is in none of the three. Then there is nothing to remember: the entry is left to constants.
//!
//! ```text
//!   at rest: no handler, outside of the heap and of all worlds, no exception       else: the three guards
//!      │ enter_outermost
//!      ▼
//!   in the heap ── pinned ── in the newest world ──► compiled code ──► leave                  it has returned
//!                                                                └──► leave_with_exception    it has thrown
//! ```
//!
//! **Invariants.** Without a handler nothing waits for C (`carried.rs`), no region is left by `brolga_gc_leave`, and no scope is in use outside of
//! the heap. Compiled code that returns has unlinked its frames; one that throws has not, so only the second way out looks for
//! frames that are left over. A program may leave the heap and return: both ways out come back to it. No code runs between entering and leaving but the call: nothing unwinds out of it, so there is no guard.
//!
//! Cost: about thirty loads and stores, all in lines that belong to the thread but the newest world. The guards take three times as long.

use super::Thread;
use crate::exception::Exception;
use crate::heap::Heap;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::retired::free;

/// A thread that was at rest and may run compiled code now, until [`Outermost::leave`] or [`Outermost::leave_with_exception`].
#[must_use = "the thread leaves by `leave` or `leave_with_exception`"]
pub struct Outermost<'t> {
    thread: &'t Thread,
    heap: &'t Heap,
    /// Whether it has entered the heap.
    is_in_heap: bool,
}

impl Thread {
    /// Enters everything that compiled code needs, if the thread is at rest and is to run code of its own runtime; otherwise nothing is entered. Without `methods` the
    /// code makes no dynamic calls, and is in no world.
    #[inline(always)]
    pub fn enter_outermost<'t>(
        &'t self,
        runtime: &'t Runtime,
        methods: Option<&MethodTable>,
    ) -> Option<Outermost<'t>> {
        let mutator = &self.mutator;
        // Collections read the words of threads that have been in the heap, and compiled code writes them.
        let is_in_heap = mutator.registered.get();
        let is_at_rest = self.handler.get().is_null()
            && (is_in_heap || methods.is_none())
            && !mutator.inside.get()
            && !mutator.participant.is_inside()
            && self.exception_depth() == 0
            && !self.is_asked_to_stop()
            && methods.is_none_or(|methods| self.dispatch.may_begin(methods))
            && std::ptr::eq(self.runtime.as_ptr(), runtime);
        if !is_at_rest {
            return None;
        }
        debug_assert!(
            !mutator.in_scope.get() && mutator.left.borrow().is_empty() && !self.carried.is_waiting()
        );
        let heap = runtime.heap();
        if is_in_heap {
            heap.enter_outermost(mutator);
            mutator.inside.set(true);
        }
        mutator.participant.enter_outermost();
        if let Some(methods) = methods {
            self.dispatch.begin(methods);
        }
        Some(Outermost { thread: self, heap, is_in_heap })
    }
}

impl<'t> Outermost<'t> {
    /// Whether an exception that a callback left is pending though compiled code has returned.
    #[inline(always)]
    pub fn carries(&self) -> bool {
        self.thread.carried.is_waiting()
    }

    /// Compiled code has returned.
    #[inline(always)]
    pub fn leave(self) {
        let Outermost { thread, heap, is_in_heap } = self;
        let mutator = &thread.mutator;
        thread.dispatch.end();
        mutator.participant.leave_outermost();
        if mutator.participant.is_awaited() {
            free_awaited(thread);
        }
        if is_in_heap {
            // The code has left the heap, and returned without coming back.
            if mutator.depth.get() != 1 {
                thread.come_back(heap, 0);
            }
            mutator.inside.set(false);
            heap.leave_outermost(mutator);
        }
    }

    /// An exception has left compiled code, or is pending: the exception, taken off.
    #[cold]
    #[inline(never)]
    pub fn leave_with_exception(self) -> Exception {
        /// Leaves also if taking the exception panics.
        struct Leaving<'t>(&'t Thread, &'t Heap, bool);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                let Leaving(thread, heap, is_in_heap) = *self;
                thread.come_back(heap, 0);
                thread.mutator.restore_gc_stack(std::ptr::null_mut());
                Outermost { thread, heap, is_in_heap }.leave();
            }
        }
        let leaving = Leaving(self.thread, self.heap, self.is_in_heap);
        let exception = leaving.0.take_exception(0);
        leaving.0.carried.stop();
        exception
    }
}

#[cold]
#[inline(never)]
fn free_awaited(thread: &Thread) {
    free(thread.mutator.participant.collect_if_awaited());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::instance::RuntimeOptions;
    use crate::pending::{Detail, ExceptionKind};
    use crate::retired::RetiredCode;
    use crate::thread::{Interrupt, with_attached};

    fn outermost<R>(runtime: &Arc<Runtime>, body: impl FnOnce(Option<Outermost<'_>>) -> R) -> R {
        with_attached(runtime, |thread| body(thread.enter_outermost(runtime, Some(runtime.methods()))))
            .unwrap()
    }

    fn enters(runtime: &Arc<Runtime>) -> bool {
        outermost(runtime, |entry| entry.map(Outermost::leave).is_some())
    }

    /// An entry by guards.
    fn guarded(runtime: &Arc<Runtime>, methods: &MethodTable) {
        with_attached(runtime, |thread| {
            let _heap = thread.enter_heap(runtime).unwrap();
            let _entered = thread.enter();
            let _world = thread.enter_world(methods);
        })
        .unwrap();
    }

    fn runtime() -> Arc<Runtime> {
        let runtime = Runtime::new(RuntimeOptions::default());
        guarded(&runtime, runtime.methods());
        runtime
    }

    #[test]
    fn a_thread_that_is_inside_of_anything_is_refused() {
        let runtime = Runtime::new(RuntimeOptions::default());
        assert!(!enters(&runtime), "collections do not know it");
        with_attached(&runtime, |thread| {
            assert!(
                thread.enter_outermost(&runtime, None).map(Outermost::leave).is_some(),
                "but there are no objects"
            );
        })
        .unwrap();
        guarded(&runtime, runtime.methods());
        assert!(enters(&runtime));
        with_attached(&runtime, |thread| {
            let heap = thread.enter_heap(&runtime).unwrap();
            assert!(!enters(&runtime), "inside the heap");
            drop(heap);
            let entered = thread.enter();
            assert!(!enters(&runtime), "pinned");
            drop(entered);
            let world = thread.enter_world(runtime.methods());
            assert!(!enters(&runtime), "in a world");
            drop(world);
            thread.throw(ExceptionKind::DivideError, Detail::None);
            assert!(!enters(&runtime), "an exception is handled");
            thread.pop_exceptions(0);
            assert!(enters(&runtime));
        })
        .unwrap();
        runtime.enter(|_| assert!(!enters(&runtime), "in a scope")).unwrap();
        Interrupt::for_current(&runtime).unwrap().raise();
        assert!(!enters(&runtime), "a request waits, which an entry makes void");
        guarded(&runtime, runtime.methods());
        assert!(enters(&runtime));
    }

    #[test]
    fn another_table_is_entered_by_guards_first() {
        let runtime = runtime();
        let table = runtime.method_table();
        let enters_table = || {
            with_attached(&runtime, |thread| {
                thread.enter_outermost(&runtime, Some(&table)).map(Outermost::leave).is_some()
            })
            .unwrap()
        };
        assert!(enters(&runtime) && !enters_table());
        guarded(&runtime, &table);
        assert!(enters_table() && !enters(&runtime));
    }

    #[test]
    fn a_thread_is_entered_for_its_own_runtime_only() {
        let (one, other) = (runtime(), runtime());
        with_attached(&one, |thread| {
            assert!(thread.enter_outermost(&other, None).is_none());
        })
        .unwrap();
    }

    #[test]
    fn leaving_brings_the_thread_to_rest() {
        let runtime = runtime();
        outermost(&runtime, |entry| {
            let entry = entry.unwrap();
            assert!(entry.thread.mutator.inside.get() && entry.thread.dispatch.is_in_world());
            assert!(!enters(&runtime));
            entry.leave();
        });
        assert!(enters(&runtime));
        let kind = outermost(&runtime, |entry| {
            let entry = entry.unwrap();
            entry.thread.throw(ExceptionKind::BoundsError, Detail::None);
            entry.thread.throw(ExceptionKind::DivideError, Detail::None);
            entry.leave_with_exception().kind
        });
        assert_eq!(kind, ExceptionKind::DivideError);
        assert!(enters(&runtime));
    }

    #[test]
    fn code_that_left_the_heap_and_returned_is_brought_back_first() {
        let runtime = runtime();
        outermost(&runtime, |entry| {
            let entry = entry.unwrap();
            let mutator = &entry.thread.mutator;
            mutator.left.borrow_mut().push(runtime.heap().pause(mutator));
            entry.leave();
            assert!(mutator.left.borrow().is_empty() && mutator.depth.get() == 0);
        });
        assert!(enters(&runtime));
    }

    #[test]
    fn code_that_is_retired_meanwhile_waits_for_the_entry() {
        struct Counted(Arc<AtomicUsize>);
        impl RetiredCode for Counted {
            fn contains_any(&self, _: &[usize]) -> bool {
                true
            }
        }
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let runtime = runtime();
        let freed = Arc::new(AtomicUsize::new(0));
        outermost(&runtime, |entry| {
            let code: crate::retired::Retired = Box::new(Counted(freed.clone()));
            runtime.graveyard().retire_all([code]);
            runtime.collect_retired();
            assert_eq!(freed.load(Ordering::SeqCst), 0);
            entry.unwrap().leave();
            assert_eq!(freed.load(Ordering::SeqCst), 1);
        });
    }
}
