//! Host functions: Rust closures that programs call.
//!
//! ```text
//!   define_host   program ── invoke stock(id) ──► stock(Int64), our own IR ── dispatch ──► closure ──► its object, or an exception
//!   define_fn     program ── invoke price(id) ──► price(Int64), our own IR ── C call ──► closure ──► its value and key 0
//!                                                        └── key k: dispatch ──► method: its object, or an exception
//! ```
//!
//! For programs both are ordinary, declared functions. The body of the first calls the method that wraps
//! the closure, by dispatch, and checks the type of the result. The body of the second calls the closure by its address with arguments in registers, and
//! calls the method only for non-numeric results (`brolga_runtime::HostFunction`).
//!
//! **Invariant.** Code with the address of a closure keeps the closure alive (`ProgramFacts::kept`, `Unit::keep`), also while the code is retired and threads
//! may run it, so the function can be removed at any time: the closure is dropped with the code. The wrapper is not inlinable, so no other code has the
//! address.
//!
//! Cost of a call: with objects, a cache look-up and a box for each argument and the result; typed, the cost of a C call. IR is
//! cheaper, because it is inlined.

use std::sync::Arc;

use brolga_ir::Module;
use brolga_ir::build::{BuildError, Builder};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::ForeignData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::{DeclKind, LayoutError, TypeError};
use brolga_ir::{Context, Func, Type, Value};
use brolga_runtime::objects::{MethodEntry, MethodRow, Methods};
use brolga_runtime::{HostFunction, Runtime};

use super::promise::Signature;

/// The name of the method that wraps the closure. Each closure has its own, so that wrappers in older worlds call the right one.
pub(crate) fn method_name(name: &str, number: u64) -> String {
    format!("{name}#host#{number}")
}

/// Adds the closure to the run time as a method.
pub(crate) fn add_method(
    runtime: &Arc<Runtime>,
    cx: &Arc<Context>,
    method: &str,
    signature: &Signature,
    entry: MethodEntry,
) -> Result<Methods, LayoutError> {
    let function = cx.types.function_of(method);
    let (args, name) = (signature.params.clone(), signature.name.clone());
    runtime.add_methods(cx, [MethodRow::new(function, args, name, entry)])
}

/// Adds to the run time the method that completes calls of a typed closure.
pub(crate) fn add_settling(
    runtime: &Arc<Runtime>,
    cx: &Arc<Context>,
    method: &str,
    name: &str,
    entry: MethodEntry,
) -> Result<Methods, LayoutError> {
    add_method(runtime, cx, method, &Signature::new(name, &[Type::INT64], Type::ANY), entry)
}

/// A module with the wrapper that calls the method.
pub(crate) fn module(cx: &Arc<Context>, method: &str, signature: &Signature) -> Result<Module, BuildError> {
    let (mut b, args) = wrapper(cx, &signature.name, &signature.params, signature.result)?;
    let result = call_method(&mut b, method, &args, signature.result)?;
    b.ret(&[result])?;
    Ok(module_of(cx, b.finish()?))
}

/// A module with the wrapper that calls a typed closure.
pub(crate) fn typed_module(
    cx: &Arc<Context>,
    method: &str,
    name: &str,
    host: &HostFunction,
) -> Result<Module, BuildError> {
    let (mut b, args) = wrapper(cx, name, &host.params, host.result)?;
    let types = &cx.types;
    let unknown = |error: TypeError| BuildError::Type(error.display(types).to_string());
    let pointer = types.ptr(Type::NOTHING).map_err(unknown)?;
    let back = match host.is_direct && host.result != Type::NOTHING {
        true => types.tuple(&[host.result, Type::UINT64]).map_err(unknown)?,
        false => Type::UINT64,
    };
    let mut given = addresses(&mut b, [host.address, host.state], pointer)?;
    let mut params = vec![pointer];
    for (&arg, &ty) in args.iter().zip(&host.params) {
        match is_struct(cx, ty) {
            // As words, so the closure receives the arguments it expects on every processor.
            true => {
                let mut words = Vec::new();
                words_of(&mut b, cx, arg, ty, &mut words)?;
                let words = b.tuple(&words)?;
                params.push(b.type_of(words)?);
                given.push(words);
            }
            false => {
                params.push(ty);
                given.push(arg);
            }
        }
    }
    let callee = ForeignData { name: None, result: back, params: params.into(), variadic_after: None };
    let call = b.foreign_call(callee, &given, &[])?;
    let came = b.func().results(call).next();
    let came = came.ok_or(BuildError::NeedsResultType("foreigncall"))?;
    let key = if back == Type::UINT64 { came } else { b.element(came, 2)? };
    if host.is_direct {
        return_if_zero(&mut b, key, |b| match back {
            Type::UINT64 => Ok(b.nothing()),
            _ => b.element(came, 1),
        })?;
    }
    settled(b, cx, (method, key), host.result)
}

