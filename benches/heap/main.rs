//! What allocating, collecting and throwing cost compiled code, beside C, C++, Java and node in the same run.
//!
//! ```text
//! cargo bench --bench heap              # everything
//! cargo bench --bench heap -- 64        # programs in a heap of 64 MB only
//! ```
//!
//! | program | what it does |
//! |---|---|
//! | trees | complete binary trees of growing depth, built and dropped, beside one that stays: depth 16 in 16 MB, 18 in 64, 20 in 256 |
//! | list | a queue of 100,000 cells: one is added at the tail, one taken off the head |
//! | table | 262,144 slots; a random one gets a new object |
//!
//! The programs are those of `heap.jlir`, `heap.c`, `Heap.java` and `heap.js`. Ours runs here, by the processor time of the
//! thread, in which collections are; the others in processes of their own, by that of the whole process: the second of two runs,
//! so that compiling is not held against them. Java has its serial collector with a heap of the same size, fixed; node the same
//! size for old objects. They take turns, and the median counts. Pauses are by the clock: what the collector says of them.
//!
//! Then: the smallest heap, in steps of an eighth of a megabyte, in which `table` runs; throws from so many frames below
//! the handler; a `try` that nothing is thrown in; polls. What is not installed is left out.

#[path = "../kernels/clock.rs"]
mod clock;
mod others;

use std::hint::black_box;
use std::process::ExitCode;
use std::process::{Command, Stdio};

use brolga::heap::{Generations, HeapOptions};
use brolga::{Engine, OptLevel, Options, Program, Unit};

use clock::cpu_seconds;
use others::{Others, Sample};

const ROUNDS: usize = 3;
const CHURN: i64 = 10_000_000;
/// Rounds of `table` for which a heap has to last.
const SURVIVED: i64 = 4_000_000;
/// Frames between a throw and its handler that are only left.
const FRAMES: [i64; 4] = [0, 1, 3, 9];

fn compiled(options: Options) -> (Engine, Unit) {
    let program = match Program::read("heap.jlir", include_bytes!("heap.jlir")) {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    };
    let engine = Engine::new(options).expect("an engine");
    let unit = engine.compile(&program).expect("native code");
    (engine, unit)
}

fn sized(bytes: usize, generations: Generations) -> Options {
    Options::new().heap(HeapOptions {
        limit: Some(bytes),
        initial: bytes,
        generations,
        ..HeapOptions::default()
    })
}

/// A program in a heap of its own.
fn ours(program: &str, size: i64, megabytes: usize, generations: Generations) -> Sample {
    let (engine, unit) = compiled(sized(megabytes << 20, generations));
    let run = unit.func::<(i64,), i64>(program).expect("a function");
    let began = cpu_seconds();
    let made = run.call((size,)).expect("a value");
    let seconds = cpu_seconds() - began;
    let stats = engine.runtime().heap().stats();
    let milliseconds = |pause: std::time::Duration| pause.as_secs_f64() * 1e3;
    Sample {
        each: seconds * 1e9 / made as f64,
        total: seconds * 1e3,
        p99: Some(milliseconds(stats.pauses.quantile(0.99).min(stats.pause_max))),
        max: Some(milliseconds(stats.pause_max)),
    }
}

/// The sample in the middle.
fn median(mut samples: Vec<Sample>) -> Option<Sample> {
    samples.sort_by(|a, b| a.each.total_cmp(&b.each));
    let middle = samples.len() / 2;
    samples.into_iter().nth(middle)
}

fn cells(sample: Option<Sample>, pauses: bool) -> String {
    let Some(sample) = sample else { return if pauses { " | | | |" } else { " | |" }.to_owned() };
    let pause = |time: Option<f64>| time.map_or_else(|| " |".to_owned(), |time| format!(" {time:.1} |"));
    let mut text = format!(" {:.1} | {:.0} |", sample.each, sample.total);
    if pauses {
        text += &(pause(sample.p99) + &pause(sample.max));
    }
    text
}

fn programs(others: &Others, only: Option<usize>) {
    println!(
        "\nNanoseconds for each allocation, milliseconds in all, and of pauses the 99th percentile and the longest:\n"
    );
    println!(
        "| program | MB | ours | ms | p99 | max | full only | ms | p99 | max | Java | ms | p99 | max | node | ms | p99 | max | malloc | ms |"
    );
    println!("|---|{}", "---:|".repeat(19));
    for megabytes in [16, 64, 256] {
        if only.is_some_and(|only| only != megabytes) {
            continue;
        }
        let depth = 16 + (megabytes / 16).ilog2() as i64;
        for (program, size) in [("trees", depth), ("list", CHURN), ("table", CHURN)] {
            let mut samples: [Vec<Sample>; 5] = Default::default();
            for _ in 0..ROUNDS {
                samples[0].push(ours(program, size, megabytes, Generations::Adaptive));
                samples[1].push(ours(program, size, megabytes, Generations::Off));
                samples[2].extend(others.java(program, size, megabytes));
                samples[3].extend(others.node(program, size, megabytes));
                samples[4].extend(others.c(program, size));
            }
            let [adaptive, full, java, node, c] = samples.map(median);
            let [adaptive, full, java, node] = [adaptive, full, java, node].map(|s| cells(s, true));
            println!("| {program} | {megabytes} |{adaptive}{full}{java}{node}{}", cells(c, false));
        }
    }
}

