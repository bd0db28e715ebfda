//! Waits that could never end: who does what, and who waits for it.
//!
//! A *doer* is whoever brings something about: a unit that is being materialized, or a generator that was asked. While a
//! thread is in the middle of tasks, it works for their doers, and when it waits for a lookup, none of them goes on until
//! that is answered. What a lookup waits for, in turn, is known:
//!
//! ```text
//!   thread ── in the middle of tasks of ──► doers ── each waits for ──► lookups (of its own, or of its thread)
//!                                             ▲                            │ not there yet
//!                                             └── made by ── symbols ◄─────┘
//!                                                              └─ emitted: a unit below which theirs hangs
//! ```
//!
//! A thread whose lookup needs a doer that the thread itself is in the middle of waits for itself, through whatever other
//! threads and tasks: its lookup is answered with [`Error::Cycle`]. It is found when the thread begins to wait, or when what
//! others do closes the circle. The same relation says which tasks a waiting thread may run on top of what it is in the
//! middle of without burying what it waits for; there, lookups for a continuation count as well that were made in the middle of what a
//! doer does ([`Session::lookup_then`](crate::Session::lookup_then)), or by a responsibility that does not await them yet: the doer may go on in
//! the answer, but need not, so they make no circle.
//!
//! Cost: nothing while no thread waits inside a task; then one walk over what it waits for, and one for each step by
//! which somebody comes to wait for more.
//!
//! Not seen here: circles in which no thread waits, only lookups with continuations (`circles.rs`). Not seen: a responsibility that a task gave away, or
//! split off, counts as the task's for as long as it runs, or not at all. Where all threads
//! that could end such a wait are known to wait themselves, dispatchers run whatever there is.

use std::num::NonZeroU32;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::{Event, Machine, Parts, Purpose, QueryId, RequestId, State, UnitId, Version};
use crate::error::Error;
use crate::flags::Until;
use crate::ids::Key;

/// A unit or a question to a generator, as what is being done. See the file's header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Doer {
    is_request: bool,
    key: (u32, NonZeroU32),
}

impl Doer {
    /// Whoever materializes a unit.
    #[must_use]
    pub fn unit<P: Parts>(unit: UnitId<P>) -> Doer {
        Doer { is_request: false, key: unit.parts() }
    }

    /// Whoever answers a question.
    #[must_use]
    pub fn request<P: Parts>(request: RequestId<P>) -> Doer {
        Doer { is_request: true, key: request.parts() }
    }

    /// The unit that is made, if it is one.
    pub(super) fn as_unit<P: Parts>(self) -> Option<UnitId<P>> {
        (!self.is_request).then(|| Key::from_parts(self.key))
    }

    /// The question that is answered, if it is one.
    pub(super) fn as_request<P: Parts>(self) -> Option<RequestId<P>> {
        self.is_request.then(|| Key::from_parts(self.key))
    }
}

/// How sure it is that a doer goes on only when a lookup is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Known,
    Perhaps,
}

/// A thread that waits.
pub(super) struct Blocked<P: Parts> {
    /// What it is in the middle of.
    doers: SmallVec<[Doer; 2]>,
    pub(super) query: QueryId<P>,
}

/// A thread is about to wait for a lookup, in the middle of what these do.
pub struct Block<P: Parts> {
    /// What the thread is in the middle of.
    pub doers: SmallVec<[Doer; 2]>,
    /// The lookup.
    pub query: QueryId<P>,
}

impl<P: Parts> Event<P> for Block<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        if !machine.queries.contains(self.query) {
            return;
        }
        for &doer in &self.doers {
            machine.note(doer, self.query, Certainty::Known);
        }
        machine.blocked.push(Blocked { doers: self.doers, query: self.query });
    }
}

/// A doer does not go on without the answer of a lookup from now on.
pub struct Await<P: Parts> {
    /// Who awaits it.
    pub doer: Doer,
    /// The lookup.
    pub query: QueryId<P>,
}

impl<P: Parts> Event<P> for Await<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        if let Some(query) = machine.queries.get_mut(self.query) {
            query.owner = Some(self.doer);
            machine.lodged.push(self.query);
            machine.note(self.doer, self.query, Certainty::Known);
        }
    }
}

/// A thread does not wait for the lookup any more.
pub struct Unblock<P: Parts>(pub QueryId<P>);

impl<P: Parts> Event<P> for Unblock<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.blocked.retain(|blocked| blocked.query != self.0);
    }
}

/// The doers that a lookup waits for, through whatever lookups and units.
pub struct NeededBy<P: Parts>(pub QueryId<P>);

impl<P: Parts> Event<P> for NeededBy<P> {
    type Reply = FxHashSet<Doer>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.needed_by(self.0, Certainty::Perhaps)
    }
}

