//! Functions of two tiers whose second is compiled with the profile of the first.

use brolga::ir::Op;
use brolga::ir::hints::{Hint, Site};
use brolga::session::Dylib;
use brolga::{Program, Session, TypedFunc, Workers};

use super::session;

const CALLS: u32 = 50;

type Int = TypedFunc<(i64,), i64>;

/// The callee of `top` has more methods than a call is split into.
const PROGRAM: &str = "\
function area(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
end
function area(x::Float64)::Int64
1 ─      return 1000
end
function area(x::Int32)::Int64
1 ─      return 2000
end
function area(x::Bool)::Int64
1 ─      return 3000
end
function area(x::UInt8)::Int64
1 ─      return 4000
end
function area(x::Char)::Int64
1 ─      return 5000
end
function pick(n::Int64)::Any
1 ─ %1 = Base.slt_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sitofp(Float64, n)::Float64
└──      return %3
3 ─      return n
end
function top(n::Int64)::Int64
1 ─ %1 = invoke Main.pick(n::Int64)::Any
│   %2 = dynamic Main.area(%1)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
└──      return %3
end
";

fn tiered(dylib: &Dylib, source: &str, profiled: bool) {
    let program = dylib.read("profile.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program.tiered(CALLS).profiled(profiled)).unwrap_or_else(|error| panic!("{error}"));
}

/// Calls `top` until it is hot, with integers; how many bytes of code the second tier then takes.
fn heat(session: &Session, top: &Int) -> u64 {
    for n in 0..=i64::from(CALLS) {
        assert_eq!(top.call((n,)), Ok(n + 1));
    }
    let before = session.stats().compiled_bytes;
    assert!(session.optimize_hot() > 0);
    session.stats().compiled_bytes - before
}

#[test]
fn a_call_that_saw_one_type_is_guarded_and_right_for_others() {
    let mut sizes = Vec::new();
    for profiled in [true, false] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        tiered(&main, PROGRAM, profiled);
        let top: Int = main.func("top").unwrap();
        sizes.push(heat(&session, &top));
        assert_eq!((top.call((5,)), top.call((-1,))), (Ok(6), Ok(1000)));
        assert_eq!(session.linking().check(), Ok(()));
    }
    assert!(sizes[0] != sizes[1], "the guard and the method's body are more than the call: {sizes:?}");
}

/// Quotients that are zero for the numbers of this file, so that the body is larger than a call of it.
const LARGE: &str = "\
1 ─ %1 = Base.sdiv_int(x, 1000003)::Int64
│   %2 = Base.sdiv_int(x, 1000033)::Int64
│   %3 = Base.sdiv_int(x, 1000037)::Int64
│   %4 = Base.sdiv_int(x, 1000039)::Int64
│   %5 = Base.add_int(%1, %2)::Int64
│   %6 = Base.add_int(%3, %4)::Int64
│   %7 = Base.add_int(%5, %6)::Int64
│   %8 = Base.add_int(x, %7)::Int64
│   %9 = Base.add_int(%8, 1)::Int64
└──      return %9
";

#[test]
fn a_method_that_was_guessed_does_not_come_in_if_a_hint_forbids_it() {
    let small = "1 ─ %1 = Base.add_int(x, 1)::Int64\n└──      return %1\n";
    let free = PROGRAM.replace(small, LARGE);
    let hints = [
        free.clone(),
        free.replace("dynamic Main.area(%1)::Any", "dynamic Main.area(%1)::Any noinline"),
        free.replace("function area(x::Int64)::Int64", "function area(x::Int64)::Int64 noinline"),
    ];
    let sizes = hints.map(|source| {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        tiered(&main, &source, true);
        let top: Int = main.func("top").unwrap();
        let size = heat(&session, &top);
        assert_eq!((top.call((5,)), top.call((-1,))), (Ok(6), Ok(1000)));
        size
    });
    assert!(sizes[1] < sizes[0] && sizes[2] < sizes[0], "{sizes:?}");
}

