//! From low IR to a loaded unit: generate, link.
//!
//! ```text
//!   Source (low Func, its type) ──Generator──► CompiledFunction, constants ──► LinkUnit ──Jit::load──► Unit
//! ```
//!
//! This is the safe way in: code comes from our own code generation, and the recorded type of every function that can be
//! looked up is compared with the native signature of the function itself.
//!
//! Calls between the functions of one build are near. Cost: Cranelift's; one generator serves all functions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_codegen::compile::{CompileOptions, Symbol};
use brolga_codegen::entry::boxed_signature;
use brolga_codegen::generate::{GenerateError, Generator};
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_codegen::translate::signature_of;
use brolga_ir::{Context, Func, LowType, Op, PtrClass, RuntimeKind, Type, Value};

use crate::engine::{Jit, Program, Unit};
use crate::globals::Globals;
use crate::linker::{DataObject, LinkError, LinkUnit};

/// Constant bytes are aligned like the widest scalar.
const CONSTANT_ALIGN: u32 = 16;

/// A low function to build.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The function, verified.
    pub func: &'a Func,
    /// Its type at the doorway; `None` for a function that is only called by others. The symbol in it is not looked at:
    /// the function's own name is the linked one.
    pub ty: Option<FunctionType>,
}

/// A method that calls at run time may go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// The symbol of its boxed entry, which is among the sources.
    pub symbol: String,
    /// The type of the function object.
    pub function: Type,
    /// The types of the other arguments.
    pub args: Vec<Type>,
    /// The type of all further arguments, if there may be any.
    pub rest: Option<Type>,
}

/// What a unit is linked to beside the runtime.
#[derive(Clone, Default, Debug)]
pub struct Linkage<'a> {
    /// The units whose functions it may call.
    pub visible: &'a [Unit],
    /// The program's global variables; variables of its own if there are none.
    pub globals: Option<&'a Globals>,
    /// The methods that the runtime is told about.
    pub methods: &'a [Method],
}

/// Why a build failed. Nothing of it remains.
#[derive(thiserror::Error, Debug)]
pub enum BuildError {
    /// A function did not become machine code.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The unit could not be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The recorded type of a function is not that of its code; whoever recorded it is at fault.
    #[error("`{name}` is recorded as {recorded:?}, and its code has {actual:?}")]
    Signature {
        /// The function.
        name: String,
        /// What the recorded type says.
        recorded: Signature,
        /// What the function takes and gives.
        actual: Signature,
    },
}

impl Jit {
    /// Builds a unit from low functions. `visible` are the units whose functions it may call. Functions with objects have
    /// their roots placed already.
    pub fn build(
        &self,
        cx: &Arc<Context>,
        sources: &[Source<'_>],
        tier: Tier,
        visible: &[Unit],
    ) -> Result<Unit, BuildError> {
        self.build_program(cx, sources, tier, &Linkage { visible, ..Linkage::default() })
    }

    /// Builds a unit that shares global variables with others, and whose methods can be called by dispatch.
    pub fn build_program(
        &self,
        cx: &Arc<Context>,
        sources: &[Source<'_>],
        tier: Tier,
        linkage: &Linkage<'_>,
    ) -> Result<Unit, BuildError> {
        check_methods(cx, sources, linkage.methods)?;
        let mut types = Vec::new();
        for source in sources {
            types.extend(recorded_type(cx, source)?);
        }
        let local: BTreeSet<&str> = sources.iter().map(|source| cx.names.text(source.func.name)).collect();
        let mut generator = Generator::new(self.limits());
        let options = CompileOptions { tier, listing: false };
        let mut unit = LinkUnit::default();
        for source in sources {
            let is_local = |name: &str| local.contains(name);
            let generated = generator.generate(cx, source.func, self.isa(), options, &is_local)?;
            unit.functions.push(generated.function);
            unit.functions.extend(generated.body);
            unit.data.extend(generated.constants.into_iter().map(constant));
        }
        let needs_heap = sources.iter().any(|source| needs_heap(source.func));
        let own = Globals::new(self.runtime());
        let globals = linkage.globals.unwrap_or(&own);
        let program = Program { cx, needs_heap, globals, methods: linkage.methods };
        // SAFETY: L1, the code was generated just now from these functions. L2, `recorded_type` compared the signatures.
        Ok(unsafe { self.load_program(&unit, types, linkage.visible, Some(program)) }?)
    }
}

/// The code of every method's entry has the signature of boxed entries.
fn check_methods(cx: &Context, sources: &[Source<'_>], methods: &[Method]) -> Result<(), BuildError> {
    let boxed = boxed_signature();
    let actual: BTreeMap<&str, Option<Signature>> =
        sources.iter().map(|source| (cx.names.text(source.func.name), signature_of(source.func))).collect();
    for method in methods {
        // One that is not there is found when the unit is linked.
        if let Some(actual) = actual.get(method.symbol.as_str())
            && actual.as_ref() != Some(&boxed)
        {
            return Err(BuildError::Signature {
                name: method.symbol.clone(),
                recorded: boxed,
                actual: actual.clone().unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// Whether a function handles objects, or calls what makes some.
fn needs_heap(func: &Func) -> bool {
    let is_object = |value| {
        let low = func.ty(Value::from_u32(value)).as_low();
        matches!(low, Some(LowType::Ptr(class)) if class != PtrClass::Raw)
    };
    let calls = |op| match op {
        Op::CallRuntime(entry) => !matches!(entry.kind(), RuntimeKind::Throws | RuntimeKind::Prints),
        Op::ThreadAddr => true,
        _ => false,
    };
    (0..func.value_count() as u32).any(is_object)
        || func.blocks().flat_map(|block| func.block_insts(block)).any(|inst| calls(func.op(inst)))
}

/// The type under which a function can be looked up, if it can.
fn recorded_type(cx: &Context, source: &Source<'_>) -> Result<Option<FunctionType>, BuildError> {
    let Some(ty) = &source.ty else { return Ok(None) };
    let symbol = cx.names.text(source.func.name).to_string();
    match signature_of(source.func) {
        Some(actual) if actual == ty.signature => Ok(Some(FunctionType { symbol, ..ty.clone() })),
        actual => Err(BuildError::Signature {
            name: symbol,
            recorded: ty.signature.clone(),
            actual: actual.unwrap_or_default(),
        }),
    }
}

fn constant((symbol, bytes): (Symbol, Box<[u8]>)) -> DataObject {
    let name = match symbol {
        Symbol::Data(name) => name,
        other => other.to_string(),
    };
    DataObject { name, bytes: bytes.into_vec(), align: CONSTANT_ALIGN, writable: false, relocs: Vec::new() }
}
