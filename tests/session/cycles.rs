//! Eager functions of different programs that come to call each other.

use std::sync::{Arc, Mutex};

use brolga::observe::{CodeListener, CodeUnit};
use brolga::session::linking::Until;
use brolga::session::{Dependants, Dylib, OnDrop, Priority, SymbolFlags, linking};
use brolga::{OptLevel, Options, Session, Workers};

use super::{adds, define, dylib, session};

/// A function that gives `end` for nothing, and else what another gives for one less.
fn counts_down(name: &str, other: &str, end: i64) -> String {
    format!(
        "function {name}(n::Int64)::Int64\n1 ─ %1 = (n === 0)::Bool\n└──      goto #3 if not %1\n\
         2 ─      return {end}\n3 ─ %4 = Base.sub_int(n, 1)::Int64\n\
         │   %5 = invoke Main.{other}(%4::Int64)::Int64\n└──      return %5\nend\n"
    )
}

fn all_workers() -> Vec<(String, Box<dyn Fn() -> Workers>)> {
    let mut all: Vec<(String, Box<dyn Fn() -> Workers>)> = vec![
        ("caller".into(), Box::new(|| Workers::Caller)),
        ("one worker".into(), Box::new(|| Workers::Pool(1))),
        ("two workers".into(), Box::new(|| Workers::Pool(2))),
    ];
    for seed in 0..8 {
        all.push((format!("seed {seed}"), Box::new(move || Workers::Seeded(seed))));
    }
    all
}

/// Defines functions, each in its own program and calling the next one, the last one the first.
fn define_cycle(main: &Dylib, names: &[&str]) {
    for (at, name) in names.iter().enumerate().rev() {
        let next = names.get(at + 1).map(|next| counts_down(name, next, at as i64));
        define(main, &next.unwrap_or_else(|| adds(name, 1)));
    }
    let last = counts_down(names[names.len() - 1], names[0], names.len() as i64 - 1);
    main.redefine(main.read("last.jlir", last.as_bytes()).unwrap()).unwrap();
}

#[test]
fn functions_that_come_to_call_each_other_are_linked() {
    for (who, make) in all_workers() {
        for names in [&["f", "g"][..], &["f", "g", "h", "i"]] {
            let session = session(make());
            let main = session.create_dylib("main").unwrap();
            define_cycle(&main, names);
            for (at, name) in names.iter().enumerate() {
                let function =
                    main.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{who}: {error}"));
                for n in 0..10 {
                    assert_eq!(function.call((n,)), Ok((at as i64 + n) % names.len() as i64), "{who}");
                }
            }
            assert!(session.linking().check().is_ok());
            session.end();
        }
    }
}

/// `f` calls `g` of its own program, which calls `h`, which comes to call `f`: none relies on an earlier version of another.
#[test]
fn a_cycle_through_functions_of_one_program_is_linked() {
    for (who, make) in all_workers() {
        // Without copies of old ones.
        let session =
            Session::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0), make()).unwrap();
        let program = counts_down("f", "g", 0) + &counts_down("g", "h", 1) + &adds("h", 1);
        let main = dylib(&session, "main", &program);
        main.redefine(main.read("h.jlir", counts_down("h", "f", 2).as_bytes()).unwrap()).unwrap();
        for (at, name) in ["f", "g", "h"].iter().enumerate() {
            let function = main.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{who}: {error}"));
            for n in 0..7 {
                assert_eq!(function.call((n,)), Ok((at as i64 + n) % 3), "{who}");
            }
        }
    }
}

#[test]
fn callers_of_a_cycle_find_its_replacement() {
    for first in ["f", "g"] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        define_cycle(&main, &["f", "g"]);
        assert!(main.func::<(i64,), i64>(first).is_ok());
        define(&main, &counts_down("caller", "f", 7));
        let caller = main.func::<(i64,), i64>("caller").unwrap();
        let handle = main.function("g").unwrap();
        let call = |n| (caller.call((n,)), handle.typed::<(i64,), i64>().unwrap().call((n,)));
        assert_eq!(call(6), (Ok(1), Ok(1)));
        main.redefine(main.read("new.jlir", adds("f", 100).as_bytes()).unwrap()).unwrap();
        assert_eq!(call(6), (Ok(105), Ok(105)));
        main.redefine(main.read("new.jlir", adds("g", 200).as_bytes()).unwrap()).unwrap();
        assert_eq!(call(6), (Ok(105), Ok(206)));
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((1,)), Ok(101));
    }
}

