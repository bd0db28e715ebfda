//! Definitions, look-ups, what programs see of each other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use brolga::ir::Module;
use brolga::ir::Type;
use brolga::ir::build::{BuildError, Builder};
use brolga::ir::intrinsic::Intrinsic;
use brolga::session::linking;
use brolga::session::{Definitions, Dependants, Dylib, Native, OnDrop, Priority, Signature};
use brolga::{SessionError, TypedFunc, Workers};

use super::{adds, calls, define, dylib, session};

const PARITY: &str = "
function is_even(n::Int64)::Bool
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─      return true
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.is_odd(%4::Int64)::Bool
└──      return %5
end
function is_odd(n::Int64)::Bool
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─      return false
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.is_even(%4::Int64)::Bool
└──      return %5
end
";

#[test]
fn only_what_is_needed_is_compiled() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &(adds("a", 1) + &adds("b", 2) + PARITY));
    assert_eq!(session.stats().compiled_functions, 0);
    assert_eq!(main.func::<(i64,), i64>("a").unwrap().call((1,)), Ok(2));
    assert_eq!(session.stats().compiled_functions, 1);
    assert_eq!(main.func::<(i64,), bool>("is_odd").unwrap().call((1001,)), Ok(true));
    assert_eq!(session.stats().compiled_functions, 3, "functions in a cycle are one unit");
    main.func::<(i64,), bool>("is_even(Int64)").unwrap();
    assert_eq!(session.stats().compiled_functions, 3);
}

#[test]
fn programs_call_functions_of_programs_that_they_see() {
    let session = session(Workers::Pool(1));
    let library = dylib(&session, "library", &adds("base", 40));
    let main = session.create_dylib("main").unwrap();
    let unseen = main.read("unseen.jlir", calls("top", "base").as_bytes()).map(drop).unwrap_err();
    assert!(unseen.to_string().contains("call-unknown"), "{unseen}");
    main.link_against(&library).unwrap();
    define(&main, &calls("top", "base"));
    assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((1,)), Ok(42));
    // A bare name is found in what the dylib sees.
    assert_eq!(main.func::<(i64,), i64>("base").unwrap().call((2,)), Ok(42));
    assert!(library.func::<(i64,), i64>("top").is_err());
    assert!(session.linking().check().is_ok());
}

#[test]
fn a_body_that_may_be_inlined_leaves_no_dependence() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    library.define(library.read("l.jlir", adds("base", 40).as_bytes()).unwrap().inlinable()).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    define(&main, &calls("top", "base"));
    assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((1,)), Ok(42));
    assert_eq!(session.stats().compiled_functions, 1, "`base` was never asked for");
}

#[test]
fn a_body_means_what_it_meant_where_it_comes_from() {
    let session = session(Workers::Caller);
    let library = session.create_dylib("library").unwrap();
    let source = adds("detail", 1) + &calls("helper", "detail");
    library.define(library.read("l.jlir", source.as_bytes()).unwrap().inlinable()).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.link_against(&library).unwrap();
    // It has a `detail` of its own, which `helper` does not mean.
    define(&main, &(adds("detail", 100) + &calls("top", "helper") + &calls("own", "detail")));
    assert_eq!(main.func::<(i64,), i64>("top").unwrap().call((0,)), Ok(3));
    assert_eq!(main.func::<(i64,), i64>("own").unwrap().call((0,)), Ok(101));
}

#[test]
fn a_promise_is_kept_when_somebody_looks() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let int = Type::INT64;
    let square = Signature::new("square", &[int], int);
    let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = made.clone();
    main.promise(&[square], move |dylib| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let cx = dylib.session().context().clone();
        let mut module = Module::new(cx.clone());
        let mut b = Builder::high(&cx, "square", &[("x", int)], int);
        let x = b.param(0)?;
        let product = b.intrinsic(Intrinsic::MulInt, &[x, x])?;
        b.ret(&[product])?;
        module.add_func(b.finish()?).map_err(|error| format!("{error:?}"))?;
        Ok(module)
    })
    .unwrap();
    define(&main, &calls("next", "square"));
    assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(main.func::<(i64,), i64>("next").unwrap().call((6,)), Ok(37));
    assert_eq!(main.func::<(i64,), i64>("square").unwrap().call((6,)), Ok(36));
    assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// A program that a promise is kept with is read by the dylib, and sees what the dylib sees. One that does not keep it is an error of the call, with the reason.
