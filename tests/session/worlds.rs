//! The matrix of worlds: the bodies that a running frame and later calls reach around a redefinition.
//!
//! ```text
//!   spin(9) calls look nine times; the host redefines look from 1 to 100 in the fifth iteration
//! ```
//!
//! | kind of definition | the running frame | the next call |
//! |---|---|---|
//! | eager, lazy, tiered, interpreted | 9: it stays in its world | 900 |
//! | replaceable | 405: its next call reaches the new body | 900 |
//!
//! The answers do not depend on how `look` is called, on whether it is inlined, on the level, or on whether the frame has moved to a better
//! tier.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use brolga::ir::Type;
use brolga::session::{Definitions, Dependants, Dylib, OnDrop, Signature, Tracker};
use brolga::{CallError, OptLevel, Options, Output, Session, TypedFunc, Workers};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Eager,
    Lazy,
    Tiered,
    Interpreted,
    Replaceable,
}

const KINDS: [Kind; 5] = [Kind::Eager, Kind::Lazy, Kind::Tiered, Kind::Interpreted, Kind::Replaceable];

/// How `spin` calls `look`.
#[derive(Clone, Copy, Debug)]
enum Call {
    Static,
    /// Through a function that calls it, and may be inlined as well.
    Through,
    /// By the type of an object, at run time.
    Dynamic,
    /// By the function as an object, which is given to another one.
    Object,
    /// As C does, by the address of the function's C entry.
    Pointer,
}

const CALLS: [Call; 5] = [Call::Static, Call::Through, Call::Dynamic, Call::Object, Call::Pointer];

const TYPES: &str = "mutable struct Loose\n    held::Any\nend\n";

fn look(value: i64) -> String {
    format!(
        "function look(x::Int64)::Int64\n1 ─ %1 = Base.and_int(x, 0)::Int64\n│   %2 = Base.add_int(%1, {value})::Int64\n└──      return %2\nend\n"
    )
}

