//! Two stores: a near one, such as a directory of this machine, and a far one, such as the store of a fleet.
//!
//! | request | near store | far store |
//! |---|---|---|
//! | read | read first | read if the near one has no entry or fails; an entry found is written to the near one |
//! | write | written | written |
//!
//! Either may fail while the other serves the request; then the error is counted, and not returned. A store
//! is not used for a while after some consecutive errors (`breaker.rs`).
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | H1 | count a hidden error, read the count | Relaxed | – | nothing: it is a statistic |

use std::sync::atomic::{AtomicU64, Ordering};

use crate::breaker::Breaker;
use crate::store::{CacheStore, EntryName, StoreError};

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
}

impl<S: CacheStore> Level<S> {
    fn ask<T>(&self, ask: impl FnOnce(&S) -> Result<T, StoreError>) -> Asked<T> {
        self.breaker.try_now(|| ask(&self.store))
    }
}

impl<Near: CacheStore, Far: CacheStore> TwoLevelStore<Near, Far> {
    /// A store that reads the near store first, then the far one.
    pub fn new(near: Near, far: Far) -> TwoLevelStore<Near, Far> {
        let [near_breaker, far_breaker] = [(); 2].map(|()| Breaker::default());
        TwoLevelStore {
            near: Level { store: near, breaker: near_breaker },
            far: Level { store: far, breaker: far_breaker },
            hidden: AtomicU64::new(0),
        }
    }

    /// The request fails if all answers are errors; otherwise an error is only counted. A store that was not
    /// used has no answer.
    fn settle<T>(&self, near: Asked<T>, far: Asked<T>) -> Result<(), StoreError> {
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
            if let Some(Err(_)) = self.near.ask(|store| store.put(name, &entry)) {
                self.hide();
            }
            return Ok(Some(entry));
        }
        self.settle(near, far).map(|_| None)
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        let near = self.near.ask(|store| store.put(name, entry));
        let far = self.far.ask(|store| store.put(name, entry));
        if near.is_none() && far.is_none() {
            return Err(StoreError::new(self.describe(), "both stores are left alone for a while"));
        }
        self.settle(near, far)
    }

    fn hidden_errors(&self) -> u64 {
        let below = self.near.store.hidden_errors() + self.far.store.hidden_errors();
        let own = self.hidden.load(Ordering::Relaxed); // H1
        own + below
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

    #[test]
    fn entries_of_the_far_store_are_copied_into_the_near_one() {
        let (near, far) = (Arc::new(Breakable::default()), Arc::new(Breakable::default()));
        let key = CacheKey::new([3; 32]);
        Cache::new(far.clone(), &key).keep(&facts(1), b"code", COST);
        let cache = Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &key);
        assert_eq!(cache.find(&facts(1)).unwrap().payload, b"code");
        assert_eq!((near.count(), far.count()), (1, 1));
        let asked = far.asked.load(Ordering::Relaxed);
        assert!(cache.find(&facts(1)).is_some());
        assert_eq!(far.asked.load(Ordering::Relaxed), asked, "the near store has it");
        cache.keep(&facts(2), b"more", COST);
        cache.flush();
        assert_eq!((near.count(), far.count()), (2, 2));
        assert_eq!(cache.stats().errors, 0);
    }

    #[test]
    fn one_store_that_fails_leaves_the_other_one_and_is_asked_less_and_less() {
        let (near, far) = (Arc::new(Breakable::default()), Arc::new(Breakable::default()));
        let cache = Cache::new(TwoLevelStore::new(near.clone(), far.clone()), &CacheKey::new([3; 32]));
        cache.keep(&facts(0), b"code", COST);
        cache.flush();
        far.set_broken(true);
        for number in 1..50 {
            assert!(cache.find(&facts(number)).is_none());
            cache.keep(&facts(number), b"code", COST);
            cache.flush();
            assert!(cache.find(&facts(number)).is_some(), "the near store works on");
        }
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses), (49, 49));
        assert_eq!(stats.errors, 3, "{stats}");
        near.set_broken(true);
        assert!((0..50).all(|number| cache.find(&facts(number)).is_none()));
        assert!(near.asked.load(Ordering::Relaxed) < 200);
        assert!(cache.stats().left_alone > 0);
    }

    #[test]
    fn foreign_and_damaged_entries_are_counted_and_written_over() {
        let store = Arc::new(Breakable::default());
        let cache = Cache::new(store.clone(), &CacheKey::new([3; 32]));
        cache.keep(&facts(1), b"code", COST);
        cache.flush();
        let other = Cache::new(store.clone(), &CacheKey::new([4; 32]));
        assert_ne!(cache.name(&facts(1)), other.name(&facts(1)));
        // Copies an entry that is sealed with another key.
        let entry = store.get(&cache.name(&facts(1))).unwrap().unwrap();
        store.put(&other.name(&facts(1)), &entry).unwrap();
        assert!(other.find(&facts(1)).is_none());
        assert_eq!((other.stats().refused, other.stats().misses, other.stats().hits), (1, 1, 0));
        other.keep(&facts(1), b"own", COST);
        other.flush();
        let found = other.find(&facts(1)).unwrap();
        assert_eq!(found.payload, b"own");
        assert!(other.stats().saved > Duration::ZERO);
        other.refuse(&found);
        assert_eq!((other.stats().refused, other.stats().misses, other.stats().hits), (2, 2, 0));
        assert_eq!(other.stats().saved, Duration::ZERO);
    }
}