#[test]
fn a_promise_is_kept_with_a_program_that_is_read() {
    for workers in [Workers::Caller, Workers::Pool(1)] {
        let session = session(workers);
        let (base, main) = (dylib(&session, "base", &adds("a", 1)), session.create_dylib("main").unwrap());
        main.link_against(&base).unwrap();
        let of = |name: &str| [Signature::new(name, &[Type::INT64], Type::INT64)];
        main.promise_program(&of("next"), |dylib| dylib.read("next.jlir", calls("next", "a").as_bytes()))
            .unwrap();
        main.promise_program(&of("other"), |dylib| dylib.read("next.jlir", calls("wrong", "a").as_bytes()))
            .unwrap();
        main.promise_program(&of("unread"), |dylib| dylib.read("unread.jlir", b"function")).unwrap();
        define(&main, &calls("top", "next"));
        let value = |name: &str| main.func::<(i64,), i64>(name).map(|found| found.call((6,)));
        assert_eq!(value("top").unwrap(), Ok(9));
        for (name, reason) in [("other", "`other(Int64)::Int64` was promised"), ("unread", "unread.jlir")] {
            let error = match value(name) {
                Ok(called) => called.unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(reason), "{error}");
        }
    }
}

/// C symbols that are made when they are needed: those that called them before they were there find them.
#[test]
fn c_symbols_are_promised() {
    const CALLS: &str = "function calls()::Int64\n1 ─ %1 = $(Expr(:foreigncall, :(:brolga_n), Int64, svec(), 0, :(:ccall)))::Int64\n└──      return %1\nend\n";
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let made = Arc::new(AtomicUsize::new(0));
    let unit = |session: &brolga::Session| {
        let (held, made) = (session.linking().symbol("brolga_n"), made.clone());
        Box::new(Three { held, made })
    };
    main.define(main.read_late("calls.jlir", CALLS.as_bytes()).unwrap().lazy()).unwrap();
    let calls = main.func::<(), i64>("calls").unwrap();
    assert!(calls.call(()).is_err());
    main.promise_c_symbols(unit(&session)).unwrap();
    assert!(main.promise_c_symbols(unit(&session)).is_err(), "it is there");
    assert_eq!((calls.call(()), made.load(Ordering::Relaxed)), (Ok(3), 1));
    let closed = brolga::Session::new(brolga::Options::new(), Workers::Caller).unwrap();
    let refused = closed.create_dylib("main").unwrap().promise_c_symbols(unit(&closed));
    assert!(refused.unwrap_err().to_string().contains("Dylib::promise_c_symbols"));
}

extern "C" fn three() -> i64 {
    3
}

/// Gives its symbol the address of `three`.
struct Three {
    held: linking::SymbolRef,
    made: Arc<AtomicUsize>,
}

impl linking::MaterializationUnit<Native> for Three {
    fn symbols(&self) -> Vec<(linking::Symbol, linking::SymbolFlags)> {
        vec![(self.held.symbol(), linking::SymbolFlags::EXPORTED)]
    }

    fn materialize(self: Box<Self>, responsibility: linking::Responsibility<Native>) {
        self.made.fetch_add(1, Ordering::Relaxed);
        let address = (three as *const ()).expose_provenance();
        responsibility.resolve([(self.held.symbol(), address)]).unwrap().emit([]).unwrap();
    }
}

