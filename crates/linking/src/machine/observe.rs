//! Records events of symbols, for an observer.
//!
//! ```text
//!   Defined ──► Started ──► Resolved ──► Emitted, with what it waits for ──► Ready ──► Removed
//!                  └───────────┴────────────────┴──► Failed
//! ```
//!
//! A symbol that is made again after a failure is started again. Nothing is recorded without an observer. The
//! events of a step are numbered in order under the lock and delivered after it, so an observer that receives
//! two steps from two threads can sort by the numbers.

use std::sync::Arc;

use super::{Event, Machine, Parts, Version};
use crate::error::{Failure, Name};

/// An event in the life of a symbol.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observed {
    /// Its number among the events of the session.
    pub number: u64,
    /// The symbol.
    pub name: Name,
    /// Whether it concerns only a [part](crate::SymbolPart) of the symbol, such as the body of a function.
    pub is_part: bool,
    pub happened: Happened,
}

/// See [`Observed`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happened {
    /// It was defined.
    Defined,
    /// Its materialization begins.
    Started,
    /// It has an address.
    Resolved,
    /// Its memory is final.
    Emitted {
        /// The symbols that it needs and that are not ready.
        waits_for: Vec<Name>,
    },
    /// It may be used.
    Ready,
    /// It could not be made.
    Failed(Arc<Failure>),
    /// Its name no longer leads to this definition: it was removed, replaced or overridden.
    Removed,
}

/// Starts or stops recording events.
pub struct Observe(pub bool);

impl<P: Parts> Event<P> for Observe {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.is_observed = self.0;
    }
}

impl<P: Parts> Machine<P> {
    /// Records an event, if there is an observer.
    pub(super) fn observe(&mut self, version: Version<P>, happened: impl FnOnce(&Machine<P>) -> Happened) {
        if !self.is_observed {
            return;
        }
        let is_part = self.entries.get(version).is_some_and(|entry| entry.label.symbol.is_part());
        let (happened, name) = (happened(self), self.names_of_versions(&[version]).pop());
        self.observed += 1;
        let number = self.observed;
        let event = |name| Observed { number, name, is_part, happened };
        self.effects.observed.extend(name.map(event));
    }

    /// The symbols that an emitted one waits for.
    pub(super) fn waits_for(&self, needs: &[Version<P>]) -> Happened {
        let is_waited_for = |version: &Version<P>| {
            self.entries.get(*version).is_some_and(|entry| entry.state.waiting().is_some())
        };
        let needs: Vec<Version<P>> = needs.iter().copied().filter(is_waited_for).collect();
        Happened::Emitted { waits_for: self.names_of_versions(&needs) }
    }
}
