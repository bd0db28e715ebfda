//! Growth of the cost of each construct: reading, and compiling at `O0` and at `O2`, with increasing numbers of it.
//!
//! ```text
//! cargo bench --bench sweep -- 2000,8000,32000            all constructs
//! cargo bench --bench sweep -- 1000,4000 'methods'        those with this in their names
//! cargo bench --bench sweep -- 1000,4000 'methods' O2     one stage of these, once: for `tests/sweep_instructions.sh`
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

impl Stage {
    fn name(self) -> String {
        match self {
            Stage::Read => "Read".to_owned(),
            Stage::Compile(level) => format!("{level:?}"),
        }
    }
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

/// A clock, in nanoseconds.
type Clock = fn() -> u64;

/// The cost of a stage for a text, in nanoseconds, and whether the text was refused.
fn cost(stage: Stage, text: &str, clock: Clock) -> (u64, bool) {
    let begin = clock();
    let program = Program::read("sweep.jlir", text.as_bytes());
    let Stage::Compile(level) = stage else { return (clock() - begin, program.is_err()) };
    let (Ok(program), Ok(engine)) =
        (program, Engine::new(crate::doors::open(Options::new()).opt_level(level)))
    else {
        return (0, true);
    };
    let begin = clock();
    let unit = engine.compile(&program);
    (clock() - begin, unit.is_err())
}

/// The least cost of so many runs at most, and whether the text was refused.
fn least_cost(stage: Stage, text: &str, runs: usize, clock: Clock) -> (u64, bool) {
    let (mut least, is_refused) = cost(stage, text, clock);
    let mut sum = least;
    for _ in 1..runs {
        if sum > ENOUGH {
            break;
        }
        let (again, _) = cost(stage, text, clock);
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
    let stage = given.get(2).map(String::as_str);
    // Under valgrind, instructions are what counts, and the clock cannot be read.
    let (runs, clock): (_, Clock) = if stage.is_some() { (1, || 0) } else { (MOST_RUNS, spent) };
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
        let wanted = |of: &Stage| applies(*of, construct) && stage.is_none_or(|stage| of.name() == stage);
        for stage in STAGES.into_iter().filter(wanted) {
            let mut row = String::new();
            let mut last: Option<(usize, u64)> = None;
            for &n in &sizes {
                let text = construct.text(n);
                let (least, is_refused) = least_cost(stage, &text, runs, clock);
                let growth = last.map(|(before, cost)| {
                    let doublings = (n as f64 / before as f64).log2();
                    (least as f64 / cost.max(LEAST) as f64).powf(1.0 / doublings)
                });
                worst = growth.map_or(worst, |growth| worst.max(growth));
                if growth.is_some_and(|growth| growth > MOST) {
                    steep.push(format!("{} {} at {n}", construct.name, stage.name()));
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
            println!("{:<42} {:<12} {row}", construct.name, stage.name());
        }
    }
    println!(
        "at most {worst:.2} for a doubling; more than {MOST}: {}",
        if steep.is_empty() { "none".into() } else { steep.join(", ") }
    );
}

#[path = "../tests/support/doors.rs"]
mod doors;
