//! Re-exports, aliases, hidden functions, and definitions beside what generators find.

use brolga::Session;
use brolga::session::{Addresses, Dependants, Dylib, Exports, OnDrop, SessionError, SymbolFlags};

use super::kinds::{Kind, each, passed_on};

/// A function without arguments that returns an integer.
fn returns(name: &str, n: i64) -> String {
    format!("function {name}()::Int64\n1 ─      return {n}\nend\n")
}

/// A function of an argument that returns an integer.
fn takes(name: &str, ty: &str, n: i64) -> String {
    format!("function {name}(x::{ty})::Int64\n1 ─      return {n}\nend\n")
}

/// Functions that call `name(Int64)` statically, dynamically and through a pointer for C, and one that returns it.
fn callers(name: &str) -> String {
    format!(
        "function static_of()::Int64\n1 ─ %1 = invoke Main.{name}(7::Int64)::Int64\n└──      return %1\nend\n\
         function dynamic_of()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, 7)::Any\n│   %2 = dynamic Main.{name}(%1)::Any\n\
         │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n\
         function through_c()::Int64\n1 ─ %1 = $(Expr(:cfunction, Ptr{{Nothing}}, :(Main.{name}), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}\n\
         │   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), 7))::Int64\n└──      return %2\nend\n\
         function given()::Any\n1 ─      return Main.{name}\nend\n"
    )
}

/// A function that calls a value of another dylib.
const DISPATCHES: &str = "function foreign(f::Any)::Int64\n1 ─ %1 = dynamic (f)(7)::Any\n\
    │   %2 = Core.typeassert(%1, Int64)::Int64\n└──      return %2\nend\n";

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let read = dylib.read("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dylib.define(kind.of(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn value(dylib: &Dylib, name: &str) -> Option<i64> {
    let function = dylib.func::<(), i64>(name).ok()?;
    let values: Vec<i64> =
        (0..4).map(|_| function.call(()).unwrap_or_else(|error| panic!("{error}"))).collect();
    dylib.session().optimize_hot();
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    Some(values[0])
}

fn refused(dylib: &Dylib, text: &str) -> String {
    match dylib.read("program.jlir", text.as_bytes()) {
        Ok(_) => panic!("it is read:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Three dylibs: the last one is linked to the second, which is not linked to the first.
fn dylibs(session: &Session) -> [Dylib; 3] {
    let [home, facade, main] = ["home", "facade", "main"].map(|name| session.create_dylib(name).unwrap());
    main.link_against(&facade).unwrap();
    [home, facade, main]
}

#[test]
fn a_reexported_function_is_the_one_at_home_in_each_kind_of_call() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        define(&home, kind, &(takes("area", "Int64", 1) + &takes("secret", "Int64", 2)));
        facade.reexport(&home, Exports::only(["area"])).unwrap();
        define(&main, kind, &callers("area"));
        let all = |dylib: &Dylib| {
            [value(dylib, "static_of"), value(dylib, "dynamic_of"), value(dylib, "through_c")]
        };
        assert_eq!(all(&main), [Some(1); 3], "{at}");
        for name in ["area", "area(Int64)"] {
            for dylib in [&facade, &main] {
                assert_eq!(dylib.func::<(i64,), i64>(name).unwrap().call((7,)), Ok(1), "{at}");
                assert_eq!(dylib.request(name).wait().unwrap().symbol(), "area(Int64)", "{at}");
            }
        }
        for name in ["secret", "secret(Int64)"] {
            assert!(main.function(name).is_err() && facade.function(name).is_err(), "{at}");
        }
        assert!(refused(&main, &callers("secret")).contains("secret"), "{at}");
        let listed = |dylib: &Dylib| {
            let methods = dylib.methods().unwrap();
            methods
                .into_iter()
                .map(|method| method.symbol)
                .filter(|symbol| symbol.ends_with("(Int64)"))
                .collect()
        };
        let listed: [Vec<String>; 2] = [listed(&facade), listed(&main)];
        assert_eq!(listed, [["area(Int64)"], ["area(Int64)"]], "{at}");
        // It is one function: a value of it dispatches as at home, and its address for C is one.
        define(&home, kind, DISPATCHES);
        assert_eq!(passed_on(&main, &home), 1, "{at}");
        let address = |dylib: &Dylib| dylib.function("area").unwrap().c_address().unwrap();
        assert_eq!(address(&main), address(&home), "{at}");
        // It follows a redefinition, and new methods.
        let again = home.read("again.jlir", takes("area", "Int64", 3).as_bytes()).unwrap();
        home.redefine(kind.of(again)).unwrap();
        assert_eq!(all(&main), [Some(3); 3], "{at}");
        define(&home, kind, &takes("area", "Float64", 4));
        assert_eq!(main.func::<(f64,), i64>("area(Float64)").unwrap().call((1.0,)), Ok(4), "{at}");
    });
}

