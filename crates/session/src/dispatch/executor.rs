//! Tasks on an executor of the embedder.
//!
//! The executor gets jobs, one for each task; a job runs the most urgent task that is there then, which may be another one,
//! or none when a waiting thread has run it. A job that is dropped drops a task, which fails what it was responsible for.
//!
//! The executor may have one thread, and that one may wait, in the middle of a task or of something else: no job is begun meanwhile. So a
//! waiting thread looks for tasks whenever there are new ones, and when others come to be needed (`parked.rs`).

use std::sync::Arc;

use super::parked::Parked;
use super::queue::Queue;
use super::{Dispatcher, Task, depth};
use crate::error::Error;
use crate::promise::Latch;

/// See the file's header. `F` hands a job to the executor.
pub struct OnExecutor<F> {
    queue: Arc<Queue>,
    parked: Parked,
    spawn: F,
}

struct Job {
    queue: Arc<Queue>,
    dropped: bool,
}

impl<F: Fn(Box<dyn FnOnce() + Send>) + Send + Sync> OnExecutor<F> {
    /// Runs tasks by handing jobs to `spawn`.
    pub fn new(spawn: F) -> Self {
        OnExecutor { queue: Arc::new(Queue::new()), parked: Parked::default(), spawn }
    }
}

impl<F: Fn(Box<dyn FnOnce() + Send>)> OnExecutor<F> {
    fn spawn_job(&self) {
        let job = Job { queue: Arc::clone(&self.queue), dropped: true };
        (self.spawn)(Box::new(move || job.run()));
    }
}

impl Job {
    fn run(mut self) {
        self.dropped = false;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(task) = self.queue.pop() else { return };
        if self.dropped {
            self.queue.run(Task::new(task.priority(), move || drop(task)));
        } else {
            self.queue.run(task);
        }
    }
}

impl<F: Fn(Box<dyn FnOnce() + Send>) + Send + Sync> Dispatcher for OnExecutor<F> {
    fn dispatch(&self, task: Task) {
        self.queue.push(task);
        self.parked.rouse();
        self.spawn_job();
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        if latch.is_done() {
            return Ok(());
        }
        let place = self.parked.enter(latch);
        while !latch.is_done() {
            let task = if depth() == 0 {
                self.queue.pop()
            } else {
                let (task, others) = self.queue.pop_for(&latch.needed());
                // Their jobs may have come meanwhile, and found nothing.
                (0..others).for_each(|_| self.spawn_job());
                task
            };
            match task {
                Some(task) => self.queue.run(task),
                None => place.sleep(),
            }
        }
        Ok(())
    }

    fn look_again(&self) {
        self.parked.rouse();
    }

    fn drain(&self) {
        self.queue.drain(depth());
    }
}
