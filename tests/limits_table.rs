//! Each row of the table of limits in `docs/guide/src/others.md` is reached once, with the right error, and the engine works on.
//!
//! Where the process could die at the limit, the row runs in a child whose address space is limited: this test again, with the row's name in its environment.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "rows that could end the process run in children, which a variable names"
)]

#[path = "support/doors.rs"]
mod doors;

use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use brolga::limits::{Ended, Fuel, GuestOptions, Guests};
use brolga::opt::OptError;
use brolga::session::{Session, Workers};
use brolga::{
    CallError, Engine, Error, Evaluator, ExceptionKind, Fault, Limits, OptLevel, Options, Output, Program,
    TypedFunc,
};

type Int = TypedFunc<(i64,), i64>;

const FINE: &str = "
function fine(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
└──      return %1
end
";

/// A loop of `n` iterations around statements that see the counter as `%1` and have numbers from `%10` on.
fn looped(before: &str, body: &str) -> String {
    format!(
        "{before}
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %1 = φ (#1 => 0, #3 => %3)::Int64
│   %2 = Base.slt_int(%1, n)::Bool
└──      goto #4 if not %2
3 ─ %3 = Base.add_int(%1, 1)::Int64
{body}
└──      goto #2
4 ─      return %1
end
"
    )
}

/// Makes a type in each iteration.
fn types() -> String {
    looped("struct A{T}\n    a::Any\nend", "│   %10 = Core.apply_type(A, %1)::Any")
}

/// The same, of a type that mentions no declaration of the program, and calls a method with an instance each time.
fn builtin_types() -> String {
    let f = "function kept(x::Any)::Int64 noinline\n1 ─      return 7\nend";
    looped(
        f,
        "│   %10 = Core.apply_type(Core.Tuple, %1)::Any
│   %11 = Core.apply_type(Core.Val, %1)::Any
│   %12 = dynamic (%11)()::Any
│   %13 = dynamic Main.kept(%12)::Any",
    )
}

/// Makes a symbol in each iteration.
fn names() -> String {
    looped(
        "",
        "│   %10 = dynamic Base.string(%1)::Any
│   %11 = Core.typeassert(%10, String)::String
│   %12 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), :(%11)))::Ptr{UInt8}
│   %13 = Core.sizeof(%11)::Int64
│   %14 = $(Expr(:foreigncall, :(:jl_symbol_n), Symbol, svec(Ptr{UInt8}, Int64), 0, :(:ccall), :(%12), :(%13), :(%11)))::Symbol",
    )
}

/// A tower of structs, each with two of the one before.
fn tower(height: usize) -> String {
    let mut text = String::from("struct T0\n    a::Any\n    b::Any\nend\n");
    for n in 1..=height {
        text += &format!("struct T{n}\n    a::T{m}\n    b::T{m}\nend\n", m = n - 1);
    }
    text
}

fn options(level: OptLevel) -> Options {
    Options::new().opt_level(level).heap_limit(Some(16 << 20)).output(Output::Capture)
}

