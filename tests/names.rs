//! Functions are identified by module and name: a program's definition answers calls of that function only.
//!
//! Each program carries its tests, which the interpreter and native code of every level run.

use brolga::ir::build::Builder;
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Context, Module, Type};
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Verdict};

fn read(text: &str) -> Program {
    Program::read("names.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Why a text is refused.
fn refusal(text: &str) -> String {
    Program::read("names.jlir", text.as_bytes()).expect_err("the program is refused").to_string()
}

/// Runs the checks of a program by both engines.
fn hold(text: &str) {
    let program = read(text);
    assert!(!program.checks().is_empty());
    let verdicts = |mut evaluator: Evaluator<'_>, by: &str| {
        for check in program.checks() {
            let text = program.source().slice(check.span).trim();
            assert_eq!(evaluator.check(check), Verdict::Passed, "{text} by {by}");
        }
    };
    verdicts(Evaluator::interpreted(&program), "the interpreter");
    for level in OptLevel::ALL {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level).verify_each(true))
            .expect("an engine");
        verdicts(Evaluator::native(&program, &engine), &format!("{level:?}"));
    }
}

/// A function of `Main` that has the name of one of Base's and gives the smaller operand.
const OWN_MAX: &str = "
function max(a::Int64, b::Int64)::Int64
1 ─ %1 = Base.slt_int(a, b)::Bool
│   %2 = Core.ifelse(%1, a, b)::Int64
└──      return %2
end
";

#[test]
fn a_function_of_main_does_not_answer_calls_of_bases() {
    hold(&format!(
        "{OWN_MAX}
# check: own(3, 5) == 3
# check: max(3, 5) == 3
# check: Main.max(3, 5) == 3
# check: by_dynamic(3, 5) == 5
# check: by_object(3, 5) == 5
# check: by_core(3, 5) == 5
# check: objects() == (false, true, true)
function own(a::Int64, b::Int64)::Int64
1 ─ %1 = invoke Main.max(a::Int64, b::Int64)::Int64
└──      return %1
end
function by_dynamic(a::Any, b::Any)::Any
1 ─ %1 = dynamic Base.max(a, b)::Any
└──      return %1
end
function by_core(a::Any, b::Any)::Any
1 ─ %1 = dynamic Core.max(a, b)::Any
└──      return %1
end
function apply(f::Any, a::Any, b::Any)::Any
1 ─ %1 = dynamic f(a, b)::Any
└──      return %1
end
function by_object(a::Any, b::Any)::Any
1 ─ %1 = invoke Main.apply(Base.max::Any, a::Any, b::Any)::Any
└──      return %1
end
function same(f::Any, g::Any)::Bool
1 ─ %1 = (f === g)::Bool
└──      return %1
end
function objects()::Tuple{{Bool, Bool, Bool}}
1 ─ %1 = invoke Main.same(Main.max::Any, Base.max::Any)::Bool
│   %2 = invoke Main.same(Core.max::Any, Base.max::Any)::Bool
│   %3 = invoke Main.same(max::Any, Main.max::Any)::Bool
│   %4 = Core.tuple(%1, %2, %3)::Tuple{{Bool, Bool, Bool}}
└──      return %4
end
"
    ));
    // A static call without a body in the text reaches what Base has, and not `Main.max`.
    hold(&format!(
        "{OWN_MAX}
# check: f(3, 5) == 5
function f(a::Int64, b::Int64)::Int64
1 ─ %1 = invoke Base.max(a::Int64, b::Int64)::Int64
└──      return %1
end
"
    ));
}

