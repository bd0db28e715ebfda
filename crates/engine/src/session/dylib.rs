//! Dylibs: links, look-ups and removal. Other files extend them: `reading.rs` reads programs, `define.rs` defines them, `opening.rs` runs initialisers and
//! finalisers, `libraries.rs` finds C symbols.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use brolga_ir::function_name::BASE;
use brolga_ir::{Module, Type};
use brolga_jit::CellOwner;
use brolga_linking::{
    Dependants, DylibId, Label, Link, Lookup, LookupKind, Need, OnDrop, Priority, Sees, Symbol, SymbolFlags,
    SymbolRef, Until, Want,
};

use super::error::SessionError;
use super::function::{Function, Request, answer};
use super::linking;
use super::scope::declared;
use super::target::Native;
use super::{Inner, Session, Tracker};
use crate::prelude;
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

/// An item of [`Dylib::methods`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Method {
    /// Its name without types: `fib`, `Base.max`.
    pub name: String,
    /// Its symbol: `fib(Int64)`.
    pub symbol: String,
    /// The type of its result; `None` for a low function, and for a function with types of another context.
    pub result: Option<String>,
}

/// The resolution of a name in a dylib.
struct Meant {
    symbol: SymbolRef,
    /// The dylib that defines it, if it is re-exported; else the first one in the link order that defines it.
    at: Option<DylibId>,
}

/// A handle that does not keep the session alive: for objects that the session itself owns.
#[derive(Clone)]
pub struct WeakDylib {
    inner: Weak<Inner>,
    linking: Arc<linking::WeakDylib<Native>>,
}

impl WeakDylib {
    /// Returns the dylib.
    ///
    /// # Errors
    /// The session no longer exists: [`SymbolError::SessionEnded`](super::SymbolError::SessionEnded).
    pub fn upgrade(&self) -> Result<Dylib, SessionError> {
        let inner = self.inner.upgrade().ok_or(linking::Error::SessionEnded)?;
        Ok(Dylib { session: Session { inner }, linking: self.linking.upgrade()? })
    }
}

impl Dylib {
    /// Returns a handle that does not keep the session alive.
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

    /// The dylib of the linking model, for the tests of this workspace. The address it has for a program's function is the address of the function's cell, a word that calls go through:
    /// it must not be called. C calls [`Function::c_address`](super::Function::c_address), and Rust calls [`Dylib::func`].
    #[doc(hidden)]
    pub fn linking(&self) -> &linking::Dylib<Native> {
        &self.linking
    }

