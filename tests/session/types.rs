//! Declared types in worlds and dylibs: what a type name means, when it is declared again, and what is left of the former type.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use brolga::session::{Dependants, Dylib, OnDrop};
use brolga::{OptLevel, Session};

use super::kinds::{Kind, each, session};

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let read = dylib.read("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.redefine(kind.of(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn call(dylib: &Dylib, name: &str) -> i64 {
    let function = dylib.func::<(), i64>(name).unwrap_or_else(|error| panic!("{error}"));
    let values: BTreeSet<i64> = (0..6)
        .map(|_| {
            let value = function.call(()).unwrap_or_else(|error| panic!("{name}: {error}"));
            dylib.session().optimize_hot();
            value
        })
        .collect();
    assert_eq!(values.len(), 1, "`{name}` differs by tier: {values:?}");
    values.into_iter().next().unwrap()
}

/// `Point` with fields up to `n`, an object of it in a global variable, and methods that say which one it is.
fn point(n: usize) -> String {
    let fields: String = (1..=n).map(|at| format!("    f{at}::Int64\n")).collect();
    let values: String = (1..=n).map(|at| format!(", {at}")).collect();
    format!(
        "
struct Point
{fields}end
global kept{n}::Any = nothing
function keep{n}()::Int64
1 ─ %1 = %new(Point{values})::Point
│        Core.setglobal!(Main, :kept{n}, %1)::Any
└──      return {n}
end
function what(p::Point)::Int64
1 ─      return {n}
end
function ask{n}()::Int64
1 ─ %1 = Main.kept{n}::Any
│   %2 = dynamic Main.what(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function is{n}(p::Any)::Int64
1 ─ %1 = (p isa Point)::Bool
│   %2 = Base.zext_int(Int64, %1)::Int64
└──      return %2
end
function sum{n}()::Int64
1 ─ %1 = Main.kept{n}::Any
│   %2 = Core.typeassert(%1, Point)::Point
│   %3 = Base.getfield(%2, :f{n})::Int64
└──      return %3
end
"
    )
}

/// Whether the object of one program is of the type of another.
fn is(of: usize, kept: usize) -> String {
    format!(
        "function is_{of}_{kept}()::Int64\n1 ─ %1 = Main.kept{kept}::Any\n│   %2 = invoke Main.is{of}(%1::Any)::Int64\n└──      return %2\nend\n\
         function text{kept}()::Int64\n1 ─ %1 = Main.kept{kept}::Any\n│        Base.println(%1)::Nothing\n└──      return 0\nend\n"
    )
}

/// A struct is declared again: old objects keep their type, which says in which worlds it was `Point`, and methods take the objects of their own type only.
#[test]
fn a_struct_is_declared_again() {
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, &point(1));
        assert_eq!((call(&main, "keep1"), call(&main, "ask1"), call(&main, "sum1")), (1, 1, 1), "{at}");
        define(&main, kind, &point(2));
        // The code of the first program makes objects of the first type, also what is compiled now.
        assert_eq!((call(&main, "keep1"), call(&main, "keep2")), (1, 2), "{at}");
        define(&main, kind, &(is(1, 1) + &is(2, 2)));
        define(&main, kind, &(is(1, 2) + &is(2, 1)));
        let all = ["ask1", "ask2", "sum1", "sum2", "is_1_1", "is_2_2", "is_1_2", "is_2_1"];
        assert_eq!(all.map(|name| call(&main, name)), [1, 2, 1, 2, 1, 1, 0, 0], "{at}");
        let _ = session.runtime().sink().take_captured();
        let text1 = main.func::<(), i64>("text1").unwrap();
        assert_eq!((text1.call(()), main.func::<(), i64>("text2").unwrap().call(())), (Ok(0), Ok(0)));
        let printed = String::from_utf8(session.runtime().sink().take_captured()).unwrap();
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines[0].starts_with("@world(Point, ") && lines[0].ends_with(")(1)"), "{at}: {printed}");
        assert_eq!(lines[1], "Point(1, 2)", "{at}");
        // The former type is read as it is printed; a name that meant the same in these worlds as now is that name.
        let former = lines[0].strip_suffix("(1)").unwrap();
        let text = |name: &str, ty: &str| {
            format!(
                "function {name}()::Int64\n1 ─ %1 = Main.kept1::Any\n│   %2 = (%1 isa {ty})::Bool\n│   %3 = Base.zext_int(Int64, %2)::Int64\n└──      return %3\nend\n"
            )
        };
        define(&main, kind, &(text("by_worlds", former) + &text("by_others", "@world(Point, 1:1)")));
        assert_eq!((call(&main, "by_worlds"), call(&main, "by_others")), (1, 0), "{at}");
        // What is the same already is not declared again.
        define(&main, kind, &point(2));
        assert_eq!((call(&main, "ask2"), call(&main, "is_2_2")), (2, 1), "{at}");
        // Neither type is taken for another one when it is declared as the first one was.
        define(
            &main,
            kind,
            &point(1).replace("kept1", "kept3").replace("keep1", "keep3").replace("is1", "is3"),
        );
        assert_eq!(call(&main, "keep3"), 1, "{at}");
        define(&main, kind, &(is(3, 1) + &is(3, 3)));
        assert_eq!(
            ["is_3_1", "is_3_3", "is_1_1", "ask1"].map(|name| call(&main, name)),
            [0, 1, 1, 1],
            "{at}"
        );
    });
}

