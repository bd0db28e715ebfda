//! Work under way when a session ends or a dylib is opened: it is finished first, refused, or reported to
//! wait for itself.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{E, Kept, Words, in_place, keep, made, take};
use brolga_linking::{
    Dylib, DylibId, Error, Foreign, Generator, OnDrop, Priority, Request, Responsibility, Session, Symbol,
    SymbolFlags, Unit, Until, absolute, required, unit,
};

/// Longer than anything here takes: an answer not there by then will never come.
const NEVER: Duration = Duration::from_secs(20);

/// The result of `work`, which must finish.
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = channel();
    thread::spawn(move || send.send(work()));
    receive.recv_timeout(NEVER).expect("it comes to an end, without a panic")
}

/// Waits until other threads can have reached their wait.
fn let_them_wait() {
    (0..2_000).for_each(|_| thread::yield_now());
}

/// A point at which a thread reports its arrival, and waits until it may continue.
fn stop() -> (impl Fn() + Send, Receiver<()>, Sender<()>) {
    let ((is_in, has_come), (go_on, goes_on)) = (channel(), channel::<()>());
    let stop = move || {
        is_in.send(()).expect("awaited");
        goes_on.recv_timeout(NEVER).expect("told");
    };
    (stop, has_come, go_on)
}

/// Returns when the session accepts nothing new.
fn wait_for_the_end(main: &Dylib<Words>) {
    while main.create_tracker(OnDrop::Remove).is_ok() {
        thread::yield_now();
    }
}

/// A unit with only an initialiser, whose responsibility is passed to `by`.
fn initialiser(symbol: Symbol, by: impl FnOnce(Responsibility<Words>) + Send + 'static) -> Unit<Words> {
    let mut unit = unit([(symbol, E | SymbolFlags::SIDE_EFFECTS_ONLY)], by);
    unit.initializer = Some(symbol.into());
    unit
}

fn is_ready(duty: Responsibility<Words>) {
    duty.resolve([]).expect("resolved").emit([]).expect("emitted");
}

/// A session whose `main` has an initialiser, and `late`, which has not been looked up.
fn with_initialiser() -> (Session<Words>, Dylib<Words>, Symbol) {
    let (session, main) = in_place();
    let [init, late] = ["init", "late"].map(|name| session.intern(name));
    main.define(initialiser(init, is_ready)).expect("defined");
    main.define(made(&[(late, E, 7)])).expect("defined");
    (session, main, late)
}

/// Ends the session in another thread; returns what was deinitialised.
fn ends(session: &Session<Words>) -> thread::JoinHandle<Vec<DylibId>> {
    let session = session.clone();
    thread::spawn(move || {
        let mut gone = Vec::new();
        session.end(|id| gone.push(id));
        gone
    })
}

#[test]
fn an_opening_under_way_is_finished_before_the_session_ends() {
    let (session, main, late) = with_initialiser();
    let (stop, has_come, go_on) = stop();
    let dylib = main.clone();
    let opened = thread::spawn(move || {
        let run = |_: &_| {
            stop();
            dylib.lookup([late]).wait_one().map(drop).map_err(|error| Arc::new(error) as Foreign)
        };
        dylib.open(run, |_| panic!("it was opened"))
    });
    has_come.recv_timeout(NEVER).expect("it is being initialised");
    let end = ends(&session);
    wait_for_the_end(&main);
    assert!(matches!(main.lookup([late]).wait(), Err(Error::SessionEnded)));
    assert!(matches!(main.open(|_| Ok(()), |_| {}), Err(Error::SessionEnded)));
    assert!(matches!(main.update(|_| Ok(())), Err(Error::SessionEnded)));
    let_them_wait();
    assert!(!end.is_finished(), "the opening is under way");
    go_on.send(()).expect("it waits");
    opened.join().expect("no panic").expect("opened");
    assert_eq!(end.join().expect("no panic"), [main.id()]);
    session.check().expect("invariants");
}

