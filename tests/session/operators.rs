//! Dynamic operators in functions of two tiers, and redefinitions of an operator's method under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brolga::ir::{Module, Type};
use brolga::session::{Dylib, Evaluator, Signature};
use brolga::{OptLevel, Options, Program, Session, TypedFunc, Workers};
use brolga_fuzz::dynamic;

use super::session;

/// A loop over `Any`, whose sum and step are what they are at run time. Each iteration calls the host.
const LOOP: &str = "
struct Meters
    v::Int64
end
function Base.:+(x::Meters, y::Meters)::Meters
1 ─      return x
end
function total(x::Any, step::Any, n::Int64)::Any
1 ─      goto #2
2 ┄ %1 = φ (#1 => x, #3 => %4)::Any
│   %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = Base.:+(%1, step)::Any
│        invoke Main.tick(%2::Int64)::Int64
│   %6 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %1
end
function ints(n::Int64)::Int64
1 ─ %1 = invoke Main.total(0::Any, 1::Any, n::Int64)::Any noinline
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end
";

/// A sum of integers that is not the library's.
const OTHER: &str = "
function Base.:+(x::Int64, y::Int64)::Int64
1 ─ %1 = Base.add_int(x, 100)::Int64
└──      return %1
end
";

#[test]
fn generated_operators_agree_in_every_tier() {
    for seed in 0..25 {
        let text = dynamic::program(seed);
        let program =
            Program::read("dynamic", text.as_bytes()).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let mut interpreted = brolga::Evaluator::interpreted(&program);
        let session = Session::new(Options::new().opt_level(OptLevel::O2), Workers::Caller).unwrap();
        let dylib = session.create_dylib("main").unwrap();
        let read = dylib.read("dynamic", text.as_bytes()).unwrap_or_else(|error| panic!("{seed}: {error}"));
        dylib.define(read.tiered(6).iterations(3)).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let names = Module::new(session.context().view());
        let mut evaluator = Evaluator::new(&dylib, &names);
        // Twice over: the second time every type comes to code that was made for others.
        for call in dynamic::calls(seed, 5).iter().chain(&dynamic::calls(seed, 5)) {
            let parsed = program.call(call).unwrap_or_else(|error| panic!("{call}: {error}"));
            let expected = interpreted.call(&parsed).unwrap_or_else(|failure| failure.to_string());
            let got = evaluator.evaluate("call", call).and_then(|value| evaluator.show(&value));
            let got = got.unwrap_or_else(|failure| failure.to_string());
            assert_eq!(expected, got, "seed {seed}: {call}\n{text}");
            session.optimize_hot();
        }
        // A function goes up once, whatever comes afterwards.
        let mut call_all = |times| {
            for call in (0..times).flat_map(|_| dynamic::calls(seed, 5)) {
                let _ = evaluator.evaluate("call", &call);
                session.optimize_hot();
            }
            session.stats().compiled_functions
        };
        let compiled = call_all(6);
        let later = call_all(3);
        assert_eq!(later, compiled, "seed {seed}");
    }
}

/// Sums of ten rounds, redefined in the fifth round of the third call.
fn sums(tiered: bool) -> Vec<i64> {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let (dylib, host, armed) = (main.downgrade(), session.clone(), Arc::new(AtomicBool::new(false)));
    let arm = armed.clone();
    main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
        let round: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.blocking(|| {
            if round == 5 && armed.swap(false, Ordering::Relaxed) {
                define(&dylib.upgrade().expect("the session is there"), OTHER, tiered);
            }
            host.optimize_hot()
        });
        scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    define(&main, LOOP, tiered);
    let ints: TypedFunc<(i64,), i64> = main.func("ints").unwrap();
    let run = || ints.call((10,)).unwrap_or_else(|error| panic!("{error}"));
    (0..6)
        .map(|n| {
            arm.store(n == 2, Ordering::Relaxed);
            run()
        })
        .collect()
}

fn define(dylib: &Dylib, text: &str, tiered: bool) {
    let program = dylib.read("operators", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let program = if tiered { program.tiered(2).iterations(3) } else { program };
    dylib.define(program).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_running_loop_keeps_its_operator_and_the_next_call_has_the_new_one() {
    for tiered in [false, true] {
        assert_eq!(sums(tiered), [10, 10, 10, 1000, 1000, 1000], "tiered: {tiered}");
    }
}
