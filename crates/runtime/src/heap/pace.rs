//! When the slices of a collection are due: pure functions of what has been allocated.
//!
//! ```text
//!   allocated   0 ───────────── start ──── slice ──── slice ──── slice ──── goal ──── budget
//!                                 │          ▲                              ▲
//!                                 │          └ work done / work expected    └ everything is marked
//!                                 └ half of the budget, for a minor collection three quarters
//! ```
//!
//! A slice takes all of the time that a pause allows. The next one is due after the share of the span that equals its share of the expected work, so slices are
//! spread evenly, and a program that allocates slowly has few. If there is more work than expected, slices come closer together.

use super::options::HeapOptions;
use super::policy::Collection;

/// The least that is allocated between slices, in bytes.
const GAP: usize = 64 << 10;
/// The least that is allocated during a collection, in bytes.
const MIN_SPAN: usize = 512 << 10;
/// After this many spans the rest of a collection is done at once.
const MOST_SPANS: usize = 4;

/// Bytes allocated at which a collection begins.
pub(super) fn start(kind: Collection, budget: usize) -> usize {
    match kind {
        Collection::Full => budget / 2,
        Collection::Minor => budget / 4 * 3,
    }
}

/// The schedule of one collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start: usize,
    span: usize,
    expected: usize,
    next: usize,
}

impl Pace {
    /// A collection that begins now, after `allocated` bytes. `room` bytes are left below the limit.
    pub(super) fn new(allocated: usize, budget: usize, room: usize, expected: usize) -> Pace {
        let span = budget.saturating_sub(allocated).max(budget / 8).max(MIN_SPAN).min(room / 4 * 3);
        Pace { start: allocated, span: span.max(1), expected: expected.max(1), next: allocated }
    }

    /// Whether the next slice is due.
    pub(super) fn is_due(&self, allocated: usize) -> bool {
        allocated >= self.next
    }

    /// Whether short slices will not keep up with what was allocated since the start: memory then counts more than pauses.
    pub(super) fn is_lost(&self, allocated: usize) -> bool {
        allocated >= self.start.saturating_add(self.span.saturating_mul(MOST_SPANS))
    }

    /// Notes the work done since the start.
    pub(super) fn note(&mut self, allocated: usize, work: usize) {
        let part = self.span as u128 * work as u128 / self.expected as u128;
        let after = if work < self.expected {
            self.start.saturating_add(usize::try_from(part).unwrap_or(usize::MAX))
        } else {
            allocated.saturating_add(self.span / 32)
        };
        // Late: the goal has passed, or will soon have.
        let goal = self.start.saturating_add(self.span);
        self.next = after.min(goal).max(allocated.saturating_add(GAP.min(self.span / 32)));
    }
}

/// The work to expect of a collection: `live` objects after the last one, `visited` by the last of its kind.
pub(super) fn expected(
    kind: Collection,
    live: usize,
    visited: usize,
    options: &HeapOptions,
    allocated: usize,
) -> usize {
    // An object of 64 bytes in eight survives.
    let young = allocated / 512;
    match kind {
        Collection::Full => live.max(visited).max(options.initial / 4096) + young,
        Collection::Minor => visited + young,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_spread_over_what_is_allocated() {
        let mb = |count: usize| count << 20;
        let mut pace = Pace::new(mb(8), mb(16), usize::MAX, 1000);
        assert!(pace.is_due(mb(8)), "the first at once");
        pace.note(mb(8), 250);
        assert!(!pace.is_due(mb(10) - 1) && pace.is_due(mb(10)));
        pace.note(mb(10), 1500);
        assert!(!pace.is_due(mb(10)) && pace.is_due(mb(10) + mb(8) / 32), "more work than expected");
        pace.note(mb(30), 900);
        assert!(!pace.is_due(mb(30)) && pace.is_due(mb(30) + GAP), "late");
        assert!(!pace.is_lost(mb(40) - 1) && pace.is_lost(mb(40)));
    }

    #[test]
    fn little_room_means_a_short_collection() {
        let mut pace = Pace::new(0, 1 << 30, 4096, 10);
        pace.note(0, 5);
        assert!(pace.is_due(1536));
        let mut pace = Pace::new(usize::MAX, usize::MAX, 0, 0);
        pace.note(usize::MAX, usize::MAX);
        assert!(pace.is_due(usize::MAX));
    }
}
