//! C symbols of the process, of shared libraries and of static archives, as definitions on demand.
//!
//! A `foreigncall` without a library names a C symbol; a dylib finds it through such a generator in its link order, under the
//! rules of every definition: the first dylib in the order wins, so an embedder can override it with a symbol of its own.
//! The run time opens libraries and keeps them open.
//!
//! When code refers to a symbol of an archive's member, the member becomes a unit with all its definitions, together with the members that
//! need each other; a program that looks a name up at run time does not load members. The references of the member are looked up in the dylib's
//! link order, and in the process. So it is removed, and counted as used, like any other unit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::doors::Door;
use brolga_jit::{Archive, Foreign, ObjectFile, ObjectFileError};
use brolga_linking::{
    Definition, Dependence, Generator, LookupKind, MaterializationUnit, Need, Request, Responsibility,
    Symbol, SymbolFlags, SymbolScope, Unit, Until, Want, absolute,
};
use brolga_runtime::Runtime;

use super::deferred::Redefined;
use super::dylib::Dylib;
use super::error::SessionError;
use super::invalidation::Change;
use super::shared::Shared;
use super::target::{Code, Moved, Native, Place, fail_unit};

impl Dylib {
    /// Gives a C symbol an address, for `foreigncall`s of programs that see this dylib.
    ///
    /// The code at the address is called with the C signature that the calling program states: like `foreigncall` itself, this is
    /// an unchecked capability.
    ///
    /// # Errors
    /// The doors are closed ([`Options::doors`](crate::Options::doors)); the name is defined already.
    pub fn define_c_symbol(&self, name: &str, address: *const ()) -> Result<(), SessionError> {
        self.c_symbol("`Dylib::define_c_symbol`", name, address, false).map(drop)
    }

    /// Gives a C symbol an address, and replaces the one that it has, as [`Dylib::redefine`]: functions that call it are compiled again, and running ones call the old one to
    /// their end.
    ///
    /// # Errors
    /// The doors are closed; what defines the symbol now is being linked.
    pub fn redefine_c_symbol(&self, name: &str, address: *const ()) -> Result<Redefined, SessionError> {
        self.c_symbol("`Dylib::redefine_c_symbol`", name, address, true)
    }

    fn c_symbol(
        &self,
        caller: &'static str,
        name: &str,
        address: *const (),
        replace: bool,
    ) -> Result<Redefined, SessionError> {
        self.session.need(caller, Door::NativeCode)?;
        let symbol = self.session.linking().symbol(name);
        let flags = SymbolFlags::EXPORTED | SymbolFlags::CALLABLE;
        let unit = absolute([(symbol.symbol(), flags, address.expose_provenance())]);
        if replace {
            self.linking.redefine(vec![unit], None)?
        } else {
            self.linking.define(unit)?
        }
        // A first definition may be what callers have missed, or be nearer to them than what they have found.
        let change = Change::c_symbol(self.linking.label(symbol.symbol()), name);
        let (mut hits, _) = self.session.inner.edges.hit(&[change]);
        let owners = &self.session.inner.owners;
        hits.retain(|hit| owners.order(hit.label.dylib, name).contains(&self.linking.id()));
        let mut redefined = Redefined::default();
        self.session.recompile_callers(hits, &mut redefined);
        Ok(redefined)
    }

    /// Finds C symbols of the process that the filter accepts, for programs that see this dylib. Without such a filter in its link order a program finds none: without a definition it
    /// may call the functions that the run time itself has, those of C's mathematics library among them, and what the embedder has given the run time
    /// ([`Foreign::define`](brolga_runtime::Foreign::define)).
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_process_symbols(
        &self,
        filter: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<(), SessionError> {
        let runtime = self.session.runtime().clone();
        self.add_generator(Library { runtime, library: None, filter })
    }

    /// Finds C symbols of a shared library, by its path or name. It is opened at once.
    ///
    /// # Errors
    /// The doors are closed; the library cannot be opened; the dylib is closed.
    pub fn add_library(&self, library: &str) -> Result<(), SessionError> {
        self.session.need("`Dylib::add_library`", Door::NativeCode)?;
        let opened = self.session.runtime().foreign().open(library);
        opened.map_err(|error| SessionError::Library(Arc::new(error)))?;
        let (runtime, library) = (self.session.runtime().clone(), Some(library.to_owned()));
        self.add_generator(Library { runtime, library, filter: |_: &str| true })
    }

    /// Finds C symbols in members of a static archive, which are linked when code needs them. `name` is how messages call it.
    ///
    /// # Errors
    /// The doors are closed; the bytes are not an archive; the dylib is closed.
    pub fn add_archive(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        self.session.need("`Dylib::add_archive`", Door::NativeCode)?;
        let archive = Archive::parse(name, bytes)?;
        self.add_generator(Members { shared: self.session.inner.shared.clone(), archive })
    }

    /// Asks a generator for what is missing.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_generator(&self, generator: impl Generator<Native> + 'static) -> Result<(), SessionError> {
        self.linking.add_generator(generator)?;
        Ok(())
    }
}

/// Symbols that the run time finds: of one library, or of the process.
pub(crate) struct Library<F> {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) library: Option<String>,
    pub(crate) filter: F,
}

