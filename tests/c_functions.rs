//! Functions of programs that C calls: `qsort` with comparisons that compute, allocate, throw, sort in turn.
#![cfg(unix)]

use std::sync::atomic::{AtomicU32, Ordering};

use brolga::ir::Type;
use brolga::options::Roots;
use brolga::{
    CallError, Engine, Error, Evaluator, OptLevel, Options, Program, Session, Unit, Verdict, Workers,
};

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
fn c_sorts_with_functions_of_the_interpreted_program() {
    let program = program();
    let mut evaluator = Evaluator::interpreted(&program);
    for check in program.checks() {
        let text = program.source().slice(check.span).trim();
        assert_eq!(evaluator.check(check), Verdict::Passed, "{text}");
    }
    let call = |text: &str| program.call(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(evaluator.call(&call("through_c(41)")).ok(), evaluator.call(&call("direct(41)")).ok());
}

#[test]
fn registers_and_the_stack_carry_arguments() {
    let program = program();
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).expect("an engine");
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
        let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
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

/// Gives functions to C, of which one asks for a method as it runs and one throws.
const GIVES: &str = "\
function twice(x::Int64)::Int64
1 ─ %1 = Base.mul_int(x, 2)::Int64
└──      return %1
end
function twice(x::Float64)::Int64
1 ─      return 0
end
function choose(x::Int64)::Any
1 ─      return x
end
function asking(x::Int64)::Int64
1 ─ %1 = invoke Main.choose(x::Int64)::Any
│   %2 = dynamic Main.twice(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function throwing(x::Int64)::Int64
1 ─ %1 = Base.slt_int(x, 0)::Bool
└──      goto #5 if not %1
2 ─ %3 = Base.slt_int(x, -1)::Bool
└──      goto #4 if not %3
3 ─      invoke Main.error(\"two\"::String)::Union{}
└──      unreachable
4 ─      invoke Main.error(\"one\"::String)::Union{}
└──      unreachable
5 ─      return x
end
function address_of_asking()::UInt64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:asking), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(UInt64, %1)::UInt64
└──      return %2
end
function address_of_throwing()::UInt64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:throwing), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(UInt64, %1)::UInt64
└──      return %2
end
";

/// Calls such functions, and gives none: no code looks behind a `foreigncall`.
const TAKES: &str = "\
function through(f::UInt64, x::Int64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Nothing}, f)::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
└──      return %2
end
function step(f::UInt64, x::Int64)::Int64
1 ─ %1 = invoke Main.through(f::UInt64, x::Int64)::Int64
└──      return %1
end
function step(f::UInt64, x::Float64)::Int64
1 ─      return 0
end
function any(x::Int64)::Any
1 ─      return x
end
function within(f::UInt64, x::Int64)::Int64
1 ─ %1 = invoke Main.any(x::Int64)::Any
│   %2 = dynamic Main.step(f, %1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function first_of_two(f::UInt64)::Int64
1 ─ %1 = invoke Main.through(f::UInt64, -1::Int64)::Int64
│   %2 = enter #4
2 ─ %3 = invoke Main.within(f::UInt64, -2::Int64)::Int64
│        $(Expr(:leave, :(%2)))
3 ─      return 7
4 ─      $(Expr(:pop_exception, :(%2)))::Nothing
└──      return 8
end
";

/// Both programs, each a unit with its own methods.
fn two_units() -> (Engine, Unit, Program, Unit) {
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0)).expect("an engine");
    let [(_, gives), (program, takes)] = [GIVES, TAKES].map(|text| {
        let program = Program::read("t", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        (program, unit)
    });
    (engine, gives, program, takes)
}

fn address(gives: &Unit, name: &str) -> u64 {
    gives.func::<(), u64>(name).unwrap().call(()).unwrap()
}

#[test]
fn a_function_called_by_c_finds_the_methods_of_its_own_unit() {
    let (_engine, gives, _, takes) = two_units();
    let asking = address(&gives, "address_of_asking");
    // Under code of another unit that is in no world, and under such that is in one.
    for name in ["through", "within"] {
        assert_eq!(takes.func::<(u64, i64), i64>(name).unwrap().call((asking, 21)), Ok(42), "{name}");
    }
    // On a thread that runs no compiled code.
    let address = std::ptr::with_exposed_provenance::<()>(asking as usize);
    // SAFETY: what `cfunction` gives is a function of C with this signature, whose unit is held.
    let asking: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(address) };
    assert_eq!(asking(21), 42);
}

#[test]
fn an_unclaimed_exception_leaves_with_the_code_that_called_c() {
    let (engine, gives, program, takes) = two_units();
    let throwing = address(&gives, "address_of_throwing");
    let text = |error: CallError| error.to_string();
    for name in ["through", "within"] {
        let call = |x: i64| takes.func::<(u64, i64), i64>(name).unwrap().call((throwing, x)).map_err(text);
        assert_eq!((call(3), call(-1), call(4)), (Ok(3), Err("one".into()), Ok(4)), "{name}");
    }
    // As an object that is called.
    let (runtime, module, cx) = (engine.runtime(), program.module(), &program.module().cx);
    let (_, step) = module.funcs().find(|(_, func)| cx.names.text(func.name) == "step").unwrap();
    let step = runtime.heap().type_object(cx, step.sig.params[0].ty).unwrap();
    let word = runtime.heap().describe(cx, Type::UINT64).unwrap();
    let methods = takes.untyped("through").unwrap();
    let call = |x: i64| {
        runtime
            .enter(|scope| {
                let callee = scope.instance(&step).unwrap();
                let args = [scope.boxed(&word, throwing).unwrap(), scope.int(x).unwrap()];
                let result = runtime.call_in(methods.methods(), scope, callee, &args);
                result.map(|x| x.get(scope).unboxed::<i64>().unwrap()).map_err(|error| error.to_string())
            })
            .unwrap()
    };
    assert_eq!((call(3), call(-1), call(4)), (Ok(3), Err("one".into()), Ok(4)));
    // One that waits further out stays while another one comes and goes.
    let first = takes.func::<(u64,), i64>("first_of_two").unwrap();
    assert_eq!(first.call((throwing,)).map_err(text), Err("one".into()));
}

/// Calls two functions of C, and has no objects of its own: it runs outside of the heap.
const OUTSIDE: &str = "\
function both(f::UInt64, g::UInt64, x::Int64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Nothing}, f)::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
│   %3 = Base.bitcast(Ptr{Nothing}, g)::Ptr{Nothing}
│   %4 = $(Expr(:foreigncall, :(%3), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
│   %5 = Base.add_int(%2, %4)::Int64
└──      return %5
end
";

/// Gives C a function that throws an object of its own.
const RAISES: &str = "\
mutable struct Gone
    number::Int64
end
function raising(x::Int64)::Int64
1 ─ %1 = %new(Main.Gone, x)::Gone
│        Core.throw(%1)::Union{}
└──      unreachable
end
function address_of_raising()::UInt64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:raising), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(UInt64, %1)::UInt64
└──      return %2
end
";

/// 0 before a thread has come to `until_collected`, 1 while it is there, 2 when it may continue.
static STAGE: AtomicU32 = AtomicU32::new(0);

extern "C" fn until_collected(_: i64) -> i64 {
    STAGE.store(1, Ordering::SeqCst);
    while STAGE.load(Ordering::SeqCst) != 2 {
        std::thread::yield_now();
    }
    0
}

#[test]
fn an_exception_that_waits_outside_of_the_heap_is_kept() {
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0).gc_stress(true))
        .expect("an engine");
    let [gives, takes] = [RAISES, OUTSIDE].map(|text| {
        let program = Program::read("t", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        engine.compile(&program).unwrap_or_else(|error| panic!("{error}"))
    });
    let raising = address(&gives, "address_of_raising");
    let both = takes.func::<(u64, u64, i64), i64>("both").unwrap();
    let waits = (until_collected as extern "C" fn(i64) -> i64 as *const ()).expose_provenance() as u64;
    // A thread that has never been in the heap.
    let thrown = std::thread::scope(|threads| {
        let caller = threads.spawn(|| both.call((raising, waits, -1)).map_err(|error| error.to_string()));
        while STAGE.load(Ordering::SeqCst) != 1 {
            std::thread::yield_now();
        }
        engine.runtime().enter(|scope| scope.collect()).expect("a collection");
        STAGE.store(2, Ordering::SeqCst);
        caller.join().expect("no panic")
    });
    assert_eq!(thrown, Err("Gone(-1)".into()));
}

#[test]
fn functions_that_c_cannot_call_are_refused_by_name() {
    let refused = |text: &str| match Program::read("t", text.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(program) => {
            let engine = Engine::new(crate::doors::open(Options::new())).expect("an engine");
            engine.compile(&program).map(|_| ()).map_err(|error: Error| error.to_string()).unwrap_err()
        }
    };
    let closure = "\
function f(g::Any)::Ptr{Nothing}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(g), Nothing, svec(), :(:ccall)))::Ptr{Nothing}
└──      return %1
end
";
    // The call of what is known at run time only throws when it is reached.
    let program = Program::read("t", closure.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(crate::doors::open(Options::new())).expect("an engine");
    let call = program.call("f(1)").expect("a call");
    let thrown = Evaluator::native(&program, &engine).call(&call).unwrap_err().to_string();
    assert!(thrown.contains("CompileError") && thrown.contains("known at run time only"), "{thrown}");
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

/// Catches what `through` throws, in its own function.
const CATCHES: &str = "\
function caught(x::Int64)::Int64
1 ─ %1 = invoke Main.address_of_throwing()::UInt64
│   %2 = enter #4
2 ─ %3 = invoke Main.through(%1::UInt64, x::Int64)::Int64
│        $(Expr(:leave, :(%2)))
3 ─      return 7
4 ─      $(Expr(:pop_exception, :(%2)))::Nothing
└──      return 8
end
";

/// Functions compiled apart from the one that gives C the callback check for an exception after the call, too.
#[test]
fn exceptions_of_callbacks_surface_after_the_c_call_in_every_kind_of_code() {
    let source = [GIVES, TAKES, CATCHES].concat();
    for kind in 0..4 {
        let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        let program = main.read("t.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let program = match kind {
            0 => program,
            1 => program.lazy(),
            2 => program.replaceable(),
            _ => program.replaceable().tiered(3),
        };
        main.define(program).unwrap_or_else(|error| panic!("{error}"));
        let caught = main.func::<(i64,), i64>("caught").unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..5 {
            assert_eq!([3, -1, -2].map(|x| caught.call((x,))), [Ok(7), Ok(8), Ok(8)], "kind {kind}");
            session.optimize_hot();
        }
    }
}

/// `keeper` gives C a function; `part` is inlined into it, and redefined.
const KEEPER: &str = "\
function called(x::Int64)::Int64
1 ─ %1 = invoke Main.part(x::Int64)::Int64
│   %2 = Base.add_int(%1, 1)::Int64
└──      return %2
end
function part(x::Int64)::Int64
1 ─ %1 = Base.mul_int(x, 2)::Int64
└──      return %1
end
function keeper(x::Int64)::UInt64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:called), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = invoke Main.part(x::Int64)::Int64
│   %3 = Base.bitcast(UInt64, %1)::UInt64
└──      return %3
end
function own(x::Int64)::UInt64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:called), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %3 = Base.bitcast(UInt64, %1)::UInt64
└──      return %3
end
";

/// A C entry belongs to the function: every request gets the same one, and it outlives the requesting code.
#[test]
fn a_pointer_that_c_has_is_that_of_the_function_and_outlives_who_took_it() {
    for kind in 0..4 {
        let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        let of_kind = |text: &str| {
            let program = main.read("t.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            match kind {
                0 => program,
                1 => program.lazy(),
                2 => program.replaceable(),
                _ => program.tiered(2),
            }
        };
        main.define(of_kind(KEEPER)).unwrap_or_else(|error| panic!("{error}"));
        let [keeper, own] = ["keeper", "own"].map(|name| main.func::<(i64,), u64>(name).expect("a function"));
        let address = keeper.call((1,)).expect("no exception");
        assert_eq!(own.call((1,)), Ok(address), "kind {kind}: one address");
        let called = main.function("called").expect("a function");
        assert_eq!(
            called.c_address().expect("an address").expose_provenance() as u64,
            address,
            "kind {kind}"
        );
        // SAFETY: the address is that of a function of C with this signature, which the session defines.
        let in_c: extern "C" fn(i64) -> i64 =
            unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(address as usize)) };
        assert_eq!(in_c(20), 41, "kind {kind}");
        drop((keeper, own));
        for n in 3..30 {
            let part = format!(
                "function part(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, {n})::Int64\n└──      return %1\nend\n"
            );
            main.redefine(of_kind(&part)).unwrap_or_else(|error| panic!("{error}"));
            let again = main.func::<(i64,), u64>("keeper").expect("a function").call((1,));
            assert_eq!(again, Ok(address), "kind {kind}");
            session.optimize_hot();
            assert_eq!(in_c(20), 20 * n + 1, "kind {kind}");
        }
        main.remove(&["keeper"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(main.func::<(i64,), i64>("called").expect("a function").call((20,)).is_ok(), in_c(20) > 0);
        let refused = main.function("part").expect("a function");
        assert!(refused.c_address().is_ok());
    }
}

/// Makes objects and calls a method by dispatch.
const BUSY: &str = "\
mutable struct Box
    x::Int64
end
function add(a::Box, b::Box)::Int64
1 ─ %1 = Core.getfield(a, :x)::Int64
│   %2 = Core.getfield(b, :x)::Int64
│   %3 = Base.add_int(%1, %2)::Int64
└──      return %3
end
function any(x::Int64)::Any
1 ─ %1 = %new(Main.Box, x)::Main.Box
└──      return %1
end
function busy(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %8)::Int64
│   %3 = φ (#1 => 0, #3 => %9)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %5 = invoke Main.any(%2::Int64)::Any
│   %6 = invoke Main.any(1::Int64)::Any
│   %7 = dynamic Main.add(%5, %6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
│   %9 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end
";

/// Threads that know nothing of the runtime call an entry: each is attached by its first call and detached when it ends.
#[test]
fn threads_that_others_have_made_call_entries() {
    for kind in 0..3 {
        let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        let program = main.read("t.jlir", BUSY.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let program = match kind {
            0 => program,
            1 => program.lazy(),
            _ => program.tiered(3),
        };
        main.define(program).unwrap_or_else(|error| panic!("{error}"));
        let busy = main.function("busy").expect("a function");
        let address = busy.c_address().expect("an address").expose_provenance();
        for _ in 0..20 {
            let call = move |n: i64| {
                // SAFETY: the address is that of a function of C with this signature, which the session defines until all threads have ended.
                let in_c: extern "C" fn(i64) -> i64 =
                    unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(address)) };
                (0..20).map(|_| in_c(n)).sum::<i64>()
            };
            let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || call(100 * n))).collect();
            let sums: Vec<i64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(sums, [0, 2000, 4000, 6000], "kind {kind}");
            session.optimize_hot();
        }
        // The threads that have ended hold no collection up.
        session.runtime().enter(|scope| scope.collect()).expect("a scope");
        assert_eq!(busy.typed::<(i64,), i64>().expect("its types").call((5,)), Ok(5), "kind {kind}");
    }
}

