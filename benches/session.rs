//! Sessions: scaling of compilation, and the cost of a session beyond compiling.
//!
//! ```text
//! cargo bench --bench session                # all groups
//! cargo bench --bench session -- tiers       # one: compile, engine, tiers, interpreted, calls, ready, lazy, replace, methods
//! ```
//!
//! | row | what is measured |
//! |---|---|
//! | `compile, N workers` | 10,000 functions of 25 to 40 instructions, defined, looked up and linked, from the first look-up to the last answer |
//! | `define` | the part before: verified programs become promises |
//! | `engine` | the same program compiled as one unit by [`Engine`], on one thread: optimising and code generation alone |
//! | `ready` | a typed look-up of a function that is ready; the same by its symbol; its address alone, on one thread and on two at once |
//! | `first lazy call` | the first call of a function that is compiled then, beside compiling it by a look-up |
//! | `remove` | a compiled function taken out, with its code |
//! | `tier 1`, `tier 2` | functions in two tiers compiled one by one by the calling thread: everything but their calls; in parentheses against the other |
//! | `…, examples` | all functions of the programs in `examples/`, for the first tier and at -O2; both by their first look |
//! | `interpreted` | a call that is interpreted, of a function that adds, in a program without globals and in one with 1,000 |
//! | `calls, quiet` | how long a call from Rust takes: by two threads, half, one in a hundred and one in a thousand take as long or longer; clock included |
//! | `calls, changing` | the same while functions are redefined, go up a tier and are freed, some hundred times a second |
//! | `replace` | a function defined again and looked up: everything but its call |
//! | `methods` | methods of one function, each defined alone with a type for its argument and a caller by dispatch; nothing is compiled. In parentheses for each |
//!
//! Every figure is the best of some runs. Nothing is asserted.

use std::fs;
use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use brolga::session::{Definitions, Dylib};
use brolga::{Engine, OptLevel, Options, Program, Session, Workers};

const COUNT: usize = 10_000;

/// A function with a loop and some arithmetic, and a call of another one in every fourth.
fn source(n: usize) -> String {
    let (a, b) = (n % 251 + 3, n % 17 + 1);
    let call = match n % 4 {
        3 => format!("%5 = invoke Main.f{}(%4::Int64)::Int64", n - 1),
        _ => format!("%5 = Base.xor_int(%4, {b})::Int64"),
    };
    format!(
        "function f{n}(x::Int64)::Int64\n\
         1 ─      goto #2\n\
         2 ┄ %2 = φ (#1 => 0, #3 => %12)::Int64\n\
         │   %3 = φ (#1 => x, #3 => %11)::Int64\n\
         │   %4 = Base.and_int(%3, 1023)::Int64\n\
         │   {call}\n\
         │   %6 = Base.slt_int(%2, {a})::Bool\n\
         └──      goto #4 if not %6\n\
         3 ─ %8 = Base.mul_int(%5, {b})::Int64\n\
         │   %9 = Base.add_int(%8, %2)::Int64\n\
         │   %10 = Base.lshr_int(%9, {b})::Int64\n\
         │   %11 = Base.add_int(%10, %9)::Int64\n\
         │   %12 = Base.add_int(%2, 1)::Int64\n\
         └──      goto #2\n\
         4 ─ %14 = Base.sub_int(%3, %5)::Int64\n\
         └──      return %14\nend\n"
    )
}