#[test]
fn a_cycle_is_freed_with_its_last_handle() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let mut in_use = Vec::new();
    for _ in 0..8 {
        define_cycle(&main, &["f", "g", "h"]);
        let function = main.function("f").unwrap();
        let typed = function.typed::<(i64,), i64>().unwrap();
        main.clear(Dependants::Deny).unwrap();
        assert_eq!(typed.call((7,)), Ok(1), "a handle keeps it");
        let untyped = function.untyped().unwrap();
        drop(function);
        assert_eq!(typed.call((8,)), Ok(2), "one for Rust as well");
        drop(typed);
        assert_eq!(untyped.call(&[7]), Ok(vec![1]));
        drop(untyped);
        session.runtime().free_retired();
        in_use.push(session.stats().code.in_use);
        assert_eq!(session.stats().placed, 0);
    }
    assert_eq!(in_use[1], in_use[7], "{in_use:?}");
}

#[test]
fn handles_to_a_cycle_outlive_the_session() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    define_cycle(&main, &["f", "g", "h"]);
    let all = ["f", "g", "h"].map(|name| main.func::<(i64,), i64>(name).unwrap());
    session.end();
    for (at, function) in all.iter().enumerate() {
        assert_eq!(function.call((7,)), Ok((at as i64 + 7) % 3));
    }
}

/// A function that became lazy after its caller was defined is called through its cell.
#[test]
fn a_function_that_became_lazy_is_called_through_its_cell() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let tracker = main.create_tracker(OnDrop::Keep).unwrap();
    main.tracked_by(&tracker).define(main.read("g.jlir", adds("g", 1).as_bytes()).unwrap()).unwrap();
    define(&main, &counts_down("f", "g", 0));
    tracker.remove(Dependants::Cascade).unwrap();
    main.define(main.read("g.jlir", adds("g", 2).as_bytes()).unwrap().lazy()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((5,)), Ok(6));
}

/// A cycle of which one function cannot be compiled fails as a whole, with the reason, and can be mended.
#[test]
fn a_cycle_that_cannot_be_made_says_why() {
    for (who, make) in all_workers() {
        let session = session(make());
        let main = session.create_dylib("main").unwrap();
        define_cycle(&main, &["f", "g", "h"]);
        let broken = "function g(x::Int64)::Int64\n\
            1 ─ %1 = $(Expr(:foreigncall, :(:brolga_is_nowhere), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
            │   %2 = invoke Main.h(%1::Int64)::Int64\n└──      return %2\nend\n";
        main.redefine(main.read("g.jlir", broken.as_bytes()).unwrap()).unwrap();
        let causes = main.function("f").unwrap_err().causes();
        assert!(causes.last().is_some_and(|root| root.contains("brolga_is_nowhere")), "{who}: {causes:?}");
        let mended = counts_down("f", "g", 0) + &counts_down("g", "h", 1) + &counts_down("h", "f", 2);
        main.redefine(main.read("mended.jlir", mended.as_bytes()).unwrap()).unwrap();
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((5,)), Ok(2), "{who}");
    }
}

/// Does something, once, when a function of this name has been loaded: it is linked, and not yet in the tables.
struct WhenLoaded {
    name: &'static str,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl CodeListener for WhenLoaded {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        if unit.function(self.name).is_some()
            && let Some(act) = self.act.lock().unwrap().take()
        {
            act();
        }
    }

    fn freed(&self, _unit: &Arc<CodeUnit>) {}
}

