//! Locks of a session: a panic of one holder does not affect the others.
//!
//! The state under a session's locks is valid after each step of a change, so a poisoned lock stays in use.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
