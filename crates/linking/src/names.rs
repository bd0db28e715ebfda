//! The texts of symbols: each held text is one [`Symbol`].
//!
//! ```text
//!   text ── shard of its hash, under a read lock ──► index ──► Place { uses: generation and holders, text }
//!   symbol = (index, generation) ─────────────────────────────►┘
//! ```
//!
//! The holders of a name are its interners, the symbols in the session's tables, the lookups that request it
//! and the requests to generators. The last holder frees it, and its index is reused under another
//! generation: a symbol that outlives its name refers to nothing.
//!
//! | holder | holds |
//! |---|---|
//! | [`Names::intern`] | forever. For names in a program's source |
//! | [`SymbolRef`] ([`Names::hold`]) | until it is dropped. For structures that keep a symbol |
//! | [`SymbolScope`] | everything that it has interned, until it is dropped. For operations that end with the symbols in a table |
//!
//! Looking up a text takes a read lock of one of sixteen tables, the first use of a text its write lock, each
//! for one access to a hash table. Holding and releasing take none (`uses.rs`). Slots never move: they are in
//! the segments of an array that doubles.
//!
//! Cost: 40 bytes for a slot, 36 for an entry of the hash table with room to grow, the text and its header.
//! Tables do not shrink.

use std::fmt;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHasher};

use crate::ids::{SLOTS, SessionId, Symbol};
use crate::uses::{Freed, Uses};

type Table = FxHashMap<Arc<str>, u32>;

struct Place {
    uses: Uses,
    text: RwLock<Option<Arc<str>>>,
}

/// Indices without a name.
#[derive(Default)]
struct Free {
    /// The first that was never used.
    next: u32,
    /// Used ones. The most recently freed is reused first.
    again: Vec<u32>,
}

/// Interned names. One instance for each session.
pub struct Names {
    tables: [RwLock<Table>; TABLES],
    places: [OnceLock<Box<[Place]>>; SEGMENTS],
    free: Mutex<Free>,
    /// The generation of each slot's first name: different in each session, so that foreign symbols refer to
    /// nothing.
    first: u32,
}

/// The number of tables of texts, large enough that threads seldom contend.
const TABLES: usize = 16;

/// Log2 of the number of slots in the first segment of the array.
const FIRST: u32 = 6;

/// The number of segments, each twice as long as the one before, for all slots.
const SEGMENTS: usize = (SLOTS.ilog2() - FIRST + 1) as usize;

impl Default for Names {
    fn default() -> Self {
        // Multiples of an odd number are distinct, and far apart for small factors.
        let first = SessionId::fresh().number().wrapping_mul(0x9e37_79b1);
        let (tables, places) = (Default::default(), [const { OnceLock::new() }; SEGMENTS]);
        Names { tables, places, free: Mutex::default(), first }
    }
}

/// The segment of the array and the index in it.
fn split(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + (1 << FIRST);
    let part = shifted.ilog2() - FIRST;
    (part as usize, (shifted - (1u64 << (part + FIRST))) as usize)
}

