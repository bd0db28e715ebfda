//! The cache: seals, opens and counts entries, and hides failures of the store from compilations.
//!
//! | result | is |
//! |---|---|
//! | an entry with its seal | a hit |
//! | nothing, or the store is not used at present | a miss |
//! | an entry that does not open: damaged, truncated, with another key or name | refused, and a miss; the next [`Cache::keep`] overwrites it |
//! | an error | counted, and a miss |
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | count, take a count back, read a count | Relaxed | – | nothing: they are statistics |
//!
//! Entries are written by a thread of the cache (`writer.rs`); look-ups also find entries that are still
//! pending.
//!
//! Cost of a hit: the store's, and hashing the entry, about a microsecond per kilobyte.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::breaker::Breaker;
use crate::digest::Fingerprint;
use crate::key::CacheKey;
use crate::sealed::Sealer;
use crate::store::{CacheStore, EntryName, StoreError};
use crate::writer::Writer;

const NAMES: &str = "brolga-cache 2026-11 names of entries";
const SEALS: &str = "brolga-cache 2026-11 seals of entries";

/// Larger payloads are not kept.
const MAX_PAYLOAD: usize = 256 << 20;

/// The entries of one store, sealed with one key. Engines and sessions share it.
///
/// A thread of the cache writes to the store, from the first [`Cache::keep`] on. Dropping the cache waits
/// until all entries are written, and so does [`Cache::flush`]; if a process ends without either, its last
/// entries have to be compiled again.
///
/// ```
/// use brolga_cache::{Cache, CacheKey, Digest, DirectoryStore};
/// use std::time::Duration;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// let key = CacheKey::from_file(path.join("key"))?;
/// let cache = Cache::new(DirectoryStore::open(path.join("entries"), 64 << 20)?, &key);
/// let mut facts = Digest::new("squares");
/// facts.word(12);
/// let facts = facts.finish();
/// assert!(cache.find(&facts).is_none());
/// cache.keep(&facts, b"144", Duration::from_millis(3));
/// let found = cache.find(&facts).map(|found| found.payload);
/// assert_eq!(found.as_deref(), Some(&b"144"[..]));
/// assert_eq!((cache.stats().hits, cache.stats().misses), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cache {
    names: [u8; 32],
    sealer: Sealer,
    guarded: Arc<Guarded>,
    writer: Writer,
}

/// A store whose errors are counted, and which is not used for a while when it fails repeatedly.
struct Guarded {
    store: Box<dyn CacheStore>,
    breaker: Breaker,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    read: AtomicU64,
    kept: AtomicU64,
    written: AtomicU64,
    errors: AtomicU64,
    left_alone: AtomicU64,
    saved: AtomicU64,
}

/// Counters of a cache since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Entries that were found and opened.
    pub hits: u64,
    /// Look-ups that found nothing, or nothing that opened.
    pub misses: u64,
    /// Entries that were found but did not open (damaged, or sealed with another key), or were not in the
    /// form that their name promised.
    pub refused: u64,
    /// The total bytes of the entries found.
    pub read: u64,
    /// Entries that were written.
    pub kept: u64,
    /// The total bytes of the entries written.
    pub written: u64,
    /// Errors of the store.
    pub errors: u64,
    /// Requests that were not made because the store had failed repeatedly.
    pub left_alone: u64,
    /// The time that it took to make the entries found, less the time that it took to find them.
    pub saved: Duration,
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheStats { hits, misses, refused, read, kept, written, errors, left_alone, saved } = self;
        write!(f, "{hits} hits, {misses} misses, {refused} refused, {read} bytes read, ")?;
        write!(f, "{kept} kept, {written} bytes written, {errors} errors, ")?;
        write!(f, "{left_alone} requests left out, {:.3} s saved", saved.as_secs_f64())
    }
}

/// An entry that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The payload passed to [`Cache::keep`].
    pub payload: Vec<u8>,
    /// The time that it saves.
    saved: Duration,
}

impl Cache {
    /// A cache that seals the store's entries with `key`.
    pub fn new(store: impl CacheStore + 'static, key: &CacheKey) -> Cache {
        let (breaker, counts) = (Breaker::default(), Counts::default());
        let guarded = Arc::new(Guarded { store: Box::new(store), breaker, counts });
        let store = Arc::clone(&guarded);
        Cache {
            names: key.derive(NAMES),
            sealer: Sealer::new(key.derive(SEALS)),
            guarded,
            writer: Writer::new(Box::new(move |name, entry| store.put(name, entry))),
        }
    }

    /// The name of the entry that depends on these facts.
    pub fn name(&self, facts: &Fingerprint) -> EntryName {
        EntryName::new(*blake3::keyed_hash(&self.names, facts.as_bytes()).as_bytes())
    }

