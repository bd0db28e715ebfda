//! Tickets: the receivers of lookups' answers, as stored in the machine.

use std::sync::Arc;
use std::task::Waker;

use crate::flags::Priority;
use crate::machine::Doer;
use crate::promise::Promise;

/// The continuation of an answer.
pub(crate) type Continuation<A> = Box<dyn FnOnce(A) + Send>;

/// The receiver of an answer.
pub struct Ticket<A>(Receiver<A>);

enum Receiver<A> {
    Promise(Arc<Promise<A>>),
    Then(Priority, Option<Doer>, Continuation<A>),
}

/// The remaining work for an answer.
pub(crate) enum Delivered<A> {
    Heard,
    Wake(Waker),
    /// To be continued with the answer in a task, on behalf of a doer if there is one.
    Then(Priority, Option<Doer>, Continuation<A>, A),
}

impl<A> Ticket<A> {
    /// A ticket for a thread that waits for the promise.
    pub(crate) fn promise(promise: Arc<Promise<A>>) -> Self {
        Ticket(Receiver::Promise(promise))
    }

    /// A ticket for a task.
    pub(crate) fn then(
        priority: Priority,
        doer: Option<Doer>,
        then: impl FnOnce(A) + Send + 'static,
    ) -> Self {
        Ticket(Receiver::Then(priority, doer, Box::new(then)))
    }

    /// Passes the answer to the waiter: returns the thread to wake, or the continuation.
    #[must_use]
    pub(crate) fn deliver(self, answer: A) -> Delivered<A> {
        match self.0 {
            Receiver::Promise(promise) => promise.complete(answer).map_or(Delivered::Heard, Delivered::Wake),
            Receiver::Then(priority, doer, then) => Delivered::Then(priority, doer, then, answer),
        }
    }
}
