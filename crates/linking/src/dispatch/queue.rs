//! A queue of tasks with three priorities, and a place for idle threads to sleep.
//!
//! Tasks are in lock-free queues, one for each priority. The lock is only for sleeping:
//!
//! ```text
//!   pusher                              sleeper
//!     put the task into the queue         count itself           Q2
//!     fence                       Q1      fence                  Q2
//!     a thread asleep?            Q3      look again: a task? ──► take it
//!     if so: lock, notify                 lock is held from counting to sleeping
//! ```
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | Q1 | pusher: fence between task and check | SeqCst | Q2 | pusher sees no sleeper, sleeper no task: the task stays queued |
//! | Q2 | sleeper: fence between counting itself and rechecking | SeqCst | Q1, Q7 | the same, from the other side |
//! | Q3 | count of sleepers | Relaxed | | the fences order it |
//! | Q4 | outstanding: count up | Relaxed | | a waiter for zero has counted, or has learnt of the task from a thread that has |
//! | Q5 | outstanding: count down | AcqRel | Q6 | a drained session misses what its tasks did |
//! | Q6 | outstanding: read | Acquire | Q5 | the same, from the other side |
//! | Q7 | task finished: fence between counting down and checking for drainers | SeqCst | Q2 | a drainer sleeps after the last task |
//! | Q8 | count of drainers | Relaxed | | a drainer counts itself before it sleeps, which is the sleeper's fence |
//! | Q9 | models' queue: whether it is empty | Relaxed | | as weak as possible, so that the fences are needed |
//! | Q10 | rests (`rest.rs`): how many there are | Relaxed | | the fences order it, as they do for queued tasks |
//!
//! Liveness: a pusher that sees a sleeper notifies one; if others stay asleep, the thread that took the last
//! task is awake. Not visible to loom: the lock-free queue, which models replace. Models: `models.rs`.

use crate::dispatch::Task;
use crate::dispatch::rest::{MAX_WEIGHT, Next, Rests};
use crate::flags::Priority;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait};

#[cfg(not(all(test, loom)))]
mod lane {
    use crossbeam_deque::{Injector, Steal};

    pub(super) struct Lane<T>(Injector<T>);

    impl<T> Lane<T> {
        pub(super) fn new() -> Self {
            Lane(Injector::new())
        }

        pub(super) fn push(&self, item: T) {
            self.0.push(item);
        }

        pub(super) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        pub(super) fn pop(&self) -> Option<T> {
            loop {
                match self.0.steal() {
                    Steal::Success(item) => return Some(item),
                    Steal::Empty => return None,
                    Steal::Retry => std::hint::spin_loop(),
                }
            }
        }
    }
}

/// A queue as weak as a lock-free one may be: whether anything is in it is read without synchronisation.
#[cfg(all(test, loom))]
mod lane {
    use std::collections::VecDeque;

    use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

    pub(super) struct Lane<T>(Mutex<VecDeque<T>>, AtomicUsize);

    impl<T> Lane<T> {
        pub(super) fn new() -> Self {
            Lane(Mutex::new(VecDeque::new()), AtomicUsize::new(0))
        }

        pub(super) fn push(&self, item: T) {
            let mut items = lock(&self.0);
            items.push_back(item);
            self.1.store(items.len(), Ordering::Relaxed); // Q9
        }

        pub(super) fn is_empty(&self) -> bool {
            let seen = self.1.load(Ordering::Relaxed); // Q9
            seen == 0
        }

        pub(super) fn pop(&self) -> Option<T> {
            let seen = self.1.load(Ordering::Relaxed); // Q9
            if seen == 0 {
                return None;
            }
            let mut items = lock(&self.0);
            let item = items.pop_front();
            self.1.store(items.len(), Ordering::Relaxed); // Q9
            item
        }
    }
}

