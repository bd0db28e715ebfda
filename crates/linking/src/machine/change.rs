//! Definitions, and other changes in the same step.
//!
//! Replacing functions that are called through cells has several parts: new bodies, remaining cells that move
//! to another tracker, definitions made on behalf of others that move to their owners' trackers, and hidden
//! symbols that are no longer used. As separate steps they would be visible half done, and a later one could
//! be refused after the first took effect.
//!
//! | part | when | if it is missing |
//! |---|---|---|
//! | symbols placed beside removed ones lose their names ([`RemoveOrphans`]) | in an earlier step, even if the rest is refused: no lookup finds them | skipped, also if being materialized |
//! | definitions | all or none | |
//! | unused symbols lose their names | with them | skipped, also if being materialized |
//! | symbols that stay get the tracker of the definitions, and their flags | with them | skipped |
//! | symbols get the tracker of the ones they are placed beside | with them | skipped |
//! | symbols that stay, or have others beside them, no longer use versions that have lost their names | with them | |

use super::{Define, Event, Machine, NewUnit, Parts, State, TrackerId, Version};
use crate::error::Error;
use crate::flags::SymbolFlags;
use crate::ids::{DylibId, Label, Symbol};

/// See the file's header.
pub struct Change<P: Parts> {
    /// The definitions.
    pub define: Define<P>,
    /// Symbols that are no longer used.
    pub unused: Vec<Symbol>,
    /// Symbols that stay, each with its flags from now on.
    pub stay: Vec<(Symbol, SymbolFlags)>,
    /// Symbols, each with the one whose tracker it gets; itself, if it is redefined and keeps its tracker.
    pub beside: Vec<(Symbol, Symbol)>,
}

impl<P: Parts> Event<P> for Change<P> {
    type Reply = Result<(), (Error, Vec<NewUnit<P>>)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let dylib = self.define.dylib;
        let at = |symbol| Label { dylib, symbol };
        let tracker = match machine.may_define(&self.define) {
            Ok(tracker) => tracker,
            Err(error) => return Err((error, self.define.units)),
        };
        // Redefined symbols keep their trackers.
        let kept = self.beside.iter().filter(|(symbol, beside)| symbol == beside);
        let kept: Vec<_> =
            kept.filter_map(|(symbol, _)| Some((*symbol, machine.tracker_of(at(*symbol))?))).collect();
        self.define.apply(machine)?;
        self.unused.into_iter().for_each(|symbol| machine.leave_name(at(symbol)));
        for (symbol, flags) in self.stay {
            machine.set_flags(at(symbol), flags);
            machine.retrack(at(symbol), tracker);
            machine.use_no_nameless(at(symbol));
        }
        for (symbol, tracker) in kept {
            machine.retrack(at(symbol), tracker);
        }
        for (symbol, beside) in self.beside {
            machine.use_no_nameless(at(beside));
            if let Some(tracker) = machine.tracker_of(at(beside)) {
                machine.retrack(at(symbol), tracker);
            }
        }
        Ok(())
    }
}

/// Removes symbols placed beside others that no longer exist.
pub struct RemoveOrphans {
    pub dylib: DylibId,
    /// Each symbol with the one that it is placed beside.
    pub symbols: Vec<(Symbol, Symbol)>,
}

impl<P: Parts> Event<P> for RemoveOrphans {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        let at = |symbol| Label { dylib: self.dylib, symbol };
        for (symbol, beside) in self.symbols {
            if machine.find(at(beside)).is_none() {
                machine.leave_name(at(symbol));
            }
        }
    }
}

impl<P: Parts> Machine<P> {
    /// Checks whether a change is possible: it succeeds if it is the next step.
    pub(crate) fn may_change(&mut self, change: &Change<P>) -> Result<(), Error> {
        self.may_define(&change.define).map(drop)
    }

    /// Whether a definition exists.
    pub(crate) fn is_defined(&self, label: Label) -> bool {
        self.find(label).is_some()
    }

    /// Removes a symbol, if it exists and is not being materialized.
    fn leave_name(&mut self, label: Label) {
        let Some(version) = self.find(label) else { return };
        match self.entries.get(version).map(|entry| &entry.state) {
            Some(State::NeverSearched) => self.give_way(version),
            Some(state) if state.port().is_none() => self.lose_name(version),
            _ => {}
        }
    }

    /// Removes the versions that were replaced beside a staying symbol from its unit's uses.
    fn use_no_nameless(&mut self, label: Label) {
        let unit = self.find(label).and_then(|version| self.entries.get(version)).map(|entry| entry.unit);
        let Some(unit) = unit.and_then(|unit| self.units.get_mut(unit)) else { return };
        let is_named = |version: &Version<P>| self.entries.get(*version).is_some_and(|entry| entry.named);
        let mut uses = std::mem::take(&mut unit.uses);
        let gone: Vec<Version<P>> = uses.iter().copied().filter(|version| !is_named(version)).collect();
        uses.retain(|version| is_named(version));
        unit.uses = uses;
        self.collect_nameless(gone);
    }

    fn set_flags(&mut self, label: Label, flags: SymbolFlags) {
        if let Some(entry) = self.find(label).and_then(|version| self.entries.get_mut(version)) {
            entry.flags = flags;
        }
    }

    /// The tracker of the unit of a symbol.
    fn tracker_of(&self, label: Label) -> Option<TrackerId<P>> {
        let unit = self.entries.get(self.find(label)?)?.unit;
        Some(self.units.get(unit)?.tracker)
    }

    /// Moves the unit of a symbol to a tracker of its dylib.
    fn retrack(&mut self, label: Label, to: TrackerId<P>) {
        let there = self.find(label).and_then(|version| self.entries.get(version)).map(|entry| entry.unit);
        let Some((id, unit)) = there.and_then(|id| Some((id, self.units.get_mut(id)?))) else { return };
        let from = std::mem::replace(&mut unit.tracker, to);
        if let Some(from) = self.trackers.get_mut(from) {
            from.units.remove(&id);
        }
        if let Some(to) = self.trackers.get_mut(to) {
            to.units.insert(id);
        }
    }
}
