//! A minute of everything at once: four threads allocate, dispatch, throw and catch in one heap and collect under each other, while
//! other threads come, attach, call and go. Every value is right, nothing stays alive, and the run time goes when the engine does.
//!
//! `cargo test --release --test minute -- --ignored --nocapture`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use brolga::heap::HeapOptions;
use brolga::{Engine, Options, Program};

/// A program of `examples`, small and large arguments of its `run`.
type Example = (&'static str, [(i64, i64); 2]);

const EXAMPLES: [Example; 4] = [
    ("binary_trees.jlir", [(4, 0), (10, 0)]),
    ("shapes.jlir", [(16, 2), (256, 8)]),
    ("exceptions.jlir", [(100, 1), (3_000, 1)]),
    ("sort_cmp.jlir", [(10, 2), (200, 8)]),
];

fn run(duration: Duration) {
    let heap = HeapOptions { initial: 1 << 20, limit: Some(256 << 20), ..HeapOptions::default() };
    let engine = Engine::new(crate::doors::open(Options::new()).heap(heap)).expect("an engine");
    let examples: Vec<_> = EXAMPLES
        .into_iter()
        .map(|(name, args)| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
            let bytes = std::fs::read(path).expect("an example");
            let program = Program::read(name, &bytes).expect("a program without faults");
            let unit = engine.compile(&program).expect("a unit");
            let run = unit.func::<(i64, i64), f64>("run").expect("a function");
            args.map(|args| (run.clone(), args, run.call(args).expect("a value")))
        })
        .collect();
    let (calls, visits) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let (_sender, receiver) = channel::<()>();
    thread::scope(|scope| {
        for first in 0..4 {
            let (engine, examples, calls, over) = (&engine, &examples, &calls, &over);
            scope.spawn(move || {
                for (turn, [_, (run, args, wanted)]) in examples.iter().cycle().skip(first).enumerate() {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    assert_eq!(run.call(*args).as_ref(), Ok(wanted));
                    calls.fetch_add(1, Ordering::Relaxed);
                    if turn % 16 == first {
                        engine.runtime().enter(|scope| scope.collect()).expect("a scope");
                    }
                }
            });
        }
        scope.spawn(|| {
            for [(run, args, wanted), _] in examples.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let text = thread::scope(|inner| {
                    let visitor = inner.spawn(|| {
                        assert_eq!(run.call(*args).as_ref(), Ok(wanted));
                        let made = engine.runtime().enter(|scope| {
                            let text = scope.string(b"a guest").expect("memory");
                            scope.safepoint();
                            text.get(scope).text().map(str::to_owned)
                        });
                        made.expect("a scope")
                    });
                    visitor.join().expect("a guest that comes back")
                });
                assert_eq!(text.as_deref(), Some("a guest"));
                visits.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Nothing is sent.
        let _ = receiver.recv_timeout(duration);
        over.store(true, Ordering::Relaxed);
    });
    engine.runtime().enter(|scope| scope.collect()).expect("a scope");
    let stats = engine.runtime().heap().stats();
    println!(
        "{:.0} s: {calls:?} calls, {visits:?} guests, {} minor and {} full collections, longest pause {:?}, {} bytes mapped",
        began.elapsed().as_secs_f64(),
        stats.minor_collections,
        stats.full_collections,
        stats.pause_max,
        stats.mapped_bytes
    );
    assert_eq!((stats.live_objects, stats.live_bytes), (0, 0), "nothing is reachable any more");
    // With a collection at every safepoint a call of an example takes its time.
    let enough = if cfg!(feature = "gc-stress") { 0 } else { 10 };
    assert!(stats.full_collections > 10 && visits.load(Ordering::Relaxed) > enough, "{stats:?}");
    let runtime = Arc::downgrade(engine.runtime());
    drop((examples, engine));
    assert_eq!(runtime.strong_count(), 0, "the run time is freed with the engine");
}

#[test]
#[ignore = "takes a minute"]
fn a_minute_of_threads_that_share_a_heap() {
    run(Duration::from_secs(60));
}

#[test]
fn threads_come_and_go_while_others_collect() {
    run(Duration::from_secs(2));
}

#[path = "support/doors.rs"]
mod doors;
