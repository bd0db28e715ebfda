//! Code instances of native code: their parts.
//!
//! `brolga_instances::Instances` is the list of a function's instances, with its changes. Its parts are here:
//!
//! | part | here |
//! |---|---|
//! | source | [`Materialize`]: compiles, on the thread that calls first |
//! | interpreter | [`Interpreted`]: tier 0, with counts of its calls |
//! | code | [`Target`]: an address in a unit, which has the cells that it calls, line tables and the map of its code |
//! | profile | [`Counting`]: entries, or iterations, until the next tier is requested |
//! | recipe | [`Recipe`]: the source of discarded code |
//! | selector | [`Selector`]: selects by world |

use std::sync::Arc;

use brolga_instances::{CodeInstance, Instances, Parts, Select};

use super::evict::Recipe;
use super::materialize::{Materialize, Target};
use super::select::Selector;
use crate::tiering::counting::Counting;
use crate::tiering::interpreter::Interpreted;

/// The parts of code instances of native code.
pub(super) enum Native {}

impl Parts for Native {
    type Source = Arc<dyn Materialize>;
    type Interpreter = Interpreted;
    type Code = Target;
    type Profile = Counting;
    type Recipe = Recipe;
    type Selector = Selector;
}

pub(super) type Instance = CodeInstance<Native>;
pub(super) type State = brolga_instances::State<Native>;
pub(super) type Beginning = brolga_instances::Beginning<Native>;
pub(super) type Added = brolga_instances::Added<Native>;

impl brolga_instances::Code for Target {
    fn entry(&self) -> usize {
        self.address()
    }

    fn edges(&self) -> impl Iterator<Item = usize> {
        self.unit().code().edges().iter().copied()
    }
}

impl Select for Selector {
    fn begin(self, since: u64) -> Selector {
        self.tell_apart(since)
    }

    fn address(&self) -> usize {
        self.code()
    }

    fn lead(&self, newer: usize, older: usize) {
        self.set(newer, older);
    }
}

/// A source, code, or neither, without counting or interpreter, that cannot be made again.
pub(super) fn plain(state: State) -> Beginning {
    Beginning { state, profile: Counting::nothing(), recipe: None }
}

/// The content of a cell.
pub(super) struct Content {
    pub(super) instances: Instances<Native>,
    /// The number of threads that request code.
    pub(super) asking: u32,
}
