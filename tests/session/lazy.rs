//! Functions that are compiled at their first call, and replaced while they are called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brolga::session::{Dependants, Dylib, OnDrop};
use brolga::{CallError, ExceptionKind, TypedFunc, Workers};

use super::define::{doubles, signature};
use super::{adds, calls, session};

fn lazy(dylib: &Dylib, source: &str) {
    let program = dylib.read("lazy.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program.lazy()).unwrap_or_else(|error| panic!("{error}"));
}

fn again(dylib: &Dylib, source: &str) {
    let program = dylib.read("again.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.redefine(program).unwrap_or_else(|error| panic!("{error}"));
}

type Int = TypedFunc<(i64,), i64>;

fn compile_error(result: Result<i64, CallError>) -> String {
    match result {
        Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::CompileError => thrown.message,
        other => panic!("{other:?}"),
    }
}

/// `even` and `odd` call each other.
const PARITY: &str = "
function even(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─      return 1
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.odd(%4::Int64)::Int64
└──      return %5
end
function odd(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─      return 0
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.even(%4::Int64)::Int64
└──      return %5
end
";

#[test]
fn a_look_up_compiles_nothing_and_a_call_what_it_reaches() {
    for workers in [Workers::Caller, Workers::Pool(1), Workers::Seeded(3)] {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        main.define(main.read("p.jlir", PARITY.as_bytes()).unwrap().replaceable()).unwrap();
        let even: Int = main.func("even").unwrap();
        assert_eq!(session.stats().compiled_functions, 0);
        assert_eq!(even.call((0,)), Ok(1));
        assert_eq!(session.stats().compiled_functions, 1);
        assert_eq!(even.call((1001,)), Ok(0));
        assert_eq!(session.stats().compiled_functions, 2);
        main.function("odd").unwrap().compile().unwrap();
        assert_eq!(session.stats().compiled_functions, 2);
        assert_eq!(session.linking().check(), Ok(()));
    }
}

#[test]
fn calls_of_a_redefined_function_reach_the_new_one() {
    let session = session(Workers::Pool(1));
    let library = session.create_dylib("library").unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    lazy(&library, &adds("base", 1));
    lazy(&main, &calls("top", "base"));
    let (top, base): (Int, Int) = (main.func("top").unwrap(), main.func("base").unwrap());
    assert_eq!((top.call((0,)), base.call((0,))), (Ok(2), Ok(1)));
    for n in 2..20 {
        again(&library, &adds("base", n));
        assert_eq!((top.call((0,)), base.call((0,))), (Ok(n + 1), Ok(n)));
    }
    // One that was never compiled is replaced as well.
    again(&library, &adds("base", 50));
    again(&library, &adds("base", 60));
    assert_eq!(top.call((0,)), Ok(61));
    // With other types it is another function.
    let float = "function base(x::Int64)::Float64\n1 ─      return 1.5\nend\n";
    again(&library, float);
    assert_eq!(library.func::<(i64,), f64>("base").unwrap().call((0,)), Ok(1.5));
}

#[test]
fn only_what_is_replaceable_is_called_and_never_inlined() {
    for (replaceable, recompiled) in [(false, 2), (true, 1)] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let source = adds("base", 1) + &calls("top", "base");
        let program = main.read("p.jlir", source.as_bytes()).unwrap();
        main.define(if replaceable { program.replaceable() } else { program.lazy() }).unwrap();
        let top: Int = main.func("top").unwrap();
        assert_eq!(top.call((0,)), Ok(2));
        let before = session.stats().compiled_functions;
        again(&main, &adds("base", 10));
        assert_eq!(top.call((0,)), Ok(11));
        assert_eq!(main.func::<(i64,), i64>("base").unwrap().call((0,)), Ok(10));
        // A caller that has inlined it is compiled again, too.
        assert_eq!(session.stats().compiled_functions - before, recompiled);
    }
}

#[test]
fn a_caller_that_inlined_a_redefined_function_is_recompiled_and_the_session_says_why() {
    for tiered in [false, true] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let source = adds("base", 1)
            + &calls("middle", "base")
            + &calls("other", "base")
            + &calls("top", "middle")
            + &adds("apart", 5);
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        let program = main.read("p.jlir", source.as_bytes()).unwrap();
        main.tracked_by(&tracker).define(if tiered { program.tiered(2) } else { program.lazy() }).unwrap();
        let [top, other, apart]: [Int; 3] = ["top", "other", "apart"].map(|name| main.func(name).unwrap());
        for _ in 0..4 {
            assert_eq!((top.call((0,)), other.call((0,)), apart.call((0,))), (Ok(3), Ok(2), Ok(5)));
            session.optimize_hot();
        }
        let mut placed = Vec::new();
        for n in [10, 20, 30, 40] {
            again(&main, &adds("base", n));
            assert_eq!((top.call((0,)), other.call((0,)), apart.call((0,))), (Ok(n + 2), Ok(n + 1), Ok(5)));
            placed.push(session.stats().placed);
        }
        let told: Vec<String> = session.take_invalidations().iter().map(ToString::to_string).collect();
        let expected = [
            "`middle(Int64)` of `main` depends on `base(Int64)`, which was defined",
            "`other(Int64)` of `main` depends on `base(Int64)`, which was defined",
            "`top(Int64)` of `main` depends on `middle(Int64)`, which depends on `base(Int64)`, which was defined",
        ];
        assert_eq!(told, expected, "once: then they call it through its slot");
        assert!(session.take_invalidations().is_empty());
        assert_eq!(placed[1..], [placed[1]; 3], "the old code is gone");
        // They are removed with what they were defined with.
        tracker.remove(Dependants::Tombstone).unwrap();
        assert!(main.function("top").is_err() && main.function("middle").is_err());
        assert_eq!(main.func::<(i64,), i64>("base").unwrap().call((0,)), Ok(40));
        main.clear(Dependants::Deny).unwrap();
        assert_eq!((session.stats().placed, session.stats().symbols), (0, 0));
    }
}

#[test]
fn a_replaced_or_removed_caller_is_not_recompiled() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    lazy(&main, &(adds("base", 1) + &calls("middle", "base") + &calls("other", "base")));
    let [middle, other]: [Int; 2] = ["middle", "other"].map(|name| main.func(name).unwrap());
    assert_eq!((middle.call((0,)), other.call((0,))), (Ok(2), Ok(2)));
    // This one takes nothing in, and what changes is nothing to it.
    main.redefine(main.read("m.jlir", adds("middle", 100).as_bytes()).unwrap().replaceable()).unwrap();
    assert_eq!(middle.call((0,)), Ok(100));
    again(&main, &adds("base", 10));
    assert_eq!((middle.call((0,)), other.call((0,))), (Ok(100), Ok(11)));
    main.remove(&["other"]).unwrap();
    session.take_invalidations();
    again(&main, &adds("base", 20));
    assert_eq!(session.take_invalidations(), []);
    assert!(main.function("other").is_err());
}

#[test]
fn a_caller_in_another_dylib_is_recompiled_as_long_as_the_types_fit() {
    for replaceable in [false, true] {
        let session = session(Workers::Pool(1));
        let library = session.create_dylib("library").unwrap();
        let main = session.create_dylib("main").unwrap();
        main.link_against(&library).unwrap();
        let inlinable = |n: i64| library.read("l.jlir", adds("base", n).as_bytes()).unwrap().inlinable();
        library.define(inlinable(1).lazy()).unwrap();
        let program = main.read("m.jlir", calls("top", "base").as_bytes()).unwrap();
        main.define(if replaceable { program.replaceable() } else { program.lazy() }).unwrap();
        let top: Int = main.func("top").unwrap();
        assert_eq!(top.call((0,)), Ok(2));
        for n in [10, 20, 30] {
            library.redefine(inlinable(n)).unwrap();
            assert_eq!(top.call((0,)), Ok(n + 1));
            let told = session.take_invalidations();
            assert_eq!(told.len(), 1, "its new body is inlined again: {told:?}");
            assert_eq!(&*told[0].function.dylib, "main");
        }
        let float = "function base(x::Int64)::Float64\n1 ─      return 1.5\nend\n";
        let redefined = library.redefine(library.read("l.jlir", float.as_bytes()).unwrap()).unwrap();
        let said: Vec<String> = redefined.retyped.iter().map(ToString::to_string).collect();
        let [said] = said.as_slice() else { panic!("one function: {said:?}") };
        assert!(
            said.starts_with("`base(Int64)` of `library` returns `Float64` now, and returned `Int64` before"),
            "{said}"
        );
        assert_eq!(top.call((0,)), Ok(31), "with another type it is another function");
        assert_eq!(library.func::<(i64,), f64>("base").unwrap().call((0,)), Ok(1.5));
    }
}

#[test]
fn a_deferred_recompilation_happens_at_the_next_call() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    super::define(&library, &adds("eager", 0));
    let base = |n: i64| library.read("b.jlir", adds("base", n).as_bytes()).unwrap().inlinable();
    library.define(base(1).lazy()).unwrap();
    lazy(&main, &calls("top", "base").replace("Base.add_int(%1, 1)", "invoke Main.eager(%1::Int64)"));
    // `top` is being compiled, and waits for `eager`, when `base` is redefined.
    let (told, heard) = std::sync::mpsc::channel();
    let eager = library.promise_again(&[signature("eager")], move |dylib| {
        let base = dylib.read("b.jlir", adds("base", 10).as_bytes())?.inlinable();
        told.send(dylib.redefine(base)?)?;
        Ok(doubles(dylib, "eager")?)
    });
    eager.unwrap();
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((1,)), Ok(4), "the call began before");
    assert_eq!(top.call((1,)), Ok(22));
    let redefined = heard.recv().unwrap();
    let later: Vec<String> = redefined.later.iter().map(ToString::to_string).collect();
    assert_eq!(later, ["`top(Int64)` of `main`"]);
    library.redefine(base(20)).unwrap();
    assert_eq!(top.call((1,)), Ok(42));
    // A caller that does not fit keeps its code, and is named.
    let float = "function base(x::Int64)::Float64\n1 ─      return 1.5\nend\n";
    let redefined = library.redefine(library.read("b.jlir", float.as_bytes()).unwrap()).unwrap();
    assert_eq!(redefined.later, []);
    let kept: Vec<String> = redefined.kept.iter().map(ToString::to_string).collect();
    assert_eq!(kept, ["`top(Int64)` of `main`"]);
    assert_eq!(top.call((1,)), Ok(42));
}

