//! Types and a number generator for tests of the heap.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::{DeclKind, FieldDecl, Type};
use brolga_runtime::heap::{HeapOptions, TypeRef};
use brolga_runtime::{Runtime, RuntimeOptions};

/// A runtime with these heap options.
pub(crate) fn runtime(heap: HeapOptions) -> Arc<Runtime> {
    Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() })
}

/// A struct type.
pub(crate) fn declare(cx: &Context, name: &str, fields: &[(&str, Type)]) -> Type {
    let decl = cx.types.declare(cx.names.intern(name), &[]).expect("a new name");
    let fields = fields.iter().map(|&(n, t)| FieldDecl::new(cx.names.intern(n), t)).collect();
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields }).expect("a good body");
    cx.types.nominal(decl, &[]).expect("a type without parameters")
}

/// `mutable struct Node; id::Int64; a; b; c; end`
pub(crate) fn node(runtime: &Runtime) -> TypeRef {
    let cx = Context::new();
    let any = Type::ANY;
    let ty = declare(&cx, "Node", &[("id", Type::INT64), ("a", any), ("b", any), ("c", any)]);
    runtime.heap().describe(&cx, ty).expect("a concrete type")
}

/// The vector type with this element type.
pub(crate) fn vector(runtime: &Runtime, element: Type) -> TypeRef {
    let cx = Context::new();
    let ty = cx.types.vector(element).expect("a type");
    runtime.heap().describe(&cx, ty).expect("a concrete type")
}

/// A deterministic sequence of numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}
