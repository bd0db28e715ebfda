//! Four times as much of a construct costs at most five times as much: reading, and compiling at `O0` and at `O2`.
//!
//! As a test with small sizes, which are measured again before they count as failed. By hand with large ones, as a table:
//!
//! ```text
//! BROLGA_SWEEP=2000,8000,32000 cargo test --release -p brolga --test sweep -- --nocapture
//! BROLGA_SWEEP=2000 BROLGA_SWEEP_ONLY='methods' …
//! ```
//!
//! Times are those of the processor that the running thread has used, so other processes count for little, but for short ones.

use std::time::{Duration, Instant};

use brolga::fuzz::constructs::{self, Construct, Outcome};
use brolga::{Engine, OptLevel, Options, Program};

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Read,
    Compile(OptLevel),
}

const STAGES: [Stage; 3] = [Stage::Read, Stage::Compile(OptLevel::O0), Stage::Compile(OptLevel::O2)];

/// How much more four times as much may cost.
const MOST: f64 = 5.0;

/// Costs below this are noise: what is compared is what lies above.
const LEAST: u64 = 4_000_000;

/// Below this the processor's time is too coarse: Linux counts it a tick at a time.
const COARSE: u64 = 40_000_000;

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
        spent.filter(|&spent| spent > COARSE).unwrap_or(clock).min(clock)
    }
}

/// What a stage costs for a text.
fn cost(stage: Stage, text: &str) -> u64 {
    let begin = Moment::now();
    let program = Program::read("sweep.jlir", text.as_bytes());
    let Stage::Compile(level) = stage else { return begin.elapsed() };
    let (Ok(program), Ok(engine)) = (program, Engine::new(Options::new().opt_level(level))) else { return 0 };
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

#[test]
fn four_times_as_much_costs_at_most_five_times_as_much() {
    if std::env::var_os("BROLGA_SWEEP").is_some() {
        return;
    }
    let mut failed = Vec::new();
    for construct in constructs::ALL {
        for stage in STAGES.into_iter().filter(|&stage| applies(stage, construct)) {
            // Large enough that there is something to compare.
            let n = [100, 400]
                .into_iter()
                .find(|&n| cost(stage, &construct.text(4 * n)) > 4 * LEAST)
                .unwrap_or(400);
            let grown =
                |rounds| constructs::growth(construct, n, rounds, |text| cost(stage, text).max(LEAST));
            // Who passes once is not more than linear; who fails may have been disturbed.
            let least = [1, 3, 5].into_iter().map(grown).find(|&growth| growth <= MOST);
            if least.is_none() {
                failed.push(format!("{} {stage:?}: {:.1} times as much from {n}", construct.name, grown(3)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A table of the sizes in the environment: milliseconds, and how much more the next size costs for each doubling.
#[test]
fn table() {
    let Ok(sizes) = std::env::var("BROLGA_SWEEP") else { return };
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
    let only = std::env::var("BROLGA_SWEEP_ONLY").unwrap_or_default();
    println!(
        "{:<42} {:<12} {}",
        "construct",
        "stage",
        sizes.iter().map(|n| format!("{n:>12}")).collect::<String>()
    );
    for construct in constructs::ALL.iter().filter(|construct| construct.name.contains(&only)) {
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
                let growth = last.map_or(String::new(), |(before, cost)| {
                    let doublings = (n as f64 / before as f64).log2();
                    format!("{:.2}", (least as f64 / cost.max(1) as f64).powf(1.0 / doublings))
                });
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
}
