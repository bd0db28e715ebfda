//! Batches of definitions, and the step that commits them to the tables of a dylib.
//!
//! | part | effect of the step |
//! |---|---|
//! | units | defined, all or none; all are refused if a function to be replaced is being compiled |
//! | existing cells | keep their addresses; they get new bodies, and their symbols the tracker of the definitions |
//! | functions that have inlined a changed function (`invalidation.rs`) | get new bodies in their cells, in the same step |
//! | names, types and global variables, finalisers, records of inlining | become visible to programs read afterwards, in the same step |
//! | bodies | become versions of the existing cells, for the worlds from the next one on, in the same step; bodies of lazy functions that running frames must reach, after it |
//!
//! Nothing is refused after the step (`batch/step.rs`). If the basis of a batch has changed, the step fails, and the defining thread
//! prepares it again (`invalidation.rs` defines the basis).

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::{Body as CellBody, CellOwner, Globals};
use brolga_linking::{Alias, MaterializationUnit, Name, Symbol, SymbolFlags, SymbolScope, Unit};

use super::boxed_entry::deferred;
use super::declared::{type_symbol, variable_symbol};
use super::deferred::Retyped;
use super::dylib::Dylib;
use super::error::SessionError;
use super::function::{answer, waiting};
use super::input::{BodySource, Counting};
use super::invalidation::{Basis, Because, Caller, Change, Dependences, Hit, Imported, Kind, Notes};
use super::lazy::{BODY, Body, SECOND, SecondTier, Stub};
use super::linking;
use super::method_table::NewRows;
use super::names_in::Bindings;
use super::owners::NameUse;
use super::scope;
use super::sync::lock;
use super::target::Native;
use super::tiering::policy::Limits;
use super::type_names::{DeclaredTypes, NewType};
use super::unit::CodegenUnit;
use crate::program::check_built;
use crate::session::tiering::profile::Profile;
use brolga_codegen::native_type::type_of;

mod step;

/// An existing cell that gets a new body.
struct Again {
    owner: Arc<CellOwner>,
    body: CellBody,
    /// Whether running frames reach the new body at their next call; if not, it is visible from the next world on.
    is_replaced: bool,
}

