//! Options of the page: level, passes, a call to count, the text of an embedder's language.

use std::collections::BTreeSet;

use brolga_opt::OptLevel;

/// The maximum number of statements of a counted call unless [`Options::steps`] is set: about half a minute
/// in the interpreter.
pub const DEFAULT_STEPS: u64 = 200_000_000;

/// The options of a page.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The level of optimisation.
    pub level: OptLevel,
    /// The options of the passes. Options of dumps have no effect.
    pub passes: brolga_opt::Options,
    /// A call during which the executions of rows are counted, as text: `fib(20)`.
    pub call: Option<String>,
    /// The maximum number of statements of the call; `None` for [`DEFAULT_STEPS`].
    pub steps: Option<u64>,
    /// The text in an embedder's language that the program was made from. The line numbers of the program's
    /// rows ([`Place::line`](brolga_ir::func::Place::at)) refer to this text.
    pub source: Option<Source>,
    /// The symbols of the functions that the page shows; `None` for all. Their text is printed, so that the
    /// page contains nothing of the others except rows that were inlined.
    pub only: Option<BTreeSet<String>>,
}

impl Options {
    /// Whether the page shows a function.
    pub(crate) fn shows(&self, symbol: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(symbol))
    }
}

/// The text that a program was made from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the text, such as a file name.
    pub name: String,
    /// The text.
    pub text: String,
}