    /// Appends `other` to the link order: from now on this dylib sees the exports of `other`, after everything it sees already.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn link_against(&self, other: &Dylib) -> Result<(), SessionError> {
        let links = vec![other.linking.exported()];
        // All other definitions override the library.
        match self.session.inner.library.id() {
            Some(library) => self.linking.add_links_before(links, library)?,
            None => self.linking.add_links(links)?,
        }
        // The other dylib may later define a name that programs of this one have mentioned.
        self.note_order();
        Ok(())
    }

    /// Removes another dylib from its link order. Code linked before keeps its callees.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn unlink(&self, other: &Dylib) -> Result<(), SessionError> {
        self.linking.remove_link(other.linking.id())?;
        self.note_order();
        Ok(())
    }

    /// The dylibs in its link order, in order. The library of Base, which is always the last, is omitted.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn links(&self) -> Result<Vec<Dylib>, SessionError> {
        let library = self.session.inner.library.id();
        let links = self.linking.links()?.into_iter().filter(|link| Some(link.dylib) != library);
        let dylib = |link: Link| Some(Dylib::new(self.session.clone(), self.session.home(link.dylib)?));
        Ok(links.filter_map(dylib).collect())
    }

    /// Sets its link order: it sees everything in itself, and the exports of the others. It may be anywhere in the order, or absent.
    ///
    /// # Errors
    /// The dylib is closed, or one of the others belongs to another session. Closed dylibs in the order are ignored.
    pub fn set_links(&self, order: &[&Dylib]) -> Result<(), SessionError> {
        let link = |dylib: &&Dylib| match dylib.linking.id() == self.linking.id() {
            true => self.linking.all(),
            false => dylib.linking.exported(),
        };
        let mut links: Vec<Link> = order.iter().map(link).collect();
        let library = self.session.inner.library.id();
        links.extend(self.linking.links()?.into_iter().filter(|link| Some(link.dylib) == library));
        self.linking.set_links(links)?;
        self.note_order();
        Ok(())
    }

    /// Whether a module uses the session's context or a view of it, so that its functions can be declared to others.
    pub(super) fn is_shared(&self, module: &Module) -> bool {
        module.cx.is_same(self.session.context())
    }

    /// Looks up a function that the dylib sees, by its bare name if it has only one method, or by its symbol (`fib(Int64)`). Waits until
    /// it can be called, and compiles meanwhile.
    ///
    /// # Errors
    /// There are none or several; the function or something that it needs failed.
    pub fn function(&self, name: &str) -> Result<Function, SessionError> {
        // If the name is removed meanwhile, the symbol is not found: its slot gets another generation.
        if let Some(symbol) = self.session.linking().names().find(name)
            && let Some(function) = self.ready(symbol)
        {
            return Ok(function);
        }
        let meant = self.sought(name)?;
        match self.ready(meant.symbol.symbol()).filter(|_| meant.at.is_none()) {
            Some(function) => Ok(function),
            None => self.ask(name, &meant).wait(),
        }
    }

    /// As [`Dylib::function`], for calls with Rust values of the given types.
    ///
    /// # Errors
    /// Also when the function has other types.
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, SessionError> {
        Ok(self.function(name)?.typed()?)
    }

    /// As [`Dylib::function`], for calls inside a scope with objects among the arguments and results.
    ///
    /// # Errors
    /// Also when the function has other types.
    pub fn func_in<A: ScopedParams, R: Scoped>(&self, name: &str) -> Result<ScopedFunc<A, R>, SessionError> {
        Ok(self.function(name)?.scoped()?)
    }

    /// Looks up functions by their names, all or none, as [`Dylib::function`] does. With several threads they are compiled in parallel.
    ///
    /// # Errors
    /// Some are missing, and the error names all missing ones; or one failed.
    pub fn functions(&self, names: &[&str]) -> Result<Vec<Function>, SessionError> {
        let meant = names.iter().map(|name| self.sought(name)).collect::<Result<Vec<Meant>, _>>()?;
        let wants = meant.iter().map(|meant| Want {
            symbol: meant.symbol.symbol(),
            need: Need::Required,
            at: meant.at,
        });
        let (kind, priority) = (LookupKind::Dynamic, Priority::Blocking);
        let linking = self.session.linking();
        let lookup =
            linking.lookup_with(self.linking.links()?, wants.collect(), Until::Ready, kind, priority);
        let _ready = self.answer(lookup)??;
        names.iter().map(|name| self.function(name)).collect()
    }

    /// Requests a function, without waiting for it.
    pub fn request(&self, name: &str) -> Request {
        let known = |meant: &Meant| self.ready(meant.symbol.symbol()).filter(|_| meant.at.is_none());
        match self.sought(name).map(|meant| (known(&meant), meant)) {
            Err(error) => Request::known(name, &self.session, Err(error)),
            Ok((Some(function), _)) => Request::known(name, &self.session, Ok(function)),
            Ok((None, meant)) => self.ask(name, &meant),
        }
    }

    fn ask(&self, name: &str, meant: &Meant) -> Request {
        let symbols = [meant.symbol.symbol()];
        let lookup = match meant.at {
            None => self.linking.lookup(symbols),
            Some(dylib) => {
                let (order, kind) = (vec![Link { dylib, sees: Sees::Exported }], LookupKind::Dynamic);
                let linking = self.session.linking();
                linking.lookup_with(order, linking::required(symbols), Until::Ready, kind, Priority::Blocking)
            }
        };
        Request::asked(name, &self.session, lookup)
    }

    /// A function of this dylib that is ready and whose address is unchanged, if no other dylib comes before this one in the link order. Takes no lock of the session,
    /// unless the embedder has set that order.
    fn ready(&self, symbol: Symbol) -> Option<Function> {
        if !self.linking.is_first() {
            return None;
        }
        let (ready, shared) = (|| self.linking.ready(symbol), &self.session.inner.shared);
        let function = shared.placed.find(ready()?, ready).ok()??.function()?;
        let is_ready = !function.is_eager || function.cell.is_ready();
        is_ready.then(|| Function::new(function))
    }

    /// Resolves a looked-up name; if it is missing, it is requested from sources.
    fn sought(&self, name: &str) -> Result<Meant, SessionError> {
        self.supplied(name.split('(').next().unwrap_or(name))?;
        self.meaning(name)
    }

    /// Resolves a name.
    fn meaning(&self, name: &str) -> Result<Meant, SessionError> {
        let (linking, inner) = (self.session.linking(), &self.session.inner);
        let order = |name: &str| inner.owners.order(self.linking.id(), name);
        let order: &dyn Fn(&str) -> Vec<DylibId> = &order;
        let along_links = |symbol| Ok(Meant { symbol, at: None });
        let meant = if name.contains('(') { inner.types.symbol(order, name) } else { None };
        let name = meant.as_deref().unwrap_or(name);
        if let Some(symbol) = linking.names().find(name)
            && self.linking.is_first()
            && self.linking.ready(symbol).is_some()
            && let Some(held) = linking.names().hold_symbol(symbol)
        {
            return along_links(held);
        }
        if let Some(held) = self.only_method(name) {
            return along_links(held);
        }
        let view = self.view(None)?;
        for seen in view.of(name).iter() {
            let mut methods = seen.symbols(name);
            methods.retain(|method| self.session.defines(seen.dylib, method));
            if methods.len() > 1 {
                // Methods for superseded types have another name now.
                methods.retain(|method| inner.types.is_meant(order, method));
            }
            match methods.as_slice() {
                [] => {}
                [only] => {
                    return Ok(Meant { symbol: linking.symbol(only), at: view.re_exported(only) });
                }
                several => {
                    let methods = several.iter().map(ToString::to_string).collect();
                    return Err(SessionError::Ambiguous { name: name.to_owned(), methods });
                }
            }
        }
        Ok(Meant { symbol: linking.symbol(name), at: view.re_exported(name) })
    }

    /// The symbol of the only method with a bare name, if it is ready in this dylib, and this dylib is first in its link order. Takes no lock of the linking model.
    fn only_method(&self, name: &str) -> Option<SymbolRef> {
        if !self.linking.is_first() {
            return None;
        }
        let methods = self.session.scope(self.linking.id())?.symbols(name);
        let [only] = methods.as_slice() else { return None };
        let names = self.session.linking().names();
        let symbol = names.find(only)?;
        self.linking.ready(symbol)?;
        names.hold_symbol(symbol)
    }

    /// The subset of the symbols that is defined here, with flags. Does not start their compilation.
    pub(super) fn known(
        &self,
        symbols: impl Iterator<Item = Symbol>,
    ) -> Result<BTreeMap<Symbol, SymbolFlags>, SessionError> {
        // A symbol without a name would make the whole look-up fail.
        let held: Vec<SymbolRef> =
            symbols.filter_map(|symbol| self.session.linking().names().hold_symbol(symbol)).collect();
        if held.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (order, wants) = (vec![self.linking.all()], linking::weak(held.iter().map(SymbolRef::symbol)));
        let found = self.answer(self.session.linking().lookup(order, wants, Until::Known))??;
        Ok(found.into_iter().map(|found| (found.label.symbol, found.flags)).collect())
    }

    /// The result of a look-up; an error if the thread would have to wait where it must not.
    pub(super) fn answer(
        &self,
        lookup: linking::Lookup<Native>,
    ) -> Result<linking::Answer<Native>, SessionError> {
        answer(self.session.runtime(), lookup)
    }

    /// The owner of the cell that a symbol resolves to. A cell with another name belongs to another function, whose callers
    /// keep it.
    pub(super) fn cell(&self, symbol: Symbol) -> Option<Arc<CellOwner>> {
        let identity = self.linking.ready(symbol)?;
        self.session.inner.shared.placed.owner(self.linking.label(symbol), identity).map(|(owner, _)| owner)
    }

    /// Looks up a symbol only in this dylib, wherever this is in its link order.
    pub(super) fn look_up_own(&self, symbol: Symbol) -> Lookup<Native> {
        self.session.linking().lookup(vec![self.linking.all()], linking::required([symbol]), Until::Ready)
    }

    /// Creates a tracker: definitions that it tracks are removed together.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn create_tracker(&self, on_drop: OnDrop) -> Result<Tracker, SessionError> {
        Ok(self.linking.create_tracker(on_drop)?)
    }

    /// Returns a handle to the same dylib whose definitions are tracked by `tracker` and removed with it: functions of programs and of the host, promises, the global
    /// variables and types that programs declare, C symbols, object files, libraries, archives and generators.
    #[must_use]
    pub fn tracked_by(&self, tracker: &Tracker) -> Dylib {
        Dylib { linking: self.linking.tracked_by(tracker), ..self.clone() }
    }

    /// The defined functions that the dylib sees, each from the first dylib that has it, by name and symbol. Methods of Base added by the session are not
    /// listed.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn methods(&self) -> Result<Vec<Method>, SessionError> {
        let library = self.session.inner.library.id();
        let mut found: BTreeMap<Arc<str>, Method> = BTreeMap::new();
        let view = self.view(None)?;
        for seen in view.dylibs().iter().filter(|seen| Some(seen.dylib) != library) {
            for (name, symbol, result) in seen.scope().functions() {
                if self.session.defines(seen.dylib, &symbol)
                    && seen.has(&symbol)
                    && view.sees(seen.dylib, &name)
                {
                    let method = || Method { name, symbol: symbol.to_string(), result };
                    found.entry(symbol.clone()).or_insert_with(method);
                }
            }
        }
        let mut methods: Vec<Method> = found.into_values().collect();
        methods.sort_by(|a, b| (&a.name, &a.symbol).cmp(&(&b.name, &b.symbol)));
        Ok(methods)
    }

    /// The functions that the dylib sees, including the prelude's, by module and name.
    pub(super) fn function_names(&self) -> Result<Vec<(String, String)>, SessionError> {
        let view = self.view(None)?;
        let of_base = prelude::names().map(|name| (BASE.to_owned(), name.to_owned()));
        Ok(view.dylibs().iter().flat_map(|seen| seen.scope().names()).chain(of_base).collect())
    }

    /// The declarations of a function object's methods, from the first dylib that has any, and the library.
    pub(super) fn declared(&self, function: Type) -> Result<Option<Module>, SessionError> {
        // A separate view: the session's would hold the looked-up names forever.
        let (view, cx) = (self.view(None)?, &self.session.context().view());
        let is_defined = |dylib, symbol: &str| self.session.defines(dylib, symbol);
        Ok(declared(&view.of_function(cx, function), function, cx, &is_defined))
    }

    /// Removes functions, C symbols, and the global variables and types that the dylib has declared, by name, all or none. Code is freed when its last name is removed and nothing
    /// uses it.
    ///
    /// # Errors
    /// Some are missing, or are being compiled by work that waits for this thread.
    pub fn remove(&self, names: &[&str]) -> Result<(), SessionError> {
        let held = names.iter().map(|name| self.removable(name)).collect::<Result<Vec<_>, _>>()?;
        let symbols: Vec<Symbol> = held.iter().map(SymbolRef::symbol).collect();
        let seen = self.session.inner.edges.number();
        // Another thread may be compiling a removed symbol: wait for it, unless it waits for this thread.
        loop {
            match self.linking.remove(symbols.iter().copied()) {
                Err(linking::Error::Busy { symbols }) => {
                    if self.outlast(&symbols).is_err() {
                        return Err(linking::Error::Busy { symbols }.into());
                    }
                }
                done => break done?,
            }
        }
        // Later definitions stay noted.
        let forget = |symbol| self.session.inner.edges.forget(self.linking.label(symbol), seen);
        symbols.into_iter().for_each(forget);
        Ok(())
    }

    /// The symbol that a removal by name refers to: a declaration's if there is no definition of the name.
    fn removable(&self, name: &str) -> Result<SymbolRef, SessionError> {
        let symbol = self.meaning(name)?.symbol;
        match self.session.linking().is_defined(self.linking.label(symbol.symbol())) {
            true => Ok(symbol),
            false => Ok(self.declaration(name).unwrap_or(symbol)),
        }
    }

    /// Waits until symbols and their parts are no longer being materialized, whether that succeeds or fails.
    pub(super) fn outlast(&self, busy: &[linking::Name]) -> Result<(), SessionError> {
        let linking = self.session.linking();
        let symbols = busy.iter().filter_map(|name| linking.names().find(&name.symbol));
        // One by one: a failure of one does not affect the others, and work that was not requested is not started.
        for Label { symbol, .. } in symbols.flat_map(|symbol| linking.pending(self.linking.label(symbol))) {
            let wants = linking::weak([symbol]);
            let found = linking.lookup(vec![self.linking.all()], wants, Until::Ready);
            if let Err(error @ (linking::Error::Cycle { .. } | linking::Error::Stalled)) =
                self.answer(found)?
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Removes everything. Remaining users keep their callees with [`Dependants::Keep`]; with [`Dependants::Tombstone`] their calls throw `CompileError`,
    /// which names the removed function (see [`session`](crate::session)).
    ///
    /// # Errors
    /// The policy forbids it.
    pub fn clear(&self, dependants: Dependants) -> Result<(), SessionError> {
        let seen = self.session.inner.edges.number();
        self.linking.clear(dependants)?;
        self.session.inner.edges.forget_all(self.linking.id(), seen);
        Ok(())
    }
}

impl std::fmt::Debug for Dylib {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dylib({})", self.name())
    }
}