/// A module with the wrapper that calls a function of words: the state, and the words of all arguments as one struct of C; it returns a word and a key.
pub(crate) fn words_module(
    cx: &Arc<Context>,
    method: &str,
    name: &str,
    host: &HostFunction,
) -> Result<Module, BuildError> {
    let (mut b, args) = wrapper(cx, name, &host.params, host.result)?;
    let types = &cx.types;
    let unknown = |error: TypeError| BuildError::Type(error.display(types).to_string());
    let pointer = types.ptr(Type::NOTHING).map_err(unknown)?;
    let mut given = addresses(&mut b, [host.address, host.state], pointer)?;
    let mut params = vec![pointer];
    let mut words = Vec::with_capacity(args.len());
    for (&arg, &ty) in args.iter().zip(&host.params) {
        words_of(&mut b, cx, arg, ty, &mut words)?;
    }
    if !words.is_empty() {
        let words = b.tuple(&words)?;
        params.push(b.type_of(words)?);
        given.push(words);
    }
    let result = types.tuple(&[Type::UINT64, Type::UINT64]).map_err(unknown)?;
    let callee = ForeignData { name: None, result, params: params.into(), variadic_after: None };
    let call = b.foreign_call(callee, &given, &[])?;
    let came = b.func().results(call).next();
    let came = came.ok_or(BuildError::NeedsResultType("foreigncall"))?;
    let (word, key) = (b.element(came, 1)?, b.element(came, 2)?);
    return_if_zero(&mut b, key, |b| of_word(b, word, host.result))?;
    settled(b, cx, (method, key), host.result)
}

/// Addresses as pointers of C.
fn addresses(
    b: &mut Builder<'_>,
    addresses: impl IntoIterator<Item = usize>,
    pointer: Type,
) -> Result<Vec<Value>, BuildError> {
    let pointer = |address: usize| {
        let address = b.int(Type::UINT64, address as i128)?;
        b.convert(Intrinsic::Bitcast, address, pointer)
    };
    addresses.into_iter().map(pointer).collect()
}

