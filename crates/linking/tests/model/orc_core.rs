//! The list of ORC's core tests, C01 to C48: each asserted behaviour as one of our tests, with the identifier
//! in its name. Where ours differs on purpose, the test states what holds instead (`docs/conformance-orc.md`
//! has the whole list).

use std::sync::{Arc, Mutex};

use crate::support::{E, Kept, Never, Words, count, failure, in_place, keep, made, take, texts, weak_flag};
use brolga_linking::{
    Addresses, Alias, Cause, Dependants, Error, Failure, Generator, Host, InPlace, Link, Need, OnDrop,
    Priority, Reexports, Request, Responsibility, Session, SymbolFlags, Until, Want, required, unit, weak,
};

const SIDE: SymbolFlags = SymbolFlags::SIDE_EFFECTS_ONLY;

#[test]
fn c01_failures_without_a_waiter_are_reported() {
    struct Listening(Arc<Mutex<Vec<String>>>);
    impl Host<Words> for Listening {
        fn unheard(&self, failure: &Arc<Failure>) {
            self.0.lock().expect("said").push(failure.to_string());
        }
    }
    let said = Arc::new(Mutex::new(Vec::new()));
    let session: Session<Words> =
        Session::new(Arc::new(InPlace::new()), Box::new(Listening(Arc::clone(&said))));
    let main = session.create_dylib("main").expect("a dylib");
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    drop(main.lookup([foo]));
    take(&kept).fail("no memory");
    assert_eq!(*said.lock().expect("said"), ["`foo` of `main` failed: no memory"]);
    assert_eq!(failure(main.lookup([foo]).wait()).root().to_string(), "no memory");
    assert_eq!(said.lock().expect("said").len(), 1, "who is told hears it there");
}

#[test]
fn c02_links_are_appended_once() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    assert_eq!(main.links().expect("open"), [main.all()]);
    main.add_links(vec![main.exported(), main.all(), other.all(), main.all()]).expect("open");
    assert_eq!(main.links().expect("open"), [main.all(), main.exported(), other.all()]);
    main.remove_link(main.id()).expect("open");
    assert_eq!(main.links().expect("open"), [other.all()]);
}

#[test]
fn c03_a_ready_lookup_is_answered_at_emission() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo]);
    let early = session.lookup(vec![main.all()], required([foo]), Until::Resolved);
    assert!(!lookup.is_done() && !early.is_done());
    let resolved = take(&kept).resolve([(foo, 42)]).expect("resolved");
    assert!(!lookup.is_done() && early.is_done());
    resolved.emit([]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("found").address, Some(42));
    assert_eq!(early.wait_one().expect("found").address, Some(42));
    assert_eq!(main.ready(foo), Some(42));
}

#[test]
fn c04_an_empty_lookup_is_answered() {
    let (session, main) = in_place();
    assert!(session.lookup(vec![main.all()], vec![], Until::Ready).wait().expect("answered").is_empty());
    assert!(session.lookup(vec![], vec![], Until::Ready).wait().expect("answered").is_empty());
}

#[test]
fn c05_a_unit_is_materialized_whole() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(made(&[(foo, E, 1), (bar, E, 2)])).expect("defined");
    let found = main.lookup([foo]).wait().expect("found");
    assert_eq!((found.len(), found[0].address), (1, Some(1)));
    assert_eq!(main.ready(bar), Some(2));
}

#[test]
fn c06_side_effects_are_waited_for_and_not_delivered() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E | SIDE)], &kept)).expect("defined");
    let lookup = session.lookup(vec![main.all()], weak([foo]), Until::Ready);
    assert!(!lookup.is_done());
    take(&kept).resolve([]).expect("nothing to resolve").emit([]).expect("emitted");
    assert!(lookup.wait().expect("answered").is_empty());
    assert!(
        matches!(main.lookup([foo]).wait(), Err(Error::NotFound { .. })),
        "there is no address to require"
    );
    assert_eq!(main.ready(foo), None);
}

#[test]
fn c07_failures_of_side_effects_persist() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    main.define(unit([(foo, E | SIDE)], |duty: Responsibility<Words>| duty.fail("no"))).expect("defined");
    for _ in 0..2 {
        failure(session.lookup(vec![main.all()], weak([foo]), Until::Ready).wait());
    }
}