/// `f` is removed while it is linked, and defined again: `g` calls the new one, through the slot that is there because both wait
/// for each other's addresses.
#[test]
fn a_cycle_is_not_led_to_what_was_removed_while_it_was_linked() {
    extern "C" fn held() -> i64 {
        0
    }
    let tasks = Arc::new(linking::Seeded::new(1));
    let options = crate::doors::open(Options::new()).opt_level(OptLevel::O0);
    let session = Session::new(options, Workers::Own(tasks.clone())).unwrap();
    let run_all = move || while tasks.run_one() {};
    let main = session.create_dylib("main").unwrap();
    // The new `f` needs this C symbol beside `g`, so it is linked when this has an address.
    let symbol = session.linking().intern("held");
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let flags = SymbolFlags::EXPORTED;
    let unit = linking::unit([(symbol, flags)], move |duty| *keep.lock().unwrap() = Some(duty));
    main.linking().define(unit).unwrap();
    let tracker = main.create_tracker(OnDrop::Keep).unwrap();
    main.tracked_by(&tracker).define(main.read("old.jlir", adds("f", 1000).as_bytes()).unwrap()).unwrap();
    let asks = |main: &Dylib| {
        let f = main.session().linking().intern("f(Int64)");
        let (order, wants) = (vec![main.linking().all()], linking::required([f]));
        main.session().linking().lookup_then(order, wants, Until::Ready, Priority::Normal, |_| {});
    };
    let (dylib, runs) = (main.clone(), run_all.clone());
    let act = move || {
        tracker.remove(Dependants::Cascade).unwrap();
        define(&dylib, &adds("g", 1));
        let f = counts_down("f", "g", 0)
            .replace("3 ─ %4 = Base", "3 ─ %4 = (n === -1)::Bool\n└──      goto #5 if not %4\n4 ─ %6 = $(Expr(:foreigncall, :(:held), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %6\n5 ─ %8 = Base")
            .replace("%5 = invoke Main.g(%4", "%9 = invoke Main.g(%8")
            .replace("return %5", "return %9");
        define(&dylib, &f);
        dylib.redefine(dylib.read("g.jlir", counts_down("g", "f", 1).as_bytes()).unwrap()).unwrap();
        asks(&dylib);
        runs();
    };
    let act: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(Some(Box::new(act)));
    session.listen(Arc::new(WhenLoaded { name: "f(Int64)", act }));
    asks(&main);
    run_all();
    let duty = kept.lock().unwrap().take().expect("the new `f` waits for it");
    let address = (held as extern "C" fn() -> i64) as usize;
    duty.resolve([(symbol, address)]).unwrap().emit([]).unwrap();
    let f = main.func::<(i64,), i64>("f").unwrap_or_else(|error| panic!("{error}: {:?}", error.causes()));
    let g = main.func::<(i64,), i64>("g").unwrap();
    for n in 0..6 {
        assert_eq!((f.call((n,)), g.call((n,))), (Ok(n % 2), Ok((n + 1) % 2)));
    }
    assert_eq!(session.linking().check(), Ok(()));
    // Tasks that were not run hold the session.
    session.end();
}

/// A function that gives its argument, and a float for a negative one: inference cannot see which.
const ANY: &str = "
function any(n::Int64)::Any
1 ─ %1 = Base.slt_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─      return 0.5
3 ─      return n
end
";

/// As [`counts_down`], with a call that is decided at run time.
fn looks_down(name: &str, other: &str, end: i64) -> String {
    let any = ANY.replace("any", &format!("any_{name}"));
    format!(
        "{any}function {name}(n::Int64)::Int64\n1 ─ %1 = (n === 0)::Bool\n└──      goto #3 if not %1\n\
         2 ─      return {end}\n3 ─ %4 = Base.sub_int(n, 1)::Int64\n\
         │   %5 = invoke Main.any_{name}(%4::Int64)::Any\n│   %6 = dynamic Main.{other}(%5)::Any\n\
         │   %7 = Core.typeassert(%6, Int64)::Int64\n└──      return %7\nend\n"
    )
}

/// Of two functions that call each other, one or both find the other only when they run.
#[test]
fn a_cycle_of_calls_that_are_decided_at_run_time_is_linked() {
    type Make = fn(&str, &str, i64) -> String;
    let ways: [(Make, Make); 3] =
        [(counts_down, looks_down), (looks_down, counts_down), (looks_down, looks_down)];
    for (who, make) in all_workers() {
        for (way, (f, g)) in ways.iter().enumerate() {
            for (at, first) in ["f", "g"].into_iter().enumerate() {
                // Calls that are decided at run time stay such.
                let session =
                    Session::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0), make()).unwrap();
                let main = dylib(&session, "main", &(adds("g", 1) + &ANY.replace("any", "any_g")));
                define(&main, &f("f", "g", 0));
                let again = main.read("g.jlir", g("g", "f", 1).as_bytes()).unwrap();
                main.redefine(again).unwrap();
                let function = main.func::<(i64,), i64>(first);
                let function = function.unwrap_or_else(|error| panic!("{who}, {way}, {first}: {error}"));
                for n in 0..6 {
                    let end = function.call((n,));
                    assert_eq!(end, Ok((at as i64 + n) % 2), "{who}, {way}, {first}");
                }
                assert!(session.linking().check().is_ok());
                main.clear(Dependants::Deny).unwrap();
                drop(function);
                session.runtime().free_retired();
                assert_eq!((session.stats().placed, session.runtime().retired()), (0, 0));
            }
        }
    }
}
