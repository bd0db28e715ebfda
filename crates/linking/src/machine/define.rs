//! Adding to the tables: definitions, aliases, absolute symbols, replacement.
//!
//! | existing \ new | strong | weak | replacing |
//! |---|---|---|---|
//! | nothing | defined | defined | defined |
//! | weak, never searched | the old one gives way | the new one gives way | the old one gives way |
//! | strong, never searched | duplicate | the new one gives way | the old one gives way |
//! | materializing, resolved, emitted | duplicate | the new one gives way | busy |
//! | ready | duplicate | the new one gives way | the old one loses its name |
//! | failed | duplicate | the new one gives way | the old one is dropped |
//!
//! A strong definition replaces a generated one. Parts follow their whole: the ones of a definition that gives way, loses its
//! name or is dropped go with it, and are busy if they are being materialized.
//!
//! All units of one event are defined, or none is. A unit that loses symbols is notified just before it is
//! run or dropped, by the same owner, so the notification cannot race with the run. A ready definition that
//! loses its name lives on while ready code uses it.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::dylibs::Initializer;
use super::{Entry, Event, Happened, Machine, Parts, Phase, Source, State, TrackerId, Unit, UnitId, Version};
use crate::error::{Cause, Error, Name};
use crate::flags::{Link, SymbolFlags};
use crate::ids::{DylibId, Label, Symbol};

/// A unit to define.
pub struct NewUnit<P: Parts> {
    /// The symbols that it defines.
    pub symbols: Vec<(Symbol, SymbolFlags)>,
    /// The symbol of its initialisers.
    pub initializer: Option<AtOpening>,
    /// How it is materialized.
    pub source: Source<P>,
}

/// The symbol of a unit's initialisers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtOpening {
    pub symbol: Symbol,
    /// When they run relative to others of the dylib: the lowest first; equal priorities in the order of
    /// definition.
    pub priority: i32,
}

impl From<Symbol> for AtOpening {
    fn from(symbol: Symbol) -> AtOpening {
        AtOpening { symbol, priority: 0 }
    }
}

/// A symbol that has the address of another.
pub struct Alias {
    pub symbol: Symbol,
    /// Its own flags.
    pub flags: SymbolFlags,
    /// Where to search for the other symbol.
    pub from: Link,
    /// The name of the other symbol.
    pub aliasee: Symbol,
}

impl<P: Parts> NewUnit<P> {
    /// The symbols that it adds to the tables.
    fn names(&self) -> impl Iterator<Item = Symbol> {
        self.symbols.iter().map(|(symbol, _)| *symbol).chain(self.source.aliasee())
    }
}

impl<P: Parts> From<Alias> for NewUnit<P> {
    fn from(alias: Alias) -> Self {
        NewUnit {
            symbols: vec![(alias.symbol, alias.flags)],
            initializer: None,
            source: Source::Alias(alias.from, alias.aliasee),
        }
    }
}

/// How definitions relate to existing ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// An existing definition is a conflict, unless it is weak or generated.
    Define,
    /// They replace existing ones.
    Replace,
    /// A generator defines them, for missing symbols: later definitions replace these, so the result does not
    /// depend on who has looked a symbol up before.
    Generate,
}

/// Defines units.
pub struct Define<P: Parts> {
    pub dylib: DylibId,
    /// The tracker with which they are removed; `None` for the dylib's own.
    pub tracker: Option<TrackerId<P>>,
    pub units: Vec<NewUnit<P>>,
    /// How to treat existing definitions.
    pub how: How,
    /// Whether it belongs to work begun before the session was stopped, or to its end.
    pub begun: bool,
}

impl<P: Parts> Event<P> for Define<P> {
    type Reply = Result<(), (Error, Vec<NewUnit<P>>)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.define_all(self, &[])
    }
}

impl<P: Parts> Machine<P> {
    /// See [`Define`]. `renewed` are existing symbols whose parts the definitions replace.
    pub(super) fn define_all(
        &mut self,
        mut define: Define<P>,
        renewed: &[Symbol],
    ) -> Result<(), (Error, Vec<NewUnit<P>>)> {
        let (tracker, wholes) = match self.may_define(&define, renewed) {
            Ok(allowed) => allowed,
            Err(error) => return Err((error, define.units)),
        };
        let held = match self.hold(define.units.iter().flat_map(NewUnit::names)) {
            Ok(held) => held,
            Err(error) => return Err((error, define.units)),
        };
        for part in wholes.former_parts {
            self.leave_name(Label { dylib: define.dylib, symbol: part });
        }
        // Wholes before their parts, for observers.
        let is_part = |unit: &NewUnit<P>| unit.symbols.first().is_some_and(|(symbol, _)| symbol.is_part());
        define.units.sort_by_key(is_part);
        for unit in define.units {
            let unit = self.define(define.dylib, tracker, unit, define.how == How::Replace, &wholes.lost);
            if let Some(unit) = self.units.get_mut(unit) {
                unit.is_generated = define.how == How::Generate;
            }
        }
        self.release(held);
        Ok(())
    }
}

