//! Emission: the memory of a unit is final, and its dependences are known.
//!
//! A refused emission fails the unit in the same step, so no lookup waits forever.
//!
//! Dependences name symbols, and may name the version that was linked against: if another version has taken
//! its name since, the code refers to memory that may be freed, and the emission is refused.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Dependence, Event, Machine, Parts, Phase, Resolve, Source, State, UnitId, Version, push_swept};
use crate::error::{Cause, Error};
use crate::flags::{Priority, SymbolFlags};
use crate::ids::{Label, Symbol};

/// Symbols of a unit with the same dependences.
pub struct Group<P: Parts> {
    pub symbols: Vec<Symbol>,
    pub needs: Vec<Dependence<P>>,
}

/// Declares the memory of a unit final, for all its symbols at once; those in no group need nothing.
pub struct Emit<P: Parts> {
    pub unit: UnitId<P>,
    /// Disjoint groups of its symbols.
    pub groups: Vec<Group<P>>,
    /// The source that makes them again, if a dependence fails, or has failed, for a temporary reason; if one
    /// of them represents initialisers, for any reason, on the next opening.
    pub again: Option<Source<P>>,
}

impl<P: Parts> Event<P> for Emit<P> {
    type Reply = Result<(), Error>;

    fn apply(mut self, machine: &mut Machine<P>) -> Self::Reply {
        let (unit, again) = (self.unit, machine.hold_source(self.again.take()));
        let unused = match machine.units.get_mut(unit) {
            Some(unit) if matches!(unit.phase, Phase::Materializing(_)) => {
                std::mem::replace(&mut unit.again, again)
            }
            _ => again,
        };
        machine.drop_unused(unused);
        match machine.may_emit(&self) {
            Ok(groups) => {
                machine.emit(unit, groups);
                Ok(())
            }
            Err((error, cause)) => {
                machine.fail_unit(unit, cause);
                Err(error)
            }
        }
    }
}

/// Passes a unit its code, sets the addresses of all its symbols, and declares the memory final; all in one
/// step, or not at all if what the code was linked to no longer exists. So no code has seen an address of a
/// unit that has to be linked again.
pub struct Complete<P: Parts> {
    pub unit: UnitId<P>,
    pub code: P::Code,
    /// Its symbols, without duplicates.
    pub addresses: Vec<(Symbol, P::Address)>,
    pub needs: Vec<Dependence<P>>,
    /// The source that makes them again, if a dependence fails for a temporary reason.
    pub again: Option<Source<P>>,
}

/// Why a unit was not completed; with the code, if the unit did not take it.
pub enum Incomplete<P: Parts> {
    /// A version that the code was linked to has lost its name. Nothing has changed.
    Moved(P::Code),
    /// The unit has failed.
    Failed(Error),
    /// The unit was removed.
    Removed(P::Code),
}

impl<P: Parts> Event<P> for Complete<P> {
    type Reply = Result<(), Incomplete<P>>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let mut again = self.again;
        let completed = machine.complete(self.unit, self.code, self.addresses, self.needs, &mut again);
        again.into_iter().for_each(|again| machine.drop_unheld(again, Vec::new()));
        completed
    }
}

impl<P: Parts> Machine<P> {
    /// See [`Complete`]. Takes `again` if the unit is emitted with it.
    fn complete(
        &mut self,
        unit: UnitId<P>,
        code: P::Code,
        addresses: Vec<(Symbol, P::Address)>,
        needs: Vec<Dependence<P>>,
        again: &mut Option<Source<P>>,
    ) -> Result<(), Incomplete<P>> {
        if self.materializing(unit).is_err() {
            return Err(Incomplete::Removed(code));
        }
        let has_moved =
            |need: &Dependence<P>| need.version.is_some_and(|version| self.find(need.label) != Some(version));
        if let Err(error) = self.check_needs(&needs) {
            self.fail_unit(unit, error.clone().into());
            return Err(Incomplete::Failed(error));
        }
        if needs.iter().any(has_moved) {
            return Err(Incomplete::Moved(code));
        }
        let mut symbols = Vec::new();
        if let Some(unit) = self.units.get_mut(unit) {
            unit.codes.push(code);
            let labels = unit.entries.iter().filter_map(|version| Some(self.entries.get(*version)?.label));
            symbols.extend(labels.map(|label| label.symbol));
        }
        if let Err(error) = (Resolve { unit, addresses }).apply(self) {
            self.fail_unit(unit, error.clone().into());
            return Err(Incomplete::Failed(error));
        }
        let groups = vec![Group { symbols, needs }];
        (Emit { unit, groups, again: again.take() }).apply(self).map_err(Incomplete::Failed)
    }
}

type Emission<P> = Vec<(Vec<Version<P>>, Vec<Version<P>>)>;

