//! See `brolga_fuzz::targets::sessions`.
#![no_main]
#![forbid(unsafe_code)]

use arbitrary::Arbitrary;

/// Steps of four bytes, so that the fuzzer moves and doubles whole steps.
#[derive(Arbitrary, Debug)]
struct Input {
    seed: u8,
    steps: Vec<[u8; 4]>,
}

libfuzzer_sys::fuzz_target!(|input: Input| {
    let mut bytes = vec![input.seed];
    bytes.extend(input.steps.iter().flatten());
    if let Err(fault) = brolga_fuzz::targets::sessions(&bytes) {
        panic!("{input:?}: {fault}");
    }
});
