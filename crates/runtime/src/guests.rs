//! Guests: calls as futures that yield at polls, so that one server thread runs many programs in turn.
//!
//! ```text
//!   executor ── poll ──► GuestCall ── a turn of one slice (`turn.rs`) ──► thread of the guest: limits ──► body ──► compiled code
//!            ◄─ Pending, woken ──────────────── at a poll, after the slice ◄──┘
//!            ── drop ──► the guest's token is cancelled: it ends at its next poll, and its thread takes the next guest
//! ```
//!
//! **A separate stack.** A call that yields keeps its frames, so each running guest has a system thread. Only
//! one of the two, the polling thread or the guest, computes at a time, with the exception below. Switching
//! stacks would not do: the thread lookup of compiled code, the bounds of its stack, its handlers,
//! exceptions, world and roots are bound to a system thread, as are thread-local values of host functions and
//! of C. To collections and to code reclamation, a paused guest is a thread that waits outside compiled code.
//!
//! **Thread-local variables** of programs: a guest begins with the first values, and its values end with it,
//! because its thread then serves the next guest. So each guest is a thread of its own to programs.
//!
//! **Bounds.** At most [`GuestOptions::most`] guests have a thread at a time; others wait for one when
//! polled, in order of arrival. Threads are reused. An idle one stays until the last [`Guests`] and call is
//! dropped.
//!
//! **A poll takes at most two slices**: one for the guest to run, and one within which it has to reach a
//! poll. A guest that does not, because it is in a C function, a host function, a collection or a
//! compilation, continues in parallel with the polling thread, pauses at its next poll and then wakes its
//! task.
//!
//! **Locks**: a host function that holds a lock and calls compiled code may be paused there while holding it.
//!
//! Cost: a turn is two thread switches. A paused guest occupies the stack memory that it has touched, and 25
//! KiB for each runtime whose code its thread has run.
//!
//! Not done: pauses in compiled code of another runtime that a guest calls.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::fence::fenced;
use crate::instance::Runtime;
use crate::limits::{Cancel, LimitError, Limits};
use crate::thread::{Interrupt, forget_thread_cells, with_attached};
use crate::turn::{Played, Turn};

/// Options of guests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestOptions {
    /// The maximum number that have a thread at a time, at least 1.
    pub most: usize,
    /// The stack size of each, in bytes.
    pub stack: usize,
    /// The length of a turn. A poll of a call takes at most twice as long.
    pub slice: Duration,
}

impl Default for GuestOptions {
    /// 64 guests, 2 MiB, 1 ms.
    fn default() -> Self {
        GuestOptions { most: 64, stack: 2 << 20, slice: Duration::from_millis(1) }
    }
}

/// Why a guest has no result.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestError {
    /// A limit was reached, or the thread cannot run compiled code.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The system could not create a thread with this stack size.
    #[error("there is no thread for a guest")]
    NoThread,
}

/// A pool of threads for calls that are futures. Clones share it.
#[derive(Clone)]
pub struct Guests {
    shared: Arc<Shared>,
}

struct Shared {
    options: GuestOptions,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    /// The number of guests that have a thread.
    running: usize,
    /// Channels to idle threads. These are the only senders, so the threads end when the list is dropped.
    idle: Vec<Sender<Next>>,
    /// Tasks waiting for a thread, in order of arrival.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

/// The work of a guest's thread.
type Job = Box<dyn FnOnce() + Send>;

/// The next guest of a thread, and the thread's channel, for the one after it.
struct Next {
    job: Job,
    thread: Sender<Next>,
}

impl std::fmt::Debug for Guests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guests")
            .field("options", &self.shared.options)
            .field("running", &self.running())
            .finish()
    }
}

impl Default for Guests {
    fn default() -> Self {
        Guests::new(GuestOptions::default())
    }
}

impl Guests {
    /// A pool without guests or threads.
    pub fn new(options: GuestOptions) -> Guests {
        let options = GuestOptions { most: options.most.max(1), ..options };
        Guests { shared: Arc::new(Shared { options, pool: Mutex::default() }) }
    }

    /// The number of guests that have a thread. A guest whose future was dropped keeps its thread until it
    /// has ended.
    pub fn running(&self) -> usize {
        self.shared.lock().running
    }

