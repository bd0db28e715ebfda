//! Hostile programs under limits: each ends with the right error, whatever it catches, and what is called afterwards works.
//!
//! Rows are programs, columns are limits: a deadline, a token that another thread cancels, one that was cancelled before. How long an end takes is no
//! matter of this test.

use std::time::{Duration, Instant};

use brolga::session::{Session, Signature, Workers};
use brolga::{
    CallError, Cancel, Ended, Engine, ExceptionKind, LimitError, Limits, OptLevel, Options, Program,
    TypedFunc,
};

/// Programs that never end by themselves. `main` of each takes a number and gives one.
const HOSTILE: [(&str, &str); 9] = [
    (
        "spins",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end",
    ),
    (
        "catches everything, again and again",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "continues its loop inside the next handler",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #4
3 ┄      goto #3
4 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
│   %6 = enter #6
5 ┄      goto #5
6 ┄      $(Expr(:pop_exception, :(%6)))::Nothing
└──      goto #2
end",
    ),
    (
        "recurses, and again when the stack is full",
        "function main(n::Int64)::Int64
1 ─ %1 = enter #4
2 ─ %2 = Base.add_int(n, 1)::Int64
│   %3 = invoke Main.main(%2::Int64)::Int64 noinline
│        $(Expr(:leave, :(%1)))
└──      goto #3
3 ─      return %3
4 ┄      $(Expr(:pop_exception, :(%1)))::Nothing
│   %7 = Base.add_int(n, 2)::Int64
│   %8 = invoke Main.main(%7::Int64)::Int64 noinline
│   %9 = Base.xor_int(%8, n)::Int64
└──      return %9
end",
    ),
    (
        "recurses in tail position",
        "function main(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.outer(%1::Int64)::Int64 noinline
└──      return %2
end
function outer(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─ %3 = invoke Main.tail(n::Int64)::Int64 noinline
│        $(Expr(:leave, :(%2)))
4 ─      return %3
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end
function tail(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.tail(%1::Int64)::Int64
└──      return %2
end",
    ),
    (
        "allocates garbage",
        "mutable struct Link
    next::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => nothing, #2 => %3)::Any
│   %3 = %new(Link, n)::Link
│        Core.donotdelete(%2)::Nothing
└──      goto #2
end",
    ),
    (
        "fills the heap, and again when it is full",
        "mutable struct Link
    next::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄ %4 = φ (#3 => nothing, #4 => %5)::Any
│   %5 = %new(Link, %4)::Link
└──      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "throws and catches",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #4
3 ─      invoke Main.fail(n::Int64)::Nothing noinline
│        $(Expr(:leave, :(%2)))
└──      goto #2
4 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end
function fail(n::Int64)::Nothing noinline
1 ─      Core.throw(n)::Union{}
└──      unreachable
end",
    ),
    (
        "calls what is found at run time",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => n, #2 => %3)::Any
│   %3 = Main.next(%2)::Any
└──      goto #2
end
function next(n::Int64)::Float64
1 ─ %1 = Base.sitofp(Float64, n)::Float64
└──      return %1
end
function next(n::Float64)::Int64
1 ─ %1 = Base.fptosi(Int64, n)::Int64
└──      return %1
end",
    ),
];

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
    Options::new().opt_level(level).heap_limit(Some(16 << 20))
}

/// `main` and `fine` of a program, compiled before.
fn functions(level: OptLevel, text: &str) -> (Engine, Int, Int) {
    let engine = Engine::new(options(level)).unwrap();
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
    for (name, text) in HOSTILE {
        for level in OptLevel::ALL {
            let (_engine, main, fine) = functions(level, text);
            ends(&format!("{name} at {level:?}"), &main, &fine);
        }
    }
}

#[test]
fn every_hostile_program_ends_in_sessions_in_every_tier() {
    for (name, text) in HOSTILE {
        for tier in 0..3 {
            let session = Session::new(options(OptLevel::O2), Workers::Caller).unwrap();
            let dylib = session.create_dylib("main").unwrap();
            let read = dylib.read("hostile.jlir", format!("{text}\n{FINE}").as_bytes()).unwrap();
            let read = match tier {
                0 => read.tiered(1000).interpreted(10),
                1 => read.tiered(1000).rounds(500),
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
    let (engine, _, fine) = functions(OptLevel::O2, HOSTILE[0].1);
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

/// Threads share a token; each has a deadline of its own.
#[test]
fn limits_are_those_of_their_thread() {
    let (_engine, main, fine) = functions(OptLevel::O2, HOSTILE[1].1);
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

/// Prints how far behind its deadline each hostile program ends, and what limits cost a call that they do not end:
/// `cargo test -p brolga --test limits -- --ignored --nocapture`.
#[test]
#[ignore = "prints times, and says nothing else"]
fn how_long_ends_take() {
    const TIMES: u32 = 20;
    for (name, text) in HOSTILE {
        for level in [OptLevel::O0, OptLevel::O2] {
            let (_engine, main, _) = functions(level, text);
            let mut late: Vec<Duration> = (0..TIMES)
                .map(|_| {
                    let at = Instant::now() + Duration::from_millis(5);
                    assert!(main.call_limited(&Limits::new().deadline(at), (0,)).is_err());
                    at.elapsed()
                })
                .collect();
            late.sort();
            let (middle, worst) = (late[late.len() / 2], late[late.len() - 1]);
            println!("{name}, {level:?}: {middle:?} behind the deadline, at worst {worst:?}");
        }
    }
    let (_engine, _, fine) = functions(OptLevel::O2, HOSTILE[0].1);
    let (none, token) = (Limits::new(), Limits::new().cancelled_by(&Cancel::new()));
    let deadline = Limits::new().timeout(Duration::from_secs(3600));
    let measure = |what: &str, call: &dyn Fn() -> Result<i64, CallError>| {
        const CALLS: u32 = 100_000;
        let start = Instant::now();
        for _ in 0..CALLS {
            assert!(call().is_ok());
        }
        println!("a call {what}: {:?}", start.elapsed() / CALLS);
    };
    measure("without limits", &|| fine.call((1,)));
    measure("under no limit", &|| fine.call_limited(&none, (1,)));
    measure("with a token", &|| fine.call_limited(&token, (1,)));
    measure("with a deadline", &|| fine.call_limited(&deadline, (1,)));
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