impl<F: Fn(&str) -> bool + Send + Sync> Generator<Native> for Library<F> {
    fn generate(&self, request: Request<Native>) {
        let names = request.session().names();
        let found = request.symbols().iter().filter_map(|&symbol| {
            let name = names.text(symbol);
            let address = (self.filter)(&name)
                .then(|| self.runtime.foreign().resolve(&name, self.library.as_deref()).ok())??;
            Some((symbol, SymbolFlags::EXPORTED | SymbolFlags::CALLABLE, address))
        });
        let found: Vec<_> = found.collect();
        let defined = if found.is_empty() { Ok(()) } else { request.define(vec![absolute(found)]) };
        match defined {
            Ok(()) => request.done(),
            Err(error) => request.fail(error),
        }
    }
}

/// Members of a static archive.
pub(crate) struct Members {
    pub(crate) shared: Arc<Shared>,
    pub(crate) archive: Archive,
}

impl Generator<Native> for Members {
    fn generate(&self, request: Request<Native>) {
        let names = request.session().names();
        let member = |symbol: &Symbol| self.archive.member_with(&names.text(*symbol));
        let members: BTreeSet<usize> = match request.kind() {
            LookupKind::Static => request.symbols().iter().filter_map(member).collect(),
            LookupKind::Dynamic => BTreeSet::new(),
        };
        // A definition holds its names; until then the scope does.
        let names = request.session().scope();
        match self.units(&names, members) {
            Err(error) => request.fail(error),
            Ok(units) if units.is_empty() => request.done(),
            Ok(units) => match request.define(units) {
                Ok(()) => request.done(),
                Err(error) => request.fail(error),
            },
        }
    }
}

impl Members {
    /// Units of members, those that need each other in one.
    fn units(
        &self,
        names: &SymbolScope,
        members: BTreeSet<usize>,
    ) -> Result<Vec<Unit<Native>>, ObjectFileError> {
        let mut units = Vec::new();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for number in members {
            if taken.contains(&number) {
                continue;
            }
            let (object, component) = self.archive.component(number)?;
            taken.extend(component);
            let flags = |is_weak| if is_weak { FLAGS | SymbolFlags::WEAK } else { FLAGS };
            let symbols = object.defined().map(|(name, weak)| (names.intern(name), flags(weak)));
            let symbols = symbols.collect();
            let member = Member { shared: self.shared.clone(), object: Arc::new(object), symbols };
            units.push((Box::new(member) as Box<dyn MaterializationUnit<Native>>).into());
        }
        Ok(units)
    }
}

const FLAGS: SymbolFlags = SymbolFlags::EXPORTED;

#[derive(Clone)]
struct Member {
    shared: Arc<Shared>,
    object: Arc<ObjectFile>,
    symbols: Vec<(Symbol, SymbolFlags)>,
}

impl MaterializationUnit<Native> for Member {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        self.look_up(responsibility);
    }
}

impl Member {
    fn look_up(self: Box<Self>, responsibility: Responsibility<Native>) {
        let session = responsibility.session().clone();
        // The lookup holds what it wants.
        let names = session.scope();
        let want = |name: &str| Want { symbol: names.intern(name), need: Need::Weak, at: None };
        let wants = self.object.undefined().map(want).collect();
        responsibility.lookup_answer(wants, Until::Resolved, move |responsibility, found| match found {
            Ok(found) => self.link(responsibility, &found),
            Err(error) if error.passes() => responsibility.fail_for_now(error, self.unit()),
            Err(error) => responsibility.fail(error),
        });
    }

    fn unit(self: Box<Self>) -> super::linking::Unit<Native> {
        (self as Box<dyn MaterializationUnit<Native>>).into()
    }

    fn link(self: Box<Self>, responsibility: Responsibility<Native>, found: &[Definition<Native>]) {
        let session = responsibility.session().clone();
        let (mut imports, mut needs) = (BTreeMap::new(), Vec::new());
        for definition in found {
            let Some(address) = definition.address else { continue };
            let leads = || session.leads_to(definition.label);
            let object = match self.shared.placed.find(address, leads) {
                // Functions of programs are not called by the C convention, whatever their names.
                Ok(Some(Place::Function(_) | Place::Compiled(_))) => continue,
                Ok(Some(Place::Object(object))) => Some(object),
                Ok(None) => None,
                Err(Moved) => return self.look_up(responsibility),
            };
            imports.insert(
                session.names().text(definition.label.symbol).to_string(),
                Foreign { address, object },
            );
            needs.push(Dependence::from(*definition));
        }
        let loaded = match self.shared.jit.load_object(&self.object, &imports) {
            Ok(loaded) => loaded,
            Err(error) => return fail_unit(responsibility, error.is_shortage(), error, self.unit()),
        };
        let names = session.scope();
        let addresses: Vec<(Symbol, usize)> =
            loaded.symbols().map(|(name, address)| (names.intern(name), address)).collect();
        let code = Code::enter_object(&self.shared.placed, &loaded);
        let again = Some(self.clone().unit());
        if let Some(responsibility) = responsibility.complete(code, addresses, needs, again) {
            self.look_up(responsibility);
        }
    }
}
