//! The expression parser of the text form: tokens to expressions.
//!
//! A precedence-climbing parser with at most two tokens of lookahead; `operators.rs` has the levels, which are Julia's.
//!
//! Prefix operators bind between shifts and `^`, and a `-` directly before a number is part of the number,
//! unless a `^` follows.
//!
//! Calls, `T{…}`, `T[…]`, `.name`, `...` and `@0x…` bind tighter than any operator. All except `...` and
//! `@0x…` follow without a blank.
//!
//! Line ends. Inside brackets a statement continues on the next line, unless that line is recognisably
//! something else (a guard, a header, a blank line, the end of the container). So an unclosed bracket is an
//! error in one statement and does not affect the rest of the file.
//!
//! Opaque text. The arguments of `$(Expr(…))` and `$(QuoteNode(…))` may hold any Julia syntax (`MethodInstance for
//! f(::Int64)`, `quote … end`). An argument that does not parse becomes [`ExprKind::Opaque`], up to its comma or
//! bracket. Only the outermost such list does this, so every token is read at most twice.
//!
//! Invariants: recursion and tree height are at most [`MAX_DEPTH`]. Cost: linear.

use std::borrow::Cow;

use super::ast::{Expr, ExprKind, Literal, Name};
use super::error::{Fault, Parse, SyntaxError};
use super::lex::{Lexer, Tok, Token, is_rail};
use super::operators::{ANNOTATION, COMPARISON, Infix, POWER, RANGE, SUM, WHERE, WHOLE, infix, is_prefix};
use crate::diag::Span;

/// The deepest nesting of expressions. Real types nest less than ten deep; the limit bounds recursion over trees, which
/// has to fit into small stacks.
pub const MAX_DEPTH: u32 = 200;

/// How a line that begins with `)` is read while a bracket is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// In a row: it closes the container, not a bracket of the row.
    Row,
    /// In a row of a dump: likewise. Julia prints some objects in special notations (`Task (runnable) @0x…`),
    /// so an argument may be opaque.
    DumpRow,
    /// In a declaration or signature: it closes the bracket.
    Declaration,
}

/// A position in the text and the token there.
#[derive(Clone)]
pub(super) struct Parser<'a> {
    src: &'a str,
    lexer: Lexer<'a>,
    tok: Token<'a>,
    /// The token after `tok` and the lexer's position after it, if it was peeked at.
    ahead: Option<(Token<'a>, Lexer<'a>)>,
    last_end: u32,
    depth: u32,
    brackets: u32,
    continuation: Continuation,
    in_opaque: bool,
    /// Whether the current item is a method, `f(::T) where T @ Base file.jl:39`.
    in_method: bool,
    /// Whether the parser is in the variable of a `where` without braces. A further `where` then applies to the whole
    /// expression before it.
    pub(super) in_variable: bool,
}

