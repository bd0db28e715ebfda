//! Functions that are compiled twice: fast when they are called first, well when they have turned out to be called often.
//!
//! ```text
//!   tier 1:  count -= 1; below zero? ── brolga_hot ──► queue ──► who upgrades: tiers.optimise() ──► slot leads to tier 2
//!            └─ goes on, whatever happens                        a thread of an `Upgrader`, or a call of `Jit::upgrade_hot`
//! ```
//!
//! Code of tier 1 counts the entries of its functions ([`Style::counted`](crate::Style)) in the counter of their slots. Code of tier 2
//! does not count. The store that makes a slot lead to it is all that happens to running threads: the next call finds it.
//!
//! `brolga_hot` is called where a function begins, with objects among its arguments that nobody keeps yet. So it does nothing
//! but put the function into the queue: no safepoint, no code of others. A function whose optimisation fails stays what it is,
//! and is not tried again.
//!
//! **Locks**: the queue's, in which nothing is called.
//!
//! Cost: counting is three instructions and a branch; a function is put into the queue once.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use brolga_codegen::sig::FunctionType;
use brolga_codegen::ways::HOT;
use brolga_runtime::Thread;

use crate::engine::Jit;
use crate::lazy::{Materialize, NoSlot, SlotOwner, Target, WeakSlot, slot_of_counter};

/// Makes the code of a function in two tiers. [`Materialize::materialize`] gives the first, which counts its entries.
pub trait Tiers: Materialize {
    /// The code of the second. Called at most once, on a thread that runs no compiled code meanwhile.
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;
}

/// Functions that have become hot, in order.
#[derive(Default)]
pub(crate) struct HotQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    functions: VecDeque<WeakSlot>,
    /// Upgraders that are to stop.
    stopping: usize,
}

impl HotQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between the steps of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, function: WeakSlot) {
        self.lock().functions.push_back(function);
        self.changed.notify_one();
    }

    /// The next function; waits for one until an upgrader is to stop.
    fn wait(&self) -> Option<WeakSlot> {
        let mut state = self.lock();
        loop {
            if state.stopping > 0 {
                state.stopping -= 1;
                return None;
            }
            if let Some(function) = state.functions.pop_front() {
                return Some(function);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Jit {
    /// A slot for a function that is compiled in two tiers: the second after `threshold` entries.
    pub fn tiered(
        &self,
        ty: FunctionType,
        tiers: Arc<dyn Tiers>,
        threshold: i32,
    ) -> Result<SlotOwner, NoSlot> {
        SlotOwner::new(self, ty, tiers.clone(), Some((tiers, threshold.max(0))))
    }

    /// Optimises the functions that have become hot, on this thread; how many.
    pub fn upgrade_hot(&self) -> usize {
        let mut count = 0;
        loop {
            // The lock is not held while the function is optimised.
            let next = self.hot().lock().functions.pop_front();
            let Some(function) = next else { return count };
            count += usize::from(upgrade(&function));
        }
    }

    /// Starts a thread that optimises functions as they become hot.
    pub fn start_upgrades(&self) -> std::io::Result<Upgrader> {
        let jit = self.clone();
        let work = move || {
            while let Some(function) = jit.hot().wait() {
                upgrade(&function);
            }
        };
        let thread = std::thread::Builder::new().name("upgrades".into()).spawn(work)?;
        Ok(Upgrader { jit: self.clone(), thread: Some(thread) })
    }
}

/// Whether the function has been optimised. It may be gone, or have been replaced; what failed is kept with it.
fn upgrade(function: &WeakSlot) -> bool {
    function.upgrade().is_some_and(|slot| matches!(slot.optimise(), Ok(true)))
}

/// A thread that optimises functions. Dropping it waits until the thread has finished what it is at.
pub struct Upgrader {
    jit: Jit,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Upgrader {
    fn drop(&mut self) {
        self.jit.hot().lock().stopping += 1;
        self.jit.hot().changed.notify_all();
        // The last user of an engine may be the thread itself, at the end of its last upgrade.
        let own = std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != own) {
            // It panics in no code of ours, and sources are fenced.
            let _ended = thread.join();
        }
    }
}

impl std::fmt::Debug for Upgrader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrader").finish_non_exhaustive()
    }
}

/// The routine of this file.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == HOT).then_some(brolga_hot as *const () as usize)
}

/// What code of tier 1 calls when its counter has gone below zero. Not a safepoint.
extern "C" fn brolga_hot(_: &Thread, counter: usize) {
    // SAFETY: compiled code passes the address of the counter that it was linked with, whose slot its unit keeps.
    let slot = unsafe { slot_of_counter(counter) };
    if slot.became_hot() {
        slot.jit().hot().push(slot.downgrade());
    }
}
