//! Limits of calls: ending the materialization of a unit when the limits of the call that began it are
//! reached.
//!
//! A lookup has the number of the limited call that it belongs to. When a limit of a call is reached while a
//! unit is being materialized, the lookups that wait for the unit determine what happens:
//!
//! ```text
//!   only lookups of calls that have ended   ──► the unit fails for now: they get the cause, later lookups restart it
//!   any other lookup, through any units     ──► it continues: finished by the thread, or passed to the dispatcher again
//! ```
//!
//! Lookups are found by following the waits backwards: from the unit's symbols to the lookups and the units
//! that wait for them, and from an alias or the continuation of a unit to the waiters of that unit. A lookup
//! made by a task has no number: the task may serve any caller.
//!
//! Cost: none until a limit is reached; then one walk over everything that waits for the unit.

use rustc_hash::FxHashSet;

use super::{Event, FailForNow, Machine, Parts, Purpose, QueryId, Read, UnitId, Version, Work};
use crate::error::{Cause, Error, Failure};
use crate::flags::Priority;

/// Queries whether a lookup that does not belong to one of these calls waits for a unit.
pub struct IsWantedBeside<'a, P: Parts> {
    pub unit: UnitId<P>,
    /// The calls.
    pub callers: &'a [u64],
}

impl<P: Parts> Read<P> for IsWantedBeside<'_, P> {
    type Reply = bool;

    fn read(self, machine: &Machine<P>) -> bool {
        machine.materializing(self.unit).is_ok() && machine.waiters(self.unit, self.callers).has_others
    }
}

/// Abandons the materialization of a unit because the calls that it was begun for have ended. It fails for
/// now, unless other lookups wait for it: then it is to be materialized by `again`, and the lookups of the
/// ended calls get the cause.
pub struct Abandon<'a, P: Parts> {
    pub unit: UnitId<P>,
    pub cause: Cause,
    /// The source that defines its symbols from then on.
    pub again: P::Source,
    /// The calls.
    pub callers: &'a [u64],
}

impl<P: Parts> Event<P> for Abandon<'_, P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        let Abandon { unit, cause, again, callers } = self;
        let waiters = machine.waiters(unit, callers);
        if machine.materializing(unit).is_err() || !waiters.has_others {
            let again = super::Source::Work(again);
            return FailForNow { unit, cause, again, passes: true }.apply(machine);
        }
        let entries = machine.units.get(unit).map(|unit| unit.entries.to_vec()).unwrap_or_default();
        let failure = Failure::new(machine.names_of_versions(&entries), cause, true);
        for query in waiters.of_callers {
            machine.answer(query, Err(Error::Failed(failure.clone())));
        }
        machine.effects.work.push(Work {
            unit,
            source: again,
            lost: Vec::new(),
            priority: Priority::Blocking,
        });
        machine.effects.garbage.push(super::Garbage::Failure(failure));
    }
}

/// The lookups that wait for a unit.
struct Waiters<P: Parts> {
    of_callers: Vec<QueryId<P>>,
    has_others: bool,
}

impl<P: Parts> Machine<P> {
    fn waiters(&self, unit: UnitId<P>, callers: &[u64]) -> Waiters<P> {
        let mut waiters = Waiters { of_callers: Vec::new(), has_others: false };
        let mut seen_units: FxHashSet<UnitId<P>> = FxHashSet::default();
        let mut seen: FxHashSet<Version<P>> = FxHashSet::default();
        let (mut units, mut versions) = (vec![unit], Vec::new());
        loop {
            if let Some(version) = versions.pop() {
                let Some(entry) = self.entries.get(version).filter(|_| seen.insert(version)) else {
                    continue;
                };
                let Some(pending) = entry.state.waiting() else { continue };
                versions.extend(self.graph.dependants(pending.port));
                for &(query, _) in &pending.waiters {
                    let Some(data) = self.queries.get(query) else { continue };
                    let part_of = match data.purpose {
                        Purpose::Alias(unit) => Some(unit),
                        Purpose::Ticket(_) => data.owner.and_then(super::Doer::as_unit),
                    };
                    match part_of {
                        Some(unit) => units.push(unit),
                        None if data.caller != 0 && callers.contains(&data.caller) => {
                            waiters.of_callers.push(query);
                        }
                        None => waiters.has_others = true,
                    }
                }
            } else if let Some(unit) = units.pop() {
                let data = self.units.get(unit).filter(|_| seen_units.insert(unit));
                versions.extend(data.into_iter().flat_map(|unit| unit.entries.iter().copied()));
            } else {
                waiters.of_callers.sort_unstable();
                waiters.of_callers.dedup();
                return waiters;
            }
        }
    }
}
