//! Reading programs for a dylib: missing functions are imported from the dylibs that it sees (`scope.rs`), and the programs are verified.
//!
//! Imported functions follow the program's own in its module. If one of them is redefined before the program is defined, they are imported again; if
//! the program does not verify with the new ones, it keeps the former declarations, and the link error reports what has changed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use brolga_aot::image::ImageError;
use brolga_ir::function_name::is_library;
use brolga_ir::module::Global;
use brolga_ir::text::Surroundings;
use brolga_ir::{Context, FunctionName, Level, Module, Type, TypeKind, binary};
use brolga_linking::DylibId;

use super::definitions::{Definitions, Manner};
use super::dylib::Dylib;
use super::error::SessionError;
use super::imports::Importer;
use super::invalidation::Imported;
use super::link_orders::View;
use super::names_in::{Bindings, functions_in};
use super::owners::{NameUse, Use, spelled};
use super::scope::{Scope, Seen, with_others};
use super::type_names::DylibScope;
use crate::error::Error;
use crate::prelude;
use crate::program::{
    Callees, check_built, check_read, missing_methods, no_doors_built, no_doors_read, read_unit_in,
};

/// The other programs that are visible from a program.
struct Others<'a> {
    dylib: &'a Dylib,
    view: View<'a>,
    cx: &'a Context,
    /// The reason why a mentioned function cannot be supplied.
    failed: RefCell<Option<SessionError>>,
}

impl Surroundings for Others<'_> {
    fn defines(&self, module: &str, name: &str) -> bool {
        let function = self.cx.types.function_named(FunctionName::of(&self.cx.names, module, name));
        let seen = self.view.of_function(self.cx, function);
        seen.iter().any(|seen| seen.scope().has(function))
            || self.dylib.supplied(&spelled(module, name)).unwrap_or_else(|error| {
                self.failed.borrow_mut().get_or_insert(error);
                false
            })
    }

    fn variable(&self, name: &str) -> Option<Global> {
        let known = self.view.of(name).iter().find_map(|seen| seen.scope().variable(name))?;
        known.cx.is_same(self.cx).then_some(known.declared)
    }
}

