//! The binary form of every corpus file and example: the same text is restored, and damage is refused at an
//! offset.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use brolga_ir::binary::{read, write};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{read as read_text, show_module};
use brolga_ir::verify::verify_module;
use brolga_ir::{Context, Module};

fn modules() -> Vec<(String, Module)> {
    modules_in(&["tests/corpus", "examples", "tests/objects"])
}

fn modules_in(folders: &[&str]) -> Vec<(String, Module)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = folders.iter().map(|f| fs::read_dir(root.join(f)).unwrap());
    let mut paths: Vec<_> = folders.flatten().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "txt" || e == "jlir"));
    paths.sort();
    let module = |path: PathBuf| {
        let name = path.display().to_string();
        let source = SourceFile::new(&*name, fs::read_to_string(path).unwrap()).unwrap();
        let (unit, found) = read_text(&source, &Context::new());
        // Late refusals produce warnings.
        assert!(!found.has_errors(), "{name}");
        (name, unit.module)
    };
    paths.into_iter().map(module).collect()
}

/// The bytes and the text of a module, after checking that reading the bytes restores it.
fn comes_back(name: &str, module: &Module) -> (Vec<u8>, String) {
    let bytes = write(module);
    let text = show_module(module).to_string();
    for cx in [Context::new(), Arc::clone(&module.cx)] {
        let back = read(&bytes, cx).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(show_module(&back).to_string(), text, "{name}");
        assert!(write(&back) == bytes, "{name}: written again it differs");
    }
    (bytes, text)
}

#[test]
fn every_module_comes_back() {
    // The Julia programs are short and contain long messages, so only the others show how compact the form
    // is.
    for (name, module) in modules_in(&["tests/julia"]) {
        comes_back(&name, &module);
    }
    for (name, module) in modules() {
        let (bytes, text) = comes_back(&name, &module);
        // Even the smallest module has the header and directory, the names of the types and the head of a
        // function.
        let fixed = 72 + 14 * module.func_count();
        assert!(
            (bytes.len() - fixed) * 3 < 2 * text.len(),
            "{name}: {} bytes for {} of text",
            bytes.len(),
            text.len()
        );
    }
}

/// The checksum detects all damage of up to eight consecutive bytes, and nearly all other.
#[test]
fn damaged_files_are_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % bound
    };
    let files: Vec<Vec<u8>> = modules().iter().map(|(_, module)| write(module)).collect();
    for round in 0..10_000 {
        let mut bytes = files[round % files.len()].clone();
        let at = random(bytes.len());
        match random(3) {
            0 => bytes[at] = bytes[at].wrapping_add(1 + random(255) as u8),
            1 => bytes.truncate(at),
            _ => bytes.insert(at, random(256) as u8),
        }
        match read(&bytes, Context::new()) {
            Err(error) => assert!(error.offset <= bytes.len()),
            Ok(module) => assert!(verify_module(&module).is_ok()),
        }
    }
}
