//! Threads that run tasks.
//!
//! A task that waits parks its thread, and a spare thread runs what is queued until it goes on; so one worker is enough for
//! any nesting of tasks and lookups, and a task never runs on top of another that it may have to wait for. There are as
//! many threads running as the pool's size; besides those, as many as tasks are waiting.
//!
//! Waiting threads that are not in the middle of a task (the embedder's) run tasks while they wait.

use std::cell::Cell;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::queue::Queue;
use super::{Dispatcher, Task, depth};
use crate::error::Error;
use crate::promise::Latch;
use crate::sync::{Mutex, lock};

thread_local! {
    static WORKER: Cell<bool> = const { Cell::new(false) };
}

struct Threads {
    /// Threads that exist and are not parked in a wait.
    running: usize,
    handles: Vec<JoinHandle<()>>,
}

struct Shared {
    size: usize,
    queue: Queue,
    threads: Mutex<Threads>,
}

/// See the file's header.
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// A pool of `size` threads, at least one.
    #[must_use]
    pub fn new(size: usize) -> Pool {
        let threads = Mutex::new(Threads { running: 0, handles: Vec::new() });
        let shared = Arc::new(Shared { size: size.max(1), queue: Queue::new(), threads });
        for _ in 0..shared.size {
            shared.add_thread();
        }
        Pool { shared }
    }

    /// Takes no more tasks: those that come, and those that no thread has begun, are dropped.
    pub fn shutdown(&self) {
        self.shared.queue.close();
        self.shared.flush();
    }
}

impl Shared {
    /// Drops what is queued.
    fn flush(&self) {
        while let Some(task) = self.queue.pop() {
            self.queue.run(Task::new(task.priority(), move || drop(task)));
        }
    }

    /// Whether the system gave us a thread.
    fn add_thread(self: &Arc<Self>) -> bool {
        let shared = Arc::clone(self);
        let mut threads = lock(&self.threads);
        let body = move || shared.work();
        let Ok(handle) = std::thread::Builder::new().name("brolga-worker".into()).spawn(body) else {
            return false;
        };
        threads.running += 1;
        threads.handles.retain(|handle| !handle.is_finished());
        threads.handles.push(handle);
        true
    }

    fn work(&self) {
        WORKER.set(true);
        while self.queue.run_or_sleep(|| lock(&self.threads).running > self.size) {
            let mut threads = lock(&self.threads);
            if threads.running > self.size {
                threads.running -= 1;
                drop(threads);
                // It may have been woken for a task, which is somebody else's now.
                return self.queue.rouse();
            }
        }
        lock(&self.threads).running -= 1;
    }
}

impl Dispatcher for Pool {
    fn dispatch(&self, task: Task) {
        self.shared.queue.push(task);
        if self.shared.queue.is_closed() {
            self.shared.flush();
        }
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        let queue = &self.shared.queue;
        if depth() > 0 && !latch.is_done() {
            // A task on a thread of the embedder leaves the workers as many as they are.
            let worker = WORKER.get();
            if worker {
                lock(&self.shared.threads).running -= 1;
            }
            if !worker || self.shared.add_thread() {
                latch.park();
            }
            if worker {
                lock(&self.shared.threads).running += 1;
                // Whoever is one too many now sleeps, and shall look; or will look when it is done.
                queue.rouse();
            }
        }
        // Without a spare thread, running tasks here is the best that can be done.
        while !latch.is_done() {
            match queue.pop() {
                Some(task) => queue.run(task),
                None => latch.park(),
            }
        }
        Ok(())
    }

    fn drain(&self) {
        self.shared.queue.drain(depth());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shutdown();
        let handles = std::mem::take(&mut lock(&self.shared.threads).handles);
        for handle in handles {
            // The last handle of a session may be dropped by a task: a thread does not wait for itself.
            if handle.thread().id() != std::thread::current().id() {
                // A worker does not panic: tasks are fenced.
                let _ = handle.join();
            }
        }
    }
}
