//! The rules of `inst-simplify`, and the ranges of `correlated`, against the reference semantics of scalars.
//!
//! ```text
//! shape    outer(inner(x, c), d), outer(inner(x, y), x), …      over all operations and a set of constants
//!   └─ one low function ── inst-simplify ──► another
//!         └──────── for all x, y of 8 bits, or edge values of wider types and floats ────────┘   the same results, the same throws
//! ```
//!
//! Shapes that no rule changes are not run. So that a rule that no shape reaches is noticed, each family states how
//! many shapes it must have changed at least.

use std::sync::Arc;

use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::scalar::{Outcome, Scalar, ScalarType, eval};
use brolga_ir::{Context, Func, Level, LowType, Module, Op, Param, Signature, Type, Value};
use brolga_opt::{Cx, Options, Pass, pass_named, run_passes};
use cranelift_entity::SecondaryMap;

/// An operand of a shape.
#[derive(Clone, Debug)]
enum Expr {
    /// A parameter, by its number.
    Param(usize),
    Const(u128),
    Apply(Intrinsic, Vec<Expr>),
    /// To a type.
    Convert(Intrinsic, Type, Box<Expr>),
    Choose(Box<[Expr; 3]>),
}

use Expr::{Apply, Choose, Const, Convert, Param as Arg};

struct Bench {
    pass: &'static Pass,
    cx: Arc<Context>,
    module: Module,
    options: Options,
}

impl Bench {
    fn new() -> Bench {
        Bench::of("inst-simplify")
    }

    fn of(pass: &str) -> Bench {
        let pass = pass_named(pass).unwrap();
        let cx = Context::new();
        Bench {
            pass,
            module: Module::new(cx.clone()),
            cx,
            options: Options { verify_each: true, ..Options::default() },
        }
    }

    /// The function that computes a shape from two parameters of a type.
    fn func(&self, ty: Type, expr: &Expr) -> Func {
        let params = vec![Param { name: None, ty }; 2];
        let sig = Signature { params, results: Vec::new(), vararg: false, ..Signature::default() };
        let mut func = Func::new(self.cx.names.intern("f"), Level::Low, sig);
        let block = func.make_block();
        func.append_block(block);
        let results = self.place(&mut func, ty, expr);
        func.sig.results = results.iter().map(|&v| func.ty(v)).collect();
        let end = func.make_inst(Op::Return, &results, &[], &[]);
        func.append_inst(end, block);
        func
    }

    fn place(&self, func: &mut Func, ty: Type, expr: &Expr) -> Vec<Value> {
        let (op, args, results) = match expr {
            Arg(n) => return vec![func.params()[*n]],
            Const(bits) => return vec![func.bits(&self.cx.types, ty, *bits)],
            Apply(op, args) => {
                let args: Vec<Value> = args.iter().map(|e| self.place(func, ty, e)[0]).collect();
                let of = func.ty(args[0]);
                let results = match op.shape() {
                    Shape::IntCompare | Shape::FloatCompare => vec![Type::I8],
                    Shape::CheckedPair => vec![of, Type::I8],
                    _ => vec![of],
                };
                (Op::Intrinsic(*op), args, results)
            }
            Convert(op, to, of) => (Op::Intrinsic(*op), self.place(func, ty, of), vec![*to]),
            Choose(parts) => {
                let args: Vec<Value> = parts.iter().map(|e| self.place(func, ty, e)[0]).collect();
                let of = func.ty(args[1]);
                (Op::Builtin(Builtin::Ifelse), args, vec![of])
            }
        };
        let inst = func.make_inst(op, &args, &[], &results);
        let block = func.entry().unwrap();
        func.append_inst(inst, block);
        func.results(inst).collect()
    }

    /// The result of a straight line of scalar operations; `None` if it throws.
    fn run(&self, func: &Func, args: &[Scalar]) -> Option<Vec<Scalar>> {
        let mut known: SecondaryMap<Value, Option<Scalar>> = SecondaryMap::new();
        for (&param, &arg) in func.params().iter().zip(args) {
            known[param] = Some(arg);
        }
        let block = func.entry().unwrap();
        for inst in func.block_insts(block) {
            let operands: Vec<Scalar> = func
                .args(inst)
                .iter()
                .map(|&v| {
                    known[v].unwrap_or_else(|| Scalar::new(scalar_type(func.ty(v)), func.as_bits(v).unwrap()))
                })
                .collect();
            let mut results = func.results(inst);
            let outcome = match func.op(inst) {
                Op::Return => return Some(operands),
                Op::Builtin(Builtin::Ifelse) => {
                    Outcome::One(if operands[0].bits() != 0 { operands[1] } else { operands[2] })
                }
                Op::Copy => Outcome::One(operands[0]),
                Op::Intrinsic(op) => {
                    let ty = scalar_type(func.ty(func.results(inst).next().unwrap()));
                    eval(op, ty, &operands).ok()?
                }
                op => panic!("{op:?} in a straight line of scalars"),
            };
            match outcome {
                Outcome::One(value) => known[results.next().unwrap()] = Some(value),
                Outcome::Pair(value, flag) => {
                    known[results.next().unwrap()] = Some(value);
                    known[results.next().unwrap()] = Some(Scalar::int(8, i128::from(flag)));
                }
            }
        }
        unreachable!("every block returns")
    }

