//! Slots: the words through which redirectable symbols are called. The embedder makes them; the session sets their targets.
//!
//! Two steps may set one slot to two targets, and their threads may arrive here in the other order. The machine therefore numbers
//! the stores, and a store with a lower number than the last one is skipped. The lock is the slot's own; under it there
//! is one call to [`Slot::bind`] or [`Slot::arm`], which store a word.

use crate::sync::{Mutex, lock};
use crate::target::{Slot, Target};

/// A slot, and the number of the last store to it.
pub struct SlotCell<T: Target> {
    slot: T::Slot,
    last: Mutex<u64>,
}

impl<T: Target> SlotCell<T> {
    pub(crate) fn new(slot: T::Slot) -> Self {
        SlotCell { slot, last: Mutex::new(0) }
    }

    pub(crate) fn store(&self, serial: u64, target: Option<T::Address>) {
        let mut last = lock(&self.last);
        if serial > *last {
            *last = serial;
            match target {
                Some(target) => self.slot.bind(target),
                None => self.slot.arm(),
            }
        }
    }
}
