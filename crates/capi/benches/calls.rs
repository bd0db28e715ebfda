//! The cost of calls, in C and in Rust, in one run.
//!
//! ```text
//! cargo bench -p brolga-capi --bench calls
//! ```
//!
//! `calls.c` is built with `cc -O2` against the static library and measures the C column. Each number is the least of fifteen rounds. Copies are of ten million `Float64`; the C
//! column of `memcpy` is into memory that the process has written before.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use brolga::build::{Context, Type};
use brolga::heap::Column;
use brolga::session::{Session, Workers};
use brolga::{Engine, Options, Program};

const CALLS: i64 = 200_000;
const ROUNDS: usize = 15;
const NUMBERS: usize = 10_000_000;

/// The function of `calls.c`.
const NEXT: &str = "
function next(x::Int64)::Int64
1 ─ %1 = Base.slt_int(x, 0)::Bool
└──      goto #3 if not %1
2 ─      invoke Base.error(\"negative\"::String)::Union{}
└──      unreachable
3 ─ %5 = Base.add_int(x, 1)::Int64
└──      return %5
end";

/// The loop of `calls.c`.
const LOOP: &str = "
function loop_NAME(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = invoke Main.NAME(%2::Int64)::Int64
└──      goto #2
4 ─      return %2
end";

/// The least time of some rounds, in nanoseconds for one of `times`.
fn least(times: f64, mut body: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        body();
        start.elapsed().as_nanos() as f64 / times
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

type Measured = BTreeMap<String, f64>;

/// The measurements of C.
fn in_c() -> Measured {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = std::env::current_exe().expect("the path of the benchmark");
    let folder = own.parent().expect("a folder");
    let places = [folder.join("libbrolga_capi.a"), folder.join("../libbrolga_capi.a")];
    let archive = places.into_iter().find(|path| path.exists()).expect("cargo builds the static library");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls-of-c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-I"]).arg(here.join("include"));
    cc.arg(here.join("benches/calls.c")).arg(archive).args(["-lm", "-lpthread", "-ldl", "-o"]).arg(&program);
    assert!(cc.status().expect("a C compiler").success());
    let run = Command::new(&program).output().expect("the program runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let lines = String::from_utf8(run.stdout).expect("names and numbers");
    let line = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    lines.lines().filter_map(line).collect()
}

/// The same in Rust.
fn in_rust() -> Result<Measured, Box<dyn std::error::Error>> {
    let mut found = Measured::new();
    let mut add = |name: &str, number: f64| found.insert(name.to_owned(), number);
    let engine = Engine::new(Options::new())?;
    let unit = engine.compile(&Program::read("calls.jlir", NEXT.as_bytes())?)?;
    let next = unit.func::<(i64,), i64>("next")?;
    add("call_code", least(CALLS as f64, || (0..CALLS).for_each(|n| drop(black_box(next.call((n,)))))));
    let untyped = unit.untyped("next")?;
    let call = |n: i64| drop(black_box(untyped.call(&[u128::from(n as u64)])));
    add("call_values", least(CALLS as f64, || (0..CALLS).for_each(call)));

    let session = Session::new(Options::new(), Workers::Caller)?;
    let main = session.create_dylib("main")?;
    main.define_fn("plain", |n: i64| n + 1)?;
    main.define_fn("fallible", |n: i64| n.checked_add(1).ok_or("too large"))?;
    let values = brolga::session::Signature::new("values", &[Type::INT64], Type::INT64);
    main.define_host(&values, |scope, args| {
        let n = args[1].get(scope).unboxed::<i64>().unwrap_or(0);
        scope.int(n + 1).map_err(|error| scope.throw_error(&error.to_string()))
    })?;
    for name in ["plain", "fallible", "values"] {
        let text = LOOP.replace("NAME", name);
        main.define(main.read(name, text.as_bytes())?)?;
        let all = main.func::<(i64,), i64>(&format!("loop_{name}"))?;
        add(&format!("host_{name}"), least(CALLS as f64, || drop(black_box(all.call((CALLS,))))));
    }

    let cx = Context::new();
    let vector = cx.types.vector(Type::FLOAT64).map_err(|error| format!("{error:?}"))?;
    let ty = engine.runtime().heap().type_object(&cx, vector).map_err(|error| format!("{error:?}"))?;
    let numbers: Vec<f64> = (0..NUMBERS).map(|n| n as f64).collect();
    let mut copy = numbers.clone();
    add("memcpy", least(1e6, || black_box(&mut copy).copy_from_slice(black_box(&numbers))));
    add("memcpy_new", least(1e6, || drop(black_box(numbers.clone()))));
    engine.runtime().enter(|scope| {
        add(
            "copy_in",
            least(1e6, || {
                scope.frame(|scope| drop(black_box(scope.vector_of(&ty, &numbers))));
            }),
        );
        let vector = scope.vector_of(&ty, &numbers)?;
        let mut room = vec![std::mem::MaybeUninit::<f64>::uninit(); NUMBERS];
        add("copy_out", least(1e6, || drop(black_box(vector.get(scope).copy_bits_to(&mut room)))));
        add(
            "borrow",
            least(1e6, || {
                scope.frame(|scope| drop(black_box(scope.borrow(&ty, Column::new(Vec::<f64>::new(), drop)))));
            }),
        );
        Ok::<(), brolga::heap::ObjectError>(())
    })??;
    Ok(found)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (c, rust) = (in_c(), in_rust()?);
    let rows = [
        ("a call by its C type: the value", "call_value", "ns"),
        ("a call by its C type: a code, the value by a pointer; a typed call of Rust", "call_code", "ns"),
        ("a call by words", "call_words", "ns"),
        ("a call by values with kinds; an untyped call of Rust", "call_values", "ns"),
        ("the program calls the host by its C type; a typed closure", "host_plain", "ns"),
        ("the same, which may fail", "host_fallible", "ns"),
        ("the same by values or objects", "host_values", "ns"),
        ("memcpy", "memcpy", "ms"),
        ("memcpy into new memory", "memcpy_new", "ms"),
        ("numbers copied in", "copy_in", "ms"),
        ("numbers copied out", "copy_out", "ms"),
        ("numbers borrowed", "borrow", "ms"),
    ];
    println!("| | C | Rust |\n|---|---:|---:|");
    for (what, name, unit) in rows {
        let cell = |of: &Measured| of.get(name).map_or(String::new(), |number| format!("{number:.2} {unit}"));
        println!("| {what} | {} | {} |", cell(&c), cell(&rust));
    }
    Ok(())
}
