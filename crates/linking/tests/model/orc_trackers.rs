//! ORC's tracker tests, R01 to R10, and our additions: policies for dependants, replacement, ending.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{E, Kept, Never, Owned, Words, count, failure, in_place, keep, made, take, texts, with};
use brolga_linking::{
    Addresses, Alias, Cause, Dependants, Dependence, Dylib, Error, Host, Label, Link, OnDrop, Responsibility,
    Seeded, Sees, Session, Symbol, SymbolFlags, Target, Unit, Until, required, unit,
};

/// A unit with one symbol whose code counts its drop in `freed`, and which needs `needs`.
fn code(symbol: Symbol, address: u64, needs: &[Dependence<Words>], freed: &Arc<AtomicUsize>) -> Unit<Words> {
    let (needs, freed) = (needs.to_vec(), Arc::clone(freed));
    unit([(symbol, E)], move |duty: Responsibility<Words>| {
        assert!(duty.attach(Owned(freed)).is_ok());
        duty.resolve([(symbol, address)]).expect("resolved").emit(needs).expect("emitted");
    })
}

/// Ready: `app` needs `lib`, which needs `base`; each in its own tracker, with a counter of freed code.
struct Three {
    session: Session<Words>,
    main: Dylib<Words>,
    symbols: [Symbol; 3],
    trackers: Vec<brolga_linking::Tracker<Words>>,
    freed: Vec<Arc<AtomicUsize>>,
}

impl Three {
    fn new() -> Three {
        let (session, main) = in_place();
        let symbols = ["app", "lib", "base"].map(|name| session.intern(name));
        let freed: Vec<Arc<AtomicUsize>> = (0..3).map(|_| Arc::default()).collect();
        let mut trackers = Vec::new();
        for (i, symbol) in symbols.iter().enumerate() {
            let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
            let needs: Vec<Dependence<Words>> =
                symbols.get(i + 1).map(|next| main.label(*next).into()).into_iter().collect();
            let unit = code(*symbol, 10 + i as u64, &needs, &freed[i]);
            main.define_all(vec![unit], Some(&tracker)).expect("defined");
            trackers.push(tracker);
        }
        main.lookup([symbols[0]]).wait().expect("ready");
        Three { session, main, symbols, trackers, freed }
    }

    fn freed(&self) -> Vec<usize> {
        self.freed.iter().map(|freed| count(freed)).collect()
    }

    fn ready(&self) -> Vec<bool> {
        self.symbols.iter().map(|symbol| self.main.ready(*symbol).is_some()).collect()
    }
}

#[test]
fn r01_removal_before_materialization() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let lazy = Never::new(&[(foo, E)]);
    let dropped = Arc::clone(&lazy.dropped);
    main.define_all(vec![lazy.unit()], Some(&tracker)).expect("defined");
    tracker.remove(Dependants::Deny).expect("removed");
    assert_eq!(count(&dropped), 1, "never run");
    assert!(matches!(main.lookup([foo]).wait(), Err(Error::NotFound { .. })));
    assert!(matches!(tracker.remove(Dependants::Deny), Err(Error::Removed)));
    let late = main.define_all(vec![made(&[(foo, E, 1)])], Some(&tracker));
    assert!(matches!(late, Err(Error::Removed)));
}

#[test]
fn r02_removal_after_materialization_frees_the_code() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let freed = Arc::new(AtomicUsize::new(0));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![code(foo, 1, &[], &freed)], Some(&tracker)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    assert_eq!(count(&freed), 0);
    tracker.remove(Dependants::Deny).expect("removed");
    assert_eq!((count(&freed), main.ready(foo)), (1, None));
    main.define(made(&[(foo, E, 2)])).expect("the name is free");
}

#[test]
fn r03_removal_while_materializing() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![keep(&[(foo, E)], &kept)], Some(&tracker)).expect("defined");
    let lookup = main.lookup([foo]);
    let freed = Arc::new(AtomicUsize::new(0));
    let duty = take(&kept);
    assert!(duty.attach(Owned(Arc::clone(&freed))).is_ok());
    tracker.remove(Dependants::Deny).expect("removed");
    assert!(matches!(failure(lookup.wait()).cause(), Cause::Removed));
    assert_eq!(count(&freed), 1, "what was attached is freed");
    let back = duty.attach(Owned(Arc::clone(&freed)));
    assert!(back.is_err() && count(&freed) == 1, "what comes late is given back");
    assert!(matches!(duty.resolve_some([(foo, 1)]), Err(Error::Removed)));
    duty.fail("harmless");
    session.check().expect("invariants");
}

