//! Units that wait for each other's addresses, and nobody else does.
//!
//! ```text
//!   f: lookup until `g` has an address ──► g: lookup until `h` has one ──► h: lookup until `f` has one
//!   ▲                                                                              │
//!   └──────────────────────────────── the circle ◄─────────────────────────────────┘
//! ```
//!
//! A lookup of a unit that is being made, for the unit to go on with, holds the unit up. When the last lookup of a circle comes to wait, none
//! of them would ever be answered. Each of these programs is right, and so the circle is opened and not refused: one of the lookups,
//! the last one if it may, goes on without the address of the symbol that leads round, if that is code, which is found *without an address* ([`Owner::bends`]). Its
//! unit links in another way (through a slot, say) and depends on the symbol as on any other, so it is ready when the whole circle is.
//! Where nobody in the circle can do that, one lookup is answered with [`Error::Cycle`]: that of a thread that waits, if there is one.
//!
//! Aliases have lookups of their own, which hold up nobody but whoever waits for the alias: they are links of circles, and are told only
//! if nobody else can be.
//!
//! Cost: a lookup with an owner whose symbols somebody waits for is followed once, when it comes to wait: along the lookups and units that wait
//! below it, until its owner is found or nothing is left.
//!
//! Not seen: circles that an emission closes, of lookups until symbols are ready.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Doer, Found, Machine, Parts, Purpose, QueryId, State, UnitId, Version};
use crate::error::Error;
use crate::flags::SymbolFlags;

/// A lookup of a circle.
struct Step<P: Parts> {
    query: QueryId<P>,
    /// The symbol by which it leads on; none if it waits for a generator.
    by: Option<Version<P>>,
    /// Who waits for it.
    doer: Doer,
}

/// Where a lookup was come upon: the lookup before it, the symbol of that, and who waits for it.
type From<P> = (QueryId<P>, Option<Version<P>>, Doer);

impl<P: Parts> Machine<P> {
    /// Opens the circles that lookups have closed in this step.
    pub(super) fn open_circles(&mut self) {
        while let Some(query) = self.lodged.pop() {
            // One look-up may close several; each round opens one.
            while let Some(circle) = self.circle(query) {
                self.open_circle(&circle);
            }
        }
    }

    fn open_circle(&mut self, circle: &[Step<P>]) {
        let query = |step: &&Step<P>| self.queries.get(step.query);
        // Data has no other way that leads there.
        let is_code = |step: &&Step<P>| {
            let entry = step.by.and_then(|version| self.entries.get(version));
            entry.is_some_and(|entry| entry.flags.has(SymbolFlags::CALLABLE))
        };
        let bends = |step: &&Step<P>| is_code(step) && query(step).is_some_and(|query| query.bends);
        // An alias leads to an address that another symbol gets.
        let is_made = |step: &&Step<P>| {
            let unit = step.by.and_then(|version| self.units.get(self.entries.get(version)?.unit));
            unit.is_some_and(|unit| unit.alias_of.is_none())
        };
        let able = || circle.iter().filter(bends);
        if let Some(step) = able().find(is_made).or_else(|| able().next())
            && let Some(version) = step.by
        {
            return self.find_without_address(step.query, version);
        }
        let is_blocked =
            |step: &&Step<P>| self.blocked.iter().any(|blocked| blocked.on.is_lookup(step.query));
        let is_asked =
            |step: &&Step<P>| query(step).is_some_and(|query| matches!(query.purpose, Purpose::Ticket(_)));
        let told = circle.iter().find(is_blocked).or_else(|| circle.iter().find(is_asked));
        if let Some(told) = told.or_else(|| circle.first()) {
            let symbols = self.made_by(told.doer);
            self.answer(told.query, Err(Error::Cycle { symbols }));
        }
    }

