//! Materialization: units of definitions, and the obligation to produce them.
//!
//! ```text
//!   dyn MaterializationUnit ── a lookup ──► Responsibility ── resolve ──► Resolved ── emit ──► (done)
//!                                                 │ drop, panic, fail         │
//!                                                 └────────────► failed ◄─────┘
//! ```
//!
//! [`Responsibility::complete`] is both steps in one; it can be repeated if a definition that the code is
//! linked to no longer exists.
//!
//! The obligation is a value, consumed by fulfilling it. Resolving twice or emitting without resolving does
//! not compile, and a dropped obligation fails its symbols, so every lookup gets an answer. After the removal
//! of the unit all operations return an error, except that failing does nothing.

use crate::dispatch::priority;
use crate::error::{Cause, Error};
use crate::flags::{Need, Priority, SymbolFlags, Until, Want};
use crate::ids::{DylibId, Symbol};
use crate::lookup::Lookup;
use crate::machine::{
    Abandon, AtOpening, Claim, Complete, Delegate, Doer, Emit, FailForNow, HandBack, Incomplete,
    IsWantedBeside, NewUnit, Requested, Resolve, Source, UnitHome,
};
use crate::session::{Definition, Dependence, Duty, Group, Materializer, Session, Unit};
use crate::target::Target;

/// Definitions that are materialized on the first lookup, from any program representation.
pub trait MaterializationUnit<T: Target>: Materializer<T> {
    /// The symbols that it will define. Read once, when it is defined.
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)>;

    /// The symbol of its initialisers, if it has any.
    fn initializer(&self) -> Option<AtOpening> {
        None
    }

    /// Tells the unit that another definition overrides one of its symbols. Called just before the unit is materialized or
    /// dropped.
    fn discard(&mut self, symbol: Symbol) {
        let _ = symbol;
    }

    /// Materializes the definitions. May keep the responsibility and finish later, on any thread.
    fn materialize(self: Box<Self>, responsibility: Responsibility<T>);
}

impl<T: Target, M: MaterializationUnit<T>> Materializer<T> for M {
    fn lose(&mut self, symbol: Symbol) {
        self.discard(symbol);
    }

    fn begin(self: Box<Self>, duty: Duty<T>) {
        self.materialize(Responsibility { duty });
    }
}

impl<T: Target> From<Box<dyn MaterializationUnit<T>>> for Unit<T> {
    fn from(unit: Box<dyn MaterializationUnit<T>>) -> Self {
        let (symbols, initializer) = (unit.symbols(), unit.initializer());
        let source: Box<dyn Materializer<T>> = unit;
        NewUnit { symbols, initializer, source: Source::Work(source) }
    }
}

struct FromFn<F> {
    symbols: Vec<(Symbol, SymbolFlags)>,
    materialize: F,
}

impl<T: Target, F: FnOnce(Responsibility<T>) + Send> MaterializationUnit<T> for FromFn<F> {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<T>) {
        (self.materialize)(responsibility);
    }
}

/// A unit that `materialize` materializes.
pub fn unit<T: Target>(
    symbols: impl IntoIterator<Item = (Symbol, SymbolFlags)>,
    materialize: impl FnOnce(Responsibility<T>) + Send + 'static,
) -> Unit<T> {
    let unit: Box<dyn MaterializationUnit<T>> =
        Box::new(FromFn { symbols: symbols.into_iter().collect(), materialize });
    unit.into()
}

/// Symbols with known addresses.
pub fn absolute<T: Target>(symbols: impl IntoIterator<Item = (Symbol, SymbolFlags, T::Address)>) -> Unit<T> {
    let (mut flags, mut addresses) = (Vec::new(), Vec::new());
    for (symbol, flag, address) in symbols {
        flags.push((symbol, flag | SymbolFlags::ABSOLUTE));
        addresses.push((symbol, address));
    }
    NewUnit { symbols: flags, initializer: None, source: Source::Absolute(addresses) }
}

/// Symbols without addresses, which represent something that the embedder has: it is notified of their
/// removal ([`Host::unnamed`](crate::Host::unnamed)).
pub fn names_only<T: Target>(symbols: impl IntoIterator<Item = Symbol>) -> Unit<T> {
    let symbols = symbols.into_iter().map(|symbol| (symbol, SymbolFlags::SIDE_EFFECTS_ONLY)).collect();
    NewUnit { symbols, initializer: None, source: Source::Absolute(Vec::new()) }
}

