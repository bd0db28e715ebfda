//! Every request of a page, permission, thread or file is refused once, one after another, and then all from one on.
//!
//! ```text
//!   scenario without faults ─► n calls          for each of them, and each way to fail:
//!                                                 under faults   values, or errors of known types
//!                                                 afterwards     existing objects work, failed operations are repeated
//!                                                 dropped        as many mappings, threads and open files as before
//! ```
//!
//! `system.rs` says how calls fail. Scenarios with several threads make a varying number of calls, so a sweep ends with the first run in which nothing
//! failed; scenarios of one thread have to make as many calls each time.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(
    clippy::disallowed_methods,
    reason = "threads of other sessions end without notice, and are waited for by their number"
)]

mod scenarios;
mod system;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brolga::{CallError, Error, ExceptionKind, Fault, SessionError};
use system::Plan;

/// One run of a scenario.
pub(crate) struct Run {
    plan: Plan,
    calls: Cell<usize>,
    failed: Cell<usize>,
    /// Errors that the faults led to, each with how often it came.
    errors: RefCell<BTreeMap<String, usize>>,
}

impl Run {
    /// Does something while calls may fail, once in each run.
    pub(crate) fn under<T>(&self, body: impl FnOnce() -> T) -> T {
        system::arm(self.plan);
        let done = body();
        let (calls, failed) = system::disarm();
        self.calls.set(calls);
        self.failed.set(failed);
        done
    }

    /// A result, or an error that has to be one of a machine without memory.
    pub(crate) fn take<T, E: Refusal>(&self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                assert!(self.plan != Plan::Count, "without a fault: {error}");
                assert!(error.is_of_the_system(), "{:?}: {error:?}: {error}", self.plan);
                assert!(!error.to_string().contains("panicked"), "{:?}: {error}", self.plan);
                *self.errors.borrow_mut().entry(error.kind()).or_default() += 1;
                None
            }
        }
    }
}

/// An error that a fault may lead to.
pub(crate) trait Refusal: fmt::Display + fmt::Debug {
    /// Whether it says that the system refused something.
    fn is_of_the_system(&self) -> bool;

    /// Its text without numbers and names.
    fn kind(&self) -> String {
        let text = self.to_string();
        text.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
    }
}

impl Refusal for Error {
    fn is_of_the_system(&self) -> bool {
        self.fault() == Fault::World
    }
}

impl Refusal for SessionError {
    fn is_of_the_system(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        let mut last = String::new();
        while let Some(error) = cause {
            last = error.to_string();
            cause = error.source();
        }
        names_the_system(&last) || self.causes().last().is_some_and(|cause| names_the_system(cause))
    }
}

impl Refusal for CallError {
    fn is_of_the_system(&self) -> bool {
        match self {
            CallError::Exception(thrown) => match thrown.kind {
                ExceptionKind::OutOfMemoryError => true,
                ExceptionKind::CompileError => names_the_system(&thrown.message),
                _ => false,
            },
            CallError::Attach(_) => names_the_system(&self.to_string()),
            _ => false,
        }
    }
}

impl Refusal for std::io::Error {
    fn is_of_the_system(&self) -> bool {
        self.raw_os_error().is_some()
    }
}

/// Whether a text speaks of memory, files or threads that the system refuses.
fn names_the_system(text: &str) -> bool {
    ["memory", "os error", "thread", "address space"].iter().any(|word| text.contains(word))
}

/// Resources of the process that must not leak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    mapped: i64,
    files: usize,
    threads: usize,
}

impl Held {
    fn entries(folder: &str) -> usize {
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    fn now() -> Held {
        Held {
            mapped: system::mapped(),
            files: Held::entries("/proc/self/fd"),
            threads: Held::entries("/proc/self/task"),
        }
    }

    /// The resources when they do not change for a time: the last worker of a session drops some.
    fn at_rest() -> Held {
        let (mut last, mut since) = (Held::now(), Instant::now());
        while since.elapsed() < Duration::from_millis(100) {
            std::thread::sleep(Duration::from_millis(5));
            let now = Held::now();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    /// The resources when they are those of the start, or after a time in which ended threads go.
    fn settled(first: Held) -> Held {
        let begin = Instant::now();
        loop {
            let now = Held::now();
            if now == first || begin.elapsed() > Duration::from_secs(5) {
                return now;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs a scenario without faults, then with each.
fn sweep(name: &str, scenario: impl Fn(&Run)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let run = |plan| {
        let run = Run { plan, calls: Cell::new(0), failed: Cell::new(0), errors: RefCell::default() };
        scenario(&run);
        run
    };
    // Made once in a process.
    run(Plan::Count);
    let calls = run(Plan::Count).calls.get();
    assert!(calls > 0, "{name} asks the system for nothing");
    let first = Held::at_rest();
    let mut errors = BTreeMap::new();
    let mut faults = 0;
    for way in [Plan::Once as fn(usize) -> Plan, Plan::From] {
        for at in 0.. {
            let done = run(way(at));
            let held = Held::settled(first);
            assert_eq!(held, first, "{name} with {:?} keeps what it had", way(at));
            for (error, count) in done.errors.take() {
                *errors.entry(error).or_insert(0) += count;
            }
            if done.failed.get() == 0 {
                break;
            }
            faults += done.failed.get();
        }
    }
    println!("{name}: {calls} calls, {faults} faults: {errors:#?}");
}

#[path = "../support/doors.rs"]
mod doors;
