//! Errors of a run of passes.

use brolga_ir::verify::Violation;
use brolga_ir::{Func, Level};
use std::fmt;

/// Why passes did not run to their end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OptError {
    /// The caller's mistake: there is no pass with this name.
    #[error("there is no pass `{name}`; the passes are {}", list(valid))]
    UnknownPass {
        /// The requested name.
        name: String,
        /// All passes, in the order of the table.
        valid: Vec<&'static str>,
    },
    /// The caller's mistake: another pass has the name.
    #[error("there is a pass `{pass}` already")]
    PassExists {
        /// The name.
        pass: &'static str,
    },
    /// The caller's mistake: an extra pass is to run before or after a step that is not there.
    #[error("`{pass}` cannot be placed: there is no step `{label}`; the steps are {}", list(valid))]
    UnknownStep {
        /// The pass.
        pass: &'static str,
        /// The label.
        label: String,
        /// The labels of all steps for this level of the IR.
        valid: Vec<&'static str>,
    },
    /// The caller's mistake: no place of an extra pass meets its conditions.
    #[error("`{pass}` cannot be placed after `{after}` and before `{before}`: they run the other way round")]
    NoPlace {
        /// The pass.
        pass: &'static str,
        /// The step that it is to follow.
        after: &'static str,
        /// The step that is to follow it.
        before: &'static str,
    },
    /// The caller's mistake: the pass does not take functions of this level.
    #[error("pass `{pass}` does not take functions in {level} IR")]
    WrongLevel {
        /// The pass.
        pass: &'static str,
        /// The level of the function.
        level: Level,
    },
    /// The function has more statements than [`Options::max_statements`](crate::Options::max_statements), as written or after inlining and unrolling.
    #[error("`{symbol}` has {count} statements, and the limit is {limit}")]
    TooLarge {
        /// The function's symbol.
        symbol: String,
        /// How many it has.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Compiling the function takes more memory than [`Options::compile_memory`](crate::Options::compile_memory), by an estimate from its size.
    #[error(
        "`{symbol}` is too large: compiling it takes about {bytes} bytes, and the limit is {limit} (`Options::compile_memory`)"
    )]
    TooMuchMemory {
        /// The function's symbol.
        symbol: String,
        /// The estimate.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The time limit was reached.
    #[error("the compilation was ended: its time is over")]
    Stopped,
    /// The function does not verify. Before the first pass that is the caller's mistake, after one it is our bug.
    #[error("{}: {message}", origin(after.as_deref(), symbol))]
    Broken {
        /// The pass after which it was found; `None` before the first.
        after: Option<Box<CrashNote>>,
        /// The function's symbol.
        symbol: String,
        /// The first violation as a sentence.
        message: String,
        /// All violations.
        violations: Vec<Violation>,
        /// The function that has them.
        func: Box<Func>,
    },
    /// Our bug: a pass panicked, or violated its declaration.
    #[error("{note} crashed: {message}")]
    Crash {
        /// Where.
        note: CrashNote,
        /// The panic's message.
        message: String,
    },
}

/// Which pass on which function went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrashNote {
    /// The pass.
    pub pass: &'static str,
    /// The step's name in its pipeline.
    pub label: &'static str,
    /// The step's number, from 1.
    pub step: usize,
    /// How many steps there are.
    pub steps: usize,
    /// The function's symbol.
    pub func: String,
    /// How many rewrites had been made by then, in this and all earlier functions.
    pub rewrites: u64,
}

impl fmt::Display for CrashNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pass `{}` (step {} of {}", self.pass, self.step, self.steps)?;
        if self.label != self.pass {
            write!(f, ", `{}`", self.label)?;
        }
        write!(f, ") on `{}`, after {} rewrites,", self.func, self.rewrites)
    }
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn origin(after: Option<&CrashNote>, symbol: &str) -> String {
    match after {
        Some(note) => format!("{note} left a function that does not verify"),
        None => format!("`{symbol}` does not verify"),
    }
}
