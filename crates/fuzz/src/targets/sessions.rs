//! Steps of several threads on one session, in an order determined by the input.
//!
//! ```text
//!   seed, steps ─► for each step: a thread, an operation, a name, whether to wait for its end before the next one begins
//!                    thread 0 ─ define ────────── call ───
//!                    thread 1 ────────── redefine ── drop       each thread takes its steps from a channel
//! ```
//!
//! A function `f` with name `n` returns `x` plus one of the numbers written for `n`, or the result of its
//! callee plus one. Concurrent steps may happen in any order, so a call may return any such value; other
//! steps are ordered. After every sequence the tables of the session are consistent, and everything can be
//! dropped. The fuzzer detects a hang.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use brolga_engine::session::{Dependants, Dylib, OnDrop};
use brolga_engine::{Options, Session, SessionError, Workers};
use brolga_jit::{CallError, TypedFunc};
use brolga_opt::OptLevel;
use brolga_runtime::{ExceptionKind, Output};

use super::Fault;

const THREADS: usize = 3;
const NAMES: usize = 4;
/// The maximum number of steps per input: enough for each thread to take each action on a few names.
const MOST: usize = 32;
/// The bound of the numbers in programs.
const NUMBERS: i64 = 100;
/// The maximum depth of calls between functions.
const DEPTH: i64 = NAMES as i64;

/// Four bytes of the input.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: usize,
    waits: bool,
    action: u8,
    name: usize,
    number: i64,
}

impl Step {
    fn read(bytes: [u8; 4]) -> Step {
        Step {
            thread: usize::from(bytes[0]) % THREADS,
            waits: bytes[0] & 0x40 == 0,
            action: bytes[1],
            name: usize::from(bytes[2]) % NAMES,
            number: i64::from(bytes[3]) % NUMBERS,
        }
    }
}

type Int = TypedFunc<(i64,), i64>;

/// The state that all threads share.
struct World {
    session: Session,
    dylibs: [Dylib; 2],
    handles: Mutex<Vec<Int>>,
    ended: Mutex<bool>,
    fault: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The source of a function: a leaf, or one that calls the next name, so that there are no cycles.
fn source(step: Step) -> String {
    let name = step.name;
    let callee = if name + 1 < NAMES && step.number % 3 == 0 {
        format!("invoke Main.f{}(x::Int64)::Int64", name + 1)
    } else {
        format!("Base.add_int(x, {})::Int64", step.number)
    };
    format!(
        "function f{name}(x::Int64)::Int64\n1 ─ %1 = {callee}\n│   %2 = Base.add_int(%1, 1)::Int64\n└──      return %2\nend\n"
    )
}

impl World {
    fn fail(&self, what: String) {
        lock(&self.fault).get_or_insert(what);
    }

    /// Calls with a large argument, so that any other value is detected.
    fn call(&self, func: &Int) {
        const BASE: i64 = 1 << 40;
        match func.call((BASE,)) {
            Ok(value) if (BASE..BASE + NUMBERS + 2 * DEPTH).contains(&value) => {}
            Ok(value) => self.fail(format!("a call returned {value}, which was never written")),
            // A callee may have been removed, or replaced by a function with other types.
            Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::CompileError => {
                self.text(&thrown.message);
            }
            Err(error) => self.fail(format!("a call failed: {error}")),
        }
    }

    fn refused(&self, error: &SessionError) {
        self.text(&error.to_string());
    }

    /// Errors must have a message, and must not be about panics.
    fn text(&self, text: &str) {
        if text.is_empty() || text.contains("panicked") {
            self.fail(format!("an error says: {text}"));
        }
    }

    fn done<T>(&self, result: Result<T, SessionError>) -> Option<T> {
        result.map_err(|error| self.refused(&error)).ok()
    }

