//! A directory of entries, shared by any number of processes.
//!
//! ```text
//!   DIR/ab/cdef…  an entry, under its name          DIR/tmp/…  an entry that is being written
//!   DIR/lock      held by the process that removes old entries
//!   DIR/claims/…  held by the process that makes something (`claims.rs`)
//! ```
//!
//! **Writing.** An entry is replaced by creating a file in `tmp` and renaming it, so readers find complete files,
//! and the last one of two writers wins. Bytes are added at the end of a file by one system call, and two writers
//! do not mix; if the disk is full, the file gets its old length. Nothing is made durable: after a
//! power failure an entry may be truncated, and its last batch does not open.
//!
//! **Size** counts blocks of the disk. When the entries exceed the limit, the least recently used ones are removed until a tenth of it
//! is free. The time of use is the file's modification time, which a read updates at most once a minute. A
//! process walks the directory at its first write, and again whenever it has written a sixteenth of the
//! limit; so each writing process may exceed the limit by a sixteenth. Only one process removes at a time.
//!
//! An entry that vanishes during a walk is not an error: another process has removed it.
//!
//! **Other users.** Anyone who may write to the directory may put anything into it. No link below it is
//! followed, and no open blocks: a FIFO, a device or a link in place of an entry is a miss, which
//! [`CacheStore::hidden_errors`] counts, and the next write replaces it. A directory that others alone may write
//! to is read. While another process holds the lock
//! nothing is removed, and beyond one and a half times the limit nothing is written.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | D1 | take from the bytes left until the next walk, reset them | Relaxed | – | nothing: concurrent threads walk twice, or a little later |
//! | D2 | count files that are not entries | Relaxed | – | nothing: a counter for messages |
//!
//! Cost: a read opens the directory, a folder and the file, and checks each; so does an addition; a replacement
//! creates a file and renames it. A walk visits each file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use brolga_files::{FileError, Folder, Kind, Listed, read_at_most};

use crate::claims::{CLAIMS, claim};
use crate::store::{CacheStore, Claim, EntryName, StoreError};

/// The minimum interval between two updates of an entry's time of use.
const USED_AGAIN: Duration = Duration::from_secs(60);
/// Files in `tmp` of this age were left by a process that ended while writing.
const LEFT_OVER: Duration = Duration::from_secs(3600);
/// The number of attempts of a writer to a full directory to get the lock, with a pause before each.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Larger files are not entries.
const MAX_BYTES: u64 = 512 << 20;
/// The number of digits of an entry's name that form the name of its folder.
const FOLDER: usize = 2;
/// The number of digits of a name.
const DIGITS: usize = 64;

/// A directory of entries, with a limit on their total size.
#[derive(Debug)]
pub struct DirectoryStore {
    path: PathBuf,
    limit: u64,
    /// Whether this process may write to it.
    is_writable: bool,
    /// The number of bytes that may be written until the directory is walked again.
    until_walk: AtomicU64,
    /// How often something other than a file was found in place of an entry.
    unusual: AtomicU64,
}

/// The current entries of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectoryUse {
    /// The number of entries.
    pub entries: u64,
    /// The bytes that they take of the disk, in whole blocks.
    pub bytes: u64,
}

/// An entry found by a walk.
struct Entry {
    /// The name of its folder.
    folder: String,
    file: Listed,
}

/// The folder of files that are still being written.
const TEMPORARY: &str = "tmp";

