//! The outermost entry of a thread: into the heap, into compiled code, and into the newest world, in one
//! step.
//!
//! Entries nest, so each restores the previous state: [`Thread::enter_heap`], [`Thread::enter`] and
//! [`Thread::enter_world`] are guards that save it. Most calls from Rust begin on a thread *at rest*, which
//! is in none of the three. Then there is nothing to save: leaving the entry stores constants.
//!
//! ```text
//!   at rest: no handler, outside the heap and all worlds, no exception       else: the three guards
//!      │ enter_with_methods, enter_without_methods
//!      ▼
//!   in the heap ── pinned ── in the newest world ──► compiled code ──► leave                  it has returned
//!                                                                └──► leave_with_exception    it has thrown
//! ```
//!
//! **Invariants.** Without a handler no exception is pending for C (`carried.rs`), no region is left by
//! `brolga_gc_leave`, and no scope is in use outside the heap. Compiled code that returns has unlinked its
//! frames; code that throws has not, so only the second exit checks for linked frames. A program may leave
//! the heap and return: both exits enter it again. Only the call runs between entering and leaving, and
//! nothing unwinds out of it, so there is no guard.
//!
//! Nothing is called between the first test and compiled code: the guards handle the cases that need a call,
//! such as waiting for a collection. So few registers have to be saved.
//!
//! Cost: about thirty loads and stores, all in cache lines of the thread except the newest world. The guards take three times as long.

use std::sync::Arc;

use super::Thread;
use super::attached::with_last;
use crate::exception::Exception;
use crate::heap::Heap;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::retired::free;

/// A thread that was at rest and may now run compiled code, until [`Outermost::leave`] or
/// [`Outermost::leave_with_exception`].
#[must_use = "the thread leaves by `leave` or `leave_with_exception`"]
pub struct Outermost<'t> {
    thread: &'t Thread,
    heap: &'t Heap,
    /// Whether it has entered the heap.
    is_in_heap: bool,
    /// Whether it is in a world.
    is_in_world: bool,
}

/// Calls `body` with the running thread, if the code it last ran belongs to this runtime.
#[inline(always)]
pub fn with_entrant<R>(runtime: &Arc<Runtime>, body: impl FnOnce(Entrant<'_>) -> R) -> Option<R> {
    with_last(runtime, |thread| body(Entrant { thread, runtime }))
}

/// The running thread, and the runtime that it belongs to.
#[derive(Clone, Copy)]
pub struct Entrant<'t> {
    thread: &'t Thread,
    runtime: &'t Runtime,
}

impl<'t> Entrant<'t> {
    /// Enters everything that compiled code needs, if the thread is at rest and last used these methods, and
    /// no collection is pending; otherwise nothing is entered.
    #[inline(always)]
    pub fn enter_with_methods(self, methods: &MethodTable) -> Option<Outermost<'t>> {
        let Entrant { thread, runtime } = self;
        // Collections read the words of threads that have been in the heap, and compiled code writes them.
        if !(thread.mutator.registered.get() && thread.is_at_rest() && thread.dispatch.may_begin(methods)) {
            return None;
        }
        let heap = thread.enter_heap_outermost(runtime)?;
        thread.mutator.participant.enter_outermost();
        thread.dispatch.begin(methods);
        Some(Outermost { thread, heap, is_in_heap: true, is_in_world: true })
    }

    /// Like [`Entrant::enter_with_methods`], for code without objects, which makes no dynamic calls and is in
    /// no world. A thread registered with collections enters the heap.
    #[inline(always)]
    pub fn enter_without_methods(self) -> Option<Outermost<'t>> {
        let Entrant { thread, runtime } = self;
        if !thread.is_at_rest() {
            return None;
        }
        let is_in_heap = thread.mutator.registered.get();
        let heap = if is_in_heap { thread.enter_heap_outermost(runtime)? } else { runtime.heap() };
        thread.mutator.participant.enter_outermost();
        Some(Outermost { thread, heap, is_in_heap, is_in_world: false })
    }
}

impl Thread {
    /// Whether the thread is at rest, except that it may be in a world.
    #[inline(always)]
    fn is_at_rest(&self) -> bool {
        let mutator = &self.mutator;
        self.handler.get().is_null()
            && !mutator.inside.get()
            && !mutator.participant.is_inside()
            && self.exception_depth() == 0
            && !self.is_asked_to_stop()
    }

    #[inline(always)]
    fn enter_heap_outermost<'t>(&self, runtime: &'t Runtime) -> Option<&'t Heap> {
        debug_assert!(std::ptr::eq(self.runtime.as_ptr(), runtime));
        let mutator = &self.mutator;
        debug_assert!(
            !mutator.in_scope.get() && mutator.left.borrow().is_empty() && !self.carried.is_waiting()
        );
        let heap = runtime.heap();
        if !heap.enter_outermost(mutator) {
            return None;
        }
        mutator.inside.set(true);
        Some(heap)
    }
}

