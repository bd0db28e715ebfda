//! Tiers of a function: interpreted, compiled quickly with counters, compiled with all passes.
//!
//! | file | content |
//! |---|---|
//! | `counting.rs` | limits of counters, and the actions at them |
//! | `upgrade.rs` | requests for better code, and their receivers |
//! | `interpreter.rs` | the interface of interpreters |
//! | `interpret.rs` | the interpreter tier: functions that are interpreted until their code is ready |
//! | `profile.rs` | counts that the first tier collects |
//! | `tiers.rs` | the second tier: functions that are compiled again when they are called often |
//!
//! The first three are below cells, which contain their types; `interpret.rs` and `tiers.rs` are above, because compiled code calls them with the
//! address of a cell's data.

pub(crate) mod counting;
pub(crate) mod interpret;
pub(crate) mod interpreter;
pub(crate) mod profile;
pub(crate) mod tiers;
pub(crate) mod upgrade;
