//! A kernel through the whole pipeline, at a level of optimisation and without some pass.

use brolga::{Engine, OptLevel, Options, Program};
use std::path::Path;

use crate::{Contender, Kernel, front, here};

/// The columns and their levels.
pub(crate) const LEVELS: [(&str, OptLevel); 4] =
    [("-O0", OptLevel::O0), ("-O1", OptLevel::O1), ("-O2", OptLevel::O2), ("-O3", OptLevel::O3)];

/// The kernel at every level.
pub(crate) fn contenders(kernel: &Kernel) -> Result<Vec<Contender>, String> {
    LEVELS
        .into_iter()
        .map(|(column, level)| contender(kernel, column, crate::doors::open(Options::new()).opt_level(level)))
        .collect()
}

/// The kernel with these options.
pub(crate) fn contender(
    kernel: &Kernel,
    column: &'static str,
    options: Options,
) -> Result<Contender, String> {
    let program = program(kernel)?;
    let engine = Engine::new(options).map_err(|e| e.to_string())?;
    let unit = engine.compile(&program).map_err(|e| e.to_string())?;
    let run = unit.func::<(i64, i64), f64>("run").map_err(|e| e.to_string())?;
    Ok(here(column, move |a, b| run.call((a, b)).map_err(|e| e.to_string())))
}

/// The kernel's program.
pub(crate) fn program(kernel: &Kernel) -> Result<Program, String> {
    Program::read(kernel.name, text(kernel)?.as_bytes()).map_err(|e| e.to_string())
}

/// The text of the kernel's program.
pub(crate) fn text(kernel: &Kernel) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = if kernel.is_julia {
        root.join(format!("benches/kernels/julia/{}.jl", kernel.name))
    } else {
        root.join(format!("examples/{}.jlir", kernel.name))
    };
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(if kernel.is_julia { front::print(&text) } else { text })
}