    /// True if a rule changed the shape. Then it must mean the same for all pairs of these values.
    fn check(
        &self,
        ty: Type,
        expr: &Expr,
        xs: &[u128],
        ys: &[u128],
        same: fn(Scalar, Scalar) -> bool,
    ) -> bool {
        let before = self.func(ty, expr);
        let done = run_passes(&self.module, before.clone(), &[self.pass], &self.options, &mut Cx::default());
        let (after, report) = done.unwrap_or_else(|error| panic!("{expr:?}: {error}"));
        if report.rewrites() == 0 {
            return false;
        }
        let scalar = scalar_type(ty);
        let two = uses_second(expr);
        for &x in xs {
            for &y in if two { ys } else { &ys[..1] } {
                let args = [Scalar::new(scalar, x), Scalar::new(scalar, y)];
                let (old, new) = (self.run(&before, &args), self.run(&after, &args));
                let agree = match (&old, &new) {
                    (Some(old), Some(new)) => old.iter().zip(new).all(|(&a, &b)| same(a, b)),
                    (None, None) => true,
                    _ => false,
                };
                assert!(agree, "{expr:?} of {x:#x}, {y:#x}: {old:?} before, {new:?} after");
            }
        }
        true
    }
}

fn uses_second(expr: &Expr) -> bool {
    match expr {
        Arg(n) => *n == 1,
        Const(_) => false,
        Apply(_, args) => args.iter().any(uses_second),
        Convert(_, _, of) => uses_second(of),
        Choose(parts) => parts.iter().any(uses_second),
    }
}

fn scalar_type(ty: Type) -> ScalarType {
    match ty.as_low().unwrap() {
        LowType::F16 => ScalarType::F16,
        LowType::F32 => ScalarType::F32,
        LowType::F64 => ScalarType::F64,
        int => ScalarType::Int { bits: int.bits() as u16 },
    }
}

fn of_shape(shapes: &[Shape]) -> Vec<Intrinsic> {
    Intrinsic::ALL.iter().copied().filter(|op| shapes.contains(&op.shape()) && op.is_pure()).collect()
}

fn int_unary() -> Vec<Intrinsic> {
    of_shape(&[Shape::IntUnary])
}

fn int_binary() -> Vec<Intrinsic> {
    let shapes = [Shape::IntBinary, Shape::IntDivide, Shape::Shift, Shape::IntCompare, Shape::CheckedPair];
    Intrinsic::ALL.iter().copied().filter(|op| shapes.contains(&op.shape())).collect()
}

/// Whether the first result has the type of the operands.
fn keeps_type(op: Intrinsic) -> bool {
    !matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare)
}

fn apply(op: Intrinsic, args: impl IntoIterator<Item = Expr>) -> Expr {
    Apply(op, args.into_iter().collect())
}

/// Operations on one and two operands with the operands in all positions, one level deep.
fn shallow(unary: &[Intrinsic], binary: &[Intrinsic], constants: &[u128]) -> Vec<Expr> {
    let mut all: Vec<Expr> = unary.iter().map(|&op| apply(op, [Arg(0)])).collect();
    for &op in binary {
        all.extend([apply(op, [Arg(0), Arg(1)]), apply(op, [Arg(1), Arg(0)]), apply(op, [Arg(0), Arg(0)])]);
        for &c in constants {
            all.extend([apply(op, [Arg(0), Const(c)]), apply(op, [Const(c), Arg(0)])]);
        }
    }
    all
}

