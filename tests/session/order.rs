//! Definitions that come while others are under way: none is lost, and no caller keeps the earlier ones.
//!
//! | comes | while |
//! |---|---|
//! | another redefinition | one reads the present state of its callers |
//! | a redefinition | a program that was read before is not yet defined |
//! | the end of a tracker, a definition | a definition or removal is taking effect |
//! | a redefinition | a caller of the redefined function is linked |
//! | a finaliser | those of an open dylib are looked up |

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use brolga::observe::{CodeListener, CodeUnit};
use brolga::session::linking::{Request, SymbolPart};
use brolga::session::{Dependants, Dylib, Generator, Native, OnDrop, WeakDylib};
use brolga::{CallError, ExceptionKind, Session, SessionError, TypedFunc, Workers};

use super::define::{doubles, signature};
use super::{adds, calls, session};

type Int = TypedFunc<(i64,), i64>;
type Act = fn(&Dylib);

/// A session with a library, and a dylib that sees it.
fn two_dylibs(workers: Workers) -> (Session, Dylib, Dylib) {
    let session = session(workers);
    let library = session.create_dylib("library").unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    (session, library, main)
}

fn inlinable(dylib: &Dylib, name: &str, n: i64) -> brolga::session::Definitions {
    dylib.read("base.jlir", adds(name, n).as_bytes()).unwrap_or_else(|error| panic!("{error}")).inlinable()
}

fn lazy(dylib: &Dylib, source: &str) {
    let program = dylib.read("lazy.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program.lazy()).unwrap_or_else(|error| panic!("{error}"));
}

/// Does something, once, when a symbol is looked for that is not there.
struct Between {
    dylib: WeakDylib,
    is_armed: Arc<AtomicBool>,
    act: Act,
}

impl Generator<Native> for Between {
    fn generate(&self, request: Request<Native>) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            (self.act)(&self.dylib.upgrade().unwrap());
        }
        request.done();
    }
}

/// Calls `base` and `other`.
const TOP: &str = "
function top(x::Int64)::Int64
1 ─ %1 = invoke Main.base(x::Int64)::Int64
│   %2 = invoke Main.other(%1::Int64)::Int64
└──      return %2
end
";

/// May call `base`, so that a redefinition of that looks for it.
const GONE: &str = "
function gone(x::Any)::Any
1 ─ %1 = dynamic Main.base(x)::Any
└──      return %1
end
";

