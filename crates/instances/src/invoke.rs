//! The invoke pointer of a function: the word through which it is called, and the protocol by which threads read it while it changes.
//!
//! ```text
//!   callers ── load ──► invoke pointer ◄── store ── the owner's lock        leads to: stub, code, or a selector of worlds
//! ```
//!
//! The native signature of a function is fixed when its word is made, and the word always has a target, at first a stub. So one word is
//! enough, and publishing code, upgrading it, superseding it and closing the function are one store each. Boxed entries, entries
//! for C and those of loops are separate code that calls through the word; a change of the function's code changes none of them.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | store the address | Release | C2 | a reader of the word jumps to code that it cannot see yet |
//! | C2 | load the address | Acquire | C1 | as C1 |
//!
//! Compiled code loads the word plainly and jumps to the address (`crates/jit/src/cell/place.rs`, S2).
//!
//! Invariants: an address, once stored, stays callable as long as a thread may hold it (`reclaim`); one thread at a time stores.

use crate::sync::{AtomicUsize, Ordering};

/// A word that leads to the native code of a function, and is replaced while threads read it.
#[derive(Debug)]
#[repr(transparent)]
pub struct InvokePointer(AtomicUsize);

impl InvokePointer {
    /// A word that leads to this address.
    #[must_use]
    pub fn new(address: usize) -> InvokePointer {
        InvokePointer(AtomicUsize::new(address))
    }

    /// Where it leads.
    #[must_use]
    #[inline]
    pub fn load(&self) -> usize {
        self.0.load(Ordering::Acquire) // C2
    }

    /// Lets it lead elsewhere: to code that is in its final form. One thread at a time does so.
    pub fn store(&self, address: usize) {
        self.0.store(address, Ordering::Release); // C1
    }
}
