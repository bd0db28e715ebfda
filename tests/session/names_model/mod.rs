//! Random sequences of operations on a session: a model that is written from `docs/sessions.md` has the answer to each, and the product has the same one
//! at every level.
//!
//! | file | content |
//! |---|---|
//! | `steps` | the operations, and how a seed makes them |
//! | `model` | the answers |
//! | here | a session that does what the steps say; the comparison; the search for a smaller sequence |
//!
//! `BROLGA_STRESS` is the number of sequences of the ignored test, `BROLGA_SEED` the first one.

mod model;
mod steps;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brolga::OptLevel;
use brolga::host::Handle;
use brolga::session::{Dependants, Dylib, Exports, OnDrop, Tracker};

use crate::kinds::{self, Kind};

use model::{Answer, Model};
use steps::{DYLIBS, Item, Passed, Program, Random, Step, Type, spelled, symbol};

/// How many sequences that differ are reported.
const FAILURES: usize = 5;

const LEVELS: [OptLevel; 2] = [OptLevel::O0, OptLevel::O2];

/// A session that does what the steps say.
struct Product {
    session: super::Ending,
    dylibs: Vec<Dylib>,
    trackers: BTreeMap<(usize, usize), Tracker>,
    /// Has a function that returns an object.
    helper: Dylib,
}

fn refused<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<Answer, String> {
    match result {
        Ok(_) => Ok(Answer::Done),
        Err(error) => Err(error.to_string()),
    }
}

impl Product {
    fn new(level: OptLevel) -> Product {
        let session = kinds::session(level);
        let helper = super::dylib(&session, "helper", "function seven()::Any\n1 ─      return 7\nend\n");
        let dylibs = (0..DYLIBS).map(|n| session.create_dylib(&format!("d{n}")).unwrap()).collect();
        Product { session, dylibs, trackers: BTreeMap::new(), helper }
    }

    fn define(&mut self, at: usize, program: &Program, replace: bool) -> Result<Answer, String> {
        let tracked = self.tracked(at, program.tracker);
        let dylib = &self.dylibs[at];
        let text = program.text();
        let read = match program.is_late {
            true => dylib.read_late("program.jlir", text.as_bytes()),
            false => dylib.read("program.jlir", text.as_bytes()),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => return Err(error.to_string()),
        };
        let read = program.kind.of(read);
        let read = if program.is_hidden { read.hidden() } else { read };
        if replace { refused(tracked.redefine(read)) } else { refused(tracked.define(read)) }
    }

    /// A dylib, for what is tracked by its tracker of this number, if any.
    fn tracked(&mut self, at: usize, tracker: Option<usize>) -> Dylib {
        let dylib = &self.dylibs[at];
        let Some(tracker) = tracker else { return dylib.clone() };
        let made = || dylib.create_tracker(OnDrop::Keep).unwrap();
        dylib.tracked_by(self.trackers.entry((at, tracker)).or_insert_with(made))
    }

    /// The values of some calls; of the first one that fails, the error.
    fn call(&self, at: usize, name: usize, ty: Type, times: usize) -> Result<Answer, String> {
        let (dylib, name) = (&self.dylibs[at], symbol(name, ty));
        let mut values = Vec::new();
        for _ in 0..times {
            let value = match ty {
                Type::Int => match dylib.func::<(i64,), i64>(&name) {
                    Ok(function) => function.call((7,)).map_err(|error| error.to_string()),
                    Err(error) => return not_found(&error),
                },
                Type::Float => match dylib.func::<(f64,), i64>(&name) {
                    Ok(function) => function.call((1.5,)).map_err(|error| error.to_string()),
                    Err(error) => return not_found(&error),
                },
                Type::Any => match dylib.func_in::<(Handle,), i64>(&name) {
                    Ok(function) => {
                        let seven = self.helper.func_in::<(), Handle>("seven").unwrap();
                        let called = self.session.runtime().enter(|scope| {
                            let seven = seven.call(scope, ()).map_err(|error| error.to_string())?;
                            function.call(scope, (seven,)).map_err(|error| error.to_string())
                        });
                        called.unwrap()
                    }
                    Err(error) => return not_found(&error),
                },
            };
            match value {
                Ok(value) => values.push(value),
                Err(error) if error.contains("MethodError") => return Ok(Answer::MethodError),
                Err(error) => return Err(error),
            }
            self.session.optimize_hot();
        }
        Ok(Answer::Values(values))
    }

