//! Progress of long work: a bar with rate and time left, on the standard error if that is a terminal.
//!
//! Output beside a bar is printed through [`Progress::aside`], so that the two do not mix. A bar is wiped off at its end.

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
    /// The progress of so many steps of work.
    pub(super) fn begin(self, what: &'static str, steps: usize) -> Progress {
        let is_shown = !self.quiet && steps > 1 && io::stderr().is_terminal();
        let bar = is_shown.then(|| {
            let bar = ProgressBar::new(steps as u64).with_style(style()).with_prefix(what);
            bar.enable_steady_tick(TICK);
            bar
        });
        Progress { bar }
    }
}

fn style() -> ProgressStyle {
    let bar = "{prefix} [{bar:30}] {pos}/{len} {per_sec} {eta} left  {wide_msg}";
    // The template is right, as a test sees.
    ProgressStyle::with_template(bar).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
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
    fn the_template_is_right() {
        let template = "{prefix} [{bar:30}] {pos}/{len} {per_sec} {eta} left  {wide_msg}";
        assert!(ProgressStyle::with_template(template).is_ok());
    }
}
