//! Programs that are built from Rust: variables that live through handlers, loops and conditions; closures and structs. Each is run by the interpreter and
//! natively at all levels, and compared with the same function in Rust.

use brolga::ir::build::{BuildError, Builder, Record};
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Context, Func, Module, Type, Value};
use brolga::{Engine, Evaluator, OptLevel, Options, Program};

/// A program of the functions.
fn program(funcs: impl FnOnce(&Context) -> Result<Vec<Func>, BuildError>) -> Program {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    for func in funcs(&cx).unwrap_or_else(|error| panic!("{error}")) {
        module.add_func(func).unwrap();
    }
    Program::from_module(module).unwrap_or_else(|error| panic!("{error}"))
}

/// Calls a function of one integer in every engine.
fn same_everywhere(program: &Program, name: &str, expected: impl Fn(i64) -> i64) {
    for level in OptLevel::ALL {
        let unit = Engine::new(Options::new().opt_level(level)).unwrap().compile(program).unwrap();
        let func = unit.func::<(i64,), i64>(name).unwrap();
        for n in 0..12 {
            assert_eq!(func.call((n,)), Ok(expected(n)), "{name}({n}) at {level:?}");
        }
    }
    let mut interpreter = Evaluator::interpreted(program);
    for n in 0..12 {
        let call = program.call(&format!("{name}({n})")).unwrap();
        assert_eq!(interpreter.call(&call).unwrap(), expected(n).to_string(), "{name}({n})");
    }
}

fn add(b: &mut Builder<'_>, to: brolga::ir::build::Variable, value: Value) -> Result<(), BuildError> {
    let old = b.use_var(to)?;
    let new = b.intrinsic(Intrinsic::AddInt, &[old, value])?;
    b.def_var(to, new)
}

/// `n ÷ (n % 3)`, which throws for each third number.
fn risky(cx: &Context) -> Result<Func, BuildError> {
    let mut b = Builder::high(cx, "risky", &[("n", Type::INT64)], Type::INT64);
    let (n, three) = (b.param(0)?, b.int(Type::INT64, 3)?);
    let rest = b.intrinsic(Intrinsic::CheckedSremInt, &[n, three])?;
    let part = b.intrinsic(Intrinsic::CheckedSdivInt, &[n, rest])?;
    b.ret(&[part])?;
    b.finish()
}

/// Each variable is assigned at several places of the body; the handler has to see the last one that ran.
#[test]
fn handlers_see_what_was_assigned_last() {
    let program = program(|cx| {
        let mut b = Builder::high(cx, "f", &[("n", Type::INT64)], Type::INT64);
        let (n, one, ten) = (b.param(0)?, b.int(Type::INT64, 1)?, b.int(Type::INT64, 10)?);
        let (at, kept) = (b.declare_var(Type::INT64), b.declare_var(Type::INT64));
        b.def_var(at, one)?;
        b.def_var(kept, ten)?;
        b.try_catch(
            |b| {
                let two = b.int(Type::INT64, 2)?;
                b.def_var(at, two)?;
                let first = b.invoke("risky", &[n], Type::INT64)?;
                b.def_var(at, first)?;
                let next = b.intrinsic(Intrinsic::AddInt, &[n, one])?;
                let second = b.invoke("risky", &[next], Type::INT64)?;
                add(b, at, second)
            },
            |b, _| {
                let seen = b.use_var(at)?;
                let seen = b.intrinsic(Intrinsic::MulInt, &[seen, ten])?;
                b.def_var(at, seen)
            },
        )?;
        let (at, kept) = (b.use_var(at)?, b.use_var(kept)?);
        let sum = b.intrinsic(Intrinsic::AddInt, &[at, kept])?;
        b.ret(&[sum])?;
        Ok(vec![risky(cx)?, b.finish()?])
    });
    same_everywhere(&program, "f", |n| {
        let risky = |n: i64| n.checked_div(n % 3);
        let at = match (risky(n), risky(n + 1)) {
            (None, _) => 20,
            (Some(first), None) => 10 * first,
            (Some(first), Some(second)) => first + second,
        };
        at + 10
    });
}

