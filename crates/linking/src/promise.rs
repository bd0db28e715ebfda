//! A value with one waiter: a future, or a thread.
//!
//! ```text
//!   pending (perhaps with a waker) ── complete ──► done(value) ── take ──► taken
//! ```
//!
//! Wakers are user code: they are called, cloned and dropped outside the lock. Completing twice keeps the first value.

use std::task::{Context, Poll, Waker};

use crate::dispatch::Latch;
use crate::sync::{Condvar, Mutex, lock, wait};

enum State<V> {
    Pending(Option<Waker>),
    Done(V),
    Taken,
}

/// See the file's header.
pub(crate) struct Promise<V> {
    state: Mutex<State<V>>,
    changed: Condvar,
}

impl<V> Promise<V> {
    pub(crate) fn new() -> Self {
        Promise { state: Mutex::new(State::Pending(None)), changed: Condvar::new() }
    }

    /// Completes with the value. The caller notifies waiters other than parked threads.
    #[must_use = "somebody may wait to be woken"]
    pub(crate) fn complete(&self, value: V) -> Option<Waker> {
        let mut state = lock(&self.state);
        let (woken, unused) = match std::mem::replace(&mut *state, State::Taken) {
            State::Pending(waker) => {
                *state = State::Done(value);
                drop(state);
                self.changed.notify_all();
                (waker, None)
            }
            other => {
                *state = other;
                drop(state);
                (None, Some(value))
            }
        };
        drop(unused);
        woken
    }

    pub(crate) fn take(&self) -> Option<V> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(value) => Some(value),
            other => {
                *state = other;
                None
            }
        }
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<V> {
        let waker = context.waker().clone();
        let mut state = lock(&self.state);
        let (polled, unused) = match std::mem::replace(&mut *state, State::Taken) {
            State::Done(value) => (Poll::Ready(value), Some(waker)),
            State::Pending(old) => {
                *state = State::Pending(Some(waker));
                (Poll::Pending, old)
            }
            State::Taken => (Poll::Pending, Some(waker)),
        };
        drop(state);
        drop(unused);
        polled
    }
}

impl<V> Latch for Promise<V> {
    fn is_done(&self) -> bool {
        !matches!(*lock(&self.state), State::Pending(_))
    }

    fn park(&self) {
        let mut state = lock(&self.state);
        while let State::Pending(_) = *state {
            state = wait(&self.changed, state);
        }
    }

    fn on_open(&self, waker: Waker) {
        let mut state = lock(&self.state);
        let unused = match &mut *state {
            State::Pending(kept) => kept.replace(waker),
            State::Done(_) | State::Taken => {
                drop(state);
                return waker.wake();
            }
        };
        drop(state);
        drop(unused);
    }
}
