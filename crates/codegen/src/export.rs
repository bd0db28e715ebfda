//! The entries by which C calls functions of an image.
//!
//! ```text
//!   NAME        the C convention of the host
//!      each argument into its own word, with zeros above
//!      brolga_exports_call(exports, index, words, word for the result)
//!      load the result from its word; it is zero if there is none
//!
//!   LIBRARY_open(options) -> error          brolga_exports_open(exports, options)
//! ```
//!
//! An entry does not depend on the run time: the system's loader loads it into a process before there is one. It names the *exports* of its
//! image, a record in the image's memory that records whether the image is open, and routines of the C library, which open
//! it, call the function and keep errors. So no exception and no panic reaches the entry, and it needs no unwind table.
//!
//! Cost: the words, and a call through a pointer.
//!
//! Not done: structs by value, 128-bit numbers, vectors.

use cranelift_codegen::ir::{Function, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::callback::import;
use crate::compile::{CompileError, CompileOptions, Compiler};
use crate::compiled::{CompiledFunction, Symbol};
use crate::isa::{TargetIsa, Tier};
use crate::sig::{Abi, Signature, c_signature};

/// The routine of the C library that calls an exported function.
pub const EXPORTS_CALL: &str = "brolga_exports_call";

/// The routine of the C library that opens an image.
pub const EXPORTS_OPEN: &str = "brolga_exports_open";

/// The data object that holds the exports of an image.
pub const EXPORTS: &str = "exports";

/// Whether values of the given kinds pass between C and an entry.
pub fn is_of_c(signature: &Signature) -> bool {
    let is_scalar =
        |abi: &Abi| matches!(abi, Abi::I8 | Abi::I16 | Abi::I32 | Abi::I64 | Abi::F32 | Abi::F64 | Abi::Ptr);
    signature.params.iter().chain(&signature.results).all(is_scalar) && signature.results.len() <= 1
}

/// The entry called `name` for the exported function of this number. The signature is one that [`is_of_c`].
///
/// # Errors
/// Cranelift refuses the function, which is a defect.
pub fn compile_export(
    name: &str,
    signature: &Signature,
    index: u32,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    compile(name, EXPORTS_CALL, &mut export_function(signature, index, isa), isa)
}

/// The function called `name` that opens an image with options and returns an error.
///
/// # Errors
/// As [`compile_export`].
pub fn compile_open(name: &str, isa: &TargetIsa) -> Result<CompiledFunction, CompileError> {
    compile(name, EXPORTS_OPEN, &mut open_function(isa), isa)
}

fn compile(
    name: &str,
    routine: &str,
    func: &mut Function,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    let symbols = vec![Symbol::Routine(routine.to_owned()), Symbol::Data(EXPORTS.to_owned())];
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    Compiler::default().compile(name, func, symbols, isa, options)
}

fn open_function(isa: &TargetIsa) -> Function {
    let mut func = Function::new();
    func.signature = c_signature(isa.host_call_conv(), &[Abi::I64], &[Abi::I64]);
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let options = b.block_params(entry)[0];
    let exports = import(&mut b, isa, 1, 0, 0);
    let exports = b.ins().func_addr(types::I64, exports);
    let routine = import(&mut b, isa, 0, 2, 1);
    let call = b.ins().call(routine, &[exports, options]);
    let results = b.inst_results(call).to_vec();
    b.ins().return_(&results);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

fn export_function(signature: &Signature, index: u32, isa: &TargetIsa) -> Function {
    let mut func = Function::new();
    func.signature = c_signature(isa.host_call_conv(), &signature.params, &signature.results);
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let given = b.block_params(entry).to_vec();
    let mut room = |words: usize| {
        let bytes = 8 * words.max(1) as u32;
        b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
    };
    let (args, results) = (room(given.len()), room(1));
    let zero = b.ins().iconst(types::I64, 0);
    b.ins().stack_store(types::I64, zero, results, 0);
    for (at, value) in given.into_iter().enumerate() {
        // The other bits of the word are zero.
        b.ins().stack_store(types::I64, zero, args, 8 * at as i32);
        b.ins().stack_store(types::I64, value, args, 8 * at as i32);
    }
    let exports = import(&mut b, isa, 1, 0, 0);
    let exports = b.ins().func_addr(types::I64, exports);
    let index = b.ins().iconst(types::I64, i64::from(index));
    let (args, words) = (b.ins().stack_addr(types::I64, args, 0), b.ins().stack_addr(types::I64, results, 0));
    let routine = import(&mut b, isa, 0, 4, 0);
    b.ins().call(routine, &[exports, index, args, words]);
    let load = |abi: &Abi| b.ins().load(abi.clif(), MemFlagsData::trusted(), words, 0);
    let values: Vec<_> = signature.results.iter().map(load).collect();
    b.ins().return_(&values);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::IsaOptions;

    #[test]
    fn entries_compile_with_arguments_in_registers_and_in_memory() {
        let options = IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() };
        let isa = TargetIsa::for_images(options).unwrap();
        let kinds = [Abi::I8, Abi::I16, Abi::I32, Abi::I64, Abi::F32, Abi::F64, Abi::Ptr];
        let params: Vec<Abi> = kinds.into_iter().cycle().take(30).collect();
        for result in kinds.map(|kind| vec![kind]).into_iter().chain([vec![]]) {
            let signature = Signature::new(params.clone(), result);
            assert!(is_of_c(&signature));
            let compiled = compile_export("f", &signature, 3, &isa).unwrap();
            assert_eq!(compiled.symbols.len(), 2);
        }
        assert_eq!(compile_open("open", &isa).unwrap().symbols.len(), 2);
        for abi in [Abi::I128, Abi::F16, Abi::Object, Abi::V128] {
            assert!(!is_of_c(&Signature::new([abi], [])));
        }
        assert!(!is_of_c(&Signature::new([], [Abi::I64, Abi::I64])));
    }
}
