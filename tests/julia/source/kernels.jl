# Kernels in the shape that people write, for the bench that runs them beside Julia (`benches/julia.rs`): each takes a size, and a call of it takes between some
# microseconds and some milliseconds. `print.jl` prints them; the checks have small sizes.
module Programs
vecsum(n::Int) = (v = collect(1:n); s = 0; for x in v; s += x; end; s)
dot(n::Int) = (a = [1.0 / i for i in 1:n]; b = [i * 0.5 for i in 1:n]; s = 0.0; for i in eachindex(a); s += a[i] * b[i]; end; s)
dotsimd(n::Int) = (a = [1.0 / i for i in 1:n]; b = [i * 0.5 for i in 1:n]; s = 0.0; @inbounds @simd for i in 1:n; s += a[i] * b[i]; end; s)
axpy(n::Int) = (x = [i * 0.25 for i in 1:n]; y = zeros(n); for r in 1:8; for i in 1:n; y[i] += r * x[i]; end; end; y[n])
sieve(n::Int) = (s = fill(true, n); s[1] = false; for i in 2:isqrt(n); if s[i]; for j in i*i:i:n; s[j] = false; end; end; end; count(s))
matmul(n::Int) = (a = [i + 0.5j for i in 1:n, j in 1:n]; b = [i - 0.5j for i in 1:n, j in 1:n]; c = zeros(n, n); for j in 1:n, k in 1:n, i in 1:n; c[i, j] += a[i, k] * b[k, j]; end; c[n, 1])
collatz(n::Int) = (best = 0; for i in 1:n; c = 0; x = i; while x != 1; x = iseven(x) ? x >> 1 : 3x + 1; c += 1; end; best = max(best, c); end; best)
function place(row::Int, n::Int, cols::Vector{Bool}, up::Vector{Bool}, down::Vector{Bool})
    row > n && return 1
    found = 0
    for c in 1:n
        if !cols[c] && !up[row+c] && !down[row-c+n]
            cols[c] = up[row+c] = down[row-c+n] = true
            found += place(row + 1, n, cols, up, down)
            cols[c] = up[row+c] = down[row-c+n] = false
        end
    end
    found
end
nqueens(n::Int) = place(1, n, fill(false, n), fill(false, 2n), fill(false, 2n))
function powermod_sum(n::Int)
    s = 0
    for i in 1:n
        b = i % 1009; e = i; r = 1
        while e > 0
            isodd(e) && (r = r * b % 1009)
            b = b * b % 1009
            e >>= 1
        end
        s += r
    end
    s
end
function life(n::Int)
    g = [((i * 7 + j * 13) % 5) < 2 for i in 1:n, j in 1:n]
    h = copy(g)
    for step in 1:4
        for j in 2:n-1, i in 2:n-1
            c = 0
            for dj in -1:1, di in -1:1
                (di != 0 || dj != 0) && (c += g[i+di, j+dj])
            end
            h[i, j] = c == 3 || (g[i, j] && c == 2)
        end
        g, h = h, g
    end
    count(g)
end
utf8count(n::Int) = (s = repeat("häß€ x", n); c = 0; for ch in s; ch > 'z' && (c += 1); end; c)
joinints(n::Int) = length(join([string(i) for i in 1:n], ","))
strbuild(n::Int) = (io = IOBuffer(); for i in 1:n; print(io, i); write(io, ' '); end; length(String(take!(io))))
wordcount(n::Int) = (d = Dict{String,Int}(); words = ["a", "bb", "ccc", "a", "dd", "bb"]; for i in 1:n; w = words[i%6+1]; d[w] = get(d, w, 0) + 1; end; d["a"])
dictsum(n::Int) = (d = Dict{Int,Int}(); for i in 1:n; d[i*7%1001] = i; end; s = 0; for (k, v) in d; s += k * v; end; s)
abstract type Shape end
struct Circle <: Shape; r::Float64; end
struct Square <: Shape; a::Float64; end
struct Rect <: Shape; a::Float64; b::Float64; end
area(s::Circle) = 3.0 * s.r * s.r
area(s::Square) = s.a * s.a
area(s::Rect) = s.a * s.b
shapes(n::Int) = (v = Shape[i % 3 == 0 ? Circle(i) : i % 3 == 1 ? Square(i) : Rect(i, 2.0) for i in 1:n]; s = 0.0; for x in v; s += area(x); end; s)
closures(n::Int) = (k = 3; f = x -> x * k + 1; s = 0; for i in 1:n; s += f(i); end; s)
mapsum(n::Int) = sum(map(x -> x * x, 1:n))
filtersum(n::Int) = (s = 0; for x in Iterators.filter(isodd, 1:n); s += x; end; s)
function quick!(v::Vector{Int}, lo::Int, hi::Int)
    lo >= hi && return v
    p = v[(lo+hi)>>1]; i = lo; j = hi
    while i <= j
        while v[i] < p; i += 1; end
        while v[j] > p; j -= 1; end
        if i <= j
            v[i], v[j] = v[j], v[i]
            i += 1; j -= 1
        end
    end
    quick!(v, lo, j); quick!(v, i, hi)
