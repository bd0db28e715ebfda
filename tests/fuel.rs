//! Fuel: the same count by every engine, at every level, in every tier; and an end that no handler catches.

use brolga::ir::{Level, Module, Type};
use brolga::limits::{Ended, Fuel};
use brolga::options::Roots;
use brolga::session::{Session, Workers};
use brolga::{CallError, Engine, Evaluator, Failure, Limits, OptLevel, Options, Program};
use brolga_fuzz::generate::{self, Features, generate};
use brolga_fuzz::rng::Rng;

/// Calls, and the units that they take.
type Calls = &'static [(&'static str, u64)];

/// Programs with the calls that are counted.
const PROGRAMS: [(&str, &str, Calls); 6] = [
    (
        "straight",
        "function main(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = Base.mul_int(%1, 2)::Int64
└──      return %2
end",
        &[("main(3)", 3)],
    ),
    (
        // Passes compute it at once, unroll it or make it faster.
        "counts",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = φ (#1 => 0, #3 => %6)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %5 = Base.add_int(%2, %3)::Int64
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end",
        &[("main(0)", 10), ("main(1)", 18), ("main(100)", 810), ("main(4)", 42)],
    ),
    (
        // The call has no use; the callee is inlined.
        "calls",
        "function main(n::Int64)::Int64
1 ─ %1 = invoke Main.square(n::Int64)::Int64
│   %2 = invoke Main.square(n::Int64)::Int64
│   %3 = invoke Main.square(%2::Int64)::Int64 noinline
└──      return %3
end
function square(n::Int64)::Int64
1 ─ %1 = Base.mul_int(n, n)::Int64
└──      return %1
end",
        &[("main(3)", 10)],
    ),
    (
        // A tail call, which becomes a loop at the higher levels.
        "recurs",
        "function main(n::Int64)::Int64
1 ─ %1 = Base.slt_int(0, n)::Bool
└──      goto #3 if not %1
2 ─ %2 = Base.sub_int(n, 1)::Int64
│   %3 = invoke Main.main(%2::Int64)::Int64
└──      return %3
3 ─      return n
end",
        &[("main(0)", 6), ("main(50)", 306)],
    ),
    (
        "throws and catches",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 10, #4 => %7, #5 => %10)::Int64
│   %3 = Base.slt_int(0, %2)::Bool
└──      goto #6 if not %3
3 ─ %5 = enter #5
4 ─ %6 = Base.checked_sdiv_int(n, %2)::Int64
│   %7 = Base.sub_int(%2, 1)::Int64
│        $(Expr(:leave, :(%5)))
└──      goto #2
5 ┄      $(Expr(:pop_exception, :(%5)))::Nothing
│   %10 = Base.sub_int(%2, 2)::Int64
└──      goto #2
6 ─      return n
end",
        &[("main(9)", 134)],
    ),
    (
        "vectors",
        "function main(n::Int64)::Float64
1 ─ %1 = invoke Main.make(n::Int64)::Vector{Float64} noinline
└──      goto #2
2 ┄ %3 = φ (#1 => 0.0, #3 => %8)::Float64
│   %4 = φ (#1 => 1, #3 => %9)::Int64
│   %5 = Base.sle_int(%4, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = Base.arrayref(true, %1, %4)::Float64
│   %8 = Base.add_float(%3, %7)::Float64
│   %9 = Base.add_int(%4, 1)::Int64
└──      goto #2
4 ─      return %3
end
function make(n::Int64)::Vector{Float64}
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Float64}, svec(Any, Int64), 0, :(:ccall), Vector{Float64}, :(n)))::Vector{Float64}
└──      goto #2
2 ┄ %3 = φ (#1 => 1, #3 => %6)::Int64
│   %4 = Base.sle_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─      Base.arrayset(true, %1, 0.5, %3)::Vector{Float64}
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %1
end",
        &[("main(0)", 22), ("main(64)", 1046)],
    ),
];

const PLENTY: u64 = 1 << 40;

/// The fuel that a call takes, and its value or how it ended.
fn spent(
    evaluator: Evaluator<'_>,
    program: &Program,
    call: &str,
    units: u64,
) -> (u64, Result<String, String>) {
    let fuel = Fuel::new(units);
    let value = evaluator.with_fuel(&fuel).call(&program.call(call).unwrap());
    let value = value.map_err(|failure| match failure {
        Failure::Stopped(text) => text,
        other => panic!("{other}"),
    });
    (units - fuel.left(), value)
}

#[test]
fn every_engine_counts_the_same() {
    for (name, text, calls) in PROGRAMS {
        let read = || Program::read(name, text.as_bytes()).unwrap();
        let (program, priced) = (read(), read().priced());
        for &(call, units) in calls {
            let (took, value) = spent(Evaluator::interpreted(&priced), &priced, call, PLENTY);
            assert_eq!(took, units, "{name}: {call}, interpreted");
            let less = spent(Evaluator::interpreted(&priced), &priced, call, units - 1);
            assert_eq!(less.1, Err(Ended::Fuel.to_string()), "{name}: {call}, interpreted");
            for level in OptLevel::ALL {
                for roots in [Roots::Linked, Roots::Maps] {
                    let options = Options::new().opt_level(level).roots(roots).fuel(true);
                    let engine = Engine::new(options).unwrap();
                    let native = || Evaluator::native(&program, &engine);
                    let what = format!("{name}: {call}, {level:?}, {roots:?}");
                    assert_eq!(spent(native(), &program, call, PLENTY), (units, value.clone()), "{what}");
                    assert_eq!(spent(native(), &program, call, units), (units, value.clone()), "{what}");
                    let ended = (units - 1, Err(Ended::Fuel.to_string()));
                    assert_eq!(spent(native(), &program, call, units - 1), ended, "{what}");
                }
            }
        }
    }
}

/// A small number of a type, as text.
fn text_of(rng: &mut Rng, module: &Module, ty: Type) -> Option<String> {
    let (name, number) = (module.cx.types.display(ty).to_string(), rng.below(9));
    match name.as_str() {
        "Bool" => Some((number % 2 == 0).to_string()),
        "Float64" => Some(format!("{number}.5")),
        "Float32" => Some(format!("{number}.5f0")),
        _ if name.starts_with("Int") || name.starts_with("UInt") => Some(format!("{name}({number})")),
        _ => None,
    }
}

/// Generated programs: whatever they do, levels and the interpreter agree on what it takes.
#[test]
fn generated_programs_take_the_same() {
    let options = || doors::open(Options::new()).fuel(true);
    let engines = OptLevel::ALL.map(|level| Engine::new(options().opt_level(level)).unwrap());
    let mut compared = 0;
    for seed in 0..40 {
        let features =
            Features { calls: true, throws: true, floats: true, handlers: true, ..Features::PLAIN };
        let module = generate(seed, &generate::Options { features, ..Default::default() });
        let program = Program::from_module(module.clone()).unwrap();
        let priced = Program::from_module(module).unwrap().priced();
        let tank = Fuel::new(PLENTY);
        let mut evaluators = vec![Evaluator::interpreted(&priced).with_fuel(&tank)];
        evaluators.extend(engines.iter().map(|engine| Evaluator::native(&program, engine).with_fuel(&tank)));
        let (module, mut rng) = (program.module(), Rng::new(seed));
        for (_, func) in module.funcs().filter(|(_, func)| func.level == Level::High) {
            let args = func.sig.params.iter().skip(1).map(|param| text_of(&mut rng, module, param.ty));
            let Some(args) = args.collect::<Option<Vec<_>>>() else { continue };
            let call = format!("{}({})", module.cx.names.text(func.name), args.join(", "));
            let (of_program, of_priced) = (program.call(&call).unwrap(), priced.call(&call).unwrap());
            let took: Vec<u64> = evaluators
                .iter_mut()
                .enumerate()
                .map(|(n, evaluator)| {
                    let before = tank.left();
                    let value = evaluator.call(if n == 0 { &of_priced } else { &of_program });
                    assert!(!matches!(value, Err(Failure::Stopped(_))), "{value:?}");
                    before - tank.left()
                })
                .collect();
            assert!(took.iter().all(|&units| units == took[0]), "seed {seed}: {call} takes {took:?}");
            compared += usize::from(took[0] > 0);
        }
    }
    assert!(compared > 100, "{compared}");
}

/// It catches everything, and begins again.
const STUBBORN: &str = "
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end
function fine(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
└──      return %1
end";

#[test]
fn nothing_catches_the_end() {
    for level in OptLevel::ALL {
        let engine = Engine::new(Options::new().opt_level(level).fuel(true)).unwrap();
        let unit = engine.compile(&Program::read("stubborn.jlir", STUBBORN.as_bytes()).unwrap()).unwrap();
        let (main, fine) =
            (unit.func::<(i64,), i64>("main").unwrap(), unit.func::<(i64,), i64>("fine").unwrap());
        let fuel = Fuel::new(100_000);
        let limits = Limits::new().fuelled_by(&fuel);
        assert_eq!(main.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Fuel)), "{level:?}");
        assert!(fuel.left() < 10, "{level:?}: {fuel:?}");
        assert_eq!(fine.call((1,)), Ok(2));
        // The tank stays empty until it is filled.
        fuel.take(fuel.left());
        assert_eq!(fine.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Fuel)));
        fuel.add(5);
        assert_eq!(fine.call_limited(&limits, (1,)), Ok(2));
        assert_eq!(fine.call_limited(&limits, (2,)), Ok(3));
        assert_eq!((fine.call_limited(&limits, (3,)), fuel.left()), (Err(CallError::Ended(Ended::Fuel)), 0));
    }
}

