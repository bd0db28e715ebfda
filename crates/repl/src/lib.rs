//! The prompt: functions, types and expressions of the IR, line by line, over a session.
//!
//! ```text
//!   lines ── is_complete ──► input ──┬─ `:command`      what the compiler makes of the definitions
//!                                    ├─ definitions     defined or redefined in the session, for the worlds from the next one on
//!                                    └─ expression      evaluated; its value is shown, and becomes `ans`
//! ```
//!
//! | file, in reading order | what is in it |
//! |---|---|
//! | `input` | what an input is, and whether it is complete |
//! | `definitions` | the text of everything that is defined, as one program |
//! | `prompt` | [`Prompt`]: takes inputs, gives replies; knows no terminal |
//! | `commands` | the commands that begin with `:` |
//! | `complete` | completion of names |
//! | `terminal` | the line editor: history, several lines, completion, interrupts |
//! | `lines` | inputs from a pipe or a file |
#![forbid(unsafe_code)]

mod commands;
mod complete;
mod definitions;
mod input;
mod lines;
mod prompt;
mod terminal;

use std::path::PathBuf;

use brolga_ir::diag::Style;
use brolga_opt::OptLevel;

pub use input::is_complete;
pub use lines::run as run_lines;
pub use prompt::{Prompt, Reply, start};
pub use terminal::run as run_terminal;

/// Options of a prompt.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The level of optimisation.
    pub level: OptLevel,
    /// How often a function is called before it is compiled with all passes; none compiles it so at its first call.
    pub tiered: Option<u32>,
    /// Programs to load first.
    pub files: Vec<PathBuf>,
    /// Where the editor keeps its history; none keeps none.
    pub history: Option<PathBuf>,
    /// How errors are coloured.
    pub style: Option<&'static Style>,
}

impl Options {
    fn style(&self) -> &'static Style {
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
