//! Writes the seed inputs of fuzzers that the command cannot produce: modules in binary form, session steps,
//! patterns.
//!
//! `cargo run -p brolga-fuzz --example seeds -- FOLDER`
#![forbid(unsafe_code)]

use std::path::Path;

use brolga_fuzz::generate::{Features, Options, generate};
use brolga_fuzz::rng::Rng;

/// The number of files of each kind.
const COUNT: u64 = 30;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let write = |kind: &str, seed: u64, bytes: &[u8]| {
        std::fs::write(Path::new(&folder).join(kind).join(seed.to_string()), bytes)
    };
    let options = Options { functions: 2, size: 40, features: Features::ALL, ..Options::default() };
    for seed in 0..COUNT {
        let mut rng = Rng::new(seed);
        let mut bytes = |count: usize| (0..count).map(|_| rng.next_u64() as u8).collect::<Vec<u8>>();
        write("binary", seed, &brolga_ir::binary::write(&generate(seed, &options)))?;
        write("sessions", seed, &bytes(120))?;
        write("shapes", seed, &bytes(7))?;
    }
    Ok(())
}
