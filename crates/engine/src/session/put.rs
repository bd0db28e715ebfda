//! Putting definitions into a dylib: programs, promises, functions of the host.
//!
//! ```text
//!   prepare: who depends on it, units, cells, what callers have now ──► agree: is it so still? ──► in force ──► callers elsewhere
//!      ▲                                                                       │ no
//!      └───────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Weak functions that give way are known only when it comes to the step. The program is prepared again then, and they are functions of
//! others for the rest of it: nobody is told of them, and nobody has their bodies in it.
//!
//! Nothing is locked while it is prepared, and nobody is waited for once it is in force (`inlined.rs` says what is looked at, `batch.rs` what
//! comes into force in one step). Callers in other dylibs that have inlined a body are recompiled after that, dylib by dylib; `later.rs` is for
//! those with whom this cannot be done at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_linking::{Priority, Symbol, SymbolFlags, SymbolScope, Until};
use brolga_runtime::heap::{Root, Scope};
use brolga_runtime::objects::{MethodEntry, Raised};

use super::batch::Batch;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::inlined::{Hit, Kind};
use super::interpreted::InterpretedBody;
use super::later::{self, Redefined, Retyped};
use super::lazy::{self, BODY, HOT, Hot};
use super::opening::{INITIALIZER, Marker};
use super::plan::lock;
use super::profile::Profile;
use super::promise::{Make, Promise, Signature};
use super::scope::{part, without_bodies};
use super::target::Native;
use super::unit::{Functions, Loaded, Pin, Stage, Whole};
use super::{host, linking};

/// How many rounds of a loop count as much as a call, if nobody says.
const ROUNDS: u32 = 10;

const FUNCTION: SymbolFlags = SymbolFlags::EXPORTED;

type MakeModule = Box<dyn FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send>;

