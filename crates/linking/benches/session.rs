//! The cost of the session itself: nothing is compiled here.
//!
//! | group | measures |
//! |---|---|
//! | `ready` | one read of a ready symbol, by one and by two threads; by name; as a lookup through the lock |
//! | `graph` | definition, lookup, resolution and emission of 100,000 symbols in random order, by shape |
//! | `change` | one definition, materialization and removal |

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brolga_linking::machine::{
    self, CreateDylib, Define, Emit, Group, How, Machine, NewUnit, Parts, Resolve, Source,
};
use brolga_linking::{
    Dependants, Dylib, InPlace, Label, Link, LookupKind, Names, Need, OnDrop, PlainHost, Priority,
    Responsibility, Sees, Session, Symbol, SymbolFlags, Target, Until, Want, absolute, required, unit,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

struct Words;

impl Target for Words {
    type Address = u64;
    type Code = u64;
}

/// A dylib with `count` ready symbols.
fn ready_symbols(count: u64) -> (Session<Words>, Dylib<Words>, Vec<Symbol>) {
    let session: Session<Words> = Session::new(Arc::new(InPlace::new()), Box::new(PlainHost));
    let main = session.create_dylib("main").expect("a dylib");
    let symbols: Vec<Symbol> = (0..count).map(|i| session.intern(&format!("function_{i}"))).collect();
    let flags = SymbolFlags::EXPORTED;
    main.define(absolute(symbols.iter().zip(1..).map(|(symbol, i)| (*symbol, flags, i)))).expect("defined");
    main.lookup(symbols.clone()).wait().expect("ready");
    (session, main, symbols)
}

fn ready(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ready");
    let (session, main, symbols) = ready_symbols(10_000);
    let look = |dylib: &Dylib<Words>, iterations: u64| {
        let mut at = 0;
        for _ in 0..iterations {
            black_box(dylib.ready(symbols[at]));
            at = (at + 4099) % symbols.len();
        }
    };
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("symbol", threads), |bench| {
            bench.iter_custom(|iterations| {
                let start = Instant::now();
                std::thread::scope(|scope| {
                    for _ in 1..threads {
                        scope.spawn(|| look(&main, iterations));
                    }
                    look(&main, iterations);
                });
                start.elapsed()
            });
        });
    }
    group.bench_function("name", |bench| bench.iter(|| main.address(black_box("function_77"))));
    let order = vec![main.all()];
    let wants = required([symbols[77]]);
    group.bench_function("lookup", |bench| {
        bench.iter(|| session.lookup(order.clone(), wants.clone(), Until::Ready).wait());
    });
    group.finish();
}

struct Plain;

impl Parts for Plain {
    type Address = u64;
    type Code = u64;
    type Source = usize;
    type Generator = u64;
    type Ticket = usize;
    type Board = ();
}

/// The needs of each symbol.
fn shape(name: &str, count: usize, random: &mut impl FnMut(usize) -> usize) -> Vec<Vec<usize>> {
    let needs = |i: usize| match name {
        "chain" if i + 1 == count => vec![],
        "star" if i == 0 => vec![],
        "star" => vec![0],
        "chain" | "cycle" => vec![(i + 1) % count],
        // As many edges as symbols, so that all shapes have the same size.
        _ => vec![random(count)],
    };
    (0..count).map(needs).collect()
}

/// The time from the first definition to the last symbol being ready.
fn build(needs: &[Vec<usize>], order: &[usize]) -> Duration {
    let names = Arc::new(Names::default());
    let symbols: Vec<Symbol> = (0..needs.len()).map(|i| names.intern(&i.to_string())).collect();
    let mut machine: Machine<Plain> = Machine::new(names);
    let start = Instant::now();
    let (dylib, _) =
        machine.step(CreateDylib { name: "main".into(), board: (), begun: false }).0.expect("a dylib");
    let mut units = vec![None; needs.len()];
    let mut answered = 0;
    for &i in order {
        let symbols = vec![(symbols[i], SymbolFlags::EXPORTED)];
        let new = vec![NewUnit { symbols, initializer: None, source: Source::Work(i) }];
        assert!(
            machine
                .step(Define { dylib, tracker: None, units: new, how: How::Define, begun: false })
                .0
                .is_ok()
        );
    }
    for &i in order {
        let wants = vec![Want { symbol: symbols[i], need: Need::Required, at: None }];
        let order = vec![Link { dylib, sees: Sees::All }];
        let (kind, until, priority) = (LookupKind::Static, Until::Ready, Priority::Normal);
        let (_, effects) = machine.step(machine::Lookup {
            order,
            wants,
            kind,
            until,
            priority,
            ticket: i,
            owner: None,
            perhaps: Default::default(),
            caller: 0,
            begun: false,
        });
        for work in effects.work {
            units[work.source] = Some(work.unit);
        }
    }
    for &i in order {
        let unit = units[i].expect("started");
        let (resolved, _) = machine.step(Resolve { unit, addresses: vec![(symbols[i], i as u64)] });
        assert!(resolved.is_ok());
        let needs = needs[i].iter().map(|need| Label { dylib, symbol: symbols[*need] }.into()).collect();
        let groups = vec![Group { symbols: vec![symbols[i]], needs }];
        let (emitted, effects) = machine.step(Emit { unit, groups, again: None });
        assert!(emitted.is_ok());
        answered += effects.answers.len();
    }
    let elapsed = start.elapsed();
    assert_eq!(answered, needs.len(), "all are ready");
    elapsed
}

fn graph(criterion: &mut Criterion) {
    const COUNT: usize = 100_000;
    let mut group = criterion.benchmark_group("graph");
    group.sample_size(10).throughput(Throughput::Elements(COUNT as u64));
    for name in ["chain", "star", "cycle", "random"] {
        let mut seed = 88_172_645_463_325_252u64;
        let mut random = move |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) as usize % below
        };
        let needs = shape(name, COUNT, &mut random);
        let mut order: Vec<usize> = (0..COUNT).collect();
        for end in (1..COUNT).rev() {
            order.swap(end, random(end + 1));
        }
        group.bench_function(name, |bench| {
            bench.iter_custom(|times| (0..times).map(|_| build(&needs, &order)).sum());
        });
    }
    group.finish();
}

fn change(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("change");
    let (session, main, _) = ready_symbols(2);
    let temporary = session.intern("temporary");
    group.bench_function("define, look up, remove", |bench| {
        bench.iter(|| {
            let tracker = main.create_tracker(OnDrop::Keep).expect("a tracker");
            let made = unit([(temporary, SymbolFlags::EXPORTED)], move |duty: Responsibility<Words>| {
                duty.attach(1).expect("attached");
                duty.resolve([(temporary, 9)]).expect("resolved").emit([]).expect("emitted");
            });
            main.define_all(vec![made], Some(&tracker)).expect("defined");
            main.lookup([temporary]).wait().expect("ready");
            tracker.remove(Dependants::Deny).expect("removed");
        });
    });
    group.finish();
}

criterion_group!(benches, ready, graph, change);
criterion_main!(benches);
