//! The lexer of the text form: characters to tokens.
//!
//! Its only state is a position in the text. It is `Copy` and returns one token per call; a caller looks
//! ahead by lexing with a copy. Julia's printed IR has some special tokens:
//!
//! | text | token |
//! |---|---|
//! | `%3`, `%3.1` | a row's result, one of its further results |
//! | `%new` | a statement head |
//! | `#3`, `#undef` | a block, an undefined value |
//! | `#self#`, `#3#x` | names that begin with `#` |
//! | `@_2`, `@NamedTuple` | a slot, a macro |
//! | `│` and its family outside literals | the end of the statement: guards, rails and gutters |
//!
//! A `#` before a blank begins a comment that extends to the end of the line. A comment `#= … =#` ends on its line.
//!
//! Invariants: every call advances unless the end is reached; spans are on character boundaries; nothing
//! panics. Cost: each character is read a bounded number of times. Nearly all characters are ASCII; a table
//! classifies these, and only the others are decoded.

use std::borrow::Cow;

use super::ast::Literal;
use super::error::{Fault, Parse, SyntaxError};
use super::literal;
use super::operators::is_suffix;
use crate::diag::Span;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok<'a> {
    /// A name; keywords are names too.
    Name(&'a str),
    /// `var"…"`, unescaped.
    Var(Cow<'a, str>),
    /// `%3` and `%3.1`.
    Ssa(u32, u32),
    /// `%new`: the name after the sign.
    Percent(&'a str),
    /// `#3`.
    BlockRef(u32),
    /// `#undef`.
    Undef,
    /// `@name`: the name after the sign.
    At(&'a str),
    /// `@` before a digit, or before a character that cannot be part of a name.
    AtSign,
    Literal(Literal<'a>),
    /// `r"…"`, `b"…"`, `dateformat"…"` and so on: the prefix and the bytes. `` `…` `` has the prefix `cmd`.
    Prefixed(&'a str, Cow<'a, [u8]>),
    /// An operator, dotted or not.
    Op(&'a str),
    Open(char),
    Close(char),
    Comma,
    Semicolon,
    Colon,
    ColonColon,
    Dot,
    Ellipsis,
    Dollar,
    /// A box-drawing character.
    Rail,
    Newline,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) tok: Tok<'a>,
    pub(super) span: Span,
    /// Whether a blank, a line end or the start of the text precedes it.
    pub(super) spaced: bool,
}

impl Token<'_> {
    pub(super) fn is_op(&self, op: &str) -> bool {
        matches!(self.tok, Tok::Op(o) if o == op)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.tok, Tok::Name(n) if n == name)
    }

    /// Whether a statement ends before this token.
    pub(super) fn ends_statement(&self) -> bool {
        matches!(self.tok, Tok::Newline | Tok::End | Tok::Rail)
    }
}

/// Operators of more than one character, each before its prefixes.
const LONG_OPERATORS: [&str; 39] = [
    ">>>=", "<-->", "-->", "<--", "===", "!==", ">>>", "<<=", ">>=", "//=", "==", "!=", "<=", ">=", "=>",
    "->", "<:", ">:", "<<", ">>", "//", "&&", "||", "|>", "<|", "++", "+=", "-=", "*=", "/=", "%=", "^=",
    "&=", "|=", "~=", "\\=", "--", "÷=", "⊻=",
];

const OPERATOR_CHARS: &str = "+-*/\\^%&|~!<>=?";

/// A blank within a line.
const BLANK: u8 = 1;
/// A character that continues a name.
const NAME: u8 = 2;
/// A decimal digit.
const DIGIT: u8 = 4;
/// A character of an operator.
const OPERATOR: u8 = 8;

/// The classes of the ASCII characters, as bits.
const CLASSES: [u8; 128] = classes();

const fn classes() -> [u8; 128] {
    let mut classes = [0; 128];
    let operators = OPERATOR_CHARS.as_bytes();
    let mut n = 0;
    while n < operators.len() {
        classes[operators[n] as usize] |= OPERATOR;
        n += 1;
    }
    let mut byte = 0u8;
    while byte < 128 {
        let mut class = match byte {
            b'\t' | 0x0b | 0x0c | b'\r' | b' ' => BLANK,
            b'0'..=b'9' => DIGIT | NAME,
            _ => 0,
        };
        if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'!' {
            class |= NAME;
        }
        classes[byte as usize] |= class;
        byte += 1;
    }
    classes
}

/// Whether a byte is an ASCII character of this class.
fn is_of(class: u8, byte: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|of| of & class != 0)
}

/// Whether a character is a blank within a line.
fn is_blank(c: char) -> bool {
    c != '\n' && (c.is_whitespace() || c == '\u{feff}')
}

/// Box-drawing characters: guards, rails and gutters of printed IR.
pub(super) fn is_rail(c: char) -> bool {
    ('\u{2500}'..='\u{257f}').contains(&c)
}

/// Julia's operators: the ASCII ones, arrows and mathematical symbols, except the symbols that Julia treats as letters.
fn is_operator_char(c: char) -> bool {
    match c {
        _ if c.is_ascii() => OPERATOR_CHARS.contains(c),
        '¬'
        | '±'
        | '×'
        | '÷'
        | '·'
        | '\u{387}'
        | '¦'
        | '…'
        | '⁝'
        | '⅋'
        | '⌿'
        | '▷'
        | '\u{ffe9}'..='\u{ffec}' => true,
        '\u{2b30}'..='\u{2b4c}'
        | '\u{2190}'..='\u{21ff}'
        | '\u{27c0}'..='\u{27ff}'
        | '\u{2900}'..='\u{297f}' => true,
        '\u{2200}'..='\u{22ff}' => {
            !matches!(
                c,
                '∀' | '∁'
                    | '∂'
                    | '∃'
                    | '∄'
                    | '∅'
                    | '∆'
                    | '∇'
                    | '∎'
                    | '∏'
                    | '∐'
                    | '∑'
                    | '∞'
                    | '⊤'
                    | '⊥'
            ) && !('\u{221f}'..='\u{2222}').contains(&c)
                && !('\u{222b}'..='\u{2233}').contains(&c)
        }
        '\u{2a00}'..='\u{2a06}' | '\u{2a09}'..='\u{2a1c}' => false,
        '\u{2980}'..='\u{2aff}' => true,
        _ => false,
    }
}

/// Characters that can begin a name. A superset of [`ident::is_start`](crate::ident::is_start), which decides what the
/// printer *writes* without quotes: Julia prints most symbols bare.
fn begins_name(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic() || c == '_';
    }
    let punctuation = matches!(c,
        '\u{80}'..='\u{a1}' | '«' | '»' | '¿' | '§' | '¶' | '\u{2000}'..='\u{2031}'
        | '\u{2038}'..='\u{2056}' | '\u{2058}'..='\u{206f}' | '\u{2300}'..='\u{230b}' | '\u{2329}' | '\u{232a}'
        | '\u{3000}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}');
    !punctuation && !c.is_whitespace() && !c.is_control() && !is_rail(c) && !is_operator_char(c)
}

fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit() || c == '!'
}

/// Whether `text` lexes as a single operator.
pub(super) fn is_operator(text: &str) -> bool {
    let token = Lexer::new(text, 0, text.len()).next();
    matches!(token, Ok(Token { tok: Tok::Op(op), .. }) if op.len() == text.len())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    /// The text, cut at the end of the range to read.
    src: &'a str,
    pos: usize,
}

impl<'a> Lexer<'a> {
    /// Reads `src[start..end]`; both are character boundaries.
    pub(super) fn new(src: &'a str, start: usize, end: usize) -> Lexer<'a> {
        Lexer { src: &src[..end], pos: start }
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    fn rest(&self) -> &'a str {
        &self.src[self.pos..]
    }

    /// The byte `distance` bytes after the position.
    fn byte(&self, distance: usize) -> Option<u8> {
        self.src.as_bytes().get(self.pos + distance).copied()
    }

    fn peek_char(&self) -> Option<char> {
        match self.byte(0)? {
            byte if byte.is_ascii() => Some(char::from(byte)),
            _ => self.rest().chars().next(),
        }
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start as u32, self.pos as u32)
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.pos += len;
        &rest[..len]
    }

    /// Takes ASCII characters of the class, and other characters for which `keep` returns true.
    fn take_class(&mut self, class: u8, keep: impl Fn(char) -> bool) -> &'a str {
        let start = self.pos;
        while let Some(byte) = self.byte(0) {
            if byte.is_ascii() {
                if !is_of(class, byte) {
                    break;
                }
                self.pos += 1;
            } else {
                let Some(c) = self.peek_char().filter(|&c| keep(c)) else { break };
                self.pos += c.len_utf8();
            }
        }
        &self.src[start..self.pos]
    }

    /// Takes the characters that continue a name.
    fn take_name(&mut self) -> &'a str {
        self.take_class(NAME, continues_name)
    }

    /// Takes decimal digits.
    fn take_digits(&mut self) -> &'a str {
        self.take_class(DIGIT, |_| false)
    }

    /// Skips blanks and comments; true if there were any.
    fn skip_blanks(&mut self) -> bool {
        let start = self.pos;
        loop {
            self.take_class(BLANK, is_blank);
            if self.byte(0) != Some(b'#') {
                break;
            }
            let Some(comment) = self.rest().strip_prefix('#') else { break };
            // Only a comment searches for the end of its line: a φ with many edges is one long line with many `#`.
            let line = || comment.split('\n').next().unwrap_or("");
            match comment.chars().next() {
                Some('=') => match line().find("=#") {
                    Some(len) => self.pos += 1 + len + 2,
                    None => break,
                },
                Some(c) if !c.is_whitespace() => break,
                _ => self.pos += 1 + line().len(),
            }
        }
        self.pos > start
    }

    /// The next token. After an error the position is past the offending text.
    pub(super) fn next(&mut self) -> Parse<Token<'a>> {
        let at_start = self.pos == 0;
        let spaced = self.skip_blanks() || at_start || self.src.as_bytes()[self.pos - 1] == b'\n';
        let start = self.pos;
        let tok = self.token(start)?;
        Ok(Token { tok, span: self.span_from(start), spaced })
    }

    fn token(&mut self, start: usize) -> Parse<Tok<'a>> {
        let Some(c) = self.peek_char() else { return Ok(Tok::End) };
        if c.is_ascii_digit() {
            return self.number();
        }
        if begins_name(c) {
            return self.name();
        }
        let simple = match c {
            '\n' => Some(Tok::Newline),
            '(' | '[' | '{' => Some(Tok::Open(c)),
            ')' | ']' | '}' => Some(Tok::Close(c)),
            ',' => Some(Tok::Comma),
            ';' => Some(Tok::Semicolon),
            '$' => Some(Tok::Dollar),
            _ if is_rail(c) => Some(Tok::Rail),
            _ => None,
        };
        if let Some(tok) = simple {
            self.pos += c.len_utf8();
            return Ok(tok);
        }
        match c {
            '"' => {
                let body = self.quoted('"', SyntaxError::UnterminatedString)?;
                literal::string(self.src, body).map(|s| Tok::Literal(Literal::String(s)))
            }
            '\'' => {
                let body = self.quoted('\'', SyntaxError::UnterminatedChar)?;
                literal::character(self.src, body).map(|c| Tok::Literal(Literal::Char(c)))
            }
            '`' => {
                let body = self.quoted('`', SyntaxError::UnterminatedString)?;
                Ok(Tok::Prefixed("cmd", self.src[body.range()].as_bytes().into()))
            }
            '%' => self.percent(),
            '#' => self.hash(),
            '@' => {
                self.pos += 1;
                let name = self.take_name();
                let digits = name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit());
                if digits {
                    self.pos = start + 1;
                }
                Ok(if digits { Tok::AtSign } else { Tok::At(name) })
            }
            ':' | '.' => Ok(self.dots()),
            _ if is_operator_char(c) => Ok(self.operator(start)),
            _ => {
                self.pos += c.len_utf8();
                Err(Fault::new(SyntaxError::StrayCharacter { found: c }, self.span_from(start)))
            }
        }
    }

    fn name(&mut self) -> Parse<Tok<'a>> {
        let start = self.pos;
        let mut name = self.take_name();
        // `f!=g` compares; `f!(x)` calls.
        if name.ends_with('!') && self.rest().starts_with('=') && !self.rest().starts_with("==") {
            name = &name[..name.len() - 1];
            self.pos -= 1;
        }
        if name == "var" && self.rest().starts_with('"') {
            let body = self.quoted('"', SyntaxError::UnterminatedString)?;
            return Ok(Tok::Var(literal::raw_name(&self.src[body.range()])));
        }
        if !matches!(name, "var" | "return" | "not" | "in" | "isa") && self.rest().starts_with('"') {
            let body = self.quoted('"', SyntaxError::UnterminatedString)?;
            let bytes = match name {
                "b" => literal::string(self.src, body)?,
                _ => match literal::raw_name(&self.src[body.range()]) {
                    Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                },
            };
            return Ok(Tok::Prefixed(name, bytes));
        }
        debug_assert!(self.pos > start);
        Ok(Tok::Name(name))
    }

    /// Skips a quoted literal, which ends on its line; returns the span between the quotes.
    fn quoted(&mut self, quote: char, unterminated: SyntaxError) -> Parse<Span> {
        let open = self.pos;
        self.pos += 1;
        let start = self.pos;
        loop {
            self.take_while(|c| c != quote && c != '\\' && c != '\n');
            match self.peek_char() {
                Some('\\') => {
                    self.pos += 1;
                    if let Some(c) = self.peek_char().filter(|&c| c != '\n') {
                        self.pos += c.len_utf8();
                    }
                }
                Some(c) if c == quote && !(quote == '\'' && self.pos == start) => {
                    let body = self.span_from(start);
                    self.pos += 1;
                    return Ok(body);
                }
                // The character `'''` is a quote between quotes.
                Some(c) if c == quote => self.pos += 1,
                _ => return Err(Fault::new(unterminated, self.span_from(open))),
            }
        }
    }

    fn number(&mut self) -> Parse<Tok<'a>> {
        let start = self.pos;
        if let Some(magnitude) = self.small_number() {
            return Ok(Tok::Literal(Literal::Int { negative: false, magnitude: magnitude.into() }));
        }
        let radix = match self.rest().as_bytes() {
            [b'0', b'x', ..] => 16,
            [b'0', b'o', ..] => 8,
            [b'0', b'b', ..] => 2,
            _ => 10,
        };
        if radix != 10 {
            self.pos += 2;
            let digits = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return literal::unsigned(digits, radix)
                .map(Tok::Literal)
                .map_err(|e| Fault::new(e, self.span_from(start)));
        }
        let digits = |c: char| c.is_ascii_digit() || c == '_';
        self.take_while(digits);
        let after_dot = self.rest().strip_prefix('.').and_then(|r| r.chars().next());
        if after_dot.is_some_and(|c| c.is_ascii_digit()) {
            self.pos += 1;
            self.take_while(digits);
        }
        let mut exponent = *self;
        if matches!(exponent.peek_char(), Some('e' | 'E' | 'f')) {
            exponent.pos += 1;
            if matches!(exponent.peek_char(), Some('+' | '-')) {
                exponent.pos += 1;
            }
            if !exponent.take_while(|c| c.is_ascii_digit()).is_empty() {
                *self = exponent;
            }
        }
        let mut suffix = *self;
        // `2.0im`: the imaginary unit is a token of its own.
        if self.peek_char().is_some_and(begins_name) && suffix.take_name() != "im" {
            self.take_name();
            let text = self.src[start..self.pos].to_owned();
            return Err(Fault::new(SyntaxError::BadNumber { text }, self.span_from(start)));
        }
        literal::decimal(&self.src[start..self.pos])
            .map(Tok::Literal)
            .map_err(|e| Fault::new(e, self.span_from(start)))
    }

    /// A decimal integer of at most 19 digits, the common case. `None` for any other number.
    fn small_number(&mut self) -> Option<u128> {
        let mut digits = *self;
        let text = digits.take_digits();
        let ends = digits.byte(0).is_none_or(|next| next.is_ascii() && next != b'.' && !is_of(NAME, next));
        if !ends || text.len() > 19 {
            return None;
        }
        *self = digits;
        Some(text.bytes().fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0')).into())
    }

    fn percent(&mut self) -> Parse<Tok<'a>> {
        let start = self.pos;
        self.pos += 1;
        let number = self.take_digits();
        if number.is_empty() {
            if self.peek_char().is_some_and(begins_name) {
                return Ok(Tok::Percent(self.take_name()));
            }
            self.pos = start;
            return Ok(self.operator(start));
        }
        let too_large = |lexer: &Self| Fault::new(SyntaxError::RowTooLarge, lexer.span_from(start));
        let Ok(row) = number.parse() else { return Err(too_large(self)) };
        let dotted = self.rest().strip_prefix('.').unwrap_or("");
        let len = dotted.find(|c: char| !c.is_ascii_digit()).unwrap_or(dotted.len());
        if len == 0 {
            return Ok(Tok::Ssa(row, 0));
        }
        self.pos += 1 + len;
        let part = dotted[..len].parse().map_err(|_| too_large(self))?;
        Ok(Tok::Ssa(row, part))
    }

    fn hash(&mut self) -> Parse<Tok<'a>> {
        let start = self.pos;
        self.pos += 1;
        let name = self.take_while(|c| continues_name(c) || c == '#');
        if name == "ctor" && self.rest().starts_with("-self#") {
            self.pos += "-self#".len();
            return Ok(Tok::Name(&self.src[start..self.pos]));
        }
        if name == "undef" {
            return Ok(Tok::Undef);
        }
        if let Ok(block) = name.parse() {
            return Ok(Tok::BlockRef(block));
        }
        if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
            let stray = SyntaxError::StrayCharacter { found: '#' };
            let error = if name.is_empty() { stray } else { SyntaxError::RowTooLarge };
            return Err(Fault::new(error, self.span_from(start)));
        }
        Ok(Tok::Name(&self.src[start..self.pos]))
    }

    fn dots(&mut self) -> Tok<'a> {
        let start = self.pos;
        let (tok, len) = match (self.byte(0), self.byte(1), self.byte(2)) {
            (Some(b':'), Some(b':'), _) => (Tok::ColonColon, 2),
            (Some(b':'), ..) => (Tok::Colon, 1),
            (_, Some(b'.'), Some(b'.')) => (Tok::Ellipsis, 3),
            (_, Some(b'.'), _) => (Tok::Op(".."), 2),
            _ => (Tok::Dot, 0),
        };
        if len > 0 {
            self.pos += len;
            return tok;
        }
        self.pos += 1;
        if self.peek_char().is_some_and(is_operator_char) { self.operator(start) } else { Tok::Dot }
    }

    /// Reads the operator at the current position. `start` is the offset of its leading dot, if it has one.
    fn operator(&mut self, start: usize) -> Tok<'a> {
        // The second byte of every longer ASCII operator is `:` or an operator character.
        let is_one = self.byte(0).is_some_and(|byte| byte.is_ascii())
            && self.byte(1).is_none_or(|next| next.is_ascii() && next != b':' && !is_of(OPERATOR, next));
        if is_one {
            self.pos += 1;
            return Tok::Op(&self.src[start..self.pos]);
        }
        let rest = self.rest();
        // `:<::Symbol` is the symbol `<` and its type.
        let split = ["<::", ">::"].iter().any(|s| rest.starts_with(s))
            && !["<:::", ">:::"].iter().any(|s| rest.starts_with(s));
        let long = LONG_OPERATORS.iter().find(|op| !split && rest.starts_with(**op));
        self.pos += match long {
            Some(op) => op.len(),
            None => rest.chars().next().map_or(0, char::len_utf8),
        };
        self.take_while(is_suffix);
        Tok::Op(&self.src[start..self.pos])
    }
}

