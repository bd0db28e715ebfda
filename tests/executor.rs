//! Compiled code in a process of its own: calls, values, exceptions, limits and output as in process; the end of the process at any step.
//!
//! The executor is this test program again, which serves its controller in the test `become_executor`.

mod support {
    pub(crate) mod doors;
}

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brolga::cache::CacheKey;
use brolga::executor::{
    Ending, ExecutorError, ExecutorLost, ProcessLimits, RemoteEngine, RemoteError, RemoteUnit, Spawn,
    SpawnError, serve_controller,
};
use brolga::interp;
use brolga::interp::{Interp, SimMemory, Val};
use brolga::ir::{Module, Type};
use brolga::limits::{Cancel, Ended, Fuel};
use brolga::{
    CallError, Engine, Evaluator, ExceptionKind, Failure, Limits, LookupError, OptLevel, Options, Output,
    Program, Verdict,
};

use brolga_engine::remote::seal_program;
use brolga_executor::wire::{
    self, Answer, Blob, Call, ExecutorRefusal, Given, Got, LowArg, Outcome, Reply, Request, Status,
    WireLimits,
};
use brolga_executor::{Graph, fuzz};
use brolga_fuzz::rng::Rng;

const PROGRAM: &str = r#"
global count::Int64 = 0

struct Point
    x::Int64
    y::Float64
end

function fib(n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 2)::Bool
└──      goto #3 if not %1
2 ─      return n
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.fib(%4::Int64)::Int64
│   %6 = Base.sub_int(n, 2)::Int64
│   %7 = invoke Main.fib(%6::Int64)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end

