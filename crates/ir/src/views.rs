//! Interned entries shared by several views, and freed when no view holds them.
//!
//! Problem: names and types are numbers, compared and hashed everywhere, and programs that work together must
//! agree on them. So one table numbers them for all. A table that only grows keeps every name ever used; to
//! free entries, it must record the holders of their numbers.
//!
//! ```text
//!   store    key ──► number ──► Weak ─────────┐           one for programs that share names and types
//!                                             ▼
//!   view A   number ──► Arc ───────────► entry 17         one per program: it holds the entries that it has read
//!   view B   number ──► Arc ────────────────▲
//! ```
//!
//! A view holds every entry that it has interned, found or read. The holder of a number has a view that holds
//! the entry, or had one when it passed the number to another view, which holds the entry from its first read
//! on. An entry is freed with the last view that holds it. Its number is not reused until the numbers are
//! exhausted, so a number that outlives its entry is unknown to all views rather than referring to another
//! entry.
//!
//! | question | locks |
//! |---|---|
//! | the entry of a number that the view has seen | none: [`Held`] |
//! | the entry of a number that it has not seen; an entry by its key | the store's, to read |
//! | a new entry | the store's, to write |
//!
//! Readers have plain references for the lifetime of the view: a view never releases an entry.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | V1 | newest: load, store | Relaxed | – | nothing: the table is read through its own `OnceLock`, and a reader that finds no entry there retries under the lock |
//!
//! Cost: a look-up of a number is a load, a multiplication and one or two probes. A view takes 16 to 64 bytes
//! for each entry that it holds; an empty one does not allocate. The store drops the numbers of freed entries
//! when it has twice as many as remained after the last sweep, so the amortised cost of a new entry is
//! constant.

use crate::meter::{Charge, Meter};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

/// A store with fewer entries is not swept.
const SWEPT: usize = 1024;
/// Log2 of the number of slots of a view's first table.
const FIRST: u32 = 3;
/// Log2 of the growth factor from one table to the next.
const GROWTH: u32 = 2;
/// Enough tables for more entries than fit into memory.
const TABLES: usize = 14;
/// Approximate overhead of an entry in a view and the store: two rows of hash tables, a slot, and slots that
/// are empty or belong to former tables.
const PLACE: usize = 160;

/// An entry of a store, or facts about an entry.
pub(crate) trait Weighed {
    /// Its approximate size in bytes, including everything that it alone holds.
    fn bytes(&self) -> usize;
}

/// The numbers of all entries; see the file's header.
pub(crate) struct Store<E: ?Sized> {
    state: RwLock<State<E>>,
}

struct State<E: ?Sized> {
    /// The first number; lower ones belong to entries that every view has.
    first: u32,
    /// The number after the last one.
    end: u32,
    /// The number of the next entry.
    next: u32,
    /// By hash: the numbers of the entries whose keys have it, nearly always one.
    numbers: FxHashMap<u64, SmallVec<[u32; 1]>>,
    entries: FxHashMap<u32, Weak<E>>,
    /// The number of entries at which the store is swept.
    sweep_at: usize,
}

impl<E: ?Sized> State<E> {
    fn find(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<(u32, Arc<E>)> {
        let numbers = self.numbers.get(&hash)?;
        let live = |&number: &u32| Some((number, self.entries.get(&number)?.upgrade()?));
        numbers.iter().filter_map(live).find(|(_, entry)| is(entry))
    }

    /// Drops the numbers of freed entries.
    fn sweep(&mut self) {
        self.entries.retain(|_, entry| entry.strong_count() > 0);
        let entries = &self.entries;
        self.numbers.retain(|_, numbers| {
            numbers.retain(|number| entries.contains_key(number));
            !numbers.is_empty()
        });
        self.sweep_at = 2 * self.entries.len();
        self.entries.shrink_to(self.sweep_at.max(SWEPT));
        self.numbers.shrink_to(self.sweep_at.max(SWEPT));
    }

    fn add(&mut self, hash: u64, entry: &Arc<E>) -> u32 {
        if self.entries.len() >= self.sweep_at.max(SWEPT) {
            self.sweep();
        }
        // Numbers are reused only after 2³² entries, and then only free ones.
        while self.next == self.end || self.entries.contains_key(&self.next) {
            self.next = if self.next == self.end { self.first } else { self.next + 1 };
        }
        let number = self.next;
        self.next += 1;
        self.numbers.entry(hash).or_default().push(number);
        self.entries.insert(number, Arc::downgrade(entry));
        number
    }
}

impl<E: ?Sized> Store<E> {
    /// A store that uses this range of numbers.
    pub(crate) fn with_numbers(range: Range<u32>) -> Store<E> {
        let (numbers, entries) = (FxHashMap::default(), FxHashMap::default());
        let Range { start: first, end } = range;
        Store { state: RwLock::new(State { first, end, next: first, numbers, entries, sweep_at: 0 }) }
    }

