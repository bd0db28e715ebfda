//! The ids of types and declarations, and the structure of a type.
//!
//! The ids of low types, of the primitive types and of some others are constants: they are the same in every
//! context, and low types need no table.

use crate::function_name::FunctionName;
use crate::names::Name;

/// A type. Equal types of one context have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Type(pub(crate) u32);

/// The declaration of a nominal type: its name, parameters, supertype and fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Decl(pub(crate) u32);

/// The structure of a type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// `Union{}`: the type without values.
    Bottom,
    /// `Any`: the type of every value.
    Any,
    /// A declared type with its parameters: `Int64`, `Vector{Float64}`, `Main.Node`, `Ptr{UInt8}`.
    Nominal {
        decl: Decl,
        /// One type or value ([`Types::is_value`](crate::types::Types::is_value)) for each parameter of the declaration.
        params: Box<[Type]>,
    },
    /// A parametric type without its parameters: `Vector`, `Pair`. The union of all its instances.
    Generic(Decl),
    /// `Tuple{A, B}`, or `Tuple{A, Vararg{B}}` with any number of `B` after the others.
    Tuple {
        /// The types of the leading elements.
        elems: Box<[Type]>,
        /// The type of all further elements, if the length is open.
        vararg: Option<Type>,
    },
    /// `@NamedTuple{a::A, b::B}`.
    NamedTuple {
        /// The names, one per element of `tuple`.
        names: Box<[Name]>,
        /// The tuple type of the values.
        tuple: Type,
    },
    /// A union in normal form: at least two members, none a union or a subtype of another, in printing order.
    Union(Box<[Type]>),
    /// `Type{T}`: the type whose only value is `T`.
    TypeOf(Type),
    /// `typeof(f)`, `typeof(A.g)`: the type of the function with this name, whose only value is the function.
    Function(FunctionName),
    /// A parameter of the enclosing declaration, or a variable of a method's `where`, counted from 0.
    Param(u32),
    /// An integer in a parameter position: the `2` of `Array{Float64, 2}`.
    Int(i64),
    /// A symbol in a parameter position.
    Sym(Name),
    /// A value of a primitive type other than `Int64` in a parameter position: the `true` of
    /// `SubArray{…, true}`.
    Bits { ty: Type, bits: u128 },
    /// A tuple of values in a parameter position, with its elements as parameters: the `(1, :a)` of
    /// `Val{(1, :a)}`.
    Values(Box<[Type]>),
    /// `NTuple{N, T}` whose length is a parameter of the enclosing declaration, or a variable of a `where`.
    /// With a known length it is a [`TypeKind::Tuple`].
    NTuple {
        /// The length: a [`TypeKind::Param`].
        count: Type,
        elem: Type,
    },
    /// A type with its own variables, the union over all their instantiations: `Vector{<:Real}`,
    /// `Tuple{T, Vector{T}} where T`. In the body and in later bounds, variable *n* is a
    /// [`TypeKind::Param`]`(n)`; no other parameter occurs in them. Only tests have such types; values have a
    /// supertype instead.
    UnionAll {
        /// The lower and the upper bound of each variable.
        bounds: Box<[(Type, Type)]>,
        /// The type in which the variables occur.
        body: Type,
    },
    /// A type of low IR.
    Low(LowType),
    /// The result of `enter` and `gc_preserve_begin`, which only `leave`, `pop_exception` and
    /// `gc_preserve_end` accept.
    Token,
}

/// The classes of pointers that root placement distinguishes (Julia's address spaces).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum PtrClass {
    /// An address that the collector does not track.
    Raw,
    /// The start of an object; may be stored in a root slot (address space 10).
    Tracked,
    /// An address inside an object that has a tracked base (address space 11).
    Derived,
    /// An argument that the callee keeps alive (address space 12).
    CalleeRooted,
    /// Kept alive by the object that it was loaded from (address space 13).
    Loaded,
}

/// The types of low IR, each of which fits a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum LowType {
    /// 8-bit integer; also `Bool`, which is 0 or 1.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 128-bit integer.
    I128,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// An address, 64 bits wide.
    Ptr(PtrClass),
    /// 128 bits in lanes, whose width the operation determines.
    V128,
}

impl LowType {
    /// All low types, in the order of their ids.
    pub const ALL: [LowType; 14] = [
        LowType::I8,
        LowType::I16,
        LowType::I32,
        LowType::I64,
        LowType::I128,
        LowType::F16,
        LowType::F32,
        LowType::F64,
        LowType::Ptr(PtrClass::Raw),
        LowType::Ptr(PtrClass::Tracked),
        LowType::Ptr(PtrClass::Derived),
        LowType::Ptr(PtrClass::CalleeRooted),
        LowType::Ptr(PtrClass::Loaded),
        LowType::V128,
    ];

    /// The size in bytes, which is also the alignment.
    pub fn bytes(self) -> u32 {
        match self {
            LowType::I8 => 1,
            LowType::I16 | LowType::F16 => 2,
            LowType::I32 | LowType::F32 => 4,
            LowType::I64 | LowType::F64 | LowType::Ptr(_) => 8,
            LowType::I128 | LowType::V128 => 16,
        }
    }

    /// The size in bits.
    pub fn bits(self) -> u32 {
        self.bytes() * 8
    }

    pub fn is_int(self) -> bool {
        matches!(self, LowType::I8 | LowType::I16 | LowType::I32 | LowType::I64 | LowType::I128)
    }

    pub fn is_float(self) -> bool {
        matches!(self, LowType::F16 | LowType::F32 | LowType::F64)
    }

