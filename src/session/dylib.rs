//! Dylibs: where programs are defined, and functions looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::{Archive, SlotOwner};
use brolga_runtime::heap::{Root, Scope};
use brolga_runtime::objects::{MethodEntry, Raised};
use brolga_session::{
    Dependants, Generator, Link, LookupKind, MaterializationUnit, Need, OnDrop, Priority, Responsibility,
    Symbol, SymbolFlags, Until, Want, absolute, required,
};

use super::batch::Batch;
use super::cold::ColdBody;
use super::definitions::Definitions;
use super::error::SessionError;
use super::function::{Function, Request, answer};
use super::inlined::{Hit, Imported};
use super::later::{self, Redefined};
use super::lazy::{self, BODY, HOT, Hot};
use super::libraries::{Library, Members};
use super::plan::lock;
use super::profile::Profile;
use super::promise::{Make, Promise, Signature};
use super::scope::{import, part};
use super::target::Native;
use super::unit::{Functions, Loaded, Stage, Whole};
use super::{Inner, Session};
use super::{host, linking};
use crate::program::{check_built, check_read, read_unit_in};
use crate::{Params, TypedFunc, Value};

/// What stands behind the symbol of a function in the symbol of its run at opening.
const INITIALIZER: &str = "#init";

/// How many rounds of a loop count as much as a call, if nobody says.
const ROUNDS: u32 = 10;

const FUNCTION: SymbolFlags = SymbolFlags::EXPORTED;

/// A handle to a dylib of a session. It does not keep the dylib open.
#[derive(Clone)]
pub struct Dylib {
    pub(super) session: Session,
    pub(super) linking: linking::Dylib<Native>,
}

/// A handle that does not keep the session: for what the session itself keeps.
#[derive(Clone)]
pub struct WeakDylib {
    inner: Weak<Inner>,
    linking: Arc<linking::WeakDylib<Native>>,
}

impl WeakDylib {
    /// The dylib.
    ///
    /// # Errors
    /// Nobody has the session any more: [`linking::Error::SessionEnded`].
    pub fn upgrade(&self) -> Result<Dylib, SessionError> {
        let inner = self.inner.upgrade().ok_or(linking::Error::SessionEnded)?;
        Ok(Dylib { session: Session { inner }, linking: self.linking.upgrade()? })
    }
}

impl Dylib {
    /// A handle that does not keep the session.
    #[must_use]
    pub fn downgrade(&self) -> WeakDylib {
        let linking = Arc::new(self.linking.downgrade());
        WeakDylib { inner: Arc::downgrade(&self.session.inner), linking }
    }

    pub(crate) fn new(session: Session, linking: linking::Dylib<Native>) -> Dylib {
        Dylib { session, linking }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.linking.name()
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The dylib of the linking model below.
    pub fn linking(&self) -> &linking::Dylib<Native> {
        &self.linking
    }

    /// Sees, from now on, what `other` exports, after what it sees already.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn link_against(&self, other: &Dylib) -> Result<(), SessionError> {
        Ok(self.linking.add_links(vec![other.linking.exported()])?)
    }

