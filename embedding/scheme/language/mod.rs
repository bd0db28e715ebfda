//! A small Scheme on a session: functions are values, closures share variables, and definitions at the prompt replace older ones.
//!
//! | file | what it holds |
//! |---|---|
//! | `reader.rs` | text to data |
//! | `syntax.rs` | data to expressions: special forms, scopes |
//! | `lower.rs` | expressions to the IR |
//! | `globals.rs` | what names at the prompt stand for |
//! | `library.rs` | functions that programs find, in the IR, in Rust and in Scheme |
//! | `show.rs` | objects as text |
//!
//! A call finds the method of its callee in the world of the running thread. So a function may be called before it is defined, a function that
//! is defined again is found by the next form, and a frame that runs meanwhile continues with the old one. `brolga repl --lang scheme` is a prompt
//! for it.

pub(crate) mod globals;
mod library;
mod lower;
mod reader;
mod show;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga::build::{Func, Module};
use brolga::host::Handle;
use brolga::observe::show_module;
use brolga::session::{Definitions, Dylib, OnDrop};
use brolga::{CallError, ExceptionKind, Options, Program, ScopedFunc, Session, Workers};

use globals::{Global, Globals, variable};
use library::Output;
pub(crate) use lower::Lowered;
use lower::Lowering;
use reader::{Datum, ReadError, Reader};
use show::show;
use syntax::{Form, form};

/// The name of the function that an expression at the prompt is. It cannot be written in a program.
const EXPRESSION: &str = "expression";

/// How functions are compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tiers {
    /// When they are called first.
    One,
    /// Fast at first, and well after this number of calls.
    Two(u32),
}

/// A session that takes forms.
pub(crate) struct Repl {
    pub(crate) session: Session,
    pub(crate) dylib: Dylib,
    globals: Globals,
    output: Output,
    tiers: Tiers,
    /// Each function that is defined, with its closures, and each variable, by name.
    definitions: Mutex<BTreeMap<String, Definition>>,
}

/// A definition in the IR.
struct Definition {
    text: String,
    /// The symbols of its functions.
    symbols: Vec<String>,
    /// Whether it was there before the first input.
    is_library: bool,
}

impl Repl {
    /// A prompt in a session with these options.
    pub(crate) fn new(options: Options, tiers: Tiers) -> Lowered<Arc<Repl>> {
        let session = Session::new(options, Workers::Pool(1))?;
        let dylib = session.create_dylib("scheme")?;
        let repl = Arc::new(Repl {
            session,
            dylib,
            globals: Globals::default(),
            output: Output::default(),
            tiers,
            definitions: Mutex::default(),
        });
        let library = repl.session.create_dylib("library")?;
        library::host(&library, &repl.output, Arc::downgrade(&repl))?;
        library.define(library.read("library.jlir", library::ir().as_bytes())?.inlinable().lazy())?;
        for name in library::names() {
            repl.globals.set(&name, Some(Global::Library));
        }
        repl.dylib.link_against(&library)?;
        for form in repl.forms(library::SCHEME) {
            form?;
        }
        repl.definitions().values_mut().for_each(|definition| definition.is_library = true);
        Ok(repl)
    }

    /// Runs forms; the text that each of them shows, or why it has no value. An incomplete form is a wrong one.
    pub(crate) fn forms(&self, text: &str) -> Vec<Result<String, String>> {
        let mut reader = Reader::new(text);
        let mut done = Vec::new();
        loop {
            match reader.form() {
                Ok(None) => return done,
                Ok(Some(datum)) => done.push(self.form(&datum)),
                Err(ReadError::Wrong(text)) => done.push(Err(text)),
                Err(ReadError::Incomplete) => {
                    done.push(Err("a form does not end".into()));
                    return done;
                }
            }
        }
    }

    /// Runs a form. Errors are values for the host: what programs throw, and what cannot be compiled.
    fn form(&self, datum: &Datum) -> Result<String, String> {
        self.run(datum).map_err(|error| {
            let mut text = match error.downcast_ref::<CallError>() {
                Some(CallError::Exception(thrown)) if thrown.kind == ExceptionKind::ErrorException => {
                    thrown.message.clone()
                }
                _ => error.to_string(),
            };
            let mut next = error.source();
            while let Some(cause) = next {
                let cause_text = cause.to_string();
                if !text.contains(&cause_text) {
                    text = format!("{text}: {cause_text}");
                }
                next = cause.source();
            }
            text
        })
    }

