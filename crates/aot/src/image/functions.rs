//! The functions of an image, read from its tables on demand.
//!
//! ```text
//!   name ── binary search in the index ──► row of the chosen target ──► offset, signature, function of the module
//!   bare name ── the second half of the index ──► names
//!   everything ──► names, lines: for debuggers and traces
//! ```
//!
//! Opening an image builds no data per function. It visits each row once, to check the ranges of code and of
//! roots, because the look-up of an address and the collector rely on them. Names, lines and signatures are
//! checked when they are read; a malformed one is an error then, or makes its function unfindable.
//!
//! Cost: opening takes some nanoseconds per row; a look-up, two string comparisons for each power of two.

use std::cmp::Ordering;

use brolga_codegen::sig::Signature;
use brolga_ir::FuncId;
use bytes::Bytes;

use super::Function;
use super::header::Place;
use super::tables::{
    CODE, FUNCTION_WORDS, FUNCTIONS, INDEX, MAP_WORDS, MAPS, NAME_WORDS, NAMES, NONE, Reader, STRINGS,
    TABLES, WORDS, row, rows, word,
};

/// The functions of an image, one entry each: the version for the selected target.
#[derive(Clone, Debug)]
pub struct Functions {
    /// The file up to the text.
    file: Bytes,
    tables: [Place; TABLES],
    count: usize,
    /// The selected target and its bases, best first; and the number of all targets.
    chain: Box<[usize]>,
    targets: usize,
}

/// A function found by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its row in the table of functions.
    pub row: usize,
    /// The offset of its code from the start of the image's code.
    pub offset: u32,
    /// The function of the module, if it has one.
    pub id: Option<FuncId>,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<Signature>,
}

/// The stack slots that hold roots at each call, for all functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameRows {
    /// Return addresses, as offsets from the start of the code, ascending.
    pub returns: Vec<u32>,
    /// For each return address, the index of its first word; one more at the end.
    pub starts: Vec<u32>,
    /// Offsets from the frame pointer.
    pub words: Vec<i32>,
}

impl Functions {
    /// The functions of a file with `targets` targets. `None` if a range is outside the code, or the rows are
    /// not ordered by offset.
    pub(super) fn new(
        file: Bytes,
        tables: [Place; TABLES],
        chain: Box<[usize]>,
        targets: usize,
    ) -> Option<Functions> {
        let mut functions = Functions { file, tables, count: 0, chain, targets };
        functions.count = functions.checked_count()?;
        Some(functions)
    }

    /// The number of rows, after checking the ranges of each.
    fn checked_count(&self) -> Option<usize> {
        let reader = self.reader();
        let count = rows(reader.tables[FUNCTIONS], FUNCTION_WORDS)?;
        let code = self.tables[CODE].length as u64;
        let mut end = 0;
        for [_, _, offset, size, .., version, _] in all_rows::<FUNCTION_WORDS>(reader.tables[FUNCTIONS]) {
            let last = u64::from(offset) + u64::from(size);
            if u64::from(offset) < end || size == 0 || last > code || version as usize >= self.targets {
                return None;
            }
            end = last;
        }
        let mut index = all_rows::<1>(reader.tables[INDEX]);
        let is_index = index.len() >= count && index.all(|[row]| (row as usize) < count);
        (is_index && rows(reader.tables[NAMES], NAME_WORDS)? == count).then_some(count)
    }

    fn table(&self, number: usize) -> &[u8] {
        let Place { offset, length } = self.tables[number];
        // The header was checked against the file's length.
        self.file.get(offset..offset + length).unwrap_or_default()
    }