#[test]
fn c08_names_are_removed_all_or_none() {
    let (session, main) = in_place();
    let [foo, bar, baz, none] = ["foo", "bar", "baz", "none"].map(|name| session.intern(name));
    main.define(made(&[(foo, E, 1)])).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    let lazy = Never::new(&[(bar, E)]);
    let (dropped, lost) = (Arc::clone(&lazy.dropped), Arc::clone(&lazy.lost));
    main.define(lazy.unit()).expect("defined");
    let kept = Kept::default();
    main.define(keep(&[(baz, E)], &kept)).expect("defined");
    let lookup = main.lookup([baz]);

    assert!(
        matches!(main.remove([foo, none]), Err(Error::NotFound { symbols }) if texts(&symbols) == ["none"])
    );
    assert!(
        matches!(main.remove([foo, bar, baz]), Err(Error::Busy { symbols }) if texts(&symbols) == ["baz"])
    );
    assert_eq!((count(&dropped), main.ready(foo)), (0, Some(1)), "nothing was removed");
    main.remove([foo, bar]).expect("removed");
    assert_eq!((count(&dropped), main.ready(foo)), (1, None));
    assert_eq!(*lost.lock().expect("lost"), [bar]);
    take(&kept).resolve([(baz, 3)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("found").address, Some(3));
}

#[test]
fn c09_a_lost_initialiser_symbol_is_no_initialiser() {
    let (session, main) = in_place();
    let (foo, init) = (session.intern("foo"), session.intern("init"));
    let mut lazy = Never::new(&[(foo, E), (init, weak_flag() | SIDE)]);
    lazy.initializer = Some(init);
    let lost = Arc::clone(&lazy.lost);
    main.define(lazy.unit()).expect("defined");
    main.remove([init]).expect("removed");
    main.open(|name| panic!("{name} was run"), |_| {}).expect("nothing to run");
    drop(main.lookup([foo]).wait());
    assert_eq!(*lost.lock().expect("lost"), [init]);
}

#[test]
fn c10_hidden_symbols_are_passed_over() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    let foo = session.intern("foo");
    main.define(made(&[(foo, SymbolFlags::NONE, 1)])).expect("defined");
    other.define(made(&[(foo, E, 2)])).expect("defined");
    let order = vec![main.exported(), other.exported()];
    let found = session.lookup(order, required([foo]), Until::Ready).wait_one().expect("found");
    assert_eq!(found.address, Some(2));
    assert_eq!(main.lookup([foo]).wait_one().expect("found").address, Some(1), "itself it sees");
}

#[test]
fn c11_flags_are_told_without_materializing() {
    let (session, main) = in_place();
    let [foo, bar, baz] = ["foo", "bar", "baz"].map(|name| session.intern(name));
    main.define(Never::new(&[(foo, E | SymbolFlags::ABSOLUTE), (bar, weak_flag())]).unit()).expect("defined");
    let found = session.lookup(vec![main.all()], weak([foo, bar, baz]), Until::Known).wait().expect("known");
    let flags: Vec<_> = found.iter().map(|found| (found.label.symbol, found.flags, found.address)).collect();
    assert_eq!(flags, [(foo, E | SymbolFlags::ABSOLUTE, None), (bar, weak_flag(), None)]);
    assert!(session.lookup(vec![main.all()], required([baz]), Until::Known).wait().is_err());
}

struct Failing;

impl Generator<Words> for Failing {
    fn generate(&self, request: Request<Words>) {
        request.fail("no such archive");
    }
}

#[test]
fn c12_an_error_of_a_generator_is_the_lookups() {
    let (session, main) = in_place();
    main.add_generator(Failing).expect("added");
    let foo = session.intern("foo");
    for until in [Until::Known, Until::Ready] {
        let answer = session.lookup(vec![main.all()], required([foo]), until).wait();
        assert!(matches!(answer, Err(Error::Generator(error)) if error.to_string() == "no such archive"));
    }
}

fn alias(
    symbol: brolga_linking::Symbol,
    flags: SymbolFlags,
    from: Link,
    aliasee: brolga_linking::Symbol,
) -> Alias {
    Alias { symbol, flags, from, aliasee }
}

#[test]
fn c13_aliases_have_the_address_and_flags_of_their_own() {
    let (session, main) = in_place();
    let [foo, bar, baz, qux] = ["foo", "bar", "baz", "qux"].map(|name| session.intern(name));
    main.define(made(&[(foo, E, 1), (bar, E, 2)])).expect("defined");
    main.alias([alias(baz, E, main.all(), foo), alias(qux, weak_flag(), main.all(), bar)]).expect("defined");
    main.define(made(&[(qux, E, 3)])).expect("a weak alias gives way");
    let found = main.lookup([baz, qux]).wait().expect("found");
    assert_eq!((found[0].address, found[1].address), (Some(1), Some(3)));
    assert_eq!(main.ready(baz), Some(1));
}