#[test]
fn a_closing_under_way_is_finished_before_the_session_ends() {
    let (session, main, late) = with_initialiser();
    let (stop, has_come, go_on) = stop();
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let dylib = main.clone();
    let closed = thread::spawn(move || {
        dylib.close(|_| {
            stop();
            assert_eq!(dylib.lookup([late]).wait_one().expect("found").address, Some(7));
        })
    });
    has_come.recv_timeout(NEVER).expect("it is being deinitialised");
    let end = ends(&session);
    wait_for_the_end(&main);
    let_them_wait();
    assert!(!end.is_finished(), "the closing is under way");
    go_on.send(()).expect("it waits");
    closed.join().expect("no panic").expect("closed");
    assert_eq!(end.join().expect("no panic"), [], "it was deinitialised");
    session.check().expect("invariants");
}

#[test]
fn the_end_does_not_wait_for_openings_that_wait_for_it() {
    let (session, main, _) = with_initialiser();
    let (ending, dylib) = (session.clone(), main.clone());
    // It is itself executing an opening.
    in_time(move || {
        let run = |_: &_| {
            ending.end(|_| {});
            Ok(())
        };
        dylib.open(run, |_| {})
    })
    .expect("it was opened");
    wait_for_the_end(&main);

    // Another opening waits for this one, already or later.
    for comes_late in [false, true] {
        let (session, main, _) = with_initialiser();
        let other = session.create_dylib("other").expect("a dylib");
        other.define(initialiser(session.intern("other.init"), is_ready)).expect("defined");
        let (stop, has_come, go_on) = stop();
        let (a, b) = (main.clone(), other.clone());
        thread::spawn(move || {
            let run = |_: &_| {
                stop();
                drop(b.open(|_| Ok(()), |_| {}));
                Ok(())
            };
            a.open(run, |_| {})
        });
        has_come.recv_timeout(NEVER).expect("it is being initialised");
        let ending = session.clone();
        in_time(move || {
            let run = |_: &_| {
                let go_on = go_on.clone();
                let tell = move || go_on.send(()).expect("it waits");
                if comes_late {
                    thread::spawn(move || (let_them_wait(), tell()));
                } else {
                    tell();
                    let_them_wait();
                }
                ending.end(|_| {});
                Ok(())
            };
            other.open(run, |_| {})
        })
        .expect("it was opened");
        session.check().expect("invariants");
    }
}

#[test]
fn the_continuation_of_a_lookup_belongs_to_it() {
    let (session, main, late) = with_initialiser();
    let f = session.intern("f");
    let kept = Kept::default();
    main.define(keep(&[(f, E)], &kept)).expect("defined");
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let (send, answers) = channel();
    let look_up = || {
        let (send, dylib) = (send.clone(), main.clone());
        let goes_on = move |_: brolga_linking::Answer<Words>| {
            let address = dylib.lookup([late]).wait_one().map(|found| found.address);
            send.send(address).expect("awaited");
        };
        session.lookup_then(vec![main.all()], required([f]), Until::Ready, Priority::Normal, goes_on);
    };
    look_up();
    session.end(|_| {
        // A thread unknown to the session.
        let fulfils = || {
            look_up();
            take(&kept).resolve([(f, 1)]).expect("resolved").emit([]).expect("emitted");
        };
        thread::scope(|scope| scope.spawn(fulfils).join()).expect("no panic");
    });
    let refused = answers.recv_timeout(NEVER).expect("an answer");
    assert!(matches!(refused, Err(Error::SessionEnded)), "it was begun behind the end");
    assert_eq!(answers.recv_timeout(NEVER).expect("an answer").expect("found"), Some(7));
    session.check().expect("invariants");
}

struct Keeps(Arc<Mutex<Vec<Request<Words>>>>);

impl Generator<Words> for Keeps {
    fn generate(&self, request: Request<Words>) {
        self.0.lock().expect("asked").push(request);
    }
}

