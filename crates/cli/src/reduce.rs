//! `brolga reduce FILE`: shrinks a failing program while it fails in the same way.
//!
//! Separate processes run each candidate, because its fault may crash the process or never end:
//!
//! ```text
//! candidate ──┬─► brolga run --interp --call CALL -  ──► output, status ──┐
//!             └─► brolga run -ON --call CALL -       ──► output, status ──┴─► differ? it fails
//! ```
//!
//! | option | a candidate fails if |
//! |---|---|
//! | none | the two differ, or native code does not end in time |
//! | `--error TEXT` | the second one's standard error contains the text; the first is not run |
//! | `--check COMMAND` | the command, which the shell runs with the candidate on its standard input, ends with status 0 in time |
//!
//! A run that cannot be started is the system's fault and ends the search. If the interpreter does not end in time there is nothing
//! to compare with: such a program is refused, and such a candidate is rejected.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brolga::ir::Module;
use brolga::ir::text::show_module;
use brolga_fuzz::reduce::{Limits, reduce, size};

use super::progress::Bars;
use super::report::{Stop, err, out};
use super::{Done, Level, input};

/// Makes a failing program smaller for as long as it fails, and prints what is left.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "A program fails if the interpreter and native code do not agree about a call; with --error, if \
                        compiling and running it says the text; with --check, if the command ends with status 0.\n\n\
                        Examples:\n  \
                        brolga reduce wrong.jlir -O2 --call 'f(3)'\n  \
                        brolga reduce crash.jlir -O3 --error 'this is a bug in Brolga'\n  \
                        brolga reduce slow.jlir --check 'brolga opt --passes=gvn - | grep -q mul_int'"
)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// The call that fails
    #[arg(long, value_name = "CALL", default_value = "main()")]
    call: String,
    /// The text that a failing run writes to the standard error
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// A command that ends with status 0 if the program on its standard input fails
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["error", "call"])]
    check: Option<String>,
    /// How many smaller programs to try
    #[arg(long, value_name = "N", default_value_t = Limits::default().tries)]
    tries: usize,
    /// How many seconds a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    #[command(flatten)]
    bars: Bars,
    #[command(flatten)]
    level: Level,
}

pub(crate) fn run(args: &Args) -> Done {
    let program = input::program(&args.file)?;
    let oracle = Oracle {
        command: std::env::current_exe()?,
        args: args.clone(),
        level: format!("-O{}", args.level.level as usize),
        timeout: Duration::from_secs(args.timeout),
    };
    let fault = match oracle.verdict(program.module())? {
        Verdict::Fails(fault) => fault,
        Verdict::Agrees => {
            let what = match &args.check {
                Some(command) => format!("`{command}` does not end with status 0"),
                None => format!("`{}` does what it should", args.call),
            };
            return Err(Stop::No(format!("the program does not fail: {what}")));
        }
        Verdict::Open(reason) => {
            return Err(Stop::No(format!("whether the program fails is open: {reason}")));
        }
    };
    let limits = Limits { tries: args.tries };
    let mut broken = None;
    let mut last = fault.clone();
    let progress = args.bars.begin("reduce", args.tries);
    progress.at(&format!("{} statements", size(program.module())));
    let reduced = reduce(program.module(), limits, &mut |module| {
        if broken.is_some() {
            return false;
        }
        progress.step();
        match oracle.verdict(module) {
            Ok(Verdict::Fails(found)) if found.kind == fault.kind => {
                progress.at(&format!("{} statements", size(module)));
                last = found;
                true
            }
            Ok(_) => false,
            Err(error) => {
                broken = Some(error);
                false
            }
        }
    });
    drop(progress);
    if let Some(error) = broken {
        return Err(error.into());
    }
    let (before, after) = (size(program.module()), size(&reduced.module));
    err(format_args!("from {before} to {after} statements in {} tries; it fails: {last}", reduced.tries));
    out(show_module(&reduced.module).to_string().trim_end())
}

