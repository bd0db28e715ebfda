//! The cache: its groups and its counters.
//!
//! | result of a look-up | is |
//! |---|---|
//! | a unit of a batch with its seal | a hit |
//! | nothing; or the store has not answered, has failed, or is not used at present | a miss |
//! | a batch that does not open: damaged, truncated, with another key or name | refused; the next process that publishes replaces the entry |
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | read a count | Relaxed | – | nothing: they are statistics |
//!
//! Cost of a group: one request, on the thread of the cache (`line.rs`), and hashing the entry, about a millisecond for a megabyte.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::digest::Fingerprint;
use crate::group::{Entry, Group};
use crate::guard::Shared;
use crate::key::CacheKey;
use crate::store::{CacheStore, EntryName};

/// The groups of one store, sealed with one key. Engines and sessions share it.
///
/// A thread of the cache asks the store, from the first group on. Dropping the cache waits for units that are not
/// stored yet, but only for a tenth of the time that they took to make; [`Cache::flush`] waits until all are.
/// A process that does not wait has its last units compiled again.
///
/// ```
/// use brolga_cache::{Cache, CacheKey, Digest, DirectoryStore};
/// use std::time::Duration;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// let key = CacheKey::from_file(path.join("key"))?;
/// let cache = Cache::new(DirectoryStore::open(path.join("entries"), 64 << 20)?, &key);
/// let squares = cache.group(&Digest::new("squares").finish());
/// let mut facts = Digest::new("square");
/// facts.word(12);
/// let facts = facts.finish();
/// assert!(!squares.want(&facts, Duration::from_secs(1)));
/// squares.keep(&facts, Duration::from_millis(3), || Some(b"144".to_vec()));
/// squares.publish();
/// let found = squares.find(&facts).map(|found| found.payload);
/// assert_eq!(found.as_deref(), Some(&b"144"[..]));
/// cache.flush();
/// assert_eq!((cache.stats().hits, cache.stats().kept), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cache {
    shared: Arc<Shared>,
    groups: Mutex<BTreeMap<EntryName, Weak<Entry>>>,
}

/// Counters of a cache since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Units that were found.
    pub hits: u64,
    /// Look-ups that found nothing.
    pub misses: u64,
    /// Entries with bytes that do not open (damaged, or sealed with another key), and units that were not in the
    /// form that their facts promised.
    pub refused: u64,
    /// The total bytes of the entries read.
    pub read: u64,
    /// Units that were written.
    pub kept: u64,
    /// The total bytes written.
    pub written: u64,
    /// Errors of the store.
    pub errors: u64,
    /// Requests that were not made, and units that were not prepared, because the store had failed or takes none.
    pub left_alone: u64,
    /// The time that it took to make the units found.
    pub saved: Duration,
    /// The time that callers have waited for the store, or for other processes that were making what they wanted.
    pub waited: Duration,
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheStats { hits, misses, refused, read, kept, written, errors, left_alone, saved, waited } =
            self;
        write!(f, "{hits} hits, {misses} misses, {refused} refused, {read} bytes read, ")?;
        write!(f, "{kept} kept, {written} bytes written, {errors} errors, ")?;
        write!(f, "{left_alone} requests left out, {:.3} s saved, ", saved.as_secs_f64())?;
        write!(f, "{:.3} s waited", waited.as_secs_f64())
    }
}

impl Cache {
    /// A cache that seals the store's entries with `key`.
    pub fn new(store: impl CacheStore + 'static, key: &CacheKey) -> Cache {
        let shared = Shared::new(Box::new(store), key);
        Cache { shared: Arc::new(shared), groups: Mutex::default() }
    }

    /// The same cache, whose callers wait for the store for at least this time, by default 2 ms: for stores that are
    /// worth it, and for tests.
    #[must_use]
    pub fn patience(mut self, at_least: Duration) -> Cache {
        // It has no thread yet, unless it has been used already.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.patience = at_least;
        }
        self
    }

    /// The group with this name, which is fetched in the background unless this process has it.
    pub fn group(&self, name: &Fingerprint) -> Group {
        let name = self.name(name);
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = groups.get(&name).and_then(Weak::upgrade) {
            return Group::of(&self.shared, entry);
        }
        groups.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(Entry::new(name));
        groups.insert(name, Arc::downgrade(&entry));
        drop(groups);
        Group::fetched(&self.shared, entry)
    }

    /// The name of the entry of a group.
    pub fn name(&self, group: &Fingerprint) -> EntryName {
        self.shared.name(group)
    }

    /// Waits until all units are published, including those that other threads keep meanwhile. This takes as long
    /// as the store does.
    pub fn flush(&self) {
        self.publish_all();
        self.shared.line.flush(None);
    }

    /// Publishes what was kept in all groups, also those whose maker is not ready.
    fn publish_all(&self) {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Arc<Entry>> = groups.values().filter_map(Weak::upgrade).collect();
        drop(groups);
        for entry in all.into_iter().filter(|entry| entry.is_fresh()) {
            Group::of(&self.shared, entry).publish_now();
        }
    }

    /// The counters. Updates by other threads may be missing, and units that are not written yet are not
    /// counted ([`Cache::flush`]).
    pub fn stats(&self) -> CacheStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed); // C1
        let counts = &self.shared.counts;
        CacheStats {
            hits: of(&counts.hits),
            misses: of(&counts.misses),
            refused: of(&counts.refused),
            read: of(&counts.read),
            kept: of(&counts.kept),
            written: of(&counts.written),
            errors: of(&counts.errors) + self.shared.hidden_errors(),
            left_alone: of(&counts.left_alone),
            saved: Duration::from_micros(of(&counts.saved)),
            waited: Duration::from_micros(of(&counts.waited)),
        }
    }

    /// The store's name in messages.
    pub fn describe(&self) -> String {
        self.shared.describe()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.publish_all();
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        let grace = groups.values().filter_map(Weak::upgrade).map(|entry| entry.grace()).sum::<Duration>();
        self.shared.line.close();
        self.shared.line.flush(Instant::now().checked_add(grace + self.shared.patience));
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("store", &self.describe()).field("stats", &self.stats()).finish()
    }
}
