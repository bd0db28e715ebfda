//! Bodies for the constants and types of a call: a body that is too expensive in general may be cheap for one call.
//!
//! ```text
//! function power(x, n)                            power(x, 2), after the passes
//!     n == 0 && return one(x)                         mul_float(x, x)
//!     n == 2 && return x * x              ==>
//!     … a loop …
//!
//! function next(x::Any)                           next(%1::Int64)
//!     isa(x, Int64) && return add_int(x, 1)           add_int(%1, 1)
//!     isa(x, Float64) && …                    ==>
//!     … a call for the rest …
//! ```
//!
//! A body that costs more than the threshold, and in which constants or types decide a branch, is copied, the constants of the call replace the parameters,
//! parameters with a narrower type here are asserted to be of it, and the passes that infer, fold and clean run over it. If it is cheap enough then, the call takes this
//! body. One that types have made less than half as dear may cost [`TYPED`] times the threshold, unless it calls itself: its loops run without tests and boxes. It is
//! copied at most [`MAX_COPIES`] times into one function.
//!
//! Copies are cached by callee, constants and types. At most [`MAX_SPECIAL`] are made for one function, of bodies of at most [`MAX_INSTS`] or [`MAX_TYPED_INSTS`]
//! instructions, so the work is bounded for every program. An unused copy is dropped: no function gets another name.

use super::cost::full_cost;
use crate::callgraph::callees;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::passes::{dce, infer, inst_simplify, sccp, simplify_cfg};
use crate::replace::Replacements;
use crate::scope::{Cx, PassScope, Step, Visit};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::{Func, FuncId, Op, Type, Value};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::rc::Rc;

/// Copies that are made for one function. Each costs a run of some passes.
const MAX_SPECIAL: usize = 16;

/// Longer bodies rarely fold to something small, and cost more to try.
const MAX_INSTS: usize = 400;

/// The limit where types decide a test: each such test removes several paths.
const MAX_TYPED_INSTS: usize = 800;

/// The most values that are examined for a condition.
const MAX_STEPS: u32 = 12;

/// Passes that follow the types, fold the constants and remove unreachable code.
const PASSES: [&Pass; 7] = [
    &sccp::PASS,
    &infer::PASS,
    &inst_simplify::PASS,
    &simplify_cfg::PASS,
    &inst_simplify::PASS,
    &simplify_cfg::PASS,
    &dce::PASS,
];

/// How many times the threshold a body may cost that types have made less than half as dear.
const TYPED: u32 = 4;

/// How often such a body is copied into one function.
const MAX_COPIES: u32 = 2;

/// A body for some operands.
pub(super) struct Special {
    pub(super) func: Func,
    pub(super) cost: u32,
    pub(super) size: usize,
    /// The cost in general, for a body that types decide and that does not call itself.
    general: Option<u32>,
    /// How often it has been copied.
    pub(super) copies: Cell<u32>,
}

impl Special {
    /// Whether the body is worth more than the threshold: its tests and calls for other operands are gone.
    pub(super) fn is_worth_more(&self, threshold: u32) -> bool {
        self.general.is_some_and(|general| 2 * self.cost <= general)
            && self.cost <= TYPED * threshold
            && self.copies.get() < MAX_COPIES
    }
}

/// The operand of a call, as far as it is known.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Known {
    /// No more than the parameter's type.
    Nothing,
    Const(Const),
    /// A type below the parameter's that has no subtypes.
    Type(Type),
}

/// The operands of a call, by parameter.
type Key = (FuncId, Vec<Known>);

#[derive(Default)]
pub(super) struct Specials(FxHashMap<Key, Option<Rc<Special>>>);

