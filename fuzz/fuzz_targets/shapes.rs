//! See `brolga_fuzz::targets::shapes`. Cost is the processor time of the thread, so other processes count for little.
#![no_main]
#![forbid(unsafe_code)]

use std::time::Instant;

/// Repetitions of the smaller program.
const SIZE: usize = 16;
/// Costs below this are noise, in nanoseconds.
const LEAST: u64 = 20_000_000;

/// The processor time of the running thread, where the system reports it; otherwise the time.
fn spent(begin: Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
    spent.unwrap_or_else(|| begin.elapsed().as_nanos() as u64)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let begin = Instant::now();
    if let Err(fault) = brolga_fuzz::targets::shapes(bytes, SIZE, LEAST, &|| spent(begin)) {
        panic!("{fault}");
    }
});
