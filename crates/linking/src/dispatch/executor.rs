//! Tasks on the embedder's executor.
//!
//! The executor receives jobs, one for each task; a job runs the most urgent task at that time, which may be
//! another one, or none if a waiting thread has already run it. Dropping a job drops a task, which fails the
//! task's responsibilities.
//!
//! ```text
//!   dispatch ──► lanes ◄── job ── executor's thread      the number of jobs handed out but not begun
//!                  ▲                                     is at least the number of queued tasks
//!                  └────── waiting thread
//! ```
//!
//! The executor may have only one thread, which may wait, inside a task or outside one: no job is begun
//! meanwhile. So a waiting thread looks for tasks whenever there are new ones, and when others become needed
//! (`parked.rs`). It takes those that its wait is known to need. It may need others as well: if an executor
//! declares its number of threads ([`OnExecutor::with_threads`]), and all of them wait like this, the last
//! one takes any task.
//!
//! Invariant: the thread that runs a task removes it from its lane and never puts it back, so its job is not
//! lost. One lock guards the lanes and the counts; no other is taken under it.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::parked::Parked;
use super::{Dispatcher, Needed, Task, Worker, depth, doing};
use crate::dispatch::Latch;
use crate::error::Error;
use crate::sync::{Condvar, Mutex, lock, wait};

/// See the file's header. `F` passes a job to the executor.
pub struct OnExecutor<F> {
    shared: Arc<Shared>,
    threads: Option<NonZeroUsize>,
    spawn: F,
}

#[derive(Default)]
struct Shared {
    backlog: Mutex<Backlog>,
    parked: Parked,
    /// Notified when a task has finished or another one is queued.
    changed: Condvar,
}

#[derive(Default)]
struct Backlog {
    /// The queued tasks, by priority.
    lanes: [VecDeque<Task>; 3],
    /// The number of unfinished tasks.
    outstanding: usize,
    /// The number of threads waiting for all tasks to finish.
    drainers: usize,
}

impl Backlog {
    /// The most urgent task.
    fn pop(&mut self) -> Option<Task> {
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    /// The most urgent of the needed tasks.
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

    /// Runs a task that was removed from its lane.
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
    /// An executor that runs tasks by passing jobs to `spawn`.
    pub fn new(spawn: F) -> Self {
        OnExecutor { shared: Arc::default(), threads: None, spawn }
    }

    /// Declares that the executor has at most this number of threads. When all of them wait inside tasks, the
    /// last one runs any queued task, although it is unknown whether that helps. Without this such a wait may
    /// last forever; that requires a responsibility that is not fulfilled by the task that received it.
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
        // Embedder threads that wait inside a task do not reduce the number of the executor's.
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
