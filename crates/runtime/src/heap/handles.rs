//! Handles: references of Rust code and finalizers that outlive a scope.
//!
//! | handle | keeps the object alive | effect of the object's death |
//! |---|---|---|
//! | [`Persistent`] | yes, until dropped | – |
//! | [`RootCell`] | yes, the object stored last | – |
//! | [`WeakHandle`] | no | it returns `None` |
//! | [`Finalizer::Visit`](super::Finalizer::Visit) | no | the object is resurrected for one call, which may keep it |
//! | [`Finalizer::Release`](super::Finalizer::Release) | no | the closure runs; it never sees the object |
//!
//! For all four, an object dies when it becomes unreachable; weak references are cleared before finalizers
//! run, so no code finds an object that is being finalized. Finalizers of objects that die in the same
//! collection run in reverse order of registration, after the collection, on the collecting thread. When the
//! heap is dropped, `Release` runs for every remaining object, and `Visit` does not, because no heap is left
//! to visit.
//!
//! Threads of the program may race on a cell:
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | C1  | store into a cell | Release | C2 | another thread would follow the reference to fields it cannot see yet |
//! | C2  | load from a cell | Acquire | C1 | as C1, from the other side |
//!
//! **Failures.** An exception or a panic of a finalizer has no handler, and the program continues. It is
//! counted, and its message is kept until it is taken
//! ([`Heap::take_finalizer_failures`](super::Heap::take_finalizer_failures)), at most the last
//! [`MAX_FAILURES`]. The message of a closure that panics when the heap is dropped is lost.
//!
//! Cost: a collection visits every handle and finalizer once.

use std::any::Any;
use std::collections::VecDeque;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::fence::fenced;

use super::object::Object;
use super::thread_cells::{Key, ThreadCells, ThreadTable};

/// The record kept for the death of an object: a [`Finalizer`](super::Finalizer), of which this file uses
/// only the kind.
pub(crate) enum AtDeath {
    /// The object is resurrected for a call of the closure, which `finalize.rs` defines.
    Visit(Box<dyn Any + Send>),
    /// Called without the object.
    Release(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for AtDeath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AtDeath::Visit(_) => "Visit",
            AtDeath::Release(_) => "Release",
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
///
/// ```
/// use brolga_runtime::{Runtime, RuntimeOptions};
/// let runtime = Runtime::new(RuntimeOptions::default());
/// let kept = runtime.enter(|scope| {
///     let text = scope.string(b"kept").unwrap();
///     scope.persistent(text.get(scope))
/// })?;
/// runtime.enter(|scope| {
///     scope.collect();
///     assert_eq!(scope.get_persistent(&kept).and_then(|text| text.text()), Some("kept"));
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Persistent(Handle);

/// A reference that does not keep its object alive.
///
/// ```
/// use brolga_runtime::{Runtime, RuntimeOptions};
/// let runtime = Runtime::new(RuntimeOptions::default());
/// let weak = runtime.enter(|scope| {
///     let text = scope.string(b"gone").unwrap();
///     scope.weak_handle(text.get(scope))
/// })?;
/// runtime.enter(|scope| {
///     scope.collect();
///     assert!(scope.get_weak(&weak).is_none());
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WeakHandle(Handle);

/// A word in memory that keeps its referent alive: a global variable of compiled code, which accesses it by
/// its address. It is a root of every collection, so storing into it needs no barrier.
///
/// The cell of a thread-local variable holds the value that threads begin with; each thread has a cell of its
/// own (`thread_cells.rs`).
#[derive(Debug)]
pub struct RootCell {
    word: Arc<CellWord>,
    of: SharedSlots,
    /// The cells of threads, of a thread-local variable.
    threads: Option<Arc<ThreadCells<Arc<CellWord>>>>,
}

/// The memory of a cell.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CellWord {
    /// First, because compiled code has its address.
    value: AtomicPtr<u8>,
    /// Of a thread-local variable.
    key: Option<Key>,
}

impl RootCell {
    /// The address of the word, valid as long as the cell.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.word).expose_provenance()
    }
}

impl Drop for RootCell {
    fn drop(&mut self) {
        if let (Some(threads), Some(key)) = (&self.threads, self.word.key) {
            threads.remove(key);
        }
    }
}

impl CellWord {
    fn new(key: Option<Key>) -> Arc<CellWord> {
        Arc::new(CellWord { value: AtomicPtr::new(null_mut()), key })
    }

