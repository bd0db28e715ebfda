//! The part that all programs of an input share: types, globals, functions, and methods that replace methods
//! of Base.

use super::Without;
use crate::rng::Rng;

/// Types of elements, fields and objects: of size 0, of 1 to 56 bytes, aligned to 16, unions with selectors,
/// with references inside, boxed.
pub(super) const ELEMENTS: [&str; 34] = [
    "Int8",
    "Int64",
    "Float64",
    "Int128",
    "Any",
    "Empty",
    "Nothing",
    "Tuple{}",
    "Box{Nothing}",
    "S3",
    "S12",
    "S24",
    "S40",
    "R16",
    "UU",
    "T2",
    "Union{Int8, Int64}",
    "Union{Nothing, Int32, S3}",
    "Union{Nothing, Missing}",
    "Union{Int8, S24}",
    "Union{Bool, Int128, Char, UInt16, Nothing, S12, Empty}",
    "Box{Box{Int8}}",
    "Box{Any}",
    "Tuple{Int8, Any}",
    "Tuple{Int128, Int8}",
    "Mu",
    "String",
    "Bool",
    "Char",
    "Symbol",
    "Abs",
    "MemoryRef{S3}",
    "Memory{Int8}",
    "Vector{Int64}",
];

/// The element type with this name, if there is one.
pub(super) fn known(element: &str) -> Option<&'static str> {
    ELEMENTS.iter().find(|known| **known == element).copied()
}

/// The bytes from one element to the next.
pub(super) fn stride(element: &str) -> u64 {
    match element {
        _ if is_empty(element) => 0,
        "Int8" | "Bool" | "Box{Box{Int8}}" | "Union{Nothing, Missing}" => 1,
        "S3" => 3,
        "Char" | "Union{Nothing, Int32, S3}" => 4,
        "S12" => 12,
        "S24" | "UU" => 24,
        "S40" => 40,
        "Int128" | "Tuple{Int8, Any}" | "MemoryRef{S3}" => 16,
        "Union{Bool, Int128, Char, UInt16, Nothing, S12, Empty}" => 16,
        "R16" | "Tuple{Int128, Int8}" => 32,
        "T2" => 120,
        _ => 8,
    }
}

/// Whether elements of the type have size 0.
pub(super) fn is_empty(element: &str) -> bool {
    matches!(element, "Empty" | "Nothing" | "Tuple{}" | "Box{Nothing}")
}

const TYPES: &str = "\
struct Empty
end
struct S3
    a::UInt8
    b::UInt8
    c::UInt8
end
struct S12
    a::Int32
    b::Int32
    c::Int32
end
struct S24
    a::Any
    b::Int64
    c::Int64
end
struct S40
    a::Int64
    b::Any
    c::S24
end
struct R16
    a::Int128
    b::Any
end
struct UU
    a::Union{Int8, Int64}
    b::Any
end
struct T1
    a::S24
    b::S24
end
struct T2
    a::T1
    b::UU
    c::T1
end
struct Box{T}
    a::T
end
mutable struct Mu
    a::Any
    b::Int64
    c::S24
    d::Union{Int8, Nothing}
    const e::Int64
    f::Int8
    g::S3
end
mutable struct At
    @atomic a::Any
    @atomic b::Int64
    @atomic c::S12
    @atomic d::Union{Int8, Nothing}
    @atomic e::Int128
    @atomic f::S24
    @atomic g::Bool
end
mutable struct Self
    a::Union{Nothing, Self}
    b::Any
end
mutable struct Cell{T}
    a::T
end
struct Hold
    a::Any
    b::Int64
end
struct Lie
    a::Int64
end
abstract type Abs end
struct Sub <: Abs
    a::Int64
