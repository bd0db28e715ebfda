//! The dylibs in which a dylib finds a name: its link order, and the dylibs re-exported by dylibs in it.
//!
//! ```text
//!   main ── linked to ──► facade ── re-exports `area` ──► shapes
//!    │                      ▲                               ▲
//!    └── sees ──────────────┴── only `area` ────────────────┘
//! ```
//!
//! A re-exported name keeps its identity: the same function, variable or type. Its position is after the dylib that re-exports it, so a name that this dylib
//! defines itself hides it. Re-exports are transitive, and each dylib is searched once for a name, so cycles terminate.
//!
//! Cost: without re-exports in the session, the link order; else a walk over the re-exports that include the name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::{Context, Type, TypeKind};
use brolga_linking::machine::GeneratorId;
use brolga_linking::{DylibId, Symbol};

use super::Session;
use super::dylib::Dylib;
use super::error::SessionError;
use super::names_in::Bindings;
use super::scope::{IsDefined, Scope, Seen, Visible, methods_in};

/// The names that a dylib re-exports ([`Dylib::reexport`]): functions with their modules and without types (`area`, `Shapes.area`), variables, types and C symbols.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exports {
    /// All names.
    All,
    /// Only these names.
    Only(BTreeSet<String>),
    /// All names except these.
    Except(BTreeSet<String>),
}

impl Exports {
    /// Re-exports only these names.
    pub fn only<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Exports {
        Exports::Only(names.into_iter().map(Into::into).collect())
    }

    /// Re-exports all names except these.
    pub fn except<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Exports {
        Exports::Except(names.into_iter().map(Into::into).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Exports::All => true,
            Exports::Only(names) => names.contains(name),
            Exports::Except(names) => !names.contains(name),
        }
    }
}

/// A re-export of one dylib by another.
pub(super) struct Reexport {
    /// Removing this symbol of the dylib ends the re-export.
    pub(super) symbol: Symbol,
    /// The generator that finds C symbols.
    pub(super) generator: GeneratorId,
    pub(super) from: DylibId,
    pub(super) exports: Arc<Exports>,
}

/// The link orders of a session's dylibs, and their re-exports.
#[derive(Default)]
pub(super) struct LinkOrders {
    /// The link order of each dylib, itself first.
    links: BTreeMap<DylibId, Vec<DylibId>>,
    reexports: BTreeMap<DylibId, Vec<Reexport>>,
}

impl LinkOrders {
    /// Sets the link order of a dylib.
    pub(super) fn set(&mut self, dylib: DylibId, links: impl IntoIterator<Item = DylibId>) {
        let others = links.into_iter().filter(|id| *id != dylib);
        self.links.insert(dylib, std::iter::once(dylib).chain(others).collect());
    }

    pub(super) fn add_reexport(&mut self, dylib: DylibId, reexport: Reexport) {
        self.reexports.entry(dylib).or_default().push(reexport);
    }

    /// Ends the re-export with this symbol.
    pub(super) fn remove_reexport(&mut self, dylib: DylibId, symbol: Symbol) {
        if let Some(all) = self.reexports.get_mut(&dylib) {
            all.retain(|reexport| reexport.symbol != symbol);
            if all.is_empty() {
                self.reexports.remove(&dylib);
            }
        }
    }

    /// The symbols and generators of a dylib's re-exports of another one.
    pub(super) fn reexports(&self, dylib: DylibId, from: DylibId) -> Vec<(Symbol, GeneratorId)> {
        let all = self.reexports.get(&dylib).into_iter().flatten();
        let all = all.filter(|reexport| reexport.from == from);
        all.map(|reexport| (reexport.symbol, reexport.generator)).collect()
    }

    /// The re-exports of a dylib: the other dylibs, and the names.
    pub(super) fn reexported(&self, dylib: DylibId) -> Vec<(DylibId, Arc<Exports>)> {
        let all = self.reexports.get(&dylib).into_iter().flatten();
        all.map(|reexport| (reexport.from, reexport.exports.clone())).collect()
    }

    /// Forgets a closed dylib.
    pub(super) fn forget(&mut self, dylib: DylibId) {
        self.links.remove(&dylib);
        self.reexports.remove(&dylib);
    }

    pub(super) fn has_reexports(&self) -> bool {
        !self.reexports.is_empty()
    }

    /// The dylibs in which a dylib looks up a name, itself first.
    pub(super) fn of(&self, dylib: DylibId, name: &str) -> Vec<DylibId> {
        match self.links.get(&dylib) {
            Some(links) => self.along(links, name),
            None => self.along(&[dylib], name),
        }
    }

    /// Whether a dylib looks up any name in another one.
    pub(super) fn sees(&self, dylib: DylibId, other: DylibId) -> bool {
        dylib == other || self.links.get(&dylib).is_some_and(|links| self.reached(links).contains(&other))
    }

    /// The dylibs in which a name is looked up along a link order.
    pub(super) fn along(&self, links: &[DylibId], name: &str) -> Vec<DylibId> {
        self.walk(links, |exports| exports.has(name))
    }

    /// The dylibs in which any name is looked up along a link order.
    pub(super) fn reached(&self, links: &[DylibId]) -> Vec<DylibId> {
        self.walk(links, |_| true)
    }

    fn walk(&self, links: &[DylibId], passes: impl Fn(&Exports) -> bool) -> Vec<DylibId> {
        if !self.has_reexports() {
            return links.to_vec();
        }
        let mut found = Vec::with_capacity(links.len());
        // In depth-first order: a dylib, its re-exports, the next dylib.
        let mut pending: Vec<DylibId> = links.iter().rev().copied().collect();
        while let Some(dylib) = pending.pop() {
            if found.contains(&dylib) {
                continue;
            }
            found.push(dylib);
            let passed = self.reexports.get(&dylib).into_iter().flatten();
            let passed = passed.filter(|reexport| passes(&reexport.exports)).map(|reexport| reexport.from);
            pending.extend(passed.collect::<Vec<_>>().into_iter().rev());
        }
        found
    }
}

