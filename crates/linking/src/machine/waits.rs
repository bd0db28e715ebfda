//! Waits that could never end: which doers wait for which lookups.
//!
//! A *doer* is an actor in the tables: a unit being materialized, a generator with a request, or a thread
//! that opens or closes dylibs. A thread inside tasks works for their doers, and when it waits for a lookup,
//! none of them continues until the lookup is answered. The waits of a lookup are known in turn:
//!
//! ```text
//!   thread ── inside tasks of ──► doers ── each waits for ──► lookups (of its own, or of its thread)
//!                                            ▲ ▲ └─ opens what another thread opens: that ─┐   │ not there yet
//!                                            │ └───────────────────────────────────────────┘   │
//!                                            └── made by ── symbols ◄──────────────────────────┘
//!                                                              └─ emitted: the unit that theirs is below
//! ```
//!
//! A thread whose lookup needs a doer of the thread's own tasks waits for itself, through any other threads
//! and tasks: its lookup is answered with [`Error::Cycle`]. The cycle is found when the thread begins to
//! wait, or when a step of another thread closes it. An opening that would wait for another thread's, and so
//! for itself, is refused.
//!
//! The same relation determines which tasks a waiting thread may run on top of its own: those that do not
//! wait for the tasks below. There, lookups for a continuation count as well, of a doer's own work
//! ([`Session::lookup_then`](crate::Session::lookup_then)) or of a responsibility that does not await them
//! yet: the doer may continue in the answer, but need not, so they make no cycle.
//!
//! Cost: nothing while no thread waits inside a task; then one walk over its waits, and one for each step that adds waits.
//!
//! Not detected here: cycles in which no thread waits, only lookups with continuations (`cycles.rs`). Not
//! detected at all: a responsibility that a task passed on or split off counts as the task's for as long as
//! it runs, or not at all. If all threads that could end such a wait are known to wait themselves,
//! dispatchers run any task.

use std::thread::ThreadId;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::{Event, Machine, Parts, Purpose, QueryId, RequestId, State, UnitId, Version};
use crate::error::Error;
use crate::flags::Until;
use crate::ids::{self, Key};

/// A unit, a request to a generator, or a thread that opens or closes dylibs. See the file's header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Doer(Work);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Work {
    Unit(ids::Parts),
    Request(ids::Parts),
    Thread(ThreadId),
}

impl Doer {
    /// The doer that materializes a unit.
    #[must_use]
    pub fn unit<P: Parts>(unit: UnitId<P>) -> Doer {
        Doer(Work::Unit(unit.parts()))
    }

    /// The doer that answers a request.
    #[must_use]
    pub fn request<P: Parts>(request: RequestId<P>) -> Doer {
        Doer(Work::Request(request.parts()))
    }

    /// A thread that opens or closes dylibs.
    #[must_use]
    pub fn thread(thread: ThreadId) -> Doer {
        Doer(Work::Thread(thread))
    }

    /// The unit being made, if it is one.
    pub(super) fn as_unit<P: Parts>(self) -> Option<UnitId<P>> {
        match self.0 {
            Work::Unit(key) => Some(Key::from_parts(key)),
            Work::Request(_) | Work::Thread(_) => None,
        }
    }

    /// The request being answered, if it is one.
    pub(super) fn as_request<P: Parts>(self) -> Option<RequestId<P>> {
        match self.0 {
            Work::Request(key) => Some(Key::from_parts(key)),
            Work::Unit(_) | Work::Thread(_) => None,
        }
    }
}

/// How certain it is that a doer continues only when a lookup is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Known,
    Perhaps,
}

/// What a thread waits for.
pub(super) enum On<P: Parts> {
    Lookup(QueryId<P>),
    /// A dylib that another thread is opening or closing.
    Thread(ThreadId),
}

impl<P: Parts> Clone for On<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Parts> Copy for On<P> {}

