//! Diagnostics: errors in an input with their places and evidence, and the one renderer that shows them.
//!
//! Finding and showing are separate. A reader or verifier holds its finding as an enum with data; the enum's `Display`
//! makes the sentence and [`Finding::code`] the name that tests and documents use. The renderer depends on neither.
//!
//! ```text
//! error[syntax-unclosed]: `(` is never closed
//!   --> fib.jlir:3:21
//!    |
//!  3 | 1 ─ %1 = slt_int(n, 2
//!    |                 -     ^ the statement ends here
//!    |                 opened here
//!    = evidence that has no place
//! ```
//!
//! Places are byte offsets into one source. Columns are counted in characters, from 1. The caller provides colours:
//! a [`Style`] is a set of escape strings, and this crate only has the empty one.
//!
//! Cost: a diagnostic is found and rendered in time linear in its own size and logarithmic in the source's;
//! of a line longer than `LINE_WINDOW` only the part around the mark is shown, so the output of a bad
//! one-line file stays readable.

use std::fmt::{self, Display, Write};
use std::ops::Range;

/// Maximum number of characters of a source line that are shown.
const LINE_WINDOW: usize = 160;

/// A number of things: `1 argument`, `2 arguments`, `at least 1 argument`.
///
/// ```
/// use brolga_ir::diag::counted;
/// assert_eq!([0, 1, 2].map(|count| counted(count, "argument")), ["0 arguments", "1 argument", "2 arguments"]);
/// ```
pub fn counted(count: impl Display, noun: impl Display) -> String {
    let count = count.to_string();
    let plural = if count == "1" || count == "at least 1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A half-open range of byte offsets in one source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`.
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The empty span at `at`.
    pub const fn point(at: u32) -> Span {
        Span { start: at, end: at }
    }

    /// The smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The span as a range for slicing the source.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A source text with its name and the starts of its lines.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    line_starts: Vec<u32>,
}

/// The source is larger than a [`Span`] can address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceTooLarge {
    /// Size of the refused text in bytes.
    pub bytes: usize,
}

impl Display for SourceTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the source has {} bytes; at most {} can be read", self.bytes, u32::MAX)
    }
}

impl std::error::Error for SourceTooLarge {}

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
}

impl SourceFile {
    /// Makes a source from `text`, under the name that diagnostics show.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Result<SourceFile, SourceTooLarge> {
        let text = text.into();
        if u32::try_from(text.len()).is_err() {
            return Err(SourceTooLarge { bytes: text.len() });
        }
        let mut line_starts = vec![0];
        line_starts
            .extend(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at as u32 + 1));
        Ok(SourceFile { name: name.into(), text, line_starts })
    }

    /// The name that diagnostics show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if the span is not in this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// The number of lines; a text that ends with a newline has an empty last line.
    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// The span of a line (from 1) without its line end; empty if there is no such line.
    pub fn line_span(&self, line: u32) -> Span {
        let index = (line as usize).wrapping_sub(1);
        let Some(&start) = self.line_starts.get(index) else { return Span::point(self.text.len() as u32) };
        let end = self.line_starts.get(index + 1).map_or(self.text.len() as u32, |next| next - 1);
        let line = &self.text[start as usize..end as usize];
        Span::new(start, start + line.trim_end_matches('\r').len() as u32)
    }

    /// Line and column of a byte offset; offsets beyond the end count as the end.
    pub fn position(&self, offset: u32) -> Position {
        let offset = self.floor_char(offset);
        let line = self.line_starts.partition_point(|&start| start <= offset as u32);
        let start = self.line_starts[line - 1] as usize;
        Position { line: line as u32, column: self.text[start..offset].chars().count() as u32 + 1 }
    }

    /// The nearest character boundary at or before an offset.
    fn floor_char(&self, offset: u32) -> usize {
        let mut at = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input can be used.
    Warning,
    /// The input cannot be used.
    Error,
}

impl Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// An error enum whose variants are findings: `Display` makes the sentence, `code` names the rule.
pub trait Finding: Display {
    /// The stable name of the broken rule, such as `ssa-dominance`.
    fn code(&self) -> &'static str;
}

