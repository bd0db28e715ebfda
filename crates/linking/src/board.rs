//! Ready symbols of a dylib, read without a lock.
//!
//! ```text
//!   index of the symbol, six bits at a time ──► inner node ──► … ──► page of 64 cells (generation, word)
//! ```
//!
//! A cell holds the address of the ready symbol with that index, or nothing. Its first publication makes
//! nodes and pages, which stay until the dylib is closed; cells change. They are written under the session's
//! lock, in the same critical section as the tables, so the board never shows an address that a later step
//! has retracted; they can be read at any time.
//!
//! An index is reused for another name when the old name is freed (`names.rs`), which is after its word was
//! retracted. So the word is empty when its cell gets another generation, and a reader that has read an
//! address reads the generation of that address, or a later one.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | B1 | set: store of the word | Release | B2 | a caller jumps to code whose bytes it cannot see yet; a symbol that outlives its name finds another's code |
//! | B2 | get: load of the word | Acquire | B1 | the same, from the other side |
//! | B3 | set: store of the generation | Relaxed | | nothing: B1 follows it |
//! | B4 | get: load of the generation | Relaxed | | nothing: B2 precedes it |
//!
//! Nothing else is ordered: an address may be retracted right after it was read. Before the read, the caller
//! acquires something that keeps the code alive (an epoch pin, a handle).
//!
//! Cost: one step for each six bits of the index; 16 bytes per symbol of a full page, 1 KiB for the first
//! symbol of a page. Memory is proportional to the largest number of names that the session had at one time,
//! not to the number that it ever had.
//!
//! Not covered: instruction fetch. The symbol's bytes were made fetchable before it was emitted.

use std::fmt::Debug;
use std::sync::OnceLock;

use crate::ids::Symbol;
use crate::sync::{AtomicU64, Ordering};

/// An address encoded as one word.
pub trait Address: Copy + Debug + Send + Sync + 'static {
    fn to_word(self) -> u64;
    /// The address encoded by a word from [`Address::to_word`].
    fn from_word(word: u64) -> Self;
}

impl Address for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn from_word(word: u64) -> u64 {
        word
    }
}

impl Address for usize {
    fn to_word(self) -> u64 {
        self as u64
    }

    fn from_word(word: u64) -> usize {
        word as usize
    }
}

/// Log2 of the number of slots in a node.
const BITS: u32 = 6;
const WIDTH: usize = 1 << BITS;

struct Cell {
    generation: AtomicU64,
    word: AtomicU64,
}

type Below = OnceLock<Box<Node>>;

enum Node {
    Inner([Below; WIDTH]),
    Page([Cell; WIDTH]),
}

impl Node {
    /// A node with `height` nodes below it on the path to a cell.
    fn new(height: u32) -> Box<Node> {
        Box::new(match height {
            0 => Node::Page(std::array::from_fn(|_| Cell {
                generation: AtomicU64::new(0),
                word: AtomicU64::new(NOTHING),
            })),
            _ => Node::Inner([const { OnceLock::new() }; WIDTH]),
        })
    }
}

/// See the file's header.
pub(crate) struct Board {
    /// By the height of the tree: small indices have short paths.
    roots: [Below; 6],
}

/// The word of an empty cell. An address with this word is not published, and is found by a lookup.
const NOTHING: u64 = 0;

fn height(index: u32) -> u32 {
    (index | 1).ilog2() / BITS
}

fn digit(index: u32, level: u32) -> usize {
    (index >> (BITS * level)) as usize % WIDTH
}

impl Board {
    pub(crate) fn new() -> Board {
        Board { roots: [const { OnceLock::new() }; 6] }
    }

    /// The cell of an index, through nodes that `below` finds or makes, given a slot and the height of the
    /// node that belongs there.
    fn cell<'a>(
        &'a self,
        index: u32,
        below: impl Fn(&'a Below, u32) -> Option<&'a Node>,
    ) -> Option<&'a Cell> {
        let mut level = height(index);
        let mut node = below(&self.roots[level as usize], level)?;
        loop {
            match node {
                Node::Page(cells) => return cells.get(digit(index, 0)),
                Node::Inner(places) => {
                    let place = places.get(digit(index, level))?;
                    level -= 1;
                    node = below(place, level)?;
                }
            }
        }
    }

    /// The word of the ready symbol.
    pub(crate) fn get(&self, symbol: Symbol) -> Option<u64> {
        let cell = self.cell(symbol.index, |place, _| place.get().map(|node| &**node))?;
        let stored = cell.word.load(Ordering::Acquire); // B2
        let generation = cell.generation.load(Ordering::Relaxed); // B4
        let is_there = stored != NOTHING && generation == u64::from(symbol.generation);
        is_there.then(|| stored.wrapping_sub(1))
    }

    /// Publishes the word, or retracts it. It must be retracted before the index is used under another
    /// generation.
    pub(crate) fn set(&self, symbol: Symbol, word: Option<u64>) {
        let found = match word {
            // A symbol that was never published takes no memory.
            None => self.cell(symbol.index, |place, _| place.get().map(|node| &**node)),
            Some(_) => self.cell(symbol.index, |place, height| Some(place.get_or_init(|| Node::new(height)))),
        };
        let Some(cell) = found else { return };
        if word.is_some() {
            cell.generation.store(u64::from(symbol.generation), Ordering::Relaxed); // B3
        }
        let stored = word.map_or(NOTHING, |word| word.wrapping_add(1));
        cell.word.store(stored, Ordering::Release); // B1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Board;
    use crate::Symbol;

    #[test]
    fn any_word_is_shown_or_found_the_long_way() {
        let board = Board::new();
        let [third, fourth] = [3, 4].map(|index| Symbol { index, generation: 1 });
        for word in [0, 1, u64::MAX - 1] {
            board.set(third, Some(word));
            assert_eq!(board.get(third), Some(word));
        }
        board.set(third, Some(u64::MAX));
        assert_eq!(board.get(third), None);
        board.set(third, None);
        assert_eq!((board.get(third), board.get(fourth)), (None, None));
    }

    #[test]
    fn indices_of_all_sizes_have_cells_of_their_own() {
        let board = Board::new();
        let indices = (0..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u32::MAX]);
        let indices: std::collections::BTreeSet<u32> = indices.collect();
        for &index in &indices {
            board.set(Symbol { index, generation: 2 }, Some(u64::from(index)));
        }
        for &index in &indices {
            assert_eq!(board.get(Symbol { index, generation: 2 }), Some(u64::from(index)));
            assert_eq!(board.get(Symbol { index, generation: 1 }), None, "its name is gone");
        }
    }
}