impl<P: Parts> On<P> {
    pub(super) fn is_lookup(&self, query: QueryId<P>) -> bool {
        matches!(self, On::Lookup(known) if *known == query)
    }
}

/// A thread that waits.
pub(super) struct Blocked<P: Parts> {
    /// The thread, if it waits for another.
    by: Option<ThreadId>,
    /// Its work.
    doers: SmallVec<[Doer; 2]>,
    pub(super) on: On<P>,
}

/// A thread is about to wait for a lookup, while working for these doers.
pub struct Block<P: Parts> {
    /// The work of the thread.
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
        machine.blocked.push(Blocked { by: None, doers: self.doers, on: On::Lookup(self.query) });
    }
}

/// From now on a doer does not continue without the answer of a lookup.
pub struct Await<P: Parts> {
    /// The doer that awaits it.
    pub doer: Doer,
    /// The lookup.
    pub query: QueryId<P>,
}

impl<P: Parts> Event<P> for Await<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        if let Some(query) = machine.queries.get_mut(self.query) {
            query.owner = Some(self.doer);
            machine.new_lookups.push(self.query);
            machine.note(self.doer, self.query, Certainty::Known);
        }
    }
}

/// A thread no longer waits for the lookup.
pub struct Unblock<P: Parts>(pub QueryId<P>);

impl<P: Parts> Event<P> for Unblock<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.blocked.retain(|blocked| !blocked.on.is_lookup(self.0));
    }
}

/// The doers that a lookup waits for, through any lookups and units.
pub struct NeededBy<P: Parts>(pub QueryId<P>);

impl<P: Parts> Event<P> for NeededBy<P> {
    type Reply = FxHashSet<Doer>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.needed_by(On::Lookup(self.0), Certainty::Perhaps)
    }
}

impl<P: Parts> Machine<P> {
    /// Records that a doer continues only when a lookup is answered, or possibly does.
    pub(super) fn note(&mut self, doer: Doer, query: QueryId<P>, certainty: Certainty) {
        let queries = &self.queries;
        let noted = match doer.0 {
            Work::Unit(key) => {
                self.units.get_mut(Key::from_parts(key)).map(|u| (&mut u.waits, &mut u.possible_waits))
            }
            Work::Request(key) => {
                self.requests.get_mut(Key::from_parts(key)).map(|r| (&mut r.waits, &mut r.possible_waits))
            }
            // A thread waits for what it is known to be blocked by.
            Work::Thread(_) => None,
        };
        if let Some((waits, possible_waits)) = noted {
            let noted = if certainty == Certainty::Known { waits } else { possible_waits };
            noted.retain(|known| queries.contains(*known));
            noted.push(query);
        }
        self.has_new_waits = true;
    }

    /// A thread that works for these doers waits for the work of another, unless that waits for one of these.
    pub(super) fn park(&mut self, by: ThreadId, doers: SmallVec<[Doer; 2]>, other: ThreadId) -> bool {
        let needed = self.needed_by(On::Thread(other), Certainty::Known);
        if needed.contains(&Doer::thread(by)) || doers.iter().any(|doer| needed.contains(doer)) {
            return false;
        }
        self.blocked.push(Blocked { by: Some(by), doers, on: On::Thread(other) });
        self.has_new_waits = true;
        true
    }

    /// A thread no longer waits for another.
    pub(super) fn unpark(&mut self, by: ThreadId) {
        self.blocked.retain(|blocked| blocked.by != Some(by));
    }

    /// No thread waits for this one any more.
    pub(super) fn unpark_behind(&mut self, other: ThreadId) {
        self.blocked.retain(|blocked| !matches!(blocked.on, On::Thread(on) if on == other));
    }