#[test]
fn work_of_a_generator_on_another_thread_belongs_to_the_lookup() {
    let (session, main, late) = with_initialiser();
    let asked = Arc::default();
    let source = session.create_dylib("source").expect("a dylib");
    source.add_generator(Keeps(Arc::clone(&asked))).expect("open");
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let [x, y] = ["x", "y"].map(|name| session.intern(name));
    let [first, second] = [x, y].map(|symbol| source.lookup([symbol]));
    assert!(!first.is_done() && !second.is_done());
    let order = vec![main.all()];
    session.end(|_| {
        let answers = || {
            let [first, second] = [0, 0].map(|at| asked.lock().expect("asked").remove(at));
            let looked = first.lookup(order.clone(), required([late]), Until::Ready);
            let address = looked.wait_one().expect("found").address.expect("an address");
            first.define(vec![absolute([(x, E, address + 1)])]).expect("defined");
            first.done();
            second.lookup_then(order.clone(), required([late]), Until::Ready, move |request, found| {
                let address = found.expect("found")[0].address.expect("an address");
                request.define(vec![absolute([(y, E, address + 2)])]).expect("defined");
                request.done();
            });
        };
        thread::scope(|scope| scope.spawn(answers).join()).expect("no panic");
    });
    assert_eq!(first.wait_one().expect("found").address, Some(8));
    assert_eq!(second.wait_one().expect("found").address, Some(9));
    session.check().expect("invariants");
}

/// A task of one thread opens a dylib that another thread is opening, where that needs the task: to make the
/// initialiser, or to run it.
#[test]
fn an_initialiser_that_needs_the_task_that_opens_is_told_so() {
    for (is_made, comes_late) in [(false, false), (false, true), (true, false), (true, true)] {
        let (by_task, by_thread) = in_time(move || opens_in_a_cycle(is_made, comes_late));
        let told = [&by_task, &by_thread].map(|opened| match opened {
            Ok(()) => false,
            Err(Error::Failed(failure)) => failure.root().to_string().starts_with("needed while"),
            Err(Error::Initializer { error, .. }) => error.to_string().starts_with("needed while"),
            Err(error) => matches!(error, Error::Cycle { .. }),
        });
        assert!(told.contains(&true), "{is_made} {comes_late}: {by_task:?} {by_thread:?}");
    }
}

