//! Contracts a product and a sum into one operation that rounds once.
//!
//! ```text
//! %1 = mul_float_fast(x, y)      (no other use)
//! %2 = add_float_fast(%1, z)                              ==>     %2 = fma_float(x, y, z)
//! ```
//!
//! Only if the processor has the operation ([`CpuFeatures::fma`](crate::CpuFeatures::fma)): without it a routine would compute it, slower than the two.
//! `_fast` operations allow any algebra; strict sums and products are unchanged. Lowering has replaced `muladd_float` for such a processor.
//!
//! Runs after the passes on lanes, which handle products and sums. Cost: one visit to each instruction. Breaks the uses. Not done: vectors; differences;
//! floats of 16 bits.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Inst, Op, Type, Value};

pub(crate) const PASS: Pass =
    Pass::new("muladd", PassLevel::Low, run).needs(&[Fact::Uses]).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    if !cx.options.cpu.fma {
        return Changed::No;
    }
    cx.rewrite_each(func, "contracted", contracted, |func, _, inst, operands| {
        func.set_op(inst, Op::Intrinsic(Intrinsic::FmaFloat), &operands);
    })
}

/// Whether there is something to contract, judging by the operations alone.
pub(crate) fn may_find(func: &Func) -> bool {
    let mut ops = func.blocks().flat_map(|b| func.block_insts(b)).map(|inst| func.op(inst));
    ops.any(|op| op == Op::Intrinsic(Intrinsic::AddFloatFast))
}

/// The factors and the summand.
fn contracted(func: &Func, cx: &PassCx<'_>, inst: Inst) -> Option<[Value; 3]> {
    let ty = func.result(inst).map(|v| func.ty(v))?;
    if !matches!(ty, Type::F32 | Type::F64) {
        return None;
    }
    match (func.op(inst), func.args(inst)) {
        (Op::Intrinsic(Intrinsic::AddFloatFast), &[a, b]) => product(func, cx, a)
            .map(|[x, y]| [x, y, b])
            .or_else(|| product(func, cx, b).map(|[x, y]| [x, y, a])),
        _ => None,
    }
}

/// The factors of a product that is used once.
fn product(func: &Func, cx: &PassCx<'_>, value: Value) -> Option<[Value; 2]> {
    let def = func.def_inst(value)?;
    let (Op::Intrinsic(Intrinsic::MulFloatFast), &[x, y]) = (func.op(def), func.args(def)) else {
        return None;
    };
    cx.facts.uses().single(value).map(|_| [x, y])
}