#[test]
fn c14_chains_of_aliases_end() {
    let (session, main) = in_place();
    let [foo, bar, baz] = ["foo", "bar", "baz"].map(|name| session.intern(name));
    main.alias([alias(baz, E, main.all(), bar), alias(bar, E, main.all(), foo)]).expect("defined");
    main.define(made(&[(foo, E, 1)])).expect("defined");
    assert_eq!(main.lookup([bar, baz]).wait().expect("found")[1].address, Some(1));
}

#[test]
fn c14_aliases_in_a_cycle_are_an_error() {
    let (session, main) = in_place();
    let symbols: Vec<_> = (0..5).map(|i| session.intern(&i.to_string())).collect();
    for size in 1..=5 {
        let cycle = (0..size).map(|i| alias(symbols[i], E, main.all(), symbols[(i + 1) % size]));
        main.alias(cycle).expect("defined");
        for symbol in &symbols[..size] {
            let failure = failure(main.lookup([*symbol]).wait());
            assert!(
                matches!(failure.root(), Cause::Refused(error) if matches!(**error, Error::AliasCycle { .. }))
            );
        }
        main.clear(Dependants::Deny).expect("cleared");
        session.check().expect("invariants");
    }
}

#[test]
fn c15_reexports_cross_dylibs_and_names() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(made(&[(foo, E, 1)])).expect("defined");
    other.alias([alias(bar, E, main.exported(), foo)]).expect("defined");
    assert_eq!(other.lookup([bar]).wait_one().expect("found").address, Some(1));
}

#[test]
fn c16_reexports_materialize_what_is_asked_for() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    let [foo, bar, baz, qux] = ["foo", "bar", "baz", "qux"].map(|name| session.intern(name));
    main.define(made(&[(foo, E, 1)])).expect("defined");
    let lazy = Never::new(&[(bar, E)]);
    let dropped = Arc::clone(&lazy.dropped);
    main.define(lazy.unit()).expect("defined");
    other.alias([alias(baz, E, main.all(), foo), alias(qux, E, main.all(), bar)]).expect("defined");
    assert_eq!(other.lookup([baz]).wait_one().expect("found").address, Some(1));
    assert_eq!(count(&dropped), 0);
}

#[test]
fn c17_reexports_on_demand() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let absolute = E | SymbolFlags::ABSOLUTE;
    main.define(made(&[(foo, absolute, 1), (bar, E, 2)])).expect("defined");
    let from = main.exported();
    other.add_generator(Reexports { from, filter: |name: &str| name != "bar" }).expect("added");
    let found = session.lookup(vec![other.all()], weak([foo, bar]), Until::Ready).wait().expect("found");
    assert_eq!((found.len(), found[0].address, found[0].flags), (1, Some(1), absolute));
}

#[test]
fn c18_what_needs_itself_becomes_ready() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo]);
    take(&kept).resolve([(foo, 1)]).expect("resolved").emit([main.label(foo).into()]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("found").address, Some(1));
}

#[test]
fn c19_a_symbol_says_what_it_waits_for() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let (foos, bars) = (Kept::default(), Kept::default());
    main.define(keep(&[(foo, E)], &foos)).expect("defined");
    main.define(keep(&[(bar, E)], &bars)).expect("defined");
    let lookup = main.lookup([foo]);
    assert_eq!(texts(&main.waits_for(foo)), ["foo"], "not emitted: for itself");
    take(&foos).resolve([(foo, 1)]).expect("resolved").emit([main.label(bar).into()]).expect("emitted");
    assert_eq!(texts(&main.waits_for(foo)), ["bar"]);
    assert!(!lookup.is_done(), "the dependence started `bar`, which is not emitted");
    take(&bars).resolve([(bar, 2)]).expect("resolved").emit([]).expect("emitted");
    assert!(main.waits_for(foo).is_empty() && lookup.is_done());
}

