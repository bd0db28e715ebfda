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

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::{LoopEntry, Materialize, Target};
use brolga_linking::{DylibId, WeakSession};
use brolga_opt::osr::Exit;

use super::target::Native;
use super::unit::{Loaded, Shared};
use super::{apart, linking};
use crate::error::Error;
use crate::native_type::declared_type;

/// A loop of a function that was compiled in the first tier.
pub(crate) struct FoundLoop {
    /// The function.
    pub(crate) func: FuncId,
    pub(crate) exit: Arc<Exit>,
    /// The type of what continues.
    ty: Arc<FunctionType>,
    pub(crate) question: Arc<str>,
}

impl FoundLoop {
    pub(crate) fn new(module: &Module, func: FuncId, exit: Exit) -> Option<FoundLoop> {
        let cx = &module.cx;
        let ty = declared_type(cx, exit.entry_symbol(cx).to_owned(), &exit.entry.sig)?;
        let question = exit.question_symbol(cx).into();
        Some(FoundLoop { func, exit: Arc::new(exit), ty: Arc::new(ty), question })
    }

    /// The name by which the loop calls what continues.
    pub(crate) fn entry(&self) -> &str {
        &self.ty.symbol
    }

    /// The links of the loop's unit.
    pub(crate) fn link(
        &self,
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        dylib: DylibId,
        loaded: &Arc<Loaded>,
        rounds: u32,
    ) -> LoopEntry {
        let source = LoopBody {
            shared: Arc::downgrade(shared),
            session: session.downgrade(),
            dylib,
            loaded: loaded.clone(),
            func: self.func,
            exit: self.exit.clone(),
        };
        let (ty, question) = (self.ty.clone(), self.question.clone());
        LoopEntry { ty, question, source: Arc::new(source), rounds }
    }
}

/// The source of a continuation.
struct LoopBody {
    shared: Weak<Shared>,
    session: WeakSession<Native>,
    dylib: DylibId,
    loaded: Arc<Loaded>,
    func: FuncId,
    exit: Arc<Exit>,
}

impl Materialize for LoopBody {
    fn materialize(&self) -> Result<Target, Box<dyn AnyError + Send + Sync>> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let seen = self.loaded.module();
        let mut module = seen.without_functions();
        for (id, _) in seen.funcs() {
            module.add_func(seen[id].clone()).map_err(|error| format!("{error:?}"))?;
        }
        let body = self.exit.body(&seen.cx, &seen[self.func]);
        let entry = module.add_func(body).map_err(|error| format!("{error:?}"))?;
        apart::compile(&shared, &session, self.dylib, &self.loaded, module, entry)
    }

    fn may_pass(&self, error: &(dyn AnyError + Send + Sync + 'static)) -> bool {
        error.downcast_ref().is_some_and(linking::Error::passes)
            || error.downcast_ref().is_some_and(Error::is_shortage)
    }
}
