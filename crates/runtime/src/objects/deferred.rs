//! Boxed entries that are compiled on the first call of their method.
//!
//! ```text
//!   call ── finds the method ──► Deferred ── first call ──► EntrySource::make ──► code, for all further calls
//! ```
//!
//! Most methods of a program are never called by dispatch, so an entry for each of them would waste compile time and memory.
//!
//! The source runs in a region in which collections continue, without a lock: it may wait for a thread that
//! compiles what it needs, and meanwhile run tasks that call the same method. Concurrent first calls may all
//! make the entry; the first one is kept. The call throws an error as `CompileError`, and the next call
//! retries.
//!
//! Cost: one more load than for a method with code, only in the slow path of a call; a line of the thread's
//! cache has the address of the code.

use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::OnceLock;

use crate::fence::fenced;

use super::entry::CodeEntry;

/// A source works on a thread with less stack than this only if no other is available.
const STACK_TO_COMPILE: usize = 1 << 20;
/// The stack of a thread that compiles on behalf of another.
const HELPER_STACK: usize = 8 << 20;
/// The number of causes of an error that are printed when it is thrown, besides the root.
const CAUSES_SAID: u32 = 8;

/// Runs work that another thread waits for.
pub type Elsewhere = Box<dyn FnOnce(&mut dyn FnMut()) + Send>;

/// Makes the boxed entry of a method.
pub trait EntrySource: Send + Sync {
    /// Makes the entry. Called on a thread that calls the method, on several at once for concurrent calls,
    /// and again after an error.
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>>;

    /// A wrapper for calling [`EntrySource::make`] on another thread, for which this one waits: it runs its
    /// argument once.
    fn elsewhere(&self) -> Elsewhere {
        Box::new(|work| work())
    }
}

/// See the file's header.
pub struct DeferredEntry {
    source: Box<dyn EntrySource>,
    made: OnceLock<CodeEntry>,
}

impl fmt::Debug for DeferredEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeferredEntry").field(&self.made).finish()
    }
}

impl DeferredEntry {
    pub(crate) fn new(source: impl EntrySource + 'static) -> DeferredEntry {
        DeferredEntry { source: Box::new(source), made: OnceLock::new() }
    }

    /// The code, if already made.
    pub(crate) fn ready(&self) -> Option<&CodeEntry> {
        self.made.get()
    }

    /// The code, made on a thread with this much stack left, or the reason for a failure. The thread must not
    /// block collections.
    pub(crate) fn make(&self, stack_left: usize) -> Result<&CodeEntry, String> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let make = || self.source.make().map_err(|error| error_in_words(&*error));
        let made = match stack_left >= STACK_TO_COMPILE {
            true => fenced(make),
            false => self.on_new_thread(make),
        };
        let made = made.and_then(|made| made)?;
        // If several threads make it, the first result is kept.
        Ok(self.made.get_or_init(|| made))
    }

    /// Makes it on a thread with enough stack, or on this one if the system cannot create one.
    fn on_new_thread(
        &self,
        make: impl Fn() -> Result<CodeEntry, String> + Send + Sync,
    ) -> Result<Result<CodeEntry, String>, String> {
        let around = self.source.elsewhere();
        let make = &make;
        std::thread::scope(|scope| {
            let work = move || {
                let mut made = None;
                around(&mut || made = Some(make()));
                made.unwrap_or_else(make)
            };
            let helper = std::thread::Builder::new().stack_size(HELPER_STACK);
            match helper.spawn_scoped(scope, || fenced(work)) {
                Ok(thread) => thread.join().unwrap_or_else(|payload| resume_unwind(payload)),
                Err(_) => fenced(make),
            }
        })
    }
}

/// An error with its causes down to the root; if there are many, the first ones and the root.
pub fn error_in_words(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut left = CAUSES_SAID;
    let mut last = None;
    let mut next = error.source();
    while let Some(cause) = next {
        next = cause.source();
        last = (left == 0).then_some(cause);
        if left > 0 {
            let words = cause.to_string();
            // A transparent error has the same text as its cause.
            if !text.ends_with(&words) {
                left -= 1;
                text.push_str("; ");
                text.push_str(&words);
            }
        }
    }
    if let Some(root) = last {
        text.push_str("; …; ");
        text.push_str(&root.to_string());
    }
    text
}
