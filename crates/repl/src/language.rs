//! Other languages at the prompt: an embedder's language in place of the IR's text, with the same editor and
//! commands.
//!
//! ```text
//!   terminal, lines ──► Shell ──┬─ Prompt      the IR's text
//!                                └─ Foreign     a [`Language`], and the commands that do not need IR text
//! ```
//!
//! `:opt`, `:low`, `:asm` and `:explore` need a language that can translate its definitions to the IR
//! ([`Language::program`]); the language has its own variables, so there is no `:vars`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use brolga_engine::Program;
use brolga_engine::session::{Dylib, Session};
use brolga_files::{Links, MOST_TEXT, read};

use crate::commands::{self, Command, Wanted};
use crate::input;
use crate::options::Options;
use crate::shell::{Reply, Shell, shown, took};

/// A language for a prompt.
pub trait Language {
    /// The name of the language, and of the prompt.
    fn name(&self) -> &str;

    /// The dylib in which its functions are defined.
    fn dylib(&self) -> &Dylib;

    /// Whether an input needs no more lines.
    fn is_complete(&self) -> fn(&str) -> bool;

    /// Processes an input. Returns the output or the values to show.
    ///
    /// # Errors
    /// The input has no value; the text has the reason.
    fn submit(&mut self, text: &str) -> Result<String, String>;

    /// The names offered for completion.
    fn names(&self) -> BTreeSet<String>;

    /// The IR name of a function of the language.
    fn ir_name(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The name in the language of an IR function, as shown by `:dispatch`; `None` if it has none.
    fn own_name(&self, ir_name: &str) -> Option<String> {
        Some(ir_name.to_owned())
    }

    /// The symbols of the functions shown by `:opt`, `:low`, `:asm` and `:explore` if no name is given;
    /// `None` for the whole program.
    fn own_functions(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// All definitions, in the IR.
    ///
    /// # Errors
    /// The language cannot translate them, or its IR is refused.
    fn program(&self) -> Result<Program, String>;
}

/// A prompt for a [`Language`].
pub(crate) struct Foreign<'l> {
    language: &'l mut dyn Language,
    options: &'l Options,
}

impl<'l> Foreign<'l> {
    /// A prompt, and the results of loading the files in the options.
    pub(crate) fn new(language: &'l mut dyn Language, options: &'l Options) -> (Foreign<'l>, Vec<Reply>) {
        let mut prompt = Foreign { language, options };
        let loaded = options.files.iter().map(|file| prompt.load(file)).collect();
        (prompt, loaded)
    }

    fn load(&mut self, file: &Path) -> Reply {
        let read = read(file, Links::Followed, MOST_TEXT).map_err(std::io::Error::from);
        match read.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other)) {
            Ok(text) => self.evaluate(&text),
            Err(error) => self.failed(&format!("cannot read `{}`: {error}", file.display())),
        }
    }

    fn failed(&self, text: &str) -> Reply {
        Reply::Failed(self.options.message(text))
    }

    fn evaluate(&mut self, text: &str) -> Reply {
        match self.language.submit(text) {
            Ok(text) if text.is_empty() => Reply::Nothing,
            Ok(text) => shown(text.trim_end_matches('\n').to_owned()),
            Err(error) => self.failed(&error),
        }
    }

    fn timed(&mut self, text: &str) -> Reply {
        let compiled = self.session().stats().compiled_functions;
        let start = Instant::now();
        let reply = self.evaluate(text);
        let time = start.elapsed();
        let took = took(time, self.session().stats().compiled_functions - compiled);
        match reply {
            Reply::Shown(text) => shown(format!("{text}\n{took}")),
            Reply::Nothing => shown(took),
            other => other,
        }
    }

    /// The functions denoted by an argument. An empty argument denotes all functions.
    fn wanted<'a>(&self, name: &'a str) -> Wanted<'a> {
        let ir_name = if name.is_empty() { String::new() } else { self.language.ir_name(name) };
        Wanted { name, ir_name: ir_name.into() }
    }

    fn show(&self, command: &str, args: &str, program: &Program) -> Result<Reply, String> {
        let own = self.language.own_functions();
        let is_own = |symbol: &str| own.as_ref().is_none_or(|own| own.contains(symbol));
        match commands::Form::of(command) {
            Some(form) => commands::show(program, form, &self.wanted(args), &is_own, self.options),
            None => commands::explore(program, args, &is_own, self.options),
        }
    }

    fn command(&mut self, name: &str, args: &str) -> Reply {
        let done = match name {
            "help" | "?" => Ok(shown(commands::help("Inputs are in the language itself.\n", is_known))),
            "quit" | "q" | "exit" => Ok(Reply::Quit),
            "time" if args.is_empty() => Err(self.options.message("`:time` takes an expression")),
            "time" => Ok(self.timed(args)),
            "load" if args.is_empty() => Err(self.options.message("`:load` takes a file")),
            "load" => Ok(self.load(Path::new(args))),
            "dispatch" => {
                let own_name = |ir_name: &str| self.language.own_name(ir_name);
                commands::dispatch(self.language.dylib(), &self.wanted(args), &own_name, self.options)
            }
            "stats" => Ok(shown(commands::stats(self.session()))),
            "opt" | "low" | "asm" | "explore" => {
                let program = self.language.program().map_err(|error| self.options.message(&error));
                program.and_then(|program| self.show(name, args, &program))
            }
            _ => Err(commands::unknown(name, is_known, self.options)),
        };
        done.unwrap_or_else(Reply::Failed)
    }
}

fn is_known(command: &Command) -> bool {
    command.name != "vars"
}

impl Shell for Foreign<'_> {
    fn submit(&mut self, text: &str) -> Reply {
        let reply = match input::command(text) {
            Some((name, args)) => self.command(name, args),
            None => self.evaluate(text),
        };
        self.session().runtime().sink().flush();
        reply
    }

    fn session(&self) -> &Session {
        self.language.dylib().session()
    }

    fn names(&self) -> BTreeSet<String> {
        let mut names = self.language.names();
        names.extend(
            commands::COMMANDS.iter().filter(|command| is_known(command)).map(|c| format!(":{}", c.name)),
        );
        names
    }

    fn prompt(&self) -> String {
        format!("{}> ", self.language.name())
    }

    fn is_complete(&self) -> fn(&str) -> bool {
        self.language.is_complete()
    }
}
