//! Retired code, kept until no thread can be running it or reach it.
//!
//! Every entry into compiled code pins its thread ([`Thread::enter`](crate::Thread::enter)); code that is retired meanwhile waits for
//! it (`brolga_instances::Reclaimer`). So a word that calls go through may change at any time, and its old target is retired
//! right after the change.
//!
//! A thread that stays inside reports at its next safepoint which code its frames lie in, and keeps only that. A thread that retires code, or waits
//! for it to become free, below compiled code, in a function of the host or of C, is at no safepoint: it reports for itself at once. It has recorded
//! where it left the compiled code; a target that it has yet to call it reads from the words after that. A thread that is in
//! [`Thread::blocking`](crate::Thread::blocking) or [`Scope::blocking`](crate::heap::Scope::blocking) may stay there forever: others find its frames by
//! that record, and it waits for them before it continues.
//!
//! Not done: a function of the host that waits in another way, one of C, and the sink that prints delay the freeing of code that is retired meanwhile until
//! the thread reaches a safepoint, as they delay collections.
//!
//! A thread that leaves compiled code while a retirement waits for it frees what it can. One that leaves just when a retirement begins to wait for it
//! may miss that: then the retiring thread sees, after it has polled the others, that it has left; or the thread frees when it
//! leaves the next time, or ends. The thread that finds code free drops it: some microseconds for each unit. The drop runs foreign code
//! (listeners of the event, closures of the host) below compiled code, so each piece is dropped behind a fence.

use std::any::Any;

use brolga_instances::Reclaimer;

use crate::fence::fenced;

/// Code that waits for threads to leave. Dropping it frees it. If it keeps its runtime alive, the runtime, which keeps the list that it
/// is on, lives until the threads that it waits for have left or ended.
pub trait RetiredCode: Send {
    /// Whether one of the addresses, which are ascending, lies in it. If this panics, the code is not freed under the asking thread.
    fn contains_any(&self, addresses: &[usize]) -> bool;

    /// The first and the last world in which calls reach it, if threads in these worlds may still make such calls.
    fn worlds(&self) -> Option<(u64, u64)> {
        None
    }

    /// The owner of the code's memory, for [`Runtime::look_at_retired`](crate::Runtime::look_at_retired). It is read under a lock.
    fn keeper(&self) -> Option<&dyn Any> {
        None
    }
}

/// A thread that can be asked, from any other, which code its frames lie in.
pub(crate) trait Reporter: Send {
    /// Whether the thread has not ended.
    fn is_alive(&self) -> bool;

    /// Asks the thread for a report if code waits for it; `false` when the thread is gone.
    fn ask(&self) -> bool;
}

/// Whether a thread may run the code or call it: its frames have these return addresses, ascending, and its calls are made in worlds from the
/// first to the second of `worlds`. It runs below compiled code, through which no panic may go. Code from an image that has called a C
/// function does not say where it is.
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

/// Drops code that was waiting. The panic hook has reported a panic of a destructor; nothing more can be done with it.
pub(crate) fn free(code: Vec<Retired>) {
    for piece in code {
        let _panicked = fenced(|| drop(piece));
    }
}

/// See [`RetiredCode`].
pub(crate) type Retired = Box<dyn RetiredCode>;

/// The runtime's list.
pub(crate) type RetireList = Reclaimer<Retired>;
