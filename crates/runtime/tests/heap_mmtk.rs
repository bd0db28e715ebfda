//! The mmtk heap: every plan keeps the guarantees of the default heap, and moving loses nothing.
//!
//! mmtk allows one heap per process, so this program runs itself once for each plan.

mod support;

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga_ir::Context;
use brolga_ir::types::{Type, decl};
use brolga_runtime::heap::{
    End, Finalizer, HeapOptions, MmtkError, MmtkOptions, MmtkPlan, ObjectError, Root, Scope, Stress, TypeRef,
};
use brolga_runtime::{Runtime, RuntimeOptions};
use support::{Numbers, node, vector};

const PLANS: [(&str, MmtkPlan); 4] = [
    ("NoGC", MmtkPlan::NoGc),
    ("MarkSweep", MmtkPlan::MarkSweep),
    ("Immix", MmtkPlan::Immix),
    ("SemiSpace", MmtkPlan::SemiSpace),
];

fn main() -> ExitCode {
    let named = std::env::args().find_map(|arg| Some(arg.strip_prefix("--plan=")?.to_owned()));
    if let Some(name) = named {
        let (_, plan) = PLANS.into_iter().find(|(known, _)| name == *known).expect("a plan");
        run(plan);
        return ExitCode::SUCCESS;
    }
    let own = std::env::current_exe().expect("this program");
    let mut failed = false;
    for (name, _) in PLANS {
        let status = Command::new(&own).arg(format!("--plan={name}")).status().expect("this program again");
        println!("heap_mmtk, {name}: {status}");
        failed |= !status.success();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(plan: MmtkPlan) {
    let options = MmtkOptions { plan, bytes: 64 << 20, threads: 2, move_all: true };
    let start = || Runtime::with_mmtk(RuntimeOptions::default(), &options);
    for (wrong, what) in [(0, "nothing"), (1, "a byte")] {
        let options = MmtkOptions { bytes: wrong, ..options.clone() };
        let refused = Runtime::with_mmtk(RuntimeOptions::default(), &options).err();
        assert!(matches!(refused, Some(MmtkError::Option(_))), "{what}: {refused:?}");
    }
    let runtime = start().expect("the first heap of the process");
    assert_eq!(start().err(), Some(MmtkError::Taken));
    // Heaps of the default kind live next to it.
    lists(&support::runtime(HeapOptions::default()), 1_000);
    let moves = matches!(plan, MmtkPlan::Immix | MmtkPlan::SemiSpace);
    assert_eq!(runtime.heap().abi().moving, moves);
    if plan == MmtkPlan::NoGc {
        lists(&runtime, 1_000);
        return;
    }
    lists(&runtime, 200_000);
    handles(&runtime);
    if moves {
        references_follow(&runtime);
    }
    arrays(&runtime);
    finalizers(&runtime);
    large_objects_and_the_limit(&runtime);
    threads(&runtime);
    runtime.heap().set_stress(Stress::EverySafepoint);
    for seed in 1..4 {
        random_graph(&runtime, seed, 600);
    }
    arrays(&runtime);
    finalizers(&runtime);
    runtime.heap().set_stress(Stress::Off);
    let stats = runtime.heap().stats();
    assert!(stats.full_collections > 600 && stats.pause_max <= stats.pause_total, "{stats:?}");
    drop(runtime);
    assert_eq!(start().err(), Some(MmtkError::Taken), "also when the first is gone");
}

/// Lists most of which die.
fn lists(runtime: &Arc<Runtime>, length: i64) {
    let node = node(runtime);
    runtime
        .enter(|scope| {
            let list = scope.object(&node).unwrap();
            for id in 1..=length {
                scope.frame(|scope| {
                    let new = scope.object(&node).unwrap();
                    new.get(scope).set_bits(0, id).unwrap();
                    let keep = id % 10 == 0;
                    if keep {
                        scope.set_field(new.get(scope), 1, Some(list.get(scope))).unwrap();
                        scope.set_root(list, new.get(scope));
                    }
                });
            }
            scope.collect();
            let mut at = list.get(scope);
            for id in (1..=length).rev().filter(|id| id % 10 == 0) {
                assert_eq!(at.bits::<i64>(0), Ok(id));
                at = at.field(1).unwrap().expect("the next");
            }
        })
        .unwrap();
}

fn handles(runtime: &Arc<Runtime>) {
    let cell = runtime.heap().cell();
    let kept = runtime
        .enter(|scope| {
            let texts: Vec<_> = ["kept", "cell", "weak", "dead"]
                .map(|text| scope.string(text.as_bytes()).unwrap())
                .into_iter()
                .collect();
            let kept = scope.persistent(texts[0].get(scope));
            assert!(scope.set_cell(&cell, Some(texts[1].get(scope))));
            let alive = scope.weak_handle(texts[2].get(scope));
            let reference = scope.weak_ref(texts[2]).unwrap();
            let (dead, gone) = scope.frame(|scope| {
                let text = scope.string(b"dead").unwrap();
                let gone = scope.weak_ref(text).unwrap();
                let gone = scope.persistent(gone.get(scope));
                (scope.weak_handle(text.get(scope)), gone)
            });
            for _ in 0..3 {
                scope.collect();
                assert_eq!(scope.get_weak(&alive).and_then(|o| o.text()), Some("weak"));
                assert_eq!(reference.get(scope).referent().and_then(|o| o.text()), Some("weak"));
                assert!(scope.get_weak(&dead).is_none());
                assert!(scope.get_persistent(&gone).unwrap().referent().is_none());
            }
            kept
        })
        .unwrap();
    runtime
        .enter(|scope| {
            scope.collect();
            assert_eq!(scope.get_persistent(&kept).and_then(|o| o.text()), Some("kept"));
            assert_eq!(scope.get_cell(&cell).and_then(|o| o.text()), Some("cell"));
        })
        .unwrap();
}

/// An object referred to twice is still one object.
fn references_follow(runtime: &Arc<Runtime>) {
    let node = node(runtime);
    runtime
        .enter(|scope| {
            let (one, two) = (scope.object(&node).unwrap(), scope.object(&node).unwrap());
            scope.set_field(one.get(scope), 1, Some(two.get(scope))).unwrap();
            scope.set_field(two.get(scope), 2, Some(one.get(scope))).unwrap();
            for _ in 0..3 {
                let before = format!("{:?}", one.get(scope));
                scope.collect();
                assert_ne!(before, format!("{:?}", one.get(scope)), "it has moved");
                assert_eq!(one.get(scope).field(1).unwrap(), Some(two.get(scope)));
                assert_eq!(two.get(scope).field(2).unwrap(), Some(one.get(scope)));
            }
        })
        .unwrap();
}

/// Arrays refer to their elements, and elements are intact.
fn arrays(runtime: &Arc<Runtime>) {
    let (strings, bytes) = (vector(runtime, Type::ANY), vector(runtime, Type::UINT8));
    runtime
        .enter(|scope| {
            let texts = scope.array(&strings, &[0]).unwrap();
            let numbers = scope.array(&bytes, &[0]).unwrap();
            for step in 0..60usize {
                let end = if step % 3 == 0 { End::Front } else { End::Back };
                let index = if end == End::Front { 0 } else { step };
                scope.grow(texts, end, 1).unwrap();
                scope.grow(numbers, end, 1).unwrap();
                scope.frame(|scope| {
                    let text = scope.string(step.to_string().as_bytes()).unwrap();
                    scope.set_element(texts.get(scope), index, Some(text.get(scope))).unwrap();
                });
                numbers.get(scope).set_element_bits(index, step as u8).unwrap();
                if step % 20 == 0 {
                    scope.collect();
                }
                let length = texts.get(scope).length().unwrap();
                for at in 0..length {
                    let number: u8 = numbers.get(scope).element_bits(at).unwrap();
                    let text = texts.get(scope).element(at).unwrap().and_then(|o| o.text());
                    assert_eq!(text, Some(number.to_string().as_str()), "{at} of {length}");
                }
            }
        })
        .unwrap();
}

fn finalizers(runtime: &Arc<Runtime>) {
    let (visited, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let node = node(runtime);
    runtime
        .enter(|scope| {
            scope.frame(|scope| {
                for id in 0..20i64 {
                    let object = scope.object(&node).unwrap();
                    object.get(scope).set_bits(0, id).unwrap();
                    let below = scope.string(b"below").unwrap();
                    scope.set_field(object.get(scope), 1, Some(below.get(scope))).unwrap();
                    let (visited, released) = (visited.clone(), released.clone());
                    let visit = Finalizer::visit(move |scope, object| {
                        let below = object.get(scope).field(1).unwrap();
                        assert_eq!(below.and_then(|o| o.text()), Some("below"));
                        visited
                            .fetch_add(object.get(scope).bits::<i64>(0).unwrap() as usize, Ordering::Relaxed);
                    });
                    scope.finalizer(object.get(scope), visit);
                    let release = move || {
                        released.fetch_add(1, Ordering::Relaxed);
                    };
                    scope.finalizer(below.get(scope), Finalizer::release(release));
                }
            });
            (0..3).for_each(|_| scope.collect());
        })
        .unwrap();
    assert_eq!((visited.load(Ordering::Relaxed), released.load(Ordering::Relaxed)), (190, 20));
    assert_eq!(runtime.heap().stats().finalizers_failed, 0);
}

fn large_objects_and_the_limit(runtime: &Arc<Runtime>) {
    let strings = vector(runtime, Type::ANY);
    let cx = Context::new();
    let wide = cx.types.nominal(decl::MEMORY, &[Type::INT128]).unwrap();
    let wide = runtime.heap().describe(&cx, wide).unwrap();
    runtime
        .enter(|scope| {
            let kept = scope.array(&strings, &[50_000]).unwrap();
            let text = scope.string(b"element").unwrap();
            scope.set_element(kept.get(scope), 49_999, Some(text.get(scope))).unwrap();
            let refused = scope.frame(|scope| {
                let mut all = Vec::new();
                loop {
                    match scope.memory(&wide, 100_000) {
                        Ok(memory) => all.push(memory),
                        Err(error) => break error,
                    }
                }
            });
            assert!(matches!(refused, ObjectError::OutOfMemory(_)), "{refused}");
            assert!(scope.add_external(1 << 30).is_err());
            scope.add_external(1 << 20).unwrap();
            scope.heap().release_external(1 << 20);
            // There is room again.
            scope.memory(&wide, 100_000).unwrap();
            let element = kept.get(scope).element(49_999).unwrap();
            assert_eq!(element.and_then(|o| o.text()), Some("element"));
        })
        .unwrap();
}

fn tree<'f, 'h>(scope: &mut Scope<'f, 'h>, node: &TypeRef, depth: u32) -> Root<'f, 'h> {
    let top = scope.object(node).unwrap();
    top.get(scope).set_bits(0, 1i64).unwrap();
    if depth > 0 {
        for field in [1, 2] {
            scope.frame(|scope| {
                let child = tree(scope, node, depth - 1);
                scope.set_field(top.get(scope), field, Some(child.get(scope))).unwrap();
            });
        }
    }
    top
}

/// Threads that allocate while others collect, and one that repeatedly attaches and ends.
fn threads(runtime: &Arc<Runtime>) {
    let node = node(runtime);
    std::thread::scope(|threads| {
        for worker in 0..3 {
            let (runtime, node) = (runtime, &node);
            threads.spawn(move || {
                for round in 0..20 {
                    runtime
                        .enter(|scope| {
                            let top = tree(scope, node, 9);
                            if (round + worker) % 7 == 0 {
                                scope.collect();
                            }
                            let mut work = vec![top.get(scope)];
                            let mut sum = 0;
                            while let Some(object) = work.pop() {
                                sum += object.bits::<i64>(0).unwrap();
                                work.extend(
                                    [1, 2].into_iter().filter_map(|field| object.field(field).unwrap()),
                                );
                            }
                            assert_eq!(sum, 1023);
                        })
                        .unwrap();
                }
            });
        }
        threads.spawn(|| {
            for _ in 0..50 {
                std::thread::scope(|inner| {
                    inner.spawn(|| runtime.enter(|scope| scope.string(b"short").map(drop)).unwrap().unwrap());
                });
            }
        });
    });
}

/// Random stores and loads among a few objects, compared with a model.
fn random_graph(runtime: &Arc<Runtime>, seed: u64, steps: usize) {
    let numbers = &mut Numbers(seed);
    let node = node(runtime);
    runtime
        .enter(|scope| {
            let mut held = vec![0usize; 6];
            let mut fields: Vec<[Option<usize>; 3]> = vec![[None; 3]];
            let first = scope.object(&node).unwrap();
            let roots: Vec<_> = held.iter().map(|_| scope.root(first.get(scope))).collect();
            for _ in 0..steps {
                let (to, from, field) = (numbers.below(6), numbers.below(6), numbers.below(3));
                match numbers.below(10) {
                    0..5 => scope.frame(|scope| {
                        let new = scope.object(&node).unwrap();
                        new.get(scope).set_bits(0, fields.len() as i64).unwrap();
                        scope.set_root(roots[to], new.get(scope));
                        held[to] = fields.len();
                        fields.push([None; 3]);
                    }),
                    5..8 => {
                        let value = roots[from].get(scope);
                        scope.set_field(roots[to].get(scope), 1 + field, Some(value)).unwrap();
                        fields[held[to]][field] = Some(held[from]);
                    }
                    _ => {
                        if let Some(next) = roots[to].get(scope).field(1 + field).unwrap() {
                            held[to] = fields[held[to]][field].unwrap();
                            scope.set_root(roots[to], next);
                        }
                    }
                }
                for (root, id) in roots.iter().zip(&held) {
                    assert_eq!(root.get(scope).bits::<i64>(0), Ok(*id as i64), "seed {seed}");
                }
            }
            let mut seen = vec![false; fields.len()];
            let mut work: Vec<_> = roots.iter().map(|root| root.get(scope)).zip(held).collect();
            while let Some((object, id)) = work.pop() {
                assert_eq!(object.bits::<i64>(0), Ok(id as i64));
                if !std::mem::replace(&mut seen[id], true) {
                    for (index, target) in fields[id].iter().enumerate() {
                        let field = object.field(1 + index).unwrap();
                        assert_eq!(field.is_some(), target.is_some());
                        work.extend(field.zip(*target));
                    }
                }
            }
        })
        .unwrap();
}
