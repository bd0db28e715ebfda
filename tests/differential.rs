//! Generated programs: they survive printing and reading, and mean the same everywhere.

use brolga::fuzz::check::{HighInterpreter, LowInterpreter, Run, check_differential, check_round_trip};
use brolga::fuzz::generate::{Features, Options, generate};

#[test]
fn generated_functions_agree() {
    let interpreter = HighInterpreter { max_steps: 100_000 };
    let (mut calls, mut returned) = (0, 0);
    for seed in 0..2000 {
        let module = generate(seed, &Options { features: Features::ALL, ..Options::default() });
        let again = check_round_trip(seed, &module).unwrap_or_else(|failure| panic!("{failure}"));
        let run = |module| Run { engine: &interpreter, module };
        let compared = check_differential(seed, &[run(&module), run(&again)], 3);
        let compared = compared.unwrap_or_else(|failure| panic!("{failure}"));
        calls += compared.calls;
        returned += compared.returned;
    }
    assert!(returned > calls / 2 && returned < calls, "{returned} of {calls} calls returned");
}

#[test]
fn lowering_keeps_the_meaning() {
    let high = HighInterpreter { max_steps: 100_000 };
    let low = LowInterpreter { max_steps: 2_000_000 };
    for seed in 0..700 {
        let module = generate(seed, &Options { features: Features::NATIVE, ..Options::default() });
        let runs = [Run { engine: &high, module: &module }, Run { engine: &low, module: &module }];
        if let Err(failure) = check_differential(seed, &runs, 3) {
            panic!("{failure}");
        }
    }
}
