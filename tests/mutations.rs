//! Damaged inputs end in errors with places: no panic, no hang, nothing that runs.
//!
//! The originals are the repository's examples and generated modules; `brolga_fuzz::mutate` damages them. A module that is still
//! valid goes through verifier, printer, interpreter and compiler. A failure shows its seed and the input.

use std::fs;
use std::path::Path;

use brolga_fuzz::check::{Reading, check_binary, check_text};
use brolga_fuzz::generate::{Features, Options, generate};
use brolga_fuzz::mutate;
use brolga_fuzz::rng::Rng;
use brolga_ir::binary;
use brolga_ir::text::show_module;
use brolga_jit::{Jit, JitOptions};
use brolga_runtime::{Runtime, RuntimeOptions};

/// How many damaged inputs of each kind.
const COUNT: u64 = 10_000;
/// How many generated modules are among the originals.
const GENERATED: u64 = 40;

fn jit() -> Jit {
    Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default()).expect("a JIT for this machine")
}

fn modules() -> impl Iterator<Item = brolga_ir::Module> {
    let options = Options { functions: 2, size: 40, features: Features::ALL, ..Options::default() };
    (0..GENERATED).map(move |seed| generate(seed, &options))
}

/// The texts that are damaged: the examples in the order of their paths, then generated modules.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = fs::read_dir(root.join("examples"))
        .expect("the examples")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jlir"))
        .collect();
    paths.sort();
    let examples = paths.iter().map(|path| fs::read_to_string(path).expect("a readable example"));
    examples.chain(modules().map(|module| show_module(&module).to_string())).collect()
}

/// Damage that is never noticed, or always, would mean that the mutators miss the point.
fn check_mixture(accepted: u64) {
    assert!((COUNT / 100..COUNT * 3 / 4).contains(&accepted), "{accepted} of {COUNT} were accepted");
}

#[test]
fn damaged_texts_are_read_or_refused() {
    let (texts, jit) = (texts(), jit());
    let mut accepted = 0;
    for seed in 0..COUNT {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&texts).expect("there are originals").clone();
        let damaged = mutate::text(&mut rng, &original);
        match check_text(seed, damaged.as_bytes(), Some(&jit)) {
            Ok(reading) => accepted += u64::from(reading == Reading::Accepted),
            Err(failure) => panic!("{failure}"),
        }
    }
    check_mixture(accepted);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let texts = texts();
    for seed in 0..COUNT / 10 {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&texts).expect("there are originals").clone();
        let damaged = mutate::bytes(&mut rng, original.as_bytes());
        if let Err(failure) = check_text(seed, &damaged, None) {
            panic!("{failure}");
        }
    }
}

#[test]
fn damaged_binaries_are_read_or_refused() {
    let jit = jit();
    let originals: Vec<Vec<u8>> = modules().map(|module| binary::write(&module)).collect();
    let mut accepted = 0;
    for seed in 0..COUNT {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&originals).expect("there are originals").clone();
        let mut damaged = mutate::bytes(&mut rng, &original);
        // With the old checksum nothing behind it would be looked at.
        if !rng.chance(5) {
            mutate::seal(&mut damaged);
        }
        match check_binary(seed, &damaged, Some(&jit)) {
            Ok(reading) => accepted += u64::from(reading == Reading::Accepted),
            Err(failure) => panic!("{failure}"),
        }
    }
    check_mixture(accepted);
}
