//! The bytes of an image: in memory, or in an open file whose parts are read when they are needed.
//!
//! A file is held by its descriptor, so a file that is renamed, replaced or removed serves as before. It is read, not
//! mapped: bytes that another program has cut off are an error of the read, where a mapped page would end the process.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use brolga_files::{Links, open};
use bytes::Bytes;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapOptions;

use super::ImageError;
use super::place::LIMIT;

/// Parts of at least this size are read into large pages.
const LARGE: usize = 1 << 20;
/// The size of a large page.
const LARGE_PAGE: usize = 1 << 21;

/// An image that can be opened: an open file, or bytes in memory.
#[derive(Clone, Debug)]
pub struct ImageFile {
    held: Held,
    length: usize,
}

#[derive(Clone, Debug)]
enum Held {
    Memory(Bytes),
    File { file: Arc<File>, path: Arc<str>, start: u64 },
}

impl ImageFile {
    /// Opens a file of at most the maximum size of an image. Nothing of it is read.
    ///
    /// # Errors
    /// The system refuses to open it, it is not a regular file, or it is too large.
    pub fn open(path: &Path) -> Result<ImageFile, ImageError> {
        let name: Arc<str> = path.display().to_string().into();
        let failed = |source| ImageError::File { what: "read", path: name.to_string(), source };
        let file = open(path, Links::Followed).map_err(|error| failed(error.into()))?;
        let length = usize::try_from(file.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
        ImageFile::within(file, path, 0, length)
    }

    /// A part of an open file.
    ///
    /// # Errors
    /// It is too large.
    pub(crate) fn within(
        file: File,
        path: &Path,
        start: u64,
        length: usize,
    ) -> Result<ImageFile, ImageError> {
        if length > LIMIT {
            return Err(ImageError::TooLarge { bytes: length, limit: LIMIT });
        }
        Ok(ImageFile {
            held: Held::File { file: Arc::new(file), path: path.display().to_string().into(), start },
            length,
        })
    }

    /// The number of bytes; of a file, when it was opened.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All bytes.
    ///
    /// # Errors
    /// The system refuses to read the file, or it has become shorter.
    pub fn bytes(&self) -> Result<Bytes, ImageError> {
        self.read(0..self.length)
    }

    /// The first bytes, at most this number.
    ///
    /// # Errors
    /// As [`ImageFile::bytes`].
    pub fn start(&self, most: usize) -> Result<Bytes, ImageError> {
        self.read(0..self.length.min(most))
    }

    /// Whether the bytes are in memory: all of them are checked when the image is opened.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.held, Held::Memory(_))
    }

    /// The bytes of a range, which must be inside the length.
    pub(super) fn read(&self, range: Range<usize>) -> Result<Bytes, ImageError> {
        match &self.held {
            Held::Memory(bytes) if range.start <= range.end && range.end <= bytes.len() => {
                Ok(bytes.slice(range))
            }
            Held::Memory(_) => Err(self.failed(std::io::ErrorKind::UnexpectedEof.into())),
            Held::File { file, start: first, .. } if range.len() >= LARGE => {
                let pages = MmapOptions::new().len(range.len() + LARGE_PAGE).map_anon();
                let mut pages = pages.map_err(|source| self.failed(source))?;
                // A hint: two page faults for four megabytes instead of a thousand. The part begins at the start
                // of a large page.
                #[cfg(target_os = "linux")]
                let _ = pages.advise(Advice::HugePage);
                let start = pages.as_ptr().addr().next_multiple_of(LARGE_PAGE) - pages.as_ptr().addr();
                let place = start..start + range.len();
                let read = file.read_exact_at(&mut pages[place.clone()], first + range.start as u64);
                read.map_err(|source| self.failed(source))?;
                Ok(Bytes::from_owner(pages).slice(place))
            }
            Held::File { file, start, .. } => {
                let mut bytes = vec![0; range.len()];
                let read = file.read_exact_at(&mut bytes, start + range.start as u64);
                read.map_err(|source| self.failed(source))?;
                Ok(bytes.into())
            }
        }
    }

    fn failed(&self, source: std::io::Error) -> ImageError {
        let path = match &self.held {
            Held::Memory(_) => "bytes in memory".to_owned(),
            Held::File { path, .. } => path.to_string(),
        };
        ImageError::File { what: "read", path, source }
    }
}

impl<B: Into<Bytes>> From<B> for ImageFile {
    fn from(bytes: B) -> ImageFile {
        let bytes = bytes.into();
        ImageFile { length: bytes.len(), held: Held::Memory(bytes) }
    }
}
