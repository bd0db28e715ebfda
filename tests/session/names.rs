//! Which function, variable or method a name means: owners, links, orders of definition, removal.

use brolga::OptLevel;
use brolga::session::linking::Alias;
use brolga::session::{Dependants, Dylib, OnDrop, SymbolFlags};

use super::kinds::{self, KINDS, Kind, LEVELS, passed_on, session};

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let program = dylib.read_late("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(kind.of(program)).unwrap_or_else(|error| panic!("{error}"));
}

/// The value of a function without arguments, in all tiers that the calls reach.
fn value(dylib: &Dylib, name: &str) -> Result<i64, String> {
    let function = dylib.func::<(), i64>(name).map_err(|error| error.to_string())?;
    let mut values = Vec::new();
    for _ in 0..6 {
        values.push(function.call(()).map_err(|error| error.to_string()));
        dylib.session().optimize_hot();
    }
    assert!(values.iter().all(|value| *value == values[0]), "`{name}` differs by tier: {values:?}");
    values.swap_remove(0)
}

/// Dylibs that are not linked have functions of their own under one name, in each order of definition; a value that is passed on dispatches as at home.
#[test]
fn dylibs_that_are_not_linked_see_nothing_of_each_other() {
    let general = "
function kind(x::Any)::Int64
1 ─      return 10
end
function asks()::Int64
1 ─ %1 = Core.compilerbarrier(:type, -5)::Any
│   %2 = dynamic Main.kind(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function misses()::Int64
1 ─ %1 = Core.compilerbarrier(:type, -5)::Any
│   %2 = dynamic Main.secret(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function foreign(f::Any)::Int64
1 ─ %1 = dynamic (f)(7)::Any
│   %2 = Core.typeassert(%1, Int64)::Int64
└──      return %2
end
";
    let special = "
function kind(x::Int64)::Int64
1 ─      return 20
end
function secret(n::Int64)::Int64
1 ─      return 42
end
function knows()::Int64
1 ─ %1 = Core.compilerbarrier(:type, -5)::Any
│   %2 = dynamic Main.secret(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function given()::Any
1 ─      return Main.kind
end
";
    for level in LEVELS {
        for kind in KINDS {
            for is_first in [true, false] {
                let session = session(level);
                let (a, b) = (session.create_dylib("a").unwrap(), session.create_dylib("b").unwrap());
                let programs = [(&a, general), (&b, special)];
                for at in if is_first { [0, 1] } else { [1, 0] } {
                    define(programs[at].0, kind, programs[at].1);
                }
                let at = format!("{level:?}, {kind:?}, a first: {is_first}");
                assert_eq!(value(&a, "asks"), Ok(10), "{at}");
                assert!(value(&a, "misses").is_err_and(|error| error.contains("MethodError")), "{at}");
                assert_eq!(value(&b, "knows"), Ok(42), "{at}");
                // A value of `b` in a function of `a`.
                assert_eq!(passed_on(&b, &a), 20, "{at}");
            }
        }
    }
}

/// A dylib that is linked to the owner of a function extends it.
#[test]
fn a_definition_extends_the_function_of_a_linked_dylib() {
    let area = |ty: &str, n: i64| format!("function area(x::{ty})::Int64\n1 ─      return {n}\nend\n");
    let asks = |name: &str, value: &str| {
        format!(
            "function {name}()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, {value})::Any\n│   %2 = dynamic Main.area(%1)::Any\n\
             │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n"
        )
    };
    for level in LEVELS {
        for kind in KINDS {
            let session = session(level);
            let (k, d) = (session.create_dylib("k").unwrap(), session.create_dylib("d").unwrap());
            d.link_against(&k).unwrap();
            define(&k, kind, &(area("Int64", 1) + &asks("of_float", "1.5") + &asks("of_int", "3")));
            assert!(value(&k, "of_float").is_err(), "{level:?} {kind:?}");
            define(&d, kind, &(area("Float64", 2) + &asks("float", "1.5") + &asks("int", "3")));
            let at = format!("{level:?}, {kind:?}");
            assert_eq!((value(&d, "float"), value(&d, "int")), (Ok(2), Ok(1)), "{at}");
            assert_eq!((value(&k, "of_float"), value(&k, "of_int")), (Ok(2), Ok(1)), "{at}");
        }
    }
}

fn call(dylib: &Dylib, name: &str) -> i64 {
    dylib.func::<(), i64>(name).unwrap().call(()).unwrap()
}

/// A program that counts in a global variable, declared with this first value or not at all.
fn counts(name: &str, by: i64, first: Option<i64>) -> String {
    let declared = first.map_or(String::new(), |first| format!("global count::Int64 = {first}\n"));
    format!(
        "{declared}function {name}()::Int64\n1 ─ %1 = Main.count::Int64\n│   %2 = Base.add_int(%1, {by})::Int64\n\
         │        Core.setglobal!(Main, :count, %2)::Int64\n└──      return %2\nend\n"
    )
}

const READS: &str = "function reads()::Int64\n1 ─ %1 = Main.count::Int64\n└──      return %1\nend\n";
const SETS: &str = "function sets(n::Int64)::Int64\n1 ─      Core.setglobal!(Main, :count, n)::Int64\n└──      return n\nend\n";

/// A global variable belongs to its dylib: programs share it, and it keeps its value when they are redefined.
#[test]
fn the_state_of_a_dylib_outlives_its_functions() {
    for level in LEVELS {
        for kind in KINDS {
            let at = format!("{level:?}, {kind:?}");
            let session = session(level);
            let (k, d) = (session.create_dylib("k").unwrap(), session.create_dylib("d").unwrap());
            define(&k, kind, &(counts("inc", 1, Some(0)) + READS));
            assert_eq!([call(&k, "inc"), call(&k, "inc"), call(&k, "reads")], [1, 2, 2], "{at}");
            // The same declaration, none, and none that is read.
            k.redefine(k.read("again.jlir", counts("inc", 10, Some(0)).as_bytes()).unwrap()).unwrap();
            assert_eq!([call(&k, "inc"), call(&k, "reads")], [12, 12], "{at}");
            k.redefine(k.read("again.jlir", counts("inc", 100, None).as_bytes()).unwrap()).unwrap();
            assert_eq!([call(&k, "inc"), call(&k, "reads")], [112, 112], "{at}");
            define(&k, kind, SETS);
            assert_eq!(k.func::<(i64,), i64>("sets").unwrap().call((5,)), Ok(5), "{at}");
            assert_eq!([call(&k, "reads"), call(&k, "inc")], [5, 105], "{at}");
            // A dylib that is linked to it sees it; another one does not.
            assert!(d.read("d.jlir", counts("more", 1, None).as_bytes()).is_err(), "{at}");
            d.link_against(&k).unwrap();
            define(&d, kind, &counts("more", 1000, None));
            assert_eq!([call(&d, "more"), call(&k, "reads")], [1105, 1105], "{at}");
            // A declaration that differs is of another variable, for the programs from then on.
            define(&d, kind, &counts("other", 1, Some(7)));
            define(&d, kind, &counts("third", 1, None));
            let all = [call(&d, "other"), call(&d, "third"), call(&d, "more"), call(&k, "reads")];
            assert_eq!(all, [8, 9, 2105, 2105], "{at}");
            k.clear(brolga::session::Dependants::Keep).unwrap();
            assert!(k.read("k.jlir", READS.as_bytes()).is_err(), "{at}");
        }
    }
}

/// A variable that no function of its program assigns may be assigned by others, so no level takes its first value for its value.
#[test]
fn what_others_may_assign_is_read_each_time() {
    for level in LEVELS {
        let session = session(level);
        let k = session.create_dylib("k").unwrap();
        define(&k, Kind::Eager, &format!("global count::Int64 = 3\n{READS}"));
        assert_eq!(value(&k, "reads"), Ok(3));
        define(&k, Kind::Eager, SETS);
        assert_eq!(k.func::<(i64,), i64>("sets").unwrap().call((4,)), Ok(4));
        assert_eq!(value(&k, "reads"), Ok(4), "{level:?}");
    }
}

/// A definition that is refused leaves no variable.
#[test]
fn a_refused_definition_declares_nothing() {
    for level in LEVELS {
        let session = session(level);
        let k = session.create_dylib("k").unwrap();
        define(
            &k,
            Kind::Eager,
            SETS.replace("Main, :count", "Main, :other")
                .replace("function", "global other::Int64 = 1\nfunction")
                .as_str(),
        );
        let refused = k.read("refused.jlir", (counts("inc", 1, Some(0)) + SETS).as_bytes()).unwrap();
        assert!(k.define(refused).is_err(), "{level:?}");
        assert!(k.read("reads.jlir", READS.as_bytes()).is_err(), "{level:?}: there is no `count`");
        define(&k, Kind::Eager, &(counts("inc", 1, Some(0)) + READS));
        assert_eq!([call(&k, "inc"), call(&k, "reads")], [1, 1], "{level:?}");
    }
}

/// Programs that declare one variable at the same time share it.
#[test]
fn a_variable_that_two_threads_declare_is_one() {
    let session = session(OptLevel::O0);
    for n in 0..100 {
        let k = session.create_dylib(&format!("k{n}")).unwrap();
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let (k, start) = (&k, &start);
                scope.spawn(move || {
                    start.wait();
                    define(k, Kind::Eager, &counts(name, 1, Some(0)));
                });
            }
        });
        assert_eq!(["a", "b", "c", "d"].map(|name| call(&k, name)), [1, 2, 3, 4], "{n}");
    }
}