/// The offers that a dylib is about to make, if any.
pub(super) type Soon<'a> = Option<(DylibId, &'a Scope)>;

/// The dylibs that a dylib sees, with their offers.
pub(super) struct View<'a> {
    session: &'a Session,
    /// The dylib whose view this is.
    dylib: DylibId,
    links: Vec<DylibId>,
    /// The offers that a dylib is about to make.
    soon: Soon<'a>,
    /// The dylibs of the link order: everything the dylib sees, if the session has no re-exports.
    plain: Vec<Seen<'a>>,
    has_reexports: bool,
}

impl<'a> View<'a> {
    fn new(session: &'a Session, dylib: DylibId, links: Vec<DylibId>, soon: Soon<'a>) -> View<'a> {
        let has_reexports = session.inner.owners.has_reexports();
        let view = View { session, dylib, links, soon, plain: Vec::new(), has_reexports };
        View { plain: view.seen(&view.links), ..view }
    }

    fn seen(&self, dylibs: &[DylibId]) -> Vec<Seen<'a>> {
        let seen = |&id: &DylibId| {
            let soon = self.soon.filter(|(of, _)| *of == id).map(|(_, soon)| soon);
            Some(Seen::new(id, self.session.scope(id)?, id == self.dylib, soon))
        };
        dylibs.iter().filter_map(seen).collect()
    }

    /// The dylibs in which it sees a name.
    pub(super) fn of(&self, name: &str) -> Cow<'_, [Seen<'a>]> {
        match self.has_reexports {
            false => Cow::Borrowed(&self.plain),
            true => Cow::Owned(self.seen(&self.session.inner.owners.along(&self.links, name))),
        }
    }

    /// The dylibs in which it sees a function, by the type of the function object.
    pub(super) fn of_function(&self, cx: &Context, function: Type) -> Cow<'_, [Seen<'a>]> {
        match *cx.types.kind(function) {
            TypeKind::Function(named) if self.has_reexports => self.of(&named.spelled(&cx.names)),
            _ if self.has_reexports => self.of(&cx.types.display(function).to_string()),
            _ => Cow::Borrowed(&self.plain),
        }
    }

    /// The methods of a function object that a call may reach, as [`methods_in`]. A call keeps the method to which it is bound, also if the
    /// dylib of the method is not seen any more, because its link or re-export has ended.
    pub(super) fn methods(
        &self,
        cx: &Context,
        (function, first): (Type, Option<Type>),
        is_defined: IsDefined<'_>,
        bindings: &Bindings,
    ) -> BTreeMap<Arc<str>, Visible> {
        let scopes = self.of_function(cx, function);
        let mut found = methods_in(&scopes, (function, first), is_defined, bindings);
        let is_seen = |dylib: &DylibId| scopes.iter().any(|seen| seen.dylib == *dylib);
        let unseen: BTreeSet<DylibId> = bindings.values().copied().filter(|dylib| !is_seen(dylib)).collect();
        for seen in self.seen(&unseen.into_iter().collect::<Vec<_>>()) {
            for (symbol, offer) in seen.declarations(function, first) {
                if bindings.get(&symbol) == Some(&seen.dylib) {
                    found.insert(symbol, Visible { dylib: seen.dylib, offer });
                }
            }
        }
        found
    }

    /// All dylibs in which it sees any name; [`View::sees`] decides for one name.
    pub(super) fn dylibs(&self) -> Cow<'_, [Seen<'a>]> {
        match self.has_reexports {
            false => Cow::Borrowed(&self.plain),
            true => Cow::Owned(self.seen(&self.session.inner.owners.reached(&self.links))),
        }
    }

    /// Whether it sees a name in a dylib.
    pub(super) fn sees(&self, dylib: DylibId, name: &str) -> bool {
        !self.has_reexports || self.of(name).iter().any(|seen| seen.dylib == dylib)
    }

    /// The dylib in which it sees the function with a symbol, if that may differ from the first dylib of its link order that has it.
    pub(super) fn re_exported(&self, symbol: &str) -> Option<DylibId> {
        let bare = symbol.split('(').next().filter(|_| self.has_reexports)?;
        let is_there = |seen: &&Seen<'_>| {
            seen.symbols(bare).iter().any(|known| **known == *symbol)
                && self.session.defines(seen.dylib, symbol)
        };
        let found = self.of(bare).iter().find(is_there).map(|seen| seen.dylib);
        found.filter(|id| *id != self.dylib)
    }
}

impl Session {
    /// The view of a dylib; empty if the dylib is closed.
    pub(super) fn view_of<'a>(&'a self, dylib: DylibId, soon: Soon<'a>) -> View<'a> {
        let links = self.home(dylib).and_then(|home| home.links().ok()).unwrap_or_default();
        View::new(self, dylib, links.iter().map(|link| link.dylib).collect(), soon)
    }
}

impl Dylib {
    /// The view of the dylib, with the offers that it is about to make, if any.
    ///
    /// # Errors
    /// The dylib is closed.
    pub(super) fn view<'a>(&'a self, soon: Option<&'a Scope>) -> Result<View<'a>, SessionError> {
        let (dylib, links) = (self.linking.id(), self.linking.links()?);
        let links = links.iter().map(|link| link.dylib).collect();
        Ok(View::new(&self.session, dylib, links, soon.map(|soon| (dylib, soon))))
    }
}
