//! Many short lists in two arrays: the items of list `i` are `items[starts[i]..starts[i + 1]]`.

/// Lists of `T`, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Csr<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

/// A missing list equals an empty one, so trailing empty lists make no difference.
impl<T: PartialEq> PartialEq for Csr<T> {
    fn eq(&self, other: &Self) -> bool {
        let (short, long) = match self.starts.len() <= other.starts.len() {
            true => (&self.starts, &other.starts),
            false => (&other.starts, &self.starts),
        };
        let (common, rest) = long.split_at(short.len());
        common == short && rest.iter().all(|start| common.last() == Some(start)) && self.items == other.items
    }
}

impl<T: Eq> Eq for Csr<T> {}

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
        let mut items = vec![any; pairs.len()];
        for &(list, item) in pairs {
            let at = &mut starts[list as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        // Each start is now its list's end, which is where the next list begins.
        starts.copy_within(..count, 1);
        starts[0] = 0;
        Self { starts, items }
    }

    /// The items of a list; empty if there is no such list.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lists_at_the_end_make_no_difference() {
        let of = |count, pairs: &[(u32, u8)]| Csr::from_pairs(count, pairs);
        assert_eq!(of(2, &[(1, 7)]), of(5, &[(1, 7)]));
        assert_eq!(of(3, &[]), of(0, &[]));
        assert_ne!(of(2, &[(1, 7)]), of(5, &[(2, 7)]));
        assert_ne!(of(2, &[(1, 7)]), of(5, &[(1, 7), (4, 8)]));
    }
}
