//! Hostile programs, for the tests of limits and their bench.

/// Programs that never end by themselves. `main` of each takes a number and gives one.
pub(crate) const HOSTILE: [(&str, &str); 9] = [
    (
        "spins",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄      goto #2
end",
    ),
    (
        "catches everything, again and again",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "continues its loop inside the next handler",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #4
3 ┄      goto #3
4 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
│   %6 = enter #6
5 ┄      goto #5
6 ┄      $(Expr(:pop_exception, :(%6)))::Nothing
└──      goto #2
end",
    ),
    (
        "recurses, and again when the stack is full",
        "function main(n::Int64)::Int64
1 ─ %1 = enter #4
2 ─ %2 = Base.add_int(n, 1)::Int64
│   %3 = invoke Main.main(%2::Int64)::Int64 noinline
│        $(Expr(:leave, :(%1)))
└──      goto #3
3 ─      return %3
4 ┄      $(Expr(:pop_exception, :(%1)))::Nothing
│   %7 = Base.add_int(n, 2)::Int64
│   %8 = invoke Main.main(%7::Int64)::Int64 noinline
│   %9 = Base.xor_int(%8, n)::Int64
└──      return %9
end",
    ),
    (
        "recurses in tail position",
        "function main(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.outer(%1::Int64)::Int64 noinline
└──      return %2
end
function outer(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─ %3 = invoke Main.tail(n::Int64)::Int64 noinline
│        $(Expr(:leave, :(%2)))
4 ─      return %3
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end
function tail(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
│   %2 = invoke Main.tail(%1::Int64)::Int64
└──      return %2
end",
    ),
    (
        "allocates garbage",
        "mutable struct Link
    next::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => nothing, #2 => %3)::Any
│   %3 = %new(Link, n)::Link
│        Core.donotdelete(%2)::Nothing
└──      goto #2
end",
    ),
    (
        "fills the heap, and again when it is full",
        "mutable struct Link
    next::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄ %4 = φ (#3 => nothing, #4 => %5)::Any
│   %5 = %new(Link, %4)::Link
└──      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "throws and catches",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #4
3 ─      invoke Main.fail(n::Int64)::Nothing noinline
│        $(Expr(:leave, :(%2)))
└──      goto #2
4 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end
function fail(n::Int64)::Nothing noinline
1 ─      Core.throw(n)::Union{}
└──      unreachable
end",
    ),
    (
        "calls what is found at run time",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => n, #2 => %3)::Any
│   %3 = Main.next(%2)::Any
└──      goto #2
end
function next(n::Int64)::Float64
1 ─ %1 = Base.sitofp(Float64, n)::Float64
└──      return %1
end
function next(n::Float64)::Int64
1 ─ %1 = Base.fptosi(Int64, n)::Int64
└──      return %1
end",
    ),
];