    /// The entry that depends on these facts; `None` if there is none, or it does not open.
    pub fn find(&self, facts: &Fingerprint) -> Option<Found> {
        let start = Instant::now();
        let (name, counts) = (self.name(facts), &self.guarded.counts);
        let entry = self.writer.pending(&name).or_else(|| self.guarded.get(&name));
        let found = entry.and_then(|entry| {
            let bytes = entry.len() as u64;
            match self.sealer.open(&name, entry) {
                Some(opened) => Some((bytes, opened)),
                None => {
                    add(&counts.refused, 1);
                    None
                }
            }
        });
        let Some((bytes, opened)) = found else {
            add(&counts.misses, 1);
            return None;
        };
        add(&counts.hits, 1);
        add(&counts.read, bytes);
        let saved = Duration::from_micros(opened.cost).saturating_sub(start.elapsed());
        add(&counts.saved, micros(saved));
        Some(Found { payload: opened.payload, saved })
    }

    /// Undoes the counting of a hit: the entry is not in the form that its name promised.
    pub fn refuse(&self, found: &Found) {
        let counts = &self.guarded.counts;
        counts.hits.fetch_sub(1, Ordering::Relaxed); // C1
        counts.saved.fetch_sub(micros(found.saved), Ordering::Relaxed); // C1
        add(&counts.refused, 1);
        add(&counts.misses, 1);
    }

    /// Keeps a payload that depends on these facts and took `cost` to make. It reaches the store some time
    /// later; look-ups of this cache find it immediately.
    pub fn keep(&self, facts: &Fingerprint, payload: &[u8], cost: Duration) {
        if payload.len() > MAX_PAYLOAD {
            return;
        }
        let name = self.name(facts);
        let entry = self.sealer.seal(&name, micros(cost), payload);
        self.writer.write(name, entry);
    }

    /// Waits until no entry is pending, including those that other threads keep meanwhile. This takes as long
    /// as the store does.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// The counters. Updates by other threads may be missing, and entries that are not written yet are not
    /// counted ([`Cache::flush`]).
    pub fn stats(&self) -> CacheStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed); // C1
        let counts = &self.guarded.counts;
        CacheStats {
            hits: of(&counts.hits),
            misses: of(&counts.misses),
            refused: of(&counts.refused),
            read: of(&counts.read),
            kept: of(&counts.kept),
            written: of(&counts.written),
            errors: of(&counts.errors) + self.guarded.store.hidden_errors(),
            left_alone: of(&counts.left_alone),
            saved: Duration::from_micros(of(&counts.saved)),
        }
    }

    /// The store's name in messages.
    pub fn describe(&self) -> String {
        self.guarded.store.describe()
    }
}

impl Guarded {
    fn get(&self, name: &EntryName) -> Option<Vec<u8>> {
        self.ask(|| self.store.get(name)).flatten()
    }

    fn put(&self, name: &EntryName, entry: &[u8]) {
        if self.ask(|| self.store.put(name, entry)).is_some() {
            add(&self.counts.kept, 1);
            add(&self.counts.written, entry.len() as u64);
        }
    }

    /// Calls the store. A panic in it counts as an error: it ends neither a compilation nor the writer's
    /// thread.
    fn ask<T>(&self, ask: impl FnOnce() -> Result<T, StoreError>) -> Option<T> {
        let caught = || {
            let answer = catch_unwind(AssertUnwindSafe(ask));
            answer.unwrap_or_else(|_| Err(StoreError::new("the store", "it panicked")))
        };
        match self.breaker.try_now(caught) {
            Some(Ok(answer)) => Some(answer),
            Some(Err(_)) => {
                add(&self.counts.errors, 1);
                None
            }
            None => {
                add(&self.counts.left_alone, 1);
                None
            }
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("store", &self.describe()).field("stats", &self.stats()).finish()
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed); // C1
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Cache;
    use crate::digest::Digest;
    use crate::key::CacheKey;
    use crate::store::{CacheStore, EntryName, StoreError};

    struct Panicking;

    impl CacheStore for Panicking {
        fn describe(&self) -> String {
            "test".to_owned()
        }

        fn get(&self, _: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
            panic!("on purpose")
        }

        fn put(&self, _: &EntryName, _: &[u8]) -> Result<(), StoreError> {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_store_that_panics_is_one_that_fails() {
        let cache = Cache::new(Panicking, &CacheKey::new([3; 32]));
        let facts = Digest::new("test").finish();
        cache.keep(&facts, b"code", Duration::ZERO);
        cache.flush();
        assert!(cache.find(&facts).is_none());
        assert_eq!((cache.stats().errors, cache.stats().kept), (2, 0));
        for _ in 0..5 {
            assert!(cache.find(&facts).is_none());
        }
        assert_eq!((cache.stats().errors, cache.stats().left_alone), (3, 4));
    }
}
