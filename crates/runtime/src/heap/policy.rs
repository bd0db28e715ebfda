//! When to collect, and which generation: pure functions of statistics.
//!
//! ```text
//!              last collection                            next collection
//!   heap  live ───────────────────────────────────────────► live + budget
//!                         allocated since = budget
//! ```
//!
//! **Budget.** After a collection that left `live` bytes (including external ones) the heap may grow to
//! `live` times [`growth`](HeapOptions::growth_percent), and at least to [`initial`](HeapOptions::initial),
//! before the next.
//!
//! **Kind.** A minor collection keeps every mark of the previous one: what survived once counts as live. So,
//! if generations are enabled, the next one is minor, except
//!
//! - the first, which would be full anyway;
//! - when live bytes have grown by the growth factor since the last full one, or fill most of the limit;
//! - in adaptive mode, when the last minor one did not *pay off*: it visited more objects per byte freed than
//!   the last full one. Examples: a FIFO list, whose dead old cells keep the young alive, and a large array
//!   of references that is written everywhere, because it is scanned as a whole. Then the next `penalty`
//!   collections are full, and the penalty doubles until a minor one pays off again. A minor one that has
//!   visited more than twice as many objects as the last full one is *abandoned* immediately for a full one,
//!   so an attempt at most triples the cost.

use super::options::{Generations, HeapOptions};

/// The longest sequence of full collections before a minor one is tried again.
const MAX_PENALTY: u32 = 32;
/// Smallest budget: a collection has a cost even when nothing is live.
const MIN_BUDGET: usize = 256 << 10;
/// The number of objects that a minor collection may visit in any case.
const MIN_VISITS: usize = 4096;

/// The kind of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collection {
    /// Frees only young objects.
    Minor,
    /// Frees everything that is unreachable.
    Full,
}

/// The outcome of a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) kind: Collection,
    /// Live bytes after it, including external ones.
    pub(crate) live: usize,
    /// Bytes that it freed.
    pub(crate) freed: usize,
    /// The number of visits to objects.
    pub(crate) visited: usize,
    /// Whether it is a full one that replaced an abandoned minor one.
    pub(crate) gave_up: bool,
}

/// The state between collections.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    budget: usize,
    live: usize,
    live_after_full: usize,
    /// Bytes freed and objects visited by the last full collection; `None` before the first.
    last_full: Option<(usize, usize)>,
    /// Objects visited by the last minor one.
    last_minor: usize,
    penalty: u32,
    full_ones_left: u32,
}

impl Policy {
    pub(crate) fn new(options: &HeapOptions) -> Policy {
        Policy {
            budget: options.initial.max(MIN_BUDGET),
            live: 0,
            live_after_full: 0,
            last_full: None,
            last_minor: 0,
            penalty: 1,
            full_ones_left: 0,
        }
    }

    /// Bytes that may be allocated before the next collection.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// The objects visited by the last collection of a kind.
    pub(crate) fn last_visited(&self, kind: Collection) -> usize {
        match kind {
            Collection::Full => self.last_full.map_or(0, |(_, visited)| visited),
            Collection::Minor => self.last_minor,
        }
    }

    /// The kind of the next collection.
    pub(crate) fn next_kind(&self, options: &HeapOptions) -> Collection {
        let grown = self.live > scaled(self.live_after_full.max(options.initial / 2), options.growth_percent);
        let near_limit = options.limit.is_some_and(|limit| self.live > limit / 4 * 3);
        match options.generations {
            Generations::Off => Collection::Full,
            _ if self.last_full.is_none() || grown || near_limit => Collection::Full,
            _ if self.full_ones_left > 0 => Collection::Full,
            Generations::On | Generations::Adaptive => Collection::Minor,
        }
    }

    /// The number of objects that a minor collection may visit before it is abandoned.
    pub(crate) fn most_visits(&self, options: &HeapOptions) -> usize {
        match (options.generations, self.last_full) {
            (Generations::Adaptive, Some((_, visited))) => visited.saturating_mul(2).max(MIN_VISITS),
            _ => usize::MAX,
        }
    }

