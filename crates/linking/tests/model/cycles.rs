//! Threads that wait inside tasks: a cycle is an error on every executor, and anything else does not become
//! one by the order in which tasks run on top of each other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{E, Words, with};
use brolga_linking::{
    Dispatcher, Doing, Dylib, Error, InPlace, OnExecutor, Pool, Priority, Reexports, Responsibility, Seeded,
    Session, Symbol, Unit, Until, required, unit,
};

/// An executor with one thread.
fn executor() -> Arc<dyn Dispatcher> {
    let (send, receive) = std::sync::mpsc::channel::<Box<dyn FnOnce() + Send>>();
    thread::spawn(move || receive.iter().for_each(|job| job()));
    let send = Mutex::new(send);
    Arc::new(OnExecutor::new(move |job| drop(send.lock().expect("sender").send(job))))
}

fn dispatchers() -> Vec<(String, Arc<dyn Dispatcher>)> {
    let mut all: Vec<(String, Arc<dyn Dispatcher>)> = vec![
        ("in place".into(), Arc::new(InPlace::new())),
        ("one thread".into(), Arc::new(Pool::new(1))),
        ("two threads".into(), Arc::new(Pool::new(2))),
        ("executor".into(), executor()),
    ];
    all.extend(
        (0..64).map(|seed| (format!("seed {seed}"), Arc::new(Seeded::new(seed)) as Arc<dyn Dispatcher>)),
    );
    all
}

/// A unit whose task waits for `needs` in order, and does without those that it cannot have because of a
/// cycle.
fn waits(
    main: &Dylib<Words>,
    symbol: Symbol,
    needs: Vec<Symbol>,
    cycles: &Arc<Mutex<Vec<String>>>,
) -> Unit<Words> {
    let (main, cycles) = (main.clone(), cycles.clone());
    unit([(symbol, E)], move |duty: Responsibility<Words>| {
        for need in needs {
            match main.lookup([need]).wait() {
                Ok(_) => {}
                Err(error @ Error::Cycle { .. }) => cycles.lock().expect("cycles").push(error.to_string()),
                Err(error) => panic!("{error}"),
            }
        }
        duty.resolve([(symbol, 1)]).expect("resolved").emit([]).expect("emitted");
    })
}

fn symbols<const N: usize>(session: &Session<Words>, names: [&str; N]) -> [Symbol; N] {
    names.map(|name| session.intern(name))
}

#[test]
fn a_wait_for_oneself_is_reported_and_everything_else_continues() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let [own, a, b, c] = symbols(&session, ["own", "a", "b", "c"]);
        let cycles = Arc::default();
        main.define(waits(&main, own, vec![own], &cycles)).expect("defined");
        assert!(main.lookup([own]).wait().is_ok(), "{name}");
        assert_eq!(
            *cycles.lock().expect("cycles"),
            ["needed while they are made: `own` of `main`"],
            "{name}"
        );

        let cycles = Arc::default();
        for (symbol, need) in [(a, b), (b, c), (c, a)] {
            main.define(waits(&main, symbol, vec![need], &cycles)).expect("defined");
        }
        let found = main.lookup([c, b, a]).wait();
        assert!(found.is_ok(), "{name}: {found:?}");
        let told = cycles.lock().expect("cycles").len();
        assert_eq!(told, 1, "{name}: one of them breaks the cycle");
        session.check().expect("invariants");
        session.end(|_| {});
    }
}

