//! The interpreter on short texts, one per family of operations; the texts contain their checks.

use std::cell::RefCell;
use std::rc::Rc;

use brolga_interp::{Interp, Options, Output, SimMemory, Verdict};
use brolga_ir::Context;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::read;

/// Runs the checks of a text and returns the printed output.
fn check(text: &str) -> String {
    #[derive(Clone, Default)]
    struct Sink(Rc<RefCell<Vec<u8>>>);
    impl Output for Sink {
        fn write(&mut self, bytes: &[u8]) {
            self.0.borrow_mut().extend_from_slice(bytes);
        }
    }
    let source = SourceFile::new("t", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    assert!(!unit.checks.is_empty());
    let sink = Sink::default();
    for check in &unit.checks {
        let options = Options { max_steps: 1_000_000, ..Options::default() };
        let mut interp = Interp::new(&unit.module, options, Box::new(SimMemory::default()));
        interp.set_output(Box::new(sink.clone()));
        if let Verdict::Failed { expected, found } = interp.run_check(check) {
            let line = &text[check.span.start as usize..check.span.end as usize];
            panic!("{line}\n  expected {expected}\n  found    {found}");
        }
    }
    drop(unit);
    String::from_utf8(sink.0.take()).unwrap()
}

#[test]
fn old_arrays() {
    check(
        "
# check: at([1, 2, 3], 2) == 2
# throws: at([1, 2, 3], 4) BoundsError
# throws: at([1, 2, 3], 0) BoundsError
# throws: at(Int64[], -9223372036854775808) BoundsError
function at(a::Vector{Int64}, i::Int64)::Int64
1 ─ %1 = Base.arrayref(true, a, i)::Int64
└──      return %1
end

# check: grid(2, 3, 2, 3) == (6, 2, 3, 1)
# throws: grid(2, 3, 3, 1) BoundsError
# throws: grid(2, 3, 1, 4) BoundsError
# throws: grid(-1, 3, 1, 1) ArgumentError
# throws: grid(1099511627776, 1099511627776, 1, 1) ArgumentError
# throws: grid(1099511627776, 1, 1, 1) OutOfMemoryError
function grid(m::Int64, n::Int64, i::Int64, j::Int64)::Tuple{Int64, Int64, Int64, Int64}
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_2d), Matrix{Int64}, svec(Any, Int64, Int64), 0, :(:ccall), Matrix{Int64}, :(m), :(n), :(n), :(m)))::Matrix{Int64}
│        Base.arrayset(true, %1, 6, i, j)::Matrix{Int64}
│   %3 = Base.arraylen(%1)::Int64
│   %4 = Base.arrayref(true, %1, %3)::Int64
│   %5 = Base.arraysize(%1, 1)::Int64
│   %6 = Base.arraysize(%1, 2)::Int64
│   %7 = Base.arraysize(%1, 3)::Int64
│   %8 = Core.tuple(%4, %5, %6, %7)::NTuple{4, Int64}
└──      return %8
end

# check: push_front([1, 2]) == [9, 1, 2, 8]
# check: push_front(Int64[]) == [9, 8]
function push_front(a::Vector{Int64})::Vector{Int64}
1 ─      $(Expr(:foreigncall, :(:jl_array_grow_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(a), 0x0000000000000001, :(a)))::Nothing
│   %2 = Base.arraylen(a)::Int64
│        Base.arrayset(true, a, 8, %2)::Vector{Int64}
│        $(Expr(:foreigncall, :(:jl_array_grow_beg), Nothing, svec(Any, UInt64), 0, :(:ccall), :(a), 0x0000000000000001, :(a)))::Nothing
│        Base.arrayset(true, a, 9, 1)::Vector{Int64}
└──      return a
end

# check: drop_one(Any[1, \"x\", :y], 0) == Any[\"x\", :y]
# check: drop_one(Any[1, \"x\", :y], 1) == Any[1, :y]
# check: drop_one(Any[1, \"x\", :y], 2) == Any[1, \"x\"]
# throws: drop_one(Any[], 0) BoundsError
function drop_one(a::Vector{Any}, n::Int64)::Vector{Any}
1 ─      $(Expr(:foreigncall, :(:jl_array_del_at), Nothing, svec(Any, Int64, UInt64), 0, :(:ccall), :(a), :(n), 0x0000000000000001))::Nothing
└──      return a
end
",
    );
}

