//! The scenarios that run while the system refuses requests.

use std::path::PathBuf;

use brolga::observe::{JitDump, PerfMap};
use brolga::options::{LinkerKind, Mapping};
use brolga::session::Dylib;
use brolga::{Engine, OptLevel, Options, Output, Program, Session, SessionError, Unit, Workers, heap, image};

use super::{Run, sweep};

const OBJECTS: &str = "\
mutable struct Node
    next::Any
    val::Int64
end
function list(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => nothing, #3 => %6)::Any
│   %3 = φ (#1 => 0, #3 => %7)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = %new(Main.Node, %2, %3)::Main.Node
│   %7 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %3
end
function room(n::Int64)::Int64
1 ─ %1 = Core.memorynew(Memory{Int64}, n)::Memory{Int64}
│   %2 = Base.getfield(%1, :length)::Int64
└──      return %2
end
function f(x::Int64)::Int64
1 ─ %1 = %new(Main.Node, nothing, x)::Main.Node
│   %2 = dynamic Main.g(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
function g(x::Main.Node)::Int64
1 ─ %1 = Base.getfield(x, :val)::Int64
│   %2 = Base.add_int(%1, 1)::Int64
└──      return %2
end
";

fn options() -> Options {
    crate::doors::open(Options::new()).opt_level(OptLevel::O1).output(Output::Capture)
}

fn program() -> Program {
    Program::read("objects", OBJECTS.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn adds(name: &str, n: i64) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, {n})::Int64\n└──      return %1\nend\n"
    )
}

fn calls(name: &str, callee: &str) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = invoke Main.{callee}(x::Int64)::Int64\n\
         │   %2 = Base.add_int(%1, 1)::Int64\n└──      return %2\nend\n"
    )
}

