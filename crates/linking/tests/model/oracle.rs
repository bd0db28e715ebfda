//! Random schedules against a naive model that shares no code with the machine.
//!
//! The model keeps every version of every symbol that ever existed. It decides readiness by a walk over
//! everything that a version needs, failure by that walk for every version, and what is kept by a walk from
//! every name. Some definitions have parts, each in a unit of its own. After each event, the lookups answered, their answers, the symbols published and the code
//! returned must be the same, and the machine's own invariants must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::{Plain, Random};
use brolga_linking::machine::{
    Attach, Cancel, Close, CreateDylib, CreateTracker, Define, Delegate, Dependants, Effects, Emit, Fail,
    Group, HandBack, How, Lookup, Machine, NewUnit, QueryId, RemoveSymbols, RemoveTracker, Resolve, Source,
    TrackerId, Transfer, UnitId,
};
use brolga_linking::{
    Cause, DylibId, Error, Label, Link, LookupKind, Names, Need, Priority, Sees, Symbol, SymbolFlags, Until,
    Want,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Lazy,
    Materializing,
    Resolved,
    Emitted,
    Ready,
    Failed,
    Gone,
}

#[derive(Clone)]
struct Ver {
    label: Label,
    weak: bool,
    unit: usize,
    at: At,
    needs: Vec<usize>,
    named: bool,
    address: u64,
}

struct Un {
    /// The machine's key, once it is being materialized.
    key: Option<UnitId<Plain>>,
    source: u64,
    tracker: usize,
    code: Option<u64>,
    gone: bool,
    generated: bool,
}

struct Qu {
    wants: Vec<usize>,
    /// Those that have reached the requested state; the lookup ignores their later changes.
    had: BTreeSet<usize>,
    until: Until,
    key: QueryId<Plain>,
    open: bool,
}

#[derive(Default)]
struct Model {
    vers: Vec<Ver>,
    units: Vec<Un>,
    queries: BTreeMap<u64, Qu>,
    answered: BTreeMap<u64, Option<Vec<u64>>>,
    retired: BTreeSet<u64>,
    dropped: BTreeSet<u64>,
    started: Vec<usize>,
}

impl Model {
    fn named(&self, label: Label) -> Option<usize> {
        self.vers.iter().position(|ver| ver.named && ver.label == label)
    }

    /// The parts of a symbol that have names.
    fn parts(&self, whole: Label) -> Vec<usize> {
        let parts = whole.symbol.parts().map(|symbol| Label { symbol, ..whole });
        parts.into_iter().filter_map(|part| self.named(part)).collect()
    }

    fn is_busy(&self, ver: usize) -> bool {
        matches!(self.vers[ver].at, At::Materializing | At::Resolved | At::Emitted)
    }

    /// A version loses its name; one that was never looked up is gone.
    fn unname(&mut self, ver: usize) {
        self.vers[ver].named = false;
        if self.vers[ver].at == At::Lazy {
            self.vers[ver].at = At::Gone;
            self.drop_if_empty(self.vers[ver].unit);
        }
    }

    fn drop_if_empty(&mut self, unit: usize) {
        if self.members(unit).is_empty() && !self.units[unit].gone {
            self.units[unit].gone = true;
            self.dropped.insert(self.units[unit].source);
        }
    }

    fn reach(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::from([from]);
        let mut fresh = vec![from];
        while let Some(at) = fresh.pop() {
            if self.vers[at].at == At::Emitted {
                fresh.extend(self.vers[at].needs.iter().filter(|need| seen.insert(**need)));
            }
        }
        seen
    }

    fn members(&self, unit: usize) -> Vec<usize> {
        (0..self.vers.len()).filter(|v| self.vers[*v].unit == unit && self.vers[*v].at != At::Gone).collect()
    }

    fn start(&mut self, ver: usize) {
        if self.vers[ver].at == At::Lazy {
            let unit = self.vers[ver].unit;
            for member in self.members(unit) {
                self.vers[member].at = At::Materializing;
            }
            self.started.push(unit);
        }
    }

