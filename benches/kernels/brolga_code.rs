//! A kernel through the whole pipeline, once for each level of optimisation.

use brolga::{Engine, OptLevel, Options, Program};
use std::path::Path;

use crate::Contender;

/// The columns and their levels.
pub(crate) const LEVELS: [(&str, OptLevel); 4] =
    [("-O0", OptLevel::O0), ("-O1", OptLevel::O1), ("-O2", OptLevel::O2), ("-O3", OptLevel::O3)];

/// The kernel at every level.
pub(crate) fn contenders(name: &str) -> Result<Vec<Contender>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.jlir"));
    let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let program = Program::read(name, &bytes).map_err(|e| e.to_string())?;
    let contender = |(column, level)| {
        let engine = Engine::new(Options::new().opt_level(level)).map_err(|e| e.to_string())?;
        let unit = engine.compile(&program).map_err(|e| e.to_string())?;
        let run = unit.func::<(i64, i64), f64>("run").map_err(|e| e.to_string())?;
        let call = move |a, b| run.call((a, b)).map_err(|e| e.to_string());
        Ok(Contender { column, run: Box::new(call) })
    };
    LEVELS.into_iter().map(contender).collect()
}