/// A value, if nothing failed.
fn call(unit: &Unit, name: &str, x: i64) -> i64 {
    let func = unit.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    func.call((x,)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A value or an error of the system.
fn try_call(run: &Run, unit: &Unit, name: &str, x: i64) -> Option<i64> {
    let func = run.take(unit.func::<(i64,), i64>(name).map_err(brolga::Error::from))?;
    run.take(func.call((x,)))
}

/// Compiles a program with objects and calls it, with a value or an error of the system.
fn compile_and_call(run: &Run, engine: &Engine, program: &Program) -> Option<i64> {
    let unit = run.take(engine.compile(program))?;
    let value = try_call(run, &unit, "f", 41)?;
    assert_eq!(value, 42);
    Some(value)
}

#[test]
fn engines() {
    for mapping in [Mapping::Dual, Mapping::Private] {
        for linker in [LinkerKind::Loader, LinkerKind::Cranelift] {
            let program = program();
            let options = || options().code_mapping(mapping).linker(linker);
            sweep(&format!("engine, {mapping:?}, {linker:?}"), |run| {
                let kept = Engine::new(options()).unwrap_or_else(|error| panic!("{error}"));
                let unit = kept.compile(&program).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(call(&unit, "f", 1), 2);
                let made = run.under(|| {
                    let made = run.take(Engine::new(options()));
                    if let Some(engine) = &made {
                        compile_and_call(run, engine, &program);
                    }
                    compile_and_call(run, &kept, &program);
                    made
                });
                for engine in made.iter().chain([&kept]) {
                    let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(call(&unit, "f", 41), 42);
                }
                assert_eq!(call(&unit, "f", 2), 3);
                assert_eq!(call(&unit, "list", 1000), 1000);
            });
        }
    }
}

/// How functions of a session are defined.
const KINDS: [&str; 4] = ["eager", "lazy", "tiered", "replaceable"];

fn put(dylib: &Dylib, kind: &str, source: &str, again: bool) -> Result<(), SessionError> {
    let read = dylib.read("p", source.as_bytes())?;
    let read = match kind {
        "lazy" => read.lazy(),
        "tiered" => read.tiered(3),
        "replaceable" => read.replaceable(),
        _ => read,
    };
    if again { dylib.redefine(read).map(drop) } else { dylib.define(read).map(drop) }
}

fn look_and_call(run: &Run, dylib: &Dylib, name: &str, allowed: &[i64]) {
    for _ in 0..5 {
        let Some(func) = run.take(dylib.func::<(i64,), i64>(name)) else { continue };
        if let Some(value) = run.take(func.call((1,))) {
            assert!(allowed.contains(&value), "{name}(1) is {value}, not one of {allowed:?}");
        }
    }
}

/// Definition, look-up, calls, redefinition and removal: what fails can be asked for again, and the rest works as before.
#[test]
fn sessions() {
    use Mapping::{Dual, Private};
    // Units with pages of their own ask the system for each of them, also where code is there already.
    for (threads, mapping, kinds) in
        [(0, Dual, &KINDS[..]), (0, Private, &KINDS[..]), (2, Dual, &KINDS[..2]), (2, Private, &KINDS[..2])]
    {
        let options = || options().code_mapping(mapping);
        let workers = || if threads == 0 { Workers::Caller } else { Workers::Pool(threads) };
        for &kind in kinds {
            sweep(&format!("session, {threads} workers, {mapping:?}, {kind}"), |run| {
                let session = Session::new(options(), workers()).unwrap_or_else(|error| panic!("{error}"));
                let main = session.create_dylib("main").unwrap();
                put(&main, kind, &(adds("kept", 1) + &adds("changed", 1) + &adds("gone", 1)), false).unwrap();
                put(&main, kind, &calls("caller", "changed"), false).unwrap();
                let kept = main.func::<(i64,), i64>("kept").unwrap();
                let caller = main.func::<(i64,), i64>("caller").unwrap();
                assert_eq!((kept.call((1,)), caller.call((1,))), (Ok(2), Ok(3)));
                let (defined, changed, gone, other) = run.under(|| {
                    let defined = run.take(put(&main, kind, &calls("f", "kept"), false)).is_some();
                    if defined {
                        look_and_call(run, &main, "f", &[3]);
                    }
                    let changed = run.take(put(&main, kind, &adds("changed", 10), true)).is_some();
                    look_and_call(run, &main, "changed", if changed { &[11] } else { &[2] });
                    if let Some(value) = run.take(caller.call((1,))) {
                        assert_eq!(value, if changed { 12 } else { 3 });
                    }
                    let gone = run.take(main.remove(&["gone"])).is_some();
                    let other = run.take(Session::new(options(), workers())).and_then(|session| {
                        let main = run.take(session.create_dylib("main"))?;
                        run.take(put(&main, kind, &adds("alone", 1), false))?;
                        look_and_call(run, &main, "alone", &[2]);
                        Some((session, main))
                    });
                    (defined, changed, gone, other)
                });
                assert_eq!(kept.call((1,)), Ok(2));
                if !defined {
                    put(&main, kind, &calls("f", "kept"), false).unwrap();
                }
                let call_in = |dylib: &Dylib, name: &str| {
                    let func =
                        dylib.func::<(i64,), i64>(name).unwrap_or_else(|error| panic!("{name}: {error}"));
                    func.call((1,)).unwrap_or_else(|error| panic!("{name}: {error}"))
                };
                let call = |name: &str| call_in(&main, name);
                if let Some((session, other)) = other {
                    assert_eq!(call_in(&other, "alone"), 2);
                    assert!(session.linking().check().is_ok());
                }
                assert_eq!(call("f"), 3);
                assert_eq!(call("changed"), if changed { 11 } else { 2 });
                assert_eq!(call("caller"), if changed { 12 } else { 3 });
                if !gone {
                    assert_eq!(call("gone"), 2);
                }
                assert!(session.linking().check().is_ok());
            });
        }
    }
}

/// Objects of all sizes, up to a collection and over it.
#[test]
fn heaps() {
    let program = program();
    for limit in [None, Some(24 << 20)] {
        sweep(&format!("heap, limit {limit:?}"), |run| {
            let settings = heap::HeapOptions { limit, initial: 6 << 20, ..heap::HeapOptions::default() };
            let engine = Engine::new(options().heap(settings)).unwrap_or_else(|error| panic!("{error}"));
            let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(call(&unit, "f", 1), 2);
            run.under(|| {
                for (name, n) in [("list", 250_000), ("room", 4_000), ("room", 1_500_000), ("list", 10)] {
                    if let Some(value) = try_call(run, &unit, name, n) {
                        assert_eq!(value, n);
                    }
                }
                try_call(run, &unit, "f", 1);
            });
            for (name, n) in [("list", 250_000), ("room", 4_000), ("room", 1_500_000), ("list", 10)] {
                assert_eq!(call(&unit, name, n), n);
            }
            assert_eq!(call(&unit, "f", 1), 2);
        });
    }
}

/// A folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Images are written whole or not at all, and opened or refused.
#[test]
fn images() {
    let folder = folder("images");
    let path = folder.join("program.brolga");
    let old = image::build(&Program::read("old", adds("f", 0).as_bytes()).unwrap(), &options()).unwrap();
    let new = image::build(&program(), &options()).unwrap();
    sweep("image", |run| {
        let engine = Engine::new(options()).unwrap_or_else(|error| panic!("{error}"));
        image::write(&path, &old).unwrap();
        run.under(|| {
            run.take(image::write(&path, &new));
            if let Some(image) = run.take(engine.open(&path))
                && let Some(value) = try_call(run, image.unit(), "f", 41)
            {
                assert!([41, 42].contains(&value), "the program is the old one or the new one");
            }
        });
        let there = std::fs::read(&path).unwrap();
        assert!(there == old || there == new, "the file is the old one or the new one");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else stays");
        image::write(&path, &new).unwrap();
        assert_eq!(call(engine.open(&path).unwrap().unit(), "f", 41), 42);
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// Maps for profilers: refused at once, or their error is told and the code runs.
#[test]
fn maps_for_profilers() {
    let folder = folder("maps");
    let program = program();
    sweep("maps for profilers", |run| {
        let engine = Engine::new(options()).unwrap_or_else(|error| panic!("{error}"));
        run.under(|| {
            let map = run.take(PerfMap::create_in(&folder)).map(std::sync::Arc::new);
            let dump = run.take(JitDump::create_in(&folder, "test")).map(std::sync::Arc::new);
            if let Some(map) = &map {
                engine.listen(map.clone());
            }
            if let Some(dump) = &dump {
                engine.listen(dump.clone());
            }
            compile_and_call(run, &engine, &program);
        });
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(call(&unit, "f", 41), 42);
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// A function is compiled at its first call where the stack is too short for that, and the system gives no thread.
#[test]
fn helpers_of_short_stacks() {
    sweep("helper of a short stack", |run| {
        let session = Session::new(options().opt_level(OptLevel::O2), Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        put(&main, "lazy", OBJECTS, false).unwrap();
        put(&main, "lazy", &(calls("h", "k") + &adds("k", 1)), false).unwrap();
        // Only the call is to fail: the thread itself is there before.
        let (begin, wait) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let (f, h) = (main.func::<(i64,), i64>("f").unwrap(), main.func::<(i64,), i64>("h").unwrap());
        let thread = std::thread::Builder::new().stack_size(600 << 10).spawn(move || {
            wait.recv().unwrap();
            tell.send([f.call((41,)), h.call((40,))]).unwrap();
            wait.recv().unwrap();
            assert_eq!((f.call((41,)), h.call((40,))), (Ok(42), Ok(42)));
        });
        let thread = thread.unwrap();
        let values = run.under(|| {
            begin.send(()).unwrap();
            told.recv().unwrap()
        });
        for value in values {
            if let Some(value) = run.take(value) {
                assert_eq!(value, 42);
            }
        }
        begin.send(()).unwrap();
        thread.join().unwrap();
    });
}