impl Dylib {
    /// Reads a program in the text form; functions that it calls and does not define are resolved among the functions that the dylib sees.
    ///
    /// # Errors
    /// The program is broken, or calls a missing function; it has doors, and they are closed.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Definitions, SessionError> {
        self.read_with(name, bytes, Callees::AtOnce)
    }

    /// As [`Dylib::read`], but calling an undefined method or C function is not an error ([`Definitions::missing`] lists these methods). The
    /// call is resolved when it is reached: it finds what has been defined meanwhile, and throws `MethodError` or `UndefVarError` otherwise. For prompts, where functions
    /// are written in any order, and for dumps of Julia, which lack rarely called methods.
    ///
    /// # Errors
    /// The program is broken; it has doors, and they are closed.
    pub fn read_late(&self, name: &str, bytes: &[u8]) -> Result<Definitions, SessionError> {
        self.read_with(name, bytes, Callees::Late)
    }

    fn read_with(&self, name: &str, bytes: &[u8], callees: Callees) -> Result<Definitions, SessionError> {
        // Names held only by the program are freed with it.
        let cx = &self.context();
        let others = Others { dylib: self, view: self.view(None)?, cx, failed: RefCell::default() };
        let read = read_unit_in(name, bytes, cx, &others);
        if let Some(error) = others.failed.into_inner() {
            return Err(error);
        }
        let (source, unit) = read?;
        let made = self.complete(unit.module)?;
        check_read(&source, &made.module, made.own, callees)?;
        if !self.session.has_open_doors() {
            no_doors_read(&source, &made.module, made.own)?;
        }
        let mut made = made;
        let missing = match callees {
            Callees::Late => missing_methods(&made.module, made.own),
            Callees::AtOnce => Vec::new(),
        };
        made.manner.callees = callees;
        Ok(Definitions { missing, ..made })
    }

    /// Takes a built module; functions that it calls and does not define are resolved among the functions that the dylib sees, if it was built in
    /// the session's context.
    ///
    /// # Errors
    /// The module is broken, or calls a missing function; it has doors, and they are closed.
    pub fn build(&self, module: Module) -> Result<Definitions, SessionError> {
        let made = self.build_trusted(module)?;
        if !self.session.has_open_doors() {
            no_doors_built(&made.module, made.own)?;
        }
        Ok(made)
    }

    /// As [`Dylib::build`], for a module whose doors are the session's own.
    pub(super) fn build_trusted(&self, module: Module) -> Result<Definitions, SessionError> {
        let made = self.complete(module)?;
        check_built(&made.module, made.own, Callees::AtOnce)?;
        Ok(made)
    }

    /// As [`Dylib::build`], for a module of a package: it was verified separately, and its functions are priced. Calls of missing functions are resolved when they are reached.
    pub(super) fn build_stored(&self, module: Module) -> Result<Definitions, SessionError> {
        let made = self.complete(module)?;
        check_built(&made.module, made.own, Callees::Late)?;
        let missing = missing_methods(&made.module, made.own);
        let manner = Manner { callees: Callees::Late, ..made.manner };
        Ok(Definitions { manner, missing, ..made.of_session() })
    }

    /// Links the library if the module needs it, and imports what the module lacks.
    pub(super) fn complete(&self, module: Module) -> Result<Definitions, SessionError> {
        if self.is_shared(&module) {
            self.link_library(prelude::wanted(&module, 0))?;
        }
        self.import(module)
    }

    /// Adds to a module what it lacks and the dylib sees, with the definitions that the dylib is about to make, if any ([`Importer::import`]).
    pub(super) fn import_into(
        &self,
        module: &mut Module,
        soon: Option<&Scope>,
        bindings: &Bindings,
    ) -> Result<(BTreeSet<Type>, Bindings), SessionError> {
        let (dylib, view) = (self.linking.id(), self.view(soon)?);
        let view_of = |id| self.session.view_of(id, soon.map(|soon| (dylib, soon)));
        let is_defined = |at: DylibId, symbol: &str| {
            at == dylib && soon.is_some_and(|soon| soon.knows(symbol)) || self.session.defines(at, symbol)
        };
        // All dylibs that may have methods of a function, visible or not. All of them override the library.
        let library = self.session.inner.library.id();
        let methods = |cx: &Context, function: Type, first: Option<Type>| {
            let TypeKind::Function(named) = *cx.types.kind(function) else { return Vec::new() };
            let names = &cx.names;
            let named = ((names.text(named.module), names.text(named.name)), names.count(named.name));
            let mut users = self.session.inner.owners.users(named.0, named.1);
            // This dylib may be about to define its first method.
            users.retain(|id| *id != dylib);
            let seen = users.into_iter().chain([dylib]).filter(|id| Some(*id) != library);
            let seen = seen.filter_map(|id| {
                Some(Seen::new(id, self.session.scope(id)?, true, soon.filter(|_| id == dylib)))
            });
            seen.flat_map(|seen| seen.methods(function, first))
                .filter(|method| is_defined(method.dylib, &method.symbol))
                .collect()
        };
        let is_defined = &is_defined;
        Ok(Importer { dylib, view, view_of: &view_of, is_defined, bindings, methods: &methods }
            .import(module))
    }

    /// Imports what the module lacks.
    pub(super) fn import(&self, module: Module) -> Result<Definitions, SessionError> {
        let own = module.func_count();
        if !self.is_shared(&module) {
            return Ok(Definitions::new(module, own));
        }
        let mut module = self.with_supplies(module)?;
        let seen = self.session.inner.edges.number();
        let (looked_for, bindings) = self.import_into(&mut module, None, &Bindings::new())?;
        self.import_variables(&mut module, own)?;
        let imported = Some((self.clone(), Imported { looked_for, seen }));
        Ok(Definitions { imported, bindings, ..Definitions::new(module, own) })
    }

    /// Repeats the imports for definitions that a dylib has read, if something that was looked for has been defined since.
    pub(super) fn refresh_imports(definitions: &mut Definitions) -> Result<(), SessionError> {
        let Some((dylib, imported)) = &definitions.imported else { return Ok(()) };
        if dylib.session.inner.edges.is_new(imported) {
            return Ok(());
        }
        let module = with_others(&definitions.module, definitions.own, |_| None);
        dylib.clone().import_again(definitions, module)
    }

    /// Replaces the module of definitions by one with only their own functions, and imports what that lacks.
    fn import_again(&self, definitions: &mut Definitions, module: Module) -> Result<(), SessionError> {
        let own = definitions.own;
        let again = self.import(module)?;
        definitions.imported = again.imported;
        match check_built(&again.module, own, definitions.manner.callees) {
            Ok(()) => (definitions.module, definitions.bindings) = (again.module, again.bindings),
            Err(_) => {
                let former = with_others(&definitions.module, own, |func| Some(func.declaration()));
                definitions.module = former;
            }
        }
        Ok(())
    }

    /// The names and types of the session, for programs built for this dylib: function names have the meanings they have in its programs. A
    /// module built in the [session's context](super::Session::context) has the same names, and is translated where they mean other functions here.
    pub fn context(&self) -> Arc<Context> {
        self.note_order();
        self.session.context().view_in(self.function_scope(Vec::new()))
    }

    /// As [`Dylib::context`], for a program with these uses of names.
    pub(super) fn context_for(&self, uses: Vec<NameUse>) -> Arc<Context> {
        self.session.context().view_in(self.function_scope(uses))
    }

    fn function_scope(&self, uses: Vec<NameUse>) -> Arc<DylibScope> {
        let (owners, types) = (self.session.inner.owners.clone(), self.session.inner.types.clone());
        let (cx, dylib) = (self.session.context().clone(), self.linking.id());
        Arc::new(DylibScope { cx, owners, types, dylib, uses, choices: Mutex::default() })
    }

    pub(super) fn note_order(&self) {
        let links = self.linking.links().unwrap_or_default();
        self.session.inner.owners.set_order(self.linking.id(), links.iter().map(|link| link.dylib));
    }

    /// Translates the module of definitions, if names mean other functions than when it was read, or if it was made without this dylib. Returns the
    /// functions that it defines and mentions, to be noted when it takes effect.
    pub(super) fn settle_names(&self, definitions: &mut Definitions) -> Result<Vec<NameUse>, SessionError> {
        let (owners, dylib) = (&self.session.inner.owners, self.linking.id());
        self.note_order();
        loop {
            let uses = uses(&definitions.module, definitions.own);
            if owners.mean(dylib, &uses) {
                return Ok(uses);
            }
            let module = &definitions.module;
            let is_shared = self.is_shared(module);
            // Its imports are imported again.
            let only = is_shared.then(|| with_others(module, definitions.own, |_| None));
            let module = only.as_ref().unwrap_or(module);
            if is_shared {
                let translated = self.translated(module, uses)?;
                self.import_again(definitions, translated)?;
            } else {
                let cx = Context::new().view_in(self.function_scope(uses));
                let translated = copied(module, &cx)?;
                let here = |&ty: &Type| prelude::in_context(&module.cx, ty, &cx);
                definitions.library = definitions.library.iter().filter_map(here).collect();
                definitions.module = translated;
            }
        }
    }

    /// A module of the session's context with the functions that its names mean in this dylib now, with these uses of names.
    pub(super) fn translated(&self, module: &Module, uses: Vec<NameUse>) -> Result<Module, SessionError> {
        let scope = self.function_scope(uses);
        scope.declare_again(&module.cx);
        let cx = self.session.context().view_in(scope.clone());
        scope.hold_declared(&cx);
        copied(module, &cx)
    }
}

