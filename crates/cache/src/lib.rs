//! Persistent storage of compiled code: stores of entries, and their seals.
//!
//! ```text
//!   facts that code depends on ── Digest ──► Fingerprint ──┐
//!                                                          ▼
//!   code, in its address-free form ──────────────────► Group ── line ── seals, opens ──► CacheStore
//!                                                          ▲                              ├─ DirectoryStore
//!                                Cache, with a CacheKey ───┘                              ├─ RedisStore (feature `redis`)
//!                                                                                         ├─ ObjectStore (feature `opendal`)
//!                                                                                         └─ TwoLevelStore: a near store and a far one
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `digest` | [`Digest`], [`Fingerprint`]: the facts that a unit depends on, as one number |
//! | `key` | [`CacheKey`]: the permission to write code that is run here |
//! | `cache` | [`Cache`]: its groups and counters |
//! | `group` | [`Group`]: the units of one program, which are one entry |
//! | `guard` | the store of a cache: counts, and hides its failures from compilations |
//! | `line` | the thread that asks the store |
//! | `batch` | the bytes of an entry, written and read |
//! | `breaker` | a circuit breaker for stores that fail |
//! | `store` | [`CacheStore`], [`EntryName`], [`Claim`], [`StoreError`] |
//! | `directory`, `claims` | [`DirectoryStore`] |
//! | `two_level` | [`TwoLevelStore`] |
//! | `redis_store` | `RedisStore`, with the feature `redis` |
//! | `object_store` | `ObjectStore`, with the feature `opendal` |
//!
//! **The rule** is that a process with a cache is not to take longer than one without:
//!
//! | danger | answer |
//! |---|---|
//! | a request for each function | the units of a program are one entry: one request brings them all |
//! | a store that is far, or slow | it is read in the background, and waited for during a tenth of the time that compiling takes; what comes later is found later |
//! | a store that is dead | one error, and it is left alone for a while |
//! | a store that takes nothing: full, or read-only | nothing is prepared for it |
//! | writing | a batch at the end of an entry, in the background; who ends waits for it during a tenth of the time that its units took |
//! | many processes that compile the same | one has the claim, which ends with its process; the others sleep until its units are there, at most a second |
//! | an entry that grows and grows | who publishes to a large one replaces it by what is used |
//!
//! **Contents of a unit** are opaque here: bytes that were compiled elsewhere. It must be safe to run code
//! written by a holder of the key, and only such units are returned: a batch that is damaged, was sealed
//! with another key, or is stored under another name is a miss.
//!
//! **Errors.** No store can make a compilation fail. An error is counted, and costs only time.

#![forbid(unsafe_code)]

mod batch;
mod breaker;
mod cache;
mod claims;
mod digest;
mod directory;
mod group;
mod guard;
mod key;
mod line;
#[cfg(feature = "opendal")]
mod object_store;
#[cfg(feature = "redis")]
mod redis_store;
mod store;
mod two_level;

pub use cache::{Cache, CacheStats};
pub use digest::{Digest, Fingerprint};
pub use directory::{DirectoryStore, DirectoryUse};
pub use group::{Found, Group};
pub use key::{CacheKey, KeyError, Seal, nonce};
#[cfg(feature = "opendal")]
pub use object_store::ObjectStore;
#[cfg(feature = "opendal")]
pub use opendal;
#[cfg(feature = "redis")]
pub use redis_store::RedisStore;
pub use store::{CacheStore, Claim, EntryName, StoreError};
pub use two_level::TwoLevelStore;
