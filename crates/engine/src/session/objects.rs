//! Object files and static archives from C and C++ compilers.
//!
//! ```text
//!   add_archive ──► generator ── a name that code needs ──► members ─┐
//!   add_object  ─────────────────────────────────────────► files ────┴─► unit ── look up ──► load ──► start ──► ready
//! ```
//!
//! Files that are linked together are one unit with all its definitions: the files of one call, or members of an archive that need each other. It is linked when one of its symbols is first
//! needed; a program that looks up a name at run time does not load members of archives. Each name that the unit does not define is looked up in the dylib's link
//! order: as a C symbol, then as a program function with C types (`c_names.rs`), then among the symbols of the run time. So it is removed, and counted as used, like any other
//! unit. Its finalisers run when it is removed and nothing uses it.
//!
//! Initialisers run before the unit is in force, so that no other thread sees it uninitialised. If a symbol that the unit needs is redefined while they run, the unit ends, is linked
//! again and restarts: its initialisers have then run twice, on two copies of its variables.
//!
//! Another definition in the dylib overrides a weak one, and the unit is linked to the other definition.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_codegen::compiled;
use brolga_ir::doors::Door;
use brolga_jit::{
    Archive, CEntryError, Foreign, Given, LinkError, LoadedObject, ObjectFile, ObjectFileError,
};
use brolga_linking::{
    Definition, Dependence, Generator, LookupKind, MaterializationUnit, Need, Request, Responsibility,
    Symbol, SymbolFlags, SymbolScope, Unit, Until, Want,
};
use brolga_runtime::Doors;

use super::dylib::{Dylib, WeakDylib};
use super::error::SessionError;
use super::function::answer;
use super::shared::Shared;
use super::target::{Code, Moved, Native, Place, fail_unit};
use crate::Error;

/// A C symbol in memory. Keeps its unit alive.
#[derive(Clone, Debug)]
pub struct CSymbol {
    address: usize,
    #[expect(dead_code, reason = "while it is held the unit stays")]
    object: Option<LoadedObject>,
}

impl CSymbol {
    /// The address of the function or data.
    #[must_use]
    pub fn address(&self) -> *const () {
        std::ptr::with_exposed_provenance(self.address)
    }
}

impl Dylib {
    /// Looks up a C symbol that the dylib sees, function or data: in an object file or archive, which is linked if necessary, in a library, or in the process, if the dylib sees its symbols. For a thread-local symbol, the
    /// address is the current thread's, as with `dlsym`.
    ///
    /// # Errors
    /// The doors are closed; there is no such symbol; it is a program function; its definition failed; there is no memory for this thread's copy.
    pub fn c_symbol(&self, name: &str) -> Result<CSymbol, SessionError> {
        self.session.need("`Dylib::c_symbol`", Door::NativeCode)?;
        let found = self.foreign(name)?;
        let address = found.in_this_thread(name)?;
        Ok(CSymbol { address, object: found.object })
    }

    /// Resolves a name to a C symbol, for code that is linked to it.
    pub(super) fn foreign(&self, name: &str) -> Result<Foreign, SessionError> {
        let linking = self.session.linking();
        loop {
            let symbol = linking.symbol(name);
            let want = Want { symbol: symbol.symbol(), need: Need::Weak, at: None };
            let lookup = linking.lookup(self.linking.links()?, vec![want], Until::Ready);
            let found = answer(self.session.runtime(), lookup)??;
            let Some(found) = found.first() else {
                let resolved = self.session.runtime().foreign().given(name);
                let address = resolved.map_err(|error| SessionError::Library(Arc::new(error)))?;
                return Ok(Foreign { address, object: None });
            };
            let not_c = || SessionError::NotC { name: name.to_owned() };
            let address = found.address.ok_or_else(not_c)?;
            let object =
                match self.session.inner.shared.placed.find(address, || linking.leads_to(found.label)) {
                    Ok(Some(Place::Object(object))) => Some(object),
                    Ok(None) => None,
                    Ok(Some(Place::Function(_) | Place::Compiled(_))) => return Err(not_c()),
                    // The symbol was replaced meanwhile.
                    Err(Moved) => continue,
                };
            return Ok(Foreign { address, object });
        }
    }

