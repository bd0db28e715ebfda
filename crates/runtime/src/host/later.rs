//! Results of typed host functions that wait for their method: objects to be made, and errors to be thrown.
//!
//! ```text
//!   closure ── Settlement ──► table, under a key ──► compiled code, in a register ──► method ── removes it ──► object, or exception
//! ```
//!
//! The method runs after the closure, on the same thread, with a scope: only there can objects be made. It
//! does not run if the call is ended in between, so the table is bounded: beyond [`MOST`] waiting settlements
//! the oldest is dropped.
//!
//! Cost: a lock for each result that is an object, and for each error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_ir::{Context, Type};

use crate::heap::{ObjectError, Root, Scope, TypeRef};
use crate::objects::Raised;

/// The maximum number of waiting results: more than the number of threads that could be between a closure and
/// its method.
const MOST: usize = 1 << 12;

/// Makes an object of the result's type.
pub(super) type Make =
    Box<dyn for<'f, 'h> FnOnce(&mut Scope<'f, 'h>, &TypeRef) -> Result<Root<'f, 'h>, ObjectError> + Send>;

/// The end of a call whose result does not fit registers.
pub enum Settlement {
    /// An object to be made.
    Make(Make),
    /// The message of an `ErrorException`.
    Throw(String),
}

#[derive(Default)]
struct Waiting {
    last: u64,
    settlements: BTreeMap<u64, Settlement>,
}

/// Results waiting for the method.
#[derive(Default)]
pub(super) struct Later {
    waiting: Mutex<Waiting>,
}

impl Later {
    /// Stores a result; returns its key, which is not 0.
    pub(super) fn leave(&self, settlement: Settlement) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.last += 1;
        let key = waiting.last;
        waiting.settlements.insert(key, settlement);
        let oldest = if waiting.settlements.len() > MOST { waiting.settlements.pop_first() } else { None };
        drop(waiting);
        // A handle is dropped outside the lock.
        drop(oldest);
        key
    }

    fn take(&self, key: i64) -> Option<Settlement> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.settlements.remove(&key.cast_unsigned())
    }

    /// The method: the first argument is the function object, the second a key.
    pub(super) fn settle<'f, 'h>(
        &self,
        scope: &mut Scope<'f, 'h>,
        cx: &Arc<Context>,
        ty: Type,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, Raised> {
        let key = args.get(1).and_then(|key| key.get(scope).unboxed::<i64>().ok());
        let made = match key.and_then(|key| self.take(key)) {
            Some(Settlement::Make(make)) => match scope.heap().type_object(cx, ty) {
                Ok(ty) => make(scope, &ty),
                Err(error) => return Err(scope.throw_error(&error.display(&cx.types).to_string())),
            },
            Some(Settlement::Throw(text)) => return Err(scope.throw_error(&text)),
            None => return Err(scope.throw_error("the result of a function of the host is lost")),
        };
        made.map_err(|error| scope.raise(&error))
    }
}
