//! Two sessions: an identifier of one is refused by the other, by an error that names both.

use crate::support::{E, Plain, Words, failure, in_place, made};
use brolga_linking::machine::{
    CreateDylib, CreateTracker, Define, How, Machine, NewUnit, RemoveTracker, Source, Transfer, UnitHome,
};
use brolga_linking::{
    Alias, Dependants, Dependence, Error, Link, Names, OnDrop, Responsibility, SessionId, Until, required,
    unit,
};
use std::sync::Arc;

#[test]
fn dylibs_and_trackers_of_another_session_are_refused() {
    let ((session, main), (other, foreign)) = (in_place(), in_place());
    let foo = session.intern("foo");
    let theirs_foo = other.intern("foo");
    assert_ne!(theirs_foo, foo, "a symbol is of one session");
    assert!(main.lookup([theirs_foo]).wait().is_err());
    assert!(main.remove([theirs_foo]).is_err());
    foreign.define(made(&[(theirs_foo, E, 9)])).expect("defined");
    let theirs = foreign.create_tracker(OnDrop::Keep).expect("a tracker");
    let ours = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let both = |what: &str, result: Result<(), Error>| match result {
        Err(Error::OtherSession { what: is, of, here }) => {
            assert_eq!((is, of, here), (what, other.id(), session.id()));
            let message = format!("a {what} of {} was handed to {}", other.id(), session.id());
            assert_eq!(Error::OtherSession { what: is, of, here }.to_string(), message);
        }
        other => panic!("{what}: {other:?}"),
    };
    let link = foreign.all();
    both("dylib", main.set_links(vec![main.all(), link]));
    both("dylib", main.add_links(vec![link]));
    both("dylib", main.remove_link(foreign.id()));
    both("dylib", session.close_dylibs(&[&main, &foreign], Dependants::Deny));
    both("dylib", session.reached(&[&main, &foreign]).map(drop));
    both("dylib", session.links(foreign.id()).map(drop));
    both("dylib", session.lookup(vec![link], required([foo]), Until::Ready).wait().map(drop));
    both("dylib", main.alias([Alias { symbol: foo, flags: E, from: link, aliasee: foo }]));
    both("tracker", main.define_all(vec![made(&[(foo, E, 1)])], Some(&theirs)));
    both("tracker", ours.transfer_to(&theirs));
    // A unit linked to a symbol of another session is refused, and fails.
    let found = foreign.lookup([theirs_foo]).wait_one().expect("ready");
    for need in [Dependence::from(found), Dependence::from(foreign.label(theirs_foo))] {
        main.redefine(
            vec![unit([(foo, E)], move |duty: Responsibility<Words>| {
                let resolved = duty.resolve([(foo, 1)]).expect("resolved");
                assert!(matches!(resolved.emit([need]), Err(Error::OtherSession { .. })));
            })],
            None,
        )
        .expect("defined");
        let told = failure(main.lookup([foo]).wait());
        assert!(told.to_string().contains("was handed to"), "{told}");
    }
    // Neither has changed.
    assert_eq!(main.links().expect("open"), [main.all()]);
    assert_eq!(foreign.lookup([theirs_foo]).wait_one().expect("ready").address, Some(9));
    session.check().expect("invariants");
    other.check().expect("invariants");
}

/// The same for the bare machine, whose identifiers are not handles.
#[test]
fn machines_refuse_trackers_and_units_of_others() {
    let machine = || {
        let names = Arc::new(Names::default());
        let foo = names.intern("foo");
        let mut machine = Machine::<Plain>::new(names);
        let (dylib, _) =
            machine.step(CreateDylib { name: "main".into(), board: (), begun: false }).0.expect("a dylib");
        let tracker = machine.step(CreateTracker { dylib, begun: false }).0.expect("a tracker");
        let unit = NewUnit { symbols: vec![(foo, E)], initializer: None, source: Source::Work(1) };
        let define =
            Define { dylib, tracker: Some(tracker), units: vec![unit], how: How::Define, begun: false };
        assert!(machine.step(define).0.is_ok());
        let wants = required([foo]);
        let order = vec![Link { dylib, sees: brolga_linking::Sees::All }];
        let (_, effects) = machine.step(brolga_linking::machine::Lookup {
            order,
            wants,
            kind: brolga_linking::LookupKind::Static,
            until: Until::Ready,
            priority: brolga_linking::Priority::Normal,
            ticket: 1,
            owner: None,
            perhaps: Default::default(),
            caller: 0,
            begun: false,
        });
        let unit = effects.work.first().expect("started").unit;
        (machine, dylib, tracker, unit)
    };
    let ((mut one, home, own, _), (other, _, tracker, unit)) = (machine(), machine());
    let (here, there) = (one.id(), other.id());
    let is_refused = |error: Error| {
        let sessions: Option<(SessionId, SessionId)> = match error {
            Error::OtherSession { of, here, .. } => Some((of, here)),
            _ => None,
        };
        assert_eq!(sessions, Some((there, here)));
    };
    let dependants = Dependants::Cascade;
    is_refused(one.step(RemoveTracker { tracker, dependants }).0.expect_err("another's"));
    is_refused(one.step(Transfer { from: own, to: Some(tracker) }).0.expect_err("another's"));
    is_refused(one.step(Transfer { from: tracker, to: None }).0.expect_err("another's"));
    is_refused(one.read(UnitHome(unit)).expect_err("another's"));
    let define =
        Define { dylib: home, tracker: Some(tracker), units: Vec::new(), how: How::Define, begun: false };
    is_refused(one.step(define).0.err().map(|(error, _)| error).expect("another's"));
    one.check().expect("invariants");
}

/// The slot of a closed dylib is reused; ids of the closed one do not refer to the new one.
#[test]
fn an_id_of_a_closed_dylib_is_never_another() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let old = session.create_dylib("old").expect("a dylib");
    main.add_links(vec![old.all()]).expect("open");
    session.close_dylibs(&[&old], Dependants::Deny).expect("closed");
    assert!(matches!(old.links(), Err(Error::DylibClosed { dylib }) if *dylib == *"old"));
    let mut reused = false;
    for round in 0..200 {
        let new = session.create_dylib(&format!("new {round}")).expect("a dylib");
        assert_ne!(new.id(), old.id());
        new.define(made(&[(foo, E, 5)])).expect("defined");
        let place = |id: brolga_linking::DylibId| format!("{id:?}").split('.').next().map(str::to_owned);
        reused |= place(new.id()) == place(old.id());
        assert!(main.lookup([foo]).wait().is_err(), "it is not linked against");
        assert!(matches!(old.lookup([foo]).wait(), Err(Error::DylibClosed { .. })));
        assert!(matches!(old.define(made(&[(foo, E, 1)])), Err(Error::DylibClosed { .. })));
        session.close_dylibs(&[&old, &new], Dependants::Deny).expect("closed");
    }
    assert!(reused, "places are let again");
    assert_eq!(main.links().expect("open"), [main.all()]);
    // The youngest is deinitialised first, whatever its slot.
    let young = session.create_dylib("young").expect("a dylib");
    for dylib in [&main, &young] {
        dylib.open(|_| Ok(()), |_| {}).expect("opened");
    }
    let mut ended = Vec::new();
    session.end(|id| ended.push(id));
    assert_eq!(ended, [young.id(), main.id()]);
}
