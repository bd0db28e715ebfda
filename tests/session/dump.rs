//! What a session shows of itself: symbols, a dump, failures that nobody waits for; and look-ups of several functions.

use std::sync::{Arc, Mutex};

use brolga::Workers;
use brolga::session::linking;
use brolga::session::{Dependants, Exports, Happened, Priority, Progress};

use super::{adds, calls, define, session};

const FAILS: &str = "function fails(x::Int64)::Int64\n\
    1 ─ %1 = $(Expr(:foreigncall, :(:brolga_is_nowhere), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
    └──      return %1\nend\n";

#[test]
fn symbols_say_how_far_they_have_come() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    define(&main, &adds("a", 1));
    define(&main, &(calls("b", "a") + FAILS));
    let progress = || -> Vec<(String, Progress)> {
        main.symbols().unwrap().into_iter().map(|facts| (facts.text.to_string(), facts.progress)).collect()
    };
    let all = |a, b, fails| {
        [("a(Int64)", a), ("b(Int64)", b), ("fails(Int64)", fails)].map(|(name, to)| (name.to_owned(), to))
    };
    assert_eq!(progress(), all(Progress::Defined, Progress::Defined, Progress::Defined));
    main.function("b").unwrap();
    assert!(main.function("fails").is_err());
    assert_eq!(progress(), all(Progress::Ready, Progress::Ready, Progress::Failed));
    session.end();
    assert!(main.symbols().is_err());
}

#[test]
fn a_dump_has_links_reexports_symbols_and_users() {
    let session = session(Workers::Caller);
    let [base, facade, main] = ["base", "facade", "main"].map(|name| session.create_dylib(name).unwrap());
    define(&base, &adds("a", 1));
    facade.reexport(&base, Exports::only(["a", "b"])).unwrap();
    facade.reexport(&main, Exports::except(["c"])).unwrap();
    main.link_against(&facade).unwrap();
    define(&main, &calls("b", "a"));
    main.function("b").unwrap();
    let expected = "\
dylib `base`: `base`
    a(Int64)                                 ready, used by `b(Int64)` of `main`
dylib `facade`: `facade`
    re-exports `a`, `b` of `base`
    re-exports all of `main` but `c`
dylib `main`: `main`, `facade`
    b(Int64)                                 ready
";
    assert_eq!(session.dump(), expected);
    // The policy names the same users.
    let refused = base.clear(Dependants::Deny).unwrap_err().to_string();
    assert_eq!(refused, "`a(Int64)` of `base` used by `b(Int64)` of `main`");
}

#[test]
fn failures_that_nobody_waits_for_are_reported() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    session.report_failures(move |error| heard.lock().unwrap().push(error.to_string()));
    main.define(main.read("fails.jlir", FAILS.as_bytes()).unwrap().start(Priority::Normal)).unwrap();
    while told.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    session.end();
    let told = told.lock().unwrap().clone();
    assert!(told.len() == 1 && told[0].contains("`fails(Int64)` of `main`"), "{told:?}");
}

#[test]
fn several_functions_are_looked_up_at_once() {
    let session = session(Workers::Caller);
    let [base, facade, main] = ["base", "facade", "main"].map(|name| session.create_dylib(name).unwrap());
    define(&base, &(adds("a", 1) + &adds("d", 4)));
    facade.reexport(&base, Exports::only(["a"])).unwrap();
    main.link_against(&facade).unwrap();
    define(&main, &(calls("b", "a") + FAILS));
    let found = main.functions(&["a", "b(Int64)"]).unwrap();
    let symbols: Vec<&str> = found.iter().map(|function| function.symbol()).collect();
    assert_eq!(symbols, ["a(Int64)", "b(Int64)"]);
    let missing = main.functions(&["a", "no", "d", "nor(Int64)"]).unwrap_err().to_string();
    let names = ["`no` of `main`", "`d` of `main`", "`nor(Int64)` of `main`"];
    assert!(names.iter().all(|name| missing.contains(name)), "{missing}");
    assert!(main.functions(&["b", "fails"]).unwrap_err().to_string().contains("fails"));
    assert!(main.functions(&[]).unwrap().is_empty());
}

#[test]
fn an_observer_hears_what_happens_to_symbols() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let seen: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let events = seen.clone();
    session.observe(move |observed| {
        let text = |event: &linking::Observed| {
            let part = if event.is_part { "part of " } else { "" };
            let what = match &event.happened {
                Happened::Emitted { waits_for } if !waits_for.is_empty() => {
                    let names: Vec<String> = waits_for.iter().map(ToString::to_string).collect();
                    format!("emitted, waits for {}", names.join(", "))
                }
                Happened::Emitted { .. } => "emitted".to_owned(),
                Happened::Failed(failure) => format!("failed: {}", failure.root()),
                other => format!("{other:?}").to_lowercase(),
            };
            (event.number, format!("{part}{}: {what}", event.name.symbol))
        };
        events.lock().unwrap().extend(observed.iter().map(text));
    });
    let take = || -> Vec<String> {
        let mut events = std::mem::take(&mut *seen.lock().unwrap());
        events.sort();
        events.into_iter().map(|(_, text)| text).collect()
    };
    define(&main, &adds("a", 1));
    assert_eq!(take(), ["a(Int64): defined", "part of a(Int64): defined"]);
    main.function("a").unwrap();
    let expected = [
        "a(Int64): started",
        "a(Int64): resolved",
        "part of a(Int64): started",
        "a(Int64): emitted, waits for `a(Int64)` of `main`",
        "part of a(Int64): resolved",
        "part of a(Int64): emitted",
        "part of a(Int64): ready",
        "a(Int64): ready",
    ];
    let found = take();
    assert!(expected.iter().all(|event| found.iter().any(|found| found == event)), "{found:#?}");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    main.remove(&["a"]).unwrap();
    assert_eq!(take(), ["a(Int64): removed", "part of a(Int64): removed"]);
    define(&main, FAILS);
    assert!(main.function("fails").is_err());
    let found = take();
    let failed =
        |event: &&String| event.starts_with("fails(Int64): failed: ") && event.contains("brolga_is_nowhere");
    assert_eq!(found.iter().filter(failed).count(), 1, "{found:#?}");
}
