//! Threads that wait for initialisers run by other threads.
//!
//! A waiter reads the counters of changes, checks the tables, and sleeps until the counters differ, so it
//! misses no change in between.

use crate::sync::{Condvar, Mutex, lock, wait};

/// Threads that wait for undertakings of others.
#[derive(Default)]
pub(crate) struct Openings {
    news: Mutex<News>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct News {
    /// The number of times that a thread finished with an initialiser, or with a dylib.
    pub(crate) ended: u64,
    /// The same, plus other events that the end of the session may be waiting for.
    pub(crate) all: u64,
}

impl Openings {
    pub(crate) fn news(&self) -> News {
        *lock(&self.news)
    }

    /// Makes all waiters retry.
    pub(crate) fn end_one(&self) {
        let mut news = lock(&self.news);
        news.ended += 1;
        news.all += 1;
        drop(news);
        self.changed.notify_all();
    }

    /// Makes the thread that ends the session, if any, retry.
    pub(crate) fn look_again(&self) {
        lock(&self.news).all += 1;
        self.changed.notify_all();
    }

    /// Waits until something has changed.
    pub(crate) fn wait_until(&self, has_changed: impl Fn(News) -> bool) {
        let mut news = lock(&self.news);
        while !has_changed(*news) {
            news = wait(&self.changed, news);
        }
    }

    /// Waits while this holds.
    pub(crate) fn wait_while(&self, mut is_so: impl FnMut() -> bool) {
        loop {
            let before = self.news().all;
            if !is_so() {
                return;
            }
            self.wait_until(|news| news.all != before);
        }
    }
}
