//! Replaces calls by the bodies of the functions that they call.
//!
//! ```text
//! %1 = invoke square(x)     ==>   %1 = mul_int(x, x)
//! ```
//!
//! **Which.** An `invoke` whose method has a body in the module, if that body costs at most the threshold of Julia's model
//! (`inline/cost.rs`; a fifth of it where the call is rarely reached by the branch weights), has no handlers of its own, and takes exactly the operands of
//! the call. A body that costs too much may be cheap for the constants or types of a call (`inline/specialise.rs`). A host's functions are functions
//! of the module like any other.
//!
//! **Hints** ([`Inlining`]), first the call's, then its callee's:
//!
//! | hint | body |
//! |---|---|
//! | `noinline` | is not copied, and not specialised for constants or types |
//! | `inline` | is copied at any cost and however rarely the call is reached; all other rules here apply to it |
//!
//! **How far.** Calls in a copied body are visited in the next iteration, `MAX_DEPTH` iterations deep. A function is never
//! inlined into itself or into its own copy: each call keeps the chain of functions that it came through. The total growth
//! is bounded by `MAX_GROWTH` times the function or `FREE_GROWTH`, whichever is more.
//!
//! Bodies are those in the module. Optimising a module callees first ([`bottom_up`](crate::callgraph)) yields optimised
//! bodies, and each is then small and visited once.
//!
//! Phases of an iteration. 1 copy bodies, last call of a block first, so that the instructions after a call move once. 2 one
//! sweep for the results of calls and for φ that name a block whose terminator has moved.
//!
//! Cost: linear in the added code plus the function, for each iteration. Breaks every fact. Not done: cold blocks inside a body that has just
//! been copied.

pub(crate) mod copy;
pub(super) mod cost;
mod specialise;

