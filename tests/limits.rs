//! Hostile programs under limits: each ends with the right error, with any handlers, and later calls work.
//!
//! Rows are programs, columns are limits: a deadline, a token that another thread cancels, one that was cancelled before, fuel. The latency of ends is not
//! tested here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brolga::heap::Finalizer;
use brolga::host::Handle;
use brolga::limits::{Cancel, Ended, Fuel, LimitError};
use brolga::observe::events::{Event, EventListener, Stage};
use brolga::opt::OptError;
use brolga::session::{Session, Signature, Workers};
use brolga::{
    CallError, Engine, Error, ExceptionKind, Limits, OptLevel, Options, Output, Program, TypedFunc,
};

/// Something that ends.
const FINE: &str = "
function fine(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %4)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %2
end
";

type Int = TypedFunc<(i64,), i64>;

fn options(level: OptLevel) -> Options {
    Options::new()
        .opt_level(level)
        .heap_limit(Some(16 << 20))
        .output(Output::Writer(Box::new(std::io::sink())))
}

/// `main` and `fine` of a program, compiled before.
fn functions(level: OptLevel, text: &str) -> (Engine, Int, Int) {
    functions_with(options(level), text)
}

fn functions_with(options: Options, text: &str) -> (Engine, Int, Int) {
    let engine = Engine::new(options).unwrap();
    let text = format!("{text}\n{FINE}");
    let program =
        Program::read("hostile.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let unit = engine.compile(&program).unwrap();
    (engine, unit.func("main").unwrap(), unit.func("fine").unwrap())
}

/// Calls under each limit.
fn ends(name: &str, main: &Int, fine: &Int) {
    let ended = main.call_limited(&Limits::new().timeout(Duration::from_millis(5)), (0,));
    assert_eq!(ended, Err(CallError::Ended(Ended::Deadline)), "{name}");
    assert_eq!(fine.call((1000,)), Ok(1000), "{name}");
    let cancel = Cancel::new();
    let limits = Limits::new().cancelled_by(&cancel);
    std::thread::scope(|threads| {
        threads.spawn(|| cancel.cancel());
        assert_eq!(main.call_limited(&limits, (0,)), Err(CallError::Ended(Ended::Cancelled)), "{name}");
    });
    assert_eq!(main.call_limited(&limits, (0,)), Err(CallError::Ended(Ended::Cancelled)), "{name}: sticky");
    assert_eq!(fine.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Cancelled)), "{name}: sticky");
    cancel.clear();
    assert_eq!(fine.call_limited(&limits, (1000,)), Ok(1000), "{name}");
}

#[test]
fn every_hostile_program_ends_at_every_limit_at_every_level() {
    for (name, text) in hostile::HOSTILE.into_iter().chain(hostile::NATIVE) {
        for level in OptLevel::ALL {
            let (_engine, main, fine) = functions(level, text);
            ends(&format!("{name} at {level:?}"), &main, &fine);
        }
    }
}

/// The effects of a program until its fuel is used up are the same at every level.
#[test]
fn every_hostile_program_ends_without_fuel_at_every_level() {
    // Routines of the run time have no price, so less fuel is as good in those.
    let native = hostile::NATIVE.into_iter().map(|(name, text)| (name, text, 100));
    for (name, text, units) in
        hostile::HOSTILE.map(|(name, text)| (name, text, 1_000_000)).into_iter().chain(native)
    {
        for level in OptLevel::ALL {
            let (_engine, main, fine) = functions_with(options(level).fuel(true), text);
            let fuel = Fuel::new(units);
            let limits = Limits::new().fuelled_by(&fuel);
            let ended = main.call_limited(&limits, (0,));
            assert_eq!(ended, Err(CallError::Ended(Ended::Fuel)), "{name} at {level:?}");
            assert_eq!(fuel.left(), 0, "{name} at {level:?}");
            assert_eq!(
                fine.call_limited(&limits, (1,)),
                Err(CallError::Ended(Ended::Fuel)),
                "{name}: sticky"
            );
            assert_eq!(fine.call((1000,)), Ok(1000), "{name} at {level:?}");
        }
    }
}