#[test]
fn inner_calls_take_what_outer_ones_have() {
    let engine = Engine::new(Options::new().fuel(true)).unwrap();
    let unit = engine.compile(&Program::read("stubborn.jlir", STUBBORN.as_bytes()).unwrap()).unwrap();
    let (main, fine) = (unit.func::<(i64,), i64>("main").unwrap(), unit.func::<(i64,), i64>("fine").unwrap());
    let (outer, inner) = (Fuel::new(100), Fuel::new(40));
    let done = engine.runtime().limited(&Limits::new().fuelled_by(&outer), || {
        let limits = Limits::new().fuelled_by(&inner);
        assert_eq!(main.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Fuel)));
        assert_eq!(fine.call((1,)), Ok(2), "the outer call has some");
        inner.add(1000);
        assert_eq!(main.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Fuel)));
        assert!(fine.call((1,)).is_err(), "there is none further out");
    });
    assert_eq!(done, Err(Ended::Fuel.into()));
    assert_eq!(outer.left(), 0);
    assert!(inner.left() > 900);
    assert_eq!(fine.call((1,)), Ok(2));
}

/// More units than the word of the thread holds are paid from the reserve.
#[test]
fn a_long_call_refills() {
    let spend = "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %4)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─      $(Expr(:spend, 2000000000))::Nothing
│   %4 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %2
end";
    for level in OptLevel::ALL {
        let engine = Engine::new(Options::new().opt_level(level)).unwrap();
        let unit = engine.compile(&Program::read("long.jlir", spend.as_bytes()).unwrap()).unwrap();
        let main = unit.func::<(i64,), i64>("main").unwrap();
        let fuel = Fuel::new(20_000_000_001);
        let limits = Limits::new().fuelled_by(&fuel);
        assert_eq!((main.call_limited(&limits, (9,)), fuel.left()), (Ok(9), 2_000_000_001));
        assert_eq!(main.call((50,)), Ok(50), "without limits there is no end");
        assert_eq!((main.call_limited(&limits, (1,)), fuel.left()), (Ok(1), 1));
        assert_eq!(main.call_limited(&limits, (1,)), Err(CallError::Ended(Ended::Fuel)));
    }
}

