//! The syntax of the small Julia that the kernels are written in.
//!
//! ```text
//! program   = { struct | function }
//! struct    = ["mutable"] "struct" NAME { NAME "::" type } "end"
//! function  = "function" (NAME | "(" NAME "::" type ")") "(" params ")" "::" type body "end"
//! statement = "if" … "elseif" … "else" … "end" | "while" … "end" | ["@simd"] "for" NAME "in" range … "end"
//!           | "return" expr | "break" | "continue" | "@inbounds" statement | place ("=" | "+=" | …) expr | expr
//! expr      = or ["?" expr ":" expr], with Julia's precedences of || && comparison + * << unary postfix
//! ```
//!
//! The reader serves kernels that stand in this repository: it panics with the line on text that is not of this form.

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// A literal and its type.
    Literal(String, String),
    Name(String),
    Unary(String, Box<Expr>),
    Binary(String, Box<Expr>, Box<Expr>),
    Index(Box<Expr>, Vec<Expr>),
    Field(Box<Expr>, String),
    /// The callee (a function or a type), and the arguments.
    Call(String, Vec<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    /// The place, the operator in front of `=`, the type that is declared, the value.
    Assign(Expr, String, Option<String>, Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    For {
        var: String,
        over: Over,
        simd: bool,
        body: Vec<Stmt>,
    },
    Return(Expr),
    Break,
    Continue,
    Inbounds(Box<Stmt>),
    Expr(Expr),
}

/// The range of a loop.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    Range(Expr, Option<Expr>, Expr),
    Elements(Expr),
}

/// A struct: its name, whether it is mutable, its fields.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) mutable: bool,
    pub(crate) fields: Vec<(String, String)>,
}

/// A function, or a method of objects.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The name and type of the object that is called.
    pub(crate) object: Option<(String, String)>,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) result: String,
    pub(crate) body: Vec<Stmt>,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) structs: Vec<Struct>,
    pub(crate) functions: Vec<Function>,
    /// Comment lines with tests, as they stand.
    pub(crate) checks: Vec<String>,
}

struct Parser {
    tokens: Vec<(String, usize)>,
    at: usize,
}

/// Reads a program.
pub(crate) fn parse(text: &str) -> Program {
    let checks = text.lines().filter(|l| l.starts_with("# check:")).map(str::to_owned).collect();
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut program = Program { checks, ..Program::default() };
    loop {
        parser.skip_lines();
        match parser.peek() {
            "" => return program,
            "function" => program.functions.push(parser.function()),
            _ => program.structs.push(parser.declaration()),
        }
    }
}

