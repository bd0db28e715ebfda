//! The command line: one file for each sub-command, each a few calls into the library.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | what was asked for did not hold: an uncaught exception, a failed test, a file that is not in normal form |
//! | 2 | wrong use of the command line |
//! | 3 | the input is broken, or asks for what is not supported; the messages say where |
//! | 4 | the system refused: a file that cannot be read or written, no memory for code |
//! | 101 | a bug in Brolga |

mod completions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The system refused.
const SYSTEM: u8 = 4;

/// Compiles and runs a Julia-like SSA IR.
#[derive(Debug, Parser)]
#[command(name = "brolga", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 done; 1 an uncaught exception, a failed test or a file not in normal form; \
                        2 wrong use; 3 broken input; 4 the system refused; 101 a bug in Brolga."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::Args),
}

/// Reads the arguments of the process and does what they ask.
pub(crate) fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Completions(args) => completions::run(&args),
    }
}
