//! Loops that are left for better code while they run.
//!
//! ```text
//!   f(Int64) in tier 1 ── at a loop's head: a question ── yes ──► f(Int64)#osr1(…), in tier 2
//!                                              │ often asked
//!                                              ▼
//!                                       LoopBody::materialize: made from the form of f that tier 1 was compiled from
//! ```
//!
//! The continuation of a loop is a function like others (`opt/src/osr.rs`), but no symbol of the session: only the code of the loop knows
//! it, and keeps it. Its callees are looked up when it is compiled, in the link order of its dylib, and waited for. It is optimised with
//! the program in sight that tier 1 saw, each function in the form that it had there.
//!
//! The source holds the session weakly, as those of cells do. If the session has ended, loops continue as they are.
//!
//! Cost: for tier 1 the questions; a loop's function costs a copy of its program's functions and one compile, once it is asked for.

use std::error::Error as AnyError;
use std::sync::{Arc, Weak};

use brolga_ir::FuncId;
use brolga_jit::{LoopEntry, Materialize, Target};
use brolga_linking::{DylibId, WeakSession};
use brolga_opt::osr::Exit;

use super::compile::FoundLoop;
use super::input::CompilationInput;
use super::shared::Shared;
use super::target::Native;
use super::{detached, linking};
use crate::error::Error;

/// The entry of a loop's continuation, which the loop's unit is linked with.
pub(crate) fn loop_entry(
    found: &FoundLoop,
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &Arc<CompilationInput>,
    rounds: u32,
) -> LoopEntry {
    let source = LoopBody {
        shared: Arc::downgrade(shared),
        session: session.downgrade(),
        dylib,
        input: input.clone(),
        func: found.func,
        exit: found.exit.clone(),
    };
    let (ty, question) = (found.ty.clone(), found.question.clone());
    LoopEntry { ty, question, source: Arc::new(source), rounds }
}

/// The source of a continuation.
struct LoopBody {
    shared: Weak<Shared>,
    session: WeakSession<Native>,
    dylib: DylibId,
    input: Arc<CompilationInput>,
    func: FuncId,
    exit: Arc<Exit>,
}

impl Materialize for LoopBody {
    fn materialize(&self) -> Result<Target, Box<dyn AnyError + Send + Sync>> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let seen = self.input.module();
        let mut module = seen.without_functions();
        for (id, _) in seen.funcs() {
            module.add_func(seen[id].clone()).map_err(|error| format!("{error:?}"))?;
        }
        let body = self.exit.body(&seen.cx, &seen[self.func]);
        let entry = module.add_func(body).map_err(|error| format!("{error:?}"))?;
        detached::compile(&shared, &session, self.dylib, &self.input, module, entry)
    }

    fn may_pass(&self, error: &(dyn AnyError + Send + Sync + 'static)) -> bool {
        error.downcast_ref().is_some_and(linking::Error::passes)
            || error.downcast_ref().is_some_and(Error::is_shortage)
    }
}
