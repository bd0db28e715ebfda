//! From data to expressions: special forms, scopes, and which variables closures share.
//!
//! | form | becomes |
//! |---|---|
//! | `let`, `let*`, `letrec`, `define` inside a body | [`Expr::Let`] and [`Expr::Set`] |
//! | `(let loop ((i 0)) …)` | a function that can call itself |
//! | `cond`, `and`, `or`, `when`, `unless` | [`Expr::If`] |
//! | `+`, `-`, `*`, comparisons and `list` with any number of arguments | calls with two |

use super::reader::Datum;

/// A local variable, by its number in a form.
pub(crate) type Var = usize;

#[derive(Debug)]
pub(crate) enum Expr {
    Const(Datum),
    /// The value of a form that has none.
    Nothing,
    Local(Var),
    Global(String),
    Set(Var, Box<Expr>),
    SetGlobal(String, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Begin(Vec<Expr>),
    Let(Var, Box<Expr>, Box<Expr>),
    Lambda(Lambda),
    Call(Box<Expr>, Vec<Expr>),
}

#[derive(Debug)]
pub(crate) struct Lambda {
    pub(crate) name: String,
    /// The variable by which its body refers to it.
    pub(crate) own: Option<Var>,
    pub(crate) params: Vec<Var>,
    pub(crate) body: Box<Expr>,
}

/// Facts about a local variable, complete after the whole form is analysed.
#[derive(Debug)]
pub(crate) struct VarInfo {
    pub(crate) name: String,
    /// How many functions are around it.
    depth: usize,
    assigned: bool,
    captured: bool,
}

impl VarInfo {
    /// Whether it lives in a box, because functions share it and it changes.
    pub(crate) fn is_boxed(&self) -> bool {
        self.assigned && self.captured
    }
}

/// A form at the prompt.
#[derive(Debug)]
pub(crate) enum Form {
    /// `(define (f x) …)`
    Function(Lambda),
    /// `(define x …)`
    Variable(String, Expr),
    Expression(Expr),
}

type Parsed<T> = Result<T, String>;

/// A form, with its variables.
pub(crate) fn form(datum: &Datum) -> Parsed<(Form, Vec<VarInfo>)> {
    let mut parser = Parser { vars: Vec::new(), scope: Vec::new(), depth: 0 };
    let form = match datum {
        Datum::List(items) if matches!(&items[..], [Datum::Symbol(define), ..] if define == "define") => {
            match parser.define(&items[1..])? {
                (_, Expr::Lambda(lambda)) => Form::Function(lambda),
                (name, value) => Form::Variable(name, value),
            }
        }
        datum => Form::Expression(parser.expr(datum)?),
    };
    Ok((form, parser.vars))
}

struct Parser {
    vars: Vec<VarInfo>,
    /// The variables in sight, the innermost last.
    scope: Vec<Var>,
    depth: usize,
}

impl Parser {
    fn declare(&mut self, name: &str) -> Var {
        let info = VarInfo { name: name.to_owned(), depth: self.depth, assigned: false, captured: false };
        self.vars.push(info);
        self.scope.push(self.vars.len() - 1);
        self.vars.len() - 1
    }

    fn find(&mut self, name: &str) -> Option<Var> {
        let var = self.scope.iter().rev().copied().find(|&var| self.vars[var].name == name)?;
        self.vars[var].captured |= self.vars[var].depth < self.depth;
        Some(var)
    }

    /// The name and the value of a definition.
    fn define(&mut self, rest: &[Datum]) -> Parsed<(String, Expr)> {
        match rest {
            [Datum::List(head), body @ ..] => {
                let [Datum::Symbol(name), params @ ..] = &head[..] else {
                    return Err("define: no name".into());
                };
                Ok((name.clone(), self.lambda(name, None, params, body)?))
            }
            [Datum::Symbol(name), Datum::List(items)] if matches!(&items[..], [Datum::Symbol(lambda), ..] if lambda == "lambda") =>
            {
                let [_, Datum::List(params), body @ ..] = &items[..] else {
                    return Err("lambda: no parameters".into());
                };
                Ok((name.clone(), self.lambda(name, None, params, body)?))
            }
            [Datum::Symbol(name), value] => Ok((name.clone(), self.expr(value)?)),
            _ => Err("define: a name and a value".into()),
        }
    }

    /// A function; `own` is the name by which it refers to itself.
    fn lambda(&mut self, name: &str, own: Option<&str>, params: &[Datum], body: &[Datum]) -> Parsed<Expr> {
        let outer = self.scope.len();
        self.depth += 1;
        let own = own.map(|name| self.declare(name));
        let symbols = params.iter().map(symbol).collect::<Parsed<Vec<&str>>>()?;
        let params = symbols.into_iter().map(|name| self.declare(name)).collect();
        let body = self.body(body);
        self.depth -= 1;
        self.scope.truncate(outer);
        Ok(Expr::Lambda(Lambda { name: name.to_owned(), own, params, body: Box::new(body?) }))
    }

