//! Counting for a profile: outcomes of branches and operand types of dynamic calls in a first tier.
//!
//! ```text
//!   branch    w = [cell];  [cell] = w + 1 + (condition << 32)       low half: how often, high half: how often true
//!   call      [cell] < SAMPLES? ── yes, cold ──► brolga_seen(cell, n, tags…)      which adds one, and records the tags
//! ```
//!
//! The linker places the cells: code names [`Symbol::Cells`] and a distance. An instruction with a *site*
//! (`brolga_ir::hints`) is counted, except for
//!
//! | left out | because |
//! |---|---|
//! | branches with a cold target | their branch weights are known |
//! | branches out of a loop | it iterates more often than not; and the smallest loops would pay most |
//! | calls with more than [`SEEN_OPERANDS`] operands | they have no site |
//!
//! All threads share the cells. A load and a store are two accesses, between which another thread's count may be lost; counts are
//! hints. The low half may overflow into the high one after 2^32 counts, long after the function has its second tier.
//!
//! Cost: six instructions for a branch; a loop of a test, an addition and such a branch takes 8 % longer. For a call a load and a comparison, and about
//! 10 ns for each of the first `SAMPLES`.

use brolga_ir::hints::Site;
use brolga_ir::{Block, Inst};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, ExternalName, GlobalValueData, InstBuilder, Signature as ClifSignature, Value, types,
};

use super::{Done, Translation};
use crate::compiled::Symbol;
use crate::linkage::{SAMPLES, SEEN, SEEN_OPERANDS};

impl Translation<'_> {
    /// The site at which an instruction is to be counted, if it is.
    pub(super) fn site(&self, inst: Inst) -> Option<Site> {
        self.func.hint(inst)?.site.filter(|_| self.linkage.is_profiled)
    }

    /// Counts a branch at the end of a block.
    pub(super) fn count_branch(&mut self, block: Block, inst: Inst) -> Done {
        let (Some(site), &[yes, no]) = (self.site(inst), self.func.inst_blocks(inst)) else { return Ok(()) };
        let leaves = |to| {
            self.loops.as_ref().is_some_and(|l| l.loop_of(block).is_some_and(|own| !l.contains(own, to)))
        };
        if [yes, no].into_iter().any(|to| self.func.is_cold(to) || leaves(to)) {
            return Ok(());
        }
        let condition = self.arg(inst, 0)?;
        let mut truth = self.b.ins().uextend(types::I64, condition);
        if site.swapped {
            truth = self.b.ins().bxor_imm_u(truth, 1);
        }
        let high = self.b.ins().ishl_imm_u(truth, 32);
        let by = self.b.ins().iadd_imm_s(high, 1);
        let cell = self.cell(site);
        let flags = self.word_flags();
        let word = self.b.ins().load(types::I64, flags, cell, 0);
        let word = self.b.ins().iadd(word, by);
        self.b.ins().store(flags, word, cell, 0);
        Ok(())
    }

    /// Records the operand types of the first executions of a dynamic call.
    pub(super) fn note_call(&mut self, inst: Inst, tags: &[Value]) {
        let Some(site) = self.site(inst).filter(|_| tags.len() <= SEEN_OPERANDS) else { return };
        let cell = self.cell(site);
        let flags = self.word_flags();
        let count = self.b.ins().load(types::I64, flags, cell, 0);
        let is_new = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, count, SAMPLES as i64);
        let (cold, go_on) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(is_new, cold, &[], go_on, &[]);
        self.b.switch_to_block(cold);
        let mut signature = ClifSignature::new(self.isa.host_call_conv());
        signature.params.extend([AbiParam::new(types::I64); 2 + SEEN_OPERANDS]);
        let callee = self.import(Symbol::Routine(SEEN.to_owned()), signature, false);
        let mut given = vec![cell, self.b.ins().iconst(types::I64, tags.len() as i64)];
        given.extend(tags);
        let none = self.b.ins().iconst(types::I64, 0);
        given.resize(2 + SEEN_OPERANDS, none);
        self.b.ins().call(callee, &given);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// The address of a cell.
    fn cell(&mut self, site: Site) -> Value {
        let name = self.external_name(Symbol::Cells);
        let global = self.b.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: (i64::from(site.cell) * 8).into(),
            colocated: false,
            tls: false,
        });
        self.b.ins().symbol_value(types::I64, global)
    }
}