    fn reader(&self) -> Reader<'_> {
        Reader { tables: std::array::from_fn(|number| self.table(number)) }
    }

    /// The row at a position of the index.
    fn listed(&self, at: usize) -> Option<usize> {
        word(self.table(INDEX), at).map(|row| row as usize)
    }

    /// The string referred to by the first two words of a row.
    fn string<const N: usize>(&self, table: usize, row_number: usize) -> &[u8] {
        let found = row::<N>(self.table(table), row_number).and_then(|words| words.first_chunk().copied());
        let string = |[at, length]: [u32; 2]| self.table(STRINGS).get(at as usize..)?.get(..length as usize);
        found.and_then(string).unwrap_or_default()
    }

    fn name(&self, row_number: usize) -> &[u8] {
        self.string::<FUNCTION_WORDS>(FUNCTIONS, row_number)
    }

    fn bare_name(&self, row_number: usize) -> &[u8] {
        self.string::<NAME_WORDS>(NAMES, row_number)
    }

    /// The rows with a name, within a range of the index.
    fn places<'a>(
        &'a self,
        (mut low, end): (usize, usize),
        name_of: impl Fn(usize) -> &'a [u8],
        name: &'a [u8],
    ) -> impl Iterator<Item = usize> + 'a {
        let compare = |at: usize| self.listed(at).map_or(Ordering::Less, |row| name_of(row).cmp(name));
        let mut high = end;
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(middle) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        let found = (low..end).take_while(|&at| compare(at) == Ordering::Equal).count();
        (low..low + found).filter_map(|at| self.listed(at))
    }

    /// The function with this name, in the selected version.
    pub fn find(&self, name: &str) -> Option<Found> {
        let versions = self.places((0, self.count), |row| self.name(row), name.as_bytes());
        let ranked = versions.filter_map(|row| Some((self.rank(row)?, row)));
        let (_, chosen) = ranked.min()?;
        let [_, _, offset, _, _, _, _, signature, _, _]: [u32; FUNCTION_WORDS] =
            row(self.table(FUNCTIONS), chosen)?;
        let signature = if signature == NONE { None } else { Some(self.reader().signature(signature)?) };
        Some(Found { row: chosen, offset, id: self.id(chosen), signature })
    }

    /// The rank of a row's version, best first; `None` if its target was not selected.
    fn rank(&self, row_number: usize) -> Option<usize> {
        let [.., version, _]: [u32; FUNCTION_WORDS] = row(self.table(FUNCTIONS), row_number)?;
        self.chain.iter().position(|&target| target == version as usize)
    }

    fn id(&self, row_number: usize) -> Option<FuncId> {
        let [_, _, id, _]: [u32; NAME_WORDS] = row(self.table(NAMES), row_number)?;
        (id != NONE).then(|| FuncId::from_u32(id))
    }

    /// The full names of the functions with a bare name.
    pub fn named(&self, bare: &str) -> Vec<String> {
        let end = rows(self.table(INDEX), 1).unwrap_or(self.count);
        let found = self.places((self.count, end), |row| self.bare_name(row), bare.as_bytes());
        found.filter_map(|row| String::from_utf8(self.name(row).to_vec()).ok()).collect()
    }

    /// The functions of the module that have code, by name, and whether they have a body.
    pub fn ids(&self) -> impl Iterator<Item = (FuncId, bool)> {
        let of_first_target =
            (self.count..rows(self.table(INDEX), 1).unwrap_or(self.count)).filter_map(|at| self.listed(at));
        of_first_target.filter_map(|at| {
            let [_, _, _, has_body]: [u32; NAME_WORDS] = row(self.table(NAMES), at)?;
            Some((self.id(at)?, has_body != 0))
        })
    }

    /// The names of all functions that can be looked up, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in (0..self.count).filter_map(|at| self.listed(at)) {
            let name = String::from_utf8_lossy(self.name(row));
            let has_signature = row_signature(self.table(FUNCTIONS), row) != Some(NONE);
            if has_signature && names.last().is_none_or(|last| *last != *name) {
                names.push(name.into_owned());
            }
        }
        names
    }

    /// All versions of all functions, by offset, each with whether it was selected. `None` if a row cannot be
    /// read.
    pub fn all(&self) -> Option<Vec<(bool, Function)>> {
        let reader = self.reader();
        let mut chosen = vec![false; self.count];
        let mut at = 0;
        while at < self.count {
            let name = self.name(self.listed(at)?);
            let mut end = at + 1;
            while end < self.count && self.name(self.listed(end)?) == name {
                end += 1;
            }
            let versions = (at..end).filter_map(|at| self.listed(at));
            if let Some((_, best)) = versions.filter_map(|row| Some((self.rank(row)?, row))).min() {
                chosen[best] = true;
            }
            at = end;
        }
        let function = |at| Some((*chosen.get(at)?, reader.function(at, self.targets)?.1));
        (0..self.count).map(function).collect()
    }

    /// The roots at each call. `None` if a return address is outside its function, or they are not ascending.
    pub fn frame_rows(&self) -> Option<FrameRows> {
        let (functions, maps) = (self.table(FUNCTIONS), self.table(MAPS));
        let count = rows(maps, MAP_WORDS)?;
        let words: Vec<i32> = all_rows::<1>(self.table(WORDS)).map(|[word]| word.cast_signed()).collect();
        let mut made = FrameRows { returns: Vec::with_capacity(count), starts: Vec::new(), words };
        let mut maps = all_rows::<MAP_WORDS>(maps);
        let mut functions = all_rows::<FUNCTION_WORDS>(functions).peekable();
        while let Some([_, _, offset, size, ..]) = functions.next() {
            let last = functions.peek().map_or(count, |next| next[6] as usize);
            // A call returns after at least its first byte.
            let mut before = 0;
            while made.returns.len() < last {
                let [return_offset, start] = maps.next()?;
                if return_offset > size || return_offset <= before {
                    return None;
                }
                before = return_offset;
                made.returns.push(offset + return_offset);
                made.starts.push(start);
            }
        }
        made.starts.push(made.words.len() as u32);
        let is_complete = made.returns.len() == count && made.starts.is_sorted();
        is_complete.then_some(made)
    }
}

fn row_signature(table: &[u8], row_number: usize) -> Option<u32> {
    let [_, _, _, _, _, _, _, signature, _, _]: [u32; FUNCTION_WORDS] = row(table, row_number)?;
    Some(signature)
}

/// The complete rows of a table.
fn all_rows<const N: usize>(table: &[u8]) -> impl ExactSizeIterator<Item = [u32; N]> + '_ {
    table.chunks_exact(4 * N).map(|row| {
        let word = |at: usize| row.get(4 * at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        std::array::from_fn(|at| u32::from_le_bytes(word(at)))
    })
}