#[test]
fn memories() {
    check(
        "
# check: fill_any(3) == (3, 3, false, true)
# throws: fill_any(-1) ArgumentError
# throws: fill_any(0) BoundsError
# throws: fill_any(9223372036854775807) OutOfMemoryError
function fill_any(n::Int64)::Tuple{Int64, Int64, Bool, Bool}
1 ─ %1 = Core.memorynew(Memory{Any}, n)::Memory{Any}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Any}
│   %3 = Base.memoryrefnew(%2, n, true)::MemoryRef{Any}
│   %4 = Base.memoryref_isassigned(%3, :not_atomic, false)::Bool
│        Base.memoryrefset!(%3, :x, :not_atomic, false)::Symbol
│   %6 = Base.memoryref_isassigned(%3, :not_atomic, true)::Bool
│   %7 = Base.getfield(%1, :length)::Int64
│   %8 = Base.memoryrefoffset(%3)::Int64
│   %9 = Core.tuple(%7, %8, %4, %6)::Tuple{Int64, Int64, Bool, Bool}
└──      return %9
end

# check: undef(1) == 0
# throws: undef(2) UndefRefError
function undef(n::Int64)::Any
1 ─ %1 = (n === 1)::Bool
└──      goto #3 if not %1
2 ─ %3 = Core.memorynew(Memory{Int64}, 1)::Memory{Int64}
│   %4 = Core.memoryrefnew(%3)::MemoryRef{Int64}
│   %5 = Base.memoryrefget(%4, :not_atomic, true)::Int64
└──      return %5
3 ─ %7 = Core.memorynew(Memory{String}, 1)::Memory{String}
│   %8 = Core.memoryrefnew(%7)::MemoryRef{String}
│   %9 = Base.memoryrefget(%8, :not_atomic, true)::String
└──      return %9
end

# check: changes([5]) == (5, Pair{Int64, Int64}(7, 10), (old = 10, success = true), (old = 1, success = false), 1)
# throws: changes(Int64[]) BoundsError
function changes(a::Vector{Int64})::Any
1 ─ %1 = Base.getfield(a, :ref)::MemoryRef{Int64}
│   %2 = Base.memoryrefnew(%1, 1, true)::MemoryRef{Int64}
│   %3 = Base.memoryrefswap!(%2, 7, :not_atomic, true)::Int64
│   %4 = Base.memoryrefmodify!(%2, Base.:+, 3, :not_atomic, true)::Pair{Int64, Int64}
│   %5 = Base.memoryrefreplace!(%2, 10, 1, :not_atomic, :not_atomic, true)::@NamedTuple{old::Int64, success::Bool}
│   %6 = Base.memoryrefreplace!(%2, 10, 2, :not_atomic, :not_atomic, true)::@NamedTuple{old::Int64, success::Bool}
│   %7 = Base.memoryrefget(%2, :not_atomic, true)::Int64
│   %8 = Core.tuple(%3, %4, %5, %6, %7)::Any
└──      return %8
end

# check: grow([4, 5]) == [4, 5, 6]
function grow(a::Vector{Int64})::Vector{Int64}
1 ─ %1  = Base.getfield(a, :size)::Tuple{Int64}
│   %2  = Base.getfield(%1, 1)::Int64
│   %3  = Base.add_int(%2, 1)::Int64
│   %4  = Core.memorynew(Memory{Int64}, %3)::Memory{Int64}
│   %5  = Core.memoryrefnew(%4)::MemoryRef{Int64}
│   %6  = Base.getfield(%5, :ptr_or_offset)::Ptr{Nothing}
│   %7  = Base.getfield(a, :ref)::MemoryRef{Int64}
│   %8  = Base.getfield(%7, :ptr_or_offset)::Ptr{Nothing}
│   %9  = Base.mul_int(%2, 8)::Int64
│   %10 = Base.bitcast(UInt64, %9)::UInt64
│         $(Expr(:foreigncall, :(:memmove), Ptr{Nothing}, svec(Ptr{Nothing}, Ptr{Nothing}, UInt64), 0, :(:ccall), :(%6), :(%8), :(%10), :(a)))::Ptr{Nothing}
│         Base.setfield!(a, :ref, %5)::MemoryRef{Int64}
│   %13 = Core.tuple(%3)::Tuple{Int64}
│         Base.setfield!(a, :size, %13)::Tuple{Int64}
│         Base.arrayset(true, a, 6, %3)::Vector{Int64}
└──       return a
end
",
    );
}

#[test]
fn strings() {
    check(
        "
# check: bytes(\"aé\") == (3, 0xc3)
function bytes(s::String)::Tuple{Int64, UInt8}
1 ─ %1 = Core.sizeof(s)::Int64
│   %2 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), :(s)))::Ptr{UInt8}
│   %3 = Base.pointerref(%2, 2, 1)::UInt8
│   %4 = Core.tuple(%1, %3)::Tuple{Int64, UInt8}
└──      return %4
end

