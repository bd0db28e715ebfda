//! Hand-written Cranelift IR for the tests of this crate: functions that call, throw, catch and overflow the stack.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod lazy;

use brolga_codegen::compile::CompileOptions;
use brolga_codegen::compiled::{CompiledFunction, Symbol};
use brolga_codegen::isa::Tier;
use brolga_codegen::routines::routine;
use brolga_codegen::sig::{Abi, FunctionType, Signature, ValueType};
use brolga_codegen::thread::{check_stack, current_thread};
use brolga_jit::{
    CodeMemoryOptions, DataObject, Jit, JitOptions, LinkError, LinkUnit, LinkerKind, Mapping, Unit,
};
use brolga_runtime::{Output, Runtime, RuntimeOptions};
use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, GlobalValueData, InstBuilder, Signature as ClifSignature,
    TrapCode, UserExternalName, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// Both tiers: every test of running code runs it on each.
pub(crate) const TIERS: [Tier; 2] = [Tier::Baseline, Tier::Optimised];

/// An engine whose output is captured.
pub(crate) fn engine() -> Jit {
    let runtime = Runtime::new(RuntimeOptions { output: Output::Capture, ..RuntimeOptions::default() });
    Jit::new(runtime, JitOptions::default()).unwrap()
}

/// An engine for each kind of linking: shared pages, pages of one unit written by ourselves and by `cranelift-jit`.
pub(crate) fn engines() -> [Jit; 3] {
    engines_with(CodeMemoryOptions::default())
}

/// The same, with this code memory but for its mapping.
pub(crate) fn engines_with(memory: CodeMemoryOptions) -> [Jit; 3] {
    let ways = [
        (LinkerKind::Loader, Mapping::Dual),
        (LinkerKind::Loader, Mapping::Private),
        (LinkerKind::Cranelift, Mapping::Private),
    ];
    ways.map(|(linker, mapping)| {
        let memory = CodeMemoryOptions { mapping, ..memory };
        let runtime = Runtime::new(RuntimeOptions { output: Output::Capture, ..RuntimeOptions::default() });
        Jit::new(runtime, JitOptions { memory, linker, ..JitOptions::default() }).unwrap()
    })
}

/// A signature of 64-bit integers.
pub(crate) fn ints(params: usize, results: usize) -> Signature {
    Signature::new(vec![Abi::I64; params], vec![Abi::I64; results])
}

/// The type of a function of 64-bit integers with one result.
pub(crate) fn int_function(name: &str, params: usize) -> FunctionType {
    let int = || ValueType::scalar("Int64", Abi::I64);
    FunctionType::of_leaves(name, (0..params).map(|_| int()).collect(), int())
}

/// A function being built.
pub(crate) struct Clif<'a> {
    pub(crate) b: FunctionBuilder<'a>,
    jit: &'a Jit,
    params: Vec<Value>,
    symbols: Vec<Symbol>,
}

