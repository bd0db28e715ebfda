//! The exception of a callback, carried across C frames until C returns (`callback.rs`).
//!
//! ```text
//!   activation A │ handler a ──► C ──► callback threw: pending for `a`        further callbacks under `a` are not run
//!                │ handler a ──► C returned; code asks ──► rethrown           code does not ask ──► rethrown when A is left
//!     activation B, entered from A: nothing is pending in it; when it is left, what was pending in A is so again
//! ```
//!
//! An exception is pending for a handler: the innermost one where compiled code called C, which is the
//! current one whenever C calls back. A handler is identified by its address on the stack, and sooner or
//! later another activation has a handler at the same address. A pending exception therefore belongs to one
//! *activation*, an entry into compiled code or into a function of the host: its entry saves the exceptions
//! of the outer one until it ends, and checks for leftovers of its own before.
//!
//! The exception itself is on the thread's stack of exceptions, which collections scan while the thread is in
//! the heap. Code without objects may call C outside the heap: there a handle keeps the object alive. Code
//! that does not ask may pop the exception together with others: because it has handled an earlier one, or
//! because it throws itself. Then nothing is pending any more.

use std::cell::Cell;
use std::ptr;

use crate::frames::HandlerRecord;
use crate::heap::Persistent;

/// The pending exception of the innermost activation of a thread.
pub(crate) struct Carried {
    /// The handler that it is pending for; null if nothing is pending. It is compared but never dereferenced.
    handler: Cell<*mut HandlerRecord>,
    /// Its index among the exceptions.
    at: Cell<usize>,
    /// Its root while the thread is outside the heap.
    kept: Cell<Option<Persistent>>,
}

impl Carried {
    pub(crate) const fn nothing() -> Carried {
        Carried { handler: Cell::new(ptr::null_mut()), at: Cell::new(0), kept: Cell::new(None) }
    }

    /// Begins an activation.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Activation<'_> {
        Activation {
            carried: self,
            handler: self.handler.replace(ptr::null_mut()),
            at: self.at.get(),
            kept: self.kept.take(),
        }
    }

    /// Makes the exception at an index pending for a handler, which is not null.
    #[inline(always)]
    pub(crate) fn wait(&self, handler: *mut HandlerRecord, at: usize, kept: Option<Persistent>) {
        self.handler.set(handler);
        self.at.set(at);
        self.kept.replace(kept);
    }

    /// Passes the root of the exception at an index to `look`, if it is pending outside the heap.
    pub(crate) fn look_at_kept<R>(&self, at: usize, look: impl FnOnce(&Persistent) -> R) -> Option<R> {
        // Nothing else reads it meanwhile: `look` only calls the heap.
        let kept = self.kept.take();
        let seen = kept.as_ref().filter(|_| self.at.get() == at).map(look);
        self.kept.set(kept);
        seen
    }

    /// Whether an exception is pending in the innermost activation.
    #[inline(always)]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.handler.get().is_null()
    }

    /// Whether one is pending for a handler, which is not null.
    pub(crate) fn waits_for(&self, handler: *mut HandlerRecord) -> bool {
        self.handler.get() == handler
    }

    /// Nothing is pending any more.
    pub(crate) fn stop(&self) {
        self.handler.set(ptr::null_mut());
        self.kept.take();
    }

    /// Called when the exceptions from an index on have been popped.
    pub(crate) fn taken_off(&self, from: usize) {
        if self.at.get() >= from {
            self.stop();
        }
    }
}

/// An activation, until it is dropped.
pub(crate) struct Activation<'t> {
    carried: &'t Carried,
    /// The handler for which exceptions of outer activations are pending.
    handler: *mut HandlerRecord,
    at: usize,
    kept: Option<Persistent>,
}

impl Activation<'_> {
    /// Whether an exception is pending in it.
    pub(crate) fn carries(&self) -> bool {
        self.carried.is_waiting()
    }
}

impl Drop for Activation<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.carried.wait(self.handler, self.at, self.kept.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_of_an_outer_activation_waits_again() {
        let carried = Carried::nothing();
        let (one, two) = (ptr::without_provenance_mut(32), ptr::without_provenance_mut(64));
        let outer = carried.begin();
        carried.wait(one, 3, None);
        {
            let inner = carried.begin();
            assert!(!inner.carries() && !carried.waits_for(one));
            carried.wait(one, 4, None);
            assert!(inner.carries());
            carried.taken_off(5);
            assert!(inner.carries(), "it lies further down");
            carried.taken_off(4);
            assert!(!inner.carries());
            carried.wait(two, 4, None);
        }
        assert!(outer.carries() && carried.waits_for(one) && !carried.waits_for(two));
        drop(outer);
        assert!(!carried.waits_for(one));
    }
}
