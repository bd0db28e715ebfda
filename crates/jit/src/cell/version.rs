//! The versions of a function behind its cell: what calls reach, by the world that they are made in.
//!
//! ```text
//!   versions   [since 0: code a] [since 7: code b] [since 9: lazy]        a call in world 8 reaches b
//!   word ──► selector 9 ──► selector 7                                     one version: word ──► its code, or the stub
//! ```
//!
//! A redefinition adds a version that is visible from the next world on. The version before is *superseded*: threads in older worlds still
//! call it. It is retired ([`Superseded`]) with the worlds in which it is visible, and leaves the list when no thread can be in one of them.
//! Then the cell leads directly to what is left.
//!
//! Each version is lazy, ready or closed. The last one is the newest: counting, tiers, the interpreter and eviction concern it alone, and
//! eviction only as long as it is the only one.
//!
//! Invariants: V1, the list is never empty, and `since` ascends; V2, there is one selector between each version and the next, older ones
//! first; V3, the words agree with the list whenever the record's lock is free.

use std::any::Any;
use std::sync::Arc;

use brolga_instances::Moving;
use brolga_runtime::RetiredCode;

use super::evict::Recipe;
use super::place::Place;
use super::select::Selector;
use super::{IndirectCell, Materialize, Record, Target};
use crate::engine::{Jit, Unit};
use crate::tiering::interpret::{Interpreted, Interpreter};
use crate::tiering::tiers::Counting;

/// What calls of a version reach.
pub(super) enum State {
    /// The source makes the code at the first call.
    Lazy(Arc<dyn Materialize>),
    /// Code.
    Ready(Target),
    /// Nothing: calls throw.
    Closed,
}

/// A version of a function.
pub(super) struct Version {
    /// The first world in which it is visible.
    pub(super) since: u64,
    /// Tells it from all other versions that the cell has had.
    pub(super) number: u64,
    pub(super) state: State,
    /// What happens after how many entries, or rounds.
    pub(super) counting: Counting,
    /// What serves calls while there is no code. Kept behind that only where code may be evicted.
    pub(super) interpreted: Option<Interpreted>,
    /// How the code is made again after eviction; `None` if that cannot be.
    pub(super) recipe: Option<Recipe>,
    /// When the code was made, or called through the stub, last.
    pub(super) last: u64,
    /// Whether calls go to the stub although there is code.
    pub(super) rests: bool,
}

/// What a new version begins with.
pub(super) struct Beginning {
    pub(super) state: State,
    pub(super) counting: Counting,
    pub(super) interpreter: Option<Interpreter>,
}

impl Beginning {
    /// A source, or nothing, that counts nothing and is not interpreted.
    pub(super) fn plain(state: State) -> Beginning {
        Beginning { state, counting: Counting::nothing(), interpreter: None }
    }
}

impl Version {
    fn new(jit: &Jit, since: u64, number: u64, beginning: Beginning) -> Version {
        let Beginning { state, counting, interpreter } = beginning;
        let recipe = if jit.evicts() { Recipe::of(&state, &counting) } else { None };
        let interpreted = interpreter.map(Interpreted::new);
        Version { since, number, state, counting, interpreted, recipe, last: 0, rests: false }
    }

    /// Where calls of it go.
    fn entry(&self, place: &Place) -> usize {
        match &self.state {
            State::Ready(target) if !self.rests => target.address(),
            _ => place.stub(),
        }
    }
}

/// See the file's header.
pub(super) struct Versions {
    list: Vec<Version>,
    selectors: Vec<Selector>,
    next_number: u64,
    /// How many threads ask for code.
    pub(super) asking: u32,
}

impl Versions {
    pub(super) fn new(jit: &Jit, beginning: Beginning) -> Versions {
        let list = vec![Version::new(jit, 0, 0, beginning)];
        Versions { list, selectors: Vec::new(), next_number: 1, asking: 0 }
    }

    /// The newest version.
    pub(super) fn newest(&mut self) -> &mut Version {
        let last = self.list.len() - 1; // V1
        &mut self.list[last]
    }

    /// The version that a call in a world reaches.
    pub(super) fn at(&mut self, world: u64) -> &mut Version {
        let behind = self.list.partition_point(|version| version.since <= world);
        &mut self.list[behind.saturating_sub(1)] // V1
    }

