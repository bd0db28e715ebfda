//! `brolga cache DIR`: the contents of a directory of cached code.

use std::path::PathBuf;

use brolga::cache::DirectoryStore;

use super::Done;
use super::report::{Stop, out};

/// Shows how much code a cache's directory holds, or removes it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The directory is filled by `brolga run --cache DIR`, which says with `--cache-stats` what was found in it.\n\nExamples:\n  brolga run app.jlir --cache ~/.cache/brolga --cache-stats\n  \
                        brolga cache ~/.cache/brolga\n  brolga cache ~/.cache/brolga --clear"
)]
pub(crate) struct Args {
    /// The directory
    directory: PathBuf,
    /// Remove all entries
    #[arg(long)]
    clear: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    let cannot = |error: &dyn std::fmt::Display| Stop::System(format!("cannot open the cache: {error}"));
    // A mistyped name makes no directory.
    if !args.directory.is_dir() {
        return Err(cannot(&format!("`{}` is not a directory", args.directory.display())));
    }
    let store = DirectoryStore::open(&args.directory, u64::MAX).map_err(|error| cannot(&error))?;
    if args.clear {
        store.clear().map_err(|error| cannot(&error))?;
    }
    let used = store.in_use().map_err(|error| cannot(&error))?;
    out(format!("{}: {} entries, {} bytes", store.path().display(), used.entries, used.bytes))
}
