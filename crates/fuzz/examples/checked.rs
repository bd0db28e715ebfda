//! Runs damaged programs without doors in this process: `cargo run --release -p brolga-fuzz --example checked -- FROM COUNT FOLDER…`
//!
//! The folders hold the originals. A seed gives the same input every time, so a crash is repeated by its seed: with COUNT 1 the input is printed before it is run.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;

use brolga_fuzz::targets::{Fate, Guarded, checked, damaged};

/// Inputs between two lines of progress, and for one machine.
const STEP: u64 = 2000;

fn originals(folders: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut paths = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|e| e == "jlir" || e == "txt"));
    paths.sort();
    Ok(paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, count, folders @ ..] = args.as_slice() else { return Err("FROM COUNT FOLDER…".into()) };
    let (from, count): (u64, u64) = (from.parse()?, count.parse()?);
    let originals = originals(folders)?;
    let (mut ran, mut calls, mut fates) = (0, 0, BTreeMap::<&str, u64>::new());
    let mut guarded = Guarded::new()?;
    for seed in from..from + count {
        if (seed - from) % STEP == 0 {
            guarded = Guarded::new()?;
            eprintln!("seed {seed}: {ran} programs without doors ran, {calls} calls");
        }
        let text = damaged(seed, &originals);
        if count == 1 {
            println!("{text}");
        }
        let fate = checked(&guarded, text.as_bytes()).map_err(|fault| format!("seed {seed}: {fault}"))?;
        *fates
            .entry(match fate {
                Fate::Broken => "no programs",
                Fate::Doors => "with doors",
                Fate::NotRun => "not run",
                Fate::Ran(_) => "ran",
            })
            .or_default() += 1;
        if let Fate::Ran(n) = fate {
            ran += 1;
            calls += n;
        }
    }
    println!("{count} inputs from {} originals: {fates:?}; {calls} calls", originals.len());
    Ok(())
}