/// The obligation to define symbols. See the file's header.
#[must_use = "a responsibility that is dropped fails its symbols"]
pub struct Responsibility<T: Target> {
    duty: Duty<T>,
}

impl<T: Target> Responsibility<T> {
    #[must_use]
    pub fn session(&self) -> &Session<T> {
        &self.duty.session
    }

    /// The dylib that it defines symbols in.
    ///
    /// # Errors
    /// The unit was removed.
    pub fn dylib(&self) -> Result<DylibId, Error> {
        Ok(self.duty.session.read(UnitHome(self.duty.unit))?.0)
    }

    /// Its symbols.
    ///
    /// # Errors
    /// The unit was removed.
    pub fn symbols(&self) -> Result<Vec<(Symbol, SymbolFlags)>, Error> {
        Ok(self.definitions()?.into_iter().map(|own| (own.label.symbol, own.flags)).collect())
    }

    /// Like [`Responsibility::symbols`], with the versions of the symbols; without addresses.
    ///
    /// # Errors
    /// The unit was removed.
    pub fn definitions(&self) -> Result<Vec<Definition<T>>, Error> {
        let read = Requested { unit: self.duty.unit, wanted_only: false };
        Ok(self.duty.session.read(read)?.0)
    }

    /// The symbols of the unit that lookups are waiting for.
    ///
    /// # Errors
    /// The unit was removed.
    pub fn requested(&self) -> Result<Vec<Symbol>, Error> {
        let read = Requested { unit: self.duty.unit, wanted_only: true };
        Ok(self.duty.session.read(read)?.0.into_iter().map(|own| own.label.symbol).collect())
    }

    /// Looks up symbols that the unit refers to, in its dylib's link order. In a task, prefer
    /// [`Responsibility::lookup_then`], which does not block.
    ///
    /// # Errors
    /// The unit was removed.
    pub fn lookup(
        &self,
        symbols: impl IntoIterator<Item = Symbol>,
        until: Until,
    ) -> Result<Lookup<T>, Error> {
        let (_, order) = self.duty.session.read(UnitHome(self.duty.unit))?;
        let wants =
            symbols.into_iter().map(|symbol| Want { symbol, need: Need::Required, at: None }).collect();
        let owner = Doer::unit(self.duty.unit);
        Ok(self.duty.session.lookup_for(owner, order, wants, until))
    }

    /// Looks up symbols that the unit refers to, in its dylib's link order, and calls `then` in a task with
    /// the responsibility and the definitions, in the order of `wants`. If a symbol is missing or fails, the
    /// unit fails with that as the cause; likewise if a symbol waits for this unit in the same way. With no
    /// wants, `then` is called immediately.
    pub fn lookup_then(
        self,
        wants: Vec<Want>,
        until: Until,
        then: impl FnOnce(Responsibility<T>, Vec<crate::Definition<T>>) + Send + 'static,
    ) {
        self.lookup_answer(wants, until, move |responsibility, answer| match answer {
            Ok(found) => then(responsibility, found),
            Err(error) => responsibility.fail(error),
        });
    }

    /// Like [`Responsibility::lookup_then`], but `then` also receives errors.
    pub fn lookup_answer(
        self,
        wants: Vec<Want>,
        until: Until,
        then: impl FnOnce(Responsibility<T>, crate::Answer<T>) + Send + 'static,
    ) {
        if wants.is_empty() {
            return then(self, Ok(Vec::new()));
        }
        // The unit was removed: there is nothing to fulfil or to fail.
        let Ok((_, order)) = self.duty.session.read(UnitHome(self.duty.unit)) else { return };
        let session = self.duty.session.clone();
        let owner = Some(Doer::unit(self.duty.unit));
        session
            .lookup_then_for(owner, order, wants, until, Priority::Normal, move |answer| then(self, answer));
    }

    /// Calls `rest`, the remaining work on the unit: immediately, or in another task if the dispatcher
    /// batches such work of several units ([`Dispatcher::takes_rest`](crate::Dispatcher::takes_rest)).
    /// `weight` is its size in statements.
    pub fn continue_with(self, weight: u32, rest: impl FnOnce(Responsibility<T>) + Send + 'static) {
        let session = self.duty.session.clone();
        let dispatcher = session.dispatcher();
        if !dispatcher.takes_rest(weight) {
            return rest(self);
        }
        let doer = Some(Doer::unit(self.duty.unit));
        let task = session.task(priority(), doer, move || rest(self)).with_weight(weight);
        dispatcher.dispatch_rest(task);
    }