end
quicksort(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; quick!(v, 1, n); v[1] + v[n])
sortby(n::Int) = (v = [((i * 7919) % 10007, i) for i in 1:n]; sort!(v, by = x -> -x[1]); v[1][2])
mutable struct Tree; left::Union{Tree,Nothing}; right::Union{Tree,Nothing}; end
build(d::Int) = d == 0 ? Tree(nothing, nothing) : Tree(build(d - 1), build(d - 1))
nodes(t::Tree) = 1 + (t.left === nothing ? 0 : nodes(t.left)) + (t.right === nothing ? 0 : nodes(t.right))
trees(n::Int) = nodes(build(n))
function mandelc(n::Int)
    c = 0
    for y in 1:n, x in 1:n
        z = complex(0.0, 0.0); p = complex(3.0x / n - 2.0, 2.0y / n - 1.0); k = 0
        while k < 50 && abs2(z) < 4.0
            z = z * z + p
            k += 1
        end
        c += k
    end
    c
end
fibr(n::Int) = n < 2 ? n : fibr(n - 1) + fibr(n - 2)
function spectral(n::Int)
    a(i, j) = 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1)
    u = ones(n); v = zeros(n)
    for step in 1:2
        for i in 1:n
            s = 0.0
            for j in 1:n; s += a(i - 1, j - 1) * u[j]; end
            v[i] = s
        end
        u, v = v, u
    end
    sum(u)
end
prefix(n::Int) = (v = collect(1.0:n); for i in 2:n; v[i] += v[i-1]; end; v[n])
maxmin(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; maximum(v) - minimum(v))
histogram(n::Int) = (h = zeros(Int, 256); x = 1; for i in 1:n; x = (x * 1103515245 + 12345) & 0x7fffffff; h[x&255+1] += 1; end; maximum(h))
catcherr(n::Int) = (s = 0; for i in 1:n; try; i % 3 == 0 && throw(ArgumentError("three")); s += i; catch e; s -= 1; end; end; s)
end

const CASES = [
    ("vecsum", [(10,)]), ("dot", [(10,)]), ("dotsimd", [(16,)]), ("axpy", [(10,)]), ("sieve", [(100,)]), ("matmul", [(5,)]), ("collatz", [(30,)]), ("nqueens", [(6,)]),
    ("powermod_sum", [(50,)]), ("life", [(8,)]), ("utf8count", [(3,)]), ("joinints", [(20,)]), ("strbuild", [(20,)]), ("wordcount", [(30,)]), ("dictsum", [(20,)]),
    ("shapes", [(9,)]), ("closures", [(10,)]), ("mapsum", [(10,)]), ("filtersum", [(10,)]), ("quicksort", [(50,)]), ("sortby", [(50,)]), ("trees", [(5,)]), ("mandelc", [(6,)]),
    ("fibr", [(12,)]), ("spectral", [(8,)]), ("prefix", [(10,)]), ("maxmin", [(30,)]), ("histogram", [(300,)]), ("catcherr", [(10,)]),
]
# The sizes that `benches/julia.rs` times.
const TIMED = [
    ("axpy", (10000,)), ("catcherr", (1000,)), ("closures", (100000,)), ("collatz", (10000,)), ("dictsum", (10000,)), ("dot", (10000,)), ("dotsimd", (10000,)),
    ("fibr", (25,)), ("filtersum", (100000,)), ("histogram", (100000,)), ("joinints", (1000,)), ("life", (100,)), ("mandelc", (60,)), ("mapsum", (10000,)),
    ("matmul", (60,)), ("maxmin", (10000,)), ("nqueens", (7,)), ("powermod_sum", (10000,)), ("prefix", (10000,)), ("quicksort", (10000,)), ("shapes", (10000,)),
    ("sieve", (100000,)), ("sortby", (5000,)), ("spectral", (100,)), ("strbuild", (1000,)), ("trees", (14,)), ("utf8count", (10000,)), ("vecsum", (100000,)),
    ("wordcount", (10000,)),
]
