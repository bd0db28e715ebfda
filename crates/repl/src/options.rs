//! The choices of a prompt, and its end.

use std::path::PathBuf;

use brolga_ir::diag::Style;
use brolga_opt::OptLevel;
use brolga_runtime::Doors;

/// Options of a prompt.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The level of optimisation.
    pub level: OptLevel,
    /// How often a function is called before it is compiled with all passes; none compiles it so at its first call.
    pub tiered: Option<u32>,
    /// The right to run programs that are not checked; none refuses them.
    pub doors: Option<Doors>,
    /// Programs to load first.
    pub files: Vec<PathBuf>,
    /// Where the editor keeps its history; none keeps none.
    pub history: Option<PathBuf>,
    /// How errors are coloured.
    pub style: Option<&'static Style>,
}

impl Options {
    pub(crate) fn style(&self) -> &'static Style {
        self.style.unwrap_or(&Style::PLAIN)
    }
}

/// How a prompt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every input was accepted.
    Well,
    /// There was an error.
    WithErrors,
}