impl DirectoryStore {
    /// The entries in a directory, which is created if it does not exist, readable only by its owner.
    /// Together they take about `limit` bytes of the disk at most.
    ///
    /// # Errors
    /// The directory cannot be created or read.
    pub fn open(path: impl AsRef<Path>, limit: u64) -> Result<DirectoryStore, StoreError> {
        let path = path.as_ref();
        let failed = |error: io::Error| StoreError::new(path.display().to_string(), error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let (until_walk, unusual) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut store = DirectoryStore { path, limit, is_writable: true, until_walk, unusual };
        let root = store.root().map_err(|error| store.failed(error))?;
        store.is_writable = root.is_writable();
        if store.is_writable {
            root.make_folder(TEMPORARY).map_err(|error| store.failed(error))?;
        }
        Ok(store)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of entries and their total size.
    ///
    /// # Errors
    /// The system refuses access to the directory.
    pub fn in_use(&self) -> Result<DirectoryUse, StoreError> {
        let entries = self.root().and_then(|root| entries(&root)).map_err(|error| self.failed(error))?;
        let bytes = entries.iter().map(|entry| entry.file.occupied).sum();
        Ok(DirectoryUse { entries: entries.len() as u64, bytes })
    }

    /// Removes all entries. Entries that other processes write meanwhile may remain.
    ///
    /// # Errors
    /// The system refuses to remove one; the others are removed nevertheless.
    pub fn clear(&self) -> Result<(), StoreError> {
        let mut first = None;
        let root = self.root().map_err(|error| self.failed(error))?;
        for entry in entries(&root).map_err(|error| self.failed(error))? {
            if let Err(error) = remove(&root, &entry) {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), |error| Err(self.failed(error)))
    }

    fn failed(&self, error: impl std::fmt::Display) -> StoreError {
        StoreError::new(self.describe(), error)
    }

    /// The directory itself. If something else is in its place, that is an error of the store and not a miss.
    fn root(&self) -> Result<Folder, FileError> {
        Folder::open(&self.path).map_err(|error| io::Error::from(error).into())
    }

    #[cfg(test)]
    fn place(&self, name: &EntryName) -> PathBuf {
        let (folder, file) = split(name);
        self.path.join(folder).join(file)
    }

    fn read(&self, name: &EntryName) -> Result<Option<Vec<u8>>, FileError> {
        let (folder, file) = split(name);
        let file = match self.root().and_then(|root| root.folder(&folder)).and_then(|found| found.file(&file))
        {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let facts = file.metadata()?;
        // A file that grows meanwhile is not an entry; it is not read forever.
        let bytes = read_at_most(&file, facts.len(), MAX_BYTES)?;
        let now = now();
        let is_stale =
            facts.modified().is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > USED_AGAIN));
        if is_stale {
            // In a read-only directory, the writer decides what is removed.
            let _ = file.set_modified(now);
        }
        Ok(Some(bytes))
    }

    /// The directory itself, which another process may have removed.
    fn made_root(&self) -> Result<Folder, FileError> {
        match self.root() {
            Err(error) if error.is_not_found() => {
                fs::create_dir_all(&self.path)?;
                self.root()
            }
            there => there,
        }
    }

    /// Adds bytes at the end of an entry.
    fn add(&self, name: &EntryName, bytes: &[u8]) -> Result<(), FileError> {
        let (folder, file) = split(name);
        let folder = self.made_root()?.make_folder(&folder)?;
        let mut added = match folder.appended(&file) {
            // The entry in its place is replaced.
            Err(FileError::Unusual { .. }) => return self.write(name, bytes),
            opened => opened?,
        };
        let before = added.metadata()?.len();
        if before.saturating_add(bytes.len() as u64) > MAX_BYTES {
            return self.write(name, bytes);
        }
        if let Err(error) = added.write_all(bytes) {
            // The first error is the one to report.
            let _ = added.set_len(before);
            return Err(error.into());
        }
        Ok(())
    }

    fn write(&self, name: &EntryName, bytes: &[u8]) -> Result<(), FileError> {
        let (folder, file) = split(name);
        let root = self.made_root()?;
        let (temporary, folder) = (root.make_folder(TEMPORARY)?, root.make_folder(&folder)?);
        let name = temporary_name()?;
        let mut written = temporary.fresh(&name)?;
        let done = written.write_all(bytes).and_then(|()| temporary.rename(&name, &folder, &file));
        if done.is_err() {
            // The first error is the one to report.
            let _ = temporary.remove(&name);
        }
        Ok(done?)
    }

    /// Counts written bytes, and removes old entries from time to time.
    fn note_written(&self, bytes: u64) -> Result<(), FileError> {
        let take = |left: u64| Some(left.saturating_sub(bytes));
        let left = self.until_walk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take); // D1
        if left.is_ok_and(|left| left > bytes) {
            return Ok(());
        }
        self.remove_old()?;
        self.until_walk.store((self.limit / 16).max(1), Ordering::Relaxed); // D1
        Ok(())
    }