/// On a stack that the embedder has made, a call by C throws into the code that has called C.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_call_on_another_stack_throws() {
    use std::cell::Cell;
    use std::mem::MaybeUninit;
    thread_local! {
        static CALL: Cell<(u64, i64)> = const { Cell::new((0, 0)) };
    }
    extern "C" fn on_it() {
        let (address, _) = CALL.get();
        // SAFETY: it is the address of a function of a live session with this signature.
        let in_c: extern "C" fn(i64) -> i64 =
            unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(address as usize)) };
        CALL.set((address, in_c(7)));
    }
    /// Calls the function at an address on a stack of its own.
    extern "C" fn elsewhere(address: u64) -> i64 {
        CALL.set((address, -1));
        let mut stack = vec![0_u8; 1 << 18];
        let (mut here, mut there) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
        // SAFETY: the contexts and the stack outlive the switch, which comes back when `on_it` returns.
        unsafe {
            assert_eq!(libc::getcontext(there.as_mut_ptr()), 0);
            let there: *mut libc::ucontext_t = there.as_mut_ptr();
            (*there).uc_stack.ss_sp = stack.as_mut_ptr().cast();
            (*there).uc_stack.ss_size = stack.len();
            (*there).uc_link = here.as_mut_ptr();
            libc::makecontext(there, on_it, 0);
            assert_eq!(libc::swapcontext(here.as_mut_ptr(), there), 0);
        }
        CALL.get().1
    }
    let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    main.define_c_symbol("elsewhere", elsewhere as *const ()).expect("defined");
    let text = "\
function called(x::Int64)::Int64
1 ─      return x
end
function calls()::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(Main.called), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(UInt64, %1)::UInt64
│   %3 = $(Expr(:foreigncall, :(:elsewhere), Int64, svec(UInt64), 0, :(:ccall), :(%2)))::Int64
└──      return %3
end
";
    main.define(main.read("t.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}")))
        .expect("defined");
    let calls = main.func::<(), i64>("calls").expect("a function");
    for _ in 0..3 {
        let thrown = calls.call(()).unwrap_err().to_string();
        assert!(thrown.contains("not on one that the program has made"), "{thrown}");
        assert_eq!(CALL.get().1, 0, "C gets zeros");
    }
}

#[test]
fn functions_that_c_cannot_call_have_no_address() {
    let session = Session::new(crate::doors::open(Options::new()), Workers::Caller).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    let text = "function f(x::String)::Int64\n1 ─      return 1\nend\n";
    for kind in 0..2 {
        let program = main.read(
            "t.jlir",
            text.replace('f', &format!("f{kind}")).replace(&format!("f{kind}unction"), "function").as_bytes(),
        );
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        main.define(if kind == 0 { program } else { program.lazy() })
            .unwrap_or_else(|error| panic!("{error}"));
        let error =
            main.function(&format!("f{kind}")).expect("a function").c_address().unwrap_err().to_string();
        assert!(error.contains("which C cannot call"), "{error}");
    }
}

#[path = "support/doors.rs"]
mod doors;
