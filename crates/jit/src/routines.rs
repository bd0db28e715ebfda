//! The routines that this crate adds to the run time's, and engines with them.
//!
//! | routine | file | called by |
//! |---|---|---|
//! | `brolga_materialize` | `cell/routine.rs` | trampolines of stubs |
//! | `brolga_interpret` | `tiering/interpret.rs` | trampolines of functions that are interpreted at first |
//! | `brolga_hot`, `brolga_loop` | `tiering/tiers.rs` | code of tier 1 |
//! | routines that count types | `tiering/profile.rs` | code of tier 1 |
//!
//! They find cells by address. An [engine](Jit) is below cells, so it receives the table here.

use std::sync::Arc;

use brolga_runtime::Runtime;

use crate::cell;
use crate::engine::{Jit, JitError, JitOptions};
use crate::tiering::{interpret, profile, tiers};

/// The address of a routine of this crate.
fn own(name: &str) -> Option<usize> {
    [cell::routine, interpret::routine, tiers::routine, profile::routine]
        .into_iter()
        .find_map(|find| find(name))
}

impl Jit {
    /// An engine for programs of `runtime`.
    ///
    /// # Errors
    /// There is no code generator for the processor, or no code memory.
    pub fn new(runtime: Arc<Runtime>, options: JitOptions) -> Result<Jit, JitError> {
        Jit::with_routines(runtime, options, own)
    }
}
