//! Memory for code: one reservation of address space, carved into stripes and page runs, with a second mapping to write through.
//!
//! | file | content |
//! |---|---|
//! | `error.rs` | failures |
//! | `pages.rs` | system calls on pages |
//! | `reservation.rs` | the reserved range: chunks and their second mapping |
//! | `arena.rs` | free bytes of a stripe |
//! | `code_memory.rs` | shared stripes with two mappings, and page runs |
//! | `space.rs` | the memory of one unit: pages of its own, or blocks |
//! | `fetch.rs` | instruction caches and barriers after a write |
//! | `nearby.rs` | reservations near a library, or low |
//! | `cache.rs` | eviction when no room is left |
//! | `evictor.rs` | freeing code when there is no room |

pub(crate) mod arena;
pub(crate) mod cache;
pub(crate) mod code_memory;
pub(crate) mod error;
pub(crate) mod evictor;
pub(crate) mod fetch;
pub(crate) mod nearby;
pub(crate) mod pages;
pub(crate) mod reservation;
pub(crate) mod space;
