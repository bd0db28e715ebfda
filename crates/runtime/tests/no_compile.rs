//! Uses of the heap that must not compile, each with the compiler's message, so a refusal for another reason is noticed.
//!
//! `TRYBUILD=overwrite cargo test -p brolga-runtime --test no_compile` accepts the compiler's messages; read them before committing.

use std::path::Path;
use std::process::Command;

/// A case whose message quotes the standard library, if its sources are installed. The expected message does not.
const QUOTES_SOURCES: &str = "tests/no_compile/a_root_on_another_thread.rs";

fn has_sources() -> bool {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    sysroot.is_ok_and(|sysroot| Path::new(&sysroot).join("lib/rustlib/src/rust/library").is_dir())
}

#[test]
fn references_unknown_to_the_collector_do_not_compile() {
    let cases = trybuild::TestCases::new();
    let files = std::fs::read_dir("tests/no_compile").expect("the folder of the cases");
    let mut paths: Vec<_> = files.map(|file| file.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.retain(|path| path != Path::new(QUOTES_SOURCES) || !has_sources());
    paths.sort();
    assert!(paths.len() >= 6, "{paths:?}");
    paths.iter().for_each(|path| cases.compile_fail(path));
}
