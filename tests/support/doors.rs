//! Options with open doors, for tests and benchmarks whose programs need them.

use brolga::{Doors, Options};

/// The same options with open doors.
pub(crate) fn open(options: Options) -> Options {
    // SAFETY: the programs are those of the repository's own tests, which keep what the doors ask.
    options.doors(unsafe { Doors::open() })
}
