//! Work in parts: a worker does the same part of several units together, and no thread waits forever because
//! of it.

use std::sync::{Arc, Mutex, mpsc};

use crate::support::{E, Words, with};
use brolga_linking::{
    Dispatcher, InPlace, LookupKind, OnExecutor, Pool, Priority, Responsibility, Seeded, Symbol, Task, Unit,
    Until, required, unit,
};

type Log = Arc<Mutex<Vec<(char, u64)>>>;

fn note(log: &Log, part: char, number: u64) {
    log.lock().expect("log").push((part, number));
}

/// A unit of three parts.
fn in_parts(symbol: Symbol, number: u64, weight: u32, log: &Log) -> Unit<Words> {
    let log = Arc::clone(log);
    unit([(symbol, E)], move |duty: Responsibility<Words>| {
        note(&log, 'a', number);
        duty.continue_with(weight, move |duty| {
            note(&log, 'b', number);
            duty.continue_with(weight, move |duty| {
                note(&log, 'c', number);
                duty.resolve([(symbol, number)]).expect("resolved").emit([]).expect("emitted");
            });
        });
    })
}

/// The order in which one worker does the parts of units that are looked up while it is busy, and of
/// something urgent that arrives when all are begun.
fn order(count: u64, weight: u32, priority: Priority, urgent: bool) -> Vec<(char, u64)> {
    let pool = Arc::new(Pool::new(1));
    let (session, main) = with(Arc::<Pool>::clone(&pool));
    let log = Log::default();
    let symbols: Vec<Symbol> = (0..count).map(|i| session.intern(&i.to_string())).collect();
    for (&symbol, number) in symbols.iter().zip(0..) {
        main.define(in_parts(symbol, number, weight, &log)).expect("defined");
    }
    let (go, hold) = mpsc::channel::<()>();
    pool.dispatch(Task::new(Priority::Blocking, move || assert!(hold.recv().is_ok())));
    let (wants, kind) = (required(symbols), LookupKind::Static);
    let lookup = session.lookup_with(vec![main.all()], wants, Until::Ready, kind, priority);
    if urgent {
        let (pool, log) = (Arc::clone(&pool), Arc::clone(&log));
        let inner = Arc::clone(&pool);
        pool.dispatch(Task::new(Priority::Normal, move || {
            inner.dispatch(Task::new(Priority::Blocking, move || note(&log, 'u', 0)));
        }));
    }
    go.send(()).expect("the worker waits");
    while !lookup.is_done() {
        std::thread::yield_now();
    }
    let found = lookup.wait().expect("ready");
    assert!(found.iter().zip(0..).all(|(found, number)| found.address == Some(number)));
    session.end(|_| {});
    let log = log.lock().expect("log");
    log.clone()
}

fn parts(parts: &str, numbers: std::ops::Range<u64>) -> Vec<(char, u64)> {
    parts.chars().flat_map(|part| numbers.clone().map(move |number| (part, number))).collect()
}

#[test]
fn the_same_part_of_several_units_is_done_together() {
    use Priority::{Blocking, Idle, Normal};
    assert_eq!(order(1, 10, Normal, false), parts("abc", 0..1));
    assert_eq!(order(5, 10, Idle, false), parts("abc", 0..5));
    assert_eq!(order(40, 10, Normal, false), [parts("abc", 0..32), parts("abc", 32..40)].concat());
    assert_eq!(order(10, 10, Blocking, false), [parts("abc", 0..8), parts("abc", 8..10)].concat());
}

#[test]
fn large_units_make_small_batches_or_none() {
    let halves = [parts("abc", 0..4), parts("abc", 4..8)].concat();
    assert_eq!(order(8, 500, Priority::Normal, false), halves);
    let alone: Vec<_> = (0..3).flat_map(|number| parts("abc", number..number + 1)).collect();
    assert_eq!(order(3, 501, Priority::Normal, false), alone);
}

#[test]
fn urgent_work_runs_between_the_parts() {
    let log = order(5, 10, Priority::Normal, true);
    let at = log.iter().position(|&entry| entry == ('u', 0)).expect("it has run");
    assert_eq!(log[..at], parts("a", 0..5), "asked for behind the first parts, it runs before the second");
}

/// Every unit waits, in its second part, for all earlier ones: their rests belong to the waiting thread.
#[test]
fn rests_of_a_thread_that_waits_are_done_by_others() {
    let (send, receive) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let send = Mutex::new(send);
    let executor = OnExecutor::new(move |job| drop(send.lock().expect("sender").send(job)));
    let thread = std::thread::spawn(move || receive.into_iter().for_each(|job| job()));
    let dispatchers: [Arc<dyn Dispatcher>; 5] = [
        Arc::new(Pool::new(1)),
        Arc::new(Pool::new(3)),
        Arc::new(InPlace::new()),
        Arc::new(Seeded::new(7)),
        Arc::new(executor),
    ];
    for dispatcher in dispatchers {
        let (session, main) = with(dispatcher);
        let symbols: Vec<Symbol> = (0..20).map(|i| session.intern(&i.to_string())).collect();
        for (at, &symbol) in symbols.iter().enumerate() {
            // The first ones, whose rests come first, wait for the last ones.
            let others = symbols[at + 1..].to_vec();
            main.define(unit([(symbol, E)], move |duty: Responsibility<Words>| {
                duty.continue_with(1, move |duty| {
                    let found = duty.lookup(others, Until::Ready).expect("in force").wait().expect("ready");
                    let sum = found.iter().map(|found| found.address.expect("ready")).sum::<u64>() + 1;
                    duty.resolve([(symbol, sum)]).expect("resolved").emit([]).expect("emitted");
                });
            }))
            .expect("defined");
        }
        let lookup = session.lookup(vec![main.all()], required(symbols), Until::Ready);
        let found = lookup.wait().expect("ready");
        assert!(found.iter().rev().zip(0..).all(|(found, n)| found.address == Some(1 << n)));
        session.end(|_| {});
    }
    thread.join().expect("the executor ends");
}
