//! Fully unrolls loops with a small known number of iterations.
//!
//! ```text
//! p ─> h … l ─┬─> x                  p ─> h … l ─> h' … l' ─> h'' … l'' ─> x
//!      ^──────┘       3 iterations  ==>
//! ```
//!
//! The tests of the counter are removed, the counter becomes a constant in each iteration, and with it addresses and
//! conditions. Other exits stay in each iteration. Safepoints are removed: short work needs none, and callees have their
//! own.
//!
//! A loop is written out if it is innermost and the iterations together have at most [`MAX_SIZE`] instructions, [`MAX_SIZE_OF_FEW`] if they are at most
//! [`FEW_ITERATIONS`]. Loops around it are visited when the pass runs again: the straight code is then their body. The author of a loop may want it written out
//! at any size, or not at all (`loop_note.rs`).
//!
//! Cost: the copied instructions, at most [`MAX_GROWTH`] in a function. Breaks the graph. Not done: peeling single iterations.

use crate::counted::{self, Counted};
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::loop_copy::{
    Copied, Escapes, Polls, carried, chain, copy_blocks, drop_pred, is_copyable, join_iterations, make_jump,
    retarget, split_edge,
};
use crate::loop_note::{LoopNote, Unrolling};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo};
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Block, Func, Inst, Op, Types, Value};

pub(crate) const PASS: Pass = Pass::new("unroll-full", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// Twice the size of a small function; the first-level instruction cache holds a hundred such loops.
const MAX_SIZE: u64 = 128;
/// With two or three iterations a test is a large part of the cost, and a neighbourhood of nine cells has two such loops.
const FEW_ITERATIONS: u64 = 3;
const MAX_SIZE_OF_FEW: u64 = 256;
/// Unrolling many iterations that only count gains nothing: a cheap loop is predicted well.
const MAX_ITERATIONS: u64 = 16;
/// How many instructions all copies together may have.
const MAX_GROWTH: u64 = 2000;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    let mut repair = Repair::default();
    let mut growth = 0;
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some((counted, iterations, size)) = candidate(func, cx.types(), cfg, loops, l) else { continue };
        if growth + size * (iterations - 1) > MAX_GROWTH {
            continue;
        }
        if !cx.spend("loops written out") {
            break;
        }
        growth += size * (iterations - 1);
        cx.count("iterations", iterations);
        let escapes = Escapes::of(func, loops, uses, l);
        let iterations = write_out(func, loops.blocks(l), &counted, iterations as usize);
        escapes.repair(&iterations, &mut repair);
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}

/// A loop to be written out, with its iterations and its size.
fn candidate(func: &Func, types: &Types, cfg: &Cfg, loops: &Loops, l: Loop) -> Option<(Counted, u64, u64)> {
    let counted = Counted::of(func, cfg, loops, l)?;
    let iterations = counted.iterations(func)?;
    let (most, size_limit) = match LoopNote::of(func, types, loops.header(l)).unroll {
        Unrolling::Never => return None,
        Unrolling::Any if iterations <= FEW_ITERATIONS => (FEW_ITERATIONS, MAX_SIZE_OF_FEW),
        Unrolling::Any => (MAX_ITERATIONS, MAX_SIZE),
        Unrolling::Full => (MAX_GROWTH, MAX_GROWTH),
        Unrolling::Iterations(count) => (count as u64, MAX_GROWTH),
    };
    if iterations > most {
        return None;
    }
    let size = is_copyable(func, types, loops, l)? as u64;
    (size * iterations <= size_limit).then_some((counted, iterations, size))
}

/// Whether a loop will be written out as it is.
pub(super) fn is_written_out(func: &Func, types: &Types, cfg: &Cfg, loops: &Loops, l: Loop) -> bool {
    loops.is_innermost(l) && candidate(func, types, cfg, loops, l).is_some()
}

/// Whether a loop counts from one constant to another: a quick look for a loop around one that was written out.
pub(crate) fn may_find(func: &Func) -> bool {
    func.blocks().any(|head| {
        let phis = || func.block_insts(head).take_while(|&inst| func.op(inst) == Op::Phi);
        phis().any(|phi| {
            func.result(phi).is_some_and(|value| {
                let steps = |v: Value| {
                    let add = func.def_inst(v).filter(|&i| func.op(i) == Op::Intrinsic(Intrinsic::AddInt));
                    add.filter(|&i| func.args(i).contains(&value))
                };
                let next = func.args(phi).iter().find_map(|&v| steps(v));
                let starts = func.args(phi).iter().any(|&v| func.as_bits(v).is_some());
                let tests = |inst: Inst| {
                    let compares =
                        matches!(func.op(inst), Op::Intrinsic(op) if op.shape() == Shape::IntCompare);
                    compares && func.args(inst).iter().any(|&v| func.as_bits(v).is_some())
                };
                starts
                    && next
                        .and_then(|next| func.inst_block(next))
                        .is_some_and(|latch| func.block_insts(latch).any(tests))
            })
        })
    })
}

/// Puts copies for all iterations but the last before the loop, which becomes the last iteration.
fn write_out(func: &mut Func, blocks: &[Block], counted: &Counted, iterations: usize) -> Vec<Copied> {
    let Counted { shape, test } = *counted;
    let exit = split_edge(func, shape.latch, test.exit);
    for &block in blocks {
        let polls: Vec<Inst> = func.block_insts(block).filter(|&i| func.op(i) == Op::Safepoint).collect();
        polls.into_iter().for_each(|poll| func.remove_inst(poll));
    }
    let mut copies = Vec::new();
    if let Some(further) = iterations.checked_sub(2) {
        let start = carried(func, &shape, shape.preheader, |v| v);
        let first = copy_blocks(func, blocks, shape.preheader, start, Polls::Left);
        copies = chain(func, blocks, &shape, first, further);
        join_iterations(func, &shape, &copies);
    }
    match copies.last() {
        Some(last) => enter_behind(func, &shape, copies[0].block(shape.header), last),
        None => drop_pred(func, shape.header, shape.latch),
    }
    if let Some(end) = func.terminator(shape.latch) {
        make_jump(func, end, exit);
    }
    copies
}

/// Redirects the entry of the loop to `first`, and the end of a copy to the head.
fn enter_behind(func: &mut Func, shape: &counted::Shape, first: Block, last: &Copied) {
    let latch = last.block(shape.latch);
    for phi in head_phis(func, shape.header).collect::<Vec<_>>() {
        let arrives = func.phi_edges(phi).find(|&(b, _)| b == shape.latch).map(|(_, v)| last.value(v));
        func.retain_phi_edges(phi, |_, _| false);
        if let Some(value) = arrives {
            func.add_phi_edge(phi, latch, value);
        }
    }
    if let Some(jump) = func.terminator(shape.preheader) {
        retarget(func, jump, shape.header, first);
    }
    if let Some(end) = func.terminator(latch) {
        make_jump(func, end, shape.header);
    }
}
