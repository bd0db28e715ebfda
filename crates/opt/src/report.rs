//! The report of a run of passes: one row for each step, in the order of the pipeline.
//!
//! ```text
//! step              runs  changed  rewrites       time     insts before → after   counters
//! early simplify-cfg   3        2        17     4.1 µs                 310 → 262   folded branches 5, merged blocks 12
//! ```
//!
//! Reports of several functions add up with [`Report::merge`]. Nothing here prints: the command makes tables of it.

use std::collections::BTreeSet;

use brolga_ir::FuncId;

/// The rows of all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One row for each step that ran, in order of the first run.
    pub steps: Vec<StepReport>,
    /// The functions whose bodies were copied into the optimised ones, or whose summaries were relied on: the code is
    /// wrong when one of them is redefined.
    pub inlined: BTreeSet<FuncId>,
}

/// The row of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step's name in its pipeline.
    pub label: &'static str,
    /// The pass that ran.
    pub pass: &'static str,
    /// How often it ran.
    pub runs: u64,
    /// How many of the runs changed the function.
    pub changed: u64,
    /// How many units of fuel it spent.
    pub rewrites: u64,
    /// How long it took, in units of the given clock; 0 without one.
    pub time: u64,
    /// Instructions before it ran. Counted only when there is a clock.
    pub insts_before: u64,
    /// Instructions after it ran. Counted only when there is a clock.
    pub insts_after: u64,
    /// Its counters, by name.
    pub counters: Vec<(&'static str, u64)>,
}

impl StepReport {
    /// A row without runs.
    pub fn new(label: &'static str, pass: &'static str) -> Self {
        Self {
            label,
            pass,
            runs: 0,
            changed: 0,
            rewrites: 0,
            time: 0,
            insts_before: 0,
            insts_after: 0,
            counters: Vec::new(),
        }
    }

    /// Adds to a counter.
    pub fn count(&mut self, name: &'static str, by: u64) {
        match self.counters.iter_mut().find(|(n, _)| *n == name) {
            Some((_, total)) => *total += by,
            None => self.counters.push((name, by)),
        }
    }

    fn add(&mut self, other: &StepReport) {
        self.runs += other.runs;
        self.changed += other.changed;
        self.rewrites += other.rewrites;
        self.time += other.time;
        self.insts_before += other.insts_before;
        self.insts_after += other.insts_after;
        for &(name, by) in &other.counters {
            self.count(name, by);
        }
    }
}

impl Report {
    /// Adds a row to the one with the same label and pass, or puts it last.
    pub fn add(&mut self, step: StepReport) {
        match self.steps.iter_mut().find(|s| s.label == step.label && s.pass == step.pass) {
            Some(row) => row.add(&step),
            None => self.steps.push(step),
        }
    }

    /// Adds another report, row by row.
    pub fn merge(&mut self, other: Report) {
        for step in other.steps {
            self.add(step);
        }
        self.inlined.extend(other.inlined);
    }

    /// How many units of fuel all steps spent.
    pub fn rewrites(&self) -> u64 {
        self.steps.iter().map(|s| s.rewrites).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_one_label_add_up() {
        let mut step = StepReport::new("early dce", "dce");
        step.runs = 1;
        step.count("removed", 3);
        let mut all = Report::default();
        all.add(step.clone());
        all.add(StepReport::new("late dce", "dce"));
        let mut more = Report::default();
        more.add(step);
        all.merge(more);
        let labels: Vec<_> = all.steps.iter().map(|s| (s.label, s.runs)).collect();
        assert_eq!(labels, [("early dce", 2), ("late dce", 0)]);
        assert_eq!(all.steps[0].counters, [("removed", 6)]);
    }
}