function ratio(a::Int64, b::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(a, b)::Int64
└──      return %1
end

function refuse(n::Int64)::Int64
1 ─      invoke Base.error("no such thing"::String)::Union{}
└──      unreachable
end

function forever(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => n, #2 => %3)::Int64
│   %3 = Base.add_int(%2, 1)::Int64
└──      goto #2
end

function next(n::Int64)::Int64
1 ─ %1 = Main.count::Int64
│   %2 = Base.add_int(%1, n)::Int64
│        Core.setglobal!(Main, :count, %2)::Int64
└──      return %2
end

function label(text::String, n::Int64)::String
1 ─ %1 = invoke Base.string(text::String, n::Int64)::String
└──      return %1
end

function total(v::Vector{Int64})::Int64
1 ─ %1 = Base.arraylen(v)::Int64
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %8)::Int64
│   %4 = φ (#1 => 1, #3 => %9)::Int64
│   %5 = Base.sle_int(%4, %1)::Bool
└──      goto #4 if not %5
3 ─ %7 = Base.arrayref(true, v, %4)::Int64
│   %8 = Base.add_int(%3, %7)::Int64
│   %9 = Base.add_int(%4, 1)::Int64
└──      goto #2
4 ─      return %3
end

function moved(p::Point, n::Int64)::Point
1 ─ %1 = Base.getfield(p, :x)::Int64
│   %2 = Base.getfield(p, :y)::Float64
│   %3 = Base.add_int(%1, n)::Int64
│   %4 = %new(Main.Point, %3, %2)::Point
└──      return %4
end

function say(n::Int64)::Int64
1 ─      invoke Base.println(n::Int64)::Nothing
└──      return n
end
"#;

/// A program with a pointer, which needs open doors.
const WILD: &str = "
function peek(address::UInt64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Int64}, address)::Ptr{Int64}
│   %2 = Base.pointerref(%1, 1, 1)::Int64
└──      return %2
end
";

/// Not a test of its own: this process as an executor.
#[test]
fn become_executor() {
    if std::env::args().any(|arg| arg == "--exact") {
        // The controller sees how it ended.
        let _ = serve_controller();
    }
}

fn spawn() -> Spawn {
    Spawn::new(std::env::current_exe().unwrap()).arg("--exact").arg("--nocapture").arg("become_executor")
}

fn engine() -> RemoteEngine {
    RemoteEngine::spawn(Options::new(), spawn()).unwrap()
}

fn program(text: &str) -> Program {
    Program::read("executor.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The executor in a process, and the one in this process.
fn both() -> [(RemoteEngine, RemoteUnit); 2] {
    [engine(), RemoteEngine::in_process(Options::new()).unwrap()].map(|engine| {
        let unit = engine.compile(&program(PROGRAM)).unwrap();
        (engine, unit)
    })
}

#[expect(clippy::disallowed_methods, reason = "an event at some time during a call; no result depends on it")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn signal(error: &ExecutorError) -> Option<i32> {
    error.lost().unwrap_or_else(|| panic!("{error}")).signal
}

#[test]
fn calls_have_the_same_results_and_exceptions() {
    for (engine, unit) in both() {
        let fib = unit.func::<(i64,), i64>("fib").unwrap();
        assert_eq!(fib.call((20,)).unwrap(), 6765);
        let ratio = unit.func::<(i64, i64), i64>("ratio(Int64, Int64)").unwrap();
        assert_eq!(ratio.call((-7, 2)).unwrap(), -3);
        let error = ratio.call((1, 0)).unwrap_err();
        let exception = error.exception().unwrap();
        assert_eq!(exception.kind, ExceptionKind::DivideError);
        assert_eq!(exception.to_string(), "DivideError: integer division error");
        let frame = exception.trace().first().and_then(|frame| frame.function.clone());
        assert_eq!(frame.as_deref(), Some("ratio(Int64, Int64)"));
        let error = unit.func::<(i64,), i64>("refuse").unwrap().call((1,)).unwrap_err();
        assert_eq!(error.exception().unwrap().to_string(), "no such thing");
        let label = unit.func_of::<(String, i64), String>("label").unwrap();
        assert_eq!(label.call(("№ ".to_owned(), 7)).unwrap(), "№ 7");
        let total = unit.func_of::<(Vec<i64>,), i64>("total").unwrap();
        assert_eq!(total.call(((1..=1000).collect(),)).unwrap(), 500_500);
        assert_eq!(total.call((vec![],)).unwrap(), 0);
        let status = engine.status().unwrap();
        assert_eq!(status.units, 1);
    }
}

#[test]
fn what_does_not_fit_is_refused_here() {
    let (_engine, unit) = both().into_iter().next().unwrap();
    let missing = unit.func::<(i64,), i64>("fub").unwrap_err();
    assert!(matches!(missing, RemoteError::Lookup(LookupError::NoFunction { .. })), "{missing}");
    let wrong = unit.func::<(f64,), i64>("fib").unwrap_err();
    assert!(matches!(wrong, RemoteError::Lookup(LookupError::Argument { .. })), "{wrong}");
    assert!(unit.func::<(i64, i64), i64>("fib").is_err());
    assert!(unit.func_of::<(String,), i64>("total").is_err());
    assert!(unit.func_of::<(Vec<i64>,), String>("total").is_err());
    assert!(unit.func_of::<(Vec<i32>,), i64>("total").is_err());
}

#[test]
fn calls_run_at_the_same_time() {
    let engine = engine();
    let unit = engine.compile(&program(PROGRAM)).unwrap();
    let fib = unit.func::<(i64,), i64>("fib").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..200 {
                    assert_eq!(
                        fib.call((n % 15,)).unwrap(),
                        [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377][n as usize % 15]
                    );
                }
            });
        }
    });
}

#[test]
fn limits_end_calls_over_there() {
    for (_engine, unit) in both() {
        let forever = unit.func::<(i64,), i64>("forever").unwrap();
        let fib = unit.func::<(i64,), i64>("fib").unwrap();
        let ended = |error: ExecutorError| match error {
            ExecutorError::Call(CallError::Ended(ended)) => ended,
            other => panic!("{other}"),
        };
        let limits = Limits::new().timeout(Duration::from_millis(20));
        assert_eq!(ended(forever.call_limited(&limits, (0,)).unwrap_err()), Ended::Deadline);
        let cancel = Cancel::new();
        let limits = Limits::new().cancelled_by(&cancel);
        std::thread::scope(|scope| {
            let call = scope.spawn(|| ended(forever.call_limited(&limits, (0,)).unwrap_err()));
            pause(Duration::from_millis(30));
            cancel.cancel();
            assert_eq!(call.join().unwrap(), Ended::Cancelled);
        });
        assert_eq!(ended(fib.call_limited(&limits, (5,)).unwrap_err()), Ended::Cancelled, "before it begins");
        assert_eq!(fib.call((10,)).unwrap(), 55, "later calls work");
        let fuel = Limits::new().fuelled_by(&Fuel::new(100));
        let error = fib.call_limited(&fuel, (10,)).unwrap_err();
        assert!(matches!(error, ExecutorError::Call(CallError::NoPrices)), "{error}");
    }
}

