//! Debug information of loaded code: from an address to its function and line, for profilers, debuggers and the system's unwinder.
//!
//! | file | content |
//! |---|---|
//! | `code_map.rs` | the ordered index of loaded code: from an address to unit, function and line |
//! | `perf_map.rs`, `jitdump.rs` | loaded code for `perf` |
//! | `gdb.rs`, `elf.rs`, `dwarf.rs` | loaded code for debuggers |
//! | `unwind_tables.rs` | loaded code for the system's unwinder |

pub(crate) mod code_map;
#[cfg(feature = "gdb")]
pub(crate) mod dwarf;
#[cfg(feature = "gdb")]
pub(crate) mod elf;
#[cfg(feature = "gdb")]
pub(crate) mod gdb;
pub(crate) mod jitdump;
pub(crate) mod perf_map;
pub(crate) mod unwind_tables;

/// ELF's number of this machine.
pub(crate) const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
