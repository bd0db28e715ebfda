//! Generated programs before and after passes: they verify after each, and mean the same to the interpreter.
//!
//! Here each pass runs alone, and pipelines run over whole modules, callees first, with any amount of fuel. The output of the
//! pipelines function by function, down to machine code, is compared in `tests/differential.rs`. Programs with wrong asserted
//! types have no meaning to compare; they only have to verify.

use brolga_fuzz::check::{Compared, HighInterpreter, LowInterpreter, Run, check_differential};
use brolga_fuzz::generate::{Features, Options as Size, generate};
use brolga_fuzz::rng::Rng;
use brolga_ir::verify::verify_func_in;
use brolga_ir::{Inst, Level, Module, Type, Value};
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
        let func = after[id].clone();
        let done = run_passes(&after, func, &[pass], &options(), &mut Cx::default());
        after[id] = done.unwrap_or_else(|error| panic!("seed {seed}: {error}")).0;
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
    let without_objects = Features::WITHOUT_OBJECTS;
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

/// Changes tried on each function: types of results, and operands. A change that does not verify is taken back.
const CHANGES: usize = 60;

/// Lets types claim what is not so: the values stay what they are, and whatever the verifier does not see through is believed.
fn claim_otherwise(rng: &mut Rng, module: &mut Module) -> usize {
    let ids: Vec<_> = module.funcs().filter(|(_, f)| f.level == Level::High).map(|(id, _)| id).collect();
    let mut changed = 0;
    for id in ids {
        let mut func = module[id].clone();
        let insts: Vec<Inst> = func.blocks().flat_map(|b| func.block_insts(b)).collect();
        let results = || insts.iter().filter_map(|&inst| func.result(inst));
        let is_shown = |&value: &Value| func.ty(value) != Type::TOKEN;
        let values: Vec<Value> = func.params().iter().copied().chain(results()).filter(is_shown).collect();
        let mut types: Vec<Type> = values.iter().map(|&value| func.ty(value)).collect();
        types.extend([
            Type::ANY,
            Type::ANY,
            Type::INT64,
            Type::FLOAT64,
            Type::BOOL,
            Type::BOTTOM,
            Type::STRING,
        ]);
        for _ in 0..CHANGES {
            let Some(&inst) = rng.pick(&insts) else { break };
            let mut tried = func.clone();
            if rng.chance(30) {
                let (Some(&value), count) = (rng.pick(&values), tried.args(inst).len()) else { continue };
                if let Some(operand) = tried.args_mut(inst).get_mut(rng.below(count.max(1))) {
                    *operand = value;
                }
            } else {
                let (Some(result), Some(&ty)) = (tried.result(inst), rng.pick(&types)) else { continue };
                tried.set_result_type(result, ty);
            }
            if verify_func_in(module, &tried).is_ok() {
                func = tried;
                changed += 1;
            }
        }
        module[id] = func;
    }
    changed
}

#[test]
fn functions_verify_after_each_pass_whatever_their_types_claim() {
    let mut changed = 0;
    for seed in 0..SEEDS {
        let mut module = program(seed, Features::ALL);
        changed += claim_otherwise(&mut Rng::new(seed), &mut module);
        for pass in PASSES.iter().filter(|pass| pass.level != PassLevel::Low) {
            run_one(seed, &module, pass);
        }
        for level in [OptLevel::O1, OptLevel::O2] {
            let done = optimize_module(&mut module.clone(), level, &options(), &mut Cx::default());
            done.unwrap_or_else(|error| panic!("seed {seed}, {level:?}: {error}"));
        }
    }
    assert!(changed > SEEDS as usize, "{changed} claims were changed");
}
