//! A small pseudo-random number generator (splitmix64).
//!
//! ```text
//! state ── + odd constant ──► state          one addition per number
//!   └─ two rounds of xor-shift and multiply ──► output
//! ```
//!
//! Every consumer gets it as a parameter, so the seed determines the whole run. Not suitable for secrets.

/// A stream of numbers determined by its seed.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of a seed. Streams of different seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        // The first outputs of adjacent seeds would be similar if the state were the seed itself.
        let mut rng = Rng { state: seed };
        let state = rng.next_u64();
        Rng { state: state ^ seed.rotate_left(32) }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 128 random bits.
    pub fn next_u128(&mut self) -> u128 {
        u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a product is a fair choice for every bound that fits a test.
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True with a probability of `percent` %.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `items`; `None` if it is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_its_stream_and_neighbours_differ() {
        let stream = |seed: u64| {
            let mut rng = Rng::new(seed);
            std::array::from_fn::<u64, 4, _>(|_| rng.next_u64())
        };
        assert_eq!(stream(7), stream(7));
        assert_ne!(stream(7)[0], stream(8)[0]);
        assert_ne!(stream(7)[1], stream(8)[0]);
    }

    #[test]
    fn choices_stay_in_range_and_reach_both_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<usize> = (0..1000).map(|_| rng.between(3, 6)).collect();
        assert!(drawn.iter().all(|n| (3..=6).contains(n)));
        assert!((3..=6).all(|n| drawn.contains(&n)));
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.pick::<u8>(&[]), None);
    }
}