#[test]
fn a_redefined_guessed_method_recompiles_its_caller() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    tiered(&main, PROGRAM, true);
    let top: Int = main.func("top").unwrap();
    heat(&session, &top);
    assert_eq!(top.call((5,)), Ok(6));
    let again =
        "function area(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 7)::Int64\n└──      return %1\nend\n";
    let program = main.read("again.jlir", again.as_bytes()).unwrap();
    main.redefine(program.tiered(CALLS)).unwrap();
    assert_eq!((top.call((5,)), top.call((-1,))), (Ok(12), Ok(1000)));
    let invalidated: Vec<String> = session.take_invalidations().iter().map(ToString::to_string).collect();
    assert_eq!(invalidated, ["`top(Int64)` of `main` depends on `area(Int64)`, which was defined"]);
    // It begins in the first tier, and with a new profile.
    for n in 0..=i64::from(CALLS) {
        assert_eq!(top.call((n,)), Ok(n + 7));
    }
    assert!(session.optimize_hot() > 0);
    assert_eq!((top.call((5,)), top.call((-1,))), (Ok(12), Ok(1000)));
    assert_eq!(session.linking().check(), Ok(()));
}

/// Rounds of which nine in ten go one way; the others cost a division.
const BIASED: &str = "\
function biased(n::Int64)::Int64
1 ─       goto #2
2 ┄ %2  = φ (#1 => 0, #6 => %12)::Int64
│   %3  = φ (#1 => 0, #6 => %11)::Int64
│   %4  = Base.slt_int(%2, n)::Bool
└──       goto #7 if not %4
3 ─ %6  = Base.and_int(%2, 127)::Int64
│   %7  = Base.eq_int(%6, 5)::Bool
└──       goto #5 if not %7
4 ─ %9  = Base.mul_int(%3, 3)::Int64
└──       goto #6
5 ─ %10 = Base.add_int(%3, 1)::Int64
6 ┄ %11 = φ (#4 => %9, #5 => %10)::Int64
│   %12 = Base.add_int(%2, 1)::Int64
└──       goto #2
7 ─       return %3
end
";

#[test]
fn a_branch_that_mostly_goes_one_way_is_laid_out_for_it_and_computes_the_same() {
    let expected = (0..100).fold(0i64, |sum, n| if n & 127 == 5 { sum * 3 } else { sum + 1 });
    let mut sizes = Vec::new();
    for profiled in [true, false] {
        let session = session(Workers::Caller);
        let main = session.create_dylib("main").unwrap();
        tiered(&main, BIASED, profiled);
        let biased: Int = main.func("biased").unwrap();
        (0..=CALLS).for_each(|_| assert_eq!(biased.call((100,)), Ok(expected)));
        let before = session.stats().compiled_bytes;
        assert!(session.optimize_hot() > 0);
        sizes.push(session.stats().compiled_bytes - before);
        assert_eq!((biased.call((100,)), biased.call((3,))), (Ok(expected), Ok(3)));
    }
    assert!(sizes[0] != sizes[1], "without a profile both ways are computed and one is chosen: {sizes:?}");
}

/// Sites are numbers of cells; sites that exist beforehand are of other cells.
#[test]
fn sites_that_were_there_before_are_not_counted_at() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    let text = "\
function high(n::Int64)::Int64
1 ─ %1 = Base.slt_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─      return 0
3 ─      return n
end
low function low(n::i64)::i64
1 ─ %1 = slt_int(n, 0)::i8
└──      goto #3 if not %1
2 ─      return 0
3 ─      return n
end
";
    let mut module = Program::read("t", text.as_bytes()).unwrap().module().clone();
    let ids: Vec<_> = module.funcs().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module[id];
        let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
        for inst in insts {
            if func.op(inst) == Op::Branch {
                let site = Some(Site { cell: 1 << 28, swapped: false });
                func.set_hint(inst, Hint { site, ..Hint::default() });
            }
        }
    }
    let definitions = main.build(module).unwrap_or_else(|error| panic!("{error}"));
    main.define(definitions.tiered(CALLS)).unwrap_or_else(|error| panic!("{error}"));
    for name in ["high", "low"] {
        let function: Int = main.func(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((function.call((-3,)), function.call((3,))), (Ok(0), Ok(3)), "{name}");
    }
}
