//! Threads call functions that others redefine, optimise and remove.
//!
//! Beside each `fN` there are eager functions that call it: directly (`uN`), through a C pointer (`pN`) and by a function value (`vN`). They and `fN` are
//! removed under all policies for dependants. Every definition of `fN` adds `N` and a multiple of a thousand, so each result identifies its function, and
//! shows that it was complete. After the first tenth of the changes live bytes and mappings must not grow any more, nor resident memory outside the
//! system's allocator and the run time's heap.
//!
//! A handle keeps the names and types of the program that it was looked up in, 4 KB, as long as it is held, also if the function was redefined since. So
//! callers look functions up again now and then: otherwise each would hold old programs of every function. Resident memory grows for longer
//! than live bytes, for two reasons that the test distinguishes: dynamic calls box their arguments, and the run time's heap fills chunk by chunk until its
//! first collection; and the system's allocator has an arena for each of the eleven threads, among which free blocks are spread.
//!
//! ```sh
//! cargo test --release --test session -- --ignored --nocapture a_million_operations
//! ```

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use brolga::session::{Dependants, Dylib, Function, OnDrop, Tracker};
use brolga::{CallError, ExceptionKind, Session, TypedFunc, Workers};

use super::counting::{Arenas, arenas, live};
use super::{adds, session};

const CALLERS: usize = 8;
const CHANGERS: usize = 2;

/// The memory of the process.
#[derive(Clone, Copy, Debug)]
struct Memory {
    live: isize,
    resident_kib: usize,
    mappings: usize,
    /// The chunks of the run time's heap.
    heap_kib: usize,
    /// Bytes in the allocator, where it reports them.
    arenas: Option<Arenas>,
}

impl Memory {
    /// Resident bytes beside the heap and the arenas, if known. A chunk of the heap may not have been touched.
    fn others_kib(&self) -> Option<usize> {
        let Arenas { used, free } = self.arenas?;
        Some(self.resident_kib.saturating_sub(self.heap_kib + (used + free) / 1024))
    }
}

fn process(session: &Session) -> Memory {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let heap_kib = session.runtime().heap().stats().mapped_bytes / 1024;
    Memory {
        live: live(),
        resident_kib: resident,
        mappings: maps.lines().count(),
        heap_kib,
        arenas: arenas(),
    }
}

/// An eager function of its own program that calls `fN`, and one that does so through a C pointer, and one that does so by a function value.
fn users(n: usize) -> [(String, String); 3] {
    let named = |kind: &str, body: String| {
        (
            format!("{kind}{n}"),
            format!("function {kind}{n}(x::Int64)::Int64\n{body}└──      return %2\nend\n"),
        )
    };
    let direct = format!("1 ─ %1 = invoke Main.f{n}(x::Int64)::Int64\n│   %2 = Base.add_int(%1, 0)::Int64\n");
    let pointer = format!(
        "1 ─ %1 = $(Expr(:cfunction, Ptr{{Nothing}}, :(Main.f{n}), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}\n\
         │   %2 = $(Expr(:foreigncall, :(%1), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n"
    );
    let value = format!(
        "1 ─ %1 = invoke Main.apply(Main.f{n}::Any, x::Any)::Any\n│   %2 = Core.typeassert(%1, Int64)::Int64\n"
    );
    [named("u", direct), named("p", pointer), named("v", value)]
}

const APPLY: &str =
    "function apply(f::Any, x::Any)::Any\n1 ─ %1 = dynamic (f)(x)::Any\n└──      return %1\nend\n";

/// Defines a user, which its tracker removes. It may be there, or what it uses may not.
fn define_user(main: &Dylib, (name, source): &(String, String), trackers: &Trackers) {
    let Ok(tracker) = main.create_tracker(OnDrop::Keep) else { return };
    let Ok(read) = main.read("user.jlir", source.as_bytes()) else { return };
    if main.tracked_by(&tracker).define(read).is_ok() {
        // The one before was removed by cascade.
        let before = trackers.lock().unwrap().insert(name.clone(), tracker);
        drop(before);
    }
}

type Trackers = Mutex<BTreeMap<String, Tracker>>;

/// Takes the tracker of a function and removes it by the policy of the round. A refusal changes nothing.
fn remove_tracked(name: &str, round: usize, trackers: &Trackers) {
    let policies = [Dependants::Deny, Dependants::Cascade, Dependants::Tombstone, Dependants::Keep];
    let tracker = trackers.lock().unwrap().remove(name);
    let Some(tracker) = tracker else { return };
    if tracker.remove(policies[round % policies.len()]).is_err() {
        let newer = trackers.lock().unwrap().insert(name.to_owned(), tracker);
        drop(newer);
    }
}

/// Defines `fN`, in the first round under a tracker.
fn define(main: &Dylib, n: usize, round: usize, trackers: &Trackers) {
    let source = adds(&format!("f{n}"), (1000 * round + n) as i64);
    let read = main.read("f.jlir", source.as_bytes()).unwrap();
    let read = match n % 3 {
        0 => read.replaceable(),
        1 => read.tiered(50),
        _ => read,
    };
    // It may be there, or be compiled at this moment: then it is unchanged.
    if round > 0 {
        drop(main.redefine(read).map(drop));
    } else if let Ok(tracker) = main.create_tracker(OnDrop::Keep)
        && main.tracked_by(&tracker).define(read).is_ok()
    {
        trackers.lock().unwrap().insert(format!("f{n}"), tracker);
    }
}