#[test]
fn r04_clearing_a_dylib() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let freed = Arc::new(AtomicUsize::new(0));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![code(foo, 1, &[], &freed)], Some(&tracker)).expect("defined");
    main.define(code(bar, 2, &[], &freed)).expect("defined");
    main.lookup([foo, bar]).wait().expect("ready");
    main.clear(Dependants::Deny).expect("cleared");
    assert_eq!((count(&freed), main.ready(foo), main.ready(bar)), (2, None, None));
    assert!(matches!(tracker.remove(Dependants::Deny), Err(Error::Removed)));
    main.define(made(&[(foo, E, 3)])).expect("it is open");
}

#[test]
fn r05_r06_r07_transfer_before_after_and_while_materializing() {
    for state in 0..3 {
        let (session, main) = in_place();
        let foo = session.intern("foo");
        let (kept, freed) = (Kept::default(), Arc::new(AtomicUsize::new(0)));
        let [from, to] = [0, 1].map(|_| main.create_tracker(OnDrop::Keep).expect("a tracker"));
        main.define_all(vec![keep(&[(foo, E)], &kept)], Some(&from)).expect("defined");
        let transfer = || {
            from.transfer_to(&from).expect("nothing happens");
            from.transfer_to(&to).expect("transferred");
            assert!(matches!(from.transfer_to(&to), Err(Error::Removed)));
        };
        if state == 0 {
            transfer();
        }
        let lookup = main.lookup([foo]);
        let duty = take(&kept);
        assert!(duty.attach(Owned(Arc::clone(&freed))).is_ok());
        if state == 1 {
            transfer();
        }
        duty.resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
        lookup.wait().expect("ready");
        if state == 2 {
            transfer();
        }
        assert!(matches!(from.remove(Dependants::Deny), Err(Error::Removed)));
        assert_eq!(count(&freed), 0);
        to.remove(Dependants::Deny).expect("removed");
        assert_eq!((count(&freed), main.ready(foo)), (1, None));
        session.check().expect("invariants");
    }
}

#[test]
fn r05_trackers_of_other_dylibs_are_refused() {
    let (session, main) = in_place();
    let other = session.create_dylib("other").expect("a dylib");
    let ours = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let theirs = other.create_tracker(OnDrop::Keep).expect("a tracker");
    assert!(matches!(ours.transfer_to(&theirs), Err(Error::DifferentDylibs)));
    let foo = session.intern("foo");
    let defined = main.define_all(vec![made(&[(foo, E, 1)])], Some(&theirs));
    assert!(matches!(defined, Err(Error::DifferentDylibs)));
}

#[test]
fn r08_dropping_a_tracker_keeps_or_removes() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let freed = Arc::new(AtomicUsize::new(0));
    for (symbol, on_drop) in [(foo, OnDrop::Keep), (bar, OnDrop::Remove)] {
        let tracker = main.create_tracker(on_drop).expect("a tracker");
        main.define_all(vec![code(symbol, 1, &[], &freed)], Some(&tracker)).expect("defined");
        main.lookup([symbol]).wait().expect("ready");
    }
    assert_eq!((count(&freed), main.ready(foo), main.ready(bar)), (1, Some(1), None));
    main.remove_untracked(Dependants::Deny).expect("the dylib tracks it now");
    assert_eq!(count(&freed), 2);
}

#[test]
fn r09_symbols_claimed_late_are_removed_with_their_tracker() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let claiming = unit([(foo, E)], move |duty: Responsibility<Words>| {
        duty.claim([(bar, E)]).expect("claimed");
        duty.resolve([(foo, 1), (bar, 2)]).expect("resolved").emit([]).expect("emitted");
    });
    main.define_all(vec![claiming], Some(&tracker)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    tracker.remove(Dependants::Deny).expect("removed");
    assert_eq!(main.ready(bar), None);
    main.define(made(&[(bar, E, 3)])).expect("the name is free");
}

#[test]
fn r10_deny_names_the_users_and_changes_nothing() {
    let three = Three::new();
    let denied = three.trackers[1].remove(Dependants::Deny);
    let Err(Error::InUse { symbols, dependants }) = denied else { panic!("{denied:?}") };
    assert_eq!((texts(&symbols), texts(&dependants)), (vec!["lib".to_owned()], vec!["app".to_owned()]));
    assert_eq!((three.freed(), three.ready()), (vec![0, 0, 0], vec![true; 3]));
    three.trackers[0].remove(Dependants::Deny).expect("it has no users");
    three.trackers[1].remove(Dependants::Deny).expect("it has no users now");
    assert_eq!((three.freed(), three.ready()), (vec![1, 1, 0], vec![false, false, true]));
}

#[test]
fn r10_cascade_removes_the_users_too() {
    let three = Three::new();
    three.trackers[1].remove(Dependants::Cascade).expect("removed");
    assert_eq!((three.freed(), three.ready()), (vec![1, 1, 0], vec![false, false, true]));
    three.session.check().expect("invariants");
}

