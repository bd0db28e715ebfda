//! Dispatch of tasks, and what a thread does while it waits.
//!
//! | dispatcher | tasks run on | a waiting thread |
//! |---|---|---|
//! | [`InPlace`] | the thread that made them, in order, never nested by dispatching | runs the tasks it has made |
//! | [`Pool`] | its own threads | runs tasks; inside a task, parks while a spare thread takes its place |
//! | [`Seeded`] | the waiting thread, in an order determined by the seed | runs tasks; an error when none is left |
//! | [`OnExecutor`] | the embedder's executor | runs tasks |
//!
//! A task that runs on top of a waiting *task* may wait for the one below it; so the pool does not nest them.
//! Dispatchers without spare threads first run the tasks that the waiting task needs (`machine/waits.rs`),
//! which wait for it only in a cycle; then those with an unknown purpose; and any task if all threads wait
//! like this.
//!
//! A task may do the rest of its work in another one ([`Dispatcher::takes_rest`]): if many are queued, the
//! same part of several is done together, while the processor's caches hold the code of that part
//! (`rest.rs`).
//!
//! The session tracks the work of each thread: each task has a purpose ([`Doing`] passes it on to other
//! threads), so a thread that would wait for itself gets an error. A task that is dropped instead of run
//! fails its responsibilities: a terminated executor leaves no thread waiting.

mod executor;
mod parked;
mod pool;
pub(crate) mod queue;
mod rest;
mod single;

use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

pub use executor::OnExecutor;
pub use pool::{Leave, MAX_THREADS, Pool, PoolOptions, PoolQueue, Token, Tokens};
pub use single::{InPlace, Seeded};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Error;
use crate::flags::Priority;
use crate::machine::Doer;

/// Something to do.
pub struct Task {
    priority: Priority,
    weight: u32,
    doer: Option<SessionDoer>,
    work: Box<dyn FnOnce() + Send>,
}

/// An actor of a session, identified by its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionDoer {
    pub(crate) session: usize,
    /// `None` if the actor is not known.
    pub(crate) doer: Option<Doer>,
}

/// A thread of a dispatcher.
#[derive(Clone, Copy)]
struct Worker {
    /// The address of the state that the dispatcher shares with its threads.
    of: usize,
    /// Its number, where that matters.
    number: usize,
}

/// The work in progress on a thread.
#[derive(Clone, Default)]
pub struct Doing {
    tasks: usize,
    /// The priority of the innermost task.
    priority: Option<Priority>,
    /// The worker that it is, or substitutes for.
    worker: Option<Worker>,
    /// The thread's permit; other threads that take over its work share it.
    permit: pool::SharedPermit,
    doers: SmallVec<[SessionDoer; 2]>,
}

crate::sync::thread_local! {
    static DOING: RefCell<Doing> = RefCell::default();
}

fn doing<R>(look: impl FnOnce(&mut Doing) -> R) -> R {
    DOING.with(|doing| look(&mut doing.borrow_mut()))
}

impl Doing {
    /// The work in progress on the current thread.
    #[must_use]
    pub fn here() -> Doing {
        doing(|doing| doing.clone())
    }

    /// Runs `work` as part of this, while the original thread waits for it to end.
    pub fn go_on<R>(self, work: impl FnOnce() -> R) -> R {
        let _restored = Restored(doing(|doing| std::mem::replace(doing, self)));
        work()
    }
}

/// Restores the previous work in progress.
struct Restored(Doing);

impl Drop for Restored {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.0);
        drop(doing(|doing| std::mem::replace(doing, before)));
    }
}

/// The priority of the current task.
pub(crate) fn priority() -> Priority {
    doing(|doing| doing.priority).unwrap_or(Priority::Normal)
}

/// The nesting depth of tasks on this thread.
fn depth() -> usize {
    doing(|doing| doing.tasks)
}

/// The actors of a session that this thread is working for.
pub(crate) fn doers(session: usize) -> SmallVec<[Doer; 2]> {
    doing(|doing| {
        doing.doers.iter().filter(|doer| doer.session == session).filter_map(|doer| doer.doer).collect()
    })
}

/// Whether this thread is doing work of a session, including ending it.
pub(crate) fn is_within(session: usize) -> bool {
    let look = |doing: &Doing| doing.doers.iter().any(|doer| doer.session == session);
    // A thread that is about to end is doing no work.
    DOING.try_with(|doing| look(&doing.borrow())).unwrap_or(false)
}

/// Does work for a session that is not a task: a part of its end, an opening.
pub(crate) fn within<R>(doer: SessionDoer, work: impl FnOnce() -> R) -> R {
    let mut doing = Doing::here();
    doing.doers.push(doer);
    doing.go_on(work)
}

/// A condition that a thread waits for.
pub trait Latch {
    /// Whether the wait is over.
    fn is_done(&self) -> bool;
    /// Blocks the thread until it is over.
    fn park(&self);
    /// Calls the waker when it is over, possibly immediately. Only the last waker is used.
    fn on_open(&self, waker: Waker);
    /// The tasks that it is known to need.
    fn needed(&self) -> Needed {
        Needed::default()
    }
    /// Whether the thread may meanwhile run tasks that are not known to be needed.
    fn helps(&self) -> bool {
        true
    }
}

/// The tasks that help a waiting thread.
#[derive(Default)]
pub struct Needed {
    session: usize,
    doers: FxHashSet<Doer>,
}

impl Needed {
    pub(crate) fn new(session: usize, doers: FxHashSet<Doer>) -> Needed {
        Needed { session, doers }
    }

