//! Folders by descriptor: no link is followed below a folder.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, accessat, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::error::{FileError, Kind};

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
}

/// A file or folder in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub name: String,
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    /// The bytes that it takes of the disk, which counts blocks; at least its size.
    pub occupied: u64,
    /// The time of its last modification.
    pub changed: SystemTime,
}

/// For folders: accessible only by their owner.
const PRIVATE_FOLDER: Mode = Mode::RWXU;
/// For files: accessible only by their owner.
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

impl Folder {
    /// Opens a folder by its path, whose last part must not be a link.
    ///
    /// # Errors
    /// The system refuses access, or it is not a folder.
    pub fn open(path: &Path) -> Result<Folder, FileError> {
        let looked = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        need(Kind::Directory, looked.st_mode)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Folder { descriptor: openat(CWD, path, flags, Mode::empty())? })
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// Like [`Folder::open`].
    pub fn folder(&self, name: &str) -> Result<Folder, FileError> {
        self.look(Kind::Directory, name)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Folder { descriptor: openat(&self.descriptor, name, flags, Mode::empty())? })
    }

    /// Opens a folder in this one, after creating it for its owner alone if it does not exist.
    ///
    /// # Errors
    /// Like [`Folder::open`].
    pub fn make_folder(&self, name: &str) -> Result<Folder, FileError> {
        match mkdirat(&self.descriptor, name, PRIVATE_FOLDER) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Opens a regular file in it for reading.
    ///
    /// # Errors
    /// Like [`open`](super::open).
    pub fn file(&self, name: &str) -> Result<File, FileError> {
        self.look(Kind::File, name)?;
        self.opened(name, OFlags::RDONLY)
    }

    /// Opens a regular file in it that serves as a lock and has no contents. It is created if it does not
    /// exist.
    ///
    /// # Errors
    /// Like [`open`](super::open).
    pub fn lock_file(&self, name: &str) -> Result<File, FileError> {
        match self.look(Kind::File, name) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => self.opened(name, OFlags::RDWR | OFlags::CREATE),
        }
    }

    /// Creates a file in it, for writing.
    ///
    /// # Errors
    /// The system refuses; the name already exists.
    pub fn fresh(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, PRIVATE_FILE)?.into())
    }

    /// Opens a regular file in it for writing at its end. It is created if it does not exist.
    ///
    /// # Errors
    /// Like [`open`](super::open).
    pub fn appended(&self, name: &str) -> Result<File, FileError> {
        match self.look(Kind::File, name) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => self.opened(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE),
        }
    }

    /// Whether this process may create files in it.
    pub fn is_writable(&self) -> bool {
        accessat(&self.descriptor, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()).is_ok()
    }

    /// Moves a file to another folder, replacing any file with that name there.
    ///
    /// # Errors
    /// The system refuses.
    pub fn rename(&self, name: &str, to: &Folder, new_name: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, name, &to.descriptor, new_name)?)
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The entries of the folder whose names are UTF-8. Entries that vanish meanwhile may be missing.
    ///
    /// # Errors
    /// The system refuses.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            found.extend(self.listed(entry.file_name(), name)?);
        }
        Ok(found)
    }

    fn listed(&self, raw: &CStr, name: &str) -> io::Result<Option<Listed>> {
        let facts = match statat(&self.descriptor, raw, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            facts => facts?,
        };
        let changed = Duration::from_secs(u64::try_from(facts.st_mtime).unwrap_or(0));
        let bytes = u64::try_from(facts.st_size).unwrap_or(0);
        Ok(Some(Listed {
            name: name.to_owned(),
            kind: kind(facts.st_mode),
            bytes,
            // The system's unit of this count, whatever the size of a block is. A file may have holes.
            occupied: u64::try_from(facts.st_blocks).unwrap_or(0).saturating_mul(512).max(bytes),
            changed: SystemTime::UNIX_EPOCH + changed,
        }))
    }

    fn look(&self, needed: Kind, name: &str) -> Result<(), FileError> {
        need(needed, statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
    }

    fn opened(&self, name: &str, flags: OFlags) -> Result<File, FileError> {
        let safe = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name, flags | safe, PRIVATE_FILE)?;
        need(Kind::File, fstat(&file)?.st_mode)?;
        Ok(file.into())
    }
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> FileError {
        FileError::System(error.into())
    }
}

fn need(needed: Kind, mode: rustix::fs::RawMode) -> Result<(), FileError> {
    kind(mode).need(needed)
}

fn kind(mode: rustix::fs::RawMode) -> Kind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        _ => Kind::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_name_leads_through_a_link() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), b"text").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("folder")).unwrap();
        symlink(outside.path().join("file"), inside.path().join("link")).unwrap();
        rustix::fs::mknodat(CWD, inside.path().join("fifo"), FileType::Fifo, PRIVATE_FILE, 0).unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let unusual = |error: FileError| match error {
            FileError::Unusual { found, .. } => found,
            FileError::System(_) | FileError::TooLarge { .. } => panic!("{error}"),
        };
        assert_eq!(unusual(folder.folder("folder").unwrap_err()), Kind::Link);
        assert_eq!(unusual(folder.make_folder("folder").unwrap_err()), Kind::Link);
        assert_eq!(unusual(folder.file("link").unwrap_err()), Kind::Link);
        assert_eq!(unusual(folder.lock_file("link").unwrap_err()), Kind::Link);
        assert_eq!(unusual(folder.file("fifo").unwrap_err()), Kind::Fifo);
        assert_eq!(unusual(folder.lock_file("fifo").unwrap_err()), Kind::Fifo);
        assert_eq!(unusual(folder.appended("link").unwrap_err()), Kind::Link);
        assert_eq!(unusual(folder.appended("fifo").unwrap_err()), Kind::Fifo);
        assert!(folder.is_writable());
        assert_eq!(unusual(Folder::open(&inside.path().join("folder")).unwrap_err()), Kind::Link);
        assert!(folder.fresh("link").is_err());
        folder.fresh("new").unwrap().write_all(b"new").unwrap();
        // A link is replaced rather than followed.
        folder.rename("new", &folder, "link").unwrap();
        assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"text");
        let deep = folder.make_folder("deep").unwrap();
        folder.rename("link", &deep, "file").unwrap();
        assert!(deep.file("file").is_ok() && folder.lock_file("lock").is_ok());
        let mut kinds: Vec<_> = folder.list().unwrap().into_iter().map(|one| (one.name, one.kind)).collect();
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        let expected =
            [("deep", Kind::Directory), ("fifo", Kind::Fifo), ("folder", Kind::Link), ("lock", Kind::File)];
        assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
        deep.remove("file").unwrap();
        deep.remove("file").unwrap();
    }
}
