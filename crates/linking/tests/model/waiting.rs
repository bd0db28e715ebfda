//! Readiness over dependence graphs: the waiting-on graph's list (W01 to W24), graphs of all shapes in random orders
//! against a naive closure, and 100,000 symbols.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{Plain, Random};
use brolga_linking::machine::{
    CreateDylib, Define, Effects, Emit, Fail, Group, How, Lookup, Machine, NewUnit, Resolve, Source, UnitId,
    WaitsFor,
};
use brolga_linking::{
    Cause, DylibId, Error, Label, Link, LookupKind, Names, Need, Priority, Sees, Symbol, SymbolFlags, Until,
    Want,
};

/// Units of one symbol each, all being materialized; emitted by number.
struct Units {
    machine: Machine<Plain>,
    dylib: DylibId,
    symbols: Vec<Symbol>,
    units: Vec<Option<UnitId<Plain>>>,
    ready: BTreeSet<usize>,
    failed: Vec<u64>,
}

impl Units {
    fn new(count: usize) -> Units {
        let names = Arc::new(Names::default());
        let mut machine: Machine<Plain> = Machine::new(Arc::clone(&names));
        let (dylib, _) =
            machine.step(CreateDylib { name: "main".into(), board: (), begun: false }).0.expect("a dylib");
        let symbols: Vec<Symbol> = (0..count).map(|i| names.intern(&i.to_string())).collect();
        let mut units = Units {
            machine,
            dylib,
            symbols,
            units: vec![None; count],
            ready: BTreeSet::new(),
            failed: vec![],
        };
        for i in 0..count {
            let symbols = vec![(units.symbols[i], SymbolFlags::EXPORTED)];
            let unit = NewUnit { symbols, initializer: None, source: Source::Work(i as u64) };
            let event = Define { dylib, tracker: None, units: vec![unit], how: How::Define, begun: false };
            assert!(units.machine.step(event).0.is_ok());
            let wants = vec![Want { symbol: units.symbols[i], need: Need::Required, at: None }];
            let order = vec![Link { dylib, sees: Sees::All }];
            let (kind, until, priority) = (LookupKind::Static, Until::Ready, Priority::Normal);
            let (_, effects) = units.machine.step(Lookup {
                order,
                wants,
                kind,
                until,
                priority,
                ticket: i as u64,
                owner: None,
                perhaps: Default::default(),
                caller: 0,
                begun: false,
            });
            units.run(effects);
            let unit = units.units[i].expect("started");
            let (reply, _) =
                units.machine.step(Resolve { unit, addresses: vec![(units.symbols[i], i as u64)] });
            assert!(reply.is_ok());
        }
        units
    }

    fn run(&mut self, effects: Effects<Plain>) {
        for work in effects.work {
            self.units[work.source as usize] = Some(work.unit);
        }
        for (ticket, answer) in effects.answers {
            match answer {
                Ok(_) => assert!(self.ready.insert(ticket as usize)),
                Err(_) => self.failed.push(ticket),
            }
        }
    }

    fn emit(&mut self, i: usize, needs: &[usize]) -> Result<(), Error> {
        let needs =
            needs.iter().map(|n| Label { dylib: self.dylib, symbol: self.symbols[*n] }.into()).collect();
        let groups = vec![Group { symbols: vec![self.symbols[i]], needs }];
        let (reply, effects) =
            self.machine.step(Emit { unit: self.units[i].expect("started"), groups, again: None });
        self.run(effects);
        reply
    }

    fn fail(&mut self, i: usize) {
        let ((), effects) =
            self.machine.step(Fail { unit: self.units[i].expect("started"), cause: Cause::Abandoned });
        self.run(effects);
    }

    fn ready(&self) -> Vec<usize> {
        self.ready.iter().copied().collect()
    }

    fn waiting(&self) -> usize {
        self.machine.counts().3
    }
}

#[test]
fn w01_an_empty_graph() {
    assert_eq!(Units::new(0).waiting(), 0);
}

#[test]
fn w02_w10_w14_w15_a_unit_without_dependences_is_ready_at_once() {
    let mut units = Units::new(1);
    units.emit(0, &[]).expect("emitted");
    assert_eq!((units.ready(), units.waiting()), (vec![0], 0));
}

#[test]
fn w08_a_unit_does_not_wait_for_itself() {
    let mut units = Units::new(1);
    units.emit(0, &[0]).expect("emitted");
    assert_eq!(units.ready(), [0]);
}

#[test]
fn w11_w12_cycles_are_ready_when_their_last_member_is_emitted() {
    for size in [2, 10] {
        let mut units = Units::new(size);
        for i in 0..size - 1 {
            units.emit(i, &[(i + 1) % size]).expect("emitted");
            assert_eq!(units.ready(), [0usize; 0]);
        }
        units.emit(size - 1, &[0]).expect("emitted");
        assert_eq!((units.ready().len(), units.waiting()), (size, 0));
    }
}

#[test]
fn w13_dependences_are_transitive() {
    let mut units = Units::new(4);
    units.emit(0, &[1, 2]).expect("emitted");
    units.emit(1, &[3]).expect("emitted");
    units.emit(2, &[]).expect("emitted");
    assert_eq!(units.ready(), [2]);
    units.emit(3, &[]).expect("emitted");
    assert_eq!(units.ready(), [0, 1, 2, 3]);
}

