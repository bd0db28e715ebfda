//! Routines of the run time that would not end: each ends at the deadline of its call, or at once.
//!
//! A call that does not end cannot be stopped from within its process, so each row runs in a child, which is killed after a generous time.

#[path = "support/endless.rs"]
mod endless;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use brolga::interp::{Interp, Options as Steps, Outcome, SimMemory};
use brolga::limits::Ended;
use brolga::{CallError, Engine, Limits, OptLevel, Options, Program, TypedFunc};
use endless::{ENDLESS, Ends};

/// The variable that names the row which a child runs.
const ROW: &str = "BROLGA_TEST_ENDLESS";
/// A child that takes longer does not end.
const PATIENCE: Duration = Duration::from_secs(120);

fn call(level: OptLevel, text: &str) -> Result<i64, CallError> {
    let engine = Engine::new(Options::new().opt_level(level).heap_limit(Some(64 << 20))).unwrap();
    let program =
        Program::read("endless.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let main: TypedFunc<(i64,), i64> = engine.compile(&program).unwrap().func("main").unwrap();
    main.call_limited(&Limits::new().timeout(Duration::from_millis(100)), (1,))
}

/// In the interpreter, whose limit is a number of steps.
fn interpreted(text: &str) -> Result<Option<i64>, Outcome> {
    let program = Program::read("endless.jlir", text.as_bytes()).unwrap();
    let steps = Steps { max_steps: 100_000, max_heap_bytes: 256 << 20, ..Steps::default() };
    let mut interp = Interp::new(program.module(), steps, Box::new(SimMemory::default()));
    let one = brolga::interp::Val::int64(1);
    interp.call_named("main", &[one]).map(|val| val.as_int64())
}

#[test]
#[ignore = "a child of the test below"]
#[expect(clippy::disallowed_methods, reason = "the parent's harness passes no other argument on")]
fn child() {
    let Some(row) = std::env::var(ROW).ok().and_then(|row| row.parse::<usize>().ok()) else { return };
    let (name, ends, text) = ENDLESS[row];
    for level in OptLevel::ALL {
        let expected = match ends {
            Ends::Never => Err(CallError::Ended(Ended::Deadline)),
            Ends::With(value) => Ok(value),
        };
        assert_eq!(call(level, text), expected, "{name} at {level:?}");
    }
    match (ends, interpreted(text)) {
        (Ends::Never, Err(Outcome::OutOfFuel)) => {}
        (Ends::With(value), Ok(Some(found))) if value == found => {}
        (_, other) => panic!("{name} in the interpreter: {other:?}"),
    }
}

/// How a child ends, if it does.
#[expect(clippy::disallowed_methods, reason = "a process cannot be waited for with an end")]
fn patiently(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn routines_that_would_not_end_end_at_the_deadline() {
    for (row, (name, ..)) in ENDLESS.iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROW, row.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let status = patiently(&mut child);
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(status.is_some_and(|status| status.success()), "{name}: {status:?}");
    }
}
