//! Tasks on an executor of the embedder.
//!
//! The executor gets jobs, one for each task; a job runs the most urgent task at that time, which may be another one,
//! or none when a waiting thread has run it. Dropping a job drops a task, which fails the task's responsibilities.
//!
//! ```text
//!   dispatch ──► lanes ◄── job ── executor's thread      as many jobs have been handed out, and not begun,
//!                  ▲                                     as tasks lie in the lanes, or more
//!                  └────── thread that waits
//! ```
//!
//! The executor may have one thread, and that one may wait, in the middle of a task or outside one: no job is begun meanwhile. So a
//! waiting thread looks for tasks whenever there are new ones, and when others become needed (`parked.rs`). It takes those that its
//! wait is known to need. It may need others, too: when an executor says how many threads it has ([`OnExecutor::with_threads`]), and
//! all of them wait so, the last one takes any task.
//!
//! Invariant: the thread that runs a task takes it out of its lane and never puts it back, so its job is not lost. One lock guards the lanes
//! and the counts; no other is taken under it.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::parked::Parked;
use super::{Dispatcher, Needed, Task, Worker, depth, doing};
use crate::dispatch::Latch;
use crate::error::Error;
use crate::sync::{Condvar, Mutex, lock, wait};

/// See the file's header. `F` hands a job to the executor.
pub struct OnExecutor<F> {
    shared: Arc<Shared>,
    threads: Option<NonZeroUsize>,
    spawn: F,
}

#[derive(Default)]
struct Shared {
    backlog: Mutex<Backlog>,
    parked: Parked,
    /// A task is over, or there is another one.
    changed: Condvar,
}

#[derive(Default)]
struct Backlog {
    /// The queued tasks, by priority.
    lanes: [VecDeque<Task>; 3],
    /// Tasks that are not over.
    outstanding: usize,
    /// Threads that wait for all tasks to be over.
    drainers: usize,
}

impl Backlog {
    /// The most urgent task.
    fn pop(&mut self) -> Option<Task> {
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    /// The most urgent task of those that are needed.
    fn pop_for(&mut self, needed: &Needed) -> Option<Task> {
        let mut at = needed.choose(self.lanes.iter().flatten())?;
        for lane in &mut self.lanes {
            if at < lane.len() {
                return lane.remove(at);
            }
            at -= lane.len();
        }
        None
    }
}

impl Shared {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn pop(&self) -> Option<Task> {
        lock(&self.backlog).pop()
    }

    /// Runs a task that was taken out of its lane.
    fn run(&self, task: Task) {
        task.run();
        let mut backlog = lock(&self.backlog);
        backlog.outstanding -= 1;
        if backlog.drainers > 0 {
            self.changed.notify_all();
        }
    }
}

struct Job {
    shared: Arc<Shared>,
    dropped: bool,
}

impl<F: Fn(Box<dyn FnOnce() + Send>) + Send + Sync> OnExecutor<F> {
    /// Runs tasks by handing jobs to `spawn`.
    pub fn new(spawn: F) -> Self {
        OnExecutor { shared: Arc::default(), threads: None, spawn }
    }

    /// The executor has no more threads than these. When all of them wait in the middle of tasks, the last one runs
    /// any queued task, though it is unknown whether that helps. Without this such a wait may last for ever; that takes a responsibility
    /// which is not fulfilled by the task that it was given to.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroUsize) -> Self {
        OnExecutor { threads: Some(threads), ..self }
    }
}

impl Job {
    fn run(mut self) {
        self.dropped = false;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(task) = self.shared.pop() else { return };
        if self.dropped {
            return self.shared.run(Task::new(task.priority(), move || drop(task)));
        }
        let worker = Worker { of: self.shared.address(), number: 0 };
        let before = doing(|doing| doing.worker.replace(worker));
        self.shared.run(task);
        doing(|doing| doing.worker = before);
    }
}

impl<F: Fn(Box<dyn FnOnce() + Send>) + Send + Sync> Dispatcher for OnExecutor<F> {
    fn dispatch(&self, task: Task) {
        let mut backlog = lock(&self.shared.backlog);
        backlog.outstanding += 1;
        backlog.lanes[task.lane()].push_back(task);
        if backlog.drainers > 0 {
            self.shared.changed.notify_all();
        }
        drop(backlog);
        self.shared.parked.rouse();
        let job = Job { shared: Arc::clone(&self.shared), dropped: true };
        (self.spawn)(Box::new(move || job.run()));
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        if latch.is_done() {
            return Ok(());
        }
        let place = self.shared.parked.enter_for(latch);
        let on_top = depth() > 0;
        // Threads of the embedder that wait in the middle of a task leave the executor's as many as they are.
        let own = doing(|doing| doing.worker).is_some_and(|worker| worker.of == self.shared.address());
        let threads = self.threads.filter(|_| own);
        let all_wait = || threads.is_some_and(|threads| place.is_last_of(threads.get()));
        while !latch.is_done() {
            let task = if on_top || !latch.helps() {
                // The session computes the needed tasks, under its own lock.
                let needed = latch.needed();
                let task = lock(&self.shared.backlog).pop_for(&needed);
                task.or_else(|| all_wait().then(|| self.shared.pop()).flatten())
            } else {
                self.shared.pop()
            };
            match task {
                Some(task) => {
                    place.go_on();
                    self.shared.run(task);
                }
                None => place.sleep(),
            }
        }
        Ok(())
    }

    fn look_again(&self) {
        self.shared.parked.rouse();
    }

    fn drain(&self) {
        let left = depth();
        let mut backlog = lock(&self.shared.backlog);
        backlog.drainers += 1;
        while backlog.outstanding > left {
            match backlog.pop() {
                Some(task) => {
                    drop(backlog);
                    self.shared.run(task);
                    backlog = lock(&self.shared.backlog);
                }
                None => backlog = wait(&self.shared.changed, backlog),
            }
        }
        backlog.drainers -= 1;
    }
}
