//! `brolga completions SHELL`: the script by which a shell completes the command's arguments.

use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Done;

/// Prints a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For bash: brolga completions bash > ~/.local/share/bash-completion/completions/brolga"
)]
pub(crate) struct Args {
    /// The shell to write for.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "brolga", &mut script);
    // The generator panics when its writer fails, so it writes to memory first.
    Ok(io::stdout().write_all(&script)?)
}