/// A function of one argument that returns a number.
fn constant(name: &str, ty: &str, n: i64) -> String {
    format!("function {name}(x::{ty})::Int64\n1 ─      return {n}\nend\n")
}

/// A function without arguments that calls another one dynamically.
fn asks(name: &str, callee: &str, value: &str) -> String {
    format!(
        "function {name}()::Int64\n1 ─ %1 = dynamic Main.{callee}({value})::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n\
         └──      return %2\nend\n"
    )
}

/// A function without arguments that calls another one statically, inlined or not.
fn invokes(name: &str, callee: &str, value: &str, hint: &str) -> String {
    format!(
        "function {name}()::Int64\n1 ─ %1 = invoke Main.{callee}({value})::Int64{hint}\n└──      return %1\nend\n"
    )
}

/// Sessions with three dylibs at each level, and how definitions are compiled in them.
fn each(mut test: impl FnMut(&[Dylib], Kind, &str)) {
    kinds::each(|session, kind, at| {
        let dylibs = ["a", "b", "c"].map(|name| session.create_dylib(name).unwrap());
        test(&dylibs, kind, at);
    });
}

/// A dynamic call goes to methods that the caller's dylib does not see, whether they come before the caller or after it.
#[test]
fn a_dynamic_call_reaches_methods_that_its_dylib_does_not_see() {
    for is_late in [false, true] {
        each(|dylibs, kind, at| {
            let (a, b) = (&dylibs[0], &dylibs[1]);
            b.link_against(a).unwrap();
            define(a, kind, &constant("h", "Any", 1));
            if !is_late {
                define(b, kind, &constant("h", "Int64", 2));
            }
            define(a, kind, &(asks("g", "h", "7") + &asks("other", "h", "1.5")));
            if is_late {
                assert_eq!(value(a, "g"), Ok(1), "{at}");
                define(b, kind, &constant("h", "Int64", 2));
            }
            assert_eq!((value(a, "g"), value(a, "other")), (Ok(2), Ok(1)), "{at}, late: {is_late}");
        });
    }
}

