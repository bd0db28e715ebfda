//! Stores: bytes under names.
//!
//! A store need not be trusted: its entries are opened by their seals (`sealed.rs`). It may lose entries at any time, give old ones, and be used by many
//! processes.

use std::fmt;
use std::sync::Arc;

/// The name of an entry: 64 hexadecimal digits. It follows from the facts that the entry depends on, and from the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryName([u8; 32]);

impl EntryName {
    /// A name of the given bytes.
    pub fn new(bytes: [u8; 32]) -> EntryName {
        EntryName(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A failed request to a store. No compilation fails for it.
#[derive(thiserror::Error, Debug)]
#[error("{store}: {reason}")]
pub struct StoreError {
    /// The store.
    pub store: String,
    /// The reason, in its own words.
    pub reason: String,
}

impl StoreError {
    /// An error of a store.
    pub fn new(store: impl Into<String>, reason: impl fmt::Display) -> StoreError {
        StoreError { store: store.into(), reason: reason.to_string() }
    }
}

/// Bytes under names. Any thread may call.
///
/// ```
/// use brolga_cache::{CacheStore, EntryName, StoreError};
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct InMemory(Mutex<BTreeMap<EntryName, Vec<u8>>>);
///
/// impl CacheStore for InMemory {
///     fn describe(&self) -> String {
///         "memory".to_owned()
///     }
///     fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
///         let entries = self.0.lock().map_err(|error| StoreError::new("memory", error))?;
///         Ok(entries.get(name).cloned())
///     }
///     fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
///         let mut entries = self.0.lock().map_err(|error| StoreError::new("memory", error))?;
///         entries.insert(*name, entry.to_vec());
///         Ok(())
///     }
/// }
/// let store = InMemory::default();
/// store.put(&EntryName::new([1; 32]), b"code")?;
/// assert_eq!(store.get(&EntryName::new([1; 32]))?.as_deref(), Some(&b"code"[..]));
/// # Ok::<(), StoreError>(())
/// ```
pub trait CacheStore: Send + Sync {
    /// The name of the store in messages, such as its directory.
    fn describe(&self) -> String;

    /// The entry of this name; none if there is none.
    ///
    /// # Errors
    /// The store cannot say. It gets fewer requests from then on.
    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps an entry, in place of any other of its name. Readers find the old entry or the new one.
    ///
    /// # Errors
    /// The store does not keep it. It gets fewer requests from then on.
    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError>;

    /// How many errors it has had that it did not give: those of one of two stores, while the other one served the request.
    fn hidden_errors(&self) -> u64 {
        0
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<S: CacheStore + ?Sized> CacheStore for $pointer<S> {
            fn describe(&self) -> String {
                (**self).describe()
            }

            fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
                (**self).get(name)
            }

            fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
                (**self).put(name, entry)
            }

            fn hidden_errors(&self) -> u64 {
                (**self).hidden_errors()
            }
        }
    )*};
}

pointers! { Arc, Box }
