//! Whose turn it is: the host's thread that polls a call, or the thread that the call runs on.
//!
//! ```text
//!   polling thread                      thread of the guest
//!   play ── Ready ─► Playing ─────────► wait_for_turn returns, compiled code runs
//!     waits one slice                        │
//!     asks ─────────────────────────────────►│ next poll: pause ── Playing ─► Ready, waits
//!     waits one more slice                   │
//!   ◄── Played::Paused ──────────────────────┘           Played::Running, where there was no poll in time: it wakes the task
//!   abandon ── is_abandoned ───────────► pause returns, and returns at once from now on           when it pauses or is over
//! ```
//!
//! One lock guards everything except the two calls that lead out: `ask` sets a bit of the guest's thread, and a waker is the embedder's code, which is
//! called without the lock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How far a guest is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// It waits for its turn.
    Ready,
    /// It runs.
    Playing,
    /// It has come to its end.
    Over,
}

/// The outcome of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Played {
    /// The guest waits for its next turn.
    Paused,
    /// It did not come to a poll in time and runs on. The waker that was given is woken when it pauses or is over.
    Running,
    /// It has come to its end.
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
    /// Asks the thread that the guest runs on, while there is one.
    ask: Option<Ask>,
    waker: Option<Waker>,
}

/// Makes a guest pause at its next poll.
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

    /// Gives the guest its turn, for a slice of time and as long again as it may take to its next poll.
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
            // A time that no clock shows is no limit.
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
                // One that was there may be replaced: the last one counts.
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

    /// The guest has a thread, which `ask` asks to pause.
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

    /// The guest waits for its next turn.
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

    /// The guest has come to its end; its thread receives no requests from now on.
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
