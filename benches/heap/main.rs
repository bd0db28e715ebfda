//! The cost of allocation, collection and exceptions in compiled code, beside C, C++, Java and node in the same run.
//!
//! ```text
//! cargo bench --bench heap              # everything
//! cargo bench --bench heap -- 64        # programs in a heap of 64 MB only
//! cargo bench --bench heap -- 1         # quickly, to see that it runs
//! ```
//!
//! | program | what it does |
//! |---|---|
//! | trees | complete binary trees of growing depth, built and dropped, beside one that stays: depth 16 in 16 MB, 18 in 64, 20 in 256 |
//! | list | a queue of 100,000 cells: one is added at the tail, one taken off the head |
//! | table | 262,144 slots; a random one gets a new object |
//! | arrays | 256 slots; a random one gets a new array of 20,000 bytes; only for the smallest heap |
//!
//! The programs are those of `heap.jlir`, `heap.c`, `Heap.java` and `heap.js`. Each runs in its own process, for a hundred seconds at
//! most. Ours counts the processor time of the thread, collections included; the others that of the whole process. Of two runs in the
//! process the second counts, for all of them, which excludes compiling and first touches of memory.
//! Java has its serial collector with a heap of the same size, fixed; node the same size for old objects. They take turns, and the
//! median of three counts; a program that takes longer than ten seconds, or fails, has one turn. Pauses are wall-clock times as the
//! collector reports them, in both runs.
//!
//! Then: the smallest heaps, in steps of an eighth of a megabyte, in which `table` and `arrays` run. Java rounds the requested size up, to 2 MB
//! here; the size that it takes counts. It runs with references of four bytes, its default, and of eight, as ours are. Then throws from so many frames
//! below the handler; a `try` in which nothing throws; polls. Systems that are not installed are left out.

#[path = "../kernels/clock.rs"]
mod clock;
mod limited;
mod others;

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use brolga::heap::{Generations, HeapOptions};
use brolga::{Engine, OptLevel, Options, Program, Unit};

use clock::cpu_seconds;
use limited::{Missing, output};
use others::{Others, Sample, own};

const ROUNDS: usize = 3;
/// A longer run has one turn.
const LONG: Duration = Duration::from_secs(10);
const CHURN: i64 = 10_000_000;
/// Programs, and the rounds for which a heap has to last; how long they may take: a collector can be busy for ever.
const SURVIVED: [(&str, i64); 2] = [("table", 2_000_000), ("arrays", 100_000)];
const PATIENCE: Duration = Duration::from_secs(40);
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
    crate::doors::open(Options::new()).heap(HeapOptions {
        limit: Some(bytes),
        initial: bytes,
        generations,
        ..HeapOptions::default()
    })
}

/// The arguments of a process that runs one of our programs.
fn arguments(program: &str, size: i64, kilobytes: usize, generations: &str) -> Vec<String> {
    vec![
        "--run".to_owned(),
        program.to_owned(),
        size.to_string(),
        kilobytes.to_string(),
        generations.to_owned(),
    ]
}

/// Runs a program in its own heap, twice unless once is requested, and prints what the last run took.
fn run(arguments: &[String]) -> ExitCode {
    let [program, size, kilobytes, generations] = arguments else { return ExitCode::FAILURE };
    let (Ok(size), Ok(kilobytes)) = (size.parse::<i64>(), kilobytes.parse::<usize>()) else {
        return ExitCode::FAILURE;
    };
    let kinds = if generations == "full" { Generations::Off } else { Generations::Adaptive };
    let (engine, unit) = compiled(sized(kilobytes << 10, kinds));
    let run = unit.func::<(i64,), i64>(program).expect("a function");
    let timed = || {
        let began = cpu_seconds();
        run.call((size,)).map(|made| (made, cpu_seconds() - began))
    };
    let again = |first| if generations == "once" { Ok(first) } else { timed() };
    let (made, seconds) = match timed().and_then(again) {
        Ok(last) => last,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let stats = engine.runtime().heap().stats();
    let milliseconds = |pause: Duration| pause.as_secs_f64() * 1e3;
    let (each, total) = (seconds * 1e9 / made as f64, seconds * 1e3);
    let p99 = milliseconds(stats.pauses.quantile(0.99).min(stats.pause_max));
    println!("result {each} {total} {p99} {}", milliseconds(stats.pause_max));
    ExitCode::SUCCESS
}

/// The turns of one program.
struct Column<'a> {
    turn: Box<dyn Fn() -> Result<Sample, Missing> + 'a>,
    samples: Vec<Sample>,
    /// Why there are no more.
    missing: Option<Missing>,
    is_long: bool,
}

