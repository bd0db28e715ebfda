//! Nine threads change and use what programs find in one session: functions that are redefined, object files, threads of C that call programs, aliases, re-exports, sources, machine code of the
//! embedder, look-ups.
//!
//! Every function `baseN` adds `N` and a multiple of a thousand, so each result identifies its function, and shows that it was complete. Each operation is checked when it is made; after the first tenth
//! mappings must not grow any more, and live bytes hardly.
//!
//! ```sh
//! BROLGA_SECONDS=600 cargo test --release --test session -- --ignored --nocapture nine_threads_for_long
//! ```
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brolga::ir::Type;
use brolga::session::{CodeReference, Dependants, Dylib, Exports, OnDrop, OwnCode, Signature};
use brolga::{Session, Workers};

use super::objects::c;
use super::stress::{Memory, process};
use super::{adds, calls, define, session};

/// How many functions are redefined.
const FUNCTIONS: usize = 24;

/// Calls a function of a program on a thread of its own.
pub(super) const IN_THREAD: &str = "#include <pthread.h>
struct call { long (*f)(long); long x, result; };
static void *run(void *of) { struct call *call = of; call->result = call->f(call->x); return 0; }
long in_thread(long (*f)(long), long x) {
    struct call call = { f, x, -1 };
    pthread_t thread;
    if (pthread_create(&thread, 0, run, &call)) return -2;
    pthread_join(thread, 0);
    return call.result;
}";

/// A program that has C call a function of it on a thread of C.
pub(super) fn through_c(name: &str, callee: &str) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = $(Expr(:cfunction, Ptr{{Nothing}}, :(Main.{callee}), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}\n\
         │   %2 = $(Expr(:foreigncall, :(:in_thread), Int64, svec(Ptr{{Nothing}}, Int64), 0, :(:ccall), :(%1), :(x)))::Int64\n└──      return %2\nend\n"
    )
}

/// A program that calls a C function of one integer.
fn calls_c(name: &str, of: &str) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:{of}), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n└──      return %1\nend\n"
    )
}

