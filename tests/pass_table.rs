//! The table of passes in `docs/passes.md` is that of the optimiser: every pass has a row, a file and tests, and every row has
//! a pass.
//!
//! The figures in it come from a run of the benchmark (`benches/kernels/without.rs`), which also writes the rest.

use brolga::opt::PASSES;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names() -> BTreeSet<String> {
    PASSES.iter().map(|pass| pass.name.to_owned()).collect()
}

fn file_of(pass: &str) -> PathBuf {
    root().join("crates/opt/src/passes").join(format!("{}.rs", pass.replace('-', "_")))
}

/// The texts in a folder of tests.
fn tests_of(pass: &str) -> Vec<String> {
    let folder = root().join("tests/filetests/opt").join(pass);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_pass_has_a_file_that_says_what_it_does() {
    for pass in names() {
        let text = fs::read_to_string(file_of(&pass)).unwrap_or_else(|e| panic!("`{pass}`: {e}"));
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.ends_with(['.', ':']), "`{pass}` starts with `{first}`");
        assert!(text.contains(&format!("Pass::new(\"{pass}\"")), "the file of `{pass}` makes another pass");
        assert!(text.contains("Cost:"), "`{pass}` does not say what it costs");
    }
}

#[test]
fn every_pass_has_tests_and_neighbours_that_must_not_fire() {
    for pass in names() {
        let tests = tests_of(&pass);
        assert!(tests.len() >= 2, "`{pass}` has {} text tests", tests.len());
        let kept = |name: &String| {
            let path = root().join("tests/filetests/opt").join(&pass).join(name);
            let text = fs::read_to_string(path).unwrap();
            name.starts_with("not")
                || name.starts_with("kept")
                || text.lines().nth(1).is_some_and(|line| line.contains("Not"))
        };
        assert!(tests.iter().any(kept), "`{pass}` has no test of what it leaves alone");
    }
}

#[test]
fn the_table_has_a_row_for_every_pass_and_no_other() {
    let text = fs::read_to_string(root().join("docs/passes.md")).expect("the table");
    let mut rows = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, from, what, tests, without, ..] = cells[..] else { panic!("a short row: {line}") };
        let name = name.trim_matches('`').to_owned();
        assert!(names().contains(&name), "`{name}` is no pass");
        assert!(["O0", "O1", "O2", "O3"].contains(&from), "{line}");
        assert!(!what.is_empty() && !without.is_empty(), "{line}");
        let first = fs::read_to_string(file_of(&name)).unwrap_or_default();
        let first = first.lines().next().unwrap_or_default().trim_start_matches("//!").trim();
        assert_eq!(what, first, "the row of `{name}` does not say what its file says");
        assert_eq!(tests, format!("[tests](../tests/filetests/opt/{name})"));
        assert!(rows.insert(name), "two rows of one pass: {line}");
    }
    assert_eq!(rows, names());
}
