//! Events of run times, and traces of `brolga run`: each file is checked against the rules of the trace-event format.
//!
//! The rules: every event has `ph`, `name`, `cat`, `pid`, `tid` and `ts`; times do not decrease; on each thread `E` ends the innermost `B`, and none is left open; an
//! `e` ends the `b` of its category and number, once; `i` has a scope; `C` has numbers alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use brolga::limits::Interrupt;
use brolga::observe::events::{Event, EventListener};
use brolga::{Options, Session, Workers};
use serde_json::Value;

/// A function that is called often, and a loop that continues for long.
const HOT: &str = "function fib(n::Int64)::Int64\n1 ─ %1 = Base.slt_int(n, 2)::Bool\n└──      goto #3 if not %1\n\
                   2 ─      return n\n3 ─ %4 = Base.sub_int(n, 1)::Int64\n│   %5 = invoke Main.fib(%4::Int64)::Int64\n\
                   │   %6 = Base.sub_int(n, 2)::Int64\n│   %7 = invoke Main.fib(%6::Int64)::Int64\n\
                   │   %8 = Base.add_int(%5, %7)::Int64\n└──      return %8\nend\n\
                   function main()::Nothing\n1 ─ %1 = invoke Main.fib(32::Int64)::Int64\n\
                   2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64\n│   %7 = φ (#1 => %1, #3 => %4)::Int64\n\
                   │   %3 = Base.slt_int(%2, 300000000)::Bool\n└──      goto #4 if not %3\n\
                   3 ─ %6 = Base.mul_int(%7, 3)::Int64\n│   %4 = Base.xor_int(%6, %2)::Int64\n\
                   │   %5 = Base.add_int(%2, 1)::Int64\n└──      goto #2\n\
                   4 ─      invoke Main.println(%7::Int64)::Nothing\n└──      return nothing\nend\n";

struct Run {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    trace: Value,
}

fn run(name: &str, program: &str, args: &[&str]) -> Run {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (file, trace) = (folder.join("program.jlir"), folder.join("trace.json"));
    fs::write(&file, program).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    let output = command.arg("run").args(args).arg("--trace").arg(&trace).arg(&file).output().unwrap();
    let text = fs::read_to_string(&trace).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    Run {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        trace: serde_json::from_str(&text).unwrap(),
    }
}

/// Holds a trace against the rules, and counts its events by phase and name.
fn count(trace: &Value) -> BTreeMap<(String, String), usize> {
    let events = trace["traceEvents"].as_array().expect("an array of events");
    let (mut last, mut counts) = (0.0, BTreeMap::new());
    let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut waits: BTreeMap<(String, u64), bool> = BTreeMap::new();
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap_or_else(|| panic!("`{key}` in {event}")).to_owned();
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("`{key}` in {event}"));
        let (phase, name, thread) = (text("ph"), text("name"), number("tid"));
        assert!(number("pid") > 0 && thread > 0 && !name.is_empty() && !text("cat").is_empty(), "{event}");
        let at = event["ts"].as_f64().unwrap_or_else(|| panic!("`ts` in {event}"));
        if phase != "M" {
            assert!(at >= last, "time goes back to {at} from {last}: {event}");
            last = at;
        }
        match phase.as_str() {
            "M" => assert!(event["args"]["name"].is_string(), "{event}"),
            "B" => open.entry(thread).or_default().push(name.clone()),
            "E" => assert_eq!(open.entry(thread).or_default().pop().as_ref(), Some(&name), "{event}"),
            "b" => assert_eq!(waits.insert((text("cat"), number("id")), true), None, "{event}"),
            "e" => assert_eq!(waits.insert((text("cat"), number("id")), false), Some(true), "{event}"),
            "i" => assert_eq!(text("s"), "t", "{event}"),
            "C" => {
                let values = event["args"].as_object().expect("values");
                assert!(!values.is_empty() && values.values().all(Value::is_number), "{event}");
            }
            other => panic!("phase `{other}`"),
        }
        *counts.entry((phase, name)).or_insert(0) += 1;
    }
    assert!(open.values().all(Vec::is_empty), "spans are open: {open:?}");
    assert!(waits.values().all(|waits| !waits), "tasks wait: {waits:?}");
    assert_eq!(trace["otherData"]["dropped"], 0);
    counts
}

fn at_least(counts: &BTreeMap<(String, String), usize>, wanted: &[(&str, &str)]) {
    for (phase, name) in wanted {
        let key = ((*phase).to_owned(), (*name).to_owned());
        assert!(counts.contains_key(&key), "no `{name}` ({phase}) in {counts:?}");
    }
}

#[test]
fn tiers_and_the_queue() {
    let run = run("tiers", HOT, &["--tiered", "100"]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.trim().parse::<i64>().is_ok(), "{}", run.stdout);
    let counts = count(&run.trace);
    let spans = [
        "task",
        "optimise",
        "inline",
        "lower",
        "early gvn",
        "place roots",
        "generate code",
        "link",
        "upgrade",
    ]
    .map(|name| ("B", name));
    at_least(&counts, &spans);
    at_least(&counts, &[("b", "queued"), ("i", "published"), ("i", "tiered up"), ("i", "left a loop")]);
}

