//! Functions that are compiled fast at first, and optimised after many calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brolga::ir::Type;
use brolga::session::{Dylib, Signature};
use brolga::{Session, TypedFunc, Workers};

use super::{adds, calls, session};

const CALLS: u32 = 50;

type Int = TypedFunc<(i64,), i64>;

fn tiered(dylib: &Dylib, source: &str) {
    let program = dylib.read("tiered.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program.replaceable().tiered(CALLS)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_function_is_compiled_again_when_it_has_been_called_often() {
    for workers in [Workers::Caller, Workers::Seeded(5)] {
        let session = session(workers);
        let main = session.create_dylib("main").unwrap();
        tiered(&main, &adds("base", 1));
        tiered(&main, &calls("top", "base"));
        let top: Int = main.func("top").unwrap();
        for n in 0..i64::from(CALLS) {
            assert_eq!(top.call((n,)), Ok(n + 2));
        }
        assert_eq!((session.stats().compiled_functions, session.optimize_hot()), (2, 0));
        assert_eq!(top.call((7,)), Ok(9));
        assert_eq!((session.optimize_hot(), session.stats().compiled_functions), (2, 4));
        for n in 0..i64::from(2 * CALLS) {
            assert_eq!(top.call((n,)), Ok(n + 2));
        }
        assert_eq!((session.optimize_hot(), session.stats().compiled_functions), (0, 4));
        assert_eq!(session.runtime().retired(), 0, "the first tier was freed");
        assert_eq!(session.linking().check(), Ok(()));
    }
}

#[test]
fn a_redefined_function_starts_again_in_the_first_tier() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    tiered(&main, &adds("base", 1));
    let base: Int = main.func("base").unwrap();
    let call_often = |sum| (0..=CALLS).for_each(|_| assert_eq!(base.call((0,)), Ok(sum)));
    call_often(1);
    assert_eq!(session.optimize_hot(), 1);
    let program = main.read("again.jlir", adds("base", 5).as_bytes()).unwrap();
    main.redefine(program.replaceable().tiered(CALLS)).unwrap();
    assert_eq!((base.call((0,)), session.optimize_hot()), (Ok(5), 0));
    call_often(5);
    assert_eq!((session.optimize_hot(), base.call((1,))), (1, Ok(6)));

    // It became hot, and was replaced before it was optimised.
    let program = main.read("again.jlir", adds("base", 7).as_bytes()).unwrap();
    main.redefine(program.replaceable().tiered(CALLS)).unwrap();
    call_often(7);
    let program = main.read("again.jlir", adds("base", 9).as_bytes()).unwrap();
    main.redefine(program.replaceable().tiered(CALLS)).unwrap();
    assert_eq!(session.optimize_hot(), 0);
    call_often(9);
    assert_eq!((session.optimize_hot(), base.call((1,))), (1, Ok(10)));
}

#[test]
fn a_function_may_have_one_tier_after_it_had_two() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let symbols = |session: &Session| session.stats().symbols;
    tiered(&main, &adds("base", 1));
    let base: Int = main.func("base").unwrap();
    (0..=CALLS).for_each(|_| assert_eq!(base.call((0,)), Ok(1)));
    assert_eq!((session.optimize_hot(), symbols(&session)), (1, 3), "the function and its two bodies");
    let program = main.read("again.jlir", adds("base", 5).as_bytes()).unwrap();
    main.redefine(program.replaceable()).unwrap();
    (0..=CALLS).for_each(|_| assert_eq!(base.call((0,)), Ok(5)));
    assert_eq!((session.optimize_hot(), symbols(&session)), (0, 2));
    assert_eq!(session.linking().check(), Ok(()));
}

/// Counts down, and asks the host in every iteration.
const DOWN: &str = "\
function down(n::Int64)::Int64
1 ─ %1 = Base.eq_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─      return 0
3 ─ %4 = invoke Main.tick(n::Int64)::Int64
│   %5 = Base.sub_int(n, 1)::Int64
│   %6 = invoke Main.down(%5::Int64)::Int64
│   %7 = Base.add_int(%6, %4)::Int64
└──      return %7
end
";

