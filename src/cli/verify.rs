//! `brolga verify FILES…`: reads programs and checks every rule of the IR.

use super::report::Stop;
use super::{Done, input};

/// Checks that programs are well-formed: syntax, types, and every rule of the IR.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The programs; `-` reads the standard input
    #[arg(required = true)]
    files: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut worst = None;
    for file in &args.files {
        if let Err(stop) = input::program(file) {
            // Each is reported where it stands; the last one gives the status.
            worst.replace(stop).map(Stop::report);
        }
    }
    worst.map_or(Ok(()), Err)
}