#[test]
fn tasks_that_wait_for_each_other_in_no_cycle_are_not_told_of_one() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let cycles = Arc::default();
        // Each waits for some of the later ones; earlier ones may run on top.
        let all: Vec<Symbol> = (0..12).map(|n| session.intern(&n.to_string())).collect();
        for (n, &symbol) in all.iter().enumerate() {
            let needs = all[n + 1..].iter().copied().step_by(n % 3 + 1).collect();
            main.define(waits(&main, symbol, needs, &cycles)).expect("defined");
        }
        // All are queued before the first waits.
        let starter = {
            let (session, all, home) = (session.clone(), all.clone(), main.all());
            let start = session.intern("start");
            main.define(unit([(start, E)], move |duty: Responsibility<Words>| {
                for symbol in [5, 0, 11, 3, 8, 1, 7, 2, 10, 4, 9, 6] {
                    let wants = required([all[symbol]]);
                    session.lookup_then(vec![home], wants, Until::Ready, Priority::Normal, |_| {});
                }
                duty.resolve([(start, 1)]).expect("resolved").emit([]).expect("emitted");
            }))
            .expect("defined");
            start
        };
        main.lookup([starter]).wait().expect("ready");
        let found = main.lookup(all.iter().copied()).wait();
        assert!(found.is_ok(), "{name}: {found:?}");
        assert!(cycles.lock().expect("cycles").is_empty(), "{name}");
        session.end(|_| {});
    }
}

#[test]
fn a_cycle_that_others_close_ends_the_wait() {
    for (name, dispatcher) in dispatchers() {
        for closed_by_emission in [true, false] {
            let (session, main) = with(dispatcher.clone());
            let [a, b] = symbols(&session, ["a", "b"]);
            let cycles = Arc::default();
            main.define(waits(&main, a, vec![b], &cycles)).expect("defined");
            let home = main.clone();
            main.define(unit([(b, E)], move |duty: Responsibility<Words>| {
                if closed_by_emission {
                    let resolved = duty.resolve([(b, 2)]).expect("resolved");
                    resolved.emit([home.label(a).into()]).expect("emitted");
                } else {
                    duty.lookup_then(required([a]), Until::Resolved, move |duty, found| {
                        let needs = found.into_iter().map(Into::into);
                        duty.resolve([(b, 2)]).expect("resolved").emit(needs).expect("emitted");
                    });
                }
            }))
            .expect("defined");
            let found = main.lookup([a, b]).wait();
            assert!(found.is_ok(), "{name}: {found:?}");
            assert_eq!(cycles.lock().expect("cycles").len(), 1, "{name}");
        }
    }
}

/// The session cannot see that the answer of a lookup with a continuation ends a wait.
#[test]
fn a_duty_that_a_continuation_fulfils_ends_a_wait() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let [x, a, c] = symbols(&session, ["x", "a", "c"]);
        let cycles = Arc::default();
        main.define(waits(&main, x, vec![a], &cycles)).expect("defined");
        main.define(waits(&main, c, vec![], &cycles)).expect("defined");
        let (asked, home) = (session.clone(), main.all());
        main.define(unit([(a, E)], move |duty: Responsibility<Words>| {
            asked.lookup_then(vec![home], required([c]), Until::Ready, Priority::Normal, move |_| {
                duty.resolve([(a, 1)]).expect("resolved").emit([]).expect("emitted");
            });
        }))
        .expect("defined");
        let found = main.lookup([x]).wait();
        assert!(found.is_ok(), "{name}: {found:?}");
        assert!(cycles.lock().expect("cycles").is_empty(), "{name}");
        session.end(|_| {});
    }
}

#[test]
fn a_generator_that_waits_for_what_it_is_asked_for_is_told() {
    use brolga_linking::{Generator, Request};
    struct Asks(Mutex<VecDeque<Result<usize, Error>>>, Dylib<Words>);
    impl Generator<Words> for Arc<Asks> {
        fn generate(&self, request: Request<Words>) {
            let answer = self.1.lookup(request.symbols().to_vec()).wait();
            self.0.lock().expect("answers").push_back(answer.map(|found| found.len()));
            request.done();
        }
    }
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let asks = Arc::new(Asks(Mutex::default(), main.clone()));
        main.add_generator(Arc::new(asks.clone())).expect("added");
        assert!(matches!(main.lookup([session.intern("foo")]).wait(), Err(Error::NotFound { .. })), "{name}");
        let answer = asks.0.lock().expect("answers").pop_front();
        assert!(matches!(answer, Some(Err(Error::Cycle { .. }))), "{name}: {answer:?}");
        session.end(|_| {});
    }
}

