//! The inputs of `brolga fuzz`, each generated from a seed.
//!
//! ```text
//! seed ──┬─ no originals ─► generated program ─► printed, read, written: unchanged; interpreter = native code at O0 to O3, at O3 without one pass,
//!        │                                       and in two tiers
//!        │                 or a loop of dynamic operators whose operands each have each type in turn
//!        ├─ originals ────► damaged copy ─┬────► read, or refused with positions; if it is read, it is compiled
//!        │                                └────► without doors: its tests are called in this process, which survives
//!        ├─ checked ──────► program without doors, every other one damaged: its functions are called in this process
//!        ├─ forged ───────► module in binary form, or package, with correct checksums: refused, or used in this process
//!        └─ attack ───────► programs of an attacker: interpreter = native code, and the heap is intact
//! ```
//!
//! A seed always determines the same input. A crash of the process is identified by its seed, so a campaign
//! runs in its own process (`crates/cli/src/fuzz.rs`).
//!
//! Names of types live as long as their run time, so engines are recreated after `INPUTS` inputs.

use std::sync::OnceLock;

use brolga_engine::Error;
use brolga_ir::text::show_module;
use brolga_jit::{Jit, JitOptions};
use brolga_opt::OptLevel;
use brolga_runtime::{Runtime, RuntimeOptions};

use crate::attack::{Input, PARTS, Without};
use crate::check::{
    Arena, Attacked, Engine, Failure, Guards, HighInterpreter, Native, Passes, Run, Tiered, Trouble,
    check_attack, check_differential, check_guards, check_round_trip, check_text, check_tiers,
};
use crate::dynamic;
use crate::generate::{Features, Options, generate};
use crate::targets::forged::{self, Packages};
use crate::targets::{Fate, Fault, Guarded, checked, damaged, without_doors};

/// The number of inputs per run time.
const INPUTS: usize = 2000;
/// The number of argument lists with which each generated function is called.
const ROUNDS: usize = 3;
/// One program in this many is also called in two tiers, and has no doors, which sessions refuse.
const TIERED: u64 = 4;
/// One input in this many is a program of dynamic operators whose operands are exchanged one at a time.
const GUARDED: u64 = 16;
/// More statements than a call of a generated function executes.
const MAX_STEPS: u64 = 100_000;

/// The kind of inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inputs {
    /// Generated programs, compared in all engines.
    Generated,
    /// Damaged copies of these programs.
    Damaged(Vec<String>),
    /// Generated programs without doors, half of them damaged, run by engines that refuse doors.
    Checked,
    /// Modules in binary form with changed fields and a correct checksum.
    ForgedModules,
    /// Packages with changed fields and correct checksums.
    ForgedPackages,
    /// Programs of an attacker without doors, compared with the interpreter, on a checked heap.
    Attack(Without),
}

/// A sequence of inputs.
pub struct Campaign {
    inputs: Inputs,
    engines: Option<Engines>,
    packages: OnceLock<Packages>,
}

struct Engines {
    jit: Jit,
    guarded: Guarded,
    /// Only for attacks.
    arena: Option<Arena>,
    inputs: usize,
}

/// The outcome of an input without a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tried {
    /// In one or two words: `agreed`, `refused`, `ran`.
    pub outcome: &'static str,
    /// The calls that were made.
    pub calls: usize,
}

impl Campaign {
    /// A campaign of these inputs.
    #[must_use]
    pub fn new(inputs: Inputs) -> Campaign {
        Campaign { inputs, engines: None, packages: OnceLock::new() }
    }

    #[must_use]
    pub fn input(&self, seed: u64) -> Vec<u8> {
        self.input_part(seed, None)
    }

    /// The input of a seed, or a single program of it.
    #[must_use]
    pub fn input_part(&self, seed: u64, part: Option<usize>) -> Vec<u8> {
        match &self.inputs {
            Inputs::Generated if is_guarded(seed) => dynamic::guarded(seed).text.into(),
            Inputs::Generated => show_module(&generate(seed, &options(seed))).to_string().into(),
            Inputs::Damaged(originals) => damaged(seed, originals).into(),
            Inputs::Checked => without_doors(seed).into(),
            Inputs::ForgedModules => forged::forged_module(seed),
            Inputs::ForgedPackages => self.packages().forged(seed).0,
            Inputs::Attack(without) => {
                let input = Input::new(seed, without);
                let all = (0..input.parts.len()).collect();
                input.text(&part.map_or(all, |part| vec![part])).0.into()
            }
        }
    }

