//! The functions of the corpus and of the examples in low IR, as the pipeline produces them with and without
//! optimisation, and the boxed entries of their methods.

use std::path::PathBuf;
use std::sync::Arc;

use brolga_ir::{Context, Func};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, OptLevel, Options, optimize, optimize_module};

use crate::support::read_module;

/// The folders with the programs, relative to the root of the workspace.
const FOLDERS: [&str; 3] = ["tests/corpus", "tests/lowering", "examples"];

/// A function of a program in low IR.
pub(crate) struct Lowered {
    pub(crate) file: String,
    pub(crate) level: OptLevel,
    /// Its symbol, and whether it is the boxed entry.
    pub(crate) what: String,
    pub(crate) cx: Arc<Context>,
    pub(crate) func: Func,
}

/// Every function that has a native form.
pub(crate) fn lowered() -> Vec<Lowered> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let entries = std::fs::read_dir(folder).expect("a folder of programs");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        paths.sort();
        let is_program =
            |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "jlir" || kind == "txt");
        for path in paths.iter().filter(is_program) {
            let text = std::fs::read_to_string(path).expect("a readable program");
            let name = path.file_name().and_then(|n| n.to_str()).expect("a UTF-8 name");
            for level in [OptLevel::O0, OptLevel::O2] {
                let mut module = read_module(name, &text);
                let (options, cx) = (Options::default(), module.cx.clone());
                optimize_module(&mut module, level, &options, &mut Cx::new(None)).expect("passes");
                let mut add = |what: String, func| {
                    let (file, cx) = (name.to_owned(), cx.clone());
                    all.push(Lowered { file, level, what, cx, func });
                };
                for (id, func) in module.funcs() {
                    let what = module[id].symbol(&module.cx);
                    if let Ok(boxed) = lower::boxed_entry(&module, id) {
                        add(format!("{what}, boxed"), boxed);
                    }
                    let Ok(low) = lower(&module, func, &lower::Options::default()) else { continue };
                    let optimised = optimize(&module, low, level, &options, &mut Cx::new(None));
                    add(what, optimised.expect("passes on low IR").0);
                }
            }
        }
    }
    all
}
