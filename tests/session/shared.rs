//! Sessions that share a run time: the heap, types and worlds are common, definitions are not. Identifiers of another session are refused.

use brolga::host::Handle;
use brolga::session::linking::Error;
use brolga::session::{Dylib, OnDrop, SessionError};
use brolga::{OptLevel, Options, Output, Runtime, Session, TypedFunc, Workers};
use brolga_runtime::RuntimeOptions;

use super::{adds, calls, define, dylib, session};

type Int = TypedFunc<(i64,), i64>;

const NODES: &str = "\
mutable struct Node
    next::Union{Nothing, Node}
    val::Int64
end
";

const MAKES: &str = "\
function make(n::Int64)::Node
1 ─ %1 = %new(Main.Node, nothing, n)::Node
│   %2 = %new(Main.Node, %1, 1)::Node
└──      return %2
end
";

const SUMS: &str = "\
function sum(list::Union{Nothing, Node})::Int64
1 ─       goto #2
2 ┄ %2  = φ (#1 => list, #3 => %7)::Union{Nothing, Node}
│   %3  = φ (#1 => 0, #3 => %8)::Int64
│   %4  = (%2 === nothing)::Bool
└──       goto #3 if not %4
4 ─       return %3
3 ─ %5  = π (%2, Node)
│   %6  = Base.getfield(%5, :val)::Int64
│   %7  = Base.getfield(%5, :next)::Union{Nothing, Node}
│   %8  = Base.add_int(%3, %6)::Int64
└──       goto #2
end
";

fn options() -> Options {
    crate::doors::open(Options::new()).opt_level(OptLevel::O2).output(Output::Capture)
}

/// Two sessions on one run time; with one context or with two.
fn pair(workers: fn() -> Workers, has_one_context: bool) -> (Session, Session) {
    let runtime = Runtime::new(RuntimeOptions::default());
    let first = Session::on(&runtime, options(), workers()).unwrap();
    let second = match has_one_context {
        true => Session::in_context(first.context(), &runtime, options(), workers()),
        false => Session::on(&runtime, options(), workers()),
    };
    (first, second.unwrap())
}

/// Definitions of one are not seen by the other, and a redefinition in one leaves the other unchanged.
#[test]
fn each_session_has_its_own_definitions() {
    for workers in [|| Workers::Caller, || Workers::Pool(1)] {
        for has_one_context in [false, true] {
            let (first, second) = pair(workers, has_one_context);
            let (a, b) = (dylib(&first, "main", &adds("f", 1)), dylib(&second, "main", &adds("f", 2)));
            define(&a, &calls("g", "f"));
            define(&b, &calls("g", "f"));
            let [in_a, in_b]: [Int; 2] = [&a, &b].map(|dylib| dylib.func("g").unwrap());
            assert_eq!((in_a.call((1,)), in_b.call((1,))), (Ok(3), Ok(4)));
            a.redefine(a.read("f.jlir", adds("f", 10).as_bytes()).unwrap()).unwrap();
            assert_eq!((in_a.call((1,)), in_b.call((1,))), (Ok(12), Ok(4)));
            b.remove(&["g"]).unwrap();
            assert_eq!(in_a.call((1,)), Ok(12));
            drop((b, second));
            assert_eq!(in_a.call((1,)), Ok(12));
            assert_eq!(first.end().len(), 0);
        }
    }
}

/// The result of the second for an object of the first.
fn handed_over(makes: &Dylib, sums: &Dylib) -> Result<i64, String> {
    let make = makes.func_in::<(i64,), Handle>("make").map_err(|error| error.to_string())?;
    let sum = sums.func_in::<(Handle,), i64>("sum").map_err(|error| error.to_string())?;
    let entered = makes.session().runtime().enter(|scope| {
        let list = make.call(scope, (41,)).map_err(|error| error.to_string())?;
        scope.collect();
        sum.call(scope, (list,)).map_err(|error| error.to_string())
    });
    entered.map_err(|error| error.to_string())?
}

/// A type that programs of both declare is one type in one context, and two types in two.
#[test]
fn objects_go_from_one_session_to_another_of_the_same_context() {
    for has_one_context in [true, false] {
        let (first, second) = pair(|| Workers::Caller, has_one_context);
        let makes = dylib(&first, "makes", &(NODES.to_owned() + MAKES));
        let sums = dylib(&second, "sums", &(NODES.to_owned() + SUMS));
        match (has_one_context, handed_over(&makes, &sums)) {
            (true, sum) => assert_eq!(sum, Ok(42)),
            (false, sum) => assert!(sum.is_err(), "{sum:?}"),
        }
    }
}

/// The types of a session's programs continue when the program that named them first is gone.
#[test]
fn a_type_outlives_the_program_that_named_it_first() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &(NODES.to_owned() + MAKES));
    let make = main.func_in::<(i64,), Handle>("make").unwrap();
    let kept = session.runtime().enter(|scope| {
        let list = make.call(scope, (41,)).unwrap();
        scope.persistent(list.get(scope))
    });
    let kept = kept.unwrap();
    drop(make);
    main.remove(&["make"]).unwrap();
    // So many programs that tables are swept.
    for round in 0..600 {
        define(&main, &adds(&format!("fresh{round}"), 1));
        main.remove(&[&format!("fresh{round}")]).unwrap();
    }
    define(&main, &(NODES.to_owned() + SUMS));
    let sum = main.func_in::<(Handle,), i64>("sum").unwrap();
    let found = session.runtime().enter(|scope| {
        scope.collect();
        let list = scope.get_persistent(&kept).unwrap();
        assert_eq!(list.desc().name(), "Node");
        let list = scope.root(list);
        sum.call(scope, (list,)).unwrap()
    });
    assert_eq!(found.unwrap(), 42);
}

