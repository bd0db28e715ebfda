//! A trace as a table for a terminal.
//!
//! ```text
//! stage                 number       total     longest
//! optimise                   3     1.20 ms    0.70 ms
//!   gvn                      3     0.20 ms    0.10 ms
//! …
//! event                 number
//! published                  3
//! ```
//!
//! The time of a stage is the time between its beginning and its end, including nested stages; a stage nested
//! in the same stage is counted once. Passes and parts of collections have their own rows below their stage.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use brolga_runtime::events::{Stage, Tier};

use crate::chrome::is_named;
use crate::trace::{Trace, What};

/// The times of one kind.
#[derive(Clone, Copy, Default)]
struct Times {
    number: u64,
    total: Duration,
    longest: Duration,
}

impl Times {
    fn add(&mut self, time: Duration, is_outermost: bool) {
        self.number += 1;
        self.longest = self.longest.max(time);
        if is_outermost {
            self.total += time;
        }
    }
}

impl Trace {
    /// Stages in their order, passes by their time in all functions, and the numbers of events.
    pub fn table(&self) -> String {
        let kept = self.kept();
        let mut stages: BTreeMap<(Stage, &str), Times> = BTreeMap::new();
        let (mut waits, mut pauses) = (Times::default(), Times::default());
        let mut events: BTreeMap<&str, u64> = BTreeMap::new();
        let mut left: BTreeMap<&str, u64> = BTreeMap::new();
        let mut open: Vec<Vec<(Stage, &str, Duration)>> = vec![Vec::new(); kept.threads.len()];
        let mut queued: BTreeMap<u64, Duration> = BTreeMap::new();
        for row in &kept.rows {
            let open = &mut open[row.thread];
            let name = match &row.what {
                What::Begin(stage, subject) => {
                    let name = if is_named(*stage) { subject } else { stage.name() };
                    open.push((*stage, name, row.at));
                    continue;
                }
                What::End(_) => {
                    let Some((stage, name, began)) = open.pop() else { continue };
                    let is_outermost = open.iter().all(|(outer, ..)| *outer != stage);
                    stages.entry((stage, name)).or_default().add(row.at - began, is_outermost);
                    continue;
                }
                What::Queued(task) => {
                    queued.insert(*task, row.at);
                    continue;
                }
                What::Started(task) => {
                    let began = queued.remove(task).unwrap_or(row.at);
                    waits.add(row.at - began, true);
                    continue;
                }
                What::Collected { is_full, pause, .. } => {
                    pauses.add(*pause, true);
                    if *is_full { "full collection" } else { "minor collection" }
                }
                What::Published { tier: Tier::Baseline, .. } => "published in tier 1",
                What::Published { .. } => "published in tier 2",
                What::TieredUp(_) => "tiered up",
                What::LeftLoop { function, times } => {
                    left.insert(function, *times);
                    continue;
                }
                What::Invalidated { .. } => "invalidated",
                What::Evicted { .. } => "evicted",
                What::Interrupted => "interrupted",
            };
            *events.entry(name).or_default() += 1;
        }
        if !left.is_empty() {
            events.insert("left a loop, at least", left.values().sum());
        }
        let mut text = format!("{:22}{:>8}{:>12}{:>12}\n", "stage", "number", "total", "longest");
        let indented = |(&(stage, name), times): (&(Stage, &str), &Times)| match is_named(stage) {
            true => (format!("  {name}"), *times),
            false => (name.to_owned(), *times),
        };
        let mut stages: Vec<_> = stages.iter().collect();
        stages.sort_by_key(|((stage, name), times)| (*stage, Reverse(times.total), *name));
        let rows = stages.into_iter().map(indented);
        let more = [("wait in the queue", waits), ("pause", pauses)];
        let more = more.into_iter().map(|(name, times)| (name.to_owned(), times));
        for (name, times) in rows.chain(more.filter(|(_, times)| times.number > 0)) {
            let Times { number, total, longest } = times;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:22}{number:>8}{:>12}{:>12}", millis(total), millis(longest));
        }
        let _ = writeln!(text, "\n{:22}{:>8}", "event", "number");
        for (name, number) in events {
            let _ = writeln!(text, "{name:22}{number:>8}");
        }
        if kept.dropped > 0 {
            let _ = writeln!(text, "\n{} events did not fit", kept.dropped);
        }
        text.pop();
        text
    }
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
