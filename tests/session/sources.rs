//! Sources: programs that a dylib finds when their names are missing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use brolga::ir::build::Builder;
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Module, Type};
use brolga::session::{Definitions, Dependants, Dylib, Exports, OnDrop, Signature};
use brolga::{OptLevel, Session, Workers};

use super::kinds::{Kind, each, passed_on, session};

/// Functions that call `area` statically, dynamically, and as a value; and one that returns it.
const USERS: &str = "function static_of()::Int64\n1 ─ %1 = invoke Main.area(7::Int64)::Int64\n└──      return %1\nend\n\
    function dynamic_of()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, 7)::Any\n│   %2 = dynamic Main.area(%1)::Any\n\
    │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n\
    function given()::Any\n1 ─      return Main.area\nend\n";

const DISPATCHES: &str = "function foreign(f::Any)::Int64\n1 ─ %1 = dynamic (f)(7)::Any\n\
    │   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n";

fn area(n: i64) -> String {
    format!("function area(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, {n})::Int64\n└──      return %1\nend\n")
}

fn define(dylib: &Dylib, make: impl FnOnce(Definitions) -> Definitions, text: &str) {
    let read = dylib.read("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dylib.define(make(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn value(dylib: &Dylib, name: &str) -> i64 {
    let function = dylib.func::<(), i64>(name).unwrap_or_else(|error| panic!("{error}"));
    function.call(()).unwrap_or_else(|error| panic!("{error}"))
}

/// A dylib that sees another one, which has a source of `area`; and how often that was asked for it.
fn dylibs(session: &Session, kind: Kind) -> ([Dylib; 2], Arc<AtomicUsize>) {
    let [shelf, main] = ["shelf", "main"].map(|name| session.create_dylib(name).unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    shelf
        .add_source(move |shelf, name| {
            if name == "area" {
                count.fetch_add(1, Ordering::Relaxed);
                let read = shelf.read("area.jlir", area(6).as_bytes())?;
                shelf.define(kind.of(read))?;
            }
            Ok(())
        })
        .unwrap();
    main.link_against(&shelf).unwrap();
    ([shelf, main], asked)
}

#[test]
fn programs_and_look_ups_find_what_a_source_supplies() {
    each(|session, kind, at| {
        let ([shelf, main], asked) = dylibs(session, kind);
        define(&main, |read| kind.of(read), USERS);
        define(&main, |read| kind.of(read), DISPATCHES);
        assert_eq!([value(&main, "static_of"), value(&main, "dynamic_of")], [42; 2], "{at}");
        assert_eq!(passed_on(&main, &main), 42, "{at}");
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{at}");
        // It is the function of the dylib that has the source, and changes as others do.
        let again = shelf.read("again.jlir", area(7).as_bytes()).unwrap();
        shelf.redefine(kind.of(again)).unwrap();
        assert_eq!([value(&main, "static_of"), value(&main, "dynamic_of")], [49; 2], "{at}");
    });
    for name in ["area", "area(Int64)"] {
        let session = session(OptLevel::O2);
        let ([shelf, main], _) = dylibs(&session, Kind::Lazy);
        assert_eq!(main.func::<(i64,), i64>(name).unwrap().call((2,)), Ok(12));
        assert!(shelf.function(name).is_ok());
        assert!(main.request("volume").wait().is_err());
    }
}

#[test]
fn other_dylibs_ask_through_their_links_and_reexports_alone() {
    let session = session(OptLevel::O2);
    let ([shelf, main], asked) = dylibs(&session, Kind::Eager);
    let [stranger, facade, user] =
        ["stranger", "facade", "user"].map(|name| session.create_dylib(name).unwrap());
    assert!(stranger.function("area").is_err());
    facade.reexport(&shelf, Exports::except(["area"])).unwrap();
    user.link_against(&facade).unwrap();
    assert!(user.read("users.jlir", USERS.as_bytes()).is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    facade.reexport(&shelf, Exports::only(["area"])).unwrap();
    stranger.alias("surface", &main, "area").unwrap();
    assert_eq!(stranger.func::<(i64,), i64>("surface").unwrap().call((2,)), Ok(12));
    define(&user, |read| read, USERS);
    assert_eq!(value(&user, "static_of"), 42);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_source_may_promise_and_give_what_the_host_has() {
    each(|session, kind, at| {
        let [shelf, main] = ["shelf", "main"].map(|name| session.create_dylib(name).unwrap());
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        shelf
            .add_source(move |shelf, name| {
                match name {
                    "area" => {
                        let count = count.clone();
                        shelf.promise(
                            &[Signature::new("area", &[Type::INT64], Type::INT64)],
                            move |shelf| {
                                count.fetch_add(1, Ordering::Relaxed);
                                let mut module = Module::new(shelf.context());
                                let mut b =
                                    Builder::high(&module.cx, "area", &[("x", Type::INT64)], Type::INT64);
                                let (x, six) = (b.param(0)?, b.int(Type::INT64, 6)?);
                                let area = b.intrinsic(Intrinsic::MulInt, &[x, six])?;
                                b.ret(&[area])?;
                                module.add_func(b.finish()?)?;
                                Ok(module)
                            },
                        )?;
                    }
                    "price" => shelf.define_fn("price", |x: i64| x + 1)?,
                    _ => {}
                }
                Ok(())
            })
            .unwrap();
        main.link_against(&shelf).unwrap();
        define(&main, |read| kind.of(read), USERS);
        assert_eq!(made.load(Ordering::Relaxed), 0, "{at}: nobody has called it");
        assert_eq!(value(&main, "static_of"), 42, "{at}");
        assert_eq!(made.load(Ordering::Relaxed), 1, "{at}");
        let text =
            "function both()::Int64\n1 ─ %1 = invoke Main.price(7::Int64)::Int64\n└──      return %1\nend\n";
        define(&main, |read| kind.of(read), text);
        assert_eq!(value(&main, "both"), 8, "{at}");
    });
}

#[test]
fn a_source_that_asks_itself_or_fails_is_an_error_of_who_asked() {
    let session = session(OptLevel::O1);
    let [shelf, main] = ["shelf", "main"].map(|name| session.create_dylib(name).unwrap());
    main.link_against(&shelf).unwrap();
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = names.clone();
    shelf
        .add_source(move |shelf, name| {
            seen.lock().unwrap().push(name.to_owned());
            match name {
                // Its text needs `odd`, whose text needs it.
                "even" | "odd" => {
                    let other = if name == "even" { "odd" } else { "even" };
                    let text = format!(
                        "function {name}()::Int64\n1 ─ %1 = invoke Main.{other}()::Int64\n└──      return %1\nend\n"
                    );
                    shelf.define(shelf.read(name, text.as_bytes())?)?;
                }
                "broken" => return Err("the shelf is empty".into()),
                // One that is there in the end was supplied.
                "twice" => {
                    let text = "function twice()::Int64\n1 ─      return 2\nend\n";
                    shelf.define(shelf.read("twice.jlir", text.as_bytes())?)?;
                    shelf.define(shelf.read("twice.jlir", text.as_bytes())?)?;
                }
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    let error = main.function("even").unwrap_err().to_string();
    assert!(error.contains("`even` is missing, and the source that was asked for it failed"), "{error}");
    assert_eq!(*names.lock().unwrap(), ["even", "odd"]);
    let text = "function user()::Int64\n1 ─ %1 = invoke Main.broken()::Int64\n└──      return %1\nend\n";
    for error in
        [main.read("user.jlir", text.as_bytes()).err(), main.function("broken").err()].map(Option::unwrap)
    {
        assert!(error.to_string().contains("failed: the shelf is empty"), "{error}");
    }
    assert_eq!(value(&main, "twice"), 2);
}

#[test]
fn a_source_ends_with_its_tracker_and_its_dylib() {
    let session = session(OptLevel::O1);
    let [shelf, main] = ["shelf", "main"].map(|name| session.create_dylib(name).unwrap());
    main.link_against(&shelf).unwrap();
    let held = Arc::new(());
    let supply = |n: i64, held: Arc<()>| {
        move |shelf: &Dylib, name: &str| {
            let _held = &held;
            let text = format!("function {name}()::Int64\n1 ─      return {n}\nend\n");
            shelf.define(shelf.read(name, text.as_bytes())?)?;
            Ok(())
        }
    };
    let tracker = shelf.create_tracker(OnDrop::Keep).unwrap();
    shelf.tracked_by(&tracker).add_source(supply(1, held.clone())).unwrap();
    shelf.add_source(supply(2, held.clone())).unwrap();
    assert_eq!(value(&main, "one"), 1);
    tracker.remove(Dependants::Keep).unwrap();
    assert_eq!((value(&main, "one"), value(&main, "two")), (1, 2));
    assert_eq!(Arc::strong_count(&held), 2);
    session.close_dylibs(&[&shelf], Dependants::Keep).unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(shelf.add_source(supply(3, held.clone())).is_err());
    assert!(main.function("three").is_err());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn threads_ask_for_one_name_at_once() {
    let session = super::session(Workers::Caller);
    let ([_, main], asked) = dylibs(&session, Kind::Lazy);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (main, start) = (&main, &start);
            scope.spawn(move || {
                start.wait();
                let text = USERS
                    .replace("_of", &format!("_of_{thread}"))
                    .replace("given", &format!("given_{thread}"));
                define(main, |read| read.lazy(), &text);
                assert_eq!(value(main, &format!("static_of_{thread}")), 42);
            });
        }
    });
    assert!((1..=4).contains(&asked.load(Ordering::Relaxed)));
}
