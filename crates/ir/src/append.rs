//! A vector that only grows, and that many threads may read while one of them appends.
//!
//! All views of a context, and all threads that compile, share its declarations. Readers hold plain references into the
//! table for any length of time, so an element must never move. The elements therefore live in buckets of
//! doubling size, each allocated once:
//!
//! ```text
//! bucket 0:  8 elements    0 ..    7
//! bucket 1: 16 elements    8 ..   23
//! bucket b:  8 << b        8·(2^b − 1) ..
//! ```
//!
//! Reading costs one subtraction, one count of leading zeros and two acquire loads (inside [`OnceLock`]). The owner
//! serialises appending: [`AppendVec::push`] takes an index that the owner assigns under its own lock.
//! Nothing is ever removed; the tables live as long as any view of the `Context`.

use std::sync::OnceLock;

/// The first bucket's size, as a power of two.
const FIRST: u32 = 3;
/// Enough buckets for every index below `u32::MAX`.
const BUCKETS: usize = 33 - FIRST as usize;

/// An append-only vector with stable references.
#[derive(Debug)]
pub(crate) struct AppendVec<T> {
    buckets: [OnceLock<Box<[OnceLock<T>]>>; BUCKETS],
}

impl<T> Default for AppendVec<T> {
    fn default() -> Self {
        Self { buckets: [const { OnceLock::new() }; BUCKETS] }
    }
}

impl<T> AppendVec<T> {
    /// The element at `index`, if one was pushed there.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (bucket, offset) = locate(index);
        self.buckets.get(bucket)?.get()?.get(offset)?.get()
    }

    /// The elements in order.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.buckets
            .into_iter()
            .flat_map(|bucket| bucket.into_inner().unwrap_or_default())
            .map_while(OnceLock::into_inner)
    }

    /// Stores `value` at `index`. The caller uses every index once; a second store there is ignored.
    pub(crate) fn push(&self, index: u32, value: T) {
        let (bucket, offset) = locate(index);
        let Some(cell) = self.buckets.get(bucket) else { return };
        let slots = cell.get_or_init(|| (0..1usize << FIRST << bucket).map(|_| OnceLock::new()).collect());
        // An index is handed out once, so the slot is empty; if it were not, the first value would stay.
        let _ = slots[offset].set(value);
    }
}

/// The bucket of an index and the offset within it.
fn locate(index: u32) -> (usize, usize) {
    let bucket = ((index >> FIRST) + 1).ilog2();
    let start = ((1u64 << bucket) - 1) << FIRST;
    (bucket as usize, (u64::from(index) - start) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_indices() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(locate(index), expected);
            expected.1 += 1;
            if expected.1 == 8 << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(locate(u32::MAX).0 < BUCKETS);
    }

    #[test]
    fn references_survive_growth() {
        let v = AppendVec::default();
        v.push(0, String::from("first"));
        let first = v.get(0).unwrap();
        for i in 1..10_000 {
            v.push(i, i.to_string());
        }
        assert_eq!(first, "first");
        assert_eq!(v.get(9_999).unwrap(), "9999");
        assert!(v.get(10_000).is_none());
    }
}
