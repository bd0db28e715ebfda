//! The common entry of a call from Rust: the thread is outside of everything, and nobody asks it for anything.
//!
//! ```text
//!   outside ──enter_plainly──► heap entered, pinned, in the newest world ──leave──► outside
//!      │
//!      └─ anything else: inside already, a scope, a request in the poll word, another table, a new world ──► guards of `thread.rs`
//! ```
//!
//! An entry in general restores what it found, and a guard for each part remembers that. Outside of everything there is nothing to remember: leaving
//! writes constants. A [`PlainEntry`] is therefore one record of two words. [`PlainEntry::leave`] ends it by straight-line code; its destructor does the
//! same where a panic unwinds.
//!
//! **Invariants.** A thread for which [`Thread::is_idle`] holds is outside of the heap, unpinned, outside of all worlds, without GC frames, and handles
//! no exception; `leave` brings it back to that. The order is that of the guards: heap, pin, world; and back. A collection can delay the entry into the heap, so
//! the newest world is read behind it and behind the pin. If that is another world than the last call's, the entry is undone and refused.
//!
//! Cost: about 20 loads, 20 stores and three fences of [`Fences::light`](brolga_instances::Fences::light), no call.

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

use super::Thread;
use crate::exception::Exception;
use crate::heap::Heap;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::retired::free;

/// An outermost entry into compiled code: see the file's header.
#[must_use = "the thread leaves when this is dropped"]
pub struct PlainEntry<'t> {
    thread: &'t Thread,
    /// The heap that was entered. Code without objects enters none, on a thread that collections do not know.
    heap: Option<&'t Heap>,
}

impl Thread {
    /// Whether nothing runs or waits on this thread that an entry would have to respect.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        let mutator = &self.mutator;
        // Without branches between them: all are true at almost all calls.
        self.handler.get().is_null()
            & (self.poll.load(Ordering::Relaxed) == 0) // T3
            & (mutator.depth.get() == 0)
            & !mutator.inside.get()
            & !mutator.in_scope.get()
            & mutator.gc_stack().is_null()
            & (self.exception_depth() == 0)
            & !self.carried.carries()
            & !self.dispatch.is_in_world()
    }

    /// Enters the code of the thread's runtime, for one call: with methods, code that may handle objects, whose dynamic calls look there. `None` if the thread
    /// has to be entered by guards; then nothing has changed.
    ///
    /// `runtime` is the thread's.
    #[inline(always)]
    pub(super) fn enter_plainly<'t>(
        &'t self,
        runtime: &'t Runtime,
        methods: Option<&MethodTable>,
    ) -> Option<PlainEntry<'t>> {
        debug_assert!(std::ptr::eq(self.runtime.as_ptr(), runtime));
        let mutator = &self.mutator;
        let is_known = mutator.registered.get();
        if !self.is_idle() || (methods.is_some() && !is_known) || !mutator.participant.is_outside() {
            return None;
        }
        // Collections read the words of threads that they know, and compiled code writes them.
        let heap = is_known.then(|| runtime.heap());
        if let Some(heap) = heap {
            heap.enter_known(mutator);
            mutator.inside.set(true);
        }
        mutator.participant.enter();
        let entry = PlainEntry { thread: self, heap };
        if let Some(methods) = methods
            && !self.dispatch.enter_again(methods)
        {
            return entry.refuse();
        }
        Some(entry)
    }
}

