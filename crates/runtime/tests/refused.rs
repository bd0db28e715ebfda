//! Refusals of safe calls that protect memory safety, and attempts of foreign code to break it.

use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use brolga_ir::Context;
use brolga_ir::types::{DeclKind, FieldDecl, Type};
use brolga_runtime::heap::{Finalizer, ObjectError, Stress};
use brolga_runtime::objects::{MethodEntry, MethodRow};
use brolga_runtime::{EnterError, MethodError, ObjectCallError, Runtime, RuntimeOptions, with_attached};

fn runtime() -> Arc<Runtime> {
    Runtime::new(RuntimeOptions::default())
}

#[test]
fn a_thread_does_not_block_behind_the_back_of_a_scope() {
    let runtime = runtime();
    let blocks = || with_attached(&runtime, |thread| thread.blocking(|| 1)).unwrap();
    assert_eq!(blocks(), Ok(1));
    let inside = runtime.enter(|scope| (blocks(), scope.call_out(blocks), scope.blocking(blocks))).unwrap();
    assert_eq!(inside, (Err(EnterError::InScope), Ok(1), Ok(1)));
}

#[test]
fn threads_and_tables_of_another_runtime_are_refused() {
    let (one, two) = (runtime(), runtime());
    let entered = with_attached(&one, |thread| thread.enter_heap(&two).err()).unwrap();
    assert_eq!(entered, Some(EnterError::OtherRuntime));
    let cx = Context::new();
    let table = one.method_table();
    let function = cx.types.function(cx.names.intern("f"));
    let row = || {
        let entry = MethodEntry::host(|_, args| Ok(args[0]));
        MethodRow::new(function, Vec::new(), "f", entry)
    };
    let refused = two.add_methods_to(&table, &cx, [row()]);
    assert!(matches!(refused, Err(MethodError::OtherRuntime)), "{refused:?}");
    let _methods = one.add_methods_to(&table, &cx, [row()]).unwrap();
    let call = |runtime: &Arc<Runtime>| {
        let called = runtime.enter(|scope| {
            let ty = scope.heap().type_object(&cx, function).unwrap();
            let callee = scope.instance(&ty).unwrap();
            assert_eq!(
                runtime.which(&table, callee.get(scope), &[]).unwrap().is_some(),
                Arc::ptr_eq(runtime, &one)
            );
            runtime.call_in(&table, scope, callee, &[]).map(|_| ())
        });
        called.unwrap()
    };
    assert_eq!(call(&one), Ok(()));
    assert_eq!(call(&two), Err(ObjectCallError::OtherRuntime));
}

#[test]
fn values_with_references_to_no_memory_are_not_made() {
    let runtime = runtime();
    let cx = Context::new();
    let reference = cx.types.memory_ref(Type::INT64).unwrap();
    let declare = |name: &str, mutable, field| {
        let decl = cx.types.declare(cx.names.intern(name), &[]).unwrap();
        let fields = [FieldDecl::new(cx.names.intern("field"), field)].into();
        cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable, fields }).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    };
    let inner = declare("Inner", false, reference);
    let outer = declare("Outer", false, inner);
    let changes = declare("Changes", true, reference);
    let text = declare("Text", false, Type::STRING);
    runtime
        .enter(|scope| {
            for (ty, is_made) in
                [(reference, false), (inner, false), (outer, false), (changes, true), (text, true)]
            {
                let desc = scope.heap().describe(&cx, ty).unwrap();
                let made = scope.object(&desc).map(|_| ());
                let name = cx.types.display(ty).to_string();
                match made {
                    Ok(()) => assert!(is_made, "{name}"),
                    Err(error) => {
                        assert!(matches!(error, ObjectError::WrongKind { .. }) && !is_made, "{name}")
                    }
                }
            }
        })
        .unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "nothing tells that a collection has begun to wait")]
fn stress_is_set_by_a_thread_that_a_collection_waits_for() {
    let runtime = runtime();
    let (asks, asked) = mpsc::channel();
    let collected = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            runtime
                .enter(|scope| {
                    asks.send(()).unwrap();
                    // The collection that the other thread begins waits for this one throughout.
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    scope.heap().set_stress(Stress::EverySafepoint);
                    assert!(!collected.load(Ordering::Relaxed));
                    scope.heap().set_stress(Stress::Off);
                })
                .unwrap();
        });
        asked.recv().unwrap();
        runtime
            .enter(|scope| {
                scope.collect();
                collected.store(true, Ordering::Relaxed);
            })
            .unwrap();
    });
}

/// The payload of a panic that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a payload's own");
        }
    }
}