#[test]
fn a_function_of_base_does_not_answer_calls_of_mains() {
    hold(
        "
# check: by_invoke(3) == 4
# check: by_dynamic(3) == 4
# check: by_object(3) == 4
# check: base(3) == 300
function Base.twist(x::Int64)::Int64
1 ─ %1 = Base.mul_int(x, 100)::Int64
└──      return %1
end
function twist(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
end
function base(x::Int64)::Int64
1 ─ %1 = invoke Base.twist(x::Int64)::Int64
└──      return %1
end
function by_invoke(x::Int64)::Int64
1 ─ %1 = invoke Main.twist(x::Int64)::Int64
└──      return %1
end
function by_dynamic(x::Any)::Any
1 ─ %1 = dynamic Main.twist(x)::Any
└──      return %1
end
function apply(f::Any, x::Any)::Any
1 ─ %1 = dynamic f(x)::Any
└──      return %1
end
function by_object(x::Any)::Any
1 ─ %1 = invoke Main.apply(Main.twist::Any, x::Any)::Any
└──      return %1
end
",
    );
}

#[test]
fn a_bare_name_that_the_program_does_not_define_is_bases() {
    hold(
        "
# check: f(3, 5) == (5, 3, true)
# check: max(3, 5) == 5
function same(f::typeof(max), g::Any)::Bool
1 ─ %1 = (f === g)::Bool
└──      return %1
end
function f(a::Any, b::Any)::Any
1 ─ %1 = dynamic max(a, b)::Any
│   %2 = min(a, b)::Any
│   %3 = dynamic Main.same(Base.max, max)::Any
│   %4 = Core.tuple(%1, %2, %3)::Tuple{Any, Any, Any}
└──      return %4
end
",
    );
}

#[test]
fn functions_of_base_without_a_body_are_not_captured() {
    hold(
        "
# check: own(1) == 1
# throws: bases(1) ErrorException
# throws: by_dynamic(1) ErrorException
function error(s::String)::Int64
1 ─      return 1
end
function own(x::Int64)::Int64
1 ─ %1 = invoke Main.error(\"own\"::String)::Int64
└──      return %1
end
function bases(x::Int64)::Int64
1 ─      invoke Base.error(\"Base's\"::String)::Union{}
└──      unreachable
end
function by_dynamic(x::Int64)::Int64
1 ─      dynamic Base.error(\"Base's\")::Any
└──      return 2
end
",
    );
}

/// `g` in three modules, called in all ways.
const MODULES: &str = "
# check: A.g(1) == 11
# check: B.g(1) == 21
# check: A.Inner.g(1) == 31
# check: Main.A.g(1) == 11
# check: all(1) == (11, 21, 31)
# check: by_dynamic(1) == (11, 21, 31)
# check: by_object(1) == (11, 21, 31)
# check: dispatched() == (1, 2)
function A.g(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 10)::Int64
└──      return %1
end
function B.g(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 20)::Int64
└──      return %1
end
function A.Inner.g(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 30)::Int64
└──      return %1
end
function all(x::Int64)::Tuple{Int64, Int64, Int64}
1 ─ %1 = invoke A.g(x::Int64)::Int64
│   %2 = invoke Main.B.g(x::Int64)::Int64
│   %3 = invoke Main.A.Inner.g(x::Int64)::Int64
│   %4 = Core.tuple(%1, %2, %3)::Tuple{Int64, Int64, Int64}
└──      return %4
end
function by_dynamic(x::Any)::Any
1 ─ %1 = dynamic Main.A.g(x)::Any
│   %2 = dynamic B.g(x)::Any
│   %3 = dynamic A.Inner.g(x)::Any
│   %4 = Core.tuple(%1, %2, %3)::Tuple{Any, Any, Any}
└──      return %4
end
function apply(f::Any, x::Any)::Any
1 ─ %1 = dynamic f(x)::Any
└──      return %1
end
function by_object(x::Any)::Any
1 ─ %1 = invoke Main.apply(A.g::Any, x::Any)::Any
│   %2 = invoke Main.apply(Main.B.g::Any, x::Any)::Any
│   %3 = invoke Main.apply(A.Inner.g::Any, x::Any)::Any
│   %4 = Core.tuple(%1, %2, %3)::Tuple{Any, Any, Any}
└──      return %4
end
function which(f::typeof(A.g))::Int64
1 ─      return 1
end
function which(f::typeof(Main.B.g))::Int64
1 ─      return 2
end
function dispatched()::Tuple{Any, Any}
1 ─ %1 = dynamic Main.which(Main.A.g)::Any
│   %2 = dynamic Main.which(B.g)::Any
│   %3 = Core.tuple(%1, %2)::Tuple{Any, Any}
└──      return %3
end
";

#[test]
fn functions_of_modules_with_one_name_stand_beside_each_other() {
    hold(MODULES);
    let program = read(MODULES);
    let symbols = |name: &str| {
        let module = program.module();
        let named = module.named(module.cx.names.intern(name));
        named.map(|id| module.symbol(id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(symbols("g"), ["A.g(Int64)", "B.g(Int64)", "A.Inner.g(Int64)"]);
    assert_eq!(symbols("which"), ["which(typeof(A.g))", "which(typeof(B.g))"]);
    let unit = Engine::new(crate::doors::open(Options::new())).unwrap().compile(&program).unwrap();
    for (name, result) in [("A.g", 11), ("A.g(Int64)", 11), ("B.g", 21), ("A.Inner.g(Int64)", 31)] {
        assert_eq!(unit.func::<(i64,), i64>(name).unwrap().call((1,)), Ok(result), "{name}");
    }
    assert!(unit.func::<(i64,), i64>("g").is_err());
}

#[test]
fn a_program_extends_functions_of_base() {
    hold(
        "
struct Meters
    n::Int64
end
# check: longest(3, 5) == 5
# check: sum(3, 5) == 8
# check: plain(3, 5) == 5
# check: ints(3, 5) == 8
function Base.max(a::Meters, b::Meters)::Meters
1 ─ %1 = Base.getfield(a, :n)::Int64
│   %2 = Base.getfield(b, :n)::Int64
│   %3 = Base.slt_int(%1, %2)::Bool
│   %4 = Core.ifelse(%3, b, a)::Meters
└──      return %4
end
function Base.:+(a::Meters, b::Meters)::Meters
1 ─ %1 = Base.getfield(a, :n)::Int64
│   %2 = Base.getfield(b, :n)::Int64
│   %3 = Base.add_int(%1, %2)::Int64
│   %4 = %new(Meters, %3)::Meters
└──      return %4
end
function longest(a::Int64, b::Int64)::Int64
1 ─ %1 = %new(Meters, a)::Meters
│   %2 = %new(Meters, b)::Meters
│   %3 = invoke Main.max(%1::Meters, %2::Meters)::Meters
│   %4 = Base.getfield(%3, :n)::Int64
└──      return %4
end
function sum(a::Int64, b::Int64)::Int64
1 ─ %1 = %new(Meters, a)::Meters
│   %2 = %new(Meters, b)::Meters
│   %3 = (%1 + %2)::Any
│   %4 = Base.getfield(%3, :n)::Int64
└──      return %4
end
function plain(a::Any, b::Any)::Any
1 ─ %1 = dynamic Base.max(a, b)::Any
└──      return %1
end
function ints(a::Any, b::Any)::Any
1 ─ %1 = dynamic Main.:+(a, b)::Any
└──      return %1
end
",
    );
}

#[test]
fn bodies_of_dumps_are_those_of_the_functions_that_calls_name() {
    // Julia prints `Base.` where code of Base calls, and the module of the program where that does: one function.
    hold(
        "
# signature: f(x::Int64)::Int64
# check: f(6) == 43
CodeInfo(
1 ─ %1 = invoke Main.Programs.twist(x::Int64)::Int64
│   %2 = invoke Main.Programs.own(%1::Int64)::Int64
└──      return %2
) => Int64
# signature: twist(x::Int64)::Int64
CodeInfo(
1 ─ %1 = (x === 0)::Bool
└──      goto #3 if not %1
2 ─      return 0
3 ─ %4 = Base.sub_int(x, 1)::Int64
│   %5 = invoke Base.Math.twist(%4::Int64)::Int64
│   %6 = Base.add_int(%5, 7)::Int64
└──      return %6
) => Int64
# signature: own(x::Int64)::Int64
CodeInfo(
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
) => Int64
",
    );
    // A function of the program with the name of one that Base has without a body.
    hold(
        "
# signature: max(a::Int64, b::Int64)::Int64
CodeInfo(
1 ─ %1 = Base.slt_int(a, b)::Bool
│   %2 = Core.ifelse(%1, a, b)::Int64
└──      return %2
) => Int64
# signature: f(a::Any, b::Any)::Any
# check: f(3, 5) == (3, 5)
CodeInfo(
1 ─ %1 = dynamic Main.max(a, b)::Any
│   %2 = dynamic Base.max(a, b)::Any
│   %3 = Core.tuple(%1, %2)::Tuple{Any, Any}
└──      return %3
) => Any
",
    );
    // With modules in the headers.
    hold(
        "
# signature: Base.gcd(a::Int64, b::Int64)::Int64
CodeInfo(
1 ─      return a
) => Int64
# signature: Main.gcd(a::Int64, b::Int64)::Int64
CodeInfo(
1 ─      return b
) => Int64
# signature: f(a::Int64, b::Int64)::Tuple{Int64, Int64}
# check: f(3, 5) == (3, 5)
# check: gcd(3, 5) == 5
CodeInfo(
1 ─ %1 = invoke Base.gcd(a::Int64, b::Int64)::Int64
│   %2 = invoke Main.gcd(a::Int64, b::Int64)::Int64
│   %3 = Core.tuple(%1, %2)::Tuple{Int64, Int64}
└──      return %3
) => Tuple{Int64, Int64}
",
    );
}

#[test]
fn messages_name_the_module() {
    let twice = "
function A.g(x::Int64)::Int64
1 ─      return x
end
";
    let error = refusal(&format!("{twice}{twice}"));
    assert!(error.contains("`A.g`"), "{error}");
    let wrong = format!(
        "{twice}
function f(x::Float64)::Int64
1 ─ %1 = invoke A.g(x::Float64)::Int64
└──      return %1
end
"
    );
    let error = read(&wrong).check_complete(|_| false).expect_err("a method is missing").to_string();
    assert!(error.contains("`A.g` has no method for") && error.contains("A.g(Int64)"), "{error}");
    let unknown = "
function A.g(x::Int64)::Int64
1 ─      return x
end
function f(x::Int64)::Int64
1 ─ %1 = g(x)::Int64
└──      return %1
end
";
    let error = refusal(unknown);
    assert!(error.contains("`g`") && error.contains("`A.g`"), "{error}");
}

#[test]
fn builders_name_functions_with_their_modules() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    for (name, n) in [("A.g", 10), ("B.g", 20), ("g", 30)] {
        let mut b = Builder::high(&cx, name, &[("x", Type::INT64)], Type::INT64);
        let n = b.int(Type::INT64, n).unwrap();
        let x = b.param(0).unwrap();
        let sum = b.intrinsic(Intrinsic::AddInt, &[x, n]).unwrap();
        b.ret(&[sum]).unwrap();
        module.add_func(b.finish().unwrap()).unwrap();
    }
    let mut b = Builder::high(&cx, "C.all", &[("x", Type::INT64)], Type::INT64);
    let mut x = b.param(0).unwrap();
    for name in ["A.g", "B.g", "g"] {
        x = b.call_method(&module, name, &[x]).unwrap();
    }
    b.ret(&[x]).unwrap();
    module.add_func(b.finish().unwrap()).unwrap();
    let program = Program::from_module(module).unwrap();
    let unit = Engine::new(crate::doors::open(Options::new())).unwrap().compile(&program).unwrap();
    assert_eq!(unit.func::<(i64,), i64>("C.all").unwrap().call((1,)), Ok(61));
}

#[path = "support/doors.rs"]
mod doors;
