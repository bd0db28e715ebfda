//! A process as an executor: it answers the requests of one controller.
//!
//! ```text
//!   control ──► this thread: Load, Cell, Lead, …          one after the other
//!   lane    ──► a thread each: Call ──► Output…, Done     one call at a time, on the thread that reads it
//! ```
//!
//! A call runs on the thread of its lane, so between the two messages there is no switch of threads. Lanes are made by the controller,
//! which sends one end of a socket pair (`SCM_RIGHTS`).
//!
//! Text that programs print is collected, and sent on the lane of the thread that printed it: before the answer, or when there is much. Text
//! of threads without a lane waits for the next answer.
//!
//! The control connection ends with the controller. Then calls under a token end, and [`serve`] returns.

use std::collections::BTreeMap;
use std::io::{self, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use brolga_cache::CacheKey;
use brolga_ir::Context;
use brolga_jit::CallError;
use brolga_runtime::{Cancel, Ended, Exception, ExceptionKind, Fuel, Limits, Output, fenced};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::executor::{CellId, Executor, ExecutorError, UnitId};
use crate::graph::Types;
use crate::handshake::{Facts, OpenError, answer};
use crate::in_process::InProcess;
use crate::settings::Settings;
use crate::wire::{
    Answer, Blob, Call, ExecutorRefusal, Outcome, Reply, Request, Thrown, ThrownFrame, Unwritten, WireEnded,
    WireError, receive, send,
};

/// Text of this size is sent before the call is over.
const MUCH: usize = 32 << 10;
/// The most text that waits for a lane. More is dropped, and reported as an output error.
const MOST: usize = 64 << 20;
/// Calls that are cancelled before they arrive; of more, the oldest are forgotten.
const EARLY: usize = 1024;
/// The stack of a lane's thread: as of a process's first thread.
const STACK: usize = 8 << 20;

/// Why a process has stopped serving.
#[derive(thiserror::Error, Debug)]
pub enum ServeError {
    /// The connection was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The connection failed, or the controller sent something that is not a message.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// What the threads of an executor share.
struct Shared {
    executor: InProcess,
    outgoing: Option<Arc<Outgoing>>,
    /// A context without types of programs.
    cx: Arc<Context>,
    tokens: Mutex<Tokens>,
}

/// The tokens of calls, by their numbers.
#[derive(Default)]
struct Tokens {
    running: BTreeMap<u64, Cancel>,
    /// Calls that were cancelled before they began.
    early: BTreeMap<u64, ()>,
}

/// Serves the controller at the other end of a connection until it ends.
///
/// # Errors
/// The connection was not opened, or failed.
pub fn serve(mut stream: UnixStream, key: &CacheKey) -> Result<(), ServeError> {
    let shared = answer(&mut stream, key, &Facts::new(), |settings| begin(settings, key))?;
    let done = control(&mut stream, &shared);
    for token in lock(&shared.tokens).running.values() {
        token.cancel();
    }
    done
}

fn begin(settings: &Settings, key: &CacheKey) -> Result<Arc<Shared>, String> {
    settings.limits.set()?;
    let outgoing = settings.runtime.sends_output.then(Arc::<Outgoing>::default);
    let output = match &outgoing {
        Some(outgoing) => Output::Writer(Box::new(OutgoingWriter(outgoing.clone()))),
        None => Output::Stdout,
    };
    let runtime = settings.runtime.runtime(output)?;
    let executor = InProcess::new(runtime, settings.code.options(), key.clone());
    let executor = executor.map_err(|error| error.to_string())?;
    Ok(Arc::new(Shared { executor, outgoing, cx: Context::new(), tokens: Mutex::default() }))
}

/// Answers requests.
fn control(stream: &mut UnixStream, shared: &Arc<Shared>) -> Result<(), ServeError> {
    let (mut buffer, executor) = (Vec::new(), &shared.executor);
    while let Some(request) = receive(stream, &mut buffer)? {
        let done = match request {
            Request::Load { unit, program } => executor.load(UnitId(unit), &program.0),
            Request::Cell { cell, symbol } => executor.cell(CellId(cell), &symbol),
            Request::Lead { cell, unit } => executor.lead(CellId(cell), UnitId(unit)),
            Request::Drop { cell } => executor.drop_cell(CellId(cell)),
            Request::Retire { unit } => executor.retire(UnitId(unit)),
            Request::Reset { unit } => executor.reset(UnitId(unit)),
            Request::Lane => receive_lane(stream)
                .and_then(|lane| begin_lane(lane, shared))
                .map_err(|error| ExecutorRefusal::System(error.to_string()).into()),
            Request::Cancel { call } => {
                shared.cancel(call);
                continue;
            }
            Request::Status => {
                let status = executor.status().map(Reply::Status).unwrap_or_else(refused);
                send(stream, &mut buffer, &status)?;
                continue;
            }
        };
        let reply = done.map_or_else(refused, |()| Reply::Done);
        send(stream, &mut buffer, &reply)?;
    }
    Ok(())
}

fn refused(error: ExecutorError) -> Reply {
    Reply::Refused(refusal(error))
}

/// The reason for which something was not done. Calls have others, too.
fn refusal(error: ExecutorError) -> ExecutorRefusal {
    match error {
        ExecutorError::Refused(refusal) => refusal,
        ExecutorError::Call(CallError::NoPrices) => ExecutorRefusal::NoPrices,
        ExecutorError::Call(error @ (CallError::Attach(_) | CallError::NoWatch)) => {
            ExecutorRefusal::System(error.to_string())
        }
        other => ExecutorRefusal::Call(other.to_string()),
    }
}

/// The connection that comes with the next byte.
pub(crate) fn receive_lane(stream: &UnixStream) -> io::Result<UnixStream> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds.collect::<Vec<OwnedFd>>()),
        _ => None,
    });
    match fds.flatten().next() {
        Some(fd) if got.bytes == 1 => Ok(fd.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a lane was announced, and none came")),
    }
}

