//! Who runs tasks, and what a thread does while it waits.
//!
//! | dispatcher | tasks run on | a waiting thread |
//! |---|---|---|
//! | [`InPlace`] | the thread that made them, one after the other, never nested by dispatching | runs the tasks it has made |
//! | [`Pool`] | threads of its own | runs tasks; inside a task, parks while a spare thread takes its place |
//! | [`Seeded`] | the thread that waits, in an order that the seed decides | runs tasks; an error when none is left |
//! | [`OnExecutor`] | the embedder's executor | runs tasks |
//!
//! Running tasks on top of a waiting *task* may bury what the upper task waits for below it; that is why the pool does not.
//! A task that is dropped instead of run fails what it was responsible for: an executor that dies leaves nobody waiting.

mod executor;
mod pool;
pub(crate) mod queue;
mod single;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use executor::OnExecutor;
pub use pool::Pool;
pub use single::{InPlace, Seeded};

use crate::error::Error;
use crate::flags::Priority;
use crate::promise::Latch;

/// Something to do.
pub struct Task {
    priority: Priority,
    work: Box<dyn FnOnce() + Send>,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Tasks that this thread is in the middle of.
fn depth() -> usize {
    DEPTH.get()
}

impl Task {
    /// A task.
    pub fn new(priority: Priority, work: impl FnOnce() + Send + 'static) -> Task {
        Task { priority, work: Box::new(work) }
    }

    /// How urgent it is.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Does it. A panic ends the task and nothing else: what it was responsible for fails.
    pub fn run(self) {
        DEPTH.set(DEPTH.get() + 1);
        // The payload was shown by the panic hook.
        drop(catch_unwind(AssertUnwindSafe(self.work)));
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Runs tasks.
pub trait Dispatcher: Send + Sync {
    /// Takes a task, to be run once or dropped. No lock of the session is held.
    fn dispatch(&self, task: Task);

    /// Waits for `latch`, and does something useful meanwhile.
    ///
    /// # Errors
    /// [`Error::Stalled`] when it is certain that nothing will open the latch.
    fn wait(&self, latch: &dyn Latch) -> Result<(), Error>;

    /// Returns when all tasks dispatched so far, and those that they dispatched, are over; except those that this thread
    /// is in the middle of.
    fn drain(&self);
}
