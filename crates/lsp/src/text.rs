//! The text of a document, and its positions in the protocol's units.
//!
//! ```text
//! bytes of UTF-8      1 ─ %1 = …          '─' is three bytes, one unit of UTF-16; '𝒙' is four bytes, two units
//! protocol            line, unit of UTF-16, both from 0; lines end with LF, CR LF or CR
//! ```
//!
//! Invariants: every position from a client is mapped to a character boundary inside the text, for all
//! numbers: a position beyond the end of a line is mapped to its end, a position inside a surrogate pair to
//! its start. [`Places`] converts ascending offsets in time linear in the text.

use brolga_ir::diag::Span;
use lsp_types::{Position, Range};

/// A text with the starts of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    starts: Vec<u32>,
}

impl Text {
    /// A text with its lines; `None` if its offsets do not fit.
    pub(crate) fn new(text: String) -> Option<Text> {
        u32::try_from(text.len()).ok()?;
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at as u32 + 1);
            }
        }
        Some(Text { text, starts })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text of a span, empty if the span is not in the text.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// The start and the bytes of a line, counted from 0, without its line end.
    fn line(&self, line: usize) -> Option<(usize, &str)> {
        let start = *self.starts.get(line)? as usize;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |&next| next as usize);
        Some((start, self.text[start..end].trim_end_matches(['\r', '\n'])))
    }

    pub(crate) fn offset(&self, position: Position) -> usize {
        let Some((start, line)) = self.line(position.line as usize) else { return self.text.len() };
        let mut units = 0;
        for (at, c) in line.char_indices() {
            units += c.len_utf16() as u32;
            if units > position.character {
                return start + at;
            }
        }
        start + line.len()
    }

    #[cfg(test)]
    pub(crate) fn position(&self, offset: u32) -> Position {
        Places::new(self).position(offset)
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        Places::new(self).range(span)
    }

    /// The range of the whole text.
    pub(crate) fn whole(&self) -> Range {
        self.range(Span::new(0, self.text.len() as u32))
    }

    /// The text with a range replaced, or all of it if there is no range. `None` if the result is too large.
    pub(crate) fn replaced(&self, range: Option<Range>, new: &str) -> Option<Text> {
        let Some(range) = range else { return Text::new(new.to_owned()) };
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        let (start, end) = (start.min(end), start.max(end));
        let mut text = String::with_capacity(self.text.len() - (end - start) + new.len());
        text.push_str(&self.text[..start]);
        text.push_str(new);
        text.push_str(&self.text[end..]);
        Text::new(text)
    }
}

/// Converts offsets to positions. Ascending offsets in a line are counted from the last one.
pub(crate) struct Places<'a> {
    text: &'a Text,
    last: usize,
    position: Position,
}

impl<'a> Places<'a> {
    pub(crate) fn new(text: &'a Text) -> Places<'a> {
        Places { text, last: 0, position: Position::new(0, 0) }
    }

    /// The position of an offset; an offset beyond the end is treated as the end.
    pub(crate) fn position(&mut self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.text.text.len());
        while !self.text.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.text.starts.partition_point(|&start| start as usize <= offset) - 1;
        let start = self.text.starts[line] as usize;
        let (from, units) =
            match self.position.line == line as u32 && self.last <= offset && start <= self.last {
                true => (self.last, self.position.character),
                false => (start, 0),
            };
        let more: usize = self.text.text[from..offset].chars().map(char::len_utf16).sum();
        self.last = offset;
        self.position = Position::new(line as u32, units + more as u32);
        self.position
    }

    pub(crate) fn range(&mut self, span: Span) -> Range {
        let start = self.position(span.start);
        Range::new(start, self.position(span.end.max(span.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::new(text.to_owned()).unwrap()
    }

    #[test]
    fn positions_count_units_of_utf16() {
        let text = text("a─𝒙b\r\n│ %1\rend\n");
        for (offset, line, character) in [
            (0, 0, 0),
            (1, 0, 1),
            (4, 0, 2),
            (8, 0, 4),
            (9, 0, 5),
            (11, 1, 0),
            (14, 1, 1),
            (18, 2, 0),
            (22, 3, 0),
        ] {
            let position = Position::new(line, character);
            assert_eq!(text.position(offset), position, "{offset}");
            assert_eq!(text.offset(position), offset as usize, "{offset}");
        }
        // Inside a character, a surrogate pair and a line end.
        assert_eq!(text.position(2), Position::new(0, 1));
        assert_eq!(text.offset(Position::new(0, 3)), 4);
        assert_eq!(text.offset(Position::new(0, 99)), 9);
        assert_eq!(text.offset(Position::new(u32::MAX, u32::MAX)), 22);
    }

    #[test]
    fn edits_of_any_numbers_are_edits() {
        let text = text("αβ\nγ");
        let edit = |a, b, c, d, new: &str| {
            let range = Range::new(Position::new(a, b), Position::new(c, d));
            text.replaced(Some(range), new).unwrap().as_str().to_owned()
        };
        assert_eq!(edit(0, 1, 1, 0, "x"), "αxγ");
        assert_eq!(edit(1, 0, 0, 1, "x"), "αxγ");
        assert_eq!(edit(7, 7, 9, 0, "x"), "αβ\nγx");
        assert_eq!(text.replaced(None, "").unwrap().as_str(), "");
    }

    #[test]
    fn rising_and_falling_offsets_agree() {
        let text = text("ab─c\nd𝒙e\n");
        let offsets: Vec<u32> = (0..=text.as_str().len() as u32).collect();
        let mut places = Places::new(&text);
        let rising: Vec<_> = offsets.iter().map(|&at| places.position(at)).collect();
        let falling: Vec<_> = offsets.iter().rev().map(|&at| places.position(at)).collect();
        assert_eq!(rising, falling.into_iter().rev().collect::<Vec<_>>());
    }
}
