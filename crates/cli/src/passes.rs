//! Common parts of `opt` and `compile`: flags about passes, and their reports.

use std::fmt::Write as _;
use std::time::Instant;

use brolga::ir::Func;
use brolga::ir::text::show_func;
use brolga::opt::{Changed, CpuFeatures, Cx, Dump, Options, PassFilter, Report, When, pass_named};

use super::diff;
use super::report::{Stop, err};

/// Flags about passes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Passes")]
pub(crate) struct Flags {
    /// Print each function before these passes run on it
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    print_before: Vec<String>,
    /// Print each function after these passes ran on it
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    print_after: Vec<String>,
    /// Print each function before every pass
    #[arg(long)]
    print_before_all: bool,
    /// Print each function after every pass
    #[arg(long)]
    print_after_all: bool,
    /// Print the rows that each pass changed
    #[arg(long, conflicts_with_all = ["print_before", "print_after", "print_before_all", "print_after_all"])]
    diff: bool,
    /// Print how long each pass took and what it did
    #[arg(long)]
    time_passes: bool,
    /// Leave these passes out
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    without: Vec<String>,
    /// Allow this many rewrites in all: halve it to find the one that breaks a program
    #[arg(long, value_name = "N")]
    opt_limit: Option<u64>,
    /// Verify every function after each pass that changed it
    #[arg(long)]
    verify_each: bool,
    /// Rely on features of the processor
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = ["fma", "bit-counts"])]
    cpu: Vec<String>,
}

/// The named features.
pub(crate) fn features(names: &[String]) -> CpuFeatures {
    let has = |name: &str| names.iter().any(|known| known == name);
    CpuFeatures { fma: has("fma"), bit_counts: has("bit-counts") }
}

impl Flags {
    /// The options of the pass manager.
    pub(crate) fn options(&self) -> Result<Options, Stop> {
        Ok(Options {
            verify_each: self.verify_each,
            cpu: features(&self.cpu),
            skip: named(&self.without)?,
            print_before: filter(self.print_before_all || self.diff, &self.print_before)?,
            print_after: filter(self.print_after_all || self.diff, &self.print_after)?,
            ..Options::default()
        })
    }

    /// Fuel, clock and printing.
    pub(crate) fn cx<'a>(&self) -> Cx<'a> {
        let cx = Cx::new(self.opt_limit);
        let cx = if self.diff { cx.with_sink(differ()) } else { cx.with_sink(print) };
        if !self.time_passes {
            return cx;
        }
        let start = Instant::now();
        cx.with_clock(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Prints the requested reports of a run.
    pub(crate) fn report(&self, report: &Report) {
        if self.time_passes {
            err(table(report).trim_end());
        }
    }
}

fn filter(all: bool, names: &[String]) -> Result<PassFilter, Stop> {
    if all {
        return Ok(PassFilter::All);
    }
    let named = named(names)?;
    Ok(if named.is_empty() { PassFilter::None } else { PassFilter::Named(named) })
}

fn named(names: &[String]) -> Result<Vec<&'static str>, Stop> {
    let found = names.iter().map(|name| pass_named(name).map(|pass| pass.name));
    found.collect::<Result<_, _>>().map_err(|error| Stop::Usage(error.to_string()))
}

fn print(dump: &Dump<'_>) {
    let when = match dump.when {
        When::Before => "before ",
        When::After => "after ",
    };
    err(title(when, dump));
    err(show_func(&dump.module.cx, dump.func));
}

fn title(when: &str, dump: &Dump<'_>) -> String {
    let Dump { label, step, steps, symbol, rewrites, .. } = dump;
    format!("# {when}{label} (step {step} of {steps}) on {symbol}, {rewrites} rewrites so far")
}

/// Keeps each function before a pass, and prints the change that the pass made.
fn differ() -> impl FnMut(&Dump<'_>) + Send {
    let mut before: Option<Func> = None;
    move |dump| match (dump.when, dump.changed) {
        (When::Before, _) => before = Some(dump.func.clone()),
        (When::After, Changed::No) => {}
        (When::After, Changed::Yes) => {
            if let Some(before) = &before {
                err(title("", dump));
                err(diff::diff(&dump.module.cx, before, dump.func));
            }
        }
    }
}

/// One row for each step: what it did and how long it took.
fn table(report: &Report) -> String {
    let total: u64 = report.steps.iter().map(|step| step.time).sum();
    let width = report.steps.iter().map(|step| step.label.len()).max().unwrap_or(0).max(5);
    let mut text = format!("{:width$}  {:>10}  share  runs  changed  rewrites  statements\n", "pass", "time");
    for step in &report.steps {
        let size = format!("{} to {}", step.insts_before, step.insts_after);
        let time = duration(step.time);
        let _ = write!(
            text,
            "{:width$}  {time:>10}  {:>3} %  {:>4}  {:>7}  {:>8}  {size}",
            step.label,
            (100 * step.time + total / 2) / total.max(1),
            step.runs,
            step.changed,
            step.rewrites
        );
        for (name, count) in &step.counters {
            let _ = write!(text, ", {count} {name}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{:width$}  {:>10}", "total", duration(total));
    text
}

fn duration(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanoseconds as f64 / 1e3),
        _ => format!("{:.1} ms", nanoseconds as f64 / 1e6),
    }
}