fn call(dylib: &Dylib, name: &str, x: i64) -> i64 {
    let function = dylib.func::<(i64,), i64>(name);
    let function = function.unwrap_or_else(|error| panic!("{name}: {error}; {:?}", error.causes()));
    function.call((x,)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Panics unless `value` is what a version of `baseN` makes of `x`.
fn check(value: i64, n: usize, x: i64) {
    assert_eq!((value - x).rem_euclid(1000), n as i64, "base{n}({x}) = {value}");
}

struct World {
    base: Dylib,
    facade: Dylib,
    objects: Dylib,
    shelf: Dylib,
    main: Dylib,
}

fn world(session: &Session) -> World {
    let [base, facade, objects, shelf, main] =
        ["base", "facade", "objects", "shelf", "main"].map(|name| session.create_dylib(name).unwrap());
    for n in 0..FUNCTIONS {
        define(&base, &adds(&format!("base{n}"), n as i64));
    }
    objects.add_process_symbols(|_| true).unwrap();
    objects.add_object("in_thread.o", &c(IN_THREAD)).unwrap();
    shelf.link_against(&base).unwrap();
    shelf
        .add_source(|shelf, name| {
            if let Some(n) = name.strip_prefix("found").and_then(|n| n.parse::<usize>().ok()) {
                let text = calls(name, &format!("base{}", n % FUNCTIONS));
                shelf.define(shelf.read(name, text.as_bytes())?)?;
            }
            Ok(())
        })
        .unwrap();
    for other in [&base, &objects] {
        main.link_against(other).unwrap();
    }
    for n in 0..FUNCTIONS {
        define(&main, &calls(&format!("user{n}"), &format!("base{n}")));
        define(&main, &through_c(&format!("through_c{n}"), &format!("base{n}")));
    }
    World { base, facade, objects, shelf, main }
}

/// One step of a thread.
fn step(world: &World, thread: usize, at: usize) {
    let World { base, facade, objects, shelf, main } = world;
    let (n, x) = (at * 7 % FUNCTIONS, at as i64 % 1_000_003);
    match thread {
        // Each function that `calls` makes adds one.
        0 | 1 => check(call(main, &format!("user{n}"), x) - 1, n, x),
        2 => {
            let text = adds(&format!("base{n}"), (n + 1000 * (at % 97)) as i64);
            base.redefine(base.read("base.jlir", text.as_bytes()).unwrap()).unwrap();
        }
        // An object file and a program that calls it come and go.
        3 => {
            let tracker = main.create_tracker(OnDrop::Keep).unwrap();
            let tracked = main.tracked_by(&tracker);
            // The name of a C function that a program calls stays as a symbol of the run time.
            let (of_c, name) = (format!("of_c{}", at % 500), format!("calls_c{at}"));
            tracked.add_object("of_c.o", &OBJECTS.with(|made| made.replaced(&of_c))).unwrap();
            define(&tracked, &calls_c(&name, &of_c));
            assert_eq!(call(main, &name, x), 3 * x + 1);
            tracker.remove(Dependants::Deny).unwrap();
        }
        4 => check(call(main, &format!("through_c{n}"), x), n, x),
        5 => {
            let name = format!("alias{at}");
            main.alias(&name, base, &format!("base{n}")).unwrap();
            check(call(main, &name, x), n, x);
            main.remove(&[&format!("{name}(Int64)")]).unwrap();
        }
        6 => {
            let (found, name) = (format!("found{at}"), format!("asks{at}"));
            let tracker = shelf.create_tracker(OnDrop::Keep).unwrap();
            let tracked = shelf.tracked_by(&tracker);
            define(&tracked, &calls(&name, &found));
            check(call(shelf, &name, x) - 2, at % FUNCTIONS, x);
            tracker.remove(Dependants::Deny).unwrap();
            shelf.remove(&[&format!("{found}(Int64)")]).unwrap();
        }
        7 => {
            let name = format!("base{n}");
            facade.reexport(base, Exports::only([name.clone()])).unwrap();
            check(call(facade, &name, x), n, x);
            define(facade, &calls(&format!("through{at}"), &name));
            check(call(facade, &format!("through{at}"), x) - 1, n, x);
            facade.remove(&[&format!("through{at}(Int64)")]).unwrap();
            facade.end_reexport(base).unwrap();
            assert!(facade.function(&name).is_err());
        }
        _ => {
            // lea rax, [rdi + imm32]; ret
            let mut bytes = vec![0x48, 0x8d, 0x87];
            bytes.extend((at as i32 % 1000).to_le_bytes());
            bytes.push(0xc3);
            let own = Signature::new("own", &[Type::INT64], Type::INT64);
            objects.redefine_code(&own, &OwnCode::new(bytes), vec![at]).unwrap();
            assert_eq!(call(objects, "own", x), x + at as i64 % 1000);
            // jmp in_thread
            let jump = OwnCode::new([0xe9, 0, 0, 0, 0]).referring(1, CodeReference::Call, "in_thread", 0);
            let jumps = Signature::new("jumps", &[Type::INT64, Type::INT64], Type::INT64);
            objects.redefine_code(&jumps, &jump, ()).unwrap();
            let address = main.function(&format!("base{n}")).unwrap();
            let entry = address.c_address().unwrap().expose_provenance() as i64;
            let jumps = objects.func::<(i64, i64), i64>("jumps").unwrap();
            check(jumps.call((entry, x)).unwrap(), n, x);
        }
    }
}

/// An object file whose one function is renamed for each use, so that the compiler runs once.
struct Renamed(Vec<u8>);

/// As long as the names that replace it, at most.
const PLACE: &str = "of_c_0000000000000000";

impl Renamed {
    fn replaced(&self, name: &str) -> Vec<u8> {
        let mut bytes = self.0.clone();
        let mut new = name.as_bytes().to_vec();
        new.resize(PLACE.len(), 0);
        let places: Vec<usize> = bytes
            .windows(PLACE.len())
            .enumerate()
            .filter(|(_, at)| *at == PLACE.as_bytes())
            .map(|(at, _)| at)
            .collect();
        places.into_iter().for_each(|at| bytes[at..at + new.len()].copy_from_slice(&new));
        bytes
    }
}

thread_local! {
    static OBJECTS: Renamed = Renamed(c(&format!("long {PLACE}(long x) {{ return 3 * x + 1; }}")));
}

/// Runs nine threads until each has made `steps` steps and the time is over. Returns the memory at each tenth of the time.
fn stress(steps: usize, time: Duration) -> (Session, Vec<Memory>) {
    let session = session(Workers::Pool(1));
    let world = world(&session);
    let (start, made) = (Instant::now(), AtomicUsize::new(0));
    let seen = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..9 {
            let (world, session, made, seen) = (&world, &session, &made, &seen);
            scope.spawn(move || {
                let mut at = 0;
                while at < steps || start.elapsed() < time {
                    step(world, thread, at);
                    at += 1;
                    made.fetch_add(1, Ordering::Relaxed);
                    let tenths = 10 * start.elapsed().as_millis() / time.as_millis().max(1);
                    if thread == 0
                        && seen.lock().unwrap().len() < usize::try_from(tenths).unwrap_or(0).min(10)
                    {
                        seen.lock().unwrap().push(process(session));
                    }
                }
            });
        }
    });
    assert_eq!(session.linking().check(), Ok(()));
    println!("{} steps", made.into_inner());
    (session, seen.into_inner().unwrap())
}

#[test]
fn nine_threads_for_a_moment() {
    let (session, _) = stress(60, Duration::ZERO);
    assert!(session.end().is_empty());
}

#[test]
#[ignore = "takes as long as `BROLGA_SECONDS` says"]
#[expect(clippy::disallowed_methods, reason = "the time is a setting of who runs the test")]
fn nine_threads_for_long() {
    let seconds = std::env::var("BROLGA_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let (session, seen) = stress(1_000, Duration::from_secs(seconds));
    seen.iter().for_each(|memory| println!("{memory:?}"));
    println!("{:?}", session.stats());
    let (first, last) = (seen[1], seen[seen.len() - 1]);
    // Tables vary by less than that.
    assert!(last.live < first.live + 3_000_000, "live memory grows: {seen:?}");
    assert!(last.mappings <= first.mappings + 32, "mappings grow: {seen:?}");
}

/// Tables drop what is gone when they have doubled, so the least of several measurements counts, and a megabyte is within what they vary by. A name that stays takes some three hundred bytes.
#[test]
#[ignore = "measures the whole process, so it runs alone"]
fn no_operation_leaves_anything() {
    let session = session(Workers::Pool(1));
    let world = world(&session);
    let mut at = 0;
    let mut grown = Vec::new();
    for thread in 0..9 {
        let mut least = || {
            let measured = (0..6).map(|_| {
                for _ in 0..2000 {
                    step(&world, thread, at);
                    at += 1;
                }
                session.finish_background();
                process(&session).live
            });
            measured.min().unwrap_or_default()
        };
        let (first, last) = (least(), least());
        grown.push((last - first) / 12_000);
    }
    println!("bytes that a step of each thread leaves: {grown:?}");
    assert!(grown.iter().all(|bytes| *bytes < 200), "{grown:?}");
}
