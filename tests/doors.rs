//! The boundary: refusals while the doors are closed, and that programs without doors cannot cross it.

use brolga::ir::doors::Door;
use brolga::options::CheckBounds;
use brolga::session::{Session, SessionError, Signature, Workers};
use brolga::{
    CallError, Engine, Error, Evaluator, ExceptionKind, OptLevel, Options, Output, Program, Unit, image,
};

/// A program with each door that a statement can be: its code, the line of the statement, the text.
const PROGRAMS: [(&str, u32, &str); 4] = [
    (
        "door-pointer",
        3,
        "function f(n::UInt64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Int64}, n)::Ptr{Int64}
│   %2 = Base.pointerref(%1, 1, 1)::Int64
└──      return %2
end",
    ),
    (
        "door-foreign",
        2,
        "function f(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64
└──      return %1
end",
    ),
    (
        "door-callback",
        5,
        "function g(n::Int64)::Int64
1 ─      return n
end
function f()::Ptr{Nothing}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(g), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      return %1
end",
    ),
    (
        "door-low-ir",
        2,
        "low function f(p::ptr)::i64\n1 ─ %1 = load(p; offset = 0, region = raw, align = 8)::i64\n└──      return %1\nend",
    ),
];

fn program(text: &str) -> Program {
    Program::read("test.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The findings of a refusal, each with the line where it is.
fn findings(error: &Error) -> Vec<(&'static str, u32)> {
    let Error::Broken(broken) = error else { panic!("{error}") };
    let line = |at: u32| broken.source.position(at).line;
    broken.findings.iter().map(|finding| (finding.code, line(finding.at.start))).collect()
}

fn checked(level: OptLevel, text: &str) -> Unit {
    let engine = Engine::new(Options::new().opt_level(level).output(Output::Capture)).unwrap();
    engine.compile(&program(text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn engines_refuse_each_door_with_its_place_and_open_ones_take_it() {
    let (closed, open) = (Options::new(), doors::open(Options::new()));
    let (closed, open) = (Engine::new(closed).unwrap(), Engine::new(open).unwrap());
    for (code, line, text) in PROGRAMS {
        let program = program(text);
        assert_eq!(findings(&closed.compile(&program).unwrap_err()), [(code, line)]);
        open.compile(&program).unwrap_or_else(|error| panic!("{code}: {error}"));
        let module = Program::from_module(program.module().clone()).unwrap();
        let built = closed.compile(&module).unwrap_err();
        assert!(built.to_string().contains(&format!("`{}`", &code[5..])), "{built}");
    }
    let named: Vec<&str> = PROGRAMS.iter().map(|(code, ..)| *code).collect();
    let of_statements = |door: &Door| !matches!(door, Door::Bounds | Door::NativeCode);
    let all: Vec<&str> =
        Door::ALL.iter().filter(|door| of_statements(door)).map(|door| door.code()).collect();
    assert_eq!(named, all, "each door has its program");
}

#[test]
fn sessions_refuse_each_door_however_it_comes() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let open = Session::new(doors::open(Options::new()), Workers::Caller).unwrap();
    let other = open.create_dylib("main").unwrap();
    let refused = |error: SessionError, code: &str, line| {
        let SessionError::Program(error) = error else { panic!("{error}") };
        assert_eq!(findings(&error), [(code, line)]);
    };
    for (code, line, text) in PROGRAMS {
        refused(dylib.read("test.jlir", text.as_bytes()).map(drop).unwrap_err(), code, line);
        refused(dylib.define(program(text)).unwrap_err(), code, line);
        refused(dylib.redefine(program(text)).map(drop).unwrap_err(), code, line);
        // Definitions that a session with open doors has read.
        let read = other.read("test.jlir", text.as_bytes()).unwrap();
        let SessionError::Program(error) = dylib.define(read).unwrap_err() else { panic!("{code}") };
        assert_eq!(findings(&error)[0].0, code);
    }
    let text = PROGRAMS[0].2;
    let signature = Signature::new("f", &[brolga::ir::Type::UINT64], brolga::ir::Type::INT64);
    dylib.promise(&[signature], move |_| Ok(program(text).module().clone())).unwrap();
    // It is built when it is called.
    let promised = dylib.func::<(u64,), i64>("f").unwrap().call((0,)).unwrap_err();
    assert!(promised.to_string().contains("the door `pointer`"), "{promised}");
}

#[test]
fn code_and_addresses_from_elsewhere_take_open_doors() {
    let closed = |error: SessionError| {
        let SessionError::Program(error) = error else { panic!("{error}") };
        assert!(matches!(*error, Error::Closed { door: Door::NativeCode, .. }), "{error}");
        assert!(error.to_string().contains("the door `native-code`"), "{error}");
    };
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    closed(dylib.define_c_symbol("sin", std::ptr::null()).unwrap_err());
    closed(dylib.add_library("libm.so.6").unwrap_err());
    closed(dylib.add_archive("none.a", b"!<arch>\n").unwrap_err());
    let engine = Engine::new(Options::new()).unwrap();
    assert!(matches!(engine.open_bytes(Vec::new()), Err(Error::Closed { door: Door::NativeCode, .. })));
    assert!(matches!(engine.open("none.so"), Err(Error::Closed { door: Door::NativeCode, .. })));
    let none = Options::new().check_bounds(CheckBounds::No);
    assert!(matches!(Engine::new(none), Err(Error::Closed { door: Door::Bounds, .. })));
    let none = Options::new().check_bounds(CheckBounds::No);
    assert!(matches!(Session::new(none, Workers::Caller), Err(Error::Closed { door: Door::Bounds, .. })));
}

/// A symbol of C that the linking model is given under the name of an allowed function is not called by checked programs.
#[test]
fn allowed_functions_are_those_of_the_run_time() {
    use brolga::session::SymbolFlags;
    use brolga::session::linking::absolute;
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let symbol = session.linking().symbol("cos");
    let flags = SymbolFlags::EXPORTED;
    dylib.linking().define(absolute([(symbol.symbol(), flags, 16)])).unwrap();
    let text = "function f(x::Float64)::Float64
1 ─ %1 = $(Expr(:foreigncall, :(:cos), Float64, svec(Float64), 0, :(:ccall), :(x)))::Float64
└──      return %1
end";
    dylib.define(dylib.read("test.jlir", text.as_bytes()).unwrap()).unwrap();
    assert_eq!(dylib.func::<(f64,), f64>("f").unwrap().call((0.0,)).unwrap(), 1.0);
}

#[test]
fn bounds_are_checked_whatever_the_program_says() {
    let texts = [
        "function f(n::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Int64}, 4)::Memory{Int64}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Int64}
│   %3 = Core.memoryrefnew(%2, n, false)::MemoryRef{Int64}
│   %4 = Core.memoryrefget(%3, :not_atomic, false)::Int64
└──      return %4
end",
        "function f(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 4))::Vector{Int64}
│        Base.arrayset(false, %1, 0, n)::Vector{Int64}
│   %3 = $(Expr(:boundscheck, false))::Bool
│   %4 = Base.arrayref(%3, %1, n)::Int64
└──      return %4
end",
        "function f(n::Int64)::Int64
1 ─ %1 = Core.tuple(0, 0, 0, 0)::NTuple{4, Int64}
│   %2 = Base.getfield(%1, n, false)::Int64
└──      return %2
end",
    ];
    for text in texts {
        for level in OptLevel::ALL {
            let f = checked(level, text).func::<(i64,), i64>("f").unwrap();
            assert_eq!(f.call((1,)).unwrap(), 0);
            assert_eq!(f.call((4,)).unwrap(), 0);
            for bad in [0, 5, -1, i64::MIN, i64::MAX, 1 << 40] {
                match f.call((bad,)) {
                    Err(CallError::Exception(thrown)) => assert_eq!(thrown.kind, ExceptionKind::BoundsError),
                    other => panic!("{level:?} {bad}: {other:?}"),
                }
            }
        }
    }
}

/// `popfirst!` as Julia 1.11 has it moves `ref` before it sets the size. An array never has elements that are not there.
#[test]
fn parts_of_arrays_are_set_where_they_fit() {
    let text = "function f(n::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Int64}, 3)::Memory{Int64}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Int64}
│   %3 = %new(Vector{Int64}, %2, (3,))::Vector{Int64}
│        Base.arrayset(true, %3, 7, 2)::Vector{Int64}
│   %5 = Core.memoryrefnew(%2, 2, false)::MemoryRef{Int64}
│        Core.setfield!(%3, :ref, %5)::MemoryRef{Int64}
│   %7 = Base.arraylen(%3)::Int64
│   %8 = Core.tuple(n)::Tuple{Int64}
│        Core.setfield!(%3, :size, %8)::Tuple{Int64}
│   %10 = Base.arrayref(true, %3, 1)::Int64
│   %11 = Base.mul_int(%7, 100)::Int64
│   %12 = Base.add_int(%10, %11)::Int64
└──      return %12
end
function g()::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_2d), Matrix{Int64}, svec(Any, Int64, Int64), 0, :(:ccall), Matrix{Int64}, 2, 2))::Matrix{Int64}
│   %2 = Base.getfield(%1, :ref)::MemoryRef{Int64}
│   %3 = Core.memoryrefnew(%2, 2, false)::MemoryRef{Int64}
│        Core.setfield!(%1, :ref, %3)::MemoryRef{Int64}
└──      return 0
end";
    for level in OptLevel::ALL {
        let unit = checked(level, text);
        let f = unit.func::<(i64,), i64>("f").unwrap();
        assert_eq!(f.call((2,)).unwrap(), 207, "{level:?}");
        assert_eq!(f.call((1,)).unwrap(), 207, "{level:?}");
        for bad in [3, -1, i64::MAX] {
            let Err(CallError::Exception(thrown)) = f.call((bad,)) else { panic!("{level:?}, {bad}") };
            assert_eq!(thrown.kind, ExceptionKind::ErrorException, "{level:?}, {bad}");
        }
        let Err(CallError::Exception(thrown)) = unit.func::<(), i64>("g").unwrap().call(()) else {
            panic!("{level:?}")
        };
        assert_eq!(thrown.kind, ExceptionKind::ErrorException, "{level:?}");
    }
    let program = program(text);
    for (call, value) in [("f(2)", Some("207")), ("f(3)", None), ("g()", None)] {
        let mut evaluator = Evaluator::interpreted_checked(&program).unwrap();
        let call = program.call(call).unwrap();
        assert_eq!(evaluator.call(&call).ok().as_deref(), value);
    }
}

/// The type of an array is hidden from the list of doors, and found out by the optimiser.
#[test]
fn parts_of_arrays_are_not_set_behind_its_back() {
    let text = "function f(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 4))::Vector{Int64}
│   %2 = invoke Main.widen(%1::Any, n::Int64)::Any inline
│   %3 = Base.arrayref(true, %1, 100)::Int64
└──      return %3
end
function widen(a::Any, n::Int64)::Any
1 ─ %1 = Core.tuple(n)::Tuple{Int64}
│   %2 = Core.setfield!(a, :size, %1)::Any
└──      return %2
end
function g(n::Int64)::Any
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 4))::Vector{Int64}
│   %2 = Core.tuple(n)::Tuple{Int64}
│   %3 = Base.setproperty!(%1, :size, %2)::Any
└──      return %3
end";
    for level in OptLevel::ALL {
        let unit = checked(level, text);
        let Err(CallError::Exception(thrown)) = unit.func::<(i64,), i64>("f").unwrap().call((1000,)) else {
            panic!("{level:?}")
        };
        assert!(thrown.message.contains("an Array has no more elements"), "{level:?}: {}", thrown.message);
    }
}

