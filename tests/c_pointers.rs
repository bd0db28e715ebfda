//! Pointers of functions that compiled code calls: natively if they are C entries of the same program, otherwise through C.
#![cfg(unix)]

use brolga::options::Roots;
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Session, Verdict, Workers};

const PROGRAM: &str = "\
mutable struct Cell
    held::Int64
end
mutable struct Failure
    code::Int64
end

function twice(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, x)::Int64
└──      return %1
end
function boxes(x::Int64)::Int64
1 ─ %1 = %new(Main.Cell, x)::Main.Cell
│   %2 = %new(Main.Cell, 1)::Main.Cell
│   %3 = dynamic Main.both(%1, %2)::Any
│   %4 = Core.typeassert(%3, Int64)::Int64
└──      return %4
end
function both(a::Main.Cell, b::Main.Cell)::Any
1 ─ %1 = Base.getfield(a, :held)::Int64
│   %2 = Base.getfield(b, :held)::Int64
│   %3 = Base.add_int(%1, %2)::Int64
└──      return %3
end
function fails(x::Int64)::Int64
1 ─ %1 = Base.slt_int(x, 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = %new(Main.Failure, x)::Main.Failure
│        Base.throw(%3)::Union{}
└──      unreachable
3 ─      return x
end
function table(n::Int64)::Ptr{Nothing}
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = $(Expr(:cfunction, Ptr{Nothing}, :(:twice), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      return %3
3 ─ %5 = (n === 1)::Bool
└──      goto #5 if not %5
4 ─ %7 = $(Expr(:cfunction, Ptr{Nothing}, :(:boxes), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      return %7
5 ─ %9 = $(Expr(:cfunction, Ptr{Nothing}, :(:fails), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      return %9
end
function apply(f::Ptr{Nothing}, x::Int64)::Int64 noinline
1 ─ %1 = $(Expr(:foreigncall, :(f), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
└──      return %1
end

function kept(which::Int64, n::Int64)::Int64
1 ─ %1 = invoke Main.table(which::Int64)::Ptr{Nothing}
│   %2 = %new(Main.Cell, 0)::Main.Cell
└──      goto #2
2 ┄ %4 = φ (#1 => 0, #3 => %11)::Int64
│   %5 = Base.slt_int(%4, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(%4)))::Int64
│   %8 = Base.getfield(%2, :held)::Int64
│   %9 = Base.add_int(%8, %7)::Int64
│        Base.setfield!(%2, :held, %9)::Int64
│   %11 = Base.add_int(%4, 1)::Int64
└──      goto #2
4 ─ %13 = invoke Main.read(%2::Main.Cell)::Int64
└──      return %13
end
function read(c::Main.Cell)::Int64 noinline
1 ─ %1 = Base.getfield(c, :held)::Int64
└──      return %1
end

function caught(x::Int64)::Int64
1 ─ %1 = invoke Main.table(2::Int64)::Ptr{Nothing}
│   %2 = %new(Main.Cell, x)::Main.Cell
│   %3 = enter #4
2 ─ %4 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
│        $(Expr(:leave, :(%3)))
3 ─      return %4
4 ─ %7 = $(Expr(:the_exception))::Any
│   %8 = Core.typeassert(%7, Main.Failure)::Main.Failure
│   %9 = Base.getfield(%8, :code)::Int64
│   %10 = invoke Main.read(%2::Main.Cell)::Int64
│   %11 = Base.mul_int(%10, 1000)::Int64
│   %12 = Base.add_int(%9, %11)::Int64
│        $(Expr(:pop_exception, :(%3)))::Nothing
└──      return %12
end

function countdown(f::Ptr{Nothing}, n::Int64)::Int64
1 ─ %1 = Base.slt_int(0, n)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sub_int(n, 1)::Int64
│   %4 = $(Expr(:foreigncall, :(f), Int64, svec(Ptr{Nothing}, Int64), 0, :(:ccall), :(f), :(%3)))::Int64
│   %5 = Base.add_int(%4, 1)::Int64
└──      return %5
3 ─      return 0
end
function deep(n::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:countdown), Int64, svec(Ptr{Nothing}, Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.countdown(%1::Ptr{Nothing}, n::Int64)::Int64
└──      return %2
end
function endless(f::Ptr{Nothing}, n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = $(Expr(:foreigncall, :(f), Int64, svec(Ptr{Nothing}, Int64), 0, :(:ccall), :(f), :(%1)))::Int64
│   %3 = Base.add_int(%2, 1)::Int64
└──      return %3
end
function overflows()::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:endless), Int64, svec(Ptr{Nothing}, Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.endless(%1::Ptr{Nothing}, 0::Int64)::Int64
└──      return %2
end

function narrow(a::Int8, b::Bool, c::UInt16)::Bool
1 ─ %1 = Base.sext_int(Int64, a)::Int64
│   %2 = Base.zext_int(Int64, c)::Int64
│   %3 = Base.add_int(%1, %2)::Int64
│   %4 = Base.slt_int(%3, 0)::Bool
│   %5 = Base.xor_int(%4, b)::Bool
└──      return %5
end
function narrows(x::Int64)::Bool
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:narrow), Bool, svec(Int8, Bool, UInt16), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.trunc_int(Int8, x)::Int8
│   %3 = Base.slt_int(100, x)::Bool
│   %4 = $(Expr(:foreigncall, :(%1), Bool, svec(Int8, Bool, UInt16), 0, :(:ccall), :(%2), :(%3), 0x0003))::Bool
└──      return %4
end
function floats(a::Float32, b::Int64, c::Float64)::Float64
1 ─ %1 = Base.fpext(Float64, a)::Float64
│   %2 = Base.sitofp(Float64, b)::Float64
│   %3 = Base.muladd_float(%1, %2, c)::Float64
└──      return %3
end
function mixed(x::Int64)::Float64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:floats), Float64, svec(Float32, Int64, Float64), :(:ccall)))::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(%1), Float64, svec(Float32, Int64, Float64), 0, :(:ccall), 1.5f0, :(x), 0.25))::Float64
└──      return %2
end
function more_than_it_takes(x::Int64)::Int64
1 ─ %1 = invoke Main.table(0::Int64)::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64, Float64, Int64), 0, :(:ccall), :(x), 2.0, 9))::Int64
└──      return %2
end
function no_result(x::Int64)::Int64
1 ─ %1 = invoke Main.table(0::Int64)::Ptr{Nothing}
│        $(Expr(:foreigncall, :(%1), Nothing, svec(Int64), 0, :(:ccall), :(x)))::Nothing
└──      return x
end
function address(n::Int64)::UInt64
1 ─ %1 = invoke Main.table(n::Int64)::Ptr{Nothing}
│   %2 = Base.bitcast(UInt64, %1)::UInt64
└──      return %2
end
function of_c(x::Int64, f::UInt64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Nothing}, f)::Ptr{Nothing}
│   %2 = invoke Main.apply(%1::Ptr{Nothing}, x::Int64)::Int64
└──      return %2
end

function reads(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = Base.pointerref(b, 1, 1)::Int64
│   %3 = invoke Main.table(2::Int64)::Ptr{Nothing}
│   %4 = invoke Main.apply(%3::Ptr{Nothing}, %1::Int64)::Int64
│   %5 = Base.slt_int(%2, %4)::Bool
│   %6 = Base.zext_int(Int32, %5)::Int32
└──      return %6
end
function sorts(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 2))::Vector{Int64}
│   %2 = Base.arrayset(true, %1, 9, 1)::Vector{Int64}
│   %3 = Base.arrayset(true, %1, n, 2)::Vector{Int64}
│   %4 = $(Expr(:cfunction, Ptr{Nothing}, :(:reads), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %5 = $(Expr(:foreigncall, :(:jl_array_ptr), Ptr{Nothing}, svec(Any), 0, :(:ccall), :(%1)))::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:qsort), Nothing, svec(Ptr{Nothing}, UInt64, UInt64, Ptr{Nothing}), 0, :(:ccall), :(%5), 0x0000000000000002, 0x0000000000000008, :(%4), :(%1)))::Nothing
│   %7 = Base.arrayref(true, %1, 1)::Int64
└──      return %7
end
function sorting(n::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:sorts), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = enter #4
2 ─ %3 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64
│        $(Expr(:leave, :(%2)))
3 ─      return %3
4 ─ %6 = $(Expr(:the_exception))::Any
│   %7 = Core.typeassert(%6, Main.Failure)::Main.Failure
│   %8 = Base.getfield(%7, :code)::Int64
│        $(Expr(:pop_exception, :(%2)))::Nothing
└──      return %8
end
# check: kept(0, 10) == 90
# check: kept(1, 10) == 55
# check: kept(2, 10) == 45
# check: caught(5) == 5
# check: caught(-2) == -2002
# check: narrows(1) == false
# check: narrows(-100) == true
# check: narrows(127) == true
# check: narrows(128) == false
# check: mixed(3) == 4.75
# check: more_than_it_takes(21) == 42
# check: no_result(7) == 7
# check: sorting(4) == 4
# check: sorting(-3) == -3
# check: caught(-7) == -7007
";