impl Specials {
    /// The body of `id` for a call with these operands, if enough is known of them and the body is worth it.
    pub(super) fn get(
        &mut self,
        cx: &PassCx<'_>,
        id: FuncId,
        caller: &Func,
        operands: &[Value],
    ) -> Option<Rc<Special>> {
        let callee = &cx.module[id];
        if callee.sig.vararg || operands.len() != callee.params().len() {
            return None;
        }
        let known = |(n, &value): (usize, &Value)| {
            let (ty, declared) = (caller.ty(value), callee.ty(callee.params()[n]));
            match caller.as_const(value) {
                // The function object is known to the callee by its type.
                Some(found @ (Const::Bits { .. } | Const::Type { .. })) if n > 0 => {
                    Known::Const(found.clone())
                }
                _ if n > 0
                    && ty != declared
                    && cx.types().is_concrete(ty)
                    && cx.types().is_subtype(ty, declared) =>
                {
                    Known::Type(ty)
                }
                _ => Known::Nothing,
            }
        };
        let constants: Vec<Known> = operands.iter().enumerate().map(known).collect();
        if constants.iter().all(|known| *known == Known::Nothing) {
            return None;
        }
        let is_typed = decide_a_test(cx, callee, &constants);
        if !is_typed && !decide_a_branch(callee, &constants) {
            return None;
        }
        let key = (id, constants);
        if let Some(made) = self.0.get(&key) {
            return made.clone();
        }
        if self.0.len() >= MAX_SPECIAL {
            return None;
        }
        let special = make(cx, id, &key.1, is_typed).map(Rc::new);
        self.0.insert(key, special.clone());
        special
    }
}

/// Whether some branch tests nothing but constants and parameters that are known: without one no path through the body is
/// removed, and it stays about as expensive.
fn decide_a_branch(callee: &Func, constants: &[Known]) -> bool {
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
                Some(n) if matches!(constants[n], Known::Const(_)) => uses_known = true,
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

/// Whether some type test is of a parameter for which the call has a narrower type than the callee.
fn decide_a_test(cx: &PassCx<'_>, callee: &Func, known: &[Known]) -> bool {
    let narrows = |n: usize| match known[n] {
        Known::Type(_) => true,
        Known::Const(_) => !cx.types().is_concrete(callee.ty(callee.params()[n])),
        Known::Nothing => false,
    };
    let is_known = |value: Value| callee.params().iter().position(|&p| p == value).is_some_and(narrows);
    let mut insts = callee.blocks().flat_map(|block| callee.block_insts(block));
    insts.any(|inst| {
        callee.op(inst) == Op::Builtin(Builtin::Isa)
            && callee.args(inst).first().is_some_and(|&v| is_known(v))
    })
}

fn make(cx: &PassCx<'_>, id: FuncId, constants: &[Known], is_typed: bool) -> Option<Special> {
    let (callee, limits) = (&cx.module[id], &cx.options.inline);
    let size: usize = callee.blocks().map(|b| callee.block_insts(b).count()).sum();
    if size > if is_typed { MAX_TYPED_INSTS } else { MAX_INSTS } {
        return None;
    }
    let is_typed = is_typed && !callees(cx.module, callee).contains(&id);
    let general = if is_typed { full_cost(callee, cx.types(), limits) } else { None };
    let mut func = callee.clone();
    let mut values = Replacements::default();
    let first = func.first_inst(func.entry()?)?;
    let mut asserted = Vec::new();
    for (n, known) in constants.iter().enumerate() {
        let param = func.params()[n];
        match known {
            Known::Nothing => {}
            Known::Const(constant) => values.set(param, func.constant(constant.clone())),
            Known::Type(ty) => {
                let pi = func.make_inst(Op::Pi, &[param], &[], &[*ty]);
                func.set_place(pi, func.place(first));
                values.set(param, func.result(pi)?);
                asserted.push(pi);
            }
        }
    }
    values.apply(&mut func, cx.context());
    // After the replacement: these read the parameters themselves.
    for pi in asserted {
        func.insert_before(pi, first);
    }
    let steps: Vec<Step> = PASSES
        .into_iter()
        .filter(|pass| pass.level.takes(func.level))
        .map(|pass| Step { label: pass.name, pass, visit: Visit::Always, is_extra: false })
        .collect();
    PassScope::run(cx.module, &mut func, &steps, &Options::default(), &mut Cx::default()).ok()?;
    let (cost, size) = full_cost(&func, cx.types(), limits)?;
    Some(Special { func, cost, size, general: general.map(|(cost, _)| cost), copies: Cell::new(0) })
}
