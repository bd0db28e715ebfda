//! Parts of symbols, and changes in which they are replaced.

use crate::support::{E, Kept, Words, in_place, keep, made, take};
use brolga_linking::{
    Addresses, Change, Dependants, Dylib, Error, Fact, OnDrop, Symbol, SymbolFlags, SymbolPart, Until,
    required,
};

const N: SymbolFlags = SymbolFlags::NONE;

#[test]
fn a_change_is_made_in_one_step_if_whoever_makes_it_still_wants_it() {
    let (session, main) = in_place();
    let [stays, other, old, unused, gone] =
        ["stays", "other", "old", "unused", "gone"].map(|name| session.intern(name));
    for (symbol, address) in [(stays, 1), (old, 2), (unused, 3), (other, 4)] {
        main.define(made(&[(symbol, E, address)])).expect("defined");
        main.lookup([symbol]).wait().expect("ready");
    }
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let tracked = main.tracked_by(&tracker);
    let [body, others] = [stays, other].map(|symbol| symbol.part(SymbolPart::First));
    let change = |replace, expected| Change {
        units: vec![made(&[(old, E, 20)]), made(&[(body, N, 5)]), made(&[(others, N, 6)])],
        replace,
        expected,
        unused: vec![unused, gone],
        stay: vec![(stays, E)],
        others: vec![other],
    };
    let (refused, _later) = tracked.change(change(false, Vec::new()));
    assert!(matches!(refused, Err(Error::Duplicate { .. })), "{refused:?}");
    for fact in [Fact::Defined(body, true), Fact::Defined(old, false), Fact::Ready(old, None)] {
        let (made, _later) = tracked.change(change(true, vec![fact]));
        assert!(!made.expect("nothing speaks against it"));
    }
    let ready = || [stays, other, old, unused].map(|symbol| main.ready(symbol));
    assert_eq!(ready(), [Some(1), Some(4), Some(2), Some(3)]);
    let facts = vec![Fact::Ready(old, Some(2)), Fact::Defined(old, true), Fact::Defined(body, false)];
    let (made, later) = tracked.change(change(true, facts));
    assert!(made.expect("nothing speaks against it"));
    drop(later);
    let found = main.lookup([old, body, others]).wait().expect("ready");
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), [Some(20), Some(5), Some(6)]);
    assert_eq!(ready(), [Some(1), Some(4), Some(20), None]);
    tracker.remove(Dependants::Deny).expect("removed");
    assert_eq!(ready(), [None, Some(4), None, None], "it has all but the other definition and its part");
    assert_eq!(main.lookup([others]).wait_one().expect("still there").address, Some(6));
    session.check().expect("invariants");
}

/// A whole with two parts, and the duty of the second part.
fn with_parts(main: &Dylib<Words>, whole: Symbol, kept: &Kept) {
    let [first, second] = whole.parts();
    main.define_all(vec![made(&[(whole, E, 1)]), made(&[(first, N, 2)]), keep(&[(second, N)], kept)], None)
        .expect("defined");
    main.lookup([whole, first]).wait().expect("ready");
}

#[test]
fn parts_have_the_name_of_their_whole_and_are_found_by_their_own_symbols_alone() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    with_parts(&main, foo, &Kept::default());
    let [first, second] = foo.parts();
    assert_eq!(&*session.names().text(second), "foo");
    assert_eq!((first.whole(), first.part(SymbolPart::Second)), (foo, second));
    assert_eq!((main.ready(foo), main.ready(first)), (Some(1), None), "parts are not on boards");
    assert_eq!(session.leads_to(main.label(first)), Some(2));
    let alone = session.intern("alone").part(SymbolPart::First);
    let refused = main.define(made(&[(alone, N, 3)]));
    assert!(
        matches!(&refused, Err(Error::NotFound { symbols }) if &*symbols[0].symbol == "alone"),
        "{refused:?}"
    );
    let twice = main.define(made(&[(first, N, 3)]));
    assert!(matches!(&twice, Err(Error::Duplicate { symbols }) if &*symbols[0].symbol == "foo"), "{twice:?}");
    session.check().expect("invariants");
}

#[test]
fn generators_are_not_asked_for_parts() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let asked = |name: &str| -> Option<(u64, SymbolFlags)> { panic!("asked for {name}") };
    main.add_generator(Addresses(asked)).expect("added");
    let missing = main.lookup([foo.part(SymbolPart::First)]).wait();
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

#[test]
fn parts_go_with_their_whole_and_make_it_busy() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let [first, second] = foo.parts();
    let kept = Kept::default();
    with_parts(&main, foo, &kept);
    let pending = session.lookup(vec![main.all()], required([second]), Until::Ready);
    assert_eq!(session.pending(main.label(foo)), [main.label(second)]);
    for busy in [main.remove([foo]), main.redefine(vec![made(&[(foo, E, 10)])], None)] {
        assert!(matches!(&busy, Err(Error::Busy { symbols }) if symbols.len() == 1), "{busy:?}");
    }
    take(&kept).resolve([(second, 3)]).expect("resolved").emit([]).expect("emitted");
    pending.wait().expect("ready");
    // A redefinition without parts leaves none.
    main.redefine(vec![made(&[(foo, E, 10)])], None).expect("redefined");
    assert_eq!([first, second].map(|part| session.leads_to(main.label(part))), [None; 2]);
    main.remove([foo]).expect("removed");
    with_parts(&main, foo, &kept);
    main.remove([foo]).expect("removed");
    assert!(!session.is_defined(main.label(first)) && !session.is_defined(main.label(second)));
    session.check().expect("invariants");
}

#[test]
fn parts_of_a_weak_definition_yield_with_it() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    with_parts(&main, foo, &Kept::default());
    let [first, _] = foo.parts();
    let weak = || vec![made(&[(foo, E | SymbolFlags::WEAK, 7)]), made(&[(first, SymbolFlags::WEAK, 8)])];
    main.define_all(weak(), None).expect("it yields");
    assert_eq!(session.leads_to(main.label(first)), Some(2));
    let bar = session.intern("bar");
    main.define_all(
        vec![made(&[(bar, E | SymbolFlags::WEAK, 7)]), made(&[(bar.part(SymbolPart::First), N, 8)])],
        None,
    )
    .expect("defined");
    main.define(made(&[(bar, E, 9)])).expect("the weak one gives way, with its part");
    assert!(!session.is_defined(main.label(bar.part(SymbolPart::First))));
    assert_eq!(main.lookup([bar]).wait_one().expect("ready").address, Some(9));
    session.check().expect("invariants");
}