#[test]
fn collections_and_their_pauses() {
    let program = "mutable struct Cell\n    val::Int64\nend\n\
                   function main()::Nothing\n1 ─      nothing::Nothing\n2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64\n\
                   │   %3 = Base.slt_int(%2, 1000)::Bool\n└──      goto #4 if not %3\n\
                   3 ─ %4 = %new(Main.Cell, %2)::Cell\n│        invoke Main.keep(%4::Cell)::Int64\n\
                   │   %5 = Base.add_int(%2, 1)::Int64\n└──      goto #2\n4 ─      return nothing\nend\n\
                   function keep(c::Cell)::Int64\n1 ─ %1 = Base.getfield(c, :val)::Int64\n│        \
                   invoke Main.print(c::Cell)::Nothing\n└──      return %1\nend\n";
    let run = run("heap", program, &["--gc-stress", "--stats"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("pause") && run.stderr.contains("generate code"), "{}", run.stderr);
    let counts = count(&run.trace);
    let parts =
        ["stop threads", "mark", "weak references", "verify", "sweep", "finalizers"].map(|name| ("B", name));
    at_least(&counts, &parts);
    at_least(&counts, &[("B", "collect"), ("i", "collected"), ("C", "objects"), ("i", "published")]);
}

#[test]
fn a_failed_run_has_a_trace() {
    let program =
        "function main()::Int64\n1 ─ %1 = Base.checked_sdiv_int(1, 0)::Int64\n└──      return %1\nend\n";
    for args in [&[][..], &["--tiered", "1"]] {
        let run = run("failed", program, args);
        assert_eq!(run.status, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("DivideError"), "{}", run.stderr);
        at_least(&count(&run.trace), &[("B", "optimise"), ("E", "generate code")]);
    }
}

/// Events of a session, as text, in their order.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl EventListener for Log {
    fn event(&self, event: Event<'_>) {
        if !matches!(event, Event::Begin { .. } | Event::End { .. } | Event::Published { .. }) {
            self.0.lock().unwrap().push(format!("{event:?}"));
        }
    }
}

fn adds(name: &str, n: i64) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, {n})::Int64\n└──      return %1\nend\n"
    )
}

fn listened(options: Options) -> (Session, Arc<Log>) {
    let (session, log) = (Session::new(options, Workers::Caller).unwrap(), Arc::new(Log::default()));
    assert!(session.runtime().events().listen(log.clone()));
    (session, log)
}

#[test]
fn invalidation_has_its_reason() {
    let (session, log) = listened(crate::doors::open(Options::new()));
    let main = session.create_dylib("main").unwrap();
    let calls = "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.base(x::Int64)::Int64\n└──      return %1\nend\n";
    let program = adds("base", 1) + calls;
    main.define(main.read("p.jlir", program.as_bytes()).unwrap().lazy()).unwrap();
    let top = main.func::<(i64,), i64>("top").unwrap();
    assert_eq!(top.call((1,)), Ok(2));
    main.redefine(main.read("p.jlir", adds("base", 10).as_bytes()).unwrap().lazy()).unwrap();
    assert_eq!(top.call((1,)), Ok(11));
    let told = log.0.lock().unwrap();
    let wanted = "Invalidated { function: \"`top(Int64)` of `main`\", reason: \"`top(Int64)` of `main` depends on \
                  `base(Int64)`, which was defined\" }";
    assert_eq!(told.iter().filter(|event| event.starts_with("Invalidated")).collect::<Vec<_>>(), [wanted]);
}

#[test]
fn evictions_are_told_as_often_as_they_are_counted() {
    const COUNT: usize = 40;
    let long = |n: usize| {
        let mut text = format!("function f{n}(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, 3)::Int64\n");
        for at in 2..80 {
            let op = ["xor_int", "add_int", "mul_int"][at % 3];
            text += &format!("│   %{at} = Base.{op}(%{}, {})::Int64\n", at - 1, at * 1_000_003 + n);
        }
        text + "└──      return %79\nend\n"
    };
    let program: String = (0..COUNT).map(long).collect();
    let run = |limit: Option<usize>, called: usize| {
        let (session, log) =
            listened(limit.into_iter().fold(crate::doors::open(Options::new()), Options::code_limit));
        let main = session.create_dylib("main").unwrap();
        main.define(main.read("p.jlir", program.as_bytes()).unwrap().lazy()).unwrap();
        let all: Vec<_> = (0..COUNT).map(|n| main.func::<(i64,), i64>(&format!("f{n}")).unwrap()).collect();
        for _ in 0..2 {
            all[..called].iter().for_each(|f| assert!(f.call((1,)).is_ok()));
        }
        (session.stats(), log)
    };
    let (some, log) = run(None, COUNT / 4);
    assert!(!log.0.lock().unwrap().iter().any(|event| event.starts_with("Evicted")));
    let (all, log) = run(Some(some.code.in_use), COUNT);
    let told = log.0.lock().unwrap();
    let told = told.iter().filter(|event| event.starts_with("Evicted")).count();
    assert!(all.evicted >= COUNT as u64, "{all:?}");
    assert_eq!(told as u64, all.evicted);
}

#[test]
fn an_interrupt_is_told_when_it_arrives() {
    let (session, log) = listened(crate::doors::open(Options::new()));
    let main = session.create_dylib("main").unwrap();
    let spin = "function spin()::Nothing\n1 ─      nothing::Nothing\n2 ┄      goto #2\nend\n";
    main.define(main.read("p.jlir", spin.as_bytes()).unwrap()).unwrap();
    let spin = main.func::<(), ()>("spin").unwrap();
    let interrupt = Interrupt::for_current(session.runtime()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A request that comes before the call is void.
            while !is_over.load(Ordering::Relaxed) {
                interrupt.raise();
                thread::yield_now();
            }
        });
        let result = spin.call(());
        is_over.store(true, Ordering::Relaxed);
        assert!(result.unwrap_err().to_string().contains("InterruptException"));
    });
    assert!(log.0.lock().unwrap().iter().any(|event| event == "Interrupted"));
}

#[path = "../../../tests/support/doors.rs"]
mod doors;