#[test]
fn w16_w17_dependants_before_and_after_what_they_need() {
    let mut units = Units::new(2);
    units.emit(0, &[]).expect("emitted");
    units.emit(1, &[0]).expect("emitted");
    assert_eq!(units.ready(), [0, 1]);
    let mut units = Units::new(2);
    units.emit(1, &[0]).expect("emitted");
    assert_eq!(units.ready(), [0usize; 0]);
    units.emit(0, &[]).expect("emitted");
    assert_eq!(units.ready(), [0, 1]);
}

#[test]
fn w18_units_with_equal_dependences_are_ready_together() {
    let mut units = Units::new(3);
    units.emit(0, &[2]).expect("emitted");
    units.emit(1, &[2]).expect("emitted");
    assert_eq!(units.ready(), [0usize; 0]);
    units.emit(2, &[]).expect("emitted");
    assert_eq!((units.ready(), units.waiting()), (vec![0, 1, 2], 0));
}

#[test]
fn w19_a_zigzag_hangs_below_its_end() {
    let mut units = Units::new(4);
    units.emit(0, &[1]).expect("emitted");
    units.emit(2, &[3]).expect("emitted");
    units.emit(1, &[2]).expect("emitted");
    let label = |units: &Units, i: usize| Label { dylib: units.dylib, symbol: units.symbols[i] };
    let zero = label(&units, 0);
    assert_eq!(units.machine.step(WaitsFor(zero)).0, [label(&units, 3)]);
    units.emit(3, &[]).expect("emitted");
    assert_eq!((units.ready(), units.waiting()), (vec![0, 1, 2, 3], 0));
    assert_eq!(units.machine.step(WaitsFor(zero)).0, []);
}

#[test]
fn w20_w21_a_failure_without_dependants() {
    let mut units = Units::new(2);
    units.fail(0);
    units.emit(1, &[]).expect("emitted");
    assert_eq!((units.ready(), units.failed, units.machine.counts().3), (vec![1], vec![0], 0));
}

#[test]
fn w22_emission_with_a_failed_dependence_fails() {
    let mut units = Units::new(2);
    units.fail(0);
    assert!(matches!(units.emit(1, &[0]), Err(Error::Unsatisfied { .. })));
    assert_eq!(units.failed, [0, 1]);
}

#[test]
fn w23_linking_a_waiting_unit_to_a_failed_one_fails_both() {
    let mut units = Units::new(3);
    units.emit(0, &[1]).expect("emitted");
    units.fail(2);
    assert!(units.emit(1, &[2]).is_err());
    units.failed.sort();
    assert_eq!((units.failed, units.machine.counts().3), (vec![0, 1, 2], 0));
}

/// The emitted units that reach only emitted units, by walking.
fn naive(needs: &[Vec<usize>], emitted: &BTreeSet<usize>) -> Vec<usize> {
    let ready = |i: &usize| {
        let mut seen = BTreeSet::from([*i]);
        let mut fresh = vec![*i];
        while let Some(at) = fresh.pop() {
            if !emitted.contains(&at) {
                return false;
            }
            fresh.extend(needs[at].iter().filter(|n| seen.insert(**n)));
        }
        true
    };
    emitted.iter().copied().filter(ready).collect()
}

#[test]
fn w24_any_order_gives_the_same_readiness_as_a_naive_closure() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(50);
        let density = 1 + random.below(3);
        let needs: Vec<Vec<usize>> = (0..count)
            .map(|_| (0..random.below(density + 1)).map(|_| random.below(count)).collect())
            .collect();
        let mut order: Vec<usize> = (0..count).collect();
        random.shuffle(&mut order);
        let mut units = Units::new(count);
        let mut emitted = BTreeSet::new();
        for i in order {
            units.emit(i, &needs[i]).expect("emitted");
            emitted.insert(i);
            assert_eq!(units.ready(), naive(&needs, &emitted), "seed {seed}, after {i}");
            units.machine.check().expect("invariants");
        }
        assert_eq!((units.ready().len(), units.waiting()), (count, 0));
    }
}

/// The graphs of the benchmark.
fn shape(name: &str, count: usize, random: &mut Random) -> Vec<Vec<usize>> {
    (0..count)
        .map(|i| match name {
            "chain" => {
                if i + 1 < count {
                    vec![i + 1]
                } else {
                    vec![]
                }
            }
            "star" => {
                if i == 0 {
                    vec![]
                } else {
                    vec![0]
                }
            }
            "cycle" => vec![(i + 1) % count],
            _ => vec![random.below(count), random.below(count)],
        })
        .collect()
}

#[test]
fn w24_large_graphs_in_random_order_become_ready() {
    const COUNT: usize = if cfg!(miri) { 300 } else { 10_000 };
    for name in ["chain", "star", "cycle", "random"] {
        let mut random = Random::new(7);
        let needs = shape(name, COUNT, &mut random);
        let mut order: Vec<usize> = (0..COUNT).collect();
        random.shuffle(&mut order);
        let mut units = Units::new(COUNT);
        for i in order {
            units.emit(i, &needs[i]).expect("emitted");
        }
        assert_eq!((units.ready().len(), units.waiting()), (COUNT, 0), "{name}");
    }
}

#[test]
fn w24_a_failure_at_the_end_of_a_long_chain_reaches_all_of_it() {
    const COUNT: usize = if cfg!(miri) { 300 } else { 10_000 };
    let mut units = Units::new(COUNT);
    for i in 0..COUNT - 1 {
        units.emit(i, &[i + 1]).expect("emitted");
    }
    units.fail(COUNT - 1);
    assert_eq!((units.failed.len(), units.waiting()), (COUNT, 0));
}
