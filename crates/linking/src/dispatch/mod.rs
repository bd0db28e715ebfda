//! Dispatch of tasks, and the work of a thread while it waits.
//!
//! | dispatcher | tasks run on | a waiting thread |
//! |---|---|---|
//! | [`InPlace`] | the thread that made them, one after the other, never nested by dispatching | runs the tasks it has made |
//! | [`Pool`] | threads of its own | runs tasks; inside a task, parks while a spare thread takes its place |
//! | [`Seeded`] | the thread that waits, in an order that the seed decides | runs tasks; an error when none is left |
//! | [`OnExecutor`] | the embedder's executor | runs tasks |
//!
//! A task that runs on top of a waiting *task* may wait for the one below it; the pool therefore does not nest them.
//! Dispatchers without spare threads first run the tasks that the waiting task needs (`machine/waits.rs`), which wait for
//! it only in a cycle; then those with an unknown purpose; and any task when all threads wait so.
//!
//! A task may do the rest of its work in another one ([`Dispatcher::takes_rest`]): where many are queued, the same part of several is done
//! together, while the processor's caches hold the code of that part (`rest.rs`).
//!
//! The session knows the work of each thread: each task has a purpose ([`Doing`] passes it on to
//! other threads), so a thread that would wait for itself gets an error.
//! A task that is dropped instead of run fails its responsibilities: an executor that dies leaves no thread waiting.

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
    /// None if no waiter is known.
    pub(crate) doer: Option<Doer>,
}

/// A thread of a dispatcher.
#[derive(Clone, Copy)]
struct Worker {
    /// The address of what the dispatcher shares with its threads.
    of: usize,
    /// Which one it is, where that matters.
    number: usize,
}

/// The work that a thread is in the middle of.
#[derive(Clone, Default)]
pub struct Doing {
    tasks: usize,
    /// How urgent the innermost task is.
    priority: Option<Priority>,
    /// Whose thread it is, or stands in for.
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
    /// The work of the running thread.
    #[must_use]
    pub fn here() -> Doing {
        doing(|doing| doing.clone())
    }

    /// Runs `work` as a part of this, while the thread that is in the middle of it waits for `work` to end.
    pub fn go_on<R>(self, work: impl FnOnce() -> R) -> R {
        let _restored = Restored(doing(|doing| std::mem::replace(doing, self)));
        work()
    }
}

/// Takes back what a thread was said to be in the middle of.
struct Restored(Doing);

impl Drop for Restored {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.0);
        drop(doing(|doing| std::mem::replace(doing, before)));
    }
}

/// How urgent the task is that this thread is in the middle of.
pub(crate) fn priority() -> Priority {
    doing(|doing| doing.priority).unwrap_or(Priority::Normal)
}

/// Tasks that this thread is in the middle of.
fn depth() -> usize {
    doing(|doing| doing.tasks)
}

/// The work of this thread for a session.
pub(crate) fn doers(session: usize) -> SmallVec<[Doer; 2]> {
    doing(|doing| {
        doing.doers.iter().filter(|doer| doer.session == session).filter_map(|doer| doer.doer).collect()
    })
}

/// Whether this thread is in the middle of something of a session, be it its end.
pub(crate) fn is_within(session: usize) -> bool {
    let look = |doing: &Doing| doing.doers.iter().any(|doer| doer.session == session);
    // A thread that is about to be gone is in the middle of nothing.
    DOING.try_with(|doing| look(&doing.borrow())).unwrap_or(false)
}

/// Does something for a session that is no task: a part of its end, an opening.
pub(crate) fn within<R>(doer: SessionDoer, work: impl FnOnce() -> R) -> R {
    let mut doing = Doing::here();
    doing.doers.push(doer);
    doing.go_on(work)
}

/// Something that a thread waits for.
pub trait Latch {
    /// Whether waiting is over.
    fn is_done(&self) -> bool;
    /// Blocks the thread until it is.
    fn park(&self);
    /// Calls the waker when it is, or at once. The last one that was given counts.
    fn on_open(&self, waker: Waker);
    /// The tasks that are known to be needed for that.
    fn needed(&self) -> Needed {
        Needed::default()
    }
    /// Whether the thread may run tasks meanwhile that are not known to be needed.
    fn helps(&self) -> bool {
        true
    }
}

/// Which tasks bring nearer what a thread waits for.
#[derive(Default)]
pub struct Needed {
    session: usize,
    doers: FxHashSet<Doer>,
}

