//! Lookups: from names to definitions.
//!
//! A search is one pass over the tables, repeated whenever a generator has answered: names are matched, dylib
//! by dylib in the order of the lookup, and only when every name is matched or abandoned are definitions
//! started and waited for, in the same step. So nothing can vanish between matching and waiting, and a failed
//! lookup has started nothing.
//!
//! ```text
//!            ┌── unmatched, a generator not asked yet ──► ask, wait ◄─┐
//!   search ──┤                                                        └── generated: search again
//!            ├── required and missing, failed, closed ──► answered with the error
//!            └── all matched ──► begin: start units, wait for each symbol ──► answered
//! ```
//!
//! Two lookups that miss the same name in the same dylib ask its generator once, and get the same answer.
//! Names that a generator does not have are not cached: the next lookup asks again. Cost: names × dylibs,
//! times generators asked.
//!
//! A closed dylib is treated as absent from the order. If all of them are closed, there is nowhere to search,
//! and the lookup reports that.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::waits::Certainty;
use super::{
    Answer, Ask, Doer, Event, Found, Garbage, Generating, GeneratorId, Machine, Parts, Phase, Purpose, Query,
    QueryId, Request, RequestId, State, Todo, UnitId, Version,
};
use crate::error::Error;
use crate::flags::{Link, LookupKind, Need, Priority, Sees, SymbolFlags, Until, Want, merged};
use crate::ids::{DylibId, Label, Symbol};

/// Looks symbols up; the answer is an effect of this step or of a later one.
pub struct Lookup<P: Parts> {
    /// The search order; the first dylib that has a symbol wins.
    pub order: Vec<Link>,
    /// The requested symbols; duplicates are merged.
    pub wants: Vec<Want>,
    /// The origin of the lookup.
    pub kind: LookupKind,
    /// The state that the symbols must reach.
    pub until: Until,
    /// How urgent it is.
    pub priority: Priority,
    /// The receiver of the answer.
    pub ticket: P::Ticket,
    /// The doer that waits for the answer, if it is known.
    pub owner: Option<Doer>,
    /// The doers that may continue with the answer, if the waiting doer is not known.
    pub perhaps: SmallVec<[Doer; 2]>,
    /// The call under limits that the answer belongs to; 0 if there is none, or it may serve others as well.
    pub caller: u64,
    /// Whether it belongs to work begun before the session was stopped, or to its end. A lookup with an owner
    /// always does.
    pub begun: bool,
}

impl<P: Parts> Lookup<P> {
    /// A static lookup of normal priority, for any caller.
    pub fn new(order: Vec<Link>, wants: Vec<Want>, until: Until, ticket: P::Ticket) -> Lookup<P> {
        let (kind, priority, perhaps) = (LookupKind::Static, Priority::Normal, SmallVec::new());
        Lookup { order, wants, kind, until, priority, ticket, owner: None, perhaps, caller: 0, begun: false }
    }
}

impl<P: Parts> Event<P> for Lookup<P> {
    type Reply = QueryId<P>;

    fn apply(self, machine: &mut Machine<P>) -> QueryId<P> {
        let begun = self.begun || self.owner.is_some();
        let query = machine.new_query(
            self.order,
            &self.wants,
            (self.kind, self.until, self.priority),
            Purpose::Ticket(self.ticket),
        );
        machine.owner_waits(query, self.owner);
        if let Some(query) = machine.queries.get_mut(query) {
            query.caller = self.caller;
        }
        for doer in self.perhaps {
            machine.note(doer, query, Certainty::Perhaps);
        }
        if machine.queries.get(query).is_some_and(|query| query.is_stale) {
            machine.answer(query, Err(Error::Unknown { what: "symbol" }));
        } else if machine.refuses(begun) {
            machine.answer(query, Err(Error::SessionEnded));
        }
        query
    }
}

/// Cancels a lookup. Does nothing if it has been answered.
pub struct Cancel<P: Parts>(pub QueryId<P>);

impl<P: Parts> Event<P> for Cancel<P> {
    type Reply = Option<P::Ticket>;

    fn apply(self, machine: &mut Machine<P>) -> Option<P::Ticket> {
        let query = machine.queries.remove(self.0)?;
        machine.release(query.wants.iter().map(|want| want.symbol));
        match query.purpose {
            Purpose::Ticket(ticket) => Some(ticket),
            Purpose::Alias(_) => None,
        }
    }
}

