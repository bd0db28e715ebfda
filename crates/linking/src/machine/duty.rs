//! What whoever materializes a unit tells the session.
//!
//! ```text
//!   work ──► (claim · delegate · hand back · attach)* ──► resolve ──► emit ──► done
//!                              ├──────────────────── fail ─────────────────► done
//!                              └────────────────── complete ───────────────► done, or told that what it was made from has moved
//! ```
//!
//! A unit that was removed meanwhile is gone: every event about it is answered with [`Error::Removed`]. An emission that is
//! refused is a failure of the unit, in the same step: no state is left in which lookups wait for nobody.
//!
//! Dependences name symbols, and may name the version that was linked against: when another version has taken its name
//! since, the code refers to memory that may go away, and the emission is refused.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::graph::Node;
use super::{Event, Found, Machine, Parts, Phase, Source, State, Unit, UnitId, Version, push_swept};
use crate::error::{Cause, Error};
use crate::flags::{Link, Priority, SymbolFlags};
use crate::ids::{DylibId, Label, Symbol};

/// A symbol that emitted code refers to.
pub struct Dependence<P: Parts> {
    /// Which one.
    pub label: Label,
    /// The version that the code was linked against; none for whichever there is.
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

/// Symbols of a unit that need the same things.
pub struct Group<P: Parts> {
    /// The symbols.
    pub symbols: Vec<Symbol>,
    /// What they need.
    pub needs: Vec<Dependence<P>>,
}

/// Gives symbols of a unit their addresses.
pub struct Resolve<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// Some of its symbols, each once.
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

/// Says that the memory of a unit is final. All its symbols at once; those in no group need nothing.
pub struct Emit<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// Disjoint groups of its symbols.
    pub groups: Vec<Group<P>>,
    /// What makes them again, if something that they need fails, or has failed, for a reason that passes; if one of them stands for
    /// initialisers, whatever the reason, at the next opening.
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

/// Hands a unit its code, gives all its symbols their addresses, and says that the memory is final; all of it in one step, or nothing
/// if what the code was linked to is not there any more. So nobody has seen an address of a unit that has to be linked again.
pub struct Complete<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// The code.
    pub code: P::Code,
    /// Its symbols, each once.
    pub addresses: Vec<(Symbol, P::Address)>,
    /// What each of them needs.
    pub needs: Vec<Dependence<P>>,
    /// What makes them again, if something that they need fails for a reason that passes.
    pub again: Option<Source<P>>,
}

/// Why a unit was not completed. Here is the code, if the unit did not take it.
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

/// Gives a unit up. Nothing happens when it was removed.
pub struct Fail<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// Why.
    pub cause: Cause,
}

impl<P: Parts> Event<P> for Fail<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.fail_unit(self.unit, self.cause);
    }
}

/// Hands code to a unit that is being materialized; it is given back when the unit fails or is removed.
pub struct Attach<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// The code.
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

/// Makes a unit responsible for symbols that were invented while it was materialized. Weak ones that exist already are not
/// claimed.
pub struct Claim<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// The symbols.
    pub symbols: Vec<(Symbol, SymbolFlags)>,
}

impl<P: Parts> Event<P> for Claim<P> {
    /// What was claimed.
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

/// Splits symbols that have no address yet off into a unit of their own, with the same tracker.
pub struct Delegate<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// The symbols.
    pub symbols: Vec<Symbol>,
}

impl<P: Parts> Event<P> for Delegate<P> {
    /// The new unit: whoever gets this is responsible for it.
    type Reply = Result<UnitId<P>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (unit, _) = machine.split(self.unit, &self.symbols)?;
        Ok(unit)
    }
}

/// Hands symbols that have no address yet back, to be materialized by another source: at once when somebody waits for
/// one of them, else when somebody looks.
pub struct HandBack<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// The symbols.
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

/// Asks whether a unit whose work was queued is to be materialized still. Gives its source back if so. One that nobody waits
/// for any more is made when somebody looks again.
pub struct Begin<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// How it is materialized.
    pub source: P::Source,
    /// Symbols of it that gave way to others.
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

/// What a unit is responsible for, without addresses.
pub struct Duty<P: Parts>(pub Vec<Found<P>>);

/// Asks what a unit is responsible for, and which of it somebody waits for.
pub struct Requested<P: Parts> {
    /// The unit.
    pub unit: UnitId<P>,
    /// Only what somebody waits for.
    pub wanted_only: bool,
}

impl<P: Parts> Event<P> for Requested<P> {
    type Reply = Result<Duty<P>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
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

/// Asks for the dylib of a unit, and its link order.
pub struct UnitHome<P: Parts>(pub UnitId<P>);

impl<P: Parts> Event<P> for UnitHome<P> {
    type Reply = Result<(DylibId, Vec<Link>), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (_, dylib) = machine.materializing(self.0)?;
        Ok((dylib, machine.open(dylib)?.links.clone()))
    }
}

type Emission<P> = Vec<(Vec<Version<P>>, Vec<Version<P>>)>;

impl<P: Parts> Machine<P> {
    fn materializing(&self, unit: UnitId<P>) -> Result<(Node<Version<P>>, DylibId), Error> {
        match self.units.get(unit) {
            Some(Unit { phase: Phase::Materializing(node), dylib, .. }) => Ok((*node, *dylib)),
            _ => Err(self.check_session("unit", unit.session()).err().unwrap_or(Error::Removed)),
        }
    }

    /// Refuses needs that belong to another session.
    fn check_needs<'a>(&self, needs: impl IntoIterator<Item = &'a Dependence<P>>) -> Result<(), Error> {
        needs.into_iter().try_for_each(|need| self.check_session("dylib", need.label.dylib.session))
    }

    fn label_in(&self, unit: UnitId<P>, symbol: Symbol) -> Result<Label, Error> {
        Ok(Label { dylib: self.materializing(unit)?.1, symbol })
    }

    /// The version of `symbol` that `unit` is responsible for; the label when it is not.
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

    /// Makes a unit that nobody has begun what it was before somebody looked.
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

    /// The groups by versions, every symbol of the unit in exactly one; or the error, and the cause that the unit fails of.
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
