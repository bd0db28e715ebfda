//! Thread-local variables of programs: a value for each thread, by the rules of other global variables for who shares them.

use std::sync::Barrier;

use brolga::session::{Dependants, Dylib, OnDrop};
use brolga::{OptLevel, Options, Output, Runtime, Session, Workers};
use brolga_runtime::RuntimeOptions;

use super::kinds::{KINDS, Kind, LEVELS, each, session};
use super::objects::c;
use super::stress_names::{IN_THREAD, through_c};

const DECLARED: &str = "global threadlocal count::Int64 = 100\n";

/// A function that adds to the variable, and returns it.
fn adds(name: &str, by: i64) -> String {
    format!(
        "function {name}()::Int64\n1 ─ %1 = Main.count::Int64\n│   %2 = Base.add_int(%1, {by})::Int64\n\
         │        Core.setglobal!(Main, :count, %2)::Int64\n└──      return %2\nend\n"
    )
}

const READS: &str = "function reads()::Int64\n1 ─ %1 = Main.count::Int64\n└──      return %1\nend\n";

/// Adds in a loop, which code of the first tier leaves for better code.
const LOOP: &str = "\
function many(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = invoke Main.inc()::Int64
│   %6 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─ %8 = Main.count::Int64
└──      return %8
end
";

/// Keeps a list of its own in each thread.
const LISTS: &str = "\
mutable struct Node
    next::Any
    value::Int64
end
global threadlocal list::Any = nothing
function push(n::Int64)::Int64
1 ─ %1 = Main.list::Any
│   %2 = %new(Main.Node, %1, n)::Node
│        Core.setglobal!(Main, :list, %2)::Node
└──      return n
end
function total(n::Int64)::Int64
1 ─ %1 = Main.list::Any
└──      goto #2
2 ┄ %3 = φ (#1 => %1, #3 => %9)::Any
│   %4 = φ (#1 => 0, #3 => %8)::Int64
│   %5 = (%3 === nothing)::Bool
└──      goto #3 if not %5 else #4
3 ─ %6 = Core.typeassert(%3, Node)::Node
│   %7 = Base.getfield(%6, :value)::Int64
│   %8 = Base.add_int(%4, %7)::Int64
│   %9 = Base.getfield(%6, :next)::Any
└──      goto #2
4 ─      return %4
end
";

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let read = dylib.read("test.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dylib.define(kind.of(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn call(dylib: &Dylib, name: &str) -> i64 {
    dylib.func::<(), i64>(name).unwrap().call(()).unwrap()
}

fn call_with(dylib: &Dylib, name: &str, n: i64) -> i64 {
    dylib.func::<(i64,), i64>(name).unwrap().call((n,)).unwrap()
}

/// The result of a closure on a thread of its own.
fn elsewhere<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|threads| threads.spawn(body).join().unwrap())
}

#[test]
fn every_thread_has_its_own_value() {
    each(|session, kind, at| {
        let k = session.create_dylib("k").unwrap();
        define(&k, kind, &(DECLARED.to_owned() + &adds("inc", 1) + READS + LOOP));
        for _ in 0..3 {
            let before = call(&k, "reads");
            assert_eq!(call(&k, "inc"), before + 1, "{at}");
            assert_eq!(
                elsewhere(|| (call(&k, "reads"), call(&k, "inc"), call_with(&k, "many", 50))),
                (100, 101, 151),
                "{at}"
            );
            assert_eq!(call_with(&k, "many", 10), before + 11, "{at}");
            session.optimize_hot();
        }
        assert_eq!(call(&k, "reads"), 133, "{at}");
    });
}

#[test]
fn threads_at_the_same_time_do_not_meet() {
    for kind in [Kind::Eager, Kind::Tiered] {
        let session = session(OptLevel::O2);
        let k = session.create_dylib("k").unwrap();
        define(&k, kind, &(DECLARED.to_owned() + &adds("inc", 1) + READS + LOOP));
        let start = Barrier::new(4);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    start.wait();
                    for n in 1..=20 {
                        assert_eq!(call_with(&k, "many", 1000), 100 + n * 1000);
                    }
                });
            }
        });
        assert_eq!(call(&k, "reads"), 100);
    }
}

/// As the state of ordinary variables: kept by a redefinition, shared with programs of the dylib and of those linked to it, and
/// inlined into them.
#[test]
fn programs_share_them_by_the_rules_of_other_variables() {
    each(|session, kind, at| {
        let (k, d) = (session.create_dylib("k").unwrap(), session.create_dylib("d").unwrap());
        define(&k, kind, &(DECLARED.to_owned() + &adds("inc", 1) + READS));
        d.link_against(&k).unwrap();
        let calls = "function calls()::Int64\n1 ─ %1 = invoke Main.inc()::Int64\n└──      return %1\nend\n";
        define(&d, kind, &(adds("more", 1000) + calls));
        let all = || [call(&k, "inc"), call(&d, "more"), call(&d, "calls"), call(&k, "reads")];
        assert_eq!(all(), [101, 1101, 1102, 1102], "{at}");
        assert_eq!(elsewhere(all), [101, 1101, 1102, 1102], "{at}");
        assert_eq!(call(&k, "reads"), 1102, "{at}");
        // The same declaration, and none: the value stays.
        k.redefine(k.read("again.jlir", (DECLARED.to_owned() + &adds("inc", 10)).as_bytes()).unwrap())
            .unwrap();
        assert_eq!([call(&k, "inc"), call(&k, "reads")], [1112, 1112], "{at}");
        k.redefine(k.read("again.jlir", adds("inc", 100).as_bytes()).unwrap()).unwrap();
        assert_eq!([call(&k, "inc"), call(&d, "calls")], [1212, 1312], "{at}");
        assert_eq!(elsewhere(|| call(&d, "calls")), 200, "{at}");
        // Not the same variable: it is one of all threads, or begins with another value.
        for (name, declared, first) in [
            ("all", "global count::Int64 = 100\n", [101, 101]),
            ("seven", "global threadlocal count::Int64 = 7\n", [8, 8]),
        ] {
            define(&d, kind, &(declared.to_owned() + &adds(name, 1)));
            assert_eq!([call(&d, name), call(&k, "reads")], [first[0], 1312], "{at}");
            let again = if name == "all" { 102 } else { first[1] };
            assert_eq!(elsewhere(|| call(&d, name)), again, "{at}");
        }
    });
}

