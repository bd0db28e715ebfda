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

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_codegen::compile::{CompileOptions, Symbol};
use brolga_codegen::generate::{GenerateError, Generator};
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_codegen::translate::signature_of;
use brolga_ir::{Context, Func, LowType, Op, PtrClass, RuntimeKind, Value};

use crate::engine::{Jit, Program, Unit};
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
        let program = Program { cx, needs_heap };
        // SAFETY: L1, the code was generated just now from these functions. L2, `recorded_type` compared the signatures.
        Ok(unsafe { self.load_program(&unit, types, visible, Some(program)) }?)
    }
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
