//! Methods and calls that dispatch at run time from a seed, before and after `union-split` and `narrow`: the same value or exception.

use brolga_interp::{Interp, Options as Limits, SimMemory, Val};
use brolga_ir::build::{BuildError, Builder};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, FuncId, Module, Op, Type, Value};
use brolga_opt::{Cx, Options, parse_passes, run_passes};

const SEEDS: u64 = 500;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Types of parameters and of arguments: concrete ones, unions of these, and everything.
fn types(cx: &Context) -> Vec<Type> {
    let t = &cx.types;
    let number = t.nominal(t.find_decl(cx.names.intern("Signed")).unwrap(), &[]).unwrap();
    let mut all = vec![Type::INT64, Type::FLOAT64, Type::BOOL, Type::NOTHING, Type::INT8];
    all.push(t.union(&[Type::INT64, Type::FLOAT64]).unwrap());
    all.push(t.union(&[Type::NOTHING, Type::INT64]).unwrap());
    all.push(t.union(&[Type::BOOL, Type::FLOAT64, Type::INT8]).unwrap());
    all.extend([number, Type::ANY]);
    all
}

/// `f(…) = n`, with its own number.
fn method(cx: &Context, params: &[Type], n: i128) -> Result<Func, BuildError> {
    let params: Vec<(&str, Type)> = params.iter().map(|&ty| ("x", ty)).collect();
    let mut b = Builder::high(cx, "f", &params, Type::INT64);
    let n = b.int(Type::INT64, n)?;
    b.ret(&[n])?;
    b.finish()
}

/// One of several values, chosen by the bits of a number.
fn argument(
    b: &mut Builder<'_>,
    bits: Value,
    from: u32,
    ty: Type,
    cx: &Context,
) -> Result<Value, BuildError> {
    let candidates =
        [b.int(Type::INT64, 7)?, b.float64(0.5), b.bool(true), b.nothing(), b.int(Type::INT8, 3)?];
    let fitting: Vec<Value> = candidates
        .into_iter()
        .filter(|&v| b.type_of(v).is_ok_and(|own| cx.types.is_subtype(own, ty)))
        .collect();
    let mut value = b.value(Op::Copy, &[fitting[0]], ty)?;
    for (n, &other) in fitting.iter().enumerate().skip(1) {
        let (shift, one) = (b.int(Type::INT64, i128::from(from) + n as i128)?, b.int(Type::INT64, 1)?);
        let shifted = b.intrinsic(Intrinsic::LshrInt, &[bits, shift])?;
        let bit = b.intrinsic(Intrinsic::AndInt, &[shifted, one])?;
        let set = b.intrinsic(Intrinsic::EqInt, &[bit, one])?;
        value = b.builtin(Builtin::Ifelse, &[set, other, value], ty)?;
    }
    Ok(value)
}

fn caller(cx: &Context, dice: &mut Dice, arity: usize) -> Result<Func, BuildError> {
    let mut b = Builder::high(cx, "g", &[("bits", Type::INT64)], Type::ANY);
    let bits = b.param(0)?;
    let all = types(cx);
    let mut sum = b.int(Type::INT64, 0)?;
    for _ in 0..1 + dice.below(2) {
        let mut args = Vec::new();
        for n in 0..arity {
            let ty = all[dice.below(all.len() as u64) as usize];
            args.push(argument(&mut b, bits, 5 * n as u32, ty, cx)?);
        }
        let f = b.function_object("f");
        let any = b.call(f, &args, Type::ANY)?;
        let int = b.type_value(Type::INT64);
        let got = b.builtin(Builtin::Typeassert, &[any, int], Type::INT64)?;
        let ten = b.int(Type::INT64, 10)?;
        let shifted = b.intrinsic(Intrinsic::MulInt, &[sum, ten])?;
        sum = b.intrinsic(Intrinsic::AddInt, &[shifted, got])?;
    }
    b.ret(&[sum])?;
    b.finish()
}

fn values(module: &Module, id: FuncId) -> Vec<String> {
    let bits = (0..64u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    bits.map(|bits| {
        let mut interp = Interp::new(module, Limits::default(), Box::new(SimMemory::default()));
        let arg = Val::bits(&module.cx.types, Type::INT64, u128::from(bits));
        match interp.call(id, &[arg]) {
            Ok(value) => format!("{value:?}"),
            Err(_) => "throws".to_owned(),
        }
    })
    .collect()
}

#[test]
fn calls_reach_the_methods_that_they_would_have_reached() {
    let (mut calls, mut left, mut returned) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let cx = Context::new();
        let mut module = Module::new(cx.clone());
        let arity = 1 + dice.below(2) as usize;
        let all = types(&cx);
        for n in 0..1 + dice.below(4) {
            let params: Vec<Type> = (0..arity).map(|_| all[dice.below(all.len() as u64) as usize]).collect();
            // A second method for the same types is refused, and one is enough.
            let _ = module.add_func(method(&cx, &params, n as i128 + 1).unwrap());
        }
        let id = module.add_func(caller(&cx, &mut dice, arity).unwrap()).unwrap();
        let expected = values(&module, id);
        returned += expected.iter().filter(|v| *v != "throws").count();
        let count = |func: &Func| {
            func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::Call).count()
        };
        calls += count(&module[id]);
        for (list, limit) in [
            ("union-split", None),
            ("union-split", Some(1)),
            ("union-split,inline,inst-simplify,simplify-cfg", None),
            ("union-split,inline,simplify-cfg,narrow", None),
            ("union-split,narrow,inst-simplify,dce", None),
        ] {
            let mut changed = module.clone();
            let options = Options { verify_each: true, ..Options::default() };
            let passes = parse_passes(list).unwrap();
            let done = run_passes(&changed, module[id].clone(), &passes, &options, &mut Cx::new(limit));
            changed[id] = done.unwrap_or_else(|error| panic!("seed {seed}, {list}: {error}")).0;
            assert_eq!(values(&changed, id), expected, "seed {seed}, {list}");
            if list == "union-split" && limit.is_none() {
                left += count(&changed[id]);
            }
        }
    }
    assert!(left * 10 < calls * 9, "{left} of {calls} calls are left");
    assert!(returned > 1000, "{returned} calls returned");
}