    /// Runs `body` as a guest, under limits, when the result is polled: compiled code of this runtime that it
    /// calls yields after each slice.
    ///
    /// `body` runs on its own thread. If it panics, the panic is resumed where the result is polled.
    pub fn run<R: Send + 'static>(
        &self,
        runtime: &Arc<Runtime>,
        limits: &Limits,
        body: impl FnOnce() -> R + Send + 'static,
    ) -> GuestCall<R> {
        let (turn, result, cancel) = (Arc::new(Turn::new()), Arc::new(Mutex::default()), Cancel::new());
        let job = {
            let (runtime, limits, cancel) = (runtime.clone(), limits.clone(), cancel.clone());
            let (turn, result) = (turn.clone(), Arc::clone(&result));
            move || {
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| visit(&runtime, &turn, &cancel, &limits, body)));
                drop(runtime);
                if let Some(unwanted) = put(&result, outcome) {
                    let _dropped = fenced(|| drop(unwanted));
                }
                turn.end();
            }
        };
        let stage = Stage::Waiting { job: Box::new(job), ticket: None };
        GuestCall { shared: self.shared.clone(), turn, cancel, result, stage }
    }
}

/// Runs the body of a guest on its thread.
fn visit<R>(
    runtime: &Arc<Runtime>,
    turn: &Arc<Turn>,
    cancel: &Cancel,
    limits: &Limits,
    body: impl FnOnce() -> R,
) -> Result<R, GuestError> {
    /// Releases the thread for the next guest.
    struct Leaving<'r>(&'r Arc<Runtime>);
    impl Drop for Leaving<'_> {
        fn drop(&mut self) {
            // The thread was attached.
            let _left = with_attached(self.0, |thread| thread.pause_by(None));
            forget_thread_cells();
        }
    }
    let interrupt = Interrupt::for_current(runtime).map_err(LimitError::from)?;
    with_attached(runtime, |thread| thread.pause_by(Some(turn.clone()))).map_err(LimitError::from)?;
    let _leaving = Leaving(runtime);
    turn.begin(move || interrupt.ask_to_pause());
    turn.wait_for_turn();
    let own = Limits::new().cancelled_by(cancel);
    Ok(runtime.limited(&own, || runtime.limited(limits, body))??)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the job to a thread, if another guest may run.
    fn start(self: &Arc<Self>, job: Job) -> Result<(), Refused> {
        let mut pool = self.lock();
        if pool.running >= self.options.most {
            return Err(Refused::Full(job));
        }
        pool.running += 1;
        let idle = pool.idle.pop();
        drop(pool);
        let job = match idle {
            // The thread exists as long as the list has a channel to it.
            Some(thread) => match thread.send(Next { job, thread: thread.clone() }) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0.job,
            },
            None => job,
        };
        let (thread, jobs) = channel();
        let shared = Arc::downgrade(self);
        let new = std::thread::Builder::new().name("brolga guest".to_owned()).stack_size(self.options.stack);
        let is_there = new.spawn(move || serve(&shared, &jobs)).is_ok();
        if !is_there || thread.send(Next { job, thread: thread.clone() }).is_err() {
            self.leave(None);
            return Err(Refused::NoThread);
        }
        Ok(())
    }

    /// Called when a guest has ended and its thread is idle; a waiting one may begin.
    fn leave(&self, thread: Option<Sender<Next>>) {
        let mut pool = self.lock();
        pool.running -= 1;
        pool.idle.extend(thread);
        let next = pool.waiting.pop_first();
        drop(pool);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

/// Why a guest cannot begin.
enum Refused {
    /// The maximum number is running.
    Full(Job),
    /// The system could not create a thread.
    NoThread,
}

/// The main loop of a guest thread.
fn serve(shared: &Weak<Shared>, jobs: &Receiver<Next>) {
    while let Ok(Next { job, thread }) = jobs.recv() {
        // The job fences its own panics; embedder values that it drops may panic as well.
        let _done = fenced(job);
        match shared.upgrade() {
            Some(shared) => shared.leave(Some(thread)),
            None => return,
        }
    }
}

/// The outcome of a body: its result, or the payload of its panic.
type Outcome<R> = Result<Result<R, GuestError>, Box<dyn Any + Send>>;

/// The slot for a guest's result, as long as a receiver exists.
#[derive(Default)]
enum Place<R> {
    #[default]
    Empty,
    Full(Outcome<R>),
    /// Unused.
    Closed,
}

/// Stores a result; returns it if there is no receiver.
fn put<R>(place: &Mutex<Place<R>>, outcome: Outcome<R>) -> Option<Outcome<R>> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    match &*place {
        Place::Closed => Some(outcome),
        _ => {
            *place = Place::Full(outcome);
            None
        }
    }
}