#[test]
fn fuel_is_taken_as_in_process() {
    let own = Engine::new(Options::new().fuel(true)).unwrap();
    let here = own.compile(&program(PROGRAM)).unwrap().func::<(i64,), i64>("fib").unwrap();
    let remote = RemoteEngine::spawn(Options::new().fuel(true), spawn()).unwrap();
    let unit = remote.compile(&program(PROGRAM)).unwrap();
    let there = unit.func::<(i64,), i64>("fib").unwrap();
    let (mine, other) = (Fuel::new(100_000), Fuel::new(100_000));
    assert_eq!(here.call_limited(&Limits::new().fuelled_by(&mine), (15,)).unwrap(), 610);
    assert_eq!(there.call_limited(&Limits::new().fuelled_by(&other), (15,)).unwrap(), 610);
    assert_eq!(mine.left(), other.left());
    let little = Fuel::new(50);
    let error = there.call_limited(&Limits::new().fuelled_by(&little), (15,)).unwrap_err();
    assert!(matches!(error, ExecutorError::Call(CallError::Ended(Ended::Fuel))), "{error}");
    assert_eq!(little.left(), 0);
}

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u8>>>);

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_programs_print_arrives_before_the_result() {
    let collected = Collected::default();
    let options = Options::new().output(Output::Writer(Box::new(collected.clone())));
    let engine = RemoteEngine::spawn(options, spawn()).unwrap();
    let unit = engine.compile(&program(PROGRAM)).unwrap();
    let say = unit.func::<(i64,), i64>("say").unwrap();
    let mut expected = String::new();
    for n in 0..5 {
        assert_eq!(say.call((n,)).unwrap(), n);
        expected.push_str(&format!("{n}\n"));
        assert_eq!(String::from_utf8(collected.0.lock().unwrap().clone()).unwrap(), expected);
    }
    assert!(engine.take_output_error().is_none());
}

#[test]
fn a_wild_pointer_ends_the_executor_and_nothing_else() {
    let engine = RemoteEngine::spawn(support::doors::open(Options::new()), spawn()).unwrap();
    let unit = engine.compile(&program(WILD)).unwrap();
    let peek = unit.func::<(u64,), i64>("peek").unwrap();
    let other = engine.compile(&program(PROGRAM)).unwrap();
    let fib = other.func::<(i64,), i64>("fib").unwrap();
    assert_eq!(fib.call((10,)).unwrap(), 55);
    assert_eq!(signal(&peek.call((16,)).unwrap_err()), Some(11));
    assert_eq!(signal(&fib.call((10,)).unwrap_err()), Some(11), "it stays lost");
    let refused = engine.compile(&program(PROGRAM)).unwrap_err();
    assert_eq!(refused.lost().and_then(|lost| lost.signal), Some(11), "{refused}");
    assert!(engine.restart().unwrap());
    assert!(!engine.restart().unwrap(), "it works");
    assert_eq!(fib.call((10,)).unwrap(), 55, "handles stay valid");
    assert_eq!(signal(&peek.call((16,)).unwrap_err()), Some(11));
}