/// Tables of two sessions have the same numbers for different entities.
#[test]
fn objects_of_another_session_are_refused() {
    let (here, there) = pair(|| Workers::Caller, true);
    let main = dylib(&here, "main", &adds("f", 1));
    let other = dylib(&there, "main", &adds("f", 2));
    let is_refused = |result: Result<(), SessionError>| match result {
        Err(SessionError::Link(Error::OtherSession { .. })) => {}
        other => panic!("{other:?}"),
    };
    is_refused(main.link_against(&other));
    let tracker = other.create_tracker(OnDrop::Keep).unwrap();
    let program = main.read("g.jlir", adds("g", 1).as_bytes()).unwrap();
    is_refused(main.tracked_by(&tracker).define(program));
    assert!(main.function("g").is_err(), "nothing was defined");
    assert_eq!(other.func::<(i64,), i64>("f").unwrap().call((1,)), Ok(3));
}

/// Symbols are of one session: another one refuses them, although it has names at the same places.
#[test]
fn symbols_of_another_session_are_refused() {
    for has_one_context in [false, true] {
        let (first, second) = pair(|| Workers::Caller, has_one_context);
        let other = dylib(&second, "other", &(0..50).map(|n| adds(&format!("f{n}"), n)).collect::<String>());
        let main = dylib(&first, "main", &(0..50).map(|n| adds(&format!("x{n}"), n)).collect::<String>());
        let held: Vec<_> = (0..50).map(|n| first.linking().symbol(&format!("x{n}(Int64)"))).collect();
        for symbol in held.iter().map(|held| held.symbol()) {
            assert!(other.linking().remove([symbol]).is_err());
            assert!(other.linking().lookup([symbol]).wait().is_err());
            assert_eq!(other.linking().ready(symbol), None);
        }
        for n in 0..50 {
            let call = |dylib: &Dylib, name: &str| dylib.func::<(i64,), i64>(name).unwrap().call((1,));
            assert_eq!(call(&other, &format!("f{n}")), Ok(1 + n));
            assert_eq!(call(&main, &format!("x{n}")), Ok(1 + n));
        }
    }
}

/// Sessions that share a context declare a struct differently, each for itself.
#[test]
fn sessions_of_one_context_declare_types_of_one_name() {
    let program = |n: usize| {
        let fields: String = (0..n).map(|at| format!("    f{at}::Int64\n")).collect();
        format!(
            "struct Shared\n{fields}end\nfunction size()::Int64\n1 ─ %1 = Core.sizeof(Shared)::Int64\n└──      return %1\nend\n"
        )
    };
    let (first, second) = pair(|| Workers::Caller, true);
    let (a, b) = (dylib(&first, "a", &program(1)), dylib(&second, "b", &program(2)));
    let size = |dylib: &Dylib| dylib.func::<(), i64>("size").unwrap().call(()).unwrap();
    assert_eq!((size(&a), size(&b)), (8, 16));
    for n in 3..6 {
        for (dylib, n) in [(&a, n), (&b, n + 5)] {
            dylib.redefine(dylib.read("p.jlir", program(n).as_bytes()).unwrap()).unwrap();
        }
        assert_eq!((size(&a), size(&b)), (8 * n as i64, 8 * (n as i64 + 5)));
    }
}

/// The tables of types that dylibs have declared, first and again, do not keep themselves.
#[test]
fn a_session_that_has_declared_types_may_be_dropped_without_an_end() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", "struct Point\n    x::Int64\nend\n");
    define(&main, "struct Point\n    x::Int64\n    y::Int64\nend\n");
    let names = std::sync::Arc::downgrade(session.context());
    drop((session, main));
    assert!(names.upgrade().is_none());
}

/// A session may be dropped without an end: handles stay valid, and code without handles is freed.
#[test]
fn a_session_may_be_dropped_without_an_end() {
    for workers in [Workers::Caller, Workers::Pool(2)] {
        let session = session(workers);
        let main = dylib(&session, "main", &(adds("f", 1) + &adds("lost", 2)));
        main.define(main.read("l.jlir", adds("lazy", 3).as_bytes()).unwrap().lazy()).unwrap();
        let [eager, lazy]: [Int; 2] = ["f", "lazy"].map(|name| main.func(name).unwrap());
        assert_eq!((eager.call((1,)), lazy.call((1,))), (Ok(2), Ok(4)));
        let request = main.request("lost");
        let weak = main.downgrade();
        drop((session, main));
        assert_eq!(eager.call((1,)), Ok(2));
        assert!(matches!(lazy.call((1,)), Ok(4) | Err(_)), "it is called or says why not");
        drop(request);
        let alive = weak.upgrade().map(drop);
        assert!(alive.is_err() || eager.call((2,)) == Ok(3));
    }
}
