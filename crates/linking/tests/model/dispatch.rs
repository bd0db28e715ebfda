//! Dispatchers and threads: tasks run and drain (T01, T02), materialization on other threads (C39, C40), one
//! worker that never hangs, an executor that terminates, futures, code that outlives its removal under a pin,
//! and a storm of everything at once.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use crate::support::{E, Kept, Owned, Random, Words, count, failure, keep, made, take, with};
use brolga_linking::{
    Cause, Dependants, Dispatcher, Dylib, EpochHost, Error, InPlace, OnDrop, OnExecutor, Pool, PoolOptions,
    Priority, Responsibility, Seeded, Session, Symbol, Task, Token, Tokens, Until, required, unit,
};

fn counted(counter: &Arc<AtomicUsize>) -> Task {
    let counter = Arc::clone(counter);
    Task::new(Priority::Normal, move || {
        counter.fetch_add(1, Ordering::SeqCst);
    })
}

#[test]
fn t01_t02_tasks_run_once_and_drain() {
    let dispatchers: [(Arc<dyn Dispatcher>, &str); 4] = [
        (Arc::new(InPlace::new()), "in place"),
        (Arc::new(Pool::new(1)), "one thread"),
        (Arc::new(Pool::new(4)), "four threads"),
        (Arc::new(Seeded::new(3)), "seeded"),
    ];
    for (dispatcher, name) in dispatchers {
        let counter = Arc::new(AtomicUsize::new(0));
        for _ in 0..200 {
            let (inner, counter) = (Arc::clone(&dispatcher), Arc::clone(&counter));
            dispatcher.dispatch(Task::new(Priority::Idle, move || {
                inner.dispatch(counted(&counter));
                counter.fetch_add(1, Ordering::SeqCst);
            }));
        }
        dispatcher.dispatch(Task::new(Priority::Blocking, || panic!("the task's own business")));
        dispatcher.drain();
        assert_eq!(count(&counter), 400, "{name}");
    }
}

#[test]
fn a_pool_of_any_size_has_as_many_threads_as_it_may() {
    /// Panics when it is dropped, which is after the task has panicked with it.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(thread::panicking(), "a payload's own");
        }
    }
    let pool = Pool::new(usize::MAX);
    let counter = Arc::new(AtomicUsize::new(0));
    pool.dispatch(Task::new(Priority::Normal, || std::panic::panic_any(Bomb)));
    pool.dispatch(counted(&counter));
    pool.drain();
    drop(pool);
    assert_eq!(count(&counter), 1);
}

#[test]
fn t02_a_pool_that_is_shut_down_drops_tasks() {
    let pool = Pool::new(1);
    pool.shutdown();
    let counter = Arc::new(AtomicUsize::new(0));
    pool.dispatch(counted(&counter));
    pool.drain();
    pool.shutdown();
    drop(pool);
    assert_eq!((count(&counter), Arc::strong_count(&counter)), (0, 1));
}

#[test]
fn urgent_tasks_run_first() {
    let pool = Pool::new(1);
    let (go, hold) = mpsc::channel::<()>();
    pool.dispatch(Task::new(Priority::Normal, move || assert!(hold.recv().is_ok())));
    let order = Arc::new(Mutex::new(Vec::new()));
    for priority in [Priority::Idle, Priority::Normal, Priority::Blocking, Priority::Idle] {
        let order = Arc::clone(&order);
        pool.dispatch(Task::new(priority, move || order.lock().expect("order").push(priority)));
    }
    go.send(()).expect("the worker waits");
    // Drained by the worker alone: this thread would take tasks too.
    let done = Arc::new(AtomicUsize::new(0));
    pool.dispatch(Task::new(Priority::Idle, {
        let done = Arc::clone(&done);
        move || {
            done.store(1, Ordering::SeqCst);
        }
    }));
    while count(&done) == 0 {
        thread::yield_now();
    }
    use Priority::{Blocking, Idle, Normal};
    assert_eq!(*order.lock().expect("order"), [Blocking, Normal, Idle, Idle]);
}