#[test]
fn r10_tombstone_leaves_the_users_and_names_them() {
    use std::sync::Mutex;
    type Told = Arc<Mutex<Vec<String>>>;
    struct Telling(Told);
    impl Host<Words> for Telling {
        fn orphaned(&self, user: brolga_linking::Name, removed: brolga_linking::Name) {
            self.0.lock().expect("told").push(format!("{} {}", user.symbol, removed.symbol));
        }
    }
    let told = Told::default();
    let session: Session<Words> =
        Session::new(Arc::new(brolga_linking::InPlace::new()), Box::new(Telling(Arc::clone(&told))));
    let main = session.create_dylib("main").expect("a dylib");
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let freed = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![code(bar, 1, &[], &freed[0])], Some(&tracker)).expect("defined");
    main.define(code(foo, 2, &[main.label(bar).into()], &freed[1])).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    tracker.remove(Dependants::Tombstone).expect("removed");
    assert_eq!((count(&freed[0]), count(&freed[1]), main.ready(foo), main.ready(bar)), (1, 0, Some(2), None));
    assert_eq!(*told.lock().expect("told"), ["foo bar"]);
    session.check().expect("invariants");
}

#[test]
fn r10_the_host_closes_what_a_tombstone_removes_and_nothing_else() {
    use std::sync::Mutex;
    type Told = Arc<Mutex<Vec<&'static str>>>;
    struct Telling(Told);
    impl Host<Words> for Telling {
        fn mark_removed(&self, _: &Owned) {
            self.0.lock().expect("told").push("entombed");
        }
        fn retire(&self, code: Vec<Owned>) {
            self.0.lock().expect("told").extend(code.iter().map(|_| "retired"));
        }
    }
    let both: &[&str] = &["entombed", "entombed", "retired", "retired"];
    let policies = [
        (Some(Dependants::Tombstone), &["entombed", "retired"][..]),
        (Some(Dependants::Cascade), &["retired", "retired"]),
        (Some(Dependants::Keep), &[]),
        (None, &["retired", "retired"]),
    ];
    for (policy, expected) in policies {
        let told = Told::default();
        let session: Session<Words> =
            Session::new(Arc::new(brolga_linking::InPlace::new()), Box::new(Telling(Arc::clone(&told))));
        let main = session.create_dylib("main").expect("a dylib");
        let (foo, bar) = (session.intern("foo"), session.intern("bar"));
        let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
        let freed = Arc::default();
        main.define_all(vec![code(bar, 1, &[], &freed)], Some(&tracker)).expect("defined");
        main.define(code(foo, 2, &[main.label(bar).into()], &freed)).expect("defined");
        main.lookup([foo]).wait().expect("ready");
        match policy {
            Some(policy) => tracker.remove(policy).expect("removed"),
            // Handles keep the code that they call.
            None => session.end(|_| {}),
        }
        assert_eq!(*told.lock().expect("told"), expected, "{policy:?}");
        if policy == Some(Dependants::Keep) {
            main.clear(Dependants::Tombstone).expect("cleared");
            assert_eq!(*told.lock().expect("told"), both, "kept code is freed with its users");
        }
        session.check().expect("invariants");
    }
}

#[test]
fn r10_aliases_of_what_a_tombstone_removes_go_with_it() {
    let (session, main) = in_place();
    let [foo, bar, short, shorter, of_short] =
        ["foo", "bar", "short", "shorter", "of_short"].map(|name| session.intern(name));
    let freed = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![code(bar, 1, &[], &freed[0])], Some(&tracker)).expect("defined");
    for (alias, of) in [(short, bar), (shorter, short)] {
        main.define(Alias { symbol: alias, flags: E, from: main.all(), aliasee: of }).expect("defined");
    }
    main.define(code(foo, 2, &[], &freed[1])).expect("defined");
    main.define(code(of_short, 3, &[main.label(shorter).into()], &freed[2])).expect("defined");
    main.lookup([foo, of_short]).wait().expect("ready");
    tracker.remove(Dependants::Tombstone).expect("removed");
    let ready = [foo, bar, short, shorter, of_short].map(|symbol| main.ready(symbol));
    assert_eq!(ready, [Some(2), None, None, None, Some(3)], "no address of what is gone");
    assert_eq!(freed.each_ref().map(|freed| count(freed)), [1, 0, 0]);
    session.check().expect("invariants");
}