    /// The cell at an address.
    ///
    /// # Safety
    ///
    /// It is the [address](RootCell::address) of a cell that is not dropped before the result.
    pub(crate) unsafe fn at<'a>(address: usize) -> &'a CellWord {
        // SAFETY: by the contract; the address is of the whole structure, whose provenance is exposed.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }

    /// Which thread-local variable it belongs to, if to any.
    #[inline]
    pub(crate) fn key(&self) -> Option<Key> {
        self.key
    }

    fn load(&self) -> Option<Object> {
        let object = NonNull::new(self.value.load(Ordering::Acquire)); // C2
        // SAFETY: compiled code and `store` store only references to objects of the heap, which the cell keeps
        // alive.
        object.map(|object| unsafe { Object::from_pointer(object) })
    }

    fn store(&self, object: Option<Object>) {
        let pointer = object.map_or(null_mut(), |object| object.pointer().as_ptr());
        self.value.store(pointer, Ordering::Release); // C1
    }
}

/// All handles of one heap.
#[derive(Default, Debug)]
pub(crate) struct Handles {
    persistent: SharedSlots,
    weak: SharedSlots,
    cells: Mutex<Vec<Weak<CellWord>>>,
    threads: Arc<ThreadCells<Arc<CellWord>>>,
    /// All `WeakRef` objects.
    weak_refs: Mutex<Vec<Object>>,
    queue: Mutex<Queue>,
    /// Messages of failed finalizers, the oldest first.
    failures: Mutex<VecDeque<String>>,
}

/// The maximum number of finalizer failures kept: enough for a diagnosis.
const MAX_FAILURES: usize = 64;

#[derive(Default, Debug)]
struct Queue {
    /// In the order of registration.
    waiting: Vec<(Object, AtDeath)>,
    /// Objects that died, in the order in which they will be visited.
    ready: VecDeque<(Object, Box<dyn Any + Send>)>,
    released: Vec<AtDeath>,
    /// Old objects that were stored into by threads that have ended or are blocked.
    remembered: Vec<Object>,
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

    /// An empty cell.
    pub(crate) fn cell(&self) -> RootCell {
        RootCell { word: self.word(None), of: self.persistent.clone(), threads: None }
    }

    /// An empty cell of a thread-local variable.
    pub(crate) fn thread_cell(&self) -> RootCell {
        let word = self.word(Some(self.threads.add()));
        RootCell { word, of: self.persistent.clone(), threads: Some(self.threads.clone()) }
    }

    /// The memory of a cell, which collections visit.
    fn word(&self, key: Option<Key>) -> Arc<CellWord> {
        let word = CellWord::new(key);
        let mut cells = lock(&self.cells);
        // Dropped cells leave the list when it is full, and the list then grows to twice their number: each
        // cell is visited a bounded number of times.
        if cells.len() == cells.capacity() {
            cells.retain(|cell| cell.strong_count() > 0);
            let live = cells.len();
            cells.reserve(live.max(8));
        }
        cells.push(Arc::downgrade(&word));
        word
    }

    /// The cells of threads.
    pub(crate) fn threads(&self) -> &ThreadCells<Arc<CellWord>> {
        &self.threads
    }

    /// The address of the cell of the running thread, which has this table and is inside the heap; of a cell
    /// that is not a thread-local variable's, its own. No safepoint.
    #[cold]
    pub(crate) fn cell_of_thread(&self, table: &ThreadTable, word: &CellWord) -> usize {
        let own = std::ptr::from_ref(word).expose_provenance();
        let Some(key) = word.key else { return own };
        if let Some(known) = table.find(key) {
            return known;
        }
        let cell = self.word(None);
        cell.store(word.load());
        let address = Arc::as_ptr(&cell).expose_provenance();
        // The variable exists, because its cell does.
        self.threads.insert(table, key, address, cell).unwrap_or(own)
    }

