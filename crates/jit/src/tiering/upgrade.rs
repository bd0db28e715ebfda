//! Upgrades: requests to compile a function, or to recompile it in a higher tier.
//!
//! They go to the embedder's [`Upgrades`], or wait in the queue of the engine until a call of
//! [`Jit::upgrade_hot`](crate::Jit::upgrade_hot). The function's cell defines the upgrade; this file only uses
//! [`Upgradable`]: the engine holds the queue, and is below cells.
//!
//! **Locks**: the queue's, under which nothing is called.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | T1 | count a loop that was left; read the count; read the time | Relaxed | – | nothing: they are figures |

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The target of an upgrade.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// Its first code.
    Compile,
    /// Better code than it has.
    Optimise,
}

/// A function that can get code, or better code.
pub(crate) trait Upgradable: Send + Sync {
    /// Compiles the code; returns whether the function has other code now.
    fn upgrade(self: Arc<Self>, wanted: Wanted) -> bool;
}

/// A request to compile a function in its next tier.
pub struct Upgrade {
    of: Weak<dyn Upgradable>,
    wanted: Wanted,
}

impl Upgrade {
    pub(crate) fn new(of: Weak<dyn Upgradable>, wanted: Wanted) -> Upgrade {
        Upgrade { of, wanted }
    }

    /// Compiles the code, on a thread that runs no compiled code meanwhile; returns whether the function has other code now. It may have been removed or
    /// replaced; an error is kept with the function.
    pub fn run(self) -> bool {
        self.of.upgrade().is_some_and(|of| of.upgrade(self.wanted))
    }
}

impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrade").finish_non_exhaustive()
    }
}

/// Runs [upgrades](Upgrade) in the background.
pub trait Upgrades: Send + Sync {
    /// Takes an upgrade from a thread in the middle of compiled code, where unrooted references may be in use: it does not block, run the
    /// upgrade, enter the heap, or call code that may. If accepting it needs any of that, it returns the rest of the work, which is done at the
    /// thread's next safepoint.
    fn enqueue(&self, upgrade: Upgrade) -> Option<Box<dyn FnOnce() + Send>>;
}

/// The functions of an engine that have become hot.
#[derive(Default)]
pub(crate) struct UpgradeQueue {
    /// Upgrades that are not run in the background, in order.
    waiting: Mutex<VecDeque<Upgrade>>,
    background: OnceLock<Arc<dyn Upgrades>>,
    /// How often a thread has left a loop.
    left_loops: AtomicU64,
    /// The same for each loop, by the address of its cell's word, while there is a listener. A cell at the address of a former one continues its count.
    left_of_each: Mutex<BTreeMap<usize, u64>>,
    /// A clock that advances when code is compiled, or called through a stub.
    clock: AtomicU64,
}

impl UpgradeQueue {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Upgrade>> {
        // Nothing panics between the steps of a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the clock and returns the time.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) // T1
    }

    /// Takes an upgrade from the middle of compiled code. The returned work is done at the thread's next safepoint.
    pub(crate) fn enqueue(&self, upgrade: Upgrade) -> Option<Box<dyn FnOnce() + Send>> {
        let Some(background) = self.background.get() else {
            self.waiting().push_back(upgrade);
            return None;
        };
        background.enqueue(upgrade)
    }

    /// The next upgrade that is not run in the background.
    pub(crate) fn next(&self) -> Option<Upgrade> {
        self.waiting().pop_front()
    }

    /// Sets the thread that runs upgrades in the background. The first one stays.
    pub(crate) fn set_background(&self, upgrades: Arc<dyn Upgrades>) {
        let _first = self.background.set(upgrades);
    }

    /// Counts that a thread has left a loop.
    pub(crate) fn count_left_loop(&self) {
        self.left_loops.fetch_add(1, Ordering::Relaxed); // T1
    }

    /// How often threads have left loops.
    pub(crate) fn left_loops(&self) -> u64 {
        self.left_loops.load(Ordering::Relaxed) // T1
    }

    /// Counts that a thread has left the loop whose word is at an address; returns the count.
    pub(crate) fn count_left(&self, word: usize) -> u64 {
        let mut each = self.left_of_each.lock().unwrap_or_else(PoisonError::into_inner);
        let times = each.entry(word).or_default();
        *times += 1;
        *times
    }
}
