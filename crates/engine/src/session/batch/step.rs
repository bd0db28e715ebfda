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
use brolga_linking::{Fact, Label, Symbol};
use brolga_runtime::events::Event;
use brolga_runtime::objects::Methods;

use super::{Again, Batch};
use crate::session::cells::retire;
use crate::session::error::SessionError;
use crate::session::invalidation::Invalidated;
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
    offers: scope::Scope,
    methods: NewRows,
    /// Cells that get another version, each with reserved memory for it.
    superseded: Vec<(Reserved, Again)>,
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
        // Memory is reserved before the step, in which nothing may fail.
        let (replaced, superseded): (Vec<Again>, Vec<Again>) =
            std::mem::take(&mut self.again).into_iter().partition(|again| again.is_replaced);
        let reserve = |again: Again| Ok((again.owner.reserve()?, again));
        let mut step = Step {
            offers: std::mem::take(&mut self.offers),
            methods: std::mem::take(&mut self.methods),
            superseded: superseded.into_iter().map(reserve).collect::<Result<_, NoCell>>()?,
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
        if let Ok(true) = made {
            self.enter();
            self.next_world();
        }
        (made, Some(later))
    }

    fn is_there(&self, symbol: Symbol) -> bool {
        let dylib = self.batch.dylib;
        dylib.session.linking().is_defined(dylib.linking.label(symbol))
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
        expected.extend(batch.recompiled.iter().map(|symbol| Fact::Defined(*symbol, true)));
        linking::Change {
            units: std::mem::take(&mut batch.units),
            replace: batch.replace,
            expected,
            unused: std::mem::take(&mut batch.stale),
            stay: std::mem::take(&mut batch.stay).into_iter().collect(),
            others: std::mem::take(&mut batch.recompiled),
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
            self.replaced._offers.extend(home.scope.take_over(std::mem::take(&mut self.offers)));
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

    /// Waits for compilations that prevent the step: functions to be replaced, overridden or recompiled are being compiled, or were left partly
    /// compiled when something else failed. A compilation under way may have seen the former state.
    fn outlast(&mut self, made: Result<bool, linking::Error>) -> Result<(), SessionError> {
        match made {
            Err(linking::Error::Busy { symbols }) => match self.batch.dylib.outlast(&symbols) {
                Ok(()) => Ok(()),
                Err(_) => Err(linking::Error::Busy { symbols }.into()),
            },
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }
}
