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
//! what is left over. No code runs between entering and leaving but the call: nothing unwinds out of it, so there is no guard.
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
