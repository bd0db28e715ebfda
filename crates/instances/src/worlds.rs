//! Worlds, and ranges of them.
//!
//! ```text
//!   world    1    2    3    4    5    6 …
//!   f#1      ├─────────────┤                  added in 1, removed in 4
//!   f#2                ├────────────────►     added in 3, still there
//!   both               ├───┤                  what a code instance that uses both is valid for
//! ```
//!
//! A world is the number of a state of all method tables. A range has a first and a last world; an open one goes on for as long
//! as nobody closes it. Ranges only ever get shorter, so whoever has read one and finds that it is over has not missed anything.
//!
//! Worlds count from 1; 0 is before all of them.

use std::fmt;

/// The last world of what is still valid.
pub const FOREVER: u64 = u64::MAX;

/// Consecutive worlds. All empty ranges are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorldRange {
    first: u64,
    last: u64,
}

impl WorldRange {
    /// No world.
    pub const EMPTY: WorldRange = WorldRange { first: 1, last: 0 };
    /// Every world.
    pub const ALL: WorldRange = WorldRange { first: 0, last: FOREVER };

    /// From one world to another, both included.
    #[must_use]
    pub fn new(first: u64, last: u64) -> WorldRange {
        if first <= last { WorldRange { first, last } } else { WorldRange::EMPTY }
    }

    /// From a world on.
    #[must_use]
    pub fn from(first: u64) -> WorldRange {
        WorldRange { first, last: FOREVER }
    }

    /// The first world, if there is one.
    #[must_use]
    pub fn first(self) -> Option<u64> {
        (!self.is_empty()).then_some(self.first)
    }

    /// The last world, if there is one; [`FOREVER`] of an open range.
    #[must_use]
    pub fn last(self) -> Option<u64> {
        (!self.is_empty()).then_some(self.last)
    }

    /// Whether there is no world in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Whether it goes on.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.last == FOREVER
    }

    /// Whether a world is in it.
    #[must_use]
    pub fn contains(self, world: u64) -> bool {
        self.first <= world && world <= self.last
    }

    /// The worlds that are in both.
    #[must_use]
    pub fn intersect(self, other: WorldRange) -> WorldRange {
        WorldRange::new(self.first.max(other.first), self.last.min(other.last))
    }

    /// The worlds up to one that is its last at most.
    #[must_use]
    pub fn up_to(self, last: u64) -> WorldRange {
        self.intersect(WorldRange { first: 0, last })
    }
}

impl fmt::Display for WorldRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_empty(), self.is_open()) {
            (true, _) => f.write_str("no world"),
            (_, true) => write!(f, "worlds from {}", self.first),
            _ => write!(f, "worlds {} to {}", self.first, self.last),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_sets_that_they_stand_for() {
        const LAST: u64 = 7;
        let ranges = || {
            let pairs = (0..=LAST).flat_map(|first| (0..=LAST).map(move |last| (first, last)));
            pairs.map(|(first, last)| WorldRange::new(first, last)).chain((0..=LAST).map(WorldRange::from))
        };
        for a in ranges() {
            assert_eq!(a.is_empty(), (0..=LAST).all(|world| !a.contains(world)), "{a}");
            assert_eq!(a.first(), (0..=LAST).find(|&world| a.contains(world)));
            assert_eq!(a.intersect(WorldRange::ALL), a);
            for b in ranges() {
                for world in 0..=LAST {
                    assert_eq!(a.intersect(b).contains(world), a.contains(world) && b.contains(world));
                    assert_eq!(a.up_to(3).contains(world), a.contains(world) && world <= 3);
                }
            }
        }
        assert!(WorldRange::from(3).is_open() && !WorldRange::from(3).up_to(9).is_open());
        let shown = [WorldRange::EMPTY, WorldRange::from(3), WorldRange::new(3, 9)].map(|r| r.to_string());
        assert_eq!(shown, ["no world", "worlds from 3", "worlds 3 to 9"]);
    }
}
