//! Thread-local variables: a cell for each thread that uses one.
//!
//! ```text
//!   compiled code ── address ──► cell of the variable: the first value, and its key (slot, number)
//!                                    │
//!   table of a thread: slot ──► (number, address of the thread's cell) ──► the thread's value
//!                                                                               ▲
//!   ThreadCells of the heap: slot ──► (number, owned cells by thread) ──────────┘
//! ```
//!
//! The cell of a thread is memory like any cell's (`handles.rs`, whose type `C` is here), so collections find
//! it, and stores need no barrier. It is made at the thread's first use, with the value that the variable's cell
//! has then, and is dropped with the variable or at the end of the thread, whichever comes first.
//!
//! **Keys.** Slots are used again, numbers never are. So the row of a variable that no longer exists is not
//! mistaken for the row of its successor: its number differs. Rows hold addresses, and own nothing.
//!
//! **T1.** The address in a row with the number of a variable that exists is the address of a cell that
//! exists: both are made by the thread, and `forget` removes both, on the thread.
//!
//! Cost: a look-up reads one row, without a lock. The lock is taken at the first use of a variable in a
//! thread, at the end of a thread that has used any, and when a variable is dropped.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// Which thread-local variable a cell belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    slot: usize,
    number: NonZeroU64,
}

/// The cells of one thread, by slot.
#[derive(Default, Debug)]
pub(crate) struct ThreadTable {
    /// The number of the variable, and the address of the thread's cell.
    rows: RefCell<Vec<Option<(NonZeroU64, usize)>>>,
}

impl ThreadTable {
    /// The address of the thread's cell of a variable that exists; `None` before its first use.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<usize> {
        match self.rows.borrow().get(key.slot) {
            Some(&Some((number, cell))) if number == key.number => Some(cell),
            _ => None,
        }
    }

    fn set(&self, key: Key, cell: usize) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() <= key.slot {
            rows.resize(key.slot + 1, None);
        }
        rows[key.slot] = Some((key.number, cell));
    }

    /// Identifies the thread while it is attached.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The cells of all threads of one heap.
#[derive(Debug)]
pub(crate) struct ThreadCells<C> {
    slots: Mutex<Slots<C>>,
}

#[derive(Debug)]
struct Slots<C> {
    slots: Vec<Option<Slot<C>>>,
    free: Vec<usize>,
    /// The number of variables so far.
    made: u64,
}

/// A variable that exists.
#[derive(Debug)]
struct Slot<C> {
    number: NonZeroU64,
    /// By thread.
    cells: FxHashMap<usize, C>,
}

impl<C> Default for ThreadCells<C> {
    fn default() -> Self {
        ThreadCells { slots: Mutex::new(Slots { slots: Vec::new(), free: Vec::new(), made: 0 }) }
    }
}

impl<C> ThreadCells<C> {
    fn lock(&self) -> MutexGuard<'_, Slots<C>> {
        // Nothing that can panic happens under this lock.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a new variable.
    pub(crate) fn add(&self) -> Key {
        let mut all = self.lock();
        let number = NonZeroU64::MIN.saturating_add(all.made);
        all.made += 1;
        let new = Slot { number, cells: FxHashMap::default() };
        let slot = match all.free.pop() {
            Some(slot) => {
                all.slots[slot] = Some(new);
                slot
            }
            None => {
                all.slots.push(Some(new));
                all.slots.len() - 1
            }
        };
        Key { slot, number }
    }

    /// Drops the cells of a variable that is dropped.
    pub(crate) fn remove(&self, key: Key) {
        let mut all = self.lock();
        all.slots[key.slot] = None;
        all.free.push(key.slot);
    }

    /// Makes `cell`, which is at this address, the cell of the thread with this table; returns the address.
    /// `None` if there is no such variable.
    pub(crate) fn insert(&self, table: &ThreadTable, key: Key, address: usize, cell: C) -> Option<usize> {
        let mut all = self.lock();
        let slot = all.slots.get_mut(key.slot)?.as_mut().filter(|slot| slot.number == key.number)?;
        slot.cells.insert(table.identity(), cell);
        table.set(key, address);
        Some(address)
    }