    /// The index of the task to run first, on top of a waiting task; `None` if it is better to run none of
    /// them.
    pub(crate) fn choose<'a>(&self, tasks: impl Iterator<Item = &'a Task>) -> Option<usize> {
        let mut unknown = None;
        for (at, task) in tasks.enumerate() {
            match task.doer {
                Some(SessionDoer { session, doer: Some(doer) }) => {
                    if session == self.session && self.doers.contains(&doer) {
                        return Some(at);
                    }
                }
                Some(SessionDoer { doer: None, .. }) | None => unknown = unknown.or(Some(at)),
            }
        }
        unknown
    }
}

impl Task {
    pub fn new(priority: Priority, work: impl FnOnce() + Send + 'static) -> Task {
        Task { priority, weight: 0, doer: None, work: Box::new(work) }
    }

    /// Sets the amount of work, in statements.
    pub(crate) fn with_weight(mut self, weight: u32) -> Task {
        self.weight = weight;
        self
    }

    pub(crate) fn for_doer(mut self, doer: SessionDoer) -> Task {
        self.doer = Some(doer);
        self
    }

    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The index of its priority's queue, the most urgent first.
    pub(crate) fn lane(&self) -> usize {
        self.priority as usize
    }

    /// Runs it. A panic ends only the task: the symbols that it was responsible for fail with the panic's
    /// message.
    pub fn run(self) {
        let mut doing = Doing::here();
        doing.tasks += 1;
        doing.priority = Some(self.priority);
        doing.doers.extend(self.doer);
        doing.go_on(|| run_fenced(self.work));
    }
}

/// The message of a panic, if it has one.
pub(crate) type Message = Option<Arc<str>>;

/// The nested tasks that this thread is running, and the receivers of the message of a panic that ends one.
#[derive(Default)]
struct Fences {
    depth: usize,
    told: Vec<Box<dyn FnOnce(Message)>>,
}

crate::sync::thread_local! {
    static FENCES: RefCell<Fences> = RefCell::default();
}

/// Calls `tell` with the message of the panic that is unwinding this thread, after the panicking task has
/// been left: a destructor cannot see the message. Calls it immediately if no task of this thread would catch
/// the panic.
pub(crate) fn when_caught(tell: impl FnOnce(Message) + 'static) {
    let mut tell = Some(tell);
    // A thread that is about to end runs no task.
    let _ = FENCES.try_with(|fences| {
        let mut fences = fences.borrow_mut();
        if fences.depth > 0
            && let Some(tell) = tell.take()
        {
            fences.told.push(Box::new(tell));
        }
    });
    if let Some(tell) = tell {
        tell(None);
    }
}

/// Calls the receivers stored by [`when_caught`], without a message: this thread continues before the task is
/// left, so the embedder has caught the panic, or waits in a destructor.
pub(crate) fn tell_caught() {
    let told = FENCES.try_with(|fences| std::mem::take(&mut fences.borrow_mut().told));
    for tell in told.unwrap_or_default() {
        tell(None);
    }
}

/// Like [`tell_caught`], unless this thread is unwinding.
pub(crate) fn tell_if_caught() {
    let waits = FENCES.try_with(|fences| !fences.borrow().told.is_empty());
    if waits.unwrap_or(false) && !std::thread::panicking() {
        tell_caught();
    }
}

/// Runs the work of a task; if it panics, passes the message to the receivers.
fn run_fenced(work: impl FnOnce()) {
    let before = FENCES.with(|fences| {
        let mut fences = fences.borrow_mut();
        fences.depth += 1;
        fences.told.len()
    });
    let message = caught(work).err().flatten();
    let told = FENCES.with(|fences| {
        let mut fences = fences.borrow_mut();
        fences.depth -= 1;
        // The receivers of an outer task, which is unwinding, stay.
        let kept = before.min(fences.told.len());
        fences.told.split_off(kept)
    });
    for tell in told {
        fenced(|| tell(message.clone()));
    }
}

/// Runs embedder code, and catches its panics; the error is the message. The panic hook shows it.
fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Message> {
    let payload = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => return Ok(done),
        Err(payload) => payload,
    };
    let message = message_of(&*payload);
    // The payload may panic when it is dropped; the second payload is leaked.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    let _leaked = dropped.map_err(ManuallyDrop::new);
    Err(message)
}

fn message_of(payload: &(dyn Any + Send)) -> Message {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).map(Arc::from)
}

/// Runs embedder code; `None` if it panics, which the panic hook shows.
pub(crate) fn fenced<R>(work: impl FnOnce() -> R) -> Option<R> {
    caught(work).ok()
}

/// Runs tasks.
pub trait Dispatcher: Send + Sync {
    /// Takes a task, to be run once or dropped. No lock of the session is held.
    fn dispatch(&self, task: Task);

    /// Takes several tasks that may need each other: none may be waited for before all have been taken.
    fn dispatch_all(&self, tasks: Vec<Task>) {
        tasks.into_iter().for_each(|task| self.dispatch(task));
    }

    /// Whether the rest of the current task is better done in another one, passed to
    /// [`Dispatcher::dispatch_rest`]. `weight` is its amount, in statements.
    fn takes_rest(&self, weight: u32) -> bool {
        let _ = weight;
        false
    }

    /// Takes the rest of the current task.
    fn dispatch_rest(&self, rest: Task) {
        self.dispatch(rest);
    }

    /// Waits for `latch`, doing useful work meanwhile.
    ///
    /// # Errors
    /// [`Error::Stalled`] if it is certain that nothing will open the latch.
    fn wait(&self, latch: &dyn Latch) -> Result<(), Error>;

    /// Called when threads that wait inside tasks may need other tasks than before, possibly ones that they
    /// skipped ([`Latch::needed`]). No lock of the session is held.
    fn look_again(&self) {}

    /// Returns when all tasks dispatched so far, and those that they dispatched, have finished, except those
    /// that this thread is executing.
    fn drain(&self);
}
