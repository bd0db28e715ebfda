//! Combines equal operations on neighbours into vector operations.
//!
//! ```text
//! %1 = load(p)      %5 = load(p + 8)              %1 = load(p)::v128
//! %2 = load(q)      %6 = load(q + 8)              %2 = load(q)::v128
//! %3 = mul(%1, %2)  %7 = mul(%5, %6)      ==>     %3 = lanes(mul, f64x2, %1, %2)
//! %4 = add(s, %3)   %8 = add(t, %7)               %4 = lanes(add, f64x2, {s, t}, %3)
//!      store(r, %4)      store(r + 8, %8)              store(r, %4)
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `tree` | the scalars of each vector, their legality, and the gain |
//! | `emit` | the vectors |
//!
//! **Seeds.** Stores to neighbours, and φ of a loop's head whose next values are computed from neighbours: several
//! sums side by side. From there operands are followed as long as all lanes have the same operation; other operands are
//! gathered lane by lane, at a cost.
//!
//! **Correctness.** Each lane computes the same as its scalar, with the same operands. An access moves to the place
//! of the last one of its vector; nothing between may conflict with its bytes. A scalar with other uses is extracted from
//! its lane after the vector; if that is too late, there is no vector.
//!
//! Cost: at most [`MAX_SEEDS`] seeds in a block, with at most `tree::MAX_NODES` vectors each, and [`MAX_TREES`] in all; blocks of
//! more than [`MAX_BLOCK`] instructions are left alone. Breaks the uses. Not done: lanes of 8 and 16 bits, comparisons and choices, reductions of lanes
//! into one value, shuffles of loads, trees through several blocks.

mod emit;
mod tree;

use crate::alias::Aliases;
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::Uses;
use brolga_ir::lanes::Lanes;
use brolga_ir::{Block, Func, Inst, Op, Value};
use tree::{Place, Site, Tree};

pub(crate) const PASS: Pass = Pass::new("slp", PassLevel::Low, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// Starts in a block.
const MAX_SEEDS: usize = 32;
/// Trees in a function: the uses are counted again after each.
const MAX_TREES: u64 = 64;
/// Instructions in a block.
const MAX_BLOCK: usize = 400;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo) = (cx.facts.cfg(), cx.facts.rpo());
    let mut known = None;
    for &block in rpo.blocks() {
        let is_long = || func.block_insts(block).take(MAX_BLOCK + 1).count() > MAX_BLOCK;
        if func.is_cold(block) || is_long() || !may_have_seeds(func, block) {
            continue;
        }
        let (aliases, undefined, uses) = known.get_or_insert_with(|| {
            let aliases = Aliases::of(func, cx.types(), rpo);
            (aliases, MaybeUndefined::of(func, cfg, rpo), Uses::compute(func))
        });
        for seed in seeds(func, cx, aliases, block).into_iter().take(MAX_SEEDS) {
            let site = Site::of(func, cx.types(), cfg, aliases, uses, undefined, cx.options.cpu, block);
            let Some(tree) = Tree::of(&site, &seed) else { continue };
            if cx.rewrites() >= MAX_TREES || !cx.spend("vectors") {
                return cx.changed();
            }
            emit::emit(func, cx.context(), &tree);
            *uses = Uses::compute(func);
        }
    }
    cx.changed()
}

/// At least two accesses or two sums.
fn may_have_seeds(func: &Func, block: Block) -> bool {
    let stores = func.block_insts(block).filter(|&i| matches!(func.op(i), Op::Store(_))).take(2).count();
    let loops = func.successors(block).contains(&block);
    stores == 2 || loops && head_phis(func, block).take(2).count() == 2
}

/// Scalars that are to become a vector: stores to neighbours, or φ.
struct Seed {
    lanes: Lanes,
    members: Vec<Inst>,
    is_store: bool,
}

/// The lanes for a type, if vectors of it pay off.
fn lanes_of(func: &Func, value: Value) -> Option<Lanes> {
    let lanes = Lanes::of(func.ty(value).as_low()?)?;
    matches!(lanes, Lanes::F64x2 | Lanes::F32x4 | Lanes::I64x2 | Lanes::I32x4).then_some(lanes)
}

/// Stores first: their trees are the largest.
fn seeds(func: &Func, cx: &PassCx<'_>, aliases: &Aliases, block: Block) -> Vec<Seed> {
    let mut stores = Vec::new();
    let mut phis = Vec::new();
    for inst in func.block_insts(block) {
        match func.op(inst) {
            Op::Store(_) => {
                let place = Place::of(func, cx.types(), aliases, inst);
                stores.extend(lanes_of(func, func.args(inst)[1]).zip(place).map(|(l, p)| (l, p, inst)));
            }
            Op::Phi => {
                let next = func.phi_edges(inst).find(|&(from, _)| from == block).map(|(_, v)| v);
                let Some(next) = next.filter(|&v| func.result(inst) != Some(v)) else { continue };
                let place = first_load(func, cx, aliases, block, next, 4);
                phis.extend(lanes_of(func, next).zip(place).map(|(l, p)| (l, p, inst)));
            }
            _ => {}
        }
    }
    let mut found = neighbours(stores, true);
    found.extend(neighbours(phis, false));
    found
}

/// The place of a load that a value is computed from. Values of equal structure yield the same one of several loads, in any
/// order.
fn first_load(
    func: &Func,
    cx: &PassCx<'_>,
    aliases: &Aliases,
    block: Block,
    value: Value,
    steps: u32,
) -> Option<Place> {
    let inst = func.def_inst(value).filter(|&i| func.inst_block(i) == Some(block))?;
    match func.op(inst) {
        Op::Load(_) => Place::of(func, cx.types(), aliases, inst),
        Op::Intrinsic(_) if steps > 0 => {
            let from = |&arg: &Value| first_load(func, cx, aliases, block, arg, steps - 1);
            func.args(inst).iter().filter_map(from).min_by_key(|place| (place.base(), place.disp))
        }
        _ => None,
    }
}

/// Runs of neighbours, one for each lane.
fn neighbours(mut all: Vec<(Lanes, Place, Inst)>, is_store: bool) -> Vec<Seed> {
    all.sort_by_key(|&(lanes, place, inst)| (lanes, place.base(), place.disp.cast_signed(), inst));
    let mut seeds = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let (lanes, place, _) = all[at];
        let count = lanes.count() as usize;
        let run = all.get(at..at + count);
        let fits = run.is_some_and(|run| {
            run.iter().enumerate().all(|(n, (l, p, _))| *l == lanes && p.follows(&place, n as u64))
        });
        match run.filter(|_| fits) {
            Some(run) => {
                seeds.push(Seed { lanes, members: run.iter().map(|&(.., inst)| inst).collect(), is_store });
                at += count;
            }
            None => at += 1,
        }
    }
    seeds
}
