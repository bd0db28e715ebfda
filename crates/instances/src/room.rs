//! Reserves code memory, evicting code if none is free.
//!
//! ```text
//!   code:              new ──► held ──► being evicted ──► retired ──► being freed ──► free
//!   counted as moving  ░░░              ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
//! ```
//!
//! Only held code can be evicted. When several threads are short of memory, each may find that the others are
//! evicting all the code there was, or have made code that will be held a moment later: there is nothing left
//! to evict and nothing is free yet, although memory becomes free soon. So code that is not held counts as
//! *moving*, and an evictor that finds nothing to evict checks whether anything is moving.
//!
//! **No code is missed.** Code moves from left to right, and a thread that is short of memory also looks from
//! left to right: it tries to reserve, then looks for held code, then checks whether anything is moving, then
//! whether anything has arrived since before the attempt. Code is counted before it leaves a state and until
//! it has reached the next one. So code that has left each state before the thread looks there is seen in a
//! later one, and an error means that owners hold all code that the thread saw and do not release it.
//!
//! | code | counts as moving |
//! |---|---|
//! | new | from before its memory is reserved until it is held, except while its reservation waits |
//! | evicted | from before its holder releases it until it is retired |
//! | retired | until it is freed |
//!
//! **Limits.** Code may be moving for long: a thread may stay in retired code, or wait for a thread that is
//! short itself. So the caller of [`Room::reserve`] bounds the wait, and more code is evicted from time to
//! time meanwhile.
//!
//! Cost: two additions under a lock for each piece of code that is made and each that is retired.

use std::cell::Cell;
use std::sync::Arc;

use crate::sync::{Mutex, lock};

/// Counts moving code. Clones share the count.
#[derive(Clone, Default)]
pub struct Room {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    moving: usize,
    /// How often code became held or free.
    arrived: u64,
}

/// Moving code. It has arrived when this is dropped.
#[must_use = "code has arrived when this is dropped"]
pub struct Moving {
    room: Room,
    counted: Cell<bool>,
}

/// The outcome of an attempt to reserve memory.
pub enum Attempt<T, E> {
    /// The memory was reserved.
    Made(T),
    /// There was not enough memory.
    Short(E),
    /// It failed for another reason.
    Failed(E),
}

/// The outcome of an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evicted {
    /// Code was evicted.
    Some,
    /// No code could be evicted, but some soon can be.
    Soon,
    /// No code could be evicted.
    Nothing,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.shared);
        write!(f, "{} things move, {} have arrived", state.moving, state.arrived)
    }
}

impl Room {
    /// Nothing is moving.
    #[must_use]
    pub fn new() -> Room {
        Room::default()
    }

    /// Counts code as moving until the result is dropped.
    pub fn moving(&self) -> Moving {
        lock(&self.shared).moving += 1;
        Moving { room: self.clone(), counted: Cell::new(true) }
    }

    /// Code about to be made, counted from the reservation of its memory on ([`Room::reserve`]).
    pub fn unmade(&self) -> Moving {
        Moving { room: self.clone(), counted: Cell::new(false) }
    }

    /// Whether anything is moving.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        lock(&self.shared).moving > 0
    }

    fn arrived(&self) -> u64 {
        lock(&self.shared).arrived
    }

    /// Reserves memory with `attempt`, and evicts code for as long as there is not enough. `new` counts the
    /// code to be made ([`Room::unmade`]). `evict` evicts held code; it must not evict code endlessly. `wait`
    /// waits a while, or returns false when the caller has waited long enough. `freed` is the number of times
    /// that code was freed, whether it was counted as moving or not.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub fn reserve<T, E>(
        &self,
        new: &Moving,
        mut attempt: impl FnMut() -> Attempt<T, E>,
        mut evict: impl FnMut() -> Evicted,
        mut wait: impl FnMut() -> bool,
        freed: impl Fn() -> u64,
    ) -> Result<T, E> {
        // Evicted code should have time to become free before more is evicted.
        let (mut waits, mut turn) = (0_u32, 0);
        loop {
            let before = (self.arrived(), freed());
            new.resume();
            let error = match attempt() {
                Attempt::Made(made) => return Ok(made),
                Attempt::Failed(error) => return Err(error),
                Attempt::Short(error) => error,
            };
            new.pause();
            let mut evicted = Evicted::Nothing;
            if waits >= turn || !self.is_moving() {
                turn = waits.saturating_mul(2).max(1);
                evicted = self.evict(&mut evict);
            }
            if evicted == Evicted::Some {
                continue;
            }
            if self.is_moving() || evicted == Evicted::Soon {
                if wait() {
                    waits = waits.saturating_add(1);
                    continue;
                }
            } else if (self.arrived(), freed()) != before {
                continue;
            }
            return Err(error);
        }
    }

    /// Evicts held code with `evict`, counting it as moving meanwhile.
    pub fn evict(&self, evict: impl FnOnce() -> Evicted) -> Evicted {
        let moving = self.moving();
        let evicted = evict();
        if evicted != Evicted::Some {
            moving.pause();
        }
        evicted
    }
}

