//! The heap through its public interface: lifetimes of objects, in every mode.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use brolga_ir::Context;
use brolga_ir::types::Type;
use brolga_runtime::heap::{
    Collection, End, Finalizer, Generations, HeapOptions, ObjectError, Root, Scope, Stress,
};
use brolga_runtime::{EnterError, Runtime, RuntimeOptions};
use support::{Numbers, declare, node, runtime, vector};

fn modes() -> Vec<HeapOptions> {
    let mut modes = Vec::new();
    for generations in [Generations::Off, Generations::On, Generations::Adaptive] {
        let plain = HeapOptions { generations, ..HeapOptions::default() };
        modes.push(plain.clone());
        let checked = HeapOptions { poison: true, verify: true, ..plain };
        modes.push(HeapOptions { stress: Stress::EverySafepoint, ..checked.clone() });
        modes.push(HeapOptions { stress: Stress::Every(7), ..checked });
    }
    let sliced = |mode: &HeapOptions| HeapOptions { pause: Some(Duration::ZERO), ..mode.clone() };
    modes.extend(modes.clone().iter().map(sliced));
    // Under Miri: adaptive, plain and with an occasional collection.
    if cfg!(miri) { modes.into_iter().skip(6).step_by(3).collect() } else { modes }
}

/// A quantity: less under Miri, which is some hundred times slower.
const fn scaled(full: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { full }
}

/// A graph in the heap and an identical one outside, changed in step.
fn random_graph(options: HeapOptions, seed: u64, steps: usize) {
    let runtime = runtime(options.clone());
    let node = node(&runtime);
    let numbers = &mut Numbers(seed);
    runtime
        .enter(|scope| {
            const ROOTS: usize = 12;
            let roots: Vec<Root<'_, '_>> = (0..ROOTS).map(|_| scope.object(&node).unwrap()).collect();
            // Outside: fields by id; roots hold the ids 0 to 11 at first.
            let mut fields: Vec<[Option<usize>; 3]> = vec![[None; 3]; ROOTS];
            let mut held: Vec<usize> = (0..ROOTS).collect();
            for (id, root) in roots.iter().enumerate() {
                root.get(scope).set_bits(0, id as i64).unwrap();
            }
            for _ in 0..steps {
                let (to, from, field) = (numbers.below(ROOTS), numbers.below(ROOTS), numbers.below(3));
                match numbers.below(20) {
                    0..8 => scope.frame(|scope| {
                        let id = fields.len();
                        let new = scope.object(&node).unwrap();
                        new.get(scope).set_bits(0, id as i64).unwrap();
                        let target = roots[from].get(scope);
                        scope.set_field(new.get(scope), 1 + field, Some(target)).unwrap();
                        scope.set_root(roots[to], new.get(scope));
                        let mut own = [None; 3];
                        own[field] = Some(held[from]);
                        fields.push(own);
                        held[to] = id;
                    }),
                    8..14 => {
                        let (object, value) = (roots[to].get(scope), roots[from].get(scope));
                        scope.set_field(object, 1 + field, Some(value)).unwrap();
                        fields[held[to]][field] = Some(held[from]);
                    }
                    14..16 => {
                        scope.set_field(roots[to].get(scope), 1 + field, None).unwrap();
                        fields[held[to]][field] = None;
                    }
                    16..19 => {
                        let Some(next) = roots[to].get(scope).field(1 + field).unwrap() else {
                            assert_eq!(fields[held[to]][field], None);
                            continue;
                        };
                        held[to] = fields[held[to]][field].unwrap();
                        scope.set_root(roots[to], next);
                    }
                    _ => {
                        let kind = if numbers.below(2) == 0 { Collection::Minor } else { Collection::Full };
                        scope.collect_kind(kind);
                    }
                }
                for (root, id) in roots.iter().zip(&held) {
                    assert_eq!(root.get(scope).bits::<i64>(0), Ok(*id as i64), "{options:?}, seed {seed}");
                }
            }
            scope.collect();
            // Everything reachable in the model exists, and nothing else.
            let mut seen = vec![false; fields.len()];
            let mut work: Vec<_> = roots.iter().map(|root| root.get(scope)).zip(held).collect();
            let mut count = 0;
            while let Some((object, id)) = work.pop() {
                assert_eq!(object.bits::<i64>(0), Ok(id as i64));
                if !std::mem::replace(&mut seen[id], true) {
                    count += 1;
                    for (index, target) in fields[id].iter().enumerate() {
                        let field = object.field(1 + index).unwrap();
                        assert_eq!(field.is_some(), target.is_some());
                        work.extend(field.zip(*target));
                    }
                }
            }
            assert_eq!(scope.heap().stats().live_objects, count);
        })
        .unwrap();
}

