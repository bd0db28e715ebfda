//! Removal of trackers, names, dylibs and the session from the tables.
//!
//! Removed symbols lose their names immediately. Those that are not ready yet fail, with everything that
//! waits for them; ready code that others use is treated by policy:
//!
//! | policy | ready code that uses what is removed |
//! |---|---|
//! | deny | the removal is refused; the error names the users |
//! | cascade | is also removed, with its own users, transitively |
//! | tombstone | stays, and is listed in the effects: the host makes references to the removed code trap. Aliases are removed as well |
//! | keep | stays, and what it uses stays with it until nothing with a name reaches it |
//!
//!
//! Cost: the removed entries and their users, and for each removed name the initialisers of its dylib.
//! Closing visits all trackers of the session, and for each generator all requests. Keeping checks for each
//! removed unit whether a named unit still reaches it: the size of the kept group each time.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::dylibs::Initializer;
use super::{
    Dylib, Entry, Event, Garbage, Happened, Intake, Machine, Parts, Phase, Read, State, Todo, TrackerId,
    UnitId, Version,
};
use crate::error::{Cause, Error};
use crate::ids::{DylibId, Label, Symbol};

/// The policy for ready code that uses removed symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dependants {
    /// Nothing is removed.
    Deny,
    /// It is also removed.
    Cascade,
    /// It stays, and the removed code is retired: a call of it raises an error. The host redirects the
    /// references to it ([`Host::mark_removed`](crate::Host::mark_removed)), and is informed of their owners
    /// ([`Host::orphaned`](crate::Host::orphaned)). The redirection is permanent: only code that is linked
    /// later finds a later definition under a removed name.
    Tombstone,
    /// It stays, as does what it uses.
    Keep,
}

/// Removes what a tracker tracks, and the tracker.
pub struct RemoveTracker<P: Parts> {
    /// The tracker. A dylib's own is emptied and stays.
    pub tracker: TrackerId<P>,
    /// The policy for its users.
    pub dependants: Dependants,
}

impl<P: Parts> Event<P> for RemoveTracker<P> {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.check_session("tracker", self.tracker.session())?;
        let Some(tracker) = machine.trackers.get(self.tracker) else { return Err(Error::Removed) };
        let (units, dylib) = (tracker.units.clone(), tracker.dylib);
        machine.remove_units(units, self.dependants, &Cause::Removed)?;
        machine.remove_generators(self.tracker, dylib);
        machine.retire_tracker(self.tracker, dylib);
        Ok(())
    }
}

/// Moves what a tracker tracks to another of the same dylib, and removes the tracker.
pub struct Transfer<P: Parts> {
    /// The tracker to remove. Does nothing if it is also the target.
    pub from: TrackerId<P>,
    /// The tracker that takes over; `None` for the dylib's own.
    pub to: Option<TrackerId<P>>,
}

impl<P: Parts> Event<P> for Transfer<P> {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        for tracker in self.to.into_iter().chain([self.from]) {
            machine.check_session("tracker", tracker.session())?;
        }
        let from = machine.trackers.get(self.from).ok_or(Error::Removed)?;
        let dylib = from.dylib;
        let default = machine.open(dylib)?.default_tracker;
        let to = self.to.unwrap_or(default);
        match machine.trackers.get(to) {
            None => return Err(Error::Removed),
            Some(to) if to.dylib != dylib => return Err(Error::DifferentDylibs),
            Some(_) if self.from == to => return Ok(()),
            Some(_) => {}
        }
        machine.move_units(self.from, to);
        machine.retire_tracker(self.from, dylib);
        Ok(())
    }
}

/// Removes names from a dylib, with their parts; all of them or none. Symbols that were never searched give way; ready code is
/// retired when its last name is gone and nothing uses it.
pub struct RemoveSymbols {
    pub dylib: DylibId,
    /// The names.
    pub symbols: Vec<Symbol>,
}

impl<P: Parts> Event<P> for RemoveSymbols {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.open(self.dylib)?;
        let (mut missing, mut busy, mut versions) = (Vec::new(), Vec::new(), BTreeSet::new());
        for symbol in self.symbols {
            let at = |symbol| Label { dylib: self.dylib, symbol };
            if machine.find(at(symbol)).is_none() {
                missing.push(at(symbol));
            }
            for label in [symbol].into_iter().chain(symbol.parts()).map(at) {
                busy.extend(machine.is_pending(label).then_some(label));
                versions.extend(machine.find(label));
            }
        }
        if !missing.is_empty() {
            return Err(Error::NotFound { symbols: machine.names_of(missing) });
        }
        if !busy.is_empty() {
            return Err(Error::Busy { symbols: machine.names_without_repetition(busy) });
        }
        for version in versions {
            match machine.entries.get(version).map(|entry| &entry.state) {
                Some(State::NeverSearched) => machine.give_way(version),
                Some(_) => machine.lose_name(version),
                None => {}
            }
        }
        Ok(())
    }
}

