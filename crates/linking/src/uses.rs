//! The number of a name's holders, and the generation of a slot's name, in one word.
//!
//! ```text
//!   63            32 31        30             0
//!   ┌───────────────┬─────────┬───────────────┐
//!   │ generation    │ forever │ holders       │
//!   └───────────────┴─────────┴───────────────┘
//!
//!   (g, 0) ── revive ──► (g, 1) ◄── hold, let_go ──► (g, n)          (g, 0) ── free ──► (g + 1, 0)
//! ```
//!
//! Both halves change together, so a symbol whose name no longer exists holds nothing, whatever name has the
//! slot now. A lock of the caller (`names.rs`) excludes `free` and `revive` from each other; `hold` and
//! `let_go` take none. Holders of a permanent name are not counted: holding it is one load.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | `let_go`: fetch and subtract | Release | N2 | the slot is reused before its last holder has read it |
//! | N2 | `free`: compare and exchange | Acquire | N1 | the same, from the other side |
//! | N3 | everything else | Relaxed | | nothing: a holder, or a reviver under the lock, has seen the slot before |
//!
//! After its last generation a slot stays empty.

use crate::sync::{AtomicU64, Ordering};

/// See the file's header.
pub(crate) struct Uses(AtomicU64);

const FOREVER: u64 = 1 << 31;
const HOLDERS: u64 = FOREVER - 1;

fn generation(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The outcome of freeing a slot.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Freed {
    /// It is held again, or by now has another name.
    No,
    /// It may be reused.
    Yes,
    /// Its generations are exhausted.
    ForGood,
}

impl Uses {
    /// A slot without holders, whose first name has this generation.
    pub(crate) fn new(first: u32) -> Uses {
        Uses(AtomicU64::new(u64::from(first) << 32))
    }

    /// The generation of the slot's current or next name.
    pub(crate) fn generation(&self) -> u32 {
        generation(self.0.load(Ordering::Relaxed)) // N3
    }

    /// Whether holders of the name of this generation are counted.
    pub(crate) fn is_counted(&self, of: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed); // N3
        generation(word) == of && word & FOREVER == 0
    }

    /// Adds a holder to a held name. `false` if the name of this generation no longer exists.
    pub(crate) fn hold(&self, of: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed); // N3
        self.add(word, |word| generation(word) == of && word & (FOREVER | HOLDERS) != 0)
    }

    /// Adds a holder, possibly the first. Under the lock.
    pub(crate) fn revive(&self) -> u32 {
        let word = self.0.load(Ordering::Relaxed); // N3
        self.add(word, |_| true);
        generation(word)
    }

    /// Holds the name forever. Under the lock.
    pub(crate) fn keep(&self) -> u32 {
        let word = self.0.load(Ordering::Relaxed); // N3
        if word & FOREVER == 0 {
            self.0.fetch_or(FOREVER, Ordering::Relaxed); // N3
        }
        generation(word)
    }

    fn add(&self, mut word: u64, may: impl Fn(u64) -> bool) -> bool {
        loop {
            if !may(word) || word & FOREVER != 0 {
                return may(word);
            }
            // A name with more holders than can be counted is held forever.
            let next = if word & HOLDERS == HOLDERS { word | FOREVER } else { word + 1 };
            let added = self.0.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed); // N3
            match added {
                Ok(_) => return true,
                Err(there) => word = there,
            }
        }
    }

    /// Removes a holder; returns whether it was the last.
    pub(crate) fn let_go(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed); // N3
        if word & FOREVER != 0 {
            return false;
        }
        let before = self.0.fetch_sub(1, Ordering::Release); // N1
        debug_assert_ne!(before & HOLDERS, 0, "a holder releases once");
        before & (FOREVER | HOLDERS) == 1
    }

    /// Ends the name of this generation, if it has no holder. `first` is the generation of the slot's first
    /// name. Under the lock.
    pub(crate) fn free(&self, of: u32, first: u32) -> Freed {
        let unheld = u64::from(of) << 32;
        let next = u64::from(of.wrapping_add(1)) << 32;
        let freed = self.0.compare_exchange(unheld, next, Ordering::Acquire, Ordering::Relaxed); // N2
        match freed {
            Ok(_) if of.wrapping_add(1) == first => Freed::ForGood,
            Ok(_) => Freed::Yes,
            Err(_) => Freed::No,
        }
    }
}
