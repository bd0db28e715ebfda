//! Dynamic operators compute the same in the interpreter and as machine code of every level, for all types and changes of types.

use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use brolga_fuzz::dynamic;

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
