//! Settles which bounds are checked, and drops checks that cannot fail.
//!
//! ```text
//! %1 = boundscheck(true)               ==>  true, or what --check-bounds says
//! getfield(t, 2, true)                 ==>  getfield(t, 2)             t has two elements or more
//! getfield(t, i, %1)                   ==>  getfield(t, i, true)
//! memoryrefnew(m, 3, true)             ==>  memoryrefnew(m, 3, false)  m = memoryrefnew(memorynew(Memory{T}, 5))
//! memoryrefget(r, o, true)             ==>  memoryrefget(r, o, false)  r = memoryrefnew(m, i, true), which has thrown if it must
//! ```
//!
//! `--check-bounds=yes` and `no` override the operands of builtins as well. `cse` shares a check that was made before on the
//! same operands.
//!
//! Cost: one visit to each instruction. Required: `--check-bounds` must hold at every level of optimisation. Breaks the uses.
//! Not done: indices that are known to lie in a range.

use crate::facts::Fact;
use crate::options::CheckBounds;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::{Replacements, visit};
use crate::rules::field_position;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};
use cranelift_entity::EntitySet;
use std::ops::ControlFlow;

pub(crate) const PASS: Pass = Pass::new("bounds-fold", PassLevel::High, run).required().breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let mut values = Replacements::default();
    // References that are known to be those of elements.
    let mut inside: EntitySet<Value> = EntitySet::new();
    visit(func, |func, inst| {
        let fuel = match func.op(inst) {
            Op::BoundsCheck(asked) => fold_check(func, cx, &mut values, inst, asked),
            Op::Builtin(op) => fold_operand(func, cx, &mut inside, inst, op),
            _ => true,
        };
        if fuel { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    values.apply(func, cx.context());
    cx.changed()
}

/// The bounds check that `--check-bounds` leaves of the program's request.
fn settled(cx: &PassCx<'_>, asked: bool) -> bool {
    match cx.options.check_bounds {
        CheckBounds::Auto => asked,
        CheckBounds::Yes => true,
        CheckBounds::No => false,
    }
}

/// The answer to "are bounds checked here?". `false`: there is no fuel left.
fn fold_check(
    func: &mut Func,
    cx: &mut PassCx<'_>,
    values: &mut Replacements,
    inst: Inst,
    asked: bool,
) -> bool {
    let Some(result) = func.result(inst) else { return true };
    if !cx.spend("boundscheck answers") {
        return false;
    }
    let answer = func.bits(cx.types(), Type::BOOL, u128::from(settled(cx, asked)));
    values.set(result, answer);
    func.remove_inst(inst);
    true
}

/// The number of the operand that says whether bounds are checked.
fn check_operand(func: &Func, inst: Inst, op: Builtin) -> Option<usize> {
    let args = func.args(inst);
    let is_bool = |n: usize| args.get(n).is_some_and(|&v| func.ty(v) == Type::BOOL);
    let n = match op {
        Builtin::Arrayref | Builtin::Arrayset => 0,
        // The last operand, behind a memory order if there is one.
        Builtin::Getfield => args.len().checked_sub(1).filter(|&n| n >= 2)?,
        Builtin::Memoryrefnew | Builtin::Memoryrefget | Builtin::MemoryrefIsassigned => 2,
        Builtin::Memoryrefset => 3,
        Builtin::Memoryrefswap => 3,
        Builtin::Memoryrefmodify => 4,
        Builtin::Memoryrefreplace => 5,
        Builtin::Memoryrefsetonce => 4,
        _ => return None,
    };
    is_bool(n).then_some(n)
}

fn fold_operand(
    func: &mut Func,
    cx: &mut PassCx<'_>,
    inside: &mut EntitySet<Value>,
    inst: Inst,
    op: Builtin,
) -> bool {
    let Some(n) = check_operand(func, inst, op) else { return true };
    let operand = func.args(inst)[n];
    let asked = match func.as_bits(operand) {
        Some(bits) => Some(bits != 0),
        None => func.def_inst(operand).and_then(|def| match func.op(def) {
            Op::BoundsCheck(asked) => Some(asked),
            _ => None,
        }),
    };
    let forced = match cx.options.check_bounds {
        CheckBounds::Auto => None,
        _ => Some(settled(cx, false)),
    };
    let fits = cannot_fail(func, cx.types(), inside, inst, op);
    let wanted = if fits { Some(false) } else { forced };
    if op == Builtin::Memoryrefnew
        && (fits || wanted.or(asked) == Some(true))
        && let Some(result) = func.result(inst)
    {
        inside.insert(result);
    }
    let (Some(wanted), true) = (wanted, wanted != asked) else { return true };
    if !cx.spend(if fits { "checks that cannot fail" } else { "checks settled" }) {
        return false;
    }
    if op == Builtin::Getfield && fits {
        // A known field needs no check, and its read says so without one.
        let args = func.args(inst)[..n].to_vec();
        func.set_op(inst, Op::Builtin(op), &args);
    } else {
        func.args_mut(inst)[n] = func.bits(cx.types(), Type::BOOL, u128::from(wanted));
    }
    true
}

/// Whether the index is a constant that is in bounds of an object of known size, or the reference has been checked when it was made.
/// A `Memory` keeps its length.
fn cannot_fail(func: &Func, types: &Types, inside: &EntitySet<Value>, inst: Inst, op: Builtin) -> bool {
    let args = func.args(inst);
    match (op, args) {
        (Builtin::Getfield, &[object, field, ..]) => {
            field_position(func, types, func.ty(object), field).is_some()
        }
        (Builtin::Memoryrefnew, &[reference, index, _]) => {
            let index = func.as_bits(index).filter(|_| func.ty(index) == Type::INT64);
            let length = memory_length(func, reference);
            index.zip(length).is_some_and(|(index, length)| (1..=length).contains(&index))
        }
        (Builtin::Memoryrefget | Builtin::Memoryrefset | Builtin::MemoryrefIsassigned, &[reference, ..]) => {
            inside.contains(reference)
        }
        _ => false,
    }
}

/// The number of elements behind a reference to the start of a memory whose length is a constant.
fn memory_length(func: &Func, reference: Value) -> Option<u128> {
    let memory = match func.def_inst(reference).map(|def| (func.op(def), func.args(def))) {
        Some((Op::Builtin(Builtin::Memoryrefnew), &[memory])) => memory,
        _ => reference,
    };
    let def = func.def_inst(memory)?;
    match (func.op(def), func.args(def)) {
        (Op::Builtin(Builtin::Memorynew), &[ty, length])
            if matches!(func.as_const(ty), Some(Const::Type(_))) =>
        {
            // A negative length has thrown before.
            func.as_bits(length).filter(|&n| n <= i64::MAX as u128)
        }
        _ => None,
    }
}