/// Definitions under construction.
pub(super) struct Batch<'a> {
    dylib: &'a Dylib,
    /// Keeps the names of the definitions until they are in the session's tables.
    pub(super) names: SymbolScope,
    replace: bool,
    units: Vec<Unit<Native>>,
    pub(super) offers: scope::Scope,
    /// The symbols of functions called when the dylib is closed.
    pub(super) finalizers: Vec<String>,
    pub(super) basis: Basis,
    pub(super) notes: Notes,
    /// The functions that its program defines and mentions.
    pub(super) uses: Vec<NameUse>,
    /// The types that its program declares, if it shares types with others, and the types that are new in the dylib.
    types: Option<(DeclaredTypes, Vec<NewType>)>,
    /// All functions of a weak program, overridden or not.
    pub(super) weak: Vec<Symbol>,
    log: Vec<(Name, Because)>,
    /// The symbols of recompiled functions, which belong to other definitions.
    recompiled: Vec<Symbol>,
    /// The targets that the symbols of cells resolved to.
    led: Vec<(Symbol, Option<usize>)>,
    /// Whether calls by running frames reach the new bodies as well.
    pub(super) is_replaceable: bool,
    /// Existing cells that get new bodies.
    again: Vec<Again>,
    /// The methods that become visible.
    pub(super) methods: NewRows,
    /// The symbols of existing cells, with their flags.
    stay: BTreeMap<Symbol, SymbolFlags>,
    /// Former declarations of variables and types.
    stale: Vec<Symbol>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(dylib: &'a Dylib, replace: bool) -> Self {
        Batch {
            dylib,
            names: dylib.session.linking().scope(),
            replace,
            units: Vec::new(),
            offers: scope::Scope::default(),
            finalizers: Vec::new(),
            basis: Basis::default(),
            notes: Notes::default(),
            uses: Vec::new(),
            types: None,
            weak: Vec::new(),
            log: Vec::new(),
            recompiled: Vec::new(),
            led: Vec::new(),
            is_replaceable: false,
            again: Vec::new(),
            methods: NewRows::default(),
            stay: BTreeMap::new(),
            stale: Vec::new(),
        }
    }

    pub(super) fn replaces(&self) -> bool {
        self.replace
    }

    /// The dependents of a module's functions that are about to be defined.
    pub(super) fn hits(&mut self, module: &Module, own: &[FuncId]) -> Vec<Hit> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let label = |id| dylib.linking.label(self.names.intern(&module.symbol_of(id)));
        // Functions of another context get names in a view that is returned with the result.
        let cx = if dylib.is_shared(module) { module.cx.clone() } else { session.context().view() };
        let changes = own.iter().map(|&id| Change::new(label(id), module, id, &cx));
        self.basis.changes = changes.collect();
        // A method that becomes one of another function of its name leaves the former one.
        let scope = session.scope(dylib.linking.id()).filter(|_| self.replace);
        let left = self.basis.changes.iter().flat_map(|change| {
            let offered = scope.as_ref().map(|scope| scope.offered(&change.symbol)).unwrap_or_default();
            let gone =
                offered.into_iter().filter(|gone| change.object.is_some_and(|object| object != gone.object));
            gone.map(|gone| Change::removal(change.label, gone, &cx)).collect::<Vec<_>>()
        });
        let left: Vec<Change> = left.collect();
        self.basis.changes.extend(left);
        let (hits, seen) = session.inner.edges.hit(&self.basis.changes);
        (self.basis.hits, self.basis.seen) = (hits.iter().map(Hit::noted).collect(), seen);
        // The properties of the functions that are read here change only when they are defined.
        let objects = self.basis.changes.iter().filter_map(|change| change.object).collect();
        self.basis.imports.extend(self.replace.then_some(Imported { looked_for: objects, seen }));
        hits
    }

    /// The functions of a module whose result types differ from the current definitions.
    pub(super) fn retyped(&self, module: &Module, own: &[FuncId]) -> Vec<Retyped> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        if !self.replace || !dylib.is_shared(module) {
            return Vec::new();
        }
        let home = lock(&session.inner.homes).get(&dylib.linking.id()).map(|home| home.scope.clone());
        let Some(scope) = home else { return Vec::new() };
        let (types, linking) = (&module.cx.types, session.linking());
        let other = |&id: &FuncId| {
            let symbol = module[id].symbol(&module.cx);
            let before = scope.result(scope::object(module, id, &module.cx)?, &symbol)?;
            let now = module[id].sig.results.first().copied().filter(|now| *now != before)?;
            let label = dylib.linking.label(self.names.intern(&symbol));
            let text = |ty| types.display(ty).to_string();
            linking.is_defined(label).then(|| Retyped {
                function: linking.name(label),
                before: text(before),
                now: text(now),
            })
        };
        own.iter().filter_map(other).collect()
    }

    /// Adds a row in the method table for a function of a module, unless its existing row is kept, whose entry calls through a cell that stays. Among methods with one signature
    /// in several dylibs the last one applies, so a method that another dylib may have always gets a new row.
    pub(super) fn add_method(&mut self, module: &Module, id: FuncId) {
        let (linking, shared) = (self.dylib.session.linking(), &self.dylib.session.inner.shared);
        let symbol = self.names.intern(&module.symbol_of(id));
        let label = self.dylib.linking.label(symbol);
        let stays = self.stay.contains_key(&symbol) && shared.methods.has(label, module, id);
        if !stays || self.is_shared_function(module, id) {
            self.methods.add(label, (module, id), |declared| deferred(shared, linking, label, declared));
        }
    }

    /// Whether programs of other dylibs use the generic function that a module's function is a method of.
    fn is_shared_function(&self, module: &Module, id: FuncId) -> bool {
        let names = &module.cx.names;
        let Some(function) = module[id].function_name(&module.cx) else { return false };
        let name = (names.text(function.module), names.text(function.name));
        let users = self.dylib.session.inner.owners.users(name, names.count(function.name));
        users.iter().any(|user| *user != self.dylib.linking.id())
    }

    /// Adds the symbols of the global variables that a program is the first to declare; `cells` has their cells.
    pub(super) fn add_variables(&mut self, module: &Module, cells: &Globals) {
        let session = &self.dylib.session;
        let scope = session.scope(self.dylib.linking.id());
        let (names, units, stale) = (&self.names, &mut self.units, &mut self.stale);
        self.basis.variables.add_new(module, cells, |name| {
            let symbol = names.intern(&variable_symbol(name, session.next_number()));
            units.push(linking::names_only([symbol]));
            stale.extend(scope.as_ref().and_then(|scope| Some(scope.variable(name)?.symbol)));
            symbol
        });
    }

    /// Adds the symbols of the types declared by a program that are new in its dylib.
    pub(super) fn add_types(&mut self, declared: DeclaredTypes) {
        let (inner, dylib) = (&self.dylib.session.inner, self.dylib.linking.id());
        let new = inner.types.new_in(dylib, &|name| inner.owners.order(dylib, name), &declared);
        for NewType { name, count, former } in &new {
            let symbol = self.names.intern(&type_symbol(name, *count));
            self.units.push(linking::names_only([symbol]));
            self.stale.extend(former.map(|former| self.names.intern(&type_symbol(name, former))));
        }
        self.types = Some((declared, new));
    }

    pub(super) fn add_alias(&mut self, alias: Alias) {
        self.units.push(alias.into());
    }

    pub(super) fn add(&mut self, unit: Box<dyn MaterializationUnit<Native>>) {
        self.units.push(unit.into());
    }

    /// Adds a cell for a function with this source, if it is not promised, and second tier. Its bodies are to be defined as parts of the symbol.
    pub(super) fn stub(
        &mut self,
        name: &Arc<str>,
        flags: SymbolFlags,
        ty: Arc<FunctionType>,
        (source, second): (Option<BodySource>, Option<SecondTier>),
        is_eager: bool,
    ) {
        let session = &self.dylib.session;
        let (linking, shared) = (session.linking(), &session.inner.shared);
        let symbol = self.names.intern(name);
        if !is_eager {
            self.offers.set_lazy([name.clone()]);
        }
        let mut there = None;
        if self.replace {
            self.make_cell(name, symbol);
            self.led.push((symbol, self.dylib.linking.ready(symbol)));
            there = self.dylib.cell(symbol);
        }
        match there.filter(|owner| owner.cell().ty().is_called_like(&ty)) {
            Some(owner) => {
                self.stay.insert(symbol, flags);
                let label = self.dylib.linking.label(symbol);
                let source = Body::new(shared, linking, label, second.as_ref(), source);
                // Facts that callers rely on hold as long as the callers run.
                let is_replaced = self.is_replaceable && !is_eager;
                self.again.push(Again { owner, body: source.for_cell(second), is_replaced });
            }
            None => {
                let shared = shared.clone();
                self.add(Box::new(Stub { shared, symbol, flags, second, ty, source, is_eager }));
            }
        }
    }

    /// Makes the cell of a lazy function that is about to be redefined and was never looked up: threads in older worlds may look it up later, and must
    /// find the current version.
    fn make_cell(&self, name: &str, symbol: Symbol) {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let home = lock(&session.inner.homes).get(&dylib.linking.id()).map(|home| home.scope.clone());
        let is_lazy = home.is_some_and(|scope| scope.is_lazy(name));
        if is_lazy
            && dylib.cell(symbol).is_none()
            && session.linking().is_defined(dylib.linking.label(symbol))
        {
            // If the lookup fails, or may not wait here, there is no cell, and all worlds see the new version.
            let _ = waiting(session.runtime(), || Ok(dylib.look_up_own(symbol).wait()));
        }
    }

    /// Recompiles existing functions that have inlined what changes. `seen` is the number of the last change before they were
    /// requested. Returns the names of the functions left out because they no longer fit.
    pub(super) fn recompile(
        &mut self,
        hits: Vec<Hit>,
        seen: u64,
        kept: &mut Vec<Name>,
    ) -> Result<(), SessionError> {
        let there = self.dylib.known(hits.iter().map(|hit| hit.label.symbol))?;
        for hit in hits {
            let label = hit.label;
            match there.get(&label.symbol) {
                Some(flags) if !self.recompile_one(hit, *flags, seen)? => {
                    kept.push(self.dylib.session.linking().name(label));
                }
                Some(_) => {}
                // It was removed, by its tracker or by name.
                None => self.dylib.session.inner.edges.forget(label, seen),
            }
        }
        Ok(())
    }

    /// Recompiles one function; `false` if the changed callee has another type now, so that the function keeps its code.
    fn recompile_one(&mut self, hit: Hit, flags: SymbolFlags, seen: u64) -> Result<bool, SessionError> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let Caller { facts, kind, .. } = &*hit.caller;
        let Some((mut module, id, bindings)) = self.module_of(&hit.caller, seen)? else { return Ok(true) };
        if check_built(&module, 1, facts.callees).is_err() {
            return Ok(false);
        }
        let (linking, shared) = (session.linking(), &session.inner.shared);
        let facts = Arc::new(facts.again(&module, id, bindings));
        let symbol = hit.label.symbol;
        let ty = type_of(&module, id).map(Arc::new);
        let limits = match *kind {
            Kind::Eager | Kind::Lazy => None,
            Kind::Tiered(limits) => Some(limits),
        };
        let profile = limits.and_then(|_| Profile::number(shared.jit.runtime(), &mut module));
        let tiers = match limits {
            None => vec![(BODY, None)],
            Some(Limits { iterations, .. }) => vec![(BODY, Some(Counting { iterations })), (SECOND, None)],
        };
        let mut source = None;
        for (part, counting) in tiers {
            let input = shared.input(module.clone(), &[id], facts.clone(), counting, profile.clone());
            let input = Arc::new(input.with_types(&ty));
            let symbols = vec![(symbol.part(part), SymbolFlags::NONE)];
            source.get_or_insert_with(|| BodySource { input: input.clone(), id });
            self.add(Box::new(CodegenUnit { shared: shared.clone(), input, ids: vec![id], symbols }));
        }
        self.recompiled.push(symbol);
        self.ensure_cell(&hit, flags, ty, source.clone())?;
        self.led.push((symbol, dylib.linking.ready(symbol)));
        if let Some(owner) = dylib.cell(symbol) {
            // An interpreted body would show the old program.
            let second = limits.map(|Limits { calls, .. }| SecondTier { calls, interpreted: None });
            let source = Body::new(shared, linking, hit.label, second.as_ref(), source);
            self.again.push(Again { owner, body: source.for_cell(second), is_replaced: false });
        }
        let mut alone = Dependences::new(&module, 1);
        self.notes.add(hit.label, dylib.is_shared(&module), (&mut alone, id), &facts, *kind, &mut None);
        self.log.push((linking.name(hit.label), hit.because));
        Ok(true)
    }

    /// A recompiled function, in a module with the functions that it sees now, and the targets of its calls; `None` if it is not in its own program.
    fn module_of(
        &mut self,
        caller: &Caller,
        seen: u64,
    ) -> Result<Option<(Module, FuncId, Bindings)>, SessionError> {
        let mut module = caller.program.clone();
        let Ok(id) = module.add_func(caller.func.clone()) else { return Ok(None) };
        // The types of a separate context have no meaning in others: its callees are the ones its program declared.
        let (looked_for, bindings) = match self.dylib.is_shared(&module) {
            true => self.dylib.import_into(&mut module, Some(&self.offers), &caller.facts.bindings)?,
            false => Default::default(),
        };
        for func in &caller.declared {
            // Each has a unique name and types, as in the program itself.
            let _ = module.add_func(func.clone());
        }
        self.basis.imports.push(Imported { looked_for, seen });
        Ok(Some((module, id, bindings)))
    }

    /// Makes the cell of a recompiled function that was never looked up. An eager function gets another promise of its cell. The cell of a lazy one
    /// is made now, so that it gets this body and not an older one: callers may be linked to it before it is ready.
    fn ensure_cell(
        &mut self,
        hit: &Hit,
        flags: SymbolFlags,
        ty: Option<Arc<FunctionType>>,
        source: Option<BodySource>,
    ) -> Result<(), SessionError> {
        let (dylib, session, symbol) = (self.dylib, &self.dylib.session, hit.label.symbol);
        if dylib.cell(symbol).is_some() {
            return Ok(());
        }
        match ty {
            Some(ty) if hit.caller.kind == Kind::Eager => {
                let (shared, second, is_eager) = (session.inner.shared.clone(), None, true);
                self.add(Box::new(Stub { shared, symbol, flags, second, ty, source, is_eager }));
            }
            _ => drop(answer(session.runtime(), dylib.look_up_own(symbol))?),
        }
        Ok(())
    }
}
