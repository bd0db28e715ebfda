//! Lines to containers: which line is a header, a declaration, a row, or only decoration.
//!
//! One reader handles both containers, because each line identifies itself:
//!
//! | line | is |
//! |---|---|
//! | `# signature:`, `# types:`, `# globals:`, `# check:`, `# throws:` | a header |
//! | any other `#…` | a comment |
//! | `struct`, `mutable`, `abstract`, `primitive`, `global`, `const` | a declaration |
//! | `function …`, `low function …` | a function up to its `end` |
//! | `CodeInfo(`, `Any[CodeInfo(` | a dump up to its `)`, perhaps with `=> R` |
//! | a guard or a rail | a bare dump up to a blank line, a header or `=> R` |
//! | `julia> …`, `n-element Vector{Any}:` | decoration |
//! | `MethodInstance for …`, `Variables` | what `@code_warntype` prints, up to `Body::R` |
//!
//! A row is `[gutter] guard rails statement [gutter]`:
//!
//! ```text
//! 1252 1 ─│ %1  = intrinsic Base.ctpop_int(_2)::UInt32    │╻ count_ones
//! └┬─┘ └┬┘│ └──────────────────┬─────────────────────┘    └──── from the first rail on
//! line guard rail          statement
//! ```
//!
//! A line with only rails, or with rails and `@ file:line within …`, is debug information, not a row.
//!
//! A fault ends one row or declaration. Reading continues after the furthest position examined, so the whole
//! takes linear time for any text.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::ast::{Block, Expr, File, Function, Row, Signature};
use super::elsewhere;
use super::error::{Fault, Parse, SyntaxError};
use super::lex::{Tok, is_rail};
use super::operators::WHOLE;
use super::parse_decl;
use super::parse_expr::{Continuation, Parser};
use super::parse_row;
use crate::diag::{Diagnostic, Diagnostics, SourceFile, SourceTooLarge, Span};
use crate::op::Level;

/// Reads a whole source. The tree holds what could be read; it is complete if there are no errors.
pub fn parse(source: &SourceFile) -> (File<'_>, Diagnostics) {
    let mut reader = Reader::new(source.text());
    reader.file();
    if reader.diagnostics.has_errors()
        && let Some(language) = elsewhere::guess(source.text())
    {
        reader.diagnostics.note_at_first(language.note());
    }
    (reader.file, reader.diagnostics)
}

/// Reads a source that is one expression.
pub(super) fn parse_expr(source: &SourceFile) -> (Option<Expr<'_>>, Diagnostics) {
    let mut reader = Reader::new(source.text());
    let (expr, _) = reader.parse(0, source.text().len(), Continuation::Declaration, |p| {
        while p.eat(&Tok::Newline)? {}
        let expr = p.expr(WHOLE)?;
        while p.eat(&Tok::Newline)? {}
        p.expect_end()?;
        Ok(expr)
    });
    (expr, reader.diagnostics)
}

/// Makes a source from bytes that may not be text.
pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<SourceFile, Box<NotText>> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => SourceFile::new(name, text).map_err(|e| Box::new(NotText::TooLarge(e))),
        Cow::Owned(lossy) => {
            // The replaced text has the same offsets up to the first invalid byte.
            let valid = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len) as u32;
            let source = SourceFile::new(name, lossy).map_err(|e| Box::new(NotText::TooLarge(e)))?;
            let diagnostic = Diagnostic::error(&SyntaxError::InvalidUtf8, Span::point(valid));
            Err(Box::new(NotText::InvalidUtf8 { source, diagnostic }))
        }
    }
}

/// Why bytes are not a source.
#[derive(Clone, Debug)]
pub enum NotText {
    /// Not UTF-8; the source has the invalid bytes replaced, so that the place can be shown.
    InvalidUtf8 {
        /// The text with replacement characters.
        source: SourceFile,
        /// The finding at the first invalid byte.
        diagnostic: Diagnostic,
    },
    /// Larger than spans can address.
    TooLarge(SourceTooLarge),
}

const DECLARATIONS: [&str; 6] = ["struct", "mutable", "abstract", "primitive", "global", "const"];

/// The container of the current rows, which determines where they end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Function,
    CodeInfo,
    Bare,
}

/// How a line is attached to its block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    None,
    Header { block: u32, span: Span },
    Inside,
}

struct Lead {
    guard: Guard,
    /// The number in the left gutter.
    line: Option<u32>,
    /// Where the statement begins.
    statement: usize,
    /// Whether the line has a statement.
    has_statement: bool,
}

struct Reader<'a> {
    src: &'a str,
    /// Always at the beginning of a line, or at the end.
    pos: usize,
    file: File<'a>,
    diagnostics: Diagnostics,
    signature: Option<Signature<'a>>,
    /// Whether the previous line was stray as well: one finding is enough for both.
    stray: bool,
    /// No `@code_warntype` header that begins before this offset has an end.
    no_warntype: usize,
}