    /// The extension of a file with an input.
    #[must_use]
    pub fn extension(&self) -> &'static str {
        match self.inputs {
            Inputs::ForgedModules | Inputs::ForgedPackages => "bin",
            Inputs::Generated | Inputs::Damaged(_) | Inputs::Checked | Inputs::Attack(_) => "jlir",
        }
    }

    fn packages(&self) -> &Packages {
        self.packages.get_or_init(Packages::build)
    }

    /// The number of programs in an input that can be tried individually.
    #[must_use]
    pub fn parts(&self) -> usize {
        if matches!(self.inputs, Inputs::Attack(_)) { PARTS } else { 1 }
    }

    /// Tries the input of a seed.
    ///
    /// # Errors
    /// The processor has no code generator, or there is no memory for code.
    pub fn run(&mut self, seed: u64) -> Result<Result<Tried, Box<Failure>>, Error> {
        self.run_part(seed, None)
    }

    /// Tries one of the programs of a seed's input, or all if `part` is `None`.
    ///
    /// # Errors
    /// Like [`Campaign::run`].
    pub fn run_part(&mut self, seed: u64, part: Option<usize>) -> Result<Result<Tried, Box<Failure>>, Error> {
        let mut engines = match self.engines.take() {
            Some(engines) if engines.inputs < INPUTS => engines,
            _ => Engines::new(&self.inputs)?,
        };
        engines.inputs += 1;
        let tried = match &self.inputs {
            Inputs::Generated if is_guarded(seed) => guards(seed, &engines.jit),
            Inputs::Generated => generated(seed, &engines.jit),
            Inputs::Damaged(originals) => damage(seed, &damaged(seed, originals), &engines),
            Inputs::Checked => guarded(seed, &without_doors(seed), &engines),
            Inputs::ForgedModules => {
                forged(seed, forged::module(&engines.guarded, &forged::forged_module(seed), seed))
            }
            Inputs::ForgedPackages => {
                let (bytes, is_code_kept) = self.packages().forged(seed);
                forged(seed, forged::package(bytes, is_code_kept))
            }
            Inputs::Attack(without) => attacked(seed, part, without, engines.arena.as_ref()),
        };
        // The state left by a fault does not affect the next input.
        self.engines = tried.is_ok().then_some(engines);
        Ok(tried)
    }
}

impl Engines {
    fn new(inputs: &Inputs) -> Result<Engines, Error> {
        let arena = matches!(inputs, Inputs::Attack(_)).then(Arena::new).transpose()?;
        let jit = Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default())?;
        Ok(Engines { jit, guarded: Guarded::new()?, arena, inputs: 0 })
    }
}

fn options(seed: u64) -> Options {
    let size = [20, 60, 60, 150][(seed % 4) as usize];
    let features = if is_tiered(seed) { Features::CHECKED } else { Features::NATIVE };
    Options { size, features, ..Options::default() }
}

fn is_guarded(seed: u64) -> bool {
    seed % GUARDED == GUARDED - 1
}

fn is_tiered(seed: u64) -> bool {
    (seed / 4).is_multiple_of(TIERED)
}

fn generated(seed: u64, jit: &Jit) -> Result<Tried, Box<Failure>> {
    let module = generate(seed, &options(seed));
    let again = check_round_trip(seed, &module)?;
    let interpreter = HighInterpreter { max_steps: MAX_STEPS, passes: None };
    let levels = OptLevel::ALL.map(Passes::of).into_iter();
    let all = levels.chain([Passes::without_one(OptLevel::O3, seed)]);
    let natives: Vec<Native> = all.map(|passes| Native { jit: jit.clone(), passes }).collect();
    let mut runs =
        vec![Run { engine: &interpreter, module: &module }, Run { engine: &interpreter, module: &again }];
    runs.extend(natives.iter().map(|native| Run { engine: native as &dyn Engine, module: &module }));
    let compared = check_differential(seed, &runs, ROUNDS)?;
    if !is_tiered(seed) {
        return Ok(Tried { outcome: "agreed", calls: compared.calls });
    }
    let tiered = Tiered { runtime: jit.runtime().clone(), level: OptLevel::O2 };
    let climbed = check_tiers(seed, &module, &interpreter, &tiered)?;
    Ok(Tried { outcome: "agreed in two tiers as well", calls: compared.calls + climbed.calls })
}

fn guards(seed: u64, jit: &Jit) -> Result<Tried, Box<Failure>> {
    let level = if is_tiered(seed / GUARDED) { OptLevel::O3 } else { OptLevel::O2 };
    let Guards { calls, one_sided, .. } =
        check_guards(seed, &Tiered { runtime: jit.runtime().clone(), level })?;
    let outcome = match one_sided {
        0 => "with every test of a type left",
        _ => "with some tests of types decided",
    };
    Ok(Tried { outcome, calls })
}

