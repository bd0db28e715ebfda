//! Throughput of compilation: functions and statements that become linked machine code in a second.
//!
//! ```text
//! cargo bench --bench compile
//! ```
//!
//! One iteration is a whole program: passes, lowering, code generation, linking, and freeing it again; reading the text
//! is not part of it. Criterion's throughput counts statements. `small` is `fib`, `medium` is `quicksort`, `large` is
//! `sha256`, `huge` is one function of some 2,800 statements (`diamonds`). Stage by stage: `compile_cost`.

use brolga::{Engine, OptLevel, Options, Program};
use brolga_fuzz::shapes::{Shape, module};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::path::Path;

fn compile(criterion: &mut Criterion) {
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.jlir"));
        let bytes = std::fs::read(path).expect("the examples are part of the project");
        Program::read(name, &bytes).expect("the examples are well-formed")
    };
    let huge = Program::from_module(module(Shape::Diamonds, 2_000)).expect("the shapes are well-formed");
    let programs = [
        ("small", example("fib")),
        ("medium", example("quicksort")),
        ("large", example("sha256")),
        ("huge", huge),
    ];
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10);
    for (size, program) in &programs {
        let statements: usize = program
            .module()
            .funcs()
            .map(|(_, f)| f.blocks().map(|block| f.block_insts(block).count()).sum::<usize>())
            .sum();
        group.throughput(Throughput::Elements(statements as u64));
        for level in OptLevel::ALL {
            let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level))
                .expect("this machine has a code generator");
            let id = BenchmarkId::new(*size, format!("O{}", level as u8));
            group.bench_with_input(id, program, |b, program| b.iter(|| engine.compile(program)));
        }
    }
    group.finish();
}

criterion_group!(benches, compile);
criterion_main!(benches);

#[path = "../tests/support/doors.rs"]
mod doors;
