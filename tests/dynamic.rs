//! Dynamic operators compute the same in the interpreter and as machine code of every level, for all types and changes of types.
//!
//! | test | programs | types change |
//! |---|---|---|
//! | operators | `brolga_fuzz::dynamic::program` | at the entry, and once in a loop |
//! | tests of types | `brolga_fuzz::dynamic::guarded` | at each operand of each operator, in code that a profile has made for other types |
//! | two tiers | `brolga_fuzz::generate` | at each argument of type `Any`, the same |

use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use brolga_fuzz::check::{Climbed, Guards, HighInterpreter, Tiered, check_guards, check_tiers};
use brolga_fuzz::dynamic;
use brolga_fuzz::generate::{self, Features, generate};
use brolga_runtime::{Runtime, RuntimeOptions};

/// Rounds of the loop in each call: one more than the rounds that a change is tried in.
const ROUNDS: i64 = 5;

/// The outcome as text: a value, or the exception.
fn outcome(evaluator: &mut Evaluator<'_>, program: &Program, call: &str) -> String {
    let parsed = program.call(call).unwrap_or_else(|error| panic!("{call}: {error}"));
    evaluator.call(&parsed).unwrap_or_else(|failure| failure.to_string())
}

fn agree(seeds: std::ops::Range<u64>, levels: &[OptLevel], stress: bool) {
    let options = |level| Options::new().opt_level(level).gc_stress(stress);
    let engines: Vec<Engine> = levels.iter().map(|&level| Engine::new(options(level)).unwrap()).collect();
    let mut values = 0;
    for seed in seeds {
        let text = dynamic::program(seed);
        let program = Program::read("dynamic", text.as_bytes())
            .unwrap_or_else(|error| panic!("{seed}: {error}\n{text}"));
        let mut interpreted = Evaluator::interpreted(&program);
        let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
        for call in dynamic::calls(seed, ROUNDS) {
            let expected = outcome(&mut interpreted, &program, &call);
            values += usize::from(expected.starts_with('('));
            for (native, level) in native.iter_mut().zip(levels) {
                let got = outcome(native, &program, &call);
                assert_eq!(expected, got, "seed {seed}, {level:?}: {call}\n{text}");
            }
        }
    }
    assert!(values > 0, "something has to be computed");
}

#[test]
fn generated_operators_agree_at_every_level() {
    agree(0..60, &[OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3], false);
}

#[test]
fn generated_operators_agree_with_collections_at_every_safepoint() {
    agree(1000..1015, &[OptLevel::O2], true);
}

#[test]
#[ignore = "takes minutes in a development build"]
fn many_generated_operators_agree_at_every_level() {
    agree(10_000..13_000, &OptLevel::ALL, false);
}

fn tiers(level: OptLevel) -> Tiered {
    Tiered { runtime: Runtime::new(RuntimeOptions::default()), level }
}

fn sweep(seeds: std::ops::Range<u64>, level: OptLevel) -> Guards {
    let tiered = tiers(level);
    let mut all = Guards::default();
    for seed in seeds {
        let guards = check_guards(seed, &tiered).unwrap_or_else(|failure| panic!("{failure}"));
        all.calls += guards.calls;
        all.returned += guards.returned;
        all.guards += guards.guards;
        all.one_sided += guards.one_sided;
    }
    println!("{all:?}");
    all
}

#[test]
fn tests_of_types_are_left_at_every_operand() {
    let all = sweep(0..8, OptLevel::O2);
    assert!(all.returned > 0 && all.one_sided < all.guards, "{all:?}");
}

#[test]
#[ignore = "takes minutes in a development build"]
fn tests_of_types_of_many_programs_are_left() {
    sweep(1000..1150, OptLevel::O2);
    sweep(2000..2050, OptLevel::O3);
}

fn climb(seeds: std::ops::Range<u64>) -> Climbed {
    let oracle = HighInterpreter { max_steps: 100_000, passes: None };
    let tiered = tiers(OptLevel::O2);
    let options = generate::Options { features: Features::CHECKED, ..generate::Options::default() };
    let mut all = Climbed::default();
    for seed in seeds {
        let module = generate(seed, &options);
        let climbed = check_tiers(seed, &module, &oracle, &tiered).unwrap_or_else(|f| panic!("{f}"));
        all.calls += climbed.calls;
        all.returned += climbed.returned;
        all.optimised += climbed.optimised;
    }
    println!("{all:?}");
    all
}

#[test]
fn generated_functions_agree_in_both_tiers() {
    let all = climb(0..25);
    assert!(all.optimised > 0 && all.returned > 0 && all.returned < all.calls, "{all:?}");
}