    fn take(&self, step: Step) {
        let dylib = &self.dylibs[usize::from(step.action >> 4) % 2];
        let name = format!("f{}", step.name);
        match step.action % 16 {
            0..=3 => {
                let Some(read) = self.done(dylib.read("step", source(step).as_bytes())) else { return };
                let read = match step.action >> 5 {
                    0 | 1 => read,
                    2 | 3 => read.lazy(),
                    4 => read.tiered(2),
                    5 => read.replaceable(),
                    _ => read.tiered(3).interpreted(1),
                };
                if step.action % 16 < 2 {
                    self.done(dylib.define(read));
                } else {
                    self.done(dylib.redefine(read));
                }
            }
            4..=6 => {
                if let Some(func) = self.done(dylib.func::<(i64,), i64>(&name)) {
                    self.call(&func);
                    lock(&self.handles).push(func);
                }
            }
            7 => {
                let handles: Vec<Int> = lock(&self.handles).clone();
                handles.iter().rev().take(3).for_each(|func| self.call(func));
            }
            8 => drop(lock(&self.handles).pop()),
            9 | 10 => drop(self.done(dylib.remove(&[&name]))),
            11 => drop(self.done(dylib.open())),
            12 => drop(self.done(dylib.close())),
            13 => {
                // A tracker that removes its definition when it is dropped.
                if let Some(tracker) = self.done(dylib.create_tracker(OnDrop::Remove))
                    && let Some(read) = self.done(dylib.read("step", source(step).as_bytes()))
                {
                    self.done(dylib.tracked_by(&tracker).define(read));
                    if let Some(func) = self.done(dylib.func::<(i64,), i64>(&name)) {
                        self.call(&func);
                    }
                }
            }
            14 => {
                let policy = if step.number % 2 == 0 { Dependants::Keep } else { Dependants::Tombstone };
                self.done(dylib.clear(policy));
            }
            _ if step.number < 3 => {
                if !std::mem::replace(&mut *lock(&self.ended), true) {
                    self.session.end().iter().for_each(|error| self.refused(error));
                }
            }
            _ => drop(self.session.optimize_hot()),
        }
    }
}

/// Runs the steps encoded by the bytes, on a session whose tasks are ordered by a seed.
///
/// # Errors
/// A value that was never written, an error without a message or about a panic, inconsistent tables.
pub fn sessions(bytes: &[u8]) -> Result<(), Fault> {
    let failed = |error: &dyn std::error::Error| Fault(error.to_string());
    let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let workers = match first % 4 {
        0 => Workers::Caller,
        1 => Workers::Pool(1),
        _ => Workers::Seeded(u64::from(first)),
    };
    let options = Options::new().opt_level(OptLevel::O1).output(Output::Capture);
    let session = Session::new(options, workers).map_err(|error| failed(&error))?;
    let dylib = |name: &str| session.create_dylib(name).map_err(|error| failed(&error));
    let dylibs = [dylib("one")?, dylib("two")?];
    dylibs[1].link_against(&dylibs[0]).map_err(|error| failed(&error))?;
    let (handles, fault) = (Mutex::default(), Mutex::default());
    let world = World { session, dylibs, handles, ended: Mutex::new(false), fault };
    std::thread::scope(|scope| {
        let threads: Vec<mpsc::Sender<(Step, mpsc::Sender<()>)>> = (0..THREADS)
            .map(|_| {
                let (give, take) = mpsc::channel::<(Step, mpsc::Sender<()>)>();
                let world = &world;
                scope.spawn(move || {
                    for (step, done) in take {
                        let run = std::panic::AssertUnwindSafe(|| world.take(step));
                        if std::panic::catch_unwind(run).is_err() {
                            world.fail(format!("{step:?} panicked"));
                        }
                        // Steps that are not waited for have no receiver.
                        let _ = done.send(());
                    }
                });
                give
            })
            .collect();
        for bytes in rest.as_chunks::<4>().0.iter().take(MOST) {
            let step = Step::read(*bytes);
            let (done, wait) = mpsc::channel();
            // The thread lives as long as its sender.
            let _ = threads[step.thread].send((step, done));
            if step.waits {
                let _ = wait.recv();
            }
        }
    });
    if let Some(fault) = lock(&world.fault).take() {
        return Err(Fault(fault));
    }
    world.session.linking().check().map_err(|error| Fault(format!("the tables: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn steps_in_any_order_give_values_or_errors() {
        for seed in 0..150 {
            let mut rng = Rng::new(seed);
            let bytes: Vec<u8> = (0..1 + 4 * MOST).map(|_| rng.next_u64() as u8).collect();
            if let Err(fault) = sessions(&bytes) {
                panic!("seed {seed}: {fault}");
            }
        }
    }
}
