//! Locks of a session: a panic of one holder does not take the others along.
//!
//! What a session's locks protect is changed in steps that leave it valid, so a poisoned lock is used on.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