# check: upper(\"x\") == \"Xx\"
# check: upper(\"é\") == \"\\xc3é\"
function upper(s::String)::String
1 ─ %1  = Core.sizeof(s)::Int64
│   %2  = Base.add_int(%1, 1)::Int64
│   %3  = Base.bitcast(UInt64, %2)::UInt64
│   %4  = $(Expr(:foreigncall, :(:jl_alloc_string), Ref{String}, svec(UInt64), 0, :(:ccall), :(%3)))::String
│   %5  = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), :(s)))::Ptr{UInt8}
│   %6  = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), :(%4)))::Ptr{UInt8}
│   %7  = Base.pointerref(%5, 1, 1)::UInt8
│   %8  = Core.zext_int(Int32, %7)::Int32
│   %9  = $(Expr(:foreigncall, :(:toupper), Int32, svec(Int32), 0, :(:ccall), :(%8)))::Int32
│   %10 = Core.trunc_int(UInt8, %9)::UInt8
│         Base.pointerset(%6, %10, 1, 1)::Ptr{UInt8}
│   %12 = Base.add_ptr(%6, 0x0000000000000001)::Ptr{UInt8}
│   %13 = Base.bitcast(UInt64, %1)::UInt64
│         $(Expr(:foreigncall, :(:memcpy), Ptr{UInt8}, svec(Ptr{UInt8}, Ptr{UInt8}, UInt64), 0, :(:ccall), :(%12), :(%5), :(%13)))::Ptr{UInt8}
└──       return %4
end

# check: same(\"ab\", \"ab\") == true
# check: same(\"ab\", \"b\") == false
function same(a::String, b::String)::Bool
1 ─ %1 = (a === b)::Bool
└──      return %1
end
",
    );
}

#[test]
fn pointers() {
    check(
        "
# check: atomics([1, 2]) == (1, Pair{Int64, Int64}(5, 8), (old = 8, success = true), 9)
function atomics(a::Vector{Int64})::Any
1 ─ %1 = $(Expr(:foreigncall, :(:jl_array_ptr), Ptr{Int64}, svec(Any), 0, :(:ccall), :(a)))::Ptr{Int64}
│   %2 = Base.atomic_pointerswap(%1, 5, :acquire_release)::Int64
│   %3 = Base.atomic_pointermodify(%1, Main.plus, 3, :sequentially_consistent)::Pair{Int64, Int64}
│   %4 = Base.atomic_pointerreplace(%1, 8, 9, :sequentially_consistent, :monotonic)::@NamedTuple{old::Int64, success::Bool}
│        Base.atomic_fence(:sequentially_consistent)::Nothing
│   %6 = Base.atomic_pointerref(%1, :acquire)::Int64
│   %7 = Core.tuple(%2, %3, %4, %6)::Any
└──      return %7
end

function plus(a::Int64, b::Int64)::Int64
1 ─ %1 = Base.add_int(a, b)::Int64
└──      return %1
end

# check: reread(0x0102) == (0x02, 0x01)
function reread(x::UInt16)::Tuple{UInt8, UInt8}
1 ─ %1 = $(Expr(:foreigncall, :(:malloc), Ptr{UInt16}, svec(UInt64), 0, :(:ccall), 0x0000000000000002))::Ptr{UInt16}
│        Base.pointerset(%1, x, 1, 1)::Ptr{UInt16}
│   %3 = Base.bitcast(Ptr{Tuple{UInt8, UInt8}}, %1)::Ptr{Tuple{UInt8, UInt8}}
│   %4 = Base.pointerref(%3, 1, 1)::Tuple{UInt8, UInt8}
│        $(Expr(:foreigncall, :(:free), Nothing, svec(Ptr{Nothing}), 0, :(:ccall), :(%1)))::Nothing
└──      return %4
end
",
    );
}

