//! Kernels by other compilers that run in their own processes: Java, node and LuaJIT, where they are installed.
//!
//! | column | what runs |
//! |---|---|
//! | java | `NAME.java` with `common/Bench.java`, warmed up for [`WARM_UP_MS`] milliseconds |
//! | node | `NAME.js` |
//! | luajit | `NAME.lua` |
//!
//! The process is started once, calls the kernel [`CALLS`] times, and prints for each call wall-clock and processor time in
//! nanoseconds (`t 812345 811000`), and in the end the kernel's result (`check 169125000`). The best processor time counts, which excludes
//! compiling in the process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::c::sources;
use crate::{Contender, Timed};

const CALLS: &str = "15";
const WARM_UP_MS: &str = "400";

/// The columns.
pub(crate) const COLUMNS: [&str; 3] = ["java", "node", "luajit"];

/// The kernel by everything that is installed and has a source.
pub(crate) fn contenders(name: &'static str) -> Vec<Contender> {
    let Some(folder) = sources() else { return Vec::new() };
    let has = |extension: &str| folder.join(name).join(format!("{name}.{extension}")).is_file();
    let mut found = Vec::new();
    if has("java") && is_installed("javac", "-version") {
        let folder = folder.clone();
        found.push(Contender {
            column: "java",
            once: true,
            run: Box::new(move |a, b| java(&folder, name, a, b)),
        });
    }
    for (column, program, extension) in [("node", "node", "js"), ("luajit", "luajit", "lua")] {
        if !has(extension) || !is_installed(program, if column == "node" { "--version" } else { "-v" }) {
            continue;
        }
        let folder = folder.clone();
        let run = move |a, b| {
            let source = beside_common(&folder, name, extension).map_err(|e| e.to_string())?;
            let common = folder.join("common/?.lua");
            read(Command::new(program).arg(&source).env("LUA_PATH", common), a, b, false)
        };
        found.push(Contender { column, once: true, run: Box::new(run) });
    }
    found
}

/// A copy of the source where it finds what all kernels have in common: `../../common`.
fn beside_common(folder: &Path, name: &str, extension: &str) -> std::io::Result<PathBuf> {
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels-elsewhere");
    let own = copies.join("kernels").join(name);
    std::fs::create_dir_all(&own)?;
    std::fs::create_dir_all(copies.join("common"))?;
    let shared = format!("bench.{extension}");
    std::fs::copy(folder.join("common").join(&shared), copies.join("common").join(&shared))?;
    let source = own.join(format!("{name}.{extension}"));
    std::fs::copy(folder.join(name).join(format!("{name}.{extension}")), &source)?;
    Ok(source)
}

fn is_installed(program: &str, question: &str) -> bool {
    Command::new(program).arg(question).output().is_ok_and(|answer| answer.status.success())
}

fn java(folder: &Path, name: &str, a: i64, b: i64) -> Result<Timed, String> {
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-{name}-java"));
    let built = Command::new("javac")
        .arg("-d")
        .arg(&classes)
        .arg(folder.join("common/Bench.java"))
        .arg(folder.join(name).join(format!("{name}.java")))
        .output()
        .map_err(|e| format!("`javac`: {e}"))?;
    if !built.status.success() {
        return Err(format!("`javac` could not build {name}"));
    }
    read(Command::new("java").arg("-cp").arg(&classes).arg(name), a, b, true)
}

/// Runs the program and reads what it prints.
fn read(program: &mut Command, a: i64, b: i64, warm_up: bool) -> Result<Timed, String> {
    program.args([&a.to_string(), &b.to_string(), CALLS]);
    if warm_up {
        program.args([&a.to_string(), &b.to_string(), WARM_UP_MS]);
    }
    let done = program.output().map_err(|e| format!("{program:?}: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut best = f64::INFINITY;
    let mut value = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["t", _, cpu] => best = best.min(cpu.parse::<f64>().map_err(|e| e.to_string())? * 1e-9),
            ["check", v] => value = v.parse().ok(),
            _ => {}
        }
    }
    let value = value.ok_or_else(|| format!("{program:?} gave no value"))?;
    Ok(Timed { value, seconds: best })
}
