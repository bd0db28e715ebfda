//! Suggestions for misspelt names.
//!
//! A candidate is near if few letters have to be inserted, removed, replaced or swapped with their neighbour:
//! at most one in three, and at most three. Only the nearest are suggested. Cost: candidates times the
//! product of the lengths, less where a few letters already show that one is far; names beyond [`MAX_LENGTH`]
//! are not compared.
//!
//! Each search walks all candidates, so a source with many unknown names would take quadratic time: the
//! caller searches only for the first [`SEARCHES`] unknown names.

/// Longer names are different rather than misspelt.
const MAX_LENGTH: usize = 40;
/// More suggestions do not help.
const MAX_SHOWN: usize = 4;
/// The number of unknown names in a source for which similar ones are suggested. Further ones are unlikely to
/// be misspellings.
pub(super) const SEARCHES: usize = 8;

/// The candidates nearest to `name`, in alphabetical order.
pub(super) fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let Some((name, limit)) = Letters::of(name) else { return Vec::new() };
    let mut found: Vec<(usize, &str)> =
        candidates.into_iter().filter_map(|c| Some((name.distance(c, limit)?, c))).collect();
    found.sort_unstable();
    found.dedup();
    let nearest = found.first().map_or(0, |&(d, _)| d);
    found.retain(|&(d, _)| d == nearest);
    found.truncate(MAX_SHOWN);
    found.into_iter().map(|(_, c)| c).collect()
}

/// Whether a candidate is near to `name`.
pub(super) fn is_near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> bool {
    Letters::of(name)
        .is_some_and(|(name, limit)| candidates.into_iter().any(|c| name.distance(c, limit).is_some()))
}

/// The letters of a name that is not too long.
struct Letters {
    letters: [char; MAX_LENGTH],
    length: usize,
}

impl Letters {
    /// The letters, and the greatest distance of a near name.
    fn of(name: &str) -> Option<(Letters, usize)> {
        let mut of = Letters { letters: ['\0'; MAX_LENGTH], length: 0 };
        for letter in name.chars() {
            *of.letters.get_mut(of.length)? = letter;
            of.length += 1;
        }
        let limit = (of.length / 3).clamp(1, 3);
        Some((of, limit))
    }

    fn letters(&self) -> &[char] {
        &self.letters[..self.length]
    }

    /// The edit distance to another name, where a swap of neighbours counts as one; `None` for the name
    /// itself and beyond the limit.
    fn distance(&self, other: &str, limit: usize) -> Option<usize> {
        // Most names are ASCII; others have more bytes than letters.
        if other.len() + limit < self.length || other.is_ascii() && other.len() > self.length + limit {
            return None;
        }
        let (other, _) = Letters::of(other)?;
        let (a, b) = (self.letters(), other.letters());
        if a == b || a.len().abs_diff(b.len()) > limit {
            return None;
        }
        let mut before = [0usize; MAX_LENGTH + 1];
        let mut above: [usize; MAX_LENGTH + 1] = std::array::from_fn(|at| at);
        for i in 1..=a.len() {
            let mut row = [i; MAX_LENGTH + 1];
            for j in 1..=b.len() {
                let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    row[j] = row[j].min(before[j - 2] + 1);
                }
            }
            // A swap refers to the row before the last; both rows are beyond the limit.
            if row[..=b.len()].iter().chain(&above[..=b.len()]).all(|&edits| edits > limit) {
                return None;
            }
            (before, above) = (above, row);
        }
        Some(above[b.len()]).filter(|&edits| edits <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_first() {
        let names = ["add_int", "sub_int", "add_ptr", "and_int", "slt_int"];
        assert_eq!(near("ad_int", names), ["add_int", "and_int"]);
        assert_eq!(near("add_itn", names), ["add_int"]);
        assert!(near("zzzz", names).is_empty());
        let distance = |a, b| Letters::of(a).unwrap().0.distance(b, 3);
        assert_eq!(distance("abcd", "acbd"), Some(1));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("", "abcd"), None);
        assert_eq!(distance("abc", "abc"), None, "the name itself is not near");
        assert_eq!(distance("äöü", "äoü"), Some(1));
        assert!(is_near("ad_int", names) && !is_near("zzzz", names));
        assert!(!is_near(&"a".repeat(MAX_LENGTH + 1), [&*"a".repeat(MAX_LENGTH)]));
    }
}