/// Symbols `0` to `count`; each needs the next, which it looks up and waits for in its task.
fn nested(session: &Session<Words>, main: &Dylib<Words>, count: u64) -> Vec<Symbol> {
    let symbols: Vec<Symbol> = (0..count).map(|i| session.intern(&i.to_string())).collect();
    for (i, symbol) in symbols.iter().copied().enumerate() {
        let next = symbols.get(i + 1).copied();
        main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| {
            let mut needs = Vec::new();
            let mut sum = 1;
            if let Some(next) = next {
                let found = duty.lookup([next], Until::Ready).expect("in force").wait_one().expect("ready");
                sum += found.address.expect("an address");
                needs.push(found.into());
            }
            duty.resolve([(symbol, sum)]).expect("resolved").emit(needs).expect("emitted");
        }))
        .expect("defined");
    }
    symbols
}

#[test]
fn c39_c40_tasks_that_wait_for_tasks_never_hang() {
    let dispatchers: [Arc<dyn Dispatcher>; 4] =
        [Arc::new(InPlace::new()), Arc::new(Seeded::new(1)), Arc::new(Pool::new(1)), Arc::new(Pool::new(3))];
    for dispatcher in dispatchers {
        let (session, main) = with(dispatcher);
        let symbols = nested(&session, &main, 40);
        assert_eq!(main.lookup([symbols[0]]).wait_one().expect("ready").address, Some(40));
        session.end(|_| {});
    }
}

#[test]
fn a_task_does_not_run_on_top_of_what_it_waits_for() {
    // `x` waits for `y`, which is queued after a task that waits for `x`.
    let (session, main) = with(Arc::new(Pool::new(1)));
    let [x, y, z] = ["x", "y", "z"].map(|name| session.intern(name));
    let waits = |symbol: Symbol, other: Symbol, started: Option<Symbol>| {
        let main = main.clone();
        unit([(symbol, E)], move |duty: Responsibility<Words>| {
            // Queued first, so that a thread looking for work finds it first.
            let other_lookup = started.map(|started| main.lookup([started]));
            duty.lookup([other], Until::Ready).expect("in force").wait().expect("ready");
            duty.resolve([(symbol, 1)]).expect("resolved").emit([]).expect("emitted");
            drop(other_lookup);
        })
    };
    main.define(waits(x, y, Some(z))).expect("defined");
    main.define(waits(z, x, None)).expect("defined");
    main.define(made(&[(y, E, 2)])).expect("defined");
    let answer = main.lookup([x, z]).wait().expect("ready");
    assert_eq!(answer.len(), 2);
    session.end(|_| {});
}

#[test]
fn many_tasks_that_wait_share_one_worker() {
    let (session, main) = with(Arc::new(Pool::new(1)));
    let base = session.intern("base");
    let kept = Kept::default();
    main.define(keep(&[(base, E)], &kept)).expect("defined");
    let waiting: Vec<Symbol> = (0..20).map(|i| session.intern(&i.to_string())).collect();
    for &symbol in &waiting {
        main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| {
            duty.lookup([base], Until::Ready).expect("in force").wait().expect("ready");
            duty.resolve([(symbol, 1)]).expect("resolved").emit([]).expect("emitted");
        }))
        .expect("defined");
    }
    let lookup = session.lookup(vec![main.all()], required(waiting), Until::Ready);
    while kept.lock().expect("kept").is_empty() {
        thread::yield_now();
    }
    take(&kept).resolve([(base, 7)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait().expect("ready").len(), 20);
}

#[test]
fn a_wait_that_nothing_can_end_is_an_error_of_the_single_thread() {
    let (session, main) = with(Arc::new(Seeded::new(5)));
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    assert!(matches!(main.lookup([foo]).wait(), Err(Error::Stalled)));
    take(&kept).resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(main.address("foo").expect("ready"), 1);
}