fn attacked(
    seed: u64,
    part: Option<usize>,
    without: &Without,
    arena: Option<&Arena>,
) -> Result<Tried, Box<Failure>> {
    let Some(arena) = arena else { return Ok(Tried { outcome: "no engines", calls: 0 }) };
    let Attacked { programs, refused, agreed, undecided, .. } =
        check_attack(seed, &Input::new(seed, without), part, arena)?;
    let outcome = match (undecided * 10 > agreed, refused * 4 > programs) {
        (_, true) => "refused in part",
        (true, false) => "agreed where the interpreter decides",
        (false, false) => "agreed",
    };
    Ok(Tried { outcome, calls: agreed })
}

fn damage(seed: u64, text: &str, engines: &Engines) -> Result<Tried, Box<Failure>> {
    check_text(seed, text.as_bytes(), Some(&engines.jit))?;
    guarded(seed, text, engines)
}

fn guarded(seed: u64, text: &str, engines: &Engines) -> Result<Tried, Box<Failure>> {
    let fate = checked(&engines.guarded, text.as_bytes()).map_err(|fault| {
        let trouble = Trouble::Panic { stage: "running a checked program", message: fault.to_string() };
        Box::new(Failure { seed, text: text.to_owned(), trouble })
    })?;
    Ok(match fate {
        Fate::Broken => Tried { outcome: "refused", calls: 0 },
        Fate::Doors => Tried { outcome: "compiled, not run because of doors", calls: 0 },
        Fate::NotRun => Tried { outcome: "compiled, no test to run", calls: 0 },
        Fate::Ran(calls) => Tried { outcome: "ran", calls },
    })
}

fn forged(seed: u64, fate: Result<Fate, Fault>) -> Result<Tried, Box<Failure>> {
    match fate {
        Ok(Fate::Broken) => Ok(Tried { outcome: "refused", calls: 0 }),
        Ok(Fate::Doors) => Ok(Tried { outcome: "read, not run because of doors", calls: 0 }),
        Ok(Fate::NotRun) => Ok(Tried { outcome: "read, nothing to run", calls: 0 }),
        Ok(Fate::Ran(calls)) => Ok(Tried { outcome: "ran", calls }),
        Err(fault) => {
            let trouble = Trouble::Panic { stage: "using a forged file", message: fault.to_string() };
            Err(Box::new(Failure { seed, text: String::new(), trouble }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Campaign, Inputs, Tried, Without};

    #[test]
    fn generated_programs_agree_and_damaged_ones_are_refused_or_run() {
        let mut generated = Campaign::new(Inputs::Generated);
        let Tried { outcome, calls } = generated.run(5).unwrap().unwrap();
        assert!(outcome == "agreed" && calls > 0);
        assert_eq!(generated.run(1).unwrap().unwrap().outcome, "agreed in two tiers as well");
        assert!(generated.run(15).unwrap().unwrap().outcome.starts_with("with "));
        let original = "# check: f(2) == 6\nfunction f(n::Int64)::Int64\n1 ─ %1 = Base.mul_int(n, 3)::Int64\n└──      return %1\nend\n";
        let mut damaged = Campaign::new(Inputs::Damaged(vec![original.to_owned()]));
        assert_eq!(damaged.input(7), damaged.input(7));
        let outcomes: Vec<&str> = (0..40).map(|seed| damaged.run(seed).unwrap().unwrap().outcome).collect();
        assert!(outcomes.contains(&"refused") && outcomes.contains(&"ran"), "{outcomes:?}");
    }

    #[test]
    fn attacks_end_as_in_the_interpreter_and_can_be_tried_alone() {
        let mut attacks = Campaign::new(Inputs::Attack(Without::default()));
        let alone = attacks.run_part(2, Some(5)).unwrap().unwrap();
        assert!(alone.calls <= 6, "three calls in two engines: {alone:?}");
        assert!(attacks.input_part(2, Some(5)).len() < attacks.input(2).len());
        let calls: usize = (0..3).map(|seed| attacks.run(seed).unwrap().unwrap().calls).sum();
        assert!(calls > 500, "{calls}");
    }

    #[test]
    fn generated_programs_without_doors_run() {
        let mut campaign = Campaign::new(Inputs::Checked);
        let mut ran = 0;
        for seed in 0..60 {
            let Tried { outcome, .. } = campaign.run(seed).unwrap().unwrap();
            ran += usize::from(outcome == "ran");
            // Each call has a deadline, so on a slow machine possibly none of a program's calls ends.
            let is_accepted = matches!(outcome, "ran" | "compiled, no test to run");
            assert!(
                is_accepted || seed % 2 == 1,
                "seed {seed}: {outcome}\n{}",
                String::from_utf8_lossy(&campaign.input(seed))
            );
        }
        assert!(ran > 0);
    }
}