    /// Finds C symbols in members of a static archive, which are linked when code needs them. `name` identifies the archive in messages.
    ///
    /// # Errors
    /// The doors are closed; the bytes are not an archive; the dylib is closed.
    pub fn add_archive(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        let linked = self.linked_objects("`Dylib::add_archive`")?;
        let archive = Archive::parse(name, bytes)?;
        self.add_generator(Members { linked, archive })
    }

    /// Defines the symbols of an object file from a C or C++ compiler. `name` identifies the file in messages and debuggers.
    ///
    /// The file is linked when one of its symbols is first needed; its initialisers run then, and its finalisers when it is removed and nothing uses it any more.
    /// A strong definition added to the dylib before the file is linked overrides a weak one in it. C++ files need the C++ library in the dylib's link order
    /// (`add_library("libstdc++.so.6")`), and most files need symbols of the process ([`Dylib::add_process_symbols`]).
    ///
    /// # Errors
    /// The doors are closed; the file is damaged, not for this machine, defines nothing visible to others, or needs an unsupported feature; a symbol is defined already; the dylib is closed.
    pub fn add_object(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        self.add_objects([(name, bytes)])
    }

    /// As [`Dylib::add_object`], for files that are linked and removed together: they may need each other.
    ///
    /// # Errors
    /// As [`Dylib::add_object`]; two of the files define the same strong symbol.
    pub fn add_objects<'f>(
        &self,
        files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), SessionError> {
        let linked = self.linked_objects("`Dylib::add_object`")?;
        let files = files.into_iter().map(|(name, bytes)| ObjectFile::parse(name, bytes));
        let object = ObjectFile::together(files.collect::<Result<Vec<_>, _>>()?)?;
        let names = self.session.linking().scope();
        let member = Member::new(linked, object, &names);
        if member.object.defined().all(|given| given.is_hidden) {
            return Err(SessionError::NothingDefined);
        }
        let symbols: Vec<(Symbol, String)> =
            member.object.defined().map(|given| (names.intern(given.name), given.name.to_owned())).collect();
        self.linking.define(Box::new(member).unit())?;
        self.recompile_callers_of(symbols.iter().map(|(symbol, name)| (*symbol, name.as_str())));
        Ok(())
    }

    fn linked_objects(&self, caller: &'static str) -> Result<Linked, SessionError> {
        match self.session.inner.doors {
            Some(promise) => {
                let shared = self.session.inner.shared.clone();
                Ok(Linked { shared, dylib: self.downgrade(), promise })
            }
            None => Err(Error::Closed { what: caller, door: Door::NativeCode }.into()),
        }
    }
}

/// The parts of a session that linking object files uses.
#[derive(Clone)]
struct Linked {
    shared: Arc<Shared>,
    dylib: WeakDylib,
    /// The permission under which initialisers run.
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
        // A definition holds its names; until then the scope holds them.
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
    /// The units of members: members that need each other are one unit.
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

/// Explains missing addresses by the functions of these names that C cannot call.
fn explain(error: &mut LinkError, refused: &BTreeMap<String, CEntryError>) {
    let LinkError::Unresolved { symbols } = error else { return };
    for (symbol, reason) in symbols {
        if let compiled::Symbol::Foreign { name, .. } = symbol
            && let Some(refusal) = refused.get(name)
        {
            *reason = refusal.to_string();
        }
    }
}

/// Object files that form one unit.
#[derive(Clone)]
struct Member {
    linked: Linked,
    object: Arc<ObjectFile>,
    symbols: Vec<(Symbol, SymbolFlags)>,
    /// The symbols that another definition overrides.
    overridden: Vec<Symbol>,
}

fn flags_of(given: Given<'_>) -> SymbolFlags {
    let seen = if given.is_hidden { SymbolFlags::NONE } else { SymbolFlags::EXPORTED };
    if given.gives_way { seen | SymbolFlags::WEAK } else { seen }
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
        let symbols = object.defined().map(|given| (names.intern(given.name), flags_of(given))).collect();
        Member { linked, object: Arc::new(object), symbols, overridden: Vec::new() }
    }

