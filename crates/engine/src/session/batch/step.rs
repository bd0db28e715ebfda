//! The step in which a batch comes into force, or does not.
//!
//! ```text
//!   reserve memory ──► under the lock of the tables: is the basis still so? ──yes──► offers, variables ──► next world: methods, versions of cells
//!                                                         │ no                              │
//!                                                         └──► prepared again               └──► without locks: drop what was replaced
//! ```
//!
//! Nothing fails once the basis has been found to be so, and no foreign code runs under the lock: what others could see die is dropped afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_jit::{NoCell, Reserved, Superseded};
use brolga_linking::{Label, Name, Symbol};
use brolga_runtime::events::Event;
use brolga_runtime::objects::Methods;

use super::{Again, Batch};
use crate::session::cells::retire;
use crate::session::error::SessionError;
use crate::session::invalidation::Invalidated;
use crate::session::lazy::{BODY, HOT};
use crate::session::linking;
use crate::session::method_table::NewRows;
use crate::session::offer::Offer;
use crate::session::scope::{self, Variable};
use crate::session::sync::lock;
use crate::session::type_names::NewType;

/// A step that is about to be made.
struct Step<'b, 'a> {
    batch: &'b mut Batch<'a>,
    /// Hidden symbols, each with the one of its cell.
    hidden: Vec<(Symbol, Symbol)>,
    offers: scope::Scope,
    methods: NewRows,
    /// Cells that get another version, each with memory for it.
    superseded: Vec<(Reserved, Again)>,
    /// Hidden symbols that are there although their cells are not.
    busy: Vec<Symbol>,
    /// The number of the change, when it has come into force.
    number: Option<u64>,
    /// Reported to listeners afterwards.
    invalidated: Vec<Invalidated>,
    replaced: Replaced,
}

/// The replaced versions, methods, offers and variables, to be dropped when no lock is held.
#[derive(Default)]
struct Replaced {
    versions: Vec<Superseded>,
    _methods: Vec<Methods>,
    _offers: Vec<Offer>,
    _variables: Vec<Variable>,
    _types: Vec<Arc<Context>>,
}

impl Batch<'_> {
    /// Lets all of it come into force in one step. Says under which number; nothing if it is to be prepared again, because what it was
    /// prepared from is not so any more. `overridden` are the weak functions that were found to be there, now and when it was prepared.
    pub(in crate::session) fn define(
        mut self,
        overridden: &mut BTreeSet<Symbol>,
    ) -> Result<Option<u64>, SessionError> {
        let (dylib, runtime) = (self.dylib, self.dylib.session.runtime());
        let hidden = std::mem::take(&mut self.hidden);
        let change = linking::Change {
            units: std::mem::take(&mut self.units),
            replace: self.replace,
            orphans: hidden.clone(),
            unused: std::mem::take(&mut self.stale),
            stay: std::mem::take(&mut self.stay),
            beside: self.beside.clone(),
        };
        // Memory is reserved before the step, in which nothing may fail.
        let (replaced, superseded): (Vec<Again>, Vec<Again>) =
            std::mem::take(&mut self.again).into_iter().partition(|again| again.is_replaced);
        let reserve = |again: Again| Ok((again.owner.reserve()?, again));
        let mut step = Step {
            hidden,
            offers: std::mem::take(&mut self.offers),
            methods: std::mem::take(&mut self.methods),
            superseded: superseded.into_iter().map(reserve).collect::<Result<_, NoCell>>()?,
            busy: Vec::new(),
            number: None,
            invalidated: Vec::new(),
            replaced: Replaced::default(),
            batch: &mut self,
        };
        let made = dylib.linking.change(change, |is_defined| step.is_made(is_defined, overridden));
        step.outlast(made)?;
        let Step { number, invalidated, replaced: Replaced { versions, .. }, .. } = step;
        if number.is_some() {
            retire(runtime, versions);
            replaced.into_iter().for_each(|again| again.owner.reset(again.body));
            for invalidated in invalidated {
                let (function, reason) = (invalidated.function.to_string(), invalidated.to_string());
                runtime.events().tell(Event::Invalidated { function: &function, reason: &reason });
            }
        }
        Ok(number)
    }

    /// Whether the definition did not request it.
    fn is_unnamed(&self, name: &Name) -> bool {
        let names = self.dylib.session.linking().names();
        name.symbol.ends_with(HOT) || self.beside.iter().any(|(symbol, _)| names.text(*symbol) == name.symbol)
    }
}

impl Step<'_, '_> {
    /// Puts the batch into force, if it is still valid. Called under the lock of the session's tables.
    fn is_made(&mut self, is_defined: &dyn Fn(Label) -> bool, overridden: &mut BTreeSet<Symbol>) -> bool {
        if self.is_prepared(is_defined, overridden) {
            self.agree(is_defined);
        }
        if self.number.is_some() {
            let (versions, superseded) = (&mut self.replaced.versions, &mut self.superseded);
            let (dylib, inner) = (self.batch.dylib.linking.id(), &self.batch.dylib.session.inner);
            let (types, former) = (self.batch.types.take(), &mut self.replaced._types);
            self.replaced._methods =
                inner.shared.methods.change(std::mem::take(&mut self.methods), |world| {
                    if let Some((declared, new)) = types {
                        *former = inner.types.declare(dylib, &declared, new, world);
                    }
                    let version = |(reserved, again): (Reserved, Again)| {
                        again.owner.supersede(reserved, world, again.body)
                    };
                    versions.extend(superseded.drain(..).map(version));
                });
        }
        self.number.is_some()
    }

