//! The normal form of every example and every dump: it has the same meaning, keeps the comments, and is its own normal form.

use std::fs;
use std::path::{Path, PathBuf};

use brolga::format;
use brolga::unstable::read_unit;

fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = ["examples", "tests/corpus"]
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder of programs"))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jlir" || e == "txt"))
        .collect();
    paths.sort();
    paths
}

/// The comments that are neither tests nor headers of a dump.
fn comments(text: &str) -> Vec<&str> {
    let meaning = ["# check:", "# throws:", "# signature:", "# types:", "# globals:"];
    text.lines()
        .filter(|line| line.starts_with("# ") && !meaning.iter().any(|m| line.starts_with(m)))
        .map(str::trim_end)
        .collect()
}

#[test]
fn the_normal_form_is_stable_and_loses_nothing() {
    let programs = programs();
    assert!(programs.len() > 40, "only {} programs were found", programs.len());
    for path in programs {
        let name = path.display().to_string();
        let bytes = fs::read(&path).expect("a readable program");
        let (source, unit) = read_unit(&name, &bytes).unwrap_or_else(|error| panic!("{error}"));
        let once = format(&source, &unit).unwrap_or_else(|error| panic!("{error}"));
        let (source_again, unit_again) =
            read_unit(&name, once.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(unit.checks.len(), unit_again.checks.len(), "{name}: tests");
        assert_eq!(unit.module.func_count(), unit_again.module.func_count(), "{name}: functions");
        assert_eq!(comments(source.text()), comments(&once), "{name}: comments");
        let twice = format(&source_again, &unit_again).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(once, twice, "{name}: the normal form changes when it is formatted");
    }
}