/// A script of 200 steps, during or before each of which the executor is killed.
#[test]
fn the_executor_is_killed_at_each_of_many_steps() {
    let engine = engine();
    let mut units: Vec<RemoteUnit> = Vec::new();
    let mut lost = 0;
    for step in 0..200u32 {
        // Killed by another one, as by the system's out-of-memory killer; every other time while it works.
        let process = engine.status().unwrap().process;
        let kill = || {
            let pid = rustix::process::Pid::from_raw(process as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        };
        if step.is_multiple_of(2) {
            kill();
        }
        let killer = (!step.is_multiple_of(2)).then(|| {
            std::thread::scope(|scope| {
                let killer = scope.spawn(|| {
                    pause(Duration::from_micros(u64::from(step) * 20));
                    kill();
                });
                let done = attempt(&engine, &units, step);
                killer.join().unwrap();
                done
            })
        });
        let mut done = killer.unwrap_or_else(|| attempt(&engine, &units, step));
        // The step is done again until it succeeds; the script then is where it was.
        while let Err(reason) = done {
            assert!(reason.signal == Some(9) || reason.ended == Some(Ending::Closed), "{reason}");
            lost += 1;
            engine.restart().unwrap();
            done = attempt(&engine, &units, step);
        }
        units.extend(done.unwrap());
        if units.len() > 5 {
            drop(units.remove(0));
        }
        // The signal may arrive after the step.
        while engine.status().is_err() {
            engine.restart().unwrap();
        }
        assert_eq!(engine.status().unwrap().units as usize, units.len(), "step {step}");
        for (at, unit) in units.iter().enumerate() {
            assert_eq!(
                unit.func::<(i64,), i64>("fib").unwrap().call((at as i64 + 5,)).unwrap(),
                [5, 8, 13, 21, 34][at]
            );
        }
    }
    assert!(lost >= 100, "{lost}");
}

/// One step of the script: a definition, a call of a kind, or a look-up.
fn attempt(
    engine: &RemoteEngine,
    units: &[RemoteUnit],
    step: u32,
) -> Result<Option<RemoteUnit>, ExecutorLost> {
    let loss = |error: RemoteError| error.lost().cloned().unwrap_or_else(|| panic!("step {step}: {error}"));
    let call = |error: ExecutorError| error.lost().cloned().unwrap_or_else(|| panic!("step {step}: {error}"));
    let Some(unit) = units.last().filter(|_| !step.is_multiple_of(5)) else {
        return engine.compile(&program(PROGRAM)).map(Some).map_err(loss);
    };
    match step % 5 {
        1 => {
            let fib = unit.func::<(i64,), i64>("fib").map_err(loss)?;
            assert_eq!(fib.call((18,)).map_err(call)?, 2584);
        }
        2 => {
            let label = unit.func_of::<(String, i64), String>("label").map_err(loss)?;
            assert_eq!(
                label.call(("step ".to_owned(), i64::from(step))).map_err(call)?,
                format!("step {step}")
            );
        }
        3 => {
            let error = unit.func::<(i64, i64), i64>("ratio").map_err(loss)?.call((1, 0)).unwrap_err();
            if error.exception().is_none() {
                return Err(call(error));
            }
        }
        _ => {
            let next = unit.func::<(i64,), i64>("next").map_err(loss)?;
            unit.reset().map_err(call)?;
            // The process may end between the two: then the variable has its first value in the next one.
            assert_eq!(next.call((1,)).map_err(call)?, 1);
        }
    }
    Ok(None)
}

#[test]
fn a_program_is_replaced_under_its_functions() {
    const NEWER: &str = "
function fib(n::Int64)::Int64
1 ─ %1 = Base.neg_int(n)::Int64
└──      return %1
end

function label(text::String, n::Int64)::String
1 ─      return text
end
";
    for (engine, unit) in both() {
        let fib = unit.func::<(i64,), i64>("fib").unwrap();
        let label = unit.func_of::<(String, i64), String>("label").unwrap();
        let ratio = unit.func::<(i64, i64), i64>("ratio").unwrap();
        let newer = unit.replace(&program(NEWER)).unwrap();
        assert_eq!(fib.call((20,)).unwrap(), -20);
        assert_eq!(label.call(("text".to_owned(), 1)).unwrap(), "text");
        assert_eq!(ratio.call((8, 2)).unwrap(), 4, "what the newer program does not have stays");
        assert_eq!(newer.func::<(i64,), i64>("fib").unwrap().call((1,)).unwrap(), -1);
        engine.kill();
        engine.restart().unwrap();
        assert_eq!(fib.call((20,)).unwrap(), -20, "also in another executor");
        drop((unit, ratio));
        assert_eq!(engine.status().unwrap().units, 1, "the former program is retired with its last function");
        let other = NEWER
            .replace("fib(n::Int64)::Int64", "fib(n::Int64)::Float64")
            .replace("Base.neg_int(n)::Int64", "Base.sitofp(Float64, n)::Float64");
        let refused = newer.replace(&program(&other)).unwrap_err();
        assert!(refused.to_string().contains("fib(Int64)"), "{refused}");
        assert_eq!(fib.call((20,)).unwrap(), -20, "nothing changed");
        assert_eq!(engine.status().unwrap().units, 1);
    }
}

#[test]
fn a_program_that_is_no_executor_is_refused() {
    for (path, argument) in [
        ("/bin/true", None),
        ("/bin/cat", None),
        ("/nowhere/executor", None),
        ("/bin/sh", Some("-c")),
        ("/bin/echo", Some("hello")),
    ] {
        let mut spawn = Spawn::new(path);
        if let Some(argument) = argument {
            spawn = spawn.arg(argument);
        }
        let error = RemoteEngine::spawn(Options::new(), spawn).unwrap_err();
        assert!(matches!(error, RemoteError::Spawn(_)), "{path}: {error}");
        if path == "/nowhere/executor" {
            assert!(matches!(error, RemoteError::Spawn(SpawnError::Start { .. })), "{error}");
        }
    }
}

#[test]
fn limits_of_the_process_are_the_system_s() {
    let limits = ProcessLimits { processor_seconds: Some(1), ..ProcessLimits::default() };
    let engine = RemoteEngine::spawn(Options::new(), spawn().limits(limits)).unwrap();
    let unit = engine.compile(&program(PROGRAM)).unwrap();
    let forever = unit.func::<(i64,), i64>("forever").unwrap();
    let ended = signal(&forever.call((0,)).unwrap_err());
    assert!(matches!(ended, Some(9 | 24)), "{ended:?}");
    engine.restart().unwrap();
    assert_eq!(unit.func::<(i64,), i64>("fib").unwrap().call((10,)).unwrap(), 55);
}

#[test]
fn tests_of_programs_pass_in_the_executor() {
    let remote =
        RemoteEngine::spawn(support::doors::open(Options::new().opt_level(OptLevel::O2)), spawn()).unwrap();
    let mut count = 0;
    for folder in ["examples", "tests/objects"] {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "jlir")) {
            let program = Program::read(path.to_str().unwrap(), &std::fs::read(path).unwrap()).unwrap();
            let mut evaluator = Evaluator::remote(&program, &remote, Limits::new());
            for check in program.checks() {
                match evaluator.check(check) {
                    Verdict::Passed => count += 1,
                    Verdict::Skipped { .. } => {}
                    Verdict::Failed { expected, got } => {
                        let source = program.source();
                        panic!(
                            "{}: {}: expected {expected}, got {got}",
                            path.display(),
                            source.slice(check.span)
                        );
                    }
                }
            }
        }
    }
    assert!(count > 800, "{count}");
}