    /// The integer type with this width in bits, if there is one.
    pub fn int(bits: u32) -> Option<LowType> {
        match bits {
            8 => Some(LowType::I8),
            16 => Some(LowType::I16),
            32 => Some(LowType::I32),
            64 => Some(LowType::I64),
            128 => Some(LowType::I128),
            _ => None,
        }
    }

    /// The text of the type, as in low IR.
    pub fn name(self) -> &'static str {
        match self {
            LowType::I8 => "i8",
            LowType::I16 => "i16",
            LowType::I32 => "i32",
            LowType::I64 => "i64",
            LowType::I128 => "i128",
            LowType::F16 => "f16",
            LowType::F32 => "f32",
            LowType::F64 => "f64",
            LowType::Ptr(PtrClass::Raw) => "ptr",
            LowType::Ptr(PtrClass::Tracked) => "tracked",
            LowType::Ptr(PtrClass::Derived) => "derived",
            LowType::Ptr(PtrClass::CalleeRooted) => "calleerooted",
            LowType::Ptr(PtrClass::Loaded) => "loaded",
            LowType::V128 => "v128",
        }
    }

    /// The inverse of [`LowType::name`].
    pub fn from_name(name: &str) -> Option<LowType> {
        LowType::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl std::fmt::Display for LowType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The types whose ids are the same in every context.
impl Type {
    /// `Union{}`.
    pub const BOTTOM: Type = Type(0);
    /// `Any`.
    pub const ANY: Type = Type(1);
    /// The low type `i8`.
    pub const I8: Type = Type(2);
    /// The low type `i16`.
    pub const I16: Type = Type(3);
    /// The low type `i32`.
    pub const I32: Type = Type(4);
    /// The low type `i64`.
    pub const I64: Type = Type(5);
    /// The low type `i128`.
    pub const I128: Type = Type(6);
    /// The low type `f16`.
    pub const F16: Type = Type(7);
    /// The low type `f32`.
    pub const F32: Type = Type(8);
    /// The low type `f64`.
    pub const F64: Type = Type(9);
    /// The low type `ptr`.
    pub const PTR: Type = Type(10);
    /// The low type `tracked`.
    pub const TRACKED: Type = Type(11);
    /// The low type `derived`.
    pub const DERIVED: Type = Type(12);
    /// The low type `calleerooted`.
    pub const CALLEE_ROOTED: Type = Type(13);
    /// The low type `loaded`.
    pub const LOADED: Type = Type(14);
    /// The low type `v128`.
    pub const V128: Type = Type(15);
    /// `Nothing`.
    pub const NOTHING: Type = Type(16);
    /// `Bool`.
    pub const BOOL: Type = Type(17);
    /// `Char`.
    pub const CHAR: Type = Type(18);
    /// `Int8`.
    pub const INT8: Type = Type(19);
    /// `Int16`.
    pub const INT16: Type = Type(20);
    /// `Int32`.
    pub const INT32: Type = Type(21);
    /// `Int64`.
    pub const INT64: Type = Type(22);
    /// `Int128`.
    pub const INT128: Type = Type(23);
    /// `UInt8`.
    pub const UINT8: Type = Type(24);
    /// `UInt16`.
    pub const UINT16: Type = Type(25);
    /// `UInt32`.
    pub const UINT32: Type = Type(26);
    /// `UInt64`.
    pub const UINT64: Type = Type(27);
    /// `UInt128`.
    pub const UINT128: Type = Type(28);
    /// `Float16`.
    pub const FLOAT16: Type = Type(29);
    /// `Float32`.
    pub const FLOAT32: Type = Type(30);
    /// `Float64`.
    pub const FLOAT64: Type = Type(31);
    /// `String`.
    pub const STRING: Type = Type(32);
    /// `Symbol`.
    pub const SYMBOL: Type = Type(33);
    /// `DataType`.
    pub const DATATYPE: Type = Type(34);
    /// `Module`.
    pub const MODULE: Type = Type(35);
    /// `Core.Box`.
    pub const BOX: Type = Type(36);
    /// `Union`, the type of unions as objects.
    pub const UNION: Type = Type(37);
    /// `UnionAll`, the type of types with open parameters as objects.
    pub const UNION_ALL: Type = Type(38);
    /// `Core.TypeofBottom`, the type of `Union{}` as an object.
    pub const TYPEOF_BOTTOM: Type = Type(39);
    /// The type of tokens, which are not values.
    pub const TOKEN: Type = Type(40);

    /// The id of a low type.
    pub const fn low(low: LowType) -> Type {
        match low {
            LowType::I8 => Type::I8,
            LowType::I16 => Type::I16,
            LowType::I32 => Type::I32,
            LowType::I64 => Type::I64,
            LowType::I128 => Type::I128,
            LowType::F16 => Type::F16,
            LowType::F32 => Type::F32,
            LowType::F64 => Type::F64,
            LowType::Ptr(PtrClass::Raw) => Type::PTR,
            LowType::Ptr(PtrClass::Tracked) => Type::TRACKED,
            LowType::Ptr(PtrClass::Derived) => Type::DERIVED,
            LowType::Ptr(PtrClass::CalleeRooted) => Type::CALLEE_ROOTED,
            LowType::Ptr(PtrClass::Loaded) => Type::LOADED,
            LowType::V128 => Type::V128,
        }
    }

    /// The low type with this id, if it is one. Needs no table: these ids are fixed.
    pub fn as_low(self) -> Option<LowType> {
        LowType::ALL.get(self.0.checked_sub(Type::I8.0)? as usize).copied()
    }

    /// The class of a pointer type of low IR.
    pub fn ptr_class(self) -> Option<PtrClass> {
        match self.as_low()? {
            LowType::Ptr(class) => Some(class),
            _ => None,
        }
    }

    /// A dense index for side tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
