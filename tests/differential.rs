//! Generated functions survive printing and reading, and mean the same in all engines: ten thousand of them, or a given number.
//!
//! ```text
//!             ┌─ print, read ─────────────────────────► interpreter of high IR
//! generated ──┼─ passes ──────────────────────────────► interpreter of high IR
//!             ├─ lower ──────┐
//!             ├─ passes, lower, passes ───────────────► interpreter of low IR
//!             └─ passes, lower, passes, machine code ─► native, -O0 to -O3
//! ```
//!
//! `MODULES=20000 cargo test --release --test differential` is the long run of a hundred thousand functions; `FIRST=N` starts at another seed.
//!
//! The interpreter on the generated module itself is the oracle. A failure shows its seed, the module, the call, the result of
//! each engine, and the wrong rewrite.

use brolga::OptLevel;
use brolga_fuzz::check::{
    Compared, Engine, HighInterpreter, LowInterpreter, Native, Passes, Run, check_differential,
    check_round_trip,
};
use brolga_fuzz::generate::{Features, Options, generate};
use brolga_fuzz::rng::Rng;
use brolga_fuzz::shapes::{self, Shape};
use brolga_ir::Module;
use brolga_jit::{Jit, JitOptions};
use brolga_opt::Cx;
use brolga_opt::osr::leave_loops;
use brolga_runtime::{Runtime, RuntimeOptions};

/// How many modules by default; each has five functions.
const MODULES: u64 = 1000;
/// How many argument lists each function is called with.
const ROUNDS: usize = 3;
const MAX_STEPS: u64 = 100_000;
/// A high statement becomes some low ones.
const MAX_LOW_STEPS: u64 = 10_000_000;

/// The seeds of this run.
#[expect(clippy::disallowed_methods, reason = "a long run is requested from outside")]
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("FIRST").unwrap_or(0);
    first..first + number("MODULES").unwrap_or(MODULES)
}

fn options(seed: u64, features: Features) -> Options {
    let size = [20, 60, 60, 150][seed as usize % 4];
    Options { size, features, ..Options::default() }
}

fn high(passes: Option<Passes>) -> HighInterpreter {
    HighInterpreter { max_steps: MAX_STEPS, passes }
}

fn low(passes: Option<Passes>) -> LowInterpreter {
    LowInterpreter { max_steps: MAX_LOW_STEPS, passes, alone: None }
}

fn jit() -> Jit {
    Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default()).expect("a JIT for this machine")
}

