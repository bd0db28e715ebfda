//! The cost of running a function's body, in the units of Julia's inliner: about a machine instruction each.
//!
//! The sum over all instructions is compared with [`InlineLimits::threshold`]. It over-counts on purpose: both sides of a branch are added, and a
//! loop counts its body once plus a penalty for the jump back. The figures are Julia's; the rows explain them.
//!
//! Cost: one visit to each instruction up to the threshold or `MAX_INSTS`, whichever comes first; to all of a body that a
//! hint requests.

use crate::options::InlineLimits;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::types::TypeKind;
use brolga_ir::{Block, Func, Inst, Op, Type, Types};
use cranelift_entity::EntitySet;

/// Many statements cost nothing (φ, fields, tuples), but copying them takes time: longer bodies are not examined further.
const MAX_INSTS: usize = 1000;

/// A call of something that is not known, of C, or of compiled code: moving arguments, saving registers, returning.
const CALL: u32 = 20;
/// A jump back: the body probably runs often, which makes the cost of the call negligible.
const BACK_EDGE: u32 = 40;

/// The cost of a body and its number of instructions; `None` if it is not to be inlined with any threshold.
pub(in crate::passes) fn body_cost(
    func: &Func,
    types: &Types,
    limits: &InlineLimits,
) -> Option<(u32, usize)> {
    body_cost_of(func, types, limits, &[])
}

/// The same for a call with operands of the given types: there, an array of unknown element type in the callee may have a known one.
pub(in crate::passes) fn body_cost_of(
    func: &Func,
    types: &Types,
    limits: &InlineLimits,
    given: &[Type],
) -> Option<(u32, usize)> {
    // The bonus is the most that the threshold can still grow by.
    let most = limits.threshold.saturating_add(limits.tuple_return_bonus);
    measure(func, types, limits, given, most, MAX_INSTS)
}

/// The same without a limit of the cost.
pub(in crate::passes) fn full_cost(
    func: &Func,
    types: &Types,
    limits: &InlineLimits,
) -> Option<(u32, usize)> {
    measure(func, types, limits, &[], u32::MAX, MAX_INSTS)
}

/// How many instructions a body has whose cost does not count; `None` if it is not to be inlined at all.
pub(in crate::passes) fn body_size(func: &Func, types: &Types, limits: &InlineLimits) -> Option<usize> {
    measure(func, types, limits, &[], u32::MAX, usize::MAX).map(|(_, insts)| insts)
}

fn measure(
    func: &Func,
    types: &Types,
    limits: &InlineLimits,
    given: &[Type],
    max_cost: u32,
    max_insts: usize,
) -> Option<(u32, usize)> {
    let mut seen: EntitySet<Block> = EntitySet::new();
    let mut total = 0u32;
    let mut insts = 0;
    for block in func.blocks() {
        seen.insert(block);
        for inst in func.block_insts(block) {
            insts += 1;
            if insts > max_insts {
                return None;
            }
            let jumps_back =
                func.op(inst).is_terminator() && func.inst_blocks(inst).iter().any(|&b| seen.contains(b));
            let cost = if jumps_back { BACK_EDGE } else { inst_cost(func, types, limits, given, inst)? };
            total = total.saturating_add(cost);
            if total > max_cost {
                return None;
            }
        }
    }
    Some((total, insts))
}

/// The cost limit for a callee with this result.
pub(in crate::passes) fn threshold(types: &Types, result: Type, limits: &InlineLimits) -> u32 {
    // A tuple of unknown types has to be made as an object to be returned, and is mostly taken apart at once.
    let is_tuple = matches!(types.kind(result), TypeKind::Tuple { .. });
    let bonus = if is_tuple && !types.is_concrete(result) { limits.tuple_return_bonus } else { 0 };
    limits.threshold.saturating_add(bonus)
}

fn inst_cost(func: &Func, types: &Types, limits: &InlineLimits, given: &[Type], inst: Inst) -> Option<u32> {
    let result = func.result(inst).map_or(Type::NOTHING, |v| func.ty(v));
    let op = func.op(inst);
    Some(match op {
        // A body with its own handlers is not worth the trouble, and what belongs to a handler makes no sense elsewhere.
        Op::Enter | Op::Leave | Op::TheException | Op::PopException | Op::PhiC | Op::Upsilon => return None,
        // These are refused with a reason where they are; elsewhere the reason would be less clear.
        Op::Intrinsic(i) if i.refusal().is_some() => return None,
        Op::Builtin(b) if b.refusal().is_some() => return None,
        Op::Intrinsic(i) => intrinsic_cost(func, inst, i),
        Op::Builtin(b) => builtin_cost(func, types, limits, given, inst, b),
        // A block that does not return is an error path, which is not part of the usual cost.
        Op::Call | Op::Invoke(_) | Op::ForeignCall(_) if result == Type::BOTTOM => 0,
        Op::Call | Op::Invoke(_) | Op::ForeignCall(_) => CALL,
        _ if op.level() == Some(brolga_ir::Level::Low) => return None,
        _ => 0,
    })
}

