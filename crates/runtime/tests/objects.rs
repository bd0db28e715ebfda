//! Objects as values: their types, equality, text, exceptions.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::{DeclKind, FieldDecl, Type};
use brolga_runtime::heap::{End, HeapOptions, ObjectError, Root, Scope, Stress, TypeRef};
use brolga_runtime::{ExceptionKind, Runtime, RuntimeOptions, with_attached};

fn declare(cx: &Context, name: &str, mutable: bool, fields: &[(&str, Type)]) -> Type {
    let decl = cx.types.declare(cx.names.intern(name), &[]).unwrap();
    let fields = fields.iter().map(|&(n, t)| FieldDecl::new(cx.names.intern(n), t)).collect();
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable, fields }).unwrap();
    cx.types.nominal(decl, &[]).unwrap()
}

fn named(cx: &Context, name: &str) -> Type {
    let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
    cx.types.nominal(decl, &[]).unwrap()
}

/// Runs `body` under stress, so that a missing root is a failure.
fn stressed(runtime: &Arc<Runtime>, body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>)) {
    runtime.heap().set_stress(Stress::EverySafepoint);
    runtime.enter(|scope| body(scope)).unwrap();
}

fn poisoned() -> Arc<Runtime> {
    let heap = HeapOptions { poison: true, verify: true, ..HeapOptions::default() };
    Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() })
}

#[test]
fn objects_are_of_their_type_and_of_those_above_it() {
    let runtime = poisoned();
    let cx = Context::new();
    let node = declare(&cx, "Node", true, &[("next", Type::ANY)]);
    let vector = cx.types.vector(node).unwrap();
    let ty = |ty| runtime.heap().type_object(&cx, ty).unwrap();
    let union = cx.types.union(&[Type::INT64, node]).unwrap();
    let abstract_vector = named(&cx, "AbstractArray");
    stressed(&runtime, |scope| {
        let int = scope.int(5000).unwrap();
        let object = scope.object(&ty(node)).unwrap();
        let array = scope.array(&ty(vector), &[2]).unwrap();
        for (root, yes, no) in [
            (
                int,
                vec![Type::ANY, Type::INT64, union, named(&cx, "Number")],
                vec![Type::INT8, node, Type::BOTTOM],
            ),
            (object, vec![Type::ANY, node, union], vec![Type::INT64, vector, named(&cx, "Number")]),
            (array, vec![vector, abstract_vector], vec![node, cx.types.vector(Type::ANY).unwrap()]),
        ] {
            for of in yes {
                assert!(scope.is_a(root.get(scope), &ty(of)), "{}", cx.types.display(of));
            }
            for of in no {
                assert!(!scope.is_a(root.get(scope), &ty(of)), "{}", cx.types.display(of));
            }
        }
    });
}

#[test]
fn types_are_of_their_own_type() {
    let runtime = poisoned();
    let cx = Context::new();
    let node = declare(&cx, "Node", true, &[]);
    let of = |ty| cx.types.type_of(ty).unwrap();
    let ty = |ty| runtime.heap().type_object(&cx, ty).unwrap();
    stressed(&runtime, |scope| {
        let box_ty = scope.object(&ty(Type::BOX)).unwrap();
        let value = scope.type_of(box_ty.get(scope));
        let value = scope.root(value);
        assert_eq!(scope.show(value.get(scope)), "Core.Box");
        for (wanted, is) in [
            (of(Type::BOX), true),
            (of(node), false),
            (Type::DATATYPE, true),
            (named(&cx, "Type"), true),
            (Type::ANY, true),
            (Type::BOX, false),
        ] {
            assert_eq!(scope.is_a(value.get(scope), &ty(wanted)), is, "{}", cx.types.display(wanted));
        }
        let union_all = named(&cx, "Pair");
        let address = runtime.type_address(&cx, union_all).unwrap();
        assert_eq!(ty(union_all).tag() as usize, address);
    });
}

fn point<'f, 'h>(scope: &mut Scope<'f, 'h>, ty: &TypeRef, bits: f64, of: Root<'_, 'h>) -> Root<'f, 'h> {
    let point = scope.object(ty).unwrap();
    point.get(scope).init_bits(0, bits).unwrap();
    scope.set_field(point.get(scope), 1, Some(of.get(scope))).unwrap();
    point
}

