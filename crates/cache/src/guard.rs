//! The store of a cache: its errors are counted and hidden, and it is not used for a while when it fails.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | count, take a count back, read a count | Relaxed | – | nothing: they are statistics |
//!
//! An error of a read closes the store for reads and writes, one of a write for writes alone (`breaker.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::batch::Sealer;
use crate::breaker::Breaker;
use crate::digest::Fingerprint;
use crate::key::CacheKey;
use crate::line::Line;
use crate::store::{CacheStore, Claim, EntryName, StoreError};

const NAMES: &str = "brolga-cache 2026-11 names of entries";
const CLAIMS: &str = "brolga-cache 2026-11 names of claims";
const SEALS: &str = "brolga-cache 2026-11 seals of entries";

/// How long callers wait for the store at least, by default, and who drops a cache.
const PATIENCE: Duration = Duration::from_millis(2);

/// The part of a cache that its thread uses too. The store's errors are counted, and a store that fails is not used for a while.
pub(crate) struct Shared {
    names: [u8; 32],
    claims: [u8; 32],
    pub(crate) sealer: Sealer,
    store: Box<dyn CacheStore>,
    reads: Breaker,
    writes: Breaker,
    pub(crate) counts: Counts,
    pub(crate) line: Arc<Line>,
    /// How long callers wait for the store at least.
    pub(crate) patience: Duration,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) kept: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) left_alone: AtomicU64,
    pub(crate) saved: AtomicU64,
    pub(crate) waited: AtomicU64,
}

impl Shared {
    pub(crate) fn new(store: Box<dyn CacheStore>, key: &CacheKey) -> Shared {
        Shared {
            names: key.derive(NAMES),
            claims: key.derive(CLAIMS),
            sealer: Sealer::new(key.derive(SEALS)),
            store,
            reads: Breaker::default(),
            writes: Breaker::default(),
            counts: Counts::default(),
            line: Arc::default(),
            patience: PATIENCE,
        }
    }

    pub(crate) fn describe(&self) -> String {
        self.store.describe()
    }

    pub(crate) fn hidden_errors(&self) -> u64 {
        self.store.hidden_errors()
    }

    /// The name of the entry of a group.
    pub(crate) fn name(&self, group: &Fingerprint) -> EntryName {
        EntryName::new(*blake3::keyed_hash(&self.names, group.as_bytes()).as_bytes())
    }

    /// The name under which the making of a unit is claimed.
    pub(crate) fn claim_name(&self, facts: &Fingerprint) -> EntryName {
        EntryName::new(*blake3::keyed_hash(&self.claims, facts.as_bytes()).as_bytes())
    }

    /// The answer of the store; `None` if it has none.
    pub(crate) fn get(&self, name: &EntryName, is_again: bool) -> Option<Option<Vec<u8>>> {
        let get = || if is_again { self.store.get_again(name) } else { self.store.get(name) };
        self.ask(&self.reads, get)
    }

    /// A claim is a write: who may not make one may not write.
    pub(crate) fn claim(&self, name: &EntryName) -> Option<Option<Claim>> {
        self.ask(&self.writes, || self.store.claim(name))
    }

    /// Adds bytes with this number of new units to an entry, or replaces it by them.
    pub(crate) fn put(&self, name: &EntryName, bytes: &[u8], is_anew: bool, units: u64) -> bool {
        let put = || match is_anew {
            true => self.store.put(name, bytes),
            false => self.store.append(name, bytes),
        };
        let is_written = self.ask(&self.writes, put).is_some();
        if is_written {
            add(&self.counts.kept, units);
            add(&self.counts.written, bytes.len() as u64);
        }
        is_written
    }

    pub(crate) fn is_near(&self) -> bool {
        self.store.is_near()
    }

    /// Whether it makes sense to prepare something for the store.
    pub(crate) fn is_writable(&self) -> bool {
        self.reads.is_open() && self.writes.is_open() && self.store.is_writable()
    }

    /// Undoes the counting of a hit.
    pub(crate) fn refuse(&self, saved: u64) {
        let counts = &self.counts;
        counts.hits.fetch_sub(1, Ordering::Relaxed); // C1
        counts.saved.fetch_sub(saved, Ordering::Relaxed); // C1
        add(&counts.refused, 1);
        add(&counts.misses, 1);
    }

    /// Calls the store. A panic in it counts as an error: it ends neither a compilation nor the thread.
    fn ask<T>(&self, breaker: &Breaker, ask: impl FnOnce() -> Result<T, StoreError>) -> Option<T> {
        let caught = || {
            let answer = catch_unwind(AssertUnwindSafe(ask));
            answer.unwrap_or_else(|_| Err(StoreError::new("the store", "it panicked")))
        };
        match breaker.try_now(caught) {
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

pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed); // C1
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
