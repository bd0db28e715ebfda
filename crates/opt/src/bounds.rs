//! Which bounds checks are made: the single decision that passes and lowering use for a builtin that is called by name.
//!
//! ```text
//! memoryrefget(r, o, false)     checked program                       yes, unless the check cannot fail
//!                               --check-bounds=auto                   no: an operand decides
//! ```
//!
//! A checked program is one without doors ([`brolga_ir::doors`]). There an operand decides nothing, so no pass that makes an operand `false`, whether it is
//! right or not, can turn a check off. Builtins that are called as values are executed by the run time, which checks them for all programs.

use crate::options::CheckBounds;
use crate::rules::field_position;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};

/// The numbers of the operands that determine whether bounds are checked.
pub(crate) fn flags(func: &Func, inst: Inst, op: Builtin) -> impl Iterator<Item = usize> {
    let args = func.args(inst);
    op.bounds_operands(args.len()).filter(|&n| func.ty(args[n]) == Type::BOOL)
}

/// The value of an operand that determines whether bounds are checked, if known.
pub(crate) fn said(func: &Func, check_bounds: CheckBounds, operand: Value) -> Option<bool> {
    match (func.as_bits(operand), func.def_inst(operand).map(|def| func.op(def))) {
        (Some(bits), _) => Some(bits != 0),
        (None, Some(Op::BoundsCheck(asked))) => Some(check_bounds.settled(asked)),
        _ => None,
    }
}

/// Whether a statement checks its bounds.
pub(crate) fn is_checked(
    func: &Func,
    types: &Types,
    check_bounds: CheckBounds,
    inst: Inst,
    op: Builtin,
) -> bool {
    match check_bounds {
        CheckBounds::Yes => !cannot_fail(func, types, check_bounds, inst, op),
        CheckBounds::Auto | CheckBounds::No => {
            flags(func, inst, op).all(|n| said(func, check_bounds, func.args(inst)[n]) != Some(false))
        }
    }
}

/// Whether a check cannot fail: the index is a constant that is in bounds of an object of known size, or the reference was checked when it was made.
/// A `Memory` keeps its length.
pub(crate) fn cannot_fail(
    func: &Func,
    types: &Types,
    check_bounds: CheckBounds,
    inst: Inst,
    op: Builtin,
) -> bool {
    match (op, func.args(inst)) {
        (Builtin::Getfield, &[object, field, ..]) => {
            field_position(func, types, func.ty(object), field).is_some()
        }
        (Builtin::Memoryrefnew, &[reference, index, _]) => is_within(func, reference, index),
        (Builtin::Memoryrefget | Builtin::Memoryrefset | Builtin::MemoryrefIsassigned, &[reference, ..]) => {
            is_reference_to_element(func, check_bounds, reference)
        }
        _ => false,
    }
}

/// Whether an index is a constant that is in bounds.
fn is_within(func: &Func, reference: Value, index: Value) -> bool {
    let index = func.as_bits(index).filter(|_| func.ty(index) == Type::INT64);
    let length = memory_length(func, reference);
    index.zip(length).is_some_and(|(index, length)| (1..=length).contains(&index))
}

/// Whether a reference was made by a `memoryrefnew` that throws if there is no such element. One without an index may refer to an empty `Memory`.
fn is_reference_to_element(func: &Func, check_bounds: CheckBounds, reference: Value) -> bool {
    let Some(def) = func.def_inst(reference) else { return false };
    match (func.op(def), func.args(def)) {
        (Op::Builtin(Builtin::Memoryrefnew), &[_, _]) => true,
        (Op::Builtin(op @ Builtin::Memoryrefnew), &[of, index, _]) => {
            is_within(func, of, index)
                || check_bounds == CheckBounds::Yes
                || flags(func, def, op).all(|n| said(func, check_bounds, func.args(def)[n]) == Some(true))
        }
        _ => false,
    }
}

/// The number of elements after a reference to the start of a memory whose length is a constant.
fn memory_length(func: &Func, reference: Value) -> Option<u128> {
    let memory = match func.def_inst(reference).map(|def| (func.op(def), func.args(def))) {
        Some((Op::Builtin(Builtin::Memoryrefnew), &[memory])) => memory,
        _ => reference,
    };
    let def = func.def_inst(memory)?;
    match (func.op(def), func.args(def)) {
        (Op::Builtin(Builtin::Memorynew), &[ty, length])
            if matches!(func.as_const(ty), Some(Const::Type { .. })) =>
        {
            // A negative length has thrown before.
            func.as_bits(length).filter(|&n| n <= i64::MAX as u128)
        }
        _ => None,
    }
}
