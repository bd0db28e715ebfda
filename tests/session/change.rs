//! Redefinition, removal, initialisers, the end.

use std::sync::Arc;

use brolga::ir::Type;
use brolga::session::{Definitions, Dependants, OnDrop, Signature};
use brolga::{OptLevel, Options, Program, Session, SessionError, Workers};

use super::{Ending, adds, calls, define, dylib, session};

#[test]
fn a_lookup_after_a_redefinition_gets_the_new_one() {
    let session = session(Workers::Pool(1));
    let main = dylib(&session, "main", &adds("f", 1));
    let old = main.func::<(i64,), i64>("f").unwrap();
    main.redefine(main.read("f.jlir", adds("f", 2).as_bytes()).unwrap()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((0,)), Ok(2));
    assert_eq!(old.call((0,)), Ok(2), "a call from Rust is in the newest world");
}

#[test]
fn memory_is_flat_over_redefinitions() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &adds("f", 0));
    let mut live = Vec::new();
    for n in 1..200 {
        main.redefine(main.read("f.jlir", adds("f", n).as_bytes()).unwrap()).unwrap();
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((0,)), Ok(n));
        live.push((session.stats().placed, session.stats().symbols, session.stats().units));
    }
    // The function and its body.
    assert!(live.iter().all(|stats| *stats == (2, 2, 2)), "{live:?}");
}

#[test]
fn removal_asks_what_becomes_of_users() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    let tracker = library.create_tracker(OnDrop::Keep).unwrap();
    library.tracked_by(&tracker).define(library.read("l.jlir", adds("base", 1).as_bytes()).unwrap()).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    define(&main, &calls("top", "base"));
    let top = main.func::<(i64,), i64>("top").unwrap();
    let denied = tracker.remove(Dependants::Deny).unwrap_err().to_string();
    assert_eq!(denied, "`base(Int64)` of `library` used by `top(Int64)` of `main`");
    tracker.remove(Dependants::Cascade).unwrap();
    assert!(main.function("top").is_err());
    assert_eq!(session.stats().placed, 0);
    assert_eq!(top.call((1,)), Ok(3), "a handle keeps its code, and what this calls");
    let again = tracker.remove(Dependants::Deny).unwrap_err().to_string();
    assert_eq!(again, "the definitions were removed");
}

/// The references of a chain of programs are dropped one by one, and not by a recursion as deep as the chain.
#[test]
fn a_long_chain_of_programs_goes_on_a_small_stack() {
    const LENGTH: usize = 1500;
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &adds("f0", 1));
    for n in 1..LENGTH {
        define(&main, &calls(&format!("f{n}"), &format!("f{}", n - 1)));
        main.function(&format!("f{n}")).unwrap();
    }
    let top = main.func::<(i64,), i64>(&format!("f{}", LENGTH - 1)).unwrap();
    main.clear(Dependants::Deny).unwrap();
    assert_eq!(top.call((0,)), Ok(LENGTH as i64));
    let before = session.stats().code.in_use;
    let end = std::thread::Builder::new().stack_size(64 << 10);
    end.spawn(move || drop(top)).unwrap().join().unwrap();
    assert!(session.stats().code.in_use < before);
}

#[test]
fn a_tracker_that_is_dropped_removes_if_it_was_told_to() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    for (on_drop, stays) in [(OnDrop::Remove, false), (OnDrop::Keep, true)] {
        let tracker = main.create_tracker(on_drop).unwrap();
        main.tracked_by(&tracker).define(main.read("l.jlir", adds("f", 1).as_bytes()).unwrap()).unwrap();
        main.function("f").unwrap();
        drop(tracker);
        assert_eq!(main.function("f").is_ok(), stays);
    }
}

#[test]
fn clearing_leaves_an_empty_dylib() {
    let session = session(Workers::Pool(1));
    let main = dylib(&session, "main", &(adds("a", 1) + &adds("b", 1)));
    main.function("a").unwrap();
    main.clear(Dependants::Deny).unwrap();
    assert!(matches!(main.function("a"), Err(SessionError::Link(_))));
    define(&main, &adds("a", 5));
    assert_eq!(main.func::<(i64,), i64>("a").unwrap().call((0,)), Ok(5));
    assert_eq!(session.stats().placed, 2, "the function and its body");
}

