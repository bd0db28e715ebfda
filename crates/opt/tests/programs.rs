//! Every dump of the corpus and every example, before and after passes: it still verifies, still prints to text that reads
//! back as the same text, and its checks still hold in the interpreter.

use std::fs;
use std::path::PathBuf;

use brolga_interp::{Interp, Options as Limits, SimMemory, Verdict};
use brolga_ir::Context;
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{Unit, read, show_unit};
use brolga_ir::verify::verify_module;
use brolga_opt::callgraph::bottom_up;
use brolga_opt::{Cx, OptLevel, Options, PASSES, Pass, PassLevel, optimize_module, run_passes};

fn unit(name: &str, text: &str) -> Unit {
    let source = SourceFile::new(name, text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{name}");
    unit
}

/// The texts of a folder by name.
fn folder(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut texts: Vec<(String, String)> = paths
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&p).unwrap()))
        .collect();
    texts.sort();
    assert!(!texts.is_empty());
    texts
}

fn options() -> Options {
    Options { verify_each: true, ..Options::default() }
}

fn failures(name: &str, unit: &Unit) -> Vec<String> {
    let mut failures = Vec::new();
    if let Err(broken) = verify_module(&unit.module) {
        failures.push(format!("{name}: {broken:?}"));
    }
    let printed = show_unit(unit).to_string();
    let source = SourceFile::new(name, &printed).unwrap();
    let (again, found) = read(&source, &Context::new());
    if found.has_errors() {
        failures.push(format!("{name}: the printed text does not read back: {found:?}\n{printed}"));
    } else if show_unit(&again).to_string() != printed {
        failures.push(format!("{name}: the printed text reads back as another"));
    }
    for check in &unit.checks {
        let limits = Limits { max_steps: 200_000_000, ..Limits::default() };
        let mut interp = Interp::new(&unit.module, limits, Box::new(SimMemory::default()));
        if let Verdict::Failed { expected, found } = interp.run_check(check) {
            failures.push(format!("{name}: expected {expected}, found {found}"));
        }
    }
    failures
}

/// Runs one pass over all functions, callees first.
fn run_one(unit: &mut Unit, pass: &'static Pass) -> Result<(), brolga_opt::OptError> {
    for id in bottom_up(&unit.module).into_iter().flatten() {
        let func = unit.module[id].clone();
        let (func, _) = run_passes(&unit.module, func, &[pass], &options(), &mut Cx::default())?;
        unit.module[id] = func;
    }
    Ok(())
}

fn check_folder(name: &str) {
    let mut all = Vec::new();
    for (file, text) in folder(name) {
        for pass in PASSES.iter().filter(|p| p.level != PassLevel::Low) {
            let mut unit = unit(&file, &text);
            let what = format!("{file}, {}", pass.name);
            match run_one(&mut unit, pass) {
                Ok(()) => all.extend(failures(&what, &unit)),
                Err(error) => all.push(format!("{what}: {error}")),
            }
        }
        for level in OptLevel::ALL {
            let mut unit = unit(&file, &text);
            let what = format!("{file}, {level:?}");
            match optimize_module(&mut unit.module, level, &options(), &mut Cx::default()) {
                Ok(_) => all.extend(failures(&what, &unit)),
                Err(error) => all.push(format!("{what}: {error}")),
            }
        }
    }
    assert!(all.is_empty(), "{} failures\n{}", all.len(), all.join("\n"));
}

#[test]
fn corpus() {
    check_folder("tests/corpus");
}

#[test]
fn examples() {
    check_folder("examples");
}
