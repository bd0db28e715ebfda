//! The place of a statement in the source of a front end: a line, and a column if it is known, in one word.
//!
//! ```text
//!   bit 31      30 … 20     19 … 0
//!   0           line, up to 2³¹ - 1          all zero: unknown
//!   1           column      line             columns 1 to 2046, lines 1 to 2²⁰ - 1
//! ```
//!
//! One word, because Cranelift's source locations are one word, and because line tables have a row for each
//! statement. The all-ones word is Cranelift's "no location", so it is not a place here.
//!
//! Not done: a column above 2046, or beyond line 2²⁰ - 1, is not kept; the line is.

use std::fmt;

const HAS_COLUMN: u32 = 1 << 31;
const LINE_BITS: u32 = 20;
/// The greatest line that can be kept with a column.
const MAX_LINE_WITH_COLUMN: u32 = (1 << LINE_BITS) - 1;
const MAX_COLUMN: u32 = (1 << (31 - LINE_BITS)) - 2;

/// A source line, with a column where it is known. Both count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LineColumn(u32);

impl LineColumn {
    /// No line is known.
    pub const UNKNOWN: LineColumn = LineColumn(0);

    /// A line and a column. Column 0 means unknown, and line 0, or one above 2³¹ - 1, means that nothing is
    /// known. See the type for columns that are not kept.
    pub const fn new(line: u32, column: u32) -> LineColumn {
        if line >= HAS_COLUMN {
            LineColumn::UNKNOWN
        } else if line == 0 || column == 0 || line > MAX_LINE_WITH_COLUMN || column > MAX_COLUMN {
            LineColumn(line)
        } else {
            LineColumn(HAS_COLUMN | column << LINE_BITS | line)
        }
    }

    /// The line, if it is known.
    pub const fn line(self) -> Option<u32> {
        match self.0 {
            0 => None,
            plain if plain & HAS_COLUMN == 0 => Some(plain),
            both => Some(both & MAX_LINE_WITH_COLUMN),
        }
    }

    /// The column, if it is known.
    pub const fn column(self) -> Option<u32> {
        if self.0 & HAS_COLUMN == 0 { None } else { Some((self.0 & !HAS_COLUMN) >> LINE_BITS) }
    }

    /// The word, for tables and files.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The place encoded by this word; `None` if it encodes none.
    pub const fn from_bits(bits: u32) -> Option<LineColumn> {
        let place = LineColumn(bits);
        let (line, column) = match (place.line(), place.column()) {
            (None, _) => return Some(LineColumn::UNKNOWN),
            (Some(line), None) => (line, 0),
            (Some(line), Some(column)) => (line, column),
        };
        if LineColumn::new(line, column).0 == bits { Some(place) } else { None }
    }
}

/// `12` or `12:5`; `?` if unknown.
impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line(), self.column()) {
            (None, _) => f.write_str("?"),
            (Some(line), None) => write!(f, "{line}"),
            (Some(line), Some(column)) => write!(f, "{line}:{column}"),
        }
    }
}

impl fmt::Debug for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_kept_as_far_as_they_fit() {
        let both = |line, column| {
            let place = LineColumn::new(line, column);
            assert_eq!(LineColumn::from_bits(place.bits()), Some(place));
            assert_ne!(place.bits(), u32::MAX);
            (place.line(), place.column())
        };
        assert_eq!(both(0, 0), (None, None));
        assert_eq!(both(0, 5), (None, None));
        assert_eq!(both(12, 0), (Some(12), None));
        assert_eq!(both(12, 5), (Some(12), Some(5)));
        assert_eq!(both(1, 2046), (Some(1), Some(2046)));
        assert_eq!(both(1, 2047), (Some(1), None));
        assert_eq!(both(MAX_LINE_WITH_COLUMN, 2046), (Some(MAX_LINE_WITH_COLUMN), Some(2046)));
        assert_eq!(both(MAX_LINE_WITH_COLUMN + 1, 7), (Some(MAX_LINE_WITH_COLUMN + 1), None));
        assert_eq!(both(u32::MAX >> 1, 7), (Some(u32::MAX >> 1), None));
        assert_eq!(both(u32::MAX, 7), (None, None));
        assert_eq!(LineColumn::new(12, 5).to_string(), "12:5");
    }

    #[test]
    fn words_of_no_place_are_refused() {
        for bits in [
            u32::MAX,
            HAS_COLUMN,
            HAS_COLUMN | 7,
            HAS_COLUMN | 5 << LINE_BITS,
            HAS_COLUMN | 2047 << LINE_BITS | 7,
        ] {
            assert_eq!(LineColumn::from_bits(bits), None, "{bits:#x}");
        }
    }
}
