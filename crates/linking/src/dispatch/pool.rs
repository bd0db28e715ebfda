//! Threads that run tasks.
//!
//! A task that waits parks its thread, and a spare thread runs queued tasks until it continues; so one worker
//! is enough for any nesting of tasks and lookups, and a task does not run on top of another that it may have
//! to wait for, unless the system cannot create a thread (`wait_alone`). The number of running threads is the
//! pool's size; in addition there are as many parked threads as waiting tasks.
//!
//! Waiting threads outside tasks (the embedder's) run tasks while they wait, unless they are in a call under
//! limits; threads that make tasks run some when there are more than the limit, so a producer is never far
//! ahead of the workers.
//!
//! With tokens (of a jobserver), one thread works without any, and each other one takes a token before it
//! runs tasks and returns it when none are left, or while it waits.

use std::any::Any;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::parked::Parked;
use super::queue::Queue;
use super::{Dispatcher, Task, Worker, depth, doing, priority};
use crate::dispatch::Latch;
use crate::error::Error;
use crate::sync::{Mutex, lock};

/// The right to run a task in parallel with others; returned when it is dropped.
pub type Token = Box<dyn Any + Send>;

/// A source of tokens: a pool takes one for each thread that runs tasks, except the first. For example a
/// jobserver's client.
pub trait Tokens: Send + Sync {
    /// A token, if available. It is called repeatedly as long as there is work: it may wait some milliseconds
    /// for one.
    fn try_take(&self) -> Option<Token>;
}

/// A wrapper around a thread's wait for the pool's threads when it drops the pool; they may need something
/// that it holds, for example a heap to enter.
pub trait Leave: Send + Sync {
    /// Calls `wait` once, or not at all, and then no thread waits: the threads end when they have finished
    /// their current task.
    fn leave(&self, wait: &mut dyn FnMut());
}

/// The maximum number of a pool's threads, except those that substitute for waiting ones: a system that has
/// no room for a thread may end the process without an error.
pub const MAX_THREADS: usize = 256;

/// Options of a pool.
#[derive(Clone, Default)]
pub struct PoolOptions {
    /// The threads: at least one, at most [`MAX_THREADS`], and no more than the system can create. Without
    /// any, tasks run on the threads that wait for them.
    pub threads: usize,
    /// The number of tasks above which a thread that makes more outside a task has to run some itself before
    /// it continues. `None`: no bound.
    pub limit: Option<usize>,
    /// The tokens to acquire before more than one thread works. `None`: no tokens are needed.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// The wrapper around the wait of a thread that drops the pool, if any.
    pub leave: Option<Arc<dyn Leave>>,
}

/// A thread's permit to work, if it has one, shared with the threads that do part of its work while it waits
/// for them.
#[derive(Clone, Default)]
pub(super) struct SharedPermit(Arc<Mutex<Option<Permit>>>);

impl SharedPermit {
    /// The permit of the current thread.
    fn here() -> SharedPermit {
        doing(|doing| doing.permit.clone())
    }

    fn is_given(&self) -> bool {
        lock(&self.0).is_some()
    }

    fn set(&self, permit: Permit) {
        let before = lock(&self.0).replace(permit);
        drop(before);
    }

    fn give_back(&self) {
        let permit = lock(&self.0).take();
        // The destructor of a token is embedder code.
        drop(permit);
    }
}

/// The permission to work: the one that every pool has, or a token.
struct Permit {
    own: Option<Arc<Shared>>,
    #[expect(dead_code, reason = "held while the thread works")]
    token: Option<Token>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(shared) = self.own.take() {
            lock(&shared.threads).own_permit = true;
        }
    }
}

struct Threads {
    /// The number of threads ever started.
    started: usize,
    /// The number of threads that exist and are not parked in a wait. Negative while threads that share one
    /// task begin to wait.
    running: isize,
    /// Whether the permit that needs no token is free.
    own_permit: bool,
    handles: Vec<JoinHandle<()>>,
}

struct Shared {
    size: usize,
    limit: usize,
    tokens: Option<Arc<dyn Tokens>>,
    queue: Queue,
    threads: Mutex<Threads>,
    /// Waiting threads that no worker substitutes for.
    parked: Parked,
}

/// Queues tasks of a [`Pool`] from places where nothing may run or wait: no task is run, no limit applies,
/// and no embedder code is called. It does not keep the pool's threads alive.
#[derive(Clone)]
pub struct PoolQueue {
    shared: Arc<Shared>,
}

impl PoolQueue {
    /// Queues a task.
    ///
    /// # Errors
    /// The pool is shut down; returns the task.
    pub fn push(&self, task: Task) -> Result<(), Task> {
        self.shared.queue.push_if_open(task)?;
        self.shared.parked.rouse();
        Ok(())
    }
}

/// See the file's header. Dropping it waits for its threads' current tasks, unless [`PoolOptions::leave`]
/// prevents that.
pub struct Pool {
    shared: Arc<Shared>,
    leave: Option<Arc<dyn Leave>>,
}