/// Integers to integers, which are twice as large.
pub(super) fn doubles(dylib: &Dylib, name: &str) -> Result<Module, BuildError> {
    let cx = dylib.session().context().clone();
    let mut module = Module::new(cx.clone());
    let mut b = Builder::high(&cx, name, &[("x", Type::INT64)], Type::INT64);
    let x = b.param(0)?;
    let sum = b.intrinsic(Intrinsic::AddInt, &[x, x])?;
    b.ret(&[sum])?;
    // The only function of a module is no duplicate.
    let _ = module.add_func(b.finish()?);
    Ok(module)
}

pub(super) fn signature(name: &str) -> Signature {
    Signature::new(name, &[Type::INT64], Type::INT64)
}

#[test]
fn an_unused_promise_does_not_keep_its_session() {
    struct Flag(Arc<AtomicUsize>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    let (flag, weak) = (Flag(dropped.clone()), main.downgrade());
    main.promise(&[signature("f")], move |dylib| {
        let _flag = &flag;
        Ok(doubles(dylib, "f")?)
    })
    .unwrap();
    assert!(weak.upgrade().is_ok_and(|dylib| dylib.name() == "main"));
    drop((main, session));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let ended = weak.upgrade().map(|dylib| dylib.name().to_owned());
    assert!(matches!(ended, Err(SessionError::Link(linking::Error::SessionEnded))), "{ended:?}");
}

/// With one worker, and with none: the promise of `f` calls `g` and `h`, that of `g` calls `h`.
#[test]
fn a_promise_may_call_promised_functions() {
    for workers in
        [Workers::Pool(1), Workers::Pool(2), Workers::Caller].into_iter().chain((0..20).map(Workers::Seeded))
    {
        let by_seed = matches!(workers, Workers::Seeded(_));
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        for (name, calls) in [("f", &["g", "h"][..]), ("g", &["h"]), ("h", &[])] {
            let promised = main.promise(&[signature(name)], move |dylib| {
                for callee in calls {
                    assert_eq!(dylib.func::<(i64,), i64>(callee)?.call((4,))?, 8);
                }
                Ok(doubles(dylib, name)?)
            });
            promised.unwrap();
        }
        let f = main.func::<(i64,), i64>("f").unwrap();
        // Tasks in a seed's order have one thread.
        let threads = if by_seed { 1 } else { 3 };
        thread::scope(|scope| {
            let calls: Vec<_> = (0..threads).map(|_| scope.spawn(|| f.call((5,)))).collect();
            for call in calls {
                assert_eq!(call.join().unwrap(), Ok(10));
            }
        });
        assert_eq!(session.stats().compiled_functions, 3);
    }
}

/// The maker of a function calls it, or another whose maker calls it: both are told, with one worker too.
#[test]
fn a_promise_that_needs_itself_is_an_error_and_what_does_without_is_there() {
    for workers in
        [Workers::Pool(1), Workers::Pool(2), Workers::Caller, Workers::Seeded(1), Workers::Seeded(2)]
    {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        for (name, calls) in [("own", "own"), ("f", "g"), ("g", "f")] {
            let told = told.clone();
            main.promise(&[signature(name)], move |dylib| {
                let callee = dylib.func::<(i64,), i64>(calls)?;
                if let Err(error) = callee.call((1,)) {
                    told.lock().unwrap().push(error.to_string());
                }
                Ok(doubles(dylib, name)?)
            })
            .unwrap();
        }
        assert_eq!(main.func::<(i64,), i64>("own").unwrap().call((1,)), Ok(2));
        let text =
            "CompileError: cannot compile `own(Int64)`: needed while they are made: `own(Int64)` of `main`";
        assert_eq!(told.lock().unwrap().drain(..).collect::<Vec<_>>(), [text]);
        for name in ["f", "g"] {
            let function = main.func::<(i64,), i64>(name).unwrap();
            assert_eq!(function.call((3,)), Ok(6), "who was told of the cycle did without");
        }
        assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    }
}

#[test]
fn look_ups_say_what_does_not_fit() {
    let session = session(Workers::Caller);
    let float = "function a(x::Float64)::Float64\n1 ─      return x\nend\n";
    let main = dylib(&session, "main", &(adds("a", 1) + float));
    match main.function("a") {
        Err(SessionError::Ambiguous { methods, .. }) => assert_eq!(methods, ["a(Float64)", "a(Int64)"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(main.func::<(f64,), f64>("a(Float64)").unwrap().call((1.5,)), Ok(1.5));
    let wrong = main.func::<(i32,), i64>("a(Int64)").unwrap_err().to_string();
    assert_eq!(wrong, "argument 1 of `a(Int64)` is `Int64`, which `i32` does not represent");
    main.remove(&["a(Float64)"]).unwrap();
    // Only one method is left.
    assert_eq!(main.func::<(i64,), i64>("a").unwrap().call((1,)), Ok(2));
    let twice = main.read("twice.jlir", adds("a", 3).as_bytes()).unwrap();
    let twice = main.define(twice).unwrap_err().to_string();
    assert_eq!(twice, "defined twice: `a(Int64)` of `main`");
}

#[test]
fn weak_definitions_give_way() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("w.jlir", adds("a", 1).as_bytes()).unwrap().weak()).unwrap();
    define(&main, &adds("a", 2));
    assert_eq!(main.func::<(i64,), i64>("a").unwrap().call((0,)), Ok(2));
}

/// A definition that has given way affects neither callers that have inlined the one in force nor later callers.
#[test]
fn a_definition_that_gives_way_has_no_effect() {
    for (lazy_there, lazy_weak) in [(false, false), (true, true), (true, false), (false, true)] {
        let session = session(Workers::Caller);
        let library = session.create_dylib("library").unwrap();
        let main = session.create_dylib("main").unwrap();
        main.link_against(&library).unwrap();
        let read = |dylib: &Dylib, source: &str, lazy: bool| {
            let program = dylib.read("p.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            if lazy { program.lazy() } else { program }
        };
        library.define(read(&library, &adds("f", 1), lazy_there).inlinable()).unwrap();
        main.define(read(&main, &calls("early", "f"), true)).unwrap();
        assert_eq!(main.func::<(i64,), i64>("early").unwrap().call((0,)), Ok(2));
        let weak = adds("f", 10) + &calls("beside", "f") + &adds("alone", 5);
        library.define(read(&library, &weak, lazy_weak).weak().inlinable()).unwrap();
        assert_eq!(session.take_invalidations(), [], "{lazy_there} {lazy_weak}");
        main.define(read(&main, &calls("late", "f"), true)).unwrap();
        main.define(read(&main, &(calls("eager", "f") + &calls("other", "beside")), false)).unwrap();
        let expected =
            [("early", 2), ("late", 2), ("eager", 2), ("f", 1), ("beside", 2), ("other", 3), ("alone", 5)];
        for (name, value) in expected {
            let function = main.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(function.call((0,)), Ok(value), "{name} {lazy_there} {lazy_weak}");
        }
        assert_eq!(session.linking().check(), Ok(()));
    }
}

#[test]
fn c_symbols_come_from_the_nearest_place() {
    extern "C" fn minus(x: i64) -> i64 {
        -x
    }
    let source = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    let session = session(Workers::Caller);
    let process = session.create_dylib("process").unwrap();
    process.add_process_symbols(|name| name == "labs").unwrap();
    let main = dylib(&session, "main", source);
    main.link_against(&process).unwrap();
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((-5,)), Ok(5));
    // What the process has is seen where a dylib in the link order has it, and nowhere else.
    for (at, name) in [("beside", "labs"), ("linked", "llabs")] {
        let text = source.replace("labs", name);
        let beside = session.create_dylib(at).unwrap();
        if at == "linked" {
            beside.link_against(&process).unwrap();
        }
        for is_late in [false, true] {
            let read = if is_late { Dylib::read_late } else { Dylib::read };
            let read = read(&beside, "f.jlir", text.replace("f(", &format!("f{is_late}(")).as_bytes());
            beside.define(read.unwrap()).unwrap();
            let called = beside.func::<(i64,), i64>(&format!("f{is_late}"));
            let refused = match called {
                Ok(function) => function.call((-5,)).unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(refused.contains(&format!("the program sees no C symbol `{name}`")), "{refused}");
        }
    }
    let other = dylib(&session, "other", source);
    other.define_c_symbol("labs", minus as *const ()).unwrap();
    assert_eq!(other.func::<(i64,), i64>("f").unwrap().call((7,)), Ok(-7));
    // The uses of one dylib by another are known.
    let used = process.clear(Dependants::Deny).unwrap_err().to_string();
    assert_eq!(used, "`labs` of `process` used by `f(Int64)` of `main`");
}

/// The symbols of a library are found where a dylib in the link order has it. They go with its tracker.
#[cfg(target_os = "linux")]
#[test]
fn libraries_are_those_of_the_dylibs_that_a_program_sees() {
    let source = |name: &str| {
        format!(
            "function {name}(x::Int64)::Int64\n\
             1 ─ %1 = $(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
             └──      return %1\nend\n"
        )
    };
    let session = session(Workers::Caller);
    let [system, main] = ["system", "main"].map(|name| session.create_dylib(name).unwrap());
    let call = |name: &str| {
        main.define(main.read("f.jlir", source(name).as_bytes()).unwrap()).unwrap();
        let called = main.func::<(i64,), i64>(name).map(|function| function.call((-5,)).unwrap());
        called.map_err(|error| error.to_string())
    };
    let tracker = system.create_tracker(OnDrop::Keep).unwrap();
    system.tracked_by(&tracker).add_library("libc.so.6").unwrap();
    assert!(call("beside").is_err());
    main.link_against(&system).unwrap();
    assert_eq!(call("linked"), Ok(5));
    tracker.remove(Dependants::Keep).unwrap();
    assert!(call("removed").is_err());
}

/// An archive that the C compiler made: `area` needs `scale` and `even` of other members, and `isatty` of the C library; `even`
/// and `odd` need each other.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn archive() -> Vec<u8> {
    use std::process::Command;
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("session-archive-{process}-{number}"));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).current_dir(&folder).status();
        assert!(done.is_ok_and(|status| status.success()), "{program} {args:?}");
    };
    let scale = "static long factor = 3; long calls; long scale(long x) { calls++; return x * factor; }";
    let area = "long scale(long); int isatty(int); long even(long); static const long table[] = {10, 20, 30};\n\
                long area(long x) { return scale(x) + table[x & 1] + isatty(-1) + 0 * even(x); }\n";
    let even = "long odd(long); long even(long x) { return x ? odd(x - 1) : 1; }";
    let odd = "long even(long); long odd(long x) { return x ? even(x - 1) : 0; }";
    let unused = "#error not compiled";
    let labelled = |name: &str| {
        format!(
            "__asm__(\".pushsection .data; .balign 16; .globl {name}_start, {name}_end; {name}_start: .zero 64; {name}_end: .popsection\");\n\
             long {name}(long x) {{ return x + 1; }}"
        )
    };
    let (first, second) = (labelled("first"), labelled("second"));
    let sources = [("scale", scale), ("area", area), ("even", even), ("odd", odd), ("unused", unused)];
    for (name, source) in sources.into_iter().chain([("first", &*first), ("second", &*second)]) {
        std::fs::write(folder.join(format!("{name}.c")), source).unwrap();
    }
    for name in ["scale", "area", "even", "odd", "first", "second"] {
        run("cc", &["-O1", "-fPIC", "-c", &format!("{name}.c"), "-o", &format!("{name}.o")]);
    }
    run(
        "ar",
        &["rcs", "shapes.a", "scale.o", "area.o", "even.o", "odd.o", "unused.c", "first.o", "second.o"],
    );
    let bytes = std::fs::read(folder.join("shapes.a")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    bytes
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn members_of_an_archive_are_linked_when_code_needs_them() {
    let source = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    let session = session(Workers::Pool(1));
    let shapes = session.create_dylib("shapes").unwrap();
    shapes.add_process_symbols(|name| name == "isatty").unwrap();
    shapes.add_archive("shapes.a", &archive()).unwrap();
    let main = dylib(&session, "main", source);
    main.link_against(&shapes).unwrap();
    assert_eq!(session.stats().units, 2);
    let f = main.func::<(i64,), i64>("f").unwrap();
    assert_eq!((f.call((7,)), f.call((2,))), (Ok(41), Ok(16)));
    assert_eq!(session.stats().units, 6, "two members, two that need each other, `isatty`, `f` and its body");
    // A look-up at run time brings nothing in; what code needed is there.
    assert!(shapes.linking().address("calls").is_ok());
    let used = shapes.clear(Dependants::Deny).unwrap_err().to_string();
    assert!(used.contains("used by `f(Int64)` of `main`"), "{used}");
    let broken = session.create_dylib("broken").unwrap();
    assert!(matches!(broken.add_archive("no.a", b"nonsense"), Err(SessionError::Archive(_))));
}

/// Code keeps the members that it calls, and they those that they call, whatever becomes of their dylib.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn members_of_an_archive_stay_as_long_as_code_that_calls_them() {
    let source = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    let archive = archive();
    for dependants in [Some(Dependants::Tombstone), Some(Dependants::Cascade), None] {
        let session = session(Workers::Caller);
        let shapes = session.create_dylib("shapes").unwrap();
        shapes.add_process_symbols(|_| true).unwrap();
        shapes.add_archive("shapes.a", &archive).unwrap();
        let main = dylib(&session, "main", source);
        main.link_against(&shapes).unwrap();
        let f = main.func::<(i64,), i64>("f").unwrap();
        match dependants {
            Some(dependants) => shapes.clear(dependants).unwrap(),
            None => assert!(session.end().is_empty()),
        }
        assert_eq!((f.call((7,)), f.call((2,))), (Ok(41), Ok(16)), "{dependants:?}");
    }
}

