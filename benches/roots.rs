//! The collector's cost of finding the roots of compiled code: linked frames against maps of the stack.
//!
//! ```text
//! cargo bench --bench roots
//! ```
//!
//! | row | what is measured |
//! |---|---|
//! | `fib`, bare | calls without objects: the baseline of the next row |
//! | `fib`, rooted | the same calls with an object in each frame that is used after them |
//! | `binary_trees` | the example at depth 16: calls and allocations |
//! | list churn | a loop that allocates, with one list kept in front of it |
//! | handlers | the rooted calls, each under a handler |
//! | deep stacks | the pause of a collection with so many rooted frames above it |
//!
//! The two kinds take turns, and the best of several runs counts. Functions are compiled at O2; for deep stacks at O1, where no
//! recursion is unfolded, so that each call has its frame.

use std::hint::black_box;
use std::time::{Duration, Instant};

use brolga::options::Roots;
use brolga::{Engine, OptLevel, Options, Program, Unit};

const SOURCE: &str = r#"
mutable struct Cell
    val::Int64
end

mutable struct Link
    next::Union{Nothing, Link}
    val::Int64
end

function bare(v::Int64, n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 2)::Bool
└──      goto #3 if not %1
2 ─      return v
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.bare(v::Int64, %4::Int64)::Int64
│   %6 = Base.sub_int(n, 2)::Int64
│   %7 = invoke Main.bare(v::Int64, %6::Int64)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end

function rooted(c::Cell, n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 2)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.getfield(c, :val)::Int64
└──      return %3
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.rooted(c::Cell, %4::Int64)::Int64
│   %6 = Base.sub_int(n, 2)::Int64
│   %7 = invoke Main.rooted(c::Cell, %6::Int64)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end

function guarded(c::Cell, n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 2)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.getfield(c, :val)::Int64
└──      return %3
3 ─ %5 = Base.sub_int(n, 1)::Int64
└── %6 = enter #5
4 ─ %7 = invoke Main.guarded(c::Cell, %5::Int64)::Int64
│        $(Expr(:leave, :(%6)))
│   %9 = Base.sub_int(n, 2)::Int64
│   %10 = invoke Main.guarded(c::Cell, %9::Int64)::Int64
│   %11 = Base.add_int(%7, %10)::Int64
└──      return %11
5 ─      $(Expr(:pop_exception, :(%6)))
│   %14 = Base.getfield(c, :val)::Int64
└──      return %14
end

function fib_bare(n::Int64)::Int64
1 ─ %1 = invoke Main.bare(1::Int64, n::Int64)::Int64
└──      return %1
end

function fib_rooted(n::Int64)::Int64
1 ─ %1 = %new(Cell, 1)::Cell
│   %2 = invoke Main.rooted(%1::Cell, n::Int64)::Int64
└──      return %2
end

function fib_guarded(n::Int64)::Int64
1 ─ %1 = %new(Cell, 1)::Cell
│   %2 = invoke Main.guarded(%1::Cell, n::Int64)::Int64
└──      return %2
end

