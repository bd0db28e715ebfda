//! Kaleidoscope: a small language on a session.
//!
//! A definition is a promise with its syntax tree in it, which becomes IR and code when something that is evaluated calls it. A line that defines a
//! function again replaces it, also for code that is compiled. `brolga repl --lang kaleidoscope` is a prompt for it.

mod lower;
mod syntax;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use brolga::build::{Module, Type};
use brolga::session::{Dylib, OnDrop, Signature};
use brolga::{Options, Program, Session, Workers};
use syntax::{Function, Line, parse};

pub(crate) type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A session that takes lines.
pub(crate) struct Repl {
    pub(crate) session: Session,
    pub(crate) dylib: Dylib,
    /// Functions by their names, for showing their IR.
    functions: Mutex<BTreeMap<String, Function>>,
}

impl Repl {
    /// A prompt in a session with these options.
    pub(crate) fn new(options: Options) -> Done<Repl> {
        let session = Session::new(options, Workers::Pool(1))?;
        let dylib = session.create_dylib("repl")?;
        Ok(Repl { session, dylib, functions: Mutex::default() })
    }

    /// Does what a line says. An expression has a value.
    pub(crate) fn line(&self, text: &str) -> Done<Option<f64>> {
        match parse(text)? {
            Line::Nothing => Ok(None),
            Line::Define(function) => {
                let signature = signature(&function.name, function.params.len());
                let kept = function.clone();
                // The tree waits here until the function is called.
                let make = move |dylib: &Dylib| lower::module(dylib.session().context(), &function);
                self.dylib.promise_again(&[signature], make)?;
                let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
                functions.insert(kept.name.clone(), kept);
                Ok(None)
            }
            Line::Extern(name, arity) => {
                let signature = signature(&name, arity);
                let make = move |dylib: &Dylib| lower::foreign(dylib.session().context(), &name, arity);
                self.dylib.promise_again(&[signature], make)?;
                Ok(None)
            }
            Line::Evaluate(body) => {
                // An expression is a function that is removed when it has run.
                let function = Function { name: "#expression".into(), params: Vec::new(), body };
                let tracker = self.dylib.create_tracker(OnDrop::Remove)?;
                let module = lower::module(self.session.context(), &function)?;
                self.dylib.tracked_by(&tracker).define(self.dylib.build(module)?)?;
                let value = self.dylib.func::<(), f64>(&function.name)?.call(())?;
                Ok(Some(value))
            }
        }
    }

    /// All functions that are defined, as a program of the IR.
    pub(crate) fn program(&self) -> Done<Program> {
        let mut module = Module::new(brolga::build::Context::new());
        for function in self.functions.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let func = lower::build(&module.cx, function)?;
            module.add_func(func).map_err(|error| format!("{error:?}"))?;
        }
        Ok(Program::from_module(module)?)
    }
}

/// Functions of the language take and return numbers.
fn signature(name: &str, arity: usize) -> Signature {
    Signature::new(name, &vec![Type::FLOAT64; arity], Type::FLOAT64)
}

/// Whether a text is a whole line of the language: nothing that it begins wants more.
pub(crate) fn is_complete(text: &str) -> bool {
    // The parser finds nothing where it wants something.
    !parse(text).is_err_and(|error| error.starts_with("``"))
}
