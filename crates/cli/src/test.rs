//! `brolga test FILES…`: checks programs against their `# check:` and `# throws:` lines.

use std::fmt::Write as _;

use brolga::executor::RemoteEngine;
use brolga::{Engine, Evaluator, Limits, Program, Verdict};

use super::caching::Caching;
use super::executor::Executing;
use super::progress::{Bars, Progress};
use super::report::{Stop, err, out};
use super::{Done, How, cached, evaluator, input, limited};

/// Runs the tests in programs: their `# check: call == value` and `# throws: call Error` lines.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The last line says how many tests passed and failed, and how many were skipped because their \
                        functions have no native form yet. The exit status is 1 if one failed or none ran."
)]
pub(crate) struct Args {
    /// The programs; `-` reads the standard input
    #[arg(required = true)]
    files: Vec<String>,
    /// Count tests without a native form as failed instead of skipping them
    #[arg(long)]
    all: bool,
    /// Write what is compiled to an image and open it from there
    #[arg(long, conflicts_with = "interp")]
    image: bool,
    #[command(flatten)]
    executing: Executing,
    #[command(flatten)]
    bars: Bars,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    caching: Caching,
}

/// The results of the tests so far.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

pub(crate) fn run(args: &Args) -> Done {
    let cache = args.caching.open()?;
    let remote = args.executing.engine(|| cached(args.how.options(), cache.as_ref()))?;
    let engine = if remote.is_none() { args.how.engine(cache.as_ref())? } else { None };
    let mut count = Count::default();
    let progress = args.bars.begin("test", args.files.len());
    for file in &args.files {
        progress.at(file);
        match input::program(file) {
            Ok(program) => tests(&program, (engine.as_ref(), remote.as_ref()), args, &progress, &mut count)?,
            Err(Stop::NoReader) => return Err(Stop::NoReader),
            // The other files can still be tested.
            Err(stop) => {
                progress.aside(|| stop.report());
                count.failed += 1;
            }
        }
        progress.step();
    }
    drop(progress);
    let mut line = format!("{} passed, {} failed", count.passed, count.failed);
    if count.skipped > 0 {
        // Writing to a string cannot fail.
        let _ = write!(line, ", {} skipped", count.skipped);
    }
    out(line)?;
    args.caching.report(cache.as_ref());
    if count.failed > 0 || count.passed == 0 { Err(Stop::Failed) } else { Ok(()) }
}

fn tests(
    program: &Program,
    (engine, remote): (Option<&Engine>, Option<&RemoteEngine>),
    args: &Args,
    progress: &Progress,
    count: &mut Count,
) -> Done {
    let all = args.all;
    let file = std::env::temp_dir().join(format!("brolga-test-{}.so", std::process::id()));
    let mut evaluator = match (engine.filter(|_| args.image), remote) {
        (Some(engine), _) => limited(Evaluator::through_images(program, engine, &file), &args.how),
        (None, Some(remote)) => limited(Evaluator::remote(program, remote, Limits::new()), &args.how),
        (None, None) => evaluator(program, engine, &args.how)?,
    };
    let source = program.source();
    // Many tests share a reason; it is said once.
    let mut said: Option<String> = None;
    for check in program.checks() {
        let place = format!("{}:{}", source.name(), source.position(check.span.start).line);
        let verdict = evaluator.check(check);
        if let Some(remote) = remote {
            // A test that ends the executor has failed; the others are run by another one.
            remote.restart()?;
        }
        match verdict {
            Verdict::Passed => count.passed += 1,
            Verdict::Failed { expected, got } => {
                count.failed += 1;
                let test = source.slice(check.span).trim();
                let said = format!("{place}: {test}\n  expected {expected}\n       got {got}");
                progress.aside(|| out(said))?;
            }
            Verdict::Skipped { reason } => {
                if all {
                    count.failed += 1;
                } else {
                    count.skipped += 1;
                }
                if said.as_ref() != Some(&reason) {
                    let what = if all { "failed" } else { "skipped" };
                    progress.aside(|| err(format_args!("{place}: {what}: {reason}")));
                    said = Some(reason);
                }
            }
        }
    }
    if args.image {
        // There may have been nothing to compile.
        let _ = std::fs::remove_file(&file);
    }
    evaluator.take_output_error().map_or(Ok(()), |error| Err(Stop::unwritten(&error)))
}