#[test]
fn every_hostile_program_ends_in_sessions_in_every_tier() {
    for (name, text) in hostile::HOSTILE {
        for tier in 0..3 {
            let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
            let dylib = session.create_dylib("main").unwrap();
            let read = dylib.read("hostile.jlir", format!("{text}\n{FINE}").as_bytes()).unwrap();
            let read = match tier {
                0 => read.tiered(1000).interpreted(10),
                1 => read.tiered(1000).iterations(500),
                _ => read.lazy(),
            };
            dylib.define(read).unwrap();
            let (main, fine) = (dylib.func("main").unwrap(), dylib.func("fine").unwrap());
            ends(&format!("{name} in tier {tier}"), &main, &fine);
            session.end();
        }
    }
}

/// A closure of the host that is called by an ended call sees the end as an error of its own calls; what it makes of that does not matter.
#[test]
fn a_host_function_cannot_swallow_the_end() {
    let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
    let (host, main) = (session.create_dylib("host").unwrap(), session.create_dylib("main").unwrap());
    main.link_against(&host).unwrap();
    let int = brolga::ir::Type::INT64;
    let inner = "function inner(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end";
    host.define(host.read("inner.jlir", inner.as_bytes()).unwrap()).unwrap();
    let inner: Int = host.func("inner").unwrap();
    host.define_host(&Signature::new("swallow", &[int], int), move |scope, args| {
        let n: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        let ended = scope.call_out(|| inner.call((n,)));
        assert!(matches!(ended, Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::InterruptException));
        scope.int(n).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    let text = "function outer(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #4
3 ─      invoke Main.swallow(n::Int64)::Int64
│        $(Expr(:leave, :(%2)))
└──      goto #2
4 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end";
    main.define(main.read("outer.jlir", text.as_bytes()).unwrap()).unwrap();
    let outer: Int = main.func("outer").unwrap();
    let ended = outer.call_limited(&Limits::new().timeout(Duration::from_millis(5)), (1,));
    assert_eq!(ended, Err(CallError::Ended(Ended::Deadline)));
}

/// A host function that waits asks whether it waits in vain.
#[test]
fn a_waiting_host_function_sees_the_end() {
    let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    hostile::waiting(&dylib, session.runtime());
    dylib.define(dylib.read("fine.jlir", FINE.as_bytes()).unwrap()).unwrap();
    let (main, fine) = (dylib.func("main").unwrap(), dylib.func("fine").unwrap());
    ends("waits in the host", &main, &fine);
    session.end();
}

/// Finalizers that call the program are under the limits of the call in which the collection came, and the others wait for the next collection.
#[test]
fn finalizers_end_with_the_call_and_the_others_wait() {
    let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let text = format!(
        "mutable struct Cell
    value::Int64
end
function spin(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end
function make(n::Int64)::Any
1 ─ %1 = %new(Cell, n)::Cell
└──      return %1
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = invoke Main.make(n::Int64)::Any noinline
│        Core.donotdelete(%2)::Nothing
└──      goto #2
end
{FINE}"
    );
    dylib.define(dylib.read("cells.jlir", text.as_bytes()).unwrap()).unwrap();
    let (main, fine, spin): (Int, Int, Int) =
        (dylib.func("main").unwrap(), dylib.func("fine").unwrap(), dylib.func("spin").unwrap());
    let make = dylib.func_in::<(i64,), Handle>("make").unwrap();
    let (begun, spun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    session
        .runtime()
        .enter(|scope| {
            for n in 0..100 {
                scope.frame(|scope| {
                    let cell = make.call(scope, (n,)).unwrap();
                    let (spin, begun, spun) = (spin.clone(), begun.clone(), spun.clone());
                    let spins = Finalizer::visit(move |scope, _| {
                        begun.fetch_add(1, Ordering::Relaxed);
                        let ended = scope.call_out(|| spin.call((0,)));
                        spun.fetch_add(u64::from(ended.is_err()), Ordering::Relaxed);
                    });
                    scope.finalizer(cell.get(scope), spins);
                });
            }
        })
        .unwrap();
    let mut calls = 0;
    while begun.load(Ordering::Relaxed) < 3 {
        let soon = Limits::new().timeout(Duration::from_millis(20));
        assert_eq!(main.call_limited(&soon, (0,)), Err(CallError::Ended(Ended::Deadline)));
        calls += 1;
        let begun = begun.load(Ordering::Relaxed);
        assert_eq!(begun, spun.load(Ordering::Relaxed), "each one ends");
        assert!(begun <= calls, "{begun} have begun in {calls} calls");
        assert_eq!(fine.call((1000,)), Ok(1000));
    }
    session.end();
}

/// Limits of a call that a host function makes end that call; the one around it continues.
#[test]
fn inner_limits_end_the_inner_call() {
    let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let int = brolga::ir::Type::INT64;
    let text = "function spin(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end";
    dylib.define(dylib.read("spin.jlir", text.as_bytes()).unwrap()).unwrap();
    let spin: Int = dylib.func("spin").unwrap();
    dylib
        .define_host(&Signature::new("briefly", &[int], int), move |scope, args| {
            let n: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
            let limits = Limits::new().timeout(Duration::from_millis(2));
            let ended = scope.call_out(|| spin.call_limited(&limits, (n,)));
            assert_eq!(ended, Err(CallError::Ended(Ended::Deadline)));
            scope.int(n + 1).map_err(|error| scope.throw_error(&error.to_string()))
        })
        .unwrap();
    let text = "function main(n::Int64)::Int64
1 ─ %1 = invoke Main.briefly(n::Int64)::Int64
│   %2 = invoke Main.briefly(%1::Int64)::Int64
└──      return %2
end";
    dylib.define(dylib.read("main.jlir", text.as_bytes()).unwrap()).unwrap();
    let main: Int = dylib.func("main").unwrap();
    assert_eq!(main.call_limited(&Limits::new().timeout(Duration::from_secs(60)), (1,)), Ok(3));
    assert_eq!(main.call((1,)), Ok(3));
}

#[test]
fn limits_that_are_not_reached_change_nothing_and_those_in_the_past_run_nothing() {
    let (engine, _, fine) = functions(OptLevel::O2, hostile::HOSTILE[0].1);
    let far = Limits::new().timeout(Duration::from_secs(3600)).cancelled_by(&Cancel::new());
    assert_eq!(fine.call_limited(&far, (10,)), Ok(10));
    let past = Limits::new().deadline(Instant::now());
    assert_eq!(fine.call_limited(&past, (10,)), Err(CallError::Ended(Ended::Deadline)));
    // Several calls under one limit: after the end there is none any more.
    let ended = engine.runtime().limited(&Limits::new().timeout(Duration::from_millis(2)), || {
        let mut calls = 0u64;
        while fine.call((100_000,)).is_ok() {
            calls += 1;
        }
        assert!(fine.call((100_000,)).is_err());
        calls
    });
    assert_eq!(ended, Err(LimitError::Ended(Ended::Deadline)));
    assert_eq!(fine.call((10,)), Ok(10));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "time has to pass between two calls")]
fn a_timeout_counts_from_the_start_of_each_call() {
    let (engine, main, fine) = functions(OptLevel::O2, hostile::HOSTILE[0].1);
    let limits = Limits::new().timeout(Duration::from_millis(30));
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(engine.runtime().limited(&limits, || ()), Ok(()));
        assert_eq!(fine.call_limited(&limits, (10,)), Ok(10));
    }
    assert_eq!(main.call_limited(&limits, (0,)), Err(CallError::Ended(Ended::Deadline)));
    // The earlier of both ends counts.
    let far = Limits::new().timeout(Duration::from_secs(3600)).deadline(Instant::now());
    assert_eq!(fine.call_limited(&far, (10,)), Err(CallError::Ended(Ended::Deadline)));
    // One that no clock shows is none.
    assert_eq!(fine.call_limited(&Limits::new().timeout(Duration::MAX), (10,)), Ok(10));
}

#[test]
fn fuel_for_programs_without_prices_is_an_error() {
    let limits = Limits::new().fuelled_by(&Fuel::new(1000));
    let (engine, _, fine) = functions(OptLevel::O2, hostile::HOSTILE[0].1);
    assert_eq!(fine.call_limited(&limits, (10,)), Err(CallError::NoPrices));
    assert_eq!(engine.runtime().limited(&limits, || ()), Err(LimitError::NoPrices));
    let error = LimitError::NoPrices.to_string();
    assert!(error.contains("Options::fuel"), "{error}");
    // Another engine of the run time, or a priced program, takes fuel.
    let _other = Engine::on(engine.runtime(), Options::new().fuel(true)).unwrap();
    assert_eq!(fine.call_limited(&limits, (10,)), Ok(10));
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let program = || Program::read("fine.jlir", FINE.as_bytes()).unwrap();
    dylib.define(program().priced()).unwrap();
    let fine: Int = dylib.func("fine").unwrap();
    assert_eq!(fine.call_limited(&Limits::new().fuelled_by(&Fuel::new(1000)), (10,)), Ok(10));
}

/// Threads share a token; each has its own deadline.
#[test]
fn limits_are_those_of_their_thread() {
    let (_engine, main, fine) = functions(OptLevel::O2, hostile::HOSTILE[1].1);
    let cancel = Cancel::new();
    std::thread::scope(|threads| {
        for n in 0..4 {
            let (main, fine, cancel) = (&main, &fine, &cancel);
            threads.spawn(move || {
                let limits = Limits::new().cancelled_by(cancel);
                match n {
                    0 => {
                        let soon = limits.timeout(Duration::from_millis(3));
                        assert_eq!(main.call_limited(&soon, (0,)), Err(CallError::Ended(Ended::Deadline)));
                        assert_eq!(fine.call((100,)), Ok(100));
                        cancel.cancel();
                    }
                    _ => {
                        let ended = main.call_limited(&limits, (0,));
                        assert_eq!(ended, Err(CallError::Ended(Ended::Cancelled)));
                    }
                }
            });
        }
    });
}

/// A function of this many statements, none of which is left out.
fn large(statements: usize) -> Program {
    let mut text = "function large(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n".to_owned();
    for n in 2..statements {
        text += &format!("│   %{n} = Base.mul_int(%{}, n)::Int64\n", n - 1);
    }
    text += &format!("└──      return %{}\nend\n", statements - 1);
    Program::read("large.jlir", text.as_bytes()).unwrap()
}

#[test]
fn compilations_end_at_their_limits() {
    let stopped = |error: Option<Error>| {
        matches!(error, Some(Error::Optimise(OptError::Stopped))).then_some(()).ok_or(error)
    };
    let program = large(20_000);
    let engine = Engine::new(Options::new().compile_limit(Some(Duration::from_millis(1)))).unwrap();
    assert!(stopped(engine.compile(&program).err()).is_ok());
    let small = large(5);
    assert!(
        Engine::new(Options::new().compile_limit(Some(Duration::from_secs(600))))
            .unwrap()
            .compile(&small)
            .is_ok()
    );
    // A limited call that compiles.
    let engine = Engine::new(Options::new()).unwrap();
    let cancel = Cancel::new();
    let ended = engine.runtime().limited(&Limits::new().cancelled_by(&cancel), || {
        cancel.cancel();
        assert!(stopped(engine.compile(&small).err()).is_ok());
    });
    assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
    assert!(engine.compile(&small).is_ok(), "the engine works on");
}

/// A compile that a limit of the call ended is repeated by the next call; one that exceeds the limit of the session is not.
#[test]
fn compilations_of_sessions_end_at_their_limits() {
    let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let text = "function small(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
└──      return %1
end";
    dylib.define(dylib.read("small.jlir", text.as_bytes()).unwrap().lazy()).unwrap();
    let small = dylib.function("small").unwrap();
    let cancel = Cancel::new();
    let ended = session.runtime().limited(&Limits::new().cancelled_by(&cancel), || {
        cancel.cancel();
        let refused = small.compile().unwrap_err().to_string();
        assert!(refused.contains("its time is over"), "{refused}");
    });
    assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
    assert_eq!(session.stats().compiled_functions, 0);
    let call: Int = dylib.func("small").unwrap();
    assert_eq!(call.call((1,)), Ok(2), "the next call compiles it");
    session.end();

    let short = options(OptLevel::O2).compile_limit(Some(Duration::from_millis(1)));
    let session = Session::new(short, Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    dylib.define(large(20_000)).unwrap();
    for _ in 0..2 {
        let refused = dylib.func::<(i64,), i64>("large").unwrap_err().to_string();
        assert!(refused.contains("its time is over"), "{refused}");
    }
    session.end();
}

/// A token that is cancelled while code is generated ends the compilation: passes are over then, so it is the generation that has looked.
#[test]
fn the_generation_of_code_ends_at_limits() {
    struct CancelsInGeneration(Cancel);
    impl EventListener for CancelsInGeneration {
        fn event(&self, event: Event<'_>) {
            if let Event::Begin { stage: Stage::Generate, .. } = event {
                self.0.cancel();
            }
        }
    }
    let (cancel, small) = (Cancel::new(), large(5));
    let engine = Engine::new(Options::new()).unwrap();
    assert!(engine.runtime().events().listen(Arc::new(CancelsInGeneration(cancel.clone()))));
    let limits = Limits::new().cancelled_by(&cancel);
    let ended = engine.runtime().limited(&limits, || {
        let refused = engine.compile(&small).err();
        assert!(matches!(refused, Some(Error::Optimise(OptError::Stopped))), "{refused:?}");
    });
    assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
    assert!(engine.compile(&small).is_ok(), "the engine works on");
}

#[test]
fn functions_have_a_largest_size() {
    let engine = Engine::new(Options::new().function_limit(Some(100))).unwrap();
    match engine.compile(&large(101)) {
        Err(Error::Optimise(OptError::TooLarge { symbol, count: 101, limit: 100 })) => {
            assert_eq!(symbol, "large(Int64)")
        }
        other => panic!("{other:?}"),
    }
    assert!(engine.compile(&large(50)).is_ok());
    let session = Session::new(options(OptLevel::O2).function_limit(Some(100)), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    dylib.define(large(101)).unwrap();
    let refused = dylib.func::<(i64,), i64>("large").unwrap_err().to_string();
    assert!(refused.contains("has 101 statements, and the limit is 100"), "{refused}");
}

/// A counter that begins at the greatest number wraps, and is below its bound for ages then.
#[test]
fn a_counter_that_wraps_is_polled() {
    let text = "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 9223372036854775807, #3 => %3)::Int64
│   %3 = Base.add_int(%2, 1)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─      goto #2
4 ─      return %3
end";
    for level in OptLevel::ALL {
        let (_engine, main, _) = functions(level, text);
        let ended = main.call_limited(&Limits::new().timeout(Duration::from_millis(5)), (5,));
        // Where the loop is computed at once, its counter has the bound.
        assert!(matches!(ended, Err(CallError::Ended(Ended::Deadline)) | Ok(5)), "{level:?}: {ended:?}");
    }
}

#[path = "support/hostile.rs"]
mod hostile;
