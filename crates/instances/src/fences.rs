//! A pair of fences, for a frequent side and a rare side.
//!
//! ```text
//!   frequent            rare
//!   store a             store b
//!   light()             heavy()
//!   load b              load a          at least one of the loads sees the other side's store
//! ```
//!
//! With two full fences each side pays for ordering its store before its load, and the frequent side is a
//! thread that enters compiled code at each call from Rust. Linux executes a fence on every running thread of
//! the process on demand (`membarrier`). With such a call on the rare side, the frequent side only has to
//! keep the compiler from reordering.
//!
//! Why the asymmetric form suffices: the call acts as a full fence at some point in the frequent thread's
//! execution. If the point is before `store a`, `load b` follows it and sees `store b`. If it is after
//! `store a`, the rare side's `load a` sees that store.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | F1 | light, asymmetric | compiler fence, SeqCst | F2 | the compiler moves the load before the store, and neither side sees the other |
//! | F2 | heavy, asymmetric | the system's barrier on all threads | F1 | the processor does the same |
//! | F3 | light, symmetric | SeqCst | F4 | like F2 |
//! | F4 | heavy, symmetric | SeqCst | F3 | like F2 |
//!
//! **Models.** `loom` has no barrier on other threads. Models use [`Fences::symmetric`], where each `light`
//! is a full fence itself; the barrier is at least as strong as what models check, because it is a full fence
//! on every thread between two of its instructions.
//!
//! Cost of `heavy` with `membarrier`: a system call, and an interrupt on each processor that runs another
//! thread of the process.

use std::fmt;
use std::sync::atomic::compiler_fence;

use crate::sync::{Ordering, fence};

/// See the file's header. Both sides use copies of one value.
#[derive(Clone, Copy)]
pub struct Fences {
    barrier: Option<fn()>,
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.barrier.is_some() { "asymmetric" } else { "symmetric" })
    }
}

impl Fences {
    /// Both sides execute a full fence.
    #[must_use]
    pub const fn symmetric() -> Fences {
        Fences { barrier: None }
    }

    /// The rare side calls `barrier`, which must execute a full fence on each running thread of the process,
    /// including the caller, before it returns.
    #[must_use]
    pub const fn asymmetric(barrier: fn()) -> Fences {
        Fences { barrier: Some(barrier) }
    }

    /// The frequent side's fence.
    #[inline]
    pub fn light(self) {
        match self.barrier {
            Some(_) => compiler_fence(std::sync::atomic::Ordering::SeqCst), // F1
            None => {
                std::hint::cold_path();
                fence(Ordering::SeqCst); // F3
            }
        }
    }

    /// The rare side's fence.
    pub fn heavy(self) {
        match self.barrier {
            Some(barrier) => barrier(),      // F2
            None => fence(Ordering::SeqCst), // F4
        }
    }
}
