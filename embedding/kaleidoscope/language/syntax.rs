//! The language: what it looks like, and its syntax trees.
//!
//! ```text
//! line  = "def" name "(" names ")" expr | "extern" name "(" names ")" | expr
//! expr  = "if" expr "then" expr "else" expr | "let" name "=" expr "in" expr | sum [ "<" sum ]
//! sum   = term { ("+" | "-") term }        term = factor { ("*" | "/") factor }
//! factor = number | name | name "(" exprs ")" | "(" expr ")" | "-" factor
//! ```
//!
//! Every value is a `Float64`. A comment goes from `#` to the end of the line.

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Number(f64),
    Name(String),
    Call(String, Vec<Expr>),
    Binary(char, Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Let(String, Box<Expr>, Box<Expr>),
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) body: Expr,
}

/// A line of a program.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Define(Function),
    /// A function of C: its name and how many arguments it takes.
    Extern(String, usize),
    Evaluate(Expr),
    Nothing,
}

/// Parentheses and operators nested deeper than this are refused.
const MAX_DEPTH: usize = 200;

/// Reads one line.
pub(crate) fn parse(text: &str) -> Result<Line, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let line = parser.line()?;
    match parser.peek() {
        "" => Ok(line),
        rest => Err(format!("`{rest}` does not belong here")),
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.split('#').next().unwrap_or("").trim();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let length = match first {
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            '+' | '-' | '*' | '/' | '<' | '(' | ')' | ',' | '=' => 1,
            other => return Err(format!("`{other}` means nothing here")),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) {
            Ok(())
        } else {
            Err(format!("`{token}` is missing before `{}`", self.peek()))
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let name = self.peek().to_owned();
        let keyword = ["if", "then", "else", "let", "in", "def", "extern"].contains(&name.as_str());
        if keyword || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(format!("`{name}` is not a name"));
        }
        self.at += 1;
        Ok(name)
    }

    /// A list of `item`s, in parentheses and with commas.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.expect("(")?;
        let mut items = Vec::new();
        while !self.accept(")") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn line(&mut self) -> Result<Line, String> {
        if self.peek().is_empty() {
            return Ok(Line::Nothing);
        }
        if self.accept("def") {
            let (name, params) = (self.name()?, self.list(Self::name)?);
            return Ok(Line::Define(Function { name, params, body: self.expr()? }));
        }
        if self.accept("extern") {
            return Ok(Line::Extern(self.name()?, self.list(Self::name)?.len()));
        }
        Ok(Line::Evaluate(self.expr()?))
    }

    fn expr(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too deep".into());
        }
        let expr = if self.accept("if") {
            let condition = self.expr()?;
            self.expect("then")?;
            let then = self.expr()?;
            self.expect("else")?;
            Expr::If(condition.into(), then.into(), self.expr()?.into())
        } else if self.accept("let") {
            let name = self.name()?;
            self.expect("=")?;
            let value = self.expr()?;
            self.expect("in")?;
            Expr::Let(name, value.into(), self.expr()?.into())
        } else {
            let left = self.sum()?;
            if self.accept("<") { Expr::Binary('<', left.into(), self.sum()?.into()) } else { left }
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn sum(&mut self) -> Result<Expr, String> {
        self.operators(&["+", "-"], Self::term)
    }

    fn term(&mut self) -> Result<Expr, String> {
        self.operators(&["*", "/"], Self::factor)
    }

    fn operators(
        &mut self,
        operators: &[&str],
        operand: impl Fn(&mut Self) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let mut left = operand(self)?;
        let before = self.depth;
        while let Some(found) = operators.iter().find(|operator| self.peek() == **operator) {
            self.at += 1;
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("too long".into());
            }
            let right = operand(self)?;
            left = Expr::Binary(found.chars().next().unwrap_or('+'), left.into(), right.into());
        }
        self.depth = before;
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expr, String> {
        if self.peek().starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let text = self.peek().to_owned();
            self.at += 1;
            return text.parse().map(Expr::Number).map_err(|_| format!("`{text}` is not a number"));
        }
        if self.accept("-") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("too deep".into());
            }
            let negated = self.factor()?;
            self.depth -= 1;
            return Ok(Expr::Binary('-', Expr::Number(0.0).into(), negated.into()));
        }
        if self.accept("(") {
            let inner = self.expr()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let name = self.name()?;
        if self.peek() == "(" { Ok(Expr::Call(name, self.list(Self::expr)?)) } else { Ok(Expr::Name(name)) }
    }
}
