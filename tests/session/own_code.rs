//! Functions whose machine code the embedder has made: called, redefined, removed, and refused.
#![cfg(target_arch = "x86_64")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use brolga::ir::Type;
use brolga::session::{CodeReference, Dependants, Dylib, OnDrop, OwnCode, Signature};
use brolga::{OptLevel, Options, Session, Workers};

use super::kinds::{each, session};

/// `rdi + rsi`.
const ADD: [u8; 5] = [0x48, 0x8d, 0x04, 0x37, 0xc3];

/// `rdi - rsi`.
const SUB: [u8; 7] = [0x48, 0x89, 0xf8, 0x48, 0x29, 0xf0, 0xc3];

fn mix() -> Signature {
    Signature::new("mix", &[Type::INT64, Type::INT64], Type::INT64)
}

const USERS: &str = "function static_of(x::Int64)::Int64\n1 ─ %1 = invoke Main.mix(x::Int64, 2::Int64)::Int64\n└──      return %1\nend\n\
    function dynamic_of(x::Int64)::Int64\n1 ─ %1 = Core.compilerbarrier(:type, x)::Any\n│   %2 = dynamic Main.mix(%1, 2)::Any\n\
    │   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n";

fn value(dylib: &Dylib, name: &str, x: i64) -> Result<i64, String> {
    let function = dylib.func::<(i64,), i64>(name).map_err(|error| error.to_string())?;
    function.call((x,)).map_err(|error| error.to_string())
}

#[test]
fn programs_and_rust_call_code_of_the_embedder() {
    each(|session, kind, at| {
        let [made, main] = ["made", "main"].map(|name| session.create_dylib(name).unwrap());
        main.link_against(&made).unwrap();
        let owner = Arc::new(());
        made.define_code(&mix(), &OwnCode::new(ADD), owner.clone()).unwrap();
        main.define(kind.of(main.read("users.jlir", USERS.as_bytes()).unwrap())).unwrap();
        let both = || [value(&main, "static_of", 40), value(&main, "dynamic_of", 40)];
        assert_eq!(both(), [Ok(42), Ok(42)], "{at}");
        assert_eq!(main.func::<(i64, i64), i64>("mix").unwrap().call((1, 2)), Ok(3), "{at}");
        assert_eq!(Arc::strong_count(&owner), 2, "{at}");
        // It is replaced under its callers, and its code is freed.
        made.redefine_code(&mix(), &OwnCode::new(SUB), ()).unwrap();
        assert_eq!(both(), [Ok(38), Ok(38)], "{at}");
        assert_eq!(Arc::strong_count(&owner), 1, "{at}");
        let text = "function mix(a::Int64, b::Int64)::Int64\n1 ─ %1 = Base.mul_int(a, b)::Int64\n└──      return %1\nend\n";
        made.redefine(made.read("mix.jlir", text.as_bytes()).unwrap()).unwrap();
        assert_eq!(both(), [Ok(80), Ok(80)], "{at}");
    });
}

#[test]
fn code_goes_with_its_tracker_and_is_freed() {
    let session = session(OptLevel::O1);
    let main = session.create_dylib("main").unwrap();
    let owner = Arc::new(());
    let before = session.stats().code.in_use;
    for _ in 0..1000 {
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        main.tracked_by(&tracker).define_code(&mix(), &OwnCode::new(ADD), owner.clone()).unwrap();
        assert_eq!(main.func::<(i64, i64), i64>("mix").unwrap().call((1, 2)), Ok(3));
        tracker.remove(Dependants::Deny).unwrap();
    }
    assert_eq!(Arc::strong_count(&owner), 1);
    assert!(session.stats().code.in_use <= before + 65_536, "{:?}", session.stats().code);
}

#[test]
fn code_refers_to_c_symbols_by_address_and_by_calls() {
    extern "C" fn twice(x: i64) -> i64 {
        2 * x
    }
    static NUMBER: AtomicI64 = AtomicI64::new(5);
    let session = session(OptLevel::O2);
    let main = session.create_dylib("main").unwrap();
    main.define_c_symbol("brolga_twice", twice as *const ()).unwrap();
    main.define_c_symbol("brolga_number", std::ptr::from_ref(&NUMBER).cast()).unwrap();
    // push rbx; mov rbx, rsi; call brolga_twice; add rax, rbx; movabs rcx, brolga_number; add rax, [rcx]; pop rbx; ret
    let mut bytes = vec![0x53, 0x48, 0x89, 0xf3, 0xe8, 0, 0, 0, 0, 0x48, 0x01, 0xd8, 0x48, 0xb9];
    bytes.extend([0; 8]);
    bytes.extend([0x48, 0x03, 0x01, 0x5b, 0xc3]);
    let code = OwnCode::new(bytes)
        .aligned(64)
        .referring(5, CodeReference::Call, "brolga_twice", 0)
        .referring(14, CodeReference::Absolute, "brolga_number", 0);
    main.define_code(&mix(), &code, ()).unwrap();
    let mix = main.func::<(i64, i64), i64>("mix").unwrap();
    assert_eq!(mix.call((10, 3)), Ok(28));
    NUMBER.store(100, Ordering::Relaxed);
    assert_eq!(mix.call((10, 3)), Ok(123));
}

#[test]
fn code_that_is_not_right_is_refused() {
    let session = session(OptLevel::O1);
    let main = session.create_dylib("main").unwrap();
    let refused = |signature: &Signature, code: OwnCode| {
        main.define_code(signature, &code, ()).map_err(|error| error.to_string()).unwrap_err()
    };
    let cases = [
        (OwnCode::new([]), "there is no code"),
        (OwnCode::new(ADD).aligned(3), "not to 3"),
        (OwnCode::new(ADD).aligned(8192), "up to 4096"),
        (OwnCode::new(ADD).referring(2, CodeReference::Call, "memmove", 0), "at 2 is not within its 5 bytes"),
        (OwnCode::new(ADD).referring(u64::MAX, CodeReference::Absolute, "memmove", 0), "is not within"),
        (OwnCode::new(ADD).referring(1, CodeReference::Call, "no_such_symbol", 0), "no_such_symbol"),
    ];
    for (code, reason) in cases {
        let error = refused(&mix(), code);
        assert!(error.contains(reason), "{error}");
    }
    let objects = Signature::new("mix", &[Type::ANY], Type::INT64);
    assert!(refused(&objects, OwnCode::new(ADD)).contains("C code does not take or return a `Any`"));
    assert!(main.function("mix").is_err());
    let closed = Session::new(Options::new(), Workers::Caller).unwrap();
    let error = closed.create_dylib("main").unwrap().define_code(&mix(), &OwnCode::new(ADD), ()).unwrap_err();
    assert!(error.to_string().contains("define_code"), "{error}");
}
