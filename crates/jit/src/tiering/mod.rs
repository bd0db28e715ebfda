//! Tiers of a function: interpreted, compiled quickly with counters, compiled with all passes.
//!
//! | file | content |
//! |---|---|
//! | `interpret.rs` | the interpreter tier: functions that are interpreted until their code is ready |
//! | `profile.rs` | counts that the first tier collects |
//! | `tiers.rs` | the second tier: functions that are compiled again when they are called often |

pub(crate) mod interpret;
pub(crate) mod profile;
pub(crate) mod tiers;