#[test]
fn a_removal_is_completed_when_the_host_panics() {
    struct Panicking(Arc<AtomicUsize>);
    impl Host<Words> for Panicking {
        fn orphaned(&self, _: brolga_linking::Name, _: brolga_linking::Name) {
            panic!("of the host");
        }
        fn retire(&self, code: Vec<Owned>) {
            self.0.fetch_add(code.len(), Ordering::SeqCst);
        }
    }
    let retired = Arc::new(AtomicUsize::new(0));
    let session: Session<Words> =
        Session::new(Arc::new(brolga_linking::InPlace::new()), Box::new(Panicking(Arc::clone(&retired))));
    let main = session.create_dylib("main").expect("a dylib");
    let [foo, bar] = ["foo", "bar"].map(|name| session.intern(name));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    let freed = Arc::default();
    main.define_all(vec![code(bar, 1, &[], &freed)], Some(&tracker)).expect("defined");
    main.define(code(foo, 2, &[main.label(bar).into()], &freed)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    tracker.remove(Dependants::Tombstone).expect("removed");
    assert_eq!(count(&retired), 1, "by way of the host, which knows when no thread runs it");
}

#[test]
fn r10_keep_takes_the_name_and_keeps_the_code_for_its_users() {
    let three = Three::new();
    three.trackers[2].remove(Dependants::Keep).expect("removed");
    three.trackers[1].remove(Dependants::Keep).expect("removed");
    assert_eq!((three.freed(), three.ready()), (vec![0, 0, 0], vec![true, false, false]));
    three.session.check().expect("invariants");
    three.trackers[0].remove(Dependants::Keep).expect("removed");
    assert_eq!(three.freed(), [1, 1, 1], "nothing with a name reaches them");
}

#[test]
fn r10_kept_code_in_a_cycle_goes_together() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let freed = Arc::new(AtomicUsize::new(0));
    let trackers = [(foo, bar), (bar, foo)].map(|(symbol, other)| {
        let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
        let unit = code(symbol, 1, &[main.label(other).into()], &freed);
        main.define_all(vec![unit], Some(&tracker)).expect("defined");
        tracker
    });
    main.lookup([foo]).wait().expect("ready");
    trackers[0].remove(Dependants::Keep).expect("removed");
    assert_eq!(count(&freed), 0);
    trackers[1].remove(Dependants::Keep).expect("removed");
    assert_eq!(count(&freed), 2);
}

#[test]
fn replacement_leaves_the_old_version_to_its_users() {
    let three = Three::new();
    let [app, lib, _] = three.symbols;
    let old = three.main.lookup([lib]).wait_one().expect("found");
    three.main.redefine(vec![made(&[(lib, E, 99)])], None).expect("replaced");
    assert_eq!(three.main.ready(lib), None, "the new one is lazy");
    assert_eq!(three.main.lookup([lib]).wait_one().expect("found").address, Some(99));
    assert_eq!(three.freed(), [0, 0, 0], "`app` uses the old one");
    // Code that was linked against the old one is too late.
    let late = three.session.intern("late");
    let kept = Kept::default();
    three.main.define(keep(&[(late, E)], &kept)).expect("defined");
    let lookup = three.main.lookup([late]);
    let resolved = take(&kept).resolve([(late, 5)]).expect("resolved");
    assert!(matches!(resolved.emit([old.into()]), Err(Error::Unsatisfied { .. })));
    failure(lookup.wait());
    // When its last user is replaced, it is freed; `base` loses its last user with it, but has a name.
    three.main.redefine(vec![made(&[(app, E, 98)])], None).expect("replaced");
    assert_eq!((three.freed(), three.ready()), (vec![1, 1, 0], vec![false, true, true]));
    three.session.check().expect("invariants");
}

#[test]
fn replacement_of_what_is_being_made_is_busy_and_of_what_failed_is_free() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    let lookup = main.lookup([foo]);
    assert!(matches!(main.redefine(vec![made(&[(foo, E, 1)])], None), Err(Error::Busy { .. })));
    take(&kept).fail("no");
    failure(lookup.wait());
    main.redefine(vec![made(&[(foo, E, 1)])], None).expect("replaced");
    assert_eq!(main.address("foo").expect("ready"), 1);
}

#[test]
fn removal_while_others_wait_fails_them_with_the_cause() {
    let (session, main) = in_place();
    let (foo, bar) = (session.intern("foo"), session.intern("bar"));
    let kept = Kept::default();
    let freed = Arc::new(AtomicUsize::new(0));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![keep(&[(bar, E)], &kept)], Some(&tracker)).expect("defined");
    main.define(code(foo, 1, &[main.label(bar).into()], &freed)).expect("defined");
    let lookup = main.lookup([foo]);
    tracker.remove(Dependants::Deny).expect("what is not ready does not deny");
    let failed = failure(lookup.wait());
    assert!(failed.chain().count() == 2 && matches!(failed.root(), Cause::Removed));
    assert_eq!(count(&freed), 1, "the code of what failed is freed");
}

