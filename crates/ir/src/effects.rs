//! Effects of an instruction besides its results: the only answer to "may I move or delete this?".
//!
//! Passes call [`effects`] and never use a list of opcodes. The flags are Julia's; each is set if the
//! property is *proved*, so no flags at all ([`Effects::ANY`]) is always correct.
//!
//! | flag | holds if | holds for | does not hold for |
//! |---|---|---|---|
//! | `consistent` | equal operands have equal (`===`) results | `add_int` | `getfield` of a mutable object; `%new` of one |
//! | `effect_free` | it leaves no observable trace | `getfield` | `setfield!` |
//! | `nothrow` | it never ends in an exception | `add_int` | `checked_sdiv_int` by an unknown value |
//! | `terminates` | it ends | everything but calls | a call |
//! | `notaskstate` | it does not touch the task's own state | `getfield` | `the_exception` |
//! | `inaccessiblememonly` | it touches no memory that others can reach | a load from a stack slot | `pointerref` |
//! | `noub` | its behaviour is defined for all operands of its types | `getfield` | `pointerref`, `memoryrefget` unchecked |
//!
//! Besides the flags:
//!
//! * `may_safepoint`: a collection may happen during it, so tracked values that are live across it have to be
//!   in root slots. Not derived from the memory flags: an allocation whose object no code sees is effect-free
//!   and still a safepoint. An instruction that may throw may also allocate the exception.
//! * `reads`, `writes`: kinds of memory ([`Regions`]). Memory that never changes (fields of immutables, constants) is not
//!   counted as read.
//! * `pinned`: its position in the control flow is part of its meaning (terminators, φ, φᶜ, `leave`): it
//!   never moves.
//! * `fence`: nothing that touches memory or may be a safepoint moves across it (atomics).
//!   A `safepoint` is not one: it reads all memory, so writes stay on their side, but loads may move.
//!
//! Julia's `nonoverlayed` and `nortcall` have no counterpart, because there are neither overlays nor reflection.
//!
//! `rules` computes the effects of each operation. The function must be verified. The effects of a call are
//! those recorded for the callee ([`Func::callee_effects`](crate::Func::callee_effects)), or unknown if none
//! are recorded.

mod flags;
mod rules;
mod summary;

pub use flags::{Effects, Regions};
pub use rules::effects;
pub use summary::{ArgFlow, Summary};