#[test]
fn equality_looks_into_immutable_values_and_nothing_else() {
    let runtime = poisoned();
    let cx = Context::new();
    let ty = |ty| runtime.heap().type_object(&cx, ty).unwrap();
    let pair = ty(declare(&cx, "P", false, &[("x", Type::FLOAT64), ("y", Type::ANY)]));
    stressed(&runtime, |scope| {
        let (a, b) = (scope.string(b"same").unwrap(), scope.string(b"same").unwrap());
        assert!(a.get(scope).is_same(b.get(scope)));
        let (one, two) = (point(scope, &pair, 1.0, a), point(scope, &pair, 1.0, b));
        assert!(one.get(scope).is_same(two.get(scope)));
        let zero = point(scope, &pair, 0.0, a);
        let minus = point(scope, &pair, -0.0, a);
        assert!(!zero.get(scope).is_same(minus.get(scope)));
        let nan = [f64::NAN; 2].map(|x| point(scope, &pair, x, a));
        assert!(nan[0].get(scope).is_same(nan[1].get(scope)));
        let (m, n) = (scope.object(&ty(Type::BOX)).unwrap(), scope.object(&ty(Type::BOX)).unwrap());
        assert!(!m.get(scope).is_same(n.get(scope)) && m.get(scope).is_same(m.get(scope)));
        let (int, float) = (scope.int(7000).unwrap(), scope.boxed(&ty(Type::FLOAT64), 0.0).unwrap());
        let again = scope.int(7000).unwrap();
        assert!(int.get(scope).is_same(again.get(scope)));
        assert!(!int.get(scope).is_same(float.get(scope)));
    });
}

#[test]
fn equality_of_shared_and_of_deep_values_ends() {
    let runtime = poisoned();
    let cx = Context::new();
    let any = ("a", Type::ANY);
    let pair = declare(&cx, "Two", false, &[any, ("b", Type::ANY)]);
    let pair = runtime.heap().describe(&cx, pair).unwrap();
    runtime
        .enter(|scope| {
            let mut make = |shared: bool, depth: usize| {
                let mut at = scope.int(1).unwrap();
                for _ in 0..depth {
                    let next = scope.object(&pair).unwrap();
                    scope.set_field(next.get(scope), 0, Some(at.get(scope))).unwrap();
                    if shared {
                        scope.set_field(next.get(scope), 1, Some(at.get(scope))).unwrap();
                    }
                    at = next;
                }
                at
            };
            let (a, b) = (make(true, 100), make(true, 100));
            let (c, d) = (make(false, 100_000), make(false, 100_000));
            assert!(a.get(scope).is_same(b.get(scope)));
            assert!(c.get(scope).is_same(d.get(scope)));
            assert!(!a.get(scope).is_same(c.get(scope)));
        })
        .unwrap();
}

