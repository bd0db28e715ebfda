//! Waiting threads without a task to run, until a change makes them retry.
//!
//! ```text
//!   waiter                                    the changing thread
//!     register itself                           the change: a task is queued, a lookup waits for more, the latch is open
//!     over? a task to run? ── no ──► sleep      rouse: set the mark of every registered waiter, and wake it
//!     roused: clear the mark, retry
//! ```
//!
//! A queued task may become needed without another being queued, so changes of waits also rouse parked
//! threads.
//!
//! Liveness: when a waiter looks, it sees every change from before its registration; a later one sets its
//! mark, and while its mark is set it does not sleep. Marks and list have a lock each; no other is taken
//! under them.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::dispatch::Latch;
use crate::sync::{Condvar, Mutex, lock, wait};

/// See the file's header.
#[derive(Default)]
pub(super) struct Parked {
    waiting: Mutex<Vec<Arc<Sleeper>>>,
}

struct Sleeper {
    mark: Mutex<Mark>,
    changed: Condvar,
}

#[derive(Default)]
struct Mark {
    /// Whether something has changed since the thread looked.
    roused: bool,
    /// Whether it has looked and reported finding nothing.
    stuck: bool,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.rouse();
    }
}

impl Sleeper {
    fn rouse(&self) {
        *lock(&self.mark) = Mark { roused: true, stuck: false };
        self.changed.notify_all();
    }
}

/// A registered thread, until this is dropped.
pub(super) struct Place<'a> {
    parked: &'a Parked,
    sleeper: Arc<Sleeper>,
}

impl Parked {
    /// Registers this thread.
    pub(super) fn enter(&self) -> Place<'_> {
        let sleeper = Arc::new(Sleeper { mark: Mutex::default(), changed: Condvar::new() });
        lock(&self.waiting).push(Arc::clone(&sleeper));
        Place { parked: self, sleeper }
    }

    /// Registers this thread, which waits for the latch.
    pub(super) fn enter_for(&self, latch: &dyn Latch) -> Place<'_> {
        let place = self.enter();
        latch.on_open(Waker::from(Arc::clone(&place.sleeper)));
        place
    }

    /// Makes all registered threads retry.
    pub(super) fn rouse(&self) {
        for sleeper in &*lock(&self.waiting) {
            sleeper.rouse();
        }
    }
}

impl Place<'_> {
    /// Sleeps until something has changed since the last time, or since the registration.
    pub(super) fn sleep(&self) {
        let mut mark = lock(&self.sleeper.mark);
        while !mark.roused {
            mark = wait(&self.sleeper.changed, mark);
        }
        *mark = Mark::default();
    }

    /// Called when the thread has looked and found nothing: returns whether this many threads have, including
    /// this one, without any change since. Of threads that call this concurrently, at least one gets `true`.
    pub(super) fn is_last_of(&self, threads: usize) -> bool {
        {
            let mut mark = lock(&self.sleeper.mark);
            mark.stuck = !mark.roused;
        }
        let waiting = lock(&self.parked.waiting);
        waiting.iter().filter(|sleeper| lock(&sleeper.mark).stuck).count() >= threads
    }

    /// The thread has found something after all.
    pub(super) fn go_on(&self) {
        lock(&self.sleeper.mark).stuck = false;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.parked.waiting).retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
    }
}
