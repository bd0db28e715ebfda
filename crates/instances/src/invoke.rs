//! The invoke pointer of a function: the word through which it is called, and the protocol for replacing it
//! under concurrent readers.
//!
//! ```text
//!   callers ── load ──► invoke pointer ◄── store ── the owner's lock        target: stub, code, or a selector of worlds
//! ```
//!
//! The native signature of a function is fixed when its word is made, and the word always has a target,
//! initially a stub. So one word is enough, and publishing code, upgrading it, superseding it and closing the
//! function are one store each. Boxed entries, entries for C and entries into loops are separate code that
//! calls through the word; a change of the function's code does not affect them.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | C1 | store the address | Release | C2 | a reader of the word jumps to code that it cannot see yet |
//! | C2 | load the address | Acquire | C1 | like C1 |
//!
//! Compiled code loads the word with a plain load and jumps to the address (`crates/jit/src/cell/place.rs`,
//! S2).
//!
//! Invariants: a stored address stays callable for as long as a thread may hold it (`reclaim`); only one
//! thread at a time stores.

use crate::sync::{AtomicUsize, Ordering};

/// A word that holds the address of a function's native code, and is replaced while threads read it.
#[derive(Debug)]
#[repr(transparent)]
pub struct InvokePointer(AtomicUsize);

impl InvokePointer {
    /// A word with this target.
    #[must_use]
    pub fn new(address: usize) -> InvokePointer {
        InvokePointer(AtomicUsize::new(address))
    }

    /// The target.
    #[must_use]
    #[inline]
    pub fn load(&self) -> usize {
        self.0.load(Ordering::Acquire) // C2
    }

    /// Changes the target, to code in its final form. Only one thread at a time may do so.
    pub fn store(&self, address: usize) {
        self.0.store(address, Ordering::Release); // C1
    }
}
