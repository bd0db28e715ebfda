//! The concurrent protocols, in all interleavings that loom finds. Run with
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p brolga-linking --lib models
//! ```
//!
//! | model | protocol | what would go wrong |
//! |---|---|---|
//! | `publish_and_read` | `board.rs` B1, B2 | an address is seen before its code |
//! | `a_cell_is_let_again_under_its_readers` | `board.rs` B1, B2; `uses.rs` | a symbol that outlives its name finds another's code |
//! | `the_last_holder_frees_a_name` | `uses.rs` N1, N2 | an index is reused while its last holder still reads it |
//! | `emission_against_removal` | the session's lock, boards inside it | a removed symbol stays on the board |
//! | `lookup_against_removal` | the same | a lookup without answer; an address after removal was seen |
//! | `lookup_against_renewal` | the same | a lookup finds nothing while a symbol is returned to its source |
//! | `a_lookup_that_comes_after_a_failure_for_now` | the same | a lookup gets a cause that no longer holds |
//! | `a_dropped_responsibility` | `promise.rs`, failure by drop | a thread waits forever |
//! | `a_push_wakes_a_sleeper` | `queue.rs` Q1 to Q3 | a task stays in the queue while its worker sleeps |
//! | `draining_sees_what_tasks_did` | `queue.rs` Q4 to Q8 | draining sleeps forever, or ends before a task's effects are visible |
//!
//! The models' own words, which represent code, slots and the effects of tasks:
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | M1 | what a protocol must make visible | Relaxed | | a stronger order would hide that the protocol does not |
//! | M2 | data that only the model itself reads | SeqCst | | nothing |
//!
//! `tests/weaken.sh` weakens the rows one by one: each time a model must fail. Loom does not see the standard library's
//! `OnceLock`, through which readers find cells (here they are made before threads start).

use std::sync::Arc;

use loom::thread;

use crate::dispatch::queue::Queue;
use crate::session::{PlainHost, required};
use crate::sync::{AtomicU64, Ordering};
use crate::uses::{Freed, Uses};
use crate::{
    Dependants, Dispatcher, Dylib, Error, Latch, OnDrop, Priority, Responsibility, Session, SymbolFlags,
    Target, Task, Until, unit,
};
use crate::{Symbol, board::Board};

struct Words;

impl Target for Words {
    type Address = u64;
    type Code = ();
}

/// Runs tasks where they are made; waiting threads park. (Threads of a model are one thread to the standard
/// library.)
struct Inline;

impl Dispatcher for Inline {
    fn dispatch(&self, task: Task) {
        task.run();
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), Error> {
        latch.park();
        Ok(())
    }

    fn drain(&self) {}
}

/// All interleavings with up to three preemptions: more find nothing here and take minutes.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn session() -> (Session<Words>, Dylib<Words>) {
    let session = Session::new(Arc::new(Inline), Box::new(PlainHost));
    let main = session.create_dylib("main").expect("a dylib");
    (session, main)
}

/// A responsibility for `symbol`, which was looked up and which is tracked.
fn begun(
    main: &Dylib<Words>,
    symbol: Symbol,
) -> (Responsibility<Words>, crate::Tracker<Words>, crate::Lookup<Words>) {
    let kept = Arc::new(std::sync::Mutex::new(None));
    let there = Arc::clone(&kept);
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let unit = unit([(symbol, SymbolFlags::EXPORTED)], move |duty: Responsibility<Words>| {
        *there.lock().expect("kept") = Some(duty);
    });
    main.define_all(vec![unit], Some(&tracker)).expect("defined");
    let lookup = main.session().lookup(vec![main.all()], required([symbol]), Until::Ready);
    // The board's cell is made before the threads are.
    assert_eq!(main.ready(symbol), None);
    let duty = kept.lock().expect("kept").take().expect("started");
    (duty, tracker, lookup)
}

