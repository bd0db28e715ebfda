//! Temporary names: an unused name is freed, and its symbol then refers to nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::support::{E, Kept, Never, Owned, Words, count, in_place, keep, made, take};
use brolga_linking::{
    Alias, Dependants, Error, Generator, OnDrop, Request, Responsibility, absolute, required, unit,
};

/// A definition under a fresh name, looked up by its text and removed, a million times.
#[test]
fn a_million_fresh_names_leave_nothing() {
    let (session, main) = in_place();
    let freed = Arc::new(AtomicUsize::new(0));
    for round in 0..1_000_000u64 {
        let text = format!("query_{round}");
        let tracker = {
            let scope = session.scope();
            let [symbol, alias] = [text.as_str(), "alias"].map(|text| scope.intern(text));
            let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
            let freed = Arc::clone(&freed);
            let body = unit([(symbol, E)], move |duty: Responsibility<Words>| {
                assert!(duty.attach(Owned(freed)).is_ok());
                duty.resolve([(symbol, round)]).expect("resolved").emit([]).expect("emitted");
            });
            let short = Alias { symbol: alias, flags: E, from: main.all(), aliasee: symbol };
            main.define_all(vec![body, short.into()], Some(&tracker)).expect("defined");
            tracker
        };
        assert_eq!(main.address(&text).ok(), Some(round));
        if round % 16 == 0 {
            assert_eq!(main.address("alias").ok(), Some(round));
            // A name that nothing defines costs nothing either.
            assert!(main.address(&format!("none_{round}")).is_err());
        }
        assert_eq!(session.names().len(), 2);
        tracker.remove(Dependants::Deny).expect("removed");
    }
    assert_eq!((session.names().len(), session.counts()), (0, (0, 0, 0, 0)));
    assert!(session.names().places() <= 4, "{} places", session.names().places());
    assert_eq!(count(&freed), 1_000_000);
    session.check().expect("invariants");
}

/// Entries of the tables hold the names that they need, and release them.
#[test]
fn names_live_as_long_as_what_they_name() {
    let (session, main) = in_place();
    let names = session.names();
    // A waiting lookup, for a symbol being made.
    let kept = Kept::default();
    let scope = session.scope();
    let made_later = scope.intern("later");
    main.define(keep(&[(made_later, E)], &kept)).expect("defined");
    let lookup = main.lookup([made_later]);
    drop(scope);
    assert_eq!(&*names.text(made_later), "later");
    take(&kept).resolve([(made_later, 7)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("ready").address, Some(7));
    main.remove([made_later]).expect("removed");
    assert!(names.is_empty());

    // The aliasee of an alias that was not looked up.
    let scope = session.scope();
    let [alias, of] = ["alias", "of"].map(|text| scope.intern(text));
    main.define(Alias { symbol: alias, flags: E, from: main.all(), aliasee: of }).expect("defined");
    drop(scope);
    assert_eq!((names.len(), &*names.text(of)), (2, "of"));
    let failed = main.lookup([alias]).wait().expect_err("there is none");
    assert!(failed.to_string().contains("`of`"), "{failed}");
    main.remove([alias]).expect("removed");
    assert!(names.is_empty(), "{} names", names.len());

    // A definition that is replaced by another.
    let scope = session.scope();
    let [weak, strong] = ["weak", "strong"].map(|text| scope.intern(text));
    let never = Never::new(&[(weak, crate::support::weak_flag()), (strong, E)]);
    let lost = Arc::clone(&never.lost);
    main.define(never.unit()).expect("defined");
    main.define(made(&[(weak, E, 3)])).expect("defined");
    drop(scope);
    assert_eq!(names.len(), 2);
    main.clear(Dependants::Deny).expect("removed");
    assert_eq!((names.len(), lost.lock().expect("lost").clone()), (0, vec![weak]));
    session.check().expect("invariants");
}

/// Answers nothing, and keeps the request.
struct Keeps(Arc<std::sync::Mutex<Vec<Request<Words>>>>);

impl Generator<Words> for Keeps {
    fn generate(&self, request: Request<Words>) {
        self.0.lock().expect("asked").push(request);
    }
}

#[test]
fn a_question_holds_the_names_that_it_asks_for() {
    let (session, main) = in_place();
    let asked = Arc::default();
    main.add_generator(Keeps(Arc::clone(&asked))).expect("open");
    let held = session.symbol("wanted");
    let lookup = main.lookup([held.symbol()]);
    drop(held);
    drop(lookup);
    let request = asked.lock().expect("asked").pop().expect("one");
    assert_eq!(&*session.names().text(request.symbols()[0]), "wanted");
    request.done();
    assert!(session.names().is_empty());
}

/// A symbol whose name was freed is refused, and never mistaken for the name that has its slot.
#[test]
fn a_symbol_that_outlived_its_name_is_refused() {
    let (session, main) = in_place();
    let old = session.symbol("old").symbol();
    let new = session.symbol("new");
    let flags = E;
    main.define(absolute([(new.symbol(), flags, 5)])).expect("defined");
    assert_eq!(main.lookup([new.symbol()]).wait_one().expect("ready").address, Some(5));
    assert_eq!((main.ready(new.symbol()), main.ready(old)), (Some(5), None));
    assert_eq!(&*session.names().text(old), "?");
    let refused = |result: Result<(), Error>| matches!(result, Err(Error::Unknown { what: "symbol" }));
    assert!(refused(main.define(made(&[(old, E, 1)]))));
    let fresh = session.symbol("fresh");
    assert!(refused(main.alias([Alias {
        symbol: fresh.symbol(),
        flags: E,
        from: main.all(),
        aliasee: old
    }])));
    assert!(refused(main.lookup([new.symbol(), old]).wait().map(drop)));
    assert!(refused(
        session.lookup(vec![main.all()], required([old]), brolga_linking::Until::Known).wait().map(drop)
    ));
    assert!(main.remove([old]).is_err());
    session.check().expect("invariants");
}
