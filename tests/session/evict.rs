//! Sessions with a limit of code: eviction, and compiling again.

use std::sync::{Mutex, mpsc};
use std::thread;

use brolga::ir::Type;
use brolga::session::{Dylib, Signature};
use brolga::{CallError, OptLevel, Options, Output, Session, TypedFunc, Workers};

use super::Ending;

type Int = TypedFunc<(i64,), i64>;

const COUNT: i64 = 100;
/// Operations of each function, so that it has some hundred bytes of code.
const SIZE: i64 = 60;

/// A function that nothing makes smaller, in a loop of two iterations.
fn long(n: i64) -> String {
    let mut source = format!(
        "function f{n}(x::Int64)::Int64\n1 ─      goto #2\n2 ┄ %1 = φ (#1 => x, #2 => %{})::Int64\n\
         │   %2 = φ (#1 => 0, #2 => %3)::Int64\n│   %3 = Base.add_int(%2, 1)::Int64\n│   %4 = Base.mul_int(%1, {})::Int64\n",
        SIZE + 3,
        2 * n + 3
    );
    for at in 5..SIZE + 4 {
        let op = ["xor_int", "add_int", "mul_int"][at as usize % 3];
        let last = at - 1;
        source += &format!("│   %{at} = Base.{op}(%{last}, {})::Int64\n", at * 1_000_003 + n);
    }
    let end = SIZE + 4;
    source += &format!(
        "│   %{end} = Base.slt_int(%3, 2)::Bool\n└──      goto #3 if not %{end}\n4 ─      goto #2\n3 ─      return %{}\nend\n",
        SIZE + 3
    );
    source.replace("#2 => %", "#4 => %")
}

fn expected(n: i64, x: i64) -> i64 {
    let mut value = x;
    for _ in 0..2 {
        value = value.wrapping_mul(2 * n + 3);
        for at in 5..SIZE + 4 {
            let other = at * 1_000_003 + n;
            value = match at % 3 {
                0 => value ^ other,
                1 => value.wrapping_add(other),
                _ => value.wrapping_mul(other),
            };
        }
    }
    value
}

/// How the functions are defined.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Lazy,
    Tiered,
}