#[test]
fn stress_keeps_its_pace() {
    let checked = HeapOptions { poison: true, verify: true, ..HeapOptions::default() };
    let runtime = runtime(HeapOptions { stress: Stress::Paced(100), ..checked });
    let node = node(&runtime);
    let collections = || {
        let stats = runtime.heap().stats();
        stats.minor_collections + stats.full_collections
    };
    runtime
        .enter(|scope| {
            let allocate = |scope: &mut brolga_runtime::heap::Scope<'_, '_>, count: u64| {
                let before = collections();
                for _ in 0..count {
                    scope.frame(|scope| scope.object(&node).map(|_| ()).unwrap());
                }
                collections() - before
            };
            assert_eq!(allocate(scope, 50), 50, "with little alive at every one");
            let kept: Vec<_> = (0..2000).map(|_| scope.object(&node).unwrap()).collect();
            let rare = allocate(scope, 1000);
            assert!((20..=60).contains(&rare), "{rare} with {} objects alive", kept.len());
        })
        .unwrap();
}

/// The list is the worst case of minor collections: its dead old cells keep its young ones alive. They are
/// abandoned.
#[test]
#[cfg_attr(miri, ignore = "a policy, which takes megabytes to show")]
fn a_queue_is_collected_in_full() {
    let heap = HeapOptions { initial: 1 << 20, limit: Some(4 << 20), ..HeapOptions::default() };
    let runtime = runtime(heap);
    let node = node(&runtime);
    const LENGTH: usize = 1000;
    runtime
        .enter(|scope| {
            let head = scope.object(&node).unwrap();
            let tail = scope.object(&node).unwrap();
            scope.set_root(tail, head.get(scope));
            for step in 0..400_000 {
                scope.frame(|scope| {
                    let new = scope.object(&node).unwrap();
                    scope.set_field(tail.get(scope), 1, Some(new.get(scope))).unwrap();
                    scope.set_root(tail, new.get(scope));
                });
                if step >= LENGTH {
                    let next = head.get(scope).field(1).unwrap().unwrap();
                    scope.set_root(head, next);
                }
            }
            let stats = scope.heap().stats();
            assert!(stats.minor_collections <= stats.full_collections, "{stats:?}");
        })
        .unwrap();
}

#[test]
fn random_graphs_keep_what_is_reachable_and_nothing_else() {
    for options in modes() {
        let stressed = options.stress != Stress::Off;
        for seed in 1..if stressed { scaled(4, 2) } else { scaled(20, 2) } {
            let steps = if stressed { scaled(800, 60) } else { scaled(3000, 300) };
            random_graph(options.clone(), seed as u64, steps);
        }
    }
}

#[test]
fn a_list_of_a_million_nodes_is_marked_without_recursion() {
    const NODES: usize = scaled(1_000_000, 300);
    let runtime = runtime(HeapOptions::default());
    let node = node(&runtime);
    runtime
        .enter(|scope| {
            let list = scope.object(&node).unwrap();
            for id in 1..NODES as i64 {
                scope.frame(|scope| {
                    // One that dies immediately.
                    scope.object(&node).unwrap();
                    let new = scope.object(&node).unwrap();
                    new.get(scope).set_bits(0, id).unwrap();
                    scope.set_field(new.get(scope), 1, Some(list.get(scope))).unwrap();
                    scope.set_root(list, new.get(scope));
                });
            }
            scope.collect();
            assert_eq!(scope.heap().stats().live_objects, NODES);
        })
        .unwrap();
}

