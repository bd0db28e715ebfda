//! Initialisers, and the rest of the life of a dylib.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{E, Words, count, failure, in_place, made};
use brolga_linking::{
    AtOpening, Dylib, DylibId, Error, Foreign, Label, MaterializationUnit, Name, Responsibility, Session,
    Symbol, SymbolFlags, unit,
};

fn closed(dylib: &Dylib<Words>) -> Result<Vec<DylibId>, Error> {
    let mut closed = Vec::new();
    dylib.close(|id| closed.push(id))?;
    Ok(closed)
}

/// The initialisers that an opening runs.
fn opened(dylib: &Dylib<Words>) -> Vec<String> {
    let mut ran = Vec::new();
    let run = |name: &Name| {
        ran.push(name.symbol.to_string());
        Ok(())
    };
    dylib.open(run, |_| {}).expect("opened");
    ran
}

/// A unit with only an initialiser.
fn initialised(session: &Session<Words>, dylib: &Dylib<Words>, name: &str) -> Symbol {
    let symbol = session.intern(name);
    let mut unit = unit([(symbol, E | SymbolFlags::SIDE_EFFECTS_ONLY)], |duty: Responsibility<Words>| {
        duty.resolve([]).expect("resolved").emit([]).expect("emitted");
    });
    unit.initializer = Some(symbol.into());
    dylib.define(unit).expect("defined");
    symbol
}

#[test]
fn dlopen_runs_what_is_linked_against_first_and_each_once() {
    let (session, main) = in_place();
    let [a, b] = ["a", "b"].map(|name| session.create_dylib(name).expect("a dylib"));
    main.add_links(vec![a.exported(), b.exported()]).expect("open");
    a.add_links(vec![b.exported(), main.exported()]).expect("open");
    for (dylib, name) in [(&main, "init.main"), (&a, "init.a"), (&b, "init.b")] {
        initialised(&session, dylib, name);
    }
    let ran = Mutex::new(Vec::new());
    let run = |name: &Name| {
        ran.lock().expect("ran").push(name.symbol.to_string());
        Ok(())
    };
    let drained = || std::mem::take(&mut *ran.lock().expect("ran"));
    main.open(run, |_| {}).expect("opened");
    assert_eq!(drained(), ["init.b", "init.a", "init.main"]);
    b.open(run, |_| {}).expect("opened");
    main.open(run, |_| {}).expect("opened");
    assert!(drained().is_empty(), "each once");
    // `dlupdate`: those added since.
    initialised(&session, &a, "init.a2");
    main.update(run).expect("updated");
    assert_eq!(drained(), ["init.a2"]);
    // `dlclose`: dependants first, what is still open stays.
    assert_eq!(closed(&main).expect("open"), []);
    assert_eq!(closed(&main).expect("open"), [main.id(), a.id()]);
    assert!(matches!(closed(&main), Err(Error::Unknown { .. })), "it is not open any more");
    // And again.
    a.open(run, |_| {}).expect("opened");
    assert_eq!(drained(), ["init.main", "init.a", "init.a2"]);
    assert_eq!(closed(&b).expect("open"), []);
    assert_eq!(closed(&a).expect("open"), [a.id(), main.id(), b.id()]);
}

#[test]
fn a_failed_initialiser_is_reported_until_it_is_replaced() {
    let (session, main) = in_place();
    let bad = session.intern("bad");
    let mut failing = unit([(bad, E | SymbolFlags::SIDE_EFFECTS_ONLY)], |duty: Responsibility<Words>| {
        duty.fail("does not compile")
    });
    failing.initializer = Some(bad.into());
    main.define(failing).expect("defined");
    initialised(&session, &main, "good");
    for _ in 0..2 {
        let failed = main.open(|name| panic!("{name} was run"), |_| {});
        assert_eq!(failure(failed).root().to_string(), "does not compile");
    }
    let fixed = [(bad, E | SymbolFlags::SIDE_EFFECTS_ONLY)];
    let mut fixed = unit(fixed, |duty: Responsibility<Words>| {
        duty.resolve([]).expect("resolved").emit([]).expect("emitted");
    });
    fixed.initializer = Some(bad.into());
    main.redefine(vec![fixed], None).expect("replaced");
    assert_eq!(opened(&main), ["bad", "good"], "it runs when the other would have run");
    // One that reports an error is due again.
    initialised(&session, &main, "moody");
    let refused = main.update(|_| Err(not_today()));
    assert!(matches!(refused, Err(Error::Initializer { name, .. }) if &*name.symbol == "moody"));
    let mut again = 0;
    main.update(|_| {
        again += 1;
        Ok(())
    })
    .expect("updated");
    assert_eq!(again, 1);
}

/// An error of an embedder of the session.
fn not_today() -> Foreign {
    Foreign::from(Box::<dyn std::error::Error + Send + Sync>::from("not today"))
}