impl<'a> Reader<'a> {
    fn new(src: &'a str) -> Reader<'a> {
        Reader {
            src,
            pos: 0,
            file: File::default(),
            diagnostics: Diagnostics::default(),
            signature: None,
            stray: false,
            no_warntype: 0,
        }
    }

    /// The current line without its end, and the beginning of the next one.
    fn line(&self) -> (&'a str, usize) {
        let rest = &self.src[self.pos..];
        match rest.find('\n') {
            Some(len) => (&rest[..len], self.pos + len + 1),
            None => (rest, self.src.len()),
        }
    }

    /// Moves past the line that holds `offset`.
    fn skip_past(&mut self, offset: usize) {
        let offset = offset.max(self.pos);
        // An offset at the beginning of a line is past the line end that was read last.
        let inside = offset.saturating_sub(usize::from(offset > self.pos));
        let line_end = self.src.as_bytes()[inside..].iter().position(|&b| b == b'\n');
        self.pos = line_end.map_or(self.src.len(), |len| inside + len + 1);
    }

    fn span_of(&self, part: &str) -> Span {
        let start = part.as_ptr() as usize - self.src.as_ptr() as usize;
        Span::new(start as u32, (start + part.len()) as u32)
    }

    fn fault(&mut self, fault: Fault) {
        self.diagnostics.push(fault.into_diagnostic());
    }

    fn error(&mut self, error: SyntaxError, at: Span) {
        self.fault(Fault::new(error, at));
    }

    /// Runs `parse` on the text from `start` to `end`; `None` after a fault. Also returns where reading
    /// stopped.
    fn parse<T>(
        &mut self,
        start: usize,
        end: usize,
        continuation: Continuation,
        parse: impl FnOnce(&mut Parser<'a>) -> Parse<T>,
    ) -> (Option<T>, usize) {
        let mut parser = match Parser::new(self.src, start, end, continuation) {
            Ok(parser) => parser,
            Err((fault, pos)) => {
                self.fault(fault);
                return (None, pos);
            }
        };
        let result = parse(&mut parser);
        let pos = parser.pos();
        match result {
            Ok(value) => (Some(value), pos),
            Err(fault) => {
                self.fault(fault);
                (None, pos)
            }
        }
    }

    fn file(&mut self) {
        while self.pos < self.src.len() {
            let (line, next) = self.line();
            let text = line.trim().trim_start_matches('\u{feff}');
            let word = text.split([' ', '\t', '{', '(']).next().unwrap_or("");
            let stray = std::mem::take(&mut self.stray);
            if text.is_empty() {
                self.pos = next;
            } else if text.starts_with('#') {
                self.header(text);
                self.pos = next;
            } else if text.starts_with("julia>") {
                self.pos = next;
                while self.line().0.starts_with("       ") && self.lead(self.line().0).guard == Guard::None {
                    self.pos = self.line().1;
                }
            } else if (text.starts_with("MethodInstance for ") || text == "Variables")
                && self.warntype_header()
            {
                // The rows after it are a bare listing.
            } else if text.ends_with(':') && text.contains("-element ") {
                self.pos = next;
            } else if text.strip_prefix("Any[").unwrap_or(text).starts_with("CodeInfo(") {
                self.pos = next;
                self.dump(Container::CodeInfo, self.span_of(text));
            } else if DECLARATIONS.contains(&word) {
                self.declaration(word, text);
            } else if word == "function" || word == "low" {
                self.function(text);
            } else {
                let lead = self.lead(line);
                if lead.guard != Guard::None || !lead.has_statement {
                    self.dump(Container::Bare, Span::point(self.pos as u32));
                } else {
                    if !stray {
                        self.error(SyntaxError::StrayLine, self.span_of(text));
                    }
                    self.stray = true;
                    self.pos = next;
                }
            }
        }
        self.signature_without_body();
    }

    /// Skips the header that `@code_warntype` prints above the rows: the method, its arguments and variables,
    /// and the result. `false` if there is no such header here.
    fn warntype_header(&mut self) -> bool {
        let start = self.pos;
        if start < self.no_warntype {
            return false;
        }
        while self.pos < self.src.len() {
            let (line, next) = self.line();
            self.pos = next;
            if line.starts_with("Body::") {
                return true;
            }
            if line.starts_with("# ") || self.lead(line).guard != Guard::None {
                break;
            }
        }
        self.no_warntype = self.pos;
        self.pos = start;
        false
    }

    fn signature_without_body(&mut self) {
        if let Some(signature) = self.signature.take() {
            self.error(SyntaxError::SignatureWithoutBody, signature.span);
        }
    }

    /// A line that begins with `#`, already trimmed.
    fn header(&mut self, text: &'a str) {
        let Some((name, rest)) = text[1..].trim_start().split_once(':') else { return };
        let at = self.span_of(rest).range();
        let none = rest.trim() == "none";
        let declaration = Continuation::Declaration;
        match name {
            "signature" => {
                self.signature_without_body();
                let parsed = self.parse(at.start, at.end, declaration, |p| {
                    let signature = parse_decl::signature(p)?;
                    p.expect_end()?;
                    Ok(signature)
                });
                self.signature = parsed.0;
            }
            "types" if !none => {
                let decls = self.parse(at.start, at.end, declaration, |p| {
                    let mut decls = Vec::new();
                    while !p.peek().ends_statement() {
                        decls.push(parse_decl::type_decl(p)?);
                        while p.eat(&Tok::Semicolon)? {}
                    }
                    Ok(decls)
                });
                self.file.types.extend(decls.0.into_iter().flatten());
            }
            "globals" if !none => {
                let decls = self.parse(at.start, at.end, declaration, |p| {
                    let mut decls = Vec::new();
                    while !p.peek().ends_statement() {
                        decls.push(parse_decl::global_decl(p)?);
                        while p.eat(&Tok::Semicolon)? || p.eat(&Tok::Comma)? {}
                    }
                    Ok(decls)
                });
                self.file.globals.extend(decls.0.into_iter().flatten());
            }
            "check" => {
                let check = self.parse(at.start, at.end, declaration, parse_decl::check).0;
                self.file.checks.extend(check);
            }
            "throws" => {
                let check = self.parse(at.start, at.end, declaration, parse_decl::throws).0;
                self.file.checks.extend(check);
            }
            _ => {}
        }
    }

    fn declaration(&mut self, word: &str, text: &'a str) {
        let start = self.span_of(text).start as usize;
        let end = self.src.len();
        let is_global = matches!(word, "global" | "const");
        let read = if is_global {
            let (decl, pos) = self.parse(start, end, Continuation::Declaration, |p| {
                let decl = parse_decl::global_decl(p)?;
                p.expect_end()?;
                Ok(decl)
            });
            let read = decl.is_some();
            self.file.globals.extend(decl);
            self.skip_past(pos);
            read
        } else {
            let (decl, pos) = self.parse(start, end, Continuation::Declaration, |p| {
                let decl = parse_decl::type_decl(p)?;
                p.expect_end()?;
                Ok(decl)
            });
            let read = decl.is_some();
            self.file.types.extend(decl);
            self.skip_past(pos);
            read
        };
        if !read && !is_global {
            self.skip_broken_declaration();
        }
    }

    /// After a fault inside a `struct`, skips its remaining fields, which would otherwise be stray lines.
    fn skip_broken_declaration(&mut self) {
        while self.pos < self.src.len() {
            let (line, next) = self.line();
            let text = line.trim();
            let undented = !line.starts_with([' ', '\t']);
            if text == "end" {
                self.pos = next;
                return;
            }
            if text.is_empty() || undented {
                return;
            }
            self.pos = next;
        }
    }

    /// `function …` or `low function …`.
    fn function(&mut self, text: &'a str) {
        self.signature_without_body();
        let at = self.span_of(text);
        let (parsed, pos) = self.parse(at.start as usize, self.src.len(), Continuation::Declaration, |p| {
            let level = if p.eat_name("low")? { Level::Low } else { Level::High };
            if !p.eat_name("function")? {
                return p.unexpected("`function`");
            }
            let signature = parse_decl::signature(p)?;
            p.expect_end()?;
            Ok((level, signature))
        });
        self.skip_past(pos);
        let (level, signature) = match parsed {
            Some((level, signature)) => (level, Some(signature)),
            None => (Level::High, None),
        };
        let broken = signature.is_none();
        let function = self.body(Container::Function, level, signature, at);
        if !broken {
            self.file.functions.push(function);
        }
    }

    fn dump(&mut self, container: Container, at: Span) {
        let signature = self.signature.take();
        let function = self.body(container, Level::High, signature, at);
        self.file.functions.push(function);
    }

    /// Rows up to the end of the container.
    fn body(
        &mut self,
        container: Container,
        level: Level,
        signature: Option<Signature<'a>>,
        opened: Span,
    ) -> Function<'a> {
        let is_dump = container != Container::Function;
        let mut function =
            Function { span: opened, is_dump, level, signature, blocks: Vec::new(), shown_result: None };
        let faults = self.diagnostics.total();
        let mut closed = false;
        while !closed && self.pos < self.src.len() {
            let (line, next) = self.line();
            let text = line.trim();
            let span = self.span_of(text);
            if text.is_empty() {
                if container == Container::Bare {
                    break;
                }
                self.pos = next;
            } else if text.starts_with("# ") {
                if container != Container::Function {
                    break;
                }
                self.pos = next;
            } else if container == Container::Function && text == "end" {
                function.span = opened.to(span);
                closed = true;
                self.pos = next;
            } else if container == Container::CodeInfo && text.starts_with(')') {
                function.span = opened.to(span);
                closed = true;
                self.result_line(&mut function, span.start as usize + 1, next);
            } else if container == Container::Bare && text.starts_with("=>") {
                function.span = opened.to(span);
                self.result_line(&mut function, span.start as usize, next);
                break;
            } else {
                let lead = self.lead(line);
                if container == Container::Bare && lead.guard == Guard::None && lead.has_statement {
                    break;
                }
                function.span = opened.to(span);
                self.row_line(&mut function, container, &lead, next);
            }
        }
        if !closed && container != Container::Bare {
            let error = match container {
                Container::Function => SyntaxError::MissingEnd,
                _ => SyntaxError::Unclosed { open: '(' },
            };
            self.error(error, opened);
        }
        if function.blocks.is_empty() && self.diagnostics.total() == faults {
            self.error(SyntaxError::NoRows, function.span);
        }
        function
    }

    /// `=> R` from `start` on; an empty result is accepted as well.
    fn result_line(&mut self, function: &mut Function<'a>, start: usize, next: usize) {
        let (result, _) = self.parse(start, next, Continuation::Row, |p| {
            if p.peek().ends_statement() {
                return Ok(None);
            }
            if !p.peek().is_op("=>") {
                return p.unexpected("`=>` and the result type");
            }
            p.advance()?;
            let ty = p.expr(WHOLE)?;
            // The last dump of `Any[CodeInfo(…) => R]` closes the list, the others continue with a comma.
            let _ = p.eat(&Tok::Close(']'))? || p.eat(&Tok::Comma)?;
            p.expect_end()?;
            Ok(Some(ty))
        });
        function.shown_result = result.flatten();
        self.pos = next;
    }

    fn row_line(&mut self, function: &mut Function<'a>, container: Container, lead: &Lead, next: usize) {
        let at = Span::new(lead.statement as u32, next as u32);
        match lead.guard {
            Guard::Header { block, span } if lead.has_statement => {
                function.blocks.push(Block { number: block, span, rows: Vec::new() });
            }
            Guard::Header { block, span } => self.error(SyntaxError::EmptyBlock { block }, span),
            _ => {}
        }
        if !lead.has_statement {
            self.pos = next;
            return;
        }
        let continuation =
            if container == Container::Function { Continuation::Row } else { Continuation::DumpRow };
        let (row, pos): (Option<Row<'a>>, usize) =
            self.parse(lead.statement, self.src.len(), continuation, |p| parse_row::row(p, lead.line));
        self.skip_past(pos.max(next));
        let Some(row) = row else { return };
        match function.blocks.last_mut() {
            Some(block) if lead.guard != Guard::None => block.rows.push(row),
            _ => self.error(SyntaxError::RowOutsideBlock, Span::new(at.start, row.span.end)),
        }
    }

    /// Splits gutter, guard and rails off a line.
    fn lead(&self, line: &'a str) -> Lead {
        let line = line.trim_start_matches('\u{feff}');
        let start = self.span_of(line).start as usize;
        let mut rest = line.trim_start();
        let mut numbers: SmallVec<[(u32, Span); 2]> = SmallVec::new();
        while numbers.len() < 2 {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(number) = rest[..digits].parse::<u32>() else { break };
            if !rest[digits..].starts_with([' ', '\t']) {
                break;
            }
            numbers.push((number, self.span_of(&rest[..digits])));
            rest = rest[digits..].trim_start();
        }
        let (guard, line_number) = match (rest.chars().next(), &numbers[..]) {
            (Some('─' | '┄'), &[.., (block, span)]) => {
                let gutter = (numbers.len() == 2).then(|| numbers[0].0);
                (Guard::Header { block, span }, gutter)
            }
            (Some('│'), [] | [_]) => (Guard::Inside, numbers.first().map(|n| n.0)),
            (Some('└'), [] | [_]) if rest[3..].starts_with('─') => {
                (Guard::Inside, numbers.first().map(|n| n.0))
            }
            (Some(c), []) if is_rail(c) => (Guard::None, None),
            (Some('@'), []) => (Guard::None, None),
            _ => {
                let statement = start + (line.len() - line.trim_start().len());
                return Lead {
                    guard: Guard::None,
                    line: None,
                    statement,
                    has_statement: !line.trim().is_empty(),
                };
            }
        };
        let body = rest.trim_start_matches(|c: char| is_rail(c) || c.is_whitespace());
        let statement = start + line.len() - body.len();
        let has_statement = !body.is_empty() && !body.starts_with("@ ");
        Lead { guard, line: line_number, statement, has_statement }
    }
}
