//! Dynamic calls, turned into calls of methods: functions with such calls are recompiled when methods are added.

use brolga::session::{Dependants, Dylib};
use brolga::{OptLevel, Options, Session, TypedFunc, Workers};

use super::session;

type Int = TypedFunc<(i64,), i64>;

fn kind(ty: &str, n: i64) -> String {
    format!("function kind(x::{ty})::Int64\n1 ─      return {n}\nend\n")
}

/// Asks for the kind of a float if it is given 0, else for that of an integer.
const ASK: &str = "
function ask(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sitofp(Float64, n)::Float64
└──      goto #4
3 ─      goto #4
4 ┄ %6 = φ (#2 => %3, #3 => n)::Union{Float64, Int64}
│   %7 = dynamic Main.kind(%6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
└──      return %8
end
";

fn put(dylib: &Dylib, source: &str, again: bool) {
    let program = dylib.read("p.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}")).lazy();
    let put = if again { dylib.redefine(program).map(drop) } else { dylib.define(program) };
    put.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_caller_bound_to_methods_is_recompiled_when_there_are_others() {
    for elsewhere in [false, true] {
        let session = session(Workers::Pool(1));
        let library = session.create_dylib("library").unwrap();
        let main = session.create_dylib("main").unwrap();
        main.link_against(&library).unwrap();
        let kinds = if elsewhere { &library } else { &main };
        put(kinds, &(kind("Any", 0) + &kind("Int64", 1)), false);
        put(&main, ASK, false);
        let ask: Int = main.func("ask").unwrap();
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(0), Ok(1)));
        let because = |function: &str| {
            let told: Vec<String> = session.take_invalidations().iter().map(ToString::to_string).collect();
            assert_eq!(told, [format!("`ask(Int64)` of `main` depends on `{function}`, which was defined")]);
        };
        // A method that is more specific.
        put(kinds, &kind("Float64", 2), false);
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(2), Ok(1)));
        because("kind(Float64)");
        // Another one in the place of one that was found.
        put(kinds, &kind("Int64", 3), true);
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(2), Ok(3)));
        because("kind(Int64)");
        // An unrelated function.
        put(kinds, &kind("Int64", 4).replace("kind", "other"), false);
        assert_eq!(session.take_invalidations(), []);
    }
}

/// Gives an integer, or a float if it is given 0; inference cannot see which.
const ANY: &str = "
function any(n::Int64)::Any
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sitofp(Float64, n)::Float64
└──      return %3
3 ─      return n
end
";

const TOP: &str = "
function top(n::Int64)::Int64
1 ─ %1 = invoke Main.any(n::Int64)::Any
│   %2 = dynamic Main.kind(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
";

/// Methods of numbers, whose program looks for none, are there for programs that come later.
#[test]
fn methods_that_were_there_before_anybody_looked_are_found() {
    for with_any in [false, true] {
        for way in 0..4 {
            let session = session(Workers::Caller);
            let library = session.create_dylib("library").unwrap();
            let main = session.create_dylib("main").unwrap();
            main.link_against(&library).unwrap();
            let mut kinds: Vec<&str> = vec!["Float64", "Int64", "Int32", "Int16", "Int8", "UInt8"];
            kinds.extend(with_any.then_some("Any"));
            let source: String = kinds.iter().zip(1..).map(|(ty, n)| kind(ty, n)).collect();
            let define = |dylib: &Dylib, source: &str, lazy: bool| {
                let program =
                    dylib.read("p.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
                dylib.define(if lazy { program.lazy() } else { program }).unwrap();
            };
            define(&library, &source, way & 1 != 0);
            // Some are compiled before the lookup.
            assert_eq!(library.func::<(i64,), i64>("kind(Int64)").unwrap().call((0,)), Ok(2));
            define(&library, ANY, false);
            define(&main, &(TOP.to_owned() + &TOP.replace("top", "second")), way & 2 != 0);
            for name in ["top", "second"] {
                let top: Int = main.func(name).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!((top.call((0,)), top.call((5,))), (Ok(1), Ok(2)), "{name} {way} {with_any}");
            }
            assert_eq!(session.linking().check(), Ok(()));
            main.clear(Dependants::Deny).unwrap();
            library.clear(Dependants::Deny).unwrap();
            assert_eq!((session.stats().placed, session.stats().symbols), (0, 0));
        }
    }
}

/// Of the methods that a dynamic call may reach one cannot be compiled, and another body of the program calls it: that is no matter of the caller's.
#[test]
fn a_method_that_cannot_be_compiled_fails_only_the_calls_that_reach_it() {
    let first = "\
function f(x::Int64)::Int64
1 ─      return 12
end
function Base.sign(x::Int64)::Int64
1 ─ %1 = invoke Main.f(7::Int64)::Int64 noinline
└──      return %1
end
";
    let second = "\
function f(x::Any)::Int64
1 ─ %1 = Core.compilerbarrier(:type, 7)::Any
│   %2 = dynamic (x)(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function g(x::Int64)::Int64
1 ─ %1 = invoke Base.sign(7::Int64)::Int64 noinline
└──      return %1
end
function start()::Int64
1 ─ %1 = Core.compilerbarrier(:type, 5)::Any
│   %2 = invoke Main.f(%1::Any)::Int64 noinline
└──      return %2
end
";
    for level in OptLevel::ALL {
        let session = Session::new(Options::new().opt_level(level), Workers::Caller).unwrap();
        let dylib = session.create_dylib("main").unwrap();
        dylib.define(dylib.read("first.jlir", first.as_bytes()).unwrap()).unwrap();
        dylib.remove(&["f(Int64)"]).unwrap();
        dylib.define(dylib.read("second.jlir", second.as_bytes()).unwrap()).unwrap();
        let start = dylib.func::<(), i64>("start").unwrap_or_else(|error| panic!("{level:?}: {error}"));
        let thrown = start.call(()).unwrap_err().to_string();
        assert!(thrown.contains("MethodError"), "{level:?}: {thrown}");
        assert!(dylib.func::<(i64,), i64>("g").is_err(), "{level:?}: its callee cannot be compiled");
    }
}
