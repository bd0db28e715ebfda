//! Names for things of a session, and the tables that give them out.
//!
//! ```text
//!   Symbol    a name of code or data: an index, and the generation of the name that has it (`names.rs`)
//!   Label     a symbol in a dylib
//!   Key<T>    a place in a `Slab<T>` and the generation of its tenant: a key that outlived its thing finds nothing
//! ```
//!
//! A place whose generation is used up is not let again, so a stale key can never name a later tenant. Cost: one indexed
//! load and one comparison.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// A name of code or data, interned by the session's [`crate::Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// A dylib of a session. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DylibId(pub(crate) u32);

/// A symbol in a dylib.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label {
    /// The dylib.
    pub dylib: DylibId,
    /// The symbol in it.
    pub symbol: Symbol,
}

/// A key of a slab: a place and the generation of its tenant.
pub struct Key<T> {
    index: u32,
    /// Never zero, so that no key at all takes no room beside it.
    generation: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Key { index, generation, of: PhantomData }
    }

    pub(crate) fn parts(self) -> (u32, NonZeroU32) {
        (self.index, self.generation)
    }

    pub(crate) fn from_parts((index, generation): (u32, NonZeroU32)) -> Self {
        Key::new(index, generation)
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
        (self.index, self.generation) == (other.index, other.generation)
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
        (self.index, self.generation).cmp(&(other.index, other.generation))
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

/// A table that gives out keys and takes back places.
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get_mut(index as usize)
        {
            place.tenant = Some(value);
            return Key::new(index, place.generation);
        }
        let index = u32::try_from(self.places.len()).expect("fewer than four billion things in a session");
        self.places.push(Place { generation: NonZeroU32::MIN, tenant: Some(value) });
        Key::new(index, NonZeroU32::MIN)
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation != key.generation {
            return None;
        }
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
            .filter(|place| place.generation == key.generation)
            .and_then(|place| place.tenant.as_ref())
    }

    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        self.places
            .get_mut(key.index())
            .filter(|place| place.generation == key.generation)
            .and_then(|place| place.tenant.as_mut())
    }

    /// The tenant of a place.
    pub(crate) fn at(&self, index: usize) -> Option<&T> {
        self.places.get(index).and_then(|place| place.tenant.as_ref())
    }

    pub(crate) fn contains(&self, key: Key<T>) -> bool {
        self.get(key).is_some()
    }

    /// All tenants, by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = Key::new(u32::try_from(index).ok()?, place.generation);
            place.tenant.as_ref().map(|value| (key, value))
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn a_key_that_outlived_its_tenant_finds_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert("a");
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("b");
        assert_eq!(first.index(), second.index(), "the place is let again");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"b"));
    }
}
