//! Programs without doors, run in the process: no execution may crash it.
//!
//! ```text
//! bytes ── read, verify ──► refused        ── doors ──► refused        ──► compiled at a level that depends on the bytes ──► its tests are called
//! ```
//!
//! Each call has a deadline, and objects have a size limit. Any outcome of a call is accepted; a returned
//! value is copied out and shown, to detect broken objects. A crash ends the fuzzer, a panic is a fault.
//!
//! **Originals** contain tests (`# check:` lines) with the calls and their arguments. Tests are damaged, too.
//! If a program has no tests, its functions are called with random arguments.

use std::sync::Arc;
use std::time::Duration;

use brolga_engine::{Engine, Error, Evaluator, Options, Program};
use brolga_ir::diag::Span;
use brolga_ir::module::Literal;
use brolga_ir::text::{Call, Term, show_module};
use brolga_ir::{Const, Type};
use brolga_opt::OptLevel;
use brolga_runtime::{Limits, Output, Runtime};

use super::Fault;
use crate::check::{Trouble, is_called};
use crate::generate::{Features, Options as Generated, generate};
use crate::rng::Rng;
use crate::{mutate, values};

/// The time limit of a call.
pub(super) const DEADLINE: Duration = Duration::from_millis(20);
/// The maximum bytes of objects.
pub(super) const HEAP: usize = 32 << 20;
/// The maximum number of tests or functions called per program.
const CALLS: usize = 4;

/// The outcome of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is not a program.
    Broken,
    /// It is a program with doors.
    Doors,
    /// It has no native form, or none of its tests can be called.
    NotRun,
    /// This many calls were made.
    Ran(usize),
}

/// Engines with closed doors, one for each level.
pub struct Guarded {
    engines: Vec<Engine>,
}

impl Guarded {
    /// The engines of this process, with a common run time. A fuzzer replaces them after some thousand
    /// inputs, so that names of types do not accumulate.
    ///
    /// # Errors
    /// The processor has no code generator, or there is no memory for code.
    pub fn new() -> Result<Guarded, Error> {
        let options = |level| Options::new().opt_level(level).heap_limit(Some(HEAP)).output(Output::Capture);
        let first = Engine::new(options(OptLevel::O0))?;
        let runtime = first.runtime().clone();
        let rest = [OptLevel::O1, OptLevel::O2, OptLevel::O3];
        let rest = rest.map(|level| Engine::on(&runtime, options(level)));
        let engines = std::iter::once(Ok(first)).chain(rest).collect::<Result<Vec<Engine>, Error>>()?;
        Ok(Guarded { engines })
    }

    fn runtime(&self) -> &Arc<Runtime> {
        self.engines[0].runtime()
    }

    /// Calls functions of a program without doors, at a level determined by the seed.
    pub(super) fn run(&self, program: &Program, seed: u64) -> Fate {
        run_program(self.runtime(), &self.engines[seed as usize % self.engines.len()], program, seed)
    }
}

/// The input of a seed: one of the originals with one to four changes. Most replace a number, an operand, a
/// flag or an operation by another one, so that the program is likely to remain valid; the others are damage
/// of any kind.
#[must_use]
pub fn damaged(seed: u64, originals: &[String]) -> String {
    let mut rng = Rng::new(seed);
    let mut text = rng.pick(originals).cloned().unwrap_or_default();
    for _ in 0..1 + rng.below(4) {
        text = if rng.chance(85) { exchanged(&mut rng, &text) } else { mutate::text(&mut rng, &text) };
    }
    text
}

/// A generated program without doors; for an odd seed it has one to four changes.
#[must_use]
pub fn without_doors(seed: u64) -> String {
    let size = [20, 40, 40, 90][(seed % 4) as usize];
    let options = Generated { functions: 3, size, features: Features::CHECKED, ..Generated::default() };
    let text = show_module(&generate(seed, &options)).to_string();
    if seed.is_multiple_of(2) { text } else { damaged(seed, &[text]) }
}

/// Numbers at limits.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "64",
    "100",
    "65536",
    "2147483648",
    "4294967296",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775808",
];

/// Operations with interchangeable operands.
const EQUALS: [&[&str]; 5] = [
    &["add_int", "sub_int", "mul_int", "and_int", "or_int", "xor_int", "checked_sdiv_int", "flipsign_int"],
    &["slt_int", "ult_int", "sle_int", "ule_int", "eq_int", "ne_int"],
    &["shl_int", "lshr_int", "ashr_int"],
    &["add_float", "sub_float", "mul_float", "div_float", "rem_float", "copysign_float"],
    &["true", "false"],
];

/// A text with one word of a row, or of a test, replaced.
fn exchanged(rng: &mut Rng, text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_%#.-".contains(c);
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_row = line.contains(['│', '─', '┄']) || line.starts_with("# check");
        let mut rest = 0;
        while is_row && let Some(at) = line[rest..].find(is_word).map(|at| rest + at) {
            let end = line[at..].find(|c| !is_word(c)).map_or(line.len(), |count| at + count);
            let (word, behind) = (&line[at..end], line[end..].trim_start());
            // Keeps guards and definitions.
            if at > 0 && !(word.starts_with('%') && behind.starts_with("= ")) && !others(word).is_empty() {
                places.push((start + at, start + end));
            }
            rest = end;
        }
        start += line.len();
    }
    let Some(&(from, to)) = rng.pick(&places) else { return text.to_owned() };
    let word = &text[from..to];
    let new = match word.strip_prefix('%') {
        Some(number) => {
            let near = number.parse::<usize>().unwrap_or(1).saturating_sub(6) + rng.below(9);
            format!("%{near}")
        }
        None => {
            let bare = word.rsplit('.').next().unwrap_or(word);
            let other = rng.pick(others(word)).copied().unwrap_or(bare);
            word.replace(bare, other)
        }
    };
    format!("{}{new}{}", &text[..from], &text[to..])
}

