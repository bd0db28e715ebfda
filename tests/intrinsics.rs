//! Every scalar intrinsic at every width, on the edges of its operands: every engine gives the value that is defined.
//!
//! The expected values come from `tests/expected/`, which computes them with Rust's own arithmetic. A function is made for
//! each intrinsic and each list of operand types, and called on all combinations of edge values.
//!
//! Constant operands take other paths through the compiler, so there are three more functions for
//! two operands: with one argument for both, with each edge value as second operand, and as first.

mod expected;

use std::sync::Arc;

use brolga::OptLevel;
use brolga_fuzz::check::{Engine, HighInterpreter, LowInterpreter, Native, Outcome, Passes, show};
use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::module::Literal;
use brolga_ir::{Const, Context, Func, FuncId, Level, Module, Op, Param, Signature, Type};
use brolga_jit::{Jit, JitOptions};
use brolga_runtime::{Runtime, RuntimeOptions};
use expected::{Expected, Kind, convert, edges, expected};

const SIGNED: [Type; 5] = [Type::INT8, Type::INT16, Type::INT32, Type::INT64, Type::INT128];
const UNSIGNED: [Type; 5] = [Type::UINT8, Type::UINT16, Type::UINT32, Type::UINT64, Type::UINT128];
const FLOATS: [Type; 3] = [Type::FLOAT16, Type::FLOAT32, Type::FLOAT64];

/// Where the operands of a function's intrinsic come from.
#[derive(Clone, Copy)]
enum Source {
    /// An argument for each.
    Arguments,
    /// One argument for both.
    OneArgument,
    /// This operand is a constant, the other the argument.
    Constant(usize, u128),
}

/// An intrinsic at operand types and a result type.
struct Instance {
    op: Intrinsic,
    operands: Vec<Type>,
    result: Type,
}

fn kind(cx: &Context, ty: Type) -> Kind {
    let bits = cx.types.primitive(ty).map_or(0, |(bits, _)| u32::from(bits));
    match ty {
        Type::BOOL => Kind::Bool,
        _ if FLOATS.contains(&ty) => Kind::Float(bits),
        _ => Kind::Int(bits),
    }
}

/// All instances of an intrinsic; none for those that are no functions of scalars.
fn instances(cx: &Context, op: Intrinsic) -> Vec<Instance> {
    let ints: Vec<Type> = SIGNED.into_iter().chain(UNSIGNED).collect();
    let with_bool: Vec<Type> = ints.iter().copied().chain([Type::BOOL]).collect();
    let instance = |operands: Vec<Type>, result: Type| Instance { op, operands, result };
    let same = |types: &[Type], count: usize, result: Option<Type>| -> Vec<Instance> {
        types.iter().map(|&ty| instance(vec![ty; count], result.unwrap_or(ty))).collect()
    };
    let pairs = |from: &[Type], to: &[Type], keep: fn(u32, u32) -> bool| -> Vec<Instance> {
        // `Bool` has one bit that counts.
        let width = |ty: Type| if ty == Type::BOOL { 1 } else { kind(cx, ty).bits() };
        let all = from.iter().flat_map(|&f| to.iter().map(move |&t| (f, t)));
        all.filter(|&(f, t)| keep(width(f), width(t))).map(|(f, t)| instance(vec![f], t)).collect()
    };
    match op.shape() {
        Shape::IntUnary if op == Intrinsic::NotInt => same(&with_bool, 1, None),
        Shape::IntUnary => same(&ints, 1, None),
        Shape::IntBinary if matches!(op, Intrinsic::AndInt | Intrinsic::OrInt | Intrinsic::XorInt) => {
            same(&with_bool, 2, None)
        }
        Shape::IntBinary | Shape::IntDivide => same(&ints, 2, None),
        Shape::Shift => {
            let all = ints.iter().flat_map(|&x| UNSIGNED.iter().map(move |&count| (x, count)));
            all.map(|(x, count)| instance(vec![x, count], x)).collect()
        }
        Shape::IntCompare => same(&with_bool, 2, Some(Type::BOOL)),
        Shape::CheckedPair => {
            let pair = |ty: Type| cx.types.tuple(&[ty, Type::BOOL]).expect("a pair");
            ints.iter().map(|&ty| instance(vec![ty; 2], pair(ty))).collect()
        }
        Shape::FloatUnary => same(&FLOATS, 1, None),
        Shape::FloatBinary => same(&FLOATS, 2, None),
        Shape::FloatTernary => same(&FLOATS, 3, None),
        Shape::FloatCompare => same(&FLOATS, 2, Some(Type::BOOL)),
        Shape::Convert(conversion) => match conversion {
            Convert::Bits => {
                let all = [&ints[..], &FLOATS[..]].concat();
                pairs(&all, &all, |f, t| f == t)
            }
            Convert::SignExtend | Convert::ZeroExtend => pairs(&with_bool, &ints, |f, t| f < t),
            Convert::Truncate => pairs(&ints, &with_bool, |f, t| f > t),
            Convert::FloatToSigned => pairs(&FLOATS, &SIGNED, |_, _| true),
            Convert::FloatToUnsigned => pairs(&FLOATS, &UNSIGNED, |_, _| true),
            Convert::SignedToFloat | Convert::UnsignedToFloat => pairs(&ints, &FLOATS, |_, _| true),
            Convert::FloatTruncate => pairs(&FLOATS, &FLOATS, |f, t| f > t),
            Convert::FloatExtend => pairs(&FLOATS, &FLOATS, |f, t| f < t),
        },
        _ => Vec::new(),
    }
}