#[test]
fn publish_and_read() {
    model(|| {
        let board = Arc::new(Board::new());
        let code = Arc::new(AtomicU64::new(0));
        let symbol = Symbol { index: 1, generation: 1 };
        board.set(symbol, Some(41));
        board.set(symbol, None);
        let writer = {
            let (board, code) = (Arc::clone(&board), Arc::clone(&code));
            thread::spawn(move || {
                code.store(7, Ordering::Relaxed); // M1
                board.set(symbol, Some(42));
            })
        };
        if board.get(symbol) == Some(42) {
            assert_eq!(code.load(Ordering::Relaxed), 7); // M1
        }
        writer.join().expect("no panic");
        assert_eq!(board.get(symbol), Some(42));
    });
}

/// A name is freed while its symbol is read, and its index is reused for another name, which is published.
#[test]
fn a_cell_is_let_again_under_its_readers() {
    model(|| {
        let board = Arc::new(Board::new());
        let uses = Arc::new(Uses::new(1));
        let old = Symbol { index: 1, generation: uses.revive() };
        board.set(old, Some(41));
        let writer = {
            let (board, uses) = (Arc::clone(&board), Arc::clone(&uses));
            thread::spawn(move || {
                board.set(old, None);
                assert!(uses.let_go());
                assert_eq!(uses.free(old.generation, 1), Freed::Yes);
                let new = Symbol { index: 1, generation: uses.revive() };
                board.set(new, Some(42));
                new
            })
        };
        assert!(matches!(board.get(old), Some(41) | None), "another's code");
        let new = writer.join().expect("no panic");
        assert_eq!((board.get(old), board.get(new)), (None, Some(42)));
        assert!(!uses.hold(old.generation));
    });
}

/// Two holders release a name; the last one frees its slot, ordered after the other's reads there.
#[test]
fn the_last_holder_frees_a_name() {
    model(|| {
        let uses = Arc::new(Uses::new(1));
        let read = Arc::new(AtomicU64::new(0));
        let generation = uses.revive();
        assert!(uses.hold(generation));
        let lets_go = move |uses: &Uses, read: &AtomicU64| {
            read.fetch_add(1, Ordering::Relaxed); // M1
            let is_freed = uses.let_go() && uses.free(generation, 1) == Freed::Yes;
            assert!(!is_freed || read.load(Ordering::Relaxed) == 2); // M1
            is_freed
        };
        let other = {
            let (uses, read) = (Arc::clone(&uses), Arc::clone(&read));
            thread::spawn(move || lets_go(&uses, &read))
        };
        let here = lets_go(&uses, &read);
        assert!(here != other.join().expect("no panic"), "it is freed once");
        assert!(!uses.hold(generation));
    });
}

#[test]
fn emission_against_removal() {
    model(|| {
        let (session, main) = session();
        let foo = session.intern("foo");
        let (duty, tracker, lookup) = begun(&main, foo);
        let remover = thread::spawn(move || tracker.remove(Dependants::Cascade).expect("removed"));
        let emitted = duty.resolve([(foo, 42)]).and_then(|resolved| resolved.emit([]));
        remover.join().expect("no panic");
        assert_eq!(main.ready(foo), None);
        let answer = lookup.wait();
        assert!(answer.is_err() || emitted.is_ok());
        session.check().expect("invariants");
    });
}

#[test]
fn lookup_against_removal() {
    model(|| {
        let (session, main) = session();
        let foo = session.intern("foo");
        let (duty, tracker, lookup) = begun(&main, foo);
        duty.resolve([(foo, 42)]).expect("resolved").emit([]).expect("emitted");
        drop(lookup);
        let remover = thread::spawn(move || tracker.remove(Dependants::Cascade).expect("removed"));
        let answer = main.lookup([foo]).wait();
        let first = main.ready(foo);
        let second = main.ready(foo);
        assert!(!(answer.is_err() && first.is_some()) && !(first.is_none() && second.is_some()));
        remover.join().expect("no panic");
        assert_eq!(main.ready(foo), None);
    });
}

