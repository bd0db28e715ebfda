//! `brolga verify FILES…`: reads programs and checks every rule of the IR.

use brolga_runtime::Foreign;

use super::progress::Bars;
use super::report::Stop;
use super::{Done, input};

/// Checks that programs are well-formed: syntax, types, and every rule of the IR.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The programs; `-` reads the standard input
    #[arg(required = true)]
    files: Vec<String>,

    /// Also list what is called and not there: methods, C functions
    #[arg(long)]
    complete: bool,
    #[command(flatten)]
    bars: Bars,
}

pub(crate) fn run(args: &Args) -> Done {
    let foreign = Foreign::default();
    let mut worst = None;
    let progress = args.bars.begin("verify", args.files.len());
    for file in &args.files {
        progress.at(file);
        let checked = input::program(file).and_then(|program| match args.complete {
            true => Ok(program.check_complete(|name| foreign.resolve(name, None).is_ok())?),
            false => Ok(()),
        });
        if let Err(stop) = checked {
            // Each is reported at its position; the last one determines the status.
            progress.aside(|| worst.replace(stop).map(Stop::report));
        }
        progress.step();
    }
    drop(progress);
    worst.map_or(Ok(()), Err)
}