impl Pool {
    /// A pool of `size` threads, at least one and at most [`MAX_THREADS`].
    #[must_use]
    pub fn new(size: usize) -> Pool {
        Pool::with(PoolOptions { threads: size, ..PoolOptions::default() })
    }

    /// A pool with these options.
    #[must_use]
    pub fn with(options: PoolOptions) -> Pool {
        let pool = Pool::without_threads(options);
        // If the system cannot create another thread, trying again immediately is pointless.
        let _started = (0..pool.shared.size).take_while(|_| pool.shared.add_thread()).count();
        pool
    }

    fn without_threads(options: PoolOptions) -> Pool {
        let PoolOptions { threads: size, limit, tokens, leave } = options;
        let threads = Mutex::new(Threads { started: 0, running: 0, own_permit: true, handles: Vec::new() });
        let (size, limit) = (size.clamp(1, MAX_THREADS), limit.unwrap_or(usize::MAX));
        let shared =
            Arc::new(Shared { size, limit, tokens, queue: Queue::new(), threads, parked: Parked::default() });
        Pool { shared, leave }
    }

    /// The number of the current thread, if it is one of the pool's or substitutes for one.
    fn worker(&self) -> Option<usize> {
        let worker = doing(|doing| doing.worker)?;
        (worker.of == self.shared.address()).then_some(worker.number)
    }

    /// Access to the pool's queue from places where nothing may run or wait.
    #[must_use]
    pub fn queue(&self) -> PoolQueue {
        PoolQueue { shared: Arc::clone(&self.shared) }
    }

    /// Stops taking tasks: new tasks, and those that no thread has begun, are dropped.
    pub fn shutdown(&self) {
        self.shared.queue.close();
        self.shared.flush();
    }
}

impl Shared {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Drops queued tasks.
    fn flush(&self) {
        while let Some(task) = self.queue.pop_unbegun() {
            self.queue.run(Task::new(task.priority(), move || drop(task)));
        }
    }

    /// Whether the system created a thread.
    fn add_thread(self: &Arc<Self>) -> bool {
        let shared = Arc::clone(self);
        let mut threads = lock(&self.threads);
        let number = threads.started;
        let body = move || shared.work(number);
        let Ok(handle) = std::thread::Builder::new().name("brolga-worker".into()).spawn(body) else {
            return false;
        };
        threads.started += 1;
        threads.running += 1;
        threads.handles.retain(|handle| !handle.is_finished());
        threads.handles.push(handle);
        true
    }

    /// Waits when the system cannot create a thread that would work meanwhile: tasks run here, even on top of
    /// a task if there is no better choice.
    fn wait_alone(&self, latch: &dyn Latch) {
        let place = self.parked.enter_for(latch);
        while !latch.is_done() {
            match self.queue.pop() {
                Some(task) => self.queue.run(task),
                None => place.sleep(),
            }
        }
    }

    /// Whether this thread has a permit, or can get one immediately.
    fn has_permit(self: &Arc<Self>) -> bool {
        let Some(tokens) = &self.tokens else { return true };
        let permit = SharedPermit::here();
        if permit.is_given() {
            return true;
        }
        let own = std::mem::take(&mut lock(&self.threads).own_permit).then(|| Arc::clone(self));
        let token = if own.is_some() { None } else { tokens.try_take() };
        let given = own.is_some() || token.is_some();
        if given {
            permit.set(Permit { own, token });
        }
        given
    }

    /// Runs a task, or sleeps until something has changed; `false` when the queue is closed and empty.
    fn run_or_sleep(self: &Arc<Self>, number: usize) -> bool {
        let too_many = || lock(&self.threads).running > self.size.cast_signed();
        if self.tokens.is_none() {
            match self.queue.pop_as(number) {
                Some(task) => self.queue.run(task),
                None => return self.queue.sleep_or_run(too_many),
            }
            return true;
        }
        if self.queue.is_empty() {
            // A sleeping thread does not block others.
            SharedPermit::here().give_back();
            return self.queue.sleep(too_many);
        }
        if self.has_permit() {
            if let Some(task) = self.queue.pop_as(number) {
                self.queue.run(task);
            }
        } else {
            // It may have been woken instead of a thread that could get a permit.
            self.queue.rouse();
            std::thread::yield_now();
        }
        true
    }

    fn work(self: &Arc<Self>, number: usize) {
        doing(|doing| doing.worker = Some(Worker { of: self.address(), number }));
        while self.run_or_sleep(number) {
            // No other thread may take the rest of a closed queue: threads leave when it is momentarily
            // empty.
            let is_wanted = self.queue.is_closed() && !self.queue.is_empty();
            let mut threads = lock(&self.threads);
            if threads.running > self.size.cast_signed() && !is_wanted {
                threads.running -= 1;
                drop(threads);
                SharedPermit::here().give_back();
                // It may have been woken for a task, which another thread must now take.
                return self.queue.rouse();
            }
        }
        SharedPermit::here().give_back();
        lock(&self.threads).running -= 1;
    }
}

