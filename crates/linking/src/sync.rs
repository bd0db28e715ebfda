//! Locks and atomics: the standard library's, or loom's in models.
//!
//! User code never poisons a lock: none runs while one is held. A panic under a lock is a bug of this crate, and no reaction is
//! better than continuing with the data.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(all(test, loom))]
pub(crate) use loom::thread_local;
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(all(test, loom)))]
pub(crate) use std::thread_local;

use std::sync::PoisonError;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
