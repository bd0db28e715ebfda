//! Thread-local symbols that object files define for others: who may use them, and how.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::sync::atomic::AtomicI64;

use brolga::Workers;
use brolga::session::{Dependants, Dylib, OnDrop};

use super::objects::{call, compiled, define_variable, whole};
use crate::session;

const DEFINES: &str = "__thread long first = 3, own = 5; long define(long x) { return own += x; } long place(long x) { return (long)&own; }";
const USES: &str = "extern __thread long own; long use(long x) { return own += 10 * x; }";

const DESCRIPTORS: [&str; 2] = ["-c", "-mtls-dialect=gnu2"];

fn object(source: &str, options: &[&str]) -> Vec<u8> {
    compiled("made.c", source, options)
}

fn address_in_this_thread(dylib: &Dylib) -> i64 {
    dylib.c_symbol("own").unwrap().address().addr() as i64
}

#[test]
fn files_share_them_in_each_thread() {
    for options in [&["-c"][..], &DESCRIPTORS, &["-c", "-ftls-model=initial-exec"], &["-c", "-fPIE"]] {
        let session = session(Workers::Caller);
        let [made, other] = ["made", "other"].map(|name| session.create_dylib(name).unwrap());
        let tracker = made.create_tracker(OnDrop::Keep).unwrap();
        made.tracked_by(&tracker).add_object("defines.o", &object(DEFINES, options)).unwrap();
        other.link_against(&made).unwrap();
        other.add_object("uses.o", &object(USES, options)).unwrap();
        let both = || (call(&other, "use", 1), call(&made, "define", 1), call(&other, "use", 0));
        assert_eq!(both(), (Ok(15), Ok(16), Ok(16)), "{options:?}");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| (both(), address_in_this_thread(&other), call(&made, "place", 0)));
            let (found, address, place) = thread.join().unwrap();
            assert_eq!((found, Ok(address)), ((Ok(15), Ok(16), Ok(16)), place), "{options:?}");
            assert_ne!(address, address_in_this_thread(&other), "{options:?}");
        });
        // Rust finds the one of its thread, as code does.
        let symbol = other.c_symbol("own").unwrap();
        assert_eq!(Ok(address_in_this_thread(&other)), call(&made, "place", 0), "{options:?}");
        // The user keeps the definition.
        assert!(tracker.remove(Dependants::Deny).is_err(), "{options:?}");
        other.clear(Dependants::Keep).unwrap();
        drop(symbol);
        tracker.remove(Dependants::Deny).unwrap();
    }
}

#[test]
fn a_fixed_distance_is_there_until_a_thread_uses_another_place() {
    let session = session(Workers::Caller);
    let uses = object(USES, &["-c", "-ftls-model=initial-exec"]);
    let [made, early, late] = ["made", "early", "late"].map(|name| session.create_dylib(name).unwrap());
    made.add_object("defines.o", &object(DEFINES, &["-c"])).unwrap();
    for dylib in [&early, &late] {
        dylib.link_against(&made).unwrap();
        dylib.add_object("uses.o", &uses).unwrap();
    }
    // Linked before a thread has a block, the user moves the storage.
    assert_eq!((call(&early, "use", 1), call(&made, "define", 2)), (Ok(15), Ok(17)));
    assert_eq!(call(&late, "use", 1), Ok(27));

    let [made, late] = ["used", "user"].map(|name| session.create_dylib(name).unwrap());
    made.add_object("defines.o", &object(DEFINES, &["-c"])).unwrap();
    assert_eq!(call(&made, "define", 2), Ok(7));
    late.link_against(&made).unwrap();
    late.add_object("uses.o", &uses).unwrap();
    let refused = call(&late, "use", 1).unwrap_err();
    assert!(
        refused.contains("uses.o") && refused.contains("`own`") && refused.contains("-fPIC"),
        "{refused}"
    );
    assert_eq!(call(&made, "define", 2), Ok(9));
}

#[test]
fn a_weak_one_gives_way_and_an_alias_is_the_same() {
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    let weak = "__attribute__((weak)) __thread long own = 1; long weak(long x) { return own += x; }";
    made.add_object("weak.o", &object(weak, &["-c"])).unwrap();
    made.add_object("strong.o", &object(DEFINES, &["-c"])).unwrap();
    assert_eq!((call(&made, "weak", 1), call(&made, "define", 1)), (Ok(6), Ok(7)));
    made.alias("renamed", &made, "own").unwrap();
    let source = "extern __thread long renamed; long other(long x) { return renamed += x; }";
    made.add_object("renamed.o", &object(source, &DESCRIPTORS)).unwrap();
    assert_eq!((call(&made, "other", 10), call(&made, "define", 1)), (Ok(17), Ok(18)));
}

#[test]
fn one_that_may_be_missing_is_null_by_look_up() {
    let source = "extern __thread long own __attribute__((weak)); long present(long x) { return &own != 0; }";
    let session = session(Workers::Caller);
    for (name, options) in [("pairs", &["-c"][..]), ("descriptors", &DESCRIPTORS)] {
        let made = session.create_dylib(name).unwrap();
        made.add_object("may.o", &object(source, options)).unwrap();
        assert_eq!(call(&made, "present", 0), Ok(0), "{name}");
    }
    let made = session.create_dylib("fixed").unwrap();
    made.add_object("may.o", &object(source, &["-c", "-ftls-model=initial-exec"])).unwrap();
    let refused = call(&made, "present", 0).unwrap_err();
    assert!(refused.contains("may.o") && refused.contains("missing"), "{refused}");
}

#[test]
fn other_uses_are_refused_by_name() {
    static PLAIN: AtomicI64 = AtomicI64::new(5);
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_object("defines.o", &object(DEFINES, &["-c"])).unwrap();
    let plain = "extern long own; long plain(long x) { return own += x; }";
    made.add_object("plain.o", &object(plain, &["-c"])).unwrap();
    let refused = call(&made, "plain", 1).unwrap_err();
    assert!(refused.contains("plain.o") && refused.contains("different in each thread"), "{refused}");

    let program = "function f(x::Int64)::Int64\n1 ─ %1 = Base.cglobal(:own, Int64)::Ptr{Int64}\n│   %2 = Base.pointerref(%1, 1, 1)::Int64\n└──      return %2\nend\n";
    made.define(made.read("program.jlir", program.as_bytes()).unwrap()).unwrap();
    let refused = match made.func::<(i64,), i64>("f") {
        Ok(f) => f.call((1,)).unwrap_err().to_string(),
        Err(error) => whole(&error),
    };
    assert!(refused.contains("`own`") && refused.contains("thread-local"), "{refused}");

    let other = session.create_dylib("other").unwrap();
    define_variable(&other, "own", &PLAIN);
    other.add_object("uses.o", &object(USES, &["-c"])).unwrap();
    let refused = call(&other, "use", 1).unwrap_err();
    assert!(refused.contains("uses.o") && refused.contains("`own`"), "{refused}");
}
