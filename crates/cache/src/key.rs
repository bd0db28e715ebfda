//! The key of a user or a fleet: code in entries sealed with it is run.
//!
//! ```text
//!   key file (64 digits, readable only by its owner) ──► CacheKey ──┬─ derive ──► names of entries
//!                                                                    └─ derive ──► seals of entries
//! ```
//!
//! A holder of the key can make all its users run code, so it is as secret as a password: it does not belong
//! in the directory or store of the entries, which others may be able to write to. A fleet that shares a
//! store uses the same key file on all its machines.
//!
//! Names are derived from the key, too: users of the same store with different keys never find each other's
//! entries.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brolga_files::{FileError, Links, open, read_at_most};

/// The number of digits in a key file.
const DIGITS: usize = 64;
/// A limit on the size of a key file, including trailing blanks.
const MOST_BYTES: u64 = 4096;
const NOT_DIGITS: &str = "it has not 64 hexadecimal digits";

/// The key that seals entries.
#[derive(Clone)]
pub struct CacheKey([u8; 32]);

/// A proof that a holder of a key has seen some bytes. Seals are compared in constant time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal(blake3::Hash);

impl Seal {
    /// A seal that came with the bytes.
    pub fn of_bytes(bytes: [u8; 32]) -> Seal {
        Seal(blake3::Hash::from_bytes(bytes))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// Random bytes that are used once.
///
/// # Errors
/// The system cannot provide random numbers.
pub fn nonce() -> Result<[u8; 32], KeyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| KeyError::Random(error.to_string()))?;
    Ok(bytes)
}

/// Why a key could not be loaded or made.
#[derive(thiserror::Error, Debug)]
pub enum KeyError {
    /// The system refuses the file.
    #[error("cannot {what} the key `{path}`: {source}")]
    File {
        /// The action that failed.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not contain a key.
    #[error("`{path}` is not a key: {reason}")]
    Malformed {
        /// The file.
        path: String,
        /// The evidence.
        reason: &'static str,
    },
    /// The system cannot provide random numbers.
    #[error("there are no random numbers for a key: {0}")]
    Random(String),
}

impl CacheKey {
    /// A key that the embedder stores elsewhere.
    pub fn new(bytes: [u8; 32]) -> CacheKey {
        CacheKey(bytes)
    }

    /// A random key, for a cache used by a single process.
    ///
    /// # Errors
    /// The system cannot provide random numbers.
    pub fn random() -> Result<CacheKey, KeyError> {
        nonce().map(CacheKey)
    }

    /// The key in a file, which is created with a random key if it does not exist. If several processes
    /// create it at the same time, all get the same key.
    ///
    /// # Errors
    /// The system refuses access to the file; it does not contain a key; users other than its owner may read
    /// or write it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<CacheKey, KeyError> {
        let path = path.as_ref();
        match read(path) {
            Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                make(path)?;
                read(path)
            }
            found => found,
        }
    }

    /// The bytes of the key, to pass it to a process that the caller has started.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A seal of some bytes for one purpose, which only a holder of the key can make. The lengths of the parts are sealed with them.
    pub fn seal(&self, purpose: &str, parts: &[&[u8]]) -> Seal {
        let mut hasher = blake3::Hasher::new_keyed(&self.derive(purpose));
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Seal(hasher.finalize())
    }

    /// A key for one purpose.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey(..)")
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> KeyError {
    KeyError::File { what, path: path.display().to_string(), source }
}

fn malformed(path: &Path, reason: &'static str) -> KeyError {
    KeyError::Malformed { path: path.display().to_string(), reason }
}

fn read(path: &Path) -> Result<CacheKey, KeyError> {
    let file = open(path, Links::Followed).map_err(|error| failed("read", path, error.into()))?;
    let facts = file.metadata().map_err(|error| failed("read", path, error))?;
    if facts.permissions().mode() & 0o077 != 0 {
        return Err(malformed(path, "others than its owner may read or write it"));
    }
    let text = match read_at_most(file, facts.len(), MOST_BYTES) {
        Err(FileError::TooLarge { .. }) => return Err(malformed(path, NOT_DIGITS)),
        read => read.map_err(|error| failed("read", path, error.into()))?,
    };
    let digits = text.trim_ascii_end();
    if digits.len() != DIGITS {
        return Err(malformed(path, NOT_DIGITS));
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
            return Err(malformed(path, "it has something else than hexadecimal digits"));
        };
        *byte = (high << 4 | low) as u8;
    }
    Ok(CacheKey(key))
}

/// Writes a new key under a temporary name and links it to `path`, unless another process was faster.
fn make(path: &Path) -> Result<(), KeyError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| failed("make", path, error))?;
    let CacheKey(bytes) = CacheKey::random()?;
    // Such a file is readable only by its owner.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed("make", path, error))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let written = writeln!(file, "{digits}").and_then(|()| file.as_file().sync_all());
    written.map_err(|error| failed("write", path, error))?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("make", path, error.error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_and_read_by_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/cache.key");
        let keys: Vec<CacheKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| CacheKey::from_file(&path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| key.0 == keys[0].0));
        assert_ne!(keys[0].0, [0; 32]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left over");
        assert_eq!(format!("{:?}", keys[0]), "CacheKey(..)");
    }

    #[test]
    fn a_seal_is_of_one_key_one_purpose_and_these_parts() {
        let key = CacheKey::new([7; 32]);
        let seal = key.seal("a test", &[b"ab", b"c"]);
        assert_eq!(Seal::of_bytes(*seal.as_bytes()), seal);
        assert_ne!(key.seal("a test", &[b"a", b"bc"]), seal, "borders between parts are sealed");
        assert_ne!(key.seal("another test", &[b"ab", b"c"]), seal);
        assert_ne!(CacheKey::new([8; 32]).seal("a test", &[b"ab", b"c"]), seal);
    }

    #[test]
    fn another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        CacheKey::from_file(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = CacheKey::from_file(&path).unwrap_err().to_string();
        assert!(refused.contains("others than its owner"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for (text, reason) in
            [("abc\n".to_owned(), "64"), ("z".repeat(64), "digits"), ("é".repeat(32), "digits")]
        {
            fs::write(&path, text).unwrap();
            let refused = CacheKey::from_file(&path).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        assert!(matches!(CacheKey::from_file(folder.path()), Err(KeyError::File { .. })));
    }
}