#[test]
fn a_recursive_function_of_the_first_tier_calls_what_has_taken_its_place() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let (dylib, is_done) = (main.clone(), AtomicBool::new(false));
    let signature = Signature::new("tick", &[Type::INT64], Type::INT64);
    main.define_host(&signature, move |scope, args| {
        let n: i64 = args[1].get(scope).unboxed().map_err(|_| scope.throw_error("no integer"))?;
        if n == 5 && !is_done.swap(true, Ordering::Relaxed) {
            let again = adds("down", 1000);
            let program = dylib.read("again.jlir", again.as_bytes()).expect("well-formed");
            dylib.redefine(program.replaceable().tiered(CALLS)).expect("redefined");
        }
        scope.int(1).map_err(|error| scope.throw_error(&error.to_string()))
    })
    .unwrap();
    tiered(&main, DOWN);
    let down: Int = main.func("down").unwrap();
    // From 10 to 5 by the first definition, and the call with 4 goes to the second.
    assert_eq!((down.call((10,)), down.call((10,))), (Ok(6 + 1004), Ok(1010)));
    // The function of the host holds the session.
    session.end();
}

/// Divides, by a function that takes and gives a pair; throws for 0, and takes long for what is large.
const COLD: &str = "\
function halves(pair::Tuple{Int64, Float64}, by::Int64)::Tuple{Int64, Float64}
1 ─ %1 = Base.getfield(pair, 1)::Int64
│   %2 = Base.checked_sdiv_int(%1, by)::Int64
│   %3 = Base.getfield(pair, 2)::Float64
│   %4 = Base.mul_float(%3, 0.5)::Float64
│   %5 = Core.tuple(%2, %4)::Tuple{Int64, Float64}
└──      return %5
end

function cold(n::Int64, x::Float64, by::Int64)::Float64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %4)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─ %7 = Core.tuple(%2, x)::Tuple{Int64, Float64}
│   %8 = invoke Main.halves(%7::Tuple{Int64, Float64}, by::Int64)::Tuple{Int64, Float64}
│   %9 = Base.getfield(%8, 1)::Int64
│   %10 = Base.sitofp(Float64, %9)::Float64
│   %11 = Base.getfield(%8, 2)::Float64
│   %12 = Base.add_float(%10, %11)::Float64
└──      return %12
end
";

