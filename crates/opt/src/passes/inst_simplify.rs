//! Replaces single instructions by simpler ones or by values that exist already, by the rules of `rules/`.
//!
//! ```text
//! %2 = add_int(%1, 3)            %2 = add_int(%1, 3)
//! %3 = sub_int(%2, 2)       ==>  %3 = add_int(%1, 1)
//! %4 = (%3 === %3)               true for every use of %4
//! ```
//!
//! Blocks are visited in reverse postorder, so operands are simplified before their uses; only a φ of a loop is visited before
//! its operands, so there is a second iteration if they changed. Every rule is tried on an
//! instruction again after one has applied, at most `MAX_STEPS` times.
//!
//! Nothing is inserted, so the function never grows. An operand that loses its last use stays, for `dce`.
//!
//! Cost: at most two visits to every instruction and its operands. Needs the order of blocks; breaks the uses.

use crate::facts::Fact;
use crate::heads::leave_head;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::refit::assert_type;
use crate::replace::Replacements;
use crate::rules::{Rewrite, Site, simplify};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, Func, Inst, Level, Op, Type, Value};

pub(crate) const PASS: Pass =
    Pass::new("inst-simplify", PassLevel::Both, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// Whether a loop of the function may have a number that is made of a comparison with a constant: a quick look for the run
/// after `reassociate`, which makes tests of bits.
pub(crate) fn may_find(func: &Func) -> bool {
    let compares = |value: Value| {
        let op = func.def_inst(value).map(|inst| func.op(inst));
        matches!(op, Some(Op::Intrinsic(Intrinsic::EqInt | Intrinsic::NeInt)))
    };
    let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
    insts.any(|inst| {
        func.op(inst) == Op::Intrinsic(Intrinsic::ZextInt) && func.args(inst).iter().any(|&of| compares(of))
    })
}

/// The first iteration sees all operands except φ operands over back edges; the second sees those.
const MAX_ITERATIONS: usize = 2;

/// Rules get simpler with every step, so they end on their own; chains longer than this do not occur.
const MAX_STEPS: usize = 8;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    for _ in 0..MAX_ITERATIONS {
        let mut values = Replacements::default();
        let done = iteration(func, cx, &mut values);
        // Instructions that were visited after their operands have new ones already, so this finds the operands over back
        // edges.
        let from_behind = values.apply(func, cx.context());
        if done == Fuel::Empty || !from_behind {
            break;
        }
    }
    cx.changed()
}

/// Whether there was fuel for all rewrites.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fuel {
    Left,
    Empty,
}

fn iteration(func: &mut Func, cx: &mut PassCx<'_>, values: &mut Replacements) -> Fuel {
    let facts = cx.facts;
    for &block in facts.rpo().blocks() {
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            values.apply_to(func, cx.context(), inst);
            if simplify_inst(func, cx, values, inst) == Fuel::Empty {
                return Fuel::Empty;
            }
        }
    }
    Fuel::Left
}

fn simplify_inst(func: &mut Func, cx: &mut PassCx<'_>, values: &mut Replacements, inst: Inst) -> Fuel {
    let facts = cx.facts;
    for _ in 0..MAX_STEPS {
        let result = func.results(inst).next();
        let ty = result.map_or(Type::BOTTOM, |v| func.ty(v));
        let mut site = Site { func, types: cx.types(), cfg: facts.cfg(), inst, ty };
        let Some((family, rewrite)) = simplify(&mut site) else { break };
        let rewrite = match rewrite {
            Rewrite::Value(value) if !cx.types().is_subtype(func.ty(value), ty) => {
                // A result may be asserted to be narrower than the operation's result. The assertion stays.
                if func.level == Level::Low || result.is_none() {
                    break;
                }
                if func.op(inst) == Op::Phi && !leave_head(func, inst) {
                    break;
                }
                Rewrite::Op(Op::Pi, vec![value])
            }
            other => other,
        };
        if !cx.spend(family) {
            return Fuel::Empty;
        }
        let found: [Option<_>; 2] = match rewrite {
            Rewrite::Op(Op::Pi, args) => {
                let (op, args) = assert_type(func, cx.types(), args[0], ty);
                func.set_inst_blocks(inst, &[]);
                func.set_op(inst, op, &args);
                continue;
            }
            Rewrite::Op(op, args) => {
                func.set_inst_blocks(inst, &[]);
                func.set_op(inst, op, &args);
                continue;
            }
            Rewrite::Value(value) => [Some(value), None],
            Rewrite::Values(first, second) => [Some(first), Some(second)],
            // Its result is never used.
            Rewrite::Nothing => [Some(func.constant(Const::Undef(ty))), None],
        };
        for (result, value) in func.results(inst).zip(found) {
            if let Some(value) = value {
                values.set(result, value);
            }
        }
        func.remove_inst(inst);
        break;
    }
    Fuel::Left
}
