//! Three kernels by criterion, to compare with `brolga bench` on the same calls.
//!
//! ```text
//! cargo bench --bench agree
//! brolga bench examples/fib.jlir --call 'fib(25)'          and so on, as the names of the benches say
//! ```

use std::hint::black_box;
use std::time::Duration;

use brolga::{Engine, Evaluator, Options, Program};
use criterion::{Criterion, criterion_group, criterion_main};

const CALLS: [(&str, &str); 3] =
    [("fib", "fib(25)"), ("sha256", "run(65536, 1)"), ("quicksort", "run(5000, 1)")];

/// The thread's processor time, as the command has it: others that use the machine do not count.
fn cpu_time() -> Duration {
    Duration::from_secs_f64(clock::cpu_seconds())
}

fn kernels(c: &mut Criterion) {
    for (name, call) in CALLS {
        let file = format!("{}/examples/{name}.jlir", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(&file).expect("examples are there");
        let program = Program::read(&file, &text).expect("examples have no errors");
        let engine = Engine::new(doors::open(Options::new())).expect("there is a code generator");
        let parsed = program.call(call).expect("the call is right");
        let mut evaluator = Evaluator::native(&program, &engine);
        c.bench_function(&format!("{name}/{call}"), |bench| {
            bench.iter_custom(|calls| {
                let calls = u32::try_from(calls).expect("fewer calls than that");
                black_box(evaluator.measure(&parsed, calls, &cpu_time)).expect("it throws nothing")
            });
        });
    }
}

#[path = "kernels/clock.rs"]
mod clock;
#[path = "../tests/support/doors.rs"]
mod doors;

criterion_group!(benches, kernels);
criterion_main!(benches);