fn begin_lane(lane: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    let shared = shared.clone();
    let named = thread::Builder::new().name("brolga-lane".to_owned()).stack_size(STACK);
    // A failed lane is closed, which the controller sees.
    named.spawn(move || drop(serve_lane(lane, &shared))).map(drop)
}

/// Answers the calls of a lane.
fn serve_lane(mut stream: UnixStream, shared: &Shared) -> Result<(), WireError> {
    let here = match &shared.outgoing {
        Some(outgoing) => Some(outgoing.lane(stream.try_clone()?)),
        None => None,
    };
    let (mut buffer, mut calls) = (Vec::new(), BufReader::new(stream.try_clone()?));
    while let Some(call) = receive::<Call>(&mut calls, &mut buffer)? {
        let fuel = call.limits.fuel.map(Fuel::new);
        let outcome = fenced(|| shared.call(call, fuel.as_ref()));
        let outcome = outcome.unwrap_or_else(|text| {
            Outcome::Refused(ExecutorRefusal::System(format!("the executor panicked: {text}")))
        });
        let sink = shared.executor.runtime().sink();
        sink.flush();
        if let Some(outgoing) = &shared.outgoing {
            outgoing.send_rest(&mut stream)?;
        }
        if let Some(error) = sink.take_error() {
            let unwritten = Unwritten { code: error.raw_os_error(), text: error.to_string() };
            send(&mut stream, &mut buffer, &Answer::Unwritten(unwritten))?;
        }
        let done = Answer::Done { outcome, fuel: fuel.map(|fuel| fuel.left()) };
        match send(&mut stream, &mut buffer, &done) {
            Ok(()) => {}
            // The result is larger than a message: nothing of it was sent.
            Err(error @ (WireError::TooLong(_) | WireError::Malformed(_))) => {
                let outcome = Outcome::Refused(ExecutorRefusal::Call(error.to_string()));
                send(&mut stream, &mut buffer, &Answer::Done { outcome, fuel: None })?;
            }
            Err(error) => return Err(error),
        }
    }
    drop(here);
    Ok(())
}

