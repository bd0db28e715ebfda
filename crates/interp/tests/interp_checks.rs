//! Every `# check:` and `# throws:` line of the corpus and the examples, by the interpreter.

use std::fs;
use std::path::PathBuf;

use brolga_interp::{Interp, Options, SimMemory, Verdict};
use brolga_ir::Context;
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{Unit, read};

fn unit(text: &str) -> Unit {
    let source = SourceFile::new("t", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors());
    unit
}

/// Runs all checks of a text, each in a fresh interpreter; returns their number and a line for each failure.
fn run(name: &str, text: &str) -> (usize, Vec<String>) {
    let unit = unit(text);
    let mut failures = Vec::new();
    for check in &unit.checks {
        let options = Options { max_steps: 200_000_000, ..Options::default() };
        let mut interp = Interp::new(&unit.module, options, Box::new(SimMemory::default()));
        if let Verdict::Failed { expected, found } = interp.run_check(check) {
            let line = &text[check.span.start as usize..check.span.end as usize];
            failures.push(format!("{name}: {line}\n  expected {expected}\n  found    {found}"));
        }
    }
    (unit.checks.len(), failures)
}

fn run_folder(folder: &str) -> usize {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let (mut count, mut failures) = (0, Vec::new());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (checks, failed) = run(&path.file_name().unwrap().to_string_lossy(), &text);
        assert!(checks > 0, "{}", path.display());
        count += checks;
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "{} of {count} failed\n{}", failures.len(), failures.join("\n"));
    count
}

#[test]
fn corpus() {
    assert!(run_folder("tests/corpus") >= 150);
}

#[test]
fn examples() {
    assert!(run_folder("examples") >= 20);
}

#[test]
fn a_wrong_value_and_a_missing_exception_are_found() {
    let text = "# check: f(1) == 3\n# check: f(1) == 2.0\n# throws: f(1) DivideError\n# throws: f(0) BoundsError\n\
                # throws: f(0) Exception\n# check: f(1) == 2\n\
                function f(x::Int64)::Int64\n1 ─ %1 = Base.checked_sdiv_int(2, x)::Int64\n└──      return %1\nend\n";
    let (count, failures) = run("t", text);
    assert_eq!((count, failures.len()), (6, 4), "{failures:?}");
    assert!(failures[0].contains("expected 3\n  found    2"), "{}", failures[0]);
    assert!(failures[2].contains("found    2"), "{}", failures[2]);
    assert!(failures[3].contains("found    threw DivideError()"), "{}", failures[3]);
}
