//! The step that commits a batch, or fails.
//!
//! ```text
//!   reserve memory ──► under the lock of changes: is the basis unchanged? ──yes─► linking model: are its expectations true? ───yes──► offers, variables
//!                                                        │ no                                             │ no                               │
//!                                                        └──► prepared again ◄────────────────────────────┘            next world: methods, versions of cells
//!                                                                                                                                            │
//!                                                                                             without the lock: consequences, drop what was replaced
//! ```
//!
//! Changes are serialized. Nothing fails once the linking model has changed, and no foreign code runs under the lock: the consequences of the change in the linking model
//! and drops that others could observe come afterwards. What others remove meanwhile leaves the session's tables after the change (`removal.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_jit::{NoCell, Reserved, Superseded};
use brolga_linking::{Fact, Label, Name, Symbol};
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
use crate::session::target::Native;
use crate::session::type_names::NewType;

type Later = brolga_linking::Later<Native>;

/// A step that is about to be taken.
struct Step<'b, 'a> {
    batch: &'b mut Batch<'a>,
    /// Hidden symbols, each with the one of its cell.
    hidden: Vec<(Symbol, Symbol)>,
    offers: scope::Scope,
    methods: NewRows,
    /// Cells that get another version, each with reserved memory for it.
    superseded: Vec<(Reserved, Again)>,
    /// Hidden symbols that exist although their cells do not.
    busy: Vec<Symbol>,
    /// The number of the change, once it is in force.
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
    /// Commits the batch in one step. Returns the number of the change; `None` if the batch must be prepared again because its basis has
    /// changed. `overridden` are the weak functions that have existing definitions, now and when the batch was prepared.
    pub(in crate::session) fn define(
        mut self,
        overridden: &mut BTreeSet<Symbol>,
    ) -> Result<Option<u64>, SessionError> {
        let (dylib, runtime) = (self.dylib, self.dylib.session.runtime());
        let hidden = std::mem::take(&mut self.hidden);
        dylib.linking.remove_orphans(hidden.clone());
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
        let (made, later) = step.make(overridden);
        drop(later);
        step.outlast(made)?;
        let Step { number, invalidated, replaced: Replaced { versions, .. }, .. } = step;
        if number.is_some() {
            dylib.session.inner.owners.sweep(dylib.session.context());
            retire(runtime, versions);
            replaced.into_iter().for_each(|again| again.owner.reset(again.body));
            for invalidated in invalidated {
                let (function, reason) = (invalidated.function.to_string(), invalidated.to_string());
                runtime.events().tell(Event::Invalidated { function: &function, reason: &reason });
            }
        }
        Ok(number)
    }

    /// Whether the caller's definition does not name it.
    fn is_unnamed(&self, name: &Name) -> bool {
        let names = self.dylib.session.linking().names();
        name.symbol.ends_with(HOT) || self.beside.iter().any(|(symbol, _)| names.text(*symbol) == name.symbol)
    }
}

impl Step<'_, '_> {
    /// Commits the batch if it is still valid. The second result must be dropped without a lock.
    fn make(&mut self, overridden: &mut BTreeSet<Symbol>) -> (Result<bool, linking::Error>, Option<Later>) {
        let inner = &self.batch.dylib.session.inner;
        let _one_at_a_time = lock(&inner.changes);
        if !self.is_prepared(overridden) {
            return (Ok(false), None);
        }
        let change = self.change(overridden);
        let (made, later) = self.batch.dylib.linking.change(change);
        match made {
            Ok(true) => {
                self.enter();
                self.next_world();
            }
            Ok(false) => self.busy = self.left(),
            Err(_) => {}
        }
        (made, Some(later))
    }

    fn is_there(&self, symbol: Symbol) -> bool {
        let dylib = self.batch.dylib;
        dylib.session.linking().is_defined(dylib.linking.label(symbol))
    }

    /// Hidden symbols that are there although their cells are not.
    fn left(&self) -> Vec<Symbol> {
        let is_left = |(body, cell): &&(Symbol, Symbol)| self.is_there(*body) && !self.is_there(*cell);
        self.hidden.iter().filter(is_left).map(|(body, _)| *body).collect()
    }