function churn(n::Int64)::Int64
1 ─ %1 = %new(Link, nothing, 7)::Link
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %8)::Int64
│   %4 = φ (#1 => %1, #3 => %7)::Link
│   %5 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = %new(Link, %1, %3)::Link
│   %8 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─ %10 = Base.getfield(%1, :val)::Int64
│   %11 = Base.getfield(%4, :val)::Int64
│   %12 = Base.add_int(%10, %11)::Int64
└──      return %12
end

function deep(c::Cell, n::Int64, garbage::Int64)::Int64
1 ─ %1 = Base.slt_int(0, n)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sub_int(n, 1)::Int64
│   %4 = %new(Cell, n)::Cell
│   %5 = invoke Main.deep(%4::Cell, %3::Int64, garbage::Int64)::Int64
│   %6 = Base.getfield(c, :val)::Int64
│   %7 = Base.add_int(%5, %6)::Int64
└──      return %7
3 ─ %9 = invoke Main.churn(garbage::Int64)::Int64
└──      return %9
end

function run_deep(n::Int64, garbage::Int64)::Int64
1 ─ %1 = %new(Cell, 0)::Cell
│   %2 = invoke Main.deep(%1::Cell, n::Int64, garbage::Int64)::Int64
└──      return %2
end
"#;

const KINDS: [Roots; 2] = [Roots::Linked, Roots::Maps];

/// How often each figure is taken.
const RUNS: usize = 7;

fn compiled(source: &str, level: OptLevel) -> [(Engine, Unit); 2] {
    let program = Program::read("roots.jlir", source.as_bytes()).expect("a program");
    KINDS.map(|roots| {
        let engine =
            Engine::new(crate::doors::open(Options::new()).opt_level(level).roots(roots)).expect("an engine");
        let unit = engine.compile(&program).expect("native code");
        (engine, unit)
    })
}

/// The best of several runs of each kind, which take turns.
fn best(mut run: [Box<dyn FnMut()>; 2]) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..RUNS {
        for (run, best) in run.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    best
}

/// The calls of `name(n)`, timed.
fn timed(units: &[(Engine, Unit); 2], name: &str, n: i64) -> [Duration; 2] {
    let runs = [0, 1].map(|kind| {
        let func = units[kind].1.func::<(i64,), i64>(name).expect("a function");
        Box::new(move || {
            black_box(func.call((black_box(n),)).expect("a value"));
        }) as Box<dyn FnMut()>
    });
    best(runs)
}

fn row(what: &str, [linked, maps]: [Duration; 2], count: f64, unit: &str) {
    let each = |time: Duration| time.as_nanos() as f64 / count;
    println!("{what:28} {:10.2} {:10.2}   {unit}", each(linked), each(maps));
}

/// The pause of a collection below so many frames, on average.
fn pause(engine: &Engine, unit: &Unit, depth: i64) -> (Duration, u64) {
    let func = unit.func::<(i64, i64), i64>("run_deep").expect("a function");
    let before = engine.runtime().heap().stats();
    black_box(func.call((depth, 4_000_000)).expect("a value"));
    let after = engine.runtime().heap().stats();
    let count =
        after.minor_collections + after.full_collections - before.minor_collections - before.full_collections;
    ((after.pause_total - before.pause_total) / count.max(1) as u32, count)
}

fn main() {
    println!("{:28} {:>10} {:>10}", "", "linked", "maps");
    let units = compiled(SOURCE, OptLevel::O2);
    // The number of calls of fib(n) by the recursion above.
    let (n, calls) = (32, 7_049_155.0);
    row("fib, bare", timed(&units, "fib_bare", n), calls, "ns a call");
    row("fib, rooted", timed(&units, "fib_rooted", n), calls, "ns a call");
    row("fib, rooted, handlers", timed(&units, "fib_guarded", n), calls, "ns a call");
    row("list churn", timed(&units, "churn", 10_000_000), 1e7, "ns an object");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/binary_trees.jlir");
    let trees = compiled(&std::fs::read_to_string(path).expect("the example"), OptLevel::O2);
    let runs = [0, 1].map(|kind| {
        let func = trees[kind].1.func::<(i64, i64), f64>("run").expect("a function");
        Box::new(move || {
            black_box(func.call((16, 0)).expect("a value"));
        }) as Box<dyn FnMut()>
    });
    row("binary_trees 16", best(runs), 1e6, "ms");

    let units = compiled(SOURCE, OptLevel::O1);
    row("fib, bare, O1", timed(&units, "fib_bare", n), calls, "ns a call");
    row("fib, rooted, O1", timed(&units, "fib_rooted", n), calls, "ns a call");
    let deep = move || {
        for depth in [100, 10_000, 100_000, 1_000_000] {
            let mut best = [Duration::MAX; 2];
            for _ in 0..3 {
                for ((engine, unit), best) in units.iter().zip(&mut best) {
                    let (pause, count) = pause(engine, unit, depth);
                    assert!(count > 0, "nothing was collected");
                    *best = pause.min(*best);
                }
            }
            row(&format!("pause below {depth} frames"), best, 1e3, "µs");
        }
    };
    // Deep recursion needs a deep stack.
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(deep).expect("a thread");
    thread.join().expect("the figures");
}

#[path = "../tests/support/doors.rs"]
mod doors;