/// An address says whose it is, also that of a label at the end of a section.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_label_at_the_end_lies_in_its_member() {
    let call = |name: &str| {
        format!(
            "function call_{name}(x::Int64)::Int64\n\
             1 ─ %1 = $(Expr(:foreigncall, :(:{name}), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
             └──      return %1\nend\n"
        )
    };
    let session = session(Workers::Caller);
    let shapes = session.create_dylib("shapes").unwrap();
    shapes.add_archive("shapes.a", &archive()).unwrap();
    let main = dylib(&session, "main", &(call("first") + &call("second")));
    main.link_against(&shapes).unwrap();
    for name in ["call_first", "call_second"] {
        assert_eq!(main.func::<(i64,), i64>(name).unwrap().call((1,)), Ok(2));
    }
    let labels = ["first_start", "first_end", "second_start", "second_end"];
    let all: BTreeSet<usize> = labels.iter().map(|label| shapes.linking().address(label).unwrap()).collect();
    assert_eq!(all.len(), labels.len());
}

/// A function of a program whose types C has is found by its name. The code in C depends on it, by any name.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn members_of_an_archive_call_functions_of_programs() {
    let source = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    for is_lazy in [false, true] {
        for is_named in [false, true] {
            let session = session(Workers::Caller);
            let [home, shapes] = ["home", "shapes"].map(|name| session.create_dylib(name).unwrap());
            shapes.link_against(&home).unwrap();
            let tracker = home.create_tracker(OnDrop::Keep).unwrap();
            let tracked = home.tracked_by(&tracker);
            let name = if is_named { "own" } else { "isatty" };
            let returns = |n: i64| {
                format!(
                    "function {name}(x::Int32)::Int32\n1 ─ %1 = Base.trunc_int(Int32, {n})::Int32\n└──      return %1\nend\n"
                )
            };
            let read = |n: i64| {
                let read = home.read("own.jlir", returns(n).as_bytes()).unwrap();
                if is_lazy { read.lazy() } else { read }
            };
            tracked.define(read(1000)).unwrap();
            if is_named {
                let address = home.function("own").unwrap().c_address().unwrap();
                shapes.define_c_symbol("isatty", address).unwrap();
            }
            shapes.add_archive("shapes.a", &archive()).unwrap();
            let main = dylib(&session, "main", source);
            main.link_against(&shapes).unwrap();
            let f = main.func::<(i64,), i64>("f").unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(f.call((7,)), Ok(1041), "{is_lazy} {is_named}");
            tracked.redefine(read(2000)).unwrap();
            assert_eq!(f.call((7,)), Ok(2041), "{is_lazy} {is_named}");
            let user = if is_named { "`isatty` of `shapes`" } else { "`area` of `shapes`" };
            let used = tracker.remove(Dependants::Deny).unwrap_err().to_string();
            assert!(used.contains(user), "{used}");
            tracker.remove(Dependants::Tombstone).unwrap();
            let thrown = f.call((7,)).unwrap_err().to_string();
            assert!(thrown.contains("has been removed"), "{thrown}");
        }
    }
}

