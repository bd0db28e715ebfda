//! The sections of a file, and lists whose items are found by number.
//!
//! ```text
//!   directory   length of each section: 32 bits            the sections follow it, without gaps
//!   list        count, where each item ends: 32 bits each  the items follow, without gaps
//! ```
//!
//! So a reader finds an item without reading the items before it. Ends count from the first item.
//!
//! A file of 4 GiB or more has lengths that do not fit; the reader refuses it.

use super::bytes::Source;
use super::{BinaryError, HEADER, Refusal};
use std::ops::Range;

pub(super) const STRINGS: usize = 0;
pub(super) const DECLS: usize = 1;
pub(super) const DEFINITIONS: usize = 2;
pub(super) const TYPES: usize = 3;
pub(super) const GLOBALS: usize = 4;
pub(super) const FUNCTIONS: usize = 5;
/// The types that data outside the module refers to.
pub(super) const LISTED: usize = 6;
pub(super) const SECTIONS: usize = 7;

const WORD: usize = 4;

fn fitting(length: usize) -> [u8; WORD] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn word(bytes: &[u8], at: usize) -> Result<usize, BinaryError> {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(&word) => Ok(u32::from_le_bytes(word) as usize),
        None => Err(BinaryError { offset: at, refusal: Refusal::Truncated }),
    }
}

/// Writes the sections after a header.
pub(super) fn write(out: &mut Vec<u8>, sections: [Vec<u8>; SECTIONS]) {
    sections.iter().for_each(|section| out.extend(fitting(section.len())));
    sections.iter().for_each(|section| out.extend(section));
}

/// The location of each section.
#[derive(Debug)]
pub(super) struct Directory {
    ends: [usize; SECTIONS],
}

impl Directory {
    const END: usize = HEADER + WORD * SECTIONS;

    pub(super) fn read(bytes: &[u8]) -> Result<Directory, BinaryError> {
        let mut ends = [0; SECTIONS];
        let mut end = Directory::END;
        for (number, place) in ends.iter_mut().enumerate() {
            let at = HEADER + WORD * number;
            end += word(bytes, at)?;
            if end > bytes.len() {
                return Err(BinaryError { offset: at, refusal: Refusal::Truncated });
            }
            *place = end;
        }
        match end == bytes.len() {
            true => Ok(Directory { ends }),
            false => Err(BinaryError { offset: end, refusal: Refusal::Trailing }),
        }
    }

    fn range(&self, section: usize) -> Range<usize> {
        let start = section.checked_sub(1).map_or(Directory::END, |before| self.ends[before]);
        start..self.ends[section]
    }

    /// A section that is read from beginning to end.
    pub(super) fn source<'a>(&self, bytes: &'a [u8], section: usize) -> Source<'a> {
        Source::within(bytes, self.range(section))
    }

    pub(super) fn list(&self, bytes: &[u8], section: usize) -> Result<List, BinaryError> {
        List::read(bytes, self.range(section))
    }
}

/// Items being written.
#[derive(Default)]
pub(super) struct ListSink {
    ends: Vec<u8>,
    items: Vec<u8>,
}

impl ListSink {
    pub(super) fn count(&self) -> usize {
        self.ends.len() / WORD
    }

    pub(super) fn push(&mut self, item: &[u8]) {
        self.items.extend(item);
        self.ends.extend(fitting(self.items.len()));
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let mut bytes = fitting(self.count()).to_vec();
        bytes.extend(self.ends);
        bytes.extend(self.items);
        bytes
    }
}

/// Items being read.
#[derive(Debug)]
pub(super) struct List {
    /// Offset of the first entry of the table of ends.
    ends: usize,
    count: usize,
    end: usize,
}

impl List {
    fn read(bytes: &[u8], range: Range<usize>) -> Result<List, BinaryError> {
        let count = word(&bytes[..range.end], range.start)?;
        let list = List { ends: range.start + WORD, count, end: range.end };
        if count > (range.len() - WORD) / WORD {
            let refusal = Refusal::Count { count: count as u64 };
            return Err(BinaryError { offset: range.start, refusal });
        }
        let last = match count.checked_sub(1) {
            Some(last) => list.range(bytes, last)?.end,
            None => list.items(),
        };
        match last == range.end {
            true => Ok(list),
            false => Err(BinaryError { offset: last, refusal: Refusal::Trailing }),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn items(&self) -> usize {
        self.ends + WORD * self.count
    }

    /// The byte range of an item, in the bytes that the list was read from. The number is below the count.
    fn range(&self, bytes: &[u8], number: usize) -> Result<Range<usize>, BinaryError> {
        let at = self.ends + WORD * number;
        let start = if number == 0 { 0 } else { word(bytes, at - WORD)? };
        let (start, end) = (self.items() + start, self.items() + word(bytes, at)?);
        match start <= end && end <= self.end {
            true => Ok(start..end),
            false => Err(BinaryError { offset: at, refusal: Refusal::Truncated }),
        }
    }

    pub(super) fn item<'a>(&self, bytes: &'a [u8], number: usize) -> Result<&'a [u8], BinaryError> {
        self.range(bytes, number).map(|range| &bytes[range])
    }

    /// An item to be read from its beginning to its end.
    pub(super) fn source<'a>(&self, bytes: &'a [u8], number: usize) -> Result<Source<'a>, BinaryError> {
        Ok(Source::within(bytes, self.range(bytes, number)?))
    }

    /// Where an item begins, for errors.
    pub(super) fn start(&self, bytes: &[u8], number: usize) -> usize {
        self.range(bytes, number).map_or(self.ends, |range| range.start)
    }
}
