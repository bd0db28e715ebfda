//! Units that wait for each other's addresses.
//!
//! ```text
//!   f: lookup until `g` has an address ──► g: lookup until `h` has one ──► h: lookup until `f` has one
//!   ▲                                                                              │
//!   └──────────────────────────────── the cycle ◄─────────────────────────────────┘
//! ```
//!
//! A unit that is being materialized and continues with the answer of a lookup is blocked on the lookup. When
//! the last lookup of a cycle begins to wait, none of them can be answered. One is then answered with
//! [`Error::Cycle`]: a waiting thread's, if there is one. Units whose symbols have addresses before they look
//! anything up, such as stubs, are in no cycle.
//!
//! Aliases have their own lookups, which block only the waiters of the alias: they can be links of cycles,
//! and get the error only if no other link can.
//!
//! Cost: a lookup with an owner and awaited symbols is followed once, when it begins to wait: along the
//! lookups and units below it, until its owner is found or nothing is left.
//!
//! Not detected: cycles closed by an emission, of lookups until symbols are ready.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Doer, Machine, Parts, Purpose, QueryId, State, UnitId, Version};
use crate::error::Error;

/// A lookup of a cycle.
struct Step<P: Parts> {
    query: QueryId<P>,
    /// The doer that waits for it.
    doer: Doer,
}

/// How the walk reached a lookup: the previous lookup, and the doer that waits for it.
type Reached<P> = (QueryId<P>, Doer);

impl<P: Parts> Machine<P> {
    /// Breaks the cycles that lookups have closed in this step.
    pub(super) fn break_lookup_cycles(&mut self) {
        while let Some(query) = self.new_lookups.pop() {
            // One lookup may close several; each iteration breaks one.
            while let Some(cycle) = self.cycle(query) {
                self.break_lookup_cycle(&cycle);
            }
        }
    }

    fn break_lookup_cycle(&mut self, cycle: &[Step<P>]) {
        let query = |step: &&Step<P>| self.queries.get(step.query);
        let is_blocked =
            |step: &&Step<P>| self.blocked.iter().any(|blocked| blocked.on.is_lookup(step.query));
        let is_asked =
            |step: &&Step<P>| query(step).is_some_and(|query| matches!(query.purpose, Purpose::Ticket(_)));
        let told = cycle.iter().find(is_blocked).or_else(|| cycle.iter().find(is_asked));
        if let Some(told) = told.or_else(|| cycle.first()) {
            let symbols = self.made_by(told.doer);
            self.answer(told.query, Err(Error::Cycle { symbols }));
        }
    }

    /// The cycle closed by a lookup, starting there; `None` if it closes none.
    fn cycle(&mut self, start: QueryId<P>) -> Option<Vec<Step<P>>> {
        let owner = self.queries.get(start)?.owner?;
        if !self.is_awaited(owner) {
            return None;
        }
        let mut from: FxHashMap<QueryId<P>, Reached<P>> = FxHashMap::default();
        let mut seen: FxHashSet<Version<P>> = FxHashSet::default();
        let mut queries = vec![start];
        let mut below: Vec<Version<P>> = Vec::new();
        while let Some(id) = queries.pop() {
            let Some(query) = self.queries.get(id) else { continue };
            let mut doers: SmallVec<[Doer; 4]> = SmallVec::new();
            doers.extend(query.asking.iter().map(|&request| Doer::request(request)));
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
                            doers.push(Doer::unit(entry.unit));
                        }
                    }
                }
            }
            for doer in doers {
                if doer == owner {
                    return Some(Self::way((id, owner), &from));
                }
                for &next in self.waits_of(doer) {
                    if next != start && self.queries.contains(next) && !from.contains_key(&next) {
                        from.insert(next, (id, doer));
                        queries.push(next);
                    }
                }
            }
        }
        None
    }

    /// The path to a lookup that waits for the owner of the first.
    fn way((mut query, owner): Reached<P>, from: &FxHashMap<QueryId<P>, Reached<P>>) -> Vec<Step<P>> {
        let mut way = Vec::new();
        while let Some(&(before, doer)) = from.get(&query) {
            way.push(Step { query, doer });
            query = before;
        }
        way.push(Step { query, doer: owner });
        way.reverse();
        way
    }

    /// Whether a lookup waits for what a doer produces.
    fn is_awaited(&self, doer: Doer) -> bool {
        let unit: Option<UnitId<P>> = doer.as_unit();
        unit.is_none_or(|unit| {
            let entries = self.units.get(unit).map(|unit| unit.entries.as_slice()).unwrap_or_default();
            entries.iter().any(|version| self.is_wanted(*version))
        })
    }

    /// The lookups without which a doer cannot continue.
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
