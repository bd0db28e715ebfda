//! Options of the page: level, passes, a call to count, the text of an embedder's language.

use std::collections::BTreeSet;

use brolga_opt::OptLevel;

/// How many statements a counted call may run unless [`Options::steps`] says otherwise: about half a minute of the interpreter.
pub const DEFAULT_STEPS: u64 = 200_000_000;

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The level of optimisation.
    pub level: OptLevel,
    /// The options of the passes. Options of dumps have no effect.
    pub passes: brolga_opt::Options,
    /// A call to count the executions of rows in, as text: `fib(20)`.
    pub call: Option<String>,
    /// How many statements the call may run; none for [`DEFAULT_STEPS`].
    pub steps: Option<u64>,
    /// The text in an embedder's language that the program was made from. The lines of its rows
    /// ([`Place::line`](brolga_ir::func::Place::at)) are lines of this text.
    pub source: Option<Source>,
    /// The symbols of the functions that the page shows; all if there is none. Their text is printed, so that nothing of the others is in the page but
    /// rows that were inlined.
    pub only: Option<BTreeSet<String>>,
}

impl Options {
    /// Whether the page shows a function.
    pub(crate) fn shows(&self, symbol: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(symbol))
    }
}

/// A text that a program was made from.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The text.
    pub text: String,
}
