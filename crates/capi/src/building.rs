//! The state that a module of C shares with the builders of its functions: the context, the functions, types by their names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga::Program;
use brolga::build::{BuildError, Context, Func, Module, ModuleError, Type};

use crate::error::{BrolgaCode, BrolgaError, in_full};

/// A program under construction.
pub(crate) struct Building {
    context: Arc<Context>,
    /// `None` after the program was made.
    module: Mutex<Option<Module>>,
    /// Types that were asked for, by name.
    types: Mutex<BTreeMap<String, Type>>,
}

impl From<BuildError> for BrolgaError {
    fn from(error: BuildError) -> BrolgaError {
        BrolgaError::new(BrolgaCode::Program, in_full(&error))
    }
}

impl From<ModuleError> for BrolgaError {
    fn from(error: ModuleError) -> BrolgaError {
        BrolgaError::new(BrolgaCode::Program, in_full(&error))
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn made_before() -> BrolgaError {
    BrolgaError::new(BrolgaCode::Argument, "the module was made a program before: begin another one")
}

impl Building {
    /// A program without functions.
    pub(crate) fn new(context: Arc<Context>) -> Arc<Building> {
        let module = Mutex::new(Some(Module::new(context.clone())));
        Arc::new(Building { context, module, types: Mutex::default() })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The type of a name.
    pub(crate) fn type_of(&self, name: &str) -> Result<Type, BrolgaError> {
        if let Some(&known) = lock(&self.types).get(name) {
            return Ok(known);
        }
        if name.contains(['\n', '\r', '#']) {
            return Err(BrolgaError::new(BrolgaCode::Argument, "a type is written in one line"));
        }
        let text = format!("function type_of()::{name}\n1 ─      unreachable\nend\n");
        let program = Program::read_in(&self.context, "type", text.as_bytes())?;
        let of = |func: &Func| func.sig.results.first().copied();
        let found = program.module().funcs().next().and_then(|(_, func)| of(func));
        let none = || BrolgaError::new(BrolgaCode::Argument, format!("`{name}` is not a type"));
        let found = found.ok_or_else(none)?;
        lock(&self.types).insert(name.to_owned(), found);
        Ok(found)
    }

    /// Adds a function.
    pub(crate) fn add(&self, func: Func) -> Result<(), BrolgaError> {
        lock(&self.module).as_mut().ok_or_else(made_before)?.add_func(func)?;
        Ok(())
    }

    /// The program, which is taken once.
    pub(crate) fn take(&self) -> Result<Module, BrolgaError> {
        lock(&self.module).take().ok_or_else(made_before)
    }
}
