//! The options of engines and sessions of the command: with open doors, unless the user wants programs checked.

use brolga::{Doors, Options};

/// Options for programs that the user runs with all rights of the command, as any program.
pub(super) fn open() -> Doors {
    // SAFETY: `brolga run` and its like run what the user names, with the user's rights, and their help says so; `--checked` is there for
    // programs of others.
    unsafe { Doors::open() }
}

/// The defaults, with open doors unless programs are to be checked.
pub(super) fn options(checked: bool) -> Options {
    if checked { Options::new() } else { Options::new().doors(open()) }
}
