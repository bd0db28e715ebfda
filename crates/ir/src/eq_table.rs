//! Finds the position of a key in the table of an `IdDict`: key-value pairs with open addressing.
//!
//! ```text
//! ht   │ k v │ – – │ k v │ ✗ – │ k v │ – – │ …      – undefined, ✗ `nothing`: the pair was deleted
//!         ▲ hash % pairs, then the next ones
//! ```
//!
//! The owner of the table answers one query about a pair ([`Pairs::look`]); interpreter and run time store
//! tables differently. A search ends at a pair that was never used, or after all pairs. A table with long
//! searches grows only if half of it is used, so equal hashes of different keys make it slow, but not large.

/// How a pair of a table relates to a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pair {
    /// Never used.
    Free,
    /// Its key was deleted.
    Deleted,
    /// It has the key being searched for.
    Same,
    /// It has another key.
    Other,
}

/// The pairs of a table, compared with one key.
pub trait Pairs {
    /// Error returned by a read.
    type Error;

    /// How a pair relates to the key.
    fn look(&mut self, pair: usize) -> Result<Pair, Self::Error>;
}

/// Where a key is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// The pair that already has the key.
    At(usize),
    /// The free pair that it can take.
    New(usize),
    /// The table needs to grow.
    Full,
}

/// How long a search may be before the table's load is examined.
fn longest_search(count: usize) -> usize {
    16.max(count >> 6)
}

fn search(count: usize, hash: u64) -> impl Iterator<Item = usize> {
    let start = if count == 0 { 0 } else { (hash % count as u64) as usize };
    (start..count).chain(0..start)
}

/// The pair of a table of `count` pairs that has the key with this hash.
pub fn find<P: Pairs>(pairs: &mut P, count: usize, hash: u64) -> Result<Option<usize>, P::Error> {
    for pair in search(count, hash) {
        match pairs.look(pair)? {
            Pair::Free => return Ok(None),
            Pair::Same => return Ok(Some(pair)),
            Pair::Deleted | Pair::Other => {}
        }
    }
    Ok(None)
}

/// Where to store the key with this hash in a table of `count` pairs.
pub fn room<P: Pairs>(pairs: &mut P, count: usize, hash: u64) -> Result<Room, P::Error> {
    let mut deleted = None;
    let mut free = None;
    let mut steps = 0;
    for pair in search(count, hash) {
        steps += 1;
        match pairs.look(pair)? {
            Pair::Free => {
                free = Some(pair);
                break;
            }
            Pair::Same => return Ok(Room::At(pair)),
            Pair::Deleted => deleted = deleted.or(Some(pair)),
            Pair::Other => {}
        }
    }
    let Some(new) = deleted.or(free) else { return Ok(Room::Full) };
    if steps > longest_search(count) {
        let mut used = 0;
        for pair in 0..count {
            used += usize::from(pairs.look(pair)? != Pair::Free);
        }
        if used > count / 2 {
            return Ok(Room::Full);
        }
    }
    Ok(Room::New(new))
}

/// The number of elements, two for each pair, of the next larger table; `None` if there is none.
pub fn larger(elements: usize) -> Option<usize> {
    elements.max(16).checked_next_power_of_two()?.checked_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of numbers; a number is its own hash, modulo 4 if they are to collide.
    struct Table<'a>(&'a [Option<Option<u64>>], u64);

    impl Pairs for Table<'_> {
        type Error = ();

        fn look(&mut self, pair: usize) -> Result<Pair, ()> {
            Ok(match self.0[pair] {
                None => Pair::Free,
                Some(None) => Pair::Deleted,
                Some(Some(key)) if key == self.1 => Pair::Same,
                Some(Some(_)) => Pair::Other,
            })
        }
    }

    #[test]
    fn keys_are_found_where_they_were_put_whatever_the_hash() {
        for modulus in [1, 4, u64::MAX] {
            let hash = |key: u64| key % modulus;
            let mut table: Vec<Option<Option<u64>>> = vec![None; 16];
            let put = |table: &mut Vec<Option<Option<u64>>>, key: u64| loop {
                let count = table.len();
                match room(&mut Table(table, key), count, hash(key)).unwrap() {
                    Room::At(pair) | Room::New(pair) => break table[pair] = Some(Some(key)),
                    Room::Full => {
                        let keys: Vec<u64> = table.drain(..).flatten().flatten().collect();
                        table.resize(larger(2 * count).unwrap() / 2, None);
                        for key in keys {
                            let count = table.len();
                            let Room::New(pair) = room(&mut Table(table, key), count, hash(key)).unwrap()
                            else {
                                panic!("a larger table has room")
                            };
                            table[pair] = Some(Some(key));
                        }
                    }
                }
            };
            (0..500).for_each(|key| put(&mut table, key));
            assert!(table.len() <= 2048, "{} pairs with hashes below {modulus}", table.len());
            for key in (0..500).step_by(2) {
                let count = table.len();
                let pair = find(&mut Table(&table, key), count, hash(key)).unwrap().unwrap();
                table[pair] = Some(None);
            }
            (500..600).for_each(|key| put(&mut table, key));
            let count = table.len();
            for key in 0..700 {
                let found = find(&mut Table(&table, key), count, hash(key)).unwrap();
                assert_eq!(
                    found.is_some(),
                    (key < 500 && key % 2 == 1) || (500..600).contains(&key),
                    "{key}"
                );
            }
        }
    }

    #[test]
    fn an_empty_table_has_nothing_and_no_room() {
        assert_eq!(find(&mut Table(&[], 1), 0, 1), Ok(None));
        assert_eq!(room(&mut Table(&[], 1), 0, 1), Ok(Room::Full));
        assert_eq!(larger(usize::MAX), None);
    }
}
