//! Permits reordering of reductions in loops that are marked `@simd`.
//!
//! ```text
//! h: %s = φ (p => 0.0, l => %t)                   h: %s = φ (p => 0.0, l => %t)
//!    %u = add_float(%s, x)             ==>           %u = add_float_fast(%s, x)
//!    %t = add_float(%u, y)                           %t = add_float_fast(%u, y)
//! l: $(Expr(:loopinfo, julia.simdloop))           l: $(Expr(:loopinfo, julia.simdloop))
//! ```
//!
//! The mark permits any order of the operations of a *reduction*: the chain of one operation, `+`
//! or `*` of floats, from a φ of the head back to it, whose parts have no other use in the loop. Nothing else becomes fast, so that
//! the other values of an iteration are unchanged (Julia's `LowerSIMDLoop`). A chain with the constant zero stays: fast, `x * 0.0` is zero for a NaN
//! too and `x + 0.0` is `x` for -0.0, which is more than another order. `vectorize` and `reassociate` use the permission.
//!
//! The mark is in a block of its loop, the innermost one there. The note `julia.ivdep`, which promises
//! that iterations do not depend on each other through memory, is not needed: `vectorize` tests for that.
//!
//! Cost: one visit to each instruction; the φ of marked loops and their chains, each of at most [`MAX_CHAIN`] operations.

use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::analysis::{Loop, Loops, Uses};
use brolga_ir::func::MetaItem;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Types, Value};
use rustc_hash::FxHashSet;

pub(crate) const PASS: Pass =
    Pass::new("simd-loop", PassLevel::High, run).needs(&[Fact::Cfg, Fact::Loops, Fact::Uses]);

/// The note that `@simd` leaves.
const MARK: &str = "julia.simdloop";
/// Longer chains are left in order.
const MAX_CHAIN: usize = 64;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    for l in marked(func, cx.types(), loops) {
        let header = loops.header(l);
        for phi in head_phis(func, header).collect::<Vec<_>>() {
            let back = func.phi_edges(phi).filter(|(b, _)| loops.latches(cfg, l).any(|latch| latch == *b));
            let ends: Vec<Value> = back.map(|(_, v)| v).collect();
            let &[end] = &ends[..] else { continue };
            let Some((op, chain)) = chain(func, cx.types(), loops, uses, l, phi, end) else { continue };
            if !cx.spend("reductions") {
                return cx.changed();
            }
            for inst in chain {
                let args = func.args(inst).to_vec();
                func.set_op(inst, Op::Intrinsic(op), &args);
            }
        }
    }
    cx.changed()
}

/// Whether the function has any marks.
pub(crate) fn may_find(func: &Func) -> bool {
    func.metas().next().is_some()
}

/// The loops with the mark, in the order of the blocks that have it.
fn marked(func: &Func, types: &Types, loops: &Loops) -> Vec<Loop> {
    let is_mark = |item: &MetaItem| match *item {
        MetaItem::Name(name) => types.names().text(name) == MARK,
        _ => false,
    };
    let has_mark = |block: Block| {
        func.block_insts(block).any(|inst| match func.op(inst) {
            Op::LoopInfo(meta) => func.meta(meta).items.iter().any(is_mark),
            _ => false,
        })
    };
    let mut seen = FxHashSet::default();
    let marked = func.blocks().filter(|&block| has_mark(block)).filter_map(|block| loops.loop_of(block));
    marked.filter(|&l| seen.insert(l)).collect()
}

/// The operations from the end of an iteration back to the φ, and their replacements.
fn chain(
    func: &Func,
    types: &Types,
    loops: &Loops,
    uses: &Uses,
    l: Loop,
    phi: Inst,
    end: Value,
) -> Option<(Intrinsic, Vec<Inst>)> {
    let start = func.result(phi)?;
    let inside = |inst: Inst| func.inst_block(inst).is_some_and(|b| loops.contains(l, b));
    let used_once = |v: Value, by: Inst| uses.of(v).iter().filter(|u| inside(u.inst)).all(|u| u.inst == by);
    let (mut at, mut by, mut chain, mut kind) = (end, phi, Vec::new(), None);
    while at != start {
        let inst = func.def_inst(at).filter(|&i| inside(i))?;
        let fast = match func.op(inst) {
            Op::Intrinsic(Intrinsic::AddFloat | Intrinsic::AddFloatFast) => Intrinsic::AddFloatFast,
            Op::Intrinsic(Intrinsic::MulFloat | Intrinsic::MulFloatFast) => Intrinsic::MulFloatFast,
            _ => return None,
        };
        if *kind.get_or_insert(fast) != fast || !used_once(at, by) || chain.len() == MAX_CHAIN {
            return None;
        }
        chain.push(inst);
        let &[a, b] = func.args(inst) else { return None };
        if is_zero(func, types, a) || is_zero(func, types, b) {
            return None;
        }
        let leads = |v: Value| {
            v == start || func.def_inst(v).is_some_and(|i| inside(i) && func.op(i) == func.op(inst))
        };
        // The operand that depends on the φ; if both may, the first, and if that is wrong there is no chain.
        (at, by) = (if a == start || (leads(a) && b != start) { a } else { b }, inst);
        if !leads(at) {
            return None;
        }
    }
    let kind = kind?;
    used_once(start, by).then_some((kind, chain))
}

/// Whether a value is the constant 0.0 or -0.0.
fn is_zero(func: &Func, types: &Types, value: Value) -> bool {
    let bits = types.primitive(func.ty(value)).zip(func.as_bits(value));
    bits.is_some_and(|((width, _), bits)| bits & !(1 << (width - 1)) == 0)
}
