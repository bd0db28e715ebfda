//! Entries: the machine code through which callers with other conventions reach compiled functions.
//!
//! | file | content |
//! |---|---|
//! | `trampoline.rs` | from Rust: trampolines, one for each native signature |
//! | `c_entry.rs` | from C: addresses by which C calls functions |

pub(crate) mod c_entry;
pub(crate) mod trampoline;
