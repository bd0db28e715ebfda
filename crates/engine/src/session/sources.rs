//! Sources of programs, which define a function when its name is missing.
//!
//! ```text
//!   main: read "… invoke Main.area(…) …", func("area")
//!     │ no dylib that main sees for the name has an `area`
//!     ▼
//!   the sources of these dylibs, in this order ──► one defines `area` in its dylib: from a text, by a promise, a host closure, an alias
//!     │
//!     ▼
//!   read on, look up again
//! ```
//!
//! A source is for typed functions what a [generator](Dylib::add_generator) is for C symbols. Programs that call or mention a missing name query it when they are read or built, and so do look-ups and
//! aliases, each time that the name is missing. A dynamic call does not query sources: a program has mentioned its function. So a function with any method is not requested.
//!
//! **Recursion.** A source may read programs that mention the name it supplies; the same thread does not query it for that name again. Several threads may request one name at
//! once: an error of a source, such as a duplicate definition, counts only if the name is still missing.
//!
//! **Locks**: only the table's. Sources are called and dropped without it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use brolga_ir::Module;
use brolga_ir::function_name::is_library;
use brolga_linking::{DylibId, Symbol};

use super::dylib::Dylib;
use super::error::SessionError;
use super::linking;
use super::owners::{Use, spelled};
use super::reading::uses;
use super::sync::lock;

/// The suffix of a source's symbol.
pub(super) const SOURCE: &str = "#source";

/// See [`Dylib::add_source`].
type Supply = Arc<dyn Fn(&Dylib, &str) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Source {
    /// Removing this symbol of its dylib removes it.
    symbol: Symbol,
    supply: Supply,
}

/// The sources of a session's dylibs.
#[derive(Default)]
pub(super) struct Sources {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    of: BTreeMap<DylibId, Vec<Source>>,
    /// The requests in progress, with their threads.
    asking: Vec<(ThreadId, Symbol, Box<str>)>,
}

impl Sources {
    fn is_empty(&self) -> bool {
        lock(&self.table).of.is_empty()
    }

    fn add(&self, dylib: DylibId, source: Source) {
        lock(&self.table).of.entry(dylib).or_default().push(source);
    }

    /// Removes the sources of a closed dylib. The result must be dropped without a lock.
    #[must_use]
    pub(super) fn forget(&self, dylib: DylibId) -> Vec<Source> {
        lock(&self.table).of.remove(&dylib).unwrap_or_default()
    }

    /// Removes the source with this symbol. The result must be dropped without a lock.
    #[must_use]
    pub(super) fn end(&self, dylib: DylibId, symbol: Symbol) -> Option<Source> {
        let mut table = lock(&self.table);
        let of = table.of.get_mut(&dylib)?;
        let gone = of.iter().position(|source| source.symbol == symbol).map(|at| of.remove(at));
        if of.is_empty() {
            table.of.remove(&dylib);
        }
        gone
    }

    /// The sources of these dylibs, in their order.
    fn along(&self, order: &[DylibId]) -> Vec<(DylibId, Source)> {
        let table = lock(&self.table);
        let with_sources = order.iter().filter_map(|id| Some((*id, table.of.get(id)?)));
        with_sources.flat_map(|(id, of)| of.iter().map(move |source| (id, source.clone()))).collect()
    }

    /// Records that this thread requests a name from a source; `None` if it already does.
    fn ask(&self, source: &Source, name: &str) -> Option<Asking<'_>> {
        let asking = (std::thread::current().id(), source.symbol, Box::from(name));
        let mut table = lock(&self.table);
        if table.asking.contains(&asking) {
            return None;
        }
        table.asking.push(asking.clone());
        Some(Asking { sources: self, asking })
    }
}

/// A thread's request to a source, in progress.
struct Asking<'a> {
    sources: &'a Sources,
    asking: (ThreadId, Symbol, Box<str>),
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        lock(&self.sources.table).asking.retain(|asking| *asking != self.asking);
    }
}

