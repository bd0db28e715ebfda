//! A lookup under way: a future, and something to wait for.
//!
//! Waiting on a thread runs tasks meanwhile, as the dispatcher sees fit. Dropping a lookup that has no answer takes it out of
//! the session: what it has started continues, and what is queued for nobody else is not begun.
//!
//! A lookup that a responsibility made holds it up from when it is awaited: waited for, or polled in vain. Before that, whoever
//! has the responsibility may yet continue without the answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use crate::dispatch::Latch;
use crate::dispatch::{self, Needed, Task};
use crate::error::Error;
use crate::flags::Priority;
use crate::machine::{Await, Block, Cancel, Doer, NeededBy, QueryId, Unblock};
use crate::promise::Promise;
use crate::session::{Answer, Definition, Live, Session};
use crate::target::Target;

type Continuation<T> = Box<dyn FnOnce(Answer<T>) + Send>;

/// Whom an answer goes to.
pub struct Ticket<T: Target>(Receiver<T>);

/// The remaining work for an answer.
pub(crate) enum Delivered {
    Heard,
    Wake(Waker),
    Task(Task),
}

enum Receiver<T: Target> {
    Promise(Arc<Promise<Answer<T>>>),
    Then(Priority, Option<Doer>, Continuation<T>),
}

impl<T: Target> Ticket<T> {
    /// A ticket for a thread that waits for the promise.
    pub(crate) fn promise(promise: Arc<Promise<Answer<T>>>) -> Self {
        Ticket(Receiver::Promise(promise))
    }

    /// A task.
    pub(crate) fn then(
        priority: Priority,
        doer: Option<Doer>,
        then: impl FnOnce(Answer<T>) + Send + 'static,
    ) -> Self {
        Ticket(Receiver::Then(priority, doer, Box::new(then)))
    }

    /// As [`Ticket::deliver`], when there is no session any more.
    #[must_use]
    pub(crate) fn deliver_alone(self, answer: Answer<T>) -> Delivered {
        match self.0 {
            Receiver::Promise(promise) => promise.complete(answer).map_or(Delivered::Heard, Delivered::Wake),
            Receiver::Then(priority, _, then) => Delivered::Task(Task::new(priority, move || then(answer))),
        }
    }

    /// Gives the answer to whoever waits: whom to wake, or the task that continues with it.
    #[must_use]
    pub(crate) fn deliver(self, session: &Session<T>, answer: Answer<T>) -> Delivered {
        match self.0 {
            Receiver::Promise(promise) => promise.complete(answer).map_or(Delivered::Heard, Delivered::Wake),
            // Who is refused because the session ends is no part of what was begun.
            Receiver::Then(priority, None, then) if matches!(answer, Err(Error::SessionEnded)) => {
                Delivered::Task(Task::new(priority, move || then(answer)))
            }
            Receiver::Then(priority, doer, then) => {
                // A queued task is a handle: without one, the dispatcher may go with the session and drop the task.
                let held = session.clone();
                Delivered::Task(session.task(priority, doer, move || {
                    then(answer);
                    drop(held);
                }))
            }
        }
    }
}

/// See the file's header.
#[must_use = "a lookup that is dropped is cancelled"]
pub struct Lookup<T: Target> {
    session: Session<T>,
    query: QueryId<Live<T>>,
    promise: Arc<Promise<Answer<T>>>,
    taken: bool,
    /// Who does not continue without the answer once it is awaited.
    owner: Option<Doer>,
}

impl<T: Target> Lookup<T> {
    pub(crate) fn new(
        session: Session<T>,
        query: QueryId<Live<T>>,
        promise: Arc<Promise<Answer<T>>>,
        owner: Option<Doer>,
    ) -> Self {
        Lookup { session, query, promise, taken: false, owner }
    }

    /// Whether there is an answer.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.promise.is_done()
    }

    /// Waits for the answer; the thread runs tasks meanwhile. Found symbols are in the order of the wants.
    ///
    /// # Errors
    /// The lookup's own; [`Error::Cycle`] when the thread would wait for itself, [`Error::Stalled`] when the dispatcher knows that
    /// there will be none.
    pub fn wait(mut self) -> Result<Vec<Definition<T>>, Error> {
        // It may wait for a responsibility that this thread has dropped while it unwound.
        dispatch::tell_caught();
        let mut doers = SmallVec::new();
        if !self.is_done() {
            doers = dispatch::doers(self.session.address());
            doers.extend(self.owner.take().filter(|owner| !doers.contains(owner)));
        }
        let blocks = !doers.is_empty();
        if blocks {
            self.session.step(Block { doers, query: self.query });
        }
        let waited = self.session.dispatcher().wait(&self);
        if blocks {
            self.session.step(Unblock(self.query));
        }
        waited?;
        self.taken = true;
        self.promise.take().unwrap_or(Err(Error::Stalled))
    }

    /// Waits for the only symbol.
    ///
    /// # Errors
    /// As [`Lookup::wait`]; also when the answer is empty.
    pub fn wait_one(self) -> Result<Definition<T>, Error> {
        self.wait()?.into_iter().next().ok_or(Error::NotFound { symbols: Vec::new() })
    }
}

impl<T: Target> Latch for Lookup<T> {
    fn is_done(&self) -> bool {
        self.promise.is_done()
    }

    fn park(&self) {
        self.promise.park();
    }

    fn on_open(&self, waker: Waker) {
        self.promise.on_open(waker);
    }

    fn needed(&self) -> Needed {
        Needed::new(self.session.address(), self.session.step(NeededBy(self.query)))
    }
}

impl<T: Target> Future for Lookup<T> {
    type Output = Answer<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.promise.poll(context);
        self.taken |= answer.is_ready();
        if answer.is_pending()
            && let Some(doer) = self.owner.take()
        {
            self.session.step(Await { doer, query: self.query });
        }
        answer
    }
}

impl<T: Target> Drop for Lookup<T> {
    fn drop(&mut self) {
        if !self.taken && !self.promise.is_done() {
            drop(self.session.step(Cancel(self.query)));
        }
    }
}