    /// Marks ready symbols and answers lookups; the caller repeats it after every change.
    fn settle(&mut self) {
        let ready: Vec<usize> = (0..self.vers.len())
            .filter(|v| self.vers[*v].at == At::Emitted)
            .filter(|v| {
                let at = |v: &usize| self.vers[*v].at;
                // A removal by tombstone does not keep users from being ready.
                self.reach(*v).iter().all(|v| matches!(at(v), At::Emitted | At::Ready | At::Gone))
            })
            .collect();
        for ver in ready {
            self.vers[ver].at = At::Ready;
        }
        for (ticket, query) in &mut self.queries {
            if !query.open {
                continue;
            }
            let at = |v: &usize| self.vers[*v].at;
            let done = |v: &usize| match query.until {
                Until::Known => true,
                Until::Resolved => matches!(at(v), At::Resolved | At::Emitted | At::Ready),
                Until::Ready => at(v) == At::Ready,
            };
            query.had.extend(query.wants.iter().copied().filter(|v| done(v)));
            if query.wants.iter().all(|v| query.had.contains(v)) {
                query.open = false;
                let addresses = query.wants.iter().map(|v| self.vers[*v].address).collect();
                self.answered.insert(*ticket, Some(addresses));
            }
        }
    }

    /// The seeds fail or are removed; emitted versions that reach them fail; lookups that wait for any of
    /// them fail.
    fn fail(&mut self, seeds: &[usize], to: At) {
        let hit: BTreeSet<usize> = seeds.iter().copied().collect();
        let dragged: Vec<usize> = (0..self.vers.len())
            .filter(|v| self.vers[*v].at == At::Emitted && !self.reach(*v).is_disjoint(&hit))
            .collect();
        let mut failed: BTreeSet<usize> = hit;
        failed.extend(dragged);
        for (ticket, query) in &mut self.queries {
            if query.open && query.wants.iter().any(|v| failed.contains(v) && !query.had.contains(v)) {
                query.open = false;
                self.answered.insert(*ticket, None);
            }
        }
        for ver in &failed {
            if self.vers[*ver].at != At::Ready {
                self.vers[*ver].at = At::Failed;
            }
        }
        for seed in seeds {
            self.vers[*seed].at = to;
        }
        for unit in failed.iter().map(|v| self.vers[*v].unit).collect::<BTreeSet<_>>() {
            if self.members(unit).iter().all(|v| self.vers[*v].at == At::Failed) {
                self.retire(unit);
            }
        }
    }

    fn retire(&mut self, unit: usize) {
        self.retired.extend(self.units[unit].code.take());
    }

    /// The references of the code of `unit`: it is one piece, so as long as a part of it works, all of it
    /// counts.
    fn references(&self, unit: usize) -> BTreeSet<usize> {
        let members = self.members(unit);
        let works = members.iter().any(|v| matches!(self.vers[*v].at, At::Emitted | At::Ready));
        let needs = members.iter().filter(|_| works).flat_map(|v| self.vers[*v].needs.iter().copied());
        needs.filter(|need| self.vers[*need].unit != unit && self.vers[*need].at != At::Gone).collect()
    }

    fn uses(&self, user: usize, used: usize) -> bool {
        self.references(user).iter().any(|need| self.vers[*need].unit == used)
    }

    /// Live units that use ready symbols of `units`.
    fn users(&self, units: &BTreeSet<usize>) -> BTreeSet<usize> {
        let users = (0..self.units.len()).filter(|user| !units.contains(user) && !self.units[*user].gone);
        let used = |need: &usize| units.contains(&self.vers[*need].unit) && self.vers[*need].at == At::Ready;
        users.filter(|user| self.references(*user).iter().any(used)).collect()
    }

