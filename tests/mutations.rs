//! Damaged inputs end in errors with places: no panic, no hang, nothing that runs.
//!
//! The originals are the repository's examples and printed generated modules; `brolga::fuzz::mutate` damages them. A
//! failure shows its seed and the input.

use std::fs;
use std::path::Path;

use brolga::fuzz::check::check_text;
use brolga::fuzz::mutate;
use brolga::fuzz::rng::Rng;

/// How many damaged inputs of each kind.
const COUNT: u64 = 10_000;

/// The texts that are damaged, in the order of their paths.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = fs::read_dir(root.join("examples"))
        .expect("the examples")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jlir"))
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("a readable example")).collect()
}

#[test]
fn damaged_texts_are_read_or_refused() {
    let texts = texts();
    let mut read = 0;
    for seed in 0..COUNT {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&texts).expect("there are examples").clone();
        let damaged = mutate::text(&mut rng, &original);
        match check_text(seed, damaged.as_bytes()) {
            Ok(is_right) => read += u64::from(is_right),
            Err(failure) => panic!("{failure}"),
        }
    }
    // Damage that is never noticed, or always, would mean that the mutators miss the point.
    assert!((COUNT / 100..COUNT * 3 / 4).contains(&read), "{read} of {COUNT} were read");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let texts = texts();
    for seed in 0..COUNT / 10 {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&texts).expect("there are examples").clone();
        let damaged = mutate::bytes(&mut rng, original.as_bytes());
        if let Err(failure) = check_text(seed, &damaged) {
            panic!("{failure}");
        }
    }
}
