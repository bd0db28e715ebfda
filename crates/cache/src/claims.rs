//! Claims in a directory: locks of files, which the system releases when their process ends, however it ends.
//!
//! ```text
//!   DIR/claims/NAME   open and locked: somebody makes it        open by others: they ask again later
//! ```
//!
//! The owner removes the file before it releases the lock. Who has locked a file therefore looks whether it is still the one with this name; if not, its owner
//! has finished meanwhile, and the claim is requested again. Nothing waits: neither for the lock, nor for what somebody else has put in place of the file.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;

use brolga_files::{FileError, Folder};

use crate::store::{Claim, EntryName};

/// The folder of the files.
pub(crate) const CLAIMS: &str = "claims";
/// How often a file is opened that vanishes.
const TRIES: u32 = 3;

/// A locked file.
struct Held {
    folder: Folder,
    name: String,
    _locked: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A file that stays is nobody's claim.
        let _ = self.folder.remove(&self.name);
    }
}

/// The claim with this name, unless another one has it.
pub(crate) fn claim(root: &Folder, name: &EntryName) -> Result<Option<Claim>, FileError> {
    let (folder, name) = (root.make_folder(CLAIMS)?, name.to_string());
    for _ in 0..TRIES {
        let locked = folder.lock_file(&name)?;
        match locked.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Ok(()) => {}
        }
        let is_same = |file: File| -> Result<bool, FileError> {
            let (there, own) = (file.metadata()?, locked.metadata()?);
            Ok((there.dev(), there.ino()) == (own.dev(), own.ino()))
        };
        match folder.file(&name).and_then(is_same) {
            Ok(true) => return Ok(Some(Claim::new(Held { folder, name, _locked: locked }))),
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    // Others come and go; the caller asks again.
    Ok(None)
}