/// What definitions do to wholes and parts.
#[derive(Default)]
pub(super) struct Wholes {
    /// New wholes that give way to existing definitions, as do their parts.
    lost: FxHashSet<Symbol>,
    /// Parts of existing wholes that are replaced, or get other parts, without these.
    former_parts: Vec<Symbol>,
}

/// Returns the symbol of a ready unit to a source, as if it had not been looked up. The ready definition is
/// dismissed.
///
/// A look-up finds one or the other: the symbol is defined in every step.
pub struct Renew<P: Parts> {
    /// The symbol, the only one of its unit.
    pub label: Label,
    /// The address it is expected to have.
    pub address: P::Address,
    /// The unit that defines it from then on, with the same tracker.
    pub unit: NewUnit<P>,
}

impl<P: Parts> Event<P> for Renew<P>
where
    P::Address: PartialEq,
{
    /// Returns the new unit if the symbol has another address or its current definition is in use.
    type Reply = Result<(), NewUnit<P>>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let dylib = self.label.dylib;
        let expected = self.address;
        let leads_there = |state: &State<P>| matches!(state, State::Ready(Some(at)) if *at == expected);
        let tracker =
            machine.find(self.label).and_then(|there| machine.tracker_if_unused(there, leads_there));
        match tracker {
            Some(tracker) if machine.accepting(dylib, true).is_ok() => {
                let Ok(held) = machine.hold(self.unit.names()) else { return Err(self.unit) };
                machine.define(dylib, tracker, self.unit, true, &FxHashSet::default());
                machine.release(held);
                Ok(())
            }
            _ => Err(self.unit),
        }
    }
}

/// Fails a unit for a reason that may be temporary: lookups that wait for its symbols get the cause, and
/// later ones find another unit. The same applies to the units that wait for it and can be made again
/// ([`Complete::again`](super::Complete::again)), and to aliases.
///
/// One step: between two, a lookup would get a cause that no longer holds.
pub struct FailForNow<P: Parts> {
    pub unit: UnitId<P>,
    pub cause: Cause,
    /// The source that defines its symbols from then on, with the same tracker.
    pub again: Source<P>,
    /// Whether the cause is temporary, whatever it states. If not, and it is the failure of other symbols,
    /// `again` waits until one of these is removed or replaced.
    pub passes: bool,
}

impl<P: Parts> Event<P> for FailForNow<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        let again = machine.hold_source(Some(self.again));
        let unused = match machine.units.get_mut(self.unit) {
            Some(unit) => std::mem::replace(&mut unit.again, again),
            None => again,
        };
        machine.drop_unused(unused);
        let passes = self.passes || self.cause.passes();
        machine.fail_perhaps_for_now(self.unit, self.cause, passes);
    }
}

impl<P: Parts> Machine<P> {
    /// The tracker of the unit of a symbol in this state, if that is its only symbol and unused.
    fn tracker_if_unused(
        &self,
        version: Version<P>,
        is_so: impl Fn(&State<P>) -> bool,
    ) -> Option<TrackerId<P>> {
        let entry = self.entries.get(version).filter(|entry| is_so(&entry.state))?;
        let is_used = entry.users.iter().any(|user| self.is_user(*user, version));
        let unit = self.units.get(entry.unit)?;
        (!is_used && unit.entries.len() == 1).then_some(unit.tracker)
    }

    /// The tracker for definitions in a dylib: this one, or the dylib's own if there is none.
    pub(super) fn tracker_for(
        &mut self,
        dylib: DylibId,
        tracker: Option<TrackerId<P>>,
        begun: bool,
    ) -> Result<TrackerId<P>, Error> {
        let default = self.accepting(dylib, begun)?.default_tracker;
        let tracker = tracker.unwrap_or(default);
        self.check_session("tracker", tracker.session())?;
        match self.trackers.get(tracker) {
            None => Err(Error::Removed),
            Some(known) if known.dylib != dylib => Err(Error::DifferentDylibs),
            Some(_) => Ok(tracker),
        }
    }