impl<'t> Outermost<'t> {
    /// The thread.
    #[inline(always)]
    pub fn thread(&self) -> &'t Thread {
        self.thread
    }

    /// Whether an exception left by a callback is pending although compiled code has returned.
    #[inline(always)]
    pub fn carries(&self) -> bool {
        self.thread.carried.is_waiting()
    }

    /// Leaves after compiled code has returned.
    #[inline(always)]
    pub fn leave(self) {
        let Outermost { thread, heap, is_in_heap, is_in_world } = self;
        let mutator = &thread.mutator;
        if is_in_world {
            thread.dispatch.end();
        }
        mutator.participant.leave_outermost();
        if mutator.participant.is_awaited() {
            free_awaited(thread);
        }
        if is_in_heap {
            // The code has left the heap, and returned without entering it again.
            if mutator.depth.get() != 1 {
                thread.come_back(heap, 0);
            }
            mutator.inside.set(false);
            heap.leave_outermost(mutator);
        }
    }

    /// Leaves after an exception has left compiled code, or is pending: pops and returns it.
    #[inline(always)]
    pub fn leave_with_exception(self) -> Exception {
        let Outermost { thread, heap, is_in_heap, is_in_world } = self;
        // In registers, so that a call that returns keeps nothing in memory.
        leave_thrown(thread, heap, is_in_heap, is_in_world)
    }
}

#[cold]
#[inline(never)]
fn leave_thrown(thread: &Thread, heap: &Heap, is_in_heap: bool, is_in_world: bool) -> Exception {
    /// Leaves even if taking the exception panics.
    struct Leaving<'t>(Option<Outermost<'t>>);
    impl Drop for Leaving<'_> {
        fn drop(&mut self) {
            if let Some(entry) = self.0.take() {
                entry.thread.come_back(entry.heap, 0);
                entry.thread.mutator.restore_gc_stack(std::ptr::null_mut());
                entry.leave();
            }
        }
    }
    let _leaving = Leaving(Some(Outermost { thread, heap, is_in_heap, is_in_world }));
    let exception = thread.take_exception(0);
    thread.carried.stop();
    exception
}

#[cold]
#[inline(never)]
fn free_awaited(thread: &Thread) {
    free(thread.mutator.participant.collect_if_awaited());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::instance::RuntimeOptions;
    use crate::pending::{Detail, ExceptionKind};
    use crate::retired::RetiredCode;
    use crate::thread::{Interrupt, with_attached};

    fn outermost<R>(runtime: &Arc<Runtime>, body: impl FnOnce(Option<Outermost<'_>>) -> R) -> R {
        with_attached(runtime, |_| ()).unwrap();
        with_entrant(runtime, |entrant| body(entrant.enter_with_methods(runtime.methods()))).unwrap()
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
        let without = with_entrant(&runtime, |entrant| entrant.enter_without_methods().map(Outermost::leave));
        assert!(without.unwrap().is_some(), "but there are no objects");
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
            with_entrant(&runtime, |entrant| {
                entrant.enter_with_methods(&table).map(Outermost::leave).is_some()
            })
            .unwrap()
        };
        assert!(enters(&runtime) && !enters_table());
        guarded(&runtime, &table);
        assert!(enters_table() && !enters(&runtime));
    }

    #[test]
    fn each_runtime_has_a_thread_to_enter() {
        let (one, other) = (runtime(), runtime());
        outermost(&one, |entry| {
            let of_one = std::ptr::from_ref(entry.as_ref().unwrap().thread);
            outermost(&other, |inner| {
                let inner = inner.unwrap();
                assert!(!std::ptr::eq(of_one, inner.thread) && std::ptr::eq(inner.heap, other.heap()));
                inner.leave();
            });
            entry.unwrap().leave();
        });
    }

    #[test]
    fn a_table_that_another_one_has_stood_for_is_entered_by_guards_first() {
        let runtime = runtime();
        let inner = runtime.method_table();
        with_attached(&runtime, |thread| {
            let _entered = thread.enter();
            let _world = thread.enter_world(runtime.methods());
            let _inner = thread.enter_world(&inner);
        })
        .unwrap();
        let enters_inner = with_entrant(&runtime, |entrant| {
            entrant.enter_with_methods(&inner).map(Outermost::leave).is_some()
        });
        assert!(!enters_inner.unwrap() && !enters(&runtime));
        guarded(&runtime, runtime.methods());
        assert!(enters(&runtime));
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
            runtime.retire_list().retire_all([code]);
            runtime.collect_retired();
            assert_eq!(freed.load(Ordering::SeqCst), 0);
            entry.unwrap().leave();
            assert_eq!(freed.load(Ordering::SeqCst), 1);
        });
    }
}
