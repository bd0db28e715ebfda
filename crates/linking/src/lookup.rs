//! A lookup under way: a future, or a wait of a thread.
//!
//! A waiting thread runs tasks meanwhile, as the dispatcher decides. Dropping a lookup without an answer removes it from
//! the session: work that it has started continues, and queued work that no other lookup needs is not begun.
//!
//! A lookup that a responsibility made blocks it from when it is awaited: waited for, or polled in vain. Before that, the
//! holder of the responsibility may continue without the answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use crate::dispatch::{self, Latch, Needed, doers};
use crate::error::Error;
use crate::flags::{Link, LookupKind, Priority, Until, Want};
use crate::machine::{self, Await, Block, Cancel, Doer, NeededBy, QueryId, Unblock};
use crate::promise::Promise;
use crate::session::{Answer, Definition, Live, Session};
use crate::target::Target;
use crate::ticket::Ticket;

/// See the file's header.
#[must_use = "a lookup that is dropped is cancelled"]
pub struct Lookup<T: Target> {
    session: Session<T>,
    query: QueryId<Live<T>>,
    promise: Arc<Promise<Answer<T>>>,
    taken: bool,
    /// The unit that waits for the answer once it is awaited.
    owner: Option<Doer>,
}

impl<T: Target> Session<T> {
    /// Looks symbols up in dylibs; the first dylib that has a symbol wins.
    pub fn lookup(&self, order: Vec<Link>, wants: Vec<Want>, until: Until) -> Lookup<T> {
        self.lookup_with(order, wants, until, LookupKind::Static, Priority::Normal)
    }

    /// [`Session::lookup`] with all options.
    pub fn lookup_with(
        &self,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        kind: LookupKind,
        priority: Priority,
    ) -> Lookup<T> {
        let promise = Arc::new(Promise::new());
        let ticket = Ticket::promise(Arc::clone(&promise));
        let (owner, perhaps, begun) = (None, SmallVec::new(), self.is_within());
        let query =
            self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
        Lookup::new(self.clone(), query, promise, None)
    }

    /// As [`Session::lookup`], for `owner`, which is blocked on the answer once it awaits it.
    pub(crate) fn lookup_for(
        &self,
        owner: Doer,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
    ) -> Lookup<T> {
        let promise = Arc::new(Promise::new());
        let ticket = Ticket::promise(Arc::clone(&promise));
        let (kind, priority) = (LookupKind::Static, Priority::Normal);
        let doer = Some(owner);
        let (owner, perhaps, begun) = (None, SmallVec::from_iter(doer), true);
        let query =
            self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
        Lookup::new(self.clone(), query, promise, doer)
    }

    /// Looks symbols up and passes the answer to `then`, in a task. Lookups by that task count as part of this lookup: if
    /// this one began before the session ends, they are accepted.
    pub fn lookup_then(
        &self,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        priority: Priority,
        then: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        self.lookup_then_for(None, order, wants, until, priority, then);
    }

    /// As [`Session::lookup_then`], for `owner`, whose work continues in the task.
    pub(crate) fn lookup_then_for(
        &self,
        owner: Option<Doer>,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        priority: Priority,
        then: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let ticket = Ticket::then(priority, owner, then);
        let kind = LookupKind::Static;
        let perhaps = if owner.is_some() { SmallVec::new() } else { doers(self.address()) };
        let begun = self.is_within();
        self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
    }
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