    /// The tracker of the definitions, and what they do to existing ones, if they are allowed. `renewed` are existing symbols whose
    /// parts they replace.
    pub(super) fn may_define(
        &mut self,
        define: &Define<P>,
        renewed: &[Symbol],
    ) -> Result<(TrackerId<P>, Wholes), Error> {
        let tracker = self.tracker_for(define.dylib, define.tracker, define.begun)?;
        self.check_links(define.units.iter().filter_map(|unit| unit.source.home()))?;
        let at = |symbol| Label { dylib: define.dylib, symbol };
        let symbols = define.units.iter().flat_map(|unit| &unit.symbols);
        let (parts, symbols): (Vec<_>, Vec<_>) = symbols.partition(|(symbol, _)| symbol.is_part());
        let (mut twice, mut busy) = (Vec::new(), Vec::new());
        let (mut wholes, mut renewed) = (Wholes::default(), renewed.to_vec());
        // Whether an earlier definition in the same event is strong.
        let mut earlier: FxHashMap<Symbol, bool> = FxHashMap::default();
        for &(symbol, flags) in symbols {
            let label = at(symbol);
            let strong = !flags.has(SymbolFlags::WEAK);
            let there = self.find(label).and_then(|version| self.entries.get(version));
            let is_generated =
                |entry: &Entry<P>| self.units.get(entry.unit).is_some_and(|unit| unit.is_generated);
            let yields = there.is_some_and(|entry| match define.how {
                How::Define => strong && is_generated(entry),
                How::Replace => true,
                How::Generate => false,
            });
            match there.map(|entry| (&entry.state, entry.flags.has(SymbolFlags::WEAK))) {
                Some((State::Materializing(_) | State::Resolved(..) | State::Emitted(..), _)) if yields => {
                    busy.push(label);
                }
                Some(_) if yields => renewed.push(symbol),
                None => {}
                Some((State::NeverSearched, true)) if strong => renewed.push(symbol),
                Some(_) if strong => twice.push(label),
                Some(_) => drop(wholes.lost.insert(symbol)),
            }
            let before = earlier.entry(symbol).or_insert(false);
            if strong && *before {
                twice.push(label);
            }
            *before |= strong;
        }
        let mut new_parts: FxHashSet<Symbol> = FxHashSet::default();
        let mut without_whole = Vec::new();
        for &(part, _) in parts {
            let whole = part.whole();
            if wholes.lost.contains(&whole) {
                continue;
            }
            let is_added = !earlier.contains_key(&whole) && !renewed.contains(&whole);
            if !new_parts.insert(part) || is_added && self.find(at(part)).is_some() {
                twice.push(at(part));
            } else if is_added && self.find(at(whole)).is_none() {
                without_whole.push(at(whole));
            }
        }
        for part in renewed.iter().flat_map(|symbol| symbol.parts()) {
            if self.is_pending(at(part)) {
                busy.push(at(part));
            } else if !new_parts.contains(&part) {
                wholes.former_parts.push(part);
            }
        }
        for (labels, error) in [
            (busy, (|symbols| Error::Busy { symbols }) as fn(Vec<Name>) -> Error),
            (twice, |symbols| Error::Duplicate { symbols }),
            (without_whole, |symbols| Error::NotFound { symbols }),
        ] {
            if !labels.is_empty() {
                return Err(error(self.names_without_repetition(labels)));
            }
        }
        Ok((tracker, wholes))
    }

    /// The caller holds the names of `new`. Parts of `lost_wholes` give way.
    pub(super) fn define(
        &mut self,
        dylib: DylibId,
        tracker: TrackerId<P>,
        new: NewUnit<P>,
        replace: bool,
        lost_wholes: &FxHashSet<Symbol>,
    ) -> UnitId<P> {
        new.source.aliasee().map(|symbol| self.names.retain(symbol));
        let unit = self.new_unit(dylib, tracker, Phase::Lazy { source: new.source, lost: Vec::new() });
        for (symbol, flags) in new.symbols {
            let label = Label { dylib, symbol };
            let weak = flags.has(SymbolFlags::WEAK);
            let opening = new.initializer.filter(|opening| opening.symbol == symbol);
            let before = self.find(label);
            // The replacement of an initialiser runs in the original's place.
            let place = before.zip(opening).and_then(|(before, opening)| {
                let known = &self.dylibs.get(dylib).ok()?.initializers;
                let is_it =
                    |known: &Initializer<P>| known.version == before && known.priority == opening.priority;
                known.iter().position(is_it)
            });
            let is_lost = match symbol.is_part() {
                true => lost_wholes.contains(&symbol.whole()),
                false => weak && !replace && before.is_some(),
            };
            match before {
                Some(there) if self.entries.get(there).is_some_and(|entry| entry.unit == unit) => continue,
                _ if is_lost => {
                    if let Some(Unit { phase: Phase::Lazy { lost, .. }, .. }) = self.units.get_mut(unit) {
                        lost.push(symbol);
                    }
                    continue;
                }
                Some(there) => {
                    let lazy =
                        self.entries.get(there).is_some_and(|e| matches!(e.state, State::NeverSearched));
                    if lazy {
                        self.give_way(there);
                    } else {
                        self.lose_name(there);
                    }
                }
                None => {}
            }
            let version = self.new_entry(label, flags, unit, State::NeverSearched);
            self.observe(version, |_| Happened::Defined);
            if let (Some(opening), Ok(dylib)) = (opening, self.dylibs.get_mut(dylib)) {
                let all = &mut dylib.initializers;
                let after = all.partition_point(|known| known.priority <= opening.priority);
                let place = place.filter(|place| *place <= all.len()).unwrap_or(after);
                all.insert(place, Initializer::new(version, opening.priority));
            }
        }
        self.drop_if_empty(unit);
        unit
    }

