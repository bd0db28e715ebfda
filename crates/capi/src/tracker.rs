//! Trackers: definitions that are removed together.
//!
//! ```text
//!   dylib ── new tracker ──► tracker ── tracked dylib ──► a handle to the dylib: what is defined through it belongs to the tracker
//!                               │ remove, with a policy for users
//!                               └ transfer: it belongs to another tracker
//! ```

use std::mem::MaybeUninit;

use brolga::session::Native;
use brolga::session::linking::{OnDrop, Tracker};

use crate::dependants::dependants;
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::{give, given, place};

/// What becomes of the definitions of a tracker when its handle is freed.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaOnFree {
    /// They stay, as definitions of the dylib.
    Keep = 0,
    /// They are removed. What ready code uses stays until it is not used any more.
    Remove = 1,
}

/// Definitions of a dylib that are removed together.
pub struct BrolgaTracker {
    tracker: Tracker<Native>,
}

/// Makes a tracker of a dylib. `on_free` is a `BrolgaOnFree`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_tracker(
    dylib: Option<&BrolgaDylib>,
    on_free: u32,
    tracker: Option<&mut MaybeUninit<*mut BrolgaTracker>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(tracker, "tracker")?);
        let on_drop = match on_free {
            n if n == BrolgaOnFree::Keep as u32 => OnDrop::Keep,
            n if n == BrolgaOnFree::Remove as u32 => OnDrop::Remove,
            n => {
                let text = format!("there is no choice {n} for what becomes of definitions");
                return Err(BrolgaError::new(BrolgaCode::Argument, text));
            }
        };
        give(place, BrolgaTracker { tracker: dylib.dylib.create_tracker(on_drop)? });
        Ok(())
    })
}

/// Returns a handle to the same dylib. What comes in through it belongs to the tracker: functions of programs and of the host, promises, global variables, types, C symbols,
/// object files, libraries, archives, generators, aliases, re-exports. A tracker of another dylib is refused by what is defined.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_tracked_by(
    dylib: Option<&BrolgaDylib>,
    tracker: Option<&BrolgaTracker>,
    tracked: Option<&mut MaybeUninit<*mut BrolgaDylib>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, tracker) = (given(dylib, "dylib")?, given(tracker, "tracker")?);
        let place = place(tracked, "tracked")?;
        give(place, dylib.beside(dylib.dylib.tracked_by(&tracker.tracker)));
        Ok(())
    })
}

/// Removes what a tracker has, and the tracker. `dependants` is a `BrolgaDependants`. A second call is an error.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_tracker_remove(
    tracker: Option<&BrolgaTracker>,
    dependants: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let tracker = given(tracker, "tracker")?;
        let removed = tracker.tracker.remove(self::dependants(dependants)?);
        Ok(removed.map_err(brolga::SessionError::from)?)
    })
}

/// Moves what a tracker has to another one of the same dylib, and removes the first. Nothing happens if they are the same.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_tracker_transfer(
    tracker: Option<&BrolgaTracker>,
    to: Option<&BrolgaTracker>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (tracker, to) = (given(tracker, "tracker")?, given(to, "to")?);
        Ok(tracker.tracker.transfer_to(&to.tracker).map_err(brolga::SessionError::from)?)
    })
}

/// Frees a tracker. What becomes of its definitions was said when it was made. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_tracker_free(tracker: Option<Box<BrolgaTracker>>) {
    drop(tracker);
}
