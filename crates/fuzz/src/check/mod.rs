//! The checks themselves, as functions that tests, fuzzers and the command call.
//!
//! | function | what must hold |
//! |---|---|
//! | [`check_differential`] | every engine gives the same outcome for the same call |
//! | [`check_tiers`] | functions in two tiers give what the interpreter gives, first for the types that their profiles see, then for others |
//! | [`check_guards`] | so does a program of dynamic operators when each operand of each of them is of each type in turn |
//! | [`check_attack`] | checked programs of an attacker end as in the interpreter, end in time, and leave the heap whole |
//! | [`check_round_trip`] | a module verifies; printing, reading and printing again gives the same text |
//! | [`check_printed`] | a dump as Julia prints it is read or refused by name, and what was read prints and reads as the same module |
//! | [`check_text`], [`check_binary`] | reading any bytes ends, without a panic, in a module or in errors that have places; a module can be compiled or is refused |
//!
//! A check returns a [`Failure`], which holds everything for reproducing the fault: the seed, the text and the
//! outcome. None of them prints, and none reads a clock.

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

/// A check that did not hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The seed of the input.
    pub seed: u64,
    /// The input.
    pub text: String,
    /// The trouble.
    pub trouble: Trouble,
}

/// A kind of trouble.
#[derive(Clone, PartialEq, Debug)]
pub enum Trouble {
    /// Something panicked.
    Panic {
        /// The stage.
        stage: &'static str,
        /// The panic's message.
        message: String,
    },
    /// An error points outside of the input, or says nothing.
    BadPlace {
        /// The code of the error.
        code: &'static str,
        /// Where it points.
        span: (u32, u32),
    },
    /// The verifier finds fault with a module that should be well formed.
    Malformed(String),
    /// The input was printed by Brolga, which does not read it.
    Unreadable(String),
    /// The input is what Julia prints, and an error calls it a mistake of syntax, or does not name what it refuses.
    NotNamed(String),
    /// The input was read and printed again, and came out otherwise.
    OtherText {
        /// The other text.
        second: String,
    },
    /// The input was written in binary form and read, and writing it again gives other bytes.
    OtherBytes,
    /// An engine does not take the module.
    Refused {
        /// The engine.
        engine: String,
        /// Its reason.
        why: String,
    },
    /// Engines disagree, or one of them cannot continue.
    Differs {
        /// The call.
        call: String,
        /// Engines and what they gave; the last one is the one that differs.
        outcomes: Vec<(String, String)>,
        /// The number of rewrites with which the last engine begins to differ, if it has passes and they are to blame.
        opt_limit: Option<u64>,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Panic { stage, message } => write!(f, "{stage} panicked: {message}"),
            Trouble::BadPlace { code, span: (start, end) } => {
                write!(f, "the error `{code}` points at {start}..{end}, which is no place of the input")
            }
            Trouble::Malformed(why) => write!(f, "the verifier says\n{why}"),
            Trouble::Unreadable(why) => write!(f, "the printed text cannot be read:\n{why}"),
            Trouble::NotNamed(why) => {
                write!(f, "Julia prints this, and it is refused without a name:\n{why}")
            }
            Trouble::OtherText { second } => write!(f, "reading and printing again gives\n{second}"),
            Trouble::OtherBytes => f.write_str("writing, reading and writing again gives other bytes"),
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

/// Every broken rule of a module as text.
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