/// A function that prints a word.
fn prints(name: &str, word: &str) -> String {
    format!(
        "function {name}()::Nothing\n1 ─      invoke Base.print(\"{word} \"::String)::Nothing\n└──      return nothing\nend\n"
    )
}

#[test]
fn initialisers_run_once_callees_first_and_finalisers_the_other_way() {
    let session = session(Workers::Pool(1));
    let printed = || String::from_utf8(session.runtime().sink().take_captured()).unwrap();
    let library = session.create_dylib("library").unwrap();
    let source = prints("up", "library-up") + &prints("down", "library-down");
    library
        .define(library.read("l.jlir", source.as_bytes()).unwrap().initializer("up").finalizer("down"))
        .unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    let source = prints("start", "main-up") + &prints("stop", "main-down");
    main.define(main.read("m.jlir", source.as_bytes()).unwrap().initializer("start").finalizer("stop()"))
        .unwrap();
    main.open().unwrap();
    assert_eq!(printed(), "library-up main-up ");
    main.open().unwrap();
    assert_eq!(printed(), "", "it is open");
    main.define(main.read("n.jlir", prints("more", "more").as_bytes()).unwrap().initializer("more")).unwrap();
    main.update().unwrap();
    assert_eq!(printed(), "more ");
    assert!(main.close().unwrap().is_empty());
    assert_eq!(printed(), "", "it was opened twice");
    main.close().unwrap();
    assert_eq!(printed(), "main-down library-down ");
    main.open().unwrap();
    assert_eq!(printed(), "library-up main-up more ");
    session.end();
    assert_eq!(printed(), "main-down library-down ");
    assert!(session.end().is_empty());
    assert_eq!(printed(), "");
}

#[test]
fn an_initialiser_that_throws_is_named() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let source = "function bad()::Nothing\n1 ─      invoke Base.error(\"no luck\"::String)::Union{}\n└──      unreachable\nend\n";
    main.define(main.read("m.jlir", source.as_bytes()).unwrap().initializer("bad")).unwrap();
    let error = main.open().unwrap_err().to_string();
    assert!(error.contains("bad") && error.contains("no luck"), "{error}");
    let unknown = main.read("m.jlir", adds("f", 1).as_bytes()).unwrap().initializer("g");
    assert!(matches!(main.define(unknown), Err(SessionError::NotFunction { .. })));
}

#[test]
fn the_end_frees_functions_without_handles() {
    let session = session(Workers::Pool(2));
    let main = dylib(&session, "main", &(adds("a", 1) + &adds("b", 1)));
    let held = main.func::<(i64,), i64>("a").unwrap();
    main.function("b").unwrap();
    assert_eq!(session.stats().placed, 4, "two functions and their bodies");
    session.end();
    assert_eq!((session.stats().placed, session.stats().symbols), (0, 0));
    assert_eq!(held.call((1,)), Ok(2));
    assert!(session.create_dylib("late").is_err());
}

/// A library with `thing(Int64)`, which gives what it is told.
fn thing(result: &str, value: &str) -> String {
    format!("function thing(x::Int64)::{result}\n1 ─      return {value}\nend\n")
}

#[test]
fn callers_are_not_linked_to_a_function_that_gives_something_else_than_they_know() {
    let session = session(Workers::Caller);
    let library = dylib(&session, "library", &thing("Int64", "5"));
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    let text = |name: &str| {
        format!(
            "function {name}(x::Int64)::Int64\n1 ─ %1 = invoke Main.thing(x::Int64)::Int64\n└──      return %1\nend\n"
        )
    };
    define(&main, &(text("early") + &text("late")));
    assert_eq!(main.func::<(i64,), i64>("early").unwrap().call((0,)), Ok(5));
    let again = [0; 2].map(|_| main.read("late.jlir", text("late").as_bytes()).unwrap());
    for ((result, value), again) in [("String", "\"five\""), ("Float64", "5.0")].into_iter().zip(again) {
        library.redefine(library.read("l.jlir", thing(result, value).as_bytes()).unwrap()).unwrap();
        let error = main.function("late").unwrap_err();
        let causes = error.causes().join("; ");
        let expected = format!("`thing(Int64)` is (Int64)::{result} by");
        assert!(causes.contains(&expected), "{error}: {causes}");
        main.redefine(again).unwrap();
    }
    library.redefine(library.read("l.jlir", thing("Int64", "6").as_bytes()).unwrap()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("late").unwrap().call((0,)), Ok(6));
}