fn program() -> Program {
    Program::read("t", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn pointers_lead_to_functions_that_allocate_throw_and_call_c() {
    let program = program();
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        for (roots, stress) in [(Roots::Maps, false), (Roots::Maps, true), (Roots::Linked, true)] {
            let options = crate::doors::open(Options::new()).opt_level(level).roots(roots).gc_stress(stress);
            let engine = Engine::new(options).expect("an engine");
            let mut evaluator = Evaluator::native(&program, &engine);
            for check in program.checks() {
                let verdict = evaluator.check(check);
                let text = program.source().slice(check.span).trim();
                assert_eq!(verdict, Verdict::Passed, "{text} at {level:?}, {roots:?}, stress {stress}");
            }
        }
    }
}

#[test]
fn pointers_of_the_interpreted_program_lead_to_its_functions() {
    let program = program();
    let mut evaluator = Evaluator::interpreted(&program);
    for check in program.checks() {
        let text = program.source().slice(check.span).trim();
        assert_eq!(evaluator.check(check), Verdict::Passed, "{text}");
    }
    let call = |text: &str| program.call(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(evaluator.call(&call("deep(1000)")).expect("a value"), "1000");
    let failure = evaluator.call(&call("overflows()")).expect_err("an exception");
    assert!(failure.to_string().contains("StackOverflowError"), "{failure}");
}

extern "C" fn plus_one(x: i64) -> i64 {
    x + 1
}

extern "C" fn of_nothing(_: i64) -> i64 {
    11
}

#[test]
fn functions_of_c_are_called_as_before() {
    let engine = Engine::new(crate::doors::open(Options::new())).expect("an engine");
    let unit = engine.compile(&program()).unwrap_or_else(|error| panic!("{error}"));
    let of_c = unit.func::<(i64, u64), i64>("of_c").unwrap();
    for (function, result) in [(plus_one as extern "C" fn(i64) -> i64, 42), (of_nothing, 11)] {
        let address = (function as *const ()).expose_provenance() as u64;
        assert_eq!(of_c.call((41, address)), Ok(result));
    }
}

/// A call through C takes some 600 bytes of stack, a native one less than 100.
#[test]
fn a_call_through_a_pointer_takes_the_stack_of_a_native_one() {
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).expect("an engine");
        let unit = engine.compile(&program()).unwrap_or_else(|error| panic!("{error}"));
        let calls = move || {
            let deep = unit.func::<(i64,), i64>("deep").unwrap();
            let overflows = unit.func::<(), i64>("overflows").unwrap();
            assert_eq!(deep.call((10_000,)), Ok(10_000), "{level:?}");
            let error = overflows.call(()).unwrap_err().to_string();
            assert!(error.contains("StackOverflowError"), "{error}");
            assert_eq!(deep.call((10_000,)), Ok(10_000), "{level:?}");
        };
        std::thread::Builder::new().stack_size(3 << 20).spawn(calls).unwrap().join().expect("no panic");
    }
}