    /// Reads a program in the text form; functions that it calls and does not define are those that the dylib sees.
    ///
    /// # Errors
    /// It is broken, or calls what is not there.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Definitions<'static>, SessionError> {
        let (source, unit) = read_unit_in(name, bytes, self.session.context())?;
        let made = self.import(unit.module)?;
        check_read(&source, &made.module, made.own)?;
        Ok(made)
    }

    /// Takes a module that was built; functions that it calls and does not define are those that the dylib sees, if it was built in
    /// the session's context.
    ///
    /// # Errors
    /// It is broken, or calls what is not there.
    pub fn build(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        let made = self.import(module)?;
        check_built(&made.module, made.own)?;
        Ok(made)
    }

    /// Imports what the module lacks.
    pub(super) fn import(&self, mut module: Module) -> Result<Definitions<'static>, SessionError> {
        let own = module.func_count();
        if !self.is_shared(&module) {
            return Ok(Definitions::new(module, own));
        }
        let seen = self.session.inner.inlined.number();
        let links = self.linking.links()?;
        let (lazy_imports, looked_for) = import(&mut module, &self.session.scopes(&links), &|symbol| {
            self.is_known(self.session.linking().intern(symbol), &links)
        })?;
        let imported = Some((self.clone(), Imported { looked_for, seen }));
        Ok(Definitions { lazy_imports, imported, ..Definitions::new(module, own) })
    }

    /// Whether a module is of the session's context, so that its functions can be declared to others.
    fn is_shared(&self, module: &Module) -> bool {
        Arc::ptr_eq(&module.cx, self.session.context())
    }

    /// Defines the functions of a program, all or none.
    ///
    /// # Errors
    /// Some are defined already; the dylib is closed; the session has ended.
    pub fn define<'t>(&self, definitions: impl Into<Definitions<'t>>) -> Result<(), SessionError> {
        self.put(definitions.into(), false).map(drop)
    }

    /// Defines functions in the place of those that have their names: whoever looks from now on gets the new ones. Code that
    /// was linked to the old ones keeps them. The result says what became of lazy functions that have taken an old one in.
    ///
    /// # Errors
    /// As [`Dylib::define`]; some of the old ones are being compiled; the thread is inside a scope and would have to wait. Nothing has
    /// changed then.
    pub fn redefine<'t>(&self, definitions: impl Into<Definitions<'t>>) -> Result<Redefined, SessionError> {
        self.put(definitions.into(), true)
    }

    fn put(&self, mut definitions: Definitions<'_>, replace: bool) -> Result<Redefined, SessionError> {
        loop {
            definitions.import_anew()?;
            if let Some(redefined) = self.try_put(&mut definitions, replace)? {
                return Ok(redefined);
            }
        }
    }

    /// Prepares definitions and lets them come into force. Nothing if they have to be prepared again.
    fn try_put(
        &self,
        definitions: &mut Definitions<'_>,
        replace: bool,
    ) -> Result<Option<Redefined>, SessionError> {
        let Definitions { module, tracker, is_weak, is_inlinable, is_whole, starts, .. } = definitions;
        let (is_weak, is_inlinable, is_whole, starts) = (*is_weak, *is_inlinable, *is_whole, *starts);
        let own: Vec<FuncId> = module.funcs().map(|(id, _)| id).take(definitions.own).collect();
        let mut new = Batch::new(self, replace, *tracker);
        let hits = new.hits(module, &own);
        new.basis.imports.extend(definitions.imported.as_ref().map(|(_, imported)| imported.clone()));
        let initializers = symbols_of(module, &own, &definitions.initializers)?;
        new.finalizers = symbols_of(module, &own, &definitions.finalizers)?;
        let is_lazy = self.may_be_lazy(module, &own, definitions.is_lazy, replace)?;
        // What others inline is what was written.
        if self.is_shared(module) {
            new.offers.offer(module, &own, is_inlinable);
        } else {
            new.offers.offer_names(module, &own);
        }
        let weak = if is_weak { SymbolFlags::WEAK } else { SymbolFlags::NONE };
        let flags = FUNCTION | SymbolFlags::CALLABLE | weak;
        let types: BTreeMap<FuncId, FunctionType> = match is_lazy {
            true => own.iter().filter_map(|&id| Some((id, lazy::type_of(module, id)?))).collect(),
            false => BTreeMap::new(),
        };
        let shared = &self.session.inner.shared;
        let (kept, imports) = (definitions.kept.clone(), definitions.lazy_imports.clone());
        let mut whole = Whole::new(shared, module, &own, kept, is_lazy, imports)?;
        let bare = |id: &FuncId| module.cx.names.text(module.func(*id).name);
        whole.is_looked_for = own.iter().any(|id| self.session.inner.inlined.is_looked_for(bare(id)));
        let whole = Arc::new(whole);
        let tiers = definitions.tiers.filter(|_| is_lazy);
        let mut symbols: BTreeMap<FuncId, (Symbol, SymbolFlags)> = BTreeMap::new();
        let mut hot_symbols: BTreeMap<FuncId, (Symbol, SymbolFlags)> = BTreeMap::new();
        let mut cold: BTreeMap<FuncId, ColdBody> = BTreeMap::new();
        for &id in &own {
            let name: Arc<str> = module.symbol(id).into();
            let defined = match types.get(&id) {
                Some(ty) => {
                    let alone = definitions.is_replaceable;
                    let found = || ColdBody::new(module, &own, id, alone, definitions.interpreted);
                    let hot = tiers.map(|calls| self.hot(&name, calls, found()));
                    let hot_body = hot.as_ref().map(|hot| hot.body);
                    cold.extend(hot.as_ref().and_then(|hot| Some((id, hot.cold.clone()?))));
                    let (body, flags) = new.stub(&name, flags, ty.clone(), hot);
                    hot_symbols.extend(hot_body.map(|body| (id, (body, flags))));
                    (body, flags)
                }
                None => (self.session.linking().intern(&name), flags),
            };
            symbols.insert(id, defined);
        }
        let counts = tiers.is_some() && definitions.is_profiled;
        let profile = counts.then(|| Profile::number(shared, module)).flatten();
        let mut stages = vec![(Stage::Only, &symbols)];
        let rounds = definitions.rounds;
        let rounds = |calls: i32| rounds.unwrap_or_else(|| calls.unsigned_abs().saturating_mul(ROUNDS));
        let counting = tiers.map(|calls| (calls, rounds(calls)));
        if let Some((_, rounds)) = counting {
            shared.expect_hot();
            stages = vec![(Stage::First { rounds }, &symbols), (Stage::Second, &hot_symbols)];
        }
        for (stage, symbols) in stages {
            let mut add = |loaded: &Arc<Loaded>, ids: Vec<FuncId>, sources: &[FuncId]| {
                if let Stage::First { .. } = stage {
                    let bodies = ids.iter().zip(sources);
                    bodies.for_each(|(&id, source)| {
                        cold.get(source).into_iter().for_each(|c| c.put(loaded, id))
                    });
                }
                let symbols: Vec<_> = sources.iter().filter_map(|id| symbols.get(id).copied()).collect();
                if !symbols.is_empty() {
                    let (shared, loaded) = (shared.clone(), loaded.clone());
                    new.add(Box::new(Functions { shared, loaded, ids, symbols }));
                }
            };
            if is_lazy && definitions.is_replaceable {
                for &id in &own {
                    let Some((part, only)) = part(module, own.len(), id) else { continue };
                    let loaded =
                        Arc::new(Loaded::new(shared, part, &[only], whole.clone(), stage, profile.clone()));
                    add(&loaded, vec![only], &[id]);
                }
            } else {
                let (module, profile) = (module.clone(), profile.clone());
                let loaded = Arc::new(Loaded::new(shared, module, &own, whole.clone(), stage, profile));
                let is_whole = is_whole || whole.may_tangle();
                for ids in if is_whole { vec![own.clone()] } else { loaded.units() } {
                    let sources = ids.clone();
                    add(&loaded, ids, &sources);
                }
            }
        }
        for function in initializers {
            let symbol = self.session.linking().intern(&format!("{function}{INITIALIZER}"));
            let needs = self.session.linking().intern(&function);
            new.add(Box::new(Marker { symbol, needs }));
        }
        let mut program = None;
        for &id in &own {
            let label = self.linking.label(self.session.linking().intern(&module.symbol(id)));
            if !(types.contains_key(&id) && self.is_shared(module)) {
                new.notes.add_nothing(label);
            } else if !definitions.is_replaceable {
                new.notes.add(label, (module, id), &whole, counting, &mut program);
            } else if let Some((part, only)) = part(module, own.len(), id) {
                // What knows of others by their types alone has taken in what other programs let it.
                new.notes.add(label, (&part, only), &whole, counting, &mut None);
            } else {
                new.notes.add_nothing(label);
            }
        }
        let starts =
            starts.map(|priority| (priority, symbols.into_values().map(|(symbol, _)| symbol).collect()));
        self.bring_into_force(new, hits, starts)
    }

    /// Lets a batch come into force, with what it changes for others: `hits`. Nothing if it has to be prepared again.
    fn bring_into_force(
        &self,
        mut new: Batch<'_>,
        hits: Vec<Hit>,
        starts: Option<(Priority, Vec<Symbol>)>,
    ) -> Result<Option<Redefined>, SessionError> {
        let mut redefined = Redefined::default();
        let is_here = |hit: &Hit| new.replaces() && hit.label.dylib == self.linking.id();
        let (here, elsewhere): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(is_here);
        if !here.is_empty() {
            let seen = new.basis.seen;
            new.make_anew(here, seen, &mut redefined.kept)?;
        }
        let Some(number) = new.define()? else { return Ok(None) };
        if let Some((priority, symbols)) = starts {
            let (linking, order) = (self.session.linking(), vec![self.linking.all()]);
            linking.lookup_then(order, linking::weak(symbols), Until::Ready, priority, |_| {});
        }
        self.make_anew_elsewhere(elsewhere, number, &mut redefined);
        Ok(Some(redefined))
    }

    /// Makes functions anew that have taken in what this dylib has defined under this number.
    fn make_anew_elsewhere(&self, hits: Vec<Hit>, number: u64, redefined: &mut Redefined) {
        let mut by_dylib: BTreeMap<linking::DylibId, Vec<Hit>> = BTreeMap::new();
        for hit in hits {
            by_dylib.entry(hit.label.dylib).or_default().push(hit);
        }
        for (id, mut hits) in by_dylib {
            let Some(linking) = lock(&self.session.inner.homes).get(&id).map(|home| home.linking.clone())
            else {
                continue;
            };
            let dylib = Dylib::new(self.session.clone(), linking);
            let mut kept = Vec::new();
            match dylib.make_anew(&hits, &mut kept) {
                // Nobody calls what is in there any more.
                Ok(()) | Err(SessionError::Link(linking::Error::DylibClosed { .. })) => {}
                // What was defined is in force. Those who have taken in what was there before are not called again as they are.
                Err(_) => {
                    hits.retain(|hit| !kept.contains(&self.session.linking().name(hit.label)));
                    later::put_off(&dylib, hits, number, redefined);
                }
            }
            redefined.kept.extend(kept);
        }
    }

    /// Makes functions of this dylib anew, unless somebody has done so or defined them. Names those that do not fit any more.
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
            if new.define()?.is_some() {
                return Ok(());
            }
        }
    }

    /// The tiers of a function beside the first.
    pub(super) fn hot(&self, name: &str, calls: i32, cold: Option<ColdBody>) -> Hot {
        Hot { body: self.session.linking().intern(&format!("{name}{HOT}")), calls, cold }
    }

    /// Whether functions are to lie behind slots: those that are there stay as they are.
    fn may_be_lazy(
        &self,
        module: &Module,
        own: &[FuncId],
        asked: bool,
        replace: bool,
    ) -> Result<bool, SessionError> {
        let homes = lock(&self.session.inner.homes);
        let Some(scope) = homes.get(&self.linking.id()).filter(|_| replace).map(|home| &home.scope) else {
            return Ok(asked);
        };
        let known: Vec<String> =
            own.iter().map(|&id| module.symbol(id)).filter(|symbol| scope.knows(symbol)).collect();
        match known.iter().filter(|symbol| scope.is_lazy(symbol)).count() {
            0 if known.is_empty() => Ok(asked),
            0 => Ok(false),
            lazy if lazy == known.len() => Ok(true),
            _ => Err(SessionError::Mixed { functions: known }),
        }
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
        let cx = self.session.context();
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
            let is_lazy = self.may_be_lazy(&declared, &own, true, replace)?;
            new.offers.offer(&declared, &own, false);
            let flags = FUNCTION | SymbolFlags::CALLABLE;
            let mut symbols = Vec::with_capacity(own.len());
            for &id in &own {
                let name: Arc<str> = declared.symbol(id).into();
                new.notes.add_nothing(self.linking.label(self.session.linking().intern(&name)));
                symbols.push(match lazy::type_of(&declared, id).filter(|_| is_lazy) {
                    Some(ty) => new.stub(&name, flags, ty, None),
                    None => (self.session.linking().intern(&name), flags),
                });
            }
            let promised = own.iter().map(|&id| declared.symbol(id)).filter(|_| is_lazy).collect();
            let (shared, make) = (self.session.inner.shared.clone(), make.clone());
            new.add(Box::new(Promise { shared, symbols, make, promised }));
            if let Some(redefined) = self.bring_into_force(new, hits, None)? {
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
        let cx = self.session.context();
        let built = host::module(cx, signature).map_err(|error| SessionError::Promise(Arc::new(error)))?;
        let mut definitions = self.build(built)?;
        let method = host::add_method(self.session.runtime(), cx, signature, MethodEntry::host(body));
        let method =
            method.map_err(|error| SessionError::Host { reason: error.display(&cx.types).to_string() })?;
        definitions.kept = Some(Arc::new(method));
        self.define(definitions)
    }

    /// A function by its bare name, if only one method has it, or by its symbol (`fib(Int64)`), in what the dylib sees: waits until
    /// it can be called, and compiles meanwhile.
    ///
    /// # Errors
    /// There is none, or several; it or something that it needs failed.
    pub fn function(&self, name: &str) -> Result<Function, SessionError> {
        let symbol = self.symbol(name)?;
        match self.ready(symbol) {
            Some(function) => Ok(function),
            None => self.ask(name, symbol).wait(),
        }
    }

    /// As [`Dylib::function`], to be called with Rust values of these types.
    ///
    /// # Errors
    /// Also when the function has other types.
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, SessionError> {
        Ok(self.function(name)?.typed()?)
    }

    /// Asks for a function, without waiting for it.
    pub fn request(&self, name: &str) -> Request {
        match self.symbol(name).map(|symbol| (symbol, self.ready(symbol))) {
            Err(error) => Request::known(name, &self.session, Err(error)),
            Ok((_, Some(function))) => Request::known(name, &self.session, Ok(function)),
            Ok((symbol, None)) => self.ask(name, symbol),
        }
    }

    fn ask(&self, name: &str, symbol: Symbol) -> Request {
        Request::asked(name, &self.session, self.linking.lookup([symbol]))
    }

    /// A function that is ready and still where it was found. Takes no lock of the session.
    fn ready(&self, symbol: Symbol) -> Option<Function> {
        let ready = || self.linking.ready(symbol);
        self.session.inner.shared.placed.find(ready()?, ready).ok()?.map(Function::new)
    }

    /// The symbol that a name stands for.
    fn symbol(&self, name: &str) -> Result<Symbol, SessionError> {
        let linking = self.session.linking();
        if let Some(symbol) = linking.names().find(name)
            && self.linking.ready(symbol).is_some()
        {
            return Ok(symbol);
        }
        let links = self.linking.links()?;
        for scope in self.session.scopes(&links) {
            let mut methods = scope.symbols(name);
            if methods.len() > 1 {
                let there = methods.iter().map(|method| self.is_known(linking.intern(method), &links));
                let there = there.collect::<Result<Vec<bool>, _>>()?;
                methods =
                    methods.into_iter().zip(there).filter_map(|(m, there)| there.then_some(m)).collect();
            }
            match methods.as_slice() {
                [] => {}
                [only] => return Ok(linking.intern(only)),
                several => {
                    let methods = several.iter().map(ToString::to_string).collect();
                    return Err(SessionError::Ambiguous { name: name.to_owned(), methods });
                }
            }
        }
        Ok(linking.intern(name))
    }

    /// Whether a symbol is defined. Starts nothing.
    pub(super) fn is_known(&self, symbol: Symbol, links: &[Link]) -> Result<bool, SessionError> {
        let want = Want { symbol, need: Need::Weak };
        let found = self.answer(self.session.linking().lookup(links.to_vec(), vec![want], Until::Known))?;
        Ok(found.is_ok_and(|found| !found.is_empty()))
    }

    /// Those of the symbols that are defined here. Starts nothing.
    pub(super) fn known(
        &self,
        symbols: impl Iterator<Item = Symbol>,
    ) -> Result<BTreeSet<Symbol>, SessionError> {
        let (order, wants) = (vec![self.linking.all()], linking::weak(symbols));
        let found = match wants.is_empty() {
            true => return Ok(BTreeSet::new()),
            false => self.answer(self.session.linking().lookup(order, wants, Until::Known))?,
        };
        Ok(found.into_iter().flatten().map(|definition| definition.label.symbol).collect())
    }

    /// The answer of a look-up, unless the thread would have to wait for it where it must not.
    fn answer(&self, lookup: linking::Lookup<Native>) -> Result<linking::Answer<Native>, SessionError> {
        answer(self.session.runtime(), lookup)
    }

    /// The owner of the slot that a symbol leads to. One that the name does not lead to any more is that of another function, whose callers
    /// keep it.
    pub(super) fn slot(&self, symbol: Symbol) -> Option<Arc<SlotOwner>> {
        let owner = self.session.inner.shared.slots.owner(self.linking.label(symbol))?;
        (self.linking.ready(symbol) == Some(owner.identity())).then_some(owner)
    }

    /// A tracker: definitions that it tracks are removed together.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn create_tracker(&self, on_drop: OnDrop) -> Result<linking::Tracker<Native>, SessionError> {
        Ok(self.linking.create_tracker(on_drop)?)
    }

    /// Takes names out, all or none. Code goes when its last name is gone and nothing uses it.
    ///
    /// # Errors
    /// Some are missing, or being compiled.
    pub fn remove(&self, names: &[&str]) -> Result<(), SessionError> {
        let mut symbols = names.iter().map(|name| self.symbol(name)).collect::<Result<Vec<_>, _>>()?;
        // What lies behind a slot goes with it.
        let linking = self.session.linking();
        let here = [self.linking.all()];
        for at in 0..symbols.len() {
            let text = linking.names().text(symbols[at]);
            let hidden = [BODY, HOT].map(|kind| linking.names().find(&format!("{text}{kind}")));
            for symbol in hidden.into_iter().flatten() {
                symbols.extend(self.is_known(symbol, &here)?.then_some(symbol));
            }
        }
        let seen = self.session.inner.inlined.number();
        // A second tier that is just being compiled is nothing that anybody has named.
        loop {
            match self.linking.remove(symbols.iter().copied()) {
                Err(linking::Error::Busy { symbols })
                    if symbols.iter().all(|name| name.symbol.ends_with(HOT)) =>
                {
                    self.outlast(&symbols)?;
                }
                done => break done?,
            }
        }
        // What has been defined since stays noted.
        let forget = |symbol| self.session.inner.inlined.forget(self.linking.label(symbol), seen);
        symbols.into_iter().for_each(forget);
        Ok(())
    }

    /// Waits until symbols are no longer being materialized, however that ends.
    pub(super) fn outlast(&self, busy: &[linking::Name]) -> Result<(), SessionError> {
        // One by one: that one fails says nothing of the others, and what nobody has asked for is not started.
        for name in busy {
            let wants = linking::weak([self.session.linking().intern(&name.symbol)]);
            let found = self.session.linking().lookup(vec![self.linking.all()], wants, Until::Ready);
            if let Err(error @ (linking::Error::Cycle { .. } | linking::Error::Stalled)) =
                self.answer(found)?
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Removes everything.
    ///
    /// # Errors
    /// The policy refuses.
    pub fn clear(&self, dependants: Dependants) -> Result<(), SessionError> {
        let seen = self.session.inner.inlined.number();
        self.linking.clear(dependants)?;
        self.session.inner.inlined.forget_all(self.linking.id(), seen);
        Ok(())
    }

    /// Gives a C symbol an address, for `foreigncall`s of programs that see this dylib.
    ///
    /// What lies there is called with the C signature that the calling program states: like `foreigncall` itself, this is a way
    /// out of what is checked.
    ///
    /// # Errors
    /// The name is defined already.
    pub fn define_c_symbol(&self, name: &str, address: *const ()) -> Result<(), SessionError> {
        let symbol = self.session.linking().intern(name);
        let flags = SymbolFlags::EXPORTED | SymbolFlags::CALLABLE;
        Ok(self.linking.define(absolute([(symbol, flags, address.expose_provenance())]))?)
    }

    /// Finds C symbols of the process, as far as the filter lets them through, when something in reach of this dylib asks.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_process_symbols(
        &self,
        filter: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<(), SessionError> {
        self.add_generator(Library { runtime: self.session.runtime().clone(), library: None, filter })
    }

    /// Finds C symbols of a shared library, by its path or name.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_library(&self, library: &str) -> Result<(), SessionError> {
        let (runtime, library) = (self.session.runtime().clone(), Some(library.to_owned()));
        self.add_generator(Library { runtime, library, filter: |_: &str| true })
    }

    /// Finds C symbols in members of a static archive, which are linked when code needs them. `name` is how messages call it.
    ///
    /// # Errors
    /// It is no archive; the dylib is closed.
    pub fn add_archive(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
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

    /// Opens the dylib, as `dlopen` does: initialisers of what it sees and its own run, those it depends on first, each once.
    ///
    /// # Errors
    /// One cannot be had, or throws: it and those after it are due again.
    pub fn open(&self) -> Result<(), SessionError> {
        self.linking.open(|name| self.initialize(name))?;
        self.prepare_finalizers()
    }

    /// Runs initialisers that came since the dylib was opened.
    ///
    /// # Errors
    /// As [`Dylib::open`].
    pub fn update(&self) -> Result<(), SessionError> {
        self.linking.update(|name| self.initialize(name))?;
        self.prepare_finalizers()
    }

    /// Takes one opening back, as `dlclose` does: finalisers of dylibs that nothing open sees any more run, those that depend
    /// on others first, the last one defined first. Says what they threw.
    ///
    /// # Errors
    /// The dylib is not open.
    pub fn close(&self) -> Result<Vec<SessionError>, SessionError> {
        let closed = self.linking.close()?;
        Ok(closed.into_iter().flat_map(|dylib| self.session.finalize(dylib)).collect())
    }

    fn initialize(&self, name: &linking::Name) -> Result<(), linking::Foreign> {
        let function = name.symbol.strip_suffix(INITIALIZER).unwrap_or(&name.symbol);
        let symbol = self.session.linking().intern(function);
        let reached = self.session.linking().reached(&[&self.linking]);
        let run = || {
            let home = reached?.into_iter().find(|&dylib| {
                let label = linking::Label { dylib, symbol };
                self.session.linking().name(label).dylib == name.dylib
            });
            let order = home.map(|dylib| Link { dylib, sees: linking::Sees::All }).into_iter().collect();
            let (until, kind) = (Until::Ready, LookupKind::Dynamic);
            let wants = required([symbol]);
            let lookup = self.session.linking().lookup_with(order, wants, until, kind, Priority::Blocking);
            self::run(&Request::asked(function, &self.session, lookup).wait()?)
        };
        run().map_err(|error: SessionError| Arc::new(error) as linking::Foreign)
    }

    /// Looks finalisers of open dylibs up, so that they can run when nothing can be looked up any more.
    fn prepare_finalizers(&self) -> Result<(), SessionError> {
        for dylib in self.session.linking().reached(&[&self.linking])? {
            let names = match lock(&self.session.inner.homes).get(&dylib) {
                Some(home) => home.finalizers.clone(),
                None => continue,
            };
            let order = vec![Link { dylib, sees: linking::Sees::All }];
            let mut due = Vec::with_capacity(names.len());
            for name in &names {
                let wants = required([self.session.linking().intern(name)]);
                let lookup = self.session.linking().lookup(order.clone(), wants, Until::Ready);
                due.push(Request::asked(name, &self.session, lookup).wait()?);
            }
            if let Some(home) = lock(&self.session.inner.homes).get_mut(&dylib) {
                home.due = due;
            }
        }
        Ok(())
    }
}

type MakeModule = Box<dyn FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send>;

impl std::fmt::Debug for Dylib {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dylib({})", self.name())
    }
}