impl Moving {
    /// Stops counting code that has no memory, so that no thread waits for it.
    fn pause(&self) {
        if self.counted.replace(false) {
            lock(&self.room.shared).moving -= 1;
        }
    }

    fn resume(&self) {
        if !self.counted.replace(true) {
            lock(&self.room.shared).moving += 1;
        }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        if self.counted.get() {
            let mut state = lock(&self.room.shared);
            state.moving -= 1;
            state.arrived += 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Evicts while other threads act; also returns how often it waited.
    fn short(others: &mut dyn FnMut(&Room, &Cell<bool>) -> Evicted) -> (Result<(), ()>, u32) {
        let (room, is_free, waits) = (Room::new(), Cell::new(false), Cell::new(0));
        let attempt = || if is_free.get() { Attempt::Made(()) } else { Attempt::Short(()) };
        let wait = || {
            waits.set(waits.get() + 1);
            waits.get() < 10
        };
        let made = room.reserve(
            &room.unmade(),
            attempt,
            || others(&room, &is_free),
            wait,
            || u64::from(is_free.get()),
        );
        assert!(!room.is_moving());
        (made, waits.get())
    }

    #[test]
    fn room_freed_between_attempt_and_look_is_seen() {
        let mut others = |_: &Room, is_free: &Cell<bool>| {
            is_free.set(true);
            Evicted::Nothing
        };
        assert_eq!(short(&mut others), (Ok(()), 0));
    }

    #[test]
    fn room_that_others_are_freeing_is_waited_for() {
        let mut under_way = None;
        let mut looks = 0;
        let mut others = |room: &Room, is_free: &Cell<bool>| {
            looks += 1;
            match looks {
                1 => under_way = Some(room.moving()),
                3 => {
                    is_free.set(true);
                    under_way = None;
                }
                _ => {}
            }
            Evicted::Nothing
        };
        assert_eq!(short(&mut others), (Ok(()), 2));
    }

    #[test]
    fn evictable_code_added_since_the_look_is_looked_at() {
        let mut looks = 0;
        let mut others = |room: &Room, is_free: &Cell<bool>| {
            looks += 1;
            if looks == 1 {
                // Another thread has made code, which can be evicted from now on.
                drop(room.moving());
                return Evicted::Nothing;
            }
            is_free.set(true);
            Evicted::Some
        };
        assert_eq!(short(&mut others), (Ok(()), 0));
    }

    #[test]
    fn where_nothing_moves_there_is_an_error_at_once_and_hope_has_an_end() {
        assert_eq!(short(&mut |_, _| Evicted::Nothing), (Err(()), 0));
        assert_eq!(short(&mut |_, _| Evicted::Soon), (Err(()), 10));
        // The others keep their code.
        let (room, waits) = (Room::new(), Cell::new(0));
        let held_up = room.moving();
        let wait = || {
            waits.set(waits.get() + 1);
            waits.get() < 10
        };
        let attempt = || Attempt::<(), ()>::Short(());
        let made = room.reserve(&room.unmade(), attempt, || Evicted::Nothing, wait, || 0);
        assert_eq!((made, waits.get(), room.is_moving()), (Err(()), 10, true));
        drop(held_up);
        assert!(!room.is_moving());
    }
}
