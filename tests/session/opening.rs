//! Dylibs that are opened and closed: initialisers, finalisers, and the state after their failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brolga::ir::Type;
use brolga::session::linking;
use brolga::session::{Dependants, Dylib, OnDrop, Signature};
use brolga::{Session, SessionError, Workers};

use super::{adds, calls, define, session};

/// A function that prints its name.
fn prints(name: &str) -> String {
    format!(
        "function {name}()::Nothing\n1 ─      invoke Base.print(\"{name} \"::String)::Nothing\n└──      return nothing\nend\n"
    )
}

/// A function that throws.
fn throws(name: &str) -> String {
    format!(
        "function {name}()::Nothing\n1 ─      invoke Base.error(\"no luck\"::String)::Union{{}}\n└──      unreachable\nend\n"
    )
}

fn printed(session: &Session) -> String {
    String::from_utf8(session.runtime().sink().take_captured()).unwrap()
}

fn up_and_down(dylib: &Dylib, up: &str, down: &str, is_lazy: bool) {
    let program = dylib.read("p.jlir", (prints(up) + &prints(down)).as_bytes()).unwrap();
    let program = program.initializer(up).finalizer(down);
    dylib.define(if is_lazy { program.lazy() } else { program }).unwrap();
}

#[test]
fn dylibs_initialised_before_one_that_throws_are_finalised() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    up_and_down(&library, "up", "down", false);
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    main.define(main.read("m.jlir", throws("bad").as_bytes()).unwrap().initializer("bad")).unwrap();
    for _ in 0..2 {
        assert!(main.open().is_err());
        assert_eq!(printed(&session), "up down ");
        assert!(main.close().is_err(), "it is not open");
    }
    assert!(session.end().is_empty());
    assert_eq!(printed(&session), "");
}

#[test]
fn a_dylib_that_cannot_be_closed_is_not_opened() {
    for is_lazy in [false, true] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        // Nothing has this C symbol.
        let call = "$(Expr(:foreigncall, :(:brolga_is_nowhere), Nothing, svec(), 0, :(:ccall)))::Nothing";
        let down = format!("function down()::Nothing\n1 ─      {call}\n└──      return nothing\nend\n");
        let program = main.read("m.jlir", (prints("up") + &down).as_bytes()).unwrap();
        let program = program.initializer("up").finalizer("down");
        main.define(if is_lazy { program.lazy() } else { program }).unwrap();
        for _ in 0..2 {
            assert!(main.open().is_err(), "lazy: {is_lazy}");
            assert_eq!(printed(&session), "", "nothing has run");
            assert!(main.close().is_err(), "it is not open");
        }
    }
}

#[test]
fn exceptions_of_finalisers_in_a_failed_opening_are_reported() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    let program = prints("up") + &throws("down") + &throws("below");
    let program = library.read("p.jlir", program.as_bytes()).unwrap();
    library.define(program.initializer("up").finalizer("down").finalizer("below")).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    main.define(main.read("m.jlir", throws("bad").as_bytes()).unwrap().initializer("bad")).unwrap();
    let error = main.open().unwrap_err();
    let SessionError::TakenBack { why: Some(why), thrown } = &error else { panic!("{error}") };
    assert!(why.to_string().contains("bad"), "{why}");
    let thrown: Vec<String> = thrown.iter().map(ToString::to_string).collect();
    assert!(thrown.len() == 2 && thrown[0].contains("below") && thrown[1].contains("down"), "{thrown:?}");
    let text = error.to_string();
    assert!(["bad", "below", "down"].iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn an_initialiser_that_failed_runs_when_its_function_is_redefined() {
    for workers in [Workers::Caller, Workers::Pool(2)] {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        // Nothing has this C symbol.
        let call = "$(Expr(:foreigncall, :(:brolga_is_nowhere), Nothing, svec(), 0, :(:ccall)))::Nothing";
        let bad = format!("function up()::Nothing\n1 ─      {call}\n└──      return nothing\nend\n");
        main.define(main.read("m.jlir", bad.as_bytes()).unwrap().initializer("up")).unwrap();
        for _ in 0..2 {
            let error = main.open().unwrap_err();
            assert!(
                error.causes().last().is_some_and(|root| root.contains("brolga_is_nowhere")),
                "{error:?}"
            );
        }
        // Without a word of its being an initialiser.
        main.redefine(main.read("m.jlir", prints("up").as_bytes()).unwrap()).unwrap();
        main.open().unwrap();
        assert_eq!(printed(&session), "up ");
        main.close().unwrap();
    }
}

#[test]
fn a_finaliser_needs_no_initialiser() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("m.jlir", prints("down").as_bytes()).unwrap().finalizer("down")).unwrap();
    main.open().unwrap();
    assert!(main.close().unwrap().is_empty());
    assert_eq!(printed(&session), "down ");
    main.open().unwrap();
    assert!(session.end().is_empty());
    assert_eq!(printed(&session), "down ");
}

