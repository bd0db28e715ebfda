//! Redirectable symbols and lazy re-exports (L01, L02, L04), initialisers, and the rest of the life of a dylib.

mod support;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brolga_session::{
    Dependants, Dylib, Error, Foreign, OnDrop, Responsibility, Session, Symbol, SymbolFlags, unit,
};
use support::{E, WordSlot, Words, count, failure, in_place, made};

const CODE: SymbolFlags = SymbolFlags::CALLABLE;

fn slot() -> (Arc<AtomicU64>, WordSlot) {
    let word = Arc::new(AtomicU64::new(0));
    (Arc::clone(&word), WordSlot(word))
}

fn leads_to(word: &AtomicU64) -> u64 {
    word.load(Ordering::SeqCst)
}

#[test]
fn l01_the_first_call_materializes_and_binds_once() {
    let (session, main) = in_place();
    let (lazy, body) = (session.intern("lazy"), session.intern("body"));
    let made_it = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made_it);
    main.define(unit([(body, E | CODE)], move |duty: Responsibility<Words>| {
        counted.fetch_add(1, Ordering::SeqCst);
        duty.resolve([(body, 42)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    let (word, slot) = slot();
    main.lazy_reexport(lazy, E | CODE, (main.all(), body), 1000, slot).expect("defined");
    assert_eq!(main.address("lazy").expect("ready"), 1000, "the stub is the address");
    assert_eq!((count(&made_it), leads_to(&word)), (0, 0));
    assert_eq!(main.bind(lazy).expect("bound"), (42, true));
    assert_eq!(main.bind(lazy).expect("bound"), (42, false), "once the first time");
    assert_eq!((count(&made_it), leads_to(&word), main.ready(lazy)), (1, 42, Some(1000)));
}

#[test]
fn l01_a_failure_is_told_to_the_caller() {
    let (session, main) = in_place();
    let (lazy, body) = (session.intern("lazy"), session.intern("body"));
    main.define(unit([(body, E | CODE)], |duty: Responsibility<Words>| duty.fail("no memory")))
        .expect("defined");
    let (word, slot) = slot();
    main.lazy_reexport(lazy, E | CODE, (main.all(), body), 1000, slot).expect("defined");
    assert_eq!(failure(main.bind(lazy)).root().to_string(), "no memory");
    assert_eq!(leads_to(&word), 0);
}

#[test]
fn l02_a_lazy_reexport_has_its_flags_and_can_go_unused() {
    let (session, main) = in_place();
    let (lazy, body) = (session.intern("lazy"), session.intern("body"));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let (_, data_slot) = slot();
    let refused = main.lazy_reexport(lazy, E, (main.all(), body), 1000, data_slot);
    assert!(matches!(refused, Err(Error::NotCallable { .. })));
    let (word, slot) = slot();
    let held = Arc::strong_count(&word);
    main.lazy_reexport(lazy, E | CODE, (main.all(), body), 1000, slot).expect("defined");
    assert_eq!(main.lookup([lazy]).wait_one().expect("found").flags, E | CODE);
    main.remove([lazy]).expect("removed");
    assert!(matches!(main.bind(lazy), Err(Error::NotFound { .. })));
    assert_eq!(Arc::strong_count(&word), held - 1, "the slot was dropped");
    tracker.remove(Dependants::Deny).expect("removed");
}

#[test]
fn l04_a_symbol_is_redirected_and_keeps_its_address() {
    let (session, main) = in_place();
    let entry = session.intern("entry");
    let (word, slot) = slot();
    main.redirectable(entry, E | CODE, 1000, slot).expect("defined");
    for address in [42, 13, 53] {
        let symbol = session.intern(&address.to_string());
        main.define(made(&[(symbol, E, address)])).expect("defined");
        let target = main.lookup([symbol]).wait_one().expect("ready");
        main.redirect(entry, &target).expect("redirected");
        assert_eq!((leads_to(&word), main.address("entry").expect("ready")), (address, 1000));
    }
    let target = main.lookup([session.intern("42")]).wait_one().expect("ready");
    assert!(matches!(main.redirect(session.intern("13"), &target), Err(Error::NotRedirectable { .. })));
    main.remove([session.intern("42")]).expect("removed");
    assert!(matches!(main.redirect(entry, &target), Err(Error::NotReady { .. })));
    assert_eq!(leads_to(&word), 53);
    assert!(matches!(main.bind(entry), Err(Error::NotRedirectable { .. })), "it has no aliasee");
}

#[test]
fn a_slot_is_armed_when_its_target_is_replaced_or_removed() {
    let (session, main) = in_place();
    let (lazy, body) = (session.intern("lazy"), session.intern("body"));
    main.define(made(&[(body, E | CODE, 1)])).expect("defined");
    let (word, slot) = slot();
    main.lazy_reexport(lazy, E | CODE, (main.all(), body), 1000, slot).expect("defined");
    main.bind(lazy).expect("bound");
    main.redefine(vec![made(&[(body, E | CODE, 2)])], None).expect("replaced");
    assert_eq!(leads_to(&word), 0, "the next call asks the session");
    assert_eq!(main.bind(lazy).expect("bound"), (2, false));
    main.remove([body]).expect("removed");
    assert_eq!(leads_to(&word), 0);
    assert!(matches!(main.bind(lazy), Err(Error::NotFound { .. })));
    main.define(made(&[(body, E | CODE, 3)])).expect("defined");
    assert_eq!((main.bind(lazy).expect("bound"), leads_to(&word)), ((3, false), 3));
    session.check().expect("invariants");
}

/// A unit with an initialiser only.
fn initialised(session: &Session<Words>, dylib: &Dylib<Words>, name: &str) -> Symbol {
    let symbol = session.intern(name);
    let mut unit = unit([(symbol, E | SymbolFlags::SIDE_EFFECTS_ONLY)], |duty: Responsibility<Words>| {
        duty.resolve([]).expect("resolved").emit([]).expect("emitted");
    });
    unit.initializer = Some(symbol);
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
    let run = |name: &brolga_session::Name| {
        ran.lock().expect("ran").push(name.symbol.to_string());
        Ok(())
    };
    let drained = || std::mem::take(&mut *ran.lock().expect("ran"));
    main.open(run).expect("opened");
    assert_eq!(drained(), ["init.b", "init.a", "init.main"]);
    b.open(run).expect("opened");
    main.open(run).expect("opened");
    assert!(drained().is_empty(), "each once");
    // `dlupdate`: what came since.
    initialised(&session, &a, "init.a2");
    main.update(run).expect("updated");
    assert_eq!(drained(), ["init.a2"]);
    // `dlclose`: dependants first, what is still open stays.
    assert_eq!(main.close().expect("open"), []);
    assert_eq!(main.close().expect("open"), [main.id(), a.id()]);
    assert!(matches!(main.close(), Err(Error::Unknown { .. })), "it is not open any more");
    // And again.
    a.open(run).expect("opened");
    assert_eq!(drained(), ["init.main", "init.a", "init.a2"]);
    assert_eq!(b.close().expect("open"), []);
    assert_eq!(a.close().expect("open"), [a.id(), main.id(), b.id()]);
}

#[test]
fn a_failed_initialiser_spoils_nothing_that_comes_after() {
    let (session, main) = in_place();
    let bad = session.intern("bad");
    let mut failing = unit([(bad, E | SymbolFlags::SIDE_EFFECTS_ONLY)], |duty: Responsibility<Words>| {
        duty.fail("does not compile")
    });
    failing.initializer = Some(bad);
    main.define(failing).expect("defined");
    assert_eq!(failure(main.open(|_| Ok(()))).root().to_string(), "does not compile");
    // The unit's record went with it: what is defined next is run.
    initialised(&session, &main, "good");
    let mut ran = Vec::new();
    main.open(|name| {
        ran.push(name.symbol.to_string());
        Ok(())
    })
    .expect("opened");
    assert_eq!(ran, ["good"]);
    // One that reports an error is due again.
    initialised(&session, &main, "moody");
    let refused =
        main.update(|_| Err(Foreign::from(Box::<dyn std::error::Error + Send + Sync>::from("not today"))));
    assert!(matches!(refused, Err(Error::Initializer { name, .. }) if &*name.symbol == "moody"));
    let mut again = 0;
    main.update(|_| {
        again += 1;
        Ok(())
    })
    .expect("updated");
    assert_eq!(again, 1);
}