#[test]
fn objects_of_every_size_live_and_die() {
    for options in modes() {
        let runtime = runtime(options);
        let bytes = vector(&runtime, Type::UINT8);
        runtime
            .enter(|scope| {
                for size in (0..600).step_by(37).chain([8_000, 16_000, 17_000, 40_000, 1 << 20, 3 << 20]) {
                    scope.frame(|scope| {
                        let array = scope.array(&bytes, &[size]).unwrap();
                        let dead = scope.string(&vec![7; size]).unwrap();
                        if size > 0 {
                            array.get(scope).set_element_bits(size - 1, 9u8).unwrap();
                        }
                        scope.set_root(dead, array.get(scope));
                        scope.collect();
                        scope.collect_kind(Collection::Minor);
                        let array = array.get(scope);
                        assert_eq!(array.length(), Ok(size));
                        let sum: usize = (0..size.min(scaled(5000, 50)))
                            .map(|i| usize::from(array.element_bits::<u8>(size - 1 - i).unwrap()))
                            .sum();
                        assert_eq!(sum, if size > 0 { 9 } else { 0 });
                        assert_eq!(scope.heap().stats().live_objects, 2);
                    });
                }
                scope.collect();
                let stats = scope.heap().stats();
                assert_eq!((stats.live_objects, stats.used_bytes), (0, 0));
            })
            .unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "fills megabytes with nodes")]
fn the_limit_is_an_error_and_nothing_is_lost() {
    let runtime = runtime(HeapOptions { limit: Some(4 << 20), verify: true, ..HeapOptions::default() });
    let node = node(&runtime);
    let bytes = vector(&runtime, Type::UINT8);
    runtime
        .enter(|scope| {
            let list = scope.object(&node).unwrap();
            let mut count = 1;
            let error = loop {
                let grown = scope.frame(|scope| {
                    let new = scope.object(&node)?;
                    scope.set_field(new.get(scope), 1, Some(list.get(scope)))?;
                    scope.set_root(list, new.get(scope));
                    Ok::<_, ObjectError>(())
                });
                match grown {
                    Ok(()) => count += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, ObjectError::OutOfMemory(_)), "{error}");
            // 40 bytes per node, in blocks of 32 KiB.
            assert!((100_000..105_000).contains(&count), "{count}");
            assert!(scope.array(&bytes, &[1 << 20]).is_err());
            assert!(scope.array(&bytes, &[usize::MAX]).is_err());
            let mut length = 1;
            let mut at = list.get(scope);
            while let Some(next) = at.field(1).unwrap() {
                (at, length) = (next, length + 1);
            }
            assert_eq!(length, count);
            // With all nodes but one freed, there is room again.
            scope.set_root(list, at);
            assert!(scope.array(&bytes, &[1 << 20]).is_ok());
            assert!(scope.add_external(8 << 20).is_err());
            assert!(scope.add_external(1 << 20).is_ok());
            scope.heap().release_external(1 << 20);
        })
        .unwrap();
}

#[test]
fn objects_kept_for_a_finalizer_make_room_once_it_has_run() {
    let runtime = runtime(HeapOptions { limit: Some(3 << 20), verify: true, ..HeapOptions::default() });
    let bytes = vector(&runtime, Type::UINT8);
    let visits = Arc::new(Mutex::new(0));
    runtime
        .enter(|scope| {
            for _ in 0..5 {
                scope.frame(|scope| {
                    let array = scope.array(&bytes, &[2 << 20]).expect("room for one array");
                    let visits = visits.clone();
                    let visit = Finalizer::visit(move |_, _| *visits.lock().unwrap() += 1);
                    scope.finalizer(array.get(scope), visit);
                });
            }
            // A finalizer that requests another visit each time does not prevent the request from ending.
            fn again<'f, 'h>(scope: &mut Scope<'f, 'h>, root: Root<'f, 'h>) {
                scope.finalizer(root.get(scope), Finalizer::visit(again));
            }
            scope.frame(|scope| {
                let array = scope.array(&bytes, &[2 << 20]).unwrap();
                scope.finalizer(array.get(scope), Finalizer::visit(again));
            });
            assert!(scope.array(&bytes, &[2 << 20]).is_err());
        })
        .unwrap();
    assert_eq!(*visits.lock().unwrap(), 5);
}

