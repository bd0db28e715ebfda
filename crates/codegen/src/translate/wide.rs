//! Loops in 256 or 512 bits: the call of the code that follows the function.
//!
//! The block stays, with its φs. It stores the loop's inputs to a stack slot, calls the loop, loads the counters and the carried values, and recomputes its other values as of the last
//! iteration. Cranelift's mid-end removes those without a use after the loop.

use brolga_ir::{Block, Inst, LowType, Op, Value};
use cranelift_codegen::ir::{
    self as clif, AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, StackSlotData,
    StackSlotKind, types,
};

use super::{Done, TranslateError, Translation};
use crate::wide::find::{find, is_candidate, leaving};
use crate::wide::{LOOP, Parts, WideLoop, emit::emit};

impl Translation<'_> {
    /// Translates a block if it is such a loop.
    pub(super) fn wide_loop(&mut self, block: Block) -> Result<bool, TranslateError> {
        let Some(features) = self.isa.wide() else { return Ok(false) };
        let func = self.func;
        if self.linkage.is_profiled || !is_candidate(func, block) {
            return Ok(false);
        }
        let leaving = self.leaving.get_or_insert_with(|| leaving(func));
        let widths = if features.avx512 { &[4, 2][..] } else { &[2] };
        let made = widths.iter().find_map(|&parts| {
            let wide = find(func, block, features, leaving, parts)?;
            // A 512-bit load that crosses a cache line waits for earlier stores to both lines, which hurts loops that update a short array in place.
            (parts == 2 || !wide.changes_in_place()).then(|| Some((emit(&wide)?, wide)))?
        });
        let Some((code, wide)) = made else { return Ok(false) };
        let number = self.wide_loops.len() as u32;
        self.wide_loops.push(code);
        self.call_loop(block, &wide, number)?;
        Ok(true)
    }

    fn call_loop(&mut self, block: Block, wide: &WideLoop, number: u32) -> Done {
        let func = self.func;
        let Some(end) = func.terminator(block) else {
            return Err(TranslateError::Unterminated { name: self.name.clone() });
        };
        let phis: Vec<Inst> = func.block_insts(block).take_while(|&inst| func.op(inst) == Op::Phi).collect();
        for &phi in &phis {
            self.phi(block, phi)?;
        }
        let slot = self.loop_memory(wide.bytes());
        let memory = self.b.ins().stack_addr(types::I64, slot, 0);
        self.hand_in(end, wide, memory)?;
        self.call_loop_code(number, memory);
        self.take_out(wide, memory);
        for inst in func.block_insts(block) {
            let values = func.results(inst).chain(func.args(inst).iter().copied());
            let is_vector = values.into_iter().any(|v| func.ty(v).as_low() == Some(LowType::V128));
            if !is_vector && !matches!(func.op(inst), Op::Phi | Op::Branch) {
                self.inst(block, inst)?;
            }
        }
        let args = self.edge(block, wide.exit)?;
        let exit = self.block(wide.exit)?;
        self.b.ins().jump(exit, &args);
        Ok(())
    }

    /// The stack slot, which all loops of the function share: a small frame has short displacements.
    fn loop_memory(&mut self, bytes: u32) -> clif::StackSlot {
        let slot = match self.loop_memory {
            Some(slot) => slot,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
                *self.loop_memory.insert(self.b.create_sized_stack_slot(data))
            }
        };
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = bytes.max(*size);
        slot
    }

    /// Stores the loop's inputs.
    fn hand_in(&mut self, end: Inst, wide: &WideLoop, memory: clif::Value) -> Done {
        let counters = wide.counters.iter().enumerate().map(|(n, one)| (one.phi, wide.counter_at(n)));
        let words = wide.words.iter().enumerate().map(|(n, &word)| (word, wide.word_at(n)));
        let places = |at: i32| move |(part, &value): (usize, &Value)| (value, at + 16 * part as i32);
        let carried = wide.carried.iter().enumerate();
        let carried =
            carried.flat_map(|(n, one)| one.phis.iter().enumerate().map(places(wide.carried_at(n))));
        // A value that is equal in all parts is stored once.
        let read =
            |parts: &Parts<Value>| if parts.iter().all(|&part| part == parts[0]) { 1 } else { parts.len() };
        let inputs = wide.inputs.iter().enumerate();
        let inputs =
            inputs.flat_map(|(n, one)| one[..read(one)].iter().enumerate().map(places(wide.input_at(n))));
        let all: Vec<_> = counters.chain(words).chain(carried).chain(inputs).collect();
        for (value, at) in all {
            let made = self.value(end, value)?;
            self.b.ins().store(MemFlagsData::trusted(), made, memory, at);
        }
        Ok(())
    }

    fn call_loop_code(&mut self, number: u32, memory: clif::Value) {
        let mut signature = clif::Signature::new(self.isa.host_call_conv());
        signature.params.push(AbiParam::new(types::I64));
        let signature = self.b.import_signature(signature);
        let name = self.b.func.declare_imported_user_function(clif::UserExternalName::new(LOOP, number));
        let data =
            ExtFuncData { name: ExternalName::user(name), signature, colocated: true, patchable: false };
        let callee = self.b.import_function(data);
        self.b.ins().call(callee, &[memory]);
    }

    /// Loads the loop's results. A counter has its value of the last iteration.
    fn take_out(&mut self, wide: &WideLoop, memory: clif::Value) {
        let flags = MemFlagsData::trusted();
        for (n, counter) in wide.counters.iter().enumerate() {
            let next = self.b.ins().load(types::I64, flags, memory, wide.counter_at(n));
            let last = self.b.ins().iadd_imm_s(next, -i64::from(counter.step));
            self.values[counter.phi] = last.into();
        }
        for (n, one) in wide.carried.iter().enumerate() {
            for (part, &result) in one.results.iter().enumerate() {
                let at = wide.carried_at(n) + 16 * part as i32;
                let loaded = self.b.ins().load(types::I8X16, flags, memory, at);
                self.values[result] = loaded.into();
            }
        }
    }
}