fn again(main: &Dylib, source: &str) {
    let program = main.read("again.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    main.redefine(program).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_redefinition_is_not_undone_by_one_that_began_before() {
    let changes: [(Act, i64); 2] =
        [(|main| again(main, &adds("top", 1000)), 1000), (|main| again(main, &adds("other", 100)), 110)];
    for workers in [|| Workers::Caller, || Workers::Pool(1)] {
        for (act, expected) in changes {
            let session = session(workers());
            let main = session.create_dylib("main").unwrap();
            lazy(&main, &(adds("base", 1) + &adds("other", 2) + TOP));
            let tracker = main.create_tracker(OnDrop::Keep).unwrap();
            let gone = main.read("gone.jlir", GONE.as_bytes()).unwrap();
            main.tracked_by(&tracker).define(gone.lazy()).unwrap();
            let _held = session.linking().symbol("gone(Any)");
            tracker.remove(Dependants::Keep).unwrap();
            let top: Int = main.func("top").unwrap();
            assert_eq!(top.call((0,)), Ok(3));
            let is_armed = Arc::new(AtomicBool::new(false));
            let between = Between { dylib: main.downgrade(), is_armed: is_armed.clone(), act };
            main.add_generator(between).unwrap();
            is_armed.store(true, Ordering::SeqCst);
            again(&main, &adds("base", 10));
            assert!(!is_armed.load(Ordering::SeqCst), "the other one came between");
            assert_eq!(top.call((0,)), Ok(expected));
            assert_eq!(session.linking().check(), Ok(()));
        }
    }
}

#[test]
fn a_program_inlines_the_definitions_in_force_when_it_is_defined() {
    for way in 0..3 {
        let (session, library, main) = two_dylibs(Workers::Caller);
        library.define(inlinable(&library, "base", 1).lazy()).unwrap();
        let read = || main.read("top.jlir", calls("top", "base").as_bytes()).unwrap();
        let (program, late) = (read(), read());
        library.redefine(inlinable(&library, "base", 10)).unwrap();
        main.define(match way {
            0 => program,
            1 => program.lazy(),
            _ => program.tiered(2),
        })
        .unwrap();
        let top: Int = main.func("top").unwrap();
        for _ in 0..4 {
            assert_eq!(top.call((0,)), Ok(11), "way {way}");
            session.optimize_hot();
        }
        // One that does not fit any more is told so when it is linked, and does not have what was there before.
        let float = "function base(x::Int64)::Float64\n1 ─      return 1.5\nend\n";
        library.redefine(library.read("base.jlir", float.as_bytes()).unwrap()).unwrap();
        main.redefine(late).unwrap();
        let error = main.function("top").and_then(|top| top.compile()).unwrap_err();
        assert!(error.causes().join("; ").contains("`base(Int64)` is (Int64)::Float64 by"), "{error}");
    }
}

#[test]
fn a_program_of_another_context_leaves_nothing_of_what_it_replaces() {
    let (_session, library, main) = two_dylibs(Workers::Caller);
    library.define(inlinable(&library, "base", 1).lazy()).unwrap();
    lazy(&main, &calls("top", "base"));
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((0,)), Ok(2));
    let program = brolga::Program::read("base.jlir", adds("base", 10).as_bytes()).unwrap();
    library.redefine(program).unwrap();
    lazy(&main, &calls("late", "base"));
    let late: Int = main.func("late").unwrap();
    assert_eq!((top.call((0,)), late.call((0,))), (Ok(11), Ok(11)));
}

/// Each thread redefines one of three functions, of which one has the others in it: what each defined last is there in the end.
#[test]
fn threads_that_redefine_what_is_in_one_another_lose_nothing() {
    const ROUNDS: i64 = 12;
    let (session, library, main) = two_dylibs(Workers::Pool(1));
    let top = |n: i64| {
        format!(
            "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.base(x::Int64)::Int64\n\
             │   %2 = invoke Main.other(%1::Int64)::Int64\n│   %3 = Base.add_int(%2, {n})::Int64\n\
             └──      return %3\nend\n"
        )
    };
    library.define(inlinable(&library, "base", 0).lazy()).unwrap();
    lazy(&main, &(adds("other", 0) + &top(0)));
    let called: Int = main.func("top").unwrap();
    // One that is being compiled at this moment is busy.
    let put = |dylib: &Dylib, name: &str, source: String| {
        while let Err(error) = {
            let read = dylib.read("again.jlir", source.as_bytes()).unwrap().inlinable();
            dylib.redefine(read)
        } {
            assert!(error.to_string().contains("being"), "{name}: {error}");
            thread::yield_now();
        }
    };
    for round in 1..=ROUNDS {
        thread::scope(|scope| {
            let (put, top, library, main, called) = (&put, &top, &library, &main, &called);
            scope.spawn(move || put(library, "base", adds("base", round)));
            scope.spawn(move || put(main, "other", adds("other", 100 * round)));
            scope.spawn(move || put(main, "top", top(10_000 * round)));
            scope.spawn(move || called.call((0,)).unwrap());
        });
        assert_eq!(called.call((0,)), Ok(10_101 * round));
    }
    assert_eq!(session.linking().check(), Ok(()));
}

