//! Definitions, and other changes in the same step.
//!
//! Replacing functions that are called through cells has several aspects: other bodies, which are parts of
//! symbols that stay or that belong to other definitions; and declarations that are no longer used. As separate
//! steps they would be visible half done, and a later one could be refused after the first took effect.
//!
//! | symbols | in the same step |
//! |---|---|
//! | definitions | all are defined, or nothing changes |
//! | unused ones | lose their names, unless they are being materialized |
//! | ones that stay | get the tracker of the definitions, and flags; only the new parts remain |
//! | others' | keep their trackers, redefined or not; only the new parts remain |
//! | new parts | get the tracker of their whole |
//!
//! Symbols whose parts are replaced no longer use versions that have lost their names. Missing symbols are skipped.

use super::{Define, Event, Machine, NewUnit, Parts, State, TrackerId, Version};
use crate::error::Error;
use crate::flags::SymbolFlags;
use crate::ids::{Label, Symbol};

/// See the file's header.
pub struct Change<P: Parts> {
    /// The definitions.
    pub define: Define<P>,
    /// Symbols that are no longer used.
    pub unused: Vec<Symbol>,
    /// Symbols that stay and get other parts, each with its flags from now on.
    pub stay: Vec<(Symbol, SymbolFlags)>,
    /// Symbols of other definitions, which are redefined or get other parts.
    pub others: Vec<Symbol>,
}

impl<P: Parts> Change<P> {
    /// The existing symbols that get other parts.
    fn renewed(&self) -> Vec<Symbol> {
        self.stay.iter().map(|(symbol, _)| *symbol).chain(self.others.iter().copied()).collect()
    }
}

impl<P: Parts> Event<P> for Change<P> {
    type Reply = Result<(), (Error, Vec<NewUnit<P>>)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let (dylib, renewed) = (self.define.dylib, self.renewed());
        let at = |symbol| Label { dylib, symbol };
        let tracker = match machine.tracker_for(dylib, self.define.tracker, self.define.begun) {
            Ok(tracker) => tracker,
            Err(error) => return Err((error, self.define.units)),
        };
        let kept = self.others.iter().filter_map(|&symbol| Some((symbol, machine.tracker_of(at(symbol))?)));
        let kept: Vec<(Symbol, TrackerId<P>)> = kept.collect();
        let new = self.define.units.iter().flat_map(|unit| &unit.symbols);
        let parts: Vec<Symbol> = new.map(|(symbol, _)| *symbol).filter(|symbol| symbol.is_part()).collect();
        machine.define_all(self.define, &renewed)?;
        self.unused.into_iter().for_each(|symbol| machine.leave_name(at(symbol)));
        for &(symbol, flags) in &self.stay {
            machine.set_flags(at(symbol), flags);
            machine.retrack(at(symbol), tracker);
        }
        for (symbol, tracker) in kept {
            machine.retrack(at(symbol), tracker);
        }
        renewed.into_iter().for_each(|symbol| machine.use_no_nameless(at(symbol)));
        for part in parts {
            if let Some(tracker) = machine.tracker_of(at(part.whole())) {
                machine.retrack(at(part), tracker);
            }
        }
        Ok(())
    }
}

impl<P: Parts> Machine<P> {
    /// Checks whether a change is possible: it succeeds if it is the next step.
    pub(crate) fn may_change(&mut self, change: &Change<P>) -> Result<(), Error> {
        self.may_define(&change.define, &change.renewed()).map(drop)
    }

    /// Whether a definition exists.
    pub(crate) fn is_defined(&self, label: Label) -> bool {
        self.find(label).is_some()
    }

    /// Removes a symbol, if it exists and is not being materialized.
    pub(super) fn leave_name(&mut self, label: Label) {
        let Some(version) = self.find(label) else { return };
        match self.entries.get(version).map(|entry| &entry.state) {
            Some(State::NeverSearched) => self.give_way(version),
            Some(state) if state.port().is_none() => self.lose_name(version),
            _ => {}
        }
    }

    /// Removes former parts of a symbol from its unit's uses.
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
