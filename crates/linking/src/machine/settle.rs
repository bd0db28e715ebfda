//! Starting units, and their results: addresses, readiness, failure.
//!
//! Only this file advances a symbol's [`State`]. Each advance wakes the lookups that wait for the new state;
//! a lookup is answered when its last symbol has reached the requested state, or immediately when one fails.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::define::{AtOpening, NewUnit};
use super::graph::Failed;
use super::{
    Entry, Found, Garbage, Happened, Machine, Parts, Pending, Phase, Purpose, Source, State, UnitId, Version,
    Work, push_swept,
};
use crate::error::{Cause, Error, Failure};
use crate::flags::{LookupKind, Need, Priority, SymbolFlags, Until, Want};
use crate::ids::{Label, Symbol};

impl<P: Parts> Machine<P> {
    /// Starts the unit of `version`, unless it has started.
    pub(super) fn start(&mut self, version: Version<P>, priority: Priority) {
        let Some(entry) = self.entries.get(version) else { return };
        // A unit starts with all its symbols, so the symbol's state suffices, without the unit's.
        let State::NeverSearched = entry.state else { return };
        let unit_id = entry.unit;
        let Some(unit) = self.units.get_mut(unit_id) else { return };
        let Phase::Lazy { .. } = unit.phase else { return };
        let Phase::Lazy { source, lost } = std::mem::replace(&mut unit.phase, Phase::Done) else { return };
        match source {
            Source::Work(source) => {
                self.begin(unit_id);
                self.effects.work.push(Work { unit: unit_id, source, lost, priority });
            }
            Source::Absolute(addresses) => {
                let entries = unit.entries.clone();
                let addresses: FxHashMap<Symbol, P::Address> = addresses.into_iter().collect();
                for version in entries {
                    let Some(entry) = self.entries.get(version) else { continue };
                    let address = addresses.get(&entry.label.symbol).copied();
                    self.ready_at_once(version, address);
                }
            }
            Source::Alias(from, aliasee) => {
                let flags = self.entries.get(version).map(|entry| entry.flags).unwrap_or_default();
                self.begin(unit_id);
                // A temporary failure of the other symbol is not a permanent one of the alias.
                let again = Some(Source::Alias(from, aliasee));
                if let Some(unit) = self.units.get_mut(unit_id) {
                    unit.again = again;
                    unit.is_alias = true;
                }
                // A symbol without address has no address, so wait until it is ready.
                let (need, until) = if flags.has(SymbolFlags::SIDE_EFFECTS_ONLY) {
                    (Need::Weak, Until::Ready)
                } else {
                    (Need::Required, Until::Resolved)
                };
                let want = Want { symbol: aliasee, need, at: None };
                let how = (LookupKind::Static, until, priority);
                self.new_query(vec![from], &[want], how, Purpose::Alias(unit_id));
            }
        }
    }

    /// Marks all symbols of `unit` as being materialized.
    pub(super) fn begin(&mut self, unit: UnitId<P>) {
        let node = self.graph.node();
        let Some(unit) = self.units.get_mut(unit) else { return };
        unit.phase = Phase::Materializing(node);
        for version in unit.entries.clone() {
            if let Some(entry) = self.entries.get_mut(version) {
                let port = self.graph.port(node, version);
                entry.state = State::Materializing(Pending { port, waiters: SmallVec::new() });
            }
            self.observe(version, |_| Happened::Started);
        }
    }

    fn ready_at_once(&mut self, version: Version<P>, address: Option<P::Address>) {
        if let Some(entry) = self.entries.get_mut(version) {
            entry.state = State::Ready(address);
            self.observe(version, |_| Happened::Ready);
            self.publish(version);
        }
    }

