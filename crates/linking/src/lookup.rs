//! A lookup under way: a future, or a wait of a thread.
//!
//! A waiting thread meanwhile runs tasks, as the dispatcher decides. Dropping an unanswered lookup removes it
//! from the session: work that it has started continues, and queued work that no other lookup needs is not
//! begun.
//!
//! A lookup of a call under limits ([`Host::caller`](crate::Host::caller)) is for that call alone: the wait
//! ends with it, and work that only such lookups wait for may be abandoned. The thread meanwhile runs no
//! tasks for others.
//!
//! A lookup made by a responsibility blocks it from when it is awaited: waited for, or polled without an
//! answer. Before that, the holder of the responsibility may continue without the answer.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

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
    /// The call under limits that it belongs to; 0 if there is none.
    caller: u64,
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
        let begun = self.is_within();
        // A lookup by a task may serve any caller.
        let caller = if begun { 0 } else { self.host().caller() };
        let event = machine::Lookup::new(order, wants, until, ticket);
        let query = self.step(machine::Lookup { kind, priority, caller, begun, ..event });
        let mut lookup = Lookup::new(self.clone(), query, promise, None);
        lookup.caller = caller;
        lookup
    }

    /// Like [`Session::lookup`], for `owner`, which is blocked on the answer once it awaits it.
    pub(crate) fn lookup_for(
        &self,
        owner: Doer,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
    ) -> Lookup<T> {
        let promise = Arc::new(Promise::new());
        let ticket = Ticket::promise(Arc::clone(&promise));
        let event = machine::Lookup::new(order, wants, until, ticket);
        let query =
            self.step(machine::Lookup { perhaps: SmallVec::from_iter([owner]), begun: true, ..event });
        Lookup::new(self.clone(), query, promise, Some(owner))
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

    /// Like [`Session::lookup_then`], for `owner`, whose work continues in the task.
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
        let perhaps = if owner.is_some() { SmallVec::new() } else { doers(self.address()) };
        let (event, begun) = (machine::Lookup::new(order, wants, until, ticket), self.is_within());
        self.step(machine::Lookup { priority, owner, perhaps, begun, ..event });
    }
}

impl<T: Target> Lookup<T> {
    pub(crate) fn new(
        session: Session<T>,
        query: QueryId<Live<T>>,
        promise: Arc<Promise<Answer<T>>>,
        owner: Option<Doer>,
    ) -> Self {
        Lookup { session, query, promise, taken: false, owner, caller: 0 }
    }

    /// Whether there is an answer.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.promise.is_done()
    }

    /// Waits for the answer; the thread meanwhile runs tasks. Found symbols are in the order of the wants.
    ///
    /// # Errors
    /// The lookup's own; [`Error::Cycle`] if the thread would wait for itself, [`Error::Stalled`] if the
    /// dispatcher can tell that there will be no answer, [`Error::CallEnded`] if the call under limits that
    /// it belongs to ends before.
    pub fn wait(mut self) -> Result<Vec<Definition<T>>, Error> {
        // It may wait for a responsibility that this thread has dropped while unwinding.
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
        let waits = Waits { lookup: &self, wakes: RefCell::default() };
        let waited = self.session.dispatcher().wait(&waits);
        let is_in_vain = waits.is_in_vain();
        drop(waits);
        if blocks {
            self.session.step(Unblock(self.query));
        }
        waited?;
        if is_in_vain && !self.promise.is_done() {
            return Err(Error::CallEnded);
        }
        self.taken = true;
        self.promise.take().unwrap_or(Err(Error::Stalled))
    }

    /// Waits for the only symbol.
    ///
    /// # Errors
    /// As for [`Lookup::wait`]; also if the answer is empty.
    pub fn wait_one(self) -> Result<Definition<T>, Error> {
        self.wait()?.into_iter().next().ok_or(Error::NotFound { symbols: Vec::new() })
    }
}

/// The wait of a thread for a lookup.
struct Waits<'a, T: Target> {
    lookup: &'a Lookup<T>,
    /// Wakes the thread when its call ends.
    wakes: RefCell<Option<Box<dyn Any>>>,
}

/// Continues a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T: Target> Waits<'_, T> {
    fn is_limited(&self) -> bool {
        self.lookup.caller != 0
    }

    /// Whether the call that the lookup belongs to has ended.
    fn is_in_vain(&self) -> bool {
        self.is_limited() && self.lookup.session.host().has_ended(self.lookup.caller)
    }
}

impl<T: Target> Latch for Waits<'_, T> {
    fn is_done(&self) -> bool {
        self.lookup.promise.is_done() || self.is_in_vain()
    }

    fn park(&self) {
        if !self.is_limited() {
            return self.lookup.promise.park();
        }
        self.on_open(Waker::from(Arc::new(Unpark(std::thread::current()))));
        while !self.is_done() {
            std::thread::park();
        }
    }

    fn on_open(&self, waker: Waker) {
        if self.is_limited() {
            *self.wakes.borrow_mut() = self.lookup.session.host().wake_at_end(&waker);
        }
        self.lookup.promise.on_open(waker);
    }

    fn needed(&self) -> Needed {
        let session = &self.lookup.session;
        Needed::new(session.address(), session.step(NeededBy(self.lookup.query)))
    }

    fn helps(&self) -> bool {
        !self.is_limited()
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