/// Returns a value if the key is 0. The function continues for other keys.
fn return_if_zero(
    b: &mut Builder<'_>,
    key: Value,
    value: impl FnOnce(&mut Builder<'_>) -> Result<Value, BuildError>,
) -> Result<(), BuildError> {
    let zero = b.int(Type::UINT64, 0)?;
    let is_done = b.intrinsic(Intrinsic::EqInt, &[key, zero])?;
    let (done, settle) = (b.create_block(), b.create_block());
    b.branch(is_done, done, settle)?;
    b.switch_to_block(done)?;
    b.seal_block(done)?;
    let value = value(b)?;
    b.ret(&[value])?;
    b.switch_to_block(settle)?;
    b.seal_block(settle)
}

/// Ends a wrapper with a call of the method, which settles the key, and returns its module.
fn settled(
    mut b: Builder<'_>,
    cx: &Arc<Context>,
    (method, key): (&str, Value),
    result: Type,
) -> Result<Module, BuildError> {
    let key = b.convert(Intrinsic::Bitcast, key, Type::INT64)?;
    let value = call_method(&mut b, method, &[key], result)?;
    b.ret(&[value])?;
    Ok(module_of(cx, b.finish()?))
}

/// The number of this type in the low bytes of a word.
fn of_word(b: &mut Builder<'_>, word: Value, ty: Type) -> Result<Value, BuildError> {
    match ty {
        Type::NOTHING => Ok(b.nothing()),
        Type::UINT64 => Ok(word),
        Type::INT64 | Type::FLOAT64 => b.convert(Intrinsic::Bitcast, word, ty),
        Type::FLOAT32 | Type::CHAR => {
            let bits = b.convert(Intrinsic::TruncInt, word, Type::UINT32)?;
            b.convert(Intrinsic::Bitcast, bits, ty)
        }
        Type::BOOL => {
            let one = b.int(Type::UINT64, 1)?;
            b.intrinsic(Intrinsic::EqInt, &[word, one])
        }
        _ => b.convert(Intrinsic::TruncInt, word, ty),
    }
}

/// A module with the wrapper that calls C code at an address, with data before the arguments if there is some.
pub(crate) fn code_module(
    cx: &Arc<Context>,
    signature: &Signature,
    address: usize,
    data: Option<usize>,
) -> Result<Module, BuildError> {
    let (mut b, args) = wrapper(cx, &signature.name, &signature.params, signature.result)?;
    let pointer = cx
        .types
        .ptr(Type::NOTHING)
        .map_err(|error| BuildError::Type(error.display(&cx.types).to_string()))?;
    let mut given = addresses(&mut b, [address].into_iter().chain(data), pointer)?;
    given.extend(args);
    let params: Vec<Type> =
        data.map(|_| pointer).into_iter().chain(signature.params.iter().copied()).collect();
    let callee =
        ForeignData { name: None, result: signature.result, params: params.into(), variadic_after: None };
    let call = b.foreign_call(callee, &given, &[])?;
    let result: Vec<Value> = b.func().results(call).collect();
    b.ret(&result)?;
    Ok(module_of(cx, b.finish()?))
}

/// Whether a value is a struct of scalars, which is passed as words.
fn is_struct(cx: &Context, ty: Type) -> bool {
    matches!(cx.types.nominal_kind(ty), Some(DeclKind::Struct { mutable: false, .. }))
}

/// The scalars of a value, each as a word. Recursion follows the nesting of types, which the type table bounds.
fn words_of(
    b: &mut Builder<'_>,
    cx: &Context,
    value: Value,
    ty: Type,
    words: &mut Vec<Value>,
) -> Result<(), BuildError> {
    if is_struct(cx, ty) {
        let fields = cx.types.fields(ty).unwrap_or_default();
        for (field, n) in fields.iter().zip(1..) {
            let part = b.element(value, n)?;
            words_of(b, cx, part, field.ty, words)?;
        }
        return Ok(());
    }
    let bits = match ty {
        Type::FLOAT32 | Type::CHAR => b.convert(Intrinsic::Bitcast, value, Type::UINT32)?,
        Type::FLOAT64 | Type::INT64 => b.convert(Intrinsic::Bitcast, value, Type::UINT64)?,
        _ => value,
    };
    let word = match b.type_of(bits)? {
        Type::UINT64 => bits,
        _ => b.convert(Intrinsic::ZextInt, bits, Type::UINT64)?,
    };
    words.push(word);
    Ok(())
}

fn wrapper<'c>(
    cx: &'c Context,
    name: &str,
    params: &[Type],
    result: Type,
) -> Result<(Builder<'c>, Vec<Value>), BuildError> {
    let named: Vec<(&str, Type)> = params.iter().map(|&ty| ("", ty)).collect();
    let b = Builder::high(cx, name, &named, result);
    let args = (0..params.len()).map(|n| b.param(n)).collect::<Result<Vec<Value>, _>>()?;
    Ok((b, args))
}

/// Calls the method of a host function.
fn call_method(b: &mut Builder<'_>, method: &str, args: &[Value], result: Type) -> Result<Value, BuildError> {
    let method = b.function_object(method);
    let given = b.call(method, args, Type::ANY)?;
    let ty = b.type_value(result);
    b.builtin(Builtin::Typeassert, &[given, ty], result)
}

fn module_of(cx: &Arc<Context>, func: Func) -> Module {
    let mut module = Module::new(cx.clone());
    // The only function of a module cannot be a duplicate.
    let _ = module.add_func(func);
    module
}
