//! A map that only grows, read without locks.
//!
//! ```text
//!   heads[hash's low byte] ─► node(key, value) ─ two bits of the hash ─► node(key, value) ─► …
//! ```
//!
//! Every node has a key of its own and four places below it; each place is set once. A reader follows places that are
//! set; a writer that finds its place empty sets it, or goes on below the node that another writer set first. So a key
//! stands once, a value never moves, and `&V` lives as long as the trie. Values that change are atomic words.
//!
//! Cost: one node for each two bits of `log2(keys) - 8`, expected. Keys whose hashes are equal make a list.

use std::sync::OnceLock;

type Place<K, V> = OnceLock<Box<Node<K, V>>>;

struct Node<K, V> {
    hash: u64,
    key: K,
    value: V,
    below: [Place<K, V>; 4],
}

/// See the file's header.
pub(crate) struct Trie<K, V> {
    heads: Box<[Place<K, V>]>,
}

const HEAD_BITS: u32 = 8;

impl<K, V> Default for Trie<K, V> {
    fn default() -> Self {
        Trie { heads: (0..1 << HEAD_BITS).map(|_| OnceLock::new()).collect() }
    }
}

/// Makes all bits of `hash` depend on each other, so that any of them will do.
pub(crate) fn spread(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

impl<K, V> Trie<K, V> {
    /// The value of the key with hash `hash` that `is` accepts.
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        let mut place = self.heads.get((hash & ((1 << HEAD_BITS) - 1)) as usize)?;
        let mut bits = hash >> HEAD_BITS;
        loop {
            let node = place.get()?;
            if node.hash == hash && is(&node.key) {
                return Some(&node.value);
            }
            place = &node.below[(bits & 3) as usize];
            bits >>= 2;
        }
    }

    /// The same, or what `make` makes, which is then in the trie.
    pub(crate) fn get_or_insert(
        &self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
    ) -> &V {
        let mut make = Some(make);
        let mut made: Option<Box<Node<K, V>>> = None;
        let mut place = &self.heads[(hash & ((1 << HEAD_BITS) - 1)) as usize];
        let mut bits = hash >> HEAD_BITS;
        loop {
            let node = match place.get() {
                Some(node) => node,
                None => {
                    if let Some(make) = make.take() {
                        let (key, value) = make();
                        made =
                            Some(Box::new(Node { hash, key, value, below: [const { OnceLock::new() }; 4] }));
                    }
                    let Some(node) = made.take() else { unreachable!("a node is made once and placed once") };
                    match place.set(node) {
                        Ok(()) => match place.get() {
                            Some(node) => return &node.value,
                            None => unreachable!("the place was set"),
                        },
                        Err(node) => made = Some(node),
                    }
                    continue;
                }
            };
            if node.hash == hash && is(&node.key) {
                return &node.value;
            }
            place = &node.below[(bits & 3) as usize];
            bits >>= 2;
        }
    }
}

impl<K, V> Drop for Trie<K, V> {
    fn drop(&mut self) {
        let mut nodes: Vec<Box<Node<K, V>>> = self.heads.iter_mut().filter_map(OnceLock::take).collect();
        while let Some(mut node) = nodes.pop() {
            nodes.extend(node.below.iter_mut().filter_map(OnceLock::take));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Trie;

    #[test]
    fn equal_hashes_are_told_apart_and_dropped_without_recursion() {
        let trie = Trie::default();
        for key in 0..20_000u32 {
            let hash = u64::from(key % 2);
            if key < 200 || key % 100 == 0 {
                assert_eq!(*trie.get_or_insert(hash, |known| *known == key, || (key, key + 1)), key + 1);
            }
        }
        assert_eq!(trie.get(1, |known| *known == 77), Some(&78));
        assert_eq!(trie.get(0, |known| *known == 77), None, "the hash differs");
        assert_eq!(*trie.get_or_insert(1, |known| *known == 77, || (0, 0)), 78, "a key stands once");
    }
}
