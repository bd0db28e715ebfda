//! The heap with several threads: everything reachable stays, whichever thread runs the collections.

mod support;

use std::sync::Mutex;
use std::sync::mpsc::channel;

use brolga_ir::types::Type;
use brolga_runtime::heap::{Generations, HeapOptions, ObjectError, Root, Scope, Stress, TypeRef};
use support::{Numbers, node, runtime, vector};

const THREADS: u64 = 4;
/// Under Miri, which is some hundred times slower, the number of iterations is divided by this.
const PART: usize = if cfg!(miri) { 100 } else { 1 };

/// A binary tree with `depth` levels; every node below the top has the id 1.
fn tree<'f, 'h>(scope: &mut Scope<'f, 'h>, node: &TypeRef, depth: u32) -> Result<Root<'f, 'h>, ObjectError> {
    let top = scope.object(node)?;
    let mut level = vec![top];
    for _ in 1..depth {
        let mut next = Vec::new();
        for parent in level {
            for field in [1, 2] {
                let child = scope.object(node)?;
                child.get(scope).set_bits(0, 1i64)?;
                scope.set_field(parent.get(scope), field, Some(child.get(scope)))?;
                next.push(child);
            }
        }
        level = next;
    }
    Ok(top)
}

fn sum<'h>(scope: &Scope<'_, 'h>, top: Root<'_, 'h>) -> i64 {
    let mut work = vec![top.get(scope)];
    let mut sum = 0;
    while let Some(object) = work.pop() {
        sum += object.bits::<i64>(0).unwrap();
        work.extend([1, 2].into_iter().filter_map(|field| object.field(field).unwrap()));
    }
    sum
}

/// The work of one thread: its own trees, one of them kept for long.
fn work(runtime: &std::sync::Arc<brolga_runtime::Runtime>, node: &TypeRef, seed: u64, rounds: usize) {
    let numbers = &mut Numbers(seed);
    runtime
        .enter(|scope| {
            let kept = scope.frame(|scope| {
                let top = tree(scope, node, 8).unwrap();
                scope.persistent(top.get(scope))
            });
            for round in 0..rounds {
                scope.frame(|scope| {
                    let depth = 1 + numbers.below(8) as u32;
                    let top = tree(scope, node, depth).unwrap();
                    if round % 5 == 0 {
                        scope.blocking(std::thread::yield_now);
                    }
                    assert_eq!(sum(scope, top), (1 << depth) - 2);
                    let kept = scope.get_persistent(&kept).unwrap();
                    let kept = scope.root(kept);
                    assert_eq!(sum(scope, kept), 254);
                    if round % 50 == 0 {
                        scope.collect();
                    }
                });
            }
        })
        .unwrap();
}

#[test]
fn threads_allocate_and_collect_without_losing_anything() {
    let plain = HeapOptions { initial: 1 << 20, ..HeapOptions::default() };
    let checked = HeapOptions { poison: true, verify: true, ..plain.clone() };
    let modes = [
        (HeapOptions { generations: Generations::Off, ..plain.clone() }, 400),
        (HeapOptions { generations: Generations::On, ..plain.clone() }, 400),
        (HeapOptions { limit: Some(16 << 20), ..plain }, 400),
        (HeapOptions { stress: Stress::Every(100), ..checked }, 40),
    ];
    for (options, rounds) in modes {
        let runtime = runtime(options);
        let node = node(&runtime);
        std::thread::scope(|threads| {
            for seed in 1..=THREADS {
                let (runtime, node) = (&runtime, &node);
                threads.spawn(move || work(runtime, node, seed, rounds / PART));
            }
        });
        runtime.enter(|scope| scope.collect()).unwrap();
        assert_eq!(runtime.heap().stats().live_objects, 0);
    }
}

