//! The engine: programs in, callable functions out.
//!
//! ```text
//! Program ── Stages ──► low functions ── codegen, link ──► Unit ── func::<(i64,), i64>("fib") ──► TypedFunc::call
//! ```
//!
//! An engine and all it gives are `Send + Sync`; a unit's code is freed when the last handle to the unit, or to a
//! function of it, is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::isa::Tier;
use brolga_codegen::same_type::TypeIn;
use brolga_codegen::sig::{self, FunctionType, InMemory, ObjectType, ValueType};
use brolga_codegen::translate::{abi_of, signature_of};
use brolga_gcroots::Lowering as Roots;
use brolga_ir::abi::{Form, FormKind, NativeSignature};
use brolga_ir::func::Signature;
use brolga_ir::interp::{self, Interp, SimMemory};
use brolga_ir::types::{Layout, Repr};
use brolga_ir::{Context, Func, FuncId, Level, Module, Type, TypeKind, Types};
use brolga_jit::{
    BuildError, CodeListener, CodeMemoryStats, Globals, Jit, JitOptions, Linkage, LookupError, Params,
    Scoped, ScopedFunc, ScopedParams, Source, Symbolized, TypedFunc, UntypedFunc, Value,
};
use brolga_opt::{Cx, OptLevel};
use brolga_runtime::Runtime;

use crate::boxed::{self, Recipe};
use crate::bridge::{self, julia_type};
use crate::error::Error;
use crate::image::Making;
use crate::options::{Options, tier};
use crate::program::Program;
use crate::stages::{Linked, Stages};

/// Compiles programs and links them into the process. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    jit: Jit,
    level: OptLevel,
    roots: Roots,
    opt: brolga_opt::Options,
    options: JitOptions,
}

impl Engine {
    /// An engine with a run time of its own.
    pub fn new(options: Options) -> Result<Engine, Error> {
        let Options { level, roots, opt, jit, runtime } = options.settled();
        Engine::make(Runtime::new(runtime), level, roots, opt, jit)
    }

    /// An engine whose code runs in a run time that others use too. What the options say of the heap and of the output is not
    /// asked.
    pub fn on(runtime: &Arc<Runtime>, options: Options) -> Result<Engine, Error> {
        let Options { level, roots, opt, jit, .. } = options;
        Engine::make(runtime.clone(), level, roots, opt, jit)
    }

    fn make(
        runtime: Arc<Runtime>,
        level: OptLevel,
        roots: Roots,
        opt: brolga_opt::Options,
        jit: JitOptions,
    ) -> Result<Engine, Error> {
        let options = jit;
        let jit = Jit::new(runtime, options)?;
        Ok(Engine { shared: Arc::new(Shared { jit, level, roots, opt, options }) })
    }

    /// What compiled code belongs to: its constants, C symbols and output.
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.shared.jit.runtime()
    }

    pub(crate) fn jit(&self) -> &Jit {
        &self.shared.jit
    }

    /// How images are made whose code is as the engine's own.
    pub(crate) fn making(&self) -> Making<'_> {
        let Shared { level, roots, opt, jit, options } = &*self.shared;
        let heap = jit.runtime().heap().abi();
        Making { level: *level, roots: *roots, opt, jit: *options, heap }
    }

    /// The state of the memory that compiled code lies in.
    pub fn code_memory(&self) -> CodeMemoryStats {
        self.shared.jit.stats()
    }

    /// Tells a profiler's or debugger's listener about all compiled code, from now on: [`PerfMap`](brolga_jit::PerfMap),
    /// [`JitDump`](brolga_jit::JitDump), [`GdbInterface`](brolga_jit::GdbInterface), [`UnwindTables`](brolga_jit::UnwindTables).
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        self.shared.jit.listen(listener);
    }

    /// The function and line that an address in compiled code belongs to.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.shared.jit.symbolize(address)
    }

    /// Compiles all functions of a program.
    pub fn compile(&self, program: &Program) -> Result<Unit, Error> {
        self.compile_only(program, program.module().funcs().map(|(id, _)| id))
    }

    /// Compiles these functions of a program and what they call; the others may have no native form. Global variables have
    /// their first values.
    pub fn compile_only(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
    ) -> Result<Unit, Error> {
        let globals = Globals::new(self.runtime());
        let unit = self.compile_with(program, roots, &globals)?;
        set_globals(program.module(), &globals, self.runtime())?;
        Ok(unit)
    }

    /// As [`Engine::compile_only`], with global variables that are given and not set.
    pub(crate) fn compile_with(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
        globals: &Globals,
    ) -> Result<Unit, Error> {
        self.runtime().free_unused_types();
        let module = program.module();
        let stages = Stages::new(module, self.shared.level, &self.shared.opt, Cx::default());
        let mut stages = stages.with_roots(self.shared.roots).on_heap(self.runtime().heap().abi());
        let linked = stages.linked(roots)?;
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for &id in linked.funcs.keys() {
            names.entry(module[id].spelled_name(&module.cx)).or_default().push(module[id].symbol(&module.cx));
        }
        for global in module.globals() {
            globals.declare_type(&module.cx, module.cx.names.text(global.name), global.ty);
        }
        let unit = build(&self.shared.jit, module, &linked, tier(self.shared.level), Some(globals))?;
        Ok(Unit::new(unit, names))
    }
}

