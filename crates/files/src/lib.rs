//! Files and folders that others may have made or replaced, opened without blocking.
//!
//! Opening a FIFO waits for its other end, a device may have no end, a link may lead anywhere, and a file may
//! grow while it is read. So each file is checked before it is opened, is opened without blocking, and is
//! checked again; and at most a given number of bytes is read from it.
//!
//! | the path comes from | links | anything other than a regular file |
//! |---|---|---|
//! | the user: a program, an image, a package, a key | followed ([`Links::Followed`]) | an error that names its kind |
//! | the process, in a folder that others may write to: an entry of a cache, a lock | refused; below a [`Folder`] for each part of the path | the same error, which the caller treats as a miss |
//! | the process, for a new file: a temporary file, a map for profilers | an existing file is removed, and never opened ([`fresh`]) | |
//! | the user, for a result | followed | written to, unless that would wait for a reader ([`write()`]) |
//!
//! **Races.** The second check, through the descriptor, is decisive; the first one keeps devices from being
//! opened. A [`Folder`] is a descriptor, so replacing the folder meanwhile has no effect. Owners are not
//! checked: contents that matter are sealed, or the user has named the file.
//!
//! Not done: systems other than Unix.

#![forbid(unsafe_code)]

mod error;
mod folder;

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

pub use error::{FileError, Kind};
pub use folder::{Folder, Listed};

/// The maximum size in bytes of a program text named by a user.
pub const MOST_TEXT: u64 = 1 << 30;

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// A link is followed.
    Followed,
    /// A link is an error.
    Refused,
}

/// Opens a regular file for reading, without blocking.
///
/// # Errors
/// The system refuses access, or it is not a regular file.
pub fn open(path: &Path, links: Links) -> Result<File, FileError> {
    let (facts, flags) = match links {
        Links::Followed => (fs::metadata(path)?, OFlags::NONBLOCK | OFlags::NOCTTY),
        Links::Refused => (fs::symlink_metadata(path)?, OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW),
    };
    need(Kind::File, facts.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    need(Kind::File, file.metadata()?.file_type())?;
    Ok(file)
}

/// The bytes of a regular file of at most `limit` bytes, even if it grows meanwhile.
///
/// # Errors
/// Like [`open`]; or the file exceeds the limit.
pub fn read(path: &Path, links: Links, limit: u64) -> Result<Vec<u8>, FileError> {
    let file = open(path, links)?;
    let known = file.metadata()?.len();
    if known > limit {
        return Err(FileError::TooLarge { limit });
    }
    read_at_most(file, known, limit)
}

/// The bytes of a source that may not end, with about `known` bytes expected.
///
/// # Errors
/// The system refuses to read; or there are more than `limit` bytes.
pub fn read_at_most(from: impl Read, known: u64, limit: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::with_capacity(usize::try_from(known.min(limit)).unwrap_or(0));
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(FileError::TooLarge { limit }),
        false => Ok(bytes),
    }
}

/// Creates a file for reading and writing, replacing any file at the path.
///
/// # Errors
/// The system refuses to remove the old file or to create the new one; or another process has created one
/// meanwhile.
pub fn fresh(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // `create_new` does not follow links.
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Writes a result to a path named by the user: a file, which is created or overwritten, or a device or FIFO,
/// if a process is reading from it.
///
/// # Errors
/// The system refuses; no process reads from the FIFO.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path)?;
    // From here on blocking is acceptable: a process reads.
    let plain = fcntl_getfl(&file)? - OFlags::NONBLOCK;
    fcntl_setfl(&file, plain)?;
    file.write_all(bytes)
}

fn need(needed: Kind, of: FileType) -> Result<(), FileError> {
    kind(of).need(needed)
}

fn kind(of: FileType) -> Kind {
    match of {
        _ if of.is_file() => Kind::File,
        _ if of.is_dir() => Kind::Directory,
        _ if of.is_symlink() => Kind::Link,
        _ if of.is_fifo() => Kind::Fifo,
        _ if of.is_socket() => Kind::Socket,
        _ => Kind::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Makes a FIFO without calling C.
    fn make_fifo(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_named_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), b"text").unwrap();
        make_fifo(&at("fifo"));
        symlink(at("file"), at("link")).unwrap();
        symlink(at("fifo"), at("link to a fifo")).unwrap();
        symlink("/dev/zero", at("link to a device")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let unusual = |name: &str, links| match read(&at(name), links, 100) {
            Err(FileError::Unusual { found, needed: Kind::File }) => found,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(read(&at("file"), Links::Refused, 4).unwrap(), b"text");
        assert_eq!(read(&at("link"), Links::Followed, 4).unwrap(), b"text");
        for links in [Links::Followed, Links::Refused] {
            assert_eq!(unusual("fifo", links), Kind::Fifo);
            assert_eq!(unusual("", links), Kind::Directory);
            assert_eq!(unusual("socket", links), Kind::Socket);
        }
        assert_eq!(unusual("link", Links::Refused), Kind::Link);
        assert_eq!(unusual("link to a fifo", Links::Followed), Kind::Fifo);
        assert_eq!(unusual("link to a device", Links::Followed), Kind::Device);
        assert!(read(&at("nothing"), Links::Followed, 1).unwrap_err().is_not_found());
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 100]).unwrap();
        assert_eq!(read(&path, Links::Followed, 100).unwrap().len(), 100);
        assert!(matches!(read(&path, Links::Followed, 99), Err(FileError::TooLarge { limit: 99 })));
        // Like a file that grows forever.
        let endless = read_at_most(io::repeat(1), 10, 5000);
        assert!(matches!(endless, Err(FileError::TooLarge { limit: 5000 })));
    }

    #[test]
    fn new_files_and_results_follow_their_rules() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("mine"), b"mine").unwrap();
        symlink(at("mine"), at("new")).unwrap();
        fresh(&at("new")).unwrap().write_all(b"new").unwrap();
        assert_eq!(
            (fs::read(at("mine")).unwrap(), fs::read(at("new")).unwrap()),
            (b"mine".into(), b"new".into())
        );
        make_fifo(&at("fifo"));
        assert!(write(&at("fifo"), b"text").is_err(), "nobody reads");
        fresh(&at("fifo")).unwrap();
        write(&at("fifo"), b"text").unwrap();
        assert_eq!(fs::read(at("fifo")).unwrap(), b"text");
        write(Path::new("/dev/null"), b"text").unwrap();
    }
}
