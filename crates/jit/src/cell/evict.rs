//! Discarding code that is behind a cell, because memory is short: the function is compiled again when it is called again.
//!
//! ```text
//!          rest: word = stub                      discard: state = Lazy, word = stub, code retired
//!   Ready ───────────────────► Ready, resting ───────────────────────────────────────────────────► Lazy
//!     ▲                              │
//!     └───── the next call ◄─────────┘ by the stub: word = code again, and a later time
//! ```
//!
//! Code does not note when it is entered. So an evictor lets cells *rest*: their next call comes by the stub,
//! once, which notes the time. What still rests when memory is short has not been called since.
//!
//! A function in two tiers starts again in the first, with all its calls to be counted again. Loops' entries belong to the code of the
//! loop, and go with it. What was put behind a cell by [`CellOwner::set`] cannot be made again, and stays; so does what was made before the
//! engine had an evictor, since its source was dropped; and so does a function of which threads in older worlds see another version.
//!
//! Cost: of a call of what rests, about as much as of a first call beside compiling.

use std::sync::Arc;

use super::version::{Beginning, State};
use super::{Body, CellOwner, Materialize};
use crate::tiering::tiers::{Counting, Then, Tiers};

/// How the code of a version is made again.
#[derive(Clone)]
pub(super) enum Recipe {
    Once(Arc<dyn Materialize>),
    Tiered(Arc<dyn Tiers>, i32),
}

impl Recipe {
    pub(super) fn of(state: &State, counting: &Counting) -> Option<Recipe> {
        match (state, &counting.then) {
            (State::Lazy(_), Then::Optimise(tiers)) => Some(Recipe::Tiered(tiers.clone(), counting.count)),
            (State::Lazy(source), Then::Nothing) => Some(Recipe::Once(source.clone())),
            _ => None,
        }
    }
}

/// Code behind a cell that could be discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Where it is.
    pub address: usize,
    /// The bytes of its unit's code.
    pub bytes: usize,
    /// When it was made, or called through the stub, last. Times of one engine can be compared.
    pub last: u64,
    /// Whether it has not been called since [`CellOwner::rest`].
    pub rests: bool,
}

impl CellOwner {
    /// The code that is behind the cell, if it was compiled there and can be compiled again.
    pub fn held(&self) -> Option<Held> {
        let mut versions = self.record.lock();
        let version = versions.only()?;
        let State::Ready(target) = &version.state else { return None };
        version.recipe.as_ref()?;
        let bytes = target.unit().loaded().code().addresses().len();
        Some(Held { address: target.address(), bytes, last: version.last, rests: version.rests })
    }

    /// Whether somebody is asking for code at this moment.
    pub fn is_awaited(&self) -> bool {
        self.record.lock().asking > 0
    }

    /// Lets the next call note that the function is in use.
    pub fn rest(&self) {
        let mut versions = self.record.lock();
        let Some(version) = versions.only() else { return };
        if matches!(version.state, State::Ready(_)) && version.recipe.is_some() {
            version.rests = true;
            versions.lead(&self.record.place);
        }
    }

    /// Discards the code at an address: the next call compiles. Calls that have begun go on in it, and it is freed when they have left it.
    /// `false` if something else is behind the cell by now.
    pub fn discard(&self, address: usize) -> bool {
        let mut versions = self.record.lock();
        let Some(version) = versions.only() else { return false };
        if !matches!(&version.state, State::Ready(target) if target.address() == address) {
            return false;
        }
        let interpreter = version.interpreted.as_ref().map(|interpreted| interpreted.interpreter.clone());
        let body = match version.recipe.clone() {
            None => return false,
            Some(Recipe::Once(source)) => Body::Once(source),
            Some(Recipe::Tiered(tiers, threshold)) => Body::Tiered { tiers, threshold, interpreter },
        };
        self.record.replace_locked(versions, Beginning::from(body));
        true
    }
}
