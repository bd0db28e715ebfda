//! `brolga lsp`: a language server for editors.

use brolga_lsp::{Ended, serve_stdio};

use super::Done;
use super::report::Stop;

/// Serves an editor over the standard input and output, by the Language Server Protocol.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Editors start it; docs/editors.md says how. Programs that the editor runs are run by the interpreter, with limits of time and memory."
)]
pub(crate) struct Args {
    /// The transport, which is the only one; many editors pass it
    #[arg(long)]
    stdio: bool,
}

pub(crate) fn run(_: &Args) -> Done {
    match serve_stdio() {
        Ok(Ended::Well) => Ok(()),
        Ok(Ended::Abruptly) => Err(Stop::Failed),
        Err(error) => Err(Stop::unwritten(&error)),
    }
}
