//! The prompt on a terminal: a pseudo-terminal, driven by a script. Its treatment of inputs is in `tests/filetests/cli/repl`.
#![cfg(target_os = "linux")]

use std::process::Command;

use rexpect::error::Error;
use rexpect::session::{PtySession, spawn_command};

const TIMEOUT: Option<u64> = Some(30_000);

const PROMPT: &str = "brolga> ";

fn prompt(history: &std::path::Path) -> Result<PtySession, Error> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    // Colours and bracketed paste are not what is tested.
    command.args(["repl", "--history"]).arg(history).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = spawn_command(command, TIMEOUT)?;
    session.exp_string(PROMPT)?;
    Ok(session)
}

#[test]
fn a_terminal_has_lines_history_completion_and_interrupts() -> Result<(), Error> {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repl-{}", std::process::id()));
    let mut session = prompt(&file)?;
    // A definition takes several lines, each submitted by Enter.
    for line in
        ["function twice(n::Int64)::Int64", "1 ─ %1 = Base.add_int(n, n)::Int64", "└──      return %1", "end"]
    {
        session.send_line(line)?;
    }
    session.exp_string("defined twice(Int64)")?;
    session.exp_string(PROMPT)?;
    // The tabulator completes the only name that fits.
    session.send("twi\t(21)\r")?;
    session.flush()?;
    session.exp_string("42")?;
    session.exp_string(PROMPT)?;
    // The last input comes back by the key for the line before.
    session.send("\x1b[A\r")?;
    session.flush()?;
    session.exp_string("42")?;
    session.exp_string(PROMPT)?;
    // A loop without an end is interrupted, and the prompt is there again.
    for line in [
        "function spin()::Nothing",
        "1 ─      invoke Main.println(\"begun\"::String)::Nothing",
        "2 ┄      goto #2",
        "end",
    ] {
        session.send_line(line)?;
    }
    session.exp_string("defined spin()")?;
    session.exp_string(PROMPT)?;
    session.send_line("spin()")?;
    session.exp_string("begun")?;
    session.send_control('c')?;
    session.exp_string("InterruptException")?;
    session.exp_string(PROMPT)?;
    session.send_control('d')?;
    session.exp_eof()?;
    // The next prompt has the history of this one.
    let mut session = prompt(&file)?;
    session.send("\x1b[A")?;
    session.flush()?;
    session.exp_string("spin()")?;
    session.send_control('c')?;
    session.exp_string(PROMPT)?;
    session.send_line(":quit")?;
    session.exp_eof()?;
    std::fs::remove_file(&file).map_err(Error::Io)?;
    Ok(())
}

#[test]
fn another_language_has_the_same_editor() -> Result<(), Error> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    command.args(["repl", "--no-history", "--lang", "scheme"]).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = spawn_command(command, TIMEOUT)?;
    session.exp_string("scheme> ")?;
    // A form over two lines, and a name that the tabulator completes.
    session.send_line("(define (twice x)")?;
    session.send_line("  (* x 2))")?;
    session.exp_string("scheme> ")?;
    session.send("(twic\t 21)\r")?;
    session.flush()?;
    session.exp_string("42")?;
    session.exp_string("scheme> ")?;
    session.send_line(":quit")?;
    session.exp_eof()?;
    Ok(())
}
