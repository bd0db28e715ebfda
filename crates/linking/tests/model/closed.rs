//! Closed dylibs: others find what they would find without them, and only their names are kept.

use std::sync::{Arc, Mutex};

use crate::support::{E, Words, failure, in_place, made};
use brolga_linking::machine::{
    Close, CreateDylib, Define, Dependants, How, Initializers, Lookup, Machine, NewUnit, Parts, Release,
    Source,
};
use brolga_linking::{
    Cause, Dylib, Error, Generator, Link, LookupKind, Names, Priority, Reexports, Request, Sees, Session,
    Until, required, weak,
};

#[test]
fn a_closed_dylib_is_as_if_it_were_in_no_order() {
    let (session, main) = in_place();
    let [gone, behind] = ["gone", "behind"].map(|name| session.create_dylib(name).expect("a dylib"));
    main.set_links(vec![gone.exported(), main.all(), behind.exported()]).expect("open");
    let [here, there, none] = ["here", "there", "none"].map(|name| session.intern(name));
    gone.define(made(&[(here, E, 1)])).expect("defined");
    main.define(made(&[(here, E, 2)])).expect("defined");
    behind.define(made(&[(there, E, 3)])).expect("defined");
    session.close_dylibs(&[&gone], Dependants::Deny).expect("closed");

    let found = main.lookup([here, there]).wait().expect("found");
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert!(matches!(main.lookup([none]).wait(), Err(Error::NotFound { .. })));
    assert_eq!(main.links().expect("open"), [main.all(), behind.exported()]);
    assert_eq!(session.reached(&[&main]).expect("open"), [main.id(), behind.id()]);
    main.open(|name| panic!("{name} was run"), |_| {}).expect("opened");
    let mut closed = Vec::new();
    main.close(|dylib| closed.push(dylib)).expect("open");
    assert_eq!(closed, [main.id(), behind.id()]);
    // There is nowhere to search.
    for wants in [required([here]), weak([here])] {
        let looked = session.lookup(vec![gone.all()], wants, Until::Ready).wait();
        assert!(matches!(looked, Err(Error::DylibClosed { .. })), "{looked:?}");
    }
    session.check().expect("invariants");
}

/// Keeps its requests.
#[derive(Default)]
struct Silent(Arc<Mutex<Vec<Request<Words>>>>);

impl Generator<Words> for Silent {
    fn generate(&self, request: Request<Words>) {
        self.0.lock().expect("asked").push(request);
    }
}

#[test]
fn a_lookup_continues_without_the_generator_of_a_closed_dylib() {
    let (session, main) = in_place();
    let gone = session.create_dylib("gone").expect("a dylib");
    let silent = Silent::default();
    let asked = Arc::clone(&silent.0);
    gone.add_generator(silent).expect("open");
    let here = session.intern("here");
    main.define(made(&[(here, E, 2)])).expect("defined");
    main.set_links(vec![gone.exported(), main.all()]).expect("open");
    let [lookup, alone] = [main.lookup([here]), gone.lookup([here])];
    assert!(!lookup.is_done() && !alone.is_done() && !asked.lock().expect("asked").is_empty());
    session.close_dylibs(&[&gone], Dependants::Deny).expect("closed");
    assert_eq!(lookup.wait_one().expect("found").address, Some(2));
    assert!(matches!(alone.wait(), Err(Error::DylibClosed { .. })));
    asked.lock().expect("asked").drain(..).for_each(Request::done);
    session.check().expect("invariants");
}

/// A dylib, and one that re-exports the symbols that pass its filter.
fn exporting() -> (Session<Words>, Dylib<Words>, Dylib<Words>) {
    let (session, main) = in_place();
    let source = session.create_dylib("source").expect("a dylib");
    let from = source.exported();
    main.add_generator(Reexports { from, filter: |name: &str| !name.starts_with('_') }).expect("open");
    (session, main, source)
}

#[test]
fn of_what_is_closed_nothing_is_exported_again() {
    let (session, main, source) = exporting();
    let behind = session.create_dylib("behind").expect("a dylib");
    main.add_links(vec![behind.exported()]).expect("open");
    let [f, own, none] = ["f", "_own", "none"].map(|name| session.intern(name));
    source.define(made(&[(f, E, 1)])).expect("defined");
    behind.define(made(&[(f, E, 2), (own, E, 3)])).expect("defined");
    session.close_dylibs(&[&source], Dependants::Deny).expect("it has no users");

    let found = main.lookup([f, own]).wait().expect("found");
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert!(matches!(main.lookup([none]).wait(), Err(Error::NotFound { .. })));
    let weakly = session.lookup(vec![main.all()], weak([none]), Until::Ready);
    assert!(weakly.wait().expect("found").is_empty());
    session.check().expect("invariants");
}

