//! Calls: from Rust, typed and untyped, between compiled functions, and into C.
//!
//! ```text
//! cargo bench --bench calls
//! ```
//!
//! | bench | one iteration |
//! |---|---|
//! | `from_rust/scalars` | Rust calls a compiled function of one integer by its types, on a thread that has not been in the heap, of a unit without objects |
//! | `from_rust/typed` | the same of a unit that handles objects: the call enters the heap and the newest world |
//! | `from_rust/within` | that of `scalars` within one activation. A unit that handles objects has its own methods, which no activation of the engine reaches |
//! | `from_rust/untyped` | the same with the arguments in an array |
//! | `from_rust/exception` | the function throws, and the exception arrives as an error with its message |
//! | `compiled/call` | a compiled function calls another, which is not inlined, 1,000 times |
//! | `compiled/foreign` | a compiled function calls a C function 1,000 times |
//! | `compiled/pointer` | a compiled function calls another, by the pointer that `cfunction` gives, 1,000 times |
//! | `compiled/callback` | the same through C: the call passes one argument more than the function takes |
//! | `compiled/loop` | the same loop without a call |
//! | `dynamic/ints`, `dynamic/floats`, `dynamic/mixed` | 1,000 dynamic additions, each with a box for its sum |
//! | `dynamic/less` | 1,000 dynamic comparisons |
//! | `dynamic/decay` | 1,000 products and sums of a `Float64` that is carried as an `Any`, two operators an iteration |
//! | `dynamic/typed` | the same with types |
//! | `dynamic/changing` | 1,000 sums of which every second one is of another type than the one before |
//! | `dynamic/bytes` | 1,000 sums of `UInt8`, for which the code has no test |
//! | `dynamic/elements` | 1,000 elements of a `Vector{Any}`, and their sum |
//! | `host/number`, `host/fallible` | a compiled function calls a typed closure of the host 1,000 times, with a number; the closure may fail |
//! | `host/text`, `host/slice` | the same with a `&str`, with a `&[f64]` of 1,000 elements; the closure ignores them |
//! | `host/boxed` | the same of a closure that takes objects (`define_host`) |
//! | `slice/1000` | Rust calls a compiled function with 1,000 floats, which become a `Vector` |
//!
//! In `dynamic`, `+` has a method for a type of the program as well, so it has more methods than are tried one by one.

