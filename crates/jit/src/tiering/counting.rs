//! Counting until a better tier is requested: the limits of a cell's counter, and the actions at them.
//!
//! Threads count in one word by a load and a store, so counts may be lost. A late store could even restore a count
//! of code that has been replaced. So no word ever holds more than [`STRIDE`]: longer counts are counted in
//! strides, and a late store costs one at most.

use std::error::Error;
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;

use crate::cell::{Materialize, Target};

/// The most that a counter holds.
pub(crate) const STRIDE: i32 = 1 << 12;

/// Makes the code of a function in two tiers. [`Materialize::materialize`] returns the first, which counts its entries.
pub trait Tiers: Materialize {
    /// The code of the second. Called once each time that the function has become hot, on a thread that runs no compiled code meanwhile.
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;
}

/// A function that continues at the head of a loop of another one, once the loop has iterated often.
#[derive(Clone)]
pub struct LoopEntry {
    /// Its type. The symbol in it is the name by which the loop calls it.
    pub ty: Arc<FunctionType>,
    /// The name of the loop's OSR check.
    pub check: Arc<str>,
    /// Makes its code, on a thread that runs no compiled code meanwhile.
    pub source: Arc<dyn Materialize>,
    /// The number of iterations after which it is requested.
    pub iterations: u32,
}

impl std::fmt::Debug for LoopEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopEntry").field("entry", &self.ty.symbol).finish_non_exhaustive()
    }
}

/// The action at the limit of a cell's counter.
pub(crate) enum Then {
    /// Nothing: there is no counter, or it was done.
    Nothing,
    /// The second tier of the function.
    Optimise(Arc<dyn Tiers>),
    /// The code of the cell, which is a loop's entry.
    Enter,
}

/// How far a cell's counter is.
pub(crate) struct Counting {
    pub(crate) then: Then,
    /// The limit.
    pub(crate) count: i32,
    /// The count left when the current stride is over.
    left: i32,
    /// Whether the function was put into the queue.
    queued: bool,
}

impl Counting {
    /// Nothing is counted.
    pub(crate) fn nothing() -> Counting {
        Counting::new(Then::Nothing, 0)
    }

    pub(crate) fn new(then: Then, count: i32) -> Counting {
        Counting { then, count, left: count.max(0), queued: false }
    }

    /// The next stride. The word goes below zero one count after it is zero.
    pub(crate) fn stride(&mut self) -> i32 {
        let next = self.left.min(STRIDE);
        self.left -= next;
        next
    }

    /// How many calls were counted when the counter holds `word`; none if nothing counts them. Calls beyond the limit are not counted.
    pub(crate) fn counted(&self, word: i32) -> Option<u32> {
        if !matches!(self.then, Then::Optimise(_)) {
            return None;
        }
        let left = if self.queued { 0 } else { self.left.saturating_add(word.clamp(0, STRIDE)) };
        Some(self.count.saturating_sub(left).max(0).unsigned_abs())
    }

    /// The counter has gone below zero: the next stride, and whether the function is to be put into the queue now.
    pub(crate) fn exhausted(&mut self) -> (i32, bool) {
        if self.left > 0 {
            return (self.stride(), false);
        }
        let wanted = !matches!(self.then, Then::Nothing) && !std::mem::replace(&mut self.queued, true);
        (STRIDE, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_count_is_counted_in_strides() {
        for count in [0, 1, 50, STRIDE, STRIDE + 1, 10 * STRIDE + 7] {
            let mut counting = Counting::new(Then::Enter, count);
            let mut sum = counting.stride();
            loop {
                let (next, wanted) = counting.exhausted();
                assert!(next <= STRIDE);
                if wanted {
                    break;
                }
                sum += next;
            }
            assert_eq!(sum, count);
            assert_eq!(counting.exhausted(), (STRIDE, false), "it is put into the queue once");
        }
    }
}