#[test]
fn dylibs_initialised_before_one_that_fails_are_deinitialised() {
    let (session, main) = in_place();
    let [a, b, apart] = ["a", "b", "apart"].map(|name| session.create_dylib(name).expect("a dylib"));
    main.add_links(vec![a.exported(), b.exported()]).expect("open");
    apart.add_links(vec![a.exported()]).expect("open");
    for (dylib, name) in [(&a, "init.a"), (&b, "init.b"), (&main, "init.main")] {
        initialised(&session, dylib, name);
    }
    let log = Mutex::new(Vec::new());
    let ran = |name: &Name| {
        log.lock().expect("log").push(name.symbol.to_string());
        if &*name.symbol == "init.main" { Err(not_today()) } else { Ok(()) }
    };
    let gone = |id: DylibId| log.lock().expect("log").push(format!("{id:?}"));
    let drained = || std::mem::take(&mut *log.lock().expect("log"));
    let [id_a, id_b] = [&a, &b].map(|dylib| format!("{:?}", dylib.id()));
    for _ in 0..2 {
        assert!(matches!(main.open(ran, gone), Err(Error::Initializer { .. })));
        assert_eq!(drained(), ["init.a", "init.b", "init.main", &*id_b, &*id_a]);
        assert!(matches!(closed(&main), Err(Error::Unknown { .. })), "it is not open");
    }
    // Dylibs held by others stay.
    apart.open(ran, gone).expect("opened");
    assert!(main.open(ran, gone).is_err());
    assert_eq!(drained(), ["init.a", "init.b", "init.main", &*id_b]);
    assert_eq!(closed(&apart).expect("open"), [apart.id(), a.id()]);
    session.check().expect("invariants");
}

#[test]
fn a_second_opening_waits_for_the_first() {
    for fails in [false, true] {
        let (session, main) = in_place();
        initialised(&session, &main, "init");
        let (is_in, goes_on) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let runs = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (is_in, goes_on, runs, main) = (&is_in, &goes_on, &runs, &main);
            let first = scope.spawn(move || {
                main.open(
                    |_| {
                        // It does not wait for its own work.
                        main.open(|name| panic!("{name} was run"), |_| {}).expect("opened");
                        main.close(|_| panic!("it is open")).expect("open");
                        is_in.store(1, Ordering::SeqCst);
                        while count(goes_on) == 0 {
                            std::thread::yield_now();
                        }
                        if fails { Err(not_today()) } else { Ok(()) }
                    },
                    |_| panic!("nothing was initialised"),
                )
            });
            while count(is_in) == 0 {
                std::thread::yield_now();
            }
            let second = scope.spawn(move || {
                let run = |_: &Name| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                };
                let opened = main.open(run, |_| panic!("it is open"));
                (opened.is_ok(), count(goes_on))
            });
            let is_early = (0..1000).any(|_| {
                std::thread::yield_now();
                second.is_finished()
            });
            goes_on.store(1, Ordering::SeqCst);
            assert!(!is_early, "the initialiser had not run");
            assert_eq!(first.join().expect("no panic").is_err(), fails);
            assert_eq!(second.join().expect("no panic"), (true, 1));
        });
        assert_eq!(count(&runs), usize::from(fails), "who has waited runs what has failed");
        if !fails {
            assert_eq!(closed(&main).expect("open"), []);
        }
        assert_eq!(closed(&main).expect("open"), [main.id()]);
        session.check().expect("invariants");
    }
}

#[test]
fn an_initialiser_whose_dependence_passes_is_due_again() {
    let (session, main) = in_place();
    let [up, init] = ["up", "up.init"].map(|name| session.intern(name));
    let short = unit([(up, E)], move |duty: Responsibility<Words>| {
        duty.fail_for_now("no room", made(&[(up, E, 7)]));
    });
    main.define(short).expect("defined");
    let needs = main.label(up);
    let side = E | SymbolFlags::SIDE_EFFECTS_ONLY;
    let mut marker = unit([(init, side)], move |duty: Responsibility<Words>| {
        let again = unit([(init, side)], move |duty: Responsibility<Words>| {
            duty.resolve([]).expect("resolved").emit([needs.into()]).expect("emitted");
        });
        // A refusal has failed the unit.
        let _ = duty.resolve([]).expect("resolved").emit_or_again([needs.into()], again);
    });
    marker.initializer = Some(init.into());
    main.define(marker).expect("defined");
    initialised(&session, &main, "last");
    assert!(main.open(|name| panic!("{name} was run"), |_| {}).is_err());
    assert_eq!(opened(&main), ["up.init", "last"]);
    session.check().expect("invariants");
}