#[test]
fn c20_a_cycle_is_resolved_early_and_ready_at_the_end() {
    let (session, main) = in_place();
    let symbols = ["foo", "bar", "baz"].map(|name| session.intern(name));
    let kept: Vec<Kept> = symbols.iter().map(|_| Kept::default()).collect();
    for (symbol, kept) in symbols.iter().zip(&kept) {
        main.define(keep(&[(*symbol, E)], kept)).expect("defined");
    }
    let resolved: Vec<_> =
        symbols.map(|s| session.lookup(vec![main.all()], required([s]), Until::Resolved)).into();
    let ready: Vec<_> = symbols.map(|symbol| main.lookup([symbol])).into();
    let mut duties = Vec::new();
    for (index, symbol) in symbols.iter().enumerate() {
        duties.push(take(&kept[index]).resolve([(*symbol, index as u64)]).expect("resolved"));
        assert!(resolved[index].is_done());
    }
    for (index, duty) in duties.into_iter().enumerate() {
        assert!(ready.iter().all(|lookup| !lookup.is_done()));
        duty.emit([main.label(symbols[(index + 1) % 3]).into()]).expect("emitted");
    }
    assert!(ready.iter().all(brolga_linking::Lookup::is_done));
}

#[test]
fn c21_c23_a_failure_reaches_what_waits_for_it_with_its_cause() {
    let (session, main) = in_place();
    let [foo, bar, baz] = ["foo", "bar", "baz"].map(|name| session.intern(name));
    let kept: Vec<Kept> = (0..3).map(|_| Kept::default()).collect();
    for (symbol, kept) in [foo, bar, baz].iter().zip(&kept) {
        main.define(keep(&[(*symbol, E)], kept)).expect("defined");
    }
    let (foos, bars, bazs) = (main.lookup([foo]), main.lookup([bar]), main.lookup([baz]));
    take(&kept[0]).resolve([(foo, 1)]).expect("resolved").emit([main.label(bar).into()]).expect("emitted");
    take(&kept[1]).fail("no register left");
    // Emitted and waiting: fails with it, and the chain names the symbols in between.
    let failed = failure(foos.wait());
    let chain: Vec<String> = failed.chain().map(ToString::to_string).collect();
    assert_eq!(
        chain,
        ["`foo` of `main` failed: they need `bar` of `main`", "`bar` of `main` failed: no register left"]
    );
    failure(bars.wait());
    // Not emitted yet: fails on its own.
    assert!(!bazs.is_done());
    let baz_duty = take(&kept[2]).resolve([(baz, 3)]).expect("can still be resolved");
    assert!(
        matches!(baz_duty.emit([main.label(bar).into()]), Err(Error::Unsatisfied { on, .. }) if texts(&on) == ["bar"])
    );
    assert_eq!(failure(bazs.wait()).root().to_string(), "no register left");
    for symbol in [foo, bar, baz] {
        assert_eq!(failure(main.lookup([symbol]).wait()).root().to_string(), "no register left");
    }
}

#[test]
fn c22_emission_with_a_failed_dependence_is_refused() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(bar, E)], |duty: Responsibility<Words>| duty.fail("no"))).expect("defined");
    failure(main.lookup([bar]).wait());
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo]);
    let resolved = take(&kept).resolve([(foo, 1)]).expect("resolved");
    assert!(resolved.emit([main.label(bar).into()]).is_err());
    failure(lookup.wait());
}

#[test]
fn c24_unrequested_symbols_fail_with_their_unit() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(foo, E), (bar, E)], |duty: Responsibility<Words>| duty.fail("no"))).expect("defined");
    failure(main.lookup([foo]).wait());
    assert_eq!(texts(failure(main.lookup([bar]).wait()).symbols()), ["bar", "foo"]);
}

#[test]
fn c25_a_unit_is_dropped_with_its_last_weak_symbol() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let lazy = Never::new(&[(foo, weak_flag()), (bar, weak_flag())]);
    let (dropped, lost) = (Arc::clone(&lazy.dropped), Arc::clone(&lazy.lost));
    main.define(lazy.unit()).expect("defined");
    main.define(made(&[(foo, E, 1)])).expect("defined");
    assert_eq!(count(&dropped), 0);
    main.define(made(&[(bar, E, 2)])).expect("defined");
    assert_eq!((count(&dropped), lost.lock().expect("lost").clone()), (1, vec![foo, bar]));
}

#[test]
fn c26_a_unit_knows_what_it_lost_before_it_is_run() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    main.define(keep(&[(foo, E), (bar, weak_flag())], &kept)).expect("defined");
    main.define(made(&[(bar, E, 2)])).expect("defined");
    let lookup = main.lookup([foo]);
    let duty = take(&kept);
    assert_eq!(duty.symbols().expect("in force"), [(foo, E)]);
    assert_eq!(duty.requested().expect("in force"), [foo]);
    duty.resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("found").address, Some(1));
}

