//! The text of an image, read function by function.
//!
//! ```text
//!   text   ┌─ piece 0 ─┬─ piece 1 ─┬ … ┬─ tail ──────────────────┐
//!          │ function  │ function  │   │ stubs, rest of the page │
//!          └───────────┴───────────┴───┴─────────────────────────┘
//!   a function is needed ──► its piece, and the pieces of all functions that it reaches ──► read ──► checksums ──► written
//! ```
//!
//! Functions call each other by distance, so one may run when every function that its code refers to is in memory.
//! The table of callees has these references. The tail is loaded when the image is opened.
//!
//! **Checks.** Each piece has a checksum, which is compared before anything of it is written to executable memory. A
//! change of the file after opening, or bytes that are missing, are an error of the look-up, and what was loaded before
//! stays usable. An image in memory is checked as a whole when it is opened.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | P1 | the bits of functions are set after they were written | Release | P3 | a thread runs a function, or one that it calls, before its bytes are there |
//! | P2 | all bits are set after everything was written | Release | P3 | as P1 |
//! | P3 | the bit of a function is read before its address is given out | Acquire | P1, P2 | as P1 |
//!
//! Cost: a look-up of a loaded function reads one word; the first one reads its pieces with one system call for each
//! run of neighbours.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::header::{Place, checksum_of};
use super::tables::{FUNCTION_WORDS, PIECE_WORDS, row, rows, word};
use super::{ImageError, ImageFile};

/// Receives machine code: its offset from the start of the text, and the bytes.
pub type WriteCode<'w> = &'w mut dyn FnMut(usize, &[u8]);

/// The text of an image, of which parts have been loaded into memory.
pub struct Text {
    source: ImageFile,
    /// The file up to the text.
    front: Bytes,
    functions: Place,
    pieces: Place,
    callees: Place,
    /// The text in the file, with the padding up to the imports.
    range: Range<usize>,
    count: usize,
    /// One bit for each function: it has been written, and so have all functions that it refers to.
    loaded: Box<[AtomicU32]>,
    /// Held while pieces are read and written.
    loading: Mutex<()>,
}