/// Compiled functions, ready to be called. Clones share the code.
#[derive(Clone, Debug)]
pub struct Unit {
    unit: brolga_jit::Unit,
    /// The symbols of the functions with a name.
    names: Arc<BTreeMap<String, Vec<String>>>,
}

impl Unit {
    pub(crate) fn new(unit: brolga_jit::Unit, names: BTreeMap<String, Vec<String>>) -> Unit {
        Unit { unit, names: Arc::new(names) }
    }

    /// The function of that name, to be called with Rust values of these types. The name may be a bare one (`fib`), if only
    /// one method has it, or a method's symbol (`fib(Int64)`).
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, LookupError> {
        self.unit.func(self.symbol(name))
    }

    /// The function of that name, to be called inside a scope with objects among its arguments and results. The name is as for
    /// [`Unit::func`].
    pub fn func_in<A: ScopedParams, R: Scoped>(&self, name: &str) -> Result<ScopedFunc<A, R>, LookupError> {
        self.unit.func_in(self.symbol(name))
    }

    /// The function of that name, to be called with the bits of low values.
    pub fn untyped(&self, name: &str) -> Result<UntypedFunc, LookupError> {
        self.unit.untyped(self.symbol(name))
    }

    /// The symbols of all functions, in order.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.unit.types().map(|ty| ty.name.as_str())
    }

    /// The symbol of the only method with a bare name; any other name is taken as it is.
    fn symbol<'a>(&'a self, name: &'a str) -> &'a str {
        match self.names.get(name).map(Vec::as_slice) {
            Some([only]) => only,
            _ => name,
        }
    }
}

/// Gives the global variables that units know the first values that a module says.
pub(crate) fn set_globals(module: &Module, globals: &Globals, runtime: &Arc<Runtime>) -> Result<(), Error> {
    let mut interp = Interp::new(module, interp::Options::default(), Box::<SimMemory>::default());
    bridge::set_globals(globals, &mut interp, runtime)
        .map_err(|error| Error::Globals(error.to_string().into()))
}

/// Compiles and links functions that [`Stages::linked`] has lowered, as one unit.
///
/// # Errors
/// Code generation or linking refuses a function.
pub fn build(
    jit: &Jit,
    module: &Module,
    linked: &Linked,
    tier: Tier,
    globals: Option<&Globals>,
) -> Result<brolga_jit::Unit, BuildError> {
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(linked.funcs.len());
    for (&id, low) in &linked.funcs {
        sources.push(Source { func: low, ty: Some(function_type(module, id, low).into()) });
    }
    // Other programs, and other units of this one, have methods of their own.
    let runtime = jit.runtime();
    let table = runtime.method_table();
    let linkage = Linkage { globals, table: Some(&table), ..Linkage::default() };
    let unit = jit.build_program(&module.cx, &sources, tier, &linkage)?;
    let level = if tier == Tier::Baseline { OptLevel::O0 } else { OptLevel::O1 };
    let recipe = Recipe { level, opt: brolga_opt::Options::default(), roots: linked.roots };
    let rows = boxed::rows(&unit, module, linked.funcs.keys().copied(), recipe);
    // The table is one of this runtime's.
    unit.keep_methods(runtime.change_methods_of(&table, rows).unwrap_or_default());
    Ok(unit)
}

/// How a function looks at the doorway: the types of its source, and the registers of its low form.
pub(crate) fn function_type(module: &Module, id: FuncId, low: &Func) -> FunctionType {
    let func = &module[id];
    let types = &module.cx.types;
    let symbol = func.symbol(&module.cx);
    let signature = signature_of(low).unwrap_or_default();
    let native = match func.level {
        Level::High => NativeSignature::new(types, &func.sig).ok(),
        Level::Low => None,
    };
    match native {
        Some(native) => high_type(&module.cx, symbol, &native, signature),
        None => {
            let params = low_types(types, low.sig.params.iter().map(|param| param.ty));
            let result = low_result(low_types(types, low.sig.results.iter().copied()));
            FunctionType { name: symbol.clone(), symbol, params, result, signature }
        }
    }
}

