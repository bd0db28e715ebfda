//! Discarding the code of a cell when memory is short: the next call compiles the function again.
//!
//! ```text
//!          rest: word = stub                      discard: state as at first, word = stub, code retired
//!   Ready ───────────────────► Ready, resting ───────────────────────────────────────────────────► Lazy
//!     ▲                              │
//!     └───── the next call ◄─────────┘ by the stub: word = code again, and a later time
//! ```
//!
//! Code does not record its entries. So an evictor puts cells to *rest*: their next call goes through the stub,
//! once, which records the time. Code that still rests at the next shortage has not been called since.
//!
//! A function in two tiers starts again in the first, and its calls are counted from zero. Loops' entries belong to the code of the
//! loop, and are evicted with it. Code from [`CellOwner::set`] cannot be made again, and stays; so does code made before the
//! engine had an evictor, since its source was dropped; and so does the code of a function with other versions for threads
//! in older worlds.
//!
//! Cost: a call of resting code costs about as much as a first call without its compilation.

use std::sync::Arc;

use super::materialize::Materialize;
use super::{Body, CellOwner};
use crate::tiering::counting::Tiers;
use crate::tiering::interpreter::Interpreter;

/// How the code of an instance is made again.
#[derive(Clone)]
pub(super) enum Recipe {
    Once(Arc<dyn Materialize>),
    Tiered(Arc<dyn Tiers>, i32, Option<Interpreter>),
}

impl Recipe {
    pub(super) fn of(body: &Body) -> Option<Recipe> {
        match body {
            Body::Once(source) => Some(Recipe::Once(source.clone())),
            Body::Tiered { tiers, threshold, interpreter } => {
                Some(Recipe::Tiered(tiers.clone(), *threshold, interpreter.clone()))
            }
            Body::Removed => None,
        }
    }

    fn body(self) -> Body {
        match self {
            Recipe::Once(source) => Body::Once(source),
            Recipe::Tiered(tiers, threshold, interpreter) => Body::Tiered { tiers, threshold, interpreter },
        }
    }
}

/// Code of a cell that could be discarded.
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
    /// The code of the cell, if it was compiled for the cell and can be compiled again.
    pub fn held(&self) -> Option<Held> {
        let mut content = self.record.lock();
        let instance = content.instances.only()?;
        let target = instance.code()?;
        instance.recipe.as_ref()?;
        let bytes = target.unit().loaded().code().addresses().len();
        Some(Held { address: target.address(), bytes, last: instance.last_use, rests: instance.rests })
    }

    /// Whether a request for code is under way.
    pub fn is_awaited(&self) -> bool {
        self.record.lock().asking > 0
    }

    /// Makes the next call record that the function is in use.
    pub fn rest(&self) {
        let mut content = self.record.lock();
        let Some(instance) = content.instances.only() else { return };
        if instance.code().is_some() && instance.recipe.is_some() {
            instance.rests = true;
            self.record.lead(&mut content);
        }
    }

    /// Discards the code at an address: the next call compiles. Calls that have begun continue in it, and it is freed when
    /// they have left it. `false` if the cell has other code by now.
    pub fn discard(&self, address: usize) -> bool {
        let mut content = self.record.lock();
        let Some(instance) = content.instances.only() else { return false };
        if instance.code().is_none_or(|target| target.address() != address) {
            return false;
        }
        let Some(recipe) = instance.recipe.clone() else { return false };
        self.record.replace_locked(content, recipe.body().begin(&self.record.jit));
        true
    }
}
