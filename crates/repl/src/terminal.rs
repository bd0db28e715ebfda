//! The prompt on a terminal: an editor with history, several lines and completion.
//!
//! Enter submits a complete input, and otherwise begins a new line. Control-C discards the input, or
//! interrupts a running call: compiled code stops at its next safepoint with `InterruptException`. The third
//! Control-C ends the process, for code without safepoints. Control-D ends the prompt.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | I1 | count a press, reset the count | Relaxed | – | nothing: one word, which publishes no other data |

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use brolga_runtime::Interrupt;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::complete::complete;
use crate::language::{Foreign, Language};
use crate::options::{Ended, Options};
use crate::prompt::start;
use crate::shell::{Reply, Shell};

/// The number of presses of Control-C that end the process.
const LAST_PRESS: u32 = 3;

/// The status of a process ended by Control-C, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// The editor's helper.
struct Help {
    is_complete: fn(&str) -> bool,
    names: Rc<RefCell<BTreeSet<String>>>,
}

impl Completer for Help {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(&self.names.borrow(), line, at))
    }
}

impl Validator for Help {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let is_ended = text.ends_with('\n') || (self.is_complete)(text);
        Ok(if is_ended { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Help {
    type Hint = String;
}

impl Highlighter for Help {}

impl Helper for Help {}

/// Reads inputs from the terminal until the user ends the prompt.
///
/// # Errors
/// The terminal cannot be read or written. Outside: like [`start`].
pub fn run(options: &Options) -> Result<io::Result<Ended>, brolga_engine::Error> {
    start(options, |prompt, loaded| converse(prompt, loaded, options))
}

/// Like [`run`], in another language.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn run_in(language: &mut dyn Language, options: &Options) -> io::Result<Ended> {
    let (mut prompt, loaded) = Foreign::new(language, options);
    converse(&mut prompt, loaded, options)
}

fn converse(prompt: &mut dyn Shell, loaded: Vec<Reply>, options: &Options) -> io::Result<Ended> {
    loaded.into_iter().for_each(show);
    let names = Rc::new(RefCell::new(prompt.names()));
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
    let mut editor: Editor<Help, FileHistory> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Help { is_complete: prompt.is_complete(), names: names.clone() }));
    if let Some(file) = &options.history {
        // The file may not exist yet.
        let _ = editor.load_history(file);
    }
    let presses = Arc::new(AtomicU32::new(0));
    interrupt_by_signal(Interrupt::for_current(prompt.session().runtime()).ok(), &presses);
    println!("Brolga {}; `:help` lists the commands", env!("CARGO_PKG_VERSION"));
    loop {
        match editor.readline(&prompt.prompt()) {
            Ok(text) => {
                presses.store(0, Ordering::Relaxed); // I1
                let reply = prompt.submit(&text);
                if reply == Reply::Quit {
                    break;
                }
                show(reply);
                *names.borrow_mut() = prompt.names();
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(file) = &options.history {
        let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = made.and_then(|()| editor.save_history(file).map_err(failed)) {
            eprintln!("the history was not written to `{}`: {error}", file.display());
        }
    }
    Ok(Ended::Well)
}

fn show(reply: Reply) {
    match reply {
        Reply::Shown(text) => println!("{text}"),
        Reply::Failed(text) => eprintln!("{text}"),
        Reply::Nothing | Reply::Quit => {}
    }
    // If the terminal is gone, the next read ends.
    let _ = io::stdout().flush();
}

/// Installs the handler by which Control-C interrupts compiled code on the prompt's thread.
fn interrupt_by_signal(interrupt: Option<Interrupt>, presses: &Arc<AtomicU32>) {
    let Some(interrupt) = interrupt else { return };
    let presses = presses.clone();
    // A second prompt in the process keeps the handler of the first one.
    let _ = ctrlc::set_handler(move || {
        interrupt.raise();
        let pressed = presses.fetch_add(1, Ordering::Relaxed) + 1; // I1
        if pressed >= LAST_PRESS {
            #[expect(
                clippy::disallowed_methods,
                reason = "the prompt's thread runs what cannot be interrupted"
            )]
            std::process::exit(INTERRUPTED);
        }
    });
}

fn failed(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other),
    }
}