impl Dylib {
    /// Adds a source: `supply` is called with the names of missing functions (`area`, `Shapes.area`), for programs and look-ups that see this dylib. It receives this dylib, and defines its functions of that
    /// name in it, if any. It runs on the thread that needs the function, between two steps of the session. To return at once and make the program later, it promises the function.
    ///
    /// The source is removed with the dylib, or with the tracker of [`Dylib::tracked_by`]; its definitions stay. It must not keep the session alive.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use brolga::{Options, Session, Workers};
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let [shelf, main] = ["shelf", "main"].map(|name| session.create_dylib(name).unwrap());
    /// shelf.add_source(|shelf, name| {
    ///     if let Some(power) = name.strip_prefix("pow").and_then(|digits| digits.parse::<u32>().ok()) {
    ///         let text = format!("function {name}()::Int64\n1 ─ return {}\nend", 10_i64.pow(power));
    ///         shelf.define(shelf.read(name, text.as_bytes())?)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// main.link_against(&shelf)?;
    /// let text = "function f()::Int64\n1 ─ %1 = invoke Main.pow3()::Int64\n└── return %1\nend";
    /// main.define(main.read("f.jlir", text.as_bytes())?)?;
    /// assert_eq!(main.func::<(), i64>("f")?.call(())?, 1000);
    /// assert_eq!(main.func::<(), i64>("pow2")?.call(())?, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The dylib is closed. An error of the source becomes the error of the request, if the function is still missing.
    pub fn add_source(
        &self,
        supply: impl Fn(&Dylib, &str) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Result<(), SessionError> {
        let (sources, dylib) = (&self.session.inner.sources, self.linking.id());
        let held = self.session.linking().symbol(&format!("{}{SOURCE}", self.session.next_number()));
        // Noted first: the source is removed with its symbol, which may be removed as soon as it exists.
        sources.add(dylib, Source { symbol: held.symbol(), supply: Arc::new(supply) });
        self.linking.define(linking::names_only([held.symbol()])).inspect_err(|_| {
            drop(sources.end(dylib, held.symbol()));
        })?;
        Ok(())
    }

    /// Requests a function from sources, unless a dylib that this one sees has it. Returns whether one has supplied it.
    pub(super) fn supplied(&self, name: &str) -> Result<bool, SessionError> {
        let sources = &self.session.inner.sources;
        if sources.is_empty() || self.has_function(name)? {
            return Ok(false);
        }
        let order = self.session.inner.owners.order(self.linking.id(), name);
        for (dylib, source) in sources.along(&order) {
            let Some(home) = self.session.home(dylib) else { continue };
            let Some(_asking) = sources.ask(&source, name) else { continue };
            let answer = (source.supply)(&Dylib::new(self.session.clone(), home), name);
            if self.has_function(name)? {
                return Ok(true);
            }
            let failed = |error| SessionError::Source { name: name.to_owned(), error: Arc::from(error) };
            answer.map_err(failed)?;
        }
        Ok(false)
    }

    /// Whether a dylib that this one sees defines a function of this name.
    fn has_function(&self, name: &str) -> Result<bool, SessionError> {
        let view = self.view(None)?;
        let found = view
            .of(name)
            .iter()
            .any(|seen| seen.symbols(name).iter().any(|symbol| self.session.defines(seen.dylib, symbol)));
        Ok(found)
    }

    /// Requests the functions that a module mentions from sources. Returns the module with the meanings of names afterwards.
    pub(super) fn with_supplies(&self, module: Module) -> Result<Module, SessionError> {
        if self.session.inner.sources.is_empty() || !self.is_shared(&module) {
            return Ok(module);
        }
        self.note_order();
        let all = uses(&module, module.func_count());
        for named in all.iter().filter(|named| named.what == Use::Mentions && !is_library(&named.module)) {
            self.supplied(&spelled(&named.module, &named.name))?;
        }
        match self.session.inner.owners.mean(self.linking.id(), &all) {
            true => Ok(module),
            false => self.translated(&module, all),
        }
    }
}