    fn step(&mut self, step: &Step) -> Result<Answer, String> {
        match *step {
            Step::Link { from, to } => refused(self.dylibs[from].link_against(&self.dylibs[to])),
            Step::First { dylib, first } => {
                let (linking, first) = (self.dylibs[dylib].linking(), self.dylibs[first].linking().id());
                let mut links = linking.links().unwrap();
                if let Some(at) = links.iter().position(|link| link.dylib == first) {
                    links[..=at].rotate_right(1);
                }
                refused(linking.set_links(links))
            }
            Step::Reexport { dylib, from, ref passed, tracker } => {
                let texts = |items: &[Item]| items.iter().map(|item| item.text()).collect::<Vec<_>>();
                let exports = match passed {
                    Passed::All => Exports::All,
                    Passed::Only(items) => Exports::only(texts(items)),
                    Passed::Except(items) => Exports::except(texts(items)),
                };
                refused(self.tracked(dylib, tracker).reexport(&self.dylibs[from], exports))
            }
            Step::EndReexport { dylib, from } => refused(self.dylibs[dylib].end_reexport(&self.dylibs[from])),
            Step::Alias { dylib, name, from, original, tracker } => {
                let tracked = self.tracked(dylib, tracker);
                refused(tracked.alias(spelled(name), &self.dylibs[from], spelled(original)))
            }
            Step::Define { dylib, ref program, replace } => self.define(dylib, program, replace),
            Step::Host { dylib, name, is_float, salt, replace } => {
                let (dylib, name) = (&self.dylibs[dylib], spelled(name));
                match (is_float, replace) {
                    (false, false) => refused(dylib.define_fn(name, move |_: i64| salt)),
                    (false, true) => refused(dylib.redefine_fn(name, move |_: i64| salt)),
                    (true, false) => refused(dylib.define_fn(name, move |_: f64| salt)),
                    (true, true) => refused(dylib.redefine_fn(name, move |_: f64| salt)),
                }
            }
            Step::Remove { dylib, name, ty } => refused(self.dylibs[dylib].remove(&[&symbol(name, ty)])),
            Step::RemoveTracker { dylib, tracker } => match self.trackers.remove(&(dylib, tracker)) {
                Some(tracker) => refused(tracker.remove(Dependants::Keep)),
                None => Ok(Answer::Done),
            },
            Step::Clear { dylib } => {
                // Trackers are removed as well.
                self.trackers.retain(|(at, _), _| *at != dylib);
                refused(self.dylibs[dylib].clear(Dependants::Keep))
            }
            Step::Call { dylib, name, ty, times } => self.call(dylib, name, ty, times),
        }
    }
}

fn not_found(error: &brolga::session::SessionError) -> Result<Answer, String> {
    let text = error.to_string();
    Err(format!("not found: {text}; {}", error.causes().join("; ")))
}

/// Whether the answers are the same.
fn agree(expected: &Answer, found: &Result<Answer, String>) -> bool {
    match (expected, found) {
        (Answer::Refused, Err(_)) => true,
        (Answer::NotDefined, Err(text)) => text.starts_with("not found"),
        (expected, Ok(found)) => expected == found,
        _ => false,
    }
}

/// The first difference between the model and the product.
fn difference(steps: &[Step]) -> Option<String> {
    for level in LEVELS {
        let (mut model, mut product) = (Model::new(), Product::new(level));
        for (at, step) in steps.iter().enumerate() {
            let expected = model.step(step);
            if expected == Answer::Unspecified {
                continue;
            }
            let found = catch_unwind(AssertUnwindSafe(|| product.step(step)));
            let found = found.unwrap_or_else(|_| Err("a panic".into()));
            if !agree(&expected, &found) {
                return Some(format!("step {at} at {level:?}: {found:?}, where {expected:?} is expected"));
            }
        }
    }
    None
}

/// A sequence that still differs, without the steps and functions that this needs not.
fn shrunk(mut steps: Vec<Step>) -> Vec<Step> {
    loop {
        let before = steps.clone();
        for at in (0..steps.len()).rev() {
            let mut fewer = steps.clone();
            fewer.remove(at);
            if difference(&fewer).is_some() {
                steps = fewer;
                continue;
            }
            for smaller in smaller(&steps[at]) {
                let mut other = steps.clone();
                other[at] = smaller;
                if difference(&other).is_some() {
                    steps = other;
                    break;
                }
            }
        }
        if steps == before {
            return steps;
        }
    }
}

/// Programs with less than the one of a step; fewer calls.
fn smaller(step: &Step) -> Vec<Step> {
    let mut all = Vec::new();
    match step {
        Step::Define { dylib, program, replace } => {
            let mut add = |change: &dyn Fn(&mut Program)| {
                let mut program = program.clone();
                change(&mut program);
                all.push(Step::Define { dylib: *dylib, program, replace: *replace });
            };
            for at in 0..program.functions.len() {
                if program.functions.len() > 1 {
                    add(&|program| {
                        program.functions.remove(at);
                    });
                }
                if program.functions[at].body != steps::Body::Constant {
                    add(&|program| program.functions[at].body = steps::Body::Constant);
                }
            }
            for at in 0..program.globals.len() {
                add(&|program| {
                    program.globals.remove(at);
                });
            }
            if program.fields.is_some() {
                add(&|program| program.fields = None);
            }
            if program.tracker.is_some() {
                add(&|program| program.tracker = None);
            }
            if program.kind != Kind::Eager {
                add(&|program| program.kind = Kind::Eager);
            }
            if program.is_hidden {
                add(&|program| program.is_hidden = false);
            }
            if program.is_late {
                add(&|program| program.is_late = false);
            }
        }
        Step::Call { dylib, name, ty, times } if *times > 1 => {
            all.push(Step::Call { dylib: *dylib, name: *name, ty: *ty, times: 1 });
        }
        _ => {}
    }
    all
}

/// Runs the sequences of some seeds. A few that differ are reported at once.
fn run(seeds: impl Iterator<Item = u64>) {
    let mut failures = Vec::new();
    for seed in seeds {
        let steps = Random::new(seed).steps();
        if difference(&steps).is_some() {
            let steps = shrunk(steps);
            let text: Vec<String> =
                steps.iter().enumerate().map(|(at, step)| format!("{at}: {step}")).collect();
            failures.push(format!(
                "seed {seed}: {}\n{}",
                difference(&steps).unwrap_or_default(),
                text.join("\n")
            ));
        }
        if failures.len() >= FAILURES {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn some_sequences_do_what_the_page_says() {
    run(1..=40);
}

#[test]
#[ignore = "takes half an hour in a development build"]
#[expect(clippy::disallowed_methods, reason = "the number of sequences is a setting of who runs the test")]
fn many_sequences_do_what_the_page_says() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let first = number("BROLGA_SEED").unwrap_or(1);
    run(first..first + number("BROLGA_STRESS").unwrap_or(100_000));
}
