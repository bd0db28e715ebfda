//! Code instances of native code: what the parts of one are, and what a superseded one waits for.
//!
//! The list of a function's instances, and how it changes, is `brolga_instances::Instances`. Here it gets its parts:
//!
//! | part | here |
//! |---|---|
//! | source | [`Materialize`]: compiles, on the thread that calls first |
//! | interpreter | [`Interpreted`]: tier 0, with what it has served |
//! | code | [`Target`]: an address in a unit, which has the cells that it calls, line tables and the map of its code |
//! | tier | [`Tier`] |
//! | profile | [`Counting`]: entries, or rounds, until the next tier is wanted |
//! | recipe | [`Recipe`]: how discarded code is made again |
//! | selector | [`Selector`]: tells worlds apart |

use std::any::Any;
use std::sync::Arc;

use brolga_codegen::isa::Tier;
use brolga_instances::{CodeInstance, Instances, Moving, Parts, Select};
use brolga_runtime::RetiredCode;

use super::evict::Recipe;
use super::select::Selector;
use super::{IndirectCell, Materialize, Record, Target};
use crate::engine::Unit;
use crate::tiering::interpret::Interpreted;
use crate::tiering::tiers::Counting;

/// The parts of code instances of native code.
pub(super) enum Native {}

impl Parts for Native {
    type Source = Arc<dyn Materialize>;
    type Interpreter = Interpreted;
    type Code = Target;
    type Tier = Tier;
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
        self.unit().code().cells_called().iter().map(IndirectCell::identity)
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

/// A source, code, or nothing, that counts nothing, is not interpreted, and cannot be made again.
pub(super) fn plain(state: State) -> Beginning {
    Beginning { state, profile: Counting::nothing(), recipe: None }
}

/// The content of a cell.
pub(super) struct Behind {
    pub(super) instances: Instances<Native>,
    /// How many threads ask for code.
    pub(super) asking: u32,
}

/// A code instance that calls of newer worlds do not reach. It is to be retired once the newer world has come; when it is dropped, the instance
/// leaves its cell.
#[must_use = "the version is to be retired, with `Runtime::retire`, when its last world is over"]
pub struct Superseded {
    pub(super) record: Arc<Record>,
    /// Which instance it is; none if one of the same world was replaced, which no thread has seen.
    pub(super) number: Option<u64>,
    /// The first and the last world in which it is visible.
    pub(super) worlds: (u64, u64),
    /// The replaced instance, and the unused selector.
    #[expect(dead_code, reason = "dropped without the locks under which instances are added")]
    pub(super) unused: Option<(Box<Instance>, Selector)>,
    #[expect(dead_code, reason = "held so that whoever is short of room waits for the code")]
    pub(super) moving: Moving,
}

impl Superseded {
    /// Shows the unit of its code, if it was compiled.
    pub(crate) fn show_unit(&self, show: impl FnOnce(&Unit)) {
        let mut behind = self.record.lock();
        let instance = self.number.and_then(|number| behind.instances.find(number));
        if let Some(target) = instance.and_then(|instance| instance.code()) {
            show(target.unit());
        }
    }
}

impl std::fmt::Debug for Superseded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Superseded").field(&self.record.name).field(&self.worlds).finish()
    }
}

impl RetiredCode for Superseded {
    /// A frame in its code belongs to a thread that is in one of its worlds.
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }

    fn worlds(&self) -> Option<(u64, u64)> {
        Some(self.worlds)
    }

    fn keeper(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Drop for Superseded {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.record.settle(number);
        }
    }
}
