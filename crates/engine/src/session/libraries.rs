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
use brolga_runtime::{Doors, Runtime};

use super::deferred::Redefined;
use super::dylib::Dylib;
use super::error::SessionError;
use super::invalidation::Change;
use super::shared::Shared;
use super::target::{Code, Moved, Native, Place, fail_unit};
use crate::Error;

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
        Ok(self.recompile_callers_of([(symbol.symbol(), name)]))
    }

    /// Compiles callers of C symbols again that were defined: a first definition may be what callers have missed, or be nearer to them than what they have found.
    fn recompile_callers_of<'n>(&self, symbols: impl IntoIterator<Item = (Symbol, &'n str)>) -> Redefined {
        let change = |(symbol, name)| Change::c_symbol(self.linking.label(symbol), name);
        let changes: Vec<Change> = symbols.into_iter().map(change).collect();
        let (mut hits, _) = self.session.inner.edges.hit(&changes);
        let owners = &self.session.inner.owners;
        hits.retain(|hit| owners.order(hit.label.dylib).contains(&self.linking.id()));
        let mut redefined = Redefined::default();
        self.session.recompile_callers(hits, &mut redefined);
        redefined
    }

    /// Finds C symbols of the process that the filter accepts, when something in reach of this dylib asks.
    ///
    /// From the first call on, the session's run time is restricted: its programs may name symbols of the process only if a filter accepts them,
    /// in whatever dylib they are, and libraries only by [`Dylib::add_library`] (`Foreign::allow` of the run time). A function that
    /// needs another one fails, with the symbol's name.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_process_symbols(
        &self,
        filter: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<(), SessionError> {
        let filter = Arc::new(filter);
        let allowed = filter.clone();
        self.session.runtime().foreign().allow(move |name| allowed(name));
        let runtime = self.session.runtime().clone();
        self.add_generator(Library { runtime, library: None, filter: move |name: &str| filter(name) })
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
        let linked = self.linked_objects("`Dylib::add_archive`")?;
        let archive = Archive::parse(name, bytes)?;
        self.add_generator(Members { linked, archive })
    }

    /// Defines the symbols of an object file of a C or C++ compiler. `name` is how messages and debuggers call it.
    ///
    /// The file is linked when something first needs one of its symbols; its initialisers run then, and its finalisers when it is removed and nothing uses it any more.
    /// A weak definition gives way to a strong one of the dylib that comes before the file is linked.
    ///
    /// # Errors
    /// The doors are closed; the file is damaged, not for this machine, defines nothing for others, or needs what is not done here; a symbol is defined already; the dylib is closed.
    pub fn add_object(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        self.add_objects([(name, bytes)])
    }

    /// As [`Dylib::add_object`], for files that are linked and removed together: they may need each other, and see each other's hidden symbols.
    ///
    /// # Errors
    /// As [`Dylib::add_object`]; two of the files define one strong symbol.
    pub fn add_objects<'f>(
        &self,
        files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), SessionError> {
        let linked = self.linked_objects("`Dylib::add_object`")?;
        let files = files.into_iter().map(|(name, bytes)| ObjectFile::parse(name, bytes));
        let object = ObjectFile::together(files.collect::<Result<Vec<_>, _>>()?)?;
        let names = self.session.linking().scope();
        let member = Member::new(linked, object, &names);
        if member.symbols.is_empty() {
            return Err(SessionError::NothingDefined);
        }
        let symbols: Vec<(Symbol, String)> =
            member.object.defined().map(|(name, _)| (names.intern(name), name.to_owned())).collect();
        self.linking.define(Box::new(member).unit())?;
        self.recompile_callers_of(symbols.iter().map(|(symbol, name)| (*symbol, name.as_str())));
        Ok(())
    }

    fn linked_objects(&self, caller: &'static str) -> Result<Linked, SessionError> {
        match self.session.inner.doors {
            Some(promise) => Ok(Linked { shared: self.session.inner.shared.clone(), promise }),
            None => Err(Error::Closed { what: caller, door: Door::NativeCode }.into()),
        }
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

/// What linking object files takes.
#[derive(Clone)]
struct Linked {
    shared: Arc<Shared>,
    /// Initialisers run under it.
    promise: Doors,
}

/// Members of a static archive.
struct Members {
    linked: Linked,
    archive: Archive,
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
            units.push(Box::new(Member::new(self.linked.clone(), object, names)).unit());
        }
        Ok(units)
    }
}

/// Object files that are one unit.
#[derive(Clone)]
struct Member {
    linked: Linked,
    object: Arc<ObjectFile>,
    symbols: Vec<(Symbol, SymbolFlags)>,
    /// Those that another definition overrides.
    overridden: Vec<Symbol>,
}

impl MaterializationUnit<Native> for Member {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn discard(&mut self, symbol: Symbol) {
        self.overridden.push(symbol);
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        self.look_up(responsibility);
    }
}

impl Member {
    fn new(linked: Linked, object: ObjectFile, names: &SymbolScope) -> Member {
        let flags = |is_weak| match is_weak {
            true => SymbolFlags::EXPORTED | SymbolFlags::WEAK,
            false => SymbolFlags::EXPORTED,
        };
        let symbols = object.defined().map(|(name, is_weak)| (names.intern(name), flags(is_weak))).collect();
        Member { linked, object: Arc::new(object), symbols, overridden: Vec::new() }
    }

    fn look_up(self: Box<Self>, responsibility: Responsibility<Native>) {
        let session = responsibility.session().clone();
        // The lookup holds what it wants.
        let names = session.scope();
        let want = |name: &str| Want { symbol: names.intern(name), need: Need::Weak, at: None };
        let overridden = self.overridden.iter().map(|&symbol| Want { symbol, need: Need::Weak, at: None });
        let wants = self.object.undefined().map(want).chain(overridden).collect();
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
            let object = match self.linked.shared.placed.find(address, leads) {
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
        let Linked { shared, promise } = &self.linked;
        let overridden = self.overridden.iter().map(|&symbol| session.names().text(symbol).to_string());
        let loaded = match shared.jit.load_object(&self.object, &imports, &overridden.collect()) {
            Ok(loaded) => loaded,
            Err(error) => return fail_unit(responsibility, error.is_shortage(), error, self.unit()),
        };
        loaded.start(*promise);
        let names = session.scope();
        let addresses: Vec<(Symbol, usize)> =
            loaded.symbols().map(|(name, address)| (names.intern(name), address)).collect();
        let code = Code::enter_object(&shared.placed, &loaded);
        let again = Some(self.clone().unit());
        if let Some(responsibility) = responsibility.complete(code, addresses, needs, again) {
            self.look_up(responsibility);
        }
    }
}
