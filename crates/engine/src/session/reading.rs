//! Programs that a dylib reads: missing functions are imported from the dylibs that it sees (`scope.rs`), and the programs are verified.
//!
//! Imported functions stand behind the program's own in its module. If one of them is redefined before the program is defined, they are imported again; if
//! the program does not verify with the new ones, it keeps the former declarations, and the error of linking says what has changed.

use brolga_ir::{FunctionName, Module};
use brolga_linking::Link;

use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::invalidation::Imported;
use super::scope::{Scope, Seen, import, with_others};
use crate::prelude;
use crate::program::{
    Callees, check_built, check_read, missing_methods, no_doors_built, no_doors_read, read_unit_in,
};

impl Dylib {
    /// Reads a program in the text form; functions that it calls and does not define are those that the dylib sees.
    ///
    /// # Errors
    /// It is broken, or calls what is not there; it has doors, and they are closed.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Definitions<'static>, SessionError> {
        self.read_with(name, bytes, Callees::AtOnce)
    }

    /// As [`Dylib::read`], but a method or C function that is called and not defined is no error ([`Definitions::missing`] says which methods these are). The
    /// call is decided when it is reached: it finds what has been defined meanwhile, and throws `MethodError` or `UndefVarError` otherwise. For prompts, where functions
    /// are written in any order, and for dumps of Julia, which lack the methods that are hardly ever called.
    ///
    /// # Errors
    /// It is broken; it has doors, and they are closed.
    pub fn read_late(&self, name: &str, bytes: &[u8]) -> Result<Definitions<'static>, SessionError> {
        self.read_with(name, bytes, Callees::Late)
    }

    fn read_with(
        &self,
        name: &str,
        bytes: &[u8],
        callees: Callees,
    ) -> Result<Definitions<'static>, SessionError> {
        // Names that only the program holds are freed with it.
        let cx = &self.session.context().view();
        let scopes = self.session.scopes(&self.linking.links()?);
        let is_elsewhere = |module: &str, name: &str| {
            let (module, name) = (cx.names.intern(module), cx.names.intern(name));
            let function = cx.types.function_named(FunctionName { module, name });
            scopes.iter().any(|scope| scope.has(function))
        };
        let (source, unit) = read_unit_in(name, bytes, cx, &is_elsewhere)?;
        let made = self.complete(unit.module)?;
        check_read(&source, &made.module, made.own, callees)?;
        if !self.session.has_open_doors() {
            no_doors_read(&source, &made.module, made.own)?;
        }
        let mut made = made;
        self.session.price(&mut made);
        let missing = match callees {
            Callees::Late => missing_methods(&made.module, made.own),
            Callees::AtOnce => Vec::new(),
        };
        Ok(Definitions { callees, missing, ..made })
    }

    /// Takes a module that was built; functions that it calls and does not define are those that the dylib sees, if it was built in
    /// the session's context.
    ///
    /// # Errors
    /// It is broken, or calls what is not there; it has doors, and they are closed.
    pub fn build(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        let mut made = self.build_trusted(module)?;
        if !self.session.has_open_doors() {
            no_doors_built(&made.module, made.own)?;
        }
        self.session.price(&mut made);
        Ok(made)
    }

    /// As [`Dylib::build`], of a module whose doors are the session's own.
    pub(super) fn build_trusted(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        let made = self.complete(module)?;
        check_built(&made.module, made.own, Callees::AtOnce)?;
        Ok(made)
    }

    /// As [`Dylib::build`], of a module of a package: it was verified separately, and its functions have their prices. Calls of what is not there are decided when they are reached.
    pub(super) fn build_stored(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        let made = self.complete(module)?;
        check_built(&made.module, made.own, Callees::Late)?;
        let missing = missing_methods(&made.module, made.own);
        Ok(Definitions { callees: Callees::Late, missing, ..made.of_session() })
    }

    /// Links the library as far as the module needs it, and imports what the module lacks.
    fn complete(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        if self.is_shared(&module) {
            self.link_library(prelude::wanted(&module, 0))?;
        }
        self.import(module)
    }

    /// The offers of the dylibs in a link order; its own with those that it is about to make, if any.
    pub(super) fn seen<'a>(&self, links: &[Link], soon: Option<&'a Scope>) -> Vec<Seen<'a>> {
        let library = self.session.inner.library.id();
        let seen = |link: &Link| {
            let scope = self.session.scopes(&[*link]).pop()?;
            let soon = soon.filter(|_| link.dylib == self.linking.id());
            Some(Seen::new(scope, soon, Some(link.dylib) == library))
        };
        links.iter().filter_map(seen).collect()
    }

    /// Imports what the module lacks.
    pub(super) fn import(&self, mut module: Module) -> Result<Definitions<'static>, SessionError> {
        let own = module.func_count();
        if !self.is_shared(&module) {
            return Ok(Definitions::new(module, own));
        }
        let seen = self.session.inner.edges.number();
        let links = self.linking.links()?;
        let looked_for = import(&mut module, &self.seen(&links, None), &|symbol| {
            self.is_known(self.session.linking().symbol(symbol).symbol(), &links)
        })?;
        let imported = Some((self.clone(), Imported { looked_for, seen }));
        Ok(Definitions { imported, ..Definitions::new(module, own) })
    }

    /// Imports again for definitions that a dylib has read, if something has been defined since that was looked for.
    pub(super) fn refresh_imports(definitions: &mut Definitions<'_>) -> Result<(), SessionError> {
        let Some((dylib, imported)) = &definitions.imported else { return Ok(()) };
        if dylib.session.inner.edges.is_new(imported) {
            return Ok(());
        }
        let own = definitions.own;
        let again = dylib.import(with_others(&definitions.module, own, |_| None))?;
        let callees = definitions.callees;
        definitions.imported = again.imported;
        if check_built(&again.module, own, callees).is_ok() {
            definitions.module = again.module;
        } else {
            definitions.module = with_others(&definitions.module, own, |func| Some(func.declaration()));
        }
        Ok(())
    }
}