/// One finding about one place of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The stable name of the broken rule.
    pub code: &'static str,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// The offending place.
    pub at: Span,
    /// A few words shown at the offending place; may be empty.
    pub label: String,
    /// Further places that explain the finding, each with a few words.
    pub related: Vec<(Span, String)>,
    /// Evidence without a place.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A finding that makes the input unusable.
    pub fn error(finding: &dyn Finding, at: Span) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: finding.code(),
            message: finding.to_string(),
            at,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A finding that the user should see, but which is not an error.
    pub fn warning(finding: &dyn Finding, at: Span) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(finding, at) }
    }

    /// Adds words at the offending place.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a further place with its label.
    #[must_use]
    pub fn with_related(mut self, at: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push((at, label.into()));
        self
    }

    /// Adds evidence without a place.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// The finding as text, with the source lines that it refers to. Ends with a newline.
    pub fn render(&self, source: &SourceFile, style: &Style) -> String {
        Rendering { source, style, out: String::new() }.diagnostic(self)
    }
}

/// Findings about one input, in the order in which they were made, up to a limit.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    cap: usize,
    dropped: usize,
    errors: usize,
}

impl Default for Diagnostics {
    /// Keeps the first hundred: more are mostly consequences of one cause.
    fn default() -> Diagnostics {
        Diagnostics::with_cap(100)
    }
}

impl Diagnostics {
    /// Keeps at most `cap` findings and counts the others.
    pub fn with_cap(cap: usize) -> Diagnostics {
        Diagnostics { list: Vec::new(), cap, dropped: 0, errors: 0 }
    }

    /// Adds a finding, or only counts it if the limit is reached.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.list.len() < self.cap {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds evidence to the first finding.
    pub(crate) fn note_at_first(&mut self, note: &str) {
        if let Some(first) = self.list.first_mut() {
            first.notes.push(note.to_owned());
        }
    }

    /// Adds an error at a place.
    pub fn error(&mut self, finding: &dyn Finding, at: Span) {
        self.push(Diagnostic::error(finding, at));
    }

    /// The findings that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// True if a finding makes the input unusable, kept or not.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// True if nothing was found.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// All findings, kept or not.
    pub fn total(&self) -> usize {
        self.list.len() + self.dropped
    }

    /// Findings that were counted but not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// All findings as text, separated by blank lines, and how many were left out.
    pub fn render(&self, source: &SourceFile, style: &Style) -> String {
        let mut out = String::new();
        for diagnostic in &self.list {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&diagnostic.render(source, style));
        }
        if self.dropped > 0 {
            let _ = write!(out, "\n… and {} more\n", self.dropped);
        }
        out
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// Escape strings around the parts of a rendered finding.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Before `error` and its marks.
    pub error: &'static str,
    /// Before `warning` and its marks.
    pub warning: &'static str,
    /// Before the message.
    pub message: &'static str,
    /// Before line numbers, bars and arrows.
    pub frame: &'static str,
    /// Before the marks of further places.
    pub related: &'static str,
    /// After each of the above.
    pub reset: &'static str,
}

impl Style {
    /// No escapes.
    pub const PLAIN: Style = Style { error: "", warning: "", message: "", frame: "", related: "", reset: "" };
}

struct Rendering<'a> {
    source: &'a SourceFile,
    style: &'a Style,
    out: String,
}

/// A mark under a source line, in characters of that line.
struct Mark<'a> {
    line: u32,
    columns: Range<usize>,
    primary: bool,
    label: &'a str,
}