#[test]
fn code_is_freed_in_reverse_and_by_the_host() {
    use std::sync::Mutex;
    struct Numbers;
    impl Target for Numbers {
        type Address = usize;
        type Code = u32;
    }
    struct Freed(Arc<Mutex<Vec<u32>>>);
    impl Host<Numbers> for Freed {
        fn retire(&self, code: Vec<u32>) {
            self.0.lock().expect("freed").extend(code);
        }
    }
    let freed = Arc::new(Mutex::new(Vec::new()));
    let session: Session<Numbers> =
        Session::new(Arc::new(brolga_linking::InPlace::new()), Box::new(Freed(Arc::clone(&freed))));
    let main = session.create_dylib("main").expect("a dylib");
    let foo = session.intern("foo");
    main.define(unit([(foo, E)], move |duty: Responsibility<Numbers>| {
        for code in 1..=3 {
            duty.attach(code).expect("attached");
        }
        duty.resolve([(foo, 7)]).expect("resolved").emit([]).expect("emitted");
    }))
    .expect("defined");
    assert_eq!(main.address("foo").expect("ready"), 7);
    session.end(|_| {});
    assert_eq!(*freed.lock().expect("freed"), [3, 2, 1]);
}

#[test]
fn a_session_ends_once_and_refuses_what_comes_later() {
    let (session, main) = in_place();
    let (foo, bar, init) = (session.intern("foo"), session.intern("bar"), session.intern("init"));
    let freed = Arc::new(AtomicUsize::new(0));
    main.define(code(foo, 1, &[], &freed)).expect("defined");
    let side = E | SymbolFlags::SIDE_EFFECTS_ONLY;
    let mut initialised = unit([(init, side)], |duty: Responsibility<Words>| {
        duty.resolve([]).expect("resolved").emit([]).expect("emitted")
    });
    initialised.initializer = Some(init.into());
    main.define(initialised).expect("defined");
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let kept = Kept::default();
    main.define(keep(&[(bar, E)], &kept)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    let waiting = main.lookup([bar]);
    let mut ended = Vec::new();
    session.end(|dylib| ended.push((dylib, count(&freed))));
    assert_eq!(ended, [(main.id(), 0)], "deinitialised before its code is freed");
    assert_eq!(count(&freed), 1);
    assert!(matches!(failure(waiting.wait()).cause(), Cause::Closed));
    assert!(matches!(main.lookup([foo]).wait(), Err(Error::SessionEnded)));
    assert!(matches!(session.create_dylib("other"), Err(Error::SessionEnded)));
    assert!(matches!(main.define(made(&[(foo, E, 1)])), Err(Error::SessionEnded)));
    take(&kept).fail("harmless");
    session.end(|_| panic!("it has ended"));
    session.check().expect("invariants");
}

#[test]
fn the_end_finishes_work_that_was_begun_before() {
    let (session, main) = with(Arc::new(Seeded::new(1)));
    let [f, g, late, init] = ["f", "g", "late", "init"].map(|name| session.intern(name));
    main.add_generator(Addresses(|name: &str| (name == "g").then_some((5, E)))).expect("open");
    // It is queued when the session ends; what it then looks up is defined then.
    main.define(unit([(f, E)], move |duty: Responsibility<Words>| {
        duty.lookup_then(required([g]), Until::Ready, move |duty, found| {
            let address = found[0].address.expect("an address") + 1;
            duty.resolve([(f, address)]).expect("resolved").emit([]).expect("emitted");
        });
    }))
    .expect("defined");
    main.define(made(&[(late, E, 7)])).expect("defined");
    let side = E | SymbolFlags::SIDE_EFFECTS_ONLY;
    let mut initialised = unit([(init, side)], |duty: Responsibility<Words>| {
        duty.resolve([]).expect("resolved").emit([]).expect("emitted");
    });
    initialised.initializer = Some(init.into());
    main.define(initialised).expect("defined");
    main.open(|_| Ok(()), |_| {}).expect("opened");
    let lookup = main.lookup([f]);
    assert!(!lookup.is_done());
    let mut ended = 0;
    session.end(|_| {
        ended += 1;
        // The thread that ends the session may still look up symbols; others may not.
        let other = std::thread::scope(|scope| scope.spawn(|| main.lookup([late]).wait()).join());
        assert!(matches!(other.expect("no panic"), Err(Error::SessionEnded)));
        assert_eq!(main.lookup([late]).wait_one().expect("found").address, Some(7));
    });
    assert_eq!(ended, 1);
    assert_eq!(lookup.wait_one().expect("it was finished").address, Some(6));
    assert!(matches!(main.lookup([f]).wait(), Err(Error::SessionEnded)));
    session.check().expect("invariants");
}

#[test]
fn a_responsibility_can_look_up_symbols_at_the_end() {
    let (session, main) = in_place();
    let [f, g] = ["f", "g"].map(|name| session.intern(name));
    main.define(made(&[(g, E, 7)])).expect("defined");
    let kept = Kept::default();
    main.define(keep(&[(f, E)], &kept)).expect("defined");
    let lookup = main.lookup([f]);
    main.open(|_| Ok(()), |_| {}).expect("opened");
    session.end(|_| {
        // A thread unknown to the session.
        let goes_on = || {
            take(&kept).lookup_then(required([g]), Until::Ready, move |duty, found| {
                let address = found[0].address.expect("an address") + 1;
                duty.resolve([(f, address)]).expect("resolved").emit([]).expect("emitted");
            });
        };
        std::thread::scope(|scope| scope.spawn(goes_on).join()).expect("no panic");
    });
    assert_eq!(lookup.wait_one().expect("it was finished").address, Some(8));
    session.check().expect("invariants");
}

#[test]
fn o02_many_transfers_keep_the_code() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let freed = Arc::new(AtomicUsize::new(0));
    let mut tracker = main.create_tracker(OnDrop::Remove).expect("a tracker");
    main.define_all(vec![code(foo, 1, &[], &freed)], Some(&tracker)).expect("defined");
    main.lookup([foo]).wait().expect("ready");
    for _ in 0..64 {
        let next = main.create_tracker(OnDrop::Remove).expect("a tracker");
        tracker.transfer_to(&next).expect("transferred");
        tracker = next;
    }
    assert_eq!((count(&freed), main.ready(foo)), (0, Some(1)));
    drop(tracker);
    assert_eq!((count(&freed), main.ready(foo)), (1, None));
}

