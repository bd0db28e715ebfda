//! Hostile programs, for the tests of limits and their bench.

use std::sync::Arc;
use std::time::Duration;

use brolga::Runtime;
use brolga::session::Dylib;

/// Defines `main`, which calls a function of the host again and again. That waits until the limits of its call have ended, and looks every 0.2 ms.
pub(crate) fn waiting(dylib: &Dylib, runtime: &Arc<Runtime>) {
    let runtime = runtime.clone();
    let wait = move |n: i64| {
        while !runtime.has_ended() {
            std::thread::park_timeout(Duration::from_micros(200));
        }
        n
    };
    dylib.define_fn("host", wait).expect("the name is free");
    let text = "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄      invoke Main.host(n::Int64)::Int64
└──      goto #2
end";
    dylib.define(dylib.read("waits.jlir", text.as_bytes()).expect("it is well-formed")).expect("it is new");
}

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

/// Programs that spend their time in routines of the run time, one kind each, and begin again whatever is thrown. `main` of each takes a number and gives one.
pub(crate) const NATIVE: [(&str, &str); 9] = [
    (
        "makes arrays",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 500000))::Vector{Int64}
│        Core.donotdelete(%2)::Nothing
└──      goto #2
end",
    ),
    (
        "copies arrays",
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 500000))::Vector{Int64}
└──      goto #2
2 ┄ %3 = $(Expr(:foreigncall, :(:jl_array_copy), Vector{Int64}, svec(Any), 0, :(:ccall), :(%1)))::Vector{Int64}
│        Core.donotdelete(%3)::Nothing
└──      goto #2
end",
    ),
    (
        "grows an array and shrinks it",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #6
3 ─ %3 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, 1))::Vector{Any}
└──      goto #4
4 ┄      $(Expr(:foreigncall, :(:jl_array_grow_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(%3), 0x0000000000030d40))::Nothing
│        $(Expr(:foreigncall, :(:jl_array_del_beg), Nothing, svec(Any, UInt64), 0, :(:ccall), :(%3), 0x0000000000000064))::Nothing
└──      goto #4
6 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "builds strings",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄ %4 = φ (#3 => \"twice as long\", #4 => %5)::Any
│   %5 = Base.string(%4, %4)::Any
└──      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "compares values that share their parts",
        "struct Both
    left::Any
    right::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => nothing, #2 => %5)::Any
│   %3 = φ (#1 => nothing, #2 => %6)::Any
│   %4 = φ (#1 => 0, #2 => %8)::Int64
│   %5 = %new(Both, %2, %2)::Both
│   %6 = %new(Both, %3, %3)::Both
│   %7 = (%5 === %6)::Bool
│   %8 = Base.add_int(%4, 1)::Int64
│        Core.donotdelete(%7)::Nothing
└──      goto #2
end",
    ),
    (
        "prints",
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Float64}, svec(Any, Int64), 0, :(:ccall), Vector{Float64}, 500000))::Vector{Float64}
└──      goto #2
2 ┄      Base.println(%1)::Nothing
└──      goto #2
end",
    ),
    (
        "calls with the elements of an array",
        "function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 200000))::Vector{Int64}
└──      goto #2
2 ┄ %3 = enter #5
3 ─ %4 =   builtin Core._apply_iterate(Base.iterate, Main.many, %1)::Any
│        $(Expr(:leave, :(%3)))
└──      goto #2
5 ┄      $(Expr(:pop_exception, :(%3)))::Nothing
└──      goto #2
end
function many(all::Int64...)::Int64
1 ─      return 1
end",
    ),
    (
        "makes types",
        "function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = enter #5
3 ─      goto #4
4 ┄ %4 = φ (#3 => Int64, #4 => %5)::Any
│   %5 = Core.apply_type(Vector, %4)::Any
└──      goto #4
5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #2
end",
    ),
    (
        "keeps many objects",
        "mutable struct Link
    next::Any
end
function main(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => nothing, #3 => %4, #4 => nothing)::Any
│   %3 = φ (#1 => 0, #3 => %5, #4 => 0)::Int64
│   %4 = %new(Link, %2)::Link
│   %5 = Base.add_int(%3, 1)::Int64
│   %6 = Base.slt_int(%5, 200000)::Bool
└──      goto #4 if not %6
3 ─      goto #2
4 ─      Core.donotdelete(%4)::Nothing
└──      goto #2
end",
    ),
];
