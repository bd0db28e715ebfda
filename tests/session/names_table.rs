//! The table of `docs/sessions.md` on what names mean, generated: every use of a name, in every place of the caller, at every level, in every kind of definition, inlined and not,
//! in every order of definition. There is one answer to each.
//!
//! A program `k` has everything that a name can be, and its answers are 1. Another one has the same names with the answers 2, and calls the functions of `k`.
//!
//! | the caller is | order |
//! |---|---|
//! | in the same program | |
//! | another program of the dylib | after `k`, and before it |
//! | a program of a dylib that is linked to the one of `k` | after `k`, and before it |
//! | such a program in a package, built against `k` | after `k` |
//! | text at a prompt | after `k` |
//!
//! Dylibs that are not linked are in `names.rs`.

use brolga::ir::Module;
use brolga::session::{Dylib, Evaluator, PackageBuild};
use brolga::{OptLevel, Options, Session};

use super::kinds::{KINDS, Kind, LEVELS, session};

/// A program that has everything that a name can be, with these values, and functions that use it.
fn everything(n: usize, prefix: &str) -> String {
    let kind = format!("{prefix}kind");
    let fields: String = (1..=n).map(|at| format!("    f{at}::Int64\n")).collect();
    format!(
        "
global state::Int64 = {n}
struct Point
{fields}end
function {kind}(x::Int64)::Int64
1 ─      return {n}
end
function {prefix}static()::Int64
1 ─ %1 = invoke Main.{kind}(7::Int64)::Int64
└──      return %1
end
function {prefix}dynamic()::Int64
1 ─ %1 = Core.compilerbarrier(:type, 7)::Any
│   %2 = dynamic Main.{kind}(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function {prefix}value()::Int64
1 ─ %1 = Core.compilerbarrier(:type, Main.{kind})::Any
│   %2 = dynamic (%1)(7)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function {prefix}object()::Any
1 ─      return Main.{kind}
end
function {prefix}variable()::Int64
1 ─ %1 = Main.state::Int64
└──      return %1
end
function {prefix}assigned()::Int64
1 ─ %1 = Main.state::Int64
│        Core.setglobal!(Main, :state, %1)::Int64
│   %2 = Core.getglobal(Main, :state)::Int64
└──      return %2
end
function {prefix}constant()::Int64
1 ─ %1 = $(QuoteNode([{n}, 5]))::Vector{{Int64}}
│   %2 = Base.arrayref(true, %1, 1)::Int64
└──      return %2
end
function {prefix}foreign()::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:number), Int64, svec(), 0, :(:ccall)))::Int64
└──      return %1
end
function {prefix}type()::Int64
1 ─ %1 = Core.sizeof(Point)::Int64
│   %2 = Base.lshr_int(%1, 3)::Int64
└──      return %2
end
function {prefix}callback()::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{{Nothing}}, :(Main.{kind}), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}
│   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), 7))::Int64
└──      return %2
end
"
    )
}

/// The uses of names.
const USES: [&str; 9] =
    ["static", "dynamic", "value", "variable", "assigned", "constant", "foreign", "type", "callback"];

/// The functions that call those of `k`.
fn callers(is_inlined: bool) -> String {
    let hint = if is_inlined { "" } else { " noinline" };
    let calls = USES.map(|name| {
        format!(
            "function via_{name}()::Int64\n1 ─ %1 = invoke Main.k_{name}()::Int64{hint}\n└──      return %1\nend\n\
             function late_{name}()::Int64\n1 ─ %1 = dynamic Main.k_{name}()::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n\
             └──      return %2\nend\n"
        )
    });
    calls.concat()
}

/// Defines the C function `number`, which returns 1 or 2.
fn number(dylib: &Dylib, n: i64) {
    let address = if n == 1 { one as *const () } else { two as *const () };
    dylib.define_c_symbol("number", address).unwrap_or_else(|error| panic!("{error}"));
}

extern "C" fn one() -> i64 {
    1
}

extern "C" fn two() -> i64 {
    2
}

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let program = dylib.read_late("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(kind.of(program)).unwrap_or_else(|error| panic!("{error}"));
}

/// The value of a function without arguments, in all tiers that the calls reach.
fn value(dylib: &Dylib, name: &str, at: &str) -> i64 {
    let function = dylib.func::<(), i64>(name).unwrap_or_else(|error| panic!("{name}, {at}: {error}"));
    let call = |_| {
        let value = function.call(()).unwrap_or_else(|error| panic!("{name}, {at}: {error}"));
        dylib.session().optimize_hot();
        value
    };
    let values: Vec<i64> = (0..5).map(call).collect();
    assert!(values.iter().all(|value| *value == values[0]), "`{name}` differs by tier, {at}: {values:?}");
    values[0]
}

