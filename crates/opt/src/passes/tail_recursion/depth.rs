//! Recursion without end keeps its `StackOverflowError` when it becomes a loop.
//!
//! ```text
//! f(n):  goto h                              f(n):  goto c
//!     h: n' = φ (entry => n, b => x)             c: n' = φ (entry => n, b => x)
//!        …                            ==>           d  = φ (entry => MAX_DEPTH, b => e)
//!     b: goto h                                     e  = d - 1
//!                                                   goto o if d == 0, else h
//!                                                h: …
//!                                                b: goto c
//!                                                o: throw(StackOverflowError())
//! ```
//!
//! A recursion that provably ends needs no count: a signed parameter moves by a constant in one direction, and a comparison with an invariant
//! bound on that side guards every jump. It may be deeper than any stack, and then returns its result where calls would
//! overflow.
//!
//! Cost: one subtraction and one branch that is never taken, in each iteration of the loop. Not done: other proofs of termination, so `gcd` counts.

use brolga_ir::analysis::{Cfg, DomTree, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Block, Context, Func, Inst, Op, Type, Types, Value};

/// Activations after which a recursion is taken to be endless. Sixteen bytes of stack each, the least that a call takes, are more than
/// a thread has.
const MAX_DEPTH: i64 = 1 << 20;

/// Whether the jumps to the start that take the place of `calls` end: see the header.
pub(super) fn is_bounded(func: &Func, types: &Types, calls: &[Inst]) -> bool {
    let params = func.params();
    let steps = (0..params.len()).filter_map(|n| Some((n, common_step(func, types, calls, n)?)));
    let steps: Vec<(usize, i128)> = steps.collect();
    if steps.is_empty() {
        return false;
    }
    let cfg = Cfg::compute(func);
    let tree = DomTree::compute(&cfg);
    let rpo = Rpo::compute(&cfg);
    let is_invariant = |value: Value| {
        let position = params.iter().position(|&p| p == value);
        position.is_some_and(|n| calls.iter().all(|&call| func.args(call)[n] == value))
    };
    // The only edge into `to` is the one that the condition guards, and `to` dominates every call.
    let guards = |to: Block| {
        cfg.preds(to).len() == 1
            && calls.iter().all(|&call| func.inst_block(call).is_some_and(|block| tree.dominates(to, block)))
    };
    rpo.blocks().iter().any(|&block| {
        let Some(end) = func.terminator(block).filter(|&end| func.op(end) == Op::Branch) else {
            return false;
        };
        let (&[condition], &[yes, no]) = (func.args(end), func.inst_blocks(end)) else { return false };
        let Some(test) = func.def_inst(condition) else { return false };
        let (Op::Intrinsic(op @ (Intrinsic::SltInt | Intrinsic::SleInt)), &[x, y]) =
            (func.op(test), func.args(test))
        else {
            return false;
        };
        // The comparison that holds where the recursion continues: `below < above`, or `below <= above`.
        let continues = match (guards(yes), guards(no)) {
            (true, false) => (x, y, op == Intrinsic::SltInt),
            (false, true) => (y, x, op == Intrinsic::SleInt),
            _ => return false,
        };
        steps.iter().any(|&(n, step)| {
            let (below, above, is_strict) = continues;
            let (moving, bound) = if step < 0 { (above, below) } else { (below, above) };
            let cannot_wrap = match as_signed(func, types, bound) {
                Some((bound, least, greatest)) => (least..=greatest).contains(&(bound + step)),
                None => is_strict && step.abs() == 1 && is_invariant(bound),
            };
            moving == params[n] && cannot_wrap
        })
    })
}

