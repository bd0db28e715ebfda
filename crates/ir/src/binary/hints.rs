//! Hints of functions as bytes, in both directions: branch weights, inlining hints of calls and functions,
//! loop notes.
//!
//! Instructions and blocks are numbered in order. A hint on an operation that does not take it is refused.

use super::bytes::{Sink, Source};
use super::ops::Counts;
use super::{BinaryError, Refusal};
use crate::entity::{Block, Inst, Meta};
use crate::func::Func;
use crate::hints::{BranchWeights, Inlining};
use crate::op::{Level, Op};
use cranelift_entity::EntityRef;

const NOTHING: u8 = 0;
const ALWAYS: u8 = 1;
const NEVER: u8 = 2;

pub(super) fn byte_of(inlining: Option<Inlining>) -> u8 {
    match inlining {
        None => NOTHING,
        Some(Inlining::Always) => ALWAYS,
        Some(Inlining::Never) => NEVER,
    }
}

pub(super) fn inlining(source: &mut Source<'_>) -> Result<Option<Inlining>, BinaryError> {
    Ok(match source.byte()? {
        NOTHING => None,
        ALWAYS => Some(Inlining::Always),
        NEVER => Some(Inlining::Never),
        tag => return source.refuse(Refusal::Tag { what: "hint", tag }),
    })
}

/// `number_of` returns the number of a note.
pub(super) fn write(out: &mut Sink, func: &Func, number_of: &dyn Fn(Meta) -> u64) {
    let insts = || func.blocks().flat_map(|b| func.block_insts(b)).enumerate();
    let weights: Vec<_> = insts().filter_map(|(n, inst)| Some((n, func.branch_weights(inst)?))).collect();
    out.count(weights.len());
    for (n, weights) in weights {
        out.count(n);
        out.number(u64::from(weights.yes()));
        out.number(u64::from(weights.no()));
    }
    let calls: Vec<_> = insts().filter_map(|(n, inst)| Some((n, func.call_inlining(inst)?))).collect();
    out.count(calls.len());
    for (n, inlining) in calls {
        out.count(n);
        out.byte(byte_of(Some(inlining)));
    }
    let notes = func.blocks().enumerate().filter_map(|(n, block)| Some((n, func.loop_note(block)?)));
    let notes: Vec<_> = notes.collect();
    out.count(notes.len());
    for (n, meta) in notes {
        out.count(n);
        out.number(number_of(meta));
    }
}

pub(super) fn read(source: &mut Source<'_>, func: &mut Func, counts: &Counts) -> Result<(), BinaryError> {
    for _ in 0..source.count()? {
        let inst = Inst::new(source.index("instruction", func.inst_count())?);
        let weights = BranchWeights::new(source.small()?, source.small()?);
        if weights.is_none() || func.op(inst) != Op::Branch {
            return source.refuse(Refusal::Number);
        }
        func.set_branch_weights(inst, weights);
    }
    for _ in 0..source.count()? {
        let inst = Inst::new(source.index("instruction", func.inst_count())?);
        let inlining = inlining(source)?;
        func.set_call_inlining(inst, inlining);
        if inlining.is_none() || func.call_inlining(inst) != inlining {
            return source.refuse(Refusal::Number);
        }
    }
    for _ in 0..source.count()? {
        let head = Block::new(source.index("block", func.block_count())?);
        let meta = Meta::new(source.index("note", counts.metas)?);
        if func.level != Level::Low {
            return source.refuse(Refusal::Number);
        }
        func.set_loop_note(head, Some(meta));
    }
    Ok(())
}
