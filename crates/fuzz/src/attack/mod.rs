//! Checked programs as an attacker would write them.
//!
//! ```text
//! seed ─► 96 functions ── each: objects of odd types ─► up to five attacks, each in a handler ─► a tuple of the remaining values
//!                                                         │
//!                        target   every builtin, intrinsic and routine except doors     (`targets`)
//!                        form     by name, or known only at run time              (`forms`, `calls`)
//!                        operands by the role of each, or unsuitable                      (`operands`, `values`, `routines`)
//! ```
//!
//! **Targets** come from the product's own tables, so a new row is attacked without a change here. If the
//! roles of a row's operands are unknown, they get values of any type.
//!
//! **Names.** Every choice has a name: a target, a form, an element type, a trait ([`TRAITS`]), or a target
//! with a form (`memoryrefnew:barrier`). A campaign can exclude names, so that a known fault does not hide
//! others.
//!
//! Not done: run-time routines that only lowering calls, by their symbols; programs with several threads.

mod body;
mod calls;
mod forms;
mod numbers;
mod operands;
mod routines;
mod shared;
mod targets;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::rng::Rng;
use body::Writer;
pub use forms::Form;
pub use targets::Target;

/// The number of programs in an input.
pub const PARTS: usize = 96;
/// Choices other than targets, forms and types.
pub const TRAITS: [&str; 7] =
    ["overrides", "handlers", "loops", "preserve", "giants", "globals", "unchecked"];

/// Choices that are excluded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Without {
    names: Vec<String>,
}

impl Without {
    /// Excludes these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Without {
        Without { names: names.into_iter().collect() }
    }

    /// The names that do not denote a choice.
    pub fn unknown(&self) -> Vec<&str> {
        let mut known: Vec<String> = Target::all().map(|target| target.name()).collect();
        known.extend(Form::ALL.iter().map(|form| form.name().to_owned()));
        known.extend(shared::ELEMENTS.iter().chain(&TRAITS).map(|&name| name.to_owned()));
        known.extend(shared::OVERRIDES.iter().map(|(name, _)| (*name).to_owned()));
        let is_known = |name: &str| known.iter().any(|known| known == name);
        let parts = |name: &&String| match name.rsplit_once(':') {
            Some((target, form)) if Form::ALL.iter().any(|known| known.name() == form) => is_known(target),
            _ => is_known(name),
        };
        self.names.iter().filter(|name| !parts(name)).map(String::as_str).collect()
    }

    fn allows(&self, name: &str) -> bool {
        !self.names.iter().any(|left_out| left_out == name)
    }

    fn allows_form(&self, target: &str, form: Form) -> bool {
        self.allows(form.name())
            && !self.names.iter().any(|left_out| {
                left_out.rsplit_once(':').is_some_and(|(of, by)| of == target && by == form.name())
            })
    }
}

/// A program of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The name of its function.
    pub function: String,
    /// Calls of the function.
    pub calls: Vec<String>,
    /// Whether the interpreter is the oracle. It has no memory for the maximum number of elements without
    /// size, and the values of undefined parts of immutable objects are unspecified.
    pub is_compared: bool,
    /// The attacks of the program.
    pub attacks: Vec<(Target, Form)>,
}

/// The programs of a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Declarations and functions shared by all programs.
    pub shared: String,
    /// The programs.
    pub parts: Vec<Part>,
}

impl Input {
    pub fn new(seed: u64, without: &Without) -> Input {
        let mut rng = Rng::new(seed ^ 0xa77a_c4ed);
        let shared = shared::text(&mut rng, without);
        let has_library = shared.has_library;
        let parts = (0..PARTS).map(|number| {
            let rng = Rng::new(seed.wrapping_mul(PARTS as u64).wrapping_add(number as u64));
            Writer::new(rng, without, has_library).part(number)
        });
        Input { parts: parts.collect(), shared: shared.text }
    }

    /// The text of the selected parts, and the line on which each begins, counted from 1.
    pub fn text(&self, parts: &[usize]) -> (String, Vec<usize>) {
        let mut text = self.shared.clone();
        let mut lines = text.lines().count();
        let mut starts = Vec::new();
        for part in parts.iter().filter_map(|&part| self.parts.get(part)) {
            starts.push(lines + 1);
            for call in &part.calls {
                let _ = writeln!(text, "# check: {call} == 0");
            }
            text.push_str(&part.function);
            lines += part.calls.len() + part.function.lines().count();
        }
        (text, starts)
    }
}

/// How often each target was attacked by name, and as a value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<String, [u64; 2]>,
}

impl Coverage {
    /// Counts the attacks of a program.
    pub fn add(&mut self, part: &Part) {
        for (target, form) in &part.attacks {
            self.counts.entry(target.name()).or_default()[usize::from(form.is_value())] += 1;
        }
    }

    /// The targets that were not attacked, with the missing form.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for target in Target::all() {
            let counts = self.counts.get(&target.name()).copied().unwrap_or_default();
            if counts[0] == 0 {
                missing.push(format!("{} named", target.name()));
            }
            if counts[1] == 0 && target.is_value() {
                missing.push(format!("{} as a value", target.name()));
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_attacked_in_each_form_and_names_can_be_left_out() {
        let mut coverage = Coverage::default();
        for seed in 0..250 {
            Input::new(seed, &Without::default()).parts.iter().for_each(|part| coverage.add(part));
        }
        assert_eq!(coverage.missing(), Vec::<String>::new());
        let without =
            Without::new(["memoryrefnew:barrier".into(), "jl_array_grow_at".into(), "nosuch".into()]);
        assert_eq!(without.unknown(), ["nosuch"]);
        for seed in 0..50 {
            for part in Input::new(seed, &without).parts {
                for (target, form) in part.attacks {
                    assert_ne!(target.name(), "jl_array_grow_at");
                    assert!(target.name() != "memoryrefnew" || form.name() != "barrier");
                }
            }
        }
    }
}
