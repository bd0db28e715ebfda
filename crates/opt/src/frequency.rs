//! How often blocks are entered, estimated for one call of the function.
//!
//! ```text
//! 1 ─ … isa(x, Int64)          1        the entry
//!  ├── 2                       0.94     a test for a type of numbers mostly holds
//!  └── 3 ─ … isa(x, Float64)   0.06
//!       ├── 4                  0.06
//!       └── 5                  0.004    the call for all other operands
//! ```
//!
//! | edge | share of its block |
//! |---|---|
//! | of a branch with weights | the weights' |
//! | to a cold block ([`ColdBlocks`]), or to a handler | [`RARE`] |
//! | out of a loop | one of [`TRIPS`] |
//! | of a test for types of numbers, or of several such tests together | [`LIKELY`] if it holds |
//! | others of a branch | a half |
//!
//! The first rule that applies decides; a loop is entered from its head [`TRIPS`] times. Front ends test for numbers to do arithmetic, and have a
//! call for the rest, so a test of numbers without a profile is taken to hold.
//!
//! Cost: one walk over the blocks, after the cold blocks. Not done: probabilities that depend on earlier tests; loops with two entries, which count as none.

use crate::likely::ColdBlocks;
use brolga_ir::analysis::{Cfg, Loops, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Const, Func, Op, Types, Value};
use cranelift_entity::SecondaryMap;

/// Iterations of a loop.
const TRIPS: f32 = 8.0;

/// The share of an edge that is hardly ever taken.
const RARE: f32 = 1.0 / 64.0;

/// How often a test for numbers holds.
const LIKELY: f32 = 15.0 / 16.0;

/// The most tests that are examined for one condition.
const MAX_STEPS: usize = 8;

/// See the file's header.
pub(crate) struct Frequencies(SecondaryMap<Block, f32>);

impl Frequencies {
    pub(crate) fn of(func: &Func, types: &Types, cfg: &Cfg, rpo: &Rpo, loops: &Loops) -> Frequencies {
        let cold = ColdBlocks::of(func, cfg, rpo);
        let mut found: SecondaryMap<Block, f32> = SecondaryMap::new();
        if let Some(entry) = func.entry() {
            found[entry] = 1.0;
        }
        for &block in rpo.blocks() {
            if loops.is_header(block) {
                found[block] *= TRIPS;
            }
            let share = Shares { func, types, cold: &cold, loops, block };
            for (n, &next) in cfg.succs(block).iter().enumerate() {
                if rpo.position(next) > rpo.position(block) {
                    let add = found[block] * share.of(n);
                    found[next] += add;
                }
            }
        }
        Frequencies(found)
    }

    /// How often the block is entered in one call.
    pub(crate) fn of_block(&self, block: Block) -> f32 {
        self.0[block]
    }
}

/// The shares of the edges out of a block.
struct Shares<'a> {
    func: &'a Func,
    types: &'a Types,
    cold: &'a ColdBlocks,
    loops: &'a Loops,
    block: Block,
}

impl Shares<'_> {
    /// The share of the edge to a successor, by its number.
    fn of(&self, n: usize) -> f32 {
        let func = self.func;
        let Some(end) = func.terminator(self.block) else { return 1.0 };
        let next = func.inst_blocks(end);
        let &[yes, no] = next else {
            return 1.0;
        };
        if func.op(end) != Op::Branch {
            // A handler.
            return if n == 0 { 1.0 - RARE } else { RARE };
        }
        if let Some(weights) = func.branch_weights(end) {
            let (yes, no) = (weights.yes() as f32, weights.no() as f32);
            return (if n == 0 { yes } else { no }) / (yes + no).max(1.0);
        }
        let of = |share: f32| if n == 0 { share } else { 1.0 - share };
        match (self.cold.has(yes), self.cold.has(no)) {
            (true, false) => return of(RARE),
            (false, true) => return of(1.0 - RARE),
            _ => {}
        }
        if let Some(around) = self.loops.loop_of(self.block) {
            match (self.loops.contains(around, yes), self.loops.contains(around, no)) {
                (true, false) => return of(1.0 - 1.0 / TRIPS),
                (false, true) => return of(1.0 / TRIPS),
                _ => {}
            }
        }
        let is_test = func.args(end).first().is_some_and(|&condition| self.tests_numbers(condition));
        of(if is_test { LIKELY } else { 0.5 })
    }

    /// Whether a condition is a test for a type of numbers, or several of them.
    fn tests_numbers(&self, condition: Value) -> bool {
        let func = self.func;
        let mut work = vec![condition];
        for _ in 0..MAX_STEPS {
            let Some(value) = work.pop() else { return true };
            let Some(def) = func.def_inst(value) else { return false };
            match (func.op(def), func.args(def)) {
                (Op::Intrinsic(Intrinsic::AndInt), args) => work.extend(args),
                (Op::Builtin(Builtin::Isa), &[_, wanted]) => match func.as_const(wanted) {
                    Some(&Const::Type { of, .. }) if self.types.primitive(of).is_some() => {}
                    _ => return false,
                },
                _ => return false,
            }
        }
        work.is_empty()
    }
}
