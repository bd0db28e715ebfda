//! The trampoline of functions that are not compiled: from a stub to the code that the stub represents.
//!
//! One serves all functions of one native signature, and has that signature itself:
//!
//! ```text
//!   caller ──► stub: thread.lazy = its data; jump ──► trampoline
//!
//!      throw StackOverflowError if the stack is used up
//!      put the objects among the arguments into a GC frame, link it
//!      record where compiled code is left
//!      code = brolga_materialize(thread)          may take long; collections continue meanwhile
//!      read the objects back, unlink the frame
//!      code ≠ 0   tail call code with the arguments       code = 0   brolga_unwind: an exception is pending
//! ```
//!
//! Functions of numbers alone may be interpreted until they are compiled. Their trampoline writes the arguments into words first, 16 bytes for
//! each, and calls `brolga_interpret`; if that has put the results into the same words, it returns them and compiles nothing:
//!
//! ```text
//!      words = arguments
//!      done = brolga_interpret(thread, words)
//!      done ≠ 0   return the words        done = 0   as above
//! ```
//!
//! Arguments on the stack stay there, the hidden result pointer is an ordinary argument, and results bypass the trampoline: the
//! code returns to the caller of the stub.
//!
//! Cost: a function is called through it once, or until it is compiled. Beside the routine about 20 instructions.

use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, MemFlagsData,
    Signature as ClifSignature, StackSlotData, StackSlotKind, TrapCode, Type, UserExternalName, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::compile::{CompileError, CompileOptions, Compiler};
use crate::compiled::{CompiledFunction, Symbol};
use crate::isa::{TargetIsa, Tier};
use crate::sig::{Abi, Signature};
use crate::thread::{THREAD_GC_STACK, check_stack, current_thread, note_exit};
use crate::translate::UNREACHABLE_TRAP;

/// The routine that returns the address of the code that `thread.lazy` represents, or 0 when an exception is pending.
pub const MATERIALIZE: &str = "brolga_materialize";

/// The routine that computes a function's results without its code. It takes the thread and the address of the words, and
/// returns 1 on success. It is not a safepoint, and does not throw.
pub const INTERPRET: &str = "brolga_interpret";

/// Functions of more arguments or results are not interpreted: the words are part of a frame.
const MAX_INTERPRETED: usize = 64;

/// The bytes of a word of an argument or result.
pub const INTERPRETED_WORD: u32 = 16;

/// Routines that a trampoline refers to, by index.
const ROUTINES: [&str; 4] = [MATERIALIZE, UNWIND, "brolga_throw_stack_overflow", INTERPRET];

const UNWIND: &str = "brolga_unwind";

/// The words of a GC frame before its slots: their number times 4, the frame before.
const FRAME_WORDS: usize = 2;

/// Whether functions of a signature can be interpreted: they neither take nor return addresses.
pub fn can_be_interpreted(signature: &Signature) -> bool {
    let mut all = signature.params.iter().chain(&signature.results);
    let fits = signature.params.len().max(signature.results.len()) <= MAX_INTERPRETED;
    fits && !signature.returns_through_memory() && all.all(|abi| !matches!(abi, Abi::Object | Abi::Ptr))
}

/// Builds and compiles the trampoline for functions of the given signature, which are interpreted first if that is requested and
/// [they can be](can_be_interpreted).
pub fn compile_lazy(
    name: &str,
    signature: &Signature,
    isa: &TargetIsa,
    interpreted: bool,
) -> Result<CompiledFunction, CompileError> {
    compile(name, lazy_function(signature, isa, interpreted), &ROUTINES, isa)
}

fn compile(
    name: &str,
    mut func: Function,
    routines: &[&str],
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    let symbols = routines.iter().map(|&routine| Symbol::Routine(routine.to_owned())).collect();
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    Compiler::default().compile(name, &mut func, symbols, isa, options)
}