/// See the file's header.
pub(crate) struct Queue {
    lanes: [lane::Lane<Task>; 3],
    rests: Rests,
    outstanding: AtomicUsize,
    sleepers: AtomicUsize,
    drainers: AtomicUsize,
    closed: Mutex<bool>,
    wake: Condvar,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue {
            lanes: [lane::Lane::new(), lane::Lane::new(), lane::Lane::new()],
            rests: Rests::new(),
            outstanding: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            drainers: AtomicUsize::new(0),
            closed: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    pub(crate) fn push(&self, task: Task) {
        self.outstanding.fetch_add(1, Ordering::Relaxed); // Q4
        self.lanes[task.lane()].push(task);
        self.wake_one();
    }

    /// Like [`Queue::push`], unless the queue is closed. The lock keeps `close` from intervening, so the task
    /// is not left in the queue.
    pub(crate) fn push_if_open(&self, task: Task) -> Result<(), Task> {
        let closed = lock(&self.closed);
        if *closed {
            return Err(task);
        }
        self.outstanding.fetch_add(1, Ordering::Relaxed); // Q4
        self.lanes[task.lane()].push(task);
        drop(closed);
        self.wake_one();
        Ok(())
    }

    fn wake_one(&self) {
        fence(Ordering::SeqCst); // Q1
        let asleep = self.sleepers.load(Ordering::Relaxed); // Q3
        if asleep > 0 {
            drop(lock(&self.closed));
            self.wake.notify_one();
        }
    }

    fn lane(&self, priority: Priority) -> &lane::Lane<Task> {
        &self.lanes[priority as usize]
    }

    /// Whether a worker may defer the rest of a task.
    pub(crate) fn takes_rest(&self, worker: usize, priority: Priority, weight: u32) -> bool {
        let asleep = self.sleepers.load(Ordering::Relaxed); // Q3
        // A missed sleeper is woken.
        asleep == 0
            && weight <= MAX_WEIGHT / 4
            && self.rests.takes(worker, priority, !self.lane(priority).is_empty())
    }

    /// Takes the rest of a task from a worker.
    pub(crate) fn push_rest(&self, worker: usize, rest: Task) {
        self.outstanding.fetch_add(1, Ordering::Relaxed); // Q4
        self.rests.push(worker, rest);
        self.wake_one();
    }

    /// The most urgent task.
    pub(crate) fn pop(&self) -> Option<Task> {
        const ALL: [Priority; 3] = [Priority::Blocking, Priority::Normal, Priority::Idle];
        let steal = |priority| if self.rests.is_empty() { None } else { self.rests.steal(priority) };
        ALL.into_iter().find_map(|priority| self.lane(priority).pop().or_else(|| steal(priority)))
    }

    /// The most urgent task that has not been begun.
    pub(crate) fn pop_unbegun(&self) -> Option<Task> {
        self.lanes.iter().find_map(lane::Lane::pop)
    }

    /// The next step of a worker.
    pub(crate) fn pop_as(&self, worker: usize) -> Option<Task> {
        if self.rests.is_empty() {
            return self.pop();
        }
        match self.rests.next(worker, |priority| !self.lane(priority).is_empty()) {
            Next::Rest(task) => Some(task),
            Next::Begin(priority) => self.lane(priority).pop().or_else(|| self.pop()),
            Next::Nothing => self.pop(),
        }
    }

    /// Runs a task returned by [`Queue::pop`].
    pub(crate) fn run(&self, task: Task) {
        task.run();
        self.outstanding.fetch_sub(1, Ordering::AcqRel); // Q5
        fence(Ordering::SeqCst); // Q7
        let drainers = self.drainers.load(Ordering::Relaxed); // Q7
        if drainers > 0 {
            self.rouse();
        }
    }

    /// Tasks that were pushed and have not finished.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire) // Q6
    }

    /// Runs tasks until no more than `left` are outstanding.
    pub(crate) fn drain(&self, left: usize) {
        self.drainers.fetch_add(1, Ordering::Relaxed); // Q8
        while self.outstanding() > left && self.run_or_sleep(|| self.outstanding() <= left) {}
        self.drainers.fetch_sub(1, Ordering::Relaxed); // Q8
    }

    /// Runs a task, or sleeps until something has changed; `false` when the queue is closed and empty.
    pub(crate) fn run_or_sleep(&self, awake: impl Fn() -> bool) -> bool {
        match self.pop() {
            Some(task) => self.run(task),
            None => return self.sleep_or_run(awake),
        }
        true
    }

    /// Sleeps until something has changed, unless there is a task, which it runs; `false` when the queue is
    /// closed and empty.
    pub(crate) fn sleep_or_run(&self, awake: impl Fn() -> bool) -> bool {
        let closed = lock(&self.closed);
        self.sleepers.fetch_add(1, Ordering::Relaxed); // Q3
        fence(Ordering::SeqCst); // Q2
        let task = self.pop();
        let mut open = !*closed;
        if task.is_none() && open && !awake() {
            let closed = wait(&self.wake, closed);
            open = !*closed;
        } else {
            drop(closed);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed); // Q3
        if let Some(task) = task {
            self.run(task);
            return true;
        }
        open
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(lane::Lane::is_empty) && self.rests.is_empty()
    }

    /// Sleeps until something has changed, unless there is a task; `false` when the queue is closed and
    /// empty.
    pub(crate) fn sleep(&self, awake: impl Fn() -> bool) -> bool {
        let closed = lock(&self.closed);
        self.sleepers.fetch_add(1, Ordering::Relaxed); // Q3
        fence(Ordering::SeqCst); // Q2
        let mut open = !*closed || !self.is_empty();
        if open && self.is_empty() && !awake() {
            open = !*wait(&self.wake, closed);
        } else {
            drop(closed);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed); // Q3
        open || !self.is_empty()
    }

    /// Wakes every sleeper to retry.
    pub(crate) fn rouse(&self) {
        fence(Ordering::SeqCst); // Q1
        let asleep = self.sleepers.load(Ordering::Relaxed); // Q3
        if asleep > 0 {
            drop(lock(&self.closed));
            self.wake.notify_all();
        }
    }

    /// Ends all sleeping.
    pub(crate) fn close(&self) {
        *lock(&self.closed) = true;
        self.wake.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        *lock(&self.closed)
    }
}