const OPERATORS: [&str; 30] = [
    ">>>=", "===", "!==", ">>>", "<<=", ">>=", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=", "⊻=", "::", "⊻", "÷", "(", ")", "[", "]", "{",
];

fn tokens(text: &str) -> Vec<(String, usize)> {
    let mut tokens = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || c == '_' || c == '!';
            let length = if first == '#' {
                break;
            } else if first == '"' {
                rest[1..].find('"').unwrap_or_else(|| panic!("line {}: a string without end", line + 1)) + 2
            } else if first.is_ascii_digit() {
                let number = |c: char| c.is_ascii_alphanumeric() || c == '.';
                let end = rest.find(|c| !number(c)).unwrap_or(rest.len());
                // The sign of an exponent.
                if rest[..end].ends_with('e') && !rest.starts_with("0x") {
                    let tail = &rest[end + 1..];
                    end + 1 + tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())
                } else {
                    end
                }
            } else if first == '@' || word(first) && first != '!' {
                let end = rest[1..].find(|c| !word(c)).map_or(rest.len(), |n| n + 1);
                // `a!=b` is a comparison.
                if rest[..end].ends_with('!') && rest[end..].starts_with('=') { end - 1 } else { end }
            } else {
                OPERATORS.iter().find(|o| rest.starts_with(**o)).map_or(first.len_utf8(), |o| o.len())
            };
            tokens.push((rest[..length].to_owned(), line + 1));
            rest = rest[length..].trim_start();
        }
        tokens.push(("\n".to_owned(), line + 1));
    }
    tokens
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |(t, _)| t)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) {
        let line = self.tokens.get(self.at).map_or(0, |(_, l)| *l);
        assert!(self.takes(token), "line {line}: `{token}` expected, not `{}`", self.peek());
    }

    fn skip_lines(&mut self) {
        while self.takes("\n") || self.takes(";") {}
    }

    fn type_(&mut self) -> String {
        let mut text = self.next();
        if self.takes("{") {
            text.push('{');
            loop {
                text += &self.type_();
                if self.takes("}") {
                    break;
                }
                self.expect(",");
                text += ", ";
            }
            text.push('}');
        }
        text
    }

    fn declaration(&mut self) -> Struct {
        let mutable = self.takes("mutable");
        self.expect("struct");
        let name = self.type_();
        let mut fields = Vec::new();
        loop {
            self.skip_lines();
            if self.takes("end") {
                return Struct { name, mutable, fields };
            }
            let field = self.next();
            self.expect("::");
            fields.push((field, self.type_()));
        }
    }

    fn function(&mut self) -> Function {
        self.expect("function");
        let mut object = None;
        let mut name = self.next();
        if name == "(" {
            let this = self.next();
            self.expect("::");
            let of = self.type_();
            self.expect(")");
            name.clone_from(&of);
            object = Some((this, of));
        }
        self.expect("(");
        let mut params = Vec::new();
        while !self.takes(")") {
            let param = self.next();
            self.expect("::");
            params.push((param, self.type_()));
            self.takes(",");
        }
        self.expect("::");
        let result = self.type_();
        let body = self.body();
        self.expect("end");
        Function { name, object, params, result, body }
    }

    /// Statements up to a word that ends a block, which stays.
    fn body(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        loop {
            self.skip_lines();
            match self.peek() {
                "end" | "else" | "elseif" => return body,
                "" => panic!("a block without `end`"),
                _ => body.push(self.statement()),
            }
        }
    }

    fn statement(&mut self) -> Stmt {
        if self.takes("if") {
            let mut arms = Vec::new();
            loop {
                let cond = self.expr();
                arms.push((cond, self.body()));
                if self.takes("elseif") {
                    continue;
                }
                let other = if self.takes("else") { self.body() } else { Vec::new() };
                self.expect("end");
                return Stmt::If(arms, other);
            }
        }
        if self.takes("while") {
            let cond = self.expr();
            let body = self.body();
            self.expect("end");
            return Stmt::While(cond, body);
        }
        if self.takes("@inbounds") {
            return Stmt::Inbounds(Box::new(self.statement()));
        }
        let simd = self.takes("@simd");
        if self.takes("for") {
            let var = self.next();
            self.expect("in");
            let first = self.binary(0);
            let over = if self.takes(":") {
                let second = self.binary(0);
                if self.takes(":") {
                    Over::Range(first, Some(second), self.binary(0))
                } else {
                    Over::Range(first, None, second)
                }
            } else {
                Over::Elements(first)
            };
            let body = self.body();
            self.expect("end");
            return Stmt::For { var, over, simd, body };
        }
        if self.takes("return") {
            return Stmt::Return(self.expr());
        }
        if self.takes("break") {
            return Stmt::Break;
        }
        if self.takes("continue") {
            return Stmt::Continue;
        }
        let place = self.expr();
        let declared = if self.takes("::") { Some(self.type_()) } else { None };
        let token = self.peek().to_owned();
        if token == "=" || token.ends_with('=') && !["==", "!=", "<=", ">=", "==="].contains(&token.as_str())
        {
            self.at += 1;
            let value = self.expr();
            return Stmt::Assign(place, token[..token.len() - 1].to_owned(), declared, value);
        }
        Stmt::Expr(place)
    }

    fn expr(&mut self) -> Expr {
        let cond = self.binary(0);
        if !self.takes("?") {
            return cond;
        }
        let yes = self.expr();
        self.expect(":");
        let no = self.expr();
        Expr::Choice(Box::new(cond), Box::new(yes), Box::new(no))
    }

    fn binary(&mut self, level: usize) -> Expr {
        const LEVELS: [&[&str]; 6] = [
            &["||"],
            &["&&"],
            &["==", "!=", "===", "!==", "<", "<=", ">", ">="],
            &["+", "-", "|", "⊻"],
            &["*", "/", "÷", "%", "&"],
            &["<<", ">>", ">>>"],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1);
        while operators.contains(&self.peek()) {
            let operator = self.next();
            let right = self.binary(level + 1);
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        left
    }

    fn unary(&mut self) -> Expr {
        match self.peek() {
            operator @ ("-" | "!" | "~") => {
                let operator = operator.to_owned();
                self.at += 1;
                Expr::Unary(operator, Box::new(self.unary()))
            }
            _ => self.postfix(),
        }
    }

    fn list(&mut self, end: &str) -> Vec<Expr> {
        let mut list = Vec::new();
        self.skip_lines();
        while !self.takes(end) {
            list.push(self.expr());
            self.takes(",");
            self.skip_lines();
        }
        list
    }

    fn postfix(&mut self) -> Expr {
        let token = self.next();
        let first = token.chars().next().unwrap_or(' ');
        let mut expr = if token == "(" {
            let inner = self.expr();
            self.expect(")");
            inner
        } else if first == '"' {
            Expr::Literal(token, "String".to_owned())
        } else if let Some(digits) = token.strip_prefix("0x") {
            let ty = match digits.len() {
                0..=2 => "UInt8",
                3..=4 => "UInt16",
                5..=8 => "UInt32",
                _ => "UInt64",
            };
            Expr::Literal(token, ty.to_owned())
        } else if first.is_ascii_digit() {
            let ty = if token.contains('.') || token.contains('e') { "Float64" } else { "Int64" };
            Expr::Literal(token, ty.to_owned())
        } else if token == "true" || token == "false" {
            Expr::Literal(token, "Bool".to_owned())
        } else if token == "nothing" {
            Expr::Literal(token, "Nothing".to_owned())
        } else if self.peek() == "{" {
            self.at -= 1;
            Expr::Name(self.type_())
        } else {
            Expr::Name(token)
        };
        loop {
            if self.peek() == "(" {
                let Expr::Name(name) = &expr else { panic!("{expr:?} is called") };
                let name = name.clone();
                self.at += 1;
                expr = Expr::Call(name, self.list(")"));
            } else if self.takes("[") {
                expr = Expr::Index(Box::new(expr), self.list("]"));
            } else if self.takes(".") {
                let field = self.next();
                expr = Expr::Field(Box::new(expr), field);
            } else {
                return expr;
            }
        }
    }
}
