//! One thread is enough: tasks queued after a waiting one, waits that are not begun yet, and permits to work.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::{E, Words, made, with};
use brolga_linking::{
    Doing, Dylib, InPlace, OnExecutor, Pool, PoolOptions, Priority, Responsibility, Session, Symbol, Task,
    Token, Tokens, Until, required, unit,
};

/// Longer than anything here takes: an answer not there by then will never come.
const NEVER: Duration = Duration::from_secs(20);

type Job = Box<dyn FnOnce() + Send>;

/// Passes jobs to one thread, and counts them.
fn one_thread() -> (impl Fn(Job) + Send + Sync, Arc<AtomicUsize>) {
    threads(1)
}

/// Passes jobs to this many threads, and counts them.
fn threads(threads: usize) -> (impl Fn(Job) + Send + Sync, Arc<AtomicUsize>) {
    let (send, receive) = mpsc::channel::<Job>();
    let (send, count) = (Mutex::new(send), Arc::new(AtomicUsize::new(0)));
    let receive = Arc::new(Mutex::new(receive));
    for _ in 0..threads {
        let receive = Arc::clone(&receive);
        let next = move || receive.lock().expect("jobs").recv().ok();
        thread::spawn(move || std::iter::from_fn(next).for_each(|job| job()));
    }
    let jobs = Arc::clone(&count);
    let spawn = move |job| {
        jobs.fetch_add(1, Ordering::SeqCst);
        drop(send.lock().expect("sender").send(job));
    };
    (spawn, count)
}

/// A session on an executor with one thread.
fn on_one_thread() -> (Session<Words>, Dylib<Words>) {
    with(Arc::new(OnExecutor::new(one_thread().0)))
}

/// Defines `top`, whose task waits for `base`, and `base`, whose responsibility is passed out.
fn top_and_base(session: &Session<Words>, main: &Dylib<Words>) -> mpsc::Receiver<Responsibility<Words>> {
    let [top, base] = ["top", "base"].map(|name| session.intern(name));
    main.define(unit([(top, E)], move |duty: Responsibility<Words>| {
        let found = duty.lookup([base], Until::Ready).expect("in force").wait_one().expect("ready");
        let sum = found.address.expect("an address") + 1;
        duty.resolve([(top, sum)]).expect("resolved").emit([found.into()]).expect("emitted");
    }))
    .expect("defined");
    let (send, receive) = mpsc::channel();
    main.define(unit([(base, E)], move |duty: Responsibility<Words>| send.send(duty).expect("awaited")))
        .expect("defined");
    receive
}

/// Requests a symbol without running tasks for it.
fn ask(session: &Session<Words>, main: &Dylib<Words>, symbol: Symbol) -> mpsc::Receiver<u64> {
    let (send, receive) = mpsc::channel();
    session.lookup_then(
        vec![main.all()],
        required([symbol]),
        Until::Ready,
        Priority::Normal,
        move |answer| {
            let address = answer.ok().and_then(|found| found.first()?.address);
            // A thread that stopped waiting receives nothing.
            let _ = send.send(address.unwrap_or_default());
        },
    );
    receive
}

/// The answer of `top`, whose task has begun, and the responsibility for `base`, which it waits for.
fn top_waits(session: &Session<Words>, main: &Dylib<Words>) -> (mpsc::Receiver<u64>, Responsibility<Words>) {
    let duties = top_and_base(session, main);
    let answer = ask(session, main, session.intern("top"));
    (answer, duties.recv_timeout(NEVER).expect("begun"))
}

/// Waits until other threads can have reached their wait.
fn let_them_wait() {
    (0..2_000).for_each(|_| thread::yield_now());
}

#[test]
fn a_task_that_comes_behind_a_waiting_thread_is_run_by_it() {
    let (session, main) = on_one_thread();
    let (answer, duty) = top_waits(&session, &main);
    let [base, leaf] = ["base", "leaf"].map(|name| session.intern(name));
    main.define(made(&[(leaf, E, 3)])).expect("defined");
    let_them_wait();
    duty.lookup_then(required([leaf]), Until::Ready, move |duty, found| {
        let sum = found[0].address.expect("an address") + 1;
        duty.resolve([(base, sum)]).expect("resolved").emit([found[0].into()]).expect("emitted");
    });
    assert_eq!(answer.recv_timeout(NEVER), Ok(5));
}

