//! Programs that a real Julia printed: the time of a call, and of reading and compiling, beside Julia where there is one.
//!
//! ```text
//! cargo bench --bench julia                          all programs
//! cargo bench --bench julia -- sieve                 those with this in their names
//! JULIA=…/bin/julia cargo bench --bench julia        beside this Julia; without the variable, the one on the path
//! ```
//!
//! A table for each file of `tests/julia/source/` in [`SOURCES`]: Julia compiles and runs that source, and Brolga the typed IR that Julia 1.5 printed of it, which is in
//! `tests/julia/` or `tests/julia/timed/`. `const TIMED` of a source has the names and sizes. A last table has the programs `../shared/julia/k_*.txt` beside a checkout, where they
//! are there; they have no source, and `../shared/julia/speed.md` has times of Julia on the machine where they were printed.
//!
//! The checks of a program hold before it is timed. A time is the best of several calls, in two turns of Julia and of each level one after the other, so other processes count for
//! little. Compile times are of a fresh engine: reading the text, and making the code of the kernel and all that it calls. Julia's compile time is the first call's, which infers and
//! compiles.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brolga::{Engine, Evaluator, OptLevel, Options, Program, Unit, Verdict};

/// The sources, without `.jl`, and what the programs of each are.
const SOURCES: [(&str, &str); 6] = [
    ("kernels", "kernels"),
    ("sixth", "loops over arrays, ranges and dictionaries"),
    ("seventh", "loops in lanes, text of numbers"),
    ("eighth", "ordinary code of many kinds"),
    ("ninth", "more of it, measured last"),
    ("tenth", "six programs like the slowest of these, measured untuned"),
];

/// Programs without a source.
const SHARED: [(&str, &[i64]); 11] = [
    ("k_crc", &[100_000]),
    ("k_mandel", &[40]),
    ("k_parseint", &[1_000]),
    ("k_quicksort", &[20_000]),
    ("k_ratstat", &[1_000]),
    ("k_shapes", &[1_000, 10]),
    ("k_sieve", &[100_000]),
    ("k_sieve_bool", &[100_000]),
    ("k_sortcmp", &[20_000]),
    ("k_strcat", &[1_000]),
    ("k_sumint", &[10_000, 10]),
];

/// A program that is not part of the means: Julia takes some hundred times as long for an exception.
const NOT_IN_MEANS: &str = "catcherr";

const LEVELS: [OptLevel; 3] = [OptLevel::O0, OptLevel::O2, OptLevel::O3];

/// How long a program is called over and over at one level, in one turn.
const BUDGET: Duration = Duration::from_millis(150);

/// Rows whose quotient at O2 is above this are listed at the end.
const SLOW: f64 = 1.5;

fn main() {
    // `cargo bench` hands `--bench` through.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/julia");
    let mut slow = Vec::new();
    for (source, what) in SOURCES {
        let source = folder.join(format!("source/{source}.jl"));
        let programs: Vec<(String, Vec<i64>)> =
            timed(&source).into_iter().filter(|(name, _)| is_wanted(name)).collect();
        if programs.is_empty() {
            continue;
        }
        let mut julia = Julia::start(&source);
        println!("{what}");
        header(julia.is_some());
        let mut ratios = Vec::new();
        for (name, size) in &programs {
            let rows = ["", "timed/"].map(|place| folder.join(format!("{place}{name}_15.txt")));
            let Some(path) = rows.iter().find(|path| path.is_file()) else {
                println!("{name:<14} has no rows");
                continue;
            };
            let Some(row) = measure(path, name, size, julia.as_mut()) else { continue };
            if row[1] > SLOW {
                slow.push(format!("{name} {:.2}", row[1]));
            }
            if name != NOT_IN_MEANS {
                ratios.push(row);
            }
        }
        if ratios.len() > 1 {
            let mean = |at: usize| {
                let logarithms = ratios.iter().map(|row: &[f64; 3]| row[at].ln());
                (logarithms.sum::<f64>() / ratios.len() as f64).exp()
            };
            let [o0, o2, o3] = [0, 1, 2].map(mean);
            println!("geometric mean ÷ Julia, {} programs: O0 {o0:.2}, O2 {o2:.2}, O3 {o3:.2}", ratios.len());
        }
        println!();
    }
    if !slow.is_empty() {
        println!("above {SLOW} at O2: {}\n", slow.join(", "));
    }
    let Some(folder) = folder.ancestors().map(|dir| dir.join("shared/julia")).find(|dir| dir.is_dir()) else {
        println!("there is no folder `shared/julia` beside the checkout");
        return;
    };
    header(false);
    for (name, size) in SHARED {
        if is_wanted(name) {
            measure(&folder.join(format!("{name}.txt")), name, size, None);
        }
    }
}

