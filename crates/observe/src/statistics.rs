//! Medians with confidence intervals, and whether two measurements differ.
//!
//! Times have long tails and several modes, so nothing here assumes a distribution: intervals are percentiles
//! of the bootstrap. The samples are redrawn with replacement [`RESAMPLES`] times; the median of each draw is
//! one value of the sampling distribution, and the interval contains the middle 95 % of them.
//!
//! Two measurements are compared by the ratio of their medians, for which each draw resamples both. They
//! differ if the interval of the ratio is outside the noise ([`NOISE`]), which is what different layouts of
//! the same code cause.
//!
//! Draws come from a generator with a fixed seed: the same samples have the same result.
//!
//! Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13.

/// How often samples are redrawn.
pub const RESAMPLES: usize = 4000;

/// The maximum difference from one at which a ratio is considered noise.
pub const NOISE: f64 = 0.01;

/// The fraction of the draws inside an interval.
const CONFIDENCE: f64 = 0.95;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The second is faster.
    Faster,
    /// The second is slower.
    Slower,
    /// The samples do not distinguish them.
    Same,
}

impl Verdict {
    /// The verdict as a word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "no difference",
        }
    }
}

/// The median of samples; `None` if there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The value below which the fraction `part` of the samples is, linearly interpolated; `None` if there are
/// none.
pub fn quantile(samples: &[f64], part: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    of_sorted(&sorted, part)
}

fn of_sorted(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (below, rest) = (place as usize, place.fract());
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * rest)
}

/// The median with its interval; `None` if there are no samples.
pub fn estimate(samples: &[f64]) -> Option<Estimate> {
    let value = median(samples)?;
    let mut draws = Draws::new();
    let medians: Option<Vec<f64>> = (0..RESAMPLES).map(|_| draws.median(samples)).collect();
    Some(interval(value, medians?))
}

/// The ratio of the median of the second samples to the median of the first; `None` if either is empty.
pub fn ratio(first: &[f64], second: &[f64]) -> Option<Estimate> {
    let value = median(second)? / median(first)?;
    let mut draws = Draws::new();
    let ratios: Option<Vec<f64>> =
        (0..RESAMPLES).map(|_| Some(draws.median(second)? / draws.median(first)?)).collect();
    Some(interval(value, ratios?))
}

/// The verdict on a ratio.
pub fn verdict(ratio: Estimate) -> Verdict {
    if ratio.high < 1.0 - NOISE {
        Verdict::Faster
    } else if ratio.low > 1.0 + NOISE {
        Verdict::Slower
    } else {
        Verdict::Same
    }
}

fn interval(value: f64, mut draws: Vec<f64>) -> Estimate {
    draws.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |part| of_sorted(&draws, part).unwrap_or(value);
    Estimate { value, low: at(tail), high: at(1.0 - tail) }
}

/// Draws with replacement, with xorshift.
struct Draws {
    state: u64,
    drawn: Vec<f64>,
}

impl Draws {
    fn new() -> Draws {
        Draws { state: 0x9e37_79b9_7f4a_7c15, drawn: Vec::new() }
    }

    fn next(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // The high half of the product: all indices are equally likely, up to 2^-64.
        ((u128::from(self.state) * below as u128) >> 64) as usize
    }

    fn median(&mut self, samples: &[f64]) -> Option<f64> {
        let mut drawn = std::mem::take(&mut self.drawn);
        drawn.clear();
        drawn.extend((0..samples.len()).map(|_| samples[self.next(samples.len())]));
        let middle = drawn.len() / 2;
        let (below, upper, _) = match drawn.is_empty() {
            true => return None,
            false => drawn.select_nth_unstable_by(middle, f64::total_cmp),
        };
        let upper = *upper;
        let even = samples.len().is_multiple_of(2);
        let lower = if even { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { upper };
        self.drawn = drawn;
        Some((lower + upper) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times around a median, with a long upper tail, from a generator with this seed.
    fn times(middle: f64, spread: f64, number: usize, seed: u64) -> Vec<f64> {
        let mut state = seed | 1;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..number)
            .map(|_| {
                middle * (1.0 + spread * (uniform() + uniform() + uniform() - 1.5) + 0.1 * uniform().powi(20))
            })
            .collect()
    }

    #[test]
    fn quantiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Some(2.0));
        assert_eq!(estimate(&[]), None);
        assert_eq!(ratio(&[1.0], &[]), None);
    }

    #[test]
    fn one_sample_has_no_spread() {
        assert_eq!(estimate(&[2.0]), Some(Estimate { value: 2.0, low: 2.0, high: 2.0 }));
    }

    #[test]
    fn the_draws_have_the_medians_that_sorting_gives() {
        for number in 1..9 {
            let samples: Vec<f64> = (0..number).map(|n| f64::from(n * 7 % 5)).collect();
            let mut draws = Draws::new();
            for _ in 0..50 {
                let got = draws.median(&samples);
                assert_eq!(got, median(&draws.drawn), "{:?}", draws.drawn);
            }
        }
    }

    /// About 95 % of the 95 % intervals contain the true median.
    #[test]
    fn intervals_hold_the_median_as_often_as_they_say() {
        let truth = median(&times(1.0, 0.2, 20_001, 77)).unwrap();
        let held = (1..=100).filter(|&seed| {
            let got = estimate(&times(1.0, 0.2, 40, seed * 7919)).unwrap();
            got.low <= truth && truth <= got.high
        });
        let held = held.count();
        assert!((88..=100).contains(&held), "{held} of 100");
    }

    #[test]
    fn three_percent_are_told_from_noise() {
        for seed in 1..20 {
            let first = times(100.0, 0.01, 60, seed);
            let again = times(100.0, 0.01, 60, seed + 1000);
            let slower = times(103.0, 0.01, 60, seed + 2000);
            assert_eq!(verdict(ratio(&first, &again).unwrap()), Verdict::Same);
            assert_eq!(verdict(ratio(&first, &slower).unwrap()), Verdict::Slower);
            assert_eq!(verdict(ratio(&slower, &first).unwrap()), Verdict::Faster);
        }
    }
}
