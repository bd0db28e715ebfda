//! Functions of other units that are removed under those who call them.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brolga_codegen::isa::Tier;
use brolga_codegen::ways::Route;
use brolga_jit::{BuildError, Gate, LinkError, Linkage, Style, Target, Unit};
use support::lazy::{Program, STEPS, thrown};
use support::{TIERS, engine, engines};

/// Functions that can be chained, and one that catches what a call throws.
const CHAIN: &str = "
low function link(n::i64)::i64
1 ─ %1 = add_int(n, 1)::i64
└──      return %1
end

low function wide(a::i64, b::i64, c::i64, d::i64, e::i64, f::i64, g::i64, h::i64, i::i64, j::i64)::(i64, i64, i64, i64)
1 ─ return (j, i, h, a)
end

low function calls_wide(n::i64)::i64
1 ─ %1 = invoke wide(n, 2, 3, 4, 5, 6, 7, 8, 9, 10)::(i64, i64, i64, i64)
│   %2 = add_int(%1, %1.3)::i64
└──      return %2
end

low function catches(n::i64)::i64
1 ─ %1 = brolga_exception_depth()::i64
└── %2 = enter #3
2 ─ %3 = invoke link(n)::i64
│        $(Expr(:leave, :(%2)))
└──      return %3
3 ─      brolga_pop_exception(%1)
└──      return -1
end
";

type Gates = BTreeMap<String, Arc<Gate>>;

/// A unit of one function, which reaches others through these gates.
fn unit(program: &Program, name: &str, tier: Tier, gates: &Gates) -> Unit {
    let style = Style { others: &|_| Route::Slot, ..tier.into() };
    program.unit(&[name], style, &Linkage { gates: Some(gates), ..Linkage::default() })
}

/// A gate to a function that calls nothing, of a unit that nobody else keeps.
fn gate(program: &Program, name: &str, tier: Tier) -> Arc<Gate> {
    target(program, name, tier).gate().unwrap()
}

fn target(program: &Program, name: &str, tier: Tier) -> Target {
    unit(program, name, tier, &Gates::new()).target(name).unwrap()
}

fn named<const N: usize>(gates: [(&str, Arc<Gate>); N]) -> Gates {
    gates.into_iter().map(|(name, gate)| (name.to_owned(), gate)).collect()
}

#[test]
fn a_closed_gate_throws_and_gives_the_code_back_whatever_linked_it() {
    for jit in engines() {
        for tier in TIERS {
            let program = Program::new(&jit, tier, STEPS);
            let gate = gate(&program, "step", tier);
            let count = unit(&program, "count", tier, &named([("step", gate.clone())]));
            let count = count.func::<(i64,), i64>("count").unwrap();
            assert_eq!((count.call((5,)), gate.is_open()), (Ok(5), true));
            let before = jit.stats();
            gate.close();
            let after = jit.stats();
            assert!(!gate.is_open() && after.in_use < before.in_use);
            assert_eq!((after.runs, after.freed), (before.runs - 1, before.freed + 1));
            assert_eq!(thrown(count.call((5,))), "CompileError: `step` has been removed");
            assert_eq!(count.call((0,)), Ok(0), "nothing else has changed");
            gate.close();
            drop(gate);
            thrown(count.call((1,)));
        }
    }
}

/// Arguments and results of any number, in registers and in memory: nobody looks at them.
#[test]
fn a_call_with_many_arguments_and_one_under_a_handler_throw() {
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, CHAIN);
        let gates = named([("wide", gate(&program, "wide", tier)), ("link", gate(&program, "link", tier))]);
        let units = ["calls_wide", "catches"].map(|name| unit(&program, name, tier, &gates));
        let [wide, catches] = [("calls_wide", 0), ("catches", 1)]
            .map(|(name, at)| units[at].func::<(i64,), i64>(name).unwrap());
        assert_eq!((wide.call((7,)), catches.call((7,))), (Ok(17), Ok(8)));
        gates.values().for_each(|gate| gate.close());
        assert_eq!(thrown(wide.call((7,))), "CompileError: `wide` has been removed");
        assert_eq!(catches.call((7,)), Ok(-1), "caught");
    }
}