    fn run(&self, datum: &Datum) -> Lowered<String> {
        let (form, vars) = form(datum)?;
        let mut lowering = Lowering::new(self.session.context(), &self.globals, &vars);
        match form {
            Form::Function(lambda) => {
                let name = lambda.name.as_str();
                let before = self.globals.get(name);
                if let Some(Global::Variable(_)) = before {
                    return Err(format!("`{name}` is a variable, and code reads it as one").into());
                }
                // Its body may mention it.
                self.globals.set(name, Some(Global::Function(String::new())));
                let defined = lowering.define(&lambda).and_then(|func| {
                    let (mut module, symbol) = (lowering.closures, func.symbol(self.session.context()));
                    add(&mut module, func)?;
                    let text = show_module(&module).to_string();
                    let symbols = module.funcs().map(|(_, func)| func.symbol(&module.cx)).collect();
                    self.dylib.redefine(self.compiled(self.dylib.build(module)?))?;
                    self.keep(name, text, symbols);
                    Ok(symbol)
                });
                match defined {
                    Ok(symbol) => {
                        // With another number of parameters it is another method, and calls would still find the one before.
                        if let Some(Global::Function(old)) = before
                            && old != symbol
                        {
                            self.dylib.remove(&[&old])?;
                        }
                        self.globals.set(name, Some(Global::Function(symbol)));
                        Ok(String::new())
                    }
                    Err(error) => {
                        self.globals.set(name, before);
                        Err(error)
                    }
                }
            }
            Form::Variable(name, value) => {
                match self.globals.get(&name) {
                    Some(Global::Variable(_)) => {}
                    Some(Global::Function(_) | Global::Library) => {
                        return Err(format!("`{name}` is a function, and code calls it as one").into());
                    }
                    None => {
                        let number = self.globals.number();
                        let text = variable(number);
                        self.dylib.define(self.dylib.read("variable.jlir", text.as_bytes())?)?;
                        self.keep(&name, text, Vec::new());
                        self.globals.set(&name, Some(Global::Variable(number)));
                    }
                }
                // Its value is computed like any other expression's, and written there.
                let set = syntax::Expr::SetGlobal(name, Box::new(value));
                let func = lowering.expression(EXPRESSION, &set)?;
                self.evaluate(func, lowering.closures).map(|_| String::new())
            }
            Form::Expression(expr) => {
                let func = lowering.expression(EXPRESSION, &expr)?;
                self.evaluate(func, lowering.closures)
            }
        }
    }

    /// Runs an expression, and shows its value.
    fn evaluate(&self, func: Func, closures: Module) -> Lowered<String> {
        // Closures may outlive the expression.
        if closures.func_count() > 0 {
            self.dylib.define(self.compiled(self.dylib.build(closures)?))?;
        }
        let mut module = Module::new(self.session.context().clone());
        add(&mut module, func)?;
        let tracker = self.dylib.create_tracker(OnDrop::Remove)?;
        self.dylib.tracked_by(&tracker).define(self.dylib.build(module)?)?;
        let function: ScopedFunc<(), Handle> = self.dylib.func_in(EXPRESSION)?;
        self.session.runtime().enter(|scope| {
            let value = function.call(scope, ())?;
            let value = value.get(scope);
            let is_nothing = value.desc().name() == "Nothing";
            Ok(if is_nothing { String::new() } else { show(value, true) })
        })?
    }

    fn compiled(&self, definitions: Definitions) -> Definitions {
        match self.tiers {
            Tiers::One => definitions.inlinable().lazy(),
            Tiers::Two(calls) => definitions.inlinable().tiered(calls),
        }
    }

    fn definitions(&self) -> MutexGuard<'_, BTreeMap<String, Definition>> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, name: &str, text: String, symbols: Vec<String>) {
        let definition = Definition { text, symbols, is_library: false };
        self.definitions().insert(name.to_owned(), definition);
    }

    /// The symbols of the functions that were defined at the prompt, with their closures.
    pub(crate) fn own_functions(&self) -> BTreeSet<String> {
        let definitions = self.definitions();
        let own = definitions.values().filter(|definition| !definition.is_library);
        own.flat_map(|definition| definition.symbols.iter().cloned()).collect()
    }

    /// The library and all that is defined at the prompt, as a program of the IR. Functions of the host stay names that it calls.
    pub(crate) fn program(&self) -> Lowered<Program> {
        let mut text = library::ir();
        for definition in self.definitions().values() {
            text.push('\n');
            text.push_str(&definition.text);
        }
        Ok(Program::read("scheme", text.as_bytes())?)
    }

    /// Output of programs since the last call.
    pub(crate) fn written(&self) -> String {
        std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a text is whole forms: no form that it begins wants more lines.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut reader = Reader::new(text);
    loop {
        match reader.form() {
            Ok(Some(_)) => {}
            Ok(None) | Err(ReadError::Wrong(_)) => return true,
            Err(ReadError::Incomplete) => return false,
        }
    }
}

fn add(module: &mut Module, func: Func) -> Lowered<()> {
    module.add_func(func).map(drop).map_err(|error| format!("{error:?}").into())
}