#[test]
fn a_promise_in_the_place_of_a_function_concerns_those_who_have_taken_it_in() {
    for elsewhere in [false, true] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let library = if elsewhere { session.create_dylib("library").unwrap() } else { main.clone() };
        main.link_against(&library).unwrap();
        library.define(inlinable(&library, "base", 1).lazy()).unwrap();
        lazy(&main, &calls("top", "base"));
        let top: Int = main.func("top").unwrap();
        assert_eq!(top.call((3,)), Ok(5));
        let redefined = library.promise_again(&[signature("base")], |dylib| Ok(doubles(dylib, "base")?));
        assert_eq!(redefined.unwrap().kept, []);
        assert_eq!(top.call((3,)), Ok(7));
        let told: Vec<String> = session.take_invalidations().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["`top(Int64)` of `main` depends on `base(Int64)`, which was defined"]);
    }
}

/// Does something when it is dropped.
struct AtTheEnd<F: FnMut() + Send>(F);

impl<F: FnMut() + Send> Drop for AtTheEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Promises a function that is never looked up. Dropping the promise runs the given action.
fn promise(main: &Dylib, name: &str, act: impl FnMut() + Send + 'static) {
    let held = AtTheEnd(act);
    let made = main.promise(&[signature(name)], move |dylib| {
        let _held = &held;
        Ok(doubles(dylib, "nothing")?)
    });
    made.unwrap();
}

#[test]
fn a_redefinition_in_force_is_completed_when_its_tracker_is_removed() {
    let (session, library, main) = two_dylibs(Workers::Caller);
    library.define(inlinable(&library, "base", 1).lazy()).unwrap();
    lazy(&main, &calls("top", "base"));
    let top: Int = main.func("top").unwrap();
    assert_eq!((top.call((0,)), library.function("base").is_ok()), (Ok(2), true));
    // The tracker of the new definitions goes as soon as they are in force.
    let tracker = Arc::new(library.create_tracker(OnDrop::Keep).unwrap());
    let goes = tracker.clone();
    promise(&library, "apart", move || goes.remove(Dependants::Keep).unwrap());
    let source = adds("base", 10) + &adds("apart", 0);
    let again = library.read("base.jlir", source.as_bytes()).unwrap().inlinable();
    library.tracked_by(&tracker).redefine(again).unwrap();
    assert_eq!(top.call((0,)), Ok(11));
    let gone = library.function("base").is_err() && library.function("apart").is_err();
    assert!(gone, "they were removed, slots and bodies");
    assert_eq!(session.linking().check(), Ok(()));
}

#[test]
fn a_definition_right_after_a_removal_is_noted() {
    for clears in [false, true] {
        let (_session, library, main) = two_dylibs(Workers::Caller);
        library.define(inlinable(&library, "base", 1).lazy()).unwrap();
        let weak = Mutex::new(main.downgrade());
        promise(&main, "top", move || {
            let Ok(main) = weak.lock().unwrap().upgrade() else { return };
            lazy(&main, &calls("top", "base"));
        });
        if clears {
            main.clear(Dependants::Deny).unwrap();
        } else {
            main.remove(&["top"]).unwrap();
        }
        let top: Int = main.func("top").unwrap();
        assert_eq!(top.call((0,)), Ok(2));
        library.redefine(inlinable(&library, "base", 10)).unwrap();
        assert_eq!(top.call((0,)), Ok(11));
    }
}

