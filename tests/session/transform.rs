//! Transforms: what an embedder makes of programs before they are defined.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brolga::ir::build::Builder;
use brolga::ir::{Module, Type};
use brolga::session::{Dylib, SessionError, Signature};
use brolga::{Options, Session, Workers};

use super::kinds::each;
use super::{adds, calls};

/// A module in which each function `old` is called `new`, for functions of an integer that call nothing.
fn returns(
    module: &Module,
    name: &str,
    result: i64,
) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> {
    let mut made = Module::new(module.cx.clone());
    let mut b = Builder::high(&module.cx, name, &[("x", Type::INT64)], Type::INT64);
    let result = b.int(Type::INT64, i128::from(result))?;
    b.ret(&[result])?;
    made.add_func(b.finish()?)?;
    for (_, func) in module.funcs() {
        if func.spelled_name(&module.cx) != name {
            made.add_func(func.clone())?;
        }
    }
    Ok(made)
}

fn value(dylib: &Dylib, name: &str) -> i64 {
    let function = dylib.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{error}"));
    function.call((1,)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_a_transform_returns_is_defined() {
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        let define =
            |text: &str| main.define(kind.of(main.read("p.jlir", text.as_bytes()).unwrap())).unwrap();
        define(&adds("before", 1));
        session.transform(|_, module| returns(&module, "changed", 70));
        define(&(adds("changed", 1) + &calls("asks", "changed") + &calls("old", "before")));
        assert_eq!(["changed", "asks", "old"].map(|name| value(&main, name)), [70, 71, 3], "{at}");
        let again = main.read("again.jlir", calls("asks", "changed").as_bytes()).unwrap();
        // The transform adds a function that is there already.
        assert!(main.define(kind.of(again)).is_err(), "{at}");
        let again = main.read("again.jlir", adds("asks", 5).as_bytes()).unwrap();
        main.redefine(kind.of(again)).unwrap();
        assert_eq!(["changed", "asks"].map(|name| value(&main, name)), [70, 6], "{at}");
        // Functions of the host are the session's.
        main.define_fn("host", |x: i64| x + 100).unwrap();
        assert_eq!(value(&main, "host"), 101, "{at}");
    });
}

#[test]
fn promises_and_programs_are_transformed() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    session.transform(move |_, module| {
        counted.fetch_add(module.func_count(), Ordering::Relaxed);
        returns(&module, "f", 9)
    });
    main.promise(&[Signature::new("f", &[Type::INT64], Type::INT64)], |dylib| {
        returns(&Module::new(dylib.context()), "f", 1)
    })
    .unwrap();
    assert_eq!(value(&main, "f"), 9);
    let other = session.create_dylib("other").unwrap();
    let program = brolga::Program::read("p.jlir", (adds("f", 1) + &calls("g", "f")).as_bytes()).unwrap();
    other.define(program).unwrap();
    assert_eq!((value(&other, "f"), value(&other, "g")), (9, 10));
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn errors_and_doors_of_a_transform_are_refused() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    let define = |text: &str| main.define(main.read("p.jlir", text.as_bytes()).unwrap());
    session.transform(|_, _| Err("not today".into()));
    let error = define(&adds("f", 1)).unwrap_err();
    assert!(
        matches!(error, SessionError::Transform(_)) && error.to_string().contains("not today"),
        "{error}"
    );
    // A call of what is not there.
    session.transform(|_, module| {
        let mut b = Builder::high(&module.cx, "f", &[("x", Type::INT64)], Type::INT64);
        let x = b.param(0)?;
        let gone = b.invoke("nobody", &[x], Type::INT64)?;
        b.ret(&[gone])?;
        let mut made = Module::new(module.cx.clone());
        made.add_func(b.finish()?)?;
        Ok(made)
    });
    assert!(define(&adds("f", 1)).unwrap_err().to_string().contains("nobody"));
    // A door.
    session.transform(|_, module| {
        let text = "function f(x::Int64)::Int64\n1 ─ %1 = Base.bitcast(Ptr{Int64}, x)::Ptr{Int64}\n\
             │   %2 = Base.pointerref(%1, 1, 1)::Int64\n└──      return %2\nend\n";
        drop(module);
        Ok(brolga::Program::read("door.jlir", text.as_bytes())?.module().clone())
    });
    let error = define(&adds("f", 1)).unwrap_err().to_string();
    assert!(error.contains("door"), "{error}");
    assert!(main.function("f").is_err());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let names = seen.clone();
    session.transform(move |dylib, module| {
        names.lock().unwrap().push(dylib.name().to_owned());
        Ok(module)
    });
    define(&adds("f", 1)).unwrap();
    assert_eq!((value(&main, "f"), seen.lock().unwrap().len()), (2, 1));
}
