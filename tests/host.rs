//! Typed functions of the host: closures whose arguments stay in registers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga::heap::Persistent;
use brolga::host::{Text, Vector};
use brolga::session::{Dylib, Session, TypedHost, Workers};
use brolga::{CallError, ExceptionKind, Options};

fn session() -> (Session, Dylib) {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    (session, dylib)
}

fn define(dylib: &Dylib, text: &str) {
    dylib.define(dylib.read("program.jlir", text.as_bytes()).unwrap()).unwrap();
}

/// Defines `host` and a function `main` with these types that calls it.
fn calling<M>(params: &[&str], result: &str, body: impl TypedHost<M>) -> (Session, Dylib) {
    let (session, dylib) = session();
    dylib.define_fn("host", body).unwrap();
    let named: Vec<String> = params.iter().enumerate().map(|(n, ty)| format!("x{n}::{ty}")).collect();
    let named = named.join(", ");
    let text = format!(
        "function main({named})::{result}
1 ─ %1 = invoke Main.host({named})::{result}
└──      return %1
end"
    );
    define(&dylib, &text);
    (session, dylib)
}

fn message<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> String {
    match outcome {
        Err(CallError::Exception(thrown)) => {
            assert_eq!(thrown.kind, ExceptionKind::ErrorException);
            thrown.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_of_all_kinds_pass_in_registers() {
    macro_rules! check {
        ($($ty:ty, $julia:literal, $values:expr;)*) => {$(
            let (_session, dylib) = calling(&[$julia], $julia, |x: $ty| x);
            let same = dylib.func::<($ty,), $ty>("main").unwrap();
            for value in $values {
                assert_eq!(same.call((value,)), Ok(value));
            }
        )*};
    }
    check! {
        i8, "Int8", [i8::MIN, -1, 0, i8::MAX];
        i16, "Int16", [i16::MIN, -1, i16::MAX];
        i32, "Int32", [i32::MIN, -1, i32::MAX];
        i64, "Int64", [i64::MIN, -1, i64::MAX];
        u8, "UInt8", [0, u8::MAX];
        u16, "UInt16", [0, u16::MAX];
        u32, "UInt32", [0, u32::MAX];
        u64, "UInt64", [0, u64::MAX];
        f32, "Float32", [-0.5f32, f32::INFINITY];
        f64, "Float64", [-0.5f64, f64::MAX];
        bool, "Bool", [false, true];
        char, "Char", ['a', 'θ', '🦩'];
    }
}

#[test]
fn many_arguments_keep_their_order_and_width() {
    let kinds = ["Int8", "Float64", "UInt16", "Float32", "Int32", "Bool", "Char", "Int64"];
    let body = |a: i8, b: f64, c: u16, d: f32, e: i32, f: bool, g: char, h: i64| {
        f64::from(a)
            + b * 2.0
            + f64::from(c) * 3.0
            + f64::from(d) * 4.0
            + f64::from(e) * 5.0
            + f64::from(u8::from(f)) * 6.0
            + f64::from(u32::from(g)) * 7.0
            + h as f64 * 8.0
    };
    let (_session, dylib) = calling(&kinds, "Float64", body);
    let main = dylib.func::<(i8, f64, u16, f32, i32, bool, char, i64), f64>("main").unwrap();
    assert_eq!(
        main.call((-1, 1.5, 7, 0.25, -3, true, 'b', 11)),
        Ok(body(-1, 1.5, 7, 0.25, -3, true, 'b', 11))
    );
}

#[test]
fn state_errors_and_panics() {
    let calls = AtomicUsize::new(0);
    let (_session, dylib) = calling(&["Int64"], "Nothing", move |n: i64| -> Result<(), String> {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        match n {
            0 => Ok(()),
            1 => Err(format!("refused at call {call}")),
            _ => panic!("no such number: {n}"),
        }
    });
    let main = dylib.func::<(i64,), ()>("main").unwrap();
    assert_eq!(main.call((0,)), Ok(()));
    assert_eq!(message(main.call((1,))), "refused at call 1");
    assert_eq!(message(main.call((2,))), "a function of the host panicked: no such number: 2");
    assert_eq!(main.call((0,)), Ok(()));
    let (_session, dylib) = calling(&[], "Int64", || 7i64);
    assert_eq!(dylib.func::<(), i64>("main").unwrap().call(()), Ok(7));
}

#[test]
fn programs_catch_what_is_thrown() {
    let (_session, dylib) = session();
    dylib.define_fn("fails", |n: i64| if n > 2 { Err("too many") } else { Ok(n) }).unwrap();
    define(
        &dylib,
        "function main(n::Int64)::Int64
1 ─ %1 = enter #3
2 ─ %2 = invoke Main.fails(n::Int64)::Int64
│        $(Expr(:leave, :(%1)))
└──      return %2
3 ┄      $(Expr(:pop_exception, :(%1)))::Nothing
└──      return -1
end",
    );
    let main = dylib.func::<(i64,), i64>("main").unwrap();
    assert_eq!((main.call((2,)), main.call((3,)), main.call((1,))), (Ok(2), Ok(-1), Ok(1)));
}

#[test]
fn an_error_of_a_host_function_has_the_line_of_its_call() {
    for level in [brolga::OptLevel::O0, brolga::OptLevel::O2] {
        let session = Session::new(Options::new().opt_level(level), Workers::Caller).unwrap();
        let dylib = session.create_dylib("main").unwrap();
        dylib.define_fn("fails", |n: i64| if n > 2 { Err("too many") } else { Ok(n) }).unwrap();
        define(
            &dylib,
            "function inner(n::Int64)::Int64
4 1 ─ %1 = invoke Main.fails(n::Int64)::Int64
5 │   %2 = Base.add_int(%1, 1)::Int64
  └──      return %2
end
function main(n::Int64)::Int64
8 1 ─ %1 = invoke Main.inner(n::Int64)::Int64
9 │   %2 = Base.mul_int(%1, 2)::Int64
  └──      return %2
end",
        );
        let Err(CallError::Exception(thrown)) = dylib.func::<(i64,), i64>("main").unwrap().call((3,)) else {
            panic!("it throws")
        };
        let frames: Vec<_> =
            thrown.trace().iter().map(|frame| (frame.function.as_deref(), frame.line)).collect();
        let expected =
            [(Some("fails(Int64)"), None), (Some("inner(Int64)"), Some(4)), (Some("main(Int64)"), Some(8))];
        assert_eq!(frames, expected, "{level:?}");
    }
}

#[test]
fn text_is_seen_and_given() {
    let (session, dylib) =
        calling(&["String", "String"], "String", |a: &str, b: &str| format!("{a}{b}{}", a.chars().count()));
    let main = dylib.func_in::<(Text, Text), Text>("main").unwrap();
    let joined = session.runtime().enter(|scope| main.call(scope, ("θλ", "!")));
    assert_eq!(joined.unwrap(), Ok("θλ!2".to_owned()));
    let (session, dylib) = calling(&["String"], "Int64", |text: &str| text.len() as i64);
    let main = dylib.func_in::<(brolga::host::Handle,), i64>("main").unwrap();
    let outcome = session.runtime().enter(|scope| {
        let broken = scope.string(b"ab\xff").unwrap();
        main.call(scope, (broken,))
    });
    assert_eq!(message(outcome.unwrap()), "the String is not UTF-8 from byte 2 on");
}

#[test]
fn slices_are_views() {
    let (session, dylib) = calling(&["Vector{Float64}", "Float64"], "Float64", |all: &mut [f64], by: f64| {
        all.iter_mut().for_each(|x| *x *= by);
        all.iter().sum::<f64>()
    });
    let main = dylib.func_in::<(brolga::host::Handle, f64), f64>("main").unwrap();
    let given: Vec<f64> = (0..1000).map(f64::from).collect();
    session
        .runtime()
        .enter(|scope| {
            let cx = session.context().view();
            let ty = cx.types.vector(brolga::ir::Type::FLOAT64).unwrap();
            let ty = scope.heap().type_object(&cx, ty).unwrap();
            let vector = scope.vector_of(&ty, &given).unwrap();
            assert_eq!(main.call(scope, (vector, 2.0)), Ok(999_000.0));
            let after = vector.get(scope).copied_bits::<f64>().unwrap();
            assert_eq!(after, given.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            // A vector that does not begin where its memory does.
            scope.delete(vector, brolga::heap::End::Front, 998).unwrap();
            assert_eq!(main.call(scope, (vector, 0.5)), Ok(998.0 + 999.0));
            let empty = scope.vector_of::<f64>(&ty, &[]).unwrap();
            assert_eq!(main.call(scope, (empty, 2.0)), Ok(0.0));
        })
        .unwrap();
    let (session, dylib) = calling(&["Vector{UInt8}"], "Vector{Int32}", |bytes: &[u8]| {
        bytes.iter().map(|&byte| -i32::from(byte)).collect::<Vec<_>>()
    });
    let main = dylib.func_in::<(Vector<u8>,), Vector<i32>>("main").unwrap();
    let negated = session.runtime().enter(|scope| main.call(scope, (&[1, 2, 255],)));
    assert_eq!(negated.unwrap(), Ok(vec![-1, -2, -255]));
}

#[test]
fn slices_that_overlap_are_not_changed() {
    let pair = ["Vector{Int64}", "Vector{Int64}"];
    let (session, dylib) = calling(&pair, "Int64", |to: &mut [i64], from: &[i64]| {
        to.copy_from_slice(from);
        to.iter().sum::<i64>()
    });
    define(
        &dylib,
        "function twice(v::Vector{Int64})::Int64
1 ─ %1 = invoke Main.host(v::Vector{Int64}, v::Vector{Int64})::Int64
└──      return %1
end",
    );
    let twice = dylib.func_in::<(Vector<i64>,), i64>("twice").unwrap();
    let main = dylib.func_in::<(Vector<i64>, Vector<i64>), i64>("main").unwrap();
    let (alone, shared) = session
        .runtime()
        .enter(|scope| (main.call(scope, (&[1, 2], &[3, 4])), twice.call(scope, (&[1, 2],))))
        .unwrap();
    assert_eq!(alone, Ok(7));
    assert!(message(shared).contains("overlapping vectors"));
    // Two that look may be the same.
    let (session, dylib) = calling(&pair, "Int64", |a: &[i64], b: &[i64]| a.iter().chain(b).sum::<i64>());
    let main = dylib.func_in::<(Vector<i64>, Vector<i64>), i64>("main").unwrap();
    assert_eq!(session.runtime().enter(|scope| main.call(scope, (&[1], &[2]))).unwrap(), Ok(3));
}

#[test]
fn handles_are_stored_and_given_back() {
    let (session, dylib) = session();
    let kept: Arc<std::sync::Mutex<Vec<Persistent>>> = Arc::default();
    let (put, get) = (kept.clone(), kept.clone());
    dylib.define_fn("put", move |object: Persistent| put.lock().unwrap().push(object)).unwrap();
    dylib.define_fn("get", move || get.lock().unwrap().pop().ok_or("there is none")).unwrap();
    define(
        &dylib,
        "function keep(text::String)::Nothing
1 ─      invoke Main.put(text::Any)::Nothing
└──      return nothing
end
function again()::String
1 ─ %1 = invoke Main.get()::Any
│   %2 = Core.typeassert(%1, String)::String
└──      return %2
end",
    );
    let keep = dylib.func_in::<(Text,), ()>("keep").unwrap();
    let again = dylib.func_in::<(), Text>("again").unwrap();
    session
        .runtime()
        .enter(|scope| {
            keep.call(scope, ("kept",)).unwrap();
            scope.collect();
            assert_eq!(again.call(scope, ()), Ok("kept".to_owned()));
            assert_eq!(message(again.call(scope, ())), "there is none");
        })
        .unwrap();
}

/// A closure without views calls compiled code as Rust does; one that looks at an object is refused.
#[test]
fn calls_back() {
    let (session, dylib) = session();
    define(
        &dylib,
        "function inner(n::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(100, n)::Int64
└──      return %1
end",
    );
    let inner = dylib.func::<(i64,), i64>("inner").unwrap();
    let same = inner.clone();
    dylib.define_fn("free", move |n: i64| same.call((n,))).unwrap();
    let runtime = session.runtime().clone();
    dylib
        .define_fn("bound", move |text: &str| {
            assert!(runtime.enter(|_| ()).is_err());
            match inner.call((text.len() as i64,)) {
                Err(CallError::InScope) => 0i64,
                other => panic!("{other:?}"),
            }
        })
        .unwrap();
    define(
        &dylib,
        "function main(n::Int64, text::String)::Int64
1 ─ %1 = invoke Main.free(n::Int64)::Int64
│   %2 = invoke Main.bound(text::String)::Int64
│   %3 = invoke Main.free(n::Int64)::Int64
│   %4 = Base.add_int(%1, %2)::Int64
│   %5 = Base.add_int(%4, %3)::Int64
└──      return %5
end",
    );
    let main = dylib.func_in::<(i64, Text), i64>("main").unwrap();
    session
        .runtime()
        .enter(|scope| {
            assert_eq!(main.call(scope, (5, "text")), Ok(40));
            assert!(message(main.call(scope, (0, "text"))).contains("DivideError"));
            assert_eq!(main.call(scope, (10, "")), Ok(20));
        })
        .unwrap();
}

#[test]
fn a_closure_is_dropped_when_nothing_calls_it() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (_session, dylib) = session();
    let counted = Counted(dropped.clone());
    dylib
        .define_fn("host", move |n: i64| {
            let _held = &counted;
            n + 1
        })
        .unwrap();
    let host = dylib.func::<(i64,), i64>("host").unwrap();
    assert_eq!(host.call((1,)), Ok(2));
    drop(host);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    dylib.remove(&["host"]).unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}
