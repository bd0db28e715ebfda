//! A front end: kernels in a small Julia become high IR of the shape that Julia prints.
//!
//! ```text
//! v[i]             test against :size, throw_boundserror(v, (i,)), memoryrefnew, memoryrefget
//! for i in a:b     the stop made empty, φ with a missing edge, `state === stop` at the end of an iteration
//! for x in v       the first element in front of the loop, the next one at its end, φ of elements
//! @simd for        counts from 0, with `loopinfo` at the way back
//! a << n           both directions of a shift, and a choice
//! f(x), c(x)       `invoke`, of the object if `c` is one
//! ```
//!
//! Types are inferred in one pass forward: a variable has the type of its first value, or the declared one. Operands of one operator have one
//! type; conversions are written out. A variable that is made in a block ends with it.
//!
//! Phases: [`syntax`] reads, this file makes statements of functions, [`rows`] holds blocks and prints them.
//!
//! Not done: keyword arguments, `try`, multiple dispatch, type parameters, `push!`.

mod expr;
mod loops;
mod rows;
pub(crate) mod syntax;

use rows::{Rows, Value};
use std::collections::BTreeMap;
use syntax::{Expr, Function, Program, Stmt};

/// The values of names at a place.
type Env = BTreeMap<String, Value>;

/// The program as text of the IR.
pub(crate) fn print(source: &str) -> String {
    let program = syntax::parse(source);
    let mut text: String = program.checks.iter().map(|c| format!("{c}\n")).collect();
    for s in &program.structs {
        let mutable = if s.mutable { "mutable " } else { "" };
        let fields: String = s.fields.iter().map(|(n, t)| format!("    {n}::{t}\n")).collect();
        text += &format!("{mutable}struct {}\n{fields}end\n\n", s.name);
    }
    for function in &program.functions {
        text += &Lower::function(&program, function);
        text.push('\n');
    }
    text
}

/// The blocks that a loop's `break` and `continue` come from, with what names stand for there.
#[derive(Default)]
struct Jumps {
    breaks: Vec<(usize, Env)>,
    continues: Vec<(usize, Env)>,
}

struct Lower<'p> {
    program: &'p Program,
    rows: Rows,
    env: Env,
    types: BTreeMap<String, String>,
    loops: Vec<Jumps>,
    inbounds: bool,
}

impl<'p> Lower<'p> {
    fn function(program: &'p Program, f: &Function) -> String {
        let mut lower = Lower {
            program,
            rows: Rows::default(),
            env: Env::new(),
            types: BTreeMap::new(),
            loops: Vec::new(),
            inbounds: false,
        };
        for (name, ty) in f.object.iter().chain(&f.params) {
            lower.define(name, Value::new(name, ty));
        }
        lower.rows.start_new();
        lower.body(&f.body);
        if lower.rows.is_open() {
            assert_eq!(f.result, "Nothing", "{}: the end of the function is reached", f.name);
            lower.rows.end("return nothing");
        }
        let params: Vec<String> = f.params.iter().map(|(n, t)| format!("{n}::{t}")).collect();
        let name = match &f.object {
            Some((this, ty)) => format!("({this}::{ty})"),
            None => f.name.clone(),
        };
        format!("function {name}({})::{}\n{}end\n", params.join(", "), f.result, lower.rows.text())
    }

    fn define(&mut self, name: &str, value: Value) {
        self.types.entry(name.to_owned()).or_insert_with(|| value.ty.clone());
        self.env.insert(name.to_owned(), value);
    }

    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            if !self.rows.is_open() {
                return;
            }
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, operator, declared, value) => {
                self.assign(place, operator, declared.as_ref(), value)
            }
            Stmt::If(arms, other) => self.branches(arms, other),
            Stmt::While(cond, body) => self.while_loop(cond, body),
            Stmt::For { var, over, simd, body } => self.for_loop(var, over, *simd, body),
            Stmt::Return(value) => {
                let value = self.expr(value);
                let text = format!("return {}", value.text);
                self.rows.end(&text);
            }
            Stmt::Break => {
                let at = (self.rows.current(), self.env.clone());
                self.jumps().breaks.push(at);
                self.rows.leave();
            }
            Stmt::Continue => {
                let at = (self.rows.current(), self.env.clone());
                self.jumps().continues.push(at);
                self.rows.leave();
            }
            Stmt::Inbounds(inner) => {
                let outer = std::mem::replace(&mut self.inbounds, true);
                self.statement(inner);
                self.inbounds = outer;
            }
            Stmt::Expr(value) => {
                self.expr(value);
            }
        }
    }

    fn jumps(&mut self) -> &mut Jumps {
        self.loops.last_mut().expect("`break` and `continue` stand in loops")
    }

    fn assign(&mut self, place: &Expr, operator: &str, declared: Option<&String>, value: &Expr) {
        let value = if operator.is_empty() {
            self.expr(value)
        } else {
            let whole = Expr::Binary(operator.to_owned(), Box::new(place.clone()), Box::new(value.clone()));
            self.expr(&whole)
        };
        match place {
            Expr::Name(name) => {
                if let Some(ty) = declared {
                    self.types.insert(name.clone(), ty.clone());
                }
                self.define(name, value);
            }
            Expr::Field(object, field) => {
                let object = self.expr(object);
                let ty = self.field_type(&object.ty, field);
                self.rows.row(&format!("Base.setfield!({}, :{field}, {})", object.text, value.text), &ty);
            }
            Expr::Index(array, indices) => {
                let array = self.expr(array);
                let (element, reference) = self.reference(&array, indices);
                let text =
                    format!("Base.memoryrefset!({}, {}, :not_atomic, false)", reference.text, value.text);
                self.rows.row(&text, &element);
            }
            other => panic!("{other:?} is no place"),
        }
    }

    fn branches(&mut self, arms: &[(Expr, Vec<Stmt>)], other: &[Stmt]) {
        let mut ends = Vec::new();
        for (cond, body) in arms {
            let before = self.env.clone();
            let no = self.rows.create();
            self.branch(cond, no);
            self.body(body);
            if self.rows.is_open() {
                ends.push((self.rows.current(), self.env.clone()));
                self.rows.leave();
            }
            self.env = before;
            self.rows.start(no);
        }
        self.body(other);
        if self.rows.is_open() {
            ends.push((self.rows.current(), self.env.clone()));
            self.rows.leave();
        }
        self.join(&ends);
    }

    /// Continues in a new block behind all of these.
    fn join(&mut self, from: &[(usize, Env)]) {
        if from.is_empty() {
            return;
        }
        let join = self.rows.create();
        for (block, _) in from {
            self.rows.jump(*block, join);
        }
        self.rows.start(join);
        self.env = self.merged(from);
    }

    /// The values of names in the present block, where these edges join.
    fn merged(&mut self, from: &[(usize, Env)]) -> Env {
        let mut env = Env::new();
        for (name, first) in &from[0].1 {
            let values: Option<Vec<&Value>> = from.iter().map(|(_, e)| e.get(name)).collect();
            let Some(values) = values else { continue };
            if values.iter().all(|v| v.text == first.text) {
                env.insert(name.clone(), first.clone());
                continue;
            }
            let operands = from.iter().zip(&values).map(|((block, _), v)| (*block, v.text.clone())).collect();
            env.insert(name.clone(), self.rows.phi(operands, &self.types[name]));
        }
        env
    }
}
