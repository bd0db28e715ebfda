//! Identifiers of entities of a session, and the tables that assign them.
//!
//! ```text
//!   Symbol    a name of code or data, or a part of what it names: an index, and its name's generation (`names.rs`)
//!   DylibId   a dylib: a slot, the generation of its occupant, and its session
//!   Label     a symbol in a dylib
//!   Key<T>    a slot in a `Slab<T>`, the generation of its occupant, and its session: a stale key finds nothing
//! ```
//!
//! A slot whose generations are exhausted is not reused, so a stale key never refers to a later occupant. An
//! identifier of another session finds nothing, and events with one are refused
//! ([`Error::OtherSession`](crate::Error::OtherSession)). Cost: one indexed load and two comparisons.
//!
//! [`SessionId`]s come from a counter of the process, the only state here shared by sessions: an identifier
//! is a copy, which may outlive its session, so nothing that belongs to the session could distinguish it from
//! identifiers of a later one. Nothing depends on their values.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | I1 | count a session | Relaxed | | nothing: the numbers only need to be distinct |

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name of code or data, interned by the session's [`crate::Names`], or a part of what it names.
///
/// A definition may have *parts*, which are definitions of the same name: a function's cell is the whole, its bodies are parts. Messages
/// use the name for them as well. A part exists as long as its whole, and has its tracker. Parts are looked up by their own symbols
/// only: they are not on boards, and generators are not asked for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    /// The slot of the name; the two highest bits are the number of the part, 0 for the whole.
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A part of a definition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SymbolPart {
    First = 1,
    Second = 2,
}

/// The number of bits in [`Symbol::index`] for the slot of the name.
const SLOT_BITS: u32 = 30;

/// The number of slots for names.
pub(crate) const SLOTS: u32 = 1 << SLOT_BITS;

impl Symbol {
    /// The symbol of a part of what this symbol names.
    #[must_use]
    pub const fn part(self, part: SymbolPart) -> Symbol {
        Symbol { index: self.slot() | (part as u32) << SLOT_BITS, generation: self.generation }
    }

    /// The symbol of the whole: itself, unless it is a part.
    #[must_use]
    pub const fn whole(self) -> Symbol {
        Symbol { index: self.slot(), generation: self.generation }
    }

    /// Whether it is a part.
    #[must_use]
    pub const fn is_part(self) -> bool {
        self.index >= SLOTS
    }

    /// The symbols of all parts.
    #[must_use]
    pub const fn parts(self) -> [Symbol; 2] {
        [self.part(SymbolPart::First), self.part(SymbolPart::Second)]
    }

    pub(crate) const fn slot(self) -> u32 {
        self.index & (SLOTS - 1)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot(), self.generation)?;
        match self.index >> SLOT_BITS {
            0 => Ok(()),
            part => write!(f, "/{part}"),
        }
    }
}

/// The session of an identifier. Numbers repeat after four billion sessions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SessionId(u32);

impl SessionId {
    /// The id of a new session.
    pub(crate) fn fresh() -> SessionId {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed); // I1
        SessionId(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}", self.0)
    }
}

/// A dylib of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DylibId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    pub(crate) session: SessionId,
}

impl DylibId {
    /// The session that it belongs to.
    #[must_use]
    pub fn session(self) -> SessionId {
        self.session
    }
}

impl fmt::Debug for DylibId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// A symbol in a dylib.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label {
    pub dylib: DylibId,
    pub symbol: Symbol,
}

/// A key of a slab: a slot and the generation of its occupant.
pub struct Key<T> {
    index: u32,
    /// Never zero, so that `Option<Key>` has the same size.
    generation: NonZeroU32,
    session: SessionId,
    of: PhantomData<fn() -> T>,
}

/// A key without its type.
pub(crate) type Parts = (u32, NonZeroU32, SessionId);

impl<T> Key<T> {
    pub(crate) fn parts(self) -> Parts {
        (self.index, self.generation, self.session)
    }

    pub(crate) fn from_parts((index, generation, session): Parts) -> Self {
        Key { index, generation, session, of: PhantomData }
    }

    pub(crate) fn session(self) -> SessionId {
        self.session
    }

    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.generation.get()) << 32 | u64::from(self.index));
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

struct Place<T> {
    generation: NonZeroU32,
    tenant: Option<T>,
}

/// A table that assigns keys and reuses slots.
pub(crate) struct Slab<T> {
    session: SessionId,
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty table of a session.
    pub(crate) fn new(session: SessionId) -> Self {
        Slab { session, places: Vec::new(), free: Vec::new() }
    }

    fn key(&self, index: u32, generation: NonZeroU32) -> Key<T> {
        Key::from_parts((index, generation, self.session))
    }

    fn is_of(&self, place: &Place<T>, key: Key<T>) -> bool {
        place.generation == key.generation && self.session == key.session
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get_mut(index as usize)
        {
            place.tenant = Some(value);
            let generation = place.generation;
            return self.key(index, generation);
        }
        let index = u32::try_from(self.places.len()).expect("fewer than four billion things in a session");
        self.places.push(Place { generation: NonZeroU32::MIN, tenant: Some(value) });
        self.key(index, NonZeroU32::MIN)
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        self.get(key)?;
        let place = self.places.get_mut(key.index())?;
        let value = place.tenant.take()?;
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(key.index);
        }
        Some(value)
    }

    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        self.places
            .get(key.index())
            .filter(|place| self.is_of(place, key))
            .and_then(|place| place.tenant.as_ref())
    }

    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        let session = self.session;
        self.places
            .get_mut(key.index())
            .filter(|place| place.generation == key.generation && session == key.session)
            .and_then(|place| place.tenant.as_mut())
    }

    /// The occupant of a slot.
    pub(crate) fn at(&self, index: usize) -> Option<&T> {
        self.places.get(index).and_then(|place| place.tenant.as_ref())
    }

    pub(crate) fn contains(&self, key: Key<T>) -> bool {
        self.get(key).is_some()
    }

    /// All occupants, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = self.key(u32::try_from(index).ok()?, place.generation);
            place.tenant.as_ref().map(|value| (key, value))
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{SessionId, Slab};

    #[test]
    fn a_key_that_outlived_its_tenant_finds_nothing() {
        let mut slab = Slab::new(SessionId::fresh());
        let first = slab.insert("a");
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("b");
        assert_eq!(first.index(), second.index(), "the place is let again");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"b"));
        let mut other = Slab::new(SessionId::fresh());
        let third = other.insert("c");
        assert_eq!(slab.get(third), None, "it is of another session");
        assert_eq!(slab.remove(third), None);
        assert_eq!(slab.get_mut(third), None);
        assert_eq!(other.get(third), Some(&"c"));
    }
}
