//! Stopping the world: all mutators of a heap are stopped while one of them collects.
//!
//! ```text
//!   collector                                   other mutator, running            another one, outside
//!   ─────────                                   ──────────────────────            ────────────────────
//!   lock; collecting = true
//!   request() to every handshake
//!   raise COLLECT in the poll word  ─────────►  poll ≠ 0 → leave()
//!   wait on `stopped` until none runs  ◄──────  lock; notify `stopped`            try_enter() fails
//!   … collect, lock held …                      wait on `resumed`                 lock: blocks
//!   release() on every handshake
//!   clear COLLECT; collecting = false
//!   notify `resumed`; unlock        ─────────►  try_enter()                       try_enter()
//! ```
//!
//! A thread that is outside (it runs no compiled code and holds no scope, or is in a blocking call) counts as
//! stopped and costs the collector a store and a load. If two threads start to collect at the same time, the
//! second finds `collecting` set, waits as a stopped thread, and then need not collect.
//!
//! No wake-up is missed: both conditions are changed and tested under the lock, except that a handshake is
//! left before the lock is taken, and the collector tests handshakes and waits without releasing the lock in
//! between.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | W1  | raise COLLECT in a poll word | Relaxed | W3 | nothing: the word only needs to become visible; the handshake orders the rest |
//! | W2  | clear COLLECT | Relaxed | – | a poll that sees the old value takes the slow path once more |
//! | W3  | see COLLECT (`thread.rs`) | Relaxed | W1 | as W1 |
//! | W4  | see END between finalizers | Relaxed | T7 of `asked.rs` | nothing: one more finalizer runs, and ends at its first poll |

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use brolga_instances::Fences;

use super::handshake::Handshake;
use super::mutator::{Member, Mutator};

/// The bit of the poll word that requests a safepoint of the heap.
pub(crate) const POLL_COLLECT: u32 = 2;

/// The bit of the poll word that ends compiled code up to its entry, until it is cleared. Machine code of
/// `routines/unwind.rs` tests it.
pub(crate) const POLL_END: u32 = 16;

/// The mutators of one heap.
#[derive(Debug)]
pub(crate) struct World {
    fences: Fences,
    state: Mutex<State>,
    stopped: Condvar,
    resumed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    members: Vec<Member>,
    collecting: bool,
    /// How often the world has been stopped and resumed.
    #[cfg(feature = "heap-mmtk")]
    pauses: u64,
    /// Whether poll words stay raised, so that every poll is a safepoint.
    always_poll: bool,
}

/// The stopped world. It resumes when this is dropped.
pub(crate) struct Stopped<'w> {
    world: &'w World,
    state: MutexGuard<'w, State>,
}

impl World {
    /// A world without mutators. All handshakes use these fences.
    pub(crate) fn new(fences: Fences) -> World {
        World { fences, state: Mutex::default(), stopped: Condvar::new(), resumed: Condvar::new() }
    }

    /// The fences between mutators and the collector.
    pub(crate) fn fences(&self) -> Fences {
        self.fences
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock means that verification found a defect; the lists are consistent
        // nevertheless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_resumed<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        while state.collecting {
            state = self.resumed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Adds a mutator that is not running to the list.
    pub(crate) fn add(&self, member: Member) {
        let mut state = self.wait_until_resumed(self.lock());
        if state.always_poll {
            member.poll().fetch_or(POLL_COLLECT, Ordering::Relaxed); // W1
        }
        state.members.push(member);
    }

    /// Whether a limited call of the mutator's thread has ended: compiled code called now would end at its
    /// first poll.
    pub(super) fn is_ending(&self, mutator: &Mutator) -> bool {
        let state = self.lock();
        let own = state.members.iter().find(|member| member.is(mutator));
        own.is_some_and(|member| member.poll().load(Ordering::Relaxed) & POLL_END != 0) // W4
    }

    /// Removes a mutator that is not running from the list.
    pub(crate) fn remove(&self, mutator: &Mutator) {
        let mut state = self.wait_until_resumed(self.lock());
        state.members.retain(|member| !member.is(mutator));
    }

    /// The mutator enters the heap, after waiting for any collection.
    #[inline]
    pub(crate) fn enter(&self, mutator: &Mutator) {
        if !mutator.handshake.try_enter() {
            self.enter_later(mutator);
        }
    }

    /// Like [`World::enter`], without waiting: returns whether the mutator may access the heap. A refused
    /// mutator calls `enter` next.
    #[inline(always)]
    pub(crate) fn try_enter(&self, mutator: &Mutator) -> bool {
        mutator.handshake.try_enter()
    }

    #[cold]
    fn enter_later(&self, mutator: &Mutator) {
        loop {
            let state = self.lock();
            // The collector may have seen it running, and be waiting for it.
            self.stopped.notify_all();
            drop(self.wait_until_resumed(state));
            if mutator.handshake.try_enter() {
                return;
            }
        }
    }

    /// The mutator stops accessing the heap.
    #[inline]
    pub(crate) fn leave(&self, mutator: &Mutator) {
        if mutator.handshake.leave() {
            self.tell();
        }
    }

    /// Wakes a collector that may be waiting for a mutator that has just left.
    #[cold]
    #[inline(never)]
    fn tell(&self) {
        drop(self.lock());
        self.stopped.notify_all();
    }

    /// Lets a pending collection happen.
    pub(crate) fn stand_aside(&self, mutator: &Mutator) {
        if mutator.handshake.must_stop() {
            self.leave(mutator);
            self.enter(mutator);
        }
    }

    /// Stops all others; `None` if another thread collected instead.
    pub(crate) fn stop(&self, mutator: &Mutator) -> Option<Stopped<'_>> {
        let state = self.lock();
        if state.collecting {
            mutator.handshake.leave();
            self.stopped.notify_all();
            drop(self.wait_until_resumed(state));
            self.enter(mutator);
            return None;
        }
        let state = self.stop_others(state, Some(mutator));
        Some(Stopped { world: self, state })
    }