#[test]
fn large_objects_fill_the_heap_to_its_limit() {
    let limit = 4 << 20;
    let runtime = runtime(HeapOptions { limit: Some(limit), verify: true, ..HeapOptions::default() });
    let bytes = vector(&runtime, Type::UINT8);
    for size in [17_000, 20_000, 33_000, 50_000] {
        runtime
            .enter(|scope| {
                let mut count = 0;
                while scope.array(&bytes, &[size]).is_ok() {
                    count += 1;
                }
                assert!(count * size > limit / 100 * 85, "{count} of {size}");
            })
            .unwrap();
    }
}

#[test]
fn external_bytes_make_collections_happen() {
    let runtime = runtime(HeapOptions::default());
    let node = node(&runtime);
    runtime
        .enter(|scope| {
            for _ in 0..100 {
                scope.frame(|scope| {
                    scope.add_external(1 << 20).unwrap();
                    let owner = scope.object(&node).unwrap();
                    let again = runtime.clone();
                    let free = move || again.heap().release_external(1 << 20);
                    scope.finalizer(owner.get(scope), Finalizer::release(free));
                });
            }
            let stats = scope.heap().stats();
            assert!(stats.full_collections + stats.minor_collections >= 3, "{stats:?}");
            assert!(stats.external_bytes <= 50 << 20, "{stats:?}");
            scope.collect();
            assert_eq!(scope.heap().stats().external_bytes, 0);
        })
        .unwrap();
}

