//! Dylibs: what they see, what is looked up in them and taken out. `put` puts definitions in, `opening` runs what is to be run when one is
//! opened or closed, `libraries` finds C symbols.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use brolga_ir::{FunctionName, Module, Type};
use brolga_jit::CellOwner;
use brolga_linking::{Dependants, Link, Need, OnDrop, Symbol, SymbolFlags, SymbolRef, Until, Want};

use super::definitions::Definitions;
use super::error::SessionError;
use super::function::{Function, Request, answer};
use super::inlined::Imported;
use super::lazy::{BODY, HOT};
use super::linking;
use super::scope::{Seen, import};
use super::target::Native;
use super::{Inner, Session};
use crate::program::{Callees, check_built, check_read, no_doors_built, no_doors_read, read_unit_in};
use brolga_jit::{Params, Scoped, ScopedFunc, ScopedParams, TypedFunc, Value};

/// A handle to a dylib of a session. It does not keep the dylib open.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::{Options, Session, Workers};
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let (library, main) = (session.create_dylib("library")?, session.create_dylib("main")?);
/// library.define(library.read("half.jlir", HALF)?)?;
/// assert!(main.function("half").is_err(), "it does not see the library");
/// main.link_against(&library)?;
/// assert_eq!(main.func::<(i64,), i64>("half")?.call((8,))?, 4);
/// library.remove(&["half"])?;
/// assert!(main.methods()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Dylib {
    pub(super) session: Session,
    pub(super) linking: linking::Dylib<Native>,
}

