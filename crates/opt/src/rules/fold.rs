//! Constant folding: a pure intrinsic of constants becomes its value by the reference semantics.
//!
//! Nothing that throws is folded, so `sdiv_int(1, 0)` stays. A NaN is folded only where its bits are defined: the sign and
//! payload of the NaN that arithmetic produces depend on the processor, and a fold would pick one of them for all.

use super::{Rewrite, Site};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::scalar::{Outcome, Scalar, ScalarType, eval};
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Func, Inst, LowType, Op, PtrClass, Type, Types, Value};

pub(super) fn simplify(site: &mut Site<'_>, op: Intrinsic) -> Option<Rewrite> {
    if !op.is_pure() || !site.args().iter().all(|&v| site.is_constant(v)) {
        return None;
    }
    match evaluate(site.func, site.types, site.inst, site.args())? {
        Outcome::One(value) => site.constant_value(site.ty, value.bits()),
        Outcome::Pair(value, wrapped) => {
            let ty = site.func.ty(site.arg(0)?);
            let value = site.constant(ty, value.bits());
            pair(site, value, wrapped)
        }
    }
}

/// The result of a pure intrinsic for these operands, if they are constants and the result is the same on every machine: of `muladd_float` if rounding
/// the product makes no difference.
pub(crate) fn evaluate(func: &Func, types: &Types, inst: Inst, args: &[Value]) -> Option<Outcome> {
    let Op::Intrinsic(op) = func.op(inst) else { return None };
    if !op.is_pure() || op.shape() == Shape::Query {
        return None;
    }
    let operands: Vec<Scalar> = args.iter().map(|&v| scalar(func, types, v)).collect::<Option<_>>()?;
    let is_pair = op.shape() == Shape::CheckedPair;
    let given = || func.results(inst).next().map(|v| func.ty(v));
    let result_type = if is_pair { operands.first()?.ty() } else { scalar_type(types, given()?)? };
    match eval(op, result_type, &operands).ok()? {
        Outcome::One(value) if value.is_nan() && !moves_bits(op) => None,
        outcome if op == Intrinsic::MuladdFloat => {
            let fused = eval(Intrinsic::FmaFloat, result_type, &operands).ok()?;
            (fused == outcome).then_some(outcome)
        }
        outcome => Some(outcome),
    }
}

/// A checked operation whose two results are known: a tuple on the high level, two results on the low one.
pub(super) fn pair(site: &mut Site<'_>, value: Value, wrapped: bool) -> Option<Rewrite> {
    let wrapped = u128::from(wrapped);
    if site.func.result(site.inst).is_some() {
        let flag = site.constant(Type::BOOL, wrapped);
        return Some(Rewrite::Op(Op::Builtin(Builtin::Tuple), vec![value, flag]));
    }
    let flag_type = site.func.results(site.inst).nth(1).map(|v| site.func.ty(v))?;
    let flag = site.constant(flag_type, wrapped);
    Some(Rewrite::Values(value, flag))
}

/// The width of an integer type: 1 for `Bool`.
pub(super) fn width(site: &Site<'_>, ty: Type) -> Option<u32> {
    match scalar_type(site.types, ty)? {
        ScalarType::Int { bits } => Some(u32::from(bits)),
        _ => None,
    }
}

/// The integer with all bits set.
pub(super) fn ones(width: u32) -> u128 {
    u128::MAX >> (128 - width.clamp(1, 128))
}

/// Whether the operation moves the bits of its operands, NaN or not, instead of computing with them.
fn moves_bits(op: Intrinsic) -> bool {
    matches!(op.strict(), Intrinsic::NegFloat | Intrinsic::AbsFloat | Intrinsic::CopysignFloat)
        || op.shape() == Shape::Convert(Convert::Bits)
}

fn scalar(func: &Func, types: &Types, value: Value) -> Option<Scalar> {
    let bits = func.as_bits(value)?;
    Some(Scalar::new(scalar_type(types, func.ty(value))?, bits))
}

/// The scalar type of the reference semantics for a type of either level; `None` for non-scalars and for addresses that the
/// collector tracks.
pub(super) fn scalar_type(types: &Types, ty: Type) -> Option<ScalarType> {
    let low = |low: LowType| match low {
        LowType::F16 => Some(ScalarType::F16),
        LowType::F32 => Some(ScalarType::F32),
        LowType::F64 => Some(ScalarType::F64),
        LowType::Ptr(class) if class != PtrClass::Raw => None,
        LowType::V128 => None,
        int => Some(ScalarType::Int { bits: int.bits() as u16 }),
    };
    if let Some(ty) = ty.as_low() {
        return low(ty);
    }
    match types.primitive(ty)? {
        (_, PrimitiveRepr::Bool) => Some(ScalarType::BOOL),
        (16, PrimitiveRepr::Float) => Some(ScalarType::F16),
        (32, PrimitiveRepr::Float) => Some(ScalarType::F32),
        (64, PrimitiveRepr::Float) => Some(ScalarType::F64),
        (bits, _) => Some(ScalarType::Int { bits }),
    }
}