/// How a high function looks at the doorway that is not lowered yet; nothing if it has no native form.
pub(crate) fn declared_type(cx: &Arc<Context>, symbol: String, sig: &Signature) -> Option<FunctionType> {
    let native = NativeSignature::new(&cx.types, sig).ok()?;
    let signature = native_signature(&native);
    Some(high_type(cx, symbol, &native, signature))
}

fn native_signature(native: &NativeSignature) -> sig::Signature {
    let abis = |types: &mut dyn Iterator<Item = Type>| {
        types.filter_map(|ty| ty.as_low()).map(abi_of).collect::<Vec<_>>()
    };
    sig::Signature::new(abis(&mut native.low_params()), abis(&mut native.low_results()))
}

fn high_type(
    cx: &Arc<Context>,
    symbol: String,
    native: &NativeSignature,
    signature: sig::Signature,
) -> FunctionType {
    let params = given_params(native).map(|form| value_type(cx, form)).collect();
    let result = value_type(cx, &native.result);
    FunctionType { name: symbol.clone(), symbol, params, result, signature }
}

/// The parameters that a caller gives: a closure is an argument, and the object of a plain function is nothing that could be given.
fn given_params(native: &NativeSignature) -> impl Iterator<Item = &Form> {
    let object = usize::from(native.params.first().is_some_and(|form| form.leaves.is_empty()));
    native.params.iter().skip(object)
}

/// Whether `found` is the type of high functions with this signature, as far as types of one context tell. Otherwise it may still be
/// called like them.
pub(crate) fn is_type_of(cx: &Arc<Context>, sig: &Signature, found: &FunctionType) -> bool {
    let Ok(native) = NativeSignature::new(&cx.types, sig) else { return false };
    let is_of = |form: &Form, value: &ValueType| {
        value.ty.as_ref().is_some_and(|ty| Arc::ptr_eq(&ty.cx, cx) && ty.ty == form.ty)
    };
    given_params(&native).count() == found.params.len()
        && given_params(&native).zip(&found.params).all(|(form, value)| is_of(form, value))
        && is_of(&native.result, &found.result)
        && native_signature(&native) == found.signature
}

fn value_type(cx: &Arc<Context>, form: &Form) -> ValueType {
    let types = &cx.types;
    let elements = match (&form.kind, types.kind(form.ty)) {
        (FormKind::Aggregate(parts), TypeKind::Tuple { .. }) => {
            Some(parts.iter().map(|part| value_type(cx, &part.form)).collect())
        }
        _ => None,
    };
    let is_bits = || match types.repr(form.ty) {
        Repr::BitsUnion => true,
        _ => types.layout(form.ty).is_ok_and(Layout::is_bits),
    };
    let memory = form.is_memory().then(|| InMemory { bytes: form.size, has_objects: !is_bits() });
    let mut objects = Vec::with_capacity(form.leaves.len());
    add_objects(cx, form, false, &mut objects);
    ValueType {
        name: types.display(form.ty).to_string(),
        leaves: form.leaves.iter().map(|leaf| abi_of(leaf.low)).collect(),
        elements,
        objects,
        ty: Some(TypeIn { cx: cx.clone(), ty: form.ty }),
        memory,
    }
}

/// What the leaves of a value refer to. Recursion follows the nesting of types, which the type table bounds.
fn add_objects(cx: &Arc<Context>, form: &Form, is_optional: bool, objects: &mut Vec<Option<ObjectType>>) {
    match &form.kind {
        FormKind::Aggregate(parts) => {
            // A field may be undefined, and the memory of a place to read elements from may not.
            let may_lack = cx.types.memory_ref_element(form.ty).is_none();
            parts.iter().for_each(|part| add_objects(cx, &part.form, may_lack, objects));
        }
        _ if form.is_object() => {
            objects.push(Some(ObjectType { cx: cx.clone(), ty: form.ty, is_optional }));
        }
        _ => objects.extend(form.leaves.iter().map(|_| None)),
    }
}

/// How the arguments or results of a low function look.
fn low_types(types: &Types, lows: impl Iterator<Item = Type>) -> Vec<ValueType> {
    let scalar = |low| ValueType::scalar(types.display(julia_type(types, low)).to_string(), abi_of(low));
    lows.filter_map(|ty| ty.as_low()).map(scalar).collect()
}

fn low_result(mut results: Vec<ValueType>) -> ValueType {
    match results.len() {
        0 => ValueType::ghost("Nothing"),
        1 => results.remove(0),
        _ => ValueType::tuple(results),
    }
}