/// Of methods of one signature in several dylibs a dynamic call goes to the one that was defined last, whether the others have been compiled or not.
#[test]
fn the_last_definition_has_the_method() {
    for is_called in [false, true] {
        each(|dylibs, kind, at| {
            let (a, b) = (&dylibs[0], &dylibs[1]);
            b.link_against(a).unwrap();
            define(a, kind, &(constant("h", "Int64", 1) + &asks("g", "h", "7")));
            define(b, kind, &constant("h", "Int64", 2));
            if is_called {
                assert_eq!(value(a, "g"), Ok(2), "{at}");
            }
            a.redefine(a.read("again.jlir", constant("h", "Int64", 3).as_bytes()).unwrap()).unwrap();
            assert_eq!(value(a, "g"), Ok(3), "{at}, called: {is_called}");
        });
    }
}

/// A program does not see what was removed before it was read.
#[test]
fn a_removed_method_is_not_seen() {
    each(|dylibs, kind, at| {
        let (a, b) = (&dylibs[0], &dylibs[1]);
        define(
            a,
            kind,
            &(constant("h", "Any", 1) + &constant("h", "Int64", 2) + &constant("only", "Int64", 3)),
        );
        // A function of the same name that `a` does not mean.
        define(b, kind, &constant("only", "Int64", 4));
        a.link_against(b).unwrap();
        a.remove(&["h(Int64)", "only(Int64)"]).unwrap();
        define(a, kind, &invokes("g", "h", "7::Int64", ""));
        assert_eq!(value(a, "g"), Ok(1), "{at}");
        let calls = invokes("calls", "only", "7::Int64", "");
        assert!(a.read("calls.jlir", calls.as_bytes()).is_err(), "{at}");
    });
}