    /// The number of entries, including freed ones until the next sweep.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state.read().unwrap_or_else(PoisonError::into_inner).entries.len()
    }

    fn get(&self, number: u32) -> Option<Arc<E>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).entries.get(&number)?.upgrade()
    }
}

/// A view of a store; it holds the entries that it has looked up.
pub(crate) struct View<E: ?Sized + Weighed> {
    store: Arc<Store<E>>,
    held: Held<E>,
}

impl<E: ?Sized + Weighed> Default for View<E> {
    fn default() -> Self {
        View::of(Arc::new(Store::with_numbers(0..u32::MAX)), &Arc::default())
    }
}

impl<E: ?Sized + Weighed> View<E> {
    /// A view that charges what it holds to a meter.
    pub(crate) fn of(store: Arc<Store<E>>, meter: &Arc<Meter>) -> View<E> {
        View { store, held: Held::new(meter) }
    }

    /// The approximate size in bytes of what the view holds.
    pub(crate) fn bytes(&self) -> usize {
        self.held.charge.bytes()
    }

    /// Another view of the same store, initially empty.
    pub(crate) fn another(&self, meter: &Arc<Meter>) -> View<E> {
        View::of(self.store.clone(), meter)
    }

    #[cfg(test)]
    pub(crate) fn store(&self) -> &Store<E> {
        &self.store
    }

    /// The entry of a number, if there is one.
    pub(crate) fn get(&self, number: u32) -> Option<&E> {
        self.hold(number).map(|entry| &**entry)
    }

    /// The same, for holders without a view.
    pub(crate) fn hold(&self, number: u32) -> Option<&Arc<E>> {
        match self.held.get(number) {
            None => Some(self.held.insert(number, self.store.get(number)?)),
            found => found,
        }
    }

    /// The entry of a number, if the view holds it.
    pub(crate) fn held(&self, number: u32) -> Option<&Arc<E>> {
        self.held.get(number)
    }

    /// The entry of a number, without making the view hold it.
    pub(crate) fn find_number(&self, number: u32) -> Option<Arc<E>> {
        self.store.get(number)
    }

    /// The number of the entry whose key has this hash and for which `is` holds, without making the view hold
    /// it.
    pub(crate) fn find_key(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<u32> {
        let state = self.store.state.read().unwrap_or_else(PoisonError::into_inner);
        state.find(hash, is).map(|(number, _)| number)
    }

    /// The entries of the store.
    pub(crate) fn all(&self) -> Vec<Arc<E>> {
        let state = self.store.state.read().unwrap_or_else(PoisonError::into_inner);
        state.entries.values().filter_map(Weak::upgrade).collect()
    }

    /// Holds an entry of the store.
    pub(crate) fn insert(&self, number: u32, entry: Arc<E>) -> &Arc<E> {
        self.held.insert(number, entry)
    }

    /// The number of the entry whose key has this hash and for which `is` holds.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<u32> {
        let state = self.store.state.read().unwrap_or_else(PoisonError::into_inner);
        let (number, entry) = state.find(hash, is)?;
        drop(state);
        self.held.insert(number, entry);
        Some(number)
    }

    /// The same; makes the entry if there is none.
    pub(crate) fn intern(&self, hash: u64, is: impl Fn(&E) -> bool, make: impl FnOnce() -> Arc<E>) -> u32 {
        if let Some(number) = self.find(hash, &is) {
            return number;
        }
        // Not under the lock: it may look up other entries.
        let made = make();
        let mut state = self.store.state.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have added it between the two locks.
        let (number, entry) = state.find(hash, is).unwrap_or_else(|| (state.add(hash, &made), made));
        drop(state);
        self.held.insert(number, entry);
        number
    }
}

/// A map from numbers to entries that many threads read while one adds.
///
/// Entries never move, and outgrown tables are kept for their readers; each new table contains all entries.
pub(crate) struct Held<E: ?Sized> {
    tables: [OnceLock<Table<E>>; TABLES],
    newest: AtomicUsize,
    /// The number of entries.
    count: Mutex<usize>,
    charge: Charge,
}

type Table<E> = Box<[OnceLock<(u32, Arc<E>)>]>;

impl<E: ?Sized> Held<E> {
    /// An empty map that charges its entries to a meter.
    pub(crate) fn new(meter: &Arc<Meter>) -> Held<E> {
        let tables = [const { OnceLock::new() }; TABLES];
        Held { tables, newest: AtomicUsize::new(0), count: Mutex::new(0), charge: Charge::new(meter, 0) }
    }

    /// The charge of the entries, for their size beyond the entry itself.
    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }
}

