//! Two stores: a near one, such as a directory of this machine, and a far one, such as the store of a fleet.
//!
//! | request | near store | far store |
//! |---|---|---|
//! | read | read first | read if the near one has no entry or fails; an entry found is written to the near one |
//! | read again, because something was missing | read | read; if it has more, it is written to the near one |
//! | write | written | written |
//! | claim | requested first | requested if the near one grants it |
//!
//! Either may fail while the other serves the request; then the error is counted, and not returned. A store
//! is not used for a while after an error (`breaker.rs`).
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | H1 | count a hidden error, read the count | Relaxed | – | nothing: it is a statistic |

use std::sync::atomic::{AtomicU64, Ordering};

use crate::breaker::Breaker;
use crate::store::{CacheStore, Claim, EntryName, StoreError};

/// See the file's header.
pub struct TwoLevelStore<Near, Far> {
    near: Level<Near>,
    far: Level<Far>,
    hidden: AtomicU64,
}

/// The answer of a store; `None` if it was not used.
type Asked<T> = Option<Result<T, StoreError>>;

struct Level<S> {
    store: S,
    breaker: Breaker,
    writes: Breaker,
}

impl<S: CacheStore> Level<S> {
    fn ask<T>(&self, ask: impl FnOnce(&S) -> Result<T, StoreError>) -> Asked<T> {
        self.breaker.try_now(|| ask(&self.store))
    }

    fn changes<T>(&self, change: impl FnOnce(&S) -> Result<T, StoreError>) -> Asked<T> {
        if self.is_writable() { self.writes.try_now(|| change(&self.store)) } else { None }
    }

    fn is_writable(&self) -> bool {
        self.breaker.is_open() && self.writes.is_open() && self.store.is_writable()
    }
}

impl<Near: CacheStore, Far: CacheStore> TwoLevelStore<Near, Far> {
    /// A store that reads the near store first, then the far one.
    pub fn new(near: Near, far: Far) -> TwoLevelStore<Near, Far> {
        TwoLevelStore {
            near: Level { store: near, breaker: Breaker::default(), writes: Breaker::default() },
            far: Level { store: far, breaker: Breaker::default(), writes: Breaker::default() },
            hidden: AtomicU64::new(0),
        }
    }

