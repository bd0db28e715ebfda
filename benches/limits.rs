//! Limits: the latency of ends, and the cost of limits.
//!
//! ```text
//! cargo bench --bench limits
//! ```
//!
//! | bench | one iteration |
//! |---|---|
//! | the rows of a table, at first | the time from a deadline to the return of a call that never ends by itself: the middle one of 20, and the longest |
//! | `call/none`, `empty`, `token`, `deadline`, `fuel` | a call that does almost nothing: without limits, under none, with each kind |
//! | `work/KERNEL/plain`, `priced` | a loop in a program without prices, and with them, without a limit |

use std::hint::black_box;
use std::time::{Duration, Instant};

use brolga::limits::{Cancel, Fuel};
use brolga::session::{Session, Workers};
use brolga::{Engine, Limits, OptLevel, Options, Output, Program, TypedFunc};
use criterion::{Criterion, criterion_group, criterion_main};

/// How long a call runs before its deadline.
const BEFORE: Duration = Duration::from_millis(20);

/// How many calls are measured.
const ENDS: usize = 20;

/// Loops with much, some and hardly any work in an iteration.
const KERNELS: [(&str, &str, i64); 3] = [
    (
        "divisions",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 1, #3 => %8)::Int64
│   %3 = φ (#1 => 0, #3 => %7)::Int64
│   %4 = Base.sle_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = Base.checked_srem_int(1000003, %2)::Int64
│   %7 = Base.xor_int(%3, %6)::Int64
│   %8 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %3
end",
        100_000,
    ),
    (
        "calls",
        "function main(n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 2)::Bool
└──      goto #3 if not %1
2 ─      return n
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.main(%4::Int64)::Int64
│   %6 = Base.sub_int(n, 2)::Int64
│   %7 = invoke Main.main(%6::Int64)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end",
        22,
    ),
    (
        "hash",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 1, #3 => %9)::Int64
│   %3 = φ (#1 => 0, #3 => %8)::Int64
│   %4 = Base.sle_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = Base.xor_int(%3, %2)::Int64
│   %7 = Base.mul_int(%6, 1099511628211)::Int64
│   %8 = Base.add_int(%7, 7)::Int64
│   %9 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %3
end",
        100_000,
    ),
];

fn main_of(options: Options, text: &str) -> TypedFunc<(i64,), i64> {
    let engine = Engine::new(options).expect("this machine has a code generator");
    let program = Program::read("limits", text.as_bytes()).expect("the source is well-formed");
    let unit = engine.compile(&program).expect("a unit");
    unit.func("main").expect("it is there")
}

/// The times from a deadline to the return of the call: one row of the table in docs/reliability.md.
fn row(name: &str, main: &TypedFunc<(i64,), i64>) {
    let late = |_| {
        let at = Instant::now() + BEFORE;
        assert!(main.call_limited(&Limits::new().deadline(at), (0,)).is_err());
        at.elapsed()
    };
    let mut times: Vec<Duration> = (0..ENDS).map(late).collect();
    times.sort_unstable();
    println!("| {name} | {:.2?} | {:.2?} |", times[ENDS / 2], times[ENDS - 1]);
}

fn ends(_: &mut Criterion) {
    let options = |level| {
        let output = Output::Writer(Box::new(std::io::sink()));
        Options::new().opt_level(level).heap_limit(Some(16 << 20)).output(output)
    };
    for (name, text) in hostile::HOSTILE.into_iter().chain(hostile::NATIVE) {
        for level in [OptLevel::O0, OptLevel::O2] {
            row(&format!("{name}, {level:?}"), &main_of(options(level), text));
        }
    }
    let session =
        Session::new(options(OptLevel::O2), Workers::Caller).expect("this machine has a code generator");
    let dylib = session.create_dylib("main").expect("the name is free");
    hostile::waiting(&dylib, session.runtime());
    row("waits in a function of the host", &dylib.func("main").expect("it is there"));
}

fn costs(criterion: &mut Criterion) {
    let main = main_of(Options::new().fuel(true), KERNELS[0].1);
    let (token, fuel) = (Cancel::new(), Fuel::new(u64::MAX / 2));
    let mut group = criterion.benchmark_group("call");
    group.bench_function("none", |b| b.iter(|| main.call((black_box(1),))));
    for (name, limits) in [
        ("empty", Limits::new()),
        ("token", Limits::new().cancelled_by(&token)),
        ("deadline", Limits::new().timeout(Duration::from_secs(3600))),
        ("fuel", Limits::new().fuelled_by(&fuel)),
    ] {
        group.bench_function(name, |b| b.iter(|| main.call_limited(&limits, (black_box(1),))));
    }
    group.finish();
    for (name, text, n) in KERNELS {
        let mut group = criterion.benchmark_group(format!("work/{name}"));
        for (kind, fuel) in [("plain", false), ("priced", true)] {
            let main = main_of(Options::new().fuel(fuel), text);
            group.bench_function(kind, |b| b.iter(|| main.call((black_box(n),))));
        }
        group.finish();
    }
}

criterion_group!(benches, ends, costs);
criterion_main!(benches);

#[path = "../tests/support/hostile.rs"]
mod hostile;