#[test]
fn calls_as_text_say_how_the_executor_was_lost() {
    let program = program(PROGRAM);
    let remote = engine();
    let mut evaluator = Evaluator::remote(&program, &remote, Limits::new());
    assert_eq!(evaluator.call(&program.call("next(5)").unwrap()).unwrap(), "5");
    assert_eq!(
        evaluator.call(&program.call("next(5)").unwrap()).unwrap(),
        "5",
        "variables have first values"
    );
    assert_eq!(evaluator.call(&program.call("moved(Point(1, 2.5), 3)").unwrap()).unwrap(), "Point(4, 2.5)");
    let thrown = evaluator.call(&program.call("ratio(1, 0)").unwrap()).unwrap_err();
    assert!(
        matches!(&thrown, Failure::Thrown { ty: Some(_), text, .. } if text.starts_with("DivideError")),
        "{thrown}"
    );
    remote.kill();
    let failed = evaluator.call(&program.call("fib(5)").unwrap()).unwrap_err();
    assert!(failed.to_string().contains("ended by the controller"), "{failed}");
    remote.restart().unwrap();
    assert_eq!(evaluator.call(&program.call("fib(5)").unwrap()).unwrap(), "5");
}

/// Frames of both directions: handshake aside, one of each message.
fn frames(module: &Module) -> Vec<Vec<u8>> {
    let frame = |bytes: &mut Vec<u8>| std::mem::take(bytes);
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    let mut interp = Interp::new(module, interp::Options::default(), Box::<SimMemory>::default());
    let func = |name: &str| {
        module.funcs().map(|(_, func)| func).find(|func| func.spelled_name(&module.cx) == name).unwrap()
    };
    let callee = Val::Singleton(func("label").sig.params[0].ty);
    let text = interp.string(b"some text").unwrap();
    let numbers: Vec<Val> = (0..20).map(Val::int64).collect();
    let vector = interp.array(Type::INT64, &[4, 5], &numbers).unwrap();
    let point = func("moved").sig.params[1].ty;
    let point = Val::aggregate(point, vec![Some(Val::int64(1)), Some(Val::float64(2.5))]);
    let elements =
        [text.clone(), vector.clone(), text.clone(), point, Val::Symbol(module.cx.names.intern("x"))];
    let mixed = interp.array(Type::ANY, &[5], &elements).unwrap();
    let tuple = interp.tuple(&[mixed.clone(), mixed, Val::NOTHING, Val::Type(Type::INT64)]).unwrap();
    let graphs = [vec![callee.clone(), text, Val::int64(7)], vec![callee, tuple]];
    for values in graphs {
        let graph = Graph::encode(&mut interp, &values).unwrap();
        let limits = WireLimits::default();
        let call = Call { number: 1, cell: 1, given: Given::Objects(graph.clone()), limits };
        wire::frame(&mut bytes, &call).unwrap();
        all.push(frame(&mut bytes));
        let outcome = Outcome::Returned(Got::Object(graph));
        wire::frame(&mut bytes, &Answer::Done { outcome, fuel: None }).unwrap();
        all.push(frame(&mut bytes));
    }
    let low = vec![LowArg::Bits(7), LowArg::Memory(Blob(vec![1; 80])), LowArg::Room(80)];
    let call = Call {
        number: 2,
        cell: 1,
        given: Given::Low(low),
        limits: WireLimits { fuel: Some(9), microseconds: Some(50), has_token: true },
    };
    wire::frame(&mut bytes, &call).unwrap();
    all.push(frame(&mut bytes));
    let program = Blob(
        seal_program(&Engine::new(Options::new()).unwrap(), &program(PROGRAM), &CacheKey::new([7; 32]))
            .unwrap()[32..]
            .to_vec(),
    );
    let requests = [
        Request::Load { unit: 3, program },
        Request::Cell { cell: 4, symbol: "fib(Int64)".into() },
        Request::Lead { cell: 1, unit: 1 },
        Request::Reset { unit: 1 },
        Request::Cancel { call: 3 },
        Request::Status,
    ];
    for request in &requests {
        wire::frame(&mut bytes, request).unwrap();
        all.push(frame(&mut bytes));
    }
    for reply in [Reply::Done, Reply::Refused(ExecutorRefusal::NoUnit(3)), Reply::Status(Status::default())] {
        wire::frame(&mut bytes, &reply).unwrap();
        all.push(frame(&mut bytes));
    }
    all
}

