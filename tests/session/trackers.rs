//! What is defined through a handle with a tracker is removed with it: functions, functions of the host, promises, global variables, types, C symbols, generators.

use std::sync::Arc;

use brolga::Session;
use brolga::ir::build::{BuildError, Builder};
use brolga::ir::{Context, Module, Type};
use brolga::session::linking;
use brolga::session::{Dependants, Dylib, OnDrop, Signature, SymbolFlags};

use super::kinds::{Kind, each};

/// A function without arguments that returns an integer.
fn returns(name: &str, n: i64) -> String {
    format!("function {name}()::Int64\n1 ─      return {n}\nend\n")
}

/// A module with a function `promised` that returns 3.
fn three(cx: &Arc<Context>) -> Result<Module, BuildError> {
    let mut b = Builder::high(cx, "promised", &[], Type::INT64);
    let three = b.int(Type::INT64, 3)?;
    b.ret(&[three])?;
    let mut module = Module::new(cx.clone());
    module.add_func(b.finish()?).unwrap();
    Ok(module)
}

const READS: &str = "function reads()::Int64\n1 ─ %1 = Main.count::Int64\n└──      return %1\nend\n";

const SIZES: &str = "function sizes()::Int64\n1 ─ %1 = Core.sizeof(Point)::Int64\n└──      return %1\nend\n";

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let read = dylib.read("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(kind.of(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn value(dylib: &Dylib, name: &str) -> Option<i64> {
    Some(dylib.func::<(), i64>(name).ok()?.call(()).unwrap_or_else(|error| panic!("{error}")))
}

fn is_read(dylib: &Dylib, text: &str) -> bool {
    dylib.read("program.jlir", text.as_bytes()).is_ok()
}

fn dylibs(session: &Session) -> [Dylib; 2] {
    let [a, b] = ["a", "b"].map(|name| session.create_dylib(name).unwrap());
    b.link_against(&a).unwrap();
    [a, b]
}

#[test]
fn functions_of_programs_and_of_the_host_go_with_their_tracker() {
    each(|session, kind, at| {
        let [a, b] = dylibs(session);
        let tracker = a.create_tracker(OnDrop::Keep).unwrap();
        let tracked = a.tracked_by(&tracker);
        define(&tracked, kind, &returns("f", 1));
        tracked.define_fn("host", || 2_i64).unwrap();
        let promised = Signature::new("promised", &[], Type::INT64);
        tracked.promise(&[promised], |dylib| Ok(three(&dylib.context())?)).unwrap();
        define(&a, kind, &returns("kept", 4));
        let all = || ["f", "host", "promised", "kept"].map(|name| value(&b, name));
        assert_eq!(all(), [Some(1), Some(2), Some(3), Some(4)], "{at}");
        tracker.remove(Dependants::Keep).unwrap();
        assert_eq!(all(), [None, None, None, Some(4)], "{at}");
    });
}

#[test]
fn variables_and_types_go_with_their_tracker() {
    each(|session, kind, at| {
        let [a, b] = dylibs(session);
        let tracker = a.create_tracker(OnDrop::Keep).unwrap();
        define(&a.tracked_by(&tracker), kind, "global count::Int64 = 5\nstruct Point\n    x::Int64\nend\n");
        // Programs that only use them are not tracked.
        define(&b, kind, READS);
        define(&b, kind, SIZES);
        assert_eq!((value(&b, "reads"), value(&b, "sizes")), (Some(5), Some(8)), "{at}");
        tracker.remove(Dependants::Deny).unwrap();
        assert!(
            !is_read(&b, &READS.replace("reads", "again")) && !is_read(&b, &SIZES.replace("sizes", "again")),
            "{at}"
        );
        // What was defined before keeps its meaning.
        assert_eq!((value(&b, "reads"), value(&b, "sizes")), (Some(5), Some(8)), "{at}");
        define(&a, kind, "global count::Int64 = 6\nstruct Point\n    x::Int64\n    y::Int64\nend\n");
        define(&b, kind, &(READS.replace("reads", "later") + &SIZES.replace("sizes", "larger")));
        assert_eq!((value(&b, "later"), value(&b, "larger")), (Some(6), Some(16)), "{at}");
        assert_eq!((value(&b, "reads"), value(&b, "sizes")), (Some(5), Some(8)), "{at}");
    });
}