impl<'a> Column<'a> {
    fn new(turn: impl Fn() -> Result<Sample, Missing> + 'a) -> Column<'a> {
        Column { turn: Box::new(turn), samples: Vec::new(), missing: None, is_long: false }
    }

    fn take_turn(&mut self) {
        if self.missing.is_some() || self.is_long {
            return;
        }
        let began = Instant::now();
        match (self.turn)() {
            Ok(sample) => self.samples.push(sample),
            Err(missing) => self.missing = Some(missing),
        }
        self.is_long = began.elapsed() > LONG;
    }

    /// The sample in the middle, or why there is none.
    fn cells(mut self, pauses: bool) -> String {
        self.samples.sort_by(|a, b| a.each.total_cmp(&b.each));
        let sample = match (self.missing, self.samples.get(self.samples.len() / 2)) {
            (None, Some(sample)) => *sample,
            (missing, _) => {
                let why = missing.map_or_else(String::new, |missing| missing.to_string());
                return format!(" {why} |{}", " |".repeat(if pauses { 3 } else { 1 }));
            }
        };
        let pause = |time: Option<f64>| time.map_or_else(|| " |".to_owned(), |time| format!(" {time:.1} |"));
        let mut text = format!(" {:.1} | {:.0} |", sample.each, sample.total);
        if pauses {
            text += &(pause(sample.p99) + &pause(sample.max));
        }
        text
    }
}

/// The programs in a heap of so many megabytes.
fn programs(others: &Others, megabytes: usize) {
    let depth = 16 + (megabytes as i64 / 16).max(1).ilog2() as i64;
    // For a heap that is too small for them there is less to do.
    let (depth, churn) = if megabytes < 16 { (8, CHURN / 100) } else { (depth, CHURN) };
    let heap = megabytes.max(16);
    for (program, size) in [("trees", depth), ("list", churn), ("table", churn)] {
        let ours = |generations| move || own(&arguments(program, size, heap << 10, generations));
        let mut columns = [
            Column::new(ours("adaptive")),
            Column::new(ours("full")),
            Column::new(|| others.java(program, size, heap)),
            Column::new(|| others.node(program, size, heap)),
            Column::new(|| others.c(program, size)),
        ];
        for _ in 0..ROUNDS {
            columns.iter_mut().for_each(Column::take_turn);
        }
        let [adaptive, full, java, node, c] = columns;
        let [adaptive, full, java, node] = [adaptive, full, java, node].map(|column| column.cells(true));
        println!("| {program} | {heap} |{adaptive}{full}{java}{node}{}", c.cells(false));
    }
}

/// The smallest heap, in kilobytes, in which a process ends well and in time: halved between one that is too small and one that is not.
fn smallest(mut command: impl FnMut(usize) -> Command) -> Option<usize> {
    let mut runs = |eighths: usize| output(&mut command(eighths * 128), PATIENCE).is_ok();
    let (mut fails, mut lasts) = (8, 512);
    if !runs(lasts) {
        return None;
    }
    while fails + 1 < lasts {
        let middle = (fails + lasts) / 2;
        if runs(middle) { lasts = middle } else { fails = middle }
    }
    Some(lasts * 128)
}

fn survival(others: &Others) {
    let own = std::env::current_exe().expect("this program");
    let show = |size: Option<f64>| size.map_or_else(|| " |".to_owned(), |size| format!(" {size:.3} |"));
    println!("\nThe smallest heap in which a program runs, in megabytes:\n");
    println!("| program | ours | Java | Java, references of 8 bytes |\n|---|---:|---:|---:|");
    for (program, rounds) in SURVIVED {
        let ours = smallest(|kilobytes| {
            let mut command = Command::new(&own);
            command.args(arguments(program, rounds, kilobytes, "once"));
            command
        });
        let java = [false, true].map(|is_wide| {
            let told = smallest(|kilobytes| others.java_once(program, rounds, kilobytes, is_wide))?;
            others.java_takes(told)
        });
        let ours = show(ours.map(|kilobytes| kilobytes as f64 / 1024.0));
        println!("| {program} |{ours}{}{}", show(java[0]), show(java[1]));
    }
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
    let options = crate::doors::open(Options::new()).opt_level(OptLevel::O2);
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
        let options = crate::doors::open(Options::new())
            .opt_level(OptLevel::O2)
            .without_passes(&without)
            .expect("passes");
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
        "\nA loop of four operations: {:.2} ns an iteration with a poll in each, {:.2} without",
        times[0], times[1]
    );
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == "--run"
    {
        return run(rest);
    }
    let only: Option<usize> = words.iter().find_map(|word| word.parse().ok());
    let began = Instant::now();
    let others = Others::build();
    println!(
        "\nNanoseconds for each allocation, milliseconds in all, and of pauses the 99th percentile and the longest:\n"
    );
    println!(
        "| program | MB | ours | ms | p99 | max | full only | ms | p99 | max | Java | ms | p99 | max | node | ms | p99 | max | malloc | ms |"
    );
    println!("|---|{}", "---:|".repeat(19));
    match only {
        Some(megabytes) => programs(&others, megabytes),
        None => [16, 64, 256].into_iter().for_each(|megabytes| programs(&others, megabytes)),
    }
    survival(&others);
    throws(&others);
    polls();
    println!("\nIn all {} s", began.elapsed().as_secs());
    ExitCode::SUCCESS
}

#[path = "../../tests/support/doors.rs"]
mod doors;