    /// Answers a lookup as far as it concerns a symbol that cannot have an address before the answer.
    fn find_without_address(&mut self, id: QueryId<P>, version: Version<P>) {
        if let Some(query) = self.queries.get_mut(id) {
            query.versions.retain(|wanted| *wanted != version);
        }
        let Some(entry) = self.entries.get_mut(version) else { return };
        let found = Found { label: entry.label, flags: entry.flags, address: None, version };
        let mut places: SmallVec<[usize; 1]> = SmallVec::new();
        if let Some(pending) = entry.state.pending() {
            places.extend(pending.waiters.iter().filter(|(query, _)| *query == id).map(|(_, place)| *place));
            pending.waiters.retain(|(query, _)| *query != id);
        }
        for place in places {
            self.arrived(id, place, Some(found));
        }
    }

    /// The circle that a lookup closes, from that one on; none if it closes none.
    fn circle(&mut self, start: QueryId<P>) -> Option<Vec<Step<P>>> {
        let owner = self.queries.get(start)?.owner?;
        if !self.is_awaited(owner) {
            return None;
        }
        // Where each lookup was come upon.
        let mut from: FxHashMap<QueryId<P>, From<P>> = FxHashMap::default();
        let mut seen: FxHashSet<Version<P>> = FxHashSet::default();
        let mut queries = vec![start];
        let mut below: Vec<Version<P>> = Vec::new();
        while let Some(id) = queries.pop() {
            let Some(query) = self.queries.get(id) else { continue };
            let mut doers: SmallVec<[(Doer, Option<Version<P>>); 4]> = SmallVec::new();
            doers.extend(query.asking.iter().map(|&request| (Doer::request(request), None)));
            let until = query.until;
            let wanted: SmallVec<[Version<P>; 8]> = query.versions.iter().copied().collect();
            for wanted in wanted {
                if self.has_come(wanted, until) {
                    continue;
                }
                below.push(wanted);
                while let Some(version) = below.pop() {
                    let Some(entry) = self.entries.get(version).filter(|_| seen.insert(version)) else {
                        continue;
                    };
                    match &entry.state {
                        State::NeverSearched | State::Ready(_) | State::Failed(_) => {}
                        State::Emitted(_, pending) => below.extend(self.graph.witness(pending.port)),
                        State::Materializing(_) | State::Resolved(..) => {
                            doers.push((Doer::unit(entry.unit), Some(wanted)));
                        }
                    }
                }
            }
            for (doer, by) in doers {
                if doer == owner {
                    return Some(Self::way((id, by, owner), &from));
                }
                for &next in self.waits_of(doer) {
                    if next != start && self.queries.contains(next) && !from.contains_key(&next) {
                        from.insert(next, (id, by, doer));
                        queries.push(next);
                    }
                }
            }
        }
        None
    }

    /// The way to a lookup that waits for the owner of the first, by this symbol.
    fn way(last: From<P>, from: &FxHashMap<QueryId<P>, From<P>>) -> Vec<Step<P>> {
        let (mut query, mut by, owner) = last;
        let mut way = Vec::new();
        while let Some(&(before, led, doer)) = from.get(&query) {
            way.push(Step { query, by, doer });
            (query, by) = (before, led);
        }
        way.push(Step { query, by, doer: owner });
        way.reverse();
        way
    }

    /// Whether somebody waits for what a doer makes.
    fn is_awaited(&self, doer: Doer) -> bool {
        let unit: Option<UnitId<P>> = doer.as_unit();
        unit.is_none_or(|unit| {
            let entries = self.units.get(unit).map(|unit| unit.entries.as_slice()).unwrap_or_default();
            entries.iter().any(|version| self.is_wanted(*version))
        })
    }

    /// The lookups without which a doer does not go on.
    fn waits_of(&self, doer: Doer) -> &[QueryId<P>] {
        let waits = match doer.as_unit() {
            Some(unit) => self.units.get(unit).map(|unit| unit.waits.as_slice()),
            None => doer
                .as_request()
                .and_then(|request| self.requests.get(request))
                .map(|request| request.waits.as_slice()),
        };
        waits.unwrap_or_default()
    }
}