    /// Removes the least recently used entries if the limit is exceeded.
    fn remove_old(&self) -> Result<(), FileError> {
        let root = self.root()?;
        let lock = root.lock_file("lock")?;
        if lock.try_lock().is_err() {
            let bytes: u64 = entries(&root)?.iter().map(|entry| entry.file.occupied).sum();
            if bytes <= self.limit.saturating_add(self.limit / 2) {
                // The other process removes them.
                return Ok(());
            }
            // The other process is slow, or holds the lock forever.
            if !is_free_soon(&lock) {
                return Err(io::Error::other("it is full, and another process holds its lock").into());
            }
        }
        let now = now();
        for name in [TEMPORARY, CLAIMS] {
            let temporary = root.make_folder(name)?;
            for file in temporary.list()? {
                let is_old = now.duration_since(file.changed).is_ok_and(|age| age > LEFT_OVER);
                if is_old && file.kind == Kind::File {
                    temporary.remove(&file.name)?;
                }
            }
        }
        let mut entries = entries(&root)?;
        let mut bytes: u64 = entries.iter().map(|entry| entry.file.occupied).sum();
        if bytes <= self.limit {
            return Ok(());
        }
        entries.sort_by_key(|entry| entry.file.changed);
        let wanted = self.limit - self.limit / 10;
        for entry in entries {
            if bytes <= wanted {
                break;
            }
            remove(&root, &entry)?;
            bytes = bytes.saturating_sub(entry.file.occupied);
        }
        Ok(())
    }
}

impl CacheStore for DirectoryStore {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        match self.read(name) {
            Err(FileError::Unusual { .. } | FileError::TooLarge { .. }) => {
                self.unusual.fetch_add(1, Ordering::Relaxed); // D2
                Ok(None)
            }
            read => read.map_err(|error| self.failed(error)),
        }
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        let written = self.write(name, entry).and_then(|()| self.note_written(entry.len() as u64));
        written.map_err(|error| self.failed(error))
    }

    fn append(&self, name: &EntryName, more: &[u8]) -> Result<(), StoreError> {
        let written = self.add(name, more).and_then(|()| self.note_written(more.len() as u64));
        written.map_err(|error| self.failed(error))
    }

    fn claim(&self, name: &EntryName) -> Result<Option<Claim>, StoreError> {
        if !self.is_writable {
            return Ok(Some(Claim::new(())));
        }
        self.made_root().and_then(|root| claim(&root, name)).map_err(|error| self.failed(error))
    }

    fn is_near(&self) -> bool {
        true
    }

    fn is_writable(&self) -> bool {
        self.is_writable
    }

    fn hidden_errors(&self) -> u64 {
        self.unusual.load(Ordering::Relaxed) // D2
    }
}

/// Whether another process releases its lock within a second.
#[expect(clippy::disallowed_methods, reason = "the system has no wait with an end for the lock of a file")]
fn is_free_soon(lock: &fs::File) -> bool {
    (0..LOCK_TRIES).any(|_| {
        thread::sleep(LOCK_PAUSE);
        lock.try_lock().is_ok()
    })
}

#[expect(clippy::disallowed_methods, reason = "ages of files say what goes, and nothing of results")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn is_digits(name: &str, count: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == count && name.bytes().all(is_digit)
}

/// The names of the folder and of the file of an entry.
fn split(name: &EntryName) -> (String, String) {
    let mut folder = name.to_string();
    let file = folder.split_off(FOLDER);
    (folder, file)
}

/// A unique name.
fn temporary_name() -> io::Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(random)))
}

