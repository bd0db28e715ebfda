//! The states of C functions between two of their calls of the program: pure state machines that return the
//! next call and take its result.
//!
//! `Sort` merges runs of positions; `Search` halves a range. Cost: the comparisons of a merge sort and of a binary search.

use super::value::Val;
use brolga_ir::entity::FuncId;
use brolga_ir::types::Type;

/// A C call waiting for a function of the program.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) function: FuncId,
    pub(super) job: Job,
    /// The type of the `foreigncall`'s result.
    pub(super) result: Type,
    /// The exception that left the function.
    pub(super) exception: Option<Val>,
}

#[derive(Clone, Debug)]
pub(super) enum Job {
    /// The function itself was called through its address: its arguments, then its result.
    Entry {
        args: Vec<u128>,
        answer: Option<u128>,
    },
    Sort(Sort),
    Search(Search),
}

/// The next step of a job.
pub(super) enum Next {
    /// A call with these arguments.
    Call(Vec<u128>),
    /// The end, with the result if the C function has one.
    Done(Option<u128>),
}

/// A merge sort between two comparisons: runs of `width` in `from` become runs of twice that in `to`.
#[derive(Clone, Debug)]
pub(super) struct Sort {
    pub(super) base: u64,
    pub(super) size: u64,
    /// The final order of the positions.
    pub(super) from: Vec<u32>,
    to: Vec<u32>,
    width: usize,
    /// The first position of the two runs being merged; the number taken from each.
    start: usize,
    left: usize,
    right: usize,
}

/// A binary search in the elements from `low` to before `high`.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) key: u64,
    pub(super) base: u64,
    pub(super) size: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) found: bool,
}

impl Sort {
    pub(super) fn new(base: u64, count: usize, size: u64) -> Sort {
        let from: Vec<u32> = (0..count as u32).collect();
        Sort { base, size, to: Vec::with_capacity(count), from, width: 1, start: 0, left: 0, right: 0 }
    }

    /// The ends of the two runs.
    fn ends(&self) -> (usize, usize) {
        let middle = self.start.saturating_add(self.width).min(self.from.len());
        (middle, middle.saturating_add(self.width).min(self.from.len()))
    }

    /// The next two positions to compare; `None` when sorted.
    pub(super) fn next(&mut self) -> Option<(u32, u32)> {
        while self.width < self.from.len() {
            let (middle, end) = self.ends();
            let (left, right) = (self.start + self.left, middle + self.right);
            if left < middle && right < end {
                return Some((self.from[left], self.from[right]));
            }
            self.to.extend_from_slice(&self.from[left..middle]);
            self.to.extend_from_slice(&self.from[right..end]);
            (self.start, self.left, self.right) = (end, 0, 0);
            if end == self.from.len() {
                std::mem::swap(&mut self.from, &mut self.to);
                self.to.clear();
                self.start = 0;
                self.width = self.width.saturating_mul(2);
            }
        }
        None
    }

    fn answer(&mut self, order: i32) {
        let (middle, _) = self.ends();
        // Equal elements keep their order.
        if order <= 0 {
            self.to.push(self.from[self.start + self.left]);
            self.left += 1;
        } else {
            self.to.push(self.from[middle + self.right]);
            self.right += 1;
        }
    }

    pub(super) fn address(&self, position: u32) -> u128 {
        u128::from(self.base.wrapping_add(u64::from(position).wrapping_mul(self.size)))
    }
}

impl Job {
    /// Takes the result of the call requested by [`Next::Call`].
    pub(super) fn answer(&mut self, bits: u128) {
        let order = bits as u32 as i32;
        match self {
            Job::Entry { answer, .. } => *answer = Some(bits),
            Job::Sort(sort) => sort.answer(order),
            Job::Search(search) => match (order, search.middle()) {
                (0, _) | (_, None) => search.found = true,
                (..0, Some(middle)) => search.high = middle,
                (_, Some(middle)) => search.low = middle + 1,
            },
        }
    }
}

impl Search {
    pub(super) fn middle(&self) -> Option<u64> {
        (self.low < self.high).then(|| self.low + (self.high - self.low) / 2)
    }

    pub(super) fn address(&self, n: u64) -> u64 {
        self.base.wrapping_add(n.wrapping_mul(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_stable_and_compares_no_more_than_merging_does() {
        for count in [0usize, 1, 2, 3, 5, 8, 13, 100, 1000] {
            let keys: Vec<u32> = (0..count as u32).map(|n| n.wrapping_mul(2654435761) >> 27).collect();
            let mut sort = Sort::new(0, count, 8);
            let mut compared = 0;
            while let Some((a, b)) = sort.next() {
                compared += 1;
                sort.answer(keys[a as usize].cmp(&keys[b as usize]) as i32);
            }
            let mut expected: Vec<u32> = (0..count as u32).collect();
            expected.sort_by_key(|&n| keys[n as usize]);
            assert_eq!(sort.from, expected);
            assert!(compared <= count * (count.max(1).ilog2() as usize + 1), "{count}: {compared}");
        }
    }

    #[test]
    fn an_order_without_sense_ends() {
        let mut sort = Sort::new(0, 1000, 8);
        let mut n = 0u32;
        while sort.next().is_some() {
            n = n.wrapping_mul(1664525).wrapping_add(1013904223);
            sort.answer(n as i32);
        }
        let mut positions = sort.from.clone();
        positions.sort_unstable();
        assert!(positions.into_iter().eq(0..1000));
    }
}