#[test]
fn a_session_calls_through_pointers_in_every_kind_of_code() {
    for kind in 0..4 {
        let session = Session::new(crate::doors::open(Options::new()).gc_stress(true), Workers::Caller)
            .expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        main.add_process_symbols(|name| name == "qsort").expect("it is open");
        let program = main.read("t.jlir", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let program = match kind {
            0 => program,
            1 => program.lazy(),
            2 => program.tiered(2).iterations(3),
            _ => program.replaceable(),
        };
        main.define(program).unwrap_or_else(|error| panic!("{error}"));
        let kept = main.func::<(i64, i64), i64>("kept").unwrap();
        let caught = main.func::<(i64,), i64>("caught").unwrap();
        let sorting = main.func::<(i64,), i64>("sorting").unwrap();
        for _ in 0..4 {
            assert_eq!((kept.call((0, 10)), kept.call((1, 10))), (Ok(90), Ok(55)), "{kind}");
            assert_eq!((caught.call((5,)), caught.call((-2,))), (Ok(5), Ok(-2002)), "{kind}");
            assert_eq!((sorting.call((4,)), sorting.call((-3,))), (Ok(4), Ok(-3)), "{kind}");
        }
    }
}

#[test]
fn a_session_calls_natively_through_pointers() {
    for kind in 0..3 {
        let calls = move || {
            let session =
                Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
            let main = session.create_dylib("main").expect("a dylib");
            let program = main.read("t.jlir", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            let program = match kind {
                0 => program,
                1 => program.lazy(),
                _ => program.replaceable(),
            };
            main.define(program).unwrap_or_else(|error| panic!("{error}"));
            let deep = main.func::<(i64,), i64>("deep").unwrap();
            assert_eq!(deep.call((10_000,)), Ok(10_000), "{kind}");
        };
        std::thread::Builder::new().stack_size(3 << 20).spawn(calls).unwrap().join().expect("no panic");
    }
}

/// A pointer of another runtime leads to that runtime, on a thread that is attached to both.
#[test]
fn a_pointer_of_another_engine_goes_through_c() {
    let engines = [(); 2].map(|()| Engine::new(crate::doors::open(Options::new())).expect("an engine"));
    let units = engines.each_ref().map(|e| e.compile(&program()).unwrap_or_else(|error| panic!("{error}")));
    let [own, other] =
        units.each_ref().map(|unit| unit.func::<(i64,), u64>("address").unwrap().call((1,)).unwrap());
    let of_c = units[0].func::<(i64, u64), i64>("of_c").unwrap();
    assert_eq!(of_c.call((6, own)), Ok(7));
    assert_eq!(of_c.call((6, other)), Ok(7));
}

#[path = "support/doors.rs"]
mod doors;
