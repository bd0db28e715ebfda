//! `brolga top` on a running session: once, as JSON, and on a terminal driven by a script.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rexpect::error::Error;
use rexpect::session::spawn_command;

/// Runs until it is ended: a loop that calls.
const PROGRAM: &str = "
function step(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
└──      return %1
end
function main()::Nothing
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #2 => %3)::Int64
│   %3 = invoke Main.step(%2::Int64)::Int64 noinline
└──      goto #2
end
";

/// A process that shows its session, ended with the test.
struct Running(Child, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
        let _gone = std::fs::remove_file(&self.1);
    }
}

fn running(name: &str) -> Running {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("top.jlir");
    std::fs::write(&file, PROGRAM).unwrap();
    let socket = folder.join(format!("{name}-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    command.arg("run").arg(&file).args(["--tiered=1000", "--top"]).arg(&socket);
    let running = Running(command.stdout(Stdio::null()).spawn().unwrap(), socket);
    let begun = Instant::now();
    while !running.1.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the socket does not come");
        std::thread::yield_now();
    }
    running
}

fn top(socket: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    let done = command.arg("top").arg(socket).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_session_is_printed_once() {
    let running = running("once");
    // The functions come when they are compiled.
    let table = (0..1000).map(|_| top(&running.1, &["--once", "--sort=name"])).find(|(status, table, _)| {
        assert_eq!(*status, Some(0));
        table.contains("step(Int64)")
    });
    let (_, table, _) = table.unwrap();
    assert!(table.starts_with("brolga top   pid "), "{table}");
    assert!(table.contains("tasks wait") && table.contains("collections"), "{table}");
    let (status, line, _) = top(&running.1, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((status, json["pid"].as_u64()), (Some(0), Some(running.0.id().into())));
    assert!(json["functions"].as_array().unwrap().iter().any(|row| row["symbol"] == "main()"), "{line}");
    // Another session does not get the name.
    let mut other = Command::new(env!("CARGO_BIN_EXE_brolga"));
    other.args(["run", "-", "--tiered=1", "--top"]).arg(&running.1).stdin(Stdio::null());
    let refused = other.output().unwrap();
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another process listens"));
}

#[test]
fn a_missing_socket_and_wrong_options_are_errors() {
    let (status, out, err) = top(Path::new("/nowhere/socket"), &["--once"]);
    assert_eq!((status, out.as_str()), (Some(4), ""));
    assert!(err.contains("cannot watch `/nowhere/socket`"), "{err}");
    assert_eq!(top(Path::new("x"), &["--interval=0"]).0, Some(2));
    assert_eq!(top(Path::new("x"), &["--sort=age"]).0, Some(2));
}

#[test]
fn a_terminal_shows_it_live() -> Result<(), Error> {
    let mut running = running("live");
    let view = |socket: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
        command.arg("top").arg(socket).arg("--interval=0.05").env("TERM", "xterm");
        spawn_command(command, Some(30_000))
    };
    let mut session = view(&running.1)?;
    session.exp_string("\u{1b}[?1049h")?;
    session.exp_string("step(Int64)")?;
    session.exp_string("sorted by tier")?;
    session.send("s")?;
    session.flush()?;
    session.exp_string("sorted by calls")?;
    session.send("q")?;
    session.flush()?;
    // The screen is given back.
    session.exp_string("\u{1b}[?25h\u{1b}[?1049l")?;
    session.exp_eof()?;
    let mut session = view(&running.1)?;
    session.exp_string("main()")?;
    running.0.kill().map_err(Error::Io)?;
    session.exp_string("the session has ended")?;
    session.exp_eof()?;
    Ok(())
}
