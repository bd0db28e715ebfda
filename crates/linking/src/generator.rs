//! Definition generators, which define missing symbols on demand.
//!
//! A task calls a generator for the symbols that a lookup does not find; the generator defines those it can,
//! in the dylib, and completes the request. It may keep the request and answer later: only the lookup is
//! suspended. Many requests may be under way in one generator, no two for the same symbol. Dropping a request
//! is an error of the lookups that wait for it. Lookups and definitions through the request belong to the
//! requesting lookup, on any thread: if that was begun before the session ends, it is finished.
//!
//! Other definitions of the dylib replace generated ones, so it does not matter whether a symbol was looked
//! up before. Code already linked to the old one keeps it.

use std::sync::Arc;

use crate::dispatch::when_caught;
use crate::error::{Error, Foreign};
use crate::flags::{Link, LookupKind, Need, Priority, SymbolFlags, Until, Want};
use crate::ids::{DylibId, Symbol};
use crate::lookup::Lookup;
use crate::machine::{Alias, Ask, Define, Doer, Generated, How, RequestId, TrackerId};
use crate::responsibility::absolute;
use crate::session::{Definer, Live, Session, Unit};
use crate::target::Target;

/// See the file's header.
pub trait Generator<T: Target>: Definer<T> {
    /// Defines the missing symbols that it can define.
    fn generate(&self, request: Request<T>);
}

impl<T: Target, G: Generator<T>> Definer<T> for G {
    fn answer(&self, session: Session<T>, ask: Ask<Live<T>>) {
        self.generate(Request::new(session, ask));
    }
}

/// A request to define symbols, as far as the generator can.
#[must_use = "a request that is dropped fails lookups"]
pub struct Request<T: Target> {
    session: Session<T>,
    id: RequestId<Live<T>>,
    dylib: DylibId,
    tracker: TrackerId<Live<T>>,
    symbols: Vec<Symbol>,
    kind: LookupKind,
    open: bool,
}

impl<T: Target> Request<T> {
    fn new(session: Session<T>, ask: Ask<Live<T>>) -> Self {
        Request {
            session,
            id: ask.request,
            dylib: ask.dylib,
            tracker: ask.tracker,
            symbols: ask.symbols,
            kind: ask.kind,
            open: true,
        }
    }

    #[must_use]
    pub fn session(&self) -> &Session<T> {
        &self.session
    }

    /// The missing symbols.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The origin of the lookup.
    #[must_use]
    pub fn kind(&self) -> LookupKind {
        self.kind
    }

    /// Defines units in the searched dylib, with the generator's tracker.
    ///
    /// # Errors
    /// As for [`crate::Dylib::define`]; also if the generator was removed with its tracker.
    pub fn define(&self, units: Vec<Unit<T>>) -> Result<(), Error> {
        let tracker = Some(self.tracker);
        let define = Define { dylib: self.dylib, tracker, units, how: How::Generate, begun: true };
        self.session.step(define).map_err(|(error, _)| error)
    }

    /// Looks up what the answer depends on. In a task, prefer [`Request::lookup_then`].
    pub fn lookup(&self, order: Vec<Link>, wants: Vec<Want>, until: Until) -> Lookup<T> {
        self.session.lookup_for(Doer::request(self.id), order, wants, until)
    }

    /// Looks up what the answer depends on, and continues in a task with the request and the result.
    pub fn lookup_then(
        self,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        then: impl FnOnce(Request<T>, crate::Answer<T>) + Send + 'static,
    ) {
        let session = self.session.clone();
        let owner = Some(Doer::request(self.id));
        session
            .lookup_then_for(owner, order, wants, until, Priority::Normal, move |answer| then(self, answer));
    }

    /// Completes the request: the search continues with what was defined.
    pub fn done(mut self) {
        self.finish(Ok(()));
    }

    /// Fails the lookups that wait for this.
    pub fn fail(mut self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        let error = match error.into().downcast::<Error>() {
            Ok(own) => *own,
            Err(foreign) => Error::Generator(Foreign::from(foreign)),
        };
        self.finish(Err(error));
    }

    fn finish(&mut self, result: Result<(), Error>) {
        if std::mem::replace(&mut self.open, false) {
            self.session.step(Generated { request: self.id, result });
        }
    }
}

impl<T: Target> Drop for Request<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.finish(Err(Error::GeneratorAbandoned));
        }
        if std::mem::replace(&mut self.open, false) {
            let (session, request) = (self.session.clone(), self.id);
            when_caught(move |message| {
                session.step(Generated { request, result: Err(Error::GeneratorPanicked { message }) });
            });
        }
    }
}

/// A generator from a function: symbols for which it returns an address become absolute symbols.
pub struct Addresses<F>(pub F);

impl<T, F> Generator<T> for Addresses<F>
where
    T: Target,
    F: Fn(&str) -> Option<(T::Address, SymbolFlags)> + Send + Sync,
{
    fn generate(&self, request: Request<T>) {
        let known = request.symbols().iter().filter_map(|&symbol| {
            let (address, flags) = (self.0)(&request.session().names().text(symbol))?;
            Some((symbol, flags, address))
        });
        let known: Vec<_> = known.collect();
        let defined = if known.is_empty() { Ok(()) } else { request.define(vec![absolute(known)]) };
        match defined {
            Ok(()) => request.done(),
            Err(error) => request.fail(error),
        }
    }
}

/// A generator of re-exports: symbols of another dylib that pass the filter, with their flags.
///
/// If the other dylib is closed, it offers nothing, as in a link order. Re-exported symbols that are ready
/// stay or are removed, according to the policy of the closing; a lookup of one that was found but not yet
/// looked up fails, and reports that the dylib is closed.
pub struct Reexports<F> {
    /// Where they come from.
    pub from: Link,
    pub filter: F,
}

impl<T, F> Generator<T> for Reexports<F>
where
    T: Target,
    F: Fn(&str) -> bool + Send + Sync,
{
    fn generate(&self, request: Request<T>) {
        let names = request.session().names();
        let let_through = request.symbols().iter().filter(|symbol| (self.filter)(&names.text(**symbol)));
        let wants: Vec<Want> =
            let_through.map(|symbol| Want { symbol: *symbol, need: Need::Weak, at: None }).collect();
        if wants.is_empty() {
            return request.done();
        }
        let from = self.from;
        request.lookup_then(vec![from], wants, Until::Known, move |request, answer| {
            let found = match answer {
                Err(Error::DylibClosed { .. }) => Ok(Vec::new()),
                answer => answer,
            };
            let aliases = found.map(|found| {
                let alias = |found: &crate::Definition<T>| Alias {
                    symbol: found.label.symbol,
                    flags: found.flags.without(SymbolFlags::WEAK),
                    from,
                    aliasee: found.label.symbol,
                };
                found.iter().map(|found| Unit::<T>::from(alias(found))).collect::<Vec<_>>()
            });
            match aliases.and_then(|aliases| request.define(aliases)) {
                Ok(()) => request.done(),
                Err(error) => request.fail(error),
            }
        });
    }
}

impl<T: Target, G: Generator<T> + ?Sized> Generator<T> for Arc<G> {
    fn generate(&self, request: Request<T>) {
        (**self).generate(request);
    }
}
