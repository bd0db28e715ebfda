//! The end of limited calls: its reasons, and the thread that watches the clock.
//!
//! ```text
//!   Watch ── sleeps up to the first deadline ──► EndFrame::end ── writes the reason ──► sets the end bit of the thread's poll word (`limits.rs`)
//!                                                                        └──► wakes the thread if it waits for others
//! ```
//!
//! A runtime has one such thread, from its first deadline until the runtime is gone.
//!
//! **Orderings.**
//!
//! | row | operation               | order   | pairs with | without it                                                       |
//! |-----|-------------------------|---------|------------|------------------------------------------------------------------|
//! | E1  | end: write the reason   | AcqRel  | E2         | the thread sees the bit, but the call appears not to have ended  |
//! | E2  | read the reason         | Acquire | E1         | as E1                                                            |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// How a limited call ended before it returned.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its deadline has passed.
    #[error("the call was ended: its deadline has passed")]
    Deadline,
    /// Its token was cancelled.
    #[error("the call was ended: it was cancelled")]
    Cancelled,
    /// It has used up its fuel.
    #[error("the call was ended: it has used up its fuel")]
    Fuel,
}

/// A limited call under way.
pub(crate) struct EndFrame {
    /// Sets the end bit of its thread.
    stop: Box<dyn Fn() + Send + Sync>,
    /// 0: it has not ended.
    why: AtomicU8,
    has_fuel: bool,
    /// Its number in its runtime, from 1. A nested call has a greater number.
    number: u64,
    /// The wakers of the thread's waits, each with a number.
    wakers: Mutex<Vec<(u64, Waker)>>,
}

/// The waker of a wait, which is called when the limited call ends, until this is dropped.
pub(crate) struct WokenAtEnd {
    frame: Arc<EndFrame>,
    key: u64,
}

impl Drop for WokenAtEnd {
    fn drop(&mut self) {
        let mut wakers = self.frame.wakers();
        let at = wakers.iter().position(|(key, _)| *key == self.key);
        let unused = at.map(|at| wakers.swap_remove(at));
        drop(wakers);
        drop(unused);
    }
}

impl EndFrame {
    /// A call that has not ended, on the thread that `stop` stops. `has_fuel`: whether it limits fuel.
    pub(crate) fn new(number: u64, has_fuel: bool, stop: impl Fn() + Send + Sync + 'static) -> EndFrame {
        EndFrame { stop: Box::new(stop), why: AtomicU8::new(0), has_fuel, number, wakers: Mutex::default() }
    }

    /// Ends the call for this reason, unless it has one already. The reason is written before the thread is
    /// notified.
    pub(crate) fn end(&self, why: Ended) {
        let why = match why {
            Ended::Deadline => 1,
            Ended::Cancelled => 2,
            Ended::Fuel => 3,
        };
        let (write, read) = (Ordering::AcqRel, Ordering::Acquire); // E1
        let _first = self.why.compare_exchange(0, why, write, read);
        (self.stop)();
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Calls `waker` when the call ends, or now if it has ended.
    pub(crate) fn wake_at_end(self: &Arc<Self>, waker: Waker) -> WokenAtEnd {
        let mut wakers = self.wakers();
        let key = wakers.iter().map(|(key, _)| key + 1).max().unwrap_or(0);
        // The reason is written before the list is read, so one of the two threads calls the waker.
        let has_ended = self.ended().is_some();
        if !has_ended {
            wakers.push((key, waker.clone()));
        }
        drop(wakers);
        if has_ended {
            waker.wake();
        }
        WokenAtEnd { frame: self.clone(), key }
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it limits fuel.
    pub(crate) fn has_fuel(&self) -> bool {
        self.has_fuel
    }

    /// Why it has ended.
    pub(crate) fn ended(&self) -> Option<Ended> {
        let why = self.why.load(Ordering::Acquire); // E2
        match why {
            0 => None,
            1 => Some(Ended::Deadline),
            2 => Some(Ended::Cancelled),
            _ => Some(Ended::Fuel),
        }
    }
}

/// The deadlines of a runtime's threads.
#[derive(Default)]
pub(crate) struct Watch {
    shared: Arc<Watched>,
}

#[derive(Default)]
struct Watched {
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchState {
    /// By time, and a number that distinguishes equal times.
    due: BTreeMap<(Instant, u64), Arc<EndFrame>>,
    next: u64,
    /// The number of the last limited call.
    calls: u64,
    is_running: bool,
    is_over: bool,
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends due calls, until the runtime is gone.
    fn watch(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let Some((&(at, _), _)) = state.due.first_key_value() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if let Some((_, frame)) = state.due.pop_first() {
                    frame.end(Ended::Deadline);
                }
            } else {
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Watch {
    /// Ends a call at a time, unless the result is taken back before. `None` if the system cannot create a
    /// thread.
    pub(crate) fn add(&self, at: Instant, frame: &Arc<EndFrame>) -> Option<(Instant, u64)> {
        let mut state = self.shared.lock();
        if !state.is_running {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("brolga deadlines".to_owned());
            thread.spawn(move || shared.watch()).ok()?;
            state.is_running = true;
        }
        let key = (at, state.next);
        state.next += 1;
        state.due.insert(key, frame.clone());
        if state.due.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.shared.changed.notify_one();
        }
        Some(key)
    }

    /// The number of a new limited call.
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.shared.lock();
        state.calls += 1;
        state.calls
    }

    /// The call is over.
    pub(crate) fn take_back(&self, key: (Instant, u64)) {
        self.shared.lock().due.remove(&key);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
    }
}