    /// Calls `body` with each thread's cell of a variable.
    pub(crate) fn each(&self, key: Key, body: impl FnMut(&C)) {
        let all = self.lock();
        let slot = all.slots.get(key.slot).and_then(Option::as_ref).filter(|slot| slot.number == key.number);
        slot.iter().flat_map(|slot| slot.cells.values()).for_each(body);
    }

    /// Drops the cells of the thread with this table, which is the running one. It has no frames of compiled
    /// code.
    pub(crate) fn forget(&self, table: &ThreadTable) {
        let rows = table.rows.take();
        if rows.is_empty() {
            return;
        }
        let mut all = self.lock();
        for (slot, row) in all.slots.iter_mut().zip(rows) {
            if let (Some(slot), Some((number, _))) = (slot, row)
                && slot.number == number
            {
                slot.cells.remove(&table.identity());
            }
        }
    }

    /// The numbers of variables and of cells.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let all = self.lock();
        let slots = all.slots.iter().flatten();
        slots.fold((0, 0), |(variables, cells), slot| (variables + 1, cells + slot.cells.len()))
    }
}

#[cfg(test)]
mod tests {
    use crate::heap::{RootCell, Scope};
    use crate::instance::{Runtime, RuntimeOptions};
    use std::sync::Arc;

    /// The text in a cell of the running thread.
    fn text(runtime: &Arc<Runtime>, cell: &RootCell) -> Option<String> {
        runtime.enter(|scope| Some(scope.get_cell(cell)?.text()?.to_owned())).unwrap()
    }

    fn set(runtime: &Arc<Runtime>, cell: &RootCell, text: &str) {
        let set = |scope: &mut Scope<'_, '_>| {
            let text = scope.string(text.as_bytes()).unwrap();
            scope.set_cell(cell, Some(text.get(scope)))
        };
        assert!(runtime.enter(set).unwrap());
    }

    fn begin(runtime: &Arc<Runtime>, cell: &RootCell, text: &str) {
        let set = |scope: &mut Scope<'_, '_>| {
            let text = scope.string(text.as_bytes()).unwrap();
            scope.begin_cell(cell, Some(text.get(scope)))
        };
        assert!(runtime.enter(set).unwrap());
    }

    #[test]
    fn threads_have_values_of_their_own_which_end_with_them() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let cell = runtime.heap().thread_cell();
        begin(&runtime, &cell, "first");
        set(&runtime, &cell, "mine");
        for at in 0..100 {
            let in_thread = || {
                assert_eq!(text(&runtime, &cell).as_deref(), Some("first"));
                set(&runtime, &cell, "yours");
                runtime.enter(|scope| scope.collect()).unwrap();
                assert_eq!(text(&runtime, &cell).as_deref(), Some("yours"));
            };
            // The end of a scope does not wait for the end of its threads.
            std::thread::scope(|threads| threads.spawn(in_thread).join().unwrap());
            assert_eq!(text(&runtime, &cell).as_deref(), Some("mine"), "{at}");
        }
        assert_eq!(runtime.heap().thread_cells().counts(), (1, 1));
        drop(cell);
        assert_eq!(runtime.heap().thread_cells().counts(), (0, 0));
    }

    #[test]
    fn a_slot_that_is_used_again_begins_again() {
        let runtime = Runtime::new(RuntimeOptions::default());
        for number in 0..1000 {
            let cell = runtime.heap().thread_cell();
            begin(&runtime, &cell, &number.to_string());
            assert_eq!(text(&runtime, &cell), Some(number.to_string()));
            set(&runtime, &cell, "other");
        }
        assert_eq!(runtime.heap().thread_cells().counts(), (0, 0));
        let slots = runtime.heap().thread_cells().lock().slots.len();
        assert_eq!(slots, 1);
    }

    #[test]
    fn to_begin_again_reaches_all_threads() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let cell = runtime.heap().thread_cell();
        set(&runtime, &cell, "mine");
        begin(&runtime, &cell, "again");
        assert_eq!(text(&runtime, &cell).as_deref(), Some("again"));
    }
}
