//! Integers near the limits of indices, lengths and products with a stride.

use crate::rng::Rng;

/// Element sizes whose multiples wrap around.
const STRIDES: [u64; 12] = [1, 2, 3, 4, 8, 9, 12, 16, 24, 32, 40, 56];

const EDGES: [i64; 20] = [
    0,
    -1,
    1,
    2,
    3,
    4,
    5,
    6,
    i64::MIN,
    i64::MAX,
    i64::MIN + 1,
    i64::MAX - 1,
    1 << 62,
    1 << 61,
    -(1 << 62),
    -(1 << 61),
    1 << 60,
    1 << 32,
    (1 << 32) - 1,
    -2,
];

/// An index, or a length that exceeds any memory. `stride`: the element size that it targets, if there is
/// one.
pub(super) fn extreme(rng: &mut Rng, stride: Option<u64>) -> i64 {
    if rng.chance(55) {
        return EDGES[rng.below(EDGES.len())];
    }
    // The product with the stride is near 0 or near 2^63 again.
    let any = STRIDES[rng.below(STRIDES.len())];
    let stride = u128::from(stride.filter(|&stride| stride > 1 && rng.chance(70)).unwrap_or(any));
    let (power, near) = (if rng.chance(70) { 64 } else { 63 }, rng.below(5) as i64 - 2);
    let wraps = (1u128 << power) / stride * (1 + rng.below(3) as u128);
    (wraps as u64).cast_signed().wrapping_add(near)
}

/// A small number of elements, or a small index.
pub(super) fn small(rng: &mut Rng) -> i64 {
    const SMALL: [i64; 10] = [0, 1, 1, 2, 2, 3, 3, 5, 8, 40];
    SMALL[rng.below(SMALL.len())]
}
