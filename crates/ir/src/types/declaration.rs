//! Declarations of nominal types, and the errors of declaring and making types.

use super::Type;
use crate::names::Name;

/// The maximum nesting of types. Printed programs stay below 20.
pub const MAX_DEPTH: u16 = 128;
/// The largest number of types in the written form of one type, itself included.
pub const MAX_WEIGHT: u32 = 1 << 16;
/// The largest number of parameters, elements or members of one type.
pub const MAX_WIDTH: usize = 4096;

/// The part of a declaration stated in its first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclData {
    /// The name without its module. Unique among the builtins, and among the other declarations of a context.
    pub name: Name,
    /// The module printed before the name (`Core.Box`); empty for names printed alone.
    pub module: Name,
    pub params: Box<[Name]>,
}

/// The second half of a declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclBody {
    /// The direct supertype; may mention the parameters.
    pub supertype: Type,
    /// The kind of type.
    pub kind: DeclKind,
}

impl DeclBody {
    /// The types that it names.
    pub(crate) fn types(&self) -> Vec<Type> {
        let fields = match &self.kind {
            DeclKind::Struct { fields, .. } => &**fields,
            _ => &[],
        };
        fields.iter().map(|field| field.ty).chain([self.supertype]).collect()
    }
}

/// A range of worlds, inclusive: a session world determines which definitions are in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worlds {
    /// The first one.
    pub first: u64,
    pub last: u64,
}

/// The kind of a declared type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeclKind {
    /// Has no instances of its own.
    Abstract,
    /// A bag of bits.
    Primitive {
        /// The width in bits: a multiple of 8 from 8 to 128.
        bits: u16,
        /// How printing and literals interpret the bits.
        repr: PrimitiveRepr,
    },
    /// A type with fields.
    Struct {
        /// Whether instances have an identity and mutable fields.
        mutable: bool,
        /// The fields in order.
        fields: Box<[FieldDecl]>,
    },
    /// An object whose contents only the run time's own operations access (`String`, `Array`, …).
    Opaque,
}

/// The interpretation of the bits of a primitive type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrimitiveRepr {
    /// A two's complement integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// An IEEE float of that width.
    Float,
    /// 0 or 1 in eight bits.
    Bool,
    /// A character: its UTF-8 bytes, left-aligned in 32 bits.
    Char,
    /// Uninterpreted: pointers and user-declared primitive types.
    Bits,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldDecl {
    /// The field's name.
    pub name: Name,
    /// The field's type; in a declaration it may mention the parameters.
    pub ty: Type,
    /// Declared `const`: never changes after construction, even in a mutable struct.
    pub is_const: bool,
    /// Declared `@atomic`: read and written with a memory order.
    pub is_atomic: bool,
}

impl FieldDecl {
    /// A plain field.
    pub fn new(name: Name, ty: Type) -> Self {
        Self { name, ty, is_const: false, is_atomic: false }
    }
}

/// Why a type could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeError {
    /// The type would nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The written form of the type would contain more than [`MAX_WEIGHT`] types.
    TooHeavy,
    /// More than [`MAX_WIDTH`] parameters, elements or members.
    TooWide {
        /// The number given.
        count: usize,
    },
    /// A declared type was given the wrong number of parameters.
    ParameterCount {
        decl: Name,
        /// The number required.
        expected: usize,
        /// The number given.
        given: usize,
    },
    /// The name is already declared, with other parameters or another body.
    Redeclared { name: Name },
    /// The name is part of the syntax of types (`Int64`, `Array`, `Union`), so it cannot be declared.
    Reserved { name: Name },
    /// A primitive type's width is not a multiple of 8 from 8 to 128.
    PrimitiveWidth {
        /// The declaration.
        name: Name,
        /// The width in bits.
        bits: u16,
    },
    /// The declared supertype is not abstract.
    SupertypeNotAbstract {
        /// The declaration.
        name: Name,
        supertype: Type,
    },
    /// A cycle of supertypes.
    SupertypeCycle {
        /// The declaration.
        name: Name,
    },
    /// A tuple with a negative length.
    NegativeLength {
        /// The length.
        count: i64,
    },
    /// Two fields, two parameters, or two names of a named tuple are equal.
    DuplicateField {
        /// The duplicated name.
        field: Name,
    },
    /// A named tuple with different numbers of names and types, or whose types are not a plain tuple.
    NamedTupleShape,
    /// A parameter that is not bound by the variables of a type.
    Unbound,
    /// A type or declaration of another context, which is meaningless in this one.
    Foreign,
    /// A low IR type inside a Julia type, or the reverse.
    MixedLevels { inner: Type },
}