/// A function as [`Dylib::methods`] lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Method {
    /// Its name without types: `fib`, `Base.max`.
    pub name: String,
    /// Its symbol: `fib(Int64)`.
    pub symbol: String,
    /// The type of its result; none for a low function, and for one whose types are those of another context.
    pub result: Option<String>,
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
    /// It is broken, or calls what is not there; it has doors, and they are closed.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Definitions<'static>, SessionError> {
        // Names that only the program holds go with it.
        let cx = &self.session.context().view();
        let scopes = self.session.scopes(&self.linking.links()?);
        let is_elsewhere = |module: &str, name: &str| {
            let (module, name) = (cx.names.intern(module), cx.names.intern(name));
            let function = cx.types.function_named(FunctionName { module, name });
            scopes.iter().any(|scope| scope.has(function))
        };
        let (source, unit) = read_unit_in(name, bytes, cx, &is_elsewhere)?;
        let made = self.import(unit.module)?;
        check_read(&source, &made.module, made.own, Callees::AtOnce)?;
        if !self.session.has_open_doors() {
            no_doors_read(&source, &made.module, made.own)?;
        }
        Ok(made)
    }

    /// Takes a module that was built; functions that it calls and does not define are those that the dylib sees, if it was built in
    /// the session's context.
    ///
    /// # Errors
    /// It is broken, or calls what is not there; it has doors, and they are closed.
    pub fn build(&self, module: Module) -> Result<Definitions<'static>, SessionError> {
        let made = self.import(module)?;
        check_built(&made.module, made.own, Callees::AtOnce)?;
        if !self.session.has_open_doors() {
            no_doors_built(&made.module, made.own)?;
        }
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
        let scopes: Vec<Seen<'_>> = self.session.scopes(&links).into_iter().map(Seen::now).collect();
        let looked_for = import(&mut module, &scopes, &|symbol| {
            self.is_known(self.session.linking().symbol(symbol).symbol(), &links)
        })?;
        let imported = Some((self.clone(), Imported { looked_for, seen }));
        Ok(Definitions { imported, ..Definitions::new(module, own) })
    }

    /// Whether a module is of the session's context or a view of it, so that its functions can be declared to others.
    pub(super) fn is_shared(&self, module: &Module) -> bool {
        module.cx.is_same(self.session.context())
    }

    /// A function by its bare name, if only one method has it, or by its symbol (`fib(Int64)`), in what the dylib sees: waits until
    /// it can be called, and compiles meanwhile.
    ///
    /// # Errors
    /// There is none, or several; it or something that it needs failed.
    pub fn function(&self, name: &str) -> Result<Function, SessionError> {
        // One whose name goes meanwhile is not found: its place gets another generation.
        if let Some(symbol) = self.session.linking().names().find(name)
            && let Some(function) = self.ready(symbol)
        {
            return Ok(function);
        }
        let symbol = self.symbol(name)?;
        match self.ready(symbol.symbol()) {
            Some(function) => Ok(function),
            None => self.ask(name, symbol.symbol()).wait(),
        }
    }

    /// As [`Dylib::function`], to be called with Rust values of these types.
    ///
    /// # Errors
    /// Also when the function has other types.
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, SessionError> {
        Ok(self.function(name)?.typed()?)
    }

    /// As [`Dylib::function`], to be called inside a scope with objects among its arguments and results.
    ///
    /// # Errors
    /// Also when the function has other types.
    pub fn func_in<A: ScopedParams, R: Scoped>(&self, name: &str) -> Result<ScopedFunc<A, R>, SessionError> {
        Ok(self.function(name)?.scoped()?)
    }

    /// Asks for a function, without waiting for it.
    pub fn request(&self, name: &str) -> Request {
        match self.symbol(name).map(|symbol| (self.ready(symbol.symbol()), symbol)) {
            Err(error) => Request::known(name, &self.session, Err(error)),
            Ok((Some(function), _)) => Request::known(name, &self.session, Ok(function)),
            Ok((None, symbol)) => self.ask(name, symbol.symbol()),
        }
    }

    fn ask(&self, name: &str, symbol: Symbol) -> Request {
        Request::asked(name, &self.session, self.linking.lookup([symbol]))
    }

    /// A function that is ready and still where it was found. Takes no lock of the session.
    fn ready(&self, symbol: Symbol) -> Option<Function> {
        let (ready, shared) = (|| self.linking.ready(symbol), &self.session.inner.shared);
        let function = shared.placed.find(ready()?, ready).ok()??.function()?;
        let is_ready = function.body.is_none() || function.cell.is_ready();
        is_ready.then(|| Function::new(function, &shared.cells))
    }

    /// The symbol that a name stands for.
    fn symbol(&self, name: &str) -> Result<SymbolRef, SessionError> {
        let linking = self.session.linking();
        if let Some(symbol) = linking.names().find(name)
            && self.linking.ready(symbol).is_some()
            && let Some(held) = linking.names().hold_symbol(symbol)
        {
            return Ok(held);
        }
        let links = self.linking.links()?;
        for scope in self.session.scopes(&links) {
            let mut methods = scope.symbols(name);
            if methods.len() > 1 {
                let there =
                    methods.iter().map(|method| self.is_known(linking.symbol(method).symbol(), &links));
                let there = there.collect::<Result<Vec<bool>, _>>()?;
                methods =
                    methods.into_iter().zip(there).filter_map(|(m, there)| there.then_some(m)).collect();
            }
            match methods.as_slice() {
                [] => {}
                [only] => return Ok(linking.symbol(only)),
                several => {
                    let methods = several.iter().map(ToString::to_string).collect();
                    return Err(SessionError::Ambiguous { name: name.to_owned(), methods });
                }
            }
        }
        Ok(linking.symbol(name))
    }

    /// Whether a symbol is defined. Starts nothing.
    pub(super) fn is_known(&self, symbol: Symbol, links: &[Link]) -> Result<bool, SessionError> {
        let want = Want { symbol, need: Need::Weak };
        let found = self.answer(self.session.linking().lookup(links.to_vec(), vec![want], Until::Known))?;
        Ok(found.is_ok_and(|found| !found.is_empty()))
    }

    /// Those of the symbols that are defined here, with their flags. Starts nothing.
    pub(super) fn known(
        &self,
        symbols: impl Iterator<Item = Symbol>,
    ) -> Result<BTreeMap<Symbol, SymbolFlags>, SessionError> {
        let (order, wants) = (vec![self.linking.all()], linking::weak(symbols));
        let found = match wants.is_empty() {
            true => return Ok(BTreeMap::new()),
            false => self.answer(self.session.linking().lookup(order, wants, Until::Known))?,
        };
        Ok(found.into_iter().flatten().map(|found| (found.label.symbol, found.flags)).collect())
    }

    /// The answer of a look-up, unless the thread would have to wait for it where it must not.
    fn answer(&self, lookup: linking::Lookup<Native>) -> Result<linking::Answer<Native>, SessionError> {
        answer(self.session.runtime(), lookup)
    }

    /// The owner of the cell that a symbol leads to. One that the name does not lead to any more is that of another function, whose callers
    /// keep it.
    pub(super) fn cell(&self, symbol: Symbol) -> Option<Arc<CellOwner>> {
        let identity = self.linking.ready(symbol)?;
        self.session.inner.shared.cells.owner(self.linking.label(symbol), identity)
    }

    /// A tracker: definitions that it tracks are removed together.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn create_tracker(&self, on_drop: OnDrop) -> Result<linking::Tracker<Native>, SessionError> {
        Ok(self.linking.create_tracker(on_drop)?)
    }

    /// The functions that the dylib sees and that are defined, each where it is seen first, by name and symbol.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn methods(&self) -> Result<Vec<Method>, SessionError> {
        let links = self.linking.links()?;
        let mut found: BTreeMap<Arc<str>, Method> = BTreeMap::new();
        for scope in self.session.scopes(&links) {
            for (name, symbol, result) in scope.functions() {
                let method = || Method { name, symbol: symbol.to_string(), result };
                found.entry(symbol.clone()).or_insert_with(method);
            }
        }
        let mut methods = Vec::with_capacity(found.len());
        for method in found.into_values() {
            let symbol = self.session.linking().symbol(&method.symbol);
            if self.is_known(symbol.symbol(), &links)? {
                methods.push(method);
            }
        }
        methods.sort_by(|a, b| (&a.name, &a.symbol).cmp(&(&b.name, &b.symbol)));
        Ok(methods)
    }

    /// The functions that the dylib sees, by module and name.
    pub(super) fn function_names(&self) -> Result<Vec<(String, String)>, SessionError> {
        let scopes = self.session.scopes(&self.linking.links()?);
        Ok(scopes.iter().flat_map(|scope| scope.names()).collect())
    }

    /// The declarations of a function object's methods, from the first dylib that has any.
    pub(super) fn declared(&self, function: Type) -> Result<Option<Module>, SessionError> {
        let scopes = self.session.scopes(&self.linking.links()?);
        Ok(scopes.iter().find_map(|scope| scope.declared(function, self.session.context())))
    }

    /// Takes names out, all or none. Code goes when its last name is gone and nothing uses it.
    ///
    /// # Errors
    /// Some are missing, or being compiled.
    pub fn remove(&self, names: &[&str]) -> Result<(), SessionError> {
        let held = names.iter().map(|name| self.symbol(name)).collect::<Result<Vec<_>, _>>()?;
        let mut symbols: Vec<Symbol> = held.iter().map(SymbolRef::symbol).collect();
        // The versions behind a cell go with it.
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
        // Later definitions stay noted.
        let forget = |symbol| self.session.inner.inlined.forget(self.linking.label(symbol), seen);
        symbols.into_iter().for_each(forget);
        Ok(())
    }

    /// Waits until symbols are no longer being materialized, however that ends.
    pub(super) fn outlast(&self, busy: &[linking::Name]) -> Result<(), SessionError> {
        // One by one: that one fails says nothing of the others, and what nobody has asked for is not started.
        for name in busy {
            let symbol = self.session.linking().symbol(&name.symbol);
            let wants = linking::weak([symbol.symbol()]);
            let found = self.session.linking().lookup(vec![self.linking.all()], wants, Until::Ready);
            if let Err(error @ (linking::Error::Cycle { .. } | linking::Error::Stalled)) =
                self.answer(found)?
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Removes everything. Users that stay keep their callees by [`Dependants::Keep`], and by [`Dependants::Tombstone`] throw `CompileError`,
    /// which names the removed function (see [`session`](crate::session)).
    ///
    /// # Errors
    /// The policy refuses.
    pub fn clear(&self, dependants: Dependants) -> Result<(), SessionError> {
        let seen = self.session.inner.inlined.number();
        self.linking.clear(dependants)?;
        self.session.inner.inlined.forget_all(self.linking.id(), seen);
        Ok(())
    }
}

impl std::fmt::Debug for Dylib {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dylib({})", self.name())
    }
}
