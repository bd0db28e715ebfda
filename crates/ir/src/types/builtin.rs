//! The types that exist before anything is declared.
//!
//! One table, in the order of the fixed ids: the abstract numeric tower, the primitive types, the containers
//! laid out by the run time (`Array`, `Memory`, `String`, …), the exceptions thrown by built-in operations,
//! and the small structs of `Base` that printed IR mentions without declaring (`Pair`, `RefValue`,
//! `Core.Box`).
//!
//! The table is data, not IR text, because the reader needs these types in order to read anything.

use super::declaration::PrimitiveRepr;
use super::kind::Decl;

/// The declarations whose ids are the same in every context.
pub mod decl {
    use super::Decl;
    /// `Nothing`.
    pub const NOTHING: Decl = Decl(0);
    /// `Ptr{T}`.
    pub const PTR: Decl = Decl(20);
    /// `Array{T, N}`; `Vector{T}` and `Matrix{T}` are its instances with `N` 1 and 2.
    pub const ARRAY: Decl = Decl(21);
    /// `Memory{T}`.
    pub const MEMORY: Decl = Decl(22);
    /// `MemoryRef{T}`.
    pub const MEMORY_REF: Decl = Decl(23);
    /// `Exception`.
    pub const EXCEPTION: Decl = Decl(24);
    /// `Function`.
    pub const FUNCTION: Decl = Decl(25);
    /// `Number`.
    pub const NUMBER: Decl = Decl(26);
}

impl Decl {
    /// Whether the declaration is builtin and so exists in every context.
    pub fn is_builtin(self) -> bool {
        (self.0 as usize) < TABLE.len()
    }
}

/// The supertype of a builtin: a name earlier in the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) module: &'static str,
    pub(super) params: &'static [&'static str],
    pub(super) supertype: &'static str,
    pub(super) body: Body,
}

