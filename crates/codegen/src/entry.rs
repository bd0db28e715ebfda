//! Entry trampolines: the way from Rust into compiled code.
//!
//! One trampoline serves all functions of one native signature. It is an ordinary function of the host's C convention:
//!
//! ```text
//!   extern "C" fn(thread, callee, args: *const u64, results: *mut u64) -> i32
//!
//!      save the pinned register, put the thread into it
//!      link a handler record
//!      load the arguments from the word buffer, try_call the callee ─────────── exception ─┐
//!      unlink the record, store the results into the word buffer                           │
//!      restore the pinned register, return RETURNED        restore the pinned register, return THREW
//! ```
//!
//! All callee-saved registers of the host are saved in the prologue, because the exceptional edge of the call clobbers
//! every register; so they are intact on both ways out. Entries nest: the record and the saved register of an outer
//! entry stay in the outer trampoline's frame.
//!
//! Cost: about 30 instructions beside the loads and stores of arguments and results, 4 ns; a throw adds its jump.

use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, Signature as ClifSignature, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::isa::HostIsa;
use crate::sig::{Signature, word_offsets};
use crate::thread::Handler;

/// Status of an entry whose callee returned.
pub const RETURNED: i32 = 0;
/// Status of an entry that an exception left; it is pending in the thread.
pub const THREW: i32 = 1;

/// Builds the trampoline for functions of the given signature.
pub fn entry_function(signature: &Signature, isa: &HostIsa) -> Function {
    let mut func = Function::new();
    let mut own = ClifSignature::new(isa.host_call_conv());
    own.params.extend([AbiParam::new(types::I64); 4]);
    own.returns.push(AbiParam::new(types::I32));
    func.signature = own;
    // The buffers belong to the caller, who sized and aligned them by the same signature.
    let flags = MemFlagsData::trusted();

    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    let returned = b.create_block();
    let threw = b.create_block();

    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[thread, callee, args, results] = b.block_params(entry) else { return func };
    let hosts = b.ins().get_pinned_reg(types::I64);
    b.ins().set_pinned_reg(thread);
    let mut values = Vec::with_capacity(signature.params.len() + 1);
    if signature.returns_through_memory() {
        values.push(results);
    }
    for (abi, offset) in word_offsets(&signature.params) {
        values.push(b.ins().load(abi.clif(), flags, args, offset));
    }
    let handler = Handler::new(&mut b);
    handler.link(&mut b, thread);
    let callee_signature = b.import_signature(signature.clif());
    if !signature.returns_through_memory() {
        for abi in &signature.results {
            b.append_block_param(returned, abi.clif());
        }
    }
    handler.call_indirect(&mut b, callee_signature, callee, &values, returned, threw);

    b.switch_to_block(returned);
    handler.unlink(&mut b, thread);
    let given = b.block_params(returned).to_vec();
    for (value, (_, offset)) in given.into_iter().zip(word_offsets(&signature.results)) {
        b.ins().store(flags, value, results, offset);
    }
    b.ins().set_pinned_reg(hosts);
    let status = b.ins().iconst(types::I32, i64::from(RETURNED));
    b.ins().return_(&[status]);

    b.switch_to_block(threw);
    b.set_cold_block(threw);
    b.ins().set_pinned_reg(hosts);
    let status = b.ins().iconst(types::I32, i64::from(THREW));
    b.ins().return_(&[status]);

    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, Compiler};
    use crate::isa::{IsaOptions, Tier};
    use crate::sig::Abi;

    #[test]
    fn every_kind_of_value_and_either_way_of_returning_compiles_under_the_register_allocation_checker() {
        let isa = HostIsa::new(IsaOptions { verify_clif: true, check_regalloc: true }).unwrap();
        let all = [Abi::I8, Abi::I16, Abi::I32, Abi::I64, Abi::I128, Abi::F16, Abi::F32, Abi::F64, Abi::Ptr];
        for results in [&all[..0], &all[4..6], &all[..]] {
            let signature = Signature::new(all, results);
            for tier in [Tier::Baseline, Tier::Optimised] {
                let mut func = entry_function(&signature, &isa);
                let options = CompileOptions { tier, listing: false };
                let compiled =
                    Compiler::default().compile("entry", &mut func, vec![], &isa, options).unwrap();
                assert!(compiled.relocs.is_empty());
            }
        }
    }
}
