//! Open doors for the targets whose inputs are files of code. The code is linked, and never run.

use brolga_engine::Options;
use brolga_runtime::Doors;

/// Options with open doors.
pub(super) fn open() -> Options {
    // SAFETY: nothing that is linked by these options is run.
    Options::new().doors(unsafe { Doors::open() })
}