    /// Whether the symbols lead where they led when the batch was prepared.
    fn is_prepared(&mut self, is_defined: &dyn Fn(Label) -> bool, overridden: &mut BTreeSet<Symbol>) -> bool {
        let dylib = self.batch.dylib;
        let is_there = |symbol: &Symbol| is_defined(dylib.linking.label(*symbol));
        // A weak definition would yield to the body of a function that is gone.
        let is_left = |(body, cell): &&(Symbol, Symbol)| is_there(body) && !is_there(cell);
        self.busy = self.hidden.iter().filter(is_left).map(|(body, _)| *body).collect();
        let there: BTreeSet<Symbol> = self.batch.weak.iter().copied().filter(is_there).collect();
        let is_same = there == *overridden && self.busy.is_empty();
        *overridden = there;
        let (inner, id) = (&dylib.session.inner, dylib.linking.id());
        let is_new = |(declared, new): &(_, Vec<NewType>)| {
            inner.types.new_in(&inner.owners.order(id), declared) == *new
        };
        let is_meant =
            inner.owners.mean(id, &self.batch.uses) && self.batch.types.as_ref().is_none_or(is_new);
        is_same && is_meant && self.batch.led.iter().all(|(symbol, to)| dylib.linking.ready(*symbol) == *to)
    }

    /// Enters the change into the session's records, unless its basis has changed.
    fn agree(&mut self, is_defined: &dyn Fn(Label) -> bool) {
        let batch = &mut *self.batch;
        let (dylib, inner) = (batch.dylib, &batch.dylib.session.inner);
        let log = std::mem::take(&mut batch.log);
        if inner.shared.jit.runtime().events().is_on() {
            self.invalidated = log.iter().cloned().map(Invalidated::from).collect();
        }
        let (offers, finalizers) = (std::mem::take(&mut self.offers), std::mem::take(&mut batch.finalizers));
        let (basis, uses, replaced) = (&batch.basis, &batch.uses, &mut self.replaced);
        let offer = |is_defined: &dyn Fn(Label) -> bool| {
            inner.owners.note(dylib.linking.id(), uses);
            let mut homes = lock(&inner.homes);
            let Some(home) = homes.get_mut(&dylib.linking.id()) else { return };
            replaced._offers = home.scope.sweep(|symbol| {
                let symbol = dylib.session.linking().names().find(symbol);
                symbol.is_some_and(|symbol| is_defined(dylib.linking.label(symbol)))
            });
            home.scope.take_over(offers);
            replaced._variables = basis.variables.declare_in(&home.scope);
            home.finalizers.retain(|old| !finalizers.contains(old));
            home.finalizers.extend(finalizers);
        };
        self.number = inner.edges.agree(basis, &mut batch.notes, log, is_defined, offer);
    }

    /// Waits for compilations that prevent the step, if the caller has not named what they compile. The others are the error.
    fn outlast(&mut self, made: Result<bool, linking::Error>) -> Result<(), SessionError> {
        let (dylib, linking) = (self.batch.dylib, self.batch.dylib.session.linking());
        let is_hidden =
            |name: &Name| self.hidden.iter().any(|(symbol, _)| linking.names().text(*symbol) == name.symbol);
        match made {
            // The caller has named neither the second tier nor inliners, so it is not refused because they are being compiled. A compilation
            // under way may have seen the former state.
            Err(linking::Error::Busy { symbols })
                if self.batch.replace && symbols.iter().all(|name| self.batch.is_unnamed(name)) =>
            {
                dylib.outlast(&symbols)?;
            }
            // Nor has the caller named the body of a function that was removed while it was being compiled.
            Err(linking::Error::Duplicate { symbols }) if symbols.iter().all(is_hidden) => {
                dylib.outlast(&symbols)?;
            }
            // A function to be replaced is being compiled, or was left half compiled when something else failed.
            Err(linking::Error::Busy { symbols }) if self.batch.replace => {
                if dylib.outlast(&symbols).is_err() {
                    return Err(linking::Error::Busy { symbols: functions(symbols) }.into());
                }
            }
            Err(linking::Error::Duplicate { symbols }) => {
                return Err(linking::Error::Duplicate { symbols: functions(symbols) }.into());
            }
            made => drop(made?),
        }
        let busy: Vec<Name> =
            self.busy.iter().map(|symbol| linking.name(dylib.linking.label(*symbol))).collect();
        dylib.outlast(&busy)
    }
}

/// The functions that these symbols are, or belong to.
fn functions(mut symbols: Vec<Name>) -> Vec<Name> {
    for name in &mut symbols {
        let function = [BODY, HOT].into_iter().find_map(|kind| name.symbol.strip_suffix(kind));
        if let Some(function) = function {
            name.symbol = function.into();
        }
    }
    symbols.sort();
    symbols.dedup();
    symbols
}