    /// Adds symbols introduced by materialization to the responsibility. Returns the added ones: weak ones
    /// that already exist are not added.
    ///
    /// # Errors
    /// A strong symbol already exists, or the unit was removed.
    pub fn claim(
        &self,
        symbols: impl IntoIterator<Item = (Symbol, SymbolFlags)>,
    ) -> Result<Vec<Symbol>, Error> {
        self.duty.session.step(Claim { unit: self.duty.unit, symbols: symbols.into_iter().collect() })
    }

    /// Splits symbols off into their own responsibility.
    ///
    /// # Errors
    /// They do not belong to it, or already have addresses; or the unit was removed.
    pub fn delegate(&self, symbols: impl IntoIterator<Item = Symbol>) -> Result<Responsibility<T>, Error> {
        let event = Delegate { unit: self.duty.unit, symbols: symbols.into_iter().collect() };
        let unit = self.duty.session.step(event)?;
        Ok(Responsibility { duty: Duty::new(self.duty.session.clone(), unit) })
    }

    /// Returns symbols to the session, to be materialized by `unit`: immediately if a lookup waits for one of
    /// them, otherwise on the next lookup.
    ///
    /// # Errors
    /// As for [`Responsibility::delegate`].
    pub fn hand_back(&self, unit: Box<dyn MaterializationUnit<T>>) -> Result<(), Error> {
        let symbols = unit.symbols().into_iter().map(|(symbol, _)| symbol).collect();
        self.duty
            .session
            .step(HandBack { unit: self.duty.unit, symbols, source: unit })
            .map_err(|(error, _)| error)
    }

    /// Hands over code, which lives as long as the unit.
    ///
    /// # Errors
    /// The unit was removed; returns the code.
    pub fn attach(&self, code: T::Code) -> Result<(), T::Code> {
        self.duty.attach(code)
    }

    /// Sets the addresses of some symbols.
    ///
    /// # Errors
    /// They do not belong to it, or already have addresses; or the unit was removed.
    pub fn resolve_some(
        &self,
        addresses: impl IntoIterator<Item = (Symbol, T::Address)>,
    ) -> Result<(), Error> {
        self.duty.session.step(Resolve { unit: self.duty.unit, addresses: addresses.into_iter().collect() })
    }

    /// Sets the addresses of all remaining symbols. After an error the unit has failed.
    ///
    /// # Errors
    /// As for [`Responsibility::resolve_some`].
    pub fn resolve(
        mut self,
        addresses: impl IntoIterator<Item = (Symbol, T::Address)>,
    ) -> Result<Resolved<T>, Error> {
        match self.resolve_some(addresses) {
            Ok(()) => Ok(Resolved { duty: self.duty }),
            Err(error) => {
                self.duty.fail(error.clone().into());
                Err(error)
            }
        }
    }

    /// Hands over code, resolves all symbols and emits the unit, all of which depends on `needs`; in one
    /// step.
    ///
    /// Returns the responsibility if a version in `needs` has lost its name in the meantime: then nothing has
    /// changed, no lookup has seen an address, and the caller can link again. After any other error the unit
    /// has failed or was removed.
    ///
    /// If a dependence fails before the unit is ready, later lookups materialize `again`: immediately if the
    /// failure may be temporary, otherwise after the failed symbol was removed or replaced.
    pub fn complete(
        mut self,
        code: T::Code,
        addresses: impl IntoIterator<Item = (Symbol, T::Address)>,
        needs: impl IntoIterator<Item = Dependence<T>>,
        again: Option<Unit<T>>,
    ) -> Option<Responsibility<T>> {
        let (addresses, needs) = (addresses.into_iter().collect(), needs.into_iter().collect());
        let (unit, again) = (self.duty.unit, again.map(|again| again.source));
        let completed = self.duty.session.step(Complete { unit, code, addresses, needs, again });
        match completed {
            Err(Incomplete::Moved(_)) => return Some(self),
            Ok(()) | Err(Incomplete::Failed(_) | Incomplete::Removed(_)) => self.duty.open = false,
        }
        None
    }