    pub(super) fn new_unit(&mut self, dylib: DylibId, tracker: TrackerId<P>, phase: Phase<P>) -> UnitId<P> {
        let unit = self.units.insert(Unit {
            dylib,
            tracker,
            entries: SmallVec::new(),
            phase,
            codes: Vec::new(),
            again: None,
            uses: SmallVec::new(),
            waits: SmallVec::new(),
            possible_waits: SmallVec::new(),
            is_alias: false,
            is_generated: false,
            alias_of: None,
        });
        if let Some(tracker) = self.trackers.get_mut(tracker) {
            tracker.units.insert(unit);
        }
        unit
    }

    pub(super) fn new_entry(
        &mut self,
        label: Label,
        flags: SymbolFlags,
        unit: UnitId<P>,
        state: State<P>,
    ) -> Version<P> {
        // The caller holds it, so this cannot fail.
        self.names.retain(label.symbol);
        let version =
            self.entries.insert(Entry { label, flags, unit, state, named: true, users: SmallVec::new() });
        if let Some(unit) = self.units.get_mut(unit) {
            unit.entries.push(version);
        }
        if let Ok(dylib) = self.dylibs.get_mut(label.dylib) {
            dylib.symbols.insert(label.symbol, version);
        }
        version
    }

    /// Removes a symbol that was never searched from its unit.
    pub(super) fn give_way(&mut self, version: Version<P>) {
        self.observe(version, |_| Happened::Removed);
        let Some(entry) = self.entries.remove(version) else { return };
        self.release([entry.label.symbol]);
        self.report_unnamed(entry.label);
        if let Ok(dylib) = self.dylibs.get_mut(entry.label.dylib) {
            dylib.symbols.remove(&entry.label.symbol);
            dylib.initializers.retain(|known| known.version != version);
        }
        if let Some(unit) = self.units.get_mut(entry.unit) {
            unit.entries.retain(|known| *known != version);
            if let Phase::Lazy { lost, .. } = &mut unit.phase {
                lost.push(entry.label.symbol);
            }
        }
        self.drop_if_empty(entry.unit);
    }

    /// Drops a unit that nothing can start any more.
    pub(super) fn drop_if_empty(&mut self, unit: UnitId<P>) {
        if self.units.get(unit).is_some_and(|unit| unit.entries.is_empty()) {
            self.forget_unit(unit);
        }
    }

    /// Removes `unit` from the tables, with what it owns; the caller handles its entries.
    pub(super) fn forget_unit(&mut self, unit: UnitId<P>) -> Option<Unit<P>> {
        let mut gone = self.units.remove(unit)?;
        if let Some(tracker) = self.trackers.get_mut(gone.tracker) {
            tracker.units.remove(&unit);
        }
        if let Phase::Lazy { source, lost } = std::mem::replace(&mut gone.phase, Phase::Done) {
            self.drop_source(source, lost);
        }
        self.drop_unused(gone.again.take());
        self.effects.retired.extend(gone.codes.drain(..).rev());
        Some(gone)
    }

    /// Drops the source that would have made a unit again, if there is one.
    pub(super) fn drop_unused(&mut self, again: Option<Source<P>>) {
        if let Some(again) = again {
            self.drop_source(again, Vec::new());
        }
    }

    /// Drops a source that will not be run, after the step, and notifies it of its overridden symbols.
    pub(super) fn drop_source(&mut self, source: Source<P>, lost: Vec<Symbol>) {
        self.release(source.aliasee());
        self.drop_unheld(source, lost);
    }

    /// Like [`Machine::drop_source`], for a source that was never in the tables.
    pub(super) fn drop_unheld(&mut self, source: Source<P>, lost: Vec<Symbol>) {
        match source {
            Source::Work(source) => self.effects.dropped.push((source, lost)),
            Source::Absolute(_) | Source::Alias(..) => {}
        }
    }
}
