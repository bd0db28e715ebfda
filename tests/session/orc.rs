//! The assertions of ORC's tests about lazy re-exports, redirection and compilation in tiers, of sessions with compiled code.
//!
//! Tests carry the identifiers of `docs/conformance-orc.md`. The tests of `crates/linking/tests` assert the same of the linking model alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga::session::{Dependants, OnDrop};
use brolga::{CallError, ExceptionKind, TypedFunc, Workers};

use super::define::{doubles, signature};
use super::{adds, calls, define, dylib, session};

type Int = TypedFunc<(i64,), i64>;

/// A function is compiled once, by the first call, on any path.
#[test]
fn l01_the_first_call_compiles_and_binds_once() {
    for workers in [Workers::Caller, Workers::Pool(1), Workers::Pool(2)] {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        main.promise(&[signature("body")], move |dylib| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(doubles(dylib, "body")?)
        })
        .unwrap();
        main.define(main.read("l.jlir", calls("lazy", "body").as_bytes()).unwrap().lazy()).unwrap();
        let lazy: Int = main.func("lazy").unwrap();
        assert_eq!((asked.load(Ordering::SeqCst), session.stats().compiled_functions), (0, 0));
        std::thread::scope(|scope| {
            for n in 0..4 {
                let lazy = &lazy;
                scope.spawn(move || assert_eq!(lazy.call((n,)), Ok(2 * n + 1)));
            }
        });
        assert_eq!((asked.load(Ordering::SeqCst), session.stats().compiled_functions), (1, 2));
    }
}

/// A failure is told to each caller, with its cause.
#[test]
fn l01_a_failure_is_told_to_the_caller() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.promise(&[signature("body")], |_| Err("no memory".into())).unwrap();
    main.define(main.read("l.jlir", calls("lazy", "body").as_bytes()).unwrap().lazy()).unwrap();
    let lazy: Int = main.func("lazy").unwrap();
    for _ in 0..2 {
        match lazy.call((1,)) {
            Err(CallError::Exception(thrown)) => {
                assert_eq!(thrown.kind, ExceptionKind::CompileError);
                assert!(thrown.message.contains("no memory"), "{}", thrown.message);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A lazy function without calls is removed, and what it would have needed was never made.
#[test]
fn l02_a_lazy_function_can_go_unused() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let tracker = main.create_tracker(OnDrop::Keep).unwrap();
    main.tracked_by(&tracker)
        .promise(&[signature("lazy")], move |dylib| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(doubles(dylib, "lazy")?)
        })
        .unwrap();
    let held = Arc::strong_count(&asked);
    assert!(main.function("lazy").is_ok(), "it can be looked up");
    tracker.remove(Dependants::Deny).unwrap();
    assert!(main.function("lazy").is_err());
    assert_eq!(
        (asked.load(Ordering::SeqCst), Arc::strong_count(&asked)),
        (0, held - 1),
        "the promise was dropped"
    );
    assert_eq!(session.stats().compiled_functions, 0);
}

/// A function is redirected by redefinitions: callers reach the new body, and its address for C stays.
#[test]
fn l04_a_function_is_redirected_and_keeps_its_address() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &adds("entry", 0));
    define(&main, &calls("caller", "entry"));
    let entry = main.function("entry").unwrap();
    let caller: Int = main.func("caller").unwrap();
    let address = entry.c_address().unwrap();
    for n in [42, 13, 53] {
        main.redefine(main.read("e.jlir", adds("entry", n).as_bytes()).unwrap()).unwrap();
        assert_eq!((caller.call((1,)), entry.c_address().unwrap()), (Ok(n + 2), address));
        assert_eq!(main.function("entry").unwrap().c_address().unwrap(), address);
    }
}

/// A function is compiled again when it has been called often; its handle and its callers notice nothing.
#[test]
fn l05_a_function_is_optimised_under_its_callers() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("t.jlir", adds("hot", 7).as_bytes()).unwrap().tiered(10)).unwrap();
    define(&main, &calls("caller", "hot"));
    let caller: Int = main.func("caller").unwrap();
    (0..50).for_each(|n| assert_eq!(caller.call((n,)), Ok(n + 8)));
    let before = session.stats().compiled_functions;
    assert_eq!(session.optimize_hot(), 1);
    assert_eq!(session.stats().compiled_functions, before + 1);
    (0..50).for_each(|n| assert_eq!(caller.call((n,)), Ok(n + 8)));
    assert_eq!(session.optimize_hot(), 0);
}
