//! The types of functions for typed calls: the source types of parameters and result, and their registers.
//!
//! ```text
//!   f(x::Tuple{Int64, Float64})::Int64      params: [Tuple{Int64, Float64} = i64, f64]      result: Int64 = i64
//! ```
//!
//! A high function has the same type before and after lowering: both are derived from the forms of `brolga_ir::abi`.

use std::sync::Arc;

use brolga_ir::abi::{Form, FormKind, NativeSignature, form};
use brolga_ir::types::{Field, FieldRepr, Layout, Repr};
use brolga_ir::{Context, Func, FuncId, Level, LowType, Module, Signature, Type, TypeKind, Types};

use crate::same_type::TypeIn;
use crate::sig::{self, FieldType, FunctionType, InMemory, ObjectType, ValueType};
use crate::translate::{abi_of, signature_of};

/// The type of a function for typed calls: the types of its source, and the registers of its low form.
pub fn function_type(module: &Module, id: FuncId, low: &Func) -> FunctionType {
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
        None => low_type(types, symbol, low, signature),
    }
}

fn low_type(types: &Types, symbol: String, low: &Func, signature: sig::Signature) -> FunctionType {
    let params = low_types(types, low.sig.params.iter().map(|param| param.ty));
    let result = low_result(low_types(types, low.sig.results.iter().copied()));
    FunctionType { name: symbol.clone(), symbol, params, result, signature }
}

/// The type of a declared function at typed calls; `None` if it has no native form.
pub fn type_of_declaration(cx: &Arc<Context>, func: &Func) -> Option<FunctionType> {
    let symbol = func.symbol(cx);
    match func.level {
        Level::High => declared_type(cx, symbol, &func.sig),
        Level::Low => Some(low_type(&cx.types, symbol, func, signature_of(func).unwrap_or_default())),
    }
}

/// The type of a function at typed calls, available before lowering; `None` if it has no native form.
pub fn type_of(module: &Module, id: FuncId) -> Option<FunctionType> {
    type_of_declaration(&module.cx, &module[id])
}

/// The type of a high function for typed calls, before it is lowered; `None` if it has no native form.
pub fn declared_type(cx: &Arc<Context>, symbol: String, sig: &Signature) -> Option<FunctionType> {
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

/// The parameters that a caller passes: a closure is an argument, but the object of a plain function is not passed.
fn given_params(native: &NativeSignature) -> impl Iterator<Item = &Form> {
    let object = usize::from(native.params.first().is_some_and(|form| form.leaves.is_empty()));
    native.params.iter().skip(object)
}

/// Whether `found` is the type of high functions with this signature, judged by the types of one context. Otherwise it may still be
/// called in the same way.
pub fn is_type_of(cx: &Arc<Context>, sig: &Signature, found: &FunctionType) -> bool {
    let Ok(native) = NativeSignature::new(&cx.types, sig) else { return false };
    let is_of = |form: &Form, value: &ValueType| {
        value.ty.as_ref().is_some_and(|ty| ty.cx.is_same(cx) && ty.ty == form.ty)
    };
    given_params(&native).count() == found.params.len()
        && given_params(&native).zip(&found.params).all(|(form, value)| is_of(form, value))
        && is_of(&native.result, &found.result)
        && native_signature(&native) == found.signature
}

fn value_type(cx: &Arc<Context>, form: &Form) -> ValueType {
    let types = &cx.types;
    let fields = field_types(cx, form);
    let is_tuple = matches!(types.kind(form.ty), TypeKind::Tuple { .. })
        && matches!(form.kind, FormKind::Aggregate(_) | FormKind::Memory);
    let elements = is_tuple.then(|| fields.iter().map(|field| field.ty.clone()).collect());
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
        fields,
        objects,
        ty: Some(TypeIn { cx: cx.clone(), ty: form.ty }),
        memory,
    }
}

/// The fields of an unboxed value. Recursion follows the nesting of types, which the type table bounds.
fn field_types(cx: &Arc<Context>, of: &Form) -> Vec<FieldType> {
    let types = &cx.types;
    if !matches!(of.kind, FormKind::Aggregate(_) | FormKind::Memory) {
        return Vec::new();
    }
    let Ok(layout) = types.layout(of.ty) else { return Vec::new() };
    let names = types.field_names(of.ty);
    let field = |(at, field): (usize, &Field)| {
        let form = match field.repr {
            FieldRepr::Pointer => Form::object(field.ty),
            FieldRepr::Inline | FieldRepr::BitsUnion { .. } => form(types, field.ty).ok()?,
        };
        let name = names.as_ref().and_then(|names| names.get(at)).map(|&name| cx.names.text(name).to_owned());
        let name = name.unwrap_or_else(|| (at + 1).to_string());
        Some(FieldType { name, offset: field.offset, ty: value_type(cx, &form) })
    };
    layout.fields.iter().enumerate().map(field).collect::<Option<_>>().unwrap_or_default()
}

/// The types of the objects that the leaves of a value refer to. Recursion follows the nesting of types, which the type table bounds.
fn add_objects(cx: &Arc<Context>, form: &Form, is_optional: bool, objects: &mut Vec<Option<ObjectType>>) {
    match &form.kind {
        FormKind::Aggregate(parts) => {
            // A field may be undefined, but the memory of a memory reference may not.
            let may_lack = cx.types.memory_ref_element(form.ty).is_none();
            parts.iter().for_each(|part| add_objects(cx, &part.form, may_lack, objects));
        }
        _ if form.is_object() => {
            objects.push(Some(ObjectType { cx: cx.clone(), ty: form.ty, is_optional }));
        }
        _ => objects.extend(form.leaves.iter().map(|_| None)),
    }
}

/// The types of a low function's arguments or results for typed calls.
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

/// The Julia type that represents a low value: integers are signed, and addresses have an unspecified element type.
pub fn julia_type(types: &Types, low: LowType) -> Type {
    match low {
        LowType::I8 => Type::INT8,
        LowType::I16 => Type::INT16,
        LowType::I32 => Type::INT32,
        LowType::I64 => Type::INT64,
        LowType::I128 | LowType::V128 => Type::INT128,
        LowType::F16 => Type::FLOAT16,
        LowType::F32 => Type::FLOAT32,
        LowType::F64 => Type::FLOAT64,
        LowType::Ptr(_) => types.ptr(Type::NOTHING).unwrap_or(Type::UINT64),
    }
}
