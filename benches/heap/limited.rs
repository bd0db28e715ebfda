//! Running a program of the comparison: in its own process, with a time limit.
//!
//! A row of the tables must not depend on another one: a program that runs out of memory, hangs or is missing is a row with that result.
//! The output of the process goes to a file, so that a verbose collector cannot block on a pipe that is not read meanwhile.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take by the clock.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);
/// How often it is looked at.
const STEP: Duration = Duration::from_millis(2);

/// Why there is no figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// Nothing of that name can be run here.
    NotThere,
    OutOfMemory,
    /// It took longer than this.
    TooLong(Duration),
    Failed,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NotThere => Ok(()),
            Missing::OutOfMemory => f.write_str("out of memory"),
            Missing::TooLong(limit) => write!(f, "> {} s", limit.as_secs()),
            Missing::Failed => f.write_str("failed"),
        }
    }
}

/// The output of a program, if it ends well and in time.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when another process ends or has taken too long"
)]
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<String, Missing> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("heap-{}.txt", std::process::id()));
    let file = File::create(&path).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = file.expect("a file for what is printed");
    let began = Instant::now();
    let Ok(mut child) = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn() else {
        return Err(Missing::NotThere);
    };
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status.success()),
            Ok(None) if began.elapsed() < limit => std::thread::sleep(STEP),
            _ => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                break Err(Missing::TooLong(limit));
            }
        }
    };
    let bytes = std::fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match ended? {
        true => Ok(text),
        false if text.contains("emory") => Err(Missing::OutOfMemory),
        false => Err(Missing::Failed),
    }
}