    fn publish(&mut self, version: Version<P>) {
        let Some(entry) = self.entries.get(version) else { return };
        if let State::Ready(Some(address)) = entry.state
            && entry.named
            && !entry.label.symbol.is_part()
            && !entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY)
            && let Ok(dylib) = self.dylibs.get(entry.label.dylib)
        {
            self.effects.publish.push((dylib.board.clone(), entry.label.symbol, Some(address)));
        }
    }

    pub(super) fn resolve_entry(&mut self, version: Version<P>, address: P::Address) {
        let Some(entry) = self.entries.get_mut(version) else { return };
        let old = std::mem::replace(&mut entry.state, State::NeverSearched);
        let State::Materializing(mut pending) = old else {
            entry.state = old;
            return;
        };
        let waiters = std::mem::take(&mut pending.waiters);
        entry.state = State::Resolved(address, pending);
        let found = Found { label: entry.label, flags: entry.flags, address: Some(address), version };
        self.observe(version, |_| Happened::Resolved);
        let mut still = SmallVec::new();
        for (query, index) in waiters {
            match self.queries.get(query).map(|query| query.until) {
                Some(Until::Ready) => still.push((query, index)),
                Some(_) => self.arrived(query, index, Some(found)),
                None => {}
            }
        }
        if let Some(pending) = self.entries.get_mut(version).and_then(|entry| entry.state.pending()) {
            pending.waiters = still;
        }
    }

    /// One symbol of `query` has reached the requested state.
    pub(super) fn arrived(&mut self, query: super::QueryId<P>, index: usize, found: Option<Found<P>>) {
        let Some(data) = self.queries.get_mut(query) else { return };
        if let Some(place) = data.found.get_mut(index) {
            *place = found;
        }
        data.outstanding = data.outstanding.saturating_sub(1);
        if data.outstanding == 0 {
            self.answer(query, Ok(()));
        }
    }

    /// Everything that these need is emitted.
    pub(super) fn make_ready(&mut self, versions: Vec<Version<P>>) {
        for version in versions {
            let Some(entry) = self.entries.get_mut(version) else { continue };
            let old = std::mem::replace(&mut entry.state, State::NeverSearched);
            let State::Emitted(address, pending) = old else {
                entry.state = old;
                continue;
            };
            entry.state = State::Ready(address);
            let found = Found { label: entry.label, flags: entry.flags, address, version };
            let shown = (!entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY)).then_some(found);
            let again = self.units.get_mut(entry.unit).and_then(|unit| unit.again.take());
            self.drop_unused(again);
            self.observe(version, |_| Happened::Ready);
            self.publish(version);
            for (query, index) in pending.waiters {
                self.arrived(query, index, shown);
            }
        }
    }

    /// Fails a unit that is being materialized: its remaining symbols, and everything that waits for them.
    pub(super) fn fail_unit(&mut self, unit: UnitId<P>, cause: Cause) {
        let passes = cause.passes();
        self.fail_perhaps_for_now(unit, cause, passes);
    }

    /// Like [`Machine::fail_unit`]; if the cause `passes`, whatever can be made again is promised again.
    pub(super) fn fail_perhaps_for_now(&mut self, unit: UnitId<P>, cause: Cause, passes: bool) {
        if let Some(data) = self.units.get_mut(unit)
            && let Phase::Materializing(node) = data.phase
        {
            data.phase = Phase::Done;
            let failed = self.graph.fail(&[node]);
            self.fail_entries(failed, &cause, passes);
        }
        self.effects.garbage.push(Garbage::Cause(cause));
        // A unit whose symbols have all been delegated has none left: its code is dropped nevertheless.
        self.drop_if_empty(unit);
    }

    /// The failures reported by the graph; the first ones by `cause`, the others because of an earlier one.
    pub(super) fn fail_entries(&mut self, failed: Vec<Failed<Version<P>>>, cause: &Cause, passes: bool) {
        let mut failures: Vec<Arc<Failure>> = Vec::with_capacity(failed.len());
        // With each unit, the one that made it fail.
        let mut units: Vec<(UnitId<P>, Option<UnitId<P>>)> = Vec::new();
        let root = self.failed_unit(cause);
        let mut failed_units: Vec<Option<UnitId<P>>> = Vec::with_capacity(failed.len());
        for Failed { entries, because } in failed {
            let reason = because.map_or(root, |index| failed_units.get(index).copied().flatten());
            let first = entries.first().and_then(|version| self.entries.get(*version));
            failed_units.push(first.map(|entry| entry.unit));
            let cause = match because.and_then(|index| failures.get(index)) {
                Some(failure) => Cause::Needs(Arc::clone(failure)),
                None => cause.clone(),
            };
            let mut names = self.names_of_versions(&entries);
            names.sort();
            names.dedup();
            // A unit that fails with a part of itself is not a separate link in the chain.
            let failure = match cause {
                Cause::Needs(part) if part.symbols() == names => part,
                cause => Failure::new(names, cause, passes),
            };
            failures.push(Arc::clone(&failure));
            for version in entries {
                let Some(entry) = self.entries.get_mut(version) else { continue };
                if units.last().map(|(unit, _)| *unit) != Some(entry.unit) {
                    units.push((entry.unit, reason));
                }
                let waiters = entry.state.pending().map(|pending| std::mem::take(&mut pending.waiters));
                entry.state = State::Failed(Arc::clone(&failure));
                self.observe(version, |_| Happened::Failed(Arc::clone(&failure)));
                for (query, _) in waiters.into_iter().flatten() {
                    self.answer(query, Err(Error::Failed(Arc::clone(&failure))));
                }
            }
        }
        let told = self.effects.answers.iter().any(|(_, answer)| answer.is_err());
        if !told && !matches!(cause, Cause::Removed | Cause::Closed) {
            self.effects.unheard.extend(failures.into_iter().next());
        }
        let mut all_again = Vec::new();
        for (unit, reason) in units {
            let again = self.units.get_mut(unit).and_then(|data| data.again.take());
            if let Some(again) = again {
                all_again.push((unit, again, reason.filter(|reason| *reason != unit)));
            }
            self.after_failure(unit);
        }
        // After that none of them uses another any more.
        for (unit, again, reason) in all_again {
            match reason {
                Some(reason) if !passes => self.strand(unit, again, reason),
                _ => self.promise_again(unit, again, passes),
            }
        }
    }

    /// The unit whose failure `cause` is, if it exists and its failure is still that one.
    fn failed_unit(&self, cause: &Cause) -> Option<UnitId<P>> {
        let Cause::Needs(failure) = cause else { return None };
        let found = failure.symbols().iter().find_map(|name| {
            let (dylib, symbol) = (*self.by_name.get(&name.dylib)?, self.names.find(&name.symbol)?);
            let symbols = [symbol].into_iter().chain(symbol.parts());
            let mut entries = symbols.filter_map(|symbol| self.entry_at(Label { dylib, symbol }));
            let is_it = |entry: &&Entry<P>| matches!(&entry.state, State::Failed(known) if Arc::ptr_eq(known, failure));
            entries.find(is_it).map(|entry| entry.unit)
        });
        found.filter(|unit| self.units.contains(*unit))
    }

    /// `unit` has failed because of `reason`: when that loses a name, `unit` is promised again.
    fn strand(&mut self, unit: UnitId<P>, again: Source<P>, reason: UnitId<P>) {
        let Some(data) = self.units.get_mut(unit) else { return self.drop_source(again, Vec::new()) };
        let unused = data.again.replace(again);
        self.drop_unused(unused);
        let units = &self.units;
        push_swept(self.stranded.entry(reason).or_default(), unit, |known| units.contains(known));
    }

    /// The cause of `unit`'s failure has been removed or replaced.
    pub(super) fn revive(&mut self, unit: UnitId<P>) {
        if let Some(again) = self.units.get_mut(unit).and_then(|unit| unit.again.take()) {
            self.promise_again(unit, again, true);
        }
    }

    fn initializer_of(&self, unit: UnitId<P>) -> Option<AtOpening> {
        let dylib = self.dylibs.get(self.units.get(unit)?.dylib).ok()?;
        let mut all = dylib.initializers.iter();
        all.find_map(|known| {
            let entry = self.entries.get(known.version).filter(|entry| entry.unit == unit)?;
            Some(AtOpening { symbol: entry.label.symbol, priority: known.priority })
        })
    }

    /// Returns the symbols of a failed unit to a source, as if they had never been looked up, if the cause
    /// `passes` and all of them have failed. Otherwise a unit that represents initialisers keeps its source
    /// for the next opening.
    pub(super) fn promise_again(&mut self, unit: UnitId<P>, again: Source<P>, passes: bool) {
        let initializer = self.initializer_of(unit);
        let is_failed = |entry: &Entry<P>| entry.named && matches!(entry.state, State::Failed(_));
        let is_used = |version: &Version<P>, entry: &Entry<P>| {
            entry.users.iter().any(|user| self.is_user(*user, *version))
        };
        let there = self.units.get(unit).and_then(|data| {
            let entry = |version: &Version<P>| {
                let entry = self.entries.get(*version)?;
                (is_failed(entry) && !is_used(version, entry)).then_some((entry.label.symbol, entry.flags))
            };
            let symbols: Option<Vec<_>> = data.entries.iter().map(entry).collect();
            Some((data.dylib, data.tracker, symbols?))
        });
        match there {
            Some((dylib, tracker, symbols)) if passes && self.accepting(dylib, true).is_ok() => {
                let held = again.aliasee();
                let new = NewUnit { symbols, initializer, source: again };
                self.define(dylib, tracker, new, true, &FxHashSet::default());
                self.release(held);
            }
            _ => {
                let kept = self.units.get_mut(unit).filter(|_| initializer.is_some());
                let unused = match kept {
                    Some(unit) => unit.again.replace(again),
                    None => Some(again),
                };
                self.drop_unused(unused);
            }
        }
    }

    /// A unit without any working symbol returns its code and uses nothing; its symbols stay, to report the
    /// failure, as does the record of its initialisers.
    fn after_failure(&mut self, unit: UnitId<P>) {
        let Some(data) = self.units.get_mut(unit) else { return };
        let entries = &self.entries;
        let failed = |version: &Version<P>| {
            entries.get(*version).is_none_or(|entry| matches!(entry.state, State::Failed(_)))
        };
        if !data.entries.iter().all(failed) {
            return;
        }
        self.effects.retired.extend(data.codes.drain(..).rev());
        let uses = std::mem::take(&mut data.uses);
        self.collect_nameless(uses);
    }
}
