//! `--executor`: compiled code in a process of its own, which is this program again unless another one is named.

use std::path::PathBuf;

use brolga::executor::{RemoteEngine, RemoteError, Spawn, serve_controller};

use super::Done;
use super::report::Stop;

/// Serves the controller that has started this process. Not for use by hand.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Where compiled code runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Executing {
    /// Run compiled code in a process of its own, which a crash ends: by this program, or by one such as `brolga-executor`
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true, conflicts_with_all = ["interp", "image"])]
    executor: Option<Option<PathBuf>>,
}

impl Executing {
    /// The engine that runs code in another process, if that is requested.
    pub(crate) fn engine(
        &self,
        options: impl FnOnce() -> brolga::Options,
    ) -> Result<Option<RemoteEngine>, Stop> {
        let Some(program) = &self.executor else { return Ok(None) };
        let spawn = match program {
            None => Spawn::new(std::env::current_exe()?).arg("executor"),
            Some(program) => Spawn::new(program),
        };
        Ok(Some(RemoteEngine::spawn(options(), spawn)?))
    }

    /// Whether it is requested.
    pub(crate) fn is_remote(&self) -> bool {
        self.executor.is_some()
    }
}

impl From<RemoteError> for Stop {
    fn from(error: RemoteError) -> Stop {
        match error {
            RemoteError::Program(error) => error.into(),
            other => Stop::System(other.to_string()),
        }
    }
}

pub(crate) fn run(_: &Args) -> Done {
    serve_controller().map_err(|error| Stop::Usage(error.to_string()))
}