/// A type that names one that is declared again is declared again with it.
#[test]
fn types_that_name_others_are_declared_again() {
    let line = "struct Line\n    a::Point\n    b::Union{Nothing, Line}\nend\nabstract type Shape end\nstruct Dot <: Shape\n    at::Line\nend\n";
    let uses = |n: usize| {
        let values: String = (1..=n).map(|at| format!(", {at}")).collect();
        format!(
            "function dot{n}()::Int64\n1 ─ %1 = %new(Point{values})::Point\n│   %2 = %new(Line, %1, nothing)::Line\n│   %3 = %new(Dot, %2)::Dot\n\
             │   %4 = Base.getfield(%3, :at)::Line\n│   %5 = Base.getfield(%4, :a)::Point\n│   %6 = Base.getfield(%5, :f{n})::Int64\n└──      return %6\nend\n"
        )
    };
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, &(point(1) + line + &uses(1)));
        define(&main, kind, &(point(3) + line + &uses(3)));
        assert_eq!((call(&main, "dot1"), call(&main, "dot3")), (1, 3), "{at}");
    });
}

/// Dylibs that are not linked have types of their own; one that is linked sees the other's.
#[test]
fn each_dylib_has_its_types() {
    each(|session, kind, at| {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| session.create_dylib(name).unwrap());
        define(&a, kind, &point(1));
        define(&b, kind, &point(2));
        for (dylib, n) in [(&a, 1), (&b, 2)] {
            assert_eq!(call(dylib, &format!("keep{n}")), n, "{at}");
            assert_eq!(call(dylib, &format!("ask{n}")), n, "{at}");
        }
        let mentions =
            "function mine()::Int64\n1 ─ %1 = Core.sizeof(Point)::Int64\n└──      return %1\nend\n";
        assert!(c.read("c.jlir", mentions.as_bytes()).is_err(), "{at}: nothing that it sees has a `Point`");
        c.link_against(&b).unwrap();
        define(&c, kind, mentions);
        assert_eq!(call(&c, "mine"), 16, "{at}");
        // What it declares otherwise is its own.
        define(&c, kind, &(point(3) + mentions));
        assert_eq!((call(&c, "mine"), call(&b, "ask2")), (24, 2), "{at}");
        d.link_against(&b).unwrap();
        define(&d, kind, mentions);
        assert_eq!(call(&d, "mine"), 16, "{at}");
        // Methods for types of one name have symbols of their own, and each dylib finds its own by the plain name.
        b.remove(&["what(Point)"]).unwrap();
        assert_eq!((call(&a, "ask1"), call(&c, "keep3"), call(&c, "ask3")), (1, 3, 3), "{at}");
        assert!(b.func::<(), i64>("ask2").unwrap().call(()).is_err(), "{at}");
        b.clear(Dependants::Cascade).unwrap();
        assert!(d.read("d.jlir", mentions.as_bytes()).is_err(), "{at}: the dylib that had it was cleared");
    });
}

