//! The text of a function: blocks, regions with handlers, and the attacks in them.

use std::fmt::Write as _;

use brolga_ir::builtin::Builtin;

use super::forms::Form;
use super::targets::Target;
use super::{Part, Without, numbers};
use crate::rng::Rng;

/// An operand as text, and its type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Val {
    pub(super) text: String,
    pub(super) ty: String,
}

impl Val {
    pub(super) fn new(text: impl Into<String>, ty: impl Into<String>) -> Val {
        Val { text: text.into(), ty: ty.into() }
    }
}

/// Writes one function.
pub(super) struct Writer<'a> {
    pub(super) rng: Rng,
    pub(super) without: &'a Without,
    /// Whether functions of the library are attacked.
    pub(super) library: bool,
    blocks: Vec<Vec<String>>,
    /// The blocks of labels that are referenced before their block begins.
    labels: Vec<usize>,
    values: usize,
    /// The available values.
    pub(super) pool: Vec<Val>,
    /// The first usable index of the pool: 0, except in a region with giants.
    pub(super) visible: usize,
    /// The element type of the memory or array made last, which most later attacks use.
    pub(super) focus: Option<&'static str>,
    /// Whether lengths may be larger than any memory. Objects made then are not shown.
    pub(super) giants: bool,
    /// Whether the result is unspecified, so that the interpreter is not the oracle.
    pub(super) is_open: bool,
    attacks: Vec<(Target, Form)>,
}

/// The maximum number of attacks per program.
const ATTACKS: usize = 5;