impl Needed {
    pub(crate) fn new(session: usize, doers: FxHashSet<Doer>) -> Needed {
        Needed { session, doers }
    }

    /// The place of the task to run first among those, on top of a task that waits; none if it is better to run none of them.
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
    /// A task.
    pub fn new(priority: Priority, work: impl FnOnce() + Send + 'static) -> Task {
        Task { priority, weight: 0, doer: None, work: Box::new(work) }
    }

    /// How much there is to do, in statements.
    pub(crate) fn with_weight(mut self, weight: u32) -> Task {
        self.weight = weight;
        self
    }

    pub(crate) fn for_doer(mut self, doer: SessionDoer) -> Task {
        self.doer = Some(doer);
        self
    }

    /// How urgent it is.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Its place among queues of the priorities, the most urgent first.
    pub(crate) fn lane(&self) -> usize {
        self.priority as usize
    }

    /// Does it. A panic ends the task and nothing else: the symbols that it was responsible for fail with the panic's message.
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

/// The tasks that this thread runs, one inside the other, and the receivers of the message of a panic that ends one.
#[derive(Default)]
struct Fences {
    depth: usize,
    told: Vec<Box<dyn FnOnce(Message)>>,
}

crate::sync::thread_local! {
    static FENCES: RefCell<Fences> = RefCell::default();
}

/// Calls `tell` with the message of the panic that unwinds this thread, when the task that panicked has been left: a destructor cannot see the
/// message. Calls it at once if no task of this thread would catch the panic.
pub(crate) fn when_caught(tell: impl FnOnce(Message) + 'static) {
    let mut tell = Some(tell);
    // A thread that is about to be gone runs no task.
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

/// Calls what [`when_caught`] keeps, without a message: this thread continues before the task is left, so the embedder has caught the panic, or waits in
/// a destructor.
pub(crate) fn tell_caught() {
    let told = FENCES.try_with(|fences| std::mem::take(&mut fences.borrow_mut().told));
    for tell in told.unwrap_or_default() {
        tell(None);
    }
}

/// As [`tell_caught`], unless this thread unwinds.
pub(crate) fn tell_if_caught() {
    let waits = FENCES.try_with(|fences| !fences.borrow().told.is_empty());
    if waits.unwrap_or(false) && !std::thread::panicking() {
        tell_caught();
    }
}

/// Runs the work of a task; if it panics, passes the message to its waiters.
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
        // The receivers of an outer task, which unwinds meanwhile, stay.
        let kept = before.min(fences.told.len());
        fences.told.split_off(kept)
    });
    for tell in told {
        fenced(|| tell(message.clone()));
    }
}

/// Runs code of the embedder. Its panic ends here; the error is the message. The panic hook shows it.
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

/// Runs code of the embedder; nothing if it panics, which the panic hook shows.
pub(crate) fn fenced<R>(work: impl FnOnce() -> R) -> Option<R> {
    caught(work).ok()
}

/// Runs tasks.
pub trait Dispatcher: Send + Sync {
    /// Takes a task, to be run once or dropped. No lock of the session is held.
    fn dispatch(&self, task: Task);

    /// Takes several tasks, of which one may need another: none may be waited for before all have been taken.
    fn dispatch_all(&self, tasks: Vec<Task>) {
        tasks.into_iter().for_each(|task| self.dispatch(task));
    }

    /// Whether the rest of the task that this thread is in the middle of is better done in another one, which
    /// [`Dispatcher::dispatch_rest`] is to take: `weight` says how much it is, in statements.
    fn takes_rest(&self, weight: u32) -> bool {
        let _ = weight;
        false
    }

    /// Takes the rest of the task that this thread is in the middle of.
    fn dispatch_rest(&self, rest: Task) {
        self.dispatch(rest);
    }

    /// Waits for `latch`, and does something useful meanwhile.
    ///
    /// # Errors
    /// [`Error::Stalled`] when it is certain that nothing will open the latch.
    fn wait(&self, latch: &dyn Latch) -> Result<(), Error>;

    /// Threads that wait in the middle of tasks have come to need others, perhaps such as they have left lying ([`Latch::needed`]).
    /// No lock of the session is held.
    fn look_again(&self) {}

    /// Returns when all tasks dispatched so far, and those that they dispatched, are over; except those that this thread
    /// is in the middle of.
    fn drain(&self);
}
