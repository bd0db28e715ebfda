//! Function values across definitions: a dynamic call finds every method that is visible in its world, from any definition.
//!
//! ```text
//!   definer: make(n) gives a function, a closure or a callable object        caller: apply(f, x) = f(x)        drive(n) = apply(make(n), n)
//! ```
//!
//! The answer does not depend on the kinds of the two definitions, on which one came first, or on the level.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use brolga::ir::Type;
use brolga::session::linking;
use brolga::session::{Definitions, Dependants, Dylib, OnDrop, SessionError, Signature};
use brolga::{OptLevel, Options, Output, Program, Session, TypedFunc, Workers};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Eager,
    Lazy,
    Tiered,
    Interpreted,
    Replaceable,
}

const KINDS: [Kind; 5] = [Kind::Eager, Kind::Lazy, Kind::Tiered, Kind::Interpreted, Kind::Replaceable];

type Int = TypedFunc<(i64,), i64>;

fn defined_as(program: Definitions, kind: Kind) -> Definitions {
    match kind {
        Kind::Eager => program,
        Kind::Lazy => program.lazy(),
        Kind::Tiered => program.tiered(2).iterations(3),
        Kind::Interpreted => program.tiered(40).interpreted(20),
        Kind::Replaceable => program.replaceable(),
    }
}

