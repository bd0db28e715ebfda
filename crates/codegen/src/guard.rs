//! The guard before a function whose frame is larger than the stack's reserve.
//!
//! ```text
//!   NAME:       if stack pointer - frame < stack limit   throw StackOverflowError
//!               else                                     tail call NAME#body with the same arguments
//! ```
//!
//! The guard has the signature of the body, hidden result pointer included, so arguments and results stay in place. It is
//! compiled after the body, because only then the size of the frame is known.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature, TrapCode,
    UserExternalName, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::compiled::{MAX_FRAME_BYTES, Symbol};
use crate::isa::TargetIsa;
use crate::thread::{THREAD_STACK_LIMIT, current_thread};
use crate::translate::UNREACHABLE_TRAP;

/// The guard of `body`, whose frame has `frame` bytes, and the symbols of its external names.
pub(crate) fn guard_function(
    body: &str,
    signature: Signature,
    frame: u32,
    isa: &TargetIsa,
) -> (Function, Vec<Symbol>) {
    let throws = ["brolga_throw_stack_overflow", "brolga_unwind"];
    let mut symbols = vec![Symbol::Function(body.to_owned())];
    symbols.extend(throws.map(|routine| Symbol::Routine(routine.to_owned())));

    let mut func = Function::new();
    func.signature = signature.clone();
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let (entry, fits, overflow) = (b.create_block(), b.create_block(), b.create_block());
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let args = b.block_params(entry).to_vec();
    let thread = current_thread(&mut b);
    let limit = b.ins().load(types::I64, MemFlagsData::trusted(), thread, THREAD_STACK_LIMIT);
    // The limit grows by the frame instead of the stack pointer shrinking by it, which could wrap.
    let needed = b.ins().iadd_imm_s(limit, i64::from(frame.max(MAX_FRAME_BYTES)));
    let pointer = b.ins().get_stack_pointer(types::I64);
    let too_low = b.ins().icmp(IntCC::UnsignedLessThan, pointer, needed);
    b.ins().brif(too_low, overflow, &[], fits, &[]);

    let import = |b: &mut FunctionBuilder<'_>, index: u32, signature: Signature, colocated: bool| {
        let signature = b.import_signature(signature);
        let name = b.func.declare_imported_user_function(UserExternalName::new(0, index));
        let name = ExternalName::user(name);
        b.import_function(ExtFuncData { name, signature, colocated, patchable: false })
    };
    b.switch_to_block(fits);
    let body = import(&mut b, 0, signature, true);
    b.ins().return_call(body, &args);

    b.switch_to_block(overflow);
    b.set_cold_block(overflow);
    for index in 1..=throws.len() as u32 {
        let mut routine = Signature::new(isa.host_call_conv());
        routine.params.push(AbiParam::new(types::I64));
        let routine = import(&mut b, index, routine, false);
        b.ins().call(routine, &[thread]);
    }
    b.ins().trap(TrapCode::unwrap_user(UNREACHABLE_TRAP));
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    (func, symbols)
}
