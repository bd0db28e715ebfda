//! Tasks without threads: on the thread that makes them, or in an order determined by a seed.
//!
//! Dispatching from inside a task only queues, so a chain of a million units runs in constant stack. Waiting
//! inside a task runs the tasks it needs on top of it: with one thread there is no alternative.

use std::collections::VecDeque;
use std::thread::{ThreadId, current};

use super::parked::{Parked, Place};
use super::{Dispatcher, Needed, Task, depth};
use crate::dispatch::Latch;
use crate::error::Error;
use crate::sync::{Mutex, lock};

/// Runs tasks on the dispatching thread, in order of arrival. Priorities are ignored.
#[derive(Default)]
pub struct InPlace {
    /// Threads that are running tasks, with the tasks they have yet to run.
    busy: Mutex<Vec<(ThreadId, VecDeque<Task>)>>,
    parked: Parked,
}

impl InPlace {
    #[must_use]
    pub fn new() -> InPlace {
        InPlace::default()
    }

    fn next(&self) -> Option<Task> {
        let me = current().id();
        lock(&self.busy).iter_mut().find(|(thread, _)| *thread == me)?.1.pop_front()
    }

    /// Any task, preferably of this thread, if all working threads wait and have found none to run.
    fn next_of_all(&self, place: &Place<'_>) -> Option<Task> {
        let me = current().id();
        let at_work = {
            let busy = lock(&self.busy);
            busy.iter().any(|(thread, _)| *thread == me).then_some(busy.len())
        };
        if !at_work.is_some_and(|threads| place.is_last_of(threads)) {
            return None;
        }
        let task =
            self.next().or_else(|| lock(&self.busy).iter_mut().find_map(|(_, tasks)| tasks.pop_front()));
        if task.is_some() {
            place.go_on();
        }
        task
    }

    /// A task, of any thread, to run on top of a waiting one.
    fn next_for(&self, needed: &Needed) -> Option<Task> {
        let me = current().id();
        let mut busy = lock(&self.busy);
        // Tasks made by this thread come first.
        busy.sort_by_key(|(thread, _)| *thread != me);
        let at = needed.choose(busy.iter().flat_map(|(_, tasks)| tasks))?;
        let mut before = 0;
        for (_, tasks) in &mut *busy {
            if at < before + tasks.len() {
                return tasks.remove(at - before);
            }
            before += tasks.len();
        }
        None
    }
}

impl Dispatcher for InPlace {
    fn dispatch(&self, task: Task) {
        self.dispatch_all(vec![task]);
    }

    fn dispatch_all(&self, tasks: Vec<Task>) {
        let me = current().id();
        {
            let mut busy = lock(&self.busy);
            if let Some((_, queue)) = busy.iter_mut().find(|(thread, _)| *thread == me) {
                queue.extend(tasks);
                drop(busy);
                return self.parked.rouse();
            }
            busy.push((me, VecDeque::from(tasks)));
        }
        self.parked.rouse();
        while let Some(task) = self.next() {
            task.run();
        }
        lock(&self.busy).retain(|(thread, _)| *thread != me);
        // Now the waiting threads may be the only ones at work.
        self.parked.rouse();
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        if latch.is_done() {
            return Ok(());
        }
        let place = self.parked.enter_for(latch);
        while !latch.is_done() {
            let next = match depth() {
                // A task of another thread may be queued after a waiting task of that thread.
                0 => self.next().or_else(|| self.next_for(&latch.needed())),
                // The needed task may be one of unknown purpose: running it is better than running nothing.
                _ => self.next_for(&latch.needed()).or_else(|| self.next_of_all(&place)),
            };
            match next {
                Some(task) => task.run(),
                // Another thread is running it.
                None => place.sleep(),
            }
        }
        Ok(())
    }

    fn look_again(&self) {
        self.parked.rouse();
    }

    fn drain(&self) {
        let me = current().id();
        let place = self.parked.enter();
        loop {
            match self.next().or_else(|| self.next_of_all(&place)) {
                Some(task) => task.run(),
                // A thread is at work while it executes tasks, and then runs the remaining ones that it made.
                None if lock(&self.busy).iter().all(|(thread, _)| *thread == me) => return,
                None => place.sleep(),
            }
        }
    }
}

/// Runs tasks on the waiting or draining thread, in an order that depends only on the seed. For a single
/// thread: a wait that no remaining task can end is an error.
pub struct Seeded {
    state: Mutex<(u64, Vec<Task>)>,
}

impl Seeded {
    #[must_use]
    pub fn new(seed: u64) -> Seeded {
        Seeded { state: Mutex::new((seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Vec::new())) }
    }

    /// Runs one task; `false` if there is none.
    pub fn run_one(&self) -> bool {
        self.run_some(None)
    }

    /// Runs one task; on top of another one, only a task that it needs.
    fn run_some(&self, needed: Option<&Needed>) -> bool {
        let task = {
            let mut state = lock(&self.state);
            let (random, tasks) = &mut *state;
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            let count = tasks.len();
            if count > 0 {
                // The order in which they are examined is as random as the choice.
                tasks.rotate_left((*random >> 16) as usize % count);
            }
            let at = match needed {
                Some(needed) => needed.choose(tasks.iter()),
                None => (count > 0).then_some(0),
            };
            at.map(|at| tasks.swap_remove(at))
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
            let needed = (depth() > 0).then(|| latch.needed());
            // The needed task may be one of unknown purpose.
            if !self.run_some(needed.as_ref()) && !self.run_one() {
                return Err(Error::Stalled);
            }
        }
        Ok(())
    }

    fn drain(&self) {
        while self.run_one() {}
    }
}
