//! How the cost of each construct grows: reading, and compiling at `O0` and at `O2`, with more and more of it.
//!
//! ```text
//! cargo bench --bench sweep -- 2000,8000,32000            all constructs
//! cargo bench --bench sweep -- 1000,4000 'methods'        those with this in their names
//! ```
//!
//! Times are those of the processor that the running thread has used, and the least of several runs, so other processes count for little.

use rustix::time::{ClockId, clock_gettime};

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
const LEAST: u64 = 5_000_000;

/// A cost is measured again until so much time has been spent on it, and a few times at most.
const ENOUGH: u64 = 400_000_000;
const MOST_RUNS: usize = 5;

/// The processor time of the running thread, in nanoseconds.
fn spent() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The cost of a stage for a text, in nanoseconds, and whether the text was refused.
fn cost(stage: Stage, text: &str) -> (u64, bool) {
    let begin = spent();
    let program = Program::read("sweep.jlir", text.as_bytes());
    let Stage::Compile(level) = stage else { return (spent() - begin, program.is_err()) };
    let (Ok(program), Ok(engine)) =
        (program, Engine::new(crate::doors::open(Options::new()).opt_level(level)))
    else {
        return (0, true);
    };
    let begin = spent();
    let unit = engine.compile(&program);
    (spent() - begin, unit.is_err())
}

/// The least cost of several runs, and whether the text was refused.
fn least_cost(stage: Stage, text: &str) -> (u64, bool) {
    let (mut least, is_refused) = cost(stage, text);
    let mut sum = least;
    for _ in 1..MOST_RUNS {
        if sum > ENOUGH {
            break;
        }
        let (again, _) = cost(stage, text);
        sum += again;
        least = least.min(again);
    }
    (least, is_refused)
}

fn applies(stage: Stage, construct: &Construct) -> bool {
    construct.outcome == Outcome::Compiled || stage == Stage::Read
}

/// A table of the sizes: milliseconds, with an `r` if the text is refused, and how much more the next size costs for each doubling. Names the rows
/// that grow by more than [`MOST`].
fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let sizes = given.first().map_or("1000,4000", String::as_str);
    let only = given.get(1).map_or("", String::as_str);
    let sizes: Vec<usize> = sizes.split(',').filter_map(|size| size.parse().ok()).collect();
    let mut steep = Vec::new();
    let mut worst = 0f64;
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
                let (least, is_refused) = least_cost(stage, &text);
                let growth = last.map(|(before, cost)| {
                    let doublings = (n as f64 / before as f64).log2();
                    (least as f64 / cost.max(LEAST) as f64).powf(1.0 / doublings)
                });
                worst = growth.map_or(worst, |growth| worst.max(growth));
                if growth.is_some_and(|growth| growth > MOST) {
                    steep.push(format!("{} {stage:?} at {n}", construct.name));
                }
                let growth = growth.map_or(String::new(), |growth| format!("{growth:.2}"));
                let refused = if is_refused && construct.outcome == Outcome::Compiled { "r" } else { "" };
                row += &format!("{:>8.1}{refused}{growth:>5}", least as f64 / 1e6);
                last = Some((n, least));
                // The next size would take minutes.
                if least > 20_000_000_000 {
                    row += "  …";
                    break;
                }
            }
            println!("{:<42} {:<12} {row}", construct.name, format!("{stage:?}"));
        }
    }
    println!(
        "at most {worst:.2} for a doubling; more than {MOST}: {}",
        if steep.is_empty() { "none".into() } else { steep.join(", ") }
    );
}

#[path = "../tests/support/doors.rs"]
mod doors;