/// The direction in which parameter `n` moves: the largest step of all calls, if all are constants with one sign.
fn common_step(func: &Func, types: &Types, calls: &[Inst], n: usize) -> Option<i128> {
    let param = func.params()[n];
    let is_signed = matches!(types.primitive(func.ty(param)), Some((_, PrimitiveRepr::Signed)));
    if !is_signed {
        return None;
    }
    let mut largest = 0i128;
    for &call in calls {
        let moved = func.def_inst(func.args(call)[n])?;
        let (op, &[x, y]) = (func.op(moved), func.args(moved)) else { return None };
        let step = match op {
            Op::Intrinsic(Intrinsic::AddInt) if x == param => as_signed(func, types, y)?.0,
            Op::Intrinsic(Intrinsic::AddInt) if y == param => as_signed(func, types, x)?.0,
            Op::Intrinsic(Intrinsic::SubInt) if x == param => as_signed(func, types, y)?.0.checked_neg()?,
            _ => return None,
        };
        if step == 0 || (largest != 0 && (step < 0) != (largest < 0)) {
            return None;
        }
        largest = if step.abs() > largest.abs() { step } else { largest };
    }
    (largest != 0).then_some(largest)
}

/// A constant of a signed type of at most 64 bits, with the least and the greatest value of the type.
fn as_signed(func: &Func, types: &Types, value: Value) -> Option<(i128, i128, i128)> {
    let &Const::Bits { ty, bits } = func.as_const(value)? else { return None };
    let width = 8 * types.layout(ty).ok().filter(|layout| layout.size <= 8)?.size;
    let greatest = (1i128 << (width - 1)) - 1;
    let value = if bits as i128 > greatest { bits as i128 - (1i128 << width) } else { bits as i128 };
    Some((value, -greatest - 1, greatest))
}

/// The count of activations left.
pub(super) struct Counter {
    left: Inst,
    less: Value,
}

impl Counter {
    /// Makes the block that counts, between `entry` and `start`; returns it. `None` if the program lacks the error's type.
    pub(super) fn insert(
        func: &mut Func,
        cx: &Context,
        entry: Block,
        start: Block,
    ) -> Option<(Counter, Block)> {
        let types = &cx.types;
        let error = types.find_builtin(cx.names.intern("StackOverflowError"))?;
        let error = types.nominal(error, &[]).ok()?;
        let place = func.first_inst(start).map(|inst| func.place(inst)).unwrap_or_default();
        let [check, overflow] = [func.make_block(), func.make_block()];
        func.insert_block_after(check, entry);
        func.append_block(overflow);
        let emit = |func: &mut Func, block: Block, op: Op, args: &[Value], to: &[Block], results: &[Type]| {
            let inst = func.make_inst(op, args, to, results);
            func.set_place(inst, place);
            func.append_inst(inst, block);
            inst
        };
        let int = |op: Intrinsic| Op::Intrinsic(op);
        let [zero, one, most] = [0, 1, MAX_DEPTH as u128].map(|bits| func.bits(types, Type::INT64, bits));
        let left = emit(func, check, Op::Phi, &[], &[], &[Type::INT64]);
        let depth = func.result(left)?;
        let less = emit(func, check, int(Intrinsic::SubInt), &[depth, one], &[], &[Type::INT64]);
        let is_over = emit(func, check, int(Intrinsic::EqInt), &[depth, zero], &[], &[Type::BOOL]);
        let (less, is_over) = (func.result(less)?, func.result(is_over)?);
        emit(func, check, Op::Branch, &[is_over], &[overflow, start], &[]);
        let error = func.constant(Const::Singleton(error));
        emit(func, overflow, Op::Builtin(Builtin::Throw), &[error], &[], &[Type::BOTTOM]);
        emit(func, overflow, Op::Unreachable, &[], &[], &[]);
        if let Some(end) = func.terminator(entry) {
            func.set_inst_blocks(end, &[check]);
        }
        func.add_phi_edge(left, entry, most);
        Some((Counter { left, less }, check))
    }

    /// Counts the jump from `block`.
    pub(super) fn add_jump(&self, func: &mut Func, block: Block) {
        func.add_phi_edge(self.left, block, self.less);
    }
}