fn options() -> Options {
    crate::doors::open(Options::new()).opt_level(OptLevel::O2)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The time to define all functions, and that to have all of them.
fn compile(text: &str, workers: usize) -> (Duration, Duration) {
    let session = Session::new(options(), Workers::Pool(workers)).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    let program = main.read("bench.jlir", text.as_bytes()).expect("the source is well-formed");
    let start = Instant::now();
    main.define(program).expect("defined");
    let defined = start.elapsed();
    let linking = session.linking();
    let symbols: Vec<_> = (0..COUNT).map(|n| linking.intern(&format!("f{n}(Int64)"))).collect();
    let start = Instant::now();
    let mut lookup = pin!(main.linking().lookup(symbols));
    // Only the workers work: a thread that waits would help them, and one that polls a future does not.
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let found = loop {
        match lookup.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(found) => break found.expect("compiled"),
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(found.len(), COUNT);
    (defined, start.elapsed())
}

/// First calls of lazy functions against look-ups of the same functions, which compile them; and their removal.
fn lazily(options: &dyn Fn() -> Options) {
    const FUNCTIONS: usize = 500;
    let text: String = (0..FUNCTIONS).map(|n| source(4 * n)).collect();
    let symbols: Vec<String> = (0..FUNCTIONS).map(|n| format!("f{}(Int64)", 4 * n)).collect();
    let (mut eager, mut first, mut removed) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..7 {
        let session = Session::new(options(), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        main.define(main.read("eager.jlir", text.as_bytes()).expect("well-formed")).expect("defined");
        let start = Instant::now();
        for symbol in &symbols {
            black_box(main.function(symbol).expect("compiled"));
        }
        eager = eager.min(start.elapsed() / FUNCTIONS as u32);
        let start = Instant::now();
        for symbol in &symbols {
            main.remove(&[symbol]).expect("removed");
        }
        removed = removed.min(start.elapsed() / FUNCTIONS as u32);
        let lazy = session.create_dylib("lazy").expect("a dylib");
        lazy.define(lazy.read("lazy.jlir", text.as_bytes()).expect("well-formed").lazy()).expect("defined");
        let functions: Vec<_> =
            symbols.iter().map(|symbol| lazy.func::<(i64,), i64>(symbol).expect("there")).collect();
        let start = Instant::now();
        for function in &functions {
            black_box(function.call((black_box(-1),)).expect("it ends"));
        }
        let calls = start.elapsed();
        let start = Instant::now();
        for function in &functions {
            black_box(function.call((black_box(-1),)).expect("it ends"));
        }
        first = first.min(calls.saturating_sub(start.elapsed()) / FUNCTIONS as u32);
    }
    println!("look-up, compiles   {eager:8.2?}");
    println!("first lazy call     {first:8.2?}, {:.2?} more", first.saturating_sub(eager));
    println!("remove              {removed:8.2?}");
}

fn best<T: Ord>(runs: usize, run: impl FnMut() -> T) -> T {
    std::iter::repeat_with(run).take(runs).min().expect("at least one run")
}

fn each(iterations: u32, mut run: impl FnMut(u32)) -> Duration {
    best(5, || {
        let start = Instant::now();
        (0..iterations).for_each(&mut run);
        start.elapsed() / iterations
    })
}

/// The time to compile functions for the first tier, and for the second.
fn tiers(count: usize) -> (Duration, Duration) {
    let text: String = (0..count).map(source).collect();
    let session = Session::new(options(), Workers::Caller).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    let program = main.read("tiers.jlir", text.as_bytes()).expect("the source is well-formed");
    main.define(program.replaceable().tiered(0).iterations(u32::MAX)).expect("defined");
    let functions: Vec<_> =
        (0..count).map(|n| main.function(&format!("f{n}")).expect("there is a slot")).collect();
    let start = Instant::now();
    functions.iter().for_each(|function| function.compile().expect("compiled"));
    let first = start.elapsed();
    for function in &functions {
        let function = function.typed::<(i64,), i64>().expect("of this type");
        function.call((1,)).expect("returns");
    }
    let start = Instant::now();
    let optimised = session.optimize_hot();
    let second = start.elapsed();
    assert_eq!(optimised, count);
    (first, second)
}

/// The time to compile all functions of the example programs for the first tier, and at -O2 as the second does.
fn tiers_of_examples() -> (Duration, Duration) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the examples are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    let time = |file: &Path, is_tiered: bool| {
        let session = Session::new(options(), Workers::Caller).expect("a session");
        let main = session.create_dylib("main").expect("a dylib");
        main.add_process_symbols(|_| true).expect("it is open");
        let text = fs::read(file).expect("an example");
        let module = Program::read("example", &text).expect("well-formed");
        let symbols: Vec<String> =
            module.module().funcs().map(|(_, func)| func.symbol(&module.module().cx)).collect();
        let program = main.read("example", &text).expect("well-formed").replaceable();
        main.define(if is_tiered { program.tiered(u32::MAX) } else { program }).expect("defined");
        let functions: Vec<_> =
            symbols.iter().map(|symbol| main.function(symbol).expect("there is a slot")).collect();
        let start = Instant::now();
        functions.iter().for_each(|function| function.compile().expect("compiled"));
        start.elapsed()
    };
    let sum = |is_tiered| files.iter().map(|file| best(3, || time(file, is_tiered))).sum();
    (sum(true), sum(false))
}

/// How long calls take, in order, while functions change or not.
fn latencies(is_changing: bool) -> Vec<Duration> {
    const CALLS: usize = 200_000;
    let session = Session::new(options(), Workers::Pool(1)).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    let program = || {
        let text: String = (0..4).map(source).collect();
        let program = main.read("calls.jlir", text.as_bytes()).expect("the source is well-formed");
        program.replaceable().tiered(200).iterations(2_000)
    };
    main.define(program()).expect("defined");
    let function = main.func::<(i64,), i64>("f3").expect("there is a slot");
    function.call((1,)).expect("returns");
    let mut all: Vec<Duration> = thread::scope(|scope| {
        let caller = || {
            let time = |n: usize| {
                let start = Instant::now();
                black_box(function.call((black_box(n as i64 & 7),)).expect("returns"));
                start.elapsed()
            };
            (0..CALLS).map(time).collect::<Vec<Duration>>()
        };
        let threads = [scope.spawn(caller), scope.spawn(caller)];
        while is_changing && !threads.iter().all(|thread| thread.is_finished()) {
            // One that is being compiled for the second tier cannot be redefined, and is the next time.
            let _ = main.redefine(program());
            thread::park_timeout(Duration::from_millis(5));
        }
        threads.into_iter().flat_map(|thread| thread.join().expect("returns")).collect()
    });
    all.sort_unstable();
    all
}

/// Microseconds for each of many functions.
fn per(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn compile_rows() {
    let text: String = (0..COUNT).map(source).collect();
    let mut one = 0.0;
    for workers in [1, 2] {
        let (compiled, defined) = best(3, || {
            let (defined, compiled) = compile(&text, workers);
            (compiled, defined)
        });
        if workers == 1 {
            one = compiled.as_secs_f64();
            println!("define              {:8.2} µs a function", per(defined, COUNT));
        }
        let ratio = one / compiled.as_secs_f64();
        println!("compile, {workers} workers  {:8.2} µs a function, {ratio:.2}×", per(compiled, COUNT));
    }
}

fn engine_row() {
    let text: String = (0..COUNT).map(source).collect();
    let program = Program::read("bench.jlir", text.as_bytes()).expect("the source is well-formed");
    let engine = Engine::new(options()).expect("an engine");
    let whole = best(3, || {
        let start = Instant::now();
        black_box(engine.compile(&program).expect("compiled"));
        start.elapsed()
    });
    println!("engine              {:8.2} µs a function", per(whole, COUNT));
}

fn tier_rows() {
    let count = COUNT / 10;
    let (first, second) = best(3, || tiers(count));
    let ratio = second.as_secs_f64() / first.as_secs_f64();
    println!("tier 1              {:8.2} µs a function ({:.2} of tier 2)", per(first, count), 1.0 / ratio);
    println!("tier 2              {:8.2} µs a function ({ratio:.2} of tier 1)", per(second, count));
    let (first, second) = tiers_of_examples();
    let share = first.as_secs_f64() / second.as_secs_f64();
    println!("tier 1, examples    {first:8.2?} ({share:.2} of tier 2)");
    println!("tier 2, examples    {second:8.2?}");
}

fn interpreted_rows() {
    const CALLS: u32 = 20_000;
    for globals in [0, 1_000] {
        let mut text: String = (0..globals).map(|n| format!("global g{n}::Int64 = {n}\n")).collect();
        text += "function f(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 1)::Int64\n└──      return %1\nend\n";
        let call = best(5, || {
            let session = Session::new(options(), Workers::Caller).expect("a session");
            let main = session.create_dylib("main").expect("a dylib");
            let program = main.read("cold.jlir", text.as_bytes()).expect("well-formed");
            main.define(program.tiered(1).interpreted(3 * CALLS)).expect("defined");
            let function = main.func::<(i64,), i64>("f").expect("there is a slot");
            let start = Instant::now();
            for n in 0..CALLS {
                black_box(function.call((black_box(n.into()),)).expect("returns"));
            }
            let time = start.elapsed() / CALLS;
            assert_eq!(session.stats().compiled_functions, 0);
            time
        });
        println!("interpreted, {globals:5} globals {call:8.2?}");
    }
}

fn call_rows() {
    for (row, is_changing) in [("quiet", false), ("changing", true)] {
        let all = latencies(is_changing);
        let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
        let [half, p99, p999] = [0.5, 0.99, 0.999].map(at);
        println!("calls, {row:<12} {half:8.2?}, p99 {p99:.2?}, p99.9 {p999:.2?}, longest {:.2?}", at(1.0));
    }
}

/// A session with one function.
fn one() -> (Session, Dylib) {
    let session = Session::new(options(), Workers::Pool(1)).expect("a session");
    let main = session.create_dylib("main").expect("a dylib");
    main.define(read_one(&main)).expect("defined");
    main.function("f0").expect("compiled");
    (session, main)
}

fn read_one(main: &Dylib) -> Definitions {
    main.read("one.jlir", source(0).as_bytes()).expect("well-formed")
}

fn ready_rows() {
    let (session, main) = one();
    let typed = each(100_000, |_| drop(black_box(main.func::<(i64,), i64>("f0").expect("ready"))));
    println!("ready, typed        {typed:8.2?}");
    let function = each(100_000, |_| drop(black_box(main.function("f0(Int64)").expect("ready"))));
    println!("ready, by symbol    {function:8.2?}");
    let symbol = session.linking().intern("f0(Int64)");
    let address = each(1_000_000, |_| {
        black_box(main.linking().ready(black_box(symbol)));
    });
    println!("ready, address      {address:8.2?}");
    let lookups = 1_000_000;
    let two = best(5, || {
        let ready = || {
            let start = Instant::now();
            for _ in 0..lookups {
                black_box(main.linking().ready(black_box(symbol)));
            }
            start.elapsed() / lookups
        };
        thread::scope(|scope| {
            let other = scope.spawn(ready);
            ready().max(other.join().expect("no panic"))
        })
    });
    println!("ready, two threads  {two:8.2?}");
}

fn replace_row() {
    let (_session, main) = one();
    let replaced = each(200, |_| {
        main.redefine(read_one(&main)).expect("redefined");
        main.function("f0").expect("compiled");
    });
    println!("replace             {replaced:8.2?}");
}

/// The time to define methods one by one.
fn one_by_one(count: usize) -> Duration {
    let session = Session::new(options(), Workers::Caller).expect("a session");
    let main = session.create_dylib("main").expect("a new name");
    let start = Instant::now();
    for n in 0..count {
        let text = format!(
            "struct T{n}\n    a::Int64\nend\n\
             function h(t::T{n})::Int64\n\
             1 ─ %1 = Base.getfield(t, :a)::Int64\n\
             └──      return %1\n\
             end\n\
             function f{n}(n::Int64)::Int64\n\
             1 ─ %1 = %new(T{n}, n)::T{n}\n\
             │   %2 = dynamic Main.h(%1)::Any\n\
             │   %3 = Core.typeassert(%2, Int64)::Int64\n\
             └──      return %3\n\
             end\n"
        );
        let definitions = main.read("methods.jlir", text.as_bytes()).expect("it is well-formed");
        main.define(definitions.lazy()).expect("defined");
    }
    start.elapsed()
}

fn method_rows() {
    for count in [500, 1000, 2000, 4000] {
        let all = best(2, || one_by_one(count));
        println!("methods, {count:5}      {all:8.2?} ({:.2?})", all / count as u32);
    }
}

fn main() {
    const GROUPS: [(&str, fn()); 9] = [
        ("compile", compile_rows),
        ("engine", engine_row),
        ("tiers", tier_rows),
        ("interpreted", interpreted_rows),
        ("calls", call_rows),
        ("ready", ready_rows),
        ("lazy", || lazily(&options)),
        ("replace", replace_row),
        ("methods", method_rows),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in GROUPS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            run();
        }
    }
}

#[path = "../tests/support/doors.rs"]
mod doors;
