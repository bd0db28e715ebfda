//! The words of a code instance, and the protocol by which threads write and read them without a lock.
//!
//! | word | meaning |
//! |---|---|
//! | `invoke` | the entry that anyone may call: boxed arguments, or a trampoline, or the interpreter |
//! | `specptr` | the native code; what it takes is said by the flags |
//! | `flags` | 0b01: `specptr` has the specialised signature; 0b10: `invoke` and the flags belong to `specptr` |
//!
//! States that a reader may be told, in the order in which an instance goes through them:
//!
//! ```text
//!   (null, 00, null) ──install──► (invoke, 00, null) ──┐
//!          │                                           ├─publish──► (invoke, 1x, specptr) ──upgrade──► (invoke, 1x, specptr')
//!          └───────────────────────────────────────────┘
//! ```
//!
//! *Publish*: whoever changes `specptr` from null may write, everyone else waits for 0b10 and has lost. The winner writes
//! the low flag, then `invoke`, then 0b10. *Read*: `specptr`, then `invoke`; when `specptr` was there, wait for 0b10 and read
//! `invoke` and the flags again. *Upgrade*: one store of an equivalent `specptr`.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | publish: `specptr`, null to address | Release | C5 | who reads `specptr` alone jumps to code that it cannot see yet |
//! | C2 | publish: somebody was faster | Relaxed | – | nothing: the loser waits by C7 |
//! | C3 | publish: `invoke` | Release | C6 | a reader that saw no `specptr` calls an entry whose code, or whose `specptr`, it cannot see |
//! | C4 | publish: 0b10 | Release | C7 | a reader goes on with the old `invoke`, or without the low flag |
//! | C5 | read: `specptr` | Acquire | C1, C9 | as C1 |
//! | C6 | read: `invoke` | Acquire | C3, C8 | as C3 |
//! | C7 | read, loser: wait for 0b10 | Acquire | C4 | as C4 |
//! | C8 | install: `invoke`, null to address | Release | C6 | a reader jumps to a trampoline that it cannot see yet |
//! | C9 | upgrade: `specptr` | Release | C5 | as C1, for the new code |
//! | C10 | the low flag; `invoke` after C7; what a failing exchange saw | Relaxed | – | nothing: C4 and C7 order them, and what failed only reports |
//!
//! A function's slot, through which compiled code calls, is the word `specptr` alone ([`CodeWord`]): its signature never changes, it
//! leads somewhere from the beginning (to a stub), and nobody asks it for a boxed entry; so of the table it needs C5 and C9.
//!
//! Waiting spins. A publisher has three stores to do between the first and the last, no call and no safepoint, so the wait is
//! short unless the system takes the processor away from it.
//!
//! Invariants: the signature is fixed by the first publication; an address, once stored, stays callable as long as a thread
//! may hold it (`reclaim`); `invoke` works in every state that it is visible in, so it may itself read `specptr`.
//!
//! After Julia's `jl_publish_compiled_ci` and `jl_read_codeinst_invoke`. There C4 is relaxed in the source and a release in the
//! documentation; the model fails without it.

use std::num::NonZeroUsize;

use crate::sync::{AtomicU8, AtomicUsize, Ordering, spin_loop};

/// `specptr` takes arguments as its own signature says.
const SPECIALISED: u8 = 0b01;
/// `invoke` and the low flag are those of `specptr`.
const COMPLETE: u8 = 0b10;

/// What native code of an instance takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    /// The function object, an array of boxed arguments, their number.
    Args,
    /// Unboxed arguments in registers, of the instance's own types.
    Specialised,
}

/// What a reader is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Not callable.
    None,
    /// Callable by `invoke` alone: not compiled, or about to be.
    Invoke(NonZeroUsize),
    /// Compiled.
    Compiled {
        /// The entry for everyone.
        invoke: NonZeroUsize,
        /// The native code.
        specptr: NonZeroUsize,
        /// What the native code takes.
        signature: Signature,
    },
}

/// Another thread's code was published first; it is complete now.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("another thread published the code instance first")]
pub struct Lost;

/// The code that was to be replaced is not there.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("the code instance's code is not the code that was to be replaced")]
pub struct Outdated {
    /// What is there.
    pub now: Option<NonZeroUsize>,
}