impl Rendering<'_> {
    fn diagnostic(mut self, d: &Diagnostic) -> String {
        let s = self.style;
        let colour = match d.severity {
            Severity::Error => s.error,
            Severity::Warning => s.warning,
        };
        let _ = writeln!(
            self.out,
            "{colour}{}[{}]{}: {}{}{}",
            d.severity, d.code, s.reset, s.message, d.message, s.reset
        );
        let mut marks = vec![self.mark(d.at, &d.label, true)];
        marks.extend(d.related.iter().map(|(at, label)| self.mark(*at, label, false)));
        marks.sort_by_key(|m| (m.line, m.columns.start, m.columns.end));
        let width = marks.iter().map(|m| m.line).max().unwrap_or(1).to_string().len();
        let at = self.source.position(d.at.start);
        let (frame, reset) = (s.frame, s.reset);
        let _ = writeln!(
            self.out,
            "{:width$} {frame}-->{reset} {}:{}:{}",
            "",
            self.source.name(),
            at.line,
            at.column
        );
        let _ = writeln!(self.out, "{:width$}  {frame}|{reset}", "");
        for group in marks.chunk_by(|a, b| a.line == b.line) {
            self.line(group, width, colour);
        }
        for note in &d.notes {
            let _ = writeln!(self.out, "{:width$}  {frame}={reset} {note}", "");
        }
        self.out
    }

    /// A mark covers the part of its span on the span's first line, and at least one column.
    fn mark<'a>(&self, at: Span, label: &'a str, primary: bool) -> Mark<'a> {
        let start = self.source.position(at.start);
        let line_end = self.source.line_span(start.line).end;
        let end = self.source.position(at.end.min(line_end).max(at.start));
        let first = start.column as usize - 1;
        let last = if end.line == start.line { end.column as usize - 1 } else { first };
        Mark { line: start.line, columns: first..last.max(first + 1), primary, label }
    }

    fn line(&mut self, marks: &[Mark<'_>], width: usize, colour: &str) {
        let (frame, reset) = (self.style.frame, self.style.reset);
        let number = marks[0].line;
        let text = self.source.slice(self.source.line_span(number));
        let focus = marks.iter().find(|m| m.primary).unwrap_or(&marks[0]).columns.start;
        let skipped = if focus > LINE_WINDOW * 3 / 4 { focus - LINE_WINDOW / 2 } else { 0 };
        let mut shown: String = text.chars().skip(skipped).take(LINE_WINDOW).map(printable).collect();
        if skipped > 0 {
            shown.replace_range(..shown.chars().next().map_or(0, char::len_utf8), "…");
        }
        let _ = writeln!(self.out, " {frame}{number:width$} |{reset} {}", shown.trim_end());
        for mark in marks {
            let columns = mark.columns.start.saturating_sub(skipped).min(LINE_WINDOW)
                ..mark.columns.end.saturating_sub(skipped).min(LINE_WINDOW + 1);
            let glyph = if mark.primary { "^" } else { "-" };
            let colour = if mark.primary { colour } else { self.style.related };
            let under = glyph.repeat(columns.len().max(1));
            // The escape that ends the colour would otherwise leave a trailing blank.
            let label = if mark.label.is_empty() { String::new() } else { format!(" {}", mark.label) };
            let _ = writeln!(
                self.out,
                " {frame}{:width$} |{reset} {:pad$}{colour}{under}{label}{reset}",
                "",
                "",
                pad = columns.start
            );
        }
    }
}

/// Tabs and control characters would shift the marks.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl Display for Broken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`v1` is defined in block1, which does not dominate its use in block2")
        }
    }

    impl Finding for Broken {
        fn code(&self) -> &'static str {
            "ssa-dominance"
        }
    }

    #[test]
    fn renders_places_and_notes() {
        let text = "a\nb\nc\nd\n    v1 = add v0, v0\nf\ng\n    return v1\n";
        let source = SourceFile::new("dir/t.jlir", text).unwrap();
        let def = text.find("v1").unwrap() as u32;
        let used = text.rfind("v1").unwrap() as u32;
        let d = Diagnostic::error(&Broken, Span::new(used, used + 2))
            .with_label("used here")
            .with_related(Span::new(def, def + 2), "defined here")
            .with_note("path that skips the definition: block0 -> block2");
        let expected = "\
error[ssa-dominance]: `v1` is defined in block1, which does not dominate its use in block2
  --> dir/t.jlir:8:12
   |
 5 |     v1 = add v0, v0
   |     -- defined here
 8 |     return v1
   |            ^^ used here
   = path that skips the definition: block0 -> block2
";
        assert_eq!(d.render(&source, &Style::PLAIN), expected);
    }

    #[test]
    fn positions_count_characters() {
        let source = SourceFile::new("t", "│ φ\r\n\tx").unwrap();
        assert_eq!(source.position(4), Position { line: 1, column: 3 });
        assert_eq!(source.position(5), Position { line: 1, column: 3 });
        assert_eq!(source.position(999), Position { line: 2, column: 3 });
        assert_eq!(source.slice(source.line_span(1)), "│ φ");
        assert_eq!(source.line_span(7), Span::point(10));
    }

    #[test]
    fn long_lines_are_shown_around_the_mark() {
        let text = format!("{}bad{}", "x".repeat(5000), "y".repeat(5000));
        let source = SourceFile::new("t", text).unwrap();
        let shown = Diagnostic::error(&Broken, Span::new(5000, 5003)).render(&source, &Style::PLAIN);
        assert!(shown.lines().all(|line| line.chars().count() < LINE_WINDOW + 20));
        let lines: Vec<&str> = shown.lines().collect();
        let column = lines[4].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[3].chars().nth(column), Some('b'));
    }

    #[test]
    fn the_cap_counts_what_it_drops() {
        let mut all = Diagnostics::with_cap(2);
        for _ in 0..5 {
            all.error(&Broken, Span::default());
        }
        assert_eq!((all.iter().count(), all.dropped()), (2, 3));
        assert!(all.has_errors());
    }
}
