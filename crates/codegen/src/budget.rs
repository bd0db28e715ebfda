//! The time that register allocation will take, estimated before it begins.
//!
//! Backtracking register allocation is superlinear in four quantities: values live at once, loops, their
//! nesting depth, and blocks. One walk in the order in which Cranelift lowers blocks estimates them. A function above the budget gets single-pass
//! allocation, whose cost per instruction is nearly constant, except for one shape: at each edge between blocks it walks all live
//! values. For many blocks and many such values (loops nested by the thousand, each with a counter), the single pass of the baseline tier compiles
//! the function, unless it has something that only Cranelift supports. Measured, in µs per instruction:
//!
//! | shape                                | backtracking | single pass | budget used |
//! |--------------------------------------|--------------|-------------|-------------|
//! | 300 values live at once              | 4.0          | 0.5         | 0.3         |
//! | 2,000                                | 14           | 0.5         | 2.0         |
//! | 300 loops in a row                   | 2 – 5        | 1.3         | 0.4         |
//! | 4,000                                | 13           | 0.7         | 5.0         |
//! | 3,000 conditions in a row            | 6.5          | 2.2         | 0.8         |
//! | 30,000                               | 30           | 2.4         | 7.5         |
//!
//! Cost: one walk over the edges, one over the instructions.

use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::traversals::Dfs;

/// The budget of backtracking register allocation; the unit is one block.
const ALLOCATION_BUDGET: u64 = 8_000;
/// The cost of a value that is live in the whole function.
const LIVE_VALUE_COST: u64 = 16;
/// The cost of a loop.
const LOOP_COST: u64 = 8;
/// The cost of each loop around an average instruction: live ranges are split at each level.
const NESTING_COST: u64 = 32;
/// With more values than this alive at the blocks for an average instruction, Cranelift's single-pass allocation takes longer for them than for instructions.
const MAX_CROSSING: u64 = 64;
/// With more loops than this around an average instruction, Cranelift's mid-end is skipped, because its cost is
/// proportional to the nesting. Above `ALLOCATION_BUDGET / NESTING_COST`, so these functions are oversized too.
const MAX_NESTING: u64 = 256;
/// With more blocks times instructions than this, Cranelift's mid-end is skipped as well: for each value that it numbers it searches the blocks that dominate it,
/// from the last to the one where the operands are. Oversized by the number of blocks alone, as a Cranelift function has at most 2,000,000 instructions.
const MAX_SEARCH: u64 = 4_000_000_000;

/// The estimated cost of backtracking register allocation for a function.
#[derive(Clone, Copy)]
pub(crate) struct AllocationCost {
    /// In the unit of [`ALLOCATION_BUDGET`].
    total: u64,
    /// The number of loops around an average instruction.
    nesting: u64,
    /// The number of values alive at blocks, all blocks together, for each instruction.
    crossing: u64,
    /// Blocks times instructions.
    search: u64,
}

impl AllocationCost {
    /// Estimates the cost by one walk in reverse postorder, as Cranelift has it; see the file's header. Live ranges are as long there as in allocation:
    /// in the layout, a block that throws is next to its predecessor.
    ///
    /// The number of values live at an average instruction is the sum of the distances from each definition to its last use,
    /// divided by the length of the function. The number of loops around an average instruction is computed in the same way
    /// from the distances between loop headers and back edges. Back edges are not followed: a value live around a loop counts
    /// up to its last use in that order, which suffices to distinguish thousands from dozens.
    pub(crate) fn of(func: &Function) -> AllocationCost {
        const UNDEFINED: u32 = u32::MAX;
        let mut defined = vec![UNDEFINED; func.dfg.num_values()];
        let mut last_use = vec![0u32; func.dfg.num_values()];
        // The start positions of the blocks visited so far. An edge to one of them is a back edge.
        let mut starts = vec![None; func.dfg.num_blocks()];
        let (mut position, mut blocks, mut loops, mut looping) = (0u32, 0u64, 0u64, 0u64);
        let mut order: Vec<Block> = Dfs::new().post_order_iter(func).collect();
        order.reverse();
        for block in order {
            blocks += 1;
            starts[block.as_u32() as usize] = Some(position);
            for &param in func.dfg.block_params(block) {
                defined[param.as_u32() as usize] = position;
            }
            for inst in func.layout.block_insts(block) {
                position = position.saturating_add(1);
                for value in func.dfg.inst_values(inst) {
                    let value = func.dfg.resolve_aliases(value);
                    last_use[value.as_u32() as usize] = position;
                }
                for &result in func.dfg.inst_results(inst) {
                    defined[result.as_u32() as usize] = position;
                }
            }
            for start in func.block_successors(block).filter_map(|next| starts[next.as_u32() as usize]) {
                loops += 1;
                looping += u64::from(position - start);
            }
        }
        let distances: u64 = defined
            .iter()
            .zip(&last_use)
            .filter(|(defined, _)| **defined != UNDEFINED)
            .map(|(&defined, &used)| u64::from(used.saturating_sub(defined)))
            .sum();
        let live = distances / u64::from(position.max(1));
        let nesting = looping / u64::from(position.max(1));
        let total = live * LIVE_VALUE_COST + blocks + loops * LOOP_COST + nesting * NESTING_COST;
        let crossing = live.saturating_mul(blocks) / u64::from(position.max(1));
        AllocationCost { total, nesting, crossing, search: blocks * u64::from(position) }
    }

    /// Whether backtracking would take too long.
    pub(crate) fn is_oversized(self) -> bool {
        self.total > ALLOCATION_BUDGET
    }

    /// Whether Cranelift's mid-end would take too long.
    pub(crate) fn is_slow_to_optimise(self) -> bool {
        self.nesting > MAX_NESTING || self.search > MAX_SEARCH
    }

    /// Whether Cranelift's single-pass allocation would take too long as well.
    pub(crate) fn is_for_one_pass(self) -> bool {
        self.is_oversized() && self.crossing > MAX_CROSSING
    }
}
