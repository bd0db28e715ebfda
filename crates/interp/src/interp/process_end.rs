//! The C functions that end the process: `exit`, `_exit`, `_Exit`, `quick_exit` and `abort`.
//!
//! The interpreter ends its own call with [`Outcome::Ended`](super::Outcome::Ended): no handler of the
//! program runs, and the host decides about its process. Output is written immediately, so nothing needs
//! flushing. `atexit` handlers do not exist here.

use super::Interp;
use super::error::{Eval, ProcessEnd, Stop};
use super::memory::{ForeignCall, MemoryError};
use brolga_ir::types::LowType;

impl Interp<'_> {
    /// Ends the process if the called function does.
    pub(super) fn end_of_process(&self, call: &ForeignCall<'_>) -> Eval<()> {
        let end = match (call.name, call.args) {
            ("exit" | "_exit" | "_Exit" | "quick_exit", &[(LowType::I32, status)]) => {
                ProcessEnd::Exit((status as u32).cast_signed())
            }
            ("abort", []) => ProcessEnd::Abort,
            ("exit" | "_exit" | "_Exit" | "quick_exit" | "abort", _) => {
                return Err(MemoryError::BadCall { name: call.name.to_owned() }.into());
            }
            _ => return Ok(()),
        };
        Err(Stop::Ended(end))
    }
}