impl Text {
    /// The text of a file whose part before the text is `front`; `None` if the tables contradict each other.
    pub(super) fn new(
        source: ImageFile,
        front: Bytes,
        [functions, pieces, callees]: [Place; 3],
        range: Range<usize>,
    ) -> Option<Text> {
        let of = |place: Place| front.get(place.offset..place.offset + place.length).unwrap_or_default();
        let count = rows(of(functions), FUNCTION_WORDS)?;
        // The last row is the tail's.
        let is_whole = rows(of(pieces), PIECE_WORDS)? == count + 1 && rows(of(callees), 1).is_some();
        let loaded = (0..count.div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
        let loading = Mutex::new(());
        let text = Text { source, front, functions, pieces, callees, range, count, loaded, loading };
        is_whole.then_some(text)
    }

    fn table(&self, place: Place) -> &[u8] {
        self.front.get(place.offset..place.offset + place.length).unwrap_or_default()
    }

    /// Loads the function of a row of the table of functions, with all functions that it refers to.
    ///
    /// # Errors
    /// The file cannot be read, or is not as it was written. The function must not run then.
    pub fn load(&self, function: usize, write: WriteCode<'_>) -> Result<(), ImageError> {
        if self.is_loaded(function) {
            return Ok(());
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut wanted, mut pending) = (BTreeSet::new(), vec![function]);
        while let Some(at) = pending.pop() {
            if !self.is_loaded(at) && wanted.insert(at) {
                let [first, last] = self.callees_of(at).ok_or_else(|| damaged("the table of callees"))?;
                let callees = self.table(self.callees);
                let callees = (first..last).map(|at| word(callees, at).map(|callee| callee as usize));
                for callee in callees {
                    let callee = callee.filter(|&callee| callee < self.count);
                    pending.push(callee.ok_or_else(|| damaged("the table of callees"))?);
                }
            }
        }
        let wanted: Vec<usize> = wanted.into_iter().collect();
        self.write_pieces(&wanted, write)?;
        for at in wanted {
            self.loaded[at / 32].fetch_or(1 << (at % 32), Ordering::Release); // P1
        }
        Ok(())
    }

    /// Loads what all functions use: the stubs that lead to imports.
    ///
    /// # Errors
    /// As [`Text::load`].
    pub fn load_tail(&self, write: WriteCode<'_>) -> Result<(), ImageError> {
        self.write_pieces(&[self.count], write)
    }

    /// Loads everything.
    ///
    /// # Errors
    /// As [`Text::load`].
    pub fn load_all(&self, write: WriteCode<'_>) -> Result<(), ImageError> {
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<usize> = (0..=self.count).collect();
        self.write_pieces(&all, write)?;
        self.loaded.iter().for_each(|word| word.store(u32::MAX, Ordering::Release)); // P2
        Ok(())
    }

    /// Compares all checksums.
    pub(super) fn check(&self) -> Result<(), ImageError> {
        let all: Vec<usize> = (0..=self.count).collect();
        self.write_pieces(&all, &mut |_, _| ())
    }

    /// Whether a function has been loaded.
    pub fn is_loaded(&self, function: usize) -> bool {
        let known = self.loaded.get(function / 32).map_or(0, |word| word.load(Ordering::Acquire)); // P3
        known >> (function % 32) & 1 == 1
    }

    /// The range of a function's callees in their table.
    fn callees_of(&self, function: usize) -> Option<[usize; 2]> {
        let first = |at| row::<PIECE_WORDS>(self.table(self.pieces), at).map(|[_, first]| first as usize);
        let [first, last] = [first(function)?, first(function + 1)?];
        (first <= last && last <= self.callees.length / 4).then_some([first, last])
    }

    /// The range of a piece, from the start of the text; the last one is the tail.
    fn piece(&self, at: usize) -> Option<Range<usize>> {
        let start = |at| match row::<FUNCTION_WORDS>(self.table(self.functions), at) {
            Some([_, _, offset, ..]) => Some(offset as usize),
            None => self.tail_at(),
        };
        let end = if at < self.count { start(at + 1)? } else { self.range.len() };
        let start = start(at)?;
        (start <= end && end <= self.range.len()).then_some(start..end)
    }

    /// The end of the last function.
    fn tail_at(&self) -> Option<usize> {
        let Some(last) = self.count.checked_sub(1) else { return Some(0) };
        let [_, _, offset, size, ..]: [u32; FUNCTION_WORDS] = row(self.table(self.functions), last)?;
        (offset as usize).checked_add(size as usize)
    }

    /// Reads pieces, in ascending order, compares their checksums, and writes them. Neighbours are read together.
    fn write_pieces(&self, wanted: &[usize], write: WriteCode<'_>) -> Result<(), ImageError> {
        for run in wanted.chunk_by(|a, b| a + 1 == *b) {
            let pieces = run.iter().map(|&at| Some((at, self.piece(at)?))).collect::<Option<Vec<_>>>();
            let pieces = pieces.ok_or_else(|| damaged("the table of functions"))?;
            let (Some((_, first)), Some((_, last))) = (pieces.first(), pieces.last()) else { continue };
            let start = first.start;
            let bytes = self.source.read(self.range.start + start..self.range.start + last.end)?;
            for (at, piece) in pieces {
                let code = &bytes[piece.start - start..piece.end - start];
                let known = row::<PIECE_WORDS>(self.table(self.pieces), at).map(|[sum, _]| sum);
                if known != Some(checksum_of(&[code])) {
                    let reason =
                        "machine code does not have the checksum that was written with it".to_owned();
                    return Err(ImageError::Damaged { reason });
                }
                write(piece.start, code);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text")
            .field("range", &self.range)
            .field("functions", &self.count)
            .finish_non_exhaustive()
    }
}

fn damaged(what: &str) -> ImageError {
    ImageError::Damaged { reason: format!("{what} cannot be read") }
}
