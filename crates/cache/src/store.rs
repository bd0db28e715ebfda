//! Stores: bytes under names.
//!
//! A store need not be trusted: entries are verified by their seals (`sealed.rs`). It may lose entries at any
//! time, return old ones, and be used by many processes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The name of an entry: 64 hexadecimal digits, derived from the facts that the entry depends on and from the
/// key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryName([u8; 32]);

impl EntryName {
    /// A name with these bytes.
    pub fn new(bytes: [u8; 32]) -> EntryName {
        EntryName(bytes)
    }

    /// The 32 bytes that the digits represent.
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

/// A failed request to a store. It never makes a compilation fail.
#[derive(thiserror::Error, Debug)]
#[error("{store}: {reason}")]
pub struct StoreError {
    /// The store's name in messages.
    pub store: String,
    /// The reason, as the store states it.
    pub reason: String,
}

impl StoreError {
    /// An error of the store with this name.
    pub fn new(store: impl Into<String>, reason: impl fmt::Display) -> StoreError {
        StoreError { store: store.into(), reason: reason.to_string() }
    }
}

/// The same claim is refused to others until it is dropped, or its process has ended.
pub struct Claim {
    /// Dropping it releases the claim.
    _held: Box<dyn Any + Send>,
}

impl Claim {
    /// Dropping `held` releases the claim.
    pub fn new(held: impl Any + Send) -> Claim {
        Claim { _held: Box::new(held) }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(..)")
    }
}

/// Bytes under names. Its methods are called from any thread.
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

    /// The entry with this name; `None` if there is none.
    ///
    /// # Errors
    /// The store cannot answer. It then gets fewer requests.
    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError>;

    /// The entry with this name once more, because something was missing in it. A store of several levels asks the
    /// farther ones.
    ///
    /// # Errors
    /// As [`CacheStore::get`].
    fn get_again(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(name)
    }

    /// Stores an entry, replacing any other with its name. Readers find the old entry or the new one.
    ///
    /// # Errors
    /// The entry was not stored. The store then gets fewer requests.
    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError>;

    /// Adds bytes at the end of an entry, which is made if there is none. Readers may find a part of the bytes. By
    /// default the entry is read and stored again, which loses what another process adds at the same moment.
    ///
    /// # Errors
    /// As [`CacheStore::put`].
    fn append(&self, name: &EntryName, more: &[u8]) -> Result<(), StoreError> {
        let mut entry = self.get(name)?.unwrap_or_default();
        entry.extend_from_slice(more);
        self.put(name, &entry)
    }

    /// Claims the making of something: then others wait for it instead of making it too; `None` if another one
    /// has the claim. It does not wait. By default everyone gets it, and nobody waits.
    ///
    /// # Errors
    /// The store cannot answer. Then nobody waits, either.
    fn claim(&self, name: &EntryName) -> Result<Option<Claim>, StoreError> {
        let _ = name;
        Ok(Some(Claim::new(())))
    }

    /// Whether it answers at once, as a local directory does. Then callers make reads and claims themselves, and the
    /// cache needs no thread until something is written.
    fn is_near(&self) -> bool {
        false
    }

    /// Whether it takes entries, as far as it can tell. If not, none are prepared for it.
    fn is_writable(&self) -> bool {
        true
    }

    /// The number of errors that were not returned, such as the errors of one of two stores while the other
    /// served the request.
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

            fn get_again(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
                (**self).get_again(name)
            }

            fn append(&self, name: &EntryName, more: &[u8]) -> Result<(), StoreError> {
                (**self).append(name, more)
            }

            fn claim(&self, name: &EntryName) -> Result<Option<Claim>, StoreError> {
                (**self).claim(name)
            }

            fn is_near(&self) -> bool {
                (**self).is_near()
            }

            fn is_writable(&self) -> bool {
                (**self).is_writable()
            }

            fn hidden_errors(&self) -> u64 {
                (**self).hidden_errors()
            }
        }
    )*};
}

pointers! { Arc, Box }
