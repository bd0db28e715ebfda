//! Programs that call a routine of the run time which would not end, or not soon.

/// How `main(1)` of a program ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// At its deadline.
    Never,
    /// With this value.
    With(i64),
}

/// A name, the end, a program.
pub(crate) const ENDLESS: [(&str, Ends, &str); 8] = [
    (
        "inserts into a vector of 2^62 elements without bytes",
        Ends::With(4),
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Nothing}, svec(Any, Int64), 0, :(:ccall), Vector{Nothing}, 4611686018427387904))::Vector{Nothing}
│        $(Expr(:foreigncall, :(:jl_array_grow_at), Nothing, svec(Any, Int64, Int64), 0, :(:ccall), :(%1), 1, 1))::Nothing
│        $(Expr(:foreigncall, :(:jl_array_del_at), Nothing, svec(Any, Int64, Int64), 0, :(:ccall), :(%1), 1, 1))::Nothing
└──      return 4
end",
    ),
    (
        "repeats an empty string 2^62 times",
        Ends::With(0),
        "function main(n::Int64)::Int64
1 ─ %1 = dynamic Base.repeat(\"\", 4611686018427387904)::Any
│   %2 = Core.typeassert(%1, String)::String
│   %3 = Core.sizeof(%2)::Int64
└──      return %3
end",
    ),
    (
        "splats a vector that contains itself",
        Ends::Never,
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, 3))::Vector{Any}
│        Base.arrayset(true, %1, Base.iterate, 1)::Vector{Any}
│        Base.arrayset(true, %1, Core._apply_iterate, 2)::Vector{Any}
│        Base.arrayset(true, %1, %1, 3)::Vector{Any}
│   %5 =   builtin Core._apply_iterate(Base.iterate, Core._apply_iterate, %1)::Any
│        Core.donotdelete(%5)::Nothing
└──      return 1
end",
    ),
    (
        "calls the newest version of itself by a vector that contains itself",
        Ends::Never,
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, 4))::Vector{Any}
│        Base.arrayset(true, %1, Core._apply_iterate, 1)::Vector{Any}
│        Base.arrayset(true, %1, Base.iterate, 2)::Vector{Any}
│        Base.arrayset(true, %1, Core.invokelatest, 3)::Vector{Any}
│        Base.arrayset(true, %1, %1, 4)::Vector{Any}
│   %6 =   builtin Core._apply_iterate(Base.iterate, Core.invokelatest, %1)::Any
│        Core.donotdelete(%6)::Nothing
└──      return 1
end",
    ),
    (
        "calls two thousand builtins, each by the one before",
        Ends::With(7),
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, 2002))::Vector{Any}
└──      goto #2
2 ┄ %3 = φ (#1 => 1, #3 => %6)::Int64
│   %4 = Base.sle_int(%3, 2000)::Bool
└──      goto #4 if not %4
3 ─      Base.arrayset(true, %1, Core.invokelatest, %3)::Vector{Any}
│   %6 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      Base.arrayset(true, %1, Main.seven, 2001)::Vector{Any}
│        Base.arrayset(true, %1, n, 2002)::Vector{Any}
│   %9 =   builtin Core._apply_iterate(Base.iterate, Core.invokelatest, %1)::Int64
└──      return %9
end
function seven(x::Int64)::Int64
1 ─      return 7
end",
    ),
    (
        "replaces a field by what changes it each time",
        Ends::Never,
        "mutable struct Cell
    @atomic value::Any
end
function main(n::Int64)::Int64
1 ─ %1 = %new(Cell, n)::Cell
│   %2 = %new(Change, %1)::Change
│   %3 = Core.compilerbarrier(:type, Core.modifyfield!)::Any
│   %4 = dynamic (%3)(%1, :value, %2, n, :sequentially_consistent)::Any
│        Core.donotdelete(%4)::Nothing
└──      return 1
end
struct Change
    cell::Cell
end
function (self::Change)(old::Any, x::Any)::Any
1 ─ %1 = Base.getfield(self, :cell)::Cell
│   %2 = %new(Cell, old)::Cell
│        Base.setfield!(%1, :value, %2, :sequentially_consistent)::Cell
└──      return x
end",
    ),
    (
        "the same, by a statement",
        Ends::Never,
        "mutable struct Cell
    @atomic value::Any
end
function main(n::Int64)::Int64
1 ─ %1 = %new(Cell, n)::Cell
│   %2 = %new(Change, %1)::Change
│   %4 =   builtin Core.modifyfield!(%1, :value, %2, n, :sequentially_consistent)::Any
│        Core.donotdelete(%4)::Nothing
└──      return 1
end
struct Change
    cell::Cell
end
function (self::Change)(old::Any, x::Any)::Any
1 ─ %1 = Base.getfield(self, :cell)::Cell
│   %2 = %new(Cell, old)::Cell
│        Base.setfield!(%1, :value, %2, :sequentially_consistent)::Cell
└──      return x
end",
    ),
    (
        "compares values in which every part is shared in other ways",
        Ends::With(1),
        "struct Both
    left::Any
    right::Any
end
function main(n::Int64)::Int64
1 ─       goto #2
2 ┄ %2  = φ (#1 => nothing, #3 => %6)::Any
│   %3  = φ (#1 => nothing, #3 => %7)::Any
│   %4  = φ (#1 => nothing, #3 => %8)::Any
│   %5  = φ (#1 => 0, #3 => %9)::Int64
│   %6  = %new(Both, %2, %2)::Both
│   %7  = %new(Both, %3, %4)::Both
│   %8  = %new(Both, %4, %3)::Both
│   %9  = Base.add_int(%5, 1)::Int64
│   %10 = Base.slt_int(%9, 100)::Bool
└──       goto #4 if not %10
3 ─       goto #2
4 ─ %11 = (%6 === %7)::Bool
│   %12 = Base.zext_int(Int64, %11)::Int64
└──       return %12
end",
    ),
];