impl<P: Parts> Machine<P> {
    /// Notes that a doer goes on only when a lookup is answered, or that it may be so.
    pub(super) fn note(&mut self, doer: Doer, query: QueryId<P>, certainty: Certainty) {
        let queries = &self.queries;
        let noted = match doer.is_request {
            false => self.units.get_mut(Key::from_parts(doer.key)).map(|u| (&mut u.waits, &mut u.hopes)),
            true => self.requests.get_mut(Key::from_parts(doer.key)).map(|r| (&mut r.waits, &mut r.hopes)),
        };
        if let Some((waits, hopes)) = noted {
            let noted = if certainty == Certainty::Known { waits } else { hopes };
            noted.retain(|known| queries.contains(*known));
            noted.push(query);
        }
        self.has_new_waits = true;
    }

    /// Whom a lookup needs, by links that are known, or by all.
    fn needed_by(&mut self, start: QueryId<P>, by: Certainty) -> FxHashSet<Doer> {
        let mut doers = FxHashSet::default();
        let mut seen: FxHashSet<Version<P>> = FxHashSet::default();
        let (mut queries, mut versions) = (vec![start], Vec::new());
        loop {
            let doer = if let Some(query) = queries.pop() {
                let Some(query) = self.queries.get(query) else { continue };
                versions
                    .extend(query.versions.iter().filter(|&&version| !self.has_come(version, query.until)));
                for &request in &query.asking {
                    if doers.insert(Doer::request(request))
                        && let Some(request) = self.requests.get(request)
                    {
                        queries.extend(&request.waits);
                        queries.extend(request.hopes.iter().filter(|_| by == Certainty::Perhaps));
                    }
                }
                continue;
            } else if let Some(version) = versions.pop() {
                let Some(entry) = self.entries.get(version).filter(|_| seen.insert(version)) else {
                    continue;
                };
                match &entry.state {
                    State::NeverSearched | State::Ready(_) | State::Failed(_) => continue,
                    State::Emitted(_, pending) => {
                        versions.extend(self.graph.witness(pending.port));
                        continue;
                    }
                    State::Materializing(_) | State::Resolved(..) => {}
                }
                if let Some(unit) = self.units.get(entry.unit) {
                    queries.extend(&unit.waits);
                    queries.extend(unit.hopes.iter().filter(|_| by == Certainty::Perhaps));
                }
                Doer::unit(entry.unit)
            } else {
                return doers;
            };
            doers.insert(doer);
        }
    }

    pub(super) fn has_come(&self, version: Version<P>, until: Until) -> bool {
        match self.entries.get(version).map(|entry| &entry.state) {
            Some(State::Resolved(..) | State::Emitted(Some(_), _)) => until == Until::Resolved,
            Some(State::NeverSearched | State::Materializing(_) | State::Emitted(None, _)) => false,
            Some(State::Ready(_) | State::Failed(_)) | None => true,
        }
    }

    /// Answers the lookups of threads that wait for themselves.
    pub(super) fn break_cycles(&mut self) {
        if !std::mem::take(&mut self.has_new_waits) || self.blocked.is_empty() {
            return;
        }
        self.effects.waits_changed = true;
        self.blocked.retain(|blocked| self.queries.contains(blocked.query));
        // An answer breaks the circles through it: those that are looked at later are free of them. Who came last is told
        // first: it may lie on top of others that cannot go on before it does.
        for at in (0..self.blocked.len()).rev() {
            let Some(query) = self.blocked.get(at).map(|blocked| blocked.query) else { continue };
            let needed = self.needed_by(query, Certainty::Known);
            let doers = self.blocked.get(at).into_iter().flat_map(|blocked| &blocked.doers);
            let own = doers.copied().find(|doer| needed.contains(doer));
            if let Some(own) = own.filter(|_| self.queries.contains(query)) {
                let symbols = self.made_by(own);
                self.answer(query, Err(Error::Cycle { symbols }));
            }
        }
    }

    pub(super) fn made_by(&self, doer: Doer) -> Vec<crate::Name> {
        if doer.is_request {
            let request: Option<&super::Request<P>> = self.requests.get(Key::from_parts(doer.key));
            let symbols = request.into_iter().flat_map(|request| &request.symbols);
            return symbols.map(|&s| crate::Name { dylib: "".into(), symbol: self.names.text(s) }).collect();
        }
        let unit: UnitId<P> = Key::from_parts(doer.key);
        self.units.get(unit).map(|unit| self.names_of_versions(&unit.entries)).unwrap_or_default()
    }

    /// Whom a lookup is for, as far as that is known.
    pub(super) fn owner_waits(&mut self, query: QueryId<P>, owner: Option<Doer>) {
        let alias = match self.queries.get(query).map(|query| &query.purpose) {
            Some(Purpose::Alias(unit)) => Some(Doer::unit(*unit)),
            _ => None,
        };
        if let Some(owner) = owner.or(alias) {
            if let Some(query) = self.queries.get_mut(query) {
                query.owner = Some(owner);
            }
            self.note(owner, query, Certainty::Known);
        }
    }
}
