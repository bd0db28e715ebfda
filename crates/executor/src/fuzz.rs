//! Everything that reads bytes of the other side, for fuzzers and a short run in the tests.
//!
//! ```text
//!   bytes ──┬── as frames of a connection: handshake, requests, calls         to the executor
//!           └── as frames of a connection: replies, answers, welcome          to the controller
//! ```
//!
//! Requests and calls are made, in an executor of this process with one unit. Programs are only read as far as the seal allows: no bytes of a
//! fuzzer are run.

use std::io::{self, Read, Write};
use std::sync::Arc;

use brolga_cache::CacheKey;
use brolga_interp::{self as interp, Interp, SimMemory};
use brolga_ir::{Context, Module};
use brolga_jit::{JitError, JitOptions};
use brolga_runtime::{Limits, Output, Runtime, RuntimeOptions};
use serde::de::DeserializeOwned;

use crate::executor::{CellId, Executor, UnitId};
use crate::handshake::{Facts, answer, open};
use crate::in_process::InProcess;
use crate::process::exception;
use crate::settings::Settings;
use crate::stored;
use crate::wire::{Answer, Call, Given, Got, Outcome, Reply, Request, receive};

/// A place where bytes are read as both sides read them.
pub struct Target {
    executor: InProcess,
    key: CacheKey,
    cx: Arc<Context>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

/// A connection whose other side sends these bytes and reads everything.
struct Scripted<'a>(&'a [u8]);

impl Read for Scripted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Scripted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Target {
    /// A target whose executor has `program`, sealed with `key`, as unit 1, and cell 1 that leads to its function `symbol`.
    ///
    /// # Errors
    /// There is no code memory.
    pub fn new(key: CacheKey, program: &[u8], symbol: &str) -> Result<Target, JitError> {
        let runtime = Runtime::new(RuntimeOptions { output: Output::Capture, ..RuntimeOptions::default() });
        let executor = InProcess::new(runtime, JitOptions::default(), key.clone())?;
        let _ = executor.load(UnitId(1), program);
        let _ = executor.cell(CellId(1), symbol);
        let _ = executor.lead(CellId(1), UnitId(1));
        Ok(Target { executor, key, cx: Context::new() })
    }

    /// Reads bytes in all places of both sides.
    pub fn read(&self, bytes: &[u8]) {
        self.as_executor(bytes);
        self.as_controller(bytes);
    }

    /// Reads bytes as an executor does.
    pub fn as_executor(&self, bytes: &[u8]) {
        let _ = answer(&mut Scripted(bytes), &self.key, &Facts::new(), |settings| {
            settings.runtime.runtime(Output::Capture).map(drop)
        });
        each(bytes, |request: Request| match request {
            Request::Load { unit, program } => {
                let _ = stored::open_unsealed(&program.0);
                let _ = self.executor.load(UnitId(unit), &program.0);
            }
            Request::Cell { cell, symbol } => {
                let _ = self.executor.cell(CellId(cell | 2), &symbol);
                let _ = self.executor.drop_cell(CellId(cell | 2));
            }
            Request::Lead { cell, unit } => drop(self.executor.lead(CellId(cell), UnitId(unit))),
            Request::Reset { unit } => drop(self.executor.reset(UnitId(unit))),
            Request::Drop { .. } | Request::Retire { .. } | Request::Lane | Request::Cancel { .. } => {}
            Request::Status => drop(self.executor.status()),
        });
        each(bytes, |call: Call| {
            // A pointer is the program's own, and one that a fuzzer has made would be followed.
            let has_pointers = matches!(&call.given, Given::Low(args)
                if args.iter().any(|arg| matches!(arg, crate::wire::LowArg::Pointer(_))));
            if !has_pointers {
                let _ = self.executor.call(CellId(call.cell), call.given, &Limits::new(), &self.cx);
            }
        });
    }

    /// Reads bytes as a controller does.
    pub fn as_controller(&self, bytes: &[u8]) {
        let _ = open(&mut Scripted(bytes), &self.key, &Facts::new(), &Settings::default());
        each(bytes, |_: Reply| {});
        each(bytes, |part: Answer| {
            let Answer::Done { outcome, .. } = part else { return };
            match outcome {
                Outcome::Threw(thrown) => drop(exception(thrown, &self.cx)),
                Outcome::Returned(Got::Object(graph)) => {
                    let module = Module::new(self.cx.view());
                    let options = interp::Options { max_heap_bytes: 64 << 20, ..interp::Options::default() };
                    let interp = &mut Interp::new(&module, options, Box::<SimMemory>::default());
                    for value in graph.decode(interp).unwrap_or_default() {
                        let _ = interp.show(&value);
                    }
                }
                Outcome::Returned(Got::Low { .. }) | Outcome::Ended(_) | Outcome::Refused(_) => {}
            }
        });
    }
}

/// The messages in the frames of some bytes.
fn each<T: DeserializeOwned>(bytes: &[u8], mut take: impl FnMut(T)) {
    let (mut stream, mut buffer) = (bytes, Vec::new());
    while let Ok(Some(message)) = receive(&mut stream, &mut buffer) {
        take(message);
    }
}