/// A definition that is refused does not make its dylib the owner of a name.
#[test]
fn a_refused_definition_claims_no_name() {
    each(|dylibs, kind, at| {
        let (a, b) = (&dylibs[0], &dylibs[1]);
        b.link_against(a).unwrap();
        define(a, kind, &constant("there", "Int64", 1));
        let both = constant("there", "Int64", 2) + &constant("h", "Float64", 3);
        assert!(a.define(a.read("refused.jlir", both.as_bytes()).unwrap()).is_err(), "{at}");
        define(b, kind, &(constant("h", "Int64", 4) + &asks("g", "h", "1.5")));
        define(a, kind, &constant("h", "Any", 5));
        assert!(value(b, "g").is_err(), "{at}: `b` owns `h`, and `a` is not linked to it");
    });
}

/// A static call goes to the method that its program meant when it was defined, whoever looks first: another dylib may have a function with the same symbol, which is
/// another one, or define a method of the same signature later.
#[test]
fn a_static_call_stays_with_the_method_that_was_meant() {
    for hint in ["", " noinline"] {
        for is_called in [false, true] {
            each(|dylibs, kind, at| {
                let [a, b, c] = dylibs else { unreachable!("there are three") };
                let at = format!("{at}, {hint}, called: {is_called}");
                // `b` has an `h` of its own; `c` adds a method to that of `a`; all are seen by `d`.
                let d = a.session().create_dylib("d").unwrap();
                define(a, kind, &constant("h", "Float64", 1));
                define(b, kind, &constant("h", "Int64", 2));
                c.link_against(a).unwrap();
                define(c, kind, &constant("h", "Int64", 3));
                [a, b, c].into_iter().for_each(|other| d.link_against(other).unwrap());
                define(&d, kind, &invokes("g", "h", "7::Int64", hint));
                if is_called {
                    assert_eq!(value(&d, "g"), Ok(3), "{at}");
                }
                // `a` is first in the order; `d` itself is before it.
                define(a, kind, &(constant("h", "Int64", 4) + &constant("h", "Any", 5)));
                define(&d, kind, &(constant("h", "Int64", 6) + &invokes("after", "h", "7::Int64", hint)));
                assert_eq!((value(&d, "g"), value(&d, "after")), (Ok(3), Ok(6)), "{at}");
                // It follows the method.
                c.redefine(c.read("again.jlir", constant("h", "Int64", 7).as_bytes()).unwrap()).unwrap();
                assert_eq!(value(&d, "g"), Ok(7), "{at}");
            });
        }
    }
}

/// A static call goes to the most specific method of the dylib, also if its own program has one that fits.
#[test]
fn a_static_call_prefers_a_more_specific_method_of_another_program() {
    each(|dylibs, kind, at| {
        let a = &dylibs[0];
        define(a, kind, &constant("h", "Int64", 1));
        let calls = invokes("g", "h", "7::Int64", "");
        define(a, kind, &(constant("h", "Any", 2) + &calls));
        assert_eq!(value(a, "g"), Ok(1), "{at}");
    });
}