/// Holds engines against the oracle on the modules of some seeds.
fn compare(seeds: impl Iterator<Item = u64>, features: Features, engines: &[&dyn Engine]) -> Compared {
    let oracle = high(None);
    let mut all = Compared::default();
    for seed in seeds {
        let module = generate(seed, &options(seed, features));
        let runs: Vec<Run<'_>> = std::iter::once::<&dyn Engine>(&oracle)
            .chain(engines.iter().copied())
            .map(|engine| Run { engine, module: &module })
            .collect();
        match check_differential(seed, &runs, ROUNDS) {
            Ok(compared) => {
                all.calls += compared.calls;
                all.returned += compared.returned;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    all
}

/// Most calls return and some throw: else the programs would be too tame or too wild to show anything.
fn check_mixture(Compared { calls, returned }: Compared) {
    assert!(returned * 2 > calls && returned < calls, "{returned} of {calls} calls returned");
}

#[test]
fn printed_modules_are_read_back_with_their_meaning() {
    let oracle = high(None);
    for seed in seeds() {
        let module = generate(seed, &options(seed, Features::ALL));
        let again = check_round_trip(seed, &module).unwrap_or_else(|failure| panic!("{failure}"));
        let runs = [&module, &again].map(|module| Run { engine: &oracle, module });
        if let Err(failure) = check_differential(seed, &runs, ROUNDS) {
            panic!("{failure}");
        }
    }
}

#[test]
fn passes_on_high_ir_keep_the_meaning() {
    let exact = Features { inexact: false, ..Features::ALL };
    check_mixture(compare(seeds(), exact, &[&high(Some(Passes::of(OptLevel::O2)))]));
}

#[test]
fn low_ir_means_what_high_ir_means() {
    let engines: [&dyn Engine; 3] =
        [&low(None), &low(Some(Passes::of(OptLevel::O2))), &low(Some(Passes::of(OptLevel::O3)))];
    // The interpreter knows objects on the high level only, and texts and what is thrown are objects.
    let without_objects = Features::WITHOUT_OBJECTS;
    let Compared { calls, returned } = compare(seeds(), without_objects, &engines);
    assert!(calls > 0 && returned == calls, "{returned} of {calls} calls returned");
}

#[test]
fn native_code_does_what_the_interpreter_does() {
    let jit = jit();
    let native = |level| Native { jit: jit.clone(), passes: Passes::of(level) };
    let natives = OptLevel::ALL.map(native);
    let engines = natives.each_ref().map(|n| n as &dyn Engine);
    check_mixture(compare(seeds(), Features::NATIVE, &engines));
}

#[test]
fn extreme_shapes_agree() {
    let jit = jit();
    let (oracle, low) = (high(None), low(None));
    let [native0, native2] =
        [OptLevel::O0, OptLevel::O2].map(|level| Native { jit: jit.clone(), passes: Passes::of(level) });
    let engines: [&dyn Engine; 4] = [&oracle, &low, &native0, &native2];
    for shape in Shape::ALL {
        let module = shapes::module(shape, 2000);
        let again = check_round_trip(0, &module).unwrap_or_else(|failure| panic!("{failure}"));
        let mut runs: Vec<Run<'_>> = engines.iter().map(|&engine| Run { engine, module: &module }).collect();
        runs.push(Run { engine: &oracle, module: &again });
        if let Err(failure) = check_differential(0, &runs, 4) {
            panic!("{}: {}", shape.name(), failure.trouble);
        }
    }
}

/// A module in which loops continue in their own functions, after the passes of a level: all, or those that a seed chooses.
fn left(module: &Module, seed: u64, level: OptLevel) -> (Module, usize) {
    let mut rng = Rng::new(seed);
    let mut out = module.clone();
    let report =
        brolga_opt::optimize_module(&mut out, level, &brolga_opt::Options::default(), &mut Cx::default());
    report.expect("passes do not fail");
    let mut count = 0;
    for (id, _) in module.funcs() {
        let (cx, func) = (out.cx.clone(), out[id].clone());
        let Some(leaving) = leave_loops(&cx, &out[id].symbol(&cx), &func) else { continue };
        for exit in &leaving.exits {
            let answer = seed.is_multiple_of(2) || rng.chance(50);
            count += usize::from(answer);
            out.add_func(exit.answer(&cx, answer)).expect("a new name");
            out.add_func(exit.body(&cx, &func)).expect("a new name");
        }
        out[id] = leaving.func;
    }
    if let Err(violations) = brolga_ir::verify::verify_module(&out) {
        panic!("seed {seed}: {violations:?}\n{}", brolga_ir::text::show_module(&out));
    }
    (out, count)
}

#[test]
fn loops_may_be_left_at_their_heads() {
    let (oracle, jit) = (high(None), jit());
    let natives =
        [OptLevel::O0, OptLevel::O2].map(|level| Native { jit: jit.clone(), passes: Passes::of(level) });
    let mut loops = 0;
    for seed in seeds() {
        let module = generate(seed, &options(seed, Features::NATIVE));
        let level = [OptLevel::O0, OptLevel::O1][seed as usize / 2 % 2];
        let (left, count) = left(&module, seed, level);
        loops += count;
        let mut runs = vec![Run { engine: &oracle as &dyn Engine, module: &module }];
        runs.push(Run { engine: &oracle, module: &left });
        runs.extend(natives.iter().map(|native| Run { engine: native as &dyn Engine, module: &left }));
        if let Err(failure) = check_differential(seed, &runs, ROUNDS) {
            panic!("{failure}");
        }
    }
    assert!(loops > 0);
}