#[test]
fn types_of_one_name_from_two_programs_are_compared_by_what_they_hold() {
    let get = |fields: &str, x: i64| {
        let body = format!("1 ─ %1 = Base.getfield(p, :x)::Int64\n│   %2 = Base.add_int(%1, {x})::Int64");
        format!("struct P\n{fields}end\nfunction get(p::P)::Int64\n{body}\n└──      return %2\nend\n")
    };
    let program =
        |text: &str| brolga::Program::read("p.jlir", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    let (x_y, y_x) = ("    x::Int64\n    y::Int64\n", "    y::Int64\n    x::Int64\n");
    let top = "function top(n::Int64)::Int64\n1 ─ %1 = %new(P, n, 7)::P\n\
               │   %2 = invoke Main.get(%1::P)::Int64\n└──      return %2\nend\n";
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let define = |text: &str, again: bool| {
        let definitions = brolga::session::Definitions::from(program(text)).replaceable();
        match again {
            true => drop(main.redefine(definitions).unwrap()),
            false => main.define(definitions).unwrap(),
        }
    };
    define(&(get(x_y, 0) + top + &top.replace("top", "late")), false);
    define(&get(x_y, 20), true);
    assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((3,)), Ok(23));
    define(&get(y_x, 10), true);
    let error = main.function("late").unwrap().compile().unwrap_err();
    let causes = error.causes().join("; ");
    let expected = "with a `P` of another program, which is laid out in another way";
    assert!(causes.contains(expected), "{error}: {causes}");
}

