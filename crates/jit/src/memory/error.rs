//! Failures of code memory.

use std::io;

/// Why there is no memory for code.
#[derive(thiserror::Error, Debug)]
pub enum CodeMemoryError {
    /// The system refuses this much address space: a limit of the process or of the system.
    #[error("cannot reserve {bytes} bytes of address space for code")]
    Reserve {
        /// The size of the request.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// Everything reserved is in use, or in pieces too small.
    #[error("code memory is full: {bytes} bytes wanted, {free} of {reserved} free")]
    Full {
        /// The size of the request.
        bytes: usize,
        /// The free bytes in all.
        free: usize,
        /// The size of the reservation.
        reserved: usize,
    },
    /// The system refuses memory for pages, or a change of their permissions.
    #[error("cannot change the protection of {bytes} bytes of code memory")]
    Protect {
        /// The size of the range.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// The limit of [`CodeMemoryOptions`](super::code_memory::CodeMemoryOptions) would be exceeded.
    #[error("{bytes} bytes of code memory wanted with {in_use} in use; the limit is {limit}")]
    Limit {
        /// The size of the request.
        bytes: usize,
        /// The bytes in use.
        in_use: usize,
        limit: usize,
    },
    /// The process is a forked child of the one that made the code memory.
    #[error("a forked child cannot load code into the memory that it shares with its parent")]
    Forked,
}

impl CodeMemoryError {
    /// Whether freeing units can help, and the same request may succeed later. The system refuses pages, too, for as long as memory is short.
    pub fn is_shortage(&self) -> bool {
        use CodeMemoryError::{Full, Limit, Protect};
        matches!(self, Full { .. } | Limit { .. } | Protect { .. })
    }
}
