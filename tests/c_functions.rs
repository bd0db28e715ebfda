//! Functions of programs that C calls: `qsort` with comparisons that compute, allocate, throw, sort in turn.
#![cfg(unix)]

use brolga::{Engine, Error, Evaluator, OptLevel, Options, Program, Roots, Session, Verdict, Workers};

const PROGRAM: &str = "\
mutable struct Entry
    key::Int64
end

function order(a::Int64, b::Int64)::Int32
1 ─ %1 = Base.slt_int(b, a)::Bool
│   %2 = Base.slt_int(a, b)::Bool
│   %3 = Base.zext_int(Int32, %1)::Int32
│   %4 = Base.zext_int(Int32, %2)::Int32
│   %5 = Base.sub_int(%3, %4)::Int32
└──      return %5
end

function plain(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = Base.pointerref(b, 1, 1)::Int64
│   %3 = invoke Main.order(%1::Int64, %2::Int64)::Int32
└──      return %3
end

function allocating(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = %new(Main.Entry, %1)::Main.Entry
│   %3 = Base.pointerref(b, 1, 1)::Int64
│   %4 = %new(Main.Entry, %3)::Main.Entry
│   %5 = dynamic Main.by_key(%2, %4)::Any
│   %6 = Core.typeassert(%5, Int32)::Int32
└──      return %6
end
function by_key(a::Main.Entry, b::Main.Entry)::Any
1 ─ %1 = Base.getfield(a, :key)::Int64
│   %2 = Base.getfield(b, :key)::Int64
│   %3 = invoke Main.order(%1::Int64, %2::Int64)::Int32
└──      return %3
end

function throwing(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = Base.slt_int(%1, 0)::Bool
└──      goto #3 if not %2
2 ─      invoke Main.error(\"negative\"::String)::Union{}
└──      unreachable
3 ─ %5 = Base.pointerref(b, 1, 1)::Int64
│   %6 = invoke Main.order(%1::Int64, %5::Int64)::Int32
└──      return %6
end

function nested(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = Base.pointerref(b, 1, 1)::Int64
│   %3 = invoke Main.smallest(%1::Int64, %2::Int64)::Int64
│   %4 = (%3 === %2)::Bool
│   %5 = Base.zext_int(Int32, %4)::Int32
└──      return %5
end
function smallest(a::Int64, b::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 2))::Vector{Int64}
│   %2 = Base.arrayset(true, %1, a, 1)::Vector{Int64}
│   %3 = Base.arrayset(true, %1, b, 2)::Vector{Int64}
│   %4 = $(Expr(:cfunction, Ptr{Nothing}, :(:throwing), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %5 = invoke Main.sort_with(%1::Vector{Int64}, %4::Ptr{Nothing})::Vector{Int64}
│   %6 = Base.arrayref(true, %5, 1)::Int64
└──      return %6
end

function sort_with(x::Vector{Int64}, by::Ptr{Nothing})::Vector{Int64}
1 ─ %1 = $(Expr(:foreigncall, :(:jl_array_ptr), Ptr{Nothing}, svec(Any), 0, :(:ccall), :(x)))::Ptr{Nothing}
│   %2 = Base.arraylen(x)::Int64
│   %3 = Base.bitcast(UInt64, %2)::UInt64
│        $(Expr(:foreigncall, :(:qsort), Nothing, svec(Ptr{Nothing}, UInt64, UInt64, Ptr{Nothing}), 0, :(:ccall), :(%1), :(%3), 0x0000000000000008, :(by), :(x)))::Nothing
└──      return x
end
function sort_plain(x::Vector{Int64})::Vector{Int64}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:plain), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.sort_with(x::Vector{Int64}, %1::Ptr{Nothing})::Vector{Int64}
└──      return %2
end
function sort_allocating(x::Vector{Int64})::Vector{Int64}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:allocating), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.sort_with(x::Vector{Int64}, %1::Ptr{Nothing})::Vector{Int64}
└──      return %2
end
function sort_throwing(x::Vector{Int64})::Vector{Int64}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(Main.throwing), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.sort_with(x::Vector{Int64}, %1::Ptr{Nothing})::Vector{Int64}
└──      return %2
end
function sort_nested(x::Vector{Int64})::Vector{Int64}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:nested), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.sort_with(x::Vector{Int64}, %1::Ptr{Nothing})::Vector{Int64}
└──      return %2
end
function sort_caught(x::Vector{Int64})::Any
1 ─ %1 = enter #3
2 ─ %2 = invoke Main.sort_throwing(x::Vector{Int64})::Vector{Int64}
│        $(Expr(:leave, :(%1)))
└──      return %2
3 ─ %5 = $(Expr(:the_exception))::Any
│   %6 = Base.getfield(%5, :msg)::Any
│        $(Expr(:pop_exception, :(%1)))::Nothing
└──      return %6
end

function many(a::Int8, b::Float32, c::UInt16, d::Float64, e::Int64, f::Int64, g::Int32, h::UInt8, i::Int64, j::Float64)::Float64
1 ─ %1 = Base.sitofp(Float64, a)::Float64
│   %2 = Base.fpext(Float64, b)::Float64
│   %3 = Base.uitofp(Float64, c)::Float64
│   %4 = Base.add_int(e, f)::Int64
│   %5 = Base.sitofp(Float64, %4)::Float64
│   %6 = Base.sitofp(Float64, g)::Float64
│   %7 = Base.uitofp(Float64, h)::Float64
│   %8 = Base.sitofp(Float64, i)::Float64
│   %9 = Base.add_float(%1, %2)::Float64
│   %10 = Base.mul_float(%9, %3)::Float64
│   %11 = Base.add_float(%10, d)::Float64
│   %12 = Base.sub_float(%11, %5)::Float64
│   %13 = Base.mul_float(%12, %6)::Float64
│   %14 = Base.add_float(%13, %7)::Float64
│   %15 = Base.sub_float(%14, %8)::Float64
│   %16 = Base.div_float(%15, j)::Float64
└──      return %16
end
function through_c(x::Int64)::Float64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:many), Float64, svec(Int8, Float32, UInt16, Float64, Int64, Int64, Int32, UInt8, Int64, Float64), :(:ccall)))::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(%1), Float64, svec(Int8, Float32, UInt16, Float64, Int64, Int64, Int32, UInt8, Int64, Float64), 0, :(:ccall), Int8(-3), 1.5f0, 0xffff, 0.25, :(x), 7, Int32(-2), 0xfe, -9, 8.0))::Float64
└──      return %2
end
function direct(x::Int64)::Float64
1 ─ %1 = invoke Main.many(Int8(-3)::Int8, 1.5f0::Float32, 0xffff::UInt16, 0.25::Float64, x::Int64, 7::Int64, Int32(-2)::Int32, 0xfe::UInt8, -9::Int64, 8.0::Float64)::Float64
└──      return %1
end
# check: sort_plain([3, 1, 2]) == [1, 2, 3]
# check: sort_plain(Int64[]) == Int64[]
# check: sort_plain([5, -4, 9, 0, 7, -4, 3, 12, 1]) == [-4, -4, 0, 1, 3, 5, 7, 9, 12]
# check: sort_allocating([5000, -4000, 9000, 0, 7000, -4000, 3000]) == [-4000, -4000, 0, 3000, 5000, 7000, 9000]
# check: sort_throwing([3, 1, 2]) == [1, 2, 3]
# throws: sort_throwing([3, -1, 2, -7, 8]) ErrorException
# check: sort_caught([2, 1]) == [1, 2]
# check: sort_caught([3, -1, 2, -7, 8]) == \"negative\"
# check: sort_nested([3, 1, 2, 9, 4]) == [1, 2, 3, 4, 9]
# throws: sort_nested([3, 1, -2, 9, 4]) ErrorException
# check: sort_caught([-1, 3]) == \"negative\"
# check: sort_plain([2, 1]) == [1, 2]
";

