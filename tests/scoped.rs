//! Calls with objects from Rust: their types are checked, their results are rooted, and functions of the host throw through them.

use brolga::heap::objects::{MethodEntry, MethodRow};
use brolga::heap::{Root, Scope};
use brolga::host::{Handle, Text, Vector};
use brolga::{CallError, Engine, Exception, ExceptionKind, LookupError, OptLevel, Options, Program};
use brolga_ir::types::Type;

const PROGRAM: &str = "\
mutable struct Node
    next::Union{Nothing, Node}
    val::Int64
end

function cons(next::Union{Nothing, Node}, n::Int64)::Node
1 ─ %1 = %new(Node, next, n)::Node
└──      return %1
end

function total(list::Union{Nothing, Node})::Int64
1 ─       goto #2
2 ┄ %2  = φ (#1 => list, #3 => %7)::Union{Nothing, Node}
│   %3  = φ (#1 => 0, #3 => %8)::Int64
│   %4  = (%2 === nothing)::Bool
└──       goto #3 if not %4
4 ─       return %3
3 ─ %5  = π (%2, Node)
│   %6  = Base.getfield(%5, :val)::Int64
│   %7  = Base.getfield(%5, :next)::Union{Nothing, Node}
│   %8  = Base.add_int(%3, %6)::Int64
└──       goto #2
end

function same(text::String)::String
1 ─      return text
end

function bytes(text::String, more::Int64)::Int64
1 ─ %1 = Base.sizeof(text)::Int64
│   %2 = Base.add_int(%1, more)::Int64
└──      return %2
end

function second(v::Vector{Float64}, by::Float64)::Vector{Float64}
1 ─ %1 = Base.arrayref(true, v, 2)::Float64
│   %2 = Base.mul_float(%1, by)::Float64
│        Base.arrayset(true, v, %2, 1)::Vector{Float64}
└──      return v
end

function pass(f::Any, x::Any)::Any
1 ─ %1 = dynamic f(x)::Any
└──      return %1
end

function caught(f::Any, x::Any)::Any
1 ─ %1 = enter #4
2 ─ %2 = dynamic f(x)::Any
└──      $(Expr(:leave, :(%1)))
3 ─      return %2
4 ┄ %5 = $(Expr(:the_exception))::Any
│        $(Expr(:pop_exception, :(%1)))
└──      return %5
end

function narrow(x::Float64)::Int8
1 ─ %1 = Base.lt_float(x, 100.0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.fptosi(Int8, x)::Int8
└──      return %3
3 ─      invoke Core.throw_inexacterror(:trunc::Symbol, Int8::Type{Int8}, x::Float64)::Union{}
└──      unreachable
end

function overflowed(x::Int32, y::Int32)::Int64
1 ─      invoke Base.Checked.throw_overflowerr_binaryop(:*::Symbol, x::Int32, y::Int32)::Union{}
└──      unreachable
end
";

fn program() -> Program {
    Program::read("t", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn engines() -> [Engine; 2] {
    [OptLevel::O0, OptLevel::O2].map(|level| {
        Engine::new(crate::doors::open(Options::new()).opt_level(level).gc_stress(true)).unwrap()
    })
}

fn nothing<'f, 'h>(scope: &mut Scope<'f, 'h>, program: &Program) -> Root<'f, 'h> {
    let ty = scope.heap().type_object(&program.module().cx, Type::NOTHING).unwrap();
    scope.instance(&ty).unwrap()
}

#[test]
fn handles_go_in_and_come_out() {
    let program = program();
    for engine in engines() {
        let unit = engine.compile(&program).unwrap();
        let cons = unit.func_in::<(Handle, i64), Handle>("cons").unwrap();
        let total = unit.func_in::<(Handle,), i64>("total").unwrap();
        let sum = engine.runtime().enter(|scope| {
            let mut list = nothing(scope, &program);
            for n in 1..=20 {
                list = cons.call(scope, (list, n)).unwrap();
            }
            let text = scope.string(b"no node").unwrap();
            let refused = total.call(scope, (text,)).unwrap_err();
            assert!(
                matches!(&refused, CallError::Argument(wrong) if (wrong.index, &*wrong.got) == (0, "String")),
                "{refused}"
            );
            total.call(scope, (list,)).unwrap()
        });
        assert_eq!(sum, Ok(210));
        engine.runtime().enter(|scope| scope.collect()).unwrap();
        assert_eq!(engine.runtime().heap().stats().live_objects, 0);
    }
}

#[test]
fn texts_and_vectors_are_copied() {
    let program = program();
    for engine in engines() {
        let unit = engine.compile(&program).unwrap();
        let same = unit.func_in::<(Text,), Text>("same").unwrap();
        let bytes = unit.func_in::<(Text, i64), i64>("bytes").unwrap();
        let as_handle = unit.func_in::<(Handle,), Text>("same").unwrap();
        let second = unit.func_in::<(Vector<f64>, f64), Vector<f64>>("second").unwrap();
        engine
            .runtime()
            .enter(|scope| {
                assert_eq!(same.call(scope, ("θé",)), Ok("θé".to_owned()));
                assert_eq!(bytes.call(scope, ("θé", 5)), Ok(9));
                assert_eq!(second.call(scope, (&[1.0, 2.5, 3.0], 2.0)), Ok(vec![5.0, 2.5, 3.0]));
                let thrown = second.call(scope, (&[1.0], 2.0)).unwrap_err();
                assert!(matches!(&thrown, CallError::Exception(e) if e.kind == ExceptionKind::BoundsError));
                let broken = scope.string(b"ab\xff").unwrap();
                let refused = as_handle.call(scope, (broken,)).unwrap_err();
                assert_eq!(refused.to_string(), "the String is not UTF-8 from byte 2 on");
            })
            .unwrap();
        let wrong = unit.func_in::<(Vector<i64>, f64), Handle>("second").unwrap_err();
        assert!(matches!(wrong, LookupError::Argument { index: 1, .. }), "{wrong}");
        let wrong = unit.func_in::<(Handle,), Handle>("cons").unwrap_err();
        assert!(matches!(wrong, LookupError::Count { expected: 2, given: 1, .. }), "{wrong}");
        let wrong = unit.func_in::<(Text,), i64>("same").unwrap_err();
        assert!(matches!(wrong, LookupError::Result { .. }), "{wrong}");
    }
}

#[test]
fn functions_of_the_host_take_and_throw_objects() {
    let program = program();
    for engine in engines() {
        let unit = engine.compile(&program).unwrap();
        let cx = &program.module().cx;
        let function = cx.types.function(cx.names.intern("host"));
        let row = MethodRow {
            function,
            args: vec![Type::ANY],
            rest: None,
            statics: brolga_ir::types::Statics::default(),
            name: "host(Any)".into(),
            entry: MethodEntry::host(|scope, all| {
                let text = all[1].get(scope).text().map(str::to_uppercase);
                match text {
                    Some(text) => {
                        scope.string(text.as_bytes()).map_err(|error| scope.throw_error(&error.to_string()))
                    }
                    None => Err(scope.throw(all[1].get(scope))),
                }
            }),
        };
        let _methods = engine.runtime().add_methods(cx, [row]).unwrap();
        let pass = unit.func_in::<(Handle, Handle), Handle>("pass").unwrap();
        let caught = unit.func_in::<(Handle, Handle), Handle>("caught").unwrap();
        engine
            .runtime()
            .enter(|scope| {
                let ty = scope.heap().type_object(cx, function).unwrap();
                let host = scope.instance(&ty).unwrap();
                let text = scope.string(b"text").unwrap();
                let upper = pass.call(scope, (host, text)).unwrap();
                assert_eq!(upper.get(scope).text(), Some("TEXT"));
                let number = scope.int(77_000).unwrap();
                let thrown = pass.call(scope, (host, number)).unwrap_err();
                let CallError::Exception(exception) = thrown else { panic!("{thrown}") };
                assert_eq!(exception.kind, ExceptionKind::Other);
                let object = scope.get_persistent(exception.object().unwrap()).unwrap();
                assert_eq!(object.unboxed::<i64>(), Ok(77_000));
                let back = caught.call(scope, (host, number)).unwrap();
                assert_eq!(back.get(scope).unboxed::<i64>(), Ok(77_000));
            })
            .unwrap();
    }
}

#[test]
fn exceptions_arrive_with_what_they_are_about() {
    let program = program();
    for engine in engines() {
        let unit = engine.compile(&program).unwrap();
        let thrown = |error: CallError| -> Exception {
            match error {
                CallError::Exception(exception) => *exception,
                other => panic!("{other}"),
            }
        };
        let narrow = unit.func::<(f64,), i8>("narrow").unwrap();
        assert_eq!(narrow.call((5.0,)), Ok(5));
        let inexact = thrown(narrow.call((300.5,)).unwrap_err());
        assert_eq!(inexact.to_string(), "InexactError: trunc(Int8, 300.5)");
        let overflowed = unit.func::<(i32, i32), i64>("overflowed").unwrap();
        let overflow = thrown(overflowed.call((-7, i32::MAX)).unwrap_err());
        assert_eq!(overflow.to_string(), "OverflowError: -7 * 2147483647 overflowed for type Int32");
    }
}

#[path = "support/doors.rs"]
mod doors;