fn lazy_function(signature: &Signature, isa: &TargetIsa, interpreted: bool) -> Function {
    let mut func = Function::new();
    func.signature = signature.clif();
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let [entry, overflow, made, failed] = [(); 4].map(|()| b.create_block());
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let mut args = b.block_params(entry).to_vec();
    let thread = current_thread(&mut b);
    check_stack(&mut b, thread, overflow);
    if interpreted && can_be_interpreted(signature) {
        interpret(&mut b, isa, signature, thread, &args);
    }

    let hidden = usize::from(signature.returns_through_memory());
    let objects: Vec<usize> =
        (0..signature.params.len()).filter(|&at| signature.params[at] == Abi::Object).collect();
    let frame = Frame::link(&mut b, thread, objects.iter().map(|at| args[hidden + at]));
    let materialize = import(&mut b, isa, 0, 1, Some(types::I64));
    let exit = note_exit(&mut b, thread, 0, isa);
    let call = b.ins().call(materialize, &[thread]);
    b.func.debug_tags.set(call, [exit]);
    let code = b.inst_results(call)[0];
    for (slot, at) in objects.into_iter().enumerate() {
        args[hidden + at] = frame.read(&mut b, slot);
    }
    frame.unlink(&mut b, thread);
    b.ins().brif(code, made, &[], failed, &[]);

    b.switch_to_block(made);
    let callee = b.import_signature(signature.clif());
    b.ins().return_call_indirect(callee, code, &args);

    let unwind = import(&mut b, isa, 1, 1, None);
    leave(&mut b, failed, &[unwind], thread);
    let throw = import(&mut b, isa, 2, 1, None);
    leave(&mut b, overflow, &[throw, unwind], thread);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

/// Fills a block that calls routines with the thread, the last of which does not return.
fn leave(b: &mut FunctionBuilder<'_>, block: Block, routines: &[FuncRef], thread: Value) {
    b.switch_to_block(block);
    b.set_cold_block(block);
    for &routine in routines {
        b.ins().call(routine, &[thread]);
    }
    b.ins().trap(TrapCode::unwrap_user(UNREACHABLE_TRAP));
}

/// Returns the results of `brolga_interpret`, if it succeeds; otherwise continues in a new block.
fn interpret(
    b: &mut FunctionBuilder<'_>,
    isa: &TargetIsa,
    signature: &Signature,
    thread: Value,
    args: &[Value],
) {
    let count = signature.params.len().max(signature.results.len()).max(1) as u32;
    let data = StackSlotData::new(StackSlotKind::ExplicitSlot, count * INTERPRETED_WORD, 4);
    let slot = b.create_sized_stack_slot(data);
    let offset = |at: usize| i32::try_from(at).unwrap_or(i32::MAX).saturating_mul(INTERPRETED_WORD as i32);
    for (at, &arg) in args.iter().enumerate() {
        b.ins().stack_store(types::I64, arg, slot, offset(at));
    }
    let words = b.ins().stack_addr(types::I64, slot, 0);
    let routine = import(b, isa, 3, 2, Some(types::I32));
    let exit = note_exit(b, thread, 1, isa);
    let call = b.ins().call(routine, &[thread, words]);
    b.func.debug_tags.set(call, [exit]);
    let is_done = b.inst_results(call)[0];
    let (done, go_on) = (b.create_block(), b.create_block());
    b.ins().brif(is_done, done, &[], go_on, &[]);
    b.switch_to_block(done);
    let load = |(at, abi): (usize, &Abi)| b.ins().stack_load(types::I64, abi.clif(), slot, offset(at));
    let results: Vec<Value> = signature.results.iter().enumerate().map(load).collect();
    b.ins().return_(&results);
    b.switch_to_block(go_on);
}

/// A routine taking `params` words.
fn import(
    b: &mut FunctionBuilder<'_>,
    isa: &TargetIsa,
    index: u32,
    params: usize,
    result: Option<Type>,
) -> FuncRef {
    let mut signature = ClifSignature::new(isa.host_call_conv());
    signature.params.extend(vec![AbiParam::new(types::I64); params]);
    signature.returns.extend(result.map(AbiParam::new));
    let signature = b.import_signature(signature);
    let name = b.func.declare_imported_user_function(UserExternalName::new(0, index));
    let name = ExternalName::user(name);
    b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

/// A linked GC frame; `None` if there are no objects to keep.
struct Frame(Option<Value>);

impl Frame {
    fn link(
        b: &mut FunctionBuilder<'_>,
        thread: Value,
        objects: impl ExactSizeIterator<Item = Value>,
    ) -> Frame {
        let count = objects.len();
        if count == 0 {
            return Frame(None);
        }
        let bytes = (8 * (FRAME_WORDS + count)) as u32;
        let slot = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3));
        let frame = b.ins().stack_addr(types::I64, slot, 0);
        let flags = MemFlagsData::trusted();
        let number = b.ins().iconst(types::I64, 4 * count as i64);
        let previous = b.ins().load(types::I64, flags, thread, THREAD_GC_STACK);
        b.ins().store(flags, number, frame, 0);
        b.ins().store(flags, previous, frame, 8);
        for (slot, object) in objects.enumerate() {
            b.ins().store(flags, object, frame, slot_offset(slot));
        }
        b.ins().store(flags, frame, thread, THREAD_GC_STACK);
        Frame(Some(frame))
    }

    fn read(&self, b: &mut FunctionBuilder<'_>, slot: usize) -> Value {
        match self.0 {
            Some(frame) => b.ins().load(types::I64, MemFlagsData::trusted(), frame, slot_offset(slot)),
            // A frame without slots has nothing to read; the verifier of a compile would find the null.
            None => b.ins().iconst(types::I64, 0),
        }
    }

    fn unlink(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        if let Some(frame) = self.0 {
            let flags = MemFlagsData::trusted();
            let previous = b.ins().load(types::I64, flags, frame, 8);
            b.ins().store(flags, previous, thread, THREAD_GC_STACK);
        }
    }
}

/// The offset of a root slot. The offset cannot overflow: that many parameters do not fit into a frame.
fn slot_offset(slot: usize) -> i32 {
    i32::try_from(8 * (FRAME_WORDS + slot)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::IsaOptions;

    #[test]
    fn every_kind_of_value_and_either_way_of_returning_compiles_under_the_register_allocation_checker() {
        let isa =
            TargetIsa::new(IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() })
                .unwrap();
        let all = [Abi::I8, Abi::I128, Abi::F16, Abi::F32, Abi::F64, Abi::Ptr, Abi::V128, Abi::Object];
        let many: Vec<Abi> = (0..100).map(|n| all[n % all.len()]).collect();
        for params in [&all[..0], &all[..5], &all[..], &many[..]] {
            for results in [&all[..0], &all[..1], &all[..]] {
                for interpreted in [false, true] {
                    let signature = Signature::new(params, results);
                    let compiled = compile_lazy("lazy", &signature, &isa, interpreted).unwrap();
                    assert!(compiled.symbols.contains(&Symbol::Routine(MATERIALIZE.into())));
                }
            }
        }
    }
}