fn program() -> Program {
    Program::read("t", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn c_sorts_with_functions_of_the_program() {
    let program = program();
    for level in [OptLevel::O0, OptLevel::O2, OptLevel::O3] {
        for (roots, stress) in [(Roots::Maps, false), (Roots::Maps, true), (Roots::Linked, true)] {
            let options = Options::new().opt_level(level).roots(roots).gc_stress(stress);
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
fn registers_and_the_stack_carry_arguments() {
    let program = program();
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(Options::new().opt_level(level)).expect("an engine");
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let through = unit.func::<(i64,), f64>("through_c").unwrap();
        let direct = unit.func::<(i64,), f64>("direct").unwrap();
        assert_eq!(through.call((41,)), direct.call((41,)));
        assert!(through.call((41,)).is_ok_and(|value| value != 0.0));
    }
}

/// Compiled at once, when they are called first, and twice: what C calls goes through the slot of the function then.
#[test]
fn sessions_give_functions_to_c() {
    for kind in 0..3 {
        let session = Session::new(Options::new(), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        let program = main.read("t.jlir", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let program = match kind {
            0 => program,
            1 => program.lazy(),
            _ => program.replaceable().tiered(3),
        };
        main.define(program).unwrap_or_else(|error| panic!("{error}"));
        let through = main.func::<(i64,), f64>("through_c").unwrap_or_else(|error| panic!("{error}"));
        let direct = main.func::<(i64,), f64>("direct").unwrap_or_else(|error| panic!("{error}"));
        for n in 0..10 {
            assert_eq!(through.call((n,)), direct.call((n,)), "kind {kind}");
            session.optimize_hot();
        }
    }
}

#[test]
fn what_is_no_function_of_c_is_refused_by_name() {
    let refused = |text: &str| match Program::read("t", text.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(program) => {
            let engine = Engine::new(Options::new()).expect("an engine");
            engine.compile(&program).map(|_| ()).map_err(|error: Error| error.to_string()).unwrap_err()
        }
    };
    let closure = "\
function f(g::Any)::Ptr{Nothing}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(g), Nothing, svec(), :(:ccall)))::Ptr{Nothing}
└──      return %1
end
";
    assert!(refused(closure).contains("known at run time only"), "{}", refused(closure));
    let object = "\
function g(x::String)::Nothing
1 ─      return nothing
end
function f()::Ptr{Nothing}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:g), Nothing, svec(String), :(:ccall)))::Ptr{Nothing}
└──      return %1
end
";
    assert!(refused(object).contains("passing a `String` by value"), "{}", refused(object));
}