/// A call that runs while it is polled. Dropping it ends the guest at its next poll, without waiting.
///
/// After it has returned its result, polls are pending forever.
#[must_use = "a guest does nothing unless it is polled"]
pub struct GuestCall<R> {
    shared: Arc<Shared>,
    turn: Arc<Turn>,
    /// Cancelled on drop.
    cancel: Cancel,
    result: Arc<Mutex<Place<R>>>,
    stage: Stage,
}

enum Stage {
    /// It has no thread yet.
    Waiting { job: Job, ticket: Option<u64> },
    /// It has one.
    Begun,
    /// It has returned its result.
    Done,
}

impl<R> GuestCall<R> {
    /// Whether it has a thread; if not, the waker is woken when one may be available.
    fn begin(&mut self, waker: &Waker) -> Result<bool, GuestError> {
        let (job, ticket) = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Waiting { job, ticket } => (job, ticket),
            stage => {
                self.stage = stage;
                return Ok(true);
            }
        };
        self.shared.give_back(ticket);
        match self.shared.start(job) {
            Ok(()) => {
                self.stage = Stage::Begun;
                Ok(true)
            }
            Err(Refused::NoThread) => Err(GuestError::NoThread),
            Err(Refused::Full(job)) => {
                let ticket = self.shared.take_ticket(ticket, waker);
                self.stage = Stage::Waiting { job, ticket: Some(ticket) };
                Ok(false)
            }
        }
    }
}

impl Shared {
    /// A place in the queue, before later arrivals. The waker is woken immediately if a thread has become
    /// free in the meantime.
    fn take_ticket(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        let mut pool = self.lock();
        let ticket = ticket.unwrap_or(pool.next);
        pool.next = pool.next.max(ticket + 1);
        match pool.running < self.options.most {
            true => waker.wake_by_ref(),
            false => drop(pool.waiting.insert(ticket, waker.clone())),
        }
        ticket
    }

    fn give_back(&self, ticket: Option<u64>) {
        if let Some(ticket) = ticket {
            let gone = self.lock().waiting.remove(&ticket);
            drop(gone);
        }
    }

    /// A waiting guest was dropped: the thread for which it may have been woken goes to the next one.
    fn pass_on(&self) {
        let mut pool = self.lock();
        let next = (pool.running < self.options.most).then(|| pool.waiting.pop_first()).flatten();
        drop(pool);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

impl<R: Send + 'static> Future for GuestCall<R> {
    type Output = Result<R, GuestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        if matches!(call.stage, Stage::Done) {
            return Poll::Pending;
        }
        match call.begin(cx.waker()) {
            Ok(true) => {}
            Ok(false) => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
        match call.turn.play(call.shared.options.slice, cx.waker()) {
            Played::Paused => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Played::Running => Poll::Pending,
            Played::Over => {
                call.stage = Stage::Done;
                let mut place = call.result.lock().unwrap_or_else(PoisonError::into_inner);
                let outcome = std::mem::replace(&mut *place, Place::Closed);
                drop(place);
                match outcome {
                    Place::Full(Ok(result)) => Poll::Ready(result),
                    Place::Full(Err(panic)) => resume_unwind(panic),
                    // The guest stores its result there before its turn is over.
                    Place::Empty | Place::Closed => Poll::Pending,
                }
            }
        }
    }
}

impl<R> Drop for GuestCall<R> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Waiting { job, ticket } => {
                drop(job);
                self.shared.give_back(ticket);
                self.shared.pass_on();
            }
            Stage::Begun => {
                let mut place = self.result.lock().unwrap_or_else(PoisonError::into_inner);
                let unwanted = std::mem::replace(&mut *place, Place::Closed);
                drop(place);
                self.cancel.cancel();
                self.turn.abandon();
                drop(unwanted);
            }
            Stage::Done => {}
        }
    }
}

impl<R> std::fmt::Debug for GuestCall<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stage = match self.stage {
            Stage::Waiting { .. } => "waiting",
            Stage::Begun => "begun",
            Stage::Done => "done",
        };
        write!(f, "GuestCall({stage})")
    }
}
