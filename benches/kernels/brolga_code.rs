//! A kernel through the whole pipeline, at a level of optimisation and without some pass.

use brolga::{Engine, OptLevel, Options, Program};
use std::path::Path;

use crate::{Contender, here};

/// The columns and their levels.
pub(crate) const LEVELS: [(&str, OptLevel); 4] =
    [("-O0", OptLevel::O0), ("-O1", OptLevel::O1), ("-O2", OptLevel::O2), ("-O3", OptLevel::O3)];

/// The kernel at every level.
pub(crate) fn contenders(name: &str) -> Result<Vec<Contender>, String> {
    LEVELS
        .into_iter()
        .map(|(column, level)| contender(name, column, Options::new().opt_level(level)))
        .collect()
}

/// The kernel with these options.
pub(crate) fn contender(name: &str, column: &'static str, options: Options) -> Result<Contender, String> {
    let program = program(name)?;
    let engine = Engine::new(options).map_err(|e| e.to_string())?;
    let unit = engine.compile(&program).map_err(|e| e.to_string())?;
    let run = unit.func::<(i64, i64), f64>("run").map_err(|e| e.to_string())?;
    Ok(here(column, move |a, b| run.call((a, b)).map_err(|e| e.to_string())))
}

/// The kernel's program.
pub(crate) fn program(name: &str) -> Result<Program, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.jlir"));
    let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Program::read(name, &bytes).map_err(|e| e.to_string())
}