/// Calls a function without arguments.
pub(crate) fn run(function: &Function) -> Result<(), SessionError> {
    let failed =
        |reason: String| SessionError::Initializer { function: function.symbol().to_owned(), reason };
    let untyped = function.untyped().map_err(|error| failed(error.to_string()))?;
    untyped.call(&[]).map_err(|error| failed(error.to_string()))?;
    Ok(())
}

/// The symbols of functions that are called by bare names or symbols.
fn symbols_of(module: &Module, own: &[FuncId], names: &[String]) -> Result<Vec<String>, SessionError> {
    let find = |name: &String| {
        let called =
            |&&id: &&FuncId| module.symbol(id) == *name || module.cx.names.text(module.func(id).name) == name;
        let found: BTreeSet<String> = own.iter().filter(called).map(|&id| module.symbol(id)).collect();
        match found.len() {
            1 => Ok(found.into_iter().next().unwrap_or_default()),
            0 => Err(SessionError::NotFunction { name: name.clone() }),
            _ => Err(SessionError::Ambiguous { name: name.clone(), methods: found.into_iter().collect() }),
        }
    };
    names.iter().map(find).collect()
}

/// Stands for the run of a function at opening.
struct Marker {
    symbol: Symbol,
    needs: Symbol,
}

impl MaterializationUnit<Native> for Marker {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        vec![(self.symbol, SymbolFlags::SIDE_EFFECTS_ONLY)]
    }

    fn initializer(&self) -> Option<Symbol> {
        Some(self.symbol)
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Ok(dylib) = responsibility.dylib() else { return };
        let needs = linking::Label { dylib, symbol: self.needs };
        if let Ok(resolved) = responsibility.resolve([]) {
            // A refusal has failed the unit, with its reason.
            let _ = resolved.emit([needs.into()]);
        }
    }
}
