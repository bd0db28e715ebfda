//! Selects the functions of an image that have their own code for a target beyond the first.
//!
//! | kind | functions |
//! |---|---|
//! | loops | functions with a loop: they run long enough to benefit from better instructions |
//! | vectors | functions with vector values, if the target has a feature that its base lacks |
//! | math | functions with an operation that newer processors have as one instruction (multiply-add, rounding, counting bits), under the same condition |
//! | callers | direct and transitive callers of the functions above |
//!
//! Because callers are included, the code of a target calls the versions of that target by PC-relative calls, without a look-up. The price is
//! size: an indirect caller of a loop has code for each target.
//!
//! `clone_all` takes all functions. Cost: linear in the code and in the calls.

use std::collections::{BTreeMap, BTreeSet};

use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::func::CalleeData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, FuncId, LowType, Op, Value};

/// The kinds of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Kinds {
    has_loop: bool,
    has_vectors: bool,
    has_math: bool,
}

/// The kinds and callers of all functions of an image.
pub(crate) struct Clones {
    kinds: BTreeMap<FuncId, Kinds>,
    /// The callers of each function.
    callers: BTreeMap<FuncId, BTreeSet<FuncId>>,
}

impl Clones {
    /// Analyses low functions.
    pub(crate) fn new(cx: &Context, funcs: &BTreeMap<FuncId, Func>) -> Clones {
        let by_name: BTreeMap<&str, FuncId> =
            funcs.iter().map(|(&id, func)| (cx.names.text(func.name), id)).collect();
        let kinds = funcs.iter().map(|(&id, func)| (id, kinds_of(func))).collect();
        let mut callers: BTreeMap<FuncId, BTreeSet<FuncId>> = BTreeMap::new();
        for (&id, func) in funcs {
            for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
                let (Op::CallSymbol(callee) | Op::CFunction(callee)) = func.op(inst) else { continue };
                let CalleeData::Symbol { symbol, .. } = func.callee(callee) else { continue };
                if let Some(&callee) = by_name.get(cx.names.text(*symbol)) {
                    callers.entry(callee).or_default().insert(id);
                }
            }
        }
        Clones { kinds, callers }
    }

    /// The functions for a target: all, or the ones that benefit, and their callers. `is_richer` is set if the target has features that its
    /// base lacks.
    pub(crate) fn of_target(&self, clone_all: bool, is_richer: bool) -> BTreeSet<FuncId> {
        let gains = |kinds: &Kinds| kinds.has_loop || is_richer && (kinds.has_vectors || kinds.has_math);
        let mut cloned: BTreeSet<FuncId> =
            self.kinds.iter().filter(|(_, kinds)| clone_all || gains(kinds)).map(|(&id, _)| id).collect();
        let mut pending: Vec<FuncId> = cloned.iter().copied().collect();
        while let Some(callee) = pending.pop() {
            let callers = self.callers.get(&callee).into_iter().flatten();
            pending.extend(callers.filter(|&&caller| cloned.insert(caller)));
        }
        cloned
    }
}

fn kinds_of(func: &Func) -> Kinds {
    use Intrinsic::{
        CeilLlvm, CtlzInt, CtpopInt, CttzInt, FloorLlvm, FmaFloat, MuladdFloat, RintLlvm, TruncLlvm,
    };
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let goes_back = |(from, block): (usize, &brolga_ir::Block)| {
        cfg.succs(*block).iter().any(|&to| rpo.position(to).is_some_and(|to| to as usize <= from))
    };
    let is_math = |op| {
        let Op::Intrinsic(op) = op else { return false };
        matches!(
            op,
            CeilLlvm
                | CtlzInt
                | CtpopInt
                | CttzInt
                | FloorLlvm
                | FmaFloat
                | MuladdFloat
                | RintLlvm
                | TruncLlvm
        )
    };
    let is_vector = |value| matches!(func.ty(Value::from_u32(value)).as_low(), Some(LowType::V128));
    Kinds {
        has_loop: rpo.blocks().iter().enumerate().any(goes_back),
        has_vectors: (0..func.value_count() as u32).any(is_vector),
        has_math: func.blocks().flat_map(|block| func.block_insts(block)).any(|inst| is_math(func.op(inst))),
    }
}