#[test]
fn first_calls_are_interpreted_where_it_cannot_be_observed() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let program = main.read("cold.jlir", COLD.as_bytes()).unwrap();
    main.define(program.tiered(CALLS).interpreted(10)).unwrap();
    let cold: TypedFunc<(i64, f64, i64), f64> = main.func("cold").unwrap();
    for n in 0..10 {
        assert_eq!(cold.call((n, 3.0, 3)), Ok((n / 3) as f64 + 1.5));
        if n == 3 {
            assert_eq!(session.optimize_hot(), 0, "code is requested behind half of the calls");
        }
    }
    assert_eq!(session.stats().compiled_functions, 0);
    assert_eq!(
        (session.optimize_hot(), session.stats().compiled_functions),
        (1, 1),
        "the code was asked for"
    );
    assert_eq!(cold.call((9, 3.0, 3)), Ok(4.5));

    // The call behind those that are interpreted compiles, and so does one that throws, or takes long.
    for (calls, n, by) in [(4, 9, 3), (0, 9, 0), (0, 1 << 20, 3)] {
        let program = main.read("cold.jlir", COLD.as_bytes()).unwrap();
        main.redefine(program.tiered(CALLS).interpreted(4)).unwrap();
        let before = session.stats().compiled_functions;
        (0..calls).for_each(|_| assert_eq!(cold.call((9, 3.0, 3)), Ok(4.5)));
        assert_eq!(session.stats().compiled_functions, before);
        assert_eq!(cold.call((n, 3.0, by)).is_ok(), by != 0);
        assert!(session.stats().compiled_functions > before);
    }
    // Iterations of loops count: some calls with many of them are enough.
    session.optimize_hot();
    let program = main.read("cold.jlir", COLD.as_bytes()).unwrap();
    main.redefine(program.tiered(CALLS).interpreted(1000)).unwrap();
    let before = session.stats().compiled_functions;
    let asked = (1..100).find(|_| {
        assert_eq!(cold.call((300, 3.0, 3)), Ok(101.5));
        session.optimize_hot() > 0
    });
    assert!(asked.is_some_and(|calls| (2..50).contains(&calls)), "{asked:?}");
    assert_eq!((session.stats().compiled_functions, cold.call((300, 3.0, 3))), (before + 1, Ok(101.5)));
    // A function that touches memory is compiled by its first call.
    let source = "function reads(at::Int64)::Int64\n1 ─ %1 = Base.bitcast(Ptr{Int64}, at)::Ptr{Int64}\n\
                  │   %2 = Base.pointerref(%1, 1, 1)::Int64\n└──      return %2\nend\n";
    let program = main.read("reads.jlir", source.as_bytes()).unwrap();
    main.define(program.tiered(CALLS).interpreted(10)).unwrap();
    let (word, before) = ([7i64], session.stats().compiled_functions);
    let reads: Int = main.func("reads").unwrap();
    assert_eq!(reads.call((word.as_ptr().expose_provenance() as i64,)), Ok(7));
    assert_eq!(session.stats().compiled_functions, before + 1);
}

#[test]
fn an_interpreted_program_is_freed_when_there_is_code() {
    // Every program in memory holds the context: how many are there more, before the code and behind it.
    let held = |cold: u32| {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        let mut held = Vec::new();
        // The slot is made for the first definition, and stays for the second.
        for n in [1, 2] {
            let program = main.read("base.jlir", adds("base", n).as_bytes()).unwrap();
            let program = program.replaceable().tiered(CALLS).interpreted(cold);
            main.redefine(program).unwrap();
            let base: Int = main.func("base").unwrap();
            let call = |x: u32| assert_eq!(base.call((x.into(),)), Ok(i64::from(x) + n));
            let before = Arc::strong_count(session.context());
            let compiled = session.stats().compiled_functions;
            (0..=cold).for_each(call);
            assert_eq!(session.stats().compiled_functions, compiled + 1);
            held.push((before, Arc::strong_count(session.context())));
            (0..=CALLS).for_each(call);
            assert_eq!(session.optimize_hot(), 1);
        }
        held
    };
    assert_eq!(held(4), held(0));
}

#[test]
fn a_pool_optimises_in_the_background_under_threads_that_call() {
    let session = session(Workers::Pool(1));
    let main = session.create_dylib("main").unwrap();
    tiered(&main, &adds("base", 1));
    tiered(&main, &calls("top", "base"));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let top: Int = main.func("top").unwrap();
                while session.stats().compiled_functions < 4 {
                    (0..100).for_each(|n| assert_eq!(top.call((n,)), Ok(n + 2)));
                }
                assert_eq!(top.call((1,)), Ok(3));
            });
        }
    });
    session.end();
    assert_eq!(session.linking().check(), Ok(()));
}

#[test]
fn a_function_that_was_removed_can_be_defined_again() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    for sum in 1..4 {
        tiered(&main, &adds("base", sum));
        let base: Int = main.func("base").unwrap();
        (0..=CALLS).for_each(|_| assert_eq!(base.call((0,)), Ok(sum)));
        assert_eq!((session.optimize_hot(), base.call((1,))), (1, Ok(sum + 1)));
        main.remove(&["base"]).unwrap();
        assert!(main.func::<(i64,), i64>("base").is_err());
        assert_eq!(session.linking().check(), Ok(()));
    }
}
