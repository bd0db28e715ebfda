//! Loops in the shapes that Julia prints.

use super::rows::Value;
use super::syntax::{Expr, Over, Stmt};
use super::{Env, Jumps, Lower};
use std::collections::BTreeSet;

impl Lower<'_> {
    /// φ in the present block for all variables that the body assigns; the first operand comes from `before`.
    fn carried(&mut self, body: &[Stmt], before: usize) -> Vec<(String, Value)> {
        let mut assigned = BTreeSet::new();
        assigned_in(body, &mut assigned);
        let mut phis = Vec::new();
        for name in assigned {
            let Some(value) = self.env.get(&name) else { continue };
            let operand = (before, value.text.clone());
            let phi = self.rows.phi(vec![operand], &self.types[&name]);
            self.env.insert(name.clone(), phi.clone());
            phis.push((name, phi));
        }
        phis
    }

    fn come_back(&mut self, phis: &[(String, Value)], from: usize, env: &Env) {
        for (name, phi) in phis {
            self.rows.add_operand(phi, from, &env[name].text);
        }
    }

    pub(super) fn while_loop(&mut self, cond: &Expr, body: &[Stmt]) {
        let before = self.rows.current();
        let head = self.rows.create();
        self.rows.goto(head);
        self.rows.start(head);
        let phis = self.carried(body, before);
        let exit = self.rows.create();
        let at_head = self.env.clone();
        if matches!(cond, Expr::Literal(text, _) if text == "true") {
            let inside = self.rows.create();
            self.rows.goto(inside);
            self.rows.start(inside);
        } else {
            self.branch(cond, exit);
        }
        self.loops.push(Jumps::default());
        self.body(body);
        let mut jumps = self.loops.pop().unwrap_or_default();
        if self.rows.is_open() {
            jumps.continues.push((self.rows.current(), self.env.clone()));
            self.rows.leave();
        }
        for (from, env) in &jumps.continues {
            self.come_back(&phis, *from, env);
            self.rows.jump(*from, head);
        }
        let is_endless = matches!(cond, Expr::Literal(..));
        self.env = at_head;
        if is_endless {
            self.join(&jumps.breaks);
            return;
        }
        self.rows.start(exit);
        if !jumps.breaks.is_empty() {
            let mut ends = vec![(exit, self.env.clone())];
            ends.append(&mut jumps.breaks);
            self.rows.leave();
            self.join(&ends);
        }
    }

    pub(super) fn for_loop(&mut self, var: &str, over: &Over, simd: bool, body: &[Stmt]) {
        match over {
            Over::Range(first, None, last) if simd => {
                assert!(matches!(first, Expr::Literal(one, _) if one == "1"), "`@simd` counts from 1");
                self.simd_loop(var, last, body);
            }
            Over::Range(first, step, last) => {
                let first = self.expr(first);
                let last = self.expr(last);
                let step = step.as_ref().map(|s| self.expr(s));
                self.range_loop(var, &first, step, &last, body);
            }
            Over::Elements(array) => self.element_loop(var, array, body),
        }
    }

    /// The test whether there is a first round: φ with a missing edge for what the round begins with, `(block before the loop, its values)`.
    fn first_round(
        &mut self,
        some: usize,
        none: usize,
        firsts: &[(&str, &str)],
    ) -> (usize, Vec<Value>, String) {
        let meet = self.rows.create();
        self.rows.jump(some, meet);
        self.rows.jump(none, meet);
        self.rows.start(meet);
        let done = self.rows.phi(vec![(some, "false".to_owned()), (none, "true".to_owned())], "Bool");
        let values = firsts.iter().map(|(v, ty)| self.rows.phi(vec![(some, (*v).to_owned())], ty)).collect();
        let goes = self.rows.row(&format!("Base.not_int({})", done.text), "Bool");
        (meet, values, goes.text)
    }

    fn range_loop(&mut self, var: &str, first: &Value, step: Option<Value>, last: &Value, body: &[Stmt]) {
        let (stop, none) = match &step {
            None => {
                let some = self.rows.row(&format!("Base.sle_int({}, {})", first.text, last.text), "Bool");
                let before = if first.text == "1" {
                    "0".to_owned()
                } else {
                    self.rows.row(&format!("Base.sub_int({}, 1)", first.text), "Int64").text
                };
                let stop =
                    self.rows.row(&format!("Core.ifelse({}, {}, {before})", some.text, last.text), "Int64");
                let none = self.rows.row(&format!("Base.slt_int({}, {})", stop.text, first.text), "Bool");
                (stop, none)
            }
            Some(step) => {
                let text = format!(
                    "invoke Main.steprange_last({}::Int64, {}::Int64, {}::Int64)",
                    first.text, step.text, last.text
                );
                let stop = self.rows.row(&text, "Int64");
                let is_last = self.rows.row(&format!("({} === {})", first.text, stop.text), "Bool");
                let is_more = self.rows.row(&format!("Base.not_int({})", is_last.text), "Bool");
                let up = self.rows.row(&format!("Base.slt_int(0, {})", step.text), "Bool");
                let before = self.rows.row(&format!("Base.slt_int({}, {})", first.text, stop.text), "Bool");
                let same = self.rows.row(&format!("({} === {})", up.text, before.text), "Bool");
                let other = self.rows.row(&format!("Base.not_int({})", same.text), "Bool");
                let none = self.rows.row(&format!("Base.and_int({}, {})", is_more.text, other.text), "Bool");
                (stop, none)
            }
        };
        let some = self.rows.create();
        self.rows.unless(&none.text, some);
        let empty = self.rows.current();
        self.rows.leave();
        self.rows.start(some);
        self.rows.leave();
        let firsts = [(first.text.as_str(), "Int64"), (first.text.as_str(), "Int64")];
        let (meet, firsts, goes) = self.first_round(some, empty, &firsts);
        let exit = self.rows.create();
        self.rows.unless(&goes, exit);
        let before = self.rows.current();
        let head = self.rows.create();
        self.rows.goto(head);
        let outside = self.env.clone();
        self.rows.start(head);
        let index = self.rows.phi(vec![(before, firsts[0].text.clone())], "Int64");
        let state = self.rows.phi(vec![(before, firsts[1].text.clone())], "Int64");
        let phis = self.carried(body, before);
        self.define(var, index.clone());
        let advance = |lower: &mut Self| {
            let end = lower.rows.row(&format!("({} === {})", state.text, stop.text), "Bool");
            let more = lower.rows.create();
            lower.rows.unless(&end.text, more);
            let done = lower.rows.current();
            lower.rows.leave();
            lower.rows.start(more);
            let by = step.as_ref().map_or("1", |s| &s.text);
            let next = lower.rows.row(&format!("Base.add_int({}, {by})", state.text), "Int64");
            lower.rows.leave();
            (more, done, vec![(next.text.clone(), "Int64".to_owned()), (next.text, "Int64".to_owned())])
        };
        self.rounds(body, head, &phis, &[index.clone(), state.clone()], (meet, exit, outside), advance);
    }

    /// The body, the step to the next round, and the way out.
    fn rounds(
        &mut self,
        body: &[Stmt],
        head: usize,
        phis: &[(String, Value)],
        states: &[Value],
        (meet, exit, outside): (usize, usize, Env),
        advance: impl FnOnce(&mut Self) -> (usize, usize, Vec<(String, String)>),
    ) {
        self.loops.push(Jumps::default());
        self.body(body);
        let mut jumps = self.loops.pop().unwrap_or_default();
        if self.rows.is_open() {
            jumps.continues.push((self.rows.current(), self.env.clone()));
            self.rows.leave();
        }
        let mut ends = vec![(meet, outside)];
        if !jumps.continues.is_empty() {
            self.join(&jumps.continues);
            let env = self.env.clone();
            let (more, done, nexts) = advance(self);
            let latch = self.rows.create();
            self.rows.jump(more, latch);
            self.rows.jump(done, latch);
            self.rows.start(latch);
            let nexts: Vec<Value> =
                nexts.iter().map(|(next, ty)| self.rows.phi(vec![(more, next.clone())], ty)).collect();
            let is_done = self.rows.phi(vec![(more, "false".to_owned()), (done, "true".to_owned())], "Bool");
            let goes = self.rows.row(&format!("Base.not_int({})", is_done.text), "Bool");
            self.rows.unless(&goes.text, exit);
            let back = self.rows.current();
            self.rows.goto(head);
            for (state, next) in states.iter().zip(&nexts) {
                self.rows.add_operand(state, back, &next.text);
            }
            self.come_back(phis, back, &env);
            ends.push((latch, env));
        }
        self.rows.start(exit);
        self.env = self.merged(&ends);
        if !jumps.breaks.is_empty() {
            let mut ends = vec![(exit, self.env.clone())];
            ends.append(&mut jumps.breaks);
            self.rows.leave();
            self.join(&ends);
        }
    }

    fn element_loop(&mut self, var: &str, array: &Expr, body: &[Stmt]) {
        let array = self.expr(array);
        let element = super::expr::element_of(&array.ty);
        let reads = |lower: &mut Self, at: &str| {
            let length = lower.length(&array);
            let offset = lower.rows.row(&format!("Base.sub_int({at}, 1)"), "Int64");
            let offset = lower.rows.row(&format!("Base.bitcast(UInt64, {})", offset.text), "UInt64");
            let limit = lower.rows.row(&format!("Base.bitcast(UInt64, {})", length.text), "UInt64");
            let inside = lower.rows.row(&format!("Base.ult_int({}, {})", offset.text, limit.text), "Bool");
            let none = lower.rows.create();
            lower.rows.unless(&inside.text, none);
            let some = lower.rows.current();
            let outer = std::mem::replace(&mut lower.inbounds, true);
            let (_, reference) = lower.reference_at(&array, &Value::new(at, "Int64"));
            lower.inbounds = outer;
            let value = lower
                .rows
                .row(&format!("Base.memoryrefget({}, :not_atomic, false)", reference.text), &element);
            let next = lower.rows.row(&format!("Base.add_int({at}, 1)"), "Int64");
            lower.rows.leave();
            lower.rows.start(none);
            lower.rows.leave();
            (some, none, value, next)
        };
        let (some, none, value, next) = reads(self, "1");
        let firsts = [(value.text.as_str(), element.as_str()), (next.text.as_str(), "Int64")];
        let (meet, firsts, goes) = self.first_round(some, none, &firsts);
        let exit = self.rows.create();
        self.rows.unless(&goes, exit);
        let before = self.rows.current();
        let head = self.rows.create();
        self.rows.goto(head);
        let outside = self.env.clone();
        self.rows.start(head);
        let item = self.rows.phi(vec![(before, firsts[0].text.clone())], &element);
        let state = self.rows.phi(vec![(before, firsts[1].text.clone())], "Int64");
        let phis = self.carried(body, before);
        self.define(var, item.clone());
        let advance = |lower: &mut Self| {
            let (more, done, value, next) = reads(lower, &state.text);
            (more, done, vec![(value.text, value.ty), (next.text, next.ty)])
        };
        self.rounds(body, head, &phis, &[item.clone(), state.clone()], (meet, exit, outside), advance);
    }

    fn simd_loop(&mut self, var: &str, last: &Expr, body: &[Stmt]) {
        let last = self.expr(last);
        let some = self.rows.row(&format!("Base.slt_int(0, {})", last.text), "Bool");
        let stop = self.rows.row(&format!("Core.ifelse({}, {}, 0)", some.text, last.text), "Int64");
        let goes = self.rows.row(&format!("Base.slt_int(0, {})", stop.text), "Bool");
        let empty = self.rows.create();
        self.rows.unless(&goes.text, empty);
        let before = self.rows.current();
        let outside = self.env.clone();
        let head = self.rows.create();
        self.rows.goto(head);
        self.rows.start(head);
        let count = self.rows.phi(vec![(before, "0".to_owned())], "Int64");
        let phis = self.carried(body, before);
        let at_head = self.env.clone();
        let cond = self.rows.row(&format!("Base.slt_int({}, {})", count.text, stop.text), "Bool");
        let exit = self.rows.create();
        self.rows.unless(&cond.text, exit);
        let index = self.rows.row(&format!("Base.add_int({}, 1)", count.text), "Int64");
        self.define(var, index);
        self.loops.push(Jumps::default());
        self.body(body);
        self.loops.pop();
        let next = self.rows.row(&format!("Base.add_int({}, 1)", count.text), "Int64");
        self.rows.row("$(Expr(:loopinfo, Symbol(\"julia.simdloop\"), nothing))", "Any");
        let back = self.rows.current();
        self.rows.goto(head);
        self.rows.add_operand(&count, back, &next.text);
        let env = self.env.clone();
        self.come_back(&phis, back, &env);
        self.rows.start(exit);
        self.rows.leave();
        self.rows.start(empty);
        self.rows.leave();
        self.join(&[(exit, at_head), (empty, outside)]);
    }
}

/// The variables that these statements assign.
fn assigned_in(body: &[Stmt], names: &mut BTreeSet<String>) {
    for stmt in body {
        match stmt {
            Stmt::Assign(Expr::Name(name), ..) => {
                names.insert(name.clone());
            }
            Stmt::If(arms, other) => {
                arms.iter().for_each(|(_, body)| assigned_in(body, names));
                assigned_in(other, names);
            }
            Stmt::While(_, body) | Stmt::For { body, .. } => assigned_in(body, names),
            Stmt::Inbounds(inner) => assigned_in(std::slice::from_ref(inner), names),
            _ => {}
        }
    }
}
