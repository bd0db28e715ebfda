//! Collections in slices: what is reachable stays in every state of them, and nothing that a host does with them goes wrong.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brolga_ir::types::Type;
use brolga_runtime::Runtime;
use brolga_runtime::heap::{Collection, Finalizer, Generations, HeapOptions, HeapStats, Root, Scope, Stress};
use support::{Numbers, node, runtime, vector};

/// Less under Miri.
const fn scaled(full: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { full }
}

fn sliced() -> HeapOptions {
    HeapOptions {
        pause: Some(Duration::from_micros(40)),
        initial: 512 << 10,
        poison: true,
        verify: true,
        ..HeapOptions::default()
    }
}

/// A table of nodes with their numbers, some of which are replaced, and lists of them, for a number of steps; every step looks at one.
fn churn(runtime: &Arc<Runtime>, slots: usize, steps: usize, seed: u64) {
    let (node, table_ty) = (node(runtime), vector(runtime, Type::ANY));
    let numbers = &mut Numbers(seed);
    runtime
        .enter(|scope| {
            let table = scope.array(&table_ty, &[slots]).unwrap();
            let mut ids = vec![None; slots];
            for step in 0..steps {
                let (to, from) = (numbers.below(slots), numbers.below(slots));
                scope.frame(|scope| {
                    let new = scope.object(&node).unwrap();
                    new.get(scope).set_bits(0, step as i64).unwrap();
                    // The list of another slot follows the new node.
                    let moved = table.get(scope).element(from).unwrap();
                    scope.set_field(new.get(scope), 1, moved).unwrap();
                    scope.set_element(table.get(scope), from, None).unwrap();
                    let behind = ids[from].take();
                    scope.set_element(table.get(scope), to, Some(new.get(scope))).unwrap();
                    ids[to] = Some((step as i64, behind.map(|(id, _): (i64, Option<i64>)| id)));
                    // Short lists only.
                    if let Some(next) = new.get(scope).field(1).unwrap() {
                        scope.set_field(next, 1, None).unwrap();
                    }
                });
                let at = numbers.below(slots);
                let found = table.get(scope).element(at).unwrap();
                let seen = found.map(|found| {
                    let next = found.field(1).unwrap().map(|next| next.bits::<i64>(0).unwrap());
                    (found.bits::<i64>(0).unwrap(), next)
                });
                assert_eq!(seen, ids[at], "step {step}");
            }
            scope.collect();
            let objects =
                ids.iter().flatten().map(|(_, next)| 1 + usize::from(next.is_some())).sum::<usize>();
            assert_eq!(scope.heap().stats().live_objects, objects + 2, "and the vector with its `Memory`");
        })
        .unwrap();
}

fn assert_sliced(stats: &HeapStats) {
    let collections = stats.full_collections + stats.minor_collections;
    assert!(stats.slices > 2 * collections && collections > 1, "{stats:?}");
}

#[test]
fn tables_of_every_size_lose_nothing_between_slices() {
    // In a cell; in units, with bits; in a chunk of its own, with bits.
    for (slots, steps) in [(100, 60_000), (20_000, 120_000), (300_000, 200_000)] {
        let (slots, steps) = (scaled(slots, 60), scaled(steps, 300));
        for generations in [Generations::Off, Generations::On, Generations::Adaptive] {
            let runtime = runtime(HeapOptions { generations, ..sliced() });
            churn(&runtime, slots, steps, 7 + slots as u64);
            // A slice is enough for what a small table keeps.
            if slots > 1000 {
                assert_sliced(&runtime.heap().stats());
            }
        }
    }
}