#[test]
fn reexports_pass_on_and_end_where_they_are_in_a_circle() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        let outer = session.create_dylib("outer").unwrap();
        outer.reexport(&facade, Exports::except(["inner"])).unwrap();
        facade.reexport(&home, Exports::All).unwrap();
        home.reexport(&outer, Exports::All).unwrap();
        define(&home, kind, &(returns("f", 1) + &returns("inner", 2) + "global count::Int64 = 5\n"));
        let user = session.create_dylib("user").unwrap();
        user.link_against(&outer).unwrap();
        assert_eq!([value(&user, "f"), value(&user, "inner")], [Some(1), None], "{at}");
        assert_eq!([value(&main, "f"), value(&main, "inner")], [Some(1), Some(2)], "{at}");
        assert!(user.function("nobody").is_err(), "{at}");
        let reads = "function reads()::Int64\n1 ─ %1 = Main.count::Int64\n└──      return %1\nend\n";
        define(&user, kind, reads);
        assert_eq!(value(&user, "reads"), Some(5), "{at}");
        // What the facade has itself hides what it re-exports, for programs that are defined from then on.
        define(&facade, kind, "global count::Int64 = 6\n");
        define(&main, kind, reads);
        assert_eq!((value(&main, "reads"), value(&user, "reads")), (Some(6), Some(5)), "{at}");
    });
}

#[test]
fn a_reexported_type_is_the_one_at_home() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        let makes = "struct Point\n    x::Int64\n    y::Int64\nend\nfunction make()::Point\n1 ─ %1 = %new(Point, 3, 4)::Point\n└──      \
             return %1\nend\n";
        define(&home, kind, makes);
        facade.reexport(&home, Exports::only(["Point", "make"])).unwrap();
        let uses = "function sum()::Int64\n1 ─ %1 = invoke Main.make()::Point\n│   %2 = Base.getfield(%1, :y)::Int64\n└──      \
             return %2\nend\nfunction size()::Int64\n1 ─ %1 = Core.sizeof(Point)::Int64\n└──      return %1\nend\n";
        define(&main, kind, uses);
        assert_eq!((value(&main, "sum"), value(&main, "size")), (Some(4), Some(16)), "{at}");
    });
}

#[test]
fn a_reexport_ends_with_its_tracker_or_by_its_dylib() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        define(&home, kind, &takes("f", "Int64", 1));
        define(&home, kind, &callers("f"));
        let f = |dylib: &Dylib| Some(dylib.func::<(i64,), i64>("f").ok()?.call((7,)).unwrap());
        let tracker = facade.create_tracker(OnDrop::Keep).unwrap();
        facade.tracked_by(&tracker).reexport(&home, Exports::All).unwrap();
        define(&main, kind, &callers("f"));
        assert_eq!(f(&main), Some(1), "{at}");
        tracker.remove(Dependants::Keep).unwrap();
        assert_eq!(f(&main), None, "{at}");
        assert_eq!(value(&main, "static_of"), Some(1), "{at}: programs keep what they call");
        facade.reexport(&home, Exports::All).unwrap();
        assert_eq!(f(&main), Some(1), "{at}");
        facade.end_reexport(&home).unwrap();
        assert!(matches!(facade.end_reexport(&home), Err(SessionError::NotReexported { .. })), "{at}");
        assert_eq!(f(&main), None, "{at}");
        // A function of its own may take the name then.
        define(&main, kind, &takes("g", "Int64", 2));
        define(&facade, kind, &takes("f", "Int64", 3));
        assert_eq!((f(&facade), f(&home)), (Some(3), Some(1)), "{at}");
        // A closed dylib is as if it were not there.
        let last = session.create_dylib("last").unwrap();
        last.reexport(&home, Exports::All).unwrap();
        assert_eq!(f(&last), Some(1), "{at}");
        session.close_dylibs(&[&home], Dependants::Keep).unwrap();
        assert_eq!(f(&last), None, "{at}");
        assert!(last.reexport(&home, Exports::All).is_err() || f(&last).is_none(), "{at}");
    });
}