/// A generator has answered: what it could define is defined.
pub struct Generated<P: Parts> {
    pub request: RequestId<P>,
    /// Whether it succeeded. An error is the answer of every lookup that waits for this.
    pub result: Result<(), Error>,
}

impl<P: Parts> Event<P> for Generated<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.generated(self.request, &self.result);
        if let Err(error) = self.result {
            machine.effects.garbage.push(Garbage::Cause(error.into()));
        }
    }
}

/// Queries what a symbol waits for: symbols of a unit that is not emitted, or nothing if it is ready, failed
/// or not begun.
pub struct WaitsFor(pub Label);

impl<P: Parts> Event<P> for WaitsFor {
    type Reply = Vec<Label>;

    fn apply(self, machine: &mut Machine<P>) -> Vec<Label> {
        let Some(port) = machine.find(self.0).and_then(|version| machine.entries.get(version)?.state.port())
        else {
            return Vec::new();
        };
        let witness = machine.graph.witness(port);
        let mut labels: Vec<Label> =
            witness.into_iter().filter_map(|version| Some(machine.entries.get(version)?.label)).collect();
        labels.sort();
        labels
    }
}

enum Matched<P: Parts> {
    All(Vec<Option<Version<P>>>),
    Ask { generator: GeneratorId, dylib: DylibId, symbols: Vec<Symbol> },
}

impl<P: Parts> Machine<P> {
    pub(super) fn new_query(
        &mut self,
        order: Vec<Link>,
        wants: &[Want],
        (kind, until, priority): (LookupKind, Until, Priority),
        purpose: Purpose<P>,
    ) -> QueryId<P> {
        let mut wants = merged(wants);
        // Counted or not: each is released when the lookup is over.
        let is_stale = self.hold(wants.iter().map(|want| want.symbol)).is_err();
        if is_stale {
            wants.clear();
        }
        let query = self.queries.insert(Query {
            order,
            kind,
            until,
            priority,
            purpose,
            asked: FxHashSet::default(),
            asking: FxHashSet::default(),
            outstanding: 0,
            versions: SmallVec::new(),
            found: vec![None; wants.len()],
            wants,
            is_stale,
            owner: None,
            caller: 0,
        });
        self.todo.push_back(Todo::Search(query));
        self.owner_waits(query, None);
        query
    }

    /// Answers `query`, which is then removed.
    pub(super) fn answer(&mut self, query: QueryId<P>, result: Result<(), Error>) {
        let Some(query) = self.queries.remove(query) else { return };
        self.release(query.wants.iter().map(|want| want.symbol));
        let answer = result.map(|()| query.found.into_iter().flatten().collect());
        match query.purpose {
            Purpose::Ticket(ticket) => self.effects.answers.push((ticket, answer)),
            Purpose::Alias(unit) => self.todo.push_back(Todo::Aliased(unit, answer)),
        }
    }

    /// One pass; see the file's header.
    pub(super) fn search(&mut self, id: QueryId<P>) {
        let Some(query) = self.queries.get(id) else { return };
        match self.matches(query) {
            Err(error) => self.answer(id, Err(error)),
            Ok(Matched::Ask { generator, dylib, symbols }) => self.ask(id, generator, dylib, symbols),
            Ok(Matched::All(versions)) => self.begin_waits(id, &versions),
        }
    }