/// Programs with objects, and with calls that are decided at run time, have all their functions under each way.
#[test]
fn programs_with_objects_are_compiled_function_by_function() {
    for entry in std::fs::read_dir("tests/objects").unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        // Without what a program alone gets of Base.
        let module = brolga::unstable::read_unit("objects", &bytes).unwrap().1.module;
        let symbols: Vec<String> = module.funcs().map(|(_, func)| func.symbol(&module.cx)).collect();
        // A session refuses calls of what is not there.
        if !brolga::ir::verify::missing_callees(&module, |_| true).is_empty() {
            continue;
        }
        for way in 0..3 {
            let session = session(Workers::Pool(1));
            let main = session.create_dylib("main").unwrap();
            main.add_process_symbols(|_| true).unwrap();
            let definitions = main.read("objects", &bytes).unwrap();
            let definitions = match way {
                0 => definitions,
                1 => definitions.lazy(),
                _ => definitions.replaceable(),
            };
            main.define(definitions).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for symbol in &symbols {
                let compiled = main.function(symbol).and_then(|function| function.compile());
                compiled.unwrap_or_else(|error| panic!("{} {symbol}: {error}", path.display()));
            }
            assert_eq!(session.linking().check(), Ok(()));
        }
    }
}

#[test]
fn calls_of_uncompilable_and_removed_functions_throw() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let nowhere = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:brolga_is_nowhere), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    lazy(&main, nowhere);
    let f: Int = main.func("f").unwrap();
    let message = compile_error(f.call((1,)));
    assert!(message.contains("brolga_is_nowhere"), "{message}");
    let causes = main.function("f").unwrap().compile().unwrap_err().causes();
    assert!(causes[0].contains("unresolved"), "{causes:?}");
    again(&main, &adds("f", 1));
    assert_eq!(f.call((1,)), Ok(2));

    let tracker = main.create_tracker(OnDrop::Keep).unwrap();
    let base = main.read("base.jlir", adds("base", 1).as_bytes()).unwrap();
    main.tracked_by(&tracker).define(base.lazy()).unwrap();
    lazy(&main, &calls("top", "base"));
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((1,)), Ok(3));
    let denied = tracker.remove(Dependants::Deny).unwrap_err().to_string();
    assert_eq!(denied, "`base(Int64)` of `main` used by `top(Int64)` of `main`");
    tracker.remove(Dependants::Tombstone).unwrap();
    let message = compile_error(top.call((1,)));
    assert!(message.contains("`base(Int64)` has been removed"), "{message}");
    session.end();
    compile_error(f.call((1,)));
}

