//! Progress of long work: a bar with rate and time left, on the standard error if that is a terminal.
//!
//! Output beside a bar is printed through [`Progress::aside`], so that the two do not mix. A bar is cleared at its end.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Bars {
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// A bar, or nothing.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Bars {
    /// The progress of work with `steps` steps.
    pub(super) fn begin(self, what: &'static str, steps: usize) -> Progress {
        let bar = || ProgressBar::new(steps as u64).with_style(style(STEPS)).with_prefix(what);
        self.show(steps > 1, bar)
    }

    /// The progress of work that ends after some time, however many steps that are.
    pub(super) fn begin_timed(self, what: &'static str, time: Duration) -> Progress {
        let prefix = format!("{what} of {} s,", time.as_secs());
        self.show(true, || ProgressBar::no_length().with_style(style(TIMED)).with_prefix(prefix))
    }

    fn show(self, is_long: bool, bar: impl FnOnce() -> ProgressBar) -> Progress {
        let is_shown = is_long && !self.quiet && io::stderr().is_terminal();
        let bar = is_shown.then(bar);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar }
    }
}

/// The line of a bar with a number of steps.
const STEPS: &str = "{prefix} [{bar:30}] {pos}/{len} {per_sec} {eta} left  {wide_msg}";
/// The line of work with a time limit, which is in the prefix.
const TIMED: &str = "{prefix} {elapsed}: {pos} done, {per_sec}  {wide_msg}";

fn style(template: &str) -> ProgressStyle {
    // The templates are right, as a test sees.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

impl Progress {
    /// Says what the step at hand is about.
    pub(super) fn at(&self, subject: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(subject.to_owned());
        }
    }

    /// A step is done.
    pub(super) fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Reports the number of steps done and in total; the last one done was about `subject`.
    pub(super) fn stand(&self, subject: &str, done: usize, of: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            bar.set_message(subject.to_owned());
        }
    }

    /// Does what prints.
    pub(super) fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressStyle;

    #[test]
    fn the_templates_are_right() {
        for template in [super::STEPS, super::TIMED] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