#[test]
fn work_of_a_task_on_another_thread_is_a_part_of_it() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let own = session.intern("own");
        let told = Arc::new(Mutex::new(false));
        let (home, noted) = (main.clone(), told.clone());
        main.define(unit([(own, E)], move |duty: Responsibility<Words>| {
            let doing = Doing::here();
            let wait = || doing.go_on(|| matches!(home.lookup([own]).wait(), Err(Error::Cycle { .. })));
            *noted.lock().expect("told") = thread::scope(|scope| scope.spawn(wait).join().expect("no panic"));
            duty.resolve([(own, 1)]).expect("resolved").emit([]).expect("emitted");
        }))
        .expect("defined");
        main.lookup([own]).wait().expect("ready");
        assert!(*told.lock().expect("told"), "{name}");
        session.end(|_| {});
    }
}

/// A unit that continues when another has an address.
fn links(symbol: Symbol, needs: Symbol) -> Unit<Words> {
    unit([(symbol, E)], move |duty: Responsibility<Words>| {
        duty.lookup_answer(required([needs]), Until::Resolved, move |duty, found| match found {
            Ok(_) => panic!("there is no address"),
            Err(error) => duty.fail(error),
        });
    })
}

#[test]
fn units_that_can_only_wait_for_each_other_are_told() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let [a, b, c] = symbols(&session, ["a", "b", "c"]);
        for (symbol, need) in [(a, b), (b, c), (c, a)] {
            main.define(links(symbol, need)).expect("defined");
        }
        let Err(Error::Failed(failure)) = main.lookup([a]).wait() else { panic!("{name}: not told") };
        let root = failure.root().to_string();
        assert!(root.starts_with("needed while they are made: "), "{name}: {root}");
        assert!(session.check().is_ok(), "{name}");
        session.end(|_| {});
    }
}

#[test]
fn dylibs_that_re_export_each_other_have_nothing_more() {
    for (name, dispatcher) in dispatchers() {
        let (session, main) = with(dispatcher);
        let other = session.create_dylib("other").expect("a dylib");
        main.add_generator(Arc::new(Reexports { from: other.all(), filter: |_: &str| true })).expect("added");
        other.add_generator(Arc::new(Reexports { from: main.all(), filter: |_: &str| true })).expect("added");
        let found = main.lookup([session.intern("foo")]).wait();
        assert!(found.is_err(), "{name}: {found:?}");
        session.end(|_| {});
    }
}

/// Looks a symbol up, and waits, where it is woken.
struct LooksUp(Dylib<Words>, Symbol, Mutex<Option<bool>>);

impl std::task::Wake for LooksUp {
    fn wake(self: Arc<Self>) {
        let is_there = self.0.lookup([self.1]).wait().is_ok();
        *self.2.lock().expect("answer") = Some(is_there);
    }
}

#[test]
fn a_waker_may_wait_for_a_unit_that_the_same_step_has_begun() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
    for dispatcher in [Arc::new(InPlace::new()) as Arc<dyn Dispatcher>, Arc::new(Seeded::new(3))] {
        let (session, main) = with(dispatcher);
        let [x, y, b] = symbols(&session, ["x", "y", "b"]);
        let kept = Arc::new(Mutex::new(None));
        let keep = kept.clone();
        main.define(unit([(x, E), (y, E)], move |duty| *keep.lock().expect("duty") = Some(duty)))
            .expect("defined");
        main.define(waits(&main, b, vec![], &Arc::default())).expect("defined");
        let woken = Arc::new(LooksUp(main.clone(), b, Mutex::default()));
        let waker = Waker::from(woken.clone());
        let mut found = pin!(main.lookup([x]));
        assert!(found.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        session.dispatcher().drain();
        let duty: Responsibility<Words> = kept.lock().expect("duty").take().expect("begun");
        // That makes `x` ready, and `b` begins.
        let needs = brolga_linking::Group { symbols: vec![y], needs: vec![main.label(b).into()] };
        duty.resolve([(x, 1), (y, 2)]).expect("resolved").emit_groups(vec![needs]).expect("emitted");
        assert_eq!(*woken.2.lock().expect("answer"), Some(true));
        assert!(main.ready(y).is_some());
    }
}