impl<'a> Writer<'a> {
    pub(super) fn new(rng: Rng, without: &'a Without, library: bool) -> Writer<'a> {
        Writer {
            rng,
            without,
            library,
            blocks: vec![Vec::new()],
            labels: Vec::new(),
            values: 0,
            pool: Vec::new(),
            visible: 0,
            focus: None,
            giants: false,
            is_open: false,
            attacks: Vec::new(),
        }
    }

    // ----- rows -----

    /// Adds a row with a value.
    pub(super) fn row(&mut self, statement: &str, ty: &str) -> Val {
        self.values += 1;
        self.stmt(&format!("%{} = {statement}::{ty}", self.values));
        Val::new(format!("%{}", self.values), ty)
    }

    /// Adds a row without a type that is referenced by its number.
    fn token(&mut self, statement: &str) -> String {
        self.values += 1;
        self.stmt(&format!("%{} = {statement}", self.values));
        format!("%{}", self.values)
    }

    pub(super) fn stmt(&mut self, statement: &str) {
        self.blocks.last_mut().into_iter().for_each(|rows| rows.push(statement.to_owned()));
    }

    fn block(&mut self) -> usize {
        self.blocks.push(Vec::new());
        self.blocks.len()
    }

    fn label(&mut self) -> usize {
        self.labels.push(0);
        self.labels.len() - 1
    }

    /// Begins the block of a label.
    fn place(&mut self, label: usize) -> usize {
        self.labels[label] = self.block();
        self.labels[label]
    }

    /// One of two operands, selected by a condition.
    pub(super) fn either(&mut self, condition: &str, yes: &str, no: &str) -> Val {
        let join = self.label();
        let head = self.blocks.len();
        self.stmt(&format!("goto @{join}@ if not {condition}"));
        let then = self.block();
        self.stmt(&format!("goto @{join}@"));
        self.place(join);
        self.row(&format!("φ (#{head} => {no}, #{then} => {yes})"), "Any")
    }

    /// Runs `inside` under a handler. The result is the value of `inside`, or the exception.
    fn region(&mut self, inside: impl FnOnce(&mut Self) -> Val) -> Val {
        let (catch, join) = (self.label(), self.label());
        let kept = (self.rng.chance(25) && self.without.allows("handlers")).then(|| self.any());
        let unset = kept.as_ref().map(|_| self.row("ϒ (#undef)", "Union{}").text);
        let enter = self.token(&format!("enter @{catch}@"));
        self.block();
        let known = self.pool.len();
        let set = kept.map(|val| self.row(&format!("ϒ ({})", val.text), &val.ty));
        let preserved = (self.rng.chance(8) && self.without.allows("preserve")).then(|| {
            let object = self.any().text;
            self.token(&format!("$(Expr(:gc_preserve_begin, :({object})))"))
        });
        let mut result = inside(self);
        if let Some(preserved) = preserved {
            self.stmt(&format!("$(Expr(:gc_preserve_end, :({preserved})))"));
        }
        self.pool.truncate(known);
        if self.giants {
            result = self.row(&format!("Core.typeof({})", result.text), "Any");
        }
        let from = self.blocks.len();
        self.stmt(&format!("$(Expr(:leave, :({enter})))"));
        self.stmt(&format!("goto @{join}@"));
        let caught = self.place(catch);
        let stored =
            unset.zip(set).map(|(unset, set)| self.row(&format!("φᶜ ({unset}, {})", set.text), &set.ty));
        let mut exception = self.row("$(Expr(:the_exception))", "Any");
        if self.giants {
            exception = self.row(&format!("Core.typeof({})", exception.text), "Any");
        } else if let Some(stored) = stored {
            exception = self.row(&format!("Core.tuple({}, {})", exception.text, stored.text), "Any");
        }
        self.stmt(&format!("$(Expr(:pop_exception, :({enter})))::Nothing"));
        self.stmt(&format!("goto @{join}@"));
        self.place(join);
        self.row(&format!("φ (#{from} => {}, #{caught} => {})", result.text, exception.text), "Any")
    }

    // ----- programs -----

    /// The program with this index.
    pub(super) fn part(mut self, number: usize) -> Part {
        let globals = self.without.allows("globals");
        if globals {
            self.stmt("Core.setglobal!(Main, :victim, nothing)::Nothing");
            self.stmt("Core.setglobal!(Main, :number, 0)::Int64");
            self.stmt("Core.setglobal!(Main, :some, nothing)::Nothing");
        }
        for _ in 0..self.rng.between(1, 3) {
            let object = self.object();
            if globals && self.rng.chance(30) {
                self.stmt(&format!("Core.setglobal!(Main, :victim, {})::Any", object.text));
            }
        }
        let may_be_huge = self.rng.chance(12) && self.without.allows("giants");
        for _ in 0..self.rng.between(1, ATTACKS) {
            self.giants = may_be_huge && self.rng.chance(60);
            self.is_open |= self.giants;
            self.visible = if self.giants { self.pool.len() } else { 0 };
            let result = match self.rng.chance(12) && self.without.allows("loops") {
                true => self.repeated(),
                false => self.region(Self::attack),
            };
            (self.giants, self.visible) = (false, 0);
            self.pool.push(result);
        }
        let all = self.pool.iter().map(|val| val.text.as_str()).collect::<Vec<_>>().join(", ");
        let result = self.row(&format!("Core.tuple({all})"), "Any");
        self.stmt(&format!("return {}", result.text));
        let calls = (0..3).map(|_| self.call_of(number)).collect();
        Part {
            function: self.text(number),
            calls,
            is_compared: !self.is_open && !self.sees_slack(),
            attacks: self.attacks,
        }
    }

    /// Whether it may observe the capacity of a vector after growth, which is unspecified.
    fn sees_slack(&self) -> bool {
        let targets = |is: fn(Target) -> bool| self.attacks.iter().any(|&(target, _)| is(target));
        targets(
            |target| matches!(target, Target::Routine(name) if name.contains("grow") || name.contains("hint")),
        ) && targets(|target| target == Target::Builtin(Builtin::Getfield))
    }

    fn call_of(&mut self, number: usize) -> String {
        const OTHERS: [&str; 8] = ["nothing", "7", "\"text\"", "1.5", "(1, 2)", "true", "0x05", ":a"];
        let (a, b) = (self.extreme(), numbers::small(&mut self.rng));
        let x = OTHERS[self.rng.below(OTHERS.len())];
        format!("p{number}({a}, {b}, {x}, {})", self.rng.chance(50))
    }

    /// One to three consecutive attacks; later ones use the results of earlier ones.
    fn attack(&mut self) -> Val {
        let mut last = self.hit();
        for _ in 0..self.rng.below(3) {
            self.pool.push(last);
            last = self.hit();
        }
        last
    }

    /// One attack.
    fn hit(&mut self) -> Val {
        let target = Target::pick(&mut self.rng, self.without, self.library);
        let name = target.name();
        let mut form = match self.rng.below(100) {
            0..40 => Form::Named,
            40..50 => Form::Untyped,
            _ => Form::ALL[2 + self.rng.below(Form::ALL.len() - 2)],
        };
        if target.is_global() && self.rng.chance(90) {
            form = Form::Named;
        }
        if form.is_value() && !target.is_value() || !self.without.allows_form(&name, form) {
            let others: Vec<Form> = Form::ALL
                .into_iter()
                .filter(|&form| {
                    (!form.is_value() || target.is_value()) && self.without.allows_form(&name, form)
                })
                .collect();
            form = self.rng.pick(&others).copied().unwrap_or(Form::Named);
        }
        self.attacks.push((target, form));
        self.strike(target, form)
    }

    /// Attacks in a loop, with the iteration number as index.
    fn repeated(&mut self) -> Val {
        let (head, end) = (self.label(), self.label());
        let (times, before) = (2 + self.rng.below(30), self.blocks.len());
        self.stmt(&format!("goto @{head}@"));
        self.place(head);
        let (count, next) = (self.values + 1, self.label());
        self.values += 1;
        self.stmt(&format!("%{count} = φ (#{before} => 0, @{next}@ => %NEXT{count})::Int64"));
        let more = self.row(&format!("Base.slt_int(%{count}, {times})"), "Bool");
        self.stmt(&format!("goto @{end}@ if not {}", more.text));
        self.block();
        let known = self.pool.len();
        self.pool.push(Val::new(format!("%{count}"), "Int64"));
        self.region(Self::attack);
        self.pool.truncate(known);
        let stepped = self.row(&format!("Base.add_int(%{count}, 1)"), "Int64").text;
        self.labels[next] = self.blocks.len();
        self.stmt(&format!("goto @{head}@"));
        for row in self.blocks.iter_mut().flatten() {
            *row = row.replace(&format!("%NEXT{count})"), &format!("{stepped})"));
        }
        self.place(end);
        Val::new(format!("%{count}"), "Int64")
    }

    fn text(&self, number: usize) -> String {
        let mut text = format!("function p{number}(a::Int64, b::Int64, x::Any, c::Bool)::Any\n");
        for (n, rows) in self.blocks.iter().enumerate() {
            for (row, statement) in rows.iter().enumerate() {
                let mut statement = statement.clone();
                while let Some((before, rest)) = statement.split_once('@')
                    && let Some((label, after)) = rest.split_once('@')
                    && let Some(&block) = label.parse::<usize>().ok().and_then(|label| self.labels.get(label))
                {
                    statement = format!("{before}#{block}{after}");
                }
                // Writing to a string cannot fail.
                let _ = match row {
                    0 => writeln!(text, "{} ┄ {statement}", n + 1),
                    _ => writeln!(text, "│   {statement}"),
                };
            }
        }
        text.push_str("end\n");
        text
    }
}
