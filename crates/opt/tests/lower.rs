//! Every function that the interpreter runs has a native form, which the verifier accepts.

use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_func};
use brolga_ir::verify::verify_func;
use brolga_ir::{Context, Module};
use brolga_opt::lower::{Options, boxed_entry, lower};
use std::fs;
use std::path::Path;

fn modules(folder: &str) -> Vec<(String, Module)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let module = |path: &Path| {
        let name = path.display().to_string();
        let source = SourceFile::new(&*name, fs::read_to_string(path).unwrap()).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
        (name, unit.module)
    };
    // Examples of embedding are in the same folder as the programs.
    let is_program = |path: &&Path| path.is_file() && path.extension().is_none_or(|e| e != "rs");
    paths.iter().map(|path| path.as_path()).filter(is_program).map(module).collect()
}

#[test]
fn every_function_has_a_native_form_and_a_boxed_entry() {
    let mut count = 0;
    for (name, module) in ["tests/corpus", "tests/lowering", "examples"].into_iter().flat_map(modules) {
        for (id, func) in module.funcs() {
            let symbol = module[id].symbol(&module.cx);
            for low in [lower(&module, func, &Options::default()), boxed_entry(&module, id)] {
                let low = low.unwrap_or_else(|why| panic!("{name}: {why}"));
                if let Err(report) = verify_func(&module.cx, &low) {
                    panic!("{name}: {symbol}: {report:?}\n{}", show_func(&module.cx, &low));
                }
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}
