//! The languages of `embedding/` at the prompt. Their folders here are links to the examples' folders.

mod kaleidoscope;
mod scheme;

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga::session::Dylib;
use brolga::{Options, Program};
use brolga_repl::Language;

use crate::report::Stop;

/// A language by its name on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Lang {
    /// The IR's text
    Ir,
    /// Numbers, functions of numbers, and functions of C
    Kaleidoscope,
    /// Functions as values, lists, closures
    Scheme,
}

impl Lang {
    /// A prompt of this language; none of the IR. `tiered` is after how many calls functions are compiled again.
    pub(super) fn make(
        self,
        options: Options,
        tiered: Option<u32>,
    ) -> Result<Option<Box<dyn Language>>, Stop> {
        let cannot = |error: Box<dyn std::error::Error + Send + Sync>| Stop::System(error.to_string());
        Ok(match self {
            Lang::Ir => None,
            Lang::Kaleidoscope => {
                Some(Box::new(Kaleidoscope(kaleidoscope::Repl::new(options).map_err(cannot)?)))
            }
            Lang::Scheme => {
                let tiers = tiered.map_or(scheme::Tiers::One, scheme::Tiers::Two);
                Some(Box::new(Scheme(scheme::Repl::new(options, tiers).map_err(cannot)?)))
            }
        })
    }
}

/// Names of functions as a language spells them.
fn names(dylib: &Dylib, spelled: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    dylib.methods().unwrap_or_default().iter().filter_map(|method| spelled(&method.name)).collect()
}

struct Kaleidoscope(kaleidoscope::Repl);

impl Drop for Kaleidoscope {
    fn drop(&mut self) {
        self.0.session.end();
    }
}

impl Language for Kaleidoscope {
    fn name(&self) -> &str {
        "kaleidoscope"
    }

    fn dylib(&self) -> &Dylib {
        &self.0.dylib
    }

    fn is_complete(&self) -> fn(&str) -> bool {
        kaleidoscope::is_complete
    }

    fn submit(&mut self, text: &str) -> Result<String, String> {
        let (mut pending, mut values) = (String::new(), Vec::new());
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            pending.push_str(line);
            pending.push('\n');
            if lines.peek().is_some() && !kaleidoscope::is_complete(&pending) {
                continue;
            }
            let value = self.0.line(&std::mem::take(&mut pending)).map_err(|error| error.to_string())?;
            values.extend(value.map(|value| value.to_string()));
        }
        Ok(values.join("\n"))
    }

    fn names(&self) -> BTreeSet<String> {
        let mut names = names(self.dylib(), |name| Some(name.to_owned()));
        names.extend(["def", "else", "extern", "if", "in", "let", "then"].map(str::to_owned));
        names
    }

    fn program(&self) -> Result<Program, String> {
        self.0.program().map_err(|error| error.to_string())
    }
}

struct Scheme(Arc<scheme::Repl>);

impl Drop for Scheme {
    fn drop(&mut self) {
        self.0.session.end();
    }
}

impl Language for Scheme {
    fn name(&self) -> &str {
        "scheme"
    }

    fn dylib(&self) -> &Dylib {
        &self.0.dylib
    }

    fn is_complete(&self) -> fn(&str) -> bool {
        scheme::is_complete
    }

    fn submit(&mut self, text: &str) -> Result<String, String> {
        let done = self.0.forms(text);
        let mut shown = self.0.written();
        for value in done {
            // Output before an error comes with it.
            let value =
                value.map_err(|error| if shown.is_empty() { error } else { format!("{error}\n{shown}") })?;
            if !value.is_empty() {
                shown.push_str(&value);
                shown.push('\n');
            }
        }
        Ok(shown)
    }

    fn names(&self) -> BTreeSet<String> {
        let mut names = names(self.dylib(), scheme::globals::spelled);
        let forms =
            ["begin", "cond", "define", "if", "lambda", "let", "letrec", "quote", "set!", "unless", "when"];
        names.extend(forms.map(str::to_owned));
        names
    }

    fn ir_name(&self, name: &str) -> String {
        scheme::globals::symbol(name)
    }

    fn own_name(&self, ir_name: &str) -> Option<String> {
        scheme::globals::spelled(ir_name)
    }

    fn own_functions(&self) -> Option<BTreeSet<String>> {
        Some(self.0.own_functions())
    }

    fn program(&self) -> Result<Program, String> {
        self.0.program().map_err(|error| error.to_string())
    }
}
