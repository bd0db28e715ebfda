//! Entries from Rust into compiled code: entry trampolines.
//!
//! One serves all functions of one native signature. It is an ordinary function of the host's C convention:
//!
//! ```text
//!   extern "C" fn(thread, callee, args: *const u64, results: *mut u64) -> i32
//!
//!      save the pinned register, put the thread into it
//!      link an entry record: a handler, and where the stack above is compiled code
//!      load the arguments from the word buffer, try_call the callee ─────────── exception ─┐
//!      unlink the records, store the results into the word buffer          drop GC frames    │
//!      restore the pinned register, return RETURNED        restore the pinned register, return THREW
//! ```
//!
//! One more serves all boxed entries, which take objects in an array and return an object: the run time calls them through
//! it after it has found the method of a dynamic call.
//!
//! ```text
//!   extern "C" fn(callee, thread, args: *const object, count: i64) -> object, or null when it threw
//! ```
//!
//! All callee-saved registers of the host are saved in the prologue, because the exceptional edge of the call clobbers
//! every register; so they are intact on both exits. Entries nest: the record and the saved register of an outer
//! entry stay in the outer trampoline's frame. The exceptional exit abandons frames with roots in them, so it restores the thread's list
//! of GC frames.
//!
//! Cost: about 30 instructions beside the loads and stores of arguments and results, 4 ns; a throw adds its jump.

use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, MemFlagsData, Signature as ClifSignature, Type, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::compile::{CompileError, CompileOptions, Compiler};
use crate::compiled::CompiledFunction;
use crate::isa::{TargetIsa, Tier};
use crate::sig::{Abi, Signature, word_offsets};
use crate::thread::{Entry, THREAD_GC_STACK};

/// Status of an entry whose callee returned.
pub const RETURNED: i32 = 0;
/// Status of an entry that an exception left; it is pending in the thread.
pub const THREW: i32 = 1;

/// The signature of boxed entries: an array of objects and its length; an object.
pub fn boxed_signature() -> Signature {
    Signature::new([Abi::Ptr, Abi::I64], [Abi::Object])
}

/// The name of the trampoline for functions of the given signature, in images, which have their own.
pub fn entry_name(signature: &Signature) -> String {
    let list = |abis: &[Abi]| abis.iter().map(|abi| format!(" {abi:?}")).collect::<String>();
    format!("brolga entry{} to{}", list(&signature.params), list(&signature.results))
}

/// Builds the trampoline for functions of the given signature.
pub fn entry_function(signature: &Signature, isa: &TargetIsa) -> Function {
    // The caller owns the buffers, and has sized and aligned them by the same signature.
    trampoline(isa, types::I32, i64::from(THREW), |b, params, [returned, threw]| {
        let [thread, callee, args, results] = params;
        let way = Way::open(b, thread);
        let mut values = Vec::with_capacity(signature.params.len() + 1);
        if signature.returns_through_memory() {
            values.push(results);
        }
        for (abi, offset) in word_offsets(&signature.params) {
            values.push(b.ins().load(abi.clif(), abi.word_flags(), args, offset));
        }
        let given = way.call(b, signature, callee, &values, [returned, threw]);
        for (value, (abi, offset)) in given.into_iter().zip(word_offsets(&signature.results)) {
            b.ins().store(abi.word_flags(), value, results, offset);
        }
        (way, b.ins().iconst(types::I32, i64::from(RETURNED)))
    })
}

/// Builds the trampoline for boxed entries.
pub fn boxed_entry_function(isa: &TargetIsa) -> Function {
    trampoline(isa, types::I64, 0, |b, params, ways| {
        let [callee, thread, args, count] = params;
        let way = Way::open(b, thread);
        let given = way.call(b, &boxed_signature(), callee, &[args, count], ways);
        (way, given.first().copied().unwrap_or(args))
    })
}

/// The machine code of a trampoline.
pub fn compile_entry(
    name: &str,
    mut func: Function,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    Compiler::default().compile(name, &mut func, Vec::new(), isa, options)
}

/// A function of four words. `body` fills it up to the place where the callee has returned, and determines the status for
/// that case; `failed` is returned when it threw.
fn trampoline(
    isa: &TargetIsa,
    result: Type,
    failed: i64,
    body: impl FnOnce(&mut FunctionBuilder<'_>, [Value; 4], [Block; 2]) -> (Way, Value),
) -> Function {
    let mut func = Function::new();
    let mut own = ClifSignature::new(isa.host_call_conv());
    own.params.extend([AbiParam::new(types::I64); 4]);
    own.returns.push(AbiParam::new(result));
    func.signature = own;

    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    let returned = b.create_block();
    let threw = b.create_block();
    let params = [(); 4].map(|()| b.append_block_param(entry, types::I64));
    b.switch_to_block(entry);
    let (way, value) = body(&mut b, params, [returned, threw]);
    b.ins().set_pinned_reg(way.hosts);
    b.ins().return_(&[value]);

    b.switch_to_block(threw);
    b.set_cold_block(threw);
    b.ins().store(MemFlagsData::trusted(), way.gc_stack, way.thread, THREAD_GC_STACK);
    way.entry.unlink(&mut b, way.thread);
    b.ins().set_pinned_reg(way.hosts);
    let value = b.ins().iconst(result, failed);
    b.ins().return_(&[value]);

    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

/// The registers that a trampoline preserves.
struct Way {
    thread: Value,
    /// The host's value of the pinned register.
    hosts: Value,
    gc_stack: Value,
    entry: Entry,
}

impl Way {
    fn open(b: &mut FunctionBuilder<'_>, thread: Value) -> Way {
        let hosts = b.ins().get_pinned_reg(types::I64);
        b.ins().set_pinned_reg(thread);
        let gc_stack = b.ins().load(types::I64, MemFlagsData::trusted(), thread, THREAD_GC_STACK);
        let entry = Entry::link(b, thread);
        Way { thread, hosts, gc_stack, entry }
    }

    /// Calls and continues where the callee has returned, with its results.
    fn call(
        &self,
        b: &mut FunctionBuilder<'_>,
        signature: &Signature,
        callee: Value,
        args: &[Value],
        [returned, threw]: [Block; 2],
    ) -> Vec<Value> {
        let imported = b.import_signature(signature.clif());
        let in_registers: &[Abi] = if signature.returns_through_memory() { &[] } else { &signature.results };
        let given = in_registers.iter().map(|abi| b.append_block_param(returned, abi.clif())).collect();
        self.entry.handler.call_indirect(b, imported, callee, args, returned, threw);
        b.switch_to_block(returned);
        self.entry.handler.unlink(b, self.thread);
        self.entry.unlink(b, self.thread);
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::IsaOptions;
    use crate::sig::Abi;

    #[test]
    fn every_kind_of_value_and_either_way_of_returning_compiles_under_the_register_allocation_checker() {
        let isa =
            TargetIsa::new(IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() })
                .unwrap();
        let all = Abi::ALL;
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
        let options = CompileOptions { tier: Tier::Baseline, listing: false };
        let mut func = boxed_entry_function(&isa);
        assert!(Compiler::default().compile("boxed", &mut func, vec![], &isa, options).is_ok());
    }
}
