//! Facts computed before code generation: counts and places of uses, unused instructions, numbers of incoming edges.
//!
//! One walk against the order of the code, so that the uses of a value are visited before it: an instruction without effect whose results
//! are unused by then is not needed, and does not count as a use of its operands.

use cranelift_codegen::ir::{Function, Inst, Opcode, ValueDef};

use super::{SinglePass, Step, Unsupported, check, places};

impl SinglePass {
    /// Counts; returns whether exceptions arrive in the function.
    pub(super) fn count(&mut self, func: &Function) -> Step<bool> {
        let entry = func.layout.entry_block();
        self.ways.clear();
        self.ways.resize(func.dfg.num_blocks(), 0);
        self.order.clear();
        let mut catches = false;
        let mut last = func.layout.last_block();
        while let Some(block) = last {
            last = func.layout.prev_block(block);
            self.order.push(block);
            for next in func.block_successors(block) {
                self.ways[next.as_u32() as usize] += 1;
            }
            for inst in func.layout.block_insts(block).rev() {
                let opcode = func.dfg.insts[inst].opcode();
                let results = func.dfg.inst_results(inst);
                if !has_effect(opcode) && !results.iter().any(|&result| self.places.is_used(result)) {
                    continue;
                }
                for &result in results {
                    check(func.dfg.value_type(result))?;
                }
                if places::is_rematerialized(opcode) {
                    self.places.set_rematerialized(func.dfg.first_result(inst));
                }
                catches |= matches!(opcode, Opcode::TryCall | Opcode::TryCallIndirect);
                self.count_operands(func, inst)?;
            }
            for &param in func.dfg.block_params(block) {
                check(func.dfg.value_type(param))?;
                if Some(block) != entry {
                    self.places.set_crosses(param);
                }
            }
        }
        self.order.reverse();
        // A stable sort: the entry is never cold.
        self.order.sort_by_key(|&block| func.layout.is_cold(block));
        Ok(catches)
    }

    fn count_operands(&mut self, func: &Function, inst: Inst) -> Step {
        let block = func.layout.inst_block(inst);
        for value in func.dfg.inst_values(inst) {
            let own = match func.dfg.value_def(value) {
                ValueDef::Result(def, _) => func.layout.inst_block(def),
                ValueDef::Param(own, _) => Some(own),
                ValueDef::Union(..) => return Err(Unsupported),
            };
            if func.dfg.value_is_alias(value) {
                return Err(Unsupported);
            }
            self.places.count_use(value, own != block);
        }
        Ok(())
    }
}

/// Whether an instruction is emitted although its results are unused. Loads are not: ours do not trap.
pub(super) fn has_effect(opcode: Opcode) -> bool {
    opcode.is_terminator()
        || opcode.is_call()
        || opcode.can_store()
        || (opcode.other_side_effects() && !places::is_rematerialized(opcode))
        || (opcode.can_trap() && !opcode.can_load())
}
