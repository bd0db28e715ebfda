//! Entries from C into compiled code: the code that `cfunction` returns.
//!
//! ```text
//!   NAME#c        a header for compiled code (`c_header.rs`), then the C convention of the host
//!      store the arguments into words
//!      brolga_callback(runtime, table of methods, NAME#c-entry, address of NAME, words, words for results) -> status
//!      load the results from their words; they are zero if the call threw
//!   NAME#c-entry  an entry trampoline (`entry.rs`)
//! ```
//!
//! The routine finds the thread, since C passes none, and keeps the same invariants as Rust code that calls a compiled function. So all
//! special treatment of calls from C is in one place, which is not machine code. A call costs as much as one from Rust, and the search. Compiled code
//! that calls the entry through a pointer finds the native code by the header and calls that.
//!
//! A function that is called through a word has one such entry, which belongs to it (`jit/src/entry/c_entry.rs`). Functions without words have
//! entries in each unit that takes the address, which is valid as long as the unit.
//!
//! Not done: structs by value, code for object files.

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, GlobalValueData, InstBuilder, MemFlagsData,
    StackSlotData, StackSlotKind, UserExternalName, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::c_header;
use crate::compile::{CompileError, CompileOptions, Compiler};
use crate::compiled::{CompiledFunction, Symbol};
use crate::entry::{compile_entry, entry_function};
use crate::isa::{TargetIsa, Tier};
use crate::linkage::CallKind;
use crate::sig::{Abi, Signature, c_signature, spare_param, word_offsets};

/// The routine that calls compiled code for C. Not 0: it threw.
pub const CALLBACK: &str = "brolga_callback";

/// The runtime itself, by its address.
pub const RUNTIME: &str = "brolga_runtime";

/// The bytes of the largest word.
const WORD: u32 = 16;

/// The name of the code by which C calls the function of this name.
pub fn callback_name(name: &str) -> String {
    format!("{name}#c")
}

/// The code by which C calls a compiled function, and its trampoline.
pub fn compile_callback(
    name: &str,
    signature: &Signature,
    call_kind: CallKind,
    isa: &TargetIsa,
) -> Result<[CompiledFunction; 2], CompileError> {
    let entry = compile_entry(&entry_name(name), entry_function(signature, isa), isa)?;
    Ok([compile_for_c(name, signature, call_kind, isa)?, entry])
}

/// The code by which C calls a function through its word. It refers to an entry trampoline of the signature by a function's name.
pub fn compile_c_entry(
    name: &str,
    signature: &Signature,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    compile_for_c(name, signature, CallKind::Cell, isa)
}

fn entry_name(name: &str) -> String {
    format!("{name}#c-entry")
}

fn compile_for_c(
    name: &str,
    signature: &Signature,
    call_kind: CallKind,
    isa: &TargetIsa,
) -> Result<CompiledFunction, CompileError> {
    let callee = match call_kind {
        CallKind::Cell => Symbol::IndirectCell(name.to_owned()),
        CallKind::Near | CallKind::Far | CallKind::OsrCheck => Symbol::Function(name.to_owned()),
    };
    let symbols = vec![
        Symbol::Routine(CALLBACK.to_owned()),
        Symbol::Routine(RUNTIME.to_owned()),
        Symbol::Methods,
        Symbol::Function(entry_name(name)),
        callee.clone(),
    ];
    let mut func = callback_function(signature, call_kind, isa);
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    let mut entry = Compiler::default().compile(&callback_name(name), &mut func, symbols, isa, options)?;
    c_header::put(&mut entry, signature, &callee, isa.arch());
    Ok(entry)
}

fn callback_function(signature: &Signature, call_kind: CallKind, isa: &TargetIsa) -> Function {
    let mut func = Function::new();
    let mut own = c_signature(isa.host_call_conv(), &signature.params, &signature.results);
    let spare = spare_param(&own.params, isa.arch(), own.call_conv);
    if let Some(at) = spare {
        own.params.insert(at, AbiParam::new(types::I64));
    }
    func.signature = own;
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let mut given = b.block_params(entry).to_vec();
    if let Some(at) = spare {
        given.remove(at);
    }
    let (args, results) = (words(&mut b, &signature.params), words(&mut b, &signature.results));
    for (value, (abi, offset)) in given.into_iter().zip(word_offsets(&signature.params)) {
        b.ins().store(abi.word_flags(), value, args, offset);
    }
    // The result of a call that threw.
    let zero = b.ins().iconst(types::I64, 0);
    for at in 0..signature.results.len() as i32 * WORD as i32 / 8 {
        b.ins().store(MemFlagsData::trusted(), zero, results, 8 * at);
    }
    let address = |b: &mut FunctionBuilder<'_>, index| {
        let function = import(b, isa, index, 0, 0);
        b.ins().func_addr(types::I64, function)
    };
    let [runtime, methods, trampoline] = [1, 2, 3].map(|index| address(&mut b, index));
    let callee = match call_kind {
        CallKind::Cell => cell(&mut b, 4),
        CallKind::Near | CallKind::Far | CallKind::OsrCheck => address(&mut b, 4),
    };
    let routine = import(&mut b, isa, 0, 6, 0);
    b.ins().call(routine, &[runtime, methods, trampoline, callee, args, results]);
    let load = |(abi, offset): (Abi, i32)| b.ins().load(abi.clif(), abi.word_flags(), results, offset);
    let values: Vec<Value> = word_offsets(&signature.results).map(load).collect();
    b.ins().return_(&values);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

/// The address of memory for values.
pub(crate) fn words(b: &mut FunctionBuilder<'_>, values: &[Abi]) -> Value {
    let bytes = WORD * (values.len().max(1) as u32);
    let slot = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4));
    b.ins().stack_addr(types::I64, slot, 0)
}

/// The function of C of this number, at any address, with words for parameters and results.
pub(crate) fn import(
    b: &mut FunctionBuilder<'_>,
    isa: &TargetIsa,
    index: u32,
    params: usize,
    results: usize,
) -> FuncRef {
    let signature = c_signature(isa.host_call_conv(), &vec![Abi::I64; params], &vec![Abi::I64; results]);
    let signature = b.import_signature(signature);
    let name = b.func.declare_imported_user_function(UserExternalName::new(0, index));
    let name = ExternalName::user(name);
    b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

/// The current value of a cell.
fn cell(b: &mut FunctionBuilder<'_>, index: u32) -> Value {
    let name = b.func.declare_imported_user_function(UserExternalName::new(0, index));
    let global = b.create_global_value(GlobalValueData::Symbol {
        name: ExternalName::user(name),
        offset: 0.into(),
        colocated: true,
        tls: false,
    });
    let word = b.ins().symbol_value(types::I64, global);
    b.ins().load(types::I64, MemFlagsData::new(), word, 0)
}
