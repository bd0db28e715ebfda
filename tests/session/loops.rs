//! Loops that are left for better code while they run.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use brolga::ir::Type;
use brolga::session::{Dylib, OnExecutor, Signature};
use brolga::{OptLevel, Options, Output, Session, TypedFunc, Workers};

use super::session;

/// Never by calls: only loops are left.
const NEVER: u32 = u32::MAX;

fn tiered(dylib: &Dylib, source: &str, rounds: u32) {
    let program = dylib.read("loops.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program.tiered(NEVER).iterations(rounds)).unwrap_or_else(|error| panic!("{error}"));
}

/// Counts iterations in memory until another thread writes a value other than 0.
const SPIN: &str = "\
function spin(stop::Int64, rounds::Int64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Int64}, stop)::Ptr{Int64}
│   %2 = Base.bitcast(Ptr{Int64}, rounds)::Ptr{Int64}
└──      goto #2
2 ┄ %4 = φ (#1 => 0, #3 => %8)::Int64
│   %5 = Base.atomic_pointerref(%1, :monotonic)::Int64
│   %6 = (%5 === 0)::Bool
└──      goto #4 if not %6
3 ─ %8 = Base.add_int(%4, 1)::Int64
│        Base.atomic_pointerset(%2, %8, :monotonic)::Ptr{Int64}
└──      goto #2
4 ─      return %4
end
";

#[test]
fn all_threads_in_a_hot_loop_reach_the_second_tier_without_leaving_it() {
    reach_the_second_tier(Workers::Pool(1));
}

/// Upgrades are tasks of the embedder's executor like all others.
#[test]
fn an_executor_of_the_embedder_upgrades_a_running_loop() {
    let (jobs, to_run) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let executor = thread::spawn(move || to_run.into_iter().for_each(|job| job()));
    let own = OnExecutor::new(move |job| jobs.send(job).unwrap());
    reach_the_second_tier(Workers::Own(Arc::new(own)));
    executor.join().unwrap();
}

fn reach_the_second_tier(workers: Workers) {
    const THREADS: usize = 4;
    let session = session(workers);
    let main = session.create_dylib("main").unwrap();
    tiered(&main, SPIN, 100_000);
    let stop = AtomicI64::new(0);
    let rounds: [AtomicI64; THREADS] = Default::default();
    let is_late = AtomicBool::new(false);
    let address = |word: &AtomicI64| word.as_ptr().expose_provenance() as i64;
    let reached = || rounds.each_ref().map(|n| n.load(Ordering::Relaxed));
    thread::scope(|scope| {
        let threads = rounds.each_ref().map(|rounds| {
            let (main, stop) = (&main, &stop);
            scope.spawn(move || {
                let spin: TypedFunc<(i64, i64), i64> = main.func("spin").unwrap();
                spin.call((address(stop), address(rounds))).unwrap()
            })
        });
        let end = Instant::now() + Duration::from_secs(100);
        while session.stats().left_loops < THREADS as u64 && !is_late.load(Ordering::Relaxed) {
            is_late.store(Instant::now() > end, Ordering::Relaxed);
            thread::yield_now();
        }
        // Each has gone over, and each continues there.
        let there = reached();
        while reached().iter().zip(&there).any(|(now, there)| now <= there) && Instant::now() < end {
            thread::yield_now();
        }
        stop.store(1, Ordering::Relaxed);
        for (thread, rounds) in threads.into_iter().zip(&rounds) {
            assert_eq!(thread.join().unwrap(), rounds.load(Ordering::Relaxed));
        }
        assert!(reached().iter().zip(&there).all(|(now, there)| now > there));
    });
    assert_eq!(session.stats().left_loops, THREADS as u64);
    assert_eq!(session.stats().compiled_functions, 2, "the function, and the continuation of its loop");
    assert!(session.end().is_empty());
    assert_eq!(session.linking().check(), Ok(()));
}

/// Two loops, one in the other, with an object, a struct and a string that live through both. `tick` is the host's.
const NEST: &str = "\
mutable struct Sum
    total::Int64
end

function nest(n::Int64)::Int64
1 ─ %1 = %new(Main.Sum, 7)::Main.Sum
│   %2 = Core.tuple(n, 2.5)::Tuple{Int64, Float64}
└──      goto #2
2 ┄ %4 = φ (#1 => 0, #6 => %20)::Int64
│   %5 = Base.slt_int(%4, n)::Bool
└──      goto #7 if not %5
3 ─      goto #4
4 ┄ %8 = φ (#3 => 0, #5 => %16)::Int64
│   %9 = φ (#3 => %4, #5 => %13)::Int64
│   %10 = Base.sle_int(%8, %4)::Bool
└──      goto #6 if not %10
5 ─ %12 = invoke Main.tick(%4::Int64)::Int64
│   %13 = Base.add_int(%9, %12)::Int64
│   %14 = Base.getfield(%1, :total)::Int64
│   %15 = Base.add_int(%14, %13)::Int64
│         Base.setfield!(%1, :total, %15)::Int64
│   %16 = Base.add_int(%8, 1)::Int64
└──       goto #4
6 ─ %19 = Base.getfield(%2, 1)::Int64
│   %20 = Base.add_int(%4, 1)::Int64
└──       goto #2
7 ─ %22 = Base.getfield(%1, :total)::Int64
│   %23 = Base.getfield(%2, 2)::Float64
│   %24 = Base.fptosi(Int64, %23)::Int64
│   %25 = Base.add_int(%22, %24)::Int64
└──       return %25
end
";

fn nest(n: i64) -> i64 {
    let mut total = 7;
    for i in 0..n {
        let mut sum = i;
        for _ in 0..=i {
            sum += 3 * i;
            total += sum;
        }
    }
    total + 2
}

#[test]
fn a_loop_may_be_left_in_any_round_with_all_that_lives_in_it() {
    const N: i64 = 5;
    let ticks: u64 = (1..=N as u64).sum();
    for (at, gc_stress) in (0..ticks).flat_map(|at| [(at, false), (at, true)]) {
        let options = crate::doors::open(Options::new())
            .opt_level(OptLevel::O2)
            .output(Output::Capture)
            .gc_stress(gc_stress);
        let session = Session::new(options, Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        let (seen, host) = (AtomicU64::new(0), session.clone());
        let signature = Signature::new("tick", &[Type::INT64], Type::INT64);
        main.define_host(&signature, move |scope, args| {
            // In this round the loops' functions are compiled: what runs continues in one at the next head.
            if seen.fetch_add(1, Ordering::Relaxed) == at {
                scope.blocking(|| host.optimize_hot());
            }
            let i: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
            scope.int(3 * i).map_err(|error| scope.throw_error(&error.to_string()))
        })
        .unwrap();
        tiered(&main, NEST, 0);
        let function: TypedFunc<(i64,), i64> = main.func("nest").unwrap();
        assert_eq!(function.call((N,)), Ok(nest(N)), "left after {at} ticks");
        let left = session.stats().left_loops;
        // The last tick of all is followed by the head of the inner loop, and by that of the outer one.
        assert!(left > 0, "after {at} ticks");
        assert_eq!(function.call((N,)), Ok(nest(N)), "left at once");
        assert!(session.stats().left_loops > left);
        // The function of the host holds the session.
        session.end();
    }
}

/// The handler belongs to the frame, so the loop under it is not left; the one behind it is.
const HANDLED: &str = "\
function handled(n::Int64)::Int64
1 ─ %1 = enter #4
2 ┄ %2 = φ (#1 => 0, #3 => %4)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #5 if not %3
3 ─ %4 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ┄      $(Expr(:pop_exception, :(%1)))
└──      return -1
5 ─      $(Expr(:leave, :(%1)))
└──      goto #6
6 ┄ %10 = φ (#5 => %2, #7 => %12)::Int64
│   %11 = Base.slt_int(0, %10)::Bool
└──       goto #8 if not %11
7 ─ %12 = Base.sub_int(%10, 2)::Int64
└──       goto #6
8 ─       return %10
end
";

#[test]
fn exceptions_and_handlers_are_where_they_were() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    tiered(&main, HANDLED, 3);
    let function: TypedFunc<(i64,), i64> = main.func("handled").unwrap();
    assert_eq!((function.call((100,)), session.optimize_hot()), (Ok(0), 1), "one loop of two");
    assert_eq!((function.call((7,)), session.stats().left_loops), (Ok(-1), 1));
}

/// A global variable that one function assigns, and that another one reads in a loop that can be left.
const GLOBAL: &str = "\
global counter::Int64 = 0

function assign(n::Int64)::Int64
1 ─      Core.setglobal!(Main, :counter, n)::Int64
└──      return n
end

function sum(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %7)::Int64
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %5 = Main.counter::Int64
│   %6 = Base.add_int(%3, %5)::Int64
│   %7 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %3
end
";

#[test]
fn a_loop_reads_global_variables_that_others_assign() {
    for is_replaceable in [false, true] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let program = main.read("global.jlir", GLOBAL.as_bytes()).unwrap().tiered(NEVER).iterations(NEVER);
        main.define(if is_replaceable { program.replaceable() } else { program }).unwrap();
        let assign = main.func::<(i64,), i64>("assign").unwrap();
        let sum = main.func::<(i64,), i64>("sum").unwrap();
        assert_eq!(sum.call((3,)).unwrap(), 0);
        assign.call((7,)).unwrap();
        assert_eq!(sum.call((3,)).unwrap(), 21, "replaceable: {is_replaceable}");
    }
}