/// A function that is one intrinsic.
fn function(cx: &Context, index: usize, instance: &Instance, source: Source) -> Func {
    let name = cx.names.intern(&format!("{}_{index}", instance.op));
    let object = Param { name: None, ty: cx.types.function(name) };
    let taken = match source {
        Source::Arguments => &instance.operands[..],
        Source::OneArgument => &instance.operands[..1],
        Source::Constant(which, _) => &instance.operands[1 - which..2 - which],
    };
    let params = taken.iter().map(|&ty| Param { name: None, ty });
    let sig = Signature {
        params: std::iter::once(object).chain(params).collect(),
        results: vec![instance.result],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(name, Level::High, sig);
    let block = func.make_block();
    func.append_block(block);
    let mut operands = func.params()[1..].to_vec();
    match source {
        Source::Arguments => {}
        Source::OneArgument => operands.push(operands[0]),
        Source::Constant(which, bits) => {
            let constant = func.bits(&cx.types, instance.operands[which], bits);
            operands.insert(which, constant);
        }
    }
    let inst = func.make_inst(Op::Intrinsic(instance.op), &operands, &[], &[instance.result]);
    func.append_inst(inst, block);
    let value = func.result(inst).expect("one result");
    let ret = func.make_inst(Op::Return, &[value], &[], &[]);
    func.append_inst(ret, block);
    func
}

/// All lists of one value from each of these.
fn combinations(choices: &[Vec<u128>]) -> Vec<Vec<u128>> {
    choices.iter().fold(vec![Vec::new()], |lists, values| {
        lists.iter().flat_map(|list| values.iter().map(move |&v| [&list[..], &[v]].concat())).collect()
    })
}

/// The edges of a shift count: around the width of what is shifted, and far beyond.
fn counts(cx: &Context, shifted: Type, count: Type) -> Vec<u128> {
    let bits = u128::from(kind(cx, shifted).bits());
    let mask = u128::MAX >> (128 - kind(cx, count).bits());
    let mut all = vec![0, 1, bits - 1, bits, bits + 1, 2 * bits, 255, 256, 1 << 32, 1 << 64, mask, mask - 1];
    all.retain(|&c| c <= mask);
    all
}

fn want(cx: &Context, instance: &Instance, args: &[u128]) -> Expected {
    let name = instance.op.name();
    let first = kind(cx, instance.operands[0]);
    let value = match instance.op.shape() {
        Shape::Convert(_) => convert(name, first, kind(cx, instance.result), args[0]),
        _ => expected(name, first, args),
    };
    value.unwrap_or_else(|| panic!("there is no expected value of `{name}`"))
}

fn holds(cx: &Context, result: Type, want: &Expected, got: &Outcome) -> bool {
    let float_bits = kind(cx, result).bits();
    let infinity = match float_bits {
        16 => 0x7c00,
        32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000u128,
    };
    let value = |got: &Outcome| match got {
        Outcome::Returned(Literal::Const(Const::Bits { ty, bits })) if *ty == result => Some(*bits),
        _ => None,
    };
    let sign = 1u128 << (float_bits.max(1) - 1);
    match want {
        Expected::Open => value(got).is_some(),
        Expected::Bits(bits) => value(got) == Some(*bits),
        Expected::Either(a, b) => value(got) == Some(*a) || value(got) == Some(*b),
        Expected::Nan => value(got).is_some_and(|bits| bits & !sign > infinity),
        Expected::Zero => value(got).is_some_and(|bits| bits & !sign == 0),
        Expected::Throws => matches!(got, Outcome::Threw { kind, .. } if kind == "DivideError"),
        Expected::Pair(bits, overflow) => match got {
            Outcome::Returned(Literal::Aggregate { fields, .. }) => match fields.as_slice() {
                [
                    Literal::Const(Const::Bits { bits: b, .. }),
                    Literal::Const(Const::Bits { bits: o, .. }),
                ] => b == bits && *o == u128::from(*overflow),
                _ => false,
            },
            _ => false,
        },
    }
}

/// The ways to make a function of an instance.
fn sources(choices: &[Vec<u128>]) -> Vec<Source> {
    let mut all = vec![Source::Arguments];
    if let [first, second] = choices {
        if first == second {
            all.push(Source::OneArgument);
        }
        all.extend(first.iter().map(|&bits| Source::Constant(0, bits)));
        all.extend(second.iter().map(|&bits| Source::Constant(1, bits)));
    }
    all
}

/// The values that each operand takes.
fn choices(cx: &Context, instance: &Instance) -> Vec<Vec<u128>> {
    let mut choices: Vec<Vec<u128>> = instance.operands.iter().map(|&ty| edges(kind(cx, ty))).collect();
    match (instance.op.shape(), instance.operands.as_slice()) {
        (Shape::Shift, [shifted, count]) => choices[1] = counts(cx, *shifted, *count),
        (Shape::FloatTernary, _) => {
            // Thirty values cubed are too many: every second one, each operand with another half.
            for (index, values) in choices.iter_mut().enumerate() {
                *values = values.iter().copied().skip(index % 2).step_by(2).collect();
            }
        }
        _ => {}
    }
    choices
}

/// The operands of all calls of a function, and the arguments that it is given for them.
fn calls(choices: &[Vec<u128>], source: Source) -> Vec<(Vec<u128>, Vec<usize>)> {
    match source {
        Source::Arguments => {
            let all = (0..choices.len()).collect::<Vec<_>>();
            combinations(choices).into_iter().map(|operands| (operands, all.clone())).collect()
        }
        Source::OneArgument => choices[0].iter().map(|&x| (vec![x, x], vec![0])).collect(),
        Source::Constant(which, bits) => choices[1 - which]
            .iter()
            .map(|&x| (if which == 0 { vec![bits, x] } else { vec![x, bits] }, vec![1 - which]))
            .collect(),
    }
}

/// Calls every instance of the intrinsics that `choose` picks, in all engines.
fn check(engines: &[&dyn Engine], choose: impl Fn(Shape) -> bool) {
    let cx: Arc<Context> = Context::new();
    let mut module = Module::new(cx.clone());
    let mut made: Vec<(FuncId, Instance, Source)> = Vec::new();
    for &op in Intrinsic::ALL.iter().filter(|op| choose(op.shape())) {
        for instance in instances(&cx, op) {
            for source in sources(&choices(&cx, &instance)) {
                let func = function(&cx, made.len(), &instance, source);
                let id = module.add_func(func).expect("a new function");
                let Instance { op, ref operands, result } = instance;
                made.push((id, Instance { op, operands: operands.clone(), result }, source));
            }
        }
    }
    assert!(!made.is_empty());
    let mut wrong = Vec::new();
    for engine in engines {
        let mut loaded = engine.load(&module).unwrap_or_else(|why| panic!("{}: {why}", engine.name()));
        for (id, instance, source) in &made {
            for (operands, taken) in calls(&choices(&cx, instance), *source) {
                let literal = |&which: &usize| {
                    Literal::Const(Const::Bits { ty: instance.operands[which], bits: operands[which] })
                };
                let want = want(&cx, instance, &operands);
                let got = loaded.call(*id, &taken.iter().map(literal).collect::<Vec<_>>());
                if !holds(&cx, instance.result, &want, &got) {
                    let all =
                        (0..operands.len()).map(|n| show(&literal(&n), &cx)).collect::<Vec<_>>().join(", ");
                    let (name, got) = (engine.name(), got.display(&cx).to_string());
                    let result = cx.types.display(instance.result);
                    let op = instance.op;
                    wrong.push(format!(
                        "{name}: {op}({all})::{result} returns {got}, not {want:x?} (arguments {taken:?})"
                    ));
                }
            }
        }
    }
    let few: Vec<&str> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} calls give a wrong value:\n{}", wrong.len(), few.join("\n"));
}