    fn matches(&self, query: &Query<P>) -> Result<Matched<P>, Error> {
        let mut versions = vec![None; query.wants.len()];
        let mut left: Vec<usize> = (0..query.wants.len()).collect();
        let (mut is_open, mut closed) = (false, None);
        let is_in_order = |at: DylibId| query.order.iter().any(|link| link.dylib == at);
        let beside = query.wants.iter().filter_map(|want| want.at).filter(|&at| !is_in_order(at));
        let beside = beside.map(|dylib| Link { dylib, sees: Sees::Exported });
        for link in query.order.iter().copied().chain(beside) {
            let is_order = is_in_order(link.dylib);
            let is_here = |want: &Want| want.at.map_or(is_order, |at| at == link.dylib);
            let dylib = match self.dylibs.get(link.dylib) {
                Ok(dylib) => dylib,
                Err(error @ Error::DylibClosed { .. }) => {
                    closed = closed.or(Some(error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            is_open = true;
            // A hidden symbol is neither found nor requested here; the next dylib may have it.
            let mut absent = Vec::new();
            left.retain(|&index| {
                if !is_here(&query.wants[index]) {
                    return true;
                }
                let symbol = query.wants[index].symbol;
                let Some(&version) = dylib.symbols.get(&symbol) else {
                    absent.extend((!symbol.is_part()).then_some(symbol));
                    return true;
                };
                let exported =
                    self.entries.get(version).is_some_and(|entry| entry.flags.has(SymbolFlags::EXPORTED));
                // A `Want` with an explicit dylib has already been seen there.
                let seen = link.sees == Sees::All || exported || query.wants[index].at.is_some();
                if seen {
                    versions[index] = Some(version);
                }
                !seen
            });
            for &Generating { id, .. } in &dylib.generators {
                let mut symbols = absent.clone();
                symbols.retain(|symbol| !query.asked.contains(&(id, *symbol)));
                if !symbols.is_empty() {
                    return Ok(Matched::Ask { generator: id, dylib: link.dylib, symbols });
                }
            }
        }
        if let (false, Some(error)) = (is_open, closed) {
            return Err(error);
        }
        let mut missing: Vec<Symbol> = Vec::new();
        for (want, version) in query.wants.iter().zip(&versions) {
            let entry = version.and_then(|version| self.entries.get(version));
            if let Some(State::Failed(failure)) = entry.map(|entry| &entry.state)
                && query.until != Until::Known
            {
                return Err(Error::Failed(failure.clone()));
            }
            let no_address = entry.is_some_and(|entry| entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY));
            if want.need == Need::Required && (entry.is_none() || no_address && query.until != Until::Known) {
                missing.push(want.symbol);
            }
        }
        match (missing.is_empty(), query.order.first()) {
            (true, _) => Ok(Matched::All(versions)),
            (false, Some(first)) => {
                let labels = missing.into_iter().map(|symbol| Label { dylib: first.dylib, symbol });
                Err(Error::NotFound { symbols: self.names_of(labels) })
            }
            (false, None) => Err(Error::NotFound {
                symbols: missing
                    .into_iter()
                    .map(|symbol| crate::Name { dylib: "".into(), symbol: self.names.text(symbol) })
                    .collect(),
            }),
        }
    }

    /// Asks `generator` for the `symbols` that it has not been asked for yet, and waits for all of them.
    fn ask(&mut self, id: QueryId<P>, generator: GeneratorId, dylib: DylibId, symbols: Vec<Symbol>) {
        let Some(query) = self.queries.get_mut(id) else { return };
        let (kind, priority) = (query.kind, query.priority);
        let mut fresh = Vec::new();
        for symbol in symbols {
            match self.asking.get(&(generator, symbol)) {
                Some(&request) => {
                    if query.asking.insert(request)
                        && let Some(request) = self.requests.get_mut(request)
                    {
                        request.queries.push(id);
                    }
                }
                None => fresh.push(symbol),
            }
        }
        if fresh.is_empty() {
            self.new_lookups.extend(query.owner.map(|_| id));
            return;
        }
        // Lookups that request them may be cancelled before the answer comes.
        for &symbol in &fresh {
            self.names.retain(symbol);
        }
        let Some(query) = self.queries.get_mut(id) else { return };
        let request = self.requests.insert(Request {
            generator,
            symbols: fresh.clone(),
            queries: vec![id],
            waits: SmallVec::new(),
            possible_waits: SmallVec::new(),
        });
        query.asking.insert(request);
        self.new_lookups.extend(query.owner.map(|_| id));
        for symbol in &fresh {
            self.asking.insert((generator, *symbol), request);
        }
        let known = self.dylibs.get(dylib).into_iter().flat_map(|dylib| &dylib.generators);
        if let Some(Generating { generator, tracker, .. }) =
            known.into_iter().find(|known| known.id == generator)
        {
            let (generator, tracker) = (generator.clone(), *tracker);
            self.effects.asks.push(Ask {
                request,
                generator,
                dylib,
                tracker,
                symbols: fresh,
                kind,
                priority,
            });
        }
    }

    pub(super) fn generated(&mut self, id: RequestId<P>, result: &Result<(), Error>) {
        let Some(request) = self.requests.remove(id) else { return };
        for symbol in &request.symbols {
            self.asking.remove(&(request.generator, *symbol));
        }
        self.release(request.symbols.iter().copied());
        for waiting in request.queries {
            let Some(query) = self.queries.get_mut(waiting) else { continue };
            query.asking.remove(&id);
            query.asked.extend(request.symbols.iter().map(|symbol| (request.generator, *symbol)));
            match result {
                Err(error) => self.answer(waiting, Err(error.clone())),
                Ok(()) if query.asking.is_empty() => self.todo.push_back(Todo::Search(waiting)),
                Ok(()) => {}
            }
        }
    }

    /// Starts what must be started and waits for what is not ready yet.
    fn begin_waits(&mut self, id: QueryId<P>, versions: &[Option<Version<P>>]) {
        let Some(query) = self.queries.get(id) else { return };
        let (until, priority) = (query.until, query.priority);
        let alias = match query.purpose {
            Purpose::Alias(unit) => Some(unit),
            Purpose::Ticket(_) => None,
        };
        if let (Some(unit), [Some(aliasee)]) = (alias, versions)
            && let Err(error) = self.wait_as_alias(unit, *aliasee)
        {
            return self.answer(id, Err(error));
        }
        let mut outstanding = 0;
        for (index, version) in versions.iter().enumerate() {
            let Some(version) = *version else { continue };
            if until != Until::Known {
                self.start(version, priority);
            }
            let Some(entry) = self.entries.get_mut(version) else { continue };
            let side_effects = entry.flags.has(SymbolFlags::SIDE_EFFECTS_ONLY);
            let address = match (&mut entry.state, until) {
                (State::Ready(address), _) => *address,
                (State::Resolved(address, _) | State::Emitted(Some(address), _), Until::Resolved)
                    if !side_effects =>
                {
                    Some(*address)
                }
                (_, Until::Known) => None,
                (state, _) => {
                    if let Some(pending) = state.pending() {
                        let queries = &self.queries;
                        if pending.waiters.len() == pending.waiters.capacity() {
                            pending.waiters.retain(|(query, _)| queries.contains(*query));
                            pending.waiters.reserve(pending.waiters.len().max(1));
                        }
                        pending.waiters.push((id, index));
                        outstanding += 1;
                    }
                    continue;
                }
            };
            if !side_effects || until == Until::Known {
                let found = Found { label: entry.label, flags: entry.flags, address, version };
                if let Some(place) = self.queries.get_mut(id).and_then(|query| query.found.get_mut(index)) {
                    *place = Some(found);
                }
            }
        }
        if let Some(query) = self.queries.get_mut(id) {
            query.outstanding = outstanding;
            query.versions = versions.iter().flatten().copied().collect();
            self.new_lookups.extend(query.owner.map(|_| id));
        }
        if outstanding == 0 {
            self.answer(id, Ok(()));
        }
    }

    /// Records that the alias `unit` waits for `aliasee`, unless the aliasee waits for the alias. Cost: the
    /// length of the chain of waiting aliases.
    fn wait_as_alias(&mut self, unit: UnitId<P>, aliasee: Version<P>) -> Result<(), Error> {
        let mut at = Some(aliasee);
        while let Some(version) = at {
            let Some(entry) = self.entries.get(version) else { break };
            if entry.unit == unit {
                return Err(Error::AliasCycle { symbols: self.names_of([entry.label]) });
            }
            let waiting = matches!(entry.state, State::Materializing(_));
            at = if waiting { self.units.get(entry.unit).and_then(|unit| unit.alias_of) } else { None };
        }
        if let Some(unit) = self.units.get_mut(unit) {
            unit.alias_of = Some(aliasee);
        }
        Ok(())
    }

    /// An alias' lookup is answered: it has an address, or it fails.
    pub(super) fn aliased(&mut self, unit: UnitId<P>, answer: Answer<P>) {
        let Some(alias) = self.units.get_mut(unit) else { return };
        let aliasee = alias.alias_of.take();
        let Phase::Materializing(_) = alias.phase else { return };
        let Some(&version) = alias.entries.first() else { return };
        match answer {
            Err(error) => self.fail_unit(unit, error.into()),
            Ok(_) if aliasee.is_none() => {
                let symbols = self.names_of_versions(&[version]);
                self.fail_unit(unit, Error::NotFound { symbols }.into());
            }
            Ok(found) => {
                if let Some(address) = found.first().and_then(|found| found.address) {
                    self.resolve_entry(version, address);
                }
                // By now the aliasee may no longer exist, or be waiting itself: emission handles both.
                self.emit_alias(unit, version, aliasee.into_iter().collect());
            }
        }
    }
}