/// The possible replacements of a word; for an operand, a nearby one.
fn others(word: &str) -> &'static [&'static str] {
    let bare = word.rsplit('.').next().unwrap_or(word);
    match word.strip_prefix('%') {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => &["%1"],
        _ if word.strip_prefix('-').unwrap_or(word).bytes().all(|b| b.is_ascii_digit()) => &NUMBERS,
        _ => EQUALS.iter().find(|group| group.contains(&bare)).copied().unwrap_or_default(),
    }
}

/// A program as text, run if it has no doors.
///
/// # Errors
/// A panic.
pub fn checked(guarded: &Guarded, bytes: &[u8]) -> Result<Fate, Fault> {
    let level = bytes.iter().fold(0usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let engine = &guarded.engines[level % guarded.engines.len()];
    let run = || run(guarded.runtime(), engine, bytes, level as u64);
    crate::check::fenced("running a checked program", run)
        .map_err(|trouble: Trouble| Fault(trouble.to_string()))
}

fn run(runtime: &Arc<Runtime>, engine: &Engine, bytes: &[u8], seed: u64) -> Fate {
    match Program::read("fuzz", bytes) {
        Ok(program) => run_program(runtime, engine, &program, seed),
        Err(_) => Fate::Broken,
    }
}

/// Calls tests or functions of a program, if it has no doors.
fn run_program(runtime: &Arc<Runtime>, engine: &Engine, program: &Program, seed: u64) -> Fate {
    if program.check_doors().is_err() {
        return Fate::Doors;
    }
    let mut evaluator = Evaluator::native(program, engine).with_heap_limit(HEAP as u64);
    let mut calls = 0;
    for call in calls_of(program, seed) {
        let limits = Limits::new().timeout(DEADLINE);
        let ended = runtime.limited(&limits, || evaluator.call(&call));
        calls += usize::from(ended.is_ok());
        drop(runtime.sink().take_captured());
    }
    if calls == 0 { Fate::NotRun } else { Fate::Ran(calls) }
}

/// The calls in a program's tests; without tests, calls of its functions with random arguments.
fn calls_of(program: &Program, seed: u64) -> Vec<Call> {
    if !program.checks().is_empty() {
        return program.checks().iter().take(CALLS).map(|check| check.call.clone()).collect();
    }
    let module = program.module();
    let mut rng = Rng::new(seed);
    let own = module.funcs().filter(|(_, func)| is_called(&module.cx, func));
    let call = |types: Vec<Type>| {
        let (&function, types) = types.split_first()?;
        let args = values::arguments(&mut rng, &module.cx, types)?;
        let callee = Term::Const(Const::Singleton(function));
        Some(Call { span: Span::default(), callee, args: args.into_iter().map(term).collect() })
    };
    own.map(|(_, func)| func.sig.params.iter().map(|param| param.ty).collect())
        .filter_map(call)
        .take(CALLS)
        .collect()
}

fn term(literal: Literal) -> Term {
    match literal {
        Literal::Const(constant) => Term::Const(constant),
        Literal::Aggregate { ty, fields } => {
            Term::Aggregate { ty, fields: fields.into_iter().map(term).collect() }
        }
        Literal::Array { ty, dims, items } => {
            Term::Array { ty, dims, items: items.into_iter().map(term).collect() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
function f(n::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Int64}, n)::Memory{Int64}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Int64}
│   %3 = Core.tuple(n)::Tuple{Int64}
│   %4 = %new(Vector{Int64}, %2, %3)::Vector{Int64}
│        Base.arrayset(false, %4, 7, n)::Vector{Int64}
│   %6 = Base.arrayref(false, %4, n)::Int64
└──      return %6
end
function spin(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end
# check: f(3) == 7
# check: spin(3) == 7
";

    #[test]
    fn programs_run_to_their_limits_and_doors_are_seen() {
        let guarded = Guarded::new().unwrap();
        assert_eq!(checked(&guarded, SOURCE.as_bytes()), Ok(Fate::Ran(1)));
        assert_eq!(checked(&guarded, b"function"), Ok(Fate::Broken));
        let door = "low function f(n::i64)::i64\n1 ─      return n\nend\n";
        assert_eq!(checked(&guarded, door.as_bytes()), Ok(Fate::Doors));
    }

    #[test]
    fn damaged_programs_run() {
        let (guarded, originals) = (Guarded::new().unwrap(), [SOURCE.to_owned()]);
        let mut ran = 0;
        for seed in 0..300 {
            let text = damaged(seed, &originals);
            match checked(&guarded, text.as_bytes()) {
                Ok(fate) => ran += usize::from(matches!(fate, Fate::Ran(_))),
                Err(fault) => panic!("seed {seed}: {fault}\n{text}"),
            }
        }
        assert!(ran > 30, "{ran}");
    }
}
