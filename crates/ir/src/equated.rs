//! Values that a comparison has assumed equal so far: disjoint sets, by union.
//!
//! A comparison of two graphs that skips the pairs it has seen may still visit as many pairs as the product
//! of their sizes. One that unites the members of each pair, and skips pairs within a set, visits fewer pairs
//! than there are nodes: each pair that it does not skip joins two sets. That is sound for `===`, because the
//! comparison fails as a whole if any pair differs.
//!
//! Cost: a look-up in a hash table for each step to the representative; paths are halved on the way.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Sets of values that are assumed equal.
#[derive(Debug)]
pub struct Equated<K> {
    /// A value closer to the representative of its set; the representative has no entry.
    closer: FxHashMap<K, K>,
}

impl<K> Default for Equated<K> {
    fn default() -> Equated<K> {
        Equated { closer: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Equated<K> {
    /// Assumes two values equal; returns `false` if they already were.
    pub fn equate(&mut self, a: K, b: K) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        if a == b {
            return false;
        }
        self.closer.insert(a, b);
        true
    }

    fn representative(&mut self, mut of: K) -> K {
        while let Some(&next) = self.closer.get(&of) {
            let Some(&after) = self.closer.get(&next) else { return next };
            self.closer.insert(of, after);
            of = after;
        }
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_within_a_set_are_skipped() {
        let mut equated = Equated::default();
        assert!(equated.equate(1, 2) && equated.equate(3, 4) && equated.equate(2, 3));
        assert!(!equated.equate(1, 4) && !equated.equate(4, 2));
        assert!(equated.equate(5, 1));
        assert!(!equated.equate(7, 7));
    }

    #[test]
    fn two_sides_of_many_take_no_more_pairs_than_there_are_values() {
        let mut equated = Equated::default();
        let joined =
            (0..300).flat_map(|a| (1000..1300).map(move |b| (a, b))).filter(|&(a, b)| equated.equate(a, b));
        assert_eq!(joined.count(), 599);
    }
}