impl<'t> PlainEntry<'t> {
    /// The thread, for trampolines.
    #[inline(always)]
    pub fn thread(&self) -> &'t Thread {
        self.thread
    }

    /// As [`Entered::carries`](super::Entered::carries).
    #[inline(always)]
    pub fn carries(&self) -> bool {
        self.thread.carried.carries()
    }

    /// As [`Entered::take_exception`](super::Entered::take_exception), and leaves.
    #[cold]
    pub fn take_exception(self) -> Exception {
        self.thread.take_exception(0)
    }

    /// Leaves.
    #[inline(always)]
    pub fn leave(self) {
        ManuallyDrop::new(self).end();
    }

    #[cold]
    fn refuse(self) -> Option<PlainEntry<'t>> {
        self.leave();
        None
    }

    /// Nothing in it panics before the thread is outside again.
    #[inline(always)]
    fn end(&self) {
        let (thread, mutator) = (self.thread, &self.thread.mutator);
        thread.dispatch.leave_all();
        mutator.participant.leave();
        if let Some(heap) = self.heap {
            if mutator.depth.get() != 1 {
                self.come_back(heap);
            }
            mutator.restore_gc_stack(std::ptr::null_mut());
            mutator.inside.set(false);
            heap.leave(mutator);
        }
        if thread.carried.carries() {
            thread.carried.stop();
        }
        if mutator.participant.is_awaited() {
            self.collect();
        }
    }

    /// Compiled code left the heap, and came back here by an exception before it came back to the heap.
    #[cold]
    fn come_back(&self, heap: &Heap) {
        let mutator = &self.thread.mutator;
        let paused = mutator.left.borrow().first().copied();
        mutator.left.borrow_mut().clear();
        if let Some(paused) = paused {
            heap.resume(mutator, paused);
        }
    }

    /// Frees code that waited for this thread.
    #[cold]
    fn collect(&self) {
        free(self.thread.mutator.participant.collect_if_awaited());
    }
}

impl Drop for PlainEntry<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::instance::RuntimeOptions;
    use crate::pending::{Detail, ExceptionKind};
    use crate::retired::RetiredCode;
    use crate::thread::{Interrupt, with_attached, with_plain_entry};

    fn plainly<R>(runtime: &Arc<Runtime>, body: impl FnOnce(PlainEntry<'_>) -> R) -> Option<R> {
        with_plain_entry(runtime, Some(runtime.methods()), body)
    }

    fn enters(runtime: &Arc<Runtime>) -> bool {
        plainly(runtime, |entry| entry.leave()).is_some()
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
        assert!(!enters(&runtime), "it is not attached");
        with_attached(&runtime, |_| assert!(!enters(&runtime), "collections do not know it")).unwrap();
        assert!(
            with_plain_entry(&runtime, None, |entry| entry.leave()).is_some(),
            "but there are no objects"
        );
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
        let enters_table = || with_plain_entry(&runtime, Some(&table), |entry| entry.leave()).is_some();
        assert!(enters(&runtime) && !enters_table());
        guarded(&runtime, &table);
        assert!(enters_table() && !enters(&runtime));
        with_attached(&runtime, |thread| assert!(thread.is_idle())).unwrap();
    }

    #[test]
    fn leaving_brings_the_thread_outside_of_everything() {
        let runtime = runtime();
        let is_idle = || {
            with_attached(&runtime, |thread| thread.is_idle() && thread.mutator.participant.is_outside())
                .unwrap()
        };
        plainly(&runtime, |entry| {
            assert!(entry.thread().mutator.inside.get() && entry.thread().dispatch.is_in_world());
            assert!(!is_idle() && !enters(&runtime));
            entry.leave();
        })
        .unwrap();
        assert!(is_idle());

        let panicked = catch_unwind(AssertUnwindSafe(|| plainly(&runtime, |_entry| panic!("within"))));
        assert!(panicked.is_err() && is_idle());

        let kind = plainly(&runtime, |entry| {
            entry.thread().throw(ExceptionKind::BoundsError, Detail::None);
            entry.thread().throw(ExceptionKind::DivideError, Detail::None);
            entry.take_exception().kind
        });
        assert_eq!(kind, Some(ExceptionKind::DivideError));
        assert!(is_idle());

        plainly(&runtime, |entry| {
            let mutator = &entry.thread().mutator;
            let paused = runtime.heap().pause(mutator);
            mutator.left.borrow_mut().push(paused);
            entry.leave();
        })
        .unwrap();
        assert!(is_idle() && enters(&runtime), "compiled code had left the heap");
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
        plainly(&runtime, |entry| {
            let code: crate::retired::Retired = Box::new(Counted(freed.clone()));
            runtime.graveyard().retire_all([code]);
            runtime.collect_retired();
            assert_eq!(freed.load(Ordering::SeqCst), 0);
            entry.leave();
            assert_eq!(freed.load(Ordering::SeqCst), 1);
        })
        .unwrap();
    }
}