    fn dismiss(&mut self, unit: usize) {
        let members = self.members(unit);
        if members.iter().all(|v| self.vers[*v].at == At::Lazy)
            && !self.units[unit].gone
            && self.units[unit].key.is_none()
        {
            self.dropped.insert(self.units[unit].source);
        }
        for ver in members {
            self.vers[ver].at = At::Gone;
            self.vers[ver].named = false;
        }
        self.retire(unit);
        self.units[unit].gone = true;
    }

    /// The single rule for freeing memory, applied after every event: a unit without a name is reached by a
    /// named one, or it is freed.
    fn collect(&mut self) {
        let live = |model: &Model, unit: usize| {
            !model.units[unit].gone && model.members(unit).iter().any(|v| model.vers[*v].named)
        };
        let mut kept: BTreeSet<usize> = (0..self.units.len()).filter(|unit| live(self, *unit)).collect();
        loop {
            let more: Vec<usize> = (0..self.units.len())
                .filter(|unit| !kept.contains(unit) && kept.iter().any(|user| self.uses(*user, *unit)))
                .collect();
            if more.is_empty() {
                break;
            }
            kept.extend(more);
        }
        for unit in 0..self.units.len() {
            if !kept.contains(&unit) && !self.units[unit].gone && !self.members(unit).is_empty() {
                self.dismiss(unit);
            }
        }
    }

    fn remove(&mut self, mut units: BTreeSet<usize>, policy: Dependants) -> bool {
        let users = self.users(&units);
        match policy {
            Dependants::Deny if !users.is_empty() => return false,
            Dependants::Cascade => loop {
                let users = self.users(&units);
                if users.is_empty() {
                    break;
                }
                units.extend(users);
            },
            _ => {}
        }
        let members: Vec<usize> = units.iter().flat_map(|unit| self.members(*unit)).collect();
        let wholes =
            members.iter().filter(|v| self.vers[**v].named && !self.vers[**v].label.symbol.is_part());
        let parts: Vec<usize> = wholes.flat_map(|v| self.parts(self.vers[*v].label)).collect();
        let pending: Vec<usize> =
            members.into_iter().chain(parts.iter().copied()).filter(|v| self.is_busy(*v)).collect();
        self.fail(&pending, At::Failed);
        for part in parts.into_iter().filter(|v| !units.contains(&self.vers[*v].unit)).collect::<Vec<_>>() {
            self.unname(part);
        }
        for unit in &units {
            for ver in self.members(*unit) {
                self.vers[ver].named = false;
            }
        }
        if policy != Dependants::Keep {
            for unit in units {
                self.dismiss(unit);
            }
        }
        true
    }
}

