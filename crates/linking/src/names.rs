//! The texts of symbols: each text is one [`Symbol`] for the life of the session.
//!
//! Reading never locks: texts are found in an append-only trie, and symbols index an array that grows by doubling its
//! last part, so that nothing ever moves. Writing takes a lock, because symbols are dense. Names are never given back;
//! a session that runs for months with ever new names keeps them (about 150 bytes each).

use std::hash::Hasher;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHasher;

use crate::ids::Symbol;
use crate::trie::{Trie, spread};

/// A part of the array of texts.
type Part = OnceLock<Box<[OnceLock<Arc<str>>]>>;

/// Interned names. One for each session.
pub struct Names {
    by_text: Trie<Arc<str>, Symbol>,
    by_symbol: [Part; 27],
    count: Mutex<u32>,
}

/// The first part of the array has this many places, as a power of two.
const FIRST: u32 = 6;

impl Default for Names {
    fn default() -> Self {
        Names { by_text: Trie::default(), by_symbol: [const { OnceLock::new() }; 27], count: Mutex::new(0) }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    spread(hasher.finish())
}

/// The part of the array and the place in it.
fn place(symbol: u32) -> (usize, usize) {
    let shifted = u64::from(symbol) + (1 << FIRST);
    let part = shifted.ilog2() - FIRST;
    (part as usize, (shifted - (1u64 << (part + FIRST))) as usize)
}

impl Names {
    /// The symbol of `text`, when it has one.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.by_text.get(hash(text), |known| &**known == text).copied()
    }

    /// The symbol of `text`.
    pub fn intern(&self, text: &str) -> Symbol {
        let hash = hash(text);
        if let Some(symbol) = self.by_text.get(hash, |known| &**known == text) {
            return *symbol;
        }
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *self.by_text.get_or_insert(
            hash,
            |known| &**known == text,
            || {
                let symbol = *count;
                *count = count.checked_add(1).expect("fewer than four billion names in a session");
                let text: Arc<str> = text.into();
                let (part, index) = place(symbol);
                let part = self.by_symbol[part]
                    .get_or_init(|| (0..1u64 << (part as u32 + FIRST)).map(|_| OnceLock::new()).collect());
                // The place is empty: symbols are given out once, under the lock.
                let _ = part[index].set(Arc::clone(&text));
                (text, Symbol(symbol))
            },
        )
    }

    /// The text of `symbol`; a question mark for a symbol of another session.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> Arc<str> {
        let (part, index) = place(symbol.0);
        let text = self.by_symbol.get(part).and_then(OnceLock::get).and_then(|part| part.get(index)?.get());
        text.map_or_else(|| "?".into(), Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn equal_texts_are_one_symbol() {
        let names = Names::default();
        let symbols: Vec<_> = (0..3000).map(|i| names.intern(&format!("f{i}"))).collect();
        for (i, symbol) in symbols.iter().enumerate() {
            assert_eq!(&*names.text(*symbol), format!("f{i}"));
            assert_eq!(names.intern(&format!("f{i}")), *symbol);
        }
        assert_eq!(names.find("f3000"), None);
        assert_eq!(&*names.text(crate::Symbol(3000)), "?");
        assert_eq!(&*names.text(crate::Symbol(u32::MAX)), "?");
    }

    #[test]
    fn two_threads_agree_on_symbols() {
        let names = Names::default();
        let all = |names: &Names| (0..500).map(|i| names.intern(&i.to_string())).collect::<Vec<_>>();
        let (a, b) = std::thread::scope(|scope| {
            let a = scope.spawn(|| all(&names));
            let b = scope.spawn(|| all(&names));
            (a.join(), b.join())
        });
        assert_eq!(a.ok(), b.ok());
    }
}
