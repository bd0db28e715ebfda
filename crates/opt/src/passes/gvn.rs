//! Computes equal values once, and loads each value from memory once.
//!
//! ```text
//!     store(p, x)      2: store(p, y)            2: store(p, y)
//! 1: … goto 3          … goto 3                  … goto 3
//!          \            /                 ==>           \      /
//!           3: %5 = load(p)                       3: %6 = φ (#1 => x, #2 => y)      uses of %5 become %6
//! ```
//!
//! Instructions are numbered as in `cse`: the second of two equal ones takes the results of the first if that dominates it
//! and the effects allow it. Here φ of one block are compared too, and so is memory: a load becomes the value that stores and
//! other loads prove for its place.
//!
//! Words. A *place* is a root, an index, a displacement, a size and regions ([`Location`](crate::alias::Location)). A block
//! *determines* a place at its end if the last instruction in it that may touch the place is a load or a store of exactly
//! that place and type. It *loses* the place if it is another, and is *open* if there is none: then its incoming edges
//! decide.
//!
//! The header of an array that is written only where the array is made is determined at once (`gvn/settled.rs`).
//! Phases for each other load, in `gvn/memory.rs`: look back in its own block; otherwise collect the open blocks before it; find which of
//! them have a value on every incoming edge; if the block of the load itself does on all edges but one, a load at the end of
//! that edge provides the value; merge the incoming values, with φ where they differ. The blocks are walked down the
//! dominator tree in reverse postorder among siblings, so values from before are already replaced; only those around a loop
//! are not.
//!
//! A load is put on an edge only if the block always executes the load once entered from there, and if the edge does not
//! close a loop: then it is executed at most as often as before. An edge of a branch gets its own block.
//!
//! Cost: one look-up for each instruction; for each load at most [`memory::MAX_WAYS`] edges and [`memory::MAX_ACCESSES`] accesses.
//! Needs the dominator tree; breaks the graph only where an edge got a block. Not done: addresses that change at a φ (the
//! value loaded for `i + 1` in the last iteration); values of another type or size; congruence of φ around loops.

mod access;
mod memory;
mod settled;
mod webs;

use crate::exprs::Exprs;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::passes::cse::is_worth_sharing;
use crate::replace::Replacements;
use brolga_ir::analysis::{DomTree, Rpo};
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Level, Op};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use memory::Memory;

pub(crate) const PASS: Pass = Pass::new("gvn", PassLevel::Both, run)
    .needs(&[Fact::Cfg, Fact::DomTree])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// Whether there was fuel for a rewrite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fuel {
    Left,
    Empty,
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let facts = cx.facts;
    let below = Children::of(facts.domtree(), facts.rpo());
    let mut values = Replacements::default();
    let mut exprs = Exprs::new(func.inst_count());
    // On the high level memory is reached by other operations, which `lower` turns into loads and stores.
    let loads = func.level == Level::Low
        && func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| matches!(func.op(inst), Op::Load(_)));
    let mut memory = loads.then(|| Memory::of(func, cx.types(), facts.cfg(), facts.rpo()));
    // For each open block: how long the table was before it, and its child that comes next.
    let mut open: Vec<(usize, Option<Block>)> = Vec::new();
    let mut enter = func.entry();
    'walk: loop {
        if let Some(block) = enter.take() {
            open.push((exprs.len(), below.first[block].expand()));
            let mut next = func.first_inst(block);
            while let Some(inst) = next {
                next = func.next_inst(inst);
                values.apply_to(func, cx.context(), inst);
                let fuel = match &mut memory {
                    Some(memory) if memory.is_load(inst) => memory.forward(func, cx, &mut values, inst),
                    _ => share(func, cx, &mut exprs, &mut values, inst),
                };
                if fuel == Fuel::Empty {
                    break 'walk;
                }
            }
        }
        let Some((start, child)) = open.last_mut() else { break };
        match child.take() {
            Some(block) => {
                *child = below.next[block].expand();
                enter = Some(block);
            }
            None => {
                exprs.truncate(*start);
                open.pop();
            }
        }
    }
    if let Some(memory) = memory {
        memory.fold_phis(func, &mut values);
        webs::fold(func, cx, facts.cfg(), facts.rpo(), &mut values);
        memory.place_loads(func);
    }
    values.apply(func, cx.context());
    cx.changed()
}

/// Replaces an instruction by an equal one, or remembers it.
fn share(
    func: &mut Func,
    cx: &mut PassCx<'_>,
    exprs: &mut Exprs,
    values: &mut Replacements,
    inst: Inst,
) -> Fuel {
    let op = func.op(inst);
    if func.results(inst).len() == 0 || !(op == Op::Phi || is_worth_sharing(op)) {
        return Fuel::Left;
    }
    if op != Op::Phi && !effects(func, cx.types(), inst).may_be_shared() {
        return Fuel::Left;
    }
    let Some(first) = exprs.find_or_insert(func, inst) else { return Fuel::Left };
    if !cx.spend("shared") {
        return Fuel::Empty;
    }
    for (second, first) in func.results(inst).zip(func.results(first)) {
        values.set(second, first);
    }
    func.remove_inst(inst);
    Fuel::Left
}

/// The dominator tree with the children of each block in reverse postorder.
struct Children {
    first: SecondaryMap<Block, PackedOption<Block>>,
    next: SecondaryMap<Block, PackedOption<Block>>,
}

impl Children {
    fn of(tree: &DomTree, rpo: &Rpo) -> Children {
        let (mut first, mut next) = (SecondaryMap::new(), SecondaryMap::new());
        for &block in rpo.blocks().iter().rev() {
            if let Some(parent) = tree.idom(block) {
                next[block] = std::mem::replace(&mut first[parent], block.into());
            }
        }
        Children { first, next }
    }
}
