//! The same results on any compiling thread; many threads.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use brolga::session::{Dependants, Jobserver, PoolOptions, Priority, Task};
use brolga::{SessionError, Workers};

use super::{adds, calls, define, dylib, session};

/// Functions that call each other: `f0` adds, `fN` calls one or two before it.
fn web(count: usize) -> String {
    let mut source = adds("f0", 1);
    for n in 1..count {
        let (a, b) = (n - 1 - (n * 7919) % n.min(5), (n * 31) % n);
        source += &format!(
            "function f{n}(x::Int64)::Int64\n\
             1 ─ %1 = Base.slt_int(x, {n})::Bool\n└──      goto #3 if not %1\n\
             2 ─ %3 = invoke Main.f{a}(x::Int64)::Int64\n│   %4 = Base.add_int(%3, {n})::Int64\n└──      return %4\n\
             3 ─ %6 = invoke Main.f{b}(x::Int64)::Int64\n│   %7 = Base.xor_int(%6, {n})::Int64\n└──      return %7\nend\n"
        );
    }
    source
}

#[test]
fn code_is_the_same_whoever_makes_it() {
    let source = web(120);
    let results = |workers: Workers, reversed: bool| {
        let session = session(workers);
        let main = dylib(&session, "main", &source);
        let mut order: Vec<usize> = (0..120).collect();
        if reversed {
            order.reverse();
        }
        let requests: Vec<_> = order.iter().map(|n| main.request(&format!("f{n}"))).collect();
        let functions: Vec<_> = requests.into_iter().map(|request| request.wait().unwrap()).collect();
        let call = |at: usize| functions[at].typed::<(i64,), i64>().unwrap().call((60,)).unwrap();
        let mut values: Vec<(usize, i64)> = order.iter().enumerate().map(|(at, n)| (*n, call(at))).collect();
        values.sort_unstable();
        (values, session.stats().compiled_bytes, session.stats().compiled_functions)
    };
    let expected = results(Workers::Caller, false);
    assert_eq!(expected.2, 120);
    for workers in
        [Workers::Pool(1), Workers::Pool(2), Workers::Pool(5), Workers::Seeded(1), Workers::Seeded(2)]
    {
        assert_eq!(results(workers, true), expected);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_request_is_a_future() {
    let session = session(Workers::Pool(1));
    let main = dylib(&session, "main", &web(20));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut request = pin!(main.request("f19"));
    let function = loop {
        match request.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(function) => break function.unwrap(),
            Poll::Pending => thread::park(),
        }
    };
    assert!(function.typed::<(i64,), i64>().unwrap().call((1,)).is_ok());
}

/// Threads call and look up what others redefine and remove. `BROLGA_STRESS` makes it longer.
#[test]
fn code_changes_under_threads_that_call_it() {
    #[expect(clippy::disallowed_methods, reason = "a test that may be asked to run longer")]
    let rounds: i64 = std::env::var("BROLGA_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    const COUNT: usize = 20;
    let session = session(Workers::Pool(2));
    let library = session.create_dylib("library").unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    for n in 0..COUNT {
        define(&library, &adds(&format!("base{n}"), 0));
        define(&main, &calls(&format!("top{n}"), &format!("base{n}")));
    }
    let (stop, called) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let callers: Vec<_> = (0..6)
            .map(|caller| {
                let (main, stop, called) = (main.clone(), &stop, &called);
                scope.spawn(move || {
                    for at in (caller..).step_by(3) {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        match main.func::<(i64,), i64>(&format!("top{}", at % COUNT)) {
                            Ok(top) => {
                                let value = top.call((1,)).unwrap();
                                // One for the call, one for `x`, and an even number for each version.
                                assert_eq!(value % 2, 0, "a version that never was");
                                called.fetch_add(1, Ordering::Relaxed);
                            }
                            // It is being removed or replaced right now.
                            Err(SessionError::Link(_) | SessionError::NotFunction { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        for round in 1..=rounds {
            let n = (round as usize * 7) % COUNT;
            let library_source = adds(&format!("base{n}"), 2 * round);
            let again = |dylib: &brolga::session::Dylib, source: &str| {
                let read = dylib.read("again.jlir", source.as_bytes()).unwrap();
                // A function that is being compiled is busy; one that was removed is defined.
                drop(dylib.redefine(read));
            };
            again(&library, &library_source);
            again(&main, &calls(&format!("top{n}"), &format!("base{n}")));
            if round % 5 == 0 {
                drop(
                    library
                        .linking()
                        .remove([session.linking().intern(&format!("base{}(Int64)", (n + 1) % COUNT))]),
                );
                again(&library, &adds(&format!("base{}", (n + 1) % COUNT), 0));
            }
        }
        // On a busy machine the changes may be over before the first call.
        while called.load(Ordering::Relaxed) == 0 && callers.iter().any(|caller| !caller.is_finished()) {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        assert!(called.load(Ordering::Relaxed) > 0);
    });
    assert_eq!(session.linking().check(), Ok(()));
    main.clear(Dependants::Deny).unwrap();
    library.clear(Dependants::Deny).unwrap();
    assert_eq!((session.stats().placed, session.stats().symbols), (0, 0));
}

#[test]
fn a_pool_asks_a_jobserver_and_gives_back_what_it_took() {
    let source = web(60);
    for tokens in [0, 1] {
        let server = jobserver::Client::new(tokens).unwrap();
        let options = PoolOptions {
            threads: 3,
            limit: Some(4),
            tokens: Some(Arc::new(Jobserver::new(server.clone()))),
            ..PoolOptions::default()
        };
        let session = session(Workers::PoolWith(options));
        let main = dylib(&session, "main", &source);
        let requests: Vec<_> = (0..60).map(|n| main.request(&format!("f{n}"))).collect();
        for request in requests {
            assert!(request.wait().unwrap().typed::<(i64,), i64>().unwrap().call((1,)).is_ok());
        }
        drop((main, session));
        assert_eq!(server.available().unwrap(), tokens);
    }
}

/// A thread that waits for another one in a heap holds up the collections that the other one waits for.
#[test]
fn a_session_may_go_in_a_heap_that_its_workers_need() {
    for is_lent in [false, true] {
        let session = session(Workers::Pool(1));
        let runtime = session.runtime().clone();
        let ((begin, begun), (go, gone)) = (mpsc::channel(), mpsc::channel());
        let ((left, has_left), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let heap = runtime.clone();
        session.linking().dispatcher().dispatch(Task::new(Priority::Normal, move || {
            begin.send(()).unwrap();
            gone.recv().unwrap();
            heap.enter(|scope| scope.collect()).unwrap();
            end.send(()).unwrap();
        }));
        thread::spawn(move || {
            let in_heap = runtime.enter(|scope| {
                begun.recv().unwrap();
                go.send(()).unwrap();
                if is_lent { scope.call_out(|| drop(session)) } else { drop(session) }
            });
            left.send(in_heap).unwrap();
        });
        // A later arrival never comes.
        let long = Duration::from_secs(60);
        assert_eq!(has_left.recv_timeout(long), Ok(Ok(())), "lent: {is_lent}");
        assert_eq!(ended.recv_timeout(long), Ok(()));
    }
}
