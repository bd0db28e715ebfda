//! From text to data: integers, floats, booleans, strings, symbols and lists.

/// A datum: the result of the reader, and the operand of `quote`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Datum {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    Symbol(String),
    List(Vec<Datum>),
}

/// How deep lists may nest, so that no program overflows the stack in a walk over it.
const MAX_DEPTH: usize = 200;

/// Why there is no form.
#[derive(PartialEq, Debug)]
pub(crate) enum ReadError {
    /// The text ends in the middle of a form: more of it may follow.
    Incomplete,
    /// No form begins so.
    Wrong(String),
}

/// Reads forms, one after the other.
pub(crate) struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Reader { rest: text, depth: 0 }
    }

    /// The next form; none at the end of the text.
    pub(crate) fn form(&mut self) -> Result<Option<Datum>, ReadError> {
        self.skip();
        if self.rest.is_empty() { Ok(None) } else { self.datum().map(Some) }
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with(';') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn datum(&mut self) -> Result<Datum, ReadError> {
        self.skip();
        let Some(first) = self.rest.chars().next() else { return Err(ReadError::Incomplete) };
        match first {
            '(' => {
                self.rest = &self.rest[1..];
                self.list()
            }
            ')' => {
                self.rest = &self.rest[1..];
                Err(ReadError::Wrong("a `)` without a `(`".into()))
            }
            '\'' => {
                self.rest = &self.rest[1..];
                let quoted = self.nested(Self::datum)?;
                Ok(Datum::List(vec![Datum::Symbol("quote".into()), quoted]))
            }
            '"' => self.string(),
            _ => self.atom(),
        }
    }

    fn nested<R>(&mut self, read: impl FnOnce(&mut Self) -> Result<R, ReadError>) -> Result<R, ReadError> {
        if self.depth == MAX_DEPTH {
            self.rest = "";
            return Err(ReadError::Wrong("too deep".into()));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn list(&mut self) -> Result<Datum, ReadError> {
        let mut items = Vec::new();
        loop {
            self.skip();
            if let Some(rest) = self.rest.strip_prefix(')') {
                self.rest = rest;
                return Ok(Datum::List(items));
            }
            items.push(self.nested(Self::datum)?);
        }
    }

    fn string(&mut self) -> Result<Datum, ReadError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Datum::Str(text));
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(ReadError::Incomplete)
    }

    fn atom(&mut self) -> Result<Datum, ReadError> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';' | '\'');
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let is_number = text.starts_with(|c: char| c.is_ascii_digit())
            || (text.len() > 1 && text.starts_with(['-', '.', '+']));
        Ok(match text {
            "#t" => Datum::Bool(true),
            "#f" => Datum::Bool(false),
            _ if text.starts_with('#') => return Err(ReadError::Wrong(format!("`{text}` is not known"))),
            _ => match (text.parse(), text.parse()) {
                (Ok(int), _) if is_number => Datum::Int(int),
                (_, Ok(float)) if is_number => Datum::Float(float),
                _ => Datum::Symbol(text.to_owned()),
            },
        })
    }
}
