//! Stopping the world: all mutators of a heap stand still while one of them collects.
//!
//! ```text
//!   collector                                   other mutator, running            another one, outside
//!   ─────────                                   ──────────────────────            ────────────────────
//!   lock; collecting = true
//!   request() on every handshake
//!   raise COLLECT in the poll word  ─────────►  poll ≠ 0 → leave()
//!   wait on `stopped` until none runs  ◄──────  lock; notify `stopped`            try_enter() fails
//!   … collect, lock held …                      wait on `resumed`                 lock: blocks
//!   release() on every handshake
//!   clear COLLECT; collecting = false
//!   notify `resumed`; unlock        ─────────►  try_enter()                       try_enter()
//! ```
//!
//! A thread that is outside (it runs no compiled code and holds no scope, or is in a blocking call) counts as stopped and
//! costs the collector one read-modify-write. Two threads that want to collect at the same time: the second finds
//! `collecting` set, stands aside, and then need not collect any more.
//!
//! Nobody misses a wake-up: both conditions are changed and tested under the lock, except that a handshake is left
//! before the lock is taken, and the collector tests handshakes and goes to wait without giving the lock up in between.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | W1  | raise COLLECT in a poll word | Relaxed | W3 | nothing: the word only has to arrive; the handshake orders the rest |
//! | W2  | clear COLLECT | Relaxed | – | a poll that sees the old value takes the slow path once more |
//! | W3  | see COLLECT (`thread.rs`) | Relaxed | W1 | as W1 |

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::mutator::{Member, Mutator};

/// The bit of the poll word that asks for a safepoint of the heap.
pub(crate) const POLL_COLLECT: u32 = 2;

/// The mutators of one heap.
#[derive(Default, Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    stopped: Condvar,
    resumed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    members: Vec<Member>,
    collecting: bool,
    /// Whether poll words stay raised, so that every poll is a safepoint.
    always_poll: bool,
}

/// The world, stopped. It goes on when this is dropped.
pub(crate) struct Stopped<'w> {
    world: &'w World,
    state: MutexGuard<'w, State>,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a defect that verification found; the lists are whole all the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_resumed<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        while state.collecting {
            state = self.resumed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Puts a mutator, which does not run, on the list.
    pub(crate) fn add(&self, member: Member) {
        let mut state = self.wait_until_resumed(self.lock());
        if state.always_poll {
            member.poll().fetch_or(POLL_COLLECT, Ordering::Relaxed); // W1
        }
        state.members.push(member);
    }

    /// Takes a mutator, which does not run, off the list.
    pub(crate) fn remove(&self, mutator: &Mutator) {
        let mut state = self.wait_until_resumed(self.lock());
        state.members.retain(|member| !member.is(mutator));
    }

    /// The mutator wants to touch the heap; waits while a collection goes on.
    pub(crate) fn enter(&self, mutator: &Mutator) {
        while !mutator.handshake.try_enter() {
            drop(self.wait_until_resumed(self.lock()));
        }
    }

    /// The mutator does not touch the heap from now on.
    pub(crate) fn leave(&self, mutator: &Mutator) {
        if mutator.handshake.leave() {
            drop(self.lock());
            self.stopped.notify_all();
        }
    }

    /// Lets a collection happen if one is wanted.
    pub(crate) fn stand_aside(&self, mutator: &Mutator) {
        if mutator.handshake.must_stop() {
            self.leave(mutator);
            self.enter(mutator);
        }
    }

    /// Stops all others; `None` when somebody else collected meanwhile.
    pub(crate) fn stop(&self, mutator: &Mutator) -> Option<Stopped<'_>> {
        let mut state = self.lock();
        if state.collecting {
            mutator.handshake.leave();
            self.stopped.notify_all();
            drop(self.wait_until_resumed(state));
            self.enter(mutator);
            return None;
        }
        state.collecting = true;
        for member in state.members.iter().filter(|member| !member.is(mutator)) {
            if member.handshake().request() {
                member.poll().fetch_or(POLL_COLLECT, Ordering::Relaxed); // W1
            }
        }
        let runs = |member: &Member| !member.is(mutator) && member.handshake().is_running();
        while state.members.iter().any(runs) {
            state = self.stopped.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(Stopped { world: self, state })
    }

    /// Makes every poll take the slow path, or only those that are needed.
    pub(crate) fn set_always_poll(&self, always: bool) {
        let mut state = self.wait_until_resumed(self.lock());
        state.always_poll = always;
        for member in &state.members {
            set_collect(member, always);
        }
    }
}

fn set_collect(member: &Member, raised: bool) {
    if raised {
        member.poll().fetch_or(POLL_COLLECT, Ordering::Relaxed); // W1
    } else {
        member.poll().fetch_and(!POLL_COLLECT, Ordering::Relaxed); // W2
    }
}

impl Stopped<'_> {
    /// All mutators, each of which stands still, or is the one that collects.
    pub(crate) fn mutators(&self) -> impl Iterator<Item = &Mutator> {
        // SAFETY: everybody on the list but the collector has left its handshake, and cannot enter before it is released.
        self.state.members.iter().map(|member| unsafe { member.mutator() })
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.state.collecting = false;
        for member in &self.state.members {
            set_collect(member, self.state.always_poll);
            member.handshake().release();
        }
        self.world.resumed.notify_all();
    }
}