/// The smallest heap, in eighths of a megabyte, in which a process ends well: halved between one that is too small and one
/// that is not.
fn smallest(mut command: impl FnMut(usize) -> Command) -> Option<f64> {
    let mut runs = |eighths: usize| {
        let mut command = command(eighths * 128);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let (mut fails, mut lasts) = (8, 512);
    if !runs(lasts) {
        return None;
    }
    while fails + 1 < lasts {
        let middle = (fails + lasts) / 2;
        if runs(middle) { lasts = middle } else { fails = middle }
    }
    Some(lasts as f64 / 8.0)
}

fn survival(others: &Others) {
    let own = std::env::current_exe().expect("this program");
    let ours = smallest(|kilobytes| {
        let mut command = Command::new(&own);
        command.arg(format!("--survive={kilobytes}"));
        command
    });
    let java = smallest(|kilobytes| others.java_once(kilobytes, SURVIVED));
    let show = |size: Option<f64>| size.map_or_else(|| "–".to_owned(), |size| format!("{size:.3} MB"));
    println!("\nThe smallest heap in which `table` runs: ours {}, Java {}", show(ours), show(java));
}

/// Nanoseconds of each of so many rounds of a call: the best of several.
fn each(unit: &Unit, name: &str, (rounds, frames, odd): (i64, i64, i64)) -> f64 {
    let run = unit.func::<(i64, i64, i64), i64>(name).expect("a function");
    let timed = || {
        let began = cpu_seconds();
        black_box(run.call((rounds, frames, odd)).expect("a value"));
        (cpu_seconds() - began) * 1e9 / rounds as f64
    };
    (0..5).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

fn throws(others: &Others) {
    println!(
        "\nNanoseconds for a throw that is caught, by how many frames it leaves, and for a call that throws nothing:\n"
    );
    println!("| | 1 frame | 2 | 4 | 10 | call in a `try` | call |");
    println!("|---|{}", "---:|".repeat(6));
    let options = Options::new().opt_level(OptLevel::O2);
    let options = options.without_passes(&["inline", "unfold-recursion", "tail-recursion"]);
    let (_engine, unit) = compiled(options.expect("passes"));
    let mut times: Vec<f64> = FRAMES.map(|frames| each(&unit, "guarded", (1_000_000, frames, 0))).to_vec();
    times.push(each(&unit, "guarded", (50_000_000, 0, 1)));
    times.push(each(&unit, "bare", (50_000_000, 0, 1)));
    let row = |name: &str, times: &[f64]| {
        let cell = |index: usize| times.get(index).map_or_else(|| " |".to_owned(), |t| format!(" {t:.1} |"));
        println!("| {name} |{}", (0..6).map(cell).collect::<String>());
    };
    row("ours", &times);
    row("C++", &others.throws_in_cpp());
    row("Java", &others.throws_in_java());
    row("node", &others.throws_in_node());
}

fn polls() {
    let times = [vec!["polls"], vec![]].map(|without| {
        let options = Options::new().opt_level(OptLevel::O2).without_passes(&without).expect("passes");
        let (_engine, unit) = compiled(options);
        let run = unit.func::<(i64,), i64>("polled").expect("a function");
        let rounds = 100_000;
        let timed = || {
            let began = cpu_seconds();
            black_box(run.call((rounds,)).expect("a value"));
            (cpu_seconds() - began) * 1e9 / (rounds * 1000) as f64
        };
        (0..5).map(|_| timed()).fold(f64::INFINITY, f64::min)
    });
    println!(
        "\nA loop of four operations: {:.2} ns a round with a poll in each, {:.2} without",
        times[0], times[1]
    );
}

fn main() -> ExitCode {
    let limit = std::env::args().find_map(|arg| arg.strip_prefix("--survive=")?.parse::<usize>().ok());
    if let Some(kilobytes) = limit {
        let (_engine, unit) = compiled(sized(kilobytes << 10, Generations::default()));
        let run = unit.func::<(i64,), i64>("table").expect("a function");
        return if run.call((SURVIVED,)).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let only = std::env::args().find_map(|arg| arg.parse::<usize>().ok());
    let others = Others::build();
    programs(&others, only);
    survival(&others);
    throws(&others);
    polls();
    ExitCode::SUCCESS
}