#[test]
fn removal_is_that_of_other_variables() {
    for level in LEVELS {
        for kind in KINDS {
            let at = format!("{level:?}, {kind:?}");
            let session = session(level);
            let k = session.create_dylib("k").unwrap();
            let tracker = k.create_tracker(OnDrop::Keep).unwrap();
            define(&k.tracked_by(&tracker), kind, DECLARED);
            define(&k, kind, &adds("inc", 1));
            assert_eq!(call(&k, "inc"), 101, "{at}");
            tracker.remove(Dependants::Keep).unwrap();
            assert!(k.read("reads.jlir", READS.as_bytes()).is_err(), "{at}");
            // Programs that were defined before keep it.
            assert_eq!([call(&k, "inc"), elsewhere(|| call(&k, "inc"))], [102, 101], "{at}");
            define(&k, kind, &(DECLARED.to_owned() + READS));
            assert_eq!([call(&k, "reads"), call(&k, "inc")], [100, 103], "{at}");
        }
    }
}

/// Objects that only a thread's variable refers to stay, and die with the thread.
#[test]
fn the_objects_of_threads_are_kept_and_freed() {
    for level in [OptLevel::O0, OptLevel::O2] {
        for stress in [false, true] {
            let options = crate::doors::open(Options::new()).opt_level(level).gc_stress(stress);
            let session = Session::new(options.output(Output::Capture), Workers::Caller).unwrap();
            let k = &session.create_dylib("k").unwrap();
            define(k, Kind::Eager, LISTS);
            let pushes = |count: i64| (1..=count).for_each(|n| assert_eq!(call_with(k, "push", n), n));
            pushes(10);
            std::thread::scope(|threads| {
                for count in 20..24 {
                    threads.spawn(move || {
                        pushes(count);
                        session_collects(k);
                        assert_eq!(call_with(k, "total", 0), count * (count + 1) / 2);
                    });
                }
            });
            session_collects(k);
            assert_eq!(call_with(k, "total", 0), 55, "{level:?} {stress}");
            session.end();
        }
    }
}

fn session_collects(dylib: &Dylib) {
    dylib.session().runtime().enter(|scope| scope.collect()).unwrap();
}

/// Threads of C that call entries begin with the declared value, and their values end with them.
#[test]
fn threads_of_c_have_their_own() {
    each(|session, kind, at| {
        let (objects, main) =
            (session.create_dylib("objects").unwrap(), session.create_dylib("main").unwrap());
        objects.add_process_symbols(|_| true).unwrap();
        objects.add_object("in_thread.o", &c(IN_THREAD)).unwrap();
        main.link_against(&objects).unwrap();
        let adds = adds("inc", 1).replace("inc()", "inc(x::Int64)").replace("_int(%1, 1)", "_int(%1, x)");
        define(&main, kind, &(DECLARED.to_owned() + &adds + READS + &through_c("through_c", "inc")));
        for n in 1..4 {
            assert_eq!(
                (call_with(&main, "through_c", n), call_with(&main, "inc", 1)),
                (100 + n, 100 + n),
                "{at}"
            );
        }
    });
}

/// A definition that is refused is found by the name of its variable.
#[test]
fn what_threads_would_share_is_refused() {
    let session = session(OptLevel::O2);
    let k = session.create_dylib("k").unwrap();
    let text = "mutable struct Box\n    of::Int64\nend\n";
    for (ty, first) in [("Vector{Int64}", "[1]"), ("Any", "Box(1)"), ("Tuple{Any, Int64}", "(Box(1), 1)")] {
        let text = format!(
            "{text}global threadlocal shared::{ty} = {first}\n{}",
            adds("inc", 1).replace("count", "other")
        );
        let text = text.replace("function", "global other::Int64 = 1\nfunction");
        let refused = k.read("shared.jlir", text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("share") && refused.contains("`shared`"), "{refused}");
    }
}

/// Of two sessions on one run time, each has its own.
#[test]
fn sessions_of_one_run_time_have_their_own() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let options = || crate::doors::open(Options::new()).output(Output::Capture);
    let sessions: Vec<Session> =
        (0..2).map(|_| Session::on(&runtime, options(), Workers::Caller).unwrap()).collect();
    let dylibs: Vec<Dylib> = sessions.iter().map(|session| session.create_dylib("main").unwrap()).collect();
    for (n, dylib) in dylibs.iter().enumerate() {
        define(dylib, Kind::Eager, &(DECLARED.to_owned() + &adds("inc", n as i64 + 1)));
    }
    let both = || dylibs.iter().map(|dylib| call(dylib, "inc")).collect::<Vec<_>>();
    assert_eq!((both(), both(), elsewhere(both)), (vec![101, 102], vec![102, 104], vec![101, 102]));
    sessions.iter().for_each(|session| drop(session.end()));
}
