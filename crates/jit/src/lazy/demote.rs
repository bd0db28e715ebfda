//! Giving up code that is behind a slot, because memory is short: the function is compiled again when it is called again.
//!
//! ```text
//!          rest: word = stub                      demote: state = Lazy, word = stub, code retired
//!   Ready ───────────────────► Ready, resting ───────────────────────────────────────────────────► Lazy
//!     ▲                              │
//!     └───── the next call ◄─────────┘ by the stub: word = code again, and a later time
//! ```
//!
//! Code does not note when it is entered. So whoever wants to know what is in use lets slots *rest*: their next call comes by the stub,
//! once, which notes the time. What still rests when memory is short has not been called since.
//!
//! A function in two tiers begins anew in the first, with all its calls to be counted again. Loops' entries belong to the code of the
//! loop, and go with it. What was put behind a slot by [`SlotOwner::set`] cannot be made again, and stays; so does what was made before the
//! engine had somebody who gives code up, since its source was let go.
//!
//! Cost: of a call of what rests, about as much as of a first call beside compiling.

use std::sync::Arc;

use super::{Inside, Materialize, Record, SlotOwner, State};
use crate::tiers::{Counting, Then, Tiers};

/// How a function begins.
#[derive(Clone)]
pub(super) enum Again {
    Once(Arc<dyn Materialize>),
    Twice(Arc<dyn Tiers>, i32),
}

impl Again {
    pub(super) fn of(state: &State, counting: &Counting) -> Option<Again> {
        match (state, &counting.then) {
            (State::Lazy(_), Then::Optimise(tiers)) => Some(Again::Twice(tiers.clone(), counting.count)),
            (State::Lazy(source), Then::Nothing) => Some(Again::Once(source.clone())),
            _ => None,
        }
    }
}

/// Code behind a slot that could be given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Where it is.
    pub address: usize,
    /// The bytes of its unit's code.
    pub bytes: usize,
    /// When it was made, or called through the stub, last. Times of one engine can be compared.
    pub last: u64,
    /// Whether it has not been called since [`SlotOwner::rest`].
    pub rests: bool,
}

impl SlotOwner {
    /// The code that is behind the slot, if it was compiled there and can be compiled again.
    pub fn held(&self) -> Option<Held> {
        let inside = self.record.lock();
        let State::Ready(target) = &inside.state else { return None };
        inside.again.as_ref()?;
        let bytes = target.unit.loaded().code().addresses().len();
        Some(Held { address: target.address, bytes, last: inside.last, rests: inside.rests })
    }

    /// Whether somebody is asking for code at this moment.
    pub fn is_awaited(&self) -> bool {
        self.record.lock().asking > 0
    }

    /// Lets the next call note that the function is in use.
    pub fn rest(&self) {
        let mut inside = self.record.lock();
        if matches!(inside.state, State::Ready(_)) && inside.again.is_some() {
            inside.rests = true;
            self.record.place.set(self.record.place.stub());
        }
    }

    /// Gives up the code at an address: the next call compiles. Calls that have begun go on in it, and it is freed when they have left it.
    /// `false` if something else is behind the slot by now.
    pub fn demote(&self, address: usize) -> bool {
        let mut inside = self.record.lock();
        if !matches!(&inside.state, State::Ready(target) if target.address == address) {
            return false;
        }
        let (source, counting): (Arc<dyn Materialize>, _) = match inside.again.clone() {
            None => return false,
            Some(Again::Once(source)) => (source, Counting::new(Then::Nothing, 0)),
            Some(Again::Twice(tiers, count)) => (tiers.clone(), Counting::new(Then::Optimise(tiers), count)),
        };
        let (version, turn, asking) = (inside.version + 1, inside.turn, inside.asking);
        let cold = inside.cold.as_ref().map(|interpreted| interpreted.cold.clone());
        let anew = Inside {
            version,
            turn,
            asking,
            ..Inside::new(&self.record.jit, State::Lazy(source), counting, cold)
        };
        let moving = self.record.jit.moving();
        self.record.place.set(self.record.place.stub());
        let before = std::mem::replace(&mut *inside, anew);
        drop(inside);
        self.record.let_go(before.state, moving);
        true
    }
}

impl Record {
    /// Lets calls go to the code of what rests.
    pub(super) fn wake(&self, inside: &mut Inside) {
        if let State::Ready(target) = &inside.state {
            self.place.set(target.address);
            (inside.rests, inside.last) = (false, self.jit.hot().tick());
        }
    }
}