/// The tiers of a session, loops that are left for better code, and definitions of all kinds.
#[test]
fn sessions_count_the_same_in_all_tiers() {
    for (name, text, calls) in PROGRAMS {
        let session = Session::new(Options::new().fuel(true), Workers::Caller).unwrap();
        let read = |name: &str| {
            let dylib = session.create_dylib(name).unwrap();
            let definitions = dylib.read("program.jlir", text.as_bytes()).unwrap();
            (dylib, definitions)
        };
        let (tiered, definitions) = read("tiered");
        tiered.define(definitions.tiered(2).iterations(3)).unwrap();
        let (whole, definitions) = read("whole");
        whole.define(definitions.together()).unwrap();
        let (inlinable, definitions) = read("inlinable");
        inlinable.define(definitions.inlinable()).unwrap();
        let foreign = session.create_dylib("read before").unwrap();
        foreign.define(Program::read(name, text.as_bytes()).unwrap()).unwrap();
        for dylib in [tiered, whole, inlinable, foreign] {
            for &(call, units) in calls {
                for _ in 0..6 {
                    let fuel = Fuel::new(PLENTY);
                    let limits = Limits::new().fuelled_by(&fuel);
                    let n: i64 = call["main(".len()..call.len() - 1].parse().unwrap();
                    match dylib.func::<(i64,), i64>("main") {
                        Ok(main) => drop(main.call_limited(&limits, (n,)).unwrap()),
                        Err(_) => drop(
                            dylib.func::<(i64,), f64>("main").unwrap().call_limited(&limits, (n,)).unwrap(),
                        ),
                    }
                    assert_eq!(PLENTY - fuel.left(), units, "{name}: {call}, {}", dylib.name());
                    session.optimize_hot();
                }
            }
        }
    }
}

#[path = "support/doors.rs"]
mod doors;
