//! How values are stored and passed: the facts about a type that `layout` computes and the table caches.

use super::kind::{LowType, Type};
use std::sync::Arc;

/// The memory layout of an instance: of an inline value, or of an object's fields after its tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size in bytes, a multiple of `align`.
    pub size: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// The fields in declaration order; empty for primitive types.
    pub fields: Box<[Field]>,
    /// The offsets of all pointers inside, ascending. All run-time descriptions of the type share the list.
    pub pointers: Arc<[u32]>,
}

impl Layout {
    /// Whether the bytes hold no pointers to objects.
    pub fn is_bits(&self) -> bool {
        self.pointers.is_empty()
    }
}

/// The position and storage of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    pub ty: Type,
    /// Offset from the start, in bytes.
    pub offset: u32,
    /// Size in bytes, including the selector if there is one.
    pub size: u32,
    /// The storage.
    pub repr: FieldRepr,
}

/// The storage of a field or array element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldRepr {
    /// The value itself.
    Inline,
    /// A union of bits types; the selector byte is `selector` bytes after the field's start.
    BitsUnion {
        /// The selector's offset from the start of the field.
        selector: u32,
    },
    /// A pointer to an object, null while undefined.
    Pointer,
}

/// The form in which a value of a type is passed: between instructions, as an argument, as a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repr {
    /// No value of this type exists.
    Never,
    /// One value, no bits: `nothing`, functions without captures.
    Ghost,
    /// One register.
    Scalar(LowType),
    /// An immutable with fields, unboxed.
    Aggregate,
    /// A union of pointer-free concrete types, unboxed: the bits and a selector byte.
    BitsUnion,
    /// A pointer to an object.
    Boxed,
    /// A primitive type whose width matches no register.
    OddPrimitive,
    /// A token, which is not a value and has no form.
    Token,
}

/// Why a type has no layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// The type is abstract, a union, or otherwise not concrete.
    NotConcrete(Type),
    /// A declaration that the type contains is not defined yet.
    Undefined(Type),
    /// The run time lays out the contents.
    Opaque(Type),
    /// The value would be larger than 512 KiB.
    TooLarge(Type),
    /// The type contains ever larger instances of itself.
    Unbounded(Type),
    /// The value would contain more than 256 different types inline.
    TooNested(Type),
    /// The value would contain more than 16,384 pointers inline.
    TooManyPointers(Type),
}