#[test]
fn a_lookup_that_is_dropped_leaves_nothing_behind() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let kept = Kept::default();
    main.define(keep(&[(foo, E)], &kept)).expect("defined");
    for _ in 0..1000 {
        drop(session.lookup(vec![main.all()], required([foo]), Until::Ready));
    }
    session.check().expect("invariants");
    assert!(format!("{session:?}").contains("0 lookups"), "{session:?}");
    take(&kept).resolve([(foo, 1)]).expect("resolved").emit([]).expect("emitted");
    assert_eq!(main.ready(foo), Some(1));
}

#[test]
fn a_renewed_unit_is_materialized_again_on_lookup_and_stays_tracked() {
    let (session, main) = in_place();
    let foo = session.intern("foo");
    let freed = Arc::new(AtomicUsize::new(0));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![code(foo, 1, &[], &freed)], Some(&tracker)).expect("defined");
    let label = main.label(foo);
    assert!(!session.renew(label, 1, code(foo, 2, &[], &freed)), "it has not been looked up");
    for address in 1..4 {
        assert_eq!(main.lookup([foo]).wait_one().expect("ready").address, Some(address));
        assert!(!session.renew(label, address + 1, code(foo, 9, &[], &freed)), "it leads elsewhere");
        assert!(session.renew(label, address, code(foo, address + 1, &[], &freed)));
        assert_eq!((count(&freed) as u64, main.ready(foo)), (address, None));
        session.check().expect("invariants");
    }
    tracker.remove(Dependants::Deny).expect("removed");
    assert!(matches!(main.lookup([foo]).wait(), Err(Error::NotFound { .. })));
    let three = Three::new();
    let used = three.main.label(three.symbols[2]);
    assert!(!three.session.renew(used, 12, made(&[(three.symbols[2], E, 13)])), "others use it");
    assert_eq!((three.freed(), three.ready()), (vec![0, 0, 0], vec![true, true, true]));
}

#[test]
fn a_failure_for_now_is_told_to_those_who_wait_and_to_no_others() {
    let (session, main) = in_place();
    let [foo, user] = ["foo", "user"].map(|name| session.intern(name));
    let (kept, freed) = (Kept::default(), Arc::new(AtomicUsize::new(0)));
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    main.define_all(vec![keep(&[(foo, E)], &kept)], Some(&tracker)).expect("defined");
    for round in 1..3 {
        let waiting = [main.lookup([foo]), main.lookup([foo])];
        take(&kept).fail_for_now("no room", keep(&[(foo, E)], &kept));
        for lookup in waiting {
            assert!(matches!(lookup.wait(), Err(Error::Failed(_))), "round {round}");
        }
        session.check().expect("invariants");
    }
    let found = main.lookup([foo]);
    take(&kept).fail_for_now("no room", code(foo, 7, &[], &freed));
    assert!(found.wait().is_err());
    assert_eq!(main.lookup([foo]).wait_one().expect("ready").address, Some(7));
    // A symbol removed in the meantime does not come back.
    main.define_all(vec![keep(&[(user, E)], &kept)], Some(&tracker)).expect("defined");
    drop(main.lookup([user]));
    let lookup = main.lookup([user]);
    let duty = take(&kept);
    tracker.remove(Dependants::Deny).expect("removed");
    duty.fail_for_now("no room", made(&[(user, E, 8)]));
    assert!(lookup.wait().is_err());
    for gone in [foo, user] {
        assert!(matches!(main.lookup([gone]).wait(), Err(Error::NotFound { .. })));
    }
    session.check().expect("invariants");
}