/// Removes everything from dylibs, and closes them or leaves them open.
pub struct Close {
    /// The dylibs; closed ones are skipped.
    pub dylibs: Vec<DylibId>,
    /// The policy for users elsewhere.
    pub dependants: Dependants,
    /// Whether they stay open, empty.
    pub stay_open: bool,
}

impl<P: Parts> Event<P> for Close {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let mut open = Vec::new();
        for id in self.dylibs {
            match machine.dylibs.get(id) {
                Ok(_) => open.push(id),
                Err(Error::DylibClosed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let ours: FxHashSet<DylibId> = open.iter().copied().collect();
        let trackers = machine.trackers.iter().filter(|(_, tracker)| ours.contains(&tracker.dylib));
        let (trackers, units): (Vec<_>, Vec<_>) =
            trackers.map(|(id, tracker)| ((id, tracker.dylib), &tracker.units)).unzip();
        // Every unit of an open dylib has a tracker, so these are all units of the dylibs.
        let units = units.into_iter().flatten().copied().collect();
        let cause = if self.stay_open { Cause::Removed } else { Cause::Closed };
        machine.remove_units(units, self.dependants, &cause)?;
        for (tracker, dylib) in trackers {
            machine.retire_tracker(tracker, dylib);
        }
        if !self.stay_open {
            for id in open {
                machine.close(id);
            }
        }
        Ok(())
    }
}

/// Makes the session refuse further definitions, lookups, dylibs and trackers.
pub struct Stop {
    /// Including those that belong to begun work.
    pub entirely: bool,
}

impl<P: Parts> Event<P> for Stop {
    /// Whether this is a change.
    type Reply = bool;

    fn apply(self, machine: &mut Machine<P>) -> bool {
        let intake = if self.entirely { Intake::Nothing } else { Intake::Begun };
        let is_news = machine.intake == Intake::All || self.entirely && machine.intake != intake;
        if is_news {
            machine.intake = intake;
        }
        is_news
    }
}

/// Queries the open dylibs, youngest first, and whether they must be deinitialised: they were opened, or some
/// of their initialisers have run.
pub struct Remaining;

impl<P: Parts> Read<P> for Remaining {
    type Reply = Vec<(DylibId, bool)>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        let initialized = |id| {
            let has_run = |dylib: &Dylib<P>| dylib.initializers.iter().any(Initializer::has_run);
            machine.dylibs.get(id).is_ok_and(|dylib| dylib.was_opened || has_run(dylib))
        };
        let mut open: Vec<DylibId> = machine.by_name.values().copied().collect();
        let serial = |id: &DylibId| machine.dylibs.get(*id).map_or(0, |dylib| dylib.serial);
        open.sort_unstable_by_key(|id| std::cmp::Reverse(serial(id)));
        open.into_iter().map(|id| (id, initialized(id))).collect()
    }
}

impl<P: Parts> Machine<P> {
    /// Removes the tracker; what is kept alive moves to the dylib's own, which stays.
    fn retire_tracker(&mut self, tracker: TrackerId<P>, dylib: DylibId) {
        let Ok(default) = self.dylibs.get(dylib).map(|dylib| dylib.default_tracker) else { return };
        if tracker != default {
            self.move_units(tracker, default);
            self.trackers.remove(tracker);
        }
    }

    fn remove_generators(&mut self, tracker: TrackerId<P>, dylib: DylibId) {
        let Ok(dylib) = self.dylibs.get_mut(dylib) else { return };
        let all = std::mem::take(&mut dylib.generators).into_iter();
        let (gone, kept): (Vec<_>, Vec<_>) = all.partition(|known| known.tracker == tracker);
        dylib.generators = kept;
        self.drop_generators(gone);
    }

    fn move_units(&mut self, from: TrackerId<P>, to: TrackerId<P>) {
        let Some(units) = self.trackers.get_mut(from).map(|tracker| std::mem::take(&mut tracker.units))
        else {
            return;
        };
        for unit in &units {
            if let Some(unit) = self.units.get_mut(*unit) {
                unit.tracker = to;
            }
        }
        if let Some(to) = self.trackers.get_mut(to) {
            to.units.extend(units);
        }
        let dylib = self.trackers.get(from).map(|tracker| tracker.dylib);
        let dylib = dylib.and_then(|dylib| self.dylibs.get_mut(dylib).ok());
        let generators = dylib.into_iter().flat_map(|dylib| &mut dylib.generators);
        generators.filter(|known| known.tracker == from).for_each(|known| known.tracker = to);
    }

