//! Bodies with constants for some of their parameters: a body that is too expensive in general may be cheap for one call.
//!
//! ```text
//! function power(x, n)                            power(x, 2), after the passes
//!     n == 0 && return one(x)                         mul_float(x, x)
//!     n == 2 && return x * x              ==>
//!     … a loop …
//! ```
//!
//! A body that costs more than the threshold, and in which the constants decide a branch, is copied, the constants of the call replace the parameters,
//! and the passes that fold and clean run over it. If it is cheap enough then, the call takes this body. Copies are cached by callee and
//! constants. At most [`MAX_SPECIAL`] are made for one function, of bodies of at most [`MAX_INSTS`] instructions, so the work is bounded
//! for every program. An unused copy is dropped: no function gets another name.

use super::cost::body_cost;
use crate::options::{InlineLimits, Options};
use crate::pass::{Pass, PassCx};
use crate::passes::{dce, inst_simplify, sccp, simplify_cfg};
use crate::replace::Replacements;
use crate::scope::{Cx, PassScope, Step, Visit};
use brolga_ir::constant::Const;
use brolga_ir::{Func, FuncId, Op, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Copies that are made for one function. Each costs a run of some passes.
const MAX_SPECIAL: usize = 16;

/// Longer bodies rarely fold to something small, and cost more to try.
const MAX_INSTS: usize = 400;

/// The most values that are examined for a condition.
const MAX_STEPS: u32 = 12;

/// Passes that fold the constants and remove unreachable code.
const PASSES: [&Pass; 6] = [
    &sccp::PASS,
    &inst_simplify::PASS,
    &simplify_cfg::PASS,
    &inst_simplify::PASS,
    &simplify_cfg::PASS,
    &dce::PASS,
];

/// A body for some constants.
pub(super) struct Special {
    pub(super) func: Func,
    pub(super) cost: u32,
    pub(super) size: usize,
}

/// The constants of a call, by parameter.
type Key = (FuncId, Vec<Option<Const>>);

#[derive(Default)]
pub(super) struct Specials(FxHashMap<Key, Option<Rc<Special>>>);

impl Specials {
    /// The body of `id` for a call with these operands, if they hold constants and the body is worth it.
    pub(super) fn get(
        &mut self,
        cx: &PassCx<'_>,
        id: FuncId,
        caller: &Func,
        operands: &[Value],
    ) -> Option<Rc<Special>> {
        let callee = &cx.module[id];
        // The function object is known to the callee by its type.
        let known = |(n, &value): (usize, &Value)| {
            caller
                .as_const(value)
                .filter(|c| n > 0 && matches!(c, Const::Bits { .. } | Const::Type { .. }))
                .cloned()
        };
        let constants: Vec<Option<Const>> = operands.iter().enumerate().map(known).collect();
        if callee.sig.vararg
            || constants.len() != callee.params().len()
            || constants.iter().all(Option::is_none)
        {
            return None;
        }
        if !decide_a_branch(callee, &constants) {
            return None;
        }
        let key = (id, constants);
        if let Some(made) = self.0.get(&key) {
            return made.clone();
        }
        if self.0.len() >= MAX_SPECIAL {
            return None;
        }
        let special = make(cx, callee, &key.1, &cx.options.inline).map(Rc::new);
        self.0.insert(key, special.clone());
        special
    }
}

/// Whether some branch tests nothing but constants and parameters that are known: without one no path through the body is
/// removed, and it stays about as expensive.
fn decide_a_branch(callee: &Func, constants: &[Option<Const>]) -> bool {
    let param = |value: Value| callee.params().iter().position(|&p| p == value);
    let conditions =
        callee.blocks().filter_map(|b| callee.terminator(b)).filter_map(|t| match callee.op(t) {
            Op::Branch => callee.args(t).first().copied(),
            _ => None,
        });
    conditions.into_iter().any(|condition| {
        let (mut work, mut steps, mut uses_known) = (vec![condition], 0, false);
        while let Some(value) = work.pop() {
            steps += 1;
            match param(value) {
                Some(n) if constants[n].is_some() => uses_known = true,
                Some(_) => return false,
                None if callee.as_const(value).is_some() => {}
                None => {
                    let def = callee.def_inst(value).filter(|_| steps <= MAX_STEPS);
                    match def.map(|def| (callee.op(def), def)) {
                        Some((Op::Intrinsic(_) | Op::Builtin(_) | Op::Copy | Op::Pi, def)) => {
                            work.extend(callee.args(def));
                        }
                        _ => return false,
                    }
                }
            }
        }
        uses_known
    })
}

fn make(
    cx: &PassCx<'_>,
    callee: &Func,
    constants: &[Option<Const>],
    limits: &InlineLimits,
) -> Option<Special> {
    let size: usize = callee.blocks().map(|b| callee.block_insts(b).count()).sum();
    if size > MAX_INSTS {
        return None;
    }
    let mut func = callee.clone();
    let mut values = Replacements::default();
    for (n, constant) in constants.iter().enumerate() {
        let Some(constant) = constant else { continue };
        let (param, value) = (func.params()[n], func.constant(constant.clone()));
        values.set(param, value);
    }
    values.apply(&mut func, cx.context());
    let steps: Vec<Step> = PASSES
        .into_iter()
        .filter(|pass| pass.level.takes(func.level))
        .map(|pass| Step { label: pass.name, pass, visit: Visit::Always, is_extra: false })
        .collect();
    PassScope::run(cx.module, &mut func, &steps, &Options::default(), &mut Cx::default()).ok()?;
    let (cost, size) = body_cost(&func, cx.types(), limits)?;
    Some(Special { func, cost, size })
}
