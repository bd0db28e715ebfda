//! Machine code in the process.

use super::engine::{Engine, Loaded, Passes, to_literal, to_val};
use super::outcome::Outcome;
use brolga_engine::bridge::{self, BridgeError};
use brolga_engine::build;
use brolga_engine::tier;
use brolga_interp::{Interp, Options, SimMemory, Val};
use brolga_ir::abi::NativeSignature;
use brolga_ir::module::Literal;
use brolga_ir::{FuncId, Module};
use brolga_jit::{CallError, Jit, UntypedFunc};
use brolga_runtime::{Exception, ExceptionKind, Runtime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Machine code, compiled with the passes and the code generator's effort of a level. All functions of a
/// module form one unit. Steps are not limited: programs have to terminate.
#[derive(Clone)]
pub struct Native {
    /// Compiles and links.
    pub jit: Jit,
    /// The level.
    pub passes: Passes,
}

impl Engine for Native {
    fn name(&self) -> String {
        format!("native code at {}", self.passes.name())
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        let options = self.passes.options();
        let mut stages = self.passes.stages(module, &options);
        let lows = stages.linked(module.funcs().map(|(id, _)| id)).map_err(|error| error.to_string())?;
        let unit = build(&self.jit, module, &lows, tier(self.passes.level), None);
        let unit = unit.map_err(|error| error.to_string())?;
        let mut funcs = BTreeMap::new();
        for (id, func) in module.funcs() {
            let symbol = module[id].symbol(&module.cx);
            let callable = unit.untyped(&symbol).map_err(|error| error.to_string())?;
            let signature = NativeSignature::new(&module.cx.types, &func.sig);
            let signature = signature.map_err(|_| format!("`{symbol}` has no native form"))?;
            funcs.insert(id, (callable, signature));
        }
        Ok(Box::new(NativeLoaded { module, jit: self.jit.clone(), funcs }))
    }

    fn limited(&self, opt_limit: u64) -> Option<Box<dyn Engine + '_>> {
        Some(Box::new(Native { jit: self.jit.clone(), passes: self.passes.limited(opt_limit) }))
    }
}

struct NativeLoaded<'m> {
    module: &'m Module,
    jit: Jit,
    funcs: BTreeMap<FuncId, (UntypedFunc, NativeSignature)>,
}

impl Loaded for NativeLoaded<'_> {
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome {
        let Some((callable, signature)) = self.funcs.get(&func) else {
            return Outcome::Failed("the function was not compiled".to_owned());
        };
        call_compiled(self.module, callable, signature, args, self.jit.runtime())
    }
}

/// Calls compiled code of a module's function. `args` does not include the function object.
pub(super) fn call_compiled(
    module: &Module,
    callable: &UntypedFunc,
    signature: &NativeSignature,
    args: &[Literal],
    runtime: &Arc<Runtime>,
) -> Outcome {
    let cx = &module.cx;
    // Strings are passed through the heap of an interpreter.
    let mut interp = Interp::new(module, Options::default(), Box::new(SimMemory::default()));
    let object = signature.params.first().map(|form| Val::Singleton(form.ty));
    let mut vals: Vec<Val> = object.into_iter().collect();
    for arg in args {
        match to_val(&mut interp, cx, arg) {
            Ok(val) => vals.push(val),
            Err(end) => return Outcome::Failed(format!("{end:?}")),
        }
    }
    let thrown = |exception: &Exception| {
        let says = matches!(exception.kind, ExceptionKind::ErrorException | ExceptionKind::ArgumentError);
        let message = says.then(|| exception.message.clone());
        Outcome::Threw { kind: exception.kind.name().to_owned(), message }
    };
    match bridge::call(callable, signature, &vals, &mut interp, runtime) {
        Ok(val) => match to_literal(&mut interp, cx, &val) {
            Some(value) => Outcome::Returned(value),
            None => Outcome::Failed("the result is not a literal".to_owned()),
        },
        Err(BridgeError::Call(CallError::Exception(exception))) => thrown(&exception),
        Err(BridgeError::Object(brolga_runtime::ObjectCallError::Exception(exception))) => thrown(&exception),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}