/// Handlers in loops, loops in handlers, returns out of both.
#[test]
fn loops_and_handlers_nest() {
    let program = program(|cx| {
        let mut b = Builder::high(cx, "g", &[("n", Type::INT64)], Type::INT64);
        let (n, one, zero) = (b.param(0)?, b.int(Type::INT64, 1)?, b.int(Type::INT64, 0)?);
        let hundred = b.int(Type::INT64, 100)?;
        let (i, sum, caught) =
            (b.declare_var(Type::INT64), b.declare_var(Type::INT64), b.declare_var(Type::INT64));
        for variable in [i, sum, caught] {
            b.def_var(variable, zero)?;
        }
        b.try_catch(
            |b| {
                b.while_loop(
                    |b| {
                        let at = b.use_var(i)?;
                        b.intrinsic(Intrinsic::SltInt, &[at, n])
                    },
                    |b| {
                        add(b, i, one)?;
                        b.try_catch(
                            |b| {
                                let at = b.use_var(i)?;
                                let part = b.invoke("risky", &[at], Type::INT64)?;
                                add(b, sum, part)
                            },
                            |b, _| {
                                add(b, caught, one)?;
                                let at = b.use_var(i)?;
                                let nine = b.int(Type::INT64, 9)?;
                                let is_nine = b.intrinsic(Intrinsic::EqInt, &[at, nine])?;
                                // Throws out of the inner handler, with what it has assigned.
                                b.if_then(is_nine, |b| {
                                    let part = b.invoke("risky", &[nine], Type::INT64)?;
                                    add(b, sum, part)
                                })
                            },
                        )?;
                        let at = b.use_var(i)?;
                        let seven = b.int(Type::INT64, 7)?;
                        let is_seven = b.intrinsic(Intrinsic::EqInt, &[at, n])?;
                        let is_early = b.intrinsic(Intrinsic::EqInt, &[n, seven])?;
                        let leaves = b.intrinsic(Intrinsic::AndInt, &[is_seven, is_early])?;
                        b.if_then(leaves, |b| {
                            let sum = b.use_var(sum)?;
                            b.ret(&[sum])
                        })
                    },
                )
            },
            |b, _| add(b, caught, hundred),
        )?;
        let thousand = b.int(Type::INT64, 1000)?;
        let (sum, caught) = (b.use_var(sum)?, b.use_var(caught)?);
        let caught = b.intrinsic(Intrinsic::MulInt, &[caught, thousand])?;
        let result = b.intrinsic(Intrinsic::AddInt, &[sum, caught])?;
        b.ret(&[result])?;
        Ok(vec![risky(cx)?, b.finish()?])
    });
    same_everywhere(&program, "g", |n| {
        let (mut sum, mut caught) = (0, 0);
        for i in 1..=n {
            match i.checked_div(i % 3) {
                Some(part) => sum += part,
                None => {
                    caught += 1;
                    if i == 9 {
                        caught += 100;
                        break;
                    }
                }
            }
            if n == 7 && i == n {
                return sum;
            }
        }
        sum + 1000 * caught
    });
}

#[test]
fn both_ways_may_return() {
    let program = program(|cx| {
        let mut b = Builder::high(cx, "h", &[("n", Type::INT64)], Type::INT64);
        let (n, five) = (b.param(0)?, b.int(Type::INT64, 5)?);
        let is_small = b.intrinsic(Intrinsic::SltInt, &[n, five])?;
        b.if_else(is_small, |b| b.ret(&[n]), |b| b.ret(&[five]))?;
        assert!(b.has_ended() && b.ret(&[n]).is_err());
        Ok(vec![b.finish()?])
    });
    same_everywhere(&program, "h", |n| n.min(5));
}