fn put(session: &Session, way: Way) -> Dylib {
    let main = session.create_dylib("main").unwrap();
    let source: String = (0..COUNT).map(long).collect();
    let program = main.read("f.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let program = if way == Way::Tiered { program.tiered(2) } else { program.lazy() };
    main.define(program).unwrap();
    main
}

fn functions(main: &Dylib) -> Vec<Int> {
    (0..COUNT).map(|n| main.func(&format!("f{n}")).unwrap()).collect()
}

fn limited(workers: Workers, limit: Option<usize>) -> Ending {
    let options = crate::doors::open(Options::new()).opt_level(OptLevel::O2).output(Output::Capture);
    let options = limit.into_iter().fold(options, Options::code_limit);
    Ending(Session::new(options, workers).unwrap_or_else(|error| panic!("{error}")))
}

/// The bytes that are in use when so many of the functions are compiled.
fn room_for(count: i64) -> usize {
    let session = limited(Workers::Caller, None);
    let all = functions(&put(&session, Way::Lazy));
    (0..count).for_each(|n| assert_eq!(all[n as usize].call((n,)), Ok(expected(n, n))));
    session.stats().code.in_use
}

#[test]
fn a_limit_that_holds_a_tenth_is_kept_while_all_are_called_in_turn() {
    let limit = room_for(COUNT / 10);
    for (workers, way) in [
        (Workers::Caller, Way::Lazy),
        (Workers::Caller, Way::Tiered),
        (Workers::Seeded(7), Way::Lazy),
        (Workers::Pool(1), Way::Lazy),
    ] {
        let session = limited(workers, Some(limit));
        let all = functions(&put(&session, way));
        for round in 0..4 {
            for n in 0..COUNT {
                for x in 0..4 {
                    let sum = all[n as usize].call((x + round,));
                    assert_eq!(sum, Ok(expected(n, x + round)), "{way:?} {n} {:?}", session.stats());
                }
                session.optimize_hot();
                assert_eq!(all[n as usize].call((n,)), Ok(expected(n, n)));
            }
        }
        let stats = session.stats();
        assert!(stats.code.peak <= limit, "{stats:?} of {limit}");
        assert!(stats.evicted >= 3 * COUNT as u64, "{stats:?}");
        assert_eq!(session.linking().check(), Ok(()));
    }
}

#[test]
fn a_function_called_all_the_time_stays() {
    let session = limited(Workers::Caller, Some(room_for(COUNT / 10)));
    let all = functions(&put(&session, Way::Lazy));
    for n in 1..COUNT {
        assert_eq!(all[0].call((n,)), Ok(expected(0, n)));
        assert_eq!(all[n as usize].call((n,)), Ok(expected(n, n)));
    }
    let stats = session.stats();
    assert!(stats.evicted > 0);
    assert!(stats.compiled_functions <= COUNT as u64 + 1, "the first time, callees are unknown: {stats:?}");
}

#[test]
fn evicted_code_is_interpreted_again() {
    let session = limited(Workers::Caller, Some(room_for(COUNT / 10)));
    let main = session.create_dylib("main").unwrap();
    let source: String = (0..COUNT).map(long).collect();
    let program = main.read("f.jlir", source.as_bytes()).unwrap().tiered(1_000).interpreted(2);
    main.define(program).unwrap();
    let all = functions(&main);
    for n in 0..COUNT {
        (0..3).for_each(|x| assert_eq!(all[n as usize].call((x,)), Ok(expected(n, x))));
    }
    let stats = session.stats();
    assert!(stats.evicted > 0 && stats.compiled_functions == COUNT as u64, "{stats:?}");
    (0..2).for_each(|x| assert_eq!(all[0].call((x,)), Ok(expected(0, x))));
    assert_eq!(session.stats().compiled_functions, COUNT as u64, "it was evicted");
    assert_eq!(all[0].call((2,)), Ok(expected(0, 2)));
    assert_eq!(session.stats().compiled_functions, COUNT as u64 + 1);
}

/// Calls all of them from one frame, and the host in between.
fn driver() -> String {
    let mut source = "function all(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 0)::Int64\n".to_owned();
    for n in 0..COUNT {
        let (call, sum, last) = (2 * n + 2, 2 * n + 3, 2 * n + 1);
        source += &format!("│   %{call} = invoke Main.f{n}(x::Int64)::Int64\n");
        source += &format!("│   %{sum} = Base.xor_int(%{last}, %{call})::Int64\n");
    }
    source + &format!("└──      return %{}\nend\n", 2 * COUNT + 1)
}

#[test]
fn code_is_evicted_under_a_frame_that_calls_it_later() {
    let sum = |x: i64| (0..COUNT).fold(x, |sum, n| sum ^ expected(n, x));
    let driver = driver();
    for workers in [Workers::Caller, Workers::Pool(1)] {
        let session = limited(workers, Some(room_for(COUNT / 3)));
        let main = put(&session, Way::Lazy);
        main.define(main.read("d.jlir", driver.as_bytes()).unwrap()).unwrap();
        let all: Int = main.func("all").unwrap();
        for x in 0..4 {
            assert_eq!(all.call((x,)), Ok(sum(x)), "{:?}", session.stats());
        }
        assert!(session.stats().evicted >= 3 * COUNT as u64 / 2, "{:?}", session.stats());
    }
}

#[test]
fn threads_run_in_code_that_is_evicted() {
    let session = limited(Workers::Pool(2), Some(room_for(COUNT / 3)));
    let main = put(&session, Way::Tiered);
    thread::scope(|scope| {
        for first in 0..4 {
            let main = &main;
            scope.spawn(move || {
                let all = functions(main);
                for step in 0..600 {
                    let n = (first * 31 + step * (2 * first + 7)) % COUNT;
                    assert_eq!(all[n as usize].call((step,)), Ok(expected(n, step)));
                }
            });
        }
    });
    assert!(session.stats().evicted > 0);
    session.end();
    assert_eq!((session.runtime().retired(), session.linking().check()), (0, Ok(())));
}

/// The host asks for everything else while a frame of the function is there, which continues in code that was evicted.
#[test]
fn a_frame_continues_in_evicted_code() {
    let session = limited(Workers::Caller, Some(room_for(COUNT / 10)));
    let main = put(&session, Way::Lazy);
    let (all, host) = (functions(&main), session.clone());
    let signature = Signature::new("tick", &[Type::INT64], Type::INT64);
    main.define_host(&signature, move |scope, args| {
        let x: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        let before = host.stats().evicted;
        let sum = scope.blocking(|| all.iter().map(|f| f.call((x,)).unwrap_or(0)).fold(0, |a, b| a ^ b));
        assert!(host.stats().evicted > before + COUNT as u64 / 2);
        scope.int(sum).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    let source = "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.tick(x::Int64)::Int64\n\
                  │   %2 = Base.add_int(x, %1)::Int64\n└──      return %2\nend\n";
    main.define(main.read("t.jlir", source.as_bytes()).unwrap().lazy()).unwrap();
    let top: Int = main.func("top").unwrap();
    for x in 0..3 {
        let sum = (0..COUNT).fold(0, |sum, n| sum ^ expected(n, x));
        assert_eq!(top.call((x,)), Ok(x.wrapping_add(sum)));
    }
}

/// A function of the host under compiled code, which gets the number of its call.
fn with_host(main: &Dylib, body: impl Fn(i64) -> i64 + Send + Sync + 'static) -> Int {
    main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
        let x: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        let result = scope.blocking(|| body(x));
        scope.int(result).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    let source = "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.tick(x::Int64)::Int64\n\
                  │   %2 = Base.add_int(x, %1)::Int64\n└──      return %2\nend\n";
    main.define(main.read("t.jlir", source.as_bytes()).unwrap().lazy()).unwrap();
    main.func("top").unwrap()
}

/// A compile that is short of room below compiled code does not wait for itself.
#[test]
fn the_host_compiles_under_a_frame() {
    let limit = room_for(COUNT / 10);
    for workers in [Workers::Caller, Workers::Pool(1)] {
        let session = limited(workers, Some(limit));
        let main = put(&session, Way::Lazy);
        let all: Vec<_> = (0..COUNT).map(|n| main.function(&format!("f{n}")).unwrap()).collect();
        let top = with_host(&main, move |_| all.iter().filter(|f| f.compile().is_err()).count() as i64);
        assert_eq!(top.call((0,)), Ok(0), "{:?}", session.stats());
        assert!(session.stats().evicted > COUNT as u64 / 2);
    }
}

/// An event loop of the host: what is evicted meanwhile is free all the same.
#[test]
fn a_thread_that_blocks_holds_nothing_up() {
    let session = limited(Workers::Pool(1), Some(room_for(COUNT / 10)));
    let main = put(&session, Way::Lazy);
    let (waits, waiting) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let both = Mutex::new((waits, gone));
    let top = with_host(&main, move |x| {
        let both = both.lock().unwrap();
        both.0.send(()).unwrap();
        // Nothing is sent when the other thread has failed.
        let _ = both.1.recv();
        x
    });
    let all = functions(&main);
    thread::scope(|scope| {
        let inside = scope.spawn(|| top.call((5,)));
        waiting.recv().unwrap();
        let wrong = (0..COUNT).filter(|&n| all[n as usize].call((n,)) != Ok(expected(n, n))).count();
        let retired = session.runtime().retired();
        drop(go);
        assert_eq!(inside.join().unwrap(), Ok(10));
        // The code of the blocked frame may be among what was evicted.
        assert!(wrong == 0 && retired <= 1, "{wrong} failed, {retired} wait");
    });
}

#[test]
fn the_host_replaces_code_under_a_frame() {
    let session = limited(Workers::Caller, None);
    let main = put(&session, Way::Lazy);
    let host = (main.clone(), session.clone());
    let top = with_host(&main, move |round| {
        let (main, session) = &host;
        for _ in 0..20 {
            main.redefine(main.read("f.jlir", long(round).as_bytes()).unwrap().lazy()).unwrap();
            assert_eq!(
                main.func::<(i64,), i64>(&format!("f{round}")).unwrap().call((1,)),
                Ok(expected(round, 1))
            );
        }
        session.runtime().retired() as i64
    });
    for n in 0..3 {
        // The first of them is the one that the frame's world sees.
        assert_eq!(top.call((n,)), Ok(n + 1), "what no thread sees is free");
    }
}

#[test]
fn when_all_that_is_left_stays_there_is_an_error_and_room_later() {
    let limit = room_for(COUNT / 10);
    let session = limited(Workers::Caller, Some(limit));
    let main = put(&session, Way::Lazy);
    let all = functions(&main);
    // These are compiled when they are looked up, and stay.
    let pins = fill(&session);
    let refused = (0..COUNT).find_map(|n| all[n as usize].call((n,)).err());
    assert!(
        matches!(&refused, Some(CallError::Exception(thrown)) if thrown.message.contains("the limit is")),
        "{refused:?}"
    );
    pins.clear(brolga::session::Dependants::Deny).unwrap();
    for n in 0..COUNT {
        assert_eq!(all[n as usize].call((n,)), Ok(expected(n, n)));
    }
}

/// A caller keeps what it was linked to, whatever becomes of the name; it could not be made again.
#[test]
fn code_of_a_removed_name_is_not_evicted() {
    let session = limited(Workers::Caller, Some(room_for(COUNT / 10)));
    let main = put(&session, Way::Lazy);
    let top =
        "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.f0(x::Int64)::Int64\n└──      return %1\nend\n";
    // It is not lazy, so it stays, and its call goes through the slot.
    main.define(main.read("top.jlir", top.as_bytes()).unwrap()).unwrap();
    let (all, top): (_, Int) = (functions(&main), main.func("top").unwrap());
    assert_eq!(top.call((3,)), Ok(expected(0, 3)));
    main.remove(&["f0"]).unwrap();
    for n in 1..COUNT {
        assert_eq!(all[n as usize].call((n,)), Ok(expected(n, n)));
        assert_eq!(top.call((n,)), Ok(expected(0, n)), "{n} {:?}", session.stats());
    }
    assert!(session.stats().evicted > 0);
}

/// Room for hardly more than what the threads run at one time: each finds again and again that others hold, make or evict all that
/// there is.
#[test]
fn threads_that_take_the_room_from_each_other_all_get_code() {
    const FUNCTIONS: i64 = 16;
    for way in [Way::Lazy, Way::Tiered] {
        let session = limited(Workers::Pool(2), Some(room_for(6)));
        let main = put(&session, way);
        thread::scope(|scope| {
            for first in 0..3 {
                let main = &main;
                scope.spawn(move || {
                    let all: Vec<Int> =
                        (0..FUNCTIONS).map(|n| main.func(&format!("f{n}")).unwrap()).collect();
                    for step in 0..120 {
                        let n = (first * 5 + step * (2 * first + 1)) % FUNCTIONS;
                        assert_eq!(all[n as usize].call((step,)), Ok(expected(n, step)));
                    }
                });
            }
        });
        assert!(session.stats().evicted > 0);
        session.end();
        assert_eq!((session.runtime().retired(), session.linking().check()), (0, Ok(())));
    }
}

/// Takes all the room for code that cannot be evicted.
fn fill(session: &Session) -> Dylib {
    let pins = session.create_dylib("pins").unwrap();
    let source: String = (0..COUNT).map(long).collect();
    pins.define(pins.read("f.jlir", source.as_bytes()).unwrap()).unwrap();
    let held = (0..COUNT).map_while(|n| pins.func::<(i64,), i64>(&format!("f{n}")).ok()).count();
    assert!((1..COUNT as usize / 2).contains(&held), "{held}");
    pins
}

/// Calls one of many methods with its argument, whose type inference cannot see; each of them is long.
fn looker() -> String {
    let types = ["Int64", "Float64", "Int32", "Int16", "Int8", "UInt8"];
    let method = |(n, ty): (i64, &&str)| {
        let method = long(n).replace(&format!("f{n}(x::Int64)"), &format!("kind(x::{ty})"));
        if *ty == "Int64" { method } else { method.replace("#1 => x", "#1 => 7") }
    };
    let methods: String = (0..).zip(&types).map(method).collect();
    methods
        + "function any(n::Int64)::Any\n1 ─      goto #3 if not true\n2 ─      return n\n3 ─      return 0.5\nend\n\
           function top(n::Int64)::Int64\n1 ─ %1 = invoke Main.any(n::Int64)::Any\n\
           │   %2 = dynamic Main.kind(%1)::Any\n│   %3 = Core.typeassert(%2, Int64)::Int64\n└──      return %3\nend\n"
}

/// Functions that are not lazy, and one that waits for others whose code finds no room: all can be had when there is room, although they
/// could not before.
#[test]
fn a_shortage_is_not_remembered() {
    let shortage = |error: String| assert!(error.contains("the limit is"), "{error}");
    for workers in [Workers::Caller, Workers::Pool(1)] {
        let session = limited(workers, Some(room_for(COUNT / 10)));
        let main = session.create_dylib("main").unwrap();
        let eager: String = (0..4).map(long).collect();
        main.define(main.read("e.jlir", eager.as_bytes()).unwrap()).unwrap();
        let kinds = session.create_dylib("kinds").unwrap();
        let program = kinds.read("t.jlir", looker().as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        kinds.define(program.lazy()).unwrap();
        let top: Int = kinds.func("top").unwrap();
        let pins = fill(&session);
        for _ in 0..2 {
            shortage(main.func::<(i64,), i64>("f0").map(drop).unwrap_err().to_string());
            shortage(top.call((3,)).unwrap_err().to_string());
        }
        pins.clear(brolga::session::Dependants::Deny).unwrap();
        assert_eq!(main.func::<(i64,), i64>("f0").unwrap().call((3,)), Ok(expected(0, 3)));
        assert_eq!(top.call((3,)), Ok(expected(0, 3)));
        assert_eq!(session.linking().check(), Ok(()));
    }
}

/// An initialiser that found no room runs when the dylib is opened with room.
#[test]
fn an_initialiser_that_found_no_room_is_due_again() {
    let session = limited(Workers::Caller, Some(room_for(COUNT / 10)));
    let pins = fill(&session);
    let main = session.create_dylib("main").unwrap();
    let up = "function up()::Nothing\n1 ─ %1 = invoke Main.f0(3)::Int64\n\
              │        invoke Base.print(\"up \"::String)::Nothing\n└──      return nothing\nend\n";
    // In two programs, so that the value is not computed ahead.
    main.define(main.read("f.jlir", long(0).as_bytes()).unwrap()).unwrap();
    main.define(main.read("u.jlir", up.as_bytes()).unwrap().initializer("up")).unwrap();
    let printed = || String::from_utf8(session.runtime().sink().take_captured()).unwrap();
    for _ in 0..2 {
        let error = main.open().unwrap_err();
        let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let chain: String = chain.map(|error| format!("{error}\n")).collect();
        assert!(chain.contains("the limit is"), "{chain}");
    }
    pins.clear(brolga::session::Dependants::Deny).unwrap();
    assert_eq!(printed(), "");
    main.open().unwrap();
    assert_eq!(printed(), "up ");
}

/// A function that calls the host, which says so and waits, at no safepoint, until it is told to continue.
fn waiter(main: &Dylib) -> (Int, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (waits, waiting) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let both = Mutex::new((waits, gone));
    main.define_host(&Signature::new("tick", &[Type::INT64], Type::INT64), move |scope, args| {
        let both = both.lock().unwrap();
        both.0.send(()).unwrap();
        both.1.recv().unwrap();
        let x: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        scope.int(x).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    let source = "function top(x::Int64)::Int64\n1 ─ %1 = invoke Main.tick(x::Int64)::Int64\n└──      return %1\nend\n";
    main.define(main.read("t.jlir", source.as_bytes()).unwrap()).unwrap();
    (main.func("top").unwrap(), waiting, go)
}

/// A thread that does not return holds up code that is replaced meanwhile; no room is made for that code.
#[test]
fn no_room_is_made_for_replaced_code_that_waits_for_a_thread() {
    // The selectors of cells with several versions take two pages.
    let session = limited(Workers::Pool(1), Some(room_for(70)));
    let main = put(&session, Way::Lazy);
    let ((top, waiting, go), all) = (waiter(&main), functions(&main));
    let call = |n: i64| all[n as usize].call((n,)) == Ok(expected(n, n));
    thread::scope(|scope| {
        let inside = scope.spawn(|| top.call((5,)));
        waiting.recv().unwrap();
        let mut right = Vec::new();
        let before = session.stats().code;
        for _ in 0..4 {
            right.extend((0..10).map(call));
            let source: String = (0..10).map(long).collect();
            main.redefine(main.read("f.jlir", source.as_bytes()).unwrap().lazy()).unwrap();
        }
        let stats = session.stats();
        right.extend((10..25).map(call));
        let evicted = session.stats().evicted;
        // In front of what may fail: the scope waits for the thread.
        go.send(()).unwrap();
        assert_eq!(inside.join().unwrap(), Ok(5));
        assert!(right.iter().all(|is_right| *is_right), "{right:?}");
        assert_eq!((before.retired, evicted), (0, 0), "{stats:?}");
        let code = stats.code;
        assert!(code.retired > (code.in_use - before.in_use) / 2, "{stats:?}, {before:?} before");
        assert_eq!(session.stats().code.retired, 0);
    });
}

/// A thread that does not return holds up evicted code; no further code is evicted in its place for each compiled function.
#[test]
fn no_room_is_made_again_for_evicted_code_that_waits_for_a_thread() {
    let session = limited(Workers::Pool(1), Some(room_for(40)));
    let main = put(&session, Way::Lazy);
    let ((top, waiting, go), all) = (waiter(&main), functions(&main));
    thread::scope(|scope| {
        let inside = scope.spawn(|| top.call((5,)));
        waiting.recv().unwrap();
        let mut first = 0;
        let mut sums = Vec::new();
        for n in 0..36 {
            sums.push(all[n as usize].call((n,)) == Ok(expected(n, n)));
            first = if session.stats().evicted == 0 { n } else { first };
        }
        let (stats, retired) = (session.stats(), session.runtime().retired());
        // In front of what may fail: the scope waits for the thread.
        go.send(()).unwrap();
        assert_eq!(inside.join().unwrap(), Ok(5));
        assert!(sums.iter().all(|is_right| *is_right), "{sums:?}");
        assert!(stats.evicted > 0 && retired > 0, "{stats:?}");
        assert!(stats.evicted <= 36 - first as u64 + 2, "{stats:?}, {first} without");
    });
}