impl<'a> Parser<'a> {
    /// A parser of `src[start..end]`; `end` bounds the text even inside brackets. An error carries the offset
    /// at which reading stopped.
    pub(super) fn new(
        src: &'a str,
        start: usize,
        end: usize,
        continuation: Continuation,
    ) -> Result<Parser<'a>, (Fault, usize)> {
        let mut lexer = Lexer::new(src, start, end);
        let tok = lexer.next().map_err(|fault| (fault, lexer.pos()))?;
        let last_end = tok.span.start;
        Ok(Parser {
            src,
            lexer,
            tok,
            ahead: None,
            last_end,
            depth: 0,
            brackets: 0,
            continuation,
            in_opaque: false,
            in_method: false,
            in_variable: false,
        })
    }

    /// The offset at which reading stopped; nothing before it needs to be read again.
    pub(super) fn pos(&self) -> usize {
        self.lexer.pos()
    }

    /// The end of the last consumed token.
    pub(super) fn last_end(&self) -> u32 {
        self.last_end
    }

    pub(super) fn peek(&self) -> &Token<'a> {
        &self.tok
    }

    /// The token after the current one; [`Tok::End`] after a lexical error.
    pub(super) fn peek_second(&mut self) -> Token<'a> {
        if let Some((token, _)) = &self.ahead {
            return token.clone();
        }
        let mut lexer = self.lexer;
        match lexer.next() {
            Ok(token) => {
                self.ahead = Some((token.clone(), lexer));
                token
            }
            Err(_) => Token { tok: Tok::End, span: Span::point(self.tok.span.end), spaced: true },
        }
    }

    /// Takes the token after the current one, from `ahead` or from the lexer.
    fn next_token(&mut self) -> Parse<Token<'a>> {
        match self.ahead.take() {
            Some((token, lexer)) => {
                self.lexer = lexer;
                Ok(token)
            }
            None => self.lexer.next(),
        }
    }

    pub(super) fn advance(&mut self) -> Parse<Token<'a>> {
        let next = loop {
            let token = self.next_token()?;
            if token.tok == Tok::Newline && self.brackets > 0 && self.next_line_continues() {
                continue;
            }
            break token;
        };
        self.last_end = self.tok.span.end;
        Ok(std::mem::replace(&mut self.tok, next))
    }

    fn next_line_continues(&self) -> bool {
        let rest = &self.src[self.lexer.pos()..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\r']);
        let undented = trimmed.len() == rest.len();
        let guard = trimmed.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let closes = trimmed.starts_with(')') && (undented || trimmed.starts_with(") =>"));
        let ends =
            undented && rest.strip_prefix("end").is_some_and(|r| r.is_empty() || r.starts_with(['\n', '\r']));
        !(trimmed.is_empty()
            || trimmed.starts_with('\n')
            || guard.starts_with(is_rail)
            || rest.starts_with("# ")
            || ends
            || closes && self.continuation != Continuation::Declaration)
    }

    pub(super) fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.last_end.max(start))
    }

    pub(super) fn unexpected<T>(&self, expected: &'static str) -> Parse<T> {
        let found = match &self.tok.tok {
            Tok::Newline | Tok::Rail => "the end of the line".to_owned(),
            Tok::End => "the end of the text".to_owned(),
            _ => {
                let text = &self.src[self.tok.span.range()];
                let short: String = text.chars().take(40).collect();
                if short.len() < text.len() { format!("`{short}…`") } else { format!("`{short}`") }
            }
        };
        Err(Fault::new(SyntaxError::Unexpected { found, expected }, self.tok.span))
    }

    /// Consumes the current token if it is `tok`.
    pub(super) fn eat(&mut self, tok: &Tok<'_>) -> Parse<bool> {
        let there = self.tok.tok == *tok;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Consumes the current token if it is the name `name`.
    pub(super) fn eat_name(&mut self, name: &str) -> Parse<bool> {
        let there = self.tok.is_name(name);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Fails unless the statement ends here.
    pub(super) fn expect_end(&self) -> Parse<()> {
        if self.tok.ends_statement() { Ok(()) } else { self.unexpected("the end of the statement") }
    }

    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::new(SyntaxError::TooDeep { limit: MAX_DEPTH }, self.tok.span));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn make(&self, span: Span, kind: ExprKind<'a>) -> Parse<Expr<'a>> {
        let expr = Expr::new(span, kind);
        if u32::from(expr.height()) > MAX_DEPTH {
            return Err(Fault::new(SyntaxError::TooDeep { limit: MAX_DEPTH }, span));
        }
        Ok(expr)
    }

    /// An expression whose operators bind at least as tightly as `level`.
    pub(super) fn expr(&mut self, level: u8) -> Parse<Expr<'a>> {
        self.nested(|p| {
            let mut left = p.operand()?;
            while let Some((op, own)) = p.infix().filter(|(_, own)| own.left >= level) {
                left = p.infix_after(left, op, own)?;
            }
            Ok(left)
        })
    }

    /// Parses the type after a consumed `::`.
    pub(super) fn ty(&mut self) -> Parse<Expr<'a>> {
        self.expr(WHERE)
    }

    /// The current token and how it binds, if it is an infix operator.
    pub(super) fn infix(&self) -> Option<(&'a str, Infix)> {
        let (op, level) = match self.tok.tok {
            Tok::Op(op) => return Some((op, infix(op)?)),
            Tok::Name(op @ ("isa" | "in")) => (op, COMPARISON),
            Tok::Name(op @ "where") if !self.in_variable => (op, WHERE),
            Tok::Colon => (":", RANGE),
            Tok::Dollar => ("$", SUM),
            // `where T<:Real::Any`: the annotation applies to all of it.
            Tok::ColonColon if !self.in_variable => ("::", ANNOTATION),
            _ => return None,
        };
        Some((op, Infix::left(level)))
    }

    pub(super) fn infix_after(&mut self, left: Expr<'a>, op: &'a str, binding: Infix) -> Parse<Expr<'a>> {
        let start = left.span.start;
        self.advance()?;
        if op == "::" {
            let ty = self.expr(WHERE)?;
            return self.make(self.span_from(start), ExprKind::Annotated(Some(Box::new(left)), Box::new(ty)));
        }
        if op == "where" {
            let vars = if self.tok.tok == Tok::Open('{') {
                self.list('{', '}', false)?
            } else {
                let outer = std::mem::replace(&mut self.in_variable, true);
                let var = self.expr(COMPARISON);
                self.in_variable = outer;
                vec![var?]
            };
            return self.make(self.span_from(start), ExprKind::Where(Box::new(left), vars));
        }
        let mut args = vec![left, self.expr(binding.right)?];
        // Julia prints a call of `+`, `++` or `*` with more than two arguments as one chain.
        while matches!(op, "+" | "++" | "*") && self.tok.is_op(op) {
            self.advance()?;
            args.push(self.expr(binding.right)?);
        }
        self.make(self.span_from(start), ExprKind::Infix(op.into(), args))
    }

    /// A prefix operator with its operand, or a primary with what follows it.
    pub(super) fn operand(&mut self) -> Parse<Expr<'a>> {
        let start = self.tok.span.start;
        let Tok::Op(op) = self.tok.tok else {
            if self.tok.tok == Tok::ColonColon {
                self.advance()?;
                let ty = self.expr(WHERE)?;
                return self.make(self.span_from(start), ExprKind::Annotated(None, Box::new(ty)));
            }
            let primary = self.primary()?;
            return self.postfix(primary);
        };
        self.advance()?;
        let next = &self.tok;
        let alone = next.ends_statement()
            || matches!(next.tok, Tok::Comma | Tok::Semicolon | Tok::Close(_) | Tok::ColonColon);
        let called = next.tok == Tok::Open('(') && !next.spaced;
        if alone || called {
            let name = self.make(self.span_from(start), ExprKind::Name(op.into()))?;
            return self.postfix(name);
        }
        if !is_prefix(op) {
            let error = SyntaxError::Unexpected { found: format!("`{op}`"), expected: "a value" };
            return Err(Fault::new(error, self.span_from(start)));
        }
        if op == "-"
            && !next.spaced
            && let Tok::Literal(literal) = &next.tok
            && let Some(negative) = negated(literal)
            && !matches!(self.peek_second().tok, Tok::Op(op) if infix(op).is_some_and(|binding| binding.left == POWER))
        {
            self.advance()?;
            let value = self.make(self.span_from(start), ExprKind::Literal(negative))?;
            return self.imaginary(value);
        }
        let mut operand = self.nested(Parser::operand)?;
        // Only a power binds tighter than a prefix operator: `-x ^ 2` is `-(x ^ 2)`, as in Julia. The
        // annotation of `!%2::Bool` belongs to the statement.
        if let Some((power, binding)) = self.infix().filter(|(_, binding)| binding.left == POWER) {
            operand = self.infix_after(operand, power, binding)?;
        }
        self.make(self.span_from(start), ExprKind::Prefix(op.into(), Box::new(operand)))
    }

    fn primary(&mut self) -> Parse<Expr<'a>> {
        let start = self.tok.span.start;
        let kind = match self.tok.tok {
            Tok::Open('(') => return self.parenthesised(),
            Tok::Open('[') => ExprKind::Array(self.array()?),
            Tok::Colon => {
                // `(:)` and `Base.f(:, x)`: the colon as a value.
                if matches!(self.peek_second().tok, Tok::Close(_) | Tok::Comma) {
                    self.advance()?;
                    return self.make(self.span_from(start), ExprKind::Name(":".into()));
                }
                return self.quoted();
            }
            Tok::Dollar => return self.interpolated(),
            Tok::Name(_) | Tok::Var(_) => {
                let name = self.name("a name")?.0;
                match self.tok.tok {
                    Tok::At(slot) if !self.tok.spaced => match slot_number(slot) {
                        Some(slot) => {
                            self.advance()?;
                            ExprKind::Slot(name, slot)
                        }
                        None => return self.unexpected("a slot such as `@_2`"),
                    },
                    _ => ExprKind::Name(name),
                }
            }
            Tok::At(name) => {
                self.advance()?;
                match slot_number(name) {
                    Some(slot) => ExprKind::Slot("".into(), slot),
                    None if self.tok.tok == Tok::Open('{') && !self.tok.spaced => {
                        ExprKind::Macro(name.into(), self.list('{', '}', false)?)
                    }
                    // `@world(T, 38000:∞)`: the binding that a name had in some worlds.
                    None if name == "world" && self.tok.tok == Tok::Open('(') && !self.tok.spaced => {
                        ExprKind::Macro(name.into(), self.list('(', ')', true)?)
                    }
                    None => return self.unexpected("`{` after the macro"),
                }
            }
            Tok::Ssa(row, part) => {
                self.advance()?;
                ExprKind::Ssa(row, part)
            }
            Tok::BlockRef(block) => {
                self.advance()?;
                ExprKind::BlockRef(block)
            }
            Tok::Undef => {
                self.advance()?;
                ExprKind::Undef
            }
            Tok::Prefixed(..) => self.prefixed()?,
            Tok::Literal(_) => match self.advance()?.tok {
                Tok::Literal(literal) => {
                    let value = self.make(self.span_from(start), ExprKind::Literal(literal))?;
                    return self.imaginary(value);
                }
                _ => return self.unexpected("a literal"),
            },
            _ => return self.unexpected("a value"),
        };
        self.make(self.span_from(start), kind)
    }

    /// `r"…"i`, `s"…"`, `b"…"` as the equivalent calls: `Regex("…", "i")`, `SubstitutionString("…")`,
    /// `CodeUnits("…")`. Other prefixes yield opaque objects.
    fn prefixed(&mut self) -> Parse<ExprKind<'a>> {
        let token = self.advance()?;
        let Tok::Prefixed(prefix, bytes) = token.tok else { return self.unexpected("a string") };
        let string = |p: &Self, at, bytes| p.make(at, ExprKind::Literal(Literal::String(bytes)));
        let mut args = vec![string(self, token.span, bytes)?];
        if let (Tok::Name(flags), "r", false) = (&self.tok.tok, prefix, self.tok.spaced) {
            let flags = Cow::Borrowed(flags.as_bytes());
            let at = self.advance()?.span;
            args.push(string(self, at, flags)?);
        }
        let name = match prefix {
            "r" => "Regex",
            "s" => "SubstitutionString",
            "v" => "VersionNumber",
            "big" => "BigInt",
            "b" => "CodeUnits",
            _ => return Ok(ExprKind::Opaque),
        };
        let callee = self.make(token.span, ExprKind::Path(vec!["Base".into(), name.into()]))?;
        Ok(ExprKind::Call(Box::new(callee), args))
    }

    /// `2.0im`, which is `2.0 * im`.
    fn imaginary(&mut self, value: Expr<'a>) -> Parse<Expr<'a>> {
        if self.tok.spaced || !self.tok.is_name("im") {
            return Ok(value);
        }
        let start = value.span.start;
        let unit = self.advance()?;
        let unit = self.make(unit.span, ExprKind::Name("im".into()))?;
        self.make(self.span_from(start), ExprKind::Infix("*".into(), vec![value, unit]))
    }

    /// A plain or quoted name.
    pub(super) fn name(&mut self, expected: &'static str) -> Parse<(Name<'a>, Span)> {
        let name: Name<'a> = match &self.tok.tok {
            Tok::Name(name) => Cow::Borrowed(name),
            Tok::Var(name) => name.clone(),
            _ => return self.unexpected(expected),
        };
        Ok((name, self.advance()?.span))
    }

    /// Calls, parameters, elements, properties and splats of `base`.
    fn postfix(&mut self, mut base: Expr<'a>) -> Parse<Expr<'a>> {
        let start = base.span.start;
        loop {
            let adjacent = !self.tok.spaced;
            let kind = match self.tok.tok {
                Tok::Open('(') if adjacent => {
                    let args = self.arguments()?;
                    lowered_operand(&base, &args).unwrap_or_else(|| ExprKind::Call(Box::new(base), args))
                }
                Tok::Open('{') if adjacent => ExprKind::Curly(Box::new(base), self.list('{', '}', false)?),
                Tok::Open('[') if adjacent => ExprKind::TypedArray(Box::new(base), self.array()?),
                Tok::Dot if adjacent => self.property(base)?,
                Tok::Ellipsis => {
                    self.advance()?;
                    ExprKind::Splat(Box::new(base))
                }
                Tok::AtSign => {
                    self.advance()?;
                    if matches!(self.tok.tok, Tok::Name(_)) && self.brackets > 0 {
                        self.skip_method_place()?;
                        self.in_method = true;
                        return Ok(base);
                    }
                    let Tok::Literal(Literal::Unsigned { value, .. }) = self.tok.tok else {
                        return self.unexpected("an address after `@`");
                    };
                    self.advance()?;
                    ExprKind::Pointer(Box::new(base), value)
                }
                _ => return Ok(base),
            };
            base = self.make(self.span_from(start), kind)?;
        }
    }

    /// The source location of a method, `@ Base missing.jl:39` or `@ Main REPL[1]:1`, up to the end of the
    /// item that contains it.
    fn skip_method_place(&mut self) -> Parse<()> {
        let mut open = 0;
        loop {
            match self.tok.tok {
                Tok::Comma | Tok::Semicolon | Tok::Close(_) if open == 0 => return Ok(()),
                Tok::Open(_) => open += 1,
                Tok::Close(_) => open -= 1,
                _ if self.tok.ends_statement() => {
                    return self.unexpected("the place of a method such as `@ Base missing.jl:39`");
                }
                _ => {}
            }
            self.advance()?;
        }
    }

    /// `.name`, `.var"name"`, `.:op` and `.:(…)` after `base`.
    fn property(&mut self, base: Expr<'a>) -> Parse<ExprKind<'a>> {
        self.advance()?;
        let name: Name<'a> = if self.tok.tok == Tok::Colon {
            match self.quoted()?.kind {
                ExprKind::Symbol(name) => name,
                ExprKind::Quote(inner) => match inner.kind {
                    ExprKind::Name(name) => name,
                    _ => return self.unexpected("a name after `.`"),
                },
                _ => return self.unexpected("a name after `.`"),
            }
        } else {
            self.name("a name after `.`")?.0
        };
        Ok(match base.kind {
            ExprKind::Name(first) => ExprKind::Path(vec![first, name]),
            ExprKind::Path(mut parts) => {
                parts.push(name);
                ExprKind::Path(parts)
            }
            _ => ExprKind::Property(Box::new(base), name),
        })
    }

    /// `:name`, `:op` and `:( … )`.
    fn quoted(&mut self) -> Parse<Expr<'a>> {
        let start = self.tok.span.start;
        self.advance()?;
        let kind = match self.tok.tok {
            Tok::Name(_) | Tok::Var(_) => ExprKind::Symbol(self.name("a name")?.0),
            Tok::Op(op) => {
                self.advance()?;
                ExprKind::Symbol(op.into())
            }
            Tok::Dot | Tok::Ellipsis => {
                let dots = if self.advance()?.tok == Tok::Dot { "." } else { "..." };
                ExprKind::Symbol(dots.into())
            }
            Tok::Open('(') => {
                let second = self.peek_second();
                let sign = match second.tok {
                    Tok::Op(op) => Some(op),
                    Tok::Colon => Some(":"),
                    Tok::ColonColon => Some("::"),
                    Tok::Dot => Some("."),
                    Tok::Ellipsis => Some("..."),
                    _ => None,
                };
                let mut closes = self.src[second.span.end as usize..].chars();
                if let Some(sign) = sign.filter(|_| closes.next() == Some(')')) {
                    self.advance()?;
                    self.advance()?;
                    self.advance()?;
                    ExprKind::Symbol(sign.into())
                } else {
                    let mut items = self.list('(', ')', !self.in_opaque)?;
                    let quoted = match items.pop() {
                        Some(only) if items.is_empty() => only,
                        last => {
                            items.extend(last);
                            self.make(self.span_from(start), ExprKind::Tuple(items))?
                        }
                    };
                    ExprKind::Quote(Box::new(quoted))
                }
            }
            Tok::Literal(_) => ExprKind::Quote(Box::new(self.primary()?)),
            _ => return self.unexpected("a name or `(` after `:`"),
        };
        self.make(self.span_from(start), kind)
    }

    /// `$(Expr(…))`, `$(QuoteNode(…))`, `$(…)` and `$name`.
    fn interpolated(&mut self) -> Parse<Expr<'a>> {
        let start = self.tok.span.start;
        self.advance()?;
        let kind = if self.tok.tok == Tok::Open('(') {
            let open = self.tok.span;
            let special = self.peek_second();
            self.brackets += 1;
            self.advance()?;
            let kind = if special.is_name("Expr") {
                self.advance()?;
                self.head()?
            } else if special.is_name("QuoteNode") {
                self.advance()?;
                match <[Expr<'a>; 1]>::try_from(self.list('(', ')', !self.in_opaque)?) {
                    Ok([value]) => ExprKind::QuoteNode(Box::new(value)),
                    Err(_) => return self.unexpected("`$(QuoteNode(value))`"),
                }
            } else {
                ExprKind::Interpolation(Box::new(self.expr(WHOLE)?))
            };
            self.close('(', ')', open)?;
            kind
        } else {
            ExprKind::Interpolation(Box::new(self.nested(Parser::primary)?))
        };
        self.make(self.span_from(start), kind)
    }

    /// `(:head, args…)` after `Expr`.
    fn head(&mut self) -> Parse<ExprKind<'a>> {
        let mut args = self.list('(', ')', !self.in_opaque)?;
        if args.is_empty() {
            return self.unexpected("the head of the `Expr`");
        }
        let head = args.remove(0);
        match head.kind {
            ExprKind::Symbol(name) => Ok(ExprKind::Head(name, args)),
            _ => {
                let found = format!("`{}`", &self.src[head.span.range()]);
                let expected = "a symbol as the head of the `Expr`";
                Err(Fault::new(SyntaxError::Unexpected { found, expected }, head.span))
            }
        }
    }

    /// The operands of a call, of `%new`, π and ϒ, which may be opaque in a dump.
    pub(super) fn arguments(&mut self) -> Parse<Vec<Expr<'a>>> {
        self.list('(', ')', self.continuation == Continuation::DumpRow && !self.in_opaque)
    }

    /// A list in brackets, separated by commas or semicolons.
    pub(super) fn list(&mut self, open: char, close: char, may_be_opaque: bool) -> Parse<Vec<Expr<'a>>> {
        let at = self.open(open)?;
        let outer = std::mem::replace(&mut self.in_variable, false);
        let items = self.items(open, close, at, may_be_opaque);
        self.in_variable = outer;
        let items = items?;
        self.close(open, close, at)?;
        Ok(items)
    }

    /// The items of a list.
    fn items(&mut self, open: char, close: char, at: Span, may_be_opaque: bool) -> Parse<Vec<Expr<'a>>> {
        while self.tok.tok == Tok::Semicolon {
            self.advance()?;
        }
        if self.tok.tok == Tok::Close(close) {
            return Ok(Vec::new());
        }
        // Most types have one parameter, and most calls two arguments; a growing vector would start with
        // four.
        let mut items = Vec::with_capacity(if open == '{' { 1 } else { 2 });
        while self.tok.tok != Tok::Close(close) {
            if self.tok.ends_statement() {
                return Err(Fault::new(SyntaxError::Unclosed { open }, at));
            }
            let item = if may_be_opaque { self.item_or_opaque()? } else { self.expr(WHOLE)? };
            items.push(self.method_or(item)?);
            if !matches!(self.tok.tok, Tok::Comma | Tok::Semicolon) {
                break;
            }
            self.advance()?;
        }
        Ok(items)
    }

    /// The item, or an opaque one if it is a method: no statement here takes a method as a value.
    pub(super) fn method_or(&mut self, item: Expr<'a>) -> Parse<Expr<'a>> {
        if std::mem::take(&mut self.in_method) { self.make(item.span, ExprKind::Opaque) } else { Ok(item) }
    }

    pub(super) fn open(&mut self, open: char) -> Parse<Span> {
        if self.tok.tok != Tok::Open(open) {
            return self.unexpected(if open == '{' { "`{`" } else { "`(`" });
        }
        self.brackets += 1;
        Ok(self.advance()?.span)
    }

    /// Consumes the closing bracket. The depth decreases before the next token is read, because a line end there may end
    /// the statement.
    pub(super) fn close(&mut self, open: char, close: char, at: Span) -> Parse<()> {
        if self.tok.tok == Tok::Close(close) {
            self.brackets -= 1;
            self.advance()?;
            return Ok(());
        }
        if self.tok.ends_statement() {
            return Err(Fault::new(SyntaxError::Unclosed { open }, at));
        }
        self.unexpected(match close {
            ')' => "`,` or `)`",
            '}' => "`,` or `}`",
            _ => "`,` or `]`",
        })
    }

    /// The last operand of a statement, or an edge's operand; in a dump, one that does not parse is opaque.
    pub(super) fn last_operand(&mut self) -> Parse<Expr<'a>> {
        if self.continuation != Continuation::DumpRow {
            return self.expr(WHOLE);
        }
        let item = self.item_or_opaque()?;
        self.method_or(item)
    }

    /// Parses an argument. One that does not parse becomes opaque, up to the comma or bracket that ends it, or the end of the statement.
    fn item_or_opaque(&mut self) -> Parse<Expr<'a>> {
        let mut before = self.clone();
        self.in_opaque = true;
        let item = self.expr(WHOLE);
        self.in_opaque = false;
        let is_last = before.brackets == 0;
        let ends = match self.tok.tok {
            Tok::Comma | Tok::Semicolon | Tok::Close(_) => !is_last,
            _ => is_last && self.tok.ends_statement(),
        };
        let fault = match item {
            Ok(item) if ends => return Ok(item),
            Err(fault) if fault.is_too_deep() => return Err(fault),
            Ok(_) => None,
            Err(fault) => Some(fault),
        };
        let start = before.tok.span.start;
        let mut open = 0;
        loop {
            match before.tok.tok {
                Tok::Comma | Tok::Semicolon | Tok::Close(_) if open == 0 && !is_last => break,
                Tok::End | Tok::Newline | Tok::Rail if is_last => break,
                Tok::End | Tok::Newline | Tok::Rail => {
                    return match fault {
                        Some(fault) => Err(fault),
                        None => self.unexpected("`,` or `)`"),
                    };
                }
                Tok::Open(_) => open += 1,
                Tok::Close(_) => open -= 1,
                _ => {}
            }
            // Skips lexical errors too: the lexer advances past them.
            while before.advance().is_err() {}
        }
        *self = before;
        self.make(self.span_from(start), ExprKind::Opaque)
    }
}