impl<E: ?Sized + Weighed> Held<E> {
    /// The entry of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&Arc<E>> {
        let table = self.tables.get(self.newest.load(Ordering::Relaxed))?.get()?; // V1
        match slot(table, number)?.get() {
            Some((_, entry)) => Some(entry),
            None => None,
        }
    }

    /// The entry of a number, which is set to this one if there was none.
    pub(crate) fn insert(&self, number: u32, entry: Arc<E>) -> &Arc<E> {
        let found = match self.get(number) {
            Some(found) => Some(found),
            None => self.insert_locked(number, entry),
        };
        #[expect(clippy::unreachable, reason = "a table has room for one more than it holds")]
        let Some(found) = found else { unreachable!("an entry has a slot as soon as it is inserted") };
        found
    }

    fn insert_locked(&self, number: u32, entry: Arc<E>) -> Option<&Arc<E>> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = self.newest.load(Ordering::Relaxed); // V1
        let mut table = self.tables.get(newest)?.get_or_init(|| empty(newest));
        if (*count + 1) * 4 > table.len() * 3 && newest + 1 < TABLES {
            newest += 1;
            let larger = empty(newest);
            for (number, entry) in table.iter().filter_map(OnceLock::get) {
                let _ = slot(&larger, *number)?.set((*number, entry.clone()));
            }
            table = self.tables[newest].get_or_init(|| larger);
            self.newest.store(newest, Ordering::Relaxed); // V1
        }
        let slot = slot(table, number)?;
        // Another thread may have added it before the lock was taken.
        if slot.get().is_none() {
            *count += 1;
            self.charge.grow(PLACE + entry.bytes());
        }
        Some(&slot.get_or_init(|| (number, entry)).1)
    }
}

fn empty<E: ?Sized>(at: usize) -> Table<E> {
    (0..1usize << (FIRST + GROWTH * at as u32)).map(|_| OnceLock::new()).collect()
}

/// The slot that holds a number, or would hold it. A quarter of the slots is empty, so a search is short.
fn slot<E: ?Sized>(table: &[OnceLock<(u32, Arc<E>)>], number: u32) -> Option<&OnceLock<(u32, Arc<E>)>> {
    let mask = table.len() - 1;
    // The upper bits of the product depend on all bits of the number (Knuth, 6.4).
    let start = (number.wrapping_mul(0x9e37_79b9) >> 4) as usize;
    let is_free = |slot: &&OnceLock<(u32, Arc<E>)>| slot.get().is_none_or(|(found, _)| *found == number);
    (0..table.len()).map(|step| &table[(start + step) & mask]).find(is_free)
}

impl<E: ?Sized + Weighed> fmt::Debug for View<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}

impl<E: ?Sized> fmt::Debug for Held<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = *self.count.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "{count} entries")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intern(view: &View<str>, text: &str) -> u32 {
        // Few hashes, so that entries share them.
        view.intern(text.len() as u64, |found| found == text, || text.into())
    }

    #[test]
    fn views_agree_and_hold_what_they_have_seen() {
        let a = View::<str>::default();
        let one = intern(&a, "one");
        let b = a.another(&Arc::default());
        assert_eq!(intern(&b, "one"), one);
        let two = intern(&b, "two");
        assert_ne!(one, two);
        assert_eq!(a.get(two), Some("two"));
        drop(b);
        assert_eq!((a.get(one), a.get(two)), (Some("one"), Some("two")));
    }

    #[test]
    fn an_entry_goes_with_the_last_view_and_its_number_is_not_used_again() {
        let a = View::<str>::default();
        let b = a.another(&Arc::default());
        let number = intern(&b, "one");
        drop(b);
        assert_eq!(a.get(number), None);
        assert_ne!(intern(&a, "two"), number);
        assert_ne!(intern(&a, "one"), number, "one cannot be taken for the other");
        assert_eq!(a.get(number), None);
    }

    #[test]
    fn a_store_takes_what_is_held() {
        let a = View::<str>::default();
        let kept = intern(&a, "kept");
        for round in 0..20_000 {
            intern(&a.another(&Arc::default()), &format!("round {round}"));
        }
        assert!(a.store().len() <= SWEPT, "{}", a.store().len());
        assert_eq!(a.get(kept), Some("kept"));
    }

    #[test]
    fn references_survive_growth() {
        let a = View::<str>::default();
        let first = intern(&a, "first");
        let text = a.get(first).unwrap();
        let numbers: Vec<u32> =
            (0..10_000).map(|n| a.intern(n, |t| t == n.to_string(), || n.to_string().into())).collect();
        assert_eq!(text, "first");
        assert!(numbers.iter().enumerate().all(|(n, &number)| a.get(number) == Some(&*n.to_string())));
    }

    /// When the numbers are exhausted, live ones are skipped.
    #[test]
    fn numbers_come_round() {
        let a = View::<str>::of(Arc::new(Store::with_numbers(3..u32::MAX)), &Arc::default());
        assert_eq!(intern(&a, "three"), 3);
        a.store.state.write().unwrap().next = u32::MAX - 1;
        assert_eq!(intern(&a, "last"), u32::MAX - 1);
        assert_eq!(intern(&a, "four"), 4);
    }
}