// No user code runs under these locks, so the data are consistent even after a panic.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Names {
    fn table(&self, text: &str) -> &RwLock<Table> {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        // Hash tables use the other bits.
        &self.tables[(hasher.finish() >> 32) as usize % TABLES]
    }

    fn place(&self, index: u32) -> Option<&Place> {
        let (part, at) = split(index);
        self.places.get(part)?.get()?.get(at)
    }

    /// The symbol of `text`, if it has one. It is valid as long as it has a holder.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Symbol> {
        let table = read(self.table(text));
        let &index = table.get(text)?;
        self.place(index).map(|place| Symbol { index, generation: place.uses.generation() })
    }

    /// The symbol of `text`, for the lifetime of the session.
    pub fn intern(&self, text: &str) -> Symbol {
        self.used(text, Uses::keep)
    }

    /// The symbol of `text`, for as long as it is held.
    #[must_use]
    pub fn hold(self: &Arc<Self>, text: &str) -> SymbolRef {
        let symbol = self.used(text, Uses::revive);
        SymbolRef { names: Arc::clone(self), symbol }
    }

    /// Holds a symbol; `None` if its name no longer exists.
    #[must_use]
    pub fn hold_symbol(self: &Arc<Self>, symbol: Symbol) -> Option<SymbolRef> {
        self.retain(symbol).then(|| SymbolRef { names: Arc::clone(self), symbol })
    }

    /// The text of `symbol`; a question mark if its name no longer exists.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> Arc<str> {
        let known = self.place(symbol.slot()).and_then(|place| {
            let text = read(&place.text);
            // While the text is locked, its name is not replaced.
            text.as_ref().filter(|_| place.uses.generation() == symbol.generation).map(Arc::clone)
        });
        known.unwrap_or_else(|| "?".into())
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| read(table).len()).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of indices, with a name or without: the largest number of names at one time.
    #[must_use]
    pub fn places(&self) -> usize {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).next as usize
    }

    /// Adds a holder to a held symbol; `false` if its name no longer exists.
    pub(crate) fn retain(&self, symbol: Symbol) -> bool {
        self.place(symbol.slot()).is_some_and(|place| place.uses.hold(symbol.generation))
    }

    /// Whether its holders are counted.
    pub(crate) fn is_counted(&self, symbol: Symbol) -> bool {
        self.place(symbol.slot()).is_some_and(|place| place.uses.is_counted(symbol.generation))
    }

    /// Removes a holder.
    pub(crate) fn release(&self, symbol: Symbol) {
        let Some(place) = self.place(symbol.slot()) else { return };
        if !place.uses.let_go() {
            return;
        }
        let Some(text) = read(&place.text).clone() else { return };
        let mut table = write(self.table(&text));
        // Another thread may have freed the slot and reused it for a text in another table: then it has
        // another generation.
        let freed = place.uses.free(symbol.generation, self.first);
        if freed == Freed::No {
            return;
        }
        table.remove(&text);
        let old = write(&place.text).take();
        drop(table);
        drop((old, text));
        if freed == Freed::Yes {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).again.push(symbol.slot());
        }
    }

    /// The symbol of `text`, held by `hold`.
    fn used(&self, text: &str, hold: impl Fn(&Uses) -> u32) -> Symbol {
        let table = self.table(text);
        let there = |table: &Table| {
            let &index = table.get(text)?;
            Some(Symbol { index, generation: hold(&self.place(index)?.uses) })
        };
        if let Some(symbol) = there(&read(table)) {
            return symbol;
        }
        let mut table = write(table);
        if let Some(symbol) = there(&table) {
            return symbol;
        }
        let index = self.vacant();
        let (part, at) = split(index);
        let place = &self.places[part]
            .get_or_init(|| (0..1u64 << (part as u32 + FIRST)).map(|_| self.empty()).collect())[at];
        let text: Arc<str> = text.into();
        *write(&place.text) = Some(Arc::clone(&text));
        let generation = hold(&place.uses);
        table.insert(text, index);
        Symbol { index, generation }
    }

    /// A slot that has had no name.
    fn empty(&self) -> Place {
        Place { uses: Uses::new(self.first), text: RwLock::default() }
    }

    fn vacant(&self) -> u32 {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = free.again.pop() {
            return index;
        }
        let index = free.next;
        assert!(index < SLOTS, "a session has fewer than a billion names at a time");
        free.next = index + 1;
        index
    }
}

/// A symbol whose name is kept as long as this exists.
pub struct SymbolRef {
    names: Arc<Names>,
    symbol: Symbol,
}

impl SymbolRef {
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    #[must_use]
    pub fn text(&self) -> Arc<str> {
        self.names.text(self.symbol)
    }
}

impl Clone for SymbolRef {
    fn clone(&self) -> Self {
        // It is held by `self`.
        self.names.retain(self.symbol);
        SymbolRef { names: Arc::clone(&self.names), symbol: self.symbol }
    }
}

impl Drop for SymbolRef {
    fn drop(&mut self) {
        self.names.release(self.symbol);
    }
}

impl fmt::Debug for SymbolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} `{}`", self.symbol, self.text())
    }
}

/// Symbols whose names are kept as long as this exists. Symbols in the session's tables by then keep their
/// names.
pub struct SymbolScope {
    names: Arc<Names>,
    held: Mutex<Vec<Symbol>>,
}