#[test]
fn references_pass_between_threads_through_a_shared_array() {
    let runtime = runtime(HeapOptions {
        initial: 1 << 20,
        generations: Generations::On,
        verify: true,
        ..HeapOptions::default()
    });
    let (node, any) = (node(&runtime), vector(&runtime, Type::ANY));
    const LENGTH: usize = 64;
    let shared = runtime
        .enter(|scope| {
            let array = scope.array(&any, &[LENGTH]).unwrap();
            scope.persistent(array.get(scope))
        })
        .unwrap();
    let exchange = |seed: u64| {
        let numbers = &mut Numbers(seed);
        runtime
            .enter(|scope| {
                for step in 0..20_000 / PART as i64 {
                    scope.frame(|scope| {
                        let new = scope.object(&node).unwrap();
                        new.get(scope).set_bits(0, step).unwrap();
                        let array = scope.get_persistent(&shared).unwrap();
                        // The new node refers to one made by some thread, and replaces another.
                        let other = array.element(numbers.below(LENGTH)).unwrap();
                        if let Some(other) = other {
                            assert!((0..20_000).contains(&other.bits::<i64>(0).unwrap()));
                            scope.set_field(other, 2, None).unwrap();
                        }
                        scope.set_field(new.get(scope), 1, other.filter(|_| step % 8 != 0)).unwrap();
                        scope.set_element(array, numbers.below(LENGTH), Some(new.get(scope))).unwrap();
                    });
                }
            })
            .unwrap();
    };
    std::thread::scope(|threads| {
        for seed in 1..=THREADS {
            threads.spawn(move || exchange(seed));
        }
    });
    let stats = runtime.heap().stats();
    assert!(cfg!(miri) || stats.minor_collections > 0, "{stats:?}");
}

#[test]
fn a_thread_in_a_blocking_call_does_not_hold_up_a_collection() {
    let runtime = runtime(HeapOptions::default());
    let node = node(&runtime);
    let (is_blocked, blocked) = channel::<()>();
    let (go_on, wait) = channel::<()>();
    std::thread::scope(|threads| {
        let (runtime, node) = (&runtime, &node);
        threads.spawn(move || {
            runtime
                .enter(|scope| {
                    let kept = scope.object(node).unwrap();
                    kept.get(scope).set_bits(0, 5i64).unwrap();
                    scope.blocking(|| {
                        is_blocked.send(()).unwrap();
                        wait.recv().unwrap();
                    });
                    assert_eq!(kept.get(scope).bits::<i64>(0), Ok(5));
                })
                .unwrap();
        });
        blocked.recv().unwrap();
        // The other thread is inside its call until this one has collected.
        runtime.enter(|scope| scope.collect()).unwrap();
        assert_eq!(runtime.heap().stats().live_objects, 1);
        go_on.send(()).unwrap();
    });
}

#[test]
fn threads_come_and_go_while_others_collect() {
    let runtime =
        runtime(HeapOptions { generations: Generations::On, verify: true, ..HeapOptions::default() });
    let node = node(&runtime);
    let done = Mutex::new(0);
    std::thread::scope(|threads| {
        for seed in 0..2u64 {
            let (runtime, node, done) = (&runtime, &node, &done);
            threads.spawn(move || {
                for round in 0..(100 / PART).max(3) as u64 {
                    std::thread::scope(|inner| {
                        inner.spawn(|| {
                            runtime
                                .enter(|scope| {
                                    let top = tree(scope, node, 5).unwrap();
                                    if (round + seed) % 3 == 0 {
                                        scope.collect();
                                    }
                                    assert_eq!(sum(scope, top), 30);
                                })
                                .unwrap();
                        });
                    });
                }
                *done.lock().unwrap() += 1;
            });
        }
        threads.spawn(|| {
            while *done.lock().unwrap() < 2 {
                runtime.enter(|scope| scope.collect()).unwrap();
            }
        });
    });
    runtime.enter(|scope| scope.collect()).unwrap();
    assert_eq!(runtime.heap().stats().live_objects, 0);
}
