//! Undertakings of threads: openings and closings of dylibs, and other work to finish before the session
//! ends.
//!
//! ```text
//!   thread:  undertake ── refused, if the session was stopped ──► (lookups, definitions: begun) ──► finish
//!   end:     stop ──► is anything under way that does not wait for this thread? ──► wait, ask again
//! ```
//!
//! Undertaking and stopping are steps: an undertaking is refused, or waited for. Nested undertakings are
//! counted.

use std::thread::ThreadId;

use super::waits::{Certainty, On};
use super::{Doer, Event, Machine, Parts};
use crate::error::Error;

/// A thread undertakes something.
pub struct Undertake {
    pub by: ThreadId,
    /// Whether it belongs to work begun before the session was stopped, or to its end.
    pub begun: bool,
}

impl<P: Parts> Event<P> for Undertake {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        if machine.refuses(self.begun) {
            return Err(Error::SessionEnded);
        }
        *machine.under_way.entry(self.by).or_default() += 1;
        Ok(())
    }
}

/// A thread has finished its last undertaking.
pub struct Finish {
    pub by: ThreadId,
}

impl<P: Parts> Event<P> for Finish {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        if let Some(count) = machine.under_way.get_mut(&self.by) {
            *count -= 1;
            if *count == 0 {
                machine.under_way.remove(&self.by);
            }
        }
    }
}

/// Queries whether other threads have undertakings that do not wait for this thread, so that it may wait for
/// their end.
pub struct IsUnderWay {
    /// The thread that asks.
    pub by: ThreadId,
}

impl<P: Parts> Event<P> for IsUnderWay {
    type Reply = bool;

    fn apply(self, machine: &mut Machine<P>) -> bool {
        let own = Doer::thread(self.by);
        let others: Vec<ThreadId> = machine.under_way.keys().copied().filter(|&by| by != self.by).collect();
        let waits = |other| machine.needed_by(On::Thread(other), Certainty::Known).contains(&own);
        !others.into_iter().all(waits)
    }
}
