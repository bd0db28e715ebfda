//! Threads call functions that others redefine, optimise and remove.
//!
//! Every definition of `fN` adds `N` and a multiple of a thousand, so each result says which function gave it, and that it was
//! whole. After the first part of the operations memory and mappings must not grow any more.
//!
//! ```sh
//! cargo test --release --test session -- --ignored --nocapture a_million_operations
//! ```

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use brolga::session::Dylib;
use brolga::{CallError, ExceptionKind, Session, TypedFunc, Workers};

use super::{adds, session};

const CALLERS: usize = 8;
const CHANGERS: usize = 2;

/// KiB of memory that the process has, and the number of its mappings.
fn process() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    (resident, maps.lines().count())
}

fn define(main: &Dylib, n: usize, round: usize) {
    let source = adds(&format!("f{n}"), (1000 * round + n) as i64);
    let read = main.read("f.jlir", source.as_bytes()).unwrap();
    let read = if n.is_multiple_of(2) { read.replaceable() } else { read.tiered(50) };
    // It may be there, or be compiled at this moment: then it stays as it is.
    drop(if round == 0 { main.define(read) } else { main.redefine(read).map(drop) });
}

/// One change for so many operations, however fast calls are.
const OPERATIONS_FOR_A_CHANGE: usize = 50;

/// Runs so many operations on so many functions, most of which are calls: the callers go on until all changes are made. Says what memory and
/// mappings were after each tenth of the changes.
fn stress(functions: usize, operations: usize) -> (Session, Vec<(usize, usize)>) {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    (0..functions).for_each(|n| define(&main, n, 0));
    let changes = operations / OPERATIONS_FOR_A_CHANGE;
    let (next, changed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (wrong, called) = (AtomicU64::new(0), AtomicU64::new(0));
    let seen = std::sync::Mutex::new(Vec::new());
    let take_call = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < operations || changed.load(Ordering::Relaxed) < changes).then_some(at)
    };
    let take_change = || {
        let at = changed.fetch_add(1, Ordering::Relaxed);
        if at <= changes && at % (changes / 10) == 0 {
            seen.lock().unwrap().push(process());
        }
        (at < changes).then_some(at)
    };
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (main, take, wrong, called) = (&main, &take_call, &wrong, &called);
            scope.spawn(move || {
                let mut handles: Vec<Option<TypedFunc<(i64,), i64>>> = vec![None; functions];
                while let Some(at) = take() {
                    let n = (at * 7 + caller) % functions;
                    if handles[n].is_none() {
                        handles[n] = main.func(&format!("f{n}")).ok();
                    }
                    let Some(handle) = &handles[n] else { continue };
                    match handle.call((at as i64,)) {
                        Ok(sum) if (sum - at as i64) % 1000 == (n % 1000) as i64 => {
                            called.fetch_add(1, Ordering::Relaxed);
                        }
                        // It has been removed: the next one is looked up.
                        Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::CompileError => {
                            handles[n] = None;
                        }
                        _ => drop(wrong.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            });
        }
        for changer in 0..CHANGERS {
            let (main, session, take) = (&main, &session, &take_change);
            scope.spawn(move || {
                while let Some(at) = take() {
                    let n = (at * 13 + changer) % functions;
                    match at % 16 {
                        0 => {
                            drop(main.remove(&[&format!("f{n}(Int64)")]));
                            define(main, n, 0);
                        }
                        1 => drop(session.optimize_hot()),
                        2..8 => define(main, n, at % 97 + 1),
                        _ => thread::yield_now(),
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner(), 0, "sums that no definition gives");
    assert!(called.into_inner() > operations as u64 / 20);
    assert_eq!(session.linking().check(), Ok(()));
    (session, seen.into_inner().unwrap())
}

#[test]
fn some_operations() {
    let (session, _) = stress(40, 8_000);
    drop(session);
}

#[test]
#[ignore = "takes half a minute in a release build"]
fn a_million_operations() {
    let (session, seen) = stress(1_000, 1_000_000);
    for (tenth, (resident, mappings)) in seen.iter().enumerate() {
        println!("{:>3} % of the changes {resident:>8} KiB {mappings:>6} mappings", tenth * 10);
    }
    println!("{:?}", session.stats());
    let ((early, early_maps), (late, late_maps)) = (seen[2], seen[seen.len() - 1]);
    assert!(late < early + early / 4, "resident memory grows: {seen:?}");
    assert!(late_maps <= early_maps + 16, "mappings grow: {seen:?}");
}