#[test]
fn an_open_gate_keeps_code_and_long_chains_of_them_go_at_once() {
    const COUNT: usize = 20_000;
    let tier = TIERS[0];
    let jit = engine();
    let source = "low function next(n::i64)::i64\n1 ─ %1 = invoke link(n)::i64\n└──      return %1\nend\n";
    let program = Program::new(&jit, tier, &(CHAIN.to_owned() + source));
    let runs = jit.stats().runs;
    let mut last = gate(&program, "link", tier);
    let first = last.clone();
    let next = program.compile(&["next"], Style { others: &|_| Route::Slot, ..tier.into() });
    for _ in 0..COUNT {
        let gates = named([("link", last)]);
        let unit = jit.link(&next, &Linkage { gates: Some(&gates), ..Linkage::default() }).unwrap();
        last = unit.target("next").unwrap().gate().unwrap();
    }
    assert!(first.is_open() && jit.stats().runs > runs + COUNT);
    let top = unit(&program, "catches", tier, &named([("link", last.clone())]));
    drop((first, last));
    assert!(jit.stats().runs > runs + COUNT);
    drop(top);
    // Beside slots' groups and trampolines that stay.
    assert!(jit.stats().runs < runs + COUNT / 2, "{:?}", jit.stats());
    assert_eq!(jit.runtime().retired(), 0, "nobody has to be waited for");
}

#[test]
fn threads_call_while_a_gate_is_closed_and_what_runs_goes_on() {
    const CALLS: i64 = 500;
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        for _ in 0..20 {
            let gate = gate(&program, "step", tier);
            let count = unit(&program, "count", tier, &named([("step", gate.clone())]));
            let count = count.func::<(i64,), i64>("count").unwrap();
            let (stop, called) = (AtomicBool::new(false), AtomicUsize::new(0));
            let results = std::thread::scope(|scope| {
                let calling = [(); 3].map(|()| {
                    scope.spawn(|| {
                        let mut results = Vec::new();
                        while !stop.load(Ordering::Relaxed) {
                            results.push(count.call((CALLS,)));
                            called.fetch_add(1, Ordering::Relaxed);
                        }
                        results
                    })
                });
                while called.load(Ordering::Relaxed) < 10 {
                    std::thread::yield_now();
                }
                gate.close();
                let last = count.call((CALLS,));
                stop.store(true, Ordering::Relaxed);
                thrown(last);
                calling.map(|thread| thread.join().unwrap())
            });
            for result in results.into_iter().flatten().filter(|result| *result != Ok(CALLS)) {
                assert_eq!(thrown(result), "CompileError: `step` has been removed");
            }
            jit.runtime().free_retired();
            assert_eq!(jit.runtime().retired(), 0);
        }
    }
}

#[test]
fn gates_of_other_engines_and_of_other_types_are_refused() {
    let tier = TIERS[0];
    let (jit, other) = (engine(), engine());
    let programs = [&jit, &other].map(|jit| Program::new(jit, tier, STEPS));
    let style = Style { others: &|_| Route::Slot, ..tier.into() };
    let compiled = programs[0].compile(&["count"], style);
    let refused = |gates: &Gates| {
        jit.link(&compiled, &Linkage { gates: Some(gates), ..Linkage::default() }).unwrap_err()
    };
    let foreign = refused(&named([("step", gate(&programs[1], "step", tier))]));
    assert!(
        matches!(&foreign, BuildError::Link(LinkError::Unresolved { symbols }) if symbols[0].1.contains("another engine")),
        "{foreign}"
    );
    let strange = refused(&named([("step", gate(&programs[0], "split", tier))]));
    assert!(matches!(&strange, BuildError::Signature { name, .. } if name == "step"), "{strange}");
}
