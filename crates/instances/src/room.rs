//! Room for code: who finds none makes some, and hopes for what others are about to give back.
//!
//! ```text
//!   what takes room:   new ──► held ──► being evicted ──► retired ──► being freed ──► free
//!   counted as moving  ░░░              ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
//! ```
//!
//! Only what is held can be evicted. When several threads are short of room, each may find that others are evicting all that there
//! was, or have just made what will be held in a moment: nothing is left to evict, nothing is free yet, and yet there will be room. So
//! code that is not held is *moving*; an evictor that finds nothing to evict checks whether anything moves.
//!
//! **Nothing is missed.** Code goes from left to right, and a thread that is short looks from left to right: it tries, then it looks at the code that is
//! held, then whether anything moves, then whether anything has arrived since before the attempt. Code is counted before it
//! leaves the place to its left, and until it has come to the place to its right. Code that had left each place at that look is seen
//! at a later one. So an error means that all code it saw is held by owners that do not release it.
//!
//! | who | counts as moving |
//! |---|---|
//! | makes something | from before it takes room until it is held, but not while it has found none |
//! | gives something up | from before it is taken from its holder until it is retired |
//! | what is retired | until it has been freed |
//!
//! **Limits.** Moving code may be held up: by a thread that stays in retired code, by a thread that waits for one that is
//! short. So the caller of [`Room::make`] bounds the wait; meanwhile more is evicted now and then.
//!
//! Two counts under a lock, held for an addition. Cost: two locks for each thing that is made and each that is retired.

use std::cell::Cell;
use std::sync::Arc;

use crate::sync::{Mutex, lock};

/// Counts what moves. Clones share it.
#[derive(Clone, Default)]
pub struct Room {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    moving: usize,
    /// How often something has come to be held, or free.
    arrived: u64,
}

/// Something that moves. Dropping it, it has arrived.
#[must_use = "what moves has arrived when it is dropped"]
pub struct Moving {
    room: Room,
    counted: Cell<bool>,
}

/// An attempt to take room.
pub enum Attempt<T, E> {
    /// There was enough.
    Made(T),
    /// There was not.
    Short(E),
    /// It failed for another reason.
    Failed(E),
}

/// The outcome of an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evicted {
    /// Some were evicted.
    Some,
    /// None could be, but there are some that can be soon.
    Soon,
    /// None could be.
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

    /// Counts something, from now on until it is dropped.
    pub fn moving(&self) -> Moving {
        lock(&self.shared).moving += 1;
        Moving { room: self.clone(), counted: Cell::new(true) }
    }

    /// Something that is about to be made, to be counted from when it takes room ([`Room::make`]).
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

    /// Takes room by `attempt`, and makes some as long as there is none. `new` counts what is made ([`Room::unmade`]). `evict` evicts what is held; when it
    /// evicts something each time, it is to end. `wait` lets time go by, or says that it has been enough. `freed` is the number of
    /// things that have been freed: of those that were counted as moving, and of others.
    ///
    /// # Errors
    /// That of the last attempt.
    pub fn make<T, E>(
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
                evicted = self.give_up(&mut evict);
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

    /// Gives up what is held.
    pub fn give_up(&self, evict: impl FnOnce() -> Evicted) -> Evicted {
        let moving = self.moving();
        let evicted = evict();
        if evicted != Evicted::Some {
            moving.pause();
        }
        evicted
    }
}

impl Moving {
    /// It has taken no room, so no thread waits for it.
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
        let made =
            room.make(&room.unmade(), attempt, || others(&room, &is_free), wait, || u64::from(is_free.get()));
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
        let made = room.make(&room.unmade(), attempt, || Evicted::Nothing, wait, || 0);
        assert_eq!((made, waits.get(), room.is_moving()), (Err(()), 10, true));
        drop(held_up);
        assert!(!room.is_moving());
    }
}