    /// Stops all mutators except the collecting one, if any.
    fn stop_others<'w>(
        &'w self,
        mut state: MutexGuard<'w, State>,
        by: Option<&Mutator>,
    ) -> MutexGuard<'w, State> {
        let is_other = |member: &&Member| by.is_none_or(|by| !member.is(by));
        state.collecting = true;
        Handshake::request(self.fences, state.members.iter().filter(is_other).map(Member::handshake));
        for member in state.members.iter().filter(is_other) {
            if member.handshake().is_running() {
                member.poll().fetch_or(POLL_COLLECT, Ordering::Relaxed); // W1
            }
        }
        while state.members.iter().filter(is_other).any(|member| member.handshake().is_running()) {
            state = self.stopped.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn go_on(&self, state: &mut State) {
        state.collecting = false;
        #[cfg(feature = "heap-mmtk")]
        {
            state.pauses += 1;
        }
        for member in &state.members {
            set_collect(member, state.always_poll);
            member.handshake().release();
        }
        self.resumed.notify_all();
    }

    /// Makes every poll take the slow path, or only the necessary ones.
    pub(crate) fn set_always_poll(&self, always: bool) {
        let mut state = self.lock();
        state.always_poll = always;
        // During a collection, its end does it: the collection may be waiting for the calling thread.
        if !state.collecting {
            for member in &state.members {
                set_collect(member, always);
            }
        }
    }
}

/// For a collector with its own threads, which are not mutators. The world stays stopped without the lock
/// being held, because no mutator enters, is added or removed while `collecting` is set.
#[cfg(feature = "heap-mmtk")]
impl World {
    /// Stops all mutators.
    pub(crate) fn stop_all(&self) {
        drop(self.stop_others(self.lock(), None));
    }

    /// Ends [`World::stop_all`], on any thread.
    pub(crate) fn resume_all(&self) {
        self.go_on(&mut self.lock());
    }

    /// Waits until the world has next been stopped and resumed. The mutator counts as running until this is
    /// called, so that cannot have happened before.
    pub(crate) fn wait_for_pause(&self, mutator: &Mutator) {
        let mut state = self.lock();
        let pauses = state.pauses;
        mutator.handshake.leave();
        self.stopped.notify_all();
        while state.pauses == pauses {
            state = self.resumed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.enter(mutator);
    }

    /// All mutators, for queries that are allowed on a running one.
    pub(crate) fn each_member(&self, visit: &mut dyn FnMut(&Mutator)) {
        // SAFETY: members are alive (M1). Only a cell is read, which running threads write only while no stop
        // is requested.
        self.lock().members.iter().for_each(|member| visit(unsafe { member.mutator() }));
    }

    /// All mutators.
    ///
    /// # Safety
    ///
    /// The world is stopped by [`World::stop_all`].
    pub(crate) unsafe fn each_stopped(&self, visit: &mut dyn FnMut(&Mutator)) {
        self.each_member(visit);
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
    /// All mutators: each is stopped, or is the collecting one.
    pub(crate) fn mutators(&self) -> impl Iterator<Item = &Mutator> {
        // SAFETY: every mutator on the list except the collecting one has left its handshake, and cannot
        // enter before it is released.
        self.state.members.iter().map(|member| unsafe { member.mutator() })
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.world.go_on(&mut self.state);
    }
}