fn intrinsic_cost(func: &Func, inst: Inst, op: Intrinsic) -> u32 {
    let cost = full_intrinsic_cost(op);
    // With all operands but one known, later passes mostly find something cheaper.
    let unknown = func.args(inst).iter().filter(|&&v| func.as_const(v).is_none()).count();
    if unknown <= 1 && func.args(inst).len() > 1 { cost / 2 } else { cost }
}

fn full_intrinsic_cost(op: Intrinsic) -> u32 {
    use Intrinsic as I;
    match op {
        // No instruction, or one that is folded into its neighbours.
        I::Bitcast | I::SextInt | I::ZextInt | I::TruncInt | I::NotInt | I::HaveFma => 0,
        // A multiplier's latency.
        I::MulInt => 3,
        I::CheckedSmulInt | I::CheckedUmulInt => 5,
        // An adder for floats has twice the latency of one for integers, a multiplier about four times.
        I::AddFloat | I::SubFloat | I::AddFloatFast | I::SubFloatFast => 2,
        I::AbsFloat | I::CopysignFloat => 2,
        I::MulFloat | I::MulFloatFast | I::FmaFloat | I::MuladdFloat => 8,
        I::MinFloat | I::MaxFloat | I::MinFloatFast | I::MaxFloatFast => 5,
        // The divider is not pipelined.
        I::DivFloat | I::DivFloatFast => 10,
        I::SqrtLlvm | I::SqrtLlvmFast => 15,
        // A call.
        I::RemFloat | I::RemFloatFast => 20,
        // A rounding instruction, or a call where the processor has none.
        I::CeilLlvm | I::FloorLlvm | I::TruncLlvm | I::RintLlvm => 10,
        _ => match op.shape() {
            // An integer division, with its checks.
            Shape::IntDivide => 20,
            Shape::CheckedPair => 2,
            Shape::FloatCompare => 2,
            // Between the register files.
            Shape::Convert(Convert::Bits) => 0,
            Shape::Convert(_) => 1,
            // Memory: the address, and an access that may miss the cache.
            Shape::PtrLoad | Shape::AtomicLoad | Shape::AtomicFence => 4,
            Shape::PtrStore | Shape::AtomicStore | Shape::AtomicSwap | Shape::AtomicReplace => 5,
            Shape::AtomicModify => CALL,
            _ => 1,
        },
    }
}

fn builtin_cost(
    func: &Func,
    types: &Types,
    limits: &InlineLimits,
    given: &[Type],
    inst: Inst,
    op: Builtin,
) -> u32 {
    use Builtin as B;
    let is_known = |v| {
        let param = func.params().iter().position(|&param| param == v);
        let given = param.and_then(|n| given.get(n)).is_some_and(|&ty| types.is_concrete(ty));
        given || types.is_concrete(func.ty(v))
    };
    let known = |n: usize| func.args(inst).get(n).is_some_and(|&v| is_known(v));
    let by_type = |known: bool, cost: u32| if known { cost } else { limits.nonleaf_penalty };
    match op {
        // Mostly removed by scalar replacement; iteration and destructuring consist of these.
        B::Getfield | B::Tuple | B::Getglobal | B::Compilerbarrier | B::Donotdelete | B::Blackbox => 0,
        // These leave the function.
        B::Throw | B::ThrowMethoderror => 0,
        B::Egal | B::Typeof | B::Sizeof | B::Nfields | B::Isdefined | B::Isa | B::Ifelse | B::Typeassert => 1,
        B::Memoryrefnew | B::Memoryrefoffset => 1,
        // An element of a known type is a load or a store; another is a dispatch, which inlining would copy.
        B::Memoryrefget | B::MemoryrefIsassigned => by_type(known(0), 1),
        B::Memoryrefset => by_type(known(0), 5),
        B::Arrayref => by_type(known(1), 4),
        B::Arrayset => by_type(known(1), 5),
        B::Arraylen | B::Arraysize => 4,
        B::Setfield | B::Setglobal => 3,
        // A walk over types in the run time.
        B::Subtype | B::ApplyType | B::Fieldtype => 10,
        _ => CALL,
    }
}
