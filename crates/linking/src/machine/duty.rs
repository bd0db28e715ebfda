//! A materializer's reports to the session about its unit.
//!
//! ```text
//!   work ──► (claim · delegate · hand back · attach)* ──► resolve ──► emit ──► done
//!                              ├──────────────────── fail ─────────────────► done
//!                              └────────────────── complete ───────────────► done; an error if a version it is linked to has lost its name
//! ```
//!
//! Every event about a unit that was removed in the meantime is answered with [`Error::Removed`]. Emission is
//! in `emit.rs`.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::graph::Node;
use super::{Event, Found, Machine, Parts, Phase, Read, Source, State, Unit, UnitId, Version};
use crate::error::{Cause, Error};
use crate::flags::{Link, Priority, SymbolFlags};
use crate::ids::{DylibId, Label, Symbol};

/// A symbol that emitted code refers to.
pub struct Dependence<P: Parts> {
    pub label: Label,
    /// The version that the code was linked against; `None` for the current one.
    pub version: Option<Version<P>>,
}

impl<P: Parts> Clone for Dependence<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Parts> Copy for Dependence<P> {}

impl<P: Parts> From<Label> for Dependence<P> {
    fn from(label: Label) -> Self {
        Dependence { label, version: None }
    }
}

impl<P: Parts> From<super::Found<P>> for Dependence<P> {
    fn from(found: super::Found<P>) -> Self {
        Dependence { label: found.label, version: Some(found.version) }
    }
}

/// Sets the addresses of symbols of a unit.
pub struct Resolve<P: Parts> {
    pub unit: UnitId<P>,
    /// Some of its symbols, without duplicates.
    pub addresses: Vec<(Symbol, P::Address)>,
}

impl<P: Parts> Event<P> for Resolve<P> {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let mut seen = FxHashSet::default();
        let mut versions = Vec::with_capacity(self.addresses.len());
        let mut wrong = Vec::new();
        for (symbol, address) in self.addresses {
            match machine.own(self.unit, symbol)? {
                Ok(version)
                    if seen.insert(version)
                        && machine.entries.get(version).is_some_and(|entry| {
                            matches!(entry.state, State::Materializing(_))
                                && !entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY)
                        }) =>
                {
                    versions.push((version, address));
                }
                Ok(_) => wrong.push(machine.label_in(self.unit, symbol)?),
                Err(label) => wrong.push(label),
            }
        }
        if !wrong.is_empty() {
            return Err(Error::NotResponsible { symbols: machine.names_of(wrong) });
        }
        for (version, address) in versions {
            machine.resolve_entry(version, address);
        }
        Ok(())
    }
}

/// Fails a unit. Does nothing if it was removed.
pub struct Fail<P: Parts> {
    pub unit: UnitId<P>,
    pub cause: Cause,
}

impl<P: Parts> Event<P> for Fail<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.fail_unit(self.unit, self.cause);
    }
}

/// Passes code to a unit that is being materialized; it is returned when the unit fails or is removed.
pub struct Attach<P: Parts> {
    pub unit: UnitId<P>,
    pub code: P::Code,
}

impl<P: Parts> Event<P> for Attach<P> {
    type Reply = Result<(), P::Code>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        match machine.units.get_mut(self.unit) {
            Some(unit) => {
                unit.codes.push(self.code);
                Ok(())
            }
            None => Err(self.code),
        }
    }
}

/// Makes a unit responsible for symbols introduced during its materialization. Weak ones that already exist
/// are not claimed.
pub struct Claim<P: Parts> {
    pub unit: UnitId<P>,
    pub symbols: Vec<(Symbol, SymbolFlags)>,
}

