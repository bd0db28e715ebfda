//! Limits of calls: an ended call fails no other, and what only it waited for is begun again by the next
//! lookup.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use crate::support::{E, Kept, Words, keep, take};
use brolga_linking::{
    Alias, Dispatcher, Dylib, Error, Host, InPlace, Link, MaterializationUnit, Responsibility, Seeded, Sees,
    Session, Symbol, unit,
};

thread_local! {
    static CALLER: Cell<u64> = const { Cell::new(0) };
    static ENDED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A host whose calls under limits are numbers stored per thread.
struct Calls;

impl Host<Words> for Calls {
    fn caller(&self) -> u64 {
        CALLER.get()
    }

    fn has_ended(&self, caller: u64) -> bool {
        ENDED.with_borrow(|ended| ended.contains(&caller))
    }
}

fn session(dispatcher: Arc<dyn Dispatcher>) -> (Session<Words>, Dylib<Words>) {
    let session = Session::new(dispatcher, Box::new(Calls));
    let main = session.create_dylib("main").expect("a dylib");
    CALLER.set(0);
    ENDED.take();
    (session, main)
}

/// Looks a symbol up for a call.
fn look_up(main: &Dylib<Words>, caller: u64, symbol: Symbol) -> brolga_linking::Lookup<Words> {
    CALLER.set(caller);
    let lookup = main.lookup([symbol]);
    CALLER.set(0);
    lookup
}

fn finishing(symbol: Symbol, address: u64) -> Box<dyn MaterializationUnit<Words>> {
    struct Finishing(Symbol, u64);
    impl MaterializationUnit<Words> for Finishing {
        fn symbols(&self) -> Vec<(Symbol, brolga_linking::SymbolFlags)> {
            vec![(self.0, E)]
        }

        fn materialize(self: Box<Self>, responsibility: Responsibility<Words>) {
            responsibility.resolve([(self.0, self.1)]).expect("resolved").emit([]).expect("emitted");
        }
    }
    Box::new(Finishing(symbol, address))
}

#[test]
fn others_are_served_when_a_call_gives_a_unit_up() {
    let (session, main) = session(Arc::new(InPlace::new()));
    let (x, kept) = (session.intern("x"), Kept::default());
    main.define_all(vec![keep(&[(x, E)], &kept)], None).expect("defined");
    let limited = look_up(&main, 7, x);
    let duty = take(&kept);
    assert!(!duty.is_wanted_beside(&[7]));
    assert!(duty.is_wanted_beside(&[8]));
    let other = look_up(&main, 0, x);
    assert!(duty.is_wanted_beside(&[7]));
    duty.abandon("out of time", finishing(x, 5), &[7]);
    let error = limited.wait().expect_err("its call has ended");
    assert!(error.to_string().contains("out of time") && error.passes(), "{error}");
    assert_eq!(other.wait_one().expect("it continues").address, Some(5));
    session.check().expect("sound");
}

#[test]
fn what_only_an_ended_call_waited_for_is_begun_by_the_next_lookup() {
    let (session, main) = session(Arc::new(InPlace::new()));
    let (x, kept) = (session.intern("x"), Kept::default());
    main.define_all(vec![keep(&[(x, E)], &kept)], None).expect("defined");
    let limited = look_up(&main, 7, x);
    drop(look_up(&main, 0, x));
    let duty = take(&kept);
    assert!(!duty.is_wanted_beside(&[7]), "a dropped lookup waits for nothing");
    duty.abandon("out of time", finishing(x, 5), &[7]);
    assert!(limited.wait().is_err());
    assert_eq!(look_up(&main, 7, x).wait_one().expect("another attempt").address, Some(5));
    session.check().expect("sound");
}

#[test]
fn waits_through_units_and_aliases_count() {
    let (session, main) = session(Arc::new(InPlace::new()));
    let [body, function, alias] = ["body", "function", "alias"].map(|name| session.intern(name));
    let kept = Kept::default();
    let needs_body = unit([(function, E)], move |duty: Responsibility<Words>| {
        let Ok(dylib) = duty.dylib() else { return };
        let resolved = duty.resolve([(function, 1)]).expect("resolved");
        resolved.emit([brolga_linking::Label { dylib, symbol: body }.into()]).expect("emitted");
    });
    main.define_all(vec![keep(&[(body, E)], &kept), needs_body], None).expect("defined");
    let from = Link { dylib: main.id(), sees: Sees::All };
    main.alias([Alias { symbol: alias, flags: E, from, aliasee: function }]).expect("an alias");
    let limited = look_up(&main, 7, function);
    let duty = take(&kept);
    assert!(
        !duty.is_wanted_beside(&[7]),
        "the function waits for its body, and only the call for the function"
    );
    let other = look_up(&main, 0, alias);
    assert!(duty.is_wanted_beside(&[7]));
    duty.abandon("out of time", finishing(body, 2), &[7]);
    assert!(limited.wait().is_err());
    assert_eq!(other.wait_one().expect("it continues").address, Some(1));
    session.check().expect("sound");
}

#[test]
fn a_wait_ends_with_its_call() {
    for seed in 0..64 {
        let (session, main) = session(Arc::new(Seeded::new(seed)));
        let (x, begun) = (session.intern("x"), Arc::new(Mutex::new(0)));
        let count = begun.clone();
        let slow = unit([(x, E)], move |duty: Responsibility<Words>| {
            *count.lock().expect("a count") += 1;
            duty.resolve([(x, 1)]).expect("resolved").emit([]).expect("emitted");
        });
        main.define_all(vec![slow], None).expect("defined");
        let limited = look_up(&main, 7, x);
        ENDED.with_borrow_mut(|ended| ended.push(7));
        assert!(matches!(limited.wait(), Err(Error::CallEnded)));
        assert_eq!(*begun.lock().expect("a count"), 0);
        assert_eq!(look_up(&main, 0, x).wait_one().expect("others are served").address, Some(1));
        session.check().expect("sound");
    }
}

#[test]
fn what_a_task_looks_up_may_be_for_anybody() {
    let (session, main) = session(Arc::new(InPlace::new()));
    let [x, y] = ["x", "y"].map(|name| session.intern(name));
    let kept = Kept::default();
    let (home, pending) = (main.clone(), Arc::new(Mutex::new(None)));
    let there = pending.clone();
    let looks = unit([(y, E)], move |duty: Responsibility<Words>| {
        *there.lock().expect("a place") = Some((home.lookup([x]), duty));
    });
    main.define_all(vec![keep(&[(x, E)], &kept), looks], None).expect("defined");
    let limited = look_up(&main, 7, y);
    let duty = take(&kept);
    assert!(duty.is_wanted_beside(&[7]));
    drop((limited, pending.lock().expect("a place").take(), duty));
}