    /// Fails the unit for a reason that may be temporary. Lookups that wait now get the cause; later ones
    /// materialize `again`, which defines the same symbols.
    pub fn fail_for_now(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        again: impl Into<Unit<T>>,
    ) {
        self.duty.open = false;
        let (unit, cause, again) = (self.duty.unit, Cause::of(cause), again.into().source);
        self.duty.session.step(FailForNow { unit, cause, again, passes: true });
    }

    /// Whether a lookup that does not belong to one of these calls waits for the unit
    /// ([`Host::caller`](crate::Host::caller)).
    #[must_use]
    pub fn is_wanted_beside(&self, callers: &[u64]) -> bool {
        self.duty.session.read(IsWantedBeside { unit: self.duty.unit, callers })
    }

    /// Abandons the unit because these calls have ended. If no other lookup waits for it, it fails as by
    /// [`Responsibility::fail_for_now`]; otherwise the lookups of the calls get the cause, and `again`
    /// materializes it in another task.
    pub fn abandon(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        again: Box<dyn MaterializationUnit<T>>,
        callers: &[u64],
    ) {
        self.duty.open = false;
        let (unit, cause) = (self.duty.unit, Cause::of(cause));
        self.duty.session.step(Abandon { unit, cause, again, callers });
    }

    /// Fails the unit because of `cause`. If that is the failure of other symbols, it holds until one of them
    /// is removed or replaced; lookups after that materialize `again`, which defines the same symbols. If the
    /// cause may be temporary, the next lookup does.
    pub fn fail_until_changed(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        again: impl Into<Unit<T>>,
    ) {
        self.duty.open = false;
        let (unit, cause, again) = (self.duty.unit, Cause::of(cause), again.into().source);
        self.duty.session.step(FailForNow { unit, cause, again, passes: false });
    }

    /// Fails the unit. Every lookup of its symbols, now or later, gets the cause.
    pub fn fail(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.duty.fail(Cause::of(cause));
    }
}

/// The obligation to make the memory of resolved symbols final.
#[must_use = "a responsibility that is dropped fails its symbols"]
pub struct Resolved<T: Target> {
    duty: Duty<T>,
}

impl<T: Target> Resolved<T> {
    /// Hands over code, which lives as long as the unit.
    ///
    /// # Errors
    /// The unit was removed; returns the code.
    pub fn attach(&self, code: T::Code) -> Result<(), T::Code> {
        self.duty.attach(code)
    }

    /// Declares the memory final; all symbols depend on `needs`. On an error the unit has failed.
    ///
    /// # Errors
    /// A dependence is missing, failed or replaced; or the unit was removed.
    pub fn emit(self, needs: impl IntoIterator<Item = Dependence<T>>) -> Result<(), Error> {
        self.emit_all(needs.into_iter().collect(), None)
    }

    /// Like [`Resolved::emit`]. If a dependence fails for a temporary reason before the unit is ready, later
    /// lookups materialize `again`.
    ///
    /// # Errors
    /// As for [`Resolved::emit`].
    pub fn emit_or_again(
        self,
        needs: impl IntoIterator<Item = Dependence<T>>,
        again: impl Into<Unit<T>>,
    ) -> Result<(), Error> {
        self.emit_all(needs.into_iter().collect(), Some(again.into()))
    }

    fn emit_all(mut self, needs: Vec<Dependence<T>>, again: Option<Unit<T>>) -> Result<(), Error> {
        let groups = if needs.is_empty() {
            Vec::new()
        } else {
            let read = Requested { unit: self.duty.unit, wanted_only: false };
            let symbols = self.duty.session.read(read)?.0.into_iter().map(|own| own.label.symbol).collect();
            vec![Group { symbols, needs }]
        };
        self.duty.open = false;
        let (unit, again) = (self.duty.unit, again.map(|again| again.source));
        self.duty.session.step(Emit { unit, groups, again })
    }

    /// Declares the memory final. The symbols of a group depend on its `needs`; symbols in no group depend on
    /// nothing.
    ///
    /// # Errors
    /// As for [`Resolved::emit`].
    pub fn emit_groups(mut self, groups: Vec<Group<T>>) -> Result<(), Error> {
        self.duty.open = false;
        self.duty.session.step(Emit { unit: self.duty.unit, groups, again: None })
    }

    /// Fails the unit, like [`Responsibility::fail`].
    pub fn fail(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.duty.fail(Cause::of(cause));
    }
}
