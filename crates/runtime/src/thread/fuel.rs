//! Fuel of a thread: the units that compiled code may still spend (`brolga_ir::fuel`).
//!
//! ```text
//!   left = fuel, a word that compiled code counts down  +  reserve
//!   fuel < 0 ──► brolga_refuel ── reserve pays ──► continues
//!                             └── it is empty ──► the limited call ends
//! ```
//!
//! Without a limit the reserve is infinite. Only the thread itself accesses the words.

use brolga_ir::heap_abi::THREAD_FUEL;

use super::Thread;
use crate::pending::{Detail, ExceptionKind};
use crate::watch::{EndFrame, Ended};

const _: () = assert!(std::mem::offset_of!(Thread, fuel) == THREAD_FUEL as usize);

/// Unlimited fuel.
const ENDLESS: u64 = u64::MAX;

impl Thread {
    /// The remaining units; `None` without a limit.
    pub(crate) fn fuel_left(&self) -> Option<u64> {
        let at_hand = u64::try_from(self.fuel.get()).unwrap_or(0);
        (self.reserve.get() != ENDLESS).then(|| self.reserve.get().saturating_add(at_hand))
    }

    /// Sets the remaining units; `None` for no limit.
    pub(crate) fn set_fuel(&self, left: Option<u64>) {
        let at_hand = left.map_or(i32::MAX, |left| i32::try_from(left).unwrap_or(i32::MAX));
        self.reserve.set(left.map_or(ENDLESS, |left| left - u64::from(at_hand.unsigned_abs())));
        self.fuel.set(at_hand);
    }

    /// Called when the word is below zero: pays from the reserve. `false`: the reserve is too small, and the
    /// call has ended.
    pub(crate) fn refuel(&self) -> bool {
        let owed = u64::from(self.fuel.get().min(0).unsigned_abs());
        match self.reserve.get() {
            ENDLESS => {
                self.fuel.set(i32::MAX);
                true
            }
            reserve if reserve >= owed => {
                self.set_fuel(Some(reserve - owed));
                true
            }
            _ => {
                self.set_fuel(Some(0));
                self.end_limited(Ended::Fuel, EndFrame::has_fuel);
                self.throw(ExceptionKind::InterruptException, Detail::None);
                false
            }
        }
    }
}