/// The waiters for `lib` when it fails for now: `app`, whose code is final, `late`, which is being made, and
/// an alias of each.
#[test]
fn a_failure_for_now_is_none_for_ever_for_what_needs_it() {
    let (session, main) = in_place();
    let [lib, app, late, other] = ["lib", "app", "late", "other"].map(|name| session.intern(name));
    let [short, long] = ["short", "long"].map(|name| session.intern(name));
    let freed = Arc::new(AtomicUsize::new(0));
    let libs = Kept::default();
    let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
    /// Looks its need up, and is completed with it.
    fn needs(symbol: Symbol, need: Symbol, until: Until, freed: Arc<AtomicUsize>) -> Unit<Words> {
        unit([(symbol, E)], move |duty: Responsibility<Words>| {
            duty.lookup_answer(required([need]), until, move |duty, found| {
                let again = needs(symbol, need, until, freed.clone());
                match found {
                    Err(error) => {
                        assert!(error.passes());
                        duty.fail_for_now(error, again);
                    }
                    Ok(found) => {
                        let needs = found.into_iter().map(Dependence::from);
                        assert!(duty.complete(Owned(freed), [(symbol, 5)], needs, Some(again)).is_none());
                    }
                }
            });
        })
    }
    let units = vec![
        keep(&[(lib, E)], &libs),
        needs(app, lib, Until::Resolved, freed.clone()),
        needs(late, lib, Until::Ready, freed.clone()),
        needs(other, app, Until::Resolved, freed.clone()),
    ];
    main.define_all(units, Some(&tracker)).expect("defined");
    for (alias, of) in [(short, app), (long, late)] {
        let from = Link { dylib: main.id(), sees: Sees::All };
        main.define(Alias { symbol: alias, flags: E, from, aliasee: of }).expect("defined");
    }
    for round in 0..3 {
        let waiting = [app, late, other, short, long].map(|symbol| main.lookup([symbol]));
        let duty = take(&libs);
        // So `app` has its address, and then its code.
        duty.resolve_some([(lib, 7)]).expect("resolved");
        session.check().expect("invariants");
        assert!(waiting.iter().all(|lookup| !lookup.is_done()));
        duty.fail_for_now("no room", keep(&[(lib, E)], &libs));
        for lookup in waiting {
            let told = lookup.wait().expect_err("it needs `lib`");
            assert!(told.passes(), "round {round}: {told}");
        }
        session.check().expect("invariants");
        assert_eq!(count(&freed), 2 * (round + 1), "the code of `app` and `other`");
    }
    let waiting = [app, late, other, short, long].map(|symbol| main.lookup([symbol]));
    take(&libs).resolve([(lib, 7)]).expect("resolved").emit([]).expect("emitted");
    for lookup in waiting {
        assert_eq!(lookup.wait_one().expect("ready").address, Some(5));
    }
    session.check().expect("invariants");
    tracker.remove(Dependants::Tombstone).expect("removed");
    session.check().expect("invariants");
}

/// A permanent failure fails its dependants for good, even if a source could make them again.
#[test]
fn a_failure_for_ever_stays_with_what_needs_it() {
    let (session, main) = in_place();
    let [lib, app] = ["lib", "app"].map(|name| session.intern(name));
    let (kept, freed) = (Kept::default(), Arc::new(AtomicUsize::new(0)));
    main.define_all(vec![keep(&[(lib, E)], &kept), keep(&[(app, E)], &kept)], None).expect("defined");
    let lookup = main.lookup([app]);
    let duty = take(&kept);
    let need = Dependence::from(main.label(lib));
    let again = unit([(app, E)], |_: Responsibility<Words>| panic!("it has failed for good"));
    assert!(duty.complete(Owned(freed.clone()), [(app, 1)], [need], Some(again)).is_none());
    take(&kept).fail("wrong");
    assert!(!lookup.wait().expect_err("it needs `lib`").passes());
    assert!(main.lookup([app]).wait().is_err());
    assert_eq!(count(&freed), 1);
    session.check().expect("invariants");
}

