//! An executor in a process of its own, as the controller sees it.
//!
//! ```text
//!   Process ── control ──► the standard input of the other process
//!      │    ── lanes: idle ones, and one for each call under way
//!      └── lost: how the process ended, once it has
//! ```
//!
//! **The end of the process.** A connection that ends, fails, or carries something that is not a message ends it: the process is
//! waited for, and killed if it does not end by itself. From then on everything fails with [`ExecutorLost`], at once.
//!
//! **What another process may do to this one.** It may answer anything: values are checked where they are read (`graph.rs`), sizes where
//! they arrive (`wire.rs`). It may not answer at all: [`Spawn::kill_after`] bounds the time that it has after a deadline.

use std::ffi::OsString;
use std::io::{self, BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use brolga_cache::{CacheKey, KeyError};
use brolga_ir::Context;
use brolga_jit::CallError;
use brolga_runtime::{Ended, Exception, ExceptionKind, Limits, Remaining, StackFrame};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::blob::Blob;
use crate::executor::{CellId, Executor, ExecutorError, UnitId};
use crate::graph::GraphError;
use crate::handshake::{Facts, OpenError, open};
use crate::lost::{Ending, ExecutorLost};
use crate::settings::{CodeSettings, ProcessLimits, RuntimeSettings, Settings};
use crate::wire::{
    Answer, Call, ExecutorRefusal, Given, Got, Outcome, Reply, Request, Status, Thrown, WireEnded, WireError,
    WireLimits, receive, send,
};

/// The time that a process has to end by itself when its connection has ended.
const TO_END: Duration = Duration::from_secs(2);

/// The time that a process has for the handshake.
const TO_BEGIN: Duration = Duration::from_secs(20);

/// How executors are started.
#[derive(Clone, Debug)]
pub struct Spawn {
    program: PathBuf,
    arguments: Vec<OsString>,
    settings: Settings,
    kill_after: Option<Duration>,
}

/// Why there is no executor.
#[derive(thiserror::Error, Debug)]
pub enum SpawnError {
    /// The program cannot be started.
    #[error("the executor `{}` cannot be started: {error}", .program.display())]
    Start { program: PathBuf, error: io::Error },
    /// The process and this one do not work together.
    #[error("the executor does not begin: {0}")]
    Open(#[from] OpenError),
    /// The process ended before it had answered.
    #[error("the executor `{}` ended at its start: {lost}", .program.display())]
    Ended { program: PathBuf, lost: ExecutorLost },
    /// The system refuses a connection.
    #[error("there is no connection to an executor: {0}")]
    System(#[from] io::Error),
    /// The system cannot provide random numbers.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Spawn {
    /// A program that calls [`serve_controller`](crate::serve_controller), such as `brolga-executor`.
    pub fn new(program: impl Into<PathBuf>) -> Spawn {
        Spawn {
            program: program.into(),
            arguments: Vec::new(),
            settings: Settings::default(),
            kill_after: None,
        }
    }

    /// Passes an argument to it.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Spawn {
        self.arguments.push(argument.into());
        self
    }

    /// Limits the process.
    #[must_use]
    pub fn limits(mut self, limits: ProcessLimits) -> Spawn {
        self.settings.limits = limits;
        self
    }

    /// Decides about its run time and its code memory.
    #[must_use]
    pub fn run_time(mut self, runtime: RuntimeSettings, code: CodeSettings) -> Spawn {
        (self.settings.runtime, self.settings.code) = (runtime, code);
        self
    }

    /// Ends the process if a call with a deadline has not ended this long after it: code that does not poll, such as a function of C.
    #[must_use]
    pub fn kill_after(self, grace: Duration) -> Spawn {
        Spawn { kill_after: Some(grace), ..self }
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Receives the text that programs print.
pub trait Receiver: Send + Sync {
    /// Text, if the settings say that it is sent.
    fn print(&self, text: &[u8]);
    /// An error of the executor's standard output.
    fn unwritten(&self, error: io::Error);
}

/// An executor in a process of its own.
pub struct Process {
    spawn: Spawn,
    key: CacheKey,
    child: Mutex<Child>,
    /// Held while a request waits for its reply.
    replies: Mutex<UnixStream>,
    /// Held while a request is written.
    requests: Arc<Mutex<UnixStream>>,
    lanes: Mutex<Lanes>,
    lost: OnceLock<ExecutorLost>,
    output: Arc<dyn Receiver>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("spawn", &self.spawn)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Lanes {
    idle: Vec<Lane>,
    /// The number of the last call.
    calls: u64,
}

/// A connection for one call at a time.
struct Lane {
    stream: BufReader<UnixStream>,
    buffer: Vec<u8>,
    /// Whether reading has a time limit.
    is_timed: bool,
}

impl Process {
    /// Starts an executor.
    ///
    /// # Errors
    /// It cannot be started, or does not work together with this process.
    pub fn spawn(spawn: Spawn, output: Arc<dyn Receiver>) -> Result<Process, SpawnError> {
        Process::start(spawn, CacheKey::random()?, output)
    }

    /// Starts another process in the same way, with the same key. It has no units and cells.
    ///
    /// # Errors
    /// As [`Process::spawn`].
    pub fn another(&self) -> Result<Process, SpawnError> {
        Process::start(self.spawn.clone(), self.key.clone(), self.output.clone())
    }

    /// The key that programs for it are sealed with.
    pub fn key(&self) -> &CacheKey {
        &self.key
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Ends the process. Calls under way fail.
    pub fn kill(&self) {
        self.lose(Some(Ending::Requested));
    }

    fn done(&self, request: &Request) -> Result<(), ExecutorError> {
        match self.request(request)? {
            Reply::Done => Ok(()),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Status(_) => Err(self.not_due("a status")),
        }
    }
}

impl Executor for Process {
    fn load(&self, unit: UnitId, program: &[u8]) -> Result<(), ExecutorError> {
        self.done(&Request::Load { unit: unit.0, program: Blob(program.to_vec()) })
    }

    fn cell(&self, cell: CellId, symbol: &str) -> Result<(), ExecutorError> {
        self.done(&Request::Cell { cell: cell.0, symbol: symbol.to_owned() })
    }

    fn lead(&self, cell: CellId, unit: UnitId) -> Result<(), ExecutorError> {
        self.done(&Request::Lead { cell: cell.0, unit: unit.0 })
    }

    fn drop_cell(&self, cell: CellId) -> Result<(), ExecutorError> {
        self.done(&Request::Drop { cell: cell.0 })
    }

    fn retire(&self, unit: UnitId) -> Result<(), ExecutorError> {
        self.done(&Request::Retire { unit: unit.0 })
    }

    fn reset(&self, unit: UnitId) -> Result<(), ExecutorError> {
        self.done(&Request::Reset { unit: unit.0 })
    }

    fn call(
        &self,
        cell: CellId,
        given: Given,
        limits: &Limits,
        cx: &Arc<Context>,
    ) -> Result<Got, ExecutorError> {
        let (mut lane, number) = self.take_lane()?;
        let requests = Arc::downgrade(&self.requests);
        let cancel = move || {
            if let Some(requests) = requests.upgrade() {
                // If the process is gone, the call ends as well.
                let _ = send(&mut *lock(&requests), &mut Vec::new(), &Request::Cancel { call: number });
            }
        };
        let called = limits.elsewhere(cancel, |remaining| {
            match self.call_on(&mut lane, (number, cell, given), remaining) {
                Ok((outcome, fuel)) => (Ok(outcome), fuel),
                Err(error) => (Err(error), None),
            }
        });
        let outcome = match called {
            Ok(outcome) => outcome?,
            // Nothing was sent.
            Err(ended) => {
                self.give_back(lane);
                return Err(CallError::Ended(ended).into());
            }
        };
        self.give_back(lane);
        let ended = |ended| Err(CallError::Ended(ended).into());
        match outcome {
            Outcome::Returned(got) => Ok(got),
            Outcome::Threw(thrown) => match exception(thrown, cx) {
                Ok(exception) => Err(CallError::from(exception).into()),
                Err(error) => Err(ExecutorError::Values(error.to_string())),
            },
            Outcome::Ended(WireEnded::Deadline) => ended(Ended::Deadline),
            Outcome::Ended(WireEnded::Cancelled) => ended(Ended::Cancelled),
            Outcome::Ended(WireEnded::Fuel) => ended(Ended::Fuel),
            Outcome::Refused(ExecutorRefusal::NoPrices) => Err(CallError::NoPrices.into()),
            Outcome::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn status(&self) -> Result<Status, ExecutorError> {
        match self.request(&Request::Status)? {
            Reply::Status(status) => Ok(status),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Done => Err(self.not_due("a reply without a status")),
        }
    }
}

pub(crate) fn exception(thrown: Thrown, cx: &Arc<Context>) -> Result<Exception, GraphError> {
    let Thrown { kind, lead, message, ty, types, trace } = thrown;
    let kind = ExceptionKind::ALL.get(kind as usize).copied();
    let kind = kind.ok_or(GraphError::Malformed("an exception is of no kind"))?;
    // A type that the caller's program cannot name is unknown to it.
    let ty = types.read(cx).and_then(|listed| ty.get(&listed)).unwrap_or(brolga_ir::Type::ANY);
    let frames = trace.into_iter().map(|frame| StackFrame {
        address: frame.address as usize,
        function: frame.function,
        line: frame.line,
        column: frame.column,
        inlined: frame.inlined,
    });
    Ok(Exception::of_parts(kind, (lead, message), (cx.clone(), ty), frames.collect()))
}

impl Process {
    fn start(spawn: Spawn, key: CacheKey, output: Arc<dyn Receiver>) -> Result<Process, SpawnError> {
        let (mut stream, other) = UnixStream::pair()?;
        let mut command = Command::new(&spawn.program);
        command.args(&spawn.arguments).stdin(Stdio::from(OwnedFd::from(other)));
        let child = command.spawn();
        // The command keeps its end of the connection, which is to end with the process.
        drop(command);
        let program = spawn.program.clone();
        let mut child = child.map_err(|error| SpawnError::Start { program: program.clone(), error })?;
        let opened = stream.write_all(key.as_bytes()).map_err(WireError::from).map_err(OpenError::from);
        stream.set_read_timeout(Some(TO_BEGIN))?;
        let opened = opened.and_then(|()| open(&mut stream, &key, &Facts::new(), &spawn.settings));
        if let Err(error) = opened {
            drop(stream);
            let (status, was_killed) = end(&mut child);
            return Err(match (status, error) {
                // Not an executor, or one that the system has ended.
                (Some(status), OpenError::Wire(_)) if !was_killed => {
                    SpawnError::Ended { program, lost: lost(Some(status), None) }
                }
                (_, error) => error.into(),
            });
        }
        stream.set_read_timeout(None)?;
        Ok(Process {
            spawn,
            key,
            child: Mutex::new(child),
            requests: Arc::new(Mutex::new(stream.try_clone()?)),
            replies: Mutex::new(stream),
            lanes: Mutex::default(),
            lost: OnceLock::new(),
            output,
        })
    }

    /// Why the process is gone; `None` while it works, as far as is known.
    pub fn lost(&self) -> Option<ExecutorLost> {
        if let Some(lost) = self.lost.get() {
            return Some(lost.clone());
        }
        match lock(&self.child).try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(self.lost.get_or_init(|| lost(Some(status), None)).clone()),
            Err(_) => Some(self.lost.get_or_init(|| lost(None, None)).clone()),
        }
    }

    /// Ends the process, if it has not ended, for a reason of this process.
    fn lose(&self, reason: Option<Ending>) -> ExecutorLost {
        if let Some(lost) = self.lost.get() {
            return lost.clone();
        }
        let mut child = lock(&self.child);
        let (status, ended) = match reason {
            // A connection has ended, as when the process ends.
            None => {
                let (status, was_killed) = end(&mut child);
                (status, was_killed.then_some(Ending::Closed))
            }
            Some(reason) => {
                let status = child.try_wait().ok().flatten();
                let ended_before = status.is_some();
                // It may just have ended.
                let _ = child.kill();
                (status.or_else(|| child.wait().ok()), (!ended_before).then_some(reason))
            }
        };
        drop(child);
        let lost = self.lost.get_or_init(|| lost(status, ended)).clone();
        // Other threads wait for answers that do not come.
        let _ = lock(&self.requests).shutdown(std::net::Shutdown::Both);
        lock(&self.lanes).idle.clear();
        lost
    }

    /// The error for a failed message.
    fn failed(&self, error: WireError) -> ExecutorError {
        match error {
            // A message of this process that is too large was not sent.
            WireError::TooLong(_) | WireError::Malformed(_) | WireError::NotDue(_) => {
                self.lose(Some(Ending::Message(error.to_string()))).into()
            }
            WireError::Io(error) if is_timeout(&error) => self.lose(Some(Ending::NoAnswer)).into(),
            WireError::Io(_) => self.lose(None).into(),
        }
    }

    fn not_due(&self, what: &'static str) -> ExecutorError {
        self.failed(WireError::NotDue(what))
    }

    /// Sends a request, whose reply is not waited for.
    fn post(&self, request: &Request) -> Result<(), ExecutorError> {
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone().into());
        }
        let sent = send(&mut *lock(&self.requests), &mut Vec::new(), request);
        sent.map_err(|error| self.unsent(error))
    }

    /// The error for a message that was not sent.
    fn unsent(&self, error: WireError) -> ExecutorError {
        match error {
            WireError::Io(_) => self.failed(error),
            error => error.into(),
        }
    }

    fn request(&self, request: &Request) -> Result<Reply, ExecutorError> {
        let mut replies = lock(&self.replies);
        self.post(request)?;
        self.reply(&mut replies)
    }

    fn reply(&self, replies: &mut UnixStream) -> Result<Reply, ExecutorError> {
        match receive(replies, &mut Vec::new()) {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.lose(None).into()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// A lane, and the number of the call that it is for.
    fn take_lane(&self) -> Result<(Lane, u64), ExecutorError> {
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone().into());
        }
        let mut lanes = lock(&self.lanes);
        lanes.calls += 1;
        let (number, idle) = (lanes.calls, lanes.idle.pop());
        drop(lanes);
        match idle {
            Some(lane) => Ok((lane, number)),
            None => Ok((self.new_lane()?, number)),
        }
    }

    fn new_lane(&self) -> Result<Lane, ExecutorError> {
        let system = |error: io::Error| ExecutorRefusal::System(error.to_string());
        let (stream, other) = UnixStream::pair().map_err(system)?;
        let mut replies = lock(&self.replies);
        let mut requests = lock(&self.requests);
        let announced = send(&mut *requests, &mut Vec::new(), &Request::Lane);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [other.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let sent = announced.and_then(|()| {
            let byte = [IoSlice::new(&[0])];
            let sent = sendmsg(&*requests, &byte, &mut control, SendFlags::NOSIGNAL);
            sent.map(drop).map_err(|error| WireError::Io(error.into()))
        });
        // Losing the process takes the lock.
        drop(requests);
        sent.map_err(|error| self.unsent(error))?;
        match self.reply(&mut replies)? {
            Reply::Done => Ok(Lane { stream: BufReader::new(stream), buffer: Vec::new(), is_timed: false }),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Status(_) => Err(self.not_due("a status")),
        }
    }

    /// Keeps a lane whose call is over for another one.
    fn give_back(&self, lane: Lane) {
        if self.lost.get().is_none() {
            lock(&self.lanes).idle.push(lane);
        }
    }

    /// Makes a call on a lane, which is of no further use after an error.
    fn call_on(
        &self,
        lane: &mut Lane,
        (number, cell, given): (u64, CellId, Given),
        remaining: Remaining,
    ) -> Result<(Outcome, Option<u64>), ExecutorError> {
        let microseconds =
            remaining.time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1));
        let limits = WireLimits { microseconds, fuel: remaining.fuel, has_token: remaining.has_token };
        let limit = self.spawn.kill_after.and_then(|grace| remaining.time?.checked_add(grace));
        if limit.is_some() || lane.is_timed {
            let set = lane
                .stream
                .get_ref()
                .set_read_timeout(limit.map(|limit| limit.max(Duration::from_millis(1))));
            set.map_err(|error| self.failed(error.into()))?;
            lane.is_timed = limit.is_some();
        }
        let call = Call { number, cell: cell.0, given, limits };
        let Lane { stream, buffer, .. } = lane;
        send(stream.get_mut(), buffer, &call).map_err(|error| self.unsent(error))?;
        loop {
            match receive(stream, buffer) {
                Ok(Some(Answer::Done { outcome, fuel })) => return Ok((outcome, fuel)),
                Ok(Some(Answer::Output(Blob(text)))) => self.output.print(&text),
                Ok(Some(Answer::Unwritten(error))) => self.output.unwritten(match error.code {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::other(error.text),
                }),
                Ok(None) => return Err(self.lose(None).into()),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends with its connection.
        let _ = lock(&self.requests).shutdown(std::net::Shutdown::Both);
        end(&mut lock(&self.child));
    }
}

/// Waits until a process has ended, and ends it if that takes long. Returns how it ended, and whether it was killed.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no wait with a time limit for processes; they end at once when their connection does"
)]
fn end(child: &mut Child) -> (Option<ExitStatus>, bool) {
    let (begun, mut pause) = (Instant::now(), Duration::from_micros(100));
    while begun.elapsed() < TO_END {
        match child.try_wait() {
            Ok(Some(status)) => return (Some(status), false),
            Ok(None) => thread::sleep(pause),
            Err(_) => return (None, false),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    // It may just have ended.
    let _ = child.kill();
    (child.wait().ok(), true)
}

fn lost(status: Option<ExitStatus>, ended: Option<Ending>) -> ExecutorLost {
    let signal = status.and_then(|status| status.signal());
    ExecutorLost { signal, status: status.and_then(|status| status.code()), ended }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics between the steps of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::become_executor::connection;
    use crate::handshake::answer;

    struct Silent;

    impl Receiver for Silent {
        fn print(&self, _: &[u8]) {}

        fn unwritten(&self, _: io::Error) {}
    }

    /// An executor that is this test program again, in the test of this name.
    fn spawn(test: &str) -> Result<Process, SpawnError> {
        let program = std::env::current_exe().unwrap();
        let spawn =
            Spawn::new(program).arg("--exact").arg("--nocapture").arg(format!("process::tests::{test}"));
        Process::spawn(spawn.kill_after(Duration::from_millis(100)), Arc::new(Silent))
    }

    /// The connection of a process that was spawned as an executor, after the handshake.
    fn spawned() -> Option<UnixStream> {
        if !std::env::args().any(|arg| arg == "--exact") {
            return None;
        }
        let mut stream = connection().ok()?;
        let mut key = [0; 32];
        stream.read_exact(&mut key).ok()?;
        answer(&mut stream, &CacheKey::new(key), &Facts::new(), |_| Ok(())).ok()?;
        Some(stream)
    }

    /// Not a test of its own: an executor that answers with something that is not a message.
    #[test]
    fn answers_nonsense() {
        if let Some(mut stream) = spawned() {
            let _: Option<Request> = receive(&mut stream, &mut Vec::new()).unwrap();
            stream.write_all(&[3, 0, 0, 0, 200, 200, 200]).unwrap();
            let _ = stream.read(&mut [0]);
        }
    }

    /// Not a test of its own: an executor that answers with a status that was not requested.
    #[test]
    fn answers_something_else() {
        if let Some(mut stream) = spawned() {
            let _: Option<Request> = receive(&mut stream, &mut Vec::new()).unwrap();
            send(&mut stream, &mut Vec::new(), &Reply::Status(Status::default())).unwrap();
            let _ = stream.read(&mut [0]);
        }
    }

    /// Not a test of its own: an executor that announces a message of four gigabytes.
    #[test]
    fn announces_too_much() {
        if let Some(mut stream) = spawned() {
            let _: Option<Request> = receive(&mut stream, &mut Vec::new()).unwrap();
            stream.write_all(&u32::MAX.to_le_bytes()).unwrap();
            let _ = stream.read(&mut [0]);
        }
    }

    /// Not a test of its own: an executor that closes its connection and stays.
    #[test]
    fn closes_and_stays() {
        if let Some(stream) = spawned() {
            drop(stream);
            loop {
                thread::park();
            }
        }
    }

    /// Not a test of its own: an executor that takes lanes, and answers no call.
    #[test]
    fn answers_no_call() {
        if let Some(mut stream) = spawned() {
            let mut lanes = Vec::new();
            while let Ok(Some(request)) = receive::<Request>(&mut stream, &mut Vec::new()) {
                if let Request::Lane = request {
                    lanes.push(crate::serve::receive_lane(&stream).unwrap());
                }
                send(&mut stream, &mut Vec::new(), &Reply::Done).unwrap();
            }
        }
    }

    fn lost(result: Result<(), ExecutorError>) -> ExecutorLost {
        match result.unwrap_err() {
            ExecutorError::Lost(lost) => lost,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_executor_that_does_not_keep_the_protocol_is_ended() {
        for (test, said) in [
            ("answers_nonsense", "not a message"),
            ("answers_something_else", "not due"),
            ("announces_too_much", "longer than the limit"),
        ] {
            let process = spawn(test).unwrap();
            let ended = lost(process.cell(CellId(1), "f()"));
            assert!(matches!(&ended.ended, Some(Ending::Message(text)) if text.contains(said)), "{ended}");
            assert_eq!(lost(process.cell(CellId(2), "g()")), ended, "{test}: it stays lost");
        }
        let process = spawn("closes_and_stays").unwrap();
        assert_eq!(lost(process.cell(CellId(1), "f()")).ended, Some(Ending::Closed));
    }

    #[test]
    fn a_call_that_is_not_answered_in_time_ends_the_executor() {
        let process = spawn("answers_no_call").unwrap();
        process.cell(CellId(1), "f()").unwrap();
        let limits = Limits::new().timeout(Duration::from_millis(10));
        let called = process.call(CellId(1), Given::Low(Vec::new()), &limits, &Context::new());
        assert_eq!(lost(called.map(drop)).ended, Some(Ending::NoAnswer));
    }
}
