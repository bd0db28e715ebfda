//! `brolga reduce FILE`: makes a failing program smaller for as long as it fails.
//!
//! Each candidate is run by processes of their own, because what is wrong with it may take the process down or never end:
//!
//! ```text
//! candidate ──┬─► brolga run --interp --call CALL -  ──► output, status ──┐
//!             └─► brolga run -ON --call CALL -       ──► output, status ──┴─► differ? it fails
//! ```
//!
//! With `--error TEXT` a candidate fails if the second one's standard error contains the text, and the first is not asked.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brolga::ir::Module;
use brolga::ir::text::show_module;
use brolga::reduce::{Limits, reduce, size};

use super::report::{Stop, err, out};
use super::{Done, Level, input};

/// Makes a failing program smaller for as long as it fails, and prints what is left.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A program fails if the interpreter and native code do not agree about a call, or, with --error, if \
                        compiling and running it says the text.\n\nExamples:\n  \
                        brolga reduce wrong.jlir -O2 --call 'f(3)'\n  \
                        brolga reduce crash.jlir -O3 --error 'this is a bug in Brolga'"
)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// The call that fails
    #[arg(long, value_name = "CALL", default_value = "main()")]
    call: String,
    /// What a failing run says on the standard error
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// How many smaller programs to try
    #[arg(long, value_name = "N", default_value_t = Limits::default().tries)]
    tries: usize,
    /// How many seconds a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    #[command(flatten)]
    level: Level,
}

pub(crate) fn run(args: &Args) -> Done {
    let program = input::program(&args.file)?;
    let oracle = Oracle {
        command: std::env::current_exe()?,
        call: args.call.clone(),
        level: format!("-O{}", args.level.level as usize),
        error: args.error.clone(),
        timeout: Duration::from_secs(args.timeout),
    };
    let Some(reason) = oracle.fault(program.module()) else {
        return Err(Stop::No(format!("the program does not fail: `{}` does what it should", args.call)));
    };
    let limits = Limits { tries: args.tries };
    let reduced = reduce(program.module(), limits, &mut |module| oracle.fault(module).is_some());
    let (before, after) = (size(program.module()), size(&reduced.module));
    let reason = oracle.fault(&reduced.module).unwrap_or(reason);
    err(format_args!("from {before} to {after} statements in {} tries; it fails: {reason}", reduced.tries));
    out(show_module(&reduced.module).to_string().trim_end())
}

struct Oracle {
    command: PathBuf,
    call: String,
    level: String,
    error: Option<String>,
    timeout: Duration,
}

/// What came of a run.
#[derive(PartialEq, Eq)]
struct Outcome {
    /// `None` if a signal ended it.
    status: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Oracle {
    /// Why a program fails, if it does.
    fn fault(&self, module: &Module) -> Option<String> {
        let text = show_module(module).to_string();
        if let Some(error) = &self.error {
            let native = self.outcome(&text, &self.level)?;
            let says = String::from_utf8_lossy(&native.stderr).contains(error);
            return says.then(|| format!("it says `{error}`"));
        }
        let expected = self.outcome(&text, "--interp").filter(|o| matches!(o.status, Some(0 | 1)))?;
        let native = self.outcome(&text, &self.level)?;
        // What has no native form is no fault, nor is a system that refuses.
        if native == expected || matches!(native.status, Some(2..=4)) {
            return None;
        }
        Some(format!(
            "the interpreter gives {}, native code at {} {}",
            expected.show(),
            self.level,
            native.show()
        ))
    }

    /// Runs the call; `None` if the run did not end in time or could not be made.
    fn outcome(&self, text: &str, how: &str) -> Option<Outcome> {
        let mut child = Command::new(&self.command)
            .args(["run", how, "--call", &self.call, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let (stdout, stderr) = (reader(child.stdout.take()?), reader(child.stderr.take()?));
        // A process that ends without reading all of it has said why.
        let _ = child.stdin.take()?.write_all(text.as_bytes());
        let read = |from: &mpsc::Receiver<Vec<u8>>, child: &mut Child| match from.recv_timeout(self.timeout) {
            Ok(bytes) => Some(bytes),
            Err(_) => {
                // It may have ended in this moment.
                let _ = child.kill();
                None
            }
        };
        let said = read(&stdout, &mut child).and_then(|stdout| Some((stdout, read(&stderr, &mut child)?)));
        let status = child.wait().ok()?.code();
        said.map(|(stdout, stderr)| Outcome { status, stdout, stderr })
    }
}

/// Reads all of a stream on a thread of its own, so that neither stream fills up while the other is read.
fn reader(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe ends the stream like any other end.
        let _ = stream.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}

impl Outcome {
    fn show(&self) -> String {
        let said = if self.stdout.is_empty() { &self.stderr } else { &self.stdout };
        let said = String::from_utf8_lossy(said);
        match self.status {
            Some(0 | 1) => format!("`{}`", said.trim()),
            Some(status) => format!("status {status}: `{}`", said.trim()),
            None => "a signal".to_owned(),
        }
    }
}
