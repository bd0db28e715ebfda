//! Errors with their causes.

use brolga::Workers;

use super::{adds, calls, define, dylib, session};

/// `f` has no native form: it needs a C function that is nowhere.
const NOWHERE: &str = "function f(x::Int64)::Int64\n\
    1 ─ %1 = $(Expr(:foreigncall, :(:brolga_is_nowhere), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
    └──      return %1\nend\n";

#[test]
fn a_failure_has_the_whole_chain_down_to_its_root() {
    for workers in [Workers::Caller, Workers::Pool(1), Workers::Pool(2), Workers::Seeded(7)] {
        let session = session(workers);
        let low = dylib(&session, "low", NOWHERE);
        let middle = session.create_dylib("middle").unwrap();
        middle.link_against(&low).unwrap();
        define(&middle, &calls("g", "f"));
        let main = session.create_dylib("main").unwrap();
        main.link_against(&middle).unwrap();
        define(&main, &(calls("h", "g") + &adds("fine", 1)));
        for _ in 0..2 {
            let causes = main.function("h").unwrap_err().causes();
            assert_eq!(causes.len(), 3, "{causes:?}");
            assert_eq!(causes[0], "`h(Int64)` of `main` failed: they need `g(Int64)` of `middle`");
            assert!(
                causes[2].starts_with("`f(Int64)` of `low` failed: unresolved: C symbol `brolga_is_nowhere`")
            );
        }
        assert_eq!(main.func::<(i64,), i64>("fine").unwrap().call((1,)), Ok(2));
        assert!(session.linking().check().is_ok());
    }
}

#[test]
fn an_exception_names_its_causes_down_to_the_root() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", NOWHERE);
    define(&main, &calls("g", "f"));
    let lazy = main.read("h.jlir", calls("h", "g").as_bytes()).unwrap();
    main.define(lazy.lazy()).unwrap();
    // A chain of which the middle is left out.
    define(&main, &calls("e0", "g"));
    (1..20).for_each(|i| define(&main, &calls(&format!("e{i}"), &format!("e{}", i - 1))));
    main.define(main.read("top.jlir", calls("top", "e19").as_bytes()).unwrap().lazy()).unwrap();
    let thrown = |name: &str| match main.func::<(i64,), i64>(name).unwrap().call((1,)) {
        Err(brolga::CallError::Exception(thrown)) => thrown.message,
        other => panic!("{other:?}"),
    };
    let message = thrown("h");
    let (nearest, root) =
        ("`h(Int64)` of `main` failed: they need `g(Int64)` of `main`", "`brolga_is_nowhere`");
    assert!(message.contains(nearest) && message.contains(root), "{message}");
    assert_eq!(message.matches("`g(Int64)` of `main` failed").count(), 1, "{message}");
    let message = thrown("top");
    assert!(message.contains("`e19(Int64)` of `main` failed") && message.contains(root), "{message}");
    assert!(!message.contains("`e2(Int64)` of `main` failed"), "{message}");
}

#[test]
fn names_of_initialisers_and_declarations_are_reserved() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    for inner in ["f(Int64)#init", "Point#type"] {
        let source = format!("low function var\"{inner}\"(x::i64)::i64\n1 ─      return 7\nend\n");
        let program = main.read("low.jlir", source.as_bytes()).unwrap();
        match main.define(program) {
            Err(brolga::SessionError::Reserved { name }) => assert_eq!(name, inner),
            other => panic!("{other:?}"),
        }
    }
    main.define(main.read("f.jlir", adds("f", 1).as_bytes()).unwrap().lazy()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((1,)), Ok(2));
}

#[test]
fn a_failed_function_can_be_replaced() {
    let session = session(Workers::Pool(1));
    let main = dylib(&session, "main", NOWHERE);
    assert!(main.function("f").is_err());
    main.redefine(main.read("f.jlir", adds("f", 1).as_bytes()).unwrap()).unwrap();
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((1,)), Ok(2));
}

/// A function that failed because of another one works again when that one is redefined, whatever its kind is.
#[test]
fn dependants_of_what_failed_work_again_when_it_is_replaced() {
    for workers in [Workers::Caller, Workers::Pool(2)] {
        let session = session(workers);
        let main = dylib(&session, "main", NOWHERE);
        define(&main, &calls("g", "f"));
        define(&main, &calls("h", "g"));
        main.define(main.read("l.jlir", calls("l", "g").as_bytes()).unwrap().lazy()).unwrap();
        let l = main.func::<(i64,), i64>("l").unwrap();
        for _ in 0..2 {
            assert!(main.function("h").is_err() && main.function("g").is_err() && l.call((1,)).is_err());
        }
        main.redefine(main.read("f.jlir", adds("f", 1).as_bytes()).unwrap()).unwrap();
        assert_eq!(main.func::<(i64,), i64>("h").unwrap().call((1,)), Ok(4));
        assert_eq!(main.func::<(i64,), i64>("g").unwrap().call((1,)), Ok(3));
        assert_eq!(l.call((1,)), Ok(4));
        assert!(session.linking().check().is_ok());
    }
}