    /// Whether the session's tables are as they were when the batch was prepared.
    fn is_prepared(&mut self, overridden: &mut BTreeSet<Symbol>) -> bool {
        let there: BTreeSet<Symbol> =
            self.batch.weak.iter().copied().filter(|symbol| self.is_there(*symbol)).collect();
        let is_same = there == *overridden;
        *overridden = there;
        let (inner, id) = (&self.batch.dylib.session.inner, self.batch.dylib.linking.id());
        let is_new = |(declared, new): &(_, Vec<NewType>)| {
            inner.types.new_in(id, &|name| inner.owners.order(id, name), declared) == *new
        };
        is_same
            && inner.owners.mean(id, &self.batch.uses)
            && self.batch.types.as_ref().is_none_or(is_new)
            && inner.edges.are_prepared(&self.batch.basis)
    }

    /// The part for the linking model, with the facts it was prepared from.
    fn change(&mut self, overridden: &BTreeSet<Symbol>) -> linking::Change<Native> {
        let batch = &mut *self.batch;
        let led = std::mem::take(&mut batch.led).into_iter();
        let mut expected: Vec<Fact<Native>> = led.map(|(symbol, to)| Fact::Ready(symbol, to)).collect();
        let weak = batch.weak.iter().map(|symbol| Fact::Defined(*symbol, overridden.contains(symbol)));
        expected.extend(weak);
        // A weak definition would yield to the body of a function that no longer exists.
        expected.extend(self.hidden.iter().map(|(body, cell)| Fact::Beside(*body, *cell)));
        linking::Change {
            units: std::mem::take(&mut batch.units),
            replace: batch.replace,
            expected,
            unused: std::mem::take(&mut batch.stale),
            stay: std::mem::take(&mut batch.stay).into_iter().collect(),
            beside: batch.beside.clone(),
        }
    }

    /// Enters the change into the session's tables.
    fn enter(&mut self) {
        let batch = &mut *self.batch;
        let (dylib, inner) = (batch.dylib, &batch.dylib.session.inner);
        let log = std::mem::take(&mut batch.log);
        if inner.shared.jit.runtime().events().is_on() {
            self.invalidated = log.iter().cloned().map(Invalidated::from).collect();
        }
        inner.owners.note(dylib.linking.id(), &batch.uses);
        let is_defined = |label: Label| dylib.session.linking().is_defined(label);
        let mut homes = lock(&inner.homes);
        if let Some(home) = homes.get_mut(&dylib.linking.id()) {
            self.replaced._offers = home.scope.sweep(|symbol| {
                let symbol = dylib.session.linking().names().find(symbol);
                symbol.is_some_and(|symbol| is_defined(dylib.linking.label(symbol)))
            });
            home.scope.take_over(std::mem::take(&mut self.offers));
            self.replaced._variables = batch.basis.variables.declare_in(&home.scope);
            let finalizers = std::mem::take(&mut batch.finalizers);
            home.finalizers.retain(|old| !finalizers.contains(old));
            home.finalizers.extend(finalizers);
        }
        drop(homes);
        self.number = Some(inner.edges.enter(&batch.basis, &mut batch.notes, log, &is_defined));
    }

    /// Methods, types and versions of cells are visible from the next world on.
    fn next_world(&mut self) {
        let (versions, superseded) = (&mut self.replaced.versions, &mut self.superseded);
        let (dylib, inner) = (self.batch.dylib.linking.id(), &self.batch.dylib.session.inner);
        let (types, former) = (self.batch.types.take(), &mut self.replaced._types);
        self.replaced._methods = inner.shared.methods.change(std::mem::take(&mut self.methods), |world| {
            if let Some((declared, new)) = types {
                *former = inner.types.declare(dylib, &declared, new, world);
            }
            let version =
                |(reserved, again): (Reserved, Again)| again.owner.supersede(reserved, world, again.body);
            versions.extend(superseded.drain(..).map(version));
        });
    }

    /// Waits for compilations that prevent the step, if the caller has not named the functions they compile. The others are an error.
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
            // A function to be replaced is being compiled, or was left partly compiled when something else failed.
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

/// The functions that these symbols name or belong to.
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
