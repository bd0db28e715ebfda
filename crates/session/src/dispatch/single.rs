//! Tasks without threads: on the thread that makes them, or in an order that a seed decides.
//!
//! Dispatching from inside a task only queues, so a chain of a million units runs in constant stack. Waiting from inside a task
//! runs what is queued on top of it: with one thread there is no other way.

use std::collections::VecDeque;
use std::thread::{ThreadId, current};

use super::{Dispatcher, Task};
use crate::error::Error;
use crate::promise::Latch;
use crate::sync::{Mutex, lock};

/// Runs tasks on the thread that dispatches them, first come, first served. Priorities mean nothing here.
#[derive(Default)]
pub struct InPlace {
    /// Threads that are running tasks, with what they have yet to run.
    busy: Mutex<Vec<(ThreadId, VecDeque<Task>)>>,
}

impl InPlace {
    /// Without tasks.
    #[must_use]
    pub fn new() -> InPlace {
        InPlace::default()
    }

    fn next(&self) -> Option<Task> {
        let me = current().id();
        lock(&self.busy).iter_mut().find(|(thread, _)| *thread == me)?.1.pop_front()
    }
}

impl Dispatcher for InPlace {
    fn dispatch(&self, task: Task) {
        let me = current().id();
        {
            let mut busy = lock(&self.busy);
            if let Some((_, queue)) = busy.iter_mut().find(|(thread, _)| *thread == me) {
                return queue.push_back(task);
            }
            busy.push((me, VecDeque::from([task])));
        }
        while let Some(task) = self.next() {
            task.run();
        }
        lock(&self.busy).retain(|(thread, _)| *thread != me);
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        while !latch.is_done() {
            match self.next() {
                Some(task) => task.run(),
                // Another thread has it in hand.
                None => latch.park(),
            }
        }
        Ok(())
    }

    fn drain(&self) {
        while let Some(task) = self.next() {
            task.run();
        }
    }
}

/// Runs tasks on the thread that waits or drains, in an order that depends on the seed alone. For one thread: a wait that
/// no task is left to end is an error.
pub struct Seeded {
    state: Mutex<(u64, Vec<Task>)>,
}

impl Seeded {
    /// Without tasks.
    #[must_use]
    pub fn new(seed: u64) -> Seeded {
        Seeded { state: Mutex::new((seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Vec::new())) }
    }

    /// Runs one task; false when there is none.
    pub fn run_one(&self) -> bool {
        let task = {
            let mut state = lock(&self.state);
            let (random, tasks) = &mut *state;
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            let count = tasks.len();
            (count > 0).then(|| tasks.swap_remove((*random >> 16) as usize % count))
        };
        let found = task.is_some();
        if let Some(task) = task {
            task.run();
        }
        found
    }
}

impl Dispatcher for Seeded {
    fn dispatch(&self, task: Task) {
        lock(&self.state).1.push(task);
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        while !latch.is_done() {
            if !self.run_one() {
                return Err(Error::Stalled);
            }
        }
        Ok(())
    }

    fn drain(&self) {
        while self.run_one() {}
    }
}
