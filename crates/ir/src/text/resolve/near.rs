//! Names that a misspelt one may mean.
//!
//! A candidate is near if few letters have to be inserted, removed, replaced or exchanged with their neighbour: at most
//! one in three, and at most three. Only the nearest are given. Cost: candidates times the product of the lengths; names beyond
//! [`MAX_LENGTH`] are not compared.

/// Longer names are not misspelt but different.
const MAX_LENGTH: usize = 40;
/// More candidates than these explain nothing.
const MAX_SHOWN: usize = 4;

/// The candidates nearest to `name`, in the order of the alphabet.
pub(super) fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = name.chars().count();
    if length > MAX_LENGTH {
        return Vec::new();
    }
    let limit = (length / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|c| *c != name && c.chars().count().abs_diff(length) <= limit)
        .map(|c| (distance(name, c), c))
        .filter(|&(d, _)| d <= limit)
        .collect();
    found.sort_unstable();
    found.dedup();
    let nearest = found.first().map_or(0, |&(d, _)| d);
    found.retain(|&(d, _)| d == nearest);
    found.truncate(MAX_SHOWN);
    found.into_iter().map(|(_, c)| c).collect()
}

/// Edits between two names, where an exchange of neighbours counts as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
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
        assert_eq!(distance("abcd", "acbd"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