/// A method of a function of Base, which a dylib defines after its own callers or which another dylib has, takes the place of the library's for dynamic calls. Static calls that are
/// bound to the library's stay with it.
#[test]
fn a_method_of_base_takes_the_place_of_the_library() {
    let sign = constant("Base.sign", "Int64", 5);
    for is_own in [true, false] {
        each(|dylibs, kind, at| {
            let (a, b) = (&dylibs[0], &dylibs[1]);
            let hidden = "function hidden()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, 7)::Any\n│   %2 = dynamic Base.sign(%1)::Any\n\
                │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n";
            let calls = asks("plain", "sign", "7") + &invokes("static", "sign", "7::Int64", "");
            define(a, kind, &(calls.replace("Main.sign", "Base.sign") + hidden));
            define(if is_own { a } else { b }, kind, &sign);
            let all = ["plain", "hidden", "static"].map(|name| value(a, name));
            assert_eq!(all, [Ok(5), Ok(5), Ok(1)], "{at}, own: {is_own}");
        });
    }
}

/// A program is translated when a name has come to mean another function since it was read, also if it calls functions of others.
#[test]
fn a_program_with_imports_is_translated() {
    each(|dylibs, kind, at| {
        let (a, b) = (&dylibs[0], &dylibs[1]);
        define(a, kind, &asks("mentions", "h", "7").replace("(7)", "(1.5)"));
        b.link_against(a).unwrap();
        define(b, kind, &constant("callee", "Int64", 1));
        // `a` has mentioned `h` and does not see `b`: this is another function.
        define(b, kind, &(constant("h", "Float64", 2) + &invokes("g", "callee", "7::Int64", " noinline")));
        assert_eq!(value(b, "g"), Ok(1), "{at}");
        assert!(value(a, "mentions").is_err(), "{at}");
    });
}

/// An embedder may put another dylib first in the link order: look-ups and programs that are defined from then on find that one's functions, whether those of the dylib are
/// ready or not. The functions of one program call each other.
#[test]
fn a_link_order_counts_for_what_is_ready() {
    for is_called in [false, true] {
        each(|dylibs, kind, at| {
            let (facade, k) = (&dylibs[0], &dylibs[1]);
            let at = format!("{at}, called: {is_called}");
            define(facade, kind, &constant("x", "Int64", 1));
            k.link_against(facade).unwrap();
            k.set_links(&[facade, k]).unwrap();
            define(k, kind, &(constant("x", "Int64", 2) + &invokes("own", "x", "7::Int64", " noinline")));
            if is_called {
                assert_eq!(value(k, "own"), Ok(2), "{at}");
            }
            let x = || k.func::<(i64,), i64>("x(Int64)").unwrap().call((7,));
            assert_eq!([x(), x()], [Ok(1), Ok(1)], "{at}");
            assert_eq!(value(k, "own"), Ok(2), "{at}");
        });
    }
}

/// A name that a program mentions before its dylib is linked to another one means the function which that one defines after.
#[test]
fn a_link_counts_from_when_it_is_made() {
    each(|dylibs, kind, at| {
        let (a, b) = (&dylibs[0], &dylibs[1]);
        define(a, kind, &(invokes("late", "f", "7::Int64", "") + &asks("asks", "f", "7")));
        assert!(value(a, "late").is_err(), "{at}");
        a.link_against(b).unwrap();
        define(b, kind, &constant("f", "Int64", 1));
        assert_eq!((value(a, "late"), value(a, "asks")), (Ok(1), Ok(1)), "{at}");
    });
}

