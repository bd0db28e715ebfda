//! C symbols of the process and of shared libraries, as definitions on demand.
//!
//! A `foreigncall` without a library names a C symbol; a dylib finds it through such a generator in its link order, under the
//! same rules as any definition: the first dylib in the order wins, so an embedder can override it with its own symbol.
//! The run time opens libraries and keeps them open.

use std::sync::Arc;

use brolga_ir::doors::Door;
use brolga_linking::{Generator, MaterializationUnit, Request, Symbol, SymbolFlags, Unit, absolute};
use brolga_runtime::Runtime;

use super::c_names::CName;
use super::deferred::Redefined;
use super::dylib::Dylib;
use super::error::SessionError;
use super::invalidation::Change;
use super::target::Native;

impl Dylib {
    /// Defines a C symbol at an address, for `foreigncall`s of programs that see this dylib.
    ///
    /// An address that [`Function::c_address`](super::Function::c_address) returned makes the symbol depend on the function, like code of another program that calls it. The code at the address is called with the C signature that the calling program states: like `foreigncall` itself, this is
    /// an unchecked capability.
    ///
    /// # Errors
    /// The doors are closed ([`Options::doors`](crate::Options::doors)); the name is defined already.
    pub fn define_c_symbol(&self, name: &str, address: *const ()) -> Result<(), SessionError> {
        self.set_c_symbol("`Dylib::define_c_symbol`", name, address, false).map(drop)
    }

    /// Defines a C symbol at an address and replaces its previous address, as [`Dylib::redefine`]: functions that call it are compiled again, and running ones call the old address until
    /// they return.
    ///
    /// # Errors
    /// The doors are closed; the current definition of the symbol is being linked.
    pub fn redefine_c_symbol(&self, name: &str, address: *const ()) -> Result<Redefined, SessionError> {
        self.set_c_symbol("`Dylib::redefine_c_symbol`", name, address, true)
    }

    fn set_c_symbol(
        &self,
        caller: &'static str,
        name: &str,
        address: *const (),
        replace: bool,
    ) -> Result<Redefined, SessionError> {
        self.session.need(caller, Door::NativeCode)?;
        let symbol = self.session.linking().symbol(name);
        let flags = SymbolFlags::EXPORTED;
        let address = address.expose_provenance();
        let unit: Unit<Native> = match self.function_for_c(address) {
            Some(function) => {
                let shared = self.session.inner.shared.clone();
                let named = CName { shared, symbol: symbol.symbol(), function };
                (Box::new(named) as Box<dyn MaterializationUnit<Native>>).into()
            }
            None => absolute([(symbol.symbol(), flags, address)]),
        };
        if replace {
            self.linking.redefine(vec![unit], None)?
        } else {
            self.linking.define(unit)?
        }
        Ok(self.recompile_callers_of([(symbol.symbol(), name)]))
    }

    /// Promises C symbols, which `unit` materializes when one of them is first needed.
    ///
    /// # Errors
    /// The doors are closed; a name is defined already; the dylib is closed.
    pub fn promise_c_symbols(&self, unit: Box<dyn MaterializationUnit<Native>>) -> Result<(), SessionError> {
        self.session.need("`Dylib::promise_c_symbols`", Door::NativeCode)?;
        let names = self.session.linking().names();
        let named = |(symbol, _): (Symbol, SymbolFlags)| (symbol, names.text(symbol));
        let symbols: Vec<(Symbol, Arc<str>)> = unit.symbols().into_iter().map(named).collect();
        self.linking.define(unit)?;
        self.recompile_callers_of(symbols.iter().map(|(symbol, name)| (*symbol, &**name)));
        Ok(())
    }

    /// Recompiles callers of C symbols that were defined: a first definition may be one that callers lacked, or come earlier in their link order than the one they found.
    pub(super) fn recompile_callers_of<'n>(
        &self,
        symbols: impl IntoIterator<Item = (Symbol, &'n str)>,
    ) -> Redefined {
        let change = |(symbol, name)| Change::c_symbol(self.linking.label(symbol), name);
        let changes: Vec<Change> = symbols.into_iter().map(change).collect();
        let (mut hits, _) = self.session.inner.edges.hit(&changes);
        let owners = &self.session.inner.owners;
        hits.retain(|hit| owners.sees(hit.label.dylib, self.linking.id()));
        let mut redefined = Redefined::default();
        self.session.recompile_callers(hits, &mut redefined);
        redefined
    }

    /// Finds C symbols of the process that the filter accepts, for programs that see this dylib. Without such a filter in its link order a program finds none: it
    /// may then call, without a definition, only the run time's own functions, C's mathematics and memory functions (`memmove` and others), and what the embedder added to the run time
    /// ([`Foreign::given`](brolga_runtime::Foreign::given)).
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

    /// Finds C symbols of a shared library, given by path or name. The library is opened at once.
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

    /// Adds a generator, which is queried for missing C symbols.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_generator(&self, generator: impl Generator<Native> + 'static) -> Result<(), SessionError> {
        self.linking.add_generator(generator)?;
        Ok(())
    }
}

/// Symbols found by the run time: in one library, or in the process.
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
            Some((symbol, SymbolFlags::EXPORTED, address))
        });
        let found: Vec<_> = found.collect();
        let defined = if found.is_empty() { Ok(()) } else { request.define(vec![absolute(found)]) };
        match defined {
            Ok(()) => request.done(),
            Err(error) => request.fail(error),
        }
    }
}
