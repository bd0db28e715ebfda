//! The programs in other languages, and ours, each run in its own process that prints a line `result …` (see the sources).
//!
//! Pauses are taken from the logs of the collectors: `GC(3) Pause Young (…) 16M->8M(61M) 1.245ms` by Java, `… MB, 2.36 / 0.00 ms …` by node. They
//! are those of both runs of the process. A program that cannot be built or run gives a reason instead of a sample.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::limited::{LIMIT, Missing, output};

/// One run of a program.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Nanoseconds for each allocation.
    pub(crate) each: f64,
    /// Milliseconds in all.
    pub(crate) total: f64,
    /// The 99th percentile of the pauses, in milliseconds.
    pub(crate) p99: Option<f64>,
    /// The longest pause, in milliseconds.
    pub(crate) max: Option<f64>,
}

/// Where what was built lies.
pub(crate) struct Others {
    folder: PathBuf,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/heap").join(name)
}

impl Others {
    /// Builds what there is a compiler for.
    pub(crate) fn build() -> Others {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap-others");
        std::fs::create_dir_all(&folder).expect("a folder");
        let build = |command: &mut Command, name: &str| {
            let built = command.arg(source(name)).output().is_ok_and(|done| done.status.success());
            if !built {
                println!("{name} could not be built: left out");
            }
        };
        build(Command::new("cc").arg("-O2").arg("-o").arg(folder.join("heap")), "heap.c");
        build(Command::new("c++").arg("-O2").arg("-o").arg(folder.join("throw")), "throw.cpp");
        build(Command::new("javac").arg("-d").arg(&folder), "Heap.java");
        Others { folder }
    }

    fn java_with(&self, kilobytes: usize) -> Command {
        let mut java = Command::new("java");
        java.args(["-XX:+UseSerialGC", &format!("-Xms{kilobytes}k"), &format!("-Xmx{kilobytes}k")]);
        java.arg("-cp").arg(&self.folder);
        java
    }

    /// A program in Java with a heap of that size.
    pub(crate) fn java(&self, program: &str, size: i64, megabytes: usize) -> Result<Sample, Missing> {
        let mut java = self.java_with(megabytes << 10);
        java.args(["-Xlog:gc", "Heap", program, &size.to_string()]);
        sample(&mut java, |line| line.contains("Pause").then(|| last_number(line.strip_suffix("ms")?))?)
    }

    /// One run of a program in Java, with references of four bytes, as it likes them, or of eight, as ours.
    pub(crate) fn java_once(&self, program: &str, rounds: i64, kilobytes: usize, is_wide: bool) -> Command {
        let mut java = self.java_with(kilobytes);
        java.arg(if is_wide { "-XX:-UseCompressedOops" } else { "-XX:+UseCompressedOops" });
        java.args(["Heap", "once", program, &rounds.to_string()]);
        java
    }

    /// The megabytes that Java takes when it is told that many kilobytes: it rounds up.
    pub(crate) fn java_takes(&self, kilobytes: usize) -> Option<f64> {
        let mut java = self.java_with(kilobytes);
        let text = output(java.args(["-XX:+PrintFlagsFinal", "-version"]), LIMIT).ok()?;
        let line = text.lines().find(|line| line.contains(" MaxHeapSize "))?;
        let bytes: f64 = line.split_whitespace().find_map(|word| word.parse().ok())?;
        Some(bytes / f64::from(1 << 20))
    }

    /// A program in node with that much for old objects.
    pub(crate) fn node(&self, program: &str, size: i64, megabytes: usize) -> Result<Sample, Missing> {
        let mut node = Command::new("node");
        node.args([&format!("--max-old-space-size={megabytes}"), "--trace-gc"]);
        node.arg(source("heap.js")).args([program, &size.to_string()]);
        sample(&mut node, |line| last_number(line.split(" MB, ").nth(1)?.split(" / ").next()?))
    }

    /// A program in C.
    pub(crate) fn c(&self, program: &str, size: i64) -> Result<Sample, Missing> {
        sample(Command::new(self.folder.join("heap")).args([program, &size.to_string()]), |_| None)
    }

    pub(crate) fn throws_in_cpp(&self) -> Vec<f64> {
        numbers(&mut Command::new(self.folder.join("throw")))
    }

    pub(crate) fn throws_in_java(&self) -> Vec<f64> {
        let mut java = Command::new("java");
        java.args(["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Heap.up", "-cp"]);
        numbers(java.arg(&self.folder).args(["Heap", "throw"]))
    }

    pub(crate) fn throws_in_node(&self) -> Vec<f64> {
        numbers(Command::new("node").arg(source("heap.js")).arg("throw"))
    }
}

fn last_number(text: &str) -> Option<f64> {
    text.rsplit(' ').next()?.parse().ok()
}

fn result(text: &str) -> Vec<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("result "));
    line.unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect()
}

fn numbers(command: &mut Command) -> Vec<f64> {
    output(command, LIMIT).map(|text| result(&text)).unwrap_or_default()
}

/// Runs a program; `pause` finds a pause in a line of its output.
fn sample(command: &mut Command, pause: impl Fn(&str) -> Option<f64>) -> Result<Sample, Missing> {
    let text = output(command, LIMIT)?;
    let [each, total] = result(&text)[..] else { return Err(Missing::Failed) };
    let mut pauses: Vec<f64> = text.lines().filter_map(pause).collect();
    pauses.sort_by(f64::total_cmp);
    let p99 = pauses.get((pauses.len() * 99).div_ceil(100).saturating_sub(1)).copied();
    Ok(Sample { each, total, p99, max: pauses.last().copied() })
}

/// A program of ours, which prints the figures of a sample.
pub(crate) fn own(arguments: &[String]) -> Result<Sample, Missing> {
    let own = std::env::current_exe().expect("this program");
    match result(&output(Command::new(own).args(arguments), LIMIT)?)[..] {
        [each, total, p99, max] => Ok(Sample { each, total, p99: Some(p99), max: Some(max) }),
        _ => Err(Missing::Failed),
    }
}
