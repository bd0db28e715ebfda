//! The normal form of a source, with its comments.
//!
//! The printer has the program but not its text, so this file transfers the comments. A comment belongs to
//! the declaration, test or function that starts after it; comments after the last one end the file.
//!
//! ```text
//! # about the file                            # about the file
//!
//! # about f                                   # about f
//! function f( x::Int64 )               ──►    function f(x::Int64)::Int64
//! ```
//!
//! The normal form cannot hold a comment inside a function or declaration; such a source is refused, so that no comment
//! is lost.

use std::fmt;

use brolga_ir::diag::{Diagnostics, Finding, SourceFile, Span};
use brolga_ir::module::GlobalKind;
use brolga_ir::text::{Unit, parse, show_unit};

use crate::error::{Broken, Error};

/// A comment that the normal form cannot hold.
struct StrayComment;

impl fmt::Display for StrayComment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this comment is inside a function or declaration, where the normal form has none")
    }
}

impl Finding for StrayComment {
    fn code(&self) -> &'static str {
        "format-comment"
    }
}

/// A declaration, test or function: its kind and index, and its first and last line, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    first: u32,
    last: u32,
    key: (Kind, usize),
}

/// The kind of an item. Items of one kind are in the same order in a source and in its normal form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Type,
    Global,
    Check,
    Function,
}

/// Returns the normal form of a source; `unit` is the result of reading it.
pub fn format(source: &SourceFile, unit: &Unit) -> Result<String, Error> {
    let items = items(source);
    let mut strays = Diagnostics::default();
    for item in &items {
        for line in item.first..=item.last {
            let span = source.line_span(line);
            // A test is itself written as a comment, and so are declarations in a dump.
            if item.key.0 != Kind::Check
                && !is_header(source.slice(span))
                && let Some(at) = comment_in(source.slice(span))
            {
                strays.error(&StrayComment, Span::new(span.start + at as u32, span.end));
            }
        }
    }
    if strays.has_errors() {
        return Err(Box::new(Broken { source: source.clone(), findings: strays }).into());
    }
    let printed = SourceFile::new(source.name(), show_unit(unit).to_string())?;
    let targets = self::items(&printed);
    let mut text = String::new();
    let mut next_line = 1;
    for target in &targets {
        copy_lines(&mut text, &printed, next_line, target.first);
        if let Some(at) = items.iter().position(|item| item.key == target.key) {
            let from = at.checked_sub(1).map_or(1, |before| items[before].last + 1);
            comments(&mut text, source, from, items[at].first);
        }
        copy_lines(&mut text, &printed, target.first, target.last + 1);
        next_line = target.last + 1;
    }
    copy_lines(&mut text, &printed, next_line, printed.line_count());
    comments(&mut text, source, items.last().map_or(1, |item| item.last + 1), source.line_count() + 1);
    Ok(text.trim_end().to_owned() + "\n")
}

/// Everything in a source except comments, in order.
fn items(source: &SourceFile) -> Vec<Item> {
    let (file, _) = parse(source);
    let line = |at: u32| source.position(at).line;
    let item = |kind, index, span: Span| Item {
        first: line(span.start),
        last: line(span.end.max(span.start + 1) - 1),
        key: (kind, index),
    };
    let mut items = Vec::new();
    items.extend(file.types.iter().enumerate().map(|(n, decl)| item(Kind::Type, n, decl.span)));
    // The module does not contain `const`s, so the normal form does not show them.
    let globals = file.globals.iter().filter(|decl| decl.kind != GlobalKind::Constant);
    items.extend(globals.enumerate().map(|(n, decl)| item(Kind::Global, n, decl.span)));
    items.extend(file.checks.iter().enumerate().map(|(n, check)| item(Kind::Check, n, check.span)));
    items.extend(file.functions.iter().enumerate().map(|(n, f)| item(Kind::Function, n, f.span)));
    items.sort();
    items
}

/// Appends the lines of `source` from `first` up to but excluding `end`.
fn copy_lines(text: &mut String, source: &SourceFile, first: u32, end: u32) {
    for line in first..end {
        text.push_str(source.slice(source.line_span(line)));
        text.push('\n');
    }
}

/// Appends the comments between two lines of a source, a blank line between blocks and none before the item if there was
/// none.
fn comments(text: &mut String, source: &SourceFile, first: u32, end: u32) {
    let mut blank = false;
    let mut any = false;
    for line in first..end {
        let line = source.slice(source.line_span(line)).trim();
        if line.starts_with('#') && !is_header(line) {
            if blank && any {
                text.push('\n');
            }
            text.push_str(line);
            text.push('\n');
            any = true;
        }
        blank = line.is_empty();
    }
    if blank && any {
        text.push('\n');
    }
}

/// Whether a line of a dump looks like a comment but is not.
fn is_header(line: &str) -> bool {
    ["# signature:", "# types:", "# globals:"].iter().any(|header| line.starts_with(header))
}

/// Where a comment starts in a line; quotes are respected.
fn comment_in(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' => quote = Some(c),
            // A quoted character is never a `#` and a blank, so only strings need to be skipped.
            None if c == '#' && line[at + 1..].chars().next().is_none_or(char::is_whitespace) => {
                return Some(at);
            }
            None if line[at..].starts_with("#=") => return Some(at),
            None => {}
        }
    }
    None
}
