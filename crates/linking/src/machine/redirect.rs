//! Redirectable symbols: calls go through a slot, and the slot's target can change.
//!
//! ```text
//!   caller ──► stub (the symbol's fixed address) ──────► slot ──► armed: calls the session  ◄─┐ the target lost
//!                                                          └────► bound: the target's code  ──┘ its name
//! ```
//!
//! The target of a slot is always ready. The slot is not a user of its target: when the target is removed or replaced, the
//! slot is armed again, so its next call finds the new definition or reports that there is none. A lazy re-export is a
//! redirectable symbol with an aliasee: binding looks the aliasee up and redirects the slot.

use super::{Dependence, Event, Machine, Parts, Read, SlotRecord, SlotStore, State, Version, push_swept};
use crate::error::Error;
use crate::flags::{Link, Priority};
use crate::ids::{Label, Symbol};

/// Leads the slot of a redirectable symbol to another symbol, which is ready.
pub struct Redirect<P: Parts> {
    /// The redirectable symbol.
    pub label: Label,
    /// The target.
    pub to: Label,
    /// The version that is meant; none for whichever there is.
    pub version: Option<Version<P>>,
}

impl<P: Parts> Event<P> for Redirect<P> {
    /// Whether the slot was led somewhere for the first time.
    type Reply = Result<bool, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let missing = |machine: &Machine<P>| Error::NotFound { symbols: machine.names_of([self.label]) };
        let slot = machine.find(self.label).ok_or_else(|| missing(machine))?;
        machine.start(slot, Priority::Normal);
        let there =
            machine.find(self.to).filter(|there| self.version.is_none_or(|version| version == *there));
        let Some((target, entry)) = there.and_then(|there| Some((there, machine.entries.get(there)?))) else {
            return Err(Error::NotReady { symbols: machine.names_of([self.to]) });
        };
        let State::Ready(Some(address)) = entry.state else {
            return Err(Error::NotReady { symbols: machine.names_of([self.to]) });
        };
        let unit = machine.entries.get(slot).map(|entry| entry.unit);
        let Some(record) = unit.and_then(|unit| machine.units.get_mut(unit)?.slot.as_mut()) else {
            return Err(Error::NotRedirectable { symbols: machine.names_of([self.label]) });
        };
        let first = !std::mem::replace(&mut record.was_bound, true);
        if record.target.replace(target) != Some(target) {
            record.serial += 1;
            let store = SlotStore { slot: record.slot.clone(), target: Some(address), serial: record.serial };
            machine.effects.slots.push(store);
            let mut all = std::mem::take(&mut machine.slots);
            push_swept(all.entry(target).or_default(), slot, |slot| machine.leads_to(slot, target));
            machine.slots = all;
        }
        Ok(first)
    }
}

/// The target of a lazy re-export.
pub struct Aliasee(pub Label);

impl<P: Parts> Event<P> for Aliasee {
    type Reply = Result<(Link, Symbol), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let version =
            machine.find(self.0).ok_or_else(|| Error::NotFound { symbols: machine.names_of([self.0]) })?;
        machine.start(version, Priority::Blocking);
        machine
            .record(version)
            .and_then(|record| record.aliasee)
            .ok_or_else(|| Error::NotRedirectable { symbols: machine.names_of([self.0]) })
    }
}

/// Where a label leads now, if it is the version that is meant.
pub struct Leads<P: Parts>(pub Dependence<P>);

impl<P: Parts> Read<P> for Leads<P> {
    type Reply = Option<P::Address>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        let Leads(Dependence { label, version }) = self;
        let there = machine.find(label).filter(|there| version.is_none_or(|version| version == *there))?;
        match &machine.entries.get(there)?.state {
            State::Resolved(address, _) => Some(*address),
            State::Emitted(address, _) | State::Ready(address) => *address,
            State::NeverSearched | State::Materializing(_) | State::Failed(_) => None,
        }
    }
}

/// Whether a label leads anywhere, ready or not.
pub struct IsDefined(pub Label);

impl<P: Parts> Read<P> for IsDefined {
    type Reply = bool;

    fn read(self, machine: &Machine<P>) -> bool {
        machine.find(self.0).is_some()
    }
}

impl<P: Parts> Machine<P> {
    fn record(&self, slot: Version<P>) -> Option<&SlotRecord<P>> {
        self.units.get(self.entries.get(slot)?.unit)?.slot.as_ref()
    }

    fn leads_to(&self, slot: Version<P>, target: Version<P>) -> bool {
        self.record(slot).is_some_and(|record| record.target == Some(target))
    }

    /// `target` has lost its name: the slot, if it leads there, asks the session again.
    pub(super) fn arm_slot(&mut self, slot: Version<P>, target: Version<P>) {
        let Some(unit) = self.entries.get(slot).map(|entry| entry.unit) else { return };
        let Some(record) = self.units.get_mut(unit).and_then(|unit| unit.slot.as_mut()) else { return };
        if record.target == Some(target) {
            record.target = None;
            record.serial += 1;
            let store = SlotStore { slot: record.slot.clone(), target: None, serial: record.serial };
            self.effects.slots.push(store);
        }
    }
}
