//! Finalizers: their kinds, and running them at the end of a collection.
//!
//! A finalizer that calls compiled code is subject to the limits of the call that triggered the collection.
//! When that call has ended, the remaining finalizers stay ready: they run at the end of the next collection.

use super::handles::{AtDeath, release};
use super::heap::Heap;
use super::mutator::Mutator;
use super::scope::{Obj, Root, Scope, with_frame};
use crate::exception::Exception;
use crate::fence::fenced;

/// What happens when an object has died.
pub enum Finalizer {
    /// Called with the object.
    Visit(VisitFn),
    /// Called without it; also when the heap is dropped. For memory and files owned by the object.
    Release(Box<dyn FnOnce() + Send>),
}

/// A call with an object that would have died.
pub type VisitFn = Box<dyn for<'f, 'h> FnOnce(&mut Scope<'f, 'h>, Root<'f, 'h>) + Send>;

impl Finalizer {
    /// A finalizer that is called with the object.
    pub fn visit(
        body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>, Root<'f, 'h>) + Send + 'static,
    ) -> Finalizer {
        Finalizer::Visit(Box::new(body))
    }

    /// A finalizer that is called without it.
    pub fn release(body: impl FnOnce() + Send + 'static) -> Finalizer {
        Finalizer::Release(Box::new(body))
    }
}

impl std::fmt::Debug for Finalizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Finalizer::Visit(_) => "Visit",
            Finalizer::Release(_) => "Release",
        })
    }
}

impl<'h> Scope<'_, 'h> {
    /// Registers a finalizer, which runs after the object has died.
    pub fn finalizer(&self, obj: Obj<'_, 'h>, finalizer: Finalizer) {
        let at_death = match finalizer {
            Finalizer::Visit(visit) => AtDeath::Visit(Box::new(visit)),
            Finalizer::Release(release) => AtDeath::Release(release),
        };
        self.heap.handles.add_finalizer(obj.object, at_death);
    }
}

impl Heap {
    /// Runs the finalizers that are ready.
    pub(super) fn run_finalizers(&self, mutator: &Mutator) {
        let mut failed = 0;
        let mut note = |text| {
            failed += 1;
            self.handles.note_failure(text);
        };
        release(self.handles.take_released()).for_each(&mut note);
        run_visits(self, mutator, note);
        if failed > 0 {
            self.backend.count_failed(failed);
        }
    }
}

/// Runs the finalizers that visit dead objects; `failed` receives their exceptions and panics. Finalizers
/// that become ready meanwhile also run, in the same loop and not nested. If a limited call has ended, the
/// others wait for the next collection.
fn run_visits(heap: &Heap, mutator: &Mutator, mut failed: impl FnMut(String)) {
    struct Back<'a>(&'a Mutator, bool);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            self.0.in_scope.set(self.1);
            self.0.finalizing.set(false);
        }
    }
    if mutator.finalizing.replace(true) {
        return;
    }
    let _back = Back(mutator, mutator.in_scope.replace(true));
    let depth = mutator.exceptions.depth();
    let one = || {
        with_frame(heap, mutator, |scope| {
            let (root, visit) = heap.handles.take_ready(|object| scope.add_root(object))?;
            // Only `Scope::finalizer` adds visits.
            let visit = visit.downcast::<VisitFn>().ok()?;
            let done = fenced(|| visit(scope, root));
            let thrown = mutator.exceptions.last_above(depth);
            let thrown = thrown.map(|pending| Exception::new(heap, pending).to_string());
            // There is no handler. Stale traces are overwritten by the next exception at the same depth.
            mutator.exceptions.truncate(depth);
            Some(done.err().or(thrown))
        })
    };
    while !heap.world.is_ending(mutator)
        && let Some(ended) = one()
    {
        ended.into_iter().for_each(&mut failed);
    }
}
