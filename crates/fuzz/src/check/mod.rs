//! The checks, as functions called by tests, fuzzers and the command.
//!
//! | function | property |
//! |---|---|
//! | [`check_differential`] | every engine has the same outcome for the same call |
//! | [`check_tiers`] | functions in two tiers agree with the interpreter, first for the types in their profiles, then for others |
//! | [`check_guards`] | the same for a program of dynamic operators each of whose operands has each type in turn |
//! | [`check_attack`] | checked programs of an attacker end as in the interpreter, end in time, and leave the heap intact |
//! | [`check_round_trip`] | a module verifies; printing, reading and printing again results in the same text |
//! | [`check_printed`] | a dump in Julia's format is read or refused by name; a module that was read is unchanged by printing and reading |
//! | [`check_text`], [`check_binary`] | any bytes are read, without a panic, as a module or as errors with positions; a module is compiled or refused |
//!
//! A check returns a [`Failure`], which contains everything needed to reproduce the fault: the seed, the text
//! and the outcome. Checks do not print or read a clock.

mod attack;
mod damage;
mod differential;
mod engine;
mod guards;
mod leaves;
mod low;
mod native;
mod outcome;
mod printed;
mod round_trip;
mod tiers;

pub use attack::{Arena, Attacked, check_attack};
pub use damage::{Reading, check_binary, check_text};
pub(crate) use differential::is_called;
pub use differential::{Compared, Run, check_differential};
pub use engine::{Engine, HighInterpreter, Loaded, Passes};
pub use guards::{Guards, check_guards};
pub use low::LowInterpreter;
pub use native::Native;
pub use outcome::{Outcome, show};
pub use printed::check_printed;
pub use round_trip::check_round_trip;
pub use tiers::{Climbed, Tiered, check_tiers};

use brolga_ir::Module;
use brolga_ir::diag::Style;
use brolga_ir::verify::{point_into_printout, verify_module};
use std::fmt;

/// A failed check.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The seed of the input.
    pub seed: u64,
    /// The input.
    pub text: String,
    pub trouble: Trouble,
}

/// A kind of trouble.
#[derive(Clone, PartialEq, Debug)]
pub enum Trouble {
    /// A panic occurred.
    Panic {
        /// The stage in which it occurred.
        stage: &'static str,
        /// The panic's message.
        message: String,
    },
    /// An error has a position outside the input, or no message.
    BadPlace {
        /// The code of the error.
        code: &'static str,
        /// Its position.
        span: (u32, u32),
    },
    /// The verifier rejects a module that should be well formed.
    Malformed(String),
    /// The input was printed by Brolga, but cannot be read.
    Unreadable(String),
    /// The input is in Julia's format, and an error reports a syntax error, or does not name the refused
    /// construct.
    NotNamed(String),
    /// Printing the input after reading it results in a different text.
    OtherText {
        /// The other text.
        second: String,
    },
    /// Writing the input in binary form, reading and writing it again results in different bytes.
    OtherBytes,
    /// An engine refuses the module.
    Refused {
        engine: String,
        /// The reason.
        why: String,
    },
    /// Engines disagree, or one of them cannot continue.
    Differs {
        call: String,
        /// Engines and their outcomes; the last one differs.
        outcomes: Vec<(String, String)>,
        /// The lowest limit of rewrites with which the last engine differs, if its passes are to blame.
        opt_limit: Option<u64>,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Panic { stage, message } => write!(f, "{stage} panicked: {message}"),
            Trouble::BadPlace { code, span: (start, end) } => {
                write!(f, "the error `{code}` points at {start}..{end}, which is not a position in the input")
            }
            Trouble::Malformed(why) => write!(f, "the verifier says\n{why}"),
            Trouble::Unreadable(why) => write!(f, "the printed text cannot be read:\n{why}"),
            Trouble::NotNamed(why) => {
                write!(f, "Julia prints this, and it is refused without a name:\n{why}")
            }
            Trouble::OtherText { second } => write!(f, "reading and printing again results in\n{second}"),
            Trouble::OtherBytes => f.write_str("writing, reading and writing again results in other bytes"),
            Trouble::Refused { engine, why } => write!(f, "{engine} refuses the module: {why}"),
            Trouble::Differs { call, outcomes, opt_limit } => {
                f.write_str(call)?;
                outcomes.iter().try_for_each(|(engine, outcome)| write!(f, "\n  {engine}: {outcome}"))?;
                opt_limit
                    .map_or(Ok(()), |limit| write!(f, "\n  it begins to differ with --opt-limit={limit}"))
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.trouble)?;
        f.write_str("──── the input\n")?;
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Runs `work`; a panic in it becomes trouble.
pub(crate) fn fenced<T>(stage: &'static str, work: impl FnOnce() -> T) -> Result<T, Trouble> {
    // The borrows of `work` are not used again after a panic.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Trouble::Panic { stage, message }
    })
}

/// The verifier's violations, as text.
fn verify(module: &Module) -> Result<(), String> {
    let Err(found) = verify_module(module) else { return Ok(()) };
    let mut text = String::new();
    for (id, violations) in &found.funcs {
        let (source, findings) = point_into_printout(&module.cx, &module[*id], violations);
        findings.iter().for_each(|finding| text.push_str(&finding.render(&source, &Style::PLAIN)));
    }
    found.globals.iter().for_each(|global| text.push_str(&global.message(&module.cx)));
    Err(text)
}