/// A declaration that takes the place of another one is removed by its own tracker, and by no other.
#[test]
fn the_tracker_of_a_former_declaration_does_not_remove_the_present_one() {
    each(|session, kind, at| {
        let [a, b] = dylibs(session);
        let former = a.create_tracker(OnDrop::Keep).unwrap();
        let declared =
            |count: i64, fields: &str| format!("global count::Int64 = {count}\nstruct Point\n{fields}end\n");
        define(&a.tracked_by(&former), kind, &declared(1, "    x::Int64\n"));
        define(&a, kind, &declared(2, "    x::Int64\n    y::Int64\n"));
        former.remove(Dependants::Deny).unwrap();
        define(&b, kind, &(READS.to_owned() + SIZES));
        assert_eq!((value(&b, "reads"), value(&b, "sizes")), (Some(2), Some(16)), "{at}");
        a.clear(Dependants::Keep).unwrap();
        assert!(!is_read(&b, &READS.replace("reads", "again")), "{at}");
    });
}

#[test]
fn declarations_are_removed_by_their_names() {
    each(|session, kind, at| {
        let [a, b] = dylibs(session);
        define(&a, kind, "global count::Int64 = 5\nstruct Point\n    x::Int64\nend\n");
        define(&b, kind, &(READS.to_owned() + SIZES));
        assert!(b.remove(&["count"]).is_err() && a.remove(&["nothing"]).is_err(), "{at}: they are of `a`");
        a.remove(&["count", "Point"]).unwrap();
        assert!(a.remove(&["count"]).is_err(), "{at}");
        assert!(
            !is_read(&b, &READS.replace("reads", "again")) && !is_read(&b, &SIZES.replace("sizes", "again")),
            "{at}"
        );
        assert_eq!((value(&b, "reads"), value(&b, "sizes")), (Some(5), Some(8)), "{at}");
    });
}

#[test]
fn generators_and_c_symbols_go_with_their_tracker() {
    extern "C" fn seven() -> i64 {
        7
    }
    const CALLS: &str = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:brolga_seven), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
    for generated in [false, true] {
        each(|session, kind, at| {
            let [a, b] = dylibs(session);
            let tracker = a.create_tracker(OnDrop::Keep).unwrap();
            let tracked = a.tracked_by(&tracker);
            let address = seven as *const ();
            if generated {
                let word = address.expose_provenance();
                let known =
                    move |name: &str| (name == "brolga_seven").then_some((word, SymbolFlags::EXPORTED));
                tracked.add_generator(linking::Addresses(known)).unwrap();
            } else {
                tracked.define_c_symbol("brolga_seven", address).unwrap();
            }
            define(&b, kind, CALLS);
            assert_eq!(value(&b, "calls"), Some(7), "{at}");
            tracker.remove(Dependants::Keep).unwrap();
            let later = b.read_late("later.jlir", CALLS.replace("calls", "later").as_bytes()).unwrap();
            b.define(kind.of(later)).unwrap();
            let later = b.func::<(), i64>("later").map(|later| later.call(()));
            assert!(!matches!(later, Ok(Ok(_))), "{at}, generated: {generated}");
        });
    }
}

extern "C" fn one() -> i64 {
    1
}

extern "C" fn two() -> i64 {
    2
}

extern "C" fn three_of_c() -> i64 {
    3
}

/// A C symbol is redefined as a function is: its callers call the new one, in whatever program they have been inlined.
#[test]
fn c_symbols_are_redefined() {
    const CALLS: &str = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:brolga_n), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
    const TOP: &str = "function top()::Int64\n1 ─ %1 = invoke Main.calls()::Int64\n└──      return %1\nend\n";
    each(|session, kind, at| {
        let [a, b] = dylibs(session);
        // A function that was called before its symbol was there finds it.
        let late = b.read_late("late.jlir", CALLS.as_bytes()).unwrap();
        b.define(kind.of(late)).unwrap();
        define(&b, kind, TOP);
        let failed = b.func::<(), i64>("top").map(|top| top.call(()));
        assert!(!matches!(failed, Ok(Ok(_))), "{at}");
        let both = || (value(&b, "calls"), value(&b, "top"));
        a.define_c_symbol("brolga_n", one as *const ()).unwrap();
        assert_eq!(both(), (Some(1), Some(1)), "{at}");
        assert!(a.define_c_symbol("brolga_n", two as *const ()).is_err(), "{at}: it is there");
        a.redefine_c_symbol("brolga_n", two as *const ()).unwrap();
        assert_eq!(both(), (Some(2), Some(2)), "{at}");
        // A nearer one.
        b.define_c_symbol("brolga_n", three_of_c as *const ()).unwrap();
        assert_eq!(both(), (Some(3), Some(3)), "{at}");
    });
}
