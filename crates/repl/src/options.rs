//! The options of a prompt, and how it ends.

use std::path::PathBuf;

use brolga_engine::Error;
use brolga_engine::session::SessionError;
use brolga_ir::diag::Style;
use brolga_opt::OptLevel;
use brolga_runtime::Doors;

/// Options of a prompt.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The level of optimisation.
    pub level: OptLevel,
    /// The number of calls after which a function is compiled with all passes; `None` compiles it so at its
    /// first call.
    pub tiered: Option<u32>,
    /// The permission to run programs that are not checked; `None` refuses them.
    pub doors: Option<Doors>,
    /// Programs to load first.
    pub files: Vec<PathBuf>,
    /// The file in which the editor keeps its history; `None` for no history.
    pub history: Option<PathBuf>,
    /// How errors are coloured.
    pub style: Option<&'static Style>,
}

impl Options {
    pub(crate) fn style(&self) -> &'static Style {
        self.style.unwrap_or(&Style::PLAIN)
    }

    /// An error in displayed form.
    pub(crate) fn message(&self, text: &str) -> String {
        let style = self.style();
        format!("{}error{}: {text}", style.error, style.reset)
    }

    pub(crate) fn error(&self, error: &Error) -> String {
        match error {
            Error::Broken(broken) => broken.render(self.style()).trim_end().to_owned(),
            other => self.message(&other.to_string()),
        }
    }

    pub(crate) fn session_error(&self, error: &SessionError) -> String {
        match error {
            SessionError::Program(program) => self.error(program),
            other => {
                let mut text = other.to_string();
                other.causes().iter().for_each(|cause| text.push_str(&format!("\n  {cause}")));
                self.message(&text)
            }
        }
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