#[test]
fn an_initialiser_that_failed_is_made_again_when_it_can_be() {
    let (session, main) = in_place();
    let [up, init] = ["up", "up.init"].map(|name| session.intern(name));
    main.define(unit([(up, E)], |duty: Responsibility<Words>| duty.fail("does not compile")))
        .expect("defined");
    /// Represents the run of a function.
    struct Marker {
        init: Symbol,
        up: Symbol,
    }
    impl MaterializationUnit<Words> for Marker {
        fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
            vec![(self.init, E | SymbolFlags::SIDE_EFFECTS_ONLY)]
        }
        fn initializer(&self) -> Option<AtOpening> {
            Some(self.init.into())
        }
        fn materialize(self: Box<Self>, duty: Responsibility<Words>) {
            let needs = Label { dylib: duty.dylib().expect("in force"), symbol: self.up };
            let again: Box<dyn MaterializationUnit<Words>> = self;
            // A refusal has failed the unit.
            let _ = duty.resolve([]).expect("resolved").emit_or_again([needs.into()], again);
        }
    }
    let marker: Box<dyn MaterializationUnit<Words>> = Box::new(Marker { init, up });
    main.define(marker).expect("defined");
    initialised(&session, &main, "last");
    for _ in 0..2 {
        let failed = main.open(|name| panic!("{name} was run"), |_| {});
        assert_eq!(failure(failed).root().to_string(), "does not compile");
        session.check().expect("invariants");
    }
    main.redefine(vec![made(&[(up, E, 7)])], None).expect("replaced");
    assert_eq!(opened(&main), ["up.init", "last"]);
    session.check().expect("invariants");
}

#[test]
fn an_opening_waits_for_a_closing_that_reopens_its_own_dylib() {
    for has_initializer in [false, true] {
        let (session, main) = in_place();
        if has_initializer {
            initialised(&session, &main, "init");
        }
        main.open(|_| Ok(()), |_| {}).expect("opened");
        let (is_in, goes_on) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let (is_in, goes_on, main) = (&is_in, &goes_on, &main);
            let first = scope.spawn(move || {
                main.close(|_| {
                    main.open(|name| panic!("{name} was run"), |_| {}).expect("opened");
                    main.close(|_| {}).expect("open");
                    is_in.store(1, Ordering::SeqCst);
                    while count(goes_on) == 0 {
                        std::thread::yield_now();
                    }
                })
            });
            while count(is_in) == 0 {
                std::thread::yield_now();
            }
            let second = scope.spawn(move || {
                let opened = main.open(|_| Ok(()), |_| panic!("it is open"));
                (opened.is_ok(), count(goes_on))
            });
            let is_early = (0..1000).any(|_| {
                std::thread::yield_now();
                second.is_finished()
            });
            goes_on.store(1, Ordering::SeqCst);
            assert!(!is_early, "it was not deinitialised");
            assert!(first.join().expect("no panic").is_ok());
            assert_eq!(second.join().expect("no panic"), (true, 1));
        });
        assert_eq!(closed(&main).expect("open"), [main.id()]);
        session.check().expect("invariants");
    }
}

#[test]
fn an_opening_waits_for_deinitialisation() {
    for has_initializer in [false, true] {
        let (session, main) = in_place();
        if has_initializer {
            initialised(&session, &main, "init");
        }
        main.open(|_| Ok(()), |_| {}).expect("opened");
        let (is_in, goes_on) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                main.close(|_| {
                    is_in.store(1, Ordering::SeqCst);
                    while count(&goes_on) == 0 {
                        std::thread::yield_now();
                    }
                })
            });
            while count(&is_in) == 0 {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| main.open(|_| Ok(()), |_| panic!("it is open")));
            let is_early = (0..1000).any(|_| {
                std::thread::yield_now();
                second.is_finished()
            });
            goes_on.store(1, Ordering::SeqCst);
            assert!(!is_early, "it was not deinitialised");
            assert!(first.join().expect("no panic").is_ok() && second.join().expect("no panic").is_ok());
        });
        assert_eq!(closed(&main).expect("open"), [main.id()]);
        session.check().expect("invariants");
    }
}

#[test]
fn threads_that_open_in_a_cycle_are_told_so() {
    let (session, a) = in_place();
    let b = session.create_dylib("b").expect("a dylib");
    initialised(&session, &a, "init.a");
    initialised(&session, &b, "init.b");
    let both = std::sync::Barrier::new(2);
    // Each initialiser opens the other dylib, which the other thread is opening.
    let open = |mine: &Dylib<Words>, other: &Dylib<Words>| {
        let mut inner = Ok(());
        let run = |_: &Name| {
            both.wait();
            inner = other.open(|_| Ok(()), |_| {});
            Ok(())
        };
        mine.open(run, |_| {}).expect("opened");
        inner
    };
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| open(&a, &b)), scope.spawn(|| open(&b, &a)));
        (one.join().expect("no panic"), two.join().expect("no panic"))
    });
    let told = [&one, &two].into_iter().filter(|told| matches!(told, Err(Error::Cycle { .. }))).count();
    assert_eq!((told, one.is_ok() || two.is_ok()), (1, true), "{one:?} {two:?}");
    session.check().expect("invariants");
}

#[test]
fn a_dylib_closed_during_its_opening_is_deinitialised_afterwards() {
    let (session, main) = in_place();
    initialised(&session, &main, "init");
    let mut gone = Vec::new();
    let run = |_: &Name| {
        main.close(|_| panic!("it is being initialised")).expect("open");
        Ok(())
    };
    main.open(run, |id| gone.push(id)).expect("opened");
    assert_eq!(gone, [main.id()]);
    let mut again = 0;
    main.open(
        |_| {
            again += 1;
            Ok(())
        },
        |_| {},
    )
    .expect("opened");
    assert_eq!(again, 1);
}
