//! The functions of the corpus and of the examples in low IR, as the pipeline makes them without and with optimisation, and the
//! boxed entries of their methods.

use std::path::PathBuf;
use std::sync::Arc;

use brolga_ir::{Context, Func};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, OptLevel, Options, optimize, optimize_module};

use crate::support::read_module;

/// Where the programs are, from the root of the workspace.
const FOLDERS: [&str; 3] = ["tests/corpus", "tests/lowering", "examples"];

/// Every function that has a native form, with a name for messages.
pub(crate) fn lowered() -> Vec<(String, Arc<Context>, Func)> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let entries = std::fs::read_dir(folder).expect("a folder of programs");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            let text = std::fs::read_to_string(path).expect("a readable program");
            let name = path.file_name().and_then(|n| n.to_str()).expect("a UTF-8 name");
            for level in [OptLevel::O0, OptLevel::O2] {
                let mut module = read_module(name, &text);
                let (options, cx) = (Options::default(), module.cx.clone());
                optimize_module(&mut module, level, &options, &mut Cx::new(None)).expect("passes");
                for (id, func) in module.funcs() {
                    let Ok(low) = lower(&module, func, &lower::Options::default()) else { continue };
                    let optimised = optimize(&module, low, level, &options, &mut Cx::new(None));
                    let (low, _) = optimised.expect("passes on low IR");
                    let what = format!("{name}: {} at O{}", module.symbol(id), level as u8);
                    all.push((what, cx.clone(), low));
                }
            }
        }
    }
    all
}
