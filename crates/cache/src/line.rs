//! The line to the store: one thread makes all requests, so that nobody else waits for files or servers.
//!
//! ```text
//!   Group ──► jobs, each with the time when it is due ──► the thread ──► CacheStore
//!     ▲                                                       │
//!     └───── what was found, whether another one makes it ◄───┘
//! ```
//!
//! | job | does | again |
//! |---|---|---|
//! | fetch | reads an entry into its group | |
//! | want | claims the making of a unit, unless it was fetched, and then fetches once more: an earlier owner of the claim may have published | after a pause, while another one has the claim |
//! | publish | seals the fresh units of a group, adds them to its entry, and then releases the claims of the group | |
//!
//! **Order.** Units are in the store before their claim is released, and are fetched after the claim is taken; so the owner of a claim has all units of its
//! earlier owners, unless a request has failed.
//!
//! A near store is read by its callers, because a process with two threads allocates more slowly.
//!
//! The thread starts with the first job. When the cache is dropped, jobs other than publishing are forgotten, and the thread ends with the last one. Who drops
//! the cache waits only for a part of the time that the units took to make (`guard.rs`). A process that ends earlier loses units, not their integrity.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::store::EntryName;

/// A request to the store.
pub(crate) struct Job {
    /// The entry that it publishes to.
    pub(crate) publishes: Option<EntryName>,
    /// It does not panic.
    pub(crate) work: Box<dyn FnOnce() + Send>,
}

/// The jobs that are to be done.
#[derive(Default)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// A job was added, hastened or done, or the cache is dropped.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<(Instant, Job)>,
    /// Whether the thread publishes at the moment.
    is_publishing: bool,
    is_dropped: bool,
    has_thread: bool,
}

impl State {
    fn publishes(&self) -> bool {
        self.is_publishing || self.jobs.iter().any(|(_, job)| job.publishes.is_some())
    }

    fn hasten(&mut self) {
        let now = Instant::now();
        self.jobs.iter_mut().filter(|(_, job)| job.publishes.is_some()).for_each(|(due, _)| *due = now);
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a job later. Without a thread it is done at once.
    pub(crate) fn add(self: &Arc<Self>, after: Duration, job: Job) {
        let mut state = self.state();
        if state.is_dropped {
            return;
        }
        if !state.has_thread {
            let (line, name) = (Arc::clone(self), "brolga-cache".to_owned());
            state.has_thread = Builder::new().name(name).spawn(move || line.run()).is_ok();
        }
        if !state.has_thread {
            drop(state);
            return (job.work)();
        }
        state.jobs.push((Instant::now() + after, job));
        drop(state);
        self.changed.notify_all();
    }

    /// Publishes to an entry now, by the job that waits for it or by this one.
    pub(crate) fn publish_now(self: &Arc<Self>, name: EntryName, work: Box<dyn FnOnce() + Send>) {
        let mut state = self.state();
        match state.jobs.iter_mut().find(|(_, job)| job.publishes == Some(name)) {
            Some((due, _)) => {
                *due = Instant::now();
                drop(state);
                self.changed.notify_all();
            }
            None => {
                drop(state);
                self.add(Duration::ZERO, Job { publishes: Some(name), work });
            }
        }
    }

    /// Waits until nothing is to be published, including what is added meanwhile; at most until `end`.
    pub(crate) fn flush(&self, end: Option<Instant>) {
        let mut state = self.state();
        while state.has_thread && state.publishes() {
            state.hasten();
            self.changed.notify_all();
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let left = left.unwrap_or(Duration::from_secs(60));
            let waited = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
    }

    /// Ends the thread after the last job that publishes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_dropped = true;
        state.jobs.retain(|(_, job)| job.publishes.is_some());
        state.hasten();
        drop(state);
        self.changed.notify_all();
    }

    /// The thread.
    fn run(&self) {
        let mut state = self.state();
        loop {
            let first = state.jobs.iter().enumerate().min_by_key(|(_, (due, _))| *due);
            let Some((at, due)) = first.map(|(at, (due, _))| (at, *due)) else {
                if state.is_dropped {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                let waited = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                continue;
            }
            let (_, job) = state.jobs.remove(at);
            state.is_publishing = job.publishes.is_some();
            drop(state);
            (job.work)();
            state = self.state();
            state.is_publishing = false;
            self.changed.notify_all();
        }
    }
}