/// Copies a module to another context.
fn copied(module: &Module, cx: &Arc<Context>) -> Result<Module, SessionError> {
    let copied = binary::read(&binary::write(module), cx.clone());
    Ok(copied.map_err(|error| Error::from(ImageError::from(error)))?)
}

/// The functions that the first `own` functions of a module define and mention; for the library, only the functions that they define.
pub(super) fn uses(module: &Module, own: usize) -> Vec<NameUse> {
    let names = &module.cx.names;
    let (mut defined, mut all) = (BTreeSet::new(), BTreeSet::new());
    for (_, func) in module.funcs().take(own) {
        let object = func.sig.params.first().filter(|_| func.level == Level::High);
        defined.extend(object.map(|object| object.ty));
        all.extend(functions_in(&module.cx, func));
    }
    all.extend(&defined);
    let named = |ty: &Type| {
        let TypeKind::Function(function) = *module.cx.types.kind(*ty) else { return None };
        let (path, name) = (names.text(function.module), names.text(function.name).into());
        let what = if defined.contains(ty) { Use::Defines } else { Use::Mentions };
        let is_noted = what == Use::Defines || !is_library(path);
        is_noted.then(|| NameUse {
            module: path.into(),
            name,
            what,
            count: names.count(function.name),
            is_hidden: false,
        })
    };
    all.iter().filter_map(named).collect()
}
