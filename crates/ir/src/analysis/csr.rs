//! Many short lists in two arrays: the items of list `i` are `items[starts[i]..starts[i + 1]]`.

/// Lists of `T`, numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Csr<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Csr<T> {
    fn default() -> Self {
        Self { starts: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Csr<T> {
    /// `count` lists from (list, item) pairs; the items of a list keep the order of the pairs.
    pub(super) fn from_pairs(count: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0u32; count + 1];
        for &(list, _) in pairs {
            starts[list as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let Some(&(_, any)) = pairs.first() else { return Self { starts, items: Vec::new() } };
        let mut next = starts.clone();
        let mut items = vec![any; pairs.len()];
        for &(list, item) in pairs {
            let at = &mut next[list as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        Self { starts, items }
    }

    /// The items of a list; empty for a list that is not there.
    pub(super) fn list(&self, index: usize) -> &[T] {
        match self.starts.get(index..index + 2) {
            Some(&[start, end]) => &self.items[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The number of lists.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }
}