struct World {
    random: Random,
    machine: Machine<Plain>,
    model: Model,
    dylibs: Vec<DylibId>,
    /// Another dylib, which is closed: treated as absent from every order.
    closed: DylibId,
    symbols: Vec<Symbol>,
    trackers: Vec<Option<TrackerId<Plain>>>,
    tracker_dylibs: Vec<usize>,
    published: BTreeMap<Symbol, u64>,
    answers: BTreeMap<u64, Option<Vec<u64>>>,
    retired: BTreeSet<u64>,
    dropped: BTreeSet<u64>,
    next: u64,
    log: Vec<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let names = Arc::new(Names::default());
        let mut machine = Machine::new(Arc::clone(&names));
        let dylib =
            machine.step(CreateDylib { name: "main".into(), board: (), begun: false }).0.expect("a dylib");
        let (closed, _) =
            machine.step(CreateDylib { name: "closed".into(), board: (), begun: false }).0.expect("a dylib");
        let dependants = Dependants::Deny;
        machine.step(Close { dylibs: vec![closed], dependants, stay_open: false }).0.expect("closed");
        World {
            random: Random::new(seed),
            machine,
            model: Model::default(),
            dylibs: vec![dylib.0],
            closed,
            // With few names, versions are replaced while others use them.
            symbols: (0..3 + seed % 8).map(|i| names.intern(&format!("s{i}"))).collect(),
            trackers: vec![Some(dylib.1)],
            tracker_dylibs: vec![0],
            published: BTreeMap::new(),
            answers: BTreeMap::new(),
            retired: BTreeSet::new(),
            dropped: BTreeSet::new(),
            next: 0,
            log: Vec::new(),
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn whole(&mut self) -> Label {
        Label { dylib: self.dylibs[0], symbol: self.symbols[self.random.below(self.symbols.len())] }
    }

    fn label(&mut self) -> Label {
        let whole = self.whole();
        let parts = whole.symbol.parts();
        match self.random.below(8) {
            part @ 0..2 => Label { symbol: parts[part], ..whole },
            _ => whole,
        }
    }

    /// Mostly a ready one, so that versions have users when they are replaced.
    fn label_to_need(&mut self) -> Label {
        let ready = self.model.vers.iter().filter(|ver| ver.named && ver.at == At::Ready);
        let ready: Vec<Label> = ready.map(|ver| ver.label).collect();
        match self.random.pick(&ready) {
            Some(label) if !self.random.once_in(4) => label,
            _ => self.label(),
        }
    }

    fn run(&mut self, effects: Effects<Plain>) {
        for ((), symbol, address) in effects.publish {
            match address {
                Some(address) => {
                    self.published.insert(symbol, address);
                }
                None => {
                    self.published.remove(&symbol);
                }
            }
        }
        for (ticket, answer) in effects.answers {
            let known = answer.ok().map(|found| found.iter().map(|f| f.address.unwrap_or(0)).collect());
            assert!(self.answers.insert(ticket, known).is_none(), "answered twice");
        }
        self.retired.extend(effects.retired);
        self.dropped.extend(effects.dropped.into_iter().map(|(source, _)| source));
        for work in effects.work {
            let unit =
                self.model.units.iter().position(|unit| unit.source == work.source && unit.key.is_none());
            let unit = unit.expect("work for a unit that the model knows");
            assert!(self.model.started.contains(&unit), "started a unit that was not requested");
            self.model.started.retain(|started| *started != unit);
            self.model.units[unit].key = Some(work.unit);
            let code = self.fresh();
            let (attached, _) = self.machine.step(Attach { unit: work.unit, code });
            assert!(attached.is_ok());
            self.model.units[unit].code = Some(code);
        }
    }

    /// Units being materialized, as (model, machine).
    fn duties(&self) -> Vec<(usize, UnitId<Plain>)> {
        let busy = |unit: &usize| {
            let members = self.model.members(*unit);
            !members.is_empty()
                && members.iter().any(|v| matches!(self.model.vers[*v].at, At::Materializing | At::Resolved))
        };
        let units = (0..self.model.units.len()).filter(|unit| !self.model.units[*unit].gone).filter(busy);
        units.filter_map(|unit| Some((unit, self.model.units[unit].key?))).collect()
    }

    fn one_event(&mut self) {
        match self.random.below(100) {
            0..22 => self.define(),
            22..42 => self.lookup(),
            42..60 => self.resolve(),
            60..82 => self.emit(),
            82..84 => self.fail(),
            84..87 => self.split(),
            87..92 => self.remove_tracker(),
            92..95 => self.remove_symbols(),
            95..97 => self.cancel(),
            97..99 => self.make_tracker(),
            _ => self.transfer(),
        }
        self.model.collect();
        self.model.settle();
    }

    fn define(&mut self) {
        let how = match self.random.below(6) {
            0 | 1 => How::Replace,
            2 => How::Generate,
            _ => How::Define,
        };
        let replace = how == How::Replace;
        let source = self.fresh();
        let mut symbols: Vec<(Symbol, SymbolFlags)> = Vec::new();
        for _ in 0..=self.random.below(if replace { 1 } else { 3 }) {
            let symbol = if replace { self.label_to_need().symbol.whole() } else { self.whole().symbol };
            if symbols.iter().all(|(known, _)| *known != symbol) {
                let weak = self.random.once_in(3);
                let flags = if weak { SymbolFlags::WEAK } else { SymbolFlags::NONE };
                symbols.push((symbol, flags | SymbolFlags::EXPORTED));
            }
        }
        let mut parts: Vec<(Symbol, SymbolFlags, u64)> = Vec::new();
        for &(symbol, flags) in &symbols {
            for part in symbol.parts() {
                if self.random.once_in(4) {
                    parts.push((part, flags.without(SymbolFlags::EXPORTED), self.fresh()));
                }
            }
        }
        let live: Vec<usize> = (0..self.trackers.len()).filter(|t| self.trackers[*t].is_some()).collect();
        let tracker = self.random.pick(&live).expect("the default tracker stays");
        self.log.push(format!("define {symbols:?} {how:?} source {source}, parts {parts:?}"));
        let unit = |symbols, source| NewUnit { symbols, initializer: None, source: Source::Work(source) };
        let mut units: Vec<NewUnit<Plain>> =
            parts.iter().map(|&(part, flags, source)| unit(vec![(part, flags)], source)).collect();
        units.insert(self.random.below(units.len() + 1), unit(symbols.clone(), source));
        let event =
            Define { dylib: self.dylibs[0], tracker: self.trackers[tracker], units, how, begun: false };
        let (reply, effects) = self.machine.step(event);

        let model = &mut self.model;
        let dylib = self.dylibs[0];
        let clash = symbols.iter().any(|(symbol, flags)| {
            let label = Label { dylib, symbol: *symbol };
            model.named(label).is_some_and(|v| {
                let ver = &model.vers[v];
                let strong = !flags.has(SymbolFlags::WEAK);
                let is_busy = || model.parts(label).into_iter().any(|part| model.is_busy(part));
                if replace || how == How::Define && strong && model.units[ver.unit].generated {
                    model.is_busy(v) || is_busy()
                } else {
                    strong && (!(ver.weak && ver.at == At::Lazy) || is_busy())
                }
            })
        });
        assert_eq!(reply.is_err(), clash, "definition");
        if !clash {
            let mut new = |symbols: Vec<(Symbol, SymbolFlags)>, source: u64| {
                let generated = how == How::Generate;
                model.units.push(Un { key: None, source, tracker, code: None, gone: false, generated });
                let unit = model.units.len() - 1;
                let mut lost = Vec::new();
                for (symbol, flags) in symbols {
                    let (label, weak) = (Label { dylib, symbol }, flags.has(SymbolFlags::WEAK));
                    match model.named(label) {
                        Some(_) if weak && !replace => lost.push(symbol),
                        there => {
                            let parts = if symbol.is_part() { vec![] } else { model.parts(label) };
                            let former: Vec<usize> = there.into_iter().chain(parts).collect();
                            former.into_iter().for_each(|former| model.unname(former));
                            let (at, needs, named, address) = (At::Lazy, vec![], true, 0);
                            model.vers.push(Ver { label, weak, unit, at, needs, named, address });
                        }
                    }
                }
                model.drop_if_empty(unit);
                lost
            };
            let lost = new(symbols, source);
            for (part, flags, source) in parts {
                let is_lost = lost.contains(&part.whole());
                new(if is_lost { vec![] } else { vec![(part, flags)] }, source);
            }
        }
        self.run(effects);
    }

    fn lookup(&mut self) {
        let ticket = self.fresh();
        let until = self.random.pick(&[Until::Resolved, Until::Ready, Until::Ready]).expect("one");
        let mut wants: Vec<Want> = Vec::new();
        for _ in 0..=self.random.below(3) {
            let symbol = self.label().symbol;
            if wants.iter().all(|want| want.symbol != symbol) {
                wants.push(Want {
                    symbol,
                    need: self.random.pick(&[Need::Required, Need::Weak]).expect("one"),
                    at: None,
                });
            }
        }
        self.log.push(format!("lookup {ticket} {wants:?} {until:?}"));
        let mut order = vec![Link { dylib: self.dylibs[0], sees: Sees::All }];
        for _ in 0..self.random.below(3) {
            let link = Link { dylib: self.closed, sees: Sees::All };
            order.insert(self.random.below(order.len() + 1), link);
        }
        let (kind, priority) = (LookupKind::Static, Priority::Normal);
        let event = Lookup {
            order,
            wants: wants.clone(),
            kind,
            until,
            priority,
            ticket,
            owner: None,
            perhaps: Default::default(),
            caller: 0,
            begun: false,
        };
        let (key, effects) = self.machine.step(event);

        let model = &mut self.model;
        let dylib = self.dylibs[0];
        let found: Vec<Option<usize>> =
            wants.iter().map(|want| model.named(Label { dylib, symbol: want.symbol })).collect();
        let missing = wants.iter().zip(&found).any(|(want, v)| want.need == Need::Required && v.is_none());
        let found: Vec<usize> = found.into_iter().flatten().collect();
        if missing || found.iter().any(|v| model.vers[*v].at == At::Failed) {
            model.answered.insert(ticket, None);
        } else {
            for v in &found {
                model.start(*v);
            }
            model.queries.insert(ticket, Qu { wants: found, had: BTreeSet::new(), until, key, open: true });
        }
        model.settle();
        self.run(effects);
    }

    fn resolve(&mut self) {
        let Some((unit, key)) = self.random.pick(&self.duties()) else { return };
        let members = self.model.members(unit);
        let mut addresses = Vec::new();
        for v in members {
            if self.model.vers[v].at == At::Materializing && !self.random.once_in(5) {
                let address = self.fresh();
                addresses.push((self.model.vers[v].label.symbol, address));
                self.model.vers[v].at = At::Resolved;
                self.model.vers[v].address = address;
            }
        }
        self.log.push(format!("resolve {addresses:?}"));
        let (reply, effects) = self.machine.step(Resolve { unit: key, addresses });
        assert!(reply.is_ok(), "{reply:?}");
        self.model.settle();
        self.run(effects);
    }

    fn emit(&mut self) {
        let Some((unit, key)) = self.random.pick(&self.duties()) else { return };
        let members = self.model.members(unit);
        let complete = members.iter().all(|v| self.model.vers[*v].at == At::Resolved);
        if !complete && !self.random.once_in(20) {
            return;
        }
        let (mut groups, mut model_groups) = (Vec::new(), Vec::new());
        let mut rest = members.clone();
        for _ in 0..self.random.below(3) {
            let take = self.random.below(rest.len() + 1);
            let part: Vec<usize> = rest.drain(..take).collect();
            let mut needs: Vec<Label> = Vec::new();
            // A symbol that no other needs is skipped.
            for _ in 0..if part.is_empty() { 0 } else { self.random.below(4) } {
                needs.push(self.label_to_need());
            }
            groups.push(Group {
                symbols: part.iter().map(|v| self.model.vers[*v].label.symbol).collect(),
                needs: needs.iter().map(|label| (*label).into()).collect(),
            });
            model_groups.push((part, needs));
        }
        self.log.push(format!(
            "emit {:?}",
            model_groups
                .iter()
                .map(|(p, n)| (p.iter().map(|v| self.model.vers[*v].label.symbol).collect::<Vec<_>>(), n))
                .collect::<Vec<_>>()
        ));
        let (reply, effects) = self.machine.step(Emit { unit: key, groups, again: None });
        let model = &mut self.model;
        let unmet = model_groups
            .iter()
            .flat_map(|(_, needs)| needs)
            .any(|label| model.named(*label).is_none_or(|v| model.vers[v].at == At::Failed));
        assert_eq!(reply.is_ok(), complete && !unmet, "{reply:?}");
        if reply.is_ok() {
            let mut started = Vec::new();
            for (part, needs) in model_groups {
                let needs: Vec<usize> = needs.iter().filter_map(|label| model.named(*label)).collect();
                for v in part {
                    model.vers[v].needs = needs.clone();
                }
                started.extend(needs);
            }
            for v in members {
                model.vers[v].at = At::Emitted;
            }
            for v in started {
                model.start(v);
            }
        } else {
            let left: Vec<usize> = members
                .into_iter()
                .filter(|v| matches!(model.vers[*v].at, At::Materializing | At::Resolved))
                .collect();
            model.fail(&left, At::Failed);
        }
        self.model.settle();
        self.run(effects);
    }

    fn fail(&mut self) {
        let Some((unit, key)) = self.random.pick(&self.duties()) else { return };
        self.log.push(format!("fail unit {unit}"));
        let ((), effects) = self.machine.step(Fail { unit: key, cause: Cause::Abandoned });
        let members = self.model.members(unit);
        self.model.fail(&members, At::Failed);
        self.run(effects);
    }

    fn split(&mut self) {
        let Some((unit, key)) = self.random.pick(&self.duties()) else { return };
        let model = &mut self.model;
        let mut parts: Vec<usize> = model.members(unit);
        parts.retain(|v| model.vers[*v].at == At::Materializing);
        let keep = self.random.below(parts.len() + 1);
        parts.truncate(keep);
        if parts.is_empty() || parts.len() == model.members(unit).len() {
            return;
        }
        let symbols: Vec<Symbol> = parts.iter().map(|v| model.vers[*v].label.symbol).collect();
        let (tracker, generated) = (model.units[unit].tracker, model.units[unit].generated);
        let source = self.next + 1;
        self.next += 1;
        self.log.push(format!("split {symbols:?} source {source}"));
        let new = model.units.len();
        for v in &parts {
            model.vers[*v].unit = new;
        }
        if self.random.once_in(2) {
            let (reply, effects) = self.machine.step(Delegate { unit: key, symbols });
            let key = reply.expect("delegated");
            model.units.push(Un { key: Some(key), source, tracker, code: None, gone: false, generated });
            self.run(effects);
        } else {
            let waited =
                |query: &Qu, v: &usize| query.open && query.wants.contains(v) && !query.had.contains(v);
            let wanted = parts.iter().any(|v| {
                model.queries.values().any(|query| waited(query, v))
                    || model.vers.iter().any(|ver| ver.at == At::Emitted && ver.needs.contains(v))
            });
            let (reply, effects) = self.machine.step(HandBack { unit: key, symbols, source });
            assert!(reply.is_ok());
            model.units.push(Un { key: None, source, tracker, code: None, gone: false, generated });
            if wanted {
                model.started.push(new);
            } else {
                for v in parts {
                    model.vers[v].at = At::Lazy;
                }
            }
            self.run(effects);
        }
    }

    fn remove_tracker(&mut self) {
        let live: Vec<usize> = (0..self.trackers.len()).filter(|t| self.trackers[*t].is_some()).collect();
        let Some(at) = self.random.pick(&live) else { return };
        let policies = [Dependants::Deny, Dependants::Cascade, Dependants::Tombstone, Dependants::Keep];
        let dependants = self.random.pick(&policies).expect("one");
        let Some(tracker) = self.trackers[at] else { return };
        self.log.push(format!("remove tracker {at} {dependants:?}"));
        let (reply, effects) = self.machine.step(RemoveTracker { tracker, dependants });
        let units: BTreeSet<usize> = (0..self.model.units.len())
            .filter(|unit| self.model.units[*unit].tracker == at && !self.model.units[*unit].gone)
            .collect();
        let removed = self.model.remove(units.clone(), dependants);
        assert_eq!(reply.is_ok(), removed, "{reply:?}");
        if removed && at != 0 {
            self.trackers[at] = None;
            for unit in units {
                self.model.units[unit].tracker = 0;
            }
        }
        self.run(effects);
    }

    fn remove_symbols(&mut self) {
        let label = self.whole();
        self.log.push(format!("remove {label:?}"));
        let (reply, effects) =
            self.machine.step(RemoveSymbols { dylib: label.dylib, symbols: vec![label.symbol] });
        let model = &mut self.model;
        let versions: Vec<usize> = model.named(label).into_iter().chain(model.parts(label)).collect();
        if versions.is_empty() {
            assert!(matches!(reply, Err(Error::NotFound { .. })), "{reply:?}");
        } else if versions.iter().any(|v| model.is_busy(*v)) {
            assert!(matches!(reply, Err(Error::Busy { .. })), "{reply:?}");
        } else {
            assert!(reply.is_ok(), "{reply:?}");
            versions.into_iter().for_each(|v| model.unname(v));
        }
        self.run(effects);
    }

    fn cancel(&mut self) {
        let open: Vec<u64> = self.model.queries.iter().filter(|(_, q)| q.open).map(|(t, _)| *t).collect();
        let Some(ticket) = self.random.pick(&open) else { return };
        self.log.push(format!("cancel {ticket}"));
        let query = self.model.queries.get_mut(&ticket).expect("known");
        query.open = false;
        let (reply, effects) = self.machine.step(Cancel(query.key));
        assert_eq!(reply, Some(ticket));
        self.run(effects);
    }

    fn make_tracker(&mut self) {
        if self.trackers.iter().flatten().count() < 4 {
            let (reply, _) = self.machine.step(CreateTracker { dylib: self.dylibs[0], begun: false });
            self.trackers.push(Some(reply.expect("a tracker")));
            self.tracker_dylibs.push(0);
        }
    }

    fn transfer(&mut self) {
        let live: Vec<usize> = (1..self.trackers.len()).filter(|t| self.trackers[*t].is_some()).collect();
        let (Some(from), Some(to)) = (self.random.pick(&live), self.random.pick(&live)) else { return };
        let Some(tracker) = self.trackers[from] else { return };
        self.log.push(format!("transfer {from} to {to}"));
        let (reply, effects) = self.machine.step(Transfer { from: tracker, to: self.trackers[to] });
        assert!(reply.is_ok());
        if from != to {
            self.trackers[from] = None;
            for unit in self.model.units.iter_mut().filter(|unit| unit.tracker == from) {
                unit.tracker = to;
            }
        }
        self.run(effects);
    }

    fn agree(&mut self) {
        let model = &self.model;
        assert_eq!(self.answers, model.answered, "answers");
        let ready = model.vers.iter().filter(|ver| ver.named && ver.at == At::Ready);
        let ready = ready.filter(|ver| !ver.label.symbol.is_part());
        let ready: BTreeMap<Symbol, u64> = ready.map(|ver| (ver.label.symbol, ver.address)).collect();
        assert_eq!(self.published, ready, "published");
        assert_eq!(self.retired, model.retired, "code given back");
        assert_eq!(self.dropped, model.dropped, "sources dropped");
        let units = (0..model.units.len()).filter(|unit| !model.units[*unit].gone);
        let units = units.filter(|unit| !model.members(*unit).is_empty()).count();
        assert_eq!(self.machine.counts().1, units, "units");
        assert!(model.started.is_empty(), "a unit should have been started");
        if let Err(broken) = self.machine.check() {
            panic!("{broken}");
        }
    }
}

fn run(seeds: std::ops::Range<u64>, events: usize) {
    for seed in seeds {
        let mut world = World::new(seed);
        for event in 0..events {
            let step = std::panic::AssertUnwindSafe(|| {
                world.one_event();
                world.agree();
            });
            if let Err(panic) = std::panic::catch_unwind(step) {
                let tail = world.log.len().saturating_sub(40);
                eprintln!("seed {seed}, event {event}:\n{}", world.log[tail..].join("\n"));
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn random_schedules_agree_with_the_model() {
    run(1..500, 200);
}

#[test]
fn long_schedules_agree_with_the_model() {
    run(1000..1006, 900);
}
