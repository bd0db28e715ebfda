//! Initialisers and finalisers of a dylib.
//!
//! An initialiser has a marker, a symbol with side effects only, which the session's tables list in the
//! order of dependence. Finalisers are looked up before the first initialiser runs, so that an opened dylib can be closed: a missing
//! one is an error of the opening, and nothing has run. Initialisers may define further finalisers, which are looked up after they have run.

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

/// The suffix that makes the symbol of a function's run at opening.
pub(super) const INITIALIZER: &str = "#init";

impl Dylib {
    /// Opens the dylib, as `dlopen` does: initialisers of the dylibs that it sees and its own run, dependences first, each once. An opening of another
    /// thread is waited for.
    ///
    /// # Errors
    /// An initialiser cannot be had, or throws: the dylib is not open. Finalisers of what was initialised run, if nothing open sees it, and
    /// all its initialisers are due again. A finaliser cannot be had: the same, and unless an initialiser has
    /// defined it, nothing has run. If finalisers throw then, the error is [`SessionError::TakenBack`]; so it is if they do when an
    /// initialiser has closed the dylib. The thread is inside a scope: nothing happens. The thread to wait for waits for this thread,
    /// or for a task that it is in the middle of.
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

    /// Opens the dylib. Exceptions of finalisers when that is taken back are put into `thrown`.
    fn open_or_take_back(&self, thrown: &mut Vec<SessionError>) -> Result<(), SessionError> {
        self.prepare_finalizers()?;
        self.linking
            .open(|name| self.initialize(name), |dylib| thrown.extend(self.session.finalize(dylib)))?;
        // If it cannot be closed, another thread has done so.
        self.prepare_finalizers().inspect_err(|_| thrown.extend(self.close().unwrap_or_default()))
    }

    /// Runs initialisers that came since the dylib was opened.
    ///
    /// # Errors
    /// As [`Dylib::open`], but what has run stays, and the dylib stays open.
    pub fn update(&self) -> Result<(), SessionError> {
        let update = || {
            self.prepare_finalizers()?;
            self.linking.update(|name| self.initialize(name))?;
            self.prepare_finalizers()
        };
        waiting(self.session.runtime(), || self.session.linking().undertake(update)?)
    }

    /// Takes one opening back, as `dlclose` does: finalisers of dylibs that nothing open sees any more run, those that depend
    /// on others first, the last one defined first. Says what they threw.
    ///
    /// # Errors
    /// The dylib is not open; or the session ends, which runs them.
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

    /// Looks finalisers up, and compiles those that are lazy. Of concurrent calls, the one with the newest view of the definitions wins.
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
            // With the last handle of a function its code is freed and listeners are notified: not under the lock.
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

/// Stands for the run of a function at opening.
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
            // The missing symbol may be there at the next opening.
            let again: Box<dyn MaterializationUnit<Native>> = self;
            // A refusal has failed the unit, with its reason.
            let _ = resolved.emit_or_again([needs.into()], again);
        }
    }
}