use crate::callgraph::own_id;
use crate::facts::Fact;
use crate::heads::rename_phi_blocks;
use crate::likely::ColdBlocks;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::func::CalleeData;
use brolga_ir::hints::Inlining;
use brolga_ir::{Block, Func, FuncId, Inst, Level, Op, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashMap;
use specialise::{Special, Specials};
use std::rc::Rc;

pub(crate) const PASS: Pass = Pass::new("inline", PassLevel::High, run).breaks(&[Fact::Cfg, Fact::Uses]);

/// Deeper nests of small functions occur in iterator code; beyond this the gain of removing one more call is small compared
/// with the cost of the outer ones.
const MAX_DEPTH: usize = 12;

/// A function may become this many times as large: compile time grows with it, and caches are finite.
const MAX_GROWTH: usize = 8;

/// Small functions may grow to this many instructions from any size.
const FREE_GROWTH: usize = 2000;

/// A call, and the function whose body brought it in.
#[derive(Clone, Copy)]
struct Call {
    inst: Inst,
    /// The last link of its chain.
    link: Option<u32>,
}

/// A function that was inlined, and the link of the call that it replaced.
struct Link {
    func: FuncId,
    above: Option<u32>,
}

/// How a call is inlined.
struct Decision {
    id: FuncId,
    /// The body to take instead of the callee's own.
    special: Option<Rc<Special>>,
    operands: Vec<Value>,
    /// The type of the call's result.
    result: Type,
}

struct Inliner {
    links: Vec<Link>,
    specials: Specials,
    /// By function: what its body costs and how many instructions it has; `None` if it is never inlined without a hint.
    bodies: FxHashMap<FuncId, Option<(u32, usize)>>,
    /// By function that a hint requests: how many instructions its body has; `None` if it is never inlined.
    wanted: FxHashMap<FuncId, Option<usize>>,
    /// How many more instructions may be added.
    room: usize,
    /// The blocks of the function that are hardly ever entered.
    cold: ColdBlocks,
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let calls = calls_of(func);
    if calls.is_empty() {
        return Changed::No;
    }
    let size: usize = func.blocks().map(|b| func.block_insts(b).count()).sum();
    let cfg = Cfg::compute(func);
    let mut inliner = Inliner {
        cold: ColdBlocks::by_weights(func, &cfg, &Rpo::compute(&cfg)),
        links: Vec::new(),
        specials: Specials::default(),
        bodies: FxHashMap::default(),
        wanted: FxHashMap::default(),
        room: (size * (MAX_GROWTH - 1)).max(FREE_GROWTH.saturating_sub(size)),
    };
    // The function itself is the end of every chain.
    let link = own_id(cx.module, func).map(|id| inliner.link(id, None));
    let mut calls: Vec<Call> = calls.into_iter().map(|inst| Call { inst, link }).collect();
    for _ in 0..MAX_DEPTH {
        calls = inliner.iteration(func, cx, &calls);
        if calls.is_empty() {
            break;
        }
    }
    cx.changed()
}

/// The calls of a function, the last of each block first.
fn calls_of(func: &Func) -> Vec<Inst> {
    let insts = func.blocks().flat_map(|b| func.block_insts(b));
    let mut calls: Vec<Inst> = insts.filter(|&i| matches!(func.op(i), Op::Invoke(_))).collect();
    calls.reverse();
    calls
}

impl Inliner {
    fn link(&mut self, func: FuncId, above: Option<u32>) -> u32 {
        self.links.push(Link { func, above });
        self.links.len() as u32 - 1
    }

    /// Whether a call came through this function.
    fn is_recursive(&self, call: Call, id: FuncId) -> bool {
        let up = |&link: &u32| self.links[link as usize].above;
        std::iter::successors(call.link, up).any(|link| self.links[link as usize].func == id)
    }

    /// Inlines the calls of `calls` that it can and returns the calls that were copied in.
    fn iteration(&mut self, func: &mut Func, cx: &mut PassCx<'_>, calls: &[Call]) -> Vec<Call> {
        let mut new_calls = Vec::new();
        let mut results = Replacements::default();
        let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
        let mut cut = false;
        for &call in calls {
            let Some(Decision { id, special, operands, result }) = self.decide(func, cx, &mut results, call)
            else {
                continue;
            };
            if !cx.spend("inlined calls") {
                break;
            }
            if let Some(special) = &special {
                special.copies.set(special.copies.get() + 1);
                cx.count("specialised", 1);
            }
            let callee = special.as_ref().map_or(&cx.module[id], |special| &special.func);
            let args = collect_rest(func, cx, callee, call.inst, operands);
            let (home, call_result) = (func.inst_block(call.inst), func.result(call.inst));
            let Some(copied) = copy::copy_body(func, callee, cx.context(), call.inst, &args, result) else {
                continue;
            };
            self.room = self.room.saturating_sub(copied.insts);
            cx.inlined(id);
            if let Some(old) = call_result {
                let value = copied.result.unwrap_or_else(|| func.constant(Const::Undef(result)));
                results.set(old, value);
            }
            // The first cut is after the last call, and only it moves the terminator.
            if let (Some(home), Some(tail)) = (home, copied.tail)
                && ends[home].is_none()
            {
                ends[home] = tail.into();
                cut = true;
            }
            if !copied.calls.is_empty() {
                let link = Some(self.link(id, call.link));
                new_calls.extend(copied.calls.iter().rev().map(|&inst| Call { inst, link }));
            }
        }
        results.apply(func, cx.context());
        if cut {
            rename_phi_blocks(func, &ends);
        }
        new_calls
    }

    /// How a call is to be inlined, if it is.
    fn decide(
        &mut self,
        func: &Func,
        cx: &PassCx<'_>,
        results: &mut Replacements,
        call: Call,
    ) -> Option<Decision> {
        let Op::Invoke(callee) = func.op(call.inst) else { return None };
        let data = func.callee(callee);
        let CalleeData::Method { function, args, .. } = data else { return None };
        let id = cx.module.find_method(*function, args)?;
        let result = func.result(call.inst).map(|v| func.ty(v))?;
        let callee = &cx.module[id];
        if callee.level != Level::High || callee.entry().is_none() || self.is_recursive(call, id) {
            return None;
        }
        let (types, limits) = (cx.types(), &cx.options.inline);
        copy::bound_statics(callee, types, data)?;
        let operands: Vec<Value> = func.args(call.inst).iter().map(|&v| results.resolve(v)).collect();
        let mut special = None;
        let size = match asked(func, call.inst, callee) {
            Some(Inlining::Never) => return None,
            Some(Inlining::Always) => {
                (*self.wanted.entry(id).or_insert_with(|| cost::body_size(callee, types, limits)))?
            }
            None => {
                let body = self.bodies.entry(id).or_insert_with(|| cost::body_cost(callee, types, limits));
                let is_cold = func.inst_block(call.inst).is_some_and(|block| self.cold.has(block));
                let threshold =
                    if is_cold { limits.cold_threshold } else { cost::threshold(types, result, limits) };
                let given: Vec<Type> = operands.iter().map(|&v| func.ty(v)).collect();
                let here = || cost::body_cost_of(callee, types, limits, &given);
                let fits = |&(cost, _): &(u32, usize)| cost <= threshold;
                match body.filter(fits).or_else(|| here().filter(fits)) {
                    Some((_, size)) => size,
                    None => {
                        let found = self.specials.get(cx, id, func, &operands);
                        let is_taken =
                            |s: &Rc<Special>| s.cost <= threshold || !is_cold && s.is_worth_more(threshold);
                        special.insert(found.filter(is_taken)?).size
                    }
                }
            }
        };
        if size > self.room {
            return None;
        }
        let fits = takes(cx, callee, func, &operands) && gives(cx, callee, result);
        fits.then_some(Decision { id, special, operands, result })
    }
}

/// The inlining hint of a call, which overrides the callee's.
pub(super) fn asked(func: &Func, call: Inst, callee: &Func) -> Option<Inlining> {
    func.call_inlining(call).or(callee.inlining)
}

/// Whether the operands of a call match the callee's parameters.
pub(super) fn takes(cx: &PassCx<'_>, callee: &Func, func: &Func, operands: &[Value]) -> bool {
    let types = cx.types();
    let params = &callee.sig.params;
    let fixed = params.len() - usize::from(callee.sig.vararg);
    let count_fits = if callee.sig.vararg { operands.len() >= fixed } else { operands.len() == params.len() };
    count_fits
        && operands[..fixed].iter().zip(params).all(|(&v, p)| types.is_subtype(func.ty(v), p.ty))
        && (!callee.sig.vararg
            || rest_type(cx, func, &operands[fixed..])
                .is_some_and(|ty| types.is_subtype(ty, params[fixed].ty)))
}

/// Whether everything that the callee returns has the type of the call's result.
pub(super) fn gives(cx: &PassCx<'_>, callee: &Func, result: Type) -> bool {
    let types = cx.types();
    let declared = callee.sig.results.first().is_some_and(|&ty| types.is_subtype(ty, result));
    declared
        || callee
            .blocks()
            .filter_map(|b| callee.terminator(b))
            .filter(|&t| callee.op(t) == Op::Return)
            .all(|t| callee.args(t).first().is_some_and(|&v| types.is_subtype(callee.ty(v), result)))
}

/// The type of the tuple of the operands that a collecting parameter takes.
fn rest_type(cx: &PassCx<'_>, func: &Func, rest: &[Value]) -> Option<Type> {
    let elems: Vec<Type> = rest.iter().map(|&v| func.ty(v)).collect();
    // Elements of abstract types make a tuple whose type is only known at run time.
    let known = elems.iter().all(|&ty| cx.types().is_concrete(ty));
    if known { cx.types().tuple_of_values(&elems).ok() } else { None }
}

/// The values of the callee's parameters: what a collecting one takes becomes a tuple before the call.
fn collect_rest(
    func: &mut Func,
    cx: &PassCx<'_>,
    callee: &Func,
    call: Inst,
    mut operands: Vec<Value>,
) -> Vec<Value> {
    if callee.sig.vararg {
        let rest = operands.split_off(callee.sig.params.len() - 1);
        if let Some(ty) = rest_type(cx, func, &rest) {
            let tuple = func.make_inst(Op::Builtin(Builtin::Tuple), &rest, &[], &[ty]);
            func.set_place(tuple, func.place(call));
            func.insert_before(tuple, call);
            operands.extend(func.result(tuple));
        }
    }
    operands
}
