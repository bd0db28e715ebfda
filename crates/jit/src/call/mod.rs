//! Calls from Rust.
//!
//! | file | content |
//! |---|---|
//! | `value.rs` | Rust types of parameters and results, and the words that carry them |
//! | `func.rs` | entering a function; untyped calls; errors |
//! | `typed.rs` | typed calls |
//! | `activation.rs` | many calls within one entry, and raw entries |
//! | `by_memory.rs` | typed calls with values that are passed in memory |
//! | `guest.rs` | typed calls as futures |
//! | `scoped.rs` | calls with references to the heap, within a scope |

pub(crate) mod activation;
pub(crate) mod by_memory;
pub(crate) mod func;
pub(crate) mod guest;
pub(crate) mod scoped;
pub(crate) mod typed;
pub(crate) mod value;