/// A program that is refused, or not defined, declares nothing.
#[test]
fn what_is_not_in_force_is_not_meant() {
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, &point(1));
        let size = "function size()::Int64\n1 ─ %1 = Core.sizeof(Point)::Int64\n└──      return %1\nend\n";
        let read = main.read("second.jlir", point(2).as_bytes()).unwrap();
        define(&main, kind, size);
        assert_eq!(call(&main, "size"), 8, "{at}");
        let again = main.define(kind.of(main.read("first.jlir", point(3).as_bytes()).unwrap()));
        assert!(again.is_err() || kind == Kind::Eager || again.is_ok());
        drop(read);
        define(&main, kind, size);
        let now = if again.is_ok() { 24 } else { 8 };
        assert_eq!(call(&main, "size"), now, "{at}");
    });
}

/// A bare name leaves methods for former types out; a field with a type's name is not the type.
#[test]
fn names_in_symbols_are_types() {
    let session = session(OptLevel::O1);
    let main = session.create_dylib("main").unwrap();
    let pick = |ty: &str| format!("function pick(x::{ty})::Int64\n1 ─      return 1\nend\n");
    let field = "@NamedTuple{Point::Int64}";
    define(&main, Kind::Lazy, &(point(1) + &pick("Point") + &pick(field)));
    assert!(main.remove(&["pick"]).is_err(), "there are two");
    define(&main, Kind::Lazy, &point(2));
    main.remove(&["pick"]).unwrap();
    define(&main, Kind::Lazy, &pick(field));
    main.remove(&[&format!("pick({field})")]).unwrap();
}

/// A program that is translated, because a name of its functions has come to mean another one, declares its types all the same.
#[test]
fn a_translated_program_declares_its_types() {
    each(|session, kind, at| {
        let [a, b] = ["a", "b"].map(|name| session.create_dylib(name).unwrap());
        let late = "function f(x::Any)::Any\n1 ─ %1 = dynamic Main.g(x)::Any\n└──      return %1\nend\n";
        define(&a, kind, late);
        b.link_against(&a).unwrap();
        let text = |n: usize| {
            let fields: String = (0..n).map(|at| format!("    f{at}::Int64\n")).collect();
            format!("struct Unnamed\n{fields}end\nfunction g(x::Int64)::Int64\n1 ─      return {n}\nend\n")
        };
        let size = "function size()::Int64\n1 ─ %1 = Core.sizeof(Unnamed)::Int64\n└──      return %1\nend\n";
        for n in 1..4 {
            define(&b, kind, &text(n));
            define(&b, kind, size);
            assert_eq!(call(&b, "size"), 8 * n as i64, "{at}");
        }
    });
}

/// With its tracker, a declaration's functions go; its type stays what the name means in the dylib until that is cleared.
#[test]
fn functions_may_go_before_their_types() {
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        let read = main.read("p.jlir", point(2).as_bytes()).unwrap();
        main.tracked_by(&tracker).define(kind.of(read)).unwrap();
        assert_eq!(call(&main, "keep2"), 2, "{at}");
        tracker.remove(Dependants::Cascade).unwrap();
        assert!(main.func::<(), i64>("ask2").is_err(), "{at}");
        define(&main, kind, &point(1));
        assert_eq!((call(&main, "keep1"), call(&main, "ask1")), (1, 1), "{at}");
    });
}

/// Types that are declared again and again, each with another field, are freed: a type is held by views, and their number stays.
#[test]
fn former_types_are_freed() {
    changes(1500, |session| session.context().views() as isize, 64);
}

#[test]
#[ignore = "measures the memory of the process: to be run alone"]
fn a_hundred_thousand_former_types_give_their_memory_back() {
    changes(100_000, |_| super::counting::live(), 4 << 20);
}