fn check_all(choose: impl Fn(Shape) -> bool) {
    let jit = Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default()).expect("a JIT");
    let native = |level| Native { jit: jit.clone(), passes: Passes::of(level) };
    let engines: [&dyn Engine; 4] = [
        &HighInterpreter { max_steps: 100, passes: None },
        &LowInterpreter { max_steps: 1000, passes: None, alone: None },
        &native(OptLevel::O0),
        &native(OptLevel::O2),
    ];
    check(&engines, choose);
}

#[test]
fn integer_arithmetic() {
    check_all(|shape| matches!(shape, Shape::IntUnary | Shape::IntBinary | Shape::IntDivide));
}

#[test]
fn shifts() {
    check_all(|shape| shape == Shape::Shift);
}

#[test]
fn integer_comparisons_and_checked_operations() {
    check_all(|shape| matches!(shape, Shape::IntCompare | Shape::CheckedPair));
}

#[test]
fn float_arithmetic() {
    check_all(|shape| matches!(shape, Shape::FloatUnary | Shape::FloatBinary | Shape::FloatCompare));
}

#[test]
fn fused_and_unfused_multiplication_with_addition() {
    check_all(|shape| shape == Shape::FloatTernary);
}

#[test]
fn conversions() {
    check_all(|shape| matches!(shape, Shape::Convert(_)));
}

