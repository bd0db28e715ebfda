//! Precompile statements: which functions a run has compiled, one a line, for `brolga image build --statements`.
//!
//! ```text
//!   precompile fib(Int64)
//!   precompile area(Square)   # tier 1
//!   precompile fib(Int64)     # again
//! ```
//!
//! Code that is loaded from a cache or package is not compiled, so it has none. Everything after `#` is a remark. A statement that names no function of the programs, such as a renamed one, compiles nothing, so old traces stay
//! useful.
//!
//! With times, a remark also has the times of passes and code generation, if the listener has them: in a session, where functions are compiled one by
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use brolga::observe::events::{Event, EventListener, Stage, Tier};

/// The first token of a statement.
const PRECOMPILE: &str = "precompile ";

/// The functions that statements name; or the number of the line that is none.
pub(super) fn read(text: &str) -> Result<BTreeSet<String>, usize> {
    let mut functions = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let statement = line.split('#').next().unwrap_or_default().trim();
        if statement.is_empty() {
            continue;
        }
        let function = statement.strip_prefix(PRECOMPILE).map(str::trim);
        let function = function.filter(|function| !function.is_empty()).ok_or(at + 1)?;
        functions.insert(function.to_owned());
    }
    Ok(functions)
}

/// Listens to a run, and writes down what is compiled.
#[derive(Default)]
pub(super) struct Statements {
    has_times: bool,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// Spans that have begun, by thread.
    open: Vec<(ThreadId, Stage, String, Instant)>,
    /// How long was worked on functions that are not in force yet.
    took: BTreeMap<String, Duration>,
    /// The functions that were in force, with their tiers.
    seen: BTreeSet<(String, Tier)>,
    text: String,
}

impl Statements {
    /// A listener that notes times or none.
    pub(super) fn new(has_times: bool) -> Statements {
        Statements { has_times, told: Mutex::default() }
    }

    /// The statements so far.
    pub(super) fn text(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).text.clone()
    }
}

impl EventListener for Statements {
    fn event(&self, event: Event<'_>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::thread::current().id();
        match event {
            Event::Begin { stage: stage @ (Stage::Optimise | Stage::Generate), name } if self.has_times => {
                told.open.push((here, stage, name.to_owned(), Instant::now()));
            }
            Event::End { stage: stage @ (Stage::Optimise | Stage::Generate) } if self.has_times => {
                // Spans of one thread nest.
                let at = told.open.iter().rposition(|(thread, open, ..)| *thread == here && *open == stage);
                let Some((_, _, name, begun)) = at.map(|at| told.open.remove(at)) else { return };
                *told.took.entry(name).or_default() += begun.elapsed();
            }
            Event::Published { function, tier, is_loaded: false } => {
                let mut remarks = Vec::new();
                if tier != Tier::Optimised {
                    remarks.push(format!("tier {tier}"));
                }
                if !told.seen.insert((function.to_owned(), tier)) {
                    remarks.push("again".to_owned());
                }
                if let Some(took) = told.took.remove(function) {
                    remarks.push(format!("{:.3} ms", took.as_secs_f64() * 1e3));
                }
                let remark =
                    if remarks.is_empty() { String::new() } else { format!("  # {}", remarks.join(", ")) };
                // Writing to a string cannot fail.
                let _ = writeln!(told.text, "{PRECOMPILE}{function}{remark}");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_statements_are_read_back() {
        let statements = Statements::new(false);
        let (first, second) = (Tier::Baseline, Tier::Optimised);
        let told =
            [("fib(Int64)", first), ("fib(Int64)", second), ("area(Square)", second), ("fib(Int64)", second)];
        for (function, tier) in told {
            statements.event(Event::Published { function, tier, is_loaded: false });
        }
        for (function, tier) in [("area(Square)", second), ("loaded()", second)] {
            statements.event(Event::Published { function, tier, is_loaded: true });
        }
        let text = statements.text();
        assert_eq!(
            text,
            "precompile fib(Int64)  # tier 1\nprecompile fib(Int64)\nprecompile area(Square)\nprecompile fib(Int64)  # again\n"
        );
        let functions: Vec<String> = read(&text).unwrap().into_iter().collect();
        assert_eq!(functions, ["area(Square)", "fib(Int64)"]);
        assert_eq!(read("# nothing\n\n").unwrap().len(), 0);
        assert_eq!(read("precompile f()\nfib(Int64)\n"), Err(2));
        assert_eq!(read("precompile \n"), Err(1));
    }

    #[test]
    fn times_are_those_of_the_function() {
        let statements = Statements::new(true);
        statements.event(Event::Begin { stage: Stage::Optimise, name: "f()" });
        statements.event(Event::Begin { stage: Stage::Pass, name: "inline" });
        statements.event(Event::End { stage: Stage::Pass });
        statements.event(Event::End { stage: Stage::Optimise });
        statements.event(Event::Published { function: "f()", tier: Tier::Optimised, is_loaded: false });
        let text = statements.text();
        assert!(text.starts_with("precompile f()  # ") && text.ends_with(" ms\n"), "{text}");
    }
}
