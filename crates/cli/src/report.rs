//! Failures of sub-commands, and their reports.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use brolga::interp::ProcessEnd;
use brolga::ir::diag::{Diagnostic, Diagnostics, Severity, Span, Style};
use brolga::opt::lower::LowerErrors;
use brolga::{Broken, Error, Failure, Fault, Program, SessionError};

/// The escapes that diagnostics are coloured with; the stream removes them where they have no meaning.
pub(super) const STYLE: Style = Style {
    error: "\x1b[1;31m",
    warning: "\x1b[1;33m",
    message: "\x1b[1m",
    frame: "\x1b[1;34m",
    related: "\x1b[1;34m",
    reset: "\x1b[0m",
};

/// Why a sub-command stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The requested property did not hold, and everything about it has been reported.
    Failed,
    /// The requested property did not hold.
    No(String),
    /// Wrong use.
    Usage(String),
    /// The input is broken; the text is a sentence.
    Input(String),
    /// The input is broken; the text is rendered findings.
    Findings(String),
    /// The system refused.
    System(String),
    /// An interpreted program has ended its process, and so this one.
    Ended(ProcessEnd),
    /// A bug of ours.
    Bug(String),
    /// The reader of the output is gone.
    NoReader,
}

impl Stop {
    /// Reports the reason, and returns the exit status.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program has aborted the process, and this process is its own"
    )]
    pub(crate) fn report(self) -> ExitCode {
        let status = match &self {
            Stop::NoReader => 0,
            Stop::Failed | Stop::No(_) => 1,
            Stop::Usage(_) => 2,
            Stop::Input(_) | Stop::Findings(_) => 3,
            Stop::System(_) => 4,
            Stop::Bug(_) => 101,
            // The system keeps the low eight bits.
            Stop::Ended(ProcessEnd::Exit(status)) => *status as u8,
            Stop::Ended(ProcessEnd::Abort) => {
                // A failure to write has been reported, or has no reader.
                let _ = io::stdout().flush();
                std::process::abort()
            }
        };
        match self {
            Stop::NoReader | Stop::Failed | Stop::Ended(_) => {}
            Stop::Findings(text) => err(text.trim_end()),
            Stop::No(text) | Stop::Usage(text) | Stop::Input(text) | Stop::System(text) => error(&text),
            Stop::Bug(text) => error(&format!("this is a bug in Brolga: {text}")),
        }
        ExitCode::from(status)
    }

    /// The findings in a source.
    pub(crate) fn broken(broken: &Broken) -> Stop {
        Stop::Findings(broken.render(&STYLE))
    }

    /// A session has refused something.
    pub(crate) fn session(error: SessionError) -> Stop {
        match &error {
            SessionError::Program(program) => match &**program {
                Error::Broken(broken) => Stop::broken(broken),
                other => Stop::Input(other.to_string()),
            },
            other => Stop::Input(other.to_string()),
        }
    }

    /// The output could not be written.
    pub(crate) fn unwritten(error: &io::Error) -> Stop {
        match error.kind() {
            ErrorKind::BrokenPipe => Stop::NoReader,
            _ => Stop::System(format!("the output cannot be written: {error}")),
        }
    }

    /// The reasons why functions have no native form, with the lines that they speak of.
    pub(crate) fn not_native(program: &Program, reasons: &[LowerErrors]) -> Stop {
        let mut findings = Diagnostics::default();
        for function in reasons {
            for reason in &function.errors {
                findings.push(Diagnostic {
                    severity: Severity::Error,
                    code: "not-native",
                    message: reason.to_string(),
                    at: Span::new(reason.place.start, reason.place.end),
                    label: String::new(),
                    related: Vec::new(),
                    notes: vec![format!("in `{}`; `--interp` runs it", function.function)],
                });
            }
        }
        Stop::Findings(findings.render(program.source(), &STYLE))
    }

    /// Why a call of `program` has no value.
    pub(crate) fn failure(program: &Program, failure: Failure) -> Stop {
        match failure {
            Failure::NotCompiled(Error::NotNative(reasons)) => Stop::not_native(program, &[reasons]),
            Failure::NotCompiled(error) => error.into(),
            Failure::Refused(text) => Stop::System(text),
            Failure::Ended(end) => Stop::Ended(end),
            Failure::Thrown { .. } | Failure::Stopped(_) => Stop::No(failure.report()),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        let text = match &error {
            Error::Broken(broken) => return Stop::broken(broken),
            other => other.to_string(),
        };
        match error.fault() {
            Fault::Program => Stop::Input(text),
            Fault::Caller if matches!(error, Error::Optimise(_)) => Stop::Usage(text),
            Fault::Caller => Stop::Input(text),
            Fault::World => Stop::System(text),
            Fault::Brolga => Stop::Bug(text),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            ErrorKind::BrokenPipe => Stop::NoReader,
            _ => Stop::System(error.to_string()),
        }
    }
}

/// Writes a result.
pub(crate) fn out(text: impl Display) -> Result<(), Stop> {
    Ok(writeln!(anstream::stdout(), "{text}")?)
}

/// Writes output that is not a result to the error stream. A failure to write is ignored.
pub(crate) fn err(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

fn error(text: &str) {
    err(format_args!("{}error{}: {text}", STYLE.error, STYLE.reset));
}
