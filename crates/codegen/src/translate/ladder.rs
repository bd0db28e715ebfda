//! Turns ladders of comparisons into jump tables.
//!
//! ```text
//!   b1: … goto b2 if not x === 4; a            b1: …
//!   b2: goto b3 if not x === 5; b      ==>         br_table x - 4, d, [a, b, d, c]
//!   b3: goto d if not x === 7; c
//! ```
//!
//! Low IR has no operation with more than two successors; a front end writes a `switch` as comparisons of one value with constants. A *rung* is a
//! branch on `x === constant`. A *ladder* is a chain of rungs on one value, each but the first in its own block that holds nothing else and that
//! only the rung above leads to. So a jump from the first rung to the targets of the others skips no instruction, and the edges pass the same values.
//! The first of several rungs with the same constant wins, as in the chain.
//!
//! A table is made for at least [`RUNGS`] constants that fill one in [`SPARSE`] of its places. A ladder with a rung that by its branch weights holds more
//! often than not stays: a predicted comparison costs less than the indirect jump.
//!
//! Cost: one visit to each branch; blocks of a ladder that stays are not visited again. Not done: ranges of constants, trees of comparisons for
//! sparse ladders, ladders with work between the rungs.

use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Inst, Op, Value};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, BlockCall, InstBuilder, JumpTableData, types};

use super::{TranslateError, Translation};

/// The number of constants from which on a table is faster: it costs eight instructions and one jump that may be
/// mispredicted.
const RUNGS: usize = 5;

/// The most places of a table for each constant.
const SPARSE: u64 = 8;

/// A branch on whether a value is a constant.
#[derive(Clone, Copy)]
struct Rung {
    from: Block,
    compare: Inst,
    value: Value,
    case: u64,
    equal: Block,
    other: Block,
}