impl SymbolScope {
    /// A scope without symbols.
    #[must_use]
    pub fn new(names: &Arc<Names>) -> SymbolScope {
        SymbolScope { names: Arc::clone(names), held: Mutex::default() }
    }

    /// The symbol of `text`, until the end of the scope.
    pub fn intern(&self, text: &str) -> Symbol {
        let symbol = self.names.used(text, Uses::revive);
        if self.names.is_counted(symbol) {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).push(symbol);
        }
        symbol
    }
}

impl Drop for SymbolScope {
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        held.into_iter().for_each(|symbol| self.names.release(symbol));
    }
}

/// Symbols that the tables no longer hold: released when this is dropped.
#[derive(Default)]
pub struct Released {
    names: Option<Arc<Names>>,
    symbols: Vec<Symbol>,
}

impl Released {
    pub(crate) fn add(&mut self, names: &Arc<Names>, symbol: Symbol) {
        if names.is_counted(symbol) {
            self.names.get_or_insert_with(|| Arc::clone(names));
            self.symbols.push(symbol);
        }
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        if let Some(names) = &self.names {
            self.symbols.drain(..).for_each(|symbol| names.release(symbol));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::{Names, SymbolScope};

    #[test]
    fn equal_texts_are_one_symbol() {
        let names = Names::default();
        let symbols: Vec<_> = (0..3000).map(|i| names.intern(&format!("f{i}"))).collect();
        for (i, symbol) in symbols.iter().enumerate() {
            assert_eq!(&*names.text(*symbol), format!("f{i}"));
            assert_eq!(names.intern(&format!("f{i}")), *symbol);
        }
        assert_eq!(names.find("f3000"), None);
        let foreign = |index| crate::Symbol { index, ..symbols[0] };
        assert_eq!(&*names.text(foreign(3000)), "?");
        assert_eq!(&*names.text(foreign(u32::MAX)), "?");
        // A symbol of another session refers to nothing here.
        let others = Names::default();
        for i in 0..3000 {
            let other = others.intern(&format!("g{i}"));
            assert_eq!(&*names.text(other), "?");
            assert!(symbols.iter().all(|symbol| *symbol != other));
        }
    }

    #[test]
    fn two_threads_agree_on_symbols() {
        let names = Names::default();
        let all = |names: &Names| (0..500).map(|i| names.intern(&i.to_string())).collect::<Vec<_>>();
        let (a, b) = std::thread::scope(|scope| {
            let a = scope.spawn(|| all(&names));
            let b = scope.spawn(|| all(&names));
            (a.join(), b.join())
        });
        assert_eq!(a.ok(), b.ok());
    }

    #[test]
    fn a_name_goes_with_its_last_holder_and_its_symbol_names_nothing() {
        let names = Arc::new(Names::default());
        let held = names.hold("f");
        let (old, copy) = (held.symbol(), held.clone());
        drop(held);
        assert_eq!(&*names.text(old), "f");
        drop(copy);
        assert_eq!((names.len(), names.find("f")), (0, None));
        assert!(names.hold_symbol(old).is_none());
        let next = names.hold("g");
        assert_eq!(next.symbol().index, old.index, "the place is let again");
        assert_ne!(next.symbol(), old);
        assert_eq!((&*names.text(old), &*next.text()), ("?", "g"));
        // A name that is kept forever stays, with or without other holders.
        let scope = SymbolScope::new(&names);
        let kept = scope.intern("k");
        assert_eq!(names.intern("k"), kept);
        drop(scope);
        assert_eq!(&*names.text(kept), "k");
    }

    /// Threads hold and release the same few names: each reads the text that it holds.
    #[test]
    fn a_held_name_is_never_another() {
        let names = Arc::new(Names::default());
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let names = &names;
                scope.spawn(move || {
                    for round in 0..20_000u32 {
                        let text = format!("n{}", (round.wrapping_mul(7) ^ thread) % 13);
                        let held = names.hold(&text);
                        assert_eq!(*held.text(), text);
                        assert_eq!(names.find(&text), Some(held.symbol()));
                    }
                });
            }
        });
        assert!(names.is_empty());
        let free = names.free.lock().expect("free");
        assert!(free.next <= 13 && free.again.len() == free.next as usize, "each index is free once");
    }
}