/// The outcomes of the task's opening and of the other thread's.
fn opens_in_a_cycle(is_made: bool, comes_late: bool) -> (Result<(), Error>, Result<(), Error>) {
    let (session, main) = in_place();
    let library = session.create_dylib("library").expect("a dylib");
    library.add_links(vec![main.exported()]).expect("open");
    let [init, task] = ["init", "task"].map(|name| session.intern(name));
    let (stop, in_task, go_on) = stop();
    // Tells the task that the other thread is busy.
    let busy = Mutex::new(Some(go_on));
    let is_busy: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        let told = busy.lock().expect("busy").take().map(|go_on| go_on.send(()));
        told.expect("once").expect("it waits");
        if comes_late {
            let_them_wait();
        }
    });
    let (send, by_task) = channel();
    let (dylib, tells) = (library.clone(), send);
    main.define(unit([(task, E)], move |duty: Responsibility<Words>| {
        stop();
        if !comes_late {
            let_them_wait();
        }
        tells.send(dylib.open(|_| Ok(()), |_| {})).expect("awaited");
        duty.resolve([(task, 1)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    let runs_late = Arc::clone(&is_busy);
    library
        .define(initialiser(init, move |duty| {
            if is_made {
                is_busy();
                match duty.lookup([task], Until::Ready).expect("in force").wait() {
                    Ok(_) => is_ready(duty),
                    Err(error) => duty.fail(error),
                }
            } else {
                is_ready(duty);
            }
        }))
        .expect("defined");
    let dylib = main.clone();
    let asks = thread::spawn(move || dylib.lookup([task]).wait().is_ok());
    in_task.recv_timeout(NEVER).expect("begun");
    let runs = |_: &_| {
        if !is_made {
            runs_late();
        }
        main.lookup([task]).wait().map(drop).map_err(|error| Arc::new(error) as Foreign)
    };
    let by_thread = library.open(runs, |_| {});
    let by_task = by_task.recv_timeout(NEVER).expect("the task's opening comes to an end");
    assert!(asks.join().expect("no panic"));
    session.check().expect("invariants");
    (by_task, by_thread)
}

/// Keeps retired code, like a host whose threads may still run it.
struct Retires(Arc<Mutex<Vec<crate::support::Owned>>>);

impl brolga_linking::Host<Words> for Retires {
    fn retire(&self, code: Vec<crate::support::Owned>) {
        self.0.lock().expect("retired").extend(code);
    }
}

/// Without an end, code is still passed to the host, what was never made is dropped, and nothing is
/// deinitialised.
#[test]
fn a_session_that_is_dropped_without_an_end_gives_everything_back() {
    let retired = Arc::default();
    let session: Session<Words> =
        Session::new(Arc::new(brolga_linking::InPlace::new()), Box::new(Retires(Arc::clone(&retired))));
    let main = session.create_dylib("main").expect("a dylib");
    let [init, f, lazy] = ["init", "f", "lazy"].map(|name| session.intern(name));
    main.define(initialiser(init, is_ready)).expect("defined");
    let (freed, never) = (Arc::default(), crate::support::Never::new(&[(lazy, E)]));
    let (owned, dropped) = (crate::support::Owned(Arc::clone(&freed)), Arc::clone(&never.dropped));
    main.define(never.unit()).expect("defined");
    main.define(unit([(f, E)], move |duty: Responsibility<Words>| {
        assert!(duty.attach(owned).is_ok());
        duty.resolve([(f, 1)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    main.lookup([f]).wait().expect("ready");
    main.open(|_| Ok(()), |_| panic!("it is not ended")).expect("opened");
    let gone = session.downgrade();
    drop((session, main));
    assert!(gone.upgrade().is_none());
    assert_eq!(
        (crate::support::count(&freed), crate::support::count(&dropped)),
        (0, 1),
        "its host has the code"
    );
    assert_eq!(retired.lock().expect("retired").len(), 1);
}

/// Tasks in flight and waiting lookups are handles: they are finished, and the last one ends the session, on any thread.
#[test]
fn work_in_flight_outlives_the_handles_of_a_session() {
    let pool = Arc::new(brolga_linking::Pool::new(2));
    let (session, main) = crate::support::with(pool);
    let [slow, needs] = ["slow", "needs"].map(|name| session.intern(name));
    let (freed, gone) = (Arc::default(), session.downgrade());
    let (stop, has_come, go_on) = stop();
    let owned = crate::support::Owned(Arc::clone(&freed));
    main.define(unit([(slow, E)], move |duty: Responsibility<Words>| {
        stop();
        assert!(duty.attach(owned).is_ok());
        duty.resolve([(slow, 7)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    main.define(unit([(needs, E)], move |duty: Responsibility<Words>| {
        duty.lookup_then(required([slow]), Until::Ready, move |duty, found| {
            let need = found[0].into();
            duty.resolve([(needs, 8)]).expect("resolved").emit([need]).expect("emitted");
        });
    }))
    .expect("defined");
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let (lookup, (told, tells)) = (main.lookup([needs]), channel());
    session.lookup_then(vec![main.all()], required([needs]), Until::Ready, Priority::Normal, move |answer| {
        told.send(answer.map(|found| found[0].address)).expect("awaited");
    });
    let waits = thread::spawn(move || lookup.wait_one().map(|found| found.address));
    has_come.recv_timeout(NEVER).expect("it is being made");
    drop((session, main));
    assert!(gone.upgrade().is_some(), "somebody waits");
    go_on.send(()).expect("it waits");
    assert_eq!(waits.join().expect("no panic").expect("ready"), Some(8));
    assert_eq!(tells.recv_timeout(NEVER).expect("told").expect("ready"), Some(8));
    let deadline = std::time::Instant::now() + NEVER;
    while crate::support::count(&freed) == 0 && std::time::Instant::now() < deadline {
        thread::yield_now();
    }
    assert_eq!(crate::support::count(&freed), 1);
    assert!(gone.upgrade().is_none());
}
