//! Retired code, kept until no thread can be running it or reach it.
//!
//! Every entry into compiled code pins its thread ([`Thread::enter`](crate::Thread::enter)); code retired
//! meanwhile waits for the thread (`brolga_instances::Reclaimer`). So a word that calls go through may change
//! at any time, and its old target is retired right after the change.
//!
//! A thread that stays inside reports at its next safepoint which code has frames on its stack, and keeps
//! only that. A thread that retires code, or waits for it to become free, from a host or C function called by
//! compiled code, is at no safepoint: it reports for itself immediately. It has recorded where it left the
//! compiled code, and reads the targets of later calls from the words after that. A thread that is in
//! [`Thread::blocking`](crate::Thread::blocking) or [`Scope::blocking`](crate::heap::Scope::blocking) may
//! stay there forever: others find its frames by that record, and it waits for them before it continues.
//!
//! Not done: a host function that waits in another way, a C function, and the sink that prints delay the
//! freeing of code retired meanwhile until the thread reaches a safepoint, just as they delay collections.
//!
//! A thread that leaves compiled code while a retirement waits for it frees what it can. A thread that leaves
//! just as a retirement begins to wait for it may miss that: then the retiring thread, after polling the
//! others, sees that it has left; or the thread frees the code when it next leaves, or ends. The thread that
//! finds code free drops it: some microseconds for each unit. The drop runs foreign code (listeners of the
//! event, host closures) under compiled code, so each piece is dropped inside a fence.

use std::any::Any;

use brolga_instances::Reclaimer;

use crate::fence::fenced;

/// Code that waits for threads to leave. Dropping it frees it. If it keeps its runtime alive, the runtime,
/// which owns the list that the code is on, lives until the threads that it waits for have left or ended.
pub trait RetiredCode: Send {
    /// Whether one of the addresses, which are ascending, is in it. If this panics, the code is not freed
    /// under the calling thread.
    fn contains_any(&self, addresses: &[usize]) -> bool;

    /// The first and the last world in which calls reach it, if threads in these worlds may still make such
    /// calls.
    fn worlds(&self) -> Option<(u64, u64)> {
        None
    }

    /// The owner of the code's memory, for [`Runtime::look_at_retired`](crate::Runtime::look_at_retired). It
    /// is read under a lock.
    fn keeper(&self) -> Option<&dyn Any> {
        None
    }
}

/// A thread from which any other thread can request a report of the code with frames on its stack.
pub(crate) trait Reporter: Send {
    /// Whether the thread has not ended.
    fn is_alive(&self) -> bool;

    /// Requests a report from the thread if code waits for it; `false` if the thread has ended.
    fn ask(&self) -> bool;
}

/// Whether a thread may run the code or call it: its frames have these return addresses, ascending, and its
/// calls are made in worlds from the first to the second of `worlds`. It runs under compiled code, through
/// which no panic may pass. Code from an image that has called a C function does not record where it is.
pub(crate) fn may_hold(code: &Retired, returns: &[usize], worlds: Option<(u64, u64)>) -> bool {
    let overlap = |a: (u64, u64), b: (u64, u64)| a.0 <= b.1 && b.0 <= a.1;
    if worlds.zip(code.worlds()).is_some_and(|(of_thread, of_code)| overlap(of_thread, of_code)) {
        return true;
    }
    match returns.first() {
        None => false,
        Some(0) => true,
        Some(_) => fenced(|| code.contains_any(returns)).unwrap_or(true),
    }
}

/// Drops code that was waiting. The panic hook has reported any panic of a destructor; there is nothing else
/// to do with it.
pub(crate) fn free(code: Vec<Retired>) {
    for piece in code {
        let _panicked = fenced(|| drop(piece));
    }
}

/// See [`RetiredCode`].
pub(crate) type Retired = Box<dyn RetiredCode>;

/// The runtime's retire list.
pub(crate) type RetireList = Reclaimer<Retired>;