#[test]
fn exceptions_and_panics_of_finalizers_do_not_leave_them() {
    let runtime = runtime();
    let ty = {
        let cx = Context::new();
        runtime.heap().describe(&cx, cx.types.vector(Type::INT64).unwrap()).unwrap()
    };
    let (done, ran) = mpsc::channel();
    runtime
        .enter(|scope| {
            let (first, last) = (done.clone(), done.clone());
            let finalizers = [
                Finalizer::visit(move |_, _| first.send("panicked").map_or((), |()| panic_any(Bomb))),
                Finalizer::release(|| panic_any(Bomb)),
                Finalizer::visit(move |scope, _| {
                    let _thrown = scope.throw_error("a finalizer's own");
                    last.send("threw").unwrap();
                }),
            ];
            scope.frame(|scope| {
                for finalizer in finalizers {
                    let object = scope.array(&ty, &[1]).unwrap();
                    scope.finalizer(object.get(scope), finalizer);
                }
            });
            (0..3).for_each(|_| scope.collect());
            let outer = with_attached(&runtime, |thread| thread.enter().outer_exceptions());
            assert_eq!(outer, Ok(0));
            // Finalizers continue to run.
            let again = done.clone();
            scope.frame(|scope| {
                let object = scope.array(&ty, &[1]).unwrap();
                let visit = Finalizer::visit(move |_, _| again.send("again").unwrap());
                scope.finalizer(object.get(scope), visit);
            });
            scope.collect();
        })
        .unwrap();
    let mut ran: Vec<_> = ran.try_iter().collect();
    ran[..2].sort_unstable();
    assert_eq!(ran, ["panicked", "threw", "again"]);
}

#[test]
fn a_payload_of_a_function_of_the_host_does_no_harm() {
    let runtime = runtime();
    let cx = Context::new();
    let function = cx.types.function(cx.names.intern("f"));
    let entry = MethodEntry::host(|_, _| panic_any(Bomb));
    let row = MethodRow::new(function, Vec::new(), "f", entry);
    let _methods = runtime.add_methods(&cx, [row]).unwrap();
    let called = runtime.enter(|scope| {
        let ty = scope.heap().type_object(&cx, function).unwrap();
        let callee = scope.instance(&ty).unwrap();
        runtime.call(scope, callee, &[]).map(|_| ())
    });
    let thrown = called.unwrap().unwrap_err().to_string();
    assert!(thrown.contains("a function of the host panicked"), "{thrown}");
}

#[test]
fn bits_that_are_no_value_are_refused() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let cx = Context::new();
    let name = |text: &str| cx.names.intern(text);
    let declare = |text: &str, mutable: bool, fields: &[(&str, Type, bool)]| {
        let decl = cx.types.declare(name(text), &[]).unwrap();
        let fields = fields
            .iter()
            .map(|&(field, ty, is_const)| FieldDecl { is_const, ..FieldDecl::new(name(field), ty) });
        let fields = fields.collect();
        cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable, fields }).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    };
    let flags = declare("Flags", false, &[("a", Type::BOOL, false), ("b", Type::UINT8, false)]);
    let some = declare(
        "Some2",
        true,
        &[("x", Type::BOOL, false), ("flags", flags, false), ("n", Type::INT64, true)],
    );
    let desc = |ty| runtime.heap().describe(&cx, ty).unwrap();
    let memory = |of| {
        let decl = cx.types.find_decl(name("Memory")).unwrap();
        desc(cx.types.nominal(decl, &[of]).unwrap())
    };
    let (flags, some, bool) = (desc(flags), desc(some), desc(Type::BOOL));
    let (bools, union) = (memory(Type::BOOL), memory(cx.types.union(&[Type::BOOL, Type::INT64]).unwrap()));
    runtime
        .enter(|scope| {
            let refused = |done: Result<(), ObjectError>| matches!(done, Err(ObjectError::NoValue { .. }));
            let object = scope.object(&some).unwrap();
            let object = object.get(scope);
            assert!(refused(object.set_bits(0, 255u8)));
            object.set_bits(0, 1u8).unwrap();
            assert!(refused(object.set_bits(1, 0x01ffu16)) || refused(object.set_bits(1, 0xff01u16)));
            object.set_bits(1, 0x0101u16).unwrap();
            assert!(
                matches!(object.set_bits(2, 7i64), Err(ObjectError::WrongKind { .. })),
                "a `const` field"
            );
            object.init_bits(2, 7i64).unwrap();
            assert_eq!(object.bits(2), Ok(7i64));
            let immutable = scope.object(&flags).unwrap();
            let immutable = immutable.get(scope);
            assert!(matches!(immutable.set_bits(1, 7u8), Err(ObjectError::WrongKind { .. })));
            immutable.init_bits(1, 7u8).unwrap();
            assert!(refused(immutable.init_bits(0, 2u8)));
            assert!(refused(scope.boxed(&bool, 3u8).map(drop)));
            let bools = scope.memory(&bools, 2).unwrap();
            assert!(refused(bools.get(scope).set_element_bits(1, 9u8)));
            bools.get(scope).set_element_bits(1, 1u8).unwrap();
            let union = scope.memory(&union, 2).unwrap();
            let union = union.get(scope);
            let takes_byte = |which: &u8| union.set_union_element(0, *which, 1u8).is_ok();
            let taking: Vec<u8> = (0..2).filter(takes_byte).collect();
            let [of_bool] = taking[..] else { panic!("an `Int64` is larger: {taking:?}") };
            union.set_union_element(0, 1 - of_bool, 1i64).unwrap();
            assert!(refused(union.set_union_element(0, of_bool, 255u8)));
            assert_eq!(union.union_element::<u8>(0), Ok((1 - of_bool, 1)), "nothing has changed");
            assert!(matches!(
                union.set_union_element(0, 2, 1u8),
                Err(ObjectError::Index { index: 2, length: 2 })
            ));
            assert!(matches!(
                union.set_union_element(2, of_bool, 1u8),
                Err(ObjectError::Index { index: 2, length: 2 })
            ));
        })
        .unwrap();
}