/// Two levels: every operation of [`shallow`] with one of them as an operand.
fn deep(unary: &[Intrinsic], binary: &[Intrinsic], constants: &[u128]) -> Vec<Expr> {
    let mut all = Vec::new();
    let keeps = |e: &Expr| matches!(e, Apply(op, _) if keeps_type(*op));
    for inner in shallow(unary, binary, constants).into_iter().filter(keeps) {
        all.extend(unary.iter().map(|&op| apply(op, [inner.clone()])));
        for &op in binary {
            for other in [Arg(0), Arg(1)].into_iter().chain(constants.iter().map(|&c| Const(c))) {
                all.push(apply(op, [inner.clone(), other.clone()]));
                all.push(apply(op, [other, inner.clone()]));
            }
        }
    }
    all
}

fn bitwise(a: Scalar, b: Scalar) -> bool {
    a == b
}

/// The edge values of an integer type.
fn edges(bits: u32) -> Vec<u128> {
    let ones = u128::MAX >> (128 - bits);
    let top = 1 << (bits - 1);
    vec![0, 1, 2, 3, 7, 8, u128::from(bits) - 1, u128::from(bits), top - 1, top, top + 1, ones - 1, ones]
}

#[test]
fn integers_of_8_bits() {
    let bench = Bench::new();
    let all: Vec<u128> = (0..256).collect();
    let (unary, binary) = (int_unary(), int_binary());
    let mut changed = 0;
    // One level: every constant.
    for expr in shallow(&unary, &binary, &all) {
        changed += usize::from(bench.check(Type::I8, &expr, &all, &all, bitwise));
    }
    assert!(changed > 500, "{changed} shapes changed");
}

#[test]
fn integers_of_8_bits_two_levels() {
    let bench = Bench::new();
    let all: Vec<u128> = (0..256).collect();
    let (unary, binary) = (int_unary(), int_binary());
    let mut changed = 0;
    for expr in deep(&unary, &binary, &[0, 1, 5, 0x80, 0xff]) {
        // All values of one parameter; pairs of all values were run one level up.
        let some = [0, 1, 2, 7, 127, 128, 255];
        changed += usize::from(bench.check(Type::I8, &expr, &all, &some, bitwise));
    }
    assert!(changed > 2000, "{changed} shapes changed");
}

#[test]
fn ranges_of_8_bits() {
    let bench = Bench::of("correlated");
    let all: Vec<u128> = (0..256).collect();
    let some = [0, 1, 7, 127, 128, 255];
    let mut changed = 0;
    // Values with a range are the left operands of these; the conditions that the range decides use them.
    for expr in deep(&int_unary(), &int_binary(), &[0, 1, 3, 0x7f, 0x80, 0xff]) {
        changed += usize::from(bench.check(Type::I8, &expr, &all, &some, bitwise));
    }
    assert!(changed > 500, "{changed} shapes changed");
}

/// The operations of which `reassociate` makes chains, with all leaves in all positions, three levels deep.
fn chains(families: &[&[Intrinsic]], constants: &[u128]) -> Vec<Expr> {
    let leaves: Vec<Expr> = [Arg(0), Arg(1)].into_iter().chain(constants.iter().map(|&c| Const(c))).collect();
    let mut all = Vec::new();
    for family in families {
        let of = |shape| family.iter().copied().filter(move |op: &Intrinsic| op.shape() == shape);
        let unary: Vec<Intrinsic> = of(Shape::IntUnary).chain(of(Shape::FloatUnary)).collect();
        let binary: Vec<Intrinsic> = of(Shape::IntBinary).chain(of(Shape::FloatBinary)).collect();
        let mut pairs: Vec<Expr> = unary.iter().map(|&op| apply(op, [Arg(0)])).collect();
        for &op in &binary {
            for a in &leaves {
                pairs.extend(leaves.iter().map(|b| apply(op, [a.clone(), b.clone()])));
            }
        }
        for (a, b) in pairs.iter().flat_map(|a| pairs.iter().map(move |b| (a, b))) {
            let joined: Vec<Expr> = binary.iter().map(|&op| apply(op, [a.clone(), b.clone()])).collect();
            all.extend(unary.iter().flat_map(|&op| joined.iter().map(move |e| apply(op, [e.clone()]))));
            all.extend(joined);
        }
    }
    all
}

#[test]
fn chains_of_8_bits() {
    use Intrinsic::{AddInt, AndInt, MulInt, NegInt, OrInt, SubInt, XorInt};
    let bench = Bench::of("reassociate");
    let all: Vec<u128> = (0..256).collect();
    let mut changed = 0;
    let families: [&[Intrinsic]; 5] = [&[AddInt, SubInt, NegInt], &[MulInt], &[AndInt], &[OrInt], &[XorInt]];
    for expr in chains(&families, &[1, 0x83]) {
        changed += usize::from(bench.check(Type::I8, &expr, &all, &[0, 1, 7, 127, 128, 255], bitwise));
    }
    assert!(changed > 1500, "{changed} chains changed");
    let wide = edges(64);
    for expr in chains(&families, &[3, u128::from(u64::MAX)]) {
        changed += usize::from(bench.check(Type::I64, &expr, &wide, &wide, bitwise));
    }
    assert!(changed > 3000, "{changed} chains changed");
}