/// A C symbol is nearer than a function of its name; a function that C cannot call is not found.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn c_symbols_are_nearer_than_functions_of_their_names() {
    let source = "function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    let own = [
        "function isatty(x::Int32)::Int32\n1 ─      return x\nend\n",
        "function isatty(x::String)::Int32\n1 ─ %1 = Base.trunc_int(Int32, 1000)::Int32\n└──      return %1\nend\n",
    ];
    for own in own {
        let session = session(Workers::Caller);
        let shapes = dylib(&session, "shapes", own);
        shapes.add_process_symbols(|_| true).unwrap();
        shapes.add_archive("shapes.a", &archive()).unwrap();
        let main = dylib(&session, "main", source);
        main.link_against(&shapes).unwrap();
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((7,)), Ok(41));
    }
}

/// `isatty` calls `area` as a C function, whose member calls `isatty`: they are linked in a cycle.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn members_of_an_archive_and_functions_call_each_other_by_name() {
    let source = "function isatty(x::Int32)::Int32\n\
        1 ─ %1 = Base.sext_int(Int64, x)::Int64\n\
        │   %2 = Base.slt_int(%1, 0)::Bool\n\
        └──      goto #3 if not %2\n\
        2 ─ %4 = Base.trunc_int(Int32, 5)::Int32\n\
        └──      return %4\n\
        3 ─ %6 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(%1)))::Int64\n\
        │   %7 = Base.trunc_int(Int32, %6)::Int32\n\
        └──      return %7\nend\n";
    for workers in [Workers::Caller, Workers::Pool(2), Workers::Seeded(1), Workers::Seeded(2)] {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        let tracker = main.create_tracker(OnDrop::Keep).unwrap();
        let program = main.read("main.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        main.tracked_by(&tracker).define(program).unwrap();
        main.add_archive("shapes.a", &archive()).unwrap();
        let isatty = main.func::<(i32,), i32>("isatty").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(isatty.call((7,)), Ok(46));
        // The archive's code uses the function.
        let used = tracker.remove(Dependants::Deny).unwrap_err().to_string();
        assert!(used.contains("used by `area`"), "{used}");
        assert_eq!(isatty.call((7,)), Ok(46));
        session.end();
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_function_that_c_cannot_call_is_named_when_c_needs_it() {
    let source = "function isatty(x::String)::Int32\n1 ─ %1 = Base.trunc_int(Int32, 5)::Int32\n└──      return %1\nend\n\
        function f(x::Int64)::Int64\n\
        1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
        └──      return %1\nend\n";
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", source);
    main.add_archive("shapes.a", &archive()).unwrap();
    let error = main.func::<(i64,), i64>("f").unwrap_err();
    let error = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let error: Vec<String> = error.map(ToString::to_string).collect();
    assert!(
        error.iter().any(|error| error.contains("isatty") && error.contains("C cannot call")),
        "{error:?}"
    );
}

#[test]
fn background_work_is_done_without_anybody_who_waits() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("w.jlir", adds("a", 1).as_bytes()).unwrap().start(Priority::Idle)).unwrap();
    session.finish_background();
    assert_eq!(session.stats().compiled_functions, 1);
    assert!(main.request("a").is_done());
}

