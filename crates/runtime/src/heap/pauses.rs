//! Lengths of pauses: a histogram from which any quantile can be estimated.
//!
//! ```text
//!   bucket   0      1 …    4      5 …    8        9 …           95
//!   ends at  1 µs   1.25   2 µs   2.5    4 µs     5 µs          14 s and everything above
//! ```
//!
//! Four buckets per doubling, so a quantile is at most a quarter too large. Cost: 384 bytes for each heap, an
//! increment for each pause.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const BUCKETS: usize = 96;
/// Buckets per doubling.
const STEPS: u32 = 4;

/// A histogram of the lengths of pauses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    counts: [u32; BUCKETS],
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { counts: [0; BUCKETS] }
    }
}

impl std::fmt::Debug for Pauses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pauses, half of them up to {:?}", self.count(), self.quantile(0.5))
    }
}

impl Pauses {
    /// Counts a pause.
    pub(crate) fn add(&mut self, pause: Duration) {
        let count = &mut self.counts[bucket(pause)];
        *count = count.saturating_add(1);
    }

    /// The number of pauses.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// A length not exceeded by this fraction of the pauses, from 0 to 1; zero if there were none.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            count > 0 && seen >= wanted
        });
        reached.map_or(Duration::ZERO, end)
    }
}

/// How much of a short time was spent in pauses, at worst.
#[derive(Debug, Default)]
pub(crate) struct Density {
    /// Pauses that ended within the last window.
    recent: VecDeque<(Instant, Instant)>,
    worst: Duration,
}

impl Density {
    /// The time that is looked at.
    const WINDOW: Duration = Duration::from_millis(10);

    /// Adds a pause; returns the most time of pauses in any window so far. The worst window ends with a pause or begins with one, and that one
    /// counts less only by what the next pause adds, so windows that end with pauses are looked at.
    pub(crate) fn add(&mut self, began: Instant, ended: Instant) -> Duration {
        self.recent.push_back((began, ended));
        let Some(start) = ended.checked_sub(Density::WINDOW) else { return self.worst };
        while self.recent.front().is_some_and(|&(_, end)| end <= start) {
            self.recent.pop_front();
        }
        let inside = self.recent.iter().map(|&(from, to)| to.saturating_duration_since(from.max(start)));
        self.worst = self.worst.max(inside.sum());
        self.worst
    }
}

/// The first bucket that ends after a length.
fn bucket(pause: Duration) -> usize {
    (0..BUCKETS - 1).find(|&index| pause <= end(index)).unwrap_or(BUCKETS - 1)
}

/// The end of a bucket.
fn end(index: usize) -> Duration {
    let (doublings, steps) = (index as u32 / STEPS, index as u32 % STEPS);
    let nanos = 1000 + 1000 / STEPS * steps;
    Duration::from_nanos(u64::from(nanos) << doublings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic, and much of it")]
    fn quantiles_are_at_most_a_quarter_too_large() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.quantile(0.99), Duration::ZERO);
        (1..=1000).for_each(|micros| pauses.add(Duration::from_micros(micros)));
        assert_eq!(pauses.count(), 1000);
        for part in [0.01, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let (exact, told) = (1e-3 * part, pauses.quantile(part).as_secs_f64());
            assert!(exact <= told + 1e-9 && told <= exact * 1.25 + 1e-9, "{part}: {told}");
        }
        pauses.add(Duration::from_secs(3600));
        assert!(pauses.quantile(1.0) > Duration::from_secs(10));
    }

    #[test]
    fn the_worst_ten_milliseconds_are_found() {
        let (start, mut density) = (Instant::now() + Duration::from_secs(1), Density::default());
        let at = |micros| start + Duration::from_micros(micros);
        assert_eq!(density.add(at(0), at(1000)), Duration::from_millis(1));
        assert_eq!(density.add(at(5000), at(6000)), Duration::from_millis(2));
        assert_eq!(density.add(at(10_500), at(11_000)), Duration::from_millis(2), "the first has left");
        assert_eq!(density.add(at(100_000), at(150_000)), Duration::from_millis(10), "all of it");
        assert_eq!(density.add(at(900_000), at(900_001)), Duration::from_millis(10));
    }
}
