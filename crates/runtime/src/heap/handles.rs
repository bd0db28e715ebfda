//! What Rust code and finalizers keep in the heap beyond a scope.
//!
//! | handle | keeps the object alive | what happens when the object dies |
//! |---|---|---|
//! | [`Persistent`] | yes, until dropped | – |
//! | [`WeakHandle`] | no | it gives `None` |
//! | [`Finalizer::Visit`] | no | the object comes back for one call, which may keep it |
//! | [`Finalizer::Release`] | no | the closure runs; it never sees the object |
//!
//! An object dies, for all four, when nothing reaches it; weak references are cleared before finalizers run, so nobody finds an
//! object that is being finalized. Finalizers of objects that die in the same collection run in the reverse order of
//! registration, after the collection, on the thread that made it. When the heap is dropped, `Release` runs for every
//! object that is left, and `Visit` does not, because there is no heap any more to visit.
//!
//! Cost: a collection looks at every handle and finalizer once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::object::Object;
use super::scope::{Root, Scope};

/// What is done when an object has died.
pub enum Finalizer {
    /// Called with the object.
    Visit(VisitFn),
    /// Called without it; also when the heap is dropped. For memory and files that the object owned.
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

/// Slots with stable numbers.
#[derive(Default, Debug)]
struct Slots {
    slots: Vec<Option<Object>>,
    free: Vec<usize>,
}

impl Slots {
    fn add(&mut self, object: Object) -> usize {
        match self.free.pop() {
            Some(index) => {
                self.slots[index] = Some(object);
                index
            }
            None => {
                self.slots.push(Some(object));
                self.slots.len() - 1
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.slots[index] = None;
        self.free.push(index);
    }
}

type SharedSlots = Arc<Mutex<Slots>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A slot and its table.
#[derive(Debug)]
struct Handle {
    slots: SharedSlots,
    index: usize,
}

impl Handle {
    fn new(slots: &SharedSlots, object: Object) -> Handle {
        Handle { slots: slots.clone(), index: lock(slots).add(object) }
    }

    fn get(&self, of: &SharedSlots) -> Option<Object> {
        if !Arc::ptr_eq(&self.slots, of) {
            return None;
        }
        lock(&self.slots).slots[self.index]
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.slots).remove(self.index);
    }
}

/// A root that is not bound to a scope: it keeps an object alive until it is dropped, on any thread.
#[derive(Debug)]
pub struct Persistent(Handle);

/// A reference that does not keep its object alive.
#[derive(Debug)]
pub struct WeakHandle(Handle);

/// All handles of one heap.
#[derive(Default, Debug)]
pub(crate) struct Handles {
    persistent: SharedSlots,
    weak: SharedSlots,
    /// All `WeakRef` objects.
    weak_refs: Mutex<Vec<Object>>,
    queue: Mutex<Queue>,
}

#[derive(Default, Debug)]
struct Queue {
    /// In the order of registration.
    waiting: Vec<(Object, Finalizer)>,
    /// Objects that died, in the order in which they are to be visited.
    ready: VecDeque<(Object, VisitFnDebug)>,
    released: Vec<Finalizer>,
    /// Old objects that were stored into by threads that are gone, or that stand still.
    remembered: Vec<Object>,
}

/// A closure that can be shown.
struct VisitFnDebug(VisitFn);

impl std::fmt::Debug for VisitFnDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Visit")
    }
}

impl Handles {
    pub(crate) fn persistent(&self, object: Object) -> Persistent {
        Persistent(Handle::new(&self.persistent, object))
    }

    /// `None` if it belongs to another heap.
    pub(crate) fn get_persistent(&self, handle: &Persistent) -> Option<Object> {
        handle.0.get(&self.persistent)
    }

    pub(crate) fn weak(&self, object: Object) -> WeakHandle {
        WeakHandle(Handle::new(&self.weak, object))
    }