    /// Live units other than `removed` that use ready symbols of `units`, each with one such symbol.
    fn outside_users(
        &self,
        units: impl IntoIterator<Item = UnitId<P>>,
        removed: &BTreeSet<UnitId<P>>,
    ) -> Vec<(UnitId<P>, Version<P>)> {
        let mut users = Vec::new();
        for unit in units {
            for &version in self.units.get(unit).map(|unit| unit.entries.as_slice()).unwrap_or_default() {
                let Some(entry) = self.entries.get(version) else { continue };
                if let State::Ready(_) = entry.state {
                    let outside =
                        |user: &&UnitId<P>| self.is_user(**user, version) && !removed.contains(*user);
                    users.extend(entry.users.iter().filter(outside).map(|user| (*user, version)));
                }
            }
        }
        users.sort();
        users.dedup();
        users
    }

    /// Adds everything with the address of something in `units`: it has no code that could raise an error,
    /// and a freed address will eventually belong to something else.
    fn add_aliases(&self, units: &mut BTreeSet<UnitId<P>>) {
        let mut fresh: Vec<UnitId<P>> = units.iter().copied().collect();
        while !fresh.is_empty() {
            let users = self.outside_users(fresh, units).into_iter().map(|(user, _)| user);
            fresh = users.filter(|user| self.units.get(*user).is_some_and(|unit| unit.is_alias)).collect();
            fresh.retain(|alias| units.insert(*alias));
        }
    }

    fn remove_units(
        &mut self,
        mut units: BTreeSet<UnitId<P>>,
        dependants: Dependants,
        cause: &Cause,
    ) -> Result<(), Error> {
        if dependants == Dependants::Tombstone {
            self.add_aliases(&mut units);
        }
        let users = self.outside_users(units.iter().copied(), &units);
        match dependants {
            Dependants::Deny if !users.is_empty() => {
                let removed: BTreeSet<Version<P>> = users.iter().map(|(_, version)| *version).collect();
                let users: BTreeSet<UnitId<P>> = users.iter().map(|(user, _)| *user).collect();
                let users =
                    users.into_iter().filter_map(|user| self.units.get(user)?.entries.first().copied());
                let (removed, users): (Vec<_>, Vec<_>) = (removed.into_iter().collect(), users.collect());
                return Err(Error::InUse {
                    symbols: self.names_of_versions(&removed),
                    dependants: self.names_of_versions(&users),
                });
            }
            Dependants::Cascade => {
                let mut fresh: Vec<UnitId<P>> = users.into_iter().map(|(user, _)| user).collect();
                while !fresh.is_empty() {
                    fresh.retain(|user| units.insert(*user));
                    fresh = self.outside_users(fresh, &units).into_iter().map(|(user, _)| user).collect();
                }
            }
            Dependants::Tombstone => {
                self.effects.marks_removed = true;
                for (user, version) in users {
                    if let (Some(user), Some(entry)) = (self.label_of(user), self.entries.get(version)) {
                        self.effects.orphaned.push((user, entry.label));
                    }
                }
            }
            Dependants::Deny | Dependants::Keep => {}
        }
        let parts = self.parts_elsewhere(&units);
        self.fail_what_is_pending(&units, &parts, cause);
        parts.into_iter().for_each(|part| self.leave_name(part));
        for &unit in &units {
            let versions = self.units.get(unit).map(|unit| unit.entries.clone()).unwrap_or_default();
            for version in versions {
                self.unname(version);
            }
        }
        for &unit in &units {
            if dependants == Dependants::Keep {
                self.collect(unit);
            } else {
                let uses = self.dismiss(unit);
                self.collect_nameless(uses);
            }
        }
        Ok(())
    }

    /// Collects the units of nameless versions among `uses` after this event: their last user may be gone.
    pub(super) fn collect_nameless(&mut self, uses: impl IntoIterator<Item = Version<P>>) {
        let entries = uses.into_iter().filter_map(|version| self.entries.get(version));
        let units = entries.filter(|entry| !entry.named).map(|entry| Todo::Collect(entry.unit));
        self.todo.extend(units);
    }

    /// The parts of symbols of `units` that are not in `units`.
    fn parts_elsewhere(&self, units: &BTreeSet<UnitId<P>>) -> Vec<Label> {
        let entries = units.iter().filter_map(|unit| self.units.get(*unit)).flat_map(|unit| &unit.entries);
        let named = entries.filter_map(|version| self.entries.get(*version)).filter(|entry| entry.named);
        let wholes = named.map(|entry| entry.label).filter(|label| !label.symbol.is_part());
        let parts = wholes.flat_map(|label| label.symbol.parts().map(|symbol| Label { symbol, ..label }));
        parts.filter(|part| self.entry_at(*part).is_some_and(|entry| !units.contains(&entry.unit))).collect()
    }

