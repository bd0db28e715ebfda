//! Kernels that a real Julia printed: the time of a call, and of reading and compiling, beside Julia where there is one.
//!
//! ```text
//! cargo bench --bench julia                          all kernels
//! cargo bench --bench julia -- sieve                 those with this in their names
//! JULIA=…/bin/julia cargo bench --bench julia        beside this Julia; without the variable, the one on the path
//! ```
//!
//! The first table has programs of `tests/julia/`, whose source is `tests/julia/source/kernels.jl`: Julia compiles and runs that source, and Brolga the typed IR that Julia 1.5
//! printed of it. The second one has the programs `../shared/julia/k_*.txt` beside a checkout, where they are there; they have no source, and `../shared/julia/speed.md` has times
//! of Julia on the machine where they were printed.
//!
//! The checks of a program hold before it is timed. A time is the best of several runs, so other processes count for little. Compile times are of a fresh engine: reading
//! the text, and making the code of the kernel and all that it calls. Julia's is that of the first call, which infers and compiles.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use brolga::{Engine, Evaluator, OptLevel, Options, Program, Unit, Verdict};

/// The arguments of a kernel.
#[derive(Clone, Copy)]
enum Args {
    One(i64),
    Two(i64, i64),
}

/// Kernels with a source, each with a size that makes a call take between some microseconds and some milliseconds.
const WITH_SOURCE: [(&str, i64); 29] = [
    ("axpy", 10_000),
    ("catcherr", 1_000),
    ("closures", 100_000),
    ("collatz", 10_000),
    ("dictsum", 10_000),
    ("dot", 10_000),
    ("dotsimd", 10_000),
    ("fibr", 25),
    ("filtersum", 100_000),
    ("histogram", 100_000),
    ("joinints", 1_000),
    ("life", 100),
    ("mandelc", 60),
    ("mapsum", 10_000),
    ("matmul", 60),
    ("maxmin", 10_000),
    ("nqueens", 7),
    ("powermod_sum", 10_000),
    ("prefix", 10_000),
    ("quicksort", 10_000),
    ("shapes", 10_000),
    ("sieve", 100_000),
    ("sortby", 5_000),
    ("spectral", 100),
    ("strbuild", 1_000),
    ("trees", 14),
    ("utf8count", 10_000),
    ("vecsum", 100_000),
    ("wordcount", 10_000),
];

/// Kernels without a source.
const SHARED: [(&str, Args); 11] = [
    ("k_crc", Args::One(100_000)),
    ("k_mandel", Args::One(40)),
    ("k_parseint", Args::One(1_000)),
    ("k_quicksort", Args::One(20_000)),
    ("k_ratstat", Args::One(1_000)),
    ("k_shapes", Args::Two(1_000, 10)),
    ("k_sieve", Args::One(100_000)),
    ("k_sieve_bool", Args::One(100_000)),
    ("k_sortcmp", Args::One(20_000)),
    ("k_strcat", Args::One(1_000)),
    ("k_sumint", Args::Two(10_000, 10)),
];

const LEVELS: [OptLevel; 3] = [OptLevel::O0, OptLevel::O2, OptLevel::O3];

/// How long a kernel is called over and over at one level.
const BUDGET: Duration = Duration::from_millis(300);