fn put(dylib: &Dylib, source: &str, kind: Kind) {
    let program = dylib.read("values.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(defined_as(program, kind)).unwrap_or_else(|error| panic!("{error}"));
}

fn put_again(dylib: &Dylib, source: &str, kind: Kind) {
    loop {
        let program = dylib.read("values.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        match dylib.redefine(defined_as(program, kind)) {
            Ok(_) => return,
            // The definition before is being compiled.
            Err(SessionError::Link(linking::Error::Busy { .. })) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Says that something is over, also when the thread panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn session(level: OptLevel, workers: Workers) -> Session {
    let options = crate::doors::open(Options::new()).opt_level(level).output(Output::Capture);
    Session::new(options, workers).unwrap_or_else(|error| panic!("{error}"))
}

/// Functions that give twice `n` when they are made from `n` and called with `n`.
const VALUES: [(&str, &str); 3] = [
    (
        "function",
        "function double(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, x)::Int64
└──      return %1
end
function make(n::Int64)::Any
1 ─      return Main.double
end
",
    ),
    (
        "closure",
        "struct Plus <: Function
    n::Int64
end
function (c::Plus)(x::Int64)::Int64
1 ─ %1 = Base.getfield(c, :n)::Int64
│   %2 = Base.add_int(x, %1)::Int64
└──      return %2
end
function make(n::Int64)::Any
1 ─ %1 = %new(Plus, n)::Plus
└──      return %1
end
",
    ),
    (
        "callable object",
        "mutable struct Counter
    count::Int64
end
function (c::Counter)(x::Int64)::Int64
1 ─ %1 = Base.getfield(c, :count)::Int64
│   %2 = Base.add_int(x, %1)::Int64
│        Base.setfield!(c, :count, %2)::Int64
└──      return %2
end
function make(n::Int64)::Any
1 ─ %1 = %new(Counter, n)::Counter
└──      return %1
end
",
    ),
];

/// The caller, and a function of its own that it is called with first.
const CALLER: &str = "
function apply(f::Any, x::Any)::Any
1 ─ %1 = dynamic (f)(x)::Any
└──      return %1
end
function negate(x::Int64)::Int64
1 ─ %1 = Base.neg_int(x)::Int64
└──      return %1
end
function first(n::Int64)::Int64
1 ─ %1 = invoke Main.apply(Main.negate::Any, n::Any)::Any
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end
";

const DRIVE: &str = "
function drive(n::Int64)::Int64
1 ─ %1 = invoke Main.make(n::Int64)::Any
│   %2 = invoke Main.apply(%1::Any, n::Any)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
";

fn driven(session: &Session, value: &str, kinds: (Kind, Kind), is_after: bool) -> Vec<i64> {
    let main = session.create_dylib("main").unwrap();
    let (definer, caller) = kinds;
    if !is_after {
        put(&main, value, definer);
    }
    put(&main, CALLER, caller);
    let first: Int = main.func("first").unwrap();
    for n in 0..4 {
        assert_eq!(first.call((n,)), Ok(-n));
        session.optimize_hot();
    }
    if is_after {
        put(&main, value, definer);
    }
    put(&main, DRIVE, caller);
    let drive: Int = main.func("drive").unwrap_or_else(|error| panic!("{error}"));
    let calls = (1..=5).map(|n| {
        session.optimize_hot();
        drive.call((n,)).unwrap_or_else(|error| panic!("{kinds:?} {is_after}: {error}"))
    });
    let found = calls.collect();
    assert_eq!(session.linking().check(), Ok(()));
    found
}

#[test]
fn function_values_are_called_whatever_definition_they_come_from() {
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        for (what, value) in VALUES {
            for definer in KINDS {
                for caller in KINDS {
                    for is_after in [false, true] {
                        let found =
                            driven(&session(level, Workers::Caller), value, (definer, caller), is_after);
                        let told =
                            format!("{what}, {definer:?} called by {caller:?}, {level:?}, after {is_after}");
                        assert_eq!(found, [2, 4, 6, 8, 10], "{told}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_pool_calls_function_values_as_well() {
    for (what, value) in VALUES {
        for definer in KINDS {
            for is_after in [false, true] {
                let session = session(OptLevel::O2, Workers::Pool(2));
                let found = driven(&session, value, (definer, Kind::Tiered), is_after);
                assert_eq!(found, [2, 4, 6, 8, 10], "{what}, {definer:?}, after {is_after}");
            }
        }
    }
}

#[test]
fn function_values_stand_collections_at_every_safepoint() {
    for (what, value) in VALUES {
        for definer in KINDS {
            let options = crate::doors::open(Options::new())
                .opt_level(OptLevel::O2)
                .gc_stress(true)
                .output(Output::Capture);
            let session = Session::new(options, Workers::Caller).unwrap();
            let found = driven(&session, value, (definer, Kind::Lazy), true);
            assert_eq!(found, [2, 4, 6, 8, 10], "{what}, {definer:?}");
        }
    }
}

/// Calls `apply` with a value of another definition, nine times, and the host each time.
const SPIN: &str = "
function spin(n::Int64)::Int64
1 ─ %1 = invoke Main.make(n::Int64)::Any
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %10)::Int64
│   %4 = φ (#1 => 0, #3 => %8)::Int64
│   %5 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %5
3 ─ %6 = invoke Main.apply(%1::Any, %3::Any)::Any
│   %7 = Core.typeassert(%6, Int64)::Int64
│   %8 = Base.add_int(%4, %7)::Int64
│        invoke Main.tick(%3::Int64)::Int64
│   %10 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %4
end
";

fn look(value: i64) -> String {
    format!(
        "function look(x::Int64)::Int64\n1 ─ %1 = Base.and_int(x, 0)::Int64\n│   %2 = Base.add_int(%1, {value})::Int64\n└──      return %2\nend\n"
    )
}

#[test]
fn a_running_frame_calls_the_methods_of_its_world() {
    for level in [OptLevel::O0, OptLevel::O2] {
        for definer in KINDS {
            for caller in [Kind::Eager, Kind::Lazy, Kind::Tiered] {
                let session = session(level, Workers::Caller);
                let main = session.create_dylib("main").unwrap();
                let (dylib, armed) = (main.downgrade(), Arc::new(AtomicBool::new(false)));
                let arm = armed.clone();
                main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
                    let round: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("none"))?;
                    if round == 4 && armed.swap(false, Ordering::Relaxed) {
                        let dylib = dylib.upgrade().expect("the session is there");
                        scope.blocking(|| put_again(&dylib, &look(100), definer));
                    }
                    scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
                })
                .unwrap();
                put(&main, &look(1), definer);
                let make = "function make(n::Int64)::Any\n1 ─      return Main.look\nend\n";
                put(&main, make, Kind::Eager);
                put(&main, CALLER, caller);
                put(&main, SPIN, caller);
                let spin: Int = main.func("spin").unwrap();
                assert_eq!(spin.call((9,)), Ok(9));
                arm.store(true, Ordering::Relaxed);
                let during = if definer == Kind::Replaceable { 405 } else { 9 };
                let found = [(); 3].map(|()| spin.call((9,)).unwrap_or_else(|error| panic!("{error}")));
                assert_eq!(found, [during, 900, 900], "{definer:?} called by {caller:?}, {level:?}");
            }
        }
    }
}

#[test]
fn a_removed_function_is_no_longer_a_method() {
    for definer in KINDS {
        for way in 0..4 {
            let session = session(OptLevel::O2, Workers::Caller);
            let (library, main) =
                (session.create_dylib("library").unwrap(), session.create_dylib("main").unwrap());
            main.link_against(&library).unwrap();
            let tracker = library.create_tracker(OnDrop::Keep).unwrap();
            let source = VALUES[0].1.split_inclusive("end\n").next().unwrap();
            let program = library.read("values.jlir", source.as_bytes()).unwrap();
            library.tracked_by(&tracker).define(defined_as(program, definer)).unwrap();
            // The object is made where no caller depends on the method.
            let make = "function make(n::Int64)::Any\n1 ─      return Main.double\nend\n";
            put(&main, &(make.to_owned() + CALLER + DRIVE), Kind::Lazy);
            let drive: Int = main.func("drive").unwrap();
            assert_eq!(drive.call((4,)), Ok(8));
            match way {
                0 => library.remove(&["double"]).unwrap(),
                1 => tracker.remove(Dependants::Deny).unwrap(),
                2 => library.clear(Dependants::Tombstone).unwrap(),
                _ => session.close_dylibs(&[&library], Dependants::Keep).unwrap(),
            }
            let thrown = drive.call((4,)).map_err(|error| error.to_string());
            let thrown = thrown.expect_err(&format!("{definer:?}, way {way}"));
            assert!(thrown.contains("MethodError"), "{definer:?}, way {way}: {thrown}");
            if way < 3 {
                put(&library, source, definer);
                assert_eq!(drive.call((4,)), Ok(8), "{definer:?}, way {way}: defined again");
            }
            assert_eq!(session.linking().check(), Ok(()));
        }
    }
}

/// `pick` with two integers is ambiguous until there is a method for these.
#[test]
fn ambiguous_calls_of_methods_of_several_definitions_are_errors() {
    for kind in KINDS {
        let session = session(OptLevel::O2, Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let pick = |a: &str, b: &str, n: i64| {
            format!("function pick(a::{a}, b::{b})::Int64\n1 ─      return {n}\nend\n")
        };
        let call = "
function apply(f::Any, x::Any, y::Any)::Any
1 ─ %1 = dynamic (f)(x, y)::Any
└──      return %1
end
";
        let drive = "
function drive(n::Int64)::Int64
1 ─ %1 = invoke Main.apply(Main.pick::Any, n::Any, n::Any)::Any
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end
";
        put(&main, call, Kind::Lazy);
        put(&main, &pick("Any", "Int64", 1), kind);
        put(&main, drive, Kind::Lazy);
        let drive: Int = main.func("drive").unwrap();
        assert_eq!(drive.call((0,)), Ok(1));
        put(&main, &pick("Int64", "Any", 2), kind);
        let thrown = drive.call((0,)).unwrap_err().to_string();
        assert!(thrown.contains("MethodError: pick(::Int64, ::Int64) is ambiguous"), "{kind:?}: {thrown}");
        put(&main, &pick("Int64", "Int64", 3), kind);
        assert_eq!(drive.call((0,)), Ok(3), "{kind:?}");
    }
}

#[test]
fn a_failed_compilation_is_an_error_of_the_call() {
    for kind in KINDS {
        let session = session(OptLevel::O2, Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let broken = "
function double(x::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:no_such_symbol_here), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
└──      return %1
end
";
        put(&main, broken, kind);
        let make = "function make(n::Int64)::Any\n1 ─      return Main.double\nend\n";
        put(&main, &(make.to_owned() + CALLER + DRIVE), Kind::Lazy);
        let drive: Int = main.func("drive").unwrap();
        for _ in 0..2 {
            let thrown = drive.call((4,)).unwrap_err().to_string();
            assert!(thrown.contains("no_such_symbol_here"), "{kind:?}: {thrown}");
        }
    }
}

/// Threads call the methods of a function while others are added, replaced and removed.
#[test]
fn threads_call_methods_that_come_and_go() {
    for kind in KINDS {
        let session = session(OptLevel::O1, Workers::Pool(2));
        let main = session.create_dylib("main").unwrap();
        let method = |ty: &str, n: i64| format!("function pick(x::{ty})::Int64\n1 ─      return {n}\nend\n");
        put(&main, &method("Any", 0), Kind::Lazy);
        let make = "function make(n::Int64)::Any\n1 ─      return Main.pick\nend\n";
        put(&main, &(make.to_owned() + CALLER + DRIVE), Kind::Lazy);
        let newest = AtomicI64::new(0);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let drive: Int = main.func("drive").unwrap();
                    let mut last = 0;
                    while !is_done.load(Ordering::SeqCst) {
                        let before = newest.load(Ordering::SeqCst);
                        let found = drive.call((1,)).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
                        assert!(found >= before && found >= last, "{kind:?}: {found}, then {before}, {last}");
                        last = found;
                    }
                });
            }
            let _done = Done(&is_done);
            put(&main, &method("Int64", 1), kind);
            for n in 2..40 {
                put_again(&main, &method("Int64", n), kind);
                newest.store(n, Ordering::SeqCst);
            }
        });
        main.remove(&["pick(Int64)"]).unwrap();
        let drive: Int = main.func("drive").unwrap();
        assert_eq!(drive.call((1,)), Ok(0), "{kind:?}: the general one is left");
    }
}

/// Whether an object is of the type that a program of its own declares.
const IS_PLUS: &str = "
function is_plus(n::Int64)::Int64
1 ─ %1 = invoke Main.make(n::Int64)::Any
│   %2 = (%1 isa Plus)::Bool
│   %3 = Base.zext_int(Int64, %2)::Int64
└──      return %3
end
";

#[test]
fn a_type_is_one_type_in_all_programs_that_declare_it_alike() {
    for kind in KINDS {
        let session = session(OptLevel::O2, Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        put(&main, VALUES[1].1, kind);
        put(&main, &("struct Plus <: Function\n    n::Int64\nend\n".to_owned() + IS_PLUS), kind);
        let is_plus: Int = main.func("is_plus").unwrap();
        assert_eq!(is_plus.call((3,)), Ok(1), "{kind:?}");
        // One that is declared otherwise is another one.
        let other = "struct Plus <: Function\n    n::Float64\nend\n".to_owned()
            + &IS_PLUS.replace("is_plus", "is_other");
        put(&main, &other, kind);
        let is_other: Int = main.func("is_other").unwrap();
        assert_eq!((is_other.call((3,)), is_plus.call((3,))), (Ok(0), Ok(1)), "{kind:?}");
    }
}

/// A program that was read separately has its own context. Its functions are those that other programs name.
#[test]
fn functions_of_programs_with_other_contexts_are_known_by_module_and_name() {
    for kind in KINDS {
        let session = session(OptLevel::O2, Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let make = "function make(n::Int64)::Any\n1 ─      return Main.double\nend\n";
        put(&main, &(make.to_owned() + CALLER + DRIVE), Kind::Lazy);
        let source = VALUES[0].1.split_inclusive("end\n").next().unwrap();
        let program = Program::read("alone.jlir", source.as_bytes()).unwrap();
        main.define(defined_as(program.into(), kind)).unwrap();
        let drive: Int = main.func("drive").unwrap();
        assert_eq!(drive.call((4,)), Ok(8), "{kind:?}");
    }
}

/// A function of the host that holds its session goes when the session ends, whatever was compiled for it and however that was redefined meanwhile.
#[test]
fn the_end_of_a_session_frees_functions_of_the_host_that_hold_it() {
    struct Held(Session, Arc<AtomicBool>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }
    let source = |sum: i64| {
        format!(
            "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.tick(x::Int64)::Int64\n\
             │   %2 = Base.add_int(%1, {sum})::Int64\n└──      return %2\nend\n"
        )
    };
    for kind in ["eager", "lazy", "tiered", "replaceable"] {
        for (redefines, keeps_handle) in [(false, false), (true, false), (false, true), (true, true)] {
            let session =
                Session::new(crate::doors::open(Options::new()).opt_level(OptLevel::O1), Workers::Caller)
                    .unwrap();
            let main = session.create_dylib("main").unwrap();
            let is_gone = Arc::new(AtomicBool::new(false));
            let held = Held(session.clone(), is_gone.clone());
            main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
                let x: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
                scope.blocking(|| held.0.optimize_hot());
                scope.int(x).map_err(|error| scope.throw_error(&error.to_string()))
            })
            .unwrap();
            let program = |sum: i64| {
                let program = main.read("top.jlir", source(sum).as_bytes()).unwrap();
                match kind {
                    "lazy" => program.lazy(),
                    "tiered" => program.tiered(2),
                    "replaceable" => program.replaceable(),
                    _ => program,
                }
            };
            main.define(program(1)).unwrap();
            let top: TypedFunc<(i64,), i64> = main.func("top").unwrap();
            for _ in 0..4 {
                assert_eq!(top.call((1,)), Ok(2), "{kind}");
            }
            if redefines {
                main.redefine(program(2)).unwrap();
                assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((1,)), Ok(3), "{kind}");
            }
            let top = keeps_handle.then_some(top);
            session.end();
            drop(top);
            drop((main, session));
            assert!(
                is_gone.load(Ordering::Relaxed),
                "{kind}, redefined {redefines}, handle kept {keeps_handle}"
            );
        }
    }
}