fn changes(count: usize, measure: impl Fn(&Session) -> isize, most: isize) {
    let session = session(OptLevel::O1);
    let main = session.create_dylib("main").unwrap();
    let program = |n: usize| {
        let ty = ["Int64", "Float64", "Union{Nothing, Point}", "Vector{Point}", "NTuple{3, Int8}"][n % 5];
        format!(
            "mutable struct Point\n    f{n}::{ty}\n    n::Int64\nend\nfunction take(p::Point)::Int64\n1 ─ %1 = Base.getfield(p, :n)::Int64\n└──      return %1\nend\n\
             function size()::Int64\n1 ─ %1 = Core.sizeof(Point)::Int64\n└──      return %1\nend\n"
        )
    };
    let mut before = 0;
    for n in 0..count {
        let read = main.read("p.jlir", program(n).as_bytes()).unwrap();
        main.redefine(read.lazy()).unwrap();
        // The methods of former types stay until they are removed.
        if n % 8 == 7 {
            main.clear(Dependants::Cascade).unwrap();
        } else {
            assert!(main.func::<(), i64>("size").unwrap().call(()).unwrap() >= 16);
        }
        if n % 256 == 255 {
            session.runtime().enter(|scope| scope.collect()).unwrap();
            session.runtime().free_retired();
            let now = measure(&session);
            if n == 511 {
                before = now;
            }
            assert!(before == 0 || now - before < most, "after {n}: {before} before, {now} now");
        }
    }
}

/// A server whose threads make and ask objects while their struct is declared again, with other fields, by each new version of the program.
#[test]
fn a_server_runs_while_its_struct_changes() {
    const ASK: &str = "
global kept::Any = nothing
function ask()::Int64
1 ─ %1 = Main.kept::Any
│   %2 = dynamic Main.what(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function keep()::Int64
1 ─ %1 = invoke Main.make(0::Int64)::Any
│        Core.setglobal!(Main, :kept, %1)::Any
└──      return 0
end
";
    let version = |n: usize| {
        let fields: String = (1..=n).map(|at| format!("    f{at}::Int64\n")).collect();
        format!(
            "
struct Point
{fields}end
function make(v::Int64)::Any
1 ─ %1 = %new(Point{})::Point
└──      return %1
end
function what(p::Point)::Int64
1 ─      return {n}
end
function serve(v::Int64)::Int64
1 ─ %1 = invoke Main.make(v::Int64)::Any
│   %2 = dynamic Main.what(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
",
            ", v".repeat(n)
        )
    };
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, &version(1));
        define(&main, kind, ASK);
        assert_eq!((call(&main, "keep"), call(&main, "ask")), (0, 1), "{at}");
        let (newest, is_done) = (AtomicI64::new(1), AtomicBool::new(false));
        std::thread::scope(|threads| {
            let served: Vec<_> = (0..2)
                .map(|_| {
                    threads.spawn(|| {
                        let serve = main.func::<(i64,), i64>("serve").unwrap();
                        let ask = main.func::<(), i64>("ask").unwrap();
                        let (mut last, mut calls) = (0, 0);
                        while !is_done.load(Ordering::SeqCst) || calls == 0 {
                            let before = newest.load(Ordering::SeqCst);
                            let found = match serve.call((7,)) {
                                Ok(found) => found,
                                // A frame that calls the new `make` is in a world without a method for the new type.
                                Err(error)
                                    if kind == Kind::Replaceable
                                        && error.to_string().contains("MethodError") =>
                                {
                                    continue;
                                }
                                Err(error) => panic!("{at}: {error}"),
                            };
                            assert!(found >= before && found >= last, "{at}: {found}, then {before}, {last}");
                            assert_eq!(ask.call(()), Ok(1), "{at}: the first object is of the first type");
                            (last, calls) = (found, calls + 1);
                        }
                        calls
                    })
                })
                .collect();
            for n in 2..8 {
                define(&main, kind, &version(n));
                newest.store(n as i64, Ordering::SeqCst);
            }
            is_done.store(true, Ordering::SeqCst);
            assert!(served.into_iter().all(|thread| thread.join().unwrap() > 0), "{at}");
        });
        assert_eq!(main.func::<(i64,), i64>("serve").unwrap().call((7,)), Ok(7), "{at}");
    });
}