fn read(text: &str) -> Program {
    let text = format!("{text}\n{FINE}");
    Program::read("limits.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Whether a call throws `OutOfMemoryError`, and the next one does not.
fn runs_out_of_memory(options: Options, text: &str) {
    let engine = Engine::new(options).unwrap();
    let unit = engine.compile(&read(text)).unwrap();
    let (main, fine): (Int, Int) = (unit.func("main").unwrap(), unit.func("fine").unwrap());
    assert_eq!(main.call((1000,)), Ok(1000), "a few are no problem");
    for _ in 0..2 {
        match main.call((i64::MAX,)) {
            Err(CallError::Exception(thrown)) => {
                assert_eq!(thrown.kind, ExceptionKind::OutOfMemoryError, "{thrown}")
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(main.call((1000,)), Ok(1000), "those that there are stay");
    assert_eq!(fine.call((1,)), Ok(2));
}

#[test]
fn types_count_to_the_limit_of_the_heap() {
    for level in [OptLevel::O0, OptLevel::O2] {
        runs_out_of_memory(options(level), &types());
        runs_out_of_memory(options(level), &builtin_types());
    }
}

#[test]
fn names_count_to_the_limit_of_the_heap() {
    runs_out_of_memory(doors::open(options(OptLevel::O2)), &names());
}

/// What a program has made goes with its objects and code.
#[test]
fn types_go_with_their_program() {
    let engine = Engine::new(options(OptLevel::O2)).unwrap();
    for _ in 0..20 {
        let unit = engine.compile(&read(&types())).unwrap();
        let main: Int = unit.func("main").unwrap();
        assert_eq!(main.call((5000,)), Ok(5000));
    }
    let external = engine.runtime().heap().stats().external_bytes;
    assert!(external < 12 << 20, "{external}: a program's types take 4 MiB");
}

/// A loop of 500 iterations from `n` on, around statements as in [`looped`].
fn from_there(before: &str, body: &str) -> String {
    let text = looped(before, body).replace("%1 = φ (#1 => 0,", "%1 = φ (#1 => n,");
    let text = text.replace("Base.slt_int(%1, n)::Bool", "Base.slt_int(%1, %20)::Bool");
    text.replace("1 ─      goto #2", "1 ─ %20 = Base.add_int(n, 500)::Int64\n└──      goto #2")
}

/// Types that a program makes and drops, call after call, do not use its heap up.
#[test]
fn types_go_with_their_objects() {
    let kept = "function kept(x::Any)::Int64 noinline\n1 ─      return 7\nend
function number(x::Val{N})::Int64 where N noinline
1 ─ %1 = $(Expr(:static_parameter, 1))::Any
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end
struct A{T}\n    a::Any\nend";
    let value = "│   %11 = Core.apply_type(Core.Val, %1)::Any\n│   %12 = dynamic (%11)()::Any\n";
    for (name, body) in [
        ("as an argument", "│   %13 = dynamic Main.kept(%12)::Any"),
        ("in a tuple", "│   %13 = Core.tuple(%12, %1)::Any\n│   %14 = dynamic Main.kept(%13)::Any"),
        (
            "in a tuple of the run time",
            "│   %13 = Core.compilerbarrier(:type, Core.tuple)::Any\n│   %14 = (%13)(%12, %1)::Any",
        ),
        ("as a parameter", "│   %13 = dynamic Main.number(%12)::Any"),
        (
            "as an element",
            "│   %13 = Core.apply_type(Memory, %11)::Any\n│   %14 = Core.memorynew(%13, 2)::Any",
        ),
        ("of the program", "│   %13 = Core.apply_type(A, %1)::Any\n│   %14 = dynamic (%13)(%1)::Any"),
        (
            "with a type of the program",
            "│   %13 = Core.apply_type(A, %11)::Any\n│   %14 = dynamic (%13)(%1)::Any",
        ),
    ] {
        for level in [OptLevel::O0, OptLevel::O2] {
            let engine = Engine::new(options(level).heap_limit(Some(4 << 20))).unwrap();
            let unit = engine.compile(&read(&from_there(kept, &format!("{value}{body}")))).unwrap();
            let main: Int = unit.func("main").unwrap();
            let mut ends = 0;
            for n in (0..30).map(|call| 500 * call) {
                match main.call((n,)) {
                    Ok(end) => assert_eq!(end, n + 500),
                    Err(CallError::Exception(thrown)) => {
                        assert_eq!(
                            thrown.kind,
                            ExceptionKind::OutOfMemoryError,
                            "{name}, {level:?}: {thrown}"
                        );
                        assert_eq!(main.call((n,)), Ok(n + 500), "{name}, {level:?}");
                        ends += 1;
                    }
                    other => panic!("{name}, {level:?}: {other:?}"),
                }
            }
            assert!(ends > 0, "{name}, {level:?}: the limit was reached");
        }
    }
}

/// Types that the texts of programs mention and that mention no declaration, program after program.
#[test]
fn types_that_programs_share_go_with_the_last_of_them() {
    let engine = Engine::new(options(OptLevel::O0).heap_limit(Some(4 << 20))).unwrap();
    let mut external = Vec::new();
    for n in 0..100 {
        let mut text = String::from("function kept(x::Any)::Int64 noinline\n1 ─      return 7\nend\n");
        text += "function main(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n";
        for at in (2..200).step_by(2) {
            let ty = format!("Val{{{}}}", 1000 * n + at);
            text += &format!("│   %{at} = Core.tuple(n, {ty}())::Tuple{{Int64, {ty}}}\n");
            text += &format!("│   %{} = dynamic Main.kept(%{at})::Any\n", at + 1);
        }
        text += "└──      return %1\nend\n";
        let main: Int = engine.compile(&read(&text)).unwrap().func("main").unwrap();
        assert_eq!(main.call((n,)), Ok(n + 1));
        external.push(engine.runtime().heap().stats().external_bytes);
    }
    assert!(external.iter().all(|&bytes| bytes < 3 << 20), "{external:?}");
}

/// The interpreter has the same rule.
#[test]
fn types_count_in_the_interpreter() {
    let program = read(&types());
    let mut evaluator = Evaluator::interpreted(&program).with_heap_limit(1 << 20);
    let ended = evaluator.call(&program.call("main(1000000)").unwrap()).unwrap_err().to_string();
    assert!(ended.contains("OutOfMemoryError"), "{ended}");
}

#[test]
fn inline_values_have_a_largest_number_of_pointers() {
    let error = Program::read("tower.jlir", tower(20).as_bytes()).err().map(|error| error.to_string());
    let error = error.unwrap_or_default();
    assert!(error.contains("`T14` contains more than 16384 pointers"), "{error}");
    assert!(error.contains("tower.jlir:57:") && !error.contains("T15` contains"), "{error}");
    assert!(Program::read("tower.jlir", tower(13).as_bytes()).is_ok());
    let grows = "struct A{T}
    a::T
    b::T
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %1 = φ (#1 => 0, #3 => %4)::Int64
│   %2 = φ (#1 => Any, #3 => %5)::Any
│   %3 = Base.slt_int(%1, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = Base.add_int(%1, 1)::Int64
│   %5 = Core.apply_type(A, %2)::Any
└──      goto #2
4 ─ %7 = Core.sizeof(%2)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
└──      return %8
end";
    let unit = Engine::new(options(OptLevel::O2)).unwrap().compile(&read(grows)).unwrap();
    let main: Int = unit.func("main").unwrap();
    assert_eq!(main.call((10,)), Ok(8 << 10));
    for height in [15, 27, 100, 200] {
        assert!(matches!(main.call((height,)), Err(CallError::Exception(_))), "{height}");
    }
}

/// A function of this many statements, none of which is left out.
fn large(statements: usize) -> String {
    let mut text = "function main(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n".to_owned();
    for n in 2..statements {
        text += &format!("│   %{n} = Base.mul_int(%{}, n)::Int64\n", n - 1);
    }
    text + &format!("└──      return %{}\nend\n", statements - 1)
}

#[test]
fn compiling_a_function_takes_limited_memory() {
    for level in OptLevel::ALL {
        let engine = Engine::new(options(level).compile_memory(Some(1 << 20))).unwrap();
        match engine.compile(&read(&large(5000))) {
            Err(error @ Error::Optimise(OptError::TooMuchMemory { .. })) => {
                assert_eq!(error.fault(), Fault::Program);
                let text = error.to_string();
                assert!(text.contains("`main(Int64)` is too large") && text.contains("1048576"), "{text}");
            }
            other => panic!("{:?}", other.map(drop)),
        }
        assert!(engine.compile(&read(&large(100))).is_ok());
    }
    // Before code generation the function is small enough.
    let engine = Engine::new(options(OptLevel::O0).compile_memory(Some(3 << 20))).unwrap();
    let refused = engine.compile(&read(&large(5000))).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::Optimise(OptError::TooMuchMemory { bytes, .. }) if bytes > 8 << 20),
        "{refused}"
    );
    let session = Session::new(options(OptLevel::O2).compile_memory(Some(1 << 20)), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    dylib.define(read(&large(5000))).unwrap();
    let refused = dylib.func::<(i64,), i64>("main").unwrap_err().to_string();
    assert!(refused.contains("`main(Int64)` is too large"), "{refused}");
    assert_eq!(dylib.func::<(i64,), i64>("fine").unwrap().call((1,)), Ok(2));
}

#[test]
fn code_takes_limited_memory() {
    let engine = Engine::new(options(OptLevel::O0).code_limit(64 << 10)).unwrap();
    let refused = engine.compile(&read(&large(20_000))).map(drop).unwrap_err();
    assert_eq!(refused.fault(), Fault::World, "{refused}");
    assert!(engine.compile(&read(&large(100))).is_ok());
}

#[test]
fn compiling_takes_limited_time_and_statements() {
    let engine = Engine::new(options(OptLevel::O2).compile_limit(Some(Duration::ZERO))).unwrap();
    let refused = engine.compile(&read(&large(5000))).map(drop);
    assert!(matches!(refused, Err(Error::Optimise(OptError::Stopped))), "{refused:?}");
    let engine = Engine::new(options(OptLevel::O2).function_limit(Some(100))).unwrap();
    let refused = engine.compile(&read(&large(5000))).map(drop);
    assert!(matches!(refused, Err(Error::Optimise(OptError::TooLarge { .. }))), "{refused:?}");
}

#[test]
fn calls_take_limited_time_work_and_stack() {
    let spin = looped("", "│   %10 = Base.mul_int(%1, %1)::Int64");
    let deep = "function deep(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.deep(%1::Int64)::Int64 noinline
│   %3 = Base.xor_int(%2, %1)::Int64
└──      return %3
end
";
    let engine = Engine::new(options(OptLevel::O0).fuel(true)).unwrap();
    let unit = engine.compile(&read(&format!("{spin}{deep}"))).unwrap();
    let (main, deep): (Int, Int) = (unit.func("main").unwrap(), unit.func("deep").unwrap());
    let soon = Limits::new().timeout(Duration::from_millis(5));
    assert_eq!(main.call_limited(&soon, (i64::MAX,)), Err(CallError::Ended(Ended::Deadline)));
    let fuelled = Limits::new().fuelled_by(&Fuel::new(1000));
    assert_eq!(main.call_limited(&fuelled, (i64::MAX,)), Err(CallError::Ended(Ended::Fuel)));
    match deep.call((0,)) {
        Err(CallError::Exception(thrown)) => assert_eq!(thrown.kind, ExceptionKind::StackOverflowError),
        other => panic!("{other:?}"),
    }
    assert_eq!(main.call((1000,)), Ok(1000));
}

#[test]
fn calls_that_wait_take_as_many_threads_as_they_may() {
    let engine = Engine::new(options(OptLevel::O0)).unwrap();
    let unit = engine.compile(&read(&looped("", "│   %10 = Base.mul_int(%1, %1)::Int64"))).unwrap();
    let main: Int = unit.func("main").unwrap();
    let guests = Guests::new(GuestOptions { most: 2, ..GuestOptions::default() });
    let soon = Limits::new().timeout(Duration::from_millis(20));
    let mut calls: Vec<_> = (0..8).map(|_| main.call_async(&guests, &soon, (i64::MAX,))).collect();
    let mut cx = Context::from_waker(Waker::noop());
    let mut ended = [false; 8];
    while ended.contains(&false) {
        for (call, ended) in calls.iter_mut().zip(&mut ended).filter(|(_, ended)| !**ended) {
            if let Poll::Ready(value) = Pin::new(call).poll(&mut cx) {
                assert_eq!(value, Err(CallError::Ended(Ended::Deadline)));
                *ended = true;
            }
            assert!(guests.running() <= 2, "{}", guests.running());
        }
    }
}

#[test]
fn output_that_nobody_takes_is_limited() {
    let text = looped("", "│   %10 = dynamic Base.println(\"a line\")::Any");
    let engine = Engine::new(options(OptLevel::O2).output_limit(Some(7000))).unwrap();
    let main: Int = engine.compile(&read(&text)).unwrap().func("main").unwrap();
    assert_eq!(main.call((1000,)), Ok(1000));
    let sink = engine.runtime().sink();
    assert!(sink.take_error().is_none());
    assert_eq!(main.call((1,)), Ok(1), "the program does not see it");
    assert_eq!(sink.take_error().map(|error| error.kind()), Some(ErrorKind::StorageFull));
    assert_eq!(sink.take_captured().len(), 7000);
    assert_eq!(main.call((1,)), Ok(1));
    assert_eq!(sink.take_captured(), b"a line\n");
}

/// Texts that the run time makes count to the limit of the heap while it makes them.
#[test]
fn texts_count_to_the_limit_of_the_heap() {
    let text = "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, :(n)))::Vector{Any}
│   %2 = dynamic Base.repeat(\"a\", 1048576)::Any
│   %3 = dynamic Base.fill!(%1, %2)::Any
│   %4 = Core._apply_iterate(Base.iterate, Base.string, %1)::Any
│   %5 = Core.sizeof(%4)::Any
│   %6 = Core.typeassert(%5, Int64)::Int64
└──      return %6
end";
    let engine = Engine::new(options(OptLevel::O2)).unwrap();
    let main: Int = engine.compile(&read(text)).unwrap().func("main").unwrap();
    assert_eq!(main.call((3,)), Ok(3 << 20));
    match main.call((1000,)) {
        Err(CallError::Exception(thrown)) => {
            assert_eq!(thrown.kind, ExceptionKind::OutOfMemoryError, "{thrown}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(main.call((3,)), Ok(3 << 20));
}

/// The name of the row that a child runs.
const ROW: &str = "BROLGA_LIMIT";

/// Runs a row in a process that has 512 MiB of addresses, and no limit of the heap.
#[test]
fn without_a_limit_the_machine_is_the_limit() {
    for row in ["types", "names"] {
        let child = Command::new("sh")
            .args(["-c", "ulimit -v 512000; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["run_row", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROW, row)
            .output()
            .unwrap();
        assert!(child.status.success(), "{row}: {child:?}");
    }
}

/// Not a test by itself: runs the row that the environment names.
#[test]
fn run_row() {
    let text = match std::env::var(ROW).as_deref() {
        Ok("types") => types(),
        Ok("names") => names(),
        _ => return,
    };
    runs_out_of_memory(doors::open(options(OptLevel::O2)).heap_limit(None), &text);
}
