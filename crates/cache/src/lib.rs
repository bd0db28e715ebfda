//! Compiled code that outlives the process: stores of entries, and the one who seals them.
//!
//! ```text
//!   facts that code depends on ── Digest ──► Fingerprint ──┐
//!                                                          ▼
//!   code, in its address-free form ──────────────────► Cache ── seals, opens, counts ──► CacheStore
//!                                                          ▲                              ├─ DirectoryStore
//!                                           CacheKey ──────┘                              ├─ RedisStore (feature `redis`)
//!                                                                                         ├─ ObjectStore (feature `opendal`)
//!                                                                                         └─ TwoLevelStore: one in front of another
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `digest` | [`Digest`], [`Fingerprint`]: the facts that an entry depends on, as one number |
//! | `key` | [`CacheKey`]: who may write what is run here |
//! | `store` | [`CacheStore`], [`EntryName`], [`StoreError`] |
//! | `sealed` | the bytes of an entry, both ways |
//! | `cache` | [`Cache`]: entries sealed and opened, counted, with failures of the store kept away from those who compile |
//! | `writer` | entries on their way to the store, written by a thread |
//! | `breaker` | a store that fails again and again is left alone for a while |
//! | `directory` | [`DirectoryStore`] |
//! | `two_level` | [`TwoLevelStore`] |
//! | `redis_store` | `RedisStore`, behind the feature `redis` |
//! | `object_store` | `ObjectStore`, behind the feature `opendal` |
//!
//! **Contents of an entry** are opaque here: bytes that were compiled elsewhere. It must be safe to run what somebody with the key has written,
//! and nothing else is given out: an entry that is damaged, was sealed with another key, or lies under another name is as if it were not there.
//!
//! **Errors.** No store can make a compilation fail. An error is counted, and costs the time until it came.

#![forbid(unsafe_code)]

mod breaker;
mod cache;
mod digest;
mod directory;
mod key;
#[cfg(feature = "opendal")]
mod object_store;
#[cfg(feature = "redis")]
mod redis_store;
mod sealed;
mod store;
mod two_level;
mod writer;

pub use cache::{Cache, CacheStats, Found};
pub use digest::{Digest, Fingerprint};
pub use directory::{DirectoryStore, DirectoryUse};
pub use key::{CacheKey, KeyError};
#[cfg(feature = "opendal")]
pub use object_store::ObjectStore;
#[cfg(feature = "opendal")]
pub use opendal;
#[cfg(feature = "redis")]
pub use redis_store::RedisStore;
pub use store::{CacheStore, EntryName, StoreError};
pub use two_level::TwoLevelStore;
