//! Plain entries: the code by which C calls one function with arguments and result in registers.
//!
//! ```text
//!   NAME#plain    the C convention of the host
//!      store the arguments into words
//!      call (target, words, words for the result) -> code        of Rust: enters, calls, and keeps an error
//!      as a value     return the result; zero if the code is not 0
//!      as a code      return the code; if it is 0, store the result at the last argument, unless that is null
//! ```
//!
//! Unlike a C entry (`callback.rs`), which passes an exception to the compiled code that has called C, this one is for callers without any: its `target` decides what
//! becomes of an error. It is made for one handle of a function, whose type is checked before.
//!
//! Cost beside the call of Rust: a store and a load for each argument, a store and a load for the result.

use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, MemFlagsData, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::callback::{import, words};
use crate::compile::{CompileError, CompileOptions, Compiler};
use crate::compiled::{CompiledFunction, Symbol};
use crate::isa::{TargetIsa, Tier};
use crate::sig::{Signature, c_signature, word_offsets};

/// How a plain entry returns the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainForm {
    /// As the value of the C function.
    Value,
    /// By an address, which is the last argument; the value of the C function is a code.
    Code,
}

/// The function that a plain entry calls.
pub const PLAIN_CALL: &str = "brolga_plain_call";

/// The name of the plain entry of the function of this name.
pub fn plain_name(name: &str) -> String {
    format!("{name}#plain")
}

/// The code of a plain entry. It refers to [`PLAIN_CALL`] as a routine, and to its target by the function's name. All
/// values are of C: none is an object or of 128 bits, and there is at most one result.
pub fn compile_plain_entry(
    name: &str,
    signature: &Signature,
    form: PlainForm,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    let symbols = vec![Symbol::Routine(PLAIN_CALL.to_owned()), Symbol::Function(name.to_owned())];
    let mut func = plain_entry(signature, form, isa);
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    Compiler::default().compile(&plain_name(name), &mut func, symbols, isa, options)
}

fn plain_entry(signature: &Signature, form: PlainForm, isa: &TargetIsa) -> Function {
    let mut func = Function::new();
    let results = match form {
        PlainForm::Value => &signature.results[..],
        PlainForm::Code => &[],
    };
    func.signature = c_signature(isa.host_call_conv(), &signature.params, results);
    if form == PlainForm::Code {
        func.signature.params.push(AbiParam::new(types::I64));
        func.signature.returns.push(AbiParam::new(types::I32));
    }
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let given = b.block_params(entry).to_vec();
    let (args, results) = (words(&mut b, &signature.params), words(&mut b, &signature.results));
    for (&value, (abi, offset)) in given.iter().zip(word_offsets(&signature.params)) {
        b.ins().store(abi.word_flags(), value, args, offset);
    }
    // The result of a call that threw.
    let zero = b.ins().iconst(types::I64, 0);
    b.ins().store(MemFlagsData::trusted(), zero, results, 0);
    let target = import(&mut b, isa, 1, 0, 0);
    let target = b.ins().func_addr(types::I64, target);
    let call = import(&mut b, isa, 0, 3, 1);
    let call = b.ins().call(call, &[target, args, results]);
    let code = b.inst_results(call)[0];
    let result = word_offsets(&signature.results).next();
    match form {
        PlainForm::Value => {
            let value =
                result.map(|(abi, offset)| b.ins().load(abi.clif(), abi.word_flags(), results, offset));
            b.ins().return_(value.as_slice());
        }
        PlainForm::Code => {
            let status = b.ins().ireduce(types::I32, code);
            if let (Some((abi, offset)), Some(&place)) = (result, given.last()) {
                let (wanted, done, write) = (b.create_block(), b.create_block(), b.create_block());
                b.ins().brif(code, done, &[], wanted, &[]);
                b.switch_to_block(wanted);
                b.ins().brif(place, write, &[], done, &[]);
                b.switch_to_block(write);
                let value = b.ins().load(abi.clif(), abi.word_flags(), results, offset);
                b.ins().store(MemFlagsData::new(), value, place, 0);
                b.ins().jump(done, &[]);
                b.switch_to_block(done);
            }
            b.ins().return_(&[status]);
        }
    }
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::IsaOptions;
    use crate::sig::Abi;

    #[test]
    fn every_kind_of_value_of_c_compiles_in_both_forms() {
        let isa =
            TargetIsa::new(IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() });
        let isa = isa.unwrap();
        let values = [Abi::I8, Abi::I16, Abi::I32, Abi::I64, Abi::Ptr, Abi::F32, Abi::F64];
        // More than there are registers.
        let many: Vec<Abi> = values.iter().cycle().take(20).copied().collect();
        for form in [PlainForm::Value, PlainForm::Code] {
            for result in values {
                for params in [&many[..], &[]] {
                    let signature = Signature::new(params, [result]);
                    compile_plain_entry("f", &signature, form, &isa).unwrap();
                }
            }
            compile_plain_entry("f", &Signature::new([Abi::I64], []), form, &isa).unwrap();
        }
    }
}
