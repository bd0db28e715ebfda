//! Generated programs before and after passes: they verify after each, and mean the same to the interpreter.
//!
//! Here each pass runs alone, and pipelines run over whole modules, callees first, with any amount of fuel. What comes out of the
//! pipelines function by function, down to machine code, is compared in `tests/differential.rs`.

use brolga::fuzz::check::{Compared, HighInterpreter, LowInterpreter, Run, check_differential};
use brolga::fuzz::generate::{Features, Options as Size, generate};
use brolga_ir::Module;
use brolga_opt::callgraph::bottom_up;
use brolga_opt::{Cx, OptLevel, Options, PASSES, Pass, PassLevel, optimize_module, run_passes};

const SEEDS: u64 = 100;
const MAX_STEPS: u64 = 2_000_000;
/// A high statement becomes some low ones.
const MAX_LOW_STEPS: u64 = 20_000_000;

fn options() -> Options {
    Options { verify_each: true, ..Options::default() }
}

/// `_fast` intrinsics may be folded to another value than they have, so no program has them.
fn program(seed: u64, features: Features) -> Module {
    generate(seed, &Size { features: Features { inexact: false, ..features }, ..Size::default() })
}

fn compare(seed: u64, what: &str, before: &Module, after: &Module) -> Compared {
    let engine = HighInterpreter { max_steps: MAX_STEPS, passes: None };
    let runs = [Run { engine: &engine, module: before }, Run { engine: &engine, module: after }];
    check_differential(seed, &runs, 3).unwrap_or_else(|failure| panic!("{what}: {failure}"))
}

fn run_one(seed: u64, module: &Module, pass: &'static Pass) -> Module {
    let mut after = module.clone();
    for id in bottom_up(module).into_iter().flatten() {
        let func = after.func(id).clone();
        let done = run_passes(&after, func, &[pass], &options(), &mut Cx::default());
        *after.func_mut(id) = done.unwrap_or_else(|error| panic!("seed {seed}: {error}")).0;
    }
    after
}

#[test]
fn each_pass_keeps_the_meaning() {
    for seed in 0..SEEDS {
        let module = program(seed, Features::ALL);
        for pass in PASSES.iter().filter(|pass| pass.level != PassLevel::Low) {
            compare(seed, pass.name, &module, &run_one(seed, &module, pass));
        }
    }
}

#[test]
fn each_pass_keeps_the_meaning_of_low_functions() {
    // The interpreter knows objects on the high level only, and texts and what is thrown are objects.
    let without_objects = Features { texts: false, throws: false, ..Features::NATIVE };
    let mut returned = 0;
    for seed in 0..SEEDS {
        let module = program(seed, without_objects);
        let oracle = LowInterpreter { max_steps: MAX_LOW_STEPS, passes: None, alone: None };
        for pass in PASSES.iter().filter(|pass| pass.level != PassLevel::High) {
            let after = LowInterpreter { alone: Some(pass), ..oracle };
            let runs = [Run { engine: &oracle, module: &module }, Run { engine: &after, module: &module }];
            let compared = check_differential(seed, &runs, 3);
            returned += compared.unwrap_or_else(|failure| panic!("{}: {failure}", pass.name)).returned;
        }
    }
    assert!(returned > 0);
}

#[test]
fn pipelines_keep_the_meaning_whatever_the_fuel() {
    let mut returned = 0;
    for seed in 0..SEEDS {
        let module = program(seed, Features::ALL);
        // Limits all over the range that such programs use up.
        let limits = [None, Some(seed % 40), Some(seed * 7 % 300)];
        for (level, limit) in
            [OptLevel::O1, OptLevel::O2].into_iter().flat_map(|level| limits.map(|l| (level, l)))
        {
            let mut after = module.clone();
            let what = format!("seed {seed}, {level:?}, fuel {limit:?}");
            let done = optimize_module(&mut after, level, &options(), &mut Cx::new(limit));
            done.unwrap_or_else(|error| panic!("{what}: {error}"));
            returned += compare(seed, &what, &module, &after).returned;
        }
    }
    assert!(returned > 0);
}
