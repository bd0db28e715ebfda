//! `brolga bench`: its counts, and its machine-readable output; progress bars on a pseudo-terminal.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rexpect::session::spawn_command;
use serde_json::Value;

/// A call that makes ten objects of 16 bytes, which escape.
const MAKES: &str = "mutable struct Cell\n    val::Int64\nend\n\
                     function make(n::Int64)::Cell\n1 ─      nothing::Nothing\n2 ┄ %2 = φ (#1 => 1, #3 => %5)::Int64\n\
                     │   %3 = Base.slt_int(%2, n)::Bool\n└──      goto #4 if not %3\n\
                     3 ─ %4 = invoke Main.one(%2::Int64)::Cell\n│   %5 = Base.add_int(%2, 1)::Int64\n└──      goto #2\n\
                     4 ─ %6 = invoke Main.one(n::Int64)::Cell\n└──      return %6\nend\n\
                     function one(n::Int64)::Cell\n1 ─ %1 = %new(Main.Cell, n)::Cell\n└──      return %1\nend\n";

fn folder(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("measure-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn builds_are_measured_in_processes_of_their_own() {
    let folder = folder("builds");
    let (program, json) = (folder.join("p.jlir"), folder.join("b.json"));
    fs::write(&program, MAKES).unwrap();
    let this = env!("CARGO_BIN_EXE_brolga");
    let run = |other: &str| {
        let mut command = Command::new(this);
        command.arg("bench").arg(&program).args(["--call", "make(10)", "--build", other, "--samples", "5"]);
        command.args(["--warm-up", "0.001", "--json"]).arg(&json).output().unwrap()
    };
    let output = run(this);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    for variant in result["variants"].as_array().unwrap() {
        assert_eq!(variant["samples"].as_array().unwrap().len(), 5, "{variant}");
        assert!(variant["heap"]["bytes"].as_f64().unwrap() > 0.0, "{variant}");
    }
    assert_eq!(result["variants"][0]["name"], "this build");
    assert_eq!(result["variants"][1]["name"], this);
    // A command that is another one, and one that is not there.
    assert_eq!(run("true").status.code(), Some(4));
    assert_eq!(run("no-such-command").status.code(), Some(4));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn objects_are_counted_and_variants_are_compared() {
    let folder = folder("bench");
    let (program, json, svg) = (folder.join("p.jlir"), folder.join("b.json"), folder.join("b.svg"));
    fs::write(&program, MAKES).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    command.arg("bench").arg(&program).args([
        "--call",
        "make(10)",
        "-O0",
        "--tiers",
        "--interp",
        "--samples",
        "9",
    ]);
    let output =
        command.args(["--warm-up", "0.01", "--json"]).arg(&json).arg("--svg").arg(&svg).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    // A test asserts no times: any verdict will do.
    let verdicts = ["slower", "faster", "no difference"];
    let ends = |line: &str| verdicts.iter().any(|verdict| line.ends_with(verdict));
    assert!(lines[4].starts_with("interpreter") && ends(lines[4]), "{said}");
    let result: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(result["call"], "make(10)");
    let variants = result["variants"].as_array().unwrap();
    assert_eq!(
        variants.iter().map(|v| v["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["-O0", "tier 1", "tier 2", "interpreter"]
    );
    for variant in variants {
        let [value, low, high] =
            ["value", "low", "high"].map(|key| variant["seconds"][key].as_f64().unwrap());
        assert!(0.0 < low && low <= value && value <= high, "{variant}");
        assert_eq!(variant["samples"].as_array().unwrap().len(), 9);
    }
    // Ten objects of a tag and a field; the collector counts whole cells.
    let bytes = variants[0]["heap"]["bytes"].as_f64().unwrap();
    assert!((160.0..=200.0).contains(&bytes), "{bytes} bytes for a call");
    assert!(ends(variants[3]["against_first"]["verdict"].as_str().unwrap()), "{}", variants[3]);
    let picture = fs::read_to_string(&svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 36);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    fs::remove_dir_all(&folder).unwrap();
}

/// Runs `verify` over some programs on a terminal: all that it writes.
fn verify(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    command.arg("verify").args(args).env("TERM", "xterm");
    for n in 0..200 {
        let file = folder.join(format!("{n}.jlir"));
        fs::write(&file, MAKES).unwrap();
        command.arg(file);
    }
    spawn_command(command, Some(60_000)).unwrap().exp_eof().unwrap()
}

#[test]
fn bars_are_on_terminals_and_not_if_they_are_not_wanted() {
    let folder = folder("bars");
    let shown = verify(&folder, &[]);
    assert!(shown.contains("verify [") && shown.contains("/200"), "{shown:?}");
    assert_eq!(verify(&folder, &["--quiet"]), "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    let output =
        command.arg("verify").args((0..200).map(|n| folder.join(format!("{n}.jlir")))).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty());
    fs::remove_dir_all(&folder).unwrap();
}
