//! The asserted type after one value replaces another.
//!
//! ```text
//! use(%2) where %2::Any is known to be %1::Point       the use verifies with %1     use(%1)
//!                                                      it does not                  %3 = π (%1, Any);  use(%3)
//! %2 is %1::Any and is asserted to be Int64                                          %2 = π (%1, Int64)
//! %2 is %1::Point and is asserted to be Int64           a contradiction              %2 = typeassert(%1, Int64)
//! ```
//!
//! Types are assertions (`docs/ir.md`, Semantics), and the verifier refuses operands that can never be valid. A more precise value
//! may be such an operand: a read of a field that its object does not have, on a path that is never taken, or that throws; or
//! a field number that has become a constant. So every pass keeps two rules, which the functions of this file implement:
//!
//! - **A result** is replaced by a value of its type or a narrower one. The type of any other value is asserted at the
//!   definition of the result ([`give`]).
//! - **An operand** is replaced by any equal value. If the instruction does not verify with that value, the operand is the value
//!   under its former type ([`refit`]).
//!
//! An asserted type that cannot hold becomes a `typeassert`, as does `Union{}`, which no value is of. Mostly it is unreachable; otherwise it throws.
//!
//! Low IR has no asserted types: there a value is replaced by one of its own type. Cost: nothing where types are equal and nothing is
//! constant, otherwise a check of the instruction by the verifier.

use brolga_ir::builtin::Builtin;
use brolga_ir::verify::verify_inst;
use brolga_ir::{Block, Const, Context, Func, Inst, Level, Op, Type, Types, Value};
use smallvec::{SmallVec, smallvec};

/// The operation that yields `value` and asserts the type, with its operands.
pub(crate) fn assert_type(
    func: &mut Func,
    types: &Types,
    value: Value,
    ty: Type,
) -> (Op, SmallVec<[Value; 2]>) {
    if func.ty(value) == Type::BOTTOM {
        // The row that would produce it throws, or never comes back.
        (Op::Copy, smallvec![func.constant(Const::Undef(ty))])
    } else if types.is_disjoint(func.ty(value), ty) {
        let asserted = func.constant(types.type_constant(ty));
        (Op::Builtin(Builtin::Typeassert), smallvec![value, asserted])
    } else {
        (Op::Pi, smallvec![value])
    }
}

/// Makes an instruction with one result yield `value` instead. True if the value may replace the result; otherwise the
/// instruction has become an assertion.
pub(crate) fn give(func: &mut Func, types: &Types, inst: Inst, value: Value) -> bool {
    let Some(ty) = func.result(inst).map(|result| func.ty(result)) else { return true };
    if types.is_subtype(func.ty(value), ty) {
        return true;
    }
    let (op, args) = assert_type(func, types, value, ty);
    func.set_op(inst, op, &args);
    false
}

/// Whether the verifier may treat an operand differently now that this value replaced one of type `before`.
pub(crate) fn differs(func: &Func, before: Type, now: Value) -> bool {
    func.level == Level::High && (func.ty(now) != before || func.as_const(now).is_some())
}

/// Called when operands of an instruction, which verified before, have become others. `before` has the numbers of those that
/// [`differ`](differs), with the types that they had.
pub(crate) fn refit(func: &mut Func, cx: &Context, inst: Inst, before: &[(usize, Type)]) {
    if before.is_empty() || verify_inst(cx, func, inst).is_ok() && !asks_module(func.op(inst)) {
        return;
    }
    if func.op(inst) == Op::Pi {
        if let (Some(result), &[value]) = (func.result(inst), func.args(inst)) {
            let ty = func.ty(result);
            let (op, args) = assert_type(func, &cx.types, value, ty);
            func.set_op(inst, op, &args);
        }
        return;
    }
    for &(n, ty) in before {
        let value = func.args(inst)[n];
        let from = func.inst_blocks(inst).get(n).copied().filter(|_| func.op(inst) == Op::Phi);
        let asserted = asserted_at(func, &cx.types, value, ty, inst, from);
        func.args_mut(inst)[n] = asserted;
    }
}

/// Whether the module determines an operation's operand types, so that the instruction alone does not show whether it
/// verifies.
fn asks_module(op: Op) -> bool {
    matches!(op, Op::Builtin(Builtin::Setglobal | Builtin::Swapglobal))
}

/// The value under an assertion inserted before `user`, or for a φ at the end of the predecessor.
fn asserted_at(
    func: &mut Func,
    types: &Types,
    value: Value,
    ty: Type,
    user: Inst,
    from: Option<Block>,
) -> Value {
    let (op, args) = assert_type(func, types, value, ty);
    if op == Op::Copy {
        return args[0];
    }
    let inst = func.make_inst(op, &args, &[], &[ty]);
    func.set_place(inst, func.place(user));
    match from.map(|block| (block, func.terminator(block))) {
        None => func.insert_before(inst, user),
        Some((_, Some(end))) => func.insert_before(inst, end),
        Some((block, None)) => func.append_inst(inst, block),
    }
    func.result(inst).unwrap_or(value)
}
