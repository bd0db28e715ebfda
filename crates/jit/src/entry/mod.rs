//! Entries: the machine code through which callers with other conventions reach compiled functions.
//!
//! | file | content |
//! |---|---|
//! | `trampoline.rs` | from Rust: trampolines, one for each native signature |
//! | `c_entry.rs` | from C that compiled code calls: addresses by which it calls functions |
//! | `plain.rs` | from C that calls as Rust does: addresses of functions with a place for errors |

pub(crate) mod c_entry;
pub(crate) mod plain;
pub(crate) mod trampoline;