struct Oracle {
    command: PathBuf,
    args: Args,
    level: String,
    timeout: Duration,
}

/// Knowledge about a program.
enum Verdict {
    Fails(Fault),
    Agrees,
    /// There is nothing to compare with.
    Open(String),
}

/// How a program fails.
#[derive(Clone, Debug)]
struct Fault {
    kind: FaultKind,
    text: String,
}

/// Kinds of failure, which a reduction does not mix: a program that never ends says nothing about one with a wrong result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FaultKind {
    /// Native code has another result.
    Differs,
    /// Native code does not end in time.
    Hangs,
    /// The user's request.
    Asked,
}

/// The outcome of a run.
#[derive(PartialEq, Eq)]
struct Outcome {
    /// `None` if a signal ended it.
    status: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Oracle {
    fn verdict(&self, module: &Module) -> io::Result<Verdict> {
        let text = show_module(module).to_string();
        let fails = |kind, text| Ok(Verdict::Fails(Fault { kind, text }));
        if let Some(command) = &self.args.check {
            let mut shell = Command::new("sh");
            let done = self.outcome(shell.args(["-c", command]), &text)?;
            return match done.and_then(|done| done.status) {
                Some(0) => fails(FaultKind::Asked, format!("`{command}` ends with status 0")),
                _ => Ok(Verdict::Agrees),
            };
        }
        if let Some(error) = &self.args.error {
            let says = |run: Outcome| String::from_utf8_lossy(&run.stderr).contains(error);
            return match self.native(&text)?.is_some_and(says) {
                true => fails(FaultKind::Asked, format!("it says `{error}`")),
                false => Ok(Verdict::Agrees),
            };
        }
        let expected = match self.run("--interp", &text)? {
            Some(run) if matches!(run.status, Some(0 | 1)) => run,
            Some(run) => return Ok(Verdict::Open(format!("the interpreter ends with {}", run.show()))),
            None => return Ok(Verdict::Open(format!("the interpreter {}", self.late()))),
        };
        let Some(native) = self.native(&text)? else {
            return fails(FaultKind::Hangs, format!("native code at {} {}", self.level, self.late()));
        };
        // A program without a native form is not a fault, nor is a refusal of the system.
        if native == expected || matches!(native.status, Some(2..=4)) {
            return Ok(Verdict::Agrees);
        }
        let (expected, native) = (expected.show(), native.show());
        let text = format!("the interpreter returns {expected}, native code at {} {native}", self.level);
        fails(FaultKind::Differs, text)
    }

    fn late(&self) -> String {
        format!("does not end within {} s", self.timeout.as_secs())
    }

    fn native(&self, text: &str) -> io::Result<Option<Outcome>> {
        self.run(&self.level, text)
    }

    fn run(&self, how: &str, text: &str) -> io::Result<Option<Outcome>> {
        self.outcome(Command::new(&self.command).args(["run", how, "--call", &self.args.call, "-"]), text)
    }

    /// Runs a command with a text as its standard input; `None` if it did not end in time.
    fn outcome(&self, command: &mut Command, text: &str) -> io::Result<Option<Outcome>> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let (stdout, stderr) = (child.stdout.take().map(reader), child.stderr.take().map(reader));
        if let Some(mut stdin) = child.stdin.take() {
            // A process that ends without reading all of it has said why.
            let _ = stdin.write_all(text.as_bytes());
        }
        let read = |from: Option<mpsc::Receiver<Vec<u8>>>, child: &mut Child| {
            let bytes = from?.recv_timeout(self.timeout).ok();
            if bytes.is_none() {
                // It may have ended in this moment.
                let _ = child.kill();
            }
            bytes
        };
        let stdout = read(stdout, &mut child);
        let stderr = stdout.as_ref().and_then(|_| read(stderr, &mut child));
        let status = child.wait()?.code();
        Ok(stdout.zip(stderr).map(|(stdout, stderr)| Outcome { status, stdout, stderr }))
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
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
