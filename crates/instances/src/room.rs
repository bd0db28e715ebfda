//! Reserves code memory, evicting code if there is none.
//!
//! ```text
//!   code:              new ──► held ──► being evicted ──► retired ──► being freed ──► free
//!   counted as moving  ░░░              ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
//! ```
//!
//! Only held code can be evicted. When several threads are short of memory, each may find that the others are evicting all that there
//! was, or have made code that is held a moment later: nothing is left to evict, nothing is free yet, and yet memory becomes free
//! soon. So code that is not held is *moving*, and an evictor that finds nothing to evict checks whether anything moves.
//!
//! **No code is missed.** Code moves from left to right, and a thread that is short looks from left to right: it tries to reserve, then looks at
//! held code, then checks whether anything moves, then whether anything has arrived since before the attempt. Code is counted before it
//! leaves the place to its left, and until it has reached the place to its right. So code that has left each place before the thread looks there
//! is seen in a later one, and an error means that owners hold all code that the thread saw and do not release it.
//!
//! | code | counts as moving |
//! |---|---|
//! | new | from before its memory is reserved until it is held, except while its reservation waits |
//! | evicted | from before it leaves its holder until it is retired |
//! | retired | until it is freed |
//!
//! **Limits.** Moving code may take long: a thread may stay in retired code, or wait for a thread that is short itself. So the
//! caller of [`Room::reserve`] bounds the wait, and more code is evicted at times meanwhile.
//!
//! Cost: two additions under a lock for each code that is made and each that is retired.

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
    /// How often code has come to be held, or free.
    arrived: u64,
}

/// Code that moves. It has arrived when this is dropped.
#[must_use = "code has arrived when this is dropped"]
pub struct Moving {
    room: Room,
    counted: Cell<bool>,
}

/// The outcome of an attempt to reserve memory.
pub enum Attempt<T, E> {
    /// It was reserved.
    Made(T),
    /// There was not enough.
    Short(E),
    /// It failed for another reason.
    Failed(E),
}

/// The outcome of an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evicted {
    /// Code was evicted.
    Some,
    /// No code could be evicted, but some can be soon.
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
    /// Nothing moves.
    #[must_use]
    pub fn new() -> Room {
        Room::default()
    }

    /// Counts code as moving until the result is dropped.
    pub fn moving(&self) -> Moving {
        lock(&self.shared).moving += 1;
        Moving { room: self.clone(), counted: Cell::new(true) }
    }

    /// Code that is about to be made, counted from the reservation of its memory on ([`Room::reserve`]).
    pub fn unmade(&self) -> Moving {
        Moving { room: self.clone(), counted: Cell::new(false) }
    }

    /// Whether anything moves.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        lock(&self.shared).moving > 0
    }

    fn arrived(&self) -> u64 {
        lock(&self.shared).arrived
    }

    /// Reserves memory by `attempt`, and evicts code as long as there is not enough. `new` counts the code that is made
    /// ([`Room::unmade`]). `evict` evicts held code; it must not evict code endlessly. `wait` waits a while, or returns false when the
    /// caller has waited long enough. `freed` counts all freed code, whether it was counted as moving or not.
    ///
    /// # Errors
    /// That of the last attempt.
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

    /// Evicts held code by `evict`, and counts it as moving meanwhile.
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

    /// The actions of other threads while one evicts; how often it waited.
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
                // Somebody has made something, which can be evicted from now on.
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
        // Others keep what they hold.
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
