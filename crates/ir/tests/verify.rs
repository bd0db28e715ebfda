//! The verifier on the reader's output: every corpus file and example is accepted, and messages about broken
//! text point to the right place.

use std::fs;
use std::path::PathBuf;

use brolga_ir::Context;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::read;
use brolga_ir::verify::{source_span, verify_module};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        paths.map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect();
    files.sort();
    files
}

/// The verifier's findings for a text that the reader accepts.
fn findings(name: &str, text: &str) -> String {
    let cx = Context::new();
    let source = SourceFile::new(name, text).unwrap();
    let (unit, found) = read(&source, &cx);
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    let Err(violations) = verify_module(&unit.module) else { return String::new() };
    let globals = violations.globals.iter().map(|g| g.message(&cx) + "\n");
    let funcs = violations.funcs.iter().flat_map(|(id, list)| {
        let func = &unit.module[*id];
        let (cx, source) = (&cx, &source);
        list.iter().map(move |v| v.diagnostic(cx, func, &source_span(func)).render(source, &Style::PLAIN))
    });
    globals.chain(funcs).collect()
}

#[test]
fn the_corpus_and_the_examples_are_well_formed() {
    for (name, text) in files("tests/corpus").into_iter().chain(files("examples")) {
        assert_eq!(findings(&name, &text), "", "{name}");
    }
}