impl Translation<'_> {
    /// Translates the ladder that begins with the branch at the end of `block`, if one does. Its other blocks are then
    /// skipped.
    pub(super) fn ladder(&mut self, block: Block) -> Result<bool, TranslateError> {
        if self.loops.is_none() || self.linkage.is_profiled || self.in_ladder.contains(block) {
            return Ok(false);
        }
        let rungs = self.rungs(block);
        let [first, rest @ ..] = &rungs[..] else { return Ok(false) };
        for rung in rest {
            self.in_ladder.insert(rung.from);
        }
        let Some((least, places)) = self.table_of(&rungs) else { return Ok(false) };
        let Some(inst) = self.func.terminator(block) else { return Ok(false) };
        let x = self.value(inst, first.value)?;
        let last = rungs.last().unwrap_or(first);
        let default = self.way(last.from, last.other)?;
        let mut table = vec![default; places];
        // From the last to the first, so that the first of equal ones stays.
        for rung in rungs.iter().rev() {
            let place = rung.case.wrapping_sub(least) as usize;
            table[place] = self.way(rung.from, rung.equal)?;
        }
        let ty = self.b.func.dfg.value_type(x);
        let least = self.b.ins().iconst(ty, (least & mask(ty)) as i64);
        let index = self.b.ins().isub(x, least);
        let index = match ty.bits() {
            32 => index,
            ..32 => self.b.ins().uextend(types::I32, index),
            _ => {
                let end = self.b.ins().iconst(ty, places as i64);
                let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, index, end);
                let (inside, outside) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(fits, inside, &[], outside, &[]);
                self.b.switch_to_block(outside);
                let args: Vec<_> = default.args(&self.b.func.dfg.value_lists).collect();
                let to = default.block(&self.b.func.dfg.value_lists);
                self.b.ins().jump(to, &args);
                self.b.switch_to_block(inside);
                self.b.ins().ireduce(types::I32, index)
            }
        };
        let table = self.b.create_jump_table(JumpTableData::new(default, &table));
        self.b.ins().br_table(index, table);
        for rung in rest {
            self.replaced.insert(rung.from);
        }
        Ok(true)
    }

    /// The rungs from a block on, up to the first other instruction.
    fn rungs(&mut self, block: Block) -> Vec<Rung> {
        let mut rungs: Vec<Rung> = Vec::new();
        let mut next = Some(block);
        while let Some(rung) = next.and_then(|block| self.rung(block)) {
            if rungs.first().is_some_and(|first| first.value != rung.value || !self.is_bare(rung)) {
                break;
            }
            rungs.push(rung);
            next = (self.cfg.single_pred(rung.other) == Some(rung.from)).then_some(rung.other);
        }
        rungs
    }

    /// The branch at the end of a block as a rung.
    fn rung(&self, from: Block) -> Option<Rung> {
        let func = self.func;
        let branch = func.terminator(from).filter(|&inst| func.op(inst) == Op::Branch)?;
        let compare = func.def_inst(*func.args(branch).first()?)?;
        let is_equal = match func.op(compare) {
            Op::Intrinsic(Intrinsic::EqInt) => true,
            Op::Intrinsic(Intrinsic::NeInt) => false,
            _ => return None,
        };
        let (&[a, b], &[yes, no]) = (func.args(compare), func.inst_blocks(branch)) else { return None };
        let (value, case) = match (func.as_bits(a), func.as_bits(b)) {
            (None, Some(case)) => (a, case),
            (Some(case), None) => (b, case),
            _ => return None,
        };
        let low = func.ty(value).as_low().filter(|low| low.is_int() && low.bits() <= 64)?;
        // Numbers in the order of signed ones, so that -1 and 0 are neighbours.
        let unused = 64 - low.bits();
        let case = (((case as u64) << unused) as i64 >> unused) as u64;
        let (equal, other) = if is_equal { (yes, no) } else { (no, yes) };
        (equal != other).then_some(Rung { from, compare, value, case, equal, other })
    }

    /// Whether a block holds a comparison for its branch and nothing else.
    fn is_bare(&mut self, rung: Rung) -> bool {
        let func = self.func;
        let end = func.terminator(rung.from);
        let others_compare = func.block_insts(rung.from).all(|i| i == rung.compare || Some(i) == end);
        others_compare && self.only_use_of(rung.compare) == end
    }

    fn only_use_of(&mut self, inst: Inst) -> Option<Inst> {
        let result = self.func.result(inst)?;
        self.only_use(result)
    }

    /// The least constant and the number of places of the table for a ladder, if one is worth it.
    fn table_of(&self, rungs: &[Rung]) -> Option<(u64, usize)> {
        let mut cases: Vec<i64> = rungs.iter().map(|rung| rung.case as i64).collect();
        cases.sort_unstable();
        cases.dedup();
        let (&least, &most) = (cases.first()?, cases.last()?);
        let places = most.wrapping_sub(least) as u64;
        let is_dense = cases.len() >= RUNGS && places < SPARSE * cases.len() as u64;
        let is_foreseen = rungs.iter().any(|rung| self.is_foreseen(*rung));
        (is_dense && !is_foreseen).then(|| (least as u64, places as usize + 1))
    }

    /// Whether a rung's condition is mostly true.
    fn is_foreseen(&self, rung: Rung) -> bool {
        let Some(branch) = self.func.terminator(rung.from) else { return false };
        let is_first = self.func.inst_blocks(branch).first() == Some(&rung.equal);
        self.func.branch_weights(branch).is_some_and(|weights| {
            let (equal, other) =
                if is_first { (weights.yes(), weights.no()) } else { (weights.no(), weights.yes()) };
            equal > other
        })
    }

    /// An edge, with its arguments.
    fn way(&mut self, from: Block, to: Block) -> Result<BlockCall, TranslateError> {
        let args = self.edge(from, to)?;
        let to = self.block(to)?;
        Ok(self.b.func.dfg.block_call(to, &args))
    }
}

/// The bits of a type.
fn mask(ty: clif::Type) -> u64 {
    u64::MAX >> (64 - ty.bits())
}
