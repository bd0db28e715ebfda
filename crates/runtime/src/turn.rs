//! Whose turn it is: the host thread that polls a call, or the thread that the call runs on.
//!
//! ```text
//!   polling thread                      thread of the guest
//!   play ── Ready ─► Playing ─────────► wait_for_turn returns, compiled code runs
//!     waits one slice                        │
//!     asks ─────────────────────────────────►│ next poll: pause ── Playing ─► Ready, waits
//!     waits one more slice                   │
//!   ◄── Played::Paused ──────────────────────┘           Played::Running, if there was no poll in time: it wakes the task
//!   abandon ── is_abandoned ───────────► pause returns, immediately from now on           when it pauses or is over
//! ```
//!
//! One lock guards everything except the two outgoing calls: `ask` sets a bit of the guest's thread, and a
//! waker is the embedder's code, which is called without the lock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The state of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Waiting for its turn.
    Ready,
    /// Running.
    Playing,
    /// Finished.
    Over,
}

/// The outcome of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Played {
    /// The guest waits for its next turn.
    Paused,
    /// It did not reach a poll in time and is still running. The given waker is woken when it pauses or
    /// finishes.
    Running,
    /// It has finished.
    Over,
}

/// See the file's header.
pub(crate) struct Turn {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    at: At,
    /// The guest is no longer polled: it runs to its end without pauses.
    is_abandoned: bool,
    /// Whether a pause of the guest is requested.
    is_asked: bool,
    /// Sends the request to the guest's thread, while there is one.
    ask: Option<Ask>,
    waker: Option<Waker>,
}

/// Requests that a guest pause at its next poll.
type Ask = Box<dyn Fn() + Send>;

impl Turn {
    /// The turn of a guest that has not begun.
    pub(crate) fn new() -> Turn {
        let state = State { at: At::Ready, is_abandoned: false, is_asked: false, ask: None, waker: None };
        Turn { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the guest run for a slice of time, then waits as long again for its next poll.
    pub(crate) fn play(&self, slice: Duration, waker: &Waker) -> Played {
        let mut state = self.lock();
        if state.at == At::Ready {
            state.at = At::Playing;
            self.changed.notify_all();
        }
        for is_over_time in [false, true] {
            if is_over_time && state.at == At::Playing {
                state.is_asked = true;
                if let Some(ask) = &state.ask {
                    ask();
                }
            }
            // A time beyond the clock's range sets no limit.
            let until = Instant::now().checked_add(slice);
            while state.at == At::Playing {
                let left = until.map_or(slice, |until| until.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    break;
                }
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        match state.at {
            At::Ready => Played::Paused,
            At::Over => Played::Over,
            At::Playing => {
                // An earlier waker is replaced: the last one counts.
                let before = state.waker.replace(waker.clone());
                drop(state);
                drop(before);
                Played::Running
            }
        }
    }

    /// The guest is no longer polled.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        let waker = state.waker.take();
        self.changed.notify_all();
        drop(state);
        drop(waker);
    }

    // ----- the guest's side -----

    /// The guest has a thread, on which `ask` requests a pause.
    pub(crate) fn begin(&self, ask: impl Fn() + Send + 'static) {
        let mut state = self.lock();
        if state.is_asked {
            ask();
        }
        state.ask = Some(Box::new(ask));
    }

    /// Waits for the guest's first turn.
    pub(crate) fn wait_for_turn(&self) {
        drop(self.wait(self.lock()));
    }

    /// Waits for the guest's next turn.
    pub(crate) fn pause(&self) {
        let mut state = self.lock();
        if state.is_abandoned {
            return;
        }
        (state.at, state.is_asked) = (At::Ready, false);
        let waker = state.waker.take();
        self.changed.notify_all();
        if let Some(waker) = waker {
            drop(state);
            waker.wake();
            state = self.lock();
        }
        drop(self.wait(state));
    }

    fn wait<'t>(&'t self, mut state: MutexGuard<'t, State>) -> MutexGuard<'t, State> {
        while state.at == At::Ready && !state.is_abandoned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// The guest has finished; its thread receives no further requests.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        let (ask, waker) = (state.ask.take(), state.waker.take());
        state.at = At::Over;
        self.changed.notify_all();
        drop(state);
        drop(ask);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