/// A word that leads to native code, and is replaced while threads read it.
#[derive(Debug)]
#[repr(transparent)]
pub struct CodeWord(AtomicUsize);

impl CodeWord {
    /// A word that leads to this address.
    #[must_use]
    pub fn new(address: usize) -> CodeWord {
        CodeWord(AtomicUsize::new(address))
    }

    /// Where it leads.
    #[must_use]
    pub fn load(&self) -> usize {
        self.0.load(Ordering::Acquire) // C5
    }

    /// Lets it lead elsewhere: to code that is in its final form. One thread at a time does so.
    pub fn store(&self, address: usize) {
        self.0.store(address, Ordering::Release); // C9
    }
}

/// The words. See the file's header.
#[derive(Debug)]
pub struct CodeInstance {
    specptr: CodeWord,
    invoke: AtomicUsize,
    flags: AtomicU8,
}

impl Default for CodeInstance {
    fn default() -> Self {
        CodeInstance::new()
    }
}

impl CodeInstance {
    /// One that cannot be called.
    #[must_use]
    pub fn new() -> CodeInstance {
        CodeInstance { specptr: CodeWord::new(0), invoke: AtomicUsize::new(0), flags: AtomicU8::new(0) }
    }

    /// Makes an instance callable that is not compiled: by a trampoline or the interpreter. It must go on working when code
    /// is published meanwhile.
    ///
    /// # Errors
    /// It is callable already.
    pub fn install(&self, invoke: NonZeroUsize) -> Result<(), Lost> {
        self.invoke
            .compare_exchange(
                0,
                invoke.get(),
                Ordering::Release, // C8
                Ordering::Relaxed, // C10
            )
            .map(|_| ())
            .map_err(|_| Lost)
    }

    /// Publishes compiled code. Everything that the two addresses lead to must be in its final form.
    ///
    /// # Errors
    /// Another thread was faster; [`CodeInstance::read`] gives its code.
    pub fn publish(
        &self,
        invoke: NonZeroUsize,
        specptr: NonZeroUsize,
        signature: Signature,
    ) -> Result<(), Lost> {
        let won = self.specptr.0.compare_exchange(
            0,
            specptr.get(),
            Ordering::Release, // C1
            Ordering::Relaxed, // C2
        );
        if won.is_err() {
            self.wait_until_complete();
            return Err(Lost);
        }
        if signature == Signature::Specialised {
            self.flags.fetch_or(SPECIALISED, Ordering::Relaxed); // C10
        }
        self.invoke.store(invoke.get(), Ordering::Release); // C3
        self.flags.fetch_or(COMPLETE, Ordering::Release); // C4
        Ok(())
    }

    /// What can be called.
    #[must_use]
    pub fn read(&self) -> Entry {
        let specptr = NonZeroUsize::new(self.specptr.load());
        let initial = NonZeroUsize::new(self.invoke.load(Ordering::Acquire)); // C6
        let Some(specptr) = specptr else {
            return initial.map_or(Entry::None, Entry::Invoke);
        };
        let flags = self.wait_until_complete();
        // C7 saw C4, which follows C3, so this is the entry that was published.
        let invoke = NonZeroUsize::new(self.invoke.load(Ordering::Relaxed)); // C10
        let Some(invoke) = invoke else { return Entry::None };
        let signature = if flags & SPECIALISED == 0 { Signature::Args } else { Signature::Specialised };
        Entry::Compiled { invoke, specptr, signature }
    }

    /// The native code alone, for those who know its signature.
    #[must_use]
    pub fn specptr(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.specptr.load())
    }

    /// Replaces native code by other code of the same signature and meaning. Threads may be running what is replaced still.
    ///
    /// # Errors
    /// The code is not, or no longer, the code to be replaced.
    pub fn upgrade(&self, from: NonZeroUsize, to: NonZeroUsize) -> Result<(), Outdated> {
        self.specptr
            .0
            .compare_exchange(
                from.get(),
                to.get(),
                Ordering::Release, // C9
                Ordering::Relaxed, // C10
            )
            .map(|_| ())
            .map_err(|now| Outdated { now: NonZeroUsize::new(now) })
    }

    fn wait_until_complete(&self) -> u8 {
        loop {
            let flags = self.flags.load(Ordering::Acquire); // C7
            if flags & COMPLETE != 0 {
                return flags;
            }
            spin_loop();
        }
    }
}