end
global victim::Any = nothing
global number::Int64 = 0
global some::Union{Nothing, S12} = nothing
function same(x::Any)::Any noinline
1 ─      return x
end
function second(x::Any, y::Any)::Any
1 ─      return y
end
function third(x::Any, y::Any, z::Any...)::Any
1 ─      return z
end
function dropped(x::Any...)::Any
1 ─      return nothing
end
function fails(x::Any, y::Any)::Any
1 ─      Core.throw(y)::Union{}
└──      unreachable
end
function shrinks(x::Any, y::Any)::Any
1 ─ %1 = Main.victim::Any
│   %2 = Core.typeassert(%1, Vector)::Vector
│   %3 = Core.arraylen(%2)::Int64
│        $(Expr(:foreigncall, :(:jl_array_del_end), Nothing, svec(Any, Int64), 0, :(:ccall), :(%2), :(%3)))::Nothing
└──      return y
end
function grows(x::Any, y::Any)::Any
1 ─ %1 = Main.victim::Any
│   %2 = Core.typeassert(%1, Vector)::Vector
│        $(Expr(:foreigncall, :(:jl_array_grow_beg), Nothing, svec(Any, Int64), 0, :(:ccall), :(%2), 5))::Nothing
└──      return y
end
function Base.iterate(x::Lie)::Any
1 ─ %1 = Base.getfield(x, :a)::Int64
│   %2 = Core.tuple(x, %1)::Tuple{Lie, Int64}
└──      return %2
end
function Base.iterate(x::Lie, n::Any)::Any
1 ─ %1 = Core.typeassert(n, Int64)::Int64
│   %2 = Base.slt_int(0, %1)::Bool
│   %3 = Base.slt_int(%1, 20)::Bool
│   %4 = Base.and_int(%2, %3)::Bool
└──      goto #3 if not %4
2 ─ %5 = Base.sub_int(%1, 1)::Int64
│   %6 = Core.tuple(%5, %5)::Any
└──      return %6
3 ─ %7 = (%1 === -1)::Bool
└──      goto #5 if not %7
4 ─      return x
5 ─      return nothing
end
function Base.length(x::Lie)::Any
1 ─ %1 = Base.getfield(x, :a)::Int64
└──      return %1
end
function Base.getindex(x::Lie, n::Any)::Any
1 ─      return n
end
";

/// Methods that replace methods of Base, by name.
pub(super) const OVERRIDES: [(&str, &str); 12] = [
    (
        "override-boundserror",
        "function Base.throw_boundserror(a::Any, i::Any)::Any\n1 ─      return nothing\nend\n",
    ),
    (
        "override-boundserror-string",
        "function Base.throw_boundserror(a::String, i::Int64)::Any\n1 ─      return i\nend\n",
    ),
    ("override-error", "function Base.error(a::String)::Any\n1 ─      return nothing\nend\n"),
    ("override-argerror", "function Base._throw_argerror(a::String)::Any\n1 ─      return 7\nend\n"),
    (
        "override-inexacterror",
        "function Base.throw_inexacterror(a::Any, b::Any, c::Any)::Any\n1 ─      return 0x07\nend\n",
    ),
    (
        "override-getindex",
        "function Base.getindex(a::Array, i::Int64)::Any\n1 ─      return \"other\"\nend\n",
    ),
    (
        "override-setindex",
        "function Base.setindex!(a::Vector{Int64}, x::Any, i::Int64)::Any\n1 ─      return i\nend\n",
    ),
    ("override-length", "function Base.length(a::String)::Int64\n1 ─      return 4611686018427387904\nend\n"),
    (
        "override-iterate",
        "function Base.iterate(a::Tuple)::Any\n1 ─ %1 = Core.tuple(a)::Any\n└──      return %1\nend\n",
    ),
    ("override-equal", "function Base.:(==)(a::S24, b::S24)::Any\n1 ─      return 5\nend\n"),
    ("override-hash", "function Base.hash(a::S24, b::UInt64)::Any\n1 ─      return nothing\nend\n"),
    ("override-string", "function Base.string(a::S24)::Any\n1 ─      return a\nend\n"),
];

pub(super) struct Shared {
    pub(super) text: String,
    /// Whether programs call library functions that have a body, which makes the input slow to compile.
    pub(super) has_library: bool,
}

/// The shared part of an input.
pub(super) fn text(rng: &mut Rng, without: &Without) -> Shared {
    let mut text = TYPES.to_owned();
    let has_library = rng.chance(15);
    if rng.chance(if has_library { 60 } else { 15 }) && without.allows("overrides") {
        for (name, method) in OVERRIDES {
            if rng.chance(40) && without.allows(name) {
                text.push_str(method);
            }
        }
    }
    Shared { text, has_library }
}