#[test]
fn objects_are_shown_as_julia_shows_them() {
    let runtime = poisoned();
    let cx = Context::new();
    let ty = |ty| runtime.heap().type_object(&cx, ty).unwrap();
    let small = cx.types.union(&[Type::NOTHING, Type::INT8]).unwrap();
    let inner = declare(&cx, "Inner", false, &[("a", Type::UINT8), ("s", Type::STRING)]);
    let outer = declare(&cx, "Outer", true, &[("u", small), ("i", inner), ("any", Type::ANY)]);
    let ints = cx.types.vector(Type::INT64).unwrap();
    let singles = cx.types.array(Type::FLOAT32, 2).unwrap();
    let anys = cx.types.vector(Type::ANY).unwrap();
    stressed(&runtime, |scope| {
        let object = scope.object(&ty(outer)).unwrap();
        assert_eq!(scope.show(object.get(scope)), "Outer(nothing, #undef, #undef)");
        scope.set_field(object.get(scope), 2, Some(object.get(scope))).unwrap();
        assert_eq!(scope.show(object.get(scope)), "Outer(nothing, #undef, #= circular reference @-1 =#)");
        assert!(scope.load_field(object, 1).unwrap().is_none());
        let inner = scope.object(&ty(inner)).unwrap();
        assert_eq!(scope.show(inner.get(scope)), "Inner(0x00, #undef)");
        let nothing = scope.load_field(object, 0).unwrap().unwrap();
        let vector = scope.array(&ty(ints), &[3]).unwrap();
        vector.get(scope).set_element_bits(1, 5i64).unwrap();
        assert_eq!(scope.show(vector.get(scope)), "[0, 5, 0]");
        scope.delete(vector, End::Front, 1).unwrap();
        assert_eq!(scope.show(vector.get(scope)), "[5, 0]");
        let matrix = scope.array(&ty(singles), &[2, 2]).unwrap();
        matrix.get(scope).set_element_bits(2, 1.5f32).unwrap();
        assert_eq!(scope.show(matrix.get(scope)), "Float32[0.0 1.5; 0.0 0.0]");
        let any = scope.array(&ty(anys), &[3]).unwrap();
        scope.set_element(any.get(scope), 0, Some(nothing.get(scope))).unwrap();
        let symbol = scope.symbol("s");
        scope.set_element(any.get(scope), 2, Some(symbol.get(scope))).unwrap();
        assert_eq!(scope.show(any.get(scope)), "Any[nothing, #undef, :s]");
        let (text, yes) = (scope.string(b"a\"").unwrap(), scope.bool(true).unwrap());
        let tuple = scope.tuple(&[text, yes, inner]).unwrap();
        assert_eq!(scope.show(tuple.get(scope)), r#"("a\"", true, Inner(0x00, #undef))"#);
        assert_eq!(tuple.get(scope).desc().name(), "Tuple{String, Bool, Inner}");
        let empty = scope.tuple(&[]).unwrap();
        assert_eq!(scope.show(empty.get(scope)), "()");
    });
}

#[test]
fn a_thrown_object_arrives_with_its_text_and_stays_alive() {
    let runtime = poisoned();
    let cx = Context::new();
    let mine = declare(&cx, "Mine", true, &[("code", Type::INT64)]);
    let desc = runtime.heap().describe(&cx, mine).unwrap();
    let exception = with_attached(&runtime, |thread| {
        let entered = thread.enter();
        runtime
            .enter(|scope| {
                let object = scope.object(&desc).unwrap();
                object.get(scope).set_bits(0, 42i64).unwrap();
                let _ = scope.throw(object.get(scope));
            })
            .unwrap();
        // It is a root while in transit.
        runtime.enter(|scope| scope.collect()).unwrap();
        entered.take_exception()
    })
    .unwrap();
    assert_eq!((exception.kind, exception.to_string().as_str()), (ExceptionKind::Other, "Mine(42)"));
    assert_eq!((exception.type_in(&cx), exception.type_in(&Context::new())), (Some(mine), None));
    runtime
        .enter(|scope| {
            scope.collect();
            assert_eq!(scope.heap().stats().live_objects, 1);
            let object = scope.get_persistent(exception.object().unwrap()).unwrap();
            assert_eq!(object.bits::<i64>(0), Ok(42));
        })
        .unwrap();
    drop(exception);
    runtime.enter(|scope| scope.collect()).unwrap();
    assert_eq!(runtime.heap().stats().live_objects, 0);
}

#[test]
fn a_builtin_exception_is_of_the_programs_type() {
    let runtime = poisoned();
    let cx = Context::new();
    let exception = with_attached(&runtime, |thread| {
        let entered = thread.enter();
        let _ = runtime.enter(|scope| scope.throw_error("because")).unwrap();
        entered.take_exception()
    })
    .unwrap();
    assert_eq!((exception.kind, exception.message.as_str()), (ExceptionKind::ErrorException, "because"));
    assert_eq!(exception.type_in(&cx), Some(named(&cx, "ErrorException")));
}

#[test]
fn only_what_a_place_may_hold_is_stored() {
    let runtime = poisoned();
    let cx = Context::new();
    let ty = |ty| runtime.heap().type_object(&cx, ty).unwrap();
    let node = declare(&cx, "Node", true, &[]);
    let small = cx.types.union(&[Type::NOTHING, Type::INT8]).unwrap();
    let maybe = cx.types.union(&[Type::NOTHING, node]).unwrap();
    let inner = declare(&cx, "Inner", false, &[("a", Type::UINT8), ("s", Type::STRING)]);
    let holder =
        declare(&cx, "Holder", true, &[("i", Type::INT64), ("u", small), ("m", maybe), ("in", inner)]);
    let inners = cx.types.vector(inner).unwrap();
    stressed(&runtime, |scope| {
        let object = scope.object(&ty(holder)).unwrap();
        let (int, text) = (scope.int(7).unwrap(), scope.string(b"s").unwrap());
        let nothing = scope.instance(&ty(Type::NOTHING)).unwrap();
        let byte = scope.boxed(&ty(Type::INT8), -1i8).unwrap();
        let other = scope.object(&ty(node)).unwrap();
        let inner_value = scope.object(&ty(inner)).unwrap();
        scope.set_field(inner_value.get(scope), 1, Some(text.get(scope))).unwrap();
        for (index, fits, not) in [
            (0, vec![int], vec![byte, text]),
            (1, vec![nothing, byte], vec![int]),
            (2, vec![nothing, other], vec![object, int]),
            (3, vec![inner_value], vec![object, text]),
        ] {
            for value in fits {
                let place = object.get(scope);
                assert_eq!(scope.set_field(place, index, Some(value.get(scope))), Ok(()));
                let held = scope.load_field(object, index).unwrap().unwrap();
                assert!(held.get(scope).is_same(value.get(scope)));
            }
            for value in not {
                let refused = scope.set_field(object.get(scope), index, Some(value.get(scope)));
                assert!(matches!(refused, Err(ObjectError::WrongType { .. })), "{refused:?}");
            }
        }
        assert_eq!(scope.show(object.get(scope)), r#"Holder(7, -1, Node(), Inner(0x00, "s"))"#);
        assert!(scope.set_field(object.get(scope), 0, None).is_err());
        assert!(scope.set_field(object.get(scope), 4, None).is_err());
        let array = scope.array(&ty(inners), &[2]).unwrap();
        scope.set_element(array.get(scope), 1, Some(inner_value.get(scope))).unwrap();
        assert!(scope.set_element(array.get(scope), 1, Some(int.get(scope))).is_err());
        assert!(scope.set_element(array.get(scope), 2, Some(inner_value.get(scope))).is_err());
        let element = scope.load_element(array, 1).unwrap().unwrap();
        assert!(element.get(scope).is_same(inner_value.get(scope)));
    });
}