    /// The memory that holds the value of a cell in the running thread, which has this table.
    fn in_thread<'a>(&self, table: &ThreadTable, cell: &'a RootCell) -> &'a CellWord {
        if cell.threads.is_none() {
            return &cell.word;
        }
        // SAFETY: the thread's cell is dropped with `cell`, which is borrowed, or by the running thread when it
        // ends or stops using the heap, and so not before `'a` is over.
        unsafe { CellWord::at(self.cell_of_thread(table, &cell.word)) }
    }

    /// The value in the running thread, which has this table. `None` if the cell is empty or belongs to
    /// another heap.
    pub(crate) fn get_cell(&self, table: &ThreadTable, cell: &RootCell) -> Option<Object> {
        if Arc::ptr_eq(&cell.of, &self.persistent) { self.in_thread(table, cell).load() } else { None }
    }

    /// Whether the cell belongs to this heap and was set, in the running thread, which has this table.
    pub(crate) fn set_cell(&self, table: &ThreadTable, cell: &RootCell, object: Option<Object>) -> bool {
        let own = Arc::ptr_eq(&cell.of, &self.persistent);
        if own {
            self.in_thread(table, cell).store(object);
        }
        own
    }

    /// As `set_cell`; threads of a thread-local variable begin with the object, and those that have a value
    /// begin again.
    pub(crate) fn begin_cell(&self, cell: &RootCell, object: Option<Object>) -> bool {
        let own = Arc::ptr_eq(&cell.of, &self.persistent);
        if own {
            cell.word.store(object);
            if let Some(key) = cell.word.key {
                self.threads.each(key, |cell| cell.store(object));
            }
        }
        own
    }

    pub(crate) fn add_finalizer(&self, object: Object, finalizer: AtDeath) {
        lock(&self.queue).waiting.push((object, finalizer));
    }

    /// Roots: referents of persistent handles and cells, and objects that wait for their finalizer. Each is
    /// replaced by the result of `visit`: the same object at its current address. Only during a collection.
    pub(crate) fn each_root(&self, mut visit: impl FnMut(Object) -> Object) {
        lock(&self.persistent).slots.iter_mut().flatten().for_each(|object| *object = visit(*object));
        for word in lock(&self.cells).iter().filter_map(Weak::upgrade) {
            if let Some(object) = word.load() {
                let now = visit(object);
                if now != object {
                    word.store(Some(now));
                }
            }
        }
        lock(&self.queue).ready.iter_mut().for_each(|(object, _)| *object = visit(*object));
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

    /// Clears weak handles and `WeakRef`s to dead objects. `now` returns where an object is, if it is alive.
    pub(crate) fn clear_weak(&self, mut now: impl FnMut(Object) -> Option<Object>) {
        for slot in &mut lock(&self.weak).slots {
            *slot = slot.filter(|&object| now(object).is_some());
        }
        for &reference in lock(&self.weak_refs).iter() {
            let reference = now(reference).unwrap_or(reference);
            if reference.pointer_at(0).is_some_and(|object| now(object).is_none()) {
                reference.set_pointer_at(0, None);
            }
        }
    }

    /// Drops `WeakRef`s that are about to be freed.
    pub(crate) fn forget_weak_refs(&self, now: impl Fn(Object) -> Option<Object>) {
        lock(&self.weak_refs).retain_mut(|reference| match now(*reference) {
            Some(place) => {
                *reference = place;
                true
            }
            None => false,
        });
    }

    /// Updates everything that is not a root to objects' new addresses, after [`Handles::forget_weak_refs`].
    #[cfg(feature = "heap-mmtk")]
    pub(crate) fn moved(&self, mut moved: impl FnMut(Object) -> Object) {
        lock(&self.weak).slots.iter_mut().flatten().for_each(|object| *object = moved(*object));
        for reference in lock(&self.weak_refs).iter() {
            if let Some(object) = reference.pointer_at(0) {
                reference.set_pointer_at(0, Some(moved(object)));
            }
        }
        lock(&self.queue).waiting.iter_mut().for_each(|(object, _)| *object = moved(*object));
    }

    /// Moves the finalizers of dead objects to the ready list; returns the objects to be visited.
    pub(crate) fn find_dead(&self, is_alive: impl Fn(Object) -> bool) -> Vec<Object> {
        let mut queue = lock(&self.queue);
        let (waiting, dead): (Vec<_>, Vec<_>) =
            std::mem::take(&mut queue.waiting).into_iter().partition(|&(object, _)| is_alive(object));
        queue.waiting = waiting;
        let mut back = Vec::new();
        for (object, finalizer) in dead.into_iter().rev() {
            match finalizer {
                AtDeath::Visit(visit) => {
                    back.push(object);
                    queue.ready.push_back((object, visit));
                }
                release @ AtDeath::Release(_) => queue.released.push(release),
            }
        }
        back
    }

    /// The closures of objects that were freed.
    pub(crate) fn take_released(&self) -> Vec<AtDeath> {
        std::mem::take(&mut lock(&self.queue).released)
    }

    /// Removes the next visit from the queue. `root` is called before the object leaves it.
    pub(crate) fn take_ready<R>(&self, root: impl FnOnce(Object) -> R) -> Option<(R, Box<dyn Any + Send>)> {
        let mut queue = lock(&self.queue);
        let (object, visit) = queue.ready.pop_front()?;
        Some((root(object), visit))
    }

    /// Records the exception or panic of a finalizer.
    pub(crate) fn note_failure(&self, text: String) {
        let mut failures = lock(&self.failures);
        if failures.len() == MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back(text);
    }

    pub(crate) fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.failures)).into()
    }

    pub(crate) fn ready(&self) -> usize {
        let queue = lock(&self.queue);
        queue.ready.len() + queue.released.len()
    }
}

/// Runs closures of freed objects; returns the messages of those that panicked.
pub(crate) fn release(closures: Vec<AtDeath>) -> impl Iterator<Item = String> {
    let run = |finalizer| match finalizer {
        AtDeath::Release(run) => run(),
        // Captured values have destructors.
        AtDeath::Visit(visit) => drop(visit),
    };
    closures.into_iter().filter_map(move |finalizer| fenced(|| run(finalizer)).err())
}

impl Drop for Handles {
    fn drop(&mut self) {
        let queue = std::mem::take(&mut *lock(&self.queue));
        let waiting = queue.waiting.into_iter().rev().map(|(_, finalizer)| finalizer);
        release(queue.released.into_iter().chain(waiting).collect()).for_each(drop);
    }
}