/// The library's own functions go through doors inside, so what a program gives them must not lead outside.
#[test]
fn buffers_whose_fields_lie_are_refused_by_the_library() {
    let text = "mutable struct GenericIOBuffer{T}
    data::T
    reinit::Bool
    readable::Bool
    writable::Bool
    seekable::Bool
    append::Bool
    size::Int64
    maxsize::Int64
    ptr::Int64
    offset::Int64
    mark::Int64
end
function f(size::Int64, maxsize::Int64, ptr::Int64, append::Bool)::Int64
1 ─ %1 = Core.memorynew(Memory{UInt8}, 8)::Memory{UInt8}
│   %2 = %new(GenericIOBuffer{Memory{UInt8}}, %1, false, true, true, true, append, size, maxsize, ptr, 0, -1)::GenericIOBuffer{Memory{UInt8}}
│        Base.print(%2, \"a text of some length\")::Any
│   %4 = Base.getfield(%2, :size)::Int64
└──      return %4
end";
    for level in [OptLevel::O0, OptLevel::O2] {
        let f = checked(level, text).func::<(i64, i64, i64, bool), i64>("f").unwrap();
        assert_eq!(f.call((0, i64::MAX, 1, false)).unwrap(), 21);
        let odd = [i64::MIN, i64::MIN + 1, -1 << 40, -1, 0, 1, 5, 1 << 20, i64::MAX - 1, i64::MAX];
        for size in odd {
            for maxsize in odd {
                for ptr in odd {
                    for append in [false, true] {
                        // It prints, or throws.
                        let _ended = f.call((size, maxsize, ptr, append));
                    }
                }
            }
        }
    }
}

/// The functions of Julia's run time that need no door take any numbers.
#[test]
fn sizes_that_cannot_be_are_refused_by_the_run_time() {
    let text = "function matrix(a::Int64, b::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_2d), Matrix{Int64}, svec(Any, Int64, Int64), 0, :(:ccall), Matrix{Int64}, :(a), :(b)))::Matrix{Int64}
│        Base.arrayset(false, %1, 7, a, b)::Matrix{Int64}
│   %3 = Base.arrayref(false, %1, a, b)::Int64
└──      return %3
end
function memory(a::Int64, b::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Int64}, a)::Memory{Int64}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Int64}
│   %3 = Core.tuple(a)::Tuple{Int64}
│   %4 = %new(Vector{Int64}, %2, %3)::Vector{Int64}
│        Base.arrayset(false, %4, 7, b)::Vector{Int64}
│   %6 = Base.arrayref(false, %4, b)::Int64
└──      return %6
end
function grown(a::Int64, b::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 3))::Vector{Int64}
│   %2 = Base.bitcast(UInt64, a)::UInt64
│        $(Expr(:foreigncall, :(:jl_array_grow_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(%1), :(%2)))::Nothing
│   %4 = Base.bitcast(UInt64, b)::UInt64
│        $(Expr(:foreigncall, :(:jl_array_del_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(%1), :(%4)))::Nothing
│   %6 = Base.arraylen(%1)::Int64
│        Base.arrayset(false, %1, 7, %6)::Vector{Int64}
│   %8 = Base.arrayref(false, %1, %6)::Int64
└──      return %8
end";
    let odd =
        [i64::MIN, i64::MIN + 1, -(1 << 33), -3, -2, -1, 0, 1, 2, 3, 4, 1 << 32, 1 << 61, 1 << 62, i64::MAX];
    for level in OptLevel::ALL {
        let engine = Engine::new(Options::new().opt_level(level).heap_limit(Some(64 << 20))).unwrap();
        let unit = engine.compile(&program(text)).unwrap();
        for name in ["matrix", "memory", "grown"] {
            let f = unit.func::<(i64, i64), i64>(name).unwrap();
            for a in odd {
                for b in odd {
                    // It is the number that was written, or it throws.
                    assert!(
                        !matches!(f.call((a, b)), Ok(other) if other != 7),
                        "{name}({a}, {b}) at {level:?}"
                    );
                }
            }
            assert_eq!(f.call((3, 2)), Ok(7), "{name} at {level:?}");
        }
    }
}

#[test]
fn functions_of_base_that_come_with_the_library_are_trusted() {
    let text = "function f(x::Float64)::Int64
1 ─ %1 = Base.sin(x)::Any
│   %2 = Base.string(\"sine: \", %1)::Any
│   %3 = Base.length(%2)::Any
│   %4 = Core.typeassert(%3, Int64)::Int64
└──      return %4
end";
    assert_eq!(checked(OptLevel::O2, text).func::<(f64,), i64>("f").unwrap().call((0.0,)).unwrap(), 9);
}

/// Functions of the host are the embedder's own.
#[test]
fn checked_programs_call_the_host() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let int = brolga::ir::Type::INT64;
    let signature = Signature::new("twice", &[int], int);
    let twice = dylib.define_host(&signature, |scope, args| {
        let number: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.int(2 * number).map_err(|error| scope.throw_error(&error.to_string()))
    });
    twice.unwrap();
    let text = "function f(n::Int64)::Int64
1 ─ %1 = invoke Main.twice(n::Int64)::Int64
└──      return %1
end";
    dylib.define(dylib.read("test.jlir", text.as_bytes()).unwrap()).unwrap();
    assert_eq!(dylib.func::<(i64,), i64>("f").unwrap().call((21,)).unwrap(), 42);
    let image = image::build(&program(PROGRAMS[0].2), &Options::new());
    assert!(image.is_ok() || cfg!(not(target_arch = "x86_64")), "building runs nothing");
}

#[path = "support/doors.rs"]
mod doors;
