//! Kinds of files, and the errors of opening and reading them.

use std::fmt;
use std::io;

/// A kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Directory,
    /// A symbolic link, where none is followed.
    Link,
    Fifo,
    Socket,
    Device,
    /// A regular file, where a directory is needed.
    File,
}

impl Kind {
    /// An error if its kind is not `needed`.
    pub(crate) fn need(self, needed: Kind) -> Result<(), FileError> {
        match self == needed {
            true => Ok(()),
            false => Err(FileError::Unusual { found: self, needed }),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Directory => "a directory",
            Kind::Link => "a symbolic link",
            Kind::Fifo => "a FIFO",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
            Kind::File => "a regular file",
        })
    }
}

/// Why a file was not read.
#[derive(thiserror::Error, Debug)]
pub enum FileError {
    /// The system refuses access.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is not the kind of file that is needed.
    #[error("it is {found}, not {needed}")]
    Unusual { found: Kind, needed: Kind },
    /// It exceeds the limit.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The maximum number of bytes that are read.
        limit: u64,
    },
}

impl FileError {
    /// Whether there is no file with this name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, FileError::System(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        match error {
            FileError::System(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidInput, other),
        }
    }
}
