//! The interface of prompts to terminals and pipes: inputs in, replies out.

use std::collections::BTreeSet;
use std::time::Duration;

use brolga_engine::session::Session;

/// The outcome of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// There is nothing to show.
    Nothing,
    /// A result.
    Shown(String),
    /// An error, rendered.
    Failed(String),
    /// The prompt is to end.
    Quit,
}

/// A prompt, as terminals and pipes see it.
pub(crate) trait Shell {
    /// Processes an input.
    fn submit(&mut self, text: &str) -> Reply;
    /// The session in which inputs are compiled.
    fn session(&self) -> &Session;
    /// All names that are meaningful at the prompt.
    fn names(&self) -> BTreeSet<String>;
    /// The text displayed before an input.
    fn prompt(&self) -> String;
    /// Whether an input needs no more lines.
    fn is_complete(&self) -> fn(&str) -> bool;
}

pub(crate) fn shown(text: String) -> Reply {
    Reply::Shown(text)
}

/// A time, with the number of functions compiled in it.
pub(crate) fn took(time: Duration, compiled: u64) -> String {
    match compiled {
        0 => format!("{time:.2?}"),
        1 => format!("{time:.2?}, 1 function compiled"),
        n => format!("{time:.2?}, {n} functions compiled"),
    }
}
