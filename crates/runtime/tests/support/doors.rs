//! A run time with open doors, for tests of what lies behind them.

use brolga_runtime::{Doors, Runtime};

/// Opens the doors of a run time.
pub(crate) fn open(runtime: &Runtime) {
    // SAFETY: the programs are those of the repository's own tests, which keep what the doors ask.
    runtime.allow(unsafe { Doors::open() });
}