#[test]
fn it_does_not_matter_whether_somebody_has_looked_a_reexport_up() {
    each(|session, kind, at| {
        for is_looked_up in [false, true] {
            let [home, facade, main] = ["home", "facade", "main"]
                .map(|name| session.create_dylib(&format!("{name}{is_looked_up}")).unwrap());
            main.link_against(&facade).unwrap();
            extern "C" fn one() -> i64 {
                1
            }
            extern "C" fn two() -> i64 {
                2
            }
            home.define_c_symbol("number", one as *const ()).unwrap();
            define(&home, kind, &takes("f", "Int64", 1));
            facade.reexport(&home, Exports::All).unwrap();
            let calls = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:number), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
            define(&main, kind, calls);
            if is_looked_up {
                assert_eq!(value(&main, "calls"), Some(1), "{at}");
                main.function("f").unwrap();
            }
            facade.define_c_symbol("number", two as *const ()).unwrap();
            define(&facade, kind, &takes("f", "Float64", 5));
            assert_eq!(value(&main, "calls"), Some(2), "{at}, looked up: {is_looked_up}");
            assert_eq!(main.func::<(f64,), i64>("f(Float64)").unwrap().call((1.0,)), Ok(5), "{at}");
        }
    });
}

#[test]
fn an_alias_has_the_code_of_its_original() {
    each(|session, kind, at| {
        let [home, _, main] = dylibs(session);
        define(&home, kind, &(takes("price", "Int64", 20) + &takes("price", "Float64", 30)));
        main.alias("listed", &home, "price").unwrap();
        // The use of aliases: a function of the original's name that calls the original.
        let wrapper = "function price(x::Int64)::Int64\n1 ─ %1 = invoke Main.listed(x::Int64)::Int64\n│   %2 = Base.sub_int(%1, 3)::Int64\n\
             └──      return %2\nend\n";
        define(&main, kind, wrapper);
        define(&main, kind, &callers("listed"));
        let all = || [value(&main, "static_of"), value(&main, "dynamic_of"), value(&main, "through_c")];
        let price = |dylib: &Dylib| dylib.func::<(i64,), i64>("price(Int64)").unwrap().call((7,)).unwrap();
        assert_eq!((all(), price(&main), price(&home)), ([Some(20); 3], 17, 20), "{at}");
        assert_eq!(main.func::<(f64,), i64>("listed(Float64)").unwrap().call((1.0,)), Ok(30), "{at}");
        let address = |dylib: &Dylib, name: &str| dylib.function(name).unwrap().c_address().unwrap();
        assert_eq!(address(&main, "listed(Int64)"), address(&home, "price(Int64)"), "{at}");
        let again = home.read("again.jlir", takes("price", "Int64", 50).as_bytes()).unwrap();
        home.redefine(kind.of(again)).unwrap();
        assert_eq!((all(), price(&main), price(&home)), ([Some(50); 3], 47, 50), "{at}");
        // Names that are taken or missing.
        assert!(main.alias("listed", &home, "price").is_err(), "{at}");
        assert!(main.alias("other", &home, "nothing").is_err(), "{at}");
        let redefined = main.redefine(main.read("own.jlir", takes("listed", "Int64", 1).as_bytes()).unwrap());
        assert!(matches!(redefined, Err(SessionError::IsAlias { .. })), "{at}: {redefined:?}");
        main.remove(&["listed(Float64)"]).unwrap();
        assert!(main.function("listed(Float64)").is_err(), "{at}");
        assert_eq!(home.func::<(f64,), i64>("price(Float64)").unwrap().call((1.0,)), Ok(30), "{at}");
    });
}

#[test]
fn aliases_go_with_their_tracker_and_with_their_original() {
    each(|session, kind, at| {
        let [home, _, main] = dylibs(session);
        define(&home, kind, &takes("f", "Int64", 1));
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        main.tracked_by(&tracker).alias("g", &home, "f").unwrap();
        main.alias("h", &home, "f").unwrap();
        let of = |name: &str| Some(main.func::<(i64,), i64>(name).ok()?.call((7,)).unwrap());
        assert_eq!((of("g"), of("h")), (Some(1), Some(1)), "{at}");
        tracker.remove(Dependants::Keep).unwrap();
        assert_eq!((of("g"), of("h")), (None, Some(1)), "{at}");
        define(&main, kind, &takes("g", "Int64", 2));
        assert_eq!(of("g"), Some(2), "{at}");
    });
}