impl Dylib {
    /// Defines the functions of a program, all or none.
    ///
    /// # Errors
    /// Some are defined already; the dylib is closed; the session has ended.
    pub fn define<'t>(&self, definitions: impl Into<Definitions<'t>>) -> Result<(), SessionError> {
        self.put(definitions.into(), false).map(drop)
    }

    /// Defines functions in the place of those that have their names. Frames that run stay in their world and call the old ones; whatever is called
    /// from Rust from now on calls the new ones. A function that is there stays eager or lazy as it is. The result says what became of functions of other
    /// dylibs that have taken an old one in.
    ///
    /// # Errors
    /// As [`Dylib::define`]; some of the old ones are being compiled, and that waits for this thread; the thread is inside a scope and would have
    /// to wait. Nothing has changed then.
    pub fn redefine<'t>(&self, definitions: impl Into<Definitions<'t>>) -> Result<Redefined, SessionError> {
        self.put(definitions.into(), true)
    }

    fn put(&self, mut definitions: Definitions<'_>, replace: bool) -> Result<Redefined, SessionError> {
        let mut beaten = BTreeSet::new();
        loop {
            definitions.import_anew()?;
            if let Some(redefined) = self.try_put(&mut definitions, replace, &mut beaten)? {
                return Ok(redefined);
            }
        }
    }

    /// Prepares definitions and lets them come into force. Nothing if they have to be prepared again. `beaten` are the weak ones that give
    /// way to what is there: they are functions of others for the rest of the program.
    fn try_put(
        &self,
        definitions: &mut Definitions<'_>,
        replace: bool,
        beaten: &mut BTreeSet<Symbol>,
    ) -> Result<Option<Redefined>, SessionError> {
        let Definitions { module, tracker, is_weak, is_inlinable, is_whole, starts, .. } = definitions;
        let (is_weak, is_inlinable, is_whole, starts) = (*is_weak, *is_inlinable, *is_whole, *starts);
        let mut own: Vec<FuncId> = module.funcs().map(|(id, _)| id).take(definitions.own).collect();
        // Functions are compiled apart from others that may assign what they read, or give C what it calls back.
        module.note_facts();
        check_names(module, &own)?;
        let mut new = Batch::new(self, replace, *tracker);
        let initializers = symbols_of(module, &own, &definitions.initializers)?;
        new.finalizers = symbols_of(module, &own, &definitions.finalizers)?;
        let mut left = None;
        if is_weak && !replace {
            let symbol = |id| new.names.intern(&module[id].symbol(&module.cx));
            new.weak = own.iter().map(|&id| symbol(id)).collect();
            let gone: BTreeSet<FuncId> =
                own.iter().copied().filter(|&id| beaten.contains(&symbol(id))).collect();
            own.retain(|id| !gone.contains(id));
            left = (!gone.is_empty()).then(|| without_bodies(module, &gone));
        }
        let module = left.as_mut().unwrap_or(module);
        let hits = new.hits(module, &own);
        let retyped = new.retyped(module, &own);
        new.basis.imports.extend(definitions.imported.as_ref().map(|(_, imported)| imported.clone()));
        let lazy = self.lazy_among(module, &own, definitions.is_lazy, replace);
        // Others inline the body as it was written.
        if self.is_shared(module) {
            new.offers.offer(module, &own, is_inlinable);
        } else {
            new.offers.offer_names(module, &own, self.session.context());
        }
        let weak = if is_weak { SymbolFlags::WEAK } else { SymbolFlags::NONE };
        let flags = FUNCTION | SymbolFlags::CALLABLE | weak;
        let types: BTreeMap<FuncId, Arc<FunctionType>> =
            own.iter().filter_map(|&id| Some((id, lazy::type_of(module, id)?.into()))).collect();
        let shared = &self.session.inner.shared;
        let behind_cells = types.keys().map(|&id| module[id].symbol(&module.cx)).collect();
        let whole = Whole::new(shared, module, definitions.kept.clone(), lazy.is_empty(), behind_cells)?;
        let whole = Arc::new(whole);
        let tiers = definitions.tiers.filter(|_| lazy.len() == own.len());
        let mut symbols: BTreeMap<FuncId, (Symbol, SymbolFlags)> = BTreeMap::new();
        let mut hot_symbols: BTreeMap<FuncId, (Symbol, SymbolFlags)> = BTreeMap::new();
        let pins: BTreeMap<FuncId, Pin> = own.iter().map(|&id| (id, Pin::default())).collect();
        new.is_replaceable = definitions.is_replaceable;
        for &id in &own {
            let name: Arc<str> = module[id].symbol(&module.cx).into();
            let defined = match types.get(&id) {
                Some(ty) => {
                    let alone = definitions.is_replaceable;
                    let pin = &pins[&id];
                    let calls = definitions.interpreted;
                    let found = || InterpretedBody::new(module, &own, id, alone, calls, pin);
                    let hot = tiers.map(|calls| self.hot(&new.names, &name, calls, found()));
                    let hot_body = hot.as_ref().map(|hot| hot.body);
                    let is_eager = !lazy.contains(&id);
                    let (body, flags) = new.stub(&name, flags, ty.clone(), hot, pin, is_eager);
                    hot_symbols.extend(hot_body.map(|body| (id, (body, flags))));
                    (body, flags)
                }
                None => (new.names.intern(&name), flags),
            };
            symbols.insert(id, defined);
            new.add_method(module, id);
        }
        let counts = tiers.is_some() && definitions.is_profiled;
        let profile = counts.then(|| Profile::number(shared, module)).flatten();
        let mut stages = vec![(Stage::Only, &symbols)];
        let rounds = definitions.rounds;
        let rounds = |calls: i32| rounds.unwrap_or_else(|| calls.unsigned_abs().saturating_mul(ROUNDS));
        let counting = tiers.map(|calls| (calls, rounds(calls)));
        if let Some((_, rounds)) = counting {
            stages = vec![(Stage::First { rounds }, &symbols), (Stage::Second, &hot_symbols)];
        }
        for (stage, symbols) in stages {
            let mut add = |loaded: &Arc<Loaded>, ids: Vec<FuncId>, sources: &[FuncId]| {
                if stage != Stage::Second {
                    ids.iter().zip(sources).for_each(|(&id, source)| pins[source].put(loaded, id));
                }
                let symbols: Vec<_> = sources.iter().filter_map(|id| symbols.get(id).copied()).collect();
                if !symbols.is_empty() {
                    let (shared, loaded) = (shared.clone(), loaded.clone());
                    new.add(Box::new(Functions { shared, loaded, ids, symbols }));
                }
            };
            if definitions.is_replaceable {
                for &id in &own {
                    let Some((part, only)) = part(module, definitions.own, id) else { continue };
                    let loaded = Loaded::new(shared, part, &[only], whole.clone(), stage, profile.clone());
                    let loaded = Arc::new(loaded.with_types(types.get(&id)));
                    add(&loaded, vec![only], &[id]);
                }
            } else {
                let loaded = Loaded::new(shared, module.clone(), &own, whole.clone(), stage, profile.clone());
                let loaded = Arc::new(loaded.with_types(types.values()));
                for ids in if is_whole { vec![own.clone()] } else { loaded.units() } {
                    let sources = ids.clone();
                    add(&loaded, ids, &sources);
                }
            }
        }
        for function in initializers {
            let symbol = new.names.intern(&format!("{function}{INITIALIZER}"));
            let needs = self.session.linking().symbol(&function);
            new.add(Box::new(Marker { symbol, needs }));
        }
        let mut program = None;
        for &id in &own {
            let label = self.linking.label(new.names.intern(&module[id].symbol(&module.cx)));
            let kind = match counting {
                Some((calls, rounds)) => Kind::Tiered { calls, rounds },
                None if lazy.contains(&id) => Kind::Lazy,
                None => Kind::Eager,
            };
            let is_shared = self.is_shared(module);
            if !types.contains_key(&id) {
                new.notes.add_nothing(label);
            } else if !definitions.is_replaceable {
                new.notes.add(label, is_shared, (module, id), &whole, kind, &mut program);
            } else if let Some((part, only)) = part(module, definitions.own, id) {
                // A function that knows others by their types alone has inlined no body of another program.
                new.notes.add(label, is_shared, (&part, only), &whole, kind, &mut None);
            } else {
                new.notes.add_nothing(label);
            }
        }
        // Those of eager functions as well, which are ready then.
        let own: Vec<Symbol> =
            own.iter().map(|&id| new.names.intern(&module[id].symbol(&module.cx))).collect();
        let bodies = symbols.into_values().map(|(symbol, _)| symbol);
        let starts = starts.map(|priority| (priority, own.into_iter().chain(bodies).collect()));
        self.bring_into_force(new, hits, (starts, retyped), beaten)
    }

    /// Lets a batch come into force, with what it changes for others: `hits`, and functions that give another type. Then looks up what is to be started.
    /// Nothing if it has to be prepared again.
    fn bring_into_force(
        &self,
        mut new: Batch<'_>,
        hits: Vec<Hit>,
        (starts, retyped): (Option<(Priority, Vec<Symbol>)>, Vec<Retyped>),
        beaten: &mut BTreeSet<Symbol>,
    ) -> Result<Option<Redefined>, SessionError> {
        let mut redefined = Redefined { retyped, ..Redefined::default() };
        let is_here = |hit: &Hit| new.replaces() && hit.label.dylib == self.linking.id();
        let (here, elsewhere): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(is_here);
        if !here.is_empty() {
            let seen = new.basis.seen;
            new.make_anew(here, seen, &mut redefined.kept)?;
        }
        if new.define(beaten)?.is_none() {
            return Ok(None);
        }
        if let Some((priority, symbols)) = starts {
            let (linking, order) = (self.session.linking(), vec![self.linking.all()]);
            linking.lookup_then(order, linking::weak(symbols), Until::Ready, priority, |_| {});
        }
        self.make_anew_elsewhere(elsewhere, &mut redefined);
        Ok(Some(redefined))
    }

    /// Recompiles functions of other dylibs that have inlined what this one has defined.
    fn make_anew_elsewhere(&self, hits: Vec<Hit>, redefined: &mut Redefined) {
        let mut by_dylib: BTreeMap<linking::DylibId, Vec<Hit>> = BTreeMap::new();
        for hit in hits {
            by_dylib.entry(hit.label.dylib).or_default().push(hit);
        }
        for (id, mut hits) in by_dylib {
            let linking = lock(&self.session.inner.homes).get(&id).map(|home| home.linking.clone());
            // One that is not listed was found to be closed.
            let Some(linking) = linking else {
                self.session.inner.inlined.forget_all(id, u64::MAX);
                continue;
            };
            let dylib = Dylib::new(self.session.clone(), linking);
            let mut kept = Vec::new();
            match dylib.make_anew(&hits, &mut kept) {
                Ok(()) => {}
                // Nobody calls what is in there any more.
                Err(SessionError::Link(linking::Error::DylibClosed { .. })) => self.session.forget_dylib(id),
                // The definitions are in force. Callers that have inlined the former bodies are not called again as they are.
                Err(_) => {
                    hits.retain(|hit| !kept.contains(&self.session.linking().name(hit.label)));
                    later::put_off(&dylib, hits, redefined);
                }
            }
            redefined.kept.extend(kept);
        }
    }

    /// Recompiles functions of this dylib, unless somebody has done so or defined them. Names those that do not fit any more.
    pub(super) fn make_anew(&self, hits: &[Hit], kept: &mut Vec<linking::Name>) -> Result<(), SessionError> {
        loop {
            kept.clear();
            let (hits, seen) = self.session.inner.inlined.still(hits);
            if hits.is_empty() {
                return Ok(());
            }
            let mut new = Batch::new(self, true, None);
            (new.basis.hits, new.basis.seen) = (hits.iter().map(Hit::noted).collect(), seen);
            new.make_anew(hits, seen, kept)?;
            if new.define(&mut BTreeSet::new())?.is_some() {
                return Ok(());
            }
        }
    }

    /// The tiers of a function beside the first.
    pub(super) fn hot(
        &self,
        names: &SymbolScope,
        name: &str,
        calls: i32,
        interpreted: Option<InterpretedBody>,
    ) -> Hot {
        Hot { body: names.intern(&format!("{name}{HOT}")), calls, interpreted }
    }

    /// Those of the functions `own` that are lazy: those that are there stay as they are.
    fn lazy_among(&self, module: &Module, own: &[FuncId], asked: bool, replace: bool) -> BTreeSet<FuncId> {
        let scope = lock(&self.session.inner.homes).get(&self.linking.id()).map(|home| home.scope.clone());
        let scope = scope.filter(|_| replace);
        let is_lazy = |id: &FuncId| {
            let symbol = module[*id].symbol(&module.cx);
            scope.as_ref().filter(|scope| scope.knows(&symbol)).map_or(asked, |scope| scope.is_lazy(&symbol))
        };
        own.iter().copied().filter(is_lazy).collect()
    }

    /// Promises functions, which `make` makes when one of them is called or compiled first. They are [lazy](Definitions::lazy).
    /// `tracker` removes them.
    ///
    /// # Errors
    /// As [`Dylib::define`]; a type has no native form.
    pub fn promise(
        &self,
        signatures: &[Signature],
        tracker: Option<&linking::Tracker<Native>>,
        make: impl FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<(), SessionError> {
        self.put_promise(signatures, tracker, Box::new(make), false).map(drop)
    }

    /// Promises functions in the place of those that have their names; as [`Dylib::redefine`].
    ///
    /// # Errors
    /// As [`Dylib::redefine`].
    pub fn promise_again(
        &self,
        signatures: &[Signature],
        tracker: Option<&linking::Tracker<Native>>,
        make: impl FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<Redefined, SessionError> {
        self.put_promise(signatures, tracker, Box::new(make), true)
    }

    fn put_promise(
        &self,
        signatures: &[Signature],
        tracker: Option<&linking::Tracker<Native>>,
        make: MakeModule,
        replace: bool,
    ) -> Result<Redefined, SessionError> {
        let cx = &self.session.context().view();
        let mut declared = Module::new(cx.clone());
        let mut own = Vec::new();
        for signature in signatures {
            // Two of one name and types are one promise.
            own.extend(declared.add_func(signature.declare(cx)).ok());
        }
        // The promise belongs to the session, and does not keep it.
        let dylib = self.downgrade();
        let make: Make = Box::new(move || {
            let dylib = dylib.upgrade()?;
            let module = make(&dylib).map_err(|error| SessionError::Promise(Arc::from(error)))?;
            dylib.build(module)
        });
        // It may have to be promised more than once until it is in force.
        let make = Arc::new(Mutex::new(Some(make)));
        loop {
            let mut new = Batch::new(self, replace, tracker);
            let hits = new.hits(&declared, &own);
            let retyped = new.retyped(&declared, &own);
            let lazy = self.lazy_among(&declared, &own, true, replace);
            new.offers.offer(&declared, &own, false);
            let flags = FUNCTION | SymbolFlags::CALLABLE;
            let mut symbols = Vec::with_capacity(own.len());
            for &id in &own {
                let name: Arc<str> = declared[id].symbol(&declared.cx).into();
                new.notes.add_nothing(self.linking.label(new.names.intern(&name)));
                let is_eager = !lazy.contains(&id);
                symbols.push(match lazy::type_of(&declared, id) {
                    Some(ty) => new.stub(&name, flags, ty.into(), None, &Pin::default(), is_eager),
                    None => (new.names.intern(&name), flags),
                });
                new.add_method(&declared, id);
            }
            let promised = own.iter().map(|&id| declared[id].symbol(&declared.cx)).collect();
            let (shared, make) = (self.session.inner.shared.clone(), make.clone());
            new.add(Box::new(Promise { shared, symbols, make, promised }));
            if let Some(redefined) =
                self.bring_into_force(new, hits, (None, retyped), &mut BTreeSet::new())?
            {
                return Ok(redefined);
            }
        }
    }

    /// Defines a function of the host: a closure that takes the function object and the arguments as objects, and gives an object of
    /// the result's type, or an exception. Programs call it as any other function.
    ///
    /// # Errors
    /// As [`Dylib::define`]; a type has no objects.
    pub fn define_host(
        &self,
        signature: &Signature,
        body: impl for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), SessionError> {
        let cx = &self.session.context().view();
        let built = host::module(cx, signature).map_err(|error| SessionError::Promise(Arc::new(error)))?;
        let mut definitions = self.build(built)?;
        let method = host::add_method(self.session.runtime(), cx, signature, MethodEntry::host(body));
        let method =
            method.map_err(|error| SessionError::Host { reason: error.display(&cx.types).to_string() })?;
        definitions.kept = Some(Arc::new(method));
        self.define(definitions)
    }
}

/// Refuses functions whose symbols are those of bodies and initialisers. Low functions alone can have such: those of high ones end with
/// their types.
fn check_names(module: &Module, own: &[FuncId]) -> Result<(), SessionError> {
    let is_inner = |name: &String| [BODY, HOT, INITIALIZER].iter().any(|kind| name.ends_with(kind));
    match own.iter().map(|&id| module[id].symbol(&module.cx)).find(is_inner) {
        Some(name) => Err(SessionError::Reserved { name }),
        None => Ok(()),
    }
}

/// The symbols of functions that are called by bare names or symbols.
fn symbols_of(module: &Module, own: &[FuncId], names: &[String]) -> Result<Vec<String>, SessionError> {
    let find = |name: &String| {
        let called = |&&id: &&FuncId| {
            module[id].symbol(&module.cx) == *name || module[id].spelled_name(&module.cx) == *name
        };
        let found: BTreeSet<String> =
            own.iter().filter(called).map(|&id| module[id].symbol(&module.cx)).collect();
        match found.len() {
            1 => Ok(found.into_iter().next().unwrap_or_default()),
            0 => Err(SessionError::NotFunction { name: name.clone() }),
            _ => Err(SessionError::Ambiguous { name: name.clone(), methods: found.into_iter().collect() }),
        }
    };
    names.iter().map(find).collect()
}
