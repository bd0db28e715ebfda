//! The cost of an allocation and of a collection, compared with C's `malloc` and `free` in the same run.
//!
//! The code allocates, links GC frames and stores as compiled code does: by the offsets of `HeapAbi` from the
//! thread, with `brolga_gc_alloc` as the slow path. Every program runs alternately with each heap and with C,
//! several times; the result is the median of the thread's processor time per allocation, collections
//! included. Pauses use wall-clock time, so they include the machine's other work.
//!
//! | program | what it does |
//! |---|---|
//! | trees | complete binary trees of growing depth, built and dropped, with one that stays |
//! | list | a queue of 100,000 cells: one is added at the tail, one removed from the head |
//! | table | 262,144 slots; a random slot receives a new object |
//!
//! For compiled programs compared with other languages see `benches/heap/` of the repository.
//!
//! `cargo bench -p brolga-runtime --bench heap -- [megabytes]`

#[allow(dead_code, reason = "each bench uses a part of it")]
mod compiled;

use std::ptr::null_mut;
use std::time::Duration;

use brolga_runtime::heap::{Generations, HeapOptions, HeapStats};
use compiled::{Allocator, Compiled, Object, build, processor_time};

const ROUNDS: usize = 5;
const DEPTH: u32 = 18;
const QUEUE: usize = 100_000;
const SLOTS: usize = 1 << 18;
const CHURN: usize = 20_000_000;

struct C;

impl Allocator for C {
    fn pair(&self) -> Object {
        // SAFETY: `malloc` returns 16 bytes; null is not expected on the machine that runs this.
        unsafe {
            let object: Object = libc::malloc(16).cast();
            object.write(null_mut());
            object.add(1).write(null_mut());
            object
        }
    }
    fn store(&self, object: Object, index: usize, value: Object) {
        // SAFETY: callers pass an object and an index inside.
        unsafe { object.add(index).write(value.cast()) }
    }
    fn rooted<const N: usize, R>(&self, body: impl FnOnce(*mut [Object; N]) -> R) -> R {
        body(&mut [null_mut(); N])
    }
    fn free(&self, object: Object) {
        // SAFETY: callers pass a result of `pair` or `table`, once.
        unsafe { libc::free(object.cast()) }
    }
    const FIRST: usize = 0;
    fn table(&self, length: usize) -> Object {
        // SAFETY: any size may be requested.
        unsafe { libc::calloc(length, 8).cast() }
    }
}

/// Counts the nodes and frees them on request.
#[inline(never)]
fn drop_tree<A: Allocator>(a: &A, tree: Object, free: bool) -> usize {
    // SAFETY: trees hold pairs.
    let (left, right) = unsafe { (tree.read(), tree.add(1).read()) };
    let below =
        if left.is_null() { 0 } else { drop_tree(a, left.cast(), free) + drop_tree(a, right.cast(), free) };
    if free {
        a.free(tree);
    }
    below + 1
}

fn trees<A: Allocator>(a: &A) -> usize {
    a.rooted::<1, _>(|long| {
        let tree = build(a, DEPTH);
        // SAFETY: the slot is in the frame.
        unsafe { (&raw mut (*long)[0]).write(tree) };
        let mut count = (2 << DEPTH) - 1;
        for depth in (4..=DEPTH).step_by(2) {
            for _ in 0..1 << (DEPTH - depth + 4) {
                let tree = build(a, depth);
                count += drop_tree(a, tree, true);
            }
        }
        // SAFETY: as above.
        assert_eq!(drop_tree(a, unsafe { (*long)[0] }, true), (2 << DEPTH) - 1);
        count
    })
}