#[test]
fn a_caller_that_no_longer_fits_throws_when_it_is_recompiled() {
    let (_session, library, main) = two_dylibs(Workers::Caller);
    super::define(&library, &adds("eager", 0));
    library.define(inlinable(&library, "base", 1).lazy()).unwrap();
    lazy(&main, &calls("top", "base").replace("Base.add_int(%1, 1)", "invoke Main.eager(%1::Int64)"));
    // `top` is being compiled, and waits for `eager`, when `base` is redefined; then it has another type.
    let (told, heard) = std::sync::mpsc::channel();
    let eager = library.promise_again(&[signature("eager")], move |dylib| {
        told.send(dylib.redefine(inlinable(dylib, "base", 10))?)?;
        let float = "function base(x::Int64)::Float64\n1 ─      return 1.5\nend\n";
        told.send(dylib.redefine(dylib.read("base.jlir", float.as_bytes())?)?)?;
        Ok(doubles(dylib, "eager")?)
    });
    eager.unwrap();
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((1,)), Ok(4), "the call began before");
    let result = top.call((1,));
    let names: Vec<[Vec<String>; 2]> = heard
        .try_iter()
        .map(|redefined| {
            [redefined.later, redefined.kept].map(|names| names.iter().map(ToString::to_string).collect())
        })
        .collect();
    let name = || vec!["`top(Int64)` of `main`".to_owned()];
    assert_eq!(names, [[name(), vec![]], [vec![], name()]]);
    match result {
        Err(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::CompileError => {
            assert!(thrown.message.contains("has another type now"), "{}", thrown.message);
        }
        other => panic!("it was not to be entered any more, and gave {other:?}"),
    }
    library.redefine(inlinable(&library, "base", 20)).unwrap();
    assert_eq!(top.call((1,)), Ok(42));
}

#[test]
fn a_redefinition_that_would_have_to_wait_is_refused_inside_a_scope() {
    let session = session(Workers::Seeded(1));
    let main = session.create_dylib("main").unwrap();
    lazy(&main, &(adds("base", 1) + &calls("top", "base")));
    let again = |n: i64| main.read("base.jlir", adds("base", n).as_bytes()).unwrap();
    // The slot of `top` does not exist, and making it would wait for the thread that runs the remaining work.
    let refused = session.runtime().enter(|_| main.redefine(again(10))).unwrap();
    assert!(matches!(refused, Err(SessionError::InScope)), "{refused:?}");
    let top: Int = main.func("top").unwrap();
    assert_eq!(top.call((0,)), Ok(2), "nothing has changed");
    session.runtime().enter(|_| main.redefine(again(20))).unwrap().unwrap();
    assert_eq!(top.call((0,)), Ok(21));
}

/// Redefines a function, once, when one of this name has been loaded: it is linked, and not yet in the tables.
struct WhenLoaded {
    name: &'static str,
    dylib: WeakDylib,
    is_armed: AtomicBool,
    act: Act,
}

impl CodeListener for WhenLoaded {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        if unit.function(self.name).is_some() && self.is_armed.swap(false, Ordering::SeqCst) {
            (self.act)(&self.dylib.upgrade().unwrap());
        }
    }

    fn freed(&self, _unit: &Arc<CodeUnit>) {}
}

#[test]
fn a_caller_finds_a_redefinition_made_while_it_is_linked() {
    for is_lazy in [false, true] {
        let (session, library, main) = two_dylibs(Workers::Caller);
        super::define(&library, &adds("base", 1));
        library.function("base").unwrap();
        let program = main.read("top.jlir", calls("top", "base").as_bytes()).unwrap();
        main.define(if is_lazy { program.lazy() } else { program }).unwrap();
        let (name, is_armed) = ("top(Int64)", AtomicBool::new(true));
        let act: Act = |library| again(library, &adds("base", 10));
        session.listen(Arc::new(WhenLoaded { name, dylib: library.downgrade(), is_armed, act }));
        let top: Int = main.func("top").unwrap_or_else(|error| panic!("{error}: {:?}", error.causes()));
        // The call that compiles a lazy function is in the world in which it was made.
        assert_eq!(top.call((0,)), Ok(if is_lazy { 2 } else { 11 }));
        assert_eq!(top.call((0,)), Ok(11));
        assert_eq!(session.linking().check(), Ok(()));
    }
}

/// Prints its name.
fn prints(name: &str) -> String {
    format!(
        "function {name}()::Nothing\n1 ─      invoke Base.print(\"{name} \"::String)::Nothing\n└──      return nothing\nend\n"
    )
}

