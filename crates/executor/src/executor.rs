//! What a controller needs of an executor, in this process or in another one.
//!
//! | | in process ([`InProcess`](crate::InProcess)) | another process ([`Process`](crate::Process)) |
//! |---|---|---|
//! | `load` | reads and links | one message with the bytes |
//! | `cell`, `lead`, `retire` | tables | one message each |
//! | `call` | a typed call on this thread | two messages on a lane of its own |
//! | values | the interpreter's, made into objects | the same, as bytes between the two |
//!
//! Numbers of units and cells are the controller's, so that it can load everything again, into an executor that has nothing.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_jit::CallError;
use brolga_runtime::{Exception, Limits};

use crate::lost::ExecutorLost;
use crate::wire::{ExecutorRefusal, Given, Got, Status, WireError};

/// The number of a unit, chosen by the controller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnitId(pub u32);

/// The number of a cell, chosen by the controller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CellId(pub u32);

/// Why an executor has not done what was requested.
#[derive(thiserror::Error, Debug)]
pub enum ExecutorError {
    /// A call ended without a result, as it would in process.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The process is gone.
    #[error(transparent)]
    Lost(#[from] ExecutorLost),
    /// The executor refused.
    #[error(transparent)]
    Refused(#[from] ExecutorRefusal),
    /// A message could not be sent, or the executor sent one that is none.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The values that the executor sent are none of the program.
    #[error("the executor sent values that are none: {0}")]
    Values(String),
}

impl ExecutorError {
    /// How the executor was lost, if that is the reason.
    pub fn lost(&self) -> Option<&ExecutorLost> {
        match self {
            ExecutorError::Lost(lost) => Some(lost),
            _ => None,
        }
    }

    /// The exception that ended a call, if one did.
    pub fn exception(&self) -> Option<&Exception> {
        match self {
            ExecutorError::Call(CallError::Exception(exception)) => Some(exception),
            _ => None,
        }
    }
}

/// Loads units and calls them through cells.
pub trait Executor: Send + Sync {
    /// Loads a program that was sealed with the executor's key.
    ///
    /// # Errors
    /// The number is taken; the program cannot be read or linked.
    fn load(&self, unit: UnitId, program: &[u8]) -> Result<(), ExecutorError>;

    /// Makes a cell for calls of the function with this symbol. It leads nowhere yet.
    ///
    /// # Errors
    /// The number is taken.
    fn cell(&self, cell: CellId, symbol: &str) -> Result<(), ExecutorError>;

    /// Leads the calls of a cell that begin from now on to its function in a unit.
    ///
    /// # Errors
    /// There is no such cell or unit, or the unit has no such function.
    fn lead(&self, cell: CellId, unit: UnitId) -> Result<(), ExecutorError>;

    /// Forgets a cell.
    ///
    /// # Errors
    /// There is no such cell.
    fn drop_cell(&self, cell: CellId) -> Result<(), ExecutorError>;

    /// Forgets a unit. Its code is freed when no cell leads to it and no call runs it.
    ///
    /// # Errors
    /// There is no such unit.
    fn retire(&self, unit: UnitId) -> Result<(), ExecutorError>;

    /// Sets the global variables of a unit to their first values.
    ///
    /// # Errors
    /// There is no such unit; a first value does not fit the heap.
    fn reset(&self, unit: UnitId) -> Result<(), ExecutorError>;

    /// Calls the function of a cell under limits. An exception has its type in `cx`.
    ///
    /// # Errors
    /// The call has no result: it threw, reached a limit, or does not fit the function; or the executor was lost.
    fn call(
        &self,
        cell: CellId,
        given: Given,
        limits: &Limits,
        cx: &Arc<Context>,
    ) -> Result<Got, ExecutorError>;

    /// The executor's state.
    ///
    /// # Errors
    /// It was lost.
    fn status(&self) -> Result<Status, ExecutorError>;
}
