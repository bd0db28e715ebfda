//! Declarations of nominal types, and the errors of declaring and making types.

use super::Type;
use crate::names::Name;

/// How deep types may nest. Printed programs stay below 20.
pub const MAX_DEPTH: u16 = 128;
/// The largest number of types that one type is written out with, itself included.
pub const MAX_WEIGHT: u32 = 1 << 16;
/// The largest number of parameters, elements or members of one type.
pub const MAX_WIDTH: usize = 4096;

/// The part of a declaration that its first line gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclData {
    /// The name without its module. Unique among the builtins, and among the other declarations of a context.
    pub name: Name,
    /// The module that is printed before the name (`Core.Box`); empty for names that print alone.
    pub module: Name,
    /// The names of the parameters.
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

/// Worlds, the last one included: in one the definitions of a session are those that were in force then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worlds {
    /// The first one.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// The kind of type that a declaration makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeclKind {
    /// Has no instances of its own.
    Abstract,
    /// A bag of bits.
    Primitive {
        /// Its width: a multiple of 8 from 8 to 128.
        bits: u16,
        /// The meaning of the bits to printing and to literals.
        repr: PrimitiveRepr,
    },
    /// Has fields.
    Struct {
        /// Whether instances have an identity and fields can change.
        mutable: bool,
        /// The fields in order.
        fields: Box<[FieldDecl]>,
    },
    /// An object whose contents only the run time's own operations reach (`String`, `Array`, …).
    Opaque,
}

/// The meaning of the bits of a primitive type.
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
    /// Nothing in particular: pointers and user-declared primitive types.
    Bits,
}

/// A field of a struct.
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
    /// The type would be written out with more than [`MAX_WEIGHT`] types.
    TooHeavy,
    /// More than [`MAX_WIDTH`] parameters, elements or members.
    TooWide {
        /// How many there were.
        count: usize,
    },
    /// A declared type was given the wrong number of parameters.
    ParameterCount {
        /// The declaration.
        decl: Name,
        /// How many it has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// The name is already declared, with other parameters or another body.
    Redeclared {
        /// The name.
        name: Name,
    },
    /// Types are spelled with the name (`Int64`, `Array`, `Union`), so it is not declared.
    Reserved {
        /// The name.
        name: Name,
    },
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
        /// Its supertype.
        supertype: Type,
    },
    /// The declared supertype has the declared type among its own supertypes.
    SupertypeCycle {
        /// The declaration.
        name: Name,
    },
    /// A tuple with fewer than no elements.
    NegativeLength {
        /// The length.
        count: i64,
    },
    /// Two fields, two parameters, or two names of a named tuple are equal.
    DuplicateField {
        /// The name that stands twice.
        field: Name,
    },
    /// A named tuple has another number of names than of types, or its types are not a plain tuple.
    NamedTupleShape,
    /// A parameter that none of the variables of a type binds.
    Unbound,
    /// A type or declaration of another context, which has no meaning in this one.
    Foreign,
    /// A type of low IR stands inside a Julia type, or the reverse.
    MixedLevels {
        /// The inner type.
        inner: Type,
    },
}
