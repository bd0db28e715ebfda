//! The worlds in which a thread's calls are made.
//!
//! Entries into compiled code nest, and each may be in its own world: the outermost in the newest one at that
//! time, `invokelatest` in a newer one, `invoke_in_world` in an older one. The thread may still call code
//! that is visible between the oldest and the newest of them, so that code is not freed (`retired.rs`).
//! `objects/dispatch.rs` writes the span; the heap's part of the thread reads it when the thread blocks, for
//! threads that retire code meanwhile.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | W1  | read or write an end of the span | Relaxed | – | nothing: only the thread itself accesses it |

use std::sync::atomic::{AtomicU64, Ordering};

/// The oldest and the newest world of the entries on a thread's stack.
///
/// An outermost entry writes only `oldest`: the value of `newest` is then from an earlier entry and not above
/// it, since worlds advance.
#[derive(Default, Debug)]
pub(crate) struct Span {
    /// 0 outside of all worlds.
    oldest: AtomicU64,
    /// Valid if above `oldest`.
    newest: AtomicU64,
}

impl Span {
    #[inline(always)]
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.oldest.load(Ordering::Relaxed), self.newest.load(Ordering::Relaxed)) // W1
    }

    #[inline(always)]
    pub(crate) fn set(&self, (oldest, newest): (u64, u64)) {
        self.oldest.store(oldest, Ordering::Relaxed); // W1
        self.newest.store(newest, Ordering::Relaxed); // W1
    }

    /// A single entry, into the newest world.
    #[inline(always)]
    pub(crate) fn begin(&self, world: u64) {
        self.oldest.store(world, Ordering::Relaxed); // W1
    }

    /// No entries.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.oldest.store(0, Ordering::Relaxed); // W1
    }

    /// Extends the span by a world.
    #[inline(always)]
    pub(crate) fn include(&self, world: u64) {
        let (oldest, newest) = self.get();
        self.set((if oldest == 0 { world } else { oldest.min(world) }, newest.max(world)));
    }

    /// The oldest and the newest world; `None` outside all worlds.
    pub(crate) fn worlds(&self) -> Option<(u64, u64)> {
        let (oldest, newest) = self.get();
        (oldest != 0).then_some((oldest, newest.max(oldest)))
    }
}
