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
//! | `tongue` | [`Reply`], and what takes inputs, as the terminal and pipes see it |
//! | `options` | [`Options`], and how a prompt ends |
//! | `prompt` | [`Prompt`]: takes inputs, gives replies; knows no terminal |
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
mod terminal;
mod tongue;

pub use input::is_complete;
pub use language::Language;
pub use lines::{run as run_lines, run_in as run_lines_in};
pub use options::{Ended, Options};
pub use prompt::{Prompt, start};
pub use terminal::{run as run_terminal, run_in as run_terminal_in};
pub use tongue::Reply;
