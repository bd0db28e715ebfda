//! Pauses and throughput in both modes of the heap, by how much is alive.
//!
//! `cargo bench -p brolga-runtime --bench pauses -- [megabytes …]`; without sizes 16, 64, 256 and 2048.
//!
//! | program | what is alive | what it does, until eight times as much has been allocated |
//! |---|---|---|
//! | trees | a complete tree of pairs | builds a small one, and puts it in the place of one of the subtrees, in turn |
//! | list | a queue of pairs | adds one at the tail, takes one off the head |
//! | table | an array of references to pairs | a random slot gets a new pair |
//! | sieve | an array of numbers | makes an array and sets every second number of it, drops it |
//!
//! The time is processor time of the thread for each allocation, of sieve for each kilobyte, with collections; making what is alive is included.
//! Pauses are wall-clock times in which the world was stopped, or was about to be: the quantiles, the longest, and the most in any 10 ms (the rest is the
//! minimum mutator utilisation). The modes take turns; times are the least of the rounds, pauses are of all rounds: the longest is the shortest longest.

#[allow(dead_code, reason = "each bench uses a part of it")]
mod compiled;

use std::time::Duration;

use brolga_runtime::heap::{HeapOptions, HeapStats};
use compiled::{Allocator, Compiled, Object, build, on_heap, processor_time};

const PAIR: usize = 24;
const BRANCH: u32 = 10;

/// A subtree that is `levels` below, by the bits of a number.
fn below(tree: Object, levels: u32, bits: usize) -> Object {
    // SAFETY: trees hold pairs, and this one is deeper.
    (0..levels).fold(tree, |at, level| unsafe { at.add(bits >> level & 1).read().cast() })
}

fn trees(a: &Compiled, live: usize) -> usize {
    let depth = (live / PAIR).ilog2() - 1;
    a.rooted::<1, _>(|long| {
        let tree = build(a, depth);
        // SAFETY: the slot is in the frame.
        unsafe { (&raw mut (*long)[0]).write(tree) };
        let (branches, each) = (8 << (depth - BRANCH), (2 << BRANCH) - 1);
        for turn in 0..branches {
            let new = build(a, BRANCH);
            // SAFETY: as above.
            let above = below(unsafe { (*long)[0] }, depth - BRANCH - 1, turn >> 1);
            a.store(above, turn & 1, new);
        }
        (2 << depth) + branches * each
    })
}

fn list(a: &Compiled, live: usize) -> usize {
    let (length, steps) = (live / PAIR, 8 * live / PAIR);
    a.rooted::<2, _>(|ends| {
        let end = |index: usize| ends.cast::<Object>().wrapping_add(index);
        // SAFETY: the slots are in the frame, and hold pairs.
        unsafe {
            let first = a.pair();
            end(0).write(first);
            end(1).write(first);
            for step in 0..steps {
                let new = a.pair();
                a.store(end(1).read(), 0, new);
                end(1).write(new);
                if step >= length {
                    end(0).write(end(0).read().read().cast());
                }
            }
        }
        steps
    })
}

fn table(a: &Compiled, live: usize) -> usize {
    let (slots, steps) = (live / (PAIR + 8), 8 * live / PAIR);
    a.rooted::<1, _>(|root| {
        let table = a.table(slots);
        // SAFETY: the slot is in the frame.
        unsafe { (&raw mut (*root)[0]).write(table) };
        let mut state = 1_u64;
        for step in 0..steps {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let slot = if step < slots { step } else { state as usize % slots };
            let new = a.pair();
            a.store_slot(table, Compiled::FIRST + slot, new);
        }
        steps
    })
}

fn sieve(a: &Compiled, live: usize) -> usize {
    let rounds = 8;
    for _ in 0..rounds {
        let numbers = a.bytes(live);
        // SAFETY: the array has `live` bytes, and there is no safepoint.
        unsafe {
            let first = numbers.cast::<u8>().add(8 * Compiled::FIRST);
            (0..live).step_by(2).for_each(|at| first.add(at).write(1));
        }
    }
    rounds * live / 1024
}

struct Sample {
    nanoseconds: f64,
    stats: HeapStats,
}

fn best(samples: &[Sample]) -> (f64, HeapStats) {
    let time = samples.iter().map(|sample| sample.nanoseconds).fold(f64::INFINITY, f64::min);
    let stats = samples.iter().map(|sample| sample.stats).min_by_key(|stats| stats.pause_max);
    (time, stats.unwrap_or_default())
}

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![16, 64, 256, 2048] } else { sizes };
    let modes = [None, Some(Duration::from_millis(1))];
    println!(
        "milliseconds of pauses, in {} modes; nanoseconds for each allocation, of sieve for each kilobyte\n",
        modes.len()
    );
    println!(
        "| program | MB | mode | ns | ratio | collections | slices | p50 | p99 | p99.9 | longest | in 10 ms | pauses in all | undivided |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    type Program = fn(&Compiled, usize) -> usize;
    let programs: [(&str, Program); 4] =
        [("trees", trees), ("list", list), ("table", table), ("sieve", sieve)];
    for megabytes in sizes {
        let rounds = if megabytes > 1000 { 2 } else { 4 };
        for (name, program) in programs {
            let mut samples: [Vec<Sample>; 2] = Default::default();
            for _ in 0..rounds {
                for (pause, samples) in modes.into_iter().zip(&mut samples) {
                    let options = HeapOptions { pause, ..HeapOptions::default() };
                    let (nanoseconds, stats) = on_heap(options, |compiled| {
                        let began = processor_time();
                        let count = program(compiled, megabytes << 20);
                        (processor_time() - began) / count as f64
                    });
                    samples.push(Sample { nanoseconds, stats });
                }
            }
            let first = best(&samples[0]).0;
            for (mode, samples) in ["throughput", "short"].into_iter().zip(&samples) {
                let (time, stats) = best(samples);
                let show = |pause: Duration| format!("{:.3}", pause.as_secs_f64() * 1e3);
                let quantile = |part| show(stats.pauses.quantile(part).min(stats.pause_max));
                println!(
                    "| {name} | {megabytes} | {mode} | {time:.2} | {:.2} | {} + {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    time / first,
                    stats.minor_collections,
                    stats.full_collections,
                    stats.slices,
                    quantile(0.5),
                    quantile(0.99),
                    quantile(0.999),
                    show(stats.pause_max),
                    show(stats.stopped_of_10ms),
                    show(stats.pause_total),
                    stats.undivided,
                );
            }
        }
    }
}
