//! Programs that a real Julia printed, with the values that it computed, at every level and with every kind of root maps.
//!
//! ```text
//! tests/julia/           programs of this repository, in Julia's printed form; `source/` has those that a Julia printed, and the script
//! tests/julia/timed/     more that a Julia printed, for `benches/julia.rs`, by the interpreter and at O2 and O3
//! tests/julia/modern/    a hundred more as Julia 1.11 and 1.13 print them, one for each construct, written by hand
//! ../shared/julia/       105 programs beside a checkout, where they are there
//! ../shared/julia/min/   the smallest program for each form that once was refused
//! ```
//!
//! Each file runs by the interpreter, at O0 to O3, with linked frames and with frame maps, and with a collection at every safepoint; and in sessions. The files
//! are dealt out to two threads.
//!
//! One check does not hold: [`CONTRADICTS`].

use std::path::{Path, PathBuf};
use std::thread;

use brolga::ir::Module;
use brolga::options::Roots;
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Session, Verdict, Workers, session};

/// A check that claims what no rule gives: the file has no method `throw_funny`, so a call of it throws a `MethodError` that names it, and
/// nothing in the file says that the method would have thrown an `ArgumentError`.
const CONTRADICTS: (&str, &str) = ("missing_body_on_cold_path.txt", "f(-1) ArgumentError");

/// How a program runs.
#[derive(Clone, Copy, Debug)]
enum How {
    Interpreted,
    Native(OptLevel, Roots, bool),
}

fn ways() -> Vec<How> {
    let mut ways = vec![How::Interpreted];
    for roots in [Roots::Linked, Roots::Maps] {
        for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
            ways.push(How::Native(level, roots, false));
            ways.push(How::Native(level, roots, true));
        }
    }
    ways
}

/// The programs in a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a file").path());
    let is_program = |path: &PathBuf| {
        let extension = path.extension();
        extension.is_some_and(|ext| ext == "jlir" || ext == "txt")
    };
    let mut files: Vec<PathBuf> = paths.filter(is_program).collect();
    files.sort();
    files
}

/// The folder with the shared programs, where it is there.
fn shared() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.ancestors().map(|dir| dir.join("shared/julia")).find(|dir| dir.is_dir())
}

/// The failed checks of a file in all ways, and how many checks ran in each.
fn failures(path: &Path) -> (Vec<String>, usize) {
    failures_in(path, ways())
}

/// The same by the interpreter and in the code that `benches/julia.rs` times.
fn failures_of_timed(path: &Path) -> (Vec<String>, usize) {
    let native = [OptLevel::O2, OptLevel::O3].map(|level| How::Native(level, Roots::Maps, false));
    failures_in(path, std::iter::once(How::Interpreted).chain(native).collect())
}

fn failures_in(path: &Path, ways: Vec<How>) -> (Vec<String>, usize) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).expect("a file");
    let program = match Program::read(&name, &bytes) {
        Ok(program) => program,
        Err(error) => return (vec![format!("{name}: {error}")], 0),
    };
    let mut failed = Vec::new();
    for way in ways {
        let engine;
        let mut evaluator = match way {
            How::Interpreted => Evaluator::interpreted(&program),
            How::Native(level, roots, stress) => {
                let options =
                    crate::doors::open(Options::new()).opt_level(level).roots(roots).gc_stress(stress);
                engine = Engine::new(options).expect("an engine");
                Evaluator::native(&program, &engine)
            }
        };
        for check in program.checks() {
            let verdict = evaluator.check(check);
            let text = program.source().slice(check.span).trim();
            let contradicts = (name.as_str(), text) == CONTRADICTS;
            match (&verdict, contradicts) {
                (Verdict::Passed, false) => {}
                (Verdict::Failed { got, .. }, true)
                    if got.contains("MethodError") && got.contains("throw_funny") => {}
                _ => failed.push(format!("{name}, {way:?}: {text}: {verdict:?}")),
            }
        }
    }
    (failed, program.checks().len())
}

fn hold(paths: &[PathBuf], at_least: usize, failures: fn(&Path) -> (Vec<String>, usize)) {
    let (mut failed, mut count) = (Vec::new(), 0);
    thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                paths.iter().skip(half).step_by(2).map(|path| failures(path)).collect::<Vec<_>>()
            })
        });
        for (of_file, checks) in halves.into_iter().flat_map(|half| half.join().expect("no panic")) {
            failed.extend(of_file);
            count += checks;
        }
    });
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= at_least, "{count} checks");
}

#[test]
fn own_programs_hold() {
    hold(&files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/julia")), 290, failures);
}

#[test]
fn modern_programs_hold() {
    let paths = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/julia/modern"));
    assert!(paths.len() >= 100, "{} files", paths.len());
    hold(&paths, 200, failures);
    hold(&paths, 200, failures_in_sessions);
}

#[test]
fn shared_programs_hold() {
    let Some(folder) = shared() else {
        println!("skipped: no folder `shared/julia` beside the checkout");
        return;
    };
    let paths = files(&folder);
    assert!(paths.len() >= 105, "{} files", paths.len());
    hold(&paths, 200, failures);
}

/// The failed checks of a file in sessions, one for each check, and how many checks ran. A program of a session shares the methods of Base with all others.
fn failures_in_sessions(path: &Path) -> (Vec<String>, usize) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).expect("a file");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let checks = text.lines().filter_map(|line| line.strip_prefix("# check: ")?.split_once(" == "));
    let (mut failed, mut count) = (Vec::new(), 0);
    for (call, value) in checks {
        count += 1;
        let session =
            Session::new(crate::doors::open(Options::new()).opt_level(OptLevel::O2), Workers::Caller)
                .expect("a session");
        let dylib = session.create_dylib("main").expect("a dylib");
        dylib.add_process_symbols(|_| true).expect("it is open");
        let defined = dylib.read_late(&name, &bytes).and_then(|read| dylib.define(read.lazy()));
        if let Err(error) = defined {
            failed.push(format!("{name}: {error}"));
            break;
        }
        let names = Module::new(session.context().view());
        let mut evaluator = session::Evaluator::new(&dylib, &names);
        let mut shown = |text: &str| {
            let value = evaluator.evaluate("check", text).and_then(|value| evaluator.show(&value));
            value.map_err(|error| error.to_string())
        };
        let (given, expected) = (shown(call), shown(value));
        if given != expected {
            failed.push(format!("{name}: {call} == {value}: {given:?}"));
        }
    }
    (failed, count)
}

#[test]
fn timed_programs_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/julia/timed");
    hold(&files(&folder), 200, failures_of_timed);
}

#[test]
fn programs_hold_in_sessions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/julia");
    let shared = shared();
    let folders = shared.iter().flat_map(|folder| [folder.clone(), folder.join("min")]);
    let paths: Vec<PathBuf> = folders.chain([root]).flat_map(|folder| files(&folder)).collect();
    hold(&paths, 250, failures_in_sessions);
}

#[test]
fn the_smallest_programs_hold() {
    let Some(folder) = shared() else {
        println!("skipped: no folder `shared/julia` beside the checkout");
        return;
    };
    let paths = files(&folder.join("min"));
    assert!(paths.len() >= 22, "{} files", paths.len());
    hold(&paths, 25, failures);
}

#[path = "support/doors.rs"]
mod doors;
