//! Computes `Float16` operations in `Float32`, and rounds each of them back.
//!
//! ```text
//! %1 = mul_float(x, x)::f16                     %2 = fpext(f32, x)::f32
//! %5 = lt_float(%1, y)::i8                      %3 = mul_float(%2, %2)::f32
//!                                      ==>      %1 = fptrunc(f16, %3)::f16
//!                                               %4 = fpext(f32, %1)::f32            rounded: it is not %3
//!                                               %6 = fpext(f32, y)::f32
//!                                               %5 = lt_float(%4, %6)::i8
//! ```
//!
//! No supported target computes with 16 bits, so code generation widens and rounds at each such operation. Expanded before the
//! passes that share and hoist, a value is widened once for all its uses, and before a loop if it is invariant.
//!
//! | operations | because |
//! |---|---|
//! | sum, difference, product, quotient, root, strict or `_fast` | 24 digits are twice 11 and two more, so that rounding twice is rounding once |
//! | `ceil`, `floor`, `trunc`, `rint` | the result is a `Float16` |
//! | minimum, maximum, comparisons | widening keeps the order, and NaNs NaNs |
//!
//! Each operation rounds, even if the wide value is available: programs have the same results with and without hardware. Operations that only move bits
//! (signs, `fpiseq`), `fma` and `muladd` are left to code generation.
//!
//! Cost: one visit to each instruction. Breaks the uses. Not done: targets with such hardware; parts of a chain that need no rounding because they are
//! exact.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Func, Inst, Op, Type, Value};
use smallvec::SmallVec;

pub(crate) const PASS: Pass = Pass::new("demote-float16", PassLevel::Low, run).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let find = |func: &Func, _: &PassCx<'_>, inst| widened(func, inst);
    cx.rewrite_each(func, "operations of 16 bits", find, |func, _, inst, op| widen(func, inst, op))
}

/// The operation, if it is one of `Float16` that `Float32` does for it.
fn widened(func: &Func, inst: Inst) -> Option<Intrinsic> {
    let Op::Intrinsic(op) = func.op(inst) else { return None };
    let known = match op.strict() {
        Intrinsic::AddFloat
        | Intrinsic::SubFloat
        | Intrinsic::MulFloat
        | Intrinsic::DivFloat
        | Intrinsic::MinFloat
        | Intrinsic::MaxFloat
        | Intrinsic::SqrtLlvm
        | Intrinsic::CeilLlvm
        | Intrinsic::FloorLlvm
        | Intrinsic::TruncLlvm
        | Intrinsic::RintLlvm => true,
        _ => op.shape() == Shape::FloatCompare && op != Intrinsic::Fpiseq,
    };
    let halves = func.args(inst).iter().all(|&v| func.ty(v) == Type::F16);
    (known && halves).then_some(op)
}

fn widen(func: &mut Func, inst: Inst, op: Intrinsic) {
    let halves: SmallVec<[Value; 2]> = func.args(inst).into();
    let mut wide: SmallVec<[Value; 2]> = SmallVec::new();
    let mut at = Cursor::new(func);
    at.before(inst);
    for (n, &half) in halves.iter().enumerate() {
        let known = halves[..n].iter().position(|&other| other == half);
        wide.push(match known {
            Some(other) => wide[other],
            None => at.ins_value(Op::Intrinsic(Intrinsic::Fpext), &[half], Type::F32),
        });
    }
    if op.shape() == Shape::FloatCompare {
        func.set_op(inst, Op::Intrinsic(op), &wide);
        return;
    }
    let value = at.ins_value(Op::Intrinsic(op), &wide, Type::F32);
    func.set_op(inst, Op::Intrinsic(Intrinsic::Fptrunc), &[value]);
}