#[test]
fn c_symbols_have_aliases() {
    each(|session, kind, at| {
        let [home, _, main] = dylibs(session);
        extern "C" fn one() -> i64 {
            1
        }
        home.define_c_symbol("number", one as *const ()).unwrap();
        main.alias("my_number", &home, "number").unwrap();
        let calls = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:my_number), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
        define(&main, kind, calls);
        assert_eq!(value(&main, "calls"), Some(1), "{at}");
    });
}

#[test]
fn hidden_functions_are_for_their_dylib() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        facade.link_against(&home).unwrap();
        let read = home.read("hidden.jlir", takes("f", "Int64", 1).as_bytes()).unwrap();
        home.define(kind.of(read).hidden()).unwrap();
        define(&home, kind, &callers("f"));
        let all = |dylib: &Dylib| {
            [value(dylib, "static_of"), value(dylib, "dynamic_of"), value(dylib, "through_c")]
        };
        assert_eq!(all(&home), [Some(1); 3], "{at}");
        for name in ["f", "f(Int64)"] {
            assert_eq!(home.func::<(i64,), i64>(name).unwrap().call((7,)), Ok(1), "{at}");
            assert!(facade.function(name).is_err(), "{at}");
        }
        assert!(facade.methods().unwrap().iter().all(|method| method.symbol != "f(Int64)"), "{at}");
        assert!(refused(&facade, &callers("f")).contains('f'), "{at}");
        // Its name is free for others.
        define(&facade, kind, &takes("f", "Int64", 2));
        define(&main, kind, &callers("f"));
        assert_eq!((all(&main), all(&home)), ([Some(2); 3], [Some(1); 3]), "{at}");
        // It is replaced as others are.
        let again = home.read("again.jlir", takes("f", "Int64", 3).as_bytes()).unwrap();
        home.redefine(kind.of(again).hidden()).unwrap();
        assert_eq!((all(&main), all(&home)), ([Some(2); 3], [Some(3); 3]), "{at}");
        // A value of it dispatches to it.
        define(&main, kind, DISPATCHES);
        assert_eq!(passed_on(&home, &main), 3, "{at}");
    });
}

#[test]
fn a_definition_takes_the_place_of_what_a_generator_has_found() {
    each(|session, kind, at| {
        let [_, _, main] = dylibs(session);
        extern "C" fn one() -> i64 {
            1
        }
        extern "C" fn two() -> i64 {
            2
        }
        let one = one as *const () as usize;
        let flags = SymbolFlags::EXPORTED;
        main.add_generator(Addresses(move |name: &str| (name == "number").then_some((one, flags)))).unwrap();
        let calls = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:number), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
        define(&main, kind, calls);
        assert_eq!(value(&main, "calls"), Some(1), "{at}");
        main.define_c_symbol("number", two as *const ()).unwrap();
        assert_eq!(value(&main, "calls"), Some(2), "{at}");
        assert!(main.define_c_symbol("number", two as *const ()).is_err(), "{at}");
    });
}

#[test]
fn dylibs_of_other_sessions_are_refused() {
    let [here, other] =
        [super::kinds::session(brolga::OptLevel::O0), super::kinds::session(brolga::OptLevel::O0)];
    let (here, other) = (here.create_dylib("a").unwrap(), other.create_dylib("a").unwrap());
    assert!(here.reexport(&other, Exports::All).is_err());
    assert!(here.alias("f", &other, "g").is_err());
    assert!(here.end_reexport(&other).is_err());
}