impl<P: Parts> Event<P> for Claim<P> {
    /// The claimed symbols.
    type Reply = Result<Vec<Symbol>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (node, dylib) = machine.materializing(self.unit)?;
        let mut seen = FxHashSet::default();
        let mut twice = Vec::new();
        for &(symbol, flags) in &self.symbols {
            let label = Label { dylib, symbol };
            let there = machine.find(label).and_then(|version| machine.entries.get(version));
            let gives_way = |flags: SymbolFlags| flags.has(SymbolFlags::WEAK);
            let clash = there.is_some_and(|entry| {
                !(gives_way(flags) || gives_way(entry.flags) && matches!(entry.state, State::NeverSearched))
            });
            if clash || !seen.insert(symbol) {
                twice.push(label);
            }
        }
        if !twice.is_empty() {
            return Err(Error::Duplicate { symbols: machine.names_of(twice) });
        }
        let held = machine.hold(self.symbols.iter().map(|(symbol, _)| *symbol))?;
        let mut claimed = Vec::new();
        for (symbol, flags) in self.symbols {
            let label = Label { dylib, symbol };
            if let Some(there) = machine.find(label) {
                if flags.has(SymbolFlags::WEAK) {
                    continue;
                }
                machine.give_way(there);
            }
            let version = machine.new_entry(label, flags, self.unit, State::NeverSearched);
            let port = machine.graph.port(node, version);
            if let Some(entry) = machine.entries.get_mut(version) {
                entry.state = State::Materializing(super::Pending { port, waiters: SmallVec::new() });
            }
            claimed.push(symbol);
        }
        machine.release(held);
        Ok(claimed)
    }
}

/// Splits symbols without addresses off into their own unit, with the same tracker.
pub struct Delegate<P: Parts> {
    pub unit: UnitId<P>,
    pub symbols: Vec<Symbol>,
}

impl<P: Parts> Event<P> for Delegate<P> {
    /// The new unit; the receiver is responsible for it.
    type Reply = Result<UnitId<P>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (unit, _) = machine.split(self.unit, &self.symbols)?;
        Ok(unit)
    }
}

/// Returns symbols without addresses, to be materialized by another source: immediately if a lookup waits for
/// one of them, otherwise on the next lookup.
pub struct HandBack<P: Parts> {
    pub unit: UnitId<P>,
    pub symbols: Vec<Symbol>,
    /// How they are materialized.
    pub source: P::Source,
}

impl<P: Parts> Event<P> for HandBack<P> {
    type Reply = Result<(), (Error, P::Source)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (unit, versions) = match machine.split(self.unit, &self.symbols) {
            Ok(split) => split,
            Err(error) => return Err((error, self.source)),
        };
        if versions.iter().any(|version| machine.is_wanted(*version)) {
            let priority = Priority::Normal;
            machine.effects.work.push(super::Work { unit, source: self.source, lost: Vec::new(), priority });
            return Ok(());
        }
        machine.put_back(unit, versions, self.source, Vec::new());
        Ok(())
    }
}

/// Queries whether a unit whose work was queued is still to be materialized. Returns its source if so. A unit
/// that no lookup waits for any more is made on the next lookup.
pub struct Begin<P: Parts> {
    pub unit: UnitId<P>,
    /// How it is materialized.
    pub source: P::Source,
    /// Its symbols that are overridden by other definitions.
    pub lost: Vec<Symbol>,
}

impl<P: Parts> Event<P> for Begin<P> {
    type Reply = Option<(P::Source, Vec<Symbol>)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let Begin { unit, source, lost } = self;
        if machine.materializing(unit).is_err() {
            machine.effects.dropped.push((source, lost));
            return None;
        }
        let versions = machine.units.get(unit).map(|unit| unit.entries.to_vec()).unwrap_or_default();
        if versions.iter().any(|version| machine.is_wanted(*version)) {
            return Some((source, lost));
        }
        machine.put_back(unit, versions, source, lost);
        None
    }
}

/// The symbols that a unit is responsible for, without addresses.
pub struct Duty<P: Parts>(pub Vec<Found<P>>);

/// Queries what a unit is responsible for, and which of it lookups wait for.
pub struct Requested<P: Parts> {
    pub unit: UnitId<P>,
    /// Only symbols that a lookup waits for.
    pub wanted_only: bool,
}

impl<P: Parts> Read<P> for Requested<P> {
    type Reply = Result<Duty<P>, Error>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        machine.materializing(self.unit)?;
        let versions = machine.units.get(self.unit).map(|unit| unit.entries.as_slice()).unwrap_or_default();
        let chosen = versions.iter().filter(|version| !self.wanted_only || machine.is_wanted(**version));
        let found = |&version: &Version<P>| {
            let entry = machine.entries.get(version)?;
            Some(Found { label: entry.label, flags: entry.flags, address: None, version })
        };
        Ok(Duty(chosen.filter_map(found).collect()))
    }
}

/// Queries the dylib of a unit, and its link order.
pub struct UnitHome<P: Parts>(pub UnitId<P>);

