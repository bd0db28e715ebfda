//! Objects at typed calls: inside scopes only, rooted during the call, and of the right heap.

mod support;

use brolga_codegen::sig::{Abi, FunctionType, Signature, ValueType};
use brolga_ir::diag::SourceFile;
use brolga_ir::module::{Global, GlobalKind, Literal};
use brolga_ir::verify::verify_module;
use brolga_ir::{Const, Context, Func, Type, text};
use brolga_jit::{CallError, GlobalError, Globals, Jit, JitOptions, Source, Unit, Word};
use brolga_runtime::heap::{HeapOptions, Scope, Stress};
use brolga_runtime::{Runtime, RuntimeOptions};
use support::TIERS;

/// Functions of objects that need no roots.
const PROGRAM: &str = "
low function boxed(n::i64)::tracked
1 ─ %1 = brolga_gc_box_int(n)::tracked
└──      return %1
end

low function value(object::tracked)::i64
1 ─ %1 = load(object; offset = 0, region = immutable, align = 8)::i64
└──      return %1
end

low function swap(a::tracked, n::i64, b::tracked)::(tracked, i64, tracked)
1 ─ return (b, n, a)
end

low function plain(n::i64)::i64
1 ─ return n
end

low function throws(n::i64)::i64
1 ─ brolga_throw_bounds(n)
└── unreachable
end
";

fn stressed() -> Jit {
    let heap =
        HeapOptions { stress: Stress::EverySafepoint, poison: true, verify: true, ..HeapOptions::default() };
    let runtime = Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() });
    Jit::new(runtime, JitOptions::default()).unwrap()
}

fn build(jit: &Jit, tier: brolga_codegen::isa::Tier) -> Unit {
    let cx = Context::new();
    let (unit, findings) = text::read(&SourceFile::new("objects.jlir", PROGRAM).unwrap(), &cx);
    assert!(!findings.has_errors(), "{findings:?}");
    assert!(verify_module(&unit.module).is_ok());
    let funcs: Vec<Func> = unit.module.funcs().map(|(_, func)| func.clone()).collect();
    let source = |func| {
        let func: &Func = func;
        let signature: Signature = brolga_codegen::translate::signature_of(func).unwrap();
        let name = cx.names.text(func.name).to_owned();
        let values = |list: &[Abi]| list.iter().map(|&abi| ValueType::scalar("?", abi)).collect::<Vec<_>>();
        let result = ValueType::tuple(values(&signature.results));
        let ty =
            FunctionType { symbol: name.clone(), name, params: values(&signature.params), result, signature };
        Source { func, ty: Some(ty.into()) }
    };
    jit.build(&cx, &funcs.iter().map(source).collect::<Vec<_>>(), tier, &[]).unwrap()
}

#[test]
fn objects_go_in_and_come_out_and_are_kept_by_the_scope() {
    for tier in TIERS {
        let jit = stressed();
        let unit = build(&jit, tier);
        let [boxed, value, swap] = ["boxed", "value", "swap"].map(|name| unit.untyped(name).unwrap());
        jit.runtime()
            .enter(|scope| {
                let mut kept = Vec::new();
                for n in 0..50u128 {
                    let given = boxed.call_in(scope, &[Word::Bits(1_000_000 + n)]).unwrap();
                    let [Word::Object(Some(root))] = given[..] else { panic!("{given:?}") };
                    kept.push(root);
                }
                for (n, &root) in kept.iter().enumerate() {
                    assert_eq!(root.get(scope).unboxed::<i64>(), Ok(1_000_000 + n as i64));
                    let back = value.call_in(scope, &[Word::Object(Some(root))]).unwrap();
                    assert!(matches!(back[..], [Word::Bits(bits)] if bits == 1_000_000 + n as u128));
                }
                let args = [Word::Object(Some(kept[3])), Word::Bits(5), Word::Object(None)];
                let given = swap.call_in(scope, &args).unwrap();
                let [Word::Object(None), Word::Bits(5), Word::Object(Some(root))] = given[..] else {
                    panic!("{given:?}")
                };
                assert_eq!(root.get(scope), kept[3].get(scope));
            })
            .unwrap();
        jit.runtime().enter(|scope| scope.collect()).unwrap();
        assert_eq!(jit.runtime().heap().stats().live_objects, 0);
    }
}

#[test]
fn a_call_that_could_lose_objects_is_refused() {
    let (jit, other) = (stressed(), stressed());
    let unit = build(&jit, TIERS[0]);
    let [boxed, value, plain] = ["boxed", "value", "plain"].map(|name| unit.untyped(name).unwrap());
    assert_eq!(boxed.call(&[1]), Err(CallError::Word { index: 1, object: true }));
    assert_eq!(value.call(&[0]), Err(CallError::Word { index: 0, object: true }));
    assert_eq!(plain.call(&[1]), Ok(vec![1]));
    jit.runtime()
        .enter(|scope| {
            assert_eq!(plain.call(&[1]), Err(CallError::InScope));
            assert_eq!(scope.call_out(|| plain.call(&[1])), Ok(vec![1]));
            let string = scope.string(b"x").unwrap();
            let refused = |result: Result<Vec<Word<'_, '_>>, CallError>| result.err().unwrap();
            let index = 0;
            let given = refused(value.call_in(scope, &[Word::Bits(64)]));
            assert_eq!(given, CallError::Word { index, object: true });
            let given = refused(plain.call_in(scope, &[Word::Object(Some(string))]));
            assert_eq!(given, CallError::Word { index, object: false });
            assert_eq!(refused(plain.call_in(scope, &[])), CallError::Count { expected: 1, given: 0 });
        })
        .unwrap();
    let refused = other.runtime().enter(|scope| plain.call_in(scope, &[Word::Bits(1)]).err());
    assert_eq!(refused, Ok(Some(CallError::OtherRuntime)));
}

