//! Definitions that are being put together, and how they go into the tables of a dylib.
//!
//! | part | what becomes of it |
//! |---|---|
//! | units | defined, all or none; a function to be replaced that is being compiled refuses all of them |
//! | slots that are there | keep their places; they get other bodies, and their symbols the tracker of the definitions |
//! | functions that have taken in what changes (`inlined.rs`) | get bodies made from what they have now, in the same step, beside their slots |
//! | names and types | offered to programs that are read from now on |

use std::sync::Arc;

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::SlotOwner;
use brolga_session::{Label, MaterializationUnit, Symbol, SymbolFlags, Unit};

use super::dylib::Dylib;
use super::error::SessionError;
use super::inlined::{Caller, Hit, Invalidated};
use super::later::Redefined;
use super::lazy::{BODY, Body, HOT, Hot, Stub};
use super::linking;
use super::plan::lock;
use super::profile::Profile;
use super::scope::{self, import};
use super::target::Native;
use super::unit::{Functions, Loaded, Stage, Whole};
use crate::program::check_built;

/// A function that is made anew, and why.
struct Anew {
    label: Label,
    module: Module,
    id: FuncId,
    whole: Arc<Whole>,
    tiers: Option<(i32, u32)>,
    because: Invalidated,
}

/// Definitions that are being put together.
pub(super) struct Batch<'a> {
    dylib: &'a Dylib,
    replace: bool,
    tracker: Option<&'a linking::Tracker<Native>>,
    units: Vec<Unit<Native>>,
    pub(super) offers: scope::Scope,
    /// Functions that are made anew.
    anew: Vec<Anew>,
    /// Bodies of those, each with the symbol of its slot.
    beside: Vec<(Symbol, Symbol)>,
    /// What a dylib will offer, if it is another one than this.
    pub(super) sees_anew: Option<(linking::DylibId, Arc<scope::Scope>)>,
    /// Slots that stay and get other bodies.
    again: Vec<(Arc<SlotOwner>, Arc<Body>)>,
    /// The symbols of those.
    stay: Vec<Symbol>,
    /// Second tiers that the functions had before, if they had any, and do not have now.
    stale: Vec<Symbol>,
    /// Hidden symbols of the functions that lie behind slots.
    hidden: Vec<(Symbol, [Symbol; 2])>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        dylib: &'a Dylib,
        replace: bool,
        tracker: Option<&'a linking::Tracker<Native>>,
    ) -> Self {
        let offers = scope::Scope::default();
        Batch {
            dylib,
            replace,
            tracker,
            units: Vec::new(),
            offers,
            anew: Vec::new(),
            beside: Vec::new(),
            sees_anew: None,
            again: Vec::new(),
            stay: Vec::new(),
            hidden: Vec::new(),
            stale: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, unit: Box<dyn MaterializationUnit<Native>>) {
        self.units.push(unit.into());
    }

    /// A slot for a function. Says what its body is to be defined as.
    pub(super) fn stub(
        &mut self,
        name: &Arc<str>,
        flags: SymbolFlags,
        ty: FunctionType,
        hot: Option<Hot>,
    ) -> (Symbol, SymbolFlags) {
        let session = &self.dylib.session;
        let (linking, shared) = (session.linking(), &session.inner.shared);
        let symbol = linking.intern(name);
        let body = linking.intern(&format!("{name}{BODY}"));
        self.offers.set_lazy([name.clone()]);
        if self.replace && hot.is_none() {
            self.stale.extend(linking.names().find(&format!("{name}{HOT}")));
        }
        let label = self.dylib.linking.label(symbol);
        self.hidden.push((symbol, [body, linking.intern(&format!("{name}{HOT}"))]));
        // A slot that the name does not lead to any more is that of another function, whose callers keep it.
        let leads_to = self.dylib.linking.ready(symbol).filter(|_| self.replace);
        let there = shared.slots.owner(label).filter(|owner| leads_to == Some(Arc::as_ptr(owner).addr()));
        match there.filter(|owner| *owner.slot().ty() == ty) {
            Some(owner) => {
                self.stay.push(symbol);
                self.again.push((owner, Body::new(shared, linking, label.dylib, body, hot)));
            }
            None => self.add(Box::new(Stub { shared: shared.clone(), symbol, flags, body, hot, ty })),
        }
        (body, flags.without(SymbolFlags::EXPORTED))
    }

    /// What the dylib will offer.
    pub(super) fn scope(&self) -> Option<Arc<scope::Scope>> {
        let homes = lock(&self.dylib.session.inner.homes);
        Some(Arc::new(homes.get(&self.dylib.linking.id())?.scope.with(&self.offers)))
    }

    /// Makes functions anew that are there and have taken in what changes.
    pub(super) fn make_anew(
        &mut self,
        hits: Vec<Hit>,
        scope: &Arc<scope::Scope>,
        redefined: &mut Redefined,
    ) -> Result<(), SessionError> {
        let (dylib, session) = (self.dylib, &self.dylib.session);
        let there = dylib.known(hits.iter().map(|hit| hit.label.symbol));
        let changed = self.sees_anew.as_ref().map_or(dylib.linking.id(), |(id, _)| *id);
        let links = dylib.linking.links()?;
        for hit in hits {
            if !there.contains(&hit.label.symbol) {
                // It was removed, by its tracker or by name.
                session.inner.inlined.forget(hit.label);
                continue;
            }
            let scopes: Vec<Arc<scope::Scope>> = links
                .iter()
                .flat_map(|link| match link.dylib == changed {
                    true => vec![scope.clone()],
                    false => session.scopes(&[*link]),
                })
                .collect();
            let Caller { symbol: name, func, globals, whole, tiers, .. } = hit.caller;
            let mut module = Module::new(session.context().clone());
            let Ok(id) = module.add_func(func) else { continue };
            if globals.into_iter().any(|global| module.add_global(global).is_err()) {
                continue;
            }
            let lazy = import(&mut module, &scopes, &|symbol| {
                self.offers.knows(symbol) || dylib.is_known(session.linking().intern(symbol), &links)
            });
            // One for which what has changed has another type now keeps what it has.
            if check_built(&module, 1).is_err() {
                redefined.kept.push(session.linking().name(hit.label));
                continue;
            }
            let (linking, shared) = (session.linking(), &session.inner.shared);
            let whole = Arc::new(whole.again(lazy, &module));
            let body = linking.intern(&format!("{name}{BODY}"));
            // What is interpreted instead shows what was there before.
            let hot = tiers.map(|(calls, _)| dylib.hot(&name, calls, None));
            let rounds = tiers.map_or(0, |(_, rounds)| rounds);
            let stages = match &hot {
                None => vec![(Stage::Only, body)],
                Some(hot) => vec![(Stage::First { rounds }, body), (Stage::Second, hot.body)],
            };
            let profile = hot.as_ref().and_then(|_| Profile::number(shared, &mut module));
            for (stage, symbol) in stages {
                let loaded = Arc::new(Loaded::new(
                    shared,
                    module.clone(),
                    &[id],
                    whole.clone(),
                    stage,
                    profile.clone(),
                ));
                let symbols = vec![(symbol, SymbolFlags::CALLABLE)];
                self.add(Box::new(Functions { shared: shared.clone(), loaded, ids: vec![id], symbols }));
                self.beside.push((symbol, hit.label.symbol));
            }
            // Nobody has looked, perhaps: the slot is made now, so that it gets this body and no older one.
            let _ = dylib.linking.lookup([hit.label.symbol]).wait();
            let leads_to = dylib.linking.ready(hit.label.symbol);
            let owner = shared.slots.owner(hit.label);
            if let Some(owner) = owner.filter(|owner| leads_to == Some(Arc::as_ptr(owner).addr())) {
                self.again.push((owner, Body::new(shared, linking, hit.label.dylib, body, hot)));
            }
            let because = Invalidated { function: linking.name(hit.label), because: hit.because };
            self.anew.push(Anew { label: hit.label, module, id, whole, tiers, because });
        }
        Ok(())
    }

    /// Whether it is something that whoever defines has not asked for.
    fn is_unnamed(&self, name: &linking::Name) -> bool {
        let linking = self.dylib.session.linking();
        let is_beside = |(symbol, _): &(Symbol, Symbol)| linking.names().text(*symbol) == name.symbol;
        name.symbol.ends_with(HOT) || self.beside.iter().any(is_beside)
    }

    pub(super) fn define(mut self, finalizers: Vec<String>) -> Result<(), SessionError> {
        let dylib = self.dylib;
        let mut units = std::mem::take(&mut self.units);
        let mut tracked = Ok(());
        if self.replace {
            // Nobody has named the second tier, nor who has taken something in: that they are just being compiled is no reason to
            // refuse.
            while let Err((error, refused)) = dylib.linking.try_redefine(units, self.tracker) {
                match &error {
                    linking::Error::Busy { symbols } if symbols.iter().all(|name| self.is_unnamed(name)) => {
                        dylib.outlast(symbols)?;
                    }
                    _ => return Err(error.into()),
                }
                units = refused;
            }
            // If a tracker has gone meanwhile, what it tracks has gone with it; all else is in force.
            tracked = dylib.linking.retrack(self.stay, self.tracker);
            tracked = tracked.and_then(|()| dylib.linking.retrack_beside(self.beside));
        } else {
            // Bodies whose function was removed alone, by the tracker of its slot.
            let left = dylib.known(self.hidden.iter().flat_map(|(_, hidden)| *hidden));
            if !left.is_empty() {
                let there = dylib.known(self.hidden.iter().map(|(symbol, _)| *symbol));
                let gone = self.hidden.iter().filter(|(symbol, _)| !there.contains(symbol));
                let gone = gone.flat_map(|(_, hidden)| *hidden).filter(|symbol| left.contains(symbol));
                dylib.linking.remove(gone.collect::<Vec<Symbol>>())?;
            }
            dylib.linking.define_all(units, self.tracker)?;
        }
        for (owner, body) in self.again {
            body.take_over(&owner);
        }
        for symbol in dylib.known(self.stale.into_iter()) {
            // Nothing leads there any more. What is being compiled at this moment cannot be removed, and goes with the function.
            let _ = dylib.linking.remove([symbol]);
        }
        for Anew { label, module, id, whole, tiers, because } in self.anew {
            dylib.session.inner.inlined.note(label, (&module, id), &whole, tiers, &mut None);
            dylib.session.inner.inlined.log(because);
        }
        if let Some(home) = lock(&dylib.session.inner.homes).get_mut(&dylib.linking.id()) {
            home.scope.take_over(self.offers);
            home.finalizers.retain(|old| !finalizers.contains(old));
            home.finalizers.extend(finalizers);
        }
        Ok(tracked?)
    }
}
