//! Removes loops that do nothing.
//!
//! ```text
//! p: goto h                                        p: goto x
//! h: %i = φ (p => 0, h => %n)               ==>
//!    %n = add_int(%i, 1)   safepoint()
//!    goto h if slt_int(%n, 100), else x
//! x: … no use of %i or %n …                        x: …
//! ```
//!
//! | condition | because |
//! |---|---|
//! | nothing in it has an effect, throws or may not end; safepoints do not count | it leaves no observable trace |
//! | there is one edge out, and its block is reached by every iteration | the successor is known |
//! | no other block leads into it, not even an unreachable one | its edge would lose its target |
//! | none of its values is used after it | `indvars` has replaced such uses where it can |
//! | it ends | the code after an endless loop is not executed |
//!
//! A loop ends if its number of iterations is known, or if its latch counts by one and tests for equality or for "less" ("greater" where it counts
//! down): the counter has taken all values by the time it wraps. "At most" never fails if the bound is the largest
//! integer, so then the bound must be another constant.
//!
//! Inner loops come first, but an outer one is removed only when the pass runs again. Cost: each block of innermost loops.
//! Breaks the graph.

use crate::counted::{Counted, Relation, int_width, signed};
use crate::facts::Fact;
use crate::loop_copy::{Escapes, make_jump, rename_pred};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::analysis::{Loop, Loops};
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Op, Types};

pub(crate) const PASS: Pass = Pass::new("loop-delete", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(counted) = Counted::of(func, cfg, loops, l) else { continue };
        let inside_or_before = |&pred: &Block| loops.contains(l, pred) || pred == counted.shape.preheader;
        let useless = loops.exits(cfg, l).count() == 1
            && loops.blocks(l).iter().all(|&block| cfg.preds(block).iter().all(inside_or_before))
            && ends(func, &counted)
            && does_nothing(func, cx.types(), loops, l)
            && Escapes::of(func, loops, uses, l).is_empty();
        if !useless {
            continue;
        }
        if !cx.spend("deleted loops") {
            break;
        }
        let Counted { shape, test } = counted;
        if let Some(jump) = func.terminator(shape.preheader) {
            make_jump(func, jump, test.exit);
            rename_pred(func, test.exit, shape.latch, shape.preheader);
        }
        for &block in loops.blocks(l) {
            func.remove_block(block);
        }
    }
    cx.changed()
}

fn does_nothing(func: &Func, types: &Types, loops: &Loops, l: Loop) -> bool {
    let insts = loops.blocks(l).iter().flat_map(|&b| func.block_insts(b));
    insts.into_iter().all(|inst| match func.op(inst) {
        Op::Safepoint | Op::Goto | Op::Branch => true,
        _ => effects(func, types, inst).is_removable(),
    })
}

fn ends(func: &Func, counted: &Counted) -> bool {
    let test = &counted.test;
    let step = test.counter.const_step(func);
    let largest = int_width(func, test.bound).map(|width| (1i128 << (width - 1)) - 1);
    let bound = signed(func, test.bound);
    counted.iterations(func).is_some()
        || match (test.relation, step) {
            (Relation::Differs, Some(1 | -1))
            | (Relation::Less(_), Some(1))
            | (Relation::Greater(_), Some(-1)) => true,
            // As unsigned integers the largest is the signed -1.
            (Relation::AtMost(_), Some(1)) => bound.is_some_and(|n| Some(n) != largest && n != -1),
            (Relation::AtLeast(_), Some(-1)) => bound.is_some_and(|n| n != 0 && Some(-n - 1) != largest),
            _ => false,
        }
}
