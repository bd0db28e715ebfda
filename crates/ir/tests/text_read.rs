//! The reader from text to module.

use std::fs;
use std::path::PathBuf;

use brolga_ir::Context;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{Unit, read, show_unit};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn unit(text: &str) -> Unit {
    let source = SourceFile::new("t", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    unit
}

#[test]
fn every_corpus_file_and_example_is_read() {
    for (name, text) in files("tests/corpus").into_iter().chain(files("examples")) {
        let source = SourceFile::new(&*name, &*text).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
        assert!(unit.module.func_count() > 0 && !unit.checks.is_empty(), "{name}");
    }
}

#[test]
fn a_block_that_falls_through_gets_a_goto() {
    let unit = unit("function f()::Int64\n1 ─ %1 = Base.add_int(1, 2)::Int64\n2 ─ return %1\nend\n");
    let (_, func) = unit.module.funcs().next().unwrap();
    let blocks: Vec<_> = func.blocks().collect();
    assert_eq!(func.successors(blocks[0]), [blocks[1]]);
    assert_eq!(func.block_insts(blocks[0]).count(), 2);
}

#[test]
fn printing_reading_and_printing_again_gives_the_same_text() {
    for (name, text) in files("tests/corpus").into_iter().chain(files("examples")) {
        let once = show_unit(&unit(&text)).to_string();
        let source = SourceFile::new(&*name, &*once).unwrap();
        let (again, found) = read(&source, &Context::new());
        assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
        assert_eq!(once, show_unit(&again).to_string(), "{name}");
    }
}
