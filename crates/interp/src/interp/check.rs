//! Constants of the text as values, and the tests in a text.
//!
//! A [`Term`] is a tree of literals and constructors; only an interpreter can make the mutable parts of it. A
//! [`Check`] calls a function on fresh arguments and states the expected result or exception. Results are
//! compared by [`Interp::is_equal`]; a thrown exception must have the expected type or a subtype.

use super::Interp;
use super::error::{Eval, Fault, Outcome};
use super::value::Val;
use brolga_ir::constant::Const;
use brolga_ir::text::{self, Call, Check, Term};
use brolga_ir::types::Type;

/// The result of a check.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It does not: what was expected and what happened, both as text.
    Failed {
        /// The expected value, or the type of the expected exception.
        expected: String,
        /// The value that was returned, the exception that was thrown, or the error that ended the call.
        found: String,
    },
}

impl Interp<'_> {
    /// The value of a term, with fresh objects.
    pub fn term(&mut self, term: &Term) -> Result<Val, Outcome> {
        let val = self.make_term(term);
        val.map_err(|stop| self.outcome_without_place(stop))
    }

    /// Makes a call written in a text.
    pub fn run_call(&mut self, call: &Call) -> Result<Val, Outcome> {
        let callee = self.term(&call.callee)?;
        let args = call.args.iter().map(|arg| self.term(arg)).collect::<Result<Vec<_>, _>>()?;
        self.call_value(callee, &args)
    }

    /// Runs a check. Earlier calls may have changed globals, so each check needs a fresh interpreter.
    pub fn run_check(&mut self, check: &Check) -> Verdict {
        let result = self.run_call(&check.call);
        let passed = match (&check.outcome, &result) {
            (text::Outcome::Returns(expected), Ok(found)) => match self.term(expected) {
                Ok(expected) => self.is_equal(&expected, found).unwrap_or(false),
                Err(_) => false,
            },
            (text::Outcome::Throws(ty), Err(Outcome::Thrown(found))) => self.is_a(found, *ty),
            _ => false,
        };
        if passed {
            return Verdict::Passed;
        }
        let expected = match &check.outcome {
            text::Outcome::Returns(term) => match self.term(term) {
                Ok(val) => self.shown_or_why(&val),
                Err(outcome) => self.describe(&outcome),
            },
            text::Outcome::Throws(ty) => format!("an exception of type {}", self.type_text(*ty)),
        };
        let found = match &result {
            Ok(val) => self.shown_or_why(val),
            Err(outcome) => self.describe(outcome),
        };
        Verdict::Failed { expected, found }
    }

    /// The outcome of a call that did not return, in readable form.
    pub fn describe(&mut self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Thrown(val) => format!("threw {}", self.shown_or_why(val)),
            Outcome::Error(error) => error.to_string(),
            Outcome::OutOfFuel => format!("did not end within {} steps", self.options.max_steps),
            Outcome::Ended(end) => end.to_string(),
        }
    }

    fn shown_or_why(&mut self, val: &Val) -> String {
        match self.show(val) {
            Ok(text) => text,
            // Showing throws nothing, so this is a fault of memory that the program freed.
            Err(_) => format!("a {}", self.type_text(val.ty(self.types()))),
        }
    }

    /// Terms come from text, which limits their nesting.
    fn make_term(&mut self, term: &Term) -> Eval<Val> {
        match term {
            Term::Const(Const::Undef(ty)) => {
                Err(Fault::Type(format!("an undefined `{}` as a value", self.type_text(*ty))).into())
            }
            Term::Const(constant) => self.simple_const(constant),
            Term::Bytes(bytes) => self.new_string(bytes.clone()),
            Term::Aggregate { ty, fields } => {
                let fields = fields.iter().map(|f| self.make_term(f)).collect::<Eval<Vec<_>>>()?;
                self.new_struct(*ty, fields)
            }
            Term::Array { ty, dims, items } => {
                let elem = self.types().array_parts(*ty).map_or(Type::ANY, |(elem, _)| elem);
                let items = items.iter().map(|item| self.make_term(item)).collect::<Eval<Vec<_>>>()?;
                let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
                self.array_of(elem, &dims, &items)
            }
        }
    }
}