#[test]
fn chains_of_fast_floats_as_real_numbers() {
    use Intrinsic::{AddFloatFast, MulFloatFast, NegFloatFast, SubFloatFast};
    let bench = Bench::of("reassociate");
    // Nothing is rounded.
    let bits = |values: &[f64]| -> Vec<u128> { values.iter().map(|v| u128::from(v.to_bits())).collect() };
    let values = bits(&[1.0, -2.0, 4.0, 0.5]);
    let same = |a: Scalar, b: Scalar| a.to_f64() == b.to_f64();
    let mut changed = 0;
    for expr in chains(&[&[AddFloatFast, SubFloatFast, NegFloatFast], &[MulFloatFast]], &bits(&[2.0, 0.25])) {
        changed += usize::from(bench.check(Type::F64, &expr, &values, &values, same));
    }
    assert!(changed > 500, "{changed} chains changed");
}

#[test]
fn halves_of_floats_at_their_edges() {
    let bench = Bench::of("demote-float16");
    let (unary, binary) =
        (of_shape(&[Shape::FloatUnary]), of_shape(&[Shape::FloatBinary, Shape::FloatCompare]));
    // Besides the edges, products and sums near the midpoint of two numbers.
    let mut values = floats(ScalarType::F16);
    values.extend([0x3c01, 0x3bff, 0x3555, 0x1001, 0x0401, 0x7801, 0xb400, 0x8bff]);
    let mut changed = 0;
    for expr in shallow(&unary, &binary, &[0x3c00, 0x0001, 0x7c00]) {
        changed += usize::from(bench.check(Type::F16, &expr, &values, &values, Scalar::agrees));
    }
    for expr in deep(&unary, &binary, &[0x3555]) {
        changed += usize::from(bench.check(Type::F16, &expr, &values, &values[8..16], Scalar::agrees));
    }
    assert!(changed > 1000, "{changed} shapes changed");
}

#[test]
fn comparisons_as_truth_values() {
    let bench = Bench::new();
    let all: Vec<u128> = (0..256).collect();
    let compare = of_shape(&[Shape::IntCompare]);
    let logic = [Intrinsic::AndInt, Intrinsic::OrInt, Intrinsic::XorInt, Intrinsic::EqInt, Intrinsic::NeInt];
    let some: Vec<u128> = (0..256).step_by(15).collect();
    let mut changed = 0;
    for inner in shallow(&[], &compare, &[0, 1, 0x7f, 0x80, 0xff]) {
        let mut shapes: Vec<Expr> = vec![
            Choose(Box::new([inner.clone(), Const(1), Const(0)])),
            Choose(Box::new([inner.clone(), Const(0), Const(1)])),
            Choose(Box::new([inner.clone(), Arg(0), Arg(1)])),
            Choose(Box::new([inner.clone(), Arg(0), Arg(0)])),
            Choose(Box::new([apply(Intrinsic::XorInt, [inner.clone(), Const(1)]), Arg(0), Arg(1)])),
        ];
        for op in logic {
            shapes.extend([0, 1].map(|c| apply(op, [inner.clone(), Const(c)])));
        }
        for expr in shapes {
            changed += usize::from(bench.check(Type::I8, &expr, &all, &some, bitwise));
        }
    }
    assert!(changed > 100, "{changed} shapes changed");
}

#[test]
fn wider_integers_at_their_edges() {
    let bench = Bench::new();
    let (unary, binary) = (int_unary(), int_binary());
    for (ty, bits) in [(Type::I16, 16), (Type::I32, 32), (Type::I64, 64), (Type::I128, 128)] {
        let edges = edges(bits);
        let mut changed = 0;
        for expr in shallow(&unary, &binary, &edges) {
            changed += usize::from(bench.check(ty, &expr, &edges, &edges, bitwise));
        }
        let few = [1, edges[9], edges[12]];
        for expr in deep(&unary, &binary, &few) {
            changed += usize::from(bench.check(ty, &expr, &edges, &edges, bitwise));
        }
        assert!(changed > 500, "{bits} bits: {changed} shapes changed");
    }
}