/// Two threads look it up while the symbol is renewed each time it is found ready.
#[test]
fn lookup_against_renewal() {
    model(|| {
        let (session, main) = session();
        let foo = session.intern("foo");
        let made = |address| {
            unit([(foo, SymbolFlags::EXPORTED)], move |duty: Responsibility<Words>| {
                duty.resolve([(foo, address)]).expect("resolved").emit([]).expect("emitted");
            })
        };
        main.define_all(vec![made(1)], None).expect("defined");
        main.lookup([foo]).wait().expect("ready");
        let looks = move |main: &Dylib<Words>| {
            let found = main.lookup([foo]).wait_one().expect("there is always one to be had");
            assert!(matches!(found.address, Some(1 | 2)));
        };
        let other = {
            let main = main.clone();
            thread::spawn(move || looks(&main))
        };
        let renewed = session.renew(main.label(foo), 1, made(2));
        assert!(renewed, "it has no users");
        assert!(!session.renew(main.label(foo), 1, made(3)), "it leads elsewhere");
        looks(&main);
        other.join().expect("no panic");
        session.check().expect("invariants");
    });
}

#[test]
fn a_lookup_that_comes_after_a_failure_for_now() {
    model(|| {
        let (session, main) = session();
        let foo = session.intern("foo");
        let (duty, _tracker, lookup) = begun(&main, foo);
        let has_failed = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&has_failed);
        let waiter = thread::spawn(move || {
            let told = lookup.wait();
            seen.store(1, Ordering::SeqCst); // M2
            assert!(told.is_err(), "it has waited for what failed");
        });
        let later = {
            let main = main.clone();
            thread::spawn(move || {
                let before = has_failed.load(Ordering::SeqCst); // M2
                let answer = main.lookup([foo]).wait_one();
                assert!(before == 0 || answer.is_ok(), "the cause has passed");
            })
        };
        duty.fail_for_now(
            "no room",
            unit([(foo, SymbolFlags::EXPORTED)], move |duty: Responsibility<Words>| {
                duty.resolve([(foo, 7)]).expect("resolved").emit([]).expect("emitted");
            }),
        );
        waiter.join().expect("no panic");
        later.join().expect("no panic");
        let found = main.lookup([foo]).wait_one().expect("it is made by the other unit");
        assert_eq!(found.address, Some(7));
        session.check().expect("invariants");
    });
}

#[test]
fn a_dropped_responsibility() {
    model(|| {
        let (session, main) = session();
        let foo = session.intern("foo");
        let (duty, _tracker, lookup) = begun(&main, foo);
        let waiter = thread::spawn(move || lookup.wait().is_err());
        drop(duty);
        assert!(waiter.join().expect("no panic"));
        session.check().expect("invariants");
    });
}

#[test]
fn a_push_wakes_a_sleeper() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let ran = Arc::new(AtomicU64::new(0));
        let worker = {
            let (queue, ran) = (Arc::clone(&queue), Arc::clone(&ran));
            thread::spawn(move || {
                loop {
                    queue.run_or_sleep(|| false);
                    let done = ran.load(Ordering::SeqCst); // M2
                    if done > 0 {
                        break;
                    }
                }
            })
        };
        let task = {
            let ran = Arc::clone(&ran);
            Task::new(Priority::Normal, move || {
                ran.fetch_add(1, Ordering::SeqCst); // M2
            })
        };
        queue.push(task);
        worker.join().expect("no panic");
    });
}

#[test]
fn draining_sees_what_tasks_did() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let did = Arc::new(AtomicU64::new(0));
        let task = {
            let did = Arc::clone(&did);
            Task::new(Priority::Normal, move || did.store(1, Ordering::Relaxed)) // M1
        };
        queue.push(task);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                if let Some(task) = queue.pop() {
                    queue.run(task);
                }
            })
        };
        queue.drain(0);
        assert_eq!(did.load(Ordering::Relaxed), 1); // M1
        worker.join().expect("no panic");
    });
}