#[test]
fn every_state_of_a_marking_is_met_under_stress() {
    for stress in [Stress::EverySafepoint, Stress::Every(3), Stress::Paced(16)] {
        for generations in [Generations::Off, Generations::On, Generations::Adaptive] {
            let runtime = runtime(HeapOptions { stress, generations, ..sliced() });
            churn(&runtime, scaled(3_000, 20), scaled(3_000, 60), 99);
            let stats = runtime.heap().stats();
            assert!(stats.slices > stats.full_collections + stats.minor_collections, "{stats:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a hundred megabytes")]
fn a_marking_of_many_objects_takes_many_short_pauses() {
    let options =
        HeapOptions { poison: false, verify: false, pause: Some(Duration::from_millis(1)), ..sliced() };
    let runtime = runtime(options);
    let node = node(&runtime);
    runtime
        .enter(|scope| {
            let list = scope.object(&node).unwrap();
            for _ in 0..2_000_000 {
                scope.frame(|scope| {
                    let new = scope.object(&node).unwrap();
                    scope.set_field(new.get(scope), 1, Some(list.get(scope))).unwrap();
                    scope.set_root(list, new.get(scope));
                });
            }
            let before = scope.heap().stats();
            assert_sliced(&before);
            assert_eq!(before.undivided, 0);
            scope.collect();
            let stats = scope.heap().stats();
            assert_eq!(stats.live_objects, 2_000_001);
            // The full collection at once takes longer than most slices: how long they take in wall-clock time depends on the machine.
            assert!(before.pauses.quantile(0.9) < stats.pause_last, "{before:?} {stats:?}");
        })
        .unwrap();
}

/// A list of `count` nodes in a root.
fn list<'f, 'h>(
    scope: &mut Scope<'f, 'h>,
    node: &brolga_runtime::heap::TypeRef,
    count: usize,
) -> Root<'f, 'h> {
    let list = scope.object(node).unwrap();
    for _ in 0..count {
        scope.frame(|scope| {
            let new = scope.object(node).unwrap();
            scope.set_field(new.get(scope), 1, Some(list.get(scope))).unwrap();
            scope.set_root(list, new.get(scope));
        });
    }
    list
}

#[test]
fn steps_finish_what_allocation_has_begun() {
    let runtime = runtime(HeapOptions { initial: 8 << 20, ..sliced() });
    let node = node(&runtime);
    let count = scaled(60_000, 0);
    runtime
        .enter(|scope| {
            assert!(!scope.step(Duration::MAX), "nothing was allocated");
            let list = list(scope, &node, count);
            let mut steps = 0;
            while scope.step(Duration::ZERO) {
                steps += 1;
            }
            let stats = scope.heap().stats();
            if count > 0 {
                assert!(steps > 10 && stats.full_collections == 1, "{steps} {stats:?}");
                assert_eq!(stats.live_objects, count + 1);
            }
            assert!(!scope.step(Duration::from_secs(1)), "nothing is left");
            let _ = list;
        })
        .unwrap();
}

#[test]
fn a_collection_at_once_takes_the_place_of_one_in_slices() {
    for kind in [Collection::Full, Collection::Minor] {
        let runtime = runtime(HeapOptions { initial: 4 << 20, ..sliced() });
        let node = node(&runtime);
        runtime
            .enter(|scope| {
                let kept = list(scope, &node, scaled(30_000, 10));
                for steps in 0..scaled(40, 4) {
                    for _ in 0..steps {
                        scope.step(Duration::ZERO);
                    }
                    scope.frame(|scope| _ = list(scope, &node, scaled(1_000, 3)));
                    scope.collect_kind(kind);
                }
                scope.collect();
                assert_eq!(scope.heap().stats().live_objects, scaled(30_000, 10) + 1);
                let _ = kept;
            })
            .unwrap();
    }
}

#[test]
fn weak_references_and_finalizers_see_the_end_of_a_collection_in_slices() {
    let runtime = runtime(HeapOptions { initial: 2 << 20, ..sliced() });
    let node = node(&runtime);
    let (visited, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    runtime
        .enter(|scope| {
            let kept = list(scope, &node, 10);
            let weak_kept = scope.weak_handle(kept.get(scope));
            let count = scaled(2_000, 5);
            let mut weak = Vec::new();
            for _ in 0..count {
                scope.frame(|scope| {
                    let dying = list(scope, &node, 3);
                    weak.push(scope.weak_handle(dying.get(scope)));
                    let (visited, released) = (visited.clone(), released.clone());
                    let visit = Finalizer::visit(move |scope, root| {
                        // It and what it refers to is whole.
                        let mut at = root.get(scope);
                        while let Some(next) = at.field(1).unwrap() {
                            at = next;
                        }
                        // A step in a finalizer is a safepoint like others.
                        scope.step(Duration::ZERO);
                        visited.fetch_add(1, Ordering::Relaxed);
                    });
                    scope.finalizer(dying.get(scope), visit);
                    let release = move || _ = released.fetch_add(1, Ordering::Relaxed);
                    scope.finalizer(dying.get(scope), Finalizer::release(release));
                });
            }
            while visited.load(Ordering::Relaxed) < count {
                scope.frame(|scope| _ = list(scope, &node, scaled(2_000, 20)));
                if cfg!(miri) {
                    scope.collect();
                }
                scope.step(Duration::from_millis(1));
            }
            assert_eq!(released.load(Ordering::Relaxed), count);
            assert!(weak.iter().all(|weak| scope.get_weak(weak).is_none()));
            assert_eq!(scope.get_weak(&weak_kept), Some(kept.get(scope)));
            assert_eq!(scope.heap().stats().finalizers_failed, 0);
        })
        .unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "fills megabytes")]
fn a_full_heap_is_an_error_and_stays_usable() {
    let options = HeapOptions { limit: Some(6 << 20), initial: 16 << 20, ..sliced() };
    let runtime = runtime(options);
    let node = node(&runtime);
    for _ in 0..3 {
        runtime
            .enter(|scope| {
                let list = scope.object(&node).unwrap();
                let count = (0..).take_while(|_| {
                    scope.frame(|scope| {
                        let Ok(new) = scope.object(&node) else { return false };
                        scope.set_field(new.get(scope), 1, Some(list.get(scope))).unwrap();
                        scope.set_root(list, new.get(scope));
                        true
                    })
                });
                let count = count.count();
                assert!(count > 100_000, "{count} nodes of 40 bytes");
            })
            .unwrap();
    }
}

#[test]
fn without_the_option_a_step_does_nothing() {
    let runtime = runtime(HeapOptions { initial: 0, ..HeapOptions::default() });
    let node = node(&runtime);
    runtime
        .enter(|scope| {
            let _list = list(scope, &node, scaled(10_000, 10));
            let before = scope.heap().stats().full_collections;
            assert!(!scope.step(Duration::MAX));
            assert_eq!((scope.heap().stats().full_collections, scope.heap().stats().slices), (before, 0));
        })
        .unwrap();
}

/// Threads that allocate, one that does steps of every length, one that collects at once, and checks of every collection.
#[expect(
    clippy::disallowed_methods,
    reason = "the load of two threads is spread over time; nothing waits for it"
)]
fn together(time: Duration) -> HeapStats {
    let runtime =
        runtime(HeapOptions { pause: Some(Duration::from_micros(200)), limit: Some(256 << 20), ..sliced() });
    let end = Instant::now() + time;
    std::thread::scope(|threads| {
        for seed in 1..5_u64 {
            let runtime = &runtime;
            threads.spawn(move || {
                let (node, table_ty) = (node(runtime), vector(runtime, Type::ANY));
                let numbers = &mut Numbers(seed);
                while Instant::now() < end {
                    let slots = [50, 4_000, 150_000][numbers.below(3)];
                    runtime
                        .enter(|scope| {
                            let table = scope.array(&table_ty, &[slots]).unwrap();
                            let mut ids = vec![None; slots];
                            for step in 0..20_000 {
                                let (to, from) = (numbers.below(slots), numbers.below(slots));
                                scope.frame(|scope| {
                                    let new = scope.object(&node).unwrap();
                                    new.get(scope).set_bits(0, step).unwrap();
                                    let old = table.get(scope).element(from).unwrap();
                                    scope.set_field(new.get(scope), 2, old).unwrap();
                                    if let Some(old) = old {
                                        scope.set_field(old, 2, None).unwrap();
                                    }
                                    scope.set_element(table.get(scope), to, Some(new.get(scope))).unwrap();
                                });
                                ids[to] = Some(step);
                                let found = table.get(scope).element(from).unwrap();
                                assert_eq!(found.map(|found| found.bits::<i64>(0).unwrap()), ids[from]);
                            }
                        })
                        .unwrap();
                }
            });
        }
        threads.spawn(|| {
            let numbers = &mut Numbers(77);
            while Instant::now() < end {
                let length = Duration::from_nanos(1 << numbers.below(21));
                runtime.enter(|scope| scope.step(length)).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        threads.spawn(|| {
            while Instant::now() < end {
                std::thread::sleep(Duration::from_millis(100));
                runtime.enter(|scope| scope.collect()).unwrap();
            }
        });
    });
    runtime.enter(|scope| scope.collect()).unwrap();
    assert_eq!(runtime.heap().stats().live_objects, 0);
    runtime.heap().stats()
}

#[test]
#[cfg_attr(miri, ignore = "threads for a second")]
fn threads_allocate_step_and_collect_together() {
    let stats = together(Duration::from_secs(2));
    assert!(stats.slices > 10, "{stats:?}");
}

/// `cargo test --release -p brolga-runtime --test pauses -- --ignored --nocapture`
#[test]
#[ignore = "takes a minute"]
fn a_minute_of_threads() {
    let stats = together(Duration::from_secs(60));
    println!("{stats:#?}");
}