    /// Updates the state after a collection.
    pub(crate) fn record(&mut self, options: &HeapOptions, outcome: Outcome) {
        self.live = outcome.live;
        let target = scaled(outcome.live, options.growth_percent).max(options.initial);
        self.budget = (target - outcome.live.min(target)).max(MIN_BUDGET);
        match outcome.kind {
            Collection::Full => {
                self.live_after_full = outcome.live;
                self.last_full = Some((outcome.freed, outcome.visited));
                self.full_ones_left = self.full_ones_left.saturating_sub(1);
                if outcome.gave_up {
                    self.punish();
                }
            }
            Collection::Minor => {
                self.last_minor = outcome.visited;
                let (freed, visited) = self.last_full.unwrap_or_default();
                let pays = outcome.visited as u128 * freed as u128 <= visited as u128 * outcome.freed as u128;
                if pays {
                    self.penalty = 1;
                } else if options.generations == Generations::Adaptive {
                    self.punish();
                }
            }
        }
    }

    /// Makes the next collections full.
    fn punish(&mut self) {
        self.full_ones_left = self.penalty;
        self.penalty = (self.penalty * 2).min(MAX_PENALTY);
    }
}

fn scaled(bytes: usize, growth_percent: u32) -> usize {
    let grown = bytes as u128 * (100 + u128::from(growth_percent)) / 100;
    usize::try_from(grown).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: Collection, live: usize, freed: usize, visited: usize) -> Outcome {
        Outcome { kind, live, freed, visited, gave_up: false }
    }

    #[test]
    fn the_heap_grows_with_what_lives() {
        let options = HeapOptions { initial: 1 << 20, growth_percent: 100, ..HeapOptions::default() };
        let mut policy = Policy::new(&options);
        assert_eq!(policy.budget(), 1 << 20);
        policy.record(&options, outcome(Collection::Full, 10 << 20, 0, 0));
        assert_eq!(policy.budget(), 10 << 20);
        policy.record(&options, outcome(Collection::Full, 1000, 0, 0));
        assert_eq!(policy.budget(), (1 << 20) - 1000);
        policy.record(&options, outcome(Collection::Full, usize::MAX / 2, 0, 0));
        assert_eq!(policy.budget(), usize::MAX / 2);
    }

    #[test]
    fn minor_collections_that_cost_more_than_full_ones_stop_for_a_while() {
        let options =
            HeapOptions { generations: Generations::Adaptive, initial: 1 << 20, ..HeapOptions::default() };
        let mut policy = Policy::new(&options);
        assert_eq!(policy.next_kind(&options), Collection::Full, "the first one");
        policy.record(&options, outcome(Collection::Full, 1000, 500, 1000));
        let mut full_in_a_row = Vec::new();
        for _ in 0..3 {
            assert_eq!(policy.next_kind(&options), Collection::Minor);
            policy.record(&options, outcome(Collection::Minor, 1000, 10, 50));
            let mut count = 0;
            while policy.next_kind(&options) == Collection::Full {
                policy.record(&options, outcome(Collection::Full, 1000, 500, 1000));
                count += 1;
            }
            full_in_a_row.push(count);
        }
        assert_eq!(full_in_a_row, [1, 2, 4]);
        policy.record(&options, outcome(Collection::Minor, 1000, 400, 800));
        assert_eq!(policy.next_kind(&options), Collection::Minor);
    }

    #[test]
    fn a_minor_collection_is_abandoned_when_it_visits_more_than_a_full_one() {
        let options =
            HeapOptions { generations: Generations::Adaptive, initial: 1 << 20, ..HeapOptions::default() };
        let mut policy = Policy::new(&options);
        assert_eq!(policy.most_visits(&options), usize::MAX);
        policy.record(&options, outcome(Collection::Full, 1000, 500, 10_000));
        assert_eq!(policy.most_visits(&options), 20_000);
        policy.record(&options, Outcome { gave_up: true, ..outcome(Collection::Full, 1000, 500, 9) });
        assert_eq!(policy.most_visits(&options), MIN_VISITS);
        assert_eq!(policy.next_kind(&options), Collection::Full);
        policy.record(&options, outcome(Collection::Full, 1000, 500, 9));
        assert_eq!(policy.next_kind(&options), Collection::Minor);
    }

    #[test]
    fn a_heap_that_has_doubled_is_collected_in_full() {
        let options =
            HeapOptions { generations: Generations::On, initial: 1 << 20, ..HeapOptions::default() };
        let mut policy = Policy::new(&options);
        policy.record(&options, outcome(Collection::Full, 2 << 20, 0, 0));
        policy.record(&options, outcome(Collection::Minor, 3 << 20, 1 << 20, 0));
        assert_eq!(policy.next_kind(&options), Collection::Minor);
        policy.record(&options, outcome(Collection::Minor, 5 << 20, 1 << 20, 0));
        assert_eq!(policy.next_kind(&options), Collection::Full);
    }
}
