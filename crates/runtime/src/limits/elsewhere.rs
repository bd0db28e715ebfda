//! Limits of a call that runs in another process.
//!
//! ```text
//!   Limits ── elsewhere ──► Remaining: time, fuel ──► the other process makes a tank and a deadline of them
//!     ▲  Cancel ───────────► a frame whose end sends a message
//!     └── fuel that is left ◄── the answer
//! ```
//!
//! The deadline is passed as the time that is left, because the clocks of two machines differ. The call itself ends over there, in the
//! way of [`Runtime::limited`](crate::Runtime::limited).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Cancel, Limits};
use crate::watch::{EndFrame, Ended};

/// The limits of a call that begins now, for another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remaining {
    /// The time until the deadline.
    pub time: Option<Duration>,
    /// The fuel in the tank.
    pub fuel: Option<u64>,
    /// Whether a token may end the call.
    pub has_token: bool,
}

/// A call that a token ends, until this is dropped.
struct Registered<'a> {
    cancel: &'a Cancel,
    frame: Arc<EndFrame>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.cancel.lock().frames.retain(|frame| !Arc::ptr_eq(frame, &self.frame));
    }
}

impl Limits {
    /// Runs `body`, which makes a call in another process under these limits and returns the fuel that the call has left; `None` if it
    /// is not known, so that all is lost. `cancel` is called when the token is cancelled meanwhile, on the thread that cancels.
    ///
    /// # Errors
    /// A limit was reached before the call began.
    pub fn elsewhere<R>(
        &self,
        cancel: impl Fn() + Send + Sync + 'static,
        body: impl FnOnce(Remaining) -> (R, Option<u64>),
    ) -> Result<R, Ended> {
        let end = self.end();
        let now = Instant::now();
        let time = match end {
            Some(at) if at <= now => return Err(Ended::Deadline),
            end => end.map(|at| at - now),
        };
        let _registered = match &self.cancel {
            None => None,
            Some(token) => {
                let frame = Arc::new(EndFrame::new(0, false, cancel));
                let mut shared = token.lock();
                if shared.is_cancelled {
                    return Err(Ended::Cancelled);
                }
                shared.frames.push(frame.clone());
                drop(shared);
                Some(Registered { cancel: token, frame })
            }
        };
        let fuel = self.fuel.as_ref().map(|tank| tank.take_all());
        let remaining = Remaining { time, fuel, has_token: self.cancel.is_some() };
        let (result, left) = body(remaining);
        if let (Some(tank), Some(taken)) = (&self.fuel, fuel) {
            tank.add(left.unwrap_or(0).min(taken));
        }
        Ok(result)
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.deadline.is_none() && self.timeout.is_none() && self.cancel.is_none() && self.fuel.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::limits::Fuel;

    #[test]
    fn what_is_left_goes_there_and_comes_back() {
        let (fuel, cancel) = (Fuel::new(100), Cancel::new());
        let limits = Limits::new().timeout(Duration::from_secs(60)).fuelled_by(&fuel).cancelled_by(&cancel);
        let ended = Arc::new(AtomicU32::new(0));
        let told = ended.clone();
        let tell = move || {
            told.fetch_add(1, Ordering::Relaxed); // a test
        };
        let result = limits.elsewhere(tell.clone(), |remaining| {
            assert!(remaining.time.is_some_and(|time| time <= Duration::from_secs(60)));
            assert_eq!((remaining.fuel, remaining.has_token), (Some(100), true));
            assert_eq!(fuel.left(), 0, "another call finds the tank empty");
            cancel.cancel();
            ("done", Some(40))
        });
        assert_eq!((result, fuel.left()), (Ok("done"), 40));
        assert_eq!(ended.load(Ordering::Relaxed), 1); // a test
        assert_eq!(limits.elsewhere(tell, |_| ((), None)), Err(Ended::Cancelled), "it does not begin");
        let more = Limits::new().fuelled_by(&fuel);
        assert_eq!(more.elsewhere(|| {}, |_| ((), Some(1000))), Ok(()), "an answer cannot fill the tank");
        assert_eq!(fuel.left(), 40);
        let past = Limits::new().deadline(Instant::now());
        assert_eq!(past.elsewhere(|| {}, |_| ((), None)), Err(Ended::Deadline));
        assert!(Limits::new().are_none() && !past.are_none());
    }
}