#[test]
fn a_chain_of_units_in_place_needs_no_stack() {
    let (session, main) = with(Arc::new(InPlace::new()));
    const LENGTH: usize = if cfg!(miri) { 200 } else { 20_000 };
    let symbols: Vec<Symbol> = (0..LENGTH).map(|i| session.intern(&i.to_string())).collect();
    for (i, symbol) in symbols.iter().copied().enumerate() {
        let next = symbols.get(i + 1).copied();
        main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| match next {
            Some(next) => duty.lookup_then(required([next]), Until::Ready, move |duty, found| {
                let needs = found.into_iter().map(Into::into);
                duty.resolve([(symbol, 1)]).expect("resolved").emit(needs).expect("emitted");
            }),
            None => duty.resolve([(symbol, 1)]).expect("resolved").emit([]).expect("emitted"),
        }))
        .expect("defined");
    }
    main.lookup([symbols[0]]).wait().expect("ready");
}

#[test]
fn an_embedders_executor_runs_tasks_and_may_die() {
    let (send, receive) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let send = Mutex::new(send);
    let executor = OnExecutor::new(move |job| drop(send.lock().expect("sender").send(job)));
    let (session, main) = with(Arc::new(executor));
    let worker = thread::spawn(move || {
        for job in receive.iter().take(1) {
            job();
        }
        // The rest is dropped unrun.
    });
    let [foo, bar] = ["foo", "bar"].map(|name| session.intern(name));
    main.define(made(&[(foo, E, 1)])).expect("defined");
    main.define(made(&[(bar, E, 2)])).expect("defined");
    let lookup = session.lookup(vec![main.all()], required([foo]), Until::Ready);
    while !lookup.is_done() {
        thread::yield_now();
    }
    assert!(lookup.wait().is_ok());
    worker.join().expect("the executor ends");
    let lookup = session.lookup(vec![main.all()], required([bar]), Until::Ready);
    assert!(lookup.is_done(), "its job was dropped");
    assert!(matches!(failure(lookup.wait()).cause(), Cause::Abandoned));
    let [a, b] = ["a", "b"].map(|name| session.intern(name));
    main.define(made(&[(a, E, 3), (b, E, 3)])).expect("defined");
    session.end(|_| {});
}