    fn look_up(self: Box<Self>, responsibility: Responsibility<Native>) {
        let session = responsibility.session().clone();
        // The lookup holds the requested names.
        let names = session.scope();
        let want = |name: &str| Want { symbol: names.intern(name), need: Need::Weak, at: None };
        let overridden = self.overridden.iter().map(|&symbol| Want { symbol, need: Need::Weak, at: None });
        let mut wants: Vec<Want> = self.object.undefined().map(want).chain(overridden).collect();
        let mut functions: BTreeMap<Symbol, String> = BTreeMap::new();
        if let Ok(dylib) = self.linked.dylib.upgrade() {
            for name in self.object.undefined() {
                let Some((dylib, symbol)) = dylib.function_of_c_name(name) else { continue };
                let symbol = names.intern(&symbol);
                functions.insert(symbol, name.to_owned());
                wants.push(Want { symbol, need: Need::Weak, at: Some(dylib) });
            }
        }
        responsibility.lookup_answer(wants, Until::Resolved, move |responsibility, found| match found {
            Ok(found) => self.link(responsibility, &found, &functions),
            Err(error) if error.passes() => responsibility.fail_for_now(error, self.unit()),
            Err(error) => responsibility.fail(error),
        });
    }

    fn unit(self: Box<Self>) -> super::linking::Unit<Native> {
        (self as Box<dyn MaterializationUnit<Native>>).into()
    }

    /// Links the files to the resolved symbols. `functions` has the C names of program functions, by their symbols.
    fn link(
        self: Box<Self>,
        responsibility: Responsibility<Native>,
        found: &[Definition<Native>],
        functions: &BTreeMap<Symbol, String>,
    ) {
        let session = responsibility.session().clone();
        let (mut imports, mut needs, mut entries) = (BTreeMap::new(), Vec::new(), Vec::new());
        // The reasons why functions cannot be called by C; a C symbol of the run time may have the same name.
        let mut refused: BTreeMap<String, CEntryError> = BTreeMap::new();
        for definition in found {
            let Some(address) = definition.address else { continue };
            let leads = || session.leads_to(definition.label);
            let object = match self.linked.shared.placed.find(address, leads) {
                Ok(Some(Place::Function(function))) => {
                    let Some(name) = functions.get(&definition.label.symbol) else { continue };
                    match function.cell.c_address() {
                        Ok(address) => {
                            let entry = Foreign { address, object: None };
                            let need = Dependence::from(*definition);
                            entries.push((name.clone(), entry, function.cell.clone(), need));
                        }
                        Err(error) if error.is_shortage() => {
                            return fail_unit(responsibility, true, error, self.unit());
                        }
                        Err(error) => {
                            refused.insert(name.clone(), error);
                        }
                    }
                    continue;
                }
                // Functions without a native form are called only by dispatch.
                Ok(Some(Place::Compiled(_))) => continue,
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
        // A C symbol takes precedence over a program function of the same name.
        let mut kept = Vec::new();
        for (name, entry, cell, need) in entries {
            if let Entry::Vacant(place) = imports.entry(name) {
                place.insert(entry);
                kept.push(cell);
                needs.push(need);
            }
        }
        let Linked { shared, promise, .. } = &self.linked;
        let overridden = self.overridden.iter().map(|&symbol| session.names().text(symbol).to_string());
        let loaded = match shared.jit.load_object(&self.object, &imports, &overridden.collect()) {
            Ok(loaded) => loaded,
            Err(mut error) => {
                explain(&mut error, &refused);
                // A missing symbol may be defined later.
                let may_pass = error.is_shortage() || matches!(error, LinkError::Unresolved { .. });
                return fail_unit(responsibility, may_pass, error, self.unit());
            }
        };
        loaded.start(*promise);
        let names = session.scope();
        let addresses: Vec<(Symbol, usize)> =
            loaded.symbols().map(|(name, address)| (names.intern(name), address)).collect();
        let code = Code::enter_object(&shared.placed, &loaded).keeping(kept);
        let again = Some(self.clone().unit());
        if let Some(responsibility) = responsibility.complete(code, addresses, needs, again) {
            self.look_up(responsibility);
        }
    }
}
