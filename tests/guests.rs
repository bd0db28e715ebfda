//! Calls as futures: turns, ends, limits, objects across pauses, threads that are used again.
//!
//! No test asserts times: an executor of one thread polls in turn until the expected state is reached.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use brolga::host::Vector;
use brolga::limits::{AsyncCall, Cancel, Ended, Fuel, GuestError, GuestOptions, Guests};
use brolga::session::{Session, Workers};
use brolga::{CallError, Engine, ExceptionKind, Limits, OptLevel, Options, Program, TypedFunc};

type Int = TypedFunc<(i64,), i64>;

/// Never ends; ends when it is told to; keeps a list alive over all of its rounds; catches an exception in each; recurses without end.
const PROGRAM: &str = "
mutable struct Link
    next::Any
    value::Int64
end
function spin(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end
global threadlocal own::Int64 = 7
function counts(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = Base.add_int(%2, 1)::Int64
│   %6 = Main.own::Int64
│   %7 = Base.add_int(%6, 1)::Int64
│        Core.setglobal!(Main, :own, %7)::Int64
└──      goto #2
4 ─ %9 = Main.own::Int64
└──      return %9
end
function count(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = φ (#1 => 1, #3 => %7)::Int64
│   %4 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = Base.add_int(%2, 1)::Int64
│   %7 = Base.xor_int(%3, %6)::Int64
└──      goto #2
4 ─      return %2
end
function list(n::Int64)::Int64
1 ─ %1 = %new(Link, nothing, 7)::Link
└──      goto #2
2 ┄ %3 = φ (#1 => %1, #3 => %7)::Link
│   %4 = φ (#1 => 0, #3 => %8)::Int64
│   %5 = Base.slt_int(%4, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = %new(Link, %1, %4)::Link
│   %8 = Base.add_int(%4, 1)::Int64
│   %9 = invoke Main.look(%7::Any)::Int64 noinline
└──      goto #2
4 ─ %11 = Base.getfield(%1, :value)::Int64
│   %12 = Base.add_int(%11, %4)::Int64
└──      return %12
end
function look(x::Any)::Int64 noinline
1 ─      return 1
end
function catches(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #6 => %10)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #7 if not %3
3 ─ %5 = enter #5
4 ─ %6 = invoke Main.divide(%2::Int64, 0::Int64)::Int64 noinline
│        $(Expr(:leave, :(%5)))
└──      goto #6
5 ┄      $(Expr(:pop_exception, :(%5)))::Nothing
└──      goto #6
6 ┄ %10 = Base.add_int(%2, 1)::Int64
└──      goto #2
7 ─      return %2
end
function divide(n::Int64, by::Int64)::Int64 noinline
1 ─ %1 = Base.checked_sdiv_int(n, by)::Int64
└──      return %1
end
function deep(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.deep(%1::Int64)::Int64 noinline
│   %3 = Base.xor_int(%2, %1)::Int64
└──      return %3
end
function double(of::Vector{Float64})::Vector{Float64}
1 ─      goto #2
2 ┄ %2 = φ (#1 => 1, #3 => %8)::Int64
│   %3 = Base.arraylen(of)::Int64
│   %4 = Base.sle_int(%2, %3)::Bool
└──      goto #4 if not %4
3 ─ %5 = Base.arrayref(true, of, %2)::Float64
│   %6 = Base.add_float(%5, %5)::Float64
│        Base.arrayset(true, of, %6, %2)::Vector{Float64}
│   %8 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return of
end
";

fn unit(options: Options) -> (Engine, brolga::Unit) {
    let engine = Engine::new(options.heap_limit(Some(64 << 20))).unwrap();
    let program = Program::read("guests.jlir", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let unit = engine.compile(&program).unwrap();
    (engine, unit)
}

/// Short slices, so that there are many pauses.
fn guests(most: usize) -> Guests {
    Guests::new(GuestOptions { most, slice: Duration::from_micros(200), ..GuestOptions::default() })
}

/// Counts how often it was woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future until it is ready, on this thread, when it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Polls futures in turn until all are ready, and says in which order they were.
fn all<F: Future + Unpin>(futures: impl IntoIterator<Item = F>) -> Vec<(usize, F::Output)> {
    let mut queue: VecDeque<_> = futures.into_iter().enumerate().collect();
    let mut ready = Vec::new();
    while let Some((n, mut future)) = queue.pop_front() {
        match poll(Pin::new(&mut future)) {
            Poll::Ready(value) => ready.push((n, value)),
            Poll::Pending => queue.push_back((n, future)),
        }
    }
    ready
}

/// Waits until no guest has a thread.
fn wait_for_end(guests: &Guests) {
    while guests.running() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn one_thread_serves_short_and_endless_calls_in_turn() {
    for level in OptLevel::ALL {
        let (_engine, unit) = unit(Options::new().opt_level(level));
        let (spin, count): (Int, Int) = (unit.func("spin").unwrap(), unit.func("count").unwrap());
        let guests = guests(8);
        let mut endless: Vec<AsyncCall<i64>> =
            (0..2).map(|_| spin.call_async(&guests, &Limits::new(), (0,))).collect();
        let mut long = count.call_async(&guests, &Limits::new(), (20_000_000,));
        let result = loop {
            for endless in &mut endless {
                assert!(poll(Pin::new(endless)).is_pending());
            }
            if let Poll::Ready(result) = poll(Pin::new(&mut long)) {
                break result;
            }
        };
        assert_eq!(result, Ok(20_000_000), "{level:?}");
        // Dropping ends them, and their threads serve others.
        drop(endless);
        wait_for_end(&guests);
        assert_eq!(block_on(count.call_async(&guests, &Limits::new(), (1000,))), Ok(1000));
    }
}

#[test]
fn as_many_have_a_thread_as_may_and_the_others_wait() {
    let (_engine, unit) = unit(Options::new());
    let count: Int = unit.func("count").unwrap();
    let guests = guests(2);
    let calls: Vec<_> = (0..20).map(|n| count.call_async(&guests, &Limits::new(), (100_000 * n,))).collect();
    assert_eq!(guests.running(), 0, "nothing runs before it is polled");
    let mut ready = all(calls);
    ready.sort_by_key(|(n, _)| *n);
    let results: Vec<_> = ready.into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, (0..20).map(|n| Ok(100_000 * n)).collect::<Vec<_>>());
    wait_for_end(&guests);
}

/// A waiting guest is woken when a thread is free, also after the guest that was woken first is gone.
#[test]
fn waiting_guests_are_woken() {
    let (_engine, unit) = unit(Options::new());
    let (spin, count): (Int, Int) = (unit.func("spin").unwrap(), unit.func("count").unwrap());
    let guests = guests(1);
    let mut endless = spin.call_async(&guests, &Limits::new(), (0,));
    assert!(poll(Pin::new(&mut endless)).is_pending());
    let counters = [Arc::new(Counter::default()), Arc::new(Counter::default())];
    let mut waiting: VecDeque<_> =
        counters.iter().map(|_| count.call_async(&guests, &Limits::new(), (5,))).collect();
    for (call, counter) in waiting.iter_mut().zip(&counters) {
        assert!(Pin::new(call).poll(&mut Context::from_waker(&counter.clone().into())).is_pending());
    }
    let woken = |n: usize| counters[n].0.load(Ordering::SeqCst);
    assert_eq!((woken(0), woken(1)), (0, 0));
    drop(endless);
    while woken(0) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(woken(1), 0, "there is one thread");
    waiting.pop_front();
    while woken(1) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(block_on(waiting.pop_front().unwrap()), Ok(5));
}

/// A thread serves one guest after the other, and each is a thread of its own to programs.
#[test]
fn guests_begin_with_the_first_values_of_thread_local_variables() {
    let (engine, unit) = unit(Options::new());
    let counts: Int = unit.func("counts").unwrap();
    assert_eq!(counts.call((5,)), Ok(12));
    let guests = guests(2);
    let calls = (0..20).map(|n| counts.call_async(&guests, &Limits::new(), (20_000 + n,)));
    for (n, result) in all(calls) {
        assert_eq!(result.unwrap(), 20_007 + n as i64);
    }
    assert_eq!(counts.call((5,)), Ok(17));
    drop(engine);
}

#[test]
fn limits_end_guests_as_they_end_calls() {
    let (_engine, unit) = unit(Options::new().fuel(true));
    let (spin, catches): (Int, Int) = (unit.func("spin").unwrap(), unit.func("catches").unwrap());
    let guests = guests(4);
    let soon = Limits::new().timeout(Duration::from_millis(3));
    assert_eq!(block_on(spin.call_async(&guests, &soon, (0,))), Err(CallError::Ended(Ended::Deadline)));
    assert_eq!(
        block_on(catches.call_async(&guests, &soon, (i64::MAX,))),
        Err(CallError::Ended(Ended::Deadline)),
        "it had passed before"
    );
    let cancel = Cancel::new();
    let limits = Limits::new().cancelled_by(&cancel);
    let mut call = spin.call_async(&guests, &limits, (0,));
    assert!(poll(Pin::new(&mut call)).is_pending());
    cancel.cancel();
    assert_eq!(block_on(call), Err(CallError::Ended(Ended::Cancelled)));
    let fuel = Fuel::new(1_000_000);
    let limits = Limits::new().fuelled_by(&fuel);
    assert_eq!(block_on(spin.call_async(&guests, &limits, (0,))), Err(CallError::Ended(Ended::Fuel)));
    assert_eq!(fuel.left(), 0);
}

#[test]
fn exceptions_leave_guests_and_are_caught_in_them() {
    let (_engine, unit) = unit(Options::new());
    let guests = guests(4);
    let divide = unit.func::<(i64, i64), i64>("divide").unwrap();
    let thrown = block_on(divide.call_async(&guests, &Limits::new(), (1, 0)));
    assert!(matches!(thrown, Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::DivideError));
    let deep: Int = unit.func("deep").unwrap();
    let thrown = block_on(deep.call_async(&guests, &Limits::new(), (0,)));
    assert!(
        matches!(thrown, Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::StackOverflowError)
    );
    let catches: Int = unit.func("catches").unwrap();
    let calls = (0..4).map(|_| catches.call_async(&guests, &Limits::new(), (100_000,)));
    assert!(all(calls).into_iter().all(|(_, result)| result == Ok(100_000)));
}

/// Guests at rest keep their objects while others collect, also with a collection at every safepoint.
#[test]
fn objects_stay_over_pauses() {
    for (options, rounds) in [(Options::new(), 300_000), (Options::new().gc_stress(true), 300)] {
        let (engine, unit) = unit(options);
        let guests = guests(4);
        let list: Int = unit.func("list").unwrap();
        let calls = (0..4).map(|n| list.call_async(&guests, &Limits::new(), (rounds + n,)));
        for (n, result) in all(calls) {
            assert_eq!(result, Ok(7 + rounds + n as i64));
        }
        let double = unit.func_in::<(Vector<f64>,), Vector<f64>>("double").unwrap();
        let runtime = engine.runtime().clone();
        let calls = (0..4).map(|_| {
            let (double, runtime) = (double.clone(), runtime.clone());
            guests.run(&runtime.clone(), &Limits::new(), move || {
                runtime.enter(|scope| double.call(scope, (&[1.5; 1000],))).unwrap()
            })
        });
        for (_, result) in all(calls) {
            assert_eq!(result.unwrap().unwrap(), vec![3.0; 1000]);
        }
    }
}

#[test]
fn functions_of_sessions_are_guests_in_every_tier() {
    let session = Session::new(Options::new(), Workers::Pool(1)).unwrap();
    let main = session.create_dylib("main").unwrap();
    let read = main.read("guests.jlir", PROGRAM.as_bytes()).unwrap();
    main.define(read.tiered(1000).interpreted(10)).unwrap();
    let (list, count): (Int, Int) = (main.func("list").unwrap(), main.func("count").unwrap());
    let guests = guests(4);
    let calls = (0..3).flat_map(|_| {
        [(&list, 50_000, 50_007), (&count, 3_000_000, 3_000_000)]
            .map(|(func, n, result)| (func.call_async(&guests, &Limits::new(), (n,)), result))
    });
    let (calls, results): (Vec<_>, Vec<i64>) = calls.unzip();
    for (n, result) in all(calls) {
        assert_eq!(result, Ok(results[n]));
    }
    session.end();
}

/// A host function that waits for something does not keep the polling thread, and its guest wakes the task.
#[test]
fn a_guest_that_waits_in_the_host_does_not_keep_the_thread() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    let (send, receive) = std::sync::mpsc::channel::<i64>();
    let (waits, is_waiting) = std::sync::mpsc::channel::<()>();
    let receive = std::sync::Mutex::new(receive);
    main.define_fn("receive", move |n: i64| -> Result<i64, String> {
        waits.send(()).map_err(|error| error.to_string())?;
        let received = receive.lock().map_err(|error| error.to_string())?.recv();
        received.map(|m| n + m).map_err(|error| error.to_string())
    })
    .unwrap();
    let text = "function f(n::Int64)::Int64
1 ─ %1 = invoke Main.receive(n::Int64)::Int64
└──      return %1
end";
    main.define(main.read("f.jlir", text.as_bytes()).unwrap()).unwrap();
    let f: Int = main.func("f").unwrap();
    let guests = guests(4);
    let mut call = f.call_async(&guests, &Limits::new(), (1,));
    // It may pause at its entry before.
    while is_waiting.try_recv().is_err() {
        assert!(poll(Pin::new(&mut call)).is_pending());
    }
    let counter = Arc::new(Counter::default());
    let waker = counter.clone().into();
    let mut cx = Context::from_waker(&waker);
    for _ in 0..3 {
        assert!(Pin::new(&mut call).poll(&mut cx).is_pending());
    }
    assert_eq!(counter.0.load(Ordering::SeqCst), 0, "there is nothing to poll for");
    send.send(41).unwrap();
    while counter.0.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(block_on(call), Ok(42));
    session.end();
}

#[test]
fn a_guest_dropped_before_it_runs_never_runs() {
    let (engine, unit) = unit(Options::new());
    let spin: Int = unit.func("spin").unwrap();
    let guests = guests(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let call = |ran: &Arc<AtomicUsize>| {
        let ran = ran.clone();
        guests.run(engine.runtime(), &Limits::new(), move || ran.fetch_add(1, Ordering::SeqCst))
    };
    drop(call(&ran));
    let mut endless = spin.call_async(&guests, &Limits::new(), (0,));
    assert!(poll(Pin::new(&mut endless)).is_pending());
    let mut waiting = call(&ran);
    assert!(poll(Pin::new(&mut waiting)).is_pending());
    drop(waiting);
    drop(endless);
    wait_for_end(&guests);
    assert_eq!(Arc::strong_count(&ran), 1);
    assert_eq!(block_on(call(&ran)), Ok(0));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn panics_continue_where_the_result_is_polled() {
    let (engine, _unit) = unit(Options::new());
    let guests = guests(1);
    let call = guests.run(engine.runtime(), &Limits::new(), || -> i64 {
        std::panic::resume_unwind(Box::new("a guest"));
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(call)));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"a guest"));
    assert_eq!(block_on(guests.run(engine.runtime(), &Limits::new(), || 5)), Ok(5), "the thread works on");
}

#[test]
fn stacks_that_are_too_small_are_refused() {
    let (_engine, unit) = unit(Options::new());
    let count: Int = unit.func("count").unwrap();
    let small = Guests::new(GuestOptions { stack: 64 << 10, ..GuestOptions::default() });
    let refused = block_on(count.call_async(&small, &Limits::new(), (5,)));
    assert!(matches!(refused, Err(CallError::Attach(_))), "{refused:?}");
    let none = Guests::new(GuestOptions { stack: usize::MAX / 2, ..GuestOptions::default() });
    assert_eq!(block_on(count.call_async(&none, &Limits::new(), (5,))), Err(CallError::NoThread));
    assert_eq!(none.running(), 0);
    assert_eq!(GuestError::NoThread.to_string(), "there is no thread for a guest");
}

/// Threads of guests end with the last handle, and hold no runtime.
#[test]
fn nothing_is_left_behind() {
    let guests = guests(4);
    let runtime = {
        let (engine, unit) = unit(Options::new());
        let count: Int = unit.func("count").unwrap();
        let calls = (0..4).map(|_| count.call_async(&guests, &Limits::new(), (1_000_000,)));
        assert!(all(calls).into_iter().all(|(_, result)| result == Ok(1_000_000)));
        wait_for_end(&guests);
        Arc::downgrade(engine.runtime())
    };
    assert_eq!(runtime.strong_count(), 0);
}

/// Threads end while the session and the run time that they have run code of are dropped by another one.
#[test]
fn threads_end_while_their_runtime_goes() {
    for round in 0..20 {
        let session = Session::new(Options::new(), Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        main.define_fn("next", |n: i64| n + 1).unwrap();
        let text = "function f(n::Int64)::Int64
1 ─ %1 = invoke Main.next(n::Int64)::Int64
└──      return %1
end";
        main.define(main.read("f.jlir", text.as_bytes()).unwrap()).unwrap();
        let f: Int = main.func("f").unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let result = f.call((round,));
            drop(f);
            let _received = done.send(result);
        });
        assert_eq!(is_done.recv().unwrap(), Ok(round + 1));
        session.end();
        drop((main, session));
        thread.join().unwrap();
    }
}

/// Owned values of a closure of the host stay while a call of it is under way, though the session is gone.
#[test]
fn closures_outlive_their_calls() {
    struct Owned(Arc<AtomicUsize>);
    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for ends in [true, false] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let session = Session::new(Options::new(), Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        let (waits, is_waiting) = std::sync::mpsc::channel::<()>();
        let (send, receive) = std::sync::mpsc::channel::<i64>();
        let (receive, owned) = (std::sync::Mutex::new(receive), Owned(dropped.clone()));
        main.define_fn("receive", move |n: i64| -> Result<i64, String> {
            waits.send(()).map_err(|error| error.to_string())?;
            let received = receive.lock().map_err(|error| error.to_string())?.recv();
            assert_eq!(owned.0.load(Ordering::SeqCst), 0, "it is in use");
            received.map(|m| n + m).map_err(|error| error.to_string())
        })
        .unwrap();
        let text = "function f(n::Int64)::Int64
1 ─ %1 = invoke Main.receive(n::Int64)::Int64
└──      return %1
end";
        main.define(main.read("f.jlir", text.as_bytes()).unwrap()).unwrap();
        let f: Int = main.func("f").unwrap();
        let thread = std::thread::spawn(move || f.call((1,)));
        is_waiting.recv().unwrap();
        if ends {
            session.end();
        }
        drop((main, session));
        send.send(41).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(42));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}