/// Defines `hold`, which says that it was called, and waits until it may continue.
fn define_hold(main: &Dylib, is_in: &'static AtomicBool, goes_on: &'static AtomicBool) {
    let hold = Signature::new("hold", &[], Type::INT64);
    let held = main.define_host(&hold, |scope, _| {
        scope.blocking(|| {
            is_in.store(true, Ordering::SeqCst);
            while !goes_on.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
    });
    held.unwrap();
}

#[test]
fn a_session_ends_behind_what_another_thread_opens() {
    static IS_IN: AtomicBool = AtomicBool::new(false);
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    define_hold(&main, &IS_IN, &GOES_ON);
    main.define(main.read("m.jlir", prints("helper").as_bytes()).unwrap().lazy()).unwrap();
    let up = "function up()::Nothing\n1 ─ %1 = invoke Main.hold()::Int64\n\
              │        invoke Main.helper()::Nothing\n└──      return nothing\nend\n";
    let program = main.read("m.jlir", (up.to_owned() + &prints("down")).as_bytes()).unwrap();
    main.define(program.initializer("up").finalizer("down")).unwrap();
    thread::scope(|scope| {
        let opened = scope.spawn(|| main.open());
        while !IS_IN.load(Ordering::SeqCst) {
            assert!(!opened.is_finished(), "it is not held");
            thread::yield_now();
        }
        let end = scope.spawn(|| session.end());
        while main.create_tracker(OnDrop::Remove).is_ok() {
            thread::yield_now();
        }
        let is_early = (0..1000).any(|_| {
            thread::yield_now();
            end.is_finished()
        });
        GOES_ON.store(true, Ordering::SeqCst);
        assert!(!is_early, "the initialiser had not run");
        opened.join().unwrap().unwrap();
        assert!(end.join().unwrap().is_empty());
    });
    assert_eq!(printed(&session), "helper down ");
    assert!(main.open().is_err() && main.update().is_err() && main.close().is_err());
}

#[test]
fn a_second_opening_waits_for_the_first() {
    static IS_IN: AtomicBool = AtomicBool::new(false);
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    define_hold(&main, &IS_IN, &GOES_ON);
    let up = "function up()::Nothing\n1 ─ %1 = invoke Main.hold()::Int64\n└──      return nothing\nend\n";
    main.define(main.read("m.jlir", up.as_bytes()).unwrap().initializer("up")).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| main.open());
        while !IS_IN.load(Ordering::SeqCst) {
            assert!(!first.is_finished(), "it is not held");
            thread::yield_now();
        }
        let second = scope.spawn(|| main.open());
        let is_early = (0..1000).any(|_| {
            thread::yield_now();
            second.is_finished()
        });
        // A waiting thread holds up no collection.
        session.runtime().enter(|scope| scope.collect()).unwrap();
        GOES_ON.store(true, Ordering::SeqCst);
        assert!(!is_early, "the initialiser had not run");
        assert!(first.join().unwrap().is_ok() && second.join().unwrap().is_ok());
    });
    assert!(main.close().is_ok() && main.close().is_ok() && main.close().is_err());
}

