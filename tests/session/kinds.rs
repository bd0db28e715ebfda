//! The kinds of definitions and the levels, for tests in which none of them may matter.

use brolga::host::Handle;
use brolga::session::{Definitions, Dylib};
use brolga::{OptLevel, Options, Output, Session, Workers};

use super::Ending;

/// How a definition is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Eager,
    Inlinable,
    Lazy,
    Tiered,
    Interpreted,
    Replaceable,
}

pub(super) const KINDS: [Kind; 6] =
    [Kind::Eager, Kind::Inlinable, Kind::Lazy, Kind::Tiered, Kind::Interpreted, Kind::Replaceable];

pub(super) const LEVELS: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

impl Kind {
    /// A definition of this kind.
    pub(super) fn of(self, read: Definitions) -> Definitions {
        match self {
            Kind::Eager => read,
            Kind::Inlinable => read.inlinable(),
            Kind::Lazy => read.lazy().inlinable(),
            Kind::Tiered => read.tiered(2).inlinable(),
            Kind::Interpreted => read.tiered(2).interpreted(1),
            Kind::Replaceable => read.replaceable(),
        }
    }
}

/// A session at a level.
pub(super) fn session(level: OptLevel) -> Ending {
    let options = crate::doors::open(Options::new()).opt_level(level).output(Output::Capture);
    Ending(Session::new(options, Workers::Caller).unwrap_or_else(|error| panic!("{error}")))
}

/// Runs a test in a session at each level, for each kind of definition.
pub(super) fn each(mut test: impl FnMut(&Session, Kind, &str)) {
    for level in LEVELS {
        for kind in KINDS {
            test(&session(level), kind, &format!("{level:?}, {kind:?}"));
        }
    }
}

/// The result of the function `foreign` of one dylib for the value of the function `given` of another one.
pub(super) fn passed_on(from: &Dylib, to: &Dylib) -> i64 {
    let given = from.func_in::<(), Handle>("given").unwrap();
    let foreign = to.func_in::<(Handle,), i64>("foreign").unwrap();
    let called = from.session().runtime().enter(|scope| {
        let value = given.call(scope, ()).unwrap();
        foreign.call(scope, (value,))
    });
    called.unwrap().unwrap_or_else(|error| panic!("{error}"))
}
