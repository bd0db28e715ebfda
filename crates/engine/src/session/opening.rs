//! Initialisers and finalisers of a dylib.
//!
//! An initialiser has a marker, a symbol with only side effects, which the session's tables list in
//! dependence order. Finalisers are looked up before the first initialiser runs, so that an opened dylib can be closed: a missing
//! finaliser makes the opening fail before anything runs. Initialisers may define further finalisers, which are looked up after they have run.

use std::sync::Arc;

use brolga_linking::{
    AtOpening, Link, LookupKind, MaterializationUnit, Priority, Responsibility, Symbol, SymbolFlags,
    SymbolRef, Until, required,
};

use super::dylib::Dylib;
use super::error::SessionError;
use super::function::{Function, Request, waiting};
use super::linking;
use super::sync::lock;
use super::target::Native;

/// The suffix of the symbol for a function's run at opening.
pub(super) const INITIALIZER: &str = "#init";

impl Dylib {
    /// Opens the dylib, as `dlopen` does: runs the initialisers of the dylibs that it sees and its own, dependences first, each once. If another thread is
    /// opening it, waits for that thread.
    ///
    /// # Errors
    /// An initialiser is missing or cannot be compiled, or throws: the dylib is not open. Finalisers of initialised dylibs run, if no open dylib sees them, and
    /// all their initialisers are due again. A finaliser is missing or cannot be compiled: the same, and unless an initialiser has
    /// defined it, nothing has run. If finalisers throw during this rollback, or when an initialiser has closed the dylib, the error is
    /// [`SessionError::TakenBack`]. The thread is inside a scope: nothing happens. The thread to wait for waits for this thread,
    /// or for a task that this thread is running.
    pub fn open(&self) -> Result<(), SessionError> {
        waiting(self.session.runtime(), || {
            let mut thrown = Vec::new();
            let opened = self.session.linking().undertake(|| self.open_or_take_back(&mut thrown))?;
            if thrown.is_empty() {
                return opened;
            }
            Err(SessionError::TakenBack { why: opened.err().map(Box::new), thrown })
        })
    }

    /// Opens the dylib. If the opening is rolled back, exceptions of finalisers are added to `thrown`.
    fn open_or_take_back(&self, thrown: &mut Vec<SessionError>) -> Result<(), SessionError> {
        self.prepare_finalizers()?;
        self.linking
            .open(|name| self.initialize(name), |dylib| thrown.extend(self.session.finalize(dylib)))?;
        // If it cannot be closed, another thread has done so.
        self.prepare_finalizers().inspect_err(|_| thrown.extend(self.close().unwrap_or_default()))
    }

    /// Runs the initialisers added since the dylib was opened.
    ///
    /// # Errors
    /// As [`Dylib::open`], but without a rollback: the dylib stays open.
    pub fn update(&self) -> Result<(), SessionError> {
        let update = || {
            self.prepare_finalizers()?;
            self.linking.update(|name| self.initialize(name))?;
            self.prepare_finalizers()
        };
        waiting(self.session.runtime(), || self.session.linking().undertake(update)?)
    }

    /// Undoes one opening, as `dlclose` does: runs the finalisers of dylibs that no open dylib sees any more, dependants
    /// first, in reverse definition order. Returns their exceptions.
    ///
    /// # Errors
    /// The dylib is not open; or the session is ending, which runs them.
    pub fn close(&self) -> Result<Vec<SessionError>, SessionError> {
        let mut thrown = Vec::new();
        self.linking.close(|dylib| thrown.extend(self.session.finalize(dylib)))?;
        Ok(thrown)
    }

    fn initialize(&self, name: &linking::Name) -> Result<(), linking::Foreign> {
        let function = name.symbol.strip_suffix(INITIALIZER).unwrap_or(&name.symbol);
        let held = self.session.linking().symbol(function);
        let symbol = held.symbol();
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

    /// Looks up finalisers and compiles lazy ones. The concurrent call with the newest view of the definitions wins.
    fn prepare_finalizers(&self) -> Result<(), SessionError> {
        let seen = self.session.inner.edges.number();
        for dylib in self.session.linking().reached(&[&self.linking])? {
            let names = match lock(&self.session.inner.homes).get(&dylib) {
                Some(home) => home.finalizers.clone(),
                None => continue,
            };
            let order = vec![Link { dylib, sees: linking::Sees::All }];
            let mut due = Vec::with_capacity(names.len());
            for name in &names {
                let symbol = self.session.linking().symbol(name);
                let wants = required([symbol.symbol()]);
                let lookup = self.session.linking().lookup(order.clone(), wants, Until::Ready);
                let function = Request::asked(name, &self.session, lookup).wait()?;
                function.compile()?;
                due.push(function);
            }
            let mut homes = lock(&self.session.inner.homes);
            if let Some(home) = homes.get_mut(&dylib).filter(|home| home.due_since <= seen) {
                (due, home.due_since) = (std::mem::replace(&mut home.due, due), seen);
            }
            // Dropping the last handle of a function frees its code and notifies listeners, which must not happen under the lock.
            drop(homes);
            drop(due);
        }
        Ok(())
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

/// The marker of a function's run at opening.
pub(super) struct Marker {
    pub(super) symbol: Symbol,
    pub(super) priority: i32,
    pub(super) needs: SymbolRef,
}

impl MaterializationUnit<Native> for Marker {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        vec![(self.symbol, SymbolFlags::SIDE_EFFECTS_ONLY)]
    }

    fn initializer(&self) -> Option<AtOpening> {
        Some(AtOpening { symbol: self.symbol, priority: self.priority })
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Ok(dylib) = responsibility.dylib() else { return };
        let needs = linking::Label { dylib, symbol: self.needs.symbol() };
        if let Ok(resolved) = responsibility.resolve([]) {
            // The missing symbol may exist at the next opening.
            let again: Box<dyn MaterializationUnit<Native>> = self;
            // A refusal has failed the unit, with its reason.
            let _ = resolved.emit_or_again([needs.into()], again);
        }
    }
}
