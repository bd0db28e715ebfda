//! Transformation of programs by the embedder, between reading and definition.
//!
//! ```text
//!   read, build, Program ──► transform ──► imported again, verified, doors, prices ──► defined
//!   promise kept         ──►
//! ```
//!
//! A transform receives the program's own functions, before any pass, and returns the module that is defined instead: instrumented, specialised, with more or fewer functions. It is trusted as
//! far as a program is: its result is verified, and must not have doors while they are closed. The session's own functions (host functions, the library) and functions of packages are not transformed.

use std::error::Error;
use std::sync::Arc;

use brolga_ir::Module;

use super::Session;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::scope::with_others;
use super::sync::lock;
use crate::program::check_built;

/// See [`Session::transform`].
pub(super) type Transform =
    Arc<dyn Fn(&Dylib, Module) -> Result<Module, Box<dyn Error + Send + Sync>> + Send + Sync>;

impl Session {
    /// Sets `transform` to be called with the functions of each program that is defined from now on, on the thread that defines it or materializes its promise. The session defines its result instead. It
    /// replaces the previous transform.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// # use brolga_ir as ir;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use brolga::{Options, Session, Workers};
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let names = seen.clone();
    /// session.transform(move |dylib, module| {
    ///     let symbols = module.funcs().map(|(_, func)| format!("{}: {}", dylib.name(), func.symbol(&module.cx)));
    ///     names.lock().unwrap().extend(symbols);
    ///     Ok(module)
    /// });
    /// let main = session.create_dylib("main")?;
    /// main.define(main.read("f.jlir", "function f()::Int64\n1 ─ return 1\nend".as_bytes())?)?;
    /// assert_eq!(*seen.lock().unwrap(), ["main: f()"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// An error of the transform, or a broken module, is the error of the definition, or of the look-up that needs the promise.
    pub fn transform(
        &self,
        transform: impl Fn(&Dylib, Module) -> Result<Module, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) {
        let former = lock(&self.inner.transform).replace(Arc::new(transform));
        drop(former);
    }
}

impl Dylib {
    /// Applies the session's transform to definitions.
    pub(super) fn transformed(&self, definitions: Definitions) -> Result<Definitions, SessionError> {
        let transform = lock(&self.session.inner.transform).clone();
        let Some(transform) = transform.filter(|_| definitions.is_of_embedder()) else {
            return Ok(definitions);
        };
        let own = with_others(&definitions.module, definitions.own, |_| None);
        let is_shared = self.is_shared(&own);
        let module = transform(self, own).map_err(|error| SessionError::Transform(Arc::from(error)))?;
        let count = module.func_count();
        let again = match is_shared {
            true => self.complete(module)?,
            false => Definitions::new(with_rest_of(module, &definitions), count),
        };
        check_built(&again.module, again.own, definitions.manner.callees)?;
        let Definitions { module, own, imported, bindings, .. } = again;
        Ok(Definitions { module, own, imported, bindings, written: own, source: None, ..definitions })
    }
}

/// Adds the functions of other programs in definitions to a module.
fn with_rest_of(mut module: Module, definitions: &Definitions) -> Module {
    for (_, func) in definitions.module.funcs().skip(definitions.own) {
        // A function that the module already has is its own.
        let _ = module.add_func(func.clone());
    }
    module
}