    /// The request fails if all answers are errors; otherwise an error is only counted. A store that was not
    /// used has no answer.
    fn settle(&self, near: Asked<()>, far: Asked<()>) -> Result<(), StoreError> {
        match (near, far) {
            (Some(Err(error)), None) | (None, Some(Err(error))) => Err(error),
            (Some(Err(error)), Some(Err(_))) => {
                self.hide();
                Err(error)
            }
            (Some(Err(_)), _) | (_, Some(Err(_))) => {
                self.hide();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes the same change to both.
    fn change(
        &self,
        near: impl FnOnce(&Near) -> Result<(), StoreError>,
        far: impl FnOnce(&Far) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let near = self.near.changes(near);
        let far = self.far.changes(far);
        if near.is_none() && far.is_none() {
            return Err(StoreError::new(self.describe(), "neither store takes anything for a while"));
        }
        self.settle(near, far)
    }

    fn hide(&self) {
        self.hidden.fetch_add(1, Ordering::Relaxed); // H1
    }
}

impl<Near: CacheStore, Far: CacheStore> CacheStore for TwoLevelStore<Near, Far> {
    fn describe(&self) -> String {
        format!("{}, {}", self.near.store.describe(), self.far.store.describe())
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        let near = self.near.ask(|store| store.get(name));
        if let Some(Ok(Some(entry))) = near {
            return Ok(Some(entry));
        }
        let far = self.far.ask(|store| store.get(name));
        if let Some(Ok(Some(entry))) = far {
            if let Some(Err(_)) = near {
                self.hide();
            }
            if let Some(Err(_)) = self.near.changes(|store| store.put(name, &entry)) {
                self.hide();
            }
            return Ok(Some(entry));
        }
        self.settle(near.map(|near| near.map(drop)), far.map(|far| far.map(drop))).map(|()| None)
    }

    fn get_again(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        let far = self.far.ask(|store| store.get_again(name));
        let near = self.near.ask(|store| store.get_again(name));
        self.settle(near.as_ref().map(settled), far.as_ref().map(settled))?;
        let [near, mut far] = [near, far].map(|asked| asked.and_then(Result::ok).flatten());
        if let Some(far) = far.as_ref().filter(|far| near.as_ref() != Some(*far))
            && let Some(Err(_)) = self.near.changes(|store| store.put(name, far))
        {
            self.hide();
        }
        match (&near, &mut far) {
            // Units that are in both are found in either.
            (Some(near), Some(far)) if near != far => far.extend_from_slice(near),
            _ => {}
        }
        Ok(far.or(near))
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.change(|near| near.put(name, entry), |far| far.put(name, entry))
    }

    fn append(&self, name: &EntryName, more: &[u8]) -> Result<(), StoreError> {
        self.change(|near| near.append(name, more), |far| far.append(name, more))
    }

    fn claim(&self, name: &EntryName) -> Result<Option<Claim>, StoreError> {
        let near = self.near.changes(|store| store.claim(name));
        if let Some(Ok(None)) = near {
            return Ok(None);
        }
        let far = self.far.changes(|store| store.claim(name));
        if let Some(Ok(None)) = far {
            return Ok(None);
        }
        self.settle(near.as_ref().map(settled), far.as_ref().map(settled))?;
        let held = [near, far].map(|asked| asked.and_then(Result::ok).flatten());
        Ok(Some(Claim::new(held)))
    }

    fn is_writable(&self) -> bool {
        self.near.is_writable() || self.far.is_writable()
    }

    fn hidden_errors(&self) -> u64 {
        let below = self.near.store.hidden_errors() + self.far.store.hidden_errors();
        let own = self.hidden.load(Ordering::Relaxed); // H1
        own + below
    }
}

/// The same outcome without its answer.
fn settled<T>(answer: &Result<T, StoreError>) -> Result<(), StoreError> {
    match answer {
        Ok(_) => Ok(()),
        Err(StoreError { store, reason }) => Err(StoreError { store: store.clone(), reason: reason.clone() }),
    }
}

impl<Near: CacheStore, Far: CacheStore> std::fmt::Debug for TwoLevelStore<Near, Far> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TwoLevelStore").field(&self.describe()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::digest::{Digest, Fingerprint};
    use crate::key::CacheKey;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// A store that can be made to fail, and counts its requests.
    #[derive(Default)]
    struct Breakable {
        entries: Mutex<BTreeMap<EntryName, Vec<u8>>>,
        is_broken: AtomicBool,
        asked: AtomicU64,
    }

    impl Breakable {
        fn ask(&self) -> Result<(), StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match self.is_broken.load(Ordering::Relaxed) {
                true => Err(StoreError::new("test", "broken")),
                false => Ok(()),
            }
        }

        fn set_broken(&self, broken: bool) {
            self.is_broken.store(broken, Ordering::Relaxed);
        }

        fn count(&self) -> usize {
            self.entries.lock().unwrap().len()
        }
    }

    impl CacheStore for Breakable {
        fn describe(&self) -> String {
            "test".to_owned()
        }

        fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
            self.ask()?;
            Ok(self.entries.lock().unwrap().get(name).cloned())
        }

        fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
            self.ask()?;
            self.entries.lock().unwrap().insert(*name, entry.to_vec());
            Ok(())
        }
    }

    fn facts(number: u64) -> Fingerprint {
        let mut digest = Digest::new("test");
        digest.word(number);
        digest.finish()
    }

    const COST: Duration = Duration::from_millis(5);

    /// The payload of a unit in a new cache of the store.
    fn found(cache: &Cache, number: u64) -> Option<Vec<u8>> {
        let group = cache.group(&facts(0));
        group.wait(Duration::from_secs(5));
        group.find(&facts(number)).map(|found| found.payload)
    }

    fn keep(cache: &Cache, number: u64, payload: &[u8]) {
        cache.group(&facts(0)).keep(&facts(number), COST, || Some(payload.to_vec()));
        cache.flush();
    }

    #[test]
    fn entries_of_the_far_store_are_copied_into_the_near_one() {
        let (near, far) = (Arc::new(Breakable::default()), Arc::new(Breakable::default()));
        let key = CacheKey::new([3; 32]);
        keep(&Cache::new(far.clone(), &key), 1, b"code");
        let both = || Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &key);
        assert_eq!(found(&both(), 1).unwrap(), b"code");
        assert_eq!((near.count(), far.count()), (1, 1));
        let asked = far.asked.load(Ordering::Relaxed);
        assert!(found(&both(), 1).is_some());
        assert_eq!(far.asked.load(Ordering::Relaxed), asked, "the near store has it");
        keep(&both(), 2, b"more");
        keep(&Cache::new(far.clone(), &key), 3, b"elsewhere");
        assert_eq!(found(&both(), 2).unwrap(), b"more");
        let cache = both();
        let group = cache.group(&facts(0));
        assert!(
            group.want(&facts(3), Duration::from_secs(50)),
            "what the near one lacks is looked for in the far one"
        );
        assert_eq!(found(&both(), 3).unwrap(), b"elsewhere");
        assert_eq!(cache.stats().errors, 0);
    }

    #[test]
    fn one_store_that_fails_leaves_the_other_one_and_is_asked_less_and_less() {
        let (near, far) = (Arc::new(Breakable::default()), Arc::new(Breakable::default()));
        let key = CacheKey::new([3; 32]);
        let cache = Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &key);
        keep(&cache, 100, b"code");
        far.set_broken(true);
        let before = far.asked.load(Ordering::Relaxed);
        (1..50).for_each(|number| keep(&cache, number, b"code"));
        let asked = far.asked.load(Ordering::Relaxed) - before;
        assert!((1..=4).contains(&asked), "{asked}");
        assert_eq!(cache.stats().errors, asked, "{}", cache.stats());
        let other = Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &key);
        assert!((1..50).all(|number| found(&other, number).is_some()), "the near store works on");
        near.set_broken(true);
        let other = Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &key);
        assert!(found(&other, 1).is_none());
        let group = other.group(&facts(0));
        group.keep(&facts(7), COST, || panic!("nothing is prepared for a store that fails"));
        assert!(other.stats().left_alone > 0);
    }

    #[test]
    fn foreign_and_damaged_entries_are_counted_and_written_over() {
        let store = Arc::new(Breakable::default());
        let cache = Cache::new(store.clone(), &CacheKey::new([3; 32]));
        keep(&cache, 1, b"code");
        let key = CacheKey::new([4; 32]);
        let other = || Cache::new(store.clone(), &key);
        assert_ne!(cache.name(&facts(0)), other().name(&facts(0)));
        // Copies an entry that is sealed with another key.
        let entry = store.get(&cache.name(&facts(0))).unwrap().unwrap();
        store.put(&other().name(&facts(0)), &entry).unwrap();
        let first = other();
        assert!(found(&first, 1).is_none());
        assert_eq!((first.stats().refused, first.stats().misses, first.stats().hits), (1, 1, 0));
        keep(&first, 1, b"own");
        let second = other();
        assert_eq!(found(&second, 1).unwrap(), b"own");
        assert_eq!((second.stats().refused, second.stats().saved), (0, COST));
        let group = second.group(&facts(0));
        assert!(group.wait(Duration::from_secs(5)));
        let unfit = group.find(&facts(1)).unwrap();
        group.refuse(&unfit);
        assert_eq!((second.stats().refused, second.stats().misses, second.stats().hits), (1, 1, 1));
        assert!(group.find(&facts(1)).is_none(), "it is forgotten");
    }
}