#[test]
fn every_scalar_intrinsic_belongs_to_a_test() {
    let cx = Context::new();
    for &op in Intrinsic::ALL {
        let is_scalar = op.is_pure() && !matches!(op.shape(), Shape::Query | Shape::PtrOffset);
        assert_eq!(!instances(&cx, op).is_empty(), is_scalar, "{op}");
    }
}

/// A test finds everything that a list can lose: the manual names everything that the tables hold.
#[test]
fn the_manual_names_every_intrinsic_builtin_and_function_of_base() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ir.md");
    let text = std::fs::read_to_string(path).expect("the manual");
    let section = |title: &str| {
        let start = text.find(&format!("\n## {title}\n")).expect("the section");
        let rest = &text[start + 1..];
        rest.find("\n## ").map_or(rest, |end| &rest[..end])
    };
    let (intrinsics, builtins) = (section("Intrinsics"), section("Builtins"));
    let names =
        |text: &str, name: &str| text.contains(&format!("`{name}`")) || text.contains(&format!("`{name}("));
    for &op in Intrinsic::ALL {
        assert!(names(intrinsics, op.name()), "`{op}` is not in the section Intrinsics");
    }
    for &builtin in Builtin::ALL {
        assert!(names(builtins, builtin.name()), "`{builtin}` is not in the section Builtins");
    }
    for &function in BaseFn::ALL {
        assert!(names(builtins, function.name()), "`{function}` is not in the section Builtins");
    }
}