#[test]
fn c27_the_first_of_weak_definitions_stays() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    main.define(made(&[(foo, weak_flag(), 1)])).expect("defined");
    let second = Never::new(&[(foo, weak_flag())]);
    let (dropped, lost) = (Arc::clone(&second.dropped), Arc::clone(&second.lost));
    main.define(second.unit()).expect("gives way without error");
    assert_eq!((count(&dropped), lost.lock().expect("lost").clone()), (1, vec![foo]));
    assert_eq!(main.lookup([foo]).wait_one().expect("found").address, Some(1));
}

#[test]
fn c28_c43_weak_symbols_are_strong_once_searched() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, weak_flag())], &kept)).expect("defined");
    let lookup = main.lookup([foo]);
    let second = Never::new(&[(foo, E)]);
    let dropped = Arc::clone(&second.dropped);
    assert!(
        matches!(main.define(second.unit()), Err(Error::Duplicate { symbols }) if texts(&symbols) == ["foo"])
    );
    assert_eq!(count(&dropped), 1, "never run");
    take(&kept).resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait_one().expect("found").address, Some(1));
    assert!(matches!(main.define(made(&[(foo, E, 2)])), Err(Error::Duplicate { .. })));
}

#[test]
fn c29_symbols_claimed_on_the_way_are_ready_with_their_unit() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(foo, E)], move |duty: Responsibility<Words>| {
        assert_eq!(duty.claim([(bar, E)]).expect("claimed"), [bar]);
        assert!(duty.claim([(bar, weak_flag())]).expect("weak ones give way").is_empty());
        assert!(matches!(duty.claim([(bar, E)]), Err(Error::Duplicate { .. })));
        duty.resolve([(foo, 1), (bar, 2)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    main.lookup([foo]).wait().expect("found");
    assert_eq!(main.ready(bar), Some(2));
}

#[test]
fn c30_a_generator_is_asked_for_what_is_missing_only() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(made(&[(foo, SymbolFlags::NONE, 1)])).expect("defined");
    main.add_generator(Addresses(|name: &str| (name == "bar").then_some((2, E)))).expect("added");
    let found = session.lookup(vec![main.exported()], weak([foo, bar]), Until::Ready).wait().expect("found");
    assert_eq!((found.len(), found[0].label.symbol, found[0].address), (1, bar, Some(2)));
}

#[test]
fn a_generator_is_removed_by_itself_and_with_its_tracker() {
    let (session, main) = in_place();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| session.intern(name));
    let found = |symbol| main.lookup([symbol]).wait().is_ok();
    let generator = |all: &'static [(&'static str, u64)]| {
        Addresses(move |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, at)| (*at, E)))
    };
    // By itself: what it has defined stays.
    let id = main.add_generator(generator(&[("a", 1), ("b", 2)])).expect("added");
    assert!(found(a));
    main.remove_generator(id).expect("it is there");
    assert!(matches!(main.remove_generator(id), Err(Error::Removed)));
    assert!(found(a) && !found(b));
    // With its tracker, or with the one to which that was transferred: what it has defined is also removed.
    let [first, second] = [(); 2].map(|()| main.create_tracker(OnDrop::Keep).expect("a tracker"));
    main.tracked_by(&first).add_generator(generator(&[("c", 3), ("d", 4)])).expect("added");
    assert!(found(c));
    first.transfer_to(&second).expect("transferred");
    assert!(found(d));
    second.remove(Dependants::Deny).expect("removed");
    assert!(found(a) && !found(c) && !found(d));
    session.check().expect("invariants");
}

/// Keeps its requests.
#[derive(Default)]
struct Slow(Mutex<Vec<Request<Words>>>);

impl Generator<Words> for Slow {
    fn generate(&self, request: Request<Words>) {
        self.0.lock().expect("requests").push(request);
    }
}

impl Slow {
    fn next(&self) -> Request<Words> {
        self.0.lock().expect("requests").remove(0)
    }
}

#[test]
fn c31_a_suspended_lookup_goes_on() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let slow = Arc::new(Slow::default());
    main.add_generator(Arc::clone(&slow)).expect("added");
    let lookup = main.lookup([foo]);
    assert!(!lookup.is_done());
    let request = slow.next();
    assert_eq!(request.symbols(), [foo]);
    request.define(vec![made(&[(foo, E, 1)])]).expect("defined");
    request.done();
    assert_eq!(lookup.wait_one().expect("found").address, Some(1));
}