#[test]
fn closures_and_structs_are_declared_and_called() {
    let program = program(|cx| {
        let pair =
            Record::new("Pair2").field("first", Type::INT64).field("second", Type::INT64).declare(cx)?;
        let cell = Record::new("Cell2").field("value", Type::INT64).mutable().declare(cx)?;
        let adder = Record::new("Adder2").field("by", pair).field("calls", cell).closure().declare(cx)?;

        let mut b = Builder::method_of(cx, adder, &[("x", Type::INT64)], Type::INT64);
        let (own, x, one) = (b.callee()?, b.param(0)?, b.int(Type::INT64, 1)?);
        let calls = b.getfield(own, "calls")?;
        let count = b.getfield(calls, "value")?;
        let count = b.intrinsic(Intrinsic::AddInt, &[count, one])?;
        b.setfield(calls, "value", count)?;
        let by = b.getfield(own, "by")?;
        let second = b.getfield(by, "second")?;
        let sum = b.intrinsic(Intrinsic::AddInt, &[x, second])?;
        b.ret(&[sum])?;
        let method = b.finish()?;

        let mut b = Builder::high(cx, "k", &[("n", Type::INT64)], Type::INT64);
        let (n, zero) = (b.param(0)?, b.int(Type::INT64, 0)?);
        let pair = b.new_object(pair, &[zero, n])?;
        let cell = b.new_object(cell, &[zero])?;
        let closure = b.new_object(adder, &[pair, cell])?;
        let once = b.call_closure(closure, &[n], Type::INT64)?;
        let twice = b.call_closure(closure, &[once], Type::INT64)?;
        let calls = b.getfield(cell, "value")?;
        let sum = b.intrinsic(Intrinsic::AddInt, &[twice, calls])?;
        b.ret(&[sum])?;
        Ok(vec![method, b.finish()?])
    });
    same_everywhere(&program, "k", |n| 3 * n + 2);
}

#[test]
fn conflicting_declarations_and_protections_are_refused() {
    let cx = Context::new();
    let point = || Record::new("Point3").field("x", Type::INT64);
    let ty = point().declare(&cx).unwrap();
    assert_eq!(point().declare(&cx).unwrap(), ty);
    let error = point().mutable().declare(&cx).unwrap_err();
    assert_eq!(error.to_string(), "`Point3` is already declared differently");
    assert!(Record::new("Twice3").field("x", Type::INT64).field("x", Type::INT64).declare(&cx).is_err());

    // A block is jumped to from inside of a protected block and from outside.
    let mut b = Builder::high(&cx, "p", &[("n", Type::INT64)], Type::INT64);
    let (inside, caught, shared) = (b.create_block(), b.create_block(), b.create_block());
    b.enter(inside, caught).unwrap();
    b.switch_to_block(caught).unwrap();
    b.goto(shared).unwrap();
    b.switch_to_block(inside).unwrap();
    assert!(matches!(b.goto(shared), Err(BuildError::Protected(block)) if block == shared));
    // The refused jumps have changed nothing: the block has no terminator, and the function can be finished.
    assert!(matches!(b.enter(shared, caught), Err(BuildError::Protected(block)) if block == shared));
    let (same, n) = (b.create_block(), b.param(0).unwrap());
    assert!(matches!(b.enter(same, same), Err(BuildError::Protected(block)) if block == same));
    assert!(!b.has_ended());
    b.unreachable().unwrap();
    b.switch_to_block(shared).unwrap();
    b.ret(&[n]).unwrap();
    b.switch_to_block(same).unwrap();
    b.unreachable().unwrap();
    b.finish().unwrap();

    // A handler reads what nothing assigns.
    let mut b = Builder::high(&cx, "q", &[("n", Type::INT64)], Type::INT64);
    let never = b.declare_var(Type::INT64);
    let read = b.try_catch(|_| Ok(()), |b, _| b.use_var(never).and_then(|value| b.ret(&[value])));
    read.unwrap();
    let n = b.param(0).unwrap();
    b.ret(&[n]).unwrap();
    assert!(matches!(b.finish(), Err(BuildError::NeverAssigned(variable)) if variable == never));
}