    /// Expressions in a row, after definitions that see each other.
    fn body(&mut self, items: &[Datum]) -> Parsed<Expr> {
        let outer = self.scope.len();
        let defines: Vec<&[Datum]> = items.iter().map_while(definition).collect();
        let mut vars = Vec::new();
        for define in &defines {
            let name = match define {
                [Datum::List(head), ..] => head.first().ok_or("define: no name")?,
                [name, ..] => name,
                [] => return Err("define: no name".into()),
            };
            let var = self.declare(symbol(name)?);
            self.vars[var].assigned = true;
            vars.push(var);
        }
        let mut all = Vec::new();
        for (define, &var) in defines.iter().zip(&vars) {
            all.push(Expr::Set(var, Box::new(self.define(define)?.1)));
        }
        for item in &items[defines.len()..] {
            all.push(self.expr(item)?);
        }
        self.scope.truncate(outer);
        let inside = if all.len() == 1 { all.remove(0) } else { Expr::Begin(all) };
        let wrap = |inside, var| Expr::Let(var, Box::new(Expr::Nothing), Box::new(inside));
        Ok(vars.into_iter().rev().fold(inside, wrap))
    }

    fn expr(&mut self, datum: &Datum) -> Parsed<Expr> {
        match datum {
            Datum::Symbol(name) => Ok(match self.find(name) {
                Some(var) => Expr::Local(var),
                None => Expr::Global(name.clone()),
            }),
            Datum::List(items) => match &items[..] {
                [] => Err("there is nothing to call".into()),
                [Datum::Symbol(head), rest @ ..] if self.find(head).is_none() => {
                    self.special(head, rest, items)
                }
                items => self.call(items),
            },
            datum => Ok(Expr::Const(datum.clone())),
        }
    }

    fn call(&mut self, items: &[Datum]) -> Parsed<Expr> {
        let mut all = items.iter().map(|item| self.expr(item)).collect::<Parsed<Vec<Expr>>>()?;
        let callee = all.remove(0);
        Ok(Expr::Call(Box::new(callee), all))
    }

    fn special(&mut self, head: &str, rest: &[Datum], items: &[Datum]) -> Parsed<Expr> {
        match (head, rest) {
            ("quote", [datum]) => Ok(Expr::Const(datum.clone())),
            ("if", [test, then]) => self.choice(test, then, None),
            ("if", [test, then, other]) => self.choice(test, then, Some(other)),
            ("begin", all) => self.body(all),
            ("lambda", [Datum::List(params), body @ ..]) => self.lambda("lambda", None, params, body),
            ("set!", [Datum::Symbol(name), value]) => {
                let value = Box::new(self.expr(value)?);
                Ok(match self.find(name) {
                    Some(var) => {
                        self.vars[var].assigned = true;
                        Expr::Set(var, value)
                    }
                    None => Expr::SetGlobal(name.clone(), value),
                })
            }
            ("let", [Datum::Symbol(name), Datum::List(bindings), body @ ..]) => {
                let (names, values): (Vec<Datum>, Vec<Datum>) = pairs(bindings)?.into_iter().unzip();
                let values = values.iter().map(|value| self.expr(value)).collect::<Parsed<Vec<Expr>>>()?;
                let function = self.lambda(name, Some(name), &names, body)?;
                Ok(Expr::Call(Box::new(function), values))
            }
            ("let", [Datum::List(bindings), body @ ..]) => self.bind(bindings, body, false),
            ("let*", [Datum::List(bindings), body @ ..]) => self.bind(bindings, body, true),
            ("letrec", [Datum::List(bindings), body @ ..]) => {
                let define = |(name, value)| Datum::List(vec![Datum::Symbol("define".into()), name, value]);
                let mut all: Vec<Datum> = pairs(bindings)?.into_iter().map(define).collect();
                all.extend_from_slice(body);
                self.body(&all)
            }
            ("cond", clauses) => self.cond(clauses),
            ("and", []) => Ok(Expr::Const(Datum::Bool(true))),
            ("and", [last]) | ("or", [last]) => self.expr(last),
            ("and", [first, rest @ ..]) => {
                let (first, rest) = (self.expr(first)?, self.special("and", rest, items)?);
                let no = Expr::Const(Datum::Bool(false));
                Ok(Expr::If(Box::new(first), Box::new(rest), Box::new(no)))
            }
            ("or", []) => Ok(Expr::Const(Datum::Bool(false))),
            ("or", [first, rest @ ..]) => {
                let value = self.expr(first)?;
                let outer = self.scope.len();
                let var = self.declare("");
                let rest = self.special("or", rest, items);
                self.scope.truncate(outer);
                let choice =
                    Expr::If(Box::new(Expr::Local(var)), Box::new(Expr::Local(var)), Box::new(rest?));
                Ok(Expr::Let(var, Box::new(value), Box::new(choice)))
            }
            ("when", [test, body @ ..]) => {
                let (test, body) = (self.expr(test)?, self.body(body)?);
                Ok(Expr::If(Box::new(test), Box::new(body), Box::new(Expr::Nothing)))
            }
            ("unless", [test, body @ ..]) => {
                let (test, body) = (self.expr(test)?, self.body(body)?);
                Ok(Expr::If(Box::new(test), Box::new(Expr::Nothing), Box::new(body)))
            }
            ("list", []) => Ok(Expr::Const(Datum::List(Vec::new()))),
            ("list", [first, rest @ ..]) => {
                let (first, rest) = (self.expr(first)?, self.special("list", rest, items)?);
                Ok(call("cons", vec![first, rest]))
            }
            ("+" | "*" | "string-append", [first, second, more @ ..]) if !more.is_empty() => {
                let mut sum = call(head, vec![self.expr(first)?, self.expr(second)?]);
                for item in more {
                    sum = call(head, vec![sum, self.expr(item)?]);
                }
                Ok(sum)
            }
            ("-", [only]) => Ok(call("-", vec![Expr::Const(Datum::Int(0)), self.expr(only)?])),
            ("define", _) => Err("define: not in the middle of an expression".into()),
            ("quote" | "if" | "lambda" | "set!" | "let" | "let*" | "letrec" | "when" | "unless", _) => {
                Err(format!("{head}: wrong syntax"))
            }
            _ => self.call(items),
        }
    }

