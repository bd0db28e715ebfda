//! Calls through indirection cells, counted entries, and OSR checks in loops. `linkage.rs` has their purpose.
//!
//! ```text
//!   call             lea  r, [rip + cell]          entry     lea  r, [rip + counter]
//!                    mov  r, [r]                             mov  n, [r]; sub n, 1; mov [r], n
//!                    call r                                  js   cold: brolga_hot(thread, r)
//! ```
//!
//! The word is read by a plain load: an atomic one is a fence to Cranelift, across which it forwards no loads. A plain load
//! suffices, since a call follows each load, and Cranelift assumes that a call changes all memory: no load is reused, none
//! is moved before a call. On the processor a call through an address depends on the load of the address.
//!
//! An OSR check counts like an entry; its routine is `brolga_loop`, whose result is the answer. If only the branch
//! after it uses the answer, the branch is translated together with it.
//!
//! Neither routine throws or is a safepoint, so no code walks the stack meanwhile, and no exit is recorded.
//!
//! All threads share a counter. Its load and store are two accesses that may lose another thread's count, and never yield a
//! value that no thread wrote.
//!
//! Cost: 12 bytes on x86-64 where a near call has 5, and up to 0.2 ns more than it; 0.1 ns for a counted entry.

use brolga_ir::{Block, Inst, Op};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self as clif, AbiParam, AliasRegionData, ExternalName, FuncRef, GlobalValueData, InstBuilder,
    MemFlagsData, SigRef, Signature as ClifSignature, Type, Value, types,
};

use super::{Done, Translation};
use crate::compiled::Symbol;
use crate::linkage::{HOT, LOOP};
use crate::sig::Signature;

/// The number of the alias region of cells and counters, which no low IR region has.
const REGION: u32 = u32::MAX;

/// A compiled callee.
#[derive(Clone, Copy)]
pub(super) enum Compiled {
    /// One that the linker finds.
    Known(FuncRef),
    /// One whose address has just been loaded.
    Loaded(SigRef, Value),
}

/// A counter that has just been counted down.
struct Counted {
    word: Value,
    /// Whether it is below zero.
    is_out: Value,
}

impl Translation<'_> {
    /// The current code of a function that is called through its cell.
    pub(super) fn load_cell(&mut self, name: String, signature: &Signature) -> Compiled {
        let word = self.near_address(Symbol::IndirectCell(name));
        let flags = self.word_flags();
        let address = self.b.ins().load(types::I64, flags, word, 0);
        Compiled::Loaded(self.b.import_signature(signature.clif()), address)
    }

    /// Counts an entry if that is requested.
    pub(super) fn count_entry(&mut self) {
        let Some(name) = self.linkage.counter else { return };
        let Counted { word, is_out } = self.count_down(name.to_owned());
        let (cold, go_on) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(is_out, cold, &[], go_on, &[]);
        self.b.switch_to_block(cold);
        self.call_counting(HOT, word, None);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// The answer of the OSR check of that name.
    pub(super) fn osr_check(&mut self, name: String) -> Value {
        let Counted { word, is_out } = self.count_down(name);
        let (cold, go_on) = (self.cold_block(), self.b.create_block());
        let answer = self.b.append_block_param(go_on, types::I8);
        let no = self.b.ins().iconst(types::I8, 0);
        self.b.ins().brif(is_out, cold, &[], go_on, &[no.into()]);
        self.b.switch_to_block(cold);
        let call = self.call_counting(LOOP, word, Some(types::I32));
        let given = self.b.inst_results(call)[0];
        let given = self.b.ins().ireduce(types::I8, given);
        self.b.ins().jump(go_on, &[given.into()]);
        self.b.switch_to_block(go_on);
        answer
    }

    /// Whether only the branch after it uses the answer of an OSR check.
    pub(super) fn asks_for_branch(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let (Some(answer), Some(next)) = (func.results(inst).next(), func.next_inst(inst)) else {
            return false;
        };
        if func.op(next) != Op::Branch || func.args(next) != [answer] || self.site(next).is_some() {
            return false;
        }
        self.only_use(answer).is_some()
    }

    /// A branch on the answer of the OSR check of that name.
    pub(super) fn branch_on_osr_check(&mut self, block: Block, inst: Inst, name: String) -> Done {
        let &[yes, no] = self.func.inst_blocks(inst) else { return self.bad(inst) };
        let (yes_args, no_args) = (self.edge(block, yes)?, self.edge(block, no)?);
        let (yes, no) = (self.block(yes)?, self.block(no)?);
        let Counted { word, is_out } = self.count_down(name);
        let cold = self.cold_block();
        self.b.ins().brif(is_out, cold, &[], no, &no_args);
        self.b.switch_to_block(cold);
        let call = self.call_counting(LOOP, word, Some(types::I32));
        let answer = self.b.inst_results(call)[0];
        self.b.ins().brif(answer, yes, &yes_args, no, &no_args);
        Ok(())
    }

    /// Decrements a counter.
    fn count_down(&mut self, name: String) -> Counted {
        let word = self.near_address(Symbol::Counter(name));
        let flags = self.word_flags();
        let count = self.b.ins().load(types::I32, flags, word, 0);
        let less = self.b.ins().iadd_imm_s(count, -1);
        self.b.ins().store(flags, less, word, 0);
        let is_out = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, less, 0);
        Counted { word, is_out }
    }

    /// Calls a routine with a counter's address.
    fn call_counting(&mut self, routine: &str, word: Value, result: Option<Type>) -> clif::Inst {
        let mut signature = ClifSignature::new(self.isa.host_call_conv());
        signature.params.push(AbiParam::new(types::I64));
        signature.returns.extend(result.map(AbiParam::new));
        let callee = self.import(Symbol::Routine(routine.to_owned()), signature, false);
        self.b.ins().call(callee, &[word])
    }

    /// The address of a word in the reservation of the code.
    fn near_address(&mut self, symbol: Symbol) -> Value {
        let name = self.external_name(symbol);
        let global = self.b.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: 0.into(),
            colocated: true,
            tls: false,
        });
        self.b.ins().symbol_value(types::I64, global)
    }

    pub(super) fn word_flags(&mut self) -> MemFlagsData {
        let region = *self.words.get_or_insert_with(|| {
            self.b
                .func
                .dfg
                .alias_regions
                .insert(AliasRegionData { user_id: REGION, description: "cells".into() })
        });
        let mut flags = MemFlagsData::trusted();
        flags.set_alias_region(Some(region));
        flags
    }
}