fn list<A: Allocator>(a: &A) -> usize {
    a.rooted::<2, _>(|ends| {
        let end = |index: usize| ends.cast::<Object>().wrapping_add(index);
        // SAFETY: the slots are in the frame, and hold pairs.
        unsafe {
            let first = a.pair();
            end(0).write(first);
            end(1).write(first);
            for step in 0..CHURN {
                let new = a.pair();
                a.store(end(1).read(), 0, new);
                end(1).write(new);
                if step >= QUEUE {
                    let head = end(0).read();
                    end(0).write(head.read().cast());
                    a.free(head);
                }
            }
            let mut at = end(0).read();
            while !at.is_null() {
                let next = at.read().cast();
                a.free(at);
                at = next;
            }
        }
        CHURN + 1
    })
}

fn table<A: Allocator>(a: &A) -> usize {
    a.rooted::<1, _>(|root| {
        let table = a.table(SLOTS);
        // SAFETY: the slot is in the frame; the table has this many references from its first on.
        unsafe {
            (&raw mut (*root)[0]).write(table);
            let references = table.add(A::FIRST);
            let mut state = 1u64;
            for _ in 0..CHURN {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let slot = state as usize % SLOTS;
                let new = a.pair();
                a.free(references.add(slot).read().cast());
                a.store(table, A::FIRST + slot, new);
            }
            (0..SLOTS).for_each(|slot| a.free(references.add(slot).read().cast()));
        }
        a.free(table);
        CHURN
    })
}

/// Time and number of allocations of one run.
struct Sample {
    nanoseconds: f64,
    stats: HeapStats,
}

fn measure<A: Allocator>(a: &A, program: fn(&A) -> usize) -> f64 {
    let began = processor_time();
    let count = program(a);
    (processor_time() - began) / count as f64
}

fn on_heap(options: HeapOptions, program: fn(&Compiled) -> usize) -> Sample {
    let (nanoseconds, stats) = compiled::on_heap(options, |compiled| measure(compiled, program));
    Sample { nanoseconds, stats }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn row(name: &str, heap: &str, samples: &[Sample]) {
    let time = median(samples.iter().map(|s| s.nanoseconds).collect());
    let stats = samples[samples.len() - 1].stats;
    let count = stats.minor_collections + stats.full_collections;
    let mean = stats.pause_total.checked_div(u32::try_from(count).unwrap_or(0)).unwrap_or_default();
    let show = |pause: Duration| pause.as_secs_f64() * 1e3;
    println!(
        "{name:8} {heap:10} {time:8.2} {:6} {:6} {:10.1} {:10.3} {:10.3}",
        stats.minor_collections,
        stats.full_collections,
        show(stats.pause_total),
        show(mean),
        show(stats.pause_max)
    );
}

fn main() {
    let megabytes = std::env::args().find_map(|arg| arg.parse::<usize>().ok()).unwrap_or(64);
    println!("heap of {megabytes} MB; times of pauses in milliseconds");
    println!(
        "{:8} {:10} {:>8} {:>6} {:>6} {:>10} {:>10} {:>10}",
        "program", "memory", "ns/alloc", "minor", "full", "pauses", "mean", "longest"
    );
    let heaps = [Generations::Off, Generations::On, Generations::Adaptive];
    type Programs = (&'static str, fn(&C) -> usize, fn(&Compiled) -> usize);
    let programs: [Programs; 3] = [("trees", trees, trees), ("list", list, list), ("table", table, table)];
    for (name, in_c, compiled) in programs {
        let mut malloc = Vec::new();
        let mut samples: [Vec<Sample>; 3] = Default::default();
        for _ in 0..ROUNDS {
            malloc.push(Sample { nanoseconds: measure(&C, in_c), stats: HeapStats::default() });
            for (generations, samples) in heaps.into_iter().zip(&mut samples) {
                let bytes = megabytes << 20;
                let options =
                    HeapOptions { limit: Some(bytes), initial: bytes, generations, ..HeapOptions::default() };
                samples.push(on_heap(options, compiled));
            }
        }
        row(name, "malloc", &malloc);
        for (generations, samples) in heaps.into_iter().zip(&samples) {
            row(name, &format!("{generations:?}"), samples);
        }
    }
}