/// A function that is called as a value has all its methods, whether its program, another one of the dylib before or after it, or none with a body has the one that fits best.
#[test]
fn a_function_value_has_the_methods_of_all_programs() {
    let hidden = |name: &str, callee: &str, argument: &str| {
        format!(
            "function {name}()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, {callee})::Any\n│   %2 = Core.compilerbarrier(:type, {argument})::Any\n\
             │   %3 = dynamic (%1)(%2)::Any\n│   %4 = Core.typeassert(%3, Int64)::Int64\n└──      return %4\nend\n"
        )
    };
    // Calls its argument, and may be taken for that by a compiler which does not see the other method.
    let calls = "function h(x::Any)::Int64\n1 ─ %1 = dynamic (x)(1.5)::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n";
    let begins = hidden("begins", "Main.h", "Main.h");
    for order in 0..4 {
        each(|dylibs, kind, at| {
            let k = &dylibs[0];
            let (any, int, float) =
                (constant("g", "Any", 1), constant("g", "Int64", 2), constant("h", "Float64", 3));
            let asks = hidden("asks", "Main.g", "7");
            match order {
                0 => define(k, kind, &(any + &int + &asks + calls + &float + &begins)),
                1 => {
                    define(k, kind, &(int + &float));
                    define(k, kind, &(any + &asks + calls + &begins));
                }
                2 => {
                    define(k, kind, &(any + &asks + calls + &begins));
                    assert_eq!(value(k, "asks"), Ok(1), "{at}");
                    define(k, kind, &(int + &float));
                }
                _ => {
                    k.define_fn("g", |_: i64| 2i64).unwrap();
                    k.define_fn("h", |_: f64| 3i64).unwrap();
                    define(k, kind, &(any + &asks + calls + &begins));
                }
            }
            assert_eq!((value(k, "asks"), value(k, "begins")), (Ok(2), Ok(3)), "{at}, order {order}");
        });
    }
}

/// A removed function that called a method does not keep others from being compiled again when that changes.
#[test]
fn what_was_removed_does_not_hide_callers() {
    each(|dylibs, kind, at| {
        let k = &dylibs[0];
        let tracker = k.create_tracker(OnDrop::Keep).unwrap();
        let gone =
            k.read("gone.jlir", asks("gone", "sign", "7").replace("Main.sign", "Base.sign").as_bytes());
        k.tracked_by(&tracker).define(gone.unwrap()).unwrap();
        define(k, kind, &asks("stays", "sign", "7").replace("Main.sign", "Base.sign"));
        assert_eq!(value(k, "stays"), Ok(1), "{at}");
        tracker.remove(Dependants::Keep).unwrap();
        define(k, kind, &constant("Base.sign", "Int64", 5));
        assert_eq!(value(k, "stays"), Ok(5), "{at}");
    });
}

