//! Frames that run while their callees are replaced: the assumptions of their code have to hold for all later calls.
//!
//! Each program is a loop that calls `look`, which has no effect, and then `tick`, a function of the host, which redefines `look` in one
//! iteration. The frame stays in its world and calls the old body to its end; a replaceable one is reached by the next call. Nothing is inlined,
//! so that there are calls; every safepoint collects, so that objects without roots are gone.

use std::sync::atomic::{AtomicBool, Ordering};

use brolga::ir::Type;
use brolga::session::{Definitions, Dylib, Signature};
use brolga::{OptLevel, Options, Output, Session, TypedFunc, Workers};

use super::Ending;

const TYPES: &str = "\
mutable struct Item
    x::Int64
end
mutable struct Holder
    held::Item
end
mutable struct Loose
    held::Any
end
";

/// Allocates an object in each iteration, which `look` is given; a holder lives through all of them. Gives the last sum, and what the
/// holder has.
const SPIN: &str = "\
function spin(n::Int64)::Int64
1 ─ %1 = %new(Main.Item, 1000)::Main.Item
│   %2 = %new(Main.Holder, %1)::Main.Holder
│   %3 = Base.getfield(%2, :held)::Main.Item
└──      goto #2
2 ┄ %5 = φ (#1 => 0, #3 => %11)::Int64
│   %6 = φ (#1 => 0, #3 => %10)::Int64
│   %7 = Base.slt_int(%5, n)::Bool
└──      goto #4 if not %7
3 ─ %8 = %new(Main.Item, %5)::Main.Item
│   %9 = invoke Main.look(%8::Main.Item, %2::Main.Holder)::Int64
│   %10 = Base.add_int(%6, %9)::Int64
│         invoke Main.tick(%5::Int64)::Int64
│   %11 = Base.add_int(%5, 1)::Int64
└──       goto #2
4 ─ %14 = Base.getfield(%2, :held)::Main.Item
│   %15 = Base.getfield(%14, :x)::Int64
│   %16 = Base.add_int(%6, %15)::Int64
└──       return %16
end
";

/// The same with a handler around the call: an exception ends it with a negative sum.
const GUARDED: &str = "\
function spin(n::Int64)::Int64
1 ─ %1 = %new(Main.Item, 1000)::Main.Item
│   %2 = %new(Main.Holder, %1)::Main.Holder
└──      goto #2
2 ┄ %4 = φ (#1 => 0, #4 => %13)::Int64
│   %5 = φ (#1 => 0, #4 => %9)::Int64
│   %6 = Base.slt_int(%4, n)::Bool
└──      goto #6 if not %6
3 ─ %7 = enter #5
7 ─ %8 = %new(Main.Item, %4)::Main.Item
│   %20 = invoke Main.look(%8::Main.Item, %2::Main.Holder)::Int64
│         $(Expr(:leave, :(%7)))
└──       goto #4
4 ─ %9 = Base.add_int(%5, %20)::Int64
│         invoke Main.tick(%4::Int64)::Int64
│   %13 = Base.add_int(%4, 1)::Int64
└──       goto #2
5 ┄       $(Expr(:pop_exception, :(%7)))
│   %16 = Base.sub_int(0, %5)::Int64
└──       return %16
6 ─       return %5
end
";

/// Reads, and does nothing else.
const HARMLESS: &str = "\
function look(b::Main.Item, h::Main.Holder)::Int64
1 ─ %1 = Base.getfield(b, :x)::Int64
└──      return %1
end
";

/// Keeps the first object that it is given, and allocates.
const KEEPS: &str = "\
function look(b::Main.Item, h::Main.Holder)::Int64
1 ─ %1 = Base.getfield(h, :held)::Main.Item
│   %2 = Base.getfield(%1, :x)::Int64
│   %3 = Base.getfield(b, :x)::Int64
│   %4 = Base.eq_int(%2, 1000)::Bool
└──      goto #3 if not %4
2 ─      Base.setfield!(h, :held, b)::Main.Item
│   %7 = Base.add_int(%3, 500)::Int64
│        Base.setfield!(b, :x, %7)::Int64
└──      return %3
3 ─      return %3
end
";

const THROWS: &str = "\
function look(b::Main.Item, h::Main.Holder)::Int64
1 ─      invoke Base.error(\"not any more\"::String)::Union{}
└──      unreachable
end
";

/// How `look` and `spin` are defined.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Lazy,
    Tiered,
    Replaceable,
}

fn put(dylib: &Dylib, source: &str, way: Way, again: bool) {
    let program = dylib.read("frames.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let program: Definitions = match way {
        Way::Lazy => program.lazy(),
        Way::Tiered => program.tiered(1).iterations(2),
        Way::Replaceable => program.replaceable(),
    };
    let done = if again { dylib.redefine(program).map(drop) } else { dylib.define(program) };
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// A session that inlines nothing and collects all the time.
fn stressed(workers: Workers) -> Ending {
    let options =
        crate::doors::open(Options::new()).opt_level(OptLevel::O2).output(Output::Capture).gc_stress(true);
    let options = options.without_passes(&["inline"]).unwrap();
    Ending(Session::new(options, workers).unwrap_or_else(|error| panic!("{error}")))
}

/// Runs `act` in the host's function when it is called for the round of that number.
fn tick(session: &Session, main: &Dylib, act: impl Fn(i64) + Send + Sync + 'static) {
    let (signature, host) = (Signature::new("tick", &[Type::INT64], Type::INT64), session.clone());
    main.define_host(&signature, move |scope, args| {
        let round: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.blocking(|| {
            act(round);
            host.optimize_hot()
        });
        scope.int(0).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
}

const ROUNDS: i64 = 9;
const WHEN: i64 = 4;

/// The result of a loop during whose iteration of that number `look` is redefined, and that of the next call.
fn replaced_in_a_loop(spin: &str, look: &'static str, way: Way) -> [i64; 2] {
    let session = stressed(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let dylib = main.downgrade();
    let is_first = AtomicBool::new(true);
    tick(&session, &main, move |round| {
        if round == WHEN && is_first.swap(false, Ordering::Relaxed) {
            let dylib = dylib.upgrade().expect("the session is there");
            put(&dylib, &(TYPES.to_owned() + look), way, true);
        }
    });
    put(&main, &(TYPES.to_owned() + HARMLESS + spin), way, false);
    let spin: TypedFunc<(i64,), i64> = main.func("spin").unwrap();
    [(); 2].map(|()| spin.call((ROUNDS,)).unwrap_or_else(|error| panic!("{way:?}: {error}")))
}

/// The results of the running frame and of the next call, by how `look` is defined: a frame stays in its world, unless `look` is replaceable.
fn check(spin: &str, look: &'static str, old: i64, replaced: i64, new: i64) {
    for way in [Way::Lazy, Way::Tiered, Way::Replaceable] {
        let first = if way == Way::Replaceable { replaced } else { old };
        assert_eq!(replaced_in_a_loop(spin, look, way), [first, new], "{way:?}");
    }
}

#[test]
fn a_frame_may_call_what_keeps_an_object_that_its_code_had_to_itself() {
    let sum: i64 = (0..ROUNDS).sum();
    check(SPIN, KEEPS, sum + 1000, sum + WHEN + 1 + 500, sum + 500);
}

#[test]
fn a_frame_may_call_what_throws_where_nothing_did() {
    let sum: i64 = (0..ROUNDS).sum();
    check(GUARDED, THROWS, sum, -(0..=WHEN).sum::<i64>(), 0);
}

/// Calls a method by the type of an object, which only running shows.
const DYNAMIC: &str = "\
function kind(x::Int64)::Int64
1 ─      return 1
end
function kind(x::Float64)::Int64
1 ─      return 0
end
function spin(n::Int64)::Int64
1 ─ %1 = %new(Main.Loose, n)::Main.Loose
│   %2 = invoke Main.turns(%1::Main.Loose, n::Int64)::Int64
└──      return %2
end
function turns(b::Main.Loose, n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %11)::Int64
│   %3 = φ (#1 => 0, #3 => %9)::Int64
│   %4 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = Base.getfield(b, :held)::Any
│   %7 = dynamic Main.kind(%6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
│   %9 = Base.add_int(%3, %8)::Int64
│         invoke Main.tick(%2::Int64)::Int64
│   %11 = Base.add_int(%2, 1)::Int64
└──       goto #2
4 ─       return %3
end
";

#[test]
fn a_call_by_type_finds_the_body_that_every_other_call_does() {
    let kind = "function kind(x::Int64)::Int64\n1 ─      return 100\nend\n";
    check(DYNAMIC, kind, ROUNDS, WHEN + 1 + (ROUNDS - WHEN - 1) * 100, ROUNDS * 100);
}

/// Passes on what it is given.
const MIDDLE: &str = "\
function middle(b::Main.Item, h::Main.Holder)::Int64
1 ─ %1 = invoke Main.look(b::Main.Item, h::Main.Holder)::Int64
└──      return %1
end
";

#[test]
fn eager_code_relies_on_no_definition_replaced_before_its_lookup() {
    let sum: i64 = (0..ROUNDS).sum();
    let through_middle = SPIN.replace("Main.look", "Main.middle");
    for (spin, held) in [(SPIN, true), (SPIN, false), (&through_middle, true), (&through_middle, false)] {
        let session = stressed(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        tick(&session, &main, |_| {});
        let program = main.read("p.jlir", (TYPES.to_owned() + HARMLESS + MIDDLE + spin).as_bytes()).unwrap();
        main.define(program).unwrap();
        // Whether a caller holds the old one compiled makes no difference to callers that do not.
        let held = held.then(|| main.function("look").unwrap());
        let program = main.read("p.jlir", (TYPES.to_owned() + KEEPS).as_bytes()).unwrap();
        main.redefine(program).unwrap();
        let spin: TypedFunc<(i64,), i64> = main.func("spin").unwrap();
        assert_eq!(spin.call((ROUNDS,)), Ok(sum + 500));
        drop(held);
    }
}
