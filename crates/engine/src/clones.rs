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
//!
//! **No gain.** Of the code that was made, what equals the code of the base goes again ([`with_gain`]), unless it calls a version that stays.

use std::collections::{BTreeMap, BTreeSet};

use brolga_aot::image;
use brolga_codegen::compiled::{CompiledFunction, Symbol};
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

/// A constant of a version, with its name.
type Constant<'a> = (usize, &'a str, &'a [u8]);

/// The functions of versions whose code differs from the one that their base would run, and their callers, with the constants that they use. `bases` has the base of each
/// version; the first version is whole, and so is every version that `is_whole` names.
pub(crate) fn with_gain<'a>(
    functions: Vec<image::Compiled<'a>>,
    constants: Vec<Constant<'a>>,
    bases: &[usize],
    is_whole: impl Fn(usize) -> bool,
) -> (Vec<image::Compiled<'a>>, Vec<Constant<'a>>) {
    let by_name: BTreeMap<(usize, &str), &CompiledFunction> = functions
        .iter()
        .map(|known| ((known.version, known.function.name.as_str()), known.function))
        .collect();
    let of_name: BTreeMap<(usize, &str), &[u8]> =
        constants.iter().map(|&(version, name, bytes)| ((version, name), bytes)).collect();
    // Bases precede their versions.
    let constant = |mut version: usize, name: &'a str| loop {
        match of_name.get(&(version, name)) {
            None if version > 0 => version = bases[version].min(version - 1),
            found => return found.copied(),
        }
    };
    let mut kept: BTreeSet<(usize, &str)> = BTreeSet::new();
    for version in 1..bases.len() {
        let own = || functions.iter().filter(|known| known.version == version).map(|known| known.function);
        let base = bases[version].min(version - 1);
        // The version of a function that the base runs.
        let below = |name: &'a str| {
            let mut at = base;
            while at > 0 && !kept.contains(&(at, name)) {
                at = bases[at].min(at - 1);
            }
            at
        };
        let gains = |function: &&'a CompiledFunction| {
            let at = below(&function.name);
            is_whole(version)
                || by_name.get(&(at, function.name.as_str())).is_none_or(|known| *known != *function)
                || data_of(function).any(|name| constant(version, name) != constant(at, name))
        };
        let mut callers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for function in own() {
            for callee in function.symbols.iter().filter_map(|symbol| match symbol {
                Symbol::Function(name) => Some(name.as_str()),
                _ => None,
            }) {
                callers.entry(callee).or_default().push(&function.name);
            }
        }
        let mut pending: Vec<&str> = own().filter(gains).map(|function| function.name.as_str()).collect();
        let mut stays: BTreeSet<&str> = pending.iter().copied().collect();
        while let Some(callee) = pending.pop() {
            let callers = callers.get(callee).into_iter().flatten();
            pending.extend(callers.filter(|&&caller| stays.insert(caller)));
        }
        kept.extend(stays.into_iter().map(|name| (version, name)));
    }
    let stays = |known: &image::Compiled<'_>| {
        known.version == 0 || kept.contains(&(known.version, known.function.name.as_str()))
    };
    let functions: Vec<_> = functions.into_iter().filter(stays).collect();
    let used: BTreeSet<(usize, &str)> = functions
        .iter()
        .flat_map(|known| data_of(known.function).map(|name| (known.version, name)))
        .collect();
    let is_used = |&(version, name, _): &Constant<'_>| version == 0 || used.contains(&(version, name));
    (functions, constants.into_iter().filter(is_used).collect())
}

/// The names of the constants that a function refers to.
fn data_of(function: &CompiledFunction) -> impl Iterator<Item = &str> {
    function.symbols.iter().filter_map(|symbol| match symbol {
        Symbol::Data(name) => Some(name.as_str()),
        _ => None,
    })
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