/// A program with its own types, which nothing is imported into.
fn alone(source: &str) -> Program {
    Program::read("alone.jlir", source.as_bytes()).unwrap()
}

/// `middle` and `top` have inlined `base`, or know what it does; a redefinition recompiles them.
#[test]
fn callers_of_a_program_with_types_of_its_own_follow_a_redefinition() {
    for level in [OptLevel::O0, OptLevel::O2] {
        for is_lazy in [false, true] {
            let session =
                Session::new(crate::doors::open(Options::new()).opt_level(level), Workers::Caller).unwrap();
            let main = session.create_dylib("main").unwrap();
            let source = adds("base", 1) + &calls("middle", "base") + &calls("top", "middle");
            let program = Definitions::from(alone(&source));
            main.define(if is_lazy { program.lazy() } else { program }).unwrap();
            let top = main.func::<(i64,), i64>("top").unwrap();
            assert_eq!(top.call((0,)), Ok(3));
            for n in [10, 20] {
                main.redefine(alone(&adds("base", n))).unwrap();
                assert_eq!(top.call((0,)), Ok(n + 2), "{level:?}, lazy: {is_lazy}");
            }
            main.redefine(main.read("base.jlir", adds("base", 30).as_bytes()).unwrap()).unwrap();
            assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((0,)), Ok(32));
        }
    }
}

/// A handle keeps what its code calls, in cycles too, when nothing else does; with the last one all of it goes.
#[test]
fn handles_keep_what_their_code_calls_and_nothing_else() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &(adds("base", 1) + &adds("other", 5)));
    define(&main, &calls("middle", "base"));
    define(&main, &calls("top", "middle"));
    let held = ["middle", "top"].map(|name| main.func::<(i64,), i64>(name).unwrap());
    let other = main.func::<(i64,), i64>("other").unwrap();
    session.end();
    assert_eq!(session.stats().placed, 0);
    let [middle, top] = held;
    let freed = session.stats().code.freed;
    drop(top);
    assert_eq!(session.stats().code.freed, freed + 1, "`top` alone");
    assert_eq!(middle.call((1,)), Ok(3));
    drop(middle);
    assert_eq!(session.stats().code.freed, freed + 3);
    assert_eq!(other.call((1,)), Ok(6));
}

/// A closure takes the place of another one, or of a function of a program, under its callers.
#[test]
fn functions_of_the_host_are_replaced() {
    let kinds: [fn(Definitions) -> Definitions; 3] =
        [Definitions::lazy, |program| program, |program| program.tiered(2)];
    for kind in kinds {
        let session = Ending(super::session(Workers::Caller));
        let dylib = session.create_dylib("main").unwrap();
        let calls = "function user(n::Int64)::Int64\n1 ─ %1 = invoke Main.host(n::Int64)::Int64\n│   %2 = Base.add_int(%1, 1)::Int64\n└──      return %2\nend\n";
        let own =
            "function host(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 7)::Int64\n└──      return %1\nend\n";
        let held = Arc::new(());
        let first = held.clone();
        dylib.define_fn("host", move |x: i64| x + Arc::strong_count(&first) as i64 - 1).unwrap();
        dylib.define(kind(dylib.read("user.jlir", calls.as_bytes()).unwrap())).unwrap();
        let user = dylib.func::<(i64,), i64>("user").unwrap();
        assert_eq!(user.call((1,)), Ok(3));
        assert!(dylib.define_fn("host", |x: i64| x).is_err(), "it is defined");
        dylib.redefine_fn("host", |x: i64| x + 100).unwrap();
        assert_eq!(user.call((1,)), Ok(102));
        dylib.redefine(dylib.read("own.jlir", own.as_bytes()).unwrap()).unwrap();
        assert_eq!(user.call((1,)), Ok(9));
        dylib.redefine_fn("host", |x: i64| -> Result<i64, String> { Err(format!("no {x}")) }).unwrap();
        assert!(user.call((1,)).unwrap_err().to_string().contains("no 1"));
        let signature = Signature::new("host", &[Type::INT64], Type::INT64);
        dylib.redefine_host(&signature, |_, args| Ok(args[1])).unwrap();
        assert_eq!(user.call((1,)), Ok(2));
        session.runtime().free_retired();
        assert_eq!(Arc::strong_count(&held), 1, "the first closure is dropped");
    }
}
