//! Values of the interpreter.
//!
//! ```text
//! Val ─┬─ Bits         a primitive type and its bits            copied
//!      ├─ Singleton    nothing, functions, `()`, `T()`          copied
//!      ├─ Symbol, Type, Module                                  copied
//!      ├─ Struct       immutable struct, tuple, named tuple     shared, never changes
//!      ├─ MemoryRef    a Memory and a position in it            copied
//!      ├─ Object       String, Array, Memory, mutable struct    an index into the heap
//!      └─ Token        the result of `enter` and `gc_preserve_begin`
//! ```
//!
//! A value records its exact type. Objects live in the [`Heap`](super::heap::Heap) of one interpreter, which
//! owns them all: a value holds only an index, so values may be cloned, sent to another thread, and cyclic.
//! An `Object` value is meaningless in another interpreter.
//!
//! Low IR uses the same values: `Bits` with a low type.
//!
//! An immutable struct may nest arbitrarily deep (an immutable list), so dropping one unlinks its parts with
//! a work list instead of recursion.

use brolga_ir::Name;
use brolga_ir::types::{Type, Types};
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug)]
pub enum Val {
    /// A value of a primitive (or low) type; bits above the width are zero.
    Bits {
        ty: Type,
        bits: u128,
    },
    /// The only value of this type.
    Singleton(Type),
    Symbol(Name),
    /// A type as a value.
    Type(Type),
    /// A module as a value.
    Module(Name),
    /// An instance of an immutable type with fields.
    Struct(Struct),
    /// A position in a `Memory`.
    MemoryRef {
        /// `MemoryRef{T}`.
        ty: Type,
        memory: ObjId,
        /// The number of elements before the position.
        offset: i64,
    },
    /// An object with an identity.
    Object {
        ty: Type,
        /// Its index in the heap.
        id: ObjId,
    },
    /// The result of `enter` and `gc_preserve_begin`.
    Token(Token),
}

/// The index of an object in its interpreter's heap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ObjId(pub(super) u32);

/// A token: the execution of `enter` that made it, and the number of exceptions being handled at that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub(super) serial: u64,
    pub(super) exceptions: usize,
}

/// An instance of an immutable type.
#[derive(Clone, Debug)]
pub struct Struct {
    ty: Type,
    fields: Arc<[Option<Val>]>,
}

impl Struct {
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// The fields; `None` for an undefined one.
    pub fn fields(&self) -> &[Option<Val>] {
        &self.fields
    }

    pub(super) fn is_same(&self, other: &Struct) -> bool {
        Arc::ptr_eq(&self.fields, &other.fields)
    }
}

impl Drop for Struct {
    fn drop(&mut self) {
        let Some(fields) = Arc::get_mut(&mut self.fields) else { return };
        let holds_struct = |f: &Option<Val>| matches!(f, Some(Val::Struct(_)));
        if !fields.iter().any(holds_struct) {
            return;
        }
        // Every struct owned only by this one adds its parts to the list before it is dropped, so that no
        // drop recurses deeper than one level.
        let mut work: Vec<Option<Val>> = fields.iter_mut().map(Option::take).collect();
        while let Some(part) = work.pop() {
            if let Some(Val::Struct(mut inner)) = part
                && let Some(fields) = Arc::get_mut(&mut inner.fields)
            {
                work.extend(fields.iter_mut().map(Option::take));
            }
        }
    }
}

impl Val {
    /// `nothing`.
    pub const NOTHING: Val = Val::Singleton(Type::NOTHING);

    /// A `Bool`.
    pub fn bool(value: bool) -> Val {
        Val::Bits { ty: Type::BOOL, bits: u128::from(value) }
    }

    /// An `Int64`.
    pub fn int64(value: i64) -> Val {
        Val::Bits { ty: Type::INT64, bits: u128::from(value.cast_unsigned()) }
    }

    /// A `Float64`.
    pub fn float64(value: f64) -> Val {
        Val::Bits { ty: Type::FLOAT64, bits: u128::from(value.to_bits()) }
    }

    /// A value of a primitive type; bits above the width are dropped.
    pub fn bits(types: &Types, ty: Type, bits: u128) -> Val {
        let width = match ty.as_low() {
            Some(low) => low.bits(),
            None => types.primitive(ty).map_or(128, |(bits, _)| u32::from(bits)),
        };
        Val::Bits { ty, bits: mask(bits, width) }
    }

    /// An instance of an immutable type: a singleton if the type has no other value.
    pub fn aggregate(ty: Type, fields: Vec<Option<Val>>) -> Val {
        if fields.is_empty() { Val::Singleton(ty) } else { Val::Struct(Struct { ty, fields: fields.into() }) }
    }

    /// The exact type; for a type (as a value) it is `Type{T}`, which method selection uses.
    pub fn ty(&self, types: &Types) -> Type {
        match *self {
            Val::Bits { ty, .. }
            | Val::Singleton(ty)
            | Val::MemoryRef { ty, .. }
            | Val::Object { ty, .. }
            | Val::Struct(Struct { ty, .. }) => ty,
            Val::Symbol(_) => Type::SYMBOL,
            Val::Type(of) => types.type_of(of).unwrap_or(Type::DATATYPE),
            Val::Module(_) => Type::MODULE,
            Val::Token(_) => Type::TOKEN,
        }
    }

    /// The result of `typeof`: like [`Val::ty`], but a type's type is `DataType`.
    pub fn type_of(&self, types: &Types) -> Type {
        match *self {
            Val::Type(of) => types.type_of_type(of),
            _ => self.ty(types),
        }
    }

    /// The bits of a primitive value.
    pub fn as_bits(&self) -> Option<u128> {
        match *self {
            Val::Bits { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// The value of an `Int64`.
    pub fn as_int64(&self) -> Option<i64> {
        match *self {
            Val::Bits { ty: Type::INT64, bits } => Some(bits as u64 as i64),
            _ => None,
        }
    }

    /// The value of a `Bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Val::Bits { ty: Type::BOOL, bits } => Some(bits != 0),
            _ => None,
        }
    }
}

pub(super) fn mask(bits: u128, width: u32) -> u128 {
    if width < 128 { bits & ((1 << width) - 1) } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_immutable_list_is_dropped_without_recursion() {
        let mut list = Val::NOTHING;
        for n in 0..1_000_000 {
            list = Val::aggregate(Type::ANY, vec![Some(Val::int64(n)), Some(list)]);
        }
        let shared = list.clone();
        drop(list);
        let Val::Struct(top) = &shared else { unreachable!() };
        assert_eq!(top.fields()[0].as_ref().and_then(Val::as_int64), Some(999_999));
        drop(shared);
    }

    #[test]
    fn values_may_move_between_threads() {
        fn check<T: Send + Clone>() {}
        check::<Val>();
    }
}