#[test]
fn a_reexport_is_a_user_of_the_closed_dylib() {
    let found = |main: &Dylib<Words>| main.address("f").map_err(|error| error.to_string());
    for dependants in [Dependants::Cascade, Dependants::Keep, Dependants::Tombstone] {
        let (session, main, source) = exporting();
        source.define(made(&[(session.intern("f"), E, 1)])).expect("defined");
        assert_eq!(found(&main), Ok(1));
        let refused = session.close_dylibs(&[&source], Dependants::Deny);
        assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
        session.close_dylibs(&[&source], dependants).expect("closed");
        // A tombstone redirects references to code, but an alias' address cannot be redirected.
        let left =
            if dependants == Dependants::Keep { Ok(1) } else { Err("not found: `f` of `main`".into()) };
        assert_eq!(found(&main), left, "{dependants:?}");
        session.check().expect("invariants");
    }
    // It was found there, but has not been looked up since.
    let (session, main, source) = exporting();
    let f = session.intern("f");
    source.define(made(&[(f, E, 1)])).expect("defined");
    session.lookup(vec![main.all()], required([f]), Until::Known).wait().expect("known");
    session.close_dylibs(&[&source], Dependants::Deny).expect("it has no users");
    let told = failure(main.lookup([f]).wait());
    assert!(matches!(told.root(), Cause::Refused(error) if matches!(**error, Error::DylibClosed { .. })));
    main.remove([f]).expect("it has failed");
    assert!(found(&main).is_err());
    main.define(made(&[(f, E, 4)])).expect("defined");
    assert_eq!(found(&main), Ok(4));
    session.check().expect("invariants");
}

/// Parts that count those belonging to dylibs.
struct Counted;

impl Parts for Counted {
    type Address = u64;
    type Code = ();
    type Source = ();
    type Generator = ();
    type Ticket = u64;
    type Board = Arc<()>;
}

#[test]
fn of_a_closed_dylib_nothing_is_kept_but_its_name() {
    let names = Arc::new(Names::default());
    let mut machine: Machine<Counted> = Machine::new(Arc::clone(&names));
    let board = Arc::new(());
    let symbol = names.intern("f");
    let mut ids = Vec::new();
    let by = std::thread::current().id();
    for ticket in 0..100 {
        let (made, _) =
            machine.step(CreateDylib { name: "one".into(), board: Arc::clone(&board), begun: false });
        let (dylib, _) = made.expect("the name is free");
        let source = Source::Absolute(vec![(symbol, 7)]);
        let units = vec![NewUnit { symbols: vec![(symbol, E)], initializer: None, source }];
        assert!(
            machine.step(Define { dylib, tracker: None, units, how: How::Define, begun: false }).0.is_ok()
        );
        let (_, effects) = machine.step(Lookup {
            order: vec![Link { dylib, sees: Sees::All }],
            wants: required([symbol]),
            kind: LookupKind::Static,
            until: Until::Ready,
            priority: Priority::Normal,
            ticket,
            owner: None,
            perhaps: Default::default(),
            caller: 0,
            begun: false,
        });
        assert_eq!((effects.publish.len(), effects.answers.len()), (1, 1));
        drop(effects);
        assert!(machine.step(Initializers { dylib, open: true, by, doers: Default::default() }).0.is_ok());
        let close = Close { dylibs: vec![dylib], dependants: Dependants::Deny, stay_open: false };
        assert!(machine.step(close).0.is_ok());
        assert_eq!(Arc::strong_count(&board), 1, "what was shown of it is gone");
        assert!(
            matches!(machine.step(Release { dylib, by }).0, Err(Error::DylibClosed { dylib }) if &*dylib == "one")
        );
        ids.push(dylib);
    }
    ids.dedup();
    assert_eq!(ids.len(), 100, "an id is used once");
    assert_eq!(machine.counts(), (0, 0, 0, 0));
    machine.check().expect("invariants");
}
