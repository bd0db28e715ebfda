//! The prompt: functions, types and expressions of the IR, line by line, over a session.
//!
//! ```text
//!   lines ── is_complete ──► input ──┬─ `:command`      shows compiled forms of the definitions
//!                                    ├─ definitions     defined or redefined in the session, for the worlds from the next one on
//!                                    └─ expression      evaluated; its value is shown, and becomes `ans`
//! ```
//!
//! | file, in reading order | content |
//! |---|---|
//! | `input` | kinds of inputs, and whether one is complete |
//! | `definitions` | the text of all definitions, as one program |
//! | `shell` | [`Reply`], and the interface of prompts to terminals and pipes |
//! | `options` | [`Options`], and how a prompt ends |
//! | `prompt` | [`Prompt`]: turns inputs into replies; independent of terminals |
//! | `commands` | the commands that begin with `:` |
//! | `complete` | completion of names |
//! | `language` | [`Language`]: other languages at the prompt |
//! | `terminal` | the line editor: history, several lines, completion, interrupts |
//! | `lines` | inputs from a pipe or a file |
#![forbid(unsafe_code)]

mod commands;
mod complete;
mod definitions;
mod input;
mod language;
mod lines;
mod options;
mod prompt;
mod shell;
mod terminal;

pub use input::is_complete;
pub use language::Language;
pub use lines::{run as run_lines, run_in as run_lines_in};
pub use options::{Ended, Options};
pub use prompt::{Prompt, start};
pub use shell::Reply;
pub use terminal::{run as run_terminal, run_in as run_terminal_in};
