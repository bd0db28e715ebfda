//! Ready symbols of a dylib, read without a lock.
//!
//! A cell holds the address of the ready, exported symbol of that name, or nothing. Cells are made on first publication and
//! stay (`trie.rs`); their words change. They are written inside the session's lock, in the same hold in which the tables
//! change, so the board never shows what a later step has taken back; they are read at any time.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | B1 | set: store | Release | B2 | a caller jumps to code whose bytes it cannot see yet |
//! | B2 | get: load | Acquire | B1 | the same, from the other side |
//!
//! Nothing else is ordered: an address that is read may be taken back in the next moment. Whoever calls it holds what keeps
//! code alive (an epoch pin, a handle) from before the read.
//!
//! Not covered: instruction fetch. Whoever emitted the symbol made its bytes fetchable first.

use std::fmt::Debug;

use crate::ids::Symbol;
use crate::sync::{AtomicU64, Ordering};
use crate::trie::{Trie, spread};

/// An address, as one word.
pub trait Address: Copy + Debug + Send + Sync + 'static {
    /// The word.
    fn to_word(self) -> u64;
    /// The address of the word that [`Address::to_word`] gave.
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

/// See the file's header.
pub(crate) struct Board {
    cells: Trie<Symbol, AtomicU64>,
}

/// A cell without an address. The address whose word would be this is not published, and found the long way.
const NOTHING: u64 = 0;

impl Board {
    pub(crate) fn new() -> Board {
        Board { cells: Trie::default() }
    }

    /// The word of the ready symbol.
    pub(crate) fn get(&self, symbol: Symbol) -> Option<u64> {
        let cell = self.cells.get(hash(symbol), |known| *known == symbol)?;
        let stored = cell.load(Ordering::Acquire); // B2
        (stored != NOTHING).then(|| stored.wrapping_sub(1))
    }

    /// Shows the word, or nothing.
    pub(crate) fn set(&self, symbol: Symbol, word: Option<u64>) {
        let stored = word.map_or(NOTHING, |word| word.wrapping_add(1));
        let make = || (symbol, AtomicU64::new(NOTHING));
        let cell = self.cells.get_or_insert(hash(symbol), |known| *known == symbol, make);
        cell.store(stored, Ordering::Release); // B1
    }
}

fn hash(symbol: Symbol) -> u64 {
    spread(u64::from(symbol.0))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Board;
    use crate::Symbol;

    #[test]
    fn any_word_is_shown_or_found_the_long_way() {
        let board = Board::new();
        for word in [0, 1, u64::MAX - 1] {
            board.set(Symbol(3), Some(word));
            assert_eq!(board.get(Symbol(3)), Some(word));
        }
        board.set(Symbol(3), Some(u64::MAX));
        assert_eq!(board.get(Symbol(3)), None);
        board.set(Symbol(3), None);
        assert_eq!((board.get(Symbol(3)), board.get(Symbol(4))), (None, None));
    }
}
