//! Batches of definitions, and their step into the tables of a dylib.
//!
//! | part | effect of the step |
//! |---|---|
//! | units | defined, all or none; all are refused if a function to be replaced is being compiled |
//! | existing cells | keep their places; they get other bodies, and their symbols the tracker of the definitions |
//! | functions that have inlined a changed function (`invalidation.rs`) | get new bodies in the same step, behind their cells |
//! | names, types and global variables, finalisers, records of inlining | visible to programs that are read from then on, in the same step |
//! | bodies | become versions of the existing cells, for the worlds from the next one on, in the same step; those of lazy functions that running frames must reach, after it |
//!
//! Nothing is refused after the step. If the basis of a change has changed, the step fails, and the defining thread
//! prepares it again (`invalidation.rs` defines the basis).

use brolga_runtime::events::Event;
use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::{Body as CellBody, CellOwner, NoCell};
use brolga_linking::{Label, MaterializationUnit, Name, Symbol, SymbolFlags, SymbolScope, Unit};

use super::boxed_entry::deferred;
use super::cells::retire;
use super::deferred::Retyped;
use super::dylib::Dylib;
use super::error::SessionError;
use super::function::{answer, waiting};
use super::input::{BodySource, Counting};
use super::invalidation::{Basis, Because, Caller, Change, Hit, Imported, Invalidated, Kind, Notes};
use super::lazy::{BODY, Body, HOT, SecondTier, Stub};
use super::linking;
use super::method_table::NewRows;
use super::owners::NameUse;
use super::scope;
use super::sync::lock;
use super::target::Native;
use super::unit::CodegenUnit;
use crate::native_type::type_of;
use crate::program::check_built;
use crate::session::tiering::profile::Profile;

/// A cell that stays and gets another body.
struct Again {
    owner: Arc<CellOwner>,
    body: CellBody,
    /// Whether running frames reach the new body at their next call; if not, it is visible from the next world on.
    is_replaced: bool,
}

