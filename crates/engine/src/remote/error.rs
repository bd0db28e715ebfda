//! Why something in an executor was not done. Calls return [`ExecutorError`] alone.

use brolga_executor::{ExecutorError, ExecutorLost, SendError, SpawnError};
use brolga_jit::{CallError, LookupError};

use crate::error::Error;

/// An error of a remote engine.
#[derive(thiserror::Error, Debug)]
pub enum RemoteError {
    /// The program is not compiled, as without an executor.
    #[error(transparent)]
    Program(#[from] Error),
    /// The code cannot be sent.
    #[error(transparent)]
    Store(#[from] SendError),
    /// There is no such function, or its type differs.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The executor cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The executor was lost, or has refused.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

impl RemoteError {
    /// How the executor was lost, if that is the reason.
    pub fn lost(&self) -> Option<&ExecutorLost> {
        match self {
            RemoteError::Executor(error) => error.lost(),
            _ => None,
        }
    }

    /// Why a call has no result, if that is the reason.
    pub fn call(&self) -> Option<&CallError> {
        match self {
            RemoteError::Executor(ExecutorError::Call(error)) => Some(error),
            _ => None,
        }
    }
}