fn main() {
    // `cargo bench` hands `--bench` through.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own: Vec<(&str, i64)> = WITH_SOURCE.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    let julia = times_of_julia(&root.join("tests/julia/source/time.jl"), &own);
    header(julia.is_some());
    let mut ratios: [Vec<f64>; 3] = Default::default();
    for (name, size) in own {
        let path = root.join(format!("tests/julia/{name}_15.txt"));
        let beside = julia.as_ref().and_then(|times| times.get(name));
        let Some(calls) = measure(&path, name, Args::One(size), beside.copied()) else { continue };
        for (ratios, call) in ratios.iter_mut().zip(calls) {
            ratios.extend(beside.map(|beside| micros(call) / beside.call));
        }
    }
    if ratios[0].len() > 1 {
        let mean = |ratios: &Vec<f64>| {
            (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
        };
        let [o0, o2, o3] = [0, 1, 2].map(|at| mean(&ratios[at]));
        println!("geometric mean ÷ Julia, {} kernels: O0 {o0:.2}, O2 {o2:.2}, O3 {o3:.2}", ratios[0].len());
    }
    let Some(folder) = root.ancestors().map(|dir| dir.join("shared/julia")).find(|dir| dir.is_dir()) else {
        println!("there is no folder `shared/julia` beside the checkout");
        return;
    };
    println!();
    header(false);
    for (name, args) in SHARED {
        if is_wanted(name) {
            measure(&folder.join(format!("{name}.txt")), name, args, None);
        }
    }
}

/// Times of Julia: microseconds of a call, milliseconds of the first one.
#[derive(Clone, Copy)]
struct Julia {
    call: f64,
    first: f64,
}

/// Times of Julia by kernel; nothing where there is none.
#[expect(clippy::disallowed_methods, reason = "a bench is a command of its own")]
fn times_of_julia(script: &Path, kernels: &[(&str, i64)]) -> Option<BTreeMap<String, Julia>> {
    let julia = std::env::var_os("JULIA").map_or_else(|| PathBuf::from("julia"), PathBuf::from);
    let mut command = Command::new(julia);
    command.arg("-O2").arg(script);
    for (name, size) in kernels {
        command.args([name.to_string(), size.to_string()]);
    }
    let output = match command.output() {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            println!("julia failed: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Err(error) => {
            println!("without Julia: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((name, Julia { call: words.next()?.parse().ok()?, first: words.next()?.parse().ok()? }))
    };
    Some(text.lines().filter_map(time).collect())
}

fn header(beside_julia: bool) {
    print!("{:<14}{:>9}", "kernel", "read µs");
    LEVELS.iter().for_each(|level| print!("{:>12}", format!("{level:?} µs")));
    if beside_julia {
        print!("{:>12}  ÷ Julia: O0, O2, O3; Julia's first call ms", "Julia µs");
    }
    println!("   compile µs: O0, O2, O3");
}

/// Measures a program at all levels and prints a row. The times of a call.
fn measure(path: &Path, name: &str, args: Args, beside: Option<Julia>) -> Option<Vec<Duration>> {
    let Ok(text) = std::fs::read(path) else {
        println!("{name:<14} has no file");
        return None;
    };
    let (program, read) = best(5, || Program::read(name, &text).expect("a program that reads"));
    let (mut calls, mut compiles) = (Vec::new(), Vec::new());
    for level in LEVELS {
        let (unit, compile) = best(5, || {
            let engine = Engine::new(crate::doors::open(Options::new().opt_level(level))).expect("an engine");
            engine.compile(&program).expect("a unit")
        });
        let engine = Engine::new(crate::doors::open(Options::new().opt_level(level))).expect("an engine");
        let mut evaluator = Evaluator::native(&program, &engine);
        for check in program.checks() {
            let verdict = evaluator.check(check);
            assert!(matches!(verdict, Verdict::Passed), "{name}, {level:?}: {verdict:?}");
        }
        compiles.push(compile);
        calls.push(time_of_call(&unit, name, args, &program));
    }
    print!("{name:<14}{:>9.0}", micros(read));
    calls.iter().for_each(|&call| print!("{:>12.2}", micros(call)));
    if let Some(Julia { call: julia, first }) = beside {
        print!("{julia:>12.2}");
        calls.iter().for_each(|&call| print!("{:>8.2}", micros(call) / julia));
        print!("{first:>9.1}");
    }
    compiles.iter().for_each(|&compile| print!("{:>9.0}", micros(compile)));
    println!();
    Some(calls)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The last result and the shortest time of some runs.
fn best<T>(runs: usize, mut run: impl FnMut() -> T) -> (T, Duration) {
    let mut shortest = Duration::MAX;
    let mut last = None;
    for _ in 0..runs {
        let begin = Instant::now();
        last = Some(run());
        shortest = shortest.min(begin.elapsed());
    }
    (last.expect("at least one run"), shortest)
}

fn time_of_call(unit: &Unit, name: &str, args: Args, program: &Program) -> Duration {
    let is_float = program.unit().checks.first().is_some_and(|check| {
        program.source().slice(check.span).rsplit("==").next().is_some_and(|value| value.contains('.'))
    });
    macro_rules! timed {
        ($args:expr, $types:ty) => {
            match is_float {
                true => {
                    let func = unit.func::<$types, f64>(name).expect("a function");
                    shortest(|| func.call(black_box($args)).expect("a value"))
                }
                false => {
                    let func = unit.func::<$types, i64>(name).expect("a function");
                    shortest(|| func.call(black_box($args)).expect("a value"))
                }
            }
        };
    }
    match args {
        Args::One(n) => timed!((n,), (i64,)),
        Args::Two(n, m) => timed!((n, m), (i64, i64)),
    }
}

/// The shortest of the calls that fit into the budget.
fn shortest<R>(mut call: impl FnMut() -> R) -> Duration {
    let begin = Instant::now();
    let mut shortest = Duration::MAX;
    while begin.elapsed() < BUDGET {
        let start = Instant::now();
        black_box(call());
        shortest = shortest.min(start.elapsed());
    }
    shortest
}

#[path = "../tests/support/doors.rs"]
mod doors;
