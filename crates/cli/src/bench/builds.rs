//! The same call measured by this build of the command and by others, each in processes of its own.
//!
//! ```text
//!   round 1: this, other     round 2: other, this     …          a process: start, warm-up, some samples, as JSON
//! ```
//!
//! A build is measured in many processes, because the addresses of code and data differ between processes and affect times: samples of one process alone
//! would show that as a difference. This build is measured in the same way, so that both pay for it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Args, Heap, Row, Stop};
use crate::input;
use brolga::observe::statistics;

/// The most processes for each build.
const ROUNDS: u32 = 10;

/// The samples of a build.
#[derive(Default)]
struct Build {
    samples: Vec<f64>,
    calls: u32,
    heap: Option<Heap>,
}

/// Measures this build and the builds in the arguments.
pub(super) fn rows(args: &Args) -> Result<Vec<Row>, Stop> {
    if args.file == input::STDIN {
        return Err(Stop::Usage("builds are compared on a file, which each of them reads".to_owned()));
    }
    let this = std::env::current_exe().map_err(|error| Stop::System(error.to_string()))?;
    let mut builds = vec![("this build".to_owned(), this)];
    builds.extend(args.build.iter().map(|path| (path.display().to_string(), path.clone())));
    let mut measured: Vec<Build> = builds.iter().map(|_| Build::default()).collect();
    let rounds = ROUNDS.min(args.samples / 2);
    let progress = args.bars.begin("bench", rounds as usize * builds.len());
    for round in 0..rounds {
        // The samples of all rounds together are those that were asked for.
        let samples = args.samples / rounds + u32::from(round < args.samples % rounds);
        let mut order: Vec<usize> = (0..builds.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (name, command) = &builds[at];
            progress.at(name);
            measure(args, command, samples, &mut measured[at])?;
            progress.step();
        }
    }
    drop(progress);
    let first = measured.first().map(|first| first.samples.clone()).unwrap_or_default();
    let row = |(at, ((name, _), build)): (usize, ((String, _), Build))| {
        let Build { samples, calls, heap } = build;
        let time = statistics::estimate(&samples)?;
        let ratio = if at > 0 { statistics::ratio(&first, &samples) } else { None };
        Some(Row { name, samples, time, ratio, calls, heap })
    };
    Ok(builds.into_iter().zip(measured).enumerate().filter_map(row).collect())
}

/// Adds samples of one process.
fn measure(args: &Args, command: &Path, samples: u32, build: &mut Build) -> Result<(), Stop> {
    let file = std::env::temp_dir().join(format!("brolga-bench-{}.json", std::process::id()));
    let mut child = Command::new(command);
    child.arg("bench").arg(&args.file).arg("--call").arg(&args.call).arg("--quiet");
    child.arg("-O").arg((args.level.level as u8).to_string());
    child.arg("--samples").arg(samples.max(2).to_string());
    child.arg("--warm-up").arg(args.warm_up.as_secs_f64().to_string());
    child.arg("--clock").arg(args.clock.name());
    child.arg("--json").arg(&file).stdin(Stdio::null());
    let cannot = |error| Stop::System(format!("cannot run `{}`: {error}", command.display()));
    let output = child.output().map_err(cannot)?;
    let text = fs::read_to_string(&file);
    // The next process writes it again.
    let _ = fs::remove_file(&file);
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        return Err(Stop::No(format!("`{}` ended with {}: {said}", command.display(), output.status)));
    }
    let text =
        text.map_err(|error| Stop::System(format!("`{}` wrote no results: {error}", command.display())))?;
    let wrong = || Stop::System(format!("`{}` wrote results of another form", command.display()));
    let list =
        text.split_once("\"samples\":[").and_then(|(_, rest)| rest.split_once(']')).ok_or_else(wrong)?;
    for sample in list.0.split(',') {
        build.samples.push(sample.trim().parse().map_err(|_| wrong())?);
    }
    build.calls = number(&text, "calls_per_sample").ok_or_else(wrong)? as u32;
    let [bytes, collections, pauses] = ["bytes", "collections", "pauses"].map(|name| number(&text, name));
    build.heap = bytes.zip(collections).zip(pauses).map(|((bytes, collections), pauses)| Heap {
        bytes,
        collections,
        pauses,
    });
    Ok(())
}

/// The number after a name in JSON.
fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.split_once(&format!("\"{name}\":"))?.1;
    rest.split([',', '}']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "{\"name\":\"-O2\",\"heap\":{\"bytes\":48.5,\"collections\":0,\"pauses\":1e-3},\"calls_per_sample\":64,";
        assert_eq!(
            ["bytes", "pauses", "calls_per_sample"].map(|name| number(text, name)),
            [Some(48.5), Some(1e-3), Some(64.0)]
        );
        assert_eq!(number("{\"heap\":null}", "bytes"), None);
    }
}