#[test]
fn a_task_that_lies_there_is_run_when_it_comes_to_be_needed() {
    let (session, main) = on_one_thread();
    let (answer, duty) = top_waits(&session, &main);
    let [base, leaf] = ["base", "leaf"].map(|name| session.intern(name));
    main.define(made(&[(leaf, E, 3)])).expect("defined");
    let other = ask(&session, &main, leaf);
    let_them_wait();
    let needs = main.label(leaf).into();
    duty.resolve([(base, 7)]).expect("resolved").emit([needs]).expect("emitted");
    assert_eq!((answer.recv_timeout(NEVER), other.recv_timeout(NEVER)), (Ok(8), Ok(3)));
}

#[test]
fn a_lookup_without_a_waiter_holds_nothing_up() {
    let (session, main) = with(Arc::new(Pool::new(1)));
    let (answer, duty) = top_waits(&session, &main);
    let base = session.intern("base");
    let later = duty.lookup([session.intern("top")], Until::Ready).expect("in force");
    let_them_wait();
    // It does without: `top` is not part of a cycle.
    duty.resolve([(base, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(answer.recv_timeout(NEVER), Ok(2));
    assert_eq!(later.wait_one().expect("ready").address, Some(2));
}

#[test]
fn a_thread_that_does_a_part_of_a_task_has_the_right_to_work_too() {
    struct None;
    impl Tokens for None {
        fn try_take(&self) -> Option<Token> {
            Option::None
        }
    }
    let tokens: Option<Arc<dyn Tokens>> = Some(Arc::new(None));
    let (session, main) =
        with(Arc::new(Pool::with(PoolOptions { threads: 1, tokens, ..PoolOptions::default() })));
    let [top, base] = ["top", "base"].map(|name| session.intern(name));
    main.define(made(&[(base, E, 3)])).expect("defined");
    main.define(unit([(top, E)], move |duty: Responsibility<Words>| {
        let (doing, lookup) = (Doing::here(), duty.lookup([base], Until::Ready).expect("in force"));
        let found = thread::spawn(move || doing.go_on(|| lookup.wait_one().expect("ready"))).join();
        let address = found.expect("no panic").address.expect("an address");
        duty.resolve([(top, address + 1)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    assert_eq!(ask(&session, &main, top).recv_timeout(NEVER), Ok(4));
}

#[test]
fn tasks_that_a_waiting_thread_leaves_are_run_by_others() {
    for _ in 0..50 {
        let (session, main) = on_one_thread();
        let (answer, duty) = top_waits(&session, &main);
        let [base, leaf] = ["base", "leaf"].map(|name| session.intern(name));
        main.define(made(&[(leaf, E, 3)])).expect("defined");
        // `leaf` does not help `top`, and this thread is not inside a task.
        let (send, receive) = mpsc::channel();
        let dylib = main.clone();
        thread::spawn(move || send.send(dylib.lookup([leaf]).wait().is_ok()));
        assert_eq!(receive.recv_timeout(NEVER), Ok(true));
        duty.resolve([(base, 1)]).expect("resolved").emit([]).expect("emitted");
        assert_eq!(answer.recv_timeout(NEVER), Ok(2));
    }
}

#[test]
fn a_task_is_one_job_however_often_it_is_looked_at() {
    let (spawn, jobs) = one_thread();
    let (session, main) = with(Arc::new(OnExecutor::new(spawn)));
    let (answer, duty) = top_waits(&session, &main);
    let base = session.intern("base");
    let leaves: Vec<Symbol> = (0..100).map(|number| session.intern(&format!("leaf{number}"))).collect();
    let answers: Vec<_> = leaves
        .iter()
        .map(|&leaf| {
            main.define(made(&[(leaf, E, 3)])).expect("defined");
            let_them_wait();
            ask(&session, &main, leaf)
        })
        .collect();
    duty.resolve([(base, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(answer.recv_timeout(NEVER), Ok(2));
    assert!(answers.iter().all(|answer| answer.recv_timeout(NEVER) == Ok(3)));
    // Each symbol has a task, as does each answer.
    assert!(jobs.load(Ordering::SeqCst) <= 2 * (leaves.len() + 2));
}

/// Defines `giver`, whose task fulfils the responsibility for `base` that another task passed on. That it
/// helps the waiter for `base` is not known.
fn giver(
    session: &Session<Words>,
    main: &Dylib<Words>,
    duties: mpsc::Receiver<Responsibility<Words>>,
) -> Symbol {
    let [base, giver] = ["base", "giver"].map(|name| session.intern(name));
    let duties = Mutex::new(duties);
    main.define(unit([(giver, E)], move |own: Responsibility<Words>| {
        own.resolve([(giver, 1)]).expect("resolved").emit([]).expect("emitted");
        let duty = duties.lock().expect("duties").recv_timeout(NEVER).expect("given away");
        duty.resolve([(base, 4)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    giver
}

#[test]
fn an_executor_whose_threads_all_wait_runs_what_there_is() {
    let executor = OnExecutor::new(one_thread().0).with_threads(NonZeroUsize::MIN);
    let (session, main) = with(Arc::new(executor));
    let duties = top_and_base(&session, &main);
    let giver = giver(&session, &main, duties);
    let answer = ask(&session, &main, session.intern("top"));
    let_them_wait();
    assert_eq!(ask(&session, &main, giver).recv_timeout(NEVER), Ok(1));
    assert_eq!(answer.recv_timeout(NEVER), Ok(5));
}

/// A symbol whose task waits for a signal, and the sender of the signal.
fn held(
    session: &Session<Words>,
    main: &Dylib<Words>,
    name: &str,
) -> (Symbol, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let symbol = session.intern(name);
    let ((begun, has_begun), (go_on, may_go_on)) = (mpsc::channel(), mpsc::channel());
    let may_go_on = Mutex::new(may_go_on);
    main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| {
        begun.send(()).expect("awaited");
        may_go_on.lock().expect("told").recv_timeout(NEVER).expect("told");
        duty.resolve([(symbol, 1)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    (symbol, has_begun, go_on)
}

#[test]
fn threads_of_the_embedder_are_none_of_the_executors() {
    const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
    let (session, main) = with(Arc::new(OnExecutor::new(threads(TWO.get()).0).with_threads(TWO)));
    let (answer, duty) = top_waits(&session, &main);
    let (held, has_begun, go_on) = held(&session, &main, "held");
    let _held = ask(&session, &main, held);
    has_begun.recv_timeout(NEVER).expect("begun");
    let [base, leaf] = ["base", "leaf"].map(|name| session.intern(name));
    let dylib = main.clone();
    let guest = thread::spawn(move || {
        Task::new(Priority::Normal, move || drop(dylib.lookup([base]).wait())).run();
    });
    let_them_wait();
    main.define(made(&[(leaf, E, 3)])).expect("defined");
    let other = ask(&session, &main, leaf);
    let_them_wait();
    assert!(
        other.try_recv().is_err(),
        "one of its two threads works, and may bring nearer what the other one waits for"
    );
    go_on.send(()).expect("held");
    assert_eq!(other.recv_timeout(NEVER), Ok(3));
    duty.resolve([(base, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(answer.recv_timeout(NEVER), Ok(2));
    guest.join().expect("no panic");
}

#[test]
fn a_session_ends_behind_what_other_threads_have_begun() {
    let (session, main) = with(Arc::new(InPlace::new()));
    let (held, has_begun, go_on) = held(&session, &main, "held");
    let (a, b) = (session.clone(), main.clone());
    let worker = thread::spawn(move || ask(&a, &b, held).recv_timeout(NEVER));
    has_begun.recv_timeout(NEVER).expect("begun");
    let ending = session.clone();
    let end = thread::spawn(move || ending.end(|_| {}));
    let_them_wait();
    assert!(!end.is_finished());
    go_on.send(()).expect("held");
    // Its address is reported before everything closes.
    assert_eq!(worker.join().expect("no panic"), Ok(1));
    end.join().expect("no panic");
}

#[test]
fn threads_without_workers_run_what_there_is_when_all_of_them_wait() {
    let (session, main) = with(Arc::new(InPlace::new()));
    let duties = top_and_base(&session, &main);
    let giver = giver(&session, &main, duties);
    let [top, other] = ["top", "other"].map(|name| session.intern(name));
    let (a, b) = (session.clone(), main.clone());
    main.define(unit([(other, E)], move |duty: Responsibility<Words>| {
        // Its task is queued after this one.
        drop(ask(&a, &b, giver));
        let found = duty.lookup([top], Until::Ready).expect("in force").wait_one().expect("ready");
        let sum = found.address.expect("an address") + 1;
        duty.resolve([(other, sum)]).expect("resolved").emit([found.into()]).expect("emitted");
    }))
    .expect("defined");
    let (send, answers) = mpsc::channel();
    for symbol in [top, other] {
        let (session, main, send) = (session.clone(), main.clone(), send.clone());
        thread::spawn(move || send.send(ask(&session, &main, symbol).recv_timeout(NEVER)));
        let_them_wait();
    }
    let mut sums = [answers.recv_timeout(NEVER), answers.recv_timeout(NEVER)];
    sums.sort_by_key(|sum| sum.ok().and_then(Result::ok));
    assert_eq!(sums, [Ok(Ok(5)), Ok(Ok(6))]);
}
