//! Constants: values that need no instruction.
//!
//! A constant is interned per function, so equal constants are equal [`Value`]s and may be compared by id. It has no
//! position: it dominates everything. Bits are compared as bits: `0.0` and `-0.0` are two constants, as are
//! two NaNs with different payloads.

use crate::entity::Value;
use crate::names::Name;
use crate::types::Type;

/// The modules that are values.
pub(crate) const MODULES: [&str; 6] = ["Main", "Base", "Core", "Checked", "Math", "Intrinsics"];

/// A constant value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Const {
    /// A value of a primitive type (high or low), by its bits; bits above the width are zero.
    Bits {
        ty: Type,
        /// The value's bits.
        bits: u128,
    },
    /// The only value of a singleton type: `nothing`, a function, an immutable without fields.
    Singleton(Type),
    String(Name),
    Symbol(Name),
    /// A type as a value: an object of the kind `ty`, made by [`Types::type_constant`](crate::Types::type_constant).
    Type {
        /// The type that is the value.
        of: Type,
        /// Its own type: `DataType`, `UnionAll`, `Union` or `Core.TypeofBottom`.
        ty: Type,
    },
    /// A module as a value.
    Module(Name),
    /// An immutable struct, tuple or named tuple whose fields are constants of the same function.
    Aggregate {
        ty: Type,
        /// One constant for each field.
        fields: Box<[Value]>,
    },
    /// Low IR: the address of a named entity that the linker resolves.
    Address(Address),
    /// An unspecified value of this type. Made where text leaves a value undefined.
    Undef(Type),
}

/// The target of a link-time address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// The permanent record of a symbol value.
    Symbol(Name),
    /// The permanent record of a string constant.
    String(Name),
    /// The permanent object of a module.
    Module(Name),
    /// Constant bytes of this function, by their index in [`Func::data`](crate::Func::data).
    Data(u32),
    /// A function or variable of C.
    Foreign(Name),
    /// The object of a type: the value that the tags of its objects hold.
    Type(Type),
    /// The only instance of a type without fields, as an object.
    Instance(Type),
    /// A permanent object of a primitive type with these bits.
    Boxed(Type, u128),
    /// The cell of a global variable: a reference to its value, null until it is assigned. The cell is a
    /// root.
    Global(Name),
}

impl Address {
    /// Whether it is the address of an object, which is then permanent.
    pub fn is_object(self) -> bool {
        !matches!(self, Address::Data(_) | Address::Foreign(_) | Address::Global(_))
    }
}

impl Const {
    /// The type of the value.
    pub fn ty(&self) -> Type {
        match *self {
            Const::Bits { ty, .. }
            | Const::Aggregate { ty, .. }
            | Const::Type { ty, .. }
            | Const::Singleton(ty)
            | Const::Undef(ty) => ty,
            Const::String(_) => Type::STRING,
            Const::Symbol(_) => Type::SYMBOL,
            Const::Module(_) => Type::MODULE,
            Const::Address(_) => Type::PTR,
        }
    }
}