/// Where the caller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Same,
    Other,
    Linked,
}

/// The dylibs of `k` and of the caller, with all defined.
fn dylibs(
    session: &Session,
    place: Place,
    kind: Kind,
    is_inlined: bool,
    is_caller_first: bool,
) -> [Dylib; 2] {
    let k = session.create_dylib("k").unwrap();
    number(&k, 1);
    let d = match place {
        Place::Same | Place::Other => k.clone(),
        Place::Linked => {
            let d = session.create_dylib("d").unwrap();
            d.link_against(&k).unwrap();
            number(&d, 2);
            d
        }
    };
    let (home, caller) = (everything(1, "k_"), everything(2, "own_") + &callers(is_inlined));
    match place {
        Place::Same => define(&k, kind, &(home + &callers(is_inlined))),
        _ if is_caller_first => {
            define(&d, kind, &caller);
            define(&k, kind, &home);
        }
        _ => {
            define(&k, kind, &home);
            define(&d, kind, &caller);
        }
    }
    [k, d]
}

/// What a use of a name in the caller's own program has for its answer.
fn own(place: Place, name: &str) -> i64 {
    // C functions are the dylib's.
    if place == Place::Other && name == "foreign" { 1 } else { 2 }
}

#[test]
fn a_name_means_the_same_whoever_calls_its_body() {
    let mut cells = 0;
    for place in [Place::Same, Place::Other, Place::Linked] {
        for (level, kind, is_inlined, is_caller_first) in all() {
            if is_caller_first && place == Place::Same {
                continue;
            }
            let session = session(level);
            let [k, d] = dylibs(&session, place, kind, is_inlined, is_caller_first);
            let at = format!(
                "{place:?}, {level:?}, {kind:?}, inlined: {is_inlined}, caller first: {is_caller_first}"
            );
            for name in USES {
                for how in ["via", "late"] {
                    assert_eq!(value(&d, &format!("{how}_{name}"), &at), 1, "{how}_{name}, {at}");
                }
                assert_eq!(value(&k, &format!("k_{name}"), &at), 1, "k_{name}, {at}");
                if place != Place::Same {
                    assert_eq!(value(&d, &format!("own_{name}"), &at), own(place, name), "own_{name}, {at}");
                }
                cells += 1;
            }
        }
    }
    assert_eq!(cells, USES.len() * LEVELS.len() * KINDS.len() * 2 * 5);
}

/// Level, kind, whether calls may be inlined, whether the caller is defined first.
fn all() -> impl Iterator<Item = (OptLevel, Kind, bool, bool)> {
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    LEVELS.into_iter().flat_map(move |level| {
        KINDS.into_iter().flat_map(move |kind| flags.map(|(inlined, first)| (level, kind, inlined, first)))
    })
}

#[test]
fn a_name_means_the_same_in_a_package_and_at_a_prompt() {
    for level in LEVELS {
        for tiers in [None, Some(2)] {
            for kind in KINDS {
                let at = format!("{level:?}, {kind:?}, tiers: {tiers:?}");
                let session = session(level);
                let [k, d] = ["k", "d"].map(|name| session.create_dylib(name).unwrap());
                d.link_against(&k).unwrap();
                number(&k, 1);
                number(&d, 2);
                define(&k, kind, &everything(1, "k_"));
                let build = PackageBuild::new("callers").against("k.jlir", everything(1, "k_"));
                let build = tiers.map_or(build.clone(), |calls| build.tiered(calls));
                let caller = everything(2, "own_") + &callers(true);
                let options = crate::doors::open(Options::new()).opt_level(level);
                let package = build.build(&[("callers.jlir", caller.as_bytes())], options).unwrap();
                let _opened =
                    d.open_package_bytes(package.bytes).unwrap_or_else(|error| panic!("{at}: {error}"));
                let module = Module::new(session.context().view());
                let mut prompt = Evaluator::new(&d, &module);
                for name in USES {
                    for how in ["via", "late"] {
                        assert_eq!(value(&d, &format!("{how}_{name}"), &at), 1, "{how}_{name}, {at}");
                    }
                    assert_eq!(value(&d, &format!("own_{name}"), &at), 2, "own_{name}, {at}");
                    for (prefix, expected) in [("k", "1"), ("own", "2"), ("via", "1")] {
                        let text = format!("{prefix}_{name}()");
                        let found = prompt
                            .evaluate("prompt", &text)
                            .unwrap_or_else(|error| panic!("{text}, {at}: {error}"));
                        assert_eq!(prompt.show(&found).unwrap(), expected, "{text}, {at}");
                    }
                }
            }
        }
    }
}