/// Definitions that are being put together.
pub(super) struct Batch<'a> {
    dylib: &'a Dylib,
    /// Holds the names of the definitions until they are in the session's tables.
    pub(super) names: SymbolScope,
    replace: bool,
    tracker: Option<&'a linking::Tracker<Native>>,
    units: Vec<Unit<Native>>,
    pub(super) offers: scope::Scope,
    /// Symbols of functions to be called when the dylib is closed.
    pub(super) finalizers: Vec<String>,
    /// Its basis.
    pub(super) basis: Basis,
    pub(super) notes: Notes,
    /// The functions that its program defines and mentions.
    pub(super) uses: Vec<NameUse>,
    /// All functions of a program that gives way to what is there, whether they are defined here or not.
    pub(super) weak: Vec<Symbol>,
    log: Vec<(Name, Because)>,
    /// Bodies that are recompiled, each with the symbol of its cell.
    beside: Vec<(Symbol, Symbol)>,
    /// Where the symbols of cells have led.
    led: Vec<(Symbol, Option<usize>)>,
    /// Whether calls of running frames reach the new bodies as well.
    pub(super) is_replaceable: bool,
    /// Cells that stay and get other bodies.
    again: Vec<Again>,
    /// The methods that become visible.
    pub(super) methods: NewRows,
    /// The symbols of those.
    stay: Vec<Symbol>,
    /// Second tiers that the functions had before, if they had any, and do not have now.
    stale: Vec<Symbol>,
    /// Hidden symbols of functions, each with that of its cell: the function may have been removed alone, by the
    /// tracker of its cell.
    hidden: Vec<(Symbol, Symbol)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        dylib: &'a Dylib,
        replace: bool,
        tracker: Option<&'a linking::Tracker<Native>>,
    ) -> Self {
        Batch {
            dylib,
            names: dylib.session.linking().scope(),
            replace,
            tracker,
            units: Vec::new(),
            offers: scope::Scope::default(),
            finalizers: Vec::new(),
            basis: Basis::default(),
            notes: Notes::default(),
            uses: Vec::new(),
            weak: Vec::new(),
            log: Vec::new(),
            beside: Vec::new(),
            led: Vec::new(),
            is_replaceable: false,
            again: Vec::new(),
            methods: NewRows::default(),
            stay: Vec::new(),
            stale: Vec::new(),
            hidden: Vec::new(),
        }
    }

    pub(super) fn replaces(&self) -> bool {
        self.replace
    }

    /// The dependents of the functions of a module that are about to be defined.
    pub(super) fn hits(&mut self, module: &Module, own: &[FuncId]) -> Vec<Hit> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let label = |id| dylib.linking.label(self.names.intern(&module[id].symbol(&module.cx)));
        // Functions of another context are named in a view that is returned with the answer.
        let cx = if dylib.is_shared(module) { module.cx.clone() } else { session.context().view() };
        let changes = own.iter().map(|&id| Change::new(label(id), module, id, &cx));
        self.basis.changes = changes.collect();
        let (hits, seen) = session.inner.edges.hit(&self.basis.changes);
        (self.basis.hits, self.basis.seen) = (hits.iter().map(Hit::noted).collect(), seen);
        // The properties of the functions that are read here change only when they are defined.
        let objects = self.basis.changes.iter().filter_map(|change| change.object).collect();
        self.basis.imports.extend(self.replace.then_some(Imported { looked_for: objects, seen }));
        hits
    }

    /// Which of the functions of a module give another type than those that are there.
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

    /// Gives a function of a module a row in the method table, unless it keeps the one that it has: the entry of that calls through a cell which stays. Of methods of one signature
    /// in several dylibs the last one counts, so one that another dylib may have gets a new row in any case.
    pub(super) fn add_method(&mut self, module: &Module, id: FuncId) {
        let (linking, shared) = (self.dylib.session.linking(), &self.dylib.session.inner.shared);
        let symbol = self.names.intern(&module[id].symbol(&module.cx));
        let label = self.dylib.linking.label(symbol);
        let stays = self.stay.contains(&symbol) && shared.methods.has(label, module, id);
        if !stays || self.is_shared_function(module, id) {
            self.methods.add(label, (module, id), |declared| deferred(shared, linking, label, declared));
        }
    }

    /// Whether programs of other dylibs use the function of which a function of a module is a method.
    fn is_shared_function(&self, module: &Module, id: FuncId) -> bool {
        let names = &module.cx.names;
        let Some(function) = module[id].function_name(&module.cx) else { return false };
        let name = (names.text(function.module), names.text(function.name));
        let users = self.dylib.session.inner.owners.users(name, names.count(function.name));
        users.iter().any(|user| *user != self.dylib.linking.id())
    }

    pub(super) fn add(&mut self, unit: Box<dyn MaterializationUnit<Native>>) {
        self.units.push(unit.into());
    }

    /// A cell for a function. Says what its body is to be defined as.
    pub(super) fn stub(
        &mut self,
        name: &Arc<str>,
        flags: SymbolFlags,
        ty: Arc<FunctionType>,
        hot: Option<SecondTier>,
        pin: &BodySource,
        is_eager: bool,
    ) -> (Symbol, SymbolFlags) {
        let session = &self.dylib.session;
        let (linking, shared) = (session.linking(), &session.inner.shared);
        let symbol = self.names.intern(name);
        let [body, second] = [BODY, HOT].map(|kind| self.names.intern(&format!("{name}{kind}")));
        let mut body_flags = flags.without(SymbolFlags::EXPORTED);
        if is_eager {
            body_flags |= SymbolFlags::INNER;
        } else {
            self.offers.set_lazy([name.clone()]);
        }
        let mut there = None;
        if self.replace {
            self.stale.extend(hot.is_none().then_some(second));
            self.make_cell(name, symbol);
            self.led.push((symbol, self.dylib.linking.ready(symbol)));
            there = self.dylib.cell(symbol);
        } else {
            self.hidden.extend([(body, symbol), (second, symbol)]);
        }
        match there.filter(|owner| *owner.cell().ty() == *ty) {
            Some(owner) => {
                self.stay.push(symbol);
                let dylib = self.dylib.linking.id();
                let source = Body::new(shared, linking, dylib, body, hot.as_ref(), pin.clone());
                // Facts that callers rely on hold as long as these run.
                let is_replaced = self.is_replaceable && !is_eager;
                self.again.push(Again { owner, body: source.for_cell(hot), is_replaced });
            }
            None => {
                let (pin, shared) = (pin.clone(), shared.clone());
                self.add(Box::new(Stub { shared, symbol, flags, body, hot, ty, pin, is_eager }));
            }
        }
        (body, body_flags)
    }

    /// Makes the cell of a lazy function that is about to be redefined and was never looked up: threads in older worlds may look it up later, and have
    /// to find the present version.
    fn make_cell(&self, name: &str, symbol: Symbol) {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let home = lock(&session.inner.homes).get(&dylib.linking.id()).map(|home| home.scope.clone());
        let is_lazy = home.is_some_and(|scope| scope.is_lazy(name));
        if is_lazy
            && dylib.cell(symbol).is_none()
            && session.linking().is_defined(dylib.linking.label(symbol))
        {
            // If the lookup fails, or may not wait here, there is no cell, and all worlds see the new version.
            let _ = waiting(session.runtime(), || Ok(dylib.linking.lookup([symbol]).wait()));
        }
    }

    /// Recompiles functions that are there and have inlined what changes. `seen` is the number of the last change before they were
    /// asked for. Names those that are left out because they do not fit any more.
    pub(super) fn recompile(
        &mut self,
        hits: Vec<Hit>,
        seen: u64,
        kept: &mut Vec<Name>,
    ) -> Result<(), SessionError> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let there = dylib.known(hits.iter().map(|hit| hit.label.symbol))?;
        let offers = std::mem::take(&mut self.offers);
        for hit in hits {
            let Some(flags) = there.get(&hit.label.symbol) else {
                // It was removed, by its tracker or by name.
                session.inner.edges.forget(hit.label, seen);
                continue;
            };
            let Caller { symbol: name, func, program, declared, facts, kind, .. } = &*hit.caller;
            let mut module = program.clone();
            let Ok(id) = module.add_func(func.clone()) else { continue };
            // The types of a context of its own say nothing in others: what it calls is what its program declared.
            let is_shared = dylib.is_shared(&module);
            let (looked_for, bindings) = match is_shared {
                true => dylib.import_into(&mut module, Some(&offers), &facts.bindings)?,
                false => Default::default(),
            };
            for func in declared {
                // Each is one of one name and types, as in the program itself.
                let _ = module.add_func(func.clone());
            }
            self.basis.imports.push(Imported { looked_for, seen });
            // One for which what has changed has another type now keeps what it has.
            if check_built(&module, 1, facts.callees).is_err() {
                kept.push(session.linking().name(hit.label));
                continue;
            }
            let (linking, shared) = (session.linking(), &session.inner.shared);
            let facts = Arc::new(facts.again(&module, id, bindings));
            let body = self.names.intern(&format!("{name}{BODY}"));
            let pin = BodySource::default();
            // An interpreted body would show the old program.
            let (hot, inputs) = match *kind {
                Kind::Eager | Kind::Lazy => (None, vec![(None, body)]),
                Kind::Tiered(limits) => {
                    let hot = dylib.hot(&self.names, name, limits, None);
                    let counting = Counting { iterations: limits.iterations };
                    let inputs = vec![(Some(counting), body), (None, hot.body)];
                    (Some(hot), inputs)
                }
            };
            let inner = if *kind == Kind::Eager { SymbolFlags::INNER } else { SymbolFlags::NONE };
            let ty = type_of(&module, id).map(Arc::new);
            let profile = hot.as_ref().and_then(|_| Profile::number(shared.jit.runtime(), &mut module));
            for (counting, symbol) in inputs {
                let input = shared.input(module.clone(), &[id], facts.clone(), counting, profile.clone());
                let input = Arc::new(input.with_types(&ty));
                let symbols = vec![(symbol, SymbolFlags::CALLABLE | inner)];
                // The first of its inputs counts: that is its body.
                pin.put(&input, id);
                self.add(Box::new(CodegenUnit { shared: shared.clone(), input, ids: vec![id], symbols }));
                self.beside.push((symbol, hit.label.symbol));
            }
            // There may have been no lookup. An eager function gets another promise of its cell then. The cell of a lazy one is made now, so that it gets this
            // body and no older one: callers may be linked to it before it is ready.
            if dylib.cell(hit.label.symbol).is_none() {
                match ty {
                    Some(ty) if *kind == Kind::Eager => {
                        let (symbol, flags) = (hit.label.symbol, *flags);
                        let (shared, pin, hot, is_eager) = (shared.clone(), pin.clone(), None, true);
                        self.add(Box::new(Stub { shared, symbol, flags, body, hot, ty, pin, is_eager }));
                        self.beside.push((symbol, symbol));
                    }
                    _ => drop(answer(session.runtime(), dylib.linking.lookup([hit.label.symbol]))?),
                }
            }
            self.led.push((hit.label.symbol, dylib.linking.ready(hit.label.symbol)));
            if let Some(owner) = dylib.cell(hit.label.symbol) {
                let source = Body::new(shared, linking, hit.label.dylib, body, hot.as_ref(), pin.clone());
                self.again.push(Again { owner, body: source.for_cell(hot), is_replaced: false });
            }
            self.notes.add(hit.label, is_shared, (&module, id), &facts, *kind, &mut None);
            self.log.push((linking.name(hit.label), hit.because));
        }
        self.offers = offers;
        Ok(())
    }

    /// Whether the definition did not request it.
    fn is_unnamed(&self, name: &Name) -> bool {
        let linking = self.dylib.session.linking();
        let is_beside = |(symbol, _): &(Symbol, Symbol)| linking.names().text(*symbol) == name.symbol;
        name.symbol.ends_with(HOT) || self.beside.iter().any(is_beside)
    }

    /// Lets all of it come into force in one step. Says under which number; nothing if it is to be prepared again, because what it was
    /// prepared from is not so any more. `overridden` are the weak functions that were found to be there, now and when it was prepared.
    pub(super) fn define(mut self, overridden: &mut BTreeSet<Symbol>) -> Result<Option<u64>, SessionError> {
        let (dylib, inner) = (self.dylib, &self.dylib.session.inner);
        let (linking, hidden) = (dylib.session.linking(), std::mem::take(&mut self.hidden));
        let change = linking::Change {
            units: std::mem::take(&mut self.units),
            tracker: self.tracker,
            replace: self.replace,
            orphans: hidden.clone(),
            unused: std::mem::take(&mut self.stale),
            stay: std::mem::take(&mut self.stay),
            beside: self.beside.clone(),
        };
        let (offers, uses) = (std::mem::take(&mut self.offers), std::mem::take(&mut self.uses));
        let finalizers = std::mem::take(&mut self.finalizers);
        // Dropped after the locks are released.
        let (mut gone, mut former) = (Vec::new(), Vec::new());
        let offer = |is_defined: &dyn Fn(Label) -> bool| {
            inner.owners.note(dylib.linking.id(), &uses);
            if let Some(home) = lock(&inner.homes).get_mut(&dylib.linking.id()) {
                gone = home.scope.sweep(|symbol| {
                    let symbol = linking.names().find(symbol);
                    symbol.is_some_and(|symbol| is_defined(dylib.linking.label(symbol)))
                });
                home.scope.take_over(offers);
                former = self.basis.variables.declare_in(&home.scope);
                home.finalizers.retain(|old| !finalizers.contains(old));
                home.finalizers.extend(finalizers);
            }
        };
        // Memory is reserved before the step, in which nothing may fail.
        let (replaced, superseded): (Vec<Again>, Vec<Again>) =
            std::mem::take(&mut self.again).into_iter().partition(|again| again.is_replaced);
        let reserve = |again: Again| Ok((again.owner.reserve()?, again));
        let mut superseded = superseded.into_iter().map(reserve).collect::<Result<Vec<_>, NoCell>>()?;
        let (mut retired, mut superseded_methods) = (Vec::new(), Vec::new());
        let mut methods = Some(std::mem::take(&mut self.methods));
        let (mut number, mut busy) = (None, Vec::new());
        let agree = |is_defined: &dyn Fn(Label) -> bool| {
            let is_there = |symbol: &Symbol| is_defined(dylib.linking.label(*symbol));
            // A weak definition would give way to the body of a function that is gone.
            busy.extend(
                hidden.iter().filter(|(body, slot)| is_there(body) && !is_there(slot)).map(|both| both.0),
            );
            let there: BTreeSet<Symbol> = self.weak.iter().copied().filter(is_there).collect();
            let is_same = there == *overridden && busy.is_empty();
            *overridden = there;
            let leads_there = |(symbol, to): &(Symbol, Option<usize>)| dylib.linking.ready(*symbol) == *to;
            let is_meant = inner.owners.mean(dylib.linking.id(), &uses);
            if is_same && is_meant && self.led.iter().all(leads_there) {
                let log = std::mem::take(&mut self.log);
                let events = inner.shared.jit.runtime().events();
                let told = if events.is_on() { log.clone() } else { Vec::new() };
                number = inner.edges.agree(&self.basis, &mut self.notes, log, is_defined, offer);
                for invalidated in told.into_iter().filter(|_| number.is_some()).map(Invalidated::from) {
                    let (function, reason) = (invalidated.function.to_string(), invalidated.to_string());
                    events.tell(Event::Invalidated { function: &function, reason: &reason });
                }
            }
            if number.is_some() {
                superseded_methods =
                    inner.shared.methods.change(methods.take().unwrap_or_default(), |world| {
                        retired.extend(
                            superseded
                                .drain(..)
                                .map(|(reserved, again)| again.owner.supersede(reserved, world, again.body)),
                        );
                    });
            }
            number.is_some()
        };
        let is_hidden = |name: &Name| {
            let is = |(symbol, _): &(Symbol, Symbol)| linking.names().text(*symbol) == name.symbol;
            hidden.iter().any(is)
        };
        match dylib.linking.change(change, agree) {
            // The caller has named neither the second tier nor inliners: that they are being compiled is no reason to
            // refuse. A compilation under way may have seen the former state.
            Err(linking::Error::Busy { symbols })
                if self.replace && symbols.iter().all(|name| self.is_unnamed(name)) =>
            {
                dylib.outlast(&symbols)?;
            }
            // Nor has the caller named the body of a function that was removed while it was being compiled.
            Err(linking::Error::Duplicate { symbols }) if symbols.iter().all(is_hidden) => {
                dylib.outlast(&symbols)?;
            }
            // A function to be replaced is being compiled, or was left half compiled when something else failed.
            Err(linking::Error::Busy { symbols }) if self.replace => {
                if dylib.outlast(&symbols).is_err() {
                    return Err(linking::Error::Busy { symbols: functions(symbols) }.into());
                }
            }
            Err(linking::Error::Duplicate { symbols }) => {
                return Err(linking::Error::Duplicate { symbols: functions(symbols) }.into());
            }
            made => drop(made?),
        }
        let busy: Vec<Name> =
            busy.into_iter().map(|symbol| linking.name(dylib.linking.label(symbol))).collect();
        dylib.outlast(&busy)?;
        drop(superseded_methods);
        if number.is_some() {
            retire(inner.shared.jit.runtime(), retired);
            replaced.into_iter().for_each(|again| again.owner.reset(again.body));
        }
        Ok(number)
    }
}

/// The functions that these symbols are, or belong to.
fn functions(mut symbols: Vec<Name>) -> Vec<Name> {
    for name in &mut symbols {
        let function = [BODY, HOT].into_iter().find_map(|kind| name.symbol.strip_suffix(kind));
        if let Some(function) = function {
            name.symbol = function.into();
        }
    }
    symbols.sort();
    symbols.dedup();
    symbols
}
