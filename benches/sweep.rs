//! How the cost of each construct grows: reading, and compiling at `O0` and at `O2`, with more and more of it.
//!
//! ```text
//! cargo bench --bench sweep -- 2000,8000,32000            all constructs
//! cargo bench --bench sweep -- 1000,4000 'methods'        those with this in their names
//! ```
//!
//! Times are those of the processor that the running thread has used, so other processes count for little, but for short ones.

use std::time::{Duration, Instant};

use brolga::{Engine, OptLevel, Options, Program};
use brolga_fuzz::constructs::{self, Construct, Outcome};

/// A stage whose cost is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Read,
    Compile(OptLevel),
}

const STAGES: [Stage; 3] = [Stage::Read, Stage::Compile(OptLevel::O0), Stage::Compile(OptLevel::O2)];

/// How much more twice as much may cost.
const MOST: f64 = 2.5;

/// Costs below this are noise: growth is counted from here.
const LEAST: u64 = 12_000_000;

/// Linux counts the processor's time a tick at a time: it may be so much more.
const TICKS: u64 = 8_000_000;

/// A moment, by the clock and by what the running thread has spent on a processor, if the system tells that.
struct Moment {
    clock: Instant,
    spent: Option<u64>,
}

impl Moment {
    fn now() -> Moment {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let spent = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Moment { clock: Instant::now(), spent }
    }

    /// Nanoseconds since then.
    fn elapsed(&self) -> u64 {
        let clock = self.clock.elapsed().as_nanos() as u64;
        let spent = self.spent.zip(Moment::now().spent).map(|(before, now)| now - before);
        spent.map_or(clock, |spent| clock.min(spent + TICKS))
    }
}

/// The cost of a stage for a text, in nanoseconds.
fn cost(stage: Stage, text: &str) -> u64 {
    let begin = Moment::now();
    let program = Program::read("sweep.jlir", text.as_bytes());
    let Stage::Compile(level) = stage else { return begin.elapsed() };
    let (Ok(program), Ok(engine)) =
        (program, Engine::new(crate::doors::open(Options::new()).opt_level(level)))
    else {
        return 0;
    };
    let begin = Moment::now();
    let unit = engine.compile(&program);
    let cost = begin.elapsed();
    // Constructs that have no native form count as far as that takes to find out.
    drop(unit);
    cost
}

fn applies(stage: Stage, construct: &Construct) -> bool {
    construct.outcome == Outcome::Compiled || stage == Stage::Read
}

/// A table of the sizes: milliseconds, and how much more the next size costs for each doubling. Names the rows that grow by more than
/// [`MOST`].
fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let sizes = given.first().map_or("1000,4000", String::as_str);
    let only = given.get(1).map_or("", String::as_str);
    let sizes: Vec<usize> = sizes.split(',').filter_map(|size| size.parse().ok()).collect();
    let mut steep = Vec::new();
    println!(
        "{:<42} {:<12} {}",
        "construct",
        "stage",
        sizes.iter().map(|n| format!("{n:>12}")).collect::<String>()
    );
    for construct in constructs::ALL.iter().filter(|construct| construct.name.contains(only)) {
        for stage in STAGES.into_iter().filter(|&stage| applies(stage, construct)) {
            let mut row = String::new();
            let mut last: Option<(usize, u64)> = None;
            for &n in &sizes {
                let text = construct.text(n);
                let begin = Instant::now();
                let mut least = cost(stage, &text);
                if begin.elapsed() < Duration::from_millis(500) {
                    least = (0..2).map(|_| cost(stage, &text)).fold(least, u64::min);
                }
                let growth = last.map(|(before, cost)| {
                    let doublings = (n as f64 / before as f64).log2();
                    (least as f64 / cost.max(LEAST) as f64).powf(1.0 / doublings)
                });
                if growth.is_some_and(|growth| growth > MOST) {
                    steep.push(format!("{} {stage:?} at {n}", construct.name));
                }
                let growth = growth.map_or(String::new(), |growth| format!("{growth:.2}"));
                row += &format!("{:>8.1}{growth:>5}", least as f64 / 1e6);
                last = Some((n, least));
                // The next size would take minutes.
                if begin.elapsed() > Duration::from_secs(20) {
                    row += "  …";
                    break;
                }
            }
            println!("{:<42} {:<12} {row}", construct.name, format!("{stage:?}"));
        }
    }
    println!(
        "more than {MOST} for each doubling: {}",
        if steep.is_empty() { "none".into() } else { steep.join(", ") }
    );
}

#[path = "../tests/support/doors.rs"]
mod doors;