#[test]
fn a_dylib_that_was_closed_is_no_hindrance_to_others() {
    let session = session(Workers::Caller);
    let [main, library] = ["main", "library"].map(|name| session.create_dylib(name).unwrap());
    main.link_against(&library).unwrap();
    define(&main, &(adds("f", 1) + &adds("g", 2)));
    main.function("f").unwrap();
    session.close_dylibs(&[&library], Dependants::Deny).unwrap();
    assert_eq!(main.func::<(i64,), i64>("g").unwrap().call((0,)), Ok(2));
    define(&main, &adds("h", 3));
    assert_eq!(main.func::<(i64,), i64>("h").unwrap().call((0,)), Ok(3));
    main.open().unwrap();
    main.close().unwrap();
    let error = library.function("f").unwrap_err();
    assert!(matches!(error, SessionError::Link(linking::Error::DylibClosed { .. })), "{error}");
}

#[test]
fn finalisers_may_need_what_was_not_compiled_when_the_session_ends() {
    for is_finaliser_lazy in [false, true] {
        for workers in [Workers::Caller, Workers::Pool(1), Workers::Seeded(1)] {
            let session = session(workers);
            let main = session.create_dylib("main").unwrap();
            main.define(main.read("m.jlir", prints("helper").as_bytes()).unwrap().lazy()).unwrap();
            let bye = prints("bye").replace("1 ─ ", "1 ─      invoke Main.helper()::Nothing\n│   ");
            let program = main.read("m.jlir", bye.as_bytes()).unwrap().finalizer("bye");
            main.define(if is_finaliser_lazy { program.lazy() } else { program }).unwrap();
            main.open().unwrap();
            let thrown = session.end();
            assert!(thrown.is_empty(), "{thrown:?}");
            assert_eq!(printed(&session), "helper bye ");
        }
    }
}

#[test]
fn the_end_of_the_session_completes_pending_lookups() {
    let session = session(Workers::Seeded(1));
    let main = session.create_dylib("main").unwrap();
    define(&main, &(adds("g", 1) + &calls("f", "g")));
    let asked = main.linking().lookup([session.linking().intern("f(Int64)")]);
    assert!(!asked.is_done());
    assert!(session.end().is_empty());
    assert_eq!(asked.wait().unwrap_or_else(|error| panic!("{error}")).len(), 1);
    assert!(main.function("f").is_err());
}

#[test]
fn initialisers_run_by_their_priorities_then_in_the_order_of_their_definitions() {
    let session = session(Workers::Caller);
    let [library, main] = ["library", "main"].map(|name| session.create_dylib(name).unwrap());
    main.link_against(&library).unwrap();
    up_and_down(&library, "of_library", "down", false);
    let text = ["a", "b", "c", "d", "e"].map(prints).concat();
    let read = main.read("p.jlir", text.as_bytes()).unwrap();
    let read = read.initializer("a").initializer_at("b", 10).initializer_at("c", -5).initializer("d");
    main.define(read.initializer_at("e", i32::MIN)).unwrap();
    main.define(main.read("q.jlir", prints("late").as_bytes()).unwrap().initializer_at("late", -5)).unwrap();
    // One that is replaced keeps its place among those of its priority.
    main.redefine(main.read("again.jlir", prints("a").as_bytes()).unwrap().initializer("a")).unwrap();
    main.open().unwrap();
    assert_eq!(printed(&session), "of_library e c late a d b ");
    // One that comes to an open dylib runs at its update.
    let [early, last] = ["early", "last"].map(|name| main.read("r.jlir", prints(name).as_bytes()).unwrap());
    main.define(last.initializer_at("last", 1)).unwrap();
    main.define(early.initializer_at("early", -1)).unwrap();
    main.update().unwrap();
    assert_eq!(printed(&session), "early last ");
}