#[test]
fn a_dylib_may_have_a_method_of_one_function_and_see_another_of_the_name() {
    each(|session, kind, at| {
        let [home, facade, main] = dylibs(session);
        // Main's method is one of the facade's `h`, which its programs mean; those that are defined later mean the one of another dylib.
        define(&facade, kind, &takes("h", "Any", 1));
        define(&main, Kind::Tiered, &takes("f", "Int64", 2));
        define(&home, kind, &takes("h", "Float64", 3));
        let calls_f = "\n1 ─ %1 = invoke Main.f(7::Int64)::Int64\n│   %2 = Base.add_int(%1, 100)::Int64\n└──      return %2\nend\n";
        let calls_both = "function both()::Int64\n1 ─ %1 = invoke Main.f(7::Int64)::Int64\n│   %2 = invoke Main.h(7::Int64)::Int64\n\
            │   %3 = Base.mul_int(%1, 10000)::Int64\n│   %4 = Base.add_int(%2, %3)::Int64\n└──      return %4\nend\n";
        define(&main, kind, &format!("function h(x::Int64)::Int64{calls_f}"));
        define(&main, kind, calls_both);
        assert_eq!(value(&main, "both"), Some(2_0102), "{at}");
        main.reexport(&home, Exports::only(["h"])).unwrap();
        let calls = "function f(x::Int64)::Int64\n1 ─ %1 = dynamic Main.h(x)::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n\
            │   %3 = Base.add_int(%2, 1000)::Int64\n└──      return %3\nend\n";
        let again = main.read("again.jlir", calls.as_bytes()).unwrap();
        main.redefine(Kind::Lazy.of(again)).unwrap();
        define(&home, kind, &takes("h", "Int64", 4));
        assert_eq!(main.func::<(i64,), i64>("h(Int64)").unwrap().call((7,)), Ok(1104), "{at}");
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((7,)), Ok(1004), "{at}");
        assert_eq!(value(&main, "both"), Some(1004_1104), "{at}");
    });
}

/// A call is bound to a method when its program is defined. It keeps that method when the path by which it was found has ended, and it is
/// compiled again because the method has changed.
#[test]
fn a_call_keeps_its_method_when_the_path_to_it_has_ended() {
    each(|session, kind, what| {
        let [home, facade, main] = dylibs(session);
        let answers = |n| takes("answer", "Int64", n);
        let sign = |n| takes("Base.sign", "Int64", n);
        define(&home, kind, &(answers(10) + &sign(20)));
        facade.reexport(&home, Exports::All).unwrap();
        let calls = |name: &str, callee: &str| {
            format!(
                "function {name}()::Int64\n1 ─ %1 = invoke {callee}(7::Int64)::Int64\n└──      return %1\nend\n"
            )
        };
        define(&main, kind, &(calls("of_answer", "Main.answer") + &calls("of_sign", "Base.sign")));
        let values = || (value(&main, "of_answer"), value(&main, "of_sign"));
        assert_eq!(values(), (Some(10), Some(20)), "{what}");
        facade.end_reexport(&home).unwrap();
        assert_eq!(values(), (Some(10), Some(20)), "{what}: the re-export has ended");
        let again = home.read("again.jlir", (answers(11) + &sign(21)).as_bytes()).unwrap();
        home.redefine(kind.of(again)).unwrap();
        assert_eq!(values(), (Some(11), Some(21)), "{what}: redefined");
    });
}

/// A redefinition after a new re-export may be of another function of the name. The method is then none of the former function.
#[test]
fn a_redefinition_of_another_function_leaves_the_former_one() {
    each(|session, kind, what| {
        let [far, facade, main] = dylibs(session);
        define(&far, kind, &takes("f", "Int64", 1));
        facade.reexport(&main, Exports::All).unwrap();
        define(&facade, kind, &(takes("f", "Float64", 2) + DYNAMIC_F));
        define(&main, kind, &takes("f", "Int64", 3));
        assert_eq!(value(&facade, "dynamic_f"), Some(3), "{what}: main's method is one of the facade's `f`");
        main.reexport(&far, Exports::All).unwrap();
        let again = main.read("again.jlir", takes("f", "Int64", 4).as_bytes()).unwrap();
        main.redefine(kind.of(again)).unwrap();
        let missing = facade.func::<(), i64>("dynamic_f").unwrap().call(());
        assert!(
            missing.as_ref().is_err_and(|error| error.to_string().contains("MethodError")),
            "{what}: {missing:?}"
        );
        main.alias("f", &facade, "f").unwrap();
        assert_eq!(main.func::<(f64,), i64>("f(Float64)").unwrap().call((1.5,)), Ok(2), "{what}");
        assert_eq!(main.func::<(i64,), i64>("f(Int64)").unwrap().call((1,)), Ok(4), "{what}");
    });
}

const DYNAMIC_F: &str = "function dynamic_f()::Int64\n1 ─ %1 = Core.compilerbarrier(:type, 7)::Any\n│   %2 = dynamic Main.f(%1)::Any\n\
    │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n";