struct Flag(AtomicUsize);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_lookup_is_a_future() {
    let (session, main) = with(Arc::new(InPlace::new()));
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    let flag = Arc::new(Flag(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    let mut lookup = pin!(main.lookup([foo]));
    assert!(lookup.as_mut().poll(&mut context).is_pending());
    assert_eq!(count(&flag.0), 0);
    take(&kept).resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(count(&flag.0), 1);
    let Poll::Ready(answer) = lookup.as_mut().poll(&mut context) else { panic!("pending") };
    assert_eq!(answer.expect("found")[0].address, Some(1));
    assert!(lookup.as_mut().poll(&mut context).is_pending(), "an answer is had once");
}

#[test]
fn s02_code_outlives_its_removal_while_a_thread_is_pinned() {
    let session: Session<Words> = Session::new(Arc::new(InPlace::new()), Box::new(EpochHost));
    let main = session.create_dylib("main").expect("a dylib");
    let foo = session.intern("foo");
    let freed = Arc::new(AtomicUsize::new(0));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let code = Owned(Arc::clone(&freed));
    let foos = unit([(foo, E)], move |duty: Responsibility<Words>| {
        assert!(duty.attach(code).is_ok());
        duty.resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    });
    main.define_all(vec![foos], Some(&tracker)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    let pin = crossbeam_epoch::pin();
    tracker.remove(Dependants::Deny).expect("removed");
    for _ in 0..1000 {
        crossbeam_epoch::pin().flush();
    }
    assert_eq!((count(&freed), main.ready(foo)), (0, None));
    drop(pin);
    while count(&freed) == 0 {
        crossbeam_epoch::pin().flush();
    }
}

#[test]
fn a_user_destructor_may_use_the_session() {
    struct Curious(Session<Words>, Arc<AtomicUsize>);
    impl Drop for Curious {
        fn drop(&mut self) {
            self.0.check().expect("the lock is free");
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (session, main) = with(Arc::new(InPlace::new()));
    let dropped = Arc::new(AtomicUsize::new(0));
    let curious = || Curious(session.clone(), Arc::clone(&dropped));
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let held = curious();
    main.define(unit([(foo, E)], move |duty: Responsibility<Words>| {
        let _held = &held;
        duty.fail("no");
    }))
    .expect("defined");
    failure(main.lookup([foo]).wait());
    let held = curious();
    let never = unit([(bar, E)], move |_: Responsibility<Words>| drop(held));
    main.define(never).expect("defined");
    main.remove([bar]).expect("removed");
    assert_eq!(count(&dropped), 2);
}

/// Threads define, look up, replace and remove the same names; every answer matches the name, everything is
/// freed.
#[test]
fn a_storm_of_everything() {
    const THREADS: u64 = 4;
    const STEPS: usize = if cfg!(miri) { 30 } else { 1500 };
    let (session, main) = with(Arc::new(Pool::new(2)));
    let symbols: Vec<Symbol> = (0..12).map(|i| session.intern(&i.to_string())).collect();
    let (made_codes, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (main, symbols, made_codes, freed) = (&main, &symbols, &made_codes, &freed);
            scope.spawn(move || {
                let mut random = Random::new(seed + 99);
                for _ in 0..STEPS {
                    let index = random.below(symbols.len());
                    let symbol = symbols[index];
                    match random.below(10) {
                        0..4 => {
                            let need = symbols[random.below(symbols.len())];
                            let (made_codes, freed) = (Arc::clone(made_codes), Arc::clone(freed));
                            let need = main.label(need).into();
                            let code = unit([(symbol, E)], move |duty: Responsibility<Words>| {
                                made_codes.fetch_add(1, Ordering::SeqCst);
                                // It may be removed at any moment, and its dependences may be missing: then
                                // it fails.
                                drop(duty.attach(Owned(freed)));
                                let resolved = duty.resolve([(symbol, index as u64 + 1)]);
                                let _ = resolved.and_then(|resolved| resolved.emit([need]));
                            });
                            let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
                            if random.once_in(2) {
                                let _ = main.redefine(vec![code], Some(&tracker));
                            } else {
                                let _ = main.define_all(vec![code], Some(&tracker));
                            }
                            if random.once_in(3) {
                                let _ = tracker.remove(Dependants::Cascade);
                            }
                        }
                        4..7 => {
                            if let Ok(found) = main.lookup([symbol]).wait() {
                                assert_eq!(found[0].address, Some(index as u64 + 1));
                            }
                        }
                        7 => {
                            let _ = main.remove([symbol]);
                        }
                        _ => {
                            if let Some(address) = main.ready(symbol) {
                                assert_eq!(address, index as u64 + 1);
                            }
                        }
                    }
                }
            });
        }
    });
    session.check().expect("invariants");
    session.end(|_| {});
    assert_eq!(count(&made_codes), count(&freed));
    assert!(count(&made_codes) > 0);
}

#[test]
fn a_producer_is_held_back_by_the_limit() {
    let pool = Pool::with(PoolOptions { threads: 1, limit: Some(8), ..PoolOptions::default() });
    let (go, hold) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel::<()>();
    pool.dispatch(Task::new(Priority::Blocking, move || {
        assert!(begin.send(()).is_ok() && hold.recv().is_ok());
    }));
    begun.recv().expect("the worker has it");
    let ran = Arc::new(AtomicUsize::new(0));
    for queued in 1..=500 {
        let counter = Arc::clone(&ran);
        pool.dispatch(Task::new(Priority::Normal, move || {
            // The only worker is busy, so the producer runs them.
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        assert!(queued - count(&ran) <= 8);
    }
    go.send(()).expect("the worker waits");
    pool.drain();
    assert_eq!(count(&ran), 500);
}

/// A limited number of tokens.
struct Jar(Arc<AtomicUsize>);

struct FromJar(Arc<AtomicUsize>);

impl Drop for FromJar {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Tokens for Jar {
    fn try_take(&self) -> Option<Token> {
        let taken = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        taken.ok().map(|_| Box::new(FromJar(Arc::clone(&self.0))) as Token)
    }
}

/// The number of working threads is at most the number of tokens plus one; all tokens are returned.
#[test]
fn threads_take_tokens_and_give_them_back() {
    for tokens in [0, 2] {
        let left = Arc::new(AtomicUsize::new(tokens));
        let jar = Arc::new(Jar(Arc::clone(&left)));
        let pool = Pool::with(PoolOptions { threads: 6, tokens: Some(jar), ..PoolOptions::default() });
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..200 {
            let (working, most) = (Arc::clone(&working), Arc::clone(&most));
            pool.dispatch(Task::new(Priority::Normal, move || {
                most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                (0..50).for_each(|_| thread::yield_now());
                working.fetch_sub(1, Ordering::SeqCst);
            }));
        }
        let done = Arc::new(AtomicUsize::new(0));
        pool.dispatch(Task::new(Priority::Idle, {
            let done = Arc::clone(&done);
            move || done.store(1, Ordering::SeqCst)
        }));
        while count(&done) == 0 {
            thread::yield_now();
        }
        assert!(count(&most) <= tokens + 1, "{} with {tokens} tokens", count(&most));
        drop(pool);
        assert_eq!(count(&left), tokens);
    }
}

#[test]
fn a_task_that_waits_leaves_its_permit_to_others() {
    let jar = Arc::new(Jar(Arc::new(AtomicUsize::new(0))));
    let options = PoolOptions { threads: 2, tokens: Some(jar), ..PoolOptions::default() };
    let (session, main) = with(Arc::new(Pool::with(options)));
    let symbols = nested(&session, &main, 20);
    let mut lookup = pin!(main.lookup([symbols[0]]));
    let waker = Waker::from(Arc::new(Flag(AtomicUsize::new(0))));
    let found = loop {
        match lookup.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(found) => break found.expect("ready"),
            Poll::Pending => thread::yield_now(),
        }
    };
    assert_eq!(found[0].address, Some(20));
}

#[test]
fn a_queued_unit_that_no_lookup_needs_is_not_begun_and_stays_available() {
    let (session, main) = with(Arc::new(Seeded::new(7)));
    let [foo, bar, user] = ["foo", "bar", "user"].map(|name| session.intern(name));
    let begun = Arc::new(AtomicUsize::new(0));
    let define = |symbol: Symbol, needs: Vec<Symbol>| {
        let (begun, home) = (Arc::clone(&begun), main.clone());
        main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| {
            begun.fetch_add(1, Ordering::SeqCst);
            let needs = needs.into_iter().map(|need| home.label(need).into());
            duty.resolve([(symbol, 1)]).expect("resolved").emit(needs).expect("emitted");
        }))
        .expect("defined");
    };
    define(foo, vec![]);
    define(bar, vec![]);
    define(user, vec![bar]);
    let (first, second) = (main.lookup([foo, user]), main.lookup([user]));
    drop(first);
    session.dispatcher().drain();
    assert_eq!(count(&begun), 2, "`user`, and `bar` which it needs");
    assert!(second.wait().is_ok());
    session.check().expect("invariants");
    assert_eq!(main.address("foo").expect("made when somebody looks again"), 1);
}
