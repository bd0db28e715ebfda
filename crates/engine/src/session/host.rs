//! Functions of the host that programs call: closures in Rust, with objects as arguments.
//!
//! ```text
//!   program ── invoke stock(id) ──► stock(Int64), IR of ours ── dispatch ──► closure ──► its object, or an exception
//! ```
//!
//! For programs it is a function like any other, with a declaration; its body asks the run time for the method that is
//! the closure, and checks the type of what it gives. So no machine code refers to the closure, and it can be removed at any
//! time. An error is thrown in the program; a panic, too.
//!
//! Cost of a call: a look-up in a cache and a box for each argument and the result. A function that is called often is better given as
//! IR, which is inlined.

use std::sync::Arc;

use brolga_ir::Module;
use brolga_ir::build::{BuildError, Builder};
use brolga_ir::builtin::Builtin;
use brolga_ir::types::LayoutError;
use brolga_ir::{Context, Type, Value};
use brolga_runtime::Runtime;
use brolga_runtime::objects::{MethodEntry, MethodRow, Methods};

use super::promise::Signature;

/// The suffix of a host function's name in that of the method which is the closure.
const HOST: &str = "#host";

/// Makes the closure a method of the run time.
pub(crate) fn add_method(
    runtime: &Arc<Runtime>,
    cx: &Arc<Context>,
    signature: &Signature,
    entry: MethodEntry,
) -> Result<Methods, LayoutError> {
    let function = cx.types.function_of(&format!("{}{HOST}", signature.name));
    let (args, name) = (signature.params.clone(), signature.name.clone());
    runtime.add_methods(cx, [MethodRow::new(function, args, name, entry)])
}

/// A module with the function that calls the method.
pub(crate) fn module(cx: &Arc<Context>, signature: &Signature) -> Result<Module, BuildError> {
    let params: Vec<(&str, Type)> = signature.params.iter().map(|&ty| ("", ty)).collect();
    let mut b = Builder::high(cx, &signature.name, &params, signature.result);
    let args = (0..params.len()).map(|n| b.param(n)).collect::<Result<Vec<Value>, _>>()?;
    let method = b.function_object(&format!("{}{HOST}", signature.name));
    let given = b.call(method, &args, Type::ANY)?;
    let result = b.type_value(signature.result);
    let given = b.builtin(Builtin::Typeassert, &[given, result], signature.result)?;
    b.ret(&[given])?;
    let func = b.finish()?;
    let mut module = Module::new(cx.clone());
    // The only function of a module is no duplicate.
    let _ = module.add_func(func);
    Ok(module)
}