#[test]
fn collections_do_not_look_at_a_thread_while_it_runs_code_without_objects() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let jit = stressed();
    // A unit of its own, which needs no heap.
    let cx = Context::new();
    let (unit, _) = text::read(&SourceFile::new("objects.jlir", PROGRAM).unwrap(), &cx);
    let func = unit.module.funcs().map(|(_, func)| func).find(|func| cx.names.text(func.name) == "throws");
    let source = Source { func: func.unwrap(), ty: Some(support::int_function("throws", 1).into()) };
    let unit = jit.build(&cx, &[source], TIERS[0], &[]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                jit.runtime().enter(|scope| scope.collect()).unwrap();
            }
        });
        let throws = unit.func::<(i64,), i64>("throws").unwrap();
        jit.runtime().enter(|_| ()).unwrap();
        for n in 0..50_000 {
            assert!(matches!(throws.call((n,)), Err(CallError::Exception(_))));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Describes a variable that begins with 0.
fn describe(globals: &Globals, name: &str, kind: GlobalKind) {
    let cx = Context::new();
    let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 0 });
    globals.describe(&cx, &Global { name: cx.names.intern(name), ty: Type::INT64, init, kind });
}

/// Rust sees the value of its thread.
#[test]
fn a_thread_local_global_is_read_and_set_in_each_thread() {
    let jit = stressed();
    let globals = Globals::new(jit.runtime());
    describe(&globals, "own", GlobalKind::ThreadLocal);
    globals.declare("own");
    let get = || {
        let value = |scope: &mut Scope<'_, '_>| globals.get(scope, "own")?.unboxed::<i64>().ok();
        jit.runtime().enter(value).unwrap()
    };
    let set = |n: i64, begins: bool| {
        let set = |scope: &mut Scope<'_, '_>| {
            let value = scope.int(n).unwrap();
            let value = Some(value.get(scope));
            if begins { globals.begin(scope, "own", value) } else { globals.set(scope, "own", value) }
        };
        assert_eq!(jit.runtime().enter(set).unwrap(), Ok(()));
    };
    let elsewhere =
        |body: &(dyn Fn() -> Option<i64> + Sync)| std::thread::scope(|s| s.spawn(body).join().unwrap());
    assert_eq!(get(), None);
    set(1000, true);
    assert_eq!(get(), Some(1000));
    set(2000, false);
    assert_eq!((get(), elsewhere(&get)), (Some(2000), Some(1000)));
    let sets = || {
        set(3000, false);
        get()
    };
    assert_eq!((elsewhere(&sets), get(), elsewhere(&get)), (Some(3000), Some(2000), Some(1000)));
    // To begin again reaches threads that have a value.
    set(4000, true);
    assert_eq!((get(), elsewhere(&get)), (Some(4000), Some(4000)));
    let wrong = jit.runtime().enter(|scope| {
        let text = scope.string(b"text").unwrap();
        globals.set(scope, "own", Some(text.get(scope)))
    });
    assert!(matches!(wrong.unwrap(), Err(GlobalError::Type { .. })));
}

/// Compiled code relies on a variable's declared type.
#[test]
fn a_global_takes_values_of_its_type_only() {
    let (jit, other) = (stressed(), stressed());
    let globals = Globals::new(jit.runtime());
    describe(&globals, "count", GlobalKind::Variable);
    globals.declare("count");
    let done = jit.runtime().enter(|scope| {
        let (one, text) = (scope.int(1).unwrap(), scope.string(b"one").unwrap());
        assert_eq!(globals.set(scope, "count", Some(one.get(scope))), Ok(()));
        let refused = globals.set(scope, "count", Some(text.get(scope))).unwrap_err();
        assert_eq!(refused.to_string(), "the global variable `count` is a `Int64`, and the value a `String`");
        assert_eq!(globals.get(scope, "count").unwrap().unboxed::<i64>().unwrap(), 1);
        let unknown = globals.set(scope, "sum", None).unwrap_err();
        assert_eq!(unknown, GlobalError::Unknown { name: "sum".to_owned() });
        assert_eq!(globals.set(scope, "count", None), Ok(()));
        assert!(globals.get(scope, "count").is_none());
    });
    done.unwrap();
    let done = other.runtime().enter(|scope| {
        assert_eq!(globals.set(scope, "count", None), Err(GlobalError::OtherRuntime));
    });
    done.unwrap();
}
