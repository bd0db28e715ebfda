//! The machine's invariants, checked one by one against the tables. For tests: it visits everything.

use rustc_hash::FxHashMap;

use super::{Machine, Parts, Phase, State};

impl<P: Parts> Machine<P> {
    /// Checks all invariants; the first broken one is the error.
    ///
    /// # Errors
    /// A sentence describing the inconsistency.
    pub fn check(&mut self) -> Result<(), String> {
        if !self.todo.is_empty() {
            return Err("a step left something to do".into());
        }
        self.check_names()?;
        self.check_units()?;
        self.check_queries()?;
        self.graph.check()
    }

    fn check_names(&self) -> Result<(), String> {
        let mut named = 0;
        for &id in self.by_name.values() {
            let dylib = self.dylibs.get(id).map_err(|error| format!("a name leads to no dylib: {error}"))?;
            if (dylib.opens > 0) != self.opened.contains(&id) {
                return Err(format!("`{}` was opened {} times", dylib.name, dylib.opens));
            }
            for (symbol, version) in &dylib.symbols {
                let entry = self.entries.get(*version).ok_or(format!("{symbol:?} leads to no entry"))?;
                if entry.label.symbol != *symbol || entry.label.dylib != id || !entry.named {
                    return Err(format!("{symbol:?} leads to another entry"));
                }
                if !dylib.symbols.contains_key(&symbol.whole()) {
                    return Err(format!("{symbol:?} is a part of nothing"));
                }
                named += 1;
            }
        }
        if self.entries.iter().filter(|(_, entry)| entry.named).count() != named {
            return Err("an entry has a name that does not lead to it".into());
        }
        Ok(())
    }

    fn check_units(&self) -> Result<(), String> {
        for (id, entry) in self.entries.iter() {
            let unit = self.units.get(entry.unit).ok_or(format!("{:?} has no unit", entry.label))?;
            if !unit.entries.contains(&id) {
                return Err(format!("{:?} is not a symbol of its unit", entry.label));
            }
            let fits = match (&entry.state, &unit.phase) {
                (State::NeverSearched, Phase::Lazy { .. }) => true,
                (State::Materializing(pending) | State::Resolved(_, pending), Phase::Materializing(node)) => {
                    self.graph.node_of(pending.port) == Some(*node)
                }
                (State::Emitted(_, pending), Phase::Done) => self.graph.node_of(pending.port).is_some(),
                (State::Ready(_) | State::Failed(_), Phase::Done) => true,
                _ => false,
            };
            if !fits {
                return Err(format!("{:?} is in a state that its unit is not in", entry.label));
            }
        }
        for (id, unit) in self.units.iter() {
            let open = self.dylibs.get(unit.dylib).is_ok();
            let tracked =
                self.trackers.get(unit.tracker).map(|t| t.units.contains(&id) && t.dylib == unit.dylib);
            if tracked != Some(true) && open {
                return Err(format!("unit {id:?} is in no tracker"));
            }
            if unit.entries.is_empty() && !matches!(unit.phase, Phase::Materializing(_)) {
                return Err(format!("unit {id:?} has no symbols and is kept"));
            }
            for used in &unit.uses {
                // A symbol that was removed by a tombstone while in use no longer has an entry.
                let Some(entry) = self.entries.get(*used) else { continue };
                if !entry.users.contains(&id) {
                    return Err(format!("{:?} does not list its user {id:?}", entry.label));
                }
            }
        }
        for dylib in self.by_name.values().filter_map(|id| self.dylibs.get(*id).ok()) {
            if dylib.generators.iter().any(|known| self.trackers.get(known.tracker).is_none()) {
                return Err(format!("a generator of `{}` has no tracker", dylib.name));
            }
        }
        for (id, tracker) in self.trackers.iter() {
            if tracker.units.iter().any(|unit| self.units.get(*unit).is_none_or(|unit| unit.tracker != id)) {
                return Err(format!("tracker {id:?} lists a unit that is not its own"));
            }
        }
        Ok(())
    }

    fn check_queries(&self) -> Result<(), String> {
        let mut waits = FxHashMap::default();
        for (_, entry) in self.entries.iter() {
            if let State::Materializing(pending) | State::Resolved(_, pending) | State::Emitted(_, pending) =
                &entry.state
            {
                for (query, _) in &pending.waiters {
                    *waits.entry(*query).or_insert(0usize) += 1;
                }
            }
        }
        for (id, query) in self.queries.iter() {
            let waiting = waits.get(&id).copied().unwrap_or(0);
            if waiting != query.outstanding {
                return Err(format!(
                    "query {id:?} waits for {waiting} symbols and thinks {}",
                    query.outstanding
                ));
            }
            if waiting == 0 && query.asking.is_empty() {
                return Err(format!("query {id:?} waits for nothing and has no answer"));
            }
        }
        for ((generator, symbol), request) in &self.asking {
            let request = self.requests.get(*request).ok_or(format!("{symbol:?} has no request"))?;
            if request.generator != *generator || !request.symbols.contains(symbol) {
                return Err(format!("{symbol:?} belongs to another request"));
            }
        }
        Ok(())
    }
}