/// A function that asks another one dynamically: about a float if it is given 0, else about an integer.
fn picks(name: &str, callee: &str) -> String {
    format!(
        "
function {name}(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sitofp(Float64, n)::Float64
└──      goto #4
3 ─      goto #4
4 ┄ %6 = φ (#2 => %3, #3 => n)::Union{{Float64, Int64}}
│   %7 = dynamic Main.{callee}(%6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
└──      return %8
end
"
    )
}

/// A method that cannot be compiled or called fails the calls that reach it, and not the function with a dynamic call that might.
#[test]
fn a_method_that_fails_fails_the_calls_that_reach_it() {
    let foreign = "function h(x::Float64)::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:brolga_is_nowhere), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
    for is_removed in [false, true] {
        each(|dylibs, kind, at| {
            let (a, b) = (&dylibs[0], &dylibs[1]);
            b.link_against(a).unwrap();
            define(a, kind, &constant("h", "Int64", 1));
            if is_removed {
                define(a, kind, &constant("gone", "Int64", 2));
                define(
                    a,
                    kind,
                    "function h(x::Float64)::Int64\n1 ─ %1 = invoke Main.gone(7::Int64)::Int64\n└──      return %1\nend\n",
                );
            } else {
                define(a, kind, foreign);
            }
            define(b, kind, &picks("pick", "h"));
            if is_removed {
                a.remove(&["gone(Int64)"]).unwrap();
            }
            let pick = b.func::<(i64,), i64>("pick").unwrap_or_else(|error| panic!("{at}: {error}"));
            for _ in 0..4 {
                assert_eq!(pick.call((5,)), Ok(1), "{at}, removed: {is_removed}");
                // Code that has inlined the removed function keeps it.
                let failed = pick.call((0,));
                let is_kept = is_removed && failed == Ok(2);
                assert!(failed.is_err() || is_kept, "{at}, removed: {is_removed}: {failed:?}");
                b.session().optimize_hot();
            }
        });
    }
}

/// A caller is compiled again also where a dylib that comes before its own in the link order has a function of its symbol.
#[test]
fn a_caller_is_recompiled_whatever_comes_first_in_the_order() {
    each(|dylibs, kind, at| {
        let [a, b, c] = dylibs else { unreachable!() };
        b.link_against(a).unwrap();
        c.link_against(b).unwrap();
        define(a, kind, &(constant("f", "Int64", 1) + &constant("g", "Int64", 2)));
        b.set_links(&[a, b]).unwrap();
        let f = "function f(x::Int64)::Int64\n1 ─ %1 = dynamic Main.g(x)::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n";
        define(b, kind, f);
        define(b, Kind::Eager, &constant("g", "Int64", 3));
        assert_eq!(c.func::<(i64,), i64>("f").unwrap().call((7,)), Ok(3), "{at}");
    });
}

/// Links are made and taken back, and dylibs are closed, by name where the embedder wants.
#[test]
fn links_and_dylibs_come_and_go() {
    each(|dylibs, kind, at| {
        let [a, b, c] = dylibs else { unreachable!() };
        let session = a.session();
        define(a, kind, &constant("f", "Int64", 1));
        define(c, kind, &constant("f", "Int64", 3));
        let f = || b.func::<(i64,), i64>("f").ok().map(|f| f.call((7,)).unwrap());
        let names = || b.links().unwrap().iter().map(|dylib| dylib.name().to_owned()).collect::<Vec<_>>();
        assert_eq!((f(), names()), (None, vec!["b".to_owned()]), "{at}");
        b.link_against(a).unwrap();
        b.link_against(c).unwrap();
        assert_eq!((f(), names()), (Some(1), ["b", "a", "c"].map(String::from).to_vec()), "{at}");
        b.set_links(&[c, b, a]).unwrap();
        assert_eq!((f(), names()), (Some(3), ["c", "b", "a"].map(String::from).to_vec()), "{at}");
        define(b, kind, &invokes("g", "f", "7::Int64", " noinline"));
        assert_eq!(value(b, "g"), Ok(3), "{at}");
        b.unlink(c).unwrap();
        assert_eq!(f(), Some(1), "{at}");
        assert_eq!(value(b, "g"), Ok(3), "{at}: what was linked stays");
        assert!(session.dylib("c").is_some() && session.dylib("nobody").is_none(), "{at}");
        assert!(session.close_dylibs(&[c], Dependants::Deny).is_err(), "{at}: `g` uses it");
        session.close_dylibs(&[c], Dependants::Keep).unwrap();
        assert!(session.dylib("c").is_none() && c.link_against(b).is_err(), "{at}");
        assert_eq!(value(b, "g"), Ok(3), "{at}");
    });
}

/// A re-export of a function that was redefined is the new function, whether somebody has looked the original up or not.
#[test]
fn a_reexport_follows_a_redefinition() {
    each(|dylibs, kind, at| {
        let (k, d) = (&dylibs[0], &dylibs[1]);
        define(k, kind, &constant("f", "Int64", 1));
        let symbol = k.session().linking().symbol("f(Int64)");
        let (symbol, flags) = (symbol.symbol(), SymbolFlags::EXPORTED);
        d.linking().alias([Alias { symbol, flags, from: k.linking().all(), aliasee: symbol }]).unwrap();
        let f =
            || d.func::<(i64,), i64>("f(Int64)").unwrap_or_else(|error| panic!("{at}: {error}")).call((7,));
        assert_eq!(f(), Ok(1), "{at}");
        k.redefine(kind.of(k.read("again.jlir", constant("f", "Int64", 2).as_bytes()).unwrap())).unwrap();
        assert_eq!(f(), Ok(2), "{at}");
    });
}
