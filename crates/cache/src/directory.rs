//! A directory of entries, for any number of processes at once.
//!
//! ```text
//!   DIR/ab/cdef…  an entry, under its name          DIR/tmp/…  an entry that is being written
//!   DIR/lock      held by the process that removes old entries
//! ```
//!
//! **Writing** is a file in `tmp` and a rename, so readers find complete files, and of two writers of one entry the last one wins. Nothing is made
//! durable: after a loss of power an entry may be truncated, and does not open.
//!
//! **Size.** When there are more bytes than the limit, the least recently used entries are removed until a tenth of it is free. The time of use is the
//! file's time of modification, which a read updates at most once a minute. The first write of a process walks the directory, and again each time when
//! the process has written a sixteenth of the limit; so each writing process may exceed the limit by a sixteenth. Only one process removes at a time.
//!
//! An entry that vanishes during a walk is no error: another process has removed it.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | D1 | take from what may be written until the next walk, set it again | Relaxed | – | nothing: threads that meet walk twice, or a little later |
//!
//! Cost: a read is an open, a query of size and time, and a read; a write creates a file and renames it. A walk visits each file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::store::{CacheStore, EntryName, StoreError};

/// Times of use are not brought up to date more often.
const USED_AGAIN: Duration = Duration::from_secs(60);
/// Files in `tmp` of this age were left over by a process that ended while it wrote.
const LEFT_OVER: Duration = Duration::from_secs(3600);
/// Larger files are no entries.
const MAX_BYTES: u64 = 512 << 20;
/// Digits of a name in the name of its folder.
const FOLDER: usize = 2;
/// The digits of a name.
const DIGITS: usize = 64;

/// A directory of entries, with a limit to their bytes.
#[derive(Debug)]
pub struct DirectoryStore {
    path: PathBuf,
    limit: u64,
    /// How many bytes may be written until the directory is walked again.
    until_walk: AtomicU64,
}

/// The entries of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectoryUse {
    /// How many there are.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An entry, as a walk finds it.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl DirectoryStore {
    /// The entries below a directory, which is made if it is not there, readable by its owner alone. Together they take about `limit` bytes at most.
    ///
    /// # Errors
    /// The system refuses the directory.
    pub fn open(path: impl AsRef<Path>, limit: u64) -> Result<DirectoryStore, StoreError> {
        let path = path.as_ref();
        let failed = |error: io::Error| StoreError::new(path.display().to_string(), error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        builder.create(path.join("tmp")).map_err(failed)?;
        Ok(DirectoryStore { path, limit, until_walk: AtomicU64::new(0) })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries there are, and their bytes.
    ///
    /// # Errors
    /// The system refuses the directory.
    pub fn in_use(&self) -> Result<DirectoryUse, StoreError> {
        let entries = self.entries().map_err(|error| self.failed(error))?;
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        Ok(DirectoryUse { entries: entries.len() as u64, bytes })
    }

    /// Removes all entries. Entries that other processes write meanwhile may stay.
    ///
    /// # Errors
    /// The system refuses to remove one; the others are gone all the same.
    pub fn clear(&self) -> Result<(), StoreError> {
        let mut first = None;
        for entry in self.entries().map_err(|error| self.failed(error))? {
            if let Err(error) = remove(&entry.path) {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), |error| Err(self.failed(error)))
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::new(self.describe(), error)
    }

    fn place(&self, name: &EntryName) -> PathBuf {
        let text = name.to_string();
        let (folder, file) = text.split_at(FOLDER);
        self.path.join(folder).join(file)
    }

    fn read(&self, name: &EntryName) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.place(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let facts = file.metadata()?;
        if !facts.is_file() || facts.len() > MAX_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0));
        // A file that grows meanwhile is no entry; it is not read for ever.
        (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
        let now = now();
        let is_stale =
            facts.modified().is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > USED_AGAIN));
        if is_stale {
            // Of a directory that one may only read, the writer decides what goes.
            let _ = file.set_modified(now);
        }
        Ok(Some(bytes))
    }

    fn write(&self, name: &EntryName, bytes: &[u8]) -> io::Result<()> {
        let place = self.place(name);
        let temporary = self.path.join("tmp");
        let mut file = match tempfile::NamedTempFile::new_in(&temporary) {
            // Another process has removed the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&temporary)?;
                tempfile::NamedTempFile::new_in(&temporary)?
            }
            made => made?,
        };
        file.write_all(bytes)?;
        let persisted = file.persist(&place).or_else(|error| {
            if error.error.kind() != io::ErrorKind::NotFound {
                return Err(error.error);
            }
            place.parent().map_or(Ok(()), fs::create_dir_all)?;
            error.file.persist(&place).map_err(|error| error.error)
        });
        persisted.map(drop)
    }

    /// Counts what was written, and removes old entries from time to time.
    fn note_written(&self, bytes: u64) -> io::Result<()> {
        let take = |left: u64| Some(left.saturating_sub(bytes));
        let left = self.until_walk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take); // D1
        if left.is_ok_and(|left| left > bytes) {
            return Ok(());
        }
        self.until_walk.store((self.limit / 16).max(1), Ordering::Relaxed); // D1
        self.remove_old()
    }

    /// Removes the entries that were not used for longest, if there is more than the limit.
    fn remove_old(&self) -> io::Result<()> {
        let lock = File::options().create(true).truncate(false).write(true).open(self.path.join("lock"))?;
        if lock.try_lock().is_err() {
            // Another process does so.
            return Ok(());
        }
        let now = now();
        for entry in files(&self.path.join("tmp"))? {
            if now.duration_since(entry.used).is_ok_and(|age| age > LEFT_OVER) {
                remove(&entry.path)?;
            }
        }
        let mut entries = self.entries()?;
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        if bytes <= self.limit {
            return Ok(());
        }
        entries.sort_by_key(|entry| entry.used);
        let wanted = self.limit - self.limit / 10;
        for entry in entries {
            if bytes <= wanted {
                break;
            }
            remove(&entry.path)?;
            bytes = bytes.saturating_sub(entry.bytes);
        }
        Ok(())
    }

    /// All entries. Other files of the directory are left alone.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.path)? {
            let folder = folder?;
            let is_own = is_digits(&folder.file_name(), FOLDER) && folder.file_type()?.is_dir();
            if is_own {
                found.extend(files(&folder.path())?.into_iter().filter(|entry| {
                    entry.path.file_name().is_some_and(|name| is_digits(name, DIGITS - FOLDER))
                }));
            }
        }
        Ok(found)
    }
}