/// All entries. Other files in the directory are ignored.
fn entries(root: &Folder) -> Result<Vec<Entry>, FileError> {
    let mut found = Vec::new();
    for folder in root.list()? {
        if folder.kind != Kind::Directory || !is_digits(&folder.name, FOLDER) {
            continue;
        }
        let files = match root.folder(&folder.name) {
            Err(error) if error.is_not_found() => continue,
            // Another process has put something else in its place.
            Err(FileError::Unusual { .. }) => continue,
            opened => opened?.list()?,
        };
        let of_entries = files
            .into_iter()
            .filter(|file| file.kind == Kind::File && is_digits(&file.name, DIGITS - FOLDER));
        found.extend(of_entries.map(|file| Entry { folder: folder.name.clone(), file }));
    }
    Ok(found)
}

fn remove(root: &Folder, entry: &Entry) -> Result<(), FileError> {
    match root.folder(&entry.folder) {
        Err(error) if error.is_not_found() => Ok(()),
        opened => Ok(opened?.remove(&entry.file.name)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Larger than a block of any usual file system is not needed: sizes are counted in these.
    const BLOCK: usize = 4096;

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
        let used = store.in_use().unwrap();
        assert!(used.entries == 2 && used.bytes >= 3, "{used:?}");
        store.clear().unwrap();
        assert_eq!(store.in_use().unwrap(), DirectoryUse::default());
        assert_eq!(fs::read_dir(store.path().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn the_longest_unused_entries_go_and_foreign_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path(), 16 * BLOCK as u64).unwrap();
        fs::create_dir_all(folder.path().join("ab")).unwrap();
        let foreign = [folder.path().join("readme"), folder.path().join("ab/readme")];
        foreign.iter().for_each(|path| fs::write(path, [0; 100_000]).unwrap());
        let left_over = folder.path().join("tmp/.tmpOld");
        fs::write(&left_over, b"half an entry").unwrap();
        let age = |path: &Path, seconds: u64| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(now() - Duration::from_secs(seconds)).unwrap();
        };
        age(&left_over, 2 * LEFT_OVER.as_secs());
        for number in 0..16 {
            store.put(&name(number), &[number; BLOCK]).unwrap();
            age(&store.place(&name(number)), 10_000 - u64::from(number));
        }
        assert_eq!(store.in_use().unwrap().entries, 16);
        assert!(!left_over.exists());
        // It is in use, so it remains.
        assert!(store.get(&name(0)).unwrap().is_some());
        store.put(&name(100), &[1; BLOCK]).unwrap();
        let there: Vec<u8> = (0..=100).filter(|&n| store.place(&name(n)).exists()).collect();
        assert_eq!(there, [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 100]);
        assert!(foreign.iter().all(|path| path.exists()));
    }

    #[test]
    fn bytes_are_added_at_the_end_and_those_of_many_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                let path = folder.path();
                scope.spawn(move || {
                    // Each has its own store, as separate processes would.
                    let store = DirectoryStore::open(path, 64 << 20).unwrap();
                    (0..50).for_each(|_| store.append(&name(1), &[writer; 5000]).unwrap());
                });
            }
        });
        let store = DirectoryStore::open(folder.path(), 64 << 20).unwrap();
        let entry = store.get(&name(1)).unwrap().unwrap();
        assert_eq!(entry.len(), 4 * 50 * 5000);
        assert!(entry.chunks(5000).all(|part| part.iter().all(|byte| *byte == part[0])), "two are mixed");
        assert!(store.in_use().unwrap().bytes >= entry.len() as u64);
    }

    #[test]
    fn a_claim_is_refused_to_others_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| DirectoryStore::open(folder.path(), 1 << 20).unwrap());
        for _ in 0..3 {
            let held = one.claim(&name(1)).unwrap().expect("nobody has it");
            assert!(other.claim(&name(1)).unwrap().is_none() && one.claim(&name(1)).unwrap().is_none());
            assert!(other.claim(&name(2)).unwrap().is_some(), "another name is another claim");
            drop(held);
        }
        assert_eq!(fs::read_dir(folder.path().join(CLAIMS)).unwrap().count(), 0, "nothing is left over");
        // A file of a process that was killed is nobody's claim.
        fs::write(folder.path().join(CLAIMS).join(name(3).to_string()), b"").unwrap();
        assert!(other.claim(&name(3)).unwrap().is_some());
    }

    #[test]
    fn of_many_that_claim_again_and_again_one_is_inside() {
        let folder = tempfile::tempdir().unwrap();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store = DirectoryStore::open(folder.path(), 1 << 20).unwrap();
                    let mut done = 0;
                    while done < 50 {
                        let Some(held) = store.claim(&name(1)).unwrap() else {
                            std::thread::yield_now();
                            continue;
                        };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                        done += 1;
                    }
                });
            }
        });
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
    fn what_is_no_file_is_a_miss_and_never_waited_for() {
        use rustix::fs::{CWD, FileType, mknodat};
        use std::os::unix::fs::symlink;
        let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path(), 10 * BLOCK as u64).unwrap();
        fs::write(outside.path().join("secret"), b"secret").unwrap();
        let replaced: [&dyn Fn(&Path); 4] = [
            &|path| fifo(path),
            &|path| symlink(outside.path().join("secret"), path).unwrap(),
            &|path| symlink("/dev/zero", path).unwrap(),
            &|path| File::create(path).unwrap().set_len(MAX_BYTES + 1).unwrap(),
        ];
        for (number, replace) in (0..).zip(replaced) {
            store.put(&name(number), b"one").unwrap();
            fs::remove_file(store.place(&name(number))).unwrap();
            replace(&store.place(&name(number)));
            assert_eq!(store.get(&name(number)).unwrap(), None);
            assert_eq!(store.hidden_errors(), u64::from(number) + 1);
            store.append(&name(number), b"two").unwrap();
            assert_eq!(store.get(&name(number)).unwrap().as_deref(), Some(&b"two"[..]));
        }
        assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
        // A FIFO as the lock: nothing is removed, and the error says why.
        let lock = folder.path().join("lock");
        fs::remove_file(&lock).unwrap();
        fifo(&lock);
        let refused = store.put(&name(9), &[1; 9 * BLOCK]).unwrap_err().to_string();
        assert!(refused.contains("a FIFO"), "{refused}");
    }

    #[test]
    fn nothing_outside_is_removed_or_written() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("f".repeat(DIGITS - FOLDER));
        fs::write(&kept, [0; 4000]).unwrap();
        File::options().write(true).open(&kept).unwrap().set_modified(now() - 2 * LEFT_OVER).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(folder.path(), BLOCK as u64).unwrap();
        symlink(outside.path(), folder.path().join("ff")).unwrap();
        assert_eq!(store.get(&name(0xff)).unwrap(), None);
        assert!(store.put(&name(0xff), &[1; 90]).is_err());
        assert!(store.append(&name(0xff), &[1; 90]).is_err());
        store.put(&name(1), &[1; 90]).unwrap();
        store.clear().unwrap();
        fs::remove_dir_all(folder.path().join("tmp")).unwrap();
        symlink(outside.path(), folder.path().join("tmp")).unwrap();
        assert!(store.put(&name(2), &[1; 90]).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert!(kept.exists());
    }

    #[test]
    fn a_lock_that_is_held_for_ever_stops_writers_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let held = File::create(folder.path().join("lock")).unwrap();
        held.lock().unwrap();
        let store = DirectoryStore::open(folder.path(), 10 * BLOCK as u64).unwrap();
        let refused = (0..40).find_map(|n| store.put(&name(n), &[n; BLOCK]).err()).unwrap().to_string();
        assert!(refused.contains("holds its lock"), "{refused}");
        assert!(store.in_use().unwrap().bytes <= 17 * BLOCK as u64);
        drop(held);
        store.put(&name(100), &[1; BLOCK]).unwrap();
        assert!(store.in_use().unwrap().bytes <= 10 * BLOCK as u64);
    }

    #[test]
    fn readers_see_whole_entries_while_many_write_and_remove() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = folder.path();
                scope.spawn(move || {
                    // Each has its own store, as separate processes would.
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
        // Concurrent writers may each keep what the other has just written. A lone writer does not.
        let store = DirectoryStore::open(folder.path(), 40_000).unwrap();
        store.put(&name(0), &[0; 4096]).unwrap();
        assert!(store.in_use().unwrap().bytes <= 40_000);
    }
}