#[test]
fn finalizers_run_once_in_reverse_order_and_may_bring_the_object_back() {
    for options in modes() {
        let runtime = runtime(options);
        let node = node(&runtime);
        let order = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::new(Mutex::new(None));
        runtime
            .enter(|scope| {
                scope.frame(|scope| {
                    for id in 0..10i64 {
                        let object = scope.object(&node).unwrap();
                        let child = scope.object(&node).unwrap();
                        child.get(scope).set_bits(0, id).unwrap();
                        scope.set_field(object.get(scope), 1, Some(child.get(scope))).unwrap();
                        let (order, kept, node) = (order.clone(), kept.clone(), node.clone());
                        let visit = Finalizer::visit(move |scope, root| {
                            scope.object(&node).unwrap();
                            let child = root.get(scope).field(1).unwrap().unwrap();
                            order.lock().unwrap().push(child.bits::<i64>(0).unwrap());
                            if id == 3 {
                                *kept.lock().unwrap() = Some(scope.persistent(root.get(scope)));
                            }
                        });
                        scope.finalizer(object.get(scope), visit);
                    }
                });
                scope.collect();
                scope.collect();
                assert_eq!(*order.lock().unwrap(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
                assert_eq!(scope.heap().stats().live_objects, 2, "the one that was kept, and its child");
                let kept = kept.lock().unwrap().take().unwrap();
                let child = scope.get_persistent(&kept).unwrap().field(1).unwrap().unwrap();
                assert_eq!(child.bits::<i64>(0), Ok(3));
                drop(kept);
                scope.collect();
                assert_eq!(scope.heap().stats().live_objects, 0);
            })
            .unwrap();
    }
}

#[test]
fn a_finalizer_that_panics_stops_no_other() {
    let runtime = runtime(HeapOptions::default());
    let node = node(&runtime);
    let count = Arc::new(Mutex::new(0));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    runtime
        .enter(|scope| {
            scope.frame(|scope| {
                for id in 0..4 {
                    let object = scope.object(&node).unwrap();
                    let count = count.clone();
                    let finalizer = match id {
                        0 => Finalizer::release(|| panic!("a finalizer's own")),
                        1 => Finalizer::visit(|_, _| panic!("a finalizer's own")),
                        _ => Finalizer::release(move || {
                            *count.lock().unwrap() += 1;
                        }),
                    };
                    scope.finalizer(object.get(scope), finalizer);
                }
            });
            scope.collect();
            assert_eq!(scope.heap().stats().finalizers_failed, 2);
            assert_eq!(scope.heap().take_finalizer_failures(), ["a finalizer's own"; 2]);
        })
        .unwrap();
    std::panic::set_hook(quiet);
    assert_eq!(*count.lock().unwrap(), 2);
}

#[test]
fn exceptions_of_finalizers_are_counted_and_reported() {
    let runtime = runtime(HeapOptions::default());
    let node = node(&runtime);
    runtime
        .enter(|scope| {
            for round in 0..100 {
                scope.frame(|scope| {
                    let object = scope.object(&node).unwrap();
                    let visit = Finalizer::visit(move |scope, root| {
                        let _thrown = match round % 2 {
                            0 => scope.throw_error(&format!("round {round}")),
                            _ => scope.throw(root.get(scope)),
                        };
                    });
                    scope.finalizer(object.get(scope), visit);
                });
                scope.collect();
            }
            assert!(scope.current_exception().is_none(), "none of them is left to others");
            assert_eq!(scope.heap().stats().finalizers_failed, 100);
            let told = scope.heap().take_finalizer_failures();
            assert_eq!((told.len(), told[0].as_str(), told[62].as_str()), (64, "round 36", "round 98"));
            assert!(told[1].contains("Node"), "{}", told[1]);
            assert!(scope.heap().take_finalizer_failures().is_empty());
        })
        .unwrap();
}

#[test]
fn dropping_a_heap_releases_what_is_left() {
    let count = Arc::new(Mutex::new(0));
    for _ in 0..20 {
        let runtime = runtime(HeapOptions::default());
        let node = node(&runtime);
        runtime
            .enter(|scope| {
                for _ in 0..100 {
                    let object = scope.object(&node).unwrap();
                    let count = count.clone();
                    let release = move || {
                        *count.lock().unwrap() += 1;
                    };
                    scope.finalizer(object.get(scope), Finalizer::release(release));
                }
            })
            .unwrap();
    }
    assert_eq!(*count.lock().unwrap(), 2000);
}

#[test]
fn weak_references_are_cleared_before_finalizers_run() {
    for options in modes() {
        let runtime = runtime(options);
        let node = node(&runtime);
        let seen = Arc::new(Mutex::new(0));
        runtime
            .enter(|scope| {
                let kept = scope.object(&node).unwrap();
                let to_kept = scope.weak_ref(kept).unwrap();
                let to_dead = scope.frame(|scope| {
                    let dead = scope.object(&node).unwrap();
                    let weak = scope.weak_ref(dead).unwrap();
                    // Only the dead object refers to this reference; its finalizer must see it cleared.
                    scope.set_field(dead.get(scope), 1, Some(weak.get(scope))).unwrap();
                    let seen = seen.clone();
                    let visit = Finalizer::visit(move |scope, root| {
                        let weak = root.get(scope).field(1).unwrap().unwrap();
                        *seen.lock().unwrap() = 1 + usize::from(weak.referent().is_some());
                    });
                    scope.finalizer(dead.get(scope), visit);
                    scope.weak_handle(dead.get(scope))
                });
                let small = scope.int(5).unwrap();
                let to_small = scope.weak_ref(small).unwrap();
                scope.collect_kind(Collection::Minor);
                scope.collect();
                assert_eq!(*seen.lock().unwrap(), 1);
                assert!(scope.get_weak(&to_dead).is_none());
                assert_eq!(to_kept.get(scope).referent(), Some(kept.get(scope)));
                assert_eq!(to_small.get(scope).referent(), Some(small.get(scope)));
            })
            .unwrap();
    }
}

#[test]
fn boxes_strings_and_fields_hold_what_was_stored() {
    let runtime = runtime(HeapOptions { stress: Stress::EverySafepoint, ..HeapOptions::default() });
    let cx = Context::new();
    let wide = declare(&cx, "Wide", &[("x", Type::INT8), ("y", Type::INT128), ("z", Type::FLOAT32)]);
    let wide = runtime.heap().describe(&cx, wide).unwrap();
    let float = runtime.heap().describe(&cx, Type::FLOAT64).unwrap();
    runtime
        .enter(|scope| {
            let one = scope.int(1).unwrap();
            let again = scope.int(1).unwrap();
            assert_eq!(one.get(scope), again.get(scope));
            for value in [-513, -512, 511, 512, i64::MAX] {
                let boxed = scope.int(value).unwrap();
                assert_eq!(boxed.get(scope).unboxed::<i64>(), Ok(value));
                assert_eq!(boxed.get(scope).ty(), Some(Type::INT64));
            }
            let boxed = scope.boxed(&float, 0.5).unwrap();
            assert_eq!(boxed.get(scope).unboxed::<f64>(), Ok(0.5));
            assert!(boxed.get(scope).unboxed::<f32>().is_err());
            assert!(scope.boxed(&float, 0.5f32).is_err());

            for _ in 0..100 {
                let object = scope.object(&wide).unwrap();
                let object = object.get(scope);
                assert_eq!(object.address() % 16, 0);
                object.set_bits(1, i128::MIN + 5).unwrap();
                object.set_bits(0, -3i8).unwrap();
                object.set_bits(2, 1.5f32).unwrap();
                assert_eq!(object.bits::<i128>(1), Ok(i128::MIN + 5));
                assert_eq!((object.bits::<i8>(0), object.bits::<f32>(2)), (Ok(-3), Ok(1.5)));
                assert!(object.bits::<i64>(0).is_err());
                assert!(object.field(0).is_err());
                assert!(matches!(object.bits::<i8>(3), Err(ObjectError::Index { index: 3, length: 3 })));
            }
            let text = scope.string("θ\0x".as_bytes()).unwrap();
            assert_eq!(text.get(scope).text(), Some("θ\0x"));
            assert!(text.get(scope).length().is_err());
        })
        .unwrap();
}

#[test]
fn vectors_grow_and_shrink_at_both_ends() {
    for options in modes() {
        let runtime = runtime(options);
        let cx = Context::new();
        let ints = vector(&runtime, Type::INT64);
        let any = vector(&runtime, Type::ANY);
        let union = cx.types.union(&[Type::INT64, Type::NOTHING]).unwrap();
        let union = runtime.heap().describe(&cx, cx.types.vector(union).unwrap()).unwrap();
        let numbers = &mut Numbers(99);
        runtime
            .enter(|scope| {
                let (bits, refs) = (scope.array(&ints, &[0]).unwrap(), scope.array(&any, &[0]).unwrap());
                let unions = scope.array(&union, &[0]).unwrap();
                let mut model = std::collections::VecDeque::new();
                for step in 0..scaled(300, 60) as i64 {
                    let end = if numbers.below(2) == 0 { End::Front } else { End::Back };
                    if numbers.below(3) > 0 || model.is_empty() {
                        for array in [bits, refs, unions] {
                            scope.grow(array, end, 1).unwrap();
                        }
                        let at = if end == End::Front { 0 } else { model.len() };
                        let value = 1000 * step;
                        bits.get(scope).set_element_bits(at, value).unwrap();
                        unions.get(scope).set_union_element(at, (step % 2) as u8, value).unwrap();
                        scope.frame(|scope| {
                            let boxed = scope.int(value).unwrap();
                            scope.set_element(refs.get(scope), at, Some(boxed.get(scope))).unwrap();
                        });
                        if end == End::Front { model.push_front(value) } else { model.push_back(value) }
                    } else {
                        let count = 1 + numbers.below(model.len().min(3));
                        for array in [bits, refs, unions] {
                            scope.delete(array, end, count).unwrap();
                        }
                        for _ in 0..count {
                            if end == End::Front {
                                model.pop_front()
                            } else {
                                model.pop_back()
                            };
                        }
                    }
                    let (bits, refs, unions) = (bits.get(scope), refs.get(scope), unions.get(scope));
                    assert_eq!(bits.dims(), Ok(vec![model.len()]));
                    for (index, &value) in model.iter().enumerate() {
                        assert_eq!(bits.element_bits::<i64>(index), Ok(value));
                        let which = (value / 1000 % 2) as u8;
                        assert_eq!(unions.union_element::<i64>(index), Ok((which, value)));
                        let boxed = refs.element(index).unwrap().unwrap();
                        assert_eq!(boxed.unboxed::<i64>(), Ok(value));
                    }
                    assert!(bits.element_bits::<i64>(model.len()).is_err());
                }
                // A deleted field is undefined when it returns, and was not kept alive.
                let length = model.len();
                scope.delete(refs, End::Back, length).unwrap();
                scope.collect();
                scope.grow(refs, End::Back, 2).unwrap();
                assert_eq!(refs.get(scope).element(1), Ok(None));
                assert!(scope.delete(refs, End::Back, 3).is_err());
                assert!(scope.grow(refs, End::Back, usize::MAX).is_err());
            })
            .unwrap();
    }
}

#[test]
fn a_large_array_of_references_is_marked_in_slices() {
    const LENGTH: usize = scaled(100_000, 600);
    let runtime = runtime(HeapOptions { verify: true, ..HeapOptions::default() });
    let any = vector(&runtime, Type::ANY);
    runtime
        .enter(|scope| {
            let array = scope.array(&any, &[LENGTH]).unwrap();
            for index in 0..LENGTH {
                scope.frame(|scope| {
                    let boxed = scope.int(1_000_000 + index as i64).unwrap();
                    scope.set_element(array.get(scope), index, Some(boxed.get(scope))).unwrap();
                });
            }
            scope.collect();
            assert_eq!(scope.heap().stats().live_objects, LENGTH + 2);
            let last = array.get(scope).element(LENGTH - 1).unwrap().unwrap();
            assert_eq!(last.unboxed::<i64>(), Ok(999_999 + LENGTH as i64));
        })
        .unwrap();
}

#[test]
fn types_and_handles_of_another_heap_are_refused() {
    let (one, two) = (Runtime::new(RuntimeOptions::default()), Runtime::new(RuntimeOptions::default()));
    let (node, any) = (node(&one), vector(&one, Type::ANY));
    let handle = one
        .enter(|scope| {
            let object = scope.object(&node).unwrap();
            (scope.persistent(object.get(scope)), scope.weak_handle(object.get(scope)))
        })
        .unwrap();
    two.enter(|scope| {
        assert!(matches!(scope.object(&node), Err(ObjectError::OtherHeap { .. })));
        assert!(matches!(scope.array(&any, &[1]), Err(ObjectError::OtherHeap { .. })));
        assert!(scope.get_persistent(&handle.0).is_none());
        assert!(scope.get_weak(&handle.1).is_none());
        // Scopes of two heaps nest; two of one heap do not, unless the outer one is lent.
        assert!(one.enter(|_| ()).is_ok());
        assert_eq!(two.enter(|_| ()), Err(EnterError::InScope));
        assert_eq!(scope.call_out(|| two.enter(|scope| scope.collect())), Ok(()));
        assert_eq!(scope.blocking(|| two.enter(|scope| scope.collect())), Ok(()));
        assert_eq!(two.enter(|_| ()), Err(EnterError::InScope));
    })
    .unwrap();
}

#[test]
fn types_that_have_no_objects_are_refused_and_are_objects_themselves() {
    let runtime = runtime(HeapOptions::default());
    let cx = Context::new();
    for ty in [Type::I64, Type::TOKEN] {
        assert!(runtime.type_address(&cx, ty).is_err(), "{}", cx.types.display(ty));
    }
    for ty in [Type::ANY, Type::BOTTOM, cx.types.union(&[Type::ANY, Type::INT64]).unwrap()] {
        assert!(runtime.heap().describe(&cx, ty).is_err(), "{}", cx.types.display(ty));
        let address = runtime.type_address(&cx, ty).unwrap();
        assert_eq!(runtime.type_address(&Context::new(), ty), Ok(address));
    }
    for ty in [Type::NOTHING, Type::STRING, Type::BOX, Type::INT128] {
        let one = runtime.heap().describe(&cx, ty).unwrap();
        let two = runtime.heap().describe(&Context::new(), ty).unwrap();
        assert_eq!(one.tag(), two.tag(), "{}", one.name());
    }
}

#[test]
fn a_type_of_no_program_is_one_type_for_all_programs() {
    let runtime = runtime(HeapOptions::default());
    let (one, two) = (Context::new(), Context::new());
    // The ids of the two contexts differ.
    let own = [&one, &two].map(|cx| support::declare(cx, "Node", &[]));
    two.types.vector(Type::BOOL).unwrap();
    let exception = |cx: &Context| {
        let decl = cx.types.find_decl(cx.names.intern("KeyError")).unwrap();
        let error = cx.types.nominal(decl, &[]).unwrap();
        cx.types.tuple(&[error, cx.types.vector(Type::INT8).unwrap()]).unwrap()
    };
    let address = |cx, ty| runtime.type_address(cx, ty).unwrap();
    assert_eq!(address(&one, exception(&one)), address(&two, exception(&two)));
    assert_ne!(address(&one, own[0]), address(&two, own[1]));
    let vectors = [one.types.vector(own[0]).unwrap(), two.types.vector(own[1]).unwrap()];
    assert_ne!(address(&one, vectors[0]), address(&two, vectors[1]));
    // A function is identified by module and name, so dynamic calls find its methods in all programs.
    let functions = [&one, &two].map(|cx| (cx, cx.types.function(cx.names.intern("f"))));
    assert_eq!(address(functions[0].0, functions[0].1), address(functions[1].0, functions[1].1));
}

#[test]
fn constants_and_instances_have_one_address() {
    let runtime = runtime(HeapOptions::default());
    let cx = Context::new();
    let f = cx.types.function(cx.names.intern("f"));
    let nothing = runtime.instance_address(&cx, Type::NOTHING).unwrap();
    assert_eq!(runtime.instance_address(&Context::new(), Type::NOTHING), Ok(nothing));
    assert_ne!(runtime.instance_address(&cx, f).unwrap(), nothing);
    assert!(runtime.instance_address(&cx, Type::INT64).is_err());
    let of = cx.types.type_of(Type::INT64).unwrap();
    assert_eq!(runtime.instance_address(&cx, of), runtime.type_address(&cx, Type::INT64));
    let boxed = |ty, bits| runtime.boxed_address(&cx, ty, bits).unwrap();
    for (ty, bits) in [(Type::INT64, 5), (Type::INT64, 1 << 40), (Type::BOOL, 1), (Type::FLOAT64, 5)] {
        assert_eq!(boxed(ty, bits), boxed(ty, bits));
        assert_ne!(boxed(ty, bits), boxed(ty, bits ^ 1));
    }
    assert!(runtime.boxed_address(&cx, Type::STRING, 0).is_err());
}

#[test]
fn a_cell_keeps_what_was_stored_last() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let (first, second) = (runtime.heap().cell(), runtime.heap().cell());
    runtime
        .enter(|scope| {
            for text in [b"a", b"b"] {
                scope.frame(|scope| {
                    let string = scope.string(text).unwrap();
                    assert!(scope.set_cell(&first, Some(string.get(scope))));
                });
                scope.collect();
            }
            assert_eq!(scope.get_cell(&first).and_then(|object| object.text()), Some("b"));
            assert!(scope.get_cell(&second).is_none());
            assert_eq!(runtime.heap().stats().live_objects, 1);
            drop(first);
            scope.collect();
            assert_eq!(runtime.heap().stats().live_objects, 0);
        })
        .unwrap();
    let other = Runtime::new(RuntimeOptions::default());
    let refused = other.enter(|scope| (scope.set_cell(&second, None), scope.get_cell(&second).is_none()));
    assert_eq!(refused, Ok((false, true)));
}