impl CacheStore for DirectoryStore {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(name).map_err(|error| self.failed(error))
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        let written = self.write(name, entry).and_then(|()| self.note_written(entry.len() as u64));
        written.map_err(|error| self.failed(error))
    }
}

#[expect(clippy::disallowed_methods, reason = "ages of files say what goes, and nothing of results")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn is_digits(name: &std::ffi::OsStr, count: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == count && name.to_str().is_some_and(|name| name.bytes().all(is_digit))
}

/// The files of a folder, which may vanish.
fn files(folder: &Path) -> io::Result<Vec<Entry>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for file in listed {
        let file = file?;
        let facts = match file.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            facts => facts?,
        };
        if facts.is_file() {
            found.push(Entry { path: file.path(), bytes: facts.len(), used: facts.modified()? });
        }
    }
    Ok(found)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u8) -> EntryName {
        EntryName::new([number; 32])
    }

    #[test]
    fn entries_are_kept_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path().join("deep/cache"), 1 << 20).unwrap();
        assert_eq!(store.get(&name(1)).unwrap(), None);
        store.put(&name(1), b"one").unwrap();
        store.put(&name(1), b"uno").unwrap();
        store.put(&name(2), b"").unwrap();
        assert_eq!(store.get(&name(1)).unwrap().as_deref(), Some(&b"uno"[..]));
        assert_eq!(store.get(&name(2)).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(store.in_use().unwrap(), DirectoryUse { entries: 2, bytes: 3 });
        store.clear().unwrap();
        assert_eq!(store.in_use().unwrap(), DirectoryUse::default());
        assert_eq!(fs::read_dir(store.path().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn the_longest_unused_entries_go_and_foreign_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path(), 1600).unwrap();
        fs::create_dir_all(folder.path().join("ab")).unwrap();
        let foreign = [folder.path().join("readme"), folder.path().join("ab/readme")];
        foreign.iter().for_each(|path| fs::write(path, [0; 4000]).unwrap());
        let left_over = folder.path().join("tmp/.tmpOld");
        fs::write(&left_over, b"half an entry").unwrap();
        let age = |path: &Path, seconds: u64| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(now() - Duration::from_secs(seconds)).unwrap();
        };
        age(&left_over, 2 * LEFT_OVER.as_secs());
        for number in 0..16 {
            store.put(&name(number), &[number; 100]).unwrap();
            age(&store.place(&name(number)), 10_000 - u64::from(number));
        }
        assert_eq!(store.in_use().unwrap().entries, 16);
        assert!(!left_over.exists());
        // It is used, so it stays.
        assert!(store.get(&name(0)).unwrap().is_some());
        store.put(&name(100), &[1; 100]).unwrap();
        let there: Vec<u8> = (0..=100).filter(|&n| store.place(&name(n)).exists()).collect();
        assert_eq!(there, [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 100]);
        assert!(foreign.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_directory_that_goes_away_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path().join("cache"), 1 << 20).unwrap();
        store.put(&name(1), b"one").unwrap();
        fs::remove_dir_all(store.path()).unwrap();
        assert_eq!(store.get(&name(1)).unwrap(), None);
        store.put(&name(1), b"one").unwrap();
        assert_eq!(store.get(&name(1)).unwrap().as_deref(), Some(&b"one"[..]));
        fs::remove_dir_all(store.path()).unwrap();
        fs::write(store.path(), b"a file is in the way").unwrap();
        assert!(store.get(&name(1)).is_err());
        let refused = store.put(&name(1), b"one").unwrap_err().to_string();
        assert!(refused.contains("cache"), "{refused}");
    }

    #[test]
    fn readers_see_whole_entries_while_many_write_and_remove() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = folder.path();
                scope.spawn(move || {
                    // Each has its own store, as processes have.
                    let store = DirectoryStore::open(path, 40_000).unwrap();
                    for round in 0..100u32 {
                        let entry = name((round % 20) as u8);
                        store.put(&entry, &[writer; 4096]).unwrap();
                        if let Some(found) = store.get(&entry).unwrap() {
                            assert_eq!(found.len(), 4096);
                            assert!(found.iter().all(|byte| *byte == found[0]), "two entries are mixed");
                        }
                    }
                });
            }
        });
        // Writers that look at the directory at once may all leave what another one has just written. One that is alone does not.
        let store = DirectoryStore::open(folder.path(), 40_000).unwrap();
        store.put(&name(0), &[0; 4096]).unwrap();
        assert!(store.in_use().unwrap().bytes <= 40_000);
    }
}