/// A function that is ready and is redefined so that it cannot be compiled: look-ups say so, and callers are told by the call.
#[test]
fn a_redefinition_that_cannot_be_compiled_is_told_by_look_ups_and_calls() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &adds("f", 1));
    define(&main, &calls("g", "f"));
    let g = main.func::<(i64,), i64>("g").unwrap();
    assert_eq!(g.call((1,)), Ok(3));
    main.redefine(main.read("f.jlir", NOWHERE.as_bytes()).unwrap()).unwrap();
    let causes = main.function("f").unwrap_err().causes();
    assert!(causes.len() == 1 && causes[0].starts_with("`f(Int64)` of `main` failed"), "{causes:?}");
    assert!(matches!(g.call((1,)), Err(brolga::CallError::Exception(_))));
    main.redefine(main.read("f.jlir", adds("f", 10).as_bytes()).unwrap()).unwrap();
    assert_eq!(g.call((1,)), Ok(12));
}

#[test]
fn a_promise_that_is_broken_says_why() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let int = brolga::ir::Type::INT64;
    let promised = |name: &str| [brolga::session::Signature::new(name, &[int], int)];
    main.promise(&promised("a"), |_| Err("the tree is rotten".into())).unwrap();
    main.promise(&promised("b"), |_| panic!("as asked")).unwrap();
    main.promise(&promised("c"), |dylib| Ok(brolga::ir::Module::new(dylib.session().context().clone())))
        .unwrap();
    let a = main.function("a").unwrap();
    assert_eq!(a.compile().unwrap_err().causes(), ["`a(Int64)` of `main` failed: the tree is rotten"]);
    let causes = main.function("b").unwrap().compile().unwrap_err().causes();
    assert_eq!(causes, ["`b(Int64)` of `main` failed: their materialization panicked: as asked"]);
    let error = main.function("c").unwrap().compile().unwrap_err().to_string();
    assert!(
        error.contains("`c(Int64)::Int64` was promised, and the program has no function of this name"),
        "{error}"
    );
    match a.typed::<(i64,), i64>().unwrap().call((1,)) {
        Err(brolga::CallError::Exception(thrown)) => {
            assert_eq!(thrown.kind, brolga::ExceptionKind::CompileError);
            assert!(thrown.message.contains("the tree is rotten"), "{}", thrown.message);
        }
        other => panic!("{other:?}"),
    }
}

/// A program of its front end has another type than the promise: callers have been compiled for that.
#[test]
fn a_promise_of_another_type_is_refused() {
    const HALF: &str = "function f(x::Int64)::Float64\n1 ─ %1 = Base.sitofp(Float64, x)::Float64\n\
        │   %2 = Base.div_float(%1, 2.0)::Float64\n└──      return %2\nend\n";
    const UNSIGNED: &str =
        "function f(x::UInt64)::Int64\n1 ─ %1 = Base.bitcast(Int64, x)::Int64\n└──      return %1\nend\n";
    const LOW: &str = "low function f(x::i64)::i64\n1 ─      return x\nend\n";
    let session = session(Workers::Caller);
    for (number, (text, made)) in
        [(HALF, "f(Int64)::Float64"), (UNSIGNED, "f(UInt64)::Int64"), (LOW, "f::i64")].into_iter().enumerate()
    {
        let main = session.create_dylib(&format!("main{number}")).unwrap();
        let int = brolga::ir::Type::INT64;
        let signature = [brolga::session::Signature::new("f", &[int], int)];
        main.promise(&signature, move |dylib| {
            let program = brolga::Program::read_in(dylib.session().context(), "f.jlir", text.as_bytes())?;
            Ok(program.module().clone())
        })
        .unwrap();
        define(&main, &calls("g", "f"));
        let causes = main.function("f").unwrap().compile().unwrap_err().causes();
        assert_eq!(
            causes,
            [format!(
                "`f(Int64)` of `main{number}` failed: `f(Int64)::Int64` was promised, and the program has `{made}`"
            )]
        );
        let thrown = main.func::<(i64,), i64>("g").unwrap().call((1,)).unwrap_err();
        assert!(thrown.to_string().contains("was promised"), "{thrown}");
    }
}

#[test]
fn a_lookup_of_an_undefined_function_does_not_hang() {
    let session = session(Workers::Seeded(1));
    let main = session.create_dylib("main").unwrap();
    let error = main.function("nothing").unwrap_err().to_string();
    assert_eq!(error, "not found: `nothing` of `main`");
    session.end();
    let error = main.function("nothing").unwrap_err().to_string();
    assert!(error.contains("ended") || error.contains("closed"), "{error}");
}