#[cfg(test)]
mod tests {
    use super::super::operators;
    use super::*;
    use crate::ident;

    fn tokens(text: &str) -> Vec<Tok<'_>> {
        let mut lexer = Lexer::new(text, 0, text.len());
        let mut all = Vec::new();
        loop {
            match lexer.next().unwrap().tok {
                Tok::End => return all,
                tok => all.push(tok),
            }
        }
    }

    #[test]
    fn tokens_of_printed_ir() {
        use Tok::*;
        assert_eq!(
            tokens("%12.1 %new #3 #undef #self# x@_2 @NamedTuple"),
            [
                Ssa(12, 1),
                Percent("new"),
                BlockRef(3),
                Undef,
                Name("#self#"),
                Name("x"),
                At("_2"),
                At("NamedTuple")
            ]
        );
        assert_eq!(tokens("#17#y ##a#2 # rest"), [Name("#17#y"), Name("##a#2")]);
        assert_eq!(tokens("#ctor-self# #ctor-x"), [Name("#ctor-self#"), Name("#ctor"), Op("-"), Name("x")]);
        assert_eq!(
            tokens("f!(x) != g!=h"),
            [Name("f!"), Open('('), Name("x"), Close(')'), Op("!="), Name("g"), Op("!="), Name("h")]
        );
        assert_eq!(tokens(":<::Symbol"), [Colon, Op("<"), ColonColon, Name("Symbol")]);
        assert_eq!(tokens(":<:::Symbol"), [Colon, Op("<:"), ColonColon, Name("Symbol")]);
        assert_eq!(
            tokens("Main.:+ a .== b"),
            [Name("Main"), Dot, Colon, Op("+"), Name("a"), Op(".=="), Name("b")]
        );
        assert_eq!(tokens("θ₀ α′ ∇f ≤ ∈"), [Name("θ₀"), Name("α′"), Name("∇f"), Op("≤"), Op("∈")]);
        assert_eq!(tokens("a % b │"), [Name("a"), Op("%"), Name("b"), Rail]);
        assert_eq!(tokens("var\"#∇f#7\"{A}"), [Var("#∇f#7".into()), Open('{'), Name("A"), Close('}')]);
    }

    #[test]
    fn prefixed_strings() {
        assert_eq!(tokens(r#"r"(\d+)\"" b"\xff" dateformat"y" `ls -l` rb "x""#).len(), 6);
        assert_eq!(
            tokens(r#"r"(\d+)\"" b"\xff""#),
            [
                Tok::Prefixed("r", br#"(\d+)""#.as_slice().into()),
                Tok::Prefixed("b", [0xff].as_slice().into())
            ]
        );
    }

    #[test]
    fn literals() {
        let one = |text| match &tokens(text)[..] {
            [Tok::Literal(l)] => l.clone(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(one("1_000"), Literal::Int { negative: false, magnitude: 1000.into() });
        assert_eq!(one("0x0f"), Literal::Unsigned { value: 15.into(), bits: 8 });
        assert_eq!(one("0x00000000000000000"), Literal::Unsigned { value: 0.into(), bits: 128 });
        assert_eq!(one("1.5f0"), Literal::Float32(1.5));
        assert_eq!(one("1.0e-15"), Literal::Float64(1.0e-15));
        assert_eq!(one("'θ'"), Literal::Char(0xceb8_0000));
        assert_eq!(one("'''"), Literal::Char(0x2700_0000));
        assert_eq!(one(r"'\xff'"), Literal::Char(0xff00_0000));
        assert_eq!(one(r#""a \"q\"\n\xff\u3b8""#), Literal::String(b"a \"q\"\n\xff\xce\xb8".to_vec().into()));
    }

    #[test]
    fn every_bare_identifier_lexes_as_a_name() {
        for c in ('\0'..=char::MAX).filter(|&c| c != '\'') {
            assert!(!ident::is_start(c) || begins_name(c), "{c:?}");
            assert!(!ident::is_continue(c) || continues_name(c), "{c:?}");
        }
    }

    #[test]
    fn every_operator_lexes_as_one() {
        use Tok::*;
        for c in operators::symbols() {
            assert!(is_operator(&c.to_string()), "{c:?}");
        }
        assert_eq!(tokens("a +₁ b .×′ c"), [Name("a"), Op("+₁"), Name("b"), Op(".×′"), Name("c")]);
        assert_eq!(tokens("a ÷= b..c"), [Name("a"), Op("÷="), Name("b"), Op(".."), Name("c")]);
    }

    #[test]
    fn classes_agree_with_the_characters() {
        for byte in 0..128u8 {
            let c = char::from(byte);
            assert_eq!(is_of(BLANK, byte), is_blank(c), "{c:?}");
            assert_eq!(is_of(NAME, byte), continues_name(c), "{c:?}");
            assert_eq!(is_of(DIGIT, byte), c.is_ascii_digit(), "{c:?}");
            assert_eq!(is_of(OPERATOR, byte), is_operator_char(c), "{c:?}");
        }
        for op in LONG_OPERATORS.iter().filter(|op| op.is_ascii()) {
            let second = op.as_bytes()[1];
            assert!(second == b':' || is_of(OPERATOR, second), "{op}");
        }
    }

    #[test]
    fn faults_advance() {
        for text in
            ["\"abc", "'a", "`", "12ab", "0x", "340282366920938463463374607431768211456", "#)", r"'\q'"]
        {
            let mut lexer = Lexer::new(text, 0, text.len());
            assert!(lexer.next().is_err(), "{text}");
            assert!(lexer.pos() > 0, "{text}");
        }
    }
}