    fn fail_what_is_pending(&mut self, units: &BTreeSet<UnitId<P>>, parts: &[Label], cause: &Cause) {
        let ports = parts.iter().filter_map(|part| self.entry_at(*part)?.state.port());
        let mut nodes: Vec<_> = ports.filter_map(|port| self.graph.node_of(port)).collect();
        for unit in units.iter().filter_map(|unit| self.units.get(*unit)) {
            if let Phase::Materializing(node) = unit.phase {
                nodes.push(node);
            }
            for version in &unit.entries {
                let port = self.entries.get(*version).and_then(|entry| entry.state.port());
                nodes.extend(port.and_then(|port| self.graph.node_of(port)));
            }
        }
        nodes.sort();
        nodes.dedup();
        if !nodes.is_empty() {
            let failed = self.graph.fail(&nodes);
            self.fail_entries(failed, cause, false);
        }
    }

    /// A symbol that names the unit.
    fn label_of(&self, unit: UnitId<P>) -> Option<Label> {
        self.units.get(unit)?.entries.iter().find_map(|version| Some(self.entries.get(*version)?.label))
    }

    /// Removes the name of `version`, and its unit if nothing else keeps it.
    pub(super) fn lose_name(&mut self, version: Version<P>) {
        self.unname(version);
        if let Some(unit) = self.entries.get(version).map(|entry| entry.unit) {
            self.collect(unit);
        }
    }

    /// The host hears of wholes only.
    pub(super) fn report_unnamed(&mut self, label: Label) {
        if !label.symbol.is_part() {
            self.effects.unnamed.push(label);
        }
    }

    fn unname(&mut self, version: Version<P>) {
        let Some(entry) = self.entries.get_mut(version) else { return };
        if !std::mem::replace(&mut entry.named, false) {
            return;
        }
        let was_ready = matches!(entry.state, State::Ready(_));
        let (label, unit) = (entry.label, entry.unit);
        let Label { dylib, symbol } = label;
        let is_failed = matches!(entry.state, State::Failed(_));
        self.report_unnamed(label);
        self.observe(version, |_| Happened::Removed);
        if is_failed {
            let stranded = self.stranded.remove(&unit);
            self.todo.extend(stranded.into_iter().flatten().map(Todo::Revive));
        }
        if let Ok(dylib) = self.dylibs.get_mut(dylib) {
            dylib.symbols.remove(&symbol);
            dylib.initializers.retain(|known| known.version != version);
            if was_ready {
                self.effects.publish.push((dylib.board.clone(), symbol, None));
            }
        }
    }

    /// Dismisses `unit`, and what only it kept alive, unless something with a name still reaches it.
    pub(super) fn collect(&mut self, unit: UnitId<P>) {
        let mut asked = vec![unit];
        while let Some(unit) = asked.pop() {
            let mut group = BTreeSet::from([unit]);
            let mut fresh = vec![unit];
            let mut alive = false;
            while let Some(unit) = fresh.pop() {
                let Some(data) = self.units.get(unit) else { continue };
                for version in &data.entries {
                    let Some(entry) = self.entries.get(*version) else { continue };
                    alive |= entry.named;
                    let users = entry.users.iter().filter(|user| self.is_user(**user, *version));
                    fresh.extend(users.filter(|user| group.insert(**user)));
                }
                if alive {
                    break;
                }
            }
            if !alive {
                for unit in group {
                    let uses = self.dismiss(unit);
                    let kept = uses.into_iter().filter_map(|version| self.entries.get(version));
                    asked.extend(kept.filter(|entry| !entry.named).map(|entry| entry.unit));
                }
            }
        }
    }

    /// Removes `unit` and its entries from the tables; returns what it used.
    fn dismiss(&mut self, unit: UnitId<P>) -> SmallVec<[Version<P>; 1]> {
        let Some(gone) = self.forget_unit(unit) else { return SmallVec::new() };
        for version in gone.entries {
            self.unname(version);
            let Some(Entry { label, state, .. }) = self.entries.remove(version) else { continue };
            self.release([label.symbol]);
            if let State::Failed(failure) = state {
                self.effects.garbage.push(Garbage::Failure(failure));
            }
        }
        gone.uses
    }

    /// Whether `user` exists and was emitted with a dependence on `version`. Lists of users may hold failed
    /// units.
    pub(super) fn is_user(&self, user: UnitId<P>, version: Version<P>) -> bool {
        self.units.get(user).is_some_and(|user| user.uses.binary_search(&version).is_ok())
    }

    fn close(&mut self, id: DylibId) {
        let Some(dylib) = self.dylibs.close(id) else { return };
        self.by_name.remove(&dylib.name);
        self.opened.remove(&id);
        self.trackers.remove(dylib.default_tracker);
        self.drop_generators(dylib.generators);
        self.effects.garbage.push(Garbage::Board(dylib.board));
    }
}