/// The remains of a replaced version are freed with its last user, however that is removed.
#[test]
fn a_replaced_version_goes_with_its_last_user() {
    let policies = [Dependants::Deny, Dependants::Cascade, Dependants::Tombstone, Dependants::Keep];
    for policy in policies.map(Some).into_iter().chain([None]) {
        let (session, main) = in_place();
        let [f, g] = ["f", "g"].map(|name| session.intern(name));
        let mut flat = None;
        for _ in 0..3 {
            main.redefine(vec![made(&[(f, E, 1)])], None).expect("replaced");
            let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
            let user = unit([(g, E)], move |duty: Responsibility<Words>| {
                let needs = Label { dylib: duty.dylib().expect("there"), symbol: f };
                duty.resolve([(g, 2)]).expect("resolved").emit([needs.into()]).expect("emitted");
            });
            main.define_all(vec![user], Some(&tracker)).expect("defined");
            main.lookup([f, g]).wait().expect("ready");
            main.redefine(vec![made(&[(f, E, 3)])], None).expect("replaced");
            match policy {
                Some(policy) => tracker.remove(policy).expect("removed"),
                None => main.remove([g]).expect("removed"),
            }
            session.check().expect("invariants");
            assert_eq!(*flat.get_or_insert(session.counts()), session.counts(), "{policy:?}");
        }
        assert_eq!(flat.map(|counts| counts.1), Some(1), "{policy:?}");
    }
}

/// A symbol that failed because of another one is made again when that is replaced, or removed and defined.
#[test]
fn dependants_of_a_failed_root_work_again_when_it_is_redefined() {
    for removes in [false, true] {
        let (session, main) = in_place();
        let [root, near, far, asks, short, apart] =
            ["root", "near", "far", "asks", "short", "apart"].map(|name| session.intern(name));
        let (kept, made_again, freed) = (Kept::default(), Arc::new(AtomicUsize::new(0)), Arc::default());
        // Linked to what it needs; made separately on each request.
        fn links(
            symbol: Symbol,
            to: Symbol,
            times: Arc<AtomicUsize>,
            freed: Arc<AtomicUsize>,
        ) -> Unit<Words> {
            unit([(symbol, E)], move |duty: Responsibility<Words>| {
                times.fetch_add(1, Ordering::SeqCst);
                let again = links(symbol, to, Arc::clone(&times), Arc::clone(&freed));
                let dylib = duty.dylib().expect("in force");
                let need = Dependence::from(Label { dylib, symbol: to });
                assert!(duty.complete(Owned(freed), [(symbol, 5)], [need], Some(again)).is_none());
            })
        }
        // Waits for what it needs, and receives the failure.
        fn waits(symbol: Symbol, to: Symbol) -> Unit<Words> {
            unit([(symbol, E)], move |duty: Responsibility<Words>| {
                duty.lookup_answer(required([to]), Until::Ready, move |duty, answer| match answer {
                    Err(error) => duty.fail_until_changed(error, waits(symbol, to)),
                    Ok(found) => {
                        let resolved = duty.resolve([(symbol, 6)]).expect("resolved");
                        resolved.emit([found[0].into()]).expect("emitted");
                    }
                });
            })
        }
        let units = vec![
            keep(&[(root, E)], &kept),
            links(near, root, Arc::clone(&made_again), Arc::clone(&freed)),
            links(far, near, Arc::clone(&made_again), Arc::clone(&freed)),
            waits(asks, far),
            unit([(apart, E)], |duty: Responsibility<Words>| duty.fail("its own")),
            Alias { symbol: short, flags: E, from: main.all(), aliasee: asks }.into(),
        ];
        main.define_all(units, None).expect("defined");
        let all = [near, far, asks, short];
        let lookups = all.map(|symbol| main.lookup([symbol]));
        take(&kept).fail("wrong");
        for lookup in lookups {
            assert_eq!(failure(lookup.wait()).root().to_string(), "wrong");
        }
        let before = session.counts();
        for symbol in all.into_iter().chain([apart]) {
            assert!(main.lookup([symbol]).wait().is_err(), "the reason stands");
        }
        assert_eq!((count(&made_again), session.counts()), (2, before));
        session.check().expect("invariants");
        if removes {
            main.remove([root]).expect("removed");
            session.check().expect("invariants");
            main.define(made(&[(root, E, 1)])).expect("defined");
        } else {
            main.redefine(vec![made(&[(root, E, 1)])], None).expect("replaced");
        }
        assert_eq!(count(&made_again), 2, "there was no lookup");
        let addresses = all.map(|symbol| main.lookup([symbol]).wait_one().expect("ready").address);
        assert_eq!(addresses, [Some(5), Some(5), Some(6), Some(6)]);
        assert!(main.lookup([apart]).wait().is_err(), "it failed on its own");
        session.check().expect("invariants");
        main.clear(Dependants::Deny).expect("removed");
        assert_eq!((session.counts().1, count(&freed)), (0, 4));
    }
}