#[test]
fn calls() {
    check(
        "
struct Adder <: Function; by::Int64; end
abstract type Animal end
struct Dog <: Animal; end
struct Cat <: Animal; end

# check: through(Adder(3), 4) == 7
# throws: through(Adder(3), 4.0) MethodError
# throws: through(5, 4) MethodError
function through(f::Any, x::Any)::Any
1 ─ %1 = (f)(x)::Any
└──      return %1
end

function (self::Adder)(x::Int64)::Int64
1 ─ %1 = Core.getfield(#self#, :by)::Int64
│   %2 = Base.add_int(%1, x)::Int64
└──      return %2
end

# check: spread((1, 2), Any[3.0]) == 6.0
# check: spread((), Any[1]) == 1
# throws: spread((), Any[]) MethodError
# throws: spread((1, \"x\"), Any[]) MethodError
function spread(t::Tuple, v::Vector{Any})::Any
1 ─ %1 = Core._apply_iterate(Base.iterate, Base.:+, t, v)::Any
└──      return %1
end

# check: count(1, 2, 3) == (1, 2)
# check: count(1) == (1, 0)
function count(a::Int64, rest::Int64...)::Tuple{Int64, Int64}
1 ─ %1 = Core.nfields(rest)::Int64
│   %2 = Core.tuple(a, %1)::Tuple{Int64, Int64}
└──      return %2
end

# check: sound(Dog()) == :woof
# check: sound(Cat()) == :some
# throws: sound(1) MethodError
function sound(x::Any)::Symbol
1 ─ %1 = Main.voice(x)::Any
│   %2 = Core.typeassert(%1, Core.Symbol)::Symbol
└──      return %2
end

function voice(x::Dog)::Symbol
1 ─      return :woof
end

function voice(x::Animal)::Symbol
1 ─      return :some
end

# check: latest(3) == (6, true, false)
function latest(x::Int64)::Tuple{Int64, Bool, Bool}
1 ─ %1 = Core.invokelatest(Base.:+, x, x)::Int64
│   %2 = Core.applicable(Main.count, x)::Bool
│   %3 = Core.applicable(Main.count, :s)::Bool
│   %4 = Core.tuple(%1, %2, %3)::Tuple{Int64, Bool, Bool}
└──      return %4
end
",
    );
}

#[test]
fn globals_start_afresh_for_every_call() {
    check(
        "
global hits::Int64 = 5
global words::Any = :none

# check: hit(2) == (5, 7)
# check: hit(3) == (5, 8)
# throws: hit(\"x\") TypeError
function hit(x::Any)::Tuple{Int64, Int64}
1 ─ %1 = Main.hits::Int64
│   %2 = (x isa Main.Int64)::Bool
└──      goto #3 if not %2
2 ─ %4 = π (x, Int64)
│   %5 = Base.add_int(%1, %4)::Int64
│        Core.setglobal!(Main, :hits, %5)::Int64
│   %7 = Main.hits::Int64
│   %8 = Core.tuple(%1, %7)::Tuple{Int64, Int64}
└──      return %8
3 ─      Core.setglobal!(Main, :hits, x)::Any
└──      unreachable
end
",
    );
}

#[test]
fn exceptions() {
    check(
        "
# check: finally(1) == (1, :fine)
# check: finally(0) == (-1, :caught)
function finally(x::Int64)::Tuple{Int64, Symbol}
1 ─ %1  = enter #6
2 ─ %2  = enter #4
3 ─ %3  = Base.checked_sdiv_int(1, x)::Int64
│         $(Expr(:leave, :(%2), :(%1)))
│   %5  = Core.tuple(%3, :fine)::Tuple{Int64, Symbol}
└──       return %5
4 ─ %7  = $(Expr(:the_exception))::Any
│   %8  = (%7 isa Main.DivideError)::Bool
│         invoke Base.rethrow()::Union{}
└──       unreachable
6 ─ %11 = $(Expr(:the_exception))::Any
│   %12 = (%11 isa Main.DivideError)::Bool
│         $(Expr(:pop_exception, :(%1)))::Nothing
└──       goto #8 if not %12
7 ─       return (-1, :caught)
8 ─       return (-2, :other)
end

# throws: deep(10) ErrorException
# check: shield(10) == \"bottom\"
function deep(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─      invoke Base.error(\"bottom\"::String)::Union{}
└──      unreachable
3 ─ %5 = Base.sub_int(n, 1)::Int64
│   %6 = invoke Main.deep(%5::Int64)::Int64
└──      return %6
end

function shield(n::Int64)::Any
1 ─ %1 = enter #3
2 ─ %2 = invoke Main.deep(n::Int64)::Int64
│        $(Expr(:leave, :(%1)))
└──      return %2
3 ─ %5 = $(Expr(:the_exception))::Any
│   %6 = Core.typeassert(%5, Core.ErrorException)::ErrorException
│   %7 = Base.getfield(%6, :msg)::AbstractString
│        $(Expr(:pop_exception, :(%1)))::Nothing
└──      return %7
end

# throws: endless(1) StackOverflowError
function endless(n::Int64)::Int64
1 ─ %1 = invoke Main.endless(n::Int64)::Int64
└──      return %1
end
",
    );
}

#[test]
fn output() {
    let text = check(
        "
struct Point; x::Float64; y::Float32; end

# check: show_all(Point(1.0, 2.5f0)) == nothing
function show_all(p::Point)::Nothing
1 ─      invoke Base.println(p::Point)::Nothing
│        invoke Base.print(\"a\\\"b\"::String, 'c'::Char, :d::Symbol, 0xff::UInt8, 1.5f0::Float32)::Nothing
│        invoke Base.println()::Nothing
│        invoke Base.println((1, \"s\", nothing)::Tuple{Int64, String, Nothing})::Nothing
└──      return nothing
end
",
    );
    assert_eq!(text, "Point(1.0, 2.5f0)\na\"bcd2551.5\n(1, \"s\", nothing)\n");
}
