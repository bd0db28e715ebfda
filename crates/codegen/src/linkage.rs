//! How a compiled function reaches separately compiled code.
//!
//! | call kind | code | changed later by |
//! |---|---|---|
//! | [`CallKind::Near`] | `call rel32` (x86-64), `bl` (aarch64) | nothing: both are one link unit |
//! | [`CallKind::Far`] | the address as a constant, then a call through the register | nothing: the callee's unit is held |
//! | [`CallKind::Cell`] | the word's address by distance, a load, a call through the register | the owner of the cell, by one store |
//! | [`CallKind::OsrCheck`] | no call: counts down, and calls the run time when the count is below zero | nothing |
//!
//! An *indirection cell* is a word that always holds the address of code with the function's native signature. A caller names the word
//! ([`Symbol::IndirectCell`](crate::compiled::Symbol)), so its own code never changes. The word is in the same reservation
//! as code, so its address can be a distance from the code.
//!
//! A *counter* is a 32-bit word that a function counts down at its entry. When it goes below zero the function calls
//! `brolga_hot` with the word's address and continues. Threads that count at the same time may lose counts.
//!
//! An *OSR check* is at the head of a loop, as a call without arguments that returns a `Bool`: whether to leave the loop. It
//! is false while the counter of its name is not below zero; after that `brolga_loop` decides.

/// The routine that a function calls whose counter has gone below zero: with the counter's address. It is not a safepoint, and does
/// not throw.
pub const HOT: &str = "brolga_hot";

/// The routine that answers an OSR check whose counter has gone below zero, by 1 for yes: with the counter's address. It is not a
/// safepoint, and does not throw.
pub const LOOP: &str = "brolga_loop";

/// The routine that notes the types with which a dynamic call is made: with the address of the site's first cell, the number of
/// operands, and their tags, [`SEEN_OPERANDS`] of them. It is not a safepoint, and does not throw.
pub const SEEN: &str = "brolga_seen";

/// Dynamic calls with more operands, the callee among them, are not profiled.
pub const SEEN_OPERANDS: usize = 4;

/// The number of profiled calls of a site: enough to find the frequent types.
pub const SAMPLES: u64 = 256;

/// How a call of compiled code finds its callee.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    /// At a distance that fits a direct call.
    Near,
    /// At any distance.
    Far,
    /// Through the word of the callee's cell.
    Cell,
    /// An OSR check instead of a callee.
    OsrCheck,
}

impl CallKind {
    /// Its number. Keys of caches hold it, so a variant keeps its own.
    pub fn number(self) -> u8 {
        match self {
            CallKind::Near => 0,
            CallKind::Far => 1,
            CallKind::Cell => 2,
            CallKind::OsrCheck => 3,
        }
    }
}

/// How a function is linked to separately compiled code.
#[derive(Clone, Copy)]
pub struct CallLinkage<'a> {
    /// The kind of a call to another compiled function, by its name. A function that counts nothing reaches itself directly.
    pub call_kind: &'a dyn Fn(&str) -> CallKind,
    /// The function whose counter this one counts down at its entry.
    pub counter: Option<&'a str>,
    /// Whether it counts what its branches and dynamic calls do, where they have sites (`translate/profile.rs`).
    pub is_profiled: bool,
}

impl CallLinkage<'static> {
    /// Every other function is far, and nothing is counted.
    pub const FAR: CallLinkage<'static> =
        CallLinkage { call_kind: &|_| CallKind::Far, counter: None, is_profiled: false };
}

impl std::fmt::Debug for CallLinkage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallLinkage").field("counter", &self.counter).finish_non_exhaustive()
    }
}