    /// `None` if the object has died, or the handle belongs to another heap.
    pub(crate) fn get_weak(&self, handle: &WeakHandle) -> Option<Object> {
        handle.0.get(&self.weak)
    }

    pub(crate) fn add_finalizer(&self, object: Object, finalizer: Finalizer) {
        lock(&self.queue).waiting.push((object, finalizer));
    }

    /// Roots: what persistent handles name, and objects that wait for their finalizer.
    pub(crate) fn each_root(&self, mut visit: impl FnMut(Object)) {
        lock(&self.persistent).slots.iter().flatten().for_each(|&object| visit(object));
        lock(&self.queue).ready.iter().for_each(|&(object, _)| visit(object));
    }

    /// Adds old objects that were stored into.
    pub(crate) fn keep_remembered(&self, mut objects: Vec<Object>) {
        lock(&self.queue).remembered.append(&mut objects);
    }

    pub(crate) fn take_remembered(&self) -> Vec<Object> {
        std::mem::take(&mut lock(&self.queue).remembered)
    }

    pub(crate) fn add_weak_ref(&self, reference: Object) {
        lock(&self.weak_refs).push(reference);
    }

    /// Clears weak handles and `WeakRef`s to what has died.
    pub(crate) fn clear_weak(&self, is_alive: impl Fn(Object) -> bool) {
        for slot in &mut lock(&self.weak).slots {
            *slot = slot.filter(|&object| is_alive(object));
        }
        for reference in lock(&self.weak_refs).iter() {
            if reference.pointer_at(0).is_some_and(|object| !is_alive(object)) {
                reference.set_pointer_at(0, None);
            }
        }
    }

    /// Forgets `WeakRef`s that are about to be freed.
    pub(crate) fn forget_weak_refs(&self, is_alive: impl Fn(Object) -> bool) {
        lock(&self.weak_refs).retain(|&reference| is_alive(reference));
    }

    /// Moves the finalizers of what has died to those that are ready; gives the objects that are to be visited.
    pub(crate) fn find_dead(&self, is_alive: impl Fn(Object) -> bool) -> Vec<Object> {
        let mut queue = lock(&self.queue);
        let (waiting, dead): (Vec<_>, Vec<_>) =
            std::mem::take(&mut queue.waiting).into_iter().partition(|&(object, _)| is_alive(object));
        queue.waiting = waiting;
        let mut back = Vec::new();
        for (object, finalizer) in dead.into_iter().rev() {
            match finalizer {
                Finalizer::Visit(visit) => {
                    back.push(object);
                    queue.ready.push_back((object, VisitFnDebug(visit)));
                }
                release @ Finalizer::Release(_) => queue.released.push(release),
            }
        }
        back
    }

    /// The closures of objects that were freed.
    pub(crate) fn take_released(&self) -> Vec<Finalizer> {
        std::mem::take(&mut lock(&self.queue).released)
    }

    /// Takes the next visit out of the queue. `root` is called before the object leaves it.
    pub(crate) fn take_ready<R>(&self, root: impl FnOnce(Object) -> R) -> Option<(R, VisitFn)> {
        let mut queue = lock(&self.queue);
        let (object, visit) = queue.ready.pop_front()?;
        Some((root(object), visit.0))
    }

    pub(crate) fn ready(&self) -> usize {
        let queue = lock(&self.queue);
        queue.ready.len() + queue.released.len()
    }
}

/// Runs closures of freed objects; how many panicked.
pub(crate) fn release(closures: Vec<Finalizer>) -> u64 {
    let failed = closures.into_iter().filter_map(|finalizer| match finalizer {
        Finalizer::Release(run) => catch_unwind(AssertUnwindSafe(run)).err(),
        Finalizer::Visit(_) => None,
    });
    failed.count() as u64
}

impl Drop for Handles {
    fn drop(&mut self) {
        let queue = std::mem::take(&mut *lock(&self.queue));
        release(queue.released);
        release(queue.waiting.into_iter().rev().map(|(_, finalizer)| finalizer).collect());
    }
}
