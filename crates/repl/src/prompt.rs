//! The prompt without a terminal: inputs in, replies out.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use brolga_engine::session::{Definitions as Defined, Dylib, Evaluator, Session, Workers};
use brolga_engine::{Error, Failure, Options as EngineOptions};
use brolga_files::{Links, MOST_TEXT, read};
use brolga_ir::Module;
use brolga_ir::diag::SourceFile;

use crate::definitions::Definitions;
use crate::input::{self, Input, is_complete};
use crate::options::Options;
use crate::shell::{Reply, Shell, shown, took};

/// The name of typed text in messages.
pub(crate) const NAME: &str = "<prompt>";

/// The variable that holds the last value.
const LAST: &str = "ans";

/// A session that processes inputs as text.
pub struct Prompt<'m> {
    pub(crate) options: Options,
    pub(crate) dylib: Dylib,
    pub(crate) evaluator: Evaluator<'m>,
    pub(crate) definitions: Definitions,
}

/// Makes a session and calls `body` with its prompt, after loading the files in the options.
///
/// # Errors
/// There is no code generator for this processor, or no memory for code.
pub fn start<R>(options: &Options, body: impl FnOnce(&mut Prompt<'_>, Vec<Reply>) -> R) -> Result<R, Error> {
    let settings = EngineOptions::new().opt_level(options.level);
    let settings = match options.doors {
        Some(doors) => settings.doors(doors),
        None => settings,
    };
    let workers = if options.tiered.is_some() { Workers::Pool(1) } else { Workers::Caller };
    let session = Session::new(settings, workers)?;
    let dylib = session.create_dylib("prompt").map_err(|error| Error::Globals(error.to_string().into()))?;
    dylib.add_process_symbols(|_| true).map_err(|error| Error::Globals(error.to_string().into()))?;
    let module = Module::new(session.context().view());
    let evaluator = Evaluator::new(&dylib, &module);
    let mut prompt =
        Prompt { options: options.clone(), dylib, evaluator, definitions: Definitions::default() };
    let loaded = options.files.iter().map(|file| prompt.load(file)).collect();
    let result = body(&mut prompt, loaded);
    drop(prompt);
    session.end();
    Ok(result)
}

impl Prompt<'_> {
    pub fn session(&self) -> &Session {
        self.dylib.session()
    }

    /// Processes an input.
    pub fn submit(&mut self, text: &str) -> Reply {
        let reply = match input::kind(text) {
            Input::Empty => Ok(Reply::Nothing),
            Input::Command(name, args) => self.command(name, args),
            Input::Definitions => self.define(NAME, text.as_bytes()),
            Input::Assignment(name, expression) => {
                self.evaluate(&expression, Some(name)).map(|_| Reply::Nothing)
            }
            Input::Expression => self.evaluate(text, None).map(shown),
        };
        // The program's own output precedes the value.
        self.session().runtime().sink().flush();
        reply.unwrap_or_else(Reply::Failed)
    }

    /// Evaluates an expression. Its value is stored in a variable.
    pub(crate) fn evaluate(&mut self, text: &str, name: Option<&str>) -> Result<String, String> {
        let value = self.evaluator.evaluate(NAME, text).map_err(|failure| self.failure(failure))?;
        let text = self.evaluator.show(&value).map_err(|failure| self.failure(failure))?;
        self.evaluator.set(name.unwrap_or(LAST), value);
        Ok(text)
    }

    /// Like [`Prompt::evaluate`], with the time that it took.
    pub(crate) fn timed(&mut self, text: &str) -> Result<Reply, String> {
        let compiled = self.session().stats().compiled_functions;
        let start = Instant::now();
        let value = self.evaluate(text, None)?;
        let time = start.elapsed();
        let compiled = self.session().stats().compiled_functions - compiled;
        Ok(shown(format!("{value}\n{}", took(time, compiled))))
    }

    /// Loads a program.
    pub(crate) fn load(&mut self, file: &Path) -> Reply {
        let bytes = match read(file, Links::Followed, MOST_TEXT) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = format!("cannot read `{}`: {error}", file.display());
                return Reply::Failed(self.message(&text));
            }
        };
        self.define(&file.display().to_string(), &bytes).unwrap_or_else(Reply::Failed)
    }

    /// Defines or redefines functions.
    fn define(&mut self, name: &str, bytes: &[u8]) -> Result<Reply, String> {
        let read: Defined =
            self.dylib.read_late(name, bytes).map_err(|error| self.options.session_error(&error))?;
        let symbols = read.functions();
        let missing: Vec<String> = read.missing().to_vec();
        let read = match self.options.tiered {
            Some(calls) => read.tiered(calls),
            None => read.lazy(),
        };
        let redefined =
            self.dylib.redefine(read.inlinable()).map_err(|error| self.options.session_error(&error))?;
        let text = String::from_utf8_lossy(bytes).into_owned();
        let source = SourceFile::new(name, text).map_err(|error| error.to_string())?;
        let before = self.definitions.add(&source, &symbols);
        let world = self.session().runtime().world();
        let mut lines: Vec<String> = Vec::new();
        for symbol in &symbols {
            let verb = if before.contains(symbol) { "redefined" } else { "defined" };
            lines.push(format!("{verb} {symbol} in world {world}"));
        }
        lines.extend(missing.iter().map(|missing| format!("note: {missing} yet")));
        lines.extend(redefined.retyped.iter().map(|retyped| format!("note: {retyped}")));
        lines.extend(redefined.kept.iter().map(|name| format!("note: {name} keeps what it has inlined")));
        Ok(if lines.is_empty() { Reply::Nothing } else { shown(lines.join("\n")) })
    }

    fn failure(&self, failure: Failure) -> String {
        match failure {
            Failure::NotCompiled(error) => self.options.error(&error),
            other => self.message(&other.to_string()),
        }
    }

    pub(crate) fn message(&self, text: &str) -> String {
        self.options.message(text)
    }
}

impl Shell for Prompt<'_> {
    fn submit(&mut self, text: &str) -> Reply {
        self.submit(text)
    }

    fn session(&self) -> &Session {
        self.session()
    }

    fn names(&self) -> BTreeSet<String> {
        self.names()
    }

    fn prompt(&self) -> String {
        "brolga> ".to_owned()
    }

    fn is_complete(&self) -> fn(&str) -> bool {
        is_complete
    }
}