#[test]
fn c32_c33_an_error_reaches_all_lookups_that_wait_for_the_answer() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let slow = Arc::new(Slow::default());
    main.add_generator(Arc::clone(&slow)).expect("added");
    let lookups = [main.lookup([foo]), main.lookup([foo])];
    slow.next().fail("no network");
    for lookup in lookups {
        assert!(matches!(lookup.wait(), Err(Error::Generator(error)) if error.to_string() == "no network"));
    }
    assert!(slow.0.lock().expect("requests").is_empty(), "the second lookup joined the first's question");
    drop(main.lookup([foo]));
    drop(slow.next());
    let lookup = main.lookup([foo]);
    drop(slow.next());
    assert!(matches!(lookup.wait(), Err(Error::GeneratorAbandoned)));
    session.check().expect("invariants");
}

#[test]
fn c34_lookups_that_wait_for_one_generator_go_on_each_with_what_it_needs() {
    let (session, main) = in_place();
    let [foo, bar, none] = ["foo", "bar", "none"].map(|name| session.intern(name));
    let slow = Arc::new(Slow::default());
    main.add_generator(Arc::clone(&slow)).expect("added");
    let first = main.lookup([foo]);
    let both = main.lookup([foo, bar]);
    let passes = session.lookup(vec![main.all()], weak([none]), Until::Ready);
    let (foos, bars, nones) = (slow.next(), slow.next(), slow.next());
    assert_eq!((foos.symbols(), bars.symbols(), nones.symbols()), (&[foo][..], &[bar][..], &[none][..]));
    nones.done();
    assert!(passes.is_done(), "others are not behind the first");
    bars.define(vec![made(&[(bar, E, 2)])]).expect("defined");
    bars.done();
    assert!(!both.is_done());
    foos.define(vec![made(&[(foo, E, 1)])]).expect("defined");
    foos.done();
    assert_eq!(first.wait().expect("found").len() + both.wait().expect("found").len(), 3);
    assert!(passes.wait().expect("answered").is_empty());
}

#[test]
fn c35_a_failure_names_all_symbols_of_the_unit() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(foo, E), (bar, E)], |duty: Responsibility<Words>| duty.fail("no"))).expect("defined");
    let failed = failure(main.lookup([foo, bar]).wait());
    assert_eq!(texts(failed.symbols()), ["bar", "foo"]);
    assert!(failed.symbols().iter().all(|name| &*name.dylib == "main"));
}

#[test]
fn c36_a_unit_may_fail_after_resolution() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(bar, E)], |duty: Responsibility<Words>| duty.fail("no"))).expect("defined");
    main.define(unit([(foo, E)], move |duty: Responsibility<Words>| {
        duty.resolve_some([(foo, 1)]).expect("resolved");
        duty.lookup_then(required([bar]), Until::Resolved, |_, _| panic!("`bar` cannot be had"));
    }))
    .expect("defined");
    let failed = failure(main.lookup([foo]).wait());
    assert_eq!((failed.chain().count(), failed.root().to_string()), (2, "no".to_owned()));
}

#[test]
fn c37_a_lookup_of_ready_and_failing_symbols_fails_once() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    main.define(made(&[(foo, E, 1)])).expect("defined");
    main.define(keep(&[(bar, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo, bar]);
    assert!(!lookup.is_done());
    take(&kept).fail("no");
    assert_eq!(texts(failure(lookup.wait()).symbols()), ["bar"]);
    assert_eq!(main.ready(foo), Some(1));
}

#[test]
fn c38_nothing_is_claimed_for_what_was_removed() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![keep(&[(foo, E)], &kept)], Some(&tracker)).expect("defined");
    let lookup = main.lookup([foo]);
    tracker.remove(Dependants::Deny).expect("removed");
    assert!(matches!(failure(lookup.wait()).cause(), Cause::Removed));
    let duty = take(&kept);
    assert!(matches!(duty.claim([(bar, E)]), Err(Error::Removed)));
    assert!(matches!(duty.symbols(), Err(Error::Removed)));
}