pub(super) enum Body {
    Abstract,
    Primitive(u16, PrimitiveRepr),
    Immutable(&'static [(&'static str, &'static str)]),
    Mutable(&'static [(&'static str, &'static str)]),
    /// Defined by the run time; its fields are accessed by dedicated operations.
    Opaque,
}

use Body::{Abstract, Immutable, Mutable, Opaque, Primitive};
use PrimitiveRepr::{Bits, Bool, Char, Float, Signed, Unsigned};

const fn row(
    name: &'static str,
    module: &'static str,
    params: &'static [&'static str],
    supertype: &'static str,
    body: Body,
) -> Row {
    Row { name, module, params, supertype, body }
}

/// The number of leading rows with a fixed type id, in id order from [`Type::NOTHING`].
pub(super) const FIXED: usize = 20;
/// The other rows with a fixed type id, in id order from [`Type::BOX`]: their declarations follow the
/// containers with fixed ids.
pub(super) const LATER_FIXED: [&str; 4] = ["Box", "Union", "UnionAll", "TypeofBottom"];

#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    // The first rows have fixed type ids.
    row("Nothing",   "", &[], "Any",            Immutable(&[])),
    row("Bool",      "", &[], "Integer",        Primitive(8, Bool)),
    row("Char",      "", &[], "AbstractChar",   Primitive(32, Char)),
    row("Int8",      "", &[], "Signed",         Primitive(8, Signed)),
    row("Int16",     "", &[], "Signed",         Primitive(16, Signed)),
    row("Int32",     "", &[], "Signed",         Primitive(32, Signed)),
    row("Int64",     "", &[], "Signed",         Primitive(64, Signed)),
    row("Int128",    "", &[], "Signed",         Primitive(128, Signed)),
    row("UInt8",     "", &[], "Unsigned",       Primitive(8, Unsigned)),
    row("UInt16",    "", &[], "Unsigned",       Primitive(16, Unsigned)),
    row("UInt32",    "", &[], "Unsigned",       Primitive(32, Unsigned)),
    row("UInt64",    "", &[], "Unsigned",       Primitive(64, Unsigned)),
    row("UInt128",   "", &[], "Unsigned",       Primitive(128, Unsigned)),
    row("Float16",   "", &[], "AbstractFloat",  Primitive(16, Float)),
    row("Float32",   "", &[], "AbstractFloat",  Primitive(32, Float)),
    row("Float64",   "", &[], "AbstractFloat",  Primitive(64, Float)),
    row("String",    "", &[], "AbstractString", Opaque),
    row("Symbol",    "", &[], "Any",            Opaque),
    row("DataType",  "", &[], "Type",           Opaque),
    row("Module",    "", &[], "Any",            Opaque),
    row("Ptr",       "", &["T"],      "Ref{T}",        Primitive(64, Bits)),
    row("Array",     "", &["T", "N"], "DenseArray{T, N}", Opaque),
    row("Memory",    "", &["T"],      "DenseVector{T}", Opaque),
    row("MemoryRef", "", &["T"],      "Ref{T}",        Opaque),
    row("Exception", "", &[], "Any", Abstract),
    row("Function",  "", &[], "Any", Abstract),
    row("Number",    "", &[], "Any", Abstract),
    row("Box", "Core", &[], "Any", Mutable(&[("contents", "Any")])),
    // Types that type objects other than `DataType`s have.
    row("Union",        "", &[], "Type", Opaque),
    row("UnionAll",     "", &[], "Type", Opaque),
    row("TypeofBottom", "Core", &[], "Type", Opaque),
    // The numeric tower and the other abstract types of Core.
    row("Real",           "", &[], "Number",  Abstract),
    row("Integer",        "", &[], "Real",    Abstract),
    row("Signed",         "", &[], "Integer", Abstract),
    row("Unsigned",       "", &[], "Integer", Abstract),
    row("AbstractFloat",  "", &[], "Real",    Abstract),
    row("AbstractChar",   "", &[], "Any",     Abstract),
    row("AbstractString", "", &[], "Any",     Abstract),
    row("Type",           "", &[], "Any",     Abstract),
    row("Ref",            "", &["T"], "Any",  Abstract),
    row("AbstractArray",  "", &["T", "N"], "Any", Abstract),
    row("DenseArray",     "", &["T", "N"], "AbstractArray{T, N}", Abstract),
    row("DenseVector",    "", &["T"], "DenseArray{T, 1}", Abstract),
    row("AbstractDict",   "", &["K", "V"], "Any", Abstract),
    row("AbstractSet",    "", &["T"], "Any", Abstract),
    row("AbstractRange",  "", &["T"], "AbstractArray{T, 1}", Abstract),
    row("OrdinalRange",   "", &["T", "S"], "AbstractRange{T}", Abstract),
    row("AbstractUnitRange", "", &["T"], "OrdinalRange{T, T}", Abstract),
    row("SimpleVector", "Core", &[], "Any", Opaque),
    row("Expr",         "", &[], "Any", Opaque),
    // The fields that printed code reads and writes, the random state first.
    row("Task",         "", &[], "Any", Mutable(&[
        ("next", "Any"), ("queue", "Any"), ("storage", "Any"), ("donenotify", "Any"), ("result", "Any"), ("scope", "Any"), ("code", "Any"),
        ("rngState0", "UInt64"), ("rngState1", "UInt64"), ("rngState2", "UInt64"), ("rngState3", "UInt64"), ("rngState4", "UInt64"),
        ("_state", "UInt8"), ("sticky", "Bool"), ("_isexception", "Bool"), ("priority", "UInt16"),
    ])),
    // Structs of Base that printed IR mentions without declaring them.
    row("Pair",      "", &["A", "B"], "Any", Immutable(&[("first", "A"), ("second", "B")])),
    row("RefValue",  "Base", &["T"], "Ref{T}", Mutable(&[("x", "T")])),
    row("Some",      "", &["T"], "Any", Immutable(&[("value", "T")])),
    row("UnitRange", "", &["T"], "AbstractUnitRange{T}", Immutable(&[("start", "T"), ("stop", "T")])),
    row("OneTo",     "Base", &["T"], "AbstractUnitRange{T}", Immutable(&[("stop", "T")])),
    row("StepRange", "", &["T", "S"], "OrdinalRange{T, S}", Immutable(&[("start", "T"), ("step", "S"), ("stop", "T")])),
    row("Complex",   "", &["T"], "Number", Immutable(&[("re", "T"), ("im", "T")])),
    row("Rational",  "", &["T"], "Real", Immutable(&[("num", "T"), ("den", "T")])),
    row("Val",       "", &["x"], "Any", Immutable(&[])),
    row("Missing",   "", &[], "Any", Immutable(&[])),
    // Exceptions.
    row("DivideError",        "", &[], "Exception", Immutable(&[])),
    row("StackOverflowError", "", &[], "Exception", Immutable(&[])),
    row("OutOfMemoryError",   "", &[], "Exception", Immutable(&[])),
    row("UndefRefError",      "", &[], "Exception", Immutable(&[])),
    row("InterruptException", "", &[], "Exception", Immutable(&[])),
    row("DomainError",        "", &[], "Exception", Immutable(&[("val", "Any"), ("msg", "Any")])),
    row("ErrorException",     "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("ArgumentError",      "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("DimensionMismatch",  "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("AssertionError",     "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("OverflowError",      "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("BoundsError",        "", &[], "Exception", Mutable(&[("a", "Any"), ("i", "Any")])),
    row("InexactError",       "", &[], "Exception", Immutable(&[("func", "Symbol"), ("args", "Any")])),
    row("UndefVarError",      "", &[], "Exception", Immutable(&[("var", "Symbol"), ("world", "UInt64"), ("scope", "Any")])),
    row("TypeError",          "", &[], "Exception", Immutable(&[("func", "Symbol"), ("context", "Any"), ("expected", "Any"), ("got", "Any")])),
    row("MethodError",        "", &[], "Exception", Immutable(&[("f", "Any"), ("args", "Any"), ("world", "UInt64")])),
    row("FieldError",         "", &[], "Exception", Immutable(&[("type", "DataType"), ("field", "Symbol")])),
    row("KeyError",           "", &[], "Exception", Immutable(&[("key", "Any")])),
    row("ConcurrencyViolationError", "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
    row("CompileError", "", &[], "Exception", Immutable(&[("msg", "AbstractString")])),
];

/// The number of builtin declarations.
pub(super) fn count() -> usize {
    TABLE.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::types::{LowType, Type};

    #[test]
    fn constants_agree_with_the_table() {
        let cx = Context::new();
        let name = |ty: Type| cx.types.display(ty).to_string();
        assert_eq!(name(Type::NOTHING), "Nothing");
        assert_eq!(name(Type::BOOL), "Bool");
        assert_eq!(name(Type::INT64), "Int64");
        assert_eq!(name(Type::UINT128), "UInt128");
        assert_eq!(name(Type::FLOAT64), "Float64");
        assert_eq!(name(Type::MODULE), "Module");
        assert_eq!(name(Type::BOX), "Core.Box");
        assert_eq!(name(Type::UNION), "Union");
        assert_eq!(name(Type::UNION_ALL), "UnionAll");
        assert_eq!(name(Type::TYPEOF_BOTTOM), "Core.TypeofBottom");
        assert_eq!(name(Type::TOKEN), "Token");
        for low in LowType::ALL {
            assert_eq!(Type::low(low).as_low(), Some(low));
            assert_eq!(name(Type::low(low)), low.name());
        }
        for (decl, text) in [
            (decl::NOTHING, "Nothing"),
            (decl::PTR, "Ptr"),
            (decl::ARRAY, "Array"),
            (decl::MEMORY, "Memory"),
            (decl::MEMORY_REF, "MemoryRef"),
            (decl::EXCEPTION, "Exception"),
            (decl::FUNCTION, "Function"),
            (decl::NUMBER, "Number"),
        ] {
            assert_eq!(cx.names.text(cx.types.decl(decl).name), text);
        }
    }

    #[test]
    fn every_supertype_in_the_table_is_found() {
        for row in TABLE {
            let name = row.supertype.split('{').next().unwrap();
            assert!(name == "Any" || TABLE.iter().any(|r| r.name == name), "{} <: {name}", row.name);
        }
    }
}