    /// The doers needed by a thread that waits for this, by known links, or by all.
    pub(super) fn needed_by(&mut self, start: On<P>, by: Certainty) -> FxHashSet<Doer> {
        let mut needed = FxHashSet::default();
        let mut seen: FxHashSet<Version<P>> = FxHashSet::default();
        let (mut queries, mut versions, mut doers) = (Vec::new(), Vec::new(), Vec::new());
        let follow = |on: On<P>, queries: &mut Vec<QueryId<P>>, doers: &mut Vec<Doer>| match on {
            On::Lookup(query) => queries.push(query),
            On::Thread(thread) => doers.push(Doer::thread(thread)),
        };
        follow(start, &mut queries, &mut doers);
        loop {
            if let Some(doer) = doers.pop() {
                if !needed.insert(doer) {
                    continue;
                }
                let noted = match doer.0 {
                    Work::Unit(key) => {
                        self.units.get(Key::from_parts(key)).map(|u| (&u.waits, &u.possible_waits))
                    }
                    Work::Request(key) => {
                        self.requests.get(Key::from_parts(key)).map(|r| (&r.waits, &r.possible_waits))
                    }
                    Work::Thread(_) => None,
                };
                if let Some((waits, possible_waits)) = noted {
                    queries.extend(waits);
                    queries.extend(possible_waits.iter().filter(|_| by == Certainty::Perhaps));
                }
                for blocked in self.blocked.iter().filter(|blocked| blocked.doers.contains(&doer)) {
                    follow(blocked.on, &mut queries, &mut doers);
                }
            } else if let Some(query) = queries.pop() {
                let Some(query) = self.queries.get(query) else { continue };
                versions
                    .extend(query.versions.iter().filter(|&&version| !self.has_come(version, query.until)));
                doers.extend(query.asking.iter().map(|&request| Doer::request(request)));
            } else if let Some(version) = versions.pop() {
                let Some(entry) = self.entries.get(version).filter(|_| seen.insert(version)) else {
                    continue;
                };
                match &entry.state {
                    State::NeverSearched | State::Ready(_) | State::Failed(_) => {}
                    State::Emitted(_, pending) => versions.extend(self.graph.witness(pending.port)),
                    State::Materializing(_) | State::Resolved(..) => doers.push(Doer::unit(entry.unit)),
                }
            } else {
                return needed;
            }
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
        self.blocked
            .retain(|blocked| !matches!(blocked.on, On::Lookup(query) if !self.queries.contains(query)));
        // An answer breaks the cycles through it, so those examined later are free of them. The last one is
        // answered first: it may be on top of others that cannot continue before it does.
        for at in (0..self.blocked.len()).rev() {
            // A waiter for another thread was refused on entry, or continues when the lookup of another one
            // is answered.
            let Some(&Blocked { on: On::Lookup(query), .. }) = self.blocked.get(at) else { continue };
            let needed = self.needed_by(On::Lookup(query), Certainty::Known);
            let doers = self.blocked.get(at).into_iter().flat_map(|blocked| &blocked.doers);
            let own = doers.copied().find(|doer| needed.contains(doer));
            if let Some(own) = own.filter(|_| self.queries.contains(query)) {
                let symbols = self.made_by(own);
                self.answer(query, Err(Error::Cycle { symbols }));
            }
        }
    }

    pub(super) fn made_by(&self, doer: Doer) -> Vec<crate::Name> {
        match doer.0 {
            Work::Unit(key) => {
                let unit = self.units.get(Key::from_parts(key));
                unit.map(|unit| self.names_of_versions(&unit.entries)).unwrap_or_default()
            }
            Work::Request(key) => {
                let request: Option<&super::Request<P>> = self.requests.get(Key::from_parts(key));
                let symbols = request.into_iter().flat_map(|request| &request.symbols);
                symbols.map(|&s| crate::Name { dylib: "".into(), symbol: self.names.text(s) }).collect()
            }
            Work::Thread(thread) => {
                let busy: Vec<Version<P>> = self.dylibs.busy(thread).collect();
                self.names_of_versions(&busy)
            }
        }
    }

    /// Records the owner of a lookup, as far as it is known.
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