#[test]
fn c41_unrequested_symbols_are_handed_back() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    let second = Kept::default();
    main.define(keep(&[(foo, E), (bar, E)], &kept)).expect("defined");
    let foos = main.lookup([foo]);
    let duty = take(&kept);
    assert_eq!(duty.requested().expect("in force"), [foo]);
    let rest = Handed { symbol: bar, kept: Arc::clone(&second) };
    duty.hand_back(Box::new(rest)).expect("handed back");
    duty.resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert!(foos.wait().is_ok() && second.lock().expect("kept").is_empty(), "`bar` is lazy again");
    let bars = main.lookup([bar]);
    take(&second).resolve([(bar, 2)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(bars.wait_one().expect("found").address, Some(2));
}

struct Handed {
    symbol: brolga_linking::Symbol,
    kept: Kept,
}

impl brolga_linking::MaterializationUnit<Words> for Handed {
    fn symbols(&self) -> Vec<(brolga_linking::Symbol, SymbolFlags)> {
        vec![(self.symbol, E)]
    }

    fn materialize(self: Box<Self>, duty: Responsibility<Words>) {
        self.kept.lock().expect("kept").push(duty);
    }
}

#[test]
fn c42_split_responsibilities_answer_one_lookup() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    main.define(keep(&[(foo, E), (bar, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo, bar]);
    let foos = take(&kept);
    assert!(matches!(foos.delegate([session.intern("none")]), Err(Error::NotResponsible { .. })));
    let bars = foos.delegate([bar]).expect("delegated");
    bars.resolve([(bar, 2)]).expect("resolved").emit([]).expect("emitted");
    assert!(!lookup.is_done());
    foos.resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(lookup.wait().expect("found").len(), 2);
}

#[test]
fn c44_c45_c46_walks_over_link_orders_visit_each_dylib_once() {
    let (session, main) = in_place();
    let [a, b, c] = ["a", "b", "c"].map(|name| session.create_dylib(name).expect("a dylib"));
    // A tree.
    main.set_links(vec![main.all(), a.exported(), b.exported()]).expect("open");
    assert_eq!(session.reached(&[&main]).expect("open"), [main.id(), a.id(), b.id()]);
    assert_eq!(session.reached(&[&b, &main]).expect("open"), [b.id(), main.id(), a.id()]);
    // A diamond.
    a.add_links(vec![c.exported()]).expect("open");
    b.add_links(vec![c.exported()]).expect("open");
    assert_eq!(session.reached(&[&main]).expect("open"), [main.id(), a.id(), c.id(), b.id()]);
    // A cycle.
    c.add_links(vec![main.exported()]).expect("open");
    assert_eq!(session.reached(&[&c]).expect("open"), [c.id(), main.id(), a.id(), b.id()]);
}

#[test]
fn c47_a_closed_dylib() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    other.add_links(vec![main.exported()]).expect("open");
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let lazy = Never::new(&[(foo, E)]);
    let (dropped, lost) = (Arc::clone(&lazy.dropped), Arc::clone(&lazy.lost));
    main.define(lazy.unit()).expect("defined");
    let kept = Kept::default();
    main.define(keep(&[(bar, E)], &kept)).expect("defined");
    let lookup = main.lookup([bar]);
    session.close_dylibs(&[&main], Dependants::Deny).expect("closed");
    assert_eq!((count(&dropped), lost.lock().expect("lost").len()), (1, 0), "dropped, not discarded");
    assert!(matches!(failure(lookup.wait()).cause(), Cause::Closed));
    let duty = take(&kept);
    assert!(matches!(duty.resolve_some([(bar, 1)]), Err(Error::Removed)));
    duty.fail("harmless");
    assert!(matches!(main.lookup([foo]).wait(), Err(Error::DylibClosed { .. })));
    assert!(matches!(main.define(made(&[(foo, E, 1)])), Err(Error::DylibClosed { .. })));
    assert!(matches!(main.links(), Err(Error::DylibClosed { .. })));
    assert!(matches!(session.reached(&[&main]), Err(Error::DylibClosed { .. })));
    assert_eq!(session.reached(&[&other]).expect("open"), [other.id()], "it is in no order any more");
    session.close_dylibs(&[&main, &other], Dependants::Deny).expect("closing twice does nothing");
    session.check().expect("invariants");
    assert!(session.create_dylib("main").is_ok(), "the name is free");
}

#[test]
fn c48_an_error_outlives_its_session() {
    let error = {
        let (session, main) = in_place();
        let foo = session.intern("foo");
        main.define(unit([(foo, E)], |duty: Responsibility<Words>| duty.fail("no memory"))).expect("defined");
        let answer = main.lookup([foo]).wait();
        session.end(|_| {});
        answer.map(drop)
    };
    assert_eq!(failure(error).to_string(), "`foo` of `main` failed: no memory");
}

#[test]
fn n05_to_n10_wants_are_merged_and_required_wins() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let want = |need| Want { symbol: foo, need, at: None };
    let ask = |wants| session.lookup(vec![main.all()], wants, Until::Ready).wait();
    assert!(ask(vec![want(Need::Weak), want(Need::Weak)]).expect("answered").is_empty());
    for wants in [vec![want(Need::Weak), want(Need::Required)], vec![want(Need::Required), want(Need::Weak)]]
    {
        assert!(matches!(ask(wants), Err(Error::NotFound { symbols }) if texts(&symbols) == ["foo"]));
    }
    main.define(made(&[(foo, E, 1)])).expect("defined");
    assert_eq!(ask(vec![want(Need::Weak), want(Need::Weak), want(Need::Required)]).expect("found").len(), 1);
}