impl<P: Parts> Machine<P> {
    /// Refuses needs that belong to another session.
    fn check_needs<'a>(&self, needs: impl IntoIterator<Item = &'a Dependence<P>>) -> Result<(), Error> {
        needs.into_iter().try_for_each(|need| self.check_session("dylib", need.label.dylib.session))
    }

    /// The groups by versions, with every symbol of the unit in exactly one; or the error, and the cause with
    /// which the unit fails.
    fn may_emit(&self, emit: &Emit<P>) -> Result<Emission<P>, (Error, Cause)> {
        let refused = |error: Error| (error.clone(), Cause::from(error));
        let (_, dylib) = self.materializing(emit.unit).map_err(refused)?;
        self.check_needs(emit.groups.iter().flat_map(|group| &group.needs)).map_err(refused)?;
        let versions = self.units.get(emit.unit).map(|unit| unit.entries.as_slice()).unwrap_or_default();
        let mut left: FxHashMap<Symbol, Version<P>> = FxHashMap::default();
        let mut unresolved = Vec::new();
        for &version in versions {
            let Some(entry) = self.entries.get(version) else { continue };
            let without_address = entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY);
            if !without_address && !matches!(entry.state, State::Resolved(..)) {
                unresolved.push(entry.label);
            }
            left.insert(entry.label.symbol, version);
        }
        if !unresolved.is_empty() {
            return Err(refused(Error::Unresolved { symbols: self.names_of(unresolved) }));
        }
        let mut groups = Vec::with_capacity(emit.groups.len() + 1);
        for group in &emit.groups {
            let mut members = Vec::with_capacity(group.symbols.len());
            let mut wrong = Vec::new();
            for &symbol in &group.symbols {
                match left.remove(&symbol) {
                    Some(version) => members.push(version),
                    None => wrong.push(Label { dylib, symbol }),
                }
            }
            if !wrong.is_empty() {
                return Err(refused(Error::NotResponsible { symbols: self.names_of(wrong) }));
            }
            if members.is_empty() {
                continue;
            }
            let mut needs = Vec::with_capacity(group.needs.len());
            let (mut unmet, mut failure) = (Vec::new(), None);
            for need in &group.needs {
                let there = self.find(need.label).filter(|there| need.version.is_none_or(|v| v == *there));
                match there.and_then(|version| Some((version, self.entries.get(version)?))) {
                    Some((version, entry)) => {
                        if let State::Failed(why) = &entry.state {
                            failure.get_or_insert_with(|| why.clone());
                            unmet.push(need.label);
                        }
                        needs.push(version);
                    }
                    None => unmet.push(need.label),
                }
            }
            if !unmet.is_empty() {
                let symbols = self.names_of_versions(&members);
                let error = Error::Unsatisfied { symbols, on: self.names_of(unmet) };
                let cause = failure.map_or_else(|| error.clone().into(), Cause::Needs);
                return Err((error, cause));
            }
            needs.sort();
            needs.dedup();
            groups.push((members, needs));
        }
        // The symbols in no group, in the order of the unit.
        let rest: Vec<Version<P>> = versions
            .iter()
            .copied()
            .filter(|version| {
                self.entries.get(*version).is_some_and(|entry| left.contains_key(&entry.label.symbol))
            })
            .collect();
        groups.push((rest, Vec::new()));
        Ok(groups)
    }

    pub(super) fn emit_alias(&mut self, unit: UnitId<P>, version: Version<P>, needs: Vec<Version<P>>) {
        self.emit(unit, vec![(vec![version], needs), (Vec::new(), Vec::new())]);
    }

    /// `groups` covers the unit; the last group keeps the unit's own node.
    fn emit(&mut self, unit: UnitId<P>, groups: Emission<P>) {
        let Some(data) = self.units.get_mut(unit) else { return };
        let Phase::Materializing(own) = std::mem::replace(&mut data.phase, Phase::Done) else { return };
        for version in &data.entries {
            let Some(entry) = self.entries.get_mut(*version) else { continue };
            entry.state = match std::mem::replace(&mut entry.state, State::NeverSearched) {
                State::Materializing(pending) => State::Emitted(None, pending),
                State::Resolved(address, pending) => State::Emitted(Some(address), pending),
                other => other,
            };
        }
        let mut uses: SmallVec<[Version<P>; 1]> =
            groups.iter().flat_map(|(_, needs)| needs).copied().collect();
        uses.sort();
        uses.dedup();
        uses.retain(|version| self.entries.get(*version).is_some_and(|entry| entry.unit != unit));
        for &version in &uses {
            self.start(version, Priority::Normal);
            if let Some(entry) = self.entries.get_mut(version) {
                push_swept(&mut entry.users, unit, |user| self.units.contains(user));
            }
        }
        if let Some(data) = self.units.get_mut(unit) {
            data.uses = uses;
            self.has_new_waits = true;
        }
        let single = groups.iter().filter(|(members, _)| !members.is_empty()).count() == 1;
        let mut nodes = Vec::with_capacity(groups.len());
        for (members, needs) in groups {
            if members.is_empty() {
                continue;
            }
            for &member in &members {
                self.observe(member, |machine| machine.waits_for(&needs));
            }
            let node = if single || needs.is_empty() { own } else { self.graph.node() };
            if node != own {
                let ports: Vec<_> =
                    members.iter().filter_map(|version| self.entries.get(*version)?.state.port()).collect();
                self.graph.hand_over(&ports, own, node);
            }
            nodes.push((node, needs));
        }
        if nodes.iter().all(|(node, _)| *node != own) {
            nodes.push((own, Vec::new()));
        }
        // All nodes exist before the first is emitted: groups may need each other.
        let nodes: Vec<_> = nodes
            .into_iter()
            .map(|(node, needs)| {
                let ports = needs.iter().filter_map(|version| self.entries.get(*version)?.state.port());
                (node, ports.collect::<SmallVec<[_; 1]>>())
            })
            .collect();
        let mut ready = Vec::new();
        let mut own_is_emitted = false;
        for (node, needs) in nodes {
            if node == own && std::mem::replace(&mut own_is_emitted, true) {
                continue;
            }
            self.graph.emit(node, needs, &mut ready);
        }
        self.make_ready(ready);
        self.drop_if_empty(unit);
    }
}