impl Shared {
    fn call(&self, call: Call, fuel: Option<&Fuel>) -> Outcome {
        let Call { number, cell, given, limits: wire } = call;
        let mut limits = Limits::new();
        if let Some(microseconds) = wire.microseconds {
            limits = limits.timeout(Duration::from_micros(microseconds));
        }
        if let Some(fuel) = fuel {
            limits = limits.fuelled_by(fuel);
        }
        let _token = wire.has_token.then(|| {
            let token = self.token(number);
            limits = std::mem::take(&mut limits).cancelled_by(&token.cancel);
            token
        });
        let result = self.executor.call(CellId(cell), given, &limits, &self.cx);
        match result {
            Ok(got) => Outcome::Returned(got),
            Err(ExecutorError::Call(CallError::Exception(exception))) => Outcome::Threw(thrown(&exception)),
            Err(ExecutorError::Call(CallError::Ended(ended))) => Outcome::Ended(match ended {
                Ended::Deadline => WireEnded::Deadline,
                Ended::Cancelled => WireEnded::Cancelled,
                Ended::Fuel => WireEnded::Fuel,
            }),
            Err(error) => Outcome::Refused(refusal(error)),
        }
    }

    /// A token for a call, which may be cancelled already.
    fn token(&self, number: u64) -> Token<'_> {
        let mut tokens = lock(&self.tokens);
        let cancel = Cancel::new();
        if tokens.early.remove(&number).is_some() {
            cancel.cancel();
        }
        tokens.running.insert(number, cancel.clone());
        Token { shared: self, number, cancel }
    }

    fn cancel(&self, number: u64) {
        let mut tokens = lock(&self.tokens);
        match tokens.running.get(&number) {
            Some(token) => token.cancel(),
            None => {
                tokens.early.insert(number, ());
                while tokens.early.len() > EARLY {
                    tokens.early.pop_first();
                }
            }
        }
    }
}

/// The token of a call under way.
struct Token<'a> {
    shared: &'a Shared,
    number: u64,
    cancel: Cancel,
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        lock(&self.shared.tokens).running.remove(&self.number);
    }
}

fn thrown(exception: &Exception) -> Thrown {
    let (cx, ty) = exception.ty();
    let mut types = Types::new(cx);
    let ty = types.put(ty);
    let kind = ExceptionKind::ALL.iter().position(|kind| *kind == exception.kind);
    let trace = exception.trace().iter().map(|frame| ThrownFrame {
        address: frame.address as u64,
        function: frame.function.clone(),
        line: frame.line,
        column: frame.column,
        inlined: frame.inlined,
    });
    Thrown {
        kind: kind.unwrap_or(0) as u32,
        lead: exception.lead().to_owned(),
        message: exception.message.clone(),
        ty,
        types: types.list(),
        trace: trace.collect(),
    }
}

/// Text on its way to the controller.
#[derive(Default)]
struct Outgoing {
    rest: Mutex<Vec<u8>>,
    lanes: Mutex<Vec<(ThreadId, UnixStream)>>,
}

/// The running thread's lane, until this is dropped.
struct Here<'a>(&'a Outgoing);

impl Drop for Here<'_> {
    fn drop(&mut self) {
        let here = thread::current().id();
        lock(&self.0.lanes).retain(|(of, _)| *of != here);
    }
}

impl Outgoing {
    /// Makes a connection the lane of the running thread.
    fn lane(&self, stream: UnixStream) -> Here<'_> {
        lock(&self.lanes).push((thread::current().id(), stream));
        Here(self)
    }

    /// Sends all text that waits.
    fn send_rest(&self, stream: &mut UnixStream) -> Result<(), WireError> {
        let text = std::mem::take(&mut *lock(&self.rest));
        match text.is_empty() {
            true => Ok(()),
            false => send(stream, &mut Vec::new(), &Answer::Output(Blob(text))),
        }
    }
}

/// The output of the run time.
struct OutgoingWriter(Arc<Outgoing>);

impl Write for OutgoingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = lock(&self.0.rest);
        if bytes.len() > MOST.saturating_sub(rest.len()) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "too much text waits for a call to end"));
        }
        rest.extend_from_slice(bytes);
        if rest.len() < MUCH {
            return Ok(bytes.len());
        }
        drop(rest);
        let here = thread::current().id();
        let mut lanes = lock(&self.0.lanes);
        if let Some((_, stream)) = lanes.iter_mut().find(|(of, _)| *of == here) {
            let sent = self.0.send_rest(stream);
            sent.map_err(|error| io::Error::new(io::ErrorKind::BrokenPipe, error.to_string()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics between the steps of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
