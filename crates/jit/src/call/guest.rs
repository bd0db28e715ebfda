//! Typed calls as futures, each on a thread of a guest.
//!
//! Cost: as `Guests::run`; the call itself is negligible.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use brolga_runtime::{GuestCall, GuestError, Guests, Limits};

use super::func::CallError;
use super::typed::TypedFunc;
use super::value::{Params, Value};

/// A call that runs while it is polled. Dropping it ends the call at its next poll.
#[must_use = "a call does nothing unless it is polled"]
#[derive(Debug)]
pub struct AsyncCall<R> {
    call: GuestCall<Result<R, CallError>>,
}

impl<A: Params + Send + 'static, R: Value + Send + 'static> TypedFunc<A, R> {
    /// Calls the function while the result is polled; compiled code gives way after each slice of time ([`Guests`]). The limits count from now on, also while
    /// the call waits. Calls with objects are made by [`Guests::run`].
    ///
    /// # Errors
    /// Also [`CallError::Ended`], as by [`TypedFunc::call_limited`], and [`CallError::NoThread`].
    pub fn call_async(&self, guests: &Guests, limits: &Limits, args: A) -> AsyncCall<R> {
        let func = self.clone();
        AsyncCall { call: guests.run(self.callable.runtime(), limits, move || func.call(args)) }
    }
}

impl<R: Send + 'static> Future for AsyncCall<R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.call).poll(cx).map(|ended| ended.unwrap_or_else(|error| Err(error.into())))
    }
}

impl From<GuestError> for CallError {
    #[cold]
    fn from(error: GuestError) -> CallError {
        match error {
            GuestError::Limit(error) => error.into(),
            GuestError::NoThread => CallError::NoThread,
        }
    }
}
