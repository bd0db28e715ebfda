//! Methods of one function that are defined one by one: each recompiles the callers that may reach it, and no others.

use std::fmt::Write as _;

use brolga::session::{Dylib, Session, Workers};
use brolga::{OptLevel, Options};

fn session(level: OptLevel) -> (Session, Dylib) {
    let session = Session::new(Options::new().opt_level(level), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    (session, main)
}

fn define(main: &Dylib, text: &str) {
    main.define(main.read("text", text.as_bytes()).unwrap().lazy()).unwrap();
}

fn call(main: &Dylib, name: &str) -> i64 {
    main.func::<(i64,), i64>(name).unwrap().call((5,)).unwrap()
}

/// A type, a method for it that returns its number, and a caller by dispatch.
fn method(i: usize) -> String {
    let mut text = format!("struct T{i}\n    a::Int64\nend\n");
    let _ = write!(text, "function h(t::T{i})::Int64\n1 ─      return {i}\nend\n");
    let _ = write!(text, "function f{i}(n::Int64)::Int64\n1 ─ %1 = %new(T{i}, n)::T{i}\n");
    let _ = write!(text, "│   %2 = dynamic Main.h(%1)::Any\n│   %3 = Core.typeassert(%2, Int64)::Int64\n");
    text + "└──      return %3\nend\n"
}

#[test]
fn a_method_recompiles_no_caller_that_cannot_reach_it() {
    for level in [OptLevel::O0, OptLevel::O2] {
        let (session, main) = session(level);
        for i in 0..40 {
            define(&main, &method(i));
        }
        assert!(session.recompiled().is_empty(), "{:?}", session.recompiled().len());
        for i in 0..40 {
            assert_eq!(call(&main, &format!("f{i}")), i as i64);
        }
    }
}

#[test]
fn a_method_recompiles_callers_that_may_reach_it() {
    for level in [OptLevel::O0, OptLevel::O2, OptLevel::O3] {
        let (_session, main) = session(level);
        let own = "function h(t::Number)::Int64\n1 ─      return 1\nend\n\
                   function exact(n::Int64)::Int64\n1 ─ %1 = dynamic Main.h(n)::Any\n\
                   │   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n\
                   function apply(f::Function, n::Int64)::Any\n1 ─ %1 = dynamic f(n)::Any\n└──      return %1\nend\n\
                   function passes(n::Int64)::Int64\n1 ─ %1 = dynamic Main.apply(Main.h, n)::Any\n\
                   │   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n\
                   function far(n::Int64)::Int64\n1 ─ %1 = dynamic Main.exact(n)::Any\n\
                   │   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n";
        define(&main, own);
        for name in ["exact", "passes", "far"] {
            assert_eq!(call(&main, name), 1, "{name}");
        }
        // Not this one, and then this one.
        define(&main, "function h(t::Float64)::Int64\n1 ─      return 2\nend\n");
        for name in ["exact", "passes", "far"] {
            assert_eq!(call(&main, name), 1, "{name}");
        }
        define(&main, "function h(t::Int64)::Int64\n1 ─      return 3\nend\n");
        for name in ["exact", "passes", "far"] {
            assert_eq!(call(&main, name), 3, "{name} at {level}");
        }
    }
}
