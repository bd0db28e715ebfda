//! Persistent storage of compiled code: stores of entries, and their seals.
//!
//! ```text
//!   facts that code depends on ── Digest ──► Fingerprint ──┐
//!                                                          ▼
//!   code, in its address-free form ──────────────────► Cache ── seals, opens, counts ──► CacheStore
//!                                                          ▲                              ├─ DirectoryStore
//!                                           CacheKey ──────┘                              ├─ RedisStore (feature `redis`)
//!                                                                                         ├─ ObjectStore (feature `opendal`)
//!                                                                                         └─ TwoLevelStore: a near store and a far one
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `digest` | [`Digest`], [`Fingerprint`]: the facts that an entry depends on, as one number |
//! | `key` | [`CacheKey`]: the permission to write code that is run here |
//! | `store` | [`CacheStore`], [`EntryName`], [`StoreError`] |
//! | `sealed` | the bytes of an entry, written and read |
//! | `cache` | [`Cache`]: seals, opens and counts entries, and hides failures of the store from compilations |
//! | `writer` | entries pending for the store, written by a thread |
//! | `breaker` | a circuit breaker for stores that fail repeatedly |
//! | `directory` | [`DirectoryStore`] |
//! | `two_level` | [`TwoLevelStore`] |
//! | `redis_store` | `RedisStore`, with the feature `redis` |
//! | `object_store` | `ObjectStore`, with the feature `opendal` |
//!
//! **Contents of an entry** are opaque here: bytes that were compiled elsewhere. It must be safe to run code
//! written by a holder of the key, and only such entries are returned: an entry that is damaged, was sealed
//! with another key, or is stored under another name is a miss.
//!
//! **Errors.** No store can make a compilation fail. An error is counted, and costs only time.

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
pub use key::{CacheKey, KeyError, Seal, nonce};
#[cfg(feature = "opendal")]
pub use object_store::ObjectStore;
#[cfg(feature = "opendal")]
pub use opendal;
#[cfg(feature = "redis")]
pub use redis_store::RedisStore;
pub use store::{CacheStore, EntryName, StoreError};
pub use two_level::TwoLevelStore;