use brolga::host::{Text, Vector};
use brolga::ir::Type;
use brolga::session::{Session, Signature, Workers};
use brolga::{Engine, OptLevel, Options, Program};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// A function of a unit that handles no objects: calls from Rust do not enter the heap, unless the thread has been there before.
const SCALARS: &str = r#"
function next(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
end
"#;

/// The functions that are called. `fails` makes an exception, so the unit handles objects and each call from Rust enters the heap.
const SOURCE: &str = r#"
function next(x::Int64)::Int64
1 ─ %1 = Base.slt_int(x, 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = invoke Main.next(x::Int64)::Int64
└──      return %3
3 ─ %5 = Base.add_int(x, 1)::Int64
└──      return %5
end

function fails(x::Int64)::Int64
1 ─ invoke Base.error("as asked"::String)::Union{}
└── unreachable
end

function calls(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = invoke Main.next(%2::Int64)::Int64 noinline
└──      goto #2
4 ─      return %2
end

function foreign(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %7)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = $(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(%2)))::Int64
│   %7 = Base.add_int(%5, 1)::Int64
└──      goto #2
4 ─      return %2
end

function plain(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = Base.and_int(%2, n)::Int64
│   %6 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %2
end
"#;

/// Functions that handle objects: calls of a unit with such functions enter the heap.
const DYNAMIC: &str = r#"
function sum(x::Any, step::Any, n::Int64)::Any
1 ─      goto #2
2 ┄ %2 = φ (#1 => x, #3 => %5)::Any
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %5 = (%2 + step)::Any
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end

function ints(n::Int64)::Int64
1 ─ %1 = invoke Main.sum(5000::Any, 3::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end

function floats(n::Int64)::Int64
1 ─ %1 = invoke Main.sum(0.5::Any, 1.5::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Float64)::Float64
│   %3 = Base.fptosi(Int64, %2)::Int64
└──      return %3
end

function mixed(n::Int64)::Int64
1 ─ %1 = invoke Main.sum(0.5::Any, 3::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Float64)::Float64
│   %3 = Base.fptosi(Int64, %2)::Int64
└──      return %3
end

function count(x::Any, y::Any, n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #5 => %9)::Int64
│   %3 = φ (#1 => 0, #5 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #6 if not %4
3 ─ %6 = Base.add_int(%3, 1)::Int64
│   %7 = (x < y)::Any
└──      goto #5 if not %7
4 ─ %8 = Base.add_int(%2, 1)::Int64
└──      goto #5
5 ┄ %9 = φ (#3 => %2, #4 => %8)::Int64
└──      goto #2
6 ─      return %2
end

function next(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
end

function pointer(n::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:next), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(%3)))::Int64
└──      goto #2
4 ─      return %3
end

function callback(n::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:next), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64, Float64), 0, :(:ccall), :(%3), 0.0))::Int64
└──      goto #2
4 ─      return %3
end

function less(n::Int64)::Int64
1 ─ %1 = invoke Main.count(1::Any, 2::Any, n::Int64)::Int64 noinline
└──      return %1
end
"#;

/// Loops over values of any type, behind [`DYNAMIC`].
const OPERATORS: &str = r#"
struct Meters
    v::Float64
end

function Base.:+(x::Meters, y::Meters)::Meters
1 ─ %1 = Base.getfield(x, :v)::Float64
│   %2 = Base.getfield(y, :v)::Float64
│   %3 = Base.add_float(%1, %2)::Float64
│   %4 = %new(Meters, %3)::Meters
└──      return %4
end

function round(x::Any, by::Any, n::Int64)::Any
1 ─      goto #2
2 ┄ %2 = φ (#1 => x, #3 => %5)::Any
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %7 = (%2 * by)::Any
│   %5 = (%7 + 1.0)::Any
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end

function decay(n::Int64)::Int64
1 ─ %1 = invoke Main.round(8.0::Any, 0.5::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Float64)::Float64
│   %3 = Base.fptosi(Int64, %2)::Int64
└──      return %3
end

function rounds(x::Float64, by::Float64, n::Int64)::Float64
1 ─      goto #2
2 ┄ %2 = φ (#1 => x, #3 => %5)::Float64
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %7 = Base.mul_float(%2, by)::Float64
│   %5 = Base.add_float(%7, 1.0)::Float64
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end

function typed(n::Int64)::Int64
1 ─ %2 = invoke Main.rounds(8.0::Float64, 0.5::Float64, n::Int64)::Float64 noinline
│   %3 = Base.fptosi(Int64, %2)::Int64
└──      return %3
end

function changes(x::Any, y::Any, n::Int64)::Any
1 ─      goto #2
2 ┄ %1 = φ (#1 => x, #3 => %7)::Any
│   %2 = φ (#1 => y, #3 => %1)::Any
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %7 = (%2 + 1)::Any
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %1
end

function changing(n::Int64)::Int64
1 ─ %1 = invoke Main.changes(0::Any, 0.0::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end

function bytes(n::Int64)::Int64
1 ─ %1 = invoke Main.sum(0x00::Any, 0x01::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, UInt8)::UInt8
│   %3 = Base.zext_int(Int64, %2)::Int64
└──      return %3
end

function pass(v::Vector{Any}, n::Int64)::Any
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Any
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %7 = Base.and_int(%3, 7)::Int64
│   %8 = Base.add_int(%7, 1)::Int64
│   %9 = Base.getindex(v, %8)::Any
│   %5 = (%2 + %9)::Any
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end

function elements(n::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Any}, 8)::Memory{Any}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Any}
│   %3 = %new(Vector{Any}, %2, (8,))::Vector{Any}
│         Base.setindex!(%3, 1, 1)::Any
│         Base.setindex!(%3, 2, 2)::Any
│         Base.setindex!(%3, 3, 3)::Any
│         Base.setindex!(%3, 4, 4)::Any
│         Base.setindex!(%3, 5, 5)::Any
│         Base.setindex!(%3, 6, 6)::Any
│         Base.setindex!(%3, 7, 7)::Any
│         Base.setindex!(%3, 8, 8)::Any
│   %4 = invoke Main.pass(%3::Vector{Any}, n::Int64)::Any noinline
│   %5 = Core.typeassert(%4, Int64)::Int64
└──      return %5
end
"#;

/// How many calls a compiled loop makes.
const CALLS: i64 = 1_000;

fn calls(criterion: &mut Criterion) {
    let program = Program::read("calls", SOURCE.as_bytes()).expect("the source is well-formed");
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O2))
        .expect("this machine has a code generator");
    let unit = engine.compile(&program).expect("the source needs no heap");

    let mut group = criterion.benchmark_group("from_rust");
    let scalars = Program::read("scalars", SCALARS.as_bytes()).expect("the source is well-formed");
    let scalars = engine.compile(&scalars).expect("a unit");
    let alone = scalars.func::<(i64,), i64>("next").expect("it is there");
    group.bench_function("scalars", |b| b.iter(|| alone.call((black_box(41),)).expect("it returns")));
    let next = unit.func::<(i64,), i64>("next").expect("it is there");
    group.bench_function("typed", |b| b.iter(|| next.call((black_box(41),)).expect("it returns")));
    group.bench_function("within", |b| {
        let all = engine.activate(|activation| {
            b.iter(|| alone.call_within(activation, (black_box(41),)).expect("it returns"))
        });
        all.expect("the thread is outside");
    });
    let untyped = unit.untyped("next").expect("it is there");
    group.bench_function("untyped", |b| b.iter(|| untyped.call(&[black_box(41)])));
    let fails = unit.func::<(i64,), i64>("fails").expect("it is there");
    group.bench_function("exception", |b| b.iter(|| fails.call((black_box(41),))));
    group.finish();

    let mut group = criterion.benchmark_group("compiled");
    group.throughput(Throughput::Elements(CALLS as u64));
    for (bench, name) in [("call", "calls"), ("foreign", "foreign"), ("loop", "plain")] {
        let function = unit.func::<(i64,), i64>(name).expect("it is there");
        assert_eq!(function.call((CALLS,)), Ok(CALLS));
        group.bench_function(bench, |b| b.iter(|| function.call((black_box(CALLS),))));
    }
    group.finish();

    let program = Program::read("dynamic", DYNAMIC.as_bytes()).expect("the source is well-formed");
    let unit = engine.compile(&program).expect("a unit");
    let mut group = criterion.benchmark_group("compiled");
    group.throughput(Throughput::Elements(CALLS as u64));
    for name in ["pointer", "callback"] {
        let function = unit.func::<(i64,), i64>(name).expect("it is there");
        assert_eq!(function.call((CALLS,)), Ok(CALLS));
        group.bench_function(name, |b| b.iter(|| function.call((black_box(CALLS),))));
    }
    group.finish();

    let mut group = criterion.benchmark_group("dynamic");
    group.throughput(Throughput::Elements(CALLS as u64));
    let text = DYNAMIC.to_owned() + OPERATORS;
    let program = Program::read("operators", text.as_bytes()).expect("the source is well-formed");
    let unit = engine.compile(&program).expect("a unit");
    let sums = [("ints", 8000), ("floats", 1500), ("mixed", 3000), ("less", CALLS)];
    let others =
        [("decay", 2), ("typed", 2), ("changing", CALLS / 2), ("bytes", CALLS % 256), ("elements", 4500)];
    for (name, expected) in sums.into_iter().chain(others) {
        let function = unit.func::<(i64,), i64>(name).expect("it is there");
        assert_eq!(function.call((CALLS,)), Ok(expected));
        group.bench_function(name, |b| b.iter(|| function.call((black_box(CALLS),))));
    }
    group.finish();
}

/// Loops that call functions of the host.
const HOST: &str = "
function number(x::Int64, n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = invoke Main.NAME(%2::Int64)::Int64
└──      goto #2
4 ─      return %2
end
";

/// The same with an argument that stays.
const HOST_WITH: &str = "
function with(x::TYPE, n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = invoke Main.NAME(x::TYPE)::Int64
│   %6 = Base.add_int(%2, %5)::Int64
└──      goto #2
4 ─      return %2
end
";

fn host(criterion: &mut Criterion) {
    let session = Session::new(Options::new().opt_level(OptLevel::O2), Workers::Caller).expect("a session");
    let functions = session.create_dylib("functions").expect("a dylib");
    functions.define_fn("next", |n: i64| n + 1).expect("it is new");
    functions.define_fn("checked", |n: i64| n.checked_add(1).ok_or("too large")).expect("it is new");
    functions.define_fn("text", |_: &str| 1i64).expect("it is new");
    functions.define_fn("slice", |_: &[f64]| 1i64).expect("it is new");
    let signature = Signature::new("boxed", &[Type::INT64], Type::INT64);
    let boxed = functions.define_host(&signature, |scope, args| {
        let n = args[1].get(scope).unboxed::<i64>().unwrap_or(0);
        scope.int(n + 1).map_err(|error| scope.throw_error(&error.to_string()))
    });
    boxed.expect("it is new");
    let sum = "function sum(x::Vector{Float64})::Int64
1 ─ %1 = Base.arraylen(x)::Int64
└──      return %1
end";
    let mut programs = vec![("slice/1000", sum.to_owned())];
    for (bench, name, ty) in [
        ("host/number", "next", ""),
        ("host/fallible", "checked", ""),
        ("host/boxed", "boxed", ""),
        ("host/text", "text", "String"),
        ("host/slice", "slice", "Vector{Float64}"),
    ] {
        let text = if ty.is_empty() { HOST } else { HOST_WITH };
        programs.push((bench, text.replace("TYPE", ty).replace("NAME", name)));
    }
    let floats = vec![0.5; 1000];
    for (bench, text) in &programs {
        let dylib = session.create_dylib(bench).expect("a dylib");
        dylib.link_against(&functions).expect("nothing is defined yet");
        dylib
            .define(dylib.read("host.jlir", text.as_bytes()).expect("the source is well-formed"))
            .expect("it is new");
        let (group, bench) = bench.split_once('/').expect("a group");
        let mut group = criterion.benchmark_group(group);
        group.throughput(Throughput::Elements(CALLS as u64));
        match bench {
            "1000" => {
                let call = dylib.func_in::<(Vector<f64>,), i64>("sum").expect("it is there");
                group.bench_function(bench, |b| {
                    let all = session.runtime().enter(|scope| {
                        b.iter(|| {
                            scope.frame(|scope| call.call(scope, (black_box(&floats),))).expect("it returns")
                        });
                    });
                    all.expect("the thread is outside");
                });
            }
            "text" => {
                let call = dylib.func_in::<(Text, i64), i64>("with").expect("it is there");
                group.bench_function(bench, |b| {
                    let all = session.runtime().enter(|scope| {
                        b.iter(|| {
                            scope.frame(|scope| call.call(scope, ("text", CALLS))).expect("it returns")
                        });
                    });
                    all.expect("the thread is outside");
                });
            }
            "slice" => {
                let call = dylib.func_in::<(Vector<f64>, i64), i64>("with").expect("it is there");
                group.bench_function(bench, |b| {
                    let all = session.runtime().enter(|scope| {
                        b.iter(|| {
                            scope.frame(|scope| call.call(scope, (&floats, CALLS))).expect("it returns")
                        });
                    });
                    all.expect("the thread is outside");
                });
            }
            _ => {
                let call = dylib.func::<(i64, i64), i64>("number").expect("it is there");
                group.bench_function(bench, |b| b.iter(|| call.call((0, black_box(CALLS)))));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, calls, host);
criterion_main!(benches);

#[path = "../tests/support/doors.rs"]
mod doors;