impl Clif<'_> {
    /// The parameters, the hidden result pointer included.
    pub(crate) fn params(&self) -> Vec<Value> {
        self.params.clone()
    }

    pub(crate) fn int(&mut self, value: i64) -> Value {
        self.b.ins().iconst(types::I64, value)
    }

    pub(crate) fn name(&mut self, symbol: Symbol) -> ExternalName {
        let index = self.symbols.len() as u32;
        self.symbols.push(symbol);
        ExternalName::user(self.b.func.declare_imported_user_function(UserExternalName::new(0, index)))
    }

    pub(crate) fn import(&mut self, symbol: Symbol, signature: ClifSignature, colocated: bool) -> FuncRef {
        let name = self.name(symbol);
        let signature = self.b.import_signature(signature);
        self.b.import_function(ExtFuncData { name, signature, colocated, patchable: false })
    }

    /// The address of a symbol.
    pub(crate) fn address(&mut self, symbol: Symbol) -> Value {
        let name = self.name(symbol);
        let data = GlobalValueData::Symbol { name, offset: 0.into(), colocated: false, tls: false };
        let global = self.b.create_global_value(data);
        self.b.ins().symbol_value(types::I64, global)
    }

    /// A call of a compiled function.
    pub(crate) fn call(&mut self, name: &str, signature: &Signature, args: &[Value]) -> Vec<Value> {
        let callee = self.import(Symbol::Function(name.into()), signature.clif(), false);
        let call = self.b.ins().call(callee, args);
        self.b.inst_results(call).to_vec()
    }

    /// A call of a C function.
    pub(crate) fn call_c(
        &mut self,
        symbol: Symbol,
        params: &[Abi],
        result: Option<Abi>,
        args: &[Value],
    ) -> Vec<Value> {
        let mut signature = Signature::new(params, result.into_iter().collect::<Vec<_>>()).clif();
        signature.call_conv = self.jit.isa().host_call_conv();
        let callee = self.import(symbol, signature, false);
        let call = self.b.ins().call(callee, args);
        self.b.inst_results(call).to_vec()
    }

    /// A call of a routine in code generation's table.
    pub(crate) fn routine(&mut self, name: &str, args: &[Value]) -> Vec<Value> {
        let signature = routine(name).unwrap().clif(self.jit.isa().host_call_conv());
        let callee = self.import(Symbol::Routine(name.into()), signature, false);
        let call = self.b.ins().call(callee, args);
        self.b.inst_results(call).to_vec()
    }

    /// Ends the block by throwing what `routine` records.
    pub(crate) fn throw(&mut self, routine: &str, args: &[(Abi, Value)]) {
        let thread = current_thread(&mut self.b);
        let params: Vec<Abi> = [Abi::Ptr].into_iter().chain(args.iter().map(|(abi, _)| *abi)).collect();
        let values: Vec<Value> = [thread].into_iter().chain(args.iter().map(|(_, value)| *value)).collect();
        self.call_c(Symbol::Routine(routine.into()), &params, None, &values);
        self.routine("brolga_unwind", &[thread]);
        self.b.ins().trap(TrapCode::unwrap_user(1));
    }

    /// The stack check at the start of a function.
    pub(crate) fn check_stack(&mut self) {
        let overflow = self.b.create_block();
        let thread = current_thread(&mut self.b);
        check_stack(&mut self.b, thread, overflow);
        let go_on = self.b.current_block().unwrap();
        self.b.set_cold_block(overflow);
        self.b.switch_to_block(overflow);
        self.throw("brolga_throw_stack_overflow", &[]);
        self.b.switch_to_block(go_on);
    }
}

/// Builds and compiles one function.
pub(crate) fn compile(
    jit: &Jit,
    tier: Tier,
    name: &str,
    signature: &Signature,
    body: impl FnOnce(&mut Clif<'_>),
) -> CompiledFunction {
    let mut func = Function::new();
    func.signature = signature.clif();
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    let mut clif = Clif { b, jit, params, symbols: Vec::new() };
    body(&mut clif);
    let Clif { mut b, symbols, .. } = clif;
    b.seal_all_blocks();
    b.finalize(jit.isa().frontend_config());
    let options = CompileOptions { tier, listing: false };
    jit.compiler().compile(name, &mut func, symbols, jit.isa(), options).unwrap()
}

/// Loads what the test wrote.
pub(crate) fn try_load(
    jit: &Jit,
    functions: Vec<CompiledFunction>,
    data: Vec<DataObject>,
    types: Vec<FunctionType>,
    visible: &[Unit],
) -> Result<Unit, LinkError> {
    // SAFETY: the tests write code that keeps the conventions, and state the signatures that they compile with.
    unsafe { jit.load(&LinkUnit { functions, data }, types, visible) }
}

/// Loads functions that see only each other.
pub(crate) fn load(jit: &Jit, functions: Vec<CompiledFunction>, types: Vec<FunctionType>) -> Unit {
    try_load(jit, functions, Vec::new(), types, &[]).unwrap()
}

/// `f(n) = n == 0 ? value : 1 + f(n - 1)` with a stack check, where `bottom` makes the value at the end of the recursion.
pub(crate) fn recursion(
    jit: &Jit,
    tier: Tier,
    name: &str,
    bottom: impl FnOnce(&mut Clif<'_>),
) -> CompiledFunction {
    let signature = ints(1, 1);
    compile(jit, tier, name, &signature, |c| {
        c.check_stack();
        let n = c.params()[0];
        let (deeper, end) = (c.b.create_block(), c.b.create_block());
        c.b.ins().brif(n, deeper, &[], end, &[]);
        c.b.switch_to_block(end);
        bottom(c);
        c.b.switch_to_block(deeper);
        let less = c.b.ins().iadd_imm_s(n, -1);
        let below = c.call(name, &signature, &[less])[0];
        let result = c.b.ins().iadd_imm_s(below, 1);
        c.b.ins().return_(&[result]);
    })
}