/// One change for so many operations, however fast calls are.
const OPERATIONS_FOR_A_CHANGE: usize = 50;

/// Runs so many operations on so many functions, most of which are calls: the callers continue until all changes are made. Says what memory and
/// mappings were after each tenth of the changes.
fn stress(functions: usize, operations: usize) -> (Session, Vec<Memory>) {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("apply.jlir", APPLY.as_bytes()).unwrap()).unwrap();
    let trackers = Trackers::default();
    (0..functions).for_each(|n| define(&main, n, 0, &trackers));
    (0..functions).for_each(|n| users(n).iter().for_each(|user| define_user(&main, user, &trackers)));
    let changes = operations / OPERATIONS_FOR_A_CHANGE;
    let (next, changed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (wrong, called) = (AtomicU64::new(0), AtomicU64::new(0));
    let seen = Mutex::new(Vec::new());
    let take_call = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < operations || changed.load(Ordering::Relaxed) < changes).then_some(at)
    };
    let take_change = || {
        let at = changed.fetch_add(1, Ordering::Relaxed);
        if at <= changes && at % (changes / 10) == 0 {
            seen.lock().unwrap().push(process(&session));
        }
        (at < changes).then_some(at)
    };
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (main, take, wrong, called) = (&main, &take_call, &wrong, &called);
            scope.spawn(move || {
                // Handles to `fN` in each caller, and in one of four those to one kind of user.
                let kind = [None, Some("u"), Some("p"), Some("v")][caller % 4];
                let mut handles: Vec<Option<TypedFunc<(i64,), i64>>> = vec![None; 2 * functions];
                let mut addresses: Vec<Option<Function>> = vec![None; functions];
                while let Some(at) = take() {
                    let n = (at * 7 + caller) % functions;
                    let is_user = kind.is_some() && at.is_multiple_of(2);
                    let handle = &mut handles[n + if is_user { functions } else { 0 }];
                    if handle.is_none() {
                        let name = format!("{}{n}", kind.filter(|_| is_user).unwrap_or("f"));
                        *handle = main.func(&name).ok();
                    }
                    let Some(callable) = handle else { continue };
                    match callable.call((at as i64,)) {
                        Ok(sum) if (sum - at as i64) % 1000 == (n % 1000) as i64 => {
                            called.fetch_add(1, Ordering::Relaxed);
                        }
                        // It has been removed, or what it calls: the next one is looked up.
                        Err(CallError::Exception(thrown))
                            if matches!(
                                thrown.kind,
                                ExceptionKind::CompileError | ExceptionKind::MethodError
                            ) =>
                        {
                            *handle = None;
                        }
                        _ => drop(wrong.fetch_add(1, Ordering::Relaxed)),
                    }
                    if (at / 8).is_multiple_of(16) {
                        *handle = None;
                    }
                    // A C pointer, held for a while.
                    if at.is_multiple_of(64) {
                        addresses[n] = main.function(&format!("f{n}")).ok().filter(|f| f.c_address().is_ok());
                    }
                }
            });
        }
        for changer in 0..CHANGERS {
            let (main, session, take, trackers) = (&main, &session, &take_change, &trackers);
            scope.spawn(move || {
                while let Some(at) = take() {
                    let n = (at * 13 + changer) % functions;
                    match at % 16 {
                        0 => {
                            drop(main.remove(&[&format!("f{n}(Int64)")]));
                            define(main, n, 0, trackers);
                        }
                        1 => drop(session.optimize_hot()),
                        2 => {
                            remove_tracked(&format!("f{n}"), at / 16, trackers);
                            define(main, n, 0, trackers);
                            users(n).iter().for_each(|user| define_user(main, user, trackers));
                        }
                        kind @ 3..6 => {
                            let user = &users(n)[kind - 3];
                            remove_tracked(&user.0, at / 16, trackers);
                            define_user(main, user, trackers);
                        }
                        6..11 => define(main, n, at % 97 + 1, trackers),
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
    let show = |when: &str, memory: &Memory| {
        let Memory { live, resident_kib, mappings, heap_kib, arenas } = memory;
        let Arenas { used, free } = arenas.unwrap_or(Arenas { used: 0, free: 0 });
        println!(
            "{when} {live:>10} bytes live {resident_kib:>8} KiB {mappings:>6} mappings; KiB: heap {heap_kib:>6}, allocator {:>6} used {:>6} free, others {:?}",
            used / 1024,
            free / 1024,
            memory.others_kib()
        );
    };
    for (tenth, memory) in seen.iter().enumerate() {
        show(&format!("{:>3} % of the changes", tenth * 10), memory);
    }
    session.runtime().enter(|scope| scope.collect()).unwrap();
    println!("collected: {:?}", session.runtime().heap().stats().mapped_bytes / 1024);
    println!("{:?}", session.stats());
    let (first, late) = (seen[1], seen[seen.len() - 1]);
    assert!(late.live < first.live + first.live / 16, "live memory grows: {seen:?}");
    assert!(late.mappings <= first.mappings + 16, "mappings grow: {seen:?}");
    if let (Some(first), Some(late)) = (first.others_kib(), late.others_kib()) {
        // Two chunks of the heap that were not touched yet.
        assert!(late <= first + 8192, "more is resident than heap and arenas: {seen:?}");
    }
}