    fn choice(&mut self, test: &Datum, then: &Datum, other: Option<&Datum>) -> Parsed<Expr> {
        let (test, then) = (self.expr(test)?, self.expr(then)?);
        let other = other.map_or(Ok(Expr::Nothing), |other| self.expr(other))?;
        Ok(Expr::If(Box::new(test), Box::new(then), Box::new(other)))
    }

    fn cond(&mut self, clauses: &[Datum]) -> Parsed<Expr> {
        let Some((first, rest)) = clauses.split_first() else { return Ok(Expr::Nothing) };
        let Datum::List(items) = first else { return Err("cond: a clause is a list".into()) };
        match &items[..] {
            [Datum::Symbol(word), body @ ..] if word == "else" => self.body(body),
            [test, body @ ..] => {
                let (test, body) = (self.expr(test)?, self.body(body)?);
                Ok(Expr::If(Box::new(test), Box::new(body), Box::new(self.cond(rest)?)))
            }
            [] => Err("cond: an empty clause".into()),
        }
    }

    /// `let`, whose values do not see its variables, or `let*`.
    fn bind(&mut self, bindings: &[Datum], body: &[Datum], one_by_one: bool) -> Parsed<Expr> {
        let outer = self.scope.len();
        let mut bound: Vec<(Var, Expr)> = Vec::new();
        for (name, value) in pairs(bindings)? {
            let value = self.expr(&value)?;
            let var = self.declare(symbol(&name)?);
            if !one_by_one {
                self.scope.pop();
            }
            bound.push((var, value));
        }
        if !one_by_one {
            self.scope.extend(bound.iter().map(|(var, _)| *var));
        }
        let body = self.body(body);
        self.scope.truncate(outer);
        let wrap = |inside, (var, value)| Expr::Let(var, Box::new(value), Box::new(inside));
        Ok(bound.into_iter().rev().fold(body?, wrap))
    }
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Call(Box::new(Expr::Global(name.to_owned())), args)
}

fn symbol(datum: &Datum) -> Parsed<&str> {
    match datum {
        Datum::Symbol(name) => Ok(name),
        other => Err(format!("{other:?} is not a name")),
    }
}

fn pairs(bindings: &[Datum]) -> Parsed<Vec<(Datum, Datum)>> {
    let pair = |binding: &Datum| match binding {
        Datum::List(items) => match &items[..] {
            [name, value] => Ok((name.clone(), value.clone())),
            _ => Err("a binding is a name and a value".to_owned()),
        },
        _ => Err("a binding is a name and a value".to_owned()),
    };
    bindings.iter().map(pair).collect()
}

/// The parts of a definition after its keyword.
fn definition(datum: &Datum) -> Option<&[Datum]> {
    match datum {
        Datum::List(items) => match &items[..] {
            [Datum::Symbol(word), rest @ ..] if word == "define" => Some(rest),
            _ => None,
        },
        _ => None,
    }
}
