//! Settles which bounds are checked, and drops checks that cannot fail.
//!
//! ```text
//! %1 = boundscheck(true)               ==>  true, or the value from --check-bounds
//! getfield(t, 2, true)                 ==>  getfield(t, 2)             t has two elements or more
//! getfield(t, i, %1)                   ==>  getfield(t, i, true)
//! memoryrefnew(m, 3, true)             ==>  memoryrefnew(m, 3, false)  m = memoryrefnew(memorynew(Memory{T}, 5))
//! memoryrefget(r, o, true)             ==>  memoryrefget(r, o, false)  r = memoryrefnew(m, i, true), which has thrown if it must
//! ```
//!
//! `--check-bounds=yes` and `no` override the operands of builtins as well, and a program without doors is as `yes`. Lowering decides on its own
//! ([`crate::bounds`]): an operand that becomes known after this pass turns nothing off. `cse` shares a check that was made before on the same operands.
//!
//! Cost: one visit to each instruction. Required: `--check-bounds` must hold at every level of optimisation. Breaks the uses.
//! Not done: indices with a known range.

use crate::bounds;
use crate::facts::Fact;
use crate::options::CheckBounds;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::{Replacements, visit};
use brolga_ir::builtin::Builtin;
use brolga_ir::{Func, Inst, Op, Type, Value};
use smallvec::SmallVec;
use std::ops::ControlFlow;

pub(crate) const PASS: Pass = Pass::new("bounds-fold", PassLevel::High, run).required().breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let mut values = Replacements::default();
    visit(func, |func, inst| {
        let fuel = match func.op(inst) {
            Op::BoundsCheck(asked) => fold_check(func, cx, &mut values, inst, asked),
            Op::Builtin(op) => fold_operands(func, cx, inst, op),
            _ => true,
        };
        if fuel { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    values.apply(func, cx.context());
    cx.changed()
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
    let answer = func.bits(cx.types(), Type::BOOL, u128::from(cx.options.bounds().settled(asked)));
    values.set(result, answer);
    func.remove_inst(inst);
    true
}

fn fold_operands(func: &mut Func, cx: &mut PassCx<'_>, inst: Inst, op: Builtin) -> bool {
    let flags: SmallVec<[usize; 2]> = bounds::flags(func, inst, op).collect();
    if flags.is_empty() {
        return true;
    }
    let check_bounds = cx.options.bounds();
    let fits = bounds::cannot_fail(func, cx.types(), check_bounds, inst, op);
    let forced = match check_bounds {
        CheckBounds::Auto => None,
        CheckBounds::Yes | CheckBounds::No => Some(check_bounds.settled(false)),
    };
    let Some(wanted) = (if fits { Some(false) } else { forced }) else { return true };
    let said = |&n: &usize| bounds::said(func, check_bounds, func.args(inst)[n]);
    if flags.iter().all(|n| said(n) == Some(wanted)) {
        return true;
    }
    if !cx.spend(if fits { "checks that cannot fail" } else { "checks settled" }) {
        return false;
    }
    if op == Builtin::Getfield && fits {
        // A known field needs no check, and its read omits the flag.
        let args = func.args(inst).iter().enumerate();
        let args: SmallVec<[Value; 4]> =
            args.filter(|(n, _)| !flags.contains(n)).map(|(_, &value)| value).collect();
        func.set_op(inst, Op::Builtin(op), &args);
    } else {
        let wanted = func.bits(cx.types(), Type::BOOL, u128::from(wanted));
        flags.into_iter().for_each(|n| func.args_mut(inst)[n] = wanted);
    }
    true
}