/// The literal with its sign changed, for a `-` directly before it; `None` if it is not a signed number.
fn negated<'a>(literal: &Literal<'a>) -> Option<Literal<'a>> {
    match *literal {
        Literal::Int { negative: false, magnitude } => Some(Literal::Int { negative: true, magnitude }),
        Literal::Float64(value) => Some(Literal::Float64(-value)),
        Literal::Float32(value) => Some(Literal::Float32(-value)),
        _ => None,
    }
}

/// The operand that `Core.Argument(2)`, `Core.SlotNumber(2)` and `Core.SSAValue(3)` denote: Julia prints
/// operands this way where its row printer is not used, as inside `$(Expr(…))`.
fn lowered_operand<'a>(callee: &Expr<'a>, args: &[Expr<'a>]) -> Option<ExprKind<'a>> {
    let (
        ExprKind::Path(parts),
        [Expr { kind: ExprKind::Literal(Literal::Int { negative: false, magnitude }), .. }],
    ) = (&callee.kind, args)
    else {
        return None;
    };
    let [module, name] = &parts[..] else { return None };
    let number = u32::try_from(magnitude.get()).ok().filter(|_| module == "Core")?;
    match &**name {
        "Argument" | "SlotNumber" => Some(ExprKind::Slot("".into(), number)),
        "SSAValue" => Some(ExprKind::Ssa(number, 0)),
        _ => None,
    }
}

fn slot_number(name: &str) -> Option<u32> {
    name.strip_prefix('_')?.parse().ok()
}