impl Dispatcher for Pool {
    fn dispatch(&self, task: Task) {
        self.dispatch_all(vec![task]);
    }

    fn dispatch_all(&self, tasks: Vec<Task>) {
        let queue = &self.shared.queue;
        tasks.into_iter().for_each(|task| queue.push(task));
        self.shared.parked.rouse();
        if queue.is_closed() {
            self.shared.flush();
        }
        // Tasks of tasks are not held back, otherwise the outer ones could not continue.
        while queue.outstanding() > self.shared.limit && depth() == 0 {
            match queue.pop() {
                Some(task) => queue.run(task),
                None => break,
            }
        }
    }

    fn takes_rest(&self, weight: u32) -> bool {
        // A task on top of another one continues, so that the lower one can.
        depth() == 1
            && self.worker().is_some_and(|number| self.shared.queue.takes_rest(number, priority(), weight))
    }

    fn dispatch_rest(&self, rest: Task) {
        match self.worker() {
            Some(number) => {
                self.shared.queue.push_rest(number, rest);
                self.shared.parked.rouse();
            }
            None => self.dispatch(rest),
        }
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        if latch.is_done() {
            return Ok(());
        }
        let shared = &self.shared;
        let on_top = depth() > 0;
        // A task on a thread of the embedder, or of another pool, does not reduce the number of workers.
        let worker = on_top && self.worker().is_some();
        if worker {
            SharedPermit::here().give_back();
            lock(&shared.threads).running -= 1;
        }
        let others = if worker { shared.add_thread() } else { lock(&shared.threads).running > 0 };
        if others && (on_top || !latch.helps()) {
            latch.park();
        } else if others {
            while !latch.is_done() {
                match shared.queue.pop() {
                    Some(task) => shared.queue.run(task),
                    None => latch.park(),
                }
            }
        } else {
            shared.wait_alone(latch);
        }
        if worker {
            lock(&shared.threads).running += 1;
            // Without a permit it continues nevertheless: others may wait for its current work.
            shared.has_permit();
            // A surplus worker sleeps now, and must retry; or will look when it is done.
            shared.queue.rouse();
        }
        Ok(())
    }

    fn look_again(&self) {
        self.shared.parked.rouse();
    }

    fn drain(&self) {
        self.shared.queue.drain(depth());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shutdown();
        let mut handles = std::mem::take(&mut lock(&self.shared.threads).handles);
        // A task may drop the last handle of a session: a thread does not wait for itself.
        handles.retain(|handle| handle.thread().id() != std::thread::current().id());
        let mut wait = || {
            for handle in handles.drain(..) {
                // A worker does not panic: tasks are fenced.
                let _ = handle.join();
            }
        };
        match &self.leave {
            Some(leave) => leave.leave(&mut wait),
            None => wait(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::{Pool, PoolOptions};
    use crate::dispatch::{Dispatcher, Task};
    use crate::flags::Priority;
    use crate::promise::Promise;

    #[test]
    fn the_queue_takes_tasks_until_the_pool_is_shut_down() {
        let pool = Pool::new(1);
        let (queue, (sender, ran)) = (pool.queue(), mpsc::channel());
        let task = |sender: &mpsc::Sender<u32>, n| {
            let sender = sender.clone();
            Task::new(Priority::Idle, move || sender.send(n).unwrap())
        };
        assert!(queue.push(task(&sender, 1)).is_ok());
        pool.drain();
        assert_eq!(ran.try_recv(), Ok(1));
        pool.shutdown();
        assert!(queue.push(task(&sender, 2)).is_err(), "the task is given back");
        // Nothing is outstanding.
        pool.drain();
        drop(pool);
        assert!(queue.push(task(&sender, 3)).is_err());
        assert!(ran.try_recv().is_err());
    }

    #[test]
    fn where_the_system_gives_no_thread_those_that_wait_do_the_work() {
        let pool = Arc::new(Pool::without_threads(PoolOptions { threads: 2, ..PoolOptions::default() }));
        let (answer, answers) = mpsc::channel();
        // On top of a task, and outside one.
        for on_top in [false, true] {
            let (promise, pool, answer) = (Arc::new(Promise::new()), Arc::clone(&pool), answer.clone());
            let awaited = Arc::clone(&promise);
            let waiter = Arc::clone(&pool);
            thread::spawn(move || {
                let wait = move || answer.send(waiter.wait(&*awaited).is_ok()).expect("awaited");
                if on_top { Task::new(Priority::Normal, wait).run() } else { wait() }
            });
            (0..1_000).for_each(|_| thread::yield_now());
            pool.dispatch(Task::new(Priority::Normal, move || {
                if let Some(waker) = promise.complete(()) {
                    waker.wake();
                }
            }));
            // A later answer never comes.
            let answered = (0..1_000_000).find_map(|_| {
                thread::yield_now();
                answers.try_recv().ok()
            });
            assert_eq!(answered, Some(true));
        }
    }
}
