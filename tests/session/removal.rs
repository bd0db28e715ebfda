//! Removal by tombstone: callers from other units get an error, and the code is freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brolga::ir::Type;
use brolga::options::{LinkerKind, Mapping};
use brolga::session::{Dependants, Dylib, OnDrop, Signature, Tracker};
use brolga::{CallError, ExceptionKind, OptLevel, Options, Output, Session, TypedFunc, Workers};

use super::{Ending, adds, calls, define};

type Int = TypedFunc<(i64,), i64>;

/// A session whose code calls what its programs call.
fn plain(options: Options, workers: Workers) -> Ending {
    Ending(Session::new(options.opt_level(OptLevel::O0).output(Output::Capture), workers).unwrap())
}

/// Defines a program that its tracker removes.
fn tracked(dylib: &Dylib, source: &str) -> Tracker {
    let tracker = dylib.create_tracker(OnDrop::Keep).unwrap();
    dylib.tracked_by(&tracker).define(dylib.read("tracked.jlir", source.as_bytes()).unwrap()).unwrap();
    tracker
}

fn removed(result: Result<i64, CallError>) -> String {
    match result {
        Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::CompileError => thrown.message,
        other => panic!("no exception: {other:?}"),
    }
}

/// A function that gives what another gives, or -1 if that throws.
fn catches(name: &str, callee: &str) -> String {
    format!(
        "function {name}(n::Int64)::Int64\n1 ─ %1 = enter #3\n2 ─ %2 = invoke Main.{callee}(n::Int64)::Int64\n\
         │        $(Expr(:leave, :(%1)))\n└──      return %2\n\
         3 ─      $(Expr(:pop_exception, :(%1)))::Core.Const(nothing)\n└──      return -1\nend\n"
    )
}

#[test]
fn direct_callers_throw_and_the_code_is_freed() {
    for (linker, mapping) in [
        (LinkerKind::Loader, Mapping::Dual),
        (LinkerKind::Loader, Mapping::Private),
        (LinkerKind::Cranelift, Mapping::Dual),
        (LinkerKind::Cranelift, Mapping::Private),
    ] {
        for workers in [Workers::Caller, Workers::Pool(2)] {
            let session =
                plain(crate::doors::open(Options::new()).linker(linker).code_mapping(mapping), workers);
            let main = session.create_dylib("main").unwrap();
            let tracker = tracked(&main, &adds("base", 1));
            define(&main, &(calls("top", "base") + &calls("over", "top") + &catches("guarded", "base")));
            let [top, over, guarded]: [Int; 3] =
                ["top", "over", "guarded"].map(|name| main.func(name).unwrap());
            assert_eq!((top.call((1,)), over.call((1,)), guarded.call((1,))), (Ok(3), Ok(4), Ok(2)));
            let refused = tracker.remove(Dependants::Deny).unwrap_err().to_string();
            assert!(refused.contains("used by"), "{refused}");
            // The first removal takes memory for code that tells worlds apart.
            let other = tracked(&main, &adds("other", 1));
            main.function("other").unwrap();
            other.remove(Dependants::Tombstone).unwrap();
            let before = session.stats().code;
            tracker.remove(Dependants::Tombstone).unwrap();
            // A worker that is about to sleep may hold it for a moment.
            let after = (0..10_000).map(|_| session.stats().code).find(|after| {
                let is_freed = after.freed > before.freed;
                if !is_freed {
                    std::thread::yield_now();
                    session.runtime().free_retired();
                }
                is_freed
            });
            let after = after.expect("the code goes");
            assert_eq!((after.runs, after.freed), (before.runs - 1, before.freed + 1), "{mapping:?}");
            assert!(after.in_use < before.in_use);
            for function in [&top, &over] {
                assert_eq!(removed(function.call((1,))), "`base(Int64)` has been removed");
            }
            assert_eq!(guarded.call((1,)), Ok(-1), "it can be caught");
            assert!(main.function("base").is_err());
            assert!(session.linking().check().is_ok());
        }
    }
}

/// A caller of the removed function stays linked to it, until it is redefined itself.
#[test]
fn a_later_definition_of_the_name_serves_only_later_callers() {
    let session = plain(crate::doors::open(Options::new()), Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let tracker = tracked(&main, &adds("base", 1));
    define(&main, &calls("top", "base"));
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((1,)), Ok(3));
    tracker.remove(Dependants::Tombstone).unwrap();
    define(&main, &(adds("base", 10) + &calls("late", "base")));
    assert_eq!(main.func::<(i64,), i64>("late").unwrap().call((1,)), Ok(12));
    removed(top.call((1,)));
    removed(main.func::<(i64,), i64>("top").unwrap().call((1,)));
    main.redefine(main.read("top.jlir", calls("top", "base").as_bytes()).unwrap()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((1,)), Ok(12));
    assert_eq!(top.call((1,)), Ok(12), "it is the same function");
}