/// A short run of the fuzz target: damaged frames, in both directions.
#[test]
fn damaged_messages_are_errors() {
    read_damaged(20_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_messages_are_errors() {
    read_damaged(1_000_000);
}

fn read_damaged(count: usize) {
    let read = program(PROGRAM);
    let key = CacheKey::new([7; 32]);
    let sealed = seal_program(&Engine::new(Options::new()).unwrap(), &read, &key).unwrap();
    let target = fuzz::Target::new(key, &sealed, "label(String, Int64)").unwrap();
    let (seeds, mut rng) = (frames(read.module()), Rng::new(44));
    seeds.iter().for_each(|seed| target.read(seed));
    for _ in 0..count {
        let mut bytes = rng.pick(&seeds).unwrap().clone();
        for _ in 0..rng.between(1, 4) {
            let at = rng.below(bytes.len());
            match rng.below(5) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = rng.next_u64() as u8,
                2 => bytes.truncate(at.max(5)),
                3 => bytes.insert(at, rng.next_u64() as u8),
                _ => {
                    let other = rng.pick(&seeds).unwrap();
                    bytes.extend_from_slice(&other[..rng.below(other.len())]);
                }
            }
        }
        // A length that fits, so that more than the first check is reached.
        if rng.chance(80) && bytes.len() >= 4 {
            let length = (bytes.len() - 4) as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
        }
        target.read(&bytes);
    }
}