#[test]
fn eager_code_calls_lazy_code_and_the_other_way_round() {
    let session = session(Workers::Pool(2));
    let main = session.create_dylib("main").unwrap();
    lazy(&main, &adds("low", 1));
    main.define(main.read("m.jlir", calls("middle", "low").as_bytes()).unwrap()).unwrap();
    lazy(&main, &calls("high", "middle"));
    let high: Int = main.func("high").unwrap();
    assert_eq!(session.stats().compiled_functions, 0);
    assert_eq!(high.call((0,)), Ok(3));
    again(&main, &adds("low", 10));
    assert_eq!(high.call((0,)), Ok(12));
}

/// Threads run through code that others replace. `BROLGA_STRESS` makes it longer.
#[test]
fn functions_are_replaced_under_threads_that_call_them() {
    #[expect(clippy::disallowed_methods, reason = "a test that may be asked to run longer")]
    let rounds: i64 = std::env::var("BROLGA_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    const COUNT: usize = 20;
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    for n in 0..COUNT {
        let source = adds(&format!("base{n}"), 0) + &calls(&format!("top{n}"), &format!("base{n}"));
        main.define(main.read("p.jlir", source.as_bytes()).unwrap().replaceable()).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..6)
            .map(|caller| {
                let (main, stop) = (&main, &stop);
                let tops: Vec<Int> = (0..COUNT).map(|n| main.func(&format!("top{n}")).unwrap()).collect();
                scope.spawn(move || {
                    let mut calls = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        for at in 0..COUNT {
                            // One for `x`, one for the call, and an even number for each version.
                            assert_eq!(tops[(at + caller) % COUNT].call((1,)).unwrap() % 2, 0);
                            calls += 1;
                        }
                    }
                    calls
                })
            })
            .collect();
        for round in 1..=rounds {
            let n = (round as usize * 7) % COUNT;
            let source = adds(&format!("base{n}"), 2 * round);
            // Code that is being compiled right now is busy.
            while main.redefine(main.read("again.jlir", source.as_bytes()).unwrap()).is_err() {
                thread::yield_now();
            }
            assert_eq!(main.func::<(i64,), i64>(&format!("base{n}")).unwrap().call((0,)), Ok(2 * round));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(callers.into_iter().map(|caller| caller.join().unwrap()).sum::<u64>() > 0);
    });
    assert_eq!(session.linking().check(), Ok(()));
}