/// The names and sizes in `const TIMED` of a source: `("name", (1000, 10)), ("other", (5,)),`.
fn timed(source: &Path) -> Vec<(String, Vec<i64>)> {
    let text = std::fs::read_to_string(source).expect("a source");
    let list = text.split_once("const TIMED = [").expect("a list of programs").1;
    let list = list.split_once(']').expect("the end of the list").0;
    let program = |entry: &str| {
        let (name, size) = entry.split_once("\", (").expect("a name and a size");
        let numbers = size.split([',', ')']).filter_map(|word| word.trim().parse().ok());
        (name.to_owned(), numbers.collect())
    };
    list.split("(\"").skip(1).map(program).collect()
}

/// A process of Julia that times programs of one source.
struct Julia {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

/// Times of Julia: microseconds of a call, milliseconds of the first one.
#[derive(Clone, Copy)]
struct Times {
    call: f64,
    first: f64,
}

impl Julia {
    /// `None` without a Julia.
    #[expect(clippy::disallowed_methods, reason = "a bench is a command of its own")]
    fn start(source: &Path) -> Option<Julia> {
        let julia = std::env::var_os("JULIA").map_or_else(|| PathBuf::from("julia"), PathBuf::from);
        let script = source.with_file_name("time.jl");
        let mut command = Command::new(julia);
        command.arg("-O2").arg(script).arg(source).stdin(Stdio::piped()).stdout(Stdio::piped());
        match command.spawn() {
            Ok(mut process) => {
                let answers = BufReader::new(process.stdout.take().expect("a pipe"));
                Some(Julia { process, answers })
            }
            Err(error) => {
                println!("without Julia: {error}");
                None
            }
        }
    }

    fn times(&mut self, name: &str, size: &[i64]) -> Times {
        let words: Vec<String> = size.iter().map(i64::to_string).collect();
        let question = format!("{name} {}\n", words.join(" "));
        self.process.stdin.as_mut().expect("a pipe").write_all(question.as_bytes()).expect("Julia reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("Julia answers");
        let numbers: Vec<f64> = answer.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[call, first] = numbers.as_slice() else { panic!("{name}: Julia answers {answer:?}") };
        Times { call, first }
    }
}

impl Drop for Julia {
    fn drop(&mut self) {
        // The end of its input ends the process.
        self.process.stdin = None;
        // How it ended says nothing about the times.
        let _ = self.process.wait();
    }
}

fn header(beside_julia: bool) {
    print!("{:<14}{:>9}", "kernel", "read µs");
    LEVELS.iter().for_each(|level| print!("{:>12}", format!("{level:?} µs")));
    if beside_julia {
        print!("{:>12}  ÷ Julia: O0, O2, O3; Julia's first call ms", "Julia µs");
    }
    println!("   compile µs: O0, O2, O3");
}

/// Measures a program at all levels and prints a row. The times of a call ÷ Julia's, where there is one.
fn measure(path: &Path, name: &str, size: &[i64], mut julia: Option<&mut Julia>) -> Option<[f64; 3]> {
    let Ok(text) = std::fs::read(path) else {
        println!("{name:<14} has no file");
        return None;
    };
    let (program, read) = best(5, || Program::read(name, &text).expect("a program that reads"));
    let mut compiles = Vec::new();
    let units = LEVELS.map(|level| {
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
        unit
    });
    let mut calls = [Duration::MAX; 3];
    let mut beside: Option<Times> = None;
    for _ in 0..2 {
        if let Some(julia) = &mut julia {
            let now = julia.times(name, size);
            let before = beside.unwrap_or(now);
            beside = Some(Times { call: now.call.min(before.call), first: before.first });
        }
        for (call, unit) in calls.iter_mut().zip(&units) {
            let Some(now) = time_of_call(unit, name, size, &program) else {
                println!("{name:<14} returns an object, so it is not timed");
                return None;
            };
            *call = (*call).min(now);
        }
    }
    print!("{name:<14}{:>9.0}", micros(read));
    calls.iter().for_each(|&call| print!("{:>12.2}", micros(call)));
    if let Some(Times { call: julia, first }) = beside {
        print!("{julia:>12.2}");
        calls.iter().for_each(|&call| print!("{:>8.2}", micros(call) / julia));
        print!("{first:>9.1}");
    }
    compiles.iter().for_each(|&compile| print!("{:>9.0}", micros(compile)));
    println!();
    beside.map(|julia| calls.map(|call| micros(call) / julia.call))
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

/// `None` for a function whose result is an object.
fn time_of_call(unit: &Unit, name: &str, size: &[i64], program: &Program) -> Option<Duration> {
    let is_float = program.unit().checks.first().is_some_and(|check| {
        program.source().slice(check.span).rsplit("==").next().is_some_and(|value| value.contains('.'))
    });
    macro_rules! timed {
        ($args:expr, $types:ty) => {
            match is_float {
                true => {
                    let func = unit.func::<$types, f64>(name).ok()?;
                    shortest(|| func.call(black_box($args)).expect("a value"))
                }
                false => {
                    let func = unit.func::<$types, i64>(name).ok()?;
                    shortest(|| func.call(black_box($args)).expect("a value"))
                }
            }
        };
    }
    Some(match *size {
        [n] => timed!((n,), (i64,)),
        [n, m] => timed!((n, m), (i64, i64)),
        _ => panic!("{name} has {} sizes", size.len()),
    })
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
