//! Engines whose code runs in another process.
//!
//! ```text
//!   Program ── this process: passes, code generation ──► sealed unit ── the executor: loader, run time ──► cells
//!                    │                                                                                      ▲
//!                    └── tables: units and cells as they were sent ── restart: all of it again              │
//!   RemoteFunc::call ── arguments as words or bytes ───────────────────────────────────────────────────────┘
//! ```
//!
//! A [`RemoteEngine`] is what an [`Engine`] is, with an executor (`brolga_executor`) in place of this process's memory: programs are compiled here
//! by the same pipeline, from the same cache, and loaded there. A wild pointer, a bug of the code generator or the end of the process
//! ends the executor: calls fail with [`ExecutorLost`], and [`RemoteEngine::restart`] loads everything that handles still refer to
//! into another process.
//!
//! | | in process | in an executor |
//! |---|---|---|
//! | numbers, tuples, structs of them | in registers | as words, in line ([`RemoteUnit::func`]) |
//! | strings, vectors | objects of a scope | copied, as bytes ([`RemoteUnit::func_of`]) |
//! | other objects | roots, handles | copied, by calls as text ([`Evaluator::remote`](crate::Evaluator::remote)); not as handles |
//! | exceptions, limits | `CallError` | the same; an exception has no object |
//! | global variables | their own | have their first values in a restarted executor |
//! | functions of the host | called | not there: a program that names one is refused when it is loaded |
//!
//! With [`RemoteEngine::in_process`] the executor is in this process, by the same trait: for comparison, and for tests.
//!
//! A program is replaced as a whole ([`RemoteUnit::replace`]): functions that were looked up lead to the new code.
//!
//! Not done: sessions, lazy functions and tiers in an executor; handles of objects.

mod error;
mod func;
mod object;
mod portable;
mod tables;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_cache::CacheKey;
use brolga_executor::{
    CodeSettings, ExecutorLost, InProcess, Process, Receiver, RuntimeSettings, Spawn, SpawnError,
    wire::Status,
};
use brolga_ir::FuncId;
use brolga_runtime::{Output, Runtime, RuntimeOptions};

use crate::engine::Engine;
use crate::error::Error;
use crate::options::Options;
use crate::program::Program;

pub use error::RemoteError;
pub(crate) use func::RemoteUntyped;
pub use func::{RemoteFunc, RemoteObjects, RemoteUnit};
pub use object::{RemoteParams, RemoteValue};
use tables::Place;
pub(crate) use tables::Shared;

/// Compiles programs here and runs them in an executor. Clones share one.
#[derive(Clone, Debug)]
pub struct RemoteEngine {
    shared: Arc<Shared>,
}

/// The text that programs print there, and the first error in writing it.
struct Printed {
    runtime: Arc<Runtime>,
    error: Mutex<Option<io::Error>>,
}

impl Receiver for Printed {
    fn print(&self, text: &[u8]) {
        self.runtime.sink().write(text);
    }

    fn unwritten(&self, error: io::Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl RemoteEngine {
    /// Starts an executor for programs compiled with these options. Options of the heap, of traces and of code memory apply to the
    /// executor. What programs print goes where the options say; to the standard output it is written by the executor itself.
    ///
    /// # Errors
    /// There is no engine with these options; the executor cannot be started, or is of another version.
    pub fn spawn(options: Options, spawn: Spawn) -> Result<RemoteEngine, RemoteError> {
        let options = options.settled();
        let sends_output = !matches!(options.runtime.output, Output::Stdout);
        let runtime = RuntimeSettings::new(&options.runtime.heap, options.runtime.traces, sends_output);
        let code = CodeSettings::new(options.jit.memory);
        let engine = Engine::new(options)?;
        let printed = printed(&engine);
        let process = Process::spawn(spawn.run_time(runtime, code), printed.clone())?;
        Ok(RemoteEngine::of(engine, Place::Process(Arc::new(process)), printed))
    }

    /// An executor in this process, on a run time of its own.
    ///
    /// # Errors
    /// There is no engine with these options.
    pub fn in_process(options: Options) -> Result<RemoteEngine, RemoteError> {
        let options = options.settled();
        let RuntimeOptions { heap, traces, .. } = &options.runtime;
        let runtime =
            Runtime::new(RuntimeOptions { heap: heap.clone(), traces: *traces, ..Default::default() });
        let key = CacheKey::random().map_err(SpawnError::from)?;
        let executor = InProcess::new(runtime, options.jit, key.clone()).map_err(Error::from)?;
        let engine = Engine::new(options)?;
        let printed = printed(&engine);
        Ok(RemoteEngine::of(engine, Place::InProcess(Arc::new(executor), key), printed))
    }

    fn of(engine: Engine, place: Place, printed: Arc<Printed>) -> RemoteEngine {
        RemoteEngine { shared: Arc::new(Shared::new(engine, place, printed)) }
    }

    /// Compiles all functions of a program and loads them.
    ///
    /// # Errors
    /// As [`Engine::compile`]; the executor was lost, or refuses the program.
    pub fn compile(&self, program: &Program) -> Result<RemoteUnit, RemoteError> {
        self.compile_only(program, program.module().funcs().map(|(id, _)| id))
    }

    /// Compiles these functions of a program and their callees, and loads them.
    ///
    /// # Errors
    /// As [`RemoteEngine::compile`].
    pub fn compile_only(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
    ) -> Result<RemoteUnit, RemoteError> {
        RemoteUnit::load(&self.shared, program, roots)
    }

    /// Starts another executor if this one is lost, and loads all units to which there are handles. Handles stay valid; global variables have
    /// their first values. Returns whether another one was started.
    ///
    /// # Errors
    /// It cannot be started, or was lost as well.
    pub fn restart(&self) -> Result<bool, RemoteError> {
        self.shared.restart()
    }

    /// How the executor was lost; `None` while it works.
    pub fn lost(&self) -> Option<ExecutorLost> {
        self.shared.process().and_then(|process| process.lost())
    }

    /// Ends the executor. Calls under way fail.
    pub fn kill(&self) {
        if let Some(process) = self.shared.process() {
            process.kill();
        }
    }

    /// What the executor has loaded.
    ///
    /// # Errors
    /// It was lost.
    pub fn status(&self) -> Result<Status, RemoteError> {
        Ok(self.shared.executor().status()?)
    }

    /// The engine that compiles.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The first error in writing what programs print, since the last call.
    pub fn take_output_error(&self) -> Option<io::Error> {
        self.shared.printed.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A program with all of its functions as sealed bytes, for an executor that the embedder drives by the trait
/// [`Executor`](brolga_executor::Executor).
///
/// # Errors
/// As [`Engine::compile`]; the code does not fit the format.
pub fn seal_program(engine: &Engine, program: &Program, key: &CacheKey) -> Result<Vec<u8>, RemoteError> {
    let roots = program.module().funcs().map(|(id, _)| id);
    Ok(portable::Portable::new(engine, program, roots, key)?.sealed)
}

fn printed(engine: &Engine) -> Arc<Printed> {
    Arc::new(Printed { runtime: engine.runtime().clone(), error: Mutex::default() })
}