#[test]
fn u01_to_u12_batches_are_found_all_or_none() {
    let (session, main) = in_place();
    let [foo, bar, none] = ["foo", "bar", "none"].map(|name| session.intern(name));
    main.define(made(&[(foo, E, 1), (bar, E, 2)])).expect("defined");
    let found = main.lookup([bar, foo]).wait().expect("found");
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), [Some(2), Some(1)]);
    assert!(main.lookup([foo, none]).wait().is_err());
    let answer = Arc::new(Mutex::new(None));
    let there = Arc::clone(&answer);
    session.lookup_then(vec![main.all()], weak([foo, none]), Until::Ready, Priority::Normal, move |found| {
        *there.lock().expect("answer") = Some(found.expect("found").len());
    });
    assert_eq!(*answer.lock().expect("answer"), Some(1));
}

#[test]
fn a_dropped_responsibility_fails_and_a_panic_says_so() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    main.define(unit([(foo, E)], drop::<Responsibility<Words>>)).expect("defined");
    main.define(unit([(bar, E)], |_: Responsibility<Words>| panic!("a bug of a front end")))
        .expect("defined");
    assert!(matches!(failure(main.lookup([foo]).wait()).cause(), Cause::Abandoned));
    let told = failure(main.lookup([bar]).wait());
    assert!(matches!(told.cause(), Cause::Panicked(Some(text)) if **text == *"a bug of a front end"));
    assert_eq!(
        told.to_string(),
        "`bar` of `main` failed: their materialization panicked: a bug of a front end"
    );
}

/// Wherever the responsibility or the request is when its task panics, and whatever the message is made of.
#[test]
fn a_panic_keeps_its_message() {
    struct Broken;
    impl brolga_linking::Generator<Words> for Broken {
        fn generate(&self, request: brolga_linking::Request<Words>) {
            panic!("no {}", request.symbols().len());
        }
    }
    let (session, main) = in_place();
    let [base, later, odd, caught, none] =
        ["base", "later", "odd", "caught", "none"].map(|name| session.intern(name));
    main.define(made(&[(base, E, 1)])).expect("defined");
    main.define(unit([(later, E)], move |duty: Responsibility<Words>| {
        duty.lookup_then(required([base]), Until::Ready, |_duty, found| panic!("{} found", found.len()));
    }))
    .expect("defined");
    main.define(unit([(odd, E)], |_: Responsibility<Words>| std::panic::panic_any(7))).expect("defined");
    let home = main.clone();
    main.define(unit([(caught, E)], move |duty: Responsibility<Words>| {
        let work = std::panic::AssertUnwindSafe(|| {
            let _duty = duty;
            panic!("unhandled");
        });
        assert!(std::panic::catch_unwind(work).is_err());
        // Its symbols have failed by the time the thread does something else.
        let told = failure(home.lookup([caught]).wait());
        assert!(matches!(told.cause(), Cause::Panicked(None)));
    }))
    .expect("defined");
    let cause = |symbol| failure(main.lookup([symbol]).wait()).cause().to_string();
    assert_eq!(cause(later), "their materialization panicked: 1 found");
    assert_eq!(cause(odd), "their materialization panicked");
    assert_eq!(cause(caught), "their materialization panicked");
    main.add_generator(Broken).expect("open");
    let told = main.lookup([none]).wait().expect_err("it panicked");
    assert_eq!(told.to_string(), "a definition generator panicked: no 1");
    session.check().expect("invariants");
}

#[test]
fn wrong_uses_of_a_responsibility_fail_it() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    let again = || {
        main.redefine(vec![keep(&[(foo, E)], &kept)], None).expect("defined");
        (main.lookup([foo]), take(&kept))
    };
    let (lookup, duty) = again();
    assert!(matches!(duty.resolve([(bar, 1)]), Err(Error::NotResponsible { .. })));
    failure(lookup.wait());
    let (lookup, duty) = again();
    assert!(matches!(duty.resolve([(foo, 1), (foo, 2)]), Err(Error::NotResponsible { .. })));
    failure(lookup.wait());
    let (lookup, duty) = again();
    let unresolved = duty.resolve([]).expect("nothing was wrong yet");
    assert!(matches!(unresolved.emit([]), Err(Error::Unresolved { .. })));
    failure(lookup.wait());
    session.check().expect("invariants");
}
