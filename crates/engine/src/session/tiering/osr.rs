//! On-stack replacement: running loops continue in better code.
//!
//! ```text
//!   f(Int64) in tier 1 ── at a loop's head: a check    ── yes ──► f(Int64)#osr1(…), in tier 2
//!                                              │ many checks
//!                                              ▼
//!                                       LoopBody::materialize: compiled from the same form of f as tier 1
//! ```
//!
//! The continuation of a loop is an ordinary function (`opt/src/osr.rs`) without a symbol of the session: only the code of the loop refers to
//! it, and keeps it. Its compilation looks up its callees in the link order of its dylib, and waits for them. It is optimised together with
//! the program of tier 1, with each function in the form it had there.
//!
//! The source holds the session weakly, like the sources of cells. After the end of the session, loops stay in their tier.
//!
//! Cost: the checks in tier 1; a requested continuation costs a copy of its program's functions and one compile.

use std::error::Error as AnyError;
use std::sync::{Arc, Weak};

use brolga_cache::Fingerprint;
use brolga_codegen::sig::FunctionType;
use brolga_ir::FuncId;
use brolga_jit::{LoopEntry, Materialize, Target};
use brolga_linking::{DylibId, WeakSession};
use brolga_opt::osr::Exit;

use crate::cached::Continuation;
use crate::error::Error;
use crate::pipeline::{Run, watched};
use crate::session::compile::FoundLoop;
use crate::session::input::CompilationInput;
use crate::session::shared::Shared;
use crate::session::target::Native;
use crate::session::{detached, linking};

/// The entry of a loop's continuation, to which the loop's unit is linked.
pub(crate) fn loop_entry(
    found: &FoundLoop,
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &Arc<CompilationInput>,
    iterations: u32,
) -> LoopEntry {
    let source = LoopBody {
        shared: Arc::downgrade(shared),
        session: session.downgrade(),
        dylib,
        input: input.clone(),
        func: found.func,
        exit: found.exit.clone(),
        ty: found.ty.clone(),
    };
    let (ty, check) = (found.ty.clone(), found.check.clone());
    LoopEntry { ty, check, source: Arc::new(source), iterations }
}

/// The source of a continuation.
struct LoopBody {
    shared: Weak<Shared>,
    session: WeakSession<Native>,
    dylib: DylibId,
    input: Arc<CompilationInput>,
    func: FuncId,
    exit: Continuation,
    ty: Arc<FunctionType>,
}

impl LoopBody {
    /// The exit of the loop. For code from a cache, it is found again in the function that the code was compiled from.
    fn exit(&self, shared: &Shared) -> Result<Arc<Exit>, Failed> {
        let mark = match &self.exit {
            Continuation::Found(exit) => return Ok(exit.clone()),
            Continuation::Marked(mark) => mark,
        };
        let cx = &self.input.module().cx;
        let is_own =
            |exit: &Exit| exit.entry_symbol(cx) == self.ty.symbol && exit.mark().as_slice() == &**mark;
        let mut cx = watched(shared.jit.runtime().events());
        let mut run = Run { cx: &mut cx, report: None };
        let exits = self.input.pipeline.leaving(&mut run, self.func)?.1;
        let found = exits.into_iter().find(is_own).ok_or("its loop was made from another function")?;
        Ok(Arc::new(found))
    }

    /// The hash of the inputs of its code; `None` without a cache.
    fn facts(&self, shared: &Shared) -> Option<Fingerprint> {
        let cache = shared.recipe.cache.as_ref()?;
        let unit = self.input.facts_of(cache, &[self.func])?;
        Some(cache.facts_of_loop(&unit, &self.ty.symbol, &self.exit.mark()))
    }
}

type Failed = Box<dyn AnyError + Send + Sync>;

impl Materialize for LoopBody {
    fn materialize(&self) -> Result<Target, Failed> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let facts = self.facts(&shared);
        if let Some(facts) = &facts {
            let found = detached::find(&shared, &session, self.dylib, &self.input, &self.ty, facts)?;
            if let Some(target) = found {
                return Ok(target);
            }
        }
        let exit = self.exit(&shared)?;
        let seen = self.input.module();
        let mut module = seen.without_functions();
        for (id, _) in seen.funcs() {
            module.add_func(seen[id].clone()).map_err(|error| format!("{error:?}"))?;
        }
        let body = exit.body(&seen.cx, &seen[self.func]);
        let entry = module.add_func(body).map_err(|error| format!("{error:?}"))?;
        detached::compile(&shared, &session, self.dylib, &self.input, (module, entry), facts.as_ref())
    }

    fn may_pass(&self, error: &(dyn AnyError + Send + Sync + 'static)) -> bool {
        error.downcast_ref().is_some_and(linking::Error::passes)
            || error.downcast_ref().is_some_and(Error::is_shortage)
    }
}
