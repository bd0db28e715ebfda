//! Rests of tasks: doing the same part of several tasks together.
//!
//! A worker that takes a function from its source to machine code finds, at each stage, the processor's
//! caches filled with the code of the previous stage. So a task may defer its rest to a later one
//! (`Dispatcher::takes_rest`), and while similar tasks are queued its worker begins those first:
//!
//! ```text
//!   alone      a1 b1 c1  a2 b2 c2  a3 b3 c3  …
//!   batches    a1 a2 … a32  b1 b2 … b32  c1 c2 … c32  a33 …
//!              └ filling ┘  └ emptying, first come first served; rests of rests go to the end ┘
//! ```
//!
//! | protected | by |
//! |---|---|
//! | urgent tasks | a batch has one priority, and more urgent tasks run between its parts |
//! | a thread that waits for one function | no batch is begun unless another task of the priority is queued; it is filled up to [`max_tasks`] or [`MAX_WEIGHT`] |
//! | idle workers | a thread that finds no task takes rests of others; no rest is deferred while a thread sleeps |
//! | threads that wait inside a task | any thread may take another's rests |
//!
//! The count's row (Q10) is in the table of `queue.rs`, whose fences order it.
//!
//! Cost: a lock for each deferred part, held for a move.

use std::collections::VecDeque;

use super::Task;
use crate::flags::Priority;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// The number of tasks begun before the first continues. Threads wait for the most urgent ones.
const fn max_tasks(priority: Priority) -> usize {
    match priority {
        Priority::Blocking => 8,
        Priority::Normal | Priority::Idle => 32,
    }
}

/// The same in statements; a task of more than a quarter of this is never split.
pub(crate) const MAX_WEIGHT: u32 = 2_000;

/// The rests deferred by one worker, at least one.
struct Batch {
    worker: usize,
    priority: Priority,
    is_filling: bool,
    weight: u32,
    tasks: VecDeque<Task>,
}

/// The next step of a worker with its own rests.
pub(crate) enum Next {
    /// Begins another task, if there is one.
    Begin(Priority),
    Rest(Task),
    /// No work.
    Nothing,
}

/// See the file's header.
pub(crate) struct Rests {
    /// The number of rests. Changed under the lock.
    count: AtomicUsize,
    batches: Mutex<Vec<Batch>>,
}

impl Rests {
    pub(crate) fn new() -> Rests {
        Rests { count: AtomicUsize::new(0), batches: Mutex::new(Vec::new()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let count = self.count.load(Ordering::Relaxed); // Q10
        count == 0
    }

    /// Whether a worker may defer a rest; `is_queued` tells whether a similar task can be begun.
    pub(crate) fn takes(&self, worker: usize, priority: Priority, is_queued: bool) -> bool {
        let batches = lock(&self.batches);
        let own = batches.iter().find(|batch| batch.worker == worker);
        own.map_or(is_queued, |batch| batch.priority == priority)
    }

    pub(crate) fn push(&self, worker: usize, task: Task) {
        let mut batches = lock(&self.batches);
        let at = batches.iter().position(|batch| batch.worker == worker).unwrap_or_else(|| {
            let (priority, tasks) = (task.priority(), VecDeque::new());
            batches.push(Batch { worker, priority, is_filling: true, weight: 0, tasks });
            batches.len() - 1
        });
        batches[at].weight += task.weight;
        batches[at].tasks.push_back(task);
        self.count.fetch_add(1, Ordering::Relaxed); // Q10
    }

    /// The next step of a worker; `is_queued` tells whether a task of a priority can be begun.
    pub(crate) fn next(&self, worker: usize, is_queued: impl Fn(Priority) -> bool) -> Next {
        let mut batches = lock(&self.batches);
        let Some(at) = batches.iter().position(|batch| batch.worker == worker) else { return Next::Nothing };
        let batch = &mut batches[at];
        let urgent = [Priority::Blocking, Priority::Normal, Priority::Idle];
        let urgent = urgent.into_iter().filter(|&other| other < batch.priority);
        if let Some(priority) = urgent.into_iter().find(|&other| is_queued(other)) {
            return Next::Begin(priority);
        }
        let is_full = batch.tasks.len() >= max_tasks(batch.priority) || batch.weight >= MAX_WEIGHT;
        batch.is_filling = batch.is_filling && !is_full && is_queued(batch.priority);
        if batch.is_filling {
            return Next::Begin(batch.priority);
        }
        self.take(&mut batches, at).map_or(Next::Nothing, Next::Rest)
    }

    /// A rest of that priority, of any worker.
    pub(crate) fn steal(&self, priority: Priority) -> Option<Task> {
        let mut batches = lock(&self.batches);
        let at = batches.iter().position(|batch| batch.priority == priority)?;
        self.take(&mut batches, at)
    }

    fn take(&self, batches: &mut Vec<Batch>, at: usize) -> Option<Task> {
        let task = batches[at].tasks.pop_front()?;
        if batches[at].tasks.is_empty() {
            batches.swap_remove(at);
        }
        self.count.fetch_sub(1, Ordering::Relaxed); // Q10
        Some(task)
    }
}