#[test]
fn conversions() {
    let bench = Bench::new();
    let resizes = [Intrinsic::SextInt, Intrinsic::ZextInt, Intrinsic::TruncInt];
    let types = [(Type::I8, 8), (Type::I16, 16), (Type::I32, 32), (Type::I64, 64)];
    let fits = |op, from: u32, to: u32| (op == Intrinsic::TruncInt) == (to < from) && to != from;
    let mut changed = 0;
    for (ty, bits) in types {
        let xs = if bits == 8 { (0..256).collect() } else { edges(bits) };
        for (inner, (middle, m)) in resizes.iter().flat_map(|&op| types.map(|t| (op, t))) {
            for (outer, (last, l)) in resizes.iter().flat_map(|&op| types.map(|t| (op, t))) {
                if fits(inner, bits, m) && fits(outer, m, l) {
                    let expr = Convert(outer, last, Box::new(Convert(inner, middle, Box::new(Arg(0)))));
                    changed += usize::from(bench.check(ty, &expr, &xs, &xs, bitwise));
                }
            }
        }
    }
    assert!(changed > 30, "{changed} shapes changed");
}

/// Numbers of a float type: zeros, ones, powers of two and their neighbours, the largest, subnormal, infinite; NaN of both kinds.
fn floats(ty: ScalarType) -> Vec<u128> {
    let (bits, digits) = match ty {
        ScalarType::F16 => (16, 10),
        ScalarType::F32 => (32, 23),
        _ => (64, 52),
    };
    let exponent: u128 = (1 << (bits - 1 - digits)) - 1;
    let one = (exponent >> 1) << digits;
    let infinite = exponent << digits;
    let half = one - (1 << digits);
    let positive = [
        0,
        1,
        (1 << digits) - 1,
        1 << digits,
        half,
        one,
        one + 1,
        one + (1 << digits),
        one + (1 << digits) + (1 << (digits - 1)),
        infinite - 1,
        infinite - (1 << digits),
        infinite,
        infinite + 1,
        infinite + (1 << (digits - 1)),
    ];
    positive.into_iter().flat_map(|p| [p, p | 1 << (bits - 1)]).collect()
}

#[test]
fn floats_at_their_edges() {
    let bench = Bench::new();
    let strict = |op: &Intrinsic| !op.is_fast();
    let unary: Vec<Intrinsic> = of_shape(&[Shape::FloatUnary]).into_iter().filter(strict).collect();
    let binary: Vec<Intrinsic> =
        of_shape(&[Shape::FloatBinary, Shape::FloatCompare]).into_iter().filter(strict).collect();
    for ty in [Type::F16, Type::F32, Type::F64] {
        let values = floats(scalar_type(ty));
        let mut changed = 0;
        for expr in shallow(&unary, &binary, &values) {
            changed += usize::from(bench.check(ty, &expr, &values, &values, Scalar::agrees));
        }
        for expr in deep(&unary, &binary, &values[8..12]) {
            changed += usize::from(bench.check(ty, &expr, &values, &values, Scalar::agrees));
        }
        assert!(changed > 300, "{ty:?}: {changed} shapes changed");
    }
}

#[test]
fn fast_floats_as_real_numbers() {
    let bench = Bench::new();
    let unary: Vec<Intrinsic> =
        of_shape(&[Shape::FloatUnary]).into_iter().filter(|op| op.is_fast()).collect();
    let binary: Vec<Intrinsic> =
        of_shape(&[Shape::FloatBinary]).into_iter().filter(|op| op.is_fast()).collect();
    // On these no operation of two levels is rounded, so that all orders of computing agree.
    let values: Vec<u128> =
        [1.0_f64, 2.0, 4.0, 8.0, 0.5, 16.0].iter().map(|v| u128::from(v.to_bits())).collect();
    let constants: Vec<u128> = [0.0_f64, 1.0, 2.0, 0.25].iter().map(|v| u128::from(v.to_bits())).collect();
    let same = |a: Scalar, b: Scalar| a.to_f64() == b.to_f64() || (a.is_nan() && b.is_nan());
    let mut changed = 0;
    for expr in shallow(&unary, &binary, &constants).into_iter().chain(deep(&unary, &binary, &constants)) {
        let text = format!("{expr:?}");
        let divides = ["DivFloatFast", "RemFloatFast"].iter().any(|op| text.contains(op));
        let divides_by_zero = divides && text.contains("Const(0)");
        if !divides_by_zero {
            changed += usize::from(bench.check(Type::F64, &expr, &values, &values, same));
        }
    }
    assert!(changed > 50, "{changed} shapes changed");
}