/// A function of a module that adds a number.
fn adds_in(module: &str, n: i64) -> String {
    adds(&format!("{module}.g"), n)
}

#[test]
fn programs_see_functions_of_others_under_their_modules() {
    for kind in [Definitions::lazy, |program: Definitions| program, Definitions::inlinable] {
        let session = session(Workers::Pool(1));
        let main = session.create_dylib("main").unwrap();
        let put = |source: &str| {
            let program = main.read("p.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            main.define(kind(program)).unwrap_or_else(|error| panic!("{error}"));
        };
        put(&adds_in("A", 10));
        put(&adds_in("B", 20));
        put(&adds("max", 100));
        put("
function all(x::Int64)::Int64
1 ─ %1 = invoke A.g(x::Int64)::Int64
│   %2 = invoke Main.B.g(%1::Int64)::Int64
│   %3 = invoke Main.max(%2::Int64)::Int64
│   %4 = dynamic A.g(%3)::Any
│   %5 = dynamic B.g(%4)::Any
│   %6 = dynamic Base.max(%5, 7)::Any
│   %7 = dynamic Main.max(%6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
└──      return %8
end
");
        let all: TypedFunc<(i64,), i64> = main.func("all").unwrap();
        assert_eq!(all.call((1,)), Ok(1 + 10 + 20 + 100 + 10 + 20 + 100));
        for (name, result) in [("A.g", 11), ("A.g(Int64)", 11), ("B.g", 21), ("max", 101)] {
            assert_eq!(main.func::<(i64,), i64>(name).unwrap().call((1,)), Ok(result), "{name}");
        }
        assert!(main.function("g").is_err());
        // Another body of one says nothing of the other.
        let again = main.read("p.jlir", adds_in("B", 1000).as_bytes()).unwrap();
        main.redefine(kind(again)).unwrap();
        assert_eq!(main.func::<(i64,), i64>("A.g").unwrap().call((1,)), Ok(11));
        assert_eq!(main.func::<(i64,), i64>("B.g").unwrap().call((1,)), Ok(1001));
    }
}

#[test]
fn an_undefined_function_of_a_module_is_reported_by_its_name() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", &adds_in("A", 10));
    let source = "
function f(x::Int64)::Int64
1 ─ %1 = invoke C.g(x::Int64)::Int64
└──      return %1
end
";
    let error = main.read("p.jlir", source.as_bytes()).err().expect("there is no `C.g`").to_string();
    assert!(error.contains("`C.g`"), "{error}");
}

#[test]
fn promises_and_functions_of_the_host_have_modules() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    for (name, n) in [("A.host", 10), ("B.host", 20)] {
        main.define_host(&signature(name), move |scope, args| {
            let x: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
            scope.int(x + n).map_err(|error| scope.throw_error(&error.to_string()))
        })
        .unwrap();
    }
    main.promise(&[signature("A.twice")], |dylib| Ok(doubles(dylib, "A.twice")?)).unwrap();
    define(&main, &adds_in("A.twice", 7));
    let source = "
function f(x::Int64)::Int64
1 ─ %1 = invoke A.host(x::Int64)::Int64
│   %2 = invoke B.host(%1::Int64)::Int64
│   %3 = invoke A.twice(%2::Int64)::Int64
│   %4 = invoke A.twice.g(%3::Int64)::Int64
└──      return %4
end
";
    define(&main, source);
    assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((1,)), Ok(69));
    assert_eq!(main.func::<(i64,), i64>("A.twice(Int64)").unwrap().call((1,)), Ok(2));
}