impl<P: Parts> Read<P> for UnitHome<P> {
    type Reply = Result<(DylibId, Vec<Link>), Error>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        let (_, dylib) = machine.materializing(self.0)?;
        Ok((dylib, machine.dylibs.get(dylib)?.links.clone()))
    }
}

impl<P: Parts> Machine<P> {
    pub(super) fn materializing(&self, unit: UnitId<P>) -> Result<(Node<Version<P>>, DylibId), Error> {
        match self.units.get(unit) {
            Some(Unit { phase: Phase::Materializing(node), dylib, .. }) => Ok((*node, *dylib)),
            _ => Err(self.check_session("unit", unit.session()).err().unwrap_or(Error::Removed)),
        }
    }

    fn label_in(&self, unit: UnitId<P>, symbol: Symbol) -> Result<Label, Error> {
        Ok(Label { dylib: self.materializing(unit)?.1, symbol })
    }

    /// The version of `symbol` that `unit` is responsible for; the label if it is not.
    fn own(&self, unit: UnitId<P>, symbol: Symbol) -> Result<Result<Version<P>, Label>, Error> {
        let label = self.label_in(unit, symbol)?;
        let version = self.find(label);
        Ok(version
            .filter(|version| self.entries.get(*version).is_some_and(|entry| entry.unit == unit))
            .ok_or(label))
    }

    pub(super) fn is_wanted(&self, version: Version<P>) -> bool {
        match self.entries.get(version).map(|entry| &entry.state) {
            Some(
                State::Materializing(pending) | State::Resolved(_, pending) | State::Emitted(_, pending),
            ) => {
                pending.waiters.iter().any(|(query, _)| self.queries.contains(*query))
                    || self.graph.is_needed(pending.port)
            }
            _ => false,
        }
    }

    /// Restores the state of a unit that was not begun.
    fn put_back(&mut self, unit: UnitId<P>, versions: Vec<Version<P>>, source: P::Source, lost: Vec<Symbol>) {
        let mut ports = Vec::new();
        for version in versions {
            if let Some(entry) = self.entries.get_mut(version) {
                ports.extend(entry.state.port());
                entry.state = State::NeverSearched;
            }
        }
        if let Some(data) = self.units.get_mut(unit) {
            let lazy = Phase::Lazy { source: Source::Work(source), lost };
            if let Phase::Materializing(node) = std::mem::replace(&mut data.phase, lazy) {
                self.graph.forget(&ports, node);
                self.graph.emit(node, SmallVec::new(), &mut Vec::new());
            }
        }
    }

    fn split(&mut self, unit: UnitId<P>, symbols: &[Symbol]) -> Result<(UnitId<P>, Vec<Version<P>>), Error> {
        let (node, dylib) = self.materializing(unit)?;
        let mut versions = Vec::new();
        let mut wrong = Vec::new();
        let mut seen = FxHashSet::default();
        for &symbol in symbols {
            match self.own(unit, symbol)? {
                Ok(version)
                    if seen.insert(version)
                        && self
                            .entries
                            .get(version)
                            .is_some_and(|entry| matches!(entry.state, State::Materializing(_))) =>
                {
                    versions.push(version);
                }
                Ok(_) => wrong.push(Label { dylib, symbol }),
                Err(label) => wrong.push(label),
            }
        }
        if !wrong.is_empty() {
            return Err(Error::NotResponsible { symbols: self.names_of(wrong) });
        }
        let Some(old) = self.units.get_mut(unit) else { return Err(Error::Removed) };
        old.entries.retain(|version| !seen.contains(version));
        let tracker = old.tracker;
        let to = self.graph.node();
        let new = self.new_unit(dylib, tracker, Phase::Materializing(to));
        let is_generated = self.units.get(unit).is_some_and(|unit| unit.is_generated);
        if let Some(new) = self.units.get_mut(new) {
            new.is_generated = is_generated;
        }
        let mut ports = Vec::new();
        for &version in &versions {
            if let Some(entry) = self.entries.get_mut(version) {
                entry.unit = new;
                ports.extend(entry.state.port());
            }
        }
        self.graph.hand_over(&ports, node, to);
        if let Some(new) = self.units.get_mut(new) {
            new.entries = versions.iter().copied().collect();
        }
        Ok((new, versions))
    }
}
