//! Decides in front of a loop what is decided the same way in every round.
//!
//! ```text
//! p: goto h                                p: goto a if c, else b
//! h: … goto x if c, else y          ==>    a: goto h'      h': … goto x' …      without the branch
//!                                          b: goto h       h:  … goto y …
//! ```
//!
//! The loop is copied; in each copy the branch is a jump. Only loops without a loop inside are looked at: a branch in an outer
//! loop is taken once for many rounds of the inner one. A loop is copied once for each run of the pass, for the first such branch
//! in reverse postorder, which decides most.
//!
//! The condition must be defined: where the program branches on it, it is; in front of the loop nobody has asked yet.
//!
//! Cost: the copied instructions, at most [`MAX_COPIED`] for a loop and [`MAX_GROWTH`] in a function. Breaks the graph. Not done: conditions of
//! which a part does not change.

use crate::counted::{Shape, is_invariant};
use crate::facts::Fact;
use crate::loop_copy::{
    Escapes, Polls, copy_blocks, drop_pred, is_copyable, jump_block, make_jump, rename_pred,
};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ssa_repair::Repair;
use crate::undefined::WhenAsked;
use brolga_ir::analysis::{Cfg, Loop, Loops, Rpo};
use brolga_ir::{Block, Func, Op, Value};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass {
    name: "unswitch",
    level: PassLevel::Low,
    required: false,
    needs: &[Fact::Cfg, Fact::Loops, Fact::Uses],
    breaks: &[Fact::Cfg, Fact::Uses],
    run,
};

/// In longer loops a branch that is predicted costs little beside the rest.
const MAX_COPIED: usize = 60;
/// How many instructions all copies together may have.
const MAX_GROWTH: usize = 1000;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let undefined = WhenAsked::new(cfg, cx.facts.rpo());
    let mut repair = Repair::default();
    let mut growth = 0;
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(shape) = Shape::of(cfg, loops, l) else { continue };
        let Some(choice) = loops.blocks(l).iter().find_map(|&b| Choice::at(func, loops, &undefined, l, b))
        else {
            continue;
        };
        let Some(size) = is_copyable(func, cx.types(), loops, l).filter(|&size| size <= MAX_COPIED) else {
            continue;
        };
        if growth + size > MAX_GROWTH {
            continue;
        }
        if !cx.spend("unswitched loops") {
            break;
        }
        growth += size;
        let escapes = Escapes::of(func, loops, uses, l);
        let blocks = loops.blocks(l);
        let copy = copy_blocks(func, blocks, shape.preheader, FxHashMap::default(), Polls::Copied);
        let yes = jump_block(func, shape.preheader, copy.block(shape.header));
        rename_pred(func, copy.block(shape.header), shape.preheader, yes);
        let before = func.prev_block(shape.header).unwrap_or(shape.preheader);
        let no = jump_block(func, before, shape.header);
        rename_pred(func, shape.header, shape.preheader, no);
        if let Some(jump) = func.terminator(shape.preheader) {
            func.set_op(jump, Op::Branch, &[choice.condition]);
            func.set_inst_blocks(jump, &[yes, no]);
            if let Some(branch) = func.terminator(choice.block) {
                func.copy_hint(branch, jump);
            }
        }
        let Choice { block, targets: [then, other], .. } = choice;
        choose(func, copy.block(block), copy.block(then), copy.block(other));
        choose(func, block, other, then);
        escapes.repair(&[copy], &mut repair);
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}

/// A branch on a value that does not change.
struct Choice {
    block: Block,
    condition: Value,
    targets: [Block; 2],
}

impl Choice {
    fn at(func: &Func, loops: &Loops, undefined: &WhenAsked<'_>, l: Loop, block: Block) -> Option<Choice> {
        let branch = func.terminator(block).filter(|&t| func.op(t) == Op::Branch)?;
        let (&[condition], &[a, b]) = (func.args(branch), func.inst_blocks(branch)) else { return None };
        let fixed = is_invariant(func, loops, l, condition)
            && func.as_const(condition).is_none()
            && !undefined.get(func).has(func, condition);
        (fixed && a != b).then_some(Choice { block, condition, targets: [a, b] })
    }
}

/// Lets a block always go on at one of its targets.
fn choose(func: &mut Func, block: Block, target: Block, other: Block) {
    if let Some(end) = func.terminator(block) {
        make_jump(func, end, target);
        drop_pred(func, other, block);
    }
}