/// A loop whose body calls `look`, and then the host.
fn spin(call: Call) -> String {
    let call = match call {
        Call::Static => "invoke Main.look(%5::Int64)::Int64",
        Call::Through => "invoke Main.middle(%5::Int64)::Int64",
        Call::Dynamic => "invoke Main.late(%1::Main.Loose)::Int64",
        Call::Object => "invoke Main.apply(Main.look::typeof(Main.look), %1::Main.Loose)::Int64",
        Call::Pointer => "invoke Main.pointer(%5::Int64)::Int64",
    };
    format!(
        "function spin(n::Int64)::Int64
1 ─ %1 = %new(Main.Loose, n)::Main.Loose
└──      goto #2
2 ┄ %5 = φ (#1 => 0, #3 => %11)::Int64
│   %6 = φ (#1 => 0, #3 => %9)::Int64
│   %7 = Base.slt_int(%5, n)::Bool
└──      goto #4 if not %7
3 ─ %8 = {call}
│   %9 = Base.add_int(%6, %8)::Int64
│         invoke Main.tick(%5::Int64)::Int64
│   %11 = Base.add_int(%5, 1)::Int64
└──       goto #2
4 ─       return %6
end
function middle(x::Int64)::Int64
1 ─ %1 = invoke Main.look(x::Int64)::Int64
└──      return %1
end
function pointer(x::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{{Nothing}}, :(Main.look), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}
│   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
└──      return %2
end
function late(b::Main.Loose)::Int64
1 ─ %1 = Base.getfield(b, :held)::Any
│   %2 = dynamic Main.look(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function apply(f::typeof(Main.look), b::Main.Loose)::Int64
1 ─ %1 = Base.getfield(b, :held)::Any
│   %2 = dynamic (f)(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
"
    )
}

fn as_kind(program: Definitions, kind: Kind) -> Definitions {
    match kind {
        Kind::Eager => program,
        Kind::Lazy => program.lazy(),
        Kind::Tiered => program.tiered(2).iterations(3),
        Kind::Interpreted => program.tiered(40).interpreted(20),
        Kind::Replaceable => program.replaceable(),
    }
}

fn put(dylib: &Dylib, source: &str, kind: Kind, again: bool) {
    let program = dylib.read("worlds.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let program = as_kind(program, kind);
    let done = if again { dylib.redefine(program).map(drop) } else { dylib.define(program) };
    done.unwrap_or_else(|error| panic!("{error}"));
}

fn session(level: OptLevel, inlines: bool, workers: Workers) -> Session {
    let options = crate::doors::open(Options::new()).opt_level(level).output(Output::Capture);
    let options = if inlines { options } else { options.without_passes(&["inline"]).unwrap() };
    Session::new(options, workers).unwrap_or_else(|error| panic!("{error}"))
}

const ROUNDS: i64 = 9;
const WHEN: i64 = 4;

/// The results of `spin` in the call during which `look` is redefined, and in the two after it.
fn answers(kind: Kind, call: Call, level: OptLevel, inlines: bool, workers: Workers) -> [i64; 3] {
    let session = session(level, inlines, workers);
    let main = session.create_dylib("main").unwrap();
    let (dylib, host, armed) = (main.downgrade(), session.clone(), Arc::new(AtomicBool::new(false)));
    let arm = armed.clone();
    main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
        let round: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.blocking(|| {
            if round == WHEN && armed.swap(false, Ordering::Relaxed) {
                put(&dylib.upgrade().expect("the session is there"), &look(100), kind, true);
            }
            host.optimize_hot()
        });
        scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    put(&main, &(TYPES.to_owned() + &look(1) + &spin(call)), kind, false);
    let spin: TypedFunc<(i64,), i64> = main.func("spin").unwrap();
    let run = || spin.call((ROUNDS,)).unwrap_or_else(|error| panic!("{kind:?} {call:?}: {error}"));
    assert_eq!(run(), ROUNDS, "before anything is redefined");
    arm.store(true, Ordering::Relaxed);
    let answers = [(); 3].map(|()| run());
    // The function of the host holds the session.
    session.end();
    answers
}

#[test]
fn only_the_kind_of_definition_decides_what_a_frame_sees() {
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        for inlines in [true, false] {
            for kind in KINDS {
                for call in CALLS {
                    let during = match kind {
                        Kind::Replaceable => WHEN + 1 + (ROUNDS - WHEN - 1) * 100,
                        Kind::Eager | Kind::Lazy | Kind::Tiered | Kind::Interpreted => ROUNDS,
                    };
                    let expected = [during, 100 * ROUNDS, 100 * ROUNDS];
                    let found = answers(kind, call, level, inlines, Workers::Caller);
                    assert_eq!(found, expected, "{kind:?}, {call:?}, {level:?}, inlining {inlines}");
                }
            }
        }
    }
}

#[test]
fn a_pool_gives_the_same_answers() {
    for kind in KINDS {
        for call in CALLS {
            let during = match kind {
                Kind::Replaceable => WHEN + 1 + (ROUNDS - WHEN - 1) * 100,
                Kind::Eager | Kind::Lazy | Kind::Tiered | Kind::Interpreted => ROUNDS,
            };
            let found = answers(kind, call, OptLevel::O2, true, Workers::Pool(2));
            assert_eq!(found, [during, 100 * ROUNDS, 100 * ROUNDS], "{kind:?}, {call:?}");
        }
    }
}

/// A removal is an event of worlds as well: the frame that runs calls the old body to its end, and the next call throws. Nothing is inlined, since copies
/// stay.
#[test]
fn a_frame_does_not_see_a_removal_that_happens_while_it_runs() {
    for kind in KINDS {
        for call in [Call::Static, Call::Through, Call::Pointer] {
            let session = session(OptLevel::O1, false, Workers::Caller);
            let main = session.create_dylib("main").unwrap();
            let tracker = Arc::new(Mutex::new(None));
            let removes: Arc<Mutex<Option<Tracker>>> = tracker.clone();
            main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
                let round: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
                let removed = scope.blocking(|| match removes.lock().unwrap().take_if(|_| round == WHEN) {
                    Some(tracker) => tracker.remove(Dependants::Tombstone),
                    None => Ok(()),
                });
                removed.map_err(|error| scope.throw_error(&error.to_string()))?;
                scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
            })
            .unwrap();
            let own = main.create_tracker(OnDrop::Keep).unwrap();
            let read = |source: &str| main.read("worlds.jlir", source.as_bytes()).unwrap();
            main.tracked_by(&own).define(as_kind(read(&look(1)), kind)).unwrap();
            put(&main, &(TYPES.to_owned() + &spin(call)), kind, false);
            let spin: TypedFunc<(i64,), i64> = main.func("spin").unwrap();
            assert_eq!(spin.call((ROUNDS,)), Ok(ROUNDS), "before anything is removed");
            *tracker.lock().unwrap() = Some(own);
            assert_eq!(spin.call((ROUNDS,)), Ok(ROUNDS), "{kind:?}, {call:?}");
            match spin.call((ROUNDS,)) {
                Err(CallError::Exception(thrown)) => {
                    assert_eq!(thrown.message, "`look(Int64)` has been removed", "{kind:?}, {call:?}");
                }
                other => panic!("{kind:?}, {call:?}: {other:?}"),
            }
        }
    }
}

/// Calls from Rust can be made in a world that is chosen, as `invokelatest` and `invoke_in_world` make calls of programs.
#[test]
fn calls_from_rust_are_made_in_the_world_that_is_asked_for() {
    for kind in KINDS {
        let session = session(OptLevel::O2, true, Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), |scope, _| {
            scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
        })
        .unwrap();
        put(&main, &(TYPES.to_owned() + &look(1) + &spin(Call::Dynamic)), kind, false);
        let spin: TypedFunc<(i64,), i64> = main.func("spin").unwrap();
        assert_eq!(spin.call((ROUNDS,)), Ok(ROUNDS));
        let within = session.activate(|activation| {
            let (old, call) = (activation.world(), |activation: &_| spin.call_within(activation, (ROUNDS,)));
            put(&main, &look(100), kind, true);
            let newest = session.runtime().world();
            assert!(newest > old && activation.world() == old, "{kind:?}");
            let found = [
                call(activation),
                activation.latest(call),
                activation.in_world(old, call),
                activation.in_world(newest, call),
                activation.in_world(u64::MAX, call),
                // Each leaves the world as it was.
                activation.latest(|activation| activation.in_world(old, call)),
                activation.in_world(old, |activation| activation.latest(call)),
                call(activation),
            ];
            assert_eq!(activation.world(), old, "{kind:?}");
            found.map(Result::unwrap)
        });
        let [before, after] = match kind {
            Kind::Replaceable => [100 * ROUNDS; 2],
            Kind::Eager | Kind::Lazy | Kind::Tiered | Kind::Interpreted => [ROUNDS, 100 * ROUNDS],
        };
        let expected = [before, after, before, after, after, before, after, before];
        assert_eq!(within, Ok(expected), "{kind:?}");
        assert_eq!(spin.call((ROUNDS,)), Ok(100 * ROUNDS), "{kind:?}");
    }
}