    /// The version of that number, if it is there.
    pub(super) fn find(&mut self, number: u64) -> Option<&mut Version> {
        self.list.iter_mut().find(|version| version.number == number)
    }

    /// The only version, if there is one alone.
    pub(super) fn only(&mut self) -> Option<&mut Version> {
        match self.list.as_mut_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// All versions, oldest first.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Version> {
        self.list.iter_mut()
    }

    /// The identities of the cells that their code calls.
    pub(super) fn callees(&self) -> Vec<usize> {
        let code = self.list.iter().filter_map(|version| match &version.state {
            State::Ready(target) => Some(target.unit().code()),
            State::Lazy(_) | State::Closed => None,
        });
        code.flat_map(|code| code.cells_called()).map(IndirectCell::identity).collect()
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Adds a version that is visible from a world on. A version of the same world takes the place of the one that is there.
    pub(super) fn add(&mut self, jit: &Jit, selector: Selector, since: u64, beginning: Beginning) -> Added {
        if self.newest().since >= since {
            return Added::Replaced(Box::new(self.replace(jit, beginning)), selector);
        }
        let number = self.number();
        let before = self.newest();
        let (superseded, first) = (before.number, before.since);
        self.list.push(Version::new(jit, since, number, beginning));
        self.selectors.push(selector.begin(since));
        Added::Superseded { number: superseded, first }
    }

    /// Puts another version in the place of the newest one, for the same worlds; the old one comes back.
    pub(super) fn replace(&mut self, jit: &Jit, beginning: Beginning) -> Version {
        let number = self.number();
        let newest = self.newest();
        let since = newest.since;
        std::mem::replace(newest, Version::new(jit, since, number, beginning))
    }

    /// Puts one version in the place of all, for all worlds; the old ones come back.
    pub(super) fn replace_all(&mut self, jit: &Jit, beginning: Beginning) -> (Vec<Version>, Vec<Selector>) {
        let number = self.number();
        let only = vec![Version::new(jit, 0, number, beginning)];
        (std::mem::replace(&mut self.list, only), std::mem::take(&mut self.selectors))
    }

    /// Takes a superseded version out, with the selector that is not needed any more.
    pub(super) fn settle(&mut self, number: u64) -> Option<(Version, Selector)> {
        let at = self.list.iter().position(|version| version.number == number)?;
        if at + 1 == self.list.len() {
            return None;
        }
        let version = self.list.remove(at);
        // The selector that is left between its neighbours begins with the later one: V2.
        let selector = self.selectors.remove(at.saturating_sub(1));
        Some((version, selector))
    }

    /// Lets the words lead where the list says: V3.
    pub(super) fn lead(&self, place: &Place) {
        let mut to = self.list.first().map_or_else(|| place.stub(), |oldest| oldest.entry(place));
        for (version, selector) in self.list.iter().skip(1).zip(&self.selectors) {
            selector.lead(version.entry(place), to);
            to = selector.address();
        }
        place.set(to);
    }
}

/// What adding a version has done.
pub(super) enum Added {
    /// The version of this number is superseded; it was visible from `first` on.
    Superseded { number: u64, first: u64 },
    /// A version of the same world was replaced, and the selector is not needed.
    Replaced(Box<Version>, Selector),
}

/// A version that calls of newer worlds do not reach. It is to be retired once the newer world has come; when it is dropped, the version leaves
/// its cell.
#[must_use = "the version is to be retired, with `Runtime::retire`, when its last world is over"]
pub struct Superseded {
    pub(super) record: Arc<Record>,
    /// Which version it is; none if one of the same world was replaced, which no thread has seen.
    pub(super) number: Option<u64>,
    /// The first and the last world in which it is visible.
    pub(super) worlds: (u64, u64),
    /// What was replaced so, and the selector that was not needed.
    #[expect(dead_code, reason = "dropped without the locks under which versions are added")]
    pub(super) unused: Option<(Box<Version>, Selector)>,
    #[expect(dead_code, reason = "held so that whoever is short of room waits for the code")]
    pub(super) moving: Moving,
}

impl Superseded {
    /// Shows the unit of its code, if it was compiled.
    pub(crate) fn show_unit(&self, show: impl FnOnce(&Unit)) {
        let mut versions = self.record.lock();
        let version = self.number.and_then(|number| versions.find(number));
        if let Some(State::Ready(target)) = version.map(|version| &version.state) {
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
