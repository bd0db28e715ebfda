//! Variables of C: `cglobal` finds what `foreigncall` finds, of the process, of the host and of object files.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::sync::atomic::{AtomicI64, Ordering};

use brolga::session::{Dependants, Dylib, OnDrop};

use super::kinds::{Kind, each};
use super::objects::c;

/// A function that adds to a variable of C and returns it, one that returns its address, and callers of both.
const ADDS: &str = "function adds(n::Int64)::Int64\n1 ─ %1 = Base.cglobal(:brolga_data, Int64)::Ptr{Int64}\n\
    │   %2 = Base.pointerref(%1, 1, 1)::Int64\n│   %3 = Base.add_int(%2, n)::Int64\n│   %4 = Base.pointerset(%1, %3, 1, 1)::Ptr{Int64}\n\
    └──      return %3\nend\n\
    function place()::UInt64\n1 ─ %1 = Base.cglobal(:brolga_data, Int64)::Ptr{Int64}\n\
    │   %2 = Base.bitcast(UInt64, %1)::UInt64\n└──      return %2\nend\n";

const TOP: &str =
    "function top(n::Int64)::Int64\n1 ─ %1 = invoke Main.adds(n::Int64)::Int64\n└──      return %1\nend\n";

fn define(dylib: &Dylib, kind: Kind, text: &str) {
    let read =
        dylib.read_late("program.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dylib.define(kind.of(read)).unwrap_or_else(|error| panic!("{error}"));
}

fn call(dylib: &Dylib, name: &str, n: i64) -> Result<i64, String> {
    let function = dylib.func::<(i64,), i64>(name).map_err(|error| error.causes().join("; "))?;
    function.call((n,)).map_err(|error| error.to_string())
}

fn define_variable(dylib: &Dylib, variable: &'static AtomicI64) {
    dylib.define_c_symbol("brolga_data", std::ptr::from_ref(variable).cast()).unwrap();
}

#[test]
fn a_variable_is_the_one_of_the_dylib_whose_program_names_it() {
    each(|session, kind, at| {
        let [near, far]: [&'static AtomicI64; 2] =
            [1, 2].map(|n| &*Box::leak(Box::new(AtomicI64::new(n * 100))));
        let [library, user] = ["library", "user"].map(|name| session.create_dylib(name).unwrap());
        define_variable(&library, near);
        define_variable(&user, far);
        user.link_against(&library).unwrap();
        define(&library, kind, ADDS);
        define(&user, kind, TOP);
        // The body is the library's, whoever inlines it.
        assert_eq!((call(&user, "top", 5), call(&library, "adds", 6)), (Ok(105), Ok(111)), "{at}");
        assert_eq!((near.load(Ordering::Relaxed), far.load(Ordering::Relaxed)), (111, 200), "{at}");
        let place = library.func::<(), u64>("place").unwrap().call(()).unwrap();
        assert_eq!(place, std::ptr::from_ref(near).addr() as u64, "{at}");
        // What is redefined is linked again.
        library.redefine_c_symbol("brolga_data", std::ptr::from_ref(far).cast()).unwrap();
        assert_eq!((call(&user, "top", 1), call(&library, "adds", 1)), (Ok(201), Ok(202)), "{at}");
    });
}

#[test]
fn a_variable_that_is_missing_throws_until_it_is_defined() {
    each(|session, kind, at| {
        let variable: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(7)));
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, ADDS);
        define(&main, kind, TOP);
        let failed = call(&main, "top", 1).unwrap_err();
        assert!(failed.contains("`brolga_data`"), "{at}: {failed}");
        define_variable(&main, variable);
        assert_eq!((call(&main, "top", 1), call(&main, "adds", 1)), (Ok(8), Ok(9)), "{at}");
    });
}

#[test]
fn c_and_programs_share_the_variables_of_object_files() {
    let object = c("long brolga_data = 40; long c_add(long n) { return brolga_data += n; }");
    let calls = "function add(n::Int64)::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:c_add), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64\n└──      return %1\nend\n";
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        main.tracked_by(&tracker).add_object("data.o", &object).unwrap();
        define(&main, kind, &(ADDS.to_owned() + calls));
        let all: Vec<_> =
            [("adds", 1), ("add", 10), ("adds", 100)].map(|(name, n)| call(&main, name, n)).into();
        assert_eq!(all, [Ok(41), Ok(51), Ok(151)], "{at}");
        let place = main.func::<(), u64>("place").unwrap().call(()).unwrap();
        assert_eq!(place, main.c_symbol("brolga_data").unwrap().address().addr() as u64, "{at}");
        // Code that has the address denies the removal of the object.
        assert!(tracker.remove(Dependants::Deny).is_err(), "{at}");
    });
}

#[test]
fn variables_of_the_process_are_found_where_a_dylib_has_its_symbols() {
    let text = "function place()::UInt64\n1 ─ %1 = Base.cglobal((:environ, \"libc\"), Int64)::Ptr{Int64}\n\
        │   %2 = Base.bitcast(UInt64, %1)::UInt64\n└──      return %2\nend\n";
    let object = c("extern char **environ; long where(long n) { return (long)&environ; }");
    let of_c = "function of_c(n::Int64)::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:where), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64\n└──      return %1\nend\n";
    each(|session, kind, at| {
        let main = session.create_dylib("main").unwrap();
        define(&main, kind, text);
        let place = main.func::<(), u64>("place").map(|place| place.call(()));
        assert!(!matches!(place, Ok(Ok(_))), "{at}: {place:?}");
        let process = session.create_dylib("process").unwrap();
        process.add_process_symbols(|name| name == "environ").unwrap();
        let other = session.create_dylib("other").unwrap();
        other.link_against(&process).unwrap();
        other.add_object("environ.o", &object).unwrap();
        define(&other, kind, &(text.to_owned() + of_c));
        let place = other.func::<(), u64>("place").unwrap().call(()).unwrap();
        assert_eq!(call(&other, "of_c", 0), Ok(place as i64), "{at}");
    });
}