#[test]
fn a_finaliser_that_comes_while_others_are_looked_up_runs() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("f.jlir", prints("begin").as_bytes()).unwrap().initializer("begin")).unwrap();
    main.define(main.read("f.jlir", prints("first").as_bytes()).unwrap().finalizer("first")).unwrap();
    main.open().unwrap();
    main.remove(&["first"]).unwrap();
    let is_armed = Arc::new(AtomicBool::new(true));
    let act: Act = |main| {
        for name in ["first", "second"] {
            main.define(main.read("f.jlir", prints(name).as_bytes()).unwrap().finalizer(name)).unwrap();
        }
        main.update().unwrap();
    };
    main.add_generator(Between { dylib: main.downgrade(), is_armed: is_armed.clone(), act }).unwrap();
    main.update().unwrap();
    assert!(!is_armed.load(Ordering::SeqCst), "the other one came between");
    assert!(main.close().unwrap().is_empty());
    let printed = String::from_utf8(session.runtime().sink().take_captured()).unwrap();
    assert_eq!(printed, "begin second first ");
}

/// Looks a function up when code is freed.
struct WhenFreed {
    dylib: WeakDylib,
    freed: AtomicUsize,
}

impl CodeListener for WhenFreed {
    fn loaded(&self, _unit: &Arc<CodeUnit>) {}

    fn freed(&self, unit: &Arc<CodeUnit>) {
        if unit.function("last()").is_some() {
            let dylib = self.dylib.upgrade().unwrap();
            assert!(dylib.function("known").is_ok() && dylib.session().stats().symbols > 0);
            self.freed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn a_listener_to_freed_finalisers_may_look_up_symbols() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    super::define(&main, &adds("known", 0));
    let program = || main.read("f.jlir", prints("last").as_bytes()).unwrap().finalizer("last");
    main.define(program()).unwrap();
    main.open().unwrap();
    let listener = Arc::new(WhenFreed { dylib: main.downgrade(), freed: AtomicUsize::new(0) });
    session.listen(listener.clone());
    main.redefine(program()).unwrap();
    assert_eq!(listener.freed.load(Ordering::SeqCst), 1, "what closes the dylib calls the new one");
    main.update().unwrap();
    assert_eq!(listener.freed.load(Ordering::SeqCst), 1);
}

/// Both would have to wait for other threads, which may wait for a collection, which would wait for this thread.
#[test]
fn nothing_is_opened_or_ended_inside_a_scope() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("f.jlir", prints("f").as_bytes()).unwrap().initializer("f")).unwrap();
    let refused = session.runtime().enter(|_| (main.open(), main.update(), session.end())).unwrap();
    assert!(matches!(refused.0, Err(SessionError::InScope)), "{refused:?}");
    assert!(matches!(refused.1, Err(SessionError::InScope)), "{refused:?}");
    assert!(matches!(refused.2[..], [SessionError::InScope]), "{refused:?}");
    main.open().unwrap();
    let printed = String::from_utf8(session.runtime().sink().take_captured()).unwrap();
    assert_eq!(printed, "f ");
    assert!(session.end().is_empty());
}

#[test]
fn a_function_is_removed_and_replaced_while_it_is_being_compiled() {
    for is_weak in [false, true] {
        let session = session(Workers::Seeded(1));
        let main = session.create_dylib("main").unwrap();
        lazy(&main, &adds("f", 1));
        // It is requested and has not begun.
        let body = main.linking().lookup([session.linking().intern("f(Int64)").part(SymbolPart::First)]);
        main.remove(&["f"]).unwrap();
        let program = main.read("f.jlir", adds("f", 2).as_bytes()).unwrap().lazy();
        main.define(if is_weak { program.weak() } else { program }).unwrap_or_else(|error| panic!("{error}"));
        drop(body);
        let f: Int = main.func("f").unwrap();
        assert_eq!(f.call((0,)), Ok(2));
        assert_eq!(session.linking().check(), Ok(()));
    }
}
