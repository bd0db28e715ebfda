//! Memory of dropped objects, counted in bytes of the allocator and in names; and the growth of allocated bytes with the size of programs.
//!
//! ```text
//!   rounds before ── live bytes ── rounds ── live bytes          growth = difference ÷ rounds
//! ```
//!
//! Tables double, so a count is compared over enough rounds for a table to double at most once or twice. The tests run one at a time: they share the
//! allocator. Long runs with resident memory:
//!
//! ```sh
//! cargo test --release --test memory -- --ignored --nocapture --test-threads=1
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use brolga::host::Handle;
use brolga::ir::Context;
use brolga::session::{Definitions, Dylib};
use brolga::{Engine, OptLevel, Options, Output, Program, Session, Workers};
use brolga_fuzz::constructs::{self, Construct, Outcome};

use counting::{all_bytes, live};

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line of `/proc/self/status`, in KiB.
fn status(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    found.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Bytes by which an iteration makes live memory grow.
fn growth(before: usize, rounds: usize, mut round: impl FnMut(usize)) -> isize {
    (0..before).for_each(&mut round);
    let start = live();
    (before..before + rounds).for_each(&mut round);
    (live() - start) / rounds as isize
}

fn options() -> Options {
    crate::doors::open(Options::new()).opt_level(OptLevel::O1).output(Output::Capture)
}

fn adds(name: &str) -> String {
    format!("function {name}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 3)::Int64\n└──      return %1\nend\n")
}

const OBJECTS: &str = "\
mutable struct Node
    next::Union{Nothing, Node}
    val::Int64
end
function f(x::Int64)::Int64
1 ─ %1 = %new(Main.Node, nothing, x)::Node
│   %2 = Base.getfield(%1, :val)::Int64
│   %3 = dynamic Main.g(%1)::Any
│   %4 = Core.typeassert(%3, Int64)::Int64
│   %5 = Base.add_int(%4, %2)::Int64
└──      return %5
end
function g(x::Node)::Int64
1 ─ %1 = Base.getfield(x, :val)::Int64
└──      return %1
end
";

/// Compiles a program with objects and calls it.
fn compile_and_call(engine: &Engine, program: &Program) {
    let unit = engine.compile(program).unwrap();
    assert_eq!(unit.func::<(i64,), i64>("f").unwrap().call((21,)), Ok(42));
}

type Kind = (&'static str, fn(Definitions) -> Definitions);

const KINDS: [Kind; 5] = [
    ("eager", |read| read),
    ("lazy", |read| read.lazy()),
    ("tiered", |read| read.tiered(50)),
    ("interpreted", |read| read.tiered(50).interpreted(3)),
    ("replaceable", |read| read.replaceable()),
];

/// Defines a function with a fresh name, calls it and removes it.
fn fresh(dylib: &Dylib, kind: Kind, round: usize) {
    let name = format!("fresh{round}");
    let read = dylib.read("f.jlir", adds(&name).as_bytes()).unwrap();
    dylib.define(kind.1(read)).unwrap();
    assert_eq!(dylib.func::<(i64,), i64>(&name).unwrap().call((21,)), Ok(24));
    dylib.remove(&[&name]).unwrap();
}

/// Nothing stays of a removed function: symbols, names and types are swept when there are twice as many as are in use, so the most live bytes of many
/// rounds are compared with those of the first ones. The peaks swing by 40 KB with the moment of a sweep; 50 KB are 10 bytes for each name.
/// The bytes that reading a program allocates, or compiling it at a level and dropping the code.
fn allocated(construct: &Construct, level: Option<OptLevel>, n: usize) -> usize {
    let text = construct.text(n);
    let start = all_bytes();
    let program = Program::read("growth.jlir", text.as_bytes());
    let Some(level) = level else { return all_bytes() - start };
    let program = program.unwrap_or_else(|error| panic!("{}: {error}", construct.name));
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).expect("an engine");
    let start = all_bytes();
    drop(engine.compile(&program));
    all_bytes() - start
}

/// Allocated bytes stand for work: an algorithm that copies, or makes a table for each of its elements, allocates more. One that only compares
/// is found by `benches/sweep.rs` alone. Where a size is beyond a limit of another way to compile, bytes jump once, so a second step has to be as
/// steep as the first.
#[test]
fn four_times_as_much_of_a_construct_allocates_at_most_five_times_as_much() {
    const SIZE: usize = 128;
    /// Growing tables and first uses.
    const SLACK: usize = 64 << 10;
    /// An assertion in debug builds of Cranelift lists the dominators of each block.
    const LISTED: [&str; 3] =
        ["unknown functions", "checked sums", "methods of one name, called dynamically"];
    let _alone = alone();
    let mut steep = Vec::new();
    for construct in constructs::ALL {
        let levels: &[Option<OptLevel>] = match construct.outcome {
            Outcome::Compiled => &[None, Some(OptLevel::O0), Some(OptLevel::O2)],
            Outcome::Broken => &[None],
        };
        for &level in levels {
            if cfg!(debug_assertions) && level == Some(OptLevel::O2) && LISTED.contains(&construct.name) {
                continue;
            }
            // Tables that are made once for a process.
            allocated(construct, level, 8);
            let is_steep = |small: usize, large: usize| large > 5 * small + SLACK;
            let [small, large] = [SIZE, 4 * SIZE].map(|n| allocated(construct, level, n));
            if !is_steep(small, large) {
                continue;
            }
            let larger = allocated(construct, level, 16 * SIZE);
            if is_steep(large, larger) {
                let name = construct.name;
                steep.push(format!("{name} at {level:?}: {small} bytes, then {large}, then {larger}"));
            }
        }
    }
    assert!(steep.is_empty(), "{}", steep.join("\n"));
}

#[test]
fn a_removed_function_gives_its_name_back() {
    let _alone = alone();
    for kind in KINDS {
        let session = Session::new(options(), Workers::Caller).unwrap();
        let dylib = session.create_dylib("main").unwrap();
        let counts = || (session.linking().names().len(), session.linking().names().places());
        let first = peak(0..4800, |round| fresh(&dylib, kind, round));
        let names = counts();
        let later = peak(4800..9600, |round| fresh(&dylib, kind, round));
        println!(
            "{:<12} at most {first} bytes behind 4800 names, {later} behind 9600; {names:?} symbols",
            kind.0
        );
        assert_eq!(counts(), names, "{}", kind.0);
        assert!(later < first + 50_000, "{}: {first} {later}", kind.0);
    }
}

/// A program of a session with its own types, which is called and removed. A session keeps declarations, and the heap their descriptions: programs
/// that are read later may name them. An engine that reads each program in its own context keeps nothing of them.
#[test]
fn a_declared_type_of_a_session_costs_a_bounded_number_of_bytes() {
    let _alone = alone();
    let session = Session::new(options(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let declared = growth(200, 800, |round| {
        let text = OBJECTS.replace("Node", &format!("Node{round}"));
        dylib.define(dylib.read("f.jlir", text.as_bytes()).unwrap()).unwrap();
        assert_eq!(dylib.func::<(i64,), i64>("f").unwrap().call((21,)), Ok(42));
        dylib.remove(&["f", "g"]).unwrap();
    });
    println!("{declared} bytes stay of a declared type of a session");
    assert!(declared < 8_000, "{declared}");
}

/// A thread-local variable: a slot in the table of each thread that uses it, and a cell.
const THREAD_LOCAL: &str = "\
global threadlocal own::Any = nothing
function f(x::Int64)::Int64
1 ─ %1 = Core.tuple(x, x, x)::Tuple{Int64, Int64, Int64}
│        Core.setglobal!(Main, :own, %1)::Any
│   %3 = Main.own::Any
│   %4 = Core.typeassert(%3, Tuple{Int64, Int64, Int64})::Tuple{Int64, Int64, Int64}
│   %5 = Base.getfield(%4, 2)::Int64
│   %6 = Base.add_int(%5, 3)::Int64
└──      return %6
end
";

#[test]
fn thread_local_variables_end_with_their_programs_and_threads() {
    let _alone = alone();
    let engine = Engine::new(options()).unwrap();
    let cx = Context::new();
    let unit = || engine.compile(&Program::read_in(&cx, "f", THREAD_LOCAL.as_bytes()).unwrap()).unwrap();
    let call = |unit: &brolga::Unit| {
        assert_eq!(unit.func::<(i64,), i64>("f").unwrap().call((1 << 20,)), Ok((1 << 20) + 3));
    };
    let programs = growth(100, 400, |_| call(&unit()));
    let one = unit();
    let threads = growth(100, 900, |_| {
        std::thread::scope(|scope| scope.spawn(|| call(&one)).join().unwrap());
    });
    println!("{programs} bytes a program, {threads} a thread");
    assert!(programs < 100 && threads < 100, "{programs} {threads}");
}

/// As above, in a session: 100,000 redefinitions, and 10,000 threads.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_redefined_thread_local_variables() {
    let _alone = alone();
    let session = Session::new(options(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let redefine = |round: usize| {
        let text = THREAD_LOCAL.replace("Any = nothing", &format!("Any = {round}"));
        let read = dylib.read("f.jlir", text.as_bytes()).unwrap();
        let done = if round == 0 { dylib.define(read) } else { dylib.redefine(read).map(drop) };
        done.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(dylib.func::<(i64,), i64>("f").unwrap().call((21,)), Ok(24));
        if round.is_multiple_of(1000) {
            // The few objects would not lead to a collection.
            session.runtime().enter(|scope| scope.collect()).unwrap();
        }
    };
    tenths("redefinition", 100_000, redefine);
    tenths("thread", 10_000, |_| {
        std::thread::scope(|scope| {
            let called = scope.spawn(|| dylib.func::<(i64,), i64>("f").unwrap().call((21,)));
            assert_eq!(called.join().unwrap(), Ok(24));
        });
    });
}

#[test]
fn engines_and_sessions_leave_nothing() {
    let _alone = alone();
    let engine = |_| {
        let engine = Engine::new(options()).unwrap();
        compile_and_call(&engine, &Program::read("f", OBJECTS.as_bytes()).unwrap());
        engine
    };
    let session = |_| {
        let session = Session::new(options(), Workers::Pool(1)).unwrap();
        let dylib = session.create_dylib("main").unwrap();
        dylib.define(dylib.read("f", adds("f").as_bytes()).unwrap()).unwrap();
        assert_eq!(dylib.func::<(i64,), i64>("f").unwrap().call((21,)), Ok(24));
        session
    };
    let engines = growth(10, 40, |round| drop(engine(round)));
    let sessions = growth(10, 40, |round| drop(session(round)));
    let together = growth(1, 3, |_| {
        let all: (Vec<_>, Vec<_>) = ((0..20).map(engine).collect(), (0..20).map(session).collect());
        drop(all);
    });
    println!("{engines} bytes an engine, {sessions} a session, {together} for 20 of each at a time");
    assert!(engines < 200 && sessions < 200 && together < 4000);
}

#[test]
fn programs_of_one_context_are_described_once() {
    let _alone = alone();
    let engine = Engine::new(options()).unwrap();
    let cx = Context::new();
    let shared = growth(50, 150, |_| {
        compile_and_call(&engine, &Program::read_in(&cx, "f", OBJECTS.as_bytes()).unwrap());
    });
    println!("{shared} bytes a program of one context");
    assert!(shared < 100, "{shared}");
}

/// The most live bytes behind rounds.
fn peak(rounds: std::ops::Range<usize>, mut round: impl FnMut(usize)) -> isize {
    let after = |at| {
        round(at);
        live()
    };
    rounds.map(after).max().unwrap_or(0)
}

/// Types of unused programs are freed, with the contexts.
#[test]
fn programs_with_contexts_of_their_own_give_their_types_back() {
    let _alone = alone();
    let engine = Engine::new(options()).unwrap();
    let round = |_| compile_and_call(&engine, &Program::read("f", OBJECTS.as_bytes()).unwrap());
    let first = peak(0..500, round);
    let later = peak(500..1500, round);
    println!("at most {first} bytes live behind 500 programs, {later} behind 1500");
    assert!(later < first + 200_000, "{first} {later}");
}

const LISTS: &str = "\
mutable struct Item
    next::Any
    val::Int64
end
struct Empty
end
function item(x::Int64)::Any
1 ─ %1 = %new(Main.Item, nothing, x)::Main.Item
└──      return %1
end
function holder(x::Int64)::Any
1 ─ %1 = %new(Main.Empty)::Main.Empty
│   %2 = Core.tuple(%1, x)::Tuple{Main.Empty, Int64}
└──      return %2
end
function type(x::Int64)::Any
1 ─      return Main.Item
end
";

/// An object keeps its type, and so does a type that is an object, or an object that refers to one, when the program and its code are dropped.
#[test]
fn objects_outlive_their_programs() {
    let _alone = alone();
    let engine = Engine::new(options()).unwrap();
    let held: Vec<_> = (0..20)
        .flat_map(|round| {
            let text = LISTS.replace("Item", &format!("Item{round}"));
            let text = text.replace("Empty", &format!("Empty{round}"));
            let program = Program::read("lists", text.as_bytes()).unwrap();
            let unit = engine.compile(&program).unwrap();
            engine
                .runtime()
                .enter(|scope| {
                    ["item", "holder", "type"].map(|name| {
                        let make = unit.func_in::<(i64,), Handle>(name).unwrap();
                        let made = make.call(scope, (round,)).unwrap();
                        scope.persistent(made.get(scope))
                    })
                })
                .unwrap()
        })
        .collect();
    for _ in 0..500 {
        compile_and_call(&engine, &Program::read("f", OBJECTS.as_bytes()).unwrap());
    }
    engine
        .runtime()
        .enter(|scope| {
            scope.collect();
            for (round, kept) in held.chunks(3).enumerate() {
                let [item, holder, ty] = [0, 1, 2].map(|at| scope.get_persistent(&kept[at]).unwrap());
                assert_eq!(item.desc().name(), format!("Item{round}"));
                assert_eq!(item.bits::<i64>(1), Ok(round as i64));
                assert_eq!(holder.desc().name(), format!("Tuple{{Empty{round}, Int64}}"));
                assert_eq!(ty.address() as u64, item.desc().tag());
            }
        })
        .unwrap();
    drop(held);
}

#[test]
fn a_context_takes_little() {
    let _alone = alone();
    drop(Context::new());
    let contexts: Vec<_> = {
        let start = live();
        let contexts = (0..100).map(|_| Context::new()).collect::<Vec<_>>();
        let each = (live() - start) / 100;
        println!("{each} bytes a context");
        assert!(each < 4096, "{each}");
        contexts
    };
    drop(contexts);
}

#[cfg(target_os = "linux")]
#[test]
fn an_engine_takes_little_address_space() {
    let _alone = alone();
    let before = status("VmSize");
    let engines: Vec<_> = (0..16).map(|_| Engine::new(options()).unwrap()).collect();
    let each = (status("VmSize") - before) / engines.len();
    println!("{each} KiB of addresses an engine");
    assert!(each < 600 << 10, "{each} KiB");
}

/// Resident memory after each tenth of the rounds, which is flat from the first one on: a kilobyte for each of 1,000 rounds would show.
fn tenths(what: &str, rounds: usize, mut round: impl FnMut(usize)) {
    println!("{what}");
    let mut resident = Vec::new();
    for at in 0..=rounds {
        if at % (rounds / 10) == 0 {
            println!("{at:>10} {:>10} KiB resident {:>12} bytes live", status("VmRSS"), live());
            resident.push(status("VmRSS"));
        }
        if at < rounds {
            round(at);
        }
    }
    let (first, most) = (resident[1], resident[1..].iter().copied().max().unwrap_or(0));
    assert!(most < first + 1_000, "{what}: {resident:?}");
}

/// Live and resident memory after 10,000, 100,000 and 1,000,000 names: flat after the first.
fn a_million_fresh_names(kind: usize) {
    let _alone = alone();
    let session = Session::new(options(), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    let mut seen = Vec::new();
    for round in 0..=1_000_000 {
        if [10_000, 100_000, 1_000_000].contains(&round) {
            let now = (status("VmRSS"), live());
            println!(
                "{:<12} {round:>8} names {:>8} KiB resident {:>10} bytes live",
                KINDS[kind].0, now.0, now.1
            );
            seen.push(now);
        }
        fresh(&dylib, KINDS[kind], round);
    }
    let ((resident, bytes), (last_resident, last_bytes)) = (seen[0], seen[2]);
    assert!(last_bytes < bytes + 200_000, "live memory grows: {seen:?}");
    assert!(last_resident < resident + 2_000, "resident memory grows: {seen:?}");
}

#[test]
#[ignore = "takes ten minutes"]
fn a_million_fresh_names_of_eager_functions() {
    a_million_fresh_names(0);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_million_fresh_names_of_lazy_functions() {
    a_million_fresh_names(1);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_million_fresh_names_of_tiered_functions() {
    a_million_fresh_names(2);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_million_fresh_names_of_interpreted_functions() {
    a_million_fresh_names(3);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_million_fresh_names_of_replaceable_functions() {
    a_million_fresh_names(4);
}

#[test]
#[ignore = "takes minutes"]
fn thousands_of_engines_sessions_and_programs() {
    let _alone = alone();
    tenths("engines", 1000, |_| {
        let engine = Engine::new(options()).unwrap();
        compile_and_call(&engine, &Program::read("f", OBJECTS.as_bytes()).unwrap());
    });
    tenths("sessions", 1000, |round| {
        let session = Session::new(options(), Workers::Pool(1)).unwrap();
        fresh(&session.create_dylib("main").unwrap(), KINDS[1], round);
    });
    let engine = Engine::new(options()).unwrap();
    let cx = Context::new();
    tenths("programs of one context", 100_000, |_| {
        compile_and_call(&engine, &Program::read_in(&cx, "f", OBJECTS.as_bytes()).unwrap());
    });
    tenths("programs, each with a context", 100_000, |_| {
        compile_and_call(&engine, &Program::read("f", OBJECTS.as_bytes()).unwrap());
    });
    tenths("1,000 engines and sessions at a time", 10, |_| {
        let engines: Vec<_> = (0..1000).map(|_| Engine::new(options()).unwrap()).collect();
        let sessions: Vec<_> = (0..1000).map(|_| Session::new(options(), Workers::Caller).unwrap()).collect();
        drop((engines, sessions));
    });
}

#[path = "support/counting.rs"]
mod counting;
#[path = "support/doors.rs"]
mod doors;
