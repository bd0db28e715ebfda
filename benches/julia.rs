//! The kernels among the programs that a real Julia printed: the time of a call, and of reading and compiling.
//!
//! ```text
//! cargo bench --bench julia                 all kernels
//! cargo bench --bench julia -- sieve        those with this in their names
//! ```
//!
//! The programs are `../shared/julia/k_*.txt` beside a checkout; without the folder there is nothing to measure. Their checks hold before anything is
//! timed. A time is the best of several runs, so other processes count for little. Compile times are of a fresh engine: reading the text, and
//! making the code of the kernel and all that it calls.
//!
//! Not done: Julia beside it. The folder has the typed IR and not the source that Julia would compile; `../shared/julia/speed.md` has times of Julia on the
//! machine where the programs were printed.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use brolga::{Engine, OptLevel, Options, Program, Unit};

/// The arguments of a kernel.
#[derive(Clone, Copy)]
enum Args {
    One(i64),
    Two(i64, i64),
}

/// The kernels with arguments that make a call take between a tenth of a millisecond and some milliseconds.
const KERNELS: [(&str, Args); 11] = [
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(folder) = root.ancestors().map(|dir| dir.join("shared/julia")).find(|dir| dir.is_dir()) else {
        println!("there is no folder `shared/julia` beside the checkout");
        return;
    };
    println!(
        "{:<14}{:>10}{:>12}{:>12}{:>12}   compile µs: O0, O2, O3",
        "kernel", "read µs", "O0 µs", "O2 µs", "O3 µs"
    );
    for (name, args) in KERNELS {
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let path = folder.join(format!("{name}.txt"));
        let Ok(text) = std::fs::read(&path) else {
            println!("{name:<14} has no file");
            continue;
        };
        let (program, read) = best(5, || Program::read(name, &text).expect("a program that reads"));
        let (mut calls, mut compiles) = (Vec::new(), Vec::new());
        for level in LEVELS {
            let (unit, compile) = best(5, || {
                let engine =
                    Engine::new(crate::doors::open(Options::new()).opt_level(level)).expect("an engine");
                engine.compile(&program).expect("a unit")
            });
            compiles.push(compile);
            calls.push(time_of_call(&unit, name, args, &program));
        }
        print!("{name:<14}{:>10.0}", micros(read));
        calls.iter().for_each(|&call| print!("{:>12.2}", micros(call)));
        compiles.iter().for_each(|&compile| print!("{:>9.0}", micros(compile)));
        println!();
    }
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