#[test]
fn callers_find_what_was_redefined_and_other_removals_keep_what_they_call() {
    for policy in [None, Some(Dependants::Keep), Some(Dependants::Cascade)] {
        let session = plain(crate::doors::open(Options::new()), Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let tracker = tracked(&main, &adds("base", 1));
        define(&main, &calls("top", "base"));
        let top: Int = main.func("top").unwrap();
        match policy {
            None => drop(main.redefine(main.read("b.jlir", adds("base", 10).as_bytes()).unwrap()).unwrap()),
            Some(policy) => tracker.remove(policy).unwrap(),
        }
        let sum = if policy.is_none() { 12 } else { 3 };
        assert_eq!(top.call((1,)), Ok(sum), "{policy:?}");
        session.end();
        assert_eq!(top.call((1,)), Ok(sum), "a handle keeps what its code calls");
    }
}

/// A call from Rust is in the newest world, in which the function is not there.
#[test]
fn handles_to_what_is_removed_throw_and_keep_nothing() {
    let session = plain(crate::doors::open(Options::new()), Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let tracker = tracked(&main, &(adds("base", 1) + &calls("top", "base")));
    let [base, top]: [Int; 2] = ["base", "top"].map(|name| main.func(name).unwrap());
    let freed = session.stats().code.freed;
    tracker.remove(Dependants::Tombstone).unwrap();
    assert_eq!(removed(base.call((1,))), "`base(Int64)` has been removed");
    assert_eq!(removed(top.call((1,))), "`top(Int64)` has been removed");
    assert_eq!(session.stats().code.freed, freed + 2);
}

#[test]
fn callers_behind_slots_throw_as_well() {
    let session = plain(crate::doors::open(Options::new()), Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let trackers = [tracked(&main, &adds("base", 1)), main.create_tracker(OnDrop::Keep).unwrap()];
    let low = main.read("low.jlir", adds("low", 1).as_bytes()).unwrap();
    main.tracked_by(&trackers[1]).define(low.lazy()).unwrap();
    main.define(main.read("lazy.jlir", calls("lazy", "base").as_bytes()).unwrap().tiered(2)).unwrap();
    define(&main, &calls("eager", "low"));
    let [lazy, eager]: [Int; 2] = ["lazy", "eager"].map(|name| main.func(name).unwrap());
    for _ in 0..5 {
        assert_eq!((lazy.call((1,)), eager.call((1,))), (Ok(3), Ok(3)));
        session.optimize_hot();
    }
    for tracker in &trackers {
        tracker.remove(Dependants::Tombstone).unwrap();
    }
    assert_eq!(removed(lazy.call((1,))), "`base(Int64)` has been removed");
    assert_eq!(removed(eager.call((1,))), "`low(Int64)` has been removed");
}

/// C calls code of the unit that made the pointer, which calls as all of its code does.
#[test]
fn c_pointers_that_callers_made_throw() {
    let session = plain(crate::doors::open(Options::new()), Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let tracker = tracked(&main, &adds("base", 1));
    let through = "function through(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(Main.base), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}\n\
        │   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %2\nend\n";
    define(&main, through);
    let through: Int = main.func("through").unwrap();
    assert_eq!(through.call((1,)), Ok(2));
    tracker.remove(Dependants::Tombstone).unwrap();
    assert_eq!(removed(through.call((1,))), "`base(Int64)` has been removed");
}

/// A function that gives `end` for nothing, and else what another gives for one less.
fn counts_down(name: &str, other: &str, end: i64) -> String {
    format!(
        "function {name}(n::Int64)::Int64\n1 ─ %1 = (n === 0)::Bool\n└──      goto #3 if not %1\n\
         2 ─      return {end}\n3 ─ %4 = Base.sub_int(n, 1)::Int64\n\
         │   %5 = invoke Main.{other}(%4::Int64)::Int64\n└──      return %5\nend\n"
    )
}

/// Functions that call each other are linked in a cycle; each is removed alone or with the other.
#[test]
fn functions_of_a_cycle_lose_each_other() {
    for gone in ["f", "g", "both"] {
        let session = plain(crate::doors::open(Options::new()), Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let trackers = [(); 2].map(|()| main.create_tracker(OnDrop::Keep).unwrap());
        // `g` exists for `f` to be read, and gets its call of `f` before it is looked up.
        define(&main, &adds("g", 1));
        let part = |source: &str, tracker| {
            main.tracked_by(tracker).redefine(main.read("c.jlir", source.as_bytes()).unwrap()).unwrap()
        };
        part(&counts_down("f", "g", 0), &trackers[0]);
        part(&counts_down("g", "f", 1), &trackers[1]);
        define(&main, &counts_down("caller", "f", 7));
        let [f, g, caller]: [Int; 3] = ["f", "g", "caller"].map(|name| main.func(name).unwrap());
        assert_eq!((f.call((5,)), g.call((5,)), caller.call((5,))), (Ok(1), Ok(0), Ok(0)));
        let freed = session.stats().code.freed;
        for (tracker, name) in trackers.iter().zip(["f", "g"]) {
            if gone == name || gone == "both" {
                tracker.remove(Dependants::Tombstone).unwrap();
            }
        }
        let is_gone = |name: &str| gone == name || (gone == "both" && name != "caller");
        for (function, name, end, calls) in
            [(&f, "f", 0, "g"), (&g, "g", 1, "f"), (&caller, "caller", 7, "f")]
        {
            match is_gone(name) {
                true => drop(removed(function.call((0,)))),
                false => assert_eq!(function.call((0,)), Ok(end), "{gone}"),
            }
            match is_gone(name) || is_gone(calls) {
                true => drop(removed(function.call((1,)))),
                false => assert!(function.call((1,)).is_ok(), "{gone}"),
            }
            removed(function.call((3,)));
        }
        session.runtime().free_retired();
        let gone = if gone == "both" { 2 } else { 1 };
        assert_eq!(session.stats().code.freed - freed, gone);
    }
}

/// The frame continues in the code, which goes when it has returned.
#[test]
fn frames_go_on_and_their_next_call_of_it_throws() {
    let session = plain(crate::doors::open(Options::new()).gc_stress(true), Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let slot: Arc<std::sync::Mutex<Option<Tracker>>> = Arc::default();
    let signature = Signature::new("tick", &[Type::INT64], Type::INT64);
    let (removes, free) = (slot.clone(), session.clone());
    main.define_host(&signature, move |scope, args| {
        let n: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.blocking(|| {
            if let Some(tracker) = removes.lock().unwrap().take() {
                tracker.remove(Dependants::Tombstone).unwrap();
                free.runtime().free_retired();
            }
        });
        scope.int(n).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    let tracker = tracked(&main, &calls("base", "tick"));
    define(&main, &catches("guarded", "base"));
    let guarded: Int = main.func("guarded").unwrap();
    assert_eq!(guarded.call((7,)), Ok(8));
    let before = session.stats().code.freed;
    *slot.lock().unwrap() = Some(tracker);
    assert_eq!(guarded.call((7,)), Ok(8), "it returns");
    session.runtime().free_retired();
    assert!(session.stats().code.freed > before);
    assert_eq!(guarded.call((7,)), Ok(-1));
}

/// Whether a call gave this, or said what is missing.
fn is_right(result: &Result<i64, CallError>, expected: i64) -> bool {
    match result {
        Ok(sum) => *sum == expected,
        Err(CallError::Exception(thrown)) => {
            thrown.kind == ExceptionKind::CompileError && thrown.message == "`base(Int64)` has been removed"
        }
        Err(_) => false,
    }
}

/// Threads call a function and link to it while it is removed: each call gives a definition's result, or reports what is missing.
#[test]
fn a_function_is_removed_during_calls_and_linking() {
    #[expect(clippy::disallowed_methods, reason = "a test that may be asked to run longer")]
    let rounds: i64 = std::env::var("BROLGA_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let session = plain(crate::doors::open(Options::new()), Workers::Pool(2));
    let main = session.create_dylib("main").unwrap();
    let mut in_use = Vec::new();
    for round in 0..rounds {
        let tracker = tracked(&main, &adds("base", 1));
        let callers = main.create_tracker(OnDrop::Keep).unwrap();
        let source = calls("top", "base") + &calls("other", "base") + &calls("over", "top");
        main.tracked_by(&callers).define(main.read("c.jlir", source.as_bytes()).unwrap()).unwrap();
        let top: Int = main.func("top").unwrap();
        let (stop, called, linked) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        // Errors are looked at when no thread waits for another.
        let (results, last) = std::thread::scope(|scope| {
            let calling = [(); 3].map(|()| {
                scope.spawn(|| {
                    let mut wrong = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let result = top.call((round,));
                        wrong.extend((!is_right(&result, round + 2)).then_some(result));
                        called.fetch_add(1, Ordering::Relaxed);
                    }
                    wrong
                })
            });
            let linking = [("other", 2), ("over", 3)].map(|(name, more)| {
                let (main, linked) = (&main, &linked);
                scope.spawn(move || {
                    // It was linked in time, or there is nothing that it could be linked to.
                    let result = main.func::<(i64,), i64>(name).ok().map(|function| function.call((round,)));
                    linked.fetch_add(1, Ordering::Relaxed);
                    result.filter(|result| !is_right(result, round + more)).into_iter().collect::<Vec<_>>()
                })
            });
            while called.load(Ordering::Relaxed) < 20 || linked.load(Ordering::Relaxed) < (round % 3) as usize
            {
                std::thread::yield_now();
            }
            let gone = tracker.remove(Dependants::Tombstone);
            let last = gone.map(|()| top.call((round,)));
            stop.store(true, Ordering::Relaxed);
            let results: Vec<_> =
                calling.into_iter().chain(linking).map(|thread| thread.join().unwrap()).collect();
            (results.concat(), last)
        });
        assert_eq!(results, [], "sums that no definition gives");
        removed(last.unwrap());
        drop(top);
        callers.remove(Dependants::Deny).unwrap();
        session.runtime().free_retired();
        in_use.push(session.stats().code.in_use);
        assert_eq!((session.stats().placed, session.runtime().retired()), (0, 0));
    }
    assert_eq!(in_use[2], *in_use.last().unwrap(), "{in_use:?}");
    assert!(session.linking().check().is_ok());
}
